"""Every command, without a daemon: what it does, and that --json is what REST answers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import covey.cli
from covey.app.shapes.forms import As
from covey.app.verbs import VERBS
from covey.cli.frame.routes import ROUTES
from covey.cli.main import every_command
from covey.core.history import activity
from covey.core.nouns import KINDS
from covey.core.people import rights
from covey.errors import Invalid
from covey.plain import plain
from tests.worlds.shell import Shell


def test_the_routes_are_those_of_the_verbs() -> None:
    asked = {name: route.split(" ", 2) for name, route in ROUTES.items()}
    assert {name: " ".join(words[:2]) for name, words in asked.items()} == {
        name: f"{verb.method} {verb.path}" for name, verb in VERBS.items()
    }
    limits = {name: words[2] for name, words in asked.items() if len(words) == 3}
    owner_only = {name for name, verb in VERBS.items() if verb.may == rights.OWNER_ONLY}
    assert {name for name, limit in limits.items() if limit == "owner"} == owner_only
    said_for_whom = {name for name, verb in VERBS.items() if issubclass(verb.asked, As)} - owner_only
    assert {name for name, limit in limits.items() if limit == "as"} == said_for_whom


def test_every_verb_that_a_command_names_is_in_the_routes() -> None:
    sources = [path.read_text(encoding="utf-8") for path in Path(covey.cli.__path__[0]).rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"\b(?:asking|ask)\(\s*\"([a-z.]+)\"", text)}
    assert len(named) > 40 and named <= set(ROUTES)


def test_every_kind_of_event_has_its_sentence() -> None:
    assert set(KINDS) == activity.TELL.keys()


def test_every_command_explains_itself_with_an_example_and_has_json() -> None:
    for name, parser in every_command():
        text = parser.format_help()
        assert text.startswith(f"usage: covey {name}"), name
        assert "Example:" in text, name
        assert "--json" in text, name


def test_options_may_stand_between_the_words_of_every_command() -> None:
    apart = 0
    for name, parser in every_command():
        places = [action for action in parser._actions if not action.option_strings]
        some = [(next(iter(each.choices or "1")), 2 if each.nargs in ("*", "+") else 1) for each in places]
        words = [word for word, times in some for _ in range(times)]
        needed = ["--first"] if name == "task move" else []
        said = parser.parse_args([*words, *needed, "--json"])
        for at in range(1, len(words)):
            assert parser.parse_args([*words[:at], "--json", *words[at:], *needed]) == said, name
            assert parser.parse_args([*words[:at], "-C", "x", *words[at:], *needed]).folder == "x", name
            apart += 1
        with pytest.raises(Invalid, match="--nonsense"):
            parser.parse_args([*words, *needed, "--nonsense"])
    assert apart > 40


def test_words_behind_two_dashes_are_words_wherever_an_option_stood() -> None:
    parser = dict(every_command())["task add"]
    for words in (["Mend", "--json", "--", "-x"], ["--json", "--", "Mend", "-x"], ["Mend", "--", "-x", "--json"]):
        assert parser.parse_args(words).title[:2] == ["Mend", "-x"]


def test_a_task_is_added_claimed_handed_in_and_landed(shell: Shell) -> None:
    added = shell.verb("task.add", "task", "add", "Limit", "the", "rate", "--assignee", "auth-fix", "--body", "Why")
    assert (added["id"], added["title"], added["body"]) == ("AF-1", "Limit the rate", "Why")
    assert [task["id"] for task in shell.verb("task.list", "task", "list", "--status", "todo")] == ["AF-1"]
    claimed = shell.verb("task.claim", "task", "claim", "AF-1", "--as", "auth-fix")
    assert (claimed["session"], claimed["fence"]) == ("auth-fix", 1)
    assert shell.verb("task.renew", "task", "renew", "AF-1", "--as", "auth-fix", "--fence", "1")["until"]
    shell.git("commit", "-q", "--allow-empty", "-m", "Work")
    commit = shell.git("rev-parse", "HEAD")
    handed_in = shell.verb(
        "task.handin",
        "task",
        "handin",
        "AF-1",
        "--as",
        "auth-fix",
        "--fence",
        "1",
        "--commit",
        "HEAD",
        "--result",
        "Done",
    )
    assert (handed_in["status"], handed_in["commit"], handed_in["result"]) == ("merging", commit, "Done")
    (merge,) = shell.verb("merge.list", "merge", "list")
    shell.git("checkout", "-q", "-b", "side")
    shell.git("commit", "-q", "--allow-empty", "-m", "not on main")
    assert "is not on trunk" in shell.fails(5, "merge", "land", merge["id"], "HEAD")
    assert "knows no commit" in shell.fails(2, "merge", "land", merge["id"], "nonsense")
    landed = shell.verb("merge.land", "merge", "land", merge["id"], commit[:8])
    assert (landed["state"], landed["landed"]) == ("landed", commit)
    done = shell.verb("task.show", "task", "show", "AF-1")
    assert (done["status"], done["commit"]) == ("done", commit)
    trail_of_it = shell.ok("task", "show", "AF-1")
    for sentence in ("owner added AF-1", "auth-fix claimed AF-1", "auth-fix handed in AF-1", "it landed"):
        assert sentence in trail_of_it


def test_work_under_review_is_approved_or_sent_back(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text('[project]\nmain = "trunk"\n[merge]\nreview = true\n')
    for name in ("T-1", "T-2", "T-3"):
        shell.ok("task", "add", f"Task {name}")
        shell.ok("task", "claim", name, "--as", "ada")
        shell.git("checkout", "-q", "-b", f"covey/{name}", "trunk")
        (shell.folder / f"{name}.txt").write_text("done\n")
        shell.git("add", f"{name}.txt")
        shell.git("commit", "-q", "-m", f"Do {name}")
        assert shell.json("task", "handin", name, "--as", "ada")["status"] == "review"
    shell.git("checkout", "-q", "trunk")
    first, second, third = (merge["id"] for merge in shell.json("merge", "list"))
    assert shell.verb("merge.approve", "merge", "approve", first)["state"] == "queued"
    assert shell.json("task", "show", "T-1")["status"] == "done", "approving has a daemon for as long as landing takes"
    assert (shell.folder / "T-1.txt").read_text() == "done\n"
    assert shell.verb("merge.reject", "merge", "reject", second, "No", "test")["reason"] == "No test"
    assert shell.json("task", "next", "--as", "ada")["id"] == "T-2"
    assert f"Approved {third}: T-3 landed in " in shell.ok("merge", "approve", third)
    assert "cannot be approved" in shell.fails(5, "merge", "approve", third)
    assert len(shell.verb("merge.list", "merge", "list", "--all")) == 3


def test_a_change_of_which_nothing_is_committed_is_not_handed_in(shell: Shell) -> None:
    shell.ok("task", "add", "Mend it")
    for words in (("--as", "ada"), ()):
        shell.ok("task", "claim", "T-1", *words)
        said = shell.fails(5, "task", "handin", "T-1", *words, "--result", "Done")
        assert "There is no branch covey/T-1" in said and "covey task handin T-1 --commit HEAD" in said
        assert "no branch side" in shell.fails(5, "task", "handin", "T-1", *words, "--branch", "side")
        assert shell.json("task", "show", "T-1")["status"] == "doing" and not shell.json("merge", "list", "--all")
        shell.ok("task", "release", "T-1", *words)


def test_what_was_approved_and_did_not_land_is_told_by_what_came_of_it(shell: Shell) -> None:
    settings = '[project]\nmain = "trunk"\n[merge]\nreview = true\ncheck = "false"\n[board]\ntries = 1\n'
    (shell.folder / "covey.toml").write_text(settings)
    shell.ok("task", "add", "Mend it")
    shell.ok("task", "claim", "T-1", "--as", "ada")
    shell.ok("task", "handin", "T-1", "--as", "ada", "--commit", "f" * 40)
    (merge,) = shell.json("merge", "list")
    done = shell.run("merge", "approve", merge["id"])
    assert done.returncode == 1 and done.stdout.startswith(f"{merge['id']}: T-1 was rejected: "), done


def test_a_result_stays_its_authors_after_the_work_was_sent_back(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text('[project]\nmain = "trunk"\n[merge]\nreview = true\n')
    shell.ok("task", "add", "Mend it")
    shell.ok("task", "claim", "T-1", "--as", "mia")
    shell.git("commit", "-q", "--allow-empty", "-m", "Work")
    shell.ok("task", "handin", "T-1", "--as", "mia", "--commit", "HEAD", "--result", "Mended")
    shell.ok("merge", "reject", shell.json("merge", "list")[0]["id"], "No")
    assert "Result, by mia:" in shell.ok("task", "show", "T-1")
    shell.ok("task", "edit", "T-1", "--assignee", "bob")
    shell.ok("task", "claim", "T-1", "--as", "bob")
    assert shell.json("task", "show", "T-1")["result_by"] == "mia"
    assert "Result, by mia:" in shell.ok("task", "show", "T-1")


def test_a_task_is_released_blocked_dropped_and_brought_back(shell: Shell) -> None:
    shell.ok("task", "add", "First")
    shell.ok("task", "claim", "T-1", "--as", "ada")
    assert "held by ada" in shell.fails(5, "task", "release", "T-1", "--as", "bob")
    assert "fence" in shell.fails(5, "task", "release", "T-1", "--as", "ada", "--fence", "9")
    released = shell.verb("task.release", "task", "release", "T-1", "--as", "ada", "--reason", "no fixture")
    assert [attempt["what"] for attempt in released["tries"]] == ["no fixture"]
    assert shell.verb("task.block", "task", "block", "T-1", "Which", "one?")["reason"] == "Which one?"
    assert shell.verb("task.edit", "task", "edit", "T-1", "--status", "todo")["status"] == "todo"
    assert shell.verb("task.drop", "task", "drop", "T-1", "Not", "needed")["status"] == "dropped"


def test_a_task_is_dropped_without_a_word_too(shell: Shell) -> None:
    for words in (["First"], ["Second", "--needs", "T-1"], ["Third", "--needs-any", "T-1"]):
        shell.ok("task", "add", *words)
    dropped = shell.verb("task.drop", "task", "drop", "T-1")
    assert (dropped["status"], dropped["reason"]) == ("dropped", None)
    assert shell.ok("task", "show", "T-1").endswith("owner dropped T-1\n")
    assert shell.json("task", "show", "T-2")["reason"] == "It needs T-1, which was dropped."
    assert shell.json("task", "next", "--as", "ada")["id"] == "T-3"
    assert shell.ok("task", "reopen", "T-1") == "Reopened T-1: First\n"
    assert shell.json("task", "show", "T-2")["status"] == "todo"
    shell.ok("task", "block", "T-2", "Which way?")
    assert shell.ok("task", "reopen", "T-1").endswith("still blocked; covey task reopen brings each back: T-2\n")
    assert shell.ok("task", "reopen", "T-2") == "Reopened T-2: Second\n"
    shell.ok("log", "verify")


def test_several_tasks_are_reopened_together_or_none(shell: Shell) -> None:
    for title in ("First", "Second", "Third"):
        shell.ok("task", "add", title)
    for task in ("T-1", "T-2"):
        shell.ok("task", "block", task, "Which way?")
    shell.ok("task", "claim", "T-3", "--as", "ada")
    shell.fails(5, "task", "reopen", "T-1", "T-3")
    assert shell.json("task", "show", "T-1")["status"] == "blocked"
    assert shell.ok("task", "reopen", "T-1", "T-2") == "Reopened T-1: First\nReopened T-2: Second\n"


def test_open_tasks_are_listed_first_page_by_page(shell: Shell) -> None:
    for number in range(1, 7):
        shell.ok("task", "add", f"Number {number}", "--priority", str(9 - number))
    for task in ("T-1", "T-3", "T-4"):
        shell.ok("task", "drop", task)

    def ids(*words: str) -> list[str]:
        return [line.split()[0] for line in shell.ok("task", "list", *words).splitlines()]

    assert ids() == ids("--all") == ["T-2", "T-5", "T-6", "T-1", "T-3", "T-4"]
    assert ids("--limit", "2") == ["T-2", "T-5", "..."]
    assert ids("--limit", "2", "--after", "T-5") == ["T-6", "T-1", "..."]
    assert ids("--limit", "2", "--after", "T-1") == ["T-3", "T-4", "..."]
    assert ids("--after", "T-3") == ["T-4"] and ids("--status", "dropped") == ["T-1", "T-3", "T-4"]
    assert [task["id"] for task in shell.json("task", "list")] == [f"T-{number}" for number in range(1, 7)]


def test_every_field_of_a_task_can_be_edited_and_cleared(shell: Shell) -> None:
    shell.ok("task", "add", "First")
    shell.ok("task", "add", "Second")
    shell.ok("task", "add", "Third")
    (shell.folder / "body.md").write_text("From a file\n")
    edited = shell.verb(
        "task.edit", "task", "edit", "T-3", "--title", "New", "--body-file", "body.md", "--kind", "report", "--status",
        "backlog", "--assignee", "ada", "--role", "quality", "--priority", "-5", "--needs", "T-1", "--needs-any", "T-2",
        "--scope", "src/**", "--scope", "new:docs/*", "--do-not-touch", "src/secret/**", "--overlap", "--done-when",
        "make test", "--budget", "2.5", "--note", "Look here",
    )  # fmt: skip
    wanted = {
        "title": "New", "body": "From a file\n", "kind": "report", "status": "backlog", "assignee": "ada",
        "role": "quality", "priority": -5, "needs": ["T-1", "T-2"], "needs_any": ["T-2"],
        "scope": ["src/**", "new:docs/*"], "do_not_touch": ["src/secret/**"], "overlap": True,
        "done_when": ["make test"], "budget": 2.5,
    }  # fmt: skip
    assert {name: edited[name] for name in wanted} == wanted
    assert edited["notes"][0]["text"] == "Look here"
    gone = ("assignee", "role", "needs", "needs_any", "scope", "do_not_touch", "done_when", "budget", "body")
    clears = [word for name in gone for word in ("--clear", name)]
    cleared = shell.json("task", "edit", "T-3", "--no-overlap", *clears)
    assert (cleared["assignee"], cleared["needs"], cleared["scope"], cleared["body"]) == (None, [], [], "")
    assert cleared["overlap"] is False
    assert shell.json("task", "edit", "T-3", "--body", "-", stdin="typed")["body"] == "typed"
    assert shell.json("task", "edit", "T-3", "--parent", "T-1")["parent"] == "T-1"
    assert shell.json("task", "edit", "T-3", "--clear", "parent")["parent"] is None
    assert "No change" in shell.fails(2, "task", "edit", "T-3")
    assert "both given and cleared" in shell.fails(2, "task", "edit", "T-3", "--role", "x", "--clear", "role")


def test_the_needs_of_a_task_are_shown_and_a_circle_is_printed(shell: Shell) -> None:
    shell.ok("task", "add", "First")
    shell.ok("task", "add", "Second", "--needs", "T-1")
    shell.ok("task", "add", "Part", "--parent", "T-2")
    assert [edge["id"] for edge in shell.verb("task.deps", "task", "deps", "T-2")["needs"]] == ["T-1"]
    assert "T-1" in shell.ok("task", "deps", "T-2")
    assert "T-1 > T-2 > T-1" in shell.fails(2, "task", "edit", "T-1", "--needs", "T-2")
    assert "has needs that are not done" in shell.fails(5, "task", "claim", "T-2")


def test_next_gives_tasks_in_order_and_then_nothing_with_exit_code_3(shell: Shell) -> None:
    shell.ok("task", "add", "Low")
    shell.ok("task", "add", "High", "--priority", "5")
    shell.ok("task", "add", "Later", "--status", "backlog")
    assert shell.verb("task.next", "task", "next", "--as", "ada")["title"] == "High"
    assert "Low" in shell.ok("task", "next", "--as", "bob")
    for words in (("task", "next", "--as", "ada"), ("task", "next", "--as", "ada", "--json")):
        done = shell.run(*words)
        assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


def test_the_board_is_listed_in_pages(shell: Shell) -> None:
    (shell.folder / "many.jsonl").write_text("".join(json.dumps({"title": f"Task {n}"}) + "\n" for n in range(1, 1203)))
    shell.ok("task", "import", "many.jsonl")
    assert [task["id"] for task in shell.json("task", "list", "--limit", "2")] == ["T-1", "T-2"]
    assert [task["id"] for task in shell.json("task", "list", "--limit", "2", "--after", "T-2")] == ["T-3", "T-4"]
    assert "--after T-200" in shell.ok("task", "list")
    every = shell.json("task", "list", "--all")
    assert [task["id"] for task in every] == [f"T-{n}" for n in range(1, 1203)]


def test_leases_are_taken_renewed_listed_and_given_back(shell: Shell) -> None:
    taken = shell.verb("lease.take", "lease", "take", "src/**", "port:3000", "--as", "ada", "--ttl", "15m")
    assert (taken["holder"], taken["ttl"]) == ("ada", 900)
    refusal = shell.fails(5, "lease", "take", "src/a.py", "--as", "bob")
    assert "ada holds" in refusal
    assert shell.verb("lease.renew", "lease", "renew", taken["id"], "--as", "ada")["state"] == "live"
    assert [lease["id"] for lease in shell.verb("lease.list", "lease", "list", "--session", "ada")] == [taken["id"]]
    assert "src/**" in shell.ok("lease", "list")
    assert shell.verb("lease.give", "lease", "give", taken["id"], "--as", "ada")["state"] == "given"
    assert shell.json("lease", "list") == []
    assert shell.json("lease", "take", "src/a.py", "--as", "bob", "--shared")["shared"] is True


def test_mail_is_sent_listed_read_and_acknowledged(shell: Shell) -> None:
    shell.ok("session", "new", "ada", "--role", "quality")
    sent = shell.verb("mail.send", "mail", "send", "role:quality", "Hello", "there", "--wants-ack", "--subject", "Hi")
    assert (sent["text"], sent["sender"]) == ("Hello there", "owner")
    assert [message["id"] for message in shell.verb("mail.inbox", "mail", "inbox", "--as", "ada")] == [sent["id"]]
    assert "wants an answer" in shell.ok("mail", "inbox", "--as", "ada")
    assert shell.verb("mail.read", "mail", "read", sent["id"], "--as", "ada")["read"]
    assert shell.json("mail", "inbox", "--as", "ada") == []
    assert shell.verb("mail.ack", "mail", "ack", sent["id"], "--as", "ada")["acked"]
    assert len(shell.json("mail", "inbox", "--as", "ada", "--all")) == 1
    assert shell.json("mail", "send", "owner", "-", "--as", "ada", stdin="From a pipe\n")["text"] == "From a pipe\n"
    assert "There is no session" in shell.fails(4, "mail", "send", "nobody", "Hello")


def test_sessions_are_made_listed_and_given_tokens(shell: Shell) -> None:
    assert shell.verb("session.new", "session", "new", "ada", "--role", "quality", "--wip", "2")["wip"] == 2
    assert [session["name"] for session in shell.verb("session.list", "session", "list")] == ["ada"]
    assert len(shell.verb("session.token", "session", "token", "ada")["token"]) > 30
    assert "already" in shell.fails(5, "session", "new", "ada")


def test_the_log_is_filtered_paged_and_told_in_sentences(shell: Shell) -> None:
    for number in range(3):
        shell.ok("task", "add", f"Task {number}")
    shell.ok("task", "claim", "T-2", "--as", "ada")
    events = shell.verb("log.list", "log")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event["subject"] for event in shell.json("log", "--kind", "task.added")] == ["T-1", "T-2", "T-3"]
    assert {event["kind"] for event in shell.json("log", "--kind", "task")} == {"task.added", "task.claimed"}
    assert {event["kind"] for event in shell.json("log", "--subject", "T-2")} == {"task.added", "task.claimed"}
    assert {event["actor"] for event in shell.json("log", "--actor", "owner", "--kind", "task")} == {"owner"}
    assert shell.json("log", "-n", "1") == events[-1:]
    assert shell.json("log", "--after", "1", "-n", "2") == events[1:3]
    assert shell.json("log", "--since", "1h") == events
    assert shell.json("log", "--since", "2999-01-01") == []
    assert shell.json("log", "--until", "2000-01-01T00:00:00Z") == []
    assert "ada claimed T-2 with fence 1" in shell.ok("log")
    assert "is not a time" in shell.fails(2, "log", "--since", "yesterday")


def test_status_shows_the_project_at_a_glance(shell: Shell) -> None:
    shell.ok("task", "add", "Parent")
    shell.ok("task", "add", "Child", "--parent", "T-1")
    shell.ok("task", "add", "Dependant", "--needs", "T-1")
    shell.ok("task", "claim", "T-2", "--as", "ada")
    shell.ok("lease", "take", "src/**", "--as", "ada")
    shell.ok("mail", "send", "owner", "Hello", "--as", "ada")
    said = shell.ok("status")
    lines = said.splitlines()
    assert lines[0].startswith("shop  no daemon, log at ")
    tree = [line for line in lines if "[ada]" in line or line.startswith("  T-")]
    assert tree[0].startswith("  T-1")
    assert tree[1].startswith("    T-2") and "[ada]" in tree[1]
    assert tree[2].endswith("needs T-1")
    assert "working" in said and "wrote to owner" in said and "src/**" in said
    assert "1 message not read" in said
    assert "Test: begin" in said
    assert shell.verb("status", "status")["counts"]["doing"] == 1


def test_status_of_much_fits_a_screen_and_says_what_needs_a_person(shell: Shell) -> None:
    (shell.folder / "many.jsonl").write_text("".join(json.dumps({"title": f"Task {n}"}) + "\n" for n in range(300)))
    shell.ok("task", "import", "many.jsonl")
    for number in range(1, 13):
        shell.ok("task", "claim", f"T-{number}", "--as", f"worker-{number}")
        shell.ok("lease", "take", f"src/{number}/**", "--as", f"worker-{number}")
    shell.ok("task", "block", "T-300", "Which way?")
    said = shell.ok("status")
    assert len(said.splitlines()) <= 40
    assert "needs-you: 1 blocked task; covey inbox shows more" in said
    assert "... and 292 more; covey task list shows them" in said and "more; covey session list shows them" in said
    assert shell.ok("status", "--all").count("  todo ") == 1 + 287


def test_a_misspelt_agent_is_guessed(shared: Shell) -> None:
    assert "Did you mean claude?" in shared.fails(4, "run", "--agent", "claudee", "One")


def test_a_line_break_or_a_tab_is_a_blank_where_all_stands_in_a_line() -> None:
    assert plain("one\r\ntwo\n\tthree\x07\r") == "one two  three\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("shape", ["plain", "json"])
def test_following_the_log_shows_what_happens(shell: Shell, shape: str) -> None:
    follower = subprocess.Popen(
        [sys.executable, "-m", "covey", "log", "--follow", *(["--json"] if shape == "json" else [])],
        cwd=shell.folder, env=shell.env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert follower.stdout is not None
    try:
        assert "began" in follower.stdout.readline() if shape == "plain" else True
        shell.ok("task", "add", "While you look")
        line = next(line for line in follower.stdout if "While you look" in line)
        if shape == "json":
            assert json.loads(line)["kind"] == "task.added"
    finally:
        follower.terminate()
        follower.wait(60)
        follower.stdout.close()


def test_control_characters_of_others_never_reach_the_terminal(shell: Shell) -> None:
    shell.ok("task", "add", "Plain", "--body", "tab\there")
    shell.ok("mail", "send", "owner", "line\nbreak")
    assert "\x1b" not in shell.ok("task", "show", "T-1") + shell.ok("mail", "inbox") + shell.ok("log") + shell.ok(
        "status"
    )
