"""The limits of what one session may make; the owner and covey itself have none."""

from __future__ import annotations

from typing import TypeGuard

from covey.app.context import Call, Context
from covey.app.verbs import Verb
from covey.core.board.tasks import Task
from covey.core.fleet.sessions import COVEY
from covey.core.leases.leases import Origin
from covey.errors import TooMany
from covey.values import dataclass

DAY_S, MINUTE_S = 24 * 3600.0, 60.0
_LATER = "Wait a minute; [limits] in covey.toml says how much a session may do in one."
PATHS_A_HOOK = 16
"""Paths of a hook that count as much as another hook."""


@dataclass(frozen=True)
class Allowance:
    """What is left of a minute's worth, and when that was so."""

    left: float
    at: float


def take_from(before: Allowance | None, amount: float, per_minute: float, at: float) -> Allowance | None:
    """Return what is left after taking some, None if there is not enough; what nobody takes is back after a minute."""
    left = per_minute
    if before is not None:
        left = min(per_minute, before.left + max(at - before.at, 0.0) * per_minute / MINUTE_S)
    return Allowance(left - amount, at) if left >= amount else None


def spend(context: Context, session: str, verb: Verb, size: int) -> None:
    """Count a request of a session that changes something, or refuse it: a flood ends here, before it is written."""
    config = context.config.limits
    wanted = [("changes", 1.0, config.changes), ("kilobytes", size / 1024, config.kilobytes)]
    if verb.name == "mail.send":
        wanted.append(("messages", 1.0, config.messages))
    take(context, session, wanted)


def take(context: Context, session: str, wanted: list[tuple[str, float, int]]) -> None:
    """Count what a session does, each by its name, how much it is and how much may be in a minute, or refuse all."""
    at = context.pulses.clock.now().awake
    taken: dict[tuple[str, str], Allowance] = {}
    for what, amount, most in wanted:
        left = take_from(context.allowances.get((session, what)), amount, most, at)
        if left is None:
            raise TooMany(f"{session} may send {most:,} {what} in a minute, and has.", hint=_LATER)
        taken[session, what] = left
    context.allowances.update(taken)


def check_tasks(call: Call) -> None:
    """Refuse a session more open tasks than it may have added."""
    session, most = call.who.session, call.context.config.limits.open_tasks
    if _is_limited(session) and call.tx.count_open_added_by(session) >= most:
        hint = "covey task drop ID takes one back that nobody took."
        raise TooMany(f"{session} has added {most:,} tasks that are not done.", hint=hint)


def check_notes(call: Call, task: Task) -> None:
    """Refuse a session more notes on one task than there may be."""
    session, most = call.who.session, call.context.config.limits.notes
    if _is_limited(session) and sum(note.by == session for note in task.notes) >= most:
        raise TooMany(f"{session} has written {most:,} notes on {task.id}.", hint="Say the rest when you hand it in.")


def check_messages(call: Call) -> None:
    """Refuse a session more messages that nobody has read than it may send in a day: what nobody reads ends no mail."""
    session, most = call.who.session, call.context.config.limits.unread
    if _is_limited(session) and call.tx.count_unread_from(session, call.tx.now - DAY_S, most) >= most:
        said = f"{session} has sent {most:,} messages within a day that nobody has read."
        raise TooMany(said, hint="Wait until they are read.")


def check_leases(call: Call) -> None:
    """Refuse a session more leases at once than it may have; those that come with a task do not count."""
    session, most = call.who.session, call.context.config.leases.max_held
    if _is_limited(session) and sum(lease.origin is Origin.HAND for lease in call.tx.open_leases(session)) >= most:
        raise TooMany(f"{session} has {most:,} leases.", hint="Give some back: covey lease give ID.")


def _is_limited(session: str | None) -> TypeGuard[str]:
    return session not in (None, COVEY)
