"""covey answer: decide what an agent asks."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, Parser, text_of
from covey.cli.frame.output import first_line, reply
from covey.cli.people.inbox import how
from covey.core.figures import one
from covey.errors import CoveyError, Invalid, Refused

QUESTION = "question-"


def _arguments(parser: Parser) -> None:
    parser.add_argument(
        "id", nargs="?", metavar="QUESTION", help="for example question-12; not needed if only one is open"
    )
    parser.add_argument("text", nargs="*", metavar="TEXT", help="your answer in words; - reads it from standard input")
    decision = parser.add_mutually_exclusive_group()
    decision.add_argument("--allow", action="store_true", help="allow it this once")
    decision.add_argument(
        "--always", action="store_true", help="allow it to every agent in this repository from now on"
    )
    decision.add_argument(
        "--deny", nargs="?", const="", metavar="WHY", help="deny it; WHY tells the agent what to do instead"
    )
    parser.add_argument(
        "--about", metavar="WORDS", help='with --always: allow every command that begins with these words ("npm test")'
    )
    parser.add_argument("--all", action="store_true", help="give the same answer to everyone who asked the same")


def answer(args: Namespace, client: Client) -> None:
    """Answer a question."""
    _sort_out(args)
    text = text_of(" ".join(args.text), None, "The answer") or ""
    with client:
        question = _question(args, client)
        fields = _fields(args, text, question)
        asked = [row["ids"] for row in client.ask("inbox.list").value if row["kind"] == "question"] if args.all else []
        answered = client.ask("question.answer", {"id": question["id"]}, fields)
        others = [each for ids in asked if question["id"] in ids for each in ids if each != question["id"]]
        _answer_others(client, others, fields)
    are = f"{one(len(others), 'other')} who asked the same {'is' if len(others) == 1 else 'are'}"
    reply(args, answered, _said(answered.value, args.about) + (f"\n{are} told too" if others else ""))


def _answer_others(client: Client, others: list[str], fields: Json) -> None:
    """Answer open questions alike; what was answered in the meantime is fine."""
    failed = []
    for id in others:
        if client.ask("question.show", {"id": id}).value["state"] == "open":  # else a permit let it through itself
            try:
                client.ask("question.answer", {"id": id}, fields)
            except CoveyError as error:
                failed.append(f"{id}: {error.message}")
    if failed:
        answered = f"{len(others) + 1 - len(failed)} of {len(others) + 1} questions are answered"
        raise Refused(f"{answered}, and {len(failed)} could not be.", hint=failed[0])


def _sort_out(args: Namespace) -> None:
    """Put the words where they belong, whatever stands first."""
    if args.id is not None and not args.id.startswith(QUESTION):
        args.text.insert(0, args.id)
        args.id = None
    if args.id is None and args.deny and args.deny.startswith(QUESTION) and " " not in args.deny:
        args.id, args.deny = args.deny, ""
    if args.about is not None and not args.always:
        raise Invalid("--about says what is allowed always.", hint='covey answer --always --about "npm test"')
    if args.text and (args.allow or args.always):
        raise Invalid(
            f"{' '.join(args.text)[:80]!r} is not a question, and --allow and --always take no text.",
            hint="covey inbox lists the questions; a text stands alone or with --deny.",
        )


def _question(args: Namespace, client: Client) -> Json:
    """Return the question that is meant: the one that is named, or the only one that is open."""
    if args.id is not None:
        found: Json = client.ask("question.show", {"id": args.id}).value
        return found
    waiting = client.ask("question.list", fields={"state": "open", "limit": 1000}).value
    if not waiting:
        raise Refused("No question waits for an answer.", hint="covey inbox shows what waits for you.")
    if len(waiting) > 1:
        names = ", ".join(each["id"] for each in waiting[:5]) + (" ..." if len(waiting) > 5 else "")
        raise Invalid(f"{len(waiting)} questions wait: {names}.", hint="Name one; covey inbox shows them.")
    only: Json = waiting[0]
    return only


def _fields(args: Namespace, text: str, question: Json) -> Json:
    if args.allow:
        return {"decision": "allow"}
    if args.always:
        return {"decision": "always"} | ({} if args.about is None else {"about": args.about})
    if args.deny is not None:
        return {"decision": "deny", "text": " ".join(filter(None, (args.deny, text)))}
    if not text.strip():
        raise Invalid(f"What is the answer to {question['id']}?", hint=how(question))
    return {"decision": "reply", "text": text}


def _said(question: Json, about: str | None) -> str:
    what = first_line(question["about"] or question["text"], 80)
    words = {
        "allow": f"Allowed once: {what}",
        "always": f"Allowed in this repository: {about or what} (covey permit list shows what is)",
        "deny": f"Denied: {what}",
    }
    said = words.get(question["decision"], f"Answered {question['id']}")
    return f"{said}; {question['session']} is told"


COMMAND = Command(
    "answer an agent's question, so that it can go on; a question that is not answered in time is denied",
    _arguments,
    answer,
    example='covey answer question-12 --allow\ncovey answer question-12 --always --about "npm test"\n'
    "covey answer question-12 --allow --all   all who ask the same\n"
    'covey answer question-12 --deny "Use make test instead"\ncovey answer "Port 8080"   the only open question',
    owner=True,
)
