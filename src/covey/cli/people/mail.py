"""covey mail: messages between sessions and people."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, asking, flag, given, option, speaker, text_of, whole_number
from covey.cli.frame.output import age, clock, first_line, plain, quoted, reply, table
from covey.errors import Invalid

ABOUT = "Mail: durable messages to a session, to role:NAME, to everyone or to the owner."


def send(args: Namespace, client: Client) -> None:
    """Send a message."""
    text = text_of(" ".join(args.text), None, "The text")
    if not text:
        raise Invalid("The message is empty.")
    fields = given(args, "to", "session", "subject", "task", "wants_ack", "wake") | {"text": text}
    answer = client.ask("mail.send", fields=fields)
    waits = f"\n{plain(answer.value['waits'])}" if answer.value["waits"] else ""
    reply(args, answer, f"Sent {answer.value['id']} to {answer.value['to']}{waits}")


def _listed(messages: list[Json], args: Namespace) -> str:
    rows = []
    for message in messages:
        about = message["subject"] or first_line(message["text"], 70)
        rows.append((message["id"], message["sender"], age(message["sent"]), _mark(message), about))
    return table(rows) or "No mail."


def _shown(message: Json, args: Namespace) -> str:
    """Return a message; its sender also sees who got it."""
    rows = [(each["reader"], _became(each)) for each in message["readers"]]
    return "\n\n".join(part for part in (_letter(message, args), table(rows)) if part)


def _mark(message: Json) -> str:
    if message["wants_ack"] and not message["acked"]:
        return "wants an answer"
    return _became(message).partition(" ")[0]


def _became(reading: Json) -> str:
    """Return the last that is known of a message with one who got it."""
    for mark, word in (("acked", "acknowledged"), ("delivered", "delivered"), ("read", "read")):
        if reading[mark]:
            return f"{word} {age(reading[mark])}"
    return ""


def _letter(message: Json, args: Namespace) -> str:
    lines = [f"{message['id']}  from {message['sender']} to {message['to']}, {clock(message['sent'])}"]
    lines += [f"  subject  {plain(message['subject'])}"] if message["subject"] else []
    lines += [f"  task     {message['task']}"] if message["task"] else []
    lines += ["", *quoted(message["text"], "")]
    if message["wants_ack"] and not message["acked"]:
        lines += ["", f"It wants to be acknowledged: covey mail ack {message['id']}"]
    return "\n".join(lines)


MAIL = (option("id", metavar="MAIL", help="for example mail-12"), speaker)
COMMANDS = {
    "send": Command("send a message", (
        option("to", metavar="TO", help="a session, role:NAME, everyone or owner"),
        option("text", nargs="+", metavar="TEXT", help="what you say; - reads it from standard input"),
        speaker,
        option("--subject", metavar="TEXT", help="what it is about, in one line"),
        option("--task", metavar="ID", help="the task that it is about"),
        flag("--wants-ack", "ask for an acknowledgement"),
        flag("--wake", "deliver it at once; an idle session starts a run to read it"),
    ), send, example='covey mail send ada "The schema changes at noon" --task AF-1 --wants-ack --wake'),
    "inbox": Command("list unread messages, the oldest first", (
        speaker,
        flag("--all", "include messages that were read"),
        option("--limit", type=whole_number(1, 1000), metavar="N", help="how many (default 200)"),
        option("--after", type=whole_number(0, 2**53), metavar="N", help="only messages after mail-N"),
    ), asking("mail.inbox", "session", "limit", "after", "all", show=_listed),
                     example="covey mail inbox --as ada --all"),
    "show": Command("show a message; its sender also sees who got it", MAIL,
                    asking("mail.show", "session", show=_shown), example="covey mail show mail-12"),
    "read": Command("read a message", MAIL, asking("mail.read", "session", show=_letter),
                    example="covey mail read mail-12 --as ada"),
    "ack": Command("confirm that you have read a message", MAIL,
                   asking("mail.ack", "session", show=lambda _, args: f"Acknowledged {args.id}"),
                   example="covey mail ack mail-12 --as ada"),
}  # fmt: skip
