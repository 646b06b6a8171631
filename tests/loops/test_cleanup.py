"""What a daemon clears away by itself, and what silence ends, with the clock turned by hand."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import apsw

from covey import config
from covey.app.app import App, Request
from covey.app.context import Principal
from covey.app.verbs import VERBS, decode, fingerprint
from covey.git.project import Project
from covey.loops.cleanup import Cleanup
from covey.loops.expiry import Expiry
from covey.loops.fleet.close import keep_transcript
from covey.store.bus import Bus
from tests.worlds.boards import ManualClock
from tests.worlds.serving import check_database, in_process, make_repository


async def ask(bus: Bus, app: App, name: str, body: bytes, task: str = "", key: str | None = None) -> None:
    """Ask one verb as the owner would."""
    verb = VERBS[name]
    params = dict.fromkeys(verb.params, task)
    request = fingerprint(verb.method, verb.path, body)
    await bus.write(app.job(Request(verb, Principal(), decode(verb.decoder, body), params, key, request)))


def rows_of(project: Project, table: str) -> int:
    """Return how many rows a table has on disk."""
    db = apsw.Connection(str(project.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return len(db.execute(f"SELECT 1 FROM {table}").fetchall())
    finally:
        db.close()


async def live_for_a_day(project: Project) -> tuple[list[int], list[int]]:
    """Keep an answer and a long text, and let a day pass; return what stood on disk before and after."""
    clock = ManualClock()
    settings = config.Config(log=config.Log(keep_megabytes=0.0))
    async with in_process(project, settings, clock) as (app, _, bus):
        cleanup = Cleanup(app, bus.write, partial(bus.write, long=True))
        long = b'{"title": "Long", "body": "' + b"b" * 20_000 + b'"}'
        await ask(bus, app, "task.add", long, key="k")
        await ask(bus, app, "task.drop", b'{"reason": "too long"}', "T-1")
        await cleanup.tick()
        before = [rows_of(project, "requests"), rows_of(project, "blobs")]
        clock.run(25 * 3600)
        await cleanup.tick()
        return before, [rows_of(project, "requests"), rows_of(project, "blobs")]


def test_answers_are_forgotten_after_a_day_and_long_texts_when_their_time_is_over(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "repo")
    before, after = asyncio.run(live_for_a_day(project))
    assert before == [1, 1]
    assert after == [0, 0]
    check_database(project)


async def live_with_output(project: Project) -> None:
    """Let a day pass over what runs printed, of which nothing shall be kept."""
    clock = ManualClock()
    async with in_process(project, config.Config(log=config.Log(keep_megabytes=0.0)), clock) as (app, _, bus):
        app.context.repository = project
        cleanup = Cleanup(app, bus.write, partial(bus.write, long=True))
        await cleanup.tick()
        clock.run(25 * 3600)
        await cleanup.tick()


def test_what_runs_printed_goes_when_its_time_is_over_if_a_transcript_is_kept(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "repo")
    runs = project.state / "runs"
    for name in ("run-1", "run-2"):
        (runs / name).mkdir(parents=True)
        (runs / name / "output").write_bytes(b"printed")
    keep_transcript(runs / "run-1", ["printed"])
    asyncio.run(live_with_output(project))
    assert [(runs / name / "output").exists() for name in ("run-1", "run-2")] == [False, True]


async def stand_still(project: Project) -> list[str]:
    """Claim a task, stand still for longer than a claim lives, and look once, and again after its whole time."""
    clock = ManualClock()
    async with in_process(project, config.Config(board=config.Board(claim_ttl=4)), clock) as (app, _, bus):
        expiry = Expiry(app, bus.read, bus.write)
        await ask(bus, app, "task.add", b'{"title": "Held"}')
        await ask(bus, app, "task.claim", b'{"session": "ada"}', "T-1")
        await expiry.tick()
        seen: list[str] = []
        for seconds in (6.0, 2.0, 2.0):
            clock.run(seconds)
            await expiry.tick()
            task = await bus.read(lambda tx: tx.task("T-1"))
            assert task is not None
            seen.append(task.status)
        return seen


def test_no_claim_ends_within_its_time_after_the_daemon_was_stopped_and_went_on(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "repo")
    assert asyncio.run(stand_still(project)) == ["doing", "doing", "todo"]
