"""covey pause and covey resume: the whole fleet at once."""

from __future__ import annotations

import time
from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.cli.show import reply
from covey.core.figures import one

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PATIENCE = 10.0
"""Seconds for which we wait until every session is as it shall be."""


def _nothing(parser: Parser) -> None:
    pass


def pause(args: Namespace, client: Client) -> None:
    """Let every session stand still."""
    answer = client.ask("fleet.pause", fields={})
    moving = _until(client, lambda session: session["state"] == "paused" or session["goal"] == "stopped")
    still = (
        f"{one(len(moving), 'session')} not still yet: {', '.join(moving)}" if moving else "Every session stands still"
    )
    reply(args, answer, f"{still}; nothing starts and nothing lands. covey resume lets the fleet go on.")


def resume(args: Namespace, client: Client) -> None:
    """Let the fleet go on."""
    answer = client.ask("fleet.resume", fields={})
    _until(client, lambda session: session["state"] != "paused" or session["goal"] == "paused")
    reply(args, answer, "The fleet goes on.")


def _until(client: Client, good: Callable[[dict[str, Any]], bool]) -> list[str]:
    """Wait until every session that covey runs is as it shall be, and return the names of those that are not."""
    deadline = time.monotonic() + PATIENCE
    while True:
        sessions = client.ask("session.list").value
        wrong = [session["name"] for session in sessions if session["kind"] == "run" and not good(session)]
        if not wrong or client.url is None or time.monotonic() > deadline:
            return wrong
        time.sleep(0.05)


COMMANDS = {
    "pause": Command("let every session stand still, and start and land nothing, until covey resume", _nothing, pause,
                     owner=True, example="covey pause"),
    "resume": Command("let the fleet go on", _nothing, resume, owner=True, example="covey resume"),
}  # fmt: skip
