"""The guard: hooks and settings that reach a session's git by its environment, and leave the repository untouched.

All worktrees share branches, tags, the stash and the configuration file. A session may change its own branches only;
the guard refuses the rest where git asks, in `reference-transaction`. The user's own hooks go on working behind it.

Before a session commits, covey is asked whether it may write those paths: in `pre-commit` about what is staged, in
`reference-transaction` about what a branch would land now and did not before, if that git was not asked already.

Before a session pushes, in `pre-push`, covey is asked whether that remote and those refs are allowed. `--no-verify`
passes by that hook: agents with hooks of their own are held back before, and what came of it is noticed afterwards.

The settings are included only inside this repository: one that a session's tests make elsewhere is as it would be.

The scripts are plain sh, since most of them run at every change of a ref. `tell` prints what covey is asked about, in
the form that `covey.git.guard.commit_paths` reads; `ask` ends a script that may not go on. The daemon is asked first.
If it is away or slow, `covey guard` decides by the same rules.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

import covey
from covey.files import write_whole
from covey.git.guard.commit_paths import main_refs
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
_RELAY = Path(covey.__file__).parent / "hooks" / "relay.py"
REFUSED_EXIT_CODE = 9
"""The exit code of `covey guard` when a commit is refused; any other code but 0 means that there is no answer."""
_ASKED_MARK = "covey-guard"
"""The file beside the index in which `pre-commit` notes which git was asked, so that it is not asked twice."""

_NO = r"""no() {
  printf 'covey: %s\n' "$1" >&2
  exit 1
}
"""
_SAY = """import json, sys
said = json.load(sys.stdin)
text = said["deny"] or said["tell"]
if text: print("covey: " + text, file=sys.stderr)
sys.exit(1 if said["deny"] else 0)"""
_ASK = r"""# Nothing here waits for a lock, runs a program of the session's choice, or leaves a path out.
look() {
  git --no-optional-locks "$@"
}
unlike_disk() {
  look diff -z --name-only --no-renames --no-relative --no-ext-diff --ignore-submodules=dirty "$@"
}
ask() {
  said=$(tell | @PYTHON@ -I -S @RELAY@ guard)
  case $said in
  '{"deny":null,"tell":null}') return 0 ;;
  '') ;;
  *)
    printf '%s' "$said" | @PYTHON@ -I -S -c @SAY@ || exit 1
    return 0
    ;;
  esac
  tell | @PYTHON@ -I -m covey guard
  case $? in
  0) ;;
  @REFUSED@) exit 1 ;;
  *) no "nobody can say now whether these files are yours to write, so nothing was committed; they are as they were. \
The owner starts the daemon with covey up, or a person commits them outside of this session." ;;
  esac
}
"""
_COMMIT_HOOK = r"""#!/bin/sh
# Written by covey: your own hook first, since it may add files; then covey is asked about what is staged.
@OWN@[ -n "${COVEY_TOKEN:-}" ] || exit 0
mine=${GIT_DIR:-.git}
# What a merge brings does not count as written by the session: its branch is looked at when it moves.
[ ! -e "$mine/MERGE_HEAD" ] || exit 0
@NO@@ASK@tell() {
  printf '%s\0/written\0' "$PWD" &&
    look diff --cached --raw -z --no-abbrev --no-renames --no-relative --no-ext-diff --ignore-submodules=none &&
    printf '/elsewhere\0' && unlike_disk && printf '/end\0'
}
ask
echo "$PPID" 2>/dev/null >"$mine/@MARK@" || :
"""
_OWN_HOOK = r"""if [ -x @HOOK@ ]; then
  @HOOK@ "$@" || exit
fi
"""
_TRANSACTION_HOOK = r"""#!/bin/sh
# Written by covey: a session changes its own branches, and nothing that all worktrees share.
@NO@lines=
moved=
if [ "$1" = prepared ]; then
  while read -r old new ref; do
    case $ref in
    refs/heads/covey/"${COVEY_TASK:-}" | refs/heads/covey/"${COVEY_TASK:-}"[./-]*)
      moved="$moved$old $new $ref
" ;;
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
@ASK@# What a branch lands is what it has beyond main: what a merge of main brings is none of it, what it undoes is.
lands() {
  base=
  [ -z "$mains" ] || base=$(look merge-base "$1" $mains)
  look diff-tree -r -z --raw --no-abbrev --no-renames --ignore-submodules=none "${base:-$nothing}" "$1"
}
tell() {
  printf '%s\0/before\0' "$PWD" && { [ -z "$old" ] || lands "$old"; } &&
    printf '/written\0' && lands "$new" &&
    printf '/elsewhere\0' && { unlike_disk "$new" 2>/dev/null || printf '/nowhere\0'; } && printf '/end\0'
}
look_at() {
  old=$1 new=$2 ref=$3
  case $new in *[!0]*) ;; *) return 0 ;; esac
  # Nothing is told as the old value also where git was not asked to compare it.
  case $old in *[!0]*) ;; *) old=$(look rev-parse --verify --quiet "$ref" ||
    look rev-parse --verify --quiet "refs/heads/covey/$COVEY_TASK") ;; esac
  [ "$old" != "$new" ] || return 0
  nothing=$(git hash-object -t tree /dev/null)
  mains=$(look for-each-ref --format='%(objectname)' @MAINS@)
  ask
}
if [ -n "$moved" ] && [ -n "${COVEY_TOKEN:-}" ]; then
  mark=${GIT_DIR:-.git}/@MARK@
  said=
  [ ! -e "$mark" ] || read -r said <"$mark" || :
  if [ "$said" = "$PPID" ]; then
    : >"$mark" # this very git was asked before; rm would be one more process
  else
    while read -r old new ref; do look_at "$old" "$new" "$ref" </dev/null; done <<END
$moved
END
  fi
fi
@CHAIN@"""
_KEEP = r"""
    lines="$lines$old $new $ref
" """.rstrip()
_CHAIN = r"""if [ -x @HOOK@ ]; then
  [ "$1" = prepared ] || exec @HOOK@ "$@"
  printf '%s' "$lines" | @HOOK@ "$@"
fi
"""
_PUSH_HOOK = r"""#!/bin/sh
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
lines=$(cat)
# From a session nothing goes out that nobody has allowed; one without its token is a session all the same.
[ -z "$lines" ] || printf '%s\n' "$lines" | @PYTHON@ -I -m covey guard push "$1" "$2" || exit 1
@PIPE@"""
_PIPE = """[ -x @HOOK@ ] || exit 0
[ -z "$lines" ] || lines="$lines
"
printf '%s' "$lines" | @HOOK@ "$@"
"""
_EXEC = """[ -x @HOOK@ ] || exit 0
exec @HOOK@ "$@"
"""
_STUB = f"""#!/bin/sh
# Written by covey: the hook that is yours goes on working for sessions.
{_EXEC}"""


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
    asking = {"pre-commit": _COMMIT_HOOK, "reference-transaction": _TRANSACTION_HOOK, "pre-push": _PUSH_HOOK}
    scripts = asking | {name: _STUB for name in _HOOKS if _may_run(hooks / name)}
    wanted = {name: _filled(script, hooks / name, project, main) for name, script in scripts.items()}
    wanted[CONFIG] = _config(folder, said.remotes)
    for name, text in wanted.items():
        if not _stands(folder / name, text):
            write_whole(folder / name, text, 0o644 if name == CONFIG else 0o755)
    for name in set(_HOOKS) - set(wanted):
        (folder / name).unlink(missing_ok=True)
    return folder


def _may_run(hook: Path) -> bool:
    """Say whether a hook exists; one that is relative may come into being in any worktree."""
    return not hook.is_absolute() or (hook.is_file() and os.access(hook, os.X_OK))


def _filled(script: str, own: Path, project: Project, main: str) -> str:
    """Return a script with its parts, and words as the shell takes them; the `own` hook runs where there is one."""
    parts = {"NO": _NO, "ASK": _ASK, "MAINS": " ".join(map(shlex.quote, main_refs(main)))}
    if _may_run(own):
        parts |= {"OWN": _OWN_HOOK, "KEEP": _KEEP, "CHAIN": _CHAIN, "PIPE": _PIPE}
    else:
        parts |= {"OWN": "", "KEEP": "", "CHAIN": "exit 0\n", "PIPE": ""}
    words = {
        "HOOK": str(own),
        "COMMON": os.path.realpath(project.common),
        "PYTHON": sys.executable,
        "RELAY": str(_RELAY),
        "SAY": _SAY,
        "MARK": _ASKED_MARK,
        "REFUSED": str(REFUSED_EXIT_CODE),
    }
    for name, text in (*parts.items(), *((name, shlex.quote(word)) for name, word in words.items())):
        script = script.replace(f"@{name}@", text)
    return script


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
