"""Agents that people start themselves in a checkout of the project: sessions from outside, known by their hooks."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from covey.app.context import Call
from covey.app.fleet.heartbeats import of_session
from covey.app.leases.lease_queue import end_by_hand
from covey.core.board.tasks import Task
from covey.core.fleet.sessions import RESERVED, Session, SessionKind, SessionState
from covey.core.leases.hooks import Hook, Moment
from covey.core.quotes import names, title
from covey.errors import Invalid
from covey.files import write_whole
from covey.git.project import checkout_around
from covey.loops.runtime import Runtime

MAX_COLLEAGUES = 8
"""Colleagues that a greeting names."""
NAMES_FILE = "outside.json"
"""The file of the state folder in which the names of checkouts are kept."""
MAX_FOLDERS = 1000
"""Folders whose session is remembered."""
QUIET_S = 3600.0
"""Seconds after which a conversation that says nothing keeps nothing for its session any more."""
COMPACT = "compact"
GOES_ON = ("clear", "resume")
"""Ends of a conversation after which its agent begins another."""
ASKS = ("permission_prompt", "elicitation_dialog")
"""Notifications that a person is waited for."""
RESTS = "idle_prompt"
AT_WORK = "its agent is at work"

log = logging.getLogger("covey.hooks")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass
class Outside:
    """Names a session after the checkout in which its agent was started, and keeps its state up to date."""

    runtime: Runtime
    _names: dict[str, tuple[str, Path]] = field(default_factory=dict)
    """The session and the checkout of each folder that an agent was in."""
    _homes: dict[str, str] | None = None
    """The checkout that each name stands for, as it is kept in a file; None before that was read."""
    _naming: asyncio.Lock = field(default_factory=asyncio.Lock)
    _talks: dict[str, dict[str, float]] = field(default_factory=dict)
    """The conversations of each session, and when each was last heard."""
    _by_hand: set[str] = field(default_factory=set)
    """Who makes its conversation shorter because a person said so, and rests then."""

    async def named(self, hook: Hook) -> tuple[str, Path, Task | None, Session | None]:
        """Return the name of an agent from outside, its checkout, task and session; refuse one that is elsewhere."""
        while True:
            name, top = self._names.get(hook.cwd) or await self._settle(hook.cwd)
            session, task = await self.runtime.read(partial(_look_up, name))
            if not _is_anothers(session):
                break
            self._names.pop(hook.cwd, None)  # somebody has taken its name since
        if hook.conversation:
            self._talks.setdefault(name, {})[hook.conversation] = self.runtime.awake()
        return name, top, task, session

    async def _settle(self, cwd: str) -> tuple[str, Path]:
        top = await self.runtime.in_run_thread(lambda: self._checkout(cwd))
        async with self._naming:
            name = await self.runtime.in_run_thread(lambda: self._name(top))
        if len(self._names) >= MAX_FOLDERS:
            self._names.clear()
        self._names[cwd] = name, top
        return name, top

    def _checkout(self, cwd: str) -> Path:
        top = checkout_around(self.runtime.project, Path(cwd or "/"))
        if top is None:
            raise Invalid(f"{cwd[:200]!r} is not a checkout of {self.runtime.project.name}.")
        return top

    def _name(self, top: Path) -> str:
        """Return the name of a checkout, which it keeps as long as it is there."""
        here, file = os.path.realpath(top), self.runtime.project.state / NAMES_FILE
        homes = _read(file) if self._homes is None else self._homes
        name = next((each for each, home in homes.items() if home == here), None)
        if name is None or self._is_taken(name):
            there = {each: home for each, home in homes.items() if home != here and os.path.isdir(home)}
            name = next(each for each in self._candidates(top) if each not in there and not self._is_taken(each))
            homes = {**there, name: here}
            try:
                write_whole(file, json.dumps(homes, indent=1))
            except OSError as error:
                log.warning("the name of %s could not be kept: %s", here, error)
        self._homes = homes
        return name

    def _candidates(self, top: Path) -> Iterator[str]:
        """Yield names for a checkout, the best first."""
        name = _UNFIT.sub("-", top.name).strip("-_")[:50] or "guest"
        name = f"{name}-guest" if self._is_taken(name) else name
        yield name
        yield from (f"{name}-{number}" for number in count(2))

    def _is_taken(self, name: str) -> bool:
        return name in RESERVED or _is_anothers(self.runtime.app.store.read(lambda tx: tx.session(name)))

    async def greet(self, name: str, hook: Hook) -> None:
        """Make a session known that begins, or goes on after its conversation was made shorter."""
        goes_on = hook.note == COMPACT and name not in self._by_hand
        self._by_hand.discard(name)

        def write(call: Call) -> None:
            call.worker(name)
            if goes_on:
                call.show_state(name, SessionState.WORKING, AT_WORK)
            else:
                call.show_state(name, SessionState.IDLE, "its agent has started")

        await self.runtime.write(write)

    async def show(self, name: str, known: Session | None, hook: Hook) -> None:
        """Bring the state of a session, as it was `known` a moment ago, in step with what its agent says."""
        state, evidence = _state(hook)
        if state is None:
            return
        if hook.moment is Moment.BEFORE_COMPACT and hook.note == "manual":
            self._by_hand.add(name)
        self.runtime.app.context.pulses.hear(of_session(name))
        if known is not None and not known.removed and known.state is state:
            return

        def write(call: Call) -> None:
            call.worker(name)
            call.show_state(name, state, evidence)

        await self.runtime.write(write)

    async def farewell(self, name: str, hook: Hook) -> bool:
        """Let go of what a session held by hand when its agent has ended, and say whether it has."""
        others = self._talks.get(name, {})
        others.pop(hook.conversation, None)
        if hook.note in GOES_ON or any(self.runtime.awake() - heard < QUIET_S for heard in others.values()):
            return False
        self._talks.pop(name, None)
        self._by_hand.discard(name)

        def write(call: Call) -> None:
            if call.tx.session(name) is not None:
                end_by_hand(call, name, f"the agent of {name} has ended")
                call.show_state(name, SessionState.IDLE, "its agent has ended")

        await self.runtime.write(write)
        return True


def _look_up(name: str, call: Call) -> tuple[Session | None, Task | None]:
    return call.tx.session(name), next(iter(call.tx.held_by(name)), None)


def _is_anothers(session: Session | None) -> bool:
    """Say whether a name is that of a session which covey runs, or of a person."""
    return session is not None and not session.removed and session.kind is not SessionKind.OUTSIDE


def _read(file: Path) -> dict[str, str]:
    """Return the checkouts that names stand for, as far as that is known."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    kept = found.items() if isinstance(found, dict) else ()
    return {name: home for name, home in kept if isinstance(home, str)}


def _state(hook: Hook) -> tuple[SessionState | None, str]:
    match hook.moment:
        case Moment.USER_PROMPT | Moment.BEFORE_TOOL | Moment.AFTER_TOOL:
            return SessionState.WORKING, AT_WORK
        case Moment.STOP:
            return SessionState.IDLE, "its agent waits for a prompt"
        case Moment.NOTIFICATION if hook.note in ASKS:
            return SessionState.NEEDS_YOU, hook.message or "its agent waits for a person"
        case Moment.NOTIFICATION if hook.note == RESTS:
            return SessionState.IDLE, hook.message or "its agent waits for a prompt"
        case Moment.BEFORE_COMPACT:
            return SessionState.COMPACTING, "its agent makes its conversation shorter"
        case _:
            return None, ""


def introduction(name: str) -> str:
    """Return what an agent from outside has to know of itself: its token is the owner's, its name is its own."""
    return (
        f"To covey and your colleagues you are {name}. Add --as {name} to every covey command that you type (as in "
        f"covey mail inbox --as {name}): without it you act as the person in charge."
    )


def context(call: Call, session: str, task: Task | None, *, again: bool) -> str | None:
    """Return what an agent is told when its conversation begins, or was made shorter: its task, and who else works."""
    lines: list[str] = []
    if again and task is not None:
        lines.append(f"You are {session}, at work on {task.id}: {title(task.title, 600)}")
        lines.append("Your conversation was made shorter; covey task show tells the whole task again.")
        lines += [f"You may write only: {names(task.scope)}"] if task.scope else []
    doing = call.tx.doing(limit=100)
    others = [other for other in doing if other.session != session]
    if others:
        lines.append("At work beside you on this repository:")
        lines += [
            f"- {other.session}: {other.id} {title(other.title)}{_scope(other)}" for other in others[:MAX_COLLEAGUES]
        ]
        lines += [f"- and {len(others) - MAX_COLLEAGUES} more (covey status)"] if len(others) > MAX_COLLEAGUES else []
    return "\n".join(lines) or None


def _scope(task: Task) -> str:
    return f" ({names(task.scope[:4])})" if task.scope else ""
