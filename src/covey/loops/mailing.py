"""Mail on its way: told to agents at their steps, or at once, and noted as delivered when it was seen to arrive."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import stat
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from covey.agents import hooked
from covey.agents.agent import Agent
from covey.app import delivery
from covey.app.delivery import Offer
from covey.core import mail
from covey.core.heard import Heard
from covey.core.launches import Observation
from covey.core.runs import Run
from covey.loops.desk import Desk

LOOK = 4 * 1024 * 1024
"""Bytes of a transcript that are read at one look, and how far before its end the first one begins."""
LOOKS = 16
"""How often a transcript is looked at when its run has ended."""
LINE = 8 * 1024 * 1024
"""Bytes of a line beyond which nobody reads it."""
STEP = 1.0
"""Seconds after which another step of an agent shows that it has got the answer to the one before."""
TURN = 10.0
"""Seconds that a terminal program has to begin with what was typed to it."""
OUTSIDE = "outside"
"""What stands for the run of a session that covey does not run."""

log = logging.getLogger("covey.mail")


@dataclass
class Transcript:
    """A file in which an agent keeps its conversation, how far it was read, and what stood there with no answer yet."""

    path: str
    offset: int = 0
    rest: bytes = b""
    unanswered: set[str] = field(default_factory=set)

    def look(self) -> set[str]:
        """Return the messages that the model has answered to since the last look."""
        file = _open(self.path)
        if file is None:
            return set()
        with os.fdopen(file, "rb") as opened:
            size = os.fstat(file).st_size
            if size < self.offset:  # it was written anew
                self.offset, self.rest = 0, b""
            opened.seek(self.offset)
            data = opened.read(LOOK)
        self.offset += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        if len(self.rest) > LINE:
            self.rest = b""
        return self._answered(line.decode(errors="replace") for line in lines)

    def pass_over(self, *, near: int = 0) -> None:
        """Look at nothing of what is there already but the last bytes."""
        file = _open(self.path)
        if file is not None:
            self.offset, self.rest = max(os.fstat(file).st_size - near, 0), b""
            os.close(file)

    def _answered(self, lines: Iterable[str]) -> set[str]:
        found: set[str] = set()
        for line in lines:
            self.unanswered |= mail.shown(hooked.shows(line))
            if self.unanswered and hooked.answers(line):
                found |= self.unanswered
                self.unanswered.clear()
        return found


def _open(path: str) -> int | None:
    """Open a transcript that an agent has named: a file of lines of JSON and nothing else, through no link."""
    if not path.endswith(".jsonl") or not os.path.isabs(path):
        return None
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


@dataclass
class Memory:
    """What one conversation was told and has not shown yet; lost with the daemon, and then told again."""

    offered: dict[str, float] = field(default_factory=dict)
    """When each message was told; for ever, if it cannot be lost as long as the run lives."""
    prompt: set[str] | None = None
    """What its prompt carries and has not been seen; None before anybody looked."""
    said: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What was said to it, each with how often it had asked its model, and how much it had printed."""
    typed: tuple[int, float] | None = None
    """When something was typed to its terminal, and how often it had asked its model then."""
    transcript: Transcript | None = None
    looked: bool = False
    after: int = 0
    """All mail that is older was read."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass
class Mailing:
    """Brings mail to conversations, and knows what of it is on its way."""

    desk: Desk
    _memories: dict[tuple[str, str], Memory] = field(default_factory=dict)

    # At the steps of agents

    async def offer(self, session: str, run: Run | None, transcript: str, *, spoke: bool = False) -> str | None:
        """Return the mail that a session is told at this step of its agent, None if there is none.

        `spoke`: its model has just said its last word, so that all has reached it that it was told before.
        """
        memory = self._of(session, run)
        async with memory.lock:
            await self._look_at_prompt(session, run, memory)
            offer = await self._choose(session, memory)
            if offer.text is None and not memory.offered:
                return None
            arrived = await self._confirm(session, run, memory, transcript, spoke=spoke)
            if arrived or await self._went_on(session, run, memory):
                offer = await self._choose(session, memory)
            if offer.text is not None and memory.transcript is not None and not memory.offered:
                await self.desk.near(memory.transcript.pass_over)  # what is told now can only stand behind that
            memory.offered.update(dict.fromkeys(offer.messages, self.desk.awake()))
            return offer.text

    async def confirm(self, run: Run, transcript: str) -> None:
        """Note what a transcript shows to have reached the model of a run."""
        memory = self._of(run.session, run)
        async with memory.lock:
            if memory.offered:
                await self._confirm(run.session, run, memory, transcript)

    async def _choose(self, session: str, memory: Memory, *, waking: bool = False) -> Offer:
        offered, at, after = dict(memory.offered), self.desk.awake(), memory.after
        found = await self.desk.read(
            lambda call: delivery.offer(call, session, offered, at, after=after, waking=waking)
        )
        memory.after = found.after
        return found

    async def _confirm(self, session: str, run: Run | None, memory: Memory, path: str, *, spoke: bool = False) -> bool:
        """Look for what was told in a transcript, and say whether something of it has arrived."""
        if memory.transcript is None or (path and memory.transcript.path != path):
            memory.transcript, memory.looked = Transcript(path), False
        if not memory.looked:  # after a restart something may stand there that we do not know to have told
            near, memory.looked = memory.transcript, True
            await self.desk.near(lambda: near.pass_over(near=LOOK))
        seen = await self.desk.near(memory.transcript.look)
        if spoke:  # its words may not stand there yet
            seen |= memory.transcript.unanswered
            memory.transcript.unanswered.clear()
        return await self._arrived(session, run, memory, seen, "transcript")

    async def _went_on(self, session: str, run: Run | None, memory: Memory) -> bool:
        """Take another step for a sign that the answer to the last one arrived, if no transcript can show it."""
        if memory.transcript is not None and memory.transcript.offset:
            return False
        told = {each for each, at in memory.offered.items() if self.desk.awake() - at > STEP}
        return await self._arrived(session, run, memory, told, "next step")

    async def _arrived(self, session: str, run: Run | None, memory: Memory, ids: set[str], how: str) -> bool:
        """Note what has reached a model, if that is news."""
        if not ids:
            return False
        name = OUTSIDE if run is None else run.id
        news = await self.desk.read(lambda call: delivery.undelivered(call, session, ids))
        if news:
            await self.desk.write(lambda call: delivery.delivered(call, session, name, news, how))
        for each in ids:
            memory.offered.pop(each, None)
            memory.said.pop(each, None)
        memory.prompt = None if memory.prompt is None else memory.prompt - ids
        return True

    def _of(self, session: str, run: Run | None) -> Memory:
        return self._memories.setdefault((session, OUTSIDE if run is None else run.id), Memory())

    # Beside the steps

    async def attend(
        self,
        run: Run,
        agent: Agent | None,
        heard: Heard,
        seen: Observation,
        journal: str,
        say: Callable[[str], Awaitable[bool]],
    ) -> None:
        """Note what has reached a run that is alive, and tell it at once what shall wake it, if it listens."""
        memory = self._of(run.session, run)
        if memory.lock.locked():
            return  # a hook is being answered; the next look comes soon
        async with memory.lock:
            await self._look_at_prompt(run.session, run, memory)
            await self._see(run, agent, heard, seen, memory, journal)
            if agent is not None and agent.say("?") is not None and not heard.is_over and not run.person:
                await self._wake(run, heard, seen, memory, say)

    async def close(self, run: Run, agent: Agent | None, heard: Heard, seen: Observation, journal: str) -> None:
        """Note what has reached a run that is no longer alive; what has not is for the next one."""
        memory = self._of(run.session, run)
        async with memory.lock:
            await self._look_at_prompt(run.session, run, memory)
            for _ in range(LOOKS):
                before = memory.transcript.offset if memory.transcript else -1
                await self._see(run, agent, heard, seen, memory, journal)
                if memory.transcript is None or memory.transcript.offset == before:
                    break
        self._memories.pop((run.session, run.id), None)

    async def _look_at_prompt(self, session: str, run: Run | None, memory: Memory) -> None:
        """Learn what a run's prompt carries; a person who has taken a conversation over types its own."""
        if memory.prompt is not None or run is None or run.person:
            return
        path = self.desk.project.state / "runs" / run.id / "prompt.md"

        def read() -> str:
            try:
                return path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                return ""

        text = await self.desk.near(read)
        memory.prompt = set(await self.desk.read(lambda call: delivery.carried(call, session, text))) if text else set()
        memory.offered.update(dict.fromkeys(memory.prompt, math.inf))

    async def _see(
        self, run: Run, agent: Agent | None, heard: Heard, seen: Observation, memory: Memory, journal: str
    ) -> None:
        speaks = agent is not None and agent.traits.speaks
        if memory.prompt and has_its_prompt(run, heard, seen, speaks=speaks):
            await self._arrived(run.session, run, memory, set(memory.prompt), "prompt")
        if memory.said:
            went_on = {
                each
                for each, (asked, printed) in memory.said.items()
                if (heard.asked > asked or heard.is_over if speaks else seen.size > printed)
            }
            await self._arrived(run.session, run, memory, went_on, "said")
        path = memory.transcript.path if memory.transcript and memory.transcript.offset else journal
        if memory.offered and path:
            await self._confirm(run.session, run, memory, path)

    async def _wake(
        self, run: Run, heard: Heard, seen: Observation, memory: Memory, say: Callable[[str], Awaitable[bool]]
    ) -> None:
        offer = await self._choose(run.session, memory, waking=True)
        if offer.text is not None and await say(offer.text):
            # What lies in the input of a program that lives is not lost, so that it is never said twice.
            memory.offered.update(dict.fromkeys(offer.messages, math.inf))
            memory.said.update(dict.fromkeys(offer.messages, (heard.asked, seen.size)))

    # In terminals

    async def to_type(self, run: Run, *, waking: bool) -> Offer:
        """Return the mail that is typed at the empty prompt of a run; `waking`: only if something shall wake it."""
        memory = self._of(run.session, run)
        async with memory.lock:
            await self._look_at_prompt(run.session, run, memory)
            return await self._choose(run.session, memory, waking=waking)

    async def typed(self, run: Run, heard: Heard, ids: Iterable[str], journal: str) -> None:
        """Note that mail was typed to a terminal and entered; with no journal to show it, its screen has."""
        self.began(run, heard)
        memory, at = self._of(run.session, run), self.desk.awake()
        async with memory.lock:
            memory.offered.update(dict.fromkeys(ids, at))
            if not journal:
                await self._arrived(run.session, run, memory, set(ids), "screen")

    def began(self, run: Run, heard: Heard) -> None:
        """Remember that a terminal program was told something, and has to begin with it."""
        self._of(run.session, run).typed = (heard.asked, self.desk.awake())

    def is_awaited(self, run: Run, heard: Heard) -> bool:
        """Say whether a terminal program may not have begun yet with what was typed to it."""
        typed = self._of(run.session, run).typed
        return typed is not None and heard.asked <= typed[0] and self.desk.awake() - typed[1] < TURN


def has_its_prompt(run: Run, heard: Heard, seen: Observation, *, speaks: bool) -> bool:
    """Say whether the model of a run has got its prompt: it did something, or for want of words, printed or ended."""
    if speaks:
        did = heard.last_call is not None or heard.result is not None
        return did or bool(heard.bill.calls or heard.asks or heard.answered)
    ended = not seen.alive and seen.code is not None and seen.code >= 0 and run.ending is None
    return seen.size > 0 or ended
