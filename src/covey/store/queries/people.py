"""Mail, comments, questions, permits, proposals, devices and alerts in a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from covey.core.people.alerts import Alert, AlertKind
from covey.core.people.comments import Comment
from covey.core.people.devices import Device
from covey.core.people.mail import Message, Reading
from covey.core.people.permits import Permit
from covey.core.people.proposals import Proposal
from covey.core.people.questions import Question
from covey.store.engine.transaction import Transaction, where

_READ_BY = "SELECT 1 FROM readings WHERE message = messages.id AND reader = ?"


class People(Transaction):
    """What is found of all that people and sessions say to each other."""

    def readings_of(self, message: str) -> list[Reading]:
        """Return what came of a message at each reader, the first one first."""
        return self.find(Reading, "WHERE message = ? ORDER BY read", (message,))

    def messages_to(
        self, names: Sequence[str], reader: str, *, since: int, after: int, unread: bool, wake: bool, limit: int
    ) -> list[Message]:
        """Return the messages to a reader under any of its names, to many only those after `since`, the oldest first.

        `unread`: only those that it has not read. `wake`: only those that are meant to wake it.
        """
        marks = ", ".join("?" * len(names))
        only = f"{'AND wake = 1 ' if wake else ''}{f'AND NOT EXISTS ({_READ_BY}) ' if unread else ''}"
        where = f'"to" IN ({marks}) AND sender <> ? AND ("to" = ? OR ordinal > ?) AND ordinal > ? {only}'
        values = (*names, reader, reader, since, after, *([reader] if unread else []), limit)
        return self.find(Message, f"WHERE {where}ORDER BY ordinal LIMIT ?", values)

    def unacked_messages(self, to: str, limit: int) -> list[Message]:
        """Return the messages that want to be acknowledged and were not, the oldest first."""
        acked = f"{_READ_BY} AND acked IS NOT NULL"
        where = f'WHERE "to" = ? AND wants_ack = 1 AND NOT EXISTS ({acked}) ORDER BY ordinal LIMIT ?'
        return self.find(Message, where, (to, to, limit))

    def count_unread_from(self, sender: str, since: float, limit: int) -> int:
        """Return how many messages of a sender since a time nobody has read, counted up to a limit."""
        by_anyone = "SELECT 1 FROM readings WHERE message = messages.id"
        unread = f"SELECT 1 FROM messages WHERE sender = ? AND sent > ? AND NOT EXISTS ({by_anyone}) LIMIT ?"
        return self.number(f"SELECT count(*) FROM ({unread})", (sender, since, limit))

    def comments_on(self, task: str, limit: int, *, sent: bool) -> list[Comment]:
        """Return the comments on a task, or only those that were sent, the oldest first."""
        only = "AND sent IS NOT NULL " if sent else ""
        where = f"WHERE task = ? AND removed IS NULL {only}ORDER BY ordinal LIMIT ?"
        return self.find(Comment, where, (task, limit))

    def draft_comments(self, limit: int) -> list[Comment]:
        """Return the comments that were not sent yet, the oldest first."""
        return self.find(Comment, "WHERE removed IS NULL AND sent IS NULL ORDER BY ordinal LIMIT ?", (limit,))

    def last_proposals(self, *, is_open: bool, session: str | None, limit: int) -> list[Proposal]:
        """Return the newest proposals, those that are open or all, of a session or of all, the oldest first."""
        clause, values = where([("session = ?", session)], *(["state = 'open'"] if is_open else []))
        return self.find(Proposal, f"{clause}ORDER BY ordinal DESC LIMIT ?", (*values, limit))[::-1]

    def open_proposals(self, session: str | None = None, limit: int = -1) -> list[Proposal]:
        """Return what nobody has decided, of a session or of all, the oldest first."""
        clause, values = where([("session = ?", session)], "state = 'open'")
        return self.find(Proposal, f"{clause}ORDER BY ordinal LIMIT ?", (*values, limit))

    def devices(self) -> list[Device]:
        """Return the devices that were ever invited, the oldest first."""
        return self.find(Device, "ORDER BY ordinal")

    def device_of_code(self, digest: str) -> Device | None:
        """Return the device that was invited last with the code of this hash."""
        return self.first(Device, "WHERE code = ? ORDER BY ordinal DESC LIMIT 1", (digest,))

    def last_alerts(self, limit: int, session: str | None = None) -> list[Alert]:
        """Return the last alerts, of a session or all, the newest first."""
        clause, values = where([("session = ?", session)])
        return self.find(Alert, f"{clause}ORDER BY ordinal DESC LIMIT ?", (*values, limit))

    def last_alert(self, kind: AlertKind) -> Alert | None:
        """Return the last alert of a kind."""
        return self.first(Alert, "WHERE type = ? ORDER BY ordinal DESC LIMIT 1", (kind.value,))

    # Questions and permits

    def find_questions(
        self, *, state: str | None = None, session: str | None = None, run: str | None = None, limit: int = -1
    ) -> list[Question]:
        """Return the newest questions that fit, in the order in which they were asked."""
        clause, values = where([("state = ?", state), ("session = ?", session), ("run = ?", run)])
        return self.find(Question, f"{clause}ORDER BY ordinal DESC LIMIT ?", (*values, limit))[::-1]

    def questions_named(self, session: str, run: str | None, asks: str) -> list[Question]:
        """Return the questions of a run, or of a session outside any, to which the agent gave this name."""
        if run is None:
            where, values = "run IS NULL AND session = ? AND asks = ?", (session, asks)
        else:
            where, values = "run = ? AND asks = ?", (run, asks)
        return self.find(Question, f"WHERE {where} ORDER BY ordinal", values)

    def open_questions(self, run: str | None = None) -> list[Question]:
        """Return what nobody has decided, of one run or of all, the oldest first."""
        clause, values = where([("run = ?", run)], "state = 'open'")
        return self.find(Question, f"{clause}ORDER BY ordinal", values)

    def count_open_questions(self) -> int:
        """Return how many questions wait for a person."""
        return self.number("SELECT count(*) FROM questions WHERE state = 'open'")

    def questions_over(self, now: float) -> list[Question]:
        """Return the open questions whose time is over."""
        return self.find(Question, "WHERE state = 'open' AND until <= ? ORDER BY ordinal", (now,))

    def untold_questions(self) -> list[Question]:
        """Return what was decided and whoever asked was not told, as long as its run is open."""
        runs = "SELECT id FROM runs WHERE outcome IS NULL"
        where = f"WHERE run IN ({runs}) AND state IN ('answered', 'expired') AND told = 0"
        return self.find(Question, f"{where} ORDER BY ordinal")

    def unsettled_questions(self, *, session: str | None = None, task: str | None = None) -> list[Question]:
        """Return the questions of a session, or for a task, that are open, or whose answer nobody was told."""
        clause, values = where([("session = ?", session), ("task = ?", task)], "state <> 'withdrawn' AND told = 0")
        return self.find(Question, f"{clause}ORDER BY ordinal", values)

    def last_question(self, session: str, task: str | None, tool: str, about: str) -> Question | None:
        """Return what a session asked last for a task about one thing, None if it never did."""
        where = "WHERE session = ? AND task IS ? AND tool = ? AND about = ? ORDER BY ordinal DESC LIMIT 1"
        return self.first(Question, where, (session, task, tool, about))

    def permits(self, *, revoked: bool = False) -> list[Permit]:
        """Return what is allowed, or was as well, the oldest first."""
        return self.find(Permit, f"{'' if revoked else 'WHERE revoked IS NULL '}ORDER BY ordinal")
