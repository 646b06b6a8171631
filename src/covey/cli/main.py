"""The command `covey`: the first word names a module, and only that one is imported."""

from __future__ import annotations

import io
import os
import sys

from covey import __version__
from covey.errors import CoveyError, Denied, Invalid, Proposed, Unavailable

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from covey.cli.frame.command import Command, Parser

SECTIONS = {
    "Begin": {
        "init": ("project.init", "set up covey in this repository"),
        "up": ("project.up_down", "start the daemon"),
        "down": ("project.up_down", "stop the daemon"),
        "open": ("people.open", "open the page in a browser, here or on a phone"),
    },
    "Run": {
        "run": ("fleet.run", "work on some tasks until they have landed"),
        "pause": ("fleet.fleet", "pause the whole fleet"),
        "resume": ("fleet.fleet", "resume the whole fleet"),
    },
    "Decide": {
        "inbox": ("people.inbox", "what needs your decision"),
        "answer": ("people.answer", "answer what an agent asks"),
        "permit": ("people.permit", "what agents may do here without asking you"),
        "proposal": ("people.proposal", "what agents ask you to do for them"),
    },
    "Work": {
        "task": ("board.task", "the board: add, claim, hand in and follow tasks"),
        "lease": ("leases.lease", "reserve paths to write, or a named resource such as a port"),
        "mail": ("people.mail", "messages between sessions and people"),
        "comment": ("people.comment", "comments on the lines of somebody's work"),
        "merge": ("merging.merge", "the merge queue: test and land work"),
        "session": ("fleet.session", "the workers on this project"),
        "ask": ("people.ask", "ask the person in charge (for agents)"),
        "rescue": ("fleet.rescue", "work that was kept when a worktree was reset or removed"),
        "hooks": ("fleet.hooks", "connect agents that you start yourself"),
    },
    "Look": {
        "status": ("project.status", "the project at a glance"),
        "overlap": ("project.overlap", "branches that change the same files, and files where that happens often"),
        "cost": ("project.cost", "what the agents cost"),
        "settings": ("project.settings", "what is set, and what it means"),
        "clean": ("project.clean", "what covey keeps and for how long; remove what has expired"),
        "why": ("merging.why", "trace a line to its commit, task, run and transcript"),
        "log": ("history.log", "what happened; verify, export and back up the log"),
        "completion": ("frame.completion", "a script that completes commands in your shell"),
    },
}
"""Every command in the order of the help: its module, which has the command or those of a group, and its line."""
COMMANDS = {word: said for section in SECTIONS.values() for word, said in section.items()}
INTERRUPTED = 130
BUG = 70

HELP = """\
usage: covey [-C DIR] [--json] [--version] COMMAND ...

covey runs many coding agents on one git repository at once, and lands their work.

{commands}

Options:
  -C DIR      act as if started in DIR
  --json      print exactly what REST answers
  --version   print the version of covey

covey COMMAND --help and covey help COMMAND show more. The board, leases, mail and
the log work with and without the daemon.
Example: covey init && covey run "Fix the flaky test" "Add rate limiting"
"""


def help_text() -> str:
    """Return the help of covey: every command in a line, below the heading of its section."""
    lines = [
        line
        for section, words in SECTIONS.items()
        for line in (f"{section}:", *(f"  {word:<10}  {about}" for word, (_, about) in words.items()))
    ]
    return HELP.format(commands="\n".join(lines))


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; every error that a user can meet is shown here."""
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words
    try:
        if not sys.stdout:  # so it is if it was closed before we began; its number would be given to another file
            raise Unavailable("Standard output is closed; nothing was done.", hint="> /dev/null throws it away.")
        is_utf_8 = (sys.stdout.encoding or "utf-8").lower() == "utf-8"  # one that is only kept in memory has none
        if not is_utf_8 and isinstance(sys.stdout, io.TextIOWrapper):
            # What a terminal of old has no letters for is shown as ?; JSON is in UTF-8 everywhere.
            sys.stdout.reconfigure(encoding="utf-8" if as_json else None, errors="replace")
        code = _ended(words)
        sys.stdout.flush()
        return code
    except Proposed as proposed:
        from covey.plain import escaped

        print(escaped(proposed.body.decode()) if as_json else f"{proposed.message}\n  {proposed.hint}", flush=True)
        return proposed.exit_code
    except CoveyError as error:
        complain(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read us has gone
        _print_no_more()
        return 0
    except Exception as error:
        around = _around(error)
        if around is not None:
            _print_no_more()
            complain(around, as_json=as_json)
            return around.exit_code
        if os.environ.get("COVEY_DEBUG") == "1":
            raise
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        bug = CoveyError(
            f"this is a bug in covey: {said}", hint="COVEY_DEBUG=1 shows where it happened; please report it."
        )
        complain(bug, as_json=as_json)
        return BUG


def _ended(words: list[str]) -> int:
    """Run a command and return its exit code, also if argparse ends it after printing help."""
    try:
        return dispatch(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0


def _around(error: Exception) -> CoveyError | None:
    """Return the error to show if a disk or a permission around us is to blame, and no mistake of ours."""
    import errno

    if not isinstance(error, OSError):
        return None
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if error.filename is None and error.errno in (*full, errno.EIO, errno.EBADF):
        return Unavailable(f"The output cannot be written: {error.strerror}.", hint="The command itself was run.")
    if error.filename is not None and error.errno in (*full, errno.EACCES, errno.EPERM, errno.EROFS):
        where = os.fsdecode(error.filename)
        return Unavailable(f"{where} cannot be used: {error.strerror}.", hint="covey needs to read and write there.")
    return None


def _print_no_more() -> None:
    """Throw away what is left to print; Python would complain of it once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def complain(error: CoveyError, *, as_json: bool) -> None:
    """Say on standard error what is wrong, and what to do about it, if anybody listens there."""
    if not sys.stderr:  # print would take standard output instead
        return
    if as_json:
        import json

        said = json.dumps({"error": error.message, "hint": error.hint})
    else:
        from covey.plain import plain

        message = error.message.encode("utf-8", "replace").decode()
        said = "\n".join(map(plain, f"covey: {message}".split("\n")))
        said += f"\n  hint: {plain(error.hint)}" if error.hint else ""
    try:
        print(said, file=sys.stderr, flush=True)
    except OSError:  # the exit code says it too
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def dispatch(words: list[str]) -> int:
    """Run the command that some words name."""
    given: list[str] = []
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-h", "--help"):
            print(help_text(), end="")
            return 0
        if option == "--version":
            print(f'{{"version":"{__version__}"}}' if "--json" in [*given, *words] else f"covey {__version__}")
            return 0
        if option == "-C" and words:
            given += ["-C", words.pop(0)]
        elif option == "--json":
            given.append(option)
        else:
            from covey.cli.frame.command import nearest

            near = nearest(option, ["--help", "--json", "--version"])
            hint = f"Did you mean covey {near}?" if near else "covey --help shows how it is used."
            raise Invalid(f"covey does not know the option {option[:40]}.", hint=hint)
    if not words:
        print(help_text(), end="")
        return 0
    return run(words[0], [*given, *words[1:]])


def run(word: str, argv: list[str]) -> int:
    """Run the command or group that a word names."""
    if word == "__complete":
        from covey.cli.frame import completion

        return completion.complete(argv)
    if word == "guard":  # asked by hooks of git alone
        from covey.cli.leases import guard

        return guard.run(argv)
    if word == "help":
        return dispatch([*argv, "--help"])
    if word not in COMMANDS:
        from covey.cli.frame.command import unknown

        raise unknown("covey", word, list(COMMANDS))
    return _run_one(word, argv)


def _run_one(word: str, argv: list[str]) -> int:
    from covey.cli.frame.client import Client
    from covey.cli.frame.command import choose, help_of

    commands = commands_of(word)
    if "" in commands and argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    part = ""
    if "" not in commands or (len(commands) > 1 and _begins_with_a_word(argv)):
        part, argv = choose(word, [name for name in commands if name], argv)
    if part not in commands:
        print(help_of(word, _module_of(word).ABOUT, commands))
        return 0
    name = f"{word} {part}".strip()
    args = commands[part].parser(name).parse_args(argv)
    if commands[part].owner:
        only_owner(name)
    return commands[part].run(args, Client(args.folder)) or 0


def _module_of(word: str) -> ModuleType:
    from importlib import import_module

    return import_module(f"covey.cli.{COMMANDS[word][0]}")


def commands_of(word: str) -> dict[str, Command]:
    """Return what begins with a word: the commands of a group by their words, under "" what it is by itself."""
    module = _module_of(word)
    parts: dict[str, Command] = getattr(module, "COMMANDS", {})
    if word in parts:
        return {"": parts[word]}
    return parts | ({"": module.COMMAND} if hasattr(module, "COMMAND") else {})


def _begins_with_a_word(argv: list[str]) -> bool:
    """Say whether the first of some words is no option, but for those that every command has."""
    words = [word for word in argv if word != "--json"]
    while words[:1] == ["-C"]:
        del words[:2]
    return bool(words) and not words[0].startswith("-")


def only_owner(name: str) -> None:
    """Refuse a session what only the person in charge may do."""
    if "COVEY_TOKEN" in os.environ:
        raise Denied(
            f"covey {name} is for the owner, and COVEY_TOKEN makes you a session.",
            hint="Ask the owner: covey mail send owner ...",
        )


def every_command() -> Iterator[tuple[str, Parser]]:
    """Yield the name and the parser of every command that is made here, for the reference and for completion."""
    for word in COMMANDS:
        for part, command in commands_of(word).items():
            name = f"{word} {part}".strip()
            yield name, command.parser(name)
