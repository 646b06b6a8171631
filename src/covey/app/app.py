"""The App: every surface asks it, and it answers from the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from covey.app.context import Call, Context, Principal
from covey.app.fleet import sessions
from covey.app.fleet.heartbeats import DAEMON, of_session
from covey.app.people import ownership, proposals, session_limits
from covey.app.shapes.forms import As
from covey.app.verbs import Page, Verb
from covey.core.fleet.sessions import COVEY
from covey.core.history.retention import ANSWERS_KEPT_S
from covey.errors import CoveyError, Invalid, Reused, Unknown
from covey.hashes import blake2b
from covey.store.tx import Tx
from covey.values import dataclass

if TYPE_CHECKING:
    from covey.store.engine.sqlite import SqliteStore

PROPOSED = 202
"""The status of an answer that is a proposal: nothing is done until a person accepts it."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Answer:
    """What a verb answers: an HTTP status, JSON, and how long the whole list is."""

    status: int
    body: bytes = b""
    total: int | None = None

    def value(self) -> Any:
        """Return the answer as plain data."""
        return msgspec.json.decode(self.body) if self.body else None


@dataclass(frozen=True)
class Request:
    """What is asked of one verb, and by whom; with a `key` it is answered once, however often it comes."""

    verb: Verb
    who: Principal
    asked: Any
    params: dict[str, str]
    """What stands in its address."""
    key: str | None = None
    sent: bytes = b""
    """What it was sent as: under one key only the same may come again."""


class App:
    """Every verb over one store; it knows nothing of who carries the question."""

    def __init__(self, store: SqliteStore, context: Context) -> None:
        self.store = store
        self.daemon = context.has_daemon
        self.context = context
        context.read = store.read
        store.read(context.pulses.load)
        if not self.daemon:
            context.pulses.without_daemon()

    @staticmethod
    def who(tx: Tx, token: str) -> Principal:
        """Return whose token this is; the owner's is known to the surface alone."""
        session = tx.token_session(sessions.digest(token))
        if session is None:
            raise Unknown("This token is not known here.", hint="covey up --json prints the owner's token.")
        return Principal(session)

    def job(self, request: Request, seen: Any = None) -> Callable[[Tx], Answer]:
        """Return the work of a request, to be run in a transaction of the store; `seen` was looked at ahead."""
        digest = _checked(request)
        verb, who, key = request.verb, request.who, request.key
        if who.session is not None:
            self.context.pulses.hear(of_session(who.session))
            if verb.changes:
                session_limits.spend(self.context, who.session, verb, len(request.sent) or len(_encode(request.asked)))

        def run(tx: Tx) -> Answer:
            same = None if key is None else _kept(tx, who, key, digest)
            if same is not None and not verb.secret:
                return same
            tx.key = key
            call = Call(tx, who, self.context, again=same is not None, seen=seen)
            if same is not None:
                return _answer(call, request)
            try:
                answer = _answer(call, request)
            except CoveyError:
                asked = request.asked
                if isinstance(asked, As) and asked.session is not None and who.is_owner:
                    self.context.pulses.hear(of_session(asked.session))  # also a refused request is a sign of life
                raise
            if key is not None and tx.wrote:
                tx.keep_answer(who.name, key, digest, answer.status, b"" if verb.secret else answer.body)
            if verb.changes and not self.daemon:
                self.context.pulses.note(tx)
            return answer

        return run

    def ahead(self, request: Request) -> Callable[[Tx], Callable[[], Any] | None]:
        """Return what finds out, in a transaction that only reads, what has to be looked at before a request.

        Nothing before one that was answered already: a look may act.
        """
        digest = _checked(request)
        verb, who, key = request.verb, request.who, request.key

        def find(tx: Tx) -> Callable[[], Any] | None:
            is_answered = key is not None and _kept(tx, who, key, digest) is not None
            if verb.ahead is None or (is_answered and not verb.secret):
                return None
            return verb.ahead(Call(tx, who, self.context), request.asked, **request.params)

        return find

    def ask(self, request: Request) -> Answer:
        """Answer one request here and now, without a daemon."""
        look = None if request.verb.ahead is None else self.store.read(self.ahead(request))
        job = self.job(request, seen=None if look is None else look())
        try:
            if not request.verb.changes:
                return self.store.read(job)
            swept, asked_for = self.store.run([self.sweep, job])
            swept.result()
            answer: Answer = asked_for.result()
            return answer
        finally:
            if self.context.pulses.fresh and not self.daemon:
                self.store.run([self.context.pulses.note])  # a question, or a refused request, is a sign of life too

    def sweep(self, tx: Tx) -> int:
        """End what silence has ended."""
        self.context.pulses.look()
        if not self.daemon:
            self.forget(tx)
        return sessions.sweep(Call(tx, Principal(COVEY), self.context))

    def is_anything_silent(self, tx: Tx) -> bool:
        """Say whether a sweep would end something."""
        call = Call(tx, Principal(COVEY), self.context)
        return bool(sessions.silent_sessions(call) or sessions.lapsed_leases(call))

    def note_pulses(self, tx: Tx) -> None:
        """Write the signs of life to disk, the daemon's own among them."""
        self.context.pulses.hear(DAEMON)
        self.context.pulses.note(tx)

    def forget(self, tx: Tx) -> None:
        """Remove the answers whose idempotency keys have had their time."""
        tx.forget_answers(tx.now - ANSWERS_KEPT_S)


def _checked(request: Request) -> bytes:
    """Return what a request is known by when it comes again; refuse what its session may never ask."""
    if request.who.session is not None and request.verb.may.is_closed:
        raise ownership.denied(request.verb)
    key = request.key
    if key is not None and not (1 <= len(key) <= 200 and key.isascii() and key.isprintable()):
        raise Invalid("An Idempotency-Key has 1 to 200 printable ASCII characters.", hint="A UUID will do.")
    return blake2b(request.sent, digest_size=16).digest()


def _kept(tx: Tx, who: Principal, key: str, digest: bytes) -> Answer | None:
    """Return what a request was answered when it came before, None if it did not; refuse another under its key."""
    kept = tx.answered(who.name, key)
    if kept is None:
        return None
    first, status, body = kept
    if first != digest:
        raise Reused("This Idempotency-Key was used for another request.", hint="Use a new key for a new request.")
    return Answer(status, body)


def _answer(call: Call, request: Request) -> Answer:
    """Ask a verb, if the table of rights lets this caller; the rights of one asked `again` were checked before."""
    verb, asked, params = request.verb, request.asked, request.params
    beyond = None if call.again else ownership.check(call, verb, asked, params)
    if beyond is not None:
        return Answer(PROPOSED, _encode(proposals.propose(call, verb, asked, params, beyond)))
    value = verb.run(call, asked, **params)
    if value is None:
        return Answer(204)
    if isinstance(value, Page):
        return Answer(verb.status, _encode(value.rows), value.total)
    return Answer(verb.status, _encode(value))
