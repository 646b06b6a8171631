"""The verbs of leases: take, renew, give back."""

from __future__ import annotations

from covey.app import shapes
from covey.app.pulses import of_lease, of_session
from covey.app.shapes import LeaseFull
from covey.app.tasks import find
from covey.app.verbs import Call, missing, verb
from covey.core import leases
from covey.core.fold import resource_rows
from covey.core.leases import Lease
from covey.errors import Invalid
from covey.store import rows


@verb("lease.list", "GET /api/leases", shapes.ListLeases, list[LeaseFull])
def list_leases(call: Call, asked: shapes.ListLeases) -> list[LeaseFull]:
    """List the leases in force, the oldest first."""
    return [full(call, lease) for lease in call.tx.live_leases(asked.session)]


@verb("lease.take", "POST /api/leases", shapes.TakeLease, LeaseFull, status=201)
def take(call: Call, asked: shapes.TakeLease) -> LeaseFull:
    """Take a lease; it is refused while another holds what it meets."""
    holder = call.actor(asked.session)
    resources = tuple(dict.fromkeys(leases.resource(text) for text in asked.resources))
    if asked.task is not None:
        find(call.tx, asked.task)
    wish = leases.Taken(
        holder=holder,
        resources=resources,
        shared=asked.shared,
        ttl=call.house.config.leases.ttl if asked.ttl is None else asked.ttl,
        task=asked.task,
        reason=call.line(asked.reason, "The reason"),
    )
    near = call.tx.leases_near(resources)
    same = next((lease for lease in near if lease.holder == holder and lease.resources == resources), None)
    if same is not None and same.shared == wish.shared:
        _hear(call, same)
        return full(call, same)
    leases.take(wish, near, lambda lease: (_until(call, lease) or call.tx.now) - call.tx.now)
    call.worker(holder)
    seq = call.tx.next_seq
    lease = leases.first(f"lease-{seq}", seq, wish, call.tx.now)
    call.tx.insert(rows.LEASES, lease)
    for resource in resource_rows(lease):
        call.tx.insert(rows.LEASE_RESOURCES, resource)
    call.tx.append(holder, lease.id, wish, lease)
    _hear(call, lease)
    return full(call, lease)


@verb("lease.renew", "POST /api/leases/{id}/renew", shapes.Held, LeaseFull)
def renew(call: Call, asked: shapes.Held, id: str) -> LeaseFull:
    """Renew a lease for another time to live."""
    lease = _held(call, id, asked)
    _hear(call, lease)
    call.tx.wrote = True
    return full(call, lease)


@verb("lease.give", "POST /api/leases/{id}/give", shapes.Held, LeaseFull)
def give(call: Call, asked: shapes.Held, id: str) -> LeaseFull:
    """Give a lease back; the owner may end anyone's."""
    lease = _held(call, id, asked)
    actor = call.actor(asked.session)
    return full(call, end(call, lease, leases.Given(actor), actor))


def end(call: Call, lease: Lease, event: leases.Event, actor: str) -> Lease:
    """Write a lease as it is after its end, and the event."""
    after = leases.apply(lease, event, call.tx.now)
    call.tx.update(rows.LEASES, lease, after)
    for resource in lease.resources:
        call.tx.delete(rows.LEASE_RESOURCES, lease.id, resource)
    call.tx.append(actor, lease.id, event, after)
    call.tx.drop_pulse(of_lease(lease.id))
    call.house.pulses.forget(of_lease(lease.id))
    return after


def full(call: Call, lease: Lease) -> LeaseFull:
    """Return a lease with the time at which it ends."""
    return LeaseFull.of(lease, _until(call, lease))


def _until(call: Call, lease: Lease) -> float | None:
    """Return when a live lease ends if its holder stays silent."""
    pulse = call.house.pulses.seen(of_lease(lease.id), of_session(lease.holder))
    return (pulse.seen if pulse else lease.taken) + lease.ttl if lease.state is leases.State.LIVE else None


def _held(call: Call, lease_id: str, asked: shapes.Held) -> Lease:
    lease = call.tx.get(rows.LEASES, lease_id)
    if lease is None:
        raise missing("lease", lease_id)
    actor = call.actor(asked.session)
    if not call.who.is_owner and asked.fence is None:
        raise Invalid("The fence of the lease is missing.", hint="Send the fence that taking it answered.")
    anyone = call.who.is_owner and asked.session is None
    leases.hold(lease, None if anyone else actor, asked.fence)
    if not anyone:
        call.hear(actor)
    return lease


def _hear(call: Call, lease: Lease) -> None:
    call.hear(lease.holder)
    call.house.pulses.hear(of_lease(lease.id))
