"""A person at a terminal of their own: types covey's commands there, sees what it shows, and presses keys."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.worlds.projects import Line
from tests.worlds.serving import wait_until


class Person:
    """A terminal of 80x24 with one command in it, on a tmux server of the test's own."""

    def __init__(self, folder: Path, line: Line, words: Sequence[str]) -> None:
        self._socket = folder / "s"
        variables = {**line.env, "TERM": "screen-256color"}
        command = shlex.join([sys.executable, "-m", "covey", *words])
        shell = f"{command}; code=$?; echo; echo [it ended with $code]; exec cat"
        env = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
        size = ["-x", "80", "-y", "24"]
        self._tmux("new-session", "-d", *size, "-c", str(line.root), "--", *env, "sh", "-c", shell)
        self._tmux("set-option", "-g", "prefix", "C-q")
        self._tmux("set-option", "-g", "status", "off")

    def screen(self) -> str:
        """Return what the terminal shows."""
        return self._tmux("capture-pane", "-p").replace("\xa0", " ")

    def waits_for(self, text: str) -> str:
        """Wait until the terminal shows a text, and return the screen."""
        try:
            wait_until(lambda: text in self.screen(), text)
        except AssertionError:
            raise AssertionError(f"never saw {text!r}:\n{self.screen()}") from None
        return self.screen()

    def types(self, text: str) -> None:
        """Type a text, letter by letter."""
        self._tmux("send-keys", "-l", text)

    def presses(self, *keys: str) -> None:
        """Press keys by their names."""
        for key in keys:
            self._tmux("send-keys", key)

    def enters(self, text: str) -> None:
        """Type a text, see it, and press Enter."""
        self.types(text)
        self.waits_for(text)
        self.presses("Enter")

    def detaches(self) -> None:
        """Leave what is attached, as its last line says."""
        self.presses("C-b", "d")

    def ends_with(self, code: int) -> str:
        """Wait until the command has ended with a code, and return the screen."""
        screen = self.waits_for("[it ended with ")
        assert f"[it ended with {code}]" in screen, screen
        return screen

    def leaves(self) -> None:
        """Close the terminal, whatever is in it."""
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False)

    def _tmux(self, *words: str) -> str:
        argv = ["tmux", "-u", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@contextmanager
def person(line: Line, *words: str) -> Iterator[Person]:
    """Let a person type a command of covey in a terminal, which is closed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="covey-"))  # a socket's path must be short
    made = None
    try:
        made = Person(folder, line, words)
        yield made
    finally:
        if made is not None:
            made.leaves()
        shutil.rmtree(folder, ignore_errors=True)
