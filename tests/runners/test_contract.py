"""What every runner promises."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.core.fleet.launches import Activity, Launch, Observation
from covey.errors import CoveyError, Invalid, Refused, TooLarge
from covey.git import objects
from tests.worlds.runners import RUNNERS, Place, alive, children, is_at_rest, program, python, read_on, shell, state
from tests.worlds.serving import wait_until

ROOT = Path(__file__).parents[2]
POLITE = """
import os, signal
def leave(*_): os._exit(5 * os.write(1, b"bye\\n") // 4)
signal.signal(signal.SIGTERM, leave)
os.write(1, b"here\\n")
while True: signal.pause()
"""
FOREVER = "echo here; exec sleep 1000"


def test_a_run_is_seen_alive_and_then_with_its_code_and_all_that_it_said(place: Place, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    place.start("run-1", shell(f"echo one; while [ ! -e {gate} ]; do sleep 0.01; done; echo two; exit 3"))
    place.says("run-1", "one\n")
    assert place.runner.look("run-1") == Observation(known=True, alive=True, size=4)
    gate.touch()
    assert place.ended("run-1") == Observation(known=True, alive=False, code=3, size=8)
    assert place.text("run-1") == "one\ntwo\n"


def test_a_run_that_nobody_started_is_not_known(place: Place) -> None:
    assert place.runner.look("run-1") == Observation(known=False, alive=False)
    assert place.runner.output("run-1", 0) == (b"", 0)
    place.runner.hold("run-1", on=True)
    place.runner.forget("run-1")


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 255", 255), ("kill -9 $$", -9), ("kill -15 $$", -15), ("kill -SEGV $$", -11)],
)
def test_the_code_says_how_the_program_ended(place: Place, script: str, code: int) -> None:
    place.start("run-1", shell(f"ulimit -c 0; {script}"))
    assert place.ended("run-1").code == code


def test_a_program_killed_from_outside_ends_by_that_signal(place: Place) -> None:
    place.start("run-1", shell("echo $$; exec sleep 1000"))
    os.kill(int(place.says("run-1", "\n")), signal.SIGKILL)
    assert place.ended("run-1").code == -9


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (program("no-such-program"), "no-such-program could not be started"),
        (program("/no/such/program"), "/no/such/program could not be started"),
        (program("/etc/passwd"), "Permission denied"),
        (shell("true", cwd="/no/such/folder"), "/no/such/folder could not be started"),
        (shell("true", env={"LONG": "x" * (1 << 22)}), "Argument list too long"),
    ],
)
def test_a_program_that_cannot_be_started_says_why(place: Place, launch: Launch, words: str) -> None:
    place.start("run-1", launch)
    seen = place.ended("run-1")
    assert seen.known and seen.code == 127
    assert seen.failure is not None and words in seen.failure


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "../a", "/", "a\0", "ä", "x" * 200])
def test_what_is_no_id_is_refused(place: Place, run_id: str) -> None:
    with pytest.raises(Invalid):
        place.start(run_id, shell("true"))


@pytest.mark.parametrize(
    "launch",
    [
        Launch(argv=(), cwd="/"),
        Launch(argv=("true",), cwd="here"),
        program("a\0b"),
        shell("true", env={"A=B": "1"}),
        shell("true", env={"A": "\ud800"}),
    ],
)
def test_a_launch_that_makes_no_sense_is_refused(place: Place, launch: Launch) -> None:
    with pytest.raises(Invalid):
        place.start("run-1", launch)
    assert not place.runner.look("run-1").known


def test_output_is_read_by_offset_whatever_its_size_and_letters(place: Place) -> None:
    line = "äöü€😀"
    place.start("run-1", python(f"for n in range(120_000): print({line!r}, n)", env={"PYTHONUTF8": "1"}))
    expected = "".join(f"{line} {n}\n" for n in range(120_000)).encode()
    assert len(expected) > 1 << 20
    seen, since, middle = b"", 0, len(expected) // 2 + 1
    while not (len(seen) == len(expected) and not place.runner.look("run-1").alive):
        part, since = place.runner.output("run-1", since)
        seen += part
        assert expected.startswith(seen)
    assert place.runner.look("run-1").size == len(expected)
    assert read_on(place.runner, "run-1", middle) == expected[middle:]
    assert place.runner.output("run-1", len(expected) + 5) == (b"", len(expected) + 5)


@pytest.mark.parametrize("text", [None, "", "one\ntwö", "x" * 300_000])
def test_the_program_reads_what_it_is_given_and_then_the_end(place: Place, text: str | None) -> None:
    place.start("run-1", shell("cat", stdin=text))
    assert place.ended("run-1").code == 0
    assert place.text("run-1") == (text or "")


def test_the_environment_is_what_the_launch_says_and_the_mark_of_the_run(place: Place, tmp_path: Path) -> None:
    given = {"PATH": "/bin:/usr/bin", "WORD": "a\nb=c ä", "EMPTY": ""}
    script = "import json, os; print(json.dumps([dict(os.environ), os.getcwd()]))"
    place.start("run-1", program(sys.executable, "-I", "-X", "utf8", "-c", script, env=given, cwd=str(tmp_path)))
    place.ended("run-1")
    environment, cwd = json.loads(place.text("run-1"))
    environment.pop("LC_CTYPE", None)  # Python's own.
    mark = {"COVEY_RUN": "run-1", "COVEY_RUN_FOLDER": f"{place.folder.resolve()}/run-1"}
    assert environment == given | mark | place.adds
    assert cwd == str(tmp_path.resolve())


@pytest.mark.parametrize("typed", [False, True])
def test_the_program_gets_three_files_and_no_signal_of_ours(place: Place, typed: bool) -> None:
    script = """
import os
print(sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")))
print(os.get_blocking(0), os.getsid(0) == os.getpid(), flush=True)
os.execv("/bin/grep", ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"])
"""
    with open(os.devnull) as one, socketpair() as two:
        os.set_inheritable(one.fileno(), True)
        os.set_inheritable(two, True)
        place.start("run-1", python(script, typed=typed))
        place.says("run-1", "SigIgn")
    files, kind, blocked, ignored = place.text("run-1").splitlines()
    assert files == "[0, 1, 2]"
    assert kind == "True True"
    assert int(blocked.split()[1], 16) == 0
    # Python ignores SIGPIPE and SIGXFSZ, and hands that on; 32 and 33 are the C library's own, ignored below make.
    theirs = {signal.SIGPIPE, signal.SIGXFSZ, 32, 33}
    assert int(ignored.split()[1], 16) & ~sum(1 << (number - 1) for number in theirs) == 0


@contextlib.contextmanager
def socketpair() -> Iterator[int]:
    """Yield one end of a pipe."""
    ours, theirs = os.pipe()
    try:
        yield theirs
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_broken_pipe_ends_a_program_as_it_does_in_a_terminal(place: Place) -> None:
    place.start("run-1", shell("yes | head -n 1; (kill -PIPE 0; true) || true; exit 7"))
    assert place.ended("run-1").code == -signal.SIGPIPE


# Stopping

TREE = """
import os, signal, subprocess, sys, time
HIDE = "import os, signal, sys, time; {}; print(os.getpid(), flush=True); time.sleep(1000)"
def child(what): subprocess.Popen([sys.executable, "-I", "-S", "-c", HIDE.format(what)])
child("pass")
child("os.setsid()")
child("os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0)")
child("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
child("signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setsid(); os.fork() and time.sleep(1000)")
subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; echo $$; while :; do sleep 0.05; done"])
subprocess.Popen(["/bin/sh", "-c", "echo $$; kill -STOP $$; sleep 1000"])
CHASE = '''
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork(): os._exit(0)
    os.setsid()
'''
subprocess.Popen([sys.executable, "-I", "-S", "-c", CHASE])
print(os.getpid(), flush=True)
signal.pause()
"""


def test_a_stop_ends_the_whole_tree_also_what_hides_or_does_not_listen(place: Place) -> None:
    place.start("run-1", python(TREE))
    wait_until(lambda: place.text("run-1").count("\n") == 8, "eight processes")
    pids = [int(word) for word in place.text("run-1").split()]
    assert all(map(alive, pids))
    place.runner.stop("run-1")
    assert not any(map(alive, pids))
    assert not any(place.processes("run-1") for _ in range(20))
    seen = place.runner.look("run-1")
    assert (seen.known, seen.alive, seen.code) == (True, False, -15)


def test_a_stop_is_kind_first(place: Place) -> None:
    place.start("run-1", python(POLITE))
    place.says("run-1", "here")
    place.runner.stop("run-1")
    assert place.runner.look("run-1").code == 5
    assert place.text("run-1") == "here\nbye\n"
    place.runner.stop("run-1")
    assert place.runner.look("run-1").code == 5


def test_a_run_stopped_before_it_started_never_starts(place: Place, tmp_path: Path) -> None:
    place.runner.stop("run-1")
    place.start("run-1", shell(f"touch {tmp_path}/ran"))
    seen = place.runner.look("run-1")
    assert (seen.known, seen.alive, seen.code) == (True, False, None)
    assert seen.failure is not None and "before it had started" in seen.failure
    assert not (tmp_path / "ran").exists()


def test_what_a_program_leaves_behind_ends_before_the_run_does(place: Place, tmp_path: Path) -> None:
    script = f"""
(trap 'sleep 0.2; echo last words; exit' TERM; touch {tmp_path}/left; while :; do sleep 0.01; done) &
setsid sh -c 'trap "" TERM; touch {tmp_path}/hidden; while :; do sleep 0.05; done' &
while [ ! -e {tmp_path}/left -o ! -e {tmp_path}/hidden ]; do sleep 0.01; done
exit 4
"""
    place.start("run-1", shell(script))
    wait_until(lambda: not place.runner.look("run-1").alive, "the end")
    seen, text = place.runner.look("run-1"), place.text("run-1")
    assert not place.processes("run-1")
    assert seen.code == 4
    if place.kind != "tmux":  # A terminal hangs up when its program ends, and shows no words of others.
        assert text.endswith("last words\n")
    assert seen.size == len(text)


def test_a_stop_that_meets_a_start_leaves_nothing_alive(place: Place) -> None:
    for n in range(25):
        run = f"run-{n}"
        starting = threading.Thread(target=place.start, args=(run, shell("sleep 1000 & exec sleep 1000")))
        starting.start()
        wait_until(lambda: n % 2 == 0 or not starting.is_alive() or (place.folder / run).exists(), "a moment")  # noqa: B023
        place.runner.stop(run)
        seen = place.runner.look(run)
        starting.join()
        assert seen.known and not seen.alive
        assert place.runner.look(run) == seen
        assert not place.processes(run)


# Starting twice


def test_a_second_start_changes_nothing_while_it_runs_and_after(place: Place, tmp_path: Path) -> None:
    launch = shell(f"echo x >> {tmp_path}/starts; echo here; read line", typed=True)
    place.start("run-1", launch)
    place.start("run-1", shell(f"echo y >> {tmp_path}/starts"))
    place.says("run-1", "here")
    place.another().start("run-1", launch)
    place.runner.type("run-1", "go")
    place.ended("run-1")
    place.another().start("run-1", launch)
    place.runner.forget("run-1")
    place.another().start("run-1", launch)
    assert place.ended("run-1").code == 0
    assert (tmp_path / "starts").read_text() == "x\n"


@contextlib.contextmanager
def starters(place: Place, count: int, script: str, *runs: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Yield processes that are about to start the same runs."""
    words = [sys.executable, "-m", "tests.runners.starter", place.kind, str(place.folder), script, *runs]
    pipe = subprocess.PIPE
    found = [subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    try:
        for process in found:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield found
    finally:
        for process in found:
            process.kill()
            process.communicate()


def told_to_start(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def has_started(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"


def start_all(place: Place, script: str, runs: list[str]) -> None:
    for run in runs:
        Place(place.kind, place.folder).start(run, shell(script))


def test_eight_processes_and_eight_threads_that_start_a_run_at_once_start_it_once(place: Place, tmp_path: Path) -> None:
    runs = [f"run-{n}" for n in range(4)]
    script = f"echo $COVEY_RUN >> {tmp_path}/starts; echo here; exec sleep 1000"
    with starters(place, 8, script, *runs) as processes:
        threads = [threading.Thread(target=start_all, args=(place, script, runs)) for _ in range(8)]
        for process, thread in zip(processes, threads, strict=True):
            told_to_start(process)
            thread.start()
        for process, thread in zip(processes, threads, strict=True):
            has_started(process)
            thread.join()
            assert all(place.runner.look(run).alive for run in runs)
    for run in runs:
        place.says(run, "here")
    assert sorted((tmp_path / "starts").read_text().split()) == runs


def test_a_new_runner_adopts_what_a_killed_process_started_and_misses_nothing(place: Place, tmp_path: Path) -> None:
    runs = [f"run-{n}" for n in range(20)]
    script = f"n=0; while [ ! -e {tmp_path}/gate ]; do n=$((n+1)); echo $COVEY_RUN $n; sleep 0.05; done; exit 6"
    with starters(place, 1, script, *runs) as (process,):
        told_to_start(process)
        has_started(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        runner = place.another()
        assert all(runner.look(run).alive for run in runs)
        sizes = {run: runner.look(run).size for run in runs}
        for run in runs:
            runner.start(run, shell("echo again"))
            wait_until(lambda run=run: runner.look(run).size > sizes[run] + 20, f"more from {run}")  # type: ignore[misc]
    (tmp_path / "gate").touch()
    for run in runs:
        assert place.ended(run).code == 6
        lines = place.text(run).splitlines()
        assert lines == [f"{run} {n + 1}" for n in range(len(lines))]


def test_a_start_that_was_killed_on_its_way_is_made_up_for_once(place: Place, tmp_path: Path) -> None:
    runs = [f"run-{n}" for n in range(30)]
    script = f"echo $COVEY_RUN >> {tmp_path}/starts"
    with starters(place, 1, script, *runs) as (process,):
        told_to_start(process)
        wait_until(lambda: place.runner.look("run-9").known, "some of them")
        process.kill()
        process.wait()
    for run in runs:
        place.another().start(run, shell(script))
    for run in runs:
        assert place.ended(run).code == 0
    assert sorted((tmp_path / "starts").read_text().split()) == sorted(runs)


def test_starting_leaves_no_child_and_no_file_open(place: Place) -> None:
    objects.close()  # what another test has asked git would go by itself meanwhile
    before = set(os.listdir("/proc/self/fd")), set(children(os.getpid()))
    for n in range(5):
        place.start(f"run-{n}", shell("exit 0" if n % 2 else FOREVER))
        place.runner.look(f"run-{n}")
    place.runner.stop("run-0")
    with contextlib.suppress(CoveyError):
        place.runner.type("run-2", "x")
    assert (set(os.listdir("/proc/self/fd")), set(children(os.getpid()))) == before


# Typing


def test_what_is_typed_arrives_line_by_line_after_what_was_given(place: Place) -> None:
    place.start("run-1", shell("while read line; do echo got $line; done", typed=True, stdin="first\n"))
    place.runner.type("run-1", "zwölf")
    assert place.says("run-1", "zwölf") == "got first\ngot zwölf\n"
    place.another().type("run-1", "one\ntwo")
    assert place.says("run-1", "two") == "got first\ngot zwölf\ngot one\ngot two\n"
    assert place.runner.look("run-1").alive


def test_a_run_that_takes_no_input_refuses_it(place: Place) -> None:
    with pytest.raises(Refused, match="takes no input"):
        place.runner.type("run-0", "hello")
    place.start("run-1", shell(FOREVER))
    with pytest.raises(Refused, match="takes no input"):
        place.runner.type("run-1", "hello")
    place.start("run-2", shell("exit 0", typed=True))
    place.ended("run-2")
    with pytest.raises(Refused, match="takes no input"):
        place.runner.type("run-2", "hello")
    place.start("run-3", shell("exec < /dev/null; echo here; exec sleep 1000", typed=True))
    place.says("run-3", "here")
    with pytest.raises(Refused, match="takes no input"):
        place.runner.type("run-3", "hello")


def test_lines_typed_at_once_stay_whole_and_too_much_is_refused_whole(place: Place, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    place.start("run-1", shell(f"while [ ! -e {gate} ]; do sleep 0.01; done; exec cat", typed=True))
    with pytest.raises(TooLarge):
        place.runner.type("run-1", "x" * 1_000_000)
    taken: list[str] = []

    def type_lines(letter: str) -> None:
        for n in range(60):
            line = f"{letter}{n}:" + letter * (n * 1237 % 9000)
            try:
                place.another().type("run-1", line)
            except Refused:
                gate.touch()
            else:
                taken.append(line)

    threads = [threading.Thread(target=type_lines, args=(letter,)) for letter in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gate.touch()
    expected = sum(len(line) + 1 for line in taken)
    wait_until(lambda: place.runner.look("run-1").size >= expected, "all that was taken")
    assert sorted(place.text("run-1").splitlines()) == sorted(taken)


# Finishing


def test_a_finished_input_ends_after_what_was_typed_and_takes_no_more(place: Place, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    place.start("run-1", shell(f"while [ ! -e {gate} ]; do sleep 0.01; done; cat; exit 3", typed=True))
    place.runner.type("run-1", "one")
    place.runner.type("run-1", "two")
    place.another().finish("run-1")
    place.runner.finish("run-1")
    with pytest.raises(Refused, match="takes no input"):
        place.runner.type("run-1", "three")
    assert place.runner.look("run-1").alive
    gate.touch()
    assert place.ended("run-1").code == 3
    assert place.text("run-1") == "one\ntwo\n"
    place.runner.finish("run-1")


def test_a_finish_of_what_takes_no_input_changes_nothing(place: Place) -> None:
    place.runner.finish("run-0")
    place.start("run-1", shell(FOREVER))
    place.runner.finish("run-1")
    place.says("run-1", "here")
    assert place.runner.look("run-1").alive


def test_a_held_run_can_be_finished(place: Place) -> None:
    place.start("run-1", shell("cat; exit 3", typed=True))
    place.runner.hold("run-1", on=True)
    place.runner.finish("run-1")
    assert place.runner.look("run-1").held
    place.runner.hold("run-1", on=False)
    assert place.ended("run-1").code == 3


# What its processes do


def test_a_run_that_prints_more_than_it_may_is_ended_at_once_though_nobody_watches(place: Place) -> None:
    place.start("run-1", shell("trap '' TERM; yes; sleep 1000", most=100_000))
    ended = place.ended("run-1")
    assert not ended.alive
    assert ended.size > 100_000
    place.start("run-2", shell("seq 1000", most=100_000))
    assert place.ended("run-2").code == 0


def test_the_processor_time_of_all_that_a_run_started_is_known_when_it_has_ended(place: Place) -> None:
    busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    place.start("run-1", shell(f"({busy}) & setsid sh -c '{busy}' & wait"))
    assert (place.ended("run-1").cpu or 0) > 0.1
    place.start("run-2", shell("exec sleep 0.01"))
    assert (place.ended("run-2").cpu or 0) < 0.1


def test_a_run_that_is_not_alive_does_nothing(place: Place) -> None:
    assert place.runner.activity("run-1") is None
    place.start("run-1", shell("exit 0"))
    place.ended("run-1")
    assert place.runner.activity("run-1") is None


def doing(place: Place, *, memory: bool = False) -> Activity:
    found = place.runner.activity("run-1", memory=memory)
    assert found is not None
    return found


def test_processes_of_a_run_are_counted_wherever_they_hide(place: Place) -> None:
    place.start("run-1", shell("sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 &); wait"))
    wait_until(lambda: doing(place).processes == 4, "four processes")
    assert doing(place).memory == 0
    assert 100_000 < doing(place, memory=True).memory < 100_000_000
    place.runner.stop("run-1")


BURN = "import time\nwhile time.process_time() < 0.2: pass"
IGNORE = "import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"


@pytest.mark.parametrize("setup", ["import subprocess, sys;", IGNORE])
def test_processor_time_grows_with_work_and_never_shrinks_when_a_process_ends(
    place: Place, tmp_path: Path, setup: str
) -> None:
    script = f"""
{setup}import os, time
for n in range(3):
    while not os.path.exists(f"{tmp_path}/{{n}}"): time.sleep(0.01)
    subprocess.Popen([sys.executable, "-I", "-S", "-c", {BURN!r}]).wait()
    print(n, flush=True)
time.sleep(1000)
"""
    place.start("run-1", python(script))
    times = [doing(place).cpu]
    for n in range(3):
        (tmp_path / str(n)).touch()
        while f"{n}\n" not in place.text("run-1"):
            times.append(doing(place).cpu)
        times.append(doing(place).cpu)
    assert times == sorted(times)
    if setup != IGNORE:  # What nobody waited for is known as far as it was seen.
        assert times[-1] - times[0] >= 0.5


def test_open_connections_of_a_run_are_counted(place: Place, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"""
import os, socket, time
other = socket.create_server(("127.0.0.1", 0))
held = [socket.create_connection(("127.0.0.1", {port})) for _ in range(2)]
os.fork()
print("here", flush=True)
while not os.path.exists("{tmp_path}/gate"): time.sleep(0.01)
held.clear()
time.sleep(1000)
"""
        place.start("run-1", python(script))
        place.says("run-1", "here\nhere")
        assert doing(place).connections == 2
        (tmp_path / "gate").touch()
        wait_until(lambda: doing(place).connections == 0, "that they are closed")


# Standing still


def test_a_held_run_stands_still_with_all_that_it_started_and_goes_on(place: Place) -> None:
    count = "n=0; while :; do n=$((n+1)); echo $n; sleep 0.01; done"
    place.start("run-1", shell(f"({count}) & setsid sh -c '{count}' & {count}"))
    place.says("run-1", "5\n")
    place.runner.hold("run-1", on=True)
    place.runner.hold("run-1", on=True)
    # Who waits for the disk stands still once it has been served; who has just made a child, with that child.
    wait_until(lambda: all(is_at_rest(pid) for pid in place.processes("run-1")), "that all stand still")
    seen = place.runner.look("run-1")
    assert seen.alive and seen.held
    assert place.another().look("run-1") == seen
    place.runner.hold("run-1", on=False)
    place.runner.hold("run-1", on=False)
    assert not place.runner.look("run-1").held
    wait_until(lambda: place.runner.look("run-1").size > seen.size + 100, "more")


def test_a_program_that_waits_for_its_new_child_is_held_with_it(place: Place, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    script = f"""
import os
print("here", flush=True)
# The child waits for the other end of the pipe before it becomes another program, and its parent for the child.
waits = (os.POSIX_SPAWN_OPEN, 0, {str(tmp_path / "pipe")!r}, os.O_RDONLY, 0)
os.waitpid(os.posix_spawn("/bin/true", ["true"], dict(os.environ), file_actions=[waits]), 0)
print("done", flush=True)
"""
    place.start("run-1", python(script))
    place.says("run-1", "here\n")
    wait_until(lambda: "D" in {state(pid) for pid in place.processes("run-1")}, "that it waits for its child")
    place.runner.hold("run-1", on=True)
    assert {state(pid) for pid in place.processes("run-1")} == {"D", "T"}
    assert all(is_at_rest(pid) for pid in place.processes("run-1"))
    place.runner.hold("run-1", on=False)
    (tmp_path / "pipe").write_bytes(b"")
    place.says("run-1", "done\n")


def test_a_held_run_can_be_stopped_kindly(place: Place) -> None:
    place.start("run-1", python(POLITE))
    place.says("run-1", "here")
    place.runner.hold("run-1", on=True)
    place.runner.stop("run-1")
    assert place.runner.look("run-1") == Observation(known=True, alive=False, code=5, size=9)
    place.runner.hold("run-1", on=True)
    assert not place.runner.look("run-1").held


# Forgetting


def test_a_forgotten_run_keeps_its_output_and_its_code(place: Place) -> None:
    place.start("run-1", shell("echo here; read line; exit 3", typed=True))
    with pytest.raises(Refused, match="still lives"):
        place.runner.forget("run-1")
    place.runner.type("run-1", "go")
    before = place.ended("run-1")
    place.runner.forget("run-1")
    place.runner.forget("run-1")
    assert place.another().look("run-1") == before
    assert place.text("run-1") == "here\n"


def test_a_token_of_the_environment_is_written_nowhere(place: Place) -> None:
    place.start("run-1", shell(FOREVER, env={"PATH": "/bin:/usr/bin", "TOKEN": "secret-1"}, stdin="secret-2"))
    place.says("run-1", "here")
    for path in place.folder.rglob("*"):
        if path.is_file():
            assert b"secret" not in path.read_bytes()
            assert path.stat().st_mode & 0o077 == 0
    assert (place.folder / "run-1").stat().st_mode & 0o077 == 0


# Anything, in any order

LAUNCHES = [
    shell("echo hello; exit 3"),
    shell("echo here; exec sleep 1000"),
    shell("while read line; do echo $line; done", typed=True),
    shell("sleep 1000 & setsid sleep 1000 & exit 1"),
    program("no-such-program"),
]
VERBS = st.sampled_from(
    ["start", "start", "look", "output", "type", "finish", "stop", "hold", "go on", "forget", "anew", "kill"]
)


@pytest.mark.parametrize("kind", sorted(RUNNERS))
@settings(max_examples=15)
@given(steps=st.lists(st.tuples(VERBS, st.sampled_from(["run-1", "run-2"]), st.sampled_from(LAUNCHES)), max_size=14))
def test_whatever_is_asked_in_whatever_order_nothing_stays_alive(
    kind: str, steps: list[tuple[str, str, Launch]]
) -> None:
    folder = Path(tempfile.mkdtemp())
    place = Place(kind, folder / "runs")
    dead: dict[str, Observation] = {}
    try:
        for verb, run, launch in steps:
            with contextlib.suppress(CoveyError):
                ask(place, verb, run, launch)
            seen = place.runner.look(run)
            assert dead.get(run, seen) == seen, "what is not alive stays so"
            if seen.known and not seen.alive:
                dead[run] = seen
                assert not place.processes(run)
    finally:
        place.end_all()
        shutil.rmtree(folder)


def ask(place: Place, verb: str, run: str, launch: Launch) -> None:
    """Do one thing to one run."""
    match verb:
        case "start":
            place.start(run, launch)
        case "look":
            place.runner.look(run)
        case "output":
            place.runner.output(run, 0)
        case "type":
            place.runner.type(run, "hello")
        case "finish":
            place.runner.finish(run)
            place.runner.activity(run)
        case "stop":
            place.runner.stop(run)
        case "hold" | "go_on":
            place.runner.hold(run, on=verb == "hold")
        case "forget":
            place.runner.forget(run)
        case "anew":
            place.runner = place.another()
        case "kill":
            for pid in place.processes(run)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
