"""What agents ask at each step of their work, and what they are told: leases, mail, and what a person decides."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import field, replace
from pathlib import Path

import msgspec

from covey.agents import hook_protocol
from covey.app.context import Call, Principal
from covey.app.leases import write_check
from covey.app.leases.write_check import Advice
from covey.app.people import egress_rules
from covey.core.board.tasks import Task
from covey.core.fleet.runs import Run
from covey.core.fleet.sessions import Session
from covey.core.leases.hooks import NOTHING, Hook, HookReply, Moment
from covey.core.leases.write_policy import Write
from covey.core.merging.guarded_files import commands_of
from covey.core.people.commands import egress as way_rules
from covey.core.people.commands import safe_commands
from covey.core.people.commands.safe_commands import Ground
from covey.core.people.permits import SHELL, PermissionLevel
from covey.core.people.questions import Permission, Permitted
from covey.errors import CoveyError, Invalid, NotFound
from covey.git.guard import commit_paths
from covey.git.identity import task_branch
from covey.git.worktrees.worktree_paths import PathOwners, is_another_repository, leads_out, unsaved, write_of
from covey.hooks.outside import COMPACT, Outside, context, introduction
from covey.hooks.permission import Asker, Caller, Permissions
from covey.loops.fleet.fleet_memory import HookReports
from covey.loops.mail_loop import Mailing
from covey.loops.runtime import Runtime
from covey.store.engine.rows import Change
from covey.values import dataclass

GUARD = "guard"
SHELL_LOOK_S = 0.2
"""Seconds that an agent waits for a look at what its command wrote; a longer one is told at the next step."""

log = logging.getLogger("covey.hooks")
_encode = msgspec.json.Encoder().encode


@dataclass
class Memory:
    """What is remembered of who asks, as long as its run lives or its agent is there."""

    unsaid: list[str] = field(default_factory=list)
    """What it has still to be told of what was noticed."""
    known: dict[str, float] = field(default_factory=dict)
    """What it had written when it was last looked at, and when."""
    look: asyncio.Task[None] | None = None
    worktree: Path | None = None


@dataclass
class Hooks:
    """Answers agents at every step of theirs; what it remembers is lost with it, and then told once more."""

    runtime: Runtime
    reports: HookReports
    mailing: Mailing
    outside: Outside
    _memories: dict[str, Memory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.owners = PathOwners(self.runtime.project, self.runtime.worktrees)
        self.permissions = Permissions(self.runtime, self.reports)

    def forget(self, ended: list[Change]) -> None:
        """Forget runs and sessions that are gone."""
        for change in ended:
            self._memories.pop(change.subject, None)

    def _memory(self, asker: Asker) -> Memory:
        return self._memories.setdefault(asker.key, Memory())

    async def __call__(self, name: str, who: Principal, body: bytes, caller: Caller | None = None) -> bytes:
        """Answer one asking of an agent, or of the guard of its commits, as long as its caller is there."""
        if name == GUARD:
            return _encode(await self._guard(who, body))
        try:
            moment = Moment(name)
        except ValueError:
            raise NotFound(f"There is no hook {name[:80]!r}.") from None
        try:
            said = msgspec.json.decode(body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Invalid(f"The body is not valid JSON: {error}.") from None
        hook = hook_protocol.read(moment, said)
        asker = replace(await self._asker(who, hook), caller=caller)
        reply = await self._reply(asker, hook)
        if asker.run is not None and moment is Moment.BEFORE_TOOL and asker.listens():
            await self.reports.note_asked(asker.run, hook.call)
        return _encode(hook_protocol.written(hook, reply))

    async def _asker(self, who: Principal, hook: Hook) -> Asker:
        if who.session is None:
            name, worktree, held, known = await self.outside.named(hook)
            return Asker(name, worktree, None, held, known)
        name = who.session

        def find(call: Call) -> tuple[Run | None, Task | None, Session | None]:
            run = next(iter(call.tx.open_runs(name)), None)
            if run is not None:
                return run, call.tx.task(run.task), None
            return None, next(iter(call.tx.held_by(name)), None), call.tx.session(name)

        run, task, known = await self.runtime.read(find)
        worktree = self._worktree_of(run) if run is not None else Path(hook.cwd or "/")
        return Asker(name, worktree, run, task, known, has_token=True)

    def _worktree_of(self, run: Run) -> Path:
        """Return the worktree of a run, which is looked up once: it stays where it is as long as the run lives."""
        memory = self._memories.setdefault(run.id, Memory())
        if memory.worktree is None:
            memory.worktree = self.runtime.worktrees.path(run.session)
        return memory.worktree

    async def _reply(self, asker: Asker, hook: Hook) -> HookReply:
        if asker.run is not None:  # the watchdog hears in no other way what an agent does in a terminal
            self.reports.overhear(asker.run, hook)
            self.permissions.overhear(asker.run, hook)
        elif hook.moment not in (Moment.SESSION_START, Moment.PERMISSION, Moment.SESSION_END):
            asker.spend(self.runtime.app.context)
            await self.outside.show(asker.session, asker.known, hook)
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
                return await self.permissions.ask(asker, hook)
            case Moment.SESSION_END:
                await self._farewell(asker, hook)
                return NOTHING
            case Moment.NOTIFICATION | Moment.BEFORE_COMPACT | Moment.SUBAGENT_STOP:
                return NOTHING

    # Beginning and end

    async def _greet(self, asker: Asker, hook: Hook) -> HookReply:
        parts: list[str] = []
        if asker.run is None:
            asker.spend(self.runtime.app.context)
            await self.outside.greet(asker.session, hook)
            parts.append(introduction(asker.session))
        again = hook.note == COMPACT
        told = await self.runtime.read(lambda call: context(call, asker.session, asker.task, again=again))
        parts += [told] if told else []
        return HookReply(tell="\n".join(parts)) if parts else NOTHING

    async def _farewell(self, asker: Asker, hook: Hook) -> None:
        if asker.run is None:
            if await self.outside.farewell(asker.session, hook):
                self._memories.pop(asker.key, None)
        elif hook.transcript:
            await self.mailing.confirm(asker.run, hook.transcript)

    # Writing

    async def _before(self, asker: Asker, hook: Hook) -> HookReply:
        """Say whether a tool may write what it is about to write."""
        if hook.command and asker.run is not None:
            return await self._before_command(asker, asker.run, hook)
        if not hook.writes:
            return NOTHING
        now = self.runtime.wall()
        chosen = [self.owners.of(asker.worktree, hook.cwd, path) for path in hook.writes]
        tool_policy = self.runtime.app.context.config.leases.tool
        foreign = [(given, place.whose) for given, place in zip(hook.writes, chosen, strict=True) if place.whose]
        if foreign and tool_policy != "off":
            given, whose = foreign[0]
            text = f"{given} is not yours to write: it belongs to {whose}. Your worktree is {asker.worktree}."
            # An agent that a person has started may have been told to: it is the person's word against ours.
            return HookReply(tell=text) if asker.run is None else HookReply(deny=text)
        about = [
            Write(place.path, now, new=not (asker.worktree / place.path).exists()) for place in chosen if place.path
        ]
        advice = await self.runtime.read(
            lambda call: write_check.check(call, asker.session, asker.task, about, at="tool")
        )
        return HookReply(deny=advice.deny, tell=None if advice.deny else advice.tell)

    async def _before_command(self, asker: Asker, run: Run, hook: Hook) -> HookReply:
        """Let a command pass that needs no question, and hold back one that leads out past all who would ask."""
        command = hook.command
        agent, level = self.runtime.agent(run.agent), await self._level(run)
        asks_itself = level is PermissionLevel.FULL or (agent is not None and agent.traits.asks)
        found = way_rules.found(command, str(asker.worktree))
        way = next((each for each in found if each.kind is way_rules.EgressKind.PUSH or not asks_itself), None)
        if way is None and agent is not None and agent.traits.asks and await self._needs_nobody(asker, hook, level):
            return HookReply(allow=True, why="covey: it needs no question.")
        if way is None or await self.runtime.read(
            lambda call: egress_rules.is_allowed(call, asker.session, run.task, SHELL, command)
        ):
            return NOTHING
        asker.spend(self.runtime.app.context)
        text = f"It wants to run: {command}\nThis leads out of the machine: {way.why}."
        said = await self.runtime.write(
            lambda call: egress_rules.permitted(call, asker.session, run, SHELL, command, text)
        )
        return NOTHING if said.answer is Permission.ALLOW else HookReply(deny=_held_back(way, said))

    async def _level(self, run: Run) -> PermissionLevel:
        """Return how much a run may do by itself: as its session was given, else as the settings say."""
        session = await self.runtime.read(lambda call: call.tx.session(run.session))
        own = None if session is None else session.permissions
        return PermissionLevel(own or self.runtime.app.context.config.sessions.permissions)

    async def _needs_nobody(self, asker: Asker, hook: Hook, level: PermissionLevel) -> bool:
        """Say whether a command only reads in the worktree, or does what its level allows."""
        config = self.runtime.app.context.config
        granted = await self.runtime.read(lambda call: call.tx.permits())
        allowed = [each.about for each in granted if each.tool == SHELL and each.about]
        rules = (*config.sessions.allow, *allowed)
        judged = safe_commands.judge(
            hook.command, Ground(str(asker.worktree), hook.cwd, commands_of(config.merge), rules)
        )
        most = (
            safe_commands.CommandVerdict.READS if level is PermissionLevel.ASK else safe_commands.CommandVerdict.LEVEL
        )
        if judged.verdict > most:
            return False
        tree, paths = asker.worktree, (hook.cwd or ".", *judged.paths)
        return await self.runtime.in_run_thread(
            lambda: not leads_out(paths, tree) and not is_another_repository(judged.asked_git, tree)
        )

    async def _after(self, asker: Asker, hook: Hook) -> None:
        """Notice what a tool has written: an editing one says so, after a command one has to look."""
        now = self.runtime.wall()
        if hook.writes:
            places = [self.owners.of(asker.worktree, hook.cwd, path) for path in hook.writes]
            made = [write_of(asker.worktree, place.path, now) for place in places if place.path]
            await self._notice(asker, made, "edit")  # it was warned before
        elif hook.command and asker.worktree.is_dir():
            memory = self._memory(asker)
            if memory.look is None or memory.look.done():
                memory.look = asyncio.create_task(self._look(asker, memory))
            await asyncio.wait([memory.look], timeout=SHELL_LOOK_S)

    async def _look(self, asker: Asker, memory: Memory) -> None:
        """Look at what a command changed in the worktree, and notice what is new."""
        now = self.runtime.wall()
        try:
            found = await self.runtime.in_background(lambda: unsaved(self.runtime.project, asker.worktree, now))
            fresh = [write for write in found if memory.known.get(write.path, -1.0) < write.written]
            memory.known.update({write.path: write.written for write in fresh})
            text = await self._notice(asker, fresh, "shell")
            memory.unsaid += [f"covey noticed that you have written there:\n{text}"] if text else []
        except CoveyError as error:
            log.warning("what %s wrote could not be looked at: %s", asker.session, error)

    async def _notice(self, asker: Asker, made: list[Write], how: str) -> str:
        """Note what was written, and return what there is to say of it."""
        if not made or not await self.runtime.read(
            lambda call: write_check.is_news(call, asker.session, asker.task, made)
        ):
            return ""
        asker.spend(self.runtime.app.context, len(made))
        advice = await self.runtime.write(lambda call: write_check.noticed(call, asker.session, asker.task, made, how))
        return "\n".join(part for part in (advice.deny, advice.tell) if part)

    async def _guard(self, who: Principal, body: bytes) -> dict[str, str | None]:
        """Say whether a session may commit what the hooks of its git tell."""
        if who.session is None:
            return {"deny": None, "tell": None}
        asker = await self._asker(who, Hook(moment=Moment.BEFORE_TOOL))
        now, main = self.runtime.wall(), self.runtime.app.context.config.target
        scope = asker.task.scope if asker.task is not None else ()

        def look() -> list[Write]:
            return commit_paths.read(body, now, commit_paths.known_on(self.runtime.project, main, scope))

        async def judge(made: list[Write]) -> Advice:
            return await self.runtime.read(
                lambda call: write_check.check(call, asker.session, asker.task, made, at="commit")
            )

        made = await self.runtime.in_run_thread(look)
        advice = await judge(made)
        if advice.deny is not None:
            branch = task_branch(asker.task.id) if asker.task is not None else None
            place, denied = self.runtime.project, advice.denied
            left = await self.runtime.in_run_thread(
                lambda: commit_paths.unless_undone(place, main, branch, body, made, denied)
            )
            advice = await judge(left)
        if asker.run is not None:
            self.reports.commit_checked(asker.run, advice.deny.splitlines()[0] if advice.deny else None)
        return {"deny": advice.deny, "tell": advice.tell}

    # Telling

    async def _tell(self, asker: Asker, hook: Hook) -> HookReply:
        """Tell what was noticed, and unread mail; at its end the agent goes on with it."""
        if hook.sub:
            return NOTHING  # a sub-agent has a conversation of its own, in which mail would be lost
        if not asker.listens():
            return NOTHING  # we were away when it asked; what there is to tell waits for its next step
        mail = await self.mailing.offer(asker.session, asker.run, hook)
        if not asker.listens():  # it hung up meanwhile
            self.mailing.take_back(asker.session, asker.run, mail.messages)
            return NOTHING
        memory = self._memory(asker)
        parts, memory.unsaid = memory.unsaid, []
        parts += [mail.text] if mail.text else []
        if not parts:
            return NOTHING
        text = "\n\n".join(parts)
        return HookReply(go_on=text) if hook.moment is Moment.STOP else HookReply(tell=text)


def _held_back(way: way_rules.WayOut, said: Permitted) -> str:
    """Return why a command that leads out was not run, and what to do."""
    what = f"This was not run, since {way.command} leads out of the machine ({way.why})."
    plain = (
        " A plain git push in your worktree is asked about by itself." if way.kind is way_rules.EgressKind.PUSH else ""
    )
    if said.answer is Permission.ASK:
        return f"{what} A person is asked ({said.question}): go on, and try again when it is allowed.{plain}"
    return f"{what} {said.why}{plain}"
