"""What the loops write of runs: the intent, what was learnt, and what came of it."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import takewhile

from covey.app import budget, delivery, mail, questions
from covey.app.board import first_that_suits, needs_review
from covey.app.budget import Day, Refusal, Reserved
from covey.app.changes import change, queue
from covey.app.fleet import let_go, put_run
from covey.app.lines import end_by_hand
from covey.app.sessions import alert, digest
from covey.app.tries import REASON, fail, put_back
from covey.app.verbs import Call
from covey.app.writes import handing_in
from covey.core import facts, merges, runs, sessions, tasks
from covey.core.budgets import Scope
from covey.core.facts import Facts
from covey.core.figures import span
from covey.core.guarded import commands_of
from covey.core.judge import Again, Crashed, HandIn, PutOff, Verdict
from covey.core.pace import Wait
from covey.core.permits import PUSH, SHELL, is_chained
from covey.core.prompts import Brief, Told
from covey.core.rights import is_vouched_for
from covey.core.runs import Outcome, Run
from covey.core.sessions import COVEY, OWNER, Goal, Session, State
from covey.core.signals import Trouble
from covey.core.tasks import Status, Task
from covey.core.texts import redact
from covey.core.waiting import Cause
from covey.store import rows
from covey.values import dataclass

STATES = {
    Trouble.KEY: State.STALLED,
    Trouble.CREDIT: State.STALLED,
    Trouble.CORRUPT: State.IDLE,
    Trouble.BUDGET: State.IDLE,
}
"""What a session is after a trouble, if it is not limited."""
IN_A_ROW = 2
"""So many times more crashes in a row than in a short time end a task too."""
MANY = 100
"""The last runs of a task that are looked at."""
EVIDENCE = 1000
"""Characters of the evidence for a session's state."""
MISSED = "the daemon was away, or did not answer in time"


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


def branch_of(task: str) -> str:
    """Return the branch on which a task is worked on."""
    return f"covey/{task}"


def begin(call: Call, name: str, day: Day) -> Run | Wait | None:
    """Write down the intent to run: on the task that a session holds, else on the next that suits it.

    None if there is nothing to do; a wait if a budget is in the way.
    """
    session = call.tx.session(name)
    if session is None or session.removed or session.goal is not Goal.WORKING or call.tx.fleet().paused:
        return None
    if call.tx.open_runs(name):
        return None
    held = next(iter(call.tx.held_by(name)), None)
    task = held or (None if session.attached else _next(call, session))
    if task is None or (held is None and any(run.task == task.id for run in call.tx.open_runs())):
        return None  # of a task that was taken from another, that one's run has to end first
    reserved = may_begin(call, session, task, day, is_held=held is not None)
    if isinstance(reserved, Wait):
        return reserved
    if isinstance(reserved, Refusal) and not session.attached:
        return _refused(call, session, task, reserved, day)
    if held is None:
        task = change(call, task, tasks.claim(task, name), name)
    config = call.house.config
    settings = config.agents.get(session.agent or "")
    granted = Reserved() if isinstance(reserved, Refusal) else reserved
    event = runs.Begun(
        session=name,
        task=task.id,
        fence=task.fence,
        agent=session.agent or "",
        runner=runs.TMUX if session.attached else config.sessions.runner,
        person=session.attached is not None,
        model=settings.model if settings else "",
        money=granted.money,
        tokens=granted.tokens,
    )
    seq = call.tx.next_seq
    run = runs.first(f"run-{seq}", seq, event, call.tx.now)
    call.tx.insert(rows.RUNS, run)
    call.tx.append(name, run.id, event, run)
    show(call, name, State.STARTING, f"{run.id} on {task.id}")
    return run


def may_begin(call: Call, session: Session, task: Task, day: Day, *, is_held: bool) -> Reserved | Refusal | Wait:
    """Return what a run on a task may spend, or what is in its way; nothing is changed by asking."""
    if is_held and not session.attached and not _may_run(call, session)(task):
        why = f"{session.name} would run {task.id} as a script, and a session wrote that."
        return Wait(why, cause=Cause.UNVOUCHED)
    if is_held and not session.attached and questions.awaited(call, task.id):
        return Wait("A person has not answered yet.", cause=Cause.ANSWER)
    if not is_held and not task.front and (much := _much_in_review(call)) is not None:
        return much
    return budget.reserve(call, session, task, day)


def _much_in_review(call: Call) -> Wait | None:
    """Say why nothing new is begun: people have enough to look at; what came back to its author goes on."""
    most, waiting = call.house.config.board.max_in_review, call.tx.counts().get(Status.REVIEW, 0)
    if not most or waiting < most:
        return None
    why = f"{waiting} tasks wait for review, and [board] max_in_review is {most}."
    return Wait(why, news=True, about="review", cause=Cause.IN_REVIEW)


def _next(call: Call, session: Session) -> Task | None:
    """Return the next task that suits a session; if there is none, mail that shall wake it is one."""
    return first_suited(call, session) or delivery.errand(call, session)


def first_suited(call: Call, session: Session) -> Task | None:
    """Return the first task in line that a session may run."""
    fits = None if mail.reads(call, session) else _may_run(call, session)
    return first_that_suits(call.tx, session, False, fits=fits)


def _may_run(call: Call, session: Session) -> Callable[[Task], bool]:
    """Return what says whether a session may run a task: what is run as a script a person has to stand behind."""
    if mail.reads(call, session):
        return lambda task: True
    return lambda task: is_vouched_for(call.tx.words_of(task.id))


def _refused(call: Call, session: Session, task: Task, refusal: Refusal, day: Day) -> Wait | None:
    """Block a task that has used up its own budget; wait for the next day if that is what is used up."""
    if refusal.spent.scope is Scope.SESSION and task.front == session.name and not refusal.spent.waits:
        change(call, task, tasks.Edited(cleared=("front",)), COVEY)  # others may have something left today
    if refusal.spent.scope is not Scope.TASK:
        return no_budget(refusal, day)
    what = refusal.what
    if any(run.base is not None for run in call.tx.last_runs("task", task.id, MANY)):
        what = f"{what} Its branch is {branch_of(task.id)}."
    if task.session is not None and task.status is Status.DOING:
        task = fail(call, task, what)
    change(call, task, tasks.block(task, what), COVEY)
    alert(call, "budget_spent", f"{task.id} is blocked. {what}", None, task.id)
    return None


def no_budget(refusal: Refusal, day: Day) -> Wait:
    """Return how long a session waits for a budget: for the next day, or for what others set aside and give back."""
    if refusal.spent.waits:
        return Wait(refusal.what, cause=Cause.SHARE)
    return Wait(refusal.what, day.ends, news=True, cause=Cause.BUDGET)


def waits(call: Call, name: str, wait: Wait, until: float | None) -> bool:
    """Show that a session which has something to do waits, and say whether that is news."""
    session = call.tx.session(name)
    if session is None or session.removed or session.goal is not Goal.WORKING or call.tx.open_runs(name):
        return False
    if not call.tx.held_by(name) and first_suited(call, session) is None:
        return False
    news = session.state is not State.LIMITED
    show(call, name, State.LIMITED, wait.why, until)
    return news


def work(call: Call, run: Run) -> Work | None:
    """Return what a run needs to be started, None if it has ended or its task is no longer its own."""
    session, task, now = call.tx.session(run.session), call.tx.task(run.task), call.tx.run(run.id)
    if session is None or task is None or now is None or now.outcome is not None or not holds(task, run):
        return None
    secret = _token(call, run)
    call.tx.drop_tokens(run.session)
    call.tx.put_token(digest(secret), run.session)
    earlier = call.tx.last_runs("task", task.id, MANY)
    # A conversation belongs to the worktree that it was held in; an empty one is past use.
    mine = [one for one in earlier if one.agent == run.agent and one.session == run.session]
    talks = (one.conversation for one in mine if one.conversation is not None)
    text, merge = call.tx.text(task.body), call.tx.last_merge(task.id)
    return Work(
        run,
        session,
        _brief(call, session, task, text, _heard_by(mine)),
        text,
        secret,
        tries=len(task.tries),
        conversation=next(talks, None) or None,
        commands=_commands(call),
        lies=[one.task for one in call.tx.last_runs("session", run.session, 2)] == [run.task] * 2,
        is_first=len(earlier) == 1,
        carried=any(one.base is not None for one in earlier) or merge is not None,
        elsewhere=None if merge is None or merge.branch == branch_of(task.id) else merge.commit,
        left=_left_by(earlier),
    )


def _commands(call: Call) -> tuple[str, ...]:
    """Return the commands that agents may run at the level `edits`: git, covey, the gate, and what a person allowed."""
    config = call.house.config
    # What chains commands is allowed word for word, when it is asked for: here its parts would be allowed too.
    live = [permit.about for permit in questions.granted(call) if permit.tool == SHELL]
    granted = [about for about in live if about and not is_chained(about)]
    named = ["git", "covey", *commands_of(config.merge), *config.sessions.allow, *granted]
    return tuple(dict.fromkeys(each.strip() for each in named if each.strip()))


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
        heard = facts.after(heard, run.heard)
    return heard


def heard(call: Call, run: Run, told: Facts) -> None:
    """Note that the conversation of a run has heard its prompt; what mail told it meanwhile is newer."""
    now = call.tx.run(run.id)
    if now is not None and now.outcome is None:
        news = tuple(each for each in told if each[0] not in dict(now.heard))
        if news:
            put_run(call, now, runs.Heard(news), COVEY)


def _brief(call: Call, session: Session, task: Task, body: str, heard: Facts) -> Brief:
    config, letters = call.house.config, delivery.enclosed(call, session.name)
    for message, _ in letters:  # what they tell need not be told twice in one prompt
        heard = facts.after(heard, message.facts if heard and message.task == task.id else ())
    return Brief(
        task=task.id,
        title=task.title,
        body=body,
        author=task.author,
        kind=task.kind,
        session=session.name,
        branch=branch_of(task.id),
        main=config.target,
        check=config.merge.check or None,
        role=session.role,
        scope=task.scope,
        do_not_touch=task.do_not_touch,
        done_when=task.done_when,
        needs=[_told(call, need.task) for need in task.needs],
        tries=task.tries,
        notes=task.notes,
        mail=[quote for _, quote in letters],
        answers=[questions.quoted(each) for each in questions.answers(call, task.id)],
        sent_back=_came_back(call, task),
        heard=heard,
    )


def _came_back(call: Call, task: Task) -> bool:
    """Say whether the last thing that went wrong with a task was that its work did not land."""
    merge = call.tx.last_merge(task.id)
    rejected = merge is not None and merge.state is merges.State.REJECTED
    return rejected and merge is not None and bool(task.tries) and task.tries[-1].at == merge.ended


def _told(call: Call, task_id: str) -> Told:
    task = call.tx.task(task_id)
    assert task is not None
    result = None if task.result is None else call.tx.text(task.result)
    return Told(task.id, task.title, task.status, result, task.commit, task.session or OWNER)


def show(call: Call, name: str, state: State, evidence: str, until: float | None = None) -> None:
    """Bring a session into a state, if it is not there already; `until`: when it goes on by itself."""
    session = call.tx.session(name)
    if session is None or session.removed:
        return
    if session.state is State.DEAD and state not in (State.STARTING, State.IDLE):
        session = call.put_session(session, name, sessions.Changed(State.IDLE, "looked after again"), by=COVEY)
    event = sessions.change(session, state, redact(evidence)[:EVIDENCE], until)
    if event is not None:
        call.put_session(session, name, event, by=COVEY)


def started(call: Call, work: Work, base: str, head: str | None = None) -> None:
    """Note that a run's worktree is ready and its program runs."""
    run = work.run
    now = call.tx.run(run.id)
    if now is not None and now.outcome is None and now.base is None:
        now = put_run(call, now, runs.Prepared(base=base, head=head), COVEY)
    if run.person and work.conversation and now is not None and now.outcome is None:
        talks(call, now, work.conversation)  # what the program writes from now on need not name it again
    hands = f": {work.session.attached} has it in a terminal" if run.person and work.session.attached else ""
    show(call, run.session, State.WORKING, f"{run.id} on {run.task}{hands}")


def talks(call: Call, run: Run, conversation: str) -> None:
    """Note the conversation of a run."""
    now = call.tx.run(run.id)
    if now is not None and now.outcome is None and now.conversation != conversation:
        put_run(call, now, runs.Talking(conversation), COVEY)


def missed(call: Call, run: Run, calls: int) -> None:
    """Note that covey was not there before some uses of tools."""
    now = call.tx.run(run.id)
    if calls and now is not None and now.outcome is None:
        put_run(call, now, runs.Missed(calls=calls, why=MISSED), COVEY)


def left(call: Call, run: Run, ref: str) -> None:
    """Note where that is kept which a run did not commit."""
    now = call.tx.run(run.id)
    if now is not None and now.outcome is None and now.left != ref:
        put_run(call, now, runs.Left(ref), COVEY)


def wrote(call: Call, run: Run, paths: Iterable[str]) -> None:
    """Note the files that a run changed."""
    now, event = call.tx.run(run.id), runs.wrote(paths)
    if now is not None and now.outcome is None and event is not None:
        put_run(call, now, event, COVEY)


def ending(call: Call, run: Run, event: runs.Ending) -> None:
    """Note that a run shall be stopped."""
    now = call.tx.run(run.id)
    if now is not None and now.outcome is None and now.ending is None:
        put_run(call, now, replace(event, why=redact(event.why)), COVEY)


def lost(call: Call, run: Run, what: str, code: int | None) -> None:
    """End a run that the machine, not the agent, ended; its session goes on with the task."""
    _end(call, run, runs.Ended(outcome=Outcome.LOST, code=code, what=what))


def unstartable(call: Call, run: Run, what: str) -> None:
    """End a run that could not be started: no fault of its task, which goes back to the board."""
    if _end(call, run, runs.Ended(outcome=Outcome.FAILED, what=what)):
        let_go(call, run.session)
        show(call, run.session, State.STALLED, what[:500])


def judged(call: Call, run: Run, verdict: Verdict, code: int | None, until: float | None = None) -> None:
    """End a run as it was judged: hand its work in, put the task back with what went wrong, or go on later.

    `until`: when its session goes on, if it shall wait.
    """
    task = call.tx.task(run.task)
    now = call.tx.run(run.id)
    if task is None or now is None or now.outcome is not None:
        return
    if isinstance(verdict, Again | PutOff) and verdict.fresh:
        now = forget_conversation(call, now)
    stopped = run.ending is not None and not run.fault and not run.over
    asked = questions.awaited(call, task.id)
    if isinstance(verdict, HandIn):  # what it wanted to push is no part of the work: that lands by the queue
        asked = [each for each in asked if each.run == run.id and each.tool != PUSH]
    if isinstance(verdict, PutOff) and verdict.fresh and _broke_before(call, run):
        verdict = Again(verdict.what, fresh=True)  # once may be chance; again and again it is the task
    if isinstance(verdict, HandIn) and task.open_children:
        verdict = Again(f"{task.id} has children that are not done: its commits stay on {branch_of(task.id)}.")
    if isinstance(verdict, HandIn) and holds(task, run) and not stopped and not asked:
        why = handing_in(call, run.session, task, verdict.writes)
        verdict = verdict if why is None else Again(why)
    if not holds(task, run):
        outcome = Outcome.HANDED_IN if is_theirs(task, run) else Outcome.STOPPED
        _end(call, run, runs.Ended(outcome=outcome, code=code, what=run.ending))
    elif run.person:
        _end(call, run, runs.Ended(outcome=Outcome.STOPPED, code=code, what=run.ending or "The person left."))
        give_back(call, run.session)
    elif isinstance(verdict, HandIn) and not stopped and not asked:
        _end(call, run, runs.Ended(outcome=Outcome.HANDED_IN, code=code, commit=verdict.commit))
        hand_in(call, task, run.session, verdict)
    elif stopped:
        _end(call, run, runs.Ended(outcome=Outcome.STOPPED, code=code, what=run.ending), until=until)
        if not run.again:
            change(call, task, tasks.Released(run.session), COVEY)
    elif asked:
        _end(
            call, run, runs.Ended(outcome=Outcome.PUT_OFF, code=code, what=f"It waits for an answer to {asked[0].id}.")
        )
        show(call, run.session, State.NEEDS_YOU, asked[0].text)
    elif isinstance(verdict, PutOff):
        _put_off(call, run, verdict, code, until)
    elif isinstance(verdict, Crashed) and not _crashes_on(call, run):
        what = redact(verdict.what)
        _end(call, run, runs.Ended(outcome=Outcome.CRASHED, code=code, what=what), until=until)
    else:
        what = redact(run.ending or "" if isinstance(verdict, HandIn) else verdict.what)
        outcome = Outcome.CRASHED if isinstance(verdict, Crashed) else Outcome.FAILED
        _end(call, run, runs.Ended(outcome=outcome, code=code, what=what), until=until)
        back = fail(call, task, what)
        if isinstance(verdict, Crashed):
            _block_crashing(call, run, back, what)
        else:
            put_back(call, back, what)


def give_back(call: Call, name: str) -> None:
    """Give a session its conversation back, if a person has it."""
    session = call.tx.session(name)
    if session is not None:
        event = sessions.give_back(session)
        if event is not None:
            call.put_session(session, name, event, by=COVEY)


def _broke_before(call: Call, run: Run) -> bool:
    """Say whether under the same claim a conversation was broken twice already."""
    mine = [one for one in call.tx.last_runs("task", run.task, 20) if one.fence == run.fence and one.id != run.id]
    return sum(one.outcome is Outcome.PUT_OFF and one.conversation == "" for one in mine) >= 2


def _put_off(call: Call, run: Run, verdict: PutOff, code: int | None, until: float | None) -> None:
    """End a run for a trouble that is not its task's; its session keeps the task and goes on later."""
    _end(call, run, runs.Ended(outcome=Outcome.PUT_OFF, code=code, what=verdict.what))
    state = STATES.get(verdict.trouble, State.LIMITED)
    show(call, run.session, state, verdict.what, until)


def forget_conversation(call: Call, run: Run) -> Run:
    """Note that the conversation of a run is past use: the next one begins anew."""
    # Also of a run that never named it: it may have taken up the one of an earlier run.
    return run if run.conversation == "" else put_run(call, run, runs.Talking(""), COVEY)


def _crashes_on(call: Call, run: Run) -> bool:
    """Say whether with this crash a task has crashed its runs too often: in a short time, or however long it took."""
    watch = call.house.config.watch
    since = call.tx.now - watch.crash_minutes * 60
    bad = _crashes(call, run)
    fresh = [one for one in bad if (one.ended or 0.0) >= since]
    return len(fresh) + 1 >= watch.crashes or len(bad) + 1 >= IN_A_ROW * watch.crashes


def _crashes(call: Call, run: Run) -> list[Run]:
    """Return the crashes of a task right before this one, in one claim.

    A crash keeps the claim: one under an earlier claim was before a person, or a try, gave the task a new chance.
    """
    earlier = call.tx.last_runs("task", run.task, MANY)
    mine = [one for one in earlier if one.id != run.id and one.fence == run.fence]
    counts = [one for one in mine if one.outcome not in (Outcome.PUT_OFF, Outcome.STOPPED)]
    return list(takewhile(lambda one: one.outcome in (Outcome.CRASHED, Outcome.LOST), counts))


def _block_crashing(call: Call, run: Run, task: Task, what: str) -> None:
    first = what.splitlines()[0] if what else ""
    bad = _crashes(call, run)
    seconds = call.tx.now - min([run.begun, *(one.begun for one in bad)])
    reason = f"Its runs crashed {len(bad) + 1} times in {span(seconds)}; the last time: {first}"
    change(call, task, tasks.block(task, reason[:REASON]), COVEY)
    alert(call, "crash_loop", f"{task.id} needs a person. {reason}"[:REASON], None, task.id)


def _end(call: Call, run: Run, event: runs.Ended, *, until: float | None = None) -> bool:
    """End a run, unless it has ended, and let its session rest, until a time if one is given."""
    now = call.tx.run(run.id)
    if now is None or now.outcome is not None:
        return False
    event = replace(event, what=None if event.what is None else redact(event.what))
    put_run(call, now, runs.end(now, event), COVEY)
    call.tx.drop_tokens(run.session)
    end_by_hand(call, run.session, f"{run.id} has ended")
    if run.person:
        give_back(call, run.session)
    questions.withdraw(call, run.id, f"{run.id} has ended.", keep=event.outcome is not Outcome.HANDED_IN)
    said = event.what.splitlines()[0] if event.what else event.outcome
    show(call, run.session, State.IDLE, f"{run.id} ended: {said}"[:500], until)
    return True


def hand_in(call: Call, task: Task, session: str, verdict: HandIn) -> None:
    """Pass the work of a run on to review or the merge queue."""
    review = needs_review(call, session)
    result = None if verdict.result is None else call.tx.keep(redact(verdict.result))
    event = tasks.hand_in(task, session, review=review, result=result, commit=verdict.commit)
    if change(call, task, event, session).status is not Status.DONE:
        branch = branch_of(task.id)
        queue(call, merges.Queued(task=task.id, session=session, branch=branch, commit=verdict.commit, review=review))
