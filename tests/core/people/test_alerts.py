from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.core.fold import State
from covey.core.people import alerts
from covey.core.people.alerts import Alert, AlertKind, Raised
from covey.store.engine.rows import decode_payload, encode_payload

SOURCE = Path(alerts.__file__).parents[2]


def raised(tree: ast.AST) -> Iterator[str]:
    """Yield the kinds that a module names, but for those that it only looks for."""
    asked = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "last_alert"
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "AlertKind" and id(node) not in asked:
            yield node.attr


def test_every_kind_of_alert_is_raised_somewhere() -> None:
    floors = [SOURCE / name for name in ("app", "loops", "daemon")]
    texts = [file.read_text(encoding="utf-8") for floor in floors for file in floor.rglob("*.py")]
    assert {name for text in texts for name in raised(ast.parse(text))} == {kind.name for kind in AlertKind}


def test_every_kind_of_alert_is_documented() -> None:
    page = (SOURCE.parents[1] / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    for kind in AlertKind:
        assert kind.meaning.endswith(".") and ". " not in kind.meaning
        assert f"| `{kind}` | {kind.meaning} |" in page


@pytest.mark.parametrize("kind", [AlertKind.WAITS, "long_gone"])
def test_an_alert_is_read_whatever_its_kind(kind: str) -> None:
    payload = decode_payload("alert.raised", encode_payload(Raised(type=kind, message="Look.")))
    state = State()
    state.fold(seq=7, at=1.0, actor="covey", kind="alert.raised", subject="alert-1", payload=payload)
    assert state.tables["alerts"] == {"alert-1": Alert(id="alert-1", ordinal=7, type=kind, message="Look.", raised=1.0)}
