"""A daemon that a run started is there for as long as anybody needs it, and no longer; one that died is called dead."""

from __future__ import annotations

import json
import select
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from covey.git.project import find
from covey.loops import lifetime
from covey.store.engine.lock import NeedLock
from tests.worlds.projects import GOOD, SCRIPTED, Line, alive, kill
from tests.worlds.serving import PATIENCE, Daemon, wait_until


def _waiting(line: Line, name: str, *before: str) -> dict[str, Any]:
    """Return a task whose agent says that it is at work, and waits for a word."""
    steps = (*before, f"run touch {line.mark(f'{name}-at-work')}", f"wait for {line.mark(f'{name}-go')}")
    return {"title": name, "body": "\n".join((*steps, f"write {name}.txt", "    done", f"commit {name}", ""))}


def _begin(line: Line, name: str, *before: str) -> subprocess.Popen[str]:
    """Begin a run with one task, and wait until its agent is at work."""
    path = line.folder / f"{name}.jsonl"
    path.write_text(json.dumps(_waiting(line, name, *before)) + "\n")
    running = line.begin("run", str(path))
    wait_until(line.mark(f"{name}-at-work").exists, f"the agent of {name}")
    return running


def _finish(line: Line, name: str, running: subprocess.Popen[str]) -> str:
    line.mark(f"{name}-go").touch()
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    return said


def _daemon(line: Line) -> int:
    return int(json.loads((line.state / "daemon.json").read_text())["pid"])


def test_a_daemon_stays_for_an_up_that_was_typed_meanwhile(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    running = _begin(line, "one")
    daemon = _daemon(line)
    assert line.up() == daemon
    assert "covey stays up for covey up, covey open or the like; covey down stops it." in _finish(line, "one", running)
    assert alive(daemon)
    kill([daemon])  # and so does the next one, until somebody says down
    wait_until(lambda: not alive(daemon), "the end of the daemon")
    running = _begin(line, "two")
    daemon = _daemon(line)
    _finish(line, "two", running)
    assert alive(daemon)
    line.ok("down")
    _finish(line, "three", _begin(line, "three"))
    line.assert_nothing_left()


def test_a_daemon_stays_for_another_run_and_for_a_session_at_work(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    first = _begin(line, "one")
    daemon = _daemon(line)
    second = _begin(line, "two")
    said = _finish(line, "one", first)
    assert "covey stays up for" in said, said
    assert alive(daemon)
    line.start_session("ada")
    said = _finish(line, "two", second)
    assert "The daemon had ended" not in said
    assert alive(daemon)
    assert line.json("status")["stays_for"] == ["the sessions at work (ada)"]
    with line.client() as client:
        client.post("/api/sessions/ada/stop")
    wait_until(lambda: not alive(daemon), "the end of a daemon that nobody needs")
    line.ok("session", "remove", "ada")
    line.assert_nothing_left()


def test_a_daemon_stays_for_the_branch_of_a_person(made: Callable[..., Line]) -> None:
    gate = "while test -e branch.txt -a ! -e $OUTSIDE/branch-go; do sleep 0.1; done"
    line = made(SCRIPTED, f'[merge]\ncheck = "{gate}"\n')
    running = _begin(line, "one")
    daemon = _daemon(line)
    line.git("checkout", "-q", "-b", "mine")
    line.commit("branch.txt", "mine\n")
    line.git("checkout", "-q", "main")
    _finish(line, "one", running)
    running = _begin(line, "two")
    daemon = _daemon(line)
    line.ok("merge", "queue", "mine")
    running.send_signal(signal.SIGINT)  # its own work does not keep the daemon, the person's does
    said, _ = running.communicate(timeout=120)
    assert "the queue (1 of yours on the way to main)" in said, said
    assert alive(daemon)
    line.mark("branch-go").touch()
    wait_until(lambda: not alive(daemon), "the end of a daemon that nobody needs")
    assert (line.root / "branch.txt").exists()


def test_what_is_left_of_a_closed_run_ends_no_daemon_that_came_after_it(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    ghost = _begin(line, "one", "ignore TERM")  # stopping its agent takes ten seconds
    ghost.send_signal(signal.SIGHUP)
    line.ok("down")
    fresh = line.up()
    ghost.communicate(timeout=120)
    assert ghost.returncode == 130
    assert alive(fresh)
    assert line.up() == fresh
    line.ok("down")


def test_the_daemon_of_a_killed_run_lands_its_work_and_goes(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    running = _begin(line, "one")
    daemon = _daemon(line)
    running.kill()
    running.communicate()
    line.mark("one-go").touch()
    wait_until(lambda: not alive(daemon), "the end of a daemon that nobody needs")
    assert line.landed() == ["one"]
    line.assert_nothing_left()


def test_a_run_that_is_refused_leaves_no_daemon_that_it_started(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    for words in ((), ("--detach",)):
        assert "at most 50 are allowed" in line.ends(5, "run", *words, "-n", "51", "One")
        assert not (line.state / "kept").exists()
        line.assert_nothing_left()
    assert line.board() == {}


def _with_a_session(line: Line) -> str:
    """Let ada work whenever a daemon is up, and have a task that only she may take; return the mark of its agent."""
    line.up()
    line.start_session("ada")
    line.ok("down")
    line.ok("task", "add", "hers", "--assignee", "ada", "--body", _waiting(line, "hers")["body"])
    return "hers-at-work"


def test_a_run_that_is_refused_starts_no_daemon_though_a_session_would_work(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    mark = _with_a_session(line)
    (line.root / "src").mkdir()
    (line.root / "TODO.md").write_text("- [x] Done\n")
    (line.root / "bad.jsonl").write_text(json.dumps({"title": "one", "needs": ["T-99"]}) + "\n")
    refusals = [
        (5, "at most 50 are allowed", ("-n", "50", "One")),
        (2, "src is a folder", ("src",)),
        (2, "The title is empty", ("One", "")),
        (2, "no open task in TODO.md", ("TODO.md",)),
        (2, "there is no task 'T-99'", ("bad.jsonl",)),
    ]
    for code, why, words in refusals:
        for detached in ((), ("--detach",)):
            assert why in line.ends(code, "run", *detached, *words)
    line.ok("pause")
    assert "The fleet stands still" in line.ends(5, "run", "One")
    line.ok("resume")
    assert len(line.events("daemon.started")) == 1
    assert not (line.state / "kept").exists()
    assert not line.mark(mark).exists()
    assert list(line.board()) == ["hers"]


def test_a_run_that_is_refused_late_says_for_whom_covey_stays_up(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED + "max = 2\n", GOOD)
    path = line.tasks({"title": "one", "assignee": "bob"}, {"title": "two", "assignee": "kim"})
    for words in ((), ("--detach",)):
        said = line.ends(5, "run", *words, "-n", "1", path)
        assert "at most 2 are allowed" in said and "stays up" not in said
        line.assert_nothing_left()
    _with_a_session(line)
    said = line.ends(5, "run", "--detach", "-n", "1", path)
    assert "at most 2 are allowed" in said
    assert "covey stays up for the sessions at work (ada); covey down stops it." in said
    assert not (line.state / "kept").exists()
    line.ok("down", "--agents")


def test_a_detached_run_without_work_leaves_no_daemon(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    path = line.tasks({"title": "one", "key": "one"})
    line.ok("task", "import", path)
    line.ok("task", "drop", "T-1")
    line.ends(1, "run", "--detach", path)
    assert not (line.state / "kept").exists()
    line.assert_nothing_left()


def test_a_detached_run_leaves_a_daemon_that_does_it(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    path = line.tasks(_waiting(line, "one"))
    said = line.json("run", "--detach", path)
    assert (said["detached"], said["tasks"], said["sessions"]) == (True, ["T-1"], 1)
    line.mark("one-go").touch()
    line.wait_for("T-1", "done")
    assert line.json("status")["stays_for"][0] == "covey up, covey open or the like"
    line.ok("down")
    line.assert_nothing_left()


def test_a_run_whose_tasks_are_at_work_already_says_so_at_once(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    first = _begin(line, "one")
    first.kill()
    first.communicate()
    path = str(line.folder / "one.jsonl")
    waits = f"T-1 is at work already ({line.task('T-1')['session']}); waiting for it."
    detached = line.ok("run", "--detach", path)
    assert waits in detached and "1 agent on" not in detached
    second = line.begin("run", path)
    assert second.stdout is not None and select.select([second.stdout], [], [], PATIENCE)[0]
    assert waits in second.stdout.readline()
    line.mark("one-go").touch()
    second.communicate(timeout=PATIENCE)
    assert second.returncode == 0
    line.ok("down", "--agents")


def test_a_daemon_that_died_is_said_to_have_died_and_who_works_on(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    daemon = line.up()
    line.ok("task", "add", "one", "--body", _waiting(line, "one")["body"])
    line.start_session("ada")
    wait_until(line.mark("one-at-work").exists, "the agent")
    kill([daemon])
    wait_until(lambda: not alive(daemon), "the end of the daemon")
    told = "the daemon has died, 1 agent at work without it (covey up takes them up again)"
    assert told in line.ok("status").splitlines()[0]
    said = line.ok("up")
    assert "The daemon had died: it was not told to end. 1 agent went on without it." in said
    kill([_daemon(line)])
    wait_until(lambda: "has died" in line.ok("status"), "the end of the daemon")
    assert line.json("down")["died"] is True
    line.ok("down", "--agents")
    assert "no daemon, log at" in line.ok("status").splitlines()[0]


def test_a_daemon_goes_when_its_last_page_was_away_for_long(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    constants = {"covey.loops.lifetime.PAGE_ABSENCE_S": 0.5}
    assert lifetime.PAGE_ABSENCE_S > 60  # a page that rests asks once a minute
    project = find(line.root)
    need = NeedLock(project.needed)
    need.take()
    daemon = Daemon(project, "--while-needed", constants=constants).start()
    process = daemon.process
    assert process is not None
    with line.client() as client:
        client._connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {client.token}"})
        stream = client._connection.getresponse()
        stream.readline()
        need.give()
        with line.client() as other:
            wait_until(lambda: bool(other.get("/api/status")["stays_for"] == ["an open page"]), "the page")
        stream.close()
    wait_until(lambda: process.poll() is not None, "the end of a daemon that nobody needs")
    process.communicate()
    assert process.returncode == 0


def test_the_service_is_switched_on_and_takes_over(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    before = line.up()
    said = line.json("up", "--service")  # the systemd of these tests knows nobody
    assert said["enabled"] is False and said["why"] and "systemctl --user enable --now" in said["enable"]
    assert alive(before)
    stand_in = _systemctl(line.folder / "bin")
    line.env["PATH"] = f"{stand_in.parent}:{line.env['PATH']}"
    told = line.ok("up", "--service")
    assert "It is switched on" in told and not alive(before)
    assert [words.split()[1] for words in line.marks("systemctl")] == ["daemon-reload", "enable"]
    assert _daemon(line) != before
    line.ok("down")


def _systemctl(folder: Path) -> Path:
    """Make a systemctl that starts what a unit says, as systemd would."""
    folder.mkdir()
    path = folder / "systemctl"
    path.write_text(
        "#!/bin/sh\n"
        'echo "$@" >> "$OUTSIDE/systemctl"\n'
        'test "$2" = enable || exit 0\n'
        'words=$(sed -n "s/^ExecStart=//p" "$HOME/.config/systemd/user/$4")\n'
        "exec > /dev/null 2>&1\n"
        'eval "setsid $words" &\n'
    )
    path.chmod(0o755)
    return path
