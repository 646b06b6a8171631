"""What every agent keeps to; passing this is joining covey."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.agents import registry
from covey.agents.agent import Agent, Assignment
from covey.core.fleet import signals
from covey.core.fleet.run_state import RunState
from covey.core.fleet.signals import Asks, Result, Signal, Spent, Usage, Works
from covey.core.history.transcripts import Transcript
from covey.core.people.permits import PermissionLevel
from tests.agents.works import PATIENCE, Place

BASH = """\
echo '{"covey": "ask", "text": "Which colour?"}'
read -r answer
echo '{"covey": "working"}'
echo "$answer" > colour.txt
git add colour.txt
git commit --quiet --message "Paint it $answer"
echo '{"covey": "result", "text": "It is painted."}'
"""
SCRIPT = """\
ask Which colour?
write colour.txt
    {answer}
commit Paint it {answer}
result It is painted.
"""
PYTHON = """\
import json, subprocess, sys
print(json.dumps({"covey": "ask", "text": "Which colour?"}), flush=True)
answer = input()
print(json.dumps({"covey": "working"}), flush=True)
open("colour.txt", "w").write(answer + "\\n")
subprocess.run(["git", "add", "colour.txt"], check=True)
subprocess.run(["git", "commit", "-qm", f"Paint it {answer}"], check=True)
print(json.dumps({"covey": "result", "text": "It is painted."}))
"""


@dataclass(frozen=True)
class Case:
    """An agent, and a body with which it asks for a colour, paints, commits, and says so."""

    agent: Agent
    body: str


COMMANDS = {
    "sh": ("bash", "{body_file}"),
    "python": (sys.executable, "-c", "import sys; exec(sys.argv[2].partition('Do this.')[2])", "{title}", "{prompt}"),
}
CASES = {
    "scripted": Case(registry.find("scripted", {}), SCRIPT),
    "sh": Case(registry.find("sh", COMMANDS), BASH),
    "python": Case(registry.find("python", COMMANDS), PYTHON),
}

AGENTS = {name: case.agent for name, case in CASES.items()} | {
    name: registry.find(name, {}) for name in registry.names({})
}

every_agent = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())
every_agent_that_is_told_what_to_do = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
words = st.text(max_size=40) | st.sampled_from(
    ["", "{prompt}", "-x", "a\0b", "é" * 20, "{task}{run}", "$HOME", "\ud800"]
)
assignments = st.builds(
    Assignment,
    run=words,
    session=words,
    task=words,
    title=words,
    worktree=words.map(lambda name: "/" + name.replace("\0", "")),
    prompt=words | st.integers(0, 400_000).map(lambda size: "{title} " * (size // 8)),
    prompt_file=words,
    body_file=words,
    env=st.dictionaries(words, words, max_size=3),
    conversation=st.none() | words,
    folder=words,
    git=words,
    program=words,
    arguments=st.lists(words, max_size=2).map(tuple),
    model=words,
    permissions=st.sampled_from(PermissionLevel),
    commands=st.lists(words, max_size=3).map(tuple),
    allowance=st.none() | st.floats(0, 1e6),
)
kinds = st.sampled_from(
    [
        "ask",
        "result",
        "working",
        "failed",
        "conversation",
        "limited",
        "spent",
        "waits",
        "calls",
        "called",
        "else",
        1,
        None,
    ]
)
more = ("text", "id", "trouble", "until", "call", "model", "input", "output", "cost", "tool", "about")
anything = st.recursive(st.none() | st.integers() | st.floats() | words, lambda inner: st.lists(inner, max_size=3))
objects = st.fixed_dictionaries({"covey": kinds | anything}, optional=dict.fromkeys(more, anything))
lines = st.text() | objects.map(json.dumps) | st.sampled_from([
    "{" * 100_000, '{"covey": ' + "[" * 100_000, '{"covey": "ask", "text": ' + "9" * 5000 + "}", "x" * 1_500_000,
    '{"covey": "result", "text": "' + "x" * 1_500_000 + '"}', '{"covey": "ask", "text": "\\ud800\\u0000"}',
    "\x1b]0;title\x07\x1b[31mred\x1b[0m", "\x1b]never ended", "\r\r\r", "10 %\r20 %", '{"covey"',
])  # fmt: skip


@every_agent
@given(work=assignments)
def test_a_launch_is_made_of_any_assignment_and_of_nothing_else(agent: Agent, work: Assignment) -> None:
    for way in (agent, agent.terminal) if agent.terminal else (agent,):
        launch = way.launch(work)
        assert launch == way.launch(work)
        assert launch.argv
        assert all(type(word) is str and "\0" not in word for word in launch.argv)
        assert all(len(word.encode("utf-8", "surrogatepass")) < 128 * 1024 for word in launch.argv)
        assert launch.cwd == work.worktree
        assert work.env.items() <= launch.env.items()
        assert launch.terminal == (way is agent.terminal)


@every_agent
@given(line=lines)
def test_any_line_is_read(agent: Agent, line: str) -> None:
    told = agent.read(line)
    assert told == agent.read(line)
    assert all(isinstance(signal, signals.Signal) for signal in told)
    for signal in told:
        for text in (value for value in vars(signal).values() if isinstance(value, str)):
            assert text.strip() == text or isinstance(signal, signals.Said)
            assert text or not isinstance(signal, signals.Said | signals.Result | signals.Failed | signals.Limited)
            text.encode()
            assert "\0" not in text and "\x1b" not in text
    assert sum(len(signal.text) for signal in told if isinstance(signal, signals.Said)) <= 4000


USES = {
    "claude": '{"type":"assistant","message":{"id":"m","content":'
    '[{"type":"tool_use","id":"1","name":"x","input":%s}]}}',
    "claude, who asks": '{"type":"control_request","request_id":"1",'
    '"request":{"subtype":"can_use_tool","tool_name":"x","input":%s}}',
    "gemini": '{"type":"tool_use","tool_name":"x","tool_id":"1","parameters":%s}',
    "codex": '{"type":"item.completed","item":{"id":"1","type":"mcp_tool_call","arguments":%s,"result":%s}}',
    "opencode": '{"type":"tool_use","part":{"tool":"x","callID":"1","state":{"status":"completed","input":%s}}}',
}


@pytest.mark.parametrize("case", USES)
def test_a_use_of_a_tool_is_read_and_told_however_deeply_it_is_nested(case: str) -> None:
    """What can just be read may be too deep to be written, a few calls further on."""
    reads = registry.find(case.partition(",")[0], {}).read
    for depth in (1, 30, 400, *range(850, 1000)):
        line = USES[case].replace("%s", '{"x":' + "[" * depth + "]" * depth + "}")
        Transcript().take(reads(line))
    assert reads(USES[case].replace("%s", '{"x":[]}')) != []


@every_agent_that_is_told_what_to_do
def test_its_program_can_be_run(case: Case, place: Place) -> None:
    assert registry.executable(case.agent.launch(place.work(case.body))) is None


@every_agent_that_is_told_what_to_do
def test_it_asks_hears_the_answer_and_commits(case: Case, place: Place) -> None:
    launch = case.agent.launch(place.work(case.body))
    assert launch.typed
    heard: list[Signal] = []
    with place.started(launch) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            heard += case.agent.read(line)
            if heard and isinstance(heard[-1], Asks):
                process.stdin.write("sea green\n")
                process.stdin.flush()
        complaint = process.stderr.read()
        assert process.wait(PATIENCE) == 0, complaint
    assert heard == [Asks("Which colour?"), Works(), Result("It is painted.")]
    assert place.git("log", "-1", "--format=%s, by %cn") == "Paint it sea green, by ada"
    assert place.git("show", "HEAD:colour.txt") == "sea green"
    assert place.git("status", "--porcelain") == ""


def _claude(number: int, result: str) -> list[object]:
    used = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "make"}}
    came = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result, "is_error": False}
    return [
        {"type": "assistant", "message": {"content": [used]}},
        {"type": "user", "message": {"role": "user", "content": [came]}},
    ]


def _codex(number: int, result: str) -> list[object]:
    item = {"id": f"item_{number}", "type": "command_execution", "command": "/bin/bash -lc make"}
    done = {**item, "aggregated_output": result, "exit_code": 0, "status": "completed"}
    return [{"type": "item.started", "item": item}, {"type": "item.completed", "item": done}]


def _gemini(number: int, result: str) -> list[object]:
    used = {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": f"t{number}"}
    came = {"type": "tool_result", "tool_id": f"t{number}", "status": "success", "output": result}
    return [{**used, "parameters": {"command": "make"}}, came]


def _opencode(number: int, result: str) -> list[object]:
    state = {"status": "completed", "input": {"command": "make"}, "output": result, "metadata": {"exit": 0}}
    return [{"type": "tool_use", "part": {"tool": "bash", "callID": f"t{number}", "state": state}}]


def _declared(number: int, result: str) -> list[object]:
    calls = {"covey": "calls", "id": f"t{number}", "tool": "shell", "about": "make"}
    return [calls, {"covey": "called", "id": f"t{number}", "result": result}]


def _codex_journal(number: int, result: str) -> list[object]:
    used = {"type": "function_call", "call_id": f"t{number}", "name": "exec_command", "arguments": '{"cmd": "make"}'}
    head = f"Chunk ID: {number}b13\nWall time: 0.{number} seconds\nProcess exited with code 0\nOutput:\n"
    came = {"type": "function_call_output", "call_id": f"t{number}", "output": head + result}
    return [{"type": "response_item", "payload": used}, {"type": "response_item", "payload": came}]


@pytest.mark.parametrize(
    ("name", "in_terminal", "told"),
    [
        ("claude", False, _claude),
        ("claude", True, _claude),
        ("codex", False, _codex),
        ("codex", True, _codex_journal),
        ("gemini", False, _gemini),
        ("opencode", False, _opencode),
        ("sh", False, _declared),
    ],
)
def test_a_call_is_the_same_again_only_if_the_same_came_of_it(
    name: str, in_terminal: bool, told: Callable[[int, str], list[object]]
) -> None:
    agent = AGENTS[name]
    read = agent.terminal.read if in_terminal and agent.terminal is not None else agent.read
    for results, repeats in ((("a", "a", "a"), 3), (("a", "b", "c"), 1), (("a", "b", "b"), 2)):
        heard = RunState()
        for number, result in enumerate(results):
            for line in told(number, result):
                for signal in read(json.dumps(line)):
                    heard.take(signal, 1.0)
        assert heard.repeats == repeats


LEDGERS = {
    "claude": (
        {
            "type": "assistant",
            "message": {
                "id": "call-1",
                "model": "claude-opus-5-5",
                "usage": {"input_tokens": 900, "output_tokens": 50, "cache_read_input_tokens": 100},
            },
        },
        "claude-opus-5-5",
    ),
    "codex": (
        {
            "type": "token_usage_record",
            "payload": {
                "response_id": "call-1",
                "usage": {"input_tokens": 1000, "cached_input_tokens": 100, "output_tokens": 50},
            },
        },
        None,
    ),
    "gemini": (
        {
            "id": "call-1",
            "type": "gemini",
            "tokens": {"input": 1000, "output": 40, "cached": 100, "thoughts": 10, "tool": 0, "total": 1050},
            "model": "gemini-2.5-flash",
        },
        "gemini-2.5-flash",
    ),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_names_each_call_once_by_its_own_name(name: str) -> None:
    agent, (line, model) = AGENTS[name], LEDGERS[name]
    assert agent.count(json.dumps(line)) == [Spent("call-1", Usage(900, 50, 100), model)]
    assert agent.ledger("/home/ada", "") == (), "nobody knows where, before the conversation has a name"
    patterns = agent.ledger("/home/a*da", "01900000-0000-7000-8000-000000000001")
    assert patterns and all(pattern.startswith("/home/a[*]da/") and "01900000" in pattern for pattern in patterns)
    assert not any("/../" in pattern for pattern in agent.ledger("/home/ada", "../../etc"))


@every_agent
@given(st.text(max_size=200) | st.builds(json.dumps, st.dictionaries(st.text(max_size=9), st.integers() | st.text())))
def test_whatever_a_ledger_holds_says_nothing_but_spending(agent: Agent, line: str) -> None:
    assert all(isinstance(signal, Spent | signals.Total) for signal in agent.count(line))
