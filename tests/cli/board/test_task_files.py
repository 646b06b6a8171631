"""Tasks from files and back: twice is once, and nothing is written before the whole file is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.shell import Shell

TODO = """\
# Plan
- [ ] Build it
  With care.
  - [x] The old part
  - [ ] The new part
- [x] Done before
- [ ] Ship it
"""


def _lines(shell: Shell, name: str, *tasks: dict[str, Any]) -> None:
    (shell.folder / name).write_text("".join(json.dumps(task) + "\n" for task in tasks))


def _finish(shell: Shell, task: str) -> None:
    shell.ok("task", "edit", task, "--kind", "report")
    shell.ok("task", "claim", task, "--as", "ada")
    shell.ok("task", "handin", task, "--as", "ada", "--result", "Done")


def test_a_checklist_becomes_tasks_and_a_second_import_changes_nothing(shell: Shell) -> None:
    (shell.folder / "TODO.md").write_text(TODO)
    first = shell.verb("task.import", "task", "import", "TODO.md")
    assert sorted(first["added"]) == [
        "TODO.md#Plan / Build it",
        "TODO.md#Plan / Build it / The new part",
        "TODO.md#Plan / Ship it",
    ]
    again = shell.json("task", "import", "TODO.md")
    assert (again["added"], again["updated"], again["unchanged"]) == ({}, {}, first["added"])
    tasks = {task["title"]: shell.json("task", "show", task["id"]) for task in shell.json("task", "list")}
    assert set(tasks) == {"Build it", "The new part", "Ship it"}
    assert tasks["Build it"]["body"] == "With care."
    assert tasks["The new part"]["parent"] == tasks["Build it"]["id"]


def test_an_import_after_a_change_updates(shell: Shell) -> None:
    (shell.folder / "TODO.md").write_text(TODO)
    shell.ok("task", "import", "TODO.md")
    (shell.folder / "TODO.md").write_text(TODO.replace("With care.", "With great care.") + "- [ ] One more\n")
    assert "1 added, 1 updated, 2 unchanged" in shell.ok("task", "import", "TODO.md")
    assert shell.json("task", "show", "T-1")["body"] == "With great care."


def test_the_same_file_has_the_same_keys_from_everywhere(shell: Shell, tmp_path: Path) -> None:
    (shell.folder / "docs").mkdir()
    (shell.folder / "docs" / "TODO.md").write_text(TODO)
    shell.git("add", ".")
    shell.git("commit", "-q", "-m", "plan")
    shell.ok("task", "import", "docs/TODO.md")
    linked = tmp_path / "linked"
    shell.git("worktree", "add", "-q", str(linked))
    for place, name in (
        (shell.folder / "docs", "TODO.md"),
        (linked, "docs/TODO.md"),
        (tmp_path, "linked/docs/TODO.md"),
    ):
        words = ["-C", str(linked)] if place == tmp_path else []
        file = str(place / name) if place == tmp_path else name
        assert "0 added, 0 updated, 3 unchanged" in shell.at(place).ok(*words, "task", "import", file)


def test_what_is_done_is_ticked_and_every_other_byte_stays(shell: Shell) -> None:
    text = TODO.replace("\n", "\r\n").encode() + b"- [ ] \xc3\xa4 fine\r\n  trailing  \t\r\nno newline at the end"
    path = shell.folder / "TODO.md"
    path.write_bytes(text)
    shell.ok("task", "import", "TODO.md")
    _finish(shell, "T-2")
    assert shell.json("task", "export", "TODO.md") == {"file": "TODO.md", "ticked": ["T-1", "T-2"]}
    wanted = text.replace(b"[ ] Build", b"[x] Build").replace(b"[ ] The new", b"[x] The new")
    assert path.read_bytes() == wanted
    assert "Ticked 0 boxes" in shell.ok("task", "export", "TODO.md")
    assert path.read_bytes() == wanted


def test_a_box_ticked_by_hand_is_left_and_reported(shell: Shell) -> None:
    (shell.folder / "TODO.md").write_text(TODO)
    shell.ok("task", "import", "TODO.md")
    (shell.folder / "TODO.md").write_text(TODO.replace("[ ] Ship", "[x] Ship"))
    assert "line 7: T-3 is ticked here and todo on the board" in shell.ok("task", "import", "TODO.md")
    assert shell.json("task", "show", "T-3")["status"] == "todo"
    shell.ok("task", "export", "TODO.md")
    assert "[x] Ship" in (shell.folder / "TODO.md").read_text()


def test_a_new_part_of_a_task_that_is_done_stands_alone(shell: Shell) -> None:
    (shell.folder / "TODO.md").write_text("- [ ] Whole\n  - [ ] Part\n")
    shell.ok("task", "import", "TODO.md")
    _finish(shell, "T-2")
    (shell.folder / "TODO.md").write_text("- [ ] Whole\n  - [ ] Part\n  - [ ] Late\n")
    assert "its parent T-1 is done, so it stands alone" in shell.ok("task", "import", "TODO.md")
    assert shell.json("task", "show", "T-3")["parent"] is None


def test_json_lines_carry_every_field_and_needs_by_key_or_id(shell: Shell) -> None:
    shell.ok("task", "add", "On the board")
    full = {
        "title": "Whole", "body": "Text\nof two lines", "kind": "report", "status": "backlog", "assignee": "ada",
        "role": "quality", "priority": 3, "needs": ["first", "T-1"], "needs_any": ["first 2"], "scope": ["src/**"],
        "do_not_touch": ["src/x/**"], "overlap": True, "done_when": ["make test"], "budget": 1.5, "key": "whole",
    }  # fmt: skip
    _lines(shell, "a.jsonl", {"title": "First", "key": "first"}, {"title": "First 2", "id": "first 2"}, full,
           {"title": "Part", "parent": "whole"})  # fmt: skip
    added = shell.json("task", "import", "a.jsonl")["added"]
    assert list(added) == ["a.jsonl#first", "a.jsonl#first 2", "a.jsonl#whole", "a.jsonl#Whole / Part"]
    task = shell.json("task", "show", added["a.jsonl#whole"])
    same = {name: value for name, value in full.items() if name not in ("needs", "needs_any", "key")}
    assert {name: task[name] for name in same} == same
    assert (task["needs"], task["needs_any"]) == (["T-2", "T-1", "T-3"], ["T-3"])
    assert shell.json("task", "show", added["a.jsonl#Whole / Part"])["parent"] == task["id"]


def test_needs_may_stand_on_later_lines_too(shell: Shell) -> None:
    _lines(
        shell, "a.jsonl",
        {"title": "Whole", "key": "a", "needs": ["c"]},
        {"title": "Part", "key": "b", "parent": "a"},
        {"title": "Between", "key": "c", "needs": ["b"]},
    )  # fmt: skip
    added = shell.json("task", "import", "a.jsonl")["added"]
    assert len(added) == 3
    assert shell.json("task", "show", added["a.jsonl#a"])["needs"] == [added["a.jsonl#c"]]
    assert shell.json("task", "show", added["a.jsonl#a"])["status"] == "todo"
    assert len(shell.json("task", "import", "a.jsonl")["unchanged"]) == 3


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("not json", "line 2 is not valid JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ('{"title": 1}', "line 2: title must be text, not a whole number."),
        ('{"body": "x"}', "line 2: The field title is missing."),
        ('{"title": ""}', "line 2: title must not be empty"),
        ('{"title": "x", "foo": 1}', "line 2: there is no field 'foo'"),
        ('{"title": "x", "status": "weird"}', "line 2: there is no status 'weird'"),
        ('{"title": "x", "priority": "1"}', "line 2: priority must be a whole number"),
        ('{"title": "x", "needs": "a"}', "line 2: needs must be a list, not text."),
        ('{"title": "x", "needs": ["nowhere"]}', "line 2: there is no task 'nowhere' to need"),
        ('{"title": "x", "needs": ["T-77"]}', "line 2: there is no task 'T-77' to need"),
        ('{"title": "x", "parent": "nowhere"}', "line 2: there is no task 'nowhere' to be the parent"),
        ('{"title": "x", "key": "k", "needs": ["k"]}', "line 2: a task cannot need itself"),
        ('{"title": "x", "key": "k", "parent": "k"}', "line 2: a task cannot be its own ancestor"),
        ('{"title": "x", "key": "fine"}', "line 2: the key 'fine' stands on line 1 already"),
        ('{"title": "x", "scope": ["[a"]}', "line 2: The pattern '[a' has a class that is not closed"),
        ('{"title": "x", "body": "a\\u0000b"}', "line 2: The body has a NUL"),
        ('{"title": "x\\u0007"}', "line 2: title"),
        (
            '{"title": "a", "key": "k", "needs": ["l"]}\n{"title": "b", "key": "l", "needs": ["k"]}',
            "in a circle: k > l > k",
        ),
        ('{"title": "\udcff"}', "line 2 is not UTF-8"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(shared: Shell, bad: str, said: str) -> None:
    path = shared.folder / "bad.jsonl"
    path.write_bytes(b'{"title": "Fine", "key": "fine"}\n' + bad.encode("utf-8", "surrogateescape") + b"\n")
    assert said in shared.fails(2, "task", "import", "bad.jsonl")
    assert [event["kind"] for event in shared.json("log")] == ["log.begun", "task.added"]


def test_a_bad_item_of_a_checklist_is_named(shell: Shell) -> None:
    (shell.folder / "TODO.md").write_text(f"- [ ] Fine\n- [ ] {'x' * 501}\n")
    assert "TODO.md line 2: title" in shell.fails(2, "task", "import", "TODO.md")
    assert "cannot be read" in shell.fails(2, "task", "import", "missing.md")
    (shell.folder / "tasks.txt").write_text("")
    assert "--format" in shell.fails(2, "task", "import", "tasks.txt")
    assert shell.json("task", "list") == []


def test_an_export_makes_the_same_board_elsewhere(shell: Shell, tmp_path: Path) -> None:
    (shell.folder / "TODO.md").write_text(TODO)
    shell.ok("task", "import", "TODO.md")
    shell.ok(
        "task", "add", "Needs much", "--needs", "T-1,T-3", "--needs-any", "T-2", "--scope", "src/**", "--priority", "2"
    )
    shell.ok("task", "add", "Ship it", "--status", "backlog", "--body", "Another of that name\nwith ünïcödé")
    shell.ok("task", "add", "Gone")
    shell.ok("task", "drop", "T-6", "no use")
    shell.ok("task", "edit", "T-1", "--needs", "T-5")
    _finish(shell, "T-3")
    exported = shell.ok("task", "export", "--format", "jsonl")
    other = shell.at(tmp_path / "other")
    other.folder.mkdir()
    other.git("init", "-q")
    other.ok("init")
    (other.folder / "all.jsonl").write_text(exported)
    other.ok("task", "import", "all.jsonl")
    assert "0 added, 0 updated" in other.ok("task", "import", "all.jsonl")
    assert _described(other) == _described(shell)


def _described(shell: Shell) -> list[dict[str, Any]]:
    """Return what an export carries of the open tasks, with titles in place of ids."""
    every = [json.loads(line) for line in shell.ok("task", "export", "--format", "jsonl").splitlines()]
    tasks = [task for task in every if task["status"] not in ("done", "dropped")]
    over = {task["key"] for task in every} - {task["key"] for task in tasks}
    titles = {task["key"]: task["title"] for task in tasks}
    for task in tasks:
        for name in ("id", "key", "board"):
            del task[name]
        for name in ("needs", "needs_any"):
            if left := [titles[need] for need in task.pop(name, []) if need not in over]:
                task[name] = left
        if "parent" in task:
            task["parent"] = titles[task["parent"]]
    return sorted(tasks, key=lambda task: (task["title"], task["status"]))


def test_an_export_imported_into_its_own_board_doubles_nothing(shell: Shell) -> None:
    (shell.folder / "TODO.md").write_text(TODO)
    shell.ok("task", "import", "TODO.md")
    shell.ok("task", "add", "By hand", "--needs", "T-1")
    shell.ok("task", "export", "all.jsonl")
    said = shell.ok("task", "import", "all.jsonl")
    assert "0 added, 0 updated, 3 unchanged" in said
    assert "T-4 came from no file" in said
    text = (shell.folder / "all.jsonl").read_text().replace('"title":"Ship it"', '"title":"Ship it soon"')
    (shell.folder / "all.jsonl").write_text(text)
    assert "0 added, 1 updated, 2 unchanged" in shell.ok("task", "import", "all.jsonl")
    assert shell.json("task", "show", "T-3")["title"] == "Ship it soon"


def test_the_board_is_printed_as_a_nested_checklist(shell: Shell) -> None:
    (shell.folder / "TODO.md").write_text(TODO)
    shell.ok("task", "import", "TODO.md")
    _finish(shell, "T-3")
    assert shell.ok("task", "export") == "- [ ] Build it\n  With care.\n  - [ ] The new part\n- [x] Ship it\n"
    shell.ok("task", "export", "new.md")
    assert (shell.folder / "new.md").read_text() == shell.ok("task", "export", "--format", "md")


def test_a_large_file_goes_in_parts(shell: Shell) -> None:
    body = "x" * 200_000
    _lines(shell, "large.jsonl", *({"title": f"Task {n}", "body": body} for n in range(8)))
    assert "8 added" in shell.ok("task", "import", "large.jsonl")
    assert "8 unchanged" in shell.ok("task", "import", "large.jsonl")


def test_titles_longer_than_a_key_are_still_told_apart(shell: Shell) -> None:
    long = "y" * 450
    (shell.folder / "TODO.md").write_text(f"- [ ] {long}\n  - [ ] {long}a\n  - [ ] {long}b\n")
    assert "3 added" in shell.ok("task", "import", "TODO.md")
    assert "3 unchanged" in shell.ok("task", "import", "TODO.md")


def test_who_edits_a_task_of_a_file_hears_what_undoes_it(shell: Shell) -> None:
    (shell.folder / "tasks.jsonl").write_text('{"title": "Fix it", "body": "Old"}\n')
    shell.ok("task", "import", "tasks.jsonl")
    told = shell.ok("task", "edit", "T-1", "--body", "New")
    assert "Changed T-1" in told and "It came from tasks.jsonl" in told
    assert "It came" not in shell.ok("task", "edit", "T-1", "--note", "Mind the gap"), "no file has notes"
    shell.ok("task", "import", "tasks.jsonl")
    assert shell.json("task", "show", "T-1")["body"] == "Old"
    shell.ok("task", "add", "Mine")
    assert "It came" not in shell.ok("task", "edit", "T-2", "--body", "New")
