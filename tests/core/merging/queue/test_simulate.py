"""A simulated world gives each change what it deserves, always the same, and says what makes no sense in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.core.merging.queue import simulate as world
from covey.core.merging.queue.simulate import Coming, Conflict, Report, World, simulate
from covey.errors import Invalid
from tests.core.merging.queue.worlds import KINDS, compare, make
from tests.worlds.shell import Shell, clean_environment

STRATEGIES = ("serial", "prefix", "group")
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def _reasons(report: Report) -> dict[str, str]:
    return {each.id: each.reason for each in report.rejected}


@each_strategy
def test_every_change_lands_or_is_rejected_for_what_it_is(strategy: str) -> None:
    names = ("fine", "bad", "first", "second", "here", "there", "upon", "upon-upon", "late")
    changes = {id: Coming(id) for id in names}
    changes["bad"] = replace(changes["bad"], bad=True)
    changes["upon"] = replace(changes["upon"], needs=("bad",))
    changes["upon-upon"] = replace(changes["upon-upon"], needs=("upon",), at=500.0)
    changes["late"] = replace(changes["late"], at=1000.0, needs=("fine",))
    conflicts = (Conflict("second", "first"), Conflict("here", "there", semantic=True))
    report = simulate(World(changes=tuple(changes.values()), conflicts=conflicts, slots=3), strategy)
    reasons = _reasons(report)
    semantic = {id for id in ("here", "there") if id in reasons}
    assert len(semantic) == 1 and reasons.pop(semantic.pop()) == "semantic"
    assert reasons == {"bad": "bad", "second": "text", "upon": "needs", "upon-upon": "needs"}
    assert sorted(each.id for each in report.landed) == sorted(changes.keys() - _reasons(report).keys())
    assert report.makespan == max(each.at for each in report.landed) == 1060.0


@each_strategy
def test_a_need_that_comes_later_is_waited_for(strategy: str) -> None:
    report = simulate(World(changes=(Coming("upon", needs=("ground",)), Coming("ground", at=100.0))), strategy)
    assert [each.id for each in report.landed] == ["ground", "upon"]


@each_strategy
def test_the_urgent_goes_first(strategy: str) -> None:
    changes = tuple(Coming(f"c{each}", bad=True, priority=each) for each in range(3))
    report = simulate(World(changes=changes), strategy)
    assert [each.id for each in report.rejected] == ["c2", "c1", "c0"]


@each_strategy
def test_a_gate_that_fails_once_by_chance_rejects_nobody(strategy: str) -> None:
    for seed in range(20):
        found = World(changes=tuple(Coming(f"c{each}") for each in range(10)), slots=2, flake=0.05, seed=seed)
        again = simulate(found, strategy)
        assert again == simulate(found, strategy)
        assert len(again.rejected) <= 1


def test_one_at_a_time_takes_as_long_as_all_tests_together() -> None:
    changes = tuple(Coming(f"c{each}", bad=each == 3) for each in range(10))
    report = simulate(World(changes=changes, seconds=10.0, slots=4), "serial")
    assert (report.makespan, report.tests) == (110.0, 11)
    assert len({each.group for each in report.landed}) == 9


def test_the_gate_takes_longer_and_shorter_by_jitter() -> None:
    changes = tuple(Coming(f"c{each}") for each in range(200))
    ends = [each.at for each in simulate(World(changes=changes, seconds=10.0, jitter=0.5), "serial").landed]
    lengths = [end - start for start, end in zip([0.0, *ends], ends, strict=False)]
    assert 5.0 <= min(lengths) < 6.0 and 14.0 < max(lengths) <= 15.0
    assert 9.0 < ends[-1] / 200 < 11.0


@pytest.mark.parametrize("kind", KINDS)
@each_strategy
def test_every_kind_of_world_comes_to_its_end(strategy: str, kind: str) -> None:
    found = KINDS[kind](1)
    report = simulate(found, strategy)
    ended = {each.id for each in report.landed} | {each.id for each in report.rejected}
    assert ended == {change.id for change in found.changes}
    assert len(report.landed) + len(report.rejected) == len(found.changes)


def test_prefixes_are_faster_than_one_at_a_time() -> None:
    assert compare(make(seed) for seed in range(20))["prefix"].makespan > 5.5
    assert compare(make(seed, slots=1) for seed in range(20))["prefix"].makespan > 2.5
    assert compare(make(seed, bad=0, conflicts=0) for seed in range(5))["prefix"].makespan >= 20


# A world as somebody wrote it down

WHOLE: dict[str, Any] = {
    "slots": 4,
    "gate": {"seconds": 60, "jitter": 0.2},
    "flake": 0.02,
    "seed": 1,
    "changes": [
        {"id": "c1", "at": 0, "bad": False, "priority": 0, "needs": ["c2"], "paths": ["src/a.py"]},
        {"id": "c2", "at": 2.5},
        {"id": "c3", "at": 1000},
    ],
    "conflicts": [["c1", "c2", "text"], ["c2", "c3", "semantic"]],
}


def test_a_world_is_read_as_it_is_written() -> None:
    assert world.read(WHOLE) == World(
        changes=(Coming("c1", needs=("c2",), paths=("src/a.py",)), Coming("c2", at=2.5), Coming("c3", at=1000.0)),
        conflicts=(Conflict("c1", "c2"), Conflict("c2", "c3", semantic=True)),
        slots=4,
        jitter=0.2,
        flake=0.02,
        seed=1,
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([], "The world must be an object"),
        ({}, "has no changes"),
        (WHOLE | {"colour": 1}, "unknown field 'colour'"),
        (WHOLE | {"slots": 0}, "slots must be a whole number from 1"),
        (WHOLE | {"slots": True}, "slots must be a whole number"),
        (WHOLE | {"slots": 2.5}, "slots must be a whole number"),
        (WHOLE | {"flake": 1.5}, "flake must be a number from 0 to 1"),
        (WHOLE | {"flake": float("nan")}, "flake must be a number from 0 to 1"),
        (WHOLE | {"seed": "x"}, "seed must be a whole number"),
        (WHOLE | {"gate": 60}, "gate must be an object"),
        (WHOLE | {"gate": {"seconds": -1}}, "gate.seconds must be a number from 0"),
        (WHOLE | {"gate": {"minutes": 1}}, "gate has an unknown field 'minutes'"),
        (WHOLE | {"changes": {}}, "changes must be a list"),
        (WHOLE | {"changes": ["c1"]}, r"changes\[0\] must be an object"),
        (WHOLE | {"changes": [{"at": 0}]}, r"changes\[0\] needs an id"),
        (WHOLE | {"changes": [{"id": 7}]}, r"changes\[0\] needs an id"),
        (WHOLE | {"changes": [{"id": "c1", "at": -1}]}, r"changes\[0\].at must be a number from 0"),
        (WHOLE | {"changes": [{"id": "c1", "bad": 1}]}, r"changes\[0\].bad must be true or false"),
        (WHOLE | {"changes": [{"id": "c1", "needs": "c2"}]}, r"changes\[0\].needs must be a list"),
        (WHOLE | {"changes": [{"id": "c1", "needs": [2]}]}, r"changes\[0\].needs must be a list of texts"),
        (WHOLE | {"changes": [{"id": "c1", "needs": ["c9"]}]}, "names 'c9', and there is no such change"),
        (WHOLE | {"changes": [{"id": "c1"}, {"id": "c1"}]}, "several changes 'c1'"),
        (WHOLE | {"changes": [{"id": "a", "needs": ["b"]}, {"id": "b", "needs": ["a"]}]}, "needs itself"),
        (WHOLE | {"changes": [{"id": "b", "needs": ["a"]}, {"id": "a", "needs": ["a"]}]}, "'a' needs itself"),
        (WHOLE | {"conflicts": [["c1", "c2"]]}, r"conflicts\[0\] must be two ids"),
        (WHOLE | {"conflicts": [["c1", "c2", "odd"]]}, r"conflicts\[0\] must be two ids"),
        (WHOLE | {"conflicts": [["c1", "c9", "text"]]}, r"conflicts\[0\] names 'c9'"),
        (WHOLE | {"conflicts": [["c1", "c1", "text"]]}, "in conflict with itself"),
    ],
)
def test_what_makes_no_sense_in_a_world_is_named(wrong: object, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        world.read(wrong)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WHOLE, "id", "at"]), inner),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([*WHOLE]), anything)
def test_whatever_is_written_is_read_or_refused(name: str, value: object) -> None:
    try:
        found = world.read(WHOLE | {name: value})
    except Invalid:
        return
    assert isinstance(found, World)


# The command


def _shell(folder: Path) -> Shell:
    return Shell(folder, clean_environment(folder))


def test_the_command_prints_what_comes_of_a_world_outside_any_repository(tmp_path: Path) -> None:
    (tmp_path / "world.json").write_text(json.dumps(WHOLE | {"flake": 0}))
    for words in (["world.json"], ["world.json", "--strategy", "prefix"], ["world.json", "--strategy", "serial"]):
        found = json.loads(_shell(tmp_path).ok("merge", "simulate", *words))
        assert found.keys() == {"makespan", "tests", "landed", "rejected"}
        assert [(each["id"], each["reason"]) for each in found["rejected"]] == [("c1", "text"), ("c3", "semantic")]
        assert [each["id"] for each in found["landed"]] == ["c2"] and found["landed"][0].keys() == {"id", "at", "group"}
    piped = json.loads(_shell(tmp_path).ok("merge", "simulate", "-", stdin='{"changes": []}'))
    assert piped == {"makespan": 0, "tests": 0, "landed": [], "rejected": []}


def test_the_command_takes_the_strategy_of_the_project(tmp_path: Path) -> None:
    shell = _shell(tmp_path)
    shell.git("init", "-q")
    many = json.dumps({"slots": 4, "changes": [{"id": f"c{each}"} for each in range(20)]})
    assert json.loads(shell.ok("merge", "simulate", "-", stdin=many))["makespan"] < 1200
    (tmp_path / "covey.toml").write_text('[merge]\nstrategy = "serial"\n')
    assert json.loads(shell.ok("merge", "simulate", "-", stdin=many))["makespan"] == 1200
    assert json.loads(shell.ok("merge", "simulate", "-", "--strategy", "prefix", stdin=many))["makespan"] < 1200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "standard input line 1 is not JSON"),
        ("{", "standard input line 1 is not JSON"),
        ("[" * 100_000, "standard input is not JSON that makes sense"),
        ("[]", "The world must be an object"),
        ('{"changes": [{"id": "c1", "at": NaN}]}', "at must be a number"),
    ],
)
def test_the_command_says_what_is_wrong_with_a_world(tmp_path: Path, text: str, said: str) -> None:
    ended = _shell(tmp_path).run("merge", "simulate", "-", stdin=text)
    assert ended.returncode == 2 and said in ended.stderr and "Traceback" not in ended.stderr
    missing = _shell(tmp_path).run("merge", "simulate", "nothing.json")
    assert missing.returncode == 2 and "nothing.json cannot be read" in missing.stderr
