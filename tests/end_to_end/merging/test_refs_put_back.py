"""Sessions that twist refs: main stays where the queue and the user put it, good work lands, and the person is told."""

from __future__ import annotations

from collections.abc import Callable

from tests.worlds.projects import GOOD, SHELL, Line
from tests.worlds.serving import wait_until

WORK = 'echo x >"$COVEY_TASK.txt"; git add .; git commit -qm Work\n'
RED = "echo x >bad; git add .; git commit -qm Red\n"
RAW = "git -c core.hooksPath=/dev/null"
"""A session's git without the guard."""

UNNOTED = "git commit-tree -p main -m Unnoted 'main^{tree}' >{common}/mine; cp {common}/mine {common}/refs/heads/main\n"

ATTACKS = {
    "the branch is a name of main": f"{WORK}git symbolic-ref refs/heads/covey/$COVEY_TASK refs/heads/main\n",
    "main is a name of the branch": f"git symbolic-ref refs/heads/main refs/heads/covey/$COVEY_TASK\n{RED}",
    "main is moved": f"{RED}{RAW} update-ref refs/heads/main HEAD\n",
    "what has passed is forged": f"{RED}{RAW} update-ref refs/covey/landed HEAD\n",
    "settings name a program": f"{WORK}git config filter.x.clean /bin/false\n",
    "what has passed is a name of main": f"{WORK}git symbolic-ref refs/covey/landed refs/heads/main\n",
}


def test_a_main_that_a_session_wrote_by_hand_is_told_and_good_work_lands_on_it(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD, "[board]\ntries = 1\n", '[sessions]\nagent = "sh"\n')
    line.up()
    body = UNNOTED.replace("{common}", str(line.common)) + WORK
    with line.client() as client:
        client.post("/api/board", {"title": "bad", "body": f"set -e\n{body}"})
    line.start_session("ann", "sh")
    wait_until(lambda: line.statuses()["bad"] == "done", "the end of it")
    unnoted = line.git("log", "-1", "--format=%H", "--grep=Unnoted", "main")
    told = [each for each in line.alerts() if f"main is at {unnoted[:12]}, and its reflog does not say" in each]
    assert unnoted and len(told) == 1, line.alerts()


def _tree(line: Line) -> set[str]:
    return set(line.git("ls-tree", "-r", "--name-only", "main").split())


def test_main_outlives_what_sessions_make_of_refs_and_good_work_lands(made: Callable[..., Line]) -> None:
    line = made(SHELL, GOOD, "[board]\ntries = 1\n", '[sessions]\nagent = "sh"\n')
    mine = line.commit("mine.txt", "mine\n")
    line.up()
    bodies = {**ATTACKS, "good": WORK}
    with line.client() as client:
        wanted = {name: {"title": name, "body": f"set -e\n{body}"} for name, body in bodies.items()}
        tasks = {name: client.post("/api/board", task)["id"] for name, task in wanted.items()}
    for number, _ in enumerate(bodies):
        line.start_session(f"s{number}", "sh")
    ended = ("done", "blocked")
    wait_until(lambda: set(line.statuses().values()) <= {*ended}, "the end of all")
    assert line.task(tasks["good"])["status"] == "done"
    named = line.task(tasks["the branch is a name of main"])
    assert named["status"] == "done", f"what it had committed is not lost: {named} {line.alerts()}"
    for number, _ in enumerate(bodies):
        line.ok("session", "remove", f"s{number}", "--force")
    assert (line.common / "refs/heads/main").read_text().strip() == line.git("rev-parse", "main")
    line.git("merge-base", "--is-ancestor", mine, "main")
    there = _tree(line)
    assert "bad" not in there and f"{tasks['good']}.txt" in there
    assert line.git("status", "--porcelain", "--untracked-files=no") == ""
    told = " ".join(line.alerts())
    assert "main was put back to" in told
    assert "were changed: filter.x.clean." in told
    assert f"refs/heads/covey/{tasks['the branch is a name of main']} was a symbolic ref to refs/heads/main" in told
