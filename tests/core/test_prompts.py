"""What an agent is told when a run begins: every layer is there, and none grows without bound."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.prompts import MOST, Brief, Told, cut, prompt, resumed
from covey.core.tasks import Kind, Note, Try

PLAIN = Brief(task="T-1", title="Mend it", body="", kind=Kind.CHANGE, session="ada", branch="covey/T-1", main="trunk")
FULL = replace(
    PLAIN,
    body="With care.\n",
    check="make test",
    role="quality",
    scope=("src/**", "new:docs/*"),
    do_not_touch=("src/auth/**",),
    done_when=("make check", "It is fast"),
    needs=(Told("T-0", "Lay the ground", "done", "It is\nlaid", "c0ffee" * 6), Told("T-9", "Look", "dropped")),
    tries=(Try("bob", 1.0, "The first line\nand more"), Try("ada", 2.0, "The last line\nand all of it")),
    notes=(Note("owner", 1.0, "See the plan"),),
    mail=("[mail-4] From bob:\n> Mind the gap", "[mail-5] From eve:\n> Mind the dog"),
    answers=(("Which port?", "8080\nand no other"), ("May I?", "No.")),
    kept=True,
)
LAYERS = [
    "You are ada",
    "Your role",
    "# T-1: Mend it",
    "# What came before",
    "# What went wrong",
    "# What the person",
    "# Notes",
    "# Mail",
]


def test_the_layers_stand_in_their_order() -> None:
    text = prompt(FULL)
    places = [text.index(layer) for layer in LAYERS]
    assert places == sorted(places)


def test_a_plain_task_has_no_empty_layers() -> None:
    text = prompt(PLAIN)
    for layer in (LAYERS[1], *LAYERS[3:]):
        assert layer not in text
    assert "\n\n\n" not in text and "None" not in text
    assert text.endswith("# T-1: Mend it\n")


@pytest.mark.parametrize(
    "told",
    [
        *("covey/T-1", "the newest trunk", "make test", "quality", "With care.", "src/**, new:docs/*", "src/auth/**"),
        *("- make check\n- It is fast", "- T-0: Lay the ground (done, in c0ffeec0ffee)\n  It is\n  laid"),
        *("- T-9: Look (dropped)", "1. bob: The first line\n", "2. ada: The last line\nand all of it"),
        *("git log trunk..HEAD", "- owner: See the plan", "# Mail\n[mail-4] From bob:\n> Mind the gap\n\n[mail-5]"),
        *('`covey ask "..."`', "- You asked: Which port?\n  > 8080\n  > and no other\n- You asked: May I?\n  > No."),
    ],
)
def test_a_prompt_tells(told: str) -> None:
    assert told in prompt(FULL)


def test_of_earlier_tries_only_the_last_is_told_in_full() -> None:
    assert "and more" not in prompt(FULL)


def test_a_report_is_told_to_commit_nothing_and_a_change_to_commit_everything() -> None:
    report = prompt(replace(PLAIN, kind=Kind.REPORT, check="make test"))
    assert "Commit nothing" in report and "covey/T-1" not in report and "make test" not in report
    assert "everything must be committed" in prompt(PLAIN)


texts = st.text(min_size=1).filter(str.strip)


@given(texts, texts, texts, texts)
def test_nothing_of_a_short_text_is_escaped_away(title: str, body: str, what: str, note: str) -> None:
    brief = replace(PLAIN, title=title, body=body, tries=(Try("bob", 1.0, what),), notes=(Note("owner", 1.0, note),))
    text = prompt(brief)
    for part in (title, body.rstrip(), what, note):
        assert part in text


@given(st.integers(0, 3 * MOST))
def test_of_a_long_text_the_end_is_told(size: int) -> None:
    text = "".join(chr(97 + number % 26) for number in range(size))
    told = cut(text)
    assert len(told) <= MOST + 6
    assert text.endswith(told.removeprefix("[...]\n"))
    assert (told == text) is (size <= MOST)


def test_a_prompt_is_bounded_by_how_much_there_is_of_each() -> None:
    long = "x" * 10 * MOST
    brief = replace(
        FULL,
        needs=(Told("T-0", "t", "done", long),) * 3,
        tries=(Try("b", 1.0, long),) * 3,
        notes=(Note("o", 1.0, long),) * 3,
    )
    assert len(prompt(brief)) < 10 * (MOST + 300)


def test_a_conversation_that_is_taken_up_again_is_told_only_what_is_new() -> None:
    text = resumed(FULL)
    for told in ("Go on with T-1: Mend it", "The last line", "> 8080", "> Mind the gap", "make test"):
        assert told in text
    for known in ("With care.", "src/auth/**", "See the plan", "Your role"):
        assert known not in text
    assert "\n\n\n" not in text and "None" not in text


def test_a_report_that_is_taken_up_again_is_not_told_to_commit() -> None:
    text = resumed(replace(PLAIN, kind=Kind.REPORT))
    assert "committed" not in text and "result of the report" in text
