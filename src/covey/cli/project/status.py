"""covey status: the project at a glance."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator

from covey.cli.board.unmet_needs import unmet
from covey.cli.fleet import session
from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, flag, width
from covey.cli.frame.output import age, as_json, nested, paint, plain, standstills, title
from covey.cli.leases import lease
from covey.cli.merging import merge
from covey.cli.people import inbox
from covey.cli.project import cost
from covey.core.figures import one, size
from covey.errors import CoveyError

OPEN = ("doing", "review", "merging", "blocked", "todo", "backlog")
ROWS_PER_SCREEN = 8
"""Rows of each part, so that all of it fits a screen."""
MAX_ROWS = 1000


def status(args: Namespace, client: Client) -> None:
    """Show what needs a person, counts, open tasks, sessions, leases, mail, merges and fresh commits."""
    if args.json:
        as_json(client.ask("status"))
        return
    most = MAX_ROWS if args.all else ROWS_PER_SCREEN
    with client:
        value = client.ask("status").value
        pages = [client.ask("task.list", fields={"status": name, "limit": most}) for name in OPEN]
        tasks = [task for page in pages for task in page.value]
        needs = unmet(client, tasks)
        leases = client.ask("lease.list").value
        merges = client.ask("merge.list", fields={"limit": MAX_ROWS}).value
        wanted = client.ask("inbox.list").value if not os.environ.get("COVEY_TOKEN") else []
    for line in _head(client, value, wanted, most):
        print(line)
    total = sum(page.total if page.total is not None else len(page.value) for page in pages)
    _part("Open tasks", list(tree(tasks, needs)), most, "covey task list", total)
    _part("Sessions", _lines(session.rows(value["sessions"], value["idle"])), most, "covey session list")
    _part("Leases", _lines(lease.rows(leases)), most // 2, "covey lease list")
    if value["unread"]:
        print(f"\nMail: {one(value['unread'], 'message')} not read; covey mail inbox lists them")
    landing = merge.rows(merges, at_work=client.url is not None)
    _part("Wants to land", _lines(landing), most, "covey merge list")
    _part("Commits of the last hour", list(_commits(client)), most // 2, "git log")


def _head(client: Client, value: Json, wanted: list[Json], most: int) -> Iterator[str]:
    """Yield the daemon, the counts, and what needs a person or stands still."""
    yield f"{value['project']}  {_daemon(client, value)}, log at {value['seq']:,}"
    counts = [f"{paint(name)} {count:,}" for name, count in value["counts"].items() if count]
    yield f"  {'  '.join(counts) or 'no tasks yet'}"
    told = [*merge.wrong_settings(client), *cost.today(value["today"])]
    if value["memory"]:
        runs = sum(bool(each["run"]) for each in value["sessions"])
        told.append(f"{one(runs, 'run')} in {size(value['memory'])} of memory")
    told += inbox.waiting(value["questions"], wanted)
    if value["paused"]:
        told.append(f"{paint('paused')}: nothing starts and nothing lands until covey resume")
    yield from (f"  {line}" for line in (*told, *standstills(value["waits"], most // 2)))


def _daemon(client: Client, value: Json) -> str:
    if client.url is None:
        from covey.cli.project.daemon import died

        agents = sum(bool(each["run"]) for each in value["sessions"])
        work_on = f", {one(agents, 'agent')} at work without it (covey up takes them up again)" if agents else ""
        return f"{'no daemon' if not died(client) else 'the daemon has died'}{work_on}"
    beyond = client.said
    also = f" and {beyond['bind']} (certificate SHA-256 {beyond['fingerprint']})" if "bind" in beyond else ""
    return f"daemon up at {client.url}{also}, covey open shows its page"


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _part(title: str, lines: list[str], most: int, way: str, total: int | None = None) -> None:
    """Print the first lines of a part, and what shows the rest of it."""
    if not lines:
        return
    print(f"\n{title}:")
    room = width() if os.isatty(1) else None  # a line is cut nowhere, unless a terminal would wrap it
    for line in lines[:most]:
        print(f"  {line}"[:room] if "\x1b" not in line else f"  {line}")
    rest = (len(lines) if total is None else total) - min(len(lines), most)
    if rest > 0:
        print(f"  ... and {rest:,} more; {way} shows them")


def tree(tasks: list[Json], unmet: dict[str, list[str]]) -> Iterator[str]:
    """Yield a line for each task, children below their parents, each with what it waits for."""
    rows = [(f"{'  ' * depth}{task['id']}", task) for task, depth in nested(tasks, "id")]
    padding = max((len(name) for name, _ in rows), default=0)
    for name, task in rows:
        holder = f"  [{task['session']}]" if task["session"] and task["status"] == "doing" else ""
        needs = f"  needs {', '.join(unmet[task['id']])}" if task["id"] in unmet else ""
        words = title(task["title"], 2 + padding + 11 + len(holder) + len(needs))
        yield f"{name:<{padding}}  {paint(task['status'], 7)}  {words}{holder}{needs}"


def _commits(client: Client) -> Iterator[str]:
    """Yield the commits of the last hour; a run far from the repository sees none."""
    from pathlib import Path

    from covey.git.project import find, recent_commits

    try:
        for short, moment, author, subject in recent_commits(find(Path(client.folder)), "1 hour ago"):
            yield f"{short}  {age(moment)}  {plain(author)}: {plain(subject)}"
    except CoveyError:
        return


COMMAND = Command(
    "show the project at a glance: what needs you, board, sessions, leases, mail, merges, fresh commits",
    flag("--all", "show all of each part (default: what fits a screen)"),
    status,
    example="covey status\ncovey status --all",
)
