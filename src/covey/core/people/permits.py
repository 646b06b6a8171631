"""What agents may do without asking: levels, and what a person allowed once and for all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING

from covey.core.people.commands import pushes
from covey.values import dataclass

if TYPE_CHECKING:
    from covey.core.people.commands import shell

SHELL = "shell"
"""The tool that runs commands, whatever an agent calls it."""
PUSH = "push"
"""What a session's git asks for before it pushes: a remote and refs."""
_QUOTED = re.compile(r"['\"]")
_WORD = re.compile(r"[\w@%+=:,./-]+")
_INTERPRETER = re.compile(r"python[\d.]*|node|ruby|perl|php|sh|bash|zsh|dash|deno|bun|lua[\d.]*")
_RUN_OTHERS = (
    "env", "xargs", "nohup", "nice", "ionice", "timeout", "time", "setsid", "stdbuf", "command", "exec", "eval", "sudo",
    "doas", "watch", "parallel", "strace", "ltrace", "script", "chroot", "unshare", "flock",
)  # fmt: skip
"""Programs that run whatever stands behind their name."""
_CHAINED = re.compile(r"[;&|`$()<>\n\\]")
"""What makes more than one command of a line, or another command than it seems."""


_OPTION = re.compile(r"-(?!m$).*", re.DOTALL)
"""What lets an interpreter run any text or file that follows, or that it is sent; `-m` names a module."""


class PermissionLevel(StrEnum):
    """How much an agent may do by itself."""

    ASK = "ask"
    """It reads; for all else it asks."""
    EDITS = "edits"
    """It edits, uses git and covey, runs the gate and what `allow` names; for all else it asks."""
    FULL = "full"
    """It asks for nothing."""


@dataclass(frozen=True, kw_only=True)
class Granted:
    """A person allowed something for this repository."""

    tool: str
    about: str


@dataclass(frozen=True, kw_only=True)
class Permit(Granted):
    """Something that every agent on this project may do without asking."""

    id: str
    ordinal: int
    by: str = ""
    granted: float = 0.0
    revoked: float | None = None


@dataclass(frozen=True)
class Revoked:
    """What was allowed no longer is."""


Event = Granted | Revoked


def covers(tool: str, about: str, asked_tool: str, asked: str) -> bool:
    """Say whether a permit for `about` covers what is asked for: exactly it, or a command that begins with its words.

    A command that chains others, or pushes where git would not ask, is covered only word for word, so that nothing
    rides along. What may be pushed is a remote with patterns of its refs.
    """
    if tool != asked_tool:
        return False
    allowed, wanted = about.strip(), asked.strip()
    if not allowed:
        return tool not in (SHELL, PUSH)  # a whole tool, but never every command, nor every push
    if wanted == allowed:
        return True
    if tool == PUSH:
        return pushes.covers(allowed, wanted)
    if tool != SHELL or _CHAINED.search(allowed):
        return False
    words: Sequence[str] | None = wanted.split()
    if _QUOTED.search(wanted):  # what is quoted chains nothing
        words = _alone(wanted)
    elif _CHAINED.search(wanted):
        return False
    begins = words is not None and list(words[: len(allowed.split())]) == allowed.split()
    return begins and not _pushes_unseen(wanted)


def is_push(tool: str, about: str) -> bool:
    """Say whether a person is asked for a push: by git's own hook, or for a command that goes past it."""
    return tool == PUSH or (tool == SHELL and _pushes_unseen(about))


def _pushes_unseen(command: str) -> bool:
    """Say whether a command pushes past git's own question: nobody who lets `git` or `sh -c` run means that."""
    from covey.core.people.commands import egress  # as below

    return any(way.kind is egress.EgressKind.PUSH for way in egress.found(command))


def _alone(command: str) -> tuple[str, ...] | None:
    """Return the words of a command that is just one, all of them known and nothing redirected; None if it is not."""
    from covey.core.people.commands import (
        shell,  # few commands read a line of shell, and all of them start with this module
    )

    script = shell.read(command)
    only = script.commands[0] if script.whole and len(script.commands) == 1 else None
    alone = only is not None and only.is_plain and not only.assignments and not only.redirections
    return only.texts if only is not None and alone else None


@dataclass(frozen=True)
class Offer:
    """A rule that a person may allow for good instead of one command, and what it would allow, in words."""

    rule: str
    allows: str


def offered(tool: str, about: str) -> Offer | None:
    """Return the rule that would let the same kind of command run from now on; None if there is none to offer."""
    if tool == PUSH:
        remote = about.split(" ")[0]
        return Offer(about, f"pushes of just these refs to {remote}")
    from covey.core.people.commands import read_only_commands, shell  # as above

    script = shell.read(about) if tool == SHELL else shell.Script(whole=False)
    beyond = [each for each in script.commands if each.words and not read_only_commands.is_reader(each.words[0].text)]
    if not script.whole or len(beyond) != 1 or beyond[0].assignments or not beyond[0].words[0].plain:
        return None
    if _pushes_unseen(about):
        return None
    words = list(takewhile(lambda text: _WORD.fullmatch(text) is not None, _first(beyond[0])))
    if not words or _CHAINED.search(" ".join(words)):
        return None
    rule = " ".join(words)
    if _INTERPRETER.fullmatch(words[0]) and (len(words) == 1 or _OPTION.fullmatch(words[1])):
        return Offer(rule, f"any program in the language of {words[0]}, which can do whatever you can")
    if words[0] in _RUN_OTHERS and all(map(_runs_on, words[1:])):
        return Offer(rule, f"any program at all: {words[0]} runs what follows it, which can do whatever you can")
    return Offer(rule, f"every command that begins with {rule}, whatever follows")


def _runs_on(word: str) -> bool:
    """Say whether a program that runs others still runs any of them with this word before it."""
    is_name = word in _RUN_OTHERS or _INTERPRETER.fullmatch(word) is not None
    return is_name or "=" in word or re.fullmatch(r"[\d.]+[smhd]?", word) is not None


def _first(command: shell.Command) -> list[str]:
    """Return the words of a command that say what it does: the program, and its verb, module or way to be used."""
    from covey.core.people.commands import safe_commands  # as above

    texts = list(command.texts)
    if tests := safe_commands.runner_of(command.texts):
        return list(tests)  # whatever files and filters it is given: the next test is another
    if _INTERPRETER.fullmatch(texts[0]):
        return texts[:3] if texts[1:2] == ["-m"] else texts[:2]
    return texts[:2] if len(texts) > 1 and command.words[1].plain and not texts[1].startswith("-") else texts[:1]


def is_chained(command: str) -> bool:
    """Say whether a command is more than one, or may be another than it seems."""
    return _CHAINED.search(command.strip()) is not None


def apply(permit: Permit, event: Revoked, at: float, by: str) -> Permit:
    """Return the permit as it is after `event`. Never refuses."""
    return replace(permit, revoked=at)
