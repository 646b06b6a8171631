"""covey ask: an agent asks the person in charge, from its shell."""

from __future__ import annotations

import contextlib
import time
from argparse import Namespace
from collections.abc import Callable

from covey.cli.frame.client import Answer, Client, Json
from covey.cli.frame.command import Command, body_of, option, seconds, speaker, text_of
from covey.cli.frame.output import prose, reply
from covey.errors import Refused, Unavailable

PERSON_TIMEOUT_S = 100.0
"""Seconds to wait: the shells of agents end a command after two minutes."""
NO_ANSWER_EXIT = 3
"""Exit code if there is no answer yet."""
NOT_YET = "No answer yet: end your turn, you will be called again with the answer."
FIRST_ANSWER_LOOK_S, LAST_ANSWER_LOOK_S = 0.5, 3.0
"""Seconds between two looks, at first and at last."""


def ask(args: Namespace, client: Client) -> int:
    """Ask, wait, and print the answer; without one, say what to do."""
    text = text_of(" ".join(args.text), None, "The question")
    deadline = time.monotonic() + args.wait
    fields = {"text": text} | body_of(args, "choices", "session")
    asked = _through_restarts(lambda: client.ask("question.ask", fields=fields), deadline)
    answer = until_decided(client, asked, deadline - time.monotonic())
    if answer.value["state"] == "open":
        reply(args, answer, NOT_YET)
        return NO_ANSWER_EXIT
    if answer.value["state"] == "withdrawn":
        raise Refused(f"{answer.value['id']} was withdrawn: nobody will answer it.")
    # Only now that it is about to be seen: who is cut off before this asks again and gets the same answer.
    name = {"id": answer.value["id"]}
    taken = _through_restarts(lambda: client.ask("question.take", name, body_of(args, "session")), deadline)
    reply(args, taken, _words(taken.value))
    return 0


def until_decided(client: Client, answer: Answer, patience: float) -> Answer:
    """Look again and again, ever less often, until somebody has decided or the time is over.

    A daemon that is stopped meanwhile changes nothing: whoever asked goes on, and so does the question.
    """
    deadline, pause = time.monotonic() + patience, FIRST_ANSWER_LOOK_S
    while answer.value["state"] == "open" and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(pause, left))
        pause = min(pause * 1.3, LAST_ANSWER_LOOK_S)
        with contextlib.suppress(Unavailable):
            answer = client.ask("question.show", {"id": answer.value["id"]})
    return answer


def _through_restarts(question: Callable[[], Answer], deadline: float) -> Answer:
    """Return what is answered; while no daemon is there, ask again until the time is over."""
    while True:
        try:
            return question()
        except Unavailable:
            if time.monotonic() > deadline:
                raise
        time.sleep(FIRST_ANSWER_LOOK_S)


def _words(question: Json) -> str:
    if question["state"] == "expired":
        return "Nobody answered in time, so the answer is no. Decide yourself what is safe, or go on without it."
    said = prose((question["answer"] or "").strip())
    if question["decision"] == "deny":
        return f"The answer is no. {said}".strip()
    return said or "The answer is yes."


COMMAND = Command(
    "ask the person in charge and wait for the answer; exit code 3 means that there is none yet",
    (
        option("text", nargs="+", metavar="TEXT", help="what you ask; - reads it from standard input"),
        option(
            "--choice", action="append", dest="choices", metavar="ANSWER", help="an answer to offer; may be repeated"
        ),
        option(
            "--wait",
            type=seconds,
            default=PERSON_TIMEOUT_S,
            metavar="SECONDS",
            help="how long to wait for the answer (default 100)",
        ),
        speaker,
    ),
    ask,
    example='covey ask "Which port should it use?" --choice 80 --choice 8080\n'
    'covey ask "May the old API go?" --wait 20   asked again, it is the same question',
)
