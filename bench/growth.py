"""Growth: what claim, append and tail cost on a large board and a long log, against a small one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bench.figures import Report, percentile
from bench.project import OWNER, Job, add_job, claim_job, fill, opened, run, sample
from covey.app.app import App, Request
from covey.app.shapes.fleet import NewSession
from covey.app.verbs import VERBS
from covey.core.fleet.sessions import Changed, SessionState
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx

BATCH = 50
"""Jobs to a commit while measuring: what 50 clients make of the group commit."""
SESSIONS = 200


@dataclass(frozen=True)
class Cost:
    """Microseconds for one of each."""

    claim: float
    append: float
    tail: float


def growth(*, quick: bool) -> Report:
    """Measure on 1,000 tasks, then on many, then on many with a long log."""
    many, long = (20_000, 100_000) if quick else (100_000, 1_000_000)
    report = Report("growth", f"Growth from 1,000 tasks to {many:,} and to {long:,} events")
    with sample() as small, sample() as large, opened(small) as one, opened(large) as other:
        fill(*one, 1_000)
        fill(*other, many, batch=5_000)
        base, big = _cost(*one), _cost(*other)
        _lengthen(*other, long)
        base_again, longest = _cost(*one), _cost(*other)
    for name in ("claim", "append", "tail"):
        small_cost = min(getattr(base, name), getattr(base_again, name))
        report.add(f"{name} at 1,000 tasks", small_cost, "us")
        report.add(f"{name} at {many:,} tasks, against it", getattr(big, name) / small_cost, "x", at_most=2)
        report.add(f"{name} at {long:,} events, against it", getattr(longest, name) / small_cost, "x", at_most=2)
    return report


def _cost(store: SqliteStore, app: App) -> Cost:
    """Return what one claim, one append and one event read cost, each from a good commit or page.

    The quickest fifth and not the median: what else the machine does must not look like growth.
    """
    claims = run(store, (claim_job(app, f"worker{i % BATCH}") for i in range(500)), BATCH)
    appends = run(store, (add_job(app, i) for i in range(500)), BATCH)
    return Cost(1e6 * percentile(claims, 20) / BATCH, 1e6 * percentile(appends, 20) / BATCH, _tail(store))


def _tail(store: SqliteStore) -> float:
    """Return the microseconds for one event when the last ones are read as a follower reads them."""
    took: list[float] = []
    for step in range(40):
        last = store.head.seq - 500 - step
        began = time.perf_counter()
        page = store.read(partial(Tx.events, after=last, limit=500))
        took.append(1e6 * (time.perf_counter() - began) / len(page))
    return percentile(took, 20)


def _lengthen(store: SqliteStore, app: App, events: int) -> None:
    """Append events of sessions that go to work and back, until the log has this many."""
    named = (NewSession(name=f"long{number}") for number in range(SESSIONS))
    verb = VERBS["session.new"]
    run(store, (app.job(Request(verb, OWNER, asked, {})) for asked in named), SESSIONS)
    run(store, _turns((events - store.head.seq) // 100), 50)


def _turns(number: int) -> Iterator[Job]:
    for turn in range(number):

        def hundred(tx: Tx, turn: int = turn) -> None:
            for i in range(100):
                name = f"long{(turn * 100 + i) % SESSIONS}"
                state = SessionState.WORKING if (turn // 2) % 2 else SessionState.IDLE
                tx.append(name, name, Changed(state, f"turn {turn}"))

        yield hundred
