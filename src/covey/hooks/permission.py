"""Permission that an agent asks for: a person is asked, and the agent waits until there is an answer."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Protocol

from covey.app.context import Call, Context
from covey.app.people import questions, session_limits
from covey.core.board.tasks import Task
from covey.core.fleet.runs import Run
from covey.core.fleet.sessions import COVEY, Session
from covey.core.fleet.signals import Asks, Wants
from covey.core.leases.hooks import NOTHING, Hook, HookReply, Moment
from covey.core.people.questions import Question, QuestionState, Withdrawn, reply_of
from covey.loops.fleet.fleet_memory import HookReports
from covey.loops.runtime import Runtime, wait_at_most
from covey.store.engine.rows import Change
from covey.values import dataclass

HELD_PREFIX = "hook"
"""How the names of questions begin whose agents are kept waiting for the answer."""
IN_TERMINAL = "It is asked in the terminal."
LOOK_EVERY_S = 1.0
"""Seconds between two looks whether a person is at the terminal of an agent that waits."""
OVER = (Moment.USER_PROMPT, Moment.STOP, Moment.SUBAGENT_STOP, Moment.SESSION_END)
"""What an agent, or a sub-agent, does only when it asks for nothing any more."""


class Caller(Protocol):
    """Who waits at the other end for one answer."""

    def is_there(self) -> bool:
        """Say whether it has not hung up."""

    async def left(self) -> None:
        """Return when it hangs up."""


@dataclass(frozen=True)
class Asker:
    """Who asks: a session with its worktree, and its run and task if it has any."""

    session: str
    worktree: Path
    run: Run | None = None
    task: Task | None = None
    known: Session | None = None
    """The session as it was when it began to ask, if it has no run."""
    has_token: bool = False
    """It speaks with a token of its own, and so within limits."""
    caller: Caller | None = None
    """Who waits for the answer, if that can be told."""

    @property
    def key(self) -> str:
        """Return what memories of it are kept by: never beyond its run."""
        return self.session if self.run is None else self.run.id

    def listens(self) -> bool:
        """Say whether it still waits for the answer."""
        return self.caller is None or self.caller.is_there()

    def spend(self, context: Context, paths: int = 0) -> None:
        """Count what we are about to write because of a hook, so that no session can flood the log by hooks."""
        if self.has_token:  # an agent can say that it wrote any file
            hooks = 1.0 + paths // session_limits.PATHS_A_HOOK
            session_limits.take(context, self.session, [("hooks", hooks, context.config.limits.changes)])


@dataclass
class Held:
    """An agent that is kept waiting for a person's word."""

    run: Run
    hook: Hook
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    went_on: bool = False

    def hear(self, run: Run, hook: Hook) -> None:
        """Take another hook of a run for a sign that somebody has answered in its terminal, if it is one."""
        mine = run.id == self.run.id and (hook.sub == self.hook.sub or hook.moment is Moment.SESSION_END)
        if mine and (hook.moment in OVER or (hook.moment is Moment.AFTER_TOOL and self._is_used(hook))):
            self.went_on = True
            self.decided.set()

    def _is_used(self, hook: Hook) -> bool:
        if hook.call and self.hook.call:
            return hook.call == self.hook.call
        return (hook.tool, hook.about) == (self.hook.tool, self.hook.about)


@dataclass
class Permissions:
    """Keeps agents waiting that ask for permission; with the daemon all of them are let go."""

    runtime: Runtime
    reports: HookReports
    _held: dict[str, Held] = field(default_factory=dict)
    """Who waits for a person's word on which question."""
    _closing: bool = False

    def close(self) -> None:
        """Let go of all who are kept waiting: nobody will be here to tell them."""
        self._closing = True
        self._wake_all()

    def _wake_all(self) -> None:
        for held in self._held.values():
            held.decided.set()

    def hear(self, changes: Iterable[Change]) -> None:
        """Wake who waits for a decision, or waits no longer because its run ends or a person came to the terminal."""
        for change in changes:
            if not change.kind.startswith("question."):
                self._wake_all()
            elif change.subject in self._held:
                self._held[change.subject].decided.set()

    def overhear(self, run: Run, hook: Hook) -> None:
        """Notice when an agent that waits goes on, since it was answered in its terminal."""
        for held in self._held.values():
            held.hear(run, hook)

    async def begin(self) -> None:
        """Withdraw what was asked before we were here: whoever waited for the answer has hung up since."""

        def held(call: Call) -> list[Question]:
            return [each for each in call.tx.open_questions() if each.asks.startswith(HELD_PREFIX)]

        for question in await self.runtime.read(held):
            await self.runtime.write(partial(_let_go, question_id=question.id))

    async def ask(self, asker: Asker, hook: Hook) -> HookReply:
        """Ask a person, and keep the agent waiting until there is an answer, or the person comes to its terminal."""
        run = asker.run
        if run is None or not hook.asks or self._is_left(asker) or await self._is_in_hands(run):
            return NOTHING
        asker.spend(self.runtime.app.context)
        minutes = self.runtime.app.context.config.watch.answer_minutes
        asks = Asks(
            id=f"{HELD_PREFIX} {secrets.token_hex(8)}", wants=Wants.PERMISSION, question=hook.asks, tool=hook.tool,
            about=hook.about,
        )  # fmt: skip

        def ask(call: Call) -> Question:
            questions.check_open(call, run.session)
            return questions.ask(call, run.session, asks, task=run.task, run=run.id, minutes=minutes)

        question = await self.runtime.write(ask)
        held = self._held[question.id] = Held(run, hook)
        leaving = None if asker.caller is None else asyncio.create_task(asker.caller.left())
        if leaving is not None:
            leaving.add_done_callback(lambda _: held.decided.set())
        rested = False
        try:
            while True:
                held.decided.clear()
                now = await self.runtime.read(lambda call: call.tx.get(Question, question.id))
                if now is None or now.state is not QuestionState.OPEN:
                    return await self._answer(asker, now or question)
                # The screen that was seen may be older than the question: one look at it proves nothing.
                before, rested = rested, self.reports.is_at_prompt(run)
                over = self._is_left(asker) or held.went_on or (before and rested)
                if over or await self._is_in_hands(run):
                    await self.runtime.write(lambda call: _let_go(call, question.id))
                    return NOTHING
                await wait_at_most(LOOK_EVERY_S, held.decided)  # nobody says when a person comes to a terminal
        finally:
            self._held.pop(question.id, None)
            if leaving is not None:
                leaving.cancel()

    def _is_left(self, asker: Asker) -> bool:
        """Say whether one of the two is gone who would wait for an answer, and give it."""
        return self._closing or not asker.listens()

    async def _answer(self, asker: Asker, question: Question) -> HookReply:
        reply = reply_of(question)
        if reply is None or not asker.listens():
            return NOTHING
        await self.runtime.write(lambda call: questions.told(call, question))
        return HookReply(allow=reply.allows, why=reply.text or None)

    async def _is_in_hands(self, run: Run) -> bool:
        """Say whether a person is at the terminal of a run, or it was told to end."""

        def look(call: Call) -> bool:
            now, session = call.tx.run(run.id), call.tx.session(run.session)
            gone = now is None or now.outcome is not None or now.ending is not None
            return gone or run.person or (session is not None and session.attached is not None)

        return await self.runtime.read(look) or await self.runtime.in_run_thread(
            lambda: self.runtime.runner.is_used(run.id)
        )


def _let_go(call: Call, question_id: str) -> None:
    """Withdraw a question that nobody is kept waiting for any more, if it is still open."""
    now = call.tx.get(Question, question_id)
    if now is not None and now.state is QuestionState.OPEN:
        call.tx.advance(now, Withdrawn(IN_TERMINAL), COVEY)
