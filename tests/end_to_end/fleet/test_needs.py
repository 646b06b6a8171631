"""What needs what: in order where it must be, at the same time where it can be."""

from __future__ import annotations

from collections.abc import Callable

from tests.worlds.projects import GOOD, SCRIPTED, Line


def _task(line: Line, name: str, *needs: str, wait: str = "") -> dict[str, object]:
    """Return a task that records when it begins and ends, and waits for another's beginning if told to."""
    body = (
        f"run echo begin {name} >> {line.mark('story')}; touch {line.mark(name)}\n"
        + (f"wait for {line.mark(wait)}\n" if wait else "")
        + f"write {name}.txt\n    {name}\ncommit {name}\nrun echo end {name} >> {line.mark('story')}\n"
    )
    return {"title": name, "key": name, "needs": list(needs), "body": body}


def test_a_chain_runs_in_order_each_on_what_landed_before(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    sees = {"body": "run test -e one.txt\nwrite two.txt\n    two\ncommit two\n"}
    line.ok("run", "-n", "3", line.tasks(
        _task(line, "one"), _task(line, "two", "one") | sees, _task(line, "three", "two"),
    ))  # fmt: skip
    assert line.landed() == ["three", "two", "one"]
    assert line.marks("story") == ["begin one", "end one", "begin three", "end three"]


def test_the_two_sides_of_a_diamond_run_at_the_same_time(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.ok("run", "-n", "3", line.tasks(
        _task(line, "top"),
        _task(line, "left", "top", wait="right"),  # each ends only after the other has begun
        _task(line, "right", "top", wait="left"),
        _task(line, "bottom", "left", "right"),
    ))  # fmt: skip
    story = line.marks("story")
    assert story[:2] == ["begin top", "end top"]
    assert sorted(story[2:6]) == ["begin left", "begin right", "end left", "end right"]
    assert story[6:] == ["begin bottom", "end bottom"]
    landed = line.landed()
    assert landed[0] == "bottom"
    assert sorted(landed[1:3]) == ["left", "right"]
    line.assert_nothing_left()


def test_a_dropped_need_blocks_what_needs_it_with_the_reason(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.ok("task", "import", line.tasks(_task(line, "base"), _task(line, "top", "base"), _task(line, "alone")))
    base = line.board()["base"]["id"]
    line.ok("task", "drop", base, "--reason", "not wanted")
    said = line.ends(0, "run")
    assert line.landed() == ["alone"], said
    top = line.board()["top"]
    assert top["status"] == "blocked"
    assert base in top["reason"]
    assert line.marks("story") == ["begin alone", "end alone"]


def test_a_run_ends_when_all_that_is_left_waits_for_what_is_blocked(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    bad = {"title": "bad", "key": "bad", "body": "crash 3\n"}
    said = line.ends(1, "run", line.tasks(bad, _task(line, "top", "bad")))
    assert line.statuses() == {"bad": "blocked", "top": "todo"}
    assert "exit code 3" in said
    line.assert_nothing_left()
