"""How Claude Code is started: what its two ways, with a terminal and without, have in common."""

from __future__ import annotations

import json
import re

from covey.agents import streams
from covey.agents.agent import Assignment
from covey.core.permits import Level

LEAVING = "EnterWorktree ExitWorktree CronCreate CronDelete ScheduleWakeup RemoteTrigger"
"""Tools that would take it out of its worktree, or let it act when nobody expects it."""

ASKED = {"permissions": {"ask": ["Edit", "Write", "NotebookEdit", "WebFetch"]}}
"""Settings by which it asks before it changes anything, whatever its user allows elsewhere."""

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
    """Return what says how much it may do by itself.

    Commands that the user's own settings allow it may run at every level: no option leaves only those rules out. A rule
    to ask for all commands would, but it asks for `ls` as well; and without the settings of the project it would not
    read CLAUDE.md. What a repository's settings.json allows holds only once the user has trusted it in Claude Code.
    """
    kept_out = ["--disallowedTools", *LEAVING.split()]
    match work.permissions:
        case Level.FULL:
            return [*kept_out, "--dangerously-skip-permissions"]
        case Level.EDITS:
            commands = dict.fromkeys(["git", "covey", *(part for command in work.commands for part in _parts(command))])
            allowed = [f"Bash({command}:*)" for command in commands]
            return [*kept_out, "--allowedTools", *allowed, "--permission-mode", "acceptEdits"]
        case Level.ASK:
            return [*kept_out, "--permission-mode", "default", "--settings", json.dumps(ASKED)]


def _parts(command: str) -> list[str]:
    """Return the commands that a line chains: each of them has to be allowed by itself."""
    plain = streams.word(command)
    parts = [plain] if _QUOTED.search(plain) else _CHAIN.split(plain)
    return [" ".join(part.split()) for part in parts if part.strip()]
