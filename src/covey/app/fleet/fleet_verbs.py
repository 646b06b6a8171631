"""The verbs of the sessions that covey runs: start, stop, pause, remove them, and see what they print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

from msgspec import Meta, Struct

from covey.app.board.task_changes import change
from covey.app.context import Call
from covey.app.fleet.script_tasks import is_for_none
from covey.app.fleet.sessions import check_agent, find, fresh_names, full, is_free, leave_line, must_fit, register
from covey.app.history import transcripts
from covey.app.leases.lease_queue import end_all
from covey.app.shapes.costs import spent
from covey.app.shapes.fleet import ListRuns, Logs, ReadLogs, RemoveSession, RunRow, SessionFull
from covey.app.shapes.forms import Answered, Asked, Name, Nothing, completed, fields_of
from covey.app.verbs import verb
from covey.core.board import tasks
from covey.core.board.tasks import Status
from covey.core.costs.spending import Used
from covey.core.fleet import batches, fleet_state, runs, sessions
from covey.core.fleet.sessions import Goal, SessionKind
from covey.core.leases import leases
from covey.core.merging import merges
from covey.core.nouns import NAMES, missing
from covey.core.people.rights import OWN, OWNER_ONLY, PARTLY
from covey.errors import Refused
from covey.store.engine import rows

_AWAKE = (Goal.WORKING, Goal.PAUSED)


class StartBatch(Asked, frozen=True, kw_only=True):
    """Sessions for the tasks of a batch; with `all`, every task that waits or is about to land joins it first."""

    name: Name
    sessions: Annotated[int, Meta(ge=1, le=1000)]
    agent: Name | None = None
    all: bool = False


class StartFleet(Asked, frozen=True, kw_only=True):
    """Brings back those that were stopped together last; with `all`, every session that is stopped."""

    all: bool = False


@completed(fields_of(fleet_state.Fleet, "id"))
class FleetRow(Answered, frozen=True):
    """Whether the whole fleet stands still, since when and by whose word."""


class BatchRow(Struct, frozen=True):
    """A batch: its sessions, and those of its tasks that have not ended."""

    name: str
    sessions: list[str]
    tasks: list[str]
    over: bool


@verb("session.start", "POST /api/sessions/{name}/start", Nothing, SessionFull, may=OWNER_ONLY)
def start(call: Call, asked: Nothing, name: str) -> SessionFull:
    """Let a session work the board until it is stopped."""
    return let_work(call, [name])[0]


def let_work(call: Call, names: Iterable[str]) -> list[SessionFull]:
    """Let sessions work the board, with the settings as they are now."""
    call.context.refresh()
    call.context.gate.is_broken = False
    started = []
    for name in names:
        _forgive(call, name)
        started.append(aim(call, name, sessions.start))
    return started


def _forgive(call: Call, name: str) -> None:
    """Let a session start at once that waits: a person says so."""
    session = find(call, name)
    if session.state not in (sessions.SessionState.LIMITED, sessions.SessionState.STALLED) and session.until is None:
        return  # it does not wait, and others of its agent may do so with reason
    call.context.fleet.forgive(session.agent or "", name)
    if session.until is not None and not call.tx.open_runs(name):
        call.put_session(session, name, sessions.Changed(sessions.SessionState.IDLE, "A person let it go on."))


@verb("session.stop", "POST /api/sessions/{name}/stop", Nothing, SessionFull, may=OWNER_ONLY)
def stop(call: Call, asked: Nothing, name: str) -> SessionFull:
    """Stop a session: its program ends, its work is kept, its task goes back to the board."""
    stopped = aim(call, name, sessions.stop)
    leave_line(call, name)
    return stopped


@verb("session.pause", "POST /api/sessions/{name}/pause", Nothing, SessionFull, may=OWNER_ONLY)
def pause(call: Call, asked: Nothing, name: str) -> SessionFull:
    """Let a session stand still with its task, until it is resumed."""
    return aim(call, name, sessions.pause)


@verb("session.resume", "POST /api/sessions/{name}/resume", Nothing, SessionFull, may=OWNER_ONLY)
def resume(call: Call, asked: Nothing, name: str) -> SessionFull:
    """Let a session that stands still go on."""
    return aim(call, name, sessions.resume)


@verb("session.restart", "POST /api/sessions/{name}/restart", Nothing, SessionFull, may=OWNER_ONLY)
def restart(call: Call, asked: Nothing, name: str) -> SessionFull:
    """End a session's run and begin another on the same task; what was not committed is kept aside."""
    session = find(call, name)
    sessions.start(session)
    for run in call.tx.open_runs(name):
        if run.ending is None:
            call.tx.advance(run, runs.Ending("It was restarted by a person.", again=True), call.actor(None))
    _forgive(call, name)
    return aim(call, name, sessions.start)


@verb("session.remove", "POST /api/sessions/{name}/remove", RemoveSession, SessionFull, may=OWNER_ONLY)
def remove(call: Call, asked: RemoveSession, name: str) -> SessionFull:
    """Remove a session once its work is safe; one at work only by force."""
    session = find(call, name)
    at_work = bool(call.tx.holding(name) or call.tx.open_runs(name))
    session = call.put_session(session, name, sessions.leave(session, at_work=at_work, force=asked.force))
    if session.kind is not SessionKind.RUN:
        session = part(call, session)
    return full(call, session)


def part(call: Call, session: sessions.Session) -> sessions.Session:
    """End a session for good: what it holds goes back to the board, what it leased is free, its tokens are dead."""
    let_go(call, session.name)
    leave_line(call, session.name)
    given = leases.Given(session.name)
    end_all(call, [(lease, given) for lease in call.tx.open_leases(session.name)], sessions.COVEY)
    call.tx.drop_tokens(session.name)
    now = call.tx.session(session.name) or session
    gone = call.put_session(now, session.name, sessions.remove(now), by=sessions.COVEY)
    if session.batch is not None:
        disband(call, session.batch)
    return gone


def let_go(call: Call, name: str) -> None:
    """Give back what a session holds; that does not count as a failed try."""
    for task in call.tx.held_by(name):
        change(call, task, tasks.Released(name), sessions.COVEY)


@verb("session.logs", "GET /api/sessions/{name}/logs", ReadLogs, Logs, may=OWN)
def logs(call: Call, asked: ReadLogs, name: str) -> Logs:
    """Read what a run of a session printed, from a byte on, as a transcript where its agent's stream is one."""
    call.find(sessions.Session, name)
    run = run_of(call, name, asked.run)
    source = transcripts.source_of(call, run, raw=asked.raw)
    if source.output is None:
        if asked.raw:
            raise Refused(f"What {run.id} printed has had its time.", hint="Its transcript is kept: leave out --raw.")
        text, _, following = transcripts.kept_of(call, run, asked.since)
        return Logs(run.id, text, following, alive=False, transcript=True)
    since = source.place(asked.since)
    words = None if asked.raw or source.reader is not None else transcripts.words_of(call, run)
    if words is not None:
        text, following = transcripts.plain(source.output, words, since, source.size, alive=source.alive)
    elif source.reader is None:
        text, following = transcripts.raw(source.output, since, source.size, alive=source.alive)
    else:
        text, following = transcripts.readable(source.output, source.reader, since, source.size, alive=source.alive)
    return Logs(run.id, text, following, source.alive, source.reader is not None)


def run_of(call: Call, name: str, run_id: str | None) -> runs.Run:
    """Return a run of a session, the last one if none is named."""
    if run_id is None:
        last = next(iter(call.tx.last_runs(1, session=name)), None)
        if last is not None:
            return last
        if find(call, name).kind is not SessionKind.RUN:
            raise Refused(f"{name} has no runs: covey does not run it.")
        raise Refused(f"{name} has not run yet.", hint=f"covey session start {name} lets it work.")
    run = call.tx.run(run_id)
    if run is None or run.session != name:
        raise missing("run", run_id)
    return run


@verb("run.list", "GET /api/runs", ListRuns, list[RunRow], may=PARTLY)
def list_runs(call: Call, asked: ListRuns) -> list[RunRow]:
    """List runs of a session, for a task, or of all, the newest first; a session sees its own."""
    if call.who.session is not None and asked.session not in (None, call.who.session):
        return []
    session = call.who.session or asked.session
    found = call.tx.last_runs(asked.limit, session=session, task=asked.task)
    used = call.tx.used_by("run", [run.id for run in found])
    return [RunRow.of(run, **spent(used.get(run.id, Used()))) for run in found]


def run_row(call: Call, run: runs.Run) -> RunRow:
    """Return a run as it is answered, with what it has used so far."""
    return RunRow.of(run, **spent(call.tx.used_by("run", [run.id]).get(run.id, Used())))


@verb("fleet.pause", "POST /api/pause", Nothing, FleetRow, may=OWNER_ONLY)
def pause_fleet(call: Call, asked: Nothing) -> FleetRow:
    """Let every session stand still at once, and start and land nothing new."""
    return _turn(call, fleet_state.Paused(), paused=True)


@verb("fleet.resume", "POST /api/resume", Nothing, FleetRow, may=OWNER_ONLY)
def resume_fleet(call: Call, asked: Nothing) -> FleetRow:
    """Let the fleet go on."""
    return _turn(call, fleet_state.Resumed(), paused=False)


def _turn(call: Call, event: fleet_state.Event, *, paused: bool) -> FleetRow:
    now = call.tx.fleet()
    if now.paused is not paused:
        now = _put_fleet(call, event)
    return FleetRow.of(now)


def _put_fleet(call: Call, event: fleet_state.Event) -> fleet_state.Fleet:
    """Write the fleet as it is after an event, and the event."""
    before = call.tx.get(fleet_state.Fleet, fleet_state.FLEET)
    after = fleet_state.apply(before or fleet_state.Fleet(), event, call.tx.now, call.actor(None))
    return call.tx.record(call.actor(None), fleet_state.FLEET, event, before, after)


@verb("fleet.stop", "POST /api/stop", Nothing, list[SessionFull], may=OWNER_ONLY)
def stop_fleet(call: Call, asked: Nothing) -> list[SessionFull]:
    """Stop every session that covey runs, and note who they were: POST /api/start brings them back."""
    aims = {goal: [each.name for each in call.tx.run_sessions() if each.goal is goal] for goal in _AWAKE}
    event = fleet_state.Stopped(tuple(aims[Goal.WORKING]), tuple(aims[Goal.PAUSED]))
    names = sorted((*event.working, *event.paused))
    if names:
        _put_fleet(call, event)
    stopped = [aim(call, name, sessions.stop) for name in names]
    for name in names:
        leave_line(call, name)
    return stopped


@verb("fleet.start", "POST /api/start", StartFleet, list[SessionFull], may=OWNER_ONLY)
def start_fleet(call: Call, asked: StartFleet) -> list[SessionFull]:
    """Bring back the sessions that were stopped together last, as they were; with `all`, start all that are stopped."""
    together = stopped_together(call)
    names = stopped(call) if asked.all else sorted(together)
    begun = let_work(call, names)
    stood_still = {name for name, goal in together.items() if goal is Goal.PAUSED}
    return [aim(call, each.name, sessions.pause) if each.name in stood_still else each for each in begun]


def stopped(call: Call) -> list[str]:
    """Return the sessions that covey runs and that are stopped."""
    return [session.name for session in call.tx.run_sessions() if session.goal is Goal.STOPPED]


def stopped_together(call: Call) -> dict[str, Goal]:
    """Return who was stopped last by one word for all and was not started since, each with what it did before."""
    last = call.tx.events(subject=fleet_state.FLEET, kind=NAMES[fleet_state.Stopped], limit=1, newest=True)
    told = rows.decode_payload(last[0].kind, last[0].data) if last else None
    if not isinstance(told, fleet_state.Stopped):
        return {}
    goals = dict.fromkeys(told.working, Goal.WORKING) | dict.fromkeys(told.paused, Goal.PAUSED)
    again = (NAMES[sessions.Started], NAMES[sessions.Registered])
    return {
        name: goals[name]
        for name in stopped(call)
        if name in goals and not call.tx.has_happened(name, again, after=last[0].seq)
    }


@verb("batch.start", "POST /api/batches", StartBatch, BatchRow, may=OWNER_ONLY, status=201, long=True)
def start_batch(call: Call, asked: StartBatch) -> BatchRow:
    """Start sessions for the tasks of a batch; they go when nothing more can come of these."""
    call.context.refresh()
    call.context.gate.is_broken = False
    agent = asked.agent or call.context.config.default_agent()
    check_agent(call, agent)
    if asked.all:
        for task in call.tx.without_batch():
            change(call, task, tasks.Edited(batch=asked.name), call.actor(None))
    wanted = call.tx.batch(asked.name)
    if not wanted:
        raise Refused(f"No task of {asked.name} waits.", hint="covey task list shows the board.")
    assignees = {task.assignee: None for task in wanted if task.assignee and is_free(call, task.assignee)}
    names = [*assignees, *fresh_names(call, asked.sessions, assignees)]
    must_fit(call, len(names))
    for name in names:
        session = register(call, name, sessions.Registered(agent=agent, batch=asked.name))
        call.put_session(session, name, sessions.Started())
    return _batch(call, asked.name)


@verb("batch.show", "GET /api/batches/{name}", Nothing, BatchRow, may=OWNER_ONLY)
def show_batch(call: Call, asked: Nothing, name: str) -> BatchRow:
    """Show the sessions of a batch, and its tasks that have not ended."""
    return _batch(call, name)


@verb("batch.stop", "POST /api/batches/{name}/stop", Nothing, BatchRow, may=OWNER_ONLY)
def stop_batch(call: Call, asked: Nothing, name: str) -> BatchRow:
    """End the sessions of a batch: their work is kept, and their tasks go back to the board."""
    for session in _sessions_of(call, name):
        leaving = sessions.leave(session, at_work=True, force=True, why=f"{name} was stopped")
        call.put_session(session, session.name, leaving)
    disband(call, name)
    return _batch(call, name)


def _sessions_of(call: Call, name: str) -> list[sessions.Session]:
    return [session for session in call.tx.run_sessions() if session.batch == name]


def _batch(call: Call, name: str) -> BatchRow:
    open_tasks = call.tx.batch(name)
    own = [session.name for session in _sessions_of(call, name)]
    return BatchRow(name, own, [task.id for task in open_tasks], is_over(call, name))


def is_over(call: Call, name: str) -> bool:
    """Say whether nothing of a batch can move by itself any more."""
    open_tasks, own = call.tx.batch(name), _sessions_of(call, name)
    ours = {task.id for task in open_tasks}
    outside = {need.task for task in open_tasks for need in task.needs if need.task not in ours}
    elsewhere = {found.id: found.status for each in outside if (found := call.tx.task(each)) is not None}
    merging = {task.id for task in open_tasks if task.status is Status.MERGING}
    stands = {merge.task: merge for merge in call.tx.open_merges() if merge.task in merging}
    waiting = {task for task, merge in stands.items() if waits_for_person(call, merge)}
    waiting |= {task.id for task in open_tasks if task.status is Status.TODO and not _will_be_taken(call, task, own)}
    return batches.is_over(open_tasks, elsewhere, waiting)


def waits_for_person(call: Call, merge: merges.Merge) -> bool:
    """Say whether a merge goes on only when a person has done something."""
    has_gate = bool(call.context.config.merge.check)
    return merges.waits_for_person(merge, has_gate=has_gate, broken_gate=call.context.gate.is_broken)


def _will_be_taken(call: Call, task: tasks.Task, own: list[sessions.Session]) -> bool:
    """Say whether covey itself will take a task: not if there is no place for a worktree, or it is no script for them.

    `own` are the sessions of its batch.
    """
    name = batches.waits_for(task)
    session = None if name is None else call.tx.session(name)
    if call.context.fleet.no_place or not batches.will_be_taken(task, session):
        return False
    return not is_for_none(call, task, own if session is None else [session])


def disband(call: Call, name: str) -> None:
    """Give the tasks of a batch that has no session any more back to the whole board."""
    if not _sessions_of(call, name):
        for task in call.tx.batch(name):
            change(call, task, tasks.Edited(cleared=("batch",)), sessions.COVEY)


def aim(call: Call, name: str, rule: Callable[[sessions.Session], sessions.Event | None]) -> SessionFull:
    """Set what a session is to do; the loops bring it about."""
    session = find(call, name)
    return full(call, call.put_session(session, name, rule(session)))
