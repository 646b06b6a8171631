"""Live through one night and print its story: python -m tests.end_to_end.night --seed 7 --hours 12."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.end_to_end.night.night import Night


def main() -> int:
    """Live through the night that the command line names."""
    parser = argparse.ArgumentParser(prog="tests.end_to_end.night")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=12.0)
    parser.add_argument("--sessions", type=int, default=12)
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--figures", action="store_true", help="leave the log out")
    words = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="covey-night-", dir=memory if memory.is_dir() else None) as folder:
        story = Night(Path(folder), words.seed, words.hours, words.sessions, words.tasks).run()
    print(story.figures() if words.figures else json.dumps(vars(story)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
