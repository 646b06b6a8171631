"""What covey does next with a session: one step for every state, and the steps lead to the goal."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from covey.core.fleet import runs, sessions
from covey.core.fleet.launches import Observation
from covey.core.fleet.next_step import MAX_OUTPUT_BYTES, Step, next_step, why_end
from covey.core.fleet.runs import Ending, Run
from covey.core.fleet.sessions import Goal, Session, SessionKind
from covey.errors import CoveyError

RUN = Run(id="run-1", ordinal=1, session="ada", task="T-1", fence=1, agent="scripted")
SEEN = [
    Observation(known=False, alive=False),
    Observation(known=True, alive=True),
    Observation(known=True, alive=True, held=True),
    Observation(known=True, alive=False, code=0),
    Observation(known=True, alive=False),
]
WHY = Ending("It took too long.", fault=True)


def allowed(
    session: Session, run: Run | None, seen: Observation | None, *, paused: bool, holds: bool, ending: Ending | None
) -> list[Step]:
    """Return the steps that a state allows, each spelled out by itself."""
    still = paused or session.goal is Goal.PAUSED
    if run is None or seen is None:
        at_rest = still if session.goal in (Goal.WORKING, Goal.PAUSED) else not holds
        rules = {
            Step.REMOVE: session.goal is Goal.REMOVED,
            Step.LET_GO: session.goal is Goal.STOPPED and holds,
            Step.REST: session.goal is not Goal.REMOVED and at_rest,
            Step.BEGIN: session.goal is Goal.WORKING and not paused,
        }
    else:
        shall_go_on = run.ending is None and ending is None
        is_taken_away = not seen.known and run.base is not None
        rules = {
            Step.START: not seen.known and shall_go_on and not still and not is_taken_away,
            Step.REST: not seen.known and shall_go_on and still and not is_taken_away,
            Step.READ: seen.alive and shall_go_on and still is seen.held,
            Step.HOLD: seen.alive and shall_go_on and still and not seen.held,
            Step.GO_ON: seen.alive and shall_go_on and seen.held and not still,
            Step.END: (seen.alive or not (seen.known or is_taken_away)) and run.ending is None and ending is not None,
            Step.STOP: seen.alive and run.ending is not None,
            Step.JUDGE: not seen.alive and (seen.known or run.ending is not None or is_taken_away),
        }
    return [step for step, holds_true in rules.items() if holds_true]


@pytest.mark.parametrize("goal", Goal)
@pytest.mark.parametrize("paused", [False, True])
def test_for_every_state_there_is_one_step_and_the_state_allows_it(goal: Goal, paused: bool) -> None:
    session = Session(name="ada", kind=SessionKind.RUN, goal=goal)
    with_run = itertools.product((RUN, replace(RUN, ending="stopped"), replace(RUN, base="c0ffee")), SEEN)
    for (run, seen), holds, ending in itertools.product([(None, None), *with_run], (False, True), (None, WHY)):
        step = next_step(session, run, seen, paused=paused, holds=holds, ending=ending)
        assert [step] == allowed(session, run, seen, paused=paused, holds=holds, ending=ending)


@pytest.mark.parametrize(
    ("goal", "theirs", "at_work", "why"),
    [
        (Goal.WORKING, True, 60.0, None),
        (Goal.PAUSED, True, 60.0, None),
        (Goal.WORKING, True, 60.1, Ending("The run took longer than 1 min.", fault=True)),
        (Goal.WORKING, False, 0.0, Ending("T-1 is no longer with ada.")),
        (Goal.WORKING, False, 99.0, Ending("T-1 is no longer with ada.")),
        (Goal.STOPPED, True, 99.0, Ending("ada was stopped.")),
        (Goal.REMOVED, False, 99.0, Ending("ada is being removed.")),
    ],
)
def test_a_run_must_stop(goal: Goal, theirs: bool, at_work: float, why: Ending | None) -> None:
    session = Session(name="ada", kind=SessionKind.RUN, goal=goal)
    assert why_end(session, RUN, theirs=theirs, at_work=at_work, limit=60.0) == why


@pytest.mark.parametrize(
    ("attached", "person", "why"),
    [
        (None, False, None),
        ("owner", False, Ending("owner takes the conversation over.", again=True)),
        ("owner", True, None),
        (None, True, Ending("The conversation was given back.", again=True)),
    ],
)
def test_a_conversation_changes_hands_by_a_new_run(attached: str | None, person: bool, why: Ending | None) -> None:
    session = Session(name="ada", kind=SessionKind.RUN, goal=Goal.WORKING, attached=attached)
    assert why_end(session, replace(RUN, person=person), theirs=True, at_work=0.0, limit=60.0) == why


def test_the_run_of_a_person_has_no_end_but_its_own() -> None:
    session = Session(name="ada", kind=SessionKind.RUN, goal=Goal.WORKING, attached="owner")
    run = replace(RUN, person=True)
    assert why_end(session, run, theirs=True, at_work=1e9, limit=60.0, printed=2 * MAX_OUTPUT_BYTES) is None
    assert why_end(session, run, theirs=False, at_work=0.0, limit=60.0) is not None


def test_a_run_that_prints_without_end_must_stop() -> None:
    session = Session(name="ada", kind=SessionKind.RUN, goal=Goal.WORKING)
    assert why_end(session, RUN, theirs=True, at_work=0.0, limit=60.0, printed=MAX_OUTPUT_BYTES) is None
    ending = why_end(session, RUN, theirs=True, at_work=0.0, limit=60.0, printed=MAX_OUTPUT_BYTES + 1)
    assert ending == Ending("The run printed more than 256 MiB.", fault=True)


class Simulated(RuleBasedStateMachine):
    """A session and its program in a world where anything happens; covey takes the steps that the rules say."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session(name="ada", kind=SessionKind.RUN, goal=Goal.WORKING)
        self.paused = False
        self.run: Run | None = None
        self.program = Observation(known=False, alive=False)
        self.waiting = 2
        self.holds = False
        self.too_long = False
        self.started: list[str] = []
        self.begun = 0

    # What people, programs and machines do

    @rule(verb=st.sampled_from([sessions.start, sessions.stop, sessions.pause, sessions.resume]))
    def tell(self, verb: object) -> None:
        assert callable(verb)
        if self.session.removed:
            self.session = Session(name="ada", kind=SessionKind.RUN)
        try:
            event = verb(self.session)
        except CoveyError:
            return
        if event is not None:
            self.session = sessions.apply(self.session, event, 1.0)

    @precondition(lambda self: self.begun % 3 == 2)
    @rule()
    def remove(self) -> None:
        event = sessions.leave(self.session, at_work=self.holds, force=True)
        if event is not None and not self.session.removed:
            self.session = sessions.apply(self.session, event, 1.0)

    @rule(paused=st.booleans())
    def pause_all(self, paused: bool) -> None:
        self.paused = paused

    @rule()
    def add_task(self) -> None:
        self.waiting += 1

    @rule(code=st.none() | st.sampled_from([0, 1, -9]))
    def program_ends(self, code: int | None) -> None:
        if self.program.alive:
            self.program = Observation(known=True, alive=False, code=code)

    @rule()
    def task_is_taken_away(self) -> None:
        self.holds = False

    @rule()
    def run_takes_too_long(self) -> None:
        self.too_long = self.run is not None and self.program.alive and not self.program.held

    @rule()
    def person_attaches(self) -> None:
        try:
            event = sessions.attach(self.session)
        except CoveyError:
            return
        if event is not None:
            self.session = sessions.apply(self.session, event, 1.0)

    @rule()
    def person_gives_back(self) -> None:
        event = sessions.give_back(self.session)
        if event is not None:
            self.session = sessions.apply(self.session, event, 1.0)

    # What covey does

    @rule()
    def look(self) -> None:
        self.step()

    @rule()
    def settle(self) -> None:
        """Look until nothing changes any more: that takes few steps, and the goal is reached."""
        for _ in range(12):
            before = self.state()
            self.step()
            if self.state() == before:
                break
        else:
            raise AssertionError("it never settles")
        self.goal_is_reached()

    def state(self) -> tuple[object, ...]:
        return self.session, self.run, self.program, self.holds, self.waiting

    def step(self) -> None:
        if self.session.removed:
            return
        ending = None
        if self.run is not None:
            at_work = 61.0 if self.too_long else 1.0
            ending = why_end(self.session, self.run, theirs=self.holds, at_work=at_work, limit=60.0)
        seen = None if self.run is None else self.program
        step = next_step(self.session, self.run, seen, paused=self.paused, holds=self.holds, ending=ending)
        if step is Step.BEGIN:
            self.begin()
        elif step is Step.LET_GO:
            self.let_go()
        elif step is Step.REMOVE:
            self.let_go()
            self.session = sessions.apply(self.session, sessions.remove(self.session), 2.0)
        elif step is not Step.REST:
            self.act(step, ending)

    def begin(self) -> None:
        assert self.run is None, "a session has one run at a time"
        attached = self.session.attached is not None
        if not self.holds and self.waiting and not attached:
            self.waiting, self.holds = self.waiting - 1, True
        if self.holds:
            self.begun += 1
            self.run = replace(RUN, id=f"run-{self.begun}", person=attached)
            self.program, self.too_long = Observation(known=False, alive=False), False

    def let_go(self) -> None:
        self.waiting, self.holds = self.waiting + self.holds, False

    def act(self, step: Step, ending: Ending | None) -> None:
        assert self.run is not None
        match step:
            case Step.START:
                self.started.append(self.run.id)
                self.program = Observation(known=True, alive=True)
            case Step.HOLD | Step.GO_ON:
                self.program = replace(self.program, held=step is Step.HOLD)
            case Step.END:
                assert ending is not None
                self.run = runs.apply(self.run, ending, 1.0)
            case Step.STOP:
                self.program = Observation(known=True, alive=False, code=-15)
            case Step.JUDGE:
                assert not self.program.alive, "nothing alive is ever judged"
                if self.run.person:
                    self.person_gives_back()
                elif self.run.again:
                    pass
                elif self.program.code == 0 and self.run.ending is None:
                    self.holds = False  # handed in
                elif self.program.code is not None or self.run.ending is not None:
                    self.let_go()
                self.run = None
            case _:
                assert step is Step.READ

    # What has to be so

    def goal_is_reached(self) -> None:
        still = self.paused or self.session.goal is Goal.PAUSED
        if self.session.goal is Goal.REMOVED:
            assert self.session.removed and self.run is None and not self.holds
        elif self.session.goal is Goal.STOPPED:
            assert self.run is None and not self.holds
        elif still:
            assert self.run is None or not self.program.alive or self.program.held
        elif self.run is None:
            assert not self.holds, "what it holds is worked on"
            assert not self.waiting or self.session.attached, "nothing waits that could be done"
        else:
            assert self.program.alive and not self.program.held
            assert self.run.person is (self.session.attached is not None), "who shall have the conversation has it"

    @invariant()
    def no_run_is_started_twice(self) -> None:
        assert len(self.started) == len(set(self.started))

    @invariant()
    def nothing_lives_without_its_run(self) -> None:
        assert self.run is not None or not self.program.alive


TestSimulated = Simulated.TestCase
TestSimulated.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
