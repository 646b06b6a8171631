"""Taking a session in hand: what may be taken over, and what is refused."""

from __future__ import annotations

import pytest

from covey.agents import registry
from covey.app.fleet import runs
from covey.core.fleet.outcomes import Again
from covey.core.fleet.runs import Ending, Outcome, Run
from covey.core.fleet.sessions import SessionState
from covey.errors import Refused
from tests.worlds.boards import World


def at_work(world: World, agent: str = "claude") -> Run:
    """Let a session begin a run."""
    world.add()
    world.ask("session.new", name="ada", agent=agent)
    world.ask("session.start", name="ada")
    return world.begin()


def test_a_conversation_is_taken_over_when_there_is_one(world: World) -> None:
    run = at_work(world)
    assert world.ask("session.terminal", name="ada")["can_attach"]
    with pytest.raises(Refused, match="ada has no conversation yet"):
        world.ask("session.attach", name="ada")
    world.do(lambda call: runs.note_conversation(call, run, "talk-1"))
    for _ in range(2):
        world.ask("session.attach", name="ada")
    assert len(world.ask("log.list", kind="session.attached")) == 1
    world.do(lambda call: runs.ending(call, world.run(run.id), Ending("owner takes it over.", again=True)))
    world.end(world.run(run.id), Again("it was ended"), 143)
    theirs = world.begin()
    work = world.work(theirs)
    world.do(lambda call: runs.started(call, work, "0" * 40))
    assert (theirs.person, theirs.runner, work.conversation) == (True, "tmux", "talk-1")
    assert world.run(theirs.id).conversation == "talk-1", "known from its first moment on"
    session = world.store.read(lambda tx: tx.session("ada"))
    assert session is not None and session.state is SessionState.WORKING
    assert session.evidence == f"{theirs.id} on T-1: owner has it in a terminal"
    world.end(world.run(theirs.id), Again("killed"), 0)
    assert world.run(theirs.id).outcome is Outcome.STOPPED
    assert not world.begin().person, "who left has given it back"


def test_what_has_no_terminal_is_not_taken_over(world: World) -> None:
    at_work(world, "scripted")
    assert not world.ask("session.terminal", name="ada")["can_attach"], "so nobody offers it"
    with pytest.raises(Refused, match="The conversation of scripted cannot be taken over in a terminal"):
        world.ask("session.attach", name="ada")


def test_a_run_whose_agent_the_settings_have_forgotten_still_has_its_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work(world, "scripted")
    monkeypatch.setattr(registry, "_entries", dict)
    assert not world.ask("session.terminal", name="ada")["can_attach"]


def test_who_is_not_at_work_is_not_taken_over(world: World) -> None:
    world.ask("session.new", name="ada", agent="claude")
    with pytest.raises(Refused, match="ada is not at work, so there is nothing to take over"):
        world.ask("session.attach", name="ada")
    nothing: dict[str, object] = {"run": None, "person": False, "command": [], "used": False, "can_attach": False}
    assert world.ask("session.terminal", name="ada") == nothing
