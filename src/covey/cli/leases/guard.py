"""covey guard: says whether a session may commit, in the daemon's place, or push; for hooks of git alone.

It is listed nowhere.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from covey import config
from covey.app import writes
from covey.app.app import App
from covey.app.clock import SystemClock
from covey.app.runs import branch_of
from covey.app.verbs import Call
from covey.app.writes import Advice
from covey.cli.ask import WAIT, until_decided
from covey.cli.client import Client
from covey.core import pushes
from covey.core.pushes import Push
from covey.core.questions import NOBODY, Decision, Permission, Permitted
from covey.errors import CoveyError, Invalid, Unavailable
from covey.git import project as projects
from covey.git import pushes_seen, written
from covey.git.guard_hooks import REFUSED
from covey.git.project import Project
from covey.store.sqlite import Job, Outcome, snapshot
from covey.store.transaction import read_head
from covey.store.tx import Tx

T = TypeVar("T")
NAMED = 500
"""Characters of refs that are named."""


class Beside:
    """The store of a project, only to read, beside whoever writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def place(self) -> str:
        """Return what tells this file from another that is put in its place."""
        return str(self._path.stat().st_ino)

    def run(self, jobs: Sequence[Job[Any]]) -> list[Outcome[Any]]:
        """Refuse to write."""
        raise Unavailable("The store is only read here.")

    def read(self, job: Callable[[Tx], T]) -> T:
        """Run a job that only reads, on one snapshot."""
        with snapshot(self._path) as db:
            return job(Tx(db, read_head(db), now=round(time.time(), 3)))


def run(argv: list[str]) -> int:
    """Say what there is to say of what standard input tells, and return whether it may be committed or pushed."""
    if argv[:1] == ["push"] and len(argv) == 3:
        return _push(*argv[1:])
    if argv:
        raise Invalid("covey guard takes nothing but its input.", hint="git asks it; there is no need to.")
    body = sys.stdin.buffer.read()
    project = projects.find(Path(os.fsdecode(body.partition(b"\0")[0] or b"/"))).must_be_begun()
    advice = _advice(project, os.environ.get("COVEY_TOKEN", ""), body)
    said = advice.deny or advice.tell
    if said:
        print(f"covey: {said}", file=sys.stderr)
    return REFUSED if advice.deny else 0


def _push(remote: str, url: str) -> int:
    """Say whether a session may push what git tells, once a person has decided if need be."""
    project = projects.find(Path.cwd())
    push = pushes_seen.about_to(project, remote, url, sys.stdin.read())
    if pushes.is_allowed(config.load(project.root).sessions.push, push):
        return 0
    try:
        said = _asked(push)
    except CoveyError as error:
        said = Permitted(Permission.DENY, f"nobody can be asked now: {error.message}")
    if said.permission is Permission.ALLOW:
        return 0
    print(f"covey: {_refusal(push, said)}", file=sys.stderr)
    return REFUSED


def _asked(push: Push) -> Permitted:
    if not os.environ.get("COVEY_TOKEN"):
        raise Unavailable("this session's COVEY_TOKEN is missing.")
    client = Client()
    said = client.ask("push.ask", fields={"remote": push.remote, "refs": list(push.refs)}).value
    answer = Permitted(Permission(said["answer"]), said["why"], said["question"])
    if answer.permission is not Permission.ASK or answer.question is None:
        return answer
    print(f"covey: a person is asked ({answer.question}), and git waits for the answer.", file=sys.stderr, flush=True)
    question = until_decided(client, client.ask("question.show", {"id": answer.question}), WAIT).value
    if question["state"] == "open":
        return answer
    if question["state"] == "withdrawn":
        return Permitted(Permission.DENY, f"{question['id']} was withdrawn.")
    client.ask("question.take", {"id": answer.question}, {})
    allowed = question["decision"] in (Decision.ALLOW, Decision.ALWAYS)
    why = question["answer"] or ("" if question["state"] == "answered" else NOBODY)
    return Permitted(Permission.ALLOW if allowed else Permission.DENY, why)


def _refusal(push: Push, said: Permitted) -> str:
    what = f"nothing was pushed to {push.remote} ({' '.join(push.refs)[:NAMED]})"
    if said.permission is Permission.ASK:
        return (
            f"{what}: a person is asked, and has not answered yet ({said.question}). Go on with your work: commit on"
            " your own branch, and covey lands it. Once it is allowed, the same push goes through."
        )
    return f"{what}: {said.why or 'the answer is no.'} Commit on your own branch, and covey lands it."


def _advice(project: Project, token: str, body: bytes) -> Advice:
    app = App(Beside(project.database), config.load(project.root), SystemClock(), project.name, daemon=False)
    main = app.house.config.target

    def decide(tx: Tx) -> Advice:
        who = app.who(tx, token)
        assert who.session is not None
        run = next(iter(tx.open_runs(who.session)), None)
        task = tx.task(run.task) if run is not None else next(iter(tx.held_by(who.session)), None)
        known = written.known_on(project, main, task.scope if task is not None else ())
        made = written.read(body, tx.now, known)
        call = Call(tx, who, app.house)
        advice = writes.check(call, who.session, task, made, at="commit")
        if advice.deny is None:
            return advice
        branch = branch_of(task.id) if task is not None else None
        left = written.unless_undone(project, main, branch, body, made, advice.denied)
        return writes.check(call, who.session, task, left, at="commit")

    return app.store.read(decide)
