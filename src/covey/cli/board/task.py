"""covey task: the board."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Callable, Iterator

from covey.cli.board.diff import OPTIONS as DIFF_OPTIONS
from covey.cli.board.diff import diff
from covey.cli.board.unmet_needs import unmet
from covey.cli.frame.client import Answer, Client, Json
from covey.cli.frame.command import (
    Command,
    Parser,
    asking,
    body_of,
    either,
    fenced,
    flag,
    given,
    later,
    money,
    option,
    speaker,
    text_of,
    whole_number,
)
from covey.cli.frame.output import as_json, card, clock, escaped, paint, plain, quoted, reply, standstills, table, title
from covey.core import figures
from covey.errors import Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

    from covey.cli.frame.command import Arguments

ABOUT = "The board: every task is handed out exactly once, and nothing on it is ever lost."
STATUSES = ("backlog", "todo", "doing", "review", "merging", "done", "blocked", "dropped")
NOTHING_WAITS_EXIT = 3
"""Exit code of `task next` when nothing waits."""
MAX_TASKS_PER_PAGE = 1000
MAX_REASONS_SHOWN = 5
"""Reasons why tasks wait that are told below the board."""


# Options


PRIORITY = whole_number(-1_000_000, 1_000_000)
ID = option("id", metavar="ID")
HELD = (ID, fenced)
CLAIMS = (speaker, flag("--overlap", "take it even if another task in progress may write the same paths"))
FORMAT = ("md", "jsonl")


# Fields


_NEVER_EMPTY = object()
"""What stands for the emptiness of a field that has always a value."""


class Field:
    """A field of a task: its options, what empties it, and how `covey task show` prints it.

    Without options it has one of its name, with these settings.
    """

    def __init__(
        self,
        name: str,
        *options: Arguments,
        empty: object = _NEVER_EMPTY,
        label: str = "",
        show: Callable[[Json], str | None] = lambda task: None,
        **settings: Any,
    ) -> None:
        self.name = name
        self.options = options or (option(f"--{name.replace('_', '-')}", **settings),)
        self.empty = empty
        self.label = label or name
        self.show = show


def _needs(task: Json) -> str:
    return ", ".join(f"{need} (or dropped)" if need in task["needs_any"] else need for need in task["needs"])


FIELDS = (
    Field(
        "body",
        option("--body", metavar="TEXT", help="the full description; - reads it from standard input"),
        option("--body-file", metavar="FILE", help="read the description from a file; - is standard input"),
        empty="",
    ),
    Field("kind", choices=("change", "report"), help="a change ends in a merge, a report in words (default: change)",
          show=lambda task: task["kind"] if task["kind"] != "change" else None),
    Field("status", choices=("backlog", "todo"), help="a task in the backlog is not handed out by `next`"),
    Field("assignee", metavar="NAME", help="only this session may take it; the task's id is made from the name",
          empty=None, label="for", show=lambda task: task["assignee"]),
    Field("role", metavar="ROLE", help="only sessions with this role may take it",
          empty=None, show=lambda task: task["role"]),
    Field("priority", type=PRIORITY, metavar="N", help="a larger number comes first",
          show=lambda task: str(task["priority"]) if task["priority"] else None),
    Field("parent", metavar="ID", help="the task that this one is part of",
          empty=None, show=lambda task: task["parent"]),
    Field("needs", action="append", metavar="ID,ID", help="tasks that must be done before this one starts",
          empty=[], show=_needs),
    Field("needs_any", action="append", metavar="ID", help="like --needs, but a dropped task counts as done",
          empty=[]),
    Field("scope", action="append", metavar="GLOB", help="paths that it may write; new:GLOB allows only new files",
          empty=[], show=lambda task: "  ".join(map(plain, task["scope"]))),
    Field("do_not_touch", action="append", metavar="GLOB", help="paths that it must not write",
          empty=[], label="not to touch", show=lambda task: "  ".join(map(plain, task["do_not_touch"]))),
    Field(
        "overlap",
        option("--overlap", action="store_const", const=True, help="it may run beside tasks that write the same paths"),
        option("--no-overlap", dest="overlap", action="store_const", const=False,
               help="it waits for them (the default)"),
    ),
    Field("done_when", action="append", metavar="CHECK", help="a command that passes, or words for the reviewer",
          empty=[]),
    Field("budget", type=money, metavar="MONEY", help="the most that it may cost, in dollars",
          empty=None, show=lambda task: None if task["budget"] is None else figures.money(task["budget"])),
    Field("note", metavar="TEXT", help="a remark to keep with the task"),
)  # fmt: skip
"""What a task has when it is added and when it is edited, in the order of the help and of `covey task show`."""
FIELD_OPTIONS = tuple(each for field in FIELDS for each in field.options)
CLEARS: Json = {
    **{field.name: field.empty for field in FIELDS if field.empty is not _NEVER_EMPTY},
    "batch": None,  # `covey run` gives it
}
"""What `covey task edit --clear` sends for a field."""


def _card(task: Json) -> str:
    return card(task, [(field.label, field.show(task)) for field in FIELDS])


def _own_id(parser: Parser) -> None:
    own = os.environ.get("COVEY_TASK") or None
    parser.add_argument("id", nargs="?", default=own, metavar="ID", help="default: COVEY_TASK")


def _place(parser: Parser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--above", metavar="ID", help="put it right above this task")
    where.add_argument("--below", metavar="ID", help="put it right below this task")
    where.add_argument("--first", dest="to", action="store_const", const="first", help="before all in its status")
    where.add_argument("--last", dest="to", action="store_const", const="last", help="after all in its status")


# Commands


def add(args: Namespace, client: Client) -> None:
    """Add a task to the board."""
    fields = {"title": " ".join(args.title), **_given(args)}
    answer = client.ask("task.add", fields=fields)
    reply(args, answer, f"Added {_name(answer.value)}")


def list_tasks(args: Namespace, client: Client) -> None:
    """List the board, a page of it or all of it; people see what is open first."""
    query = body_of(args, "status", "session", "assignee", "after")
    limit = None if args.all else args.limit or 200
    if args.json:
        pages = list(_pages(client, query, limit))
        print(escaped("[" + ",".join(part for page in pages if (part := page.body.decode()[1:-1])) + "]"))
        return
    tasks, total = _open_first(client, query, limit)
    if text := _board(tasks, client):
        print(text)
    if len(tasks) == limit and limit < total:
        print(f"... of {total:,}; --after {tasks[-1]['id']} or --all shows more")
    is_person = os.isatty(1) and not os.environ.get("COVEY_TOKEN")
    if is_person and any(task["status"] == "todo" for task in tasks):  # a program that reads lines gets tasks alone
        for line in standstills(client.ask("wait.list", fields={"limit": 1}).value["lanes"], MAX_REASONS_SHOWN):
            print(line)


def _open_first(client: Client, query: Json, limit: int | None) -> tuple[list[Json], int]:
    """Return the tasks that a query wants, those first that are open, and how many it finds at all."""
    found: list[Json] = []
    total = 0
    with client:
        after = query.pop("after", None)
        is_behind = after is not None and client.ask("task.show", {"id": after}).value["status"] in ("done", "dropped")
        for is_open in (True, False):
            part = {**query, "open": is_open, **({"after": after} if after and is_behind is not is_open else {})}
            pages = list(_pages(client, part, None if limit is None else max(limit - len(found), 1)))
            total += pages[0].total or 0
            if not (is_open and is_behind):
                found += [task for page in pages for task in page.value]
    return found[:limit], total


def _pages(client: Client, query: Json, limit: int | None) -> Iterator[Answer]:
    """Yield a page of the board, without a limit every page of it."""
    while True:
        answer = client.ask("task.list", fields={**query, "limit": limit or MAX_TASKS_PER_PAGE})
        yield answer
        if limit is not None or len(answer.value) < MAX_TASKS_PER_PAGE:
            return
        query = {**query, "after": answer.value[-1]["id"]}


def show(args: Namespace, client: Client) -> None:
    """Show a task whole, and the trail of what happened to it."""
    if args.id is None:
        raise Invalid("The ID of a task is missing.", hint="covey task list shows them; an agent's own is the default.")
    answer = client.ask("task.show", {"id": args.id})
    if args.json:
        as_json(answer)
        return
    from covey.cli.history import log
    from covey.core.fleet.sessions import OWNER

    events = client.ask("log.list", fields={"subject": args.id, "limit": 1000, "newest": True}).value
    print(_card(answer.value))
    for what in answer.value["notes"]:
        print(f"  {'note':<13}by {what['by']}:", *quoted(what["text"], " " * 15), sep="\n")
    for attempt in answer.value["tries"]:
        by = attempt["by"]
        head = f"{'sent back':<13}by {by}, to" if by == OWNER else f"{'tried':<13}by"
        print(f"  {head} {attempt['session']}:", *quoted(attempt["what"], " " * 15), sep="\n")
    print("\nWhat happened:")
    for event in events:
        print(log.line(event))


def edit(args: Namespace, client: Client) -> None:
    """Change some fields of a task, or of several."""
    fields = body_of(args, "title") | _given(args)
    for name in args.clear or ():
        if name in fields:
            raise Invalid(f"{name} cannot be both given and cleared.")
        fields[name] = CLEARS[name]
    if not fields:
        raise Invalid("No change was given.", hint="covey task edit --help lists what can be changed.")
    if len(args.ids) > 1:
        answer = client.ask("task.bulk", fields={"ids": args.ids, "changes": fields})
        reply(args, answer, "\n".join(f"Changed {_name(task)}" for task in answer.value))
        return
    task = args.ids[0]
    with client:
        before = None if args.json else client.ask("task.show", {"id": task}).value
        answer = client.ask("task.edit", {"id": task}, fields)
    is_same = before is not None and _fixed(before) == _fixed(answer.value)
    lines = [f"Nothing of {task} changed."] if is_same else _changed(answer.value, fields)
    reply(args, answer, "\n".join(lines))


def _changed(task: Json, fields: Json) -> list[str]:
    """Say which task was changed, and what undoes that if it came from a file, unless no file has such a field."""
    file = (task["key"] or "").partition("#")[0]
    said = [f"Changed {_name(task)}"]
    if not file or fields.keys() <= {"status", "note"}:
        return said
    return [
        *said,
        f"It came from {plain(file)}, and takes on again what stands there when that is imported or run again.",
    ]


def _fixed(task: Json) -> Json:
    """Return what of a task only an edit changes."""
    return {name: value for name, value in task.items() if name not in ("until", "waits")}


def drop(args: Namespace, client: Client) -> None:
    """Drop one task; the id of another in the place of the reason is no reason, and would be lost there."""
    words = given(args, "reason").get("reason", "").split()
    if words and all(_LIKE_AN_ID.fullmatch(word) for word in words):
        raise Invalid(
            f"{words[0]} stands where the reason does: one task is dropped at a time.",
            hint=f"covey task drop {words[0]} drops that one too.",
        )
    _drop(args, client)


_LIKE_AN_ID = re.compile(r"[A-Z0-9]{1,5}-[1-9][0-9]*")
_drop = asking(
    "task.drop", "reason", show=lambda _, args: f"Dropped {args.id}; covey task reopen {args.id} brings it back"
)


def reopen(args: Namespace, client: Client) -> None:
    """Let tasks that are blocked or were dropped be tried anew, all of them or none."""
    if len(args.ids) > 1:
        answer = client.ask("task.bulk", fields={"ids": args.ids, "reopen": True})
        reply(args, answer, "\n".join(f"Reopened {_name(task)}" for task in answer.value))
        return
    (task,) = args.ids
    with client:
        answer = client.ask("task.reopen", {"id": task})
        needed = [] if args.json else client.ask("task.deps", {"id": task}).value["needed_by"]
    said = f"Reopened {_name(answer.value)}"
    if blocked := [edge["id"] for edge in needed if edge["status"] == "blocked"]:
        said += f"\nWhat needs it is still blocked; covey task reopen brings each back: {', '.join(blocked)}"
    reply(args, answer, said)


def claim(args: Namespace, client: Client) -> None:
    """Claim a task that waits."""
    with client:
        _show_claimed(args, client, client.ask("task.claim", {"id": args.id}, given(args, "session", "overlap")))


def next_task(args: Namespace, client: Client) -> int:
    """Claim the next task that suits a session; nothing and exit code 3 if none waits."""
    with client:
        answer = client.ask("task.next", fields=given(args, "session", "overlap"))
        if answer.value is None:
            return NOTHING_WAITS_EXIT
        _show_claimed(args, client, answer)
    return 0


def _show_claimed(args: Namespace, client: Client, answer: Answer) -> None:
    """Show a task that was claimed, and who holds what it waits for."""
    reply(args, answer, _card(answer.value))
    if answer.value["scope"] and not args.json:
        from covey.cli.leases import lease_wait

        waits = lease_wait.stands_behind(answer.value["id"], client.ask("lease.list", fields={"waiting": True}).value)
        if waits:
            print(waits)


def handin(args: Namespace, client: Client) -> None:
    """Hand in the work on a task."""
    fields = body_of(args, "session", "fence", "branch")
    result = text_of(args.result, args.result_file, "The result")
    if result is not None:
        fields["result"] = result
    if args.commit is not None:
        from covey.cli.merging.merge import whole_hash

        fields["commit"] = whole_hash(client.folder, args.commit)
    answer = client.ask("task.handin", {"id": args.id}, fields)
    reply(args, answer, f"Handed in {args.id}: it is {paint(answer.value['status'])}")


def _moved(task: Json, args: Namespace) -> str:
    where = args.to or (f"above {args.above}" if args.above else f"below {args.below}")
    return f"{args.id} is {where}, with priority {task['priority']}"


def _deps(value: Json, args: Namespace) -> str:
    """Return what a task waits for, and what waits for it."""
    rows = [("needs", edge["id"], edge["status"], _edge(edge)) for edge in value["needs"]]
    rows += [("needed by", edge["id"], edge["status"], _edge(edge)) for edge in value["needed_by"]]
    lines = [table(rows, words=2)] if rows else []
    lines += [f"parent    {value['parent']}"] if value["parent"] else []
    lines += [f"children  {', '.join(value['children'])}"] if value["children"] else []
    return "\n".join(lines) or f"{args.id} waits for nothing, and nothing waits for it."


def _edge(edge: Json) -> str:
    return f"{edge['title']} (goes on if it is dropped)" if edge["policy"] == "any" else str(edge["title"])


# Help for them


def _given(args: Namespace) -> Json:
    """Return the fields of a task that were given."""
    fields = body_of(args, *(field.name for field in FIELDS))
    for name in ("needs", "needs_any"):
        if name in fields:
            fields[name] = [part for given in fields[name] for part in given.replace(",", " ").split()]
            if not fields[name]:  # as when a variable of a script is empty
                raise Invalid(f"{name} must not be empty.", hint=f"covey task edit --clear {name} takes all away.")
    body = text_of(args.body, args.body_file, "The body")
    return fields if body is None else fields | {"body": body}


def _name(task: Json) -> str:
    return f"{task['id']}: {plain(task['title'])}"


def _board(tasks: list[Json], client: Client) -> str:
    with client:
        needs = unmet(client, tasks)
    heads = [(task["id"], task["status"], _whose(task)) for task in tasks]
    beside = sum(max((len(head[i]) for head in heads), default=0) + 2 for i in range(3))
    return table(
        ((*head, _title(task, needs.get(task["id"]), beside)) for head, task in zip(heads, tasks, strict=True)), words=1
    )


def _whose(task: Json) -> str:
    """Return who has a task; "for ada" is whom it waits for."""
    return str(task["session"] or (f"for {task['assignee']}" if task["assignee"] else ""))


def _title(task: Json, needs: list[str] | None, beside: int) -> str:
    waits = task["status"] in ("todo", "backlog") and not task["ready"]
    why = f" ({'needs ' + ', '.join(needs) if needs else 'waits for its children'})" if waits else ""
    return title(task["title"], beside + len(why)) + why


COMMANDS = {
    "add": Command("add a task to the board",
                   (option("title", nargs="+", metavar="TITLE", help="what to do, in one line"), *FIELD_OPTIONS), add,
                   example='covey task add "Limit the login rate" --assignee auth-fix --scope "src/**" --needs AF-1'),
    "list": Command("list the tasks: open ones first, the most urgent at the top", (
        option("--status", choices=STATUSES, help="only tasks in this status"),
        option("--session", metavar="NAME", help="only tasks that this session holds or held"),
        option("--assignee", metavar="NAME", help="only tasks that are for this session"),
        option("--limit", type=whole_number(1, MAX_TASKS_PER_PAGE), metavar="N", help="how many (default 200)"),
        option("--after", metavar="ID", help="start after this task"),
        flag("--all", "show every task, not only the first page"),
    ), list_tasks, example="covey task list --status todo --limit 20"),
    "show": Command("show everything about a task, and its history", _own_id, show, example="covey task show AF-1"),
    "edit": Command("change fields of one or more tasks", (
        option("ids", nargs="+", metavar="ID", help="several tasks change together: all of them, or none"),
        option("--title", metavar="TEXT", help="the new title"),
        *FIELD_OPTIONS,
        option("--clear", action="append", choices=tuple(CLEARS), metavar="FIELD", help="empty a field"),
    ), edit, example="covey task edit AF-1 AF-2 --priority 5 --clear assignee\n"
                     "covey task edit AF-1 --body - < notes.md"),
    "move": Command("move a task up or down the board; the first task is the next one taken",
                    (ID, _place, option("--priority", type=PRIORITY, metavar="N", help="default: one that fits there")),
                    asking("task.move", "above", "below", "to", "priority", show=_moved),
                    example="covey task move AF-3 --above AF-1\ncovey task move AF-3 --first"),
    "claim": Command("take a task that waits; the answer has the fence, which proves the claim", (ID, *CLAIMS), claim,
                     example="covey task claim AF-1 --as ada --json"),
    "next": Command("take the next task that this session may work on; exit code 3 if there is none", CLAIMS, next_task,
                    example="while covey task next --as ada --json > task.json; do ./work task.json; done"),
    "renew": Command("tell covey that the task's holder is still working", HELD,
                     asking("task.renew", "session", "fence", show=lambda task, args:
                            f"{args.id} is {task['session']}'s"
                            + (f" until {clock(task['until'])}" if task["until"] else "")),
                     example="covey task renew AF-1 --as ada --fence 1"),
    "handin": Command("hand in the finished work on a task", (
        *HELD,
        option("--result", metavar="TEXT", help="what was done; - reads it from standard input"),
        option("--result-file", metavar="FILE", help="read the result from a file; - is standard input"),
        option("--commit", metavar="COMMIT", help="the commit with the work: any name that git understands"),
        option("--branch", metavar="NAME", help="its branch (default: covey/ID)"),
    ), handin, example="covey task handin AF-1 --as ada --fence 1 --commit HEAD --branch covey/AF-1"),
    "release": Command("give a task back to the board",
                       (*HELD, option("--reason", metavar="TEXT", help="what went wrong, for whoever tries next")),
                       asking("task.release", "session", "fence", "reason",
                              show=lambda _, args: f"Released {args.id}: it waits on the board"),
                       example='covey task release AF-1 --as ada --reason "the fixture is missing"'),
    "block": Command("block a task until a person decides",
                     (*HELD, either("reason", "REASON", "what a person has to decide")),
                     asking("task.block", "session", "fence", "reason",
                            show=lambda _, args: f"Blocked {args.id}; covey task reopen {args.id} brings it back"),
                     example='covey task block AF-1 --as ada "Which of the two limits is meant?"'),
    "drop": Command("drop a task: it will not be done",
                    (ID, either("reason", "REASON", "why it will not be done", required=False)),
                    drop,
                    example='covey task drop AF-1 "We use the new service instead"'),
    "reopen": Command("open blocked or dropped tasks again",
                      option("ids", nargs="+", metavar="ID"), reopen,
                      example="covey task reopen AF-1 AF-2", prints="the task, or of several a list"),
    "diff": Command("show what a task's work changes, or what it would conflict with", DIFF_OPTIONS, diff,
                    example="covey task diff AF-1 --stat\ncovey task diff AF-1 src/login.py"),
    "deps": Command("show what a task waits for, and what waits for it", ID, asking("task.deps", show=_deps),
                    example="covey task deps AF-1"),
    "import": Command("add the tasks of a file to the board, or update them from it", (
        option("file", metavar="FILE", help="TODO.md or tasks.jsonl; - is standard input (JSON lines)"),
        option("--format", choices=FORMAT, help="the format of the file (default: from its name)"),
    ), later("board.importing", "import_file"), example="covey task import TODO.md\ncovey task import tasks.jsonl"),
    "export": Command("write the board to a file, or tick the boxes of a checklist", (
        option("file", nargs="?", metavar="FILE", help="where to (default: standard output)"),
        option("--format", choices=FORMAT, help="default: from the name of FILE, else md"),
        flag("--force", "replace FILE if it exists"),
    ), later("board.exporting", "export_file"),
                      example="covey task export --format jsonl > tasks.jsonl\n"
                              "covey task export TODO.md   ticks what is done"),
}  # fmt: skip
