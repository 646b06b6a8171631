"""What gates printed: kept whole and packed in the state folder, by age and size no longer than other output."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from covey.core.texts import redact
from covey.errors import NotFound
from covey.git.project import Project

FOLDER = "gates"
SUFFIX = ".log.gz"
PART = 1 << 20
_GATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def path_of(project: Project, gate: str) -> Path:
    """Return where the output of a gate is kept, whether it is there or not."""
    if not _GATE.fullmatch(gate):
        raise NotFound(f"There is no gate {gate!r}.")
    return project.state / FOLDER / f"{gate}{SUFFIX}"


def keep(path: Path, parts: Iterable[bytes]) -> None:
    """Keep the output of a gate, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(file, "wb") as opened, gzip.GzipFile("", "wb", 1, opened, mtime=0) as packed:
        for part in parts:
            packed.write(part)
    draft.replace(path)


def read(project: Project, gate: str, *, last: int | None = None) -> bytes:
    """Return what a gate printed without the secrets in it, all of it or about its last bytes; it may be gone."""
    kept: deque[bytes] = deque()
    size = 0
    try:
        with gzip.open(path_of(project, gate)) as packed:
            while part := packed.read(PART):
                kept.append(part)
                size += len(part)
                while last is not None and size - len(kept[0]) >= last:
                    size -= len(kept.popleft())
    except FileNotFoundError:
        raise NotFound(
            f"The output of {gate} is not kept.", hint="It is kept from its end on, as long as log.keep_days says."
        ) from None
    except (OSError, EOFError) as error:
        raise NotFound(f"The output of {gate} cannot be read: {error}.") from None
    whole = b"".join(kept)
    whole = whole if last is None else whole[max(len(whole) - last, 0) :]
    return redact(whole.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def clear(project: Project, *, keep_days: float, keep_megabytes: float, now: float) -> int:
    """Remove what is too old, then the oldest of what is too much, and return how many were removed."""
    found: list[tuple[float, int, str]] = []
    folder = project.state / FOLDER
    for entry in os.scandir(folder) if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            if entry.name.endswith((SUFFIX, ".new")):
                found.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
    size, removed = sum(each for _, each, _ in found), 0
    for at, each, path in sorted(found):
        if now - at <= keep_days * 86400 and size <= keep_megabytes * 1024 * 1024:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
            removed += 1
        size -= each
    return removed
