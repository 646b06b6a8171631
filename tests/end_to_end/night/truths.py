"""What must be true all night, whatever happens: looked at after every change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from covey.config import Config
from covey.core.board.tasks import Status, Task
from covey.core.fleet.runs import Outcome, Run
from covey.core.merging.merges import Merge
from covey.core.people.alerts import Alert
from covey.store.engine.rows import Change
from tests.end_to_end.night.lives import Life
from tests.end_to_end.night.programs import Program

CENT = 1e-6
RACE = 1.0
"""Seconds in which a start that was decided upon may still be on its way."""


class Untrue(AssertionError):
    """Something that must be true all night was not."""


@dataclass
class Ledger:
    """What was really paid, and to whom it counts."""

    money: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    tokens: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    calls: int = 0


@dataclass
class Truths:
    """Sees every change as it is committed, and says what is wrong with it."""

    shortage: Callable[[], float | None]
    """Returns when the shortage of memory began that there is."""
    ledger: Ledger = field(default_factory=Ledger)
    life: Life | None = None
    open_runs: dict[str, Run] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)
    landed: Counter[str] = field(default_factory=Counter)
    alerts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    paused: bool = False
    programs: dict[str, Program] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def say(self, what: str) -> None:
        """Note what is wrong."""
        self.wrong.append(what)

    def hear(self, changes: list[Change]) -> None:
        """Look at what was committed together."""
        for change in changes:
            match change.row:
                case Run() as run:
                    self._run(change.kind, run)
                case Task() as task:
                    self._task(change.kind, task)
                case Merge() as merge if change.kind == "merge.landed":
                    self.landed[merge.task] += 1
                    if self.landed[merge.task] > 1:
                        self.say(f"{merge.task} landed twice")
                case Alert() as alert:
                    self._alert(alert)
                case _:
                    if change.kind == "daemon.started":
                        self._told.clear()

    # Runs

    def _run(self, kind: str, run: Run) -> None:
        if kind == "run.begun":
            self._begun(run)
        self.runs[run.id] = run
        if run.outcome is None:
            self.open_runs[run.id] = run
        else:
            self.open_runs.pop(run.id, None)
        if kind == "run.ending" and (run.ending or "").startswith("Stalled"):
            program = self.programs[run.id]
            if not program.guilty:
                self.say(f"{run.id} was ended as stalled, and was not: {run.ending}")
        if kind == "run.ended":
            self.outcomes[str(run.outcome)] += 1
            if run.outcome is Outcome.HANDED_IN:
                self._told = {each for each in self._told if each[0] != run.agent}
            program_alive = run.id in self.programs and self.programs[run.id].alive
            if program_alive:
                self.say(f"{run.id} was ended, and its program lives")

    def _begun(self, run: Run) -> None:
        for other in self.open_runs.values():
            if other.session == run.session or other.task == run.task:
                self.say(f"{run.id} began while {other.id} was open")
        task = self.tasks[run.task]
        if task.status is not Status.DOING or task.session != run.session or task.fence != run.fence:
            self.say(f"{run.id} began on {task.id}, which is {task.status} with {task.session}, fence {task.fence}")
        if not task.ready:
            self.say(f"{run.id} began on {task.id}, which is not ready")
        if self.paused:
            self.say(f"{run.id} began while the fleet was paused")
        if not run.person:
            self._paced(run)

    def _paced(self, run: Run) -> None:
        assert self.life is not None
        fleet, runtime = self.life.fleet, self.life.runtime
        pace = fleet.starts.paces.get(run.agent)
        running = sum(one.agent == run.agent and not one.person for one in self.open_runs.values())
        at, free = runtime.awake(), runtime.free_memory()
        if pace is not None and pace.cut is not None and at - pace.cut < RACE:
            return  # it was refused while this one was on its way
        if pace is not None and pace.limit is not None and running >= max(int(pace.limit), 1):
            self.say(f"{run.id} began as number {running + 1} of {run.agent}; its provider bears {pace.limit}")
        if pace is not None and pace.closed is not None and at < pace.closed - 1.0:
            self.say(f"{run.id} began {pace.closed - at:.0f} s before {run.agent} takes requests again")
        if pace is not None and pace.started is not None and run.agent != "plain" and at - pace.started < 2.0 - 0.1:
            self.say(f"{run.id} began {at - pace.started:.2f} s after another of {run.agent}")
        reserve = runtime.app.context.config.sessions.free_memory * 1024**2
        known = fleet.starts._free
        if running and at - known[0] < 1.0 and free is not None and known[1] == free and free < reserve:
            self.say(f"{run.id} began with {free} bytes free")

    # Tasks

    def _task(self, kind: str, task: Task) -> None:
        before = self.tasks.get(task.id)
        if kind == "task.claimed" and before is not None and task.fence != before.fence + 1:
            self.say(f"{task.id} was claimed with fence {task.fence} after {before.fence}")
        if before is not None and task.fence < before.fence:
            self.say(f"the fence of {task.id} went back")
        if before is not None and before.status is Status.DONE and task.status is not Status.DONE:
            self.say(f"{task.id} was done, and is {task.status}")
        if task.status is Status.BLOCKED and not task.reason:
            self.say(f"{task.id} is blocked without a story")
        self.tasks[task.id] = task

    # Alerts

    def _alert(self, alert: Alert) -> None:
        self.alerts[alert.type] += 1
        agent = self._agent_of(alert)
        if alert.type == "waits" and "memory" in alert.message:
            agent = f"memory since {self.shortage()}"
        elif not alert.type.startswith("agent_") or agent is None:
            return
        key = agent, alert.type
        if key in self._told:
            self.say(f"a person was told twice of {alert.type} of {agent}, and nothing went well between")
        self._told.add(key)

    def _agent_of(self, alert: Alert) -> str | None:
        mine = [run for run in self.runs.values() if run.session == alert.session]
        return mine[-1].agent if mine else None

    # Money

    def charge(self, program: Program, cost: float, tokens: int, wall: float, config: Config) -> None:
        """Note a call that was paid, and see that no limit was passed by it."""
        self.ledger.calls += 1
        run = self.runs[program.run]
        day = datetime.fromtimestamp(wall, UTC).date().isoformat()
        task, money, most = self.tasks[run.task], config.budget, config.budget.tokens
        own = min((each for each in (task.budget or 0.0, money.task) if each > 0), default=0.0)
        for scope, name, dollars, count in (
            ("run", run.id, run.money or 0.0, run.tokens or 0),
            ("task", run.task, own, most.task),
            ("session", f"{run.session} {day}", money.session, most.session),
            ("day", day, money.day, most.day),
        ):
            spent = self.ledger.money[scope, name] = round(self.ledger.money[scope, name] + cost, 9)
            used = self.ledger.tokens[scope, name] = self.ledger.tokens[scope, name] + tokens
            if dollars and spent > dollars + CENT:
                self.say(f"{run.id}: the {scope} {name} spent {spent:.4f} of {dollars:.4f} dollars")
            if count and used > count:
                self.say(f"{run.id}: the {scope} {name} used {used} of {count} tokens")
