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

    from covey.cli.command import Command, Parser

GROUPS = {
    "task": "the board: add, claim, hand in, release and follow tasks",
    "lease": "the right to write some paths, or to use a named resource",
    "mail": "messages between sessions and people",
    "comment": "what you say of the lines of somebody's work",
    "merge": "the queue of what wants to land",
    "session": "the workers on this project",
    "permit": "what agents may do here without asking",
    "proposal": "what agents ask you to do for them",
    "hooks": "leases and mail for agents that you start yourself",
    "rescue": "work that was kept when a worktree was reset or removed",
}
SINGLE = {
    "init": "let covey look after this repository",
    "up": "start the daemon",
    "down": "stop the daemon",
    "open": "the page in a browser, here or on a phone",
    "run": "work on some tasks until they have landed",
    "pause": "let the whole fleet stand still",
    "resume": "let the fleet go on",
    "inbox": "what waits for you",
    "answer": "answer what an agent asks",
    "ask": "ask the person in charge (for agents)",
    "status": "the project at a glance",
    "overlap": "where open branches come close, and files where they do so all the time",
    "cost": "what the agents cost",
    "settings": "what is set, and what it means",
    "why": "from a line to its commit, task, run and transcript",
    "log": "what happened, and the care of the log",
    "completion": "a script that completes commands in your shell",
}
CARE = ("verify", "rebuild", "export", "import", "adopt", "backup", "prune")
INTERRUPTED = 130
BUG = 70

HELP = """\
usage: covey [-C DIR] [--json] [--version] COMMAND ...

covey runs many coding agents on one git repository at once, and lands their work.

Begin:
  init        {init}
  up          {up}
  down        {down}
  open        {open}
Run:
  run         {run}
  pause       {pause}
  resume      {resume}
Decide:
  inbox       {inbox}
  answer      {answer}
  permit      {permit}
  proposal    {proposal}
Work:
  task        {task}
  lease       {lease}
  mail        {mail}
  comment     {comment}
  merge       {merge}
  session     {session}
  ask         {ask}
  rescue      {rescue}
  hooks       {hooks}
Look:
  status      {status}
  overlap     {overlap}
  cost        {cost}
  settings    {settings}
  why         {why}
  log         {log}
  completion  {completion}

Options:
  -C DIR      act as if started in DIR
  --json      print exactly what REST answers
  --version   print the version of covey

covey COMMAND --help and covey help COMMAND show more. The board, leases, mail and
the log work with and without the daemon.
Example: covey init && covey run "Fix the flaky test" "Add rate limiting"
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; every error that a user can meet is shown here."""
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words
    try:
        if not sys.stdout:  # so it is if it was closed before we began; its number would be given to another file
            raise Unavailable("Standard output is closed; nothing was done.", hint="> /dev/null throws it away.")
        if (sys.stdout.encoding or "utf-8").lower() != "utf-8":  # one that is only kept in memory has none
            _fit(as_json=as_json)
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


def _fit(*, as_json: bool) -> None:
    """Print what a terminal of old has no letters for as ?, and JSON in UTF-8 as everywhere."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8" if as_json else None, errors="replace")


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
            print(HELP.format(**GROUPS, **SINGLE), end="")
            return 0
        if option == "--version":
            return _version(as_json="--json" in [*given, *words])
        if option == "-C" and words:
            given += ["-C", words.pop(0)]
        elif option == "--json":
            given.append(option)
        else:
            raise _unknown_option(option)
    if not words:
        print(HELP.format(**GROUPS, **SINGLE), end="")
        return 0
    return run(words[0], [*given, *words[1:]])


def _unknown_option(option: str) -> Invalid:
    from covey.cli.command import nearest

    near = nearest(option, ["--help", "--json", "--version"])
    hint = f"Did you mean covey {near}?" if near else "covey --help shows how it is used."
    return Invalid(f"covey does not know the option {option[:40]}.", hint=hint)


def _version(*, as_json: bool) -> int:
    print(f'{{"version":"{__version__}"}}' if as_json else f"covey {__version__}")
    return 0


def run(word: str, argv: list[str]) -> int:
    """Run the command or group that a word names."""
    if word == "__complete":
        from covey.cli import completion

        return completion.complete(argv)
    if word == "guard":  # asked by hooks of git alone
        from covey.cli import guard

        return guard.run(argv)
    if word == "help":
        return dispatch([*argv, "--help"])
    if word in SINGLE and argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    if word in ("up", "down", "init"):
        only_owner(word)
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

    name: str
    command: Command
    if word in GROUPS:
        module = _module(word)
        chosen = choose(word, module.COMMANDS, argv)
        if chosen is None:
            print(help_of(word, module.ABOUT, module.COMMANDS))
            return 0
        verb, command, argv = chosen
        name = f"{word} {verb}"
    else:
        name, command = word, _single(word)
    args = command.parser(name).parse_args(argv)
    if command.owner:
        only_owner(name)
    return command.run(args, Client(args.folder)) or 0


def _module(word: str) -> ModuleType:
    from importlib import import_module

    return import_module(f"covey.cli.{word}")


def _single(word: str) -> Command:
    """Return the command that is no group."""
    if word in ("up", "down"):
        command: Command = _module("daemon").COMMANDS[word]
    elif word in ("pause", "resume"):
        command = _module("fleet").COMMANDS[word]
    else:
        command = _module(word).COMMAND
    return command


def only_owner(name: str) -> None:
    """Refuse a session what only the person in charge may do."""
    if "COVEY_TOKEN" in os.environ:
        raise Denied(
            f"covey {name} is for the owner, and COVEY_TOKEN makes you a session.",
            hint="Ask the owner: covey mail send owner ...",
        )


def _care(argv: list[str]) -> int | None:
    """Run a command that cares for the log, if these words name one."""
    rest, folder = _without_folder(argv)
    word = next((word for word in rest if word != "--json"), None)
    if word not in CARE:
        _must_be_option(word)
        return None
    rest.remove(word)
    only_owner(f"log {word}")
    from pathlib import Path

    from covey.cli import log_care

    return log_care.run(word, rest, Path(folder))


def _must_be_option(word: str | None) -> None:
    """Refuse a first word after `covey log` that is neither an option nor one of its commands."""
    if word and not word.startswith("-"):
        from covey.cli.command import unknown

        raise unknown("covey log", word, list(CARE))


def _without_folder(argv: list[str]) -> tuple[list[str], str]:
    """Return words without -C DIR, and the folder that it named or we stand in."""
    rest, folder = list(argv), ""
    while "-C" in rest:
        at = rest.index("-C")
        if at + 1 == len(rest):
            raise Invalid("-C needs a folder.", hint="covey -C DIR COMMAND acts as if started in DIR.")
        folder = os.path.abspath(rest[at + 1])
        del rest[at : at + 2]
    if not folder:
        from covey.cli.place import here

        folder = here()
    return rest, folder


def every_command() -> Iterator[tuple[str, Parser]]:
    """Yield the name and the parser of every command that is made here, for the reference and for completion."""
    for group in GROUPS:
        for verb, command in _module(group).COMMANDS.items():
            yield f"{group} {verb}", command.parser(f"{group} {verb}")
    for word in SINGLE:
        yield word, _single(word).parser(word)
