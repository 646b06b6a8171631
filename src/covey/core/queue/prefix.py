"""(being written)"""

from __future__ import annotations

from covey.core.queue import serial
from covey.core.queue.train import Choice, State


def choose(state: State) -> Choice:
    """Choose as `serial` does, for now."""
    return serial.choose(state)
