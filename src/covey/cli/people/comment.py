"""covey comment: what a person says of the lines of somebody's work."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, asking, flag, option, text_of
from covey.cli.frame.output import age, plain, prose, reply
from covey.core.figures import one
from covey.errors import Invalid

ABOUT = "Comments on the work for a task: drafts until they are sent to whoever wrote it."


def add(args: Namespace, client: Client) -> None:
    """Write a draft."""
    text = text_of(" ".join(args.text), None, "The text")
    if not text:
        raise Invalid("The comment is empty.")
    fields: Json = {"task": args.task, "text": text} | _place(args.place)
    fields |= {"side": "old"} if args.old else {}
    answer = client.ask("comment.write", fields=fields)
    reply(args, answer, f"Wrote {answer.value['id']}; covey comment send {args.task} sends what you wrote.")


def send(args: Namespace, client: Client) -> None:
    """Send the drafts on a task."""
    fields: Json = {"task": args.task, "back": args.back}
    if args.text:
        fields["text"] = text_of(" ".join(args.text), None, "The text") or ""
    answer = client.ask("comment.send", fields=fields)
    sent = answer.value
    what = one(len(sent["comments"]), "comment")
    back = f"Sent {args.task} back" + (f" with {what}" if sent["comments"] else "")
    done = back if args.back else f"Sent {what}"
    to = f" to {sent['to']}" if sent["to"] else ""
    reply(args, answer, f"{done}{to}." + (f"\n{plain(sent['waits'])}" if sent["waits"] else ""))


def _place(place: str) -> Json:
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


def _shown(comment: Json) -> str:
    where = plain(comment["path"] or "the work as a whole") + _span(comment)
    moved = {"moved": f" (now line {comment['now']})", "outdated": " (outdated)"}.get(comment["place"] or "", "")
    lines = [f"{comment['id']}  {comment['task']}  {where}{moved}  {_became(comment)}"]
    lines += [f"  > {plain(comment['quote'])}"] if comment["quote"].strip() else []
    return "\n".join([*lines, *(f"  {line}" for line in prose(comment["text"]).split("\n"))])


def _span(comment: Json) -> str:
    if not comment["line"]:
        return ""
    last = comment["line"] + comment["lines"] - 1
    return f":{comment['line']}" + (f"-{last}" if comment["lines"] > 1 else "")


def _became(comment: Json) -> str:
    if comment["sent"] is None:
        return "draft"
    to = f" to {comment['to']}" if comment["to"] else ""
    sent = f"sent{to} {age(comment['sent'])}"
    return sent if comment["state"] == "sent" else f"{sent}, {comment['state']}"


COMMANDS = {
    "list": Command("list the comments on a task, and whether they have been read",
                    option("task", nargs="?", metavar="ID", help="the task (default: all drafts, of every task)"),
                    asking("comment.list", "task",
                           show=lambda found, _: "\n\n".join(map(_shown, found)) or "No comments."),
                    example="covey comment list AF-1"),
    "add": Command("write a comment on a line, as a draft", (
        option("task", metavar="ID", help="the task whose work it is about"),
        option("place", metavar="PATH:LINE", help="a line, or lines such as 12-15; or a PATH, or - for all of it"),
        option("text", nargs="+", metavar="TEXT", help="what you say; - reads it from standard input"),
        flag("--old", "the line number refers to the file before the change"),
    ), add, owner=True, example='covey comment add AF-1 src/login.py:12 "What if there is no user?"'),
    "send": Command("send the drafts on a task to whoever wrote its work", (
        option("task", metavar="ID", help="the task whose drafts are sent"),
        option("text", nargs="*", metavar="TEXT", help="a message to send with them"),
        flag("--back", "also send the work back to its author"),
    ), send, owner=True, example='covey comment send AF-1 --back "Almost there"'),
    "remove": Command("delete a draft", option("id", metavar="COMMENT", help="for example comment-12"),
                      asking("comment.remove", show=lambda comment, _: f"Removed {comment['id']}"), owner=True,
                      example="covey comment remove comment-12"),
}  # fmt: skip
