"""Programs that live in virtual time: what one does, says, asks, spends and leaves behind, good or bad."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

from covey.core.fleet import signals
from covey.core.fleet.launches import Activity, Launch, Observation
from covey.core.fleet.signals import Signal, Trouble, Usage, Wants
from covey.errors import Refused
from covey.runners.process import ProcessRunner
from tests.end_to_end.night.agents import spoken
from tests.end_to_end.night.virtual import VirtualLoop

MIB = 1024 * 1024
RETRIES = 4
"""How often a program asks its model again before it gives up."""
MODEL = "moon-1"


class Sky(Protocol):
    """What programs see of the world: the weather over their provider, what it charges, git, and people."""

    def trouble(self, agent: str) -> tuple[Trouble, float | None] | None:
        """Return what keeps a provider from answering now, and until when if it says so."""

    def charge(self, program: Program, cost: float, usage: Usage) -> None:
        """Note that a call of a model was paid for."""

    def commit(self, program: Program, kind: str) -> None:
        """Commit something in a program's worktree."""

    def scatter(self, program: Program) -> None:
        """Leave something in a program's worktree that is not committed."""

    async def ask(self, program: Program, text: str) -> str | None:
        """Ask the person by `covey ask`, and return the question; None if nobody answers the door."""

    async def fetch(self, program: Program, question: str) -> bool:
        """Take the answer to a question, if there is one."""

    def total(self, program: Program) -> tuple[float, Usage]:
        """Return what the conversation of a program cost so far."""


@dataclass
class Program:
    """One process with what can be seen of it."""

    run: str
    launch: Launch
    sky: Sky
    chance: Random
    loop: VirtualLoop
    output: bytearray = field(default_factory=bytearray)
    alive: bool = True
    code: int | None = None
    held: bool = False
    finished: bool = False
    processes: int = 1
    connections: int = 0
    guilty: str = ""
    """Why it may be ended as stalled; empty if that would be wrong."""
    conversation: str = ""
    inbox: list[str] = field(default_factory=list)
    spent: float = 0.0
    tokens: int = 0
    first_call: tuple[float, int] | None = None
    _busy_since: float | None = None
    _cpu: float = 0.0
    _held_at: float = 0.0
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def agent(self) -> str:
        return self.launch.env.get("NIGHT_AGENT", "plain")

    @property
    def name(self) -> str:
        """Return the task that it works on."""
        return self.launch.env.get("COVEY_TASK", "")

    @property
    def session(self) -> str:
        return self.launch.env.get("COVEY_SESSION", "")

    @property
    def speaks(self) -> bool:
        return "NIGHT_CONVERSATION" in self.launch.env

    # What is seen

    def look(self) -> Observation:
        return Observation(True, self.alive, self.code, len(self.output), held=self.held and self.alive)

    def activity(self) -> Activity:
        return Activity(self.cpu, self.processes, 150 * MIB, self.connections)

    @property
    def cpu(self) -> float:
        running = 0.0 if self._busy_since is None or self.held else self.loop.time() - self._busy_since
        return self._cpu + running

    # What is done to it

    def begin(self, life: Coroutine[Any, Any, None]) -> None:
        self.task = self.loop.create_task(self._live(life))

    async def _live(self, life: Coroutine[Any, Any, None]) -> None:
        await life
        self.end(0)

    def end(self, code: int | None) -> None:
        """End it at once; of None nobody knows how."""
        if self.alive:
            self.alive, self.code = False, code
            if self.task is not None:
                self.task.cancel()

    def hold(self, *, on: bool) -> None:
        if on is self.held:
            return
        now = self.loop.time()
        if on:
            self._cpu, self._held_at = self.cpu, now
        else:
            self._busy_since = None if self._busy_since is None else now
        self.held = on
        self._news.set()

    def hear(self, text: str) -> None:
        if not self.alive or not self.launch.typed:
            raise Refused(f"{self.run} takes no input.")
        self.inbox.append(text)
        self._news.set()

    def finish(self) -> None:
        self.finished = True
        self._news.set()

    # What it does

    def busy(self, *, on: bool) -> None:
        self._cpu = self.cpu
        self._busy_since = self.loop.time() if on else None

    def exit(self, code: int) -> None:
        """Be no more."""
        self.alive, self.code = False, code
        raise asyncio.CancelledError

    def say(self, *said: Signal) -> None:
        for signal in said:
            self.print(spoken(signal))

    def print(self, line: str) -> None:
        if self.alive:
            self.output += line.encode() + b"\n"

    async def passes(self, seconds: float) -> None:
        """Let time pass in which it does not stand still."""
        left = seconds
        while True:
            await self._until(lambda: not self.held)
            began = self.loop.time()
            try:
                async with asyncio.timeout(left):
                    await self._until(lambda: self.held)
            except TimeoutError:
                return
            left -= self._held_at - began

    async def _until(self, good: Callable[[], bool]) -> None:
        while not good():
            self._news.clear()
            await self._news.wait()

    async def hears(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for something that is typed."""
        while True:
            while self.inbox:
                text = self.inbox.pop(0)
                told = json.loads(text) if text.startswith("{") else {"say": text}
                if wanted(told):
                    await self._until(lambda: not self.held)
                    return told
            await self._until(lambda: bool(self.inbox))

    async def works(self, minutes: float) -> None:
        """Work as agents do: ask the model, use a tool, and so on."""
        left = minutes * 60
        while left > 0:
            part = min(self.chance.uniform(60, 400), left)
            left -= part
            await self.call()
            await self.tool(part)

    async def tool(self, seconds: float, about: str = "") -> None:
        number = self.chance.randrange(10**9)
        if self.speaks:
            self.say(signals.Calls(str(number), "shell", about or f"make part-{number}"))
        self.busy(on=True)
        await self.passes(seconds)
        self.busy(on=False)
        if self.speaks:
            self.say(signals.Called(str(number)))
        else:
            self.print("still at it")

    async def call(self) -> None:
        """Ask the model once, whatever the weather; give up when it has been refused too often."""
        if not self.speaks:
            return
        for attempt in range(RETRIES + 1):
            self.say(signals.Waits())
            self.connections = 1
            await self.passes(self.chance.uniform(35, 60))
            self.connections = 0
            trouble = self.sky.trouble(self.agent)
            if trouble is None:
                self._pay()
                self.say(signals.Said("I see."))
                return
            kind, until = trouble
            if kind is Trouble.KEY or attempt == RETRIES or (until is not None and self.chance.random() < 0.7):
                self.say(signals.Failed(f"{kind}: it cannot be asked", kind, until))
                await self.rests(1)
            self.say(signals.Limited(kind, f"{kind}, try {attempt + 1}", until, 30.0))
            await self.passes(self.chance.uniform(10, 90))

    def _pay(self) -> None:
        if self.first_call is None:
            self.first_call = self.chance.uniform(0.02, 0.09), self.chance.randrange(4_000, 9_000)
        cost = round(self.chance.uniform(0.3, 1.0) * self.first_call[0], 6) if self.spent else self.first_call[0]
        tokens = int(self.chance.uniform(0.3, 1.0) * self.first_call[1]) if self.tokens else self.first_call[1]
        cost = round(cost, 6)
        self.spent, self.tokens = self.spent + cost, self.tokens + tokens
        usage = Usage(tokens - tokens // 4, tokens // 4)
        self.sky.charge(self, cost, usage)
        name = f"call-{self.run}-{self.chance.randrange(10**9)}"
        self.say(signals.Spent(name, usage, MODEL, cost))

    async def rests(self, code: int = 0) -> None:
        """Wait until its input ends, and end."""
        await self._until(lambda: self.finished and not self.held)
        self.exit(code)

    def sums_up(self) -> None:
        """Say what the whole conversation cost, if it is a program that does."""
        if self.agent == "owl":
            cost, usage = self.sky.total(self)
            self.say(signals.Total(usage, MODEL, cost, whole=True))

    async def results(self, text: str = "All done.") -> None:
        """Say the last word, and end when nothing more is asked of it."""
        if self.speaks:
            self.sums_up()
            self.say(signals.Result(text))
            await self.rests()
        self.print("done")
        self.exit(0)

    async def asks(self, *, permission: bool) -> bool:
        """Ask a person, and say whether the answer was yes, or any words."""
        if not self.speaks:
            self.print(json.dumps({"covey": "ask", "text": "Which one?"}))
            told = await self.hears(lambda told: True)
            self.print(json.dumps({"covey": "working"}))
            return "deny" not in str(told)
        name = f"q-{self.chance.randrange(10**9)}"
        if permission:
            about = f"deploy part-{self.chance.randrange(40)}"
            self.say(signals.Asks(f"May I run {about}?", name, Wants.PERMISSION, "shell", about))
        else:
            self.say(signals.Asks("Red or blue?", name, choices=("red", "blue")))
        told = await self.hears(lambda told: told.get("answer") == name)
        self.say(signals.Works())
        return bool(told["allows"] or told["text"])


# How runs go. Each is the whole life of a program.

Life = Callable[[Program], Awaitable[None]]


async def goes_well(program: Program) -> None:
    await program.works(program.chance.uniform(3, 40))
    program.sky.commit(program, "good")
    await program.results()


async def commits_bad_work(program: Program) -> None:
    await program.works(program.chance.uniform(3, 20))
    program.sky.commit(program, "bad")
    await program.results()


async def commits_what_conflicts(program: Program) -> None:
    await program.works(program.chance.uniform(3, 60))
    program.sky.commit(program, "shared")
    await program.results()


async def touches_what_is_guarded(program: Program) -> None:
    await program.works(program.chance.uniform(3, 20))
    program.sky.commit(program, "guarded")
    await program.results()


async def ends_without_a_word(program: Program) -> None:
    await program.works(program.chance.uniform(1, 20))
    program.exit(0)


async def does_nothing(program: Program) -> None:
    await program.works(program.chance.uniform(1, 10))
    await program.results()


async def leaves_a_dirty_tree(program: Program) -> None:
    await program.works(program.chance.uniform(1, 20))
    program.sky.commit(program, "good")
    program.sky.scatter(program)
    await program.results()


async def is_killed(program: Program) -> None:
    await program.works(program.chance.uniform(0.1, 10))
    program.sky.scatter(program)
    program.exit(program.chance.choice((-9, -11, -6)))


async def crashes_at_once(program: Program) -> None:
    await program.passes(program.chance.uniform(1, 20))
    program.exit(-11)


async def is_lost(program: Program) -> None:
    await program.works(program.chance.uniform(1, 20))
    program.end(None)


async def fails_by_exit_code(program: Program) -> None:
    await program.works(program.chance.uniform(1, 20))
    if program.speaks:
        program.say(signals.Failed("I give up."))
    program.exit(3)


async def hangs(program: Program) -> None:
    await program.works(program.chance.uniform(1, 20))
    program.guilty = "hangs"
    await program.passes(1e9)


async def builds_in_silence(program: Program) -> None:
    await program.works(program.chance.uniform(1, 5))
    program.processes = 3
    if program.speaks:
        program.say(signals.Calls("build", "shell", "make world"))
    await program.passes(program.chance.uniform(6, 35) * 60)  # its child waits for a lock: no processor time at all
    program.processes = 1
    if program.speaks:
        program.say(signals.Called("build"))
    await goes_well(program)


async def thinks_in_silence(program: Program) -> None:
    await program.works(program.chance.uniform(1, 5))
    program.busy(on=True)
    await program.passes(program.chance.uniform(6, 35) * 60)
    program.busy(on=False)
    await goes_well(program)


async def waits_for_its_model(program: Program) -> None:
    """A request that takes long, and is answered."""
    await program.works(program.chance.uniform(1, 5))
    program.connections = 1
    if program.speaks:
        program.say(signals.Waits())
    await program.passes(program.chance.uniform(6, 13) * 60)
    program.connections = 0
    await goes_well(program)


async def is_never_answered(program: Program) -> None:
    await program.works(program.chance.uniform(1, 5))
    program.connections = 1
    if program.speaks:
        program.say(signals.Waits())
    program.guilty = "is never answered"
    await program.passes(1e9)


async def asks_for_permission(program: Program) -> None:
    await program.works(program.chance.uniform(1, 10))
    for _ in range(program.chance.randrange(1, 4)):
        await program.asks(permission=True)
    await goes_well(program)


async def asks_a_question(program: Program) -> None:
    await program.works(program.chance.uniform(1, 10))
    await program.asks(permission=False)
    await goes_well(program)


async def asks_by_command(program: Program) -> None:
    """Ask by `covey ask`, and wait for the answer or end the turn."""
    await program.works(program.chance.uniform(1, 10))
    question = await program.sky.ask(program, f"How shall {program.name} be done?")
    if question is None:
        await goes_well(program)
    if program.chance.random() < 0.5:
        await program.results("I wait for the answer.")
    for _ in range(40):
        await program.tool(60.0)
        if question is not None and await program.sky.fetch(program, question):
            break
    await goes_well(program)


async def fills_its_context(program: Program) -> None:
    await program.works(program.chance.uniform(1, 10))
    if program.speaks:
        program.say(signals.Context(95, 100))
        await program.hears(lambda told: told.get("say") == "compact")
        program.say(signals.Compacts())
        await program.passes(program.chance.uniform(30, 600))
        program.say(signals.Compacts(on=False), signals.Context(10, 100))
    await goes_well(program)


async def has_too_long_a_conversation(program: Program) -> None:
    await _fails(program, Trouble.CONTEXT)


async def has_a_broken_conversation(program: Program) -> None:
    await _fails(program, Trouble.CORRUPT)


async def _fails(program: Program, trouble: Trouble) -> None:
    await program.works(program.chance.uniform(1, 10))
    if program.speaks:
        program.say(signals.Failed(f"{trouble}: no more", trouble))
        await program.rests(1)
    program.exit(1)


async def repeats_itself(program: Program) -> None:
    await program.works(program.chance.uniform(1, 5))
    listens = program.chance.random() < 0.5
    for _ in range(14 if program.speaks else 0):
        if listens and any("same thing" in text for text in program.inbox):
            await goes_well(program)
        program.guilty = "repeats itself"
        await program.call()
        await program.tool(20.0, "cat the-same")
    await goes_well(program)


async def takes_too_long(program: Program) -> None:
    await program.works(600)


async def spends_too_much(program: Program) -> None:
    for number in range(2_000):
        await program.call()
        await program.tool(2.0)
        if number % 3 == 2:
            program.sums_up()


async def takes_several_turns(program: Program) -> None:
    """Name the whole cost of the conversation between two turns, as some programs do."""
    turns = program.chance.randrange(2, 5)
    for _ in range(turns):
        await program.works(program.chance.uniform(1, 12))
        program.sums_up()
    program.sky.commit(program, "good")
    await program.results()


async def is_used_by_a_person(program: Program) -> None:
    await program.passes(program.chance.uniform(3, 45) * 60)
    if program.chance.random() < 0.5:
        program.sky.commit(program, "good")
    program.exit(0)


FAULTS: dict[Life, float] = {
    commits_bad_work: 5,
    commits_what_conflicts: 4,
    touches_what_is_guarded: 2,
    ends_without_a_word: 4,
    does_nothing: 3,
    leaves_a_dirty_tree: 3,
    is_killed: 4,
    crashes_at_once: 2,
    is_lost: 4,
    fails_by_exit_code: 3,
    hangs: 4,
    builds_in_silence: 4,
    thinks_in_silence: 4,
    waits_for_its_model: 3,
    is_never_answered: 3,
    asks_for_permission: 5,
    asks_a_question: 4,
    asks_by_command: 4,
    fills_its_context: 3,
    has_too_long_a_conversation: 2,
    has_a_broken_conversation: 2,
    repeats_itself: 3,
    takes_too_long: 2,
    spends_too_much: 5,
    takes_several_turns: 4,
}
"""What goes wrong, and how often in proportion."""


@dataclass
class Runs(ProcessRunner):
    """A runner in virtual time: its programs outlive whoever started them."""

    loop: VirtualLoop
    sky: Sky
    folder: Path
    life_of: Callable[[Program], Coroutine[Any, Any, None]]
    chance_of: Callable[[str], Random]
    programs: dict[str, Program] = field(default_factory=dict)
    prevented: set[str] = field(default_factory=set)

    def start(self, run_id: str, launch: Launch) -> None:
        if run_id in self.programs or run_id in self.prevented:
            return
        program = Program(run_id, launch, self.sky, self.chance_of(run_id), self.loop)
        self.programs[run_id] = program
        (self.folder / run_id).mkdir(parents=True, exist_ok=True)
        program.begin(self.life_of(program))

    def look(self, run_id: str) -> Observation:
        program = self.programs.get(run_id)
        if program is not None:
            return program.look()
        if run_id in self.prevented:
            return Observation(True, False, failure="It was stopped before it had started.")
        return Observation(known=False, alive=False)

    def end_of(self, run_id: str) -> int | None:
        return None

    def output(self, run_id: str, since: int) -> tuple[bytes, int]:
        program = self.programs.get(run_id)
        data = b"" if program is None else bytes(program.output[since : since + 64 * 1024])
        return data, since + len(data)

    def errors(self, run_id: str) -> bytes:
        return b""

    def type(self, run_id: str, text: str) -> None:
        if run_id not in self.programs:
            raise Refused(f"{run_id} takes no input.")
        self.programs[run_id].hear(text)

    def finish(self, run_id: str) -> None:
        if run_id in self.programs:
            self.programs[run_id].finish()

    def activity(self, run_id: str, *, memory: bool = False) -> Activity | None:
        program = self.programs.get(run_id)
        return program.activity() if program is not None and program.alive else None

    def stop(self, run_id: str) -> None:
        if run_id in self.programs:
            self.programs[run_id].end(-15)
        else:
            self.prevented.add(run_id)

    def hold(self, run_id: str, *, on: bool) -> None:
        if run_id in self.programs and self.programs[run_id].alive:
            self.programs[run_id].hold(on=on)

    def forget(self, run_id: str) -> None:
        if run_id in self.programs and self.programs[run_id].alive:
            raise Refused(f"{run_id} is alive.")

    def attach_command(self, run_id: str, *, read_only: bool = False) -> list[str]:
        return ["true"]

    def is_used(self, run_id: str) -> bool:
        return False

    @property
    def alive(self) -> list[Program]:
        return [program for program in self.programs.values() if program.alive]
