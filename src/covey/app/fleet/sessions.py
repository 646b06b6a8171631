"""The verbs of sessions, and the end of those that fell silent."""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import replace
from typing import TYPE_CHECKING

from covey import proof
from covey.app.board.task_changes import change
from covey.app.context import Call
from covey.app.costs.costs import day_of
from covey.app.fleet.heartbeats import of_session
from covey.app.history.log import event_row, for_eyes_of
from covey.app.leases.lease_queue import end_all, is_silent, strays
from covey.app.shapes.costs import spent as spent_fields
from covey.app.shapes.fleet import NewSession, SessionFull, SessionRow, Token
from covey.app.shapes.forms import Nothing
from covey.app.verbs import verb
from covey.core.board import tasks
from covey.core.costs.spending import Used
from covey.core.events import Minted
from covey.core.figures import span
from covey.core.fleet import sessions
from covey.core.fleet.sessions import COVEY, SessionKind, SessionState
from covey.core.leases import leases
from covey.core.leases.expiry import claim_ttl
from covey.core.nouns import missing
from covey.core.people import alerts
from covey.core.people.alerts import AlertKind
from covey.core.people.rights import OWNER_ONLY, PARTLY
from covey.core.texts import redact
from covey.errors import Invalid, NotFound, Refused
from covey.hashes import sha256
from covey.moments import calendar

if TYPE_CHECKING:  # the reader of rescues takes its time to import
    from covey.git.rescue.rescue import Rescued

MAX_NAMES_TRIED = 10_000


@verb("session.list", "GET /api/sessions", Nothing, list[SessionFull], may=PARTLY)
def list_sessions(call: Call, asked: Nothing) -> list[SessionFull]:
    """List the sessions with what each holds and did last; a session sees of others only what it needs."""
    used = call.tx.used_by_sessions(day_of(call.tx.now))
    return [full(call, session, used.get(session.name, Used())) for session in call.tx.known_sessions()]


@verb("session.new", "POST /api/sessions", NewSession, SessionFull, may=OWNER_ONLY, status=201)
def new(call: Call, asked: NewSession) -> SessionFull:
    """Make a session known: one from outside, or with an agent one that covey runs once it is started."""
    if asked.agent is not None:
        call.context.refresh()
        check_agent(call, asked.agent)
        must_fit(call, 1)
    wish = sessions.Registered(role=asked.role, wip=asked.wip, agent=asked.agent, permissions=asked.permissions)
    return full(call, register(call, asked.name, wish))


def register(call: Call, name: str, wish: sessions.Registered) -> sessions.Session:
    """Make a session known; one that has an agent is run by covey."""
    if name in sessions.RESERVED:
        raise Invalid(f"{name} is a name that no session can have.")
    before = call.tx.session(name)
    kind = SessionKind.OUTSIDE if wish.agent is None else SessionKind.RUN
    event = sessions.register(before, replace(wish, kind=kind))
    call.hear(name)
    return call.put_session(before, name, event)


def must_fit(call: Call, more: int) -> None:
    """Refuse sessions beyond what the settings allow."""
    most = call.context.config.sessions.max
    count = len(call.tx.run_sessions()) + more
    if count > most:
        raise Refused(
            f"That would be {count} sessions, and at most {most} are allowed.",
            hint="Take fewer, remove some (covey session list), or set sessions.max in covey.toml.",
        )


def find(call: Call, name: str) -> sessions.Session:
    """Return a session, or say that there is none."""
    session = call.tx.session(name)
    if session is not None and session.removed:
        shows = f"covey session logs {name} --runs shows its runs, and without --runs what the last one printed."
        raise NotFound(
            f"{name[:80]} was removed, {calendar('%Y-%m-%d %H:%M:%S', session.updated)}.",
            hint=shows if call.tx.last_runs(1, session=name) else "",
        )
    if session is None:
        raise missing("session", name)
    return session


def is_free(call: Call, name: str) -> bool:
    """Say whether a session may be given this name."""
    session = call.tx.session(name)
    return name not in sessions.RESERVED and (session is None or session.removed)


def fresh_names(call: Call, count: int, taken: Container[str] = ()) -> list[str]:
    """Return names for new sessions, which nobody has and which are not among those taken."""
    names = (f"worker-{number}" for number in range(1, MAX_NAMES_TRIED))
    free = (name for name in names if name not in taken and is_free(call, name))
    return [next(free) for _ in range(count)]


def check_agent(call: Call, name: str) -> None:
    """Refuse an agent that nobody has declared and that covey does not bring."""
    from covey.agents import registry  # few commands name an agent, and all of them start with this module
    from covey.agents.custom import check

    declared = call.context.config.declared()
    registry.find(name, declared)
    if name in declared:
        check(name, declared[name])


@verb("session.token", "POST /api/sessions/{name}/token", Nothing, Token, may=OWNER_ONLY, secret=True)
def token(call: Call, asked: Nothing, name: str) -> Token:
    """Mint a token with which a session speaks for itself; its older ones are worthless from then on."""
    session = find(call, name)
    secret = _secret(call, name)
    if not call.again:
        call.tx.drop_tokens(name)
        call.tx.put_token(digest(secret), name)
        call.tx.append(call.actor(None), name, Minted(), session)
    owner_token = call.context.secret.decode()
    return Token(name, secret, proof.credential(owner_token, f"session:{name}") if owner_token else "")


def _secret(call: Call, name: str) -> str:
    """Return a token that nobody can guess; under an idempotency key always the same, so that it is kept nowhere."""
    import hmac  # few commands mint a token, and all of them start with this module

    seed = os.urandom(32) if call.tx.key is None or not call.context.secret else call.tx.key.encode()
    return as_text(hmac.digest(call.context.secret or seed, name.encode() + b" " + seed, "sha256"))


def as_text(secret: bytes) -> str:
    """Return bytes that nobody can guess as a token that fits into an address."""
    import base64  # few commands make a secret, and all of them start with this module

    return base64.urlsafe_b64encode(secret).decode().rstrip("=")


def digest(secret: str) -> bytes:
    """Return the hash under which a token is known."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def row(session: sessions.Session, viewer: str | None = None) -> SessionRow:
    """Return a session as the log of changes shows it; to another session without its evidence."""
    return SessionRow.of(session, evidence=session.evidence if viewer in (None, session.name) else None)


def full(call: Call, session: sessions.Session, used: Used | None = None) -> SessionFull:
    """Return a session with what it holds, when it was heard of, what it did last, and what it used today."""
    mine = call.who.session in (None, session.name)
    if used is None and mine:
        used = call.tx.used(session=session.name, day=day_of(call.tx.now))
    held = [task.id for task in call.tx.held_by(session.name)]
    pulse = call.context.pulses.seen(of_session(session.name))
    last = call.tx.last_event(actor=session.name)
    return SessionFull.of(
        row(session, call.who.session),
        tasks=held,
        run=next((run.id for run in call.tx.open_runs(session.name)), None)
        if session.kind is SessionKind.RUN
        else None,
        seen=pulse.seen if pulse else None,
        last_action=None if last is None else event_row(for_eyes_of(call, last)),
        memory=call.context.fleet.weight(session.name) if mine else 0,
        **spent_fields(used if mine and used is not None else Used()),
    )


def silent_sessions(call: Call) -> list[tuple[sessions.Session, float]]:
    """Return the sessions whose claims have to end, each with the time to live that has passed."""
    config, pulses = call.context.config, call.context.pulses
    waited_for = {*call.tx.holders(), *call.tx.fronts()}
    lessees = call.tx.lessees()
    silent: list[tuple[sessions.Session, float]] = []
    shortest = min(config.board.claim_ttl, config.sessions.dead_after)
    for name in sorted(waited_for | lessees):
        if pulses.is_fresh(shortest, of_session(name)):
            continue  # whatever kind of session it is; most are, and each would have to be read
        session = call.known(name)
        if name not in waited_for and session.kind is not SessionKind.RUN:
            continue  # from outside, a lease lives by its own time and not by the claim's
        ttl = claim_ttl(session.kind, outside=config.board.claim_ttl, run=config.sessions.dead_after)
        if ttl is not None and pulses.expired(ttl, of_session(name)) and not _is_running(call, session):
            silent.append((session, ttl))
    return silent


def _is_running(call: Call, session: sessions.Session) -> bool:
    """Say whether a session's program is alive: it then keeps what it holds, also while no daemon hears of it."""
    if session.kind is not SessionKind.RUN:
        return False
    return any(call.context.lives(run.id) for run in call.tx.open_runs(session.name))


def lapsed_leases(call: Call) -> list[tuple[leases.Lease, leases.Expired]]:
    """Return the leases, also those that are waited for, that have to end, and why.

    Their holder was silent for their time to live, or does not hold the task that they came with.
    """
    found = call.tx.open_leases()
    if not found:
        return []
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
    fronts = leave_line(call, session.name)
    own = call.tx.open_leases(session.name) if session.kind is SessionKind.RUN else []
    end_all(call, [(lease, leases.Expired(why)) for lease in own], COVEY)
    known = call.tx.session(session.name)
    if known is not None and not known.removed and known.state is not SessionState.DEAD:
        call.put_session(known, session.name, sessions.Changed(SessionState.DEAD, why))
    if held:
        names = ", ".join(task.id for task in held)
        alert(call, AlertKind.CLAIM_EXPIRED, f"{why}, so {names} went back to the board.", session.name, held[0].id)
    return len(held) + fronts + len(own)


def leave_line(call: Call, name: str) -> int:
    """Let anyone mend what was rejected and waits for its author; return how many tasks those were."""
    fronts = call.tx.in_front_of(name)
    for task in fronts:
        change(call, task, tasks.Edited(cleared=("front",)), COVEY)
    return len(fronts)


def alert(call: Call, kind: AlertKind, message: str, session: str | None, task: str | None) -> None:
    """Raise an alert."""
    event = alerts.Raised(type=kind.value, message=redact(message), session=session, task=task)
    call.tx.begin(alerts.Alert, event, COVEY)


def note_rescued(call: Call, name: str, rescued: Rescued | None, task: str | None) -> None:
    """Write down that work was put in safety, if any was that had not been before."""
    session = call.tx.session(name)
    if session is None or rescued is None or rescued.again or not rescued.ref:
        return
    counts = rescued.counts
    files = counts.changed + counts.deleted + counts.added + counts.untracked + counts.ignored
    call.put_session(session, name, sessions.Rescued(rescued.ref, rescued.commit, rescued.why, files, task), by=COVEY)
