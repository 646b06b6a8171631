"""Which tasks an agent that runs their text as a script must not be given."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from covey.app.context import Call
from covey.core.board import scheduling
from covey.core.board.tasks import Task
from covey.core.board.waiting import Cause
from covey.core.fleet.sessions import OWNER, Session
from covey.core.people.rights import is_for_a_reader, is_vouched_for


class Runs(StrEnum):
    """What of a task an agent runs as a script."""

    NOTHING = "nothing"
    """It reads, or does the same for every task."""
    TEXT = "text"
    BODY = "body"
    """The body alone."""


def runs(call: Call, session: Session) -> Runs:
    """Return what of its task the agent of a session runs as a script; one that is unknown may run its text."""
    agent = call.context.known_agent(session.agent or "")
    if agent is None:
        return Runs.TEXT
    traits = agent.traits
    if traits.fixed or not traits.script:
        return Runs.NOTHING
    return Runs.BODY if traits.bodies else Runs.TEXT


def why_no_script(call: Call, task: Task, run: Collection[Runs]) -> Cause | None:
    """Say why none may run a task of those who run this of it, None if one may.

    There has to be a script, and a person has to stand behind it.
    """
    if not run or Runs.NOTHING in run:
        return None
    if Runs.TEXT not in run and scheduling.is_without_body(task):
        return Cause.NO_BODY
    reverts = task.fence > 0 and call.tx.revert_for(task.id) is not None  # of what nobody has held, there is no merge
    if task.author == OWNER and not reverts:
        return None
    story = call.tx.words_of(task.id)
    if is_for_a_reader(story, reverts=reverts):
        return Cause.PROSE
    return None if is_vouched_for(story) else Cause.UNVOUCHED


def is_for_none(call: Call, task: Task, sessions: Collection[Session]) -> bool:
    """Say whether none of some sessions may run a task, because all of them would run its text as a script."""
    return why_no_script(call, task, {runs(call, session) for session in sessions}) is not None
