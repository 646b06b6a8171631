"""What the loops write of runs: the intent, what was learnt, and what came of it."""

from __future__ import annotations

import hmac
from dataclasses import replace
from itertools import takewhile

from covey.app.board.task_changes import change
from covey.app.board.task_verbs import first_that_suits
from covey.app.board.tries import REASON, block_if_tried_often, fail, hand_in
from covey.app.context import Call
from covey.app.costs import costs
from covey.app.costs.costs import Day, Refusal, Reserved
from covey.app.fleet.fleet_verbs import let_go
from covey.app.fleet.script_tasks import Runs, why_no_script
from covey.app.fleet.script_tasks import runs as runs_of
from covey.app.fleet.sessions import alert, as_text, digest
from covey.app.leases.lease_queue import end_by_hand
from covey.app.leases.write_check import handing_in
from covey.app.people import mail_delivery, questions
from covey.core.board import tasks
from covey.core.board.tasks import Status, Task
from covey.core.board.waiting import Cause
from covey.core.costs.budgets import Scope
from covey.core.fleet import run_end, runs, sessions, task_updates
from covey.core.fleet.outcomes import Again, HandIn, PutOff, Verdict
from covey.core.fleet.prompts import Brief
from covey.core.fleet.run_end import End, Fate, is_at_work
from covey.core.fleet.runs import Outcome, Run
from covey.core.fleet.sessions import COVEY, Goal, Session, SessionState
from covey.core.fleet.start_limits import Wait
from covey.core.fleet.task_updates import Facts
from covey.core.merging import merges
from covey.core.merging.guarded_files import commands_of
from covey.core.people.alerts import AlertKind
from covey.core.people.permits import SHELL, is_chained
from covey.core.texts import redact
from covey.git.identity import task_branch
from covey.values import dataclass

MAX_EARLIER_RUNS = 100
"""How many of the last runs of a task are looked at."""
EVIDENCE_CHARS = 1000
"""Characters of the evidence for a session's state."""
MISSED = "the daemon was away, or did not answer in time"


@dataclass(frozen=True)
class Work:
    """A run that is about to start, and all that its prompt is made of."""

    run: Run
    brief: Brief
    token: str
    tries: int
    conversation: str | None
    commands: tuple[str, ...]
    """Commands that may be run without asking."""
    lies: bool
    """What lies in the worktree is of this task: its session has run on nothing else since."""
    is_first: bool
    """Nobody has ever run on this task."""
    carried: bool
    """Earlier work on the task is on its branch, as far as the board knows."""
    elsewhere: str | None = None
    """The last commit of earlier work that was handed in on another branch than the task's own."""
    left: tuple[tuple[str, str], ...] = ()
    """Who left work on the task uncommitted since it was last handed in, and the ref that keeps it."""


def begin(call: Call, name: str, day: Day) -> Run | Wait | None:
    """Write down the intent to run: on the task that a session holds, else on the next that suits it.

    Mail that wakes it is a task too. None if there is nothing to do; a wait if a budget is in the way.
    """
    session = _idle_worker(call, name)
    if session is None or call.tx.fleet().paused:
        return None
    held = next(iter(call.tx.held_by(name)), None)
    task = held or (None if session.attached else first_suited(call, session) or mail_delivery.errand(call, session))
    if task is None or (held is None and any(run.task == task.id for run in call.tx.open_runs())):
        return None  # of a task that was taken from another, that one's run has to end first
    reserved = may_begin(call, session, task, day, is_held=held is not None)
    if isinstance(reserved, Wait):
        return reserved
    if isinstance(reserved, Refusal) and not session.attached:
        return _refused(call, session, task, reserved, day)
    if held is None:
        task = change(call, task, tasks.claim(task, name), name)
    run = call.tx.begin(Run, _intent(call, session, task, reserved), name)
    show(call, name, SessionState.STARTING, f"{run.id} on {task.id}")
    return run


def _idle_worker(call: Call, name: str) -> Session | None:
    """Return a session that is to work and has no run, None if it is not or has one."""
    session = call.tx.session(name)
    if session is None or session.removed or session.goal is not Goal.WORKING or call.tx.open_runs(name):
        return None
    return session


def _intent(call: Call, session: Session, task: Task, reserved: Reserved | Refusal) -> runs.Begun:
    """Return the event by which a run begins; a person in a terminal may go on where a budget is used up."""
    config = call.context.config
    settings = config.agents.get(session.agent or "")
    granted = Reserved() if isinstance(reserved, Refusal) else reserved
    return runs.Begun(
        session=session.name,
        task=task.id,
        fence=task.fence,
        agent=session.agent or "",
        runner=runs.TMUX if session.attached else config.sessions.runner,
        person=session.attached is not None,
        model=settings.model if settings else "",
        money=granted.money,
        tokens=granted.tokens,
    )


def may_begin(call: Call, session: Session, task: Task, day: Day, *, is_held: bool) -> Reserved | Refusal | Wait:
    """Return what a run on a task may spend, or what is in its way; nothing is changed by asking."""
    if is_held and not session.attached:
        cause = why_no_script(call, task, (runs_of(call, session),))
        if cause is not None:
            return Wait(_NO_SCRIPT[cause].format(session=session.name, task=task.id), cause=cause)
    if is_held and not session.attached and questions.awaited(call, task.id):
        return Wait("A person has not answered yet.", cause=Cause.ANSWER)
    if not is_held and not task.front and (much := _much_in_review(call)) is not None:
        return much
    return costs.reserve(call, session, task, day)


def _much_in_review(call: Call) -> Wait | None:
    """Say why nothing new is begun: people have enough to look at; what came back to its author goes on."""
    most, waiting = call.context.config.board.max_in_review, call.tx.counts().get(Status.REVIEW, 0)
    if not most or waiting < most:
        return None
    why = f"{waiting} tasks wait for review, and [board] max_in_review is {most}."
    return Wait(why, news=True, cause=Cause.IN_REVIEW)


def first_suited(call: Call, session: Session) -> Task | None:
    """Return the first task in line that a session may run."""
    run = runs_of(call, session)
    if run is Runs.NOTHING:
        return first_that_suits(call, session)
    return first_that_suits(call, session, fits=lambda task: why_no_script(call, task, (run,)) is None)


_NO_SCRIPT = {
    Cause.PROSE: "{task} is written for somebody who reads; {session} would run it as a script.",
    Cause.NO_BODY: "{task} has no body, and {session} runs bodies: covey task edit {task} --body TEXT.",
    Cause.UNVOUCHED: "{session} would run {task} as a script, and a session wrote that.",
}


def _refused(call: Call, session: Session, task: Task, refusal: Refusal, day: Day) -> Wait | None:
    """Block a task that has used up its own budget; wait for the next day if that is what is used up."""
    if refusal.spent.scope is Scope.SESSION and task.front == session.name and not refusal.spent.waits:
        change(call, task, tasks.Edited(cleared=("front",)), COVEY)  # others may have something left today
    if refusal.spent.scope is not Scope.TASK:
        return no_budget(refusal, day)
    what = refusal.what
    if any(run.base is not None for run in call.tx.last_runs(MAX_EARLIER_RUNS, task=task.id)):
        what = f"{what} Its branch is {task_branch(task.id)}."
    if task.session is not None and task.status is Status.DOING:
        task = fail(call, task, what)
    change(call, task, tasks.block(task, what), COVEY)
    alert(call, AlertKind.BUDGET_SPENT, f"{task.id} is blocked. {what}", None, task.id)
    return None


def no_budget(refusal: Refusal, day: Day) -> Wait:
    """Return how long a session waits for a budget: for the next day, or for what others set aside and give back."""
    if refusal.spent.waits:
        return Wait(refusal.what, cause=Cause.SHARE)
    return Wait(refusal.what, day.ends, news=True, cause=Cause.BUDGET)


def waits(call: Call, name: str, wait: Wait, until: float | None) -> bool:
    """Show that a session which has something to do waits, and say whether that is news."""
    session = _idle_worker(call, name)
    if session is None:
        return False
    if not call.tx.held_by(name) and first_suited(call, session) is None:
        return False
    news = session.state is not SessionState.LIMITED
    show(call, name, SessionState.LIMITED, wait.why, until)
    return news


def work(call: Call, run: Run) -> Work | None:
    """Return what a run needs to be started, None if it has ended or its task is no longer its own."""
    session, task = call.tx.session(run.session), call.tx.task(run.task)
    if session is None or task is None or _open(call, run) is None or not is_at_work(task, run):
        return None
    secret = _token(call, run)
    call.tx.drop_tokens(run.session)
    call.tx.put_token(digest(secret), run.session)
    earlier = call.tx.last_runs(MAX_EARLIER_RUNS, task=task.id)
    # A conversation belongs to the worktree that it was held in; an empty one is past use.
    mine = [one for one in earlier if one.agent == run.agent and one.session == run.session]
    talks = (one.conversation for one in mine if one.conversation is not None)
    text, merge = call.tx.text(task.body), call.tx.last_merge(task.id)
    rejected = merge is not None and merge.state is merges.MergeState.REJECTED
    sent_back = rejected and merge is not None and bool(task.tries) and task.tries[-1].at == merge.ended
    return Work(
        run,
        _brief(call, session, task, text, _heard_by(mine), sent_back=sent_back),
        secret,
        tries=len(task.tries),
        conversation=next(talks, None) or None,
        commands=_commands(call),
        lies=[one.task for one in call.tx.last_runs(2, session=run.session)] == [run.task] * 2,
        is_first=len(earlier) == 1,
        carried=any(one.base is not None for one in earlier) or merge is not None,
        elsewhere=None if merge is None or merge.branch == task_branch(task.id) else merge.commit,
        left=_left_by(earlier),
    )


def _open(call: Call, run: Run) -> Run | None:
    """Return a run as it is now, None if it has ended."""
    now = call.tx.run(run.id)
    return None if now is None or now.outcome is not None else now


def _commands(call: Call) -> tuple[str, ...]:
    """Return the commands that agents may run at the level `edits`: git, covey, the gate, and what a person allowed."""
    config = call.context.config
    # What chains commands is allowed word for word, when it is asked for: here its parts would be allowed too.
    live = [permit.about for permit in call.tx.permits() if permit.tool == SHELL]
    granted = [about for about in live if about and not is_chained(about)]
    named = ["git", "covey", *commands_of(config.merge), *config.sessions.allow, *granted]
    return tuple(dict.fromkeys(each.strip() for each in named if each.strip()))


def _token(call: Call, run: Run) -> str:
    """Return the token of a run: the same whenever it is asked for, so that it is kept nowhere."""
    made = hmac.digest(call.context.secret or b"covey", f"{call.tx.head.log} {run.id} {run.fence}".encode(), "sha256")
    return as_text(made)


def _left_by(earlier: list[Run]) -> tuple[tuple[str, str], ...]:
    """Return what was left uncommitted by the last run of each session, of some runs, the newest first."""
    ended = [run for run in earlier if run.outcome is not None]
    last: dict[str, Run] = {}
    for run in takewhile(lambda one: one.outcome is not Outcome.HANDED_IN, ended):
        last.setdefault(run.session, run)
    return tuple((run.session, run.left) for run in last.values() if run.left)


def _heard_by(mine: list[Run]) -> Facts:
    """Return what the conversation of these runs, the newest first, has heard of its task."""
    heard: Facts = ()
    for run in reversed(list(takewhile(lambda one: one.conversation != "", mine))):
        heard = task_updates.after(heard, run.heard)
    return heard


def heard(call: Call, run: Run, told: Facts) -> None:
    """Note that the conversation of a run has heard its prompt; what mail told it meanwhile is newer."""
    now = _open(call, run)
    if now is not None:
        news = tuple(each for each in told if each[0] not in dict(now.heard))
        if news:
            call.tx.advance(now, runs.Heard(news), COVEY)


def _brief(call: Call, session: Session, task: Task, body: str, heard: Facts, *, sent_back: bool) -> Brief:
    config, letters = call.context.config, mail_delivery.enclosed(call, session.name)
    answers = questions.answers(call, task.id)
    for message, _ in letters:  # what they tell need not be told twice in one prompt
        heard = task_updates.after(heard, message.facts if heard and message.task == task.id else ())
    return Brief(
        task=task,
        body=body,
        session=session,
        branch=task_branch(task.id),
        main=config.target,
        check=config.merge.check or None,
        needs=[_told(call, need.task) for need in task.needs],
        mail=[quote for _, quote in letters],
        answers=[questions.quoted(each) for each in answers],
        answered=[each.id for each in answers],
        sent_back=sent_back,
        heard=heard,
    )


def _told(call: Call, task_id: str) -> tuple[Task, str | None]:
    """Return a task that had to be done before, and what came of it."""
    task = call.tx.task(task_id)
    assert task is not None
    return task, None if task.result is None else call.tx.text(task.result)


def show(call: Call, name: str, state: SessionState, evidence: str, until: float | None = None) -> None:
    """Bring a session into a state, if it is not there already; `until`: when it goes on by itself."""
    session = call.tx.session(name)
    if session is None or session.removed:
        return
    if session.state is SessionState.DEAD and state not in (SessionState.STARTING, SessionState.IDLE):
        session = call.put_session(session, name, sessions.Changed(SessionState.IDLE, "looked after again"), by=COVEY)
    changed = sessions.change(session, state, redact(evidence)[:EVIDENCE_CHARS], until)
    call.put_session(session, name, changed, by=COVEY)


def started(call: Call, work: Work, base: str, head: str | None = None) -> None:
    """Note that a run's worktree is ready and its program runs."""
    run = work.run
    now = _open(call, run)
    if now is not None and now.base is None:
        now = call.tx.advance(now, runs.Prepared(base=base, head=head), COVEY)
    if run.person and work.conversation and now is not None:
        note_conversation(call, now, work.conversation)  # what the program writes from now on need not name it again
    person = work.brief.session.attached
    hands = f": {person} has it in a terminal" if run.person and person else ""
    show(call, run.session, SessionState.WORKING, f"{run.id} on {run.task}{hands}")


def note_conversation(call: Call, run: Run, conversation: str) -> None:
    """Note the conversation of a run."""
    now = _open(call, run)
    if now is not None and now.conversation != conversation:
        call.tx.advance(now, runs.Talking(conversation), COVEY)


def note(call: Call, run: Run, event: runs.Missed | runs.Left | runs.Wrote | None) -> None:
    """Note what was seen of a run at its end, if anything was: what covey missed, where its work is, what it wrote."""
    now = _open(call, run)
    if now is not None and event is not None:
        call.tx.advance(now, event, COVEY)


def ending(call: Call, run: Run, event: runs.Ending) -> None:
    """Note that a run is to be stopped."""
    now = _open(call, run)
    if now is not None and now.ending is None:
        call.tx.advance(now, replace(event, why=redact(event.why)), COVEY)


def lost(call: Call, run: Run, what: str, code: int | None) -> None:
    """End a run that the machine, not the agent, ended; its session goes on with the task."""
    _end(call, run, runs.Ended(outcome=Outcome.LOST, code=code, what=what))


def unstartable(call: Call, run: Run, what: str) -> None:
    """End a run that could not be started: no fault of its task, which goes back to the board."""
    if _end(call, run, runs.Ended(outcome=Outcome.FAILED, what=what)):
        let_go(call, run.session)
        show(call, run.session, SessionState.STALLED, what[:500])


def judged(call: Call, run: Run, verdict: Verdict, code: int | None, until: float | None = None) -> None:
    """End a run as it was judged: hand its work in, put the task back with what went wrong, or go on later.

    `until`: when its session goes on, if it has to wait.
    """
    task, now = call.tx.task(run.task), _open(call, run)
    if task is None or now is None:
        return
    if isinstance(verdict, Again | PutOff) and verdict.fresh and now.conversation != "":
        # Also of a run that never named it: it may have taken up the one of an earlier run.
        call.tx.advance(now, runs.Talking(""), COVEY)
    earlier = call.tx.last_runs(MAX_EARLIER_RUNS, task=run.task)
    asked = run_end.still_asked(questions.awaited(call, task.id), run, verdict)
    verdict = run_end.in_context(verdict, run, task, earlier, task_branch(task.id))
    crashes = run_end.crashes_before(run, earlier)
    watch = call.context.config.watch
    seconds = watch.crash_minutes * 60
    too_often = run_end.crashes_too_often(crashes, call.tx.now, most=watch.crashes, seconds=seconds)
    end = run_end.end_of(run, task, verdict, asked, crashes_too_often=too_often)
    if end.fate is Fate.HANDED_IN and isinstance(verdict, HandIn):
        held_back = handing_in(call, run.session, task, verdict.writes)
        end = end if held_back is None else run_end.end_of(run, task, Again(held_back.text), asked)
    ended = runs.Ended(outcome=end.outcome, code=code, what=end.what, commit=end.commit)
    until = until if end.waits else None
    _end(call, run, ended, until=until if end.state is None else None)
    if end.state is not None:
        show(call, run.session, end.state, end.evidence, until)
    _settle(call, run, task, end, crashes)


def _settle(call: Call, run: Run, task: Task, end: End, crashes: list[Run]) -> None:
    """Bring the task of a run that has ended where it belongs."""
    what = redact(end.what or "")
    match end.fate:
        case Fate.STAYS:
            pass
        case Fate.HANDED_IN:
            work = merges.Queued(task=task.id, session=run.session, branch=task_branch(task.id), commit=end.commit)
            hand_in(call, task, work, result=None if end.result is None else call.tx.keep(redact(end.result)))
        case Fate.RELEASED:
            change(call, task, tasks.Released(run.session), COVEY)
        case Fate.FAILED:
            block_if_tried_often(call, fail(call, task, what), what)
        case Fate.BLOCKED:
            back = fail(call, task, what)
            reason = run_end.crash_story(run, crashes, call.tx.now, what)[:REASON]
            change(call, back, tasks.block(back, reason), COVEY)
            alert(call, AlertKind.CRASH_LOOP, f"{task.id} needs a person. {reason}"[:REASON], None, task.id)


def give_back(call: Call, name: str) -> None:
    """Give a session its conversation back, if a person has it."""
    session = call.tx.session(name)
    if session is not None:
        call.put_session(session, name, sessions.give_back(session), by=COVEY)


def _end(call: Call, run: Run, event: runs.Ended, *, until: float | None = None) -> bool:
    """End a run, unless it has ended, and let its session rest, until a time if one is given."""
    now = _open(call, run)
    if now is None:
        return False
    event = replace(event, what=None if event.what is None else redact(event.what))
    call.tx.advance(now, runs.end(now, event), COVEY)
    call.tx.drop_tokens(run.session)
    end_by_hand(call, run.session, f"{run.id} has ended")
    if run.person:
        give_back(call, run.session)
    questions.withdraw(call, run.id, f"{run.id} has ended.", keep=event.outcome is not Outcome.HANDED_IN)
    said = event.what.splitlines()[0] if event.what else event.outcome
    show(call, run.session, SessionState.IDLE, f"{run.id} ended: {said}"[:500], until)
    return True
