"""What is allowed without a question, given to a real shell: whatever is hidden near it, no file comes to be."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

from covey.core.people.commands.safe_commands import CommandVerdict, Ground, judge

LINES = 120
"""Lines that are allowed, and run."""
PIECES = (
    "touch MARK", ">MARK", "> MARK", "1>&MARK", "&>MARK", "2>MARK", ">|", "MARK", "-oMARK", "-o MARK", "'w MARK'",
    "ls", "cat", "a", "src", "'", '"', "\\", "$(", "`", ")", "(", "{", "}", "\n", "\\\n", "#", " # ", "&&", "||", ";",
    "|", "&", "|&", "<", "<<'E'", "<<E", "<<-'E'", "\tE", "E", "<<<", "2>&1", ">&2", "<(", ">(", "2>/dev/null", "cd",
    "..", "sed", "1p", "awk", "'{print}'", "echo", "$((", "))", "$'", "\\'", "[", "]", "test", "-f", "./*", "find", ".",
    "git", "status", "--", "!", "time", "then", "if", "do", "done", "A=1", "grep", "sort", "printf", "\r", "$A", "${A}",
    "uniq", "tee", "xargs",
)  # fmt: skip
BEFORE = ("ls", "cat a", "echo x", "sed -n 1p a", "cd src && ls")
BETWEEN = (" ", "; ", " && ", " | ", "\n")


def _line(chance: random.Random) -> str:
    pieces = "".join(chance.choice(PIECES) + chance.choice(" \t\0").strip("\0") for _ in range(chance.randint(2, 9)))
    return chance.choice(BEFORE) + chance.choice(BETWEEN) + pieces if chance.random() < 0.5 else pieces


def test_a_line_that_is_allowed_writes_nothing_in_a_real_shell(tmp_path: Path) -> None:
    worktree = tmp_path / "ada"
    (worktree / "src").mkdir(parents=True)
    (worktree / "a").write_text("x y\n")
    ground, chance, ran = Ground(str(worktree)), random.Random(14), 0
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    while ran < LINES:
        line = _line(chance)
        if "MARK" not in line or judge(line, ground).verdict is CommandVerdict.ASKS:
            continue
        ran += 1
        subprocess.run(
            ["bash", "-c", line], cwd=worktree, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "ada", "src"], line
