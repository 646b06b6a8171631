"""The rules of the page, run by the Node.js that the set-up installed; a file of `rules` holds those of one module."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.model.environment import CHECKOUT

NODE = CHECKOUT / ".cache" / "agents" / "node"
RULES = sorted((Path(__file__).parent / "rules").glob("*.mjs"))


def node() -> Path:
    """Return Node.js as the set-up installed it; without it the test fails, it is never skipped."""
    assert NODE.exists(), "node is not installed; please run: bash scripts/setup --tests"
    return NODE


@pytest.mark.parametrize("rules", RULES, ids=lambda path: path.name.split(".")[0])
def test_the_rules_of_the_page_hold(rules: Path) -> None:
    found = subprocess.run(
        [str(node()), "--test", str(rules)], capture_output=True, text=True, timeout=120, check=False, cwd=CHECKOUT
    )
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]


def test_the_rules_of_the_board_and_of_undo_are_among_them() -> None:
    assert {"columns.test.mjs", "undo.test.mjs"} <= {path.name for path in RULES}
