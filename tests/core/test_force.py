"""What a write comes to: the same, whatever the way in which a path or a lease is written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core import force, globs, leases
from covey.core.force import Force, Index, Reader, Write
from covey.core.leases import Lease, Origin, State
from covey.core.tasks import Task

names = st.text("abAB*?[]\\\\:. é", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
patterns = st.sampled_from(["a", "A/**", "**/b", "a/*", "[ab]/?", "repo:", "port:1", "a/B", "**", "a\\\\*"])


def make(*resources: str, holder: str = "ada", taken: float = 10.0, origin: Origin = Origin.HAND) -> Lease:
    return Lease(id=f"lease of {holder}", holder=holder, resources=resources, taken=taken, origin=origin, task="T-1")


def judge(write: Write, *others: Lease, own: tuple[Lease, ...] = (), task: Task | None = None) -> list[Force]:
    found = force.judge([write], "bob", task, others, own, Force.DENY, lambda lease: False)
    return [finding.force for finding in found]


@given(paths)
def test_a_path_as_a_resource_covers_itself_and_nothing_beside_it(path: str) -> None:
    resource = leases.resource(force.literal(path))
    assert leases.is_path(resource)
    assert globs.matches(resource, path)
    assert not globs.matches(resource, path + "x")


@given(st.lists(patterns, min_size=1, max_size=4), paths)
def test_the_index_finds_what_covers_a_path(resources: list[str], path: str) -> None:
    each = [replace(make(resource), id=str(number)) for number, resource in enumerate(resources)]
    expected = {lease.id for lease in each if force.covers(lease, path)}
    assert {lease.id for lease in Index(each).covering(path)} == expected


@pytest.mark.parametrize(
    ("resource", "path", "covered"),
    [
        ("src/**", "src/a.py", True),
        ("src/**", "SRC/a.py", True),
        ("SRC/A.py", "src/a.py", True),
        ("src/[A-C]", "src/b", True),
        ("src/[Z-a]", "src/Z", True),
        ("src/a", "src/ab", False),
        ("repo:", "anything", True),
        ("port:1", "port:1", False),
    ],
)
def test_a_lease_covers_a_path_whatever_its_case(resource: str, path: str, covered: bool) -> None:
    assert (force.covers(make(resource), path) is not None) is covered


def test_only_what_was_written_under_a_lease_in_force_crosses_it() -> None:
    lease = make("a")
    assert judge(Write("a", 10.0), lease) == [Force.DENY]
    assert judge(Write("a", 9.9), lease) == []
    for other in (replace(lease, shared=True), replace(lease, state=State.WAITING), replace(lease, state=State.GIVEN)):
        assert judge(Write("a", 11.0), other) == []
    assert judge(Write("a", 11.0), make("a", holder="bob")) == []


@pytest.mark.parametrize(
    ("state", "taken", "found"),
    [
        (State.LIVE, 9.0, []),
        (State.EXPIRED, 9.0, []),
        (State.GIVEN, 9.0, [Force.WARN]),
        (State.WAITING, 9.0, [Force.DENY]),
        (State.EXPIRED, 11.0, [Force.DENY]),
    ],
)
def test_who_had_a_path_before_keeps_what_it_wrote(state: State, taken: float, found: list[Force]) -> None:
    mine = replace(make("a", holder="bob", taken=taken), state=state)
    assert judge(Write("a", 12.0), make("a"), own=(mine,)) == found


@pytest.mark.parametrize(
    ("origin", "gives_way", "policy", "found"),
    [
        (Origin.HAND, True, Force.DENY, Force.DENY),
        (Origin.SCOPE, False, Force.DENY, Force.DENY),
        (Origin.SCOPE, True, Force.DENY, Force.WARN),
        (Origin.EDIT, False, Force.DENY, Force.WARN),
        (Origin.EDIT, False, Force.OFF, Force.OFF),
    ],
)
def test_how_strong_a_lease_is(origin: Origin, gives_way: bool, policy: Force, found: Force) -> None:
    assert force.strength(make("a", origin=origin), policy, gives_way=gives_way) is found


def test_of_many_paths_a_text_names_some_and_counts_the_others() -> None:
    found = [force.Finding(f"src/{number}", Force.DENY, make("src/**")) for number in range(8)]
    text = force.text(found, lambda lease: 90.0, Force.DENY, Reader())
    assert text is not None and "src/4 is held" in text and "src/5" not in text and "and 3 more paths." in text
    assert force.text(found, lambda lease: 90.0, Force.WARN, Reader()) is None
