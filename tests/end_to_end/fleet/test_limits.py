"""What hangs, runs away or cannot work comes to an end, and says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from covey.core.figures import span
from tests.worlds.projects import GOOD, SCRIPTED, Line, processes_of, sleepers_of
from tests.worlds.serving import wait_until

ONCE = "[board]\ntries = 1\n"
SOON = 0.1
"""Minutes: long enough for what does not hang, also on a slow machine."""
QUICK = "[watch]\nbackoff = 0.05\ncrashes = 2\n"
"""Who failed tries again at once, and not often."""


def test_a_gate_that_hangs_is_killed_with_all_that_it_started_and_rejects(made: Callable[..., Line]) -> None:
    hangs = "echo testing; sh -c 'trap \\\"\\\" TERM; echo $$ > $OUTSIDE/gate; sleep 600; sleep 600' & sleep 600"
    gate = f"test ! -e notes || {{ {hangs}; }}"  # on main it does not hang: then nobody would be to blame
    line = made(SCRIPTED, ONCE, f'[merge]\ncheck = "{gate}"\ncheck_minutes = {SOON}\n')
    said = line.ends(1, "run", "One")
    assert f"took longer than {span(SOON * 60)}" in said
    assert line.statuses() == {"One": "blocked"}
    assert line.marks("gate") and sleepers_of(line.folder) == []
    assert "testing" in line.json("task", "show", line.board()["One"]["id"])["tries"][0]["what"]
    assert line.landed() == []
    line.assert_nothing_left(branches=True)


def test_a_gate_that_forks_away_leaves_nothing(made: Callable[..., Line]) -> None:
    gate = (
        "setsid sh -c 'echo $$ > $OUTSIDE/away; sleep 600' > /dev/null 2>&1 & while [ ! -s $OUTSIDE/away ]; do :; done"
    )
    line = made(SCRIPTED, f'[merge]\ncheck = "{gate}"\n')
    line.ok("run", "One")
    assert line.marks("away") and sleepers_of(line.folder) == []
    assert line.landed() == ["One"]
    line.assert_nothing_left()


def test_an_agent_that_takes_too_long_is_ended_and_that_counts_as_a_try(made: Callable[..., Line]) -> None:
    line = made(f'[sessions]\nagent = "scripted"\nrun_minutes = {SOON}\n', GOOD)
    body = "try 1: say hanging\ntry 1: dirt left.txt\ntry 1: hang\nwrite done.txt\n    done\ncommit Done\n"
    said = line.ok("run", line.tasks({"title": "One", "body": body}))
    assert f"longer than {span(SOON * 60)}" in said
    (tried,) = line.json("task", "show", line.board()["One"]["id"])["tries"]
    assert f"longer than {span(SOON * 60)}" in tried["what"]
    assert "hanging" in tried["what"]
    assert len(line.json("rescue", "list")) == 1
    assert line.landed() == ["One"]


def test_what_an_agent_leaves_running_ends_with_it(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD)
    line.ok("run", line.tasks({"title": "One", "body": "fork 600\nwrite a\n    a\ncommit a\n"}))
    assert processes_of(line.folder) == []
    assert line.landed() == ["One"]


@pytest.mark.parametrize(
    ("body", "story"),
    [
        # The first two are seen without `covey run` in test_night_faults.
        pytest.param("say I have nothing\n", "The run ended without a commit.", marks=pytest.mark.soak),
        pytest.param(
            "write a\n    a\ncommit a\ndirt left.txt\n",
            "The run left changes that it did not commit:",
            marks=pytest.mark.soak,
        ),
        ("write a\n    a\ncommit a\nfail no way\n", "The agent gave up: no way"),
        ("write a\n    a\ncommit a\ncrash SEGV\n", "The agent was ended by signal 11."),
        ("nonsense\n", "The agent ended with exit code 2."),
    ],
)
def test_what_is_not_done_is_not_handed_in(made: Callable[..., Line], body: str, story: str) -> None:
    line = made(SCRIPTED, ONCE, GOOD, QUICK)
    said = line.ends(1, "run", line.tasks({"title": "One", "body": body}))
    assert story in said
    (tried,) = line.json("task", "show", line.board()["One"]["id"])["tries"]
    assert tried["what"].startswith(story)
    assert line.landed() == []
    assert line.json("merge", "list", "--all") == []
    line.assert_nothing_left(branches=True)


def test_a_run_with_more_agents_than_are_allowed_adds_nothing(made: Callable[..., Line]) -> None:
    line = made('[sessions]\nagent = "scripted"\nmax = 3\n', GOOD)
    assert "at most 3" in line.ends(5, "run", "-n", "4", "One")
    assert line.board() == {}
    for name in ("ada", "ben", "cem"):
        line.ok("session", "new", name, "--agent", "scripted")
    assert "at most 3" in line.ends(5, "run", "One")
    assert line.board() == {}
    line.ok("session", "remove", "ada")
    line.ok("run", "One", "Two")  # as many at once as there is room for
    assert sorted(line.landed()) == ["One", "Two"]


def test_an_agent_that_does_not_exist_is_refused_before_anything_is_added(made: Callable[..., Line]) -> None:
    line = made('[agents.mine]\ncommand = ["no-such-program", "{prompt_file}"]\n', GOOD)
    said = line.ends(2, "run", "One")
    assert "no-such-program" in said
    assert line.board() == {}
    assert "nobody" in line.ends(4, "run", "--agent", "nobody", "One")
    assert line.board() == {}
    assert processes_of(line.folder) == []


def test_a_typo_in_the_settings_is_refused_with_its_line(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, '[merge]\nchekc = "true"\n')
    said = line.ends(2, "run", "One")
    assert "covey.toml line 6" in said
    assert "check" in said
    assert processes_of(line.folder) == []


def test_an_agent_that_vanishes_while_covey_works_is_told_of_and_tried_again(made: Callable[..., Line]) -> None:
    line = made()
    program = line.folder / "agent"
    line.settings(f'[agents.mine]\ncommand = ["{program}", "{{task}}"]\n', GOOD, QUICK)
    line.up()
    line.ok("task", "add", "One")
    line.ok("session", "new", "ada", "--agent", "mine")
    line.ok("session", "start", "ada")
    wait_until(lambda: line.alerts() != [], "the alert")
    assert "cannot start" in line.alerts()[0]
    program.write_text("#!/bin/sh\necho x > x.txt; git add .; git commit -qm x\n")
    program.chmod(0o755)
    (task,) = (task["id"] for task in line.board().values())
    line.wait_for(task, "done")
    assert len(line.alerts()) == 1
    assert line.task(task)["tries"] == []
