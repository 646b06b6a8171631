"""The table of verbs: each is found in the module that the table names, and imported with it alone."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from covey import app
from covey.app.verbs import HOMES, VERBS


def test_every_verb_lives_where_the_table_says() -> None:
    for module in pkgutil.iter_modules(app.__path__):
        import_module(f"covey.app.{module.name}")  # one that the table does not know is refused here
    homes = {name: home for home, names in HOMES.items() for name in names.split()}
    assert {name: verb.run.__module__ for name, verb in VERBS.items()} == {
        name: f"covey.app.{home}" for name, home in homes.items()
    }
    assert len(VERBS) == len(homes) == sum(len(names.split()) for names in HOMES.values())


def test_a_verb_that_nobody_knows_is_in_no_table() -> None:
    assert "task.fly" not in VERBS
    assert VERBS.get("task.fly") is None
    with pytest.raises(KeyError):
        VERBS["task.fly"]
