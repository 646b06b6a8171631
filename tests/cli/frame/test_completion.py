"""Completion in the shells: commands, options and what is on the board."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.worlds.shell import Shell


def _offers(shell: Shell, *words: str) -> list[str]:
    return shell.ok("__complete", *words).split()


def test_words_options_and_tasks_are_completed(shell: Shell) -> None:
    shell.ok("task", "add", "One", "--assignee", "ada")
    shell.ok("task", "add", "Two")
    shell.ok("task", "claim", "ADA-1", "--as", "ada")
    assert _offers(shell, "ta") == ["task"]
    assert {"task", "lease", "mail", "merge", "session", "status", "log", "init", "up", "down"} <= set(
        _offers(shell, "")
    )
    assert _offers(shell, "task", "cl") == ["claim"]
    assert _offers(shell, "task", "claim", "") == ["ADA-1", "T-1"]
    assert _offers(shell, "task", "claim", "T") == ["T-1"]
    assert _offers(shell, "task", "claim", "T-1", "") == []
    assert _offers(shell, "task", "claim", "T-1", "--a") == ["--as"]
    assert _offers(shell, "task", "claim", "--as", "a") == ["ada"]
    assert _offers(shell, "task", "list", "--status", "b") == ["backlog", "blocked"]
    assert _offers(shell, "task", "edit", "T-1", "--clear", "nee") == ["needs", "needs_any"]
    assert _offers(shell, "log", "ver") == ["verify"]
    assert _offers(shell, "log", "export", "--w") == ["--with"]
    assert _offers(shell, "log", "export", "--kind") == []
    assert _offers(shell, "task", "list", "--status=do") == ["--status=doing", "--status=done"]
    assert _offers(shell, "task", "list", "--status", "=", "do") == ["doing", "done"]  # as bash splits it
    assert _offers(shell, "-C", ".gi") == [".git/"]
    assert _offers(shell, "session", "new", "--agent", "c") == ["claude", "codex"]
    assert _offers(shell, "session", "start", "ada", "a") == ["ada"], "several may be named"
    assert _offers(shell, "completion", "") == ["bash", "fish", "zsh"]
    assert _offers(shell, "-C", str(shell.folder), "task", "show", "A") == ["ADA-1"]


def test_where_nothing_can_be_known_nothing_is_offered_and_nothing_said(bare_shell: Shell) -> None:
    done = bare_shell.run("__complete", "task", "claim", "")
    assert (done.stdout, done.stderr) == ("", "")
    assert bare_shell.run("__complete", "nonsense", "").stderr == ""


def _typed(shell: Shell, name: str, line: str) -> list[str]:
    """Return what a line of a shell prints in which the completion is loaded."""
    (shell.folder / "rc").write_text(shell.ok("completion", name))
    (shell.folder / "bin").mkdir(exist_ok=True)
    (shell.folder / "bin" / "covey").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m covey "$@"\n')
    (shell.folder / "bin" / "covey").chmod(0o755)
    env = shell.env | {"PATH": f"{shell.folder / 'bin'}{os.pathsep}{shell.env['PATH']}"}
    done = subprocess.run(
        [name, "-c", f"source ./rc; {line}"], cwd=shell.folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_the_script_for_bash_completes(shell: Shell) -> None:
    shell.ok("task", "add", "One")
    typed = "COMP_WORDS=(covey task claim T); COMP_CWORD=3; _covey; printf '%s ' \"${COMPREPLY[@]}\""
    assert _typed(shell, "bash", typed) == ["T-1"]


def test_the_script_for_fish_completes_words_and_files(shell: Shell) -> None:
    shell.ok("task", "add", "One")
    assert _typed(shell, "fish", "complete -C 'covey task claim T'") == ["T-1"]
    assert "covey.toml" in _typed(shell, "fish", "complete -C 'covey run cov'")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_each_script_is_accepted_by_its_shell(shell: Shell, name: str) -> None:
    script = shell.ok("completion", name)
    assert shell.json("completion", name) == {"shell": name, "script": script}
    assert shutil.which(name) is not None, f"{name} is not installed; scripts/setup installs it"
    done = subprocess.run([name, "-n", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
