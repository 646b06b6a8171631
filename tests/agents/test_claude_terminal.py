"""Claude Code in a terminal: its screens, its journal, and the real program in tmux."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from glob import glob
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.agents.agent import Assignment, Sight
from covey.agents.claude.claude import agent
from covey.core.fleet import signals
from covey.core.fleet.launches import Launch, Screen
from covey.core.fleet.signals import (
    Called,
    Calls,
    Compacts,
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
    Works,
)
from covey.core.people.permits import PermissionLevel
from tests.agents.works import Place
from tests.model.environment import agent_environment, program
from tests.model.script import committing
from tests.model.server import ModelServer
from tests.worlds.serving import wait_until

RECORDED = Path(__file__).parent / "claude"
CONVERSATION = "00000001-0000-4000-8000-000000000000"
MODEL = "claude-opus-5-5"
assert agent.terminal is not None
terminal = agent.terminal
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


def seen(name: str) -> Screen:
    """Return a screen that was recorded: the cursor and the title first, then its lines."""
    first, _, rest = (RECORDED / "screens" / f"{name}.txt").read_text().partition("\n")
    column, row, title = first.split(" ", 2)
    return Screen(tuple(rest.split("\n")[:-1]), int(column), int(row), title)


def heard(journal: str) -> list[Signal]:
    lines = (RECORDED / "journals" / f"{journal}.jsonl").read_text().splitlines()
    return [signal for line in lines for signal in terminal.read(line)]


# Its screens

BOTH = ("80", "200")
EVERY_SIGHT = [
    ("starting-80", Sight.STARTING),
    *((f"{name}-{width}", Sight.READY) for name in ("idle", "done", "failed") for width in BOTH),
    *((name, Sight.READY) for name in ("idle-edits-80", "idle-full-200")),
    *((f"{name}-{width}", Sight.TYPED) for name in ("typed", "typed-lines", "folded") for width in BOTH),
    ("exit-80", Sight.TYPED),
    *((f"{name}-{width}", Sight.BUSY) for name in ("begun", "working", "tool", "retry") for width in BOTH),
    ("queued-80", Sight.BUSY),
    *((f"compacting-{width}", Sight.BUSY) for width in BOTH),
    *((f"{name}-{width}", Sight.ASKS) for name in ("write", "bash", "question") for width in BOTH),
    *((name, Sight.ASKS) for name in ("trust-80", "key-80", "warning-80")),
]


@pytest.mark.parametrize(("name", "sight"), EVERY_SIGHT, ids=[name for name, _ in EVERY_SIGHT])
def test_a_screen_is_seen_for_what_it_is(name: str, sight: Sight) -> None:
    assert terminal.see(seen(name)) is sight


def test_every_recorded_screen_is_looked_at() -> None:
    assert {path.stem for path in (RECORDED / "screens").iterdir()} == {name for name, _ in EVERY_SIGHT}


@pytest.mark.parametrize("name", ["working-80", "tool-80", "retry-200"])
def test_it_is_seen_to_work_without_a_title_too(name: str) -> None:
    assert terminal.see(replace(seen(name), title="shed")) is Sight.BUSY
    assert terminal.see(replace(seen("done-80"), title="shed")) is Sight.READY


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("retry-80", Limited(Trouble.OVERLOAD, "API error, try 1 of 3")),
        ("retry-200", Limited(Trouble.OVERLOAD, "API error, try 1 of 3")),
        ("compacting-80", Compacts()),
        ("compacting-200", Compacts()),
        ("working-80", None),
        ("failed-80", None),
        ("bash-80", None),
    ],
)
def test_what_its_journal_does_not_say_in_time_stands_on_its_screen(name: str, says: Signal | None) -> None:
    assert terminal.says(seen(name)) == says


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("typed-80", "hello there"),
        ("typed-200", "hello there"),
        ("typed-lines-80", "line one\nline two\nline three"),
        ("folded-80", "[Pasted text #1 +39 lines]"),
        ("queued-80", ""),
        ("idle-200", ""),
        ("write-80", ""),
    ],
)
def test_what_is_written_at_its_prompt_is_read_and_no_suggestion(name: str, text: str) -> None:
    assert terminal.typed(seen(name)) == text


@pytest.mark.parametrize("width", ["80", "200"])
def test_an_open_dialog_is_read_for_a_person(width: str) -> None:
    command = terminal.asked(seen(f"bash-{width}"))
    assert "touch a.out && sleep 4 && git add -A\nThis command requires approval\nDo you want to proceed?" in command
    assert command.startswith("Bash command") and command.endswith("4. No")
    assert "Do you want to create hello.txt?\n❯ 1. Yes" in terminal.asked(seen(f"write-{width}"))
    question = terminal.asked(seen(f"question-{width}"))
    assert question.startswith("☐ Colour\nWhich colour?\n❯ 1. Red\nr\n2. Blue")
    assert terminal.asked(seen(f"idle-{width}")) == ""


def test_a_dialog_that_ends_high_up_beside_a_panel_is_seen() -> None:
    screen = seen("bash-200")
    lines, edge = list(screen.lines), screen.lines[0].index("│")
    lower = [" " * edge + "│"] * 16
    raised = replace(screen, lines=(*lines[len(lower) : -1], *lower, lines[-1]))
    assert terminal.see(raised) is Sight.ASKS
    assert terminal.asked(raised) == terminal.asked(screen)


@given(
    lines=st.lists(st.text(max_size=30) | st.sampled_from(["─" * 80, "❯ ", " ❯ 1. Yes", "Esc to cancel", "│ x"])),
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


def test_a_turn_is_read_from_its_journal() -> None:
    found = [signal for signal in heard("turns") if not isinstance(signal, signals.Context)]
    assert found[:14] == [
        Conversation(CONVERSATION),
        Waits(),
        Said("I will write the file."),
        Spent("msg_01", Usage(input=1000, output=50), MODEL),
        Said("Write: hello.txt"),
        Calls("toolu_01", "Write", "hello.txt #2829e05c94"),
        Spent("msg_01", Usage(input=1000, output=50), MODEL),
        Called("toolu_01"),
        Waits(),
        Said("shell: touch a.out && sleep 4 && git add -A"),
        Calls("toolu_02", "shell", "touch a.out && sleep 4 && git add -A"),
        Spent("msg_02", Usage(input=1000, output=50), MODEL),
        Called("toolu_02"),
        Waits(),
    ]
    assert [signal.text for signal in found if isinstance(signal, Result)] == [
        "Done: hello.txt is staged.",
        "Second turn answer.",
        "You picked one.",
        "planned",
    ]
    assert found[-1] == Total(Usage(input=8000, output=400), MODEL, 0.04, whole=True)


@pytest.mark.parametrize(
    ("journal", "trouble", "until"),
    [
        ("overload", Trouble.OVERLOAD, None),
        ("limit-five-hours", Trouble.LIMIT, 1794763200.0),
        ("limit-week", Trouble.LIMIT, 1795100400.0),
    ],
)
def test_a_failure_stands_in_its_journal_with_the_time_of_a_reset(
    journal: str, trouble: Trouble, until: float | None
) -> None:
    (failed,) = [signal for signal in heard(journal) if isinstance(signal, Failed | Result)]
    assert isinstance(failed, Failed)
    assert (failed.trouble, failed.until) == (trouble, until)


@pytest.mark.parametrize(
    ("named", "until"),
    [
        ("resets 3pm (Europe/Berlin)", "2026-11-16T14:00:00+00:00"),
        ("resets 4:05pm (UTC)", "2026-11-15T16:05:00+00:00"),
        ("resets 12am (UTC)", "2026-11-16T00:00:00+00:00"),
        ("resets Jan 2, 9am (America/New_York)", "2027-01-02T14:00:00+00:00"),
        ("resets 13pm (Nowhere/Else)", None),
        ("resets Feb 31, 9am (UTC)", None),
        ("resets soon", None),
    ],
)
def test_a_time_of_day_is_the_next_one_after_the_line_was_written(named: str, until: str | None) -> None:
    told = {"content": [{"type": "text", "text": f"You've hit your limit · {named}"}]}
    line = {"type": "assistant", "isApiErrorMessage": True, "timestamp": "2026-11-15T15:04:00.000Z", "message": told}
    (failed,) = terminal.read(json.dumps(line))
    assert isinstance(failed, Failed)
    assert failed.until == (datetime.fromisoformat(until).timestamp() if until else None)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"type": "user", "message": {"content": "[Request interrupted by user]"}}, [Works()]),
        ({"type": "user", "message": {"content": "<command-name>/cost</command-name>"}}, []),
        ({"type": "user", "isMeta": True, "message": {"content": "Caveat"}}, []),
        ({"type": "user", "isSidechain": True, "message": {"content": "Do it"}}, []),
        ({"type": "system", "subtype": "compact_boundary"}, [Compacts(on=False)]),
        ({"type": "attachment"}, []),
        (
            {
                "type": "assistant",
                "message": {
                    "model": "<synthetic>",
                    "stop_reason": "stop_sequence",
                    "content": [{"type": "text", "text": "No response requested."}],
                },
            },
            [],
        ),
    ],
)
def test_what_else_stands_in_its_journal(line: dict[str, object], told: list[Signal]) -> None:
    assert terminal.read(json.dumps(line)) == told


JOURNALS = [line for path in sorted((RECORDED / "journals").iterdir()) for line in path.read_text().splitlines()]


@given(
    line=st.text() | st.sampled_from(JOURNALS).map(lambda line: line.replace('"', "'", 3)) | st.sampled_from(JOURNALS)
)
def test_any_line_of_a_journal_is_read_and_always_the_same(line: str) -> None:
    assert terminal.read(line) == terminal.read(line)


# How it is started


def test_a_conversation_that_begins_has_a_name_by_which_its_journal_is_found() -> None:
    launch = terminal.launch(WORK)
    name = launch.argv[launch.argv.index("--session-id") + 1]
    assert launch.terminal and not launch.typed and launch.stdin is None and not launch.files
    assert terminal.journal(WORK) == f"/home/ada/.claude/projects/*/{name}.jsonl"
    assert terminal.launch(WORK) == launch
    assert terminal.journal(replace(WORK, run="R-2")) != terminal.journal(WORK)
    taken_up = replace(WORK, conversation=CONVERSATION, env={"CLAUDE_CONFIG_DIR": "/odd[1]"})
    argv = terminal.launch(taken_up).argv
    assert argv[argv.index("--resume") + 1] == CONVERSATION and "--session-id" not in argv
    assert terminal.journal(taken_up) == f"/odd[[]1]/projects/*/{CONVERSATION}.jsonl"


def test_each_level_says_what_it_may_do_in_a_terminal_too() -> None:
    asks, edits, full = (terminal.launch(replace(WORK, permissions=level)) for level in PermissionLevel)
    assert asks.argv[asks.argv.index("--permission-mode") + 1] == "default"
    assert edits.argv[edits.argv.index("--permission-mode") + 1] == "acceptEdits"
    assert "--dangerously-skip-permissions" in full.argv
    assert "-p" not in asks.argv + edits.argv + full.argv
    assert terminal.leave() == "/exit"


# The real program


class Tmux:
    """A tmux server of one's own with one pane."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "s"

    def run(self, *words: str, told: str | None = None) -> str:
        """Run a command of tmux."""
        argv = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(argv, input=told, check=True, capture_output=True, text=True).stdout

    def start(self, launch: Launch, width: int, height: int) -> None:
        """Start a program as a runner would."""
        variables = [f"{name}={value}" for name, value in launch.env.items()]
        size = ["-x", str(width), "-y", str(height)]
        self.run("new-session", "-d", *size, "-c", launch.cwd, "env", "-i", *variables, *launch.argv)

    def look(self) -> Screen:
        """Return what the pane shows."""
        column, row, title = self.run("display-message", "-p", "#{cursor_x} #{cursor_y} #{pane_title}").split(" ", 2)
        return Screen(tuple(self.run("capture-pane", "-p").split("\n")[:-1]), int(column), int(row), title.strip())

    def type(self, text: str) -> None:
        """Paste a text, and send it once it is seen at the prompt."""
        self.run("load-buffer", "-", told=text)
        self.run("paste-buffer", "-p")
        wait_until(lambda: terminal.see(self.look()) is Sight.TYPED, "the text at the prompt")
        self.run("send-keys", "Enter")

    def accept(self, question: str) -> None:
        """Answer an open dialog with what it offers first; it takes no key in its first moment."""
        pressed = 0.0

        def is_gone() -> bool:
            nonlocal pressed
            screen = self.look()
            asked = terminal.asked(screen)
            if question in asked and time.monotonic() > pressed + 1:
                self.run("send-keys", "Enter")
                pressed = time.monotonic()
            is_drawn = asked or terminal.see(screen) in (Sight.BUSY, Sight.READY)
            return bool(is_drawn) and question not in asked and pressed > 0

        wait_until(is_gone, f"the end of: {question}")

    def is_alive(self) -> bool:
        """Say whether the program is still there."""
        argv = ["tmux", "-S", str(self._socket), "has-session"]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    folder = Path(tempfile.mkdtemp(prefix="covey-"))  # a socket's path must be short
    made = Tmux(folder)
    try:
        yield made
    finally:
        if made.is_alive():
            made.run("kill-server")
        shutil.rmtree(folder)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_it_is_seen_read_answered_and_left_in_a_real_terminal(
    tmux: Tmux, place: Place, tmp_path: Path, width: int, height: int
) -> None:
    # Only the repository is trusted, as its owner did once; that its worktrees are too is what this shows.
    worktree = tmp_path / "elsewhere"
    place.git("worktree", "add", "--quiet", "-b", "ada", str(worktree))
    with ModelServer() as model:
        prompt = model.add("paint", committing("colour.txt", "green\n", "Paint"))
        home = agent_environment(tmp_path / "home-of-claude", model.url(), trusted=[place.worktree])
        work = replace(
            place.work(""), worktree=str(worktree), env={**place.env, **home}, program=str(program("claude"))
        )
        tmux.start(terminal.launch(replace(work, permissions=PermissionLevel.ASK)), width, height)
        wait_until(lambda: terminal.see(tmux.look()) is Sight.READY, "an empty prompt")
        tmux.type(prompt)
        wait_until(lambda: terminal.see(tmux.look()) is Sight.ASKS, "a dialog")
        tmux.accept("Do you want to create colour.txt?")
        wait_until(lambda: "Do you want to proceed?" in terminal.asked(tmux.look()), "the next dialog")
        assert "git add -A && git commit -q -m 'Paint'" in terminal.asked(tmux.look())
        tmux.accept("Do you want to proceed?")
        wait_until(lambda: Result("Done: colour.txt is committed.") in journal(work), "the result")
        wait_until(lambda: terminal.see(tmux.look()) is Sight.READY, "an empty prompt")
        tmux.type(terminal.leave())
        wait_until(lambda: not tmux.is_alive(), "its end")
        (total,) = {signal for signal in journal(work) if isinstance(signal, Total)}
        assert total.usage.input == model.charged().usage.input
    assert place.git("show", "ada:colour.txt") == "green"


def journal(work: Assignment) -> list[Signal]:
    """Return all that a journal says so far."""
    found = glob(terminal.journal(work) or "")
    lines = Path(found[0]).read_text().splitlines() if found else []
    return [signal for line in lines for signal in terminal.read(line)]
