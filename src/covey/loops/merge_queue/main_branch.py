"""Main: where it is, what has passed and waits for it, and how it gets there, whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from covey.app.board.task_changes import change, step
from covey.app.context import Call
from covey.app.fleet.sessions import alert
from covey.app.merging import merge_lookup, queue_records
from covey.core.board import tasks
from covey.core.fleet.sessions import COVEY
from covey.core.merging import landings, merges
from covey.core.merging.landings import Landing
from covey.core.merging.merges import Merge, MergeState
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError, Refused, Unavailable
from covey.files import status
from covey.git import refs
from covey.git.candidates import candidates, commits_since
from covey.git.identity import LANDED, TASK_BRANCHES
from covey.git.landing import landing, main_restore
from covey.git.landing.landing import Landed, Waits
from covey.git.project import Project
from covey.git.worktrees import checkouts, task_branches
from covey.loops.fleet import ref_repair
from covey.loops.runtime import Runtime
from covey.values import dataclass

T = TypeVar("T")
RETRY_EVERY_S = 60.0
"""Seconds after which main tries to follow again although nothing that is in its way seems to have changed."""
GLANCE_EVERY_S = 5.0
"""Seconds between two looks at where main is while nothing is to land."""
MAX_LANDINGS_CHECKED = 50
"""Last landings that main is checked to hold still."""
MAX_MERGES_NAMED = 10


@dataclass(frozen=True)
class MainPosition:
    """Main's commit, and the commit on which the queue builds: main with what has passed and waits for it."""

    main: str
    head: str


def look_at(project: Project, main: str, files: tuple[str, ...]) -> object:
    """Look at main, and some files wherever it is checked out, without a lock; whoever changes one changes this too."""
    found = [status(each.path / name) for each in checkouts.holding(project, main) for name in files]
    seen = [None if each is None else (each.st_mtime_ns, each.st_size, each.st_ino) for each in found]
    return candidates.resolve(project, f"refs/heads/{main}"), seen


@dataclass
class MainBranch:
    """Knows where main is and where the queue builds, moves both, and writes down what has reached main."""

    runtime: Runtime
    _told: str = ""
    _in_the_way: tuple[str, ...] = ()
    """The files that were in main's way at the last try."""
    _obstacles: object = None
    """What was in main's way at the last try, as it looked then."""
    _tried: float = 0.0
    _told_foreign: float | None = None
    """When it was last told that somebody else had put something down for main."""
    _looked_at: str = ""
    _glanced: float = -GLANCE_EVERY_S
    _moving: asyncio.Future[Any] | None = None
    """Main's move that is under way; it goes on to its end whatever becomes of the loop."""
    _untidy: bool = True
    """There may be a branch whose work has landed."""
    unsure: bool = field(default=True)
    """A merge left the queue without landing; what waits for main may hold it still."""

    # Where it is

    async def look(self) -> MainPosition | None:
        """Return where main is and where the queue builds; None if that was dropped and merges are queued again."""
        name = self.runtime.app.context.config.target
        await self._keep(name)
        found = await self.runtime.in_git_thread(lambda: self._find(name))
        if found.main is None and await self._bring_back(name):
            found = await self.runtime.in_git_thread(lambda: self._find(name))
        if found.main is None or found.head is None:
            raise Refused(f"There is no branch {name} to land on.", hint="covey.toml names the branch.")
        at = MainPosition(found.main, found.head)
        self.runtime.seen[name] = at.main
        if at.head != at.main and at.head not in {merge.candidate for merge in await self.runtime.read(passed)}:
            if not await self._forget(name, at):
                return None
            at = MainPosition(at.main, at.main)
        elif found.diverged or (at.head != at.main and self.unsure and await self._holds_unwanted(at)):
            await self._rebuild(at)
            return None
        self.unsure = False
        if at.main != self._looked_at:
            await self._see_that_all_is_there(at.main)
            self._looked_at = at.main
        return at

    async def glance(self) -> None:
        """Look while nothing lands too, now and then, if main is elsewhere: somebody may have moved it back."""
        name, now = self.runtime.app.context.config.target, self.runtime.awake()
        if now < self._glanced + GLANCE_EVERY_S:
            return
        self._glanced = now
        at = await self.runtime.in_git_thread(lambda: refs.value(self.runtime.project, f"refs/heads/{name}"))
        if at != self._looked_at and (at or name in self.runtime.seen):
            await self.look()

    async def newest(self, at: MainPosition) -> str:
        """Return where an epoch begins: what the remote has beyond us lands, tested, with the first that lands."""
        config = self.runtime.app.context.config

        def look() -> str:
            is_ours = at.head.__eq__  # the ref of what landed may be another's since it was looked at
            newest = self.runtime.worktrees.upstream.newest(config.target, config.project.remote, is_ours)
            return newest if candidates.is_ancestor(self.runtime.project, at.head, newest) else at.head

        return await self.runtime.in_git_thread(look)

    async def _forget(self, name: str, at: MainPosition) -> bool:
        """Forget what waits for main and has not passed, or no longer; say whether all that has passed is on main.

        Then nothing has to be built again: whoever keeps putting something there holds nobody up.
        """
        is_ours = self.unsure and await self._holds_unwanted(at)
        if not is_ours and (self._told_foreign is None or self.runtime.awake() > self._told_foreign + RETRY_EVERY_S):
            self._told_foreign = self.runtime.awake()
            what = f"{LANDED} was moved to {at.head[:12]}, which has not passed: only covey moves it."
            message = f"{what} It is forgotten, and what waits for {name} is tested again."
            await self.runtime.write(lambda call: alert(call, AlertKind.REFS_PUT_BACK, message, None, None))
        for commit in [merge.candidate for merge in await self.runtime.read(passed)]:
            if commit is None or not self._is_known(commit) or not await self.is_in(commit, at.main):
                await self._rebuild(at)
                return False
        with contextlib.suppress(Refused):  # it is yet another one by now
            await self.runtime.in_git_thread(lambda: landing.drop_landed(self.runtime.project, at.head))
        return True

    async def _keep(self, name: str) -> None:
        """Put the branch back if a session has changed it, and tell; also of a move that git has not noted."""
        known, project, landed = self.runtime.seen.get(name), self.runtime.project, None
        if known is None:
            landed = await self.runtime.read(lambda call: call.tx.last_landed(name))
        back = await self.runtime.in_git_thread(lambda: main_restore.look_after(project, name, known, landed))
        if back is not None:
            await self.runtime.write(lambda call: alert(call, AlertKind.MAIN_PUT_BACK, back.told(), None, None))
        message = await self.runtime.in_git_thread(lambda: ref_repair.look_for_unnoted(self.runtime, name))
        if message:
            await self.runtime.write(lambda call: _alert_once(call, AlertKind.MAIN_UNNOTED, message))

    async def _bring_back(self, name: str) -> bool:
        """Make the branch again if it has vanished from under the user's checkout, and tell."""
        known, project = self.runtime.seen.get(name), self.runtime.project
        if known is None:
            return False
        back = await self.runtime.in_git_thread(lambda: main_restore.bring_back(project, name, known))
        if back is not None:
            await self.runtime.write(lambda call: alert(call, AlertKind.MAIN_PUT_BACK, back.told(), None, None))
        return back is not None

    def _find(self, name: str) -> landing.Line:
        """Look where main is; an integration branch begins where main is."""
        found = landing.landed_line(self.runtime.project, name)
        main = self.runtime.app.context.config.project.main
        if found.main is None and task_branches.begin(self.runtime.project, name, main) is not None:
            found = landing.landed_line(self.runtime.project, name)
        return found

    async def _holds_unwanted(self, at: MainPosition) -> bool:
        """Say whether what waits for main holds work that was rejected or dropped after it had passed."""
        unwanted = await self.runtime.read(_unwanted)
        project = self.runtime.project
        return (
            await self.runtime.in_git_thread(lambda: task_branches.taken_back(project, at.head, at.main, unwanted))
            is not None
        )

    async def _see_that_all_is_there(self, main: str) -> None:
        """Tell the person if main no longer holds what landed last: somebody moved it back, and may not know."""
        name = self.runtime.app.context.config.target
        made = await self.runtime.read(
            lambda call: [each for each in call.tx.last_landings(MAX_LANDINGS_CHECKED) if each.branch == name]
        )

        def taken_off() -> list[Landing]:
            project = self.runtime.project
            known = takewhile(lambda each: self._is_known(each.commit), made)  # git may have forgotten the rest
            return list(takewhile(lambda each: not candidates.is_ancestor(project, each.commit, main), known))

        off = await self.runtime.in_git_thread(taken_off)
        if off:
            await self.runtime.write(lambda call: _note_taken_off(call, name, off))

    async def is_in(self, commit: str, head: str) -> bool:
        """Say whether a commit is in another."""
        return await self.runtime.in_git_thread(lambda: candidates.is_ancestor(self.runtime.project, commit, head))

    async def _rebuild(self, at: MainPosition) -> None:
        """Begin again from main, which went another way than what had passed and waited for it."""
        await self.runtime.in_git_thread(lambda: landing.drop_landed(self.runtime.project, at.head))
        main = self.runtime.app.context.config.target
        if waiting := await self.runtime.read(passed):
            await self._requeue(waiting, f"{main} went another way while it waited")

    # How it moves

    async def land(self, at: MainPosition, commit: str, *, is_frozen: bool) -> MainPosition | None:
        """Bring main to a commit that passed, or let it wait where main can follow later; return what `settle` does."""
        main, project = self.runtime.app.context.config.target, self.runtime.project

        def move() -> landing.Landed | landing.Waits | landing.MainMoved | None:
            if commit == at.main:
                return Landed(commit)
            if at.head == at.main and not is_frozen:
                outcome = landing.land(project, main, at.main, commit)
                if isinstance(outcome, Waits):
                    landing.put_landed(project, commit, None, at.main)
                return outcome
            if commit != at.head:
                landing.put_landed(project, commit, None if at.head == at.main else at.head, at.main)
            return None if is_frozen else landing.follow(project, main, commit)

        outcome = await self._whole(move)
        if isinstance(outcome, Landed):
            self._told = ""
            if self._looked_at == at.main:  # what was there is below what has landed
                self._looked_at = commit
        elif isinstance(outcome, Waits):
            await self._wait(outcome)
        elif is_frozen:
            await self._wait(Waits((), f"{main} is frozen; it follows when it is thawed."), tell=False)
        settled = await self.settle(before=at.main)
        moved = isinstance(outcome, Landed) and commit != at.main
        if moved and await self.runtime.read(lambda call: call.tx.last_landed(main)) != commit:
            await self.runtime.write(lambda call: _note_the_rest(call, main, at.main, commit))
        return settled

    async def bring(self, at: MainPosition, commit: str, gate: str) -> None:
        """Bring main to a commit that passed and did not come through the queue."""
        main, project = self.runtime.app.context.config.target, self.runtime.project
        outcome = await self._whole(lambda: landing.land(project, main, at.main, commit))
        if isinstance(outcome, Landed):
            made = landings.Made(branch=main, before=at.main, commit=commit, gate=gate)
            await self.runtime.write(lambda call: call.tx.begin(Landing, made, COVEY))
        elif isinstance(outcome, Waits):
            raise Unavailable(outcome.sentence)

    async def follow(self, at: MainPosition) -> None:
        """Let main follow to what has passed, if the checkout that has it allows that by now."""
        main = self.runtime.app.context.config.target
        if await self._is_as_before(main):
            return  # a try would only take the lock of the user's checkout
        outcome = await self._whole(lambda: landing.follow(self.runtime.project, main, at.head))
        if isinstance(outcome, Waits):
            await self._wait(outcome)
        await self.settle(before=at.main)

    async def _whole(self, move: Callable[[], T]) -> T:
        """Move main; whoever stops us meanwhile waits for the end of it."""
        moving = asyncio.ensure_future(self.runtime.in_git_thread(move))
        self._moving = moving
        return await asyncio.shield(moving)

    async def _is_as_before(self, main: str) -> bool:
        """Say whether all is as it was before the last try, which was in vain; if not, remember how it is now."""
        files = self._in_the_way
        if not files:
            return False
        seen = await self.runtime.in_git_thread(lambda: look_at(self.runtime.project, main, files))
        soon = self.runtime.awake() < self._tried + RETRY_EVERY_S
        if soon and seen == self._obstacles:
            return True
        self._obstacles, self._tried = seen, self.runtime.awake()
        return False

    async def _wait(self, waits: Waits, *, tell: bool = True) -> None:
        """Write why main cannot follow, and tell the person once."""

        def write(call: Call) -> None:
            waiting = passed(call)
            known = not tell or waits.sentence in (self._told, *(merge.reason for merge in waiting))
            for merge in waiting:
                if merge.reason != waits.sentence:
                    step(call, merge, merges.Waits(waits.sentence), COVEY)
            if not known:
                message = f"{waits.sentence} Nothing is lost: main follows when it can."
                alert(call, AlertKind.MAIN_WAITS, message, None, None)

        if waits.files != self._in_the_way:
            self._in_the_way, self._obstacles = waits.files, None
        await self.runtime.write(write)
        self._told = waits.sentence

    # What is there

    async def settle(self, before: str | None = None) -> MainPosition | None:
        """Bring merges that passed in step with where their commits are: on main, on the way there, or nowhere.

        Returns where main is, None if one of them was nowhere. `before` is where main was until now, if that is known.
        """
        at = await self.look()
        waiting = await self.runtime.read(passed)
        if at is None or not waiting:
            return at
        branch = self.runtime.app.context.config.target
        there, on_the_way = await self.runtime.in_git_thread(lambda: self._places(waiting, at))
        arrived = [merge for merge in waiting if merge.candidate in there]
        if arrived:
            order = {commit: number for number, commit in enumerate(there)}
            arrived.sort(key=lambda merge: (order[merge.candidate or ""], merge.ordinal))
            self._untidy = True  # their branches are needed no more
            await self.runtime.write(lambda call: queue_records.landed(call, branch, arrived, before))
            tasks_done = [merge.task for merge in arrived]
            await self.runtime.in_git_thread(lambda: task_branches.let_go(self.runtime.project, tasks_done))
        lost = [merge for merge in waiting if merge.candidate not in there and merge.candidate not in on_the_way]
        if lost:
            await self._requeue(lost, f"{branch} moved on before it could land")
        return None if lost else at

    def _places(self, waiting: Sequence[Merge], at: MainPosition) -> tuple[list[str], set[str]]:
        """Return the commits of merges that main holds, the oldest first, and of those on the way there."""
        own = {merge.candidate for merge in waiting if merge.candidate and merge.candidate != merge.onto}
        below = {merge.onto for merge in waiting if merge.onto} - own
        listed = commits_since.ordered(self.runtime.project, at.main, below)
        ahead = {*commits_since.ordered(self.runtime.project, at.head, {at.main})} if at.head != at.main else set()
        found = [commit for commit in listed if commit in own]
        on_the_way = own & ahead
        seen = {*found, *on_the_way}
        rest = dict.fromkeys(merge.candidate for merge in waiting if merge.candidate and merge.candidate not in seen)
        for commit in filter(self._is_known, rest):
            if candidates.is_ancestor(self.runtime.project, commit, at.main):
                found.insert(0, commit)
            elif candidates.is_ancestor(self.runtime.project, commit, at.head):
                on_the_way.add(commit)
        return found, on_the_way

    def _is_known(self, commit: str) -> bool:
        return candidates.resolve(self.runtime.project, commit) is not None

    async def _requeue(self, lost: Sequence[Merge], why: str) -> None:
        """Let merges be built and tested again, unless something else has become of them."""

        def write(call: Call) -> None:
            for merge in lost:
                queue_records.step_if(call, merge.id, merges.Requeued(why), (MergeState.TESTING, MergeState.PASSED))

        await self.runtime.write(write)

    async def tidy(self) -> None:
        """Delete every branch of a task that stands where its work was when that landed; one in use has to wait."""
        if not self._untidy:
            return
        tips = await self.runtime.in_git_thread(self.runtime.worktrees.unlock_refs)

        def ended(call: Call) -> dict[str, str]:
            found = {branch: call.tx.last_merge(branch.removeprefix(TASK_BRANCHES)) for branch in tips}
            landed = {branch: merge for branch, merge in found.items() if merge and merge.state is MergeState.LANDED}
            return {branch: tips[branch] for branch, merge in landed.items() if merge.commit == tips[branch]}

        left = []
        for branch, tip in (await self.runtime.read(ended)).items():
            try:
                await self.runtime.in_git_thread(partial(self.runtime.worktrees.drop_branch, branch, tip))
            except CoveyError:
                left.append(branch)
        self._untidy = bool(left)  # last: who is stopped on the way has not tidied

    async def rest(self) -> None:
        """Wait for the end of a move that is under way."""
        if self._moving is not None:
            await asyncio.wait([self._moving])


def passed(call: Call) -> list[Merge]:
    """Return the merges that have passed and are not known to be on main."""
    return [merge for merge in call.tx.open_merges() if merge.state is MergeState.PASSED]


def _unwanted(call: Call) -> list[str]:
    """Return what was built and then not wanted, but for what has passed since as a part of its author's own work."""
    mended = {commit for merge in passed(call) for commit in merge_lookup.built_of(call, merge.task)}
    return [commit for commit in call.tx.unwanted(merge_lookup.MAX_UNWANTED) if commit not in mended]


def _note_taken_off(call: Call, branch: str, off: Sequence[Landing]) -> None:
    """Tell once what somebody took off a branch, the person and the tasks whose work it is."""
    last = off[0].commit[:12]
    how = f"{branch} was moved back. git merge {last} brings it in again."
    found = [call.tx.get(merges.Merge, each) for landing in reversed(off) for each in landing.merges]
    landed = [merge for merge in found if merge is not None and merge.state is MergeState.LANDED]
    for merge in landed:
        task, note = call.tx.task(merge.task), f"Its work is no longer on {branch}: {how}"
        if task is not None and note not in {each.text for each in task.notes}:
            change(call, task, tasks.Edited(note=note), COVEY)
    named = [f"{merge.task} ({merge.id})" for merge in landed]
    more = f" and {len(named) - MAX_MERGES_NAMED} more" if len(named) > MAX_MERGES_NAMED else ""
    whose = f", which landed there: {', '.join(named[:MAX_MERGES_NAMED])}{more}" if named else ", which landed there"
    message = f"{branch} no longer holds {last}{whose}. {how}"
    _alert_once(call, AlertKind.MAIN_MOVED_BACK, message)


def _alert_once(call: Call, kind: AlertKind, message: str) -> None:
    """Tell the person, unless the last alert of this kind said just that."""
    last = call.tx.last_alert(kind)
    if last is None or last.message != message:
        alert(call, kind, message, None, None)


def _note_the_rest(call: Call, branch: str, before: str, commit: str) -> None:
    """Write down a move of main of which nobody else tells: who wanted it left the queue in this very moment."""
    last = next(iter(call.tx.last_landings(1)), None)
    start = last.commit if last is not None and (last.branch, last.before) == (branch, before) else before
    call.tx.begin(Landing, landings.Made(branch=branch, before=start, commit=commit), COVEY)
    message = f"Work left the queue in the moment in which it landed: {branch} holds it, at {commit[:12]}."
    alert(call, AlertKind.LANDED_LATE, f"{message} git revert takes it out again.", None, None)
