"""Waiting one's turn from a shell, with and without the daemon."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.worlds.serving import wait_until
from tests.worlds.shell import Shell


@pytest.fixture(params=["alone", "daemon"])
def place(request: pytest.FixtureRequest) -> Shell:
    """Return a shell with and without a daemon behind it."""
    found: Shell = request.getfixturevalue("shell" if request.param == "alone" else "served")
    return found


@contextmanager
def started(shell: Shell, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start covey, and end it if the test fails before it does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "covey", *words],
        cwd=shell.folder,
        env=shell.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def leases(shell: Shell) -> list[Any]:
    found: list[Any] = shell.json("lease", "list", "--waiting")
    return found


def states(shell: Shell) -> list[tuple[str, str]]:
    return [(lease["holder"], lease["state"]) for lease in leases(shell)]


def test_who_waits_is_told_who_is_before_it_and_takes_its_turn(place: Shell) -> None:
    first = place.json("lease", "take", "src/**", "--as", "ada")
    with started(place, "lease", "take", "src/a.py", "--as", "bob", "--wait") as waiting:
        wait_until(lambda: ("bob", "waiting") in states(place), "bob in line")
        place.ok("lease", "give", first["id"])
        out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0 and out.startswith("Took lease-")
    assert f"waits for ada ({first['id']})" in err
    assert states(place) == [("bob", "live")]


def test_a_place_in_line_is_kept_when_the_time_is_over_and_given_up_on_ctrl_c(shell: Shell) -> None:
    shell.ok("lease", "take", "a", "--as", "ada")
    done = shell.run("lease", "take", "a", "--as", "bob", "--timeout", "0.2")
    assert done.returncode == 3 and "Your place in line is kept" in done.stdout
    assert states(shell) == [("ada", "live"), ("bob", "waiting")]
    with started(shell, "lease", "take", "a", "--as", "bob", "--wait") as waiting:
        assert waiting.stderr is not None and "waits for ada" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == 130
    assert states(shell) == [("ada", "live")]


def test_a_command_runs_under_a_lease_and_its_exit_code_is_ours(place: Shell) -> None:
    done = place.run("lease", "run", "lane:build", "--as", "ada", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert leases(place) == []
    missing = place.run("lease", "run", "lane:build", "--", "there-is-no-such-program")
    assert missing.returncode == 127 and "cannot be run" in missing.stderr
    assert place.run("lease", "run", "port:1", "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert leases(place) == []


def test_the_third_in_a_lane_of_two_waits_its_turn(place: Shell) -> None:
    fifo = place.folder / "go"
    subprocess.run(["mkfifo", fifo], check=True)
    run = ("lease", "run", "lane:build", "--as", "ada", "--", "sh", "-c")
    with started(place, *run, "read line < go") as one, started(place, *run, "read line < go") as two:
        wait_until(lambda: states(place) == [("ada", "live")] * 2, "two in the lane")
        with started(place, *run, "echo third") as three:
            wait_until(lambda: ("ada", "waiting") in states(place), "the third in line")
            late = place.run("lease", "run", "lane:build", "--timeout", "0.2", "--", "echo", "late")
            assert (late.returncode, late.stdout) == (3, "")
            assert (
                "timed out after 0.2 s waiting for lane:build; echo was not run, and the place in line is given up"
                in late.stderr
            )
            assert "Run it again later" in late.stderr
            two.send_signal(signal.SIGTERM)
            assert two.wait(60) == 143
            out, _ = three.communicate(timeout=60)
            assert (three.returncode, out) == (0, "third\n")
        fifo.write_text("on\n")
        assert one.wait(60) == 0
    assert leases(place) == []


def test_a_command_never_waits_for_what_was_given_to_the_one_around_it(shell: Shell) -> None:
    inner = (sys.executable, "-m", "covey", "lease", "run", "port:1", "--", "echo", "inside")
    done = shell.run("lease", "run", "port:1", "--", *inner)
    assert (done.returncode, done.stdout) == (0, "inside\n")


def test_a_signal_while_it_stands_in_line_ends_it_and_its_place(shell: Shell) -> None:
    shell.ok("lease", "take", "port:1", "--as", "ada")
    with started(shell, "lease", "run", "port:1", "--as", "bob", "--", "true") as waiting:
        assert waiting.stderr is not None and "waits for ada" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait(60) == 143
    assert states(shell) == [("ada", "live")]


def test_a_check_says_who_holds_a_path(shell: Shell) -> None:
    (shell.folder / "src").mkdir()
    shell.ok("lease", "take", "src/**", "lane:build", "--as", "ada")
    inside = Shell(shell.folder / "src", shell.env)
    for who, code in (("ada", 0), ("bob", 1)):
        done = inside.run("lease", "check", "a.py", "../docs/b", "lane:build", "port:1", "--as", who)
        assert done.returncode == code
        assert [line.split()[1] for line in done.stdout.splitlines()] == (
            ["yours", "free", "yours", "free"] if who == "ada" else ["held", "free", "held", "free"]
        )
    assert shell.run("lease", "check", "docs/b").returncode == 0
    printed = shell.run("lease", "check", "src/a.py", "--json").stdout
    assert '"holder": "ada"' in printed


def test_a_command_has_to_be_named(shell: Shell) -> None:
    assert "command is missing" in shell.fails(2, "lease", "run", "lane:build")


def test_who_claims_a_task_reads_who_holds_a_part_of_its_scope(place: Shell) -> None:
    lease = place.json("lease", "take", "src/a.py", "--as", "ada")
    place.ok("task", "add", "Work", "--scope", "src/**")
    place.ok("task", "add", "More", "--scope", "docs/**")
    said = place.ok("task", "claim", "T-1", "--as", "bob").splitlines()[-1]
    assert said == f"You stand in line for a part of its scope: src/** is held by ada ({lease['id']})."
    assert "stand in line" not in place.ok("task", "next", "--as", "carl")


def test_nobody_holds_a_lease_for_a_task_at_which_another_is_at_work(shell: Shell) -> None:
    shell.ok("task", "add", "Mend it")
    shell.ok("task", "add", "Next")
    shell.ok("task", "claim", "T-1", "--as", "ada")
    said = shell.fails(5, "lease", "take", "src/**", "--as", "rita", "--task", "T-1")
    assert "T-1 is held by ada, so rita can hold nothing for it" in said
    shell.ok("lease", "take", "src/**", "--as", "ada", "--task", "T-1", "--reason", "login flow")
    shell.ok("lease", "take", "docs/**", "--task", "T-1")
    shell.ok("lease", "take", "web/**", "--as", "rita", "--task", "T-2")
