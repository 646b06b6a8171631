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


def test_a_gate_that_fails_is_told_with_the_tasks_that_it_tested(capsys: pytest.CaptureFixture[str]) -> None:
    log = [
        ("merge.queued", "m-1", {"task": "T-1"}),
        ("merge.queued", "m-2", {"task": "T-2"}),
        ("gate.started", "gate-1", {"merges": ["m-1", "m-2"]}),
        ("gate.ended", "gate-1", {"passed": False, "step": "check"}),
    ]
    page = [
        {"seq": seq, "time": 0.0, "kind": kind, "subject": subject, "data": data}
        for seq, (kind, subject, data) in enumerate(log, 1)
    ]
    answers = {"log.list": page, "task.show": {"title": "Mend it"}}
    story = Story(quiet=False)
    story.ids.add("T-2")
    story.tell(cast("Client", SimpleNamespace(ask=lambda verb, *_, **__: SimpleNamespace(value=answers[verb]))))
    assert capsys.readouterr().out.split()[1:] == ["failed", "T-1,", "T-2", "in", "gate-1:", "check"]
