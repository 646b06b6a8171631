"""Why nothing happens, told from what the scheduler itself goes by: the lanes, the claim, and what keeps runs back."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from covey.app.board.task_verbs import first_that_suits, full, page
from covey.app.context import Call, find
from covey.app.costs.costs import Refusal, day_at
from covey.app.fleet.runs import first_suited, may_begin, no_budget
from covey.app.fleet.script_tasks import Runs, runs, why_no_script
from covey.app.overlap import hot_files
from covey.app.shapes.board import LaneWait, ListTasks, SessionWait, TaskShown, TaskWait, Told, Wait, Waits, WaitsNow
from covey.app.shapes.forms import Nothing
from covey.app.verbs import verb
from covey.core.board import scheduling, waiting, waiting_words
from covey.core.board.tasks import ENDED, Status, Task
from covey.core.board.waiting import Around, Cause, Reason, Whose, Worker
from covey.core.fleet import start_limits
from covey.core.fleet.sessions import Session, SessionKind
from covey.core.people.rights import OWNER_ONLY, PARTLY
from covey.core.texts import redact
from covey.values import dataclass

FIRST = 10
"""Tasks of a lane that are named."""
MAX_TOLD_PER_LANE = 40
"""How many tasks at the head of a lane are told apart, as it happens, if they wait for something else than the rest."""
MAX_TASKS_TOLD = 200
MAX_LANES_TOLD = 100
"""How many lanes every page is told about as it happens: the largest. `covey status` and the panel show them all."""
_OWN = frozenset((Cause.NEXT, Cause.SCOPE, Cause.HOT_FILE, Cause.UNVOUCHED, Cause.PROSE, Cause.NO_BODY))
"""Causes of one task that are not those of its lane."""


@dataclass(frozen=True)
class Lane:
    """The tasks that are ready in a lane: how many, and since when the first of them stands there."""

    count: int
    since: float


@dataclass
class Look:
    """What is known at one moment of all that waits; looked up once for however many tasks are asked about."""

    call: Call
    _known: dict[str, Task] = field(default_factory=dict)
    _scripts: dict[str, Runs] = field(default_factory=dict)
    _parts: dict[str, list[str]] = field(default_factory=dict)
    _firsts: dict[object, str | None] = field(default_factory=dict)
    _met: dict[object, Task | None] = field(default_factory=dict)
    _lane_reasons: dict[str, Reason] = field(default_factory=dict)

    @cached_property
    def lanes(self) -> dict[str, Lane]:
        """Return the lanes in which tasks are ready."""
        return {lane: Lane(*found) for lane, found in self.call.tx.ready_lanes().items()}

    @cached_property
    def scene(self) -> waiting.Scene:
        """Return all sessions with why each takes nothing, or what it would take next."""
        tx = self.call.tx
        held = tx.held_ids()
        around = Around(daemon=self.call.context.has_daemon, paused=tx.fleet().paused, now=tx.now)
        at_work = {run.session: run.task for run in tx.open_runs()}
        found = tx.known_sessions()
        mine = {each.name: tuple(held.get(each.name, ())) for each in found}
        return waiting.scene(self._worker(each, around, mine[each.name], at_work) for each in found)

    def _worker(self, session: Session, around: Around, held: tuple[str, ...], at_work: dict[str, str]) -> Worker:
        wait = None if session.kind is not SessionKind.RUN else self._remembered(session)
        runs = session.name in at_work
        stands = waiting.of_worker(session, around, held=held, runs=runs, wait=wait)
        if stands is not None or session.kind is SessionKind.PERSON:
            return Worker(session, stands, holds=bool(held), runs=runs)
        first = self._next(session)
        if session.kind is SessionKind.RUN and first in at_work.values():
            first = None  # of a task that was taken from another, that one's run has to end first
        refused = None if first is None else self._refused(session, first)
        return Worker(session, refused, first, bool(held))

    def _remembered(self, session: Session) -> Reason | None:
        """Return why the daemon does not start a run of a session, as it remembers that."""
        _, wait = self.call.context.fleet.why(session.name)
        return None if wait is None else _of_wait(replace(wait, why=wait.why or session.evidence or ""))

    def _next(self, session: Session) -> str | None:
        """Return the task that the claim would give a session now; those who are served alike are asked once."""
        if not any(lane in self.lanes for lane in scheduling.waiting_lines(session)):
            return None
        alike = (session.kind, session.role, session.batch, session.agent)
        if f"s:{session.name}" not in self.lanes and alike in self._firsts:
            return self._firsts[alike]
        if session.kind is SessionKind.RUN:
            found = first_suited(self.call, session)
        else:
            found = first_that_suits(self.call, session)
        first = None if found is None else found.id
        if f"s:{session.name}" not in self.lanes:
            self._firsts[alike] = first
        return first

    def _refused(self, session: Session, first: str) -> Reason | None:
        """Say why a run of a session would not begin on a task, None if it would."""
        if session.kind is not SessionKind.RUN:
            return None
        day = day_at(self.call.tx.now)
        granted = may_begin(self.call, session, find(self.call.tx, first), day, is_held=False)
        if isinstance(granted, Refusal):
            granted = no_budget(granted, day)
        return replace(_of_wait(granted), sessions=(session.name,)) if isinstance(granted, start_limits.Wait) else None

    # Tasks

    def reasons(self, tasks: Sequence[Task]) -> dict[str, Reason]:
        """Return why tasks wait, by their ids; what they wait for is looked up together."""
        self._learn(tasks)
        found = {task.id: self._reason(task) for task in tasks}
        return {task: reason for task, reason in found.items() if reason is not None}

    def _reason(self, task: Task) -> Reason | None:
        return waiting.of_task(task, self.scene, unmet=self._unmet, in_the_way=self._in_the_way)

    def _learn(self, tasks: Iterable[Task]) -> None:
        """Look up what some tasks need, and consist of."""
        unready = [task for task in tasks if not task.ready and task.status not in ENDED]
        needed = [need.task for task in unready for need in task.needs]
        if needed:
            self._known |= self.call.tx.tasks_named(needed)
        families = [task.id for task in unready if task.open_children]
        if families:
            pairs = self.call.tx.children_of(families)
            self._known |= self.call.tx.tasks_named(child for child, _ in pairs)
            for child, parent in pairs:
                self._parts.setdefault(parent, []).append(child)

    def _unmet(self, task: Task) -> dict[str, Status | None]:
        names = [need.task for need in task.needs] if task.unmet else self._parts.get(task.id, [])
        known = {name: self._known.get(name) for name in names}
        return {
            name: None if found is None else found.status
            for name, found in known.items()
            if found is None or found.status not in ENDED
        }

    @cached_property
    def _active(self) -> list[Task]:
        return self.call.tx.at_work()

    @cached_property
    def _crowd(self) -> hot_files.Crowd:
        return hot_files.crowd(self.call)

    def _meets(self, task: Task) -> Task | None:
        """Return the task at work that may write the same files; many tasks may have the same scope."""
        if not task.scope or task.overlap:
            return None
        scope = (task.scope, task.do_not_touch)
        if scope not in self._met:
            self._met[scope] = scheduling.in_the_way(task, self._active)
        return self._met[scope]

    def _in_the_way(self, task: Task) -> Reason | None:
        """Say why a task is passed over in its lane, None if it is not."""
        other = self._meets(task)
        if other is not None:
            holder = () if other.session is None else (other.session,)
            return Reason(cause=Cause.SCOPE, tasks=(other.id,), sessions=holder)
        hot = self._crowd.in_the_way(task)
        if hot is not None:
            return Reason(cause=Cause.HOT_FILE, name=hot[0], tasks=(hot[1].id,))
        return self.no_script(task)

    def no_script(self, task: Task) -> Reason | None:
        """Say that nobody may run the text of a task as a script, if all whom its line serves would do that."""
        workers = self.scene.serving.get(scheduling.waiting_line(task), ())
        cause = why_no_script(self.call, task, {self._runs(worker.session) for worker in workers})
        return None if cause is None else Reason(cause=cause, sessions=tuple(worker.session.name for worker in workers))

    def is_script(self, session: Session) -> bool:
        """Say whether covey runs a session whose agent would run the text of its task as a script."""
        return self._runs(session) is not Runs.NOTHING

    def _runs(self, session: Session) -> Runs:
        if session.kind is not SessionKind.RUN:
            return Runs.NOTHING
        agent = session.agent or ""
        if agent not in self._scripts:
            self._scripts[agent] = runs(self.call, session)
        return self._scripts[agent]

    # Lanes and sessions

    def lane_waits(self, named: int = FIRST) -> list[LaneWait]:
        """Return why the tasks that are ready wait, each cause once, what only a person can change first.

        `named`: how many tasks of each are named.
        """
        alike: dict[Cause, list[str]] = {}
        for name in self.lanes:
            alike.setdefault(self._of_lane(name).cause, []).append(name)
        found: list[LaneWait] = []
        for names in alike.values():
            reason = waiting_words.gathered([self._of_lane(name) for name in names])
            found += [self._lane_wait(reason, names, named)] if reason else []
            found += [] if reason else [self._lane_wait(self._of_lane(name), [name], named) for name in names]
        return sorted(found, key=lambda each: (not each.person, -each.count, each.lanes))

    def _lane_wait(self, reason: Reason, lanes: list[str], named: int) -> LaneWait:
        tasks: list[str] = []
        for name in lanes:
            tasks += self.call.tx.waiting_ids(name, named - len(tasks)) if len(tasks) < named else []
        count = sum(self.lanes[name].count for name in lanes)
        since = min(self.lanes[name].since for name in lanes)
        told = _fields(reason, waiting_words.sentence(reason, count), tasks[0] if count == 1 else "ID")
        return LaneWait(**told, lanes=lanes, count=count, since=since, tasks=tasks, sessions=list(reason.sessions))

    def _of_lane(self, name: str) -> Reason:
        if name not in self._lane_reasons:
            first = self.call.tx.waiting(name, FIRST) if name.startswith("s:") else []
            came_back = bool(first) and all(task.assignee is None for task in first)
            self._lane_reasons[name] = waiting.of_lane(name, self.scene, author=came_back)
        return self._lane_reasons[name]

    def now(self) -> WaitsNow:
        """Return why tasks wait in the largest lanes, and for few of them in other words: its cost is bounded."""
        largest = heapq.nsmallest(MAX_LANES_TOLD, self.lanes, key=lambda name: (-self.lanes[name].count, name))
        lanes = {name: self._of_lane(name) for name in largest}
        near: list[Task] = []
        for name in largest:
            left = MAX_TASKS_TOLD - len(near)
            near += self.call.tx.waiting(name, min(MAX_TOLD_PER_LANE, left)) if left > 0 else []
        own = self.reasons(near)
        alone = {task.id for task in near if own[task.id].cause in _OWN or own[task.id].whose is Whose.AUTHOR}
        return WaitsNow(
            {name: Told(waiting_words.sentence(reason), reason.until) for name, reason in lanes.items()},
            {name: Told(waiting_words.sentence(own[name]), own[name].until) for name in sorted(alone)},
        )

    def session_waits(self) -> list[SessionWait]:
        """Return why sessions are not at work."""
        counts = {name: lane.count for name, lane in self.lanes.items()}
        found = ((worker, self._idles(worker, counts)) for worker in self.scene.workers.values())
        return [
            SessionWait(**_fields(reason, waiting_words.idle(reason)), session=worker.session.name)
            for worker, reason in found
            if reason is not None
        ]

    def _idles(self, worker: Worker, counts: dict[str, int]) -> Reason | None:
        in_the_way = None
        if worker.stands is None and worker.next is None:
            heads = [
                task for lane in scheduling.waiting_lines(worker.session) for task in self.call.tx.waiting(lane, 1)
            ]
            first = min(heads, key=scheduling.hand_out_key, default=None)
            in_the_way = None if first is None else self._in_the_way(first)
        return waiting.of_session(worker, counts, in_the_way)


def _of_wait(wait: start_limits.Wait) -> Reason:
    return Reason(cause=wait.cause, text=redact(wait.why), until=wait.until)


def _fields(reason: Reason, text: str, task: str = "ID") -> dict[str, Any]:
    command = waiting_words.remedy(reason, task)
    return {
        "cause": reason.cause,
        "text": text,
        "until": reason.until,
        "person": reason.needs_person,
        "command": command,
    }


def of_session(call: Call, name: str) -> SessionWait | None:
    """Return why a session is not at work, None if it is."""
    return next((each for each in Look(call).session_waits() if each.session == name), None)


@verb("wait.list", "GET /api/waits", ListTasks, Waits, may=OWNER_ONLY)
def list_waits(call: Call, asked: ListTasks) -> Waits:
    """Say why nothing happens: for each task of a page of the board, for all that are ready, and for each session."""
    look = Look(call)
    found = look.reasons(page(call, asked))
    tasks = [
        TaskWait(**_fields(reason, waiting_words.sentence(reason), task), task=task) for task, reason in found.items()
    ]
    return Waits(tasks=tasks, lanes=look.lane_waits(), sessions=look.session_waits())


@verb("task.show", "GET /api/board/{id}", Nothing, TaskShown, may=PARTLY)
def show(call: Call, asked: Nothing, id: str) -> TaskShown:
    """Show one task whole, and why it waits."""
    task = find(call.tx, id)
    reason = Look(call).reasons([task]).get(id) if call.who.is_owner else None
    waits = None if reason is None else Wait(**_fields(reason, waiting_words.sentence(reason), id))
    return TaskShown.of(full(call, task), waits=waits)
