"""Ways in which a queue could stand still, spin, or do wrong to good work; and that it goes none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from covey.core.merging.merges import Merge, MergeState
from covey.core.merging.queue.train import Cancel
from covey.loops.merge_queue.foreign_commits import ForeignCommit, ForeignOutcome
from covey.loops.merge_queue.main_branch import MainBranch, MainPosition
from covey.loops.merge_queue.queue_loop import Queue
from covey.loops.merge_queue.queue_state import RestartQueue
from covey.store.tx import Tx
from tests.end_to_end.merging.test_queue import _ends, _good, _pushed, _remote, _settings, _theirs
from tests.loops.gates.test_gates import Yard
from tests.worlds.projects import GOOD, SHELL, Line
from tests.worlds.queues import Change, fill, is_through, merges
from tests.worlds.repositories import commit_files, git_out
from tests.worlds.serving import wait_until

WAITS = "touch $OUTSIDE/testing; while [ ! -e $OUTSIDE/go ]; do sleep 0.05; done"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path / "yard", "off")
    yield made
    made.leave()


# Standing still


def test_a_paused_queue_rests_whatever_there_is_to_do_when_it_goes_on(yard: Yard) -> None:
    looks = []

    class Paused(Queue):
        async def tick(self) -> bool:
            looks.append(1)
            return False

    async def run() -> None:
        queue = Paused(yard.runtime)
        queue.train.todo.append(Cancel(1))
        running = asyncio.ensure_future(queue.run())
        for _ in range(100):
            await asyncio.sleep(0)
        running.cancel()

    yard.loop.run_until_complete(run())
    assert len(looks) == 1


def test_what_is_dropped_while_the_queue_is_paused_is_tested_no_more(made: Callable[..., Line]) -> None:
    line = made(f'[merge]\ncheck = "{WAITS}"\nslots = 1\n')
    line.up()
    fill(line, [_good("a"), _good("b")])
    wait_until(line.mark("testing").exists, "a gate")
    line.ok("merge", "pause")
    line.ok("merge", "drop", merges(line)[0]["id"])
    wait_until(lambda: line.events("gate.lost") != [], "the end of the gate")
    line.mark("go").touch()
    line.ok("merge", "resume")
    wait_until(lambda: merges(line)[1]["state"] == "landed", "the other")
    assert merges(line)[0]["state"] == "withdrawn"


def test_what_others_pushed_does_not_move_a_frozen_main(made: Callable[..., Line]) -> None:
    line = made('remote = ""\n', _settings(more='push = "origin"\n'))
    colleague = _remote(line)
    remote, away = line.folder / "remote.git", line.folder / "away.git"
    theirs = _theirs(line, colleague, "values/theirs", "fine\n")
    remote.rename(away)
    line.up()
    fill(line, [_good("a")])
    _ends(line)
    line.ok("merge", "freeze")
    before = line.git("rev-parse", "main")
    away.rename(remote)
    wait_until(lambda: theirs in line.git("for-each-ref", "refs/covey/fetched"), "a look at the remote")
    fill(line, [_good("b")])
    wait_until(lambda: merges(line)[-1]["state"] == "passed", "what passed")
    assert line.git("rev-parse", "main") == before
    line.ok("merge", "thaw")
    wait_until(lambda: _pushed(line) == line.git("rev-parse", "main") != before, "the push")
    assert theirs in line.git("rev-list", "main").splitlines()


def test_what_leaves_the_queue_while_main_moves_is_in_the_journal(yard: Yard) -> None:
    git_out(yard.root, "checkout", "-q", "-b", "work")
    commit_files(yard.root, {"b.txt": "b\n"}, "Work")
    commit = git_out(yard.root, "rev-parse", "HEAD")
    git_out(yard.root, "checkout", "-q", "main")
    line = MainBranch(yard.runtime)

    async def land() -> MainPosition | None:
        at = await line.look()
        assert at is not None
        return await line.land(at, commit, is_frozen=False)

    assert yard.loop.run_until_complete(land()) == MainPosition(commit, commit)
    assert git_out(yard.root, "rev-parse", "main") == commit
    (made,) = yard.store.read(lambda tx: tx.last_landings(5))
    assert (made.before, made.commit, made.merges) == (yard.head, commit, ())
    (told,) = [event for event in yard.store.read(lambda tx: list(tx.all_events())) if event.kind == "alert.raised"]
    assert "git revert" in told.data


def test_a_queue_that_is_stopped_while_it_tidies_tidies_at_its_end(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    branches = [f"covey/A-{number}" for number in (1, 2)]
    for number, branch in enumerate(branches, 1):
        git_out(yard.root, "branch", branch)
        landed = Merge(id=f"M-{number}", ordinal=number, task=f"A-{number}", session="s", branch=branch)
        row = replace(landed, commit=yard.head, state=MergeState.LANDED)
        yard.store.run([partial(_put, merge=row)])[0].result()
    line = MainBranch(yard.runtime)

    async def stopped_at_the_first() -> None:
        tidying = asyncio.ensure_future(line.tidy())
        drop = yard.runtime.worktrees.drop_branch

        def stop(branch: str, tip: str) -> bool:
            yard.loop.call_soon_threadsafe(tidying.cancel)
            return drop(branch, tip)

        with monkeypatch.context() as patch:
            patch.setattr(yard.runtime.worktrees, "drop_branch", stop)
            with pytest.raises(asyncio.CancelledError):
                await tidying

    yard.loop.run_until_complete(stopped_at_the_first())
    yard.loop.run_until_complete(line.tidy())
    assert git_out(yard.root, "branch", "--list", "covey/*") == ""


def _put(tx: Tx, merge: Merge) -> None:
    tx.insert(merge)


def _differing(yard: Yard, check: str, theirs: dict[str, str]) -> str:
    """Let a remote have a commit that we lack, and we one that it lacks; return the remote's."""
    house = yard.app.context
    house.config = replace(house.config, merge=replace(house.config.merge, check=check, push="origin"))
    git_out(yard.root, "checkout", "-q", "-b", "theirs")
    commit_files(yard.root, theirs, "Theirs")
    git_out(yard.root, "checkout", "-q", "main")
    commit_files(yard.root, {"b.txt": "b\n"}, "Ours")
    return git_out(yard.root, "rev-parse", "theirs")


def _bring_in(yard: Yard, queue: Queue, theirs: str) -> None:
    """Look once at what the remote has, let what is tested for that come to its end, and look again."""

    async def look() -> bool:
        line = await queue.main.look()
        assert line is not None
        await queue.remote.bring_in(line, theirs)
        probe = queue.foreign.probe
        if probe is None or probe.task is None or probe.is_over():
            return False
        await probe.task
        return True

    while yard.loop.run_until_complete(look()):
        pass


def _gates(yard: Yard) -> int:
    return len(yard.store.read(lambda tx: tx.last_gates(10)))


def test_what_others_pushed_and_is_red_is_not_tested_again_and_again(yard: Yard) -> None:
    theirs = _differing(yard, "test ! -e red", {"red": "red\n"})
    queue = Queue(yard.runtime)
    for _ in range(3):
        _bring_in(yard, queue, theirs)
    assert _gates(yard) == 2
    commit_files(yard.root, {"c.txt": "c\n"}, "Perhaps it is mended")
    _bring_in(yard, queue, theirs)
    assert _gates(yard) == 4


def test_what_others_pushed_waits_for_the_users_files_without_holding_up_the_queue_or_being_tested_again(
    yard: Yard,
) -> None:
    theirs = _differing(yard, "true", {"theirs.txt": "theirs\n"})
    queue = Queue(yard.runtime)
    (yard.root / "theirs.txt").write_text("mine\n")
    for _ in range(2):
        _bring_in(yard, queue, theirs)
    (told,) = [event for event in yard.store.read(lambda tx: list(tx.all_events())) if event.kind == "alert.raised"]
    assert "theirs.txt" in told.data
    (yard.root / "theirs.txt").unlink()
    with pytest.raises(RestartQueue):
        _bring_in(yard, queue, theirs)
    assert _gates(yard) == 1
    assert theirs in git_out(yard.root, "rev-list", "main").splitlines()


def test_what_passed_the_checks_of_before_is_tested_by_those_of_now(yard: Yard) -> None:
    theirs = _differing(yard, "true", {"red": "red\n"})
    queue, before = Queue(yard.runtime), git_out(yard.root, "rev-parse", "main")

    async def look() -> None:
        line = await queue.main.look()
        assert line is not None
        await queue.remote.bring_in(line, theirs)
        assert queue.foreign.probe is not None and queue.foreign.probe.task is not None
        await queue.foreign.probe.task

    yard.loop.run_until_complete(look())
    house = yard.app.context
    house.config = replace(house.config, merge=replace(house.config.merge, check="test ! -e red"))
    _bring_in(yard, queue, theirs)
    assert git_out(yard.root, "rev-parse", "main") == before
    assert _gates(yard) == 3


def test_a_gate_that_was_killed_says_nothing_of_what_others_pushed(yard: Yard) -> None:
    left = yard.root.parent / "left"
    left.write_text("xx")
    killed = f"test ! -s {left} || {{ truncate -s -1 {left}; kill -9 $$; }}"
    theirs = _differing(yard, killed, {"theirs.txt": "theirs\n"})
    with pytest.raises(RestartQueue):
        _bring_in(yard, Queue(yard.runtime), theirs)
    assert _gates(yard) == 3


def test_one_thing_at_a_time_is_tested_for_its_own_sake(yard: Yard) -> None:
    theirs = _differing(yard, "true", {"theirs.txt": "theirs\n"})
    queue = Queue(yard.runtime)
    one, other = (ForeignCommit(name, theirs, "Merge it\n", is_local=False) for name in ("one", "other"))

    async def begin() -> None:
        at = await queue.main.look()
        assert at is not None
        for each in (one, other):
            assert (await queue.foreign.take(at, each)).outcome is ForeignOutcome.TESTING
        probe = queue.foreign.probe
        assert probe is not None and probe.task is not None and probe.name == one.name
        await probe.task
        assert probe.passed_by() and queue.foreign.find(other, at.head) is None

    yard.loop.run_until_complete(begin())
    assert _gates(yard) == 1


def test_the_queue_hears_what_is_asked_while_it_tests_what_others_pushed(made: Callable[..., Line]) -> None:
    slow = f"test ! -e values/theirs || {{ {WAITS}; }}"
    rest = '"\nslots = 1\npush = "origin"\n'
    line = made('remote = ""\n', f'[merge]\ncheck = "{slow}{rest}')
    colleague = _remote(line)
    _theirs(line, colleague, "values/theirs", "fine\n")
    line.up()
    fill(line, [_good("a")])
    wait_until(line.mark("testing").exists, "a test of what they pushed")
    (gate,) = [event["subject"] for event in line.events("gate.started")[1:]]
    line.settings('remote = ""\n', f'[merge]\ncheck = "true && {slow}{rest}')
    wait_until(lambda: [event["subject"] for event in line.events("gate.lost")] == [gate], "its end")
    line.mark("go").touch()
    wait_until(lambda: _pushed(line) == line.git("rev-parse", "main"), "the push")
    assert sorted(line.git("ls-tree", "--name-only", "main:values").splitlines()) == ["a", "theirs"]


# Gates that say nothing


def test_a_gate_that_the_kernel_kills_is_tried_again(made: Callable[..., Line]) -> None:
    line = made('[merge]\ncheck = "test -e $OUTSIDE/b || { mv $OUTSIDE/a $OUTSIDE/b 2>/dev/null || touch $OUTSIDE/a; '
                'kill -9 $$; }"\n')  # fmt: skip
    line.up()
    fill(line, [_good("a")])
    assert _ends(line) == {"landed": ["values/a"]}
    assert len(line.events("gate.lost")) == 2


def test_who_works_beside_a_gate_that_nothing_holds_does_no_harm_to_what_it_tests(made: Callable[..., Line]) -> None:
    line = made()
    line.settings(f'[merge]\ncheck = "echo x >> {line.root}/notes"\n')
    tools = line.folder / "tools"
    tools.mkdir()
    (tools / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tools / "bwrap").chmod(0o755)
    line.env["PATH"] = f"{tools}:{line.env['PATH']}"
    line.up()
    fill(line, [_good("a")])
    wait_until(lambda: any("notes in your checkout" in alert for alert in line.alerts()), "an alert")
    assert [merge["state"] for merge in merges(line)] == ["queued"]
    line.settings(f'[merge]\ncheck = "echo x >> {line.root}/notes"\nisolate = "off"\n')
    line.ok("merge", "retry", merges(line)[0]["id"])
    wait_until(lambda: is_through(line), "the end")
    assert _ends(line) == {"landed": ["values/a"]}


# What cannot be read


def test_a_commit_that_lacks_its_parent_keeps_nobody_else_out(made: Callable[..., Line]) -> None:
    line = made(_settings())
    line.up()
    text = f"tree {line.git('rev-parse', 'main^{tree}')}\nparent {'2' * 40}\n"
    text += "author A <a@example.org> 1 +0000\ncommitter A <a@example.org> 1 +0000\n\nOdd\n"
    (line.folder / "odd").write_text(text)
    odd = line.git("hash-object", "-t", "commit", "-w", "--literally", str(line.folder / "odd"))
    with line.client() as client:
        task = client.post("/api/board", {"title": "0: odd"})["id"]
        client.ask("POST", f"/api/board/{task}/claim", {"session": "ann", "overlap": True}).good()
        client.ask("POST", f"/api/board/{task}/handin", {"session": "ann", "branch": "odd", "commit": odd}).good()
    fill(line, [_good("a")])
    assert _ends(line) == {"rejected": ["odd"], "landed": ["values/a"]}
    assert "cannot read all of" in merges(line)[0]["reason"]


# An integration branch


def test_an_integration_branch_is_what_main_is_to_sessions(made: Callable[..., Line]) -> None:
    body = """set -e
git commit -q --allow-empty -m Mine
git update-ref refs/heads/next HEAD 2>>{outside}/said && exit 3
git push -q . HEAD:next 2>>{outside}/said && exit 4
touch {outside}/begun; while [ ! -e {outside}/go ]; do sleep 0.05; done
git merge -q --no-edit next
echo mine >mine.txt; git add .; git commit -qm Mine
"""
    line = made(SHELL, GOOD, 'branch = "next"\n')
    before = line.git("rev-parse", "main")
    task = {"title": "Merge next", "body": body.replace("{outside}", str(line.outside))}
    running = line.begin("run", "--agent", "sh", line.tasks(task))
    wait_until(lambda: line.mark("begun").exists() or running.poll() is not None, "the session")
    assert line.git("rev-parse", "next") == before
    fill(line, [Change("held.txt", "theirs\n")])
    wait_until(lambda: line.git("ls-tree", "--name-only", "next", "held.txt") != "", "what landed")
    line.ok("lease", "take", "held.txt", "--as", "bob", "--reason", "I go on with it")
    line.mark("go").touch()
    said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert line.git("show", "next:mine.txt") == "mine"
    assert line.git("rev-parse", "main") == before
    assert "a session cannot change the branch next" in line.mark("said").read_text()


def test_what_a_person_has_merged_by_hand_meanwhile_is_not_merged_once_more(yard: Yard) -> None:
    theirs = _differing(yard, "true", {"theirs.txt": "theirs\n"})
    queue = Queue(yard.runtime)
    queue.remote.behind = theirs
    git_out(yard.root, "merge", "-q", "-m", "By hand", "theirs")
    before = git_out(yard.root, "rev-parse", "main")

    async def look() -> bool:
        await queue.remote.push()
        probe = queue.foreign.probe
        if probe is None or probe.task is None or probe.is_over():
            return False
        await probe.task
        return True

    try:
        while yard.loop.run_until_complete(look()):
            pass
    except RestartQueue:
        pass
    assert git_out(yard.root, "rev-parse", "main") == before
