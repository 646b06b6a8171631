"""One at a time: what simple queues do, and what the others are measured against."""

from __future__ import annotations

from covey.core.merging.queue.train import Choice, Plan, Purpose, TrainState, eligible, failed_alone


def choose(state: TrainState) -> Choice:
    """Test the first in line alone, and once more if it fails."""
    line = eligible(state)
    if state.running or not line:
        return Choice()
    first = line[0].id
    again = bool(failed_alone(state, first))
    return Choice((Plan((first,), Purpose.RETRY if again else Purpose.SOLO),))
