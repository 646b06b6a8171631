"""covey ask: an agent asks the person in charge, from its shell."""

from __future__ import annotations

import time
from argparse import Namespace

from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, seconds, speaker, text_of
from covey.cli.show import as_json, prose
from covey.errors import Refused

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from covey.cli.client import Answer

WAIT = 100.0
"""Seconds to wait: the shells of agents end a command after two minutes."""
NO_ANSWER = 3
"""Exit code if there is no answer yet."""
NOT_YET = "No answer yet: end your turn, you will be called again with the answer."
SOON, LATER = 0.5, 3.0
"""Seconds between two looks, at first and at last."""


def _arguments(parser: Parser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what you ask; - reads it from standard input")
    parser.add_argument(
        "--choice",
        action="append",
        dest="choices",
        metavar="ANSWER",
        help="an answer that you propose; may be repeated",
    )
    parser.add_argument(
        "--wait", type=seconds, default=WAIT, metavar="SECONDS", help="how long to wait for the answer (default 100)"
    )
    speaker(parser)


def ask(args: Namespace, client: Client) -> int:
    """Ask, wait, and print the answer; without one, say what to do."""
    text = text_of(" ".join(args.text), None, "The question")
    asked = client.ask("question.ask", fields={"text": text} | body_of(args, "choices", "session"))
    answer = until_decided(client, asked, args.wait)
    if answer.value["state"] == "open":
        if args.json:
            as_json(answer)
        else:
            print(NOT_YET)
        return NO_ANSWER
    if answer.value["state"] == "withdrawn":
        raise Refused(f"{answer.value['id']} was withdrawn: nobody will answer it.")
    # Only now that it is about to be seen: who is cut off before this asks again and gets the same answer.
    taken = client.ask("question.take", {"id": answer.value["id"]}, body_of(args, "session"))
    if args.json:
        as_json(taken)
    else:
        print(_words(taken))
    return 0


def until_decided(client: Client, answer: Answer, patience: float) -> Answer:
    """Look again and again, ever less often, until somebody has decided or the time is over."""
    deadline, pause = time.monotonic() + patience, SOON
    while answer.value["state"] == "open" and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(pause, left))
        pause = min(pause * 1.3, LATER)
        answer = client.ask("question.show", {"id": answer.value["id"]})
    return answer


def _words(answer: Answer) -> str:
    question = answer.value
    if question["state"] == "expired":
        return "Nobody answered in time, so the answer is no. Decide yourself what is safe, or go on without it."
    said = prose((question["answer"] or "").strip())
    if question["decision"] == "deny":
        return f"The answer is no. {said}".strip()
    return said or "The answer is yes."


COMMAND = Command(
    "ask the person in charge and wait for the answer; exit code 3 means that there is none yet",
    _arguments,
    ask,
    example='covey ask "Which port shall it use?" --choice 80 --choice 8080\n'
    'covey ask "May the old API go?" --wait 20   asked again, it is the same question',
)
