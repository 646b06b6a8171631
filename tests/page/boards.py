"""Boards of 0, 3 and 300 tasks: what a person sees on the first day, in the first hour, and after some weeks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product

from tests.page.stage import SEARCH, SHELF, Stage, play_all, works, writes
from tests.worlds.serving import wait_until

MANY = 300
LANDED = 24
REPORTS = 90
DROPPED = 6
WAITING_TO_CHOOSE = 40
"""How many of the many tasks wait in the backlog until somebody chooses them."""
MAKERS = ("uma", "vik", "wes")
"""Sessions that land small changes, one after the other."""
VERBS = ("Explain", "Measure", "Test", "Simplify", "Rename", "Translate", "Speed up", "Document", "Check", "Log")
PLACES = (
    "the search", "the prices", "the receipts", "the shelf", "the vouchers", "the carts", "the letters", "the stock",
    "the orders that customers send by post", "the handbook", "the till", "the import of old customers",
)  # fmt: skip
DETAILS = ("", " in the shop", " for returning customers who have an account", " at night", " with two currencies")
ROLES = ("web", "docs", "ops", "design", "qa")


def play_none(stage: Stage) -> None:
    """Leave the board empty."""


def play_three(stage: Stage) -> None:
    """Have one task landed, one that waits for a review, and one whose agent asks a person."""
    shelf = "Show the last page too"
    stage.play("ada", "Find titles whatever their capitals", writes("bookshop/search.py", SEARCH, "Find titles"))
    stage.until("done", "Find titles whatever their capitals")
    stage.settings(review=True)
    stage.play("bob", shelf, writes("bookshop/shelf.py", SHELF, "Show the last page", cost=0.55))
    stage.until("review", shelf)
    question = "ask May I run the migration on the test database?\n"
    stage.play("cleo", "Move the orders to the new tables", f"call Read schema.sql\n{question}wait for {stage.go}\n")
    stage.until_session("cleo", "needs-you")


def play_many(stage: Stage) -> None:
    """Fill the board with all that some weeks of work leave there."""
    titles = _titles()
    _land_many(stage, [next(titles) for _ in range(LANDED)])
    _try_again(stage)
    play_all(stage)
    _send_back(stage)
    for _ in range(REPORTS):
        _report(stage, next(titles))
    for _ in range(DROPPED):
        stage.ask("POST", f"/api/board/{stage.add(next(titles), status='backlog')}/drop", {"reason": "Not needed."})
    for number, title in enumerate(islice(titles, MANY - len(stage.tasks))):
        status = "backlog" if number < WAITING_TO_CHOOSE else "todo"
        stage.add(title, role=ROLES[number % len(ROLES)], priority=number % 4, status=status)


def _titles() -> Iterator[str]:
    for detail, place, verb in product(DETAILS, PLACES, VERBS):
        yield f"{verb} {place}{detail}"


def _land_many(stage: Stage, titles: list[str]) -> None:
    for number, title in enumerate(titles):
        text = f'"""{title}."""\n\nSTEP = {number}\n'
        script = writes(f"bookshop/step_{number}.py", text, title, cost=0.1 + number % 7 / 10)
        stage.add(title, script, MAKERS[number % len(MAKERS)])
    for name in MAKERS:
        stage.start(name)
    stage.until("done", *titles)


def _try_again(stage: Stage) -> None:
    """Have a task that failed once and landed, and one that is at work for the third time."""
    stage.settings(tries=3)
    landed, again = "Round the price of used books", "Import the catalogue of 1998"
    fails = "try 1: spend sonnet 40000 1800 0.2\ntry 1: fail The tests do not pass: KeyError: 'used'\n"
    stage.play("xia", landed, fails + writes("bookshop/used.py", "RATE = 60\n", "Round used prices"))
    fails += "try 2: fail The catalogue has 14 lines without an author.\n"
    stage.play("yan", again, fails + works(stage, "bookshop/old.py", "YEAR = 1998\n", "shell make test"))
    stage.until("done", landed)
    wait_until(lambda: stage.line.task(stage.tasks[again])["failed_tries"] == 2, "two failed tries")
    stage.until_session("yan", "working")
    stage.settings()


def _send_back(stage: Stage) -> None:
    """Have work that a person has sent back, and which is being mended."""
    title = "Show prices with a point"
    stage.play(
        "zoe", title, "try 2+: wait for " + f"{stage.go}\n" + writes("bookshop/point.py", "POINT = '.'\n", "Points")
    )
    stage.until("review", title)
    stage.ask("POST", f"/api/merges/{stage.merge(title)}/reject", {"reason": "Please take a comma in Germany."})
    stage.until("doing", title)


def _report(stage: Stage, title: str) -> None:
    task = stage.add(title, "", "rita", kind="report")
    claimed = stage.ask("POST", f"/api/board/{task}/claim", {"session": "rita"})
    words = {"session": "rita", "fence": claimed["fence"], "result": f"Done: {title.lower()}."}
    stage.ask("POST", f"/api/board/{task}/handin", words)


BOARDS: dict[int, Callable[[Stage], None]] = {0: play_none, 3: play_three, MANY: play_many}
"""What is played for a board, by how many tasks it has."""
