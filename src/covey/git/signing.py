"""Signing: whether the user's git signs commits, and with which key it signs those that covey writes."""

from __future__ import annotations

import functools
from pathlib import Path

from covey.errors import Invalid
from covey.git.project import Project
from covey.git.run import complaint, try_git


def key(project: Project) -> str | None:
    """Return the key that commits are signed with, None when the user's git does not sign; empty is git's own choice.

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
    asked = try_git("config", "-z", "--get-regexp", r"^gpg\.(format|([a-z0-9]+\.)?program)$", at=common)
    pairs = (entry.partition("\n") for entry in asked.stdout.decode(errors="surrogateescape").split("\0") if entry)
    found = {key: value for key, _, value in pairs}
    openpgp = found.get("gpg.openpgp.program") or found.get("gpg.program") or "gpg"
    named = {"gpg.format": "openpgp", "gpg.ssh.program": "ssh-keygen", "gpg.x509.program": "gpgsm"}
    return {**named, **found, "gpg.program": openpgp, "gpg.openpgp.program": openpgp}


def _setting(project: Project, name: str) -> str:
    return try_git("config", "--get", name, at=project.common).stdout.decode(errors="replace").strip()
