"""Every setting in force, with what it means and where it is set, and nothing secret among it."""

from __future__ import annotations

import shlex
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        ("run --password='hunter2'", '"run --password=[removed]"'),
        ('TOKEN="my secret words" make', '"TOKEN=[removed] make"'),
        ('TOKEN="my \\"secret\\" words" make', '"TOKEN=[removed] make"'),
        ('TOKEN="my secret words', '"TOKEN=[removed]"'),
        ("make MY_KEY='hunter2 more' test", '"make MY_KEY=[removed] test"'),
        ("make MY_KEY=hunter'two three' test", '"make MY_KEY=[removed] test"'),
        ("run --api-key 'hunter two' -v", '"run --api-key [removed] -v"'),
        (("run", "--api-key", "hunter two", "-v"), '["run", "--api-key", "[removed]", "-v"]'),
        (("run", "--token", "--verbose"), '["run", "--token", "--verbose"]'),
        (("run", "--token", "{token}"), '["run", "--token", "{token}"]'),
        (("run", "--auth", "hunter"), '["run", "--auth", "[removed]"]'),
        ("run --auth hunter", '"run --auth [removed]"'),
        (("-H", "Authorization: Bearer hunter"), '["-H", "Authorization: Bearer [removed]"]'),
        (("-H", "Authorization: Bearer $TOKEN"), '["-H", "Authorization: Bearer $TOKEN"]'),
        ("curl -H 'authorization: Odd hunter two' x", "\"curl -H 'authorization: [removed]' x\""),
        (("-H", "X-Api-Key: hunter"), '["-H", "X-Api-Key: [removed]"]'),
        ("AWS_SECRET_ACCESS_KEY=abc/def+1abcdefghi x", '"AWS_SECRET_ACCESS_KEY=[removed] x"'),
        ({"OPENAI_API_KEY": "hunter", "HOME": "/home"}, '{ OPENAI_API_KEY = "[removed]", HOME = "/home" }'),
        ({"OPENAI_API_KEY": "$KEY"}, '{ OPENAI_API_KEY = "$KEY" }'),
        ("run --token $TOKEN", '"run --token $TOKEN"'),
        (("run", "{prompt}", "--tokens", "5"), '["run", "{prompt}", "--tokens", "5"]'),
        ({"origin": ("main",)}, '{ origin = ["main"] }'),
    ],
)
def test_no_secret_is_shown(value: Any, shown: str) -> None:
    assert spelled(value) == shown


@given(st.text(" abc019'\"\\$!#{}[]=:-\n\u00e4", max_size=12), st.sampled_from(["TOKEN=", "--auth ", "--api-key="]))
def test_no_part_of_a_secret_is_shown_however_a_shell_quotes_it(middle: str, name: str) -> None:
    secret = f"hunter{middle}hunter"
    assert spelled(f"run {name}{shlex.quote(secret)} -v") == f'"run {name}[removed] -v"'
    assert spelled(("run", "--auth", secret, "-v")) == '["run", "--auth", "[removed]", "-v"]'
    assert spelled({"API_KEY": secret}) == '{ API_KEY = "[removed]" }'
