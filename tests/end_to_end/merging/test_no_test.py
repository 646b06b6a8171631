"""A gate that passes because no test is left has tested nothing: such work goes back, unless a person wants it so."""

from __future__ import annotations

from collections.abc import Callable

from tests.worlds.projects import Line
from tests.worlds.queues import Change, fill, merges
from tests.worlds.serving import wait_until

CHECK = "[merge]\ncheck = '''echo \"Ran $(grep -ls test tests/* | wc -l) tests in 0.001s\"'''\n"
ONCE = "[board]\ntries = 1\n"
GONE = Change("tests/one", "none\n")


def _states(line: Line) -> list[str]:
    return [merge["state"] for merge in merges(line)]


def test_work_that_leaves_no_test_goes_back_alone_and_lands_once_a_person_has_let_it(made: Callable[..., Line]) -> None:
    line = made(CHECK, ONCE, files={"tests/one": "test\n"})
    line.up()
    tasks = fill(line, [Change("a", "1\n"), GONE, Change("b", "1\n")])
    wait_until(lambda: _states(line) == ["landed", "rejected", "landed"], "the end of all three")
    said = line.ok("merge", "why", tasks[1])
    assert "passes, but runs no test" in said and "(no test)" in said
    assert "The check passed, but ran no test; on main it ran 1." in line.ok("merge", "log", tasks[1])
    failed = [event["data"] for event in line.events("gate.ended") if event["data"].get("step") == "no test"]
    assert len(failed) >= 2 and not any(each["passed"] or each["code"] for each in failed)
    for verb in ("retry", "hold", "approve"):
        line.ok("merge", verb, tasks[1])
    wait_until(lambda: _states(line)[-1] == "landed", "the landing of what a person let pass")
    fill(line, [Change("c", "1\n")])
    wait_until(lambda: _states(line)[-1] == "landed", "the landing on a main that has no test")


def test_an_approval_that_came_before_anybody_was_told_does_not_count(made: Callable[..., Line]) -> None:
    line = made(CHECK + "review = true\n", ONCE, files={"tests/one": "test\n"})
    line.up()
    (task,) = fill(line, [GONE])
    line.ok("merge", "approve", task)
    wait_until(lambda: _states(line) == ["rejected"], "the end of work that was approved too early")
    line.ok("merge", "retry", task)
    line.ok("merge", "approve", task)
    wait_until(lambda: _states(line) == ["rejected", "landed"], "the landing")


def test_a_project_gets_its_first_tests_and_a_revert_takes_them_out_again(made: Callable[..., Line]) -> None:
    line = made(CHECK, ONCE)
    line.up()
    fill(line, [Change("a", "1\n")])
    wait_until(lambda: _states(line) == ["landed"], "the landing in a project without tests")
    (task,) = fill(line, [Change("tests/one", "test\n")])
    wait_until(lambda: _states(line) == ["landed"] * 2, "the landing of the first test")
    line.ok("merge", "revert", task)
    wait_until(lambda: _states(line)[-1] == "landed" and len(_states(line)) == 3, "the landing of the revert")
    tested = [event["data"]["commit"] for event in line.events("gate.started")]
    assert len(tested) == len(set(tested)) == 3
