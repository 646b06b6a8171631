"""Which task suits which session, and who is first in line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.board import scheduling, tasks
from covey.core.board.tasks import Status, Task
from covey.core.fleet.sessions import Session
from covey.core.texts import Blob, Text


def make(ordinal: int = 1, **values: Any) -> Task:
    return Task(**{"id": f"T-{ordinal}", "ordinal": ordinal, "title": "t", **values})


@pytest.mark.parametrize(
    ("body", "is_without"), [("", True), (" \n\t", True), ("true", False), (Blob("a" * 64, 9), False)]
)
def test_a_body_of_blanks_is_none(body: Text, is_without: bool) -> None:
    assert scheduling.is_without_body(make(body=body)) == is_without


# Lanes


@pytest.mark.parametrize(
    ("values", "lane"),
    [
        ({}, ""),
        ({"role": "docs"}, "r:docs"),
        ({"assignee": "ada"}, "s:ada"),
        ({"assignee": "ada", "role": "docs"}, "s:ada"),
        ({"front": "bob"}, "s:bob"),
        ({"front": "bob", "role": "docs"}, "s:bob"),
        ({"front": "bob", "assignee": "ada"}, "s:ada"),
        ({"batch": "night"}, "b:night"),
        ({"batch": "night", "role": "docs"}, "b:night"),
        ({"batch": "night", "assignee": "ada"}, "s:ada"),
        ({"batch": "night", "front": "bob"}, "s:bob"),
    ],
)
def test_a_task_waits_in_one_lane(values: dict[str, Any], lane: str) -> None:
    assert scheduling.waiting_line(make(**values)) == lane


def test_a_session_is_served_from_its_own_lane_its_roles_and_anyones() -> None:
    assert set(scheduling.waiting_lines(Session(name="ada"))) == {"s:ada", ""}
    assert set(scheduling.waiting_lines(Session(name="ada", role="docs"))) == {"s:ada", "r:docs", ""}


def test_a_session_of_a_batch_is_served_from_its_own_lane_and_its_batchs_and_no_other() -> None:
    assert set(scheduling.waiting_lines(Session(name="ada", batch="night"))) == {"s:ada", "b:night"}
    assert set(scheduling.waiting_lines(Session(name="ada", batch="night", role="docs"))) == {"s:ada", "b:night"}


def test_a_task_of_a_batch_suits_its_sessions_whatever_their_role_and_nobody_else() -> None:
    task = make(batch="night", role="docs")
    assert scheduling.why_not(task, Session(name="ada", batch="night"), []) is None
    for other in (Session(name="ada", role="docs"), Session(name="ada", batch="day")):
        assert scheduling.why_not(task, other, []) == "T-1 is for the sessions of night."
    assert scheduling.why_not(make(batch="night", assignee="ada"), Session(name="ada"), []) is None
    assert scheduling.why_not(make(batch="night", front="ada"), Session(name="ada"), []) is None


names = st.none() | st.sampled_from(["ada", "bob", "docs"])


batches = st.none() | st.sampled_from(["night", "ada"])


@given(names, names, names, batches, names, batches, st.sampled_from(["ada", "bob"]))
def test_what_a_lane_offers_a_session_suits_it(
    assignee: str | None,
    role: str | None,
    front: str | None,
    batch: str | None,
    own_role: str | None,
    own_batch: str | None,
    name: str,
) -> None:
    task = make(assignee=assignee, role=role, front=front, batch=batch)
    session = Session(name=name, role=own_role, batch=own_batch)
    if scheduling.waiting_line(task) not in scheduling.waiting_lines(session):
        return
    assert scheduling.why_not(task, session, []) is None
    tasks.claim(task, session.name)
    if name not in (assignee, front):
        assert own_batch == batch, "but for what is their own, a batch's sessions and its tasks keep to themselves"


def test_a_session_and_a_role_of_the_same_name_have_lanes_of_their_own() -> None:
    assert scheduling.waiting_line(make(role="ada")) not in scheduling.waiting_lines(Session(name="ada"))
    assert scheduling.waiting_line(make(batch="ada")) not in scheduling.waiting_lines(Session(name="ada", role="ada"))


# Rank


def test_first_in_line_goes_before_priority_and_priority_before_age() -> None:
    old, urgent, rejected = make(1), make(2, priority=9), make(3, front="ada")
    assert sorted([old, urgent, rejected], key=scheduling.hand_out_key) == [rejected, urgent, old]


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=8))
def test_the_key_of_handing_out_orders_all_tasks_and_no_two_are_equal(asked: list[tuple[int, bool]]) -> None:
    line = [
        make(number, priority=priority, front="ada" if front else None)
        for number, (priority, front) in enumerate(asked)
    ]
    keys = [scheduling.hand_out_key(task) for task in line]
    assert len(set(keys)) == len(keys)
    for one in line:
        for other in line:
            if bool(one.front) is bool(other.front) and one.priority > other.priority:
                assert scheduling.hand_out_key(one) < scheduling.hand_out_key(other)


# Scopes


def scoped(ordinal: int, *scope: str, **values: Any) -> Task:
    return make(ordinal, scope=scope, **values)


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        (scoped(1, "src/**"), scoped(2, "src/a.py"), True),
        (scoped(1, "src/**"), scoped(2, "docs/**"), False),
        (scoped(1, "src/**"), make(2), False),
        (make(1), make(2), False),
        (scoped(1, "src/**", overlap=True), scoped(2, "src/**"), False),
        (scoped(1, "src/**"), scoped(2, "src/**", overlap=True), False),
        (scoped(1, "new:docs/*"), scoped(2, "docs/a.md"), True),
        (scoped(1, "src/**", do_not_touch=("src/auth/**",)), scoped(2, "src/auth/*.py"), False),
        (scoped(1, "src/**", do_not_touch=("src/auth/*.md",)), scoped(2, "src/auth/*"), True),
        (scoped(1, "docs/**", "src/a/*"), scoped(2, "lib/**", "src/*/x"), True),
    ],
)
def test_two_scopes_overlap_when_some_path_is_in_both(one: Task, other: Task, overlap: bool) -> None:
    assert scheduling.scopes_overlap(one, other) is overlap
    assert scheduling.scopes_overlap(other, one) is overlap


# Why not


def test_a_task_for_a_role_does_not_suit_a_session_without_it() -> None:
    task = make(role="docs")
    assert scheduling.why_not(task, Session(name="ada"), []) == "T-1 is for the role docs, and ada has none."
    why = scheduling.why_not(task, Session(name="ada", role="quality"), [])
    assert why == "T-1 is for the role docs, and ada has quality."
    assert scheduling.why_not(task, Session(name="ada", role="docs"), []) is None


def test_a_task_for_a_session_or_first_in_line_for_it_suits_it_whatever_its_role() -> None:
    assert scheduling.why_not(make(role="docs", assignee="ada"), Session(name="ada"), []) is None
    assert scheduling.why_not(make(role="docs", front="ada"), Session(name="ada"), []) is None


def test_a_task_whose_files_another_writes_does_not_suit_anyone() -> None:
    active = scoped(2, "src/**", status=Status.DOING, session="bob")
    why = scheduling.why_not(scoped(1, "src/a.py"), Session(name="ada"), [active])
    assert why == "T-1 may write the same files as T-2, at which bob is at work."


def test_a_task_is_not_in_its_own_way() -> None:
    task = scoped(1, "src/**", status=Status.DOING, session="bob")
    assert scheduling.why_not(task, Session(name="ada"), [task]) is None


# Hot files


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Mend src/a.py", True),
        ("See `src/a.py`.", True),
        ("src/a.py: the third line", True),
        ("./src/a.py and more", True),
        ("Mend (src/a.py)", True),
        ("Mend lib/src/a.py", False),
        ("Mend src/a.pyc", False),
        ("Mend src/a.py.old", False),
        ("Mend src/a.py/b", False),
        ("Mend my-src/a.py", False),
        ("Mend a.py", False),
        ("", False),
    ],
)
def test_a_text_names_a_path_or_only_one_like_it(text: str, named: bool) -> None:
    assert scheduling.names(text, "src/a.py") is named


def test_a_task_is_on_a_file_by_its_scope_its_words_or_what_is_known_of_it() -> None:
    path = "src/a.py"
    assert scheduling.is_on(make(scope=("src/**",)), "", path, ())
    assert scheduling.is_on(make(scope=("new:src/*.py",)), "", path, ())
    assert scheduling.is_on(make(title="Mend src/a.py"), "", path, ())
    assert scheduling.is_on(make(), "It is in src/a.py.", path, ())
    assert scheduling.is_on(make(), "", path, ("T-1",))
    assert not scheduling.is_on(make(scope=("lib/**",)), "", path, ("T-2",))
    assert not scheduling.is_on(make(scope=("src/**",), do_not_touch=("src/a.*",)), "src/a.py", path, ("T-1",))


def test_a_task_on_a_hot_file_waits_for_others_on_it_and_not_for_itself() -> None:
    task, other = make(1), make(2, status=Status.DOING, session="bob")
    assert scheduling.not_through(task, [task, other]) is other
    said = scheduling.why_wait(task, "a.py", other)
    assert said == "T-1 is on a.py, where tasks collide again and again, and T-2 is not through with it."
    assert scheduling.not_through(task, [task]) is None
    assert scheduling.not_through(make(1, overlap=True), [other]) is None
    assert scheduling.not_through(task, [make(2, overlap=True)]) is None
