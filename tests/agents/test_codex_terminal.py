"""Codex in a terminal: its screens, its journal, and how it is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.agents.agent import Assignment, Sight, terminal_of
from covey.agents.codex.codex import TERMINAL as terminal
from covey.agents.codex.codex import agent
from covey.core.fleet.launches import Screen
from covey.core.fleet.runs import PROCESS, TMUX, Run
from covey.core.fleet.signals import (
    Called,
    Calls,
    Context,
    Conversation,
    Limited,
    Result,
    Said,
    Signal,
    Spent,
    Total,
    Trouble,
    Usage,
    Waits,
    Works,
)
from covey.core.people.permits import PermissionLevel

RECORDED = Path(__file__).parent / "codex"
CONVERSATION = "01a1dfcf-c324-7891-a279-4da47864328c"
WORK = Assignment(
    run="run-1",
    session="ada",
    task="T-1",
    title="Paint the shed",
    worktree="/home/shed",
    prompt="Paint the shed.",
    prompt_file="/home/prompt",
    body_file="/home/body",
    env={"HOME": "/home/ada"},
    conversation=CONVERSATION,
)


def seen(name: str) -> Screen:
    """Return a screen that was recorded: the cursor and the title first, then its lines."""
    first, _, rest = (RECORDED / "screens" / f"{name}.txt").read_text().partition("\n")
    column, row, title = first.split(" ", 2)
    return Screen(tuple(rest.split("\n")[:-1]), int(column), int(row), title)


# Its screens

BOTH = ("80", "200")
EVERY_SIGHT = [
    *((f"{name}-{width}", Sight.READY) for name in ("idle", "done") for width in BOTH),
    *((f"{name}-{width}", Sight.TYPED) for name in ("typed", "folded", "exit") for width in BOTH),
    *((f"{name}-{width}", Sight.BUSY) for name in ("working", "tool") for width in BOTH),
    *((f"asks-{width}", Sight.ASKS) for width in BOTH),
    ("trust-80", Sight.ASKS),
]


@pytest.mark.parametrize(("name", "sight"), EVERY_SIGHT, ids=[name for name, _ in EVERY_SIGHT])
def test_a_screen_is_seen_for_what_it_is(name: str, sight: Sight) -> None:
    assert terminal.see(seen(name)) is sight


def test_every_recorded_screen_is_looked_at() -> None:
    assert {path.stem for path in (RECORDED / "screens").iterdir()} == {name for name, _ in EVERY_SIGHT}


def test_a_dialog_is_seen_without_a_title_too() -> None:
    assert terminal.see(replace(seen("asks-80"), title="shop")) is Sight.ASKS
    assert terminal.see(Screen(("",) * 24, 0, 0, "")) is Sight.STARTING


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("typed-80", "hello there"),
        ("typed-200", "hello there"),
        ("folded-80", "[Pasted Content 2058 chars]"),
        ("exit-80", "/exit"),
        ("idle-200", ""),
        ("asks-80", ""),
    ],
)
def test_what_is_written_at_its_prompt_is_read_and_no_hint(name: str, text: str) -> None:
    assert terminal.typed(seen(name)) == text


def test_an_open_dialog_is_read_for_a_person() -> None:
    for width in BOTH:
        asked = terminal.asked(seen(f"asks-{width}"))
        assert asked.startswith("Would you like to make the following edits?")
        assert "› 1. Yes, proceed (y)" in asked and "Press enter" not in asked
        assert terminal.asked(seen(f"idle-{width}")) == ""
    assert "Trust this folder?" in terminal.asked(seen("trust-80"))


def test_that_it_was_put_off_stands_on_its_screen() -> None:
    screen = seen("working-80")
    lines = ("• Reconnecting... 2/5 (3s • esc to interrupt)", *screen.lines[1:])
    assert terminal.says(replace(screen, lines=lines)) == Limited(Trouble.OVERLOAD, "Reconnecting... 2/5")
    assert terminal.says(screen) is None


@given(
    lines=st.lists(st.text(max_size=30) | st.sampled_from(["› 1. Yes", "› x", "• Working (1s • esc to interrupt)"])),
    column=st.integers(-1, 300),
    row=st.integers(-1, 100),
    title=st.text(max_size=5),
)
def test_any_screen_is_seen(lines: list[str], column: int, row: int, title: str) -> None:
    screen = Screen(tuple(lines), column, row, title)
    assert terminal.see(screen) in Sight
    assert isinstance(terminal.typed(screen), str) and isinstance(terminal.asked(screen), str)
    assert bool(terminal.asked(screen)) <= (terminal.see(screen) is Sight.ASKS)


# Its journal


JOURNAL = (RECORDED / "journals" / "turns.jsonl").read_text().splitlines()


def test_turns_are_read_from_its_journal() -> None:
    found = [signal for line in JOURNAL for signal in terminal.read(line) if not isinstance(signal, Context)]
    call = Usage(input=1000, output=50)
    assert found[0] == Conversation(CONVERSATION)
    first, second = (each for each in found if isinstance(each, Calls))
    assert (first.id, first.tool, first.edit) == ("call_t__0__8597bd32", "edit", "+hello")
    assert first.about.startswith("hello.txt #")
    assert second == Calls("call_t__1__c41c2a2a", "shell", "sleep 2; git add -A; git commit -qm x")
    assert [each.id for each in found if isinstance(each, Called)] == ["call_t__0__8597bd32", "call_t__1__c41c2a2a"]
    assert [each.text for each in found if isinstance(each, Said)] == ["I write.", "slow", "ok two"]
    assert [each.text for each in found if isinstance(each, Result)] == ["slow", "ok two"]
    assert [each.usage for each in found if isinstance(each, Spent)] == [call] * 4
    assert [each for each in found if isinstance(each, Total)][-1] == Total(Usage(4000, 200), whole=True)
    assert found.count(Waits()) == 4
    assert isinstance(found[-1], Result)


def test_a_turn_that_a_person_broke_off_is_none_that_waits() -> None:
    assert terminal.read('{"type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}}') == [
        Works()
    ]


@given(line=st.text() | st.sampled_from(JOURNAL).map(lambda line: line.replace('"', "'", 3)) | st.sampled_from(JOURNAL))
def test_any_line_of_a_journal_is_read_and_always_the_same(line: str) -> None:
    told: list[Signal] = terminal.read(line)
    assert terminal.read(line) == told


# How it is started


def test_a_conversation_is_opened_by_its_name_without_a_server_that_outlives_it() -> None:
    launch = terminal.launch(replace(WORK, model="gpt-5.5"))
    assert launch.argv[:6] == ("codex", "--no-daemon", "--disable", "daemon_auto_start", "--model", "gpt-5.5")
    assert launch.argv[-2:] == ("resume", CONVERSATION) and launch.terminal and launch.stdin is None
    assert 'approval_policy="on-request"' in launch.argv, "a person is there to be asked"
    full = terminal.launch(replace(WORK, permissions=PermissionLevel.FULL))
    assert 'approval_policy="never"' in full.argv and "danger-full-access" in full.argv
    assert terminal.journal(WORK) == f"/home/ada/.codex/sessions/*/*/*/rollout-*-{CONVERSATION}.jsonl"
    elsewhere = replace(WORK, env={"CODEX_HOME": "/odd[1]"})
    assert (terminal.journal(elsewhere) or "").startswith("/odd[[]1]/sessions/")
    assert terminal.journal(replace(WORK, conversation=None)) is None


def test_only_a_person_finds_it_in_a_terminal() -> None:
    run = Run(id="run-1", ordinal=1, session="ada", task="T-1", fence=1, agent="codex", runner=TMUX)
    assert terminal_of(run, agent) is None, "its conversation has no name before it begins"
    assert terminal_of(replace(run, person=True), agent) is terminal
    assert terminal_of(replace(run, runner=PROCESS), agent) is None and terminal_of(run, None) is None
