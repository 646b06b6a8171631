"""Broken gates: what is said when no tree can be tested at all. What is written here is read here, and nowhere else."""

from __future__ import annotations

_UNSTARTED = "The gate could not be started"
"""How it begins what is said of a gate that the machine, and not the settings, kept from running."""


def could_not_start(error: str, hint: str) -> str:
    """Return why a gate could not be started."""
    return f"{_UNSTARTED}: {error} {hint}".strip()


def is_machines_fault(why: str) -> bool:
    """Say whether the machine kept a gate from running; if not, the settings name something that cannot be run."""
    return why.startswith(_UNSTARTED)


def remedy(why: str) -> str:
    """Return what has to happen so that a gate can be run again."""
    return "it is tried again every minute" if is_machines_fault(why) else "see merge.check in covey.toml"


def alert(why: str) -> str:
    """Return what a person is told."""
    return f"{why} No change is to blame, so nothing lands until it is mended: {remedy(why)}."


def is_alert_of(message: str, why: str) -> bool:
    """Say whether a person was told of this."""
    return message.startswith(why)
