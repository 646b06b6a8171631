"""covey completion: scripts for the shells, which ask `covey __complete` what could come next."""

from __future__ import annotations

import json
import os
from argparse import Action, Namespace

from covey.cli import main
from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, Parser, option

SCRIPTS = {
    "bash": """\
_covey() {
    local IFS=$'\\n'
    COMPREPLY=($(covey __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
}
complete -F _covey covey
""",
    "zsh": """\
#compdef covey
_covey() {
    local -a found
    found=("${(@f)$(covey __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
if [[ "$funcstack[1]" == "_covey" ]]; then _covey "$@"; else compdef _covey covey; fi
""",
    "fish": """\
function __covey_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (covey __complete $words[2..-1] 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c covey -f -a '(__covey_complete)'
""",
}
LISTS: dict[str, tuple[str, Json]] = {
    "ID": ("task.list", {"limit": 1000}),
    "ID,ID": ("task.list", {"limit": 1000}),
    "LEASE": ("lease.list", {"waiting": True}),
    "MERGE": ("merge.list", {}),
    "QUESTION": ("question.list", {"state": "open"}),
    "PERMIT": ("permit.list", {}),
    "MAIL": ("mail.inbox", {"all": True}),
}
"""The verb that lists what may stand in place of a word of the help."""


def completion(args: Namespace, client: Client) -> None:
    """Print the script for a shell."""
    script = SCRIPTS[args.shell]
    print(json.dumps({"shell": args.shell, "script": script}) if args.json else script, end="\n" if args.json else "")


def complete(words: list[str]) -> int:
    """Print what could stand in place of the last word, one a line; nothing is as good as an error here."""
    words = words or [""]
    try:
        for candidate in sorted(candidates(words[:-1], words[-1])):
            print(candidate)
    except Exception:  # noqa: BLE001 - a shell that completes must never show a traceback
        return 1
    return 0


def candidates(before: list[str], last: str) -> set[str]:
    """Return the words that could follow some words and begin like the last one."""
    folder = None
    before, last = [word for word in before if word != "="], "" if last == "=" else last  # so bash splits --status=todo
    while before and before[0].startswith("-"):
        if before == ["-C"]:
            return _starting(_folders(), last)
        if before[0] == "-C":
            folder = before[1]
            del before[0]
        del before[0]
    if not before:
        return _starting({*main.COMMANDS, "help", "--help", "--version", "--json", "-C"}, last)
    word, *rest = before
    commands = main.commands_of(word)
    parts = {part for part in commands if part}
    if "" not in commands and not rest:
        return _starting({*parts, "--help"}, last)
    if "" not in commands or (rest and rest[0] in parts):
        part, *rest = rest
        return _of_command(commands[part].parser(f"{word} {part}"), rest, last, Client(folder))
    found = _of_command(commands[""].parser(word), rest, last, Client(folder))
    return found if rest else found | _starting(parts, last)


def _of_command(parser: Parser, before: list[str], last: str, client: Client) -> set[str]:
    options = {option: action for action in parser._actions for option in action.option_strings}
    waiting = options.get(before[-1]) if before else None
    if waiting is not None and waiting.nargs != 0:
        return _starting(_values(waiting, client), last)
    option, is_given, _ = last.partition("=")
    if is_given and option in options:
        return _starting({f"{option}={value}" for value in _values(options[option], client)}, last)
    if last.startswith("-"):
        return _starting({option for option in options if option.startswith("--")}, last)
    places = [action for action in parser._actions if not action.option_strings]
    given = _positionals(before, options)
    if not places or (given >= len(places) and places[-1].nargs not in ("*", "+")):
        return set()
    return _starting(_values(places[min(given, len(places) - 1)], client), last)


def _positionals(words: list[str], options: dict[str, Action]) -> int:
    count, skip = 0, False
    for word in words:
        action = options.get(word)
        if skip:
            skip = False
        elif action is not None:
            skip = action.nargs != 0
        elif not word.startswith("-"):
            count += 1
    return count


def _values(action: Action, client: Client) -> set[str]:
    """Return what an option or a place can hold, as far as it can be listed."""
    if action.choices is not None:
        return {str(choice) for choice in action.choices}
    listed = LISTS.get(str(action.metavar))
    if listed is not None:
        verb, fields = listed
        return {row["id"] for row in client.ask(verb, fields=fields).value}
    if action.dest == "session" or action.metavar in ("NAME", "TO"):
        return {session["name"] for session in client.ask("session.list").value}
    if action.metavar == "AGENT":
        return {agent["name"] for agent in client.ask("session.offer").value["agents"]}
    if action.metavar == "DIR":
        return _folders()
    return set()


def _folders() -> set[str]:
    return {f"{entry.name}/" for entry in os.scandir() if entry.is_dir()}


def _starting(words: set[str], last: str) -> set[str]:
    return {word for word in words if word.startswith(last)}


COMMAND = Command(
    "print a script that completes commands, options and task ids in your shell",
    option("shell", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish"),
    completion,
    example='eval "$(covey completion bash)"             in ~/.bashrc\n'
    'eval "$(covey completion zsh)"              in ~/.zshrc, after compinit\n'
    "covey completion fish > ~/.config/fish/completions/covey.fish",
)
