"""The merge queue of a real daemon: groups, clashes, red mains, restarts; and its log, stepped through again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from covey.core.fold import State
from covey.core.merging.queue import train
from covey.core.merging.queue.train_log import Heard, take
from covey.store.engine import rows
from covey.store.engine.sqlite import SqliteStore
from tests.worlds.projects import Line, alive
from tests.worlds.queues import Change, fill, is_through, merges
from tests.worlds.serving import wait_until

CHECK = "! grep -rqs broken values && ! { test -e values/left && test -e values/right; }"
"""Fails with a file that is broken, and with two that do not go together."""


def _settings(*, slots: int = 2, more: str = "") -> str:
    return f'[merge]\ncheck = "{CHECK}"\nslots = {slots}\n{more}'


def _good(name: str) -> Change:
    return Change(f"values/{name}", f"{name}\n")


def _bad(name: str) -> Change:
    return Change(f"values/{name}", "broken\n")


def _ends(line: Line) -> dict[str, list[str]]:
    """Wait until every merge has ended, and return the titles of their tasks by how they did."""
    wait_until(lambda: is_through(line), "the end of the queue")
    titles = {task["id"]: title for title, task in line.board().items()}
    found: dict[str, list[str]] = {}
    for merge in merges(line):
        found.setdefault(merge["state"], []).append(titles[merge["task"]].partition(": ")[2])
    return found


def _landings(line: Line) -> list[dict[str, Any]]:
    return [event["data"] for event in line.events("landing.made")]


# The log again


@dataclass
class Told:
    """What a log says was to be done, and what was done."""

    wanted: list[tuple[str, Any]] = field(default_factory=list)
    done: list[tuple[str, Any]] = field(default_factory=list)
    tests: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The tests that the train of the moment has wanted."""

    def want(self, action: train.Action) -> None:
        match action:
            case train.Start(test):
                self.tests[test.id] = test.changes
            case train.Land(_, changes):
                self.wanted.append(("landing", changes))
            case train.Reject(id, reason):
                self.wanted.append(("rejection", (id, reason.value)))
            case train.Halt():
                self.wanted.append(("halt", ()))

    def do(self, kind: str, subject: str, payload: Any) -> None:
        if kind == "gate.started":
            wanted = self.tests.get(payload.test, ())  # what comes from a remote is none of the train's
            assert [merge for merge in wanted if merge in payload.merges] == [*payload.merges]
        elif kind == "landing.made" and payload.merges:
            self.done.append(("landing", payload.merges))
        elif kind == "merge.rejected":
            self.done.append(("rejection", (subject, payload.cause)))
        elif kind == "queue.halted":
            self.done.append(("halt", ()))


def _assert_the_log_says_the_same(line: Line) -> None:
    """Assert that the daemon did exactly what anybody finds who steps through its log."""
    line.ok("down")
    store = SqliteStore(line.state / "covey.db")
    try:
        events = store.read(lambda tx: list(tx.all_events()))
    finally:
        store.close()
    told, heard, folded = Told(), Heard(), State()
    for event in events:
        payload = rows.decode_payload(event.kind, event.data)
        folded.fold(
            seq=event.seq, at=event.time, actor=event.actor, kind=event.kind, subject=event.subject, payload=payload
        )
        if event.kind == "queue.began":
            told.tests = {}
        heard, actions = take(heard, event.kind, _row(folded, event.kind, event.subject), payload)
        for action in actions:
            told.want(action)
        told.do(event.kind, event.subject, payload)
    assert told.done == told.wanted
    assert heard.train.running == {}  # so that every test that was wanted has begun, or was given up


def _row(folded: State, kind: str, subject: str) -> Any:
    tables = {"merge": "merges", "gate": "gates", "queue": "queue", "fleet": "fleet"}
    table = tables.get(kind.partition(".")[0])
    return None if table is None else folded.tables[table].get(subject)


# What becomes of a queue


def test_ten_good_ones_land_in_groups_and_two_bad_ones_go_back(made: Callable[..., Line]) -> None:
    line = made(_settings())
    line.up()
    queue = [_good(str(number)) for number in range(10)]
    queue[3:3] = [_bad("x")]
    queue[8:8] = [_bad("y")]
    fill(line, queue)
    ended = _ends(line)
    assert sorted(ended["landed"]) == [f"values/{number}" for number in range(10)]
    assert sorted(ended["rejected"]) == ["values/x", "values/y"]
    assert len(_landings(line)) < 10
    assert [landing["commit"] for landing in _landings(line)] == line.main_values()[-2::-1]
    line.assert_green(CHECK)
    for merge in merges(line):
        if merge["state"] == "rejected":
            task = line.task(merge["task"])
            assert "check" in task["tries"][0]["what"]
    _assert_the_log_says_the_same(line)


def test_of_two_that_cannot_be_merged_the_later_goes_back_and_the_rest_lands(made: Callable[..., Line]) -> None:
    line = made(_settings())
    line.up()
    fill(line, [_good("a"), Change("shared", "one\n"), Change("shared", "two\n"), _good("b")])
    ended = _ends(line)
    assert ended == {"landed": ["values/a", "shared", "values/b"], "rejected": ["shared"]}
    (back,) = [merge for merge in merges(line) if merge["state"] == "rejected"]
    assert "conflicts with main in shared" in back["reason"]
    assert line.git("show", "main:shared") == "one"
    _assert_the_log_says_the_same(line)


def test_of_two_that_fail_only_together_the_later_goes_back(made: Callable[..., Line]) -> None:
    line = made(_settings())
    line.up()
    fill(line, [_good("a"), _good("left"), _good("b"), _good("right")])
    ended = _ends(line)
    assert len(ended["landed"]) == 3
    assert ended["rejected"][0] in ("values/left", "values/right")
    line.assert_green(CHECK)
    _assert_the_log_says_the_same(line)


def test_what_is_more_important_is_tested_first(made: Callable[..., Line]) -> None:
    line = made(_settings(slots=1, more='strategy = "serial"\n'))
    line.up()
    line.ok("pause")  # the whole fleet, and the queue with it
    tasks = fill(line, [_good("a"), _good("b"), _good("c")])
    with line.client() as client:
        client.ask("PATCH", f"/api/board/{tasks[2]}", {"priority": 5}).good()
    line.ok("resume")
    _ends(line)
    order = [merge for landing in _landings(line) for merge in landing["merges"]]
    by_id = {merge["id"]: merge["task"] for merge in merges(line)}
    assert [by_id[merge] for merge in order] == [tasks[2], tasks[0], tasks[1]]


def test_a_red_main_halts_the_queue_with_one_alert_until_main_is_mended(
    made: Callable[..., Line],
) -> None:
    line = made(_settings(), files={"values/0": "0\n"})
    line.up()
    fill(line, [_good("green")])
    _ends(line)  # the gate is known to work: what fails from now on is a commit's fault
    line.commit("values/red", "broken\n", "Break main")
    fill(line, [_good("a"), _good("b")])
    wait_until(lambda: line.events("queue.halted") != [], "the halt")
    assert line.landed()[0] == "Break main" and len(line.landed()) == 2
    assert {merge["state"] for merge in merges(line)} <= {"landed", "queued", "testing"}
    (told,) = [alert for alert in line.alerts() if "main itself fails its gate" in alert]
    assert "Break main" in told
    line.git("rm", "-q", "values/red")
    line.git_at_last("commit", "-q", "-m", "Mend main")
    assert sorted(_ends(line)["landed"]) == ["values/a", "values/b", "values/green"]
    assert len([alert for alert in line.alerts() if "main itself fails its gate" in alert]) == 1
    _assert_the_log_says_the_same(line)


def test_nothing_is_tested_while_the_queue_is_paused(made: Callable[..., Line]) -> None:
    line = made(_settings())
    line.up()
    line.ok("pause")
    fill(line, [_good("a")])
    with line.client() as client:
        client.ask("POST", "/api/queue/pause", {}).good()
    line.ok("resume")
    line.commit("other", "by the user\n")
    with line.client() as client:
        client.ask("POST", "/api/queue/freeze", {}).good()  # more news, after which nothing happens either
    assert line.events("gate.started") == []
    with line.client() as client:
        client.ask("POST", "/api/queue/thaw", {}).good()
        client.ask("POST", "/api/queue/resume", {}).good()
    assert _ends(line) == {"landed": ["values/a"]}


def test_a_frozen_main_stays_and_takes_what_passed_when_it_is_thawed(made: Callable[..., Line]) -> None:
    line = made(_settings())
    line.up()
    with line.client() as client:
        client.ask("POST", "/api/queue/freeze", {"reason": "A release"}).good()
    before = line.git("rev-parse", "main")
    fill(line, [_good("a"), _good("b"), _bad("x")])
    wait_until(lambda: [m["state"] for m in merges(line)] == ["passed", "passed", "rejected"], "both passed")
    assert line.git("rev-parse", "main") == before
    with line.client() as client:
        client.ask("POST", "/api/queue/thaw", {}).good()
    assert sorted(_ends(line)["landed"]) == ["values/a", "values/b"]
    (landing,) = _landings(line)
    assert landing["before"] == before
    assert landing["commit"] == line.git("rev-parse", "main")


def test_a_daemon_that_is_killed_in_the_middle_goes_on(made: Callable[..., Line]) -> None:
    gate = f"touch $OUTSIDE/testing; while [ ! -e $OUTSIDE/go ]; do sleep 0.05; done; {CHECK}"
    line = made(f'[merge]\ncheck = "{gate}"\nslots = 2\n')
    pid = line.up()
    fill(line, [_good("a"), _bad("x"), _good("b")])
    wait_until(line.mark("testing").exists, "a gate")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), "the end of the daemon")
    line.mark("go").touch()
    line.up()
    ended = _ends(line)
    assert (sorted(ended["landed"]), ended["rejected"]) == (["values/a", "values/b"], ["values/x"])
    line.assert_green(CHECK)
    _assert_the_log_says_the_same(line)


def test_work_lands_on_an_integration_branch_when_told(made: Callable[..., Line]) -> None:
    line = made(_settings(more='branch = "next"\n'))
    line.up()
    before = line.git("rev-parse", "main")
    fill(line, [_good("a"), _good("b")])
    assert sorted(_ends(line)["landed"]) == ["values/a", "values/b"]
    assert line.git("rev-parse", "main") == before
    assert sorted(line.git("ls-tree", "--name-only", "next:values").splitlines()) == ["a", "b"]


def test_what_landed_is_taken_out_again_by_a_merge_that_is_tested_too(made: Callable[..., Line]) -> None:
    line = made(_settings())
    line.up()
    fill(line, [_good("a"), _good("b")])
    _ends(line)
    first = next(merge for merge in merges(line) if line.task(merge["task"])["title"].endswith("/a"))
    line.ok("merge", "revert", first["id"], "It was wrong.")
    wait_until(lambda: {merge["state"] for merge in merges(line)} == {"landed", "reverted"}, "the revert")
    assert line.git("ls-tree", "--name-only", "main:values").splitlines() == ["b"]
    assert line.landed()[0].startswith("Revert")
    line.assert_green(CHECK)
    _assert_the_log_says_the_same(line)


# The remote


def _remote(line: Line) -> Path:
    """Give a project a remote to which what lands is pushed, and return a colleague's clone of it."""
    line.git("clone", "-q", "--bare", str(line.root), str(line.folder / "remote.git"))
    line.git("remote", "add", "origin", str(line.folder / "remote.git"))
    colleague = line.folder / "colleague"
    line.git("clone", "-q", str(line.folder / "remote.git"), str(colleague))
    return colleague


def _theirs(line: Line, colleague: Path, path: str, text: str) -> str:
    """Let a colleague push a commit to the remote."""
    (colleague / "values").mkdir(exist_ok=True)
    (colleague / path).write_text(text)
    line.git("add", ".", at=colleague)
    line.git("-c", "user.name=Eve", "-c", "user.email=eve@example.org", "commit", "-q", "-m", "Theirs", at=colleague)
    line.git("push", "-q", at=colleague)
    return line.git("rev-parse", "HEAD", at=colleague)


def _pushed(line: Line) -> str:
    return line.git("rev-parse", "main", at=line.folder / "remote.git")


def test_what_landed_is_pushed(made: Callable[..., Line]) -> None:
    line = made(_settings(more='push = "origin"\n'))
    _remote(line)
    line.up()
    fill(line, [_good("a"), _good("b")])
    _ends(line)
    wait_until(lambda: _pushed(line) == line.git("rev-parse", "main"), "the push")
    wait_until(lambda: len(line.events("landing.pushed")) == len(_landings(line)), "the end of the push")


def test_what_others_pushed_meanwhile_is_tested_with_ours_before_both_are_pushed(made: Callable[..., Line]) -> None:
    line = made(_settings(more='push = "origin"\n'))
    colleague = _remote(line)
    line.up()
    fill(line, [_good("a")])
    _ends(line)
    wait_until(lambda: _pushed(line) == line.git("rev-parse", "main"), "the first push")
    line.git("pull", "-q", at=colleague)
    theirs = _theirs(line, colleague, "values/theirs", "fine\n")
    fill(line, [_good("b")])
    wait_until(lambda: is_through(line), "the end of the queue")
    wait_until(lambda: _pushed(line) == line.git("rev-parse", "main") != theirs, "the second push")
    assert theirs in line.git("rev-list", "main").splitlines()
    assert sorted(line.git("ls-tree", "--name-only", "main:values").splitlines()) == ["a", "b", "theirs"]
    tested = {event["data"]["commit"] for event in line.events("gate.started")}
    assert {landing["commit"] for landing in _landings(line)} <= tested
    _assert_the_log_says_the_same(line)


def test_what_others_pushed_and_changes_nothing_here_comes_in_once(made: Callable[..., Line]) -> None:
    line = made('remote = ""\n', _settings(more='push = "origin"\n'))  # new work begins from our own main
    colleague = _remote(line)
    line.up()
    theirs = _theirs(line, colleague, "values/a", "for a moment\n")
    line.git("-c", "user.name=Eve", "-c", "user.email=eve@example.org", "revert", "--no-edit", theirs, at=colleague)
    line.git("push", "-q", at=colleague)
    fill(line, [_good("b")])
    wait_until(lambda: is_through(line), "the end of the queue")
    wait_until(lambda: _pushed(line) == line.git("rev-parse", "main") != theirs, "the push")
    assert theirs in line.git("rev-list", "main").splitlines()
    assert len(_landings(line)) == 2
    _assert_the_log_says_the_same(line)


def test_what_others_pushed_and_is_red_stays_out_and_a_person_is_told_once(made: Callable[..., Line]) -> None:
    line = made('remote = ""\n', _settings(more='push = "origin"\n'))  # new work begins from our own main
    colleague = _remote(line)
    line.up()
    theirs = _theirs(line, colleague, "values/theirs", "broken\n")
    fill(line, [_good("a")])
    _ends(line)
    wait_until(lambda: any("not_pushed" in event["data"]["type"] for event in line.events("alert.raised")), "an alert")
    assert theirs not in line.git("rev-list", "main").splitlines()
    assert _pushed(line) == theirs
