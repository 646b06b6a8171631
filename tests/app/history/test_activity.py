"""The log in sentences: all that has to do with a session or a task, page by page."""

from __future__ import annotations

from typing import Any

import pytest

from covey.app.context import Principal
from covey.core.history.activity import sentence
from covey.errors import CoveyError, Invalid
from tests.worlds.boards import World


def texts(world: World, **asked: Any) -> list[str]:
    """Return the sentences that fit."""
    return [row["text"] for row in world.ask("trail.list", **asked)]


def test_a_task_s_trail_has_its_runs_merges_and_leases_too(world: World) -> None:
    task, other = world.add("Mend it"), world.add("Another")
    world.claim(task, "ada")
    world.ask("lease.take", session="ada", resources=["src/a.py"], task=task)
    merge = world.hand_in(task, "ada")
    world.claim(other, "bob")
    said = texts(world, task=task)
    assert f"owner added {task}: Mend it" in said
    assert any(merge in text for text in said) and any("lease-" in text for text in said)
    assert not any(other in text or "bob" in text for text in said)


def test_a_session_s_trail_has_what_it_did_and_what_befell_its_work(world: World) -> None:
    first, second = world.add("Mend it"), world.add("Another")
    world.claim(first, "ada")
    merge = world.hand_in(first, "ada")
    world.ask("merge.reject", id=merge, reason="not yet")
    world.claim(second, "bob")
    said = texts(world, session="ada")
    assert any("session ada is known" in text for text in said)
    assert any(f"rejected {merge}: not yet" in text for text in said)
    assert not any("bob" in text for text in said)
    assert said == [text for text in texts(world, limit=1000) if text in said]


def test_the_trail_is_paged_backwards_without_a_gap(world: World) -> None:
    for number in range(25):
        world.add(f"Task {number}")
    whole = world.ask("trail.list", limit=1000)
    pages: list[dict[str, Any]] = []
    before = None
    while page := world.ask("trail.list", newest=True, limit=7, **({"before": before} if before else {})):
        pages = page + pages
        before = page[0]["seq"]
    assert pages == whole
    assert world.ask("trail.list", after=whole[-3]["seq"]) == whole[-2:]


def test_several_kinds_are_asked_for_at_once_and_wrong_ones_refused(world: World) -> None:
    task = world.add("Mend it")
    world.claim(task, "ada")
    world.hand_in(task, "ada")
    kinds = {row["kind"] for row in world.ask("trail.list", kinds="merge.,task.claimed", limit=1000)}
    assert "task.claimed" in kinds and "merge.queued" in kinds
    assert all(kind == "task.claimed" or kind.startswith("merge.") for kind in kinds)
    left = world.ask("trail.list", without="merge.,task.claimed", limit=1000)
    whole = world.ask("trail.list", limit=1000)
    assert left == [row for row in whole if row["kind"] not in kinds]
    both = world.ask("trail.list", task=task, session="ada", kinds="task.")
    assert [row["kind"] for row in both] == ["task.claimed", "task.handed_in"]
    with pytest.raises(Invalid, match="no kind of event"):
        world.ask("trail.list", kinds="task.,nonsense.")
    with pytest.raises(Invalid, match="our own log"):
        world.ask("trail.list", origin="0" * 32, session="ada")


def test_a_session_is_not_told_the_words_of_others_mail(world: World) -> None:
    for name in ("ada", "bob", "carl"):
        world.ask("session.new", name=name)
    world.ask("mail.send", Principal("ada"), to="bob", text="between us")
    (theirs,) = world.ask("trail.list", Principal("carl"), kinds="mail.")
    (ours,) = world.ask("trail.list", Principal("bob"), kinds="mail.")
    assert "between us" not in theirs["text"] and "between us" in ours["text"]


def test_hostile_titles_stand_in_one_plain_line(world: World) -> None:
    world.add("\N{RIGHT-TO-LEFT OVERRIDE}<script>{who}{0}</script>")
    (said,) = texts(world, kinds="task.added")
    assert "<script>{who}{0}</script>" in said and said.isprintable()


def test_another_s_log_is_the_owner_s_to_read(world: World) -> None:
    world.ask("session.new", name="ada")
    with pytest.raises(CoveyError, match="owner"):
        world.ask("trail.list", Principal("ada"), origin="0" * 32)


def test_the_way_back_from_a_time_begins_at_that_time(world: World) -> None:
    for number in range(9):
        world.add(f"Task {number}")
        world.add(f"Task {number} too")
        world.clock.run(60)
    whole = world.ask("trail.list", limit=1000)
    for row in whole[::5]:
        upto = [each for each in whole if each["time"] <= row["time"]]
        assert world.ask("trail.list", newest=True, until=row["time"], limit=4) == upto[-4:]
        assert world.ask("trail.list", newest=True, until=row["time"], before=upto[-1]["seq"]) == upto[:-1]


def test_every_event_names_the_task_that_it_has_to_do_with(world: World) -> None:
    task = world.add("Mend it")
    world.claim(task, "ada")
    world.ask("lease.take", session="ada", resources=["src/a.py"], task=task)
    merge = world.hand_in(task, "ada")
    world.ask("merge.reject", id=merge, reason="not yet")
    told = {row["kind"]: row["task"] for row in world.ask("trail.list", limit=1000)}
    kinds = ("task.added", "task.claimed", "lease.taken", "merge.queued", "merge.rejected")
    assert {kind: told[kind] for kind in kinds} == dict.fromkeys(kinds, task)
    assert told["session.registered"] is None


def test_what_a_task_lost_and_what_a_merge_clashes_with_are_told_in_plain_words() -> None:
    def told(kind: str, subject: str, **data: Any) -> str:
        return sentence(kind, "covey", subject, data)

    assert told("task.edited", "T-1", cleared=["front", "batch"]) == (
        "covey changed T-1: no longer kept for its author, no longer of a run"
    )
    assert told("merge.clashed", "merge-1", against=[]) == "merge-1 cannot be merged with main"
    assert told("merge.clashed", "merge-1", against=["merge-2"]) == "merge-1 cannot be merged with merge-2"


def test_a_merge_joins_the_train_once_in_words() -> None:
    entered = sentence("merge.entered", "covey", "merge-7", {"paths": ["src/a.py"]})
    assert entered == "merge-7 has its place in the train, and changes src/a.py"
    assert sentence("queue.joined", "covey", "queue", {"merges": ["merge-7"]}) == "merge-7 joined the train"
