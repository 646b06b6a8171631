"""Why nothing happens: the one cause for which a task waits, or a session idles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from covey.core.board import scheduling
from covey.core.board.tasks import WAITING, Status, Task
from covey.core.fleet.sessions import OWNER, Goal, Session, SessionKind, SessionState
from covey.values import dataclass


class Cause(StrEnum):
    """Why a task waits, or a session idles."""

    # What the board says of the task itself.
    BACKLOG = "backlog"
    NEEDS = "needs"
    PARTS = "parts"
    """The tasks that it consists of are not done."""
    REVIEW = "review"
    MERGING = "merging"
    BLOCKED = "blocked"
    SCOPE = "scope"
    """A task at work may write the same files."""
    HOT_FILE = "hot-file"
    UNVOUCHED = "unvouched"
    """Its text would be run as a script, and a session wrote that."""
    PROSE = "prose"
    """Its text would be run as a script, and covey wrote it for somebody who reads."""
    NO_BODY = "no-body"
    """Its body would be run as a script, and it has none."""
    NEXT = "next"
    BEHIND = "behind"
    """A session is free, and others come first."""

    # Nobody is there who could take it.
    NO_SESSION = "no-session"
    NO_ROLE = "no-role"
    NO_ASSIGNEE = "no-assignee"
    NO_BATCH = "no-batch"
    FOR_OWNER = "for-owner"

    # Why a session takes nothing, and so its tasks wait.
    STOPPED = "stopped"
    LEAVING = "leaving"
    NO_DAEMON = "no-daemon"
    FLEET_PAUSED = "fleet-paused"
    PAUSED = "paused"
    BUSY = "busy"
    ATTACHED = "attached"
    OUTSIDE = "outside"
    """covey does not run it: it asks for its tasks itself."""
    BACKOFF = "backoff"
    PROVIDER = "provider"
    """Its agent's provider takes no requests."""
    CONCURRENCY = "concurrency"
    """Its agent's provider bears no more runs at once."""
    MEMORY = "memory"
    STAGGER = "stagger"
    BUDGET = "budget"
    SHARE = "share"
    """What is left of a budget is set aside for runs at work."""
    IN_REVIEW = "in-review"
    PLACE = "place"
    """No worktree can be made."""
    ANSWER = "answer"
    """A person has not answered a question yet."""
    OTHER = "other"
    NOTHING = "nothing"
    FOR_OTHERS = "for-others"


PERSON = frozenset((Cause.NO_ROLE, Cause.NO_ASSIGNEE, Cause.NO_BATCH, Cause.STOPPED, Cause.PAUSED, Cause.NO_DAEMON))
"""What only a person can change, and what no other part of the inbox tells."""
_TRANSIENT = (Cause.BUSY, Cause.STAGGER)
_SOONEST_FIRST = (
    Cause.BUSY,
    Cause.STAGGER,
    Cause.CONCURRENCY,
    Cause.SHARE,
    Cause.BACKOFF,
    Cause.MEMORY,
    Cause.PROVIDER,
    Cause.BUDGET,
    Cause.IN_REVIEW,
    Cause.ANSWER,
    Cause.UNVOUCHED,
    Cause.PROSE,
    Cause.NO_BODY,
    Cause.PLACE,
    Cause.OTHER,
    Cause.ATTACHED,
    Cause.PAUSED,
    Cause.FLEET_PAUSED,
    Cause.NO_DAEMON,
    Cause.OUTSIDE,
    Cause.STOPPED,
    Cause.LEAVING,
)
"""Of several sessions that take nothing, the cause of the one that is likely to be free first is told."""


class Whose(StrEnum):
    """For whom a task waits."""

    ANYONE = "anyone"
    ASSIGNEE = "assignee"
    AUTHOR = "author"
    ROLE = "role"
    BATCH = "batch"


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A cause with its values: for whom, by which sessions and tasks, what was said of it, and until when."""

    cause: Cause
    whose: Whose = Whose.ANYONE
    name: str = ""
    """The session, role or batch that a task is for; or the file that is hot."""
    names: tuple[str, ...] = ()
    """Several of them, where they are told together."""
    sessions: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    """Those of the tasks that are blocked."""
    in_review: tuple[str, ...] = ()
    """Those of the tasks that wait for a review."""
    text: str = ""
    """What a provider, a budget or a program said."""
    until: float | None = None
    """When it is over by itself, in seconds since 1970, if that is known."""
    count: int = 0
    asks: bool = False
    """Its sessions take nothing by themselves: covey does not run them."""

    @property
    def needs_person(self) -> bool:
        """Say whether only a person can change it, and nothing else in the inbox tells of it."""
        return self.cause in PERSON


@dataclass(frozen=True)
class Worker:
    """A session as the scheduler sees it: why it takes nothing now, None if it may, and what it would take then."""

    session: Session
    stands: Reason | None
    next: str | None = None
    holds: bool = False
    """It is at work on a task already."""
    runs: bool = False
    """Its program is at work, which it also is where no daemon looks after it."""

    @property
    def works_on(self) -> bool:
        """Say whether its program goes on, whatever it is that keeps another from being started."""
        cause = None if self.stands is None else self.stands.cause
        return cause is Cause.BUSY or (self.runs and cause is Cause.NO_DAEMON)


@dataclass(frozen=True)
class Scene:
    """All sessions, and from which lanes each is served."""

    workers: Mapping[str, Worker]
    serving: Mapping[str, Sequence[Worker]]
    nexts: Mapping[str, tuple[str, ...]]
    """Which sessions would take a task next, by the ids of the tasks."""


def scene(workers: Iterable[Worker]) -> Scene:
    """Return the scene of some sessions; one from outside that fell silent counts only if it is asked for by name."""
    found = {worker.session.name: worker for worker in workers if worker.session.kind is not SessionKind.PERSON}
    serving: dict[str, list[Worker]] = {}
    nexts: dict[str, tuple[str, ...]] = {}
    for name, worker in found.items():
        own, *shared = scheduling.waiting_lines(worker.session)
        is_silent = worker.session.kind is SessionKind.OUTSIDE and worker.session.state is SessionState.DEAD
        for lane in (own, *(() if is_silent else shared)):
            serving.setdefault(lane, []).append(worker)
        if worker.stands is None and worker.next is not None:
            nexts[worker.next] = (*nexts.get(worker.next, ()), name)
    return Scene(found, serving, nexts)


# Sessions


@dataclass(frozen=True, kw_only=True)
class Around:
    """What holds for all sessions."""

    daemon: bool
    paused: bool
    now: float


def of_worker(
    session: Session, around: Around, *, held: tuple[str, ...], runs: bool, wait: Reason | None
) -> Reason | None:
    """Say why a session takes no other task now, None if it may.

    `held`: the tasks that it is at work on; `runs`: whether its program does; `wait`: why none is started.
    """
    mine = (session.name,)
    if session.kind is not SessionKind.RUN:
        full = session.wip is not None and len(held) >= session.wip
        return Reason(cause=Cause.BUSY, sessions=mine, tasks=held) if full else None
    held_back = _held_back(session, around, held)
    if held_back is not None:
        return held_back
    if runs:
        return Reason(cause=Cause.BUSY, sessions=mine, tasks=held)
    if wait is not None:
        return replace(wait, sessions=mine, tasks=held)
    if held and session.until is not None and session.until > around.now:
        text = session.evidence or ""
        return Reason(cause=Cause.BACKOFF, sessions=mine, tasks=held, until=session.until, text=text)
    return Reason(cause=Cause.BUSY, sessions=mine, tasks=held) if held else None


def _held_back(session: Session, around: Around, held: tuple[str, ...]) -> Reason | None:
    """Say what a person, or a missing daemon, keeps a session of ours from, whatever it is at."""
    mine = (session.name,)
    if session.goal in (Goal.STOPPED, Goal.REMOVED):
        return Reason(cause=Cause.STOPPED if session.goal is Goal.STOPPED else Cause.LEAVING, sessions=mine)
    if not around.daemon:
        return Reason(cause=Cause.NO_DAEMON, sessions=mine, tasks=held)
    if around.paused or session.goal is Goal.PAUSED:
        return Reason(cause=Cause.FLEET_PAUSED if around.paused else Cause.PAUSED, sessions=mine, tasks=held)
    if session.attached is not None:
        return Reason(cause=Cause.ATTACHED, sessions=mine, tasks=held, name=session.attached)
    return None


def of_session(worker: Worker, waiting: Mapping[str, int], in_the_way: Reason | None = None) -> Reason | None:
    """Say why a session is not at work, None if it is.

    `waiting`: how many tasks are ready, by lane; `in_the_way`: why it takes none of those that it could.
    """
    stands = worker.stands
    if (worker.holds and worker.session.kind is not SessionKind.RUN) or worker.works_on:
        return None
    if stands is not None and (stands.tasks or stands.cause not in _NEED_A_TASK):
        return stands
    total = sum(waiting.values())
    own = sum(waiting.get(lane, 0) for lane in scheduling.waiting_lines(worker.session))
    if not own:
        batch = worker.session.batch or ""
        return Reason(cause=Cause.FOR_OTHERS if total else Cause.NOTHING, count=total, name=batch)
    if stands is not None:
        return stands
    if worker.next is None:
        return in_the_way or Reason(cause=Cause.NOTHING)
    outside = worker.session.kind is not SessionKind.RUN
    return Reason(cause=Cause.OUTSIDE if outside else Cause.NEXT, tasks=(worker.next,), sessions=(worker.session.name,))


_NEED_A_TASK = frozenset(
    (
        Cause.BACKOFF,
        Cause.PROVIDER,
        Cause.CONCURRENCY,
        Cause.MEMORY,
        Cause.STAGGER,
        Cause.BUDGET,
        Cause.SHARE,
        Cause.IN_REVIEW,
        Cause.PLACE,
        Cause.OTHER,
    )
)
"""What keeps a session from starting, and so matters only where there is something to start on."""


# Tasks


def of_lane(lane: str, scene: Scene, *, author: bool = False) -> Reason:
    """Say why the tasks of a lane wait, as far as that is the same for all of them."""
    whose, name = _whose(lane, author=author)
    workers = scene.serving.get(lane, ())
    if whose in (Whose.ASSIGNEE, Whose.AUTHOR) and name == OWNER:
        return Reason(cause=Cause.FOR_OWNER, whose=whose, name=name)
    if not workers:
        of_runs = [worker for worker in scene.workers.values() if worker.session.batch and whose is Whose.ANYONE]
        return Reason(cause=_NOBODY_FOR[whose], whose=whose, name=name, sessions=_names(of_runs))
    own = [worker for worker in workers if worker.session.kind is SessionKind.RUN]
    free = [worker for worker in own if worker.stands is None]
    if free:
        return Reason(cause=Cause.BEHIND, whose=whose, name=name, sessions=_names(free))
    standing = [(_SOONEST_FIRST.index(worker.stands.cause), worker) for worker in own if worker.stands is not None]
    outside = [worker for worker in workers if worker.session.kind is not SessionKind.RUN]
    first = min((place for place, _ in standing), default=len(_SOONEST_FIRST))
    if outside and first > _SOONEST_FIRST.index(Cause.OUTSIDE):
        return _of_outside(outside, whose, name)
    return _of_standing([worker for place, worker in standing if place == first], whose, name)


def _of_standing(same: Sequence[Worker], whose: Whose, name: str) -> Reason:
    """Return what workers that stand for the same cause stand for, with the tasks of all of them."""
    stands = same[0].stands
    assert stands is not None
    return replace(stands, whose=whose, name=stands.name or name, sessions=_names(same), tasks=_tasks(same))


def _of_outside(outside: Sequence[Worker], whose: Whose, name: str) -> Reason:
    full = [worker for worker in outside if worker.stands is not None]
    if len(full) < len(outside):
        free = [worker for worker in outside if worker.stands is None]
        return Reason(cause=Cause.OUTSIDE, whose=whose, name=name, sessions=_names(free))
    return Reason(cause=Cause.BUSY, whose=whose, name=name, sessions=_names(full), tasks=_tasks(full))


def _names(workers: Iterable[Worker]) -> tuple[str, ...]:
    return tuple(worker.session.name for worker in workers)


def _tasks(workers: Iterable[Worker]) -> tuple[str, ...]:
    return tuple(task for worker in workers if worker.stands is not None for task in worker.stands.tasks)


_NOBODY_FOR = {
    Whose.ANYONE: Cause.NO_SESSION,
    Whose.ASSIGNEE: Cause.NO_ASSIGNEE,
    Whose.AUTHOR: Cause.NO_ASSIGNEE,
    Whose.ROLE: Cause.NO_ROLE,
    Whose.BATCH: Cause.NO_BATCH,
}


def _whose(lane: str, *, author: bool) -> tuple[Whose, str]:
    kind, _, name = lane.partition(":")
    if kind == "s":
        return (Whose.AUTHOR if author else Whose.ASSIGNEE), name
    return {"r": Whose.ROLE, "b": Whose.BATCH}.get(kind, Whose.ANYONE), name


def of_task(
    task: Task,
    scene: Scene,
    *,
    unmet: Callable[[Task], Mapping[str, Status | None]],
    in_the_way: Callable[[Task], Reason | None],
) -> Reason | None:
    """Say why a task is not at work or through, None if it is.

    `unmet` names the tasks that have to end before it, with how they stand; `in_the_way` is why it would be passed
    over in its lane.
    """
    if task.status not in WAITING:
        return _of_begun(task, scene)
    if not task.ready:
        return _of_unmet(Cause.NEEDS if task.unmet else Cause.PARTS, unmet(task))
    if task.status is Status.BACKLOG:
        return Reason(cause=Cause.BACKLOG)
    if takers := scene.nexts.get(task.id):
        own = tuple(name for name in takers if scene.workers[name].session.kind is SessionKind.RUN)
        others = tuple(name for name in takers if name not in own)
        return Reason(cause=Cause.NEXT, sessions=(*own, *others), asks=not own)
    lane = of_lane(scheduling.waiting_line(task), scene, author=task.assignee is None and task.front is not None)
    is_passing = lane.cause in (*_TRANSIENT, Cause.BEHIND, Cause.OUTSIDE)
    return (in_the_way(task) if is_passing else None) or lane


def _of_begun(task: Task, scene: Scene) -> Reason | None:
    """Say why a task that waits in no line is not at work or through."""
    match task.status:
        case Status.BLOCKED:
            return Reason(cause=Cause.BLOCKED, text=task.reason or "")
        case Status.REVIEW:
            return Reason(cause=Cause.REVIEW)
        case Status.MERGING:
            return Reason(cause=Cause.MERGING)
        case Status.DOING:
            return _of_held(task, scene)
        case _:
            return None


def _of_unmet(cause: Cause, unmet: Mapping[str, Status | None]) -> Reason:
    blocked = tuple(name for name, status in unmet.items() if status is Status.BLOCKED)
    in_review = tuple(name for name, status in unmet.items() if status is Status.REVIEW)
    return Reason(cause=cause, tasks=tuple(unmet), blocked=blocked, in_review=in_review)


def _of_held(task: Task, scene: Scene) -> Reason | None:
    holder = None if task.session is None else scene.workers.get(task.session)
    stands = None if holder is None else holder.stands
    if holder is None or stands is None or holder.works_on:
        return None
    return replace(stands, whose=Whose.AUTHOR, name=task.session or "")
