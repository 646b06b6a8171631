"""The command `covey`: the first word names a module, and only that one is imported."""

from __future__ import annotations

import os
import sys

from covey import __version__
from covey.errors import CoveyError, Denied, Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from covey.cli.command import Command, Parser

GROUPS = {
    "task": "the board: add, claim, hand in, release and follow tasks",
    "lease": "the right to write some paths, or to use a named resource",
    "mail": "messages between sessions and people",
    "merge": "the queue of what wants to land",
    "session": "the workers on this project",
}
SINGLE = {
    "init": "let covey look after this repository",
    "up": "start the daemon",
    "down": "stop the daemon",
    "status": "the project at a glance",
    "log": "what happened, and the care of the log",
    "completion": "a script that completes commands in your shell",
}
CARE = ("verify", "rebuild", "export", "import", "adopt", "backup", "prune")
INTERRUPTED = 130
BUG = 70

HELP = """\
usage: covey [-C DIR] [--json] COMMAND ...

covey runs many coding agents on one git repository at once, and lands their work.

Begin:
  init        {init}
  up          {up}
  down        {down}
Work:
  task        {task}
  lease       {lease}
  mail        {mail}
  merge       {merge}
  session     {session}
Look:
  status      {status}
  log         {log}
  completion  {completion}

covey COMMAND --help shows more. Everything but up and down works with and without the daemon.
Example: covey init && covey task add "Fix the flaky test" && covey task next --as ada
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; every error that a user can meet is shown here."""
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words
    try:
        code = dispatch(words)
        sys.stdout.flush()
        return code
    except CoveyError as error:
        complain(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has gone. Python would complain once more when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Exception as error:
        if os.environ.get("COVEY_DEBUG") == "1":
            raise
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        bug = CoveyError(
            f"this is a bug in covey: {said}", hint="COVEY_DEBUG=1 shows where it happened; please report it."
        )
        complain(bug, as_json=as_json)
        return BUG


def complain(error: CoveyError, *, as_json: bool) -> None:
    """Say on standard error what is wrong, and what to do about it."""
    if as_json:
        import json

        print(json.dumps({"error": error.message, "hint": error.hint}), file=sys.stderr)
        return
    message = error.message.encode("utf-8", "replace").decode()
    print(f"covey: {message}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {error.hint}", file=sys.stderr)


def dispatch(words: list[str]) -> int:
    """Run the command that some words name."""
    given: list[str] = []
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-h", "--help"):
            print(HELP.format(**GROUPS, **SINGLE), end="")
            return 0
        if option == "--version":
            return _version(as_json="--json" in [*given, *words])
        if option == "-C" and words:
            given += ["-C", words.pop(0)]
        elif option == "--json":
            given.append(option)
        else:
            raise Invalid(f"covey does not know the option {option[:40]}.", hint="covey --help shows how it is used.")
    if not words:
        print(HELP.format(**GROUPS, **SINGLE), end="")
        return 0
    return run(words[0], [*given, *words[1:]])


def _version(*, as_json: bool) -> int:
    print(f'{{"version":"{__version__}"}}' if as_json else f"covey {__version__}")
    return 0


def run(word: str, argv: list[str]) -> int:
    """Run the command or group that a word names."""
    if word == "__complete":
        from covey.cli import completion

        return completion.complete(argv)
    if word in ("up", "down", "init"):
        _only_owner(word)
    if word in ("up", "down"):
        from pathlib import Path

        from covey.cli import daemon

        rest, folder = _without_folder(argv)
        return daemon.run(word, rest, Path(folder))
    if word == "log":
        care = _care(argv)
        if care is not None:
            return care
    if word not in GROUPS and word not in SINGLE:
        from covey.cli.command import unknown

        raise unknown("covey", word, [*GROUPS, *SINGLE])
    return _run_one(word, argv)


def _run_one(word: str, argv: list[str]) -> int:
    from covey.cli.client import Client
    from covey.cli.command import choose, help_of

    module = _module(word)
    name: str
    command: Command
    if word in GROUPS:
        chosen = choose(word, module.COMMANDS, argv)
        if chosen is None:
            print(help_of(word, module.ABOUT, module.COMMANDS))
            return 0
        verb, command, argv = chosen
        name = f"{word} {verb}"
    else:
        name, command = word, module.COMMAND
    args = command.parser(name).parse_args(argv)
    if command.owner:
        _only_owner(name)
    return command.run(args, Client(args.folder)) or 0


def _module(word: str) -> ModuleType:
    from importlib import import_module

    return import_module(f"covey.cli.{word}")


def _only_owner(name: str) -> None:
    if os.environ.get("COVEY_TOKEN"):
        raise Denied(
            f"covey {name} is for the owner, and COVEY_TOKEN makes you a session.",
            hint="Ask the owner: covey mail send owner ...",
        )


def _care(argv: list[str]) -> int | None:
    """Run a command that cares for the log, if these words name one."""
    rest, folder = _without_folder(argv)
    word = next((word for word in rest if word != "--json"), None)
    if word not in CARE:
        return None
    rest.remove(word)
    _only_owner(f"log {word}")
    from pathlib import Path

    from covey.cli import log_care

    return log_care.run(word, rest, Path(folder))


def _without_folder(argv: list[str]) -> tuple[list[str], str]:
    """Return words without -C DIR, and the folder that it named or we stand in."""
    rest, folder = list(argv), os.getcwd()
    while "-C" in rest:
        at = rest.index("-C")
        if at + 1 == len(rest):
            raise Invalid("-C needs a folder.", hint="covey -C DIR COMMAND acts as if started in DIR.")
        folder = os.path.abspath(rest[at + 1])
        del rest[at : at + 2]
    return rest, folder


def every_command() -> Iterator[tuple[str, Parser]]:
    """Yield the name and the parser of every command that is made here, for the reference and for completion."""
    for group in GROUPS:
        for verb, command in _module(group).COMMANDS.items():
            yield f"{group} {verb}", command.parser(f"{group} {verb}")
    for word in SINGLE:
        if word not in ("up", "down"):
            yield word, _module(word).COMMAND.parser(word)
