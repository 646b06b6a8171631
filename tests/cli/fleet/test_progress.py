"""What `covey run` tells of its tasks as it happens."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from covey.cli.fleet.progress import Story
from covey.cli.frame.client import Client
from tests.worlds.boards import World


@pytest.mark.parametrize(("reason", "said"), [({}, ""), ({"reason": "Nobody wants it"}, "Nobody wants it")])
def test_a_task_that_is_dropped_is_told_of_with_a_reason_and_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reason: dict[str, Any], said: str
) -> None:
    world = World(tmp_path)

    def ask(verb: str, params: dict[str, Any] | None = None, fields: dict[str, Any] | None = None) -> SimpleNamespace:
        return SimpleNamespace(value=world.ask(verb, **(params or {}), **(fields or {})))

    task = world.add()
    story = Story(quiet=False)
    story.ids.add(task)
    world.ask("task.drop", id=task, **reason)
    story.tell(cast("Client", SimpleNamespace(ask=ask)))
    line = capsys.readouterr().out.splitlines()[-1]
    assert "dropped" in line and line.partition(task)[2].strip() == said
    world.store.close()
