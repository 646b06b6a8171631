"""What the fleet remembers: its loop writes it, and verbs ask it. Lost with the daemon, and learnt again.

Of runs that is what they write, read on from where we were and understood line by line, and what follows from it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import partial

from covey import files
from covey.agents.agent import Sight, terminal_of
from covey.app.clock import Clock
from covey.app.context import FleetView
from covey.app.history.run_streams import Journal, Ledger, Output, Reader, cut
from covey.core.board.waiting import Cause
from covey.core.costs.spending import Used
from covey.core.fleet.launches import Observation
from covey.core.fleet.runs import TMUX, Run
from covey.core.fleet.sessions import SessionState
from covey.core.fleet.signals import Compacts, Limited, Signal, Works
from covey.core.fleet.start_limits import Wait
from covey.core.fleet.watchdog import Signs, Verdict
from covey.core.leases.hooks import Hook, Moment
from covey.core.people.alerts import AlertKind
from covey.loops.fleet.pacing import Starts
from covey.loops.fleet.run_launch import SEEN
from covey.loops.runtime import Runtime
from covey.runners.machine import free_memory
from covey.values import dataclass

BRINGS_MAIL = (Moment.USER_PROMPT, Moment.AFTER_TOOL, Moment.STOP)
"""The steps at which an agent is told its mail, so that none has to be typed."""
MAX_UNREAD_BYTES = 64 * 1024 * 1024
"""Bytes that are read at most of what was printed before we began to listen."""
LONG_AGO = -1e9
"""A time of the awake clock before all others."""

log = logging.getLogger("covey.hooks")


@dataclass
class Tail:
    """How far something was read, and the beginning of a line that has not ended."""

    read: int = 0
    rest: bytes = b""

    def follow(self, source: Output, size: int) -> Iterator[bytes]:
        """Yield the lines that were written since; what nobody can read any more is passed over."""
        if size - self.read > MAX_UNREAD_BYTES:
            self.read, self.rest = size - MAX_UNREAD_BYTES, b""
        while True:
            data, following = source(self.read)
            if not data:
                return
            self.read = following
            lines, self.rest = cut(self.rest, data)
            yield from lines

    def last(self) -> Iterator[bytes]:
        """Yield a last line that nothing ended."""
        line, self.rest = self.rest, b""
        yield line


# What is remembered of runs


@dataclass
class Watched(Signs):
    """What we remember of a run while we watch it; lost with us, and made again from what it wrote."""

    session: str
    tail: Tail = field(default_factory=Tail)
    at_work: float = 0.0
    looked: float | None = None
    sampled: float = -1e9
    weighed: float = -1e9
    memory: int = 0
    judged: float = -1e9
    counted: float = -1e9
    verdict: Verdict | None = None
    compacted: int = 0
    finished: bool = False
    limits: int = 0
    before: dict[str, Used] | None = None
    rates: dict[str, Used] = field(default_factory=dict)
    """What earlier runs of its agent paid for each model."""
    usual: Used | None = None
    """What one call of its agent usually costs; None if nobody has looked."""
    ledger: Ledger | None = None
    ledger_parts: dict[str, tuple[Journal, Tail]] = field(default_factory=dict)
    """Where a program writes what it spends, and how far that was read."""
    ledger_sought: float = -1e9
    bill_asked: float = -1e9
    billed: int = 1
    """How many turns it had taken when it was last asked what it cost."""
    over_at: int | None = None
    """How many calls it had made when it was first seen to have used up what it may spend, and when that was."""
    over_since: float = 0.0
    guessed: bool = False
    """Not all of what it used has a price that somebody has named."""
    used: dict[str, Used] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    """The models of which it says what the whole conversation cost."""
    next_call: Used = field(default_factory=Used)
    journal: Journal | None = None
    """Where a terminal program writes its conversation."""
    prompted: bool = False
    hooked: bool = False
    """Its hooks reach us: mail is told by them."""
    refused: str | None = None
    """Why the last commit that it tried was refused, None if it was not."""
    wrote: tuple[str, ...] = ()
    """The files that it changed, as was seen at its end."""
    missed: int = 0
    """How many uses of tools went by without covey."""
    overheard: list[Signal] = field(default_factory=list)
    """What its hooks said since we last listened."""
    typed: float = -1e9
    sight: Sight | None = None
    shown: Limited | Compacts | None = None
    """What only its screen says of it."""
    used_at: float | None = None
    """When a person was last at its terminal."""
    dialog_at: float = 0.0
    dialog: str | None = None
    """What a dialog on its screen asks."""
    learnt: tuple[float | None, tuple[AlertKind, str] | None] | None = None
    """What was learnt from its end, once: until when its session waits, and the alert that a person gets."""

    @property
    def journal_path(self) -> str:
        """Return where a terminal program writes its conversation, empty if that is not known."""
        return "" if self.journal is None else self.journal.path

    def hear(self, reader: Reader | None, lines: Iterable[bytes], at: float) -> None:
        """Understand lines of it, as far as there is somebody who can."""
        for line in lines:
            for signal in [] if reader is None else reader(line.decode(errors="replace")):
                self.heard.take(signal, at)

    def work_on(self, seen: Observation, at: float) -> float:
        """Return for how many seconds it has not stood still, been put off, or waited for a person."""
        asks = self.verdict is not None and self.verdict.state is SessionState.NEEDS_YOU
        if self.looked is None:
            self.at_work = 0.0  # of a run that we take up, nobody knows for how long it stood still
        elif not (seen.held or asks or self.heard.limited is not None):
            self.at_work += at - self.looked
        self.looked = at
        return self.at_work


# What is remembered of sessions


@dataclass(frozen=True)
class Stumble:
    """How a step for a session failed, over and over."""

    at: object
    """The step, and what it was taken for: when a person wants something else, that is tried at once."""
    count: int = 0
    faults: int = 0
    """Those of the failures that waiting does not mend."""
    not_before: float = LONG_AGO
    why: str = ""


@dataclass
class FleetMemory(FleetView):
    """The memory of one fleet."""

    clock: Clock
    free_memory: Callable[[], int | None] = free_memory
    chance: Callable[[], float] = random.random
    runs: dict[str, Watched] = field(default_factory=dict)
    """What is remembered of each run until it is closed; any thread may look."""
    waits: dict[str, tuple[Wait, float]] = field(default_factory=dict)
    """Why a session that could work does not, and since when."""
    stumbles: dict[str, Stumble] = field(default_factory=dict)
    not_before: dict[str, float] = field(default_factory=dict)
    """When each session may begin a run again, by the clock that stands still while the machine sleeps."""
    no_place: str = ""
    """Why no worktree can be made, as it was last seen."""
    place_again: float = LONG_AGO
    """When that is looked at again."""

    def __post_init__(self) -> None:
        self.starts = Starts(self.free_memory, self.chance)

    def of(self, run: Run) -> Watched:
        """Return what is remembered of a run, from now on if nothing was."""
        if run.id not in self.runs:
            self.runs[run.id] = Watched(run.session, started=self.clock.now().awake)
        return self.runs[run.id]

    def of_session(self, name: str) -> list[Watched]:
        """Return what is remembered of the runs of a session, the last one last."""
        return [each for each in list(self.runs.values()) if each.session == name]

    def why(self, session: str) -> tuple[Verdict | None, Wait | None]:
        """Return what the watchdog last thought of a session's run, and why it does not start one."""
        mine = self.of_session(session)
        return (mine[-1].verdict if mine else None), self.wait_of(session)

    def wait_of(self, session: str) -> Wait | None:
        """Return why a session does not start a run, None if nothing keeps it; until when, by the clock on the wall."""
        known = self.waits.get(session)
        if known is not None:
            return known[0]
        now = self.clock.now()
        left = self.not_before.get(session, LONG_AGO) - now.awake
        stumble = self.stumbles.get(session)
        if left <= 0 and stumble is not None and stumble.count:
            left = stumble.not_before - now.awake
        why = "" if stumble is None else stumble.why
        return Wait(why, round(now.wall + left), cause=Cause.BACKOFF) if left > 0 else None

    def waiting(self) -> dict[str, Wait]:
        """Return why sessions do not start a run, by their names."""
        names = {*list(self.waits), *list(self.not_before), *list(self.stumbles)}
        return {name: wait for name in sorted(names) if (wait := self.wait_of(name)) is not None}

    def forgive(self, agent: str, session: str) -> None:
        """Let a session start as soon as it can, and others of its agent: a person says so."""
        self.starts.forgive(agent, session)
        self.not_before.pop(session, None)
        self.place_again = LONG_AGO
        self.waits.pop(session, None)

    def weight(self, session: str) -> int:
        """Return the bytes of memory that a session's run took when it was last weighed."""
        return sum(each.memory for each in self.of_session(session))


# What hooks report


@dataclass
class HookReports:
    """Takes in what hooks report of runs: the one way by which they reach this memory. What is over stays forgotten."""

    runtime: Runtime
    memory: FleetMemory

    def overhear(self, run: Run, hook: Hook) -> None:
        """Take in what a run says by a hook; one without a terminal says the same in its stream."""
        watched = self.memory.runs.get(run.id)
        if watched is None:
            return
        if hook.moment in BRINGS_MAIL and not hook.sub:
            watched.hooked = True
        if run.runner == TMUX and terminal_of(run, self.runtime.agent(run.agent)) is not None:
            watched.overheard += signals_of(hook)

    def commit_checked(self, run: Run, refused: str | None) -> None:
        """Take in why the last commit that a run tried was refused, None if it was not."""
        watched = self.memory.runs.get(run.id)
        if watched is not None:
            watched.refused = refused

    def is_at_prompt(self, run: Run) -> bool:
        """Say whether the screen of a run shows a prompt that waits, and so no dialog any more."""
        watched = self.memory.runs.get(run.id)
        return watched is not None and watched.sight is Sight.READY

    async def note_asked(self, run: Run, call: str) -> None:
        """Note that covey was asked before a tool was used, so that what it was not asked about can be told later."""
        seen = self.runtime.project.run_folder(run.id) / SEEN
        try:
            await self.runtime.in_run_thread(partial(files.append, seen, f"{call}\n"))
        except OSError as error:
            log.warning("a hook of %s could not be noted: %s", run.id, error)


def signals_of(hook: Hook) -> list[Signal]:
    """Return what a hook says of a run; that it ends or calls for a person does not show that its model answers."""
    match hook.moment:
        case Moment.BEFORE_COMPACT:
            return [Compacts()]
        case Moment.NOTIFICATION | Moment.SESSION_END:
            return []
        case _:
            return [Works()]
