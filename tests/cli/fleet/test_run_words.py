"""What covey run takes for a task."""

from __future__ import annotations

import pytest

from tests.worlds.shell import Shell


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["src"], "src is a folder, and no task"),
        (["/tmp"], "/tmp is a folder, and no task"),
        (["Fix it", "src"], "src is a folder, and no task"),
        (["PLAN.txt"], "There is no file PLAN.txt"),
        (["Fix it", "TODO.md"], "There is no file TODO.md"),
        (["missing.jsonl"], "missing.jsonl"),
        (["./修复.md"], "./修复.md cannot be read"),
        (["Fix it", "/修复.md"], "There is no file /修复.md"),
        (["Fix it", "Überblick.md"], "There is no file Überblick.md"),
        (["Fix it", "x" * 501], "The title has 501 characters"),
        (["Fix it", " "], "The title is empty"),
        (["x" * 300 + ".md"], "cannot be read: File name too long"),
    ],
)
def test_a_folder_or_a_file_that_is_not_there_is_no_title(shell: Shell, words: list[str], said: str) -> None:
    (shell.folder / "src").mkdir()
    told = shell.fails(2, "run", "--agent", "scripted", *words)
    assert said in told
    assert shell.json("task", "list") == []


@pytest.mark.parametrize(
    "titles",
    [["修复README.md"], ["Fix it", "修复README.md"], ["修" * 100], ["x" * 300], ["Fix README.md"]],
)
def test_a_title_in_any_script_and_of_any_length_is_no_path(shell: Shell, titles: list[str]) -> None:
    shell.ok("pause")  # so that nothing is begun for them
    assert "stands still" in shell.fails(5, "run", "--agent", "scripted", *titles)


def test_a_file_of_any_name_is_read(shell: Shell) -> None:
    for name in ("修复.md", "to do.md"):
        (shell.folder / name).write_text("Nothing to do\n")
        assert "no open task" in shell.fails(2, "run", "--agent", "scripted", name)


def test_the_id_of_a_task_is_no_title_of_another(shell: Shell) -> None:
    shell.ok("task", "add", "Fix it")
    told = shell.fails(2, "run", "--agent", "scripted", "T-1")
    assert "T-1 is a task on the board (Fix it), and no title" in told and "--status todo" in told
    assert len(shell.json("task", "list")) == 1
    shell.ok("pause")  # so that nothing is begun for it
    assert "stands still" in shell.fails(5, "run", "--agent", "scripted", "T-2"), "nobody has that one"
