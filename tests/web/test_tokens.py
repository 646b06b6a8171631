"""Tokens that die while they are in use."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from covey.app.app import App, Request
from covey.app.clock import SystemClock
from covey.app.context import Principal
from covey.app.verbs import VERBS
from covey.config import Config
from covey.git.project import Project
from covey.store.bus import Bus
from covey.store.tx import Tx
from covey.web.server import Web
from tests.worlds.serving import PATIENCE, in_process, make_repository


class SlowApp(App):
    """Knows whose a token is, but takes its time to say so."""

    looked = threading.Event()
    may_answer = threading.Event()

    @staticmethod
    def who(tx: Tx, token: str) -> Principal:
        """Look, and wait."""
        found = App.who(tx, token)
        SlowApp.looked.set()
        SlowApp.may_answer.wait(PATIENCE)
        return found


async def mint(bus: Bus, app: App) -> str:
    """Return a new token of ada."""
    verb = VERBS["session.token"]
    job = app.job(Request(verb, Principal(), verb.asked(), {"name": "ada"}))
    answer = await bus.write(job)
    return str(answer.value()["token"])


async def status_with(web: Web, token: str) -> int:
    """Ask with a token and return the status of the answer."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost:1"), (b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": "GET", "path": "/api/alerts", "headers": headers, "scheme": "http"}
    await web(scope | {"query_string": b""}, receive, send)
    return int(sent[0]["status"])


async def replace_while_in_use(project: Project) -> tuple[int, int]:
    """Use a token for the first time while it is replaced; return how it went then, and how it goes afterwards."""
    async with in_process(project, Config(), SystemClock(), SlowApp) as (app, web, bus):
        verb = VERBS["session.new"]
        asked = verb.asked(name="ada")
        await bus.write(app.job(Request(verb, Principal(), asked, {})))
        old = await mint(bus, app)
        asking = asyncio.create_task(status_with(web, old))
        await asyncio.to_thread(SlowApp.looked.wait, PATIENCE)
        await mint(bus, app)
        SlowApp.may_answer.set()
        return await asking, await status_with(web, old)


def test_a_token_that_is_replaced_while_it_is_looked_up_is_dead_afterwards(tmp_path: Path) -> None:
    then, afterwards = asyncio.run(replace_while_in_use(make_repository(tmp_path / "repo")))
    assert then in (200, 401)
    assert afterwards == 401
