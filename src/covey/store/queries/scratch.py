"""What a transaction may forget: no event tells of it."""

from __future__ import annotations

from covey.store.transaction import Transaction
from covey.values import dataclass


@dataclass
class Pulse:
    """When something was last heard of: for people, and on the awake clock of one boot."""

    seen: float
    awake: float
    boot: str


class Scratch(Transaction):
    """What is kept of pulses, answers and tokens."""

    def pulses(self) -> dict[str, Pulse]:
        """Return when each subject was last heard of."""
        return {row[0]: Pulse(*row[1:]) for row in self.db.rows("SELECT subject, seen, awake, boot FROM pulses")}

    def put_pulse(self, subject: str, pulse: Pulse) -> None:
        """Note that a subject was heard of."""
        self.db.run(
            "INSERT INTO pulses (subject, seen, awake, boot) VALUES (?, ?, ?, ?) ON CONFLICT (subject)"
            " DO UPDATE SET seen = excluded.seen, awake = excluded.awake, boot = excluded.boot",
            (subject, pulse.seen, pulse.awake, pulse.boot),
        )
        self.wrote = True

    def drop_pulse(self, subject: str) -> None:
        """Forget a subject that has ended."""
        self.db.run("DELETE FROM pulses WHERE subject = ?", (subject,))

    def answered(self, principal: str, key: str) -> tuple[bytes, int, bytes] | None:
        """Return request hash, status and answer kept under an idempotency key."""
        found = self.db.rows(
            "SELECT request, status, answer FROM requests WHERE principal = ? AND key = ?", (principal, key)
        )
        return (found[0][0], found[0][1], found[0][2]) if found else None

    def keep_answer(self, principal: str, key: str, request: bytes, status: int, answer: bytes) -> None:
        """Keep an answer under the idempotency key of its request."""
        self.db.run(
            "INSERT INTO requests (principal, key, request, status, answer, at) VALUES (?, ?, ?, ?, ?, ?)",
            (principal, key, request, status, answer, self.now),
        )

    def forget_answers(self, before: float) -> None:
        """Remove the answers that were kept long enough."""
        self.db.run("DELETE FROM requests WHERE at < ?", (before,))
        self.wrote = True

    def put_token(self, digest: bytes, session: str) -> None:
        """Remember a session's token by its hash."""
        self.db.run("INSERT INTO tokens (hash, session, made) VALUES (?, ?, ?)", (digest, session, self.now))
        self.wrote = True

    def token_session(self, digest: bytes) -> str | None:
        """Return the session whose token has this hash."""
        found = self.db.rows("SELECT session FROM tokens WHERE hash = ?", (digest,))
        return str(found[0][0]) if found else None

    def drop_tokens(self, session: str) -> None:
        """Make a session's tokens worthless."""
        self.db.run("DELETE FROM tokens WHERE session = ?", (session,))
        self.wrote = True
