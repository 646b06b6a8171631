"""covey task: the board."""

from __future__ import annotations

import os
from argparse import Namespace

from covey.cli.client import Answer, Client
from covey.cli.command import Command, Parser, body_of, fenced, money, speaker, text_of, whole_number
from covey.cli.diff import arguments as diff_arguments
from covey.cli.diff import diff
from covey.cli.needs import unmet
from covey.cli.show import as_json, card, clock, escaped, paint, plain, quoted, reply, standstills, table, title
from covey.errors import Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ABOUT = "The board: every task is handed out exactly once, and nothing on it is ever lost."
STATUSES = ("backlog", "todo", "doing", "review", "merging", "done", "blocked", "dropped")
NOTHING = 3
"""Exit code of `task next` when nothing waits."""
PAGE = 1000
REASONS = 5
"""Reasons why tasks wait that are told below the board."""
LISTS = ("needs", "needs_any", "scope", "do_not_touch", "done_when")
CLEARS: dict[str, Any] = {
    "assignee": None, "role": None, "parent": None, "budget": None, "batch": None, "body": "",
    **{name: [] for name in LISTS},
}  # fmt: skip


# Options


def _fields(parser: Parser) -> None:
    """Add the fields that a task has when it is added and when it is edited."""
    parser.add_argument("--body", metavar="TEXT", help="what is to be done; - reads it from standard input")
    parser.add_argument("--body-file", metavar="FILE", help="the file with the body; - is standard input")
    parser.add_argument("--kind", choices=("change", "report"), help="what it ends in (default: change)")
    parser.add_argument("--status", choices=("backlog", "todo"), help="backlog keeps it out of `next`")
    parser.add_argument("--assignee", metavar="NAME", help="the session that it is for; its id comes from it")
    parser.add_argument("--role", metavar="ROLE", help="the role of the sessions that it is for")
    parser.add_argument("--priority", type=whole_number(-1_000_000, 1_000_000), metavar="N", help="larger comes first")
    parser.add_argument("--needs", action="append", metavar="ID,ID", help="tasks that have to be done before it")
    parser.add_argument(
        "--needs-any", action="append", metavar="ID", help="the same, but it goes on if they are dropped"
    )
    parser.add_argument("--parent", metavar="ID", help="the task that it is a part of")
    parser.add_argument(
        "--scope", action="append", metavar="GLOB", help="paths that it may write; new:GLOB only new files"
    )
    parser.add_argument("--do-not-touch", action="append", metavar="GLOB", help="paths that it may not write")
    parser.add_argument(
        "--overlap", action="store_const", const=True, help="it may run beside tasks that write the same paths"
    )
    parser.add_argument(
        "--no-overlap", dest="overlap", action="store_const", const=False, help="it may not (the default)"
    )
    parser.add_argument("--done-when", action="append", metavar="CHECK", help="a command, or words for the reviewer")
    parser.add_argument("--budget", type=money, metavar="MONEY", help="what it may cost")
    parser.add_argument("--note", metavar="TEXT", help="a remark that stays with the task")


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("title", nargs="+", metavar="TITLE", help="what it is, in one line")
    _fields(parser)


def _edit_arguments(parser: Parser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="several are changed together, all or none")
    parser.add_argument("--title", metavar="TEXT", help="the new title")
    _fields(parser)
    parser.add_argument("--clear", action="append", choices=tuple(CLEARS), metavar="FIELD", help="empty a field")


def _move_arguments(parser: Parser) -> None:
    _id(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--above", metavar="ID", help="the task right above which it shall stand")
    where.add_argument("--below", metavar="ID", help="the task right below which it shall stand")
    where.add_argument("--first", dest="to", action="store_const", const="first", help="before all in its status")
    where.add_argument("--last", dest="to", action="store_const", const="last", help="behind all in its status")
    parser.add_argument(
        "--priority", type=whole_number(-1_000_000, 1_000_000), metavar="N", help="default: one that fits there"
    )


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("--status", choices=STATUSES, help="only tasks in this status")
    parser.add_argument("--session", metavar="NAME", help="only tasks that this session holds or held")
    parser.add_argument("--assignee", metavar="NAME", help="only tasks that are for this session")
    parser.add_argument("--limit", type=whole_number(1, PAGE), metavar="N", help="how many (default 200)")
    parser.add_argument("--after", metavar="ID", help="only what comes after this task on the board")
    parser.add_argument("--all", action="store_true", help="every page of it")


def _id(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID")


def _ids(parser: Parser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID")


def _own_id(parser: Parser) -> None:
    parser.add_argument(
        "id", nargs="?", default=os.environ.get("COVEY_TASK") or None, metavar="ID", help="default: COVEY_TASK"
    )


def _claim_arguments(parser: Parser) -> None:
    _id(parser)
    _next_arguments(parser)


def _next_arguments(parser: Parser) -> None:
    speaker(parser)
    parser.add_argument("--overlap", action="store_true", help="although another task at work may write the same paths")


def _held_arguments(parser: Parser) -> None:
    _id(parser)
    fenced(parser)


def _handin_arguments(parser: Parser) -> None:
    _held_arguments(parser)
    parser.add_argument("--result", metavar="TEXT", help="what came of it; - reads it from standard input")
    parser.add_argument("--result-file", metavar="FILE", help="the file with the result; - is standard input")
    parser.add_argument("--commit", metavar="COMMIT", help="the commit with the work, in any way that git names it")
    parser.add_argument("--branch", metavar="NAME", help="its branch (default: covey/ID)")


def _release_arguments(parser: Parser) -> None:
    _held_arguments(parser)
    parser.add_argument("--reason", metavar="TEXT", help="what went wrong, for whoever tries next")


def _block_arguments(parser: Parser) -> None:
    _held_arguments(parser)
    parser.either("reason", "REASON", "what a person has to decide")


def _drop_arguments(parser: Parser) -> None:
    _id(parser)
    parser.either("reason", "REASON", "why it will not be done", required=False)


def _import_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="TODO.md or tasks.jsonl; - is standard input (JSON lines)")
    parser.add_argument("--format", choices=("md", "jsonl"), help="what is in it (default: by its name)")


def _export_arguments(parser: Parser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="where to (default: standard output)")
    parser.add_argument("--format", choices=("md", "jsonl"), help="default: by the name of FILE, else md")
    parser.add_argument("--force", action="store_true", help="write FILE anew although it exists")


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
        for line in standstills(client.ask("wait.list", fields={"limit": 1}).value["lanes"], REASONS):
            print(line)


def _open_first(client: Client, query: dict[str, Any], limit: int | None) -> tuple[list[dict[str, Any]], int]:
    """Return the tasks that a query wants, those first that are open, and how many it finds at all."""
    found: list[dict[str, Any]] = []
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


def _pages(client: Client, query: dict[str, Any], limit: int | None) -> Iterator[Answer]:
    """Yield a page of the board, without a limit every page of it."""
    while True:
        answer = client.ask("task.list", fields={**query, "limit": limit or PAGE})
        yield answer
        if limit is not None or len(answer.value) < PAGE:
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
    from covey.cli import trail
    from covey.core.sessions import OWNER

    events = client.ask("log.list", fields={"subject": args.id, "limit": 1000, "newest": True}).value
    print(card(answer.value))
    for what in answer.value["notes"]:
        print(f"  {'note':<13}by {what['by']}:", *quoted(what["text"], " " * 15), sep="\n")
    for attempt in answer.value["tries"]:
        by = attempt["by"]
        head = f"{'sent back':<13}by {by}, to" if by == OWNER else f"{'tried':<13}by"
        print(f"  {head} {attempt['session']}:", *quoted(attempt["what"], " " * 15), sep="\n")
    print("\nWhat happened:")
    for event in events:
        print(trail.line(event))


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
    reply(args, answer, f"Nothing of {task} changed." if is_same else f"Changed {_name(answer.value)}")


def _fixed(task: dict[str, Any]) -> dict[str, Any]:
    """Return what of a task only an edit changes."""
    return {name: value for name, value in task.items() if name not in ("until", "waits")}


def move(args: Namespace, client: Client) -> None:
    """Put a task at another place on the board."""
    answer = client.ask("task.move", {"id": args.id}, body_of(args, "above", "below", "to", "priority"))
    ends = {"first": "first", "last": "last"}
    where = ends.get(args.to) or (f"above {args.above}" if args.above else f"below {args.below}")
    reply(args, answer, f"{args.id} is {where}, with priority {answer.value['priority']}")


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
        _show_claimed(args, client, client.ask("task.claim", {"id": args.id}, _claim(args)))


def next_task(args: Namespace, client: Client) -> int:
    """Claim the next task that suits a session; nothing and exit code 3 if none waits."""
    with client:
        answer = client.ask("task.next", fields=_claim(args))
        if answer.value is None:
            return NOTHING
        _show_claimed(args, client, answer)
    return 0


def _show_claimed(args: Namespace, client: Client, answer: Answer) -> None:
    """Show a task that was claimed, and who holds what it waits for."""
    reply(args, answer, card(answer.value))
    if answer.value["scope"] and not args.json:
        from covey.cli import turns

        waits = turns.stands_behind(answer.value["id"], client.ask("lease.list", fields={"waiting": True}).value)
        if waits:
            print(waits)


def _claim(args: Namespace) -> dict[str, Any]:
    return body_of(args, "session") | ({"overlap": True} if args.overlap else {})


def renew(args: Namespace, client: Client) -> None:
    """Say that the holder of a task is alive."""
    answer = client.ask("task.renew", {"id": args.id}, body_of(args, "session", "fence"))
    until = answer.value["until"]
    reply(args, answer, f"{args.id} is {answer.value['session']}'s" + (f" until {clock(until)}" if until else ""))


def handin(args: Namespace, client: Client) -> None:
    """Hand in the work on a task."""
    fields = body_of(args, "session", "fence", "branch")
    result = text_of(args.result, args.result_file, "The result")
    if result is not None:
        fields["result"] = result
    if args.commit is not None:
        from covey.cli.merge import whole_hash

        fields["commit"] = whole_hash(client.folder, args.commit)
    answer = client.ask("task.handin", {"id": args.id}, fields)
    reply(args, answer, f"Handed in {args.id}: it is {paint(answer.value['status'])}")


def release(args: Namespace, client: Client) -> None:
    """Give a task back to the board."""
    answer = client.ask("task.release", {"id": args.id}, body_of(args, "session", "fence", "reason"))
    reply(args, answer, f"Released {args.id}: it waits on the board")


def block(args: Namespace, client: Client) -> None:
    """Take a task out of play until a person decides."""
    fields = body_of(args, "session", "fence", "reason")
    answer = client.ask("task.block", {"id": args.id}, fields)
    reply(args, answer, f"Blocked {args.id}; covey task reopen {args.id} brings it back")


def drop(args: Namespace, client: Client) -> None:
    """End a task without doing it."""
    answer = client.ask("task.drop", {"id": args.id}, body_of(args, "reason"))
    reply(args, answer, f"Dropped {args.id}; covey task reopen {args.id} brings it back")


def deps(args: Namespace, client: Client) -> None:
    """Show what a task waits for, and what waits for it."""
    answer = client.ask("task.deps", {"id": args.id})
    value = answer.value
    rows = [("needs", edge["id"], edge["status"], _edge(edge)) for edge in value["needs"]]
    rows += [("needed by", edge["id"], edge["status"], _edge(edge)) for edge in value["needed_by"]]
    lines = [table(rows, words=2)] if rows else []
    lines += [f"parent    {value['parent']}"] if value["parent"] else []
    lines += [f"children  {', '.join(value['children'])}"] if value["children"] else []
    reply(args, answer, "\n".join(lines) or f"{args.id} waits for nothing, and nothing waits for it.")


def _edge(edge: dict[str, Any]) -> str:
    return f"{edge['title']} (goes on if it is dropped)" if edge["policy"] == "any" else str(edge["title"])


def import_file(args: Namespace, client: Client) -> None:
    """Bring the tasks of a file onto the board, or up to date."""
    from covey.cli import importing

    importing.import_file(args, client)


def export_file(args: Namespace, client: Client) -> None:
    """Write the board to a file, or tick the boxes of a checklist."""
    from covey.cli import exporting

    exporting.export_file(args, client)


# Help for them


def _given(args: Namespace) -> dict[str, Any]:
    fields = body_of(
        args, "kind", "status", "assignee", "role", "priority", "parent", "scope", "do_not_touch", "overlap",
        "done_when", "budget", "note",
    )  # fmt: skip
    for name in ("needs", "needs_any"):
        if getattr(args, name) is not None:
            fields[name] = [part for given in getattr(args, name) for part in given.replace(",", " ").split()]
            if not fields[name]:  # as when a variable of a script is empty
                raise Invalid(f"{name} must not be empty.", hint=f"covey task edit --clear {name} takes all away.")
    body = text_of(args.body, args.body_file, "The body")
    return fields if body is None else fields | {"body": body}


def _name(task: dict[str, Any]) -> str:
    return f"{task['id']}: {plain(task['title'])}"


def _board(tasks: list[dict[str, Any]], client: Client) -> str:
    with client:
        needs = unmet(client, tasks)
    heads = [(task["id"], task["status"], _whose(task)) for task in tasks]
    beside = sum(max((len(head[i]) for head in heads), default=0) + 2 for i in range(3))
    return table(
        ((*head, _title(task, needs.get(task["id"]), beside)) for head, task in zip(heads, tasks, strict=True)), words=1
    )


def _whose(task: dict[str, Any]) -> str:
    """Return who has a task; "for ada" is whom it waits for."""
    return str(task["session"] or (f"for {task['assignee']}" if task["assignee"] else ""))


def _title(task: dict[str, Any], needs: list[str] | None, beside: int) -> str:
    waits = task["status"] in ("todo", "backlog") and not task["ready"]
    why = f" ({'needs ' + ', '.join(needs) if needs else 'waits for its children'})" if waits else ""
    return title(task["title"], beside + len(why)) + why


COMMANDS = {
    "add": Command("put a task onto the board", _add_arguments, add,
                   example='covey task add "Limit the login rate" --assignee auth-fix --scope "src/**" --needs AF-1'),
    "list": Command("list the board, open tasks first and of these the most urgent", _list_arguments, list_tasks,
                    example="covey task list --status todo --limit 20"),
    "show": Command("show a task whole, and what happened to it", _own_id, show, example="covey task show AF-1"),
    "edit": Command("change some fields of a task, or of several", _edit_arguments, edit,
                    example="covey task edit AF-1 AF-2 --priority 5 --clear assignee\n"
                            "covey task edit AF-1 --body - < notes.md"),
    "move": Command("put a task before or behind others; who claims next takes what is first", _move_arguments, move,
                    example="covey task move AF-3 --above AF-1\ncovey task move AF-3 --first"),
    "claim": Command("take a task that waits; the answer has the fence", _claim_arguments, claim,
                     example="covey task claim AF-1 --as ada --json"),
    "next": Command("take the next task that suits; exit code 3 if none waits", _next_arguments, next_task,
                    example="while covey task next --as ada --json > task.json; do ./work task.json; done"),
    "renew": Command("say that the holder of a task is alive", _held_arguments, renew,
                     example="covey task renew AF-1 --as ada --fence 1"),
    "handin": Command("hand in the work on a task", _handin_arguments, handin,
                      example="covey task handin AF-1 --as ada --fence 1 --commit HEAD --branch covey/AF-1"),
    "release": Command("give a task back to the board", _release_arguments, release,
                       example='covey task release AF-1 --as ada --reason "the fixture is missing"'),
    "block": Command("take a task out of play until a person decides", _block_arguments, block,
                     example='covey task block AF-1 --as ada "Which of the two limits is meant?"'),
    "drop": Command("end a task without doing it", _drop_arguments, drop,
                    example='covey task drop AF-1 "We use the new service instead"'),
    "reopen": Command("let tasks that are blocked or were dropped be tried anew", _ids, reopen,
                      example="covey task reopen AF-1 AF-2", prints="the task, or of several a list"),
    "diff": Command("show what the work for a task changes, or would conflict with", diff_arguments, diff,
                    example="covey task diff AF-1 --stat\ncovey task diff AF-1 src/login.py"),
    "deps": Command("show what a task waits for, and what waits for it", _id, deps, example="covey task deps AF-1"),
    "import": Command("bring the tasks of a file onto the board, or up to date", _import_arguments, import_file,
                      example="covey task import TODO.md\ncovey task import tasks.jsonl"),
    "export": Command("write the board to a file, or tick the boxes of a checklist", _export_arguments, export_file,
                      example="covey task export --format jsonl > tasks.jsonl\n"
                              "covey task export TODO.md   ticks what is done"),
}  # fmt: skip
