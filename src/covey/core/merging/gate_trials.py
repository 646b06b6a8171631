"""What a gate that was tried on main shows: whether it works, and what a person has to do if not."""

from __future__ import annotations

from enum import StrEnum

from covey.core.figures import took
from covey.core.merging import failures
from covey.core.merging.gates import Gate, GateState
from covey.core.merging.test_counts import NO_TEST, ONLY_LOOKED
from covey.values import dataclass


class TrialVerdict(StrEnum):
    """What came of a try."""

    WORKS = "works"
    EMPTY = "empty"
    """It passed, and no test was run."""
    FAILS = "fails"
    """It ran, and main does not pass."""
    BROKEN = "broken"
    """It could not do its work: something that it needs is not there."""
    LOST = "lost"
    """It was ended before there was a result."""


@dataclass(frozen=True)
class Trial:
    """A try as it is told: in one sentence, with the line that says why, and what to do."""

    verdict: TrialVerdict
    told: str
    error: str = ""
    advice: str = ""


AGAIN = "covey init --check tries it again"
_WITHOUT_TEST = {
    NO_TEST: ", so it would let anything land",
    ONLY_LOOKED: ": it only looks at the code, so what does not work would land",
}
_UNCOUNTED = "It does not say how many tests it ran."
_EMPTY = "Name the command that runs your tests as merge.check in covey.toml"
_FAILS = "Mend what fails on main, or name another check in covey.toml"
_LATE = "Name a faster check, or give it more time with check_minutes, under [merge] in covey.toml"
_BROKEN = (
    "A gate has a clean checkout of main and the tools of the shell in which covey was started: what git ignores is "
    "not there. Start covey where your tests run (covey down && covey up there), install what is missing, or let the "
    "check itself install it "
    "(network = true under [merge], if that has to be fetched)"
)


def never_passed(gate: Gate) -> str:
    """Return what is told of a gate that no commit has ever passed, by how it failed on main alone."""
    trial = judge(gate)
    why = "The gate fails" if trial is None else trial.told.rstrip(".")
    return f"{why}. It has never passed, so no commit is to blame ({gate.id})."


def distance(verdict: TrialVerdict, error: str) -> int:
    """Return how far a gate that was tried is from one that holds: tests that fail are nearer than none that ran."""
    if verdict is TrialVerdict.BROKEN:
        return 4 if failures.lacks_program(error) else 3
    nearest = (TrialVerdict.WORKS, TrialVerdict.FAILS, TrialVerdict.EMPTY)
    return nearest.index(verdict) if verdict in nearest else 5


def judge(gate: Gate) -> Trial | None:
    """Return what a gate on main alone shows; None while it runs."""
    if gate.state is GateState.RUNNING:
        return None
    if gate.state is GateState.LOST:
        return Trial(TrialVerdict.LOST, f"The try was ended before it had a result: {gate.why}.", advice=f"{AGAIN}.")
    time = took(gate.seconds or 0.0)
    if gate.state is GateState.PASSED and gate.summary in _WITHOUT_TEST:
        told = f"The gate passed on main in {time} and ran no test{_WITHOUT_TEST[gate.summary]}."
        return Trial(TrialVerdict.EMPTY, told, advice=f"{_EMPTY}; {AGAIN}.")
    if gate.state is GateState.PASSED:
        tests = f", {gate.summary.rstrip('.')}." if gate.summary else f". {_UNCOUNTED}"
        return Trial(TrialVerdict.WORKS, f"The gate works: main passed it in {time}{tests}")
    return _failed(gate, time)


def _failed(gate: Gate, time: str) -> Trial:
    error = failures.error_line(gate.summary)
    more = "".join(f" {hint}" for hint in failures.hints_in(gate.summary))
    if gate.code is None or gate.code < 0:  # it was ended, or never began: what it printed does not say why
        why = (failures.told(gate.summary).first or (error,))[0]
        advice = f"{_LATE}; {AGAIN}.{more}" if gate.seconds else f"{AGAIN}."
        return Trial(TrialVerdict.BROKEN, f"The gate does not work here: {why}", why, advice)
    if failures.NO_NETWORK in more and failures.wants_network(error):
        return Trial(TrialVerdict.BROKEN, f"The gate does not work here: {error}", error, f"{more.strip()} {AGAIN}.")
    if failures.is_missing(error):
        return Trial(TrialVerdict.BROKEN, f"The gate does not work here: {error}", error, f"{_BROKEN}; {AGAIN}.{more}")
    told = f"The gate fails on main as it is, after {time}: {error}"
    return Trial(TrialVerdict.FAILS, told, error, f"{_FAILS}; {AGAIN}.{more}")
