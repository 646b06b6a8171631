"""Codex: what its events mean, how it is started, and the real one at work in a worktree."""

from __future__ import annotations

import socket
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given

from covey.agents.codex.codex import Codex, agent
from covey.core.fleet.signals import (
    Called,
    Calls,
    Conversation,
    Failed,
    Limited,
    Result,
    Said,
    Signal,
    Total,
    Trouble,
    Usage,
    Waits,
)
from covey.core.people.permits import PermissionLevel
from tests.agents import recordings
from tests.agents.linked import assignment, linked
from tests.agents.recordings import ends, heard, put_off
from tests.model.script import ALWAYS, Fail, Script, Shell, Step, Write
from tests.model.server import ModelServer

NOW = datetime.fromisoformat("2026-11-15T14:17")
THREAD = "01900000-0000-7000-8000-000000000001"


def test_a_turn_is_told_from_its_first_event_to_its_result() -> None:
    assert heard(agent, "work") == [
        Conversation(THREAD),
        Waits(),
        Said("I add the roof."),
        Calls("item_1", "edit", "/home/ada/shed/roof.txt"),
        Called("item_1"),
        Waits(),
        Calls("item_2", "shell", "git add -A && git commit -q -m 'Add a roof'"),
        Called("item_2"),
        Waits(),
        Calls("item_3", "shell", "git show missing"),
        Called("item_3", failed=True),
        Waits(),
        Said("The roof is on."),
        Total(Usage(4000, 200), whole=True),
        Result(""),
    ]


def test_what_a_conversation_cost_counts_from_its_beginning() -> None:
    totals = [signal for signal in heard(agent, "resumed") if isinstance(signal, Total)]
    assert totals == [Total(Usage(5000, 250), whole=True)]  # 4,000 and 200 of them in the run before
    line = '{"type": "turn.completed", "usage": {"input_tokens": 9, "cached_input_tokens": 5, "output_tokens": 2}}'
    assert agent.read(line)[0] == Total(Usage(4, 2, cache_read=5), whole=True)


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("limit", Trouble.LIMIT),
        ("limit-again", Trouble.LIMIT),
        ("limit-in-stream", Trouble.LIMIT),
        ("plan", Trouble.LIMIT),
        ("plan-today", Trouble.LIMIT),
        ("plan-later", Trouble.LIMIT),
        ("credit", Trouble.CREDIT),
        ("overload-500", Trouble.OVERLOAD),
        ("overload-503", Trouble.OVERLOAD),
        ("overload-529", Trouble.OVERLOAD),
        ("key", Trouble.KEY),
        ("context", Trouble.CONTEXT),
        ("context-in-stream", Trouble.CONTEXT),
        ("cut", Trouble.CONNECTION),
        ("hang", Trouble.CONNECTION),
        ("bad-request", Trouble.OTHER),
    ],
)
def test_each_failure_ends_once_and_is_known_for_what_it_is(name: str, trouble: Trouble) -> None:
    signals = heard(agent, name)
    assert [type(end) for end in ends(signals)] == [Failed]
    (failed,) = ends(signals)
    assert isinstance(failed, Failed)
    assert failed.trouble is trouble
    assert all(limited.trouble is trouble for limited in put_off(signals))


def test_a_provider_that_cannot_be_reached_is_waited_for_without_end() -> None:
    signals = heard(agent, "refused")
    assert ends(signals) == []
    assert {limited.trouble for limited in put_off(signals)} == {Trouble.CONNECTION}


def test_a_failure_is_told_in_words_where_the_provider_had_some() -> None:
    (failed,) = ends(heard(agent, "context"))
    assert isinstance(failed, Failed)
    assert failed.what.startswith("Your input exceeds the context window")


def test_tries_that_are_repeated_say_when_if_that_was_named() -> None:
    assert [limited.again_in for limited in put_off(heard(agent, "limit-in-stream"))] == [4.0, 4.0]
    assert [limited.again_in for limited in put_off(heard(agent, "limit-again"))] == [None, None]


def test_a_reset_is_named_by_its_time_and_on_another_day_by_its_day() -> None:
    then = Codex(clock=lambda: NOW)
    (today,), (later,), (never,) = (ends(heard(then, name)) for name in ("plan-today", "plan-later", "plan"))
    assert isinstance(today, Failed) and isinstance(later, Failed) and isinstance(never, Failed)
    assert today.until == datetime.fromisoformat("2026-11-15T16:17").timestamp()
    assert later.until == datetime.fromisoformat("2026-11-18T14:17").timestamp()
    assert never.until is None


def test_a_conversation_that_is_gone_is_known_by_the_only_line_there_is() -> None:
    line = f"Error: thread/resume: thread/resume failed: no rollout found for thread id {THREAD} (code -32600)"
    assert agent.read(line) == [Failed(line, Trouble.CORRUPT)]


@given(line=recordings.lines("codex"))
def test_any_line_is_read_and_always_the_same(line: str) -> None:
    then = Codex(clock=lambda: NOW)
    signals = then.read(line)
    assert signals == then.read(line)
    assert all(isinstance(signal, Signal) for signal in signals)
    assert recordings.can_be_stored(signals)


def test_it_reads_a_prompt_of_any_size_and_its_stream_stays_clean() -> None:
    prompt = "x" * 300_000
    launch = agent.launch(assignment(prompt=prompt))
    assert launch.argv[:3] == ("codex", "exec", "--json") and launch.argv[-1] == "-"
    assert launch.stdin == prompt and launch.apart and not launch.typed and not launch.terminal
    assert launch.env == assignment().env and launch.cwd == assignment().worktree
    assert launch.files == {}


def test_program_model_and_arguments_come_from_the_settings() -> None:
    launch = agent.launch(assignment(program="/opt/codex", model="gpt-x", arguments=("-c", "a=1")))
    assert launch.argv[:5] == ("/opt/codex", "exec", "--json", "--model", "gpt-x")
    assert launch.argv[-3:] == ("-c", "a=1", "-")


def test_a_conversation_is_taken_up_again_if_its_name_is_one() -> None:
    assert agent.launch(assignment(conversation=THREAD, arguments=("-c", "a=1"))).argv[-5:] == (
        "-c", "a=1", "resume", THREAD, "-",
    )  # fmt: skip
    assert "resume" not in agent.launch(assignment(conversation="--last")).argv


@pytest.mark.parametrize(
    ("level", "mode"), [(PermissionLevel.ASK, "read-only"), (PermissionLevel.FULL, "danger-full-access")]
)
def test_to_ask_it_may_only_read_and_to_do_all_it_has_no_sandbox(level: PermissionLevel, mode: str) -> None:
    argv = agent.launch(assignment(permissions=level)).argv
    assert argv[argv.index("--sandbox") + 1] == mode
    assert 'approval_policy="never"' in argv
    assert not any("permissions" in word for word in argv)


def test_to_edit_it_may_write_what_a_commit_needs_and_no_more_of_the_shared_folder() -> None:
    argv = agent.launch(assignment(permissions=PermissionLevel.EDITS)).argv
    (table,) = (word for word in argv if word.startswith("permissions.covey.filesystem="))
    for path, right in [
        ("/home/ada/shed/.git", "write"),
        ("/home/ada/shed/.git/hooks", "read"),
        ("/home/ada/shed/.git/config", "read"),
        ("/home/ada/shed/.git/covey", "read"),
        ("/home/ada/shed/.git/worktrees", "read"),
        ("/home/ada/shed/.git/worktrees/ada", "write"),
        ("/home/ada/.cache", "write"),
    ]:
        assert f'"{path}"="{right}"' in table
    assert "--sandbox" not in argv
    assert 'default_permissions="covey"' in argv


def test_what_is_coveys_own_is_closed_to_it_but_for_its_own_place_in_there() -> None:
    env = {"HOME": "/home/ada", "TMUX_TMPDIR": "/tmp/covey-7/own"}
    argv = agent.launch(assignment(permissions=PermissionLevel.EDITS, private=("/tmp/covey-7",), env=env)).argv
    (table,) = (word for word in argv if word.startswith("permissions.covey.filesystem="))
    assert table.endswith('"/tmp/covey-7"="none","/tmp/covey-7/own"="write"}')


def call(private: Path) -> str:
    """Return a command that calls who listens there, and then uses its own place."""
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect('{private}/socket')"
    return f'python3 -c "{connect}" && echo reach""ed || echo refus""ed; touch {private}/own/mine'


def test_the_real_one_reaches_no_socket_of_coveys(tmp_path: Path) -> None:
    with ModelServer() as model, socket.socket(socket.AF_UNIX) as listening:
        private = tmp_path / "private"
        (private / "own").mkdir(parents=True)
        listening.bind(str(private / "socket"))
        listening.listen()
        model.add("call", Script((Step(do=(Shell(call(private)),)), Step(text="Done."))))
        place = linked(tmp_path, model.url("call"))
        env = {**place.env, "TMUX_TMPDIR": str(private / "own")}
        done = place.done(agent, place.work(agent, "Call.", env=env, private=(str(private),)))
        assert done.code == 0, done.complaints
        assert "refused" in done.output and "reached" not in done.output, done.output
        assert (private / "own" / "mine").exists()


def test_it_neither_listens_nor_asks_while_it_works() -> None:
    assert agent.say("Faster!") is None


ROOF = Script(
    (
        Step(text="I add a roof.", do=(Write("roof.txt", "red\n"),)),
        Step(do=(Shell("git add -A && git commit -q -m 'Add a roof' && git rebase -q main && echo well"),)),
        Step(do=(Shell('touch "$(git rev-parse --git-common-dir)/hooks/pre-commit"; git config user.name eve'),)),
        Step(text="The roof is on."),
        Step(text="It still is."),
    )
)


def test_the_real_one_edits_commits_and_goes_on_in_the_same_conversation(tmp_path: Path) -> None:
    with ModelServer() as model:
        model.add("roof", ROOF)
        place = linked(tmp_path, model.url("roof"))
        config = (place.common / "config").read_bytes()
        first = place.done(agent, place.work(agent, "Add a roof."))
        assert first.code == 0, first.complaints
        assert place.git("log", "--format=%s by %cn", "main..") == "Add a roof by ada", first.output
        assert place.git("status", "--porcelain") == ""
        # What all worktrees share is not its to change, though its user's own settings allow everything.
        assert "Read-only file system" in str(model.requests[-1].body), first.output
        assert not (place.common / "hooks" / "pre-commit").exists()
        assert (place.common / "config").read_bytes() == config
        (conversation,) = (signal for signal in first.signals if isinstance(signal, Conversation))
        assert ends(first.signals) == [Result("")]

        again = place.done(agent, place.work(agent, "Is it still on?", conversation=conversation.id))
        assert conversation in again.signals and Said("It still is.") in again.signals
        charged = model.charged(script="roof").usage
        (total,) = (signal for signal in again.signals if isinstance(signal, Total))
        assert (total.usage.input, total.usage.output) == (charged.input, charged.output)


def test_the_real_one_writes_nothing_where_it_should_ask(tmp_path: Path) -> None:
    with ModelServer() as model:
        model.add("roof", ROOF)
        place = linked(tmp_path, model.url("roof"))
        done = place.done(agent, place.work(agent, "Add a roof.", permissions=PermissionLevel.ASK))
        assert done.code == 0, done.complaints
        assert place.git("rev-list", "--count", "main..") == "0"
        assert place.git("status", "--porcelain") == ""


def test_the_real_one_says_that_its_provider_is_overloaded(tmp_path: Path) -> None:
    with ModelServer() as model:
        storm = Fail(status=529, type="overloaded_error", message="Overloaded", times=ALWAYS)
        model.add("storm", [Step(text="never", troubles=(storm,))])
        place = linked(tmp_path, model.url("storm"))
        done = place.done(agent, place.work(agent, "Add a roof."))
        assert [end.trouble for end in ends(done.signals) if isinstance(end, Failed)] == [Trouble.OVERLOAD]
        assert all(isinstance(limited, Limited) for limited in put_off(done.signals))
