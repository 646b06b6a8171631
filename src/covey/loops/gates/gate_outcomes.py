"""Gate outcomes: what a gate is asked to test, what is known while it runs, how it ended, and what is written then."""

from __future__ import annotations

import asyncio
import shutil
import stat
from collections.abc import Collection, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from covey import files
from covey.app.context import Call
from covey.app.merging import queue_records
from covey.config import Config
from covey.core.figures import span
from covey.core.fleet.launches import Observation
from covey.core.fleet.next_step import MAX_OUTPUT_BYTES
from covey.core.merging import checks, failures, gates
from covey.core.merging.checks import Check
from covey.core.merging.gates import Gate
from covey.errors import Unavailable
from covey.git.guard.guard import Settings
from covey.loops.gates import gate_rooms
from covey.loops.gates.warm_folders import Lent
from covey.runners import sandbox
from covey.runners.sandbox import Room
from covey.values import dataclass

CHECKOUT = "checkout"
"""The step of a gate before all checks."""
CANNOT_RUN_CODES = (126, 127)
"""Exit codes by which a shell says that there is no such program, or that it may not be run."""
ROOM_FAILED_CODES = (1, 97)
"""Exit codes by which the programs that make a room say that they could not."""
MAX_SUMMARY_CHARS = 12_000
"""Characters of a summary."""
READ_ONLY = ("Read-only file system", "EROFS", "[Errno 30]", "os error 30")
FULL = ("No space left on device", "ENOSPC", "Disk quota exceeded")
"""What programs say then."""
FULL_DISK_BYTES, EMPTY_DISK_BYTES = 64 * 1024**2, 64 * 1024
"""Bytes that are left at most on a disk of which we believe that, and on one that is full whatever is said."""
STARTING = "start"
"""The step of a gate that could not be started, although one could on main."""
KILLED_CODES = (-9, 128 + 9)
"""How a check ends that was killed, as the kernel does when memory runs out: that says nothing of what was tested."""
NOT_WANTED = "It was ended, since nobody wanted it any more."
OUTPUT_LIMIT = f"{MAX_OUTPUT_BYTES // 1024**2} MiB"


@dataclass(frozen=True)
class Order:
    """A test to be made: of this commit, by these checks, within so many seconds, in this place of the pool."""

    gate: str
    commit: str
    slot: int
    checks: tuple[Check, ...]
    limit: float
    config: Config | None = None
    """The settings that hold for it, if not those of the project."""
    pauses: bool = True
    """It stands still while the fleet does."""


@dataclass(frozen=True)
class Outcome:
    """How a gate ended."""

    passed: bool | None
    """None if that is not known: it was lost, nobody wanted it any more, or it strayed."""
    why: str = ""
    """What went wrong, in one sentence."""
    late: bool = False
    """It took too long and was ended."""
    flooded: bool = False
    """It printed too much and was ended."""
    cannot_run: bool = False
    """The shell could not run it: the settings are wrong, unless the change took away what they name."""
    code: int | None = None
    step: str = ""
    """The check that failed."""
    seconds: float = 0.0
    cpu: float | None = None
    failures: tuple[str, ...] = ()
    fingerprint: str = ""
    summary: str = ""
    """What its author needs to mend it: what went wrong, the lines that say why, the end of the output."""
    strayed: tuple[str, ...] = ()
    """What was changed outside of its worktree while it ran: what it passed must not land."""
    tests: int | None = None
    """How many tests its checks say that they ran; None if none of them says."""


@dataclass
class GateUnderWay:
    """A gate under way."""

    order: Order
    config: Config
    run: str = ""
    """The step under way, as the runner knows it."""
    unwanted: bool = False
    path: Path = Path()
    room: Room | None = None
    """Where it is held, if it is."""
    folder: Path = Path()
    temporary: str = ""
    seconds: float = 0.0
    cpu: float | None = None
    ended: list[tuple[str, Check]] = field(default_factory=list)
    layered: bool = False
    """What it writes lies in layers over its worktree and the caches."""
    lent: Lent | None = None
    files: Sequence[bytes] = ()
    """What is tested, where that cannot be told afterwards."""
    said: Settings | None = None
    """What the user's files of git say."""
    keeps: bool = False
    """What it left in the caches is worth to be kept."""
    before: dict[str, object] | None = None
    work: asyncio.Future[Any] | None = None
    """What is done for it at the moment, or was last."""


def failed_at(step: str, why: str) -> Outcome:
    """Return how a gate ended at a step of which no output says what went wrong."""
    found = failures.summary(why.encode(errors="replace"))
    return Outcome(passed=False, why=why, step=step, fingerprint=failures.mark(step, False, found), summary=why)


def check_room(test: GateUnderWay, seen: Observation, found: failures.Summary) -> None:
    """Raise if it was not the check that failed, but the room that could not be made for it."""
    begins = (f"{sandbox.PROGRAM}: ", "layers: ")
    if test.room is None or seen.code not in ROOM_FAILED_CODES or not found.tail.startswith(begins):
        return
    refusal = sandbox.refusal(test.room, "/")  # a check can print that too, and then it is its own failure
    if refusal is not None:
        raise Unavailable(
            f"The room of the gate could not be made: {refusal[:300]}",
            hint='isolate = "off" in [merge] runs gates without one.',
        )


def why_it_failed(test: GateUnderWay, check: Check, seen: Observation, *, late: bool, flooded: bool) -> str:
    """Return in one sentence what went wrong."""
    if test.unwanted:
        return NOT_WANTED
    if flooded:
        return checks.flooded(check, OUTPUT_LIMIT)
    if late:
        return checks.late(check, span(test.order.limit))
    what = checks.title(check)
    if seen.failure is not None:
        return f"{what} could not be started: {seen.failure}"
    if seen.code is None:
        return f"{what} was ended by somebody else: {check.run}"
    number = -seen.code if seen.code < 0 else seen.code - 128 if test.room is not None else 0
    how = f"signal {number}" if 0 < number < 65 and seen.code not in CANNOT_RUN_CODES else f"exit code {seen.code}"
    return f"{what} failed ({how}): {check.run}"


def hints_for(test: GateUnderWay, found: failures.Summary) -> list[str]:
    """Return what else may explain a failure."""
    said = "\n".join((*found.errors, found.tail))
    told = []
    if test.room is not None:
        told += [failures.NO_NETWORK] if not test.room.network and failures.wants_network(said) else []
        told += [failures.WROTE_OUTSIDE] if any(word in said for word in READ_ONLY) else []
        hidden = [path for path in failures.missed_paths(said) if gate_rooms.is_hidden(test.room, path)]
        told += [failures.not_shown(hidden[:3])] if hidden else []
    missed = failures.missed_variables(said, gate_rooms.held_back(test.config))
    told += [failures.not_given(missed[:3])] if missed else []
    told += _own_packages(test.path, said)[:1]
    if test.room is None and _is_gone(test.path):
        told.append("It deleted its own worktree, which is made anew for the next gate.")
    return told


def _own_packages(tree: Path, said: str) -> list[str]:
    """Return the hints on packages that were not found, and that lie in the tree under test."""
    return [
        failures.own_package(name, folder)
        for name in failures.missed_modules(said)
        for folder in ("src", "")
        if _is_file(tree / folder / name / "__init__.py") or _is_file(tree / folder / f"{name}.py")
    ]


def _is_file(path: Path) -> bool:
    """Say whether a file is there that we may look at, whatever a check made of its folder."""
    seen = files.status(path, follow=True)
    return seen is not None and stat.S_ISREG(seen.st_mode)


def _is_gone(folder: Path) -> bool:
    """Say whether nothing is left of a folder; one that we may not look into is there."""
    try:
        return not any(folder.iterdir())
    except OSError as error:
        return not isinstance(error, PermissionError)


def is_disk_full(test: GateUnderWay, found: failures.Summary) -> bool:
    """Say whether a check failed for a full disk: it says so, or could not even, and so it is where a gate writes."""
    said = "\n".join((*found.errors, found.tail))
    where = (test.path.parent, Path(test.temporary).parent, test.folder)
    places = [place for place in where if place.is_dir()]
    left = min((shutil.disk_usage(place).free for place in places), default=FULL_DISK_BYTES)
    return left < (FULL_DISK_BYTES if any(word in said for word in FULL) else EMPTY_DISK_BYTES)


def strayed_words(astray: tuple[str, ...]) -> str:
    """Return what is told of a gate during which something outside was changed."""
    return (
        f"While it ran, something outside of its worktree was changed: {', '.join(astray)}. What such a gate passes "
        "does not land, since it may have changed more. If nobody else did that, mend the check; with bubblewrap "
        "installed, a gate cannot write there."
    )


def shortened(text: str) -> str:
    if len(text) <= MAX_SUMMARY_CHARS:
        return text
    half = MAX_SUMMARY_CHARS // 2 - 10
    return f"{text[:half]}\n[...]\n{text[-half:]}"


# What is written


def unstarted(why: str) -> gates.Ended:
    """Return what is written of a gate that could not be started, if that is the fault of what it was to test."""
    return gates.Ended(passed=False, step=STARTING, summary=why, fingerprint=STARTING)


def write_end(call: Call, gate: Gate, event: gates.Ended | gates.Lost) -> None:
    """Write how a gate ended, and which tests flaked if the same tree had failed before."""
    if queue_records.end_gate(call, gate.id, event) is None or isinstance(event, gates.Lost) or not event.passed:
        return
    failed = call.tx.failed_gates(gate.commit, gate.checks)
    tests = tuple(dict.fromkeys(test for each in failed for test in each.failures))
    if tests:
        queue_records.note_flakes(call, gate, tests)


def result_of(outcome: Outcome) -> gates.Ended:
    """Return what is written of a gate whose result is known."""
    return gates.Ended(
        passed=bool(outcome.passed),
        code=outcome.code,
        step=outcome.step,
        seconds=round(outcome.seconds, 3),
        cpu=None if outcome.cpu is None else round(outcome.cpu, 3),
        failures=outcome.failures,
        fingerprint=outcome.fingerprint,
        summary=outcome.summary,
    )


def was_killed(outcome: Outcome) -> bool:
    """Say whether somebody else killed the check: not we, since it took too long or printed too much."""
    return outcome.code in KILLED_CODES and not (outcome.late or outcome.flooded)


def order_for(gate: Gate, config: Config, changed: Collection[str] | None = None) -> Order:
    """Return what a gate is asked to test: by the checks for these changed paths, or by every check."""
    wanted = checks.checks_for(config.merge, changed)
    return Order(gate.id, gate.commit, gate.slot, wanted, config.merge.check_minutes * 60)
