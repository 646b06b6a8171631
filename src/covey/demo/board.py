"""What the demo plays: a small bookshop, its board, and who works on it."""

from __future__ import annotations

from typing import Any

WORKERS: dict[str, str | None] = {
    "ada": None,
    "ben": None,
    "cleo": None,
    "dan": None,
    "eve": "qa",
    "finn": "docs",
}
"""The workers, each with its role."""

FILES = {
    "README.md": "# Bookshop\n\nA sample that covey's demo works on.\n",
    "shop/cart.py": "def total(prices):\n    return sum(prices)\n",
    "shop/search.py": "def search(books, word):\n    return [book for book in books if word in book]\n",
    "docs/api.md": "# API\n",
}
"""The sample repository."""


def _task(key: str, title: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "title": title, "kind": "report", **fields}


TASKS: list[dict[str, Any]] = [
    _task("checkout", "Make checkout reliable", priority=50),
    _task("errors", "List how checkout fails", parent="checkout", priority=40),
    _task("retry", "Say when payments retry", parent="checkout", needs=["errors"], priority=40),
    _task("totals", "Check last month's totals", parent="checkout", priority=30),
    _task("stock", "Trace a stock below zero", parent="checkout", needs=["errors"]),
    _task("speed", "Make search fast", priority=45),
    _task("slow", "Time the slowest searches", parent="speed", priority=35),
    _task("index", "Compare two title indexes", parent="speed", needs=["slow"], priority=30),
    _task("memory", "Find what search keeps", parent="speed", needs=["slow"]),
    _task("cache", "Say what may be cached", parent="speed", needs=["index", "memory"]),
    _task("round", "Round prices only once", kind="change", scope=["shop/cart.py"], priority=25),
    _task("empty", "Show a friendly empty cart", kind="change", scope=["shop/cart.py"], priority=10),
    _task("case", "Ignore case in searches", kind="change", scope=["shop/search.py"], priority=20),
    _task("secrets", "Look for secrets in git", role="qa", priority=20),
    _task("check-retry", "Review the retry proposal", role="qa", needs=["retry"], priority=30),
    _task("check-cache", "Review the cache proposal", role="qa", needs=["cache"], priority=30),
    _task("licences", "List our licences", priority=5),
    _task("flaky", "Explain the flaky test", priority=15),
    _task("logs", "Name noisy log lines", priority=5),
    _task("api", "Describe the partner API", role="docs", priority=15),
    _task("howto", "Write how to return a book", role="docs", needs=["api"]),
    _task("news", "Write the release news", role="docs", needs=["check-retry", "check-cache"]),
    _task("phone", "Try the shop on a phone"),
    _task("contrast", "Check button contrast"),
]
"""The board: larger priorities first; parents end with their children."""

LEASES = {
    "logs": ["service:logs"],
    "flaky": ["service:logs"],
    "slow": ["db:main"],
    "stock": ["db:main"],
    "totals": ["db:main"],
}
"""What a task needs to have for itself, by its key; a path that it may write is leased too."""

RESULTS = {
    "errors": "Three ways: the bank is slow, the cart is stale, the stock is gone.",
    "retry": "Once, after two seconds, and only before the bank has answered.",
    "slow": "Seven of ten sort by title. The median is 840 ms.",
    "flaky": "The test reads the clock twice around midnight.",
}
"""The words with which some tasks are handed in, by their key."""
