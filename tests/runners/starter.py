"""A process of its own that starts runs, says so, and waits to be killed: `starter KIND FOLDER SCRIPT RUN...`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from tests.worlds.runners import Place, shell


def main(kind: str, folder: str, script: str, *runs: str) -> None:
    """Start the runs when told to."""
    place = Place(kind, Path(folder))
    print("ready", flush=True)
    sys.stdin.readline()
    for run_id in runs:
        place.start(run_id, shell(script))
    print("started", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
