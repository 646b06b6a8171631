"""New sessions: what they can be, several at once, all or none; and a fleet that is stopped and brought back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.config import AgentSettings, Config, Sessions
from covey.core.history.activity import sentence
from covey.errors import Invalid, NotFound, Refused
from tests.worlds.boards import World

NOWHERE = {"mine": AgentSettings(command=("my-agent", "{prompt}")), "plain": AgentSettings(command=("sh", "{prompt}"))}


def goals(world: World) -> dict[str, str]:
    """Return what each session shall do."""
    return {each["name"]: each["goal"] for each in world.ask("session.list")}


def names(rows: list[Any]) -> list[str]:
    return [row["name"] for row in rows]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a project with two agents of its own, of which one is not there, and none that covey brings is."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return World(tmp_path, Config(agents=NOWHERE, sessions=Sessions(max=5, permissions="ask")))


# Several at once


def test_sessions_are_added_by_number_with_names_that_are_free_and_work_at_once(world: World) -> None:
    world.ask("session.new", name="worker-2")
    added = world.ask("session.add", count=3, agent="scripted", role="qa", permissions="full", start=True)
    assert names(added) == ["worker-1", "worker-3", "worker-4"]
    assert {(row["agent"], row["role"], row["permissions"], row["goal"]) for row in added} == {
        ("scripted", "qa", "full", "working")
    }


def test_a_name_of_a_session_that_was_removed_is_free_again(world: World) -> None:
    world.ask("session.new", name="worker-1")
    world.ask("session.remove", name="worker-1")
    assert names(world.ask("session.add", agent="scripted")) == ["worker-1"]


def test_sessions_with_names_are_added_all_or_none(world: World) -> None:
    world.ask("session.new", name="bob")
    before = world.everything()
    with pytest.raises(Refused, match="There is a session bob already"):
        world.ask("session.add", names=["ada", "bob"], agent="scripted", start=True)
    with pytest.raises(Refused, match="There is a session eve already"):
        world.ask("session.add", names=["eve", "eve"], agent="scripted")
    with pytest.raises(Invalid, match="There are 1 names for 2 sessions"):
        world.ask("session.add", names=["eve"], count=2, agent="scripted")
    assert world.everything() == before
    assert goals(world) == {"bob": "stopped"}
    assert names(world.ask("session.add", names=["ada", "eve"], agent="scripted")) == ["ada", "eve"]
    assert goals(world) == {"ada": "stopped", "bob": "stopped", "eve": "stopped"}


def test_an_agent_that_nobody_knows_or_whose_program_is_not_there_is_refused_in_words(own: World) -> None:
    with pytest.raises(NotFound, match="There is no agent 'clade'") as unknown:
        own.ask("session.add", agent="clade", start=True)
    assert "Did you mean claude?" in unknown.value.hint
    with pytest.raises(Invalid, match="The agent codex cannot be started: there is no program codex on the PATH"):
        own.ask("session.add", agent="codex", start=True)
    with pytest.raises(Invalid, match="The agent mine cannot be started") as declared:
        own.ask("session.add", agent="mine", start=True)
    found = "If it is on the PATH of your shell, covey down && covey up take that."
    assert declared.value.hint == f"covey.toml names its command. {found}"
    assert goals(own) == {}
    own.ask("session.add", agent="mine")  # it may be installed later
    assert goals(own) == {"worker-1": "stopped"}


@pytest.mark.parametrize(
    ("verb", "asked"),
    [("session.add", {"count": 3, "agent": "plain"}), ("session.new", {"name": "f", "agent": "plain"})],
)
def test_no_more_sessions_are_made_than_the_settings_allow(own: World, verb: str, asked: dict[str, Any]) -> None:
    own.ask("session.new", name="outside")
    own.ask("session.add", count=3 if verb == "session.add" else 5, agent="plain")
    with pytest.raises(Refused, match="That would be 6 sessions, and at most 5 are allowed") as refused:
        own.ask(verb, **asked)
    assert "sessions.max" in refused.value.hint


# What they can be


def test_the_offer_names_agents_that_are_there_first_and_why_others_are_not(own: World) -> None:
    own.ask("session.add", count=2, agent="plain")
    offer = own.ask("session.offer")
    assert offer["agent"] == "plain", "the settings' own, claude, is not there"
    assert [each["name"] for each in offer["agents"] if each["absent"] is None] == ["plain", "scripted"]
    absent = {each["name"]: each["absent"] for each in offer["agents"] if each["absent"]}
    assert absent["claude"] == "there is no program claude on the PATH"
    assert absent["mine"] == "there is no program my-agent on the PATH"
    assert (offer["permissions"], offer["room"], offer["most"]) == ("ask", 3, 5)
    assert offer["names"] == ["worker-3", "worker-4", "worker-5"]
    assert offer["stopped"] == ["worker-1", "worker-2"]
    assert offer["stopped_together"] == []


def test_nobody_is_offered_what_only_plays_scripts_unless_the_settings_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert World(tmp_path / "one").ask("session.offer")["agent"] == "claude"
    set_so = Config(sessions=Sessions(agent="scripted"))
    assert World(tmp_path / "two", set_so).ask("session.offer")["agent"] == "scripted"


# All of them


def test_who_was_stopped_together_is_brought_back_as_it_was_and_nobody_else(world: World) -> None:
    world.ask("session.add", names=["ada", "bob", "eve", "kim"], agent="scripted", start=True)
    world.ask("session.stop", name="kim")
    world.ask("session.pause", name="eve")
    assert names(world.ask("fleet.stop")) == ["ada", "bob", "eve"]
    assert set(goals(world).values()) == {"stopped"}
    assert world.ask("session.offer")["stopped_together"] == ["ada", "bob", "eve"]
    assert world.ask("fleet.stop") == [], "nobody is left, and who was is still known"
    assert names(world.ask("fleet.start")) == ["ada", "bob", "eve"]
    assert goals(world) == {"ada": "working", "bob": "working", "eve": "paused", "kim": "stopped"}
    assert world.ask("fleet.start") == []


def test_who_was_started_or_removed_since_is_not_brought_back_and_only_the_last_word_counts(world: World) -> None:
    world.ask("session.add", names=["ada", "bob", "eve", "kim"], agent="scripted", start=True)
    world.ask("fleet.stop")
    for verb in ("start", "stop"):
        world.ask(f"session.{verb}", name="ada")
    world.ask("session.remove", name="bob")
    assert world.ask("session.offer")["stopped_together"] == ["eve", "kim"]
    world.ask("session.start", name="kim")
    world.ask("fleet.stop")
    assert names(world.ask("fleet.start")) == ["kim"]
    assert goals(world)["eve"] == "stopped"


def test_all_that_are_stopped_are_started_by_one_word(world: World) -> None:
    world.ask("session.new", name="outside")
    world.ask("session.add", names=["ada", "bob", "eve"], agent="scripted", start=True)
    world.ask("session.stop", name="ada")
    world.ask("session.pause", name="bob")
    assert names(world.ask("fleet.start", all=True)) == ["ada"]
    assert goals(world) == {"outside": "stopped", "ada": "working", "bob": "paused", "eve": "working"}


def test_the_log_says_who_was_stopped_together(world: World) -> None:
    world.ask("session.add", names=["ada", "bob"], agent="scripted", start=True)
    world.ask("fleet.stop")
    event = next(each for each in world.ask("log.list", limit=100) if each["kind"] == "fleet.stopped")
    assert event["data"] == {"working": ["ada", "bob"]}
    told = sentence(event["kind"], event["actor"], event["subject"], event["data"])
    assert told == "owner stopped the fleet: ada, bob"
