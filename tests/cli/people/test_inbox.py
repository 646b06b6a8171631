"""What waits for a person, as `covey status` counts it."""

from __future__ import annotations

from covey.cli.people.inbox import card, waiting


def test_what_waits_is_counted_in_whole_words() -> None:
    rows = [{"kind": kind} for kind in ("session", "session", "approve", "approve", "blocked")]
    (line,) = waiting(0, rows)
    assert "1 blocked task, 2 merges to approve, 2 sessions in trouble" in line


def test_a_choice_that_the_question_explains_is_told_once() -> None:
    row = {
        "ids": ["question-1"], "sessions": ["ada"], "tasks": ["T-1"], "since": 0.0, "until": None, "rule": "",
        "decisions": ["reply"], "text": "Which port?\n- 80: the old one\n- 8080", "choices": ["80", "8080", "443"],
    }  # fmt: skip
    lines = [line.strip() for line in card(row)]
    assert lines[1:-1] == ["asks:", "Which port?", "- 80: the old one", "- 8080", "- 443"]


def test_what_was_told_of_the_queue_is_counted_as_notices() -> None:
    assert "1 notice about the queue; covey inbox" in "".join(waiting(0, [{"kind": "queue"}]))
    assert "2 notices about the queue" in "".join(waiting(0, [{"kind": "queue"}] * 2))
