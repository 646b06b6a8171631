"""What decides whether work is good is not changed by that work: it waits for a person, outside of every tree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from covey import config
from covey.app.merging.queue_records import digest
from tests.worlds.projects import Line
from tests.worlds.queues import Change, fill, merges
from tests.worlds.serving import wait_until

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


@pytest.mark.parametrize(
    ("check", "path"), [("sh gate.sh", "gate.sh"), ("make test", "GNUmakefile"), ("make test", "test/new")]
)
def test_what_the_check_names_is_protected_without_a_setting(made: Callable[..., Line], check: str, path: str) -> None:
    files = {"gate.sh": GATE, "Makefile": "test:\n\tsh gate.sh\n", "values/0": "1\n"}
    line = made(f'[merge]\ncheck = "{check}"\n', files=files)
    line.up()
    fill(line, [Change(path, "exit 0\n"), Change("values/1", "no\n"), Change("values/2", "1\n")])
    wanted = {"work/0": "review", "work/1": "rejected", "work/2": "landed"}
    wait_until(lambda: _held(line) == wanted, "the end of all but one")
    (waiting,) = [merge for merge in merges(line) if merge["state"] == "review"]
    assert f"the check names {path}" in line.ok("merge", "why", waiting["id"])


def test_whoever_does_not_want_that_can_end_it(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "sh gate.sh"\nprotect_check = false\n', files={"gate.sh": GATE, "values/0": "1\n"})
    line.up()
    fill(line, [Change("gate.sh", "exit 0\n")])
    wait_until(lambda: _held(line) == {"work/0": "landed"}, "its landing")


def test_a_gate_that_wants_the_network_says_so_to_whoever_asks_why(made: Callable[..., Line]) -> None:
    say = "echo curl: Could not resolve host example.org"
    line = made(f'[merge]\ncheck = "test ! -e b || {{ {say}; exit 1; }}"\n', "[board]\ntries = 1\n")
    line.up()
    fill(line, [Change("b", "1\n")])
    wait_until(lambda: _held(line) == {"work/0": "rejected"}, "its end")
    (merge,) = merges(line)
    assert "network = true in [merge] of covey.toml" in line.ok("merge", "why", merge["id"])
    assert "network = true in [merge] of covey.toml" in line.ok("task", "show", merge["task"])


def test_what_main_passed_in_another_room_is_not_believed() -> None:
    rooms = ("", "network = true\n", 'env = ["DATA"]\n', 'show = ["/data"]\n', 'isolate = "off"\n')
    found = {digest(config.parse(f'[merge]\ncheck = "make test"\n{room}')) for room in rooms}
    assert len(found) == len(rooms)
    assert digest(config.parse('[merge]\ncheck = "make test"\nslots = 3\n')) in found
