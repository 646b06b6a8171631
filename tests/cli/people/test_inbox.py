"""What waits for a person, as `covey status` counts it."""

from __future__ import annotations

from covey.cli.people.inbox import waiting


def test_what_waits_is_counted_in_whole_words() -> None:
    rows = [{"kind": kind} for kind in ("session", "session", "approve", "approve", "blocked")]
    (line,) = waiting(0, rows)
    assert "1 blocked task, 2 merges to approve, 2 sessions in trouble" in line
