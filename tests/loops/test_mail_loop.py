"""The ways on which mail reaches models, and what is taken for a proof that it did."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from covey.core.fleet.launches import Observation
from covey.core.fleet.run_state import RunState
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Called, Calls, Conversation, Failed, Result, Waits
from covey.core.fleet.signals import Said as Spoke
from covey.core.people.mail import Message, quoted
from covey.loops import mail_loop
from covey.loops.mail_loop import Said, Transcript, has_its_prompt
from tests.worlds.projects import GOOD, SHELL, Line, kill
from tests.worlds.serving import wait_until

QUOTE = quoted(Message(id="mail-7", ordinal=7, sender="bob", to="ada"), "hello")
TOLD = {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [QUOTE]}}
ANSWER = {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": "I see."}]}}
ECHO = {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": QUOTE}]}}


# Transcripts


def lines(*told: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in told)


def test_a_message_has_arrived_when_the_model_answers_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    transcript = Transcript(str(path))
    assert transcript.look() == [], "it is not there yet"
    path.write_bytes(lines(ECHO, TOLD))
    assert transcript.look() == [], "the model has not seen it, whatever it said itself"
    with path.open("ab") as file:
        file.write(lines(ANSWER)[:20])
        file.flush()
        assert transcript.look() == []
        file.write(lines(ANSWER)[20:])
    assert transcript.look() == [QUOTE]
    assert transcript.look() == []


def test_a_large_transcript_is_read_in_parts_and_from_near_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail_loop, "LOOK_BYTES", 1000)
    path = tmp_path / "talk.jsonl"
    path.write_bytes(lines(*[ANSWER] * 100, TOLD, ANSWER))
    whole, end = Transcript(str(path)), Transcript(str(path))
    looks = 0
    while whole.look() == []:
        looks += 1
    assert looks > 8
    end.pass_over(near=1000)
    assert end.look() == [QUOTE]
    end.pass_over()
    assert end.look() == []


def test_a_transcript_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(lines(*[ANSWER] * 9))
    transcript = Transcript(str(path))
    transcript.look()
    path.write_bytes(lines(TOLD, ANSWER))
    assert transcript.look() == [QUOTE]


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "name", "relative", "nul", "missing"])
def test_only_a_plain_file_is_taken_for_a_transcript(tmp_path: Path, kind: str) -> None:
    good = tmp_path / "good.jsonl"
    good.write_bytes(lines(TOLD, ANSWER))
    path = tmp_path / f"{kind}.jsonl"
    if kind == "link":
        path.symlink_to(good)
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    named = {
        "name": str(good.rename(tmp_path / "good.txt")) if kind == "name" else "",
        "relative": os.path.relpath(good),
        "nul": f"{good}\0.jsonl",
    }
    assert Transcript(named.get(kind, str(path))).look() == []


def test_what_the_model_does_not_answer_is_not_kept_without_end(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(lines(*[TOLD] * 500))
    transcript = Transcript(str(path))
    assert transcript.look() == []
    assert len(transcript.take_all()) <= mail_loop.MAX_UNANSWERED and transcript.take_all() == []


# Prompts


def heard(*signals: object) -> RunState:
    found = RunState()
    for signal in signals:
        found.take(signal, 1.0)  # type: ignore[arg-type]
    return found


RUN = Run(id="run-1", ordinal=1, session="ada", task="T-1", fence=1, agent="claude")
ALIVE = Observation(known=True, alive=True)


@pytest.mark.parametrize("signal", [Calls("c", "shell", "ls"), Result("Done.")])
def test_a_model_that_does_something_has_its_prompt(signal: object) -> None:
    assert has_its_prompt(RUN, heard(Conversation("x"), Waits(), signal), ALIVE, speaks=True)


@pytest.mark.parametrize("signals", [(), (Conversation("x"), Waits()), (Spoke("Error: no key"),), (Failed("no key"),)])
def test_a_program_that_only_begins_or_fails_shows_nothing_of_its_prompt(signals: tuple[object, ...]) -> None:
    ended = Observation(known=True, alive=False, code=1, size=100)
    assert not has_its_prompt(RUN, heard(*signals), ended, speaks=True)


@pytest.mark.parametrize(
    ("seen", "has"),
    [
        (ALIVE, False),
        (Observation(known=True, alive=True, size=1), True),
        (Observation(known=True, alive=False, code=0), True),
        (Observation(known=True, alive=False, code=3), True),
        (Observation(known=True, alive=False, code=-9), False),
        (Observation(known=True, alive=False, code=None), False),
    ],
    ids=["silent", "printed", "ended", "failed", "killed", "lost"],
)
def test_a_program_without_words_has_its_prompt_when_it(seen: Observation, has: bool) -> None:
    assert has_its_prompt(RUN, RunState(), seen, speaks=False) is has


def telling_its_prompt(mark: Callable[[str], Path]) -> str:
    """Return a program that shows its prompt, whole from the first moment, and waits until it may go on."""
    show = f"cp $1 {mark('half')} && mv {mark('half')} {mark('prompt')}-$COVEY_RUN"
    return f"{show}\nwhile [ ! -e {mark('go')} ]; do sleep 0.05; done; echo seen\n"


def test_a_run_that_dies_before_it_answers_carries_its_mail_again(made: Callable[..., Line]) -> None:
    agent = '[agents.sh]\ncommand = ["sh", "{body_file}", "{prompt_file}"]\n'
    line = made('[sessions]\nagent = "sh"\n[watch]\nbackoff = 0.1\n', agent, GOOD)
    line.up()
    body = telling_its_prompt(line.mark)
    line.ok("session", "new", "ada", "--agent", "sh")
    line.ok("mail", "send", "ada", "Mind the gap")
    task = line.json("task", "add", "Look", "--kind", "report", "--assignee", "ada", "--body", body)["id"]
    line.ok("session", "start", "ada")
    wait_until(lambda: len(list(line.outside.glob("prompt-*"))) == 1, "the first prompt")
    assert line.events("mail.delivered") == []
    kill(line.agents().values())
    wait_until(lambda: len(list(line.outside.glob("prompt-*"))) == 2, "the second prompt")
    for prompt in line.outside.glob("prompt-*"):
        assert "] From owner, the person in charge:\n> Mind the gap" in prompt.read_text()
    assert line.json("mail", "inbox", "--as", "ada") != []
    line.mark("go").touch()
    line.wait_for(task, "done")
    (note,) = line.events("mail.delivered")
    assert note["data"]["how"] == "prompt"


def test_a_run_that_dies_before_it_goes_on_is_answered_again(made: Callable[..., Line]) -> None:
    agent = '[agents.sh]\ncommand = ["sh", "{body_file}", "{prompt_file}"]\n'
    line = made('[sessions]\nagent = "sh"\n[watch]\nbackoff = 0.1\n', agent, GOOD)
    line.up()
    body = telling_its_prompt(line.mark)
    line.ok("session", "new", "ada", "--agent", "sh")
    task = line.json("task", "add", "Look", "--kind", "report", "--assignee", "ada", "--body", body)["id"]
    line.ok("session", "start", "ada")

    def prompts() -> list[str]:
        return [path.read_text() for path in line.outside.glob("prompt-*")]

    wait_until(lambda: len(prompts()) == 1, "the first prompt")
    with line.client() as client:
        question = client.post("/api/questions", {"session": "ada", "text": "Which\r\ncolour?"})["id"]
    line.ok("answer", question, "Green,\nof course")
    for number in (2, 3):
        kill(line.agents().values())
        wait_until(lambda number=number: len(prompts()) == number, "the next prompt")  # type: ignore[misc]
    assert sum("  > Green,\n  > of course" in prompt for prompt in prompts()) == 2
    assert line.events("question.told") == []
    line.mark("go").touch()
    line.wait_for(task, "done")
    assert [event["subject"] for event in line.events("question.told")] == [question]


# Saying


CALL = Calls("c", "shell", "ls")


@pytest.mark.parametrize(
    "since",
    [
        (),
        (Failed("529 overloaded"),),
        (Called("a"), Waits()),
        (Waits(), Failed("529 overloaded")),
        (Spoke("I go on."), Result("Done.")),
        (CALL, Called("c")),
    ],
    ids=["nothing", "failed", "asked", "asked in vain", "ended", "worked on"],
)
def test_who_was_told_something_has_not_heard_it_when_it(since: tuple[object, ...]) -> None:
    known = heard(Conversation("x"), Waits(), Calls("a", "shell", "ls"))
    said = Said(known.asked, 0)
    for each in since:
        known.take(each, 2.0)  # type: ignore[arg-type]
        assert not said.is_heard(RUN, known, ALIVE, speaks=True)


@pytest.mark.parametrize("since", [CALL, Result("Done.")])
def test_who_asked_its_model_and_got_an_answer_has_heard_what_it_was_told(since: object) -> None:
    known = heard(Conversation("x"), Waits(), Calls("a", "shell", "ls"))
    said = Said(known.asked, 0)
    for each in (Called("a"), Waits()):
        known.take(each, 2.0)
    assert not said.is_heard(RUN, known, ALIVE, speaks=True)
    known.take(since, 3.0)  # type: ignore[arg-type]
    assert said.is_heard(RUN, known, ALIVE, speaks=True)


@pytest.mark.parametrize(
    ("seen", "has"),
    [
        (Observation(known=True, alive=True, size=100), False),
        (Observation(known=True, alive=True, size=101), True),
        (Observation(known=True, alive=False, code=0, size=100), True),
        (Observation(known=True, alive=False, code=-9, size=100), False),
    ],
    ids=["stays silent", "prints", "ends", "is killed"],
)
def test_a_program_without_words_has_heard_what_it_was_told_when_it(seen: Observation, has: bool) -> None:
    assert Said(0, 100).is_heard(RUN, RunState(), seen, speaks=False) is has


# Waking


def test_a_session_without_work_is_woken_by_a_run_of_its_own(made: Callable[..., Line]) -> None:
    show = ["sh", "-c", 'cat "$0" > $OUTSIDE/prompt; echo done', "{prompt_file}"]
    line = made(f'[agents.sh]\ncommand = {json.dumps(show)}\nenv = ["OUTSIDE"]\n', GOOD)
    line.up()
    line.ok("session", "new", "ada", "--agent", "sh")
    assert "ada is stopped" in line.ok("mail", "send", "ada", "Too soon", "--wake")
    line.ok("session", "start", "ada")
    wait_until(lambda: len(line.events("mail.delivered")) == 1, "the first message")
    assert "ada is" not in line.ok("mail", "send", "ada", "Come quick", "--wake")
    wait_until(lambda: len(line.events("mail.delivered")) == 2, "the second message")
    assert "> Come quick" in line.mark("prompt").read_text()
    wait_until(lambda: sorted(line.statuses().values()) == ["done", "done"], "both reports")
    first, second = (event["subject"] for event in line.events("mail.delivered"))
    assert "ada" in line.ok("mail", "show", second) and "delivered" in line.ok("mail", "show", first)


def test_who_listens_is_told_at_once_and_once(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD)
    line.up()
    heard = line.mark("heard")
    listen = (
        f'while read -r words; do echo "$words" >> {heard}; case "$words" in *bye*) break;; esac; done; echo Heard.'
    )
    with line.client() as client:
        task = client.post("/api/board", {"title": "Listen", "body": f"touch {heard}\n{listen}\n", "kind": "report"})
    line.ok("session", "new", "ada", "--agent", "sh")
    line.ok("session", "start", "ada")
    wait_until(heard.exists, "the agent at work")
    line.ok("mail", "send", "ada", "later is soon enough")
    sent = line.json("mail", "send", "ada", "now", "bye", "--wake")["id"]
    line.wait_for(task["id"], "done")
    told = line.marks("heard")
    assert [each for each in told if each.startswith(">")] == ["> later is soon enough", "> now bye"]
    assert sum(sent in each for each in told) == 1
    assert [event["data"]["how"] for event in line.events("mail.delivered")] == ["said", "said"]
