"""Following the board: every change once, in order, whoever hangs up, dies or dawdles."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from covey.app.clock import SystemClock
from covey.config import Config
from covey.git.project import Project
from covey.web import stream
from tests.worlds.serving import (
    PATIENCE,
    Client,
    Daemon,
    Follower,
    Frame,
    Gone,
    all_events,
    in_process,
    make_repository,
    serving,
    wait_until,
)

STATUS_AFTER = {"task.added": "todo", "task.claimed": "doing", "task.released": "todo", "task.dropped": "dropped"}
"""Where a task stands after each kind of event that these tests cause, except for a hand-in."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Serve an empty board."""
    with serving(tmp_path / "repo") as served:
        yield served


# What a client ought to have been told, from the log itself


def expected_rows(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return id and status of one row for each event of a task, in the order of the log."""
    return [
        (event["subject"], STATUS_AFTER.get(event["kind"]) or event["data"]["to"])
        for event in events
        if event["kind"].startswith("task.")
    ]


def told_rows(frames: list[Frame]) -> list[tuple[str, str]]:
    """Return id and status of the rows that a client was told, in the order in which it was told."""
    return [(row["id"], row["status"]) for frame in frames if frame.event == "board" for row in frame.data]


def check_told(told: list[Frame], log: list[dict[str, Any]], last: int) -> None:
    """Check that frames tell every change of these events, as far as the last, once and in order, and no other.

    What the daemon does by itself may come at any moment, and so after the one or the other was looked at.
    """
    frames = [frame for frame in told if frame.id is None or frame.id <= last]
    events = [event for event in log if event["seq"] <= last]
    ids = [frame.id for frame in frames if frame.id is not None]
    assert all(one < other for one, other in pairwise(ids)), ids
    assert told_rows(frames) == expected_rows(events)
    sessions = [
        (event["subject"], event["data"].get("state", "idle"), event["time"])
        for event in events
        if event["kind"] in ("session.registered", "session.changed")
    ]
    rows = [row for frame in frames if frame.event == "sessions" for row in frame.data]
    assert [(row["name"], row["state"], row["updated"]) for row in rows] == sessions
    alerts = [event for event in events if event["kind"] == "alert.raised"]
    assert len([frame for frame in frames if frame.event == "alerts"]) == len(alerts)


def work(client: Client, name: str, rounds: int, rng: random.Random) -> None:
    """Change the board in every way that moves a task."""
    for i in range(rounds):
        client.post("/api/board", {"title": f"{name} {i}", "kind": rng.choice(["change", "report"])})
        reply = client.ask("POST", "/api/claim", {"session": name})
        if reply.status == 204:
            continue
        task = reply.good()
        held = {"session": name, "fence": task["fence"]}
        path = f"/api/board/{task['id']}"
        match rng.randrange(4):
            case 0:
                client.post(f"{path}/release", held)
            case 1:
                client.post(f"{path}/drop", {"reason": "not needed"})
            case 2:
                client.post(f"{path}/handin", held | {"result": "done", "commit": "a" * 40})
            case _:
                client.post("/api/mail", {"session": name, "to": "owner", "text": "still at it"})


@contextmanager
def workers(daemon: Daemon, number: int, rounds: int) -> Iterator[list[threading.Thread]]:
    """Let some sessions change the board meanwhile; a worker whose daemon dies goes home."""

    def run(i: int) -> None:
        with daemon.client() as client:
            try:
                work(client, f"worker-{i}", rounds, random.Random(i))
            except Gone:
                return

    threads = [threading.Thread(target=run, args=(i,)) for i in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.join()


def events_after(daemon: Daemon, seq: int) -> list[dict[str, Any]]:
    """Return the log after an event."""
    with daemon.client() as client:
        return all_events(client, seq)


# What a client is told


def test_a_new_client_gets_counters_sessions_and_the_first_page_and_then_only_what_changed(daemon: Daemon) -> None:
    with daemon.client() as client:
        for i in range(250):
            client.post("/api/board", {"title": f"Task {i}", "priority": i})
        client.post("/api/sessions", {"name": "ada"})
        with Follower(daemon) as follower:
            follower.wait_for(lambda frames: len(frames) >= 3, "the first page")
            counts, sessions, board = follower.frames[:3]
            assert (counts.event, counts.data["todo"]) == ("counts", 250)
            assert (sessions.event, [row["name"] for row in sessions.data]) == ("sessions", ["ada"])
            assert (board.event, board.id) == ("board", daemon.seq())
            assert [row["priority"] for row in board.data] == list(range(249, 49, -1))
            assert board.data == client.get("/api/board")
            first = len(follower.frames)
            client.post("/api/board/T-1/claim", {"session": "ada"})
            follower.wait_for_seq(daemon.seq())
            changed = follower.frames[first:]
            assert told_rows(changed) == [("T-1", "doing")]
            assert [row["name"] for frame in changed if frame.event == "sessions" for row in frame.data] == ["ada"]
            follower.wait_for(lambda frames: any(each.event == "counts" for each in frames[first:]), "the counters")
            counters = follower.of("counts")[-1].data
            assert (counters["todo"], counters["doing"]) == (249, 1)


def test_a_single_change_costs_less_than_two_kilobytes(daemon: Daemon) -> None:
    with daemon.client() as client, Follower(daemon) as follower:
        for i in range(300):
            client.post("/api/board", {"title": "x" * 200, "body": "y" * 20_000, "scope": [f"src/{i}/**"]})
        follower.wait_for_seq(daemon.seq())
        first = len(follower.frames)
        client.post("/api/board/T-7/claim", {"session": "ada"})
        follower.wait_for_seq(daemon.seq())
        follower.wait_for(lambda frames: any(each.event == "counts" for each in frames[first:]), "the counters")
        assert [row["id"] for frame in follower.frames[first:] if frame.event == "board" for row in frame.data] == [
            "T-7"
        ]
        assert sum(frame.size for frame in follower.frames[first:] if frame.event == "board") < 2048
        assert sum(frame.size for frame in follower.frames[first:]) < 4096


def test_what_is_not_shown_as_rows_is_told_as_stale(daemon: Daemon) -> None:
    with daemon.client() as client, Follower(daemon) as follower:
        client.post("/api/leases", {"resources": ["src/**"]})
        client.post("/api/mail", {"to": "owner", "text": "Hello", "session": "ada"})
        client.post("/api/board", {"title": "x"})
        fence = client.post("/api/board/T-1/claim", {"session": "ada"})["fence"]
        client.post("/api/board/T-1/handin", {"session": "ada", "fence": fence, "commit": "a" * 40})
        client.post("/api/permits", {"about": "make"})
        client.post("/api/questions", {"session": "ada", "text": "Which port?"})
        follower.wait_for_seq(daemon.seq())
        (alert,) = follower.of("alerts")
        assert alert.data["type"] == "needs_you" and "Which port?" in alert.data["message"]
        assert [frame.data for frame in follower.of("invalidate")] == [
            {"type": "leases"},
            {"type": "mail"},
            {"type": "merges"},
            {"type": "permits"},
            {"type": "questions"},
        ]


def test_a_quiet_stream_has_a_heartbeat(tmp_path: Path) -> None:
    soon = {"covey.web.stream.HEARTBEAT": 0.5}
    with serving(tmp_path / "repo", constants=soon) as daemon, Follower(daemon) as follower:
        follower.wait_for(lambda frames: any(each.event == "heartbeat" for each in frames), "a heartbeat")
        beat = follower.of("heartbeat")[0]
        assert beat.data == {} and beat.id is None


def test_a_stream_on_which_much_is_told_has_its_heartbeats_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def follow() -> list[bytes]:
        subscriber = stream.Subscriber()
        told: list[bytes] = []
        subscriber.offer(news)
        async for data in stream.live(subscriber, 0):
            told.append(data)
            if told.count(beat) == 3 or len(told) > 10_000:
                break
            await asyncio.sleep(0.001)
            subscriber.offer(news)
        return told

    monkeypatch.setattr(stream, "HEARTBEAT", 0.02)
    news, beat = stream.Frame(1, stream.frame("live", {})), stream.frame("heartbeat", {})
    told = asyncio.run(follow())
    assert told.count(beat) == 3 and told.count(news.data) > 3


# Coming back


def test_a_client_that_comes_back_at_any_event_is_told_each_change_since_then_once(daemon: Daemon) -> None:
    with workers(daemon, 4, 40):
        pass
    last = daemon.seq()
    events = events_after(daemon, 0)
    counts = daemon.ask("GET", "/api/status").good()["counts"]
    rng = random.Random(7)
    for after in [0, 1, last - 1, *rng.sample(range(last), 12)]:
        with Follower(daemon, after) as follower:
            follower.wait_for_seq(last)
            check_told(follower.frames, events[after:], last)
            follower.wait_for(lambda _, told=follower: bool(told.of("counts")), "the counters")  # type: ignore[misc]
            assert follower.of("counts")[-1].data == counts


def test_a_client_that_missed_nothing_is_told_nothing(daemon: Daemon) -> None:
    with daemon.client() as client, Follower(daemon, daemon.seq()) as follower:
        client.post("/api/board", {"title": "x"})
        follower.wait_for_seq(daemon.seq())
        assert told_rows(follower.frames) == [("T-1", "todo")]


def follow_through(daemon: Daemon, begin: int, working: Callable[[], bool], rng: random.Random) -> None:
    """Follow while others work, hanging up at random and coming back with the last id; check that all was told."""
    seen: list[Frame] = []
    last = begin
    while working():
        wanted = rng.randrange(1, 40)
        with Follower(daemon, last) as follower:
            wait_until(lambda f=follower, w=wanted: len(f.frames) >= w or not working(), "some frames")  # type: ignore[misc]
        last = follower.last or last
        seen += follower.frames
    with Follower(daemon, last) as follower:
        end = daemon.seq()
        wait_until(lambda: max(last, follower.last or 0) >= end, "the rest")
    check_told(seen + follower.frames, events_after(daemon, begin), end)


def test_a_client_that_hangs_up_at_random_while_others_write_is_told_everything_once(daemon: Daemon) -> None:
    before = daemon.seq()
    with workers(daemon, 4, 60) as threads:
        follow_through(daemon, before, lambda: any(thread.is_alive() for thread in threads), random.Random(3))


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.soak)])
def test_a_client_that_comes_back_across_kills_is_told_every_change_once(daemon: Daemon, kills: int) -> None:
    before = last = daemon.seq()
    told: list[Frame] = []
    rng = random.Random(11)
    for _ in range(kills):
        with workers(daemon, 4, 1000), Follower(daemon, last) as follower:
            wanted = rng.randrange(50, 400)
            wait_until(lambda f=follower, w=wanted: len(told_rows(f.frames)) >= w, "some changes")  # type: ignore[misc]
            daemon.kill()
            assert follower.ended.wait(PATIENCE)
        told += follower.frames
        last = follower.last or last
        daemon.start()
    end = daemon.seq()
    with Follower(daemon, last) as follower:
        follower.wait_for_seq(end)
    events = events_after(daemon, before)
    check_told(told + follower.frames, events, end)
    assert sum(event["kind"] == "daemon.started" for event in events) == kills


@pytest.mark.parametrize("after", [10**9, 10**18 - 1])
def test_a_client_that_is_ahead_of_the_log_starts_afresh(daemon: Daemon, after: int) -> None:
    with daemon.client() as client:
        client.post("/api/board", {"title": "x"})
    with Follower(daemon, after) as follower:
        follower.wait_for(lambda frames: len(frames) >= 4, "a fresh page")
        assert [frame.event for frame in follower.frames[:4]] == ["invalidate", "counts", "sessions", "board"]
        assert follower.frames[3].id == daemon.seq()
        assert told_rows(follower.frames) == [("T-1", "todo")]


@pytest.mark.parametrize("far", [2_000, pytest.param(20_000, marks=pytest.mark.soak)])
def test_a_client_that_is_too_far_behind_starts_afresh(tmp_path: Path, far: int) -> None:
    with serving(tmp_path / "repo", constants={"covey.web.stream.FAR_BEHIND": far}) as daemon:
        behind = daemon.seq()
        with daemon.client() as client:
            for start in range(0, far + 1, 1000):
                tasks = [{"key": f"k{start + i}", "title": "x"} for i in range(1000)]
                client.post("/api/board/import", {"tasks": tasks})
        with Follower(daemon, behind) as follower:
            follower.wait_for(lambda frames: len(frames) >= 4, "a fresh page")
            assert [frame.event for frame in follower.frames[:4]] == ["invalidate", "counts", "sessions", "board"]
            assert len(follower.frames[3].data) == 200
        with Follower(daemon, daemon.seq() - far + 100) as follower:
            follower.wait_for_seq(daemon.seq())
            assert len(told_rows(follower.frames)) == far - 100


# Many, and slow ones


@pytest.mark.parametrize("number", [100, pytest.param(500, marks=pytest.mark.soak)])
def test_a_hundred_clients_are_all_told_everything(daemon: Daemon, number: int) -> None:
    with ExitStack() as stack:
        followers = [stack.enter_context(Follower(daemon, 0)) for _ in range(number)]
        with workers(daemon, 4, 15):
            pass
        last = daemon.seq()
        for follower in followers:
            follower.wait_for_seq(last)
        events = events_after(daemon, 0)
        for follower in followers:
            check_told(follower.frames, events, last)


def dawdle(daemon: Daemon) -> socket.socket:
    """Return a subscriber that has asked and reads nothing, with a window as small as can be."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(PATIENCE)
    raw.connect(("127.0.0.1", daemon.port))
    asking = (
        f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nAuthorization: Bearer {daemon.token}\r\n\r\n"
    )
    raw.sendall(asking.encode())
    return raw


def drain(raw: socket.socket) -> bytes:
    """Read all that is left of a stream until its last chunk."""
    data = b""
    while not data.endswith(b"\r\n0\r\n\r\n") and (part := raw.recv(65536)):
        data += part
    return data


def flood(daemon: Daemon, megabytes: int) -> int:
    """Change a task with a large row until so much was told to everyone; return how many rows that were."""
    with daemon.client() as client, Follower(daemon, daemon.seq()) as follower:
        scope = [f"{i}/" + "s" * 900 for i in range(60)]
        task = client.post("/api/board", {"title": "x", "scope": scope})["id"]
        changes = megabytes * 1024 * 1024 // (60 * 900) + 1
        for i in range(changes):
            client.ask("PATCH", f"/api/board/{task}", {"priority": i + 1}).good()
        follower.wait_for_seq(daemon.seq())
        assert len(told_rows(follower.frames)) == changes + 1
        assert sum(frame.size for frame in follower.frames) > megabytes * 1024 * 1024
    return changes


def test_a_client_that_reads_nothing_slows_nobody_grows_nothing_and_is_cut(daemon: Daemon) -> None:
    flood(daemon, 2)
    before = daemon.resident()
    slow = [dawdle(daemon) for _ in range(20)]
    try:
        changes = flood(daemon, 16)
        grown = daemon.resident() - before
        assert grown < 16 * 1024 * 1024, f"20 slow clients cost {grown / 2**20:.0f} MiB"
        for raw in slow:
            data = drain(raw)
            assert data.count(b"event: board") < changes, "a slow client was not cut"
    finally:
        for raw in slow:
            raw.close()


def test_a_client_that_reads_nothing_does_not_delay_a_stop(daemon: Daemon) -> None:
    slow = [dawdle(daemon) for _ in range(3)]
    flood(daemon, 4)
    begun = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - begun < 20
    for raw in slow:
        raw.close()


def is_kept(daemon: Daemon, raw: socket.socket) -> bool:
    """Say whether the daemon's end of a connection is still there."""
    ends = f":{daemon.port:04X}", f":{raw.getsockname()[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(ends[0]) and row[2].endswith(ends[1]) for row in rows)


@pytest.mark.soak
def test_the_connection_of_a_client_that_never_reads_is_closed(daemon: Daemon) -> None:
    with dawdle(daemon) as raw:
        flood(daemon, 8)
        assert is_kept(daemon, raw)
        deadline = time.monotonic() + 240
        while is_kept(daemon, raw):
            assert time.monotonic() < deadline, "the daemon still keeps what nobody reads"
            time.sleep(1)


async def follow_and_hang_up(project: Project) -> None:
    """Follow in this process, hang up, and see that the daemon's list of subscribers is empty again."""
    here, gone = asyncio.Event(), asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        here.set()

    token = f"Bearer {project.owner_token.read_text()}".encode()
    headers = [(b"host", b"localhost:1"), (b"authorization", token)]
    scope = {"type": "http", "method": "GET", "path": "/api/events", "headers": headers, "scheme": "http"}
    async with in_process(project, Config(), SystemClock()) as (_, web, _):
        following = asyncio.create_task(web(scope, receive, send))
        await asyncio.wait_for(here.wait(), PATIENCE)
        assert len(web.hub) == 1
        gone.set()
        await asyncio.wait_for(following, PATIENCE)
        assert len(web.hub) == 0


def test_a_client_that_hung_up_is_forgotten_although_nothing_changes(tmp_path: Path) -> None:
    asyncio.run(follow_and_hang_up(make_repository(tmp_path / "repo")))


def test_streams_end_when_the_daemon_stops(daemon: Daemon) -> None:
    with Follower(daemon) as follower:
        follower.wait_for(lambda frames: len(frames) >= 3, "the first page")
        assert daemon.stop() == 0
        assert follower.ended.wait(PATIENCE)


def test_the_stream_of_a_replaced_token_ends(daemon: Daemon) -> None:
    daemon.ask("POST", "/api/sessions", {"name": "ada"}).good()
    token = daemon.ask("POST", "/api/sessions/ada/token", {}).good()["token"]
    with Follower(daemon, token=token) as follower, Follower(daemon) as owner:
        follower.wait_for(lambda frames: len(frames) >= 3, "the first page")
        daemon.ask("POST", "/api/sessions/ada/token", {}).good()
        assert follower.ended.wait(PATIENCE)
        assert not owner.ended.is_set()


def test_a_task_that_has_to_wait_again_is_shown_as_not_ready(daemon: Daemon) -> None:
    parent = daemon.ask("POST", "/api/board", {"title": "Parent"}).good()["id"]
    with Follower(daemon) as follower:
        follower.wait_for(lambda frames: len(frames) >= 3, "the first page")
        daemon.ask("POST", "/api/board", {"title": "Child", "parent": parent}).good()
        follower.wait_for(
            lambda frames: any(
                row["id"] == parent and not row["ready"]
                for frame in frames[3:]
                if frame.event == "board"
                for row in frame.data
            ),
            "the parent that waits",
        )
