"""The merge queue: steps the train through the log as it is written, and does what the train wants.

The train itself is pure (`core/queue`): it says which trees are tested, what lands and what goes back. Here are git,
gates and the log. Whatever goes wrong, the train begins anew on main as it is, and no merge is lost by that.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import field, replace

from covey.app import sendback, train
from covey.app.changes import step
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.config import Config
from covey.config import Merge as MergeSettings
from covey.core import gates, merges
from covey.core.gates import Gate
from covey.core.merges import State
from covey.core.queue import heard as hearing
from covey.core.queue import standing
from covey.core.queue.heard import Heard
from covey.core.queue.standing import Standing
from covey.core.queue.train import Action, Cancel, Halt, Land, Reason, Reject, Start, Test
from covey.core.sent_back import Clash as Conflict
from covey.core.sessions import COVEY
from covey.errors import CoveyError, Refused
from covey.git import candidates, landing, meanwhile
from covey.git.chains import Placed
from covey.loops import building, catching_up, suspects
from covey.loops.building import Builder, Clash, Tree
from covey.loops.desk import Desk
from covey.loops.entering import Entering, Wishes
from covey.loops.gates import Gates
from covey.loops.main_line import Line, MainLine, passed
from covey.loops.pushing import Pusher
from covey.loops.testing import Testing, digest
from covey.store import rows
from covey.store.rows import Change
from covey.values import dataclass

REST_EVERY = 2.0
LAST_PUSH = 10.0
"""Seconds that a push has to end when the daemon ends."""
PATIENT = 3
"""Times that the same thing goes wrong before a person is told, or the queue rests before it begins anew."""
TREES = 200
"""Trees beyond which those are forgotten that nobody needs."""
LISTENS = ("merge.", "queue.", "gate.", "fleet.", "task.approved", "task.edited")

log = logging.getLogger("covey.queue")


class Anew(Exception):
    """What the train believes is no longer so: it has to begin anew."""


@dataclass(frozen=True)
class Settings:
    """What the train depends on: when one of these changes, it begins anew."""

    strategy: str
    slots: int
    checks: str
    policy: str
    target: str


def settings_of(config: Config) -> Settings:
    """Return what the train depends on."""
    merge = config.merge
    return Settings(merge.strategy, merge.slots, digest(config), merge.policy, config.target)


@dataclass
class Journey:
    """What git and the gates know of the train since it began: commits, trees, gates and conflicts."""

    number: int
    settings: Settings
    head: str
    """Where the line is: nobody but us moves it from there."""
    values: dict[int, str]
    """The commit of each value of main, the first being the one on which the train began."""
    main: int = 0
    trees: dict[int, Tree] = field(default_factory=dict)
    conflicts: dict[str, Conflict] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """Return the commit on which is built now."""
        return self.values[self.main]


@dataclass
class Queue:
    """Lands what was handed in: many at once, and never anything that did not pass as it is."""

    desk: Desk
    news: asyncio.Event = field(default_factory=asyncio.Event)
    heard: Heard = field(default_factory=Heard)
    _journey: Journey | None = None
    _todo: deque[Action] = field(default_factory=deque)
    _wanted: set[int] = field(default_factory=set)
    """Tests that the train wants and that have not begun."""
    _gates: dict[int, str] = field(default_factory=dict)
    """The gate of each test."""
    _failed: tuple[str, int] = ("", 0)
    """What went wrong last, and how often in a row."""
    _told: set[str] = field(default_factory=set)
    _halted_under: MergeSettings | None = None
    """The settings under which main was found red; under others it is tested anew."""
    _vain: set[str] = field(default_factory=set)
    """Commits of main that the integration branch could not take by themselves."""
    _refused: tuple[str, str] = ("", "")
    """What the remote has that failed the gate here, and where our main was then."""
    _is_tidy: bool = False
    """Nothing is left of a train that ended."""
    _is_ending: bool = False

    def __post_init__(self) -> None:
        self.gates = Gates(self.desk)
        self.testing = Testing(self.desk, self.gates, self.news.set)
        self.line = MainLine(self.desk)
        self.entering = Entering(self.desk)
        self.pusher = Pusher(self.desk, self.news.set)
        self.builder = Builder(self.desk.project, self.desk.wall)

    # Hearing

    def hear(self, changes: Iterable[Change]) -> None:
        """Step the train through changes, in the order of the log."""
        for each in changes:
            if not each.kind.startswith(LISTENS):
                continue
            self.news.set()
            try:
                self._take(each)
            except Exception:
                log.exception("the train failed at %s", each.kind)
                self._journey = None
            if each.kind in ("merge.rejected", "merge.withdrawn"):
                self.line.unsure = True
            elif each.kind == "task.edited":
                self.entering.look_again()

    def _take(self, each: Change) -> None:
        was_halted = self.heard.train.halted
        self.heard, actions = hearing.take(self.heard, each.kind, each.row)
        if each.kind == "queue.began":
            self._todo.clear()
            self._wanted.clear()
            self._gates.clear()
        elif each.kind == "gate.started" and isinstance(each.row, Gate):
            self._gates[each.row.test] = each.row.id
        elif each.kind == "queue.resumed" and was_halted:
            self._journey = None
        self._todo += actions

    # The loop

    async def run(self) -> None:
        """Look and act for ever."""
        while True:
            more = False
            try:
                more = await self.tick()
                self._failed = ("", 0)
            except Anew as why:
                log.info("the train begins anew: %s", why)
                await self._after(f"The train begins anew again and again: {why}", PATIENT * 3)
                more = True
            except CoveyError as error:
                log.warning("the merge queue could not be looked after: %s", error)
                await self._after(f"{error.message} {error.hint}".strip(), 0)
            except Exception:
                log.exception("the merge queue failed")
                await self._after("It failed in a way that nobody has foreseen; the log of the daemon tells.", 0)
            if not more:  # whoever gave us more to do has told us
                try:
                    async with asyncio.timeout(REST_EVERY):
                        await self.news.wait()
                except TimeoutError:
                    pass
            self.news.clear()

    async def _after(self, what: str, patience: int) -> None:
        """Rest after something went wrong, unless that is usual, and tell a person of what goes wrong again."""
        self._journey = None
        times = self._failed[1] + 1 if self._failed[0] == what else 1
        self._failed = (what, times)
        if times > patience:
            await asyncio.sleep(REST_EVERY)
        if times == patience + PATIENT and what not in self._told:
            self._told.add(what)
            message = f"The merge queue cannot go on: {what} It is tried again and again; nothing is lost."
            try:
                await self.desk.write(lambda call: alert(call, "queue_stuck", message, None, None))
            except CoveyError as error:
                log.warning("nobody could be told: %s", error)

    async def stop(self) -> None:
        """End the gates; their merges stay in the queue. What has reached main is written down as landed."""
        self._is_ending = True
        await self.testing.close()
        await self.line.rest()
        try:
            await self.desk.write(lambda call: _lose_all(call, "the daemon ended"))
            await self.line.settle()
            await self.pusher.rest(LAST_PUSH)
            await self.line.tidy()
            await self._put_away()
        except CoveyError as error:
            log.warning("the merge queue could not be left tidy: %s", error)

    async def tick(self) -> bool:
        """Do what is to be done now, and say whether there may be more."""
        if await self._is_testing_alone():
            return False
        journey = self._journey
        halted_under = self._halted_under if self.heard.train.halted else None
        is_other = halted_under not in (None, self._config().merge)
        if journey is None or is_other or journey.settings != settings_of(self._config()):
            if not await self._recover():
                return False
            journey = self._journey = await self._begin()
        is_paused, is_frozen, is_open = await self.desk.read(_stands)
        await self._stop_unwanted()
        if is_paused:
            return False
        if not is_open and self._is_idle():
            await self._rest()
            return False
        await self._act(journey, frozen=is_frozen)
        await self._look(journey, frozen=is_frozen)
        if await self._is_waiting():
            return False
        await self._enter(journey)
        self._take_wishes()
        await self._stop_unwanted()
        if self._todo:
            return True
        await self._start_wanted(journey)
        if self._todo:
            return True
        await self._rest()
        return False

    async def _is_testing_alone(self) -> bool:
        """Say whether something is tested for its own sake: main waits for its end, unless it is of no use any more."""
        probe = self.testing.probe
        if probe is None:
            return False
        if probe.is_over():
            if self.pusher.behind is not None:
                await self._push()  # before anything else moves main: it was tested on main as it is
            return False
        line = await self.line.look()
        if line is None or line.head != probe.head or probe.checks != digest(self._config()):
            await self.testing.end_alone()
            self._is_tidy = False
            return False
        await self._stop_unwanted()
        return True

    def _is_idle(self) -> bool:
        train = self.heard.train
        return not (self._todo or self._wanted or self.testing.running or train.changes or train.running)

    async def _rest(self) -> None:
        """Do what has to be done when nothing more can be tested now."""
        await self._push()
        await self.line.tidy()
        await self._put_away()
        if self._is_idle() and self.heard.begun and self.gates.slots() != self.heard.train.slots:
            self._journey = None  # the next train has as many slots as the gates of this one have taught

    async def _is_waiting(self) -> bool:
        """Say whether nothing can be tested: main is red, or the gate cannot be run."""
        if self.heard.train.halted:
            self.desk.app.house.broken_gate = True
            return True
        return await self.testing.waits()

    async def _look(self, journey: Journey, *, frozen: bool) -> None:
        """See that the line is where we left it, and let main follow."""
        line = await self.line.look()
        if line is None or line.head != journey.head:
            raise Anew(f"{journey.settings.target} was moved by somebody else")
        if not frozen and await self.desk.read(lambda call: bool(passed(call))):
            await self.line.follow()
        if self.heard.train.halted and await self._newest(line) not in (line.head, journey.base):
            raise Anew("the remote has moved on")

    # Beginning

    async def _recover(self) -> bool:
        """Take up what was left half done, and say whether anything wants to land; if not, no train is needed."""
        self._journey = None
        await self.testing.stop_all()
        if (await self.desk.read(_stands))[2]:
            self._is_tidy = False
            return True
        if not self._is_tidy:
            await self._clear_up()
            self._is_tidy = True
        await self._push()
        await self.line.tidy()
        await self._put_away()
        return False

    async def _clear_up(self) -> None:
        """End what a daemon before us, or a train that failed, has left half done."""
        await self.desk.beside(lambda: landing.recover(self.desk.project))
        await self.gates.recover()
        if await self.desk.read(lambda call: bool(call.tx.running_gates())):
            await self.desk.write(lambda call: _lose_all(call, "it was cut short"))

    async def _begin(self) -> Journey:
        """Begin a train on main as it is; what was under way is tested again."""
        await self._clear_up()
        await self.line.settle()
        line = await self.line.look() or await self.line.look()
        if line is None:
            raise Refused("What waits for main changes all the time.")
        config = self._config()
        settings = settings_of(config)
        base = await self._newest(line)
        if not self.heard.begun:
            fleet = await self.desk.read(lambda call: call.tx.fleet())
            self.heard = replace(self.heard, fleet_paused=fleet.paused)
        known = self.heard.train.rate if self.heard.begun else None
        slots = self.gates.slots()
        forgives = self._halted_under not in (None, config.merge)
        self._halted_under = None if forgives else self._halted_under

        def write(call: Call) -> tuple[int, Standing]:
            proven = not settings.checks or call.tx.has_passed(base, settings.checks)
            rate = train.learned(call) if known is None else known
            number = call.tx.next_seq
            began = standing.Began(
                strategy=settings.strategy,
                slots=slots,
                base=base,
                proven=proven,
                rate=rate,
                forgives=forgives or _are_other_checks(call, settings.checks),
            )
            stands = train.put(call, began)
            _lose_all(call, "the train began anew")
            for merge in call.tx.open_merges():
                if merge.state is State.TESTING:
                    step(call, merge, merges.Requeued("its test was cut short"), COVEY)
            return number, stands

        number, stands = await self.desk.write(write)
        if stands.halted is None and self.testing.broken is None:
            self.desk.app.house.broken_gate = False
        return Journey(number, settings, line.head, {0: base})

    async def _newest(self, line: Line) -> str:
        """Return where the train begins: what the remote has beyond us lands, tested, with the first that lands."""
        config = self._config()

        def look() -> str:
            newest = self.desk.worktrees.newest_main(config.target, config.project.remote)
            return newest if candidates.is_ancestor(self.desk.project, line.head, newest) else line.head

        return await self.desk.beside(look)

    async def _enter(self, journey: Journey) -> None:
        """Let what wants to land join the train; what stood in doubt joins again, or goes back."""
        for merge in sorted(self.heard.train.doubtful):
            await self._look_at_doubtful(journey, merge)
        wishes = await self.entering.wishes(self.heard.train.changes, _decided(self._todo))
        if wishes.stuck:
            await self.entering.note(wishes.stuck)
        if not wishes.fresh:
            return
        newest = await self._newest(Line(journey.head, journey.head))
        if not await self.line.is_in(newest, journey.base):
            raise Anew("the remote has moved on")
        may_join = await self._catch_up(journey, wishes)
        if len(may_join.fresh) < len(wishes.fresh):
            self.entering.look_again()
        if may_join.fresh:
            await self.entering.enter(journey.base, may_join)

    async def _catch_up(self, journey: Journey, wishes: Wishes) -> Wishes:
        """Let an integration branch take what merges hold of main, as it is; return those that may join before that.

        What conflicts there or fails is left to the merges themselves: they join, and land or go back.
        """
        config, project, base = self._config(), self.desk.project, journey.base
        if config.target == config.project.main:
            return wishes
        found = await self.desk.beside(lambda: catching_up.behind(project, config, base, wishes.fresh, self._vain))
        if found is None:
            return wishes
        line = await self.line.look()
        if line is None or base != line.head:
            return wishes
        if line.main != line.head or (await self.desk.read(_stands))[1]:
            await self.desk.write(lambda call: catching_up.note(call, config, found.wishes))
            return found.others(wishes)
        if self.testing.running or self._wanted or self._todo:
            return replace(wishes, fresh=())  # what is under way ends first, and nothing more begins
        what = f"{config.project.main} {found.commit}"
        probe = self.testing.take_alone(what, line.head)
        if probe is None:
            at = self.desk.wall()
            built = await self.desk.beside(lambda: catching_up.build(project, config, base, found.commit, at))
            if built is None:
                self._vain.add(found.commit)
                return await self._catch_up(journey, wishes)
            self.testing.begin_alone(what, line.head, built)
        if probe is None or not probe.is_over() or self.testing.broken is not None:
            return replace(wishes, fresh=())
        passed_by = probe.passed_by()
        if passed_by is None:
            self._vain.add(found.commit)
            return await self._catch_up(journey, wishes)
        await self.line.bring(line, probe.commit, passed_by)
        raise Anew(f"commits of {config.project.main} have landed")

    async def _look_at_doubtful(self, journey: Journey, merge: str) -> None:
        """See whether a merge that clashed with what has landed since merges with main after all."""
        if merge not in self.heard.train.doubtful:
            return
        config = self._config()
        links, landed = await self.desk.read(lambda call: building.look(call, [merge]))
        built = await self.desk.beside(lambda: self.builder.build(journey.base, [links[merge]], config, "", landed))
        if isinstance(built, Clash):
            await self._clashed(journey, built)
        else:
            decided = _decided(self._todo)
            wishes = await self.entering.wishes({*self.heard.train.changes, *decided}, decided, (merge,))
            await self.entering.enter(journey.base, wishes.only(merge))

    # The remote

    async def _push(self) -> None:
        """Push what landed; what the remote has beyond that lands here first, tested together with ours."""
        config = self._config()
        line = await self.line.look() if config.merge.push else None
        if line is None:
            return
        if self.pusher.behind is None:
            self.pusher.begin(config.target, config.merge.push, line.main)
        elif line.main == line.head and not any((await self.desk.read(_stands))[:2]):
            await self._bring_in(line, self.pusher.behind)

    async def _bring_in(self, line: Line, theirs: str) -> None:
        """Merge what the remote has, test it as it is, and land it; then the train begins anew on it."""
        config, project = self._config(), self.desk.project
        fails = f"The gate fails with what {config.merge.push} has at {theirs[:12]}."
        what = f"{config.merge.push} {theirs}"
        probe = self.testing.take_alone(what, line.head)
        if probe is None:
            # Nobody else waits for one more test of what fails, and the same tree is not tested without end.
            if self._refused == (theirs, line.head) or (self._refused[0] == theirs and not self._is_idle()):
                await self.pusher.cannot_take(fails)
                return
            message = f"Merge {config.target} of {config.merge.push}\n"
            author = ("covey", "covey@localhost")
            at = self.desk.wall()
            built = await self.desk.beside(
                lambda: candidates.build(
                    project, line.head, theirs, policy="merge", message=message, author=author, at=at
                )
            )
            if isinstance(built, candidates.Conflict):
                files = ", ".join(built.files[:5])
                await self.pusher.cannot_take(f"{config.merge.push} has commits that conflict with ours in {files}.")
            else:
                self.testing.begin_alone(what, line.head, built.commit)
            return
        if not probe.is_over():
            return
        passed_by = probe.passed_by()
        if passed_by is None:
            self._refused = (theirs, line.head)
            await self.pusher.cannot_take(fails)
            return
        await self.line.bring(line, probe.commit, passed_by)
        self.pusher.caught_up()
        raise Anew("the remote's commits have landed")

    # Gates

    async def _stop_unwanted(self) -> None:
        """End the gates of tests that the train has given up."""
        running = self.heard.train.running
        unwanted = [gate for gate, each in self.testing.running.items() if each.gate.test not in {0, *running}]
        await self.testing.stop(unwanted)

    async def _start_wanted(self, journey: Journey) -> None:
        """Begin the tests that the train wants, as long as there is room."""
        for number in sorted(self._wanted):
            # What landed since it was decided is no part of it any more.
            test = self.heard.train.running.get(number)
            if test is None:
                self._wanted.discard(number)
            elif self.testing.has_room(self.heard.train.slots):
                self._wanted.discard(number)
                await self._start(journey, test)

    async def _start(self, journey: Journey, test: Test) -> None:
        """Build the tree of a test, and begin its gate."""
        if test.on < 0:  # main holds another part of it than its first
            await self.testing.give_up(test, journey.base)
            return
        if test.on > journey.main:  # what it stands on is decided, and lands before it begins
            self._wanted.add(test.id)
            return
        config, base = self._config(), journey.values[test.on]
        links, landed = await self.desk.read(lambda call: building.look(call, test.changes))
        wanted = [links[each] for each in test.changes if each in links]
        group = f"{journey.number}.{test.id}"
        built = await self.desk.beside(lambda: self.builder.build(base, wanted, config, group, landed))
        if isinstance(built, Clash):
            await self._clashed(journey, built)
            return
        if base == journey.values.get(0) != journey.head:
            built = replace(built, since=journey.head)  # what the remote has beyond main lands with it
        journey.trees[test.id] = built
        is_current = self.heard.train.running.get(test.id) == test
        if not (is_current and await self.testing.start(test, built)) and test.id in self.heard.train.running:
            self._wanted.add(test.id)  # something landed or left in this moment

    async def _clashed(self, journey: Journey, clash: Clash) -> None:
        """Write what does not go together, so that the train knows."""
        journey.conflicts[clash.merge] = Conflict(clash.conflict.files, clash.conflict.message)

        def write(call: Call) -> None:
            now = call.tx.get(rows.MERGES, clash.merge)
            if now is not None and now.state in (State.QUEUED, State.TESTING):
                step(call, now, merges.Clashed(clash.against), COVEY)

        await self.desk.write(write)

    # What the train decided

    async def _act(self, journey: Journey, *, frozen: bool) -> None:
        """Do what the train decided, in this order."""
        while self._todo and self._journey is journey:
            self._take_wishes()
            match self._todo.popleft() if self._todo else None:
                case Land() as action:
                    await self._land(journey, action, frozen=frozen)
                case Reject() as action:
                    await self._reject(journey, action)
                case Halt() as action:
                    await self._halt(journey, action)
        await self._stop_unwanted()
        self._forget(journey)

    def _take_wishes(self) -> None:
        """Remember which tests shall begin or not, up to the first thing that is to be done."""
        while self._todo and isinstance(self._todo[0], Start | Cancel):
            match self._todo.popleft():
                case Start(test):
                    self._wanted.add(test.id)
                case Cancel(number):
                    self._wanted.discard(number)

    def _forget(self, journey: Journey) -> None:
        """Forget the trees and gates of tests of which the train remembers nothing, and mains on which none is."""
        train = self.heard.train
        if len(journey.trees) > TREES:
            known = {*train.running, *(result.test.id for result in train.results)}
            known |= {action.test for action in self._todo if isinstance(action, Land)}
            journey.trees = {number: tree for number, tree in journey.trees.items() if number in known}
            known |= {number for action in self._todo if isinstance(action, Reject | Halt) for number in action.tests}
            self._gates = {number: gate for number, gate in self._gates.items() if number in known}
        if len(journey.values) > TREES:
            used = {journey.main, *(test.on for test in train.running.values())}
            journey.values = {number: commit for number, commit in journey.values.items() if number in used}

    async def _land(self, journey: Journey, action: Land, *, frozen: bool) -> None:
        """Bring main to the tree of a test that passed, in one move."""
        links = journey.trees[action.test].links[-len(action.changes) :]
        if tuple(link.id for link in links) != action.changes or links[0].before != journey.base:
            raise Anew("a tree is not what the train takes it for")
        line = await self.line.look()
        if line is None or line.head != journey.head:
            raise Anew(f"{journey.settings.target} was moved by somebody else")
        untested = not journey.settings.checks
        if not await self.desk.write(lambda call: _pass(call, links, untested=untested)):
            raise Anew("something of a group left it while it was about to land")
        commit = links[-1].commit
        journey.main += 1
        journey.values[journey.main] = commit
        journey.head = commit
        if not await self.line.land(line, commit, frozen=frozen):
            raise Anew("what had passed could not land")
        self._told.clear()

    async def _reject(self, journey: Journey, action: Reject) -> None:
        """Send a merge back to its author, or let it wait for what it needs."""
        if action.reason is Reason.NEEDS:
            await self.desk.write(lambda call: _wait_for_needs(call, action))
            return
        merge = await self.desk.read(lambda call: call.tx.get(rows.MERGES, action.id))
        if merge is None or merge.commit is None:
            return
        tip, project = merge.commit, self.desk.project
        since = await self.desk.beside(lambda: meanwhile.since(project, tip, journey.base))
        clash = journey.conflicts.get(action.id) if action.reason is Reason.TEXT else None
        gate_ids = tuple(self._gates[number] for number in action.tests if number in self._gates)
        cause = action.reason.value
        journey.conflicts.pop(action.id, None)
        await self.desk.write(
            lambda call: sendback.rejected(call, merge, cause, gate_ids, action.blame, since=since, clash=clash)
        )

    async def _halt(self, journey: Journey, action: Halt) -> None:
        """Stop landing, since main itself is red, and name whoever may know why."""
        target, base = journey.settings.target, journey.base
        gate_ids = tuple(self._gates[number] for number in action.tests if number in self._gates)
        greens = await self.desk.read(lambda call: suspects.greens(call, journey.settings.checks))
        named = await self.desk.beside(lambda: suspects.name(self.desk.project, greens, base))
        what = f"{target} itself" if base == journey.head else f"{target} with what the remote has beyond it"
        why = f"{what} fails its gate at {base[:12]} ({', '.join(gate_ids)}). {named}"

        def write(call: Call) -> None:
            train.put(call, standing.Halted(why, gate_ids))
            for merge in call.tx.open_merges():
                if merge.state in (State.QUEUED, State.TESTING):
                    queued = step(call, merge, merges.Requeued(f"{target} is red"), COVEY)
                    step(call, queued, merges.Waits(why), COVEY)
            message = (
                f"{why} Nothing lands until that is mended; then the queue goes on by itself. "
                "To land a branch that mends it: covey merge queue BRANCH, then covey merge resume."
            )
            alert(call, "main_red", message, None, None)

        self.desk.app.house.broken_gate = True
        self._halted_under = self._config().merge
        await self.desk.write(write)

    async def _put_away(self) -> None:
        """Remove the pool's worktrees when nobody is left who could fill the queue soon."""
        is_busy = self.testing.is_busy() or self._wanted or self.heard.train.changes
        if is_busy and not self._is_ending:
            return
        if not await self.desk.read(lambda call: bool(call.tx.run_sessions())):
            await self.gates.put_away()

    def _config(self) -> Config:
        return self.desk.app.house.config


def _decided(todo: Iterable[Action]) -> set[str]:
    """Return the merges of which is decided already that they land or go back."""
    landing = (each for action in todo if isinstance(action, Land) for each in action.changes)
    return {*landing, *(action.id for action in todo if isinstance(action, Reject))}


def _stands(call: Call) -> tuple[bool, bool, bool]:
    """Return whether nothing may be tested or land, whether main shall stay where it is, and whether anything waits."""
    stands = call.tx.standing()
    is_open = any(merge.state is not State.REVIEW for merge in call.tx.open_merges())
    return stands.paused or call.tx.fleet().paused, stands.frozen, is_open


def _are_other_checks(call: Call, checks: str) -> bool:
    """Say whether the gates that main failed ran other checks than those of now."""
    failed = (call.tx.get(rows.GATES, gate) for gate in call.tx.standing().gates)
    return any(gate is not None and gate.checks != checks for gate in failed)


def _lose_all(call: Call, why: str) -> None:
    """Write that the gates have no result of which nobody knows how they ended."""
    for gate in call.tx.running_gates():
        train.end_gate(call, gate.id, gates.Lost(why))


def _pass(call: Call, links: Iterable[Placed], *, untested: bool) -> bool:
    """Write that merges may land now, if all of them still want to."""
    found = [(call.tx.get(rows.MERGES, link.id), link) for link in links]
    if any(merge is None or merge.state not in (State.QUEUED, State.TESTING) for merge, _ in found):
        return False
    for merge, link in found:
        if merge is not None:
            step(call, merge, merges.Passed(link.commit, untested=untested, onto=link.before), COVEY)
    return True


def _wait_for_needs(call: Call, action: Reject) -> None:
    now = call.tx.get(rows.MERGES, action.id)
    if now is None or now.state not in (State.QUEUED, State.TESTING):
        return
    needed = [merge.task for each in action.blame if (merge := call.tx.get(rows.MERGES, each)) is not None]
    if now.state is State.TESTING:
        now = step(call, now, merges.Requeued("what it needs did not land"), COVEY)
    step(call, now, merges.Waits(f"It needs {', '.join(needed)} on main first."), COVEY)
