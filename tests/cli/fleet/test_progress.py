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


def told(capsys: pytest.CaptureFixture[str], *log: tuple[str, str, dict[str, Any]]) -> list[str]:
    """Return the lines of a run of T-2 about some events."""
    page = [
        {"seq": seq, "time": 0.0, "kind": kind, "subject": subject, "data": data}
        for seq, (kind, subject, data) in enumerate(log, 1)
    ]
    answers = {"log.list": page, "task.show": {"title": "Mend it"}}
    story = Story(quiet=False)
    story.ids.add("T-2")
    story.tell(cast("Client", SimpleNamespace(ask=lambda verb, *_, **__: SimpleNamespace(value=answers[verb]))))
    return [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()]


def test_a_gate_that_fails_is_told_with_the_tasks_that_it_tested(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = told(
        capsys,
        ("merge.queued", "m-1", {"task": "T-1"}),
        ("merge.queued", "m-2", {"task": "T-2"}),
        ("gate.started", "gate-1", {"merges": ["m-1", "m-2"]}),
        ("gate.ended", "gate-1", {"passed": False, "step": "check"}),
    )
    assert line.split() == ["failed", "T-1,", "T-2", "in", "gate-1:", "check"]


def test_alerts_about_the_tasks_of_others_are_not_told_and_those_about_all_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    raised = [("needs_you", "T-1"), ("needs_you", "T-2"), ("main_put_back", "T-1"), ("main_red", None)]
    lines = told(
        capsys,
        *(
            (
                "alert.raised",
                f"alert-{n}",
                {"type": kind, "message": f"{kind} of {task}", "task": task},
            )
            for n, (kind, task) in enumerate(raised)
        ),
    )
    assert [line.split(maxsplit=1)[1] for line in lines] == [
        "needs_you of T-2", "main_put_back of T-1", "main_red of None",
    ]  # fmt: skip
