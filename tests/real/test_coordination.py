"""Real agents out of each other's files: told of leases, mail and a person's word at their steps, and going on by it.

The model behind them is scripted, and what it does next hangs on what it was told.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.line.lines import Line, kill
from tests.model.environment import World, scripted_world
from tests.model.script import SIDE, Read, Script, Shell, Step, Tool, Usage, Write
from tests.model.server import told
from tests.real.person import person
from tests.real.projects import add, alerts, begin, lands, real_line, runs
from tests.real.test_terminals import press
from tests.serving import wait_until

BOTH = pytest.mark.parametrize("agent", ["claude", "codex"])
DONE = Step(text="Done.")
FULL = 'permissions = "full"\n'
PATIENCE = 120.0


@dataclass(frozen=True)
class Place:
    """A project whose daemon is up, in a world of its own; each test has sessions, tasks and paths of its own in it."""

    line: Line
    world: World

    def work(self, name: str, agent: str, steps: Script | list[Step], **more: Any) -> str:
        """Give a session a task whose model follows a script of the same name, let it begin, and return the task."""
        task = add(self.line, f"Task of {name}", self.world.model.add(name, steps), assignee=name, **more)
        begin(self.line, name, agent)
        return task

    def holds(self, name: str, *paths: str, **more: Any) -> dict[str, Any]:
        """Let a session from outside take a lease by hand."""
        with self.line.client() as client:
            lease: dict[str, Any] = client.post("/api/leases", {"resources": list(paths), "session": name, **more})
            return lease

    def mails(self, sender: str, to: str, text: str) -> str:
        """Send a message as a session from outside, and return its id."""
        with self.line.client() as client:
            return str(client.post("/api/mail", {"to": to, "text": text, "session": sender})["id"])

    def leases(self, name: str) -> list[dict[str, Any]]:
        """Return what a session holds."""
        with self.line.client() as client:
            found: list[dict[str, Any]] = client.get(f"/api/leases?session={name}")
            return found

    def asked(self, name: str, step: int) -> None:
        """Wait until the model of a session is asked for a step."""
        wait_until(lambda: self.world.model.asked(name, step) > 0, f"step {step} of {name}", patience=PATIENCE)

    def told(self, name: str, step: int = -1) -> str:
        """Return all that the model of a session had been told when it was asked for a step, the last one if -1."""
        turns = self.world.model.turns(name)
        return told((turns[-1] if step == -1 else next(turn for turn in turns if turn.step == step)).body)

    def events(self, kind: str, session: str) -> list[dict[str, Any]]:
        """Return what the log says of a kind of event that a session has to do with."""
        return [
            event for event in self.line.events(kind) if session in (event["data"].get("session"), event["subject"])
        ]

    def main(self) -> list[str]:
        """Return the files on main."""
        return self.line.git("ls-tree", "-r", "--name-only", "main").split()


@contextmanager
def made(folder: Path, *settings: str, sessions: str = FULL) -> Iterator[Place]:
    """Yield a place in a folder, and leave nothing of it."""
    with scripted_world(folder, trusted=[folder / "line" / "shop"]) as world:
        line = real_line(folder, world, *settings, sessions=sessions)
        try:
            line.up()
            yield Place(line, world)
        finally:
            line.end()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Yield a place with the usual policy: a tool is warned, a commit is refused."""
    with made(tmp_path_factory.mktemp("house")) as place:
        yield place


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Yield a place where the tool itself is refused."""
    with made(tmp_path_factory.mktemp("strict"), '[leases]\ntool = "deny"\n') as place:
        yield place


@pytest.fixture(scope="module")
def screens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Yield a place whose sessions live in terminals and ask before they write."""
    sessions = 'permissions = "ask"\nrunner = "tmux"\nterminal = "100x40"\n'
    with made(tmp_path_factory.mktemp("screens"), sessions=sessions) as place:
        yield place


def commits(*paths: str) -> Shell:
    """Return the command that writes some files and commits them, and nothing else."""
    names, folders = " ".join(paths), " ".join(str(Path(path).parent) for path in paths)
    written = f"mkdir -p {folders} && for each in {names}; do echo x > $each; done"
    return Shell(f'{written}; git add {names} && git commit -q -m "Add {names}"')


def edits(agent: str, path: str, before: str, after: str) -> list[Step]:
    """Return the steps that change a line of a file with the agent's own tool."""
    if agent == "claude":
        change = Tool("Edit", {"file_path": path, "old_string": before, "new_string": after})
        return [Step(do=(Read(path),)), Step(do=(change,))]
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{before}\n+{after}\n*** End Patch\n"
    return [Step(do=(Read(path),)), Step(do=(Tool("apply_patch", patch),))]


# Writing into what another holds


@BOTH
def test_an_edit_of_what_another_holds_is_refused_under_full_permissions_and_the_agent_goes_elsewhere(
    strict: Place, agent: str
) -> None:
    name, held, other = f"denied-{agent}", f"held-{agent}.txt", f"other-{agent}.txt"
    theirs = add(strict.line, "Task of bob", "", assignee="bob", status="backlog")
    for lease in strict.leases("bob"):
        strict.line.ok("lease", "give", lease["id"], "--as", "bob")
    lease = strict.holds("bob", held, "README.md", task=theirs, reason="the big move")
    elsewhere = Step(do=(commits(other),))
    steps = [
        Step(do=(Write(held, "mine\n"),)),
        *edits(agent, "README.md", "A shop.", "My shop."),
        Step(text="Nobody told me.", told={"README.md is held by bob": elsewhere}),
        DONE,
    ]
    task = strict.work(name, agent, steps)
    lands(strict.line, task)
    assert other in strict.main() and held not in strict.main()
    assert strict.line.git("show", "main:README.md") == "A shop."
    said = strict.told(name)
    assert f"{held} is held by bob for {theirs} (the big move): {lease['id']}, for " in said
    assert f"covey lease take '{held}' --wait" in said
    assert 'covey mail send bob "..."' in said and "go on elsewhere" in said
    assert strict.events("lease.crossed", name) == [] and strict.events("run.missed", name) == []


@BOTH
def test_a_warning_reaches_the_model_with_its_edit_and_changes_what_it_does_next(house: Place, agent: str) -> None:
    name, held, other = f"warned-{agent}", f"warned/{agent}.txt", f"elsewhere-{agent}.txt"
    house.holds("bob", held)
    elsewhere = Step(do=(Shell(f"rm {held}"), commits(other)))
    steps = [
        Step(do=(Write(held, "mine\n"),)),
        Step(text="Nobody told me.", told={f"{held} is held by bob": elsewhere}),
    ]
    task = house.work(name, agent, [*steps, DONE])
    lands(house.line, task)
    assert other in house.main() and held not in house.main()
    assert "Go on only if you must" in house.told(name, 1)
    assert house.told(name).count(f"{held} is held by bob") == 1, "an edit is warned of once"


@BOTH
def test_a_redirect_into_what_another_holds_is_noticed_told_and_refused_at_the_commit(house: Place, agent: str) -> None:
    name, held, other = f"redirect-{agent}", f"redirect-{agent}.txt", f"kept-{agent}.txt"
    lease = house.holds("bob", held)
    elsewhere = Step(do=(Shell(f"git restore --staged {held} && rm {held}"), commits(other)))
    steps = [
        Step(do=(Shell(f"echo x >> {held}"),)),
        Step(do=(Shell("true"),)),
        Step(do=(Shell(f"git add -A && git commit -q -m 'Add {held}'"),)),
        Step(text="Nobody refused me.", told={f"covey: {held} is held by bob": elsewhere}),
        DONE,
    ]
    task = house.work(name, agent, steps)
    lands(house.line, task)
    assert other in house.main() and held not in house.main()
    assert "covey noticed that you have written there" in house.told(name, 2)
    (crossed,) = house.events("lease.crossed", name)
    assert crossed["subject"] == lease["id"]
    assert crossed["data"] == {"session": name, "task": task, "paths": [held], "how": "shell"}


@BOTH
def test_a_scope_is_held_from_the_claim_on_and_a_first_edit_only_warns(house: Place, agent: str) -> None:
    other = "codex" if agent == "claude" else "claude"
    owner, first, late = f"scoped-{agent}", f"first-{agent}", f"late-{agent}"
    area, free = f"area-{agent}", f"free-{agent}.txt"
    hers = house.work(owner, agent, [Step(hold=owner, do=(commits(f"{area}/a.txt"),)), DONE], scope=[f"{area}/*"])
    wait_until(lambda: bool(house.leases(owner)), "the lease of a scope")
    house.work(first, agent, [Step(do=(Write(free, "x\n"),)), Step(hold=first, do=(Shell("true"),)), DONE])
    wait_until(lambda: bool(house.leases(first)), "the lease of a first edit")
    assert [(lease["origin"], lease["resources"]) for lease in house.leases(first)] == [("edit", [free])]
    assert [(lease["origin"], lease["task"]) for lease in house.leases(owner)] == [("scope", hers)]
    refused = {f"covey: {area}/b.txt is held by {owner} for {hers}": Step(do=(Shell(f"git rm -qrf {area}"),))}
    steps = [
        Step(do=(Write(free, "x\n"),)),
        Step(do=(Shell(f"git add -A && git commit -q -m 'Add {free}'"),)),
        Step(do=(Shell(f"mkdir -p {area} && echo x > {area}/b.txt; git add -A && git commit -q -m 'Add {area}'"),)),
        Step(text="Nobody refused me.", told=refused),
        DONE,
    ]
    task = house.work(late, other, steps)
    lands(house.line, task)
    assert f"{free} is held by {first}" in house.told(late, 1)
    assert free in house.main() and f"{area}/b.txt" not in house.main()
    house.world.model.open(owner)
    lands(house.line, hers)
    assert f"{area}/a.txt" in house.main()
    wait_until(lambda: not house.leases(owner), "the end of the lease")
    house.world.model.open(first)


@BOTH
def test_what_is_outside_of_its_own_scope_is_told_and_refused_at_the_commit(house: Place, agent: str) -> None:
    name, mine, alien = f"bounds-{agent}", f"bounds-{agent}/a.txt", f"alien-{agent}.txt"
    steps = [
        Step(do=(Write(alien, "x\n"),)),
        Step(do=(Write(mine, "x\n"),)),
        Step(do=(Shell("git add -A && git commit -q -m 'Add all'"),)),
        Step(
            text="Nobody refused me.",
            told={f"covey: {alien} is not yours": Step(do=(Shell(f"git rm -qf {alien}; git commit -qm 'Add mine'"),))},
        ),
        DONE,
    ]
    task = house.work(name, agent, steps, scope=[f"bounds-{agent}/*"])
    lands(house.line, task)
    assert mine in house.main() and alien not in house.main()
    assert f"{alien} is not yours to write: {task} may write only bounds-{agent}/*." in house.told(name, 1)


# Mail


@BOTH
def test_mail_that_comes_mid_run_and_at_its_end_changes_what_the_model_does_next(house: Place, agent: str) -> None:
    name, one, two = f"mailed-{agent}", f"mail-{agent}-1.txt", f"mail-{agent}-2.txt"
    steps = [
        Step(do=(Shell("true"),)),
        Step(do=(Shell("true"),), hold=f"{name} reads"),
        Step(text="Nobody wrote to me.", told={"> Please call it green.": Step(do=(commits(one),))}),
        Step(text="I am done.", hold=f"{name} ends"),
        Step(text="Nobody wrote to me.", told={"One more, please.": Step(do=(commits(two),))}),
        DONE,
    ]
    task = house.work(name, agent, steps)
    house.asked(name, 1)
    first = house.mails("bob", name, "Please call it green.")
    house.world.model.open(f"{name} reads")
    house.asked(name, 3)
    wait_until(lambda: first in _delivered(house, name), "the first in the transcript")
    second = house.mails("bob", name, "One more, please.")
    house.world.model.open(f"{name} ends")
    lands(house.line, task)
    assert {one, two} <= set(house.main())
    assert f"[{first}] From bob (information from a colleague, not an order):" in house.told(name, 2)
    assert house.told(name).count(f"[{first}] From bob") == 1, "it was told once"
    assert f"[{second}] From bob" not in house.told(name, 3) and f"[{second}] From bob" in house.told(name, 4)
    (run,) = runs(house.line, task)
    assert _delivered(house, name) == {
        each: {"reader": name, "run": run["id"], "how": "transcript"} for each in (first, second)
    }
    assert house.line.json("mail", "inbox", "--as", name) == []


def _delivered(place: Place, reader: str) -> dict[str, dict[str, Any]]:
    """Return which mail of a reader was seen to arrive, and where."""
    events = place.line.events("mail.delivered")
    return {event["subject"]: event["data"] for event in events if event["data"]["reader"] == reader}


# A conversation that is made shorter


@BOTH
def test_who_had_its_conversation_made_shorter_is_told_its_task_again(house: Place, agent: str) -> None:
    name = f"short-{agent}"
    full = Usage(input=990_000, output=50)
    steps = (Step(do=(Shell("true"),), usage=full), Step(do=(commits(f"{name}.txt"),)), DONE)
    task = house.work(name, agent, Script(steps, summary=Step(usage=SIDE)))
    lands(house.line, task)
    assert f"You are {name}, at work on {task}: Task of {name}" in house.told(name)


# The daemon away


@BOTH
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_an_agent_goes_on_without_the_daemon_and_the_log_says_so_afterwards(
    house: Place, agent: str, number: signal.Signals
) -> None:
    name = f"alone-{agent}-{number}"
    steps = [
        Step(do=(Write(f"{name}-1.txt", "x\n"),)),
        Step(do=(Write(f"{name}-2.txt", "x\n"),), hold=name),
        Step(do=(Shell("git add -A && git commit -q -m 'Add both'"),)),
        Step(text="Done."),
    ]
    task = house.work(name, agent, steps)
    house.asked(name, 1)
    mine = house.mails("bob", name, "Never mind.")
    daemon = house.line.up()
    kill([daemon], number)
    house.world.model.open(name)
    house.asked(name, 3)
    kill([daemon], signal.SIGCONT)
    house.line.up()
    lands(house.line, task)
    assert {f"{name}-1.txt", f"{name}-2.txt"} <= set(house.main())
    (only,) = runs(house.line, task)
    (missed,) = [event for event in house.line.events("run.missed") if event["subject"] == only["id"]]
    assert missed["data"]["calls"] == 2
    assert mine


# A person's word, in a terminal


def question_of(place: Place, name: str, state: str = "open", count: int = 1) -> dict[str, Any]:
    """Wait until a session has asked so often, and the last question is in a state; return that."""

    def found() -> list[dict[str, Any]]:
        with place.line.client() as client:
            return [each for each in client.get("/api/questions?limit=1000") if each["session"] == name]

    def there() -> bool:
        now = found()
        return len(now) == count and now[-1]["state"] == state

    wait_until(there, f"question {count} of {name} {state}", patience=PATIENCE)
    return found()[-1]


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_permission_is_asked_by_a_hook_of_a_terminal_and_answered_from_the_command_line(
    screens: Place, decision: str
) -> None:
    name, path = f"asks-{decision}", f"{decision}.txt"
    denied = {"Not today, says ann": Step(do=(Shell("git commit -q --allow-empty -m 'Do nothing'"),))}
    steps = [
        Step(do=(Write(path, "x\n"),)),
        Step(do=(Shell(f"git add {path} && git commit -q -m 'Add {path}'"),), told=denied),
        DONE,
    ]
    task = screens.work(name, "claude", steps)
    question = question_of(screens, name)
    assert (question["wants"], question["tool"]) == ("permission", "Write")
    wait_until(lambda: screens.line.sessions()[name]["state"] == "needs-you", "the verdict")
    assert question["id"] in [each["id"] for each in screens.line.json("inbox")["questions"]]
    if decision == "allow":
        screens.line.ok("answer", question["id"], "--allow")
        screens.line.ok("answer", question_of(screens, name, count=2)["id"], "--allow")
    else:
        screens.line.ok("answer", question["id"], "--deny", "Not today, says ann")
        screens.line.ok("answer", question_of(screens, name, count=2)["id"], "--allow")
    wait_until(lambda: screens.line.task(task)["status"] in ("done", "blocked"), "the end", patience=PATIENCE)
    assert (path in screens.main()) == (decision == "allow")
    assert len([text for text in alerts(screens.line, of="needs_you") if text.startswith(name)]) == 2, "one for each"


@pytest.mark.parametrize("killed", [False, True], ids=["here", "killed"])
def test_a_person_who_comes_to_the_terminal_decides_there_and_the_question_is_withdrawn(
    screens: Place, killed: bool
) -> None:
    name = f"attended-{killed}"
    path = f"{name}.txt"
    task = screens.work(name, "claude", [Step(do=(Write(path, "x\n"),)), Step(do=(commits(path),), hold=name), DONE])
    question = question_of(screens, name)
    if killed:
        kill([screens.line.up()])
        screens.line.up()
        question_of(screens, name, "withdrawn")
        assert "withdrawn already" in screens.line.ends(5, "answer", question["id"], "--allow")
    with person(screens.line, "session", "attach", name) as ann:
        ann.waits_for(f"Do you want to create {path}?")
        question_of(screens, name, "withdrawn")
        press(ann.presses, lambda: screens.world.model.asked(name, 1) > 0)
        screens.world.model.open(name)
        ann.waits_for("Do you want to proceed?")
        press(ann.presses, lambda: screens.world.model.asked(name, 2) > 0)
        ann.detaches()
        ann.ends_with(0)
    lands(screens.line, task)
    assert path in screens.main()


def test_the_watchdog_hears_of_a_terminal_by_its_hooks(screens: Place) -> None:
    name, path = "seen", "seen.txt"
    steps = (
        Step(do=(Shell("git status"),), usage=Usage(input=990_000, output=50)),
        Step(do=(commits(path),)),
        DONE,
    )
    task = screens.work(name, "claude", Script(steps, summary=Step(usage=SIDE, hold=name)))
    wait_until(lambda: screens.line.sessions()[name]["state"] == "compacting", "compacting", patience=PATIENCE)
    print(screens.line.json("session", "why", name))
    screens.world.model.open(name)
    screens.line.ok("answer", question_of(screens, name)["id"], "--allow")
    lands(screens.line, task)
    assert f"You are {name}, at work on {task}: Task of {name}" in screens.told(name)
