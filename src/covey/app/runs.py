"""What the loops write of runs: the intent, what was learnt, and what came of it."""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass, replace

from covey.app.board import first_that_suits, needs_review
from covey.app.changes import change, queue
from covey.app.fleet import let_go, put_run
from covey.app.mail import letters as all_letters
from covey.app.sessions import alert, digest
from covey.app.tries import put_back
from covey.app.verbs import Call
from covey.core import mail, merges, runs, sessions, tasks
from covey.core.judge import Again, HandIn, Verdict
from covey.core.prompts import Brief, Told
from covey.core.runs import Outcome, Run
from covey.core.sessions import COVEY, Goal, Session, State
from covey.core.tasks import Status, Task
from covey.core.texts import redact
from covey.store import rows

MAIL = 5
"""Unread messages that a prompt carries."""


@dataclass(frozen=True)
class Work:
    """A run that shall be started, and all that its prompt is made of."""

    run: Run
    session: Session
    brief: Brief
    body: str
    token: str
    tries: int
    conversation: str | None
    carried: bool
    """Earlier work on the task is on its branch, as far as the board knows."""
    mail: tuple[str, ...]
    """The messages that the prompt carries."""


def branch_of(task: str) -> str:
    """Return the branch on which a task is worked on."""
    return f"covey/{task}"


def begin(call: Call, name: str) -> Run | None:
    """Write down the intent to run: on the task that a session holds, else on the next that suits it."""
    session = call.tx.session(name)
    if session is None or session.removed or session.goal is not Goal.WORKING or call.tx.fleet().paused:
        return None
    if call.tx.open_runs(name):
        return None
    task = next(iter(call.tx.held_by(name)), None)
    if task is None:
        waiting = first_that_suits(call.tx, session, False)
        if waiting is None or any(run.task == waiting.id for run in call.tx.open_runs()):
            return None  # of a task that was taken from another, that one's run has to end first
        task = change(call, waiting, tasks.claim(waiting, name), name)
    seq = call.tx.next_seq
    event = runs.Begun(session=name, task=task.id, fence=task.fence, agent=session.agent or "")
    run = runs.first(f"run-{seq}", seq, event, call.tx.now)
    call.tx.insert(rows.RUNS, run)
    call.tx.append(name, run.id, event, run)
    show(call, name, State.STARTING, f"{run.id} on {task.id}")
    return run


def work(call: Call, run: Run) -> Work | None:
    """Return what a run needs to be started, None if it has ended or its task is no longer its own."""
    session, task, now = call.tx.session(run.session), call.tx.task(run.task), call.tx.run(run.id)
    if session is None or task is None or now is None or now.outcome is not None or not holds(task, run):
        return None
    secret = _token(call, run)
    call.tx.drop_tokens(run.session)
    call.tx.put_token(digest(secret), run.session)
    earlier = call.tx.last_runs("task", task.id, 10)
    talks = (one.conversation for one in earlier if one.conversation and one.agent == run.agent)
    text = call.tx.text(task.body)
    letters = all_letters(call, session.name, unread=True, limit=MAIL)
    return Work(
        run,
        session,
        _brief(call, session, task, text, letters),
        text,
        secret,
        tries=len(task.tries),
        conversation=next(talks, None),
        carried=any(one.base is not None for one in earlier) or call.tx.last_merge(task.id) is not None,
        mail=tuple(message.id for message in letters),
    )


def holds(task: Task, run: Run) -> bool:
    """Say whether a task is at work in this run's claim."""
    return task.status is Status.DOING and task.session == run.session and task.fence == run.fence


def is_theirs(task: Task | None, run: Run) -> bool:
    """Say whether a task is still the run's: at work, or handed in by it."""
    if task is None:
        return False
    handed_in = task.status in (Status.REVIEW, Status.MERGING, Status.DONE)
    return holds(task, run) or (handed_in and task.session == run.session and task.fence == run.fence)


def _token(call: Call, run: Run) -> str:
    """Return the token of a run: the same whenever it is asked for, so that it is kept nowhere."""
    made = hmac.digest(call.house.secret or b"covey", f"{call.tx.head.log} {run.id} {run.fence}".encode(), "sha256")
    return base64.urlsafe_b64encode(made).decode().rstrip("=")


def _brief(call: Call, session: Session, task: Task, body: str, letters: list[mail.Message]) -> Brief:
    config = call.house.config
    return Brief(
        task=task.id,
        title=task.title,
        body=body,
        kind=task.kind,
        session=session.name,
        branch=branch_of(task.id),
        main=config.project.main,
        check=config.merge.check or None,
        role=session.role,
        scope=task.scope,
        do_not_touch=task.do_not_touch,
        done_when=task.done_when,
        needs=[_told(call, need.task) for need in task.needs],
        tries=task.tries,
        notes=task.notes,
        mail=[line for message in letters for line in _quoted(call, message)],
    )


def _told(call: Call, task_id: str) -> Told:
    task = call.tx.task(task_id)
    assert task is not None
    result = None if task.result is None else call.tx.text(task.result)
    return Told(task.id, task.title, task.status, result, task.commit)


def _quoted(call: Call, message: mail.Message) -> list[str]:
    """Return a message as an agent is told it: information from a colleague."""
    text = call.tx.text(message.text)[:4096]
    return [f"From {message.sender}:", *(f"> {line}" for line in text.splitlines())]


def _note_read(call: Call, message: str, name: str) -> None:
    """Note that a message reached a session by its prompt."""
    if call.tx.get(rows.READINGS, message, name) is None:
        reading = mail.read(message, None, mail.Read(name), call.tx.now)
        call.tx.insert(rows.READINGS, reading)
        call.tx.append(name, message, mail.Read(name), reading)


def show(call: Call, name: str, state: State, evidence: str) -> None:
    """Bring a session into a state, if it is not there already."""
    session = call.tx.session(name)
    if session is None or session.removed:
        return
    if session.state is State.DEAD and state not in (State.STARTING, State.IDLE):
        session = call.put_session(session, name, sessions.Changed(State.IDLE, "looked after again"), by=COVEY)
    event = sessions.change(session, state, redact(evidence))
    if event is not None:
        call.put_session(session, name, event, by=COVEY)


def started(call: Call, work: Work, base: str) -> None:
    """Note that a run's worktree is ready and its program runs, with the mail in its prompt."""
    run = work.run
    for message in work.mail:
        _note_read(call, message, run.session)
    now = call.tx.run(run.id)
    if now is not None and now.outcome is None and now.base is None:
        put_run(call, now, runs.Prepared(base=base), COVEY)
    show(call, run.session, State.WORKING, f"{run.id} on {run.task}")


def asks(call: Call, run: Run, question: str) -> None:
    """Note that a run waits for a person, and tell the person once."""
    session = call.tx.session(run.session)
    if session is not None and session.state is not State.NEEDS_YOU:
        if session.state is not State.PAUSED:  # it asked just before it was told to stand still
            show(call, run.session, State.NEEDS_YOU, question[:500])
        hint = f"covey session send {run.session} TEXT answers."
        alert(call, "needs_you", f"{run.session} asks: {redact(question)[:1000]} ({hint})", run.session, run.task)


def talks(call: Call, run: Run, conversation: str) -> None:
    """Note the conversation of a run."""
    now = call.tx.run(run.id)
    if now is not None and now.outcome is None and now.conversation != conversation:
        put_run(call, now, runs.Talking(conversation), COVEY)


def ending(call: Call, run: Run, event: runs.Ending) -> None:
    """Note that a run shall be stopped."""
    now = call.tx.run(run.id)
    if now is not None and now.outcome is None and now.ending is None:
        put_run(call, now, event, COVEY)


def lost(call: Call, run: Run, what: str, code: int | None) -> None:
    """End a run that the machine, not the agent, ended; its session goes on with the task."""
    _end(call, run, runs.Ended(outcome=Outcome.LOST, code=code, what=what))


def unstartable(call: Call, run: Run, what: str) -> None:
    """End a run that could not be started: no fault of its task, which goes back to the board."""
    if _end(call, run, runs.Ended(outcome=Outcome.FAILED, what=what)):
        let_go(call, run.session)
        show(call, run.session, State.STALLED, what[:500])


def judged(call: Call, run: Run, verdict: Verdict, code: int | None) -> None:
    """End a run as it was judged: hand its work in, or put the task back with what went wrong."""
    task = call.tx.task(run.task)
    now = call.tx.run(run.id)
    if task is None or now is None or now.outcome is not None:
        return
    stopped = run.ending is not None and not run.fault
    if isinstance(verdict, HandIn) and task.open_children:
        verdict = Again(f"{task.id} has children that are not done: its commits stay on {branch_of(task.id)}.")
    if not holds(task, run):
        outcome = Outcome.HANDED_IN if is_theirs(task, run) else Outcome.STOPPED
        _end(call, run, runs.Ended(outcome=outcome, code=code, what=run.ending))
    elif isinstance(verdict, HandIn) and not stopped:
        _end(call, run, runs.Ended(outcome=Outcome.HANDED_IN, code=code, commit=verdict.commit))
        hand_in(call, task, run.session, verdict)
    elif stopped:
        _end(call, run, runs.Ended(outcome=Outcome.STOPPED, code=code, what=run.ending))
        if not run.again:
            change(call, task, tasks.Released(run.session), COVEY)
    else:
        what = redact(verdict.what if isinstance(verdict, Again) else run.ending or "")
        _end(call, run, runs.Ended(outcome=Outcome.FAILED, code=code, what=what))
        put_back(call, change(call, task, tasks.Released(run.session, what), COVEY), what)


def _end(call: Call, run: Run, event: runs.Ended) -> bool:
    """End a run, unless it has ended, and let its session rest."""
    now = call.tx.run(run.id)
    if now is None or now.outcome is not None:
        return False
    event = replace(event, what=None if event.what is None else redact(event.what))
    put_run(call, now, runs.end(now, event), COVEY)
    call.tx.drop_tokens(run.session)
    said = event.what.splitlines()[0] if event.what else event.outcome
    show(call, run.session, State.IDLE, f"{run.id} ended: {said}"[:500])
    return True


def hand_in(call: Call, task: Task, session: str, verdict: HandIn) -> None:
    """Pass the work of a run on to review or the merge queue."""
    review = needs_review(call, session)
    result = None if verdict.result is None else call.tx.keep(redact(verdict.result))
    event = tasks.hand_in(task, session, review=review, result=result, commit=verdict.commit)
    if change(call, task, event, session).status is not Status.DONE:
        branch = branch_of(task.id)
        queue(call, merges.Queued(task=task.id, session=session, branch=branch, commit=verdict.commit, review=review))
