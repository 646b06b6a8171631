"""What a verb is asked with: who asks, the transaction, and everything besides the store that it may look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from covey.app.fleet.heartbeats import Pulses, of_session
from covey.config import Config
from covey.core import ids
from covey.core.board.tasks import Task
from covey.core.fleet import sessions
from covey.core.fleet.sessions import COVEY, OWNER, RESERVED
from covey.core.nouns import NOUN_OF, Record, missing
from covey.core.texts import Text, line, prose
from covey.errors import CoveyError, Denied, Invalid
from covey.store.tx import Tx
from covey.values import dataclass

if TYPE_CHECKING:  # each takes its time to import, and most commands look at none of it
    from covey.agents.agent import Agent
    from covey.app.fleet.live import Basis, LiveFull
    from covey.app.people.session_limits import Allowance
    from covey.core.fleet.start_limits import Wait
    from covey.core.fleet.watchdog import Verdict
    from covey.core.leases.write_policy import Write
    from covey.core.people.devices import Addresses
    from covey.git.project import Project
    from covey.runners.process import ProcessRunner

R = TypeVar("R", bound=Record)
"""A row of the store."""


@dataclass(frozen=True)
class Principal:
    """Who asks: the owner, maybe through a browser that joined, or one session by its own token."""

    session: str | None = None
    device: str | None = None

    @property
    def is_owner(self) -> bool:
        """Say whether this is the person in charge."""
        return self.session is None

    @cached_property
    def name(self) -> str:
        """Return the name under which idempotency keys belong to it."""
        return OWNER if self.session is None else f"session:{self.session}"


@dataclass(frozen=True)
class Lands:
    """A commit by its whole hash, and what it would land on main."""

    commit: str
    writes: tuple[Write, ...]


class FleetView:
    """What the fleet knows of sessions, which is in no row: nothing, where no daemon is at work."""

    no_place: str = ""
    """Why no worktree can be made, and so no run starts, until a person has done something."""

    def why(self, session: str) -> tuple[Verdict | None, Wait | None]:
        """Return what the watchdog thinks of a session's run, and why it does not start one."""
        return None, None

    def forgive(self, agent: str, session: str) -> None:
        """Forget what kept an agent and a session from starting."""

    def weight(self, session: str) -> int:
        """Return the bytes of memory that a session's run took when it was last weighed."""
        return 0


@dataclass
class GateHealth:
    """Whether gates can be run on this machine, as the queue last saw it; in memory alone."""

    is_broken: bool = False
    """The queue waits for a gate that could not be run; whoever lets sessions work lets it be tried again."""
    limits: tuple[str, ...] = ()
    """What a gate is not kept from on this machine, in sentences."""


@dataclass
class Context:
    """What every verb may look at besides the store; all but the last few fields is given once and stays."""

    config: Config
    """The settings that hold; `refresh` takes up new ones."""
    pulses: Pulses
    project: str
    has_daemon: bool = False
    """Whether there is a daemon that starts runs."""
    secret: bytes = b""
    runner: ProcessRunner | None = None
    runs: Path | None = None
    """Where each run has a folder of its own, in which its transcript is kept."""
    repository: Project | None = None
    """Where the commits are; None where nobody can look at them."""
    addresses: Addresses | None = None
    """Where the page lives; None where nobody serves it."""
    fleet: FleetView = field(default_factory=FleetView)
    changed_settings: Callable[[], Config | None] = lambda: None
    """Returns the settings if they were changed since this was last asked; refuses ones that make no sense."""
    moment: Callable[[Basis], LiveFull] | None = None
    """Lays over what the store tells of this moment what only memory does; None where nobody remembers anything."""
    stays_for: Callable[[Call], list[str]] = lambda call: []
    """Returns for whom the daemon stays."""
    commits: Callable[[str, str, str], Lands | None] | None = None
    """Returns what a session's commit, or ref, would land on main, None if git cannot tell; None where nobody looks."""
    gate: GateHealth = field(default_factory=GateHealth)
    complaint: tuple[str, float] | None = None
    """Why the settings on disk are not those that hold, and since when."""
    allowances: dict[tuple[str, str], Allowance] = field(default_factory=dict)
    """What each session may still do in this minute, by what it does."""
    read: Callable[[Callable[[Tx], Any]], Any] = lambda job: None
    """Looks at the store in a transaction of its own, for what is done outside of any; the App sets it."""

    def refresh(self) -> None:
        """Take up settings that were changed; refuse to go on with ones that make no sense."""
        try:
            changed = self.changed_settings()
        except CoveyError as error:
            since = self.pulses.clock.now().wall if self.complaint is None else self.complaint[1]
            self.complaint = (f"{error.message} {error.hint}".strip(), since)
            raise
        self.complaint = None
        if changed is not None:
            self.config = changed

    def agent(self, name: str) -> Agent:
        """Return an agent by its name, or say that there is none."""
        from covey.agents import registry  # few commands need an agent, and all of them start with this module

        return registry.find(name, self.config.declared())

    def known_agent(self, name: str) -> Agent | None:
        """Return an agent, None if there is none of this name, or none any more."""
        try:
            return self.agent(name)
        except CoveyError:
            return None

    def lives(self, run_id: str) -> bool:
        """Say whether something of a run is alive, whoever watches it."""
        return self.runner is not None and self.runner.look(run_id).alive


@dataclass
class Call:
    """One asking of one verb: who asks, and the transaction in which it is answered."""

    tx: Tx
    who: Principal
    context: Context
    again: bool = False
    seen: Any = None
    """What was looked at ahead, if this verb has that done."""
    _known: dict[str, sessions.Session] = field(default_factory=dict)

    def actor(self, asked: str | None) -> str:
        """Return for whom this is done: a session speaks only for itself, the owner for any."""
        if self.who.session is None:
            if asked in (COVEY, sessions.EVERYONE):
                raise Denied(f"Nobody can act as {asked}.")
            return asked or OWNER
        if asked not in (None, self.who.session):
            raise Denied(
                f"This token is {self.who.session}'s, and cannot act for {asked}.",
                hint="A session speaks for itself; leave the name out.",
            )
        return self.who.session

    def by_covey(self) -> Call:
        """Return this call as covey's own: what it writes is in covey's words."""
        return Call(self.tx, Principal(COVEY), self.context)

    def find(self, row: type[R], name: str) -> R:
        """Return a row by its name, or say that there is none."""
        found = self.tx.get(row, name)
        if found is None:
            raise missing(NOUN_OF[row].name, name)
        return found

    def only_owner(self, what: str) -> None:
        """Refuse a session what only the person in charge may do."""
        if not self.who.is_owner:
            raise Denied(f"Only the owner may {what}.", hint="Ask: covey mail send owner ...")

    def hear(self, name: str) -> None:
        """Note that a session was heard of."""
        self.context.pulses.hear(of_session(name))

    def known(self, name: str) -> sessions.Session:
        """Return a session as it is, or as it would be if it acted for the first time."""
        if name in self._known:
            return self._known[name]
        session = self.tx.session(name)
        if session is not None and not session.removed:
            self._known[name] = session
            return session
        kind = sessions.SessionKind.PERSON if name == OWNER else sessions.SessionKind.OUTSIDE
        if name in RESERVED and name != OWNER:
            raise Invalid(f"{name} is a name that no session can have.")
        return sessions.first(name, self.tx.next_seq, sessions.Registered(kind=kind), self.tx.now)

    def worker(self, name: str) -> sessions.Session:
        """Return a session that acts, registering a name that is new and waking one that was taken for dead."""
        session = self.known(name)
        if name not in self._known:
            before = self.tx.session(name)
            session = self.put_session(before, name, sessions.register(before, sessions.Registered(kind=session.kind)))
        elif session.kind is not sessions.SessionKind.RUN and session.state is sessions.SessionState.DEAD:
            session = self.put_session(session, name, sessions.Changed(sessions.SessionState.IDLE, "heard of again"))
        self.hear(name)
        return session

    def show_state(self, name: str, state: sessions.SessionState, evidence: str) -> None:
        """Bring a session from outside into a state, if it is not there already."""
        session = self.known(name)
        if session.state is not state and session.kind is not sessions.SessionKind.RUN and name in self._known:
            self.put_session(session, name, sessions.change(session, state, evidence), by=name)

    def put_session(
        self, before: sessions.Session | None, name: str, event: sessions.Event | None, *, by: str | None = None
    ) -> sessions.Session:
        """Write a session as it is after an event, and the event; without one it stays as it is."""
        if isinstance(event, sessions.Registered):
            after = sessions.first(name, self.tx.next_seq, event, self.tx.now)
        else:
            assert before is not None
            if event is None:
                return before
            after = sessions.apply(before, event, self.tx.now, by or self.who.session or OWNER)
        self._known[name] = after
        return self.tx.record(by or self.who.session or OWNER, name, event, before, after)

    def prose(self, text: str, what: str) -> Text:
        """Return a long text as it is kept, or refuse it."""
        return self.tx.keep(prose(text, what))

    def line(self, text: str | None, what: str, limit: int = 2000) -> str | None:
        """Return a text of one line as it is kept, or refuse it."""
        return None if text is None else line(text, what, limit)


def find(tx: Tx, task_id: str) -> Task:
    """Return a task, or say that there is none."""
    task = tx.task(task_id) if ids.is_task_id(task_id) else None
    if task is None:
        raise missing("task", task_id)
    return task
