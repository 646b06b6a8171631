"""The board through the App: who gets what, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from covey.app.board import moves
from covey.app.board.requests import check_edit
from covey.config import Config, Merge
from covey.errors import Denied, Invalid, NotFound, Refused
from covey.store.queries.board import HOLDERS
from tests.worlds.boards import OWNER, Principal, World

# Who gets what


def test_the_next_task_is_the_one_with_the_larger_priority_then_the_older(world: World) -> None:
    low, old, young, urgent = (world.add(priority=priority) for priority in (-1, 0, 0, 5))
    assert [world.next("ada") for _ in range(5)] == [urgent, old, young, low, None]


def test_nothing_waits_is_204_and_changes_nothing(world: World) -> None:
    world.add(status="backlog")
    before = world.everything()
    answer = world.answer("task.next", session="ada")
    assert (answer.status, answer.body) == (204, b"")
    assert world.everything() == before


def test_what_is_in_the_backlog_is_claimed_by_its_id_only(world: World) -> None:
    task = world.add(status="backlog")
    assert world.next("ada") is None
    assert world.claim(task, "ada") == 1


def test_a_task_goes_to_one_session_only(world: World) -> None:
    task = world.add()
    world.claim(task, "ada")
    with pytest.raises(Refused, match="claimed by ada"):
        world.claim(task, "bob")
    assert world.next("bob") is None


def test_the_holders_repeated_claim_answers_the_same_fence_and_changes_nothing(world: World) -> None:
    task = world.add()
    fence = world.claim(task, "ada")
    before = world.everything()
    assert world.claim(task, "ada") == fence
    assert world.everything() == before


def test_every_claim_of_a_task_has_a_larger_fence_than_the_one_before(world: World) -> None:
    task = world.add()
    fences = []
    for session in ("ada", "bob", "ada"):
        fences.append(world.claim(task, session))
        world.ask("task.release", id=task, session=session)
    assert fences == [1, 2, 3]


def test_an_unknown_name_in_a_claim_becomes_a_session_from_outside(world: World) -> None:
    world.claim(world.add(), "newcomer")
    (session,) = world.ask("session.list")
    assert (session["name"], session["kind"], session["wip"]) == ("newcomer", "outside", None)


@pytest.mark.parametrize("name", ["covey", "everyone"])
def test_nobody_can_act_as(world: World, name: str) -> None:
    with pytest.raises(Denied):
        world.claim(world.add(), name)


@pytest.mark.parametrize("name", ["covey", "everyone"])
def test_no_task_is_for_somebody_as_whom_nobody_can_claim_it(world: World, name: str) -> None:
    task = world.add()
    with pytest.raises(Invalid, match=f"Nobody can claim a task as {name}"):
        world.add(assignee=name)
    with pytest.raises(Invalid, match=f"Nobody can claim a task as {name}"):
        world.ask("task.edit", id=task, assignee=name)
    assert world.add(assignee="owner") == "OWNER-1"


def test_a_task_with_an_assignee_is_for_it_alone(world: World) -> None:
    task = world.add(assignee="bob")
    assert world.next("ada") is None
    with pytest.raises(Refused, match="is for bob, not for ada"):
        world.claim(task, "ada")
    assert world.next("bob") == task


def test_a_task_with_a_role_is_for_those_who_have_it(world: World) -> None:
    world.ask("session.new", name="writer", role="docs")
    task = world.add(role="docs")
    other = world.add()
    assert world.next("ada") == other
    assert world.next("ada") is None
    with pytest.raises(Refused, match="is for the role docs"):
        world.claim(task, "ada")
    assert world.next("writer") == task


def test_lanes_are_merged_by_priority_and_age(world: World) -> None:
    world.ask("session.new", name="writer", role="docs")
    tasks = [
        world.add(role="docs", priority=1),
        world.add(assignee="writer"),
        world.add(priority=2),
        world.add(role="docs"),
    ]
    order = [world.next("writer") for _ in range(5)]
    assert order == [tasks[2], tasks[0], tasks[1], tasks[3], None]


def test_a_session_at_its_limit_gets_nothing_more_until_it_hands_in_or_gives_back(world: World) -> None:
    world.ask("session.new", name="ada", wip=2)
    tasks = [world.add() for _ in range(4)]
    assert [world.next("ada"), world.next("ada")] == tasks[:2]
    with pytest.raises(Refused, match="ada holds 2 tasks and may hold no more"):
        world.next("ada")
    with pytest.raises(Refused, match="may hold no more"):
        world.claim(tasks[2], "ada")
    world.hand_in(tasks[0], "ada")
    assert world.next("ada") == tasks[2]
    world.ask("task.release", id=tasks[1], session="ada")
    assert world.next("ada") == tasks[1]


def test_a_run_session_holds_one_task(world: World) -> None:
    run = world.run_session("run")
    world.add()
    world.add()
    assert world.ask("task.next", run)["status"] == "doing"
    with pytest.raises(Refused, match="holds one task"):
        world.ask("task.next", run)


# Scopes


def test_a_task_whose_files_another_writes_is_refused_to_claim_and_skipped_by_next(world: World) -> None:
    first = world.add(scope=["src/**"])
    second = world.add(scope=["src/auth/*.py"], priority=5)
    third = world.add(scope=["docs/**"])
    world.claim(first, "ada")
    with pytest.raises(Refused, match=f"{second} may write the same files as {first}, at which ada is at work"):
        world.claim(second, "bob")
    assert world.next("bob") == third
    assert world.next("bob") is None
    world.hand_in(first, "ada")
    assert world.next("bob") == second


def test_a_session_is_in_its_own_way_too(world: World) -> None:
    world.claim(world.add(scope=["src/**"]), "ada")
    world.add(scope=["src/x"])
    assert world.next("ada") is None


@pytest.mark.parametrize("by_id", [True, False])
def test_who_asks_for_overlap_gets_the_task_all_the_same(world: World, by_id: bool) -> None:
    world.claim(world.add(scope=["src/**"]), "ada")
    task = world.add(scope=["src/**"])
    if by_id:
        assert world.claim(task, "bob", overlap=True)
    else:
        assert world.next("bob", overlap=True) == task


def test_a_task_that_may_overlap_runs_beside_others(world: World) -> None:
    world.claim(world.add(scope=["src/**"]), "ada")
    task = world.add(scope=["src/**"], overlap=True)
    assert world.next("bob") == task
    assert world.next("carl") is None


def test_a_task_without_a_scope_waits_for_nobody(world: World) -> None:
    world.claim(world.add(scope=["**"]), "ada")
    task = world.add()
    assert world.next("bob") == task


def test_many_tasks_in_the_way_do_not_hide_the_one_that_suits(world: World) -> None:
    world.claim(world.add(scope=["src/**"]), "ada")
    tasks = [{"key": str(n), "title": "t", "scope": ["src/a"], "priority": 1} for n in range(600)]
    world.ask("task.import", tasks=tasks)
    task = world.add(scope=["docs/**"])
    assert world.next("bob") == task


def test_do_not_touch_is_taken_out_of_the_scope(world: World) -> None:
    world.claim(world.add(scope=["src/**"], do_not_touch=["src/auth/**"]), "ada")
    task = world.add(scope=["src/auth/x.py"])
    assert world.next("bob") == task


@pytest.mark.parametrize("glob", ["/etc/passwd", "../x", "src/[z-a]", "a\x00b", "new:"])
def test_a_glob_that_makes_no_sense_is_refused(world: World, glob: str) -> None:
    with pytest.raises(Invalid):
        world.add(scope=[glob])


# Handing in, releasing, blocking


def test_a_change_goes_to_the_queue_and_is_done_when_it_landed(world: World) -> None:
    task = world.add()
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada", commit="abc1234", branch="ada/work")
    shown = world.task(task)
    assert (shown["status"], shown["session"], shown["commit"]) == ("merging", "ada", "abc1234")
    (queued,) = world.ask("merge.list")
    assert (queued["id"], queued["task"], queued["branch"], queued["state"]) == (merge, task, "ada/work", "queued")
    world.ask("merge.land", id=merge, commit="d" * 40)
    shown = world.task(task)
    assert (shown["status"], shown["commit"]) == ("done", "d" * 40)
    assert world.ask("merge.list") == []
    with pytest.raises(Refused, match="cannot land: it has landed already"):
        world.ask("merge.land", id=merge, commit="d" * 40)


def test_where_review_is_required_a_person_lets_work_into_the_queue(tmp_path: Path) -> None:
    world = World(tmp_path, Config(merge=Merge(review=True)))
    task = world.add()
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada")
    assert world.status(task) == "review"
    with pytest.raises(Refused, match="cannot land: it waits for a review"):
        world.ask("merge.land", id=merge, commit="d" * 40)
    with pytest.raises(Denied):
        world.ask("merge.approve", Principal("ada"), id=merge)
    world.ask("merge.approve", id=merge)
    assert world.status(task) == "merging"
    world.ask("merge.land", id=merge, commit="d" * 40)
    assert world.status(task) == "done"


def test_a_report_is_done_by_its_result_and_enters_no_queue(world: World) -> None:
    task = world.add(kind="report")
    world.claim(task, "ada")
    with pytest.raises(Invalid, match="its result is empty"):
        world.ask("task.handin", id=task, session="ada")
    world.ask("task.handin", id=task, session="ada", result="It is so.\n" * 3000)
    shown = world.task(task)
    assert (shown["status"], shown["result"]) == ("done", "It is so.\n" * 3000)
    assert world.ask("merge.list", all=True) == []


def test_a_rejected_merge_is_first_in_line_for_its_author(world: World) -> None:
    task = world.add(priority=-5)
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada")
    urgent = world.add(priority=99)
    world.ask("merge.reject", id=merge, reason="test_login failed")
    shown = world.task(task)
    assert (shown["status"], shown["front"], shown["failed_tries"]) == ("todo", "ada", 0)
    assert shown["sent_back"] == 1, "a person wants it otherwise, which is not a failure"
    assert shown["tries"][0]["what"] == "test_login failed"
    assert world.next("bob") == urgent
    assert world.next("bob") is None
    assert world.next("ada") == task
    assert world.task(task)["front"] is None


def test_a_rejected_merge_is_anyones_when_its_author_is_gone(world: World) -> None:
    task = world.add()
    world.claim(task, "ada")
    world.ask("merge.reject", id=world.hand_in(task, "ada"), reason="no")
    world.watch(3590)
    assert world.next("bob") is None
    world.watch(20)
    assert world.next("bob") == task


def test_a_rejected_merge_that_was_given_to_another_meanwhile_is_that_ones(world: World) -> None:
    task = world.add()
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada")
    world.ask("task.edit", id=task, assignee="bob")
    world.ask("merge.reject", id=merge, reason="no")
    assert world.next("ada") is None
    assert world.next("bob") == task


def test_a_rejected_merge_of_a_role_goes_back_to_its_author_although_it_lost_the_role(world: World) -> None:
    task = world.add(scope=["src/**"])
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada")
    world.ask("task.edit", id=task, role="docs")
    world.ask("merge.reject", id=merge, reason="no")
    assert world.next("ada") == task


@pytest.mark.parametrize("end", ["task.drop", "task.block"])
def test_a_task_that_is_dropped_or_blocked_leaves_the_queue(tmp_path: Path, end: str) -> None:
    world = World(tmp_path, Config(merge=Merge(review=True)))
    task = world.add()
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada")
    world.ask(end, id=task, reason="we think again")
    (found,) = world.ask("merge.list", all=True)
    assert (found["id"], found["state"]) == (merge, "withdrawn")
    assert world.ask("merge.list") == []


def test_a_released_task_goes_back_with_what_went_wrong(world: World) -> None:
    task = world.add()
    world.claim(task, "ada")
    world.ask("task.release", id=task, session="ada", reason="I do not know Rust")
    shown = world.task(task)
    assert (shown["status"], shown["session"]) == ("todo", None)
    assert [(t["session"], t["what"]) for t in shown["tries"]] == [("ada", "I do not know Rust")]


def test_a_person_may_release_and_block_what_another_holds(world: World) -> None:
    one, other = world.add(), world.add()
    world.claim(one, "ada")
    world.claim(other, "ada")
    world.ask("task.release", id=one)
    world.ask("task.block", id=other, reason="ask legal")
    assert (world.status(one), world.status(other)) == ("todo", "blocked")


def test_nobody_hands_in_what_another_holds(world: World) -> None:
    task = world.add()
    world.claim(task, "ada")
    with pytest.raises(Refused, match="held by ada, not by bob"):
        world.ask("task.handin", id=task, session="bob")
    with pytest.raises(Refused, match="held by ada, not by owner"):
        world.ask("task.handin", id=task)


def test_a_late_hand_in_with_the_old_fence_is_refused_and_changes_nothing(world: World) -> None:
    task = world.add()
    old = world.claim(task, "ada")
    world.ask("task.release", id=task, session="ada")
    new = world.claim(task, "ada")
    before = world.everything()
    for verb in ("task.handin", "task.release", "task.renew"):
        with pytest.raises(Refused, match=f"with fence {old} has ended; the fence is {new} now"):
            world.ask(verb, id=task, session="ada", fence=old)
    assert world.everything() == before


def test_a_dropped_task_takes_the_claim_with_it(world: World) -> None:
    task = world.add()
    fence = world.claim(task, "ada")
    world.ask("task.drop", id=task, reason="done elsewhere")
    with pytest.raises(Refused, match="is dropped, so nobody holds it"):
        world.ask("task.handin", id=task, session="ada", fence=fence)


def test_a_person_holds_what_the_owner_claims(world: World) -> None:
    task = world.add()
    shown = world.ask("task.claim", id=task)
    assert (shown["session"], shown["until"]) == ("owner", None)
    world.ask("task.handin", id=task)
    assert world.status(task) == "merging"


@pytest.mark.parametrize("name", ["T-99", "t-1", "../../etc", "T-1; DROP TABLE tasks", "T-1\n", ""])
@pytest.mark.parametrize("verb", ["task.show", "task.claim", "task.renew", "task.release"])
def test_a_task_that_is_not_there_is_not_found(world: World, verb: str, name: str) -> None:
    with pytest.raises(NotFound, match="There is no task"):
        world.ask(verb, id=name)


# What sessions may not do


@pytest.fixture
def ada(world: World) -> Principal:
    world.ask("session.new", name="ada")
    return Principal("ada")


def test_a_session_speaks_only_for_itself(world: World, ada: Principal) -> None:
    task = world.add()
    for verb, asked in (
        ("task.claim", {"id": task}),
        ("task.next", {}),
        ("lease.take", {"resources": ["a"]}),
        ("mail.send", {"to": "owner", "text": "hi"}),
        ("mail.inbox", {}),
    ):
        with pytest.raises(Denied, match="cannot act for bob"):
            world.ask(verb, ada, session="bob", **asked)
    assert world.ask("task.claim", ada, id=task, session="ada")["session"] == "ada"


@pytest.mark.parametrize(
    ("verb", "asked"),
    [
        ("session.new", {"name": "x"}),
        ("session.token", {"name": "ada"}),
        ("merge.approve", {"id": "merge-1"}),
        ("merge.land", {"id": "merge-1", "commit": "c" * 40}),
        ("merge.reject", {"id": "merge-1", "reason": "no"}),
    ],
)
def test_only_the_owner_may(world: World, ada: Principal, verb: str, asked: dict[str, Any]) -> None:
    world.add()
    with pytest.raises(Denied, match="Only the owner"):
        world.ask(verb, ada, **asked)


def test_a_session_sends_the_fence_of_its_claim(world: World, ada: Principal) -> None:
    task = world.add()
    fence = world.ask("task.claim", ada, id=task)["fence"]
    for verb in ("task.handin", "task.release", "task.renew"):
        with pytest.raises(Invalid, match="The fence of the claim is missing"):
            world.ask(verb, ada, id=task)
    assert world.ask("task.renew", ada, id=task, fence=fence)["session"] == "ada"


def test_a_session_blocks_only_what_it_holds(world: World, ada: Principal) -> None:
    mine, other = world.add(), world.add()
    fence = world.ask("task.claim", ada, id=mine)["fence"]
    with pytest.raises(Refused, match="nobody holds it"):
        world.ask("task.block", ada, id=other, reason="hm", fence=1)
    world.ask("task.block", ada, id=mine, reason="which one?", fence=fence)
    assert world.status(mine) == "blocked"


@pytest.mark.parametrize(
    "more",
    [
        {"scope": ["src/**", "docs/**"]},
        {"scope": ["**"]},
        {"scope": ["src/auth/**"], "budget": 5.5},
        {"budget": 6.0},
        {"done_when": ["make test"]},
    ],
)
def test_a_session_adds_no_task_with_more_than_it_has_itself(
    world: World, ada: Principal, more: dict[str, Any]
) -> None:
    task = world.add(scope=["src/**"], budget=5.0, do_not_touch=["src/keys/**"])
    world.ask("task.claim", ada, id=task)
    assert world.proposed("task.add", ada, title="more", **more)["state"] == "open"
    assert world.proposed("task.import", ada, tasks=[{"key": "k", "title": "more", **more}])["state"] == "open"


def test_what_a_session_leaves_open_in_a_new_task_it_inherits(world: World, ada: Principal) -> None:
    task = world.add(scope=["src/**"], budget=5.0, do_not_touch=["src/keys/**"])
    world.ask("task.claim", ada, id=task)
    added = world.ask("task.add", ada, title="less", scope=["src/auth/*"], budget=1.0)
    assert (added["scope"], added["budget"], added["do_not_touch"]) == (["src/auth/*"], 1.0, ["src/keys/**"])
    added = world.ask("task.add", ada, title="same")
    assert (added["scope"], added["budget"], added["do_not_touch"]) == (["src/**"], 5.0, ["src/keys/**"])


@pytest.mark.parametrize(
    "change",
    [
        {"scope": ["**"]},
        {"do_not_touch": []},
        {"overlap": True},
        {"budget": 100.0},
        {"budget": None},
        {"done_when": []},
    ],
)
def test_a_session_does_not_widen_a_task_by_an_edit(world: World, ada: Principal, change: dict[str, Any]) -> None:
    task = world.add(scope=["src/**"], do_not_touch=["src/keys/**"], budget=5.0, done_when=["make test"])
    assert world.proposed("task.edit", ada, id=task, **change)["state"] == "open"
    own = world.ask("task.add", ada, title="Mine")["id"]
    assert world.proposed("task.edit", ada, id=own, **change)["state"] == "open", "also of what it added itself"


def test_a_session_edits_what_it_added_as_long_as_nobody_took_it(world: World, ada: Principal) -> None:
    own = world.ask("task.add", ada, title="Mine")["id"]
    assert world.ask("task.edit", ada, id=own, title="Mine, mended", priority=-1)["title"] == "Mine, mended"
    world.claim(own, "bob")
    world.proposed("task.edit", ada, id=own, title="Something else")
    world.proposed("task.edit", ada, id=world.add(), priority=4)


# Editing


def test_null_clears_and_what_is_left_out_stays(world: World) -> None:
    parent = world.add()
    task = world.add(assignee="ada", role="docs", budget=1.0, parent=parent, priority=3)
    shown = world.ask("task.edit", id=task, assignee=None, budget=None, parent=None)
    assert (shown["assignee"], shown["budget"], shown["parent"]) == (None, None, None)
    assert (shown["role"], shown["priority"]) == ("docs", 3)
    assert world.task(parent)["open_children"] == 0


def test_an_edit_that_changes_nothing_writes_nothing(world: World) -> None:
    task = world.add(priority=3, scope=["src/**"], body="text " * 5000)
    before = world.everything()
    shown = world.ask("task.edit", id=task, priority=3, scope=["src/**"], assignee=None, body="text " * 5000, needs=[])
    assert shown["priority"] == 3
    assert world.everything() == before


def test_a_task_that_changes_lane_is_found_in_the_new_one(world: World) -> None:
    task = world.add(assignee="bob")
    world.ask("task.edit", id=task, assignee=None)
    assert world.next("ada") == task


def test_a_note_is_added_to_the_others(world: World) -> None:
    task = world.add(note="first")
    world.ask("task.edit", id=task, note="second")
    assert [note["text"] for note in world.task(task)["notes"]] == ["first", "second"]


def test_ids_come_from_the_assignee_or_role_and_are_never_given_twice(world: World) -> None:
    assert [world.add(assignee="auth-fix"), world.add(assignee="auth-fix"), world.add(role="quality")] == [
        "AF-1",
        "AF-2",
        "QUALI-1",
    ]
    with pytest.raises(Invalid):
        world.add(assignee="auth-fix", needs=["T-99"])
    world.ask("task.drop", id="AF-2", reason="no")
    assert world.add(assignee="auth-fix") == "AF-3"
    assert world.add(assignee="other-fellow") == "OF-1"
    assert world.add(assignee="all-fine") == "AF-4"


# Importing


def test_an_import_by_key_updates_and_never_duplicates(world: World) -> None:
    lines: list[dict[str, Any]] = [
        {"key": "a", "title": "first", "body": "x"},
        {"key": "b", "title": "second", "needs": ["a"]},
    ]
    added = world.ask("task.import", tasks=lines)
    assert set(added["added"]) == {"a", "b"}
    before = world.everything()
    again = world.ask("task.import", tasks=lines)
    assert (again["added"], again["updated"], again["unchanged"]) == ({}, {}, added["added"])
    assert world.everything() == before
    lines[0]["title"] = "first, but better"
    lines[1]["needs"] = []
    changed = world.ask("task.import", tasks=lines)
    assert changed["updated"] == added["added"]
    assert world.task(added["added"]["a"])["title"] == "first, but better"
    assert world.task(added["added"]["b"])["ready"]
    assert len(world.ask("task.list")) == 2


def test_an_import_leaves_alone_what_has_ended_and_does_not_take_work_from_its_holder(world: World) -> None:
    keys = world.ask("task.import", tasks=[{"key": k, "title": k} for k in ("done", "held", "blocked")])["added"]
    world.finish(keys["done"])
    world.claim(keys["held"], "bob")
    world.ask("task.block", id=keys["blocked"], reason="?")
    answer = world.ask("task.import", tasks=[{"key": k, "title": k + "!"} for k in keys])
    assert set(answer["unchanged"]) == {"done"}
    assert [world.status(keys[k]) for k in keys] == ["done", "doing", "blocked"]
    assert world.task(keys["held"])["title"] == "held!"


def test_an_import_that_names_a_key_twice_is_refused_whole(world: World) -> None:
    before = world.everything()
    with pytest.raises(Invalid, match="key 'a' stands twice"):
        world.ask("task.import", tasks=[{"key": "a", "title": "first"}, {"key": "a", "title": "second"}])
    assert world.everything() == before


def test_an_import_that_names_an_unknown_key_is_refused_whole(world: World) -> None:
    before = world.everything()
    with pytest.raises(Invalid, match="no task with the key 'later'"):
        world.ask("task.import", tasks=[{"key": "a", "title": "a"}, {"key": "b", "title": "b", "needs": ["later"]}])
    assert world.everything() == before


def test_an_import_may_name_what_is_on_the_board_by_its_id(world: World) -> None:
    task = world.add()
    added = world.ask("task.import", tasks=[{"key": "a", "title": "a", "needs_any": [task]}])["added"]
    assert world.task(added["a"])["needs_any"] == [task]


# Listing


def test_the_board_is_listed_by_priority_then_age_in_pages(world: World) -> None:
    for number in range(25):
        world.add(priority=number % 3)
    whole = [task["id"] for task in world.ask("task.list")]
    pages: list[str] = []
    while page := world.ask("task.list", limit=7, after=pages[-1] if pages else None):
        pages += [task["id"] for task in page]
    assert pages == whole and len(whole) == 25
    ranks = [(-task["priority"], int(task["id"][2:])) for task in world.ask("task.list")]
    assert ranks == sorted(ranks)


def test_a_filtered_list_says_how_long_it_is_in_all(world: World) -> None:
    for _ in range(5):
        world.add()
    world.next("ada")
    world.next("ada")
    assert world.answer("task.list", limit=1).total == 5
    assert world.answer("task.list", limit=1, status="doing").total == 2
    assert world.answer("task.list", limit=1, session="ada").total == 2
    assert world.answer("task.list", limit=1, status="todo", session="ada").total == 0


# Sessions and their tokens


def test_a_token_speaks_for_its_session_until_the_next_is_minted(world: World) -> None:
    world.ask("session.new", name="ada")
    first = world.ask("session.token", name="ada")["token"]
    assert world.store.read(lambda tx: world.app.who(tx, first)) == Principal("ada")
    second = world.ask("session.token", name="ada")["token"]
    assert world.store.read(lambda tx: world.app.who(tx, second)) == Principal("ada")
    for wrong in (first, "", "x", "\ud800"):
        with pytest.raises(Denied, match="This token is not known here"):
            world.store.read(lambda tx, wrong=wrong: world.app.who(tx, wrong))  # type: ignore[misc]


def test_a_token_is_in_no_log(world: World) -> None:
    world.ask("session.new", name="ada")
    token = world.ask("session.token", name="ada")["token"]
    log = world.store.read(lambda tx: tx.db.rows("SELECT data FROM events"))
    assert not any(token in data for (data,) in log)


@pytest.mark.parametrize("name", ["covey", "owner", "everyone"])
def test_no_session_has_the_name(world: World, name: str) -> None:
    with pytest.raises(Invalid, match="no session can have"):
        world.ask("session.new", name=name)


def test_a_session_is_known_once(world: World) -> None:
    world.ask("session.new", name="ada")
    with pytest.raises(Refused, match="There is a session ada already"):
        world.ask("session.new", name="ada")
    assert OWNER.is_owner and not Principal("ada").is_owner


def test_a_parent_with_open_children_is_not_dropped_over_their_heads(world: World) -> None:
    parent = world.add("Parent")
    child = world.add("Child", parent=parent)
    with pytest.raises(Refused, match="children"):
        world.ask("task.drop", id=parent, reason="no")
    world.ask("task.drop", id=child, reason="no")
    world.ask("task.drop", id=parent, reason="no")
    assert world.status(parent) == "dropped"


def test_a_second_import_leaves_what_a_person_set_beside_it(world: World) -> None:
    line = {"key": "todo#1", "title": "Mend"}
    task = world.ask("task.import", tasks=[line])["added"]["todo#1"]
    first = world.add("First")
    set_by_hand: dict[str, Any] = {"scope": ["src/**"], "priority": 7, "assignee": "ada", "budget": 3.0}
    set_by_hand |= {"needs": [first]}
    world.ask("task.edit", id=task, status="backlog", body="Careful.", **set_by_hand)
    before = world.task(task)
    assert world.ask("task.import", tasks=[line])["unchanged"] == {"todo#1": task}
    assert world.task(task) == before
    assert world.ask("task.import", tasks=[line | {"priority": 1}])["updated"] == {"todo#1": task}
    assert world.task(task)["priority"] == 1
    assert world.task(task)["scope"] == ["src/**"]


def test_work_that_the_owner_rejects_of_their_own_is_anyones(world: World) -> None:
    task = world.add()
    world.ask("task.claim", id=task)
    world.ask("task.handin", id=task)
    world.ask("merge.reject", id=world.ask("merge.list")[0]["id"], reason="not yet")
    assert world.next("bob") == task


def test_only_the_owner_lets_tasks_overlap(world: World) -> None:
    task = world.add(scope=["src/**"])
    world.ask("session.new", name="eve")
    eve = Principal("eve")
    with pytest.raises(Denied):
        world.ask("task.claim", eve, id=task, overlap=True)
    with pytest.raises(Denied):
        world.ask("task.next", eve, overlap=True)
    world.proposed("task.add", eve, title="Mine", overlap=True)


def test_what_a_session_adds_never_touches_what_its_own_task_must_not(world: World) -> None:
    world.ask("session.new", name="eve")
    world.claim(world.add(do_not_touch=["secrets/**"]), "eve")
    added = world.ask("task.add", Principal("eve"), title="More", scope=["secrets/**"])
    assert added["do_not_touch"] == ["secrets/**"]


def test_a_parent_is_not_handed_in_over_the_heads_of_its_children(world: World) -> None:
    parent = world.add("Parent")
    world.claim(parent, "ada")
    child = world.add("Child", parent=parent, kind="report")
    with pytest.raises(Refused, match="children"):
        world.ask("task.handin", id=parent, session="ada")
    world.claim(child, "bob")
    world.ask("task.handin", id=child, session="bob", result="done")
    assert world.status(parent) == "doing"
    world.ask("task.release", id=parent, session="ada")
    assert world.status(parent) == "done"


def test_a_blocked_parent_waits_for_its_person_also_when_its_children_are_done(world: World) -> None:
    parent = world.add("Parent")
    child = world.add("Child", parent=parent, kind="report")
    world.ask("task.block", id=parent, reason="I must decide")
    world.claim(child, "bob")
    world.ask("task.handin", id=child, session="bob", result="done")
    assert world.status(parent) == "blocked"
    world.ask("task.edit", id=parent, status="todo")
    assert world.status(parent) == "done"


def test_a_task_that_has_to_wait_again_says_so_in_the_log(world: World) -> None:
    parent = world.add("Parent")
    seq = world.seq
    child = world.add("Child", parent=parent)
    waits = world.ask("log.list", after=seq, kind="task.waiting")
    assert [(event["subject"], event["data"]["on"]) for event in waits] == [(parent, child)]


# The order that a person gives


def board(world: World, **asked: Any) -> list[str]:
    """Return the ids of the board in its order."""
    return [row["id"] for row in world.ask("task.list", **asked)]


def test_what_a_person_put_first_is_claimed_first(world: World) -> None:
    one, two, three = (world.add() for _ in range(3))
    moved = world.ask("task.move", id=three, above=one)
    assert (moved["priority"], board(world)) == (0, [three, one, two])
    world.ask("task.move", id=one, below=two)
    assert [world.next("ada") for _ in range(4)] == [three, two, one, None]


def test_a_task_can_be_put_first_or_last_in_its_column_and_a_new_one_still_comes_last(world: World) -> None:
    urgent, one, two = world.add(priority=5), world.add(), world.add()
    done = world.add(priority=9)
    world.finish(done)
    assert world.ask("task.move", id=two, to="first")["priority"] == 5
    assert board(world, status="todo") == [two, urgent, one]
    assert world.ask("task.move", id=urgent, to="last")["priority"] == 0
    assert board(world) == [done, two, one, urgent]
    new = world.add()
    assert board(world) == [done, two, one, urgent, new]


def test_a_task_takes_the_priority_that_it_needs_to_stand_where_it_was_put(world: World) -> None:
    high, middle, low, own = (world.add(priority=priority) for priority in (9, 5, 1, 3))
    assert world.ask("task.move", id=own, above=middle)["priority"] == 5
    assert board(world) == [high, own, middle, low]
    assert world.ask("task.move", id=own, above=low, priority=2)["priority"] == 2
    assert world.ask("task.move", id=own, above=middle, below=high, priority=7)["priority"] == 7
    with pytest.raises(Invalid, match="With priority 8"):
        world.ask("task.move", id=own, below=middle, priority=8)


def test_a_move_to_where_a_task_stands_already_changes_nothing(world: World) -> None:
    one, two, three = (world.add() for _ in range(3))
    before = world.seq
    wishes: list[dict[str, Any]] = [{"above": three}, {"below": one}, {"above": three, "below": one}]
    for where in wishes:
        world.ask("task.move", id=two, **where)
    world.ask("task.move", id=one, to="first")
    world.ask("task.move", id=three, to="last")
    assert world.seq == before


def test_a_hundred_moves_to_the_same_place_keep_every_task_in_its_place(world: World) -> None:
    first, *others, last = (world.add() for _ in range(6))
    for number in range(100):
        world.ask("task.move", id=others[number % 4], above=last, below=None)
    expected = [others[number % 4] for number in range(96, 100)]
    assert board(world) == [first, *expected, last]


@pytest.mark.parametrize(
    "where", [{}, {"above": "T-1", "to": "first"}, {"above": "T-1"}, {"above": "T-2", "below": "T-3"}]
)
def test_a_move_that_says_no_place_is_refused(world: World, where: dict[str, Any]) -> None:
    for _ in range(3):
        world.add()
    with pytest.raises(Invalid):
        world.ask("task.move", id="T-1", **where)


def test_only_the_owner_moves_reopens_and_changes_many(world: World) -> None:
    task, other = world.add(), world.add()
    session = Principal("ada")
    for verb, asked in (
        ("task.move", {"id": task, "below": other}),
        ("task.reopen", {"id": task}),
        ("task.bulk", {"ids": [task], "drop": "no"}),
    ):
        world.proposed(verb, session, **asked)


def test_the_board_is_paged_in_the_order_that_people_gave_it(world: World) -> None:
    tasks = [world.add(priority=number % 3) for number in range(20)]
    for number in range(0, 20, 4):
        world.ask("task.move", id=tasks[number], above=tasks[(number * 7 + 3) % 20])
    whole = board(world)
    paged: list[str] = []
    while page := board(world, limit=3, **({"after": paged[-1]} if paged else {})):
        paged += page
    assert paged == whole and sorted(paged) == sorted(tasks)


def test_the_board_and_its_lanes_are_found_by_their_indexes_without_sorting(world: World) -> None:
    queries = {
        "tasks_ready": "WHERE status = 'todo' AND unmet = 0 AND open_children = 0 AND lane = ''"
        " ORDER BY line, priority DESC, rank, ordinal LIMIT 1",
        "tasks_board": "WHERE priority = 0 AND (rank, ordinal) > (1.0, 1) ORDER BY priority DESC, rank, ordinal",
        "tasks_status": "WHERE status = 'todo' ORDER BY priority DESC, rank, ordinal LIMIT 1",
    }

    def plan(where: str) -> str:
        found = world.do(lambda call: call.tx.db.rows(f"EXPLAIN QUERY PLAN SELECT * FROM tasks {where}"))
        return " ".join(str(line[-1]) for line in found)

    for index, where in queries.items():
        assert index in plan(where) and "TEMP B-TREE" not in plan(where), plan(where)


def test_who_is_at_work_is_found_by_an_index_and_is_nobody_whose_work_has_ended(world: World) -> None:
    assert world.do(lambda call: call.tx.holders()) == []
    for name in ("ada", "bob", "ada", "cid"):
        world.claim(world.add(), name)
    world.finish(world.add(), "dan")
    assert world.do(lambda call: call.tx.holders()) == ["ada", "bob", "cid"]
    found = world.do(lambda call: call.tx.db.rows(f"EXPLAIN QUERY PLAN {HOLDERS}"))
    plan = [str(line[-1]) for line in found]
    assert not [line for line in plan if "tasks" in line and "SEARCH" not in line], plan


# Bringing back, and many at once


def test_a_dropped_or_blocked_task_is_reopened_and_its_tries_are_forgiven(world: World) -> None:
    dropped, blocked, waiting, at_work, done = (world.add() for _ in range(5))
    world.ask("task.drop", id=dropped, reason="no")
    world.ask("task.block", id=blocked, reason="who?")
    assert world.ask("task.reopen", id=dropped)["status"] == "todo"
    assert world.ask("task.reopen", id=blocked)["reason"] is None
    before = world.seq
    assert world.ask("task.reopen", id=waiting)["status"] == "todo"
    assert world.seq == before
    world.claim(at_work, "ada")
    world.finish(done, "bob")
    for task in (at_work, done):
        with pytest.raises(Refused, match="cannot be reopened"):
            world.ask("task.reopen", id=task)


def test_many_tasks_are_changed_at_once_or_none_is(world: World) -> None:
    tasks = [world.add() for _ in range(4)]
    changed = world.ask("task.bulk", ids=tasks[:3], changes={"priority": 5, "assignee": "ada"})
    assert [(row["id"], row["priority"], row["assignee"]) for row in changed] == [
        (task, 5, "ada") for task in tasks[:3]
    ]
    world.finish(tasks[3])
    before = world.everything()
    for wish in ({"drop": "not needed"}, {"reopen": True}, {"changes": {"needs": [tasks[0]]}}):
        with pytest.raises((Refused, Invalid)):
            world.ask("task.bulk", ids=tasks, **wish)
        assert world.everything() == before


def test_a_family_is_dropped_and_reopened_in_one_go_whatever_its_order(world: World) -> None:
    child, parent = world.add("child"), world.add("parent")
    world.ask("task.edit", id=child, parent=parent)
    grandchild = world.add("grandchild", parent=child)
    need = world.add("need", needs=[grandchild])
    family = [parent, child, grandchild, need]
    assert {row["status"] for row in world.ask("task.bulk", ids=family, drop="not now")} == {"dropped"}
    assert {row["status"] for row in world.ask("task.bulk", ids=family[::-1], reopen=True)} == {"todo"}


def test_a_chain_is_brought_back_in_one_go_whatever_its_order(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [world.add() for _ in range(30)]
    for task, need in pairwise(chain):  # each waits for a younger one
        world.ask("task.edit", id=task, needs=[need])
    tried: list[str] = []

    def check(call: Any, task: Any, wish: Any) -> None:
        tried.append(task.id)
        check_edit(call, task, wish)

    monkeypatch.setattr(moves, "check_edit", check)
    world.ask("task.bulk", ids=chain, drop="not now")
    assert {row["status"] for row in world.ask("task.bulk", ids=chain, reopen=True)} == {"todo"}
    assert tried == chain[::-1], "who tries them in another order tries most of them in vain, again and again"


@pytest.mark.parametrize("wish", [{}, {"drop": "x", "reopen": True}, {"changes": {}, "drop": "x"}])
def test_a_bulk_change_says_one_thing(world: World, wish: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="not clear what"):
        world.ask("task.bulk", ids=[world.add()], **wish)


def test_a_task_is_added_for_a_session_under_either_name(world: World) -> None:
    added = world.ask("task.add", title="Update API routes", session="api-refactor", status="todo")
    assert (added["id"], added["assignee"], added["session"], added["status"]) == ("AR-1", "api-refactor", None, "todo")
    with pytest.raises(Invalid, match="Session and assignee are one field"):
        world.ask("task.add", title="No", session="ada", assignee="bob")
    assert world.ask("task.add", title="Yes", session="ada", assignee="ada")["assignee"] == "ada"


def test_the_board_is_found_by_whom_tasks_are_for(world: World) -> None:
    mine = [world.add(f"Task {number}", assignee="ada") for number in range(5)]
    world.add("Another", assignee="bob")
    world.add("Anyone's")
    world.claim(mine[0], "ada")
    page = world.answer("task.list", assignee="ada", status="todo", limit=3)
    assert [task["id"] for task in page.value()] == mine[1:4]
    assert page.total == 4
    rest = world.ask("task.list", assignee="ada", status="todo", after=mine[3])
    assert [task["id"] for task in rest] == mine[4:]
    assert world.ask("task.list", assignee="nobody") == []
