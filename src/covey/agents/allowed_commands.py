"""Which commands an agent may run by itself at the level `edits`, for programs that compare commands by their words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from covey.core.people.commands.safe_commands import beginnings

READING = (
    "ls", "cat", "head", "tail", "wc", "grep", "rg", "pwd", "cd", "echo", "diff", "which", "true", "stat", "cut", "tr",
    "nl", "basename", "dirname", "realpath", "readlink", "cmp", "comm", "uname", "python --version",
    "python3 --version", "node --version", "npm --version", "make --version",
)  # fmt: skip
"""What only reads, and stands in a pipe or before `&&` in what agents write all day."""
OURS = ("git", "covey")
PUSH_WITH_HOOK = "Push without --no-verify: covey is asked by that hook."
CHAINED = re.compile(r"&&|\|\||[;|\n]")


def allowed(commands: Iterable[str], gate: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the beginnings of all commands that are allowed, each single: programs take chains of them apart.

    Of what the gate runs, also others of the same kind, such as one test of it.
    """
    parts = (" ".join(part.split()) for command in commands for part in CHAINED.split(command.replace("\0", "")))
    return tuple(dict.fromkeys([*OURS, *READING, *(part for part in parts if part), *beginnings(gate)]))
