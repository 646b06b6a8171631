"""Exactly once for the caller: every operation of the OpenAPI document that changes something, asked twice."""

from __future__ import annotations

import itertools
import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from covey.core.events import FIRST, Event, digest
from covey.runners.process import ProcessRunner
from tests.worlds.serving import Client, Daemon, Reply, all_events, check_database, serving, wait_until

COMMIT = "c" * 40
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Wish:
    """A request that is good now, and another one that its key does not fit."""

    method: str
    path: str
    body: dict[str, Any]
    other: tuple[str, dict[str, Any] | bytes] | None = None

    def send(self, client: Client, key: str | None) -> Reply:
        """Ask."""
        return client.ask(self.method, self.path, self.body, key=key)

    def send_other(self, client: Client, key: str) -> Reply:
        """Ask for something else under the same key."""
        path, body = self.other or (self.path, self.body | {"reason": "another one"})
        return client.ask(self.method, path, body, key=key)


Recipe = Callable[[Client, str], Wish]
"""Prepares, as the owner, what a request of a session needs, and returns that request."""
RECIPES: dict[str, Recipe] = {}


def recipe(operation: str) -> Callable[[Recipe], Recipe]:
    """Enter a recipe for an operation."""

    def enter(function: Recipe) -> Recipe:
        RECIPES[operation] = function
        return function

    return enter


def fresh(word: str) -> str:
    """Return a name that was not used before."""
    return f"{word}-{next(_numbers)}"


def held(owner: Client, session: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """Return the path of a task that the session holds, and what it says to prove that."""
    task = owner.post("/api/board", {"title": fresh("work")} | more)["id"]
    fence = owner.post(f"/api/board/{task}/claim", {"session": session})["fence"]
    return f"/api/board/{task}", {"session": session, "fence": fence}


def merge(owner: Client, session: str) -> str:
    """Return the path of a merge that waits in the queue."""
    path, own = held(owner, session)
    owner.post(f"{path}/handin", own | {"commit": COMMIT})
    return f"/api/merges/{owner.get('/api/merges?limit=1000')[-1]['id']}"


def lease(owner: Client, session: str) -> tuple[str, dict[str, Any]]:
    """Return the path of a lease that the session holds, and what it says to prove that."""
    taken = owner.post("/api/leases", {"session": session, "resources": [f"{fresh('path')}/**"]})
    return f"/api/leases/{taken['id']}", {"session": session, "fence": taken["fence"]}


def message(owner: Client, session: str) -> str:
    """Return the path of a message to the session."""
    return f"/api/mail/{owner.post('/api/mail', {'to': session, 'text': fresh('hello')})['id']}"


@recipe("task.add")
def _(owner: Client, session: str) -> Wish:
    return Wish("POST", "/api/board", {"title": fresh("task")}, ("/api/board", {"title": fresh("task")}))


@recipe("task.import")
def _(owner: Client, session: str) -> Wish:
    tasks, others = [{"key": fresh("k"), "title": "A"}], [{"key": fresh("k"), "title": "B"}]
    return Wish("POST", "/api/board/import", {"tasks": tasks}, ("/api/board/import", {"tasks": others}))


@recipe("task.edit")
def _(owner: Client, session: str) -> Wish:
    task = owner.post("/api/board", {"title": fresh("edit")})["id"]
    return Wish("PATCH", f"/api/board/{task}", {"title": fresh("new")}, (f"/api/board/{task}", {"priority": 3}))


@recipe("task.claim")
def _(owner: Client, session: str) -> Wish:
    one, two = (owner.post("/api/board", {"title": fresh("claim")})["id"] for _ in range(2))
    return Wish("POST", f"/api/board/{one}/claim", {"session": session}, (f"/api/board/{two}/claim", {}))


@recipe("task.next")
def _(owner: Client, session: str) -> Wish:
    for _ in range(2):
        owner.post("/api/board", {"title": fresh("next")})
    return Wish("POST", "/api/claim", {"session": session}, ("/api/claim", {"session": session, "overlap": True}))


@recipe("task.renew")
def _(owner: Client, session: str) -> Wish:
    path, own = held(owner, session)
    return Wish("POST", f"{path}/renew", own, (f"{path}/renew", {"session": session}))


@recipe("task.handin")
def _(owner: Client, session: str) -> Wish:
    path, own = held(owner, session)
    return Wish("POST", f"{path}/handin", own | {"commit": COMMIT}, (f"{path}/handin", own | {"commit": "d" * 40}))


@recipe("task.release")
def _(owner: Client, session: str) -> Wish:
    path, own = held(owner, session)
    return Wish("POST", f"{path}/release", own)


@recipe("task.block")
def _(owner: Client, session: str) -> Wish:
    path, own = held(owner, session)
    return Wish("POST", f"{path}/block", own | {"reason": "which one?"})


@recipe("task.drop")
def _(owner: Client, session: str) -> Wish:
    task = owner.post("/api/board", {"title": fresh("drop")})["id"]
    return Wish("POST", f"/api/board/{task}/drop", {"reason": "not needed"})


@recipe("task.move")
def _(owner: Client, session: str) -> Wish:
    one, two = (owner.post("/api/board", {"title": fresh("move")})["id"] for _ in range(2))
    return Wish("POST", f"/api/board/{two}/move", {"above": one}, (f"/api/board/{two}/move", {"to": "last"}))


@recipe("task.reopen")
def _(owner: Client, session: str) -> Wish:
    task = owner.post("/api/board", {"title": fresh("reopen")})["id"]
    owner.post(f"/api/board/{task}/drop", {"reason": "not needed"})
    return Wish("POST", f"/api/board/{task}/reopen", {}, ("/api/board/T-0/reopen", {}))


@recipe("task.bulk")
def _(owner: Client, session: str) -> Wish:
    ids = [owner.post("/api/board", {"title": fresh("bulk")})["id"] for _ in range(2)]
    other = ("/api/board/bulk", {"ids": ids, "drop": "not needed"})
    return Wish("POST", "/api/board/bulk", {"ids": ids, "changes": {"priority": 4}}, other)


@recipe("session.new")
def _(owner: Client, session: str) -> Wish:
    name = fresh("session")
    return Wish("POST", "/api/sessions", {"name": name}, ("/api/sessions", {"name": name, "wip": 2}))


def told(owner: Client, *verbs: str, agent: str = "scripted") -> str:
    """Return the path of a session that covey runs and that was told these things."""
    path = f"/api/sessions/{owner.post('/api/sessions', {'name': fresh('run'), 'agent': agent})['name']}"
    for verb in verbs:
        owner.post(f"{path}/{verb}")
    return path


def telling(verb: str, *before: str) -> None:
    """Enter the recipe of a verb that tells a session what to do, after what has to be said before."""

    def make(owner: Client, session: str) -> Wish:
        one, two = told(owner, *before), told(owner, *before)
        return Wish("POST", f"{one}/{verb}", {}, (f"{two}/{verb}", {}))

    recipe(f"session.{verb}")(make)


telling("start")
telling("stop", "start")
telling("pause", "start")
telling("resume", "start", "pause")
telling("restart")
telling("remove", "start")


def at_work(owner: Client, *verbs: str) -> str:
    """Return the path of a session that holds a task, whose conversation a person can take over, after these verbs."""
    path = told(owner, "start", agent="claude")
    held(owner, path.rpartition("/")[2])
    for verb in verbs:
        owner.post(f"{path}/{verb}")
    return path


@recipe("session.attach")
def _(owner: Client, session: str) -> Wish:
    one, two = at_work(owner), at_work(owner)
    return Wish("POST", f"{one}/attach", {}, (f"{two}/attach", {}))


@recipe("session.giveback")
def _(owner: Client, session: str) -> Wish:
    one, two = at_work(owner, "attach"), at_work(owner, "attach")
    return Wish("POST", f"{one}/giveback", {}, (f"{two}/giveback", {}))


@recipe("session.send")
def _(owner: Client, session: str) -> Wish:
    path = f"/api/sessions/{TYPIST}/send"
    return Wish("POST", path, {"text": fresh("typed")}, (path, {"text": "something else"}))


@recipe("fleet.pause")
def _(owner: Client, session: str) -> Wish:
    hush(owner)
    owner.post("/api/resume")
    return Wish("POST", "/api/pause", {}, ("/api/pause", b"{ }"))


@recipe("fleet.resume")
def _(owner: Client, session: str) -> Wish:
    hush(owner)
    return Wish("POST", "/api/resume", {}, ("/api/resume", b"{ }"))


def hush(owner: Client) -> None:
    """Stop whoever would begin to work when the fleet goes on."""
    for each in owner.get("/api/sessions"):
        if each["kind"] == "run" and each["goal"] in ("working", "paused") and each["name"] != TYPIST:
            owner.post(f"/api/sessions/{each['name']}/stop")


@recipe("fleet.start")
def _(owner: Client, session: str) -> Wish:
    told(owner)
    return Wish("POST", "/api/start", {"all": True}, ("/api/start", {"all": False}))


@recipe("fleet.stop")
def _(owner: Client, session: str) -> Wish:
    told(owner, "start")
    return Wish("POST", "/api/stop", {}, ("/api/stop", b"{ }"))


@recipe("session.add")
def _(owner: Client, session: str) -> Wish:
    own = {"names": [fresh("run")], "agent": "scripted"}
    return Wish("POST", "/api/sessions/add", own, ("/api/sessions/add", own | {"role": "qa"}))


def no_try_at_work(owner: Client) -> None:
    """Wait until no gate is tried any more."""
    events = all_events(owner)
    tries = [each["subject"] for each in events if each["kind"] == "gate.started" and each["data"]["slot"] == 0]
    wait_until(
        lambda: all(owner.get(f"/api/gates/{gate}")["state"] != "running" for gate in tries), "the end of all tries"
    )


@recipe("gate.try")
def _(owner: Client, session: str) -> Wish:
    no_try_at_work(owner)
    return Wish("POST", "/api/gates/try", {"check": "true"}, ("/api/gates/try", {"check": "false"}))


@recipe("gate.stop")
def _(owner: Client, session: str) -> Wish:
    no_try_at_work(owner)
    gate = owner.post("/api/gates/try", {"check": "sleep 60"})["id"]
    return Wish("POST", f"/api/gates/{gate}/stop", {}, (f"/api/gates/{gate}/stop", b"{ }"))


@recipe("clean.run")
def _(owner: Client, session: str) -> Wish:
    task = owner.post("/api/board", {"title": fresh("long"), "body": fresh("b") * 5000})["id"]
    owner.post(f"/api/board/{task}/drop", {"reason": "too long"})
    return Wish("POST", "/api/clean", {}, ("/api/clean", b"{ }"))


def some_batch(owner: Client) -> dict[str, Any]:
    """Return what starts a batch for which a task waits."""
    name = fresh("batch")
    owner.post("/api/board", {"title": fresh("task"), "batch": name})
    return {"name": name, "sessions": 1, "agent": "scripted"}


@recipe("batch.start")
def _(owner: Client, session: str) -> Wish:
    wish = some_batch(owner)
    return Wish("POST", "/api/batches", wish, ("/api/batches", wish | {"sessions": 2}))


@recipe("batch.stop")
def _(owner: Client, session: str) -> Wish:
    one, two = (owner.post("/api/batches", some_batch(owner))["name"] for _ in range(2))
    return Wish("POST", f"/api/batches/{one}/stop", {}, (f"/api/batches/{two}/stop", {}))


@recipe("session.token")
def _(owner: Client, session: str) -> Wish:
    one, two = (owner.post("/api/sessions", {"name": fresh("speaker")})["name"] for _ in range(2))
    return Wish("POST", f"/api/sessions/{one}/token", {}, (f"/api/sessions/{two}/token", {}))


def asked(owner: Client, session: str) -> str:
    """Return the path of a question that the session asks."""
    return f"/api/questions/{owner.post('/api/questions', {'session': session, 'text': fresh('what')})['id']}"


@recipe("question.ask")
def _(owner: Client, session: str) -> Wish:
    own = {"session": session, "text": fresh("what")}
    return Wish("POST", "/api/questions", own, ("/api/questions", own | {"choices": ["this"]}))


@recipe("push.ask")
def _(owner: Client, session: str) -> Wish:
    own = {"session": session, "remote": "origin", "refs": [fresh("branch")]}
    return Wish("POST", "/api/pushes", own, ("/api/pushes", own | {"refs": ["main"]}))


@recipe("question.answer")
def _(owner: Client, session: str) -> Wish:
    path = f"{asked(owner, session)}/answer"
    reply = {"decision": "reply", "text": "This one"}
    return Wish("POST", path, reply, (path, {"decision": "deny"}))


@recipe("question.take")
def _(owner: Client, session: str) -> Wish:
    one, two = asked(owner, session), asked(owner, session)
    for path in (one, two):
        owner.post(f"{path}/answer", {"decision": "deny"})
    return Wish("POST", f"{one}/take", {"session": session}, (f"{two}/take", {"session": session}))


def proposed(owner: Client) -> str:
    """Return the path of a proposal that a session has just made."""
    task = owner.post("/api/board", {"title": fresh("task")})["id"]
    name = fresh("asker")
    owner.post("/api/sessions", {"name": name})
    token = owner.post(f"/api/sessions/{name}/token")["token"]
    made = owner.ask("PATCH", f"/api/board/{task}", {"title": "Another"}, token=token).good(202)
    return f"/api/proposals/{made['id']}"


@recipe("proposal.accept")
def _(owner: Client, session: str) -> Wish:
    one, two = proposed(owner), proposed(owner)
    return Wish("POST", f"{one}/accept", {}, (f"{two}/accept", {}))


@recipe("proposal.decline")
def _(owner: Client, session: str) -> Wish:
    one, two = proposed(owner), proposed(owner)
    return Wish("POST", f"{one}/decline", {}, (f"{two}/decline", {}))


@recipe("proposal.withdraw")
def _(owner: Client, session: str) -> Wish:
    one, two = proposed(owner), proposed(owner)
    return Wish("POST", f"{one}/withdraw", {}, (f"{two}/withdraw", {}))


@recipe("device.invite")
def _(owner: Client, session: str) -> Wish:
    return Wish("POST", "/api/devices/invite", {}, ("/api/devices/invite", {"label": fresh("laptop")}))


@recipe("device.revoke")
def _(owner: Client, session: str) -> Wish:
    one, two = (f"/api/devices/{owner.post('/api/devices/invite')['id']}/revoke" for _ in range(2))
    return Wish("POST", one, {}, (two, {}))


@recipe("permit.grant")
def _(owner: Client, session: str) -> Wish:
    return Wish("POST", "/api/permits", {"about": fresh("make")}, ("/api/permits", {"about": fresh("make")}))


@recipe("permit.revoke")
def _(owner: Client, session: str) -> Wish:
    one, two = (f"/api/permits/{owner.post('/api/permits', {'about': fresh('make')})['id']}" for _ in range(2))
    return Wish("POST", f"{one}/revoke", {}, (f"{two}/revoke", {}))


@recipe("lease.take")
def _(owner: Client, session: str) -> Wish:
    own = {"session": session, "resources": [f"{fresh('src')}/**"]}
    return Wish("POST", "/api/leases", own, ("/api/leases", own | {"shared": True}))


@recipe("lease.renew")
def _(owner: Client, session: str) -> Wish:
    path, own = lease(owner, session)
    return Wish("POST", f"{path}/renew", own, (f"{path}/renew", {"session": session}))


@recipe("lease.give")
def _(owner: Client, session: str) -> Wish:
    path, own = lease(owner, session)
    return Wish("POST", f"{path}/give", own, (f"{path}/give", {"session": session}))


@recipe("mail.send")
def _(owner: Client, session: str) -> Wish:
    letter = {"session": session, "to": "everyone", "text": fresh("hello")}
    return Wish("POST", "/api/mail", letter, ("/api/mail", letter | {"text": "something else"}))


@recipe("mail.read")
def _(owner: Client, session: str) -> Wish:
    one, two = message(owner, session), message(owner, session)
    return Wish("POST", f"{one}/read", {"session": session}, (f"{two}/read", {"session": session}))


@recipe("mail.ack")
def _(owner: Client, session: str) -> Wish:
    one, two = message(owner, session), message(owner, session)
    return Wish("POST", f"{one}/ack", {"session": session}, (f"{two}/ack", {"session": session}))


AUTHOR = "carl"
"""Who wrote what others review: nobody approves work of their own."""


@recipe("merge.approve")
def _(owner: Client, session: str) -> Wish:
    one, two = merge(owner, AUTHOR), merge(owner, AUTHOR)
    return Wish("POST", f"{one}/approve", {}, (f"{two}/approve", {}))


@recipe("comment.write")
def _(owner: Client, session: str) -> Wish:
    path = held(owner, session)[0]
    body = {"task": path.rpartition("/")[2], "text": fresh("why")}
    return Wish("POST", "/api/comments", body, ("/api/comments", body | {"text": fresh("how")}))


def comment(owner: Client, session: str) -> str:
    """Return the path of a draft on the work of a task that the session holds."""
    task = held(owner, session)[0].rpartition("/")[2]
    return f"/api/comments/{owner.post('/api/comments', {'task': task, 'text': fresh('why')})['id']}"


@recipe("comment.edit")
def _(owner: Client, session: str) -> Wish:
    path = comment(owner, session)
    return Wish("PATCH", path, {"text": fresh("new")}, (path, {"text": fresh("other")}))


@recipe("comment.remove")
def _(owner: Client, session: str) -> Wish:
    path = comment(owner, session)
    return Wish("POST", f"{path}/remove", {}, (f"{comment(owner, session)}/remove", {}))


@recipe("comment.send")
def _(owner: Client, session: str) -> Wish:
    task = held(owner, session)[0].rpartition("/")[2]
    owner.post("/api/comments", {"task": task, "text": fresh("why")})
    body = {"task": task}
    return Wish("POST", "/api/comments/send", body, ("/api/comments/send", body | {"text": "and more"}))


@recipe("merge.land")
def _(owner: Client, session: str) -> Wish:
    path = merge(owner, session)
    return Wish("POST", f"{path}/land", {"commit": COMMIT}, (f"{path}/land", {"commit": "d" * 40}))


@recipe("merge.reject")
def _(owner: Client, session: str) -> Wish:
    return Wish("POST", f"{merge(owner, AUTHOR)}/reject", {"reason": "red"})


@recipe("merge.hold")
def _(owner: Client, session: str) -> Wish:
    path = merge(owner, session)
    owner.post(f"{path}/approve")
    return Wish("POST", f"{path}/hold", {})


@recipe("merge.drop")
def _(owner: Client, session: str) -> Wish:
    return Wish("POST", f"{merge(owner, session)}/drop", {})


@recipe("merge.retry")
def _(owner: Client, session: str) -> Wish:
    one, two = merge(owner, session), merge(owner, session)
    for path in (one, two):
        owner.post(f"{path}/reject", {"reason": "red"})
    return Wish("POST", f"{one}/retry", {}, (f"{two}/retry", {}))


@recipe("merge.revert")
def _(owner: Client, session: str) -> Wish:
    path = merge(owner, session)
    owner.post(f"{path}/approve")
    owner.post(f"{path}/land", {"commit": COMMIT})
    return Wish("POST", f"{path}/revert", {})


@recipe("merge.queue")
def _(owner: Client, session: str) -> Wish:
    one = {"branch": fresh("feature"), "commit": uuid.uuid4().hex + "00000000", "title": "Add it"}
    return Wish("POST", "/api/merges", one, ("/api/merges", one | {"title": "Another"}))


@recipe("queue.pause")
def _(owner: Client, session: str) -> Wish:
    return Wish("POST", "/api/queue/pause", {})


@recipe("queue.resume")
def _(owner: Client, session: str) -> Wish:
    owner.post("/api/queue/pause")
    return Wish("POST", "/api/queue/resume", {}, ("/api/queue/resume", b"{ }"))


@recipe("queue.freeze")
def _(owner: Client, session: str) -> Wish:
    return Wish("POST", "/api/queue/freeze", {})


@recipe("queue.thaw")
def _(owner: Client, session: str) -> Wish:
    owner.post("/api/queue/freeze")
    return Wish("POST", "/api/queue/thaw", {}, ("/api/queue/thaw", b"{ }"))


@recipe("log.prune")
def _(owner: Client, session: str) -> Wish:
    task = owner.post("/api/board", {"title": fresh("long"), "body": fresh("b") * 5000})["id"]
    owner.post(f"/api/board/{task}/drop", {"reason": "too long"})
    return Wish("POST", "/api/log/prune", {}, ("/api/log/prune", b"{ }"))


@recipe("log.import")
def _(owner: Client, session: str) -> Wish:
    one, two = foreign_log(), foreign_log()
    return Wish("POST", "/api/log/import", one, ("/api/log/import", two))


@recipe("log.forget")
def _(owner: Client, session: str) -> Wish:
    one, two = foreign_log(), foreign_log()
    for origin in (one, two):
        owner.post("/api/log/import", origin)
    return Wish("POST", "/api/log/forget", {"log": one["log"]}, ("/api/log/forget", {"log": two["log"]}))


def foreign_log() -> dict[str, Any]:
    """Return the beginning of another project's log."""
    log = uuid.uuid4().hex
    event = Event(1, 1.5, "covey", "log.begun", "log", json.dumps({"log": log, "project": "other"}), None, FIRST)
    told = event.__dict__ | {"prev": event.prev.hex(), "hash": digest(event).hex()}
    return {"log": log, "events": [told]}


# The walk


TYPIST = "typist"
SETTINGS = f"""
[merge]
review = true
review_role = "review"
[log]
keep_megabytes = 0
[agents.{TYPIST}]
command = ["cat"]
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Serve a project in which work is reviewed, with two sessions, one at work to which can be typed, all at rest."""
    with serving(tmp_path / "repo", settings=SETTINGS) as served:
        begin_main(served.project.root)
        with served.client() as client:
            for name in ("ada", "bob"):
                client.post("/api/sessions", {"name": name, "role": "review"})
            begin_to_type(client)
            client.post("/api/pause")
        try:
            yield served
        finally:
            served.stop()  # it would begin anew what is stopped
            runs = served.project.state / "runs"
            for run in runs.iterdir():
                ProcessRunner(runs).stop(run.name)


def begin_main(folder: Path) -> None:
    """Make a first commit, whoever git takes us for."""
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "begin"], cwd=folder, check=True)


def begin_to_type(owner: Client) -> None:
    """Let a session begin a run that reads what is typed."""
    owner.post("/api/board", {"title": "Type", "assignee": TYPIST})
    owner.post("/api/sessions", {"name": TYPIST, "agent": TYPIST})
    owner.post(f"/api/sessions/{TYPIST}/start")

    def is_at_work() -> bool:
        return any(each["name"] == TYPIST and each["state"] == "working" for each in owner.get("/api/sessions"))

    wait_until(is_at_work, "the typist at work")


def asked_for(daemon: Daemon) -> int:
    """Return how many events there are of what somebody asked for; covey's loops write theirs at any time."""
    with daemon.client() as client:
        return sum(event["actor"] != "covey" or event["kind"].startswith("log.") for event in all_events(client))


TRACELESS = ("task.renew", "lease.renew", "session.send")
"""What changes no row, and is done once all the same."""


LAST = ("gate.try", "fleet.stop")
"""What is asked after all else: a gate is tried while no other is, and whoever was stopped hears nothing more."""


def operations(client: Client) -> dict[str, dict[str, Any]]:
    """Return every operation of the OpenAPI document that changes something; each must have a recipe."""
    paths = client.get("/api/openapi.json")["paths"]
    found = {
        operation["operationId"]: operation
        for methods in paths.values()
        for method, operation in methods.items()
        if method != "get" and operation.get("security") != []  # who has no token yet has no keys either
    }
    assert set(found) == set(RECIPES), "an operation has no recipe, or a recipe no operation"
    return {name: found[name] for name in (*(each for each in found if each not in LAST), *LAST)}


def landed_by_review(owner: Client, operation: str, wish: Wish) -> None:
    """Let what has to be landed through its review first."""
    if operation == "merge.land":
        owner.post(wish.path.removesuffix("/land") + "/approve")


def wishes(owner: Client, session: str, names: list[str]) -> dict[str, Wish]:
    """Return a good request for each of these operations."""
    made: dict[str, Wish] = {}
    owner.post("/api/pause")
    for name in names:
        made[name] = RECIPES[name](owner, session)
        landed_by_review(owner, name, made[name])
    return made


def test_every_change_asked_twice_with_one_key_happens_once_and_is_answered_the_same(daemon: Daemon) -> None:
    with daemon.client() as owner:
        for name in operations(owner):
            wish = wishes(owner, "ada", [name])[name]
            before = asked_for(daemon)
            first = wish.send(owner, f"key of {name}")
            after = asked_for(daemon)
            assert first.status in (200, 201), (name, first)
            assert after > before or name in TRACELESS, f"{name} left no trace in the log"
            again = wish.send(owner, f"key of {name}")
            assert (again.status, again.body) == (first.status, first.body), name
            assert asked_for(daemon) == after, f"{name} happened twice"


def test_a_key_that_was_used_for_another_request_is_refused(daemon: Daemon) -> None:
    with daemon.client() as owner:
        for name in operations(owner):
            wish = wishes(owner, "ada", [name])[name]
            assert wish.send(owner, f"key of {name}").status in (200, 201), name
            before = asked_for(daemon)
            other = wish.send_other(owner, f"key of {name}")
            assert other.status == 422, (name, other)
            assert set(other.json) == {"error", "hint"}
            assert asked_for(daemon) == before, name


FLEET = ("fleet.resume", "fleet.pause", "fleet.start")
"""What is asked before anybody is told to work who would then begin."""


def test_the_same_answer_is_given_after_a_kill(daemon: Daemon) -> None:
    with daemon.client() as owner:
        names = [name for name in sorted(operations(owner)) if name not in ("task.next", *FLEET, *LAST)]
        first: dict[str, Reply] = {}
        made: dict[str, Wish] = {}
        for some in (*([each] for each in FLEET), [*names, "task.next"], *([each] for each in LAST)):
            new = wishes(owner, "ada", some)
            first |= {name: wish.send(owner, f"key of {name}") for name, wish in new.items()}
            made |= new
        assert all(reply.status in (200, 201) for reply in first.values()), first
        log = asked_for(daemon)
    daemon.kill()
    check_database(daemon.project)
    daemon.start()
    with daemon.client() as owner:
        for name, wish in made.items():
            again = wish.send(owner, f"key of {name}")
            assert (again.status, again.body) == (first[name].status, first[name].body), name
        assert asked_for(daemon) == log, "something happened twice"


def test_what_is_typed_twice_with_one_key_arrives_once(daemon: Daemon) -> None:
    with daemon.client() as owner:
        path = f"/api/sessions/{TYPIST}"
        for key in ("one", "one", "two"):
            owner.ask("POST", f"{path}/send", {"text": f"key {key}"}, key=key).good()
        owner.post("/api/resume")
        wait_until(lambda: "key two" in owner.get(f"{path}/logs")["text"], "what was typed")
        assert owner.get(f"{path}/logs")["text"].splitlines() == ["key one", "key two"]


def test_the_same_key_of_another_principal_is_another_key(daemon: Daemon) -> None:
    with daemon.client() as owner:
        token = owner.post("/api/sessions/bob/token")["token"]
        with daemon.client(token) as bob:
            for name, operation in operations(owner).items():
                if "Only with the owner's token." in operation.get("description", ""):
                    continue
                if name == "proposal.withdraw":
                    continue  # what its recipe proposes is neither the owner's nor bob's
                made = wishes(owner, "ada", [name])[name]
                assert made.send(owner, "one key").status in (200, 201), name
                own = RECIPES[name](owner, "bob")
                before = asked_for(daemon)
                first = own.send(bob, "one key")
                assert first.status in (200, 201, 202), (name, first)
                assert asked_for(daemon) > before or name in TRACELESS, name
                again = own.send(bob, "one key")
                assert (again.status, again.body) == (first.status, first.body), name
                forget(daemon)


def forget(daemon: Daemon) -> None:
    """Free the key for the next operation, as its 24 hours would."""
    db = apsw.Connection(str(daemon.project.database))
    db.set_busy_timeout(10_000)
    db.execute("DELETE FROM requests")
    db.close()


def test_a_key_belongs_to_the_session_and_not_to_its_token(daemon: Daemon) -> None:
    with daemon.client() as owner:
        old = owner.post("/api/sessions/bob/token")["token"]
        with daemon.client(old) as bob:
            first = bob.ask("POST", "/api/board", {"title": "once"}, key="k")
        new = owner.post("/api/sessions/bob/token")["token"]
        with daemon.client(new) as bob:
            again = bob.ask("POST", "/api/board", {"title": "once"}, key="k")
        assert (again.status, again.body) == (first.status, first.body) and first.status == 201


def test_a_refused_request_does_not_use_its_key_up(daemon: Daemon) -> None:
    with daemon.client() as owner:
        for name in operations(owner):
            wish = wishes(owner, "ada", [name])[name]
            body = wish.body | {"colour": "red"}
            assert owner.ask(wish.method, wish.path, body, key=f"key of {name}").status == 400, name
            assert wish.send(owner, f"key of {name}").status in (200, 201), name
        task = owner.post("/api/board", {"title": "wanted"})["id"]
        fence = owner.post(f"/api/board/{task}/claim", {"session": "bob"})["fence"]
        claim = Wish("POST", f"/api/board/{task}/claim", {"session": "ada"})
        assert claim.send(owner, "claim").status == 409
        owner.post(f"/api/board/{task}/release", {"session": "bob", "fence": fence})
        assert claim.send(owner, "claim").good()["session"] == "ada"


def test_an_empty_board_does_not_use_a_key_up(daemon: Daemon) -> None:
    with daemon.client() as owner:
        claim = Wish("POST", "/api/claim", {"session": "ada"})
        assert claim.send(owner, "k").status == 204
        assert claim.send(owner, "k").status == 204
        task = owner.post("/api/board", {"title": "at last"})["id"]
        owner.post("/api/board", {"title": "and another"})
        assert [claim.send(owner, "k").good()["id"] for _ in range(3)] == [task] * 3


def test_the_holder_who_claims_again_without_a_key_gets_the_same_fence(daemon: Daemon) -> None:
    with daemon.client() as owner:
        owner.post("/api/board", {"title": "mine"})
        first = owner.post("/api/board/T-1/claim", {"session": "ada"})
        before = asked_for(daemon)
        again = owner.post("/api/board/T-1/claim", {"session": "ada"})
        assert (again["fence"], again["session"]) == (first["fence"], "ada")
        assert asked_for(daemon) == before
