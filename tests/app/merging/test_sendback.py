"""Back to the author: rejected work is first in line for whoever wrote it, and for a person when trying on is vain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from covey.app.board.task_changes import change, step
from covey.app.context import Call
from covey.app.merging import queue_records, sendback
from covey.app.merging.sendback import RejectionCause
from covey.config import Board, Config, Merge
from covey.core.board import tasks
from covey.core.fleet.outcomes import HandIn
from covey.core.fleet.prompts import prompt, resumed
from covey.core.fleet.sessions import COVEY, OWNER
from covey.core.merging import gates, landings, merges
from covey.core.merging.rejection import FAILS, TEXT, Clash, Commit, Since
from tests.worlds.boards import World
from tests.worlds.queue_records import journal, start_gate

BASE, MAIN = "b" * 40, "d" * 40


@dataclass
class Queue:
    """A world in which a gate tests what lands, and whoever plays the merge queue."""

    world: World

    def hand_in(self, name: str = "ada", commit: str = "1" * 40) -> merges.Merge:
        """Let a session hand in the next task that suits it."""
        self.world.end(self.world.begin(name), HandIn(commit))
        return self.merge(str(self.world.ask("merge.list")[-1]["id"]))

    def merge(self, merge_id: str) -> merges.Merge:
        """Return a merge as it is."""
        found = self.world.store.read(lambda tx: tx.get(merges.Merge, merge_id))
        assert found is not None
        return found

    def gate(self, *tested: merges.Merge, base: str = MAIN, passed: bool = False, **told: Any) -> str:
        """Let a gate end on some merges, and return its id."""
        event = gates.Started(test=1, base=base, commit="e" * 40, merges=tuple(each.id for each in tested))
        gate = self.world.do(lambda call: start_gate(call, event))
        ended = gates.Ended(passed=passed, code=0 if passed else 1, step="make test", **told)
        self.world.do(lambda call: queue_records.end_gate(call, gate.id, ended))
        return gate.id

    def land(self, merge: merges.Merge, commit: str, before: str = BASE) -> None:
        """Bring a merge onto main."""

        def write(call: Call) -> None:
            made = journal(call, landings.Made(branch="main", before=before, commit=commit, merges=(merge.id,)))
            passed = step(call, merge, merges.Passed(commit, onto=before), COVEY)
            step(call, passed, merges.Landed(commit, made.id), COVEY)

        self.world.do(write)

    def fail(self, merge: merges.Merge, fingerprint: str = "f00d", **more: Any) -> merges.Merge | None:
        """Let the gate fail on a merge alone, and reject it for that."""
        gate = self.gate(merge, fingerprint=fingerprint, failures=("test_a",), summary="ERROR: a")
        return self.world.do(lambda call: sendback.rejected(call, merge, RejectionCause(FAILS, [gate], **more)))

    def alerts(self) -> list[str]:
        """Return what a person was told."""
        return [each["message"] for each in self.world.ask("alert.list")]


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Queue]:
    folder = tmp_path / "gated"
    folder.mkdir()
    world = World(folder, Config(merge=Merge(check="make test"), board=Board(tries=3)))
    yield Queue(world)
    assert world.folded() == world.tables()
    world.store.close()


def test_failed_work_goes_first_to_its_author_with_the_story(line: Queue) -> None:
    task = line.world.add()
    line.world.at_work()
    line.world.at_work("bob")
    merge = line.hand_in()
    line.world.add("Urgent", priority=9)
    after = line.fail(merge)
    assert after is not None
    assert (after.state, after.cause, after.fingerprint) == (merges.MergeState.REJECTED, FAILS, "f00d")
    assert after.reason == 'With main, "make test" fails (test_a).'
    shown = line.world.task(task)
    assert (shown["status"], shown["front"]) == ("todo", "ada")
    assert line.world.begin("bob").task != task
    run = line.world.begin()
    assert run.task == task
    brief = line.world.work(run).brief
    for text in (prompt(brief), resumed(brief)):
        assert shown["tries"][-1]["what"] in text and f"covey merge log {merge.id}" in text
    assert "handed in and did not land" in resumed(brief) and "Mend it" in resumed(brief)
    assert line.alerts() == []


def test_a_merge_that_has_ended_is_not_rejected_again(line: Queue) -> None:
    line.world.add()
    line.world.at_work()
    merge = line.hand_in()
    line.fail(merge)
    before = line.world.everything()["events"]
    assert line.world.do(lambda call: sendback.rejected(call, merge, RejectionCause(FAILS))) is None
    assert line.world.everything()["events"] == before


@pytest.mark.parametrize(
    ("file", "path"), [("lib.py", "lib.py"), ("lib.py/part.py", "lib.py"), ("lib.py", "lib.py/deep/part.py")]
)
def test_a_conflict_tells_whose_work_it_meets(line: Queue, file: str, path: str) -> None:
    line.world.add("First", body="Make it round.")
    line.world.add("Second")
    line.world.at_work()
    line.world.at_work("bob")
    theirs, mine = line.hand_in("ada"), line.hand_in("bob", "2" * 40)
    line.land(theirs, MAIN)
    commits = (Commit(MAIN, "ada", "First", (path,)), Commit(BASE, "eve", "By hand", (path, "lib")))
    since = Since(base="a" * 40, onto=MAIN, paths=("lib.py", "own.py"), commits=commits)
    clash = Clash((file,), f"CONFLICT (content): Merge conflict in {file}")
    after = line.world.do(lambda call: sendback.rejected(call, mine, RejectionCause(TEXT, since=since, clash=clash)))
    assert after is not None and after.fingerprint and after.cause == TEXT
    whose = f"{theirs.task} ({theirs.id}), commit {BASE[:12]}"
    assert after.reason == f"It conflicts with main in {file}, changed meanwhile by {whose}."
    told = line.world.task(mine.task)["tries"][-1]["what"]
    assert f'- {theirs.task}: "First" by ada (it changed {path} too)\n  > Make it round.\n' in told
    assert f'  commit {MAIN[:12]} by ada: "First"' in told and f"git merge {MAIN[:12]}" in told
    assert "By hand" not in told


def test_work_that_passed_before_another_landed_is_told_so(line: Queue) -> None:
    for title in ("First", "Second", "Third"):
        line.world.add(title)
    for name in ("ada", "bob", "cem"):
        line.world.at_work(name)
    one, two, mine = line.hand_in("ada"), line.hand_in("bob", "2" * 40), line.hand_in("cem", "3" * 40)
    line.land(one, BASE, "a" * 40)
    line.gate(mine, base=BASE, passed=True)
    line.land(two, MAIN, BASE)
    line.fail(mine)
    told = line.world.task(mine.task)["tries"][-1]["what"]
    assert "Your branch passes alone" in told
    assert f"it fails together with {two.task}, landed since" in told
    assert one.task not in told


# When trying on is vain


def test_the_same_failure_twice_in_a_row_needs_a_person(line: Queue) -> None:
    task = line.world.add()
    line.world.at_work()
    line.fail(line.hand_in())
    line.fail(line.hand_in(commit="2" * 40))
    shown = line.world.task(task)
    assert shown["status"] == "blocked" and "in the same way twice" in shown["reason"]
    assert len(line.alerts()) == 1 and "What failed" in shown["tries"][-1]["what"]


def test_another_failure_is_another_try_until_there_were_enough(line: Queue) -> None:
    task = line.world.add()
    line.world.at_work()
    for number in range(3):
        assert line.world.status(task) == "todo"
        line.fail(line.hand_in(commit=str(number) * 40), fingerprint=f"{number}")
    shown = line.world.task(task)
    assert shown["status"] == "blocked" and shown["reason"].startswith("Tried 3 times") and len(line.alerts()) == 1


def test_a_failure_that_comes_again_after_another_is_not_twice_in_a_row(line: Queue) -> None:
    line.world.config = replace(line.world.config, board=Board(tries=9))
    line.world.start(daemon=True)
    task = line.world.add()
    line.world.at_work()
    for number, fingerprint in enumerate(["a", "b", "a", "", ""]):
        line.fail(line.hand_in(commit=str(number) * 40), fingerprint=fingerprint)
        assert line.world.status(task) == "todo"


def test_work_without_a_new_commit_needs_a_person_at_once(line: Queue) -> None:
    task = line.world.add()
    line.world.at_work()
    line.fail(line.hand_in(), fingerprint="a")
    line.fail(line.hand_in(), fingerprint="b")
    shown = line.world.task(task)
    assert shown["status"] == "blocked" and "without a new commit" in shown["reason"]
    assert len(line.alerts()) == 1


def test_a_person_who_lets_it_be_tried_anew_gives_it_a_whole_new_chance(line: Queue) -> None:
    task = line.world.add()
    line.world.at_work()
    for number in range(2):
        line.fail(line.hand_in(commit=str(number) * 40))
    line.world.ask("task.edit", id=task, status="todo")
    line.fail(line.hand_in(commit="2" * 40))
    assert line.world.status(task) == "todo"
    line.fail(line.hand_in(commit="3" * 40))
    assert line.world.status(task) == "blocked"


def test_what_a_person_rejected_counts_for_nothing_but_a_try(line: Queue) -> None:
    task = line.world.add()
    line.world.at_work()
    line.world.ask("merge.reject", id=line.hand_in().id, reason="Not nice")
    line.fail(line.hand_in())
    assert line.world.status(task) == "todo"


# Whose it is then


@pytest.mark.parametrize("verb", ["session.stop", "session.remove"])
def test_failed_work_of_an_author_who_works_no_more_goes_to_anyone(line: Queue, verb: str) -> None:
    task = line.world.add()
    line.world.at_work()
    line.world.at_work("bob")
    merge = line.hand_in()
    line.world.ask(verb, name="ada")
    line.fail(merge)
    assert line.world.begin("bob").task == task


@pytest.mark.parametrize("verb", ["session.stop", "session.remove"])
def test_failed_work_waits_for_a_person_if_its_author_is_gone_and_nobody_works(line: Queue, verb: str) -> None:
    line.world.add()
    line.world.at_work()
    merge = line.hand_in()
    line.world.ask(verb, name="ada")
    line.fail(merge)
    shown = line.world.task(merge.task)
    assert shown["status"] == "blocked" and shown["reason"].startswith("No session is at work")


def of_the_owner(line: Queue) -> merges.Merge:
    """Queue a branch that a person has made."""
    task = line.world.add()
    line.world.ask("task.claim", id=task)

    def write(call: Call) -> merges.Merge:
        held = call.tx.task(task)
        assert held is not None
        change(call, held, tasks.hand_in(held, OWNER, review=False, result=None, commit="1" * 40), OWNER)
        work = merges.Queued(task=task, session=OWNER, branch="mine", commit="1" * 40)
        return call.tx.begin(merges.Merge, work, OWNER)

    return line.world.do(write)


def test_failed_work_of_a_person_goes_to_any_session_at_work_on_the_branch_that_it_came_from(line: Queue) -> None:
    line.world.at_work("bob")
    merge = of_the_owner(line)
    line.fail(merge)
    run = line.world.begin("bob")
    assert run.task == merge.task
    assert line.world.work(run).elsewhere == "1" * 40


def test_failed_work_of_a_person_waits_for_one_if_nobody_works(line: Queue) -> None:
    merge = of_the_owner(line)
    line.fail(merge)
    shown = line.world.task(merge.task)
    assert shown["status"] == "blocked" and shown["reason"].startswith("No session is at work")
    assert len(line.alerts()) == 1


def test_failures_of_the_queue_on_a_merge_are_counted_over_restarts_and_then_it_is_blocked(line: Queue) -> None:
    for name in ("ada", "bob"):
        line.world.at_work(name)
    for title in ("Bad", "Good"):
        line.world.add(title)
    bad, good = line.hand_in("ada"), line.hand_in("bob", "2" * 40)
    for merge, times in ((good, 2), (bad, 3)):
        for number in range(1, times + 1):
            assert line.merge(merge.id).state is merges.MergeState.QUEUED
            line.world.do(lambda call, merge=merge: sendback.stumbled(call, merge.id, "git broke.", 3))  # type: ignore[misc]
            line.world.start(daemon=True)
            assert number == 3 or f"({number} of 3 times): git broke." in (line.merge(merge.id).reason or "")
    assert line.merge(bad.id).state is merges.MergeState.REJECTED and line.world.status(bad.task) == "blocked"
    assert "3 times in a row" in (line.merge(bad.id).reason or "")
    assert line.merge(good.id).state is merges.MergeState.QUEUED
