"""covey session: the workers on this project."""

from __future__ import annotations

from argparse import Namespace

from covey.cli import trail
from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, whole_number
from covey.cli.show import age, reply, table

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

ABOUT = "Sessions: named workers. One that claims a task under a new name becomes known by that."


def _new_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--role", metavar="ROLE", help="what it is good at: it gets tasks and mail of this role")
    parser.add_argument("--wip", type=whole_number(1, 1000), metavar="N", help="how many tasks it may hold at once")


def _nothing(parser: Parser) -> None:
    pass


def _name_argument(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")


def new(args: Namespace, client: Client) -> None:
    """Make a session known."""
    answer = client.ask("session.new", fields=body_of(args, "name", "role", "wip"))
    reply(args, answer, f"Session {args.name} is known; covey task next --as {args.name} gives it work")


def list_sessions(args: Namespace, client: Client) -> None:
    """List the sessions."""
    answer = client.ask("session.list")
    reply(args, answer, rows(answer.value) or "No sessions yet.")


def rows(sessions: list[dict[str, Any]]) -> str:
    """Return sessions in aligned columns: state, what each holds, and what it did last."""
    return table(
        (
            (
                session["name"],
                session["state"],
                ", ".join(session["tasks"][:5]) + (" ..." if len(session["tasks"]) > 5 else ""),
                f"seen {age(session['seen'])}" if session["seen"] else "",
                f"{trail.sentence(last)}, {age(last['time'])}" if (last := session["last_action"]) else "",
            )
            for session in sessions
        ),
        words=1,
    )


def token(args: Namespace, client: Client) -> None:
    """Make a token for a session."""
    answer = client.ask("session.token", {"name": args.name}, {})
    reply(args, answer, answer.value["token"])


COMMANDS = {
    "new": Command("make a session known, with its role and its limit", _new_arguments, new, owner=True,
                   example="covey session new ada --role quality --wip 2"),
    "list": Command("list the sessions, what each holds and did last", _nothing, list_sessions,
                    example="covey session list"),
    "token": Command("make a token with which a session speaks for itself; older ones end", _name_argument, token,
                     owner=True, example="export COVEY_URL=$(covey up --json | jq -r .url)\n"
                                         "export COVEY_TOKEN=$(covey session token ada)"),
}  # fmt: skip
