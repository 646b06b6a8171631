"""The verb that tells the log in sentences."""

from __future__ import annotations

from math import inf, nextafter
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs

from covey.app.log import check_kind, check_origin, for_eyes_of
from covey.app.shapes.forms import Name, TaskId
from covey.app.shapes.log import ListEvents
from covey.app.verbs import Call, verb
from covey.core.events import Event
from covey.core.rights import PARTLY
from covey.core.trail import sentence
from covey.errors import Invalid
from covey.store.transaction import parts
from covey.store.tx import Tx

Kinds = Annotated[str, Meta(max_length=1000)]

_COLUMNS = "seq, time, actor, kind, subject, data, key, prev"
_OF_SESSION = (
    "SELECT seq FROM events WHERE actor = ? AND {terms}",
    "SELECT seq FROM events WHERE subject = ? AND {terms}",
    "SELECT seq FROM events WHERE subject IN (SELECT id FROM runs WHERE session = ?) AND {terms}",
    "SELECT seq FROM events WHERE subject IN (SELECT id FROM merges WHERE session = ?) AND {terms}",
    "SELECT seq FROM events WHERE subject IN (SELECT id FROM questions WHERE session = ?) AND {terms}",
    "SELECT seq FROM events WHERE subject IN (SELECT id FROM leases WHERE holder = ?) AND {terms}",
)
_OF_TASK = (
    "SELECT seq FROM events WHERE subject = ? AND {terms}",
    "SELECT seq FROM events WHERE subject IN (SELECT id FROM runs WHERE task = ?) AND {terms}",
    "SELECT seq FROM events WHERE subject IN (SELECT id FROM merges WHERE task = ?) AND {terms}",
    "SELECT seq FROM events WHERE subject IN (SELECT id FROM questions WHERE task = ?) AND {terms}",
    "SELECT seq FROM events WHERE subject IN (SELECT id FROM leases WHERE task = ?) AND {terms}",
)


class ListTrail(ListEvents, frozen=True, kw_only=True):
    """A part of the log: `session` and `task` take all that has to do with one.

    `kinds` are several kinds with commas between them, `without` are those that are left out.
    """

    session: Name | None = None
    task: TaskId | None = None
    kinds: Kinds | None = None
    without: Kinds | None = None


class TrailRow(Struct, frozen=True, kw_only=True):
    """One event as a sentence, and the task that it has to do with, if it is one."""

    seq: int
    time: float
    actor: str
    kind: str
    subject: str
    text: str
    task: str | None = None


@verb("trail.list", "GET /api/trail", ListTrail, list[TrailRow], may=PARTLY)
def tell(call: Call, asked: ListTrail) -> list[TrailRow]:
    """Tell events in sentences in the order of the log, filtered; a session sees of others only what it needs."""
    kinds = [*_kinds(asked.kinds), *([asked.kind] if asked.kind else ())]
    without = _kinds(asked.without)
    for kind in (*kinds, *without):
        check_kind(kind)
    if asked.origin is not None and (asked.session is not None or asked.task is not None):
        raise Invalid("Only our own log knows what belongs to a session or a task.", hint="Ask by actor or subject.")
    check_origin(call, asked.origin)
    found = [for_eyes_of(call, event) for event in _found(call, asked, kinds, without)]
    tasks = {} if asked.origin is not None else _tasks_of(call, {event.subject for event in found})
    return [_row(event, tasks) for event in found]


def _row(event: Event, tasks: dict[str, str]) -> TrailRow:
    data = msgspec.json.decode(event.data)
    named = data.get("task")
    return TrailRow(
        seq=event.seq,
        time=event.time,
        actor=event.actor,
        kind=event.kind,
        subject=event.subject,
        text=sentence(event.kind, event.actor, event.subject, data),
        task=event.subject
        if event.kind.startswith("task.")
        else named
        if isinstance(named, str)
        else tasks.get(event.subject),
    )


def _tasks_of(call: Call, subjects: set[str]) -> dict[str, str]:
    """Return the task of each run, merge, question and lease among some subjects."""
    found: dict[str, str] = {}
    for table, noun in (("runs", "run-"), ("merges", "merge-"), ("questions", "question-"), ("leases", "lease-")):
        names = sorted(name for name in subjects if name.startswith(noun))
        for some, marks in parts(names):
            sql = f"SELECT id, task FROM {table} WHERE id IN ({marks}) AND task IS NOT NULL"
            found |= {str(name): str(task) for name, task in call.tx.db.rows(sql, tuple(some))}
    return found


def _kinds(text: str | None) -> list[str]:
    return [kind for kind in (text or "").split(",") if kind]


def _found(call: Call, asked: ListTrail, kinds: list[str], without: list[str]) -> list[Event]:
    """Return the events that fit, in the order of the log."""
    if asked.newest and asked.until is not None and asked.before is None and asked.origin is None:
        later = first_since(call.tx, nextafter(asked.until, inf))
        asked = structs.replace(asked, before=later)  # so that the way back begins there, and not at the end of the log
    terms, values = _terms(asked, kinds, without)
    for name, sources in (("session", _OF_SESSION), ("task", _OF_TASK)):
        about = getattr(asked, name)
        if about is not None:
            terms, values = _about(sources, about, terms, values)
    order = "DESC" if asked.newest else "ASC"
    table = "events" if asked.origin is None else "origin_events"
    sql = f"SELECT {_COLUMNS} FROM {table} WHERE {terms} ORDER BY seq {order} LIMIT ?"
    found = [Event(*row) for row in call.tx.db.rows(sql, (*values, asked.limit))]
    return found[::-1] if asked.newest else found


def first_since(tx: Tx, moment: float) -> int:
    """Return the number of the first event that is not before a time, found without reading those before it."""
    low, high = 1, tx.head.seq + 1
    while low < high:
        middle = (low + high) // 2
        found = tx.db.rows("SELECT time FROM events WHERE seq >= ? ORDER BY seq LIMIT 1", (middle,))
        if found and found[0][0] < moment:
            low = middle + 1
        else:
            high = middle
    return low


def _terms(asked: ListTrail, kinds: list[str], without: list[str]) -> tuple[str, list[Any]]:
    """Return what every event must fulfil."""
    pairs = (
        ("seq > ?", asked.after),
        ("seq < ?", asked.before),
        ("log = ?", asked.origin),
        ("subject = ?", asked.subject),
        ("actor = ?", asked.actor),
        ("time >= ?", asked.since),
        ("time <= ?", asked.until),
    )
    known = [(term, value) for term, value in pairs if value is not None]
    terms, values = [term for term, _ in known], [value for _, value in known]
    for names, word in ((kinds, ""), (without, "NOT ")):
        alike = ["(kind > ? AND kind < ?)" if name.endswith(".") else "kind = ?" for name in names]
        terms += [f"{word}({' OR '.join(alike)})"] if alike else []
        for name in names:
            values += (name, f"{name[:-1]}/") if name.endswith(".") else (name,)  # the slash comes after the dot
    return " AND ".join(terms), values


def _about(sources: tuple[str, ...], about: str, terms: str, values: list[Any]) -> tuple[str, list[Any]]:
    """Return the terms for what has to do with one thing: each way to it is an index of its own, and no scan."""
    ways = " UNION ".join(source.format(terms=terms) for source in sources)
    return f"seq IN ({ways})", [value for _ in sources for value in (about, *values)]
