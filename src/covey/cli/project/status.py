"""covey status: the project at a glance."""

from __future__ import annotations

import os
from argparse import Namespace

from covey.cli import cost, inbox, lease, merge, session
from covey.cli.client import Client
from covey.cli.command import Command, Parser, width
from covey.cli.needs import unmet
from covey.cli.show import age, as_json, paint, plain, standstills, title
from covey.core.figures import one, size
from covey.errors import CoveyError

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

OPEN = ("doing", "review", "merging", "blocked", "todo", "backlog")
FEW = 8
"""Rows of each part, so that all of it fits a screen."""
MOST = 1000


def _arguments(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="all of each part (default: what fits a screen)")


def status(args: Namespace, client: Client) -> None:
    """Show what needs a person, counts, open tasks, sessions, leases, mail, merges and fresh commits."""
    if args.json:
        as_json(client.ask("status"))
        return
    most = MOST if args.all else FEW
    with client:
        value = client.ask("status").value
        pages = [client.ask("task.list", fields={"status": name, "limit": most}) for name in OPEN]
        tasks = [task for page in pages for task in page.value]
        needs = unmet(client, tasks)
        leases = client.ask("lease.list").value
        merges = client.ask("merge.list", fields={"limit": MOST}).value
        wanted = client.ask("inbox.list").value if not os.environ.get("COVEY_TOKEN") else []
    print(f"{value['project']}  {_daemon(client, value)}, log at {value['seq']:,}")
    counts = [f"{paint(name)} {count:,}" for name, count in value["counts"].items() if count]
    print(f"  {'  '.join(counts) or 'no tasks yet'}")
    for line in merge.wrong_settings(client):
        print(f"  {line}")
    for line in cost.today(value["today"]):
        print(f"  {line}")
    if value["memory"]:
        runs = sum(bool(each["run"]) for each in value["sessions"])
        print(f"  {one(runs, 'run')} in {size(value['memory'])} of memory")
    for line in inbox.waiting(value["questions"], wanted):
        print(f"  {line}")
    if value["paused"]:
        print(f"  {paint('paused')}: nothing starts and nothing lands until covey resume")
    for line in standstills(value["waits"], most // 2):
        print(f"  {line}")
    _part("Open tasks", list(tree(tasks, needs)), most, "covey task list", _total(pages))
    _part("Sessions", _lines(session.rows(value["sessions"], value["idle"])), most, "covey session list")
    _part("Leases", _lines(lease.rows(leases)), most // 2, "covey lease list")
    if value["unread"]:
        print(f"\nMail: {one(value['unread'], 'message')} not read; covey mail inbox lists them")
    landing = merge.rows(merges, at_work=client.url is not None)
    _part("Wants to land", _lines(landing), most, "covey merge list")
    _part("Commits of the last hour", list(_commits(client)), most // 2, "git log")


def _daemon(client: Client, value: dict[str, Any]) -> str:
    if client.url is None:
        from covey.cli.daemon import died

        agents = sum(bool(each["run"]) for each in value["sessions"])
        work_on = f", {one(agents, 'agent')} at work without it (covey up takes them up again)" if agents else ""
        return f"{'no daemon' if not died(client) else 'the daemon has died'}{work_on}"
    beyond = client.said
    also = f" and {beyond['bind']} (certificate SHA-256 {beyond['fingerprint']})" if "bind" in beyond else ""
    return f"daemon up at {client.url}{also}, covey open shows its page"


def _total(pages: list[Any]) -> int:
    return sum(page.total if page.total is not None else len(page.value) for page in pages)


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _part(title: str, lines: list[str], most: int, way: str, total: int | None = None) -> None:
    """Print the first lines of a part, and what shows the rest of it."""
    if not lines:
        return
    print(f"\n{title}:")
    for line in lines[:most]:
        print(f"  {line}"[: _limit()] if "\x1b" not in line else f"  {line}")
    rest = (len(lines) if total is None else total) - min(len(lines), most)
    if rest > 0:
        print(f"  ... and {rest:,} more; {way} shows them")


def _limit() -> int | None:
    """Return where a line is cut: nowhere, unless a terminal would wrap it."""
    return width() if os.isatty(1) else None


def tree(tasks: list[dict[str, Any]], unmet: dict[str, list[str]]) -> Iterator[str]:
    """Yield a line for each task, children below their parents, each with what it waits for."""
    known = {task["id"]: task for task in tasks}
    children: dict[str | None, list[dict[str, Any]]] = {}
    for task in tasks:
        children.setdefault(task["parent"] if task["parent"] in known else None, []).append(task)
    stack = [(task, 0) for task in reversed(children.get(None, []))]
    rows: list[tuple[str, dict[str, Any]]] = []
    while stack:
        task, depth = stack.pop()
        rows.append((f"{'  ' * depth}{task['id']}", task))
        stack += [(child, depth + 1) for child in reversed(children.get(task["id"], []))]
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
    _arguments,
    status,
    example="covey status\ncovey status --all",
)
