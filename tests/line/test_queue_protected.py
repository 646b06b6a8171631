"""What decides whether work is good is not changed by that work: it waits for a person, outside of every tree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.line.lines import Line
from tests.line.queues import Change, fill, merges
from tests.serving import wait_until

GATE = 'for file in values/*; do grep -qx 1 "$file" || exit 1; done\n'
SETTINGS = '[merge]\ncheck = "sh gate.sh"\nprotected = ["covey.toml", "gate.sh"]\nslots = 2\n'


def _held(line: Line) -> dict[str, str]:
    return {merge["branch"]: merge["state"] for merge in merges(line)}


@pytest.mark.parametrize("path", ["gate.sh", "covey.toml"])
def test_a_branch_that_rewrites_the_gate_is_in_no_tree_before_a_person_lets_it(
    made: Callable[..., Line], path: str
) -> None:
    line = made(SETTINGS, files={"gate.sh": GATE, "values/0": "1\n"})
    line.up()
    fill(line, [Change("values/1", "1\n"), Change(path, "# true\n"), Change("values/2", "no\n"), Change("b", "1\n")])
    wanted = {"work/0": "landed", "work/1": "review", "work/2": "rejected", "work/3": "landed"}
    wait_until(lambda: _held(line) == wanted, "the end of all but one")
    tested = [event["data"]["commit"] for event in line.events("gate.started")]
    before = line.git("rev-parse", f"{line.main_values()[-1]}:gate.sh")
    assert tested and {line.git("rev-parse", f"{commit}:gate.sh") for commit in tested} == {before}
    assert not [commit for commit in tested if "covey.toml" in line.git("ls-tree", "--name-only", commit)]
    (waiting,) = [merge for merge in merges(line) if merge["state"] == "review"]
    assert path in waiting["reason"] and any(waiting["id"] in said and path in said for said in line.alerts())
    line.ok("merge", "approve", waiting["id"])
    wait_until(lambda: _held(line)["work/1"] in ("passed", "landed"), "the gate after a person's word")
    if path == "gate.sh":  # the other one has to wait: the user's own covey.toml lies where it would land
        wait_until(lambda: _held(line)["work/1"] == "landed", "the landing of what a person let pass")
        assert line.git("show", "main:gate.sh") == "# true"
