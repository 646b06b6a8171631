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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from covey import trash
from covey.app import gate_logs
from covey.config import Config
from covey.core import failures, hints, test_counts
from covey.core.checks import Check
from covey.core.dispatch import MOST_OUTPUT
from covey.core.figures import span
from covey.core.gates import TRY_SLOT
from covey.core.launches import Launch, Observation
from covey.core.slots import RECENT, slots
from covey.core.texts import redact
from covey.errors import Invalid, ToolFailed, Unavailable
from covey.git.guard import Settings, read_settings, write_guard
from covey.git.identity import Replaced
from covey.loops import rooms, strays, warmth
from covey.loops.desk import Desk
from covey.loops.warmth import Lent, Warmth
from covey.runners import sandbox, tools
from covey.runners.sandbox import Room
from covey.values import dataclass

T = TypeVar("T")
WORKTREE = ".gate-"
ROOM = ".room"
CACHES = ".caches"
"""In the temporary folder, what stands in for the caches of tools where they can only be read."""
CHECKOUT = "checkout"
"""The step of a gate before all checks."""
OLD_ROOMS = "old-rooms"
"""The folder of rooms that nobody uses any more, and that are not removed yet."""
LOOK_EVERY, LOOK_LATE = 0.05, 0.25
"""Seconds between two looks at a gate that has just begun, and at one that runs for long or tells of its end."""
KEEP_PATIENCE = 2.0
"""Seconds that a gate waits for what others leave in the caches to be kept, since it may be for this one."""
CANNOT_RUN = (126, 127)
"""Exit codes by which a shell says that there is no such program, or that it may not be run."""
CLEAR_EVERY = 3600.0
STRAYED_LOOKS = (0.2, 0.5)
"""Seconds after which we look again at what seems to have strayed."""
COUNTED = 64 * 1024
"""Bytes of the end of its output in which a check says how many tests it ran."""
SUMMARY = 12_000
"""Characters of a summary."""
MOST_GONE = 0.5
"""The part of the files under test that a check may delete and still count as one."""
READ_ONLY = ("Read-only file system", "EROFS", "[Errno 30]", "os error 30")
UNWRITTEN = ("unable to write", "write error", "No space left", "Disk quota exceeded")
"""What git says when the disk takes no more: no tree is to blame for that."""
FULL = ("No space left on device", "ENOSPC", "Disk quota exceeded")
"""What programs say then."""
LEFT, NONE = 64 * 1024**2, 64 * 1024
"""Bytes that are left at most on a disk of which we believe that, and on one that is full whatever is said."""
UNWANTED = "It was ended, since nobody wanted it any more."
LIMIT = f"{MOST_OUTPUT // 1024**2} MiB"

log = logging.getLogger("covey.gates")


@dataclass(frozen=True)
class Order:
    """A test to be made: of this commit, by these checks, within so many seconds, in this place of the pool."""

    gate: str
    commit: str
    slot: int
    checks: tuple[Check, ...]
    limit: float
    config: Config | None = None
    """The settings that hold for it, if not those of the project."""
    pauses: bool = True
    """It stands still while the fleet does."""


@dataclass(frozen=True)
class Outcome:
    """How a gate ended."""

    passed: bool | None
    """None if that is not known: it was lost, nobody wanted it any more, or it strayed."""
    why: str = ""
    """What went wrong, in one sentence."""
    late: bool = False
    """It took too long and was ended."""
    flooded: bool = False
    """It printed too much and was ended."""
    cannot_run: bool = False
    """The shell could not run it: the settings are wrong, unless the change took away what they name."""
    code: int | None = None
    step: str = ""
    """The check that failed."""
    seconds: float = 0.0
    cpu: float | None = None
    failures: tuple[str, ...] = ()
    fingerprint: str = ""
    summary: str = ""
    """What its author needs to mend it: what went wrong, the lines that say why, the end of the output."""
    log: str = ""
    """The file with all that it printed; `gate_logs.read` reads it."""
    strayed: tuple[str, ...] = ()
    """What was changed outside of its worktree while it ran: what it passed must not land."""


@dataclass
class _Test:
    """A gate under way."""

    order: Order
    config: Config
    run: str = ""
    """The step under way, as the runner knows it."""
    unwanted: bool = False
    path: Path = Path()
    room: Room | None = None
    """Where it is held, if it is."""
    folder: Path = Path()
    temporary: str = ""
    seconds: float = 0.0
    cpu: float | None = None
    ended: list[tuple[str, Check]] = field(default_factory=list)
    layered: bool = False
    """What it writes lies in layers over its worktree and the caches."""
    lent: Lent | None = None
    files: Sequence[bytes] = ()
    """What is tested, where that cannot be told afterwards."""
    said: Settings | None = None
    """What the user's files of git say."""
    keeps: bool = False
    """What it left in the caches is worth to be kept."""
    before: strays.Picture | None = None
    work: asyncio.Future[Any] | None = None
    """What is done for it at the moment, or was last."""


class Gates:
    """Runs gates, several at once, each in a worktree that is brought to exactly its commit."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._tests: dict[str, _Test] = {}
        self._loads: deque[float] = deque(maxlen=RECENT)
        self._cleared: float | None = None
        self._told: set[str] = set()
        self._layered: bool | None = None
        self._warmth = Warmth(desk.project)
        self._early: deque[str] = deque(maxlen=64)
        """Gates that were stopped before they had begun."""
        self._keeping: set[asyncio.Future[None]] = set()
        self._leaving: dict[asyncio.Future[None], Path] = {}
        """What is done for gates that have ended, beside what comes next."""
        self._putting_away: dict[int, asyncio.Future[None]] = {}
        """Worktrees that are just being removed, by slot."""

    def slots(self) -> int:
        """Return how many gates should run at once, by the settings or by what the last ones used."""
        setting = self.desk.app.house.config.merge.slots
        return slots(setting, len(os.sched_getaffinity(0)), list(self._loads), free_memory=self.desk.free_memory())

    async def run(self, order: Order) -> Outcome:
        """Test a commit and say how it ended; raises if the gate cannot be begun, and then nothing of it is left."""
        if not order.checks:
            raise Invalid("A gate without a check tests nothing.", hint='[merge] check = "make test", for example.')
        if order.gate in self._early:
            return Outcome(passed=None, why=UNWANTED)
        test = _Test(order, order.config or self.desk.app.house.config)
        for other in [each for each in self._tests.values() if each.order.slot == order.slot]:
            await self._end(other)  # Whoever ran it was called off.
        self._tests[order.gate] = test
        called_off = False
        try:
            if order.slot in self._putting_away:
                await asyncio.wait([self._putting_away[order.slot]])
            if self._keeping:
                await asyncio.wait(self._keeping, timeout=KEEP_PATIENCE)
            unfit = await self._beside(test, lambda: self._prepare(test))
            outcome = unfit or await self._steps(test)
        except asyncio.CancelledError:
            called_off = True  # It stays ours: whoever calls us off has to stop it.
            raise
        finally:
            if not called_off:
                await self._end(test)
        if outcome.cpu is not None and outcome.seconds > 0 and outcome.passed is not None:
            self._loads.append(outcome.cpu / outcome.seconds)
        return outcome

    async def stop(self, gate: str) -> None:
        """End a gate that nobody wants any more, or never begin it; whoever waits for it learns that."""
        test = self._tests.get(gate)
        if test is None:
            self._early.append(gate)
            return
        test.unwanted = True
        if test.run:
            await self.desk.near(lambda: self.desk.runner.stop(test.run))

    async def stop_all(self) -> None:
        """End every gate, also one whose caller was called off, and leave nothing of it but its worktree."""
        for test in list(self._tests.values()):
            await self._end(test)
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def _end(self, test: _Test) -> None:
        """End a gate if it runs, and have removed what it has no more use for."""
        test.unwanted = True
        if test.work is not None:
            await asyncio.wait([test.work])  # What is half begun could begin after its end.
            test.work.exception()
        await self.desk.beside(lambda: self._clean(test))
        if self._tests.pop(test.order.gate, None) is None:
            return  # Somebody else ended it too.
        keeping = asyncio.ensure_future(self.desk.beside(lambda: self._give_back(test)))
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)
        leaving = asyncio.ensure_future(self._leave(test, keeping))
        self._leaving[leaving] = test.folder
        leaving.add_done_callback(lambda done: self._leaving.pop(done, None))

    async def _leave(self, test: _Test, keeping: asyncio.Future[None]) -> None:
        """Remove the room of a gate, once what is worth it has been kept; that may take its time."""
        await asyncio.wait([keeping])
        if test.folder != Path():
            await self.desk.aside(lambda: _remove_room(test.folder))
        await self.desk.aside(self._warmth.tidy)

    async def recover(self) -> None:
        """End every gate that a daemon before us left alone, and remove what was only needed while it ran."""
        folder, running = self.desk.project.state / "runs", {test.run for test in self._tests.values()}
        left = [entry for entry in folder.glob("gate-*") if entry.name not in running] if folder.is_dir() else []
        await asyncio.gather(*(self.desk.near(partial(self._forget, run)) for run in left))
        await self.desk.beside(self._remove_left)

    async def put_away(self, keep: int = 0) -> None:
        """Remove the worktrees of the pool beyond the first `keep`, unless a gate runs in them."""
        for each in await self.desk.beside(self.desk.worktrees.list):
            number = each.name.removeprefix(WORKTREE) if each.name.startswith(WORKTREE) else ""
            is_kept = number.isdigit() and TRY_SLOT < int(number) <= keep
            # Looked at for each: a try may begin at any time, and waits for its place if that is just removed.
            if number.isdigit() and not is_kept and not self._is_used(slot := int(number)):
                removing = asyncio.ensure_future(self.desk.beside(partial(self._put_away, each.name)))
                self._putting_away[slot] = removing
                try:
                    await asyncio.shield(removing)
                finally:
                    del self._putting_away[slot]

    def _is_used(self, slot: int) -> bool:
        return any(test.order.slot == slot for test in self._tests.values())

    def _put_away(self, name: str) -> None:
        try:
            self.desk.worktrees.remove(name)
        except Replaced as error:
            self._give_up(name, error, for_good=True)

    def _give_up(self, name: str, why: Replaced, *, for_good: bool = False) -> None:
        """Let go of a worktree that is not what covey made; what of it is covey's holds nobody's work, and goes."""
        log.warning("the worktree %s is given up: %s", name, why)
        aside = self.desk.worktrees.set_aside(name, for_good=for_good)
        if aside is not None and aside.has_moved:
            self.desk.worktrees.drop_aside(aside.path)

    async def _beside(self, test: _Test, work: Callable[[], T]) -> T:
        """Do something for a gate beside the loop; it goes on to its end if its caller is called off."""
        doing = asyncio.ensure_future(self.desk.beside(work))
        test.work = doing
        return await asyncio.shield(doing)

    # What a gate is given

    def _prepare(self, test: _Test) -> Outcome | None:
        """Bring the worktree to the commit, and make the room; return how the gate ended if no checkout can hold it."""
        config, name = test.config, f"{WORKTREE}{test.order.slot}"
        held = self._is_held(config)
        test.layered = held and self._has_layers()
        test.lent = self._warmth.lend(config, test.order.commit)
        try:
            test.path = self._check_out(test, name)
        except ToolFailed:
            self.desk.worktrees.remove(name)
            self.desk.worktrees.gate(name, config.target)  # If that fails too, no change is to blame.
            try:
                test.path = self._check_out(test, name)
            except ToolFailed as error:
                if any(word in error.message for word in UNWRITTEN):
                    raise Unavailable(error.message, hint="Make room on the disk.") from error
                return _unfit(error)
        if not test.layered:
            test.files = self.desk.worktrees.tracked(name)
        try:
            self._furnish(test, name, held=held)
        except (OSError, shutil.Error) as error:
            raise Unavailable(f"The room of the gate cannot be made: {error}.", hint="Look at the disk.") from error
        return None

    def _check_out(self, test: _Test, name: str) -> Path:
        changed = None if test.lent is None else test.lent.changed
        kept = None if test.layered else self.desk.project.state / gate_logs.FOLDER / f"{name}.index"
        if kept is not None:
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        worktrees = self.desk.worktrees
        try:
            return worktrees.gate(name, test.order.commit, changed=changed, kept=kept)
        except Replaced as error:  # by a check that ran there without a room, or a backup was restored
            self._give_up(name, error)
            return worktrees.gate(name, test.order.commit, changed=changed, kept=kept)

    def _furnish(self, test: _Test, name: str, *, held: bool) -> None:
        order, config, project = test.order, test.config, self.desk.project
        test.folder = project.state / gate_logs.FOLDER / f"{order.gate}{ROOM}"
        test.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = os.path.realpath(tempfile.mkdtemp(prefix="covey-gate-"))
        os.symlink(place, test.folder / "temporary")
        test.temporary = os.path.join(place, "tmp")  # The gate may open it to all, and none of them gets there.
        os.mkdir(test.temporary)
        test.said = read_settings(project)
        if test.lent is not None and not test.layered:
            warmth.copy(test.lent, test.path)
        if held:
            entry = self.desk.worktrees.git_dir(name)
            assert entry is not None  # It was made just now.
            for variable in () if test.layered else tools.OWN_CACHES:
                (Path(test.temporary) / CACHES / variable).mkdir(parents=True)
            test.room = rooms.make(
                project, config, test.path, entry, test.folder, test.temporary, layered=test.layered, lent=test.lent,
                said=test.said,
            )  # fmt: skip
        elif config.merge.isolate == "auto":
            test.before = strays.look(project, config.target)

    def _is_held(self, config: Config) -> bool:
        """Say whether a gate is held in a room; refuse if it must be and cannot."""
        if config.merge.isolate == "off":
            return False
        trouble = sandbox.trouble()
        self._tell(_limits(trouble))
        if trouble is None:
            return True
        if config.merge.isolate == "on":
            raise Unavailable(
                f'The gate cannot be held in its worktree, as isolate = "on" asks: {trouble}.',
                hint='Install bubblewrap, or set isolate = "auto" in [merge].',
            )
        return False

    def _tell(self, limits: tuple[str, ...]) -> None:
        """Say from what gates are not kept here: in the log once, and wherever the queue is shown."""
        self.desk.app.house.gate_limits = limits
        for each in set(limits) - self._told:
            self._told.add(each)
            log.warning("%s", each)

    def _has_layers(self) -> bool:
        """Say whether layers can be laid over folders here; that is found out once."""
        if self._layered is None:
            folder = self.desk.project.state / gate_logs.FOLDER
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            trouble = sandbox.layers_trouble(str(folder))
            self._layered = trouble is None
            if trouble is not None:
                log.warning("gates get a new worktree each time, and caches that they can only read: %s", trouble)
        return self._layered

    def _start(self, test: _Test, check: Check) -> None:
        config, project = test.config, self.desk.project
        guard = write_guard(project, project.state / "hooks", config.target, test.said)
        session = self.desk.worktrees.session_env(f"{WORKTREE}{test.order.slot}", guard)
        guarded = {name: value for name, value in session.items() if name.startswith("GIT_CONFIG_")}
        temporary = test.temporary if test.room is None else sandbox.TEMPORARY[0]
        env = rooms.environment(config) | guarded | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temporary)
        env |= {"PWD": str(test.path), "COVEY_GATE_SLOT": str(test.order.slot)}
        argv: tuple[str, ...] = ("/bin/sh", "-c", check.run)
        if test.room is not None:
            env["PWD"] = test.room.folder
            env |= {} if test.layered else {name: f"{temporary}/{CACHES}/{name}" for name in tools.OWN_CACHES}
            sandbox.clear_ways(test.room)
            argv = sandbox.inside(argv, test.room, test.room.folder)
        cwd = str(test.path) if test.room is None else "/"
        layers = () if test.room is None else test.room.layers
        self.desk.runner.start(test.run, Launch(argv=argv, cwd=cwd, env=env, most=MOST_OUTPUT, layers=layers))

    # Its course

    async def _steps(self, test: _Test) -> Outcome:
        """Run the checks one after the other until one fails, and say how that ended."""
        for number, check in enumerate(test.order.checks, 1):
            if test.unwanted:
                break
            failed = await self._step(test, number, check)
            if failed is not None:
                return failed
        return await self._beside(test, lambda: self._passed(test))

    async def _step(self, test: _Test, number: int, check: Check) -> Outcome | None:
        """Run one check, and return how it failed if it did."""
        test.run = test.order.gate if number == 1 else f"{test.order.gate}.{number}"
        test.ended.append((test.run, check))
        await self._beside(test, lambda: self._start(test, check))
        seen, late = await self._await(test)
        test.cpu = seen.cpu if test.cpu is None else test.cpu + (seen.cpu or 0.0)
        if seen.code == 0 and not (late or test.unwanted or seen.size > MOST_OUTPUT):
            return None
        return await self._beside(test, lambda: self._failed(test, check, seen, late=late))

    async def _await(self, test: _Test) -> tuple[Observation, bool]:
        """Wait until a step has ended, or end it when its time is over; standing still does not count."""
        handle = await self.desk.near(lambda: self.desk.runner.end_of(test.run))
        with _end_heard(handle) as ended:
            return await self._watch(test, ended)

    async def _watch(self, test: _Test, ended: asyncio.Event | None) -> tuple[Observation, bool]:
        last = self.desk.awake()
        begun = test.seconds
        while True:
            seen = await self.desk.near(lambda: self.desk.runner.look(test.run))
            now = self.desk.awake()
            test.seconds, last = test.seconds + (0.0 if seen.held else now - last), now
            if not seen.alive:
                return seen, False
            if test.seconds > test.order.limit and not seen.held:
                await self.desk.near(lambda: self.desk.runner.stop(test.run))
                return await self.desk.near(lambda: self.desk.runner.look(test.run)), True
            paused = test.order.pauses and (await self.desk.read(lambda call: call.tx.fleet())).paused
            if paused is not seen.held:
                await self.desk.near(partial(self.desk.runner.hold, test.run, on=paused))
            if ended is None or ended.is_set():
                await asyncio.sleep(min(LOOK_EVERY + (test.seconds - begun) / 50, LOOK_LATE))
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), LOOK_LATE)

    # How it ended

    def _passed(self, test: _Test) -> Outcome:
        """Return that all checks passed, unless nobody wants that, it strayed or deleted what it tested."""
        kept, astray = self._keep(test), self._astray(test)
        why = UNWANTED if test.unwanted else _strayed(astray)
        gone = "" if why else self._gone(test)
        if gone:
            return self._did_not_test(test, gone, kept)
        if not why and test.layered:
            test.keeps = bool(test.config.merge.cache)
        elif not why:
            self._warmth.keep(test.config, test.order.commit, test.lent, upper=None, tree=test.path)
        return Outcome(
            passed=None if why else True,
            why=why,
            code=0,
            seconds=test.seconds,
            cpu=test.cpu,
            summary=why or test_counts.said(self._count_tests(run) for run, _ in test.ended),
            log=kept,
            strayed=astray,
        )

    def _count_tests(self, run: str) -> int | None:
        """Return how many tests a step ran, as the end of its output says; None if that does not say."""
        data, _ = self.desk.runner.output(run, max(self.desk.runner.look(run).size - COUNTED, 0))
        return test_counts.count("\n".join(failures.clean(line) for line in data.split(b"\n")))

    def _gone(self, test: _Test) -> str:
        """Return what is wrong if a check deleted most of what it was to test."""
        files, upper = test.files, rooms.upper(test.folder)
        if test.layered:
            if not warmth.hides(upper, test.path):
                return ""
            files = self.desk.worktrees.tracked(f"{WORKTREE}{test.order.slot}")
            gone = warmth.deleted(upper, files)
        else:
            top = os.fsencode(test.path)
            gone = sum(not os.path.lexists(os.path.join(top, name)) for name in files)
        if gone <= len(files) * MOST_GONE and (files or test.path.is_dir()):
            return ""
        return f"The check deleted what it tested, so its success says nothing: {gone} of {len(files)} files are gone."

    def _did_not_test(self, test: _Test, why: str, kept: str) -> Outcome:
        """Return the failure of a gate whose checks say that all is well, and cannot know."""
        found = failures.summary(why.encode())
        last = test.order.checks[-1].name
        mark = failures.mark(last, False, found)
        return Outcome(
            passed=False, why=why, code=0, step=last, seconds=test.seconds, cpu=test.cpu, fingerprint=mark, summary=why,
            log=kept,
        )  # fmt: skip

    def _failed(self, test: _Test, check: Check, seen: Observation, *, late: bool) -> Outcome:
        """Return how a check failed, with all that its author needs."""
        found = failures.summary(self._output(test.run))
        begins = (f"{sandbox.PROGRAM}: ", "layers: ")
        is_refused = test.room is not None and seen.code in (1, 97) and found.tail.startswith(begins)
        # A check can print that too, and then it is its own failure.
        refusal = sandbox.refusal(test.room, "/") if is_refused and test.room is not None else None
        if refusal is not None:
            raise Unavailable(
                f"The room of the gate could not be made: {refusal[:300]}",
                hint='isolate = "off" in [merge] runs gates without one.',
            )
        if seen.code != 0 and not late and not test.unwanted and _is_full(test, found):
            raise Unavailable("The disk is full, and its check failed for that.", hint="Make room on the disk.")
        flooded = seen.size > MOST_OUTPUT
        why = _why(test, check, seen, late=late, flooded=flooded)
        lost = test.unwanted or (seen.code is None and not late and not flooded)
        astray = self._astray(test)
        hints = [*_hints(test, found), *([_strayed(astray)] if astray else [])]
        return Outcome(
            passed=None if lost else False,
            why=redact(why)[:500],
            late=late,
            flooded=flooded,
            cannot_run=seen.code in CANNOT_RUN and not late and not flooded,
            code=seen.code,
            step=check.name,
            seconds=test.seconds,
            cpu=test.cpu,
            failures=tuple(redact(each) for each in found.failures),
            fingerprint="" if lost else failures.mark(check.name, late or flooded, found),
            summary=_shortened(redact(failures.tell(why, hints, found))),
            log=self._keep(test),
            strayed=astray,
        )

    def _astray(self, test: _Test) -> tuple[str, ...]:
        """Return what was changed outside meanwhile, and stays so: the checkout is in between while main moves."""
        found: tuple[str, ...] = ()
        for patience in (0.0, *STRAYED_LOOKS) if test.before is not None else ():
            time.sleep(patience)
            assert test.before is not None
            found = strays.strayed(test.before, strays.look(self.desk.project, test.config.target))
            if not found:
                break
        return found

    def _output(self, run: str) -> Iterator[bytes]:
        """Yield what a step printed, up to the limit."""
        at = 0
        while at < MOST_OUTPUT:
            data, at = self.desk.runner.output(run, at)
            if not data:
                return
            yield data

    def _keep(self, test: _Test) -> str:
        """Keep what all steps printed, and return where."""
        path = gate_logs.path_of(self.desk.project, test.order.gate)

        def parts() -> Iterator[bytes]:
            for run, check in test.ended:
                yield f"$ {check.run}\n".encode(errors="replace")
                yield from self._output(run)
                if self.desk.runner.look(run).size > MOST_OUTPUT:
                    yield f"\n[covey: it printed more than {LIMIT} and was ended; the rest is not kept]\n".encode()

        try:
            gate_logs.keep(path, parts())
        except OSError as error:
            log.warning("the output of %s could not be kept: %s", test.order.gate, error)
            return ""
        now = self.desk.awake()
        if self._cleared is None or now > self._cleared + CLEAR_EVERY:
            self._cleared = now
            keep = test.config.log
            gate_logs.clear(
                self.desk.project, keep_days=keep.keep_days, keep_megabytes=keep.keep_megabytes, now=self.desk.wall()
            )
        return str(path)

    # What is left of it

    def _clean(self, test: _Test) -> None:
        """Remove the runs of a gate, whose output is kept elsewhere, and move its room out of the way."""
        for run, _ in test.ended:
            self._forget(self.desk.project.state / "runs" / run)
        if test.folder == Path():
            return
        if test.room is None and test.temporary:
            trash.remove(Path(test.temporary).parent)  # The next gate could see it.
        old = self.desk.project.state / OLD_ROOMS
        with contextlib.suppress(OSError):  # Where it is, it is removed as well.
            old.mkdir(mode=0o700, exist_ok=True)
            test.folder = test.folder.rename(old / test.folder.name)

    def _give_back(self, test: _Test) -> None:
        """Keep what a gate left in the caches if it is worth it, and have back what it was lent."""
        if test.keeps:
            upper = rooms.upper(test.folder)
            self._warmth.keep(test.config, test.order.commit, test.lent, upper=upper, tree=test.path)
        self._warmth.take_back(test.lent)

    def _forget(self, run: Path) -> None:
        """End a step if it runs, and remove what the runner has of it."""
        try:
            self.desk.runner.stop(run.name)
            trash.remove(run)
        except Unavailable as error:  # Something of it hangs in the system; the next start of covey tries again.
            log.warning("%s", error)

    def _remove_left(self) -> None:
        known = {*(test.folder for test in self._tests.values()), *self._leaving.values()}
        state = self.desk.project.state
        for folder in (*(state / gate_logs.FOLDER).glob(f"*{ROOM}"), *(state / OLD_ROOMS).glob(f"*{ROOM}")):
            if folder not in known:
                _remove_room(folder)


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


def _remove_room(folder: Path) -> None:
    """Remove the room of a gate, and its temporary folder first, which only the room knows."""
    with contextlib.suppress(OSError):
        trash.remove(Path(os.readlink(folder / "temporary")))
    trash.remove(folder)


def _limits(trouble: str | None) -> tuple[str, ...]:
    """Return from what a gate is not kept on this machine, in sentences."""
    if trouble is not None:
        return (
            f"Gates run in no room of their own ({trouble}): what agents wrote runs there with your rights, and can "
            "read your files and logins, write anywhere and use the network.",
        )
    powers = sandbox.powers()
    said = []
    if powers is not None and not powers.processes:
        said.append("Gates see the processes of others, and through them what is hidden from gates: no room here can "
                    "have its own.")  # fmt: skip
    if powers is not None and not powers.network:
        said.append("Gates reach the network, and whatever listens on this machine: no room here can have its own.")
    return tuple(said)


def _unfit(error: ToolFailed) -> Outcome:
    """Return how a gate ended whose commit git cannot check out, while it can check out what has landed."""
    why = redact(f"git cannot check it out: {error.message}")[:500]
    found = failures.summary(why.encode(errors="replace"))
    return Outcome(passed=False, why=why, step=CHECKOUT, fingerprint=failures.mark(CHECKOUT, False, found), summary=why)


def _why(test: _Test, check: Check, seen: Observation, *, late: bool, flooded: bool) -> str:
    """Return in one sentence what went wrong."""
    what = "The check" if check.name == "check" else f"The check {check.name}"
    if test.unwanted:
        return UNWANTED
    if flooded:
        return f"{what} printed more than {LIMIT} and was ended: {check.run}"
    if late:
        return f"{what} took longer than {span(test.order.limit)} and was ended: {check.run}"
    if seen.failure is not None:
        return f"{what} could not be started: {seen.failure}"
    if seen.code is None:
        return f"{what} was ended by somebody else: {check.run}"
    number = -seen.code if seen.code < 0 else seen.code - 128 if test.room is not None else 0
    how = f"signal {number}" if 0 < number < 65 and seen.code not in CANNOT_RUN else f"exit code {seen.code}"
    return f"{what} failed ({how}): {check.run}"


def _hints(test: _Test, found: failures.Summary) -> list[str]:
    """Return what else may explain a failure."""
    said = "\n".join((*found.errors, found.tail))
    told = []
    if test.room is not None:
        told += [hints.NO_NETWORK] if not test.room.network and hints.wants_network(said) else []
        told += [hints.WROTE_OUTSIDE] if any(word in said for word in READ_ONLY) else []
        hidden = [path for path in hints.missed_paths(said) if rooms.is_hidden(test.room, path)]
        told += [hints.not_shown(hidden[:3])] if hidden else []
    missed = hints.missed_variables(said, rooms.held_back(test.config))
    told += [hints.not_given(missed[:3])] if missed else []
    if test.room is None and (not test.path.is_dir() or not any(test.path.iterdir())):
        told.append("It deleted its own worktree, which is made anew for the next gate.")
    return told


def _is_full(test: _Test, found: failures.Summary) -> bool:
    """Say whether a check failed for a full disk: it says so, or could not even, and so it is where a gate writes."""
    said = "\n".join((*found.errors, found.tail))
    where = (test.path.parent, Path(test.temporary).parent, test.folder)
    places = [place for place in where if place.is_dir()]
    left = min((shutil.disk_usage(place).free for place in places), default=LEFT)
    return left < (LEFT if any(word in said for word in FULL) else NONE)


def _strayed(astray: tuple[str, ...]) -> str:
    if not astray:
        return ""
    return (
        f"While it ran, something outside of its worktree was changed: {', '.join(astray)}. What such a gate passes "
        "does not land, since it may have changed more. If nobody else did that, mend the check; with bubblewrap "
        "installed, a gate cannot write there."
    )


def _shortened(text: str) -> str:
    if len(text) <= SUMMARY:
        return text
    half = SUMMARY // 2 - 10
    return f"{text[:half]}\n[...]\n{text[-half:]}"
