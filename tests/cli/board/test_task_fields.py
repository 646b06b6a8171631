from __future__ import annotations

from dataclasses import fields

from covey.app.shapes.board import AddTask, EditTask, TaskFull
from covey.cli.board.task import CLEARS, FIELDS
from covey.core.board import tasks
from covey.core.board.tasks import Edited, TaskSpec

NAMES = {field.name for field in FIELDS}


def test_every_field_that_can_be_changed_has_its_option() -> None:
    assert NAMES | {"title", "batch"} == {*EditTask.__struct_fields__}
    assert {*EditTask.__struct_fields__} | {"for_session"} == {*AddTask.__struct_fields__}


def test_every_field_that_a_task_need_not_have_can_be_cleared() -> None:
    assert {name for name, empty in CLEARS.items() if empty is None} == {*tasks.CLEARABLE}


def test_every_field_of_a_task_is_shown_and_edited() -> None:
    kept = {field.name for field in fields(TaskSpec)}
    assert kept - {*TaskFull.__struct_fields__} == set()
    assert {field.name for field in fields(Edited)} == kept - {"key"} | {"note", "cleared"}
