"""covey lease: the right to write some paths, or to use a named resource, until a time."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, seconds, speaker, whole_number
from covey.cli.show import clock, reply, table

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

ABOUT = "Leases: who may write which paths, or use which port, database or service, and until when."


def _take_arguments(parser: Parser) -> None:
    parser.add_argument("resources", nargs="+", metavar="RESOURCE", help="a path glob, or a name such as port:3000")
    speaker(parser)
    parser.add_argument("--shared", action="store_true", help="others may share it")
    parser.add_argument("--ttl", type=seconds, metavar="TIME", help="how long it survives silence: 90, 15m, 2h")
    parser.add_argument("--task", metavar="ID", help="the task that it is for")
    parser.add_argument("--reason", metavar="TEXT", help="why, for whoever meets it")


def _held_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="LEASE", help="for example lease-12")
    speaker(parser)
    parser.add_argument("--fence", type=whole_number(1, 2**53), metavar="N", help="the fence that taking it answered")


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("--session", metavar="NAME", help="only what this session holds")


def take(args: Namespace, client: Client) -> None:
    """Take a lease."""
    fields = body_of(args, "resources", "session", "ttl", "task", "reason") | ({"shared": True} if args.shared else {})
    answer = client.ask("lease.take", fields=fields)
    reply(args, answer, f"Took {_line(answer.value)}")


def renew(args: Namespace, client: Client) -> None:
    """Renew a lease."""
    answer = client.ask("lease.renew", {"id": args.id}, body_of(args, "session", "fence"))
    reply(args, answer, f"Renewed {_line(answer.value)}")


def give(args: Namespace, client: Client) -> None:
    """Give a lease back."""
    answer = client.ask("lease.give", {"id": args.id}, body_of(args, "session", "fence"))
    reply(args, answer, f"Gave {args.id} back")


def list_leases(args: Namespace, client: Client) -> None:
    """List the leases in force."""
    answer = client.ask("lease.list", fields=body_of(args, "session"))
    reply(args, answer, rows(answer.value))


def rows(leases: list[dict[str, Any]]) -> str:
    """Return leases in aligned columns."""
    return table(
        (
            lease["id"],
            lease["holder"],
            "shared" if lease["shared"] else "alone",
            f"until {clock(lease['until'])}",
            lease["task"] or "",
            "  ".join(lease["resources"]) + (f"  ({lease['reason']})" if lease["reason"] else ""),
        )
        for lease in leases
    )


def _line(lease: dict[str, Any]) -> str:
    return f"{lease['id']} on {', '.join(lease['resources'])} until {clock(lease['until'])} (fence {lease['fence']})"


COMMANDS = {
    "take": Command("take a lease; it is refused while another holds what it meets", _take_arguments, take,
                    example='covey lease take "src/auth/**" port:3000 --as ada --ttl 30m --task AF-1'),
    "renew": Command("renew a lease for another time to live", _held_arguments, renew,
                     example="covey lease renew lease-12 --as ada"),
    "give": Command("give a lease back", _held_arguments, give, example="covey lease give lease-12 --as ada"),
    "list": Command("list the leases in force", _list_arguments, list_leases, example="covey lease list --session ada"),
}  # fmt: skip
