"""covey log: what happened."""

from __future__ import annotations

import argparse
import sys
import time

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, body_of, flag, later, option, seconds, whole_number
from covey.cli.frame.output import clock, compact, plain
from covey.core.history import activity
from covey.errors import NotFound

EVENTS_PER_PAGE = 1000
FOLLOW_EVERY_S = 0.5
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
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time; write 2h, 7d or 2031-05-31T18:00") from None


def show(args: argparse.Namespace, client: Client) -> None:
    """Print a part of the log, and follow it if asked to."""
    if args.kind and "." not in args.kind:
        args.kind += "."
    if args.since is not None and args.since < 0:
        args.since = 0.0
    events = _events(args, client, args.limit or 50, args.after)
    if args.subject and not events and not args.follow and not _is_known(args, client):
        raise NotFound(f"The log has nothing about {args.subject[:80]!r}.", hint="covey log shows what happened.")
    _print(args, events)
    last = events[-1]["seq"] if events else args.after or 0
    while args.follow:
        sys.stdout.flush()
        time.sleep(FOLLOW_EVERY_S)
        fresh = _events(args, client, EVENTS_PER_PAGE, last)
        _print(args, fresh)
        last = fresh[-1]["seq"] if fresh else last


def _events(args: argparse.Namespace, client: Client, wanted: int, after: int | None) -> list[Json]:
    """Return the first events that fit after a number, or without one the last that fit, page by page."""
    query = body_of(args, "kind", "subject", "actor", "since", "until", "origin")
    query |= {"newest": True} if after is None else {"after": after}
    found: list[Json] = []
    while wanted > len(found):
        size = min(EVENTS_PER_PAGE, wanted - len(found))
        page = client.ask("log.list", fields=query | {"limit": size}).value
        found = page + found if after is None else found + page
        if len(page) < size:
            break
        query |= {"before": found[0]["seq"]} if after is None else {"after": found[-1]["seq"]}
    return found


def _is_known(args: argparse.Namespace, client: Client) -> bool:
    """Say whether anything ever happened to what is asked about, whatever else is asked."""
    fields = body_of(args, "subject", "origin") | {"limit": 1}
    return bool(client.ask("log.list", fields=fields).value)


def _print(args: argparse.Namespace, events: list[Json]) -> None:
    """Print events: an array, a JSON line each while we follow, or a sentence each."""
    if args.json and not args.follow:
        print(compact(events))
        return
    for event in events:
        print(compact(event) if args.json else line(event))


def line(event: Json) -> str:
    """Return an event as one line: number, time and what happened."""
    return f"{event['seq']:>6}  {clock(event['time'])}  {sentence(event)}"


def sentence(event: Json) -> str:
    """Return what happened: who did what to what."""
    return plain(activity.sentence(event["kind"], event["actor"], event["subject"], event["data"]))


COMMAND = Command(
    "show what happened, the newest last; verify, rebuild, export, import, backup and prune maintain the log",
    (
        option("--kind", metavar="KIND", help="a kind such as task.claimed, or task for all task events"),
        option("--subject", metavar="ID", help="only events about this task, lease, message, merge or session"),
        option("--actor", metavar="NAME", help="only what this session or person did"),
        option("--since", type=moment, metavar="TIME", help="only events since then: 2h, 7d or an ISO time"),
        option("--until", type=moment, metavar="TIME", help="only events up to then"),
        option("-n", dest="limit", type=whole_number(1, 1_000_000), metavar="N", help="how many (default 50)"),
        option("--after", type=whole_number(0, 2**53), metavar="SEQ", help="the first events after this number"),
        option("--origin", metavar="LOG", help="show an imported log, by its id"),
        option("--follow", "-f", action="store_true", help="keep printing new events"),
    ),
    show,
    example="covey log --kind task.claimed --since 2h\n"
    "covey log --follow --json | jq .kind\n"
    "covey log verify   checks the log and every row (covey log verify --help)",
)

CARE = "history.log_care"
"""The module of the log's care, which only its commands import."""
COMMANDS = {
    "verify": Command(
        "check the hash chain, and every column of every row against it; exit code 1 if something is wrong",
        option("file", nargs="?", metavar="FILE", help="a backup (default: this project's)"), later(CARE, "verify"),
        owner=True, example="covey log verify\ncovey log verify covey-backup.db"),
    "rebuild": Command("rebuild every row from the log alone; the daemon must be down", (), later(CARE, "rebuild"),
                       owner=True, example="covey down && covey log rebuild"),
    "export": Command(
        "write the log to refs/covey/log/<log id> of the repository, without mail and prompts unless asked",
        option("--with", dest="included", action="append", choices=("mail", "prompts"),
               help="include what is left out by default (mail, prompts); repeat for both"), later(CARE, "export"),
        owner=True, example="covey log export --with mail --with prompts\ngit push origin 'refs/covey/log/*'"),
    "import": Command("import exported logs of other clones, next to this project's own", (
        option("--from", dest="source", metavar="REMOTE", help="fetch them first: a remote, an address or a path"),
        flag("--again",
             "forget what was imported and import every export from its beginning, as when one was made again"),
    ), later(CARE, "import_exports"), owner=True,
                      example="covey log import --from origin\ncovey log --origin LOGID\n"
                              "covey log import --again --from origin"),
    "adopt": Command("make an imported log this project's own, after a lost disk; the daemon must be down",
                     option("log", metavar="LOGID", help="the id of an imported log"), later(CARE, "adopt"), owner=True,
                     example="covey init && covey log import --from origin && covey log adopt LOGID"),
    "backup": Command("copy the whole store to a file, while others write to it",
                      option("file", metavar="FILE", help="a file that does not exist yet"), later(CARE, "make_backup"),
                      owner=True, example="covey log backup ../covey-backup.db"),
    "prune": Command(
        "remove long texts of ended tasks and old mail beyond [log] keep_days and keep_megabytes; the log stays whole",
        (), later(CARE, "prune"), owner=True, example="covey log prune"),
}  # fmt: skip
