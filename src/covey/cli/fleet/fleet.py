"""covey pause and covey resume: the whole fleet at once."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command
from covey.cli.frame.output import reply
from covey.core.figures import one

FLEET_TIMEOUT_S = 10.0
"""Seconds to wait until every session is in the state that was asked for."""


def pause(args: Namespace, client: Client) -> None:
    """Let every session stand still."""
    answer = client.ask("fleet.pause", fields={})
    moving = _until(client, lambda session: session["state"] == "paused" or session["goal"] == "stopped")
    late = f"{one(len(moving), 'session')} not still yet: {', '.join(moving)}"
    still = late if moving else "Every session stands still"
    reply(args, answer, f"{still}; nothing starts and nothing lands. covey resume lets the fleet go on.")


def resume(args: Namespace, client: Client) -> None:
    """Let the fleet go on."""
    answer = client.ask("fleet.resume", fields={})
    _until(client, lambda session: session["state"] != "paused" or session["goal"] == "paused")
    reply(args, answer, "The fleet goes on.")


def _until(client: Client, good: Callable[[Json], bool]) -> list[str]:
    """Wait until every session that covey runs is as was asked for, and return the names of those that are not."""
    deadline = time.monotonic() + FLEET_TIMEOUT_S
    while True:
        sessions = client.ask("session.list").value
        wrong = [session["name"] for session in sessions if session["kind"] == "run" and not good(session)]
        if not wrong or client.url is None or time.monotonic() > deadline:
            return wrong
        time.sleep(0.05)


COMMANDS = {
    "pause": Command("pause every session; nothing starts and nothing lands until covey resume", (), pause,
                     owner=True, example="covey pause"),
    "resume": Command("resume the whole fleet", (), resume, owner=True, example="covey resume"),
}  # fmt: skip
