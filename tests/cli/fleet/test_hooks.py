"""covey hooks: put into people's own settings and taken out again, whoever else uses these."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from covey.cli.fleet.hooks import replaced
from tests.worlds.shell import PATIENCE, Shell

LOCAL = Path(".claude") / "settings.local.json"


def another(shell: Shell, name: str) -> Shell:
    """Return a shell of the same person in another project."""
    folder = shell.folder.with_name(name)
    shutil.copytree(shell.folder, folder)
    return shell.at(folder)


def users(shell: Shell) -> Path:
    return Path(shell.env["HOME"], ".claude", "settings.json")


def states(path: Path) -> set[str]:
    """Return the folders that hooks in a file name."""
    found = json.loads(path.read_text())["hooks"]["Stop"]
    return {each["hooks"][0]["command"].split("--state ")[1].split()[0] for each in found}


@pytest.mark.parametrize("words", [["--user"], ["--agent", "codex"]])
def test_projects_do_not_take_each_others_hooks_away(shell: Shell, words: list[str]) -> None:
    two = another(shell, "two")
    path = Path(shell.json("hooks", "install", *words)["file"])
    two.ok("hooks", "install", *words)
    assert states(path) == {str(shell.state), str(two.state)}
    assert two.json("hooks", "remove", *words)["installed"] is False
    assert states(path) == {str(shell.state)}
    assert not two.json("hooks", "show", *words)["installed"] and shell.json("hooks", "show", *words)["installed"]
    assert two.ok("hooks", "remove", *words).startswith("There are no hooks of covey in ")
    shell.ok("hooks", "remove", *words)
    assert not path.exists()


def test_hooks_of_a_checkout_that_was_moved_are_replaced(shell: Shell) -> None:
    shell.ok("hooks", "install")
    moved = shell.at(shell.folder.rename(shell.folder.with_name("moved")))
    moved.ok("hooks", "install")
    assert states(moved.folder / LOCAL) == {str(moved.state)}


def test_a_link_to_settings_stays_one_and_so_does_what_it_points_to(shell: Shell, tmp_path: Path) -> None:
    real, link = tmp_path / "kept.json", shell.folder / LOCAL
    real.write_text("{}")
    link.parent.mkdir()
    link.symlink_to(real)
    shell.ok("hooks", "install")
    assert link.is_symlink() and "relay.py" in real.read_text()
    shell.ok("hooks", "remove")
    assert link.is_symlink() and json.loads(real.read_text()) == {}


def test_a_link_to_nothing_stays_one(shell: Shell, tmp_path: Path) -> None:
    real, link = tmp_path / "new" / "kept.json", shell.folder / LOCAL
    link.parent.mkdir()
    link.symlink_to(real)
    shell.ok("hooks", "install")
    assert link.is_symlink() and "relay.py" in real.read_text()
    shell.ok("hooks", "remove")
    assert link.is_symlink() and not real.exists()


def test_only_a_file_that_was_made_for_the_hooks_goes_with_them(shell: Shell) -> None:
    path = shell.folder / LOCAL
    shell.ok("hooks", "install")
    assert shell.ok("hooks", "install").startswith("Hooks are already in ")
    exclude = shell.state.parent / "info" / "exclude"
    assert "covey" in exclude.read_text()
    shell.ok("hooks", "remove")
    assert not path.parent.exists() and "covey" not in exclude.read_text()
    path.parent.mkdir()
    path.write_text("{}\n")
    shell.ok("hooks", "install")
    shell.ok("hooks", "remove")
    assert path.read_text() == "{}\n"


def test_a_folder_with_other_files_of_the_agent_and_a_list_for_another_checkout_stay(shell: Shell) -> None:
    other = shell.folder.with_name("other")
    shell.git("worktree", "add", "-q", "--detach", str(other))
    kept = shell.folder / ".claude" / "CLAUDE.md"
    kept.parent.mkdir()
    kept.write_text("Be kind.")
    shell.ok("hooks", "install")
    shell.at(other).ok("hooks", "install")
    shell.ok("hooks", "remove")
    assert kept.exists() and shell.at(other).git("status", "--short") == ""
    shell.at(other).ok("hooks", "remove")
    assert "covey" not in (shell.state.parent / "info" / "exclude").read_text()


def test_settings_that_somebody_changed_meanwhile_are_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    assert replaced(path, None, {"a": 1}) and path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    path.write_text('{"theirs": 1}')
    assert (
        not replaced(path, before, {"a": 2}) and not replaced(path, None, {"a": 2}) and not replaced(path, before, None)
    )
    assert path.read_text() == '{"theirs": 1}' and [each.name for each in tmp_path.iterdir()] == ["settings.json"]


def test_projects_that_install_at_once_lose_nothing(shell: Shell) -> None:
    shells = [shell, *(another(shell, f"project-{number}") for number in range(5))]
    words = [sys.executable, "-m", "covey", "hooks", "install", "--user"]
    running = [
        subprocess.Popen(words, cwd=each.folder, env=each.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for each in shells
    ]
    assert [process.wait(PATIENCE) for process in running] == [0] * len(shells)
    assert states(users(shell)) == {str(each.state) for each in shells}


def test_a_persons_own_agent_asks_for_permission_in_its_own_window(shell: Shell) -> None:
    shell.ok("hooks", "install")
    assert "PermissionRequest" not in (shell.folder / LOCAL).read_text()
