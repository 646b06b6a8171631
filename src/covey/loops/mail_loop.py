"""Mail on its way: told to agents at their steps, or at once, and noted as delivered when it was seen to arrive."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from covey import files
from covey.agents import hook_protocol
from covey.agents.agent import Agent, traits_of
from covey.app.context import Call
from covey.app.fleet import runs as life
from covey.app.history.run_streams import cut
from covey.app.history.transcript_entries import PROMPT
from covey.app.people import mail_delivery, questions
from covey.app.people.mail_delivery import MailOffer
from covey.core.fleet.launches import Observation
from covey.core.fleet.run_state import RunState
from covey.core.fleet.runs import Run
from covey.core.fleet.task_updates import Facts
from covey.core.leases.hooks import Hook, Moment
from covey.core.people import mail
from covey.core.people.questions import Question
from covey.loops.fleet.run_launch import ANSWERED, TOLD
from covey.loops.runtime import Runtime

T = TypeVar("T")

LOOK_BYTES = 4 * 1024 * 1024
"""Bytes of a transcript that are read at one look, and how far before its end the first one begins."""
MAX_LOOKS = 16
"""How often a transcript is looked at when its run has ended."""
STEP_S = 1.0
"""Seconds after which another step of an agent shows that it has got the answer to the one before."""
MAX_UNANSWERED = 50
"""Texts that are kept of what stands in a transcript and has no answer yet."""
FORGOTTEN_AFTER_S = 3600.0
"""Seconds after which a conversation is forgotten of which nothing was heard."""
TURN_TIMEOUT_S = 10.0
"""Seconds that a terminal program has to begin with what was typed to it."""
OUTSIDE = "outside"
"""What stands for the run of a session that covey does not run."""


@dataclass
class Transcript:
    """A file in which an agent keeps its conversation, how far it was read, and what stood there with no answer yet."""

    path: str
    offset: int = 0
    rest: bytes = b""
    unanswered: list[str] = field(default_factory=list)

    def look(self) -> list[str]:
        """Return the texts with what looks like mail in them that the model has answered since the last look."""
        file = _open(self.path)
        if file is None:
            return []
        with file:
            if os.fstat(file.fileno()).st_size < self.offset:  # it was written anew
                self.offset, self.rest = 0, b""
            file.seek(self.offset)
            data = file.read(LOOK_BYTES)
        self.offset += len(data)
        lines, self.rest = cut(self.rest, data)
        return self._answered(line.decode(errors="replace") for line in lines)

    def pass_over(self, *, near: int = 0) -> None:
        """Look at nothing of what is there already but the last bytes."""
        file = _open(self.path)
        if file is not None:
            with file:
                self.offset, self.rest = max(os.fstat(file.fileno()).st_size - near, 0), b""

    def take_all(self) -> list[str]:
        """Return what has no answer yet, as if it had one."""
        found, self.unanswered = self.unanswered, []
        return found

    def _answered(self, lines: Iterable[str]) -> list[str]:
        found: list[str] = []
        for line in lines:
            text = hook_protocol.shows(line)
            if mail.named(text):
                self.unanswered = [*self.unanswered, text][-MAX_UNANSWERED:]
            if self.unanswered and hook_protocol.answers(line):
                found += self.take_all()
        return found


def _open(path: str) -> IO[bytes] | None:
    """Open a transcript that an agent has named: a file of lines of JSON and nothing else, through no link."""
    if not path.endswith(".jsonl") or not os.path.isabs(path):
        return None
    try:
        return files.open_to_read(Path(path))
    except (OSError, ValueError):
        return None


@dataclass
class Said:
    """How far a run was when something was said to it."""

    asked: int
    """How often it had asked its model."""
    printed: int
    """Bytes that it had printed."""
    used: int | None = None
    """How many tools it had used when it was first seen to have asked its model again."""

    def is_heard(self, run: Run, heard: RunState, seen: Observation, *, speaks: bool) -> bool:
        """Say whether its model has gone on since with what was said; one that failed has not."""
        if not speaks:
            return seen.size > self.printed or _ended_itself(run, seen)
        if heard.asked <= self.asked:
            return False
        self.used = len(heard.used) if self.used is None else self.used
        return heard.result is not None or len(heard.used) > self.used


@dataclass
class Memory:
    """What one conversation was told and has not shown yet; lost with the daemon, and then told again."""

    offered: dict[str, float] = field(default_factory=dict)
    """When each message was told; for ever, if it cannot be lost as long as the run lives."""
    prompt: set[str] | None = None
    """What its prompt carries and has not been seen; None before anybody looked."""
    answers: set[str] = field(default_factory=set)
    """The questions whose answers its prompt carries and that have not been seen."""
    facts: Facts = ()
    """The parts of its task that it has heard as soon as it has its prompt."""
    said: dict[str, Said] = field(default_factory=dict)
    """What was said to it, and how far it was then."""
    stopped: set[str] = field(default_factory=set)
    """What it was told when it was about to end its turn, and went on for."""
    typed: tuple[int, float] | None = None
    """When something was typed to its terminal, and how often it had asked its model then."""
    transcript: Transcript | None = None
    looked: bool = False
    after: int = 0
    """All mail that is older was read."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    used: float = 0.0

    @property
    def reads(self) -> Transcript | None:
        """Return its transcript, if it has been seen to be one."""
        return self.transcript if self.transcript is not None and self.transcript.offset else None


@dataclass
class Mailing:
    """Brings mail to conversations, and knows what of it is on its way."""

    runtime: Runtime
    _memories: dict[tuple[str, str], Memory] = field(default_factory=dict)

    # At the steps of agents

    async def offer(self, session: str, run: Run | None, hook: Hook) -> MailOffer:
        """Return the mail that a session is told at this step of its agent."""
        memory = self._of(session, run)
        # What made an agent go on at its end once, and was not seen there, would make it go on for ever.
        stops = hook.moment is Moment.STOP
        async with memory.lock:
            if stops and not hook.again:
                memory.stopped.clear()
            barred = memory.stopped if stops else set[str]()
            self._name(memory, hook.transcript)
            await self._look_at_prompt(session, run, memory)
            offer = await self._choose(session, memory, barred=barred)
            if offer.text is None and not memory.offered:
                return offer
            arrived = await self._confirm(session, run, memory, hook.transcript, spoke=stops and bool(hook.message))
            if not arrived and memory.reads is None:  # no transcript can show it: another step is a sign as well
                told = {each for each, at in memory.offered.items() if self.runtime.awake() - at > STEP_S}
                arrived = await self._arrived(session, run, memory, told, "next step")
            if arrived:
                offer = await self._choose(session, memory, barred=barred)
            if offer.text is not None and memory.transcript is not None and not memory.offered:
                await self.runtime.in_run_thread(
                    memory.transcript.pass_over
                )  # what is told now can only stand behind that
            memory.offered.update(dict.fromkeys(offer.messages, self.runtime.awake()))
            memory.stopped.update(offer.messages if stops else ())
            return offer

    def take_back(self, session: str, run: Run | None, messages: Iterable[str]) -> None:
        """Remember that nobody was there any more to be told some messages."""
        memory = self._of(session, run)
        for each in messages:
            memory.offered.pop(each, None)
            memory.stopped.discard(each)

    async def confirm(self, run: Run, transcript: str) -> None:
        """Note what a transcript shows to have reached the model of a run."""
        memory = self._of(run.session, run)
        async with memory.lock:
            if memory.offered:
                await self._confirm(run.session, run, memory, transcript)

    async def _choose(
        self, session: str, memory: Memory, *, waking: bool = False, barred: Iterable[str] = ()
    ) -> MailOffer:
        offered, at, after = memory.offered | dict.fromkeys(barred, math.inf), self.runtime.awake(), memory.after
        found = await self.runtime.read(
            lambda call: mail_delivery.offer(call, session, offered, at, after=after, waking=waking)
        )
        memory.after = found.after
        return found

    async def _confirm(self, session: str, run: Run | None, memory: Memory, path: str, *, spoke: bool = False) -> bool:
        """Look for what was told in a transcript, and say whether something of it has arrived."""
        self._name(memory, path)
        if memory.transcript is None:
            return False
        if not memory.looked:  # after a restart something may stand there that we do not know to have told
            near, memory.looked = memory.transcript, True
            await self.runtime.in_run_thread(lambda: near.pass_over(near=LOOK_BYTES))
        texts = await self.runtime.in_run_thread(memory.transcript.look)
        if spoke:  # its words may not stand there yet
            texts += memory.transcript.take_all()
        if not texts:
            return False
        offered, after = set(memory.offered), memory.after

        def whole(call: Call) -> set[str]:
            return {each for text in texts for each in mail_delivery.carried(call, session, text, offered, after)}

        return await self._arrived(session, run, memory, await self.runtime.read(whole), "transcript")

    @staticmethod
    def _name(memory: Memory, path: str) -> None:
        """Take a file for the transcript of a conversation, if none is known, or it is another."""
        if path and (memory.transcript is None or memory.transcript.path != path):
            memory.transcript, memory.looked = Transcript(path), False

    async def _arrived(self, session: str, run: Run | None, memory: Memory, ids: set[str], how: str) -> bool:
        """Note what has reached a model, if that is news."""
        if not ids:
            return False
        name = OUTSIDE if run is None else run.id
        news = await self.runtime.read(lambda call: mail_delivery.undelivered(call, session, ids))
        if news:
            await self.runtime.write(lambda call: mail_delivery.delivered(call, session, name, news, how))
        for each in ids:
            memory.offered.pop(each, None)
            memory.said.pop(each, None)
        memory.prompt = None if memory.prompt is None else memory.prompt - ids
        return True

    def _of(self, session: str, run: Run | None) -> Memory:
        key, at = (session, OUTSIDE if run is None else run.id), self.runtime.awake()
        if key not in self._memories:
            self._memories = {
                each: known
                for each, known in self._memories.items()
                if at - known.used < FORGOTTEN_AFTER_S or known.lock.locked()
            }
        memory = self._memories.setdefault(key, Memory())
        memory.used = at
        return memory

    # Beside the steps

    async def attend(
        self,
        run: Run,
        agent: Agent | None,
        heard: RunState,
        seen: Observation,
        journal: str,
        say: Callable[[str], Awaitable[int | None]],
    ) -> None:
        """Note what has reached a run that is alive, and tell it at once what shall wake it, if it listens.

        `say` returns how much the run had printed when it was told, and lets `heard` know of what it had said by then.
        """
        memory = self._of(run.session, run)
        if memory.lock.locked():
            return  # a hook is being answered; the next look comes soon
        async with memory.lock:
            await self._look_at_prompt(run.session, run, memory)
            await self._see(run, agent, heard, seen, memory, journal)
            if agent is not None and agent.say("?") is not None and not heard.is_over and not run.person:
                await self._wake(run, heard, memory, say)

    async def close(self, run: Run, agent: Agent | None, heard: RunState, seen: Observation, journal: str) -> None:
        """Note what has reached a run that is no longer alive; what has not is for the next one."""
        memory = self._of(run.session, run)
        async with memory.lock:
            await self._look_at_prompt(run.session, run, memory)
            for _ in range(MAX_LOOKS):
                before = memory.transcript.offset if memory.transcript else -1
                await self._see(run, agent, heard, seen, memory, journal)
                if memory.transcript is None or memory.transcript.offset == before:
                    break
        self._memories.pop((run.session, run.id), None)

    async def _look_at_prompt(self, session: str, run: Run | None, memory: Memory) -> None:
        """Learn which mail and answers a run's prompt carries; a person who took a conversation over types its own."""
        if memory.prompt is not None or run is None or run.person:
            return
        folder = self.runtime.project.run_folder(run.id)
        text, memory.facts, answered = await self.runtime.in_run_thread(
            lambda: (
                files.read_if_any(folder / PROMPT),
                _noted(folder / TOLD, Facts),
                _noted(folder / ANSWERED, tuple[str, ...]),
            )
        )
        memory.answers = set(answered)
        carried = await self.runtime.read(lambda call: set(mail_delivery.carried(call, session, text)))
        memory.prompt = carried
        memory.offered.update(dict.fromkeys(carried, math.inf))

    async def _see(
        self, run: Run, agent: Agent | None, heard: RunState, seen: Observation, memory: Memory, journal: str
    ) -> None:
        """Note what a run shows to have reached it: by what it does, by its transcript, or by going on."""
        traits = traits_of(agent)
        speaks = traits.speaks
        # A script gets no prompt: it looks for its mail itself.
        has_prompt = not traits.script and has_its_prompt(run, heard, seen, speaks=speaks)
        # A conversation holds its prompt although no model answered if it asked one, and says that it was refused.
        # Whoever takes it up again sends the prompt with it; if it cannot be taken up, all is told anew.
        is_kept = heard.asked > 0 and heard.failed is not None
        if memory.facts and (has_prompt or is_kept):  # before its mail, which may tell of newer ones
            told, memory.facts = memory.facts, ()
            await self.runtime.write(lambda call: life.heard(call, run, told))
        if (memory.prompt or memory.answers) and has_prompt:
            await self._has_answers(memory)
            await self._arrived(run.session, run, memory, set(memory.prompt or ()), "prompt")
        await self._see_transcript(run, memory, journal)
        if memory.said and memory.reads is None:  # what shows the conversation itself shows it better
            went_on = {each for each, said in memory.said.items() if said.is_heard(run, heard, seen, speaks=speaks)}
            await self._arrived(run.session, run, memory, went_on, "said")

    async def _see_transcript(self, run: Run, memory: Memory, journal: str) -> None:
        """Note what the transcript of a run shows, or its journal as long as nobody has named the transcript."""
        if not memory.offered or (memory.transcript is None and not journal):
            return
        if memory.reads is not None or (memory.transcript is not None and not memory.looked):
            journal = ""
        await self._confirm(run.session, run, memory, journal)

    async def _has_answers(self, memory: Memory) -> None:
        """Note that whoever asked knows what a person has answered."""
        ids, memory.answers = memory.answers, set()

        def write(call: Call) -> None:
            for each in ids:
                question = call.tx.get(Question, each)
                if question is not None:
                    questions.told(call, question)

        if ids:
            await self.runtime.write(write)

    async def _wake(
        self, run: Run, heard: RunState, memory: Memory, say: Callable[[str], Awaitable[int | None]]
    ) -> None:
        offer = await self._choose(run.session, memory, waking=True)
        printed = None if offer.text is None else await say(offer.text)
        if printed is not None:
            # What lies in the input of a program that lives is not lost, so that it is never said twice.
            memory.offered.update(dict.fromkeys(offer.messages, math.inf))
            memory.said.update({each: Said(heard.asked, printed) for each in offer.messages})

    # In terminals

    async def to_type(self, run: Run, *, waking: bool) -> MailOffer:
        """Return the mail that is typed at the empty prompt of a run; `waking`: only if something shall wake it."""
        memory = self._of(run.session, run)
        async with memory.lock:
            await self._look_at_prompt(run.session, run, memory)
            return await self._choose(run.session, memory, waking=waking)

    async def typed(self, run: Run, heard: RunState, ids: Iterable[str], journal: str) -> None:
        """Note that mail was typed to a terminal and entered; with no journal to show it, its screen has."""
        self.began(run, heard)
        memory, at = self._of(run.session, run), self.runtime.awake()
        async with memory.lock:
            memory.offered.update(dict.fromkeys(ids, at))
            if not journal:
                await self._arrived(run.session, run, memory, set(ids), "screen")

    def began(self, run: Run, heard: RunState) -> None:
        """Remember that a terminal program was told something, and has to begin with it."""
        self._of(run.session, run).typed = (heard.asked, self.runtime.awake())

    def is_awaited(self, run: Run, heard: RunState) -> bool:
        """Say whether a terminal program may not have begun yet with what was typed to it."""
        typed = self._of(run.session, run).typed
        return typed is not None and heard.asked <= typed[0] and self.runtime.awake() - typed[1] < TURN_TIMEOUT_S


def _noted(path: Path, kind: type[tuple[T, ...]]) -> tuple[T, ...]:
    """Return what was noted beside a prompt; nothing if the file is not as we wrote it: then it is told again."""
    try:
        return msgspec.json.decode(files.read_if_any(path), type=kind)
    except msgspec.MsgspecError:
        return ()


def has_its_prompt(run: Run, heard: RunState, seen: Observation, *, speaks: bool) -> bool:
    """Say whether the model of a run has got its prompt: it did something, or for want of words, printed or ended."""
    if speaks:
        did = heard.last_call is not None or heard.result is not None
        return did or bool(heard.bill.calls or heard.asks or heard.answered)
    return seen.size > 0 or _ended_itself(run, seen)


def _ended_itself(run: Run, seen: Observation) -> bool:
    return not seen.alive and seen.code is not None and seen.code >= 0 and run.ending is None
