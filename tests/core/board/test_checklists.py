"""Checklists: what a TODO.md means, and boxes ticked without touching anything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.core.board.checklists import parse, tick

SAMPLE = """\
# Plan

Some words.

- [ ] Build it
  With care.

  ```
  - [ ] this is code
  ```
  - [x] The old part
    * [ ] A part of a part
  - a plain bullet belongs to the body
  1. [ ] The new part
- [X] Done before
- [ ] Build it

## Later ##
\t+ [ ] Tabbed
- [] no box
- [y] no box either
```
- [ ] code again
```
"""


def test_items_nest_by_their_indentation() -> None:
    items = parse(SAMPLE)
    assert [(item.title, item.ticked, item.parent) for item in items] == [
        ("Build it", False, None),
        ("The old part", True, 0),
        ("A part of a part", False, 1),
        ("The new part", False, 0),
        ("Done before", True, None),
        ("Build it", False, None),
        ("Tabbed", False, None),
    ]
    assert [item.line for item in items] == [5, 11, 12, 14, 15, 16, 19]


def test_keys_are_the_path_of_headings_and_titles_and_never_the_same() -> None:
    assert [item.key for item in parse(SAMPLE)] == [
        "Plan / Build it",
        "Plan / Build it / The old part",
        "Plan / Build it / The old part / A part of a part",
        "Plan / Build it / The new part",
        "Plan / Done before",
        "Plan / Build it (2)",
        "Plan / Later / Tabbed",
    ]
    assert [item.key for item in parse("- [ ] A\n- [ ] A (2)\n- [ ] A\n")] == ["A", "A (2)", "A (3)"]


def test_indented_lines_after_an_item_are_its_body() -> None:
    first = parse(SAMPLE)[0]
    assert first.body == "With care.\n\n```\n- [ ] this is code\n```\n- a plain bullet belongs to the body"
    assert parse("- [ ] A\n\n      code\n\nend\n")[0].body == "    code"
    assert parse("- [ ] A\n      text\n        more\n")[0].body == "text\n  more"
    assert parse("- [ ] A\nnot indented\n")[0].body == ""


def test_a_box_without_words_is_no_item_and_takes_nothing_from_its_neighbours() -> None:
    text = "- [ ] One\n  more of one\n- [ ] \n  about nothing\n  - [ ] Two\n- [x]\n- [ ] Three\n"
    found = [(item.title, item.body, item.parent, item.line) for item in parse(text)]
    assert found == [("One", "more of one", None, 1), ("Two", "", None, 5), ("Three", "", None, 7)]


def test_windows_line_ends_and_byte_order_marks_are_left_alone() -> None:
    text = "\ufeff- [ ] A\r\n  body\r\n- [ ] B\r\n"
    assert [(item.title, item.body) for item in parse(text)] == [("A", "body"), ("B", "")]
    assert tick(text, {"B"}) == "\ufeff- [ ] A\r\n  body\r\n- [x] B\r\n"


def test_ticking_changes_one_character() -> None:
    assert tick(SAMPLE, {"Plan / Build it (2)"}) == SAMPLE.replace(
        "- [ ] Build it\n\n## Later", "- [x] Build it\n\n## Later"
    )
    assert tick(SAMPLE, {"nothing like it"}) == SAMPLE
    assert tick(SAMPLE, {"Plan / Done before"}) == SAMPLE


LINES = st.one_of(
    st.sampled_from(["", "# One", "## Two", "```", "~~~", "\t", "- plain", "text", "---", "- [ ]", "- [x] "]),
    st.builds(
        lambda indent, mark, box, title: f"{indent}{mark} [{box}] {title}",
        st.sampled_from(["", "  ", "    ", "\t", " "]),
        st.sampled_from(["-", "*", "+", "1.", "2)"]),
        st.sampled_from([" ", "x", "X"]),
        st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=6),
    ),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12),
)
TEXTS = st.builds(
    lambda lines, end: end.join(lines), st.lists(LINES, max_size=14), st.sampled_from(["\n", "\r\n", "\n\n"])
)


@given(TEXTS, st.data())
def test_whatever_the_text_ticking_touches_only_the_boxes_asked_for(text: str, data: st.DataObject) -> None:
    items = parse(text)
    keys = [item.key for item in items]
    assert len(set(keys)) == len(keys)
    assert all(item.parent is None or item.parent < place for place, item in enumerate(items))
    wanted = data.draw(st.sets(st.sampled_from(keys))) if keys else set()
    ticked = tick(text, wanted)
    changed = {place for place, (a, b) in enumerate(zip(text, ticked, strict=True)) if a != b}
    assert changed == {item.box for item in items if item.key in wanted and not item.ticked}
    again = parse(ticked)
    assert [item.key for item in again] == keys
    assert [item.ticked for item in again] == [item.ticked or item.key in wanted for item in items]
    assert tick(ticked, wanted) == ticked
