"""Claude Code: how it is started, what its output means, and the real program on a scripted model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.agents import registry
from covey.agents.agent import Assignment
from covey.agents.claude.claude import agent
from covey.core.fleet import signals
from covey.core.fleet.run_state import RunState
from covey.core.fleet.signals import (
    Asks,
    Called,
    Calls,
    Compacts,
    Context,
    Conversation,
    Failed,
    Limited,
    Result,
    Said,
    Signal,
    Spent,
    Total,
    Trouble,
    Usage,
    Waits,
    Wants,
    Works,
)
from covey.core.people.permits import PermissionLevel
from covey.core.people.questions import Decision, Reply
from tests.agents.works import PATIENCE, Place
from tests.model.environment import agent_environment, program
from tests.model.script import ALWAYS, Fail, Script, Shell, Step, Tool, Write, committing
from tests.model.server import ModelServer

STREAMS = Path(__file__).parent / "claude"
CONVERSATION = "00000001-0000-4000-8000-000000000000"
MODEL = "claude-opus-5-5"
COMMIT = "git add -A && git -c user.name=Fake -c user.email=f@x commit -qm 'add hello' && git log --oneline | head -1"
WORK = Assignment(
    run="R-1",
    session="ada",
    task="T-1",
    title="Paint the shed",
    worktree="/home/shed",
    prompt="Paint the shed.",
    prompt_file="/home/prompt",
    body_file="/home/body",
    env={"HOME": "/home/ada"},
)


def heard(stream: str) -> list[Signal]:
    lines = (STREAMS / f"{stream}.jsonl").read_text().splitlines()
    return [signal for line in lines for signal in agent.read(line)]


def without(found: list[Signal], *kinds: type[Signal]) -> list[Signal]:
    return [signal for signal in found if not isinstance(signal, kinds)]


# What its output means


def test_a_turn_is_read_from_its_beginning_to_its_result() -> None:
    found = heard("permission")
    hello, commit = [signal for signal in found if isinstance(signal, Asks)]
    assert without(found, Asks, Spent, Context) == [
        Conversation(CONVERSATION),
        Waits(),
        Said("I will write the file."),
        Said("Write: hello.txt"),
        Calls("toolu_01", "Write", "hello.txt #2829e05c94"),
        Called("toolu_01"),
        Waits(),
        Said(f"shell: {COMMIT}"),
        Calls("toolu_02", "shell", COMMIT),
        Called("toolu_02"),
        Waits(),
        Said("Done: hello.txt is committed."),
        Total(Usage(input=3000, output=150), MODEL, 0.015, whole=True),
        Result("Done: hello.txt is committed."),
    ]
    assert (hello.wants, hello.tool, hello.about) == (Wants.PERMISSION, "Write", "/home/shed/hello.txt")
    assert (commit.wants, commit.tool, commit.about) == (Wants.PERMISSION, "shell", COMMIT)
    assert commit.question == f"It wants to run: {COMMIT}\nCommit the file"


def test_each_call_of_the_model_is_counted_once_however_often_it_is_said() -> None:
    found = heard("permission")
    spent = [signal for signal in found if isinstance(signal, Spent)]
    assert [each.call for each in spent] == ["msg_01", "msg_01", "msg_02", "msg_03"]
    assert {each.call: each for each in spent}["msg_01"] == Spent("msg_01", Usage(input=1000, output=1), MODEL)
    assert Context(1001, 1_000_000) in found


def test_a_question_of_the_model_comes_with_its_choices() -> None:
    (asks,) = [signal for signal in heard("question") if isinstance(signal, Asks)]
    assert asks.wants is Wants.ANSWER
    assert asks.question == (
        "Which colour?\n- Red: warm\n- Blue: cold\n"
        "Which rooms? (more than one may be named)\n- Hall: h\n- Attic: a\nPlease answer each question with a line."
    )
    assert asks.choices == ()
    answered = json.loads(agent.answer(asks, Reply(Decision.REPLY, "Blue\nHall, Attic")) or "")["response"]
    assert answered["response"]["updatedInput"]["answers"] == {"Which colour?": "Blue", "Which rooms?": "Hall, Attic"}
    answered = json.loads(agent.answer(asks, Reply(Decision.REPLY, "As you like")) or "")["response"]
    assert set(answered["response"]["updatedInput"]["answers"].values()) == {"As you like"}
    assert len(answered["response"]["updatedInput"]["questions"]) == 2


def test_a_sub_agent_ends_no_turn_and_does_not_fill_the_context_of_the_main_one() -> None:
    found = heard("subagent")
    assert [signal for signal in found if isinstance(signal, Result | Failed)] == [Result("Main done.")]
    assert Calls("toolu_02", "shell", "echo sub > sub.txt") in found
    assert sum(isinstance(signal, Spent) for signal in found) == 3
    assert sum(isinstance(signal, Context) for signal in found) == 2


def test_a_tool_that_fails_and_what_each_is_used_for_are_told() -> None:
    found = heard("tools")
    calls = {signal.about: signal for signal in found if isinstance(signal, Calls)}
    failed = {signal.id for signal in found if isinstance(signal, Called) and signal.failed}
    assert calls["exit 3"].id in failed
    assert [(signal.tool, signal.about) for signal in found if isinstance(signal, Asks)] == [
        ("WebFetch", "https://example.com/x"),
        ("Read", "/etc/hostname"),
        ("shell", "ls /tmp | head -2"),
        ("shell", "exit 3"),
    ]


def test_the_totals_of_a_conversation_grow_over_its_turns_and_runs() -> None:
    totals = [signal for signal in heard("resumed") if isinstance(signal, Total)]
    assert [total.cost for total in totals] == [0.015, 0.02]
    assert all(total.whole for total in totals)


def test_a_nudge_may_make_a_turn_of_its_own() -> None:
    ends = without(heard("nudged"), Spent, Context, Said, Total)
    first, second = Result("Slow one."), Result("Second.")
    assert ends == [Conversation(CONVERSATION), Waits(), first, Conversation(CONVERSATION), Waits(), second]


def test_what_it_counts_of_no_model_is_not_lost() -> None:
    used = {
        "claude-opus-5-5[1m]": {"inputTokens": 5, "costUSD": 0.5},
        "us.anthropic.claude-opus-5-5-v1:0": {"outputTokens": 7},
    }
    line = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "x",
        "modelUsage": used,
        "total_cost_usd": 0.75,
    }
    assert agent.read(json.dumps(line))[:-1] == [Total(Usage(input=5, output=7), MODEL, 0.75, whole=True)]


def test_it_tells_when_it_makes_its_conversation_shorter() -> None:
    assert [signal for signal in heard("compacted") if isinstance(signal, Compacts)] == [Compacts(), Compacts(on=False)]
    failed = {"type": "system", "subtype": "status", "status": None, "compact_result": "failed"}
    assert agent.read(json.dumps(failed)) == [Works()]


@pytest.mark.parametrize(
    ("stream", "trouble", "until"),
    [
        ("limit-short", Trouble.LIMIT, None),
        ("limit-of-a-key", Trouble.LIMIT, None),
        ("limit-five-hours", Trouble.LIMIT, 1794763200.0),
        ("limit-week", Trouble.LIMIT, 1795100400.0),
        ("limit-unnamed", Trouble.LIMIT, None),
        ("overload", Trouble.OVERLOAD, None),
        ("server-error", Trouble.OVERLOAD, None),
        ("connection", Trouble.CONNECTION, None),
        ("no-such-host", Trouble.CONNECTION, None),
        ("wrong-key", Trouble.KEY, None),
        ("forbidden", Trouble.KEY, None),
        ("login-expired", Trouble.KEY, None),
        ("no-key", Trouble.KEY, None),
        ("credit", Trouble.CREDIT, None),
        ("too-long", Trouble.CONTEXT, None),
        ("too-large", Trouble.CONTEXT, None),
        ("signature", Trouble.CORRUPT, None),
        ("thinking-changed", Trouble.CORRUPT, None),
        ("tool-history", Trouble.CORRUPT, None),
        ("no-such-conversation", Trouble.CORRUPT, None),
        ("no-such-model", Trouble.OTHER, None),
        ("budget", Trouble.BUDGET, None),
    ],
)
def test_a_failure_is_told_once_with_its_trouble(stream: str, trouble: Trouble, until: float | None) -> None:
    (failed,) = [signal for signal in heard(stream) if isinstance(signal, Failed | Result)]
    assert isinstance(failed, Failed)
    assert (failed.trouble, failed.until) == (trouble, until)
    assert failed.what


@pytest.mark.parametrize(
    ("stream", "trouble", "waits"),
    [
        ("limit-short", Trouble.LIMIT, [1.0, 1.194]),
        ("overload", Trouble.OVERLOAD, [0.581, 1.068]),
        ("connection", Trouble.CONNECTION, [0.503, 1.015]),
        ("cut-off", Trouble.CONNECTION, [0.576, 1.051]),
        ("limit-week", Trouble.LIMIT, [None]),
    ],
)
def test_a_delay_is_told_while_it_lasts(stream: str, trouble: Trouble, waits: list[float | None]) -> None:
    limited = [signal for signal in heard(stream) if isinstance(signal, Limited)]
    assert [signal.trouble for signal in limited] == [trouble] * len(waits)
    assert [signal.again_in for signal in limited] == waits


def test_a_limit_in_the_older_form_names_its_time() -> None:
    told = {
        "type": "result",
        "subtype": "success",
        "is_error": True,
        "result": "Claude AI usage limit reached|1794763200",
    }
    assert agent.read(json.dumps(told)) == [
        Failed("Claude AI usage limit reached|1794763200", Trouble.LIMIT, 1794763200.0)
    ]


@pytest.mark.parametrize(
    "odd",
    [{"is_error": True}, {"terminal_reason": "image_error"}, {"subtype": "error_max_turns"}, {"is_error": None}],
)
def test_only_an_end_that_nothing_speaks_against_is_a_result(odd: dict[str, object]) -> None:
    well = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "terminal_reason": "completed",
        "result": "Done.",
    }
    assert agent.read(json.dumps(well)) == [Result("Done.")]
    assert isinstance(agent.read(json.dumps({**well, **odd}))[-1], Failed)


def test_an_end_by_interruption_from_outside_is_no_word_of_its_own() -> None:
    told = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["[ede_diagnostic]"]}
    assert agent.read(json.dumps({**told, "terminal_reason": "aborted_streaming"})) == []


# Whatever it says

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
RECORDED = [line for path in sorted(STREAMS.glob("*.jsonl")) for line in path.read_text().splitlines()]


@st.composite
def nearly(draw: st.DrawFn) -> str:
    """Return a line that was recorded, with something in it replaced by anything."""
    told: Any = json.loads(draw(st.sampled_from(RECORDED)))
    here = told
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if isinstance(here[key], dict | list) and here[key] and draw(st.booleans()):
            here = here[key]
            continue
        here[key] = draw(anything)
        break
    return json.dumps(told)


@given(line=st.text() | nearly() | st.sampled_from(RECORDED).map(lambda line: line[: len(line) // 2]))
def test_any_line_is_read_and_always_the_same(line: str) -> None:
    told = agent.read(line)
    assert told == agent.read(line)
    for signal in told:
        assert isinstance(signal, signals.Signal)
        for value in vars(signal).values():
            assert not isinstance(value, str) or (
                "\x1b" not in value and "\0" not in value and value.encode() is not None
            )
        if isinstance(signal, Asks):
            assert json.loads(agent.answer(signal, Reply(Decision.ALLOW, "x")) or "")
            assert json.loads(agent.answer(signal, Reply(Decision.DENY)) or "")
            assert len(signal.id) < 100_000


# How it is started


def test_it_is_told_its_prompt_in_the_first_line_that_it_reads() -> None:
    launch = agent.launch(replace(WORK, prompt="x" * 256 * 1024))
    assert launch.typed and launch.apart and not launch.terminal
    assert json.loads(launch.stdin or "")["message"]["content"] == "x" * 256 * 1024
    assert launch.argv[0] == "claude" and "-p" in launch.argv
    assert launch.env["HOME"] == "/home/ada"
    assert launch.env["DISABLE_AUTOUPDATER"] == "1"


def test_what_begins_with_a_slash_is_no_command() -> None:
    launch = agent.launch(replace(WORK, prompt="/compact"))
    assert json.loads(launch.stdin or "")["message"]["content"] == "\n/compact"
    assert json.loads(agent.say("/exit") or "")["message"]["content"] == "\n/exit"
    assert "\n" not in (agent.say("two\nlines") or "")


def test_each_level_says_what_it_may_do() -> None:
    asks, edits, full = (
        agent.launch(replace(WORK, permissions=level, commands=("make test",))) for level in PermissionLevel
    )
    assert _after(asks.argv, "--permission-mode") == "default"
    assert not any("Bash(" in word for word in asks.argv)
    assert _after(edits.argv, "--permission-mode") == "acceptEdits"
    assert {"Bash(git:*)", "Bash(covey:*)", "Bash(make test:*)"} <= set(edits.argv)
    assert "--dangerously-skip-permissions" in full.argv and full.env["IS_SANDBOX"] == "1"
    assert "--dangerously-skip-permissions" not in asks.argv + edits.argv
    assert all(_after(launch.argv, "--disallowedTools") == "EnterWorktree" for launch in (asks, edits, full))


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("make test && make lint", {"Bash(make test:*)", "Bash(make lint:*)"}),
        ("npm  run   build | tail", {"Bash(npm run build:*)", "Bash(tail:*)"}),
        ("sh -c 'a; b'", {"Bash(sh -c 'a; b':*)"}),
        (" ; ", set()),
    ],
)
def test_a_command_that_chains_others_allows_each_of_them(command: str, rules: set[str]) -> None:
    argv = agent.launch(replace(WORK, commands=(command,))).argv
    assert {word for word in argv if word.startswith("Bash(")} == {"Bash(git:*)", "Bash(covey:*)"} | rules


def test_settings_and_limits_reach_its_command_line() -> None:
    work = replace(WORK, program="/opt/claude", model="sonnet", arguments=("--effort", "low"), allowance=1.5)
    argv = agent.launch(replace(work, conversation=CONVERSATION)).argv
    assert argv[0] == "/opt/claude"
    assert _after(argv, "--model") == "sonnet"
    assert _after(argv, "--max-budget-usd") == "1.500000"
    assert _after(argv, "--resume") == CONVERSATION
    assert argv[-2:] == ("--effort", "low")


def test_it_joins_by_entry_point() -> None:
    assert registry.find("claude", {}) is agent


def test_a_question_of_another_program_is_not_answered() -> None:
    assert agent.answer(Asks("What?", "7"), Reply(Decision.REPLY, "x")) is None


def test_what_is_too_long_to_carry_is_allowed_as_it_was_asked_and_a_question_is_answered_by_words() -> None:
    request = {"subtype": "can_use_tool", "tool_name": "Write", "input": {"file_path": "/a", "content": "x" * 600_000}}
    (asks,) = agent.read(json.dumps({"type": "control_request", "request_id": "7", "request": request}))
    assert isinstance(asks, Asks) and len(asks.id) < 100
    assert json.loads(agent.answer(asks, Reply(Decision.ALWAYS)) or "")["response"] == {
        "subtype": "success",
        "request_id": "7",
        "response": {"behavior": "allow", "updatedInput": {}},
    }
    request |= {"tool_name": "AskUserQuestion", "input": {"questions": [{"question": "x" * 600_000}]}}
    (asks,) = agent.read(json.dumps({"type": "control_request", "request_id": "8", "request": request}))
    assert isinstance(asks, Asks)
    answered = json.loads(agent.answer(asks, Reply(Decision.REPLY, "Blue")) or "")
    assert answered["response"]["response"] == {"behavior": "deny", "message": "The answer is: Blue"}


def test_a_question_that_it_takes_back_is_settled() -> None:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "make"}}
    known = RunState()
    for told in (
        {"type": "control_request", "request_id": "7", "request": request},
        {"type": "control_request", "request_id": "8", "request": {**request, "input": {"command": "make it"}}},
        {"type": "control_cancel_request", "request_id": "7"},
    ):
        for signal in agent.read(json.dumps(told)):
            known.take(signal, 1.0)
    assert [asks.about for asks in known.asks.values()] == ["make it"]


@pytest.mark.parametrize("reply", [Reply(Decision.REPLY, "Yes"), Reply(Decision.DENY), Reply(Decision.ALLOW)])
def test_a_request_that_nobody_knows_is_a_question_that_can_only_be_refused(reply: Reply) -> None:
    request = {"subtype": "elicitation", "mcp_server_name": "forms", "message": "Which tenant?"}
    (asks,) = agent.read(json.dumps({"type": "control_request", "request_id": "7", "request": request}))
    assert isinstance(asks, Asks) and "elicitation" in asks.question and "Which tenant?" in asks.question
    told = json.loads(agent.answer(asks, reply) or "")
    assert told["type"] == "control_response"
    assert (told["response"]["subtype"], told["response"]["request_id"]) == ("error", "7") and told["response"]["error"]


def _after(argv: tuple[str, ...], word: str) -> str:
    return argv[argv.index(word) + 1]


# The real program


class Live:
    """The real program on a scripted model, read line by line."""

    def __init__(self, place: Place, model: ModelServer, home: Path) -> None:
        self.place, self.model = place, model
        self.env = {**place.env, **agent_environment(home, model.url())}
        self.heard: list[Signal] = []
        self.process: subprocess.Popen[str] | None = None

    def begin(self, prompt: str, **more: Any) -> None:
        """Start it on a prompt."""
        work = replace(self.place.work(""), prompt=prompt, env=self.env, program=str(program("claude")), **more)
        launch = agent.launch(work)
        self.process = self.place.started(launch)
        self.tell((launch.stdin or "").rstrip("\n"))

    def tell(self, line: str | None) -> None:
        """Put a line into its input."""
        assert self.process is not None and self.process.stdin is not None and line is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def until(self, *kinds: type[Signal]) -> Signal:
        """Read on until it says one of these, and return that."""
        assert self.process is not None and self.process.stdout is not None
        for line in self.process.stdout:
            new = agent.read(line)
            self.heard += new
            for signal in new:
                if isinstance(signal, kinds):
                    return signal
        raise AssertionError(f"It ended without a word: {self.heard}")

    def finish(self) -> int:
        """Close its input, read the rest, and return its exit code."""
        assert self.process is not None
        rest, complaint = self.process.communicate(timeout=PATIENCE)
        self.heard += [signal for line in rest.splitlines() for signal in agent.read(line)]
        assert complaint == "" or self.process.returncode
        return self.process.returncode


@pytest.fixture
def live(place: Place, tmp_path: Path) -> Iterator[Live]:
    with ModelServer() as model:
        found = Live(place, model, tmp_path / "home-of-claude")
        try:
            yield found
        finally:
            if found.process is not None:
                found.process.kill()
                found.process.communicate()


def test_it_asks_over_its_output_and_goes_on_when_allowed(live: Live) -> None:
    live.begin(live.model.add("paint", committing("colour.txt", "green\n", "Paint")), permissions=PermissionLevel.ASK)
    asks = live.until(Asks)
    assert isinstance(asks, Asks) and asks.tool == "Write"
    assert asks.about == str(live.place.worktree.resolve() / "colour.txt")
    live.tell(agent.answer(asks, Reply(Decision.ALLOW)))
    asks = live.until(Asks)
    assert isinstance(asks, Asks) and (asks.tool, asks.about) == ("shell", "git add -A && git commit -q -m 'Paint'")
    live.tell(agent.answer(asks, Reply(Decision.ALWAYS)))
    assert live.until(Result, Failed) == Result("Done: colour.txt is committed.")
    assert live.finish() == 0
    assert live.place.git("show", "HEAD:colour.txt") == "green"
    assert live.place.git("log", "-1", "--format=%s, by %cn") == "Paint, by ada"


def test_to_ask_it_asks_before_it_edits_whatever_its_user_allows_elsewhere(live: Live) -> None:
    settings = Path(live.env["CLAUDE_CONFIG_DIR"]) / "settings.json"
    allowed = {"permissions": {"allow": ["Write", "Edit", "WebFetch"]}}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), **allowed}))
    steps = [Step(do=(Write("colour.txt", "green\n"),)), Step(do=(Shell("ls"),)), Step(text="Done.")]
    live.begin(live.model.add("write", steps), permissions=PermissionLevel.ASK)
    asks = live.until(Asks, Result, Failed)
    assert isinstance(asks, Asks) and asks.tool == "Write"
    live.tell(agent.answer(asks, Reply(Decision.DENY)))
    assert live.until(Asks, Result, Failed) == Result("Done.")
    assert live.finish() == 0


def test_it_goes_on_without_what_it_was_denied_and_without_an_answer(live: Live) -> None:
    question = {"question": "Which colour?", "header": "Colour", "multiSelect": False}
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    ask = Tool("AskUserQuestion", {"questions": [{**question, "options": options}]})
    steps = [Step(do=(Shell("touch denied.txt"),)), Step(do=(ask,)), Step(do=(ask,)), Step(text="Done.")]
    live.begin(live.model.add("ask", steps), permissions=PermissionLevel.ASK)
    asks = live.until(Asks)
    assert isinstance(asks, Asks) and asks.wants is Wants.PERMISSION
    live.tell(agent.answer(asks, Reply(Decision.DENY, "Leave it.")))
    asks = live.until(Asks)
    assert isinstance(asks, Asks) and asks.wants is Wants.ANSWER and asks.choices == ("Red", "Blue")
    live.tell(agent.answer(asks, Reply(Decision.REPLY, "Blue")))
    asks = live.until(Asks)
    assert isinstance(asks, Asks)
    live.tell(agent.answer(asks, Reply(Decision.DENY)))
    assert live.until(Result, Failed) == Result("Done.")
    assert live.finish() == 0
    assert not (live.place.worktree / "denied.txt").exists()
    told = json.dumps(live.model.turns("ask")[-1].body)
    assert "Leave it." in told and 'Which colour?\\"=\\"Blue' in told and "Nobody answered in time" in told


def test_it_edits_commits_and_runs_what_is_allowed_without_asking(live: Live) -> None:
    (live.place.worktree / "Makefile").write_text("test:\n\t@echo tested\n")
    steps = [
        Step(do=(Write("colour.txt", "green\n"),)),
        Step(do=(Shell("make test 2>&1 | tail -3"),)),
        Step(do=(Shell("git add -A && git commit -q -m \"$(cat <<'EOF'\nPaint\n\nIt was grey.\nEOF\n)\""),)),
        Step(text="Done."),
    ]
    live.begin(live.model.add("edits", steps), permissions=PermissionLevel.EDITS, commands=("make test",))
    assert live.until(Asks, Result, Failed) == Result("Done.")
    assert live.finish() == 0
    assert live.place.git("log", "-1", "--format=%B") == "Paint\n\nIt was grey."


def test_a_word_reaches_it_while_it_works_and_its_conversation_is_taken_up_again(live: Live) -> None:
    nap = Step(do=(Shell("until [ -e go ]; do sleep 0.05; done"),))
    live.begin(live.model.add("nap", [nap, Step(text="Rested.")]), permissions=PermissionLevel.FULL)
    live.until(Calls)
    live.tell(agent.say("/and close the door"))
    (live.place.worktree / "go").touch()
    assert live.until(Result, Failed) == Result("Rested.")
    assert live.finish() == 0
    assert "/and close the door" in json.dumps([turn.body for turn in live.model.turns("nap")])
    (conversation,) = {signal.id for signal in live.heard if isinstance(signal, Conversation)}
    live.begin(live.model.add("more", [Step(text="I am back.")]), conversation=conversation)
    assert live.until(Result, Failed) == Result("I am back.")
    assert live.finish() == 0
    totals = [signal for signal in live.heard if isinstance(signal, Total)]
    assert totals[-1].usage.input == live.model.charged().usage.input
    live.begin("Hello?", conversation=CONVERSATION)
    failed = live.until(Failed)
    assert isinstance(failed, Failed) and failed.trouble is Trouble.CORRUPT


def test_a_limit_ends_it_with_its_trouble(live: Live) -> None:
    refused = Fail(
        status=429, type="rate_limit_error", message="Too much", headers={"retry-after": "3600"}, times=ALWAYS
    )
    live.begin(live.model.add("limit", Script((Step(text="x", troubles=(refused,)),))))
    failed = live.until(Result, Failed)
    assert isinstance(failed, Failed) and failed.trouble is Trouble.LIMIT
