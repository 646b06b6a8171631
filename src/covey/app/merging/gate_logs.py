"""What gates printed: kept whole and packed in the state folder, by age and size no longer than other output."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable
from pathlib import Path

from covey.errors import NotFound
from covey.git.project import Project

FOLDER = "gates"
SUFFIX, DRAFT = ".log.gz", ".new"
_GATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def path_of(project: Project, gate: str) -> Path:
    """Return where the output of a gate is kept, whether it is there or not."""
    if not _GATE.fullmatch(gate):
        raise NotFound(f"There is no gate {gate!r}.")
    return project.state / FOLDER / f"{gate}{SUFFIX}"


def keep(path: Path, parts: Iterable[bytes]) -> None:
    """Keep the output of a gate, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(DRAFT)
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(file, "wb") as opened, gzip.GzipFile("", "wb", 1, opened, mtime=0) as packed:
        for part in parts:
            packed.write(part)
    draft.replace(path)
