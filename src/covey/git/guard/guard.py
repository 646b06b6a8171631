"""The guard: hooks and settings that reach a session's git by its environment, and leave the repository untouched.

All worktrees share branches, tags, the stash and the configuration file. A session may change its own branches only;
the guard refuses the rest where git asks, in `reference-transaction`. The user's own hooks go on working behind it.

Before a session commits, covey is asked whether it may write those paths: in `pre-commit` about what is staged, in
`reference-transaction` about what a branch would land now and did not before, if that git was not asked already.

Before a session pushes, in `pre-push`, covey is asked whether that remote and those refs are allowed. `--no-verify`
passes by that hook: agents with hooks of their own are held back before, and what came of it is noticed afterwards.

The settings are included only inside this repository: one that a session's tests make elsewhere is as it would be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from covey.files import write_whole
from covey.git.guard import guard_hooks
from covey.git.identity import NO_PROMPT, session_author
from covey.git.project import Project
from covey.git.run import quoted, read_config, settings
from covey.values import dataclass

CONFIG = "config"
_ASKED = r"^(core\.hookspath|remote\..*\.(url|fetch)|user\.(name|email)|init\.defaultbranch)$"
_HOOKS = (
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-merge-commit", "prepare-commit-msg",
    "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "post-rewrite", "pre-auto-gc",
    "sendemail-validate", "post-index-change", "push-to-checkout",
)  # fmt: skip
_BEFORE_COMMIT = "pre-commit"
_REF_TRANSACTION = "reference-transaction"
_BEFORE_PUSH = "pre-push"


@dataclass(frozen=True)
class Settings:
    """What the user has set of git that a session or a gate is to find."""

    hooks: Path
    """The folder of the user's own hooks, relative if it is so for each checkout."""
    remotes: tuple[str, ...]
    person: tuple[tuple[str, str], ...]
    """Who the person is, and how a repository begins: names of settings and what they say."""


def write_guard(project: Project, folder: Path, main: str = "main", said: Settings | None = None) -> Path:
    """Bring the guard in a folder up to date with the user's hooks and remotes, and return the folder."""
    said = said or read_settings(project)
    hooks = said.hooks
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {
        CONFIG: _config(folder, said.remotes),
        _BEFORE_COMMIT: guard_hooks.before_commit(hooks / _BEFORE_COMMIT),
        _REF_TRANSACTION: guard_hooks.transaction(hooks / _REF_TRANSACTION, main),
        _BEFORE_PUSH: guard_hooks.before_push(hooks / _BEFORE_PUSH, project.common),
    }
    wanted |= {name: guard_hooks.stub(hooks / name) for name in _HOOKS if guard_hooks.may_run(hooks / name)}
    for name, text in wanted.items():
        if not _stands(folder / name, text):
            write_whole(folder / name, text, 0o644 if name == CONFIG else 0o755)
    for name in set(_HOOKS) - set(wanted):
        (folder / name).unlink(missing_ok=True)
    return folder


def session_env(project: Project, name: str, guard: Path, path: Path) -> dict[str, str]:
    """Return what makes git, in the worktree of a session, that session's own: who it is, and the guard's settings."""
    inside = re.sub(r"([*?\[\]\\])", r"\\\1", os.path.realpath(project.common))
    env = settings({f"includeIf.gitdir:{inside}{end}.path": str(guard / CONFIG) for end in ("", "/")})
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": name, f"GIT_{who}_EMAIL": session_author(name)[1]}
    # Nothing may wait for a person; and where a worktree's link is lost, no repository around it is taken for it.
    silent = {"GIT_EDITOR": ":", "GIT_SEQUENCE_EDITOR": ":", "GIT_MERGE_AUTOEDIT": "no", "GIT_PAGER": "cat"}
    return {**env, **silent, **NO_PROMPT, "GIT_CEILING_DIRECTORIES": str(path.parent)}


def read_settings(project: Project) -> Settings:
    """Return what the user's files of git say."""
    pairs = [(key, value or "") for key, value in read_config("--get-regexp", _ASKED, at=project.common)]
    named = [value for key, value in pairs if key == "core.hookspath"]
    return Settings(
        hooks=Path(named[-1]).expanduser() if named and named[-1] else project.common / "hooks",
        remotes=tuple(sorted({key[7:].rpartition(".")[0] for key, _ in pairs if key.startswith("remote.")})),
        person=tuple((key, value) for key, value in pairs if key.startswith(("user.", "init."))),
    )


def _config(folder: Path, remotes: Iterable[str]) -> str:
    # Not signed: that is the user's key, and asking for it would wait for a person. Branches follow nothing: that
    # would be written into the configuration that all share. Refs stay unpacked: packing main looks like moving it.
    lines = [
        "[core]", f"hooksPath = {quoted(str(folder))}", "fsmonitor = false", "[gc]", "auto = 0", "packRefs = false",
        "[maintenance]", "auto = false", "[advice]", "detachedHead = false", "[commit]", "gpgSign = false",
        "[tag]", "gpgSign = false", "[branch]", "autoSetupMerge = false", "autoSetupRebase = never",
        "[rebase]", "updateRefs = false", "[fetch]", "pruneTags = false",
    ]  # fmt: skip
    for name in remotes:
        lines += [f"[remote {quoted(name)}]", "tagOpt = --no-tags", "pruneTags = false"]
    return "\n".join(lines) + "\n"


def _stands(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape") == text and (
            path.name == CONFIG or os.access(path, os.X_OK)
        )
    except OSError:
        return False
