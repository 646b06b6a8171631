"""covey permit: what every agent may do here without asking."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.cli.show import age, first_line, reply, table

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

ABOUT = "Permits: what you allowed every agent on this repository, once and for all."


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="also what was revoked")


def _grant_arguments(parser: Parser) -> None:
    parser.add_argument(
        "about", nargs="*", metavar="WORDS", help="a command or its first words: all that begins with them is allowed"
    )
    parser.add_argument("--tool", metavar="TOOL", help="a tool of the agent other than its shell, as it calls it")


def _one_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="PERMIT", help="for example permit-12")


def list_permits(args: Namespace, client: Client) -> None:
    """List what is allowed."""
    answer = client.ask("permit.list", fields={"all": True} if args.all else {})
    rows = [(permit["id"], permit["tool"], _about(permit), _since(permit)) for permit in answer.value]
    reply(args, answer, table(rows) or "Nothing is allowed beyond what [sessions] in covey.toml says.")


def grant(args: Namespace, client: Client) -> None:
    """Allow something from now on."""
    fields = {"about": " ".join(args.about)} | ({} if args.tool is None else {"tool": args.tool})
    answer = client.ask("permit.grant", fields=fields)
    reply(args, answer, f"{answer.value['id']} allows {answer.value['tool']} {_about(answer.value)}".rstrip())


def revoke(args: Namespace, client: Client) -> None:
    """Take a permit back."""
    answer = client.ask("permit.revoke", {"id": args.id}, {})
    reply(args, answer, f"Revoked {args.id}: {answer.value['tool']} {_about(answer.value)} is asked for again")


def _about(permit: dict[str, Any]) -> str:
    return first_line(permit["about"], 100) or "(anything)"


def _since(permit: dict[str, Any]) -> str:
    if permit["revoked"] is not None:
        return f"revoked {age(permit['revoked'])}"
    return f"by {permit['by']}, {age(permit['granted'])}"


COMMANDS = {
    "list": Command("list what is allowed", _list_arguments, list_permits, example="covey permit list"),
    "grant": Command("allow a command, and all that begins with its words; one that chains commands only word for word",
                     _grant_arguments, grant, owner=True,
                     example='covey permit grant "npm test"\ncovey permit grant --tool WebSearch'),
    "revoke": Command("take back what was allowed", _one_arguments, revoke, owner=True,
                      example="covey permit revoke permit-12"),
}  # fmt: skip
