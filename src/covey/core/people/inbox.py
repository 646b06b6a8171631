"""What waits for a person: one item for each thing to decide, the oldest first, what is the same together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Any

from covey.core.fleet.sessions import Goal, Session, SessionKind, SessionState
from covey.core.fleet.signals import Wants
from covey.core.people.permits import PUSH, SHELL, offered
from covey.core.people.questions import Decision, Question
from covey.values import dataclass

STUCK = (SessionState.STALLED, SessionState.LIMITED, SessionState.DEAD, SessionState.NEEDS_YOU)
"""States of a session that covey runs in which it does not get on."""


class InboxKind(StrEnum):
    """What an item is about."""

    QUESTION = "question"
    BLOCKED = "blocked"
    """A task that goes on only when a person has decided."""
    APPROVE = "approve"
    """A merge that waits for a person's word."""
    LANDING = "landing"
    """A merge that passed, and that main cannot take."""
    QUEUE = "queue"
    SESSION = "session"
    """A session that does not get on."""
    MAIL = "mail"
    """A message that wants an acknowledgement."""
    PROPOSAL = "proposal"
    """What a session asks a person to do for it."""
    SETTING = "setting"
    """A covey.toml that makes no sense."""
    WAITS = "waits"
    """Tasks that wait for the same thing, which only a person can change."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of several that ask the same: what a decision of it alone is sent to, and whose it is."""

    id: str
    session: str | None = None
    task: str | None = None
    since: float
    until: float | None = None


@dataclass(frozen=True, kw_only=True)
class InboxItem:
    """One thing that waits for a person; what several ask alike is one, with all their `ids` and `sessions`.

    `ids` are what a decision is sent to: questions, a task, a merge, sessions, a message; none for the queue and the
    settings. `until` is when it is decided without a person. Items of one `kind` with the same `cause`, if it is not
    empty, are of one making and can be decided together; `parts` are those who ask the same, each answered alone.
    A merge that is `untested` waits for an approval, and no review; `why` is why a merge waits, if that is known.
    """

    key: str
    kind: InboxKind
    cause: str = ""
    title: str
    text: str = ""
    untested: bool = False
    why: str = ""
    session: str | None = None
    task: str | None = None
    since: float
    until: float | None = None
    ids: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    tool: str = ""
    about: str = ""
    rule: str = ""
    """What may be allowed for good instead, so that the same kind is not asked for again."""
    allows: str = ""
    """What that rule would allow, in words."""
    choices: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    """What a person can do, the first the most usual."""


def of_question(question: Question) -> InboxItem:
    """Return an open question as an item; the same question of others has the same key."""
    permission = question.wants is Wants.PERMISSION
    offer = offered(question.tool, question.about) if permission else None
    always = (Decision.ALWAYS,) if question.tool else ()  # without a tool there is nothing to allow for ever
    decisions = (Decision.ALLOW, *always, Decision.DENY) if permission else (Decision.REPLY, Decision.DENY)
    what = (question.tool, question.about or question.text) if permission else (question.text, *question.choices)
    return InboxItem(
        **_asked_by(question.id, question.session, question.task, question.asked, question.until),
        key=f"question:{digest(question.wants, *what)}",
        kind=InboxKind.QUESTION,
        cause="" if offer is None else f"permit:{digest(question.tool, offer.rule)}",
        title=_wish(question) if permission else "asks",
        text=question.text,
        tool=question.tool,
        about=question.about,
        rule="" if offer is None else offer.rule,
        allows="" if offer is None else offer.allows,
        choices=question.choices,
        decisions=tuple(map(str, decisions)),
    )


def _asked_by(id: str, session: str, task: str | None, since: float, until: float | None) -> dict[str, Any]:
    """Return the fields of an item that say who asks, for which task and since when."""
    whose: dict[str, Any] = {"session": session, "task": task, "since": since, "until": until}
    tasks = () if task is None else (task,)
    return {**whose, "ids": (id,), "sessions": (session,), "tasks": tasks, "parts": (Part(id=id, **whose),)}


def _wish(question: Question) -> str:
    if not question.tool:
        return "asks for a permission"
    return {SHELL: "wants to run", PUSH: "wants to push to"}.get(question.tool, f"wants to use {question.tool}")


def is_stuck(session: Session, asking: Iterable[str]) -> bool:
    """Say whether a session that covey runs is stuck; one whose question is already listed does not count."""
    at_work = session.kind is SessionKind.RUN and session.goal is not Goal.STOPPED and session.state in STUCK
    return at_work and not (session.state is SessionState.NEEDS_YOU and session.name in asking)


def of_session(session: Session, task: str | None, cause: str = "") -> InboxItem:
    """Return a session that does not get on as an item; others in the same state for the same reason are the same.

    `cause`: the reason, where its words change while it stays the same.
    """
    ways = {SessionState.LIMITED: ("start", "stop"), SessionState.NEEDS_YOU: ("attach", "stop")}
    return InboxItem(
        **_asked_by(session.name, session.name, task, session.updated, session.until),
        key=f"session:{session.state}:{digest(cause or session.evidence or session.name)}",
        kind=InboxKind.SESSION,
        title=f"is {session.state}",
        text=session.evidence or "",
        decisions=ways.get(session.state, ("restart", "stop")),
    )


_PASSING_NAMES = re.compile(r"\b[a-z]+-\d+\b|\b[0-9a-f]{7,64}\b")
"""Names of merges, gates and runs, and hashes: they differ wherever the same went wrong."""


def alike(text: str, own: str) -> str:
    """Return what went wrong without what only this task's telling has: its own id, other names, and hashes."""
    return _PASSING_NAMES.sub(
        "\N{HORIZONTAL ELLIPSIS}", re.sub(rf"\b{re.escape(own)}\b", "it", text, flags=re.IGNORECASE)
    ).strip()


def cause_of(reason: str, own: str) -> str:
    """Return the cause of a blocked task, the same for all that are blocked by the same."""
    return f"blocked:{digest(alike(reason, own))}"


def digest(*parts: str) -> str:
    """Return a short text that stands for some others, and for no others."""
    whole = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def together(items: Iterable[InboxItem]) -> list[InboxItem]:
    """Return the items in order, the oldest first, each key once: who asked the same first stands for all."""
    found: dict[str, InboxItem] = {}
    for item in sorted(items, key=lambda each: each.since):
        first = found.get(item.key)
        found[item.key] = item if first is None else _joined(first, item)
    return list(found.values())


def _joined(first: InboxItem, other: InboxItem) -> InboxItem:
    ends = [each.until for each in (first, other) if each.until is not None]
    return replace(
        first,
        ids=_once(first.ids, other.ids),
        sessions=_once(first.sessions, other.sessions),
        tasks=_once(first.tasks, other.tasks),
        parts=(*first.parts, *other.parts),
        until=min(ends, default=None),
    )


def _once(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))
