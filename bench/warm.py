"""Gates: a pristine room that finds what a green main built, beside a worktree in which everything is left lying."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from bench.figures import Report, median
from covey import trash
from covey.git.worktrees.worktrees import Worktrees
from tests.loops.gates.test_gates import Yard
from tests.worlds.repositories import commit_files, git_out

SOURCES = (50, 500)
"""Files that are built, a line of the shell and a moment each: at a quick look, and when it is measured."""
BUILD_SECONDS, TEST_SECONDS = 0.12, 1.0
ROUNDS = (2, 5)
MAKEFILE = f"""
check: build/program
\tsleep {TEST_SECONDS}
build/program: $(patsubst src/%.c,build/%.o,$(wildcard src/*.c))
\tcat build/*.o > $@
build/%.o: src/%.c
\t@mkdir -p build
\t@sleep {BUILD_SECONDS}
\t@cp $< $@
"""


class UsedWorktrees(Worktrees):
    """Worktrees as gates had them before: ignored files stay, and git is asked step by step."""

    def gate(
        self, name: str, commit: str, *, changed: Collection[bytes] | None = None, kept: Path | None = None
    ) -> Path:
        """Bring a worktree to a commit, but for what git ignores."""
        with self._alone(name) as lock:
            wanted = self._commit(commit)
            entry, path, is_new = self._make(name, wanted)
            self._in(entry, path, "update-ref", "--no-deref", "HEAD", wanted, lock=lock)
            self._reset(entry, path, lock, () if is_new else ("-ffd",))
            return path

    def tracked(self, name: str) -> list[bytes]:
        """Return nothing: nobody asked what a gate had deleted."""
        return []


def gates(*, quick: bool) -> Report:
    """Test one change of a source after another: as gates did before, with all that others left, and as they do now."""
    sources, rounds = SOURCES[0 if quick else 1], ROUNDS[0 if quick else 1]
    report = Report("warm", f"A gate of a project whose build takes {sources * BUILD_SECONDS:.0f} s when it is cold")
    folder = Path(tempfile.mkdtemp(prefix="covey-bench-"))
    yards = used, own = Yard(folder / "used", "on"), Yard(folder / "own", "on")
    try:
        used.runtime.worktrees = UsedWorktrees(used.project, used.runtime.worktrees.folder)
        used.gates._layered = False
        own.set(cache=("build",))
        for yard in yards:
            files = {f"src/f{number}.c": f"{number}\n" for number in range(sources)}
            commit_files(yard.root, {"Makefile": MAKEFILE, ".gitignore": "build\n", **files}, "Begin")
            yard.set(check="make check")
        cold = [_gate(yard, git_out(yard.root, "rev-parse", "HEAD")) for yard in yards]
        # The first round is not counted: it dates all files once.
        took = [[_gate(yard, _change(yard, number)) for yard in yards] for number in range(rounds + 1)][1:]
        before, now = (median([each[n] for each in took]) for n in (0, 1))
        report.add("cold", cold[1], "s", note=f"{sources} files")
        report.add("warm, a used worktree", before, "s", note="a room over all that the gates before left")
        report.add("warm, a pristine room", now, "s", note="what a green main built is there")
        report.add("pristine to used", now / before, "", at_most=1.2)
    finally:
        for yard in yards:
            yard.leave()
        trash.remove(folder)
    return report


def _change(yard: Yard, number: int) -> str:
    """Let main move on by a commit, and return it."""
    text = f"changed {time.time_ns()}\n"
    return git_out(commit_files(yard.root, {f"src/f{number}.c": text}, "Change"), "rev-parse", "HEAD")


def _gate(yard: Yard, commit: str) -> float:
    began = time.perf_counter()
    outcome = yard.try_on("make check", commit=commit, limit=600)
    assert outcome.passed is True, outcome.summary
    return time.perf_counter() - began
