"""What gates do on a disk that is too small, told by how they end; run with a folder to mount that disk on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from covey.errors import Unavailable
from tests.loops.gates.test_gates import Yard
from tests.worlds.repositories import commit_files, git_out

SIZE = 3 * 1024**2


def main(folder: Path) -> None:
    """Test a tree that the disk cannot hold, and a check that the disk has no room for."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True)
    yard = Yard(folder / "yard", "off")
    try:
        git_out(yard.root, "checkout", "-q", "-b", "large")
        commit_files(yard.root, {"large": "0123456789abcdef" * (SIZE // 32)}, "Large")
        large = git_out(yard.root, "rev-parse", "HEAD")
        print("the tree:", _refused(yard, "true", large))
        git_out(yard.root, "checkout", "-q", "main")
        fills = f"head -c {SIZE} /dev/zero >filled"
        print(
            "the check:",
            _refused(yard, f"{fills} || {{ rm filled; echo No space left on device; exit 1; }}", yard.head),
        )
        print("a check that only says so:", yard.try_on("echo No space; false").passed)
    finally:
        yard.leave()


def _refused(yard: Yard, check: str, commit: str) -> str:
    try:
        outcome = yard.try_on(check, commit=commit)
    except Unavailable as error:
        return f"{error.message} {error.hint}"
    return f"it counts: {outcome}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
