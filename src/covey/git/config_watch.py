"""Settings of a repository that name programs, or lead git elsewhere: noticed when they change while a session works.

A session without a sandbox can write them, and then the user's own git runs what they name. covey's looks do not heed
them; what it cannot prevent, it tells.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

from covey.git.project import Project
from covey.git.run import read_config

PROGRAMS = (
    r"^(core\.(hookspath|fsmonitor|sshcommand|gitproxy|askpass|editor|pager|alternaterefscommand|worktree|attributesfile)"
    r"|sequence\.editor|pager\..*|interactive\.difffilter|diff\.external|init\.templatedir|imap\.tunnel|svn\.authorsprog"
    r"|(filter|diff|merge|difftool|mergetool|guitool|tar|trailer|man|browser|hook)"
    r"\..*\.(clean|smudge|process|driver|command|cmd|textconv|path)|credential\.(.*\.)?helper|instaweb\..*"
    r"|gpg\.(.*\.)?(program|defaultkeycommand)|sendemail\.(.*\.)?(.*cmd|smtpserver)"
    r"|remote\..*\.(uploadpack|receivepack|vcs|promisor|url|pushurl|proxy)|url\..*|https?\..*|bundle\..*|fetch\.bundleuri"
    r"|submodule\..*\.update|alias\..*|protocol\..*|include(if\..*)?\.path|extensions\..*|uploadpack\.packobjectshook"
    r"|lfs\.(extension|customtransfer)\..*)$"
)
"""Every key by which a repository's own settings let git run a program, lead to such a key, or send git elsewhere."""
SETTINGS_FILES = (
    "commondir",
    ".git",
    "config.worktree",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "shallow",
    "objects/info/alternates",
)
"""Files in the repository's folder by which git reads other settings, commits or objects than are there."""


def read(project: Project) -> dict[str, str]:
    """Return what stands in the settings and files by which git could be led astray, by name."""
    found: dict[str, str] = {}
    for key, said in read_config("--local", "--includes", "--get-regexp", PROGRAMS, at=project.common):
        value = said or ""
        found[key] = f"{found[key]}\n{value}" if key in found else value  # each of several values counts
    found |= {f"the file {name}": said for name in SETTINGS_FILES if (said := _sum(project.common / name))}
    with contextlib.suppress(OSError), os.scandir(project.common / "hooks") as listed:
        names = [entry.name for entry in listed if not entry.name.endswith(".sample")]
        found |= {f"the hook {name}": _sum(project.common / "hooks" / name) for name in names}
    return found


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return the names of what is not as it was, in order."""
    return sorted(name for name in {**before, **after} if before.get(name) != after.get(name))


def _sum(path: Path) -> str:
    """Return what tells a file from another; nothing if there is none, or an empty folder, which is nothing to git."""
    try:
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode) and not os.listdir(path):  # Codex's sandbox leaves some
            return ""
        if not path.is_file() or path.is_symlink():
            return f"no plain file, {found.st_ino}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
