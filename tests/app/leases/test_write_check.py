"""What a session is told of what it writes, and what holds its work back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from covey.app.context import Call, Principal
from covey.app.leases import write_check
from covey.app.leases.lease_queue import enter
from covey.app.leases.write_check import Advice
from covey.config import Config, Leases
from covey.core.fleet.outcomes import HandIn
from covey.core.leases.leases import MAX_RESOURCES, Origin, Taken
from covey.core.leases.write_policy import Warned, Write
from covey.errors import Refused
from covey.store.engine.transaction import TakesTime
from covey.store.tx import Tx
from tests.worlds.boards import OWNER, World


def now(world: World) -> float:
    return world.clock.now().wall


def check(world: World, who: str, *paths: str, at: Any = "commit", task: str | None = None) -> Advice:
    """Ask what it comes to if a session writes some paths now."""
    made = [Write(path, now(world)) for path in paths]
    return world.do(lambda call: write_check.check(call, who, call.tx.task(task) if task else None, made, at))


def noticed(world: World, who: str, *paths: str, task: str | None = None, at: float | None = None) -> Advice:
    """Notice that a session has written some paths."""
    made = [Write(path, now(world) if at is None else at) for path in paths]
    return world.do(lambda call: write_check.noticed(call, who, call.tx.task(task) if task else None, made, "shell"))


def held_back(world: World, task: str, *paths: str) -> Warned | None:
    found = world.do(lambda call: call.tx.task(task))
    assert found is not None
    made = {path: Write(path, now(world)) for path in paths}
    return world.do(lambda call: write_check.why_held_back(call, found, made or None))


def edits(world: World, who: str) -> list[str]:
    """Return what a session holds because it was the first to write it."""
    found = world.ask("lease.list", session=who)
    return [path for lease in found if lease["origin"] == "edit" for path in lease["resources"]]


def test_a_tool_is_warned_and_a_commit_denied_with_holder_task_expiry_and_ways_on(world: World) -> None:
    task = world.add()
    world.claim(task, "ada")
    lease = world.ask("lease.take", session="ada", resources=["src/**"], reason="moving files")
    tool, commit = check(world, "bob", "src/a.py", at="tool"), check(world, "bob", "src/a.py", at="commit")
    assert tool.deny is None and tool.tell is not None and commit.tell is None and commit.deny is not None
    for text in (tool.tell, commit.deny):
        assert f'src/a.py is held by ada for {task} ("moving files"): {lease["id"]}, for 1 h yet' in text
        assert "covey lease take src/a.py --wait --timeout 60 --as bob" in text
        assert 'covey mail send ada "..." --as bob' in text
    assert "git restore --staged --worktree --source=HEAD -- src/a.py" in commit.deny
    assert check(world, "ada", "src/a.py") == check(world, "bob", "docs/a.md") == Advice()


def test_what_is_typed_is_quoted_and_names_who_speaks_only_where_no_token_does(world: World) -> None:
    world.at_work("rita")
    world.ask("lease.take", session="ada", resources=["odd/**"])
    for who, speaks in (("bob", " --as bob"), ("rita", "")):
        deny = check(world, who, "odd/it's [a].py").deny
        assert deny is not None
        odd, literal = "'odd/it'\"'\"'s [a].py'", "'odd/it'\"'\"'s \\[a\\].py'"
        assert f"(covey lease take {literal} --wait --timeout 60{speaks})" in deny
        assert f'(covey mail send ada "..."{speaks})' in deny
        assert f"(git restore --staged --worktree --source=HEAD -- {odd})" in deny


def test_a_new_file_is_left_out_of_a_commit_and_kept(world: World) -> None:
    world.ask("lease.take", session="ada", resources=["a"])
    made = [Write("a", now(world), new=True)]
    deny = world.do(lambda call: write_check.check(call, "bob", None, made, "commit")).deny
    assert deny is not None and "leave it out (git restore --staged -- a)" in deny


@pytest.mark.parametrize("path", ["SRC/A.py", "src/a.PY", "Src/A.py"])
def test_a_path_that_differs_only_in_case_is_the_same_path(world: World, path: str) -> None:
    world.ask("lease.take", session="ada", resources=["src/A.py"])
    assert check(world, "bob", path).deny is not None


@pytest.mark.parametrize(
    ("policy", "deny", "tell"), [("off", False, False), ("warn", False, True), ("deny", True, False)]
)
def test_the_settings_say_what_a_write_into_anothers_lease_comes_to(
    tmp_path: Path, policy: str, deny: bool, tell: bool
) -> None:
    world = World(tmp_path, Config(leases=Leases(tool=policy, commit=policy)))
    world.ask("lease.take", session="ada", resources=["a"])
    for at in ("tool", "commit"):
        advice = check(world, "bob", "a", at=at)
        assert (advice.deny is not None, advice.tell is not None) == (deny, tell)
    world.store.close()


def test_a_lease_by_a_first_edit_only_warns_and_so_does_the_scope_of_work_that_is_handed_in(world: World) -> None:
    world.ask("session.new", name="ada")
    noticed(world, "ada", "edited.py")
    task = world.add(scope=["src/**"])
    world.claim(task, "ada")
    assert check(world, "bob", "src/a.py").deny is not None
    world.hand_in(task, "ada")
    for path in ("src/a.py", "edited.py"):
        advice = check(world, "bob", path)
        assert advice.deny is None and advice.tell is not None


def test_a_task_that_may_overlap_is_only_warned_of_the_scope_of_others(world: World) -> None:
    one, other = world.add(scope=["src/**"]), world.add(scope=["src/**"], overlap=True)
    world.claim(one, "ada")
    world.claim(other, "bob")
    assert check(world, "bob", "src/a.py", task=other).deny is None


def test_a_task_may_write_only_its_scope_and_never_what_it_is_not_to_touch(world: World) -> None:
    task = world.add(scope=["src/**", "new:docs/*"], do_not_touch=["src/keep/**"])
    world.claim(task, "ada")
    found = world.do(lambda call: call.tx.task(task))
    made = [Write("src/a.py", 1.0), Write("src/keep/b", 1.0), Write("docs/new", 1.0, new=True), Write("docs/old", 1.0)]
    advice = world.do(lambda call: write_check.check(call, "ada", found, made, "commit"))
    assert [finding.path for finding in advice.findings] == ["src/keep/b", "docs/old"]


# Noticing


def test_the_first_edit_of_a_free_path_leases_it_until_the_task_has_landed(world: World) -> None:
    task = world.add()
    world.claim(task, "ada")
    assert noticed(world, "ada", "src/[id].py", "a:b", task=task) == Advice()
    assert edits(world, "ada") == ["src/\\[id\\].py", "./a:b"]
    assert noticed(world, "ada", "src/[id].py", task=task) == Advice()
    assert len(edits(world, "ada")) == 2
    merge = world.hand_in(task, "ada")
    world.ask("merge.land", id=merge, commit="c" * 40)
    assert edits(world, "ada") == []


def test_many_paths_are_leased_in_parts(world: World) -> None:
    world.ask("session.new", name="ada")
    noticed(world, "ada", *(f"src/{number}.py" for number in range(MAX_RESOURCES + 36)))
    assert [len(lease["resources"]) for lease in world.ask("lease.list")] == [MAX_RESOURCES, 36]


def test_an_edit_without_a_task_ends_by_silence(world: World) -> None:
    world.ask("session.new", name="ada")
    noticed(world, "ada", "a")
    world.watch(3600, 60)
    assert edits(world, "ada") == []


def test_a_write_into_anothers_lease_is_noted_once_and_takes_nothing(world: World) -> None:
    task = world.add()
    world.claim(task, "bob")
    lease = world.ask("lease.take", session="ada", resources=["src/**"])
    assert noticed(world, "bob", "src/a.py", "src/a.py", "free.py", task=task).deny is not None
    before = world.everything()
    assert noticed(world, "bob", "src/a.py", "free.py", task=task) == Advice()
    assert world.everything() == before
    (crossed,) = world.ask("log.list", kind="lease.crossed")
    assert crossed["subject"] == lease["id"]
    assert crossed["data"] == {"session": "bob", "task": task, "paths": ["src/a.py"], "how": "shell"}
    assert edits(world, "bob") == ["free.py"]


@pytest.mark.parametrize("how", ["done", "dropped", "another's"])
def test_an_edit_for_a_task_that_is_not_held_any_more_leases_nothing(world: World, how: str) -> None:
    task = world.add()
    world.claim(task, "ada")
    if how == "done":
        world.ask("merge.land", id=world.hand_in(task, "ada"), commit="c" * 40)
    elif how == "dropped":
        world.ask("task.drop", id=task, reason="no")
    else:
        world.ask("task.release", id=task, session="ada")
        world.claim(task, "bob")
    assert noticed(world, "ada", "a.py", task=task) == Advice()
    assert edits(world, "ada") == []
    made = [Write("a.py", now(world))]
    assert not world.do(lambda call: write_check.is_news(call, "ada", call.tx.task(task), made))


def test_a_lease_of_a_task_that_its_holder_left_ends(world: World) -> None:
    task = world.add()
    world.claim(task, "bob")
    stray = world.do(lambda call: enter(call, Taken(holder="ada", resources=("a",), task=task, origin=Origin.EDIT)))
    world.watch(10)
    (over,) = world.ask("log.list", kind="lease.expired")
    assert (over["subject"], over["data"]["why"]) == (stray.id, f"ada left {task}")


def test_a_first_edit_is_leased_though_others_wait_for_it_or_hold_what_looks_like_it(world: World) -> None:
    world.ask("lease.take", session="bob", resources=["**/*.md", "src/b/**"])
    world.ask("lease.take", session="carl", resources=["src/**"], wait=True)
    task = world.add()
    world.claim(task, "ada")
    noticed(world, "ada", "src/a.py", "Makefile", "src/b/c.py", "src/read.md", task=task)
    assert edits(world, "ada") == ["src/a.py", "Makefile"]


def test_everybody_without_a_task_who_crosses_a_lease_is_told_once(world: World) -> None:
    lease = world.ask("lease.take", session="ada", resources=["a"])
    for who in ("bob", "carl"):
        world.ask("session.new", name=who)
        assert noticed(world, who, "a").deny is not None
        assert noticed(world, who, "a") == Advice()
    assert [event["data"]["session"] for event in world.ask("log.list", kind="lease.crossed")] == ["bob", "carl"]
    assert len(world.tables()["crossings"]) == 2
    world.ask("lease.give", id=lease["id"])
    assert world.tables()["crossings"] == [], "they last no longer than the lease"


def test_who_may_lease_a_path_in_its_own_letters_may_write_it(world: World) -> None:
    world.ask("lease.take", session="ada", resources=["docs/README.md"])
    world.clock.run(1)
    world.ask("lease.take", session="bob", resources=["docs/readme.md"])
    assert check(world, "bob", "docs/readme.md") == Advice()
    assert check(world, "carl", "docs/readme.md").deny is not None


def test_many_paths_are_noticed_beside_the_event_loop_and_in_events_of_some_size(world: World) -> None:
    task = world.add()
    world.claim(task, "ada")
    world.ask("lease.take", session="bob", resources=["src/**"])
    made = [Write(f"src/{number}.py", now(world)) for number in range(write_check.MAX_PATHS_PER_EVENT + 1)]

    def notice(tx: Tx) -> Advice:
        call = Call(tx, OWNER, world.app.context)
        return write_check.noticed(call, "ada", call.tx.task(task), made, "commit")

    with pytest.raises(TakesTime):
        world.store.write(lambda tx: notice(replace(tx, patient=False)))
    assert len(world.store.write(notice).findings) == len(made)
    crossed = world.ask("log.list", kind="lease.crossed")
    assert [len(event["data"]["paths"]) for event in crossed] == [write_check.MAX_PATHS_PER_EVENT, 1]


# Handing in


def crossed(world: World) -> tuple[str, int, Any]:
    """Let bob write into what ada holds."""
    task = world.add()
    fence = world.claim(task, "bob")
    lease = world.ask("lease.take", session="ada", resources=["src/a.py"])
    world.clock.run(1)
    noticed(world, "bob", "src/a.py", task=task)
    return task, fence, lease


def test_work_is_held_back_while_the_lease_that_it_crossed_lives_and_the_path_is_in_it(world: World) -> None:
    task, _, lease = crossed(world)
    with pytest.raises(Refused, match=r"cannot be handed in, because it holds .* src/a.py is held by ada") as refusal:
        world.ask("task.handin", id=task, session="bob", commit="c" * 40)
    assert "take it back (git checkout main -- src/a.py; git commit)" in refusal.value.hint
    assert f"A person lets it pass by ending the lease: covey lease give {lease['id']}." in refusal.value.hint
    assert held_back(world, task, "src/a.py", "b") is not None
    assert held_back(world, task, "b") is None
    world.ask("lease.give", id=lease["id"])
    world.ask("task.handin", id=task, session="bob", commit="c" * 40)


def test_however_much_was_crossed_few_questions_tell_what_holds_it_back(world: World) -> None:
    task = world.add()
    world.claim(task, "bob")
    world.ask("lease.take", session="ada", resources=["src/**"])
    world.clock.run(1)
    noticed(world, "bob", *(f"src/{number}.py" for number in range(300)), task=task)
    asked: list[str] = []

    def look(tx: Tx) -> Warned | None:
        def rows(sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            asked.append(sql)
            return tx.db.rows(sql, values)

        counted: Any = SimpleNamespace(rows=rows)
        found = tx.task(task)
        assert found is not None
        return write_check.why_held_back(Call(replace(tx, db=counted), OWNER, world.app.context), found, None)

    told = world.store.read(look)
    assert told is not None and "and 295 more paths" in told.text
    assert len(asked) < 10


def test_a_run_whose_work_is_held_back_has_tried_and_reads_why(world: World) -> None:
    world.at_work("bob")
    task = world.add()
    run = world.begin("bob")
    world.ask("lease.take", session="ada", resources=["src/a.py"])
    world.clock.run(1)
    verdict = HandIn("c" * 40, None, (Write("src/a.py", now(world)), Write("b", now(world))))
    assert world.end(run, verdict).outcome == "failed"
    (tried,) = world.task(task)["tries"]
    assert "src/a.py is held by ada" in tried["what"]
    assert world.status(task) == "todo"


def test_finished_work_is_never_held_back_by_a_lease_that_somebody_took_after_it_was_written(world: World) -> None:
    world.at_work("bob")
    task = world.add()
    run = world.begin("bob")
    written = now(world)
    world.clock.run(1)
    world.ask("lease.take", session="ada", resources=["src/**"])
    world.clock.run(1)
    assert check(world, "bob", "src/a.py", task=task).deny is not None
    noticed(world, "bob", "src/a.py", task=task, at=written)
    world.end(run, HandIn("c" * 40, None, (Write("src/a.py", written),)))
    assert world.status(task) in ("review", "merging")
    assert world.ask("log.list", kind="lease.crossed") == []


def test_who_had_a_path_first_may_write_it_on_though_its_lease_has_ended(world: World) -> None:
    task = world.add()
    world.claim(task, "bob")
    world.ask("lease.take", session="bob", resources=["a"], task=task, ttl=60)
    world.watch(60)
    world.ask("lease.take", session="ada", resources=["a"])
    world.clock.run(1)
    assert check(world, "bob", "a", task=task) == Advice()


def test_who_gave_a_path_back_is_warned_and_never_refused(world: World) -> None:
    task = world.add()
    world.claim(task, "bob")
    mine = world.ask("lease.take", session="bob", resources=["a"], task=task)
    world.ask("lease.give", session="bob", id=mine["id"])
    world.ask("lease.take", session="ada", resources=["a"])
    world.clock.run(1)
    advice = check(world, "bob", "a", task=task)
    assert advice.deny is None and advice.tell is not None
    noticed(world, "bob", "a", task=task)
    assert held_back(world, task) is None


def test_a_run_hands_in_nothing_outside_of_its_scope(world: World) -> None:
    world.at_work("bob")
    task = world.add(scope=["src/**"])
    run = world.begin("bob")
    world.end(run, HandIn("c" * 40, None, (Write("docs/a.md", now(world)),)))
    assert "docs/a.md is not yours to write" in world.task(task)["tries"][0]["what"]


def test_what_was_noticed_of_a_commit_counts_for_nothing_where_its_files_are_older_than_the_lease(world: World) -> None:
    world.at_work("bob")
    task = world.add()
    run = world.begin("bob")
    written = now(world)
    world.clock.run(1)
    world.ask("lease.take", session="ada", resources=["a", "b"])
    world.clock.run(1)
    noticed(world, "bob", "a", "b", task=task)
    assert world.end(run, HandIn("c" * 40, None, (Write("a", written),))).outcome == "handed-in"


class BlindGit:
    """Cannot tell what any commit would land."""

    def lands(self, session: str, commit: str, main: str) -> None:
        """Tell nothing."""


def test_work_of_a_run_at_which_nobody_could_look_comes_again(world: World) -> None:
    world.app.context.commits = BlindGit().lands
    world.at_work("bob")
    task = world.add()
    who, fence = Principal("bob"), world.task(world.begin("bob").task)["fence"]
    with pytest.raises(Refused, match="git could not tell what its commit changes"):
        world.ask("task.handin", who, id=task, fence=fence, commit="c" * 40)
    (run,) = world.store.read(lambda tx: tx.open_runs("bob"))
    assert world.end(run, HandIn("c" * 40, None, None)).outcome == "failed"
    assert "hand it in once more" in world.task(task)["tries"][0]["what"]


def test_a_report_lands_nothing_and_is_never_held_back(world: World) -> None:
    task = world.add(kind="report")
    world.claim(task, "bob")
    world.ask("lease.take", session="ada", resources=["a"])
    noticed(world, "bob", "a", task=task)
    world.ask("task.handin", id=task, session="bob", result="It is so.")
    assert world.status(task) == "done"
