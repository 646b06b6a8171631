"""Agents that people start themselves in a checkout of the project: sessions from outside, known by their hooks."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from covey.app.lines import end_by_hand
from covey.app.verbs import Call
from covey.core.hooks import Hook, Moment
from covey.core.sessions import RESERVED, Kind, State
from covey.core.tasks import Task
from covey.core.texts import cited, harmless
from covey.errors import Invalid
from covey.git.run import try_git
from covey.loops.desk import Desk
from covey.store import rows

MOST = 8
"""Colleagues that a greeting names."""
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass
class Outside:
    """Names a session after the checkout in which its agent was started, and keeps its state up to date."""

    desk: Desk
    _names: dict[str, tuple[str, Path]] = field(default_factory=dict)

    async def named(self, hook: Hook) -> tuple[str, Path]:
        """Return the session of an agent from outside, and its checkout; refuse one that is elsewhere."""
        if hook.cwd not in self._names:
            self._names[hook.cwd] = await self.desk.near(lambda: self._name(hook.cwd))
        return self._names[hook.cwd]

    def _name(self, cwd: str) -> tuple[str, Path]:
        folder = Path(cwd or "/")
        told = try_git("rev-parse", "--show-toplevel", "--git-common-dir", at=folder) if folder.is_dir() else None
        lines = [] if told is None or told.returncode else os.fsdecode(told.stdout).splitlines()
        if len(lines) != 2 or os.path.realpath(folder / lines[1]) != os.path.realpath(self.desk.project.common):
            raise Invalid(f"{cwd[:200]!r} is no checkout of {self.desk.project.name}.")
        top = Path(lines[0])
        name = _UNFIT.sub("-", top.name).strip("-_")[:60] or "guest"
        known = self.desk.app.store.read(lambda tx: tx.session(name))
        taken = known is not None and not known.removed and known.kind is not Kind.OUTSIDE
        return (f"{name}-guest" if taken or name in RESERVED else name), top

    async def greet(self, name: str) -> None:
        """Make a session known that begins."""

        def write(call: Call) -> None:
            call.worker(name)
            call.show_state(name, State.IDLE, "its agent has started")

        await self.desk.write(write)

    async def show(self, name: str, hook: Hook) -> None:
        """Bring the state of a session in step with what its agent says."""
        state, evidence = _state(hook)
        if state is None:
            return

        def is_news(call: Call) -> bool:
            call.hear(name)
            session = call.tx.session(name)
            return session is None or session.removed or session.state is not state

        def write(call: Call) -> None:
            call.worker(name)
            call.show_state(name, state, evidence)

        if await self.desk.read(is_news):
            await self.desk.write(write)

    async def farewell(self, name: str) -> None:
        """Let go of what a session held by hand whose agent has ended."""

        def write(call: Call) -> None:
            if call.tx.session(name) is not None:
                end_by_hand(call, name, f"the agent of {name} has ended")
                call.show_state(name, State.IDLE, "its agent has ended")

        await self.desk.write(write)


def _state(hook: Hook) -> tuple[State | None, str]:
    match hook.moment:
        case Moment.USER_PROMPT | Moment.BEFORE_TOOL | Moment.AFTER_TOOL:
            return State.WORKING, "its agent is at work"
        case Moment.STOP:
            return State.IDLE, "its agent waits for a prompt"
        case Moment.NOTIFICATION:
            return State.NEEDS_YOU, hook.message or "its agent waits for a person"
        case Moment.BEFORE_COMPACT:
            return State.COMPACTING, "its agent makes its conversation shorter"
        case _:
            return None, ""


def context(call: Call, session: str, task: Task | None, *, again: bool) -> str | None:
    """Return what an agent is told when its conversation begins, or was made shorter: its task, and who else works."""
    lines: list[str] = []
    if again and task is not None:
        lines.append(f"You are {session}, at work on {task.id}: {harmless(task.title)}")
        lines.append("Your conversation was made shorter; covey task show tells the whole task again.")
        lines += [f"You may write only: {', '.join(map(harmless, task.scope))}"] if task.scope else []
    doing = call.tx.find(rows.TASKS, "WHERE status = 'doing' AND session IS NOT NULL ORDER BY ordinal LIMIT 100")
    others = [other for other in doing if other.session != session]
    if others:
        lines.append("At work beside you on this repository:")
        lines += [f"- {other.session}: {other.id} {cited(other.title[:120])}{_scope(other)}" for other in others[:MOST]]
        lines += [f"- and {len(others) - MOST} more (covey status)"] if len(others) > MOST else []
    return "\n".join(lines) or None


def _scope(task: Task) -> str:
    return f" ({', '.join(map(harmless, task.scope[:4]))})" if task.scope else ""
