"""covey run is not alone: other runs, sessions of the user's, and daemons and gates that are killed under it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.worlds.projects import GOOD, SCRIPTED, Line, alive, kill, make_line
from tests.worlds.serving import wait_until


def _task(line: Line, name: str, *, go: str = "go") -> dict[str, str]:
    body = (
        f"run echo {name} >> {line.mark('at-work')}\nwait for {line.mark(go)}\nwrite {name}.txt\n    x\ncommit {name}\n"
    )
    return {"title": name, "body": body}


def _ended(running: subprocess.Popen[str]) -> str:
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    return said


def test_two_runs_at_once_land_their_own_and_leave_nothing(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    first = line.begin("run", line.tasks(_task(line, "one")))
    wait_until(lambda: line.marks("at-work") == ["one"], "the first run at work")
    second = line.begin("run", line.tasks(_task(line, "two", go="go-two")))
    wait_until(lambda: line.marks("at-work") == ["one", "two"], "the second run at work")
    line.mark("go").touch()
    said = _ended(first)
    assert "1 task: 1 landed" in said
    line.mark("go-two").touch()
    assert "1 task: 1 landed" in _ended(second)
    assert line.landed() == ["two", "one"]
    assert line.marks("at-work") == ["one", "two"]  # the first's end disturbed nobody
    line.assert_nothing_left()


def test_a_run_leaves_the_sessions_of_the_user_and_their_daemon_alone(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    running = line.begin("run", line.tasks(_task(line, "one")))
    wait_until(lambda: line.marks("at-work") == ["one"], "the run at work")
    line.ok("session", "new", "ada", "--agent", "scripted")
    line.ok("session", "start", "ada")
    line.mark("go").touch()
    _ended(running)
    with line.client() as client:
        task = client.post("/api/board", _task(line, "two"))["id"]
    line.wait_for(task, "done")
    assert line.landed() == ["two", "one"]


def test_a_run_goes_on_when_its_daemon_is_killed(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    running = line.begin("run", line.tasks(_task(line, "one"), _task(line, "two")))
    wait_until(lambda: len(line.marks("at-work")) == 2, "the run at work")
    daemon = int(json.loads((line.state / "daemon.json").read_text())["pid"])
    kill([daemon])
    wait_until(lambda: not alive(daemon), "the daemon's end")
    line.mark("go").touch()
    assert "2 landed" in _ended(running)
    assert sorted(line.marks("at-work")) == ["one", "two"]
    line.assert_nothing_left()


def test_a_killed_gate_is_run_again(made: Callable[..., Line]) -> None:
    gate = "echo . >> $OUTSIDE/gate; while [ ! -e $OUTSIDE/pass ]; do sleep 0.05; done"
    line = made(SCRIPTED, f'[merge]\ncheck = "{gate}"\n')
    line.mark("go").touch()
    running = line.begin("run", line.tasks(_task(line, "one")))
    wait_until(lambda: len(line.marks("gate")) == 1, "the gate")
    kill(pid for run, pid in line.wrappers().items() if run.startswith("gate-"))
    wait_until(lambda: len(line.marks("gate")) == 2, "the gate, again")
    line.mark("pass").touch()
    _ended(running)
    assert line.landed() == ["one"]
    assert line.json("task", "show", line.board()["one"]["id"])["tries"] == []
    line.assert_nothing_left()


def test_a_killed_run_leaves_a_daemon_that_finishes_the_work(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    running = line.begin("run", line.tasks(_task(line, "one")))
    wait_until(lambda: line.marks("at-work") == ["one"], "the run at work")
    running.kill()
    running.communicate()
    line.mark("go").touch()
    wait_until(lambda: line.landed() == ["one"], "the landing")
    wait_until(lambda: line.sessions() == {}, "the end of its sessions")
    line.ok("down")
    line.assert_nothing_left()


def test_down_leaves_agents_at_work_and_down_with_agents_stops_them(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.up()
    with line.client() as client:
        task = client.post("/api/board", _task(line, "one"))["id"]
    line.ok("session", "new", "ada", "--agent", "scripted")
    line.ok("session", "start", "ada")
    wait_until(lambda: line.marks("at-work") == ["one"], "the agent at work")
    (agent,) = line.agents().values()
    said = line.ok("down")
    assert "ada" in said
    assert alive(agent)
    line.ok("down", "--agents")
    assert not alive(agent)
    assert line.board()["one"]["id"] == task
    assert line.statuses() == {"one": "todo"}
    line.up()
    assert line.agents() == {}  # what was stopped is not started
    line.ok("down")


def test_a_run_whose_reader_is_gone_goes_on_to_its_end(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    running = line.begin("run", line.tasks(_task(line, "one"), _task(line, "two")))
    assert running.stdout is not None
    running.stdout.close()
    wait_until(lambda: len(line.marks("at-work")) == 2, "the run at work")
    line.mark("go").touch()
    running.wait(120)
    assert sorted(line.landed()) == ["one", "two"]
    line.assert_nothing_left()


def test_a_hangup_stops_the_agents_of_a_run_though_nobody_can_be_told(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    running = line.begin("run", line.tasks(_task(line, "one"), _task(line, "two")))
    wait_until(lambda: len(line.marks("at-work")) == 2, "the run at work")
    assert running.stdout is not None
    running.stdout.close()
    running.send_signal(signal.SIGHUP)
    running.wait(120)
    line.assert_nothing_left()
    assert set(line.statuses().values()) == {"todo"}


def test_a_task_that_is_dropped_ends_its_agent_and_its_work_is_kept(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    body = f"dirt left.txt\nrun touch {line.mark('dirty')}\nhang\n"
    running = line.begin("run", line.tasks({"title": "one", "body": body}))
    wait_until(line.mark("dirty").exists, "the agent at work")
    (agent,) = line.agents().values()
    line.ok("task", "drop", line.board()["one"]["id"], "--reason", "not wanted")
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 1, said
    assert not alive(agent)
    assert len(line.json("rescue", "list")) == 1
    line.assert_nothing_left()


def test_a_project_may_have_any_name(tmp_path: Path) -> None:
    line = make_line(tmp_path / "an odd 'place' for $HOME; \u00e9t\u00e9", SCRIPTED, GOOD)
    try:
        line.ok("run", "One", 'Two "quoted" `words` $(date)')
        assert sorted(line.landed()) == ["One", 'Two "quoted" `words` $(date)']
        line.assert_nothing_left()
    finally:
        line.end()
