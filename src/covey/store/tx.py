"""One transaction: finding and writing rows, and appending to the log. SQL finds, Python decides.

The statements are plain enough for SQLite and PostgreSQL alike; a store brings only the connection. Each part of it is
a class in a file of its own.
"""

from __future__ import annotations

from covey.store.board import Board
from covey.store.leases import Leases
from covey.store.log import Log
from covey.store.merges import Merges
from covey.store.questions import Questions
from covey.store.queue import Queue
from covey.store.runs import Runs
from covey.store.scratch import Scratch
from covey.store.texts import Texts


class Tx(Log, Board, Leases, Runs, Merges, Queue, Questions, Texts, Scratch):
    """What one request may do to the store; nothing of it lasts if the request is refused."""
