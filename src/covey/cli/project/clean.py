"""covey clean: what is kept for how long, what has had its time, and removing that."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, flag
from covey.cli.frame.output import age, plain, reply, table
from covey.core.figures import count, one, size

NAMED = 5
"""Things of each kind that are named."""
INCOMPLETE = 1


def clean(args: Namespace, client: Client) -> int:
    """Show what has had its time, or remove it."""
    acts = args.yes and not args.dry_run
    answer = client.ask("clean.run" if acts else "clean.show")
    found = answer.value
    reply(args, answer, "\n".join(_done(found) if acts else _planned(found)))
    return INCOMPLETE if found["left"] else 0


def _planned(found: Json) -> Iterator[str]:
    """Yield the table of what is kept, and what would go."""
    rows = [("KIND", "WHERE", "KEPT", "SETTING", "REMOVED BY")]
    rows += [
        (each["kind"], each["where"], each["kept"], " ".join(each["settings"]) or "-", each["by"])
        for each in found["kinds"]
    ]
    yield table(rows)
    yield ""
    if not found["count"]:
        yield "Nothing has had its time."
        return
    yield "This has had its time:"
    yield from _things(found)
    yield ""
    yield f"{_sum(found)} would go: covey clean --yes removes it."


def _done(found: Json) -> Iterator[str]:
    yield from _things(found)
    yield f"{_sum(found)} removed." if found["count"] else "Nothing was removed."
    if found["left"]:
        yield f"{one(found['left'], 'thing')} could not be removed and stayed."


def _sum(found: Json) -> str:
    return f"{one(found['count'], 'thing')}, {size(found['bytes'])},"


def _things(found: Json) -> Iterator[str]:
    for each in found["kinds"]:
        if not each["count"] and not each["some"]:
            continue
        since = "" if each["oldest"] is None else f", the oldest from {age(each['oldest'])} ago"
        yield f"{each['kind']}: {count(each['count'])}, {size(each['bytes'])}{since} (covey's: {each['proof']})"
        for thing in each["some"][:NAMED]:
            yield f"  {_thing(thing)}"
        more = each["count"] - NAMED
        if more > 0 and each["some"]:
            yield f"  and {count(more)} more"


def _thing(thing: Json) -> str:
    what = f"{plain(thing['name'])}  {size(thing['bytes'])}  {thing['why']}"
    saved = f"; kept as rescue {plain(thing['rescue'])}" if thing["rescue"] else ""
    return f"{what}{saved}; it stays: {plain(thing['left'])}" if thing["left"] else f"{what}{saved}"


COMMAND = Command(
    "show what covey keeps, where and for how long, and what has expired; --yes removes that and what a crash left",
    (
        flag("--dry-run", "only show what would be removed (the default)"),
        flag("--yes", "remove it"),
    ),
    clean,
    example="covey clean\ncovey clean --yes",
    owner=True,
)
