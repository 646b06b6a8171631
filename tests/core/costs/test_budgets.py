"""Budgets: what is set aside before a start keeps every limit, whatever the order of starts and spends."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from covey.core.costs.budgets import (
    FIRST_RUN_SHARE,
    MIN_SHARE_LEFT,
    Books,
    Limits,
    LimitUsedUp,
    RunAllowance,
    Scope,
    grant,
    is_over,
    is_own,
)

amounts = st.just(0.0) | st.floats(0.1, 100.0)
limits = st.builds(Limits, run=amounts, task=amounts, session=amounts, day=amounts)
books = st.builds(Books, task=amounts, session=amounts, day=amounts, aside=amounts, usual=amounts, call=amounts)


@pytest.mark.parametrize(
    ("limits", "books", "answer"),
    [
        (Limits(), Books(task=9.0, day=99.0), RunAllowance(None)),
        (Limits(run=2.0), Books(task=9.0), RunAllowance(2.0)),
        (Limits(run=2.0, task=3.0), Books(task=2.0), RunAllowance(1.0)),
        (Limits(task=3.0), Books(task=1.0), RunAllowance(2.0)),
        (Limits(task=3.0), Books(task=3.0), LimitUsedUp(Scope.TASK, 3.0, 0.0)),
        (Limits(task=3.0), Books(task=2.875), LimitUsedUp(Scope.TASK, 3.0, 0.125)),
        (Limits(task=3.0), Books(task=4.0), LimitUsedUp(Scope.TASK, 3.0, 0.0)),
        (Limits(session=10.0), Books(session=9.75), LimitUsedUp(Scope.SESSION, 10.0, 0.25)),
        (Limits(run=2.0, day=10.0), Books(day=6.0, aside=2.0), RunAllowance(2.0)),
        (Limits(run=2.0, day=10.0), Books(day=6.0, aside=2.125), LimitUsedUp(Scope.DAY, 10.0, 1.875, waits=True)),
        (Limits(run=2.0, day=10.0), Books(day=9.0), RunAllowance(1.0)),
        (Limits(run=2.0, day=10.0), Books(day=9.75), LimitUsedUp(Scope.DAY, 10.0, 0.25)),
        (Limits(task=3.0), Books(task=2.0, call=1.0), RunAllowance(1.0)),
        (Limits(task=3.0), Books(task=2.0, call=1.25), LimitUsedUp(Scope.TASK, 3.0, 1.0, call=1.25)),
        (Limits(day=3.0), Books(day=2.0, call=5.0), LimitUsedUp(Scope.DAY, 3.0, 1.0, call=5.0)),
        (Limits(task=3.0), Books(call=5.0), RunAllowance(3.0)),
        (Limits(day=100.0), Books(call=20.0), RunAllowance(40.0)),
        (Limits(day=100.0), Books(), RunAllowance(100.0 * FIRST_RUN_SHARE)),
        (Limits(day=100.0), Books(usual=6.0), RunAllowance(12.0)),
        (Limits(session=10.0, day=100.0), Books(session=9.0, usual=3.0), RunAllowance(1.0)),
    ],
)
def test_a_grant_is_what_every_limit_leaves(limits: Limits, books: Books, answer: RunAllowance | LimitUsedUp) -> None:
    found = grant(limits, books)
    if isinstance(answer, RunAllowance) and answer.amount is not None:
        assert isinstance(found, RunAllowance) and found.amount == pytest.approx(answer.amount)
    else:
        assert found == answer


@given(books)
def test_without_a_limit_nobody_asks_what_a_run_spends(books: Books) -> None:
    assert grant(Limits(), books) == RunAllowance(None)


@given(limits, books)
def test_a_grant_is_worth_a_start_and_passes_no_limit(limits: Limits, books: Books) -> None:
    found = grant(limits, books)
    if isinstance(found, RunAllowance):
        if found.amount is None:
            assert limits == Limits()
            return
        assert found.amount > 0
        for limit, spent in ((limits.task, books.task), (limits.session, books.session)):
            assert limit == 0 or spent + found.amount <= limit + 1e-9
        assert limits.day == 0 or books.day + books.aside + found.amount <= limits.day + 1e-9
    else:
        assert found.left >= 0


@given(limits, books)
def test_a_run_waits_only_because_others_have_money_set_aside(limits: Limits, books: Books) -> None:
    found = grant(limits, books)
    if isinstance(found, LimitUsedUp) and found.waits:
        assert found.scope is Scope.DAY and books.aside > 0
        alone = grant(limits, replace(books, aside=0.0))
        assert isinstance(alone, RunAllowance), "it starts when they have given it back"
    elif isinstance(found, LimitUsedUp):
        limit, spent = {
            Scope.TASK: (limits.task, books.task),
            Scope.SESSION: (limits.session, books.session),
            Scope.DAY: (limits.day, books.day),
        }[found.scope]
        assert limit - spent < max(MIN_SHARE_LEFT * limit, books.call), "it is really used up"
        assert spent > 0, "what nobody has spent anything of is not used up"


@pytest.mark.parametrize(
    ("granted", "spent", "next_call", "over"),
    [
        (None, 1e9, 1e9, False),
        (1.0, 0.0, 0.0, False),
        (1.0, 0.5, 0.5, False),
        (1.0, 0.5, 0.51, True),
        (1.0, 1.0, 0.0, False),
        (1.0, 1.01, 0.0, True),
    ],
)
def test_a_run_ends_before_the_call_that_would_be_too_much(
    granted: float | None, spent: float, next_call: float, over: bool
) -> None:
    assert is_over(granted, spent, next_call) is over


@dataclass
class Open:
    """A run at work, what it may spend and what it has spent."""

    task: str
    session: str
    granted: float
    spent: float = 0.0


class Night(RuleBasedStateMachine):
    """Sessions begin runs, spend what they were granted or less, and end, in any order; no limit is ever passed."""

    @initialize(run=amounts, task=amounts, session=amounts, day=st.floats(1.0, 100.0))
    def set_limits(self, run: float, task: float, session: float, day: float) -> None:
        self.limits = Limits(run=run, task=task, session=session, day=day)
        self.open: list[Open] = []
        self.ended: list[Open] = []

    @property
    def all(self) -> list[Open]:
        return [*self.open, *self.ended]

    @rule(task=st.sampled_from("abcdef"), session=st.sampled_from("xyz"))
    def begin(self, task: str, session: str) -> None:
        if any(one.task == task or one.session == session for one in self.open):
            return  # a session and a task have one run at a time
        books = Books(
            task=sum(one.spent for one in self.all if one.task == task),
            session=sum(one.spent for one in self.all if one.session == session),
            day=sum(one.spent for one in self.all),
            aside=sum(one.granted - one.spent for one in self.open),
            usual=max((one.spent for one in self.ended[-20:]), default=0.0),
        )
        found = grant(self.limits, books)
        if isinstance(found, RunAllowance):
            assert found.amount is not None
            self.open.append(Open(task, session, found.amount))
        elif found.waits:
            assert self.open, "who waits, waits for another"

    @precondition(lambda self: self.open)
    @rule(data=st.data(), part=st.floats(0.0, 1.0))
    def spend(self, data: st.DataObject, part: float) -> None:
        one = data.draw(st.sampled_from(range(len(self.open))))
        self.open[one].spent += part * (self.open[one].granted - self.open[one].spent)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.ended.append(self.open.pop(data.draw(st.sampled_from(range(len(self.open))))))

    @invariant()
    def no_limit_is_passed(self) -> None:
        if not hasattr(self, "limits"):
            return
        assert sum(one.spent for one in self.all) <= self.limits.day + 1e-6
        assert sum(one.spent for one in self.ended) + sum(one.granted for one in self.open) <= self.limits.day + 1e-6
        for name, limit in (("task", self.limits.task), ("session", self.limits.session)):
            for key in {getattr(one, name) for one in self.all}:
                spent = sum(one.spent for one in self.all if getattr(one, name) == key)
                assert limit == 0 or spent <= limit + 1e-6


TestNight = Night.TestCase
TestNight.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(
    ("granted", "limit", "own"), [(None, 1.0, False), (1.0, 0.0, False), (0.4, 1.0, False), (1.0, 1.0, True)]
)
def test_only_a_whole_limit_of_a_run_is_its_own(granted: float | None, limit: float, own: bool) -> None:
    assert is_own(granted, limit) is own
