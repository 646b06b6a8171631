"""aider: what its lines mean, how it is started, and the real one at work in a worktree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from covey.agents.aider import agent
from covey.core.fleet.run_state import RunState
from covey.core.fleet.signals import Failed, Limited, Result, Said, Signal, Spent, Trouble, Usage, Waits
from covey.core.people.permits import PermissionLevel
from tests.agents import recordings
from tests.agents.linked import assignment, linked
from tests.agents.recordings import ends, heard
from tests.model.environment import AIDER_MODEL
from tests.model.script import Script, Step, Write
from tests.model.server import ModelServer


def taken(*lines: str) -> RunState:
    """Return what is known after some lines."""
    known = RunState()
    for line in lines:
        for signal in agent.read(line):
            known.take(signal, 1.0)
    return known


def test_it_says_what_it_does_and_what_a_message_cost_but_never_that_all_is_well() -> None:
    signals = heard(agent, "work")
    assert Said("I add a roof.") in signals and Said("Applied edit to roof.txt") in signals
    assert not any(isinstance(signal, Result | Failed) for signal in signals)
    assert not any(isinstance(signal, Spent) for signal in signals), "what is rounded is nothing to count by"


@pytest.mark.parametrize(
    "line",
    [
        "Tokens: 1,234 sent, 50 received.",
        "Tokens: 12k sent, 2.5k cache write, 8.0k cache hit, 1.0k received. Cost: $0.12 message, $1.30 session.",
        "Cost: $0.12 message, $1.30 session.",
    ],
)
def test_after_what_a_message_cost_it_has_its_answer_and_goes_on(line: str) -> None:
    known = taken(line)
    assert (known.asked, known.is_between) == (1, True)


def test_its_log_counts_each_message_to_the_token() -> None:
    told = {"main_model": "openai/x", "prompt_tokens": 12435, "completion_tokens": 678, "cost": 0.03165}
    line = json.dumps({"event": "message_send", "properties": told, "user_id": "-", "time": 1794847660})
    assert agent.count(line) == [Spent("", Usage(12435, 678), cost=0.03165)]
    assert agent.count(line.replace("0.03165", "0")) == [Spent("", Usage(12435, 678))], "a price that it does not know"
    known = RunState()
    for _ in range(2):
        known.take(agent.count(line)[0], 1.0)
    assert len(known.bill.calls) == 2, "two that cost the same are two"
    assert agent.count('{"event": "message_send_starting", "properties": {}}') == agent.count("Tokens") == []


REFUSED = "litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached"


@pytest.mark.parametrize(
    "line", ["Commit 5c06479 (no commit message provided)", "Tokens: 1.0k sent, 50 received."], ids=["commit", "answer"]
)
def test_a_complaint_counts_only_until_a_line_shows_that_it_goes_on(line: str) -> None:
    assert taken(REFUSED).trouble is Trouble.LIMIT
    known = taken(REFUSED, line, "Applied edit to roof.txt")
    assert (known.failed, known.trouble, known.limited, known.waits) == (None, None, None, None)
    assert taken(line, REFUSED).trouble is Trouble.LIMIT


@pytest.mark.parametrize(("name", "trouble"), [("key", Trouble.KEY), ("context", Trouble.CONTEXT)])
def test_a_failure_that_it_does_not_try_again_ends_it(name: str, trouble: Trouble) -> None:
    (failed,) = ends(heard(agent, name))
    assert isinstance(failed, Failed) and failed.trouble is trouble


@pytest.mark.parametrize(("name", "trouble"), [("limit", Trouble.LIMIT), ("overload", Trouble.OVERLOAD)])
def test_a_failure_is_taken_back_by_the_word_that_it_tries_again(name: str, trouble: Trouble) -> None:
    signals = [signal for signal in heard(agent, name) if not isinstance(signal, Said)]
    failed, limited = signals[:2]
    assert isinstance(failed, Failed) and isinstance(limited, Limited)
    assert failed.trouble is limited.trouble is trouble
    assert signals == [failed, limited, Waits()] * 6


@given(line=recordings.lines("aider"))
def test_any_line_is_read_and_always_the_same(line: str) -> None:
    signals = agent.read(line)
    assert signals == agent.read(line)
    assert all(isinstance(signal, Signal) for signal in signals)
    assert recordings.can_be_stored(signals)


def test_it_reads_the_prompt_from_its_file_and_leaves_its_histories_in_the_folder_of_the_run() -> None:
    launch = agent.launch(assignment(model="a/b", arguments=("--cache-prompts",)))
    assert launch.argv[:3] == ("aider", "--message-file", "/home/ada/runs/R-1/prompt.md")
    assert launch.argv[launch.argv.index("--chat-history-file") + 1].startswith("/home/ada/runs/R-1/")
    assert launch.argv[launch.argv.index("--model") + 1] == "a/b" and launch.argv[-1] == "--cache-prompts"
    assert launch.stdin is None and not launch.apart


@pytest.mark.parametrize("level", PermissionLevel)
def test_it_never_runs_a_command_and_changes_something_only_where_it_may(level: PermissionLevel) -> None:
    argv = agent.launch(assignment(permissions=level)).argv
    assert "--no-suggest-shell-commands" in argv and "--git-commit-verify" in argv
    assert ("--dry-run" in argv) == (level is PermissionLevel.ASK)
    assert ("--auto-commits" in argv) == (level is not PermissionLevel.ASK)
    assert "--no-auto-test" in argv


def test_the_real_one_edits_and_commits_under_the_name_of_its_session(tmp_path: Path) -> None:
    with ModelServer() as model:
        steps = (Step(text="I add a roof.", do=(Write("roof.txt", "red\n"),)),)
        marker = model.add("roof", Script(steps, commit_message="Add a roof"))
        place = linked(tmp_path, model.url("roof"))
        work = place.work(agent, f"Add a roof. {marker}", model=AIDER_MODEL, arguments=("--edit-format", "diff"))
        done = place.done(agent, work)
        assert done.code == 0, done.complaints
        assert place.git("log", "--format=%s by %an and %cn", "main..") == "Add a roof by ada and ada", done.output
        assert place.git("show", "HEAD:roof.txt") == "red"
        assert place.git("status", "--porcelain") in ("", "?? .aider.tags.cache.v4/")  # a cache of what the files name
        assert ends(done.signals) == []
        (pattern,) = agent.ledger(agent.launch(work).ledger, "")
        counted = [each for line in Path(pattern).read_text().splitlines() for each in agent.count(line)]
        assert counted == [Spent("", Usage(1000, 50), cost=0.0025)], "and not what the words of the commit cost"


def test_the_real_one_commits_and_runs_nothing_whatever_its_user_settled(tmp_path: Path) -> None:
    with ModelServer() as model:
        steps = (Step(text="I add a roof.\nlitellm.RateLimitError: quoted", do=(Write("roof.txt", "red\n"),)),)
        marker = model.add("roof", Script(steps, commit_message="Add a roof"))
        place = linked(tmp_path, model.url("roof"))
        settled = {"auto-commits": "false", "auto-test": "true", "dry-run": "true"}
        settled |= {f"{what}-cmd": f"touch {tmp_path}/ran" for what in ("test", "lint")}
        lines = "".join(f"{name}: {value}\n" for name, value in settled.items())
        (Path(place.env["HOME"]) / ".aider.conf.yml").write_text(lines)
        work = place.work(agent, f"Add a roof. {marker}", model=AIDER_MODEL, arguments=("--edit-format", "diff"))
        done = place.done(agent, work)
        assert place.git("log", "--format=%s", "main..") == "Add a roof", done.output
        assert not (tmp_path / "ran").exists()
        assert taken(*done.output.splitlines()).failed is None, done.output
