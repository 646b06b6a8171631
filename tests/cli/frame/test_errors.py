"""What goes wrong: exit codes, one sentence with a hint, and who may not ask."""

from __future__ import annotations

import errno
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
from covey.cli import main
from tests.worlds.shell import Shell


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, ["frobnicate"], "There is no command covey frobnicate."),
        (2, ["taks"], "Did you mean covey task?"),
        (2, ["task", "clame"], "Did you mean covey task claim?"),
        (2, ["task"], "covey task --help"),
        (2, ["hooks", "uninstall"], "Did you mean covey hooks remove?"),
        (4, ["log", "--subject", "T-999"], "The log has nothing about 'T-999'."),
        (2, ["task", "claim"], "The following arguments are required: ID."),
        (2, ["task", "drop"], "The following arguments are required: ID."),
        (2, ["task", "add", "x", "--priority", "high"], "not a whole number"),
        (2, ["task", "list", "--limit", "0"], "not between 1 and 1,000"),
        (2, ["task", "list", "--nonsense"], "Unrecognized arguments: --nonsense."),
        (2, ["--nonsense"], "does not know the option"),
        (2, ["task", "add", "x" * 501], "title"),
        (2, ["task", "add", "x", "--needs", "T-99"], "There is no task 'T-99' to need."),
        (2, ["task", "add", "x", "--body", "a", "--body-file", "b"], "given twice"),
        (2, ["task", "add", "x", "--body-file", "missing.md"], "cannot be read"),
        (2, ["task", "claim", "T-1", "--as", "no good"], "session"),
        (2, ["task", "add", "x", "--needs", ""], "needs must not be empty."),
        (2, ["task", "add", "x", "--budget", "nan"], "'nan' is not an amount between 0 and 1,000,000."),
        (2, ["log", "--kind", "tsk"], "There is no kind of event 'tsk'.\n  hint: Did you mean task?"),
        (2, ["log", "--kind", "task.claimd"], "Did you mean task.claimed?"),
        (4, ["task", "show", "T-99"], "There is no task 'T-99'.\n  hint: covey task list shows what there is."),
        (4, ["task", "show", "../etc/passwd"], "hint: covey task list shows what there is."),
        (4, ["task", "show", "x'; DROP TABLE tasks; --"], "There is no task"),
        (4, ["lease", "give", "lease-99"], "There is no lease"),
        (4, ["merge", "approve", "merge-99"], "There is no merge"),
        (5, ["task", "renew", "T-1"], "nobody holds it"),
        (6, ["task", "claim", "T-1", "--as", "covey"], "Nobody can act as covey."),
        (2, ["-C", "/nonexistent-folder", "task", "list"], "There is no folder"),
        (2, ["-C", "not-in-here", "task", "list"], "There is no folder"),
        (2, ["-C", "not-in-here", "log", "verify"], "There is no folder"),
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
    for filtered in (["session", "logs", "ada", "--runs"], ["lease", "list", "--session", "ada"]):
        assert "No daemon answers" in shell.fails(7, *filtered, env=run), filtered
    for words in (
        ["init"], ["up"], ["down"], ["log", "rebuild"], ["log", "verify"], ["proposal", "accept", "proposal-1"],
        ["merge", "land", "merge-1", "HEAD"], ["session", "token", "ada"], ["session", "new", "ada"],
    ):  # fmt: skip
        assert "owner" in shell.fails(6, *words, env=run), words
    assert "No daemon answers" in shell.fails(7, "task", "next", env=run)
    assert "COVEY_URL is not" in shell.fails(2, "task", "next", env={"COVEY_TOKEN": "secret"})
    assert "not the address" in shell.fails(2, "task", "next", env=run | {"COVEY_URL": "nonsense"})
    assert shell.json("task", "list")[0]["status"] == "todo"


def test_the_fence_may_come_from_the_environment(shell: Shell) -> None:
    shell.ok("task", "add", "There is one")
    shell.ok("task", "claim", "T-1", "--as", "ada")
    assert "fence 7 has ended" in shell.fails(5, "task", "renew", "T-1", "--as", "ada", env={"COVEY_FENCE": "7"})
    shell.ok("task", "renew", "T-1", "--as", "ada", env={"COVEY_FENCE": "1"})
    assert "not a whole number" in shell.fails(2, "task", "renew", "T-1", "--as", "ada", env={"COVEY_FENCE": "x"})


def test_a_fence_from_before_the_first_claim_is_stale_like_any_other(shell: Shell) -> None:
    shell.ok("task", "add", "There is one")
    shell.ok("task", "claim", "T-1", "--as", "ada")
    assert "fence 0 has ended" in shell.fails(5, "task", "handin", "T-1", "--as", "ada", "--fence", "0")
    assert shell.json("task", "show", "T-1")["status"] == "doing"


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


def _in_sh(shell: Shell, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of sh in which $covey is the command."""
    return subprocess.run(
        ["sh", "-c", line], cwd=shell.folder, env=shell.env | {"covey": f"{sys.executable} -m covey"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("mkdir gone && cd gone && rmdir ../gone && exec $covey status", 2, "does not exist any more."),
        ("mkdir gone && cd gone && rmdir ../gone && exec $covey log verify", 2, "does not exist any more."),
        ("$covey task add x --body - <&-", 2, "Standard input is closed"),
        ("$covey task import - <&-", 2, "Standard input is closed"),
        ("$covey task show T-99 2>/dev/full", 4, ""),
        ("$covey task show T-99 2>&-", 4, ""),
    ],
)
def test_what_is_odd_around_a_command_is_said_in_one_sentence(shared: Shell, line: str, code: int, said: str) -> None:
    done = _in_sh(shared, line)
    assert (done.returncode, done.stdout) == (code, ""), done
    assert done.stderr.startswith("covey: ") if said else not done.stderr
    assert said in done.stderr and "bug" not in done.stderr


def test_a_name_too_long_for_a_file_is_said_in_one_sentence(shared: Shell, tmp_path: Path) -> None:
    long = "x" * 300
    served = ("up", "--bind", "127.0.0.1:4433", "--certificate", long, "--key", long)
    for code, words in (
        (2, ("task", "export", long)),
        (2, ("task", "export", "x" * 250)),  # the name of the part is longer
        (2, ("task", "import", f"{long}.md")),
        (4, ("log", "verify", long)),
        (7, ("log", "backup", long)),
        (7, ("log", "backup", "x" * 252)),
        (8, ("log", "import", "--from", long)),
        (2, served),
    ):
        assert "bug" not in shared.fails(code, *words), words


def test_what_may_not_be_read_or_written_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    # Whoever runs the tests may be allowed everything, so this is told rather than met.
    for number, filename in ((errno.EACCES, "/state/covey.db"), (errno.EROFS, b"/state/daemon.out")):
        error = main._around(OSError(number, os.strerror(number), filename))
        assert error is not None and error.exit_code == 7
        main.complain(error, as_json=False)
        assert f"covey: {os.fsdecode(filename)} cannot be used: {os.strerror(number)}." in capsys.readouterr().err
    assert main._around(FileNotFoundError(errno.ENOENT, "No such file", "x")) is None


def test_nothing_in_an_error_is_obeyed_by_the_terminal(shell: Shell) -> None:
    folder = shell.folder / "\x1b[31mred\x07"
    folder.mkdir()
    done = shell.run("-C", str(folder / "none"), "status")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr


@pytest.mark.parametrize("name", ["two\nlines", os.fsdecode(b"not utf-8 \xff")])
def test_a_path_that_cannot_be_written_down_is_refused_in_one_sentence(
    bare_shell: Shell, tmp_path: Path, name: str
) -> None:
    odd = bare_shell.at(tmp_path / name)
    odd.folder.mkdir()
    odd.git("init", "-q")
    for words in (["init"], ["up"]):
        said = odd.fails(2, *words)
        assert "has a line break in it, or is not UTF-8." in said and "move it" in said


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


def test_a_terminal_without_the_letters_shows_what_it_can_and_json_is_utf_8(shell: Shell) -> None:
    shell.ok("task", "add", "Füße \N{SLIGHTLY SMILING FACE}")
    env = shell.env | {"PYTHONIOENCODING": "latin-1"}
    printed = [
        subprocess.run(
            [sys.executable, "-m", "covey", *words], cwd=shell.folder, env=env, capture_output=True, check=True
        )
        for words in (["task", "list"], ["log"], ["task", "list", "--json"])
    ]
    assert "Füße ?".encode("latin-1") in printed[0].stdout and "Füße ?".encode("latin-1") in printed[1].stdout
    assert json.loads(printed[2].stdout.decode())[0]["title"] == "Füße \N{SLIGHTLY SMILING FACE}"


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
