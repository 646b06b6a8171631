"""The App: every surface asks it, and it answers from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from covey.app import limits, proposals, sessions, standing
from covey.app.clock import Clock
from covey.app.pulses import DAEMON, Pulses, of_session
from covey.app.verbs import VERBS, Call, House, Page, Principal, Verb
from covey.config import Config
from covey.core.sessions import COVEY
from covey.errors import CoveyError, Invalid, Reused, Unknown
from covey.hashes import blake2b
from covey.runners.runner import Runner
from covey.store.sqlite import Job, Outcome
from covey.store.tx import Tx
from covey.values import dataclass

__all__ = ["VERBS", "Answer", "App", "Principal", "Verb"]

T = TypeVar("T")
KEPT = 24 * 3600.0
"""Seconds for which the answer to an idempotency key is kept."""
PROPOSED = 202
"""The status of an answer that is a proposal: nothing is done until a person accepts it."""

_encode = msgspec.json.Encoder().encode


class Store(Protocol):
    """Where rows and log live."""

    @property
    def place(self) -> str: ...
    def run(self, jobs: Sequence[Job[Any]]) -> list[Outcome[Any]]: ...
    def read(self, job: Callable[[Tx], T]) -> T: ...


@dataclass(frozen=True)
class Answer:
    """What a verb answers: an HTTP status, JSON, and how long the whole list is."""

    status: int
    body: bytes = b""
    total: int | None = None

    def value(self) -> Any:
        """Return the answer as plain data."""
        return msgspec.json.decode(self.body) if self.body else None


class App:
    """Every verb over one store; it knows nothing of who carries the question."""

    def __init__(
        self,
        store: Store,
        config: Config,
        clock: Clock,
        project: str,
        *,
        daemon: bool,
        secret: bytes = b"",
        runner: Runner | None = None,
    ) -> None:
        self.store = store
        self.daemon = daemon
        self.house = House(config, Pulses(clock, store.place), project, secret, runner)
        self.house.has_daemon = daemon
        store.read(self.house.pulses.load)
        if not daemon:
            self.house.pulses.without_daemon()

    def who(self, tx: Tx, token: str) -> Principal:
        """Return whose token this is; the owner's is known to the surface alone."""
        session = tx.token_session(sessions.digest(token))
        if session is None:
            raise Unknown("This token is not known here.", hint="covey up --json prints the owner's token.")
        return Principal(session)

    def job(
        self,
        verb: Verb,
        who: Principal,
        asked: Any,
        params: dict[str, str],
        *,
        key: str | None,
        request: bytes,
        seen: Any = None,
    ) -> Callable[[Tx], Answer]:
        """Return the work of one request, to be run in a transaction of the store; `seen` was looked at ahead."""
        if who.session is not None and verb.may.is_closed:
            raise standing.denied(verb)
        if who.session is not None:
            self.house.pulses.hear(of_session(who.session))
            if verb.changes:
                limits.spend(self.house, who.session, verb, len(request) or len(_encode(asked)))
        if key is not None:
            check_key(key)
            digest = blake2b(request, digest_size=16).digest()

        def run(tx: Tx) -> Answer:
            if key is not None:
                kept = tx.answered(who.name, key)
                if kept is not None:
                    same = _same(kept, digest)
                    if not verb.secret:
                        return same
                    tx.key = key
                    return _answer(verb, verb.run(Call(tx, who, self.house, again=True, seen=seen), asked, **params))
            tx.key = key
            try:
                answer = self._answer(Call(tx, who, self.house, seen=seen), verb, asked, params)
            except CoveyError:
                name = getattr(asked, "session", None)
                if name is not None and who.is_owner:
                    self.house.pulses.hear(of_session(name))  # a refused request is a sign of life too
                raise
            if key is not None and tx.wrote:
                tx.keep_answer(who.name, key, digest, answer.status, b"" if verb.secret else answer.body)
            if verb.changes and not self.daemon:
                self.house.pulses.note(tx)
            return answer

        return run

    def _answer(self, call: Call, verb: Verb, asked: Any, params: dict[str, str]) -> Answer:
        """Ask a verb, if the table of rights lets who asks."""
        beyond = standing.check(call, verb, asked, params)
        if beyond is not None:
            return Answer(PROPOSED, _encode(proposals.propose(call, verb, asked, params, beyond)))
        return _answer(verb, verb.run(call, asked, **params))

    def ahead(
        self, verb: Verb, who: Principal, asked: Any, params: dict[str, str]
    ) -> Callable[[Tx], Callable[[], Any] | None]:
        """Return what finds out, in a transaction that only reads, what has to be looked at before a request."""
        if who.session is not None and verb.may.is_closed:
            return lambda tx: None  # it will be refused
        return lambda tx: None if verb.ahead is None else verb.ahead(Call(tx, who, self.house), asked, **params)

    def ask(
        self,
        verb: Verb,
        who: Principal,
        asked: Any,
        params: dict[str, str],
        *,
        key: str | None = None,
        request: bytes = b"",
    ) -> Answer:
        """Answer one request here and now, without a daemon."""
        look = None if verb.ahead is None else self.store.read(self.ahead(verb, who, asked, params))
        job = self.job(verb, who, asked, params, key=key, request=request, seen=None if look is None else look())
        try:
            if not verb.changes:
                return self.store.read(job)
            swept, asked_for = self.store.run([self.sweep, job])
            swept.result()
            answer: Answer = asked_for.result()
            return answer
        finally:
            if self.house.pulses.fresh and not self.daemon:
                self.store.run([self.house.pulses.note])  # a question, or a refused request, is a sign of life too

    def sweep(self, tx: Tx) -> int:
        """End what silence has ended."""
        self.house.pulses.look()
        if not self.daemon:
            self.forget(tx)
        return sessions.sweep(Call(tx, Principal(COVEY), self.house))

    def is_anything_silent(self, tx: Tx) -> bool:
        """Say whether a sweep would end something."""
        call = Call(tx, Principal(COVEY), self.house)
        return bool(sessions.silent_sessions(call) or sessions.lapsed_leases(call))

    def note_pulses(self, tx: Tx) -> None:
        """Write the signs of life to disk, the daemon's own among them."""
        self.house.pulses.hear(DAEMON)
        self.house.pulses.note(tx)

    def forget(self, tx: Tx) -> None:
        """Remove the answers whose idempotency keys have had their time."""
        tx.forget_answers(tx.now - KEPT)


def check_key(key: str) -> None:
    """Refuse an idempotency key that cannot be one."""
    if not 1 <= len(key) <= 200 or not key.isascii() or not key.isprintable():
        raise Invalid("An Idempotency-Key has 1 to 200 printable ASCII characters.", hint="A UUID will do.")


def _same(kept: tuple[bytes, int, bytes], digest: bytes) -> Answer:
    request, status_code, body = kept
    if request != digest:
        raise Reused("This Idempotency-Key was used for another request.", hint="Use a new key for a new request.")
    return Answer(status_code, body)


def _answer(verb: Verb, value: Any) -> Answer:
    if value is None:
        return Answer(204)
    if isinstance(value, Page):
        return Answer(verb.status, _encode(value.rows), value.total)
    return Answer(verb.status, _encode(value))
