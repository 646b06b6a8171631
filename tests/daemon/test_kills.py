"""Power cuts: whatever was acknowledged is there afterwards, and whatever was not can be asked again."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.serving import Client, Daemon, Gone, Reply, all_events, all_tasks, check_database, serving, wait_until

WORKERS = 8


@dataclass(frozen=True)
class Request:
    """One request that changes something, with its key."""

    verb: str
    path: str
    body: dict[str, Any]
    key: str

    @property
    def subject(self) -> str:
        """Return the task or lease that it is about, if it names one."""
        parts = self.path.split("/")
        return parts[3] if len(parts) > 3 else ""

    def send(self, client: Client) -> Reply:
        """Ask once."""
        return client.ask("POST", self.path, self.body, key=self.key)


@dataclass
class Worker:
    """A session, and all that the daemon has acknowledged to it."""

    name: str
    rng: random.Random
    counter: Iterator[int] = field(default_factory=itertools.count)
    acked: int = 0
    keys: set[str] = field(default_factory=set)
    added: dict[str, str] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    ended: dict[str, tuple[str, int]] = field(default_factory=dict)
    leases: dict[str, int] = field(default_factory=dict)
    mail: dict[str, str] = field(default_factory=dict)
    unanswered: Request | None = None
    failure: str = ""

    def choose(self) -> Request:
        """Think of something to ask."""
        number = next(self.counter)
        key = f"{self.name}:{number}"
        own = {"session": self.name}
        roll = self.rng.random()
        if roll < 0.35:
            return Request("add", "/api/board", {"title": f"{key} to do"}, key)
        if roll < 0.6:
            return Request("next", "/api/claim", own, key)
        if roll < 0.8 and self.held:
            task, fence = self.rng.choice(list(self.held.items()))
            verb = self.rng.choice(["handin", "release"])
            work = {"commit": "c" * 40} if verb == "handin" else {}
            return Request(verb, f"/api/board/{task}/{verb}", own | {"fence": fence} | work, key)
        if roll < 0.9:
            return Request("send", "/api/mail", own | {"to": "owner", "text": f"{key} says hello"}, key)
        if self.leases and roll < 0.95:
            lease, fence = self.rng.choice(list(self.leases.items()))
            return Request("give", f"/api/leases/{lease}/give", own | {"fence": fence}, key)
        return Request("take", "/api/leases", own | {"resources": [f"{self.name}/{number}"]}, key)

    def learn(self, request: Request, reply: Reply) -> None:
        """Take in an answer as the truth from now on."""
        if reply.status == 204:
            return
        answer = reply.good()
        subject, fence = answer["id"], answer.get("fence", 0)
        match request.verb:
            case "add":
                self.added[subject] = answer["title"]
            case "next":
                assert subject not in self.held, f"{subject} was given twice to {self.name}"
                self.held[subject] = fence
            case "handin" | "release":
                self.ended[subject] = (request.verb, self.held.pop(subject))
            case "send":
                self.mail[subject] = answer["text"]
            case "take":
                self.leases[subject] = fence
            case "give":
                del self.leases[subject]
        self.keys.add(request.key)
        self.acked += 1

    def work(self, daemon: Daemon) -> None:
        """Ask until the daemon dies; what it did not answer then is remembered."""
        with daemon.client() as client:
            while True:
                request = self.choose()
                try:
                    reply = request.send(client)
                except Gone:
                    self.unanswered = request
                    return
                try:
                    self.learn(request, reply)
                except AssertionError as error:
                    self.failure = f"{request}: {error}"
                    return

    def ask_again(self, client: Client) -> None:
        """Repeat what was not answered: the answer is the same however often it is asked."""
        if self.unanswered is None:
            return
        request, self.unanswered = self.unanswered, None
        first = request.send(client)
        if first.status != 204:
            again = request.send(client)
            assert (again.status, again.body) == (first.status, first.body)
        self.learn(request, first)


@contextmanager
def at_work(workers: list[Worker], daemon: Daemon) -> Iterator[None]:
    """Let the workers work until the daemon dies."""
    threads = [threading.Thread(target=worker.work, args=(daemon,)) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()
    assert not any(worker.failure for worker in workers), [worker.failure for worker in workers]


def wait_for_writes(workers: list[Worker], wanted: int) -> None:
    """Wait until so many writes were acknowledged, or something went wrong."""
    wait_until(
        lambda: sum(worker.acked for worker in workers) >= wanted or any(worker.failure for worker in workers),
        f"{wanted} writes",
    )


def check_acknowledged(workers: list[Worker], client: Client) -> None:
    """Everything acknowledged is there, apart from what an unanswered request may have changed since."""
    board = all_tasks(client)
    leases = {lease["id"]: lease for lease in client.get("/api/leases")}
    for worker in workers:
        touched = worker.unanswered.subject if worker.unanswered else ""
        for task, title in worker.added.items():
            assert board[task]["title"] == title
        for task, fence in worker.held.items():
            if task != touched:
                row = board[task]
                assert (row["status"], row["session"], row["fence"]) == ("doing", worker.name, fence), row
        for task, (verb, fence) in worker.ended.items():
            if verb == "handin":
                assert (board[task]["status"], board[task]["fence"]) == ("merging", fence)
            else:
                assert board[task]["fence"] >= fence
        for lease, fence in worker.leases.items():
            if lease != touched:
                assert (leases[lease]["holder"], leases[lease]["fence"]) == (worker.name, fence)
    mail = all_mail(client)
    assert {name: text for worker in workers for name, text in worker.mail.items()}.items() <= mail.items()


def all_mail(client: Client) -> dict[str, str]:
    """Return the owner's mail by id."""
    found: dict[str, str] = {}
    after = 0
    while page := client.get(f"/api/mail?all=true&limit=1000&after={after}"):
        found |= {message["id"]: message["text"] for message in page}
        after = page[-1]["seq"]
    return found


def check_exact(workers: list[Worker], client: Client) -> None:
    """Once everything is answered, the board is what the workers were told, and nothing more."""
    board = all_tasks(client)
    held = {(task, worker.name, fence) for worker in workers for task, fence in worker.held.items()}
    assert {(t["id"], t["session"], t["fence"]) for t in board.values() if t["status"] == "doing"} == held
    assert {t["id"]: t["title"] for t in board.values()} == {
        task: title for worker in workers for task, title in worker.added.items()
    }
    assert all_mail(client) == {name: text for worker in workers for name, text in worker.mail.items()}
    leases = {(lease["id"], lease["fence"]) for lease in client.get("/api/leases")}
    assert leases == {(lease, fence) for worker in workers for lease, fence in worker.leases.items()}
    check_keys(workers, all_events(client))


def check_keys(workers: list[Worker], events: list[dict[str, Any]]) -> None:
    """Each acknowledged key stands in the log, in events of one request that follow each other."""
    places: dict[str, list[int]] = {}
    for event in events:
        if event["key"] is not None:
            places.setdefault(event["key"], []).append(event["seq"])
    assert set(places) == {key for worker in workers for key in worker.keys}
    for key, seqs in places.items():
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs))), f"{key} was done twice"


@pytest.mark.parametrize("kills", [3, pytest.param(60, marks=pytest.mark.soak)])
def test_nothing_acknowledged_is_lost_and_nothing_is_done_twice_when_the_daemon_is_killed(
    tmp_path: Path, kills: int
) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    with serving(tmp_path / "repo") as daemon:
        workers = [Worker(f"worker-{i}", random.Random(rng.random())) for i in range(WORKERS)]
        for _ in range(kills):
            wanted = sum(worker.acked for worker in workers) + 1000 + rng.randrange(300)
            with at_work(workers, daemon):
                wait_for_writes(workers, wanted)
                daemon.kill()
            check_database(daemon.project)
            daemon.start()
            with daemon.client() as client:
                check_acknowledged(workers, client)
                for worker in workers:
                    worker.ask_again(client)
                check_exact(workers, client)
        assert daemon.stop() == 0
        check_database(daemon.project)
