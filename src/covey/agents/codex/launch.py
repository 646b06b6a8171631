"""How Codex is started, and what its events have in common with its journal."""

from __future__ import annotations

import glob
import hashlib
import json
import os.path
import re
import shlex
from collections.abc import Mapping
from typing import Any

from covey.agents import hook_protocol, streams
from covey.agents.agent import Assignment
from covey.core import texts
from covey.core.fleet.signals import Signal, Spent, Usage
from covey.core.leases.hooks import Moment
from covey.core.people.permits import PermissionLevel

CACHES = (
    ".cache", ".npm", ".yarn", ".local/share/pnpm", ".cargo/registry", ".cargo/git", "go/pkg", ".gradle", ".m2",
    ".nuget",
)  # fmt: skip
"""Folders of a home that package managers and compilers write to, without which many a gate fails."""
READ_ONLY_GIT_PATHS = ("hooks", "config", "covey", "worktrees")
"""What a session must not change of the git folder that all share."""

UNHEARD = (Moment.NOTIFICATION,)
"""Moments that it does not know."""
FLAGS = "/<session-flags>/config.toml"
"""What it calls the place of settings that stand on its command line."""

_SHELLS = ("sh", "bash", "zsh", "dash")


def settings(work: Assignment, approval: str = "never") -> list[str]:
    """Return the options by which Codex may do what the level allows, whatever the user's own settings say.

    `approval`: when it asks a person to allow more, if one is there.
    """
    # A login shell would set another PATH, on which covey need not be; and covey has chosen the environment already.
    common = [f'approval_policy="{approval}"', "allow_login_shell=false", 'shell_environment_policy.inherit="all"']
    options = [word for setting in common for word in ("-c", setting)]
    match work.permissions:
        case PermissionLevel.ASK:
            return [*options, "--sandbox", "read-only"]
        case PermissionLevel.FULL:
            return [*options, "--sandbox", "danger-full-access"]
        case PermissionLevel.EDITS:
            table = ",".join(f"{key}={value}" for key, value in _filesystem(work).items())
            options += ["-c", 'default_permissions="covey"', "-c", f"permissions.covey.filesystem={{{table}}}"]
            return [*options, "-c", "permissions.covey.network.enabled=true"]


def _filesystem(work: Assignment) -> dict[str, str]:
    """Return which paths it may write, in the words of a permission profile.

    Codex protects the folder that a worktree's .git names, unless just that folder is listed: a mere folder above it,
    or a sandbox mode with writable roots above it, leaves `git commit` without an index.
    """
    rights = {'":root"': '"read"', '":workspace_roots"': '{"."="write"}', '":tmpdir"': '"write"'}
    rights['":slash_tmp"'] = '"write"'
    home = work.env.get("HOME", "")
    caches = [os.path.join(home, folder) for folder in CACHES] if os.path.isabs(home) else []
    for folder in [*caches, work.env.get("XDG_CACHE_HOME", ""), work.git]:
        if os.path.isabs(folder):
            rights[_toml(folder)] = '"write"'
    if os.path.isabs(work.git):
        rights |= {_toml(os.path.join(work.git, kept)): '"read"' for kept in READ_ONLY_GIT_PATHS}
        entry = work.entry or os.path.join(work.git, "worktrees", os.path.basename(os.path.normpath(work.worktree)))
        rights[_toml(entry)] = '"write"'
    return rights | _private(work)


def _private(work: Assignment) -> dict[str, str]:
    """Return that it cannot even connect to a socket in what is covey's own, but has its place in there.

    At the level `ask` its sandbox has no network at all, and sockets are part of that.
    """
    closed = [os.path.normpath(folder) for folder in work.private if os.path.isabs(folder)]
    own = os.path.normpath(work.env.get("TMUX_TMPDIR", ""))
    rights = {_toml(folder): '"none"' for folder in closed}
    return rights | ({_toml(own): '"write"'} if any(own.startswith(f"{folder}/") for folder in closed) else {})


def _toml(path: str) -> str:
    return texts.toml(streams.word(path))


def hooks(work: Assignment, *, held: bool) -> list[str]:
    """Return the options by which it asks covey at each step, beside all hooks of its user's own.

    Hooks run only if they are trusted, and trust is the digest of a hook. Ours are trusted by name, for this run alone:
    the option that trusts all would run those of the repository too, which anybody may have written.
    """
    door = work.hooks
    if door is None:
        return []
    options: list[str] = []
    trusted: list[str] = []
    for moment in Moment:
        if moment in UNHEARD or (moment is Moment.PERMISSION and not (held and door.holds)):
            continue
        command, seconds = streams.word(shlex.join([*door.relay, moment])), hook_protocol.seconds(moment)
        table = f'[{{hooks=[{{type="command",command={_toml(command)},timeout={seconds}}}]}}]'
        options += ["-c", f"hooks.{moment}={table}"]
        event = re.sub(r"(?<!^)(?=[A-Z])", "_", moment).lower()
        trusted.append(f'"{FLAGS}:{event}:0:0"={{trusted_hash="{trust(event, command, seconds)}"}}')
    return [*options, "-c", f"hooks.state={{{','.join(trusted)}}}"]


def trust(event: str, command: str, seconds: int) -> str:
    """Return the digest by which it knows a hook: of its JSON, the keys in order and without a blank."""
    handler = {"type": "command", "command": command, "timeout": seconds, "async": False}
    plain = json.dumps(
        {"event_name": event, "hooks": [handler]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return "sha256:" + hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()


def usage_of(told: Mapping[str, Any]) -> Usage:
    """Return the tokens of the whole conversation, earlier runs too; its input has the cached ones in it."""
    read, written = streams.count(told, "cached_input_tokens"), streams.count(told, "cache_write_input_tokens")
    fresh = max(0, streams.count(told, "input_tokens") - read - written)
    return Usage(fresh, streams.count(told, "output_tokens"), read, written)


def home(work: Assignment) -> str:
    """Return the folder in which it keeps its settings and writes its journals."""
    return work.env.get("CODEX_HOME") or f"{work.env.get('HOME', '')}/.codex"


def journal(folder: str, conversation: str | None) -> tuple[str, ...]:
    """Return where it writes a conversation, nothing for one that has no name yet."""
    name = streams.name(conversation)
    return (f"{glob.escape(folder)}/sessions/*/*/*/rollout-*-{name}.jsonl",) if name else ()


def spending(line: str) -> list[Signal]:
    """Return what a line of its journal says of spending: one for each answer of the model."""
    told = streams.record(line) if '"token_usage_record"' in line else None
    if told is None or told.get("type") != "token_usage_record":
        return []
    payload = streams.inner(told, "payload")
    name = streams.text(payload, "response_id")
    return [Spent(name, usage_of(streams.inner(payload, "usage")))] if name else []


def command_of(command: str) -> str:
    """Return the command that its shell is given."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == 3 and os.path.basename(words[0]) in _SHELLS and words[1] in ("-c", "-lc"):
        return words[2]
    return command
