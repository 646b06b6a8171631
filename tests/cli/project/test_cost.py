"""What people see of what the agents cost."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from covey.app.app import App
from covey.app.context import Call, Context, Principal
from covey.app.costs import costs
from covey.app.fleet.heartbeats import Pulses
from covey.cli.fleet.report import Report
from covey.config import Config
from covey.core import nouns
from covey.core.costs.spending import Used
from covey.core.figures import amount, money
from covey.core.fleet import runs
from covey.core.fleet.launches import Launch
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Usage
from covey.git.project import find
from covey.runners.process import ProcessRunner
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx
from tests.worlds.boards import ManualClock
from tests.worlds.serving import wait_until
from tests.worlds.shell import Shell

TODAY = costs.day_of(time.time())
OPUS, LOCAL = "claude-opus-5-5", "local/llama"


def spend(
    shell: Shell, session: str, task: str, used: dict[str, Used], day: str = TODAY, *, agent: str = "claude"
) -> Run:
    """Let a run of a session spend something on a task."""
    store = SqliteStore(find(Path(shell.folder)).database)
    app = App(store, Context(Config(), Pulses(ManualClock(), store.place), "shop", has_daemon=True))

    def write(tx: Tx) -> Run:
        event = runs.Begun(session=session, task=task, fence=1, agent=agent)
        run = nouns.first(runs.Run, f"run-{tx.next_seq}", tx.next_seq, event, tx.now)
        tx.insert(run)
        tx.append(session, run.id, event, run)
        costs.count(Call(tx, Principal(), app.context), run, used, day)
        return run

    try:
        return store.write(write)
    finally:
        store.close()


@pytest.mark.parametrize(
    ("dollars", "shown"),
    [(0.0, "$0.00"), (0.015, "$0.015"), (0.5, "$0.50"), (0.12345, "$0.123"), (0.000123, "$0.000123"), (0.9999, "$1.00"),
     (12.3, "$12.30"), (1234.5, "$1,234.50"), (2.0, "$2.00")],
)  # fmt: skip
def test_money_has_as_many_digits_as_it_needs(dollars: float, shown: str) -> None:
    assert money(dollars) == f"${amount(dollars)}" == shown


def test_costs_are_shown_by_what_is_asked_for(shell: Shell) -> None:
    for name in ("ada", "bob"):
        shell.ok("session", "new", name)
        shell.ok("task", "add", f"For {name}")
    assert shell.ok("cost") == "Nothing was spent.\n"
    spend(shell, "ada", "T-1", {OPUS: Used(Usage(3000, 150), 0.015)}, "2026-01-31")
    spend(shell, "bob", "T-2", {OPUS: Used(Usage(3000, 150), 1.25)}, "2026-02-01")
    lines = shell.ok("cost").splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["T-2", "$1.25", "1", "3,150"],
        ["T-1", "$0.015", "1", "3,150"],
        ["all", "$1.27", "2", "6,300"],
    ]
    by_day = [line.split()[0] for line in shell.ok("cost", "--by", "day").splitlines()]
    assert by_day == ["day", "2026-01-31", "2026-02-01", "all"]
    answer = shell.verb("cost.list", "cost", "--by", "session", "--since", "2026-02-01")
    assert [row["key"] for row in answer["rows"]] == ["bob"]
    assert "since must be a day" in shell.fails(2, "cost", "--since", "tomorrow")


def test_tokens_without_a_price_are_never_shown_as_free(shell: Shell) -> None:
    shell.ok("session", "new", "ada")
    shell.ok("task", "add", "Mend it")
    spend(shell, "ada", "T-1", {LOCAL: Used(Usage(12_000, 300), 0.0, 12_300)})
    hint = f'plus 12,300 tokens without a price: set [prices."{LOCAL}"] in covey.toml'
    for words in (["cost"], ["cost", "--by", "model"], ["status"]):
        printed = shell.ok(*words)
        assert hint in printed and "$0.00" not in printed, words
    assert "12,300 tokens without a price" in shell.ok("task", "show", "T-1")
    spend(shell, "ada", "T-1", {OPUS: Used(Usage(3000, 150), 0.015)})
    assert "$0.015 for 3,150 tokens plus 12,300 without a price" in shell.ok("task", "show", "T-1")


def test_status_shows_what_today_cost_and_its_budget(shell: Shell) -> None:
    shell.ok("session", "new", "ada")
    shell.ok("task", "add", "Mend it")
    assert "today" not in shell.ok("status")
    spend(shell, "ada", "T-1", {OPUS: Used(Usage(3000, 150), 3.2)})
    spend(shell, "ada", "T-1", {OPUS: Used(Usage(9000), 7.0)}, "2026-01-01")
    assert "  $3.20 today, 3,150 tokens\n" in shell.ok("status")
    (shell.folder / "covey.toml").write_text("[budget]\nday = 50.0\n")
    assert "  $3.20 of $50.00 today, 3,150 tokens\n" in shell.ok("status")
    assert "$3.20 for 3,150 tokens" in shell.ok("session", "list")
    told = shell.verb("status", "status")
    assert (told["today"]["cost"], told["today"]["budget"], told["sessions"][0]["cost"]) == (3.2, 50.0, 3.2)


def test_the_report_of_a_run_names_the_cost_of_each_task_and_in_all(shell: Shell) -> None:
    for title in ("One", "Two"):
        shell.ok("task", "add", title)
    spend(shell, "ada", "T-1", {OPUS: Used(Usage(3000, 150), 0.5)})
    spend(shell, "ada", "T-2", {OPUS: Used(Usage(3000, 150), 0.25), LOCAL: Used(Usage(7), 0.0, 7)})
    tasks = [shell.json("task", "show", task) | {"merge": None} for task in ("T-1", "T-2")]
    text = Report(tasks, {}, (LOCAL,)).as_text(Config(), 61).splitlines()
    assert "$0.50 for 3,150 tokens" in text[1] and text[1].endswith("One")
    assert text[-2] == "2 tasks: 2 todo, in 1 min 1 s, $0.75 for 6,300 tokens plus 7 without a price."
    assert text[-1] == f'plus 7 tokens without a price: set [prices."{LOCAL}"] in covey.toml'
    assert '"cost":0.75,"tokens":6307,"unpriced":7' in Report(tasks, {}).as_json("batch", 1, 61)


# What a session's runs said


def run_of(shell: Shell, agent: str, *argv: str) -> Run:
    """Let a run of ada end that printed what a program prints."""
    run = spend(shell, "ada", "T-1", {OPUS: Used(Usage(3000, 150), 0.5)}, agent=agent)
    runner = ProcessRunner(find(Path(shell.folder)).state / "runs")
    runner.start(run.id, Launch(argv=argv, cwd="/", env={"PATH": os.environ["PATH"]}))
    wait_until(lambda: not runner.look(run.id).alive, "the end of the program")
    return run


def test_the_runs_of_a_session_are_listed_and_read_one_by_one(shell: Shell) -> None:
    shell.ok("session", "new", "ada")
    shell.ok("task", "add", "Mend it")
    assert shell.ok("session", "logs", "ada", "--runs") == "ada has not run yet.\n"
    recorded = Path(__file__).parents[2] / "agents" / "claude" / "permission.jsonl"
    first = run_of(shell, "claude", "/bin/cat", str(recorded))
    second = run_of(shell, "scripted", "/bin/echo", "plain words")
    lines = shell.ok("session", "logs", "ada", "--runs").splitlines()
    assert [line.split()[0] for line in lines] == [second.id, first.id]
    assert all("at work" in line and "T-1" in line and "$0.50 for 3,150 tokens" in line for line in lines)
    assert shell.ok("session", "logs", "ada") == "plain words\n"
    told = shell.ok("session", "logs", "ada", "--run", first.id)
    assert told.startswith("- I will write the file.\n> Write: hello.txt\n")
    assert told == shell.ok("session", "logs", "ada", "--run", first.id, "--follow")
    assert shell.ok("session", "logs", "ada", "--run", first.id, "--raw").startswith("{")
    assert shell.ok("session", "logs", "ada", "--run", first.id, "--tail", "10").startswith("= ")
    assert shell.verb("session.logs", "session", "logs", "ada")["transcript"] is False
