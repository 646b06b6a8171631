"""Leases through the App: what meets is never granted twice."""

from __future__ import annotations

import pytest

from covey.errors import Denied, Invalid, NotFound, Refused
from tests.worlds.boards import Principal, World


def test_a_lease_is_taken_refused_to_others_given_back_and_taken_again(world: World) -> None:
    lease = world.ask("lease.take", session="ada", resources=["src/**"], reason="moving files")
    with pytest.raises(Refused, match=rf"src/a.py meets src/\*\* of {lease['id']}, which ada holds"):
        world.ask("lease.take", session="bob", resources=["docs/**", "src/a.py"])
    given = world.ask("lease.give", session="ada", id=lease["id"], fence=lease["fence"])
    assert (given["state"], given["until"]) == ("given", None)
    again = world.ask("lease.take", session="bob", resources=["src/a.py"])
    assert again["fence"] > lease["fence"]


def test_a_refused_lease_leaves_nothing(world: World) -> None:
    world.ask("lease.take", session="ada", resources=["repo:"])
    before = world.everything()
    with pytest.raises(Refused):
        world.ask("lease.take", session="newcomer", resources=["port:1", "a"])
    assert world.everything() == before


def test_taking_the_same_again_answers_the_same_lease(world: World) -> None:
    lease = world.ask("lease.take", session="ada", resources=["src/**", "port:1", "src/**"])
    assert lease["resources"] == ["src/**", "port:1"]
    before = world.everything()
    world.clock.run(10)
    again = world.ask("lease.take", session="ada", resources=["src/**", "port:1"])
    assert (again["id"], again["fence"]) == (lease["id"], lease["fence"])
    assert again["until"] == lease["until"] + 10
    assert world.everything() == before


def test_readers_share_and_a_writer_waits_for_all_of_them(world: World) -> None:
    one = world.ask("lease.take", session="ada", resources=["src/**"], shared=True)
    two = world.ask("lease.take", session="bob", resources=["src/a.py"], shared=True)
    for lease, holder in ((one, "ada"), (two, "bob")):
        with pytest.raises(Refused):
            world.ask("lease.take", session="carl", resources=["src/a.py"])
        world.ask("lease.give", session=holder, id=lease["id"], fence=lease["fence"])
    world.ask("lease.take", session="carl", resources=["src/a.py"])


def test_a_lease_ends_for_its_holder_with_its_fence_or_for_the_owner(world: World) -> None:
    world.ask("session.new", name="bob")
    bob = Principal("bob")
    lease = world.ask("lease.take", session="ada", resources=["a"])
    with pytest.raises(Refused, match="held by ada, not by bob"):
        world.ask("lease.give", bob, id=lease["id"], fence=lease["fence"])
    with pytest.raises(Invalid, match="fence of the lease is missing"):
        world.ask("lease.give", bob, id=lease["id"])
    with pytest.raises(Refused, match="has the fence"):
        world.ask("lease.renew", session="ada", id=lease["id"], fence=lease["fence"] + 1)
    world.ask("lease.give", id=lease["id"])
    with pytest.raises(Refused, match="has ended"):
        world.ask("lease.renew", session="ada", id=lease["id"], fence=lease["fence"])


def test_a_lease_that_is_not_there_is_not_found(world: World) -> None:
    for verb in ("lease.renew", "lease.give"):
        with pytest.raises(NotFound):
            world.ask(verb, id="lease-99")
    with pytest.raises(NotFound):
        world.ask("lease.take", resources=["a"], task="T-99")


@pytest.mark.parametrize("resource", ["../x", "/etc", "repo:main", "a\x00", "[", "PORT:1"])
def test_a_resource_that_makes_no_sense_is_refused(world: World, resource: str) -> None:
    with pytest.raises(Invalid):
        world.ask("lease.take", resources=[resource])


def test_leases_are_listed_the_oldest_first(world: World) -> None:
    for number, holder in enumerate(["ada", "bob", "ada"]):
        world.ask("lease.take", session=holder, resources=[f"port:{number}"])
    assert [lease["resources"][0] for lease in world.ask("lease.list")] == ["port:0", "port:1", "port:2"]
    assert [lease["resources"][0] for lease in world.ask("lease.list", session="ada")] == ["port:0", "port:2"]


def test_nobody_takes_a_lease_as_covey(world: World) -> None:
    with pytest.raises(Denied):
        world.ask("lease.take", session="covey", resources=["a"])
