"""What a transaction may forget: no event tells of it."""

from __future__ import annotations

from covey.core.texts import Blob, Text, blob_of, needs_blob
from covey.store.engine.transaction import Transaction
from covey.values import dataclass


@dataclass
class Pulse:
    """When something was last heard of: for people, and on the awake clock of one boot."""

    seen: float
    awake: float
    boot: str


class Scratch(Transaction):
    """What is kept of pulses, answers, tokens, and long texts aside by their hashes."""

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

    def old_answers(self, before: float) -> tuple[int, int, float]:
        """Return how many answers were kept long enough, their bytes, and when the oldest was given."""
        sql = "SELECT count(*), coalesce(sum(length(answer)), 0), coalesce(min(at), 0) FROM requests WHERE at < ?"
        [(count, size, oldest)] = self.db.rows(sql, (before,))
        return int(count), int(size), float(oldest)

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

    def keep(self, text: str) -> Text:
        """Return what stands for a text in rows and events; a long one is kept aside by its hash."""
        if not needs_blob(text):
            return text
        blob = blob_of(text)
        self.db.run(
            "INSERT INTO blobs (sha256, size, text, used) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (sha256) DO UPDATE SET used = excluded.used",
            (blob.sha256, blob.size, text, self.now),
        )
        self.wrote = True
        return blob

    def text(self, text: Text) -> str:
        """Return a text in full, or what is left to say of one whose time was over."""
        if not isinstance(text, Blob):
            return text
        found = self.long_text(text.sha256)
        return f"[{text.size} bytes, no longer kept; sha256 {text.sha256}]" if found is None else found

    def long_text(self, sha256: str) -> str | None:
        """Return the long text with this hash, None if it is not kept."""
        found = self.db.rows("SELECT text FROM blobs WHERE sha256 = ?", (sha256,))
        return str(found[0][0]) if found else None
