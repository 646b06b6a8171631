"""The life of a run."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core import nouns
from covey.core.fleet import runs
from covey.core.fleet.runs import Ended, Ending, Outcome, Run
from covey.core.nouns import NAMES
from covey.errors import Refused
from covey.store.engine.rows import decode_payload, encode_payload

BORN = runs.Begun(session="ada", task="T-1", fence=3, agent="scripted")
texts = st.text(max_size=5)


def test_a_run_begins_with_its_claim_and_nothing_else() -> None:
    run = nouns.first(runs.Run, "run-7", 7, BORN, 2.0)
    assert run == Run(id="run-7", ordinal=7, session="ada", task="T-1", fence=3, agent="scripted", begun=2.0)


@pytest.mark.parametrize("outcome", Outcome)
def test_a_run_ends_once(outcome: Outcome) -> None:
    run = nouns.first(runs.Run, "run-7", 7, BORN, 2.0)
    ended = runs.apply(run, runs.end(run, Ended(outcome=outcome, code=1, what="w", commit="c")), 5.0)
    assert (ended.outcome, ended.code, ended.what, ended.commit, ended.ended) == (outcome, 1, "w", "c", 5.0)
    with pytest.raises(Refused, match="run-7 has ended already"):
        runs.end(ended, Ended(outcome=Outcome.LOST))


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens to a run, in whatever order, the log tells the whole story, and it ends once."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[str, str]] = []
        self.run = nouns.first(runs.Run, "run-1", 1, BORN, 0.0)

    def take(self, event: runs.Event) -> None:
        self.log.append((NAMES[type(event)], encode_payload(event)))
        self.run = runs.apply(self.run, event, float(len(self.log)))

    @rule(base=texts)
    def prepared(self, base: str) -> None:
        self.take(runs.Prepared(base=base))

    @rule(conversation=texts)
    def talks(self, conversation: str) -> None:
        self.take(runs.Talking(conversation))

    @rule(why=texts, again=st.booleans(), fault=st.booleans(), over=st.booleans())
    def is_to_end(self, why: str, again: bool, fault: bool, over: bool) -> None:
        self.take(Ending(why, again, fault, over))
        assert (self.run.ending, self.run.again, self.run.fault, self.run.over) == (why, again, fault, over)

    @rule(event=st.builds(Ended, outcome=st.sampled_from(Outcome), code=st.none() | st.integers(-9, 9), what=texts))
    def ends(self, event: Ended) -> None:
        if self.run.outcome is None:
            self.take(runs.end(self.run, event))
            return
        with pytest.raises(Refused):
            runs.end(self.run, event)

    @invariant()
    def the_log_tells_the_whole_story(self) -> None:
        run = nouns.first(runs.Run, "run-1", 1, BORN, 0.0)
        for at, (kind, data) in enumerate(self.log, 1):
            payload = decode_payload(kind, data)
            assert isinstance(payload, runs.Event)
            run = runs.apply(run, payload, float(at))
        assert run == self.run

    @invariant()
    def whose_run_it_is_never_changes(self) -> None:
        assert (self.run.session, self.run.task, self.run.fence, self.run.agent) == ("ada", "T-1", 3, "scripted")

    @invariant()
    def only_what_has_ended_has_an_end(self) -> None:
        assert (self.run.ended is None) is (self.run.outcome is None)
        assert sum(kind == "run.ended" for kind, _ in self.log) == (self.run.outcome is not None)


TestAnyOrder = AnyOrder.TestCase
