"""The watchdog's judgement of a run: one verdict with its evidence, from all that can be seen of it together.

Nothing is ended for silence alone: a run is stalled when it says nothing, no request of it is under way, no tool of it
runs and nothing of it uses the processor, all of that for minutes; or when a model does not answer, it was put off for
too long, or it does the same again and again. Without a word of the watchdog a session is also stalled when its run
cannot be started (`app/fleet/runs`), a step of its loop keeps failing (`loops/fleet/fleet_loop`), or its run ended
since its key or credit was refused (`core/fleet/run_end`).
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from covey.core.figures import age
from covey.core.fleet.launches import Activity
from covey.core.fleet.run_state import RunState
from covey.core.fleet.sessions import SessionState
from covey.core.fleet.start_limits import believed
from covey.values import dataclass

MAX_EVIDENCE_CHARS = 500
"""Characters of one piece of evidence."""
END_WITHIN_S = 60.0
"""Seconds in which a program that has said its last word has to end."""
FULL_CONTEXT_SHARE = 0.92
"""How full a context is when it should be made shorter."""


class Remedy(StrEnum):
    """What the watchdog does about a verdict."""

    NONE = "none"
    NUDGE = "nudge"
    """Tell it what it does not see."""
    COMPACT = "compact"
    """Let it make its conversation shorter."""
    RESTART = "restart"
    """End the run and take its conversation up again in another; no fault of the task."""
    END = "end"
    """End the run: a try that failed."""
    FINISH = "finish"
    """End the run, which has said its last word and does not end: what it brought is judged."""


@dataclass(frozen=True)
class Clue:
    """One piece of evidence: where it comes from, what it says, and how many seconds old it is."""

    source: str
    text: str
    age: float


@dataclass(frozen=True)
class Verdict:
    """What the watchdog thinks of a run."""

    state: SessionState
    rule: str
    """The rule that decided, in a few words."""
    clues: tuple[Clue, ...] = ()
    action: Remedy = Remedy.NONE
    until: float | None = None
    excused: bool = False
    """It is silent, and what it waits for explains that."""

    @property
    def evidence(self) -> str:
        """Return the evidence as one line."""
        return "; ".join(f"{clue.text} ({age(clue.age)})" for clue in self.clues) or self.rule

    @property
    def grounds(self) -> str:
        """Return the evidence as one line that stays true: without how old it is now."""
        return "; ".join(clue.text for clue in self.clues) or self.rule


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How many seconds the watchdog waits, and how many repetitions are too many: the settings of [watch]."""

    stalled: float
    request: float
    repeats: int


@dataclass(kw_only=True)
class Signs:
    """All that can be seen of a run, and is remembered of earlier looks; every time is one of the same clock."""

    started: float
    at: float = 0.0
    """When all of it was seen together."""
    wall: float = 0.0
    """The same moment in seconds since 1970."""
    speaks: bool = False
    """Its stream is structured: what it does not say, it does not do."""
    heard: RunState = field(default_factory=RunState)
    printed: float | None = None
    """When its output last grew."""
    activity: Activity | None = None
    worked: float | None = None
    """When its processes last used the processor."""
    asks: str | None = None
    asked: float = 0.0
    limited_at: float = 0.0
    held: bool = False
    kept: float | None = None
    """When something last kept it from going on: it was told to stand still, or a person had not answered."""
    excused: float | None = None
    """When its silence was last explained: by what ran for it, or by a request under way."""
    nudged: int = 0
    """At how many repetitions it was nudged last."""
    told: bool = False
    """It has heard that: some do not listen while they work."""
    squeezed: bool = False
    """It was told to make its conversation shorter, and that is not over."""


def judge(signs: Signs, patience: Patience) -> Verdict:
    """Return the verdict on a run that is alive."""
    for rule in (_held, _asks, _limited, _compacts, _repeats, _stalled, _full):
        verdict = rule(signs, patience)
        if verdict is not None:
            return verdict
    return Verdict(SessionState.WORKING, "it works", (_latest(signs),))


def in_hands(signs: Signs, person: str) -> Verdict:
    """Return the verdict on a run that a person has taken over: nobody judges that but they."""
    clue = _clue(signs, "process", f"{person} has it in a terminal", signs.started)
    return Verdict(SessionState.WORKING, "a person has taken it over", (clue,))


def _held(signs: Signs, patience: Patience) -> Verdict | None:
    if not signs.held:
        return None
    return Verdict(SessionState.PAUSED, "it was told to stand still", (_clue(signs, "process", "held", None),))


def _asks(signs: Signs, patience: Patience) -> Verdict | None:
    if signs.asks is None:
        return None
    clue = _clue(signs, "stream", signs.asks, signs.asked)
    return Verdict(SessionState.NEEDS_YOU, "it waits for a person's word", (clue,))


def _limited(signs: Signs, patience: Patience) -> Verdict | None:
    said, put_off = signs.heard.limited, signs.heard.put_off
    if said is None:
        return None
    clue = _clue(signs, "stream", said.what, signs.limited_at)
    until = believed(said.until, signs.wall)
    waited = None if put_off is None else signs.at - max(put_off, signs.kept or put_off)
    if until is None and waited is not None and waited > patience.request:
        since = _clue(signs, "stream", "it was put off first, and again and again since", put_off)
        rule = "its provider has put it off for too long"
        return Verdict(SessionState.STALLED, rule, (clue, since), Remedy.RESTART)
    return Verdict(SessionState.LIMITED, "its provider put it off, and it tries again by itself", (clue,), until=until)


def _compacts(signs: Signs, patience: Patience) -> Verdict | None:
    if signs.heard.compacts is None or _quiet(signs) > patience.request:
        return None
    clue = _clue(signs, "stream", "it makes its conversation shorter", signs.heard.compacts)
    return Verdict(SessionState.COMPACTING, "its context was full", (clue,))


def _repeats(signs: Signs, patience: Patience) -> Verdict | None:
    heard = signs.heard
    if heard.repeats < patience.repeats:
        return None
    repeated = " ".join(heard.last_call or ())[:200]
    clue = _clue(signs, "stream", f"{heard.repeats} times in a row the same: {repeated}", heard.at)
    if signs.nudged > 0 and heard.repeats >= signs.nudged + patience.repeats:
        rule = f"it does the same again and again{', and was told so' if signs.told else ''}"
        return Verdict(SessionState.STALLED, rule, (clue,), Remedy.END)
    if signs.nudged >= patience.repeats:
        return None
    return Verdict(SessionState.WORKING, "it repeats itself", (clue,), Remedy.NUDGE)


def _stalled(signs: Signs, patience: Patience) -> Verdict | None:
    quiet, heard = _quiet(signs), signs.heard
    if heard.is_over and signs.speaks and quiet >= min(patience.stalled, END_WITHIN_S):
        clue = _clue(signs, "stream", "it has said its last word, and does not end", heard.at)
        return Verdict(SessionState.WORKING, "it is over", (clue,), Remedy.FINISH)
    if heard.is_over or quiet < patience.stalled:
        return None
    running = _tool_runs(signs)
    if running is not None:
        return running
    clues = (_latest(signs), _clue(signs, "process", "no processor time was used", signs.worked))
    connected = signs.activity is not None and signs.activity.connections > 0
    if heard.waits is not None or (not signs.speaks and connected):
        return _request(signs, clues, is_late=quiet >= patience.request)
    if signs.excused is not None and signs.at - signs.excused < patience.stalled:
        ended = _clue(signs, "process", "what it waited for has ended", signs.excused)
        return Verdict(SessionState.WORKING, "silent, and may go on now", (ended, *clues))
    none = _clue(signs, "stream", "no request is under way and no tool runs", None)
    rule = "no word, no request, no tool, no processor time"
    return Verdict(SessionState.STALLED, rule, (*clues, none), Remedy.END)


def _tool_runs(signs: Signs) -> Verdict | None:
    """Excuse a silent run that has a tool, or another process, at work."""
    call = min(signs.heard.calls.values(), key=lambda call: call.since, default=None)
    processes = 1 if signs.activity is None else signs.activity.processes
    if processes <= 1 or (call is None and signs.speaks):
        return None
    what = f"its tool runs: {call.tool} {call.about[:200]}" if call else f"{processes} processes of it live"
    return Verdict(
        SessionState.WORKING,
        "silent, and something of it runs",
        (_clue(signs, "process", what, call.since if call else None), _latest(signs)),
        excused=True,
    )


def _request(signs: Signs, clues: tuple[Clue, ...], *, is_late: bool) -> Verdict:
    """Excuse the silence of a run that waits for its model, as long as that is not too late."""
    if not is_late:
        asked = _clue(signs, "stream", "it waits for its model", signs.heard.waits)
        rule = "silent, with a request under way"
        return Verdict(SessionState.WORKING, rule, (asked, *clues), excused=True)
    asked = _clue(signs, "stream", "its model does not answer", signs.heard.waits)
    return Verdict(SessionState.STALLED, "a request has had no answer for too long", (asked, *clues), Remedy.RESTART)


def _full(signs: Signs, patience: Patience) -> Verdict | None:
    context = signs.heard.context
    if context is None or context < FULL_CONTEXT_SHARE or signs.squeezed:
        return None
    clue = _clue(signs, "stream", f"its context is {context:.0%} full", signs.heard.at)
    return Verdict(SessionState.WORKING, "its context is nearly full", (clue,), Remedy.COMPACT)


def _quiet(signs: Signs) -> float:
    """Return for how many seconds there has been no sign of life of any kind, though nothing kept it from going on."""
    known = (signs.heard.at, signs.printed, signs.worked, signs.heard.waits, signs.kept)
    seen = [each for each in known if each is not None]
    return max(signs.at - max([signs.started, *seen]), 0.0)


def _latest(signs: Signs) -> Clue:
    if signs.heard.at is not None:
        return _clue(signs, "stream", "it last said something", signs.heard.at)
    if signs.printed is not None:
        return _clue(signs, "output", "it last printed something", signs.printed)
    return _clue(signs, "process", "it was started", signs.started)


def _clue(signs: Signs, source: str, text: str, since: float | None) -> Clue:
    return Clue(
        source,
        " ".join(text.split())[:MAX_EVIDENCE_CHARS],
        max(signs.at - (signs.started if since is None else since), 0.0),
    )
