"""Who holds a path: its leases, found among all that are in force."""

from __future__ import annotations

import os

from covey.core import force, leases
from covey.core.leases import Lease

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any


def resource(text: str, folder: str) -> str:
    """Return a resource as it is leased: a path, or a pattern of paths, from the root of the checkout."""
    return place(text, folder) if text and leases.is_path(text) else text


def of(paths: list[str], found: list[dict[str, Any]], folder: str) -> dict[str, list[dict[str, Any]]]:
    """Return for each path, or name of a resource, the leases that cover it."""
    return {path: [lease for lease in found if _covers(lease, path, folder)] for path in paths}


def _covers(lease: dict[str, Any], path: str, folder: str) -> bool:
    """Say whether a lease covers a path, or something below it, or that a pattern matches."""
    asked = leases.resource(resource(path, folder))
    chosen = Lease(id=lease["id"], holder=lease["holder"], resources=tuple(lease["resources"]))
    if any(leases.collide(asked, each) for each in chosen.resources):
        return True
    return leases.is_path(asked) and force.covers(chosen, place(path, folder)) is not None


def place(path: str, folder: str) -> str:
    """Return a path from the root of the checkout that a folder is in; what lies elsewhere stays as it is."""
    root = folder
    while not os.path.lexists(os.path.join(root, ".git")) and os.path.dirname(root) != root:
        root = os.path.dirname(root)
    whole = os.path.normpath(os.path.join(folder, path))
    inside = os.path.relpath(whole, root)
    return path if inside == ".." or inside.startswith("../") else inside
