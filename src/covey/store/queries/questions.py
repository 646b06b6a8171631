"""Questions and permits in a transaction."""

from __future__ import annotations

from covey.core.people import permits, questions
from covey.store.engine.transaction import Transaction, where


class Questions(Transaction):
    """What is found of questions and permits."""

    def question(self, question_id: str) -> questions.Question | None:
        """Return a question."""
        return self.get(questions.Question, question_id)

    def find_questions(self, *, state: str | None, session: str | None, limit: int) -> list[questions.Question]:
        """Return the newest questions that fit, in the order in which they were asked."""
        clause, values = where([("state = ?", state), ("session = ?", session)])
        return self.find(questions.Question, f"{clause}ORDER BY ordinal DESC LIMIT ?", (*values, limit))[::-1]

    def questions_named(self, session: str, run: str | None, asks: str) -> list[questions.Question]:
        """Return the questions of a run, or of a session outside any, to which the agent gave this name."""
        if run is None:
            where, values = "run IS NULL AND session = ? AND asks = ?", (session, asks)
        else:
            where, values = "run = ? AND asks = ?", (run, asks)
        return self.find(questions.Question, f"WHERE {where} ORDER BY ordinal", values)

    def open_questions(self, run: str | None = None) -> list[questions.Question]:
        """Return what nobody has decided, of one run or of all, the oldest first."""
        clause, values = where([("run = ?", run)], "state = 'open'")
        return self.find(questions.Question, f"{clause}ORDER BY ordinal", values)

    def count_open_questions(self) -> int:
        """Return how many questions wait for a person."""
        return self.number("SELECT count(*) FROM questions WHERE state = 'open'")

    def questions_over(self, now: float) -> list[questions.Question]:
        """Return the open questions whose time is over."""
        return self.find(questions.Question, "WHERE state = 'open' AND until <= ? ORDER BY ordinal", (now,))

    def untold_questions(self) -> list[questions.Question]:
        """Return what was decided and whoever asked was not told, as long as its run is open."""
        runs = "SELECT id FROM runs WHERE outcome IS NULL"
        where = f"WHERE run IN ({runs}) AND state IN ('answered', 'expired') AND told = 0"
        return self.find(questions.Question, f"{where} ORDER BY ordinal")

    def questions_unsettled(self, session: str) -> list[questions.Question]:
        """Return the questions of a session that are open, or whose answer it has not been told."""
        where = "WHERE session = ? AND state <> 'withdrawn' AND told = 0"
        return self.find(questions.Question, f"{where} ORDER BY ordinal", (session,))

    def questions_of_task(self, task: str) -> list[questions.Question]:
        """Return the questions for a task that are open, or whose answer nobody was told."""
        where = "WHERE task = ? AND state <> 'withdrawn' AND told = 0"
        return self.find(questions.Question, f"{where} ORDER BY ordinal", (task,))

    def last_question(self, session: str, task: str | None, tool: str, about: str) -> questions.Question | None:
        """Return what a session asked last for a task about one thing, None if it never did."""
        where = "WHERE session = ? AND task IS ? AND tool = ? AND about = ? ORDER BY ordinal DESC LIMIT 1"
        return self.first(questions.Question, where, (session, task, tool, about))

    def live_permits(self) -> list[permits.Permit]:
        """Return what is allowed, the oldest first."""
        return self.find(permits.Permit, "WHERE revoked IS NULL ORDER BY ordinal")

    def questions_of_run(self, run: str) -> list[questions.Question]:
        """Return all that a run has asked, the oldest first."""
        return self.find(questions.Question, "WHERE run = ? ORDER BY ordinal", (run,))

    def all_permits(self) -> list[permits.Permit]:
        """Return what is or was allowed, the oldest first."""
        return self.find(permits.Permit, "ORDER BY ordinal")
