"""The verbs of the log's care that have to go through the one writer: take in another origin or forget it, prune."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from covey.app.context import Call
from covey.app.shapes.forms import Asked, Nothing
from covey.app.verbs import verb
from covey.core.events import FIRST, Event, Forgotten, Imported, Line, Pruned, follow
from covey.core.people.rights import OWNER_ONLY
from covey.errors import Invalid, NotFound, Refused
from covey.store.engine.pruning import prune as prune_texts
from covey.store.tx import Tx

Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
LogId = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$")]
_Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class OriginEvent(Asked, frozen=True, kw_only=True):
    """An event of another origin: `data` as the text that it is, and `withheld` if something of it was left out."""

    seq: Annotated[int, Meta(ge=1, le=2**53)]
    time: Annotated[float, Meta(ge=0, le=1e11)]
    actor: _Word
    kind: Annotated[str, Meta(max_length=64, pattern=r"^[a-z_]+\.[a-z_]+$")]
    subject: _Word
    data: Annotated[str, Meta(min_length=2, max_length=1_000_000)]
    key: _Word | None
    prev: Hash
    hash: Hash
    withheld: bool = False


class ImportOrigin(Asked, frozen=True, kw_only=True):
    """A part of another origin's log, from where ours of it ends; `more` says that further parts follow."""

    log: LogId
    events: Annotated[list[OriginEvent], Meta(max_length=2000)]
    more: bool = False


class ForgetOrigin(Asked, frozen=True, kw_only=True):
    """Which imported log is to be forgotten."""

    log: LogId


class Origin(Struct, frozen=True, kw_only=True):
    """An imported log: its last event, that event's hash, and how many events are new by this import."""

    log: str
    seq: int
    hash: str
    events: int


@verb("log.import", "POST /api/log/import", ImportOrigin, Origin, may=OWNER_ONLY, long=True)
def import_origin(call: Call, asked: ImportOrigin) -> Origin:
    """Take events of another origin in, beside this log and never mixed with it."""
    tx = call.tx
    if asked.log == tx.head.log:
        raise Refused(f"{asked.log} is this project's own log.")
    known = tx.end_of_origin(asked.log)
    if known is None and not asked.events:
        raise Invalid("An import of a log that is not known here begins with its events.")
    seq, link = known or (0, FIRST)
    for given in asked.events:
        line = _line(given)
        follow(asked.log, line, seq, link)
        tx.add_to_origin(asked.log, line)
        seq, link = line.event.seq, line.hash
    if asked.events:
        tx.put_origin(asked.log, seq, link)
    news = seq - _told(tx, asked.log)
    if news > 0 and not asked.more:
        tx.append(call.actor(None), asked.log, Imported(asked.log, news))
    return Origin(log=asked.log, seq=seq, hash=link.hex(), events=max(news, 0))


def _line(given: OriginEvent) -> Line:
    try:
        msgspec.json.decode(given.data, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(f"The data of event {given.seq} is no JSON object: {error}.") from None
    event = Event(
        given.seq, given.time, given.actor, given.kind, given.subject, given.data, given.key, bytes.fromhex(given.prev)
    )
    return Line(event, bytes.fromhex(given.hash), ("something",) if given.withheld else ())


def _told(tx: Tx, log: str) -> int:
    """Return how many events of an origin this log says that were imported: an import that broke off said nothing."""
    told = 0
    for event in tx.events(subject=log, limit=-1):
        if event.kind == "log.imported":
            told += msgspec.json.decode(event.data, type=Imported).events
        elif event.kind == "log.forgotten":
            told = 0
    return told


@verb("log.forget", "POST /api/log/forget", ForgetOrigin, Forgotten, may=OWNER_ONLY, long=True)
def forget_origin(call: Call, asked: ForgetOrigin) -> Forgotten:
    """Remove an imported log with all its events, so that it can be taken in anew; never this project's own."""
    tx = call.tx
    if asked.log == tx.head.log:
        raise Refused(f"{asked.log} is this project's own log, which is always kept whole.")
    if tx.end_of_origin(asked.log) is None:
        raise NotFound(f"There is no imported log {asked.log}.", hint="covey log import takes it in.")
    forgotten = Forgotten(asked.log, tx.drop_origin(asked.log))
    tx.append(call.actor(None), asked.log, forgotten)
    return forgotten


@verb("log.prune", "POST /api/log/prune", Nothing, Pruned, may=OWNER_ONLY, long=True)
def prune(call: Call, asked: Nothing) -> Pruned:
    """Remove long texts of ended tasks and old mail whose time is over; ask until none is left."""
    keep = call.context.config.log
    return prune_texts(call.tx, keep_days=keep.keep_days, keep_megabytes=keep.keep_megabytes) or Pruned(0, 0)
