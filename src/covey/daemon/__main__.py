"""`python -m covey.daemon FOLDER`: start a daemon with as little work as can be."""

from __future__ import annotations

import gc
import sys
from types import ModuleType

from covey.cli.frame.lean_imports import import_without


def main() -> int:
    """Import the daemon, then run it."""
    gc.disable()  # Importing makes much and throws nothing away; `command` turns it on again.
    import_without("msgspec", "typing_extensions", None)  # where it is missing, msgspec does without
    # The command line of uvicorn brings click and multiprocessing; we use its server alone.
    commands = ModuleType("uvicorn.main")
    vars(commands).update(dict.fromkeys(("Server", "main", "run")))
    import_without("uvicorn", "uvicorn.main", commands)
    from covey.daemon.command import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
