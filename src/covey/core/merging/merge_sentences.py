"""Sentences: why an open merge is where it is, as far as the queue at this moment tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from covey.core.figures import some, span
from covey.core.merging import gates
from covey.core.merging.gates import Gate
from covey.core.merging.landings import Landing
from covey.core.merging.merges import Merge
from covey.core.merging.queue_view import (
    MAX_IN_A_SENTENCE,
    QueueView,
    before,
    has_not_landed,
    needs_person,
    waits_with_all,
)

_ENDED = {
    gates.GateState.PASSED: "has passed",
    gates.GateState.FAILED: "has failed",
    gates.GateState.LOST: "was ended before it had a result",
}


def stands(state: str, *, whose: str = "a") -> str:
    """Return what is said of a merge in some state: that it waits for `whose` review, is queued, has passed."""
    said = {"review": f"waits for {whose} review", "testing": "is being tested", "passed": "has passed"}
    return said.get(state, f"is {state}")


def queued(view: QueueView, merge: Merge) -> list[str]:
    """Return why a merge that waits to be tested is where it is."""
    said: list[str] = []
    if needs_person(view, merge):
        said.append("It lands only when you approve it: merge.check is not set, so nobody tests it.")
    if merge.reason and not waits_with_all(view, merge):
        said.append(f"It waits: {sentence(merge.reason)}")
    said += whole_queue(view)
    needs = [name for name in merge.needs if has_not_landed(view, name)]
    if needs:
        have = "has" if len(needs) == 1 else "have"
        said.append(f"It needs {listed(_named(view, each) for each in needs)}, which {have} not landed.")
    for name in before(view, merge):
        other = view.open[name]
        shared = sorted(set(merge.paths) & set(other.paths))
        where = f" in {listed(shared)}" if shared else ""
        said.append(
            f"Git cannot merge it with {_named(view, name)}{where}, which is before it in the queue; "
            "it waits until that one has landed or left."
        )
    place = view.place(merge)
    if not said and place is not None:
        said.append(f"It is number {place} of {len(view.places)} in the queue; {_busy(view)}.")
    return said


def _busy(view: QueueView) -> str:
    if not view.running:
        return "no gate runs at this moment"
    names = ", ".join(gate.id for gate in view.running)
    return f"{names} {'runs' if len(view.running) == 1 else 'run'}, without it"


def tested(view: QueueView, merge: Merge, seen: Sequence[Gate], now: float) -> list[str]:
    """Return why a merge that is in a gate is where it is."""
    gate = view.gate_of(merge)
    if gate is None:
        last = next((each for each in seen if each.id == merge.run), None)
        before = "" if last is None else f"; {last.id}, the last one, {_ENDED.get(last.state, last.state)}"
        return [f"No gate tests it at this moment{before}.", *whole_queue(view)]
    others = [name for name in gate.merges if name != merge.id]
    company = f" together with {listed(others)}" if others else " alone"
    return [f"It is tested{company} in {gate.id} ({gate.purpose}) for {span(now - gate.started)}."]


def passed(view: QueueView, merge: Merge, seen: Sequence[Gate]) -> list[str]:
    """Return why a merge that has passed is where it is."""
    passed = last_passed(seen)
    how = "was let pass without a test" if merge.untested else f"passed {passed.id if passed else 'the gate'} as it is"
    frozen = whole_queue(view) if view.standing.frozen else []
    if merge.reason:
        return [f"It {how}, and waits for main: {sentence(merge.reason)}", *frozen]
    return [f"It {how}, and main takes it {'when it is thawed' if frozen else 'next'}.", *frozen]


def how_it_landed(merge: Merge, landing: Landing, main: str) -> list[str]:
    """Return how a merge came to a branch, `main` or another."""
    if merge.landed is not None and merge.landed == merge.onto:
        return [f"What was handed in was in {landing.branch} before: it brought nothing of its own."]
    group = [name for name in landing.merges if name != merge.id]
    company = f" together with {listed(group)}" if group else ""
    tested = "untested" if landing.untested or landing.gate is None else f"after {landing.gate} had passed"
    on = "" if landing.branch == main else f" on {landing.branch}"
    said = [f"It landed{on} in {(merge.landed or landing.commit)[:12]} ({landing.id}){company}, {tested}."]
    return [*said, f"It was pushed to {landing.remote}."] if landing.remote else said


def last_passed(seen: Sequence[Gate]) -> Gate | None:
    """Return the newest gate that passed."""
    return next((gate for gate in seen if gate.state is gates.GateState.PASSED), None)


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it has one."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def whole_queue(view: QueueView) -> list[str]:
    """Return what keeps the whole queue from testing or from moving main, in sentences."""
    standing, said = view.standing, []
    if standing.halted:
        said.append(f"The queue has halted: {sentence(standing.halted)}")
    if standing.paused:
        said.append(sentence(f"The queue is paused by {standing.paused_by}{_because(standing.paused_why)}"))
    if view.broken:
        said.append(f"{sentence(view.broken.why)} Nothing lands until that is mended.")
    if view.stuck:
        said.append(view.stuck.message)
    if view.fleet_paused:
        said.append("The whole fleet is paused.")
    if standing.frozen:
        said.append(sentence(f"Main is frozen by {standing.frozen_by}{_because(standing.frozen_why)}"))
    return said


def _because(why: str | None) -> str:
    return f": {why}" if why else ""


def failed_tests(gate: Gate) -> str:
    """Return what failed in a gate, in brackets."""
    if gate.failures:
        return f" ({listed(gate.failures)})"
    return f" ({gate.step})" if gate.step else ""


def listed(names: Iterable[str]) -> str:
    """Return some names, and how many there are more."""
    return some(list(names), MAX_IN_A_SENTENCE)


def _named(view: QueueView, merge: str) -> str:
    known = view.open.get(merge) or view.named.get(merge)
    return merge if known is None else f"{merge} ({known.task})"
