"""What comes to the queue again: other checks, branches that went on, work that was rejected, main itself."""

from __future__ import annotations

from collections.abc import Callable

from tests.line.lines import Line
from tests.line.queues import fill
from tests.line.test_queue import _ends, _good, _settings
from tests.serving import wait_until


def test_a_queue_that_halted_goes_on_when_the_checks_are_others(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "false"\n')
    line.up()
    fill(line, [_good("a")])
    wait_until(lambda: line.events("queue.halted") != [], "the halt")
    line.settings(_settings())
    assert _ends(line) == {"landed": ["values/a"]}


def test_other_checks_count_for_a_new_daemon_as_well(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "false"\n')
    line.up()
    fill(line, [_good("a")])
    wait_until(lambda: line.events("queue.halted") != [], "the halt")
    line.ok("down")
    line.settings(_settings())
    line.up()
    assert _ends(line) == {"landed": ["values/a"]}


def test_a_queue_that_halted_goes_on_when_the_gate_has_more_time(made: Callable[..., Line]) -> None:
    settings = '[merge]\ncheck = "sleep 1.5"\n'
    line = made(settings + "check_minutes = 0.01\n")
    line.up()
    fill(line, [_good("a")])
    wait_until(lambda: line.events("queue.halted") != [], "the halt")
    line.settings(settings)
    assert _ends(line) == {"landed": ["values/a"]}
