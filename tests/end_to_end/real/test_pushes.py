"""Real agents at the default level push from their shell: nothing goes out that nobody has allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.end_to_end.real.test_questions import heard, questions
from tests.model.environment import World
from tests.model.script import Shell, Step
from tests.worlds.projects import Line
from tests.worlds.real_projects import add, alerts, at_once, begin, lands

UNSEEN = "git push --no-verify origin HEAD:main"


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_push_is_asked_for_and_one_past_the_hook_is_not_run(
    real: Callable[..., Line], world: World, agent: str
) -> None:
    line = real("[watch]\nbackoff = 0.2\nanswer_minutes = 0.03\n", agent=agent)
    remote = line.folder / "remote.git"
    line.git("clone", "-q", "--bare", str(line.root), str(remote))
    line.git("remote", "add", "origin", str(remote))
    before = line.git("rev-parse", "main", at=remote)
    steps = [at_once("one.txt"), Step(do=(Shell(UNSEEN),)), Step(do=(Shell("git push origin HEAD:main"),))]
    task = add(line, "One", world.model.add("one", [*steps, Step(text="Done.")]))
    begin(line, agent=agent)
    lands(line, task)
    assert line.git("rev-parse", "main", at=remote) == before
    asked = [(each["tool"], each["about"]) for each in questions(line)]
    assert asked == [("shell", UNSEEN), ("push", "origin main")]
    assert heard(world, "leads out of the machine") and heard(world, "nothing was pushed to origin (main)")
    assert "pushed_unasked" not in alerts(line)
