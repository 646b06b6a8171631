"""The runs that are watched: what is remembered of each, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from covey.agents.agent import Sight
from covey.app.journals import Journal, Ledger
from covey.core.heard import Heard
from covey.core.launches import Activity, Observation
from covey.core.runs import Run
from covey.core.sessions import State
from covey.core.signals import Compacts, Limited, Signal
from covey.core.spending import Used
from covey.core.watch import Verdict
from covey.loops.desk import Desk
from covey.loops.hearing import Tail


@dataclass
class Watched:
    """What we remember of a run while we watch it; lost with us, and made again from what it wrote."""

    started: float
    heard: Heard = field(default_factory=Heard)
    tail: Tail = field(default_factory=Tail)
    at_work: float = 0.0
    looked: float | None = None
    printed: float | None = None
    activity: Activity | None = None
    worked: float | None = None
    sampled: float = -1e9
    weighed: float = -1e9
    memory: int = 0
    judged: float = -1e9
    counted: float = -1e9
    verdict: Verdict | None = None
    kept: float | None = None
    """When a person, and not the run itself, last kept it from going on."""
    excused: float | None = None
    """When something of it that ran, or a request, last explained its silence."""
    nudged: int = 0
    told: bool = False
    """It has heard that it repeats itself."""
    squeezed: bool = False
    compacted: int = 0
    finished: bool = False
    limits: int = 0
    limited_at: float = 0.0
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
    asked_of: str | None = None
    """What it asked a person when it was last judged."""
    learnt: tuple[float | None, tuple[str, str] | None] | None = None
    """What was learnt from its end, once: until when its session waits, and the alert that a person gets."""


@dataclass
class Watches:
    """What is remembered of runs until they are closed; lost with us, and made again."""

    desk: Desk
    _watched: dict[str, Watched] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)

    def of(self, run: Run) -> Watched:
        """Return what is remembered of a run, from now on if nothing was."""
        if run.id not in self._watched:
            self._watched[run.id] = Watched(self.desk.awake())
            self._owners[run.id] = run.session
        return self._watched[run.id]

    def find(self, run: Run) -> Watched | None:
        """Return what is remembered of a run, None if nothing is: it is closed, or was not looked at yet."""
        return self._watched.get(run.id)

    def of_session(self, name: str) -> list[Watched]:
        """Return what is remembered of the runs of a session, the last one last."""
        return [each for run, each in list(self._watched.items()) if self._owners.get(run) == name]

    def all(self) -> list[tuple[str, str, Watched]]:
        """Return every run that is watched, its session, and what is remembered of it."""
        return [(run, self._owners.get(run, ""), watched) for run, watched in list(self._watched.items())]

    def forget(self, run: Run) -> None:
        """Remember nothing of a run any more."""
        self._watched.pop(run.id, None)
        self._owners.pop(run.id, None)

    def at_work(self, run: Run, seen: Observation) -> float:
        """Return for how many seconds a run has not stood still, been put off, or waited for a person."""
        watched, now = self.of(run), self.desk.awake()
        if watched.looked is None:
            watched.at_work = 0.0  # of a run that we take up, nobody knows for how long it stood still
        elif not seen.held and not is_kept(watched):
            watched.at_work += now - watched.looked
        watched.looked = now
        return watched.at_work


def is_kept(watched: Watched) -> bool:
    """Say whether a run waits for its provider or a person, and so is not at work."""
    asks = watched.verdict is not None and watched.verdict.state is State.NEEDS_YOU
    return asks or watched.heard.limited is not None
