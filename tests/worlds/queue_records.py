"""What the queue writes of gates and landings, as tests write it."""

from __future__ import annotations

from covey.app.context import Call
from covey.core.fleet.sessions import COVEY
from covey.core.merging import gates, landings
from covey.core.merging.gates import Gate
from covey.core.merging.landings import Landing


def start_gate(call: Call, event: gates.Started) -> Gate:
    """Write that a gate began."""
    return call.tx.begin(Gate, event, COVEY)


def journal(call: Call, event: landings.Made) -> Landing:
    """Write a move of main into the landing journal."""
    return call.tx.begin(Landing, event, COVEY)


def pushed(call: Call, landing: Landing, remote: str) -> Landing:
    """Write that a landing has reached a remote."""
    return call.tx.advance(landing, landings.Pushed(remote), COVEY)
