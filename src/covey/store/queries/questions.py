"""Questions and permits in a transaction."""

from __future__ import annotations

from covey.core import permits, questions
from covey.store import rows
from covey.store.transaction import Transaction


class Questions(Transaction):
    """What is found of questions and permits."""

    def question(self, question_id: str) -> questions.Question | None:
        """Return a question."""
        return self.get(rows.QUESTIONS, question_id)

    def find_questions(self, *, state: str | None, session: str | None, limit: int) -> list[questions.Question]:
        """Return the newest questions that fit, in the order in which they were asked."""
        terms = [(column, value) for column, value in (("state", state), ("session", session)) if value is not None]
        where = f"WHERE {' AND '.join(f'{column} = ?' for column, _ in terms)} " if terms else ""
        values = [value for _, value in terms]
        return self.find(rows.QUESTIONS, f"{where}ORDER BY ordinal DESC LIMIT ?", (*values, limit))[::-1]

    def questions_named(self, session: str, run: str | None, asks: str) -> list[questions.Question]:
        """Return the questions of a run, or of a session outside any, to which the agent gave this name."""
        if run is None:
            where, values = "run IS NULL AND session = ? AND asks = ?", (session, asks)
        else:
            where, values = "run = ? AND asks = ?", (run, asks)
        return self.find(rows.QUESTIONS, f"WHERE {where} ORDER BY ordinal", values)

    def open_questions(self, run: str | None = None) -> list[questions.Question]:
        """Return what nobody has decided, of one run or of all, the oldest first."""
        if run is None:
            return self.find(rows.QUESTIONS, "WHERE state = 'open' ORDER BY ordinal")
        return self.find(rows.QUESTIONS, "WHERE state = 'open' AND run = ? ORDER BY ordinal", (run,))

    def count_open_questions(self) -> int:
        """Return how many questions wait for a person."""
        return int(self.db.rows("SELECT count(*) FROM questions WHERE state = 'open'")[0][0])

    def questions_over(self, now: float) -> list[questions.Question]:
        """Return the open questions whose time is over."""
        return self.find(rows.QUESTIONS, "WHERE state = 'open' AND until <= ? ORDER BY ordinal", (now,))

    def untold_questions(self) -> list[questions.Question]:
        """Return what was decided and whoever asked was not told, as long as its run is open."""
        runs = "SELECT id FROM runs WHERE outcome IS NULL"
        where = f"WHERE run IN ({runs}) AND state IN ('answered', 'expired') AND told = 0"
        return self.find(rows.QUESTIONS, f"{where} ORDER BY ordinal")

    def questions_unsettled(self, session: str) -> list[questions.Question]:
        """Return the questions of a session that are open, or whose answer it has not been told."""
        where = "WHERE session = ? AND state <> 'withdrawn' AND told = 0"
        return self.find(rows.QUESTIONS, f"{where} ORDER BY ordinal", (session,))

    def questions_of_task(self, task: str) -> list[questions.Question]:
        """Return the questions for a task that are open, or whose answer nobody was told."""
        where = "WHERE task = ? AND state <> 'withdrawn' AND told = 0"
        return self.find(rows.QUESTIONS, f"{where} ORDER BY ordinal", (task,))

    def last_question(self, session: str, task: str | None, tool: str, about: str) -> questions.Question | None:
        """Return what a session asked last for a task about one thing, None if it never did."""
        where = "WHERE session = ? AND task IS ? AND tool = ? AND about = ? ORDER BY ordinal DESC LIMIT 1"
        return next(iter(self.find(rows.QUESTIONS, where, (session, task, tool, about))), None)

    def live_permits(self) -> list[permits.Permit]:
        """Return what is allowed, the oldest first."""
        return self.find(rows.PERMITS, "WHERE revoked IS NULL ORDER BY ordinal")
