"""How much work changes, counted in lines and files: a worktree with what is not committed, or many commits at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from covey.core.fleet.live import Size
from covey.errors import DidNotRun
from covey.git.identity import PLAIN_DIFF
from covey.git.overlap import branch_reader as reading
from covey.git.project import Project
from covey.git.run import git, without_unreadable
from covey.git.worktrees.checkout_status import NO_SUBMODULES, look

STAT_TIMEOUT_S = 20.0
MAX_COUNTED_FILES = 200
"""New files whose lines are counted; more are only counted as files."""
MAX_COUNTED_BYTES = 1024 * 1024
"""Bytes from which on nobody counts the lines of a new file."""


def size_of(project: Project, folder: Path, *mains: str) -> Size:
    """Return how much a worktree changes since it left main; files that git ignores do not count.

    `mains` are where main is and was: work that was carried on from an older main, or has taken a newer one in, is
    measured from where they last met, so that what others landed never counts as its own.
    """
    with look(project, folder) as seen:
        left = seen.ask("merge-base", "--end-of-options", "HEAD", *mains, patience=STAT_TIMEOUT_S)
        # Where its own work begins; the last main if git knows nothing in common.
        base = left.stdout.decode().strip() if left.returncode == 0 else mains[-1]
        words = ("diff", "--numstat", "-z", "--no-renames", *PLAIN_DIFF, NO_SUBMODULES, base, "--")
        told = seen.run(*words, patience=STAT_TIMEOUT_S)
        listed = seen.run("ls-files", "-z", "--others", "--exclude-standard", patience=STAT_TIMEOUT_S)
    lines = [entry.split(b"\t", 2) for entry in told.split(b"\0") if entry]
    plus, minus = (sum(int(line[i]) for line in lines if line[i].isdigit()) for i in (0, 1))
    new = [name for name in listed.split(b"\0") if name]
    plus += sum(_lines(folder, name) for name in new[:MAX_COUNTED_FILES])
    return Size(plus, minus, len(lines) + len(new))


def sizes_of(project: Project, main: str, tips: Sequence[str]) -> dict[str, Size]:
    """Return how much each commit that left main changes since then; a few processes for all of them.

    Those that git cannot read are left out.
    """
    try:
        return without_unreadable(lambda some: _measured(project, main, some), list(dict.fromkeys(tips)))
    except DidNotRun:
        return {}


def _measured(project: Project, main: str, tips: Sequence[str]) -> dict[str, Size]:
    looked = reading.looks(project, main, tips) if tips else {}
    pairs = {tip: look.trees for tip, look in looked.items() if look.trees is not None}
    asked = "".join(f"{one} {other}\n" for one, other in dict.fromkeys(pairs.values())).encode()
    found: dict[tuple[str, str], Size] = {}
    if not pairs:
        return {}
    words = ("diff-tree", "--stdin", "-r", "-M", "--numstat", *PLAIN_DIFF)
    pair = ("", "")
    for line in git(*words, at=project.common, stdin=asked, patience=STAT_TIMEOUT_S).splitlines():
        plus, tab, rest = line.partition(b"\t")
        if not tab:
            one, other = line.decode().split(" ")
            pair = (one, other)
            found[pair] = Size()
        else:
            minus, before = rest.partition(b"\t")[0], found[pair]
            counts = (int(plus), int(minus)) if plus.isdigit() else (0, 0)
            found[pair] = Size(before.plus + counts[0], before.minus + counts[1], before.files + 1)
    return {tip: found[trees] for tip, trees in pairs.items() if trees in found}


def _lines(folder: Path, name: bytes) -> int:
    path = folder / name.decode("utf-8", "surrogateescape")
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_COUNTED_BYTES:
            return 0
        data = path.read_bytes()
    except OSError:
        return 0
    return 0 if b"\0" in data[:8000] else data.count(b"\n") + (not data.endswith(b"\n") if data else 0)
