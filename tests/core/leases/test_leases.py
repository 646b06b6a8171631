"""The life of a lease, and that what meets is never granted twice."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core import globs
from covey.core.fold import State as Folded
from covey.core.leases import leases
from covey.core.leases.leases import Lease, LeaseState, Taken
from covey.core.nouns import NAMES
from covey.errors import CoveyError, Invalid, Refused
from covey.store.engine.rows import decode_payload, encode_payload


def make(*resources: str, holder: str = "ada", shared: bool = False) -> Lease:
    return Lease(id="lease-1", holder=holder, resources=resources, shared=shared, fence=4)


def wish(*resources: str, holder: str = "bob", shared: bool = False) -> Taken:
    return Taken(holder=holder, resources=resources, shared=shared)


# Names of resources


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("src/auth/**", "src/auth/**"),
        ("path:src/auth/**", "src/auth/**"),
        ("port:3000", "port:3000"),
        ("db:main", "db:main"),
        ("service:stripe", "service:stripe"),
        ("repo:", "repo:"),
        ("src/a:b", "src/a:b"),
        ("url:https-example.org/x@1", "url:https-example.org/x@1"),
    ],
)
def test_a_resource_has_one_spelling(asked: str, kept: str) -> None:
    assert leases.resource(asked) == kept
    assert leases.resource(kept) == kept


@pytest.mark.parametrize(
    "asked",
    ["", "repo:main", "Port:3000", ":x", "port:30 00", "port:\n", "/etc", "../x", "a:" + "x" * 201, "path:path:x"],
)
def test_this_is_no_resource(asked: str) -> None:
    with pytest.raises(Invalid):
        leases.resource(asked)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("src/**", "src/a.py", True),
        ("src/*.py", "src/*.md", False),
        ("repo:", "src/a.py", True),
        ("repo:", "repo:", True),
        ("repo:", "port:3000", False),
        ("port:3000", "port:3000", True),
        ("port:3000", "port:3001", False),
        ("db:main", "service:main", False),
        ("port:3000", "**", False),
        ("src/a.py", "**/*.md", False),
        ("src/a.py", "**/*.py", True),
        ("src/a.py", "src", True),
        ("src/a.py", "src/b.py", False),
        ("src/conf.d", "src/conf.d/**", True),
        ("src/conf.d", "src/conf.d/a.md", True),
        ("docs", "**/*.md", True),
        (".github", "**/*.md", True),
    ],
)
def test_two_resources_meet(one: str, other: str, meet: bool) -> None:
    assert leases.collide(one, other) is meet
    assert leases.collide(other, one) is meet


# Taking


def test_what_another_holds_is_refused_with_holder_task_and_both_resources() -> None:
    other = replace(make("src/**"), task="AF-1")
    with pytest.raises(Refused, match=r"src/a.py meets src/\*\* of lease-1, which ada holds for AF-1"):
        leases.take(wish("docs/**", "src/a.py"), [other])


def test_a_refusal_is_one_line_in_which_nothing_is_unseen() -> None:
    with pytest.raises(Refused) as refused:
        leases.take(wish("src/a\u2028b"), [make("src/*b")])
    assert r'"src/a\u2028b" meets src/*b of' in refused.value.message


def test_what_one_holds_oneself_is_no_conflict() -> None:
    leases.take(wish("src/a.py", holder="ada"), [make("src/**")])


@pytest.mark.parametrize("state", [LeaseState.GIVEN, LeaseState.EXPIRED])
def test_a_lease_that_ended_is_no_conflict(state: LeaseState) -> None:
    leases.take(wish("src/a.py"), [replace(make("src/**"), state=state)])


@pytest.mark.parametrize(
    ("mine", "theirs", "granted"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_only_shared_leases_share(mine: bool, theirs: bool, granted: bool) -> None:
    other = make("src/**", shared=theirs)
    if granted:
        leases.take(wish("src/a.py", shared=mine), [other])
    else:
        with pytest.raises(Refused):
            leases.take(wish("src/a.py", shared=mine), [other])


@pytest.mark.parametrize("count", [0, leases.MAX_RESOURCES + 1])
def test_a_lease_covers_a_bounded_number_of_resources(count: int) -> None:
    with pytest.raises(Invalid, match="covers 1 to 64"):
        leases.take(wish(*(f"port:{i}" for i in range(count))), [])


# Waiting


def test_who_waits_comes_before_who_came_later_and_never_in_the_way_of_who_came_first() -> None:
    first, second = (replace(make("a", holder=name), id=name, state=LeaseState.WAITING) for name in ("bob", "carl"))
    first, second = replace(first, fence=5), replace(second, fence=6)
    assert leases.meets(first, [first, second]) == []
    assert [lease.id for _, _, lease in leases.meets(second, [first, second])] == ["bob"]
    with pytest.raises(Refused, match="for which bob waits"):
        leases.take(wish("a", holder="dora"), [first])


def test_a_lane_has_room_for_some_also_for_the_commands_of_one_holder() -> None:
    room = leases.room_of({"lane:build": 3})
    assert (room("lane:build"), room("lane:test"), room("port:1")) == (3, 2, 1)
    inside = [replace(make("lane:test"), id=str(number), beats=True) for number in range(2)]
    assert leases.meets(wish("lane:test"), inside[:1], room) == []
    assert len(leases.meets(wish("lane:test"), inside, room)) == 2
    assert leases.meets(wish("lane:test", holder="ada"), inside, room) == []
    assert len(leases.meets(replace(wish("lane:test", holder="ada"), beats=True), inside, room)) == 2


@pytest.mark.parametrize(
    ("waits", "stuck", "circle"),
    [
        ({"a": [(1, ["b"])]}, set(), []),
        ({"a": [(1, ["b"])], "b": [(1, ["a"])]}, {"a", "b"}, ["a", "b"]),
        ({"a": [(1, ["b"])], "b": [(1, ["c"])], "c": [(1, ["b"])]}, {"a", "b", "c"}, []),
        ({"a": [(2, ["b", "c"])], "b": [(1, ["a"])]}, set(), ["a", "b"]),
        ({"a": [(2, ["b", "c"])], "b": [(1, ["a"])], "c": [(1, ["a"])]}, {"a", "b", "c"}, ["a", "b"]),
        ({"a": [(1, ["b"]), (1, ["x"])], "b": [(1, ["y"])]}, set(), []),
    ],
)
def test_those_who_wait_for_each_other_are_found(
    waits: dict[str, list[tuple[int, list[str]]]], stuck: set[str], circle: list[str]
) -> None:
    assert leases.stuck(waits) == stuck
    assert leases.circle("a", waits) == circle


# Holding and ending


def test_only_the_holder_under_its_fence_holds_a_live_lease() -> None:
    leases.hold(make("a"), "ada", 4)
    leases.hold(make("a"), None, None)
    with pytest.raises(Refused, match="held by ada, not by bob"):
        leases.hold(make("a"), "bob", 4)
    with pytest.raises(Refused, match="has the fence 4, not 3"):
        leases.hold(make("a"), "ada", 3)


@pytest.mark.parametrize("event", [leases.Given("ada"), leases.Expired("silence")])
def test_an_ended_lease_is_held_by_nobody(event: leases.Event) -> None:
    ended = leases.apply(make("a"), event, 5.0)
    assert ended.ended == 5.0
    with pytest.raises(Refused, match="has ended"):
        leases.hold(ended, "ada", 4)


def test_the_owner_may_give_back_anyones_lease_and_a_session_only_its_own() -> None:
    leases.hold(make("a"), None, None)
    leases.hold(make("a"), "ada", None)
    with pytest.raises(Refused):
        leases.hold(make("a"), "bob", None)


# Whatever is asked, in whatever order

resources = st.sampled_from(
    ["src/**", "src/a.py", "src/?.py", "src", "docs/*.md", "**/*.md", "repo:", "port:1", "db:main", "*", "src/[ab].py"]
)
holders = st.sampled_from(["ada", "bob", "carl"])


@given(resources, resources)
def test_resources_that_meet_are_found_under_one_text_that_begins_the_other(one: str, other: str) -> None:
    if leases.collide(one, other):
        mine, theirs = leases.index(one), leases.index(other)
        assert mine.startswith(theirs) or theirs.startswith(mine)


class AnyOrder(RuleBasedStateMachine):
    """Whatever is asked, in whatever order, nothing is granted twice and the log tells the whole story."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[str, str, str]] = []
        self.leases: dict[str, Lease] = {}

    def write(self, subject: str, event: leases.Event) -> float:
        self.log.append((subject, NAMES[type(event)], encode_payload(event)))
        return float(len(self.log))

    @rule(holder=holders, wanted=st.lists(resources, min_size=1, max_size=3, unique=True), shared=st.booleans())
    def take(self, holder: str, wanted: list[str], shared: bool) -> None:
        event = wish(*wanted, holder=holder, shared=shared)
        try:
            leases.take(event, self.leases.values())
        except Refused:
            return
        seq = len(self.log) + 1
        at = self.write(f"lease-{seq}", event)
        self.leases[f"lease-{seq}"] = leases.first(f"lease-{seq}", seq, event, at)

    @rule(which=st.integers(0, 5), by=holders, expire=st.booleans())
    def end(self, which: int, by: str, expire: bool) -> None:
        if which >= len(self.leases):
            return
        lease = list(self.leases.values())[which]
        try:
            leases.hold(lease, by, None)
            event: leases.Event = leases.Given(by)
        except CoveyError:
            if not expire or lease.state is not LeaseState.LIVE:
                return
            event = leases.Expired("silence")
        at = self.write(lease.id, event)
        self.leases[lease.id] = leases.apply(lease, event, at)

    @invariant()
    def nothing_is_granted_twice(self) -> None:
        live = [lease for lease in self.leases.values() if lease.state is LeaseState.LIVE]
        for one, other in combinations(live, 2):
            if one.holder == other.holder or (one.shared and other.shared):
                continue
            for mine in one.resources:
                assert not any(leases.collide(mine, theirs) for theirs in other.resources)

    @invariant()
    def the_log_tells_the_whole_story(self) -> None:
        state = Folded()
        for seq, (subject, kind, data) in enumerate(self.log, 1):
            payload = decode_payload(kind, data)
            state.fold(seq=seq, at=float(seq), actor="x", kind=kind, subject=subject, payload=payload)
        assert state.tables["leases"] == self.leases


TestAnyOrder = AnyOrder.TestCase


def test_a_glob_is_indexed_by_what_every_match_begins_with() -> None:
    assert leases.index("src/a*") == "/src/a"
    assert leases.index("repo:") == "/"
    assert leases.index("port:3000") == "port:3000"
    assert leases.index("SRC/A*") == "/src/a"
    assert globs.matches("src/a*", "src/abc")
