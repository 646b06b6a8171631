"""Commands that take several sessions: each is told by itself, and the first that is refused decides how they end."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable

from covey.cli.frame.client import Answer
from covey.cli.frame.command import flag, option
from covey.cli.frame.output import as_json, escaped
from covey.errors import CoveyError, Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any

    from covey.cli.frame.command import Arguments

PRINTS = "exactly what REST answers for one session that is named, for several a list of it"
NAMES = option("names", nargs="+", metavar="NAME")


def names_or_all(help: str) -> tuple[Arguments, ...]:
    """Return what takes the names of sessions, or --all."""
    return option("names", nargs="*", metavar="NAME"), flag("--all", help)


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
        """Return the sessions for which it was done."""
        return list(self.answers)

    def refuse(self, error: CoveyError) -> None:
        """Say why one was refused."""
        from covey.cli.main import complain

        complain(error, as_json=self._args.json)
        self._code = self._code or error.exit_code

    def end(self, said: Callable[[str, Any], str] | None = None) -> int:
        """Print the answers, or a sentence for each to a person, and return with what the command ends."""
        if not self._args.json:
            for name, answer in self.answers.items():
                if said is not None:
                    print(said(name, answer.value))
        elif len(self._args.names) == 1 and not getattr(self._args, "all", False):
            for answer in self.answers.values():
                as_json(answer)
        else:
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
