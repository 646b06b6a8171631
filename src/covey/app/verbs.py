"""One verb, one name: the table from which REST, OpenAPI, the CLI's client and the documentation are made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from covey.app.pulses import Pulses, of_session
from covey.app.shapes.forms import FORMS, Asked
from covey.config import Config
from covey.core import sessions
from covey.core.rights import Rights
from covey.core.sessions import COVEY, OWNER, RESERVED
from covey.core.texts import Text, line, prose
from covey.errors import CoveyError, Denied, Invalid
from covey.errors import missing as missing
from covey.store import rows
from covey.store.tx import Tx
from covey.values import dataclass

if TYPE_CHECKING:  # each takes its time to import, and most commands look at none of it
    from covey.core.devices import Addresses
    from covey.core.force import Write
    from covey.core.limits import Allowance
    from covey.core.live import Sight
    from covey.core.pace import Wait
    from covey.core.watch import Verdict
    from covey.git.project import Project
    from covey.runners.runner import Runner


@dataclass(frozen=True)
class Principal:
    """Who asks: the owner, maybe through a browser that joined, or one session by its own token."""

    session: str | None = None
    device: str | None = None

    @property
    def is_owner(self) -> bool:
        """Say whether this is the person in charge."""
        return self.session is None

    @property
    def name(self) -> str:
        """Return the name under which idempotency keys belong to it."""
        return OWNER if self.session is None else f"session:{self.session}"


@dataclass(frozen=True)
class Lands:
    """A commit by its whole hash, and what it would land on main."""

    commit: str
    writes: tuple[Write, ...]


def _nothing_seen() -> Sight:
    from covey.core.live import Sight  # few commands show this moment, and all of them start with this module

    return Sight()


@dataclass
class House:
    """What every verb may look at besides the store."""

    config: Config
    pulses: Pulses
    project: str
    secret: bytes = b""
    runner: Runner | None = None
    runs: Path | None = None
    """Where each run has a folder of its own, in which its transcript is kept."""
    settings: Callable[[], Config | None] = lambda: None
    """Returns the settings if they were changed since it was last asked."""
    why: Callable[[str], tuple[Verdict | None, Wait | None]] = lambda name: (None, None)
    """Returns what the watchdog thinks of a session's run, and why it does not start one; set while it watches."""
    has_daemon: bool = False
    """Whether there is a daemon that starts runs."""
    forgive: Callable[[str, str], None] = lambda agent, session: None
    """Forgets what kept an agent and a session from starting."""
    weight: Callable[[str], int] = lambda name: 0
    """Returns the bytes of memory that a session's run took when it was last weighed."""
    attach_command: Callable[[str], list[str]] = lambda run: []
    """Returns the command that shows the terminal of a run."""
    written: Callable[[str, str], Lands | None] | None = None
    """Returns what a session's commit, or ref, would land, None if git cannot tell; set while somebody can look."""
    is_used: Callable[[str], bool] = lambda run: False
    """Says whether the terminal of a run is open before a person."""
    addresses: Addresses | None = None
    """Where the page lives; None where nobody serves it."""
    repository: Project | None = None
    """Where the commits are; None where nobody can look at them."""
    sight: Callable[[], Sight] = _nothing_seen
    """Returns what only memory tells of this moment: the machine, limits, and what each run does."""
    complaint: tuple[str, float] | None = None
    """Why the settings on disk are not those that hold, and since when."""
    allowances: dict[tuple[str, str], Allowance] = field(default_factory=dict)
    """What each session may still do in this minute, by what it does."""
    stays_for: Callable[[Call], list[str]] = lambda call: []
    """Returns for whom the daemon stays; nothing where there is none."""
    no_place: str = ""
    """Why no worktree can be made, and so no run starts, until a person has done something; empty if one can."""
    broken_gate: bool = False
    """The queue waits for a gate that could not be run; whoever lets sessions work lets it be tried again."""
    gate_limits: tuple[str, ...] = ()
    """From what a gate is not kept on this machine, in sentences."""

    def refresh(self) -> None:
        """Take up settings that were changed; refuse to go on with ones that make no sense."""
        try:
            changed = self.settings()
        except CoveyError as error:
            since = self.pulses.clock.now().wall if self.complaint is None else self.complaint[1]
            self.complaint = (f"{error.message} {error.hint}".strip(), since)
            raise
        self.complaint = None
        if changed is not None:
            self.config = changed

    def lives(self, run_id: str) -> bool:
        """Say whether something of a run is alive, whoever watches it."""
        return self.runner is not None and self.runner.look(run_id).alive


@dataclass
class Call:
    """One asking of one verb: who asks, and the transaction in which it is answered."""

    tx: Tx
    who: Principal
    house: House
    again: bool = False
    seen: Any = None
    """What was looked at ahead, if this verb has that done."""
    _known: dict[str, sessions.Session] = field(default_factory=dict)

    def actor(self, asked: str | None) -> str:
        """Return for whom this is done: a session speaks only for itself, the owner for any."""
        if self.who.session is None:
            if asked in (COVEY, sessions.EVERYONE):
                raise Denied(f"Nobody can act as {asked}.")
            return asked or OWNER
        if asked not in (None, self.who.session):
            raise Denied(
                f"This token is {self.who.session}'s, and cannot act for {asked}.",
                hint="A session speaks for itself; leave the name out.",
            )
        return self.who.session

    def only_owner(self, what: str) -> None:
        """Refuse a session what only the person in charge may do."""
        if not self.who.is_owner:
            raise Denied(f"Only the owner may {what}.", hint="Ask: covey mail send owner ...")

    def hear(self, name: str) -> None:
        """Note that a session was heard of."""
        self.house.pulses.hear(of_session(name))

    def known(self, name: str) -> sessions.Session:
        """Return a session as it is, or as it would be if it acted for the first time."""
        if name in self._known:
            return self._known[name]
        session = self.tx.session(name)
        if session is not None and not session.removed:
            self._known[name] = session
            return session
        kind = sessions.Kind.PERSON if name == OWNER else sessions.Kind.OUTSIDE
        if name in RESERVED and name != OWNER:
            raise Invalid(f"{name} is a name that no session can have.")
        return sessions.first(name, self.tx.next_seq, sessions.Registered(kind=kind), self.tx.now)

    def worker(self, name: str) -> sessions.Session:
        """Return a session that acts, registering a name that is new and waking one that was taken for dead."""
        session = self.known(name)
        if name not in self._known:
            before = self.tx.session(name)
            event = sessions.register(before, session.kind, session.role, session.wip)
            session = self.put_session(before, name, event)
        elif session.kind is not sessions.Kind.RUN and session.state is sessions.State.DEAD:
            session = self.put_session(session, name, sessions.Changed(sessions.State.IDLE, "heard of again"))
        self.hear(name)
        return session

    def show_state(self, name: str, state: sessions.State, evidence: str) -> None:
        """Bring a session from outside into a state, if it is not there already."""
        session = self.known(name)
        if session.kind is not sessions.Kind.RUN and name in self._known:
            event = sessions.change(session, state, evidence)
            if event is not None:
                self.put_session(session, name, event, by=name)

    def put_session(
        self, before: sessions.Session | None, name: str, event: sessions.Event, *, by: str | None = None
    ) -> sessions.Session:
        """Write a session as it is after an event, and the event."""
        if isinstance(event, sessions.Registered):
            after = sessions.first(name, self.tx.next_seq, event, self.tx.now)
        else:
            assert before is not None
            after = sessions.apply(before, event, self.tx.now, by or self.who.session or OWNER)
        if before is None:
            self.tx.insert(rows.SESSIONS, after)
        else:
            self.tx.update(rows.SESSIONS, before, after)
        self._known[name] = after
        self.tx.append(by or self.who.session or OWNER, name, event, after)
        return after

    def prose(self, text: str, what: str) -> Text:
        """Return a long text as it is kept, or refuse it."""
        return self.tx.keep(prose(text, what))

    def line(self, text: str | None, what: str, limit: int = 2000) -> str | None:
        """Return a text of one line as it is kept, or refuse it."""
        return None if text is None else line(text, what, limit)


@dataclass(frozen=True)
class Page:
    """A page of a list, and how long the whole list is."""

    rows: list[Any]
    total: int


@dataclass(frozen=True)
class Verb:
    """One thing that can be asked: its name, its address, what it takes and what it answers."""

    name: str
    method: str
    path: str
    asked: type[Asked]
    answers: Any
    run: Callable[..., Any]
    may: Rights
    status: int = 200
    long: bool = False
    secret: bool = False
    ahead: Callable[..., Callable[[], Any] | None] | None = None
    summary: str = ""

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Any]:
        """Return what reads a body of this verb; made when it is first needed, since a command needs one of forty."""
        return msgspec.json.Decoder(self.asked)

    @property
    def changes(self) -> bool:
        """Say whether this verb writes."""
        return self.method != "GET"

    @property
    def params(self) -> list[str]:
        """Return the names in the path."""
        return re.findall(r"\{(\w+)\}", self.path)

    def fill(self, params: dict[str, str]) -> str:
        """Return the path with its names filled in."""
        return re.sub(r"\{(\w+)\}", lambda found: params[found[1]], self.path)


HOMES = {
    "mail": "mail.send mail.inbox mail.show mail.read mail.ack",
    "costs": "cost.list",
    "log": "log.list alert.list",
    "sessions": "session.list session.new session.token",
    "board": "task.list task.add task.deps task.edit task.claim task.next task.renew task.handin"
    " task.release task.block task.drop",
    "review": "task.diff review.list diff.show task.conflicts",
    "comments": "comment.list comment.write comment.edit comment.remove comment.send",
    "devices": "device.list device.invite device.revoke",
    "fleet": "session.start session.stop session.pause session.resume session.restart session.remove session.logs"
    " run.list fleet.pause fleet.resume fleet.stop fleet.start batch.start batch.show batch.stop",
    "reverts": "merge.revert",
    "gate_tries": "gate.try gate.stop",
    "imports": "task.import",
    "proposals": "proposal.list proposal.show proposal.withdraw proposal.accept proposal.decline",
    "inbox": "inbox.list",
    "leases": "lease.list lease.show lease.take lease.renew lease.give",
    "live": "live.show",
    "merges": "merge.list merge.show merge.why merge.queue merge.approve merge.land merge.reject merge.hold"
    " merge.drop merge.retry",
    "moves": "task.move task.reopen task.bulk",
    "new_sessions": "session.offer session.add",
    "origins": "log.import log.forget log.prune",
    "overlaps": "overlap.list",
    "questions": "question.list question.show question.ask question.take question.answer permit.list permit.grant"
    " permit.revoke",
    "queue": "queue.show queue.pause queue.resume queue.freeze queue.thaw gate.show gate.log landing.list flake.list",
    "readings": "session.transcript",
    "settings": "settings.show",
    "status": "status",
    "steering": "session.why session.send session.attach session.giveback session.terminal",
    "trail": "trail.list",
    "strips": "strip.list",
    "waiting": "wait.list task.show",
    "ways_out": "push.ask",
    "whence": "line.why",
}
"""Which module each verb lives in: a command without a daemon imports only the one that it asks."""


class Verbs(Mapping[str, Verb]):
    """Every verb by its name; the module that it lives in is imported when it is first needed."""

    def __init__(self) -> None:
        self._known: dict[str, Verb] = {}
        self._homes = {name: home for home, names in HOMES.items() for name in names.split()}

    def enter(self, verb: Verb) -> None:
        """Take note of a verb: its module is being imported."""
        assert verb.name in self._homes, f"{verb.name} stands in HOMES under no module"
        self._known[verb.name] = verb

    def __getitem__(self, name: str) -> Verb:
        if name not in self._known:
            import_module(f"covey.app.{self._homes[name]}")
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


VERBS = Verbs()
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def verb(
    name: str,
    address: str,
    asked: type[Asked],
    answers: Any,
    *,
    may: Rights,
    status: int = 200,
    long: bool = False,
    secret: bool = False,
    ahead: Callable[..., Callable[[], Any] | None] | None = None,
) -> Callable[[F], F]:
    """Enter a function into the table of verbs.

    `may` is its row in the table of rights, which is checked before it runs.
    A `long` one may take its time, and holds up nobody but writers. The answer of a `secret` one is never kept: asked
    again with the same idempotency key it has to find the same answer itself, and write nothing. `ahead` reads what the
    verb is asked, and returns what has to be looked at outside of the store, while nobody waits; it never refuses.
    """
    method, path = address.split(" ")

    def enter(function: F) -> F:
        summary = (function.__doc__ or "").strip().splitlines()[0]
        VERBS.enter(Verb(name, method, path, asked, answers, function, may, status, long, secret, ahead, summary))
        return function

    return enter


def fingerprint(method: str, target: str, body: bytes) -> bytes:
    """Return what makes two requests the same one, whoever carries them; `target` is the path with its query."""
    return f"{method} {target}\n".encode() + body


_AT = r" - at `\$?\.?([^`]*)`$"
_WORDS = [
    (r"Object missing required field (\S+)", r"the field \1 is missing"),
    (r"Object contains unknown field (\S+)", r"there is no field \1"),
    (r"Expected str of length >= 1$", "must not be empty"),
    (r"Expected (?:str|bytes) of length <= (\d+)", r"must have at most \1 characters"),
    (r"Expected (?:array|list) of length >= (\d+)", r"must have at least \1 entries"),
    (r"Expected (?:array|list) of length <= (\d+)", r"must have at most \1 entries"),
    (r"Expected (?:int|float) >= (-?[\d.]+?)(?:\.0)?$", r"must be at least \1"),
    (r"Expected (?:int|float) <= (-?[\d.e+]+?)(?:\.0)?$", r"must be at most \1"),
    (r"Invalid enum value (.+)", r"cannot be \1"),
    (r"Expected (.+), got (.+)", r"must be \1, not \2"),
]
_TAKEN = "--help of the command, or GET /api/openapi.json, tells what is taken."
_TYPES = {
    "object": "an object",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
}


def read_body(verb: Verb, body: bytes) -> Asked:
    """Return what a request body asks, or say in one sentence what is wrong with it."""
    asked: Asked = decode(verb.decoder, body or b"{}")
    return asked


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Return what JSON says, in which each field stands once, or say in one sentence what is wrong with it."""
    try:
        asked = decoder.decode(body)
        json.loads(body, object_pairs_hook=_each_once)
    except msgspec.ValidationError as error:
        raise Invalid(explain(str(error)), hint=_TAKEN) from None
    except (ValueError, RecursionError) as error:
        raise Invalid(f"The body is not valid JSON: {error}.", hint="Send one object, in UTF-8.") from None
    return asked


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Invalid(f"{twice[:40]!r} stands twice in the body.", hint="Name each field once.")


def read_query(verb: Verb, pairs: list[tuple[str, str]]) -> Asked:
    """Return what a query asks, or say in one sentence what is wrong with it."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise Invalid("A parameter stands twice in the query.", hint="Name each once.")
    if any(value.lower() == "null" for value in values.values()):  # msgspec would take it for one that is left out
        raise Invalid("null is no value in a query.", hint="Leave the parameter out.")
    try:
        return msgspec.convert(values, verb.asked, strict=False)
    except msgspec.ValidationError as error:
        raise Invalid(explain(str(error)), hint=_TAKEN) from None


def explain(message: str) -> str:
    """Return a validation error as one sentence about one field."""
    place = re.search(_AT, message)
    said = re.sub(_AT, "", message).replace("`", "").replace(" | null", "")  # what may be null may be left out
    form = re.search(r"matching regex '(.*)'", said)
    if form:
        said = FORMS.get(form[1].replace("\\\\", "\\"), "has another form than it must have")
    for pattern, words in _WORDS:
        said = re.sub(pattern, words, said)
    if said.startswith("must be "):
        said = re.sub(r"\b(object|str|int|float|bool|array)\b", lambda found: _TYPES[found[1]], said)
    field = place[1] if place else "The body"
    return f"{field} {said}." if said.startswith(("must", "cannot")) else f"{said[:1].upper()}{said[1:]}."
