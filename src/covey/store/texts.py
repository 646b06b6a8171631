"""Long texts in a transaction, kept aside by their hashes."""

from __future__ import annotations

from covey.core.texts import Blob, Text, blob_of, needs_blob
from covey.store.transaction import Transaction


class Texts(Transaction):
    """What is kept of texts, and told of them."""

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
        found = self.db.rows("SELECT text FROM blobs WHERE sha256 = ?", (text.sha256,))
        return str(found[0][0]) if found else f"[{text.size} bytes, no longer kept; sha256 {text.sha256}]"
