"""The gate, tried on main: by covey init in a fresh repository, later, and beside a daemon at work."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

from covey import config
from covey.core.merging.gates import TRY
from covey.core.texts import in_marks
from covey.errors import Unavailable
from tests.worlds.projects import NOTE, Line
from tests.worlds.queues import Change, fill
from tests.worlds.serving import wait_until

TEST = "import unittest\n\n\nclass It(unittest.TestCase):\n    def test_it(self) -> None:\n        assert {}\n"


def test_init_tries_the_gate_in_its_room_and_a_gate_that_works_holds(made: Callable[..., Line]) -> None:
    line = made(init=False, files={"tests/test_it.py": TEST.format("True")})
    said = line.ok("init")
    check = "python3 -m unittest discover -s tests"
    assert (
        f"Trying {in_marks(check)} on main" in said and "The gate works: main passed it in" in said and "1 test" in said
    )
    assert config.load(line.root).merge.check == check
    with (line.root / "covey.toml").open("a") as file:
        file.write(NOTE)
    line.ok("run", "Add one")  # which the gate has passed, since only green landings are tested
    assert line.landed() == ["Add one"]
    line.commit("tests/test_it.py", TEST.format("False"))
    done = line.run("init", "--check", "--json")
    gate = json.loads(done.stdout)
    assert (done.returncode, gate["verdict"], gate["purpose"]) == (1, "fails", "try")
    assert gate["commit"] == line.git("rev-parse", "main") and gate["failures"] == ["test_it.It.test_it"]
    assert gate["error"] == "AssertionError" and "covey init --check" in gate["advice"]
    line.assert_nothing_left()


def test_init_says_so_when_its_gate_does_not_work_and_only_proposes_it(made: Callable[..., Line]) -> None:
    line = made(init=False, files={"Makefile": "test:\n\tno-such-program --all\n"})
    answer = line.json("init")
    assert (answer["check"], answer["holds"]) == ("make test", False)
    assert answer["gate"]["verdict"] == "broken" and "no-such-program" in answer["gate"]["error"]
    settings = (line.root / "covey.toml").read_text()
    assert '# check = "make test"' in settings and config.load(line.root).merge.check == ""
    (line.root / "covey.toml").write_text(settings.replace("# check = ", "check = "))
    said = line.ends(1, "init", "--check")
    assert "The gate does not work here: " in said and "no-such-program" in said
    line.commit("Makefile", "test:\n\ttrue\n")
    assert "The gate works" in line.ok("init", "--check")
    line.assert_nothing_left()


CHILD = """import subprocess, sys, unittest


class It(unittest.TestCase):
    def test_it(self) -> None:
        subprocess.run([sys.executable, "-c", "import {}"], cwd="/", check=True)
"""
IN_SRC = 'PYTHONPATH="$PWD/src" python3 -m unittest discover -s tests'
SOURCES = {
    "Makefile": "test:\n\tno-such-program run pytest\n\nlint:\n\ttrue\n",
    "pyproject.toml": "[tool.ruff]\n",
    "src/cart/__init__.py": "",
}


def test_init_tries_what_tests_until_it_works_and_names_all_that_it_tried(made: Callable[..., Line]) -> None:
    line = made(init=False, files=SOURCES | {"tests/test_it.py": CHILD.format("cart")})
    said = line.ok("init")
    assert 'Trying "make test" on main' in said and f"Trying {in_marks(IN_SRC)} on main" in said
    (first,) = [told for told in said.splitlines() if '"make test" does not work here: ' in told]
    assert "no-such-program: No such file or directory (covey merge log gate-" in first
    assert f"'{IN_SRC}' works" in said and "No gate is set" not in said
    assert config.load(line.root).merge.check == IN_SRC


def test_init_sets_no_linter_where_tests_fail_and_looks_again_the_next_time(made: Callable[..., Line]) -> None:
    line = made(init=False, files=SOURCES | {"tests/test_it.py": TEST.format("False")})
    said = line.ok("init")
    assert '"make test" does not work here: ' in said and f"'{IN_SRC}' fails on main: AssertionError" in said
    assert "make lint" not in said and "ruff" not in said
    settings = (line.root / "covey.toml").read_text()
    assert f"[merge]\n# check = '{IN_SRC}'" in settings and config.load(line.root).merge.check == ""
    assert f"'{IN_SRC}' is proposed there and does not hold yet" in said
    assert said.splitlines()[-1].startswith("  No gate is set: what agents hand in waits for your review")
    assert said.endswith("covey init looks for one again.\n")
    assert json.loads(line.run("init", "--check", "--json").stdout)["verdict"] == "fails"
    line.commit("tests/test_it.py", TEST.format("True"))
    assert "already, and looked for a gate again" in line.ok("init") and config.load(line.root).merge.check == IN_SRC
    assert "nothing was changed" in line.ok("init")


def test_init_looks_again_whatever_it_proposed_then_and_whatever_is_checked_out(made: Callable[..., Line]) -> None:
    line = made(init=False, files={"Makefile": "lint:\n\tno-such-program\n"})
    assert line.ok("init").endswith("covey init looks for one again.\n")
    line.commit("test_it.py", TEST.format("True"))
    line.git("checkout", "-q", "-b", "other")
    said = line.ok("init")
    assert "already, and looked for a gate again" in said and " on main, as the merge queue would" in said
    settings = config.load(line.root)
    assert settings.merge.check == "python3 -m unittest" and settings.project.main == "main"


def test_init_never_changes_settings_that_a_person_has_edited(made: Callable[..., Line]) -> None:
    line = made(init=False, files={"Makefile": "lint:\n\tno-such-program\n"})
    file = line.root / "covey.toml"
    line.ok("init")
    ours = file.read_bytes()
    line.commit("test_it.py", TEST.format("True"))
    for theirs in (
        ours.replace(b"\n# check = ", b"\n# check: "),
        ours.replace(b'\n# check = "make lint"', b"\n# check = 3"),
        ours.replace(b"\n# check_minutes = 30", b"\n# check_minutes = 40"),
        ours.replace(b"\n", b"\r\n"),
        ours + b"# Mine.\n",
    ):
        assert theirs != ours
        file.write_bytes(theirs)
        assert "nothing was changed" in line.ok("init") and file.read_bytes() == theirs


def test_a_linter_is_the_gate_of_a_project_without_tests_and_told_as_one(made: Callable[..., Line]) -> None:
    line = made(init=False, files={"Makefile": "lint:\n\ttrue\n"})
    said = line.ok("init")
    assert (
        "ran no test: it only looks at the code" in said
        and '"make lint" looks at what lands, and tests nothing' in said
    )
    assert config.load(line.root).merge.check == "make lint" and "No gate is set" not in said
    assert "ran no test" in line.ends(1, "init", "--check")


def test_a_target_called_lint_that_runs_tests_is_told_as_what_it_does(made: Callable[..., Line]) -> None:
    line = made(init=False, files={"Makefile": "lint:\n\t@echo '3 passed in 0.01s'\n"})
    said = line.ok("init")
    assert "3 tests" in said and '"make lint" tests what lands' in said
    line.assert_nothing_left()


def test_a_gate_that_never_worked_is_told_with_its_error_and_no_commit_is_to_blame(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "echo No module named pytest; exit 1"\n')
    line.up()
    (task,) = fill(line, [Change("values/a", "1\n")])
    wait_until(lambda: line.events("queue.halted") != [], "the halt")
    (told,) = line.alerts()
    why = "The gate does not work here: No module named pytest. It has never passed, so no commit is to blame"
    assert told.startswith(why) and "covey init --check" in told
    assert line.git("rev-parse", "--short", "main") not in told
    reasons = line.ok("merge", "why", task)
    assert why in reasons and "covey init --check" in reasons and "git revert" not in reasons
    line.settings('[merge]\ncheck = "true"\n')
    wait_until(lambda: line.landed() != [], "the landing")


def _tries(line: Line) -> list[str]:
    return [event["subject"] for event in line.events("gate.started") if event["data"]["purpose"] == TRY]


def _halted(made: Callable[..., Line]) -> Line:
    """Return a project whose queue has halted because its gate lacks something outside, which is there by now."""
    line = made('[merge]\ncheck = "test -e $OUTSIDE/there || { echo No module named pytest; exit 1; }"\n')
    line.up()
    fill(line, [Change("values/a", "1\n")])
    wait_until(lambda: line.events("queue.halted") != [], "the halt")
    line.mark("there").touch()
    return line


def test_a_try_that_main_passes_lets_a_halted_queue_go_on(made: Callable[..., Line]) -> None:
    line = _halted(made)
    assert line.json("init", "--check")["verdict"] == "works"
    wait_until(lambda: line.landed() != [], "the landing")
    resumed = line.events("queue.resumed")[-1]
    assert resumed["actor"] == "owner" and resumed["data"]["gate"] == _tries(line)[-1]


def test_a_new_daemon_tries_a_gate_again_that_has_never_passed(made: Callable[..., Line]) -> None:
    line = _halted(made)
    resumed = line.events("queue.resumed")
    line.ok("down")
    line.up()
    wait_until(lambda: line.landed() != [], "the landing")
    assert line.events("queue.resumed") == resumed


def test_a_try_keeps_the_board_and_whoever_waits_is_told_so(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "touch $OUTSIDE/began; while [ ! -e $OUTSIDE/go ]; do sleep 0.05; done"\n')
    trying = line.begin("init", "--check")
    wait_until(line.mark("began").exists, "the gate")
    assert "covey init tries the gate at this moment" in line.ends(Unavailable.exit_code, "task", "add", "Wait")
    line.mark("go").touch()
    said, _ = trying.communicate(timeout=60)
    assert trying.returncode == 0 and "The gate works" in said
    line.ok("task", "add", "Go on")


def test_a_try_that_is_interrupted_leaves_nothing(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "touch $OUTSIDE/began; sleep 600"\n')
    trying = line.begin("init", "--check")
    wait_until(line.mark("began").exists, "the gate")
    trying.send_signal(signal.SIGINT)
    said, _ = trying.communicate(timeout=60)
    assert (trying.returncode, said) == (130, "")
    (lost,) = line.events("gate.lost")
    assert lost["data"]["why"].startswith("It was ended")
    line.assert_nothing_left()


def test_a_try_runs_beside_the_queue_and_disturbs_nothing(made: Callable[..., Line]) -> None:
    hold = "while [ ! -e $OUTSIDE/go ]; do sleep 0.05; done"
    line = made(f'[merge]\ncheck = "echo $COVEY_GATE_SLOT >> $OUTSIDE/began; {hold}"\nslots = 1\n')
    line.up()
    fill(line, [Change("values/a", "1\n")])
    wait_until(lambda: line.marks("began") == ["1"], "the gate of the queue")
    with line.client() as client:
        tried = client.post("/api/gates/try")
        wait_until(lambda: line.marks("began") == ["1", "0"], "the gate that is tried")
        assert client.post("/api/gates/try")["id"] == tried["id"]  # it is not tried twice at once
        assert client.ask("POST", "/api/gates/try", {"check": "true"}).status == 409
        first = next(gate["id"] for gate in client.get("/api/queue")["running"] if gate["purpose"] != "try")
        assert client.ask("POST", f"/api/gates/{first}/stop", {}).status == 409
        assert client.post(f"/api/gates/{tried['id']}/stop")["state"] == "lost"
        again = client.post("/api/gates/try", {"check": "test -e nothing"})
        wait_until(lambda: client.get(f"/api/gates/{again['id']}")["state"] != "running", "the end of the try")
        ended = client.get(f"/api/gates/{again['id']}")
        assert (ended["verdict"], ended["merges"]) == ("fails", [])
        line.mark("go").touch()
        wait_until(lambda: line.landed() != [], "the landing")
        works = line.json("init", "--check")
        assert (works["verdict"], works["commit"]) == ("works", line.git("rev-parse", "main"))
        assert client.get(f"/api/gates/{first}")["state"] == "passed"
