"""The merger: builds what would land, tests it as it is, and lands it; one at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from covey.app import runs as life
from covey.app.changes import change, step
from covey.app.merges import send_back
from covey.app.sessions import alert
from covey.app.tries import put_back
from covey.app.verbs import Call
from covey.config import Config
from covey.core import globs, merges, tasks
from covey.core.dispatch import MOST_OUTPUT
from covey.core.launches import Launch, Observation
from covey.core.merges import Merge, State
from covey.core.sessions import COVEY
from covey.core.tasks import Status, Task
from covey.core.texts import redact
from covey.errors import CoveyError, Refused
from covey.git import candidates, checkouts, landing
from covey.git.candidates import Candidate, Conflict
from covey.git.guard import write_guard
from covey.git.landing import Landed, Waits
from covey.git.project import Project
from covey.loops import tree
from covey.loops.desk import Desk
from covey.loops.outfit import gate_env
from covey.store import rows
from covey.store.rows import Change

T = TypeVar("T")
GATE = ".gate-1"
LOOK_EVERY = 0.05
CANNOT_RUN = (126, 127)
"""Exit codes by which a shell says that there is no such program, or that it may not be run."""
BROKEN_FOR = 60.0
LOST = 3
REST_EVERY = 2.0
TRY_EVERY = 60.0
"""Seconds after which main tries to follow again although nothing that is in its way seems to have changed."""
TAIL = 4000
"""Characters of the gate's output that go back to the author."""
OUTPUT = 64 * 1024

log = logging.getLogger("covey.merger")


@dataclass(frozen=True)
class Line:
    """Main's commit, and the commit on which the queue builds."""

    main: str
    head: str


@dataclass(frozen=True)
class Bad:
    """Why a merge does not land: in one line, and as its author needs it."""

    reason: str
    story: str


@dataclass(frozen=True)
class Gate:
    """How the gate ended: None if nobody saw it end."""

    good: bool | None
    bad: Bad | None = None
    run: str = ""
    cannot_run: bool = False
    """The shell could not run it: the settings are wrong, unless the change took away what they name."""


@dataclass(frozen=True)
class Sight:
    """How main, its checkouts and some files in them look; whoever changes one of these changes this too."""

    files: tuple[str, ...]
    main: str | None
    seen: tuple[tuple[int, int, int] | None, ...]


def look_at(project: Project, config: Config, files: tuple[str, ...]) -> Sight:
    """Look at some files wherever main is checked out, without a lock."""
    main = config.project.main
    seen = tuple(_stamp(each.path / name) for each in checkouts.holding(project, main) for name in files)
    return Sight(files, candidates.resolve(project, f"refs/heads/{main}"), seen)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass
class Merger:
    """Takes the oldest merge that may land, and brings it to its end before the next."""

    desk: Desk
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _gate: str | None = None
    _told: str = ""
    _in_the_way: tuple[str, ...] = ()
    """The files that were in main's way at the last try."""
    _sight: Sight | None = None
    """What was in main's way at the last try, as it looked then."""
    _tried: float = 0.0
    _begun: bool = False
    """What was left half done, by a daemon before us or by a tick that failed, was taken up."""
    _broken: tuple[str, float] | None = None
    """The gate that could not be run, and when to try it again."""
    _looked_at: str = ""
    _lost: dict[str, int] = field(default_factory=dict)
    _unstarted: int = 0
    _someone_left: bool = False
    """A merge left the queue without landing; what waits for main may hold it still."""
    _moving: asyncio.Future[Any] | None = None
    """Main's move that is under way; it goes on to its end whatever becomes of the loop."""
    _untidy: bool = True
    """There may be a branch whose work has landed."""

    def hear(self, changes: Iterable[Change]) -> None:
        """Look again soon, if these changes can matter to the queue."""
        if any(change.kind.startswith(("merge.", "fleet.", "task.approved")) for change in changes):
            self.news.set()
        if any(change.kind in ("merge.rejected", "merge.withdrawn") for change in changes):
            self._someone_left = True

    async def run(self) -> None:
        """Look and act for ever."""
        while True:
            more = False
            try:
                more = await self.tick()
            except CoveyError as error:
                log.warning("the merge queue could not be looked after: %s", error)
                self._begun = False
                await asyncio.sleep(REST_EVERY)
            except Exception:
                log.exception("the merger failed")
                self._begun = False
                await asyncio.sleep(REST_EVERY)
            if not more:
                try:
                    async with asyncio.timeout(REST_EVERY):
                        await self.news.wait()
                except TimeoutError:
                    pass
            self.news.clear()

    async def stop(self) -> None:
        """End the gate, if it runs; its merge stays in the queue. What has reached main is written down as landed."""
        gate = self._gate
        if gate is not None:
            await self.desk.near(lambda: self.desk.runner.stop(gate))
        if self._moving is not None:
            await asyncio.wait([self._moving])
        try:
            if await self.desk.read(_any_passed):
                await self._settle()
            await self._drop_landed_branches()
            await self._put_away()
        except CoveyError as error:
            log.warning("the merge queue could not be left tidy: %s", error)

    async def tick(self) -> bool:
        """Bring one merge to its end, and say whether there may be more to do."""
        if not self._begun:
            await self._pick_up()
            self._begun = True
        open_merges = await self.desk.read(self._open)
        if open_merges is None:
            return False
        if self._someone_left:
            self._someone_left = False
            await self._line()
        if any(merge.state is State.PASSED for merge in open_merges):
            await self._follow()
        if self._untidy:
            await self._drop_landed_branches()
        check = self._config().merge.check
        if await self._is_waiting_for_gate(open_merges, self._config()):
            return False
        ready = (merge for merge in open_merges if merge.state is State.QUEUED and (check or merge.approved))
        merge = next(ready, None)
        if merge is None:
            await self._put_away()
            return False
        await self._take(merge)
        return True

    async def _put_away(self) -> None:
        """Remove the queue's worktree when nobody is left who could fill the queue soon."""
        if not self.desk.worktrees.path(GATE).exists():
            return
        if not await self.desk.read(lambda call: bool(call.tx.run_sessions())):
            await self.desk.beside(lambda: self.desk.worktrees.remove(GATE))

    def _open(self, call: Call) -> list[Merge] | None:
        return None if call.tx.fleet().paused else call.tx.open_merges()

    async def _pick_up(self) -> None:
        """Take up what was left half done: tests are begun anew, and what had passed is looked for on main."""
        await self.desk.beside(lambda: landing.recover(self.desk.project))
        await self.desk.near(self._stop_gates)
        for merge in await self.desk.read(lambda call: call.tx.open_merges()):
            if merge.state is State.TESTING:
                await self._step(merge, merges.Requeued("its test was cut short"))
        if await self.desk.read(_any_passed):
            await self._settle()

    def _stop_gates(self) -> None:
        """End every gate that a daemon before us left alone."""
        folder = self.desk.project.state / "runs"
        for entry in folder.glob("gate-*") if folder.is_dir() else ():
            if not (entry / "rc").exists():
                self.desk.runner.stop(entry.name)

    async def _settle(self) -> None:
        """Bring merges that passed in step with where their commits are: on main, on the way there, or nowhere."""
        main = self._config().project.main
        line = await self._line()
        if line is None:
            return
        passed = [one for one in await self.desk.read(lambda call: call.tx.open_merges()) if one.state is State.PASSED]
        for merge in passed:
            commit = merge.candidate or ""
            if await self._is_in(commit, line.main):
                await self._landed(merge)
            elif not await self._is_in(commit, line.head):
                await self._step(merge, merges.Requeued(f"{main} moved on before it could land"))

    async def _line(self) -> Line | None:
        """Return where main is and where the queue builds; None if there is no main, or it went another way."""
        main = self._config().project.main
        found = await self.desk.beside(lambda: landing.landed_line(self.desk.project, main))
        if found.main is None or found.head is None:
            raise Refused(f"There is no branch {main} to land on.", hint="covey.toml names the branch.")
        line = Line(found.main, found.head)
        if found.diverged:
            await self._rebuild(line)
            return None
        if line.head != line.main and await self._holds_unwanted(line):
            await self._rebuild(line)
            return None
        if line.main != self._looked_at:
            await self._see_that_all_is_there(line.main)
            self._looked_at = line.main
        return line

    async def _holds_unwanted(self, line: Line) -> bool:
        """Say whether what waits for main holds work that was rejected or dropped after it had passed."""
        unwanted = await self.desk.read(lambda call: call.tx.unwanted(tree.UNWANTED))
        project = self.desk.project
        return await self.desk.beside(lambda: tree.taken_back(project, line.head, line.main, unwanted)) is not None

    async def _knows(self, commit: str) -> bool:
        return await self.desk.beside(lambda: candidates.resolve(self.desk.project, commit)) is not None

    async def _see_that_all_is_there(self, main: str) -> None:
        """Tell the person if main no longer holds what landed last: somebody moved it back, and may not know."""
        last = await self.desk.read(lambda call: call.tx.last_landed())
        if last is None or not await self._knows(last) or await self._is_in(last, main):
            return
        name = self._config().project.main
        message = (
            f"{name} no longer holds {last[:12]}, which landed there: it was moved back. "
            f"git merge {last[:12]} brings it in again."
        )
        await self.desk.write(lambda call: alert(call, "main_moved_back", message, None, None))

    async def _is_in(self, commit: str, head: str) -> bool:
        return await self.desk.beside(lambda: candidates.is_ancestor(self.desk.project, commit, head))

    async def _rebuild(self, line: Line) -> None:
        """Begin again from main, which went another way than what had passed and waited for it."""
        await self.desk.beside(lambda: landing.drop_landed(self.desk.project, line.head))
        main = self._config().project.main
        for merge in await self.desk.read(lambda call: call.tx.open_merges()):
            if merge.state is State.PASSED:
                await self._step(merge, merges.Requeued(f"{main} went another way while it waited"))

    async def _follow(self) -> None:
        """Let main follow to what has passed, if the checkout that has it allows that by now."""
        main = self._config().project.main
        if await self._line() is None or await self._is_as_before():
            return  # a try would only take the lock of the user's checkout
        outcome = await self._whole(lambda: landing.follow(self.desk.project, main))
        if isinstance(outcome, Waits):
            await self._wait(outcome)
        await self._settle()

    async def _whole(self, move: Callable[[], T]) -> T:
        """Move main; whoever stops us meanwhile waits for the end of it."""
        moving = asyncio.ensure_future(self.desk.beside(move))
        self._moving = moving
        return await asyncio.shield(moving)

    async def _is_as_before(self) -> bool:
        """Say whether all is as it was before the last try, which was in vain; if not, remember how it is now."""
        files = self._in_the_way
        if not files:
            return False
        sight = await self.desk.beside(lambda: look_at(self.desk.project, self._config(), files))
        soon = self.desk.awake() < self._tried + TRY_EVERY
        if soon and sight == self._sight:
            return True
        self._sight, self._tried = sight, self.desk.awake()
        return False

    # One merge

    async def _take(self, merge: Merge) -> None:
        config = self._config()
        line = await self._line()
        if line is None:
            return
        task = await self.desk.read(lambda call: call.tx.task(merge.task))
        unwanted = await self.desk.read(lambda call: call.tx.unwanted(tree.UNWANTED))
        assert task is not None
        built = await self.desk.beside(lambda: self._build(merge, task, line, config, unwanted))
        if isinstance(built, Bad):
            await self._reject(merge, built)
            return
        touched = () if merge.approved else await self.desk.beside(lambda: self._protected(built, config))
        if touched:
            await self._hold_for_review(merge, f"It changes {', '.join(touched[:5])}, which only a person lets land.")
            return
        untested = not config.merge.check
        if not untested and built.commit != line.head:
            gate = await self._test(merge, built, config)
            if gate.bad is not None and gate.cannot_run and await self._is_broken(gate.run, line, config):
                await self._wait_for_gate(gate.bad.reason, config)
            elif gate.bad is not None:
                await self._reject(merge, gate.bad)
            if gate.good is not True:
                return
        passed = await self._step(merge, merges.Passed(built.commit, untested=untested))
        if passed is not None:
            await self._land(passed, line, built.commit)

    def _build(
        self, merge: Merge, task: Task, line: Line, config: Config, unwanted: Collection[str]
    ) -> Candidate | Bad:
        project = self.desk.project
        tip = candidates.resolve(project, merge.commit or f"refs/heads/{merge.branch}")
        if tip is None:
            what = f"commit {merge.commit}" if merge.commit else f"branch {merge.branch}"
            return Bad(f"There is no {what}.", f"There is no {what} in this repository, so nothing could be merged.")
        taken_back = tree.taken_back(project, tip, line.head, unwanted)
        if taken_back is not None:
            return Bad(
                f"It is built on {taken_back[:12]}, which was taken back.",
                f"Your work is built on {taken_back[:12]}, which was rejected or dropped after you had begun.\n"
                f"git rebase --onto {line.head[:12]} {taken_back[:12]} leaves it out.",
            )
        # What the remote has beyond us lands with the first work that began from it, as it is and not squashed into it.
        newest = self.desk.worktrees.newest_main(config.project.main, config.project.remote)
        base = newest if candidates.is_ancestor(project, line.head, newest) else line.head
        built = candidates.build(
            project,
            base,
            tip,
            policy="merge" if config.merge.policy == "merge" else "squash",
            message=_message(merge, task),
            author=(merge.session, f"{merge.session}@agents.local"),
            at=None,
        )
        if isinstance(built, Conflict):
            files = ", ".join(built.files[:20])
            main = config.project.main
            return Bad(
                f"It conflicts with {main} in {files}."[:500],
                f"Your work conflicts with what landed on {main} meanwhile, in: {files}.\n{built.message}\n"
                f"Merge {base[:12]} into your branch, resolve the conflicts, and commit.",
            )
        return built

    def _protected(self, built: Candidate, config: Config) -> tuple[str, ...]:
        """Return the paths that a merge changes and that no agent may change without a person."""
        protected = config.merge.protected
        changed = candidates.changed_paths(self.desk.project, built.base, built.tip) if protected else []
        return tuple(path for path in changed if globs.covered(path, protected, ()))

    async def _hold_for_review(self, merge: Merge, why: str) -> None:
        """Let a merge wait for a person after all."""

        def write(call: Call) -> None:
            now, task = call.tx.get(rows.MERGES, merge.id), call.tx.task(merge.task)
            if now is None or task is None or now.state is not State.QUEUED:
                return
            step(call, now, merges.Held(why), COVEY)
            if task.status is Status.MERGING:
                change(call, task, tasks.Held(why), COVEY)
            alert(call, "needs_review", f"{merge.task} waits for your review ({merge.id}): {why}", None, merge.task)

        await self.desk.write(write)

    async def _test(self, merge: Merge, built: Candidate, config: Config) -> Gate:
        """Run the gate on what would land, in the queue's own worktree."""

        def begin(call: Call) -> Merge | None:
            now = call.tx.get(rows.MERGES, merge.id)
            if now is None or now.state is not State.QUEUED:
                return None
            return step(call, now, merges.Tested(built.commit, f"gate-{call.tx.next_seq}"), COVEY)

        testing = await self.desk.write(begin)
        if testing is None or testing.run is None:
            return Gate(None)
        gate = testing.run
        try:
            seen, late = await self._run_gate(gate, built.commit, config, testing)
        except CoveyError as error:
            return await self._unstarted_gate(merge, str(error), config)
        output = await self.desk.beside(lambda: self._output(gate, seen))
        await self.desk.beside(lambda: self.desk.runner.forget(gate))
        if seen.code == 0 and not late:
            return Gate(True)
        if seen.code is None and not late:
            return await self._lost_gate(merge)
        return Gate(False, _failure(config, seen, output, late=late), gate, seen.code in CANNOT_RUN and not late)

    async def _run_gate(self, gate: str, commit: str, config: Config, merge: Merge | None) -> tuple[Observation, bool]:
        """Run the gate on a commit to its end, and say whether it took too long."""
        self._gate = gate  # it stays ours when we are called off: whoever stops us has to end it
        await self.desk.beside(lambda: self._start_gate(gate, commit, config))
        ended = await self._await_gate(gate, config.merge.check_minutes * 60, merge)
        self._gate, self._unstarted = None, 0
        return ended

    async def _unstarted_gate(self, merge: Merge, why: str, config: Config) -> Gate:
        """Try again to start a gate that could not be started; after some times the queue waits for a person."""
        self._gate, self._unstarted = None, self._unstarted + 1
        if self._unstarted < LOST:
            await self._step(merge, merges.Requeued(f"the gate could not be started: {why}"[:500]))
        else:
            self._unstarted = 0
            await self._wait_for_gate(f"The gate could not be started: {why}", config)
        return Gate(None)

    async def _lost_gate(self, merge: Merge) -> Gate:
        """Test a merge again whose gate was ended by somebody else; after some times that is the change's own doing."""
        self._lost[merge.id] = self._lost.get(merge.id, 0) + 1
        if self._lost[merge.id] < LOST:
            await self._step(merge, merges.Requeued("the gate was ended by somebody else"))
            return Gate(None)
        what = f"The gate was killed {LOST} times while it tested this."
        return Gate(False, Bad(what, what))

    async def _is_broken(self, run: str, line: Line, config: Config) -> bool:
        """Say whether the gate cannot be run on what landed before either; then no change is to blame."""
        gate = f"{run}-main"
        try:
            seen, _ = await self._run_gate(gate, line.head, config, None)
        except CoveyError:
            return True
        await self.desk.beside(lambda: self.desk.runner.forget(gate))
        return seen.code in CANNOT_RUN

    async def _wait_for_gate(self, why: str, config: Config) -> None:
        """Let the whole queue wait until the settings name a gate that can be run, and tell the person once."""
        told = self._broken is not None and self._broken[0] == config.merge.check
        self._broken = (config.merge.check, self.desk.awake() + BROKEN_FOR)
        self.desk.app.house.broken_gate = True

        def write(call: Call) -> None:
            for merge in call.tx.open_merges():
                if merge.state is State.TESTING:
                    merge = step(call, merge, merges.Requeued("the gate cannot be run"), COVEY)
                if merge.state is State.QUEUED and merge.reason is None:
                    step(call, merge, merges.Waits(why), COVEY)
            if not told:
                message = f"{why} That is no change's fault, so nothing lands until it is mended: see merge.check."
                alert(call, "gate_broken", message, None, None)

        await self.desk.write(write)

    async def _is_waiting_for_gate(self, open_merges: list[Merge], config: Config) -> bool:
        """Say whether the gate is broken as far as we know; what was handed in meanwhile waits too."""
        house, broken = self.desk.app.house, self._broken
        if broken is None or broken[0] != config.merge.check or self.desk.awake() > broken[1]:
            house.broken_gate = False
        if not house.broken_gate:
            return False
        reason = next((merge.reason for merge in open_merges if merge.state is State.QUEUED and merge.reason), None)
        if reason is not None and any(merge.state is State.QUEUED and not merge.reason for merge in open_merges):
            await self._wait_for_gate(reason, config)
        return True

    def _start_gate(self, gate: str, commit: str, config: Config) -> None:
        path = self.desk.worktrees.gate(GATE, commit, pristine=config.merge.pristine)
        guard = write_guard(self.desk.project, self.desk.project.state / "hooks", config.project.main)
        session = self.desk.worktrees.session_env(GATE, guard)
        guarded = {name: value for name, value in session.items() if name.startswith("GIT_CONFIG_")}
        env = gate_env() | guarded | {"PWD": str(path)}
        self.desk.runner.start(gate, Launch(argv=("/bin/sh", "-c", config.merge.check), cwd=str(path), env=env))

    async def _await_gate(self, gate: str, limit: float, merge: Merge | None) -> tuple[Observation, bool]:
        """Wait until the gate has ended, or end it when its time is over or nobody wants the merge any more.

        Standing still does not count.
        """
        spent, last = 0.0, self.desk.awake()
        while True:
            seen = await self.desk.near(lambda: self.desk.runner.look(gate))
            if not seen.alive:
                return seen, False
            now = self.desk.awake()
            spent, last = spent + (0.0 if seen.held else now - last), now
            wanted = merge is None or await self.desk.read(lambda call: _is_tested(call, merge))
            if spent > limit or not wanted or seen.size > MOST_OUTPUT:
                await self.desk.near(lambda: self.desk.runner.stop(gate))
                return await self.desk.near(lambda: self.desk.runner.look(gate)), True
            paused = (await self.desk.read(lambda call: call.tx.fleet())).paused
            if paused is not seen.held:
                await self.desk.near(lambda paused=paused: self.desk.runner.hold(gate, on=paused))  # type: ignore[misc]
            await asyncio.sleep(min(LOOK_EVERY + spent / 50, 1.0))

    def _output(self, gate: str, seen: Observation) -> str:
        data, _ = self.desk.runner.output(gate, max(seen.size - OUTPUT, 0))
        return redact(data.decode(errors="replace"))

    # The end of a merge

    async def _land(self, merge: Merge, line: Line, commit: str) -> None:
        """Bring main to a commit that passed, or let it wait where main can follow later."""
        main, project = self._config().project.main, self.desk.project

        def move() -> landing.Landed | landing.Waits | landing.Moved | None:
            if commit == line.main:
                return Landed(commit)
            if line.head == line.main:
                outcome = landing.land(project, main, line.main, commit)
                if isinstance(outcome, Waits):
                    landing.put_landed(project, commit, None)
                return outcome
            landing.put_landed(project, commit, line.head)
            return landing.follow(project, main)

        outcome = await self._whole(move)
        if isinstance(outcome, Landed):
            self._told = ""
        elif isinstance(outcome, Waits):
            await self._wait(outcome)
        await self._settle()

    async def _wait(self, waits: Waits) -> None:
        """Write why main cannot follow, and tell the person once."""

        def write(call: Call) -> None:
            passed = [merge for merge in call.tx.open_merges() if merge.state is State.PASSED]
            known = waits.sentence in (self._told, *(merge.reason for merge in passed))
            for merge in passed:
                if merge.reason != waits.sentence:
                    step(call, merge, merges.Waits(waits.sentence), COVEY)
            if not known:
                alert(call, "main_waits", f"{waits.sentence} Nothing is lost: main follows when it can.", None, None)

        if waits.files != self._in_the_way:
            self._in_the_way, self._sight = waits.files, None
        await self.desk.write(write)
        self._told = waits.sentence

    async def _landed(self, merge: Merge) -> None:
        """Write that a merge is on main; its task is done, and its branch is needed no more."""

        def write(call: Call) -> None:
            now, task = call.tx.get(rows.MERGES, merge.id), call.tx.task(merge.task)
            if now is None or task is None or now.state is not State.PASSED or now.candidate is None:
                return
            step(call, now, merges.Landed(now.candidate), COVEY)
            if task.status is Status.MERGING:
                change(call, task, tasks.land(task, now.candidate), COVEY)

        self._untidy = True
        await self.desk.write(write)
        await self.desk.beside(lambda: tree.let_go(self.desk.project, merge.task))
        await self._drop_landed_branches()

    async def _drop_landed_branches(self) -> None:
        """Delete every branch of a task that stands where its work was when that landed; one in use has to wait."""
        tips = await self.desk.beside(self.desk.worktrees.tips)

        def landed(call: Call) -> dict[str, str]:
            found = {branch: call.tx.last_merge(branch.removeprefix(life.branch_of(""))) for branch in tips}
            ended = {branch: merge for branch, merge in found.items() if merge and merge.state is State.LANDED}
            return {branch: tips[branch] for branch, merge in ended.items() if merge.commit == tips[branch]}

        self._untidy = False
        for branch, tip in (await self.desk.read(landed)).items():
            try:
                await self.desk.beside(lambda branch=branch, tip=tip: self.desk.worktrees.drop_branch(branch, tip))  # type: ignore[misc]
            except CoveyError:
                self._untidy = True

    async def _reject(self, merge: Merge, bad: Bad) -> None:
        """Send work back to its author, first in line, with all that it needs to mend it."""

        def write(call: Call) -> None:
            now, task = call.tx.get(rows.MERGES, merge.id), call.tx.task(merge.task)
            if now is None or task is None or now.state not in merges.OPEN:
                return
            step(call, now, merges.Rejected(bad.reason), COVEY)
            if task.status in (Status.MERGING, Status.REVIEW):
                back = change(call, task, tasks.reject(task, merge.session, bad.story), COVEY)
                put_back(call, send_back(call, back), bad.reason)

        await self.desk.write(write)

    async def _step(self, merge: Merge, event: merges.Event) -> Merge | None:
        """Write a step of a merge, unless something else has become of it."""

        def write(call: Call) -> Merge | None:
            now = call.tx.get(rows.MERGES, merge.id)
            if now is None or now.state not in merges.OPEN:
                return None
            return step(call, now, event, COVEY)

        return await self.desk.write(write)

    def _config(self) -> Config:
        return self.desk.app.house.config


def _any_passed(call: Call) -> bool:
    return any(merge.state is State.PASSED for merge in call.tx.open_merges())


def _is_tested(call: Call, merge: Merge) -> bool:
    now = call.tx.get(rows.MERGES, merge.id)
    return now is not None and now.state is State.TESTING


def _message(merge: Merge, task: Task) -> str:
    return f"{task.title}\n\nCovey-Task: {task.id}\nCovey-Session: {merge.session}\nCovey-Merge: {merge.id}\n"


def _failure(config: Config, seen: Observation, output: str, *, late: bool) -> Bad:
    if late:
        what = f"The check took longer than {config.merge.check_minutes:g} minutes and was ended: {config.merge.check}"
    elif seen.failure is not None:
        what = f"The check could not be started: {seen.failure}"
    else:
        how = f"exit code {seen.code}" if (seen.code or 0) >= 0 else f"signal {-(seen.code or 0)}"
        what = f"The check failed ({how}): {config.merge.check}"
    return Bad(what[:500], f"{what}\nThe end of its output:\n{output.strip()[-TAIL:]}")
