"""covey merge simulate: what a strategy of the merge queue makes of a world that is written down."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from covey import config
from covey.cli.frame.client import Client
from covey.cli.frame.command import contents
from covey.core.merging.queue.simulate import read, simulate
from covey.errors import CoveyError, Invalid

_DIGITS = 6


def run(args: Namespace, client: Client) -> None:
    """Print what lands when, what is rejected and why, and how long all of it takes."""
    found = read(_json(args.file, client.folder))
    report = asdict(simulate(found, args.strategy or _strategy(client.folder)))
    report["makespan"] = round(report["makespan"], _DIGITS)
    for each in (*report["landed"], *report["rejected"]):
        each["at"] = round(each["at"], _DIGITS)
    print(json.dumps(report, ensure_ascii=False))


def _json(file: str, folder: str) -> object:
    name = "standard input" if file == "-" else file
    text = contents(file, folder)
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise Invalid(f"{name} line {error.lineno} is not JSON: {error.msg}.") from None
    except (RecursionError, ValueError) as error:
        raise Invalid(f"{name} is not JSON that makes sense: {str(error)[:200]}.") from None


def _strategy(folder: str) -> str:
    """Return the strategy of the project that we stand in; outside of one it is the one that a new one would have."""
    from covey.git.project import find

    try:
        root = find(Path(folder)).root
    except CoveyError:
        return config.Config().merge.strategy
    return config.load(root).merge.strategy
