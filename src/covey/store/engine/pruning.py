"""Long texts whose time is over: removed, unless an open task, a comment on one, or young mail needs them."""

from __future__ import annotations

import msgspec

from covey.core.events import Pruned
from covey.core.fleet.sessions import COVEY
from covey.core.nouns import NOUNS
from covey.core.texts import Blob
from covey.store.tx import Tx

_blob = msgspec.json.Decoder(Blob)
_AT_ONCE = 2000
_DAY = 86_400.0


def prune(tx: Tx, *, keep_days: float, keep_megabytes: float) -> Pruned | None:
    """Remove long texts that no open task or young mail needs: the old, and the oldest of what is too much.

    At most two thousand at a time, so that nobody waits long; None says that nothing is left to remove.
    """
    doomed = prunable(tx, keep_days=keep_days, keep_megabytes=keep_megabytes)
    if not doomed:
        return None
    for sha256, _ in doomed:
        tx.db.run("DELETE FROM blobs WHERE sha256 = ?", (sha256,))
    event = Pruned(len(doomed), sum(size for _, size in doomed))
    tx.append(COVEY, "log", event)
    return event


def prunable(tx: Tx, *, keep_days: float, keep_megabytes: float) -> list[tuple[str, int]]:
    """Return hash and size of the texts that `prune` would remove, the oldest first."""
    since, room = tx.now - keep_days * _DAY, int(keep_megabytes * 1024 * 1024)
    blobs = tx.db.rows("SELECT sha256, size, used FROM blobs ORDER BY used DESC, sha256")
    if not blobs:
        return []
    needed = _needed(tx, since)
    doomed: list[tuple[str, int]] = []
    for sha256, size, used in blobs:
        if sha256 not in needed:
            room -= size
            if used < since or room < 0:
                doomed.append((sha256, size))
    return doomed[: -_AT_ONCE - 1 : -1]


def _needed(tx: Tx, since: float) -> set[str]:
    """Return the hashes of the long texts that are in use, as the nouns say."""
    found: set[str] = set()
    for table, text in ((noun.rows.name, text) for noun in NOUNS if noun.rows is not None for text in noun.texts):
        needs = [f"{text.task} IN (SELECT id FROM tasks WHERE status NOT IN ('done', 'dropped'))"] if text.task else []
        needs += [f"{text.young} >= ?"] if text.young else []
        kept = f" AND {text.removed} IS NULL" if text.removed else ""
        asked = f"SELECT {text.column} FROM {table} WHERE substr({text.column}, 1, 1) = '{{'{kept}"
        values = (since,) if text.young else ()
        found |= {_blob.decode(each).sha256 for each in tx.column(f"{asked} AND ({' OR '.join(needs)})", values)}
    return found
