"""What real agents may spend and what they spent, as the model server counted it, however their runs end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.model.environment import CODEX_MODEL, GEMINI_MODEL, World, program, scripted_world
from tests.model.script import SCRIPTED_PRICE, Shell, Step, Usage, committing
from tests.model.server import PRICES
from tests.worlds.projects import Line, kill
from tests.worlds.real_projects import add, at_once, begin, lands, outcomes, real_line, runs, wait_for_ends
from tests.worlds.serving import wait_until

SLOW = 240
"""Seconds in which several real agents come to their end on a busy machine."""
MODELS = {
    "claude": "claude-opus-5-5",
    "codex": CODEX_MODEL,
    "gemini": GEMINI_MODEL,
    "opencode": "scripted",
    "aider": "claude-sonnet-4-5",
}
PRICED = {**PRICES, CODEX_MODEL: SCRIPTED_PRICE, GEMINI_MODEL: SCRIPTED_PRICE}
LIST = "".join(
    f'[prices."{model}"]\ninput = 2.0\noutput = 10.0\ncache_read = 0.2\n' for model in (CODEX_MODEL, GEMINI_MODEL)
)
SMALL, LARGE, CACHED, WORDY = Usage(1000, 50), Usage(40_000, 900), Usage(800, 200, 30_000), Usage(300, 6000)
BUDGETS = [(2.5, SMALL), (0.5, LARGE)]
"""How many calls a budget is worth, and what one call takes."""
MORE_BUDGETS = [(1.5, SMALL), (3.5, LARGE), (1.2, CACHED), (4.5, CACHED), (2.5, WORDY), (0.9, WORDY), (5.5, SMALL),
                (2.9, LARGE)]  # fmt: skip
ALL = [*BUDGETS, *MORE_BUDGETS]
NEVER = "never"


@dataclass(frozen=True)
class Row:
    """One run, or the runs of one task, beside what the model server counted."""

    agent: str
    end: str
    call: Usage
    allowed: float | None
    calls: int
    charged: float
    counted: float
    tokens: tuple[int, int, int]
    known: tuple[int, int, int]

    @property
    def is_right(self) -> bool:
        """Say whether covey counted what the server did."""
        return self.tokens == self.known and abs(self.counted - self.charged) < 1e-6

    def __str__(self) -> str:
        allowed = "-" if self.allowed is None else f"{self.allowed:.4f}"
        over = "" if self.allowed is None or self.charged <= self.allowed else f"{self.charged - self.allowed:.4f}"
        size = f"{self.call.input}/{self.call.output}/{self.call.cache_read}"
        same = "yes" if self.tokens == self.known else f"{sum(self.known) - sum(self.tokens):+}"
        return (
            f"{self.agent:9} {self.end:10} {size:14} {allowed:>8} {self.calls:5} {self.charged:8.4f} {over:>8}"
            f" {self.counted:8.4f} {sum(self.tokens):8} {sum(self.known):8}  {same}"
        )


HEAD = "agent     end        call           allowed calls    spent     over  covey's   tokens  covey's  same"


@dataclass
class Ledger:
    """A project with one session, and all rows of it."""

    world: World
    line: Line
    agent: str
    rows: list[Row]

    def price(self, usage: Usage) -> float:
        """Return what a call costs."""
        return self.world.model.price(MODELS[self.agent]).of(usage)

    def wait_for_cost(self, script: str) -> None:
        """Wait until the page shows that a task at work has cost what the server counted."""

        def shown() -> float:
            with self.line.client() as client:
                (session,) = client.get("/api/live")["sessions"]
                return float(session["cost"])

        wait_until(lambda: abs(shown() - self.world.model.charged(script=script).cost) < 1e-6, "its cost at work")

    def row(self, task: str, script: str, end: str, call: Usage, allowed: float | None) -> Row:
        """Compare what covey says of a task with what the server counted for its script."""
        with self.line.client() as client:
            total = client.get(f"/api/costs?by=run&task={task}")["total"]
        charged = self.world.model.charged(script=script)
        answered = [each for each in self.world.model.requests if (each.script, each.outcome) == (script, "answered")]
        row = Row(
            self.agent,
            end,
            call,
            allowed,
            len(answered),
            charged.cost,
            total["cost"],
            (charged.usage.input, charged.usage.output, charged.usage.cache_read),
            (total["input"], total["output"], total["cache_read"]),
        )
        assert total["unpriced"] == 0, total
        self.rows.append(row)
        return row

    def ended(self, number: int, worth: float, call: Usage) -> None:
        """Let a run use up its budget: it is ended before the call that would pass it, of which nothing is answered."""
        allowed, name = worth * self.price(call), f"{self.agent}-{number}"
        fits = max(int(worth), 1)
        # Never the same twice: Gemini ends by itself when it sees that.
        works = [Step(do=(Shell(f"git log -{number}"),), usage=call) for number in range(1, fits + 1)]
        steps = [*works, *[Step(text="Too much.", hold=NEVER)] * 9]
        task = add(self.line, name, self.world.model.add(name, steps), budget=round(allowed, 9))
        blocked = self.line.wait_for(task, "blocked")
        row = self.row(task, name, "ended", call, allowed)
        assert f"Its branch is covey/{task}." in blocked["reason"]
        assert outcomes(self.line, task) in (["stopped"], ["put-off"])
        assert row.charged <= max(allowed, self.price(call)) + 1e-9, row
        assert row.is_right, row

    def passed(self, number: int, call: Usage) -> None:
        """Let the last call of finished and committed work pass the budget: the work is handed in."""
        allowed, name = 2.5 * self.price(call), f"{self.agent}-last-{number}"
        path = f"{name}.txt"
        last = replace(call, input=call.input * 2, output=call.output * 2, cache_read=call.cache_read * 2)
        steps = [replace(at_once(path), usage=call), Step(text="Done.", usage=last)]
        task = add(self.line, name, self.world.model.add(name, steps), budget=round(allowed, 9))
        lands(self.line, task)
        row = self.row(task, name, "last call", call, allowed)
        assert row.charged > allowed and outcomes(self.line, task) == ["handed-in"]
        assert row.is_right, row

    def finished(self, number: int, worth: float, call: Usage) -> None:
        """Let aider do its one message, whatever that costs; the words of its commit it does not count."""
        allowed, name = worth * self.price(call), f"{self.agent}-{number}"
        script = replace(
            committing(f"{name}.txt", "x\n"), steps=(committing(f"{name}.txt", "x\n", usage=call).steps[0],)
        )
        task = add(self.line, name, self.world.model.add(name, script), budget=round(allowed, 9))
        lands(self.line, task)
        row = self.row(task, name, "finished", call, allowed)
        assert row.calls == 2 and sum(row.known) == call.input + call.output + call.cache_read, row

    def _kill_agents(self) -> None:
        """Kill the programs of agents, of which there is one: a look at all processes can miss it."""
        found: list[int] = []

        def is_found() -> bool:
            found.extend(self.line.agents().values())
            return bool(found)

        wait_until(is_found, "the program of an agent")
        kill(found)

    def killed_and_stopped(self, call: Usage) -> None:
        """Kill a run at work, and stop the next one: each has made two calls."""
        name = f"{self.agent}-killed"
        works, waits = Step(do=(Shell("git status"),), usage=call), Step(text="Never.", hold=NEVER)
        held = replace(works, hold=name)
        task = add(self.line, name, self.world.model.add(name, [works, works, held, held, waits, waits]))
        wait_until(lambda: self.world.model.asked(name, 2) > 0, "its third call", patience=SLOW)
        self.wait_for_cost(name)
        before = len(runs(self.line))
        self._kill_agents()
        wait_for_ends(self.line, before)
        first = self.row(task, name, "killed", call, None)
        assert first.is_right, first
        self.world.model.open(name)
        wait_until(lambda: self.world.model.asked(name, 4) > 0, "its last call", patience=SLOW)
        self.wait_for_cost(name)
        self.line.ok("session", "stop", "ada")
        wait_for_ends(self.line, before + 1)
        both = self.row(task, name, "and stopped", call, None)
        assert both.calls > first.calls
        assert both.is_right, both


Make = Callable[..., Ledger]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Make]:
    """Return a function that makes a project for an agent, and print its table at the end."""
    made: list[Ledger] = []
    with scripted_world(tmp_path, prices=PRICED) as world:

        def make(agent: str, *settings: str) -> Ledger:
            models = f'[agents.gemini]\nmodel = "{GEMINI_MODEL}"\n' if agent == "gemini" else ""
            line = real_line(
                tmp_path, world, LIST, models, *settings, "[watch]\nbackoff = 0.2\nbackoff_most = 1\n", agent=agent
            )
            line.up()
            made.append(Ledger(world, line, agent, []))
            begin(line, "ada", agent)
            return made[-1]

        yield make
        for each in made:
            print("", HEAD, *each.rows, sep="\n")
            each.line.end()


QUICK = {"opencode": BUDGETS[:1], "aider": BUDGETS[1:]}
"""Of those that take their time to start, `make test` has only a part."""


def settle(ledger: Ledger, budgets: list[tuple[float, Usage]]) -> None:
    """Let an agent come to every end there is."""
    for number, (worth, call) in enumerate(budgets):
        if ledger.agent == "aider":
            ledger.finished(number, worth, call)
        else:
            ledger.ended(number, worth, call)
            if number % 2 == 0:
                ledger.passed(number, call)
    if ledger.agent != "aider":
        ledger.killed_and_stopped(budgets[-1][1])


@pytest.mark.parametrize("agent", MODELS)
def test_what_an_agent_spends_is_known_and_held_however_its_run_ends(agent: str, ledger: Make) -> None:
    settle(ledger(agent), QUICK.get(agent, BUDGETS))


@pytest.mark.soak
@pytest.mark.parametrize("agent", MODELS)
def test_ten_budgets_and_sizes_of_calls_are_held(agent: str, ledger: Make) -> None:
    settle(ledger(agent), ALL)


@pytest.mark.soak
def test_a_run_of_which_nobody_finds_what_it_spends_is_bounded_by_its_turns(tmp_path: Path, ledger: Make) -> None:
    elsewhere, mark = tmp_path / "elsewhere", tmp_path / "hide"
    codex = tmp_path / "codex"
    codex.write_text(f'#!/bin/sh\n[ ! -e {mark} ] || export CODEX_HOME={elsewhere}\nexec {program("codex")} "$@"\n')
    codex.chmod(0o755)
    known = ledger("codex", f'[agents.codex]\nenv = ["SCRIPTED_KEY"]\nmodel = "{CODEX_MODEL}"\nprogram = "{codex}"\n')
    known.ended(0, 2.5, SMALL)  # by which it is known what a call usually costs
    shutil.copytree(known.world.environment["CODEX_HOME"], elsewhere, ignore=shutil.ignore_patterns("sessions"))
    mark.touch()
    steps = [Step(do=(Shell("git status"),), usage=SMALL)] * 2 + [Step(text="Too much.", hold=NEVER)]
    script = known.world.model.add("hidden", steps)
    before = len(outcomes(known.line))
    task = add(known.line, "Hidden", script, budget=round(2.5 * known.price(SMALL), 9))
    wait_for_ends(known.line, before + 1)
    ended = runs(known.line, task)[0]
    assert ended["what"].startswith("The run spent about $0.005 of the $0.00625 that it was allowed.")
