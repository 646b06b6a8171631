"""Mail reaches models: at least once, in the order of each sender, whoever is killed; and it wakes who has no work."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.projects import GOOD, Line, alive, kill
from tests.worlds.serving import Gone, wait_until

PROGRAM = Path(__file__).with_name("correspondents.py")
MARKER = re.compile(r"\[(mail-\d+)\] From (\w+)")


def correspondents(names: list[str], letters: int) -> str:
    """Return settings with an agent that writes so many letters to its colleagues."""
    words = [sys.executable, "-I", str(PROGRAM), "{prompt_file}", "{session}", ",".join(names), str(letters)]
    return (
        '[sessions]\nagent = "pen"\n[watch]\ncrashes = 1000\nbackoff = 0.1\nbackoff_most = 0.2\n'
        f"[agents.pen]\ncommand = {json.dumps(words)}\nenv = [\"OUTSIDE\"]\n"
    )  # fmt: skip


def lines_of(line: Line, name: str) -> list[dict[str, Any]]:
    """Return what stands in a file of the agents; one who was killed may have left half a line, or joined two."""
    found = []
    for each in line.marks(name):
        with suppress(ValueError):
            found.append(json.loads(each))
    return found


def sent_by(line: Line, names: list[str]) -> dict[str, tuple[str, str]]:
    """Return every message that was sent, with its sender and its reader."""
    return {each["id"]: (name, each["to"]) for name in names for each in lines_of(line, f"sent-{name}")}


def read_by(line: Line, name: str) -> list[str]:
    """Return the messages that the model of a session has read, in their order, again and again if it did."""
    return [found[0] for each in lines_of(line, f"read-{name}") for found in MARKER.findall(each["text"])]


def unread(line: Line, names: list[str]) -> int:
    """Return how much mail is not delivered; the daemon may be away."""
    try:
        with line.client() as client:
            return sum(len(client.get(f"/api/mail?session={name}&limit=1000")) for name in names)
    except (*Gone, AssertionError, ValueError):
        return 1_000_000


def trouble(
    line: Line, luck: random.Random, *, daemons: int, agents: int, until: Callable[[], bool]
) -> tuple[int, int]:
    """Kill the daemon and agents at random, so often, and return how often it was."""
    killed = [0, 0]
    while killed != [daemons, agents] and not until():
        time.sleep(luck.uniform(0.05, 0.6))
        if killed[0] < daemons and luck.random() < daemons / (daemons + agents):
            pid = json.loads((line.state / "daemon.json").read_text())["pid"]
            kill([pid])
            wait_until(lambda pid=pid: not alive(pid), "the daemon's end")  # type: ignore[misc]
            time.sleep(luck.uniform(0, 0.5))
            line.up()
            killed[0] += 1
        elif killed[1] < agents:
            living = list(line.agents().values())
            if living:
                kill([luck.choice(living)])
                killed[1] += 1
    return killed[0], killed[1]


def exchange(line: Line, names: list[str], letters: int, *, daemons: int, agents: int) -> None:
    """Let sessions write to each other while much is killed, and hold covey's notes against the truth."""
    line.up()
    with line.client() as client:
        for name in names:
            client.post("/api/sessions", {"name": name, "agent": "pen"})
            client.post("/api/board", {"title": f"Write, {name}", "kind": "report", "assignee": name})
            client.post(f"/api/sessions/{name}/start")
    seed = random.randrange(10**6)
    begun = time.monotonic()
    wanted = len(names) * letters
    killed = trouble(line, random.Random(seed), daemons=daemons, agents=agents, until=lambda: False)
    wait_until(lambda: len(sent_by(line, names)) == wanted, "all letters sent", patience=300)
    wait_until(lambda: unread(line, names) == 0, "all letters delivered", patience=300)
    took = time.monotonic() - begun
    line.mark("over").touch()
    sent = sent_by(line, names)
    told = 0
    for name in names:
        read = read_by(line, name)
        told += len(read)
        mine = {message for message, (_, to) in sent.items() if to == name}
        assert mine <= set(read), (seed, name, "never read", mine - set(read))
        assert set(read) <= mine, (seed, name, "not its own", set(read) - mine)
        for sender in names:
            order = [int(each.removeprefix("mail-")) for each in dict.fromkeys(read) if sent[each][0] == sender]
            assert order == sorted(order), (seed, name, sender, order)
    notes = line.events("mail.delivered")
    assert sorted(event["subject"] for event in notes) == sorted(sent), (seed, "each is noted once")
    ways = {
        how: sum(event["data"]["how"] == how for event in notes) for how in {event["data"]["how"] for event in notes}
    }
    print(
        f"{wanted} letters between {len(names)} sessions, {killed[0]} daemons and {killed[1]} agents killed: delivered"
        f" in {took:.1f} s, read {told / wanted:.2f} times each, noted by {ways};"
        f" {len(line.marks('mishaps'))} answers lost or agents dead at the worst moment (seed {seed})"
    )


def test_mail_arrives_in_order_though_daemon_and_agents_are_killed(made: Callable[..., Line]) -> None:
    names = ["ada", "bob", "carl", "dora"]
    line = made(correspondents(names, 8), GOOD)
    exchange(line, names, 8, daemons=2, agents=5)


@pytest.mark.soak
def test_300_letters_between_10_sessions_arrive_though_daemon_and_agents_are_killed(made: Callable[..., Line]) -> None:
    names = ["ada", "bob", "carl", "dora", "eve", "fred", "gina", "hugo", "ines", "jack"]
    line = made(correspondents(names, 30), GOOD)
    exchange(line, names, 30, daemons=12, agents=60)
