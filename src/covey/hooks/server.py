"""What agents ask at each step of their work, and what they are told: leases, mail, and what a person decides."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from covey import files
from covey.agents import hooked
from covey.agents.agent import Sight
from covey.app import limits, questions, ways_out, writes
from covey.app.runs import branch_of
from covey.app.verbs import Call, Principal
from covey.app.writes import Advice
from covey.core import harmless
from covey.core import ways_out as way_rules
from covey.core.force import Write
from covey.core.guarded import commands_of
from covey.core.harmless import Ground
from covey.core.hooks import NOTHING, Hook, Moment, Reply
from covey.core.permits import SHELL, Level
from covey.core.questions import Permission, Permitted, Question, State, Withdrawn, reply_of
from covey.core.runs import Run
from covey.core.sessions import COVEY
from covey.core.signals import Asks, Compacts, Signal, Wants, Works
from covey.core.tasks import Task
from covey.errors import CoveyError, Invalid, NotFound
from covey.git import written
from covey.hooks.outside import COMPACT, Outside, context, introduction
from covey.loops.desk import Desk
from covey.loops.fleet import Fleet
from covey.loops.outfit import SEEN
from covey.loops.places import Places, leads_out, unsaved, write_of
from covey.loops.starting import agent_of
from covey.store.rows import Change
from covey.values import dataclass

GUARD = "guard"
HELD = "hook"
"""How the names of questions begin whose agents are kept waiting for the answer."""
IN_TERMINAL = "It is asked in the terminal."
LOOK = 1.0
"""Seconds between two looks whether a person is at the terminal of an agent that waits."""
SHELL_LOOK = 0.2
"""Seconds that an agent waits for a look at what its command wrote; a longer one is told at the next step."""
OVER = (Moment.USER_PROMPT, Moment.STOP, Moment.SUBAGENT_STOP, Moment.SESSION_END)
"""What an agent, or a sub-agent, does only when it asks for nothing any more."""
BRINGS = (Moment.USER_PROMPT, Moment.AFTER_TOOL, Moment.STOP)
"""When it is told its mail."""
ROUNDS = 12
"""How often the loop goes round after a request until it knows of an agent that hung up while we stood still."""

log = logging.getLogger("covey.hooks")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Asker:
    """Who asks: a session with its worktree, and its run and task if it has any."""

    session: str
    worktree: Path
    run: Run | None = None
    task: Task | None = None
    has_token: bool = False
    """It speaks with a token of its own, and so within limits."""
    gone: asyncio.Future[None] | None = None
    """Done when it waits for the answer no longer."""

    @property
    def key(self) -> str:
        """Return what memories of it are kept by: never beyond its run."""
        return self.session if self.run is None else self.run.id

    @property
    def listens(self) -> bool:
        """Say whether it still waits for the answer."""
        return self.gone is None or not self.gone.done()


@dataclass
class Memory:
    """What is remembered of who asks, as long as its run lives or its agent is there."""

    unsaid: list[str] = field(default_factory=list)
    """What it has still to be told of what was noticed."""
    known: dict[str, float] = field(default_factory=dict)
    """What it had written when it was last looked at, and when."""
    look: asyncio.Task[None] | None = None

    def take(self) -> list[str]:
        """Return what it has still to be told, and think of it as told."""
        said, self.unsaid = self.unsaid, []
        return said


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
class Hooks:
    """Answers agents at every step of theirs; what it remembers is lost with it, and then told once more."""

    desk: Desk
    fleet: Fleet
    outside: Outside
    _held: dict[str, Held] = field(default_factory=dict)
    """Who waits for a person's word on which question."""
    _memories: dict[str, Memory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = Places(self.desk.project, self.desk.worktrees)
        self.mailing = self.fleet.attendant.mailing
        self._closing = False

    def close(self) -> None:
        """Let go of all who are kept waiting: nobody will be here to tell them."""
        self._closing = True
        for held in self._held.values():
            held.decided.set()

    def hear(self, changes: Iterable[Change]) -> None:
        """Wake who waits for a decision, or waits no longer because a person came to the terminal."""
        for change in changes:
            if change.kind.startswith("question.") and change.subject in self._held:
                self._held[change.subject].decided.set()
            elif change.kind in ("session.attached", "run.ending", "run.ended"):
                for held in self._held.values():
                    held.decided.set()
            if change.kind in ("run.ended", "session.removed"):
                self._memories.pop(change.subject, None)

    def _memory(self, asker: Asker) -> Memory:
        return self._memories.setdefault(asker.key, Memory())

    async def __call__(self, name: str, who: Principal, body: bytes, gone: asyncio.Future[None] | None = None) -> bytes:
        """Answer one asking of an agent, or of the guard of its commits; `gone` is done when nobody waits for it."""
        if name == GUARD:
            return _encode(await self._guard(who, body))
        try:
            moment = Moment(name)
        except ValueError:
            raise NotFound(f"There is no hook {name[:80]!r}.") from None
        hook = hooked.read(moment, _decoded(body))
        asker = replace(await self._asker(who, hook), gone=gone)
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        reply = await self._reply(asker, hook)
        if asker.run is not None and asker.listens and moment is Moment.BEFORE_TOOL:
            self._note_seen(asker.run, hook.call)
        return _encode(hooked.written(hook, reply))

    async def _asker(self, who: Principal, hook: Hook) -> Asker:
        if who.session is None:
            name, worktree, held = await self.outside.named(hook)
            return Asker(name, worktree, None, held)
        name = who.session

        def find(call: Call) -> tuple[Run | None, Task | None]:
            run = next(iter(call.tx.open_runs(name)), None)
            held = call.tx.task(run.task) if run is not None else next(iter(call.tx.held_by(name)), None)
            return run, held

        run, task = await self.desk.read(find)
        worktree = self.desk.worktrees.path(name) if run is not None else Path(hook.cwd or "/")
        return Asker(name, worktree, run, task, has_token=True)

    async def _reply(self, asker: Asker, hook: Hook) -> Reply:
        self._overhear(asker, hook)
        match hook.moment:
            case Moment.SESSION_START:
                return await self._greet(asker, hook)
            case Moment.BEFORE_TOOL:
                return await self._before(asker, hook)
            case Moment.AFTER_TOOL:
                await self._after(asker, hook)
                return await self._tell(asker, hook)
            case Moment.USER_PROMPT | Moment.STOP:
                return await self._tell(asker, hook)
            case Moment.PERMISSION:
                return await self._permission(asker, hook)
            case Moment.SESSION_END:
                await self._farewell(asker, hook)
                return NOTHING
            case Moment.NOTIFICATION | Moment.BEFORE_COMPACT | Moment.SUBAGENT_STOP:
                if asker.run is None:
                    await self._show(asker, hook)
                return NOTHING

    def _overhear(self, asker: Asker, hook: Hook) -> None:
        """Let the watchdog know what the agent does: in a terminal it hears of it in no other way."""
        if asker.run is not None:
            brings = hook.moment in BRINGS and not hook.sub
            self.fleet.overhear(asker.run, signals_of(hook), brings=brings)
            for held in self._held.values():
                held.hear(asker.run, hook)

    def _spend(self, asker: Asker, paths: int = 0) -> None:
        """Count what we are about to write because of a hook, so that no session can flood the log by hooks."""
        if asker.has_token:
            limits.spend_hook(self.desk.app.house, asker.session, paths)

    async def _show(self, asker: Asker, hook: Hook) -> None:
        """Bring the state of a session that covey does not run in step with what its agent says."""
        self._spend(asker)
        await self.outside.show(asker.session, hook)

    # Beginning and end

    async def _greet(self, asker: Asker, hook: Hook) -> Reply:
        parts: list[str] = []
        if asker.run is None:
            self._spend(asker)
            await self.outside.greet(asker.session, hook)
            parts.append(introduction(asker.session))
        again = hook.note == COMPACT
        told = await self.desk.read(lambda call: context(call, asker.session, asker.task, again=again))
        parts += [told] if told else []
        return Reply(tell="\n".join(parts)) if parts else NOTHING

    async def _farewell(self, asker: Asker, hook: Hook) -> None:
        if asker.run is None:
            if await self.outside.farewell(asker.session, hook):
                self._memories.pop(asker.key, None)
        elif hook.transcript:
            await self.mailing.confirm(asker.run, hook.transcript)

    # Writing

    async def _before(self, asker: Asker, hook: Hook) -> Reply:
        """Say whether a tool may write what it is about to write."""
        if asker.run is None:
            await self._show(asker, hook)
        if hook.command and asker.run is not None:
            return await self._before_command(asker, asker.run, hook)
        if not hook.writes:
            return NOTHING
        now = self.desk.wall()
        chosen = [self.places.of(asker.worktree, hook.cwd, path) for path in hook.writes]
        tool_policy = self.desk.app.house.config.leases.tool
        foreign = [(given, place.whose) for given, place in zip(hook.writes, chosen, strict=True) if place.whose]
        if foreign and tool_policy != "off":
            given, whose = foreign[0]
            text = f"{given} is not yours to write: it belongs to {whose}. Your worktree is {asker.worktree}."
            # An agent that a person has started may have been told to: it is the person's word against ours.
            return Reply(tell=text) if asker.run is None else Reply(deny=text)
        about = [
            Write(place.path, now, new=not (asker.worktree / place.path).exists()) for place in chosen if place.path
        ]
        advice = await self.desk.read(lambda call: writes.check(call, asker.session, asker.task, about, at="tool"))
        return _as_reply(advice)

    async def _before_command(self, asker: Asker, run: Run, hook: Hook) -> Reply:
        """Let a command pass that needs no question, and hold back one that leads out past all who would ask."""
        command = hook.command
        agent, level = agent_of(self.desk, run.agent), await self._level(run)
        asks_itself = level is Level.FULL or (agent is not None and agent.traits.asks)
        found = way_rules.found(command, str(asker.worktree))
        way = next((each for each in found if each.kind is way_rules.Kind.PUSH or not asks_itself), None)
        if way is None and agent is not None and agent.traits.asks and await self._needs_nobody(asker, hook, level):
            return Reply(allow=True, why="covey: it needs no question.")
        if way is None or await self.desk.read(
            lambda call: ways_out.is_allowed(call, asker.session, run.task, SHELL, command)
        ):
            return NOTHING
        self._spend(asker)
        text = f"It wants to run: {command}\nThis leads out of the machine: {way.why}."
        said = await self.desk.write(lambda call: ways_out.permitted(call, asker.session, run, SHELL, command, text))
        return NOTHING if said.permission is Permission.ALLOW else Reply(deny=_held_back(way, said))

    async def _level(self, run: Run) -> Level:
        """Return how much a run may do by itself: as its session was given, else as the settings say."""
        session = await self.desk.read(lambda call: call.tx.session(run.session))
        own = None if session is None else session.permissions
        return Level(own or self.desk.app.house.config.sessions.permissions)

    async def _needs_nobody(self, asker: Asker, hook: Hook, level: Level) -> bool:
        """Say whether a command only reads in the worktree, or does what its level allows."""
        config = self.desk.app.house.config
        granted = await self.desk.read(questions.granted)
        allowed = [each.about for each in granted if each.tool == SHELL and each.about]
        rules = (*config.sessions.allow, *allowed)
        judged = harmless.judge(hook.command, Ground(str(asker.worktree), hook.cwd, commands_of(config.merge), rules))
        most = harmless.Verdict.READS if level is Level.ASK else harmless.Verdict.LEVEL
        if judged.verdict > most:
            return False
        return await self.desk.near(lambda: not leads_out((hook.cwd or ".", *judged.paths), asker.worktree))

    async def _after(self, asker: Asker, hook: Hook) -> None:
        """Notice what a tool has written: an editing one says so, after a command one has to look."""
        now = self.desk.wall()
        if hook.writes:
            places = [self.places.of(asker.worktree, hook.cwd, path) for path in hook.writes]
            made = [write_of(asker.worktree, place.path, now) for place in places if place.path]
            await self._notice(asker, made, "edit")  # it was warned before
        elif hook.command and asker.worktree.is_dir():
            memory = self._memory(asker)
            if memory.look is None or memory.look.done():
                memory.look = asyncio.create_task(self._look(asker, memory))
            await asyncio.wait([memory.look], timeout=SHELL_LOOK)

    async def _look(self, asker: Asker, memory: Memory) -> None:
        """Look at what a command changed in the worktree, and notice what is new."""
        now = self.desk.wall()
        try:
            found = await self.desk.aside(lambda: unsaved(self.desk.project, asker.worktree, now))
            fresh = [write for write in found if memory.known.get(write.path, -1.0) < write.written]
            memory.known.update({write.path: write.written for write in fresh})
            text = await self._notice(asker, fresh, "shell")
            memory.unsaid += [f"covey noticed that you have written there:\n{text}"] if text else []
        except CoveyError as error:
            log.warning("what %s wrote could not be looked at: %s", asker.session, error)

    async def _notice(self, asker: Asker, made: list[Write], how: str) -> str:
        """Note what was written, and return what there is to say of it."""
        if not made or not await self.desk.read(lambda call: writes.is_news(call, asker.session, asker.task, made)):
            return ""
        self._spend(asker, len(made))
        advice = await self.desk.write(lambda call: writes.noticed(call, asker.session, asker.task, made, how))
        return "\n".join(part for part in (advice.deny, advice.tell) if part)

    async def _guard(self, who: Principal, body: bytes) -> dict[str, str | None]:
        """Say whether a session may commit what the hooks of its git tell."""
        if who.session is None:
            return {"deny": None, "tell": None}
        asker = await self._asker(who, Hook(moment=Moment.BEFORE_TOOL))
        now, main = self.desk.wall(), self.desk.app.house.config.target
        scope = asker.task.scope if asker.task is not None else ()

        def look() -> list[Write]:
            return written.read(body, now, written.known_on(self.desk.project, main, scope))

        async def judge(made: list[Write]) -> Advice:
            return await self.desk.read(lambda call: writes.check(call, asker.session, asker.task, made, at="commit"))

        made = await self.desk.near(look)
        advice = await judge(made)
        if advice.deny is not None:
            branch = branch_of(asker.task.id) if asker.task is not None else None
            place, denied = self.desk.project, advice.denied
            left = await self.desk.near(lambda: written.unless_undone(place, main, branch, body, made, denied))
            advice = await judge(left)
        watched = self.fleet.watches.find(asker.run) if asker.run is not None else None
        if watched is not None:
            watched.refused = advice.deny.splitlines()[0] if advice.deny else None
        return {"deny": advice.deny, "tell": advice.tell}

    # Telling

    async def _tell(self, asker: Asker, hook: Hook) -> Reply:
        """Tell what was noticed, and unread mail; at its end the agent goes on with it."""
        if asker.run is None:
            await self._show(asker, hook)
        if hook.sub:
            return NOTHING  # a sub-agent has a conversation of its own, in which mail would be lost
        if not asker.listens:
            return NOTHING  # we were away when it asked; what there is to tell waits for its next step
        mail = await self.mailing.offer(asker.session, asker.run, hook)
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        if asker.gone is not None and asker.gone.done():  # it hung up meanwhile
            self.mailing.take_back(asker.session, asker.run, mail.messages)
            return NOTHING
        parts = self._memory(asker).take()
        parts += [mail.text] if mail.text else []
        if not parts:
            return NOTHING
        text = "\n\n".join(parts)
        return Reply(go_on=text) if hook.moment is Moment.STOP else Reply(tell=text)

    # Asking a person

    async def begin(self) -> None:
        """Withdraw what was asked before we were here: whoever waited for the answer has hung up since."""

        def held(call: Call) -> list[Question]:
            return [each for each in call.tx.open_questions() if each.asks.startswith(HELD)]

        for question in await self.desk.read(held):
            await self.desk.write(partial(_let_go, question_id=question.id))

    async def _permission(self, asker: Asker, hook: Hook) -> Reply:
        """Ask a person, and keep the agent waiting until there is an answer, or the person comes to its terminal."""
        run = asker.run
        if run is None or not hook.asks or self._is_left(asker) or await self._is_in_hands(run):
            return NOTHING
        self._spend(asker)
        minutes = self.desk.app.house.config.watch.answer_minutes
        asks = Asks(
            id=f"{HELD} {secrets.token_hex(8)}", wants=Wants.PERMISSION, question=hook.asks, tool=hook.tool,
            about=hook.about,
        )  # fmt: skip

        def ask(call: Call) -> Question:
            questions.check_open(call, run.session)
            return questions.ask(call, run.session, asks, task=run.task, run=run.id, minutes=minutes)

        question = await self.desk.write(ask)
        held = self._held[question.id] = Held(run, hook)
        if asker.gone is not None:
            asker.gone.add_done_callback(lambda _: held.decided.set())
        rested = False
        try:
            while True:
                held.decided.clear()
                now = await self.desk.read(lambda call: call.tx.question(question.id))
                if now is None or now.state is not State.OPEN:
                    return await self._answer(asker, now or question)
                before, rested = rested, self._is_at_rest(run)  # a screen that was seen may be older than the question
                over = self._is_left(asker) or held.went_on or (before and rested)
                if over or await self._is_in_hands(run):
                    await self.desk.write(lambda call: _let_go(call, question.id))
                    return NOTHING
                with suppress(TimeoutError):
                    await asyncio.wait_for(held.decided.wait(), LOOK)  # nobody says when a person comes to a terminal
        finally:
            self._held.pop(question.id, None)

    def _is_left(self, asker: Asker) -> bool:
        """Say whether one of the two is gone who would wait for an answer, and give it."""
        return self._closing or not asker.listens

    def _is_at_rest(self, run: Run) -> bool:
        """Say whether the screen of a run shows a prompt that waits, and so no dialog any more."""
        watched = self.fleet.watches.find(run)
        return watched is not None and watched.sight is Sight.READY

    async def _answer(self, asker: Asker, question: Question) -> Reply:
        reply = reply_of(question)
        if reply is None or not asker.listens:
            return NOTHING
        await self.desk.write(lambda call: questions.told(call, question))
        return Reply(allow=reply.allows, why=reply.text or None)

    async def _is_in_hands(self, run: Run) -> bool:
        """Say whether a person is at the terminal of a run, or it shall end."""

        def look(call: Call) -> bool:
            now, session = call.tx.run(run.id), call.tx.session(run.session)
            gone = now is None or now.outcome is not None or now.ending is not None
            return gone or run.person or (session is not None and session.attached is not None)

        return await self.desk.read(look) or await self.desk.near(lambda: self.desk.app.house.is_used(run.id))

    def _note_seen(self, run: Run, call: str) -> None:
        """Note that covey was asked before a tool was used, so that what it was not asked about can be told later."""
        try:
            files.append(self.desk.project.state / "runs" / run.id / SEEN, f"{call}\n")
        except OSError as error:
            log.warning("a hook of %s could not be noted: %s", run.id, error)


def _let_go(call: Call, question_id: str) -> None:
    """Withdraw a question that nobody is kept waiting for any more, if it is still open."""
    now = call.tx.question(question_id)
    if now is not None and now.state is State.OPEN:
        questions.put(call, now, Withdrawn(IN_TERMINAL), COVEY)


def signals_of(hook: Hook) -> list[Signal]:
    """Return what a hook says of a run; that it ends or calls for a person is no sign that its model answers."""
    match hook.moment:
        case Moment.BEFORE_COMPACT:
            return [Compacts()]
        case Moment.NOTIFICATION | Moment.SESSION_END:
            return []
        case _:
            return [Works()]


def _held_back(way: way_rules.WayOut, said: Permitted) -> str:
    """Return why a command that leads out was not run, and what to do."""
    what = f"This was not run, since {way.command} leads out of the machine ({way.why})."
    plain = " A plain git push in your worktree is asked about by itself." if way.kind is way_rules.Kind.PUSH else ""
    if said.permission is Permission.ASK:
        return f"{what} A person is asked ({said.question}): go on, and try again when it is allowed.{plain}"
    return f"{what} {said.why}{plain}"


def _as_reply(advice: Advice) -> Reply:
    return Reply(deny=advice.deny, tell=None if advice.deny else advice.tell)


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"The body is not valid JSON: {error}.") from None
