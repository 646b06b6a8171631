"""Signing: whether the user's git signs commits, and with which key it signs those that covey writes."""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path

from covey import files
from covey.errors import Invalid
from covey.git.project import Project
from covey.git.run import complaint, read_config, try_git
from covey.values import dataclass

ASK_EVERY_S = 60.0
"""Seconds after which git is asked again although no settings have changed that we know of."""
CONFIG_SETTLED_NS = 1_000_000_000
"""A file that was written since then may have been written once more without another time."""
_Stamp = tuple[str, tuple[int, ...]]
"""A file of settings, and what tells whether it was written since."""


@dataclass(frozen=True)
class _Known:
    """What git said of signing, under which settings, and until when that counts."""

    key: str | None
    settings: tuple[_Stamp, ...]
    until: float


_known: dict[Path, _Known] = {}


def key(project: Project) -> str | None:
    """Return the key that commits are signed with, None when the user's git does not sign; empty is git's own choice.

    git is asked again as soon as its settings were written.
    """
    now, seen = time.time_ns(), _stamps(project.common)
    known = _known.get(project.common)
    if known is not None and known.settings == seen and time.monotonic() < known.until:
        return known.key
    found = _ask_for_key(project)
    if _may_be_kept(seen, now):
        _known[project.common] = _Known(found, seen, time.monotonic() + ASK_EVERY_S)
    return found


def _stamps(common: Path) -> tuple[_Stamp, ...]:
    """Return the files that git reads its settings from, if none includes another, and when each was written."""
    system = os.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
    home = os.environ.get("HOME", "")
    further = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    own = [os.environ.get("GIT_CONFIG_GLOBAL")]
    if own == [None]:
        own = [f"{further}/git/config", f"{home}/.gitconfig"]
    named = [system, *(name for name in own if name), "config", "config.worktree"]
    there = [os.path.join(common, name) for name in named]  # git reads them from there
    facts = [files.status(path, follow=True) for path in there]
    return tuple(
        (path, () if fact is None else (fact.st_mtime_ns, fact.st_ctime_ns, fact.st_ino, fact.st_size))
        for path, fact in zip(there, facts, strict=True)
    )


def _may_be_kept(seen: tuple[_Stamp, ...], now: int) -> bool:
    """Say whether these files will show it when another answer is due: they are at rest, and include no others."""
    there = [(path, stamp) for path, stamp in seen if stamp]
    try:
        is_at_rest = all(now - stamp[1] > CONFIG_SETTLED_NS for _, stamp in there)
        return is_at_rest and not any(b"include" in Path(path).read_bytes().lower() for path, _ in there)
    except OSError:
        return False


def _ask_for_key(project: Project) -> str | None:
    """Ask git.

    Without a key of its own, git looks for that of the committer, and ours has none: then it is the user's.
    """
    asked = try_git("config", "--type=bool", "--get", "commit.gpgSign", at=project.common)
    if asked.returncode > 1:
        raise Invalid(f"git does not accept the setting commit.gpgSign: {complaint(asked)}.")
    if asked.stdout.strip() != b"true":
        return None
    if _setting(project, "user.signingKey") or _setting(project, "gpg.format") == "ssh":
        return ""
    who = try_git("var", "GIT_COMMITTER_IDENT", at=project.common)
    if who.returncode != 0:
        raise Invalid(
            "commit.gpgSign is on, but git knows no key: neither user.signingKey nor user.email is set.",
            hint="Set user.signingKey, or turn commit.gpgSign off in this repository.",
        )
    return who.stdout.decode(errors="replace").rpartition(">")[0] + ">"


@functools.lru_cache(maxsize=16)
def programs(common: Path) -> dict[str, str]:
    """Return the settings that name the program which signs, as they were when this process first asked.

    A session that can write the repository's settings could name another later.
    """
    pairs = read_config("--get-regexp", r"^gpg\.(format|([a-z0-9]+\.)?program)$", at=common)
    found = {key: value or "" for key, value in pairs}
    openpgp = found.get("gpg.openpgp.program") or found.get("gpg.program") or "gpg"
    named = {"gpg.format": "openpgp", "gpg.ssh.program": "ssh-keygen", "gpg.x509.program": "gpgsm"}
    return {**named, **found, "gpg.program": openpgp, "gpg.openpgp.program": openpgp}


def _setting(project: Project, name: str) -> str:
    return try_git("config", "--get", name, at=project.common).stdout.decode(errors="replace").strip()
