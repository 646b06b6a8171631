"""What only plain processes have: a wrapper that can be killed, and files that can fail it."""

from __future__ import annotations

import fcntl
import marshal
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from covey.core.fleet.launches import Layer, Observation
from covey.errors import Invalid, Unavailable
from covey.runners import activity, process, sandbox
from covey.runners.process import ProcessRunner
from tests.worlds.runners import Place, alive, python, shell, state
from tests.worlds.serving import wait_until


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    """Yield a folder with a process runner on it."""
    found = Place("process", tmp_path / "runs")
    try:
        yield found
    finally:
        found.end_all()


def wrapper_of(place: Place, run_id: str) -> int:
    """Return the pid of the wrapper, by its own word."""
    return int((place.folder / run_id / "started").readlink().name)


def kill_wrapper(place: Place, run_id: str) -> None:
    pid = wrapper_of(place, run_id)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), "the end of the wrapper")


def test_a_run_whose_folder_became_a_link_is_forgotten_and_what_that_leads_to_stays(
    here: Place, tmp_path: Path
) -> None:
    here.start("run-1", shell("echo done"))
    wait_until(lambda: not here.runner.look("run-1").alive, "its end")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "novel.txt").write_text("Chapter one.")
    (here.folder / "run-1").rename(here.folder / "elsewhere")
    (here.folder / "run-1").symlink_to(mine)
    here.runner.forget("run-1")
    assert [each.name for each in mine.iterdir()] == ["novel.txt"]
    assert not (here.folder / "run-1").exists()
    (here.folder / "elsewhere").rename(here.folder / "run-1")
    (here.folder / "run-1" / "prompt.md").touch()
    here.runner.forget("run-1")
    assert not (here.folder / "run-1" / "prompt.md").exists()


@pytest.mark.parametrize("what", ["pipe", "folder", "garbage"])
def test_what_a_program_puts_in_place_of_its_files_keeps_nobody_waiting(here: Place, what: str) -> None:
    here.start("run-1", shell("echo done"))
    wait_until(lambda: not here.runner.look("run-1").alive, "its end")
    for name in ("output", "errors", "rc", "failure", "lock", "started"):
        place = here.folder / "run-1" / name
        place.unlink(missing_ok=True)
        if what == "pipe":
            os.mkfifo(place)
        elif what == "folder":
            place.mkdir()
        elif name != "failure":
            place.write_bytes(b"\xff nothing \0")
    seen = here.runner.look("run-1")
    assert (seen.known, seen.alive, seen.code) == (True, False, None)
    assert here.runner.output("run-1", 0)[0] == (b"\xff nothing \0" if what == "garbage" else b"")


FAMILY = """
sleep 1000 & echo $!
setsid sleep 1000 & echo $!
echo $$
setsid sh -c 'trap "" TERM HUP; (while :; do sleep 0.01; done) & echo $!; echo all; wait' &
wait
"""


@pytest.mark.parametrize("held", [False, True])
def test_a_killed_wrapper_takes_the_program_and_all_that_it_started_with_it(here: Place, held: bool) -> None:
    here.start("run-1", shell(FAMILY))
    here.start("run-2", shell(FAMILY))
    for run in ("run-1", "run-2"):
        wait_until(lambda run=run: here.text(run).count("\n") == 5, "all of them")  # type: ignore[misc]
    pids, others = ([int(word) for word in here.text(run).split() if word != "all"] for run in ("run-1", "run-2"))
    here.runner.hold("run-1", on=held)
    kill_wrapper(here, "run-1")
    wait_until(lambda: not alive(pids[2]), "the end of the program, though nobody looks")
    seen = here.runner.look("run-1")
    assert not any(map(alive, pids))
    assert (seen.known, seen.alive, seen.code, seen.held) == (True, False, None, False)
    assert here.another().look("run-1") == seen
    assert here.runner.look("run-2").alive and all(map(alive, others))
    kill_wrapper(here, "run-2")


def test_a_run_whose_processes_are_gone_has_ended_however_long_it_took_to_see_that(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "SWEEP_TIMEOUT_S", 0.0)
    here.start("run-1", shell(FAMILY))
    wait_until(lambda: here.text("run-1").count("\n") == 5, "all of them")
    kill_wrapper(here, "run-1")
    seen = here.runner.look("run-1")
    assert (seen.known, seen.alive) == (True, False)
    here.runner.stop("run-2")
    assert not here.runner.look("run-2").alive


def test_what_dropped_the_mark_but_can_still_write_is_swept_up_too(here: Place) -> None:
    here.start("run-1", shell("env -i setsid sh -c 'echo $$; while :; do sleep 0.05; done' & wait", apart=True))
    pid = int(here.says("run-1", "\n"))
    with (here.folder / "run-1" / "output").open("rb"):  # Who only reads is not meant.
        kill_wrapper(here, "run-1")
        assert not here.runner.look("run-1").alive
    assert not alive(pid)


def test_a_run_of_the_same_name_elsewhere_is_not_touched(here: Place, tmp_path: Path) -> None:
    there = Place("process", tmp_path / "elsewhere")
    try:
        for place in (here, there):
            place.start("run-1", shell("setsid sleep 1000 & echo $!; wait"))
            place.says("run-1", "\n")
        kill_wrapper(here, "run-1")
        assert not here.runner.look("run-1").alive
        assert alive(int(there.text("run-1")))
    finally:
        there.end_all()


def test_a_sweep_spares_whoever_looks(here: Place) -> None:
    here.start("run-1", shell("exec sleep 1000"))
    kill_wrapper(here, "run-1")
    script = (
        "import sys; from pathlib import Path; from covey.runners.process import ProcessRunner;"
        "print(ProcessRunner(Path(sys.argv[1])).look('run-1').alive)"
    )
    mark = {"COVEY_RUN_FOLDER": f"{here.folder.resolve()}/run-1"}
    words = ["/bin/sh", "-c", '"$@"; exit', "sh", sys.executable, "-c", script, str(here.folder)]
    looked = subprocess.run(words, env=os.environ | mark, capture_output=True, text=True, check=True)
    assert looked.stdout == "False\n"


def test_a_stop_ends_a_run_whose_wrapper_hangs(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    here.start("run-1", shell(FAMILY))
    pids = [int(word) for word in here.says("run-1", "all").split() if word != "all"]
    os.kill(wrapper_of(here, "run-1"), signal.SIGSTOP)
    monkeypatch.setattr(process, "STOP_TIMEOUT_S", 0.1)
    here.runner.stop("run-1")
    assert not any(map(alive, pids))
    assert here.runner.look("run-1").code is None


def test_a_stop_ends_a_run_whose_folder_was_taken_away_and_leaves_what_took_its_place(
    here: Place, tmp_path: Path
) -> None:
    here.start("run-1", shell(FAMILY))
    pids = [int(word) for word in here.says("run-1", "all").split() if word != "all"]
    other = tmp_path / "other"
    other.mkdir()
    (here.folder / "run-1").rename(here.folder / "run-1.gone")
    (here.folder / "run-1").symlink_to(other)
    assert not here.runner.look("run-1").known
    (here.folder / "run-1").symlink_to(other)
    here.runner.stop("run-1")
    assert not any(map(alive, pids))
    assert here.runner.look("run-1").known and not list(other.iterdir())


def test_the_end_of_a_run_is_not_written_through_a_link_of_its_program(here: Place, tmp_path: Path) -> None:
    theirs = tmp_path / "profile"
    theirs.write_text("# the user's\n")
    here.start("run-1", shell(f"ln -s {theirs} {here.folder}/run-1/rc.new; exit 3"))
    assert here.ended("run-1").code == 3
    assert theirs.read_text() == "# the user's\n"


def test_a_program_that_says_that_it_ended_or_never_began_is_not_believed(here: Place) -> None:
    here.start(
        "run-1",
        shell(f"cd {here.folder}/run-1; echo 127 > rc; echo full > failure; touch lost; echo here; cat", typed=True),
    )
    here.says("run-1", "here")
    assert here.runner.look("run-1").alive
    here.runner.finish("run-1")
    ended = here.ended("run-1")
    assert (ended.code, ended.failure) == (0, None)


def test_looking_without_pause_never_disturbs_a_start(here: Place, tmp_path: Path) -> None:
    over = threading.Event()
    runs = [f"run-{n}" for n in range(10)]
    untrue: list[Observation] = []

    def look() -> None:
        runner = ProcessRunner(here.folder)
        known: set[str] = set()
        while not over.is_set():
            for run in runs:
                seen = runner.look(run)
                if seen.known:
                    known.add(run)
                if run in known and not seen.alive:
                    untrue.append(seen)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for run in runs:
            here.start(run, shell(f"echo $COVEY_RUN >> {tmp_path}/starts; exec sleep 1000"))
        wait_until(lambda: (tmp_path / "starts").read_text().split() == runs, "all of them once")
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not untrue


def test_a_launch_that_arrives_in_part_starts_nothing_and_a_later_start_does(here: Place, tmp_path: Path) -> None:
    run = here.folder / "run-1"
    run.mkdir(parents=True)
    letter = marshal.dumps(([b"/bin/touch", bytes(tmp_path / "ran")], b"/", {}, None, False, False))
    for length in (0, 1, len(letter) // 2, len(letter) - 1):
        words = [sys.executable, "-I", "-S", process.WRAPPER, str(run)]
        ended = subprocess.run(words, input=letter[:length], capture_output=True, check=False)
        assert ended.returncode != 0 and ended.stdout == b""
    assert not here.runner.look("run-1").known
    here.start("run-1", shell("exit 3"))
    assert here.ended("run-1").code == 3
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("known", [(), (0,), (1 << 20,)])
def test_a_launch_of_an_older_daemon_is_understood(here: Place, known: tuple[int, ...]) -> None:
    run = here.folder / "run-1"
    run.mkdir(parents=True)
    letter = marshal.dumps(([b"/bin/echo", b"hello"], b"/", {}, None, False, False, *known))
    words = [sys.executable, "-I", "-S", process.WRAPPER, str(run)]
    assert subprocess.run(words, input=letter, capture_output=True, check=True).stdout == b"done"
    assert here.ended("run-1").code == 0
    assert here.text("run-1") == "hello\n"


def test_the_end_of_a_run_can_be_waited_for(here: Place) -> None:
    here.start("run-1", shell("read line", typed=True))
    handle = here.runner.end_of("run-1")
    assert handle is not None
    try:
        assert select.select([handle], [], [], 0)[0] == []
        here.runner.type("run-1", "go\n")
        assert select.select([handle], [], [], 60)[0] == [handle]
    finally:
        os.close(handle)
    assert here.runner.look("run-1").alive is False
    assert (here.runner.end_of("run-1"), here.runner.end_of("never")) == (None, None)


def test_layers_are_laid_for_the_program_alone_and_one_that_cannot_be_is_said(here: Place, tmp_path: Path) -> None:
    if sandbox.layers_trouble(str(tmp_path)) is not None:
        pytest.skip("no layers can be laid here")
    for name in ("place", "upper", "work"):
        (tmp_path / name).mkdir()
    place, upper, work = (str(tmp_path / name) for name in ("place", "upper", "work"))
    layer = Layer(place, (place,), upper, work)
    here.start("run-1", replace(shell(f"echo x > {tmp_path}/place/new && ls {tmp_path}/place"), layers=(layer,)))
    assert here.ended("run-1").code == 0
    assert here.text("run-1") == "new\n"
    assert list((tmp_path / "place").iterdir()) == []
    here.start("run-2", replace(shell("echo ran"), layers=(replace(layer, lower=(str(tmp_path / "gone"),)),)))
    assert here.ended("run-2").code == 97
    assert here.text("run-2").startswith("layers: ") and "gone" in here.text("run-2")


def test_a_wrapper_that_comes_late_starts_nothing(here: Place, tmp_path: Path) -> None:
    here.start("run-1", shell("exit 3"))
    here.ended("run-1")
    here.runner.stop("run-2")
    here.start("run-3", shell("exec sleep 1000"))
    letter = marshal.dumps(([b"/bin/touch", bytes(tmp_path / "ran")], b"/", {}, None, False, False))
    for run in ("run-1", "run-2", "run-3"):
        before = here.runner.look(run)
        words = [sys.executable, "-I", "-S", process.WRAPPER, str(here.folder / run)]
        ended = subprocess.run(words, input=letter, capture_output=True, check=True)
        assert ended.stdout == b"done"
        assert here.runner.look(run) == before
    assert not (tmp_path / "ran").exists()


def test_a_start_that_fails_on_the_disk_does_nothing_and_can_be_repeated(here: Place, tmp_path: Path) -> None:
    obstacle = here.folder / "run-1" / "output"
    obstacle.mkdir(parents=True)
    launch = shell(f"echo x >> {tmp_path}/starts")
    with pytest.raises(Unavailable, match="could not be started: Is a directory"):
        here.start("run-1", launch)
    assert not here.runner.look("run-1").known
    obstacle.rmdir()
    here.start("run-1", launch)
    here.ended("run-1")
    assert (tmp_path / "starts").read_text() == "x\n"


def test_a_run_whose_end_cannot_be_noted_is_seen_to_have_ended(here: Place) -> None:
    here.start("run-1", shell("echo here; read line; exit 3", typed=True))
    (here.folder / "run-1" / "rc.new").mkdir()
    here.runner.type("run-1", "go")
    assert here.ended("run-1") == Observation(known=True, alive=False, code=None, size=5)


def test_a_hold_that_cannot_be_noted_is_none(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "OBEY_TIMEOUT_S", 0.3)
    here.start("run-1", shell("exec sleep 1000"))
    (here.folder / "run-1" / "held.new").mkdir()
    with pytest.raises(Unavailable, match="does not stand still"):
        here.runner.hold("run-1", on=True)
    wait_until(lambda: all(state(pid) == "S" for pid in here.processes("run-1")), "that it goes on")


def test_two_who_type_take_turns(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "TYPE_TIMEOUT_S", 0.1)
    here.start("run-1", shell("exec cat", typed=True))
    with (here.folder / "run-1" / "input").open("wb", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="else is typing"):
            here.runner.type("run-1", "hello")
    here.runner.type("run-1", "again")
    here.says("run-1", "again\n")
    assert here.text("run-1") == "again\n"


def test_errors_are_kept_apart_if_asked_and_only_their_end_is_read(here: Place) -> None:
    runner = ProcessRunner(here.folder)
    script = "import sys; print('out'); sys.stderr.write('x' * 100_000 + 'end')"
    here.start("run-1", python(script, apart=True))
    here.start("run-2", python(script))
    assert here.ended("run-1").size == 4
    assert here.ended("run-2").size == 100_007
    assert runner.errors("run-1").endswith(b"xend") and len(runner.errors("run-1")) == process.ERRORS_TAIL_BYTES
    assert runner.errors("run-2") == b""


def test_a_wrapper_is_deaf_to_what_a_terminal_sends(here: Place) -> None:
    here.start("run-1", shell("echo here; read line; exit 3", typed=True))
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        os.kill(wrapper_of(here, "run-1"), number)
    here.says("run-1", "here")
    here.runner.type("run-1", "go")
    assert here.ended("run-1").code == 3


def test_a_program_that_draws_is_refused(here: Place) -> None:
    with pytest.raises(Invalid, match="no terminal"):
        here.start("run-1", shell("true", terminal=True))
    assert not here.runner.look("run-1").known


@pytest.mark.parametrize("listed", [True, False])
def test_activity_is_the_same_on_a_kernel_that_does_not_list_children(
    here: Place, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    monkeypatch.setattr(activity, "_kernel_lists_children", lambda: listed)
    here.start("run-1", shell("(setsid sleep 1000 &); sleep 1000 & echo here; wait"))
    wait_until(lambda: (found := here.runner.activity("run-1")) is not None and found.processes == 3, "three of them")


def test_an_input_that_does_not_end_is_said_so(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "OBEY_TIMEOUT_S", 0.1)
    here.start("run-1", shell("exec cat", typed=True))
    os.kill(wrapper_of(here, "run-1"), signal.SIGSTOP)
    with pytest.raises(Unavailable, match="does not end"):
        here.runner.finish("run-1")
    os.kill(wrapper_of(here, "run-1"), signal.SIGCONT)
    assert here.ended("run-1").code == 0


def test_orphans_are_buried_while_the_run_goes_on(here: Place) -> None:
    here.start("run-1", shell("for n in 1 2 3 4 5; do (sleep 0.02 &) ; done; echo here; exec sleep 1000"))
    here.says("run-1", "here")
    wait_until(lambda: len(here.processes("run-1")) == 1, "the end of the orphans")
    assert here.runner.look("run-1").alive


def test_a_run_inside_of_a_run_ends_with_it(here: Place, tmp_path: Path) -> None:
    inner = Place("process", tmp_path / "inner")
    script = (
        "import signal, sys; from pathlib import Path; from covey.runners.process import ProcessRunner;"
        "from covey.core.fleet.launches import Launch;"
        f"ProcessRunner(Path({str(inner.folder)!r})).start('run-1', Launch(argv=('sleep', '1000'), cwd='/'));"
        "print('here', flush=True); signal.pause()"
    )
    here.start("run-1", shell(f'exec "{sys.executable}" -c "{script}"'))
    here.says("run-1", "here")
    assert inner.runner.look("run-1").alive
    here.runner.stop("run-1")
    assert not inner.runner.look("run-1").alive
    assert not inner.processes()
