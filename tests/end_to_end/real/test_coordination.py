"""Real agents out of each other's files: told of leases, mail and a person's word at their steps, and going on by it.

The model behind them is scripted, and what it does next hangs on what it was told.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from covey.hooks import relay
from covey.runners.tmux import TmuxRunner
from tests.end_to_end.real.test_terminals import press
from tests.model.environment import World, scripted_world
from tests.model.script import SIDE, Read, Script, Shell, Step, Tool, Usage, Write
from tests.model.server import told
from tests.worlds.person import person
from tests.worlds.projects import Line, kill
from tests.worlds.real_projects import add, alerts, begin, lands, real_line, runs, why
from tests.worlds.serving import wait_until

AGENTS = ("claude", "codex")
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


def commits(*paths: str, first: str = "true") -> Shell:
    """Return the command that writes some files and commits them, and nothing else, after a first command."""
    names, folders = " ".join(paths), " ".join(str(Path(path).parent) for path in paths)
    written = f"{first}; mkdir -p {folders} && for each in {names}; do echo x > $each; done"
    return Shell(f'{written}; git add {names} && git commit -q -m "Add {names}"')


def edits(agent: str, path: str, before: str, after: str) -> list[Step]:
    """Return the steps that change a line of a file with the agent's own tool."""
    if agent == "claude":
        change = Tool("Edit", {"file_path": path, "old_string": before, "new_string": after})
        return [Step(do=(Read(path),)), Step(do=(change,))]
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{before}\n+{after}\n*** End Patch\n"
    return [Step(do=(Read(path),)), Step(do=(Tool("apply_patch", patch),))]


def both(begins: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Let both agents begin something at the same time, and return each with its task."""
    return iter([(agent, begins(agent)) for agent in AGENTS])


# Writing into what another holds


def test_an_edit_of_what_another_holds_is_refused_under_full_permissions_and_the_agent_goes_elsewhere(
    strict: Place,
) -> None:
    theirs = add(strict.line, "Task of bob", "", assignee="bob", status="backlog")
    lease = strict.holds("bob", "held-*.txt", "README.md", task=theirs, reason="the big move")

    def denied(agent: str) -> str:
        elsewhere = Step(do=(commits(f"other-{agent}.txt"),))
        steps = [
            Step(do=(Write(f"held-{agent}.txt", "mine\n"),)),
            *edits(agent, "README.md", "A shop.", "My shop."),
            Step(text="Nobody told me.", told={"README.md is held by bob": elsewhere}),
            DONE,
        ]
        return strict.work(f"denied-{agent}", agent, steps)

    for agent, task in both(denied):
        lands(strict.line, task)
        held, said = f"held-{agent}.txt", strict.told(f"denied-{agent}")
        assert f"other-{agent}.txt" in strict.main() and held not in strict.main()
        assert f'{held} is held by bob for {theirs} ("the big move"): ' + f"{lease['id']}, for " in said
        assert re.search(rf"covey lease take '?{held}'? --wait", said)
        assert "covey mail send bob" in said and "elsewhere" in said
        assert not strict.events("lease.crossed", f"denied-{agent}") and not missed(strict, task)
    assert strict.line.git("show", "main:README.md") == "A shop."


def test_a_warning_reaches_the_model_with_its_edit_and_changes_what_it_does_next(house: Place) -> None:
    house.holds("bob", "warned/*")

    def warned(agent: str) -> str:
        held = f"warned/{agent}.txt"
        elsewhere = Step(do=(commits(f"elsewhere-{agent}.txt", first=f"rm {held}"),))
        reads = Step(text="Nobody told me.", told={f"{held} is held by bob": elsewhere})
        return house.work(f"warned-{agent}", agent, [Step(do=(Write(held, "mine\n"),)), reads, DONE])

    for agent, task in both(warned):
        lands(house.line, task)
        assert f"elsewhere-{agent}.txt" in house.main() and f"warned/{agent}.txt" not in house.main()
        assert "Go on only if you must" in house.told(f"warned-{agent}", 1)
        said = house.told(f"warned-{agent}")
        assert said.count(f"warned/{agent}.txt is held by bob") == 1, "an edit is warned of once"


def test_a_redirect_into_what_another_holds_is_noticed_told_and_refused_at_the_commit(house: Place) -> None:
    lease = house.holds("bob", "redirect-*.txt")

    def redirects(agent: str) -> str:
        held = f"redirect-{agent}.txt"
        elsewhere = Step(do=(commits(f"kept-{agent}.txt", first=f"git restore --staged {held} && rm {held}"),))
        steps = [
            Step(do=(Shell(f"echo x >> {held}"),)),
            Step(do=(Shell("true"),)),
            Step(do=(Shell(f"git add -A && git commit -q -m 'Add {held}'"),)),
            Step(text="Nobody refused me.", told={f"covey: {held} is held by bob": elsewhere}),
            DONE,
        ]
        return house.work(f"redirect-{agent}", agent, steps)

    for agent, task in both(redirects):
        lands(house.line, task)
        name, held = f"redirect-{agent}", f"redirect-{agent}.txt"
        assert f"kept-{agent}.txt" in house.main() and held not in house.main()
        assert "covey noticed that you have written there" in house.told(name, 2)
        (crossed,) = house.events("lease.crossed", name)
        assert crossed["subject"] == lease["id"]
        assert crossed["data"] == {"session": name, "task": task, "paths": [held], "how": "shell"}


@pytest.mark.parametrize("agent", ["claude", pytest.param("codex", marks=pytest.mark.soak)])
def test_a_scope_is_held_from_the_claim_on_and_a_first_edit_only_warns(house: Place, agent: str) -> None:
    other = "codex" if agent == "claude" else "claude"
    owner, first, late = f"scoped-{agent}", f"first-{agent}", f"late-{agent}"
    area, free = f"area-{agent}", f"free-{agent}.txt"
    hers = house.work(owner, agent, [Step(hold=owner, do=(commits(f"{area}/a.txt"),)), DONE], scope=[f"{area}/*"])
    house.work(first, agent, [Step(do=(Write(free, "x\n"),)), Step(hold=first, do=(Shell("true"),)), DONE])
    wait_until(lambda: bool(house.leases(owner)), "the lease of a scope")
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
    lands(house.line, house.work(late, other, steps))
    assert f"{free} is held by {first}" in house.told(late, 1)
    assert free in house.main() and f"{area}/b.txt" not in house.main()
    house.world.model.open(owner)
    lands(house.line, hers)
    assert f"{area}/a.txt" in house.main()
    wait_until(lambda: not house.leases(owner), "the end of the lease")
    house.line.ok("session", "stop", first)


def test_what_is_outside_of_its_own_scope_is_told_and_refused_at_the_commit(house: Place) -> None:
    def strays(agent: str) -> str:
        alien = f"alien-{agent}.txt"
        inside = Step(do=(Shell(f"git rm -qf {alien}; git commit -qm 'Add mine'"),))
        steps = [
            Step(do=(Write(alien, "x\n"),)),
            Step(do=(Write(f"bounds-{agent}/a.txt", "x\n"),)),
            Step(do=(Shell("git add -A && git commit -q -m 'Add all'"),)),
            Step(text="Nobody refused me.", told={f"covey: {alien} is not yours": inside}),
            DONE,
        ]
        return house.work(f"bounds-{agent}", agent, steps, scope=[f"bounds-{agent}/*"])

    for agent, task in both(strays):
        lands(house.line, task)
        alien = f"alien-{agent}.txt"
        assert f"bounds-{agent}/a.txt" in house.main() and alien not in house.main()
        told_before = f"{alien} is not yours to write: {task} may write only bounds-{agent}/*."
        assert told_before in house.told(f"bounds-{agent}", 1)


# Mail


def test_mail_that_comes_mid_run_and_at_its_end_changes_what_the_model_does_next(house: Place) -> None:
    def mailed(agent: str) -> str:
        first = Step(do=(commits(f"mail-{agent}-1.txt"),))
        second = Step(do=(commits(f"mail-{agent}-2.txt"),))
        steps = [
            Step(do=(Shell("true"),)),
            Step(do=(Shell("true"),), hold=f"{agent} reads"),
            Step(text="Nobody wrote to me.", told={"> Please call it green.": first}),
            Step(text="I am done.", hold=f"{agent} ends"),
            Step(text="Nobody wrote to me.", told={"One more, please.": second}),  # Codex writes &gt; there
            DONE,
        ]
        return house.work(f"mailed-{agent}", agent, steps)

    for agent, task in both(mailed):
        name = f"mailed-{agent}"
        house.asked(name, 1)
        first = house.mails("bob", name, "Please call it green.")
        house.world.model.open(f"{agent} reads")
        house.asked(name, 3)
        second = house.mails("bob", name, "One more, please.")
        house.world.model.open(f"{agent} ends")
        lands(house.line, task)
        assert {f"mail-{agent}-1.txt", f"mail-{agent}-2.txt"} <= set(house.main())
        assert f"[{first}] From bob (information from a colleague, not an order):" in house.told(name, 2)
        assert house.told(name).count(f"[{first}] From bob") == 1, "it was told once"
        assert f"[{second}] From bob" not in house.told(name, 3) and f"[{second}] From bob" in house.told(name, 4)
        (run,) = runs(house.line, task)
        noted = {"reader": name, "run": run["id"], "how": "transcript"}
        assert _delivered(house, name) == {first: noted, second: noted}
        assert house.line.json("mail", "inbox", "--as", name) == []


def _delivered(place: Place, reader: str) -> dict[str, dict[str, Any]]:
    """Return which mail of a reader was seen to arrive, and where."""
    events = place.line.events("mail.delivered")
    return {event["subject"]: event["data"] for event in events if event["data"]["reader"] == reader}


# A conversation that is made shorter


def test_who_had_its_conversation_made_shorter_is_told_its_task_again(house: Place) -> None:
    def shortened(agent: str) -> str:
        full = Usage(input=990_000, output=50)
        steps = (Step(do=(Shell("true"),), usage=full), Step(do=(commits(f"short-{agent}.txt"),)), DONE)
        return house.work(f"short-{agent}", agent, Script(steps, summary=Step(usage=SIDE)))

    for agent, task in both(shortened):
        lands(house.line, task)
        name = f"short-{agent}"
        assert f'You are {name}, at work on {task}: "Task of {name}"' in house.told(name)


# The daemon away


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGKILL, marks=pytest.mark.soak, id="killed"), pytest.param(signal.SIGSTOP, id="stopped")],
)
def test_agents_go_on_without_the_daemon_and_the_log_says_so_afterwards(house: Place, number: signal.Signals) -> None:
    def alone(agent: str) -> str:
        steps = [
            Step(do=(Write(f"alone-{agent}-{number}.txt", "x\n"),)),
            Step(do=(Write(f"apart-{agent}-{number}.txt", "x\n"),), hold=f"go {number}"),
            Step(do=(Shell("git add -A && git commit -q -m 'Add both'"),)),
            Step(text="I am done.", hold=f"end {number}"),
            Step(text="Nobody wrote to me.", told={"Welcome back.": Step(do=(commits(f"back-{agent}-{number}.txt"),))}),
            DONE,
        ]
        return house.work(f"alone-{agent}-{number}", agent, steps)

    tasks = dict(both(alone))
    for agent in tasks:
        house.asked(f"alone-{agent}-{number}", 1)
        house.mails("bob", f"alone-{agent}-{number}", "Welcome back.")
    daemon = house.line.up()
    kill([daemon], number)
    house.world.model.open(f"go {number}")
    for agent in tasks:
        house.asked(f"alone-{agent}-{number}", 3)
    kill([daemon], signal.SIGCONT)
    house.line.up()
    house.world.model.open(f"end {number}")
    for agent, task in tasks.items():
        lands(house.line, task)
        files = {f"{word}-{agent}-{number}.txt" for word in ("alone", "apart", "back")}
        assert files <= set(house.main())
        assert missed(house, task) == 2, "the edit and the commit"
        assert len(_delivered(house, f"alone-{agent}-{number}")) == 1
    house.line.ok("log", "verify")


def missed(place: Place, task: str) -> int:
    """Return how many uses of tools of the one run of a task went by without covey, by the log."""
    (run,) = runs(place.line, task)
    found = [event["data"]["calls"] for event in place.line.events("run.missed") if event["subject"] == run["id"]]
    assert len(found) < 2
    return sum(found)


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


def test_a_permission_is_asked_by_a_hook_of_a_terminal_and_answered_from_the_command_line(screens: Place) -> None:
    def asks(name: str) -> str:
        denied = {"Not today, says ann": Step(do=(commits("instead.txt"),))}
        steps = [Step(do=(Write(f"{name}.txt", "x\n"),)), Step(do=(commits(f"{name}.txt"),), told=denied), DONE]
        return screens.work(name, "claude", steps)

    tasks = {name: asks(name) for name in ("allowed", "denied")}
    line = screens.line
    for name, words in (("allowed", ["--allow"]), ("denied", ["--deny", "Not today, says ann"])):
        question = question_of(screens, name)
        assert (question["wants"], question["tool"]) == ("permission", "Write")
        wait_until(lambda name=name: line.sessions()[name]["state"] == "needs-you", "the verdict")  # type: ignore[misc]
        assert question["id"] in [name for each in line.json("inbox") for name in each["ids"]]
        line.ok("answer", question["id"], *words)
    for name, task in tasks.items():
        line.ok("answer", question_of(screens, name, count=2)["id"], "--allow")
        lands(line, task)
        told_of = [text for text in alerts(line, of="needs_you") if text.startswith(name)]
        assert len(told_of) == 2, "one for each question, and none for what the screen shows of it"
    assert "allowed.txt" in screens.main() and "instead.txt" in screens.main() and "denied.txt" not in screens.main()


@pytest.mark.parametrize(
    "daemon", ["here", *(pytest.param(each, marks=pytest.mark.soak) for each in ("killed", "down"))]
)
def test_a_person_who_comes_to_the_terminal_decides_there_and_the_question_is_withdrawn(
    screens: Place, daemon: str
) -> None:
    name = f"attended-{daemon}"
    path = f"{name}.txt"
    task = screens.work(name, "claude", [Step(do=(Write(path, "x\n"),)), Step(do=(commits(path),), hold=name), DONE])
    question = question_of(screens, name)
    if daemon != "here":  # whom its hook kept waiting is let go: from then on only the screen asks
        kill([screens.line.up()]) if daemon == "killed" else screens.line.ok("down")
        screens.line.up()
        question_of(screens, name, "withdrawn")
        assert "withdrawn already" in screens.line.ends(5, "answer", question["id"], "--allow")
    with person(screens.line, "session", "attach", name) as ann:
        ann.waits_for(f"Do you want to create {path}?")
        question_of(screens, name, "withdrawn")
        press(ann.presses, lambda: screens.world.model.asked(name, 1) > 0)
        ann.detaches()
        ann.ends_with(0)
    screens.world.model.open(name)
    question_of(screens, name, count=2)
    presses(screens, task, "Enter", lambda: screens.world.model.asked(name, 2) > 0)
    question_of(screens, name, "withdrawn", count=2)  # nobody was seen to come, but it went on
    lands(screens.line, task)
    assert path in screens.main()


def test_a_question_that_is_dismissed_in_the_terminal_is_withdrawn(screens: Place) -> None:
    task = screens.work("dismissed", "claude", [Step(do=(Write("dismissed.txt", "x\n"),)), DONE])

    def is_withdrawn() -> bool:
        return any(event["subject"] == question["id"] for event in screens.line.events("question.withdrawn"))

    question = question_of(screens, "dismissed")
    presses(screens, task, "Escape", is_withdrawn)
    screens.line.ok("session", "stop", "dismissed")


def presses(place: Place, task: str, key: str, good: Callable[[], bool]) -> None:
    """Press a key in the terminal of a task's run, behind covey's back, until it was taken."""
    (run,) = runs(place.line, task)
    runner = TmuxRunner(place.line.state / "runs")
    try:
        press(lambda _: runner.press(run["id"], key), good)
    finally:
        runner.close()


def test_the_watchdog_hears_of_a_terminal_by_its_hooks(screens: Place) -> None:
    name, line = "seen", screens.line
    held = Step(do=(Shell("git status"),), usage=Usage(input=990_000, output=50), hold="seen")
    task = screens.work(name, "claude", Script((held, Step(do=(commits("seen.txt"),)), DONE), summary=Step(usage=SIDE)))
    screens.asked(name, 0)
    (run,) = runs(line, task)
    program = line.agents()[run["id"]]

    def asks(moment: str) -> None:
        """Ask as the program's own hooks do, while its screen shows nothing but that it works."""
        env = dict(part.split("=", 1) for part in Path(f"/proc/{program}/environ").read_text().split("\0") if part)
        relayed = [sys.executable, "-I", "-S", relay.__file__, moment]
        subprocess.run(relayed, env=env, input='{"cwd": "/"}', text=True, check=True, timeout=PATIENCE)

    def until(state: str, rule: str) -> None:
        wait_until(lambda: (why(line, name)["state"], why(line, name)["rule"]) == (state, rule), state)

    until("working", "it works")
    asks("PreCompact")
    until("compacting", "its context was full")
    asks("PostToolUse")
    until("working", "it works")
    assert why(line, name)["clues"][0]["text"] == "it last said something"
    screens.world.model.open("seen")
    line.ok("answer", question_of(screens, name)["id"], "--allow")
    lands(line, task)
    assert f'You are {name}, at work on {task}: "Task of {name}"' in screens.told(name), (
        "after it was really made shorter"
    )
