"""Main is never red, and the user's own things are never touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.worlds.projects import SCRIPTED, Line

CHECK = "sh gate.sh"
GATE = f'[merge]\ncheck = "{CHECK}"\n'


def _picture(line: Line) -> dict[str, Any]:
    """Return all of the user's that no landing may change."""
    return {
        "status": line.git("status", "--porcelain"),
        "staged": line.git("diff", "--cached"),
        "unstaged": line.git("diff"),
        "stash": line.git("stash", "list"),
        "tags": line.git("tag", "--list"),
        "branches": line.refs("refs/heads") | {"refs/heads/main": ""},
        "on": line.git("symbolic-ref", "HEAD"),
        "config": (line.common / "config").read_bytes(),
        "hooks": sorted(path.name for path in (line.common / "hooks").iterdir()),
        "dirty": (line.root / "dirty.txt").read_bytes(),
        "new": (line.root / "new.txt").read_bytes(),
    }


def _task(number: int, *, good: bool = True) -> dict[str, str]:
    value = "1" if good else "broken"
    return {"title": f"Add {number}", "body": f"write values/{number}\n    {value}\ncommit Add {number}\n"}


def test_six_land_and_the_one_that_fails_the_gate_is_blocked_with_its_story(made: Callable[..., Line]) -> None:
    gate = 'for file in values/*; do grep -qx 1 "$file" || { echo "$file is broken"; exit 1; }; done\n'
    files = {"gate.sh": gate, "values/0": "1\n", "dirty.txt": "clean\n", "staged.txt": "clean\n"}
    line = made(SCRIPTED, GATE, files=files)
    (line.root / "kept.txt").write_text("in the stash\n")
    line.git("stash", "push", "-q", "-u")
    line.git("tag", "v1")
    line.git("branch", "feature")
    (line.root / "dirty.txt").write_text("dirty\n")
    (line.root / "staged.txt").write_text("staged\n")
    line.git("add", "staged.txt")
    (line.root / "new.txt").write_text("untracked\n")
    before = _picture(line)

    tasks = [_task(number, good=number != 3) for number in range(1, 8)]
    said = line.ends(1, "run", "-n", "3", line.tasks(*tasks))

    assert "6 landed" in said
    assert sorted(line.landed()) == [f"Add {number}" for number in (1, 2, 4, 5, 6, 7)]
    bad = line.board()["Add 3"]
    assert bad["status"] == "blocked"
    shown = line.ok("task", "show", bad["id"])
    assert "values/3 is broken" in shown
    story = line.json("task", "show", bad["id"])
    assert len(story["tries"]) == 3
    assert "The check failed (exit code 1)" in story["tries"][0]["what"]
    assert "values/3 is broken" in story["tries"][0]["what"]
    assert 2 <= len(line.main_values()) <= 7  # those that waited together landed together
    line.assert_green(CHECK)
    assert _picture(line) == before | {"branches": before["branches"] | line.refs("refs/heads/covey")}
    assert set(line.refs("refs/heads/covey")) == {f"refs/heads/covey/{bad['id']}"}
    line.assert_nothing_left(branches=True)


def test_two_that_change_the_same_line_land_one_after_the_other(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GATE, files={"gate.sh": "true\n", "shared.txt": "nobody\n"})
    names = ("left", "right")
    bodies = [
        f"run touch {line.mark(name)}\nwait for {line.mark(names[1 - at])}\n"  # both begin before one has landed
        "try 2+: run git merge -q -s ours -m Resolved main\n"
        f"write shared.txt\n    {name}\nrun echo $COVEY_TRY > {name}.txt\ncommit {name}\n"
        for at, name in enumerate(names)
    ]
    wanted = [{"title": name, "body": body} for name, body in zip(names, bodies, strict=True)]
    said = line.ok("run", "-n", "2", line.tasks(*wanted))
    assert "conflicts with main in shared.txt" in said
    last, first = line.landed()
    assert {first, last} == set(names)
    assert line.git("show", "main:shared.txt") == last
    assert line.git("show", f"main:{last}.txt") == "2"
    assert "Merge " in line.json("task", "show", line.board()[last]["id"])["tries"][0]["what"]
    line.assert_nothing_left()


def test_a_report_is_done_by_its_result_and_told_to_who_needs_it(made: Callable[..., Line]) -> None:
    agent = '[agents.sh]\ncommand = ["sh", "-c", "cp \\"$1\\" prompt.txt; sh $0", "{body_file}", "{prompt_file}"]\n'
    line = made(agent, GATE, files={"gate.sh": "true\n"})
    report = {"title": "Look", "key": "look", "kind": "report", "body": "rm prompt.txt; echo it is the cache\n"}
    change = {"title": "Mend", "needs": ["look"], "body": "git add . && git commit -qm Mend\n"}
    line.ok("run", line.tasks(report, change))
    assert line.statuses() == {"Look": "done", "Mend": "done"}
    assert line.landed() == ["Mend"]
    assert "it is the cache" in line.git("show", "main:prompt.txt")
    line.assert_nothing_left()
