"""Gates as they are run: real git, real processes, a real room around them, whatever they do."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from covey import trash
from covey.app.clock import SystemClock
from covey.app.history import transcripts
from covey.app.history.leftovers import old_gate_logs
from covey.app.merging import gate_logs, queue
from covey.config import Config, Log, Merge
from covey.core.fleet.next_step import MAX_OUTPUT_BYTES
from covey.core.merging.checks import Check
from covey.errors import CoveyError, Invalid, NotFound, Unavailable
from covey.git.landing.fast_forward import MARK_FILE
from covey.git.project import Project
from covey.git.worktrees.worktrees import Worktrees
from covey.loops.gates import gate_rooms
from covey.loops.gates.gate_outcomes import Order, Outcome
from covey.loops.gates.gates import Gates
from covey.loops.runtime import Runtime
from covey.runners import sandbox
from covey.runners.process import ProcessRunner
from covey.store.bus import Direct
from tests.worlds.boards import World
from tests.worlds.repositories import commit_files, git_out, make_repository
from tests.worlds.serving import wait_until

MODES = ["off", "on"]
PATIENCE = 60.0


class Yard(World):
    """A project with gates."""

    def __init__(self, folder: Path, isolate: str) -> None:
        self.root = make_repository(folder / "shop", {"a.txt": "one\n", ".gitignore": "built\n"})
        self.project = Project(self.root, self.root / ".git", bare=False)
        super().__init__(folder, Config(merge=Merge(isolate=isolate)))
        self.app.context.pulses.clock = SystemClock()
        self.head = git_out(self.root, "rev-parse", "HEAD")
        self.loop = asyncio.new_event_loop()
        self.runs = ProcessRunner(self.project.state / "runs")
        self.runtime = self.open()
        self.gates = Gates(self.runtime)
        self.number = 0

    def open(self) -> Runtime:
        """Sit down at a runtime, as a daemon does that has just started."""
        worktrees = Worktrees(self.project, self.root.parent / "worktrees")
        return Runtime(self.app, self.project, self.runs, worktrees, "http://127.0.0.1:1", Direct(self.store))

    def order(self, *commands: str, limit: float = PATIENCE, slot: int = 1, commit: str = "") -> Order:
        """Return the next order."""
        self.number += 1
        names = ("check",) if len(commands) == 1 else ("quick", "check", "web/**")
        checks = tuple(Check(name, command) for name, command in zip(names, commands, strict=False))
        return Order(f"gate-{self.number}", commit or self.head, slot, checks, limit)

    def try_on(self, *commands: str, limit: float = PATIENCE, slot: int = 1, commit: str = "") -> Outcome:
        """Run a gate to its end."""
        order = self.order(*commands, limit=limit, slot=slot, commit=commit)
        return self.loop.run_until_complete(self.gates.run(order))

    def printed(self, gate: str, last: int | None = None) -> str:
        """Return what a gate printed, or its last bytes, as whoever asks for it reads it."""
        path = gate_logs.path_of(self.project, gate)
        size = queue._size(path)
        since = 0 if last is None else size - last
        return transcripts.raw(partial(queue._packed, path), since, size, alive=False)[0]

    def set(self, **settings: Any) -> None:
        """Change settings of the queue."""
        house = self.app.context
        house.config = replace(house.config, merge=replace(house.config.merge, **settings))

    def worktree(self, slot: int = 1) -> Path:
        """Return the worktree of a place in the pool."""
        return self.root.parent / "worktrees" / f".gate-{slot}"

    def leave(self) -> None:
        """Leave nothing."""
        self.loop.run_until_complete(self.gates.stop_all())
        self.runtime.close()
        self.loop.close()

    def assert_nothing_left(self) -> None:
        """Assert that of all gates only worktrees and outputs are left."""
        folder = self.project.state
        assert [entry.name for entry in (folder / "runs").iterdir()] == []
        assert [
            entry.name for entry in (folder / "gates").iterdir() if not entry.name.endswith((".log.gz", ".index"))
        ] == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".cargo" / "bin").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def made(tmp_path: Path, home: Path) -> Iterator[Callable[[str], Yard]]:
    yards: list[Yard] = []

    def make(isolate: str) -> Yard:
        yards.append(Yard(tmp_path / f"yard-{len(yards)}", isolate))
        return yards[-1]

    yield make
    for yard in yards:
        yard.leave()


@pytest.fixture(params=MODES)
def yard(request: pytest.FixtureRequest, made: Callable[[str], Yard]) -> Yard:
    """A project whose gates run in the open, and one whose gates are held."""
    return made(request.param)


def test_a_gate_that_does_not_find_the_package_under_test_is_told_how_it_does(made: Callable[[str], Yard]) -> None:
    yard = made("off")
    commit_files(yard.root, {"src/cart/__init__.py": "", "till.py": ""}, "Add sources")
    commit = git_out(yard.root, "rev-parse", "HEAD")
    outside = "cd / && python3 -c 'import {}'"
    failed = yard.try_on(f"export PYTHONPATH=src; {outside.format('cart')}", commit=commit)
    assert "This repository's own package is not found: cart" in failed.summary
    assert 'PYTHONPATH="$PWD/src" before the command' in failed.summary
    assert 'PYTHONPATH="$PWD" before' in yard.try_on(outside.format("till"), commit=commit).summary
    assert "own package" not in yard.try_on(outside.format("nobody_has_this"), commit=commit).summary
    assert yard.try_on(f'export PYTHONPATH="$PWD/src"; {outside.format("cart")}', commit=commit).passed
    yard.assert_nothing_left()


@pytest.mark.parametrize("name", ["x" * 300, "語" * 100, "x" * 150], ids=len)
def test_a_check_fails_whatever_name_of_a_module_it_prints(made: Callable[[str], Yard], name: str) -> None:
    assert made("off").try_on(f"echo \"No module named '{name}'\"; exit 1").passed is False


def test_a_room_is_made_while_a_landing_comes_and_goes(
    made: Callable[[str], Yard], monkeypatch: pytest.MonkeyPatch
) -> None:
    yard = made("on")
    mark, make = yard.project.common / MARK_FILE, gate_rooms.make
    mark.write_bytes(b"")

    def ended(*words: Any, **more: Any) -> Any:
        room = make(*words, **more)
        mark.unlink()  # the landing is over before the room is closed
        return room

    monkeypatch.setattr(gate_rooms, "make", ended)
    assert yard.try_on("true").passed is True
    assert not mark.exists()


def alive(mark: str) -> list[int]:
    """Return the processes of this very test, known by their HOME, that have a mark in their command."""
    found, home = [], f"HOME={os.environ['HOME']}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command, env = (Path(f"/proc/{name}/{file}").read_bytes() for file in ("cmdline", "environ"))
            if mark.encode() in command and home in env.split(b"\0") and int(name) != os.getpid():
                found.append(int(name))
        except OSError:
            continue
    return found


# What is asked


def test_a_gate_passes_in_a_worktree_at_exactly_its_commit(yard: Yard) -> None:
    outcome = yard.try_on("cat a.txt; git rev-parse HEAD; git status --porcelain; pwd")
    assert outcome.passed is True, outcome
    assert (outcome.code, outcome.why, outcome.failures, outcome.strayed) == (0, "", (), ())
    printed = yard.printed("gate-1").splitlines()
    assert printed[1:] == ["one", yard.head, str(yard.worktree())]
    assert gate_logs.path_of(yard.project, "gate-1").is_file()
    yard.assert_nothing_left()


def test_checks_are_run_in_order_and_the_first_that_fails_ends_it(yard: Yard) -> None:
    outcome = yard.try_on("echo one >&2", "echo 'FAILED tests/a.py::test_b - assert 1 == 2'; exit 3", "echo three")
    assert (outcome.passed, outcome.code, outcome.step) == (False, 3, "check")
    assert outcome.failures == ("tests/a.py::test_b",)
    assert outcome.why.startswith("The check failed (exit code 3): echo")
    assert "FAILED tests/a.py::test_b" in outcome.summary
    printed = yard.printed("gate-1")
    assert "\none\n" in printed
    assert "three" not in printed
    assert yard.try_on("true", "true", "echo three").passed is True
    yard.assert_nothing_left()


def test_a_command_that_is_not_there_cannot_be_run(yard: Yard) -> None:
    outcome = yard.try_on("no-such-program-at-all")
    assert (outcome.passed, outcome.cannot_run, outcome.code) == (False, True, 127)


def test_a_gate_without_a_check_is_refused(yard: Yard) -> None:
    with pytest.raises(Invalid, match="tests nothing"):
        yard.try_on()


def test_a_commit_that_is_not_there_leaves_nothing(yard: Yard) -> None:
    with pytest.raises(CoveyError):
        yard.try_on("true", commit="0" * 40)
    assert yard.try_on("true").passed is True
    with pytest.raises(CoveyError, match="no commit 1111"):
        yard.try_on("true", commit="1" * 40)  # also where there is a worktree by now
    assert yard.try_on(f"test $(git rev-parse HEAD) = {yard.head} && test -e a.txt").passed is True
    yard.assert_nothing_left()


def test_gates_run_at_once_each_in_its_own_place(yard: Yard, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meet")
    yard.set(show=(str(tmp_path),))
    one = yard.order(f"echo here > {tmp_path}/meet && pwd && echo $COVEY_GATE_SLOT", slot=1)
    other = yard.order(f"cat {tmp_path}/meet && pwd && echo $COVEY_GATE_SLOT", slot=2)

    async def both() -> list[Outcome]:
        return list(await asyncio.gather(yard.gates.run(one), yard.gates.run(other)))

    assert [outcome.passed for outcome in yard.loop.run_until_complete(both())] == [True, True]
    for gate, slot in (("gate-1", 1), ("gate-2", 2)):
        assert yard.printed(gate).splitlines()[-2:] == [str(yard.worktree(slot)), str(slot)]
    yard.loop.run_until_complete(yard.gates.put_away())
    assert (yard.worktree(1).exists(), yard.worktree(2).exists()) == (False, False)


def test_a_gate_waits_for_its_place_while_that_is_removed(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    assert yard.try_on("true").passed
    begun, go_on, remove = asyncio.Event(), threading.Event(), yard.gates.runtime.worktrees.remove

    def remove_slowly(name: str) -> None:
        yard.loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(PATIENCE)
        remove(name)

    async def both() -> Outcome:
        away = asyncio.ensure_future(yard.gates.put_away())
        await begun.wait()
        gate = asyncio.ensure_future(yard.gates.run(yard.order("true")))
        try:
            await asyncio.wait([gate], timeout=1.0)
            assert not gate.done(), "it was tested in a worktree that somebody removes"
        finally:
            go_on.set()
        await away
        return await gate

    monkeypatch.setattr(yard.gates.runtime.worktrees, "remove", remove_slowly)
    assert yard.loop.run_until_complete(both()).passed
    assert yard.worktree(1).exists()


def test_its_temporary_folder_is_its_own_and_gone_afterwards(yard: Yard, tmp_path: Path) -> None:
    outcome = yard.try_on('echo "$TMPDIR" && touch "$TMPDIR/x" && mktemp && mkdir "$TMPDIR/ro" && chmod 0 "$TMPDIR/ro"')
    assert outcome.passed is True, outcome.summary
    folder, file = yard.printed("gate-1").splitlines()[1:]
    assert file.startswith(folder)
    assert not Path(file).exists()
    assert yard.try_on(f"test ! -e {file} && test ! -e $TMPDIR/ro").passed is True


def test_variables_of_covey_and_git_do_not_reach_it(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("COVEY_TOKEN", "secret")
    assert yard.try_on('test -z "$GIT_DIR$COVEY_TOKEN" && git log -1 >/dev/null').passed is True


def test_processor_time_is_measured_and_says_how_many_run_at_once(yard: Yard) -> None:
    outcome = yard.try_on("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
    assert outcome.cpu is not None and outcome.cpu > 0
    assert outcome.seconds > 0
    assert 1 <= yard.gates.slots() <= 8


def test_a_full_machine_does_not_make_gates_look_cheap(yard: Yard) -> None:
    cores = len(os.sched_getaffinity(0))
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4 * cores)]
    try:
        yard.try_on("timeout 1 sh -c 'while :; do :; done'; true")
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert yard.gates.slots() <= cores


# What goes wrong


def test_a_gate_that_hangs_is_ended_with_its_children_when_its_time_is_over(yard: Yard) -> None:
    outcome = yard.try_on("echo begun; sleep 98761 & (trap '' TERM; sleep 98761)", limit=6.0)
    assert (outcome.passed, outcome.late) == (False, True)
    assert "took longer than" in outcome.why
    assert "begun" in outcome.summary
    assert alive("98761") == []
    yard.assert_nothing_left()


def test_a_gate_that_prints_without_end_is_ended_and_told_so(yard: Yard) -> None:
    outcome = yard.try_on("trap '' TERM; echo first; yes 'ERROR: again and again and again and again'; sleep 98762")
    assert (outcome.passed, outcome.flooded, outcome.late) == (False, True, False)
    assert "printed more than 256 MiB and was ended" in outcome.why
    assert outcome.summary.count("ERROR: again") < 300
    assert gate_logs.path_of(yard.project, "gate-1").stat().st_size < 16 * 1024**2
    assert alive("98762") == []
    assert "the rest is not kept" in yard.printed("gate-1", last=1000)
    yard.assert_nothing_left()


def test_nothing_is_left_of_what_forks_away(yard: Yard, tmp_path: Path) -> None:
    away = (
        "import os, sys, time\n"
        "for _ in range(2):\n    if os.fork(): os._exit(0)\n    os.setsid()\n"
        "for file in range(3): os.close(file)\n"
        "os.execvpe('sleep', ['sleep', '98763'], {'PATH': os.environ['PATH']})\n"
    )
    (tmp_path / "away.py").write_text(away)
    yard.set(show=(str(tmp_path),))
    outcome = yard.try_on(f"setsid sleep 98763 & nohup sleep 98763 & python3 {tmp_path}/away.py; true")
    assert outcome.passed is True, outcome.summary
    assert alive("98763") == []
    yard.assert_nothing_left()


def test_a_gate_that_deletes_its_worktree_fails_alone_and_the_next_finds_it_whole(yard: Yard) -> None:
    outcome = yard.try_on('rm -rf "$PWD" "$PWD/.git" 2>/dev/null; ls "$PWD"/a.txt')
    assert outcome.passed is False
    after = yard.try_on("cat a.txt && git status --porcelain && git rev-parse HEAD")
    assert after.passed is True, after.summary
    assert yard.printed("gate-2").splitlines()[1:] == ["one", yard.head]


@pytest.mark.parametrize("replaced", ["a link", "a copy", "its entry"])
def test_a_gate_that_puts_something_else_in_the_place_of_its_worktree_stops_no_other(
    made: Callable[[str], Yard], tmp_path: Path, replaced: str
) -> None:
    yard = made("off")
    theirs = make_repository(tmp_path / "theirs", {"precious": "1\n"})
    (theirs / "precious").write_text("not committed\n")
    how = {
        "a link": f'mv "$PWD" "$PWD.away" && ln -s {theirs} "$PWD"',
        "a copy": 'mv "$PWD" "$PWD.away" && cp -a "$PWD.away" "$PWD"',
        "its entry": f'd=$(git rev-parse --absolute-git-dir) && ln -sf {theirs}/precious "$d/index"',
    }
    yard.try_on(how[replaced])
    for _ in range(2):
        after = yard.try_on("cat a.txt && git rev-parse HEAD")
        assert after.passed is True, after.why
    yard.try_on(how[replaced])
    yard.loop.run_until_complete(yard.gates.put_away())
    assert not [each.name for each in yard.runtime.worktrees.list() if each.path.exists()]
    assert yard.try_on("cat a.txt").passed is True
    assert (theirs / "precious").read_text() == "not committed\n" and (theirs / ".git").is_dir()


def test_what_a_gate_commits_or_checks_out_is_gone_for_the_next(yard: Yard) -> None:
    before = git_out(yard.root, "for-each-ref")
    commit = "git -c user.name=x -c user.email=x@y commit -qam changed"
    outcome = yard.try_on(f"echo two > a.txt && touch new built && {commit} && git checkout -q --detach HEAD~1")
    assert outcome.passed is True, outcome.summary
    assert git_out(yard.root, "for-each-ref") == before
    assert git_out(yard.root, "status", "--porcelain") == ""
    other = git_out(commit_files(yard.root, {"b.txt": "b\n"}, "Other"), "rev-parse", "HEAD")
    after = yard.try_on("test $(cat a.txt) = one && test -e b.txt && test ! -e new && git rev-parse HEAD", commit=other)
    assert after.passed is True, after.summary
    assert yard.printed("gate-2").splitlines()[1:] == [other]
    git_out(yard.root, "fsck", "--strict")


def test_a_gate_that_fails_only_sometimes_has_one_fingerprint_for_its_failure(
    made: Callable[[str], Yard], home: Path
) -> None:
    yard = made("off")
    mark = home / ".cache" / "tries"
    mark.parent.mkdir(exist_ok=True)
    script = (
        f'echo x >> {mark}; n=$(wc -l < {mark}); echo "--- FAIL: TestOften (0.0$n s)"; '
        'echo "panic: $PWD at $(date +%H:%M:%S) pid $$" >&2; test $n = 2'
    )
    outcomes = [yard.try_on(script, slot=slot) for slot in (1, 1, 2)]
    assert [outcome.passed for outcome in outcomes] == [False, True, False]
    assert outcomes[0].failures == outcomes[2].failures == ("TestOften",)
    assert outcomes[0].fingerprint == outcomes[2].fingerprint != ""
    assert yard.try_on("echo '--- FAIL: TestOther'; false").fingerprint != outcomes[0].fingerprint


# Writing outside


def test_a_held_gate_sees_and_ends_no_process_but_its_own(made: Callable[[str], Yard]) -> None:
    yard = made("on")
    with subprocess.Popen(["sleep", "98771"]) as other:
        try:
            tried = f"kill -9 {other.pid}; pkill -9 -f 'sleep 9877[1]'; grep -l 9877[1] /proc/[0-9]*/cmdline; true"
            outcome = yard.try_on(f"{tried}; sleep 98772 & kill $! && wait; ls -d /proc/[0-9]* | wc -l")
            assert outcome.passed is True, outcome.summary
            assert other.poll() is None
        finally:
            other.kill()
    said = yard.printed("gate-1")
    assert "/cmdline" not in said.partition("\n")[2]
    assert int(said.split()[-1]) < 10
    yard.assert_nothing_left()


@pytest.mark.parametrize("isolate", ["auto", "on"])
def test_a_held_gate_cannot_write_outside_and_is_told_so(made: Callable[[str], Yard], home: Path, isolate: str) -> None:
    yard = made(isolate)
    other = yard.root.parent / "worktrees" / "ada"
    other.mkdir(parents=True)
    inside = (yard.root, other, home, yard.root / ".git" / "covey")
    refused = (yard.root / ".git", yard.root / ".git" / "refs" / "heads", Path("/etc"), Path("/usr"), Path("/srv"))
    for place in refused:
        outcome = yard.try_on(f"echo x > {place}/stray")
        assert outcome.passed is False, place
        assert (
            "tried to write outside of its worktree" in outcome.summary or not place.exists() or place == Path("/srv")
        )
        assert not (place / "stray").exists()
    assert yard.try_on("; ".join(f"mkdir -p {place}; echo x > {place}/stray" for place in inside)).passed is True
    assert [place for place in inside if (place / "stray").exists()] == []
    tries = f"rm -rf {yard.root} {other} {home}; git tag stray; git config x.y z; git branch stray; true"
    before = (yard.root / ".git" / "config").read_bytes()
    assert yard.try_on(tries).passed is True
    assert git_out(yard.root, "status", "--porcelain") == ""
    assert git_out(yard.root, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert (yard.root / ".git" / "config").read_bytes() == before
    assert yard.try_on("true").passed is True


def test_where_no_room_can_be_made_a_gate_that_must_have_one_is_refused(
    made: Callable[[str], Yard], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "trouble", lambda: "bwrap is not installed")
    with pytest.raises(Unavailable, match="bwrap is not installed") as refused:
        made("on").try_on("true")
    assert "Install bubblewrap" in refused.value.hint


def test_where_no_room_can_be_made_what_strays_is_told_and_does_not_count(
    made: Callable[[str], Yard], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "trouble", lambda: "bwrap is not installed")
    yard = made("auto")
    assert yard.try_on("echo x > new").passed is True
    assert "Gates run in no room of their own (bwrap is not installed)" in yard.app.context.gate.limits[0]
    for script, what in (
        (f"echo x > {yard.root}/stray", "stray in your checkout"),
        (f"echo more >> {yard.root}/a.txt", "a.txt in your checkout"),
        (f"cd {yard.root} && env -i PATH=$PATH HOME=/ git tag v1", "refs/tags/v1"),
        (f"cd {yard.root} && env -i PATH=$PATH HOME=/ git config some.thing x", "git's settings or hooks"),
    ):
        outcome = yard.try_on(script)
        assert outcome.passed is None, script
        assert outcome.strayed == (what,)
        assert f"was changed: {what}." in outcome.why
    failed = yard.try_on(f"echo x > {yard.root}/other; false")
    assert (failed.passed, failed.strayed) == (False, ("other in your checkout",))
    assert "other in your checkout" in failed.summary


# Who ends it


def _beside(yard: Yard, order: Order) -> tuple[threading.Thread, list[Outcome]]:
    """Run a gate in a thread of its own."""
    ended: list[Outcome] = []
    thread = threading.Thread(target=lambda: ended.append(yard.loop.run_until_complete(yard.gates.run(order))))
    thread.start()
    return thread, ended


def test_a_gate_that_nobody_wants_any_more_is_ended_and_says_nothing(yard: Yard) -> None:
    thread, ended = _beside(yard, yard.order("sleep 98764"))
    wait_until(lambda: bool(alive("98764")), "the gate")
    stopping = asyncio.run_coroutine_threadsafe(yard.gates.stop("gate-1"), yard.loop)
    thread.join(PATIENCE)
    # The loop stands still once the gate has ended, which may be before its end was told to who asked for it.
    yard.loop.run_until_complete(asyncio.wait_for(asyncio.wrap_future(stopping, loop=yard.loop), PATIENCE))
    assert (ended[0].passed, ended[0].fingerprint) == (None, "")
    assert "nobody wanted it" in ended[0].why
    assert alive("98764") == []


def test_a_gate_that_was_stopped_before_it_began_never_begins(yard: Yard, home: Path) -> None:
    (home / ".cache").mkdir()
    yard.loop.run_until_complete(yard.gates.stop("gate-1"))
    outcome = yard.try_on("touch ~/.cache/begun")
    assert outcome.passed is None
    assert "nobody wanted it" in outcome.why
    assert not (home / ".cache" / "begun").exists()
    assert yard.try_on("touch ~/.cache/begun").passed is True


def test_a_gate_stands_still_while_the_fleet_is_paused_and_that_time_does_not_count(yard: Yard, tmp_path: Path) -> None:
    yard.set(show=(str(tmp_path),))
    order = yard.order(f"echo $$; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done", limit=30)
    thread, ended = _beside(yard, order)
    wait_until(lambda: yard.runs.look("gate-1").size > 0, "the gate")
    yard.ask("fleet.pause")
    wait_until(lambda: yard.runs.look("gate-1").held, "its standstill")
    (tmp_path / "go").touch()
    assert yard.runs.look("gate-1").alive
    yard.ask("fleet.resume")
    thread.join(PATIENCE)
    assert ended[0].passed is True


def test_a_gate_that_somebody_kills_is_lost(yard: Yard) -> None:
    thread, ended = _beside(yard, yard.order("sleep 98765"))
    wait_until(lambda: bool(alive("98765")), "the gate")
    holder = yard.runs.holder("gate-1")
    assert holder is not None
    os.kill(holder, 9)
    thread.join(PATIENCE)
    assert (ended[0].passed, ended[0].code) == (None, None)
    assert "ended by somebody else" in ended[0].why
    assert alive("98765") == []
    yard.assert_nothing_left()


def test_a_new_daemon_ends_what_the_one_before_left_alone(yard: Yard) -> None:
    async def called_off() -> None:
        task = asyncio.ensure_future(yard.gates.run(yard.order("touch $TMPDIR/begun; sleep 98766")))
        await asyncio.to_thread(wait_until, lambda: bool(alive("98766")), "the gate")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    yard.loop.run_until_complete(called_off())
    folder = Path(os.readlink(yard.project.state / "gates" / "gate-1.room" / "temporary"))
    assert alive("98766") and folder.exists()
    yard.gates = Gates(yard.open())
    yard.loop.run_until_complete(yard.gates.recover())
    assert alive("98766") == []
    assert not folder.exists()
    yard.assert_nothing_left() if (yard.project.state / "gates").exists() else None
    assert yard.try_on("true").passed is True


def test_rooms_that_nobody_uses_any_more_are_removed_beside_and_by_a_new_daemon(yard: Yard, tmp_path: Path) -> None:
    assert yard.try_on("mkdir -p $TMPDIR/deep && echo x > $TMPDIR/deep/x && echo x > new").passed is True
    yard.loop.run_until_complete(yard.gates.stop_all())
    old = yard.project.state / "old-rooms"
    assert list(old.iterdir()) == []
    (tmp_path / "temporary").mkdir()
    (old / "gate-77.room" / "layers").mkdir(parents=True)
    (old / "gate-77.room" / "temporary").symlink_to(tmp_path / "temporary")
    yard.loop.run_until_complete(Gates(yard.open()).recover())
    assert list(old.iterdir()) == []
    assert not (tmp_path / "temporary").exists()


def test_whenever_a_gate_is_called_off_nothing_of_it_begins_afterwards(yard: Yard) -> None:
    async def called_off(steps: int) -> None:
        task = asyncio.ensure_future(yard.gates.run(yard.order("sleep 98767")))
        for _ in range(steps):
            await asyncio.sleep(0.004)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await yard.gates.stop_all()

    for steps in range(0, 40, 4):
        yard.loop.run_until_complete(called_off(steps))
        assert alive("98767") == []
    yard.assert_nothing_left()


# What it printed


def test_what_was_printed_is_kept_whole_by_age_and_size_and_without_secrets(made: Callable[[str], Yard]) -> None:
    yard = made("off")
    token = "ghp_" + "a1B2" * 9
    yard.try_on(f"echo {token}; seq 100000; printf '\\377\\n'", "true")
    read = yard.printed("gate-1")
    assert token not in read
    assert read.endswith("100000\n\ufffd\n$ true\n")
    assert yard.printed("gate-1", last=9) == read[-9:]
    assert not gate_logs.path_of(yard.project, "gate-2").exists()
    with pytest.raises(NotFound):
        gate_logs.path_of(yard.project, "../../config")
    now = Path(gate_logs.path_of(yard.project, "gate-1")).stat().st_mtime
    yard.try_on("true")

    def clear(keep_megabytes: float, at: float) -> int:
        folder, keep = yard.project.state / gate_logs.FOLDER, Log(keep_days=1, keep_megabytes=keep_megabytes)
        return sum(each.path is not None and trash.remove(each.path) for each in old_gate_logs(folder, keep, at))

    assert clear(1, now + 3600) == 0
    assert clear(0.001, now + 3600) == 1
    assert yard.printed("gate-2") == "$ true\n"
    assert clear(1, now + 200_000) == 1
    assert MAX_OUTPUT_BYTES == 256 * 1024**2


def test_a_check_that_prints_what_the_room_would_say_fails_like_any_other(tmp_path: Path) -> None:
    yard = Yard(tmp_path, "on")
    try:
        outcome = yard.try_on("echo 'bwrap: Creating new namespace failed' >&2; exit 1")
        assert (outcome.passed, outcome.code) == (False, 1)
    finally:
        yard.leave()


def test_a_tree_that_no_checkout_can_hold_is_the_fault_of_its_change(tmp_path: Path) -> None:
    yard = Yard(tmp_path, "off")
    try:
        blob = git_out(yard.root, "rev-parse", "HEAD:a.txt")
        listed = f"{git_out(yard.root, 'ls-tree', 'HEAD')}\n100644 blob {blob}\t{'n' * 300}\n"
        made = subprocess.run(
            ["git", "mktree"], cwd=yard.root, input=listed, capture_output=True, text=True, check=True
        )
        commit = git_out(yard.root, "commit-tree", "-p", "HEAD", "-m", "Too long", made.stdout.strip())
        outcome = yard.try_on("true", commit=commit)
        assert (outcome.passed, outcome.step) == (False, "checkout")
        assert "git cannot check it out" in outcome.why and outcome.fingerprint
        assert yard.try_on("true").passed
    finally:
        yard.leave()


@pytest.mark.parametrize("isolate", MODES)
def test_what_a_gate_printed_stays_when_it_writes_to_its_standard_error_by_name(tmp_path: Path, isolate: str) -> None:
    yard = Yard(tmp_path, isolate)
    try:
        outcome = yard.try_on("echo 'FAILED tests/a.py::test_one'; echo warned > /dev/stderr; exit 1")
        assert outcome.failures == ("tests/a.py::test_one",)
        assert yard.printed("gate-1").endswith("FAILED tests/a.py::test_one\nwarned\n")
    finally:
        yard.leave()


def test_no_tree_is_to_blame_for_a_full_disk(tmp_path: Path) -> None:
    enter = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    story = subprocess.run(
        [*enter, sys.executable, "-m", "tests.loops.gates.small_disk", str(tmp_path)],
        capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert story.returncode == 0, story.stdout[-2000:] + story.stderr[-6000:]
    tree, check, said = story.stdout.splitlines()
    assert tree.startswith("the tree: The files of ") and tree.endswith("Make room on the disk.")
    assert check == "the check: The disk is full, and its check failed for that. Make room on the disk."
    assert said == "a check that only says so: False"
