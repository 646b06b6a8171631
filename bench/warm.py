"""Gates: a pristine room that finds what a green main built, beside a worktree in which everything is left lying."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from bench.figures import Report, median
from covey import trash
from tests.git.repositories import commit_files, git_out
from tests.line.test_gates import Yard

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


def gates(*, quick: bool) -> Report:
    """Test one change of a source after another: as gates did before, with all that others left, and as they do now."""
    sources, rounds = SOURCES[0 if quick else 1], ROUNDS[0 if quick else 1]
    report = Report("warm", f"A gate of a project whose build takes {sources * BUILD_SECONDS:.0f} s when it is cold")
    folder = Path(tempfile.mkdtemp(prefix="covey-bench-"))
    yard = Yard(folder / "yard", "on")
    try:
        files = {f"src/f{number}.c": f"{number}\n" for number in range(sources)}
        commit_files(yard.root, {"Makefile": MAKEFILE, ".gitignore": "build\n", **files}, "Begin")
        yard.set(check="make check", cache=("build",))
        used, own = [_used(yard, folder, commit) for commit in _changes(yard, 1)], []
        cold = _gate(yard, git_out(yard.root, "rev-parse", "HEAD"))
        for commit in _changes(yard, rounds):
            used.append(_used(yard, folder, commit))
            own.append(_gate(yard, commit))
        ratio = median(own) / median(used[1:])
        report.add("cold", cold, "s", note=f"{sources} files")
        report.add("warm, a used worktree", median(used[1:]), "s", note="what the gates before left is there")
        report.add("warm, a pristine room", median(own), "s", note="what a green main built is there")
        report.add("pristine to used", ratio, "", at_most=1.2)
    finally:
        yard.leave()
        trash.remove(folder)
    return report


def _changes(yard: Yard, times: int) -> list[str]:
    """Let main move on by some commits, and return them."""
    found = []
    for number in range(times):
        text = f"changed {time.time_ns()}\n"
        found.append(git_out(commit_files(yard.root, {f"src/f{number}.c": text}, "Change"), "rev-parse", "HEAD"))
    return found


def _gate(yard: Yard, commit: str) -> float:
    began = time.perf_counter()
    outcome = yard.try_on("make check", commit=commit, limit=600)
    assert outcome.passed is True, outcome.summary
    return time.perf_counter() - began


def _used(yard: Yard, folder: Path, commit: str) -> float:
    """Do what a gate did that kept ignored files: bring one worktree to the commit, and test in a plain room."""
    path, began = folder / "used", time.perf_counter()
    if not path.exists():
        git_out(yard.root, "worktree", "add", "-q", "--detach", str(path), commit)
    git_out(path, "reset", "-q", "--hard", commit)
    git_out(path, "clean", "-q", "-ffd")
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc", "--bind", str(folder),
             str(folder), "--chdir", str(path), "make", "check"]  # fmt: skip
    subprocess.run(words, check=True, capture_output=True)
    return time.perf_counter() - began
