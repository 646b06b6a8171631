"""The life of a session."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core import sessions
from covey.core.events import NAMES
from covey.core.sessions import AWAKE, Goal, Kind, Session, State
from covey.errors import CoveyError, Invalid, Refused
from covey.store.rows import decode_payload, encode_payload


def test_a_run_holds_one_task_unless_told_otherwise_and_an_outsider_any_number() -> None:
    assert sessions.register(None, Kind.RUN, None, None).wip == 1
    assert sessions.register(None, Kind.RUN, None, 3).wip == 3
    assert sessions.register(None, Kind.OUTSIDE, None, None).wip is None


def test_a_name_in_use_stays_with_its_session() -> None:
    with pytest.raises(Refused, match="There is a session ada already"):
        sessions.register(Session(name="ada"), Kind.OUTSIDE, None, None)


def test_the_name_of_a_removed_session_is_free_and_its_next_bearer_begins_anew() -> None:
    gone = Session(name="ada", role="quality", state=State.DEAD, evidence="killed", created=1.0, removed=True)
    event = sessions.register(gone, Kind.OUTSIDE, None, None)
    assert sessions.first("ada", 7, event, 9.0) == Session(name="ada", ordinal=7, created=9.0, updated=9.0)


@pytest.mark.parametrize("wip", [0, -1])
def test_a_limit_below_one_makes_no_sense(wip: int) -> None:
    with pytest.raises(Invalid, match="at least 1"):
        sessions.register(None, Kind.OUTSIDE, None, wip)


@pytest.mark.parametrize(("wip", "holding"), [(1, 0), (3, 2), (None, 1000)])
def test_a_session_below_its_limit_may_take_another_task(wip: int | None, holding: int) -> None:
    sessions.may_take(Session(name="ada", wip=wip), holding)


@pytest.mark.parametrize(("wip", "holding", "said"), [(1, 1, "holds one task"), (3, 3, "3 tasks"), (1, 2, "2 tasks")])
def test_a_session_at_its_limit_may_take_no_more(wip: int, holding: int, said: str) -> None:
    with pytest.raises(Refused, match=said):
        sessions.may_take(Session(name="ada", wip=wip), holding)


@pytest.mark.parametrize("state", State)
def test_the_same_state_twice_is_one_event(state: State) -> None:
    assert sessions.change(Session(name="ada", state=state), state, "again") is None


@pytest.mark.parametrize("start", [State.STARTING, *AWAKE, State.PAUSED])
def test_whoever_lives_can_die(start: State) -> None:
    assert sessions.change(Session(name="ada", state=start), State.DEAD, "exit 1") == sessions.Changed(
        State.DEAD, "exit 1"
    )


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (State.STARTING, State.WORKING),
        (State.WORKING, State.IDLE),
        (State.WORKING, State.NEEDS_YOU),
        (State.NEEDS_YOU, State.WORKING),
        (State.WORKING, State.LIMITED),
        (State.WORKING, State.COMPACTING),
        (State.COMPACTING, State.WORKING),
        (State.WORKING, State.STALLED),
        (State.STALLED, State.WORKING),
        (State.WORKING, State.PAUSED),
        (State.PAUSED, State.STARTING),
        (State.STALLED, State.STARTING),
        (State.DEAD, State.STARTING),
        (State.DEAD, State.IDLE),
        # What is seen of a run is shown whatever was shown before: it may have been taken up by a new daemon.
        (State.PAUSED, State.STALLED),
        (State.PAUSED, State.NEEDS_YOU),
        (State.STARTING, State.COMPACTING),
    ],
)
def test_a_session_goes(start: State, end: State) -> None:
    assert sessions.change(Session(name="ada", state=start), end, "seen") == sessions.Changed(end, "seen")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (State.DEAD, State.WORKING),
        (State.DEAD, State.NEEDS_YOU),
        (State.DEAD, State.PAUSED),
        (State.DEAD, State.LIMITED),
        (State.DEAD, State.COMPACTING),
        (State.WORKING, State.STARTING),
    ],
)
def test_a_session_does_not_go(start: State, end: State) -> None:
    with pytest.raises(Refused, match=f"ada cannot go from {start} to {end}"):
        sessions.change(Session(name="ada", state=start), end, "seen")


def test_a_session_is_removed_once() -> None:
    after = sessions.apply(Session(name="ada"), sessions.remove(Session(name="ada")), 4.0)
    assert (after.removed, after.state, after.updated) == (True, State.DEAD, 4.0)
    with pytest.raises(Refused, match="removed already"):
        sessions.remove(after)


# What covey shall do with a session


GOALS: dict[str, tuple[Callable[[Session], sessions.Event | None], dict[Goal, Goal]]] = {
    "start": (sessions.start, {Goal.STOPPED: Goal.WORKING, Goal.WORKING: Goal.WORKING}),
    "stop": (
        sessions.stop,
        {Goal.STOPPED: Goal.STOPPED, Goal.WORKING: Goal.STOPPED, Goal.PAUSED: Goal.STOPPED, Goal.REMOVED: Goal.REMOVED},
    ),
    "pause": (sessions.pause, {Goal.WORKING: Goal.PAUSED, Goal.PAUSED: Goal.PAUSED}),
    "resume": (sessions.resume, {Goal.WORKING: Goal.WORKING, Goal.PAUSED: Goal.WORKING}),
    "leave": (lambda session: sessions.leave(session, at_work=False, force=False), dict.fromkeys(Goal, Goal.REMOVED)),
}


@pytest.mark.parametrize("goal", Goal)
@pytest.mark.parametrize("verb", GOALS)
def test_a_session_is_told_what_it_shall_do(verb: str, goal: Goal) -> None:
    rule, ends = GOALS[verb]
    session = Session(name="ada", kind=Kind.RUN, goal=goal)
    if goal not in ends:
        with pytest.raises(Refused, match=r"^ada "):
            rule(session)
        return
    event = rule(session)
    assert (event is None) is (ends[goal] is goal), "what is already so is no event"
    assert event is None or sessions.apply(session, event, 3.0).goal is ends[goal]


@pytest.mark.parametrize("verb", ["start", "stop", "pause", "resume"])
@pytest.mark.parametrize("kind", [Kind.OUTSIDE, Kind.PERSON])
def test_who_is_not_run_by_covey_cannot_be_told(verb: str, kind: Kind) -> None:
    with pytest.raises(Refused, match="covey does not run it"):
        GOALS[verb][0](Session(name="ada", kind=kind))


@pytest.mark.parametrize("kind", Kind)
def test_a_session_at_work_leaves_only_by_force(kind: Kind) -> None:
    session = Session(name="ada", kind=kind)
    with pytest.raises(Refused, match="ada is at work") as refused:
        sessions.leave(session, at_work=True, force=False)
    assert "--force" in refused.value.hint
    assert sessions.leave(session, at_work=True, force=True, why="w") == sessions.Leaving("w")


def test_a_session_keeps_its_agent_and_batch() -> None:
    event = sessions.register(None, Kind.RUN, None, None, agent="scripted", batch="night")
    assert sessions.first("ada", 7, event, 9.0) == Session(
        name="ada", ordinal=7, kind=Kind.RUN, wip=1, agent="scripted", batch="night", created=9.0, updated=9.0
    )


class AnyOrder(RuleBasedStateMachine):
    """Whatever is asked of a name, in whatever order, the log tells the whole story of its sessions."""

    def __init__(self) -> None:
        super().__init__()
        self.session: Session | None = None
        self.log: list[tuple[str, str]] = []

    def take(self, event: sessions.Event) -> None:
        self.log.append((NAMES[type(event)], encode_payload(event)))
        self.session = self.after(self.session, event, float(len(self.log)))

    def after(self, session: Session | None, event: sessions.Event, at: float) -> Session:
        if isinstance(event, sessions.Registered):
            return sessions.first("ada", int(at), event, at)
        assert session is not None
        return sessions.apply(session, event, at)

    @rule(kind=st.sampled_from(Kind), role=st.none() | st.just("quality"), wip=st.none() | st.integers(min_value=-1))
    def register(self, kind: Kind, role: str | None, wip: int | None) -> None:
        try:
            event = sessions.register(self.session, kind, role, wip)
        except CoveyError:
            return
        self.take(event)

    @rule(state=st.sampled_from(State), evidence=st.text(max_size=5))
    def change(self, state: State, evidence: str) -> None:
        if self.session is None:
            return
        try:
            event = sessions.change(self.session, state, evidence)
        except CoveyError:
            return
        if event is not None:
            assert self.session.state is not state
            self.take(event)

    @rule(verb=st.sampled_from(sorted(GOALS)))
    def aim(self, verb: str) -> None:
        if self.session is None or self.session.removed:
            return
        try:
            event = GOALS[verb][0](self.session)
        except CoveyError:
            return
        if event is not None:
            self.take(event)

    @rule()
    def rescue(self) -> None:
        if self.session is not None and not self.session.removed:
            self.take(sessions.Rescued("refs/covey/rescue/ada/1", "c0ffee", "it was removed", 3, "T-1"))

    @rule()
    def remove(self) -> None:
        if self.session is not None and not self.session.removed:
            self.take(sessions.remove(self.session))

    @invariant()
    def the_log_tells_the_whole_story(self) -> None:
        session: Session | None = None
        for at, (kind, data) in enumerate(self.log, 1):
            payload = decode_payload(kind, data)
            assert isinstance(payload, sessions.Event)
            session = self.after(session, payload, float(at))
        assert session == self.session

    @invariant()
    def who_is_removed_is_dead(self) -> None:
        assert self.session is None or not self.session.removed or self.session.state is State.DEAD

    @invariant()
    def only_what_covey_runs_shall_work(self) -> None:
        if self.session is not None and self.session.kind is not Kind.RUN:
            assert self.session.goal in (Goal.STOPPED, Goal.REMOVED)

    @invariant()
    def who_is_about_to_go_never_works_again(self) -> None:
        if self.session is not None and self.session.removed:
            assert self.session.goal is Goal.REMOVED


TestAnyOrder = AnyOrder.TestCase
