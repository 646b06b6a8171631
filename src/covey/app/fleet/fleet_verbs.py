"""The verbs of the sessions that covey runs: start, stop, pause, remove them, and see what they print."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from covey.app import edits, journals, transcripts
from covey.app.changes import change
from covey.app.costs import spent_by
from covey.app.lines import end_all
from covey.app.sessions import check_agent, fresh_names, full, is_free, must_fit, register
from covey.app.shapes.fleet import BatchRow, FleetRow, StartBatch, StartFleet
from covey.app.shapes.forms import Nothing
from covey.app.shapes.runs import ListRuns, Logs, ReadLogs, RunRow
from covey.app.shapes.sessions import RemoveSession, SessionFull
from covey.app.verbs import Call, missing, verb
from covey.core import batches, fleet, leases, merges, runs, sessions, tasks
from covey.core.events import NAMES
from covey.core.merges import State as MergeState
from covey.core.rights import OWN, OWNER_ONLY, PARTLY
from covey.core.sessions import Goal, Kind
from covey.core.spending import Used
from covey.core.tasks import Status
from covey.errors import CoveyError, Refused, Unavailable
from covey.store import rows

_AWAKE = (Goal.WORKING, Goal.PAUSED)


def find(call: Call, name: str) -> sessions.Session:
    """Return a session, or say that there is none."""
    session = call.tx.session(name)
    if session is None or session.removed:
        raise missing("session", name)
    return session


@verb("session.start", "POST /api/sessions/{name}/start", Nothing, SessionFull, may=OWNER_ONLY)
def start(call: Call, asked: Nothing, name: str) -> SessionFull:
    """Let a session work the board until it is stopped."""
    return let_work(call, [name])[0]


def let_work(call: Call, names: Iterable[str]) -> list[SessionFull]:
    """Let sessions work the board, with the settings as they are now."""
    call.house.refresh()
    call.house.broken_gate = False
    started = []
    for name in names:
        _forgive(call, name)
        started.append(aim(call, name, sessions.start))
    return started


def _forgive(call: Call, name: str) -> None:
    """Let a session start at once that waits: a person says so."""
    session = find(call, name)
    if session.state not in (sessions.State.LIMITED, sessions.State.STALLED) and session.until is None:
        return  # it does not wait, and others of its agent may do so with reason
    call.house.forgive(session.agent or "", name)
    if session.until is not None and not call.tx.open_runs(name):
        event = sessions.Changed(sessions.State.IDLE, "A person let it go on.")
        call.put_session(session, name, event)


@verb("session.stop", "POST /api/sessions/{name}/stop", Nothing, SessionFull, may=OWNER_ONLY)
def stop(call: Call, asked: Nothing, name: str) -> SessionFull:
    """Stop a session: its program ends, its work is kept, its task goes back to the board."""
    stopped = aim(call, name, sessions.stop)
    _leave_line(call, name)
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
            put_run(call, run, runs.Ending("It was restarted by a person.", again=True), call.actor(None))
    _forgive(call, name)
    return aim(call, name, sessions.start)


@verb("session.remove", "POST /api/sessions/{name}/remove", RemoveSession, SessionFull, may=OWNER_ONLY)
def remove(call: Call, asked: RemoveSession, name: str) -> SessionFull:
    """Remove a session once its work is safe; one at work only by force."""
    session = find(call, name)
    at_work = bool(call.tx.holding(name) or call.tx.open_runs(name))
    event = sessions.leave(session, at_work=at_work, force=asked.force)
    if event is not None:
        session = call.put_session(session, name, event)
    if session.kind is not Kind.RUN:
        session = part(call, session)
    return full(call, session)


def part(call: Call, session: sessions.Session) -> sessions.Session:
    """End a session for good: what it holds goes back to the board, what it leased is free, its tokens are dead."""
    let_go(call, session.name)
    _leave_line(call, session.name)
    given = leases.Given(session.name)
    end_all(call, [(lease, given) for lease in call.tx.open_leases(session.name)], sessions.COVEY)
    call.tx.drop_tokens(session.name)
    now = call.tx.session(session.name) or session
    gone = call.put_session(now, session.name, sessions.remove(now), by=sessions.COVEY)
    if session.batch is not None:
        disband(call, session.batch)
    return gone


def _leave_line(call: Call, name: str) -> None:
    """Let anyone mend what was rejected and waits for its author."""
    for task in call.tx.in_front_of(name):
        change(call, task, tasks.Edited(cleared=("front",)), sessions.COVEY)


def let_go(call: Call, name: str) -> None:
    """Give back what a session holds; that is no failed try."""
    for task in call.tx.held_by(name):
        change(call, task, tasks.Released(name), sessions.COVEY)


@verb("session.logs", "GET /api/sessions/{name}/logs", ReadLogs, Logs, may=OWN)
def logs(call: Call, asked: ReadLogs, name: str) -> Logs:
    """Read what a run of a session printed, from a byte on, as a transcript where its agent's stream is one."""
    if call.tx.session(name) is None:
        raise missing("session", name)
    run = run_of(call, name, asked.run)
    runner = call.house.runner
    if runner is None:
        raise Unavailable("Nothing can be read of runs here.")
    seen = runner.look(run.id)
    reader, journal = (None, None) if asked.raw else reader_of(call, run, alive=seen.alive)
    gone = not seen.size or (run.runner == runs.TMUX and journal is None and not asked.raw)
    if gone and not seen.alive and call.house.runs is not None:
        part = transcripts.kept(call.house.runs / run.id, asked.since)
        if part is not None and asked.raw:
            raise Refused(f"What {run.id} printed has had its time.", hint="Its transcript is kept: leave out --raw.")
        if part is not None:
            return Logs(run.id, part[0], part[1], alive=False, transcript=True)
    size = seen.size

    def output(since: int) -> tuple[bytes, int]:
        return runner.output(run.id, since)

    if journal is not None:
        output, size = journal.read, journal.size()
    since = asked.since if asked.since >= 0 else max(size + asked.since, 0)
    words = None if asked.raw or reader is not None else words_of(call, run)
    if words is not None:
        text, following = transcripts.plain(output, words, since, size, alive=seen.alive)
    elif reader is None:
        text, following = transcripts.raw(output, since, size, alive=seen.alive)
    else:
        text, following = transcripts.readable(output, reader, since, size, alive=seen.alive)
    return Logs(run.id, text, following, seen.alive, reader is not None)


def reader_of(call: Call, run: runs.Run, *, alive: bool) -> tuple[edits.Reader | None, journals.Journal | None]:
    """Return what understands the output of a run, or, if it draws on a terminal, its journal.

    Nothing does if its agent is not known any more or prints plain lines.
    """
    from covey.agents import registry  # few commands read what an agent said, and all of them start with this module
    from covey.agents.agent import terminal_of

    try:
        agent = registry.find(run.agent, call.house.config.declared())
    except CoveyError:
        return None, None
    if run.runner == runs.PROCESS:
        folder = call.house.runs
        speaks = agent.traits.speaks
        reader = agent.read if folder is None else edits.reader(agent, folder / run.id, run)
        return (reader if speaks else None), None
    journal = journals.find(call.house.runs / run.id) if call.house.runs is not None else None
    terminal = terminal_of(run, agent)
    if terminal is None or (journal is None and not alive):
        return None, None  # of one that ended without a word, what it drew says more
    return terminal.read, journal or journals.Journal("")


def words_of(call: Call, run: runs.Run) -> edits.Reader | None:
    """Return what understands the words of a program that prints plain lines besides, None if it has none."""
    from covey.agents import registry  # few commands read what an agent said, and all of them start with this module

    if run.runner != runs.PROCESS:
        return None
    try:
        return registry.find(run.agent, call.house.config.declared()).read
    except CoveyError:
        return None


def run_of(call: Call, name: str, run_id: str | None) -> runs.Run:
    """Return a run of a session, the last one if none is named."""
    if run_id is None:
        last = next(iter(call.tx.last_runs("session", name, 1)), None)
        if last is None:
            raise Refused(f"{name} has not run yet.", hint=f"covey session start {name} lets it work.")
        return last
    run = call.tx.run(run_id)
    if run is None or run.session != name:
        raise missing("run", run_id)
    return run


@verb("run.list", "GET /api/runs", ListRuns, list[RunRow], may=PARTLY)
def list_runs(call: Call, asked: ListRuns) -> list[RunRow]:
    """List runs of a session, for a task, or of all, the newest first; a session sees its own."""
    if call.who.session is not None and asked.session not in (None, call.who.session):
        return []
    pairs = (("session", call.who.session or asked.session), ("task", asked.task))
    terms = [(column, value) for column, value in pairs if value]
    where = f"WHERE {' AND '.join(f'{column} = ?' for column, _ in terms)} " if terms else ""
    values = [value for _, value in terms]
    found = call.tx.find(rows.RUNS, f"{where}ORDER BY ordinal DESC LIMIT ?", (*values, asked.limit))
    used = spent_by(call, "run", [run.id for run in found])
    return [RunRow.of(run, used.get(run.id, Used())) for run in found]


@verb("fleet.pause", "POST /api/pause", Nothing, FleetRow, may=OWNER_ONLY)
def pause_fleet(call: Call, asked: Nothing) -> FleetRow:
    """Let every session stand still at once, and start and land nothing new."""
    return _turn(call, fleet.Paused(), paused=True)


@verb("fleet.resume", "POST /api/resume", Nothing, FleetRow, may=OWNER_ONLY)
def resume_fleet(call: Call, asked: Nothing) -> FleetRow:
    """Let the fleet go on."""
    return _turn(call, fleet.Resumed(), paused=False)


def _turn(call: Call, event: fleet.Event, *, paused: bool) -> FleetRow:
    now = call.tx.fleet()
    if now.paused is not paused:
        now = _put_fleet(call, event)
    return FleetRow(now.paused, now.by, now.since)


def _put_fleet(call: Call, event: fleet.Event) -> fleet.Fleet:
    """Write the fleet as it is after an event, and the event."""
    before = call.tx.get(rows.FLEET, fleet.FLEET)
    after = fleet.apply(before or fleet.Fleet(), event, call.tx.now, call.actor(None))
    if before is None:
        call.tx.insert(rows.FLEET, after)
    else:
        call.tx.update(rows.FLEET, before, after)
    call.tx.append(call.actor(None), fleet.FLEET, event, after)
    return after


@verb("fleet.stop", "POST /api/stop", Nothing, list[SessionFull], may=OWNER_ONLY)
def stop_fleet(call: Call, asked: Nothing) -> list[SessionFull]:
    """Stop every session that covey runs, and note who they were: POST /api/start brings them back."""
    aims = {goal: [each.name for each in call.tx.run_sessions() if each.goal is goal] for goal in _AWAKE}
    event = fleet.Stopped(tuple(aims[Goal.WORKING]), tuple(aims[Goal.PAUSED]))
    names = sorted((*event.working, *event.paused))
    if names:
        _put_fleet(call, event)
    stopped = [aim(call, name, sessions.stop) for name in names]
    for name in names:
        _leave_line(call, name)
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
    """Return the sessions that covey runs and that shall not work now."""
    return [session.name for session in call.tx.run_sessions() if session.goal is Goal.STOPPED]


def stopped_together(call: Call) -> dict[str, Goal]:
    """Return who was stopped last by one word for all and was not started since, each with what it did before."""
    last = call.tx.events(subject=fleet.FLEET, kind=NAMES[fleet.Stopped], limit=1, newest=True)
    told = rows.decode_payload(last[0].kind, last[0].data) if last else None
    if not isinstance(told, fleet.Stopped):
        return {}
    goals = dict.fromkeys(told.working, Goal.WORKING) | dict.fromkeys(told.paused, Goal.PAUSED)
    again = (NAMES[sessions.Started], NAMES[sessions.Registered])
    where = "SELECT 1 FROM events WHERE subject = ? AND seq > ? AND kind IN (?, ?) LIMIT 1"
    return {
        name: goals[name]
        for name in stopped(call)
        if name in goals and not call.tx.db.rows(where, (name, last[0].seq, *again))
    }


@verb("batch.start", "POST /api/batches", StartBatch, BatchRow, may=OWNER_ONLY, status=201, long=True)
def start_batch(call: Call, asked: StartBatch) -> BatchRow:
    """Start sessions for the tasks of a batch; they go when nothing more can come of these."""
    call.house.refresh()
    call.house.broken_gate = False
    agent = asked.agent or call.house.config.default_agent()
    check_agent(call, agent)
    if asked.all:
        where = "WHERE status IN ('todo', 'merging') AND batch IS NULL ORDER BY ordinal"
        for task in call.tx.find(rows.TASKS, where):
            change(call, task, tasks.Edited(batch=asked.name), call.actor(None))
    wanted = call.tx.batch(asked.name)
    if not wanted:
        raise Refused(f"No task of {asked.name} waits.", hint="covey task list shows the board.")
    assignees = {task.assignee: None for task in wanted if task.assignee and is_free(call, task.assignee)}
    names = [*assignees, *fresh_names(call, asked.sessions, assignees)]
    must_fit(call, len(names))
    for name in names:
        session = register(call, name, agent=agent, batch=asked.name)
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
        event = sessions.leave(session, at_work=True, force=True, why=f"{name} was stopped")
        if event is not None:
            call.put_session(session, session.name, event)
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
    open_tasks = call.tx.batch(name)
    ours = {task.id for task in open_tasks}
    outside = {need.task for task in open_tasks for need in task.needs if need.task not in ours}
    elsewhere = {found.id: found.status for each in outside if (found := call.tx.task(each)) is not None}
    merging = {task.id for task in open_tasks if task.status is Status.MERGING}
    stands = {merge.task: merge for merge in call.tx.open_merges() if merge.task in merging}
    waiting = {task for task, merge in stands.items() if waits_for_person(call, merge)}
    waiting |= {task.id for task in open_tasks if task.status is Status.TODO and not _may_be_taken(call, task)}
    return batches.is_over(open_tasks, elsewhere, waiting)


def waits_for_person(call: Call, merge: merges.Merge) -> bool:
    """Say whether a merge goes on only when a person has done something."""
    if merge.state is MergeState.QUEUED:
        # What it waited for under a daemon before may be mended by now: only a try can tell.
        return call.house.broken_gate or not (merge.approved or call.house.config.merge.check)
    return merge.state is MergeState.PASSED and merge.reason is not None


def _may_be_taken(call: Call, task: tasks.Task) -> bool:
    """Say whether covey itself will take a task: one that is for a session which covey does not run may wait long."""
    if call.house.no_place:
        return False
    name = task.assignee or task.front
    session = None if name is None else call.tx.session(name)
    if name is None or session is None:
        return name is None
    return session.kind is Kind.RUN and sessions.goes_on(session)


def disband(call: Call, name: str) -> None:
    """Give the tasks of a batch that has no session any more back to the whole board."""
    if not _sessions_of(call, name):
        for task in call.tx.batch(name):
            change(call, task, tasks.Edited(cleared=("batch",)), sessions.COVEY)


def put_run(call: Call, run: runs.Run, event: runs.Event, actor: str) -> runs.Run:
    """Write a run as it is after an event, and the event."""
    after = runs.apply(run, event, call.tx.now)
    call.tx.update(rows.RUNS, run, after)
    call.tx.append(actor, run.id, event, after)
    return after


def aim(call: Call, name: str, rule: Callable[[sessions.Session], sessions.Event | None]) -> SessionFull:
    """Set what a session shall do; the loops bring it about."""
    session = find(call, name)
    event = rule(session)
    if event is not None:
        session = call.put_session(session, name, event)
    return full(call, session)
