"""Claims and leases end by silence, and only by silence that somebody watched; time is turned by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.app.context import Call
from covey.app.fleet import sessions
from covey.app.fleet.heartbeats import NOTED_EVERY
from covey.core.figures import span
from covey.core.fleet.sessions import Session, SessionKind
from covey.errors import CoveyError, NotFound, Refused
from tests.worlds.boards import Principal, World

RUN, OUTSIDE = 60.0, 3600.0


def held(world: World, kind: SessionKind) -> tuple[str, Principal, int]:
    """Let a session of a kind claim a task."""
    task = world.add()
    who = Principal() if kind is SessionKind.PERSON else Principal("worker")
    if kind is SessionKind.RUN:
        world.run_session("worker")
    elif kind is SessionKind.OUTSIDE:
        world.ask("session.new", name="worker")
    return task, who, world.ask("task.claim", who, id=task)["fence"]


TTLS = [(SessionKind.RUN, RUN), (SessionKind.OUTSIDE, OUTSIDE)]


@pytest.mark.parametrize(("kind", "ttl"), TTLS)
def test_a_silent_session_loses_its_claim_at_its_time_and_not_before(
    world: World, kind: SessionKind, ttl: float
) -> None:
    task, _, _ = held(world, kind)
    world.watch(ttl - 1, 1 if kind is SessionKind.RUN else 30)
    assert world.status(task) == "doing"
    world.watch(1)
    assert world.status(task) == "todo"


def test_who_was_just_heard_of_is_not_read_again_to_see_whether_it_is_silent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held(world, SessionKind.OUTSIDE)
    read: list[str] = []
    known = Call.known

    def noted(call: Call, name: str) -> Session:
        read.append(name)
        return known(call, name)

    monkeypatch.setattr(Call, "known", noted)
    assert (world.do(sessions.sweep), read) == (0, [])
    world.clock.run(RUN)
    world.app.context.pulses.look()
    assert (world.do(sessions.sweep), read) == (0, ["worker"])


def test_a_refused_request_for_a_session_is_a_sign_of_its_life_and_a_filter_by_it_is_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(world.app.context.pulses, "hear", heard.append)
    with pytest.raises(CoveyError):
        world.ask("task.list", session="worker", after="T-99")
    assert heard == []
    with pytest.raises(CoveyError):
        world.ask("task.claim", session="worker", id="T-99")
    assert heard == ["session:worker"]


def test_a_persons_claim_never_expires(world: World) -> None:
    task, _, _ = held(world, SessionKind.PERSON)
    world.watch(30 * 86_400, 3600)
    assert world.status(task) == "doing"


@pytest.mark.parametrize(("kind", "ttl"), TTLS)
def test_an_expired_task_is_back_with_the_story_and_one_alert_once(world: World, kind: SessionKind, ttl: float) -> None:
    task, _, _ = held(world, kind)
    world.watch(ttl + 1, 30)
    shown = world.task(task)
    assert (shown["status"], shown["session"], shown["until"]) == ("todo", None, None)
    assert [t["what"] for t in shown["tries"]] == [f"worker was not heard of for {span(ttl)}"]
    world.watch(3 * ttl, 30)
    (alert,) = world.ask("alert.list")
    assert (alert["type"], alert["session"], alert["task"]) == ("claim_expired", "worker", task)
    assert task in alert["message"]
    (session,) = world.ask("session.list")
    assert (session["state"], session["tasks"]) == ("dead", [])
    assert world.next("bob") == task


def test_the_tasks_of_one_silence_make_one_alert(world: World) -> None:
    tasks = [world.add() for _ in range(3)]
    for task in tasks:
        world.claim(task, "ada")
    world.watch(OUTSIDE + 30, 30)
    (alert,) = world.ask("alert.list")
    assert all(task in alert["message"] for task in tasks)


@pytest.mark.parametrize(("kind", "ttl"), TTLS)
def test_a_late_hand_in_with_the_old_fence_is_refused_and_changes_nothing(
    world: World, kind: SessionKind, ttl: float
) -> None:
    task, who, fence = held(world, kind)
    world.watch(ttl + 1, 30)
    before = world.everything()
    with pytest.raises(Refused, match="nobody holds it"):
        world.ask("task.handin", who, id=task, fence=fence)
    assert world.everything() == before
    world.ask("session.new", name="other")
    world.claim(task, "other")
    before = world.everything()
    with pytest.raises(Refused, match="held by other, not by worker"):
        world.ask("task.handin", who, id=task, fence=fence)
    assert world.everything() == before


def test_who_claims_again_after_losing_a_task_cannot_hand_in_under_the_first_fence(world: World) -> None:
    task, who, fence = held(world, SessionKind.OUTSIDE)
    world.watch(OUTSIDE + 1, 30)
    again = world.ask("task.claim", who, id=task)["fence"]
    with pytest.raises(Refused, match=f"fence {fence} has ended; the fence is {again}"):
        world.ask("task.handin", who, id=task, fence=fence)
    world.ask("task.handin", who, id=task, fence=again)


# What keeps a claim alive


@pytest.mark.parametrize(
    ("verb", "asked"),
    [
        ("task.list", {}),
        ("task.show", {"id": "T-1"}),
        ("status", {}),
        ("mail.inbox", {}),
        ("mail.send", {"to": "owner", "text": "still here"}),
        ("task.next", {}),
        ("lease.take", {"resources": ["a"]}),
        ("task.renew", {"id": "T-1", "fence": 1}),
        ("task.claim", {"id": "T-1"}),
    ],
)
def test_each_request_of_a_session_renews_its_claim(world: World, verb: str, asked: dict[str, Any]) -> None:
    task, who, _ = held(world, SessionKind.OUTSIDE)
    world.watch(OUTSIDE - 30, 30)
    world.ask(verb, who, **asked)
    world.watch(OUTSIDE - 30, 30)
    assert world.status(task) == "doing"
    world.watch(30)
    assert world.status(task) == "todo"


def test_a_refused_request_is_a_sign_of_life_too(world: World) -> None:
    task, who, fence = held(world, SessionKind.OUTSIDE)
    world.watch(OUTSIDE - 30, 30)
    with pytest.raises(Refused):
        world.ask("task.handin", who, id=task, fence=fence + 1)
    world.watch(OUTSIDE - 30, 30)
    assert world.status(task) == "doing"


@pytest.mark.parametrize(
    ("verb", "asked"),
    [
        ("task.renew", {"id": "T-1"}),
        ("task.claim", {"id": "T-1"}),
        ("task.release", {"id": "T-2"}),
        ("task.block", {"id": "T-2", "reason": "?"}),
        ("task.handin", {"id": "T-2"}),
        ("lease.take", {"resources": ["a"]}),
        ("mail.send", {"to": "owner", "text": "still here"}),
        ("mail.inbox", {}),
        ("task.next", {}),
    ],
)
def test_what_the_owner_asks_in_the_name_of_a_session_renews_its_claims(
    world: World, verb: str, asked: dict[str, Any]
) -> None:
    for _ in range(2):
        world.claim(world.add(), "ada")
    world.watch(OUTSIDE - 30, 30)
    world.ask(verb, session="ada", **asked)
    world.watch(OUTSIDE - 30, 30)
    assert world.status("T-1") == "doing"
    world.watch(30)
    assert world.status("T-1") == "todo"


@pytest.mark.parametrize(
    ("verb", "asked"), [("task.release", {"id": "T-2"}), ("task.edit", {"id": "T-1", "priority": 3})]
)
def test_what_a_person_does_to_a_task_is_no_sign_of_life_of_its_holder(
    world: World, verb: str, asked: dict[str, Any]
) -> None:
    for _ in range(2):
        world.claim(world.add(), "ada")
    world.watch(OUTSIDE - 30, 30)
    world.ask(verb, **asked)
    world.watch(30)
    assert world.status("T-1") == "todo"


def test_until_tells_when_a_claim_ends(world: World) -> None:
    task, who, fence = held(world, SessionKind.OUTSIDE)
    world.clock.run(100)
    shown = world.ask("task.renew", who, id=task, fence=fence)
    assert shown["until"] == world.clock.now().wall + OUTSIDE


def test_a_session_taken_for_dead_comes_back_to_life_by_acting(world: World) -> None:
    _, who, _ = held(world, SessionKind.OUTSIDE)
    world.watch(OUTSIDE + 1, 30)
    world.add()
    world.ask("task.next", who)
    assert world.ask("session.list")[0]["state"] != "dead"


# What nobody watched


@pytest.mark.parametrize(("kind", "ttl"), TTLS)
def test_nothing_expires_within_one_ttl_of_a_daemon_start(world: World, kind: SessionKind, ttl: float) -> None:
    task, _, _ = held(world, kind)
    world.store.write(world.app.note_pulses)
    world.clock.run(10 * ttl)
    world.start(daemon=True)
    world.look()
    world.watch(ttl - 1, 30)
    assert world.status(task) == "doing"
    world.watch(1)
    assert world.status(task) == "todo"


@pytest.mark.parametrize(("kind", "ttl"), TTLS)
@pytest.mark.parametrize("jump", ["suspend", "forward", "back", "reboot"])
def test_nothing_expires_within_one_ttl_of(world: World, kind: SessionKind, ttl: float, jump: str) -> None:
    task, _, _ = held(world, kind)
    world.watch(ttl - 1, 30)
    match jump:
        case "suspend":
            world.clock.suspend(8 * 3600)
        case "forward":
            world.clock.turn(86_400)
        case "back":
            world.clock.turn(-86_400)
        case "reboot":
            world.store.write(world.app.note_pulses)
            world.clock.reboot()
            world.start(daemon=True)
    world.look()
    world.watch(ttl - 1, 30)
    assert world.status(task) == "doing"
    world.watch(1)
    assert world.status(task) == "todo"


def test_a_daemon_that_was_away_does_not_forget_who_renewed_before(world: World) -> None:
    task, who, fence = held(world, SessionKind.OUTSIDE)
    world.watch(100)
    world.ask("task.renew", who, id=task, fence=fence)
    world.store.write(world.app.note_pulses)
    world.start(daemon=True)
    assert world.task(task)["until"] == world.clock.now().wall + OUTSIDE


# Leases


def test_a_lease_lives_while_its_holder_does(world: World) -> None:
    world.ask("session.new", name="ada")
    lease = world.ask("lease.take", Principal("ada"), resources=["src/**"], ttl=120)
    world.watch(600, 30, also=lambda: world.ask("task.list", Principal("ada")))
    assert world.ask("lease.list")[0]["id"] == lease["id"]
    world.watch(119, 17)
    assert len(world.ask("lease.list")) == 1
    world.watch(1)
    assert world.ask("lease.list") == []
    (expired,) = world.ask("log.list", kind="lease.expired")
    assert expired["data"] == {"why": "ada was not heard of for 2 min"}


def test_a_lease_is_renewed_by_renewing_it(world: World) -> None:
    lease = world.ask("lease.take", session="ada", resources=["a"], ttl=60)
    world.watch(50)
    renewed = world.ask("lease.renew", session="ada", id=lease["id"], fence=lease["fence"])
    assert renewed["until"] == world.clock.now().wall + 60
    world.watch(50)
    assert len(world.ask("lease.list")) == 1


def test_an_expired_lease_is_free_for_others_and_its_old_holder_is_refused(world: World) -> None:
    lease = world.ask("lease.take", session="ada", resources=["a"], ttl=60)
    world.watch(60)
    world.ask("lease.take", session="bob", resources=["a"])
    with pytest.raises(Refused, match="has ended: it was expired"):
        world.ask("lease.renew", session="ada", id=lease["id"], fence=lease["fence"])


@pytest.mark.parametrize("holds_a_task", [True, False])
def test_the_leases_of_a_dead_run_are_gone_with_it(world: World, holds_a_task: bool) -> None:
    run = world.run_session("worker")
    world.ask("lease.take", run, resources=["src/**"])
    if holds_a_task:
        world.add()
        world.ask("task.next", run)
    world.watch(RUN - 1)
    assert len(world.ask("lease.list")) == 1
    world.watch(1)
    assert world.ask("lease.list") == []


@pytest.mark.parametrize("jump", ["suspend", "start"])
def test_no_lease_expires_within_one_ttl_of(world: World, jump: str) -> None:
    world.ask("lease.take", session="ada", resources=["a"], ttl=60)
    world.watch(59)
    if jump == "suspend":
        world.clock.suspend(3600)
    else:
        world.clock.run(3600)
        world.start(daemon=True)
    world.look()
    world.watch(59)
    assert len(world.ask("lease.list")) == 1
    world.watch(1)
    assert world.ask("lease.list") == []


# Without a daemon


@pytest.fixture
def alone(tmp_path: Path) -> World:
    return World(tmp_path, daemon=False)


def command(world: World, verb: str, **asked: Any) -> Any:
    """Ask as a CLI command does without a daemon: a process of its own."""
    world.start(daemon=False)
    return world.ask(verb, **asked)


def test_without_a_daemon_a_silent_claim_ends_at_the_next_command_after_its_time(alone: World) -> None:
    task = alone.add()
    command(alone, "task.claim", id=task, session="ada")
    alone.clock.run(OUTSIDE - 1)
    assert command(alone, "task.next", session="bob") is None
    alone.clock.run(1)
    assert command(alone, "task.next", session="bob")["id"] == task


def test_without_a_daemon_renewing_is_noted_for_the_next_command(alone: World) -> None:
    task = alone.add()
    command(alone, "task.claim", id=task, session="ada")
    alone.clock.run(OUTSIDE - 1)
    command(alone, "task.renew", id=task, session="ada")
    alone.clock.run(OUTSIDE - 1)
    assert command(alone, "task.next", session="bob") is None


def test_without_a_daemon_time_asleep_does_not_count(alone: World) -> None:
    task = alone.add()
    command(alone, "task.claim", id=task, session="ada")
    alone.clock.suspend(10 * OUTSIDE)
    alone.clock.turn(86_400)
    assert command(alone, "task.next", session="bob") is None


def test_without_a_daemon_a_reboot_gives_everyone_their_whole_time_again(alone: World) -> None:
    task = alone.add()
    command(alone, "task.claim", id=task, session="ada")
    alone.clock.run(OUTSIDE - 1)
    alone.clock.reboot()
    assert command(alone, "task.next", session="bob") is None
    alone.clock.run(OUTSIDE)
    assert command(alone, "task.next", session="bob")["id"] == task


def test_without_a_daemon_the_time_counts_from_when_the_last_one_was_at_work(world: World) -> None:
    task, _, _ = held(world, SessionKind.OUTSIDE)
    world.watch(OUTSIDE - 100, 30)
    world.store.write(world.app.note_pulses)
    world.clock.run(OUTSIDE - 1)
    assert command(world, "task.next", session="bob") is None
    world.clock.run(1 + NOTED_EVERY)
    assert command(world, "task.next", session="bob")["id"] == task


def test_a_session_may_read_without_a_daemon(alone: World) -> None:
    alone.ask("session.new", name="ada")
    alone.start(daemon=False)
    assert alone.ask("task.list", Principal("ada")) == []


def test_without_a_daemon_what_was_never_watched_here_has_its_whole_time_before_it(alone: World) -> None:
    task = alone.add()
    alone.claim(task, "ada")
    alone.ask("lease.take", session="ada", resources=["src/**"])
    alone.store.write(lambda tx: tx.db.run("DELETE FROM pulses"))  # as after adopting a log of another machine
    alone.clock.run(OUTSIDE * 2)
    alone.start(daemon=False)
    alone.add("Another")
    assert alone.status(task) == "doing"
    assert len(alone.ask("lease.list")) == 1
    alone.clock.run(OUTSIDE)
    alone.start(daemon=False)
    alone.add("And another")
    assert alone.status(task) == "todo"
    assert alone.ask("lease.list") == []


def test_the_answers_to_old_keys_are_forgotten_without_a_daemon_too(alone: World) -> None:
    alone.ask("task.add", title="Once", key="k")
    alone.clock.run(25 * 3600)
    alone.start(daemon=False)
    alone.add("Another")
    kept = alone.store.read(lambda tx: tx.db.rows("SELECT count(*) FROM requests"))
    assert kept == [(0,)]


def test_without_a_daemon_a_question_and_a_refused_request_are_signs_of_life_too(alone: World) -> None:
    task = alone.add()
    command(alone, "task.claim", id=task, session="ada")
    alone.clock.run(OUTSIDE - 1)
    command(alone, "mail.inbox", session="ada")
    alone.clock.run(OUTSIDE - 1)
    with pytest.raises(NotFound):
        command(alone, "lease.take", session="ada", resources=["a"], task="T-999")
    with pytest.raises(Refused):
        command(alone, "task.renew", id=task, session="ada", fence=99)
    alone.clock.run(1)
    assert command(alone, "task.next", session="bob") is None
