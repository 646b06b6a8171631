"""Work that is queued again, and settings that change while work is on its way."""

from __future__ import annotations

from pathlib import Path

from covey.config import Watcher
from covey.core import merges
from tests.app.test_merges import checked, handed_in, merge_of
from tests.app.world import World


def test_settings_that_were_changed_count_for_the_next_work_that_is_handed_in(world: World, tmp_path: Path) -> None:
    checked(world)
    settings = tmp_path / "covey.toml"
    settings.write_text('[merge]\ncheck = "true"\n')
    world.app.house.settings = Watcher(tmp_path).changed
    settings.write_text('[merge]\ncheck = "true"\nreview = true\n')
    _, merge = handed_in(world)
    assert merge_of(world, merge).state is merges.State.REVIEW
    settings.write_text("[merge]\nreview = perhaps\n")
    _, merge = handed_in(world)
    assert merge_of(world, merge).state is merges.State.REVIEW  # what makes no sense changes nothing
