"""The line before each resource: who holds it, who waits for it, and whose turn it is."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from covey.app.context import Call
from covey.app.fleet.heartbeats import of_lease, of_session
from covey.app.people.mail import tell
from covey.core.board import scheduling
from covey.core.board.tasks import Status, Task
from covey.core.fleet.sessions import COVEY, SessionKind
from covey.core.leases import leases, write_policy
from covey.core.leases.leases import Expired, Given, Lease, LeaseState, Origin, Taken, Waiting
from covey.core.nouns import ResourceRow, resource_rows
from covey.core.quotes import named, names
from covey.errors import Refused

HELD = (Status.DOING, Status.REVIEW, Status.MERGING)
"""Where a task stands while the leases that came with it last."""
LONG_SCOPE_GLOBS = 20
"""Above this many globs the leases of a scope are taken off the event loop."""


class Waiter(NamedTuple):
    """Who waits, or holds others up: a session, or one command of it by the lease that it keeps alive."""

    holder: str
    lease: str = ""


Waits = dict[Waiter, list[tuple[int, list[Waiter]]]]


def enter(call: Call, wish: leases.Wish) -> Lease:
    """Write a lease that is taken, or waited for, and the event."""
    seq = call.tx.next_seq
    lease = leases.first(f"lease-{seq}", seq, wish, call.tx.now)
    call.tx.insert(lease)
    for resource in resource_rows(lease):
        call.tx.insert(resource)
    call.tx.append(wish.holder, lease.id, wish, lease)
    return lease


def end_all(call: Call, ending: Iterable[tuple[Lease, Given | Expired]], actor: str) -> list[Lease]:
    """Write leases as they are after their end, and only then grant what waited for any of them."""
    ended = [_end(call, lease, event, actor) for lease, event in ending]
    if ended:
        _call_up(call, ended)
    return ended


def _end(call: Call, lease: Lease, event: Given | Expired, actor: str) -> Lease:
    after = leases.apply(lease, event, call.tx.now)
    call.tx.put(lease, after)
    for resource in lease.resources:
        call.tx.delete(ResourceRow, lease.id, resource)
    call.tx.drop_crossings(lease.id)
    call.tx.append(actor, lease.id, event, after)
    call.tx.drop_pulse(of_lease(lease.id))
    call.context.pulses.forget(of_lease(lease.id))
    return after


def _call_up(call: Call, ended: Sequence[Lease]) -> None:
    """Grant what nothing stands in the way of any more, first come, first served."""
    freed = (resource for lease in ended for resource in lease.resources)
    for lease in call.tx.leases_near(freed):
        if lease.state is LeaseState.WAITING and not in_the_way(call, lease):
            _grant(call, lease, by_hand=any(each.origin is Origin.HAND for each in ended))


def _grant(call: Call, lease: Lease, *, by_hand: bool) -> None:
    call.tx.advance(lease, leases.Granted(), COVEY)
    # Being granted something is not a sign of life: its holder may be gone, and its time goes on.
    # A waiting command looks for itself, and whoever went on behind a task that lands needs no message.
    news = not lease.beats and (lease.origin is Origin.HAND or by_hand)
    if news and call.known(lease.holder).kind is not SessionKind.PERSON:
        text = f"{names(lease.resources)} is yours now: {lease.id} (fence {lease.fence}), for which you waited."
        if lease.origin is Origin.HAND:
            text += f" Give it back when you are done: covey lease give {lease.id}{speaker(call, lease.holder)}."
        tell(call, lease.holder, text, lease.task)


def speaker(call: Call, session: str) -> str:
    """Return the option with which a session says who it is, behind a command; "" if its token says so."""
    if not session or call.who.session == session or call.known(session).kind is not SessionKind.OUTSIDE:
        return ""
    return f" --as {session}"


def in_the_way(call: Call, lease: Lease) -> list[tuple[str, str, Lease]]:
    """Return what a lease that waits stands behind: its resource, the other's, and the other lease."""
    return leases.meets(lease, call.tx.leases_near(lease.resources), room(call))


def room(call: Call) -> leases.Room:
    """Return how many may hold each resource."""
    return leases.room_of(call.context.config.leases.capacity)


def until(call: Call, lease: Lease) -> float | None:
    """Return when a live lease ends if its holder stays silent; None if it waits, has ended, or ends with its task."""
    if lease.state is not LeaseState.LIVE or leases.is_tied(lease):
        return None
    pulse = call.context.pulses.seen(*_heard_by(lease))
    return (pulse.seen if pulse else lease.taken) + lease.ttl


def left(call: Call, lease: Lease) -> float:
    """Return how many seconds a live lease would outlast the silence of its holder."""
    return (until(call, lease) or call.tx.now) - call.tx.now


def is_silent(call: Call, lease: Lease) -> bool:
    """Say whether silence has ended a lease that is live or waits."""
    return not leases.is_tied(lease) and call.context.pulses.expired(lease.ttl, *_heard_by(lease))


def strays(call: Call, found: Sequence[Lease]) -> list[Lease]:
    """Return the leases that came with a task which their holder does not hold, or not any more."""
    tied = [lease for lease in found if leases.is_tied(lease)]
    held = call.tx.tasks_named(lease.task for lease in tied if lease.task is not None)
    return [lease for lease in tied if not holds(held.get(lease.task or ""), lease.holder)]


def holds(task: Task | None, session: str) -> bool:
    """Say whether a session holds a task, so that leases can come with it."""
    return task is not None and task.status in HELD and task.session == session


def _heard_by(lease: Lease) -> list[str]:
    own = [of_lease(lease.id)]
    return own if lease.beats else [*own, of_session(lease.holder)]


def end_by_hand(call: Call, session: str, why: str) -> None:
    """End what a session took by hand, and the places in which it waits: nobody is there any more who would."""
    own = [lease for lease in call.tx.open_leases(session) if not leases.is_tied(lease)]
    end_all(call, [(lease, Expired(why)) for lease in own], COVEY)


# What comes with a task


def follow(call: Call, before: Task, after: Task) -> None:
    """Let the leases that come with a task begin and end with it."""
    had = before.session if before.status in HELD else None
    has = after.session if after.status in HELD else None
    if had is not None and had != has:
        own = [lease for lease in _tied(call, after) if lease.holder == had]
        if own:
            over = Expired(_why_over(after))
            end_all(call, [(lease, over) for lease in own], COVEY)
    if after.status is Status.DOING and (before.scope != after.scope or (had != has and after.scope)):
        _hold_scope(call, after)


def _why_over(task: Task) -> str:
    match task.status:
        case Status.DONE:
            return f"{task.id} is done"
        case Status.DROPPED | Status.BLOCKED:
            return f"{task.id} was {task.status}"
        case _:
            return f"{task.id} went back to the board"


def _tied(call: Call, task: Task) -> list[Lease]:
    return [
        lease
        for lease in call.tx.leases_of_task(task.id)
        if leases.is_tied(lease) and lease.state in (LeaseState.LIVE, LeaseState.WAITING)
    ]


def _hold_scope(call: Call, task: Task) -> None:
    """Lease the scope of a task to who is at work on it, and let it stand in line for what others hold."""
    assert task.session is not None
    wanted = dict.fromkeys(_as_resource(glob) for glob in scheduling.scope_paths(task.scope))
    if len(wanted) > LONG_SCOPE_GLOBS:
        call.tx.take_time()
    own = [lease for lease in _tied(call, task) if lease.origin is Origin.SCOPE]
    wider = [lease for lease in own if not wanted.keys() >= set(lease.resources)]
    # Before the old ones end, so that nobody who waits comes in between.
    kept = [glob for lease in wider for glob in lease.resources if glob in wanted]
    take_free(call, task.session, task.id, kept, Origin.SCOPE)
    end_all(call, [(lease, Expired("the scope is another one")) for lease in wider], COVEY)
    missing = [glob for glob in wanted if not any(glob in lease.resources for lease in own)]
    near = call.tx.leases_near(missing)
    free: list[str] = []
    taken: list[tuple[str, str, Lease]] = []
    for glob in missing:
        wish = Taken(holder=task.session, resources=(glob,), task=task.id, origin=Origin.SCOPE)
        met = leases.meets(wish, near, room(call))
        taken += met
        if met:
            enter(call, Waiting(**wish.__dict__))
        else:
            free.append(glob)
    take_free(call, task.session, task.id, free, Origin.SCOPE)
    _tell_of_others(call, task, taken)


def _as_resource(glob: str) -> str:
    return glob if leases.is_path(glob) else f"./{glob}"


def take_free(call: Call, session: str, task: str | None, resources: Sequence[str], origin: Origin) -> None:
    """Lease to a session what nobody else holds or waits for."""
    ttl = call.context.config.leases.ttl
    for start in range(0, len(resources), leases.MAX_RESOURCES):
        part = tuple(resources[start : start + leases.MAX_RESOURCES])
        lease = enter(call, Taken(holder=session, resources=part, ttl=ttl, task=task, origin=origin))
        if not leases.is_tied(lease):
            call.context.pulses.hear(of_lease(lease.id))


def _tell_of_others(call: Call, task: Task, met: Iterable[tuple[str, str, Lease]]) -> None:
    """Tell who begins a task which parts of its scope are another's; what is handed in is nothing to wait for."""
    assert task.session is not None
    hard = [(mine, theirs, lease) for mine, theirs, lease in met if not gives_way(call, lease)]
    if not hard or call.known(task.session).kind is SessionKind.PERSON:
        return
    lines = []
    for mine, theirs, lease in hard[:5]:
        mine, theirs = named(mine), named(theirs)
        whose = f" for {lease.task}" if lease.task else ""
        waits = lease.state is LeaseState.WAITING
        if mine == theirs:
            lines.append(f"{mine} of your scope is {'waited for' if waits else 'held'} by {lease.holder}{whose}.")
        else:
            whom = f"{lease.holder} {'waits for' if waits else 'holds'}"
            lines.append(f"{mine} of your scope meets {theirs}, which {whom}{whose}.")
    me = speaker(call, task.session)
    lines.append(
        "You stand in line for it. Begin elsewhere, and ask if you cannot: "
        f'covey mail send {hard[0][2].holder} "..."{me}. covey lease check PATH{me} tells who holds a path.'
    )
    tell(call, task.session, "\n".join(lines), task.id)


def gives_way(call: Call, lease: Lease) -> bool:
    """Say whether a lease came with a task whose work is handed in, or that may overlap with others."""
    if not leases.is_tied(lease):
        return False
    task = call.tx.task(lease.task or "")
    return task is None or task.status is not Status.DOING or task.overlap


# Circles


def untie(call: Call, asker: Lease) -> None:
    """See that nobody waits in a circle now that one more waits: the youngest of one has to come again.

    It is told; if it is who asks, it is refused.
    """
    starts = [Waiter(asker.holder, name) for name in (asker.id, *asker.within, "")]
    while True:
        waits = _waits(call, starts)
        held_up = leases.stuck(waits)
        if not held_up:
            return
        waits = {who: waits[who] for who in held_up}
        rings = (leases.circle(who, waits) for who in [*starts, *sorted(waits)] if who in waits)
        ring = next(ring for ring in rings if ring)
        victim = max(range(len(ring)), key=lambda place: _youth(call, ring[place]))
        behind = ring[(victim + 1) % len(ring)]
        ending = [
            lease
            for lease in _waiting(call, ring[victim])
            if any(behind in others for _, others in _needs(call, lease, ring[victim]))
        ]
        story = _story(ring)
        if asker.id in [lease.id for lease in ending]:
            wanted = names(asker.resources)
            raise Refused(
                f"To wait for {wanted} would close a circle: {story}; yours is the youngest task in it.",
                hint=f"Commit what you have, give back what you hold ({_holdings(call, asker)}), and come again.",
            )
        end_all(call, [(lease, Expired(f"it waited in a circle: {story}")) for lease in ending], COVEY)
        for lease in ending:
            _tell_victim(call, lease, story)


def _waits(call: Call, starts: Sequence[Waiter]) -> Waits:
    """Return for whom everybody waits who can be reached from some who wait."""
    found: Waits = {}
    line = list(starts)
    for who in line:
        if who not in found:
            needs = [need for lease in _waiting(call, who) for need in _needs(call, lease, who)]
            if needs:
                found[who] = needs
                line += [other for _, others in needs for other in others]
    return found


def _waiting(call: Call, who: Waiter) -> list[Lease]:
    """Return the leases for which a session, or one command of it, stands still."""
    waiting = call.tx.leases_in(LeaseState.WAITING, who.holder)
    if who.lease:
        return [lease for lease in waiting if who.lease in (lease.id, *lease.within)]
    # What came with a task holds nobody up.
    return [lease for lease in waiting if lease.origin is Origin.HAND]


def _needs(call: Call, lease: Lease, who: Waiter) -> list[tuple[int, list[Waiter]]]:
    met: dict[str, list[Waiter]] = {}
    for mine, _, other in in_the_way(call, lease):
        met.setdefault(mine, []).append(_mover(call, other))
    return [(room(call)(mine), [other for other in others if other != who]) for mine, others in met.items()]


def _mover(call: Call, lease: Lease) -> Waiter:
    """Return who has to get on for a lease to end: its session, or a command, or nobody whom a lease could hold up."""
    by_itself = lease.beats or (leases.is_tied(lease) and gives_way(call, lease))
    return Waiter(lease.holder, lease.id if by_itself else "")


def _youth(call: Call, who: Waiter) -> tuple[float, int]:
    """Return what is largest for the youngest task; who waits without one is younger than all."""
    waiting = _waiting(call, who)
    tasks = [call.tx.task(lease.task) for lease in waiting if lease.task]
    ordinals = [task.ordinal for task in tasks or call.tx.held_by(who.holder) if task is not None]
    return max(ordinals, default=math.inf), max((lease.fence for lease in waiting), default=0)


def _story(ring: Sequence[Waiter]) -> str:
    names = [who.holder for who in ring]
    return ", ".join(f"{name} waits for {other}" for name, other in zip(names, [*names[1:], names[0]], strict=True))


def _tell_victim(call: Call, lease: Lease, story: str) -> None:
    if call.known(lease.holder).kind is SessionKind.PERSON:
        return
    quoted = " ".join(map(shlex.quote, lease.resources))
    again = f"covey lease take {quoted} --wait --timeout {write_policy.WAIT_ADVICE_S}{speaker(call, lease.holder)}"
    text = (
        f"Your place in line for {names(lease.resources)} ({lease.id}) was given up, because you waited in a "
        f"circle: {story}; yours is the youngest task in it. Commit what you have, give back what you hold "
        f"({_holdings(call, lease)}), and come again: {again}."
    )
    tell(call, lease.holder, text, lease.task)


def _holdings(call: Call, lease: Lease) -> str:
    held = sorted(call.tx.leases_in(LeaseState.LIVE, lease.holder), key=lambda each: each.origin is not Origin.HAND)
    me = speaker(call, lease.holder)
    return ", ".join(f"covey lease give {each.id}{me}" for each in held[:5])
