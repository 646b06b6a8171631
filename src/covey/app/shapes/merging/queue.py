"""What is asked and answered about the queue as a whole."""

from __future__ import annotations

from msgspec import Struct

from covey.app.shapes.merging.gates import GateRow, LandingRow
from covey.app.shapes.merging.merges import MergeLine


class QueueRow(Struct, frozen=True, kw_only=True):
    """How the queue stands: what keeps it from testing (paused, halted) or from moving main (frozen), and why."""

    strategy: str
    slots: int
    branch: str
    base: str | None
    proven: bool
    paused: bool
    frozen: bool
    halted: str | None
    gates: tuple[str, ...]
    paused_why: str | None
    paused_by: str | None
    paused_since: float | None
    frozen_why: str | None
    frozen_by: str | None
    frozen_since: float | None


class QueueFull(QueueRow, frozen=True, kw_only=True):
    """The train at a glance: the gates that run, what wants to land in its order, and what came of the last ones.

    `rejected` of the last `ended` merges failed. `gate_seconds` is what a gate takes, if one has ended. `troubles` are
    what else keeps work from landing or from reaching the remote, `limits` from what a gate is not kept here, in
    sentences.
    """

    checked: bool
    troubles: list[str]
    limits: list[str]
    fleet_paused: bool
    running: list[GateRow]
    merges: list[MergeLine]
    landed_hour: int
    ended: int
    rejected: int
    gate_seconds: float | None
    last: LandingRow | None
