"""What is so at this moment and in no log: the machine, limits, and what each session does."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from covey.app.board.waiting import Look
from covey.app.context import Call
from covey.app.costs.costs import today
from covey.app.shapes.board import Told, WaitsNow
from covey.app.shapes.costs import SpentToday
from covey.app.shapes.forms import Nothing
from covey.app.verbs import verb
from covey.core.costs.spending import Used
from covey.core.fleet import runs, sessions
from covey.core.fleet.live import Limit, Machine
from covey.core.merging import gates
from covey.core.merging.merges import OPEN, Merge, MergeState
from covey.core.merging.queue.train import RejectCause
from covey.core.people.rights import OWNER_ONLY
from covey.values import dataclass


class GateNow(Struct, frozen=True):
    """How far the work on a task is in the queue, `failed` once a gate sent it back, and how many tests failed then."""

    state: str
    failed: int


class LiveRow(Struct, frozen=True, kw_only=True):
    """One session at this moment.

    `action`: what it does or did last; `context`: how full that is, 1 is full; `cost` and `tokens`: of its task, with
    what its run has used so far; `plus`, `minus`, `files`: what its branch changes, None before anybody looked;
    `overlaps`: with how many others; `terminal`: whether its run has one that can be shown; `waits`: why it is not at
    work, None if it is.
    """

    session: str
    task: str | None
    run: str | None
    state: sessions.SessionState
    since: float
    until: float | None
    evidence: str | None
    action: str | None = None
    action_at: float | None = None
    context: float | None = None
    cost: float = 0.0
    tokens: int = 0
    memory: int = 0
    plus: int | None = None
    minus: int | None = None
    files: int | None = None
    gate: GateNow | None = None
    overlaps: int = 0
    terminal: bool = False
    waits: Told | None = None


class LiveFull(Struct, frozen=True, kw_only=True):
    """This moment whole."""

    machine: Machine
    limits: tuple[Limit, ...]
    today: SpentToday
    paused: bool
    waits: WaitsNow
    sessions: list[LiveRow]


@dataclass(frozen=True)
class Basis:
    """What the store tells of this moment; the rest is laid over it as often as it changes."""

    today: SpentToday
    paused: bool
    rows: list[LiveRow]
    runs: dict[str, runs.Run]
    """The open runs by their sessions."""
    written: dict[str, Used]
    """What each of these runs has used as far as it is written down, and so counted."""
    waits: WaitsNow


@verb("live.show", "GET /api/live", Nothing, LiveFull, may=OWNER_ONLY)
def show(call: Call, asked: Nothing) -> LiveFull:
    """Show this moment: the machine, what providers refuse, today's cost, and what each session does."""
    moment = call.context.moment or of_store
    return moment(basis(call))


def of_store(found: Basis) -> LiveFull:
    """Return this moment as far as the store tells of it."""
    return LiveFull(
        machine=Machine(), limits=(), today=found.today, paused=found.paused, waits=found.waits, sessions=found.rows
    )


def basis(call: Call) -> Basis:
    """Return what the store tells of this moment."""
    tx = call.tx
    known = [session for session in tx.known_sessions() if session.kind is not sessions.SessionKind.PERSON]
    at_work = {run.session: run for run in tx.open_runs()}
    held = {name: held[0] for name, held in tx.held_ids().items()}
    names = {each.name: at_work[each.name].task if each.name in at_work else held.get(each.name) for each in known}
    wanted = sorted({name for name in names.values() if name is not None})
    spent, gates_now = tx.used_by("task", wanted), _gates(call, wanted)
    close = [each for each in tx.open_overlaps() if each.level.is_close]
    meets = Counter(name for each in close for name in (each.one, each.other))  # main may be one of them
    look = Look(call)
    idle = {each.session: Told(each.text, each.until) for each in look.session_waits()}

    def row(session: sessions.Session) -> LiveRow:
        run, task = at_work.get(session.name), names[session.name] or ""
        used = spent.get(task, Used())
        return LiveRow(
            session=session.name,
            task=names[session.name],
            run=None if run is None else run.id,
            state=session.state,
            since=session.updated,
            until=session.until,
            evidence=session.evidence,
            cost=used.cost,
            tokens=used.tokens,
            gate=gates_now.get(task),
            overlaps=meets[task],
            terminal=run is not None and run.runner == runs.TMUX,
            waits=idle.get(session.name),
        )

    written = tx.used_by("run", [run.id for run in at_work.values()])
    return Basis(today(call), tx.fleet().paused, [row(each) for each in known], at_work, written, look.now())


def _gates(call: Call, tasks: list[str]) -> dict[str, GateNow]:
    """Return how far the work on some tasks is in the queue, or that a gate sent it back."""
    opened = {merge.task: merge for merge in call.tx.open_merges()}
    found = {task: opened.get(task) or call.tx.last_merge(task) for task in tasks}
    gates_now = {task: _gate(call, merge) for task, merge in found.items() if merge is not None}
    return {task: gate for task, gate in gates_now.items() if gate is not None}


def _gate(call: Call, merge: Merge) -> GateNow | None:
    """Return how far a merge is; None of what a person sent back, or git could not merge: that failed in no gate."""
    if merge.state in OPEN:
        return GateNow(str(merge.state), 0)
    if merge.state is not MergeState.REJECTED or merge.cause != RejectCause.FAILS:
        return None
    last = None if merge.run is None else call.tx.get(gates.Gate, merge.run)
    failed = len(last.failures) if last is not None and last.state is gates.GateState.FAILED else 0
    return GateNow("failed", failed)
