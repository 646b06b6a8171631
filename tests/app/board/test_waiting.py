"""Why nothing happens: every task that waits and every idle session has its reason, and none contradicts the claim."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.app.board import task_verbs
from covey.app.board.waiting import Look
from covey.app.context import Call
from covey.app.fleet import runs
from covey.app.shapes.board import Claim
from covey.config import AgentSettings, Board, Budget, Config, Merge
from covey.core.board import waiting, waiting_words
from covey.core.board.waiting import Cause
from covey.core.fleet.runs import Run
from covey.core.fleet.sessions import SessionKind
from covey.core.fleet.start_limits import Wait
from covey.errors import Denied, Refused
from tests.worlds.boards import Principal, Remembers, World


def why(world: World, task: str) -> Any:
    """Return why a task waits."""
    return world.task(task)["waits"]


def idle(world: World, session: str) -> Any:
    """Return why a session idles."""
    told = world.ask("wait.list")["sessions"]
    return next((each for each in told if each["session"] == session), None)


def standstills(world: World) -> list[Any]:
    """Return what the inbox tells of tasks that wait."""
    return [row for row in world.ask("inbox.list") if row["kind"] == "waits"]


# What is told never contradicts the claim

NAMES = ("ada", "bob", "cy")
SCOPES: tuple[list[str], ...] = ([], ["a/**"], ["a/x.py"], ["b/**"])
a_session = st.fixed_dictionaries(
    {
        "agent": st.sampled_from([None, "scripted"]),
        "role": st.sampled_from([None, "qa"]),
        "wip": st.sampled_from([None, 1]),
        "deed": st.sampled_from(["start", "start", "start", "stop", "pause"]),
        "busy": st.sampled_from([False, False, True]),
    }
)
a_task = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["todo", "todo", "todo", "backlog"]),
        "role": st.sampled_from([None, None, "qa", "docs"]),
        "assignee": st.sampled_from([None, None, "ada", "bob", "ghost"]),
        "priority": st.integers(0, 2),
        "scope": st.sampled_from(SCOPES),
        "overlap": st.booleans(),
        "budget": st.sampled_from([None, 1.0]),
    }
)


def arrange(world: World, workers: list[dict[str, Any]], tasks: list[dict[str, Any]]) -> None:
    """Put sessions and tasks onto a board, some of them at work."""
    for number, fields in enumerate(tasks):
        known = world.ask("task.list", limit=1000)
        needs = [known[0]["id"]] if number % 4 == 3 else []
        world.add(needs=needs, **{name: value for name, value in fields.items() if value is not None})
    for name, worker in zip(NAMES, workers, strict=False):
        agent = worker["agent"]
        given = {"role": worker["role"], **({"agent": agent} if agent else {"wip": worker["wip"]})}
        world.ask("session.new", name=name, **{key: value for key, value in given.items() if value is not None})
        if agent and worker["deed"] != "stop":
            world.ask("session.start", name=name)
        if worker["busy"]:
            _ = world.would_begin(name) if agent else world.ask("task.next", session=name)
        if agent and worker["deed"] == "pause":
            world.ask("session.pause", name=name)


class Undone(Exception):
    """What was tried is taken back."""


def claims(world: World, name: str) -> str | None:
    """Return the task that a session would get now, by the claim itself; nothing changes."""
    got: str | None = None

    def job(call: Call) -> None:
        nonlocal got
        session = call.known(name)
        if session.kind is SessionKind.RUN:
            run = runs.begin(call, name, world.day)
            holds = [task.id for task in call.tx.held_by(name)]
            got = run.task if isinstance(run, Run) and holds == [run.task] else None
        else:
            task = task_verbs.next_task(call, Claim(session=name))
            got = None if task is None else task.id
        raise Undone

    with contextlib.suppress(Undone, Refused):
        world.do(job)
    return got


@settings(max_examples=40, deadline=None)
@given(
    workers=st.lists(a_session, min_size=1, max_size=3),
    tasks=st.lists(a_task, min_size=2, max_size=7),
    daemon=st.sampled_from([True, True, True, False]),
    paused=st.sampled_from([False, False, False, True]),
    most=st.sampled_from([0, 1]),
    day=st.sampled_from([0.0, 5.0]),
)
def test_a_task_is_said_to_be_next_for_a_session_if_and_only_if_the_claim_gives_it(
    workers: list[dict[str, Any]], tasks: list[dict[str, Any]], daemon: bool, paused: bool, most: int, day: float
) -> None:
    config = replace(
        Config(),
        board=replace(Board(), max_in_review=most),
        budget=replace(Budget(), day=day, run=4.0 if day else 0.0),
        merge=replace(Merge(), review=True),
    )
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), config)
        arrange(world, workers, tasks)
        if most:
            reviewed = world.add()
            world.claim(reviewed, "dee", overlap=True)
            world.hand_in(reviewed, "dee", commit="a" * 40)
        if paused:
            world.ask("fleet.pause")
        world.app.context.has_daemon = daemon
        found = {row["id"]: row for row in world.ask("task.list", limit=1000)}
        names = [row["name"] for row in world.ask("session.list") if row["name"] in NAMES]

        def look(call: Call) -> tuple[dict[str, waiting.Reason], dict[str, str]]:
            told = Look(call)
            board_now = call.tx.board(status=None, session=None, limit=1000, after=None)
            return told.reasons(board_now), {each.session: each.text for each in told.session_waits()}

        reasons, idles = world.do(look)
        at_work = {run.session for run in world.store.read(lambda tx: tx.open_runs())}
        is_run = {row["name"]: row["kind"] == "run" for row in world.ask("session.list")}
        free = [name for name in names if name not in at_work]
        got = {name: claims(world, name) for name in free if daemon or not is_run[name]}
        said = {(task, name) for task, why in reasons.items() if why.cause is Cause.NEXT for name in why.sessions}
        assert {pair for pair in said if pair[1] in NAMES} == {(task, name) for name, task in got.items() if task}
        waits = {task for task, row in found.items() if row["status"] in ("todo", "backlog")}
        assert waits <= reasons.keys()
        assert all(waiting_words.sentence(reason).endswith((".", ")")) for reason in reasons.values())
        for name in names:
            holds = any(row["session"] == name and row["status"] == "doing" for row in found.values())
            assert name in idles or holds, name
        world.store.close()


# One sentence for each


def test_a_role_that_nobody_has_is_told_once_for_all_its_tasks_until_somebody_has_it(world: World) -> None:
    world.at_work("ada")
    first = world.add(role="qa")
    for _ in range(202):
        world.add(role="qa")
    told = why(world, first)
    assert (told["cause"], told["text"]) == ("no-role", "It is for the role qa, and no session has it.")
    assert told["person"] and "covey session new --role qa --start" in told["command"]
    (item,) = standstills(world)
    assert item["title"] == "203 tasks are for the role qa, and no session has it"
    assert len(item["tasks"]) == 203 and "--role qa" in item["text"]
    assert idle(world, "ada")["text"] == "203 tasks wait, and all are for others."
    assert [row["text"] for row in world.ask("status")["waits"]] == [f"{item['title']}."]
    world.at_work("rita", role="qa")
    assert standstills(world) == []
    assert why(world, first)["cause"] == "next"


def test_many_roles_that_nobody_has_are_one_entry(world: World) -> None:
    for role in ("qa", "docs", "ops", "ux"):
        world.add(role=role)
        world.add(role=role)
    (item,) = standstills(world)
    assert item["title"].startswith("8 tasks are for 4 roles (") and item["title"].endswith("no session has them")
    assert len(item["tasks"]) == 8


def test_an_assignee_that_does_not_exist_or_is_stopped_is_told(world: World) -> None:
    ghost = world.add(assignee="ghost")
    assert why(world, ghost)["text"] == "It is for ghost, and there is no session ghost."
    world.ask("session.new", name="ada", agent="scripted")
    mine = world.add(assignee="ada")
    told = why(world, mine)
    assert (told["text"], told["command"]) == ("It is for ada, and ada is stopped.", "covey session start ada")
    by_cause = {item["key"].split(":")[1]: item for item in standstills(world)}
    assert by_cause.keys() == {"no-assignee", "stopped"}
    assert (by_cause["stopped"]["ids"], by_cause["stopped"]["decisions"]) == (["ada"], ["start"])
    world.ask("session.start", name="ada")
    assert [item["key"].split(":")[1] for item in standstills(world)] == ["no-assignee"]


def test_work_that_came_back_waits_for_its_busy_author(world: World) -> None:
    world.at_work("ada")
    first = world.add()
    run = world.begin("ada")
    merge = world.hand_in(first, "ada", commit="a" * 40)
    world.ask("merge.reject", id=merge, reason="Not like this")
    second = world.add(priority=5)
    assert world.task(first)["front"] == "ada"
    assert why(world, first)["text"] == "It is with ada, and ada is at work."
    assert run.task == first
    assert why(world, second)["text"] == "ada is at work."
    assert standstills(world) == []


def test_files_that_meet_needs_and_the_backlog_are_told_with_what_is_in_the_way(world: World) -> None:
    first = world.add(scope=["src/**"])
    world.claim(first, "ada")
    meets = world.add(scope=["src/a.py"])
    world.ask("session.new", name="bob")
    later = world.add(needs=[first])
    part = world.add()
    whole = world.add()
    world.ask("task.edit", id=part, parent=whole)
    put_off = world.add(status="backlog")
    assert why(world, meets)["text"] == f"It may write the same files as {first}, at which ada is at work."
    assert why(world, later)["text"] == f"It needs {first}."
    assert why(world, whole)["text"] == f"It waits for its parts: {part}."
    assert why(world, put_off)["text"] == "It is in the backlog, so nobody takes it."
    assert why(world, put_off)["command"] == f"covey task edit {put_off} --status todo"
    assert why(world, first) is None


def test_a_session_that_has_only_colliding_work_is_told_so(world: World) -> None:
    first = world.add(scope=["src/**"])
    world.claim(first, "ada")
    world.add(scope=["src/a.py"])
    world.at_work("bob")
    text = idle(world, "bob")["text"]
    assert text == f"What waits for it has to wait: It may write the same files as {first}, at which ada is at work."


def test_a_daemon_that_is_not_there_is_told_once(tmp_path: Path) -> None:
    world = World(tmp_path, daemon=False)
    world.at_work("ada")
    world.add()
    task = world.add(assignee="ada")
    assert (why(world, task)["cause"], why(world, task)["command"]) == ("no-daemon", "covey up")
    (item,) = standstills(world)
    assert item["title"] == "2 tasks wait: no daemon runs, so no session starts"
    assert idle(world, "ada")["text"] == "No daemon runs, so no session starts."
    world.store.close()


def test_a_session_at_work_needs_no_daemon_to_be_so(tmp_path: Path) -> None:
    world = World(tmp_path, daemon=False)
    world.at_work("ada")
    task = world.add()
    world.begin("ada")
    later = world.add()
    assert idle(world, "ada") is None
    assert why(world, task) is None
    assert why(world, later)["cause"] == "no-daemon"
    world.store.close()


def test_the_sessions_of_a_run_are_said_to_work_on_its_tasks_alone(world: World) -> None:
    own = world.add(batch="night")
    (name,) = world.ask("batch.start", name="night", sessions=1, agent="scripted")["sessions"]
    world.ask("task.block", id=own, reason="Which one?")
    world.add()
    told = "It works only on the tasks of its run, night, and none of them is for it; a task waits for others."
    assert idle(world, name)["text"] == told
    (waits,) = world.ask("status")["waits"]
    assert waits["text"] == (
        f"A task waits: there is no session that could take it ({name} works only on the tasks of its run)."
    )


def test_what_nobody_but_workers_of_your_own_could_take_is_told_with_covey_run(world: World) -> None:
    world.ask("session.new", name="rita")
    first, second = world.add(), world.add(assignee="rita")
    reasons = {each["cause"]: each for each in world.ask("wait.list")["lanes"] if each["tasks"] == [first]}
    assert reasons["outside"]["command"] == "covey run works on it; or covey task next --as rita"
    assert "covey run" not in why(world, second)["command"]


def test_a_task_of_a_run_that_is_gone_is_told_in_plain_words(world: World) -> None:
    task = world.add(batch="batch-1")
    assert why(world, task)["text"] == "It is for the run of batch-1, and no session of it is left."


def test_a_need_that_waits_for_a_person_is_told_as_such(tmp_path: Path) -> None:
    world = World(tmp_path, replace(Config(), merge=replace(Merge(), review=True)))
    blocked, review = world.add(), world.add()
    one, two = world.add(needs=[blocked]), world.add(needs=[blocked, review])
    whole = world.add()
    world.ask("task.edit", id=blocked, parent=whole)
    world.ask("task.block", id=blocked, reason="Which one?")
    world.claim(review, "ada")
    world.hand_in(review, "ada", commit="a" * 40)
    assert why(world, one)["text"] == f"It needs {blocked}, which is blocked and waits for you."
    assert why(world, one)["command"] == f"covey task show {blocked}"
    assert why(world, two)["text"] == (
        f"It needs {blocked} and {review}; {blocked} is blocked and waits for you;"
        f" {review} is in review and waits for you."
    )
    assert why(world, whole)["text"] == f"It waits for its parts: {blocked}, which is blocked and waits for you."
    world.store.close()


def test_without_any_session_the_status_says_so_and_the_inbox_stays_quiet(world: World) -> None:
    world.add()
    (told,) = world.ask("status")["waits"]
    assert told["text"] == "A task waits: there is no session that could take it."
    assert told["command"].startswith("covey run")
    assert standstills(world) == []


def test_a_budget_that_others_have_set_aside_is_told_on_the_session_and_on_the_task(tmp_path: Path) -> None:
    config = replace(Config(), budget=replace(Budget(), day=5.0, run=4.0))
    world = World(tmp_path, config)
    world.at_work("ada")
    world.at_work("bob")
    world.add()
    world.begin("ada")
    task = world.add()
    told = idle(world, "bob")
    assert told["cause"] == "share"
    assert told["text"] == "It waits: What is left of the $5.00 of today is set aside for runs at work."
    assert why(world, task)["text"] == "ada is at work on T-1."
    world.store.close()


def test_what_the_daemon_remembers_of_a_start_is_the_reason_with_its_end(world: World) -> None:
    world.at_work("ada")
    task = world.add()
    wait = Wait("resets at nine", 1_750_003_600.0, news=True, cause=Cause.PROVIDER)
    world.app.context.fleet = Remembers(wait=wait)
    told = why(world, task)
    assert (told["cause"], told["text"], told["until"]) == ("provider", "ada waits: resets at nine.", 1_750_003_600.0)
    assert world.ask("session.why", name="ada")["waits"]["text"] == "It waits: resets at nine."
    live = world.ask("live.show")
    assert live["waits"]["lanes"][""]["text"] == told["text"]
    assert live["sessions"][0]["waits"]["text"] == "It waits: resets at nine."
    world.ask("session.pause", name="ada")
    assert (why(world, task)["text"], why(world, task)["command"]) == ("ada is paused.", "covey session resume ada")


def test_an_agent_that_is_given_nothing_of_its_task_runs_nobodys_words(tmp_path: Path) -> None:
    world = World(tmp_path, Config(agents={"sh": AgentSettings(command=("sh", "-c", "make mend"))}))
    world.ask("session.new", name="rita")
    world.ask("task.add", Principal("rita"), title="Mend", body="Look at the tests first.")
    world.at_work("ada", agent="sh")
    assert world.would_begin("ada") is not None
    world.store.close()


@pytest.mark.parametrize("command", [("sh", "{body_file}"), ("sh", "-c", "{title}")])
def test_words_that_a_session_wrote_wait_for_a_person_where_all_agents_run_scripts(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    world = World(tmp_path, Config(agents={"sh": AgentSettings(command=command)}))
    world.ask("session.new", name="rita")
    task = world.ask("task.add", Principal("rita"), title="Run me", body="true")["id"]
    world.at_work("ada", agent="sh")
    assert why(world, task)["text"] == "rita gets it next, when it asks."
    assert why(world, task)["command"] == "covey task next --as rita"
    world.ask("session.remove", name="rita")
    assert why(world, task)["text"] == "ada would run its text as a script, and a session wrote that."
    assert world.would_begin("ada") is None
    world.store.close()


def test_a_revert_that_an_older_covey_added_for_its_owner_is_no_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(agents={"sh": AgentSettings(command=("sh", "{body_file}"))}, merge=Merge(check="true"))
    world = World(tmp_path, config)
    task = world.add()
    world.claim(task, "bob")
    merge = world.hand_in(task, "bob", commit="c" * 40)
    world.ask("session.remove", name="bob")
    world.ask("merge.land", id=merge, commit="a" * 40)
    with monkeypatch.context() as older:
        older.setattr(Call, "by_covey", lambda call: call)
        made = world.ask("merge.revert", id=merge)
    world.ask("merge.reject", id=made["id"], reason="It conflicts")
    world.at_work("ada", agent="sh")
    world.ask("task.edit", id=made["task"], assignee="ada")
    assert world.task(made["task"])["author"] == "owner"
    assert why(world, made["task"])["cause"] == Cause.PROSE
    assert world.would_begin("ada") is None
    world.ask("task.edit", id=made["task"], body="git revert HEAD")
    assert world.begin("ada").task == made["task"]
    world.store.close()


@pytest.mark.parametrize("verb", ["merge.revert", "merge.queue"])
def test_words_that_covey_wrote_are_no_script_until_a_person_writes_one(tmp_path: Path, verb: str) -> None:
    config = Config(agents={"sh": AgentSettings(command=("sh", "{body_file}"))}, merge=Merge(check="true"))
    world = World(tmp_path, config)
    if verb == "merge.revert":
        task = world.add()
        world.claim(task, "bob")
        merge = world.hand_in(task, "bob", commit="c" * 40)
        world.ask("session.remove", name="bob")
        world.ask("merge.land", id=merge, commit="a" * 40)
        wish: dict[str, Any] = {"id": merge}
    else:
        wish = {"branch": "mine", "commit": "b" * 40, "title": "Mine"}
    world.at_work("ada", agent="sh")
    made = world.ask(verb, **wish)
    task = made["task"]
    world.ask("merge.reject", id=made["id"], reason="It conflicts")
    world.ask("task.edit", id=task, title="Better", assignee="ada")
    prose = f"{task} is written for somebody who reads; ada would run it as a script."
    assert world.would_begin("ada") is None
    assert why(world, task)["text"] == "It is written for somebody who reads; ada would run it as a script."
    (row,) = [row for row in world.ask("inbox.list") if row["task"] == task]
    assert row["text"].startswith("It is written for somebody who reads") and "covey task claim" in row["text"]
    world.ask("task.claim", id=task, session="ada")
    waits = world.would_begin("ada")
    assert isinstance(waits, Wait) and waits.why == prose
    world.ask("task.release", id=task, session="ada")
    world.ask("task.edit", id=task, body="git revert HEAD")
    assert world.begin("ada").task == task
    world.store.close()


def test_a_task_without_a_body_is_passed_over_by_who_runs_bodies_until_it_has_one(tmp_path: Path) -> None:
    config = Config(agents={"sh": AgentSettings(command=("sh", "{body_file}"))}, merge=Merge(check="true"))
    world = World(tmp_path, config)
    world.at_work("ada", agent="sh")
    task = world.add(body=" \n")
    assert world.would_begin("ada") is None
    assert why(world, task)["text"] == "It has no body, and ada runs bodies."
    assert why(world, task)["cause"] == Cause.NO_BODY
    assert why(world, task)["command"] == f"covey task edit {task} --body TEXT"
    (row,) = [row for row in world.ask("inbox.list") if row["task"] == task]
    assert row["text"] == f"{task} has no body, and ada runs bodies: covey task edit {task} --body TEXT"
    world.ask("task.claim", id=task, session="ada")
    waits = world.would_begin("ada")
    assert isinstance(waits, Wait) and waits.cause is Cause.NO_BODY
    world.ask("task.release", id=task, session="ada")
    world.ask("task.edit", id=task, body="true")
    assert world.begin("ada").task == task
    world.store.close()


def test_what_one_who_reads_may_take_is_not_in_the_inbox_because_others_run_scripts(tmp_path: Path) -> None:
    config = Config(agents={"sh": AgentSettings(command=("sh", "{body_file}"))}, merge=Merge(check="true"))
    world = World(tmp_path, config)

    def told() -> dict[str, str]:
        return {row["task"]: row["text"].partition(",")[0] for row in world.ask("inbox.list") if row["task"]}

    for name in ("rita", "bob"):
        world.ask("session.new", name=name)
    made = world.ask("merge.queue", branch="mine", commit="b" * 40, title="Mine")
    world.ask("merge.reject", id=made["id"], reason="It conflicts")
    prose = made["task"]
    world.ask("task.edit", id=prose, assignee="rita", priority=1)
    unvouched = world.ask("task.add", Principal("bob"), title="Run me", body="true")["id"]
    world.at_work("ada", agent="sh")
    assert (why(world, prose)["text"], told()) == ("rita gets it next, when it asks.", {})
    world.ask("session.remove", name="bob")
    assert (why(world, unvouched)["cause"], told()) == ("behind", {})
    world.ask("session.remove", name="rita")
    assert told() == {unvouched: "bob wrote it"}
    world.store.close()


def test_a_run_whose_agents_are_scripts_is_over_when_only_words_are_left(tmp_path: Path) -> None:
    world = World(
        tmp_path, Config(agents={"sh": AgentSettings(command=("sh", "{body_file}"))}, merge=Merge(check="true"))
    )
    made = world.ask("merge.queue", branch="mine", commit="b" * 40, title="Mine")
    world.ask("merge.reject", id=made["id"], reason="It conflicts")
    world.ask("batch.start", name="batch-1", sessions=1, all=True, agent="sh")
    assert world.ask("batch.show", name="batch-1")["over"]
    world.ask("task.edit", id=made["task"], body="git revert HEAD")
    assert not world.ask("batch.show", name="batch-1")["over"]
    world.store.close()


def test_a_session_is_not_told_of_the_others(world: World) -> None:
    task = world.add(role="qa")
    world.claim(world.add(), "ada")
    assert world.ask("task.show", Principal("ada"), id=task)["waits"] is None
    assert world.ask("status", Principal("ada"))["waits"] == []
    with pytest.raises(Denied):
        world.ask("wait.list", Principal("ada"))


def test_every_status_that_is_open_has_a_sentence(world: World) -> None:
    done = world.add()
    world.finish(done)
    review = world.add()
    world.claim(review, "ada")
    world.hand_in(review, "ada", commit="a" * 40)
    blocked = world.add()
    world.ask("task.block", id=blocked, reason="Which one?")
    assert (why(world, done), why(world, review)["cause"]) == (None, "merging")
    assert why(world, blocked)["text"] == "Which one?"


def test_how_many_tasks_there_are_does_not_change_what_a_look_asks_of_the_store(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.at_work("ada")
    asked: list[int] = []

    def look(call: Call) -> None:
        read, counted = call.tx.db.rows, []

        def count(sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            counted.append(sql)
            return read(sql, values)

        found = call.tx.board(status=None, session=None, limit=1000, after=None)
        with monkeypatch.context() as patch:
            patch.setattr(call.tx.db, "rows", count)
            told = Look(call)
            assert len(told.reasons(found)) == len(found)
            assert told.lane_waits() and told.session_waits() and told.now().lanes
        asked.append(len(counted))

    for count in (1, 60):
        for _ in range(count):
            world.add(role="qa")
        world.do(look)
    assert asked[0] == asked[1]


def test_pages_are_told_of_the_largest_lanes_alone_however_many_there_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covey.app.board.waiting.MAX_LANES_TOLD", 3)
    for number in range(6):
        world.add(assignee=f"nobody-{number}")
    for _ in range(2):
        world.add(assignee="nobody-5")
        world.add(role="qa")
    assert list(world.ask("live.show")["waits"]["lanes"]) == ["s:nobody-5", "r:qa", "s:nobody-0"]
    assert sum(each["count"] for each in world.ask("wait.list")["lanes"]) == 10


@pytest.mark.parametrize("count", [None, 1, 2])
def test_a_sentence_begins_large_and_a_name_as_its_owner_wrote_it(count: int | None) -> None:
    begins = {None: "", 1: "A task waits: ", 2: "2 tasks wait: "}[count]

    def told(cause: Cause, *sessions: str) -> str:
        return waiting_words.sentence(waiting.Reason(cause=cause, sessions=sessions), count).removeprefix(begins)

    def large(text: str) -> str:
        return text if begins else text[0].upper() + text[1:]

    assert told(Cause.PAUSED, "all-of-us") == "all-of-us is paused."
    assert told(Cause.PAUSED, *"abcdefghij") == large("all 10 sessions are paused.")
    assert told(Cause.FLEET_PAUSED) == large("the whole fleet is paused.")
    assert told(Cause.NO_SESSION) == large(f"there is no session that could take {'them' if count == 2 else 'it'}.")
