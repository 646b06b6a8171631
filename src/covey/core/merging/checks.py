"""What the gate runs on a tree: the quick check first, then the check, then those that only some paths need."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from covey.core import globs
from covey.values import dataclass

QUICK = "quick"
CHECK = "check"


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


def checks_for(settings: Settings, changed: Collection[str]) -> tuple[Check, ...]:
    """Return the steps of the gate for a tree that changes these paths, in the order in which they are run."""
    if not settings.check:
        return ()
    first = (Check(QUICK, settings.quick),) if settings.quick else ()
    further = tuple(
        Check(name_of(each), each.run)
        for each in settings.checks
        if any(globs.covered(path, each.paths, ()) for path in changed)
    )
    return (*first, Check(CHECK, settings.check), *further)


def name_of(check: PathCheck) -> str:
    """Return what a check of some paths is called."""
    return " ".join(check.paths)


def commands(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return the steps besides the check itself, by their names, and the command of each."""
    quick = ((QUICK, settings.quick),) if settings.quick else ()
    return (*quick, *((name_of(each), each.run) for each in settings.checks))
