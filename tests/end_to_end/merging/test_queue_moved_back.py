"""A person moves main back while work that has passed waits for it: main is theirs, and nothing comes back unasked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.end_to_end.merging.test_queue import _good, _settings
from tests.worlds.projects import Line
from tests.worlds.queues import fill, merges
from tests.worlds.serving import wait_until


def _states(line: Line) -> list[str]:
    return [merge["state"] for merge in merges(line)]


def _files(line: Line) -> str:
    return line.git("ls-tree", "-r", "--name-only", "main", "values/")


@pytest.mark.parametrize("policy", ["squash", "merge"])
def test_what_a_person_took_off_main_does_not_come_back_with_what_waited_for_their_checkout(
    made: Callable[..., Line], policy: str
) -> None:
    line = made(_settings(more=f'policy = "{policy}"\n'))
    line.up()
    (first,) = fill(line, [_good("a")])
    wait_until(lambda: _states(line) == ["landed"], "the first")
    off = line.git("rev-parse", "main")
    (line.root / "values" / "b").write_text("mine\n")
    (second,) = fill(line, [_good("b")])  # a branch that stands on the first
    wait_until(lambda: _states(line) == ["landed", "passed"], "what waits")
    line.git_at_last("reset", "-q", "--hard", "HEAD~1" if policy == "squash" else "HEAD^1")
    (line.root / "values" / "b").unlink()
    wait_until(lambda: _states(line)[1] in ("landed", "rejected"), "the end")
    if policy == "squash":
        assert (_states(line)[1], _files(line)) == ("landed", "values/b")
    else:  # what is merged brings all that it stands on
        assert (_states(line)[1], _files(line)) == ("rejected", "")
        assert f"It is built on {off[:12]}, which was rejected, dropped or taken off main" in merges(line)[1]["reason"]
    (told,) = [each for each in line.alerts() if "no longer holds" in each]
    assert f"{first} (" in told and f"git merge {off[:12]} brings it in again" in told
    assert second not in told
    (note,) = [note["text"] for note in line.task(first)["notes"]]
    assert "no longer on main" in note and f"git merge {off[:12]}" in note
    assert line.task(first)["status"] == "done"


@pytest.mark.parametrize("is_up", [True, False])
def test_what_a_person_takes_off_main_while_nothing_waits_is_told(made: Callable[..., Line], is_up: bool) -> None:
    line = made(_settings())
    line.up()
    (task,) = fill(line, [_good("a")])
    wait_until(lambda: _states(line) == ["landed"], "the landing")
    if not is_up:
        line.ok("down")
    line.git_at_last("reset", "-q", "--hard", "HEAD~1")
    line.up()
    wait_until(lambda: any("no longer holds" in each for each in line.alerts()), "that a person is told")
    assert "no longer on main" in line.task(task)["notes"][0]["text"]
