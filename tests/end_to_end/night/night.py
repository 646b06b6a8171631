"""A night: a fleet at work on a real repository for twelve hours of virtual time, with all that can go wrong."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from covey import config
from covey.agents import registry
from covey.app.context import Principal
from covey.core.board.tasks import Status
from covey.core.fleet import signals, start_limits
from covey.core.fleet.sessions import SessionState
from covey.core.fleet.signals import Trouble, Usage
from covey.core.people.questions import QuestionState as Asked
from covey.errors import CoveyError
from covey.git import project as projects
from covey.git import run as gits
from covey.loops.fleet import fleet_loop, tidying, watchdog
from covey.loops.gates import gates
from covey.loops.merge_queue import queue_loop
from covey.store.engine.audit import verify
from covey.store.engine.rows import Change
from tests.end_to_end.night import programs
from tests.end_to_end.night.agents import NAMES
from tests.end_to_end.night.lives import Life, Place
from tests.end_to_end.night.programs import FAULTS, Program, Runs
from tests.end_to_end.night.truths import Truths
from tests.end_to_end.night.virtual import BEGIN, VirtualClock, VirtualLoop
from tests.end_to_end.night.weather import HOUR, MINUTE, PLENTY, Weather, forecast
from tests.worlds.repositories import git_out

MORNING = 14.0
"""Virtual hours after the end of all faults within which the fleet must have come to rest."""
CHECK = "check the work"
"""The gate: no file of the work says that it is bad."""
BAD = "BAD"
FILES = {"README.md": "A shop.\n", ".gitignore": "covey.toml\n", "shared.txt": "one\ntwo\nthree\n"}

BUDGETS = (
    "[budget]\ntask = 2.4\nday = 120.0\n",
    "[budget]\nrun = 1.5\nsession = 14.0\n",
    "[budget]\nsession = 16.0\nday = 90.0\n",
    "[budget]\ntask = 3.0\n[budget.tokens]\ntask = 260000\nsession = 1600000\n",
    "[budget]\ntask = 2.0\nsession = 12.0\nday = 60.0\n",
)
"""Every limit leaves room for one call more where covey lets a run begin."""


class Killed(BaseException):
    """The daemon is killed between two commands of git."""


class Failed(AssertionError):
    """A night in which something was not true; says how to see it again."""


@dataclass(frozen=True)
class Story:
    """What a night came to, in figures."""

    seed: int
    hours: float
    events: int
    runs: int
    calls: int
    landed: int
    blocked: int
    seconds: float
    faults: dict[str, int]
    outcomes: dict[str, int]
    alerts: dict[str, int]
    log: list[tuple[float, str, str, str]]

    def figures(self) -> str:
        """Return the figures in a line each."""
        shown = {name: value for name, value in vars(self).items() if name != "log"}
        return json.dumps(shown, indent=1, sort_keys=True)


@dataclass
class Night:
    """One night from its seed; `folder` is empty before, and `hours` is how long things go wrong."""

    folder: Path
    seed: int
    hours: float = 12.0
    sessions: int = 12
    tasks: int = 60
    faults: Counter[str] = field(default_factory=Counter)
    _natures: dict[str, str] = field(default_factory=dict)
    _conflicted: set[str] = field(default_factory=set)
    _totals: dict[str, tuple[float, Usage]] = field(default_factory=dict)
    _git_until_kill: int | None = None
    _dawn: asyncio.Event = field(default_factory=asyncio.Event)
    _struck: asyncio.Event = field(default_factory=asyncio.Event)
    life: Life | None = None
    """The daemon, None while there is none."""
    _up: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.chance = Random(f"{self.seed} night")
        self.loop = VirtualLoop(Random(f"{self.seed} steps"))
        self.clock = VirtualClock(self.loop)
        self.weather: Weather = forecast(Random(f"{self.seed} weather"), self.hours)
        self.truths = Truths(lambda: self.weather.shortage(self.loop.time()))
        root = self._repository(self.folder / "shop")
        (root / "covey.toml").write_text(self._settings())
        self.config = config.load(root)
        self.project = projects.find(root)
        self.project.state.mkdir(parents=True)
        self.runs = Runs(
            self.loop,
            self,
            self.project.state / "runs",
            self._life_of,
            lambda run: Random(f"{self.seed} {run}"),
        )
        self.truths.programs = self.runs.programs

    def _repository(self, root: Path) -> Path:
        """Make a repository whose first commit is the same in every night."""
        root.mkdir()
        git_out(root, "init", "--quiet", "--initial-branch=main")
        for name, text in FILES.items():
            (root / name).write_text(text)
        git_out(root, "add", "--all")
        git_out(root, "commit", "--quiet", "--message", "Begin", env=self._dates())
        return root

    def _settings(self) -> str:
        return (
            '[project]\nmain = "main"\nremote = ""\n[agents.plain]\ncommand = ["/bin/true"]\n'
            f'[merge]\ncheck = "{CHECK}"\nisolate = "off"\nprotected = ["guarded/**", "covey.toml"]\n'
            + BUDGETS[self.seed % len(BUDGETS)]
        )

    # The whole of it

    def run(self) -> Story:
        """Live through the night, and return what it came to; raise what was not true."""
        began = time.perf_counter()
        complaints = _Complaints(self.truths.say)
        log = logging.getLogger("covey")
        log.addHandler(complaints)
        try:
            with self._compressed():
                self.loop.run_until_complete(self._night())
            self._look_back()
        except Exception as error:
            raise Failed(self._how(f"{type(error).__name__}: {error}")) from error
        finally:
            log.removeHandler(complaints)
            self._end()
        if self.truths.wrong:
            raise Failed(self._how("\n".join(self.truths.wrong[:10])))
        return self._story(time.perf_counter() - began)

    async def _night(self) -> None:
        await self._rise()
        await self._add_sessions()
        began = self._mischief(), self._person(), self._minutes(), self._add_tasks()
        mischief = [self.loop.create_task(each) for each in began]
        done, _ = await asyncio.wait(mischief, timeout=self.hours * HOUR, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        self._dawn.set()
        await mischief[0]
        await self._put_in_order()
        await self._come_to_rest()
        for task in mischief:
            task.cancel()
        await asyncio.gather(*mischief, return_exceptions=True)
        await self._settle()
        assert self.life is not None
        await self.life.kill()

    async def _rise(self) -> None:
        """Start a daemon."""
        place = Place(
            self.loop, self.clock, self.project, self.runs, Random(f"{self.seed} life {self.loop.life}"),
            self.free_memory, self.hear,
        )  # fmt: skip
        self.life = self.truths.life = Life(place)
        await self.life.begin()
        self._up.set()

    async def ask_covey(self, verb: str, who: Principal | None = None, **asked: Any) -> Any:
        """Ask the daemon, and return its answer; None if there is no daemon, or it refuses."""
        if self.life is None:
            return None
        with suppress(CoveyError):
            return await self.life.ask(verb, who, **asked)

    async def _add_tasks(self) -> None:
        """Fill the board: some tasks at once, the others all night long, with needs among them."""
        ids: list[str] = []
        chance = Random(f"{self.seed} tasks")
        for number in range(self.tasks):
            if number > self.tasks / 3:
                await asyncio.sleep(chance.uniform(0, 1.7) * self.hours * HOUR / self.tasks)
            needs = chance.sample(ids, min(len(ids), chance.randrange(1, 3))) if ids and chance.random() < 0.3 else []
            kind = "report" if chance.random() < 0.08 else "change"
            asked: dict[str, Any] = {"title": f"Task {number}", "needs": needs, "kind": kind}
            asked |= {"priority": chance.randrange(3)} | ({"budget": 2.0} if chance.random() < 0.1 else {})
            nature = chance.choices(("poisoned", "hopeless", "dear", "bad", "good"), (4, 4, 4, 3, 85))[0]
            await self._up.wait()
            made = await self.ask_covey("task.add", **asked)
            ids.append(made["id"])
            self._natures[made["id"]] = nature

    async def _add_sessions(self) -> None:
        for number in range(self.sessions):
            agent = ("night", "owl", "night", "owl", "plain")[number % 5]
            await self.ask_covey("session.new", name=f"worker-{number}", agent=agent)
            await self.ask_covey("session.start", name=f"worker-{number}")

    # What goes wrong

    async def _mischief(self) -> None:
        """Do to the fleet what nights do to fleets."""
        kinds: dict[Callable[[], Coroutine[Any, Any, None]], float] = {
            self._kill_daemon: 5,
            self._kill_in_git: 3,
            self._restart_machine: 1,
            self._pause_fleet: 2,
            self._stop_session: 3,
            self._restart_session: 2,
            self._pause_session: 2,
            self._attach: 4,
            self._suspend: 1,
        }
        while not self._dawn.is_set():
            await asyncio.sleep(self.chance.expovariate(1 / (20 * MINUTE)))
            if self._dawn.is_set():
                return
            kind = self.chance.choices(list(kinds), list(kinds.values()))[0]
            self.faults[kind.__name__.removeprefix("_")] += 1
            await kind()

    async def _kill_daemon(self) -> None:
        """Kill the daemon in the middle of one of its next steps."""
        steps = self.loop.steps + self.chance.randrange(1, 60)
        for _ in range(2000):
            if self.loop.steps >= steps:
                break
            await asyncio.sleep(0.003)
        await self._fall(self.chance.uniform(0.5, 15.0))

    async def _kill_in_git(self) -> None:
        """Kill the daemon between two commands of git."""
        self._struck.clear()
        self._git_until_kill = self.chance.randrange(1, 60)
        with suppress(TimeoutError):
            async with asyncio.timeout(400):
                await self._struck.wait()
        self._git_until_kill = None
        await self._fall(self.chance.uniform(0.5, 15.0))

    async def _fall(self, down: float) -> None:
        """Kill the daemon, and start another after some seconds."""
        await self._die()
        await asyncio.sleep(down)
        await self._rise()

    async def _die(self) -> None:
        life, self.life = self.life, None
        self._up.clear()
        assert life is not None
        await life.kill()

    async def _restart_machine(self) -> None:
        await self._die()
        for program in self.runs.alive:
            program.end(None)
        await asyncio.sleep(self.chance.uniform(20, 300))
        self.clock.reboot()
        await self._rise()

    async def _suspend(self) -> None:
        self.clock.suspend(self.chance.uniform(0.5, 40) * MINUTE)

    async def _pause_fleet(self) -> None:
        await self.ask_covey("fleet.pause")
        await asyncio.sleep(self.chance.uniform(1, 20) * MINUTE)
        await self.ask_covey("fleet.resume")

    def _one(self) -> str:
        return f"worker-{self.chance.randrange(self.sessions)}"

    async def _stop_session(self) -> None:
        name = self._one()
        await self.ask_covey("session.stop", name=name)
        await asyncio.sleep(self.chance.uniform(0.02, 30) * MINUTE)
        await self.ask_covey("session.start", name=name)

    async def _restart_session(self) -> None:
        await self.ask_covey("session.restart", name=self._one())

    async def _pause_session(self) -> None:
        name = self._one()
        await self.ask_covey("session.pause", name=name)
        await asyncio.sleep(self.chance.uniform(1, 20) * MINUTE)
        await self.ask_covey("session.resume", name=name)

    async def _attach(self) -> None:
        name = self._one()
        if await self.ask_covey("session.attach", name=name) is not None and self.chance.random() < 0.4:
            await asyncio.sleep(self.chance.uniform(0.1, 20) * MINUTE)
            await self.ask_covey("session.giveback", name=name)

    # The person

    async def _person(self) -> None:
        """Answer, approve and unblock, sooner or later or never."""
        due: dict[str, float] = {}
        while True:
            await asyncio.sleep(MINUTE)
            for question in await self.ask_covey("question.list", state="open") or ():
                await self._when_due(due, question["id"], 0.2, lambda q=question: self._answer(q))  # type: ignore[misc]
            for merge in await self.ask_covey("merge.list") or ():
                if merge["state"] == "review" or (merge["state"] == "queued" and merge.get("review")):
                    await self._when_due(due, merge["id"], 0.1, lambda m=merge: self._approve(m))  # type: ignore[misc]
            if not self._dawn.is_set():
                for task in await self.ask_covey("task.list", status="blocked") or ():
                    key = f"{task['id']} again"
                    await self._when_due(due, key, 0.7, lambda t=task: self._unblock(t))  # type: ignore[misc]

    async def _when_due(
        self, due: dict[str, float], key: str, never: float, act: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        if key not in due:
            forgets = self.chance.random() < never
            due[key] = 1e12 if forgets else self.loop.time() + self.chance.uniform(0.2, 80) * MINUTE
        if self.loop.time() >= due[key] or (self._dawn.is_set() and not key.endswith("again")):
            await act()
            due[key] = 1e12 if key.endswith("again") else due[key]

    async def _answer(self, question: dict[str, Any]) -> None:
        if question["wants"] == "permission":
            decision = self.chance.choice(("allow", "always", "deny"))
            await self.ask_covey("question.answer", id=question["id"], decision=decision)
        else:
            await self.ask_covey("question.answer", id=question["id"], decision="reply", text="Blue, please.")

    async def _approve(self, merge: dict[str, Any]) -> None:
        await self.ask_covey("merge.approve", id=merge["id"])

    async def _unblock(self, task: dict[str, Any]) -> None:
        self._natures[task["id"]] = self._natures[task["id"]] if self.chance.random() < 0.5 else "good"
        await self.ask_covey("task.edit", id=task["id"], status="todo")

    # The morning

    async def _put_in_order(self) -> None:
        """End what a person began and did not end."""
        await self._up.wait()
        await self.ask_covey("fleet.resume")
        for number in range(self.sessions):
            for verb in ("session.giveback", "session.resume", "session.start"):
                await self.ask_covey(verb, name=f"worker-{number}")

    async def _come_to_rest(self) -> None:
        """Wait until nothing has moved for an hour."""
        assert self.life is not None
        moved, seq, calls = self.loop.time(), -1, 0
        while self.loop.time() - moved < HOUR:
            if self.truths.wrong:
                raise AssertionError(self.truths.wrong[0])
            if self.loop.time() > (self.hours + MORNING) * HOUR:
                raise AssertionError(f"The fleet has not come to rest: {self._open_tasks()}")
            await asyncio.sleep(MINUTE)
            now = self.life.store.head.seq, self.truths.ledger.calls
            if now != (seq, calls):
                (seq, calls), moved = now, self.loop.time()

    async def _settle(self) -> None:
        """See that every task has ended, or waits for a reason that a person knows."""
        for task in self.truths.tasks.values():
            if not self._is_settled(task.id):
                raise AssertionError(f"{task.id} is left: {self._describe(task.id)}")

    def _is_settled(self, task_id: str) -> bool:
        assert self.life is not None
        task = self.truths.tasks[task_id]
        match task.status:
            case Status.DONE:
                return task.kind == "report" or self.truths.landed[task.id] == 1
            case Status.BLOCKED:
                return bool(task.reason)
            case Status.TODO if task.unmet:
                return any(self.truths.tasks[need.task].status is Status.BLOCKED or not self._is_done(need.task)
                           for need in task.needs)  # fmt: skip
            case Status.TODO | Status.DOING:
                return self._waits_for_tomorrow()
            case _:
                return False

    def _is_done(self, task_id: str) -> bool:
        return self.truths.tasks[task_id].status is Status.DONE

    def _waits_for_tomorrow(self) -> bool:
        """Say whether every session that could work has used up what it may spend today."""
        assert self.life is not None
        found = self.life.store.read(lambda tx: tx.run_sessions())
        waits = [one for one in found if one.state is SessionState.LIMITED and (one.until or 0) > self.clock.wall]
        return bool(waits)

    def _describe(self, task_id: str) -> str:
        assert self.life is not None
        task = self.truths.tasks[task_id]
        found = self.life.store.read(lambda tx: [(one.name, one.state, one.evidence) for one in tx.run_sessions()])
        return f"{task.status} with {task.session}, needs {[need.task for need in task.needs]}: {found}"

    def _open_tasks(self) -> list[str]:
        ended = (Status.DONE, Status.BLOCKED)
        return [f"{one.id} {one.status} {one.session}" for one in self.truths.tasks.values() if one.status not in ended]

    # What is looked at all along

    def hear(self, changes: list[Change]) -> None:
        """Hear what was committed."""
        self.truths.hear(changes)
        for change in changes:
            if change.kind in ("fleet.paused", "fleet.resumed"):
                self.truths.paused = change.kind == "fleet.paused"

    async def _minutes(self) -> None:
        """See now and then that what is at work is what the rows say."""
        while True:
            before, reads, seq = (
                self.life,
                self.life.reads if self.life else 0,
                self.life.store.head.seq if self.life else 0,
            )
            await asyncio.sleep(MINUTE)
            life = self.life
            if life is None:
                continue
            looks, events = life.reads - reads, life.store.head.seq - seq
            if life is before and looks > 60 * self.sessions + 100 * events:
                self.truths.say(f"the daemon looked {looks} times in a minute with {events} events")
            open_runs = {run.id for run in life.store.read(lambda tx: tx.open_runs())}
            lost = [one.run for one in self.runs.alive if one.run not in open_runs and not one.run.startswith("gate-")]
            if lost:
                self.truths.say(f"{lost} live, and no row knows of it")
            if self.truths.wrong:
                raise AssertionError(self.truths.wrong[0])

    def _look_back(self) -> None:
        report = verify(self.project.database)
        if not report.sound:
            raise AssertionError(f"The log and the rows differ: {report.problems[:5]}")
        self._look_at_main()

    def _look_at_main(self) -> None:
        root = self.project.root
        values = git_out(root, "reflog", "show", "--format=%H", "refs/heads/main").splitlines()
        line = git_out(root, "rev-list", "--first-parent", "main").splitlines()
        for commit in dict.fromkeys(values):
            found = subprocess.run(["git", "grep", "-q", BAD, commit, "--", "work"], cwd=root, check=False)
            if found.returncode == 0:
                raise AssertionError(f"main was {commit}, which is red")
        if not set(values) <= set(line):
            raise AssertionError("main was somewhere that is not in its history")
        landed = git_out(root, "log", "--format=%(trailers:key=Covey-Task,valueonly,separator=%x2C)", "main")
        counted = Counter(name for name in landed.split("\n") if name)
        changes = {one.id for one in self.truths.tasks.values() if one.kind == "change"}
        done = {one.id for one in self.truths.tasks.values() if one.status is Status.DONE} & changes
        if counted != Counter(dict.fromkeys(done, 1)):
            raise AssertionError(f"main holds {counted}, and done are {sorted(done)}")

    # What programs see of the world

    def free_memory(self) -> int:
        """Return the bytes that are free."""
        return PLENTY if self._dawn.is_set() else self.weather.free_memory(self.loop.time())

    def trouble(self, agent: str) -> tuple[Trouble, float | None] | None:
        """Return what keeps a provider from answering now."""
        cloud = None if self._dawn.is_set() else self.weather.over(agent, self.loop.time())
        if cloud is None:
            return None
        self.faults[f"refused: {cloud.trouble}{', until' if cloud.named else ''}"] += 1
        return cloud.trouble, self.clock.wall + cloud.ends - self.loop.time() if cloud.named else None

    def charge(self, program: Program, cost: float, usage: Usage) -> None:
        """Note that a call was paid for."""
        before, used = self.total(program)
        self._totals[program.conversation] = round(before + cost, 6), used + usage
        self.truths.charge(program, cost, usage.tokens, self.clock.wall, self.config)

    def total(self, program: Program) -> tuple[float, Usage]:
        """Return what a conversation cost so far."""
        return self._totals.get(program.conversation, (0.0, Usage()))

    def commit(self, program: Program, kind: str) -> None:
        """Commit something in a program's worktree."""
        at = Path(program.launch.cwd)
        word = BAD if kind == "bad" else "good"
        files = {f"work/{program.name}.txt": f"{word} by {program.run}\n"}
        if kind == "shared":
            files["shared.txt"] = f"one\nby {program.run}\nthree\n"
            self._conflicted.add(program.name)
        if kind == "guarded":
            files[f"guarded/{program.name}"] = f"{program.run}\n"
        if kind == "good" and program.name in self._conflicted:
            self._git(program, "merge", "--quiet", "-X", "theirs", "-m", "Take main in", "main")
        for name, text in files.items():
            (at / name).parent.mkdir(parents=True, exist_ok=True)
            (at / name).write_text(text)
        self._git(program, "add", "--all")
        self._git(program, "commit", "--quiet", "--message", f"{program.name} in {program.run}")

    def _git(self, program: Program, *words: str) -> None:
        env = {**program.launch.env, **self._dates(), **_PLAIN}
        done = subprocess.run(
            ["git", *words], cwd=program.launch.cwd, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode != 0 and words[0] != "merge":
            self.truths.say(f"{program.run} could not git {' '.join(words)}: {done.stdout}{done.stderr}")
        elif done.returncode != 0:
            subprocess.run(["git", "merge", "--abort"], cwd=program.launch.cwd, env=env, check=False)

    def _dates(self) -> dict[str, str]:
        at = f"@{int(self.clock.wall)} +0000"
        return {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}

    def scatter(self, program: Program) -> None:
        """Leave something in a worktree that is not committed."""
        (Path(program.launch.cwd) / f"left-by-{program.run}.txt").write_text("half a thought\n")

    async def ask(self, program: Program, text: str) -> str | None:
        """Ask the person by command."""
        made = await self.ask_covey("question.ask", Principal(program.session), text=text)
        return None if made is None else str(made["id"])

    async def fetch(self, program: Program, question: str) -> bool:
        """Take an answer, if there is one."""
        seen = await self.ask_covey("question.show", Principal(program.session), id=question)
        if seen is None or seen["state"] == Asked.OPEN:
            return False
        await self.ask_covey("question.take", Principal(program.session), id=question)
        return True

    # What each run does

    def _life_of(self, program: Program) -> Coroutine[Any, Any, None]:
        return self._gate(program) if program.run.startswith("gate-") else self._work(program)

    async def _work(self, program: Program) -> None:
        if program.launch.terminal:
            self.faults["is_used_by_a_person"] += 1
            await programs.is_used_by_a_person(program)
        if program.speaks:
            program.conversation = program.launch.env["NIGHT_CONVERSATION"] or f"talk-{program.run}"
            program.say(signals.Conversation(program.conversation))
        await self._choose(program)(program)

    def _choose(self, program: Program) -> programs.Life:
        natures = {
            "poisoned": programs.crashes_at_once,
            "hopeless": programs.does_nothing,
            "dear": programs.spends_too_much,
            "bad": programs.commits_bad_work,
        }
        life: programs.Life = natures.get(self._natures.get(program.name, "good"), programs.goes_well)
        if life is programs.goes_well and not self._dawn.is_set() and program.chance.random() < 0.5:
            life = program.chance.choices(list(FAULTS), list(FAULTS.values()))[0]
        if life is not programs.goes_well:
            self.faults[life.__name__] += 1
        return life

    async def _gate(self, program: Program) -> None:
        luck = 1.0 if self._dawn.is_set() else program.chance.random()
        if luck < 0.02:
            self.faults["gate hangs"] += 1
            await program.passes(1e9)
        await program.passes(program.chance.uniform(5, 60))
        if luck < 0.06:
            self.faults["gate killed"] += 1
            program.end(None)
        work = Path(program.launch.cwd) / "work"
        red = any(BAD in path.read_text() for path in work.iterdir()) if work.is_dir() else False
        program.exit(1 if red else 0)

    # Compressing

    @contextmanager
    def _compressed(self) -> Iterator[None]:
        """Let the loops look less often, git know the virtual time, and the agents of the night be found."""
        entries = {name: EntryPoint(name, f"tests.end_to_end.night.agents:{name}", registry.GROUP) for name in NAMES}
        own_env = gits.inherited_env
        own_backoff = start_limits.backoff

        def environment() -> dict[str, str]:
            self._maybe_die()
            return {**own_env(), **self._dates(), **_PLAIN}

        def backoff(failures: int, first: float, most: float, chance: float) -> float:
            seconds = own_backoff(failures, first, most, chance)
            if not 0.9 * first <= seconds <= most:
                self.truths.say(f"a session waits {seconds} s after {failures} failures")
            return seconds

        self.loop.killed = Killed
        with (
            patch.object(registry, "_entries", lambda: entries),
            patch.object(gits, "inherited_env", environment),
            patch.object(start_limits, "backoff", backoff),
            patch.object(fleet_loop, "LOOK_EVERY_S", 8.0),
            patch.object(fleet_loop, "REST_EVERY_S", 8.0),
            patch.object(tidying, "QUESTIONS_EVERY", 8.0),
            patch.object(watchdog, "SAMPLE_EVERY_S", 8.0),
            patch.object(queue_loop, "QUEUE_REST_S", 30.0),
            patch.object(gates, "FIRST_LOOK_EVERY_S", 1.0),
            patch.dict(os.environ, {"TZ": "UTC", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}),
        ):
            time.tzset()
            try:
                yield
            finally:
                os.environ.pop("TZ")
        time.tzset()

    def _maybe_die(self) -> None:
        if self._git_until_kill is not None:
            self._git_until_kill -= 1
            if self._git_until_kill <= 0:
                self._git_until_kill = None
                self._struck.set()
                raise Killed

    # Afterwards

    def _end(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        with suppress(Exception):
            self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def log(self) -> list[tuple[float, str, str, str]]:
        """Return time, kind, subject and data of every event but the first, which names the log."""
        import apsw

        db = apsw.Connection(str(self.project.database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            found = db.execute("SELECT time, kind, subject, data FROM events WHERE seq > 1 ORDER BY seq").fetchall()
        finally:
            db.close()
        rows: list[tuple[Any, ...]] = found
        here = str(self.folder)
        return [(at, kind, subject, data.replace(here, "HERE")) for at, kind, subject, data in rows]

    def _how(self, what: str) -> str:
        with suppress(Exception):
            told = [each for each in self.log() if each[1] != "run.spent"][-50:]
            last = "\n".join(f"{(at - BEGIN) / HOUR:7.4f} h  {kind} {subject} {data[:200]}"
                             for at, kind, subject, data in told)  # fmt: skip
            size = f"--hours {self.hours:g} --sessions {self.sessions} --tasks {self.tasks}"
            again = f"python -m tests.end_to_end.night --seed {self.seed} {size} --figures"
            if (self.sessions, self.tasks) == (12, 60):
                world = f"COVEY_NIGHT_SEED={self.seed} COVEY_NIGHT_HOURS={self.hours:g}"
                again = f"{world} pytest -m soak tests/end_to_end/night"
            return f"{what}\nseed {self.seed}, {self.loop.time() / HOUR:.2f} h\n{last}\nSee it again: {again}"
        return what

    def _story(self, seconds: float) -> Story:
        log = self.log()
        statuses = Counter(str(task.status) for task in self.truths.tasks.values())
        return Story(
            self.seed,
            round(self.loop.time() / HOUR, 2),
            len(log),
            len(self.truths.runs),
            self.truths.ledger.calls,
            statuses["done"],
            statuses["blocked"],
            round(seconds, 1),
            dict(self.faults),
            dict(self.truths.outcomes),
            dict(self.truths.alerts),
            log,
        )


_PLAIN = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class _Complaints(logging.Handler):
    """Hears the errors that the loops log: each is a bug."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        self._say(f"{record.name}: {record.getMessage()}\n{trace}")
