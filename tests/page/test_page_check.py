"""How templates are written as calls for tsc: scripts/page_check.py."""

from __future__ import annotations

import importlib.util

import pytest

from tests.model.environment import CHECKOUT

_SPEC = importlib.util.spec_from_file_location("page_check", CHECKOUT / "scripts" / "page_check.py")
assert _SPEC is not None
assert _SPEC.loader is not None
page_check = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(page_check)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("html`<${Words} text=${title} />`", 'html`${__component(Words, { "text": (title), })}`'),
        ("html`<${Note} wide>hi<//>`", 'html`${__component(Note, { "wide": true,children: __children })}hi<//>`'),
        ('html`<${A} b="c" d="e ${f}" g=h />`', 'html`${__component(A, { "b": "c", "d": `e ${f}`, "g": "h", })}`'),
        ("html`<${A} ...${more} />`", "html`${__component(A, { ...(more), })}`"),
        ("html`<p class=${a}>${b}</p>`", "html`<p class=${a}>${b}</p>`"),
        ("html`${html`<${A} />`}`", "html`${html`${__component(A, { })}`}`"),
        ("html`<${A}\n  b=${{ c: 1 }}\n/>`", 'html`${__component(A, {\n  "b": ({ c: 1 }),\n})}`'),
        ("said`<${A} b />`", "said`<${A} b />`"),
    ],
)
def test_a_tag_of_a_component_becomes_a_call_on_the_same_lines(written: str, read: str) -> None:
    assert page_check.Rewriter(written).code() == read


@pytest.mark.parametrize(
    "code",
    [
        "const quote = /[`\"'{]/g; // it's a `comment`\n/* don't ` */ f({ a: '`' });",
        "const half = (a + b) / 2 / c; const said = `a ${b ? `c ${d}` : '}'} \\` e`;",
        "if (/^\\/(?:[^/]|`)$/.test(x)) y();",
    ],
)
def test_code_without_such_a_tag_stays_as_it_is(code: str) -> None:
    assert page_check.Rewriter(code).code() == code
