"""From a line of a file to its commit, its task, its run, and where it was written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from covey.app.app import App
from covey.app.context import Call, Context, Principal
from covey.app.fleet.heartbeats import Pulses
from covey.config import Config
from covey.core import nouns
from covey.core.fleet import runs
from covey.core.fleet.launches import Launch
from covey.git.project import find
from covey.runners.process import ProcessRunner
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx
from tests.worlds.boards import ManualClock
from tests.worlds.serving import wait_until
from tests.worlds.shell import Shell

LINE = "    return total * (1 + rate)"


def commit(shell: Shell, name: str, text: str, *message: str) -> str:
    """Write a file, commit it on the branch that is checked out, and return the commit."""
    path = shell.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    shell.git("add", name)
    shell.git("commit", "-q", *(word for part in message for word in ("-m", part)))
    return shell.git("rev-parse", "HEAD")


def ran(shell: Shell, task: str, stream: str, agent: str = "claude", journal: str | None = None) -> str:
    """Let a run of ada for a task have printed this, with this journal of its conversation, and return the run."""
    project = find(Path(shell.folder))
    store = SqliteStore(project.database)
    app = App(store, Context(Config(), Pulses(ManualClock(), store.place), "shop", has_daemon=True))

    def write(tx: Tx) -> str:
        call = Call(tx, Principal(), app.context)
        event = runs.Begun(session="ada", task=task, fence=1, agent=agent, model="opus")
        run = nouns.first(runs.Run, f"run-{tx.next_seq}", tx.next_seq, event, 1.0)
        tx.insert(run)
        tx.append("ada", run.id, event, run)
        run = call.tx.advance(run, runs.Talking("c-1"), "covey")
        call.tx.advance(run, runs.Ended(outcome=runs.Outcome.HANDED_IN, code=0), "covey")
        return run.id

    try:
        run = str(store.write(write))
    finally:
        store.close()
    source = shell.folder.parent / f"{run}.txt"
    source.write_text(stream)
    runner = ProcessRunner(project.state / "runs")
    runner.start(run, Launch(argv=("/bin/cat", str(source)), cwd="/", env={"PATH": "/bin:/usr/bin"}))
    wait_until(lambda: not runner.look(run).alive, "the end of the run")
    if journal is not None:
        written = shell.folder.parent / "codex" / "sessions" / "2026" / "11" / "17" / "rollout-2026-c-1.jsonl"
        written.parent.mkdir(parents=True)
        written.write_text(journal)
        note = {"folder": str(shell.folder.parent / "codex"), "old": {}}
        (project.state / "runs" / run / "ledger").write_text(json.dumps(note))
    return run


def stream(text: str) -> str:
    """Return what Claude Code prints when it writes a file."""
    given = {"file_path": "/w/src/cart.py", "content": text}
    block = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": given}
    messages = [{"type": "text", "text": "I add the rate"}, block]
    return "".join(json.dumps({"type": "assistant", "message": {"content": [each]}}) + "\n" for each in messages)


def landed(shell: Shell, *trailers: str) -> tuple[str, str]:
    """Return a task and its merge, whose work is on main in a commit that says so if asked to."""
    task = shell.json("task", "add", "Charge the rate", "--body", "Prices lack the rate.", "--done-when", "make test")[
        "id"
    ]
    run = ran(shell, task, stream(f"def price(total, rate):\n{LINE}\n"))
    shell.ok("task", "claim", task, "--as", "ada")
    shell.git("branch", "side", shell.git("commit-tree", "-p", "HEAD", "-m", "Side", "HEAD^{tree}"))
    shell.ok("task", "handin", task, "--as", "ada", "--branch", "side")
    (merge,) = shell.json("merge", "list")
    text = [trailer.format(task=task, merge=merge["id"]) for trailer in trailers]
    made = commit(
        shell, "src/cart.py", f"def price(total, rate):\n{LINE}\n", "Charge the rate", *["\n".join(text)] * bool(text)
    )
    shell.ok("merge", "land", merge["id"], made)
    assert run
    return task, str(merge["id"])


@pytest.mark.parametrize("trailers", [("Covey-Task: {task}", "Covey-Merge: {merge}"), ()])
def test_a_line_leads_to_its_task_run_and_the_place_in_the_transcript(shell: Shell, trailers: tuple[str, ...]) -> None:
    task, merge = landed(shell, *trailers)
    shown = shell.ok("why", "src/cart.py:2")
    assert f"src/cart.py:2  {LINE.strip()}" in shown
    for words in (
        f"{task}  Charge the rate (done)",
        "Prices lack the rate.",
        "make test",
        f"{merge} landed",
        "ada: claude",
    ):
        assert words in shown
    assert "> Write: /w/src/cart.py" in shown and "- I add the rate" in shown
    told = shell.json("why", "src/cart.py:2")
    assert (told["task"]["id"], told["merge"]["id"], told["passage"]["exact"]) == (task, merge, True)
    inside = shell.at(shell.folder / "src")
    assert inside.json("why", "cart.py:2")["task"]["id"] == task
    assert shell.json("why", "src/cart.py:2", "--at", "trunk")["task"]["id"] == task


AGENTS = Path(__file__).parents[2] / "agents"


@pytest.mark.parametrize("agent", ["codex", "gemini", "opencode"])
def test_a_line_leads_to_the_edit_of_every_agent(shell: Shell, agent: str) -> None:
    task = shell.json("task", "add", "Sum it")["id"]
    journal = (AGENTS / "codex" / "journals" / "edits.jsonl").read_text() if agent == "codex" else None
    ran(shell, task, (AGENTS / agent / "edits.jsonl").read_text(), agent, journal)
    shell.ok("task", "claim", task, "--as", "ada")
    shell.git("branch", "side", shell.git("commit-tree", "-p", "HEAD", "-m", "Side", "HEAD^{tree}"))
    shell.ok("task", "handin", task, "--as", "ada", "--branch", "side")
    (merge,) = shell.json("merge", "list")
    made = commit(shell, "cart.py", "def total(items):\n    return sum(items)\n", "Sum it")
    shell.ok("merge", "land", merge["id"], made)
    passage = shell.json("why", "cart.py:2")["passage"]
    assert passage["exact"] and "  +    return sum(items)" in passage["lines"]
    logs = shell.ok("session", "logs", "ada").splitlines()
    assert logs[passage["line"] - 1].startswith("> edit: ") and logs[passage["line"] - 1].endswith("cart.py")
    assert logs[passage["line"]] == "  -    return 0" and not any('{"' in line for line in logs)


def test_the_same_is_answered_by_a_daemon(shell: Shell) -> None:
    landed(shell, "Covey-Task: {task}")
    alone = shell.json("why", "src/cart.py:2")
    shell.ok("up")
    try:
        assert shell.json("why", "src/cart.py:2") == alone
    finally:
        shell.run("down")


def test_a_line_from_before_covey_and_one_that_came_past_it_say_so(bare_shell: Shell) -> None:
    commit(bare_shell, "old.txt", "old\n", "Before")
    bare_shell.git("commit", "-q", "--amend", "--no-edit", "--date", "2020-01-01T00:00:00Z")
    bare_shell.ok("init")
    assert "from before covey looked after this repository" in bare_shell.ok("why", "old.txt:1")
    commit(bare_shell, "new.txt", "new\n", "Past it")
    assert "It came past covey" in bare_shell.ok("why", "new.txt:1")
    commit(bare_shell, "far.txt", "far\n", "From afar", "Covey-Task: T-77")
    assert "names T-77, which this board does not know" in bare_shell.ok("why", "far.txt:1")


def test_a_place_that_is_none_is_refused_in_one_sentence(shell: Shell) -> None:
    commit(shell, "a.txt", "one\n", "One")
    assert "names no line of a file" in shell.fails(2, "why", "a.txt")
    assert "has no line 5" in shell.fails(4, "why", "a.txt:5")
    assert "There is no file b.txt" in shell.fails(4, "why", "b.txt:1")
    assert "not in this repository" in shell.fails(4, "why", "../x.txt:1")
    (shell.folder / "a.txt").write_text("one\ntwo\n")
    assert "not committed yet" in shell.fails(5, "why", "a.txt:2")


def test_a_commit_that_names_the_work_of_another_leads_to_whoever_landed_it(shell: Shell) -> None:
    other = shell.json("task", "add", "Another")["id"]
    task, merge = landed(shell, f"Covey-Task: {other}", "Covey-Merge: merge-1")
    told = shell.json("why", "src/cart.py:2")
    assert (told["task"]["id"], told["merge"]["id"]) == (task, merge)


@pytest.mark.parametrize(
    "date", ["99999999999999 +0000", "18446744073709551614 +0000", "1 +9999", "0 -9999", "253402300800 +1"]
)
def test_a_line_of_a_commit_with_an_absurd_date_is_told_all_the_same(shell: Shell, date: str) -> None:
    commit(shell, "shop.py", "one\n", "First")
    tree = shell.git("rev-parse", "HEAD^{tree}")
    body = f"tree {tree}\nauthor Eve <eve@example.org> {date}\ncommitter Eve <eve@example.org> {date}\n\nOdd\n"
    words = ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    done = subprocess.run(
        words, cwd=shell.folder, env=shell.env, input=body, capture_output=True, text=True, check=True
    )
    shell.git("update-ref", "HEAD", done.stdout.strip())
    assert "Eve" in shell.ok("why", "shop.py:1") and "Eve" in shell.ok("why", "shop.py:1", "--json")
    for words_of in (("status", "--since", "1 week ago"), ("task", "list"), ("log",), ("rescue", "list")):
        ended = shell.run(*words_of)
        assert "Traceback" not in ended.stdout + ended.stderr and "bug" not in ended.stderr
