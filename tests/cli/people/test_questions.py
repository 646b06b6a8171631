"""covey inbox, answer, ask and permit: what waits for a person, and how it goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from covey.app.app import App
from covey.app.clock import SystemClock
from covey.app.context import Call, Context, Principal
from covey.app.fleet.heartbeats import Pulses
from covey.app.people import questions
from covey.cli.people.ask import NOT_YET
from covey.config import Config
from covey.core.fleet.sessions import COVEY
from covey.core.fleet.signals import Asks, Wants
from covey.store.engine.lock import WriterLock
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx
from tests.worlds.serving import wait_until
from tests.worlds.shell import PATIENCE, Shell

NPM = Asks("The tests tell", "toolu_1", Wants.PERMISSION, "shell", "npm test -- --watch=false\n--bail")


def wants(shell: Shell, asks: Asks = NPM, session: str = "ada", minutes: float = 60.0) -> str:
    """Let an agent ask as the loops would, without a daemon, and return the question's id."""

    def job(tx: Tx) -> str:
        call = Call(tx, Principal(COVEY), app.context)
        return questions.ask(call, session, asks, task=None, run=None, minutes=minutes).id

    with WriterLock(shell.state / "lock"):
        store = SqliteStore(shell.state / "covey.db")
        try:
            app = App(store, Context(Config(), Pulses(SystemClock(), store.place), "shop"))
            return store.write(job)
        finally:
            store.close()


def asks(shell: Shell, *words: str) -> str:
    """Let ada ask from her shell, find no answer yet, and return the question's id."""
    done = shell.run("ask", *words, "--as", "ada", "--wait", "0", "--json")
    assert done.returncode == 3, done.stderr
    return str(json.loads(done.stdout)["id"])


def open_questions(shell: Shell) -> list[dict[str, Any]]:
    """Return the questions in the inbox."""
    return [row for row in shell.json("inbox") if row["kind"] == "question"]


# The inbox


def test_the_same_question_of_several_is_shown_once_with_every_way_to_answer(shell: Shell) -> None:
    one, other = wants(shell), wants(shell, session="bob")
    said = shell.ok("inbox")
    assert said.startswith("2 questions wait for you:\n") and said.count("npm test -- --watch=false") == 1
    assert f"{one}, {other}  ada, bob, " in said
    assert said.count("covey answer") == 1, "one command for all, however many they are"
    assert f"covey answer {one} --allow | --always | --deny (with --all: all 2 of them)" in said


def test_all_who_ask_the_same_are_answered_at_once_and_nobody_else(shell: Shell) -> None:
    same = [wants(shell, session=name) for name in ("ada", "bob", "cleo")]
    other = wants(shell, Asks("", "toolu_2", Wants.PERMISSION, "shell", "make deploy"))
    said = shell.ok("answer", same[1], "--deny", "Use make test", "--all")
    assert "2 others who asked the same are told too" in said
    assert [row["ids"] for row in open_questions(shell)] == [[other]]
    assert "1 other" not in shell.ok("answer", other, "--allow", "--all")


def test_tasks_that_the_same_blocks_are_told_once_with_one_command_for_all(shell: Shell) -> None:
    for number in range(1, 13):
        shell.ok("task", "add", f"Part {number}")
        shell.ok("task", "block", f"T-{number}", f"T-{number}: No module named shop" if number > 1 else "Which one?")
    said = shell.ok("inbox")
    assert said.count("No module named shop") == 1
    assert "11 tasks blocked by the same: T-2: No module named shop" in said and "and 3 more" in said
    command = "covey task reopen " + " ".join(f"T-{number}" for number in range(2, 13))
    assert command in said
    shell.ok(*command.split()[1:])
    assert [row["ids"] for row in shell.json("inbox")] == [["T-1"]]


def test_an_empty_inbox_says_so(shell: Shell) -> None:
    assert shell.ok("inbox") == "Nothing waits for you.\n"
    assert shell.json("inbox") == []
    assert "question" not in shell.ok("status")


def test_the_inbox_shows_the_whole_command_who_asks_and_when_it_is_denied(shell: Shell) -> None:
    question = wants(shell)
    said = shell.ok("inbox")
    assert said.startswith("1 question waits for you:\n")
    assert f"{question}  ada, " in said
    assert "denied in 1 h" in said or "denied in 59 min" in said, "the second of the question may be over"
    assert "    npm test -- --watch=false\n    --bail\n" in said and "The tests tell" in said
    assert f"covey answer {question} --allow | --always | --deny" in said
    assert [row["ids"] for row in open_questions(shell)] == [[question]]
    assert "1 question waits for an answer; covey inbox shows it" in shell.ok("status")


def test_questions_come_first_and_then_whatever_else_waits(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text('[project]\nmain = "trunk"\n[merge]\nreview = true\n')
    shell.ok("task", "add", "Choose")
    shell.ok("task", "block", "T-1", "Which one?")
    shell.ok("task", "add", "Look")
    shell.ok("task", "claim", "T-2", "--as", "ada")
    shell.git("commit", "-q", "--allow-empty", "-m", "Work")
    shell.ok("task", "handin", "T-2", "--as", "ada", "--commit", "HEAD")
    asks(shell, "Which port?", "--choice", "80", "--choice", "8080")
    said = shell.ok("inbox")
    places = [said.index(part) for part in ("Which port?", "- 80\n", "T-1  Choose: Which one?", "merge-", "review")]
    assert places == sorted(places)
    found = shell.json("inbox")
    assert [row["kind"] for row in found] == ["blocked", "approve", "question"], "the oldest first"


def test_control_characters_of_agents_never_reach_the_terminal(shell: Shell) -> None:
    wants(shell, Asks("a\x1b[2Jb", "a", Wants.PERMISSION, "sh\x1b]0;x\x07", "c\x1b[1;1Hd\rrm"))
    said = shell.ok("inbox")
    assert "\x1b" not in said and "\r" not in said and "cd\N{REPLACEMENT CHARACTER}rm" in said


# Answers


@pytest.mark.parametrize(
    ("words", "decision", "said"),
    [
        (["--allow"], "allow", "Allowed once: npm test"),
        (["--deny"], "deny", "Denied: npm test"),
        (["--deny", "Use make"], "deny", "Denied"),
        (["--always"], "always", "Allowed in this repository: npm test"),
    ],
)
def test_the_only_question_needs_no_name(shell: Shell, words: list[str], decision: str, said: str) -> None:
    question = wants(shell)
    assert said in shell.ok("answer", *words)
    (row,) = shell.verb("log.list", "log", "--kind", "question.answered")
    assert (row["subject"], row["data"]["decision"]) == (question, decision)
    assert row["data"].get("text", "") == " ".join(words[1:])


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_name_and_decision_stand_in_any_order(shell: Shell, order: list[int]) -> None:
    other, question = wants(shell), wants(shell, session="bob")
    for option in ("--deny", "--allow"):
        words = [question, option]
        shell.ok("answer", *(words[at] for at in order))
        question = other
    assert open_questions(shell) == []


def test_always_is_narrowed_to_the_first_words(shell: Shell) -> None:
    wants(shell, Asks("?", "a", Wants.PERMISSION, "shell", "npm test lib"))
    row = shell.verb("question.answer", "answer", "--always", "--about", "npm test")
    assert (row["state"], row["decision"]) == ("answered", "always")
    (permit,) = shell.verb("permit.list", "permit", "list")
    assert permit["about"] == "npm test"
    wants(shell, Asks("?", "b", Wants.PERMISSION, "shell", "npm test other"))
    assert shell.ok("inbox") == "Nothing waits for you.\n"


def test_an_answer_in_words_is_given_as_it_is_or_read(shell: Shell) -> None:
    first, second = asks(shell, "Which port?"), asks(shell, "Which host?")
    shell.ok("answer", first, "Port", "8080")
    shell.ok("answer", second, "-", stdin="this one\n")
    assert shell.ok("ask", "Which", "port?", "--as", "ada") == "Port 8080\n"
    assert shell.ok("ask", "Which host?", "--as", "ada") == "this one\n"


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (5, ["--allow"], "No question waits for an answer"),
        (5, ["Port 8080"], "No question waits for an answer"),
        (4, ["question-999", "--allow"], "There is no question 'question-999'"),
        (2, ["question-1", "--allow", "--deny"], "not allowed with argument"),
        (2, ["question-1", "--allow", "--about", "npm"], "--about says what is allowed always"),
        (2, ["nonsense", "--allow"], "'nonsense' is not a question"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_sentence(shell: Shell, code: int, words: list[str], said: str) -> None:
    assert said in shell.fails(code, "answer", *words)


def test_of_several_questions_one_has_to_be_named(shell: Shell) -> None:
    names = [wants(shell), wants(shell, session="bob")]
    said = shell.fails(2, "answer", "--allow")
    assert all(name in said for name in names)


def test_an_answer_that_does_not_fit_says_which_would(shell: Shell) -> None:
    question = wants(shell)
    assert "--allow" in shell.fails(2, "answer", question)
    assert "--allow, --always or --deny" in shell.fails(2, "answer", question, "Well")
    free = asks(shell, "Which port?")
    assert f'covey answer {free} "..."' in shell.fails(2, "answer", free)
    assert "only a permission can be given for ever" in shell.fails(2, "answer", free, "--always")
    shell.ok("answer", free, "--deny")
    assert "answered already" in shell.fails(5, "answer", free, "8080")


# Permits


def test_permits_are_granted_listed_and_revoked(shell: Shell) -> None:
    assert "Nothing is allowed" in shell.ok("permit", "list")
    granted = shell.verb("permit.grant", "permit", "grant", "npm", "test")
    assert (granted["tool"], granted["about"]) == ("shell", "npm test")
    assert "allows WebSearch (anything)" in shell.ok("permit", "grant", "--tool", "WebSearch")
    assert "npm test" in shell.ok("permit", "list")
    assert shell.verb("permit.revoke", "permit", "revoke", granted["id"])["revoked"]
    assert "npm test" not in shell.ok("permit", "list") and "revoked" in shell.ok("permit", "list", "--all")
    assert "for every command" in shell.fails(2, "permit", "grant")
    assert "no permit 'permit-999'" in shell.fails(4, "permit", "revoke", "permit-999")


# Asking from a shell


def test_without_an_answer_an_agent_is_told_to_end_its_turn(shell: Shell) -> None:
    done = shell.run("ask", "Which port?", "--as", "ada", "--wait", "0.2")
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{NOT_YET}\n", "")
    assert asks(shell, "Which port?") == open_questions(shell)[0]["ids"][0], "asked again, it is the same"


def test_the_owner_asks_nobody(shell: Shell) -> None:
    assert "You are the owner" in shell.fails(2, "ask", "Which port?")


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--deny"], "The answer is no.\n"), (["--deny", "Too risky"], "The answer is no. Too risky\n")],
)
def test_a_no_is_told_as_one(shell: Shell, words: list[str], said: str) -> None:
    asks(shell, "May I?")
    shell.ok("answer", *words)
    assert shell.ok("ask", "May I?", "--as", "ada") == said


@pytest.fixture
def ada(served: Shell) -> Shell:
    """Return the shell of a session with its own token, at a daemon."""
    served.ok("session", "new", "ada")
    env = {"COVEY_URL": served.json("up")["url"], "COVEY_TOKEN": served.ok("session", "token", "ada").strip()}
    return Shell(served.folder, served.env | env)


def test_an_agent_waits_at_the_daemon_and_goes_on_with_the_answer(served: Shell, ada: Shell) -> None:
    words = [sys.executable, "-m", "covey", "ask", "Which port?", "--choice", "80", "--wait", "100"]
    with subprocess.Popen(words, cwd=ada.folder, env=ada.env, stdout=subprocess.PIPE, text=True) as waiting:
        wait_until(lambda: len(open_questions(served)) == 1, "the question in the inbox")
        (question,) = open_questions(served)
        assert (question["session"], question["choices"]) == ("ada", ["80"])
        served.ok("answer", "Port 8080")
        said, _ = waiting.communicate(timeout=PATIENCE)
    assert (waiting.returncode, said) == (0, "Port 8080\n")
    assert open_questions(served) == []
    assert len(served.json("log", "--kind", "question.told")) == 1


def test_an_agent_sees_what_waits_and_decides_nothing(ada: Shell, served: Shell) -> None:
    done = ada.run("ask", "Which port?", "--wait", "0")
    assert done.returncode == 3
    assert "Which port?" in served.ok("inbox")
    for words in (["inbox"], ["answer", "8080"], ["permit", "grant", "make"], ["permit", "revoke", "permit-1"]):
        assert "owner" in ada.fails(6, *words)
    assert "Leave --as out" in ada.fails(6, "ask", "What?", "--as", "bob")


def test_questions_and_permits_are_completed(shell: Shell) -> None:
    question = wants(shell)
    permit = shell.json("permit", "grant", "make")["id"]
    assert shell.ok("__complete", "answer", "").split() == [question]
    assert shell.ok("__complete", "answer", "--al").split() == ["--all", "--allow", "--always"]
    assert shell.ok("__complete", "permit", "revoke", "").split() == [permit]
    assert "inbox" in shell.ok("__complete", "in").split()
