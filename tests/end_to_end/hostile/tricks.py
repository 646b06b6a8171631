"""A grammar of hostile work: what a bad agent does with git, its worktree and the gate, as scripts of a shell.

A hostile task is one to three tricks, in any order. Most end in work that is handed in and must be sent back, blocked,
or held for a person; some in work that may land. Nothing of it may cost anybody else anything.
"""

from __future__ import annotations

import random
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.end_to_end.hostile.craft import WHATS

CRAFT = Path(__file__).with_name("craft.py")
NEST = 'python3 -c \'import os; [(os.mkdir("d"), os.chdir("d")) for _ in range(3000)]\''
PRELUDE = f"""
branch=refs/heads/covey/$COVEY_TASK
bare() {{ git -c core.hooksPath=/dev/null "$@"; }}          # a git that goes round the guard
save() {{ git add -A && git commit -qm "$1"; }}
redden() {{ echo broken > "values/$COVEY_TASK"; save Red; }}
craft() {{ {shlex.quote(sys.executable)} -I {shlex.quote(str(CRAFT))} "$branch" "$1"; }}
nest() {{ {NEST}; }}
replace() {{ cd / && mv "$COVEY_WORKTREE" "$COVEY_WORKTREE.gone" && ln -s "$1" "$COVEY_WORKTREE"; }}
common() {{ git rev-parse --path-format=absolute --git-common-dir 2>&-; }}
at_home() {{ [ ! -L "$COVEY_RUN_FOLDER" ] && leads "$(pwd -P) $(common)"; }}
leads() {{ case "$1" in "$COVEY_WORKTREE "|"$COVEY_WORKTREE {{root}}/.git") ;; *) false ;; esac; }}
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
"""
"""What the scripts below are written in."""


@dataclass(frozen=True)
class Trick:
    """One thing that a bad agent does."""

    name: str
    script: str


def gate(name: str, script: str) -> Trick:
    """Return work that does something in the gate, and does not pass it."""
    return Trick(name, f"cat > parts/$COVEY_TASK.sh <<'PART'\n{script}\nexit 1\nPART\nsave Gate")


TREES = (
    *(Trick(f"a crafted commit: {what}", f"craft {what}") for what in WHATS),
    Trick(
        "a tree of 1,500 levels",
        """bare fast-import --quiet --force <<IMPORT
commit $branch
committer Eve <eve@example.org> 1700000000 +0000
data 5
Deep

from $branch^0
M 100644 inline $(printf 'd/%.0s' $(seq 1500))x
data 3
ok

IMPORT""",
    ),
    Trick("a filter that is required and missing", 'echo "* filter=none" > .gitattributes; save Filter'),
    Trick("an encoding that does not fit", 'echo "*.md working-tree-encoding=UTF-16" > .gitattributes; save Encoding'),
)
REFS = (
    Trick("its branch as a link to main", 'bare symbolic-ref "$branch" refs/heads/main'),
    Trick("its branch as a link to itself", 'bare symbolic-ref "$branch" "$branch"'),
    Trick(
        "its branch as a link to another's",
        """others=$(git for-each-ref --format='%(refname)' refs/heads/covey | grep -v "^$branch$" | head -n 1)
bare symbolic-ref "$branch" "${others:-refs/heads/none}" """,
    ),
    Trick("main as a link to its branch", 'redden; bare symbolic-ref refs/heads/main "$branch"'),
    Trick("main moved to red work", "redden; bare update-ref refs/heads/main HEAD"),
    Trick(
        "covey's own refs as links to main",
        """for ref in $(git for-each-ref --format='%(refname)' refs/covey | head -n 5); do
    bare symbolic-ref "$ref" refs/heads/main
done""",
    ),
    Trick(
        "covey's own refs deleted",
        """for ref in $(git for-each-ref --format='%(refname)' refs/covey | head -n 5); do
    bare update-ref -d "$ref"
done""",
    ),
    Trick("a branch below its branch", 'bare update-ref -d "$branch"; bare update-ref "$branch/x" refs/heads/main'),
    Trick("a lock on its branch", 'touch "$(git rev-parse --git-common-dir)/$branch.lock"'),
)
WORKTREES = (
    Trick("a worktree that links to another repository", 'replace "{other}"'),
    Trick("a worktree that links to the user's checkout", 'replace "{root}"'),
    Trick("a worktree that is gone", 'cd / && rm -rf "$COVEY_WORKTREE"'),
    Trick("a worktree that is a file", 'cd / && rm -rf "$COVEY_WORKTREE" && touch "$COVEY_WORKTREE"'),
    Trick("a .git that names another repository", 'echo "gitdir: {other}/.git" > .git'),
    Trick("a .git that is a repository", "rm .git && git init -q . && save Own"),
    Trick(
        "a common folder with a filter",
        """entry=$(git rev-parse --absolute-git-dir)
git init -q --bare "$scratch/evil"
git --git-dir="$scratch/evil" config filter.x.clean "touch '{marker}'; cat"
git --git-dir="$scratch/evil" config core.fsmonitor "touch '{marker}'; false"
echo "* filter=x" > .gitattributes
echo "$scratch/evil" > "$entry/commondir" """,
    ),
    Trick("3,000 folders in each other", "nest"),
    Trick("a file of 3 GB with nothing in it", "truncate -s 3G sparse.bin"),
    Trick("a pipe that nobody fills", "mkfifo pipe"),
    Trick("folders that cannot be written", "mkdir -p locked/deep; touch locked/deep/x; chmod -R a-w locked values"),
    Trick("links to the user's things", 'ln -s "{other}" there; ln -s "{root}/mine.txt" mine; ln -s / all'),
    Trick("an index of garbage", 'head -c 100 /dev/urandom > "$(git rev-parse --git-dir)/index"'),
    Trick("a HEAD of garbage", 'echo "ref: refs/heads/../../x" > "$(git rev-parse --git-dir)/HEAD"'),
    Trick("a lock on its index", 'touch "$(git rev-parse --git-dir)/index.lock"'),
)
GATES = (
    gate("a gate that cannot write", "chmod -R a-w ."),
    gate("a gate with 3,000 folders", NEST),
    gate("a gate that floods", "yes flood | head -c 30000000"),
    gate("a gate whose programs stay behind", "(setsid sleep 600 >/dev/null 2>&1 &)"),
    gate("a gate that deletes what it tests", "rm -rf values README.md"),
    gate(
        "a gate that leaves a poisoned build",
        "mkdir -p build; for n in $(seq 200); do touch build/EVE-$n.ok build/MALLO-$n.ok build/TRUDY-$n.ok; done",
    ),
    gate(
        "a gate that is after the user's things",
        """echo evil >> "{home}/.bashrc"; echo evil > "{home}/.ssh/id"; rm -rf "{other}"/*
cat "{state}/owner.token" > "{root}/stolen" """,
    ),
    Trick("a red value", "redden"),
    Trick("a check that always passes", 'echo "exit 0" > check.sh; redden'),
    Trick("a test that deletes what it tests", 'echo "rm -rf values check.sh" > parts/$COVEY_TASK.sh; redden'),
)
NOTES = (
    Trick(
        "a mark of a landing that leads to the user's file", 'ln -sf "{other}/novel.txt" "{root}/.git/covey-landing"'
    ),
    Trick(
        "a mark of a landing that lands red work",
        """redden
cat > "$scratch/mark" <<MARK
{"main": "main", "expected": "$(git rev-parse main)", "commit": "$(git rev-parse HEAD)", "late": false, "began": 0,
 "locks": ["{other}/draft.txt"]}
MARK
mv -fT "$scratch/mark" "{root}/.git/covey-landing" """,
    ),
    Trick("a worktree of main of its own", 'git worktree add -q -f "$COVEY_WORKTREE.main" main'),
    Trick(
        "entries of worktrees that are folders, or lead elsewhere",
        """for name in a b; do mkdir -p "{root}/.git/worktrees/$COVEY_TASK-$name"; done
cd "{root}/.git/worktrees"
mkdir -p "$COVEY_TASK-a/gitdir" "$COVEY_TASK-a/rebase-merge/head-name"
echo "ref: refs/heads/main" > "$COVEY_TASK-b/HEAD"
echo ../.. > "$COVEY_TASK-b/commondir"
echo "{other}/.git" > "$COVEY_TASK-b/gitdir" """,
    ),
    Trick(
        "refs in the way of covey's",
        """git for-each-ref --format='delete %(refname)' refs/covey/tasks | bare update-ref --stdin
bare update-ref refs/covey/tasks HEAD
bare update-ref -d refs/covey/landed
bare update-ref refs/covey/landed/x HEAD""",
    ),
    Trick(
        "branches for tasks that are yet to come",
        """redden
for who in ANN BEN CAT; do for n in $(seq 30); do
    git rev-parse -q --verify "refs/heads/covey/$who-$n" > "$scratch/known" && continue
    echo "create refs/heads/covey/$who-$n $(git rev-parse HEAD)"
    echo "update refs/covey/tasks/$who-$n $(git rev-parse HEAD)"
done; done | bare update-ref --stdin""",
    ),
    Trick(
        "folders for runs that are yet to come",
        """cd "{state}/runs"
for n in $(seq 900); do
    mkdir "run-$n" 2>&- || continue
    echo 0 > "run-$n/rc"; ln -s stopped "run-$n/started"; ln -s "{other}/draft.txt" "run-$n/prompt.md"
done""",
    ),
    Trick(
        "files of its run that lead to the user's",
        """cd "$COVEY_RUN_FOLDER"
for name in hooks missed journal journal.new prompt.md rc.new lost failure held transcript.gz transcript.gz.new; do
    ln -sf "{other}/novel.txt" "$name"
done""",
    ),
    Trick(
        "pipes in the folder of its run",
        """cd "$COVEY_RUN_FOLDER"
for name in hooks missed journal prompt.md body errors output rc.new transcript.gz; do
    rm -f "$name"; mkfifo "$name"
done""",
    ),
    Trick("an end that it writes itself", 'cd "$COVEY_RUN_FOLDER"; echo 0 > rc; touch lost failure; sleep 1; redden'),
    Trick("a run that never began, it says", 'cd "$COVEY_RUN_FOLDER"; echo 127 > rc; echo "It is full." > failure'),
    Trick(
        "a folder of its run that links to another repository",
        """cd "{state}/runs"
mine=$(basename "$COVEY_RUN_FOLDER"); mv "$mine" "$mine.gone" && ln -s "{other}" "$mine" """,
    ),
)
KINDS = (TREES, REFS, WORKTREES, GATES, NOTES)


def draw(chance: random.Random) -> tuple[Trick, ...]:
    """Return the tricks of one hostile task."""
    return tuple(chance.choice(chance.choice(KINDS)) for _ in range(chance.choice((1, 1, 1, 2, 2, 3))))


def body(tricks: tuple[Trick, ...], places: dict[str, str]) -> str:
    """Return the script of a hostile task; a trick that fails does not keep the next from being tried.

    One whose worktree leads elsewhere by now plays no further trick there: what it does to others' things with its own
    hands, or its own git by settings of its own, is not what is tried here.
    """
    parts = [
        f'# {each.name}\n(\ncd "$COVEY_WORKTREE" && at_home || exit 0\n{each.script}\n) </dev/null' for each in tricks
    ]
    script = "\n".join((PRELUDE, *parts, "exit 0")) + "\n"
    for name, value in places.items():
        script = script.replace("{" + name + "}", value)
    return script
