"""Ways round the guard: none of them brings a file to main that another holds, and each lands what nobody holds."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.worlds.projects import GOOD, PATIENCE, SHELL, Line, alive, kill
from tests.worlds.serving import wait_until

ONCE = "[board]\ntries = 1\n"
AS_IT_WAS = "as it was\n"
FILES = {f"{folder}/{name}": AS_IT_WAS for folder in ("held", "free") for name in ("leased.txt", "other.txt")}
FILES |= {f"made-{folder}/leased.txt": "mine\n" for folder in ("held", "free")}

BEGIN = """set -e
exec 2>>"{outside}/$COVEY_TASK.said"
at={folder}
file=$at/leased.txt
echo > "{outside}/{folder}.ready"
while [ ! -e "{outside}/go" ]; do sleep 0.02; done
"""
"""A session that has begun before the lease is taken: its files are older than that, and tell nothing."""


@dataclass(frozen=True)
class Way:
    """What a session does to write a file, and where it is told that it may not."""

    script: str
    late: bool = False
    """Git itself lets it pass: it is noticed afterwards, and refused when the work is handed in."""


FORGED = """export GIT_INDEX_FILE=$TMPDIR/index.$$; git read-tree HEAD
git update-index --cacheinfo "100644,$(echo mine | git hash-object -w --stdin),$file"
made=$(git commit-tree "$(git write-tree)" -p HEAD -m Mine); unset GIT_INDEX_FILE
"""
HAND_IN = 'covey task handin "$COVEY_TASK" --commit "${made:-HEAD}" >&2 || :'
REMOTE = '[ $at = free ] || git update-ref refs/remotes/origin/main "$made"; '

WAYS = {
    "a plain commit": Way('echo mine >"$file"; git commit -qam Mine'),
    "--no-verify": Way('echo mine >"$file"; git commit -qnam Mine'),
    # One after another: git fails when it meets a worktree that another git is just adding.
    "another worktree": Way(
        """flock "$TMPDIR/adding" git worktree add -q -b "covey/$COVEY_TASK-aside" "$PWD-aside"
        cd "$PWD-aside"; echo mine >"$file"; git commit -qam Mine; cd -; git merge -q "covey/$COVEY_TASK-aside\""""
    ),
    "another worktree on no branch": Way(
        """flock "$TMPDIR/adding" git worktree add -q --detach "$PWD-aside"
        cd "$PWD-aside"; echo mine >"$file"; git commit -qnam Mine; made=$(git rev-parse HEAD); cd -
        git reset -q --hard "$made\""""
    ),
    "a rename": Way('git mv "$file" "$at/renamed.txt"; git commit -qm Mine'),
    "a rename onto it": Way('git mv -f "$at/other.txt" "$file"; echo more >>"$file"; git commit -qam Mine'),
    "a symbolic link instead of it": Way('ln -sf other.txt "$file"; git commit -qam Mine'),
    "writing through a symbolic link": Way(
        'ln -s "$file" "alias-$at"; echo mine >"alias-$at"; git add .; git commit -qm M'
    ),
    "a symbolic link instead of its folder": Way("mv $at $at-old; ln -s $at-old $at; git add .; git commit -qm Mine"),
    "a path with ..": Way(
        'cd "$at"; echo mine >"../$at/../$at/leased.txt"; git add "../$at/leased.txt"; git commit -qm M'
    ),
    "another case": Way('git mv "$file" "$at/LEASED.txt"; git commit -qm Mine'),
    "another case beside it": Way('echo mine >"$at/Leased.TXT"; git add .; git commit -qm Mine'),
    "git -C": Way('echo mine >"$file"; here=$PWD; cd /; git -C "$here" commit -qam Mine'),
    "git --git-dir": Way(
        'echo mine >"$file"; cd "$at"; git --git-dir="$(git rev-parse --git-dir)" --work-tree=.. commit -qam M'
    ),
    "commit-tree": Way(
        """echo mine >"$file"; git add .; made=$(git commit-tree "$(git write-tree)" -p HEAD -m Mine)
        git update-ref "refs/heads/covey/$COVEY_TASK" "$made\""""
    ),
    "commit-tree without a file": Way(
        """export GIT_INDEX_FILE=$TMPDIR/index.$$; git read-tree HEAD
        git update-index --cacheinfo "100644,$(echo mine | git hash-object -w --stdin),$file"
        made=$(git commit-tree "$(git write-tree)" -p HEAD -m Mine); unset GIT_INDEX_FILE
        git reset -q --hard "$made\""""
    ),
    "an amended commit": Way(
        """echo more >"$at/other.txt"; git commit -qam Mine; echo mine >"$file"; git add .
        git commit -q --amend --no-edit"""
    ),
    "-c core.hooksPath=": Way('echo mine >"$file"; git -c core.hooksPath= commit -qam Mine', late=True),
    "-c core.hooksPath=/dev/null": Way(
        'echo mine >"$file"; git -c core.hooksPath=/dev/null commit -qam Mine', late=True
    ),
    "a forged index": Way(
        """git update-index --cacheinfo "100644,$(echo mine | git hash-object -w --stdin),$file"
        git commit -qm Mine; git reset -q --hard"""
    ),
    "a forged index of its own": Way(
        """export GIT_INDEX_FILE=$TMPDIR/index.$$; git read-tree HEAD
        git update-index --cacheinfo "100644,$(echo mine | git hash-object -w --stdin),$file"
        git commit -qm Mine; unset GIT_INDEX_FILE; git reset -q --hard"""
    ),
    "a forged index that calls the file unchanged": Way(
        """git update-index --cacheinfo "100644,$(echo mine | git hash-object -w --stdin),$file"
        git update-index --assume-unchanged "$file"; git commit -qm Mine; git update-index --no-assume-unchanged "$file"
        git reset -q --hard""",
        late=True,
    ),
    "a commit that no branch has": Way(FORGED + HAND_IN),
    "a commit that is handed in before anybody saw its branch move": Way(
        f"""{FORGED}git -c core.hooksPath= update-ref "refs/heads/covey/$COVEY_TASK" "$made"
        {HAND_IN}; git reset -q --hard""",
        late=True,
    ),
    "a date and a pack": Way(
        """export GIT_COMMITTER_DATE=@1000000000; echo mine >"$file"; git -c core.hooksPath= commit -qam Mine
        git checkout -q HEAD~; git repack -qad""",
        late=True,
    ),
    "a file that is gone from a folder of long ago": Way(
        'rm "$file"; touch -d "2 days ago" "$at"; git commit -qam Mine'
    ),
    "a folder that was made before": Way("rm -r $at; mv made-$at $at; git add -A; git commit -qm Mine"),
    "a remote that says so": Way(f'{FORGED}{REMOTE}git reset -q --hard "$made"'),
    "a remote that says so, afterwards": Way(
        f'echo mine >"$file"; git -c core.hooksPath= commit -qam Mine; made=HEAD; {REMOTE}', late=True
    ),
    "no environment": Way(
        """echo mine >"$file"
        env -i PATH="$PATH" git -c user.name=x -c user.email=x@example.org commit -qam Mine""",
        late=True,
    ),
    "a ref that is written by hand": Way(
        """echo mine >"$file"; git add .; made=$(git commit-tree "$(git write-tree)" -p HEAD -m Mine)
        echo "$made" >"$(git rev-parse --path-format=absolute --git-common-dir)/refs/heads/covey/$COVEY_TASK\"""",
        late=True,
    ),
}


def script(line: Line, folder: str, way: Way) -> str:
    """Return what the session does in a folder."""
    return f"TMPDIR={line.outside}\n{BEGIN.format(outside=line.outside, folder=folder)}{way.script}\n"


def run_both(line: Line, way: Way) -> str:
    """Let one session go this way in a folder that bob then holds, and another in one that nobody holds."""
    tasks = [{"title": folder, "body": script(line, folder, way)} for folder in ("held", "free")]
    running = line.begin("run", "-n", "2", "--agent", "sh", line.tasks(*tasks))
    try:
        wait_until(
            lambda: (
                running.poll() is not None or all(line.mark(f"{folder}.ready").exists() for folder in ("held", "free"))
            ),
            "both sessions at work",
        )
        line.ok("lease", "take", "held/leased.txt", "--as", "bob", "--reason", "I am rewriting it")
        line.mark("go").touch()
        said, _ = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
        running.wait()
    return said


SIX = (
    "--no-verify", "another worktree", "commit-tree", "-c core.hooksPath=", "a commit that no branch has",
    "a folder that was made before",
)  # fmt: skip
"""Each of another sort: these are tried each time; the others wait for the soak."""


def _tried(name: str) -> Any:
    return name if name in SIX else pytest.param(name, marks=pytest.mark.soak)


@pytest.mark.parametrize("name", list(map(_tried, WAYS)))
def test_no_way_leads_round_the_guard(made: Callable[..., Line], name: str) -> None:
    way = WAYS[name]
    line = made(SHELL, GOOD, ONCE, files=FILES)
    before = line.git("rev-parse", "main:held")
    said = run_both(line, way)

    assert line.statuses()["free"] == "done", (said, told(line, "free"))
    assert line.git("rev-parse", "main:free") != line.git("rev-parse", f"{first(line)}:free")
    assert line.statuses()["held"] == "blocked", said
    assert line.git("rev-parse", "main:held") == before
    assert all(line.git("rev-parse", f"{value}:held") == before for value in line.main_values())
    if not way.late:
        refusal = told(line, "held")
        assert 'is held by bob ("I am rewriting it")' in refusal
        assert "covey lease take held/" in refusal and "covey mail send bob" in refusal
        assert line.events("lease.crossed") == []
    else:
        assert [event["data"]["paths"] for event in line.events("lease.crossed")] == [["held/leased.txt"]]
        task = line.json("task", "show", line.board()["held"]["id"])
        assert "bob" in str(task)
    assert "free" not in str(line.events("lease.crossed"))


def told(line: Line, folder: str) -> str:
    """Return what git said to the session in a folder."""
    return "\n".join(line.marks(f"{line.board()[folder]['id']}.said"))


def first(line: Line) -> str:
    """Return the commit with which main began."""
    return line.git("rev-list", "--max-parents=0", "main")


def test_the_checkout_of_the_person_in_charge_is_no_way_either(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD, ONCE, files=FILES)
    line.ok("lease", "take", "held/leased.txt", "--as", "bob")
    body = f'set -e; cd "{line.root}"; printf "as it was\\n" >held/leased.txt; git commit -q --allow-empty -m Mine\n'
    line.ends(1, "run", "--agent", "sh", line.tasks({"title": "There", "body": body}))
    assert line.landed() == []


@pytest.mark.parametrize("how", [pytest.param("down", marks=pytest.mark.soak), "killed", "stands still"])
def test_a_session_may_commit_while_the_daemon_is_away_and_no_more_than_before(
    made: Callable[..., Line], how: str
) -> None:
    line = made(SHELL, GOOD, ONCE, files=FILES)
    body = f"""cd "$COVEY_WORKTREE"
echo > "{line.outside}/ready"; while [ ! -e "{line.outside}/go" ]; do sleep 0.02; done
echo mine >held/leased.txt; git commit -qam No 2>"{line.outside}/said" && exit 1
git restore --staged --worktree . ; echo mine >free/leased.txt; git commit -qam Yes
echo $? >"{line.outside}/done"
"""
    line.ok("task", "add", "Alone", "--body", body)
    line.ok("session", "new", "ada", "--agent", "sh")
    daemon = line.up()
    line.ok("session", "start", "ada")
    wait_until(line.mark("ready").exists, "a session at work")
    line.ok("lease", "take", "held/leased.txt", "--as", "bob", "--reason", "I am rewriting it")
    if how == "down":
        line.ok("down")
    else:
        kill([daemon], signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    wait_until(lambda: alive(daemon) is (how == "stands still"), "the daemon away")
    line.mark("go").touch()
    wait_until(lambda: line.marks("done") != [], "a commit without the daemon")
    assert 'is held by bob ("I am rewriting it")' in "\n".join(line.marks("said"))
    assert line.marks("done") == ["0"]
    if how == "stands still":
        kill([daemon], signal.SIGCONT)
    else:
        line.up()
    line.wait_for(line.board()["Alone"]["id"], "done")
    assert line.git("show", "main:held/leased.txt") == AS_IT_WAS.strip()
    assert line.git("show", "main:free/leased.txt") == "mine"
