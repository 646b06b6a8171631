"""Why nothing happens: the one cause for which a task waits, or a session idles, and how that is said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from covey.core import scheduling
from covey.core.sessions import OWNER, Goal, Kind, Session, State
from covey.core.tasks import Status, Task
from covey.values import dataclass

NAMED = 3
"""Sessions or tasks that a sentence names; of more it tells how many there are."""


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
_ORDER = (
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
    found = {worker.session.name: worker for worker in workers if worker.session.kind is not Kind.PERSON}
    serving: dict[str, list[Worker]] = {}
    nexts: dict[str, tuple[str, ...]] = {}
    for name, worker in found.items():
        own, *shared = scheduling.lanes(worker.session)
        is_silent = worker.session.kind is Kind.OUTSIDE and worker.session.state is State.DEAD
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
    if session.kind is not Kind.RUN:
        full = session.wip is not None and len(held) >= session.wip
        return Reason(cause=Cause.BUSY, sessions=mine, tasks=held) if full else None
    if session.goal in (Goal.STOPPED, Goal.REMOVED):
        return Reason(cause=Cause.STOPPED if session.goal is Goal.STOPPED else Cause.LEAVING, sessions=mine)
    if not around.daemon:
        return Reason(cause=Cause.NO_DAEMON, sessions=mine, tasks=held)
    if around.paused or session.goal is Goal.PAUSED:
        return Reason(cause=Cause.FLEET_PAUSED if around.paused else Cause.PAUSED, sessions=mine, tasks=held)
    if session.attached is not None:
        return Reason(cause=Cause.ATTACHED, sessions=mine, tasks=held, name=session.attached)
    if runs:
        return Reason(cause=Cause.BUSY, sessions=mine, tasks=held)
    if wait is not None:
        return replace(wait, sessions=mine, tasks=held)
    if held and session.until is not None and session.until > around.now:
        text = session.evidence or ""
        return Reason(cause=Cause.BACKOFF, sessions=mine, tasks=held, until=session.until, text=text)
    return Reason(cause=Cause.BUSY, sessions=mine, tasks=held) if held else None


def of_session(worker: Worker, waiting: Mapping[str, int], in_the_way: Reason | None = None) -> Reason | None:
    """Say why a session is not at work, None if it is.

    `waiting`: how many tasks are ready, by lane; `in_the_way`: why it takes none of those that it could.
    """
    stands = worker.stands
    if (worker.holds and worker.session.kind is not Kind.RUN) or worker.works_on:
        return None
    if stands is not None and (stands.tasks or stands.cause not in _NEED_A_TASK):
        return stands
    total = sum(waiting.values())
    own = sum(waiting.get(lane, 0) for lane in scheduling.lanes(worker.session))
    if not own:
        batch = worker.session.batch or ""
        return Reason(cause=Cause.FOR_OTHERS if total else Cause.NOTHING, count=total, name=batch)
    if stands is not None:
        return stands
    if worker.next is None:
        return in_the_way or Reason(cause=Cause.NOTHING)
    outside = worker.session.kind is not Kind.RUN
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
        return Reason(cause=_NOBODY[whose], whose=whose, name=name, sessions=_names(of_runs))
    own = [worker for worker in workers if worker.session.kind is Kind.RUN]
    free = [worker for worker in own if worker.stands is None]
    if free:
        return Reason(cause=Cause.BEHIND, whose=whose, name=name, sessions=_names(free))
    standing = [(_ORDER.index(worker.stands.cause), worker) for worker in own if worker.stands is not None]
    outside = [worker for worker in workers if worker.session.kind is not Kind.RUN]
    first = min((place for place, _ in standing), default=len(_ORDER))
    if outside and first > _ORDER.index(Cause.OUTSIDE):
        return _of_outside(outside, whose, name)
    same = [worker for place, worker in standing if place == first]
    stands = same[0].stands
    assert stands is not None
    tasks = tuple(task for worker in same if worker.stands is not None for task in worker.stands.tasks)
    return replace(stands, whose=whose, name=stands.name or name, sessions=_names(same), tasks=tasks)


def _of_outside(outside: Sequence[Worker], whose: Whose, name: str) -> Reason:
    full = [worker for worker in outside if worker.stands is not None]
    if len(full) < len(outside):
        free = [worker for worker in outside if worker.stands is None]
        return Reason(cause=Cause.OUTSIDE, whose=whose, name=name, sessions=_names(free))
    tasks = tuple(task for worker in full if worker.stands is not None for task in worker.stands.tasks)
    return Reason(cause=Cause.BUSY, whose=whose, name=name, sessions=_names(full), tasks=tasks)


def _names(workers: Iterable[Worker]) -> tuple[str, ...]:
    return tuple(worker.session.name for worker in workers)


_NOBODY = {
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
    match task.status:
        case Status.DONE | Status.DROPPED:
            return None
        case Status.BLOCKED:
            return Reason(cause=Cause.BLOCKED, text=task.reason or "")
        case Status.REVIEW:
            return Reason(cause=Cause.REVIEW)
        case Status.MERGING:
            return Reason(cause=Cause.MERGING)
        case Status.DOING:
            return _of_held(task, scene)
        case Status.BACKLOG | Status.TODO:
            pass
    if not task.ready:
        return _of_unmet(Cause.NEEDS if task.unmet else Cause.PARTS, unmet(task))
    if task.status is Status.BACKLOG:
        return Reason(cause=Cause.BACKLOG)
    if takers := scene.nexts.get(task.id):
        own = tuple(name for name in takers if scene.workers[name].session.kind is Kind.RUN)
        others = tuple(name for name in takers if name not in own)
        return Reason(cause=Cause.NEXT, sessions=(*own, *others), asks=not own)
    lane = of_lane(scheduling.lane(task), scene, author=task.assignee is None and task.front is not None)
    if lane.cause in (*_TRANSIENT, Cause.BEHIND, Cause.OUTSIDE):
        return in_the_way(task) or lane
    return lane


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


# Words


def sentence(reason: Reason, count: int | None = None) -> str:
    """Return why a task waits in one sentence; with a count, why so many tasks do."""
    if reason.names and count is not None:
        return _gathered(reason, count)
    begins = _begins(reason, count)
    match reason.cause:
        case Cause.BACKLOG:
            return "It is in the backlog, so nobody takes it."
        case Cause.NEEDS:
            return f"It needs {_some(reason.tasks, 'other tasks')}{_for_you(reason)}."
        case Cause.PARTS:
            return f"It waits for its parts: {_some(reason.tasks, 'other tasks')}{_for_you(reason)}."
        case Cause.REVIEW:
            return "It waits for a review."
        case Cause.MERGING:
            return "It is in the merge queue."
        case Cause.BLOCKED:
            return reason.text or "It is blocked."
        case Cause.SCOPE:
            return f"It may write the same files as {_at_work(reason)}."
        case Cause.HOT_FILE:
            busy = _some(reason.tasks, "another task")
            return f"It is on {reason.name}, where tasks collide again and again, and {busy} is not through with it."
        case Cause.UNVOUCHED:
            return f"{_who(reason.sessions)} would run its text as a script, and a session wrote that."
        case Cause.NEXT:
            who = _who(reason.sessions, "or")
            return f"{who} gets it next, when it asks." if reason.asks else f"{who} takes it next."
        case Cause.BEHIND:
            return f"{begins}others come before it." if count is None else f"{begins}others come first."
        case Cause.NO_SESSION:
            them = "it" if count in (None, 1) else "them"
            return _sentence(begins, f"there is no session that could take {them}{_of_runs(reason)}")
        case Cause.NO_ROLE:
            return f"{begins}no session has it."
        case Cause.NO_ASSIGNEE:
            return f"{begins}there is no session {reason.name}."
        case Cause.NO_BATCH:
            return f"{begins}no session works on that batch."
        case Cause.FOR_OWNER:
            return "It is for you." if count is None else f"{_many(count)} for you."
        case Cause.NO_DAEMON | Cause.FLEET_PAUSED:
            return _sentence(begins, _predicate(reason))
        case _:
            are_named = len(reason.sessions) <= NAMED
            return _sentence(begins, f"{_who(reason.sessions)} {_predicate(reason)}", is_name=are_named)


def gathered(reasons: Sequence[Reason]) -> Reason | None:
    """Return one reason for tasks of several lanes that wait for the same thing, None if each has to be told alone.

    Where no daemon runs that is all there is to say; of roles, sessions and batches a few are told one by one.
    """
    first = reasons[0]
    if first.cause is Cause.NO_DAEMON:
        return replace(first, whose=Whose.ANYONE, name="")
    if len(reasons) <= NAMED or len({each.whose for each in reasons}) > 1:
        return None
    sessions = tuple(dict.fromkeys(name for each in reasons for name in each.sessions))
    return replace(first, sessions=sessions, names=tuple(each.name for each in reasons))


def _gathered(reason: Reason, count: int) -> str:
    """Return a sentence on tasks that are for many roles, sessions or batches."""
    noun = {Whose.ROLE: "role", Whose.BATCH: "batch"}.get(reason.whose, "session")
    nouns = "batches" if noun == "batch" else f"{noun}s"
    lacks = {
        Cause.NO_ROLE: "no session has them",
        Cause.NO_ASSIGNEE: "there are no such sessions",
        Cause.NO_BATCH: "no session works on them",
    }
    which = lacks.get(reason.cause) or f"their sessions {_predicate(reason)}"
    return f"{_many(count)} for {len(reason.names):,} {nouns} ({_some(reason.names, '')}), and {which}."


def _for_you(reason: Reason) -> str:
    """Return what is said of the tasks that somebody else's task needs, and that wait for a person."""
    told = [(reason.blocked, "blocked"), (reason.in_review, "in review")]
    if len(reason.tasks) == 1:
        return "".join(f", which is {how} and waits for you" for names, how in told if names)
    return "".join(
        f"; {_some(names, '')} {'is' if len(names) == 1 else 'are'} {how} and"
        f" {'waits' if len(names) == 1 else 'wait'} for you"
        for names, how in told
        if names
    )


def _of_runs(reason: Reason) -> str:
    """Return what is said of sessions that are there, and yet take no such task."""
    if not reason.sessions:
        return ""
    work, whose = ("work", "their") if len(reason.sessions) > 1 else ("works", "its")
    return f" ({_who(reason.sessions)} {work} only on the tasks of {whose} run)"


def _at_work(reason: Reason) -> str:
    return f"{_some(reason.tasks, 'another task')}, at which {_who(reason.sessions)} is at work"


def _sentence(begins: str, words: str, *, is_name: bool = False) -> str:
    """Return a sentence; our own words begin large, a name stays as its owner wrote it (`is_name`: it begins so)."""
    return f"{begins}{words}." if begins or is_name else f"{words[0].upper()}{words[1:]}."


def _begins(reason: Reason, count: int | None) -> str:
    """Return how a sentence begins that says for whom a task, or so many, waits."""
    if reason.whose is Whose.ANYONE:
        return "" if count is None else f"{'A task waits' if count == 1 else f'{count:,} tasks wait'}: "
    be = "It is" if count is None else _many(count)
    if reason.whose is Whose.AUTHOR:
        return f"{be} with {reason.name}, and "
    what = reason.name if reason.whose is Whose.ASSIGNEE else f"the {reason.whose} {reason.name}"
    return f"{be} for {what}, and "


def _many(count: int) -> str:
    return "A task is" if count == 1 else f"{count:,} tasks are"


def idle(reason: Reason) -> str:
    """Return why a session is not at work in one sentence about it."""
    match reason.cause:
        case Cause.NOTHING:
            return "No task waits."
        case Cause.FOR_OTHERS if reason.name:
            waits = "a task waits that is" if reason.count == 1 else f"{reason.count:,} tasks wait that are"
            return f"It works only on the tasks of its run, {reason.name}, and none of them waits; {waits} not of it."
        case Cause.FOR_OTHERS:
            are = "A task waits, and it is" if reason.count == 1 else f"{reason.count:,} tasks wait, and all are"
            return f"{are} for others."
        case Cause.NEXT:
            return f"It takes {_some(reason.tasks, 'a task')} next."
        case Cause.OUTSIDE:
            return f"It gets {_some(reason.tasks, 'a task')} when it asks: covey does not run it."
        case Cause.SCOPE | Cause.HOT_FILE | Cause.UNVOUCHED:
            return f"What waits for it has to wait: {sentence(reason)}"
        case Cause.NO_DAEMON | Cause.FLEET_PAUSED:
            return _sentence("", _predicate(reason))
        case _:
            return f"It {_predicate(replace(reason, sessions=reason.sessions[:1]))}."


def _predicate(reason: Reason) -> str:
    """Return what is said of the sessions that take nothing."""
    many = len(reason.sessions) > 1
    be = "are" if many else "is"
    match reason.cause:
        case Cause.BUSY:
            return f"{be} at work" + (f" on {_some(reason.tasks, '')}" if 0 < len(reason.tasks) <= NAMED else "")
        case Cause.STOPPED:
            return f"{be} stopped"
        case Cause.LEAVING:
            return f"{be} being removed"
        case Cause.NO_DAEMON:
            return "no daemon runs, so no session starts"
        case Cause.FLEET_PAUSED:
            return "the whole fleet is paused"
        case Cause.PAUSED:
            return f"{be} paused"
        case Cause.ATTACHED:
            return f"{be} in the hands of {_who((reason.name,)) if reason.name else 'a person'}"
        case Cause.OUTSIDE:
            return f"{'have' if many else 'has'} not asked for it: covey does not run {'them' if many else 'it'}"
        case Cause.BACKOFF:
            return f"{'wait' if many else 'waits'} before another try{_said(reason)}"
        case Cause.STAGGER:
            return f"{'start' if many else 'starts'} in a moment: starts are staggered"
        case _:
            return f"{'wait' if many else 'waits'}{_said(reason)}"


def _said(reason: Reason) -> str:
    said = " ".join(reason.text.split()).rstrip(".")
    return f": {said}" if said else ""


_START_ALL = "covey session start --all"


def remedy(reason: Reason, task: str = "ID") -> str:
    """Return the command by which a person changes it, empty if there is nothing to do but wait."""
    first = reason.sessions[0] if reason.sessions else "NAME"
    match reason.cause:
        case Cause.BACKLOG:
            return f"covey task edit {task} --status todo"
        case Cause.NO_SESSION:
            return "covey run works the board once; covey session new --start adds a session that stays"
        case Cause.NO_ROLE:
            return f"covey session new --role {reason.name} --start"
        case Cause.NO_ASSIGNEE:
            return f"covey session new {reason.name} --start; or covey task edit {task} --clear assignee"
        case Cause.NO_BATCH:
            return f"covey task edit {task} --clear batch"
        case Cause.STOPPED:
            return f"covey session start {' '.join(reason.sessions)}" if len(reason.sessions) <= NAMED else _START_ALL
        case Cause.NO_DAEMON:
            return "covey up"
        case Cause.FLEET_PAUSED:
            return "covey resume"
        case Cause.PAUSED:
            return f"covey session resume {first}"
        case Cause.OUTSIDE:
            return f"covey task next --as {first}"
        case Cause.NEXT:
            return f"covey task next --as {first}" if reason.asks else ""
        case Cause.FOR_OWNER:
            return f"covey task claim {task}"
        case Cause.BLOCKED:
            return f"covey task reopen {task}"
        case Cause.NEEDS | Cause.PARTS if reason.blocked or reason.in_review:
            return f"covey task show {(*reason.blocked, *reason.in_review)[0]}"
        case Cause.REVIEW | Cause.MERGING:
            return f"covey merge why {task}"
        case Cause.UNVOUCHED:
            return f"covey task edit {task} --assignee {first}"
        case _:
            return ""


def _who(names: Sequence[str], joined: str = "and") -> str:
    if len(names) > NAMED:
        return f"{'all' if joined == 'and' else 'one of'} {len(names):,} sessions"
    *most, last = names or ("nobody",)
    return f"{', '.join(most)} {joined} {last}" if most else last


def _some(ids: Sequence[str], otherwise: str) -> str:
    if len(ids) > NAMED:
        return f"{', '.join(ids[:NAMED])} and {len(ids) - NAMED:,} more"
    *most, last = ids or (otherwise,)
    return f"{', '.join(most)} and {last}" if most else last
