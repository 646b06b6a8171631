"""The verbs of sessions, and the end of those that fell silent."""

from __future__ import annotations

import os
from collections.abc import Container

from msgspec import structs

from covey import proof
from covey.app.changes import change
from covey.app.costs import day_of, spent, spent_by_sessions
from covey.app.lines import end_all, is_silent, strays
from covey.app.log import event_row, for_eyes_of
from covey.app.pulses import of_session
from covey.app.shapes.costs import spent as spent_fields
from covey.app.shapes.forms import Nothing
from covey.app.shapes.sessions import NewSession, SessionFull, SessionRow, Token
from covey.app.verbs import Call, missing, verb
from covey.core import alerts, leases, sessions, tasks
from covey.core.events import Minted
from covey.core.expiry import claim_ttl
from covey.core.figures import span
from covey.core.rights import OWNER_ONLY, PARTLY
from covey.core.sessions import COVEY, Kind, State
from covey.core.spending import Used
from covey.core.texts import redact
from covey.errors import Invalid, Refused
from covey.hashes import sha256
from covey.store import rows

MOST_NAMES = 10_000


@verb("session.list", "GET /api/sessions", Nothing, list[SessionFull], may=PARTLY)
def list_sessions(call: Call, asked: Nothing) -> list[SessionFull]:
    """List the sessions with what each holds and did last; a session sees of others only what it needs."""
    used = spent_by_sessions(call, day_of(call.tx.now))
    found = call.tx.find(rows.SESSIONS, "WHERE removed = 0 ORDER BY name")
    return [full(call, session, used.get(session.name, Used())) for session in found]


@verb("session.new", "POST /api/sessions", NewSession, SessionFull, may=OWNER_ONLY, status=201)
def new(call: Call, asked: NewSession) -> SessionFull:
    """Make a session known: one from outside, or with an agent one that covey runs once it is started."""
    if asked.agent is not None:
        call.house.refresh()
        check_agent(call, asked.agent)
        must_fit(call, 1)
    given = {"role": asked.role, "agent": asked.agent, "permissions": asked.permissions}
    return full(call, register(call, asked.name, wip=asked.wip, **given))


def register(
    call: Call,
    name: str,
    *,
    role: str | None = None,
    wip: int | None = None,
    agent: str | None = None,
    batch: str | None = None,
    permissions: str | None = None,
) -> sessions.Session:
    """Make a session known; one that has an agent is run by covey."""
    if name in sessions.RESERVED:
        raise Invalid(f"{name} is a name that no session can have.")
    before = call.tx.session(name)
    kind = Kind.OUTSIDE if agent is None else Kind.RUN
    event = sessions.register(before, kind, role, wip, agent=agent, batch=batch, permissions=permissions)
    call.hear(name)
    return call.put_session(before, name, event)


def must_fit(call: Call, more: int) -> None:
    """Refuse sessions beyond what the settings allow."""
    most = call.house.config.sessions.max
    count = len(call.tx.run_sessions()) + more
    if count > most:
        raise Refused(
            f"That would be {count} sessions, and at most {most} are allowed.",
            hint="Take fewer, remove some (covey session list), or set sessions.max in covey.toml.",
        )


def is_free(call: Call, name: str) -> bool:
    """Say whether a session may be given this name."""
    session = call.tx.session(name)
    return name not in sessions.RESERVED and (session is None or session.removed)


def fresh_names(call: Call, count: int, taken: Container[str] = ()) -> list[str]:
    """Return names for new sessions, which nobody has and which are not among those taken."""
    names = (f"worker-{number}" for number in range(1, MOST_NAMES))
    free = (name for name in names if name not in taken and is_free(call, name))
    return [next(free) for _ in range(count)]


def check_agent(call: Call, name: str) -> None:
    """Refuse an agent that nobody has declared and that covey does not bring."""
    from covey.agents import registry  # few commands name an agent, and all of them start with this module
    from covey.agents.declared import check

    declared = call.house.config.declared()
    registry.find(name, declared)
    if name in declared:
        check(name, declared[name])


@verb("session.token", "POST /api/sessions/{name}/token", Nothing, Token, may=OWNER_ONLY, secret=True)
def token(call: Call, asked: Nothing, name: str) -> Token:
    """Mint a token with which a session speaks for itself; its older ones are worthless from then on."""
    session = call.tx.session(name)
    if session is None or session.removed:
        raise missing("session", name)
    secret = _secret(call, name)
    if not call.again:
        call.tx.drop_tokens(name)
        call.tx.put_token(digest(secret), name)
        call.tx.append(call.actor(None), name, Minted(), session)
    owner_token = call.house.secret.decode()
    return Token(name, secret, proof.credential(owner_token, f"session:{name}") if owner_token else "")


def _secret(call: Call, name: str) -> str:
    """Return a token that nobody can guess; under an idempotency key always the same, so that it is kept nowhere."""
    import base64  # few commands mint a token, and all of them start with this module
    import hmac

    seed = os.urandom(32) if call.tx.key is None or not call.house.secret else call.tx.key.encode()
    made = hmac.digest(call.house.secret or seed, name.encode() + b" " + seed, "sha256")
    return base64.urlsafe_b64encode(made).decode().rstrip("=")


def digest(secret: str) -> bytes:
    """Return the hash under which a token is known."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def row(session: sessions.Session, viewer: str | None = None) -> SessionRow:
    """Return a session as the log of changes shows it; to another session without its evidence."""
    fields = {name: getattr(session, name) for name in SessionRow.__struct_fields__}
    return SessionRow(**fields | ({} if viewer in (None, session.name) else {"evidence": None}))


def full(call: Call, session: sessions.Session, used: Used | None = None) -> SessionFull:
    """Return a session with what it holds, when it was heard of, what it did last, and what it used today."""
    mine = call.who.session in (None, session.name)
    if used is None and mine:
        used = spent(call, session=session.name, day=day_of(call.tx.now))
    held = [task.id for task in call.tx.held_by(session.name)]
    pulse = call.house.pulses.seen(of_session(session.name))
    last = call.tx.last_event_of(session.name)
    return SessionFull(
        **structs.asdict(row(session, call.who.session)),
        tasks=held,
        run=next((run.id for run in call.tx.open_runs(session.name)), None) if session.kind is Kind.RUN else None,
        seen=pulse.seen if pulse else None,
        last_action=None if last is None else event_row(for_eyes_of(call, last)),
        memory=call.house.weight(session.name) if mine else 0,
        **spent_fields(used if mine and used is not None else Used()),
    )


def silent_sessions(call: Call) -> list[tuple[sessions.Session, float]]:
    """Return the sessions whose claims have to end, each with the time to live that has passed."""
    config, pulses = call.house.config, call.house.pulses
    waited_for = {
        *call.tx.holders(),
        *(found[0] for found in call.tx.db.rows("SELECT front FROM tasks WHERE front IS NOT NULL")),
    }
    lessees = call.tx.lessees()
    silent: list[tuple[sessions.Session, float]] = []
    shortest = min(config.board.claim_ttl, config.sessions.dead_after)
    for name in sorted(waited_for | lessees):
        if pulses.is_fresh(shortest, of_session(name)):
            continue  # whatever kind of session it is; most are, and each would have to be read
        session = call.known(name)
        if name not in waited_for and session.kind is not Kind.RUN:
            continue  # from outside, a lease lives by its own time and not by the claim's
        ttl = claim_ttl(session.kind, outside=config.board.claim_ttl, run=config.sessions.dead_after)
        if ttl is not None and pulses.expired(ttl, of_session(name)) and not _is_running(call, session):
            silent.append((session, ttl))
    return silent


def _is_running(call: Call, session: sessions.Session) -> bool:
    """Say whether a session's program is alive: it then keeps what it holds, also while no daemon hears of it."""
    if session.kind is not Kind.RUN:
        return False
    return any(call.house.lives(run.id) for run in call.tx.open_runs(session.name))


def lapsed_leases(call: Call) -> list[tuple[leases.Lease, leases.Expired]]:
    """Return the leases, also those that are waited for, that have to end, and why.

    Their holder was silent for their time to live, or does not hold the task that they came with.
    """
    found = call.tx.open_leases()
    silent = [
        (lease, leases.Expired(f"{lease.holder} was not heard of for {span(lease.ttl)}"))
        for lease in found
        if is_silent(call, lease)
    ]
    return [*silent, *((lease, leases.Expired(f"{lease.holder} left {lease.task}")) for lease in strays(call, found))]


def sweep(call: Call) -> int:
    """End what silence ends: claims, places in line and leases; return how many things ended."""
    ended = 0
    for session, ttl in silent_sessions(call):
        ended += _let_go(call, session, f"{session.name} was not heard of for {span(ttl)}")
    return ended + len(end_all(call, lapsed_leases(call), COVEY))


def _let_go(call: Call, session: sessions.Session, why: str) -> int:
    held = call.tx.held_by(session.name)
    for task in held:
        change(call, task, tasks.Released(session.name, why), COVEY)
    fronts = call.tx.in_front_of(session.name)
    for task in fronts:
        change(call, task, tasks.Edited(cleared=("front",)), COVEY)
    own = call.tx.open_leases(session.name) if session.kind is Kind.RUN else []
    end_all(call, [(lease, leases.Expired(why)) for lease in own], COVEY)
    known = call.tx.session(session.name)
    if known is not None and not known.removed and known.state is not State.DEAD:
        call.put_session(known, session.name, sessions.Changed(State.DEAD, why))
    if held:
        names = ", ".join(task.id for task in held)
        alert(call, "claim_expired", f"{why}, so {names} went back to the board.", session.name, held[0].id)
    return len(held) + len(fronts) + len(own)


def alert(call: Call, type: str, message: str, session: str | None, task: str | None) -> None:
    """Raise an alert."""
    seq = call.tx.next_seq
    event = alerts.Raised(type=type, message=redact(message), session=session, task=task)
    raised = alerts.first(f"alert-{seq}", seq, event, call.tx.now)
    call.tx.insert(rows.ALERTS, raised)
    call.tx.append(COVEY, raised.id, event, raised)
