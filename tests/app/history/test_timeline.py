"""What each session did over the night, from the log."""

from __future__ import annotations

from typing import Any

import pytest

from covey.app.history import timeline
from covey.core.events import Started, Stopped
from covey.core.fleet.sessions import COVEY, Changed, SessionState
from covey.errors import Invalid
from tests.worlds.boards import World


def become(world: World, name: str, state: SessionState, evidence: str = "seen") -> None:
    """Bring a session into a state, as the watchdog does."""

    def change(call: Any) -> None:
        call.put_session(call.known(name), name, Changed(state, evidence), by=COVEY)

    world.do(change)


def shown(row: dict[str, Any], begun: float) -> list[tuple[float, float, str]]:
    """Return the spans of a strip, in minutes from a time on."""
    return [((span["at"] - begun) / 60, (span["until"] - begun) / 60, span["state"]) for span in row["spans"]]


def test_a_strip_follows_a_session_from_the_state_that_the_window_finds_it_in(world: World) -> None:
    world.run_session("ada")
    begun = world.clock.now().wall
    for minutes, state in (
        (10, SessionState.WORKING),
        (20, SessionState.NEEDS_YOU),
        (5, SessionState.WORKING),
        (15, SessionState.DEAD),
    ):
        world.clock.run(minutes * 60)
        become(world, "ada", state, f"now {state}")
    world.clock.run(600)
    (whole,) = world.ask("strip.list", since=begun)
    assert shown(whole, begun) == [
        (0, 10, "idle"),
        (10, 30, "working"),
        (30, 35, "needs-you"),
        (35, 50, "working"),
        (50, 60, "down"),
    ]
    (part,) = world.ask("strip.list", since=begun + 15 * 60, until=begun + 32 * 60)
    assert shown(part, begun) == [(15, 30, "working"), (30, 32, "needs-you")]
    assert part["spans"][1]["evidence"] == "now needs-you"
    (night,) = world.ask("strip.list")
    assert night["spans"] == whole["spans"]


def test_there_is_no_span_for_the_time_without_a_session(world: World) -> None:
    begun = world.clock.now().wall
    world.clock.run(600)
    world.ask("session.new", name="ada")
    world.clock.run(600)
    world.ask("session.remove", name="ada")
    world.clock.run(600)
    world.ask("session.new", name="ada")
    world.clock.run(600)
    (row,) = world.ask("strip.list", since=begun)
    assert shown(row, begun) == [(10, 20, "idle"), (30, 40, "idle")]
    assert world.ask("strip.list", since=begun, until=begun + 300) == []


def test_while_the_daemon_was_away_nobody_knows(world: World) -> None:
    world.run_session("ada")
    begun = world.clock.now().wall
    become(world, "ada", SessionState.WORKING)
    for payload in (Stopped(), Started("1")):
        world.clock.run(600)
        world.do(lambda call, payload=payload: call.tx.append(COVEY, "daemon", payload))  # type: ignore[misc]
    world.clock.run(600)
    (row,) = world.ask("strip.list", since=begun)
    assert shown(row, begun) == [(0, 10, "working"), (10, 20, "unknown"), (20, 30, "working")]


def test_a_strip_shows_the_runs_under_way_in_its_time(world: World) -> None:
    task = world.add()
    world.at_work("ada")
    begun = world.clock.now().wall
    run = world.begin("ada")
    world.clock.run(60)
    (row,) = world.ask("strip.list", since=begun - 60)
    assert row["runs"] == [{"run": run.id, "task": task, "at": run.begun, "until": None, "outcome": None}]


def test_a_restless_session_fits_into_its_strip(world: World) -> None:
    world.run_session("ada")
    begun = world.clock.now().wall

    def flicker(call: Any) -> None:
        for number in range(1_500):
            call.tx.now += 1
            state = SessionState.WORKING if number % 2 else SessionState.IDLE
            call.put_session(call.known("ada"), "ada", Changed(state, "x" * 500), by=COVEY)

    world.do(flicker)
    world.clock.run(1_500)
    (row,) = world.ask("strip.list", since=begun)
    assert 400 < len(row["spans"]) <= 500
    assert max(len(span["evidence"] or "") for span in row["spans"]) <= 120
    world.do(flicker)
    world.clock.run(1_500)
    (row,) = world.ask("strip.list", since=begun)
    assert 300 < len(row["spans"]) <= 500
    assert row["spans"][-1]["until"] == world.clock.now().wall


def test_a_strip_has_its_bounds(world: World) -> None:
    world.run_session("ada")
    with pytest.raises(Invalid, match="31 days"):
        world.ask("strip.list", since=0)
    now = world.clock.now().wall
    assert world.ask("strip.list", since=now + 10, until=now + 20) == []
    assert world.ask("strip.list", session="bob") == []


def test_what_came_after_the_time_that_is_asked_for_takes_nothing_from_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "TURNS", 4)
    world.run_session("ada")
    begun = world.clock.now().wall
    for state in (SessionState.WORKING, SessionState.NEEDS_YOU, SessionState.WORKING):
        world.clock.run(60)
        become(world, "ada", state)
    world.clock.run(57 * 60)
    for state in (SessionState.IDLE, SessionState.WORKING) * 3:
        world.clock.run(60)
        become(world, "ada", state)
    (row,) = world.ask("strip.list", since=begun, until=begun + 3600)
    assert shown(row, begun) == [(0, 1, "idle"), (1, 2, "working"), (2, 3, "needs-you"), (3, 60, "working")]
