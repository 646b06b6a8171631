"""Commands that take several sessions: each is told by itself, and the first that is refused decides how they end."""

from __future__ import annotations

import json
from argparse import Namespace

from covey.cli.command import Parser
from covey.cli.show import as_json, escaped
from covey.errors import CoveyError, Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable

    from covey.cli.client import Answer

PRINTS = "exactly what REST answers for one session that is named, for several a list of it"


def names_argument(parser: Parser) -> None:
    """Take the names of sessions."""
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.mixed = True


def names_or_all(help: str) -> Callable[[Parser], None]:
    """Take the names of sessions, or --all."""

    def arguments(parser: Parser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME")
        parser.add_argument("--all", action="store_true", help=help)
        parser.mixed = True

    return arguments


def must_name(args: Namespace) -> None:
    """Refuse a command that names no session, or some of all."""
    hint = "covey session list shows them; --all means every one."
    if args.names and args.all:
        raise Invalid("Names and --all exclude each other.", hint=hint)
    if not args.names and not args.all:
        raise Invalid("Name the sessions, or say --all.", hint=hint)


def listed(names: list[str]) -> str:
    """Return names as a sentence has them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def them(names: list[str]) -> str:
    """Return the word for one or several."""
    return "it" if len(names) == 1 else "them"


class Told:
    """What was answered for each session that was named, and with what the command ends if some were refused."""

    def __init__(self, args: Namespace) -> None:
        self._args = args
        self.answers: dict[str, Answer] = {}
        self._code = 0

    @property
    def names(self) -> list[str]:
        """Return those for whom it was done."""
        return list(self.answers)

    def refuse(self, error: CoveyError) -> None:
        """Say why one was refused."""
        from covey.cli.main import complain

        complain(error, as_json=self._args.json)
        self._code = self._code or error.exit_code

    def say(self, text: str) -> None:
        """Say a sentence to a person."""
        if not self._args.json:
            print(text)

    def end(self) -> int:
        """Print the answers where a program reads them, and return with what the command ends."""
        if self._args.json and len(self._args.names) == 1 and not getattr(self._args, "all", False):
            for answer in self.answers.values():
                as_json(answer)
        elif self._args.json:
            print(escaped(json.dumps([answer.value for answer in self.answers.values()])))
        return self._code


def each(args: Namespace, ask: Callable[[str], Answer]) -> Told:
    """Ask for each session that was named; with one alone an error is the command's own."""
    told = Told(args)
    for name in dict.fromkeys(args.names):
        try:
            told.answers[name] = ask(name)
        except CoveyError as error:
            if len(args.names) == 1:
                raise
            told.refuse(error)
    return told
