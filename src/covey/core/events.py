"""The log: one fact after another, each carrying the hash of the one before."""

from __future__ import annotations

from covey.core import (
    alerts,
    comments,
    devices,
    fleet,
    gates,
    landings,
    leases,
    mail,
    merges,
    overlaps,
    permits,
    proposals,
    questions,
    runs,
    sessions,
    spending,
    tasks,
)
from covey.core.queue import standing
from covey.hashes import sha256
from covey.values import dataclass

FIRST = bytes(32)
"""What the first event carries as the hash of the one before."""


@dataclass(frozen=True)
class Begun:
    """A log began, with an id of its own."""

    log: str
    project: str


@dataclass(frozen=True)
class Pruned:
    """Blobs whose time was over were removed; the log itself is kept whole."""

    blobs: int
    size: int


@dataclass(frozen=True)
class Rebuilt:
    """The rows were made anew from the log alone."""

    events: int
    differences: int


@dataclass(frozen=True)
class Imported:
    """Events of another origin were taken in beside this log."""

    log: str
    events: int


@dataclass(frozen=True)
class Forgotten:
    """An imported log with all its events was removed, so that it can be taken in anew."""

    log: str
    events: int


@dataclass(frozen=True)
class Minted:
    """A token of a session was made; the token itself is in no log."""


@dataclass(frozen=True)
class Started:
    """The daemon began to serve."""

    version: str


@dataclass(frozen=True)
class Stopped:
    """The daemon ended in good order."""


LogEvent = Begun | Pruned | Rebuilt | Imported | Forgotten
DaemonEvent = Started | Stopped
Payload = (
    tasks.Event
    | sessions.Event
    | leases.Event
    | mail.Event
    | comments.Event
    | merges.Event
    | runs.Event
    | fleet.Event
    | questions.Event
    | permits.Event
    | proposals.Event
    | devices.Event
    | overlaps.Event
    | standing.Event
    | gates.Event
    | landings.Event
    | alerts.Raised
    | LogEvent
    | DaemonEvent
    | Minted
)

KINDS: dict[str, type[Payload]] = {
    "task.added": tasks.Added,
    "task.edited": tasks.Edited,
    "task.moved": tasks.Moved,
    "task.claimed": tasks.Claimed,
    "task.handed_in": tasks.HandedIn,
    "task.approved": tasks.Approved,
    "task.held": tasks.Held,
    "task.released": tasks.Released,
    "task.rejected": tasks.Rejected,
    "task.blocked": tasks.Blocked,
    "task.dropped": tasks.Dropped,
    "task.ready": tasks.Ready,
    "task.waiting": tasks.Waiting,
    "task.done": tasks.Done,
    "session.registered": sessions.Registered,
    "session.started": sessions.Started,
    "session.stopped": sessions.Stopped,
    "session.paused": sessions.Paused,
    "session.resumed": sessions.Resumed,
    "session.leaving": sessions.Leaving,
    "session.rescued": sessions.Rescued,
    "session.changed": sessions.Changed,
    "session.attached": sessions.Attached,
    "session.given_back": sessions.GivenBack,
    "session.removed": sessions.Removed,
    "session.token_minted": Minted,
    "run.begun": runs.Begun,
    "run.prepared": runs.Prepared,
    "run.talking": runs.Talking,
    "run.ending": runs.Ending,
    "run.ended": runs.Ended,
    "run.spent": spending.Counted,
    "run.missed": runs.Missed,
    "run.heard": runs.Heard,
    "run.left": runs.Left,
    "run.wrote": runs.Wrote,
    "fleet.paused": fleet.Paused,
    "fleet.resumed": fleet.Resumed,
    "fleet.stopped": fleet.Stopped,
    "question.asked": questions.Asked,
    "question.answered": questions.Answered,
    "question.expired": questions.Expired,
    "question.withdrawn": questions.Withdrawn,
    "question.told": questions.Told,
    "permit.granted": permits.Granted,
    "permit.revoked": permits.Revoked,
    "proposal.made": proposals.Made,
    "proposal.accepted": proposals.Accepted,
    "proposal.declined": proposals.Declined,
    "proposal.withdrawn": proposals.Withdrawn,
    "device.invited": devices.Invited,
    "device.joined": devices.Joined,
    "device.revoked": devices.Revoked,
    "lease.taken": leases.Taken,
    "lease.waiting": leases.Waiting,
    "lease.granted": leases.Granted,
    "lease.given": leases.Given,
    "lease.expired": leases.Expired,
    "lease.crossed": leases.Crossed,
    "mail.sent": mail.Sent,
    "mail.read": mail.Read,
    "mail.acked": mail.Acked,
    "mail.delivered": mail.Delivered,
    "comment.written": comments.Written,
    "comment.edited": comments.Edited,
    "comment.removed": comments.Removed,
    "comment.sent": comments.Sent,
    "overlap.found": overlaps.Found,
    "overlap.changed": overlaps.Changed,
    "overlap.gone": overlaps.Gone,
    "overlap.heated": overlaps.Heated,
    "overlap.cooled": overlaps.Cooled,
    "merge.queued": merges.Queued,
    "merge.entered": merges.Entered,
    "merge.clashed": merges.Clashed,
    "merge.approved": merges.Approved,
    "merge.tested": merges.Tested,
    "merge.passed": merges.Passed,
    "merge.waits": merges.Waits,
    "merge.held": merges.Held,
    "merge.requeued": merges.Requeued,
    "merge.landed": merges.Landed,
    "merge.rejected": merges.Rejected,
    "merge.withdrawn": merges.Withdrawn,
    "merge.reverted": merges.Reverted,
    "queue.began": standing.Began,
    "queue.joined": standing.Joined,
    "queue.paused": standing.Paused,
    "queue.resumed": standing.Resumed,
    "queue.frozen": standing.Frozen,
    "queue.thawed": standing.Thawed,
    "queue.halted": standing.Halted,
    "gate.started": gates.Started,
    "gate.ended": gates.Ended,
    "gate.lost": gates.Lost,
    "gate.flaked": gates.Flaked,
    "landing.made": landings.Made,
    "landing.pushed": landings.Pushed,
    "alert.raised": alerts.Raised,
    "log.begun": Begun,
    "log.pruned": Pruned,
    "log.rebuilt": Rebuilt,
    "log.imported": Imported,
    "log.forgotten": Forgotten,
    "daemon.started": Started,
    "daemon.stopped": Stopped,
}
NAMES: dict[type[Payload], str] = {payload: kind for kind, payload in KINDS.items()}


@dataclass(frozen=True)
class Event:
    """One fact: who did what to what, and when; `data` is the payload as JSON."""

    seq: int
    time: float
    actor: str
    kind: str
    subject: str
    data: str
    key: str | None
    prev: bytes


def digest(event: Event) -> bytes:
    """Return the hash of an event, which the next one carries."""
    key = "-" if event.key is None else "+" + event.key
    head = f"{event.seq}\n{event.time!r}\n{event.actor}\n{event.kind}\n{event.subject}\n{key}\n"
    return sha256(event.prev + (head + event.data).encode()).digest()


def noun(kind: str) -> str:
    """Return what a kind of event is about."""
    return kind.partition(".")[0]
