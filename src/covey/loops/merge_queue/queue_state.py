"""What the parts of the queue share: the train as the log tells it, and the epoch since it last began."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import field

from covey.app.context import Call
from covey.app.merging.queue_records import digest
from covey.config import Config
from covey.core.merging.gates import Gate
from covey.core.merging.merges import MergeState
from covey.core.merging.queue import train, train_log
from covey.core.merging.queue.train import Action, Cancel, Halt, Land, Reject, Start
from covey.core.merging.queue.train_log import Heard
from covey.core.merging.rejection import Clash as Conflict
from covey.loops.merge_queue.build import CandidateTree
from covey.store.engine.rows import Change
from covey.values import dataclass

MAX_TREES = 200
"""Trees, and values of main, above which those that no test needs are forgotten."""


class RestartQueue(Exception):
    """What the queue believes of main or of the train no longer holds: a new epoch has to begin."""


@dataclass(frozen=True)
class QueueSettings:
    """The settings that an epoch depends on: when one of them changes, a new epoch begins."""

    strategy: str
    slots: int
    checks: str
    policy: str
    target: str


def settings_of(config: Config) -> QueueSettings:
    """Return the settings that an epoch depends on."""
    merge = config.merge
    return QueueSettings(merge.strategy, merge.slots, digest(config), merge.policy, config.target)


@dataclass
class Epoch:
    """What git knows of the train since it last began: commits, trees and conflicts."""

    number: int
    config: Config
    settings: QueueSettings
    """What of the configuration it depends on."""
    head: str
    """Where main will be once all that passed has landed: nobody but the queue moves it from there."""
    mains: dict[int, str]
    """The commit of each value of main, starting with the one on which the epoch began."""
    main: int = 0
    is_single: bool = False
    """Merges are built, tested and landed one at a time, since something went wrong with several of them."""
    is_over: bool = False
    """Something happened after which nothing more may be decided in this epoch."""
    trees: dict[int, CandidateTree] = field(default_factory=dict)
    conflicts: dict[str, Conflict] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """Return the commit that trees are built on now."""
        return self.mains[self.main]

    def advance(self, commit: str) -> None:
        """Note that main will be at this commit."""
        self.main += 1
        self.mains[self.main] = commit
        self.head = commit


@dataclass
class FollowedTrain:
    """The train as the log tells it, and what it wants that nobody has done yet."""

    heard: Heard = field(default_factory=Heard)
    todo: deque[Action] = field(default_factory=deque)
    wanted: set[int] = field(default_factory=set)
    """Tests that the train wants and that have not begun."""
    gate_of: dict[int, str] = field(default_factory=dict)
    """The gate of each test."""

    @property
    def state(self) -> train.TrainState:
        """Return the train as it is now."""
        return self.heard.train

    def follow(self, change: Change) -> None:
        """Step the train through one event of the log."""
        self.heard, actions = train_log.take(self.heard, change.kind, change.row, change.payload)
        if change.kind == "queue.began":
            self.todo.clear()
            self.wanted.clear()
            self.gate_of.clear()
        elif change.kind == "gate.started" and isinstance(change.row, Gate):
            self.gate_of[change.row.test] = change.row.id
        self.todo += actions

    def decided(self) -> set[str]:
        """Return the merges that are about to land or to be sent back."""
        landing = (each for action in self.todo if isinstance(action, Land) for each in action.changes)
        return {*landing, *(action.id for action in self.todo if isinstance(action, Reject))}

    def take_test_requests(self) -> None:
        """Note which tests are to begin and which are not, up to the next decision."""
        while self.todo and isinstance(self.todo[0], Start | Cancel):
            match self.todo.popleft():
                case Start(test):
                    self.wanted.add(test.id)
                case Cancel(number):
                    self.wanted.discard(number)

    def next_decision(self) -> Action | None:
        """Return what lands, is sent back or halts next; None if nothing does."""
        self.take_test_requests()
        return self.todo.popleft() if self.todo else None

    def gates_of(self, tests: Iterable[int]) -> tuple[str, ...]:
        """Return the gates of tests, as far as they are known."""
        return tuple(self.gate_of[number] for number in tests if number in self.gate_of)

    def forget_old(self, epoch: Epoch) -> None:
        """Forget trees, gates and values of main that no test needs any more, once there are many."""
        if len(epoch.trees) > MAX_TREES:
            needed = {*self.state.running, *(result.test.id for result in self.state.results)}
            needed |= {action.test for action in self.todo if isinstance(action, Land)}
            epoch.trees = {number: tree for number, tree in epoch.trees.items() if number in needed}
            needed |= {number for action in self.todo if isinstance(action, Reject | Halt) for number in action.tests}
            self.gate_of = {number: gate for number, gate in self.gate_of.items() if number in needed}
        if len(epoch.mains) > MAX_TREES:
            used: Collection[int] = {epoch.main, *(test.on for test in self.state.running.values())}
            epoch.mains = {number: commit for number, commit in epoch.mains.items() if number in used}


@dataclass(frozen=True)
class Holds:
    """What a person holds up, and whether anything wants to land at all."""

    is_paused: bool
    """Nothing may be tested or land."""
    is_frozen: bool
    """Main stays where it is."""
    has_work: bool


def holds_now(call: Call) -> Holds:
    """Return what a person holds up at this moment."""
    standing = call.tx.standing()
    has_work = any(merge.state is not MergeState.REVIEW for merge in call.tx.open_merges())
    return Holds(standing.paused or call.tx.fleet().paused, standing.frozen, has_work)
