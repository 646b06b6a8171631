"""The verbs of one merge: what each does to it, to its task, and what it says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from covey.app.board.task_changes import step
from covey.app.context import Principal
from covey.app.merging import queue_records, reverts
from covey.config import Config
from covey.config import Merge as MergeSettings
from covey.core.fleet.sessions import COVEY
from covey.core.merging import gates, landings, merges
from covey.core.merging.gates import Gate
from covey.core.merging.landings import Landing
from covey.core.merging.merges import Merge
from covey.core.merging.queue import queue_status
from covey.errors import Denied, NotFound, Refused
from tests.worlds.boards import World
from tests.worlds.queue_records import journal, start_gate

COMMIT, MAIN, TREE = "c" * 40, "a" * 40, "d" * 40


def checked(world: World, **more: Any) -> None:
    """Let work be tested before it lands."""
    world.config = replace(Config(), merge=MergeSettings(check="true", **more))
    world.app.context.config = world.config


def handed_in(world: World, session: str = "ada", title: str = "Mend it", **more: Any) -> tuple[str, str]:
    """Return a task whose work is handed in, and its merge."""
    task = world.add(title, **more)
    world.claim(task, session)
    return task, world.hand_in(task, session, commit=COMMIT)


def merge_of(world: World, merge: str) -> Merge:
    """Return a merge as it is."""
    found = world.store.read(lambda tx: tx.get(merges.Merge, merge))
    assert found is not None
    return found


def put(world: World, merge: str, event: merges.Event) -> Merge:
    """Let something happen to a merge, as the queue writes it."""
    return world.do(lambda call: step(call, merge_of(world, merge), event, COVEY))


def start(world: World, *names: str, purpose: str = "group") -> Gate:
    """Let a gate begin on some merges."""
    event = gates.Started(test=1, base=MAIN, commit=TREE, merges=names, purpose=purpose)
    gate = world.do(lambda call: start_gate(call, event))
    for name in names:
        put(world, name, merges.Tested(TREE, gate.id))
    return gate


def end(world: World, gate: Gate, *failures: str) -> None:
    """Let a gate end, well if nothing failed."""
    event = gates.Ended(passed=not failures, code=int(bool(failures)), seconds=12.0, failures=failures, step="pytest")
    world.do(lambda call: queue_records.end_gate(call, gate.id, event))


def land(world: World, gate: Gate | None, *names: str) -> Landing:
    """Let main take some merges."""
    made = landings.Made(branch="main", before=MAIN, commit=TREE, merges=names, gate=gate.id if gate else None)
    landing = world.do(lambda call: journal(call, made))
    for name in names:
        put(world, name, merges.Landed(TREE, landing.id))
    return landing


def why(world: World, merge: str) -> str:
    """Return why a merge is where it is, as one text."""
    return " ".join(world.ask("merge.why", id=merge)["because"])


# Looking


def test_a_list_tells_the_place_in_the_train_and_the_gate_that_tests_a_merge_now(world: World) -> None:
    checked(world)
    (_, first), (_, second), (_, third) = (handed_in(world, priority=number) for number in (0, 5, 0))
    gate = start(world, second)
    shown = {merge["id"]: merge for merge in world.ask("merge.list")}
    assert [shown[name]["place"] for name in (first, second, third)] == [2, 1, 3]
    assert (shown[second]["gate"], shown[second]["waits"], shown[first]["gate"]) == (gate.id, None, None)
    assert shown[first]["title"] == "Mend it"


def test_work_from_outside_that_nobody_tests_waits_for_a_person_and_says_so(world: World) -> None:
    _, merge = handed_in(world)
    (shown,) = world.ask("merge.list")
    assert shown["person"] and "merge.check is not set" in shown["waits"] and shown["waits_for"]
    (item,) = [each for each in world.ask("inbox.list") if each["kind"] == "approve"]
    assert item["untested"] and item["text"] == f"for your approval: {item['why'].rstrip('.')}"
    assert not world.ask("merge.why", id=shown["id"])["retry"]
    assert "lands only when you approve it" in why(world, merge)
    assert world.ask("merge.why", id=merge)["next"][0] == f"covey merge approve {merge}"
    world.ask("merge.approve", id=merge)
    assert not world.ask("merge.list")[0]["person"]


def test_a_merge_waits_for_what_it_needs_and_for_what_it_clashes_with(world: World) -> None:
    checked(world)
    (_, first), (_, second), (_, third) = (handed_in(world) for _ in range(3))
    put(world, first, merges.Entered(paths=("src/a.py", "src/b.py")))
    put(world, second, merges.Entered(needs=(first,)))
    put(world, third, merges.Entered(paths=("src/a.py",), against=(first,)))
    shown = {merge["id"]: merge["waits"] for merge in world.ask("merge.list")}
    assert shown == {
        first: None,
        second: f"for {first}, which it needs",
        third: f"for {first}, with which git cannot merge it",
    }
    assert f"It needs {first} (T-1), which has not landed." in why(world, second)
    assert f"Git cannot merge it with {first} (T-1) in src/a.py, which is before it in the queue" in why(world, third)
    assert why(world, first) == "It is number 1 of 3 in the queue; no gate runs at this moment."


def test_a_merge_is_shown_with_its_gates_its_landing_and_who_came_with_it(world: World) -> None:
    checked(world, review=True)
    (_, first), (_, second) = handed_in(world), handed_in(world, "bob")
    for name in (first, second):
        world.ask("merge.approve", id=name)
    end(world, start(world, first, second), "tests/test_a.py::test_it")
    gate = start(world, first, second)
    end(world, gate)
    landing = land(world, gate, first, second)
    shown = world.ask("merge.show", id=first)
    assert [each["state"] for each in shown["gates"]] == ["passed", "failed"]
    assert (shown["landed_by"]["id"], shown["group"], shown["approved_by"]) == (landing.id, [second], "owner")
    assert shown["cost"] == 0.0
    told = why(world, first)
    assert f"It landed in {TREE[:12]} ({landing.id}) together with {second}, after {gate.id} had passed." in told
    assert "Before that it was in 1 gate that failed." in told


def test_a_merge_under_test_names_its_company_and_a_failed_group_says_who_may_be_to_blame(world: World) -> None:
    checked(world)
    (_, first), (_, second) = handed_in(world), handed_in(world)
    failed = start(world, first, second)
    end(world, failed, "tests/test_a.py::test_it")
    again = start(world, first, purpose="solo")
    assert f"It is tested alone in {again.id} (solo) for 0 s." in why(world, first)
    assert f"{failed.id} failed with it and {second} (tests/test_a.py::test_it)" in why(world, first)
    end(world, again, "tests/test_a.py::test_it")
    assert f"{again.id} failed with it alone" in why(world, first)


def test_a_rejected_merge_names_its_gates_what_landed_since_it_was_green_and_tests_that_flake(world: World) -> None:
    checked(world)
    (_, other), (_, merge) = handed_in(world, "bob"), handed_in(world)
    green = start(world, merge)
    end(world, green)
    passed = start(world, other)
    end(world, passed)
    land(world, passed, other)
    failed = [start(world, merge, purpose="solo") for _ in range(2)]
    for gate in failed:
        end(world, gate, "test_sum")
    world.do(lambda call: queue_records.note_flakes(call, failed[0], ("test_sum",)))
    put(world, merge, merges.Rejected("It fails.", cause="fails", gates=tuple(gate.id for gate in failed)))
    told = why(world, merge)
    for gate in failed:
        assert f"{gate.id} failed with it alone (test_sum)." in told
    assert f"It was green in {green.id}, before {other} (T-1) landed: they do not go together." in told
    assert f"test_sum has flaked once, last in {failed[1].id}." in told


def test_a_clash_with_what_landed_names_the_files_and_the_landing(world: World) -> None:
    checked(world)
    (_, first), (_, second) = handed_in(world), handed_in(world)
    put(world, first, merges.Entered(paths=("src/a.py",)))
    put(world, second, merges.Entered(paths=("src/a.py", "b"), against=(first,)))
    landing = land(world, None, first)
    put(world, second, merges.Rejected("It conflicts.", cause="text", blame=(first,)))
    expected = f"Git cannot merge it with {first} (T-1) in src/a.py, which landed in {TREE[:12]} ({landing.id})."
    assert expected in why(world, second)


def test_what_keeps_the_whole_queue_from_going_on_is_told_with_each_merge(world: World) -> None:
    checked(world)
    _, merge = handed_in(world)
    world.ask("queue.pause", reason="the release")
    assert "The queue is paused by owner: the release." in why(world, merge)
    shown = world.ask("merge.list")[0]
    assert (shown["waits"], shown["waits_for"]) == ("the queue is paused", False)
    assert world.ask("merge.why", id=merge)["next"] == ["covey merge resume"]
    world.ask("queue.resume")
    put(world, merge, merges.Passed(TREE))
    world.ask("queue.freeze", reason="demo day")
    told = why(world, merge)
    assert "main takes it when it is thawed" in told and "Main is frozen by owner: demo day." in told


# Reviewing


def reviewer(world: World, name: str = "rita", role: str = "review") -> Principal:
    """Make a session of a role known."""
    world.ask("session.new", name=name, role=role)
    return Principal(name)


def test_a_session_of_the_reviewing_role_approves_what_others_wrote(world: World) -> None:
    checked(world, review=True, review_role="review")
    rita, bob = reviewer(world), reviewer(world, "bob", "builder")
    task, merge = handed_in(world)
    with pytest.raises(Denied, match="Only the owner and sessions of role review may approve"):
        world.ask("merge.approve", bob, id=merge)
    approved = world.ask("merge.approve", rita, id=merge)
    assert (approved["state"], approved["approved"], world.status(task)) == ("queued", False, "merging")
    assert world.ask("merge.show", id=merge)["approved_by"] == "rita"
    _, own = handed_in(world, "rita")
    with pytest.raises(Denied, match="your own work"):
        world.ask("merge.approve", rita, id=own)
    assert world.ask("merge.reject", rita, id=handed_in(world)[1], reason="No test")["state"] == "rejected"


def test_no_session_approves_where_no_role_is_named(world: World) -> None:
    checked(world, review=True)
    _, merge = handed_in(world)
    with pytest.raises(Denied, match="Only the owner may approve"):
        world.ask("merge.approve", reviewer(world), id=merge)


def test_what_waits_for_a_person_is_not_a_reviewers_to_approve(world: World) -> None:
    checked(world, review_role="review")
    _, merge = handed_in(world)
    world.ask("merge.hold", id=merge, reason="I want to see it")
    with pytest.raises(Denied, match="waits for a person: I want to see it"):
        world.ask("merge.approve", reviewer(world), id=merge)
    assert world.ask("merge.approve", id=merge)["approved"]


def test_a_merge_that_was_approved_can_be_held_and_approved_again(world: World) -> None:
    checked(world, review=True)
    task, merge = handed_in(world)
    world.ask("merge.approve", id=merge)
    held = world.ask("merge.hold", id=merge)
    assert (held["state"], held["reason"], world.status(task)) == ("review", "Held by a person.", "review")
    with pytest.raises(Refused, match="waits for a review already"):
        world.ask("merge.hold", id=merge)
    assert world.ask("merge.approve", id=merge)["state"] == "queued"
    put(world, merge, merges.Passed(TREE))
    with pytest.raises(Refused, match="has passed"):
        world.ask("merge.hold", id=merge)


def test_a_person_sends_work_back_as_often_as_it_takes(world: World) -> None:
    task, merge = handed_in(world)
    for number in range(world.config.board.tries + 2):
        world.ask("merge.reject", id=merge, reason=f"No {number}")
        assert world.status(task) == "todo"
        world.claim(task, "ada")
        merge = world.hand_in(task, "ada")
    assert len(world.task(task)["tries"]) == world.config.board.tries + 2
    assert world.ask("alert.list") == []


def test_what_a_reviewer_rejects_again_and_again_is_blocked_like_what_the_gate_rejects(world: World) -> None:
    checked(world, review=True, review_role="review")
    rita = reviewer(world)
    task, merge = handed_in(world)
    for number in range(world.config.board.tries):
        world.ask("merge.reject", rita, id=merge, reason=f"No {number}")
        if world.status(task) == "todo":
            world.claim(task, "ada")
            merge = world.hand_in(task, "ada")
    assert world.status(task) == "blocked"
    assert "times without success; the last time: No 2" in world.task(task)["reason"]
    assert [alert["type"] for alert in world.ask("alert.list")] == ["task_blocked"]


# Again, and not at all


def test_rejected_work_is_tried_again_as_it_is(world: World) -> None:
    checked(world)
    task, merge = handed_in(world)
    world.ask("merge.reject", id=merge, reason="Not today")
    again = world.ask("merge.retry", id=merge)
    assert (again["state"], again["commit"], again["session"]) == ("queued", COMMIT, "ada")
    assert (again["id"] != merge, world.status(task)) == (True, "merging")
    with pytest.raises(Refused, match=f"T-1 has moved on: it was handed in again as {again['id']}, which is queued"):
        world.ask("merge.retry", id=merge)
    with pytest.raises(Refused, match="is queued, so there is nothing to try again"):
        world.ask("merge.retry", id=again["id"])


def test_work_is_not_tried_again_once_somebody_is_at_it(world: World) -> None:
    task, merge = handed_in(world)
    world.ask("merge.reject", id=merge, reason="No")
    world.claim(task, "ada")
    with pytest.raises(Refused, match="T-1 has moved on: it is doing by ada"):
        world.ask("merge.retry", id=merge)


def test_what_waits_for_a_person_to_mend_the_gate_is_tried_again_at_once(world: World) -> None:
    checked(world)
    _, merge = handed_in(world)
    put(world, merge, merges.Waits("The gate could not be started"))
    world.app.context.gate.is_broken = True
    assert "It waits: The gate could not be started." in why(world, merge)
    assert world.ask("merge.retry", id=merge)["reason"] is None
    assert not world.app.context.gate.is_broken


def test_dropped_work_leaves_the_queue_blocked_and_can_be_brought_back(world: World) -> None:
    checked(world)
    task, merge = handed_in(world)
    dropped = world.ask("merge.drop", id=merge, reason="Wrong week")
    assert (dropped["state"], dropped["reason"]) == ("withdrawn", "Wrong week")
    assert (world.status(task), world.task(task)["reason"]) == ("blocked", "Wrong week")
    assert "It left the queue: Wrong week. T-1 is blocked: Wrong week." in why(world, merge)
    again = world.ask("merge.retry", id=merge)
    assert (again["state"], world.status(task), world.task(task)["reason"]) == ("queued", "merging", None)
    with pytest.raises(Refused, match="cannot be dropped: it has left the queue already"):
        world.ask("merge.drop", id=merge)


# From outside


def test_a_branch_from_outside_becomes_a_task_whose_work_is_handed_in(world: World) -> None:
    checked(world)
    asked: dict[str, Any] = {"branch": "feature/x", "commit": COMMIT, "title": "Add x", "body": "Why x", "priority": 3}
    merge = world.ask("merge.queue", **asked)
    assert (merge["state"], merge["branch"], merge["commit"], merge["session"]) == (
        "queued",
        "feature/x",
        COMMIT,
        "owner",
    )
    task = world.task(merge["task"])
    assert (task["title"], task["status"], task["priority"]) == ("Add x", "merging", 3)
    assert task["body"].startswith("Why x\n\nIt came from outside, on branch feature/x")
    with pytest.raises(Refused, match=f"feature/x is in the queue already, as {merge['id']}"):
        world.ask("merge.queue", **asked)
    world.ask("merge.reject", id=merge["id"], reason="A test is missing")
    back = world.task(merge["task"])
    assert (back["status"], back["front"], back["tries"][0]["what"]) == ("todo", None, "A test is missing")
    assert world.next("ada") == merge["task"]


def test_a_branch_from_outside_is_reviewed_where_that_is_asked_for(world: World) -> None:
    checked(world, review=True)
    merge = world.ask("merge.queue", branch="feature/x", commit=COMMIT, title="Add x")
    assert (merge["state"], world.status(merge["task"])) == ("review", "review")


def test_the_branch_of_an_open_task_is_handed_in_and_not_queued(world: World) -> None:
    task = world.add()
    with pytest.raises(Refused, match=f"covey/{task} is the branch of {task}, which is todo"):
        world.ask("merge.queue", branch=f"covey/{task}", commit=COMMIT, title="Sly")


# Out of main again


def landed(world: World) -> tuple[str, str]:
    """Return a task that is done, and its merge, which has landed."""
    task, merge = handed_in(world)
    world.ask("merge.land", id=merge, commit=TREE)
    return task, merge


def test_only_what_has_landed_is_reverted_and_only_once(world: World) -> None:
    checked(world)
    _, waiting = handed_in(world)
    with pytest.raises(Refused, match="only what has landed can be reverted"):
        world.ask("merge.revert", id=waiting)
    task, merge = landed(world)
    made = world.ask("merge.revert", id=merge, reason="It broke the shop")
    assert (made["reverts"], made["state"], made["commit"]) == (merge, "queued", None)
    assert world.task(made["task"])["title"] == f"Revert {task}: Mend it"
    assert "Why: It broke the shop" in world.task(made["task"])["body"]
    assert world.ask("merge.show", id=merge)["reverted_by"] == made["id"]
    with pytest.raises(Refused, match=f"is being reverted already, by {made['id']}"):
        world.ask("merge.revert", id=merge)
    world.ask("merge.drop", id=made["id"])
    assert world.status(made["task"]) == "dropped"
    assert world.ask("merge.revert", id=merge)["reverts"] == merge


@pytest.mark.parametrize("reopen", [True, False])
def test_a_revert_that_landed_opens_the_task_again_if_that_was_asked_for(world: World, reopen: bool) -> None:
    checked(world)
    task, merge = landed(world)
    made = world.ask("merge.revert", id=merge, reason="It broke the shop", reopen=reopen)
    world.ask("task.edit", id=made["task"], body="Why: it is only told here")
    world.ask("merge.land", id=made["id"], commit=MAIN)
    world.do(lambda call: reverts.settle(call, merge_of(world, made["id"])))
    assert merge_of(world, merge).state is merges.MergeState.REVERTED
    now = world.task(task)
    assert (now["status"], now["reverted"]) == (("todo", None) if reopen else ("done", made["id"]))
    if reopen:
        assert "taken out of main again by" in now["notes"][0]["text"]
        assert now["notes"][0]["text"].endswith("Why: It broke the shop")
    assert f"It was taken out of main again in {MAIN[:12]} by {made['id']}" in why(world, merge)
    shown = world.ask("merge.show", id=merge)
    assert (shown["landed"], shown["reverted_by"]) == (TREE, made["id"]), "where it landed stays true"


def test_a_revert_names_the_branch_on_which_work_lands(world: World) -> None:
    checked(world, branch="next")
    task, merge = landed(world)
    made = world.ask("merge.revert", id=merge, reopen=True)
    assert "out of next again" in world.task(made["task"])["body"]
    world.ask("merge.land", id=made["id"], commit=MAIN)
    assert "out of next again" in world.task(task)["notes"][0]["text"]
    assert "out of next again" in why(world, merge)


def test_a_revert_that_an_author_had_to_finish_by_hand_counts_as_well(world: World) -> None:
    checked(world)
    task, merge = landed(world)
    made = world.ask("merge.revert", id=merge, reopen=True)
    world.ask("merge.reject", id=made["id"], reason="Something is built on it")
    world.claim(made["task"], "bob")
    by_hand = world.hand_in(made["task"], "bob", commit=COMMIT)
    assert merge_of(world, by_hand).reverts is None
    world.ask("merge.land", id=by_hand, commit=MAIN)
    assert (merge_of(world, merge).state, world.status(task)) == (merges.MergeState.REVERTED, "todo")
    assert f"taken out of main again in {MAIN[:12]} by {by_hand}" in why(world, merge)
    assert world.ask("merge.show", id=merge)["reverted_by"] == by_hand


@pytest.mark.parametrize("is_claimed", [False, True])
def test_reverting_a_revert_ends_the_task_whose_work_is_on_main_again(world: World, is_claimed: bool) -> None:
    checked(world)
    task, merge = landed(world)
    out = world.ask("merge.revert", id=merge, reopen=True)
    world.ask("merge.land", id=out["id"], commit=MAIN)
    if is_claimed:
        world.claim(task, "bob")
    back = world.ask("merge.revert", id=out["id"])
    world.ask("merge.land", id=back["id"], commit=COMMIT)
    assert merge_of(world, out["id"]).state is merges.MergeState.REVERTED
    now = merge_of(world, merge)
    assert (now.state, now.landed) == (merges.MergeState.LANDED, TREE)
    assert world.status(task) == ("doing" if is_claimed else "done")
    assert f"on main again: {back['task']}" in world.task(task)["notes"][-1]["text"]
    assert "taken out of main" not in why(world, merge)
    assert world.ask("merge.revert", id=merge)["reverts"] == merge, "it can be taken out once more"


def test_work_counts_as_taken_out_again_when_the_revert_of_its_revert_is_reverted(world: World) -> None:
    checked(world)
    task, merge = landed(world)
    chain = [merge]
    for commit in (MAIN, COMMIT, MAIN[::-1]):
        made = world.ask("merge.revert", id=chain[-1])
        world.ask("merge.land", id=made["id"], commit=commit)
        chain.append(made["id"])
    states = [merge_of(world, each).state.value for each in chain]
    assert states == ["reverted", "landed", "reverted", "landed"]
    assert world.task(task)["reverted"] == chain[1]


def test_a_merge_is_found_by_its_number_and_by_its_task_whose_newest_one_is_meant(world: World) -> None:
    checked(world)
    task, first = handed_in(world)
    world.ask("merge.reject", id=first, reason="No test")
    world.claim(task, "ada")
    second = world.hand_in(task, "ada", commit=TREE)
    assert world.ask("merge.show", id=task)["id"] == second
    assert world.ask("merge.show", id=first.removeprefix("merge-"))["id"] == first
    assert world.ask("merge.why", id=task)["merge"] == second
    with pytest.raises(NotFound, match="was not handed in yet"):
        world.ask("merge.why", id=world.add("Not begun"))
    with pytest.raises(NotFound) as told:
        world.ask("merge.show", id="gate-3")
    assert told.value.hint == "covey merge log gate-3 shows what a gate said."


def test_a_branch_with_new_commits_is_told_that_its_older_one_is_queued(world: World) -> None:
    checked(world)
    made = world.ask("merge.queue", branch="mine", commit=COMMIT, title="Mine")
    with pytest.raises(Refused, match=f"{made['id']} .*at its older commit {COMMIT[:12]}; its new commits are not"):
        world.ask("merge.queue", branch="mine", commit=TREE, title="Mine")
    with pytest.raises(Refused, match=r"in the queue already, as merge-\d+ \(T-1\)\.$"):
        world.ask("merge.queue", branch="mine", commit=COMMIT, title="Mine")


def test_what_passed_and_waits_for_main_is_not_a_persons_to_approve(world: World) -> None:
    checked(world)
    _, merge = handed_in(world)
    end(world, start(world, merge))
    put(world, merge, merges.Passed(TREE))
    put(world, merge, merges.Waits("Changes of yours in /home/ada are in the way of main: a.py."))
    assert world.ask("merge.list")[0]["person"]
    assert "git stash" in world.ask("merge.why", id=merge)["next"][0]
    world.ask("queue.freeze")
    (shown,) = world.ask("merge.list")
    assert (shown["person"], shown["waits"]) == (False, "for main, which is frozen")
    assert world.ask("merge.why", id=merge)["next"] == ["covey merge thaw"]


def test_what_landed_untested_names_no_gate(world: World) -> None:
    _, merge = handed_in(world)
    gate = start(world, merge)
    world.do(lambda call: queue_records.end_gate(call, gate.id, gates.Ended(passed=True, summary="There is no gate.")))
    land(world, None, merge)
    assert world.ask("merge.show", id=merge)["gates"] == []


def test_failures_on_a_red_main_count_against_nobody_and_are_told_once(world: World) -> None:
    checked(world)
    _, merge = handed_in(world)
    gate = start(world, merge)
    end(world, gate, "test_sum")
    put(world, merge, merges.Requeued("main is red"))
    put(world, merge, merges.Waits("main itself fails.", cause=merges.WholeQueue.HALTED))
    world.do(lambda call: queue_records.put(call, queue_status.Halted("main itself fails its gate.")))
    told = world.ask("merge.why", id=merge)
    assert told["because"] == [
        "The queue has halted: main itself fails its gate.",
        f"What failed with it ({gate.id}) does not count while main itself is red.",
    ]
    assert told["next"][1].startswith("covey merge resume")
    assert world.ask("merge.list")[0]["waits"] == "the queue has halted"


def test_a_merge_whose_gate_was_lost_does_not_claim_to_be_tested(world: World) -> None:
    checked(world)
    _, merge = handed_in(world)
    gate = start(world, merge)
    world.do(lambda call: queue_records.end_gate(call, gate.id, gates.Lost("the daemon ended")))
    assert f"No gate tests it at this moment; {gate.id}, the last one, was ended before" in why(world, merge)


def test_a_verb_of_a_merge_that_is_not_there_says_so(world: World) -> None:
    for verb in ("merge.show", "merge.why", "merge.retry", "merge.drop", "merge.hold", "merge.revert"):
        with pytest.raises(NotFound, match="There is no merge 'merge-99'"):
            world.ask(verb, id="merge-99")
