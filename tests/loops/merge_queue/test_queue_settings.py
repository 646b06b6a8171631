"""What a change of the queue's settings does: a new epoch begins, and results of another gate do not count."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from covey.app.merging.queue_records import digest
from covey.config import Config, Merge
from covey.core.merging.checks import PathCheck
from covey.loops.merge_queue.queue_state import settings_of

CHANGES_A_GATE: dict[str, Any] = {
    "check": "make all",
    "quick": "make lint",
    "checks": (PathCheck(("src/**",), "make src"),),
    "isolate": "on",
    "network": True,
    "env": ("CI",),
    "show": ("/opt/tools",),
}
CHANGES_THE_TRAIN: dict[str, Any] = {"slots": 3, "strategy": "serial", "policy": "merge", "branch": "trunk"}
CHANGES_NEITHER = {"check_minutes", "pristine", "cache", "push", "review", "review_role", "protected", "protect_check"}
"""How long a gate may take, what it is lent, who looks first, and where landed work goes: never what passes."""

BEFORE = Config(merge=Merge(check="make test"))


def test_each_setting_of_the_queue_is_known_by_what_it_changes() -> None:
    assert {each.name for each in fields(Merge)} == {*CHANGES_A_GATE, *CHANGES_THE_TRAIN, *CHANGES_NEITHER}


def test_a_setting_that_changes_a_gate_makes_its_results_count_no_more() -> None:
    for name, value in CHANGES_A_GATE.items():
        after = replace(BEFORE, merge=replace(BEFORE.merge, **{name: value}))
        assert digest(after) != digest(BEFORE), name
        assert settings_of(after) != settings_of(BEFORE), name


def test_a_setting_that_changes_the_train_begins_a_new_epoch_with_the_same_gate() -> None:
    for name, value in CHANGES_THE_TRAIN.items():
        after = replace(BEFORE, merge=replace(BEFORE.merge, **{name: value}))
        assert digest(after) == digest(BEFORE), name
        assert settings_of(after) != settings_of(BEFORE), name
