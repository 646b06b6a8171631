"""Work that is queued again, and settings that change while work is on its way."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.cli.merging import train_view
from covey.config import Watcher
from covey.core.merging import merges
from covey.errors import Refused
from tests.app.merging.test_merges import COMMIT, MAIN, TREE, checked, handed_in, merge_of
from tests.worlds.boards import World


def test_settings_that_were_changed_count_for_the_next_work_that_is_handed_in(world: World, tmp_path: Path) -> None:
    checked(world)
    settings = tmp_path / "covey.toml"
    settings.write_text('[merge]\ncheck = "true"\n')
    world.app.context.changed_settings = Watcher(tmp_path).changed
    settings.write_text('[merge]\ncheck = "true"\nreview = true\n')
    _, merge = handed_in(world)
    assert merge_of(world, merge).state is merges.MergeState.REVIEW
    settings.write_text("[merge]\nreview = perhaps\n")
    _, merge = handed_in(world)
    assert merge_of(world, merge).state is merges.MergeState.REVIEW  # what makes no sense changes nothing


@pytest.mark.parametrize("ends", ["merge.reject", "merge.drop"])
def test_a_branch_that_was_mended_carries_on_its_task(world: World, ends: str) -> None:
    checked(world)
    first = world.ask("merge.queue", branch="mine", commit=COMMIT, title="Mine")
    world.ask(ends, id=first["id"], reason="Not so")
    again = world.ask("merge.queue", branch="mine", commit=TREE, title="Mine, mended")
    assert (again["task"], again["commit"], again["state"]) == (first["task"], TREE, "queued")
    assert again["id"] != first["id"] and world.status(first["task"]) == "merging"
    world.ask("merge.land", id=again["id"], commit=MAIN)
    after = world.ask("merge.queue", branch="mine", commit="9" * 40, title="More")
    assert after["task"] != first["task"], "what landed is done"


def test_a_merge_in_review_is_told_in_words(world: World) -> None:
    _, merge = handed_in(world)
    world.ask("merge.hold", id=merge)
    with pytest.raises(Refused, match=f"{merge} waits for a review, so there is nothing to try again"):
        world.ask("merge.retry", id=merge)
    told = world.ask("merge.why", id=merge)
    assert f"{merge} (T-1) waits for your review." in train_view.reasons(told)


def test_a_branch_of_a_task_that_was_dropped_becomes_another(world: World) -> None:
    checked(world)
    first = world.ask("merge.queue", branch="mine", commit=COMMIT, title="Mine")
    world.ask("merge.reject", id=first["id"], reason="Not so")
    world.ask("task.drop", id=first["task"], reason="Never")
    assert world.ask("merge.queue", branch="mine", commit=TREE, title="Mine")["task"] != first["task"]


def test_what_is_being_reverted_by_a_task_that_is_open_is_not_reverted_twice(world: World) -> None:
    checked(world)
    _, merge = handed_in(world)
    world.ask("merge.land", id=merge, commit=MAIN)
    first = world.ask("merge.revert", id=merge)
    world.ask("merge.reject", id=first["id"], reason="It conflicts")
    with pytest.raises(Refused, match=f"is being reverted already, by {first['task']}, which is todo") as told:
        world.ask("merge.revert", id=merge)
    assert f"covey merge retry {first['id']}" in told.value.hint
    world.ask("task.drop", id=first["task"], reason="Anew")
    assert world.ask("merge.revert", id=merge)["reverts"] == merge
