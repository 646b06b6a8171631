"""The verbs of leases: take, wait for, renew, give back."""

from __future__ import annotations

from collections.abc import Callable

from covey.app import limits
from covey.app.lines import end, enter, in_the_way, left, room, untie, until
from covey.app.pulses import of_lease
from covey.app.shapes.claims import Held
from covey.app.shapes.forms import Nothing
from covey.app.shapes.leases import LeaseFull, ListLeases, TakeLease
from covey.app.standing import look_at_leases
from covey.app.tasks import find
from covey.app.verbs import Call, missing, verb
from covey.core import leases
from covey.core.leases import BEAT, Lease, Origin, State
from covey.core.rights import OWN, OWN_ELSE_PROPOSED, SHARED
from covey.core.sessions import Kind
from covey.errors import Invalid, Refused
from covey.store.rows import decode_payload


@verb("lease.list", "GET /api/leases", ListLeases, list[LeaseFull], may=SHARED)
def list_leases(call: Call, asked: ListLeases) -> list[LeaseFull]:
    """List the leases in force, the oldest first; with `waiting`, those too that are waited for."""
    found = call.tx.open_leases(asked.session) if asked.waiting else call.tx.live_leases(asked.session)
    return [full(call, lease) for lease in found]


@verb("lease.show", "GET /api/leases/{id}", Nothing, LeaseFull, may=SHARED)
def show(call: Call, asked: Nothing, id: str) -> LeaseFull:
    """Show one lease, and what it waits for."""
    return full(call, _find(call, id))


def _look_at_paths(call: Call, asked: TakeLease) -> Callable[[], dict[str, int]] | None:
    return look_at_leases(call, asked.resources)


@verb(
    "lease.take",
    "POST /api/leases",
    TakeLease,
    LeaseFull,
    may=OWN_ELSE_PROPOSED,
    status=201,
    ahead=_look_at_paths,
)
def take(call: Call, asked: TakeLease) -> LeaseFull:
    """Take a lease; it is refused while another holds what it meets, or stands in line with `wait`."""
    wish = _wish(call, asked)
    near = call.tx.leases_near(wish.resources)
    same = next((lease for lease in near if _is_same(wish, lease)), None)
    if same is not None and (asked.wait or same.state is State.LIVE):
        _hear(call, same)
        return full(call, same)
    limits.check_leases(call)
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
        find(call.tx, asked.task)
    ttl = call.house.config.leases.ttl if asked.ttl is None else asked.ttl
    return leases.Taken(
        holder=holder,
        resources=tuple(dict.fromkeys(leases.resource(text) for text in asked.resources)),
        shared=asked.shared,
        ttl=min(asked.ttl or BEAT, BEAT) if asked.beats else ttl,
        task=asked.task or _task_of(call, holder),
        reason=call.line(asked.reason, "The reason"),
        beats=asked.beats,
        within=tuple(name for name in asked.within if _is_own(call.tx.lease(name), holder)),
    )


def _is_own(lease: Lease | None, holder: str) -> bool:
    """Say whether a lease is one under which a command of this holder can run."""
    return lease is not None and lease.holder == holder and lease.state is leases.State.LIVE


def _task_of(call: Call, holder: str) -> str | None:
    """Return the one task that a session is at work on, so that whoever meets its lease knows what it is for."""
    held = [] if call.known(holder).kind is Kind.PERSON else call.tx.held_by(holder)
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
    return full(call, end(call, lease, leases.Given(actor), actor))


def full(call: Call, lease: Lease) -> LeaseFull:
    """Return a lease with the time at which it ends, or with what it waits for."""
    met = in_the_way(call, lease) if lease.state is State.WAITING else []
    return LeaseFull.of(lease, until(call, lease), tuple(dict.fromkeys(other.id for _, _, other in met)))


def _find(call: Call, lease_id: str) -> Lease:
    lease = call.tx.lease(lease_id)
    if lease is None:
        raise missing("lease", lease_id)
    return lease


def _held(call: Call, lease_id: str, asked: Held) -> Lease:
    lease = _find(call, lease_id)
    actor = call.actor(asked.session)
    if not call.who.is_owner and asked.fence is None:
        raise Invalid("The fence of the lease is missing.", hint="Send the fence that taking it answered.")
    if lease.state is State.EXPIRED:
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
    call.house.pulses.hear(of_lease(lease.id))
