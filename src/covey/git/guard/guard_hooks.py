"""The scripts of the guard, as git runs them for a session: plain sh, since most of them run at every change of a ref.

`tell` prints what covey is asked about, in the form that `covey.git.guard.commit_paths` reads; `ask` ends a script that
may not go on. The daemon is asked first. If it is away or slow, `covey guard` decides by the same rules.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import covey
from covey.git.guard.commit_paths import main_refs

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
"""
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
"""
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


def before_commit(own: Path) -> str:
    """Return the hook that asks about what is staged, behind the user's own."""
    return _filled(_COMMIT_HOOK, OWN=_OWN_HOOK if may_run(own) else "", NO=_NO, ASK=_ASK, HOOK=str(own))


def transaction(own: Path, main: str) -> str:
    """Return the hook that keeps a session to its own branches, and asks about what they come to have."""
    chained = may_run(own)
    script = _TRANSACTION_HOOK + (_CHAIN if chained else "exit 0\n")
    mains = " ".join(map(shlex.quote, main_refs(main)))
    return _filled(script.replace("@MAINS@", mains), NO=_NO, ASK=_ASK, KEEP=_KEEP if chained else "", HOOK=str(own))


def before_push(own: Path, common: Path) -> str:
    """Return the hook that keeps a session from pushing into its own repository, and asks about every other."""
    return _filled(_PUSH_HOOK + (_PIPE if may_run(own) else ""), COMMON=os.path.realpath(common), HOOK=str(own))


def stub(own: Path) -> str:
    """Return a hook that does nothing but run the user's own."""
    return _filled(_STUB, HOOK=str(own))


def may_run(hook: Path) -> bool:
    """Say whether a hook exists; one that is relative may come into being in any worktree."""
    return not hook.is_absolute() or (hook.is_file() and os.access(hook, os.X_OK))


def _filled(script: str, **parts: str) -> str:
    """Return a script with its parts, and with words that the shell takes as they are."""
    for name in ("OWN", "NO", "ASK", "KEEP"):
        script = script.replace(f"@{name}@", parts.get(name, ""))
    words = {"HOOK": parts["HOOK"], "COMMON": parts.get("COMMON", "")}
    words |= {
        "PYTHON": sys.executable,
        "RELAY": str(_RELAY),
        "SAY": _SAY,
        "MARK": _ASKED_MARK,
        "REFUSED": str(REFUSED_EXIT_CODE),
    }
    for name, word in words.items():
        script = script.replace(f"@{name}@", shlex.quote(word))
    return script
