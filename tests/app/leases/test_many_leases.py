"""Many sessions over many leases, in a random life with a clock that is turned by hand.

Whatever is taken, waited for, renewed, given back or abandoned by a crash: what the rules promise is checked after
every step without the rules, over real paths and by brute force.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from covey.config import Config, Leases
from covey.core.board.tasks import Status
from covey.core.leases.leases import collide
from covey.errors import Refused
from covey.store.engine.audit import verify
from tests.worlds.boards import Principal, World

FILES = [f"{top}/{folder}/{name}" for top in ("src", "docs") for folder in "abc" for name in ("x.py", "y.py", "z.md")]
"""Every path that there is in this small world."""
GLOBS = [
    "src/**", "docs/**", "**/*.py", "**/z.md", "src/*/x.py", "src/a/**", "src/b", "docs/c/?.py", "docs/[ab]/*",
    *FILES,
]  # fmt: skip
NAMES = ["port:1", "port:2", "db:main", "lane:build", "lane:test"]
ROOM = {"lane:build": 3, "lane:test": 2}
DEAD_AFTER, TTL, BEAT, TICK = 60.0, 300.0, 30.0, 5.0


def reach(resource: str) -> frozenset[str]:
    """Return what a resource covers, by a way of its own: names, or the paths that a pattern matches."""
    if ":" in resource:
        return frozenset([resource])
    pattern = re.escape(resource).replace(r"\*\*/", "(?:.*/)?").replace(r"/\*\*", "/.*").replace(r"\*", "[^/]*")
    pattern = pattern.replace(r"\?", "[^/]").replace(r"\[ab\]", "[ab]")
    plain = not set(resource) & set("*?[")
    return frozenset(file for file in FILES if re.fullmatch(pattern + ("(?:/.*)?" if plain else ""), file))


def covered(lease: dict[str, Any]) -> Counter[str]:
    """Return what a lease covers, each path or name once."""
    return Counter(set().union(*(reach(resource) for resource in lease["resources"])))


@dataclass
class Life:
    """A project with sessions of both kinds, at work as chance has it."""

    world: World
    luck: random.Random
    sessions: int
    outside: list[str] = field(default_factory=list)
    alive: set[str] = field(default_factory=set)
    fell: dict[str, float] = field(default_factory=dict)
    """When each session that crashed, or each command that lives by its own beats, was last heard of."""
    commands: dict[str, dict[str, Any]] = field(default_factory=dict)
    taken: int = 0
    told: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """Let the first half of the sessions be run by covey, and the others come from outside."""
        for number in range(self.sessions):
            name = f"s{number}"
            if number < self.sessions // 2:
                self.world.run_session(name)
            else:
                self.world.ask("session.new", name=name)
                self.outside.append(name)
            self.alive.add(name)
            self.world.add(f"Task of {name}", assignee=name, scope=self._scope())

    def _scope(self) -> list[str]:
        return [self.luck.choice(FILES)] if self.luck.random() < 0.2 else []

    @property
    def now(self) -> float:
        """Return the time on the clock that measures silence."""
        return self.world.clock.now().awake

    def leases(self) -> list[dict[str, Any]]:
        """Return all that is held or waited for."""
        found: list[dict[str, Any]] = self.world.ask("lease.list", waiting=True)
        return found

    # What may happen

    def step(self) -> None:
        """Let one thing happen."""
        who = self.luck.choice(sorted(self.alive))
        deed = self.luck.choices(
            [self.take, self.beat, self.renew, self.give, self.crash, self.work, self.pass_time],
            [10, 4, 6, 7, 0.4, 3, 3],
        )[0]
        try:
            deed(who)
        except Refused as refusal:
            self.told["circle" if "circle" in refusal.message else "refused"] += 1

    def take(self, who: str) -> None:
        """Take something, in line or not."""
        wanted = self.luck.sample(GLOBS + NAMES, self.luck.choice([1, 1, 1, 2, 3]))
        shared, wait = self.luck.random() < 0.2, self.luck.random() < 0.7
        self.world.ask("lease.take", Principal(who), resources=wanted, shared=shared, wait=wait, ttl=TTL)
        self.taken += 1

    def beat(self, who: str) -> None:
        """Begin a command that waits for its turn in a lane."""
        lease = self.world.ask("lease.take", Principal(who), resources=[self.luck.choice(NAMES)], wait=True, beats=True)
        self.commands[lease["id"]] = {"holder": who, "seen": self.now, "killed": False}
        self.taken += 1

    def renew(self, who: str) -> None:
        """Renew what a session holds or waits for, and give a sign of life of its commands."""
        for lease in self.world.ask("lease.list", session=who, waiting=True):
            command = self.commands.get(lease["id"])
            if command is not None and command["killed"]:
                continue
            if command is not None:
                command["seen"] = self.now
            self.world.ask("lease.renew", Principal(who), id=lease["id"], fence=lease["fence"])

    def give(self, who: str) -> None:
        """Give something back that was taken by hand."""
        own = [each for each in self.world.ask("lease.list", session=who, waiting=True) if each["origin"] == "hand"]
        if own:
            lease = self.luck.choice(own)
            self.commands.pop(lease["id"], None)
            self.world.ask("lease.give", Principal(who), id=lease["id"], fence=lease["fence"])

    def crash(self, who: str) -> None:
        """Let a session fall silent for ever, with its commands; another takes its place."""
        if len(self.alive) <= 2:
            return
        self.alive.discard(who)
        seen = self.world.app.context.pulses.seen(f"session:{who}")
        self.fell[who] = self.now if seen is None else seen.awake
        successor = f"{who.partition('-')[0]}-{len(self.fell)}"
        if who in self.outside:
            self.world.ask("session.new", name=successor)
            self.outside.append(successor)
        else:
            self.world.run_session(successor)
        self.alive.add(successor)

    def work(self, who: str) -> None:
        """Claim a task, or hand in the one that is held and let it land."""
        held = [task for task in self.world.ask("task.list", session=who) if task["status"] == Status.DOING]
        if not held:
            self.world.ask("task.next", Principal(who), overlap=False)
            return
        task = held[0]
        asked = {"result": "r"} if who in self.outside else {"commit": "c" * 40}
        self.world.ask("task.handin", Principal(who), id=task["id"], fence=task["fence"], **asked)
        for merge in self.world.ask("merge.list"):
            if merge["task"] == task["id"]:
                self.world.ask("merge.approve", id=merge["id"])
                self.world.ask("merge.land", id=merge["id"], commit="c" * 40)
        self.world.add("More", scope=self._scope())

    def pass_time(self, who: str) -> None:
        """Let seconds pass, in which the living are heard of and what silence ends is looked for."""
        for _ in range(self.luck.randint(1, 6)):
            self.world.clock.run(TICK)
            for name in self.alive:
                self.world.app.context.pulses.hear(f"session:{name}")
            for lease, command in list(self.commands.items()):
                command["killed"] = command["killed"] or self.luck.random() < 0.02
                if command["holder"] in self.alive and not command["killed"] and self.luck.random() < 0.9:
                    command["seen"] = self.now
                    self.world.app.context.pulses.hear(f"lease:{lease}")
            self.world.look()

    # What must hold

    def check(self) -> None:
        """Hold all that is held and waited for against what was promised."""
        found = self.leases()
        live = [lease for lease in found if lease["state"] == "live"]
        waiting = [lease for lease in found if lease["state"] == "waiting"]
        self.nobody_shares_what_is_exclusive(live)
        self.the_dead_hold_nothing(found)
        self.nobody_is_passed(live, waiting)
        self.nobody_waits_in_a_circle({lease["id"]: lease for lease in found})

    def nobody_shares_what_is_exclusive(self, live: list[dict[str, Any]]) -> None:
        """See by brute force that no path has two holders of whom one holds it alone."""
        holders: dict[str, list[dict[str, Any]]] = {}
        for lease in live:
            for path in covered(lease):
                holders.setdefault(path, []).append(lease)
        for path, those in holders.items():
            alone = [lease for lease in those if not lease["shared"]]
            sessions = {lease["holder"] for lease in those}
            room = ROOM.get(path, 1)
            if room == 1 and alone:
                assert len(sessions) == 1, (path, those)
                assert sum(lease["beats"] for lease in alone) <= 1, (path, those)
            if room > 1:  # those who share it share one place
                holders_alone = {lease["holder"] for lease in alone}
                shared = {lease["holder"] for lease in those if lease["shared"]} - holders_alone
                assert sum(lease["beats"] for lease in alone) <= room, (path, those)
                assert len(holders_alone) + bool(shared) <= room, (path, those)

    def the_dead_hold_nothing(self, found: list[dict[str, Any]]) -> None:
        """See that nothing outlives the silence of who held it."""
        for lease in found:
            if lease["id"] in self.commands:
                assert self.now - self.commands[lease["id"]]["seen"] <= BEAT + TICK, lease
            elif lease["holder"] in self.fell and (lease["origin"] == "hand" or lease["holder"] not in self.outside):
                limit = TTL if lease["holder"] in self.outside else DEAD_AFTER
                assert self.now - self.fell[lease["holder"]] <= limit + TICK, lease

    def nobody_is_passed(self, live: list[dict[str, Any]], waiting: list[dict[str, Any]]) -> None:
        """See that everyone waits for somebody, and that nobody who came later has what it waits for."""
        for lease in waiting:
            assert lease["behind"], f"{lease} waits for nobody"
            mine = covered(lease)
            for other in live:
                passed = other["fence"] > lease["fence"] and other["holder"] != lease["holder"]
                if passed and not (other["shared"] and lease["shared"]):
                    assert not [path for path in covered(other) if path in mine and ROOM.get(path, 1) == 1], other

    def nobody_waits_in_a_circle(self, found: dict[str, dict[str, Any]]) -> None:
        """See that of those who stand still somebody always gets on, and after that all the others."""
        stand_still: dict[str, list[tuple[int, list[str]]]] = {}
        for lease in found.values():
            if lease["state"] == "waiting" and lease["origin"] == "hand" and not lease["beats"]:
                stand_still.setdefault(lease["holder"], []).extend(self.needs(lease, found))
        while True:
            free = [
                name
                for name, needs in stand_still.items()
                if all(sum(other in stand_still for other in others) < room for room, others in needs)
            ]
            if not free:
                break
            for name in free:
                del stand_still[name]
        assert not stand_still, f"these wait for each other: {stand_still}"

    def needs(self, lease: dict[str, Any], found: dict[str, dict[str, Any]]) -> list[tuple[int, list[str]]]:
        """Return who would have to get on for a lease to be granted, for each of its resources."""
        before = [found[name] for name in lease["behind"]]
        needs = []
        for mine in lease["resources"]:
            others = [other for other in before if any(collide(mine, theirs) for theirs in other["resources"])]
            if len(others) >= ROOM.get(mine, 1):
                needs.append((ROOM.get(mine, 1), [other["holder"] for other in others if not self.gets_on(other)]))
        return needs

    def gets_on(self, lease: dict[str, Any]) -> bool:
        """Say whether a lease ends without its session: a command's, or that of a task on its way to main."""
        if lease["beats"]:
            return True
        task = self.world.task(lease["task"]) if lease["task"] and lease["origin"] != "hand" else None
        return task is not None and task["status"] != Status.DOING


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder in memory: what a disk does to us is tested elsewhere."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        yield Path(name)


def live_through(folder: Path, seed: int, *, sessions: int, leases: int, every: int) -> Life:
    """Live a random life until so many leases were taken, and look at it again and again."""
    world = World(folder, Config(leases=Leases(capacity={"lane:build": ROOM["lane:build"]})))
    life = Life(world, random.Random(seed), sessions)
    life.begin()
    steps = 0
    while life.taken < leases:
        life.step()
        steps += 1
        if steps % every == 0:
            life.check()
    life.check()
    report = verify(folder / "board.db")
    assert report.sound, report.problems[:5]
    return life


def all_end(life: Life) -> None:
    """Let everyone give back what it holds when it is its turn: in the end nobody waits."""
    while found := life.leases():
        held = [lease for lease in found if lease["state"] == "live"]
        assert held, f"these wait though nobody holds anything: {found}"
        for lease in held:
            life.world.ask("lease.give", id=lease["id"])
    life.world.store.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_nobody_shares_what_is_exclusive_and_nobody_waits_for_ever(folder: Path, seed: int) -> None:
    all_end(live_through(folder, seed, sessions=20, leases=200, every=5))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(6))
def test_fifty_sessions_over_a_thousand_leases(folder: Path, seed: int) -> None:
    life = live_through(folder, seed, sessions=50, leases=1000, every=3)
    assert life.told["circle"], "no circle was ever closed: this life is too tame"
    all_end(life)
