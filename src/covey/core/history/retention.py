"""What covey keeps, where, for how long and by which setting: one table, and the rules that say what goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TypeVar

from covey.values import dataclass

HOUR_S, DAY_S = 3600.0, 86_400.0
MIB = 1024 * 1024
ANSWERS_KEPT_S = DAY_S
"""Seconds for which the answer to an idempotency key is kept."""
RESCUES_KEPT_DAYS = 14.0
"""Days that a rescue is kept after its session was removed, or it was made, whichever is later."""
TRASH_KEPT_S = HOUR_S
"""Seconds after which nobody can still be at work on what is being removed, or was left by a killed rescue."""


class RetainedKind(StrEnum):
    """What may be cleaned, each kind by a rule of its own."""

    OUTPUT = "run output"
    TRANSCRIPT = "transcript"
    RUN = "run folder"
    GATE_LOG = "gate log"
    RESCUE = "rescue"
    TRASH = "trash"
    ANSWER = "answer"
    TEXT = "long text"
    CACHE = "warm cache"
    ROOM = "gate room"
    WORKTREE = "worktree"
    BRANCH = "branch"
    TERMINAL = "tmux session"


class Cleaner(StrEnum):
    """Who removes what has had its time; `covey clean --yes` does both of the first two."""

    DAEMON = "the daemon, by itself"
    PERSON = "covey clean --yes"
    QUEUE = "the merge queue"


@dataclass(frozen=True)
class Rule:
    """How long one kind of thing is kept, and who removes it then."""

    where: str
    """Below the state folder, unless it says otherwise."""
    kept: str
    settings: tuple[str, ...]
    """By which settings; without one the time is fixed."""
    proof: str
    """By what covey knows that it is its own."""
    by: Cleaner = Cleaner.DAEMON


RULES: dict[RetainedKind, Rule] = {
    RetainedKind.OUTPUT: Rule(
        "runs/<run>/output",
        "while it is young and all of it small, once its transcript is kept",
        ("log.keep_days", "log.keep_megabytes"),
        "covey's transcript of it lies beside it",
    ),
    RetainedKind.TRANSCRIPT: Rule(
        "runs/<run>/transcript.gz",
        "while its task is known, within a total size; those of ended tasks go first",
        ("log.transcript_megabytes",),
        "its run is a row that has ended",
    ),
    RetainedKind.RUN: Rule(
        "runs/<run>",
        "while it holds a transcript, else while it is young",
        ("log.keep_days",),
        "its run is a row that has ended",
    ),
    RetainedKind.GATE_LOG: Rule(
        "gates/<gate>.log.gz",
        "while it is young and all of them small",
        ("log.keep_days", "log.keep_megabytes"),
        "its gate wrote it under the gate's own name",
    ),
    RetainedKind.RESCUE: Rule(
        "refs/covey/rescue/<session>/<time>",
        f"{RESCUES_KEPT_DAYS:g} days after its session was removed",
        (),
        "covey's own ref, of a session whose row is removed",
    ),
    RetainedKind.TRASH: Rule(
        "old-worktrees, old-caches, tmp",
        "an hour: then its removal, or the rescue that made it, was cut short",
        (),
        "covey moved it into a folder of its own for what is removed",
    ),
    RetainedKind.ANSWER: Rule("covey.db", "24 hours after its request", (), "a row of the store"),
    RetainedKind.TEXT: Rule(
        "covey.db",
        "while its task is open or its mail young, and all of them small",
        ("log.keep_days", "log.keep_megabytes"),
        "a row of the store",
    ),
    RetainedKind.CACHE: Rule(
        "caches/<settings>/<commit>",
        "a day, for the last eight commits",
        ("merge.cache",),
        "a gate that passed left it there",
        Cleaner.QUEUE,
    ),
    RetainedKind.ROOM: Rule(
        "gates/<gate>.room, old-rooms", "while its gate runs", (), "covey made it for that gate", Cleaner.QUEUE
    ),
    RetainedKind.WORKTREE: Rule(
        "the folder of the worktrees",
        "while its session is there; what git would lose of it is rescued first",
        ("sessions.worktrees",),
        "covey's record of having made this very folder, and no session with its name",
        Cleaner.PERSON,
    ),
    RetainedKind.BRANCH: Rule(
        "refs/heads/covey/<task>",
        "until its work has landed, or its task has ended without any",
        (),
        "its task is a row, and main holds all of its work",
        Cleaner.PERSON,
    ),
    RetainedKind.TERMINAL: Rule(
        "covey's own tmux server",
        "while its run is alive or somebody looks at it",
        (),
        "it is named for a run whose row has ended, on a server of covey's own",
        Cleaner.PERSON,
    ),
}
"""Kept until somebody removes them by hand: the log, refs/covey/kept, and what git keeps itself."""


@dataclass(frozen=True)
class Kept:
    """Something that is kept, by its name: when it was last written, and its bytes."""

    name: str
    at: float
    size: int
    is_known: bool = field(default=True, kw_only=True)
    """Its task is known."""
    is_open: bool = field(default=False, kw_only=True)
    """That task has not ended."""


K = TypeVar("K", bound=Kept)


def past_age_or_size(found: Iterable[K], *, keep_days: float, keep_megabytes: float, now: float) -> list[K]:
    """Return what is too old, and then the oldest of what is too much."""
    return _oldest_beyond(sorted(found, key=_age), keep_megabytes, lambda each: now - each.at > keep_days * DAY_S)


def transcripts_past(found: Iterable[K], *, keep_days: float, keep_megabytes: float, now: float) -> list[K]:
    """Return the old transcripts of tasks that nobody knows, and then the oldest of what is too much.

    Those of ended tasks go before any of an open one.
    """
    order = sorted(found, key=lambda each: (each.is_known, each.is_open, *_age(each)))
    return _oldest_beyond(order, keep_megabytes, lambda each: not each.is_known and now - each.at > keep_days * DAY_S)


def rescue_is_past(*, made: float, session_ended: float | None, now: float) -> bool:
    """Say whether a rescue has had its time; one of a session that is there, or unknown, never has."""
    return session_ended is not None and now - max(session_ended, made) > RESCUES_KEPT_DAYS * DAY_S


def branch_is_past(*, task_ended: bool, has_landed: bool, in_main: bool) -> bool:
    """Say whether a task's branch holds nothing that would be missed: its tip has landed, or main has it all."""
    return task_ended and (has_landed or in_main)


def rescue_goes_soon(*, made: float, now: float) -> bool:
    """Say whether a rescue has had so much of its time that nothing should rely on it any more."""
    return now - made > RESCUES_KEPT_DAYS * DAY_S / 2


def _age(each: Kept) -> tuple[float, str]:
    return each.at, each.name


def _oldest_beyond(order: Sequence[K], keep_megabytes: float, is_past: Callable[[K], bool]) -> list[K]:
    """Return what has had its time, and the first of the others until the rest fits."""
    past = [each for each in order if is_past(each)]
    rest = [each for each in order if not is_past(each)]
    room = keep_megabytes * MIB - sum(each.size for each in rest)
    for each in rest:
        if room >= 0:
            break
        past.append(each)
        room += each.size
    return past
