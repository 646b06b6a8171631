"""One verb, one name: the table from which REST, OpenAPI, the CLI's client and the documentation are made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from covey.app.shapes.forms import FORMS, Asked
from covey.core.people.rights import Rights
from covey.errors import Invalid
from covey.values import dataclass


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

    @cached_property
    def changes(self) -> bool:
        """Say whether this verb writes."""
        return self.method != "GET"

    @cached_property
    def params(self) -> list[str]:
        """Return the names in the path."""
        return re.findall(r"\{(\w+)\}", self.path)


HOMES = {
    "people.mail": "mail.send mail.inbox mail.show mail.read mail.ack",
    "costs.costs": "cost.list",
    "history.log": "log.list alert.list trail.list",
    "fleet.sessions": "session.list session.new session.token",
    "board.task_verbs": "task.list task.add task.deps task.edit task.claim task.next task.renew task.handin"
    " task.release task.block task.drop",
    "merging.review": "task.diff review.list diff.show task.conflicts",
    "people.comments": "comment.list comment.write comment.edit comment.remove comment.send",
    "people.devices": "device.list device.invite device.revoke",
    "fleet.fleet_verbs": "session.start session.stop session.pause session.resume session.restart session.remove"
    " session.logs run.list fleet.pause fleet.resume fleet.stop fleet.start batch.start batch.show batch.stop",
    "merging.reverts": "merge.revert",
    "merging.gate_tries": "gate.try gate.stop",
    "board.imports": "task.import",
    "people.proposals": "proposal.list proposal.show proposal.withdraw proposal.accept proposal.decline",
    "people.inbox": "inbox.list",
    "leases.leases": "lease.list lease.show lease.take lease.renew lease.give",
    "fleet.live": "live.show",
    "merging.merges": "merge.list merge.show merge.why merge.queue merge.approve merge.land merge.reject merge.hold"
    " merge.drop merge.retry",
    "board.moves": "task.move task.reopen task.bulk",
    "fleet.new_sessions": "session.offer session.add",
    "history.origins": "log.import log.forget log.prune",
    "overlap.overlaps": "overlap.list",
    "people.questions": "question.list question.show question.ask question.take question.answer permit.list"
    " permit.grant permit.revoke",
    "merging.queue": "queue.show queue.pause queue.resume queue.freeze queue.thaw gate.show gate.log"
    " landing.list flake.list",
    "history.transcript_entries": "session.transcript",
    "settings": "settings.show",
    "status": "status",
    "fleet.session_control": "session.why session.send session.attach session.giveback session.terminal",
    "history.timeline": "strip.list",
    "board.waiting": "wait.list task.show",
    "people.egress_rules": "push.ask",
    "history.provenance": "line.why",
    "history.cleanup": "clean.show clean.run",
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
        raise Invalid("null is not a value in a query.", hint="Leave the parameter out.")
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
