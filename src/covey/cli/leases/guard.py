"""covey guard: says whether a session may commit, in the daemon's place, or push; for hooks of git alone.

It is listed nowhere.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from covey import config
from covey.app.app import App
from covey.app.clock import SystemClock
from covey.app.context import Call, Context
from covey.app.fleet.heartbeats import Pulses
from covey.app.leases import write_check
from covey.app.leases.write_check import Advice
from covey.cli.frame.client import Client
from covey.cli.people.ask import PERSON_TIMEOUT_S, until_decided
from covey.core.merging.queue_view import sentence
from covey.core.people.commands import pushes
from covey.core.people.commands.pushes import Push
from covey.core.people.questions import NOBODY_ANSWERED, Decision, Permission, Permitted
from covey.errors import CoveyError, Invalid, Unavailable
from covey.git import project as projects
from covey.git.guard import commit_paths
from covey.git.guard.guard import REFUSED_EXIT_CODE
from covey.git.identity import task_branch
from covey.git.landing import pushes_seen
from covey.git.project import Project
from covey.store.engine.backup import snapshot
from covey.store.engine.transaction import read_head
from covey.store.tx import Tx

MAX_REF_CHARS = 500
"""Characters of refs that are named."""


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
    return REFUSED_EXIT_CODE if advice.deny else 0


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
    if said.answer is Permission.ALLOW:
        return 0
    print(f"covey: {_refusal(push, said)}", file=sys.stderr)
    return REFUSED_EXIT_CODE


def _asked(push: Push) -> Permitted:
    if not os.environ.get("COVEY_TOKEN"):
        raise Unavailable("this session's COVEY_TOKEN is missing.")
    client = Client()
    said = client.ask("push.ask", fields={"remote": push.remote, "refs": list(push.refs)}).value
    answer = Permitted(Permission(said["answer"]), said["why"], said["question"])
    if answer.answer is not Permission.ASK or answer.question is None:
        return answer
    print(f"covey: a person is asked ({answer.question}), and git waits for the answer.", file=sys.stderr, flush=True)
    question = until_decided(client, client.ask("question.show", {"id": answer.question}), PERSON_TIMEOUT_S).value
    if question["state"] == "open":
        return answer
    if question["state"] == "withdrawn":
        return Permitted(Permission.DENY, f"{question['id']} was withdrawn.")
    client.ask("question.take", {"id": answer.question}, {})
    allowed = question["decision"] in (Decision.ALLOW, Decision.ALWAYS)
    why = question["answer"] or ("" if question["state"] == "answered" else NOBODY_ANSWERED)
    return Permitted(Permission.ALLOW if allowed else Permission.DENY, why)


def _refusal(push: Push, said: Permitted) -> str:
    what = f"nothing was pushed to {push.remote} ({' '.join(push.refs)[:MAX_REF_CHARS]})"
    if said.answer is Permission.ASK:
        return (
            f"{what}: a person is asked, and has not answered yet ({said.question}). Go on with your work: commit on"
            " your own branch, and covey lands it. Once it is allowed, the same push goes through."
        )
    why = sentence(said.why) if said.why else "the answer is no."
    return f"{what}: {why} Commit on your own branch, and covey lands it."


def _advice(project: Project, token: str, body: bytes) -> Advice:
    context = Context(
        config.load(project.root), Pulses(SystemClock(), str(project.database.stat().st_ino)), project.name
    )
    with snapshot(project.database) as db:  # beside whoever writes
        tx = Tx(db, read_head(db), now=round(time.time(), 3))
        context.pulses.load(tx)
        context.pulses.without_daemon()
        who = App.who(tx, token)
        assert who.session is not None
        run = next(iter(tx.open_runs(who.session)), None)
        task = tx.task(run.task) if run is not None else next(iter(tx.held_by(who.session)), None)
        known = commit_paths.known_on(project, context.config.target, task.scope if task is not None else ())
        made = commit_paths.read(body, tx.now, known)
        call = Call(tx, who, context)
        advice = write_check.check(call, who.session, task, made, at="commit")
        if advice.deny is None:
            return advice
        branch = task_branch(task.id) if task is not None else None
        left = commit_paths.unless_undone(project, context.config.target, branch, body, made, advice.denied)
        return write_check.check(call, who.session, task, left, at="commit")
