"""A queue that is killed at any moment ends as one that nobody disturbs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.worlds.projects import Line, alive, answers, kill, processes_of
from tests.worlds.queues import Change, fill, is_through, merges
from tests.worlds.serving import wait_until

CHECK = "sh gate.sh"
GATE = """sleep 0.2
for file in values/*; do grep -qx 1 "$file" || { echo "FAILED $file"; exit 1; }; done
test ! -e pair/left || test ! -e pair/right || { echo "FAILED pair"; exit 1; }
"""
FILES = {"gate.sh": GATE, "values/0": "1\n", "shared.txt": "nobody\n"}
PAIR = ("pair/left", "pair/right")


def changes(count: int, bad: int) -> list[Change]:
    """Return a queue: some bad ones, two that clash, two that are red together, and good ones between them."""
    special = [Change("shared.txt", "early\n"), Change(PAIR[0], "x\n"), Change("shared.txt", "late\n"),
               Change(PAIR[1], "x\n")]  # fmt: skip
    plain = [Change(f"values/{number}", "broken\n" if number <= bad else "1\n") for number in range(1, count - 3)]
    random.Random(count).shuffle(plain)
    step = max(1, len(plain) // len(special))
    for number, change in enumerate(special):
        plain.insert(number * (step + 1), change)
    return plain


def picture(line: Line) -> dict[str, tuple[str, str, str, int]]:
    """Return what became of every task: its status, its merge, why that was rejected, and how often it was tried."""
    titles = {task["id"]: title for title, task in line.board().items()}
    found = {titles[merge["task"]]: (merge["state"], merge["cause"]) for merge in merges(line)}
    assert len(found) == len(merges(line)), "no merge was made twice"
    shown = {title: line.task(task["id"]) for title, task in line.board().items()}
    return {title: (shown[title]["status"], *found[title], len(shown[title]["tries"])) for title in titles.values()}


def without_pair(found: dict[str, tuple[str, str, str, int]]) -> dict[str, tuple[str, str, str, int]]:
    return {title: value for title, value in found.items() if not title.endswith(PAIR)}


def tree(line: Line) -> dict[str, str]:
    """Return what main holds, but for the pair of which either may be first."""
    listed = line.git("ls-tree", "-r", "--format=%(path) %(objectname)", "main").splitlines()
    return {name: blob for name, blob in (each.split() for each in listed) if name not in PAIR}


def assert_sound(line: Line) -> None:
    """Assert that the journal is main's own story, that nothing landed twice, and that all of it is green."""
    with line.client() as client:
        journal = client.get("/api/landings?limit=1000")
    journal = sorted(journal, key=lambda landing: int(landing["id"].rpartition("-")[2]))
    landed = [merge for landing in journal for merge in landing["merges"]]
    assert len(landed) == len(set(landed)), "nothing lands twice"
    assert sorted(landed) == sorted(merge["id"] for merge in merges(line) if merge["state"] == "landed")
    values = line.main_values()[::-1]
    assert [landing["commit"] for landing in journal] == values[1:]
    assert [landing["before"] for landing in journal] == values[:-1]
    line.assert_green(CHECK)
    titles = line.landed()
    assert len(titles) == len(set(titles)) == len(landed)
    pair = [merge for title, merge in picture(line).items() if title.endswith(PAIR)]
    assert sorted(state for _, state, _, _ in pair) in ([], ["landed", "rejected"])
    assert line.json("log", "verify")["sound"]


# Bad luck


def _gates(line: Line) -> list[int]:
    """Return the processes of gates: their wrappers, and all that these run."""
    found = []
    for pid in processes_of(line.folder):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            env = Path(f"/proc/{pid}/environ").read_bytes()
            if b"COVEY_RUN=gate-" in env or (b"wrapper.py" in words and b"gate-" in words):
                found.append(pid)
    return found


def _strike(line: Line, chance: random.Random) -> str:
    """Kill the daemon, a process of a gate, or both, and see that there is a daemon then."""
    daemon = line.up()
    time.sleep(chance.uniform(0.0, 0.7))  # bad luck waits for nothing
    gates = _gates(line)
    what = chance.choice(["daemon", "gate", "both"])
    victims = [daemon] if what != "gate" or not gates else []
    victims += [chance.choice(sorted(gates))] if what != "daemon" and gates else []
    kill(victims)
    if daemon in victims:
        wait_until(lambda: not alive(daemon), "the daemon's end")
        line.up()
        wait_until(answers(line), "the daemon's answer")
    return f"{what} {len(victims)}"


def _undisturbed(make: Callable[..., Line], queue: list[Change], *settings: str) -> Line:
    line = make(*settings, files=FILES)
    line.up()
    fill(line, queue)
    wait_until(lambda: is_through(line), "the end of the queue", patience=120)
    assert_sound(line)
    return line


def _disturbed(make: Callable[..., Line], queue: list[Change], kills: int, seed: int, *settings: str) -> Line:
    print(f"seed {seed}")
    chance = random.Random(seed)
    line = make(*settings, files=FILES)
    line.up()
    fill(line, queue)
    struck: list[str] = []
    while len(struck) < kills and not is_through(line):
        struck.append(_strike(line, chance))
    print(struck)
    wait_until(lambda: is_through(line), f"the end of the queue, seed {seed}", patience=300)
    assert_sound(line)
    return line


def _settings(strategy: str, slots: int = 2) -> str:
    return f'[merge]\ncheck = "{CHECK}"\nstrategy = "{strategy}"\nslots = {slots}\n'


def _assert_same(one: Line, other: Line, *, exact: bool) -> None:
    """Assert that two queues ended alike; a strategy that lands in groups may let either of a pair be the first."""
    left, right = picture(one), picture(other)
    assert (left if exact else without_pair(left)) == (right if exact else without_pair(right))
    assert tree(one) == tree(other)


def test_gates_that_end_at_the_same_moment_leave_nothing_waiting(made: Callable[..., Line]) -> None:
    """A test that was decided before a landing, and begins after it, is that of the rest of its changes."""
    _undisturbed(made, changes(16, bad=3), _settings("prefix", slots=4))


@pytest.mark.parametrize("strategy", ["group"])
def test_a_queue_that_is_killed_ends_as_one_that_is_not(made: Callable[..., Line], strategy: str) -> None:
    queue, settings = changes(8, bad=1), _settings(strategy)
    calm = _undisturbed(made, queue, settings)
    rough = _disturbed(made, queue, 4, random.randrange(10**6), settings)
    _assert_same(calm, rough, exact=strategy == "serial")


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["serial", "prefix", "group"])
@pytest.mark.parametrize("number", range(3))
def test_a_queue_of_twenty_that_is_killed_twenty_times_ends_as_one_that_is_not(
    made: Callable[..., Line], strategy: str, number: int
) -> None:
    queue, settings = changes(20, bad=3), _settings(strategy)
    calm = _undisturbed(made, queue, settings)
    rough = _disturbed(made, queue, 20, random.randrange(10**6), settings)
    _assert_same(calm, rough, exact=strategy == "serial")
