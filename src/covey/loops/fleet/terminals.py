"""Runs in terminals: a prompt is typed when the screen is ready for it, seen there, and only then entered."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from covey.agents.agent import Sight, Terminal
from covey.core.fleet.launches import Screen
from covey.core.fleet.runs import Run
from covey.errors import CoveyError
from covey.runners.tmux import TmuxRunner

LOOK_EVERY = 0.1
LOOKS = 30
"""How often a screen is looked at before we give up on seeing there what was typed."""
FOLDED = "[Pasted "
"""How a program shows a long text that was pasted."""
SEEN = 24
"""Characters by which a text is known again on the screen."""

log = logging.getLogger("covey.terminals")


@dataclass
class Typist:
    """Types into terminals, and never into a dialog; blocks for seconds at most, so it is called beside the loop."""

    screens: TmuxRunner
    pause: Callable[[float], None]

    def see(self, run: Run, terminal: Terminal) -> tuple[Sight, Screen | None]:
        """Return what the screen of a run says of it."""
        screen = self.screens.screen(run.id)
        return (Sight.UNKNOWN if screen is None else terminal.see(screen)), screen

    def enter(self, run: Run, terminal: Terminal, text: str) -> bool:
        """Type a text at an empty prompt, see it there, and enter it; false if the prompt never was ready for it.

        One that stands there already is only entered: a dialog, or our own end, came after it was typed.
        """
        sight = self.see(run, terminal)[0]
        if sight is not Sight.READY and not (sight is Sight.TYPED and self._shows(run, terminal, text)):
            return False
        try:
            if sight is Sight.READY:
                self.screens.paste(run.id, text)
            if not self._until(lambda: self._shows(run, terminal, text)):
                log.warning("what was typed to %s does not show on its screen; it is not entered", run.id)
                if self.see(run, terminal)[0] is Sight.TYPED:
                    self.screens.press(run.id, "C-u")  # what stands there is what we typed
                return False
            if self.see(run, terminal)[0] is not Sight.TYPED:
                return False  # a dialog came up meanwhile; Enter would answer it
            self.screens.press(run.id, "Enter")
            return self._until(lambda: not self._shows(run, terminal, text))
        except CoveyError as error:
            log.warning("%s could not be typed to: %s", run.id, error)
            return False

    def _shows(self, run: Run, terminal: Terminal, text: str) -> bool:
        screen = self.screens.screen(run.id)
        typed = "" if screen is None else terminal.typed(screen)
        wanted = "".join(text.split())
        shown = "".join(typed.split())
        folds = FOLDED in typed and len(text) > SEEN
        return bool(shown) and (folds or wanted[:SEEN] in shown or wanted[-SEEN:] in shown)

    def _until(self, good: Callable[[], bool]) -> bool:
        for _ in range(LOOKS):
            if good():
                return True
            self.pause(LOOK_EVERY)
        return False
