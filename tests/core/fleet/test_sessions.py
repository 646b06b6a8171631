"""The life of a session."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core.fleet import sessions
from covey.core.fleet.sessions import Goal, Session, SessionKind, SessionState
from covey.core.nouns import NAMES
from covey.errors import CoveyError, Invalid, Refused
from covey.store.engine.rows import decode_payload, encode_payload


def test_a_run_holds_one_task_unless_told_otherwise_and_an_outsider_any_number() -> None:
    assert sessions.register(None, sessions.Registered(kind=SessionKind.RUN)).wip == 1
    assert sessions.register(None, sessions.Registered(kind=SessionKind.RUN, wip=3)).wip == 3
    assert sessions.register(None, sessions.Registered(kind=SessionKind.OUTSIDE)).wip is None


def test_a_name_in_use_stays_with_its_session() -> None:
    with pytest.raises(Refused, match="There is a session ada already"):
        sessions.register(Session(name="ada"), sessions.Registered(kind=SessionKind.OUTSIDE))


def test_the_name_of_a_removed_session_is_free_and_its_next_bearer_begins_anew() -> None:
    gone = Session(name="ada", role="quality", state=SessionState.DEAD, evidence="killed", created=1.0, removed=True)
    event = sessions.register(gone, sessions.Registered(kind=SessionKind.OUTSIDE))
    assert sessions.first("ada", 7, event, 9.0) == Session(name="ada", ordinal=7, created=9.0, updated=9.0)


@pytest.mark.parametrize("wip", [0, -1])
def test_a_limit_below_one_makes_no_sense(wip: int) -> None:
    with pytest.raises(Invalid, match="at least 1"):
        sessions.register(None, sessions.Registered(kind=SessionKind.OUTSIDE, wip=wip))


@pytest.mark.parametrize(("wip", "holding"), [(1, 0), (3, 2), (None, 1000)])
def test_a_session_below_its_limit_may_take_another_task(wip: int | None, holding: int) -> None:
    sessions.may_take(Session(name="ada", wip=wip), holding)


@pytest.mark.parametrize(("wip", "holding", "said"), [(1, 1, "holds one task"), (3, 3, "3 tasks"), (1, 2, "2 tasks")])
def test_a_session_at_its_limit_may_take_no_more(wip: int, holding: int, said: str) -> None:
    with pytest.raises(Refused, match=said):
        sessions.may_take(Session(name="ada", wip=wip), holding)


@pytest.mark.parametrize("state", SessionState)
def test_the_same_state_twice_is_one_event(state: SessionState) -> None:
    assert sessions.change(Session(name="ada", state=state), state, "again") is None


@pytest.mark.parametrize("start", [state for state in SessionState if state is not SessionState.DEAD])
def test_whoever_lives_can_die(start: SessionState) -> None:
    assert sessions.change(Session(name="ada", state=start), SessionState.DEAD, "exit 1") == sessions.Changed(
        SessionState.DEAD, "exit 1"
    )


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (SessionState.STARTING, SessionState.WORKING),
        (SessionState.WORKING, SessionState.IDLE),
        (SessionState.WORKING, SessionState.NEEDS_YOU),
        (SessionState.NEEDS_YOU, SessionState.WORKING),
        (SessionState.WORKING, SessionState.LIMITED),
        (SessionState.WORKING, SessionState.COMPACTING),
        (SessionState.COMPACTING, SessionState.WORKING),
        (SessionState.WORKING, SessionState.STALLED),
        (SessionState.STALLED, SessionState.WORKING),
        (SessionState.WORKING, SessionState.PAUSED),
        (SessionState.PAUSED, SessionState.STARTING),
        (SessionState.STALLED, SessionState.STARTING),
        (SessionState.DEAD, SessionState.STARTING),
        (SessionState.DEAD, SessionState.IDLE),
        # What is seen of a run is shown whatever was shown before: it may have been taken up by a new daemon.
        (SessionState.PAUSED, SessionState.STALLED),
        (SessionState.PAUSED, SessionState.NEEDS_YOU),
        (SessionState.STARTING, SessionState.COMPACTING),
    ],
)
def test_a_session_goes(start: SessionState, end: SessionState) -> None:
    assert sessions.change(Session(name="ada", state=start), end, "seen") == sessions.Changed(end, "seen")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (SessionState.DEAD, SessionState.WORKING),
        (SessionState.DEAD, SessionState.NEEDS_YOU),
        (SessionState.DEAD, SessionState.PAUSED),
        (SessionState.DEAD, SessionState.LIMITED),
        (SessionState.DEAD, SessionState.COMPACTING),
        (SessionState.WORKING, SessionState.STARTING),
    ],
)
def test_a_session_does_not_go(start: SessionState, end: SessionState) -> None:
    with pytest.raises(Refused, match=f"ada cannot go from {start} to {end}"):
        sessions.change(Session(name="ada", state=start), end, "seen")


def test_a_session_is_removed_once() -> None:
    after = sessions.apply(Session(name="ada"), sessions.remove(Session(name="ada")), 4.0)
    assert (after.removed, after.state, after.updated) == (True, SessionState.DEAD, 4.0)
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
    session = Session(name="ada", kind=SessionKind.RUN, goal=goal)
    if goal not in ends:
        with pytest.raises(Refused, match=r"^ada "):
            rule(session)
        return
    event = rule(session)
    assert (event is None) is (ends[goal] is goal), "what is already so is no event"
    assert event is None or sessions.apply(session, event, 3.0).goal is ends[goal]


@pytest.mark.parametrize("verb", ["start", "stop", "pause", "resume"])
@pytest.mark.parametrize("kind", [SessionKind.OUTSIDE, SessionKind.PERSON])
def test_who_is_not_run_by_covey_cannot_be_told(verb: str, kind: SessionKind) -> None:
    with pytest.raises(Refused, match="covey does not run it"):
        GOALS[verb][0](Session(name="ada", kind=kind))


@pytest.mark.parametrize("kind", SessionKind)
def test_a_session_at_work_leaves_only_by_force(kind: SessionKind) -> None:
    session = Session(name="ada", kind=kind)
    with pytest.raises(Refused, match="ada is at work") as refused:
        sessions.leave(session, at_work=True, force=False)
    assert "--force" in refused.value.hint
    assert sessions.leave(session, at_work=True, force=True, why="w") == sessions.Leaving("w")


def test_a_session_keeps_its_agent_and_batch() -> None:
    event = sessions.register(None, sessions.Registered(kind=SessionKind.RUN, agent="scripted", batch="night"))
    assert sessions.first("ada", 7, event, 9.0) == Session(
        name="ada", ordinal=7, kind=SessionKind.RUN, wip=1, agent="scripted", batch="night", created=9.0, updated=9.0
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

    @rule(
        kind=st.sampled_from(SessionKind),
        role=st.none() | st.just("quality"),
        wip=st.none() | st.integers(min_value=-1),
    )
    def register(self, kind: SessionKind, role: str | None, wip: int | None) -> None:
        try:
            event = sessions.register(self.session, sessions.Registered(kind=kind, role=role, wip=wip))
        except CoveyError:
            return
        self.take(event)

    @rule(state=st.sampled_from(SessionState), evidence=st.text(max_size=5))
    def change(self, state: SessionState, evidence: str) -> None:
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
        assert self.session is None or not self.session.removed or self.session.state is SessionState.DEAD

    @invariant()
    def only_what_covey_runs_shall_work(self) -> None:
        if self.session is not None and self.session.kind is not SessionKind.RUN:
            assert self.session.goal in (Goal.STOPPED, Goal.REMOVED)

    @invariant()
    def who_is_about_to_go_never_works_again(self) -> None:
        if self.session is not None and self.session.removed:
            assert self.session.goal is Goal.REMOVED


TestAnyOrder = AnyOrder.TestCase
