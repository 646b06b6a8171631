"""covey log: what happened."""

from __future__ import annotations

import argparse
import json
import sys
import time

from covey.cli import trail
from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, seconds, whole_number
from covey.plain import escaped

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

PAGE = 1000
LOOK_EVERY = 0.5
"""Seconds between two looks of --follow."""


def moment(text: str) -> float:
    """Return a time given as a span until now (2h) or as an ISO date, in seconds since 1970."""
    try:
        return time.time() - seconds(text)
    except argparse.ArgumentTypeError:
        pass
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no time; write 2h, 7d or 2031-05-31T18:00") from None


def _arguments(parser: Parser) -> None:
    parser.add_argument("--kind", metavar="KIND", help="task.claimed, or task for every kind of task event")
    parser.add_argument("--subject", metavar="ID", help="what happened to this task, lease, message, merge or session")
    parser.add_argument("--actor", metavar="NAME", help="what this session or person did")
    parser.add_argument("--since", type=moment, metavar="TIME", help="from then on: 2h, 7d or an ISO time")
    parser.add_argument("--until", type=moment, metavar="TIME", help="up to then")
    parser.add_argument("-n", dest="limit", type=whole_number(1, 1_000_000), metavar="N", help="how many (default 50)")
    parser.add_argument("--after", type=whole_number(0, 2**53), metavar="SEQ", help="the first ones after this number")
    parser.add_argument("--origin", metavar="LOG", help="of an imported log, by its id")
    parser.add_argument("--follow", "-f", action="store_true", help="go on with what happens from now on")


def show(args: argparse.Namespace, client: Client) -> None:
    """Print a part of the log, and follow it if asked to."""
    if args.kind and "." not in args.kind:
        args.kind += "."
    if args.since is not None and args.since < 0:
        args.since = 0.0
    events = _first(args, client) if args.after is None else _onward(args, client, args.after, args.limit or 50)
    _print(args, events)
    last = events[-1]["seq"] if events else args.after or 0
    while args.follow:
        sys.stdout.flush()
        time.sleep(LOOK_EVERY)
        fresh = _onward(args, client, last, PAGE)
        _print(args, fresh)
        last = fresh[-1]["seq"] if fresh else last


def _filters(args: argparse.Namespace) -> dict[str, Any]:
    return body_of(args, "kind", "subject", "actor", "since", "until", "origin")


def _first(args: argparse.Namespace, client: Client) -> list[dict[str, Any]]:
    """Return the last events that fit, page by page from the end."""
    wanted = args.limit or 50
    query = _filters(args) | {"newest": True}
    found: list[dict[str, Any]] = []
    while wanted > len(found):
        size = min(PAGE, wanted - len(found))
        page = client.ask("log.list", fields=query | {"limit": size}).value
        found = page + found
        if len(page) < size:
            break
        query["before"] = found[0]["seq"]
    return found


def _onward(args: argparse.Namespace, client: Client, after: int, wanted: int) -> list[dict[str, Any]]:
    """Return the first events that fit after a number."""
    query = _filters(args)
    found: list[dict[str, Any]] = []
    while wanted > len(found):
        size = min(PAGE, wanted - len(found))
        page = client.ask("log.list", fields=query | {"limit": size, "after": after}).value
        found += page
        if len(page) < size:
            break
        after = found[-1]["seq"]
    return found


def _print(args: argparse.Namespace, events: list[dict[str, Any]]) -> None:
    """Print events: an array, a JSON line each while we follow, or a sentence each."""
    if args.json and not args.follow:
        print(escaped(json.dumps(events, ensure_ascii=False, separators=(",", ":"))))
        return
    for event in events:
        said = escaped(json.dumps(event, ensure_ascii=False, separators=(",", ":"))) if args.json else trail.line(event)
        print(said)


COMMAND = Command(
    "show what happened, the newest last; its care: verify, rebuild, export, import, backup, prune",
    _arguments,
    show,
    example="covey log --kind task.claimed --since 2h\n"
    "covey log --follow --json | jq .kind\n"
    "covey log verify   checks the log and every row (covey log verify --help)",
)
