"""What may be pushed: only what a rule names, and by force only what a rule names for that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.people.commands import pushes
from covey.core.people.commands.pushes import Push, is_allowed
from covey.core.people.permits import PUSH, covers
from covey.errors import Invalid

names = st.from_regex(r"[a-z]{1,4}(/[a-z]{1,4}){0,2}", fullmatch=True)
marks = st.sampled_from(["", "+", ":"])
refs = st.lists(st.builds(str.__add__, marks, names), min_size=1, max_size=4)


@given(names, refs)
def test_without_a_rule_nothing_is_pushed(remote: str, wanted: list[str]) -> None:
    assert not is_allowed({}, Push(remote, tuple(wanted)))
    assert not is_allowed({f"{remote}x": ["**", "+**"]}, Push(remote, tuple(wanted)))


@given(names, refs, st.lists(names, max_size=4))
def test_a_push_is_allowed_only_if_each_of_its_refs_is_named(remote: str, wanted: list[str], named: list[str]) -> None:
    allowed = is_allowed({remote: named}, Push(remote, tuple(wanted)))
    inside = [any(ref == name or ref.startswith(f"{name}/") for name in named) for ref in wanted]
    assert allowed == all(inside)


@given(names, names)
def test_force_and_deletion_need_a_rule_for_them(remote: str, name: str) -> None:
    for mark in "+:":
        assert not is_allowed({remote: [name, "**"]}, Push(remote, (mark + name,)))
        assert is_allowed({remote: [f"+{name}"]}, Push(remote, (mark + name,)))
    assert is_allowed({remote: [f"+{name}"]}, Push(remote, (name,)))


def test_a_permit_for_pushes_covers_its_remote_and_its_patterns() -> None:
    assert covers(PUSH, "origin feature/*", PUSH, "origin feature/x feature/y")
    assert not covers(PUSH, "origin feature/*", PUSH, "origin feature/x main")
    assert not covers(PUSH, "origin feature/*", PUSH, "other feature/x")
    assert not covers(PUSH, "origin", PUSH, "origin main")
    assert not covers(PUSH, "", PUSH, "origin main"), "no permit is for every push"
    assert covers(PUSH, "origin :old", PUSH, "origin :old")


def test_refs_and_addresses_are_spoken_of_without_secrets() -> None:
    assert pushes.ref("refs/heads/main", forced=True) == "+main"
    assert pushes.ref("refs/tags/v1", deleted=True) == ":refs/tags/v1"
    assert pushes.address("https://me:secret@example.org/x y.git") == "https://example.org/x%20y.git"
    assert pushes.address("git@example.org:x.git") == "git@example.org:x.git"


@pytest.mark.parametrize("pattern", ["", "+", "a b", ":main", "++x", "["])
def test_patterns_that_make_no_sense_are_refused(pattern: str) -> None:
    with pytest.raises(Invalid):
        pushes.check([pattern])
