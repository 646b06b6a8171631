"""Transcripts: every signal has its line or is of use to covey alone, and nothing is said twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.fleet.signals import (
    Asks,
    Called,
    Calls,
    Compacts,
    Context,
    Conversation,
    Failed,
    Limited,
    Result,
    Said,
    Signal,
    Spent,
    Total,
    Trouble,
    Usage,
    Waits,
    Wants,
    Works,
)
from covey.core.history.transcripts import Transcript


@pytest.mark.parametrize(
    ("signal", "lines"),
    [
        (Said("I look at it.\n\nThen I mend it.\n"), ["- I look at it.", "", "  Then I mend it."]),
        (Calls("1", "shell", "make test\nmake lint"), ["> shell: make test…"]),
        (Calls("1", "Read", "a" * 400), ["> Read: " + "a" * 300 + "…"]),
        (Calls("1", "TodoWrite", ""), ["> TodoWrite"]),
        (Called("1"), []),
        (Called("1", failed=True), ["! failed: a tool"]),
        (Asks("Which port?", choices=("80", "8080")), ["? Which port?", "  choices: 80, 8080"]),
        (Asks("May it?", wants=Wants.PERMISSION, tool="shell", about="rm -r x"), ["? May it?", "  shell: rm -r x"]),
        (Asks("It wants to run: ls", wants=Wants.PERMISSION, tool="shell", about="ls"), ["? It wants to run: ls"]),
        (
            Limited(Trouble.LIMIT, "429", until=1_800_000_000.0, again_in=4.6),
            ["! put off (limit): 429, until 2027-01-15 08:00 UTC; it tries again in 5 s"],
        ),
        (
            Limited(Trouble.LIMIT, "It is used up.", again_in=5),
            ["! put off (limit): It is used up; it tries again in 5 s"],
        ),
        (Failed("It is used up."), ["! gave up (other): It is used up."]),
        (Limited(Trouble.OVERLOAD, "529", until=1e300), ["! put off (overload): 529"]),
        (Failed("No key", Trouble.KEY), ["! gave up (key): No key"]),
        (Failed("Gone", until=float("nan")), ["! gave up (other): Gone"]),
        (Compacts(), ["~ makes its conversation shorter"]),
        (Compacts(on=False), ["~ made its conversation shorter"]),
        (Result("It works."), ["= It works."]),
        (Result(" "), ["= done"]),
    ],
)
def test_what_an_agent_does_has_its_line(signal: Signal, lines: list[str]) -> None:
    assert Transcript().take([signal]) == lines


@pytest.mark.parametrize(
    "signal", [Works(), Waits(), Conversation("c"), Spent("1", Usage(1)), Total(Usage(1)), Context(1, 2)]
)
def test_what_is_of_use_to_covey_alone_has_none(signal: Signal) -> None:
    assert Transcript().take([signal]) == []


def test_a_tool_that_is_said_and_used_stands_there_once() -> None:
    signals: list[Signal] = [Said("I write."), Said("Write: hello.txt"), Calls("1", "Write", "hello.txt #2829e05c94")]
    assert Transcript().take(signals) == ["- I write.", "> Write: hello.txt"]


def test_a_use_that_failed_is_named() -> None:
    transcript = Transcript()
    transcript.take([Calls("1", "shell", "make"), Calls("2", "shell", "ls")])
    assert transcript.take([Called("2"), Called("1", failed=True)]) == ["! failed: shell: make"]
    assert transcript.take([Called("1", failed=True)]) == ["! failed: a tool"]


def test_what_came_of_a_tool_stands_below_it_or_names_it() -> None:
    transcript = Transcript()
    calls: list[Signal] = [Calls("1", "shell", "make"), Calls("2", "shell", "ls")]
    assert transcript.take([*calls, Called("2", output="a\n\nb"), Called("1", output="built")]) == [
        "> shell: make",
        "> shell: ls",
        "  a",
        "",
        "  b",
        "< shell: make",
        "  built",
    ]
    assert transcript.take([Calls("3", "shell", "make"), Called("3", failed=True, output="Error 2")]) == [
        "> shell: make",
        "! failed: shell: make",
        "  Error 2",
    ]


def test_an_edit_shows_its_lines_and_not_that_it_went_in() -> None:
    transcript = Transcript()
    edit = Calls("1", "Edit", "cart.py #0123456789", "-a\n+b")
    assert transcript.take([edit, Called("1", output="The file was updated.")]) == ["> Edit: cart.py", "  -a", "  +b"]
    assert transcript.take([edit, Called("1", failed=True, output="No such text.")])[3:] == [
        "! failed: Edit: cart.py",
        "  No such text.",
    ]


def test_of_a_long_output_the_middle_is_left_out() -> None:
    output = "\n".join(map(str, range(100)))
    shown = Transcript().take([Calls("1", "shell", "seq 100"), Called("1", output=output)])
    assert len(shown) == 41 and shown[1] == "  0" and shown[-1] == "  99" and shown[11] == "  … 61 lines …"
    assert int(shown[12]) - int(shown[10]) - 1 == 61
    assert len(Transcript().take([Calls("1", "Read", "a.py"), Called("1", output=output)])) == 7


def test_what_a_tool_is_given_is_told_in_words() -> None:
    given = '{"todos": [{"content": "paint", "done": false}], "more": {"a": null}}'
    assert Transcript().take([Calls("1", "TodoWrite", given)]) == [
        "> TodoWrite: todos: content paint, done no, more: a none"
    ]


@pytest.mark.parametrize("depth", [30, 400, 900])
@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_what_a_tool_is_given_may_be_nested_as_deeply_as_it_likes(depth: int, opens: str, closes: str) -> None:
    given = f'{{"x": {opens * depth}1{closes * depth}, "y": 2}}'
    (line,) = Transcript().take([Calls("1", "Odd", given)])
    assert line.startswith("> Odd: x: ") and line.endswith("…, y: 2")


def test_a_result_that_was_said_before_is_not_said_again() -> None:
    transcript = Transcript()
    transcript.take([Said("All is well.\n")])
    assert transcript.take([Result("All is well.")]) == ["= done, as it said"]
    assert transcript.take([Result("Something else.")]) == ["= Something else."]


@given(st.lists(st.one_of(st.builds(Said, st.text()), st.builds(Result, st.text()), st.builds(Failed, st.text()))))
def test_no_line_has_a_line_break_in_it_and_every_first_line_has_its_mark(signals: list[Signal]) -> None:
    for signal in signals:
        first, *rest = Transcript().take([signal])
        assert first[:1] in "-=!" and all(line == "" or line.startswith("  ") for line in rest)
        assert all("\n" not in line for line in (first, *rest))
