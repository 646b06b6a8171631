"""A board with clocks that tests turn by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from covey.app.app import Answer, App, Request
from covey.app.context import Call, Context, FleetView, Principal
from covey.app.costs.costs import Day
from covey.app.fleet import runs
from covey.app.fleet.heartbeats import Pulses
from covey.app.verbs import VERBS, decode, fingerprint
from covey.config import Config
from covey.core.fleet import sessions, watchdog
from covey.core.fleet.outcomes import Verdict
from covey.core.fleet.runs import Run
from covey.core.fleet.sessions import SessionKind
from covey.core.fleet.start_limits import Wait
from covey.core.fold import State
from covey.core.leases.expiry import Instant
from covey.runners.process import ProcessRunner
from covey.store.engine import rows
from covey.store.engine.rows import Value
from covey.store.tx import Tx
from tests.worlds.stores import Open, sqlite

__all__ = ["OWNER", "ManualClock", "Principal", "World"]

T = TypeVar("T")
OWNER = Principal()


class ManualClock:
    """Three clocks that stand still until they are told to go on."""

    def __init__(self) -> None:
        self.boot_id = "first-boot"
        self._now = Instant(wall=1_750_000_000.0, awake=1_000.0, boot=1_000.0)

    def now(self) -> Instant:
        """Look at all three at once."""
        return self._now

    def run(self, seconds: float) -> None:
        """Let time pass."""
        wall, awake, boot = self._now.wall, self._now.awake, self._now.boot
        self._now = Instant(wall + seconds, awake + seconds, boot + seconds)

    def suspend(self, seconds: float) -> None:
        """Let time pass while the machine sleeps."""
        self._now = replace(self._now, wall=self._now.wall + seconds, boot=self._now.boot + seconds)

    def turn(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._now = replace(self._now, wall=self._now.wall + seconds)

    def reboot(self, seconds: float = 60.0) -> None:
        """Let the machine start again: its clocks of uptime begin anew."""
        self.boot_id += "-again"
        self._now = Instant(self._now.wall + seconds, awake=10.0, boot=10.0)


class Remembers(FleetView):
    """A fleet that knows why sessions are as they are, and notes whom it is told to forgive."""

    def __init__(self, verdict: watchdog.Verdict | None = None, wait: Wait | None = None) -> None:
        self.verdict = verdict
        self.wait = wait
        self.forgiven: list[tuple[str, str]] = []

    def why(self, session: str) -> tuple[watchdog.Verdict | None, Wait | None]:
        """Return the same of every session."""
        return self.verdict, self.wait

    def forgive(self, agent: str, session: str) -> None:
        """Note it."""
        self.forgiven.append((agent, session))


class World:
    """One project: a store on disk, an App before it, and who asks."""

    def __init__(
        self, folder: Path, config: Config | None = None, *, daemon: bool = True, open_store: Open = sqlite
    ) -> None:
        self.clock = ManualClock()
        self.runner = ProcessRunner(folder / "runs")
        self.config = config or Config()
        self.store = open_store(folder, lambda: self.clock.now().wall)
        self.app = self.start(daemon=daemon)

    def start(self, *, daemon: bool) -> App:
        """Begin anew as a process does: what was only in memory is gone."""
        pulses = Pulses(self.clock, self.store.place)
        context = Context(self.config, pulses, "demo", has_daemon=daemon, runner=self.runner)
        self.app = App(self.store, context)
        return self.app

    def answer(self, verb: str, who: Principal = OWNER, *, key: str | None = None, **asked: Any) -> Answer:
        """Ask as a surface does: the body is JSON, and names in the path are taken from what is asked."""
        found = VERBS[verb]
        params = {name: asked.pop(name) for name in found.params}
        body = msgspec.json.encode(asked)
        request = fingerprint(found.method, found.path.format(**params), body)
        return self.app.ask(Request(found, who, decode(found.decoder, body), params, key, request))

    def ask(self, verb: str, who: Principal = OWNER, *, key: str | None = None, **asked: Any) -> Any:
        """Ask, and return the answer as plain data."""
        return self.answer(verb, who, key=key, **asked).value()

    def proposed(self, verb: str, who: Principal, **asked: Any) -> Any:
        """Ask what only a person may do, see that nothing but a proposal comes of it, and return that."""
        before = self.tables()
        answer = self.answer(verb, who, **asked)
        assert answer.status == 202, answer
        after = self.tables()
        changed = {name for name in after if after[name] != before[name]}
        assert changed <= {"proposals", "sessions"}, changed
        return answer.value()

    def add(self, title: str = "Mend it", **asked: Any) -> str:
        """Add a task as the owner and return its id."""
        return str(self.ask("task.add", title=title, **asked)["id"])

    def claim(self, task: str, session: str, **asked: Any) -> int:
        """Claim a task for a session and return the fence."""
        return int(self.ask("task.claim", id=task, session=session, **asked)["fence"])

    def next(self, session: str, **asked: Any) -> str | None:
        """Claim the next task for a session and return its id."""
        found = self.ask("task.next", session=session, **asked)
        return None if found is None else str(found["id"])

    def hand_in(self, task: str, session: str, **asked: Any) -> str:
        """Hand a task in for its holder and return the id of its merge."""
        self.ask("task.handin", id=task, session=session, **asked)
        return str(self.ask("merge.list")[-1]["id"])

    def finish(self, task: str, session: str = "ada") -> None:
        """Bring a task onto main."""
        self.claim(task, session, overlap=True)
        self.ask("merge.land", id=self.hand_in(task, session), commit="c" * 40)

    def task(self, task: str) -> Any:
        """Show a task."""
        return self.ask("task.show", id=task)

    def status(self, task: str) -> str:
        """Return where a task stands."""
        return str(self.task(task)["status"])

    def kinds(self, after: int = 0) -> list[str]:
        """Return the kinds of the events after a place in the log."""
        return [event["kind"] for event in self.ask("log.list", after=after, limit=1000)]

    @property
    def seq(self) -> int:
        """Return the end of the log."""
        return self.store.head.seq

    def do(self, job: Callable[[Call], T]) -> T:
        """Do what no verb does yet, as the owner."""

        def run(tx: Tx) -> T:
            return job(Call(tx, OWNER, self.app.context))

        return self.store.write(run)

    def run_session(self, name: str) -> Principal:
        """Make a session known that covey runs."""
        wish = sessions.Registered(kind=SessionKind.RUN)
        self.do(lambda call: call.put_session(None, name, sessions.register(None, wish)))
        return Principal(name)

    def at_work(self, name: str = "ada", agent: str = "scripted", **asked: Any) -> str:
        """Make a session that covey runs, and let it work the board."""
        self.ask("session.new", name=name, agent=agent, **asked)
        self.ask("session.start", name=name)
        return name

    @property
    def day(self) -> Day:
        """Return the day, as the person in charge has it."""
        now = datetime.fromtimestamp(self.clock.now().wall).astimezone()
        ends = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        return Day(now.date().isoformat(), ends.timestamp())

    def would_begin(self, name: str = "ada") -> Run | Wait | None:
        """Let a session begin a run if it may, and return the run, or what it waits for."""
        return self.do(lambda call: runs.begin(call, name, self.day))

    def begin(self, name: str = "ada") -> Run:
        """Let a session begin a run on the next task that suits it."""
        run = self.would_begin(name)
        assert isinstance(run, Run), f"nothing waits for {name}: {run}"
        return run

    def work(self, run: Run) -> runs.Work:
        """Return what a run needs to be started, with its token in force."""
        work = self.do(lambda call: runs.work(call, run))
        assert work is not None
        return work

    def run(self, run_id: str) -> Run:
        """Return a run as it is."""
        run = self.store.read(lambda tx: tx.run(run_id))
        assert run is not None
        return run

    def end(self, run: Run, verdict: Verdict, code: int | None = 0, until: float | None = None) -> Run:
        """Let a run end with this verdict, and return it as it is then."""
        self.do(lambda call: runs.judged(call, self.run(run.id), verdict, code, until))
        return self.run(run.id)

    def look(self) -> None:
        """Do what a daemon does at every tick."""
        self.app.context.pulses.look()
        if self.store.read(self.app.is_anything_silent):
            self.store.write(self.app.sweep)

    def watch(self, seconds: float, step: float = 10.0, also: Callable[[], object] = lambda: None) -> None:
        """Let time pass under a daemon's eyes."""
        end = self.clock.now().awake + seconds
        while self.clock.now().awake < end:
            self.clock.run(min(step, end - self.clock.now().awake))
            also()
            self.look()

    def tables(self) -> dict[str, list[tuple[Value, ...]]]:
        """Return every folded table as it stands in the store."""
        return self.store.read(
            lambda tx: {name: sorted(tx.db.rows(table.all_sql), key=repr) for name, table in rows.tables().items()}
        )

    def everything(self) -> dict[str, list[tuple[Value, ...]]]:
        """Return the folded tables and the log, to see that nothing changed."""
        log = self.store.read(lambda tx: tx.db.rows("SELECT seq, kind, subject, data FROM events ORDER BY seq"))
        return {**self.tables(), "events": log}

    def folded(self) -> dict[str, list[tuple[Value, ...]]]:
        """Return every folded table as the log alone says that it is."""
        state = State()
        for event in self.store.read(lambda tx: list(tx.all_events())):
            payload = rows.decode_payload(event.kind, event.data)
            state.fold(
                seq=event.seq,
                at=event.time,
                actor=event.actor,
                kind=event.kind,
                subject=event.subject,
                payload=payload,
            )
        return {name: sorted(map(rows.tables()[name].encode, found), key=repr) for name, found in state.rows()}
