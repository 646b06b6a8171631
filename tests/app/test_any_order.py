"""Whatever several principals ask, in whatever order, the board stays sane and its log tells the whole story."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from covey.config import Config, Merge
from covey.core.board.needs import is_met
from covey.core.board.tasks import ENDED, WAITING, Status, Task
from covey.core.leases import leases
from covey.core.merging import merges
from covey.errors import CoveyError, NotFound
from covey.store.tx import Tx
from tests.worlds.boards import OWNER, Principal, World

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Thousands of commits need no disk here; what a disk does to us is tested elsewhere."""
LIMITS = {"ada": 1, "bob": 2, "carl": None}
"""The sessions that are known from the beginning, and how many tasks each may hold."""
names = st.sampled_from([*LIMITS, "owner"])
principals = st.sampled_from([OWNER, OWNER, *map(Principal, LIMITS)])
places = st.integers(0, 11)
"""Which of the tasks that there are; taken round and round."""
few_places = st.lists(places, max_size=2)


class Asking(RuleBasedStateMachine):
    """A world in which anything may be asked; what is refused changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.world = World(Path(self.folder.name))
        for name, wip in LIMITS.items():
            self.world.ask("session.new", name=name, wip=wip)

    def teardown(self) -> None:
        self.world.store.close()
        self.folder.cleanup()

    def ask(self, verb: str, who: Principal = OWNER, **asked: Any) -> Any:
        """Ask; any error that is not a refusal in one sentence ends the test."""
        before, refusal = self.world.seq, None
        try:
            return self.world.ask(verb, who, **asked)
        except CoveyError as error:
            refusal = error
        assert refusal.message.endswith(".") and "\n" not in refusal.message
        assert not isinstance(refusal, NotFound)
        assert self.world.seq == before
        return None

    @rule(seconds=st.sampled_from([10.0, 50.0, 3600.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.watch(seconds, seconds)

    @invariant()
    def the_log_tells_the_whole_story(self) -> None:
        assert self.world.folded() == self.world.tables()


class Board(Asking):
    """Several sessions and the owner over one board."""

    @initialize(
        review=st.booleans(),
        edges=st.lists(st.tuples(few_places, st.booleans(), st.none() | places), min_size=3, max_size=8),
    )
    def fill(self, review: bool, edges: list[tuple[list[int], bool, int | None]]) -> None:
        self.world.config = Config(merge=Merge(review=review))
        self.world.start(daemon=True)
        self.tasks = [self.world.add()]
        for needs, loose, parent in edges:
            self.add(OWNER, needs, loose, parent, {})

    def pick(self, place: int) -> str:
        return self.tasks[place % len(self.tasks)]

    def picks(self, chosen: list[int]) -> list[str]:
        return list(dict.fromkeys(self.pick(place) for place in chosen))

    def found(self, task: str) -> Task:
        found = self.world.store.read(lambda tx: tx.task(task))
        assert found is not None
        return found

    wishes = st.fixed_dictionaries(
        {},
        optional={
            "priority": st.integers(-1, 1),
            "scope": st.lists(st.sampled_from(["src/**", "src/a.py", "new:docs/x"]), max_size=2, unique=True),
            "overlap": st.booleans(),
            "status": st.sampled_from(["backlog", "todo"]),
            "kind": st.sampled_from(["change", "report"]),
            "budget": st.integers(0, 9),
            "note": st.just("n"),
        },
    )

    # What may be asked

    @rule(who=principals, needs=few_places, loose=st.booleans(), parent=st.none() | places, wish=wishes)
    def add(self, who: Principal, needs: list[int], loose: bool, parent: int | None, wish: dict[str, Any]) -> None:
        if len(self.tasks) >= 12:
            return
        edges = {"needs_any" if loose else "needs": self.picks(needs)}
        family = {"parent": self.pick(parent)} if parent is not None else {}
        added = self.ask("task.add", who, title="t", **edges, **family, **wish)
        if added is not None and "verb" not in added:  # else it is a proposal
            self.tasks.append(added["id"])

    @rule(who=principals, task=places, wish=wishes)
    def edit(self, who: Principal, task: int, wish: dict[str, Any]) -> None:
        self.ask("task.edit", who, id=self.pick(task), **wish)

    @rule(task=places, needs=few_places, loose=st.booleans())
    def edit_needs(self, task: int, needs: list[int], loose: bool) -> None:
        edges = {"needs": [], "needs_any": [], "needs_any" if loose else "needs": self.picks(needs)}
        self.ask("task.edit", id=self.pick(task), **edges)  # type: ignore[arg-type]

    @rule(task=places, parent=st.none() | places)
    def edit_parent(self, task: int, parent: int | None) -> None:
        self.ask("task.edit", id=self.pick(task), parent=None if parent is None else self.pick(parent))

    @rule(task=places, status=st.sampled_from(["backlog", "todo"]))
    def bring_back(self, task: int, status: str) -> None:
        self.ask("task.edit", id=self.pick(task), status=status)

    @rule(keys=st.lists(st.sampled_from("xyz"), min_size=1, max_size=3), wish=wishes)
    def import_tasks(self, keys: list[str], wish: dict[str, Any]) -> None:
        done = self.ask("task.import", tasks=[{"key": key, "title": "t", **wish} for key in keys])
        self.tasks += done["added"].values() if done else []

    @rule(who=principals, name=names, overlap=st.booleans())
    def next(self, who: Principal, name: str, overlap: bool) -> None:
        waiting = [self.found(task) for task in self.tasks]
        speak = {"session": name} if who.is_owner else {}
        taken = self.ask("task.next", who, overlap=overlap, **speak)
        if taken is not None:
            assert all(task.status is Status.TODO and task.ready for task in waiting if task.id == taken["id"])

    @rule(who=principals, name=names, task=places, overlap=st.booleans())
    def claim(self, who: Principal, name: str, task: int, overlap: bool) -> None:
        speak = {"session": name} if who.is_owner else {}
        self.ask("task.claim", who, id=self.pick(task), overlap=overlap, **speak)

    @rule(who=principals, task=places, old=st.booleans(), verb=st.sampled_from(["renew", "release", "handin", "block"]))
    def as_the_holder(self, who: Principal, task: int, old: bool, verb: str) -> None:
        """Ask for what only the holder may: the owner speaks for it, and others try."""
        found = self.found(self.pick(task))
        fence = max(1, found.fence - old)
        asked: dict[str, Any] = {"block": {"reason": "so"}, "handin": {"result": "r"}}.get(verb, {})
        if who.is_owner and found.session is not None:
            asked["session"] = found.session
        done = self.ask(f"task.{verb}", who, id=found.id, fence=fence, **asked)
        if found.status is Status.DOING and done is not None:
            assert fence == found.fence and found.session in (who.session, asked.get("session"))

    @rule(task=places)
    def finish(self, task: int) -> None:
        """Bring a task onto main, if it is free."""
        found = self.found(self.pick(task))
        if found.status in WAITING and found.ready and self.ask("task.claim", id=found.id, session="carl"):
            self.ask("task.handin", id=found.id, session="carl", result="r")
            for merge in self.world.ask("merge.list"):
                if merge["task"] == found.id:
                    self.ask("merge.approve", id=merge["id"])
                    self.ask("merge.land", id=merge["id"], commit="c" * 40)

    @rule(task=places, verb=st.sampled_from(["block", "drop", "drop"]))
    def end(self, task: int, verb: str) -> None:
        self.ask(f"task.{verb}", id=self.pick(task), reason="so")

    @rule(verb=st.sampled_from(["approve", "land", "reject"]), which=st.integers(0, 2))
    def merge(self, verb: str, which: int) -> None:
        queue = self.world.ask("merge.list")
        if which < len(queue):
            more = {"land": {"commit": "c" * 40}, "reject": {"reason": "red"}}.get(verb, {})
            self.ask(f"merge.{verb}", id=queue[which]["id"], **more)  # type: ignore[arg-type]

    # What must always hold

    @invariant()
    def the_board_is_sane(self) -> None:
        self.world.store.read(self.check)

    def check(self, tx: Tx) -> None:
        tasks = {task.id: task for task in tx.find(Task, "")}
        counts = Counter(task.status for task in tasks.values())
        assert tx.counts() == {status: counts[status] for status in Status}
        at_work = Counter(task.session for task in tasks.values() if task.status is Status.DOING)
        assert None not in at_work
        for name, wip in LIMITS.items():
            assert wip is None or at_work[name] <= wip
        waits = (Status.REVIEW, Status.MERGING)
        queue = Counter(merge.task for merge in tx.find(merges.Merge, "WHERE ended IS NULL"))
        assert queue == {task.id: 1 for task in tasks.values() if task.status in waits}
        for task in tasks.values():
            self.check_task(task, tasks)

    def check_task(self, task: Task, tasks: dict[str, Task]) -> None:
        if task.status in (*WAITING, Status.BLOCKED, Status.DROPPED):
            assert task.session is None
        else:
            assert task.session is not None or task.status is Status.DONE
        assert task.claimed is not None or task.status is not Status.DOING
        assert (task.ended is not None) is (task.status in ENDED)
        unmet = [need for need in task.needs if not is_met(tasks[need.task].status, need.policy)]
        assert task.unmet == len(unmet)
        children = [other for other in tasks.values() if other.parent == task.id]
        assert task.open_children == sum(child.status not in ENDED for child in children)
        if task.status in WAITING:
            assert all(tasks[need.task].status is not Status.DROPPED for need in unmet), "it would wait for ever"
            assert not self.waits_for(task.id, tasks), "it waits for itself"

    def waits_for(self, task: str, tasks: dict[str, Task]) -> bool:
        """Say whether a task waits for itself, through needs and children."""
        seen: set[str] = set()
        stack = [task]
        while stack:
            name = stack.pop()
            below = [need.task for need in tasks[name].needs]
            below += [other.id for other in tasks.values() if other.parent == name]
            if task in below:
                return True
            stack += [other for other in below if other not in seen]
            seen.update(below)
        return False


class Talk(Asking):
    """Several sessions and the owner over leases and mail."""

    resources = st.lists(
        st.sampled_from(["src/**", "src/a.py", "src/?.py", "docs/*", "repo:", "port:1", "db:main"]),
        min_size=1,
        max_size=2,
        unique=True,
    )

    @rule(who=principals, resources=resources, shared=st.booleans(), ttl=st.sampled_from([30, 3600]))
    def take(self, who: Principal, resources: list[str], shared: bool, ttl: int) -> None:
        self.ask("lease.take", who, resources=resources, shared=shared, ttl=ttl)

    @rule(who=principals, which=st.integers(0, 3), verb=st.sampled_from(["renew", "give"]))
    def hold(self, who: Principal, which: int, verb: str) -> None:
        live = self.world.ask("lease.list")
        if which < len(live):
            self.ask(f"lease.{verb}", who, id=live[which]["id"], fence=live[which]["fence"])

    @rule(who=principals, to=st.sampled_from(["ada", "role:x", "everyone", "owner"]))
    def send(self, who: Principal, to: str) -> None:
        before = {reader: self.world.ask("mail.inbox", Principal(reader)) for reader in LIMITS}
        sent = self.ask("mail.send", who, to=to, text="hello")
        for reader, had in before.items():
            mine = to in ("everyone", reader) and who.session != reader
            assert [letter["id"] for letter in self.world.ask("mail.inbox", Principal(reader))] == [
                *(letter["id"] for letter in had),
                *([sent["id"]] if mine else []),
            ]

    @rule(who=principals, verb=st.sampled_from(["read", "ack"]))
    def read(self, who: Principal, verb: str) -> None:
        letters = self.world.ask("mail.inbox", who)
        if letters:
            self.ask(f"mail.{verb}", who, id=letters[0]["id"])
            assert letters[0]["id"] not in [letter["id"] for letter in self.world.ask("mail.inbox", who)]

    @rule(who=principals, which=st.integers(0, 5))
    def pry(self, who: Principal, which: int) -> None:
        letters = self.world.ask("mail.inbox", Principal("ada"), all=True)
        if which < len(letters):
            with contextlib.suppress(CoveyError):
                self.world.ask("mail.read", who, id=letters[which]["id"])
                letter = letters[which]
                assert {letter["to"], letter["sender"]} & {"everyone", who.session or "owner"}

    @invariant()
    def nothing_is_granted_twice(self) -> None:
        live = self.world.store.read(lambda tx: tx.leases_in(leases.LeaseState.LIVE))
        for one in live:
            wish = leases.Taken(holder=one.holder, resources=one.resources, shared=one.shared)
            assert not leases.meets(wish, live)


Board.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
Talk.TestCase.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
TestBoard = Board.TestCase
TestTalk = Talk.TestCase
