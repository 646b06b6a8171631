"""What tests of git share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from covey.git import objects


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """Return what git was asked since this was last called: the first word of each command."""
    log, real = tmp_path / "asked", shutil.which("git")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {real} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    # On a busy machine, moments are long: a reader that goes meanwhile would be asked for once more.
    monkeypatch.setattr(objects, "IDLE_S", 600.0)
    monkeypatch.setattr(objects, "MAX_AGE_S", 600.0)

    def since() -> list[str]:
        words = log.read_text().split() if log.exists() else []
        log.write_text("")
        return words

    yield since
    objects.close()
