"""Lines that are carried from one commit to another, and which of several commits wrote them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from covey.core.comments import Shift
from covey.git.project import Project
from covey.git.run import try_git

PATIENCE = 60.0
BIG = "8m"
"""Files from this size on are not compared line by line."""
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_BLAMED = re.compile(rb"^([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?$", re.MULTILINE)
Lines = tuple[int, int]
"""The first and the last of some lines that follow one another."""


def shifts(project: Project, path: str, one: str, other: str) -> list[Shift] | None:
    """Return how the lines of a file in one commit became those in another; None if it is not in both of them."""
    words = ("-c", f"core.bigFileThreshold={BIG}", "diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv")
    asked = try_git(*words, f"{one}:{path}", f"{other}:{path}", "--", at=project.common, patience=PATIENCE)
    if asked.returncode != 0 or b"\nBinary files " in asked.stdout:
        return None
    return [_shift(*found) for found in _HUNK.findall(asked.stdout)]


def _shift(start: bytes, count: bytes, _: bytes, new_count: bytes) -> Shift:
    gone = int(count or 1)
    return Shift(int(start) + (gone == 0), gone, int(new_count or 1))  # git names the line before what is only added


def written(
    project: Project, base: str, tip: str, paths: Sequence[str], tasks: Mapping[str, str]
) -> dict[str, dict[str, list[Lines]]]:
    """Return for each file which lines of it each task wrote after `base`; `tasks` are named by their commits."""
    found: dict[str, dict[str, list[Lines]]] = {}
    for path in paths:
        words = ("blame", "--no-textconv", "--porcelain", f"{base}..{tip}", "--", path)
        asked = try_git(*words, at=project.common, env={"GIT_LITERAL_PATHSPECS": "1"}, patience=PATIENCE)
        owners: dict[str, list[Lines]] = {}
        for commit, line in _BLAMED.findall(asked.stdout if asked.returncode == 0 else b""):
            if (task := tasks.get(commit.decode())) is not None:
                _add(owners.setdefault(task, []), int(line))
        found[path] = owners
    return found


def _add(lines: list[Lines], line: int) -> None:
    if lines and lines[-1][1] == line - 1:
        lines[-1] = (lines[-1][0], line)
    else:
        lines.append((line, line))
