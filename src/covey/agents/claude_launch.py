"""How Claude Code is started: what its two ways, with a terminal and without, have in common."""

from __future__ import annotations

import re

from covey.agents import streams
from covey.agents.agent import Assignment
from covey.core.permits import Level

LEAVING = "EnterWorktree ExitWorktree CronCreate CronDelete ScheduleWakeup RemoteTrigger"
"""Tools that would take it out of its worktree, or let it act when nobody expects it."""

_CHAIN = re.compile(r"&&|\|\||[;|\n]")
_QUOTED = re.compile(r"""['"`$\\]""")


def program(work: Assignment) -> tuple[list[str], dict[str, str]]:
    """Return the program with what it is always given, and its environment."""
    argv = [streams.word(work.program) or "claude"]
    if work.model:
        argv += ["--model", streams.word(work.model)]
    env = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY": "1", **work.env}
    if work.permissions is Level.FULL:
        env["IS_SANDBOX"] = "1"  # else it refuses the level to root, and in containers everybody is root
    return argv, env


def permissions(work: Assignment) -> list[str]:
    """Return what says how much it may do by itself, whatever the user's own settings say."""
    kept_out = ["--disallowedTools", *LEAVING.split()]
    match work.permissions:
        case Level.FULL:
            return [*kept_out, "--dangerously-skip-permissions"]
        case Level.EDITS:
            commands = dict.fromkeys(["git", "covey", *(part for command in work.commands for part in _parts(command))])
            allowed = [f"Bash({command}:*)" for command in commands]
            return [*kept_out, "--allowedTools", *allowed, "--permission-mode", "acceptEdits"]
        case Level.ASK:
            return [*kept_out, "--permission-mode", "default"]


def _parts(command: str) -> list[str]:
    """Return the commands that a line chains: each of them has to be allowed by itself."""
    plain = streams.word(command)
    parts = [plain] if _QUOTED.search(plain) else _CHAIN.split(plain)
    return [" ".join(part.split()) for part in parts if part.strip()]
