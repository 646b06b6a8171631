"""covey comment: what a person says of the lines of somebody's work."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser, text_of
from covey.cli.show import age, plain, prose, reply
from covey.errors import Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

ABOUT = "Comments on the work for a task: drafts until they are sent to whoever wrote it."


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("task", nargs="?", metavar="ID", help="the task; without one, all drafts are listed")


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("task", metavar="ID", help="the task whose work it is about")
    parser.add_argument("place", metavar="PATH:LINE", help="the line, or lines as 12-15; or a PATH, or - for all of it")
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what you say; - reads it from standard input")
    parser.add_argument("--old", action="store_true", help="the line is one of the file as it was before")


def _send_arguments(parser: Parser) -> None:
    parser.add_argument("task", metavar="ID", help="the task whose drafts are sent")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what you say besides")
    parser.add_argument("--back", action="store_true", help="send the work back to its author with them")


def _remove_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="COMMENT", help="for example comment-12")


def list_comments(args: Namespace, client: Client) -> None:
    """List comments, and what became of them."""
    answer = client.ask("comment.list", fields={"task": args.task} if args.task else {})
    reply(args, answer, "\n\n".join(map(_shown, answer.value)) or "No comments.")


def add(args: Namespace, client: Client) -> None:
    """Write a draft."""
    text = text_of(" ".join(args.text), None, "The text")
    if not text:
        raise Invalid("The comment is empty.")
    fields: dict[str, Any] = {"task": args.task, "text": text} | _place(args.place)
    if args.old:
        fields["side"] = "old"
    answer = client.ask("comment.write", fields=fields)
    reply(args, answer, f"Wrote {answer.value['id']}; covey comment send {args.task} sends what you wrote.")


def send(args: Namespace, client: Client) -> None:
    """Send the drafts on a task."""
    fields: dict[str, Any] = {"task": args.task, "back": args.back}
    if args.text:
        fields["text"] = text_of(" ".join(args.text), None, "The text") or ""
    answer = client.ask("comment.send", fields=fields)
    sent = answer.value
    count = len(sent["comments"])
    what = "1 comment" if count == 1 else f"{count} comments"
    done = (
        f"Sent {args.task} back with {what}"
        if args.back and count
        else f"Sent {args.task} back"
        if args.back
        else f"Sent {what}"
    )
    to = f" to {sent['to']}" if sent["to"] else ""
    reply(args, answer, f"{done}{to}." + (f"\n{plain(sent['waits'])}" if sent["waits"] else ""))


def remove(args: Namespace, client: Client) -> None:
    """Throw a draft away."""
    answer = client.ask("comment.remove", {"id": args.id})
    reply(args, answer, f"Removed {answer.value['id']}")


def _place(place: str) -> dict[str, Any]:
    if place == "-":
        return {}
    place = place.removeprefix("./")
    path, _, span = place.rpartition(":")
    begin, dash, end = span.partition("-")
    if not path or not begin.isdecimal() or (dash and not end.isdecimal()):
        return {"path": place}
    first, last = int(begin), int(end or begin)
    if last < first:
        raise Invalid(f"{span} ends before it begins.", hint=f"Write {path}:{last}-{first}.")
    return {"path": path, "line": first} | ({"lines": last - first + 1} if last > first else {})


def _shown(comment: dict[str, Any]) -> str:
    where = plain(comment["path"] or "the work as a whole") + _span(comment)
    moved = {"moved": f" (now line {comment['now']})", "outdated": " (outdated)"}.get(comment["place"] or "", "")
    lines = [f"{comment['id']}  {comment['task']}  {where}{moved}  {_became(comment)}"]
    lines += [f"  > {plain(comment['quote'])}"] if comment["quote"].strip() else []
    return "\n".join([*lines, *(f"  {line}" for line in prose(comment["text"]).split("\n"))])


def _span(comment: dict[str, Any]) -> str:
    if not comment["line"]:
        return ""
    last = comment["line"] + comment["lines"] - 1
    return f":{comment['line']}" + (f"-{last}" if comment["lines"] > 1 else "")


def _became(comment: dict[str, Any]) -> str:
    if comment["sent"] is None:
        return "draft"
    to = f" to {comment['to']}" if comment["to"] else ""
    sent = f"sent{to} {age(comment['sent'])}"
    return sent if comment["state"] == "sent" else f"{sent}, {comment['state']}"


COMMANDS = {
    "list": Command("list the comments on a task, and whether they were read", _list_arguments, list_comments,
                    example="covey comment list AF-1"),
    "add": Command("write a comment on a line; it is a draft", _add_arguments, add, owner=True,
                   example='covey comment add AF-1 src/login.py:12 "What if there is no user?"'),
    "send": Command("send the drafts on a task to whoever wrote its work", _send_arguments, send, owner=True,
                    example='covey comment send AF-1 --back "Almost there"'),
    "remove": Command("throw a draft away", _remove_arguments, remove, owner=True,
                      example="covey comment remove comment-12"),
}  # fmt: skip
