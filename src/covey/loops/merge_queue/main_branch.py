"""The line: main, what has passed and waits for it, and how main gets there, whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from covey.app import runs as life
from covey.app import train
from covey.app.changes import change, step
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.config import Config
from covey.core import landings, merges, tasks
from covey.core.landings import Landing
from covey.core.merges import Merge, State
from covey.core.sessions import COVEY
from covey.errors import CoveyError, Refused, Unavailable
from covey.git import candidates, checkouts, landing, put_back, refs
from covey.git.landing import Landed, Waits
from covey.git.project import Project
from covey.git.run import git
from covey.loops import keeping, tree
from covey.loops.desk import Desk
from covey.store import rows
from covey.values import dataclass

T = TypeVar("T")
TRY_EVERY = 60.0
"""Seconds after which main tries to follow again although nothing that is in its way seems to have changed."""
GLANCE_EVERY = 5.0
"""Seconds between two looks at where main is while nothing is to land."""
OFF = 50
"""Landings among which is looked for what was taken off main again."""
NAMED = 10
"""Merges of these that are named."""

log = logging.getLogger("covey.queue")


@dataclass(frozen=True)
class Line:
    """Main's commit, and the commit on which the queue builds."""

    main: str
    head: str


@dataclass(frozen=True)
class Sight:
    """How main, its checkouts and some files in them look; whoever changes one of these changes this too."""

    files: tuple[str, ...]
    main: str | None
    seen: tuple[tuple[int, int, int] | None, ...]


def look_at(project: Project, main: str, files: tuple[str, ...]) -> Sight:
    """Look at some files wherever main is checked out, without a lock."""
    seen = tuple(_stamp(each.path / name) for each in checkouts.holding(project, main) for name in files)
    return Sight(files, candidates.resolve(project, f"refs/heads/{main}"), seen)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass
class MainLine:
    """Knows where main and the line are, moves them, and writes down what has reached main."""

    desk: Desk
    _told: str = ""
    _in_the_way: tuple[str, ...] = ()
    """The files that were in main's way at the last try."""
    _sight: Sight | None = None
    """What was in main's way at the last try, as it looked then."""
    _tried: float = 0.0
    _told_foreign: float | None = None
    """When it was last told that somebody else had put something down for main."""
    _looked_at: str = ""
    _glanced: float = -GLANCE_EVERY
    _moving: asyncio.Future[Any] | None = None
    """Main's move that is under way; it goes on to its end whatever becomes of the loop."""
    _untidy: bool = True
    """There may be a branch whose work has landed."""
    unsure: bool = field(default=True)
    """A merge left the queue without landing; what waits for main may hold it still."""

    # Where it is

    async def look(self) -> Line | None:
        """Return where main is and where the queue builds; None if that has just been dropped and merges wait anew."""
        name = self._config().target
        await self._keep(name)
        found = await self.desk.beside(lambda: self._find(name))
        if found.main is None and await self._bring_back(name):
            found = await self.desk.beside(lambda: self._find(name))
        if found.main is None or found.head is None:
            raise Refused(f"There is no branch {name} to land on.", hint="covey.toml names the branch.")
        line = Line(found.main, found.head)
        self.desk.seen[name] = line.main
        if line.head != line.main and not await self.desk.read(lambda call: _has_passed(call, line.head)):
            if not await self._forget(name, line):
                return None
            line = Line(line.main, line.main)
        elif found.diverged or (line.head != line.main and self.unsure and await self._holds_unwanted(line)):
            await self._rebuild(line)
            return None
        self.unsure = False
        if line.main != self._looked_at:
            await self._see_that_all_is_there(line.main)
            self._looked_at = line.main
        return line

    async def glance(self) -> None:
        """Look while nothing lands too, now and then, if main is elsewhere: somebody may have moved it back."""
        name, now = self._config().target, self.desk.awake()
        if now < self._glanced + GLANCE_EVERY:
            return
        self._glanced = now
        at = await self.desk.beside(lambda: refs.value(self.desk.project, f"refs/heads/{name}"))
        if at != self._looked_at and (at or name in self.desk.seen):
            await self.look()

    async def _forget(self, name: str, line: Line) -> bool:
        """Forget what waits for main and has not passed, or no longer; say whether all that has passed is on main.

        Then there is nothing to begin anew: whoever puts something down there again and again holds nobody up.
        """
        is_ours = self.unsure and await self._holds_unwanted(line)
        if not is_ours and (self._told_foreign is None or self.desk.awake() > self._told_foreign + TRY_EVERY):
            self._told_foreign = self.desk.awake()
            await self.desk.write(lambda call: _note_foreign(call, name, line.head))
        for commit in [merge.candidate for merge in await self.desk.read(passed)]:
            if commit is None or not self._is_known(commit) or not await self.is_in(commit, line.main):
                await self._rebuild(line)
                return False
        with contextlib.suppress(Refused):  # it is yet another one by now
            await self.desk.beside(lambda: landing.drop_landed(self.desk.project, line.head))
        return True

    async def _keep(self, name: str) -> None:
        """Put the branch back if a session has changed it, and tell."""
        known, project, landed = self.desk.seen.get(name), self.desk.project, None
        if known is None:
            landed = await self.desk.read(lambda call: train.last_landed(call, name))
        back = await self.desk.beside(lambda: put_back.look_after(project, name, known, landed))
        if back is not None:
            await self.desk.write(lambda call: alert(call, "main_put_back", back.told(), None, None))
        await self._see_who_moved_it(name)

    async def _see_who_moved_it(self, name: str) -> None:
        """Tell if the branch is where git has not noted that anybody moved it; it is tested as it is."""
        message = await self.desk.beside(lambda: keeping.look_for_unnoted(self.desk, name))
        if message:
            await self.desk.write(lambda call: _alert_once(call, "main_unnoted", message))

    async def _bring_back(self, name: str) -> bool:
        """Make the branch again if it has vanished from under the user's checkout, and tell."""
        known, project = self.desk.seen.get(name), self.desk.project
        back = None
        if known is not None:
            back = await self.desk.beside(lambda: put_back.bring_back(project, name, known))
        if back is not None:
            await self.desk.write(lambda call: alert(call, "main_put_back", back.told(), None, None))
        return back is not None

    def _find(self, name: str) -> landing.Line:
        """Look where the line is; an integration branch begins where main is."""
        found = landing.landed_line(self.desk.project, name)
        if found.main is None and tree.begin(self.desk.project, name, self._config().project.main) is not None:
            found = landing.landed_line(self.desk.project, name)
        return found

    async def _holds_unwanted(self, line: Line) -> bool:
        """Say whether what waits for main holds work that was rejected or dropped after it had passed."""
        unwanted = await self.desk.read(_unwanted)
        project = self.desk.project
        return await self.desk.beside(lambda: tree.taken_back(project, line.head, line.main, unwanted)) is not None

    async def _see_that_all_is_there(self, main: str) -> None:
        """Tell the person if main no longer holds what landed last: somebody moved it back, and may not know."""
        name = self._config().target
        made = await self.desk.read(lambda call: [each for each in call.tx.last_landings(OFF) if each.branch == name])
        off = await self.desk.beside(lambda: self._taken_off(made, main))
        if off:
            await self.desk.write(lambda call: _note_taken_off(call, name, off))

    def _taken_off(self, made: Sequence[Landing], main: str) -> list[Landing]:
        """Return the landings, newest first, that main holds no more; nothing of a history that git has forgotten."""
        return list(takewhile(lambda each: self._is_known(each.commit) and not self._holds(main, each.commit), made))

    def _holds(self, main: str, commit: str) -> bool:
        return candidates.is_ancestor(self.desk.project, commit, main)

    async def is_in(self, commit: str, head: str) -> bool:
        """Say whether a commit is in another."""
        return await self.desk.beside(lambda: candidates.is_ancestor(self.desk.project, commit, head))

    async def _rebuild(self, line: Line) -> None:
        """Begin again from main, which went another way than what had passed and waited for it."""
        await self.desk.beside(lambda: landing.drop_landed(self.desk.project, line.head))
        main = self._config().target
        for merge in await self.desk.read(passed):
            await self.requeue(merge, f"{main} went another way while it waited")

    # How it moves

    async def land(self, line: Line, commit: str, *, frozen: bool) -> bool:
        """Bring main to a commit that passed, or let it wait where main can follow later; say whether it is there."""
        main, project = self._config().target, self.desk.project

        def move() -> landing.Landed | landing.Waits | landing.Moved | None:
            if commit == line.main:
                return Landed(commit)
            if line.head == line.main and not frozen:
                outcome = landing.land(project, main, line.main, commit)
                if isinstance(outcome, Waits):
                    landing.put_landed(project, commit, None, line.main)
                return outcome
            if commit != line.head:
                landing.put_landed(project, commit, None if line.head == line.main else line.head, line.main)
            return None if frozen else landing.follow(project, main, commit)

        outcome = await self._whole(move)
        if isinstance(outcome, Landed):
            self._told = ""
        elif isinstance(outcome, Waits):
            await self._wait(outcome)
        elif frozen:
            await self._wait(Waits((), f"{main} is frozen; it follows when it is thawed."), tell=False)
        is_there = await self.settle(before=line.main)
        moved = isinstance(outcome, Landed) and commit != line.main
        if moved and await self.desk.read(lambda call: train.last_landed(call, main)) != commit:
            await self.desk.write(lambda call: _note_the_rest(call, main, line.main, commit))
        return is_there

    async def bring(self, line: Line, commit: str, gate: str) -> None:
        """Bring main to a commit that passed and is no merge of the queue's."""
        main, project = self._config().target, self.desk.project
        outcome = await self._whole(lambda: landing.land(project, main, line.main, commit))
        if isinstance(outcome, Landed):
            made = landings.Made(branch=main, before=line.main, commit=commit, gate=gate)
            await self.desk.write(lambda call: train.journal(call, made))
        elif isinstance(outcome, Waits):
            raise Unavailable(outcome.sentence)

    async def follow(self) -> None:
        """Let main follow to what has passed, if the checkout that has it allows that by now."""
        main = self._config().target
        line = await self.look()
        if line is None or await self._is_as_before(main):
            return  # a try would only take the lock of the user's checkout
        outcome = await self._whole(lambda: landing.follow(self.desk.project, main, line.head))
        if isinstance(outcome, Waits):
            await self._wait(outcome)
        await self.settle(before=line.main)

    async def _whole(self, move: Callable[[], T]) -> T:
        """Move main; whoever stops us meanwhile waits for the end of it."""
        moving = asyncio.ensure_future(self.desk.beside(move))
        self._moving = moving
        return await asyncio.shield(moving)

    async def _is_as_before(self, main: str) -> bool:
        """Say whether all is as it was before the last try, which was in vain; if not, remember how it is now."""
        files = self._in_the_way
        if not files:
            return False
        sight = await self.desk.beside(lambda: look_at(self.desk.project, main, files))
        soon = self.desk.awake() < self._tried + TRY_EVERY
        if soon and sight == self._sight:
            return True
        self._sight, self._tried = sight, self.desk.awake()
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
                alert(call, "main_waits", f"{waits.sentence} Nothing is lost: main follows when it can.", None, None)

        if waits.files != self._in_the_way:
            self._in_the_way, self._sight = waits.files, None
        await self.desk.write(write)
        self._told = waits.sentence

    # What is there

    async def settle(self, before: str | None = None) -> bool:
        """Bring merges that passed in step with where their commits are: on main, on the way there, or nowhere.

        Says whether none of them was nowhere. `before` is where main was until now, if that is known.
        """
        line = await self.look()
        waiting = await self.desk.read(passed)
        if line is None or not waiting:
            return line is not None
        there, on_the_way = await self.desk.beside(lambda: self._places(waiting, line))
        arrived = [merge for merge in waiting if merge.candidate in there]
        if arrived:
            order = {commit: number for number, commit in enumerate(there)}
            arrived.sort(key=lambda merge: (order[merge.candidate or ""], merge.ordinal))
            await self._landed(arrived, before)
        lost = [merge for merge in waiting if merge.candidate not in there and merge.candidate not in on_the_way]
        for merge in lost:
            await self.requeue(merge, f"{self._config().target} moved on before it could land")
        return not lost

    def _places(self, waiting: Sequence[Merge], line: Line) -> tuple[list[str], set[str]]:
        """Return the commits of merges that main holds, the oldest first, and of those on the way there."""
        own = {merge.candidate for merge in waiting if merge.candidate and merge.candidate != merge.onto}
        below = {merge.onto for merge in waiting if merge.onto} - own
        listed = self._commits(line.main, below)
        ahead = {*self._commits(line.head, {line.main})} if line.head != line.main else set()
        found = [commit for commit in listed if commit in own]
        on_the_way = own & ahead
        for commit in dict.fromkeys(merge.candidate for merge in waiting):
            if commit is None or commit in found or commit in on_the_way or not self._is_known(commit):
                continue
            if candidates.is_ancestor(self.desk.project, commit, line.main):
                found.insert(0, commit)
            elif candidates.is_ancestor(self.desk.project, commit, line.head):
                on_the_way.add(commit)
        return found, on_the_way

    def _commits(self, head: str, below: Collection[str]) -> list[str]:
        asked = "".join(f"{name}\n" for name in (head, *(f"^{commit}" for commit in sorted(below)))).encode()
        words = ("rev-list", "--topo-order", "--reverse", "--ignore-missing", "--stdin")
        return git(*words, at=self.desk.project.common, stdin=asked).decode().split()

    def _is_known(self, commit: str) -> bool:
        return candidates.resolve(self.desk.project, commit) is not None

    async def _landed(self, arrived: Sequence[Merge], before: str | None) -> None:
        """Write that merges are on main; their tasks are done, and their branches are needed no more."""
        branch = self._config().target
        self._untidy = True
        await self.desk.write(lambda call: train.landed(call, branch, arrived, before))
        await self.desk.beside(lambda: tree.let_go(self.desk.project, [merge.task for merge in arrived]))

    async def requeue(self, merge: Merge, why: str) -> None:
        """Let a merge be built and tested again, unless something else has become of it."""

        def write(call: Call) -> None:
            now = call.tx.get(rows.MERGES, merge.id)
            if now is not None and now.state in (State.TESTING, State.PASSED):
                step(call, now, merges.Requeued(why), COVEY)

        await self.desk.write(write)

    async def tidy(self) -> None:
        """Delete every branch of a task that stands where its work was when that landed; one in use has to wait."""
        if not self._untidy:
            return
        await self.desk.beside(self.desk.worktrees.unlock_refs)
        tips = await self.desk.beside(self.desk.worktrees.tips)

        def ended(call: Call) -> dict[str, str]:
            found = {branch: call.tx.last_merge(branch.removeprefix(life.branch_of(""))) for branch in tips}
            landed = {branch: merge for branch, merge in found.items() if merge and merge.state is State.LANDED}
            return {branch: tips[branch] for branch, merge in landed.items() if merge.commit == tips[branch]}

        left = []
        for branch, tip in (await self.desk.read(ended)).items():
            try:
                await self.desk.beside(partial(self.desk.worktrees.drop_branch, branch, tip))
            except CoveyError:
                left.append(branch)
        self._untidy = bool(left)  # last: who is stopped on the way has not tidied

    async def rest(self) -> None:
        """Wait for the end of a move that is under way."""
        if self._moving is not None:
            await asyncio.wait([self._moving])

    def _config(self) -> Config:
        return self.desk.app.house.config


def passed(call: Call) -> list[Merge]:
    """Return the merges that have passed and are not known to be on main."""
    return [merge for merge in call.tx.open_merges() if merge.state is State.PASSED]


def _has_passed(call: Call, head: str) -> bool:
    """Say whether what waits for main is what the queue put there."""
    return any(merge.candidate == head for merge in passed(call))


def _note_foreign(call: Call, branch: str, head: str) -> None:
    message = f"{landing.LANDED} was moved to {head[:12]}, which has not passed: only covey moves it."
    alert(call, "refs_put_back", f"{message} It is forgotten, and what waits for {branch} is tested again.", None, None)


def _unwanted(call: Call) -> list[str]:
    """Return what was built and then not wanted, but for what has passed since as a part of its author's own work."""
    mended = {commit for merge in passed(call) for commit in tree.built_of(call, merge.task)}
    return [commit for commit in call.tx.unwanted(tree.UNWANTED) if commit not in mended]


def _note_taken_off(call: Call, branch: str, off: Sequence[Landing]) -> None:
    """Tell once what somebody took off a branch, the person and the tasks whose work it is."""
    last = off[0].commit[:12]
    how = f"{branch} was moved back. git merge {last} brings it in again."
    found = [call.tx.get(rows.MERGES, each) for landing in reversed(off) for each in landing.merges]
    landed = [merge for merge in found if merge is not None and merge.state is State.LANDED]
    for merge in landed:
        task, note = call.tx.task(merge.task), f"Its work is no longer on {branch}: {how}"
        if task is not None and note not in {each.text for each in task.notes}:
            change(call, task, tasks.Edited(note=note), COVEY)
    named = [f"{merge.task} ({merge.id})" for merge in landed]
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    whose = f", which landed there: {', '.join(named[:NAMED])}{more}" if named else ", which landed there"
    message = f"{branch} no longer holds {last}{whose}. {how}"
    _alert_once(call, "main_moved_back", message)


def _alert_once(call: Call, kind: str, message: str) -> None:
    """Tell the person, unless the last alert of this kind said just that."""
    where = "WHERE type = ? ORDER BY ordinal DESC LIMIT 1"
    if [each.message for each in call.tx.find(rows.ALERTS, where, (kind,))] != [message]:
        alert(call, kind, message, None, None)


def _note_the_rest(call: Call, branch: str, before: str, commit: str) -> None:
    """Write down a move of main of which nobody else tells: who wanted it left the queue in this very moment."""
    last = next(iter(call.tx.last_landings(1)), None)
    start = last.commit if last is not None and (last.branch, last.before) == (branch, before) else before
    train.journal(call, landings.Made(branch=branch, before=start, commit=commit))
    message = f"Work left the queue in the moment in which it landed: {branch} holds it, at {commit[:12]}."
    alert(call, "landed_late", f"{message} git revert takes it out again.", None, None)
