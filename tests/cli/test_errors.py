"""What goes wrong: exit codes, one sentence with a hint, and who may not ask."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from covey import __version__
from tests.cli.shell import Shell


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, ["frobnicate"], "There is no command covey frobnicate."),
        (2, ["taks"], "Did you mean covey task?"),
        (2, ["task", "clame"], "Did you mean covey task claim?"),
        (2, ["task"], "covey task --help"),
        (2, ["task", "claim"], "The following arguments are required: ID."),
        (2, ["task", "add", "x", "--priority", "high"], "not a whole number"),
        (2, ["task", "list", "--limit", "0"], "not between 1 and 1,000"),
        (2, ["task", "list", "--nonsense"], "Unrecognized arguments: --nonsense."),
        (2, ["--nonsense"], "does not know the option"),
        (2, ["task", "add", "x" * 501], "title"),
        (2, ["task", "add", "x", "--needs", "T-99"], "There is no task 'T-99' to need."),
        (2, ["task", "add", "x", "--body", "a", "--body-file", "b"], "given twice"),
        (2, ["task", "add", "x", "--body-file", "missing.md"], "cannot be read"),
        (2, ["task", "claim", "T-1", "--as", "no good"], "session"),
        (4, ["task", "show", "T-99"], "There is no task 'T-99'."),
        (4, ["task", "show", "../etc/passwd"], "There is no task"),
        (4, ["task", "show", "x'; DROP TABLE tasks; --"], "There is no task"),
        (4, ["lease", "give", "lease-99"], "There is no lease"),
        (4, ["merge", "approve", "merge-99"], "There is no merge"),
        (5, ["task", "renew", "T-1"], "nobody holds it"),
        (6, ["task", "claim", "T-1", "--as", "covey"], "Nobody can act as covey."),
        (2, ["-C", "/nonexistent-folder", "task", "list"], "There is no folder"),
    ],
)
def test_an_error_has_its_exit_code_and_one_sentence(shared: Shell, code: int, words: list[str], said: str) -> None:
    assert said in shared.fails(code, *words)


def test_with_json_the_error_is_json_on_standard_error(shared: Shell) -> None:
    for words in (["task", "show", "T-9", "--json"], ["--json", "task", "claim"], ["task", "list", "--json", "--bad"]):
        done = shared.run(*words)
        assert done.stdout == ""
        assert set(json.loads(done.stderr)) == {"error", "hint"}


def test_help_and_version_need_no_repository(tmp_path: Path, bare_shell: Shell) -> None:
    nowhere = bare_shell.at(tmp_path)
    assert nowhere.ok("--version") == f"covey {__version__}\n"
    assert nowhere.json("--version") == {"version": __version__}
    assert nowhere.ok("--help") == nowhere.ok()
    for group in ("task", "lease", "mail", "merge", "session"):
        assert "--help shows one with an example" in nowhere.ok(group, "--help")
    assert "covey task claim AF-1" in nowhere.ok("task", "claim", "--help")


def test_a_run_speaks_only_for_itself_and_only_over_http(shell: Shell) -> None:
    shell.ok("task", "add", "There is one")
    run = {"COVEY_TOKEN": "secret", "COVEY_URL": "http://127.0.0.1:9"}
    assert "Leave --as out" in shell.fails(6, "task", "next", "--as", "ada", env=run)
    assert "Leave --as out" in shell.fails(6, "mail", "inbox", "--as", "ada", env=run)
    for words in (
        ["init"], ["up"], ["down"], ["log", "rebuild"], ["log", "verify"], ["task", "drop", "T-1", "why"],
        ["merge", "land", "merge-1", "HEAD"], ["session", "token", "ada"], ["session", "new", "ada"],
    ):  # fmt: skip
        assert "owner" in shell.fails(6, *words, env=run), words
    assert "No daemon answers" in shell.fails(7, "task", "next", env=run)
    assert "COVEY_URL is not" in shell.fails(2, "task", "next", env={"COVEY_TOKEN": "secret"})
    assert "no address" in shell.fails(2, "task", "next", env=run | {"COVEY_URL": "nonsense"})
    assert shell.json("task", "list")[0]["status"] == "todo"


def test_the_fence_may_come_from_the_environment(shell: Shell) -> None:
    shell.ok("task", "add", "There is one")
    shell.ok("task", "claim", "T-1", "--as", "ada")
    assert "fence 7 has ended" in shell.fails(5, "task", "renew", "T-1", "--as", "ada", env={"COVEY_FENCE": "7"})
    shell.ok("task", "renew", "T-1", "--as", "ada", env={"COVEY_FENCE": "1"})
    assert "not a whole number" in shell.fails(2, "task", "renew", "T-1", "--as", "ada", env={"COVEY_FENCE": "x"})


def test_a_bug_is_called_one_and_shows_its_traceback_only_when_asked(shell: Shell) -> None:
    # A folder where the daemon says where it answers is something that no code of ours expects.
    shell.state.joinpath("daemon.json").mkdir()
    said = shell.fails(70, "task", "list")
    assert "this is a bug in covey" in said and "COVEY_DEBUG=1" in said
    assert "Traceback" in shell.run("task", "list", env={"COVEY_DEBUG": "1"}).stderr


def test_a_lock_that_cannot_be_opened_is_said_in_one_sentence(shell: Shell) -> None:
    shell.state.joinpath("lock").unlink()
    shell.state.joinpath("lock").mkdir()
    assert "cannot be opened: Is a directory." in shell.fails(7, "task", "list")


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_text("\n")])
def test_a_missing_token_of_the_owner_is_made_anew_by_init(shell: Shell, spoil: Callable[[Path], object]) -> None:
    token = shell.state / "owner.token"
    token.write_text("")
    spoil(token)
    for words in (["task", "list"], ["up"], ["up", "--foreground"]):
        said = shell.fails(5, *words)
        assert "The owner's token of this project is missing." in said and "covey init makes a new one." in said
    assert shell.json("init")["made"] == ["the owner's token"]
    assert len(token.read_text().strip()) > 20
    assert shell.json("task", "list") == []


def test_a_reader_that_goes_away_is_no_error(shell: Shell) -> None:
    (shell.folder / "many.jsonl").write_text(
        "".join(json.dumps({"title": f"Task {n} " + "x" * 300}) + "\n" for n in range(900))
    )
    shell.ok("task", "import", "many.jsonl")
    process = subprocess.Popen(
        [sys.executable, "-m", "covey", "task", "list", "--all"],
        cwd=shell.folder, env=shell.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 0


def test_an_interrupt_ends_with_130(shell: Shell) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "covey", "log", "--follow"],
        cwd=shell.folder, env=shell.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")


def test_nothing_is_coloured_outside_a_terminal(shell: Shell) -> None:
    shell.ok("task", "add", "There is one")
    shell.ok("task", "claim", "T-1")
    assert "\x1b" not in shell.ok("task", "list")


def test_colours_are_for_terminals_and_respect_no_color(shell: Shell) -> None:
    shell.ok("task", "add", "There is one")
    shell.ok("task", "claim", "T-1")

    def seen(env: dict[str, str]) -> str:
        main, other = pty.openpty()
        subprocess.run(
            [sys.executable, "-m", "covey", "task", "list"],
            cwd=shell.folder, env=shell.env | {"TERM": "xterm"} | env, stdout=other, check=True, timeout=60,
        )  # fmt: skip
        os.close(other)
        data = os.read(main, 65536).decode()
        os.close(main)
        return data

    assert "\x1b[36mdoing" in seen({})
    assert "\x1b" not in seen({"NO_COLOR": "1"})
