"""The verbs of leases: take, wait for, renew, give back."""

from __future__ import annotations

from covey.app.context import Call, find
from covey.app.fleet.heartbeats import of_lease
from covey.app.leases.lease_queue import end_all, enter, in_the_way, left, room, untie, until
from covey.app.people import session_limits
from covey.app.people.ownership import look_at_leases
from covey.app.shapes.board import Held
from covey.app.shapes.forms import Nothing
from covey.app.shapes.leases import LeaseFull, ListLeases, TakeLease
from covey.app.verbs import verb
from covey.core.board.tasks import Status, Task
from covey.core.fleet.sessions import OWNER, SessionKind
from covey.core.leases import leases
from covey.core.leases.leases import RENEW_WITHIN_S, Lease, LeaseState, Origin
from covey.core.people.rights import OWN, OWN_ELSE_PROPOSED, SHARED
from covey.errors import Invalid, Refused
from covey.store.engine.rows import decode_payload


@verb("lease.list", "GET /api/leases", ListLeases, list[LeaseFull], may=SHARED)
def list_leases(call: Call, asked: ListLeases) -> list[LeaseFull]:
    """List the leases in force, the oldest first; with `waiting`, those too that are waited for."""
    found = call.tx.open_leases(asked.session) if asked.waiting else call.tx.leases_in(LeaseState.LIVE, asked.session)
    return [full(call, lease) for lease in found]


@verb("lease.show", "GET /api/leases/{id}", Nothing, LeaseFull, may=SHARED)
def show(call: Call, asked: Nothing, id: str) -> LeaseFull:
    """Show one lease, and what it waits for."""
    return full(call, call.find(Lease, id))


@verb("lease.take", "POST /api/leases", TakeLease, LeaseFull, may=OWN_ELSE_PROPOSED, status=201, ahead=look_at_leases)
def take(call: Call, asked: TakeLease) -> LeaseFull:
    """Take a lease; it is refused while another holds what it meets, or stands in line with `wait`."""
    wish = _wish(call, asked)
    near = call.tx.leases_near(wish.resources)
    same = next((lease for lease in near if _is_same(wish, lease)), None)
    if same is not None and (asked.wait or same.state is LeaseState.LIVE):
        _hear(call, same)
        return full(call, same)
    session_limits.check_leases(call)
    if asked.wait and leases.meets(wish, near, room(call)):
        lease = _wait(call, leases.Waiting(**wish.__dict__))
    else:
        leases.take(wish, near, lambda lease: left(call, lease), room(call))
        call.worker(wish.holder)
        lease = enter(call, wish)
    _hear(call, lease)
    return full(call, lease)


def _wish(call: Call, asked: TakeLease) -> leases.Taken:
    holder = call.actor(asked.session)
    if asked.task is not None:
        _check_task(find(call.tx, asked.task), holder)
    ttl = call.context.config.leases.ttl if asked.ttl is None else asked.ttl
    return leases.Taken(
        holder=holder,
        resources=tuple(dict.fromkeys(leases.resource(text) for text in asked.resources)),
        shared=asked.shared,
        ttl=min(asked.ttl or RENEW_WITHIN_S, RENEW_WITHIN_S) if asked.beats else ttl,
        task=asked.task or _task_of(call, holder),
        reason=call.line(asked.reason, "The reason"),
        beats=asked.beats,
        within=tuple(name for name in asked.within if _is_own(call.tx.lease(name), holder)),
    )


def _check_task(task: Task, holder: str) -> None:
    """Refuse a lease that a session would hold for what another is at work on; the owner may name any task."""
    if holder == OWNER or task.status is not Status.DOING or task.session == holder:
        return
    raise Refused(
        f"{task.id} is held by {task.session}, so {holder} can hold nothing for it.",
        hint=f"Name a task of {holder}, or leave the task out.",
    )


def _is_own(lease: Lease | None, holder: str) -> bool:
    """Say whether a lease is one under which a command of this holder can run."""
    return lease is not None and lease.holder == holder and lease.state is leases.LeaseState.LIVE


def _task_of(call: Call, holder: str) -> str | None:
    """Return the one task that a session is at work on, so that whoever meets its lease knows what it is for."""
    held = [] if call.known(holder).kind is SessionKind.PERSON else call.tx.held_by(holder)
    return held[0].id if len(held) == 1 else None


def _is_same(wish: leases.Taken, lease: Lease) -> bool:
    """Say whether this was taken, or is waited for, already; what lives by its own signs of life never is."""
    if wish.beats or lease.beats or lease.origin is not Origin.HAND:
        return False
    return (lease.holder, lease.resources, lease.shared) == (wish.holder, wish.resources, wish.shared)


def _wait(call: Call, wish: leases.Waiting) -> Lease:
    """Stand in line; nobody may come to wait in a circle by that."""
    call.worker(wish.holder)
    entered = enter(call, wish)
    untie(call, entered)
    return call.tx.lease(entered.id) or entered


@verb("lease.renew", "POST /api/leases/{id}/renew", Held, LeaseFull, may=OWN)
def renew(call: Call, asked: Held, id: str) -> LeaseFull:
    """Renew a lease, or a place in line, for another time to live."""
    lease = _held(call, id, asked)
    _hear(call, lease)
    call.tx.wrote = True
    return full(call, lease)


@verb("lease.give", "POST /api/leases/{id}/give", Held, LeaseFull, may=OWN)
def give(call: Call, asked: Held, id: str) -> LeaseFull:
    """Give a lease, or a place in line, back; the owner may end anyone's."""
    lease = _held(call, id, asked)
    actor = call.actor(asked.session)
    return full(call, end_all(call, [(lease, leases.Given(actor))], actor)[0])


def full(call: Call, lease: Lease) -> LeaseFull:
    """Return a lease with the time at which it ends, or with what it waits for."""
    met = in_the_way(call, lease) if lease.state is LeaseState.WAITING else []
    behind = tuple(dict.fromkeys(other.id for _, _, other in met))
    return LeaseFull.of(lease, until=until(call, lease), behind=behind)


def _held(call: Call, lease_id: str, asked: Held) -> Lease:
    lease = call.find(Lease, lease_id)
    actor = call.actor(asked.session)
    if not call.who.is_owner and asked.fence is None:
        raise Invalid("The fence of the lease is missing.", hint="Send the fence that taking it answered.")
    if lease.state is LeaseState.EXPIRED:
        why = _why_expired(call, lease)
        raise Refused(f"{lease.id} has ended: it was expired ({why}).", hint="Take the lease again.")
    anyone = call.who.is_owner and asked.session is None
    leases.hold(lease, None if anyone else actor, asked.fence)
    if not anyone:
        call.hear(actor)
    return lease


def _why_expired(call: Call, lease: Lease) -> str:
    told = call.tx.events(kind="lease.expired", subject=lease.id, limit=1, newest=True)
    event = decode_payload(told[0].kind, told[0].data) if told else None
    return event.why if isinstance(event, leases.Expired) else "nobody knows why"


def _hear(call: Call, lease: Lease) -> None:
    call.hear(lease.holder)
    call.context.pulses.hear(of_lease(lease.id))
