"""What a run does, in a few words that anybody can be shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.fleet import signals
from covey.core.fleet.run_state import RunState
from covey.core.fleet.signals import (
    Asks,
    Called,
    Calls,
    Compacts,
    Failed,
    Limited,
    Result,
    Said,
    Signal,
    Trouble,
    Waits,
    Wants,
)
from covey.core.history.actions import MAX_ACTION_CHARS, action_of, told


def after(*said: Signal) -> str | None:
    """Return the action of a run that has let us know this, one thing a second."""
    heard = RunState()
    for at, signal in enumerate(said):
        heard.take(signal, float(at))
    action = action_of(heard, "/trees/ada")
    return None if action is None else action.text


@pytest.mark.parametrize(
    ("tool", "about", "expected"),
    [
        ("shell", "make test\nmake lint", "running make test make lint"),
        ("shell", "cat /trees/ada/src/a.py", "running cat src/a.py"),
        ("Edit", "/trees/ada/src/auth.py #0123456789", "editing src/auth.py"),
        ("edit", '{"file_path": "/trees/ada/a b.py", "content": "x"}', "editing a b.py"),
        ("edit", '{"filePath":"src/x.py","oldString":"a', "editing src/x.py"),
        ("edit", "*** Begin Patch\n*** Update File: src/a.py\n@@\n*** Add File: b.py\n", "editing src/a.py and 1 more"),
        ("Read", "/trees/ada/README.md", "reading README.md"),
        ("Grep", '{"pattern": "def main", "output_mode": "content"}', "searching def main"),
        ("web_search", "sqlite row values", "looking up sqlite row values"),
        ("TodoWrite", '{"todos": []}', "planning"),
        ("mcp__db__query", "select 1", "using mcp__db__query: select 1"),
        ("mcp__db__query", '{"x": 1}', "using mcp__db__query"),
        ("shell", "curl -H 'Authorization: Bearer abcdefgh12345678abcdefgh'", None),
    ],
)
def test_a_use_of_a_tool_is_told_as_a_part_of_a_sentence(tool: str, about: str, expected: str | None) -> None:
    said = told(tool, about, "/trees/ada")
    assert said == expected if expected is not None else "abcdefgh12345678" not in said


def test_the_action_is_the_last_that_means_something() -> None:
    edits, ran = Calls("1", "Edit", "a.py"), Calls("2", "shell", "make")
    assert after() is None
    assert after(signals.Conversation("x")) is None
    assert after(Waits()) == "thinking"
    assert after(Said("I look at it")) == "at work", "whoever only prints has told of no model that thinks"
    assert after(Waits(), edits) == "editing a.py"
    assert after(Waits(), edits, Called("1"), Waits()) == "edited a.py"
    assert after(Waits(), edits, ran, Called("2")) == "editing a.py", "what has not ended counts"
    assert after(edits, Said("Now the tests")) == "editing a.py"
    assert after(edits, Asks("Which port?", "q")) == "asking: Which port?"
    asks = Asks("It tells", "q", Wants.PERMISSION, "shell", "npm test")
    assert after(edits, asks) == "asking to run npm test"
    assert after(edits, Limited(Trouble.LIMIT, "429")) == "put off: 429"
    assert after(edits, Compacts()) == "making its conversation shorter"
    assert after(edits, Result("It works.\nReally.")) == "done: It works. Really."
    assert after(edits, Failed("no key")) == "gave up: no key"


def test_an_action_is_told_with_the_time_since_when_it_lasts() -> None:
    heard = RunState()
    heard.take(Calls("1", "shell", "make"), 5.0)
    heard.take(signals.Spent("c", signals.Usage(1)), 9.0)
    action = action_of(heard)
    assert action is not None and action.since == 5.0
    heard.take(Called("1"), 12.0)
    action = action_of(heard)
    assert action is not None and (action.text, action.since) == ("ran make", 5.0)


texts = st.text(max_size=400) | st.from_regex(r'\{"file_path": ".{0,80}')


@given(
    tool=st.text(max_size=20) | st.sampled_from(["shell", "edit", "Read", "task"]),
    about=texts,
    root=st.text(max_size=9),
)
def test_whatever_an_agent_says_its_action_is_one_short_line_in_which_all_is_seen(
    tool: str, about: str, root: str
) -> None:
    for over in (False, True):
        said = told(tool, about, root, over=over)
        assert 0 < len(said) <= MAX_ACTION_CHARS and said == said.strip()
        assert all(char == " " or unicodedata.category(char)[0] not in "CZ" for char in said)


@given(st.lists(st.one_of(*(st.from_type(kind) for kind in (Calls, Called, Asks, Said, Limited, Result, Failed)))))
def test_any_signals_lead_to_an_action_that_fits(drawn: list[Signal]) -> None:
    said = after(*drawn)
    assert said is None or 0 < len(said) <= MAX_ACTION_CHARS
