"""Gemini CLI: what its events mean, how it is started, and the real one at work in a worktree."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given

from covey.agents.gemini import agent
from covey.core.costs.spending import Bill, whole
from covey.core.fleet.run_state import RunState
from covey.core.fleet.signals import (
    Called,
    Calls,
    Conversation,
    Failed,
    Result,
    Said,
    Signal,
    Spent,
    Total,
    Trouble,
    Usage,
    Waits,
)
from covey.core.people.permits import PermissionLevel
from tests.agents import recordings
from tests.agents.linked import assignment, linked
from tests.agents.recordings import ends, heard, put_off
from tests.model.environment import GEMINI_MODEL
from tests.model.script import Script, Shell, Step, Write
from tests.model.server import ModelServer

SESSION = "00000000-0000-4000-8000-000000000001"


def test_a_run_is_told_from_its_first_event_to_its_result() -> None:
    write, commit = "write_file__write_file_1_0", "run_shell_command__run_shell_command_1_0"
    assert heard(agent, "work") == [
        Conversation(SESSION),
        Waits(),
        Said("I add a roof.", piece=True),
        Calls(write, "edit", "roof.txt #90dcf979e8"),
        Called(write),
        Waits(),
        Calls(commit, "shell", "git add -A && git commit -q -m 'Add a roof'"),
        Called(commit),
        Waits(),
        Calls(commit, "shell", "touch /home/ada/x"),
        Called(commit, failed=True),
        Waits(),
        Said("The roof is on.", piece=True),
        Total(Usage(4000, 200), "fake"),
        Result(""),
    ]


def test_a_call_is_counted_once_though_another_model_answered_than_was_asked() -> None:
    bill = Bill()
    live = [signal for line in recordings.recorded("gemini", "chats/alias") for signal in agent.count(line)]
    told = [signal for signal in [*live, *heard(agent, "alias")] if isinstance(signal, Spent | Total)]
    assert {signal.model for signal in told} == {GEMINI_MODEL, "other-name"}
    for signal in told:
        bill.take(signal)
    used = bill.by_model({}, {}, GEMINI_MODEL)
    assert used[GEMINI_MODEL].usage == whole(used.values()).usage == Usage(2200, 110, 800)


@pytest.mark.parametrize(
    ("name", "trouble"), [("key", Trouble.KEY), ("key-401", Trouble.KEY), ("context", Trouble.CONTEXT)]
)
def test_each_failure_ends_once_and_is_known_for_what_it_is(name: str, trouble: Trouble) -> None:
    (failed,) = ends(heard(agent, name))
    assert isinstance(failed, Failed) and failed.trouble is trouble


@pytest.mark.parametrize(
    ("name", "trouble"),
    [("limit", Trouble.LIMIT), ("overload-500", Trouble.OVERLOAD), ("overload-503", Trouble.OVERLOAD)],
)
def test_tries_that_are_repeated_are_known_by_its_complaints_alone(name: str, trouble: Trouble) -> None:
    signals = heard(agent, name)
    assert ends(signals) == []
    assert {limited.trouble for limited in put_off(signals)} == {trouble}


def test_a_quota_of_requests_comes_back() -> None:
    what = '{"error":{"code":429,"message":"You exceeded your current quota, check your plan and billing details."}}'
    line = {"type": "result", "status": "error", "error": {"message": f"[API Error: {what}]"}}
    (failed,) = agent.read(json.dumps(line))
    assert isinstance(failed, Failed) and failed.trouble is Trouble.LIMIT


def test_a_conversation_that_is_gone_is_known_by_the_only_line_there_is() -> None:
    (failed,) = agent.read(f'Error resuming session: Invalid session identifier "{SESSION}".')
    assert isinstance(failed, Failed) and failed.trouble is Trouble.CORRUPT


def test_a_message_comes_in_pieces_and_is_put_together_as_it_was() -> None:
    known = RunState()
    for words in ("The", " roof\n", "\n", " is on."):
        line = {"type": "message", "role": "assistant", "content": words, "delta": True}
        for signal in agent.read(json.dumps(line)):
            known.take(signal, 1.0)
    for signal in agent.read('{"type": "result", "status": "success"}'):
        known.take(signal, 1.0)
    assert known.result == "The roof\n\n is on."


@given(line=recordings.lines("gemini"))
def test_any_line_is_read_and_always_the_same(line: str) -> None:
    signals = agent.read(line)
    assert signals == agent.read(line)
    assert all(isinstance(signal, Signal) for signal in signals)
    assert recordings.can_be_stored(signals)


def test_it_reads_a_prompt_of_any_size() -> None:
    launch = agent.launch(assignment(prompt="x" * 300_000, model="gemini-x", arguments=("--debug",)))
    assert launch.stdin == "x" * 300_000 and not launch.apart
    assert launch.argv[:3] == ("gemini", "--output-format", "stream-json")
    assert launch.argv[launch.argv.index("--model") + 1] == "gemini-x" and launch.argv[-1] == "--debug"
    assert "--resume" not in launch.argv


def test_a_conversation_is_taken_up_again_if_its_name_is_one() -> None:
    argv = agent.launch(assignment(conversation=SESSION)).argv
    assert argv[argv.index("--resume") + 1] == SESSION
    assert "--resume" not in agent.launch(assignment(conversation="--yolo")).argv


@pytest.mark.parametrize(
    ("level", "mode"),
    [(PermissionLevel.ASK, "default"), (PermissionLevel.EDITS, "auto_edit"), (PermissionLevel.FULL, "yolo")],
)
def test_each_level_is_a_mode_of_its_own(level: PermissionLevel, mode: str) -> None:
    launch = agent.launch(assignment(permissions=level))
    assert launch.argv[launch.argv.index("--approval-mode") + 1] == mode
    assert ("--policy" in launch.argv) == (level is PermissionLevel.EDITS) == bool(launch.files)


def test_to_edit_it_may_run_git_covey_and_what_is_named_and_a_chain_is_named_by_its_parts() -> None:
    launch = agent.launch(assignment(commands=("make test", "npm run 'a' && npm run b")))
    ((path, text),) = launch.files.items()
    assert path.startswith("/home/ada/runs/R-1/") and launch.argv[launch.argv.index("--policy") + 1] == path
    allow, deny, unasked = tomllib.loads(text)["rule"]
    assert {"git", "covey", "make test", "npm run 'a'", "npm run b"} <= set(allow["commandPrefix"])
    assert allow["decision"] == "allow" and deny["decision"] == "deny" and deny["priority"] > allow["priority"]
    assert unasked["decision"] == "deny" and unasked["priority"] > allow["priority"]


def test_settings_of_git_are_said_where_they_come_last() -> None:
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": "/it's"}
    launch = agent.launch(assignment(env=env))
    assert launch.env["GIT_CONFIG_PARAMETERS"] == "'core.hooksPath'='/it'\\''s'"
    assert env.items() <= launch.env.items()
    assert "GIT_CONFIG_PARAMETERS" not in agent.launch(assignment(env={"GIT_CONFIG_COUNT": "x"})).env


ROOF = Script(
    (
        Step(text="I add a roof.", do=(Write("roof.txt", "red\n"),)),
        Step(do=(Shell("git add -A && git commit -q -m 'Add a roof'"),)),
        Step(do=(Shell("touch by-touch.txt"),)),
        Step(do=(Shell("git status; touch by-chain.txt"),)),
        Step(do=(Shell("git log > ../by-redirection.txt"),)),
        Step(do=(Shell('git log > "../by-redirection.txt"'),)),
        Step(do=(Shell("git commit -q --allow-empty -m 'x' 2>/dev/null >$HOME/by-redirection.txt"),)),
        Step(do=(Shell("git commit -q --allow-empty -m 'Route -> /api' > /dev/null 2>&1"),)),
        Step(do=(Shell('git commit -q --allow-empty -m "Say a > /b"'),)),
        Step(text="The roof is on."),
        Step(text="It still is."),
    )
)


@pytest.mark.soak
def test_the_real_one_edits_commits_and_goes_on_in_the_same_conversation(tmp_path: Path) -> None:
    with ModelServer() as model:
        model.add("roof", ROOF)
        place = linked(tmp_path, model.url("roof"))
        hooks = tmp_path / "hooks"
        hooks.mkdir()
        (hooks / "pre-commit").write_text(f"#!/bin/sh\ntouch '{tmp_path}/guarded'\n")
        (hooks / "pre-commit").chmod(0o755)
        guard = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": str(hooks)}
        env = {**place.env, **guard}
        first = place.done(agent, place.work(agent, "Add a roof.", model=GEMINI_MODEL, env=env))
        assert first.code == 0, first.complaints
        assert place.git("log", "--format=%s by %cn", "main..").splitlines() == [
            "Say a > /b by ada",
            "Route -> /api by ada",
            "Add a roof by ada",
        ], first.output
        assert (tmp_path / "guarded").exists()
        assert [signal.failed for signal in first.signals if isinstance(signal, Called)] == [
            *[False] * 2, *[True] * 5, *[False] * 2,
        ]  # fmt: skip
        assert place.git("status", "--porcelain") == ""
        assert not list(tmp_path.rglob("by-redirection.txt"))
        assert ends(first.signals) == [Result("")]
        (conversation,) = (signal for signal in first.signals if isinstance(signal, Conversation))

        work = place.work(agent, "Is it on?", model=GEMINI_MODEL, conversation=conversation.id)
        again = place.done(agent, work)
        known = RunState()
        for signal in again.signals:
            known.take(signal, 1.0)
        assert conversation in again.signals and known.result == "It still is."
        totals = [signal for done in (first, again) for signal in done.signals if isinstance(signal, Total)]
        assert sum(total.usage.input for total in totals) == model.charged(script="roof").usage.input
