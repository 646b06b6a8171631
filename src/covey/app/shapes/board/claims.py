"""What is asked by whoever takes a task and gives it back."""

from __future__ import annotations

from covey.app.shapes.forms import As, Body, Branch, Commit, Fence, Line


class Claim(As, frozen=True, kw_only=True):
    """Who claims; `overlap` goes on although another task may write the same files."""

    overlap: bool = False


class Held(As, frozen=True, kw_only=True):
    """Whose claim, under which fence."""

    fence: Fence | None = None


class HandIn(Held, frozen=True, kw_only=True):
    """The work that is handed in: a commit on its branch, and the text of a result."""

    result: Body | None = None
    commit: Commit | None = None
    branch: Branch | None = None


class Release(Held, frozen=True, kw_only=True):
    """Why the task goes back, if anything went wrong."""

    reason: Line | None = None


class Block(Held, frozen=True, kw_only=True):
    """What a person has to decide."""

    reason: Line
