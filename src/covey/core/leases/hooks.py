"""Hooks: what an agent program lets covey know at a step of its work, and what it is told at that step."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from covey.values import dataclass


class Moment(StrEnum):
    """The steps at which an agent asks, by the names that Claude Code and Codex give them."""

    SESSION_START = "SessionStart"
    USER_PROMPT = "UserPromptSubmit"
    BEFORE_TOOL = "PreToolUse"
    AFTER_TOOL = "PostToolUse"
    PERMISSION = "PermissionRequest"
    NOTIFICATION = "Notification"
    BEFORE_COMPACT = "PreCompact"
    STOP = "Stop"
    SUBAGENT_STOP = "SubagentStop"
    SESSION_END = "SessionEnd"


@dataclass(frozen=True, kw_only=True)
class Hook:
    """One asking of an agent program; what it did not say is empty."""

    moment: Moment
    conversation: str = ""
    transcript: str = ""
    """The file in which it keeps its conversation."""
    cwd: str = ""
    tool: str = ""
    call: str = ""
    """The name of one use of a tool."""
    writes: tuple[str, ...] = ()
    """The paths that an editing tool is given, as they were given."""
    command: str = ""
    """The command of a shell tool."""
    prompt: str = ""
    asks: str = ""
    """What a person is asked to allow, in a sentence."""
    about: str = ""
    """What is to be allowed, as permits know it."""
    note: str = ""
    """How a conversation began or ended, what made it compact, or the kind of a notification."""
    message: str = ""
    again: bool = False
    """It goes on already because a Stop hook told it to."""
    sub: str = ""
    """The sub-agent that asks, if it is one."""


@dataclass(frozen=True, kw_only=True)
class HookReply:
    """What an agent is told; all of it empty lets it go on as if nobody had been asked."""

    deny: str | None = None
    """Why a tool is not used."""
    tell: str | None = None
    """What the model gets to know besides."""
    go_on: str | None = None
    """What it should do instead of stopping."""
    allow: bool | None = None
    """What a person decided, None if nobody did; before a tool, that it needs no question."""
    why: str | None = None


NOTHING = HookReply()


def missed(used: Collection[str], seen: Collection[str], lost: int = 0) -> int:
    """Return before how many uses of tools covey was not asked, or did not answer.

    `used`: their names as the agent told them; `seen`: those that covey was asked about; `lost`: questions that the
    relay saw nobody answer. An agent whose two names for one use differ is judged by their number.
    """
    asked = set(seen)
    left = len(set(used) - asked) if asked & set(used) else max(0, len(set(used)) - len(seen))
    return max(left, lost)
