"""How Claude Code is started: what its two ways, with a terminal and without, have in common."""

from __future__ import annotations

import json
import re
from typing import Any

from covey.agents import hook_protocol, streams
from covey.agents.agent import Assignment
from covey.agents.allowed_commands import CHAINED
from covey.core.people.permits import PermissionLevel

LEAVING = "EnterWorktree ExitWorktree CronCreate CronDelete ScheduleWakeup RemoteTrigger"
"""Tools that would take it out of its worktree, or let it act when nobody expects it."""

ASKED = {"permissions": {"ask": ["Edit", "Write", "NotebookEdit", "WebFetch"]}}
"""Settings by which it asks before it changes anything, whatever its user allows elsewhere."""

_QUOTED = re.compile(r"""['"`$\\]""")


def program(work: Assignment) -> tuple[list[str], dict[str, str]]:
    """Return the program with what it is always given, and its environment."""
    env = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY": "1", **work.env}
    if work.hooks is not None:
        env |= _past_proxies(env)
    if work.permissions is PermissionLevel.FULL:
        env["IS_SANDBOX"] = "1"  # else it refuses the level to root, and in containers everybody is root
    return work.command("claude"), env


def home(work: Assignment) -> str:
    """Return the folder in which it keeps its settings and writes its journals."""
    return work.env.get("CLAUDE_CONFIG_DIR") or f"{work.env.get('HOME', '')}/.claude"


def permissions(work: Assignment) -> list[str]:
    """Return what says how much it may do by itself.

    Commands that the user's own settings allow it may run at every level: no option leaves only those rules out. A rule
    to ask for all commands would, but it asks for `ls` as well; and without the settings of the project it would not
    read CLAUDE.md. What a repository's settings.json allows holds only once the user has trusted it in Claude Code.
    """
    kept_out = ["--disallowedTools", *LEAVING.split()]
    match work.permissions:
        case PermissionLevel.FULL:
            return [*kept_out, "--dangerously-skip-permissions"]
        case PermissionLevel.EDITS:
            commands = dict.fromkeys(["git", "covey", *(part for command in work.commands for part in _parts(command))])
            allowed = [f"Bash({command}:*)" for command in commands]
            return [*kept_out, "--allowedTools", *allowed, "--permission-mode", "acceptEdits"]
        case PermissionLevel.ASK:
            return [*kept_out, "--permission-mode", "default"]


def settings(work: Assignment, *, terminal: bool) -> dict[str, Any]:
    """Return the settings that it gets besides its user's: of all that a command line names, only the last count."""
    found: dict[str, Any] = {}
    if work.permissions is PermissionLevel.ASK:
        found |= ASKED
    if (
        terminal and work.permissions is PermissionLevel.FULL
    ):  # the level was chosen by a person: this would ask the same again
        found["skipDangerousModePermissionPrompt"] = True
    # Without a terminal it asks for permission in its stream, which outlives a restart of the daemon.
    return found | (hook_protocol.settings(work.hooks, held=terminal) if work.hooks is not None else {})


def added(work: Assignment, ours: dict[str, Any]) -> list[str]:
    """Return our settings, and what the user's add to the command line; settings in there go together with ours.

    Those that are named by a file take the place of ours.
    """
    words = [streams.word(word) for word in work.arguments]
    rest: list[str] = []
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        theirs = streams.record(value if equals else words[0] if words else "") if name == "--settings" else None
        if theirs is None:
            rest.append(word)
            continue
        ours = _together(ours, dict(theirs))
        words = words if equals else words[1:]
    return [*(["--settings", json.dumps(ours)] if ours else []), *rest]


def _together(ours: Any, theirs: Any) -> Any:
    """Return two settings as one: lists one after the other, and where they differ, theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        both = {key: _together(ours[key], theirs[key]) for key in ours if key in theirs}
        return {**ours, **theirs, **both}
    return [*ours, *theirs] if isinstance(ours, list) and isinstance(theirs, list) else theirs


def _past_proxies(env: dict[str, str]) -> dict[str, str]:
    """Return what lets it reach the daemon where a proxy stands in the way: its hooks would go to that."""
    if not any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in env):
        return {}
    known = (env.get("NO_PROXY") or env.get("no_proxy") or "").split(",")
    return dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(dict.fromkeys([*filter(None, known), "127.0.0.1"])))


def _parts(command: str) -> list[str]:
    """Return the commands that a line chains: each of them has to be allowed by itself."""
    plain = streams.word(command)
    parts = [plain] if _QUOTED.search(plain) else CHAINED.split(plain)
    return [" ".join(part.split()) for part in parts if part.strip()]
