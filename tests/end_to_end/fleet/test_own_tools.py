"""Agents, gates and git's filters find the tools of the user, whatever started covey; and a run finds covey."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.worlds.projects import SHELL, Line

TOOLS = ("python", "python3", "pip", "pytest", "ruff", "mypy")
LOOK = f'for each in {" ".join(TOOLS)}; do command -v $each; done; echo "${{VIRTUAL_ENV-none}}"'
WORK = f"""
{{ {LOOK}; }} > "$OUTSIDE/agent"
command -v covey > "$OUTSIDE/covey"
covey task show --json > "$OUTSIDE/task" || exit 1
ls "$(dirname "$(command -v covey)")" > "$OUTSIDE/beside"
echo new > new.txt && git add new.txt && git commit -qm new
"""


def test_agents_gates_and_filters_run_the_tools_of_the_user(made: Callable[..., Line]) -> None:
    line = made(
        SHELL + 'env = ["OUTSIDE"]\n',
        f"[merge]\ncheck = '{{ {LOOK}; }} > \"$OUTSIDE/gate\"'\n",
        files={".gitattributes": "*.txt filter=told\n"},
    )
    mine = _own_tools(line.folder / "mine")
    line.git("config", "filter.told.smudge", f"sh -c '{{ {LOOK}; }} > \"{line.outside}/filter\"; cat'")
    line.env |= {"PATH": f"{sys.prefix}/bin:{mine}:{os.environ['PATH']}", "VIRTUAL_ENV": sys.prefix}
    line.ok("run", "--agent", "sh", line.tasks({"title": "Look", "body": WORK}))
    expected = [*(f"{mine}/{each}" for each in TOOLS), "none"]
    for who in ("agent", "gate", "filter"):
        assert line.marks(who) == expected, who
    assert line.marks("covey") == [f"{line.state}/bin/covey"]
    assert line.marks("beside") == ["covey"]
    assert '"T-1"' in line.mark("task").read_text()


def _own_tools(folder: Path) -> Path:
    folder.mkdir()
    for name in TOOLS:
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    return folder
