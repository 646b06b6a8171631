"""What runs cost, in a transaction: rows and sums of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from covey.core.costs.spending import DOLLAR_DECIMALS, Spend, Used
from covey.core.fleet.signals import Usage
from covey.store.engine.transaction import AMONG, Transaction, among, where

Column = Literal["task", "session", "agent", "model", "day", "run"]
_SUMS = "sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost), sum(unpriced), sum(calls)"
_TOKENS = "input + output + cache_read + cache_write"
_EARLIER = (
    "SELECT id FROM runs WHERE conversation = ? AND ordinal < ? AND NOT coalesce(code = -9 OR outcome = 'lost', 0)"
)
"""Earlier runs of a conversation, whose share its total holds; of one that was killed, no agent knows it any more."""
_LAST_OF_AGENT = "SELECT id FROM runs WHERE agent = ? AND outcome IS NOT NULL ORDER BY ordinal DESC LIMIT ?"


class Costs(Transaction):
    """What is found of spends."""

    def spends_of(self, run: str) -> list[Spend]:
        """Return what a run has used, by model and day."""
        return self.find(Spend, "WHERE run = ?", (run,))

    def earlier_spends(self, conversation: str, ordinal: int) -> list[Spend]:
        """Return what the runs of a conversation before one used."""
        return self.find(Spend, f"WHERE run IN ({_EARLIER})", (conversation, ordinal))

    def earlier_unpriced(self, model: str, conversation: str, ordinal: int) -> list[Spend]:
        """Return what such runs used of a model without saying what it cost."""
        where = f"WHERE model = ? AND unpriced > 0 AND run IN ({_EARLIER})"
        return self.find(Spend, where, (model, conversation, ordinal))

    def priced_by_model(self, agent: str, runs: int) -> dict[str, Used]:
        """Return what the last runs of an agent used of each model whose price is known."""
        where = f"WHERE unpriced = 0 AND cost > 0 AND run IN ({_LAST_OF_AGENT})"
        sql = f"SELECT model, {_SUMS} FROM spends {where} GROUP BY model"
        return {model: _used(sums) for model, *sums in self.db.rows(sql, (agent, runs))}

    def used_in_calls(self, agent: str, runs: int) -> Used:
        """Return what the last runs of an agent used in calls that were counted."""
        sql = f"SELECT {_SUMS} FROM spends WHERE calls > 0 AND run IN ({_LAST_OF_AGENT})"
        return _used(self.db.rows(sql, (agent, runs))[0])

    def used(self, *, task: str | None = None, session: str | None = None, day: str | None = None) -> Used:
        """Return what was used in all, for a task, by a session, on a day, or of what these have in common."""
        clause, values = where([("task = ?", task), ("session = ?", session), ("day = ?", day)])
        return _used(self.db.rows(f"SELECT {_SUMS} FROM spends {clause}", values)[0])

    def used_by(self, column: Column, keys: Iterable[str]) -> dict[str, Used]:
        """Return what was used by each of some tasks, sessions or runs; one that used nothing is not in it."""
        sql = f"SELECT {column}, {_SUMS} FROM spends WHERE {column} IN {AMONG} GROUP BY {column}"
        return {key: _used(sums) for key, *sums in self.db.rows(sql, (among(keys),))}

    def used_by_sessions(self, day: str) -> dict[str, Used]:
        """Return what each session used on a day."""
        sql = f"SELECT session, {_SUMS} FROM spends WHERE day = ? GROUP BY session"
        return {session: _used(sums) for session, *sums in self.db.rows(sql, (day,))}

    def sums_by(
        self,
        column: Column,
        *,
        since: str | None = None,
        until: str | None = None,
        task: str | None = None,
        session: str | None = None,
    ) -> tuple[list[tuple[str, int, Used]], tuple[int, Used]]:
        """Return the number of runs and what they used, by the values of a column and in all."""
        clause, values = _filter(since, until, task, session)
        counted = f"count(DISTINCT run), {_SUMS} FROM spends {clause}"
        found = self.db.rows(f"SELECT {column}, {counted} GROUP BY {column}", values)
        runs, *sums = self.db.rows(f"SELECT {counted}", values)[0]
        return [(key, number, _used(rest)) for key, number, *rest in found], (runs, _used(sums))

    def unpriced_models(
        self,
        *,
        since: str | None = None,
        until: str | None = None,
        task: str | None = None,
        session: str | None = None,
    ) -> list[str]:
        """Return the models whose price is unknown."""
        clause, values = _filter(since, until, task, session, "unpriced > 0")
        return self.column(f"SELECT DISTINCT model FROM spends {clause}ORDER BY 1", values)

    def spent(self, column: Literal["task", "run"], name: str) -> tuple[float, int, int]:
        """Return the dollars of a task or a run, its tokens, and how many of these have no price."""
        sql = f"SELECT sum(cost), sum({_TOKENS}), sum(unpriced) FROM spends WHERE {column} = ?"
        cost, tokens, unpriced = self.db.rows(sql, (name,))[0]
        return round(cost or 0.0, DOLLAR_DECIMALS), tokens or 0, unpriced or 0

    def reserved_without_price(
        self, *, task: str | None = None, session: str | None = None, day: str | None = None
    ) -> float:
        """Return the dollars that were set aside for ended runs whose cost is unknown."""
        clause, values = where([("task = ?", task), ("session = ?", session), ("day = ?", day)], "unpriced > 0")
        sql = (
            "SELECT sum(money) FROM runs WHERE outcome IS NOT NULL AND money IS NOT NULL"
            f" AND id IN (SELECT run FROM spends {clause})"
        )
        return float(self.db.rows(sql, values)[0][0] or 0.0)

    def most_of_last_runs(self, what: Literal["cost", "tokens"], runs: int) -> float:
        """Return the most that one of the last runs used, in dollars or tokens."""
        last = "SELECT id FROM runs WHERE outcome IS NOT NULL ORDER BY ordinal DESC LIMIT ?"
        column = "cost" if what == "cost" else _TOKENS
        sql = f"SELECT sum({column}) FROM ({last}) AS r JOIN spends ON spends.run = r.id GROUP BY r.id"
        return max((float(total or 0.0) for (total,) in self.db.rows(sql, (runs,))), default=0.0)

    def main_model(self, run: str) -> str | None:
        """Return the model that wrote most in a run."""
        sql = "SELECT model FROM spends WHERE run = ? GROUP BY model ORDER BY sum(output) DESC LIMIT 1"
        found = self.db.rows(sql, (run,))
        return str(found[0][0]) if found else None


def _filter(
    since: str | None, until: str | None, task: str | None, session: str | None, *fixed: str
) -> tuple[str, list[Any]]:
    wanted = [("day >= ?", since), ("day <= ?", until), ("task = ?", task), ("session = ?", session)]
    return where([(term, value or None) for term, value in wanted], *fixed)


def _used(sums: Sequence[Any]) -> Used:
    """Return the sums of a query, which are null if there was nothing to sum."""
    if sums[0] is None:
        return Used()
    return Used(Usage(*sums[:4]), round(sums[4], DOLLAR_DECIMALS), sums[5], sums[6])
