"""opencode: what its events mean, how it is started, and the real one at work in a worktree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from covey.agents.opencode import CONTENT, agent
from covey.core.fleet.signals import (
    Called,
    Calls,
    Compacts,
    Conversation,
    Failed,
    Result,
    Said,
    Signal,
    Spent,
    Trouble,
    Usage,
    Waits,
)
from covey.core.people.permits import PermissionLevel
from tests.agents import recordings
from tests.agents.linked import assignment, linked
from tests.agents.recordings import ends, heard, put_off
from tests.model.script import Script, Shell, Step, Write
from tests.model.server import ModelServer


def test_a_run_is_told_from_its_first_event_to_its_result() -> None:
    usage, begins = Usage(1000, 50), [Conversation("ses_1"), Waits()]
    assert [signal for signal in heard(agent, "work") if not isinstance(signal, Spent)] == [
        *begins,
        Said("I add a roof."),
        Calls("call_1", "edit", "roof.txt #9cb47851bd"),
        Called("call_1"),
        Waits(),
        Waits(),
        *begins,
        Calls("call_2", "shell", "git add -A && git commit -q -m 'Add a roof'"),
        Called("call_2"),
        Waits(),
        Waits(),
        *begins,
        Calls("call_3", "shell", "touch elsewhere"),
        Called("call_3", failed=True),
        Waits(),
        Waits(),
        *begins,
        Said("The roof is on."),
        Result(""),
    ]
    spent = [signal for signal in heard(agent, "work") if isinstance(signal, Spent)]
    assert [each.usage for each in spent] == [usage] * 4
    assert len({each.call for each in spent}) == 4 and {each.cost for each in spent} == {None}


def test_a_step_says_what_it_cost() -> None:
    tokens = {"input": 7, "output": 2, "reasoning": 3, "cache": {"read": 11, "write": 13}}
    part = {"id": "prt_1", "reason": "tool-calls", "tokens": tokens, "cost": 0.25}
    (spent, _) = agent.read(json.dumps({"type": "step_finish", "part": part}))
    assert spent == Spent("prt_1", Usage(7, 5, 11, 13), cost=0.25)


def test_a_key_that_is_wrong_ends_it() -> None:
    assert ends(heard(agent, "key")) == [Failed("Incorrect API key provided: dummy.", Trouble.KEY)]


def test_a_context_that_is_too_long_is_made_shorter_and_work_goes_on() -> None:
    signals = heard(agent, "context")
    assert signals[0] == Compacts() and signals[-1] == Result("")
    assert not any(isinstance(signal, Failed) for signal in signals)


@pytest.mark.parametrize(("name", "trouble"), [("limit", Trouble.LIMIT), ("refused", Trouble.CONNECTION)])
def test_tries_that_are_repeated_are_known_by_its_log_alone(name: str, trouble: Trouble) -> None:
    signals = heard(agent, name)
    assert ends(signals) == []
    assert {limited.trouble for limited in put_off(signals)} == {trouble}


def test_a_step_that_was_cut_off_is_no_result() -> None:
    (_, end) = agent.read(json.dumps({"type": "step_finish", "part": {"id": "prt_1", "reason": "length"}}))
    assert isinstance(end, Failed)


def test_a_conversation_that_is_gone_is_known_by_the_only_line_there_is() -> None:
    (failed,) = agent.read("\x1b[91m\x1b[1mError: \x1b[0mSession not found")
    assert isinstance(failed, Failed) and failed.trouble is Trouble.CORRUPT


@given(line=recordings.lines("opencode"))
def test_any_line_is_read_and_always_the_same(line: str) -> None:
    signals = agent.read(line)
    assert signals == agent.read(line)
    assert all(isinstance(signal, Signal) for signal in signals)
    assert recordings.can_be_stored(signals)


def test_it_reads_a_prompt_of_any_size() -> None:
    launch = agent.launch(assignment(prompt="x" * 300_000, model="a/b", arguments=("--thinking",)))
    assert launch.stdin == "x" * 300_000 and not launch.apart
    assert launch.argv[:4] == ("opencode", "run", "--format", "json")
    assert launch.argv[launch.argv.index("--model") + 1] == "a/b" and launch.argv[-1] == "--thinking"


def test_a_conversation_is_taken_up_again_if_its_name_is_one() -> None:
    argv = agent.launch(assignment(conversation="ses_1")).argv
    assert argv[argv.index("--session") + 1] == "ses_1"
    assert "--session" not in agent.launch(assignment(conversation="--auto")).argv


def test_each_level_is_said_in_rights() -> None:
    def rights(level: PermissionLevel) -> dict[str, object]:
        launch = agent.launch(assignment(permissions=level, commands=("make test",)))
        found: dict[str, object] = json.loads(launch.env[CONTENT])["permission"]
        return found

    assert (
        rights(PermissionLevel.FULL)["bash"] == "allow"
        and rights(PermissionLevel.FULL)["external_directory"] == "allow"
    )
    assert rights(PermissionLevel.ASK)["bash"] == {"*": "deny"} and rights(PermissionLevel.ASK)["edit"] == "deny"
    edits = rights(PermissionLevel.EDITS)
    assert edits["edit"] == "allow" and edits["external_directory"] == "deny"
    bash = edits["bash"]
    assert isinstance(bash, dict) and next(iter(bash)) == "*" and bash["*"] == "deny"
    assert {bash[name] for name in ("git *", "covey *", "make test", "make test *")} == {"allow"}


def test_what_the_user_says_in_the_same_place_stays() -> None:
    own = {"theme": "dark", "permission": {"skill": "deny", "edit": "deny"}}
    said = json.loads(agent.launch(assignment(env={CONTENT: json.dumps(own)})).env[CONTENT])
    assert said["theme"] == "dark" and said["permission"]["skill"] == "deny" and said["permission"]["edit"] == "allow"


FINE = (
    "git commit -q --allow-empty -m 'Map a -> b'",
    'git commit -q --allow-empty -m "Route <b> -> /api, -> /b" 2>&1',
    "git commit -q --allow-empty -m \"$(cat <<'EOF'\nLead -> /home\nEOF\n)\"",
    "make test > /dev/null",
    "make test >/dev/null 2>&1",
    "git log --format='%h => %s' 2>/dev/null",
    "echo x > ./in.txt",
)
ASTRAY = (
    "echo x 2>/dev/null >{out}",
    "echo x >{out} >/dev/null 2>&1",
    "echo x >{out}",
    'echo x >> "{out}"',
    "echo x >|{out}",
    "echo x >\t{out}",
    "echo x > $HOME/out",
    "echo x > ~/out",
    "echo x > sub/../../out",
    "git commit -q --allow-empty -m 'x' > '{out}'",
)


@pytest.mark.soak
def test_the_real_one_writes_out_of_its_worktree_by_no_redirection_and_nowhere_by_any(tmp_path: Path) -> None:
    with ModelServer() as model:
        commands = [*FINE, *(command.format(out=tmp_path / "out") for command in ASTRAY)]
        model.add("lines", Script((*(Step(do=(Shell(command),)) for command in commands), Step(text="Done."))))
        place = linked(tmp_path, model.url("lines"))
        (place.worktree / "Makefile").write_text("test:\n\t@echo tested\n")
        done = place.done(agent, place.work(agent, "Do that.", commands=("make test",)))
        refused = [signal.failed for signal in done.signals if isinstance(signal, Called)]
        assert dict(zip(commands, refused, strict=True)) == {
            command: number >= len(FINE) for number, command in enumerate(commands)
        }
        assert not list(tmp_path.rglob("out")) and (place.worktree / "in.txt").exists()


ROOF = Script(
    (
        Step(text="I add a roof.", do=(Write("roof.txt", "red\n"),)),
        Step(do=(Shell("git add -A && git commit -q -m 'Add a roof'"),)),
        Step(do=(Shell("touch by-touch.txt"),)),
        Step(do=(Shell("git status; touch by-chain.txt"),)),
        Step(do=(Shell("git log > ../by-redirection.txt"),)),
        Step(do=(Shell("git log 2>/dev/null | head -1"),)),
        Step(text="The roof is on."),
        Step(text="It still is."),
    )
)


@pytest.mark.soak
def test_the_real_one_edits_commits_and_goes_on_in_the_same_conversation(tmp_path: Path) -> None:
    with ModelServer() as model:
        model.add("roof", ROOF)
        place = linked(tmp_path, model.url("roof"))
        first = place.done(agent, place.work(agent, "Add a roof."))
        assert first.code == 0, first.complaints
        assert place.git("log", "--format=%s by %cn", "main..") == "Add a roof by ada", first.output
        refused = [signal.failed for signal in first.signals if isinstance(signal, Called)]
        assert refused == [False, False, True, True, True, False], first.output
        assert place.git("status", "--porcelain") == ""
        assert not (place.worktree.parent / "by-redirection.txt").exists()
        assert ends(first.signals) == [Result("")]
        conversation = next(signal for signal in first.signals if isinstance(signal, Conversation))

        again = place.done(agent, place.work(agent, "Is it on?", conversation=conversation.id))
        assert conversation in again.signals and Said("It still is.") in again.signals
        spent = [signal for done in (first, again) for signal in done.signals if isinstance(signal, Spent)]
        turns = model.turns("roof")
        assert sum(each.usage.input for each in spent) == sum(turn.usage.input for turn in turns)
