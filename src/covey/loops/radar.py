"""The radar: sees at every commit which open branches come close to each other, and tells their sessions once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from dataclasses import field
from itertools import combinations

from covey.app.context import Call
from covey.app.overlap import overlaps as life
from covey.app.overlap.overlaps import Judged, Seen
from covey.core import overlaps
from covey.core.board.tasks import ENDED, Status, Task
from covey.core.leases.write_policy import Write
from covey.core.merging.merges import Merge
from covey.core.overlaps import MAIN, Collision, HotFile
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError
from covey.git.candidates.incoming import Inspector
from covey.git.overlap import overlap
from covey.git.overlap.overlap import Branches, Tips
from covey.loops.runtime import Runtime, wait_at_most
from covey.store.engine.rows import Change
from covey.values import dataclass

LOOK_EVERY_S = 0.5
"""Seconds between two looks at whether a branch has moved."""
MAX_PAUSE_S = 60.0
"""Seconds between two looks while one after another fails."""
TOLD_AFTER = 3
"""Looks that failed in a row after which a person is told."""
FRESH_S = 0.1
"""Seconds in which a branch may move once more without a trace: so coarse are the times that a disk keeps."""
OPEN = (Status.DOING, Status.REVIEW, Status.MERGING)

log = logging.getLogger("covey.radar")


@dataclass(frozen=True)
class OpenBranches:
    """What is open, as rows and branches tell."""

    tips: Tips
    seen: Seen
    members: dict[str, Task]
    """The tasks whose branches are compared."""


@dataclass
class Radar:
    """Looks at the branches of open tasks, compares those that moved, and writes down what has changed."""

    runtime: Runtime
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _stamp: tuple[int, ...] = ()
    _tips: Tips | None = None
    _looked: float = 0.0
    """When all branches were last seen as they are in `_tips`."""
    _judged: dict[str, str] = field(default_factory=dict)
    """The tip with which the branch of each task was last compared."""
    _main: str | None = None
    _rejected: set[str] = field(default_factory=set)
    """Tasks whose work was rejected, and may be in conflict with main."""
    _collisions: list[Collision] | None = None
    """Those that count as long as they are recent; None until they were read."""
    _hot: dict[str, HotFile] = field(default_factory=dict)
    _failed: int = 0
    """Looks that failed one after another."""

    def __post_init__(self) -> None:
        self.branches = Branches(self.runtime.project, Inspector())

    def hear(self, changes: Iterable[Change]) -> None:
        """Look again soon, if these changes are of tasks that have a branch."""
        known = self._tips.branches if self._tips is not None else {}
        for change in changes:
            if change.kind.startswith("task.") and change.subject in known:
                self.news.set()
            elif change.kind == "merge.rejected" and isinstance(change.row, Merge) and change.row.task in known:
                self._rejected.add(change.row.task)
                self.news.set()

    async def run(self) -> None:
        """Look and act for ever; while looks fail, ever less often, since each then compares all there is."""
        while True:
            try:
                await self.tick()
                self._failed = 0
            except CoveyError as error:
                log.warning("the branches could not be compared: %s", error)
                await self._after(error.message)
            except Exception:
                log.exception("the radar failed")
                await self._after("Unexpected error; see the daemon log.")
            if self._failed:
                await asyncio.sleep(min(LOOK_EVERY_S * 2 ** min(self._failed, 16), MAX_PAUSE_S))
                continue
            await wait_at_most(LOOK_EVERY_S, self.news)

    def _forget(self) -> None:
        """Look at everything anew the next time."""
        self._stamp, self._judged, self._main = (), {}, None
        self._failed += 1

    async def _after(self, what: str) -> None:
        """Go on after a look that failed, and tell a person once of what goes wrong again and again."""
        self._forget()
        if self._failed != TOLD_AFTER:
            return
        message = f"Nobody is told which branches come close to each other, since they cannot be compared: {what}"
        await self.runtime.tell(log, AlertKind.RADAR_FAILS, message)

    async def tick(self) -> None:
        """Compare what has moved; where nothing has, that is a glance at a few folders."""
        heard = self.news.is_set()
        self.news.clear()
        now, main = self.runtime.wall(), self.runtime.app.context.config.target
        if self._collisions is None:  # then the log tells of them
            since = now - self.runtime.app.context.config.overlap.hot_minutes * 60
            self._collisions, self._hot = await self.runtime.read(lambda call: life.remembered(call, since))
        stamp = await self.runtime.in_git_thread(lambda: overlap.stamp(self.runtime.project, main))
        moved = stamp != self._stamp or max(stamp) / 1e9 > now - FRESH_S
        if moved or self._tips is None:
            self._stamp = stamp
            self._tips = await self.runtime.in_git_thread(lambda: overlap.tips(self.runtime.project, main))
        if moved or heard:
            await self._look(self._tips)
        self._looked = now
        if self._hot:
            await self._cool(now)

    # Comparing

    async def _look(self, tips: Tips) -> None:
        rejected = set(self._rejected)
        seen = await self.runtime.read(lambda call: life.seen(call, tips.branches))
        members = _members(tips, seen, rejected)
        sight = OpenBranches(tips, seen, members)
        main = tips.main
        if main is None:
            return
        fresh = {name for name in members if self._judged.get(name) != tips.branches[name]}
        wanted = self._wanted(sight, fresh, main)
        judged: list[Judged] = []
        writes: dict[str, list[Write]] = {}
        if fresh or wanted:
            judged, writes = await self.runtime.in_git_thread(lambda: self._compare(sight, main, fresh, wanted))
        if seen.overlaps:
            judged += _ended(sight)
        news = [each for each in judged if _is_news(seen, each)]
        if news or writes:
            await self._write(news, writes)
        self._judged = {name: tips.branches[name] for name in members}
        self._main = main
        self._rejected -= rejected

    def _wanted(self, sight: OpenBranches, fresh: Collection[str], main: str) -> list[tuple[str, str]]:
        """Return the pairs of tasks that have to be compared anew, the older first; the last may be main."""
        members = sight.members
        moved = members if main != self._main else fresh
        pairs = [(name, MAIN) for name in moved]
        for one, other in combinations(sorted(members, key=lambda name: members[name].ordinal), 2):
            is_open = members[one].status in OPEN or members[other].status in OPEN
            known = overlaps.name(one, other) in sight.seen.overlaps
            if (one in fresh or other in fresh) and (is_open or known):
                pairs.append((one, other))
        return pairs

    def _compare(
        self, sight: OpenBranches, main: str, fresh: Collection[str], wanted: list[tuple[str, str]]
    ) -> tuple[list[Judged], dict[str, list[Write]]]:
        tips = {**sight.tips.branches, MAIN: main}
        olds = {name: self.branches.get(self._judged.get(name, "")) for name in fresh}
        looks = self.branches.look(main, {tips[name] for name in sight.members})
        readable = {MAIN, *(name for name, tip in tips.items() if tip in looks)}
        judged = self._judge(tips, main, [pair for pair in wanted if readable.issuperset(pair)])
        holders = {tips[name]: sight.members[name].session for name in fresh}
        places = {tip: self.runtime.worktrees.path(session) for tip, session in holders.items() if session is not None}
        written = self.branches.written({tips[name]: olds[name] for name in fresh}, self._looked, places)
        return judged, {name: written[tips[name]] for name in fresh if written.get(tips[name])}

    def _judge(self, tips: dict[str, str], main: str, pairs: list[tuple[str, str]]) -> list[Judged]:
        """Return how far branches overlap; a pair that git cannot compare is left out."""
        # A branch that stands on main itself has no quarrels with others; what they have with main is not its own.
        idle = [(one, other) for one, other in pairs if other != MAIN and main in (tips[one], tips[other])]
        others = [pair for pair in pairs if pair not in idle]
        found = self.branches.compare(main, {(tips[one], tips[other]) for one, other in others})
        judged = [Judged(one, other, None) for one, other in idle]
        for one, other in others:
            contact = found.get((tips[one], tips[other]))
            if contact is not None:
                meeting = overlaps.meeting(contact.shared, contact.close, contact.conflicts)
                judged.append(Judged(one, other, meeting))
        return judged

    # Acting

    async def _write(self, judged: list[Judged], writes: dict[str, list[Write]]) -> None:
        noted = bool(writes) and await self.runtime.read(lambda call: life.is_news(call, writes))
        if not judged and not noted:
            return
        assert self._collisions is not None
        known, hot = self._collisions, self._hot

        def write(call: Call) -> tuple[list[Collision], dict[str, HotFile]]:
            life.wrote(call, writes)
            new = life.judged(call, judged)
            return life.heat(call, known, new, hot)

        self._collisions, self._hot = await self.runtime.write(write)

    async def _cool(self, now: float) -> None:
        """Say of hot files that were quiet for long enough that they have cooled."""
        quiet = self.runtime.app.context.config.overlap.cool_minutes * 60
        over = [file for file in self._hot.values() if file.cooled is None and not overlaps.is_hot(file, now, quiet)]
        if over:
            cooled = await self.runtime.write(lambda call: life.cool(call, over))
            self._hot = self._hot | cooled


def _members(tips: Tips, seen: Seen, rejected: Collection[str]) -> dict[str, Task]:
    """Return the tasks whose branches are compared: those at work, and those whose quarrels wait with them."""
    waiting = {name for each in seen.overlaps.values() for name in (each.one, each.other)} | set(rejected)
    return {
        task.id: task
        for task in seen.tasks.values()
        if task.id in tips.branches and (task.status in OPEN or (task.id in waiting and task.status not in ENDED))
    }


def _ended(sight: OpenBranches) -> list[Judged]:
    """Return the overlaps that are over because a task has ended, or its branch is gone."""
    found = []
    for each in sight.seen.overlaps.values():
        for name in (each.one, each.other):
            if name == MAIN or name in sight.members:
                continue
            task = sight.seen.tasks.get(name)
            ends = {Status.DONE: f"{name} is done", Status.DROPPED: f"{name} was dropped"}
            why = None if task is None else ends.get(task.status)
            found.append(Judged(each.one, each.other, None, why or f"the branch of {name} is gone"))
            break
    return found


def _is_news(seen: Seen, judged: Judged) -> bool:
    before = seen.overlaps.get(overlaps.name(judged.one, judged.other))
    return overlaps.judge(before, judged.meeting, judged.one, judged.other) is not None
