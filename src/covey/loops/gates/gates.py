"""The gates: each tests one tree in a worktree of the pool, in a room of its own, and says how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from covey import trash
from covey.app.merging import gate_logs
from covey.config import Config
from covey.core.fleet.launches import Launch, Observation
from covey.core.fleet.next_step import MAX_OUTPUT_BYTES
from covey.core.merging import failures, test_counts
from covey.core.merging.checks import Check
from covey.core.merging.gate_slots import MAX_GATES_AVERAGED, load, slots
from covey.core.texts import redact
from covey.errors import Invalid, Unavailable
from covey.git.guard import gate_view
from covey.git.guard.guard import read_settings, session_env, write_guard
from covey.loops.gates import gate_rooms, warm_folders
from covey.loops.gates.gate_outcomes import (
    CANNOT_RUN_CODES,
    NOT_WANTED,
    OUTPUT_LIMIT,
    GateUnderWay,
    Order,
    Outcome,
    check_room,
    failed_at,
    hints_for,
    is_disk_full,
    shortened,
    strayed_words,
    why_it_failed,
)
from covey.loops.gates.gate_worktrees import WORKTREE, GateWorktrees
from covey.loops.gates.warm_folders import Warmth
from covey.loops.runtime import Runtime, wait_at_most
from covey.runners import machine, sandbox, tools

T = TypeVar("T")
ROOM = ".room"
CACHES = ".caches"
"""In the temporary folder, what stands in for the caches of tools where they can only be read."""
OLD_ROOMS = "old-rooms"
"""The folder of rooms that nobody uses any more, and that are not removed yet."""
FIRST_LOOK_EVERY_S, LOOK_EVERY_S = 0.05, 0.25
"""Seconds between two looks at a gate that has just begun, and at one that runs for long or tells of its end."""
KEEP_TIMEOUT_S = 2.0
"""Seconds that a gate waits for what others leave in the caches to be kept, since it may be for this one."""
STRAYED_LOOKS_S = (0.2, 0.5)
"""Seconds after which we look again at what seems to have strayed."""
COUNTED_TAIL_BYTES = 64 * 1024
"""Bytes of the end of its output in which a check says how many tests it ran."""
MAX_SHARE_DELETED = 0.5
"""The part of the files under test that a check may delete and still count as one."""

log = logging.getLogger("covey.gates")


class Gates:
    """Runs gates, several at once, each in a worktree that is brought to exactly its commit."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._tests: dict[str, GateUnderWay] = {}
        self._loads: deque[float] = deque(maxlen=MAX_GATES_AVERAGED)
        self._told: set[str] = set()
        self._trouble: str | None = ""
        """Why no room could be made when that was asked last; empty before that."""
        self._layered: bool | None = None
        self._warmth = Warmth(runtime.project)
        self._early: deque[str] = deque(maxlen=64)
        """Gates that were stopped before they had begun."""
        self._keeping: set[asyncio.Future[None]] = set()
        self._leaving: dict[asyncio.Future[None], Path] = {}
        """What is done for gates that have ended, beside what comes next."""
        self._worktrees = GateWorktrees(runtime)

    def slots(self) -> int:
        """Return how many gates should run at once, by the settings or by what the last ones used."""
        setting = self.runtime.app.context.config.merge.slots
        return slots(setting, len(os.sched_getaffinity(0)), list(self._loads), free_memory=self.runtime.free_memory())

    async def run(self, order: Order) -> Outcome:
        """Test a commit and say how it ended; raises if the gate cannot be begun, and then nothing of it is left."""
        if not order.checks:
            raise Invalid("A gate without a check tests nothing.", hint='[merge] check = "make test", for example.')
        if order.gate in self._early:
            return Outcome(passed=None, why=NOT_WANTED)
        test = GateUnderWay(order, order.config or self.runtime.app.context.config)
        for other in [each for each in self._tests.values() if each.order.slot == order.slot]:
            await self._end(other)  # Whoever ran it was called off.
        self._tests[order.gate] = test
        try:
            await self._worktrees.wait_for(order.slot)
            if self._keeping:
                await asyncio.wait(self._keeping, timeout=KEEP_TIMEOUT_S)
            unfit = await self._beside(test, lambda: self._prepare(test))
            before = machine.processors()
            outcome = unfit or await self._steps(test)
        except Exception:  # Who is called off does not end it: it stays ours, and whoever does that has to stop it.
            await self._end(test)
            raise
        await self._end(test)
        if outcome.cpu is not None and outcome.seconds > 0 and outcome.passed is not None:
            self._loads.append(load(outcome.cpu, outcome.seconds, machine.resting_since(before)))
        return outcome

    async def stop(self, gate: str) -> None:
        """End a gate that nobody wants any more, or never begin it; whoever waits for it learns that."""
        test = self._tests.get(gate)
        if test is None:
            self._early.append(gate)
            return
        test.unwanted = True
        if test.run:
            await self.runtime.in_run_thread(lambda: self.runtime.runner.stop(test.run))

    async def stop_all(self) -> None:
        """End every gate, also one whose caller was called off, and leave nothing of it but its worktree."""
        for test in list(self._tests.values()):
            await self._end(test)
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def _end(self, test: GateUnderWay) -> None:
        """End a gate if it runs, and have removed what it has no more use for."""
        test.unwanted = True
        if test.work is not None:
            await asyncio.wait([test.work])  # What is half begun could begin after its end.
            test.work.exception()
        await self.runtime.in_git_thread(lambda: self._clean(test))
        if self._tests.pop(test.order.gate, None) is None:
            return  # Somebody else ended it too.
        keeping = None
        if test.keeps or test.lent is not None:
            keeping = asyncio.ensure_future(self.runtime.in_git_thread(lambda: self._give_back(test)))
            self._keeping.add(keeping)
            keeping.add_done_callback(self._keeping.discard)
        leaving = asyncio.ensure_future(self._leave(test, keeping))
        self._leaving[leaving] = test.folder
        leaving.add_done_callback(lambda done: self._leaving.pop(done, None))

    async def _leave(self, test: GateUnderWay, keeping: asyncio.Future[None] | None) -> None:
        """Remove the room of a gate, once what is worth it has been kept; that may take its time."""
        if keeping is not None:
            await asyncio.wait([keeping])
        if test.folder != Path():
            await self.runtime.in_background(lambda: gate_rooms.remove(test.folder))
        await self.runtime.in_background(self._warmth.tidy)

    async def recover(self) -> None:
        """End every gate that a daemon before us left alone, and remove what was only needed while it ran."""
        folder, running = self.runtime.project.runs, {test.run for test in self._tests.values()}
        left = [entry for entry in folder.glob("gate-*") if entry.name not in running] if folder.is_dir() else []
        await asyncio.gather(*(self.runtime.in_run_thread(partial(self._forget, run)) for run in left))
        await self.runtime.in_git_thread(self._remove_left)

    async def put_away(self) -> None:
        """Remove the worktrees of the pool, unless a gate runs in them."""
        await self._worktrees.put_away(lambda slot: any(test.order.slot == slot for test in self._tests.values()))

    async def _beside(self, test: GateUnderWay, work: Callable[[], T]) -> T:
        """Do something for a gate beside the loop; it goes on to its end if its caller is called off."""
        doing = asyncio.ensure_future(self.runtime.in_git_thread(work))
        test.work = doing
        return await asyncio.shield(doing)

    # What a gate is given

    def _prepare(self, test: GateUnderWay) -> Outcome | None:
        """Bring the worktree to the commit, and make the room; return how the gate ended if no checkout can hold it."""
        config, name = test.config, f"{WORKTREE}{test.order.slot}"
        isolated = self._is_isolated(config)
        try:
            test.layered = isolated and self._has_layers()
            test.lent = self._warmth.lend(config, test.order.commit)
        except OSError as error:
            raise _no_room(error) from error
        unfit = self._worktrees.check_out(test, name)
        if unfit is not None:
            return unfit
        if not test.layered:
            test.files = self.runtime.worktrees.tracked(name)
        try:
            self._furnish(test, name, isolated=isolated)
        except (OSError, shutil.Error) as error:
            raise _no_room(error) from error
        return None

    def _furnish(self, test: GateUnderWay, name: str, *, isolated: bool) -> None:
        order, config, project = test.order, test.config, self.runtime.project
        test.folder = project.state / gate_logs.FOLDER / f"{order.gate}{ROOM}"
        test.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = os.path.realpath(tempfile.mkdtemp(prefix="covey-gate-"))
        os.symlink(place, test.folder / "temporary")
        test.temporary = os.path.join(place, "tmp")  # The gate may open it to all, and none of them gets there.
        os.mkdir(test.temporary)
        test.said = read_settings(project)
        if test.lent is not None and not test.layered:
            warm_folders.copy(test.lent, test.path)
        if isolated:
            entry = self.runtime.worktrees.git_dir(name)
            assert entry is not None  # It was made just now.
            for variable in () if test.layered else tools.OWN_CACHES:
                (Path(test.temporary) / CACHES / variable).mkdir(parents=True)
            test.room = gate_rooms.make(
                project, config, test.path, entry, test.folder, test.temporary, layered=test.layered, lent=test.lent,
                said=test.said,
            )  # fmt: skip
        elif config.merge.isolate == "auto":
            test.before = gate_view.look(project, config.target)

    def _is_isolated(self, config: Config) -> bool:
        """Say whether a gate is isolated in a room; refuse if it must be and cannot."""
        if config.merge.isolate == "off":
            return False
        trouble = sandbox.trouble()
        if trouble != self._trouble:  # what a room can have otherwise was found out when the first was made
            self._trouble = trouble
            limits = self.runtime.app.context.gate.limits = gate_rooms.limits(trouble)  # shown wherever the queue is
            for each in set(limits) - self._told:
                self._told.add(each)
                log.warning("%s", each)
        if trouble is None:
            return True
        if config.merge.isolate == "on":
            raise Unavailable(
                f'The gate cannot be isolated, as isolate = "on" asks: {trouble}.',
                hint='Install bubblewrap, or set isolate = "auto" in [merge].',
            )
        return False

    def _has_layers(self) -> bool:
        """Say whether layers can be laid over folders here; that is found out once."""
        if self._layered is None:
            folder = self.runtime.project.state / gate_logs.FOLDER
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            trouble = sandbox.layers_trouble(str(folder))
            self._layered = trouble is None
            if trouble is not None:
                log.warning("gates get a new worktree each time, and caches that they can only read: %s", trouble)
        return self._layered

    def _start(self, test: GateUnderWay, check: Check) -> None:
        config, project = test.config, self.runtime.project
        guard = write_guard(project, project.hooks, config.target, test.said)
        session = session_env(project, f"{WORKTREE}{test.order.slot}", guard, test.path)
        guarded = {name: value for name, value in session.items() if name.startswith("GIT_CONFIG_")}
        temporary = test.temporary if test.room is None else sandbox.TEMPORARY_FOLDERS[0]
        env = gate_rooms.environment(config) | guarded | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temporary)
        env |= {"PWD": str(test.path), "COVEY_GATE_SLOT": str(test.order.slot)}
        argv: tuple[str, ...] = ("/bin/sh", "-c", check.run)
        if test.room is not None:
            env["PWD"] = test.room.folder
            env |= {} if test.layered else {name: f"{temporary}/{CACHES}/{name}" for name in tools.OWN_CACHES}
            sandbox.clear_ways(test.room)
            argv = sandbox.inside(argv, test.room, test.room.folder)
        cwd = str(test.path) if test.room is None else "/"
        layers = () if test.room is None else test.room.layers
        self.runtime.runner.start(test.run, Launch(argv=argv, cwd=cwd, env=env, most=MAX_OUTPUT_BYTES, layers=layers))

    # Its course

    async def _steps(self, test: GateUnderWay) -> Outcome:
        """Run the checks one after the other until one fails, and say how that ended."""
        for number, check in enumerate(takewhile(lambda _: not test.unwanted, test.order.checks), 1):
            test.run = test.order.gate if number == 1 else f"{test.order.gate}.{number}"
            test.ended.append((test.run, check))
            await self._beside(test, partial(self._start, test, check))
            seen, late = await self._await(test)
            test.cpu = seen.cpu if test.cpu is None else test.cpu + (seen.cpu or 0.0)
            if seen.code != 0 or late or test.unwanted or seen.size > MAX_OUTPUT_BYTES:
                return await self._beside(test, partial(self._failed, test, check, seen, late=late))
        return await self._beside(test, lambda: self._passed(test))

    async def _await(self, test: GateUnderWay) -> tuple[Observation, bool]:
        """Wait until a step has ended, or end it when its time is over; standing still does not count."""
        handle = await self.runtime.in_run_thread(lambda: self.runtime.runner.end_of(test.run))
        last, begun, runner = self.runtime.awake(), test.seconds, self.runtime.runner
        with _end_heard(handle) as ended:
            while True:
                seen = await self.runtime.in_run_thread(lambda: runner.look(test.run))
                now = self.runtime.awake()
                test.seconds, last = test.seconds + (0.0 if seen.held else now - last), now
                if not seen.alive:
                    return seen, False
                if test.seconds > test.order.limit and not seen.held:
                    await self.runtime.in_run_thread(lambda: runner.stop(test.run))
                    return await self.runtime.in_run_thread(lambda: runner.look(test.run)), True
                paused = test.order.pauses and (await self.runtime.read(lambda call: call.tx.fleet())).paused
                if paused is not seen.held:
                    await self.runtime.in_run_thread(partial(runner.hold, test.run, on=paused))
                if ended is None or ended.is_set():
                    await asyncio.sleep(min(FIRST_LOOK_EVERY_S + (test.seconds - begun) / 50, LOOK_EVERY_S))
                else:
                    await wait_at_most(LOOK_EVERY_S, ended)

    # How it ended

    def _passed(self, test: GateUnderWay) -> Outcome:
        """Return that all checks passed, unless nobody wants that, it strayed or deleted what it tested."""
        self._keep(test)
        astray = () if test.before is None else self._astray(test.before, test.config.target)
        why = NOT_WANTED if test.unwanted else strayed_words(astray) if astray else ""
        gone = "" if why else self._gone(test)
        if gone:
            return replace(failed_at(test.order.checks[-1].name, gone), code=0, seconds=test.seconds, cpu=test.cpu)
        if not why and test.layered:
            test.keeps = bool(test.config.merge.cache)
        elif not why:
            self._warmth.keep(test.config, test.order.commit, test.lent, upper=None, tree=test.path)
        counts = self._count_tests(test)
        return Outcome(
            passed=None if why else True,
            why=why,
            code=0,
            seconds=test.seconds,
            cpu=test.cpu,
            summary=why or test_counts.said(counts, [each.run for _, each in test.ended]),
            strayed=astray,
            tests=test_counts.total(counts),
        )

    def _count_tests(self, test: GateUnderWay) -> list[int | None]:
        """Return how many tests each step ran so far, as the end of its output says; None if that does not say."""
        counts: list[int | None] = []
        for run, _ in test.ended:
            size = self.runtime.runner.look(run).size
            data, _ = self.runtime.runner.output(run, max(size - COUNTED_TAIL_BYTES, 0))
            count = test_counts.count("\n".join(failures.clean(line) for line in data.split(b"\n")))
            # What it printed before may tell of tests.
            counts.append(None if count == 0 and size > COUNTED_TAIL_BYTES else count)
        return counts

    def _gone(self, test: GateUnderWay) -> str:
        """Return what is wrong if a check deleted most of what it was to test."""
        files, upper = test.files, gate_rooms.upper(test.folder)
        if test.layered:
            missing, opaque = warm_folders.hidden(upper, test.path)
            if not missing and not opaque:
                return ""
            files = self.runtime.worktrees.tracked(f"{WORKTREE}{test.order.slot}")
            gone = sum(warm_folders.is_hidden(path, missing, opaque, upper) for path in files)
        else:
            top = os.fsencode(test.path)
            gone = sum(not os.path.lexists(os.path.join(top, name)) for name in files)
        if gone <= len(files) * MAX_SHARE_DELETED and (files or test.path.is_dir()):
            return ""
        return f"The check deleted what it tested, so its success says nothing: {gone} of {len(files)} files are gone."

    def _failed(self, test: GateUnderWay, check: Check, seen: Observation, *, late: bool) -> Outcome:
        """Return how a check failed, with all that its author needs."""
        found = failures.summary(self._output(test.run))
        check_room(test, seen, found)
        if seen.code != 0 and not late and not test.unwanted and is_disk_full(test, found):
            raise Unavailable("The disk is full, and its check failed for that.", hint="Make room on the disk.")
        flooded = seen.size > MAX_OUTPUT_BYTES
        why = why_it_failed(test, check, seen, late=late, flooded=flooded)
        lost = test.unwanted or (seen.code is None and not late and not flooded)
        astray = () if test.before is None else self._astray(test.before, test.config.target)
        self._keep(test)
        hints = [*hints_for(test, found), *([strayed_words(astray)] if astray else [])]
        return Outcome(
            passed=None if lost else False,
            why=redact(why)[:500],
            late=late,
            flooded=flooded,
            cannot_run=seen.code in CANNOT_RUN_CODES and not late and not flooded,
            code=seen.code,
            step=check.name,
            seconds=test.seconds,
            cpu=test.cpu,
            failures=tuple(redact(each) for each in found.failures),
            fingerprint="" if lost else failures.mark(check.name, late or flooded, found),
            summary=shortened(redact(failures.tell(why, hints, found))),
            strayed=astray,
            tests=test_counts.total(self._count_tests(test)),
        )

    def _astray(self, before: dict[str, object], target: str) -> tuple[str, ...]:
        """Return what was changed outside meanwhile, and stays so: the checkout is in between while main moves."""
        found: tuple[str, ...] = ()
        for patience in (0.0, *STRAYED_LOOKS_S):
            time.sleep(patience)
            found = gate_view.strayed(before, gate_view.look(self.runtime.project, target))
            if not found:
                break
        return found

    def _output(self, run: str) -> Iterator[bytes]:
        """Yield what a step printed, up to the limit."""
        at = 0
        while at < MAX_OUTPUT_BYTES:
            data, at = self.runtime.runner.output(run, at)
            if not data:
                return
            yield data

    def _keep(self, test: GateUnderWay) -> None:
        """Keep what all steps printed."""

        def parts() -> Iterator[bytes]:
            for run, check in test.ended:
                yield f"$ {check.run}\n".encode(errors="replace")
                yield from self._output(run)
                if self.runtime.runner.look(run).size > MAX_OUTPUT_BYTES:
                    why = f"it printed more than {OUTPUT_LIMIT} and was ended; the rest is not kept"
                    yield f"\n[covey: {why}]\n".encode()

        try:
            gate_logs.keep(gate_logs.path_of(self.runtime.project, test.order.gate), parts())
        except OSError as error:
            log.warning("the output of %s could not be kept: %s", test.order.gate, error)

    # What is left of it

    def _clean(self, test: GateUnderWay) -> None:
        """Remove the runs of a gate, whose output is kept elsewhere, and move its room out of the way."""
        for run, _ in test.ended:
            self._forget(self.runtime.project.run_folder(run))
        if test.folder == Path():
            return
        if test.room is None and test.temporary:
            trash.remove(Path(test.temporary).parent)  # The next gate could see it.
        old = self.runtime.project.state / OLD_ROOMS
        with contextlib.suppress(OSError):  # Where it is, it is removed as well.
            old.mkdir(mode=0o700, exist_ok=True)
            test.folder = test.folder.rename(old / test.folder.name)

    def _give_back(self, test: GateUnderWay) -> None:
        """Keep what a gate left in the caches if it is worth it, and have back what it was lent."""
        if test.keeps:
            upper = gate_rooms.upper(test.folder)
            self._warmth.keep(test.config, test.order.commit, test.lent, upper=upper, tree=test.path)
        self._warmth.take_back(test.lent)

    def _forget(self, run: Path) -> None:
        """End a step if it runs, and remove what the runner has of it."""
        try:
            self.runtime.runner.stop(run.name)
            trash.remove(run)
        except Unavailable as error:  # Something of it hangs in the system; the next start of covey tries again.
            log.warning("%s", error)

    def _remove_left(self) -> None:
        known = {*(test.folder for test in self._tests.values()), *self._leaving.values()}
        state = self.runtime.project.state
        for folder in (*(state / gate_logs.FOLDER).glob(f"*{ROOM}"), *(state / OLD_ROOMS).glob(f"*{ROOM}")):
            if folder not in known:
                gate_rooms.remove(folder)


@contextlib.contextmanager
def _end_heard(handle: int | None) -> Iterator[asyncio.Event | None]:
    """Yield what is set when a descriptor can be read, which is closed then; None if there is none."""
    if handle is None:
        yield None
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def hear() -> None:
        loop.remove_reader(handle)
        ended.set()

    loop.add_reader(handle, hear)
    try:
        yield ended
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def _no_room(error: Exception) -> Unavailable:
    return Unavailable(f"The room of the gate cannot be made: {error}.", hint="Look at the disk.")
