"""What real agent programs once wrote, and lines like it that they never did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from covey.agents.agent import Agent
from covey.core.fleet.signals import Failed, Limited, Result, Signal

FOLDER = Path(__file__).parent


def recorded(agent: str, name: str) -> list[str]:
    """Return the lines of a recording."""
    return next((FOLDER / agent).glob(f"{name}.*")).read_text().splitlines()


def heard(agent: Agent, name: str) -> list[Signal]:
    """Return what a recording lets us know."""
    return [signal for line in recorded(agent.name, name) for signal in agent.read(line)]


def ends(signals: list[Signal]) -> list[Result | Failed]:
    """Return what is said of how it ended."""
    return [signal for signal in signals if isinstance(signal, Result | Failed)]


def put_off(signals: list[Signal]) -> list[Limited]:
    """Return what is said of waiting for a provider."""
    return [signal for signal in signals if isinstance(signal, Limited)]


def can_be_stored(signals: list[Signal]) -> bool:
    """Say whether all texts can be written to a database and to a terminal."""
    texts = [value for signal in signals for value in vars(signal).values() if isinstance(value, str)]
    return all(text.encode() is not None and "\0" not in text and "\x1b" not in text for text in texts)


def lines(agent: str) -> st.SearchStrategy[str]:
    """Return lines that look like an agent's: recorded ones, cut, and with anything at all in any place."""
    files = [path for path in (FOLDER / agent).iterdir() if path.is_file()]
    real = sorted({line for path in files for line in path.read_text().splitlines()})
    odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("\ud800\0\x1b[1m")
    anything = st.recursive(odd, lambda deeper: st.lists(deeper, max_size=2) | st.dictionaries(st.text(), deeper))
    spoilt = st.tuples(st.sampled_from(real), st.randoms(use_true_random=False), anything).map(_spoilt)
    cut = st.tuples(st.sampled_from(real), st.integers(0, 400)).map(lambda found: found[0][: found[1]])
    return st.text() | st.sampled_from(real) | cut | spoilt | st.sampled_from(["{" * 50_000, '{"type":' + "9" * 5000])


def _spoilt(found: tuple[str, Any, Any]) -> str:
    line, random, value = found
    try:
        record = json.loads(line)
    except ValueError:
        return line
    at = record
    while isinstance(at, dict) and at:
        key = random.choice(sorted(at))
        if isinstance(at[key], dict) and random.random() < 0.7:
            at = at[key]
        else:
            at[key] = value
            break
    return json.dumps(record)
