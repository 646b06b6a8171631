"""Leases that are waited for, and those that come and go with a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.config import Config, Leases
from covey.core.fleet.outcomes import Again, HandIn
from covey.errors import Refused
from tests.worlds.boards import Principal, World


def take(world: World, who: str, *resources: str, **asked: Any) -> Any:
    return world.ask("lease.take", session=who, resources=list(resources), **asked)


def give(world: World, lease: Any) -> Any:
    return world.ask("lease.give", session=lease["holder"], id=lease["id"])


def state(world: World, lease: Any) -> str:
    return str(world.ask("lease.show", id=lease["id"])["state"])


def inbox(world: World, who: str) -> list[str]:
    return [letter["text"] for letter in world.ask("mail.inbox", session=who)]


def held(world: World, task: str) -> list[tuple[str, str, list[str]]]:
    """Return who holds what with a task, and how."""
    found = world.ask("lease.list", waiting=True)
    return [(each["holder"], each["state"], each["resources"]) for each in found if each["task"] == task]


# Waiting


def test_who_waits_is_granted_when_its_turn_comes_first_come_first_served(world: World) -> None:
    first = take(world, "ada", "src/**")
    second, third = take(world, "bob", "src/a.py", wait=True), take(world, "carl", "src/*.py", wait=True)
    assert (second["state"], second["behind"]) == ("waiting", [first["id"]])
    assert third["behind"] == [first["id"], second["id"]]
    give(world, first)
    assert (state(world, second), state(world, third)) == ("live", "waiting")
    give(world, second)
    assert state(world, third) == "live"
    assert any(f"{third['id']} (fence {third['fence']}), for which you waited" in text for text in inbox(world, "carl"))


def test_who_comes_later_never_passes_who_waits_for_the_same(world: World) -> None:
    take(world, "ada", "src/a.py")
    take(world, "bob", "src/**", wait=True)
    with pytest.raises(Refused, match="for which bob waits"):
        take(world, "carl", "src/b.py")
    take(world, "carl", "docs/**")


def test_to_wait_for_what_is_free_is_to_take_it_and_to_wait_again_keeps_the_place(world: World) -> None:
    lease = take(world, "ada", "a", wait=True)
    assert lease["state"] == "live"
    place = take(world, "bob", "a", wait=True)
    assert take(world, "bob", "a", wait=True)["id"] == place["id"]
    with pytest.raises(Refused, match="ada holds"):
        take(world, "bob", "a")
    assert state(world, place) == "waiting"


def test_who_gives_its_place_up_lets_the_next_one_in(world: World) -> None:
    readers = [take(world, name, "a", shared=True) for name in ("ada", "bob")]
    writer = take(world, "carl", "a", wait=True)
    reader = take(world, "dora", "a", shared=True, wait=True)
    assert reader["behind"] == [writer["id"]]
    give(world, writer)
    assert state(world, reader) == "live"
    assert all(state(world, lease) == "live" for lease in readers)


def test_the_place_of_a_silent_session_ends_with_its_time_and_lets_the_next_one_in(world: World) -> None:
    first = take(world, "ada", "a", ttl=600)
    silent = take(world, "bob", "a", wait=True, ttl=60)
    third = take(world, "carl", "a", wait=True, ttl=600)
    world.watch(60)
    assert state(world, silent) == "expired"
    give(world, first)
    assert state(world, third) == "live"


def test_the_silent_end_at_once_and_whoever_waits_then_is_granted(world: World) -> None:
    take(world, "ada", "a", ttl=60)
    take(world, "bob", "a", wait=True, ttl=60)
    last = take(world, "carl", "a", wait=True, ttl=600)
    world.watch(60)
    assert state(world, last) == "live"


def test_being_granted_something_is_no_sign_of_life(world: World) -> None:
    first = take(world, "ada", "a", ttl=600)
    place = take(world, "bob", "a", wait=True, ttl=60)
    world.watch(50)
    give(world, first)
    world.watch(10)
    assert state(world, place) == "expired"


# Lanes


def test_a_lane_has_room_for_two_and_as_many_as_the_settings_say(tmp_path: Path) -> None:
    world = World(tmp_path, Config(leases=Leases(capacity={"lane:build": 3, "gpu:0": 2})))
    for name, room in (("lane:test", 2), ("lane:build", 3), ("gpu:0", 2), ("port:1", 1)):
        taken = [take(world, f"s{number}", name, wait=True) for number in range(4)]
        assert [lease["state"] for lease in taken] == ["live"] * room + ["waiting"] * (4 - room)
        give(world, taken[0])
        assert state(world, taken[room]) == "live"
    world.store.close()


def test_the_commands_of_one_session_stand_in_line_like_those_of_many(world: World) -> None:
    lane = [take(world, "ada", "lane:build", wait=True, beats=True) for _ in range(3)]
    assert [lease["state"] for lease in lane] == ["live", "live", "waiting"]
    assert len({lease["id"] for lease in lane}) == 3


def test_a_command_that_is_killed_leaves_its_lane_though_its_session_lives(world: World) -> None:
    world.ask("session.new", name="ada")
    lease = take(world, "ada", "lane:build", beats=True, ttl=3600)
    assert lease["ttl"] == 30
    world.watch(25, 5, also=lambda: world.ask("task.list", Principal("ada")))
    assert state(world, lease) == "live"
    world.watch(5, 5, also=lambda: world.ask("task.list", Principal("ada")))
    assert state(world, lease) == "expired"


# Circles


def test_who_would_close_a_circle_with_the_younger_task_is_refused_and_told_what_to_do(world: World) -> None:
    for name in ("ada", "bob"):
        world.claim(world.add(), name)
    take(world, "ada", "a")
    mine = take(world, "bob", "b")
    take(world, "ada", "b", wait=True)
    before = world.everything()
    with pytest.raises(Refused, match="would close a circle: bob waits for ada, ada waits for bob") as refusal:
        take(world, "bob", "a", wait=True)
    assert (
        f"Commit what you have, give back what you hold (covey lease give {mine['id']} --as bob)" in refusal.value.hint
    )
    assert world.everything() == before


def test_the_younger_task_loses_its_place_to_the_older_one_and_is_told_by_mail(world: World) -> None:
    for name in ("ada", "bob"):
        world.claim(world.add(), name)
    take(world, "ada", "a")
    held_by_bob = take(world, "bob", "b")
    place = take(world, "bob", "a", wait=True)
    waits = take(world, "ada", "b", wait=True)
    assert (waits["state"], state(world, place)) == ("waiting", "expired")
    (told,) = inbox(world, "bob")
    assert "Commit what you have, give back what you hold" in told and "waited in a circle" in told
    assert f"covey lease give {held_by_bob['id']} --as bob" in told
    assert "come again: covey lease take a --wait --timeout 60 --as bob." in told
    with pytest.raises(Refused, match="it waited in a circle: ada waits for bob, bob waits for ada"):
        world.ask("lease.renew", session="bob", id=place["id"])
    give(world, held_by_bob)
    assert state(world, waits) == "live"


def test_a_circle_of_three_is_found(world: World) -> None:
    for name in ("ada", "bob", "carl"):
        world.claim(world.add(), name)
        take(world, name, name)
    take(world, "ada", "bob", wait=True)
    take(world, "bob", "carl", wait=True)
    with pytest.raises(Refused, match="carl waits for ada, ada waits for bob, bob waits for carl"):
        take(world, "carl", "ada", wait=True)


def test_who_waits_for_a_full_lane_is_in_no_circle_while_one_in_it_gets_on(world: World) -> None:
    mine = take(world, "ada", "a")
    for name in ("bob", "carl"):
        take(world, name, "lane:build")
    take(world, "bob", "a", wait=True)
    place = take(world, "ada", "lane:build", wait=True)
    assert place["state"] == "waiting"
    with pytest.raises(Refused, match="would close a circle"):
        take(world, "carl", "a", wait=True)
    assert state(world, mine) == "live"


def test_commands_that_wait_for_each_other_inside_each_other_are_found(world: World) -> None:
    one, other = take(world, "ada", "db:main", beats=True), take(world, "bob", "port:1", beats=True)
    take(world, "ada", "port:1", beats=True, wait=True, within=[one["id"]])
    with pytest.raises(Refused, match="would close a circle"):
        take(world, "bob", "db:main", beats=True, wait=True, within=[other["id"]])


def test_who_shares_a_lane_does_not_fill_it_before_one_who_waits(world: World) -> None:
    take(world, "ada", "lane:build", shared=True)
    take(world, "bob", "db:main")
    first = take(world, "carl", "lane:build", "db:main", wait=True)
    assert first["state"] == "waiting"
    with pytest.raises(Refused, match="lane:build meets lane:build"):
        take(world, "dora", "lane:build", shared=True)


def test_many_commands_of_one_session_wait_for_a_lane_and_close_no_circle(world: World) -> None:
    commands = [take(world, "ada", "lane:build", wait=True, beats=True) for _ in range(6)]
    assert [each["state"] for each in commands] == ["live", "live", *["waiting"] * 4]
    for ended, called in zip(commands, commands[2:], strict=False):
        give(world, ended)
        assert state(world, called) == "live"


def test_a_circle_of_commands_that_run_inside_of_commands_is_found(world: World) -> None:
    one, other = (
        take(world, "ada", "db:one", wait=True, beats=True),
        take(world, "bob", "db:two", wait=True, beats=True),
    )
    inner = take(world, "ada", "port:1", wait=True, beats=True, within=[one["id"]])
    take(world, "ada", "db:two", wait=True, beats=True, within=[one["id"], inner["id"]])
    with pytest.raises(Refused, match="would close a circle: bob waits for ada, ada waits for bob"):
        take(world, "bob", "db:one", wait=True, beats=True, within=[other["id"]])
    take(world, "bob", "port:1", wait=True, beats=True)  # beside its command, which gets on without it


def test_a_task_on_its_way_to_main_closes_no_circle(world: World) -> None:
    landing = world.add(scope=["a"])
    world.claim(landing, "bob")
    world.hand_in(landing, "bob")
    take(world, "ada", "b")
    take(world, "bob", "b", wait=True)
    assert take(world, "ada", "a", wait=True)["state"] == "waiting"


# With a task


@pytest.mark.parametrize("who", ["ada", "owner"])
def test_the_scope_of_a_task_is_leased_with_its_claim_and_until_it_has_landed(world: World, who: str) -> None:
    task = world.add(scope=["src/**", "new:docs/x.md"])
    world.claim(task, who)
    assert held(world, task) == [(who, "live", ["src/**", "docs/x.md"])]
    (lease,) = world.ask("lease.list")
    assert (lease["origin"], lease["until"]) == ("scope", None)
    merge = world.hand_in(task, who)
    assert held(world, task)
    world.ask("merge.land", id=merge, commit="c" * 40)
    assert held(world, task) == []


@pytest.mark.parametrize("how", ["release", "block", "drop", "reject", "silence"])
def test_the_leases_of_a_task_end_whoever_ends_it(world: World, how: str) -> None:
    task = world.add(scope=["src/**"])
    world.claim(task, "ada")
    if how == "reject":
        world.ask("merge.reject", id=world.hand_in(task, "ada"), reason="red")
    elif how == "silence":
        world.watch(3601, 60)
    else:
        asked: dict[str, Any] = {"session": "ada"} if how == "release" else {"reason": "so"}
        world.ask(f"task.{how}", id=task, **asked)
    assert held(world, task) == []


def test_a_claim_waits_for_the_globs_that_another_holds_and_is_told_who(world: World) -> None:
    mine = take(world, "ada", "src/a.py")
    world.ask("session.new", name="bob")
    task = world.add(scope=["src/**", "docs/**"])
    assert world.next("bob") == task
    assert held(world, task) == [("bob", "waiting", ["src/**"]), ("bob", "live", ["docs/**"])]
    (told,) = inbox(world, "bob")
    assert "src/** of your scope meets src/a.py, which ada holds" in told
    give(world, mine)
    assert held(world, task) == [("bob", "live", ["src/**"]), ("bob", "live", ["docs/**"])]
    assert "src/** is yours now" in inbox(world, "bob")[1]


def test_who_holds_the_very_same_is_said_plainly(world: World) -> None:
    first, second = world.add(scope=["src/**"]), world.add(scope=["src/**"], overlap=True)
    world.claim(first, "ada")
    world.claim(second, "bob")
    (told,) = inbox(world, "bob")
    assert told.startswith(f"src/** of your scope is held by ada for {first}.\n")
    assert 'covey mail send ada "..." --as bob' in told


def test_what_is_handed_in_is_nothing_to_be_told_of(world: World) -> None:
    first, second = world.add(scope=["src/**"]), world.add(scope=["src/**"])
    world.claim(first, "ada")
    merge = world.hand_in(first, "ada")
    world.claim(second, "bob")
    assert held(world, second) == [("bob", "waiting", ["src/**"])]
    world.ask("merge.land", id=merge, commit="c" * 40)
    assert held(world, second) == [("bob", "live", ["src/**"])]
    assert inbox(world, "bob") == []


def test_a_scope_that_is_edited_while_it_is_worked_on_is_leased_anew(world: World) -> None:
    task = world.add(scope=["src/a/**"])
    world.claim(task, "ada")
    world.ask("task.edit", id=task, scope=["src/b/**"])
    assert held(world, task) == [("ada", "live", ["src/b/**"])]


def test_a_scope_that_is_edited_gives_back_what_it_dropped_and_keeps_the_rest(world: World) -> None:
    task = world.add(scope=["a/**", "b/**"])
    world.claim(task, "ada")
    places = {name: take(world, "bob", f"{name}/x.py", wait=True) for name in "abc"}
    assert places["c"]["state"] == "live"
    world.ask("task.edit", id=task, scope=["a/**", "c/**"])
    assert held(world, task) == [("ada", "live", ["a/**"]), ("ada", "waiting", ["c/**"])]
    assert {name: state(world, place) for name, place in places.items()} == {"a": "waiting", "b": "live", "c": "live"}


def test_a_scope_of_one_kind_of_files_is_in_the_way_of_no_other_file(world: World) -> None:
    first, second = world.add(scope=["**/*.md"]), world.add(scope=["src/b.py"], overlap=True)
    world.claim(first, "bob")
    assert take(world, "ada", "src/a.py")["state"] == "live"
    world.claim(second, "cleo")
    assert held(world, second) == [("cleo", "live", ["src/b.py"])]
    with pytest.raises(Refused, match=r"docs/a\.md meets"):
        take(world, "ada", "docs/a.md")


def test_a_run_leases_the_scope_of_its_task_and_what_it_took_by_hand_ends_with_it(world: World) -> None:
    world.at_work()
    task = world.add(scope=["src/**"])
    run = world.begin()
    work = world.work(run)
    assert work.run.task == task
    world.ask("lease.take", Principal("ada"), resources=["port:1"])
    take(world, "bob", "a")
    world.ask("lease.take", Principal("ada"), resources=["a"], wait=True)
    assert [each["task"] for each in world.ask("lease.list", session="ada", waiting=True)] == [task] * 3
    world.end(run, HandIn("c" * 40, "It works"))
    assert held(world, task) == [("ada", "live", ["src/**"])]
    assert world.status(task) in ("review", "merging")


def test_a_run_that_tries_again_loses_what_came_with_its_task(world: World) -> None:
    world.at_work()
    task = world.add(scope=["src/**"])
    world.end(world.begin(), Again("No commit"))
    assert held(world, task) == []


def test_a_session_that_is_removed_waits_no_more(world: World) -> None:
    take(world, "ada", "a")
    take(world, "bob", "a", wait=True)
    world.ask("session.remove", name="bob")
    assert [each["holder"] for each in world.ask("lease.list", waiting=True)] == ["ada"]
