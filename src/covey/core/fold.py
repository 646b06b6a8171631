"""The story told again: every row, made from the log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace

from covey.core import (
    alerts,
    comments,
    devices,
    fleet,
    gates,
    ids,
    landings,
    leases,
    mail,
    merges,
    needs,
    overlaps,
    permits,
    proposals,
    questions,
    runs,
    sessions,
    spending,
    tasks,
)
from covey.core.events import Payload, noun
from covey.core.queue import standing
from covey.core.tasks import Task
from covey.values import dataclass


@dataclass(frozen=True)
class NeedRow:
    """One edge of the needs graph."""

    task: str
    need: str
    policy: needs.Policy


@dataclass(frozen=True)
class ResourceRow:
    """One resource of a lease that is live or waits, and the text under which it is found."""

    lease: str
    resource: str
    found: str


@dataclass(frozen=True)
class CountRow:
    """How many tasks stand in a status."""

    status: tasks.Status
    tasks: int


@dataclass(frozen=True)
class IdRow:
    """The last number that was given under a prefix."""

    prefix: str
    last: int


Row = (
    tasks.Task
    | sessions.Session
    | leases.Lease
    | leases.Crossing
    | mail.Message
    | mail.Reading
    | comments.Comment
    | merges.Merge
    | standing.Standing
    | gates.Gate
    | gates.Flake
    | landings.Landing
    | runs.Run
    | fleet.Fleet
    | questions.Question
    | permits.Permit
    | proposals.Proposal
    | devices.Device
    | spending.Spend
    | overlaps.Overlap
    | overlaps.HotFile
    | alerts.Alert
    | NeedRow
    | ResourceRow
    | CountRow
    | IdRow
)


@dataclass
class State:
    """Everything that the log says, as it grows."""

    tasks: dict[str, tasks.Task] = field(default_factory=dict)
    sessions: dict[str, sessions.Session] = field(default_factory=dict)
    crossings: dict[tuple[str, str, str], leases.Crossing] = field(default_factory=dict)
    leases: dict[str, leases.Lease] = field(default_factory=dict)
    messages: dict[str, mail.Message] = field(default_factory=dict)
    readings: dict[tuple[str, str], mail.Reading] = field(default_factory=dict)
    comments: dict[str, comments.Comment] = field(default_factory=dict)
    merges: dict[str, merges.Merge] = field(default_factory=dict)
    queue: dict[str, standing.Standing] = field(default_factory=dict)
    flakes: dict[str, gates.Flake] = field(default_factory=dict)
    gates: dict[str, gates.Gate] = field(default_factory=dict)
    landings: dict[str, landings.Landing] = field(default_factory=dict)
    runs: dict[str, runs.Run] = field(default_factory=dict)
    fleet: dict[str, fleet.Fleet] = field(default_factory=dict)
    questions: dict[str, questions.Question] = field(default_factory=dict)
    permits: dict[str, permits.Permit] = field(default_factory=dict)
    proposals: dict[str, proposals.Proposal] = field(default_factory=dict)
    devices: dict[str, devices.Device] = field(default_factory=dict)
    spends: dict[tuple[str, str, str], spending.Spend] = field(default_factory=dict)
    hot_files: dict[str, overlaps.HotFile] = field(default_factory=dict)
    overlaps: dict[str, overlaps.Overlap] = field(default_factory=dict)
    alerts: dict[str, alerts.Alert] = field(default_factory=dict)

    def fold(self, *, seq: int, at: float, actor: str, kind: str, subject: str, payload: Payload) -> None:
        """Take one event in."""
        match noun(kind):
            case "task":
                self._task(subject, seq, payload, at, actor)
            case "session":
                self._session(subject, seq, payload, at, actor)
            case "lease":
                self._lease(subject, seq, payload, at)
            case "mail":
                self._mail(subject, seq, payload, at, actor)
            case "comment":
                self._comment(subject, seq, payload, at, actor)
            case "merge":
                self._merge(subject, seq, payload, at)
            case "queue" if isinstance(payload, standing.Event):
                self.queue[subject] = standing.apply(self.queue.get(subject, standing.Standing()), payload, at, actor)
            case "gate":
                self._gate(subject, seq, payload, at)
            case "landing":
                self._landing(subject, seq, payload, at)
            case "run":
                self._run(subject, seq, payload, at)
            case "fleet" if isinstance(payload, fleet.Event):
                self.fleet[subject] = fleet.apply(self.fleet.get(subject, fleet.Fleet()), payload, at, actor)
            case "question":
                self._question(subject, seq, payload, at, actor)
            case "permit":
                self._permit(subject, seq, payload, at, actor)
            case "proposal":
                self._proposal(subject, seq, payload, at, actor)
            case "device":
                self._device(subject, seq, payload, at)
            case "overlap":
                self._overlap(subject, payload, at)
            case "alert" if isinstance(payload, alerts.Raised):
                self.alerts[subject] = alerts.first(subject, seq, payload, at)
            case _:
                pass

    def _task(self, task: str, seq: int, payload: Payload, at: float, actor: str) -> None:
        if isinstance(payload, tasks.Added):
            self.tasks[task] = tasks.add(task, seq, payload, at, actor)
        elif isinstance(payload, tasks.Event):
            self.tasks[task] = tasks.apply(self.tasks[task], payload, at, actor)

    def _session(self, name: str, seq: int, payload: Payload, at: float, actor: str) -> None:
        if isinstance(payload, sessions.Registered):
            self.sessions[name] = sessions.first(name, seq, payload, at)
        elif isinstance(payload, sessions.Event):
            self.sessions[name] = sessions.apply(self.sessions[name], payload, at, actor)

    def _lease(self, lease: str, seq: int, payload: Payload, at: float) -> None:
        if isinstance(payload, leases.Taken | leases.Waiting):
            self.leases[lease] = leases.first(lease, seq, payload, at)
        elif isinstance(payload, leases.Crossed):
            for row in leases.crossings(lease, payload, at):
                self.crossings.setdefault((row.lease, row.task, row.path), row)
        elif isinstance(payload, leases.Event):
            self.leases[lease] = leases.apply(self.leases[lease], payload, at)

    def _mail(self, message: str, seq: int, payload: Payload, at: float, actor: str) -> None:
        if isinstance(payload, mail.Sent):
            self.messages[message] = mail.first(message, seq, actor, payload, at)
        elif isinstance(payload, mail.Read | mail.Acked | mail.Delivered):
            key = (message, payload.reader)
            self.readings[key] = mail.read(message, self.readings.get(key), payload, at)

    def _comment(self, comment: str, seq: int, payload: Payload, at: float, actor: str) -> None:
        if isinstance(payload, comments.Written):
            self.comments[comment] = comments.first(comment, seq, actor, payload, at)
        elif isinstance(payload, comments.Event):
            self.comments[comment] = comments.apply(self.comments[comment], payload, at)

    def _merge(self, merge: str, seq: int, payload: Payload, at: float) -> None:
        if isinstance(payload, merges.Queued):
            self.merges[merge] = merges.first(merge, seq, payload, at)
        elif isinstance(payload, merges.Event):
            self.merges[merge] = merges.apply(self.merges[merge], payload, at)

    def _gate(self, gate: str, seq: int, payload: Payload, at: float) -> None:
        if isinstance(payload, gates.Started):
            self.gates[gate] = gates.first(gate, seq, payload, at)
        elif isinstance(payload, gates.Flaked):
            for test in payload.tests:
                self.flakes[test] = gates.flakes(self.flakes.get(test), test, gate, at)
        elif isinstance(payload, gates.Event):
            self.gates[gate] = gates.apply(self.gates[gate], payload, at)

    def _landing(self, landing: str, seq: int, payload: Payload, at: float) -> None:
        if isinstance(payload, landings.Made):
            self.landings[landing] = landings.first(landing, seq, payload, at)
        elif isinstance(payload, landings.Event):
            self.landings[landing] = landings.apply(self.landings[landing], payload, at)

    def _run(self, run: str, seq: int, payload: Payload, at: float) -> None:
        if isinstance(payload, runs.Begun):
            self.runs[run] = runs.first(run, seq, payload, at)
        elif isinstance(payload, spending.Counted):
            key = (run, payload.model, payload.day)
            self.spends[key] = spending.add(self.spends.get(key) or spend_row(self.runs[run], payload), payload)
        elif isinstance(payload, runs.Event):
            self.runs[run] = runs.apply(self.runs[run], payload, at)

    def _question(self, question: str, seq: int, payload: Payload, at: float, actor: str) -> None:
        if isinstance(payload, questions.Asked):
            self.questions[question] = questions.first(question, seq, payload, at)
        elif isinstance(payload, questions.Event):
            self.questions[question] = questions.apply(self.questions[question], payload, at, actor)

    def _permit(self, permit: str, seq: int, payload: Payload, at: float, actor: str) -> None:
        if isinstance(payload, permits.Granted):
            self.permits[permit] = permits.first(permit, seq, payload, at, actor)
        elif isinstance(payload, permits.Event):
            self.permits[permit] = permits.apply(self.permits[permit], payload, at, actor)

    def _proposal(self, proposal: str, seq: int, payload: Payload, at: float, actor: str) -> None:
        if isinstance(payload, proposals.Made):
            self.proposals[proposal] = proposals.first(proposal, seq, payload, at)
        elif isinstance(payload, proposals.Event):
            self.proposals[proposal] = proposals.apply(self.proposals[proposal], payload, at, actor)

    def _device(self, device: str, seq: int, payload: Payload, at: float) -> None:
        if isinstance(payload, devices.Invited):
            self.devices[device] = devices.first(device, seq, payload, at)
        elif isinstance(payload, devices.Event):
            self.devices[device] = devices.apply(self.devices[device], payload, at)

    def _overlap(self, subject: str, payload: Payload, at: float) -> None:
        if isinstance(payload, overlaps.Found):
            self.overlaps[subject] = overlaps.first(subject, payload, at)
        elif isinstance(payload, overlaps.PairEvent):
            self.overlaps[subject] = overlaps.apply(self.overlaps[subject], payload, at)
        elif isinstance(payload, overlaps.FileEvent):
            self.hot_files[subject] = overlaps.heat(subject, self.hot_files.get(subject), payload, at)

    def rows(self) -> Iterator[tuple[str, Iterator[Row]]]:
        """Yield every folded table with its rows, counters and indexes made from the rest."""
        yield "tasks", self._with_counters()
        yield (
            "needs",
            (NeedRow(task.id, need.task, need.policy) for task in self.tasks.values() for need in task.needs),
        )
        yield "sessions", iter(self.sessions.values())
        yield "leases", iter(self.leases.values())
        yield "lease_resources", self._resources()
        yield "crossings", (row for row in self.crossings.values() if self._is_open(row.lease))
        yield "messages", iter(self.messages.values())
        yield "readings", iter(self.readings.values())
        yield "comments", iter(self.comments.values())
        yield "merges", iter(self.merges.values())
        yield "queue", iter(self.queue.values())
        yield "gates", iter(self.gates.values())
        yield "flakes", iter(self.flakes.values())
        yield "landings", iter(self.landings.values())
        yield "runs", iter(self.runs.values())
        yield "fleet", iter(self.fleet.values())
        yield "questions", iter(self.questions.values())
        yield "permits", iter(self.permits.values())
        yield "proposals", iter(self.proposals.values())
        yield "devices", iter(self.devices.values())
        yield "spends", iter(self.spends.values())
        yield "overlaps", iter(self.overlaps.values())
        yield "hot_files", iter(self.hot_files.values())
        yield "alerts", iter(self.alerts.values())
        counts = Counter(task.status for task in self.tasks.values())
        yield "counts", (CountRow(status, counts[status]) for status in tasks.Status)
        last: dict[str, int] = {}
        for task in self.tasks:
            prefix, number = ids.split(task)
            last[prefix] = max(number, last.get(prefix, 0))
        yield "ids", (IdRow(prefix, number) for prefix, number in last.items())

    def _with_counters(self) -> Iterator[Task]:
        children = Counter(
            task.parent for task in self.tasks.values() if task.parent and task.status not in tasks.ENDED
        )
        for task in self.tasks.values():
            unmet = sum(not needs.is_met(self.tasks[need.task].status, need.policy) for need in task.needs)
            yield replace(task, unmet=unmet, open_children=children[task.id])

    def _resources(self) -> Iterator[ResourceRow]:
        for lease in self.leases.values():
            if self._is_open(lease.id):
                yield from resource_rows(lease)

    def _is_open(self, lease: str) -> bool:
        return lease in self.leases and self.leases[lease].state in (leases.State.LIVE, leases.State.WAITING)


def spend_row(run: runs.Run, event: spending.Counted) -> spending.Spend:
    """Return the empty row into which an event of a run is counted."""
    return spending.Spend(
        run=run.id, model=event.model, day=event.day, session=run.session, task=run.task, agent=run.agent
    )


def resource_rows(lease: leases.Lease) -> Iterator[ResourceRow]:
    """Yield the rows under which a lease that is live, or waits, is found."""
    for resource in lease.resources:
        yield ResourceRow(lease.id, resource, leases.index(resource))
