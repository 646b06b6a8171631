"""The merge queue on the command line: with and without a daemon, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from covey.app.app import App
from covey.app.board.task_changes import step
from covey.app.context import Call, Context, Principal
from covey.app.fleet.heartbeats import Pulses
from covey.app.fleet.sessions import alert
from covey.app.merging import gate_logs, queue_records
from covey.cli.frame.client import Client
from covey.cli.merging import merge as commands
from covey.cli.merging.train_view import landed_lately, reasons
from covey.config import Config, Merge
from covey.core.merging import gates, landings, merges
from covey.core.people.alerts import AlertKind
from covey.git.project import find
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx
from tests.worlds.boards import ManualClock, World
from tests.worlds.queue_records import journal, pushed, start_gate
from tests.worlds.serving import wait_until
from tests.worlds.shell import Shell

GATED = '[project]\nmain = "trunk"\n[merge]\ncheck = "true"\n'


def branch(shell: Shell, name: str, *subjects: str, body: str = "") -> str:
    """Make a branch with some commits, and return the last."""
    shell.git("checkout", "-q", "-b", name, "trunk")
    for subject in subjects or (f"Add {name}",):
        path = shell.folder / f"{subject.replace(' ', '-').replace('/', '-')}.txt"
        path.write_text(f"{subject} is written here\n")
        shell.git("add", path.name)
        shell.git("commit", "-q", "-m", subject, *(["-m", body] if body else []))
    commit = shell.git("rev-parse", "HEAD")
    shell.git("checkout", "-q", "trunk")
    return commit


def write(shell: Shell, job: Any) -> Any:
    """Let something happen that only the queue itself writes."""
    store = SqliteStore(find(Path(shell.folder)).database)
    app = App(store, Context(Config(), Pulses(ManualClock(), store.place), "shop", has_daemon=True))

    def run(tx: Tx) -> Any:
        return job(Call(tx, Principal("covey"), app.context))

    try:
        return store.write(run)
    finally:
        store.close()


def gated(shell: Shell, merge: str, *failures: str) -> str:
    """Let a merge be tested, with this outcome, and return the gate."""

    def job(call: Call) -> str:
        begun = gates.Started(test=1, base="a" * 40, commit="b" * 40, merges=(merge,), purpose="solo")
        gate = start_gate(call, begun)
        found = call.tx.get(merges.Merge, merge)
        assert found is not None
        step(call, found, merges.Tested("b" * 40, gate.id), "covey")
        summary = "E   assert 1 == 2\nERROR: test_sum" if failures else ""
        ended = gates.Ended(passed=not failures, code=1, seconds=3.0, failures=failures, step="make", summary=summary)
        queue_records.end_gate(call, gate.id, ended)
        return gate.id

    return str(write(shell, job))


def test_an_empty_queue_is_shown_and_says_what_keeps_it_still(shell: Shell) -> None:
    shown = shell.ok("merge", "queue")
    assert "The queue lands on trunk: strategy group; merge.check is not set, so nothing is tested" in shown
    assert "Nothing wants to land." in shown
    assert shell.verb("queue.pause", "merge", "pause", "the", "release")["paused_why"] == "the release"
    assert "paused by owner" in shell.ok("merge", "queue") and "the release" in shell.ok("merge", "queue")
    assert shell.ok("merge", "resume") == "The queue goes on; no daemon runs (covey up)\n"
    assert "The queue is not paused" in shell.fails(5, "merge", "resume")
    assert "trunk is frozen" in shell.ok("merge", "freeze", "demo")
    assert "frozen by owner" in shell.ok("merge", "queue")
    assert shell.ok("merge", "thaw") == "trunk moves again; no daemon runs (covey up)\n"
    assert shell.verb("queue.show", "merge", "queue")["frozen"] is False


def test_a_branch_from_outside_is_queued_with_what_its_commits_say(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text(GATED)
    commit = branch(shell, "feature/one", "Add one", body="Because one is missing.")
    merge = shell.verb("merge.queue", "merge", "queue", "feature/one", "--priority", "4")
    assert (merge["branch"], merge["commit"], merge["state"]) == ("feature/one", commit, "queued")
    task = shell.verb("task.show", "task", "show", merge["task"])
    assert (task["title"], task["status"], task["priority"]) == ("Add one", "merging", 4)
    assert task["body"].startswith("Because one is missing.")
    branch(shell, "two", "First step", "Second step")
    said = shell.ok("merge", "queue", "two", "--title", "In two steps")
    assert "T-2 In two steps" in said and "no daemon runs (covey up)" in said
    assert "* Second step\n* First step" in shell.json("task", "show", "T-2")["body"]
    assert "No daemon runs, so nothing is tested and nothing lands (covey up)." in shell.ok("merge", "why", "T-2")
    assert "#1" in shell.ok("merge", "queue") and "In two steps" in shell.ok("merge", "queue")


def test_a_branch_that_cannot_land_is_refused_in_one_sentence(shell: Shell) -> None:
    assert "There is no branch 'nowhere'" in shell.fails(4, "merge", "queue", "nowhere")
    shell.git("branch", "old", "trunk")
    assert "trunk has all commits of old already" in shell.fails(5, "merge", "queue", "old")
    assert "trunk is where work lands" in shell.fails(5, "merge", "queue", "trunk")
    shell.ok("task", "add", "Mine")
    branch(shell, "covey/T-1")
    assert "covey/T-1 is the branch of T-1, which is todo" in shell.fails(5, "merge", "queue", "covey/T-1")
    branch(shell, "x")
    shell.ok("merge", "queue", "x")
    assert "x is in the queue already, as merge-" in shell.fails(5, "merge", "queue", "x")
    assert "are for a branch" in shell.fails(2, "merge", "queue", "--wait")


def test_work_that_nobody_tests_waits_in_the_inbox(shell: Shell) -> None:
    branch(shell, "x")
    said = shell.ok("merge", "queue", "x")
    assert "It waits for your approval: merge.check is not set" in said
    inbox = shell.ok("inbox")
    assert "Merges that wait for you:" in inbox and "merge.check is not set" in inbox
    assert "Waiting for you" in shell.ok("merge", "queue")


def test_a_branch_is_queued_and_waited_for_without_a_daemon(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text(GATED)
    shell.git("add", "covey.toml")
    shell.git("commit", "-q", "-m", "settings")
    branch(shell, "x", "Add x")
    done = shell.run("merge", "queue", "x", "--wait")
    assert done.returncode == 0, done.stderr
    assert "T-1 landed in" in done.stdout
    (merge,) = shell.verb("merge.list", "merge", "list", "--all")
    assert (merge["state"], merge["untested"]) == ("landed", False)
    assert (shell.folder / "Add-x.txt").exists()
    shown = shell.verb("merge.show", "merge", "show", merge["id"])
    assert shown["landed_by"]["commit"] == shell.git("rev-parse", "trunk")
    assert [gate["state"] for gate in shown["gates"]] == ["passed"]
    assert merge["id"] in shell.ok("merge", "journal")
    assert "It landed in" in shell.ok("merge", "why", merge["id"])
    assert "has landed already, as" in shell.fails(5, "merge", "queue", "x")
    log = shell.ok("merge", "log", merge["id"])
    assert f"{shown['gates'][0]['id']} passed" in log
    assert "$ true" in shell.ok("merge", "log", shown["gates"][0]["id"], "--full")


def test_waiting_for_a_branch_says_what_it_waits_for_and_is_not_taken_for_a_landing(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text(GATED)
    branch(shell, "x", "Add x")
    shell.ok("merge", "pause", "The release")
    done = shell.run("merge", "queue", "x", "--wait")
    assert (done.returncode, "T-1 waits: the queue is paused" in done.stdout) == (3, True), done.stdout
    inbox = shell.ok("inbox")
    assert "The merge queue:" in inbox and "paused by owner" in inbox and "The release" in inbox
    (row,) = (row for row in shell.json("inbox") if row["kind"] == "queue")
    assert (row["title"], row["text"], row["decisions"]) == (
        "The merge queue was paused by owner",
        "The release",
        ["resume"],
    )
    shell.ok("merge", "drop", "T-1")
    assert "was in no gate, and is withdrawn" in shell.fails(5, "merge", "log", "T-1")


def test_a_revert_is_built_tested_and_landed_and_its_task_is_open_again(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text(GATED)
    shell.git("add", "covey.toml")
    shell.git("commit", "-q", "-m", "settings")
    branch(shell, "x", "Add x")
    assert shell.run("merge", "queue", "x", "--wait").returncode == 0
    (merge,) = shell.json("merge", "list", "--all")
    shell.ok("up")
    try:
        shell.ok("merge", "revert", merge["id"], "--reopen", "It", "broke", "the", "shop")
        wait_until(lambda: shell.json("task", "show", "T-2")["status"] == "done", "the revert on main")
        assert not (shell.folder / "Add-x.txt").exists()
        task = shell.json("task", "show", "T-1")
        assert (task["status"], task["notes"][-1]["text"].endswith("Why: It broke the shop")) == ("todo", True)
        shown = shell.json("merge", "show", merge["id"])
        assert (shown["state"], shown["reverted_by"]) == ("reverted", shell.json("merge", "list", "--all")[-1]["id"])
        assert "was taken out of trunk again" in shell.ok("merge", "why", merge["id"])
    finally:
        shell.run("down")


def handed_in(shell: Shell, title: str = "Mend it") -> str:
    """Return a merge that waits in the queue."""
    task = shell.json("task", "add", title)["id"]
    shell.ok("task", "claim", task, "--as", "ada")
    shell.git("commit", "-q", "--allow-empty", "-m", "Work")
    shell.ok("task", "handin", task, "--as", "ada", "--commit", "HEAD")
    return str(shell.json("merge", "list")[-1]["id"])


def test_what_was_under_test_when_the_daemon_ended_does_not_pass_for_tested() -> None:
    why = {"merge": "merge-9", "task": "T-1", "state": "testing", "next": [], "because": ["It is tested alone."]}
    told = reasons(why, at_work=False)
    assert "No daemon runs" in told and "It was under test when the daemon ended" in told
    assert "It is tested alone." not in told and told.endswith("covey up")
    assert "It is tested alone." in reasons(why) and "No daemon runs" not in reasons(why)


def test_a_log_is_that_of_the_gate_after_which_a_merge_landed(shell: Shell) -> None:
    merge = handed_in(shell)
    gate = gated(shell, merge)

    def job(call: Call) -> None:
        lost = start_gate(call, gates.Started(test=2, base="a" * 40, commit="c" * 40, merges=(merge,)))
        queue_records.end_gate(call, lost.id, gates.Lost("nobody needs it"))
        made = landings.Made(branch="trunk", before="a" * 40, commit="b" * 40, merges=(merge,), gate=gate)
        landing = journal(call, made)
        found = call.tx.get(merges.Merge, merge)
        assert found is not None
        step(call, found, merges.Landed("b" * 40, landing.id), "covey")

    write(shell, job)
    assert shell.json("merge", "log", merge)["id"] == gate


def test_settings_that_the_daemon_does_not_take_are_told_with_the_queue(served: Shell) -> None:
    settings = served.folder / "covey.toml"
    settings.write_text('[project]\nmain = "trunk"\n[merge]\ncheck = "true"\npush = "nowhere"\n')
    assert "merge.push names the remote 'nowhere', which git does not know" in served.ok("merge", "queue")
    settings.write_text('[project]\nmain = "trunk"\n[merge]\nchekc = "true"\n')
    shown = served.run("merge", "queue")
    assert "there is no setting chekc in [merge]" in shown.stdout + shown.stderr


def test_a_merge_is_shown_and_explained_with_what_its_gate_said(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text(GATED)
    merge = handed_in(shell)
    assert "was in no gate yet" in shell.fails(5, "merge", "log", merge)
    gate = gated(shell, merge, "tests/test_a.py::test_sum")
    shown = shell.ok("merge", "show", merge)
    assert f"{merge}  Mend it" in shown and "tests/test_a.py::test_sum" in shown
    why = shell.ok("merge", "why", merge)
    assert f"{gate} failed with it alone (tests/test_a.py::test_sum)" in why
    log = shell.ok("merge", "log", merge)
    assert f"{gate} failed after 3.0 s" in log and "ERROR: test_sum" in log and "--full" in log
    path = gate_logs.path_of(find(Path(shell.folder)), gate)
    gate_logs.keep(path, [b"line\n" * 100_000, b"the end\n"])
    full = shell.ok("merge", "log", merge, "--full")
    assert full.count("line\n") == 100_000 and full.endswith("the end\n")
    assert shell.json("merge", "log", merge, "--full")["text"] == full
    assert shell.verb("gate.show", "merge", "log", merge)["id"] == gate


def test_work_is_held_dropped_rejected_and_tried_again(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text(GATED)
    merge = handed_in(shell)
    assert "it waits until you approve it" in shell.ok("merge", "hold", merge, "I", "look", "first")
    assert "I look first" in shell.ok("inbox")
    dropped = shell.ok("merge", "drop", merge, "Not", "today")
    assert "T-1 is blocked" in dropped and f"covey merge retry {merge}" in dropped
    again = shell.verb("merge.retry", "merge", "retry", merge)
    assert again["state"] == "queued"
    assert "T-1 is first in line for ada" in shell.ok("merge", "reject", again["id"], "No test")
    assert "is in the queue again as merge-" in shell.ok("merge", "retry", again["id"])
    assert "has moved on" in shell.fails(5, "merge", "retry", again["id"])


def test_landed_work_is_taken_out_by_a_merge_of_its_own(shell: Shell) -> None:
    merge = handed_in(shell)
    assert "only what has landed" in shell.fails(5, "merge", "revert", merge)
    shell.ok("merge", "land", merge, "HEAD")
    said = shell.ok("merge", "revert", merge, "--reopen", "It", "broke", "the", "shop")
    assert f"T-2 takes {merge} out again" in said
    assert shell.json("task", "show", "T-2")["title"] == "Revert T-1: Mend it"
    assert "being reverted already" in shell.fails(5, "merge", "revert", merge)


def test_the_journal_and_the_flakes_are_told_in_columns(shell: Shell) -> None:
    assert shell.ok("merge", "journal") == "Nothing has landed yet.\n"
    assert shell.ok("merge", "flakes") == "No test has flaked.\n"
    merge = handed_in(shell)
    gate = gated(shell, merge, "test_sum")

    def job(call: Call) -> None:
        made = landings.Made(branch="trunk", before="a" * 40, commit="b" * 40, merges=(merge,), gate=gate)
        pushed(call, journal(call, made), "origin")
        found = call.tx.get(gates.Gate, gate)
        assert found is not None
        queue_records.note_flakes(call, found, ("test_sum",))

    write(shell, job)
    told = shell.ok("merge", "journal")
    assert "aaaaaaaaaa..bbbbbbbbbb" in told and "pushed to origin" in told and gate in told
    assert "test_sum  1x" in shell.ok("merge", "flakes")
    assert len(shell.verb("landing.list", "merge", "journal", "--limit", "5")) == 1
    assert shell.verb("flake.list", "merge", "flakes")[0]["times"] == 1


def test_a_queue_of_many_fits_eighty_columns_where_titles_are_short(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text(GATED)
    for number in range(3):
        handed_in(shell, f"Mend number {number}")
    for command in (("merge", "queue"), ("merge", "list")):
        assert max(map(len, shell.ok(*command).splitlines())) <= 80


@pytest.fixture
def reviewed(shell: Shell) -> Iterator[Shell]:
    """Return a shell in a repository whose daemon runs, where a role reviews what lands."""
    settings = '[project]\nmain = "trunk"\n[merge]\ncheck = "true"\nreview = true\nreview_role = "review"\n'
    (shell.folder / "covey.toml").write_text(settings)
    shell.ok("up")
    yield shell
    shell.run("down")


def test_a_reviewer_approves_with_its_own_token_what_another_wrote(reviewed: Shell) -> None:
    reviewed.ok("session", "new", "rita", "--role", "review")
    merge = handed_in(reviewed)
    url = reviewed.json("up")["url"]
    env = {"COVEY_TOKEN": reviewed.ok("session", "token", "rita").strip(), "COVEY_URL": url}
    assert f"Approved {merge}" in reviewed.ok("merge", "approve", merge, env=env)
    assert reviewed.json("merge", "show", merge)["approved_by"] == "rita"
    assert "for the owner" in reviewed.fails(6, "merge", "pause", env=env)
    assert "for the owner" in reviewed.fails(6, "merge", "queue", "x", env=env)
    assert "The queue lands on" in reviewed.ok("merge", "queue", env=env)


@pytest.mark.parametrize("verb", ["show", "why", "log", "retry", "drop", "hold", "revert", "approve"])
def test_a_merge_that_is_not_there_is_named(shared: Shell, verb: str) -> None:
    assert "There is no merge 'merge-999'." in shared.fails(4, "merge", verb, "merge-999")


@pytest.mark.parametrize(("patience", "came_to"), [(60.0, "withdrawn"), (0.0, "queued")])
def test_a_wait_gives_a_queue_that_was_stuck_the_time_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float, came_to: str
) -> None:
    monkeypatch.setattr(commands, "QUEUE_TIMEOUT_S", patience)
    world = World(tmp_path, Config(merge=Merge(check="true")))
    world.do(
        lambda call: alert(call, AlertKind.QUEUE_STUCK, "The merge queue cannot go on: the disk is full.", None, None)
    )
    task = world.add()
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada", commit="a" * 40)
    looks = iter(range(5))

    def ask(verb: str, params: dict[str, Any] | None = None) -> SimpleNamespace:
        if next(looks) == 3:
            world.ask("merge.drop", id=merge)
        return SimpleNamespace(value=world.ask(verb, **(params or {})))

    ended = commands._until_ended(cast("Client", SimpleNamespace(ask=ask)), merge)
    assert ended["state"] == came_to
    world.store.close()


def test_a_review_without_a_daemon_is_said_to_land_by_approving_it() -> None:
    why = {"merge": "merge-9", "task": "T-1", "state": "review", "next": ["covey merge approve merge-9"], "because": []}
    told = reasons(why, at_work=False)
    assert "covey merge approve has one for as long as it takes" in told
    assert "nothing lands" not in told and "covey up" not in told


def test_without_a_daemon_a_list_says_that_nobody_tests_what_was_under_test(tmp_path: Path) -> None:
    world = World(tmp_path)
    task = world.add()
    world.claim(task, "ada")
    merge = world.hand_in(task, "ada", commit="a" * 40)
    (row,) = world.ask("merge.list")
    row |= {"state": "testing", "gate": "gate-1"}
    assert "in gate-1" in commands.rows([row])
    told = commands.rows([row], at_work=False)
    assert merge in told and "nobody tests it, as no daemon runs (covey up)" in told and "in gate-1" not in told
    world.store.close()


@pytest.mark.parametrize(("rejected", "told"), [(0, "0 of the last 9 were"), (1, "1 of the last 9 was")])
def test_how_many_were_rejected_is_told_in_good_english(rejected: int, told: str) -> None:
    queue = {"last": None, "rejected": rejected, "ended": 9, "landed_hour": 3, "gate_seconds": 0}
    assert f"; {told} rejected" in landed_lately(queue)
