"""The verb that tells the log in sentences."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from covey.app.context import Call
from covey.app.history.log import check_kind, check_origin, for_eyes_of
from covey.app.shapes.forms import Name, TaskId
from covey.app.shapes.history.log import ListEvents
from covey.app.verbs import verb
from covey.core.events import Event
from covey.core.history.activity import sentence
from covey.core.people.rights import PARTLY
from covey.errors import Invalid

Kinds = Annotated[str, Meta(max_length=1000)]


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
    wanted = {name: getattr(asked, name) for name in asked.__struct_fields__ if name != "kind"}
    found = [for_eyes_of(call, event) for event in call.tx.events(**wanted | {"kinds": kinds, "without": without})]
    tasks = {} if asked.origin is not None else call.tx.tasks_of({event.subject for event in found})
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


def _kinds(text: str | None) -> list[str]:
    return [kind for kind in (text or "").split(",") if kind]
