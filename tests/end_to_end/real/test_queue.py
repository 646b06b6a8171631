"""Real agents whose work does not go together: each is sent back what failed, mends it by that, and main stays green.

The model behind them is scripted; all that it knows of the others it reads in what it is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.model.environment import World, scripted_world
from tests.model.script import Shell, Step
from tests.model.server import told
from tests.worlds.projects import Line
from tests.worlds.real_projects import add, begin, real_line, runs
from tests.worlds.serving import wait_until

CHECK = "sh gate.sh"
FILES = {
    "gate.sh": "set -e\n! grep -q '^<<<<' shared.txt\n"
    'for each in calls/*; do (. ./lib.sh; . ./$each) || { echo "FAILED $each"; exit 1; }; done\n',
    "shared.txt": "nobody\n",
    "lib.sh": "area() { true; }\n",
    "calls/one.sh": "area 1\n",
}
PATIENCE = 240.0
SCRIPT = "author"
SAVE = "git add -A && git commit -q -m 'As the script says'"
BRING = "$(covey task show $COVEY_TASK | sed -n 's/^[ >]*1\\. \\(git merge [0-9a-f]*\\) .*/\\1/p' | tail -1)"
"""Merge the commit that the story names."""
FIRST = {
    "Say left": "echo left > shared.txt",
    "Say right": "echo right > shared.txt",
    "Call it surface": "sed -i s/area/surface/ lib.sh calls/*",
    "Measure two": "echo area 2 > calls/two.sh",
}
"""What each task is, and what its author does at first."""
MENDS = {
    "It conflicts with main in shared.txt": f"{BRING}; sed -i '/^[<=>]/d' shared.txt",
    'With main, "sh gate.sh" fails': f"{BRING}; sed -i s/area/surface/ calls/*",
}
"""What the model is told when its work comes back, and what it does then."""
STUBBORN = dict.fromkeys(MENDS, "echo again >> ignored.txt")


def name_of(title: str) -> str:
    """Return the session that does a task."""
    return re.sub(r"\W+", "-", title.lower())


def script(mends: dict[str, str]) -> list[Step]:
    """Return the script of all authors: who is sent back mends what it is told, and nobody ends before all have begun.

    It is one for all, since a story quotes the other's task, and with it the name of its script.
    """
    first = {f"You are {name_of(title)}, one of": command for title, command in FIRST.items()}
    acts = {sign: Step(do=(Shell(f"{command}; {SAVE}"),)) for sign, command in (mends | first).items()}
    return [Step(text="Nobody told me what to do.", told=acts), Step(text="Done.", hold="all")]


@contextmanager
def project(folder: Path, mends: dict[str, str], strategy: str = "group") -> Iterator[tuple[Line, World]]:
    """Yield a project with a gate, and leave nothing of it."""
    with scripted_world(folder, trusted=[folder / "line" / "shop"]) as world:
        merge = f'[merge]\ncheck = "{CHECK}"\nslots = 2\nstrategy = "{strategy}"\n'
        line = real_line(folder, world, merge, sessions='permissions = "full"\n')
        for name, text in FILES.items():
            (line.root / name).parent.mkdir(exist_ok=True)
            line.commit(name, text)
        world.model.add(SCRIPT, script(mends))
        try:
            line.up()
            yield line, world
        finally:
            line.end()


def work(line: Line, world: World, agents: Sequence[str], titles: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Let each title be done by an agent, all of them at once, and return the tasks when all have ended."""
    tasks = {}
    for title, agent in zip(titles, agents, strict=True):
        name = name_of(title)
        tasks[title] = add(line, title, f"[[script {SCRIPT}]]", assignee=name, overlap=True)
        begin(line, name, agent)
    wait_until(lambda: world.model.asked(SCRIPT, 1) >= len(titles), "all at work", patience=PATIENCE)
    world.model.open("all")
    ended = ("done", "blocked")
    wait_until(lambda: set(line.statuses().values()) <= set(ended), "the end of all tasks", patience=PATIENCE)
    return {title: line.task(task) for title, task in tasks.items()}


def assert_journal_is_green(line: Line, folder: Path) -> int:
    """Run the gate again on every value of the landing journal, in fresh checkouts, and say how many there are."""
    with line.client() as client:
        journal = sorted(client.get("/api/landings?limit=1000"), key=lambda landing: landing["made"])
    for landing in journal:
        line.assert_passes(CHECK, landing["commit"], folder / "again" / landing["commit"])
    assert all(old["commit"] == new["before"] for old, new in pairwise(journal))
    assert journal and journal[-1]["commit"] == line.git("rev-parse", "main")
    return len(journal)


def rejections(line: Line) -> dict[str, str]:
    """Return why work was sent back, by its task."""
    with line.client() as client:
        found = client.get("/api/merges?all=true&limit=1000")
    return {merge["task"]: merge["cause"] for merge in found if merge["state"] == "rejected"}


def assert_mended(line: Line, world: World, tasks: dict[str, dict[str, Any]], pair: tuple[str, str], why: str) -> None:
    """Assert that one of a pair landed first, and the other after it was mended in the same conversation."""
    causes = rejections(line)
    (second,) = [title for title in pair if tasks[title]["id"] in causes]
    (first,) = set(pair) - {second}
    assert causes[tasks[second]["id"]] == why
    tried = runs(line, tasks[second]["id"])
    assert len(tried) == 2 and tried[0]["session"] == tried[1]["session"]
    assert tried[0]["conversation"] and tried[0]["conversation"] == tried[1]["conversation"]
    said = [told(turn.body) for turn in world.model.turns(SCRIPT)]
    (story,) = [each["what"] for each in tasks[second]["tries"]]
    assert f'- {tasks[first]["id"]}: "{first}" by ' in story and "covey ask" in story
    assert any(story.splitlines()[0] in each and first in each for each in said), "the model itself was told"


@pytest.mark.parametrize("agents", [("claude", "codex", "codex", "claude")])
def test_real_agents_mend_what_conflicts_and_what_is_red_together_and_all_land(
    tmp_path: Path, agents: tuple[str, ...]
) -> None:
    with project(tmp_path, MENDS) as (line, world):
        tasks = work(line, world, agents, list(FIRST))
        assert {title: task["status"] for title, task in tasks.items()} == dict.fromkeys(FIRST, "done")
        titles = list(FIRST)
        assert_mended(line, world, tasks, (titles[0], titles[1]), "text")
        assert_mended(line, world, tasks, (titles[2], titles[3]), "fails")
        assert sorted(line.git("show", "main:shared.txt").split()) == ["left", "right"]
        assert line.git("show", "main:calls/two.sh") == "surface 2"
        # Both first ones may land in one move, and so may both mended ones.
        assert assert_journal_is_green(line, tmp_path) >= 2


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["serial", "prefix", "group"])
@pytest.mark.parametrize("agents", [("claude",) * 4, ("codex",) * 4, ("codex", "claude", "claude", "codex")])
def test_whoever_works_and_however_the_queue_tests_all_land(
    tmp_path: Path, agents: tuple[str, ...], strategy: str
) -> None:
    with project(tmp_path, MENDS, strategy) as (line, world):
        tasks = work(line, world, agents, list(FIRST))
        assert {title: task["status"] for title, task in tasks.items()} == dict.fromkeys(FIRST, "done")
        assert_journal_is_green(line, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("agents", [("claude", "codex", "codex", "claude")])
def test_real_agents_that_mend_nothing_end_blocked_with_the_story(tmp_path: Path, agents: tuple[str, ...]) -> None:
    with project(tmp_path, STUBBORN) as (line, world):
        tasks = work(line, world, agents, list(FIRST))
        assert sorted(task["status"] for task in tasks.values()) == ["blocked", "blocked", "done", "done"]
        for task in tasks.values():
            if task["status"] == "blocked":
                assert "in the same way twice" in task["reason"] and "## What to do" in task["tries"][-1]["what"]
                assert len(task["tries"]) == 2
        assert_journal_is_green(line, tmp_path)
