"""covey lease: the right to write some paths, or to use a named resource, until a time."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, seconds, speaker, whole_number
from covey.cli.show import clock, reply, table
from covey.errors import Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

    from covey.cli.client import Answer

ABOUT = "Leases: who may write which paths, or use which port, database or service, and until when."
NOT_YOURS = 1
"""Exit code if another holds what was asked about."""


def _wished(parser: Parser) -> None:
    parser.add_argument("resources", nargs="+", metavar="RESOURCE", help="a path glob, or a name such as port:3000")
    speaker(parser)
    parser.add_argument("--shared", action="store_true", help="others may share it")
    parser.add_argument("--task", metavar="ID", help="the task that it is for")
    parser.add_argument("--reason", metavar="TEXT", help="why, for whoever meets it")
    parser.add_argument("--timeout", type=seconds, metavar="TIME", help="how long to wait at most: 90, 15m, 2h")


def _take_arguments(parser: Parser) -> None:
    _wished(parser)
    parser.add_argument("--ttl", type=seconds, metavar="TIME", help="how long it survives silence: 90, 15m, 2h")
    parser.add_argument("--wait", action="store_true", help="stand in line for what others hold")


def _run_arguments(parser: Parser) -> None:
    _wished(parser)
    parser.behind = "command"
    parser.usage = f"{parser.prog} [options] RESOURCE... -- COMMAND..."


def _held_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="LEASE", help="for example lease-12")
    speaker(parser)
    parser.add_argument("--fence", type=whole_number(1, 2**53), metavar="N", help="the fence that taking it answered")


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("--session", metavar="NAME", help="only what this session holds")
    parser.add_argument("--waiting", action="store_true", help="also what is waited for")


def _check_arguments(parser: Parser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a path, or a name such as port:3000")
    speaker(parser)


def take(args: Namespace, client: Client) -> int:
    """Take a lease, and stand in line for it if that was asked for."""
    wait = args.wait or args.timeout is not None
    answer = client.ask("lease.take", fields=_wish(args, client, "ttl") | ({"wait": True} if wait else {}))
    if answer.value["state"] == "waiting":
        from covey.cli import turns

        who = body_of(args, "session")
        try:
            answer = turns.await_turn(client, answer, who, args.timeout)
        except KeyboardInterrupt:
            turns.give_back(client.folder, answer.value, who)
            raise
        if answer.value["state"] == "waiting":
            reply(args, answer, _not_yet(answer.value))
            return turns.NO_TURN
    reply(args, answer, f"Took {_line(answer.value)}")
    return 0


def _from_root(resources: list[str], folder: str) -> list[str]:
    """Return paths as seen from the root of the checkout: in a folder below it, people name files from there."""
    if os.path.lexists(os.path.join(folder, ".git")) and not any(name.startswith("/") for name in resources):
        return resources
    from covey.cli import holders

    return [holders.resource(name, folder) for name in resources]


def _wish(args: Namespace, client: Client, *more: str) -> dict[str, Any]:
    args.resources = _from_root(args.resources, client.folder)
    wish: dict[str, Any] = {"shared": True} if args.shared else {}
    if under := os.environ.get("COVEY_LEASE", "").split():
        wish["within"] = under
    return body_of(args, "resources", "session", "task", "reason", *more) | wish


def _not_yet(lease: dict[str, Any]) -> str:
    return (
        f"It is not your turn yet. Your place in line is kept as {lease['id']}, and you get mail when it is yours:"
        f" go on elsewhere, or ask again with the same command. covey lease give {lease['id']} gives the place up."
    )


def _not_run(command: str, resources: list[str], patience: float) -> str:
    return (
        f"covey: it was not your turn at {', '.join(resources)} within {patience:g} s: {command} was not run, and the"
        f" place in line is given up.\n  hint: Run it again later, with a longer --timeout or with none;"
        f" covey lease list --waiting shows who is before you."
    )


def run(args: Namespace, client: Client) -> int:
    """Wait for one's turn, run a command while one holds it, and give it back whatever happens."""
    from covey.cli import turns

    if not args.command:
        raise Invalid("The command is missing.", hint="covey lease run lane:build -- make test")
    around, under = turns.held_around_us(), turns.leases_around_us()
    fields = _wish(args, client)
    fields["resources"] = [name for name in args.resources if name not in around]
    holds, who = list(dict.fromkeys([*around, *args.resources])), body_of(args, "session")
    with turns.Signals() as signals:
        if not fields["resources"]:
            return turns.run(args.command, holds, under, signals)
        answer: Answer | None = None
        try:
            answer = client.ask("lease.take", fields=fields | {"wait": True, "beats": True})
            answer = turns.await_turn(client, answer, who, args.timeout)
            if answer.value["state"] == "waiting":
                print(_not_run(args.command[0], fields["resources"], args.timeout), file=sys.stderr)
                return turns.NO_TURN
            with turns.Beating(client.folder, answer.value, who):
                return turns.run(args.command, holds, [*under, answer.value["id"]], signals)
        except turns.Stopped as stopped:
            return 128 + stopped.number
        finally:
            if answer is not None:
                turns.give_back(client.folder, answer.value, who)


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
    fields = body_of(args, "session") | ({"waiting": True} if args.waiting else {})
    answer = client.ask("lease.list", fields=fields)
    reply(args, answer, rows(answer.value) or "No leases are in force.")


def check(args: Namespace, client: Client) -> int:
    """Say who holds some paths; fail if another holds one of them."""
    from covey.cli import holders

    me = args.session or os.environ.get("COVEY_SESSION") or "owner"
    found = holders.of(args.paths, client.ask("lease.list").value, client.folder)
    if args.json:
        print(json.dumps(found))
    else:
        print(table(row for path, leases in found.items() for row in _check_rows(path, leases, me)))
    return NOT_YOURS if any(lease["holder"] != me for leases in found.values() for lease in leases) else 0


def _check_rows(path: str, leases: list[dict[str, Any]], me: str) -> list[tuple[str, str, str]]:
    found = []
    for lease in leases:
        holder = "yours" if lease["holder"] == me else f"held by {lease['holder']}"
        task = f" for {lease['task']}" if lease["task"] else ""
        found.append((path, f"{holder}{task}", f"{lease['id']} {_ends(lease)}"))
    return found or [(path, "free", "")]


def rows(leases: list[dict[str, Any]]) -> str:
    """Return leases in aligned columns."""
    return table(
        (
            lease["id"],
            lease["holder"],
            "shared" if lease["shared"] else "alone",
            _ends(lease),
            lease["task"] or "",
            "  ".join(lease["resources"]) + (f"  ({lease['reason']})" if lease["reason"] else ""),
        )
        for lease in leases
    )


def _ends(lease: dict[str, Any]) -> str:
    if lease["state"] == "waiting":
        return f"waits for {', '.join(lease['behind'])}"
    return f"until {clock(lease['until'])}" if lease["until"] is not None else "with its task"


def _line(lease: dict[str, Any]) -> str:
    return f"{lease['id']} on {', '.join(lease['resources'])} {_ends(lease)} (fence {lease['fence']})"


COMMANDS = {
    "take": Command("take a lease; it is refused while another holds what it meets, or stands in line with --wait",
                    _take_arguments, take,
                    example='covey lease take "src/auth/**" port:3000 --as ada --ttl 30m --task AF-1\n'
                            "covey lease take src/db.py --wait --timeout 90    exit code 3: not your turn yet"),
    "run": Command("run a command while you hold a lease, when it is your turn; exits as the command does",
                   _run_arguments, run,
                   example="covey lease run lane:build -- make test          two at a time in each lane: name\n"
                           "covey lease run port:3000 --timeout 5m -- npm run e2e"),
    "check": Command("say who holds some paths; exit code 1 if that is another", _check_arguments, check,
                     example="covey lease check src/auth/login.py lane:build",
                     prints="for each path the leases that cover it"),
    "renew": Command("renew a lease for another time to live", _held_arguments, renew,
                     example="covey lease renew lease-12 --as ada"),
    "give": Command("give a lease, or a place in line, back", _held_arguments, give,
                    example="covey lease give lease-12 --as ada"),
    "list": Command("list the leases in force", _list_arguments, list_leases,
                    example="covey lease list --session ada --waiting"),
}  # fmt: skip
