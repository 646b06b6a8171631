"""What someone new to covey tries: other spellings, broken places, and things that are not as they seem."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.serving import free_port
from tests.worlds.shell import Shell


def test_a_killed_daemon_is_not_called_up_while_another_command_writes(served: Shell) -> None:
    os.kill(served.json("up")["pid"], signal.SIGKILL)
    served.ok("task", "list")  # the lock is free again
    held = os.open(served.state / "lock", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    asking = subprocess.Popen(
        [sys.executable, "-m", "covey", "status"],
        cwd=served.folder, env=served.env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert asking.stdout is not None
    _wait_until_open(asking.pid, str(served.state / "lock"))
    os.close(held)
    said, _ = asking.communicate(timeout=60)
    assert "the daemon has died" in said.splitlines()[0]


def _wait_until_open(pid: int, path: str) -> None:
    """Wait until a process has a file open."""
    while True:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if os.readlink(descriptor) == path:
                    return
            except OSError:
                continue


def test_a_reason_or_a_commit_is_given_in_its_place_or_by_its_option(shell: Shell) -> None:
    for number in (1, 2):
        shell.ok("task", "add", f"Task {number}")
    assert shell.json("task", "block", "T-1", "--reason", "Which one?")["reason"] == "Which one?"
    assert shell.json("task", "block", "T-2", "--as", "owner", "And", "this?")["reason"] == "And this?"
    assert shell.json("task", "drop", "--reason=not now", "T-1")["reason"] == "not now"
    assert "given twice" in shell.fails(2, "task", "drop", "T-2", "so", "--reason", "so")
    assert "one task is dropped at a time" in shell.fails(2, "task", "drop", "T-2", "T-3")
    assert "REASON" in shell.fails(2, "task", "block", "T-2")
    shell.ok("task", "drop", "T-2", "--", "--reason", "is a word here")
    assert shell.json("task", "show", "T-2")["reason"] == "--reason is a word here"
    for name in ("T-3", "T-4"):
        shell.ok("task", "add", f"Task {name}")
        shell.ok("task", "claim", name, "--as", "ada")
        shell.git("commit", "-q", "--allow-empty", "-m", "Work")
        shell.ok("task", "handin", name, "--as", "ada", "--commit", "HEAD")
    first, second = (merge["id"] for merge in shell.json("merge", "list"))
    assert shell.json("merge", "reject", second, "--reason", "No test")["reason"] == "No test"
    assert "COMMIT" in shell.fails(2, "merge", "land", first)
    assert shell.json("merge", "land", first, "--commit", "HEAD")["state"] == "landed"


@pytest.mark.parametrize("bind", ["nonsense", "127.0.0.2", "127.0.0.2:0", "127.0.0.2:65536", ":8443", "::1:8443"])
def test_an_address_is_looked_at_before_anything_is_made(shell: Shell, bind: str) -> None:
    assert "--bind" in shell.fails(2, "up", "--bind", bind)
    assert not (shell.state / "tls").exists() and not (shell.state / "daemon.out").exists()


def test_up_complains_as_every_other_command_does(shell: Shell) -> None:
    assert "Did you mean --foreground?" in shell.fails(2, "up", "--foregrond")
    assert "are for --bind" in shell.fails(2, "up", "--certificate", "x.pem", "--key", "y.pem")
    done = shell.run("down", "--json", "--bad")
    assert (done.returncode, set(json.loads(done.stderr))) == (2, {"error", "hint"})
    assert "-C DIR" in shell.ok("up", "--help") and "-C DIR" in shell.ok("down", "--help")
    (shell.folder / "covey.toml").write_text("[bord]\n")
    wrong = shell.fails(2, "task", "list")
    assert shell.fails(2, "up") == wrong
    assert shell.fails(2, "up", "--foreground") == wrong
    assert set(json.loads(shell.run("up", "--foreground", "--json").stderr)) == {"error", "hint"}


def test_an_address_that_cannot_be_had_is_about_bind(shell: Shell) -> None:
    with socket.create_server(("127.0.0.2", 0)) as taken:
        said = shell.fails(5, "up", "--bind", f"127.0.0.2:{taken.getsockname()[1]}")
    assert "covey up --bind" in said and "--port" not in said


def test_where_it_answers_beyond_loopback_is_told_again(shell: Shell) -> None:
    port = free_port("127.0.0.2")
    first = shell.json("up", "--bind", f"127.0.0.2:{port}")
    try:
        assert first["bind"] == f"https://127.0.0.2:{port}"
        assert len(first["fingerprint"].split(":")) == 32
        assert shell.json("up") == first
        for words in ("up", "status"):
            said = shell.ok(words)
            assert first["bind"] in said and first["fingerprint"] in said
    finally:
        shell.run("down")


@pytest.mark.parametrize("words", [["task", "list"], ["task", "list", "--help"], ["status"]])
def test_an_output_that_is_full_or_closed_is_no_bug(shared: Shell, words: list[str]) -> None:
    def end(redirected: str, unbuffered: str = "") -> tuple[int, str]:
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" -m covey "$@" {redirected}', sys.executable, *words],
            cwd=shared.folder, env=shared.env | {"PYTHONUNBUFFERED": unbuffered},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr.splitlines()[0]

    for unbuffered in ("", "1"):
        full = "covey: The output cannot be written: No space left on device."
        assert end("> /dev/full", unbuffered) == (7, full)
    assert end(">&-") == (7, "covey: Standard output is closed; nothing was done.")


def test_help_is_also_a_word(bare_shell: Shell) -> None:
    assert bare_shell.ok("help") == bare_shell.ok("--help")
    assert "--version" in bare_shell.ok("help")
    for words in (["task"], ["task", "claim"], ["log"], ["log", "verify"], ["up"]):
        assert bare_shell.ok("help", *words) == bare_shell.ok(*words, "--help")
    assert bare_shell.ok("task", "help") == bare_shell.ok("task", "--help")
    assert bare_shell.ok("task", "help", "claim") == bare_shell.ok("task", "claim", "--help")
    assert bare_shell.ok("log", "help") == bare_shell.ok("log", "--help")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["task", "add", "x", "--priorty", "5"], "Did you mean --priority?"),
        (["log", "vrify"], "Did you mean covey log verify?"),
        (["--versoin"], "Did you mean covey --version?"),
        (["frob"], "covey --help lists the commands."),
        (["list"], "covey --help lists the commands."),
    ],
)
def test_what_was_meant_is_guessed_only_when_it_is_close(shared: Shell, words: list[str], hint: str) -> None:
    assert hint in shared.fails(2, *words)


def test_a_need_that_is_done_is_not_shown_as_one(shell: Shell) -> None:
    shell.ok("task", "add", "First", "--kind", "report")
    shell.ok("task", "add", "Second")
    shell.ok("task", "add", "Third", "--needs", "T-1,T-2")
    shell.ok("task", "claim", "T-1", "--as", "rita")
    assert "held by      rita" in shell.ok("task", "show", "T-1")
    shell.ok("task", "handin", "T-1", "--as", "rita", "--result", "It is so")
    assert shell.json("task", "show", "T-1")["status"] == "done"
    shown = shell.ok("task", "show", "T-1")
    assert "held by" not in shown and "by           rita" in shown
    assert "Third  needs T-2\n" in shell.ok("status")
    assert "Third (needs T-2)\n" in shell.ok("task", "list")


def test_the_board_says_who_has_a_task_and_whom_it_waits_for(shell: Shell) -> None:
    shell.ok("task", "add", "Waits", "--assignee", "ada")
    shell.ok("task", "add", "Held")
    shell.ok("task", "claim", "T-1", "--as", "bob")
    lines = [line.split() for line in shell.ok("task", "list").splitlines()]
    assert ["ADA-1", "todo", "for", "ada", "Waits"] in lines
    assert ["T-1", "doing", "bob", "Held"] in lines


def test_an_edit_that_changes_nothing_says_so(shell: Shell) -> None:
    shell.ok("task", "add", "One", "--priority", "5")
    assert shell.ok("task", "edit", "T-1", "--priority", "5") == "Nothing of T-1 changed.\n"
    assert shell.ok("task", "edit", "T-1", "--priority", "6") == "Changed T-1: One\n"


def test_a_long_title_is_cut_for_people_only(shell: Shell) -> None:
    title = "x" * 300
    shell.ok("task", "add", title)
    for words in (["task", "list"], ["status"]):
        assert "x" * 119 + "…\n" in shell.ok(*words)
    assert shell.json("task", "list")[0]["title"] == title


def test_words_that_are_not_utf_8_are_refused(shell: Shell) -> None:
    def refused(*words: Any) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "covey", *words],
            cwd=shell.folder, env=shell.env, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        return done.stderr.decode()

    for words in (["task", "add", b"caf\xe9"], ["task", "show", b"\xff"], ["task", "list", "--session", b"a\xff"]):
        assert "is not UTF-8 text." in refused(*words)
    assert "'caf?' is not UTF-8 text." in refused("task", "add", "x", "--scope", b"caf\xe9")
    assert shell.json("task", "list") == []


def test_the_example_of_a_token_sets_all_that_a_run_needs(served: Shell) -> None:
    served.ok("session", "new", "ada")
    example = [line.strip() for line in served.ok("session", "token", "--help").splitlines() if "export " in line]
    bin_folder = served.folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "covey").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m covey "$@"\n')
    (bin_folder / "jq").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "import json, sys; print(json.load(sys.stdin)[sys.argv[2][1:]])" "$@"\n'
    )
    for program in bin_folder.iterdir():
        program.chmod(0o755)
    env = served.env | {"PATH": f"{bin_folder}{os.pathsep}{served.env['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", "\n".join([*example, "covey mail send owner hello"])],
        cwd=served.folder, env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert served.json("mail", "inbox")[0]["sender"] == "ada"


def test_an_export_overwrites_nothing_unless_told_to(shell: Shell) -> None:
    shell.ok("task", "add", "One")
    notes = shell.folder / "notes.txt"
    notes.write_text("mine\n")
    assert "exists already" in shell.fails(5, "task", "export", "notes.txt", "--format", "jsonl")
    assert notes.read_text() == "mine\n"
    shell.ok("task", "export", "notes.txt", "--format", "jsonl", "--force")
    assert json.loads(notes.read_text())["title"] == "One"
    assert json.loads(shell.ok("task", "export", "/dev/stdout", "--format", "jsonl").splitlines()[0])["id"] == "T-1"
