"""Frozen values behave as the standard library's do, but for what only mypy forbids."""

from __future__ import annotations

import dataclasses
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from typing import Any

import msgspec
import pytest

from covey.values import dataclass


@dataclass(frozen=True)
class Ours:
    """A value."""

    name: str
    size: int = 0
    note: str = field(default="", compare=False, repr=False)


@dataclasses.dataclass(frozen=True)
class Theirs:
    """The same, made by the standard library."""

    name: str
    size: int = 0
    note: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Larger(Ours):
    """A value with more to it."""

    more: tuple[int, ...] = ()


@dataclass(frozen=True)
class One:
    """A value of one thing."""

    only: int


@dataclass(frozen=True)
class Nothing:
    """A value of nothing."""


@dataclass(frozen=True)
class Shown:
    """A value that says itself how it is shown and compared."""

    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shown)

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize("values", [("a",), ("a", 1), ("b", 1, "x"), ("b", 1, "y")])
def test_a_value_is_shown_and_taken_apart_as_by_the_standard_library(values: tuple[Any, ...]) -> None:
    ours, theirs = Ours(*values), Theirs(*values)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert Ours.__match_args__ == Theirs.__match_args__


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (Ours("a", 1), Ours("a", 1), True),
        (Ours("a", 1), Ours("a", 2), False),
        (Ours("a", 1, "x"), Ours("a", 1, "y"), True),
        (Ours("a", 1), Larger("a", 1), False),
        (Larger("a", more=(1,)), Larger("a", more=(1,)), True),
        (One(1), One(1), True),
        (One(1), One(2), False),
        (Nothing(), Nothing(), True),
        (Nothing(), One(1), False),
        (Ours("a"), "a", False),
        (Shown("a"), Shown("b"), True),
    ],
)
def test_values_are_equal_by_what_they_hold(one: object, other: object, equal: bool) -> None:
    assert (one == other) is equal
    assert (len({one, other}) == 1) is equal


def test_a_changed_copy_leaves_the_value_as_it_was() -> None:
    value = Larger("a", 1, more=(1, 2))
    assert replace(value, size=2) == Larger("a", 2, more=(1, 2))
    assert value.size == 1
    assert repr(Shown("a")) == "<a>"


class Below(Ours):
    """A class below a value, with an __init__ of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(name, size=7)


@dataclass(frozen=True)
class Checked:
    """A value that looks at itself, and makes some of what it holds."""

    name: str = "x"
    parts: list[int] = field(default_factory=list)
    _: dataclasses.KW_ONLY
    late: int = 3

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("no name")


def test_what_makes_a_value_is_compiled_for_the_first_one_and_takes_what_the_standard_library_would() -> None:
    @dataclass(frozen=True)
    class Fresh:
        name: str
        size: int = 2

    assert not inspect.isfunction(vars(Fresh)["__init__"])
    assert (Fresh("a"), Fresh(name="a", size=2)) == (Fresh("a", 2), Fresh("a"))
    assert inspect.isfunction(vars(Fresh)["__init__"])
    for wrong in ({}, {"name": "a", "other": 1}):
        with pytest.raises(TypeError, match="__init__"):
            Fresh(**wrong)  # type: ignore[arg-type]


def test_nothing_of_a_class_is_made_before_it_is_needed() -> None:
    @dataclass(frozen=True)
    class Fresh:
        name: str
        size: int = 2

    @dataclass(frozen=True)
    class Below(Fresh):
        more: str = ""

    assert not isinstance(vars(Below)["__dataclass_fields__"], dict)
    assert [each.name for each in dataclasses.fields(Below)] == ["name", "size", "more"]
    assert [each.name for each in dataclasses.fields(Fresh)] == ["name", "size"]
    assert msgspec.json.decode(b'{"name": "a", "more": "b"}', type=Below) == Below("a", 2, "b")
    match Below("a", 3, "b"):
        case Below("a", size, more):
            assert (size, more) == (3, "b")
        case _:
            pytest.fail("it has no places")


def test_what_field_says_is_taken_out_of_the_class_at_once() -> None:
    assert "parts" not in vars(Checked)
    assert Ours.note == Theirs.note == ""


@dataclass
class Open:
    """A value that is assigned to."""

    name: str
    parts: list[int] = field(default_factory=list)
    seen: set[int] = field(default_factory=set, init=False, repr=False)
    count: int = field(default=0, init=False, repr=False)


@dataclass(eq=False)
class Itself:
    """One that is like no other."""

    name: str


def test_a_class_that_is_not_frozen_is_equal_by_what_it_holds_and_has_no_hash() -> None:
    one, other = Open("a"), Open("a", [])
    assert one == other
    assert repr(one) == "Open(name='a', parts=[])"
    one.parts.append(1)
    assert one != other
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
    assert (one.seen, one.count, Open.__match_args__) == (set(), 0, ("name", "parts"))
    assert one.seen is not other.seen
    with pytest.raises(TypeError):
        Open("a", [], {1})  # type: ignore[call-arg]
    assert Itself("a") != Itself("a")
    assert hash(Itself("a"))


def test_two_threads_may_need_a_class_for_the_first_time_at_once() -> None:
    def ask(kind: type[Any], start: threading.Barrier) -> tuple[object, ...]:
        start.wait()
        return kind("a"), hash(kind("a")), [each.name for each in dataclasses.fields(kind)], kind.__match_args__

    for _ in range(50):

        @dataclass(frozen=True)
        class Fresh:
            name: str
            size: int = 2
            parts: tuple[int, ...] = ()

        start = threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            told = [each.result() for each in [pool.submit(ask, Fresh, start) for _ in range(4)]]
        places = ["name", "size", "parts"]
        assert told == [(Fresh("a"), hash(("a", 2, ())), places, tuple(places))] * 4


def test_a_value_can_be_asked_for_its_arguments_before_there_is_one() -> None:
    ours, theirs = (inspect.signature(kind).parameters for kind in (Ours, Theirs))
    assert {name: (one.kind, one.default) for name, one in ours.items()} == {
        name: (one.kind, one.default) for name, one in theirs.items()
    }


def test_a_class_below_a_value_makes_it_first() -> None:
    assert (Below("a").name, Below("b").size, Below("c").note) == ("a", 7, "")


def test_a_value_checks_itself_and_shares_nothing_that_it_made() -> None:
    one, other = Checked(), Checked("y", late=4)
    assert (one.parts, other.parts, other.late) == ([], [], 4)
    assert one.parts is not other.parts
    with pytest.raises(ValueError, match="no name"):
        Checked("")
    with pytest.raises(TypeError):
        Checked("z", [], 5)  # type: ignore[call-arg]
