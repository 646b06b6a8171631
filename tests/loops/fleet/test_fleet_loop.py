"""What follows from how runs go: the real fleet on real git and real processes, under clocks that tests turn by hand.

Every write is run twice, as it is when another in its batch is refused: nothing may be learnt or told twice, or lost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec
import pytest

from covey import config
from covey.agents import registry
from covey.agents.agent import Assignment, Terminal, Traits, WithoutLedger
from covey.agents.custom import Declared
from covey.app.app import App, Request
from covey.app.context import Call, Context, Principal
from covey.app.fleet.heartbeats import Pulses
from covey.app.verbs import VERBS, decode, fingerprint
from covey.core.events import Started
from covey.core.fleet import sessions
from covey.core.fleet.launches import Launch
from covey.core.fleet.sessions import COVEY
from covey.core.fleet.signals import Asks, Signal
from covey.core.fleet.start_limits import MAX_LIMIT_S, Pace
from covey.core.people.questions import Reply
from covey.errors import Refused, ToolFailed, Unavailable
from covey.git import project as projects
from covey.git.rescue.rescue import Rescued, rescue
from covey.git.worktrees.worktrees import Worktrees, default_folder
from covey.loops.fleet import rescues
from covey.loops.fleet.commit_reader import lands
from covey.loops.fleet.fleet_loop import Fleet
from covey.loops.fleet.fleet_memory import FleetMemory
from covey.loops.runtime import Runtime
from covey.runners.process import ProcessRunner
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx
from tests.worlds.boards import ManualClock
from tests.worlds.repositories import git_out, make_repository
from tests.worlds.serving import wait_until

T = TypeVar("T")
MIB = 1024**2
PLAYED = "write done.txt\n    done\ncommit Done\n"
COMMIT = "echo done > done.txt; git add .; git commit -qm Done\n"
OWN = '[project]\nmain = "main"\nremote = ""\n'
GATE = '[merge]\ncheck = "true"\n'
SHELL = Declared("speaker", ("bash", "{body_file}"))


@dataclass(frozen=True)
class Speaker(WithoutLedger):
    """A shell that plays a task's body, always says how it ended, and is told its conversation."""

    name: str = "speaker"
    traits: Traits = field(default_factory=lambda: Traits(speaks=True, resumes=True, memory=100 * MIB))
    terminal: Terminal | None = None

    def launch(self, work: Assignment) -> Launch:
        made = SHELL.launch(work)
        return replace(made, env={**made.env, "CONVERSATION": work.conversation or "none"})

    def read(self, line: str) -> list[Signal]:
        return SHELL.read(line)

    def say(self, text: str) -> str | None:
        return SHELL.say(text)

    def answer(self, asks: Asks, reply: Reply) -> str | None:
        return SHELL.answer(asks, reply)


speaker = Speaker()


def tells(kind: str, **more: object) -> str:
    """Return a line of shell that lets covey know something."""
    return f"echo '{json.dumps({'covey': kind, **more})}'\n"


class House:
    """One project with its fleet, which looks whenever it is told to."""

    def __init__(self, folder: Path, *settings: str) -> None:
        root = make_repository(folder / "shop", {"README.md": "A shop.\n", ".gitignore": "covey.toml\n"})
        (root / "covey.toml").write_text("".join((OWN, GATE, *settings)))
        self.outside = folder / "outside"
        self.outside.mkdir()
        self.project = projects.find(root)
        self.project.state.mkdir(parents=True)
        self.clock = ManualClock()
        self.store = SqliteStore(self.project.database, clock=lambda: self.clock.now().wall, project="shop")
        self.runner = ProcessRunner(self.project.runs)
        self.free = 64 * 1024 * MIB
        self.fails = 0
        """So many times a write fails from now on."""
        self.fails_at = 0
        """Which write from now on fails, 1 the next; none if 0."""
        settled = config.load(root)
        worktrees = Worktrees(self.project, default_folder(self.project, settled.sessions.worktrees))
        memory = FleetMemory(self.clock, lambda: self.free, lambda: 0.5)
        context = Context(
            settled,
            Pulses(self.clock, self.store.place),
            "shop",
            has_daemon=True,
            secret=b"shop",
            runner=self.runner,
            runs=self.project.runs,
            fleet=memory,
            commits=partial(lands, self.project, worktrees, self.store, self.clock),
        )
        self.app = App(self.store, context)
        self.runtime = Runtime(
            self.app,
            self.project,
            self.runner,
            worktrees,
            "http://127.0.0.1:1",
            self,
            free_memory=lambda: self.free,
        )
        self.fleet = Fleet(self.runtime, memory)
        self.loop = asyncio.new_event_loop()

    async def read(self, job: Callable[[Tx], T]) -> T:
        return self.store.read(job)

    async def write(self, job: Callable[[Tx], T], *, long: bool = False) -> T:
        last = self.fails_at == 1
        self.fails_at = max(self.fails_at - 1, 0)
        if self.fails or last:
            self.fails = max(self.fails - 1, 0)
            raise Unavailable("The disk is full, so nothing was written.")
        value: T = self.store.run([job, _spoil])[0].result()
        return value

    # Time

    async def look(self) -> None:
        """Let the fleet look once, and finish what it begins."""
        await self.fleet.tick()
        await self.fleet.stop()

    def tick(self, seconds: float = 0.0) -> None:
        """Let some time pass, then let the fleet look."""
        self.clock.run(seconds)
        self.loop.run_until_complete(self.look())

    def ticks(self, count: int, seconds: float = 0.0) -> None:
        """Let the fleet look some times."""
        for _ in range(count):
            self.tick(seconds)

    def until(self, condition: Callable[[], bool], what: str, seconds: float = 0.0) -> None:
        """Let the fleet look until something is so, with so much time between two looks."""

        def looked() -> bool:
            self.tick(seconds)
            return condition()

        wait_until(looked, what)

    # Asking

    def ask(self, verb: str, **asked: Any) -> Any:
        """Ask as the owner."""
        found = VERBS[verb]
        params = {name: asked.pop(name) for name in found.params}
        body = msgspec.json.encode(asked)
        request = fingerprint(found.method, found.path.format(**params), body)
        return self.app.ask(Request(found, Principal(), decode(found.decoder, body), params, sent=request)).value()

    def add(self, body: str, title: str = "One", **asked: Any) -> str:
        """Add a task and return its id."""
        return str(self.ask("task.add", title=title, body=body, **asked)["id"])

    def staff(self, *names: str, agent: str = "speaker") -> None:
        """Let sessions work the board."""
        for name in names:
            self.ask("session.new", name=name, agent=agent)
            self.ask("session.start", name=name)

    def task(self, task: str) -> dict[str, Any]:
        """Return a task."""
        found: dict[str, Any] = self.ask("task.show", id=task)
        return found

    def session(self, name: str = "ada") -> dict[str, Any]:
        """Return a session."""
        found: dict[str, Any] = next(each for each in self.ask("session.list") if each["name"] == name)
        return found

    def runs(self) -> list[dict[str, Any]]:
        """Return all runs, the oldest first."""
        return list(reversed(self.ask("run.list", limit=500)))

    def outcomes(self) -> list[str]:
        """Return what the runs that have ended came to, the oldest first."""
        return [event["data"]["outcome"] for event in self.events("run.ended")]

    def told(self) -> list[str]:
        """Return the types of the alerts, the oldest first."""
        return [event["data"]["type"] for event in self.events("alert.raised")]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of one kind, the oldest first."""
        found: list[dict[str, Any]] = self.ask("log.list", kind=kind, limit=1000)
        return found

    def marks(self, name: str) -> list[str]:
        """Return the lines that agents left in a file outside."""
        path = self.outside / name
        return path.read_text().splitlines() if path.exists() else []

    def is_over(self, count: int) -> Callable[[], bool]:
        """Return a question whether so many runs have ended."""
        return lambda: len(self.outcomes()) >= count

    def has_said(self, count: int) -> Callable[[], bool]:
        """Return a question whether so many runs have printed something: before, no time should pass for them."""
        return lambda: sum(self.runner.look(run["id"]).size > 0 for run in self.runs()) >= count

    def close(self) -> None:
        """End all that still runs, and let go."""
        for run in self.store.read(lambda tx: tx.open_runs()):
            self.runner.stop(run.id)
        self.loop.close()
        self.runtime.close()
        self.store.close()


def _spoil(tx: Tx) -> None:
    """Change something and then refuse: all that is written together is written once more."""
    tx.append(COVEY, "daemon", Started("0"))
    raise Refused("It changed its mind.")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., House]]:
    """Return a function that makes a house with some settings; it is closed with the test."""
    entries = {**registry._entries(), "speaker": EntryPoint("speaker", f"{__name__}:speaker", registry.GROUP)}
    monkeypatch.setattr(registry, "_entries", lambda: entries)
    houses: list[House] = []

    def build(*settings: str) -> House:
        houses.append(House(tmp_path / f"house-{len(houses)}", *settings))
        return houses[-1]

    yield build
    for house in houses:
        house.close()


def watching(**settings: float) -> str:
    """Return settings of the watchdog."""
    return "[watch]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())


# The last word


def test_what_was_said_before_an_agent_was_killed_is_no_report(built: Callable[..., House]) -> None:
    house = built()
    task = house.add("echo Half of the report\nkill -9 $$\n", kind="report")
    house.staff("ada")
    house.until(house.is_over(1), "the end of the run")
    shown = house.task(task)
    assert (house.outcomes(), shown["status"], shown["result"], shown["tries"]) == (["crashed"], "doing", None, [])


def test_work_is_judged_though_its_story_cannot_be_told(
    built: Callable[..., House], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> str:
        raise RecursionError("too deep")

    monkeypatch.setattr("covey.loops.fleet.close.end_of", fail)
    monkeypatch.setattr("covey.loops.fleet.close.transcript_of", fail)
    house = built()
    house.add(f"{COMMIT}{tells('result', text='Done')}")
    house.staff("ada")
    house.until(house.is_over(1), "the end of the run")
    assert house.outcomes() == ["handed-in"]
    (run,) = house.runs()
    assert [each.getMessage() for each in caplog.records if each.exc_info] == [
        f"the end of the output of {run['id']} cannot be told",
        f"the transcript of {run['id']} could not be kept",
    ]


def test_what_lies_there_is_in_safety_before_covey_looks_at_what_was_said(
    built: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("too deep")

    house = built()
    house.add(f"echo more > more.txt\n{tells('result', text='Done')}")
    house.staff("ada")
    house.tick()
    (run,) = house.runs()
    wait_until(lambda: not house.runner.look(run["id"]).alive, "the end of the program")
    monkeypatch.setattr(house.fleet.closer.attendant, "hear_out", fail)
    house.tick(1.0)
    assert git_out(house.project.root, "for-each-ref", "refs/covey/rescue") != ""


def test_a_rescue_whose_git_was_killed_is_tried_again_before_a_worktree_is_kept_aside(
    built: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def killed_once(*words: Any, **more: Any) -> Rescued | None:
        tried.append(words)
        if len(tried) == 1:
            raise ToolFailed("git status failed: exit code -9.")
        return rescue(*words, **more)

    house = built()
    house.add(f"echo more > more.txt\n{tells('result', text='Done')}")
    monkeypatch.setattr(rescues, "rescue", killed_once)
    house.staff("ada")
    house.until(house.is_over(1), "the end of the run", seconds=1.0)
    assert len(tried) > 1
    assert git_out(house.project.root, "for-each-ref", "refs/covey/rescue") != ""
    assert "worktree_aside" not in house.told()


@pytest.mark.parametrize(
    ("body", "outcome", "story"),
    [(COMMIT, "handed-in", None), ("", "failed", "The run ended without a commit.")],
    ids=["complete", "nothing done"],
)
def test_who_has_said_all_and_does_not_end_is_ended_and_judged_by_its_work(
    built: Callable[..., House], body: str, outcome: str, story: str | None
) -> None:
    house = built(watching(stalled_minutes=30))
    task = house.add(f"{body}{tells('result', text='Done')}exec sleep 1000\n")
    house.staff("ada")
    house.until(house.is_over(1), "the end of the run", seconds=2.0)
    (ended,) = house.events("run.ended")
    (ending,) = house.events("run.ending")
    assert (house.outcomes(), ending["data"]["over"], ended["data"]["code"]) == ([outcome], True, -15)
    assert house.told() == []
    tries = house.task(task)["tries"]
    assert [each["what"].splitlines()[0] for each in tries] == ([] if story is None else [story])


def test_a_conversation_that_overflowed_is_not_taken_up_again_though_nobody_saw_the_run_end(
    built: Callable[..., House],
) -> None:
    house = built()
    talks = tells("conversation", id="talk-1")
    full = tells("failed", text="The prompt is too long", trouble="context")
    mark = house.outside / "conversations"
    body = f"echo $CONVERSATION >> {mark}\n{talks}{full}test $(wc -l < {mark}) -gt 1 || kill -9 $PPID\n"
    house.add(body)
    house.staff("ada")
    house.until(lambda: len(house.marks("conversations")) == 2, "the next run", seconds=1.0)
    assert house.marks("conversations") == ["none", "none"]


# What takes no time of a run


@pytest.mark.parametrize("waits", ["ask Which colour?", "limited overload: 529"])
def test_a_run_has_all_its_time_however_long_it_had_to_wait(built: Callable[..., House], waits: str) -> None:
    house = built("[sessions]\nrun_minutes = 2\n", watching(request_minutes=60, answer_minutes=600))
    go = house.outside / "go"
    task = house.add(f"{waits}\nwait for {go}\nsay Here I am\n{PLAYED}")
    house.staff("ada", agent="scripted")
    house.until(lambda: house.session()["state"] in ("needs-you", "limited"), "the wait", seconds=0.6)
    house.ticks(60, 30.0)
    assert (house.outcomes(), house.events("run.ending")) == ([], [])
    if waits.startswith("ask"):
        house.ask("session.send", name="ada", text="green")
    go.touch()
    house.until(house.is_over(1), "the end of the run")
    assert (house.outcomes(), house.task(task)["tries"]) == (["handed-in"], [])


def test_who_works_on_after_an_answer_has_its_time_and_no_more(built: Callable[..., House]) -> None:
    house = built("[sessions]\nrun_minutes = 2\n", watching(answer_minutes=600))
    task = house.add(f"ask Which colour?\nwait for {house.outside / 'never'}\n")
    house.staff("ada", agent="scripted")
    house.until(lambda: house.session()["state"] == "needs-you", "the question", seconds=0.6)
    house.ticks(20, 30.0)
    house.ask("session.send", name="ada", text="green")
    house.until(lambda: house.session()["state"] == "working", "its work", seconds=0.6)
    house.ticks(3, 30.0)
    assert house.outcomes() == []
    house.until(house.is_over(1), "the end of its time", seconds=10.0)
    assert house.task(task)["tries"][0]["what"].startswith("The run took longer than 2 min.")


# Crashes


def test_of_crashes_in_a_row_a_person_is_told_at_the_third(built: Callable[..., House]) -> None:
    house = built(watching(crashes=9, backoff=1))
    house.add("crash SEGV\n")
    house.staff("ada", agent="scripted")
    house.until(house.is_over(2), "two crashes", seconds=1.0)
    assert (house.outcomes(), house.told()) == (["crashed"] * 2, [])
    house.until(house.is_over(3), "the third crash", seconds=1.0)
    assert house.told() == ["crashes"]
    house.until(house.is_over(5), "more crashes", seconds=1.0)
    assert (house.outcomes(), house.told()) == (["crashed"] * 5, ["crashes"])


def test_of_a_crash_that_blocks_its_task_a_person_is_told_once(built: Callable[..., House]) -> None:
    house = built(watching(crashes=3, backoff=1))
    task = house.add("crash SEGV\n")
    house.staff("ada", agent="scripted")
    house.until(lambda: house.task(task)["status"] == "blocked", "the end of the loop", seconds=1.0)
    assert (house.outcomes(), house.told()) == (["crashed"] * 3, ["crash_loop"])


# The files of another task


def test_what_another_task_left_lying_never_comes_onto_the_branch(built: Callable[..., House]) -> None:
    house = built(watching(backoff=1))
    talks, gives_up = tells("conversation", id="talk-1"), tells("failed", text="I cannot")
    ready = house.outside / "ready"
    body = f"{talks}test -e {ready} || {{ {gives_up.strip()}; exit 1; }}\n"
    first = house.add(f"{body}echo mine > one.txt; git add -A; git commit -qm One\n{tells('result', text='Done')}")
    house.staff("ada")
    house.until(house.is_over(1), "the first run")
    house.ask("session.stop", name="ada")
    house.ask("session.start", name="ada")
    second = house.add(f"echo theirs > two.txt; echo theirs >> README.md\n{talks}{gives_up}", "Two", priority=9)
    house.until(house.is_over(2), "the run on another task", seconds=1.0)
    assert [run["task"] for run in house.runs()] == [first, second]
    house.ask("task.drop", id=second, reason="Not now")
    ready.touch()
    house.until(lambda: house.task(first)["status"] == "merging", "the work", seconds=1.0)
    changed = git_out(house.project.root, "diff", "--name-only", "main", f"covey/{first}").splitlines()
    assert changed == ["one.txt"]
    rescued = git_out(house.project.root, "for-each-ref", "--format=%(refname)", "refs/covey/rescue/ada").splitlines()
    kept = [
        name for ref in rescued for name in git_out(house.project.root, "ls-tree", "-r", "--name-only", ref).split()
    ]
    assert "work/two.txt" in kept, "and it is not lost"


def test_who_takes_up_its_own_task_finds_what_it_had_not_committed(built: Callable[..., House]) -> None:
    house = built(watching(backoff=1))
    talks, put_off = tells("conversation", id="talk-1"), tells("failed", text="529", trouble="overload")
    task = house.add(
        f"{talks}test -e one.txt || {{ echo mine > one.txt; {put_off.strip()}; exit 1; }}\n"
        f"git add -A; git commit -qm One\n{tells('result', text='Done')}"
    )
    house.staff("ada")
    house.until(house.is_over(2), "two runs", seconds=1.0)
    assert (house.outcomes(), house.task(task)["status"]) == (["put-off", "handed-in"], "merging")


# Giving up


def test_who_gave_a_task_up_waits_before_it_takes_the_next(built: Callable[..., House]) -> None:
    house = built(watching(backoff=60), "[board]\ntries = 1\n")
    gives_up = tells("failed", text="I cannot")
    house.add(gives_up)
    house.add(gives_up, "Two")
    house.staff("ada")
    house.until(house.is_over(1), "the first task")
    house.ticks(5, 10.0)
    assert len(house.runs()) == 1
    house.tick(11.0)
    assert len(house.runs()) == 2


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("where", ["package", "look"])
def test_a_package_that_raises_harms_its_own_session_only(
    built: Callable[..., House], monkeypatch: pytest.MonkeyPatch, where: str, begun: bool
) -> None:
    def load(*asked: Any) -> Any:
        if is_broken and asked[-1] != "speaker":
            raise RuntimeError("no licence")
        return look(*asked) if asked else SHELL

    is_broken, look = False, Runtime.agent
    turncoat = SimpleNamespace(name="turncoat", value="turncoat:agent", load=load)
    entries = {**registry._entries(), "turncoat": turncoat}
    house = built()
    monkeypatch.setattr(registry, "_entries", lambda: entries)
    if where == "look":
        monkeypatch.setattr(Runtime, "agent", load)
        turncoat.load = lambda: SHELL
    house.staff("ada", agent="turncoat")
    house.add("exec sleep 1000\n", assignee="ada")
    if begun:
        house.until(lambda: house.session()["state"] == "working", "its work")
    is_broken = True
    house.add(f"{COMMIT}{tells('result', text='Done')}")
    house.staff("bob")
    house.until(lambda: "handed-in" in house.outcomes(), "the work of the other")
    assert [run["session"] for run in house.runs() if run["outcome"] == "handed-in"] == ["bob"]


# What a person is told once


def test_a_person_is_told_once_that_memory_is_short(built: Callable[..., House]) -> None:
    house = built("[sessions]\nfree_memory = 512\n")
    for title in ("One", "Two", "Three"):
        house.add("exec sleep 1000\n", title)
    house.staff("ada")
    house.tick()
    assert len(house.runs()) == 1
    for step, name in enumerate(("ben", "cem")):
        house.staff(name)
        house.free = (300 + step) * MIB
        house.ticks(5, 2.0)
    assert (len(house.runs()), house.told()) == (1, ["waits"])
    assert house.session("ben")["state"] == house.session("cem")["state"] == "limited"
    house.free = 64 * 1024 * MIB
    house.until(lambda: len(house.runs()) == 3, "room for all", seconds=2.0)
    assert house.told() == ["waits"]


def test_a_person_is_told_once_that_a_model_answers_nobody(built: Callable[..., House]) -> None:
    house = built(watching(stalled_minutes=0.5, request_minutes=1, backoff=3600, backoff_most=3600))
    names = ("ada", "ben", "cem")
    for title in names:
        house.add(f"{tells('waits')}exec sleep 1000\n", title)
    house.staff(*names)
    house.until(house.has_said(3), "their first words", seconds=0.05)
    house.until(house.is_over(3), "the end of all three", seconds=3.0)
    assert (house.outcomes(), house.told()) == (["stopped"] * 3, ["stalled"])


# A person lets it go on


def limited(house: House, until: float, trouble: str = "limit") -> str:
    """Let ada be put off until a time of day, and return the task."""
    task = house.add(tells("failed", text="try later", trouble=trouble, until=until))
    house.staff("ada")
    house.until(house.is_over(1), "the refusal")
    assert house.outcomes() == ["put-off"]
    return task


@pytest.mark.parametrize("verb", ["session.start", "session.restart"])
def test_who_is_put_off_goes_on_at_once_when_a_person_says_so(built: Callable[..., House], verb: str) -> None:
    house = built()
    limited(house, house.clock.now().wall + 7200)
    house.ticks(5, 5.0)
    assert (len(house.runs()), house.session()["state"]) == (1, "limited")
    house.ask(verb, name="ada")
    house.tick()
    assert len(house.runs()) == 2


def test_a_person_takes_over_who_is_put_off_and_a_terminal_that_cannot_start_is_given_back(
    built: Callable[..., House],
) -> None:
    house = built()
    limited(house, house.clock.now().wall + 7200)

    def attach(tx: Tx) -> None:
        call = Call(tx, Principal(), house.app.context)
        session = tx.session("ada")
        assert session is not None
        call.put_session(session, "ada", sessions.Attached(), by="owner")

    house.store.write(attach)
    house.until(house.is_over(2), "the end of the person's run")
    assert ["person" in event["data"] for event in house.events("run.begun")] == [False, True]
    session = house.store.read(lambda tx: tx.session("ada"))
    assert session is not None and session.attached is None


# Resets


def test_a_reset_comes_at_its_time_of_day_though_the_machine_slept_until_then(built: Callable[..., House]) -> None:
    house = built()
    limited(house, house.clock.now().wall + 7200)
    house.tick(60.0)
    house.clock.suspend(7000)
    house.ticks(5, 1.0)
    assert len(house.runs()) == 1, "not before its time"
    house.clock.suspend(200)
    house.tick()
    assert len(house.runs()) == 2


@pytest.mark.parametrize(
    "until", [lambda wall: (wall + 60) * 1000, lambda wall: wall + MAX_LIMIT_S + 60, lambda wall: 60.0]
)
def test_a_reset_that_makes_no_sense_stops_nobody(built: Callable[..., House], until: Callable[[float], float]) -> None:
    house = built(watching(backoff=5))
    limited(house, until(house.clock.now().wall))
    house.until(house.is_over(2), "the next try", seconds=1.0)
    assert house.clock.now().awake < 1_100


def test_a_reset_that_a_living_run_names_and_that_makes_no_sense_keeps_nobody_from_starting(
    built: Callable[..., House],
) -> None:
    house = built("[sessions]\nstagger = 0\n")
    late = (house.clock.now().wall + 60) * 1000
    for title in ("One", "Two", "Three"):
        house.add(f"{tells('limited', text='later', until=late)}exec sleep 1000\n", title)
    house.staff("ada")
    house.until(lambda: house.session()["state"] == "limited", "the refusal", seconds=0.6)
    assert house.ask("session.why", name="ada")["until"] is None
    assert house.fleet.starts.paces["speaker"].closed is None


# One look, one judgement


def test_a_session_that_was_busy_when_a_look_began_is_not_judged_by_it(built: Callable[..., House]) -> None:
    house = built(watching(backoff=60))
    house.add("kill -9 $$\n")
    house.staff("ada")
    house.tick()
    (run,) = house.runs()
    wait_until(lambda: not house.runner.look(run["id"]).alive, "the crash")
    read = house.runtime.read

    async def slowly(job: Callable[[Call], T]) -> T:
        found = await read(job)
        if job == house.fleet._look:
            await house.fleet.stop()  # meanwhile, what was under way is done
        return found

    async def twice() -> None:
        await house.fleet.tick()
        house.runtime.read = slowly  # type: ignore[method-assign]
        await house.fleet.tick()
        await house.fleet.stop()

    house.loop.run_until_complete(twice())
    assert (house.outcomes(), house.fleet.starts.failures) == (["crashed"], {"ada": 1})


def test_what_is_learnt_from_an_end_is_learnt_once_however_often_it_is_written(built: Callable[..., House]) -> None:
    house = built(watching(backoff=60))
    house.add("kill -9 $$\n")
    house.staff("ada")
    house.tick()
    (run,) = house.runs()
    wait_until(lambda: not house.runner.look(run["id"]).alive, "the crash")
    house.fails = 2
    house.until(house.is_over(1), "the end", seconds=1.0)
    assert (house.fails, house.fleet.starts.failures) == (0, {"ada": 1})


def test_an_alert_of_an_end_that_could_not_be_written_at_first_comes_later_and_once(
    built: Callable[..., House],
) -> None:
    house = built(watching(backoff=1))
    house.add(tells("failed", text="401: no such key", trouble="key"))
    house.staff("ada")
    house.tick()
    (run,) = house.runs()
    wait_until(lambda: not house.runner.look(run["id"]).alive, "the end of the program")
    house.fails = 1
    house.until(house.is_over(1), "the end", seconds=1.0)
    assert (house.fails, house.told()) == (0, ["agent_key"])


def test_an_alert_of_a_start_that_failed_and_could_not_be_written_at_first_comes_later_and_once(
    built: Callable[..., House],
) -> None:
    house = built(watching(backoff=1), '[agents.nowhere]\ncommand = ["no-such-program"]\n')
    house.add("")
    house.staff("ada", agent="nowhere")
    house.fails_at = 3  # after the intent to run, and what is needed for it
    house.until(house.is_over(2), "two ends", seconds=1.0)
    assert (house.fails_at, house.told()) == (0, ["cannot_start"])


# Limits within one look


def test_no_more_runs_begin_in_one_look_than_a_provider_bears(built: Callable[..., House]) -> None:
    house = built("[sessions]\nstagger = 0\n")
    names = ("ada", "ben", "cem", "dot")
    for name in names:
        house.add("exec sleep 1000\n", name)
    house.staff(*names)
    at = house.clock.now().awake
    house.fleet.starts.paces["speaker"] = Pace(limit=2.0, cut=at, grown=at, why="429")
    house.tick()
    assert len(house.runs()) == 2


def test_no_more_runs_begin_in_one_look_than_there_is_memory_for(built: Callable[..., House]) -> None:
    house = built("[sessions]\nstagger = 0\nfree_memory = 512\n")
    names = ("ada", "ben", "cem", "dot")
    for name in names:
        house.add("exec sleep 1000\n", name)
    house.free = (512 + 350) * MIB
    house.staff(*names)
    house.tick()
    assert len(house.runs()) == 3


def test_without_limits_all_that_can_begin_in_one_look(built: Callable[..., House]) -> None:
    house = built("[sessions]\nstagger = 0\n")
    names = ("ada", "ben", "cem", "dot")
    for name in names:
        house.add("exec sleep 1000\n", name)
    house.staff(*names)
    house.tick()
    assert len(house.runs()) == 4


# Repetition


def test_who_repeats_itself_far_too_often_between_two_looks_is_told_first(built: Callable[..., House]) -> None:
    house = built(watching(repeats=4))
    task = house.add("call shell make\n" * 20 + f"listen\ncall shell make test\n{PLAYED}")
    house.staff("ada", agent="scripted")
    house.until(house.is_over(1), "the end of the run", seconds=0.3)
    assert (house.outcomes(), house.told(), house.task(task)["tries"]) == (["handed-in"], [], [])


def test_a_batch_that_a_person_named_stays_and_that_of_a_lost_run_does_not(built: Callable[..., House]) -> None:
    house = built()
    named, lost = (house.add("", batch=name) for name in ("nightly", "batch-0a1b2c"))
    house.tick(3600.0)
    house.tick(3600.0)
    assert (house.task(named)["batch"], house.task(lost)["batch"]) == ("nightly", None)


def test_who_was_stopped_for_a_silent_model_waits_also_if_the_daemon_was_killed_meanwhile(
    built: Callable[..., House],
) -> None:
    house = built(watching(stalled_minutes=0.5, request_minutes=1, backoff=3600, backoff_most=3600))
    house.add(f"{tells('waits')}exec sleep 1000\n")
    house.staff("ada")
    house.until(house.has_said(1), "its first word")
    house.until(lambda: bool(house.events("run.ending")), "the decision", seconds=3.0)
    assert house.outcomes() == []
    house.fleet = Fleet(house.runtime, FleetMemory(house.clock, lambda: house.free, lambda: 0.5))
    house.until(house.is_over(1), "the end")
    house.ticks(5, 3.0)
    assert len(house.runs()) == 1
