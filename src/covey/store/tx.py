"""One transaction: finding and writing rows, and appending to the log. SQL finds, Python decides.

But for `json_each` the statements are plain enough for PostgreSQL too. Each part of it is a class in a file of its own.
"""

from __future__ import annotations

from covey.store.queries.board import Board
from covey.store.queries.costs import Costs
from covey.store.queries.leases import Leases
from covey.store.queries.log import Log
from covey.store.queries.merges import Merges
from covey.store.queries.overlaps import Overlaps
from covey.store.queries.people import People
from covey.store.queries.runs import Runs
from covey.store.queries.scratch import Scratch


class Tx(Log, Board, Leases, Runs, Merges, Overlaps, People, Costs, Scratch):
    """What one request may do to the store; nothing of it lasts if the request is refused."""
