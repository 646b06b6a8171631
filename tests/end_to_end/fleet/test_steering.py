"""A person steers: pause and resume, stop and restart, answers to questions, news for who is at work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from tests.worlds.projects import GOOD, SCRIPTED, SHELL, Line, alive
from tests.worlds.serving import wait_until


def _counting(line: Line, name: str) -> str:
    """Return a script that counts in a file outside until it may go on."""
    count = f"while [ ! -e {line.mark('go')} ]; do echo . >> {line.mark(name)}; sleep 0.05; done"
    return f"run {count}\nwrite {name}.txt\n    {name}\ncommit {name}\n"


def _add(line: Line, title: str, body: str) -> str:
    with line.client() as client:
        return str(client.post("/api/board", {"title": title, "body": body})["id"])


def _session(line: Line, name: str) -> None:
    with line.client() as client:
        client.post("/api/sessions", {"name": name, "agent": "scripted"})
        client.post(f"/api/sessions/{name}/start")


@pytest.fixture
def line(made: Callable[..., Line]) -> Line:
    line = made(SCRIPTED, GOOD)
    line.up()
    return line


def _moves(line: Line, *names: str) -> None:
    before = {name: len(line.marks(name)) for name in names}
    wait_until(lambda: all(len(line.marks(name)) > before[name] + 1 for name in names), f"{names} at work")


def _stands(line: Line, *names: str) -> None:
    """Assert that counters stand still, from the moment in which we were told so."""
    before = {name: len(line.marks(name)) for name in names}
    time.sleep(0.5)  # ten times what a counter takes for a step
    assert {name: len(line.marks(name)) for name in names} == before


def test_a_paused_fleet_stands_still_with_its_tasks_and_goes_on(line: Line) -> None:
    names = ["a", "b", "c"]
    ids = [_add(line, name, _counting(line, name)) for name in names]
    for name in names:
        _session(line, f"worker-{name}")
    _moves(line, *names)
    line.ok("pause")
    _stands(line, *names)
    late = _add(line, "late", "write late.txt\n    late\ncommit late\n")
    _session(line, "worker-late")
    line.mark("go").touch()
    _stands(line, *names)
    assert [line.task(task)["status"] for task in ids] == ["doing"] * 3
    assert all(line.task(task)["session"] for task in ids)
    assert line.task(late)["status"] == "todo"
    wait_until(lambda: {session["state"] for session in line.sessions().values()} == {"paused"}, "all that stand still")
    assert line.landed() == []
    line.ok("resume")
    for task in (*ids, late):
        line.wait_for(task, "done")
    assert all(line.task(task)["tries"] == [] for task in ids)


def test_nothing_lands_while_the_fleet_is_paused_not_even_what_is_being_tested(made: Callable[..., Line]) -> None:
    gate = "echo . >> $OUTSIDE/gate; while [ ! -e $OUTSIDE/go ]; do echo . >> $OUTSIDE/gate; sleep 0.05; done"
    line = made(SCRIPTED, f'[merge]\ncheck = "{gate}"\n')
    line.up()
    task = _add(line, "one", "write one.txt\n    one\ncommit one\n")
    _session(line, "ada")
    _moves(line, "gate")
    line.ok("pause")
    wait_until(lambda: any(path.exists() for path in (line.state / "runs").glob("gate-*/held")), "a gate that is held")
    _stands(line, "gate")
    line.mark("go").touch()
    _stands(line, "gate")
    assert line.landed() == []
    assert line.task(task)["status"] == "merging"
    line.ok("resume")
    line.wait_for(task, "done")


def test_a_paused_fleet_refuses_a_run_and_says_how_it_goes_on(line: Line) -> None:
    line.ok("pause")
    assert "covey resume" in line.ends(5, "run", "One more")
    assert line.board() == {}


def test_work_that_is_approved_while_the_fleet_is_paused_waits(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED)
    line.ends(1, "run", "One")
    line.ok("pause")
    (merge,) = line.json("merge", "list")
    assert "waits: the fleet is paused" in line.ok("merge", "approve", merge["id"])
    assert line.landed() == []
    line.ok("resume")
    line.up()
    line.wait_for(line.board()["One"]["id"], "done")


def test_one_session_pauses_resumes_restarts_and_stops(line: Line) -> None:
    task = _add(line, "one", f"run echo $COVEY_RUN >> {line.mark('runs')}\n" + _counting(line, "a"))
    _session(line, "ada")
    _moves(line, "a")
    line.ok("session", "pause", "ada")
    _stands(line, "a")
    assert line.sessions()["ada"]["state"] == "paused"
    line.ok("session", "resume", "ada")
    _moves(line, "a")
    (first,) = line.agents().values()
    line.ok("session", "restart", "ada")
    wait_until(lambda: len(line.marks("runs")) == 2, "the second run")
    assert not alive(first)
    assert line.task(task)["session"] == "ada"
    _moves(line, "a")
    assert "what it had not committed is kept" in line.ok("session", "stop", "ada")
    assert line.agents() == {}
    assert line.task(task)["status"] == "todo"
    line.ok("session", "new", "eve", "--agent", "scripted")
    assert line.ok("session", "stop", "eve").strip() == "Stopped eve", "it has never run"
    assert line.task(task)["tries"] == []
    line.mark("go").touch()
    line.ok("session", "start", "ada")
    line.wait_for(task, "done")
    assert len(line.marks("runs")) == 3


def test_a_question_is_answered_by_a_person(line: Line) -> None:
    task = _add(line, "one", "ask Which colour?\nwrite colour.txt\n    {answer}\ncommit Paint it {answer}\nsay ended\n")
    _session(line, "ada")
    wait_until(lambda: line.sessions()["ada"]["state"] == "needs-you", "the question")
    (told,) = line.alerts()
    assert "Which colour?" in told
    question = told.partition("covey answer ")[2].split()[0]
    line.ok("answer", question, "green")
    line.wait_for(task, "done")
    assert line.git("show", "main:colour.txt") == "green"
    assert line.ok("session", "logs", "ada").splitlines()[-1] == "ended"
    assert "no run" in line.ends(5, "session", "send", "ada", "blue")


def test_logs_are_followed_until_the_run_ends(line: Line) -> None:
    _add(line, "one", f"say first\nwait for {line.mark('go')}\nsay last\nwrite a\n    a\ncommit a\n")
    _session(line, "ada")
    wait_until(lambda: line.run("session", "logs", "ada").stdout.startswith("first"), "the first line")
    following = line.begin("session", "logs", "ada", "--follow")
    assert following.stdout is not None
    assert following.stdout.readline() == "first\n"
    line.mark("go").touch()
    assert following.stdout.read().splitlines()[0] == "last"
    assert following.wait(60) == 0
    following.stdout.close()


def test_editing_a_task_tells_its_holder(line: Line) -> None:
    inbox = f"run covey mail inbox > {line.mark('inbox')}\n"
    wait = f"run touch {line.mark('at-work')}\nwait for {line.mark('edited')}\n"
    task = _add(line, "Paint it green", f"{wait}{inbox}write a\n    a\ncommit a\n")
    _session(line, "ada")
    wait_until(line.mark("at-work").exists, "the agent at work")
    line.ok("task", "edit", task, "--title", "Paint it blue")
    line.mark("edited").touch()
    line.wait_for(task, "done")
    assert task in line.mark("inbox").read_text()


def test_a_second_try_knows_what_went_wrong_and_has_the_first_ones_commits(made: Callable[..., Line]) -> None:
    line = made('[sessions]\nagent = "sh"\n[agents.sh]\ncommand = ["bash", "{body_file}", "{prompt_file}"]\n', GOOD)
    line.up()
    body = (
        f'cp "$1" {line.outside}/prompt-$COVEY_TRY; git log --format=%s > {line.outside}/log-$COVEY_TRY\n'
        "if [ $COVEY_TRY = 1 ]; then echo one > one.txt; git add .; git commit -qm First; echo went wrong; exit 7; fi\n"
        "echo two > two.txt; git add .; git commit -qm Second\n"
    )
    task = _add(line, "Both", body)
    line.ok("session", "new", "ada", "--agent", "sh")
    line.ok("session", "start", "ada")
    line.wait_for(task, "done")
    assert "What went wrong before" not in "\n".join(line.marks("prompt-1"))
    told = "\n".join(line.marks("prompt-2"))
    assert "exit code 7" in told
    assert "went wrong" in told
    assert "The commits of that work are on your branch" in told
    assert line.marks("log-2")[0] == "First"
    assert line.git("ls-tree", "--name-only", "main", "one.txt", "two.txt").split() == ["one.txt", "two.txt"]


def test_a_rejected_try_gets_the_output_of_the_gate(made: Callable[..., Line]) -> None:
    gate = '[merge]\ncheck = "if test -e bad; then echo there is a bad file; exit 1; fi"\n'
    line = made('[sessions]\nagent = "sh"\n[agents.sh]\ncommand = ["bash", "{body_file}", "{prompt_file}"]\n', gate)
    line.up()
    body = (
        f'cp "$1" {line.outside}/prompt-$COVEY_TRY\n'
        "if [ $COVEY_TRY = 1 ]; then echo x > bad; else git rm -q bad; echo x > good; fi\n"
        "git add .; git commit -qm Try\n"
    )
    task = _add(line, "One", body)
    line.ok("session", "new", "ada", "--agent", "sh")
    line.ok("session", "start", "ada")
    line.wait_for(task, "done")
    assert "there is a bad file" in "\n".join(line.marks("prompt-2"))
    assert len(line.task(task)["tries"]) == 1


def test_an_agent_that_cannot_begin_during_an_outage_costs_no_try(made: Callable[..., Line]) -> None:
    works = 'test -e "$0" || { echo no network; exit 7; }; echo a > a.txt; git add a.txt; git commit -qm a'
    line = made(GOOD, "[watch]\nbackoff = 0.2\nbackoff_most = 0.2\ncrashes = 1000\n")
    there = json.dumps(str(line.mark("network")))
    with (line.root / "covey.toml").open("a") as settings:
        settings.write(f"[agents.mine]\ncommand = ['sh', '-c', '{works}', {there}, '{{prompt_file}}']\n")
    line.up()
    with line.client() as client:
        task = client.post("/api/board", {"title": "One", "session": "ada", "status": "todo"})["id"]
        assert [each["id"] for each in client.get("/api/board?assignee=ada&status=todo")] == [task]
    line.start_session("ada", "mine")
    wait_until(lambda: len(line.events("run.ended")) >= 4, "four runs that ended at once")
    assert line.task(task)["tries"] == []
    line.mark("network").touch()
    done = line.wait_for(task, "done")
    assert done["tries"] == []
    assert {event["data"]["outcome"] for event in line.events("run.ended")} == {"crashed", "handed-in"}
    assert [event["data"]["files"] for event in line.events("run.wrote")] == [["a.txt"]]


def test_a_script_that_is_blocked_keeps_its_session_from_no_other(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD, "[board]\ntries = 1\n[watch]\nbackoff = 1000\nbackoff_most = 1000\n")
    line.up()
    good = "echo a > a.txt; git add a.txt; git commit -qm a"
    with line.client() as client:
        bad = [client.post("/api/board", {"title": f"Bad {number}", "body": "exit 3"})["id"] for number in range(2)]
        last = client.post("/api/board", {"title": "Good", "body": good})["id"]
    line.start_session("ada", "sh")
    line.wait_for(last, "done")
    assert [line.task(task)["status"] for task in bad] == ["blocked", "blocked"]


def test_a_try_in_an_emptied_worktree_is_told_what_was_left_and_gets_it_back(made: Callable[..., Line]) -> None:
    takes = 'git restore --source="$ref" -- one.txt && git add one.txt && git commit -qm one'
    finds = r"""ref=$(sed -n "s/.*--source=\\([^ ]*\\) .*/\\1/p" "$0")"""
    script = f'{finds}; if test -n "$ref"; then {takes}; else echo cobalt > one.txt; fi'
    line = made(GOOD, f"[agents.mine]\ncommand = ['sh', '-c', {json.dumps(script)}, '{{prompt_file}}']\n")
    line.up()
    line.ok("task", "add", "One")
    line.start_session("ada", "mine")
    done = line.wait_for("T-1", "done", "blocked")
    assert done["status"] == "done", done
    assert line.git("show", "main:one.txt") == "cobalt"
    (tried,) = done["tries"]
    assert tried["what"].startswith("The run left changes that it did not commit: one.txt.")
    assert [event["data"]["ref"] for event in line.events("run.left")] == list(line.refs("refs/covey/rescue"))
