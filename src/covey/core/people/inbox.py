"""What waits for a person: one item for each thing to decide, the oldest first, what is the same together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from covey.core.permits import PUSH, SHELL, offered
from covey.core.questions import Decision, Question
from covey.core.sessions import Goal, Session, State
from covey.core.sessions import Kind as SessionKind
from covey.core.signals import Wants
from covey.values import dataclass

STUCK = (State.STALLED, State.LIMITED, State.DEAD, State.NEEDS_YOU)
"""States of a session that covey runs in which it does not get on."""


class Kind(StrEnum):
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
class Item:
    """One thing that waits for a person; items with the same key are the same thing, asked by several."""

    key: str
    kind: Kind
    cause: str = ""
    """What lies behind it: items of one kind with the same cause can be decided together. Empty: its own."""
    title: str
    text: str = ""
    session: str | None = None
    task: str | None = None
    since: float
    until: float | None = None
    """When it is decided without a person."""
    ids: tuple[str, ...] = ()
    """What a decision is sent to, one after the other."""
    sessions: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    """Who asks this, each alone, if one can be answered without the others."""
    tool: str = ""
    about: str = ""
    rule: str = ""
    """What may be allowed for good instead, so that the same kind is not asked for again."""
    allows: str = ""
    """What that rule would allow, in words."""
    choices: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    """What a person can do, the first the most usual."""


PERMISSION = (Decision.ALLOW, Decision.ALWAYS, Decision.DENY)
ANSWER = (Decision.REPLY, Decision.DENY)


def of_question(question: Question) -> Item:
    """Return an open question as an item; the same question of others has the same key."""
    permission = question.wants is Wants.PERMISSION
    offer = offered(question.tool, question.about) if permission else None
    what = (question.tool, question.about or question.text) if permission else (question.text, *question.choices)
    return Item(
        key=f"question:{digest(question.wants, *what)}",
        kind=Kind.QUESTION,
        cause="" if offer is None else f"permit:{digest(question.tool, offer.rule)}",
        title=_wish(question) if permission else "asks",
        text=question.text,
        session=question.session,
        task=question.task,
        since=question.asked,
        until=question.until,
        ids=(question.id,),
        sessions=(question.session,),
        tasks=() if question.task is None else (question.task,),
        parts=(
            Part(
                id=question.id, session=question.session, task=question.task, since=question.asked, until=question.until
            ),
        ),
        tool=question.tool,
        about=question.about,
        rule="" if offer is None else offer.rule,
        allows="" if offer is None else offer.allows,
        choices=question.choices,
        decisions=tuple(map(str, _decisions(question))),
    )


def _wish(question: Question) -> str:
    if not question.tool:
        return "asks for a permission"
    return {SHELL: "wants to run", PUSH: "wants to push to"}.get(question.tool, f"wants to use {question.tool}")


def _decisions(question: Question) -> tuple[Decision, ...]:
    if question.wants is not Wants.PERMISSION:
        return ANSWER
    return PERMISSION if question.tool else (Decision.ALLOW, Decision.DENY)  # nothing to allow for ever


def is_stuck(session: Session, asking: Iterable[str]) -> bool:
    """Say whether a session that covey runs does not get on; one whose question is listed is no news."""
    at_work = session.kind is SessionKind.RUN and session.goal is not Goal.STOPPED and session.state in STUCK
    return at_work and not (session.state is State.NEEDS_YOU and session.name in asking)


def of_session(session: Session, task: str | None, cause: str = "") -> Item:
    """Return a session that does not get on as an item; others in the same state for the same reason are the same.

    `cause`: the reason, where its words change while it stays the same.
    """
    ways = {State.LIMITED: ("start", "stop"), State.NEEDS_YOU: ("attach", "stop")}
    return Item(
        key=f"session:{session.state}:{digest(cause or session.evidence or session.name)}",
        kind=Kind.SESSION,
        title=f"is {session.state}",
        text=session.evidence or "",
        session=session.name,
        task=task,
        since=session.updated,
        until=session.until,
        ids=(session.name,),
        sessions=(session.name,),
        tasks=() if task is None else (task,),
        parts=(Part(id=session.name, session=session.name, task=task, since=session.updated, until=session.until),),
        decisions=ways.get(session.state, ("restart", "stop")),
    )


_NAMED = re.compile(r"\b[a-z]+-\d+\b|\b[0-9a-f]{7,64}\b")
"""Names of merges, gates and runs, and hashes: they differ wherever the same went wrong."""


def alike(text: str, own: str) -> str:
    """Return what went wrong without what only this task's telling has: its own id, other names, and hashes."""
    return _NAMED.sub(
        "\N{HORIZONTAL ELLIPSIS}", re.sub(rf"\b{re.escape(own)}\b", "it", text, flags=re.IGNORECASE)
    ).strip()


def cause_of(reason: str, own: str) -> str:
    """Return the cause of a blocked task, the same for all that are blocked by the same."""
    return f"blocked:{digest(alike(reason, own))}"


def digest(*parts: str) -> str:
    """Return a short text that stands for some others, and for no others."""
    whole = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def together(items: Iterable[Item]) -> list[Item]:
    """Return the items in order, the oldest first, each key once: who asked the same first stands for all."""
    found: dict[str, Item] = {}
    for item in sorted(items, key=lambda each: each.since):
        first = found.get(item.key)
        found[item.key] = item if first is None else _joined(first, item)
    return list(found.values())


def _joined(first: Item, other: Item) -> Item:
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
