"""Needs, parents and children, as the board keeps them."""

from __future__ import annotations

from typing import Any

import pytest

from covey.errors import Invalid, NotFound, Refused
from tests.worlds.boards import World

# Needs


def test_a_chain_is_worked_from_its_end(world: World) -> None:
    first = world.add("first")
    second = world.add("second", needs=[first])
    third = world.add("third", needs=[second], priority=9)
    assert world.next("ada") == first
    assert world.next("ada") is None
    merge = world.hand_in(first, "ada")
    assert world.next("ada") is None
    world.ask("merge.land", id=merge, commit="c" * 40)
    assert world.next("ada") == second
    assert world.task(third)["unmet"] == 1


def test_a_diamond_waits_for_both_of_its_sides(world: World) -> None:
    top = world.add("top")
    left, right = world.add("left", needs=[top]), world.add("right", needs=[top])
    bottom = world.add("bottom", needs=[left, right])
    assert world.task(bottom)["unmet"] == 2
    world.finish(top)
    world.finish(right)
    assert (world.task(bottom)["unmet"], world.task(bottom)["ready"]) == (1, False)
    with pytest.raises(Refused, match="has needs that are not done"):
        world.claim(bottom, "ada")
    seq = world.seq
    world.finish(left)
    assert world.kinds(seq).count("task.ready") == 1
    assert world.next("ada") == bottom


def test_a_task_whose_need_is_done_already_is_ready_at_once(world: World) -> None:
    done = world.add()
    world.finish(done)
    assert world.task(world.add(needs=[done]))["ready"]


def test_a_cycle_is_refused_with_the_cycle_printed_and_nothing_changes(world: World) -> None:
    a, b, c = world.add("a"), world.add("b"), world.add("c")
    world.ask("task.edit", id=a, needs=[b])
    world.ask("task.edit", id=b, needs=[c])
    before = world.everything()
    with pytest.raises(Invalid, match=f"circle: {c} > {a} > {b} > {c}"):
        world.ask("task.edit", id=c, needs=[a])
    assert world.everything() == before


def test_a_need_that_does_not_exist_is_refused(world: World) -> None:
    with pytest.raises(Invalid, match="There is no task 'T-99' to need"):
        world.add(needs=["T-99"])


def test_a_task_cannot_need_itself(world: World) -> None:
    task = world.add()
    with pytest.raises(Invalid, match="T-1 cannot need itself"):
        world.ask("task.edit", id=task, needs=[task])


def test_a_new_task_cannot_need_the_id_that_it_would_get(world: World) -> None:
    world.add()
    with pytest.raises(Invalid, match="There is no task 'T-2' to need"):
        world.add(needs=["T-2"])


def test_a_dropped_need_blocks_what_needs_it_with_the_reason(world: World) -> None:
    need = world.add()
    task = world.add(needs=[need])
    world.ask("task.drop", id=need, reason="no longer wanted")
    shown = world.task(task)
    assert (shown["status"], shown["reason"]) == (
        "blocked",
        f"It needs {need}, which was dropped: no longer wanted",
    )


def test_a_dropped_need_blocks_only_its_own_dependants_and_not_theirs(world: World) -> None:
    need = world.add()
    task = world.add(needs=[need])
    later = world.add(needs=[task])
    world.ask("task.drop", id=need, reason="no")
    assert (world.status(task), world.status(later)) == ("blocked", "todo")
    assert not world.task(later)["ready"]


@pytest.mark.parametrize("waited", ["todo", "backlog"])
@pytest.mark.parametrize("verb", ["task.reopen", "task.edit"])
def test_what_a_dropped_need_blocked_waits_again_with_it(world: World, waited: str, verb: str) -> None:
    need = world.add("need")
    task = world.add("task", needs=[need], status=waited)
    world.ask("task.drop", id=need, reason="a mistake")
    assert world.task(task)["status"] == "blocked"
    changes: dict[str, Any] = {} if verb == "task.reopen" else {"status": "backlog"}
    world.ask(verb, id=need, **changes)
    assert (world.task(task)["status"], world.task(task)["reason"]) == (waited, None)
    world.ask("task.edit", id=need, status="todo")
    world.finish(need)
    assert world.task(task)["ready"]


def test_what_two_dropped_needs_block_waits_for_both(world: World) -> None:
    one, two = world.add("one"), world.add("two")
    task = world.add("task", needs=[one, two])
    world.ask("task.drop", id=one, reason="first")
    world.ask("task.drop", id=two, reason="second")
    world.ask("task.reopen", id=one)
    assert world.task(task)["reason"] == f"It needs {two}, which was dropped: second"
    world.ask("task.reopen", id=two)
    assert world.task(task)["status"] == "todo"


def test_what_a_person_blocked_stays_so_when_its_need_is_back(world: World) -> None:
    need = world.add("need")
    task = world.add("task", needs=[need])
    world.ask("task.block", id=task, reason="not now")
    world.ask("task.drop", id=need, reason="a mistake")
    world.ask("task.reopen", id=need)
    assert (world.task(task)["status"], world.task(task)["reason"]) == ("blocked", "not now")


def test_where_any_end_will_do_a_dropped_need_lets_the_task_go_on(world: World) -> None:
    need = world.add()
    task = world.add(needs_any=[need])
    assert world.next("ada") == need
    assert world.next("ada") is None
    world.ask("task.drop", id=need, reason="no")
    assert world.next("ada") == task


def test_a_blocked_need_only_waits(world: World) -> None:
    need = world.add()
    task, loose = world.add(needs=[need]), world.add(needs_any=[need])
    world.ask("task.block", id=need, reason="which one?")
    assert (world.status(task), world.task(task)["unmet"]) == ("todo", 1)
    assert (world.status(loose), world.task(loose)["unmet"]) == ("todo", 1)
    assert world.next("ada") is None


def test_unblocking_is_refused_while_a_need_is_dropped(world: World) -> None:
    need, other = world.add(), world.add()
    task = world.add(needs=[need, other])
    world.ask("task.drop", id=need, reason="no")
    with pytest.raises(Refused, match=f"needs {need}, which was dropped"):
        world.ask("task.edit", id=task, status="todo")
    world.ask("task.edit", id=task, status="todo", needs=[other])
    assert (world.status(task), world.task(task)["unmet"]) == ("todo", 1)


def test_a_need_brought_back_lets_its_dependant_be_unblocked(world: World) -> None:
    need = world.add()
    task = world.add(needs=[need])
    world.ask("task.drop", id=need, reason="no")
    world.ask("task.edit", id=need, status="todo")
    world.ask("task.edit", id=task, status="todo")
    world.finish(need)
    assert world.next("ada") == task


def test_a_need_brought_back_is_waited_for_again_where_any_end_had_done(world: World) -> None:
    need = world.add()
    task = world.add(needs_any=[need])
    world.ask("task.drop", id=need, reason="no")
    assert world.task(task)["ready"]
    world.ask("task.edit", id=need, status="todo")
    assert not world.task(task)["ready"]


def test_a_task_cannot_be_brought_back_while_its_need_is_dropped(world: World) -> None:
    need = world.add()
    task = world.add(needs=[need])
    world.ask("task.drop", id=task, reason="no")
    world.ask("task.drop", id=need, reason="no")
    with pytest.raises(Refused, match=f"needs {need}, which was dropped"):
        world.ask("task.edit", id=task, status="todo")


@pytest.mark.parametrize("verb", ["task.add", "task.edit"])
def test_a_dropped_task_cannot_become_a_need_unless_any_end_will_do(world: World, verb: str) -> None:
    need = world.add()
    world.ask("task.drop", id=need, reason="no")
    asked: dict[str, Any] = {"title": "new"} if verb == "task.add" else {"id": world.add()}
    with pytest.raises((Invalid, Refused), match=f"{need}"):
        world.ask(verb, **asked, needs=[need])
    assert world.ask(verb, **asked, needs_any=[need])["ready"]


def test_a_policy_cannot_be_tightened_over_a_dropped_need(world: World) -> None:
    need = world.add()
    task = world.add(needs_any=[need])
    world.ask("task.drop", id=need, reason="no")
    with pytest.raises((Invalid, Refused), match=need):
        world.ask("task.edit", id=task, needs=[need], needs_any=[])


def test_deps_shows_both_directions_and_the_family(world: World) -> None:
    need, parent = world.add("need"), world.add("parent")
    task = world.add(needs_any=[need], parent=parent)
    assert world.ask("task.deps", id=task) == {
        "id": task,
        "needs": [{"id": need, "title": "need", "status": "todo", "policy": "any"}],
        "needed_by": [],
        "parent": parent,
        "children": [],
    }
    assert [edge["id"] for edge in world.ask("task.deps", id=need)["needed_by"]] == [task]
    assert world.ask("task.deps", id=parent)["children"] == [task]


def test_a_task_that_is_not_there_has_no_deps(world: World) -> None:
    for name in ("T-99", "../x", "T-1' OR 1=1 --"):
        with pytest.raises(NotFound):
            world.ask("task.deps", id=name)


# Parents


def test_a_parent_is_done_when_its_children_are(world: World) -> None:
    parent = world.add("parent")
    one, other = world.add(parent=parent), world.add(parent=parent)
    assert {world.next("ada"), world.next("ada")} == {one, other}
    assert world.next("ada") is None
    world.ask("merge.land", id=world.hand_in(one, "ada"), commit="c" * 40)
    assert world.status(parent) == "todo"
    world.ask("merge.land", id=world.hand_in(other, "ada"), commit="c" * 40)
    assert world.status(parent) == "done"
    assert world.ask("log.list", subject=parent, kind="task.done")[0]["data"] == {"how": "children"}


def test_a_parent_with_open_children_cannot_be_claimed(world: World) -> None:
    parent = world.add()
    world.add(parent=parent)
    with pytest.raises(Refused, match="children that are not done"):
        world.claim(parent, "ada")


def test_nested_parents_are_done_from_the_inside(world: World) -> None:
    family = [world.add("1")]
    for depth in range(2, 5):
        family.append(world.add(str(depth), parent=family[-1]))
    after = world.add(needs=[family[0]])
    world.finish(family[-1])
    assert [world.status(task) for task in family] == ["done"] * 4
    assert world.next("ada") == after


def test_a_deep_family_ends_without_running_out_of_stack(world: World) -> None:
    tasks = [{"key": "0", "title": "0"}]
    tasks += [{"key": str(n), "title": str(n), "parent": str(n - 1)} for n in range(1, 600)]
    added = world.ask("task.import", tasks=tasks)["added"]
    world.finish(added["599"])
    assert world.status(added["0"]) == "done"


def test_a_parent_of_which_every_child_was_dropped_needs_a_person(world: World) -> None:
    parent = world.add()
    children = [world.add(parent=parent), world.add(parent=parent)]
    for child in children:
        world.ask("task.drop", id=child, reason="no")
    shown = world.task(parent)
    assert (shown["status"], shown["reason"]) == ("blocked", "Every child of it was dropped.")


def test_a_parent_whose_child_is_back_waits_for_it_again(world: World) -> None:
    parent = world.add("parent", status="backlog")
    child = world.add("child", parent=parent)
    world.ask("task.drop", id=child, reason="a mistake")
    assert world.task(parent)["status"] == "blocked"
    world.ask("task.reopen", id=child)
    assert world.task(parent)["status"] == "backlog"
    world.ask("task.drop", id=child, reason="again")
    world.add("another", parent=parent)
    assert world.task(parent)["status"] == "backlog"


def test_a_parent_with_one_child_done_and_the_rest_dropped_is_done(world: World) -> None:
    parent = world.add()
    one, other = world.add(parent=parent), world.add(parent=parent)
    world.finish(one)
    world.ask("task.drop", id=other, reason="no")
    assert world.status(parent) == "done"


def test_a_parent_waits_for_its_own_needs_too_and_is_done_after_the_last_of_both(world: World) -> None:
    need = world.add()
    parent = world.add(needs=[need])
    child = world.add(parent=parent)
    world.finish(child)
    assert world.status(parent) == "todo"
    world.finish(need)
    assert world.status(parent) == "done"


def test_a_parent_whose_last_child_moves_away_is_ready_and_the_log_says_so(world: World) -> None:
    parent = world.add()
    child = world.add(parent=parent)
    seq = world.seq
    world.ask("task.edit", id=child, parent=None)
    assert world.kinds(seq) == ["task.edited", "task.ready"]
    assert world.next("ada") == parent


def test_a_child_moves_from_one_parent_to_another(world: World) -> None:
    one, other = world.add(), world.add()
    child = world.add(parent=one)
    world.ask("task.edit", id=child, parent=other)
    assert (world.task(one)["open_children"], world.task(other)["open_children"]) == (0, 1)
    world.finish(child)
    assert (world.status(one), world.status(other)) == ("todo", "done")


def test_an_ended_task_can_have_no_more_children(world: World) -> None:
    parent, orphan = world.add(), world.add()
    child = world.add(parent=parent)
    other = world.add(parent=parent)
    world.ask("task.drop", id=other, reason="no")
    world.finish(child)
    assert world.status(parent) == "done"
    with pytest.raises(Refused, match=f"{parent} is done"):
        world.add(parent=parent)
    with pytest.raises(Refused, match=f"{parent} is done"):
        world.ask("task.edit", id=orphan, parent=parent)
    with pytest.raises(Refused, match=f"{parent} is done"):
        world.ask("task.edit", id=other, status="todo")
    world.ask("task.edit", id=other, status="todo", parent=None)


def test_a_task_cannot_be_its_own_ancestor(world: World) -> None:
    a = world.add()
    b = world.add(parent=a)
    c = world.add(parent=b)
    with pytest.raises(Invalid, match=f"{a} > {c} > {b} > {a}"):
        world.ask("task.edit", id=a, parent=c)
    with pytest.raises(Invalid, match="own ancestor"):
        world.ask("task.edit", id=a, parent=a)


def test_a_parent_that_does_not_exist_is_refused(world: World) -> None:
    with pytest.raises(Invalid, match="There is no task 'T-99' to be the parent"):
        world.add(parent="T-99")


def test_a_child_cannot_wait_for_its_own_ancestor(world: World) -> None:
    top = world.add()
    parent = world.add(parent=top)
    child, other = world.add(parent=parent), world.add()
    for ancestor in (parent, top):
        with pytest.raises(Invalid, match="circle"):
            world.ask("task.edit", id=child, needs=[ancestor])
        with pytest.raises(Invalid, match="circle"):
            world.add(parent=parent, needs=[ancestor])
    world.ask("task.edit", id=other, needs=[top])
    with pytest.raises(Invalid, match=f"circle: {child} > {other} > {top} > {parent} > {child}"):
        world.ask("task.edit", id=child, needs=[other])
    with pytest.raises(Invalid, match="circle"):
        world.ask("task.edit", id=other, parent=parent)
