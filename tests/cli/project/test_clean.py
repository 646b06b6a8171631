"""covey clean as people and programs see it, with a daemon and without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from covey.core.history.retention import RULES
from tests.worlds.shell import Shell

LONG_AGO = 1_000_000_000.0


def _old_gate_log(shell: Shell) -> Path:
    path = shell.state / "gates" / "gate-7.log.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * 5000)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def _check(shell: Shell) -> None:
    gate_log = _old_gate_log(shell)
    said = shell.ok("clean")
    for kind, rule in RULES.items():
        assert kind in said and rule.where in said
    assert "log.transcript_megabytes" in said
    assert "gate log: 1, 5 kB" in said and "gate-7.log.gz" in said and "covey clean --yes" in said
    assert shell.ok("clean", "--dry-run", "--yes") == said, "who asks for both is only shown it"
    assert gate_log.exists()
    shown = shell.verb("clean.show", "clean")
    assert (shown["done"], shown["count"], shown["bytes"], shown["left"]) == (False, 1, 5000, 0)
    done = shell.verb("clean.run", "clean", "--yes")
    assert done["done"] and done["kinds"] == shown["kinds"]
    assert not gate_log.exists()
    assert shell.ok("clean", "--yes") == "Nothing was removed.\n"
    assert shell.ok("clean").endswith("Nothing has had its time.\n")


def test_it_shows_and_removes_without_a_daemon(shell: Shell) -> None:
    _check(shell)


def test_it_shows_and_removes_with_a_daemon(served: Shell) -> None:
    _check(served)


def test_a_session_that_went_as_it_should_leaves_nothing(shell: Shell) -> None:
    shell.ok("session", "new", "ghost", "--agent", "scripted")
    shell.ok("session", "remove", "ghost")
    assert shell.json("clean")["count"] == 0


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_a_session_may_neither_look_nor_clean(shell: Shell, words: tuple[str, ...]) -> None:
    said = shell.fails(6, "clean", *words, env={"COVEY_TOKEN": "any"})
    assert "for the owner" in said
