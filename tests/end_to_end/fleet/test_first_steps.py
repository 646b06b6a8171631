"""From a fresh repository to main: init, an agent, a gate, covey run, and no other step."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from tests.worlds.projects import GOOD, NOTE, Line


def _begun(made: Callable[..., Line], *settings: str) -> Line:
    """Do what a newcomer does: init, then add to the covey.toml that it made."""
    line = made(init=False)
    line.ok("init")
    file = line.root / "covey.toml"
    text = file.read_text()
    for each in settings:
        header = each.partition("\n")[0]
        text = text.replace(f"\n{header}\n", f"\n{each}") if f"\n{header}\n" in text else text + each
    file.write_text(text)
    return line


def test_two_titles_land(made: Callable[..., Line]) -> None:
    line = _begun(made, NOTE, GOOD)
    said = line.ok("run", "Add one", "Add two")
    assert "2 tasks: 2 landed" in said
    assert sorted(line.landed()) == ["Add one", "Add two"]
    assert (line.root / "T-1.txt").exists()
    assert line.git("status", "--porcelain") == ""
    line.assert_nothing_left()


def test_a_todo_file_lands(made: Callable[..., Line], tmp_path: Path) -> None:
    line = _begun(made, NOTE, GOOD)
    todo = tmp_path / "TODO.md"
    todo.write_text("# Later\n- [ ] Write it\n- [ ] Polish it\n")
    line.ok("run", str(todo))
    assert sorted(line.landed()) == ["Polish it", "Write it"]
    assert line.statuses() == {"Write it": "done", "Polish it": "done"}
    assert todo.read_text().count("[ ]") == 2
    said = line.ok("run", str(todo), "--tick")
    assert "landed" in said and f"Ticked 2 boxes in {todo}." in said
    assert todo.read_text() == "# Later\n- [x] Write it\n- [x] Polish it\n"
    assert len(line.landed()) == 2
    assert "--tick is for a checklist." in line.ends(2, "run", "Add one", "--tick")
    assert "--detach returns before" in line.ends(2, "run", str(todo), "--tick", "--detach")
    line.assert_nothing_left()


def test_tasks_as_json_lines_land(made: Callable[..., Line]) -> None:
    line = _begun(made, NOTE, GOOD)
    path = line.tasks({"title": "Base", "key": "base"}, {"title": "Top", "needs": ["base"]})
    report = line.json("run", path)
    assert report["exit"] == 0
    assert [task["status"] for task in report["tasks"]] == ["done", "done"]
    assert line.landed() == ["Top", "Base"]
    line.assert_nothing_left()


def test_without_a_gate_work_waits_for_the_command_that_is_printed(made: Callable[..., Line]) -> None:
    line = _begun(made, NOTE)
    said = line.ends(1, "run", "Add one")
    assert line.statuses() == {"Add one": "review"}
    assert line.landed() == []
    printed = re.search(r"^ *(covey merge approve merge-\d+)", said, re.MULTILINE)
    assert printed, said
    line.assert_nothing_left(branches=True)
    assert "landed in" in line.ok(*shlex.split(printed[1])[1:])
    assert line.landed() == ["Add one"]
    (merge,) = line.json("merge", "list", "--all")
    assert merge["state"] == "landed"
    assert merge["untested"] is True
    assert line.statuses() == {"Add one": "done"}
    line.assert_nothing_left()
