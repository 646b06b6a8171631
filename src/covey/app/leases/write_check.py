"""What a session is told of what it writes: before, when it commits, afterwards, and when it hands in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from covey.app.context import Call
from covey.app.leases.lease_queue import gives_way, holds, left, speaker, take_free
from covey.core.board import tasks
from covey.core.board.tasks import Task
from covey.core.fleet.sessions import COVEY, SessionKind
from covey.core.leases import leases, write_policy
from covey.core.leases.leases import Crossed, Crossing, Lease, LeaseState, Origin
from covey.core.leases.write_policy import Force, Index, Reader, Warned, Write, WriteFinding, WriteStage
from covey.errors import Invalid
from covey.values import dataclass

_ONCE_MORE = "See that the commit is there (git log -1), and hand it in once more."
MAX_LEASED_PATHS = 1024
"""Paths of one look that are leased by having been written."""
LONG_CHECK_PATHS = 100
"""Above this many paths the check runs off the event loop."""
MAX_PATHS_PER_EVENT = 1000
"""Paths of one event."""


@dataclass(frozen=True)
class Advice:
    """Why some paths may not be written, what to mind about others, and what was found."""

    deny: str | None = None
    tell: str | None = None
    findings: tuple[WriteFinding, ...] = ()

    @property
    def denied(self) -> frozenset[str]:
        """Return the paths that may not be written."""
        return frozenset(each.path for each in self.findings if each.force is Force.DENY)


def check(
    call: Call, session: str, task: Task | None, writes: Sequence[Write], at: Literal["tool", "commit"]
) -> Advice:
    """Say what writing some paths comes to, at the tool call or at the commit; nothing is changed."""
    settings = call.context.config.leases
    policy = Force(settings.tool if at == "tool" else settings.commit)
    return _advice(call, _judge(call, session, task, writes, policy), session, WriteStage(at))


def is_news(call: Call, session: str, task: Task | None, writes: Sequence[Write]) -> bool:
    """Say whether there is something to note, or to tell, of what a session has written."""
    return any(_look(call, session, task, writes))


def noticed(call: Call, session: str, task: Task | None, writes: Sequence[Write], how: str) -> Advice:
    """Note what a session has written: into what another holds, or where it is the first; return what is new of it."""
    findings, free = _look(call, session, task, writes)
    crossed: dict[str, tuple[Lease, list[str]]] = {}
    for finding in findings:
        if finding.lease is not None:
            crossed.setdefault(finding.lease.id, (finding.lease, []))[1].append(finding.path)
    for lease, paths in crossed.values():
        for start in range(0, len(paths), MAX_PATHS_PER_EVENT):
            part = tuple(paths[start : start + MAX_PATHS_PER_EVENT])
            event = Crossed(session=session, task=_name(task), paths=part, how=how)
            for crossing in leases.crossings(lease.id, event, call.tx.now):
                call.tx.insert(crossing)
            call.tx.append(COVEY, lease.id, event, lease)
    take_free(call, session, None if task is None else task.id, free, Origin.EDIT)
    step = WriteStage.COMMITTED if how in ("commit", "hand-in") else WriteStage.TOOL
    return _advice(call, findings, session, step)


def may_hold_back(call: Call, session: str, task: Task) -> bool:
    """Say whether the work of a session has to be looked at when it is handed in; a person's never has."""
    kind = call.known(session).kind
    if kind is not SessionKind.OUTSIDE:
        return kind is SessionKind.RUN
    if Force(call.context.config.leases.commit) is not Force.DENY:
        return False
    return bool(task.scope or task.do_not_touch or call.tx.has_others_leases(session))


def handing_in(call: Call, session: str, task: Task, writes: Sequence[Write] | None) -> Warned | None:
    """Note what work that is handed in changes, and say why it cannot be; without `writes`, by what was noticed.

    Where nobody could look at a commit of a session of ours, though somebody is there who can, it has to come again.
    """
    if task.kind is tasks.Kind.REPORT:
        return None  # nothing of it lands
    if writes is None:
        if call.context.commits is not None and call.known(session).kind is SessionKind.RUN:
            return _held_back(task, "git could not tell what its commit changes", Warned((), _ONCE_MORE))
        return why_held_back(call, task, None)
    findings = noticed(call, session, task, writes, "hand-in").findings
    outside = [each for each in findings if each.lease is None]
    reader = _reader(call, session, WriteStage.HAND_IN)
    told = write_policy.told(outside, partial(left, call), Force.DENY, reader)
    if told is not None:
        return _held_back(task, "it changes what it may not", told)
    return why_held_back(call, task, {write.path: write for write in writes})


def why_held_back(call: Call, task: Task, writes: Mapping[str, Write] | None) -> Warned | None:
    """Say why work cannot be handed in: it changes paths that others held when they were written, and hold still.

    `writes`: all that the work changes, by its path; None if nobody knows, and then all counts that was noticed.
    """
    policy = Force(call.context.config.leases.commit)
    crossings = call.tx.crossings(task.id)
    if policy is not Force.DENY or not crossings:
        return None
    found = _still_denied(call, task, writes, crossings)
    reader = _reader(call, task.session or "", WriteStage.HAND_IN)
    told = write_policy.told(found, partial(left, call), Force.DENY, reader)
    return None if told is None else _held_back(task, "it holds what is another's", told)


def _held_back(task: Task, why: str, told: Warned) -> Warned:
    return Warned((f"{task.id} cannot be handed in, because {why}.", *told.reasons), told.hint)


def _still_denied(
    call: Call, task: Task, writes: Mapping[str, Write] | None, crossings: Sequence[Crossing]
) -> list[WriteFinding]:
    """Return of each path that crossed a lease the first one by which it may still not land."""
    own = Index(lease for lease in call.tx.leases_of_task(task.id) if write_policy.is_in_force(lease))
    others = {name: call.tx.lease(name) for name in dict.fromkeys(crossing.lease for crossing in crossings)}
    denying = {name: lease for name, lease in others.items() if lease is not None and _denies(call, lease, task)}
    found: dict[str, WriteFinding] = {}
    for crossing in crossings:
        lease = denying.get(crossing.lease)
        if lease is None:
            continue
        there = writes is None or (crossing.path in writes and writes[crossing.path].written >= lease.taken)
        if there and not write_policy.before(lease, own.covering(crossing.path)):
            new = writes is not None and writes[crossing.path].new
            found.setdefault(crossing.path, WriteFinding(crossing.path, Force.DENY, lease, new=new))
    return list(found.values())


def _denies(call: Call, lease: Lease, task: Task) -> bool:
    """Say whether a lease that was crossed for a task stops a commit still."""
    if lease.state is not LeaseState.LIVE or lease.holder == task.session:
        return False
    soft = gives_way(call, lease) or task.overlap
    return write_policy.strength(lease, Force(call.context.config.leases.commit), gives_way=soft) is Force.DENY


def _look(
    call: Call, session: str, task: Task | None, writes: Sequence[Write]
) -> tuple[tuple[WriteFinding, ...], list[str]]:
    """Return what was found and is not noted yet, and what the session is the first to write."""
    writes = list({write.path: write for write in writes}.values())
    if len(writes) > LONG_CHECK_PATHS:
        call.tx.take_time()
    settings = call.context.config.leases
    policy = Force(settings.commit)
    found = _judge(call, session, task, writes, Force(settings.tool) if policy is Force.OFF else policy)
    crosser = leases.crosser(_name(task), session)
    known = {(crossing.lease, crossing.path) for crossing in call.tx.crossings(crosser)} if found else set()
    fresh = tuple(each for each in found if each.lease is None or (each.lease.id, each.path) not in known)
    # The task may have ended, or become another's, since somebody looked it up.
    may_hold = task is None or holds(call.tx.task(task.id), session)
    return fresh, _free(call, session, [write.path for write in writes][:MAX_LEASED_PATHS]) if may_hold else []


def _free(call: Call, session: str, paths: Sequence[str]) -> list[str]:
    """Return as resources the paths that nobody holds; who only waits for one has not begun to write it."""
    held = Index(lease for lease in call.tx.leases_over(paths) if lease.state is LeaseState.LIVE)
    found = (_resource(path) for path in paths if not held.covering(path))
    return list(dict.fromkeys(resource for resource in found if resource is not None))


def _resource(path: str) -> str | None:
    try:
        return leases.resource(write_policy.literal(path))
    except Invalid:
        return None  # a name that no pattern can hold


def _judge(
    call: Call, session: str, task: Task | None, writes: Sequence[Write], policy: Force
) -> tuple[WriteFinding, ...]:
    if policy is Force.OFF or not writes:
        return ()
    others = [each for each in call.tx.leases_over(write.path for write in writes) if each.holder != session]
    own = call.tx.leases_of(session, None if task is None else task.id) if others else []
    return tuple(write_policy.judge(writes, session, task, others, own, policy, partial(gives_way, call)))


def _advice(call: Call, findings: tuple[WriteFinding, ...], session: str, step: WriteStage) -> Advice:
    if not findings:
        return Advice()
    reader = _reader(call, session, step)
    told = (write_policy.told(findings, partial(left, call), each, reader) for each in (Force.DENY, Force.WARN))
    deny, tell = (None if each is None else each.text for each in told)
    return Advice(deny, tell, findings)


def _reader(call: Call, session: str, step: WriteStage) -> Reader:
    return Reader(step, speaker(call, session), call.context.config.target)


def _name(task: Task | None) -> str:
    return "" if task is None else task.id
