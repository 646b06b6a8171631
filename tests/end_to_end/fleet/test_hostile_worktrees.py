"""Whatever a run leaves in the place of its worktree, its session goes on, and nothing of the user's is touched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from covey.trash import remove
from tests.worlds.projects import GOOD, SHELL, Line
from tests.worlds.repositories import commit_files, make_repository
from tests.worlds.serving import wait_until

ONCE = "[board]\ntries = 1\n"
CRAFT = (
    "tree() {{ printf '100644 {name}\\0' > ../t.$$; git hash-object -w --stdin < /dev/null | xxd -r -p >> ../t.$$; "
    "git hash-object -t tree -w --literally ../t.$$; }}; "
    "git update-ref HEAD $(git commit-tree -p HEAD -m crafted $(tree))"
)
NEST = 'python3 -c \'import os\nfor _ in range(3000): os.mkdir("d"); os.chdir("d")\''


def _attacks(line: Line, other: Path) -> dict[str, str]:
    """Return what each hostile session does in its worktree, by its name."""
    away = 'here=$PWD; cd ..; mv "$here" "$here.moved"; '
    own = "own=$(git rev-parse --absolute-git-dir); "
    return {
        "to-other": f'{away} ln -s {other} "$here"',
        "to-checkout": f'{away} ln -s {line.root} "$here"',
        "to-copy": f'{away} cp -a {other} "$here"',
        "to-file": f'{away} echo mine > "$here"',
        "own-repo": f"rm .git; cp -a {other}/.git .git",
        "entry-link": f'{own} mv "$own" "$own.moved"; ln -s {other}/.git "$own"',
        "index-link": f'{own} rm "$own/index"; ln -s {other}/tracked "$own/index"',
        "pipes": f'{own} rm "$own/index"; mkfifo "$own/index" sub; mkdir deep; mkfifo deep/.gitignore',
        "locked": f"rm -f {line.state}/worktrees/locked.lock; mkdir {line.state}/worktrees/locked.lock",
        "nested": NEST,
        "sparse": "truncate -s 3G big; echo small > small",
        "no-parent": (
            "printf 'tree %s\\nparent %s\\nauthor a <a> 0 +0000\\ncommitter a <a> 0 +0000\\n\\nx\\n' "
            "$(git rev-parse 'HEAD^{tree}') 1234567890123456789012345678901234567890 > ../c.$$; "
            "git update-ref HEAD $(git hash-object -t commit -w --literally ../c.$$)"
        ),
        "dot-git": CRAFT.format(name=".git"),
        "dot-dot": CRAFT.format(name=".."),
        "slash": CRAFT.format(name="a/b"),
    }


def _picture(folder: Path) -> dict[str, Any]:
    found = sorted(path for path in folder.rglob("*") if not path.is_dir())
    return {str(path): (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def _begin(line: Line, name: str, body: str) -> None:
    with line.client() as client:
        client.post("/api/board", {"title": name, "body": body, "assignee": name})
        client.post("/api/sessions", {"name": name, "agent": "sh"})
        client.post(f"/api/sessions/{name}/start")


def _users_repository(line: Line) -> Path:
    other = make_repository(line.folder / "other", {"tracked": "1\n"})
    commit_files(other, {"second": "2\n"}, "More")
    (other / "tracked").write_text("not committed\n")
    (other / "untracked").write_text("precious\n")
    return other


def test_hostile_worktrees_wedge_nobody_and_touch_nothing_of_the_users(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD, ONCE, "[sessions]\nmax = 40\n")
    other = _users_repository(line)
    (line.root / "notes").write_text("mine\n")
    before = _picture(other)
    line.up()
    attacks = _attacks(line, other)
    for name, body in attacks.items():
        _begin(line, name, body)
    _begin(line, "honest", "echo work > work; git add work; git commit -qm Work")
    wait_until(lambda: line.statuses()["honest"] == "done", "the honest change on main", patience=120)
    for name in attacks:
        wait_until(lambda name=name: line.statuses()[name] == "blocked", f"the end of {name}", patience=120)  # type: ignore[misc]
    assert _picture(other) == before
    assert (line.root / "notes").read_text() == "mine\n"
    assert line.git("status", "--porcelain") == "?? notes"
    _goes_on(line, [name for name in attacks if name != "locked"])
    assert _picture(other) == before
    _keeps_aside(line)
    for name in (*attacks, "honest"):
        line.ok("session", "remove", name, "--force")
    assert line.json("session", "list") == []
    line.ok("down", "--agents")
    assert _picture(other) == before
    line.ok("log", "verify")
    assert remove(line.worktrees)  # which the folder of the tests could not be, with all that is nested there


def _goes_on(line: Line, names: list[str]) -> None:
    """Give every session that did harm an honest task, which it does."""
    for name in names:
        with line.client() as client:
            body = f"echo x > {name}.txt; git add {name}.txt; git commit -qm {name}"
            client.post("/api/board", {"title": f"{name} again", "body": body, "assignee": name})
    for name in names:
        title = f"{name} again"
        wait_until(lambda title=title: line.statuses()[title] == "done", f"{title}", patience=180)  # type: ignore[misc]
    assert {line.sessions()[name]["state"] for name in names} <= {"idle", "working", "starting"}


def _keeps_aside(line: Line) -> None:
    """Assert that what could not be rescued is there as it was, listed and told."""
    kept = {each["session"]: each for each in line.json("rescue", "list") if each["aside"]}
    assert {"to-other", "to-checkout", "to-copy", "to-file", "entry-link", "index-link", "nested", "sparse"} <= set(
        kept
    )
    big = Path(kept["sparse"]["aside"]) / "big"
    assert big.stat().st_size == 3 * 1024**3
    assert (big.parent / "small").read_text() == "small\n"
    assert os.path.samefile(kept["to-other"]["aside"], line.folder / "other")
    told = [message for message in line.alerts() if "kept as it is" in message]
    assert len(told) >= 8
    assert "kept as it was" in line.ends(5, "rescue", "restore", kept["sparse"]["id"])


def test_a_session_whose_worktree_was_replaced_can_be_stopped_and_restarted(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD)
    other = _users_repository(line)
    before = _picture(other)
    line.up()
    body = (
        f'here=$PWD; cd ..; mv "$here" "$here.moved"; ln -s {other} "$here"; touch {line.outside}/$COVEY_RUN; sleep 600'
    )
    _begin(line, "ada", body)
    wait_until(lambda: len(list(line.outside.iterdir())) == 1, "the link")
    line.ok("session", "restart", "ada")
    wait_until(lambda: len(list(line.outside.iterdir())) == 2, "the link of the next run")
    line.ok("session", "stop", "ada")
    assert line.statuses()["ada"] == "todo"
    line.ok("session", "start", "ada")
    wait_until(lambda: len(list(line.outside.iterdir())) == 3, "the link of the third run")
    line.ok("session", "remove", "ada", "--force")
    line.ok("down", "--agents")
    assert _picture(other) == before
    assert subprocess.run(["git", "status"], cwd=other, capture_output=True, check=False).returncode == 0
