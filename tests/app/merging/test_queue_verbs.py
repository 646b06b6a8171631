"""The verbs of the queue as a whole, its gates and its journal, and from a line to where it was written."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from covey.app.context import Principal
from covey.app.fleet.sessions import alert
from covey.app.merging import gate_logs, queue_records
from covey.config import Config, Merge
from covey.core.fleet.launches import Launch
from covey.core.fleet.outcomes import HandIn
from covey.core.fleet.runs import Run
from covey.core.merging import gates, merges
from covey.core.merging.gates import Gate
from covey.core.merging.queue import queue_status
from covey.core.people.alerts import AlertKind
from covey.errors import Denied, NotFound, Refused
from covey.runners.process import ProcessRunner
from tests.app.merging.test_merges import COMMIT, MAIN, TREE, checked, end, handed_in, land, put, start
from tests.worlds.boards import World
from tests.worlds.queue_records import pushed, start_gate
from tests.worlds.serving import wait_until


def test_the_train_is_shown_with_its_gates_what_waits_and_what_landed(world: World) -> None:
    checked(world)
    (_, first), (_, second), (_, third) = (handed_in(world, priority=number) for number in (0, 1, 2))
    passed = start(world, third)
    end(world, passed)
    landing = land(world, passed, third)
    began = queue_status.Began(strategy="group", slots=4, base=TREE, proven=True)
    world.do(lambda call: queue_records.put(call, began))
    gate = start(world, second)
    shown = world.ask("queue.show")
    assert (shown["strategy"], shown["slots"], shown["branch"], shown["checked"]) == ("group", 4, "main", True)
    assert [(each["id"], each["merges"]) for each in shown["running"]] == [(gate.id, [second])]
    assert [(each["id"], each["place"], each["gate"]) for each in shown["merges"]] == [
        (second, 1, gate.id),
        (first, 2, None),
    ]
    assert (shown["landed_hour"], shown["ended"], shown["rejected"], shown["gate_seconds"]) == (1, 1, 0, 12.0)
    assert shown["last"]["id"] == landing.id
    world.clock.run(3601)
    assert world.ask("queue.show")["landed_hour"] == 0


def test_the_queue_is_paused_and_goes_on_by_a_persons_word(world: World) -> None:
    with pytest.raises(Refused, match="The queue is not paused"):
        world.ask("queue.resume")
    paused = world.ask("queue.pause", reason="the release")
    assert (paused["paused"], paused["paused_why"], paused["paused_by"]) == (True, "the release", "owner")
    assert world.ask("queue.pause")["paused_why"] == "the release", "said once, it holds"
    assert world.ask("queue.pause", reason="longer")["paused_why"] == "longer"
    assert world.ask("queue.resume")["paused_why"] is None
    assert world.kinds()[-2:] == ["queue.paused", "queue.resumed"]


def test_main_is_frozen_and_thawed(world: World) -> None:
    with pytest.raises(Refused, match="Main is not frozen"):
        world.ask("queue.thaw")
    assert world.ask("queue.freeze")["frozen"]
    with pytest.raises(Refused) as told:
        world.ask("queue.resume")
    assert told.value.hint == "Main is frozen: covey merge thaw lets it move."
    assert not world.ask("queue.thaw")["frozen"]


def test_a_queue_that_has_halted_says_so_and_is_resumed(world: World) -> None:
    checked(world)
    _, merge = handed_in(world)
    world.do(lambda call: queue_records.put(call, queue_status.Halted("main fails its own gate", ("gate-9",))))
    shown = world.ask("queue.show")
    assert (shown["halted"], shown["gates"]) == ("main fails its own gate", ["gate-9"])
    told = world.ask("merge.why", id=merge)
    assert "The queue has halted: main fails its own gate." in told["because"]
    assert world.ask("queue.resume")["halted"] is None


def test_a_gate_that_cannot_be_run_and_a_remote_that_takes_nothing_are_told_of_the_whole_queue(world: World) -> None:
    checked(world, push="origin")
    _, merge = handed_in(world)
    why = "The gate cannot be run: exit code 127."
    put(world, merge, merges.Waits(why, cause=merges.WholeQueue.SETTINGS))
    world.do(lambda call: alert(call, AlertKind.NOT_PUSHED, "origin says no.", None, None))
    mend = "Nothing lands until that is mended: see merge.check in covey.toml, or start covey in a shell where "
    mend += "that can be run (covey down && covey up)."
    assert world.ask("queue.show")["troubles"] == [f"{why} {mend}", "origin says no."]
    told = world.ask("merge.why", id=merge)
    assert told["next"][0] == "mend merge.check in covey.toml: the queue goes on by itself"
    assert told["retry"]
    world.clock.run(1)
    landing = land(world, None, merge)
    world.do(lambda call: pushed(call, landing, "origin"))
    assert world.ask("queue.show")["troubles"] == []


def test_a_gate_that_the_machine_keeps_from_running_is_not_laid_to_the_settings(world: World) -> None:
    checked(world)
    _, merge = handed_in(world)
    why = "No gate begins here, in whatever words."
    put(world, merge, merges.Waits(why, cause=merges.WholeQueue.MACHINE))
    mend = "Nothing lands until that is mended: it is tried again every minute."
    assert world.ask("queue.show")["troubles"] == [f"{why} {mend}"]
    assert world.ask("merge.why", id=merge)["next"][0] == "mend that: the queue goes on by itself"


def test_a_session_looks_at_the_queue_and_only_the_owner_stops_it(world: World) -> None:
    world.ask("session.new", name="ada")
    ada = Principal("ada")
    assert world.ask("queue.show", ada)["paused"] is False
    for verb in ("queue.pause", "queue.freeze", "queue.resume", "queue.thaw"):
        with pytest.raises(Denied, match="Only the owner"):
            world.ask(verb, ada)


def test_the_journal_and_the_flakes_are_listed_the_newest_first(world: World) -> None:
    checked(world)
    (_, first), (_, second) = handed_in(world), handed_in(world)
    gate = start(world, first)
    end(world, gate, "test_sum")
    landings = [land(world, None, first), land(world, None, second)]
    world.do(lambda call: pushed(call, landings[0], "origin"))
    world.do(lambda call: queue_records.note_flakes(call, gate, ("test_sum",)))
    shown = world.ask("landing.list")
    assert [each["id"] for each in shown] == [landings[1].id, landings[0].id]
    assert (shown[1]["remote"], shown[1]["before"], shown[1]["commit"]) == ("origin", MAIN, TREE)
    assert [(each["test"], each["times"], each["gate"]) for each in world.ask("flake.list")] == [
        ("test_sum", 1, gate.id)
    ]
    shown_gate = world.ask("gate.show", id=gate.id)
    assert (shown_gate["state"], shown_gate["failures"], shown_gate["step"]) == ("failed", ["test_sum"], "pytest")
    with pytest.raises(NotFound, match="There is no gate 'gate-99'"):
        world.ask("gate.show", id="gate-99")


# What gates printed


def some_gate(world: World, tmp_path: Path) -> Gate:
    """Return a gate in a project whose state is kept in a folder."""
    world.app.context.runs = tmp_path / "runs"
    event = gates.Started(test=1, base=MAIN, commit=TREE)
    return world.do(lambda call: start_gate(call, event))


def test_what_a_gate_printed_is_read_from_where_it_is_kept_without_secrets(world: World, tmp_path: Path) -> None:
    gate = some_gate(world, tmp_path)
    begun = world.ask("gate.log", id=gate.id)
    assert (begun["text"], begun["alive"]) == ("", True)  # its first step is about to begin
    world.do(lambda call: queue_records.end_gate(call, gate.id, gates.Lost("the daemon ended")))
    with pytest.raises(NotFound, match="is not kept"):
        world.ask("gate.log", id=gate.id)
    path = tmp_path / gate_logs.FOLDER / f"{gate.id}{gate_logs.SUFFIX}"
    gate_logs.keep(path, [b"$ make\n", b"key sk-ant-api03-" + b"a" * 80 + b"\n", b"ERROR: it is red\n"])
    read = world.ask("gate.log", id=gate.id)
    assert read["text"].startswith("$ make\nkey ") and "aaaa" not in read["text"]
    assert read["text"].endswith("ERROR: it is red\n") and read["next"] == len(gzip.decompress(path.read_bytes()))
    assert world.ask("gate.log", id=gate.id, since=-6)["text"] == "s red\n"


def test_what_a_gate_prints_is_read_while_it_runs_and_its_last_step_counts(world: World, tmp_path: Path) -> None:
    gate = some_gate(world, tmp_path)
    runner = ProcessRunner(tmp_path / "runs")
    for run, words in ((gate.id, "echo first"), (f"{gate.id}.2", "echo second; sleep 600")):
        runner.start(run, Launch(argv=("/bin/sh", "-c", words), cwd=str(tmp_path), env={"PATH": "/usr/bin:/bin"}))
        wait_until(lambda run=run: runner.look(run).size > 0, "some output")  # type: ignore[misc]
    try:
        read = world.ask("gate.log", id=gate.id)
        assert (read["text"], read["alive"]) == ("second\n", True)
    finally:
        runner.stop(f"{gate.id}.2")


# From a line to its run


def said(*messages: dict[str, Any]) -> str:
    """Return a stream as Claude Code prints it."""
    return "".join(json.dumps(each) + "\n" for each in messages)


def used(number: int, tool: str, **given: Any) -> dict[str, Any]:
    """Return the message of a model that uses a tool."""
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": given}
    return {"type": "assistant", "timestamp": "2026-01-02T03:04:05Z", "message": {"content": [block]}}


def words(text: str) -> dict[str, Any]:
    """Return a message of a model that says something."""
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}


def shown_to(number: int, text: str) -> dict[str, Any]:
    """Return what a tool answered."""
    block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}
    return {"type": "user", "message": {"content": [block]}}


LINE = '    return "näh" + total * rate'
STREAM = said(
    words("I look at the cart first"),
    used(1, "Read", file_path="/w/src/cart.py"),
    shown_to(1, LINE),
    used(2, "Write", file_path="/w/src/cart.py", content=f"def price():\n{LINE}\n"),
    words("Now the rate"),
    used(3, "Edit", file_path="/w/src/cart.py", old_string="x", new_string=f"# key\n{LINE}\n"),
    words("That is it"),
    used(4, "Read", file_path="/w/src/cart.py"),
    shown_to(4, LINE),
)


def wrote(world: World, tmp_path: Path, stream: str, *, agent: str = "claude") -> tuple[Run, str]:
    """Return a run that printed this and handed its work in, and its merge."""
    world.app.context.runs = tmp_path / "runs"
    task = world.add("Mend the cart", body="Prices are wrong.", done_when=["make test"])
    world.at_work(agent=agent)
    run = world.begin()
    source = tmp_path / f"{run.id}.txt"
    source.write_text(stream)
    world.runner.start(run.id, Launch(argv=("/bin/cat", str(source)), cwd=str(tmp_path), env={"PATH": "/bin:/usr/bin"}))
    wait_until(lambda: not world.runner.look(run.id).alive, "the end of the run")
    world.end(run, HandIn(commit=COMMIT, result=None))
    assert world.status(task) in ("merging", "review")
    return run, str(world.ask("merge.list")[-1]["id"])


def test_a_line_leads_to_its_merge_task_run_gate_and_the_last_place_where_it_was_written(
    world: World, tmp_path: Path
) -> None:
    checked(world, review=True)
    run, merge = wrote(world, tmp_path, STREAM)
    world.ask("merge.approve", id=merge)
    gate = start(world, merge)
    end(world, gate)
    landing = land(world, gate, merge)
    found = world.ask("line.why", path="src/cart.py", commit=TREE, text=LINE, merge=merge)
    assert (found["task"]["title"], found["task"]["done_when"]) == ("Mend the cart", ["make test"])
    assert (found["merge"]["id"], found["gate"]["id"], found["landing"]["id"]) == (merge, gate.id, landing.id)
    assert (found["run"]["id"], found["run"]["agent"], found["approved_by"]) == (run.id, "claude", "owner")
    place = found["passage"]
    assert (place["run"], place["exact"]) == (run.id, True)
    assert place["lines"][1] == "- Now the rate"
    assert place["lines"][2].startswith("> Edit: /w/src/cart.py")
    assert place["at"] == 1767323045.0


def test_a_line_whose_text_nobody_wrote_leads_to_the_last_use_of_the_file(world: World, tmp_path: Path) -> None:
    checked(world)
    _, merge = wrote(world, tmp_path, STREAM)
    found = world.ask("line.why", path="src/cart.py", commit=TREE, text="made by a formatter", merge=merge)
    assert (found["passage"]["exact"], found["passage"]["at"]) == (False, None)


def test_a_run_that_prints_plain_lines_or_nothing_tells_no_place(world: World, tmp_path: Path) -> None:
    checked(world)
    run, merge = wrote(world, tmp_path, "working\nwrote src/cart.py\n", agent="scripted")
    found = world.ask("line.why", path="src/cart.py", commit=TREE, text="x", merge=merge)
    assert (found["passage"]["line"], found["passage"]["exact"]) == (2, False)
    nothing = world.ask("line.why", path="src/other.py", commit=TREE, text="never said", task=run.task)
    assert nothing["passage"] is None and nothing["run"]["id"] == run.id


def test_a_line_of_which_covey_knows_nothing_says_nothing(world: World) -> None:
    found = world.ask("line.why", path="a.py", commit=TREE, text="x", task="T-99", merge="merge-99")
    assert {name for name, value in found.items() if value} == {"commit"}


@pytest.mark.parametrize(
    ("change", "worked"),
    [
        ({"env": ("HOME",)}, True),
        ({"network": True}, True),
        ({"show": ("README.md",)}, True),
        ({"check": "make other"}, False),
        ({"quick": "make quick"}, False),
    ],
)
def test_a_gate_has_worked_if_its_commands_have_whatever_else_it_was_given(
    world: World, change: dict[str, Any], worked: bool
) -> None:
    first = Merge(check="make test")
    checks = queue_records.digest(Config(merge=first))
    gate = world.do(lambda call: start_gate(call, gates.Started(test=1, base=MAIN, commit=TREE, checks=checks)))
    assert not world.do(lambda call: call.tx.has_worked(checks))
    world.do(lambda call: queue_records.end_gate(call, gate.id, gates.Ended(passed=True, code=0)))
    assert world.do(lambda call: call.tx.has_worked(checks))
    now = queue_records.digest(Config(merge=replace(first, **change)))
    assert world.do(lambda call: call.tx.has_worked(now)) is worked
    assert not world.do(lambda call: call.tx.has_passed(TREE, now))


def test_a_gate_that_passed_under_an_older_covey_has_worked(world: World) -> None:
    now = queue_records.digest(Config(merge=Merge(check="make test")))
    older = gates.Started(test=1, base=MAIN, commit=TREE, checks=now.partition("-")[2])
    gate = world.do(lambda call: start_gate(call, older))
    world.do(lambda call: queue_records.end_gate(call, gate.id, gates.Ended(passed=True, code=0)))
    assert world.do(lambda call: call.tx.has_worked(now))
    assert not world.do(lambda call: call.tx.has_worked(queue_records.digest(Config(merge=Merge(check="make other")))))
