"""Whatever is killed: agents outlive the daemon, work outlives the agents, and nothing is done twice."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.worlds.projects import GOOD, SCRIPTED, Line, alive, answers, kill, processes_of
from tests.worlds.serving import wait_until

COUNT = 20


def _sessions(line: Line, *names: str) -> None:
    with line.client() as client:
        for name in names:
            client.post("/api/sessions", {"name": name, "agent": "scripted"})
            client.post(f"/api/sessions/{name}/start")


def _add(line: Line, *bodies: str) -> list[str]:
    with line.client() as client:
        wanted = [{"title": f"Task {number}", "body": body} for number, body in enumerate(bodies)]
        return [client.post("/api/board", task)["id"] for task in wanted]


def _counting(line: Line, number: int) -> str:
    """Return a script that prints numbered lines until it may go on, and says when it starts."""
    count = f'i=0; while [ ! -e {line.mark("go")} ]; do i=$((i+1)); echo "line $i"; sleep 0.2; done; echo "last $i"'
    return (
        f"run echo $COVEY_SESSION >> {line.mark('starts')}\nrun {count}\n"
        f"write files/{number}\n    {number}\ncommit File {number}\n"
    )


def _printed(line: Line) -> int:
    return sum(path.stat().st_size for path in (line.state / "runs").glob("run-*/output"))


def test_agents_outlive_a_killed_daemon_and_the_next_one_adopts_them(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    daemon = line.up()
    names = [f"worker-{number}" for number in range(COUNT)]
    ids = _add(line, *(_counting(line, number) for number in range(COUNT)))
    _sessions(line, *names)
    wait_until(lambda: len(line.marks("starts")) == COUNT, "all agents at work")
    agents = line.agents()
    kill([daemon])
    wait_until(lambda: not alive(daemon), "the daemon's end")
    before = _printed(line)
    wait_until(lambda: _printed(line) > before + COUNT * 16, "the agents going on without a daemon")
    begun = time.monotonic()
    line.up()
    with line.client() as client:
        wait_until(
            lambda: all(client.get(f"/api/sessions/{name}/logs?since=-9")["alive"] for name in names), "all adopted"
        )
    print(f"{COUNT} agents adopted {time.monotonic() - begun:.2f} s after covey up began")
    sessions = line.sessions()
    assert {sessions[name]["state"] for name in names} == {"working"}
    assert all(sessions[name]["run"] in agents for name in names)
    line.mark("go").touch()
    for task in ids:
        line.wait_for(task, "done")
    assert sorted(line.marks("starts")) == sorted(names)
    assert sorted(line.landed()) == sorted(f"Task {number}" for number in range(COUNT))
    for name in names:
        printed = line.ok("session", "logs", name)
        numbers = [int(number) for number in re.findall(r"^line (\d+)$", printed, re.MULTILINE)]
        last = re.search(r"^last (\d+)$", printed, re.MULTILINE)
        assert last is not None, printed
        assert numbers == list(range(1, int(last[1]) + 1))
    assert {event["data"]["outcome"] for event in line.events("run.ended")} == {"handed-in"}


def test_a_new_daemon_is_obeyed_by_the_agents_that_it_adopted(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    daemon = line.up()
    (task,) = _add(line, _counting(line, 0))
    _sessions(line, "ada")
    wait_until(lambda: line.marks("starts") == ["ada"], "the agent at work")
    (agent,) = line.agents().values()
    kill([daemon])
    wait_until(lambda: not alive(daemon), "the daemon's end")
    line.up()
    line.ok("session", "stop", "ada")
    assert not alive(agent)
    assert line.task(task)["status"] == "todo"
    assert line.task(task)["tries"] == []


def _files(folder: Path) -> dict[str, bytes]:
    """Return all that lies in a checkout but what its own git keeps."""
    found = (path for path in folder.rglob("*") if path.is_file())
    named = {str(path.relative_to(folder)): path.read_bytes() for path in found}
    return {name: data for name, data in named.items() if name != ".git" and "/.git/" not in f"/{name}"}


def _leaves_much(line: Line) -> str:
    return (
        "write committed.txt\n    kept by git\ncommit A first step\n"
        f"dirt left.txt\nnest inner\nrun touch {line.mark('dirty')}\nhang\n"
    )


def test_a_killed_agent_loses_nothing_and_is_begun_again(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD, "[watch]\nbackoff = 0.05\n")
    line.up()
    (task,) = _add(line, _leaves_much(line))
    _sessions(line, "ada")
    wait_until(line.mark("dirty").exists, "what the agent leaves")
    place = line.worktrees / "ada"
    before, inner = _files(place), line.git("-C", "inner", "log", "--format=%H %s", at=place)
    with line.client() as client:
        client.ask("PATCH", f"/api/board/{task}", {"body": "write done.txt\n    at last\ncommit Done\n"}).good()
    kill(line.agents().values())
    assert line.wait_for(task, "done")["tries"] == []  # a crash: no fault of the task unless it comes again and again
    crashed = line.events("run.ended")[0]["data"]
    assert crashed["outcome"] == "crashed" and "signal 9" in crashed["what"]
    name = re.search(r"covey rescue show (\S+)\.", crashed["what"])
    assert name is not None, crashed["what"]
    again = line.folder / "again"
    line.ok("rescue", "restore", name[1], "--to", str(again))
    assert _files(again) == before
    assert {"left.txt", "inner/inner.txt", "inner/dirty.txt", "committed.txt"} <= set(before)
    assert line.git("-C", "inner", "log", "--format=%H %s", at=again) == inner
    assert line.git("-C", "inner", "status", "--porcelain", at=again) == "?? dirty.txt"
    assert line.landed() == ["Task 0"]
    assert line.git("ls-tree", "--name-only", "main", "committed.txt", "done.txt") == "committed.txt\ndone.txt"


def test_a_killed_wrapper_takes_all_of_its_run_along_and_the_task_goes_on(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.up()
    first = f"test -e {line.mark('second')} || {{ echo x > lost.txt; touch {line.mark('first')}; sleep 1000; }}"
    (task,) = _add(line, f"run {first}\nwrite done.txt\n    at last\ncommit Done\n")
    _sessions(line, "ada")
    wait_until(line.mark("first").exists, "the first run")
    (wrapper,) = line.wrappers().values()
    family = set(processes_of(line.folder)) - {line.up()}
    assert len(family) >= 3  # the wrapper, the agent, its shell, and what that started
    line.mark("second").touch()
    kill([wrapper])
    line.wait_for(task, "done")
    assert [pid for pid in family if alive(pid)] == []
    outcomes = [event["data"]["outcome"] for event in line.events("run.ended")]
    assert outcomes == ["lost", "handed-in"]
    assert line.task(task)["tries"] == []  # the machine's fault, not the task's
    assert [each["counts"]["untracked"] for each in line.json("rescue", "list")] == [1]


@pytest.mark.parametrize("by", ["covey run", "sessions"])
def test_everything_killed_at_once_is_taken_up_again_and_lands_once(made: Callable[..., Line], by: str) -> None:
    gate = '[merge]\ncheck = "touch $OUTSIDE/testing; while [ ! -e $OUTSIDE/go ]; do sleep 0.1; done"\n'
    line = made(SCRIPTED, gate)
    quick = "write files/quick\n    quick\ncommit Quick\n"
    bodies = [quick, *(_counting(line, number) for number in range(3))]
    running = None
    if by == "sessions":
        line.up()
        _add(line, *bodies)
        _sessions(line, "ada", "ben", "cem", "dan")
    else:
        wanted = [{"title": f"Task {number}", "body": body} for number, body in enumerate(bodies)]
        running = line.begin("run", "-n", "4", line.tasks(*wanted))
    wait_until(lambda: len(line.marks("starts")) == 3 and line.mark("testing").exists(), "all at work")
    line.end()
    if running is not None:
        running.communicate()
    assert (line.state / "daemon.json").exists()
    line.mark("go").touch()
    line.up()
    wait_until(answers(line), "the daemon's answer")
    for task in line.board().values():
        line.wait_for(task["id"], "done")
    assert sorted(line.landed()) == [f"Task {number}" for number in range(4)]
    assert all(task["tries"] == [] for task in map(line.task, (each["id"] for each in line.board().values())))
    if by == "covey run":
        wait_until(lambda: line.sessions() == {}, "the end of the batch's sessions")
        line.ok("down")
        line.assert_nothing_left()


def test_a_daemon_that_is_killed_by_the_run_that_it_begins_counts_no_try(made: Callable[..., Line]) -> None:
    line = made('[agents.sh]\ncommand = ["sh", "{body_file}"]\n', GOOD)
    body = (
        f"if mkdir {line.outside}/$COVEY_TASK; then\n"
        f"  kill -9 $(sed 's/.*\"pid\": *\\([0-9]*\\).*/\\1/' {line.state}/daemon.json)\n"
        "fi 2>/dev/null\n"
        "echo x > $COVEY_TASK.txt; git add .; git commit -qm x\n"
    )
    names = ["one", "two", "three"]
    said = line.ok("run", "-n", "1", line.tasks(*({"title": name, "body": body} for name in names)))
    assert said.count("The daemon had died") == len(names)
    assert line.landed() == names[::-1]
    found = [line.json("task", "show", task["id"])["tries"] for task in line.board().values()]
    assert found == [[]] * len(names)
    line.assert_nothing_left()


def _killed_at_random(line: Line, tasks: int, kills: int, seed: int) -> None:
    """Let a run meet some power cuts, and assert that all of its tasks land, each once."""
    chance = random.Random(seed)
    bodies = [f"write files/{number}\n    {number}\ncommit File {number}\n" for number in range(tasks)]
    wanted = [{"title": f"Task {number:02}", "body": body, "key": str(number)} for number, body in enumerate(bodies)]
    path = line.tasks(*wanted)
    (line.root / "README.md").write_text("mine\n")
    (line.root / "untracked.txt").write_text("mine\n")
    for _ in range(kills):
        running = line.begin("run", "-n", "3", path)
        time.sleep(chance.uniform(0.0, 4.0))  # a power cut waits for nothing
        line.end()
        running.communicate()
    said = line.run("run", "-n", "3", path)
    assert said.returncode == 0, said.stdout + said.stderr
    wait_until(lambda: not processes_of(line.folder), "the end of all processes")
    if line.json("session", "list"):  # what a killed run had begun goes on when covey is up
        line.up()
        wait_until(lambda: line.sessions() == {}, "the end of the killed runs' sessions")
        line.ok("down")
    assert sorted(line.landed()) == [f"Task {number:02}" for number in range(tasks)]
    line.assert_green("test ! -e bad")
    assert line.git("status", "--porcelain").split() == ["M", "README.md", "??", "untracked.txt"]
    assert (line.root / "README.md").read_text() == "mine\n"
    assert line.json("log", "verify")["sound"]
    line.assert_nothing_left()


def test_power_cuts_lose_nothing_and_do_nothing_twice(made: Callable[..., Line]) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    _killed_at_random(made(SCRIPTED, GOOD), 6, 2, seed)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(5))
def test_many_power_cuts_lose_nothing_and_do_nothing_twice(made: Callable[..., Line], number: int) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    _killed_at_random(made(SCRIPTED, GOOD), 20, 10, seed)


def _killable(line: Line, run: int) -> dict[int, str]:
    """Return the processes of a project but the run itself, and a daemon that is about to come up: that is its end."""
    found = {}
    for pid in processes_of(line.folder):
        with suppress(OSError):
            found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:100]
    try:
        daemon = json.loads((line.state / "daemon.json").read_text())["pid"]
    except (OSError, ValueError):
        daemon = 0
    return {pid: words for pid, words in found.items() if pid != run and (pid == daemon or ".daemon" not in words)}


def _something_killed_now_and_then(line: Line, tasks: int, kills: int, seed: int) -> None:
    """Kill processes of a run one by one while it works, and assert that all of its tasks land, each once."""
    chance = random.Random(seed)
    mark = line.mark("begun")
    body = "write files/{0}\n    {0}\ncommit First\nwait 0.2\nappend files/{0}\n    more\ncommit Second\n"
    wanted = [
        {"title": f"Task {number:02}", "body": f"run touch {mark}\n{body.format(number)}"} for number in range(tasks)
    ]
    (line.root / "README.md").write_text("mine\n")
    running = line.begin("run", "-n", "3", line.tasks(*wanted))
    wait_until(mark.exists, "the run at work")  # an agent itself can be over before anybody has looked for it
    killed: list[str] = []
    while running.poll() is None and len(killed) < kills:
        time.sleep(chance.uniform(0.1, 0.5))  # neither does bad luck wait for anything
        victims = _killable(line, running.pid)
        if victims:
            victim, words = chance.choice(sorted(victims.items()))
            killed.append(words)
            kill([victim])
    said, _ = running.communicate(timeout=240)
    story = "\n".join([f"seed {seed}", *killed, said])
    assert running.returncode == 0, story
    assert sorted(line.landed()) == [f"Task {number:02}" for number in range(tasks)], story
    assert all(line.git("show", f"main:files/{number}").split()[-1] == "more" for number in range(tasks)), story
    line.assert_green("test ! -e bad")
    assert line.git("status", "--porcelain").split() == ["M", "README.md"], story
    assert line.json("log", "verify")["sound"]
    line.up()  # the last one killed may have been the daemon on its way out
    wait_until(
        lambda: str(line.worktrees) not in line.git("worktree", "list", "--porcelain"), "the end of all worktrees"
    )
    line.ok("down")
    line.assert_nothing_left()


MANY_TRIES = "[board]\ntries = 100\n[watch]\ncrashes = 1000\nbackoff = 0.2\n"
"""No task is blocked because its runs were killed often: bad luck may have it that one is five times."""


def test_whatever_is_killed_a_run_comes_to_its_end(made: Callable[..., Line]) -> None:
    _something_killed_now_and_then(made(SCRIPTED, MANY_TRIES, GOOD), 5, 4, random.randrange(10**6))


@pytest.mark.soak
@pytest.mark.parametrize("number", range(5))
def test_however_much_is_killed_a_run_comes_to_its_end(made: Callable[..., Line], number: int) -> None:
    _something_killed_now_and_then(made(SCRIPTED, MANY_TRIES, GOOD), 20, 40, random.randrange(10**6))
