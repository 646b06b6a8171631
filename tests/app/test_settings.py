"""Every setting in force, with what it means and where it is set, and nothing secret among it."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from covey import config
from covey.app.settings import spelled, tables
from covey.core.settings import GROUPS, MEANINGS


def _names(cls: type[Any], path: str) -> Iterator[str]:
    hints = typing.get_type_hints(cls)
    for each in fields(cls):
        yield f"{path}.{each.name}"
        hint = hints[each.name]
        inner = typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else hint
        if is_dataclass(inner) and isinstance(inner, type):
            yield from _names(inner, f"{path}.{each.name}")


def test_every_setting_says_what_it_means() -> None:
    hints = typing.get_type_hints(config.Config)
    classes = {
        name: typing.get_args(hint)[1] if typing.get_origin(hint) is dict else hint for name, hint in hints.items()
    }
    assert set(GROUPS) == set(classes)
    assert set(MEANINGS) == {name for table, cls in classes.items() for name in _names(cls, table)}


def test_a_setting_tells_its_value_its_default_and_its_line() -> None:
    text = '[merge]\ncheck = "make test"\nslots = 0\n\n[agents.sh]\ncommand = ["bash"]\n[budget.tokens]\nday = 5\n'
    found = {
        f"{table.name}.{row.name}": (row.value, row.default, row.is_set, row.line)
        for table in tables(config.parse(text), text)
        for row in table.settings
    }
    assert found["merge.check"] == ('"make test"', '""', True, 2)
    assert found["merge.slots"] == ("0", "0", True, 3)
    assert found["merge.check_minutes"] == ("30", "30", False, None)
    assert found["agents.sh.command"] == ('["bash"]', "[]", True, 6)
    assert found["budget.tokens.day"] == ("5", "0", True, 8)


def test_what_is_set_is_known_by_its_value_where_the_file_cannot_be_read() -> None:
    (merge, *_) = tables(config.parse('[merge]\ncheck = "make test"\n'), "")
    assert [(row.name, row.line) for row in merge.settings if row.is_set] == [("check", None)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (("run", "--api-key", "hunter2", "-v"), '["run", "--api-key", "[removed]", "-v"]'),
        ("MY_TOKEN=hunter2 make test", '"MY_TOKEN=[removed] make test"'),
        ("run --password='hunter2'", "\"run --password='[removed]'\""),
        ("run --token $TOKEN", '"run --token $TOKEN"'),
        (("run", "{prompt}", "--tokens", "5"), '["run", "{prompt}", "--tokens", "5"]'),
        ({"origin": ("main",)}, '{ origin = ["main"] }'),
    ],
)
def test_no_secret_is_shown(value: Any, shown: str) -> None:
    assert spelled(value) == shown
