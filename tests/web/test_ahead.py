"""What has to be looked at before a request is done while nobody else waits for it."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from covey.app.app import App
from covey.app.clock import SystemClock
from covey.app.context import Lands
from covey.app.merging import review
from covey.config import Config
from covey.git.project import Project
from covey.web.server import Web
from tests.worlds.serving import PATIENCE, in_process, make_repository

WHOLE = "c" * 40


async def post(web: Web, project: Project, path: str, key: str | None = None, **asked: Any) -> tuple[int, Any]:
    """Change something as the owner, and return the status and the answer."""
    return await ask(web, project, "POST", path, key, **asked)


async def ask(
    web: Web, project: Project, method: str, path: str, key: str | None = None, **asked: Any
) -> tuple[int, Any]:
    """Ask as the owner, and return the status and the answer."""
    sent: list[dict[str, Any]] = []
    body = json.dumps(asked).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    token = project.owner_token.read_text().encode()
    headers = [(b"host", b"localhost:1"), (b"authorization", b"Bearer " + token)]
    headers += [(b"content-length", str(len(body)).encode())] + ([(b"idempotency-key", key.encode())] if key else [])
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "scheme": "http"}
    await web(scope | {"query_string": b""}, receive, send)
    return int(sent[0]["status"]), json.loads(b"".join(part.get("body", b"") for part in sent))


class Git:
    """Knows one commit."""

    def lands(self, session: str, commit: str, main: str) -> Lands:
        """Tell that it changes nothing."""
        return Lands(WHOLE, ())


async def hand_in_slowly(project: Project) -> list[tuple[int, Any]]:
    """Add a task while git looks at work that is handed in, then hand it in twice by one key."""
    looked, may_answer = threading.Event(), threading.Event()

    class SlowGit:
        def lands(self, session: str, commit: str, main: str) -> Lands:
            looked.set()
            may_answer.wait(PATIENCE)
            return Lands(WHOLE, ())

    async with in_process(project, Config(), SystemClock(), App) as (app, web, _):
        app.context.commits = SlowGit().lands
        await post(web, project, "/api/board", title="Work")
        await post(web, project, "/api/board/T-1/claim", session="ada")
        await post(web, project, "/api/leases", session="bob", resources=["held.txt"])
        asked = {"session": "ada", "commit": WHOLE[:7]}
        handing_in = asyncio.create_task(post(web, project, "/api/board/T-1/handin", "once", **asked))
        await asyncio.to_thread(looked.wait, PATIENCE)
        meanwhile = await post(web, project, "/api/board", title="Other")
        assert not handing_in.done()
        may_answer.set()
        return [meanwhile, await handing_in, await post(web, project, "/api/board/T-1/handin", "once", **asked)]


def test_nobody_waits_while_git_looks_at_work_that_is_handed_in(tmp_path: Path) -> None:
    (added, _), first, again = asyncio.run(hand_in_slowly(make_repository(tmp_path / "repo")))
    assert added == 201
    assert (first[0], first[1]["commit"]) == (200, WHOLE), "a short name may stand for another commit later"
    assert again == first


async def hand_in_while_many_look(project: Project, monkeypatch: pytest.MonkeyPatch) -> int:
    """Hand work in while git takes its time for more diffs than there are threads."""
    may_answer = threading.Event()
    monkeypatch.setattr(review, "locate", lambda *asked: may_answer.wait(PATIENCE) and None)
    async with in_process(project, Config(), SystemClock(), App) as (app, web, _):
        app.context.repository = project
        app.context.commits = Git().lands
        await post(web, project, "/api/board", title="Work")
        await post(web, project, "/api/board/T-1/claim", session="ada")
        await post(web, project, "/api/leases", session="bob", resources=["held.txt"])
        looks = [asyncio.create_task(ask(web, project, "GET", "/api/board/T-1/diff")) for _ in range(40)]
        try:
            handing_in = post(web, project, "/api/board/T-1/handin", session="ada", commit=WHOLE)
            return (await asyncio.wait_for(handing_in, PATIENCE / 2))[0]
        finally:
            may_answer.set()
            assert {status for status, _ in await asyncio.gather(*looks)} == {200}


def test_no_hand_in_waits_behind_those_who_look_at_large_diffs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asyncio.run(hand_in_while_many_look(make_repository(tmp_path / "repo"), monkeypatch)) == 200
