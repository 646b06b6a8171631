"""covey mail: messages between sessions and people."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, speaker, text_of, whole_number
from covey.cli.show import age, clock, first_line, plain, quoted, reply, table
from covey.errors import Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

ABOUT = "Mail: durable messages to a session, to role:NAME, to everyone or to the owner."


def _send_arguments(parser: Parser) -> None:
    parser.add_argument("to", metavar="TO", help="a session, role:NAME, everyone or owner")
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what you say; - reads it from standard input")
    speaker(parser)
    parser.add_argument("--subject", metavar="TEXT", help="what it is about, in one line")
    parser.add_argument("--task", metavar="ID", help="the task that it is about")
    parser.add_argument("--wants-ack", action="store_true", help="ask for an acknowledgement")
    parser.add_argument("--wake", action="store_true", help="tell it at once; who has nothing to do begins a run")


def _inbox_arguments(parser: Parser) -> None:
    speaker(parser)
    parser.add_argument("--all", action="store_true", help="also what was read")
    parser.add_argument("--limit", type=whole_number(1, 1000), metavar="N", help="how many (default 200)")
    parser.add_argument("--after", type=whole_number(0, 2**53), metavar="N", help="only what came after mail-N")


def _one_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="MAIL", help="for example mail-12")
    speaker(parser)


def send(args: Namespace, client: Client) -> None:
    """Send a message."""
    text = text_of(" ".join(args.text), None, "The text")
    fields = body_of(args, "to", "session", "subject", "task") | {"text": text}
    if not text:
        raise Invalid("The message is empty.")
    fields |= {name: True for name in ("wants_ack", "wake") if getattr(args, name)}
    answer = client.ask("mail.send", fields=fields)
    waits = f"\n{plain(answer.value['waits'])}" if answer.value["waits"] else ""
    reply(args, answer, f"Sent {answer.value['id']} to {answer.value['to']}{waits}")


def inbox(args: Namespace, client: Client) -> None:
    """List the mail of a session."""
    fields = body_of(args, "session", "limit", "after") | ({"all": True} if args.all else {})
    answer = client.ask("mail.inbox", fields=fields)
    rows = [
        (message["id"], message["sender"], age(message["sent"]), _mark(message), _about(message))
        for message in answer.value
    ]
    reply(args, answer, table(rows) or "No mail.")


def show(args: Namespace, client: Client) -> None:
    """Show a message, and to its sender whom it has reached."""
    answer = client.ask("mail.show", {"id": args.id}, body_of(args, "session"))
    rows = [(each["reader"], _became(each)) for each in answer.value["readers"]]
    reply(args, answer, "\n\n".join(part for part in (_letter(answer.value), table(rows)) if part))


def read(args: Namespace, client: Client) -> None:
    """Read a message."""
    answer = client.ask("mail.read", {"id": args.id}, body_of(args, "session"))
    reply(args, answer, _letter(answer.value))


def ack(args: Namespace, client: Client) -> None:
    """Acknowledge a message."""
    answer = client.ask("mail.ack", {"id": args.id}, body_of(args, "session"))
    reply(args, answer, f"Acknowledged {args.id}")


def _mark(message: dict[str, Any]) -> str:
    if message["wants_ack"] and not message["acked"]:
        return "wants an answer"
    return _became(message).partition(" ")[0]


def _became(reading: dict[str, Any]) -> str:
    """Return the last that is known of a message with one who got it."""
    for mark, word in (("acked", "acknowledged"), ("delivered", "delivered"), ("read", "read")):
        if reading[mark]:
            return f"{word} {age(reading[mark])}"
    return ""


def _about(message: dict[str, Any]) -> str:
    return str(message["subject"] or first_line(message["text"], 70))


def _letter(message: dict[str, Any]) -> str:
    lines = [f"{message['id']}  from {message['sender']} to {message['to']}, {clock(message['sent'])}"]
    lines += [f"  subject  {plain(message['subject'])}"] if message["subject"] else []
    lines += [f"  task     {message['task']}"] if message["task"] else []
    lines += ["", *quoted(message["text"], "")]
    if message["wants_ack"] and not message["acked"]:
        lines += ["", f"It wants to be acknowledged: covey mail ack {message['id']}"]
    return "\n".join(lines)


COMMANDS = {
    "send": Command("send a message", _send_arguments, send,
                    example='covey mail send ada "The schema changes at noon" --task AF-1 --wants-ack --wake'),
    "inbox": Command("list what was not read, the oldest first", _inbox_arguments, inbox,
                     example="covey mail inbox --as ada --all"),
    "show": Command("show a message, and to its sender whom it has reached", _one_arguments, show,
                    example="covey mail show mail-12"),
    "read": Command("read a message", _one_arguments, read, example="covey mail read mail-12 --as ada"),
    "ack": Command("say that a message was taken in", _one_arguments, ack, example="covey mail ack mail-12 --as ada"),
}  # fmt: skip
