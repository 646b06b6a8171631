"""covey merge: what wants to land, as far as a person is the queue."""

from __future__ import annotations

import sys
import time
from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, whole_number
from covey.cli.show import age, reply, table
from covey.errors import Invalid, Refused

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

ABOUT = "The merge queue: what was handed in and wants to land on main."


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="also what has ended")
    parser.add_argument("--limit", type=whole_number(1, 1000), metavar="N", help="how many (default 200)")


def _one_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="MERGE", help="for example merge-12")


def _land_arguments(parser: Parser) -> None:
    _one_arguments(parser)
    help = "the commit on main that holds the work, as git names it"
    parser.either("commit", "COMMIT", help, value="COMMIT", many=False)


def _reject_arguments(parser: Parser) -> None:
    _one_arguments(parser)
    parser.either("reason", "REASON", "what its author has to mend")


def _simulate_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a world as JSON, - for standard input")
    help = "how to choose what is tested (default: what covey.toml says, else group)"
    parser.add_argument("--strategy", choices=("serial", "prefix", "group"), help=help)


def list_merges(args: Namespace, client: Client) -> None:
    """List the queue."""
    answer = client.ask("merge.list", fields=body_of(args, "limit") | ({"all": True} if args.all else {}))
    reply(args, answer, rows(answer.value) or ("No merges." if args.all else "Nothing wants to land."))


def rows(merges: list[dict[str, Any]]) -> str:
    """Return merges in aligned columns."""
    return table(
        (
            (merge["id"], merge["state"], merge["task"], merge["session"], _work(merge), age(merge["queued"]))
            for merge in merges
        ),
        words=1,
    )


def _work(merge: dict[str, Any]) -> str:
    commit = merge["landed"] or merge["commit"]
    why = f": {merge['reason']}" if merge["reason"] else ", untested" if merge["untested"] else ""
    return (f"{merge['branch']} {commit[:12]}" if commit else str(merge["branch"])) + why


def approve(args: Namespace, client: Client) -> int:
    """Let work land; without a daemon, have one for as long as that takes."""
    from covey.cli.daemon import errand

    with errand(client) as own:
        answer = client.ask("merge.approve", {"id": args.id}, {})
        now = _until_ended(client, args.id) if own else answer.value
    reply(args, answer, _approved(now))
    return 1 if now["state"] == "rejected" else 0


def _until_ended(client: Client, merge: str) -> dict[str, Any]:
    """Wait until a merge has ended, or waits for what only a person can bring about."""
    begun, told = time.monotonic(), False
    while True:
        if not told and time.monotonic() - begun > 1:
            print(f"{merge} is tested as it would land ...", file=sys.stderr, flush=True)
            told = True
        merges = client.ask("merge.list", fields={"all": True, "limit": 1000}).value
        now: dict[str, Any] = next(each for each in merges if each["id"] == merge)
        on_its_way = now["state"] == "testing" or (now["state"] in ("queued", "passed") and not now["reason"])
        if not on_its_way or client.ask("status").value["paused"]:
            return now
        time.sleep(0.05)


def _approved(merge: dict[str, Any]) -> str:
    said = f"Approved {merge['id']}: {merge['task']}"
    match merge["state"]:
        case "landed":
            return f"{said} landed in {merge['landed'][:12]}"
        case "rejected":
            return f"{said} was rejected: {merge['reason']}"
        case "passed":
            return f"{said} passed, and waits: {merge['reason']}"
        case "queued" if merge["reason"]:
            return f"{said} waits: {merge['reason']}"
        case _:
            return f"{said} may land"


def land(args: Namespace, client: Client) -> None:
    """Say that work is on main, after looking whether it is."""
    from covey import config
    from covey.git.project import has_commit_on

    project = client.project()
    commit = whole_hash(client.folder, args.commit)
    main = config.load(project.root).project.main
    if not has_commit_on(project, commit, main):
        raise Refused(
            f"{args.commit} is not on {main}.", hint=f"Merge it into {main} first; covey.toml names the branch."
        )
    answer = client.ask("merge.land", {"id": args.id}, {"commit": commit})
    reply(args, answer, f"Landed {args.id}: {answer.value['task']} is done")


def reject(args: Namespace, client: Client) -> None:
    """Send work back to its author."""
    answer = client.ask("merge.reject", {"id": args.id}, {"reason": args.reason})
    reply(args, answer, f"Rejected {args.id}: {answer.value['task']} is first in line for {answer.value['session']}")


def simulate(args: Namespace, client: Client) -> None:
    """Print what a strategy makes of a world."""
    from covey.cli import simulate

    simulate.run(args, client)


def whole_hash(folder: str, name: str) -> str:
    """Return the whole hash of a commit, in whatever way git names it."""
    if len(name) in (40, 64) and all(letter in "0123456789abcdef" for letter in name):
        return name
    from pathlib import Path

    from covey.git.run import try_git

    asked = try_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", at=Path(folder))
    if asked.returncode != 0:
        raise Invalid(f"git knows no commit {name[:80]!r} here.", hint="git log shows the commits.")
    return asked.stdout.decode().strip()


COMMANDS = {
    "list": Command("list what wants to land, the oldest first", _list_arguments, list_merges,
                    example="covey merge list --all"),
    "approve": Command("let reviewed work into the queue", _one_arguments, approve, owner=True,
                       example="covey merge approve merge-12"),
    "land": Command("say that work is on main, in a commit that main has", _land_arguments, land, owner=True,
                    example="covey merge land merge-12 HEAD"),
    "reject": Command("send work back to its author", _reject_arguments, reject, owner=True,
                      example='covey merge reject merge-12 "The test for the empty case is missing"'),
    "simulate": Command("try a strategy of the queue in a world that is written down", _simulate_arguments, simulate,
                        example="covey merge simulate world.json --strategy prefix", prints="JSON, as without it"),
}  # fmt: skip
