"""Figures: the same number reads the same on every surface; the table is held against the page's rules as well."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core import figures

SOURCE = Path(figures.__file__).parents[1]
CASES: dict[str, list[tuple[float, str]]] = json.loads(Path(__file__).with_name("figures.json").read_text())
RULES: dict[str, Callable[..., str]] = {
    name: getattr(figures, name) for name in ("count", "money", "span", "took", "age", "size", "tokens")
}
RULES["one"] = lambda number: figures.one(number, "task")


@pytest.mark.parametrize("rule", CASES)
def test_figures_read_as_the_table_says(rule: str) -> None:
    assert [(number, RULES[rule](number)) for number, _ in CASES[rule]] == [tuple(each) for each in CASES[rule]]


def test_every_rule_has_its_cases() -> None:
    assert set(CASES) == set(RULES)


@given(st.floats(min_value=0, max_value=1e7, exclude_min=True))
def test_what_is_not_nothing_never_reads_as_nothing(dollars: float) -> None:
    assert re.search(r"[1-9]", figures.money(dollars))


OWN = re.compile(r"""\$\{?[\w.\[\]'"]+:[,.]|:,?(?:\.\d[fg]|g)\} ?(?:min|h|MB|MiB)\b|:,?\.\df\} s\b|/ ?60:""")
EXCEPT = {"core/figures.py"}


def test_no_other_module_writes_figures_by_itself() -> None:
    """Money, spans and sizes that people read come from one place."""
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if str(path.relative_to(SOURCE)) not in EXCEPT
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if OWN.search(line)
    ]
    assert found == []
