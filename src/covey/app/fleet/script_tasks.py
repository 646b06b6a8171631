"""Which tasks an agent that runs their text as a script must not be given."""

from __future__ import annotations

from collections.abc import Collection

from covey.app.context import Call
from covey.core.board.tasks import Task
from covey.core.board.waiting import Cause
from covey.core.fleet.sessions import OWNER, Session
from covey.core.people.rights import is_for_a_reader, is_vouched_for
from covey.errors import CoveyError


def runs_text(call: Call, session: Session) -> bool:
    """Say whether the agent of a session runs the text of its task as a script; of one that is unknown, it may."""
    try:
        traits = call.context.agent(session.agent or "").traits
    except CoveyError:
        return True
    return traits.script and not traits.fixed


def why_no_script(call: Call, task: Task) -> Cause | None:
    """Say why the text of a task may not be run as a script, None if it may: a person has to stand behind that."""
    reverts = task.fence > 0 and call.tx.revert_for(task.id) is not None  # of what nobody has held, there is no merge
    if task.author == OWNER and not reverts:
        return None
    story = call.tx.words_of(task.id)
    if is_for_a_reader(story, reverts=reverts):
        return Cause.PROSE
    return None if is_vouched_for(story) else Cause.UNVOUCHED


def is_for_none(call: Call, task: Task, sessions: Collection[Session]) -> bool:
    """Say whether none of some sessions may run a task, because all of them would run its text as a script."""
    if not sessions or not all(runs_text(call, session) for session in sessions):
        return False
    return why_no_script(call, task) is not None
