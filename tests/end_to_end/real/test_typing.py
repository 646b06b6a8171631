"""Typing into a terminal: a real program in a real tmux, that behaves as badly as a screen can."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.agents.agent import Sight
from covey.agents.claude.claude import TERMINAL
from covey.core.fleet.launches import Launch
from covey.core.fleet.runs import Run
from covey.loops.fleet.terminals import Typist
from covey.runners.tmux import TmuxRunner
from tests.worlds.serving import wait_until

PROGRAM = """
import os, sys, tty
tty.setraw(0)
rule, manner, text = "─" * 80, sys.argv[1], ""

def draw(what, column):
    sys.stdout.write("\\x1b[2J\\x1b[H" + what.replace("\\n", "\\r\\n") + f"\\x1b[2;{column}H")
    sys.stdout.flush()

def prompt():
    draw(f"{rule}\\n❯ {text}\\n{rule}\\n  ? for shortcuts", 3 + len(text))

def dialog():
    draw(f"{rule}\\n Do you want to proceed?\\n ❯ 1. Yes\\n   2. No\\n\\n Esc to cancel", 1)

keys, asks = open(sys.argv[2], "a"), False
sys.stdout.write("\\x1b[?2004h\\x1b]2;✳ program\\x07")
prompt()
while data := os.read(0, 65536).decode():
    data = data.replace("\\x1b[200~", "").replace("\\x1b[201~", "")
    keys.write(repr(data) + "\\n")
    keys.flush()
    if asks:
        asks = data != "1"
    elif data == "\\r":
        text = ""
    elif data == "\\x15":
        text = ""
    elif manner == "swallows":
        pass
    else:
        text, asks = data, manner == "asks"
    dialog() if asks else prompt()
"""
"""Looks like Claude Code. What it does with a paste: takes it, asks something at that moment, or swallows it."""


class Typed:
    """A program in a terminal, and somebody who types there."""

    pace = 1.0
    """How long it waits between two looks, as a part of the usual."""

    def __init__(self, folder: Path, manner: str) -> None:
        self.keys = folder / "keys"
        self.runner = TmuxRunner(folder / "runs", folder / "s", columns=80, rows=24)
        self.typist = Typist(self.runner, lambda seconds: time.sleep(seconds * self.pace))
        self.run = Run(id="run-1", ordinal=1, session="ada", task="T-1", fence=1, agent="claude")
        argv = (sys.executable, "-c", PROGRAM, manner, str(self.keys))
        self.runner.start("run-1", Launch(argv=argv, cwd=str(folder), env={"LANG": "C.UTF-8"}, terminal=True))
        self.sees(Sight.READY)

    def sees(self, sight: Sight) -> None:
        """Wait until the screen is seen as something."""
        wait_until(lambda: self.typist.see(self.run, TERMINAL)[0] is sight, f"a screen that is {sight}")

    def enters(self, text: str) -> bool:
        """Type a text and enter it, if that can be done."""
        return self.typist.enter(self.run, TERMINAL, text)

    def types_in_vain(self, text: str) -> None:
        """Type a text that arrives and never shows, and give up soon."""
        self.pace = 0.1
        assert not self.enters(text)
        wait_until(lambda: self.pressed == [text], "the text")
        self.pace = 1.0

    @property
    def pressed(self) -> list[str]:
        """Return all that arrived at the program."""
        return [ast.literal_eval(line) for line in self.keys.read_text().splitlines()] if self.keys.exists() else []


@pytest.fixture
def typed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Typed]:
    made = Typed(tmp_path, request.param)
    yield made
    made.runner.stop("run-1")
    made.runner.close()


@pytest.mark.parametrize("typed", ["takes"], indirect=True)
def test_a_text_is_pasted_seen_and_entered_once(typed: Typed) -> None:
    assert typed.enters("Paint the shed green.")
    assert typed.pressed == ["Paint the shed green.", "\r"]


@pytest.mark.parametrize("typed", ["asks"], indirect=True)
def test_a_dialog_that_opens_between_paste_and_enter_gets_no_enter(typed: Typed) -> None:
    typed.types_in_vain("Paint the shed green.")
    typed.sees(Sight.ASKS)
    assert not typed.enters("Paint the shed green."), "nothing is typed into a dialog"
    typed.runner.press("run-1", "1")  # a person answers, and finds the text at the prompt again
    typed.sees(Sight.TYPED)
    assert not typed.enters("Another text."), "what somebody else may have typed is left alone"
    assert typed.enters("Paint the shed green.")
    assert typed.pressed == ["Paint the shed green.", "1", "\r"], "it was pasted once"


@pytest.mark.parametrize("typed", ["swallows"], indirect=True)
def test_a_text_that_never_shows_is_not_entered(typed: Typed) -> None:
    typed.types_in_vain("Paint the shed green.")
    assert typed.pressed == ["Paint the shed green."]
