"""covey proposal: what agents ask a person to do for them."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.cli.show import age, first_line, plain, reply, table

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

NOTHING = "(nothing)"
ABOUT = "Proposals: what a session asked for beyond its rights; nothing of it happens until you accept it."


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="also what was decided")


def _one_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="PROPOSAL", help="for example proposal-12")


def _accept_arguments(parser: Parser) -> None:
    _one_arguments(parser)
    parser.add_argument("--anyway", action="store_true", help="also if what it is about has changed since")


def _decline_arguments(parser: Parser) -> None:
    _one_arguments(parser)
    parser.add_argument("reason", nargs="*", metavar="WHY", help="what the session is told")


def list_proposals(args: Namespace, client: Client) -> None:
    """List what waits for a decision."""
    answer = client.ask("proposal.list", fields={"all": True} if args.all else {})
    rows = [
        (row["id"], row["session"], _state(row), age(row["made"]), first_line(row["what"], 100)) for row in answer.value
    ]
    reply(args, answer, table(rows) or "Nothing is proposed.")


def show(args: Namespace, client: Client) -> None:
    """Show one, with what it would change."""
    answer = client.ask("proposal.show", {"id": args.id})
    reply(args, answer, "" if args.json else "\n".join(_lines(answer.value)))


def accept(args: Namespace, client: Client) -> None:
    """Do what was proposed."""
    answer = client.ask("proposal.accept", {"id": args.id}, {"anyway": True} if args.anyway else {})
    reply(args, answer, f"Done, and {answer.value['session']} is told: {plain(answer.value['what'])}")


def decline(args: Namespace, client: Client) -> None:
    """Leave it undone."""
    answer = client.ask("proposal.decline", {"id": args.id}, {"reason": " ".join(args.reason)} if args.reason else {})
    reply(args, answer, f"Declined {args.id}; {answer.value['session']} is told")


def withdraw(args: Namespace, client: Client) -> None:
    """Take it back."""
    answer = client.ask("proposal.withdraw", {"id": args.id}, {})
    reply(args, answer, f"Withdrew {args.id}")


def _state(row: dict[str, Any]) -> str:
    return "changed since" if row["stale"] else str(row["state"])


def _lines(row: dict[str, Any]) -> list[str]:
    lines = [f"{row['id']}  {row['session']}, {age(row['made'])}: {_state(row)}", f"  {plain(row['what'])}"]
    lines += [f"  {plain(row['why'])}"]
    lines += [f"    {plain(change['field'])}: {_from(change)}{_whole(change['to'])}" for change in row["changes"]]
    if row["state"] == "open":
        return [*lines, f"  covey proposal accept {row['id']} | decline {row['id']}"]
    return [*lines, f"  {row['state']} by {row['by']}" + (f": {plain(row['reason'])}" if row["reason"] else "")]


def _from(change: dict[str, str]) -> str:
    was, now = (first_line(change[name], 200) for name in ("was", "now"))
    if not was and not now:
        return ""
    since = "" if was == now else f" (it was {was or NOTHING} when that was proposed)"
    return f"{now or NOTHING}{since} -> "


def _whole(text: str) -> str:
    """Return all of what is proposed, with no line that could pose as another field."""
    return "\n        ".join(map(plain, text.splitlines())) or NOTHING


COMMANDS = {
    "list": Command("list what sessions ask you to do", _list_arguments, list_proposals, example="covey proposal list"),
    "show": Command("show what one would change", _one_arguments, show, example="covey proposal show proposal-12"),
    "accept": Command("do what was proposed, in your name", _accept_arguments, accept, owner=True,
                      example="covey proposal accept proposal-12"),
    "decline": Command("leave it undone, and say why", _decline_arguments, decline, owner=True,
                       example='covey proposal decline proposal-12 "Not this week"'),
    "withdraw": Command("take your own proposal back (for agents)", _one_arguments, withdraw,
                        example="covey proposal withdraw proposal-12"),
}  # fmt: skip
