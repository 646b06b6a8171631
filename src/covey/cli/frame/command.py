"""A command: its words, its options, and what it does; only the parser of the one that was asked for is made."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from covey.cli.frame.client import Client, Json
from covey.cli.frame.routes import ROUTES
from covey.errors import Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Show = Callable[[Any, argparse.Namespace], str]


Arguments = Callable[["Parser"], object]
"""What adds something to a parser."""
Run = Callable[[argparse.Namespace, Client], int | None]
"""What a command does; without an exit code it ends well."""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal; argparse would import half of the standard library to learn that width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=width() - 2)


def width(default: int = 80) -> int:
    """Return how many characters a line of the terminal takes."""
    named = os.environ.get("COLUMNS", "")
    if named.isdigit() and int(named) > 0:
        return max(int(named), 40)
    for descriptor in (1, 2):
        try:
            return max(os.get_terminal_size(descriptor).columns, 40)
        except OSError:
            continue
    return default


class Parser(argparse.ArgumentParser):
    """argparse that raises our own error instead of ending the process, and guesses what was meant."""

    behind: str | None = None
    """The name under which the words after -- are kept, if they are another command's."""

    def parse_args(self, argv: Sequence[str], namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """Return what some words say; a word too many is an error."""
        if self.behind is not None:
            at = argv.index("--") if "--" in argv else len(argv)
            argv, others = argv[:at], list(argv[at + 1 :])
            self.set_defaults(**{self.behind: others})
        self._let_options_speak(argv)
        args, rest = self.parse_known_args(argv)
        if rest:  # an option stood between the words: what may be empty was filled with nothing before the last came
            args, rest = self.parse_known_intermixed_args(argv)
        if rest:
            known = [option for action in self._actions for option in action.option_strings]
            wrong = next((word.partition("=")[0] for word in rest if word.startswith("-")), "")
            near = nearest(wrong, known) if wrong else None
            hint = f"Did you mean {near}?" if near else f"{self.prog} --help shows how it is used."
            raise Invalid(sentence(f"unrecognized arguments: {' '.join(rest)}"), hint=hint)
        for action in self._actions:
            if isinstance(action, _Either):
                action.settle(args)
        return args

    def _let_options_speak(self, argv: Sequence[str]) -> None:
        """Let a place be empty if its option is there; argparse would fill it with nothing too early otherwise."""
        words = argv[: argv.index("--")] if "--" in argv else argv
        given = {word.partition("=")[0] for word in words}
        for action in self._actions:
            if isinstance(action, _Either) and action.option in given:
                action.nargs, action.required = "*", False

    def either(
        self, name: str, metavar: str, help: str, *, value: str = "TEXT", many: bool = True, required: bool = True
    ) -> None:
        """Add something that stands in its place or behind an option of its name, and is given only once."""
        option = f"--{name}"
        places: str | int = ("+" if required else "*") if many else (1 if required else "?")
        words = self.add_argument(
            f"{name}_words",
            nargs=places,
            metavar=metavar,
            help=f"{help}; or {option} {value}",
            action=_Either,
            option=option,
        )
        words.required = required  # argparse names a place that may be empty among those that are missing
        self.add_argument(option, metavar=value, help=f"the same as {metavar}")

    def print_help(self, file: object = None) -> None:
        """Print the help; argparse would not say that it could not."""
        print(self.format_help(), end="")

    def error(self, message: str) -> NoReturn:
        raise Invalid(sentence(message), hint=f"{self.prog} --help shows how it is used.")


class _Either(argparse.Action):
    """The words in the place of something that also has an option."""

    def __init__(self, *, option: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.option = option

    def __call__(self, parser: object, args: argparse.Namespace, words: Any, option: str | None = None) -> None:
        """Keep the words."""
        setattr(args, self.dest, [words] if isinstance(words, str) else words)

    def settle(self, args: argparse.Namespace) -> None:
        """Put what was given in one of the two ways where the command looks for it."""
        name, words = self.option[2:], getattr(args, self.dest)
        delattr(args, self.dest)
        if words and getattr(args, name) is not None:
            raise Invalid(f"The {name} was given twice: in its place, and with {self.option}.")
        if words:
            setattr(args, name, " ".join(words))


def sentence(message: str) -> str:
    """Return a remark of argparse as a sentence."""
    return f"{message[:1].upper()}{message[1:].rstrip('.')}."


def option(*names: str, **settings: Any) -> Arguments:
    """Return what adds an option, or a word in its place, to a parser."""
    return lambda parser: parser.add_argument(*names, **settings)


def flag(name: str, help: str) -> Arguments:
    """Return what adds an option without a value."""
    return option(name, action="store_true", help=help)


def either(name: str, metavar: str, help: str, **settings: Any) -> Arguments:
    """Return what adds something that stands in its place or behind an option of its name."""
    return lambda parser: parser.either(name, metavar, help, **settings)


class Command:
    """One command of a group: what it is told, in their order, and what it does."""

    def __init__(
        self,
        summary: str,
        arguments: Arguments | Sequence[Arguments],
        run: Run,
        *,
        example: str = "",
        owner: bool = False,
        prints: str = "exactly what REST answers",
    ) -> None:
        self.summary = summary
        self.arguments = (arguments,) if callable(arguments) else arguments
        self.run = run
        self.example = example
        self.owner = owner
        self.prints = prints

    def parser(self, name: str) -> Parser:
        """Return the parser of this command alone."""
        example = "\n".join(["Example:", *(f"  {line}" for line in self.example.splitlines())])
        parser = Parser(
            prog=f"covey {name}",
            description=sentence(self.summary),
            epilog=example if self.example else None,
            formatter_class=Help,
            allow_abbrev=False,
        )
        for add in self.arguments:
            add(parser)
        parser.add_argument("--json", action="store_true", help=f"print {self.prints}")
        parser.add_argument("-C", dest="folder", metavar="DIR", help="act as if started in DIR")
        return parser


def asking(verb: str, *names: str, show: Show) -> Run:
    """Return what a command does that only asks one verb: it sends what was given of `names`, and shows the answer.

    Whoever shows it finds in `args.at_work` whether a daemon gave the answer, and so goes on with what was asked for.
    """

    def run(args: argparse.Namespace, client: Client) -> None:
        from covey.cli.frame.output import reply

        places = [part[1:-1] for part in ROUTES[verb].split(" ")[1].split("/") if part.startswith("{")]
        answer = client.ask(verb, {name: getattr(args, name) for name in places}, given(args, *names))
        args.at_work = client.url is not None
        reply(args, answer, "" if args.json else show(answer.value, args))

    return run


def later(module: str, name: str) -> Run:
    """Return what a command does whose module only it imports, and which is named from `covey.cli` on."""

    def run(args: argparse.Namespace, client: Client) -> int | None:
        from importlib import import_module

        code: int | None = getattr(import_module(f"covey.cli.{module}"), name)(args, client)
        return code

    return run


def given(args: argparse.Namespace, *names: str) -> Json:
    """Return those options that were given, as the fields of a request; the words of a text are one text."""
    values = ((name, getattr(args, name)) for name in names)
    return {
        name: " ".join(value) if isinstance(value, list) else value
        for name, value in values
        if value is not None and value is not False and value != []
    }


def choose(group: str, known: list[str], argv: Sequence[str]) -> tuple[str, list[str]]:
    """Return which command of a group some words name, "" if they ask for help, and the words without it."""
    words = list(argv)
    given: list[str] = []
    while words and words[0].startswith("-") and words[0] not in ("-h", "--help"):
        taken = 2 if words[0] == "-C" else 1
        given += words[:taken]
        del words[:taken]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if words and words[0] in ("-h", "--help"):
        return "", words
    if not words:
        raise Invalid(f"covey {group} needs to know what to do.", hint=f"covey {group} --help lists it.")
    if words[0] not in known:
        raise unknown(f"covey {group}", words[0], known)
    return words[0], [*given, *words[1:]]


def unknown(prog: str, word: str, known: list[str]) -> Invalid:
    """Return the error for a command that does not exist, with the one that was perhaps meant."""
    near = nearest(word, known)
    hint = f"Did you mean {prog} {near}?" if near else f"{prog} --help lists the commands."
    return Invalid(f"There is no command {prog} {word[:40]}.", hint=hint)


_SYNONYMS = {"uninstall": "remove", "delete": "remove", "rm": "remove", "create": "new", "ls": "list"}
"""What other programs call a command; it may look like its opposite."""


def nearest(word: str, known: list[str]) -> str | None:
    """Return the word that was perhaps meant, if one is close."""
    import difflib

    if _SYNONYMS.get(word) in known:
        return _SYNONYMS[word]
    return next(iter(difflib.get_close_matches(word, known, 1, 0.6)), None)


def help_of(group: str, about: str, commands: dict[str, Command]) -> str:
    """Return the help of a group."""
    widest = max(map(len, commands))
    lines = [f"  {name:<{widest}}  {command.summary}" for name, command in commands.items()]
    return "\n".join(
        [
            f"usage: covey {group} COMMAND ...",
            "",
            about,
            "",
            *lines,
            "",
            f"covey {group} COMMAND --help shows one with an example.",
        ]
    )


def body_of(args: argparse.Namespace, *names: str) -> Json:
    """Return those options that were given, as the fields of a request."""
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within limits."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number") from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not between {low:,} and {high:,}")
        return value

    return read


def money(text: str) -> float:
    """Return an amount of money."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not an amount between 0 and 1,000,000")
    return value


def seconds(text: str) -> float:
    """Return a time span such as 90, 30s, 15m, 2h or 7d in seconds."""
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    try:
        value = float(number) * (unit or 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e10:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time span; write 90, 15m, 2h or 7d")
    return value


speaker = option("--as", dest="session", metavar="NAME", help="act as this session (default: you, the owner)")
"""The option that says which session a command acts for."""


def fenced(parser: Parser) -> None:
    """Add the options of a command by the holder of a claim."""
    speaker(parser)
    parser.add_argument(
        "--fence",
        type=whole_number(0, 2**53),
        metavar="N",
        default=os.environ.get("COVEY_FENCE") or None,
        help="the fence number from the claim (default: COVEY_FENCE)",
    )


def text_of(given: str | None, file: str | None, what: str) -> str | None:
    """Return a text that was given as it is, as - for standard input, or as a file."""
    if given is not None and file is not None:
        raise Invalid(f"{what} was given twice: as a text and as a file.")
    if given == "-":
        return contents("-")
    return given if file is None else contents(file)


def contents(file: str, folder: str = "") -> str:
    """Return the text of a file as it is named from a folder; - is standard input."""
    if file == "-":
        import sys

        if not sys.stdin:  # so it is if it was closed before we began
            raise Invalid("Standard input is closed, so nothing can be read from it.")
        return _decoded(sys.stdin.buffer.read(), "standard input")
    try:
        with open(os.path.join(folder, file), "rb") as opened:
            return _decoded(opened.read(), file)
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}.") from None


def _decoded(data: bytes, where: str) -> str:
    """Return bytes as a text, or say where they are none."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Invalid(f"{where} line {line} is not UTF-8.") from None
