"""Import modules without what they only need for rare things.

Each of these modules imports another one that takes milliseconds, for something that we never ask of it. While it is
imported, a stand-in is found under the other's name: it imports the true one as soon as it is asked for anything.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any


class _StandIn(ModuleType):
    """A module that is imported when something of it is needed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the import system asks of any module
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


def import_lean() -> None:
    """Import what every command without a daemon needs; where one is there already, it is left as it is."""
    import_without("dataclasses", "inspect", _StandIn("inspect"))
    paths = _StandIn("urllib.parse")
    paths.quote_from_bytes = _quote_from_bytes  # type: ignore[attr-defined]
    import_without("pathlib", "urllib.parse", paths)
    machine = _StandIn("platform")
    machine.system = lambda: os.uname().sysname  # type: ignore[attr-defined]
    import_without("uuid", "platform", machine)
    import_without("msgspec", "typing_extensions", None)  # where it is missing, msgspec does without


def _quote_from_bytes(data: bytes, safe: str = "/") -> str:
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(data, safe)


def import_without(wanted: str, other: str, stand_in: ModuleType | None) -> None:
    """Import a module that finds a stand-in for another; whoever else wants that gets the true one."""
    if wanted in sys.modules or other in sys.modules:
        return
    sys.modules[other] = stand_in  # type: ignore[assignment]
    try:
        import_module(wanted)
    finally:
        del sys.modules[other]
