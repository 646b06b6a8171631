"""The guard: hooks and settings that reach a session's git by its environment, and leave the repository untouched.

All worktrees share branches, tags, the stash and the configuration file. A session may change its own branches only;
the guard refuses the rest where git asks, in `reference-transaction`. The user's own hooks go on working behind it.

The settings are included only inside this repository: one that a session's tests make elsewhere is as it would be.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from covey.git.entries import write_whole
from covey.git.project import Project
from covey.git.run import try_git

CONFIG = "config"
_HOOKS = (
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg",
    "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "post-rewrite", "pre-auto-gc",
    "sendemail-validate", "post-index-change", "push-to-checkout",
)  # fmt: skip
_TRANSACTION = "reference-transaction"
_BEFORE_PUSH = "pre-push"
_REFUSE = r"""#!/bin/sh
# Written by covey: a session changes its own branches, and nothing that all worktrees share.
no() {
  printf 'covey: %s\n' "$1" >&2
  exit 1
}
lines=
if [ "$1" = prepared ]; then
  while read -r old new ref; do
    case $ref in
    refs/heads/covey/"${COVEY_TASK:-}" | refs/heads/covey/"${COVEY_TASK:-}"[./-]*) ;;
    refs/heads/covey/*) [ -z "${COVEY_TASK:-}" ] || no "the branch ${ref#refs/heads/} belongs to another task: \
commit on covey/$COVEY_TASK." ;;
    refs/heads/*) no "a session cannot change the branch ${ref#refs/heads/}: commit on your own branch, \
or begin the name of a new one with covey/." ;;
    refs/stash) no "all worktrees share one stash, so a session cannot use it: commit on your own branch instead." ;;
    refs/tags/*) no "a session cannot change the tag ${ref#refs/tags/}: name a commit by its hash, \
and ask for a tag in your result." ;;
    refs/covey/* | refs/replace/*) no "a session cannot change $ref: commit on your own branch instead." ;;
    esac@KEEP@
  done
fi
"""
_KEEP = r"""
    lines="$lines$old $new $ref
" """.rstrip()
_CHAIN = r"""if [ -x @HOOK@ ]; then
  [ "$1" = prepared ] || exec @HOOK@ "$@"
  printf '%s' "$lines" | @HOOK@ "$@"
fi
"""
_PUSH = r"""#!/bin/sh
# Written by covey: git forgets a session's settings when it pushes into a repository of this machine.
place=${2#file://}
[ -d "$place" ] || place=$place.git
if [ -d "$place" ]; then
  here=$PWD
  cd -P "$place" || exit 1
  link=.git
  [ ! -f .git ] || read -r link <.git
  link=${link#gitdir: }
  [ ! -d "$link" ] || cd -P "$link" || exit 1
  case $PWD/ in
  @COMMON@/*)
    printf 'covey: %s\n' "a session cannot push into its own repository: commit on your own branch, \
and covey lands it." >&2
    exit 1
    ;;
  esac
  cd "$here" || exit 1
fi
"""
_EXEC = """[ -x @HOOK@ ] || exit 0
exec @HOOK@ "$@"
"""
_STUB = f"""#!/bin/sh
# Written by covey: the hook that is yours goes on working for sessions.
{_EXEC}"""


def write_guard(project: Project, folder: Path) -> Path:
    """Bring the guard in a folder up to date with the user's hooks and remotes, and return the folder."""
    hooks, remotes = _settings(project)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {CONFIG: _config(folder, remotes), _TRANSACTION: _transaction(hooks)}
    wanted |= {name: _STUB.replace("@HOOK@", _word(hooks / name)) for name in _HOOKS if _may_run(hooks / name)}
    wanted[_BEFORE_PUSH] = _push(project, hooks)
    for name, text in wanted.items():
        if not _stands(folder / name, text):
            write_whole(folder / name, text, 0o644 if name == CONFIG else 0o755)
    for name in set(_HOOKS) - set(wanted):
        (folder / name).unlink(missing_ok=True)
    return folder


def session_env(project: Project, name: str, guard: Path, path: Path) -> dict[str, str]:
    """Return what makes git, in the worktree of a session, that session's own: who it is, and the guard's settings."""
    inside = re.sub(r"([*?\[\]\\])", r"\\\1", os.path.realpath(project.common))
    settings = (f"includeIf.gitdir:{inside}.path", f"includeIf.gitdir:{inside}/.path")
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, key in enumerate(settings):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": str(guard / CONFIG)}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": name, f"GIT_{who}_EMAIL": f"{name}@agents.local"}
    # Nothing may wait for a person; and where a worktree's link is lost, no repository around it is taken for it.
    silent = {"GIT_EDITOR": ":", "GIT_SEQUENCE_EDITOR": ":", "GIT_MERGE_AUTOEDIT": "no", "GIT_PAGER": "cat"}
    return {**env, **silent, "GIT_TERMINAL_PROMPT": "0", "GIT_CEILING_DIRECTORIES": str(path.parent)}


def _settings(project: Project) -> tuple[Path, list[str]]:
    """Return the folder of the user's hooks, relative if it is so for each checkout, and the names of the remotes."""
    asked = try_git("config", "--null", "--get-regexp", r"^(core\.hookspath|remote\..*\.(url|fetch))$", at=project.root)
    pairs = [line.partition("\n") for line in asked.stdout.decode(errors="surrogateescape").split("\0") if line]
    named = [value for key, _, value in pairs if key == "core.hookspath"]
    hooks = Path(named[-1]).expanduser() if named and named[-1] else project.common / "hooks"
    return hooks, sorted({key.removeprefix("remote.").rpartition(".")[0] for key, _, _ in pairs if key[:6] == "remote"})


def _config(folder: Path, remotes: list[str]) -> str:
    quoted = str(folder).replace("\\", "\\\\").replace('"', '\\"')
    # Not signed: that is the user's key, and asking for it would wait for a person. Branches follow nothing: that
    # would be written into the configuration that all share. Refs stay unpacked: packing main looks like moving it.
    lines = [
        "[core]", f'hooksPath = "{quoted}"', "fsmonitor = false", "[gc]", "auto = 0", "packRefs = false",
        "[maintenance]", "auto = false", "[advice]", "detachedHead = false", "[commit]", "gpgSign = false",
        "[tag]", "gpgSign = false", "[branch]", "autoSetupMerge = false", "autoSetupRebase = never",
        "[rebase]", "updateRefs = false", "[fetch]", "pruneTags = false",
    ]  # fmt: skip
    for name in remotes:
        section = name.replace("\\", "\\\\").replace('"', '\\"')
        lines += [f'[remote "{section}"]', "tagOpt = --no-tags", "pruneTags = false"]
    return "\n".join(lines) + "\n"


def _transaction(hooks: Path) -> str:
    own = hooks / _TRANSACTION
    if not _may_run(own):
        return _REFUSE.replace("@KEEP@", "") + "exit 0\n"
    return _REFUSE.replace("@KEEP@", _KEEP) + _CHAIN.replace("@HOOK@", _word(own))


def _push(project: Project, hooks: Path) -> str:
    own = hooks / _BEFORE_PUSH
    guard = _PUSH.replace("@COMMON@", shlex.quote(os.path.realpath(project.common)))
    return guard if not _may_run(own) else guard + _EXEC.replace("@HOOK@", _word(own))


def _may_run(hook: Path) -> bool:
    """Say whether a hook exists; one that is relative may come into being in any worktree."""
    return not hook.is_absolute() or (hook.is_file() and os.access(hook, os.X_OK))


def _word(hook: Path) -> str:
    return shlex.quote(str(hook))


def _stands(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape") == text and (
            path.name == CONFIG or os.access(path, os.X_OK)
        )
    except OSError:
        return False
