"""What the gate runs on a tree: the quick check first, then the check, then those that only some paths need."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Protocol

from covey.core import globs
from covey.values import dataclass

QUICK = "quick"
CHECK = "check"
_CUT_SHORT = re.compile(r"The check[^\n]{0,300}? ((?:took longer|printed more) than [^:\n]{1,30}?) and was ended")
"""What `late` and `flooded` write."""


@dataclass(frozen=True)
class PathCheck:
    """A check that is only run when something among these paths changes."""

    paths: tuple[str, ...] = ()
    run: str = ""


@dataclass(frozen=True)
class Check:
    """One step of a gate: what it is called, and the command that a shell runs."""

    name: str
    run: str


class Settings(Protocol):
    """What the settings say about the gate."""

    @property
    def quick(self) -> str:
        """The check that is run first, if any."""

    @property
    def check(self) -> str:
        """The check of every tree; without it nothing is tested."""

    @property
    def checks(self) -> tuple[PathCheck, ...]:
        """The checks that only some paths need."""


def checks_for(settings: Settings, changed: Collection[str] | None) -> tuple[Check, ...]:
    """Return the steps of the gate for a tree that changes these paths, in the order in which they are run.

    None stands for all paths: main alone has to pass every check.
    """
    if not settings.check:
        return ()
    first = (Check(QUICK, settings.quick),) if settings.quick else ()
    further = tuple(
        Check(" ".join(each.paths), each.run)
        for each in settings.checks
        if changed is None or any(globs.covered(path, each.paths, ()) for path in changed)
    )
    return (*first, Check(CHECK, settings.check), *further)


# What is said of a check that was ended. What is written here is read here, and nowhere else.


def title(check: Check) -> str:
    """Return what a check is called at the beginning of a sentence."""
    return "The check" if check.name == CHECK else f"The check {check.name}"


def late(check: Check, limit: str) -> str:
    """Return that a check took too long."""
    return f"{title(check)} took longer than {limit} and was ended: {check.run}"


def flooded(check: Check, limit: str) -> str:
    """Return that a check printed too much."""
    return f"{title(check)} printed more than {limit} and was ended: {check.run}"


def how_it_failed(summary: str) -> str:
    """Return in a few words how a check failed whose story this is: most often it just fails."""
    ended = _CUT_SHORT.match(summary)
    return "fails" if ended is None else f"{ended[1]} and was ended"
