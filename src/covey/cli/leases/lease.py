"""covey lease: the right to write some paths, or to use a named resource, until a time."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace

from covey.cli.frame.client import Answer, Client, Json
from covey.cli.frame.command import Command, Parser, asking, body_of, flag, option, seconds, speaker, whole_number
from covey.cli.frame.output import clock, reply, table
from covey.errors import Invalid

ABOUT = "Leases: who may write which paths, or use which port, database or service, and until when."
NOT_YOURS_EXIT = 1
"""Exit code if another holds what was asked about."""


REQUEST_OPTIONS = (
    option("resources", nargs="+", metavar="RESOURCE", help="a path glob, or a name such as port:3000"),
    speaker,
    flag("--shared", "others may share it"),
    option("--task", metavar="ID", help="the task that it is for"),
    option("--reason", metavar="TEXT", help="why you need it, for others who run into it"),
    option("--timeout", type=seconds, metavar="TIME", help="how long to wait at most: 90, 15m, 2h"),
)


def _command_behind(parser: Parser) -> None:
    """Keep the words after -- as the command to run."""
    parser.behind = "command"
    parser.usage = f"{parser.prog} [options] RESOURCE... -- COMMAND..."


def take(args: Namespace, client: Client) -> int:
    """Take a lease, and stand in line for it if that was asked for."""
    wait = args.wait or args.timeout is not None
    answer = client.ask("lease.take", fields=_request(args, client, "ttl") | ({"wait": True} if wait else {}))
    if answer.value["state"] == "waiting":
        from covey.cli.leases import lease_wait

        who = body_of(args, "session")
        try:
            answer = lease_wait.await_turn(client, answer, who, args.timeout)
        except KeyboardInterrupt:
            lease_wait.give_back(client.folder, answer.value, who)
            raise
        if answer.value["state"] == "waiting":
            reply(args, answer, _not_yet(answer.value))
            return lease_wait.NO_TURN_EXIT
    reply(args, answer, f"Took {_line(answer.value)}")
    return 0


def _from_root(resources: list[str], folder: str) -> list[str]:
    """Return paths as seen from the root of the checkout: in a folder below it, people name files from there."""
    if os.path.lexists(os.path.join(folder, ".git")) and not any(name.startswith("/") for name in resources):
        return resources
    return [_resource(name, folder) for name in resources]


def _resource(text: str, folder: str) -> str:
    """Return a resource as it is leased: a path, or a pattern of paths, from the root of the checkout."""
    from covey.core.leases.leases import is_path  # with all that it imports, which most need not

    return _place(text, folder) if text and is_path(text) else text


def _place(path: str, folder: str) -> str:
    """Return a path from the root of the checkout that a folder is in; what lies elsewhere stays as it is."""
    root = folder
    while not os.path.lexists(os.path.join(root, ".git")) and os.path.dirname(root) != root:
        root = os.path.dirname(root)
    whole = os.path.normpath(os.path.join(folder, path))
    inside = os.path.relpath(whole, root)
    return path if inside == ".." or inside.startswith("../") else inside


def _request(args: Namespace, client: Client, *more: str) -> Json:
    args.resources = _from_root(args.resources, client.folder)
    fields: Json = {"shared": True} if args.shared else {}
    if under := os.environ.get("COVEY_LEASE", "").split():
        fields["within"] = under
    return body_of(args, "resources", "session", "task", "reason", *more) | fields


def _not_yet(lease: Json) -> str:
    return (
        f"It is not your turn yet. Your place in line is kept as {lease['id']}, and you get mail when it is yours:"
        f" go on elsewhere, or ask again with the same command. covey lease give {lease['id']} gives the place up."
    )


def _not_run(command: str, resources: list[str], patience: float) -> str:
    return (
        f"covey: timed out after {patience:g} s waiting for {', '.join(resources)};"
        f" {command} was not run, and the place in line is given up.\n"
        "  hint: Run it again later, with a longer --timeout or with none;"
        " covey lease list --waiting shows who is before you."
    )


def run(args: Namespace, client: Client) -> int:
    """Wait for one's turn, run a command while one holds it, and give it back whatever happens."""
    from covey.cli.leases import lease_wait

    if not args.command:
        raise Invalid("The command is missing.", hint="covey lease run lane:build -- make test")
    fields = _request(args, client)
    around = [name for name in os.environ.get(lease_wait.HOLDS, "").split("\n") if name]  # a command holds it for us
    under = fields.get("within", [])
    fields["resources"] = [name for name in args.resources if name not in around]
    holds, who = list(dict.fromkeys([*around, *args.resources])), body_of(args, "session")
    with lease_wait.Signals() as signals:
        if not fields["resources"]:
            return lease_wait.run(args.command, holds, under, signals)
        answer: Answer | None = None
        try:
            answer = client.ask("lease.take", fields=fields | {"wait": True, "beats": True})
            answer = lease_wait.await_turn(client, answer, who, args.timeout)
            if answer.value["state"] == "waiting":
                print(_not_run(args.command[0], fields["resources"], args.timeout), file=sys.stderr)
                return lease_wait.NO_TURN_EXIT
            with lease_wait.Beating(client.folder, answer.value, who):
                return lease_wait.run(args.command, holds, [*under, answer.value["id"]], signals)
        except lease_wait.Stopped as stopped:
            return 128 + stopped.number
        finally:
            if answer is not None:
                lease_wait.give_back(client.folder, answer.value, who)


def check(args: Namespace, client: Client) -> int:
    """Say who holds some paths; fail if another holds one of them."""
    me = args.session or os.environ.get("COVEY_SESSION") or "owner"
    held = client.ask("lease.list").value
    found = {path: [lease for lease in held if _covers(lease, path, client.folder)] for path in args.paths}
    if args.json:
        print(json.dumps(found))
    else:
        print(table(row for path, leases in found.items() for row in _check_rows(path, leases, me)))
    return NOT_YOURS_EXIT if any(lease["holder"] != me for leases in found.values() for lease in leases) else 0


def _covers(lease: Json, path: str, folder: str) -> bool:
    """Say whether a lease covers a path, or something below it, or that a pattern matches."""
    from covey.core.leases import leases, write_policy

    asked = leases.resource(_resource(path, folder))
    chosen = leases.Lease(id=lease["id"], holder=lease["holder"], resources=tuple(lease["resources"]))
    if any(leases.collide(asked, each) for each in chosen.resources):
        return True
    return leases.is_path(asked) and write_policy.covers(chosen, _place(path, folder)) is not None


def _check_rows(path: str, leases: list[Json], me: str) -> list[tuple[str, str, str]]:
    found = []
    for lease in leases:
        holder = "yours" if lease["holder"] == me else f"held by {lease['holder']}"
        task = f" for {lease['task']}" if lease["task"] else ""
        found.append((path, f"{holder}{task}", f"{lease['id']} {_ends(lease)}"))
    return found or [(path, "free", "")]


def rows(leases: list[Json]) -> str:
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


def _ends(lease: Json) -> str:
    if lease["state"] == "waiting":
        return f"waits for {', '.join(lease['behind'])}"
    return f"until {clock(lease['until'])}" if lease["until"] is not None else "with its task"


def _line(lease: Json) -> str:
    return f"{lease['id']} on {', '.join(lease['resources'])} {_ends(lease)} (fence {lease['fence']})"


HELD = (
    option("id", metavar="LEASE", help="for example lease-12"),
    speaker,
    option("--fence", type=whole_number(1, 2**53), metavar="N", help="the fence number that you got when you took it"),
)
COMMANDS = {
    "take": Command("take a lease; refused while somebody else holds any of it, or queued with --wait",
                    (*REQUEST_OPTIONS,
                     option("--ttl", type=seconds, metavar="TIME",
                            help="how long it outlasts its holder's silence: 90, 15m, 2h"),
                     flag("--wait", "wait in line for what others hold")), take,
                    example='covey lease take "src/auth/**" port:3000 --as ada --ttl 30m --task AF-1\n'
                            "covey lease take src/db.py --wait --timeout 90    exit code 3: not your turn yet"),
    "run": Command("wait for a lease, run a command while holding it, and exit with the command's code",
                   (*REQUEST_OPTIONS, _command_behind), run,
                   example="covey lease run lane:build -- make test          two at a time in each lane: name\n"
                           "covey lease run port:3000 --timeout 5m -- npm run e2e"),
    "check": Command("show who holds some paths; exit code 1 if somebody else does",
                     (option("paths", nargs="+", metavar="PATH", help="a path, or a name such as port:3000"), speaker),
                     check,
                     example="covey lease check src/auth/login.py lane:build",
                     prints="for each path the leases that cover it"),
    "renew": Command("renew a lease, so that it lasts longer", HELD,
                     asking("lease.renew", "session", "fence", show=lambda lease, _: f"Renewed {_line(lease)}"),
                     example="covey lease renew lease-12 --as ada"),
    "give": Command("give back a lease, or your place in line", HELD,
                    asking("lease.give", "session", "fence", show=lambda _, args: f"Gave {args.id} back"),
                    example="covey lease give lease-12 --as ada"),
    "list": Command("list the leases in force",
                    (option("--session", metavar="NAME", help="only what this session holds"),
                     flag("--waiting", "include leases that are still waiting in line")),
                    asking("lease.list", "session", "waiting",
                           show=lambda leases, _: rows(leases) or "No leases are in force."),
                    example="covey lease list --session ada --waiting"),
}  # fmt: skip
