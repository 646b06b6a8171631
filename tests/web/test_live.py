"""This moment on the stream: what each session does, told to who looks, and only what has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from covey.app.clock import SystemClock
from covey.app.fleet.live import Basis
from covey.app.shapes.board import WaitsNow
from covey.app.shapes.costs import SpentToday
from covey.errors import CoveyError, Unavailable
from covey.loops.fleet.fleet_memory import FleetMemory
from covey.loops.live import Live, Moment
from tests.worlds.projects import SHELL, Line, make_line
from tests.worlds.serving import Client, Follower, Frame, wait_until


class Here:
    """Where a daemon answers, for one who follows it."""

    def __init__(self, client: Client) -> None:
        self.port, self.token = client.port, client.token


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """Serve a project whose agents are shell scripts."""
    made = make_line(tmp_path_factory.mktemp("live"), SHELL)
    made.up()
    yield made
    made.end()


@pytest.fixture
def client(line: Line) -> Iterator[Client]:
    with line.client() as connected:
        yield connected


def follow(client: Client) -> Follower:
    return Follower(Here(client))  # type: ignore[arg-type]


def begin(line: Line, client: Client, name: str, body: str) -> str:
    """Let a session work on a script, and return its task."""
    task = client.post("/api/board", {"title": f"For {name}", "body": body, "assignee": name})["id"]
    client.post("/api/sessions", {"name": name, "agent": "sh"})
    client.post(f"/api/sessions/{name}/start")
    return str(task)


def calls(tool: str, about: str) -> str:
    return f'echo \'{{"covey": "calls", "id": "{about}", "tool": "{tool}", "about": "{about}"}}\'\n'


def wait(mark: Path) -> str:
    return f"while [ ! -e {mark} ]; do sleep 0.02; done\n"


def told(follower: Follower, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until a row of a session was told that fulfils a condition, and return it."""

    def rows() -> list[dict[str, Any]]:
        return [row for frame in follower.of("live") for row in frame.data["sessions"] if row["session"] == name]

    wait_until(lambda: any(holds(row) for row in rows()), f"what {name} does, of {rows()[-3:]}")
    return next(row for row in rows() if holds(row))


def is_told(frames: list[Frame], *, paused: bool) -> bool:
    """Say whether it was told that the fleet is paused, or that it is not."""
    return any(each.data.get("paused") is paused for each in frames if each.event == "live")


def test_a_page_is_told_this_moment_whole_and_then_what_each_session_does(line: Line, client: Client) -> None:
    go = [line.mark(f"go-{number}") for number in range(3)]
    spent = '{"covey": "spent", "call": "c1", "input": 1000, "output": 10, "cost": 0.25}'
    body = (
        calls("Edit", "src/auth.py")
        + "mkdir -p src; printf 'a\\nb\\n' > src/auth.py\n"
        + wait(go[0])
        + calls("shell", "make test")
        + f"echo '{spent}'\n"
        + wait(go[1])
        + "git add . && git commit -qm Mended\n"
        + wait(go[2])
    )
    with follow(client) as follower:
        follower.wait_for(lambda frames: any(each.event == "live" for each in frames), "this moment")
        whole = follower.of("live")[0]
        assert whole.id is None and set(whole.data) == {"machine", "limits", "today", "paused", "waits", "sessions"}
        assert 0 < whole.data["machine"]["memory"] < whole.data["machine"]["memory_total"]
        task = begin(line, client, "ada", body)
        row = told(follower, "ada", lambda row: row["action"] == "editing src/auth.py")
        assert (row["task"], row["state"], row["terminal"]) == (task, "working", False) and row["run"]
        row = told(follower, "ada", lambda row: row["files"] == 1)
        assert (row["plus"], row["minus"]) == (2, 0), "what was not committed counts"
        go[0].touch()
        row = told(follower, "ada", lambda row: row["action"] == "running make test")
        assert row["action_at"] is not None
        assert told(follower, "ada", lambda row: row["cost"] == 0.25)["tokens"] == 1010
        asked = {each["session"]: each for each in client.get("/api/live")["sessions"]}
        assert (asked["ada"]["action"], asked["ada"]["cost"]) == ("running make test", 0.25)
        with follow(client) as other:
            other.wait_for(lambda frames: any(each.event == "live" for each in frames), "this moment for another")
            (first,) = [row for row in other.of("live")[0].data["sessions"] if row["session"] == "ada"]
            assert first["action"] == "running make test"
        follower.wait_for(
            lambda frames: any(
                each.event == "live" and each.data.get("machine", {}).get("cpu") is not None for each in frames
            ),
            "the processors",
        )
        go[1].touch()
        go[2].touch()
        told(follower, "ada", lambda row: row["run"] is None)
        wait_until(lambda: client.get("/api/inbox") != [], "work that waits for a word")
        client.post("/api/sessions/ada/remove", {"force": True})
        follower.wait_for(
            lambda frames: any("ada" in each.data.get("gone", []) for each in frames if each.event == "live"), "its end"
        )


def test_a_fleet_that_is_paused_is_told_at_once_and_later_only_what_changed(line: Line, client: Client) -> None:
    with follow(client) as follower:
        follower.wait_for(lambda frames: any(each.event == "live" for each in frames), "this moment")
        client.post("/api/pause")
        follower.wait_for(lambda frames: is_told(frames, paused=True), "the pause")
        known = len(follower.frames)
        client.post("/api/resume")
        with follow(client) as other:
            other.wait_for(lambda frames: is_told(frames, paused=False), "this moment for another")
            client.post("/api/pause")
            other.wait_for(lambda frames: is_told(frames, paused=True), "the pause for another")
            client.post("/api/resume")
        follower.wait_for(lambda frames: is_told(frames[known:], paused=False), "its end")
        partial = [frame for frame in follower.of("live")[1:] if "paused" in frame.data]
        assert all("today" not in frame.data and frame.data["sessions"] == [] for frame in partial)


def test_a_session_that_follows_by_its_own_token_is_told_nothing_of_the_others(line: Line, client: Client) -> None:
    client.post("/api/sessions", {"name": "eve"})
    token = client.post("/api/sessions/eve/token")["token"]
    with Follower(Here(client), token=token) as session, follow(client) as person:  # type: ignore[arg-type]
        person.wait_for(lambda frames: any(each.event == "live" for each in frames), "this moment")
        client.post("/api/pause")
        person.wait_for(lambda frames: is_told(frames, paused=True), "the pause")
        client.post("/api/resume")
        session.wait_for(lambda frames: len([each for each in frames if each.event == "invalidate"]) >= 2, "the fleet")
        assert session.of("live") == []


async def greeted_while_nothing_can_be_read() -> list[Any]:
    """Greet somebody when the store cannot be read, then let it be read, and return what they are told."""
    heard: list[Any] = []
    nothing = SpentToday(
        day="2026-01-01", cost=0.0, tokens=0, unpriced=0, without_price=[], budget=None, budget_tokens=None
    )
    answers: list[Basis | CoveyError] = [Unavailable("Not now."), Basis(nothing, False, [], {}, {}, WaitsNow({}, {}))]

    async def read(job: Any) -> Basis:
        answer = answers.pop(0)
        if isinstance(answer, CoveyError):
            raise answer
        return answer

    desk: Any = SimpleNamespace(awake=lambda: 1.0, wall=lambda: 1.0, read=read)
    worktrees: Any = SimpleNamespace()
    memory = FleetMemory(SystemClock())
    live = Live(desk, memory, Moment(memory, worktrees, SystemClock()), lambda: 1, lambda event, data: None)
    live.greet(lambda event, data: heard.append((event, data)))
    with pytest.raises(Unavailable):
        await live.tick()
    await live.tick()
    return heard


def test_who_came_while_the_store_could_not_be_read_is_told_this_moment_whole_later() -> None:
    ((event, data),) = asyncio.run(greeted_while_nothing_can_be_read())
    assert event == "live" and data["sessions"] == []
