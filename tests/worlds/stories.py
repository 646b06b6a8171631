"""Stories to test the care of the log with: a store, an App over it, and whatever may happen to a project."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from covey.app.app import Answer, App, Request
from covey.app.board.task_changes import step
from covey.app.context import Call, Context, Principal
from covey.app.costs.costs import Day
from covey.app.fleet import fleet_verbs, runs
from covey.app.fleet.heartbeats import Pulses
from covey.app.leases import write_check
from covey.app.merging.queue_records import end_gate, note_flakes, put
from covey.app.overlap import overlaps
from covey.app.people import devices, proposals, questions
from covey.app.shapes.board import EditTask
from covey.app.verbs import VERBS, decode
from covey.config import Config
from covey.core.costs import spending
from covey.core.fleet import sessions
from covey.core.fleet.outcomes import Again, Crashed, HandIn, PutOff, Verdict
from covey.core.fleet.runs import Ending, Run
from covey.core.fleet.sessions import COVEY, Goal
from covey.core.fleet.signals import Asks, Trouble, Wants
from covey.core.leases.expiry import Instant
from covey.core.leases.write_policy import Write
from covey.core.merging import gates, landings, merges
from covey.core.merging.queue import queue_status
from covey.core.nouns import spend_row
from covey.core.overlaps import Meeting, OverlapLevel
from covey.core.people.devices import Addresses
from covey.errors import CoveyError
from covey.store.engine import rows
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx
from tests.worlds.queue_records import journal, pushed, start_gate

LONG = "A text that is too long for a row. " * 600
COMMIT = "c0ffee" + "0" * 34


class TurnedClock:
    """A clock that moves when a test turns it."""

    boot_id = "this boot"

    def __init__(self) -> None:
        self.elapsed = 0.0

    def now(self) -> Instant:
        """Return the three clocks, which never drift apart."""
        self.elapsed += 0.25
        return Instant(1_700_000_000.0 + self.elapsed, self.elapsed, self.elapsed)

    def wall(self) -> float:
        """Return the time of day."""
        return self.now().wall


class Project:
    """One store in one file with an App over it."""

    def __init__(self, path: Path, config: Config | None = None) -> None:
        self.path = path
        self.clock = TurnedClock()
        self.store = SqliteStore(path, clock=self.clock.wall, project="sample")
        pulses = Pulses(self.clock, self.store.place)
        addresses = Addresses("http://sample.localhost:20001")
        self.app = App(self.store, Context(config or Config(), pulses, "sample", has_daemon=True, addresses=addresses))
        pulses.look()

    def job(
        self, name: str, params: dict[str, str], asked: dict[str, Any], session: str | None
    ) -> Callable[[Tx], Answer]:
        """Return one request as a job."""
        verb = VERBS[name]
        body = decode(verb.decoder, msgspec.json.encode(asked))
        return self.app.job(Request(verb, Principal(session), body, params))

    def ask(self, name: str, /, params: dict[str, str] | None = None, **asked: Any) -> Any:
        """Ask the owner's question and return the answer as plain data."""
        return self.store.write(self.job(name, params or {}, asked, None)).value()

    def close(self) -> None:
        """Close the store."""
        self.store.close()


class Teller:
    """Makes one random thing happen after another; what the rules refuse did not happen."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.happened = 0

    def tell(self, steps: list[tuple[str, int]], batch: int = 64, *, without: tuple[str, ...] = ()) -> None:
        """Let each step happen, some of them in each transaction; nobody asks for what is named in `without`."""
        for start in range(0, len(steps), batch):
            outcomes = self.project.store.run([self._step(*step, without) for step in steps[start : start + batch]])
            for outcome in outcomes:
                if outcome.error is not None and not isinstance(outcome.error, CoveyError):
                    raise outcome.error
                self.happened += outcome.error is None

    def _step(self, verb: str, luck: int, without: tuple[str, ...] = ()) -> Callable[[Tx], Any]:
        def run(tx: Tx) -> Any:
            if verb == "silence":
                self.project.clock.elapsed += 2000
                return self.project.app.sweep(tx)
            if verb in DEEDS:
                return DEEDS[verb](Call(tx, Principal(COVEY), self.project.app.context), random.Random(luck))
            asked = STEPS[verb](tx, random.Random(luck))
            asked = {name: value for name, value in asked.items() if name not in without}
            params = {name: asked.pop(name) for name in VERBS[verb].params}
            return self.project.job(verb, params, asked, None)(tx)

        return run


def _task(tx: Tx, luck: random.Random, status: str = "") -> str:
    where = f" WHERE status = '{status}'" if status else ""
    found = tx.db.rows(f"SELECT id FROM tasks{where} ORDER BY ordinal")
    return str(luck.choice(found)[0]) if found else "T-1"


def _some(luck: random.Random, *values: Any) -> Any:
    return luck.choice(values)


def _wish(tx: Tx, luck: random.Random) -> dict[str, Any]:
    found = [str(row[0]) for row in tx.db.rows("SELECT id FROM tasks ORDER BY ordinal DESC LIMIT 8")]
    needs = luck.sample(found, min(len(found), luck.randint(0, 2)))
    return {
        "title": _some(luck, "Build it", "Täst it 🐦", '\\ "quoted"'),
        "body": _some(luck, "", "Do\nthis", LONG, LONG + str(luck.randint(0, 3))),
        "kind": _some(luck, "change", "change", "report"),
        "priority": luck.randint(-2, 2),
        "needs": needs[:1],
        "needs_any": needs[1:],
        "parent": _some(luck, None, None, *found),
        "scope": _some(luck, [], [f"src/{luck.randint(0, 9)}/**", "new:docs/*"]),
        "done_when": _some(luck, [], ["make test"]),
        "budget": _some(luck, None, 0.0, 1.5, 3.0),
        "batch": _some(luck, None, None, None, "night"),
    }


def _add(tx: Tx, luck: random.Random) -> dict[str, Any]:
    return {
        **_wish(tx, luck),
        "assignee": _some(luck, None, None, "ada", "auth-fix"),
        "role": _some(luck, None, None, "quality"),
        "status": _some(luck, "todo", "todo", "backlog"),
        "note": _some(luck, None, "A note"),
    }


def _edit(tx: Tx, luck: random.Random) -> dict[str, Any]:
    wish = {**_wish(tx, luck), "status": _some(luck, "todo", "backlog"), "assignee": _some(luck, None, "bob")}
    names = luck.sample(sorted(wish), luck.randint(1, 4))
    return {"id": _task(tx, luck), **{name: wish[name] for name in names}, "note": "Changed"}


def _held(tx: Tx, luck: random.Random, **more: Any) -> dict[str, Any]:
    task = tx.task(_task(tx, luck, "doing"))
    return {"id": "T-1" if task is None else task.id, "session": task and task.session, **more}


def _one(tx: Tx, luck: random.Random, table: str, where: str = "") -> str:
    found = tx.db.rows(f"SELECT {rows.tables()[table].key[0]} FROM {table} {where}")
    return str(luck.choice(found)[0]) if found else "none-1"


_LIVE = "WHERE state = 'live'"
_OPEN = "WHERE state IN ('review', 'queued')"
_RUN = "WHERE kind = 'run' AND removed = 0"
_AIMS = ("start", "stop", "pause", "resume", "restart")
_PROPOSED = "WHERE state = 'open'"
STEPS: dict[str, Callable[[Tx, random.Random], dict[str, Any]]] = {
    "task.add": _add,
    "task.edit": _edit,
    "task.claim": lambda tx, luck: {"id": _task(tx, luck), "session": _some(luck, "ada", "bob", "cy"), "overlap": True},
    "task.next": lambda tx, luck: {"session": _some(luck, None, "ada", "bob")},
    "task.handin": lambda tx, luck: _held(tx, luck, result=_some(luck, "Done", LONG), commit=COMMIT),
    "task.release": lambda tx, luck: _held(tx, luck, reason=_some(luck, None, "Too hard")),
    "task.block": lambda tx, luck: {"id": _task(tx, luck), "reason": "Who decides?"},
    "task.drop": lambda tx, luck: {"id": _task(tx, luck), "reason": "Not now"},
    "task.move": lambda tx, luck: {"id": _task(tx, luck), "above": _task(tx, luck)},
    "task.reopen": lambda tx, luck: {"id": _task(tx, luck)},
    "session.new": lambda tx, luck: {
        "name": f"worker-{luck.randint(0, 3)}",
        "role": _some(luck, None, "quality"),
        "wip": _some(luck, None, 2),
        "agent": _some(luck, None, "scripted"),
    },
    "session.token": lambda tx, luck: {"name": _one(tx, luck, "sessions")},
    "lease.take": lambda tx, luck: {
        "resources": luck.sample(["src/**", "docs/a.md", "port:3000", "src/x/*.py"], luck.randint(1, 2)),
        "session": _some(luck, "ada", "bob"),
        "shared": _some(luck, True, True, False),
        "ttl": _some(luck, None, 60, 3600.5),
        "wait": _some(luck, True, False),
        "beats": _some(luck, True, False, False),
    },
    "lease.give": lambda tx, luck: {"id": _one(tx, luck, "leases", _LIVE)},
    "mail.send": lambda tx, luck: {
        "to": _some(luck, "everyone", "owner", "role:quality", _one(tx, luck, "sessions")),
        "text": _some(luck, "Hello", LONG),
        "subject": _some(luck, None, "A word"),
        "session": _some(luck, None, "ada"),
        "wants_ack": _some(luck, True, False),
    },
    "mail.read": lambda tx, luck: {"id": _one(tx, luck, "messages"), "session": _some(luck, None, "ada", "bob")},
    "mail.ack": lambda tx, luck: {"id": _one(tx, luck, "messages"), "session": _some(luck, None, "ada", "bob")},
    "comment.write": lambda tx, luck: {
        "task": _task(tx, luck),
        "text": _some(luck, "Why?", LONG[:16000]),
        "path": _some(luck, None, "src/a.py"),
    },
    "comment.edit": lambda tx, luck: {"id": _one(tx, luck, "comments"), "text": "How?"},
    "comment.remove": lambda tx, luck: {"id": _one(tx, luck, "comments", "WHERE sent IS NULL")},
    "comment.send": lambda tx, luck: {
        "task": _task(tx, luck, _some(luck, "review", "merging", "blocked", "doing")),
        "text": "Look",
        "back": _some(luck, True, False),
    },
    "question.ask": lambda tx, luck: {
        "session": _some(luck, "ada", "bob"),
        "text": _some(luck, "Which?", "Where?"),
        "choices": _some(luck, [], ["here", "there"]),
    },
    "question.answer": lambda tx, luck: {
        "id": _one(tx, luck, "questions", "WHERE state = 'open'"),
        "decision": _some(luck, "allow", "always", "deny", "reply"),
        "text": _some(luck, "", "Here"),
    },
    "question.take": lambda tx, luck: {"id": _one(tx, luck, "questions")},
    "permit.grant": lambda tx, luck: {"about": f"npm test {luck.randint(0, 3)}"},
    "permit.revoke": lambda tx, luck: {"id": _one(tx, luck, "permits")},
    "proposal.accept": lambda tx, luck: {"id": _one(tx, luck, "proposals", _PROPOSED), "anyway": True},
    "proposal.decline": lambda tx, luck: {
        "id": _one(tx, luck, "proposals", _PROPOSED),
        "reason": _some(luck, None, "Not now"),
    },
    "device.invite": lambda tx, luck: {"label": _some(luck, "", "laptop")},
    "device.revoke": lambda tx, luck: {"id": _one(tx, luck, "devices")},
    "merge.approve": lambda tx, luck: {"id": _one(tx, luck, "merges", _OPEN)},
    "merge.land": lambda tx, luck: {"id": _one(tx, luck, "merges", _OPEN), "commit": COMMIT},
    "merge.reject": lambda tx, luck: {"id": _one(tx, luck, "merges", _OPEN), "reason": "The gate is red"},
    **{f"session.{verb}": lambda tx, luck: {"name": _one(tx, luck, "sessions", _RUN)} for verb in _AIMS},
    "session.remove": lambda tx, luck: {"name": _one(tx, luck, "sessions"), "force": _some(luck, True, False)},
    "fleet.pause": lambda tx, luck: {},
    "fleet.resume": lambda tx, luck: {},
    "batch.start": lambda tx, luck: {"name": "night", "sessions": luck.randint(1, 2), "agent": "scripted"},
    "batch.stop": lambda tx, luck: {"name": "night"},
}


def _begin(call: Call, luck: random.Random) -> None:
    """Let a session that shall work begin a run, and its program start, ask and talk."""
    at_work = [session.name for session in call.tx.run_sessions() if session.goal is Goal.WORKING]
    run = runs.begin(call, luck.choice(at_work), Day("2023-11-14", call.tx.now + 3600)) if at_work else None
    work = runs.work(call, run) if isinstance(run, Run) else None
    if isinstance(run, Run) and work is not None:
        runs.started(call, work, COMMIT)
        if luck.random() < 0.5:
            runs.note_conversation(call, run, f"talk-{luck.randint(0, 9)}")


def _end(call: Call, luck: random.Random) -> None:
    """Let a run end in one of all ways, and what shall go be gone."""
    for session in call.tx.run_sessions():
        if session.goal is Goal.REMOVED and not call.tx.open_runs(session.name):
            fleet_verbs.part(call, session)
    found = call.tx.open_runs()
    if not found:
        return
    run = luck.choice(found)
    if luck.random() < 0.3:
        runs.ending(call, run, Ending("It was stopped.", again=luck.random() < 0.5, fault=luck.random() < 0.5))
    now = call.tx.run(run.id)
    assert now is not None
    verdict: Verdict = _some(
        luck, HandIn(COMMIT, "It works"), HandIn(COMMIT, LONG), Again("No commit"), Crashed("Signal 11"),
        PutOff("429", Trouble.LIMIT), PutOff("A broken block", Trouble.CORRUPT, fresh=True),
    )  # fmt: skip
    how = luck.randint(0, 9)
    if how == 0:
        runs.lost(call, now, "The machine fell over", None)
    elif how == 1:
        runs.unstartable(call, now, "There is no such program")
    else:
        runs.judged(call, now, verdict, 0, _some(luck, None, call.tx.now + 5))


def _spend(call: Call, luck: random.Random) -> None:
    """Let a run use a model, with and without a price, today or tomorrow."""
    found = call.tx.open_runs()
    if not found:
        return
    run, free = luck.choice(found), luck.random() < 0.3
    tokens = luck.randint(1, 10**6)
    cost, unpriced = (0.0, tokens) if free else (luck.choice([0.1, 0.25, 1e-9]), 0)
    day, model = luck.choice(["2023-11-14", "2023-11-15"]), luck.choice(["", "sonnet"])
    event = spending.Counted(
        model=model, day=day, input=tokens, output=7, cache_read=3, cache_write=luck.randint(0, 1),
        cost=cost, unpriced=unpriced,
    )  # fmt: skip
    before = call.tx.get(spending.Spend, run.id, model, day)
    after = spending.add(before or spend_row(run, event), event)
    if before is None:
        call.tx.insert(after)
    else:
        call.tx.put(before, after)
    call.tx.append(COVEY, run.id, event, run)


def _attach(call: Call, luck: random.Random) -> None:
    """Let a person take a conversation over, or give one back."""
    for session in call.tx.run_sessions():
        if luck.random() < 0.5:
            event = sessions.Attached() if session.attached is None else sessions.GivenBack()
            call.put_session(session, session.name, event, by="owner")


def _ask(call: Call, luck: random.Random) -> None:
    """Let a run ask, time pass, its answers be passed on, or all that it asks be withdrawn."""
    found = call.tx.open_runs()
    if found:
        run = luck.choice(found)
        asks = Asks("Which?", f"q{luck.randint(0, 9)}", _some(luck, *Wants), "shell", f"npm test {luck.randint(0, 9)}")
        minutes = _some(luck, 0.0, 60.0)
        questions.ask(call, run.session, asks, task=run.task, run=run.id, minutes=minutes)
        if luck.random() < 0.1:
            questions.withdraw(call, run.id, "It went on.")
    for question in questions.untold(call):
        questions.told(call, question)
    if luck.random() < 0.3:
        questions.expire(call)


def _write(call: Call, luck: random.Random) -> None:
    """Let a session write a file, whosever it is."""
    path = _some(luck, "src/x/a.py", "src/new.py", "docs/a.md", "docs/b.md", f"src/{luck.randint(0, 9)}/a.py")
    session = _some(luck, "ada", "bob", "cy")
    task = next(iter(call.tx.held_by(session)), None)
    if call.tx.session(session) is not None:
        write_check.noticed(call, session, task, [Write(path, call.tx.now)], "shell")


def _meet(call: Call, luck: random.Random) -> None:
    """Let two branches come close, or part again, and their files become hot or cool."""
    one, other = sorted((_task(call.tx, luck), _task(call.tx, luck)))
    if one == other or call.tx.task(one) is None:
        return
    meeting = _some(
        luck, None, Meeting(_some(luck, *OverlapLevel), ("src/x/a.py",)), Meeting(OverlapLevel.CONFLICT, ("docs/a.md",))
    )
    new = overlaps.judged(call, [overlaps.Judged(one, other, meeting)])
    known, files = overlaps.remembered(call, call.tx.now - 7200)
    overlaps.heat(call, known, new, files)
    if luck.random() < 0.2:
        overlaps.cool(call, overlaps.hot_files(call))


def _join(call: Call, luck: random.Random) -> None:
    """Let a browser join."""
    code = devices.invite(call, devices.InviteDevice()).code
    devices.join(call, devices.JoinDevice(code=code, label="laptop"), None, lambda device: f"secret of {device}")


def _queue_deed(call: Call, luck: random.Random) -> None:
    """Let the merge queue do one of the things that it writes down."""
    open_merges = call.tx.open_merges()
    running = call.tx.running_gates()
    match luck.randint(0, 6):
        case 0:
            put(
                call,
                queue_status.Began(strategy="group", slots=luck.randint(1, 4), base=COMMIT, proven=luck.random() < 0.5),
            )
        case 1:
            put(
                call,
                _some(
                    luck,
                    queue_status.Paused("Release"),
                    queue_status.Resumed(),
                    queue_status.Frozen(),
                    queue_status.Thawed(),
                ),
            )
        case 2:
            put(call, queue_status.Halted("main is red", ("gate-1",)))
        case 3 if open_merges:
            merge = luck.choice(open_merges)
            step(call, merge, merges.Entered(priority=2, needs=("T-1",), paths=("src/a.py",)), COVEY)
        case 4:
            names = tuple(merge.id for merge in open_merges[:3])
            gate = start_gate(call, gates.Started(test=1, base=COMMIT, commit=COMMIT, merges=names))
            for merge in open_merges[:1]:
                step(call, merge, merges.Tested(COMMIT, gate.id), COVEY)
        case 5 if running:
            gate, passed = luck.choice(running), luck.random() < 0.5
            ended = end_gate(call, gate.id, gates.Ended(passed=passed, code=int(not passed), failures=("t::a",)))
            if ended is not None and passed:
                note_flakes(call, ended, ("t::a", "t::b"))
        case _:
            names = tuple(merge.id for merge in open_merges[:2])
            landing = journal(call, landings.Made(branch="main", before=COMMIT, commit=COMMIT, merges=names))
            pushed(call, landing, "origin")


def _propose(call: Call, luck: random.Random) -> None:
    """Let a session ask for what only a person may do."""
    wish = EditTask(priority=luck.randint(5, 90)) if luck.random() < 0.5 else EditTask(title="Another")
    hers = Call(call.tx, Principal("ada"), call.context)
    proposals.propose(hers, VERBS["task.edit"], wish, {"id": _task(call.tx, luck)}, "It is not hers.")


DEEDS: dict[str, Callable[[Call, random.Random], None]] = {
    "queue": _queue_deed,
    "device.join": _join,
    "proposal": _propose,
    "run.begin": _begin,
    "run.end": _end,
    "run.spend": _spend,
    "session.attach": _attach,
    "run.ask": _ask,
    "session.write": _write,
    "branch.meet": _meet,
}
"""What the loops do, and no verb."""
USUAL = [
    *("task.add", "task.claim", "task.handin", "merge.land") * 4,
    *("task.add", "session.new", "session.start", "fleet.resume", "run.begin", "run.end") * 4,
    *("lease.take", "session.write", "branch.meet", "queue") * 4,
    *DEEDS,
    *STEPS,
    "silence",
]
"""Steps as they are drawn: work comes more often than the rest."""


def a_rich_story(seed: int, length: int) -> list[tuple[str, int]]:
    """Return a long story in which most things happen."""
    luck = random.Random(seed)
    return [(luck.choice(USUAL), luck.randint(0, 10**6)) for _ in range(length)]


def lives(project: Project, tasks: int, batch: int = 2000) -> None:
    """Let tasks go from the board to main, ten events each; some stay on the way, with a lease and mail."""
    for start in range(1, tasks + 1, batch):
        numbers = range(start, min(start + batch, tasks + 1))
        for outcome in project.store.run([_life(project, number) for number in numbers]):
            outcome.result()


def _life(project: Project, number: int) -> Callable[[Tx], None]:
    def run(tx: Tx) -> None:
        def ask(name: str, params: dict[str, str], **asked: Any) -> Any:
            return project.job(name, params, asked, None)(tx).value()

        session = f"worker-{number % 16}"
        needs = [f"T-{number - 1}"] if number % 10 == 0 else []
        task = ask(
            "task.add", {}, title=f"Task {number}", body="Do this. " * 20, needs=needs, scope=[f"src/{number}/**"]
        )
        held = {"id": task["id"]}
        for _ in range(2):
            ask("task.claim", held, session=session, overlap=True)
            ask("task.release", held, session=session, reason="The tests fail")
        ask("task.claim", held, session=session, overlap=True)
        ask("task.handin", held, session=session, result="It works", commit=COMMIT)
        if number % 10 == 5:
            ask("lease.take", {}, session=session, resources=[f"src/{number}/**"])
            ask("mail.send", {}, session=session, to="owner", text=f"Task {number} is handed in. " * 10)
        else:
            ask("merge.land", {"id": f"merge-{tx.head.seq}"}, commit=COMMIT)

    return run
