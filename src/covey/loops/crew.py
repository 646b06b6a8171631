"""The crew: who does what the train wants, and what they share: the train as it was heard, and what is to be done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import field

from covey.app import train
from covey.app.train import digest
from covey.app.verbs import Call
from covey.config import Config
from covey.config import Merge as MergeSettings
from covey.core import gates
from covey.core.merges import State
from covey.core.queue.heard import Heard
from covey.core.queue.train import Action, Land, Reject
from covey.core.sent_back import Clash as Conflict
from covey.loops.building import Builder, Tree
from covey.loops.desk import Desk
from covey.loops.entering import Entering
from covey.loops.gates import Gates
from covey.loops.main_line import MainLine
from covey.loops.pushing import Pusher
from covey.loops.testing import Testing
from covey.values import dataclass


class Anew(Exception):
    """What the train believes is no longer so: it has to begin anew."""


@dataclass(frozen=True)
class Settings:
    """What the train depends on: when one of these changes, it begins anew."""

    strategy: str
    slots: int
    checks: str
    policy: str
    target: str


def settings_of(config: Config) -> Settings:
    """Return what the train depends on."""
    merge = config.merge
    return Settings(merge.strategy, merge.slots, digest(config), merge.policy, config.target)


@dataclass
class Journey:
    """What git and the gates know of the train since it began: commits, trees, gates and conflicts."""

    number: int
    settings: Settings
    head: str
    """Where the line is: nobody but us moves it from there."""
    values: dict[int, str]
    """The commit of each value of main, the first being the one on which the train began."""
    main: int = 0
    is_single: bool = False
    """Merges are built, tested and landed one at a time, since something went wrong with several of them."""
    trees: dict[int, Tree] = field(default_factory=dict)
    conflicts: dict[str, Conflict] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """Return the commit on which is built now."""
        return self.values[self.main]


@dataclass
class Crew:
    """Who works for one queue. What they know of the train lasts until it begins anew."""

    desk: Desk
    tell: Callable[[], None]
    """Says that there is something to do."""
    heard: Heard = field(default_factory=Heard)
    journey: Journey | None = None
    todo: deque[Action] = field(default_factory=deque)
    wanted: set[int] = field(default_factory=set)
    """Tests that the train wants and that have not begun."""
    gate_of: dict[int, str] = field(default_factory=dict)
    """The gate of each test."""
    told: set[str] = field(default_factory=set)
    """What a person was told to be in the way since something landed."""
    halted_under: MergeSettings | None = None
    """The settings under which main was found red; under others it is tested anew."""
    vain: set[str] = field(default_factory=set)
    """Commits of main that the integration branch could not take by themselves."""
    refused: tuple[str, str] = ("", "")
    """What the remote has that failed the gate here, and where our main was then."""
    busy_with: tuple[str, ...] = ()
    """The merges that are being read, built or landed at this moment: what goes wrong then may be their fault."""
    suspects: set[str] = field(default_factory=set)
    """Merges of which one made something go wrong: until all of them are through, each is handled alone."""
    begun_under: Settings | None = None
    """What the last train depended on."""
    is_tidy: bool = False
    """Nothing is left of a train that ended."""
    is_ending: bool = False

    def __post_init__(self) -> None:
        self.gates = Gates(self.desk)
        self.testing = Testing(self.desk, self.gates, self.tell)
        self.line = MainLine(self.desk)
        self.entering = Entering(self.desk)
        self.pusher = Pusher(self.desk, self.tell)
        self.builder = Builder(self.desk.project, self.desk.wall)

    @property
    def config(self) -> Config:
        """Return the settings as they are now."""
        return self.desk.app.house.config

    def is_idle(self) -> bool:
        """Say whether nothing is under way or wanted."""
        train = self.heard.train
        return not (self.todo or self.wanted or self.testing.running or train.changes or train.running)

    def decided(self) -> set[str]:
        """Return the merges of which is decided already that they land or go back."""
        landing = (each for action in self.todo if isinstance(action, Land) for each in action.changes)
        return {*landing, *(action.id for action in self.todo if isinstance(action, Reject))}


def standing_now(call: Call) -> tuple[bool, bool, bool]:
    """Return whether nothing may be tested or land, whether main shall stay where it is, and whether anything waits."""
    stands = call.tx.standing()
    is_open = any(merge.state is not State.REVIEW for merge in call.tx.open_merges())
    return stands.paused or call.tx.fleet().paused, stands.frozen, is_open


def lose_all(call: Call, why: str, but: Collection[str] = ()) -> None:
    """Write that the gates have no result of which nobody knows how they ended, `but` for those that still run."""
    for gate in call.tx.running_gates():
        if gate.id not in but:
            train.end_gate(call, gate.id, gates.Lost(why))
