"""What runs cost: counted once, folded from the log, and summed in every way that people ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from covey.app.costs import costs
from covey.app.fleet import runs
from covey.config import Budget, Config
from covey.core.costs.spending import Used
from covey.core.fleet.outcomes import Again
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Usage
from covey.errors import Invalid
from tests.worlds.boards import World

DAY, NEXT = "2025-06-15", "2025-06-16"
OPUS, HAIKU, LOCAL = "claude-opus-5-5", "claude-haiku-5", "local/llama"
SOME = Used(Usage(1000, 50, 200, 10), 0.005)


def count(world: World, run: Run, used: dict[str, Used], day: str = DAY) -> None:
    """Count what a run has used in all."""
    world.do(lambda call: costs.count(call, run, used, day))


def spent(world: World, **which: str) -> Used:
    """Return what was used."""
    return world.do(lambda call: call.tx.used(**which))


def runs_of(world: World, *names: str) -> list[Run]:
    """Let some sessions begin a run each."""
    for name in names:
        world.add()
        world.at_work(name)
    return [world.begin(name) for name in names]


def test_what_a_run_used_is_counted_once_however_often_it_is_told(world: World) -> None:
    (run,) = runs_of(world, "ada")
    for _ in range(3):
        count(world, run, {OPUS: SOME})
    log = world.seq
    count(world, run, {OPUS: SOME}, NEXT)
    count(world, run, {})
    assert world.seq == log, "nothing new was written down as something new"
    count(world, run, {OPUS: SOME + SOME}, NEXT)
    assert spent(world) == SOME + SOME
    assert spent(world, day=DAY) == spent(world, day=NEXT) == SOME
    events = world.ask("log.list", kind="run.spent")
    assert [(event["actor"], event["subject"], event["data"]["day"]) for event in events] == [
        ("covey", run.id, DAY),
        ("covey", run.id, NEXT),
    ]


def test_whoever_knows_less_than_the_rows_changes_nothing(world: World) -> None:
    (run,) = runs_of(world, "ada")
    count(world, run, {OPUS: SOME + SOME})
    log = world.seq
    count(world, run, {OPUS: SOME})
    assert world.seq == log and spent(world) == SOME + SOME


def test_costs_are_summed_by_task_session_and_day(world: World) -> None:
    one, two = runs_of(world, "ada", "bob")
    count(world, one, {OPUS: SOME, HAIKU: SOME})
    count(world, two, {OPUS: SOME}, NEXT)
    assert spent(world, task=one.task) == SOME + SOME
    assert spent(world, session="bob") == spent(world, session="bob", day=NEXT) == SOME
    assert spent(world, session="bob", day=DAY) == spent(world, task="T-99") == Used()


def test_only_earlier_runs_of_the_same_conversation_come_before_one(world: World) -> None:
    (first,) = runs_of(world, "ada")
    world.do(lambda call: runs.note_conversation(call, first, "talk-1"))
    count(world, first, {OPUS: SOME})
    world.end(first, Again("not yet"))
    second = world.begin("ada")
    world.do(lambda call: runs.note_conversation(call, second, "talk-1"))
    count(world, second, {OPUS: SOME, HAIKU: SOME})

    def earlier(run: Run, conversation: str | None) -> dict[str, Used]:
        return world.do(lambda call: costs.before(call, run, conversation))

    assert earlier(second, "talk-1") == {OPUS: SOME}
    assert earlier(first, "talk-1") == earlier(second, "talk-2") == earlier(second, None) == {}
    world.end(second, Again("not yet"))
    third = world.begin("ada")
    assert earlier(third, "talk-1") == {OPUS: SOME + SOME, HAIKU: SOME}


def test_what_an_interrupted_run_could_not_price_is_settled_when_its_conversation_is_priced_whole(world: World) -> None:
    (first,) = runs_of(world, "ada")
    world.do(lambda call: runs.note_conversation(call, first, "talk-1"))
    cut_off = Used(Usage(1000, 1), 0.0, 1001)
    count(world, first, {OPUS: cut_off, LOCAL: cut_off})
    world.end(first, Again("not yet"))
    second = world.begin("ada")
    world.do(lambda call: runs.note_conversation(call, second, "talk-1"))
    both = {OPUS: Used(Usage(1000, 99), 0.01), LOCAL: Used(Usage(10, 1), 0.0, 11)}
    for _ in range(2):
        world.do(lambda call: costs.count(call, second, both, DAY, whole={OPUS}))
    assert spent(world) == Used(Usage(3010, 102), 0.01, 1012), "of the other model nobody knows the price"
    answer = world.ask("cost.list", by="model")
    assert [(row["key"], row["unpriced"]) for row in answer["rows"]] == [(OPUS, 0), (LOCAL, 1012)]


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("task", ["T-1", "T-2"]),
        ("session", ["ada", "bob"]),
        ("agent", ["scripted"]),
        ("model", [OPUS, HAIKU, LOCAL]),
        ("day", [DAY, NEXT]),
    ],
)
def test_costs_are_listed_by_what_is_asked_for_the_largest_first(world: World, by: str, keys: list[str]) -> None:
    one, two = runs_of(world, "ada", "bob")
    count(world, one, {OPUS: replace(SOME, cost=2.0), HAIKU: SOME})
    count(world, two, {OPUS: replace(SOME, cost=0.5), LOCAL: Used(Usage(70, 30), 0.0, 100)}, NEXT)
    answer = world.ask("cost.list", by=by)
    assert [row["key"] for row in answer["rows"]] == keys
    for name in ("input", "output", "cache_read", "cache_write", "tokens", "unpriced"):
        assert sum(row[name] for row in answer["rows"]) == answer["total"][name]
    assert answer["total"] == {
        "key": "", "runs": 2, "input": 3070, "output": 180, "cache_read": 600, "cache_write": 30, "tokens": 3880,
        "cost": 2.505, "unpriced": 100,
    }  # fmt: skip
    assert answer["without_price"] == [LOCAL] and answer["more"] == 0
    first = world.ask("cost.list", by=by, limit=1)
    assert (first["rows"], first["total"], first["more"]) == (answer["rows"][:1], answer["total"], len(keys) - 1)


def test_costs_are_listed_of_some_days_a_task_or_a_session(world: World) -> None:
    one, two = runs_of(world, "ada", "bob")
    count(world, one, {OPUS: SOME})
    count(world, two, {OPUS: SOME + SOME}, NEXT)

    def keys(**asked: Any) -> list[str]:
        return [row["key"] for row in world.ask("cost.list", by="run", **asked)["rows"]]

    assert keys() == [two.id, one.id]
    assert keys(since=NEXT) == keys(session="bob") == [two.id]
    assert keys(until=DAY) == keys(task=one.task) == [one.id]
    assert keys(since=NEXT, task=one.task) == []
    with pytest.raises(Invalid, match="since must be a day"):
        world.ask("cost.list", since="yesterday")


def test_tasks_sessions_and_runs_show_what_they_cost(world: World) -> None:
    one, two = runs_of(world, "ada", "bob")
    today = costs.day_of(world.clock.now().wall)
    count(world, one, {OPUS: SOME, LOCAL: Used(Usage(7), 0.0, 7)}, today)
    count(world, two, {OPUS: SOME}, "2025-01-01")
    want = {"cost": 0.005, "tokens": 1267, "unpriced": 7}
    assert want.items() <= world.task(one.task).items()
    ada, bob = world.ask("session.list")
    assert want.items() <= ada.items()
    assert (bob["cost"], bob["tokens"]) == (0, 0), "what a session shows is today's"
    assert [(row["id"], row["cost"]) for row in world.ask("run.list")] == [(two.id, 0.005), (one.id, 0.005)]


def test_the_status_shows_today_and_its_budget(tmp_path: Path) -> None:
    world = World(tmp_path, Config(budget=Budget(day=50.0)))
    (run,) = runs_of(world, "ada")
    today = costs.day_of(world.clock.now().wall)
    count(world, run, {OPUS: SOME, LOCAL: Used(Usage(7), 0.0, 7)}, today)
    assert world.ask("status")["today"] == {
        "day": today, "cost": 0.005, "tokens": 1267, "unpriced": 7, "without_price": [LOCAL],
        "budget": 50.0, "budget_tokens": None,
    }  # fmt: skip
    world.store.close()


def test_whatever_an_agent_says_of_its_models_and_prices_can_be_kept(world: World) -> None:
    (run,) = runs_of(world, "ada")
    count(world, run, {"\x1b[1mm\n": Used(Usage(1), float("nan")), "m" * 999: Used(Usage(-1, 2), -5.0)})
    assert [row["key"] for row in world.ask("cost.list", by="model")["rows"]] == ["m" * 200, "[1mm"]
