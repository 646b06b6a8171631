"""The inbox through the App: everything that waits for a person is in it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from covey.app.board.tries import block_if_tried_often, fail
from covey.app.context import Call
from covey.app.fleet.sessions import alert
from covey.app.people import questions
from covey.core.board.waiting import Cause
from covey.core.fleet import sessions
from covey.core.fleet.outcomes import OUTPUT
from covey.core.fleet.sessions import SessionState
from covey.core.fleet.signals import Asks, Wants
from covey.core.fleet.start_limits import Wait
from covey.core.people.alerts import AlertKind
from covey.errors import Denied, Invalid
from tests.worlds.boards import OWNER, Principal, Remembers, World


def kinds(world: World, who: Principal = OWNER) -> list[str]:
    """Return the kinds of what waits, in order."""
    return [row["kind"] for row in world.ask("inbox.list", who)]


def one(world: World) -> Any:
    """Return the one thing that waits."""
    (row,) = world.ask("inbox.list")
    return row


def test_nothing_waits_at_first(world: World) -> None:
    world.claim(world.add(), "ada")
    assert world.ask("inbox.list") == []


def test_a_question_is_listed_until_it_is_answered(world: World) -> None:
    for name in ("ada", "bob"):
        world.claim(world.add(), name)
        asks = Asks("It tells", "toolu_1", Wants.PERMISSION, "shell", "make test")
        task = world.ask("session.list")[-1]["tasks"][0]
        world.do(lambda call, n=name, a=asks, t=task: questions.ask(call, n, a, task=t, run=None, minutes=5))  # type: ignore[misc]
    row = one(world)
    assert (row["kind"], row["tool"], row["about"], row["sessions"]) == (
        "question",
        "shell",
        "make test",
        ["ada", "bob"],
    )
    assert (row["tasks"], row["decisions"]) == (["T-1", "T-2"], ["allow", "always", "deny"])
    world.ask("question.answer", id=row["ids"][0], decision="allow")
    assert one(world)["sessions"] == ["bob"]
    world.ask("question.answer", id=row["ids"][1], decision="deny")
    assert kinds(world) == []


def test_a_blocked_task_is_listed_until_it_is_reopened(world: World) -> None:
    task = world.add("Choose")
    world.ask("task.block", id=task, reason="Which one?")
    row = one(world)
    assert (row["kind"], row["title"], row["text"], row["ids"]) == ("blocked", "Choose", "Which one?", [task])
    world.ask("task.reopen", id=task)
    assert kinds(world) == []


def test_a_merge_that_waits_for_a_word_is_listed_until_it_has_it(world: World) -> None:
    task = world.add("Mend it")
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada", commit="a" * 40)
    row = one(world)
    assert (row["kind"], row["ids"], row["task"], row["session"]) == ("approve", [merge], task, "ada")
    assert row["decisions"] == ["approve", "reject"] and "merge.check is not set" in row["text"]
    world.ask("merge.approve", id=merge)
    assert kinds(world) == []


@pytest.mark.parametrize(
    ("stop", "go", "title"),
    [
        ("queue.pause", "queue.resume", "The merge queue was paused by owner"),
        ("queue.freeze", "queue.thaw", "Main was frozen by owner"),
        ("fleet.pause", "fleet.resume", "The whole fleet was paused by owner"),
    ],
)
def test_what_a_person_stopped_is_listed_until_it_goes_on(world: World, stop: str, go: str, title: str) -> None:
    world.ask(stop)
    assert (one(world)["kind"], one(world)["title"]) == ("queue", title)
    world.ask(go)
    assert kinds(world) == []


def test_a_queue_that_cannot_go_on_is_listed_while_something_waits_in_it(world: World) -> None:
    told = "The merge queue cannot go on: git cannot be run"
    world.do(lambda call: alert(call, AlertKind.QUEUE_STUCK, told, None, None))
    assert kinds(world) == []
    task = world.add()
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada", commit="a" * 40)
    world.ask("merge.approve", id=merge)
    assert (one(world)["key"], one(world)["text"]) == ("queue:stuck", "git cannot be run")
    assert world.ask("queue.show")["troubles"] == [told]
    assert told in world.ask("merge.why", id=merge)["because"]
    assert world.ask("merge.show", id=merge)["waits"] == "for the queue, which cannot go on"


def test_sessions_that_do_not_get_on_for_one_reason_are_one_item(world: World) -> None:
    for name in ("ada", "bob"):
        world.run_session(name)
        world.do(lambda call, n=name: call.put_session(call.known(n), n, sessions.Started()))  # type: ignore[misc]
        event = sessions.Changed(SessionState.LIMITED, "5-hour limit")
        world.do(lambda call, n=name, e=event: call.put_session(call.known(n), n, e))  # type: ignore[misc]
    row = one(world)
    assert (row["kind"], row["title"], row["text"], row["ids"]) == (
        "session",
        "is limited",
        "5-hour limit",
        ["ada", "bob"],
    )


def test_mail_that_wants_an_acknowledgement_is_the_owners_to_see_until_it_has_it(world: World) -> None:
    ada = Principal("ada")
    world.claim(world.add(), "ada")
    world.ask("mail.send", ada, to="owner", text="Done for today")
    world.ask("mail.send", ada, to="owner", subject="Look", text="Please confirm", wants_ack=True, task="T-1")
    row = one(world)
    assert (row["kind"], row["title"], row["text"], row["session"]) == ("mail", "Look", "Please confirm", "ada")
    assert (row["task"], row["decisions"]) == ("T-1", ["ack", "reply"])
    with pytest.raises(Denied):
        kinds(world, ada)  # what waits for the owner is not shown to others
    world.ask("mail.read", id=row["ids"][0])
    assert kinds(world) == ["mail"], "read is not acknowledged"
    world.ask("mail.ack", id=row["ids"][0])
    assert kinds(world) == []


def test_settings_that_make_no_sense_are_listed_until_they_are_mended(world: World) -> None:
    def broken() -> None:
        raise Invalid("covey.toml is not TOML.", hint="Line 3.")

    world.app.context.changed_settings = broken
    for _ in range(2):
        with pytest.raises(Invalid):
            world.app.context.refresh()
        world.clock.run(60)
    row = one(world)
    assert (row["kind"], row["text"]) == ("setting", "covey.toml is not TOML. Line 3.")
    assert row["since"] == 1_750_000_000.0
    world.app.context.changed_settings = lambda: None
    world.app.context.refresh()
    assert kinds(world) == []


def test_what_waits_longest_comes_first_whatever_it_is(world: World) -> None:
    world.ask("fleet.pause")
    world.clock.run(10)
    world.ask("task.block", id=world.add(), reason="Which one?")
    world.clock.run(10)
    world.ask("queue.pause")
    assert kinds(world) == ["queue", "blocked", "queue"]


def _fail(call: Call, id: str, story: str) -> None:
    task = call.tx.task(id)
    assert task is not None
    block_if_tried_often(call, fail(call, task, story), story)


def test_tasks_that_failed_with_the_same_error_have_one_cause_however_it_is_told(world: World) -> None:
    for code, error in ((1, "no shop"), (2, "no shop"), (1, "no till")):
        task = world.add()
        for _ in range(3):
            world.claim(task, "ada")
            story = f"The agent ended with code {code}.\n{OUTPUT}\nTraceback\n  ModuleNotFoundError: {error}\n"
            world.do(lambda call, t=task, s=story: _fail(call, t, s))  # type: ignore[misc]
    first, second, third = world.ask("inbox.list")
    assert first["text"] != second["text"] and {row["kind"] for row in (first, second, third)} == {"blocked"}
    assert first["cause"] == second["cause"] != third["cause"]


def test_sessions_that_wait_for_the_same_are_one_item_however_its_words_change(world: World) -> None:
    for count, name in enumerate(("ada", "bob"), 3):
        world.at_work(name)
        event = sessions.Changed(
            SessionState.LIMITED, f"{count} tasks wait for review, and [board] max_in_review is 3."
        )
        world.do(lambda call, n=name, e=event: call.put_session(call.known(n), n, e))  # type: ignore[misc]
    assert [row["sessions"] for row in world.ask("inbox.list") if row["kind"] == "session"] == [["ada"], ["bob"]]
    wait = Wait("4 tasks wait for review.", news=True, cause=Cause.IN_REVIEW)
    world.app.context.fleet = Remembers(wait=wait)
    assert [row["sessions"] for row in world.ask("inbox.list") if row["kind"] == "session"] == [["ada", "bob"]]
