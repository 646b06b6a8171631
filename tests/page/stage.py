"""A project in the middle of its work: something of everything that the page shows, all of it done by real programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from covey.demo import shop
from tests.worlds.projects import Line, make_line
from tests.worlds.serving import wait_until

GATE = "python3 -B -m unittest --quiet"
MAKEFILE = f"""\
test:
\t@{GATE}
\t@while [ -e "$$OUTSIDE/hold" ]; do sleep 0.1; done
"""
SETTINGS = """\
[sessions]
agent = "scripted"
runner = "{runner}"
terminal = "100x28"
stagger = 0
max = 60
free_memory = 0

[agents.terminal]
command = ["bash", "{{body_file}}"]

[agents.letters]
command = ["bash", "{{body_file}}"]

[board]
tries = {tries}

[watch]
stalled_minutes = 600

[budget]
day = 80.0
run = 4.0

[merge]
isolate = "off"
env = ["OUTSIDE"]
check = "make test"
review = {review}
slots = 2
policy = "merge"
"""


def files() -> dict[str, str]:
    """Return the files of the bookshop that covey's demo mends."""
    with TemporaryDirectory(prefix="covey-") as folder:
        root = Path(folder, "bookshop")
        shop.make(root)
        paths = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
        found = {str(path.relative_to(root)): path.read_text() for path in paths if path.name != "covey.toml"}
        return found | {"Makefile": MAKEFILE}


@dataclass
class Stage:
    """The project, and what is played on it; every change goes through the product."""

    line: Line
    tasks: dict[str, str] = field(default_factory=dict)
    """Tasks by their titles."""

    @property
    def hold(self) -> Path:
        """Return the file that keeps gates from ending while it is there."""
        return self.line.mark("hold")

    @property
    def go(self) -> Path:
        """Return the file for which all wait who are at work."""
        return self.line.mark("go")

    def settings(self, *, runner: str = "process", review: bool = False, tries: int = 1) -> None:
        """Write covey.toml, which counts from the next run on."""
        self.line.settings(SETTINGS.format(runner=runner, review=str(review).lower(), tries=tries))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the daemon as the owner; what is asked must be done."""
        with self.line.client() as client:
            return client.ask(method, path, body).good(200, 201, 204)

    def add(self, title: str, script: str = "", session: str | None = None, **more: Any) -> str:
        """Put a task on the board, for one session if it is named, and return its id."""
        task = self.ask("POST", "/api/board", {"title": title, "body": script, "assignee": session, **more})["id"]
        self.tasks[title] = task
        return str(task)

    def start(self, name: str, agent: str = "scripted", role: str | None = None) -> None:
        """Let a session begin to work."""
        self.ask("POST", "/api/sessions", {"name": name, "agent": agent, "role": role})
        self.ask("POST", f"/api/sessions/{name}/start", {})

    def play(self, name: str, title: str, script: str, agent: str = "scripted", **more: Any) -> str:
        """Give a new session a task of its own, and return the task."""
        task = self.add(title, script, name, **more)
        self.start(name, agent)
        return task

    def until(self, status: str, *titles: str) -> None:
        """Wait until tasks have a status."""
        wanted = {self.tasks[title] for title in titles}

        def there() -> bool:
            board = self.ask("GET", "/api/board?limit=1000")
            return wanted <= {task["id"] for task in board if task["status"] == status}

        wait_until(there, f"{', '.join(titles)} {status}")

    def until_session(self, name: str, *states: str) -> None:
        """Wait until a session is in one of some states."""
        wait_until(lambda: self.line.sessions()[name]["state"] in states, f"{name} {' or '.join(states)}")

    def merge(self, title: str) -> str:
        """Return the newest merge of a task."""
        task, merges = self.tasks[title], self.ask("GET", "/api/merges?limit=1000")
        return max((str(merge["id"]) for merge in merges if merge["task"] == task), key=lambda name: int(name[6:]))


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Yield a bookshop with its daemon and an empty board, and end whatever runs of it then."""
    line = make_line(folder / "line", files=files())
    made = Stage(line)
    made.settings()
    try:
        line.up()
        yield made
    finally:
        line.end()


# Scripts


def indented(text: str) -> str:
    """Return a text as the block of a step."""
    return "".join(f"    {line}\n" for line in text.splitlines())


def writes(path: str, text: str, message: str, *, cost: float = 0.42, result: str = "") -> str:
    """Return the script of who reads, thinks, writes a file, tests it and commits."""
    return (
        f"spend sonnet {int(cost * 90_000)} {int(cost * 4_000)} {cost}\n"
        f"say I read {path} first.\ncall Read {path}\ncall Edit {path}\nwrite {path}\n{indented(text)}"
        f"call shell make test\nrun {GATE}\ncommit {message}\nresult {result or message}\n"
    )


def works(stage: Stage, path: str, text: str, action: str, *, cost: float = 0.8) -> str:
    """Return the script of who has written some and is still at it."""
    return (
        f"spend sonnet {int(cost * 90_000)} {int(cost * 4_000)} {cost}\n"
        f"say I begin with {path}.\ncall Read {path}\ncall Edit {path}\nwrite {path}\n{indented(text)}"
        f"say Half of it is there.\ncall {action}\nwait for {stage.go}\n"
    )


SEARCH = '''\
"""Finding a book by a word of its title."""


def search(titles: list[str], word: str) -> list[str]:
    """Return the titles that have a word in them, whatever their capitals."""
    wanted = word.casefold()
    return [title for title in titles if wanted in title.casefold()]
'''
MONEY = '''\
"""Prices, in whole cents."""

from decimal import Decimal


def cents(text: str) -> int:
    """Return a price like `12.50` in cents."""
    return int(Decimal(text) * 100)


def euros(amount: int) -> str:
    """Return an amount of cents as people write it."""
    return f"{amount // 100}.{amount % 100:02d}"
'''
SHELF = '''\
"""Showing many books, a page at a time."""

from itertools import batched

from bookshop.search import search


def pages(titles: list[str], size: int) -> list[list[str]]:
    """Return the titles in pages of some size, the last one too."""
    return [titles[at : at + size] for at in range(0, len(titles), size)]


def found(titles: list[str], word: str, size: int = 10) -> list[list[str]]:
    """Return what a search finds, in pages."""
    return pages(search(titles, word), size)
'''.replace("from itertools import batched\n\n", "")
ISBN = '''\
"""Numbers of books."""

LONG = 13


def valid(number: str) -> bool:
    """Say whether the check digit of a number is right; the last one of ten may be an X."""
    signs = number.replace("-", "")
    if len(signs) == LONG:
        return sum(int(sign) * (1 + 2 * (i % 2)) for i, sign in enumerate(signs)) % 10 == 0
    digits = [10 if sign in "xX" else int(sign) for sign in signs]
    return len(digits) == 10 and sum(digit * (10 - i) for i, digit in enumerate(digits)) % 11 == 0
'''
VOUCHER = '''\
"""Vouchers, which make a purchase cheaper."""


def less(total: int, voucher: int) -> int:
    """Return what is left to pay of a total, never less than nothing."""
    return max(0, total - voucher)


def percent(total: int, rate: int) -> int:
    """Return a total with some percent taken off, rounded for the customer."""
    return total - (total * rate + 99) // 100
'''
CART = '''\
"""What a customer is about to buy."""

from bookshop.money import cents


class Cart:
    """Titles, each with its price in cents."""

    def __init__(self, lines: list[tuple[str, int]] | None = None) -> None:
        self.lines = list(lines or [])

    def add(self, title: str, price: str) -> None:
        """Put a book into the cart."""
        self.lines.append((title, cents(price)))

    def total(self) -> int:
        """Return what all the books cost."""
        return sum(price for _, price in self.lines)
'''
LIMITED = '{"covey": "limited", "trouble": "limit", "text": "The five hours are used up.", "until": %s}\\n'
TERMINAL = r"""
printf '\033[1mTASK\033[0m \033[36m%s\033[0m\n\n' "TITLE"
printf '\033[2m$ python3 -m unittest -v\033[0m\n'
python3 -B -m unittest -v 2>&1 | sed -e $'s/ok$/\033[32mok\033[0m/'
printf '\n\033[33m●\033[0m Editing \033[4mbookshop/PART.py\033[0m\n'
printf '  \033[31m- return titles[size * i]\033[0m\n  \033[32m+ return titles[at : at + size]\033[0m\n\n'
printf '\033[35m❯\033[0m '
while [ ! -e GO ]; do IFS= read -r -t 1 line && printf 'heard: %s\n\033[35m❯\033[0m ' "$line"; done
"""


def terminal(stage: Stage, title: str, part: str) -> str:
    """Return the program of an agent that lives in a terminal, tells what it does, and says back what it hears."""
    return TERMINAL.replace("TITLE", title).replace("PART", part).replace("GO", str(stage.go))


# The play


def land_some(stage: Stage) -> None:
    """Let some work land, and some be rejected."""
    stage.play("ada", "Find titles whatever their capitals", writes("bookshop/search.py", SEARCH, "Find titles"))
    stage.play("bob", "Keep every cent of a price", writes("bookshop/money.py", MONEY, "Keep every cent", cost=0.31))
    wrong = 'say I make it shorter.\nwrite bookshop/isbn.py\n    """Numbers of books."""\ncommit Make it shorter\n'
    stage.play("cleo", "Make the check of numbers shorter", wrong)
    stage.until("done", "Find titles whatever their capitals", "Keep every cent of a price")
    stage.until("blocked", "Make the check of numbers shorter")


def fill_queue(stage: Stage) -> None:
    """Have work wait for a person's eyes, and some that was approved in the train, whose gates do not end."""
    stage.settings(review=True)
    stage.play("dana", "Show the last page too", writes("bookshop/shelf.py", SHELF, "Show the last page", cost=0.55))
    stage.play("eli", "Take numbers that end with X", writes("bookshop/isbn.py", ISBN, "Take X", cost=0.27))
    stage.play("fay", "Take the right sum off", writes("bookshop/voucher.py", VOUCHER, "Round for the customer"))
    stage.play("gus", "Give each cart its own lines", writes("bookshop/cart.py", CART, "Give each cart its own lines"))
    titles = ("Show the last page too", "Take numbers that end with X", "Take the right sum off")
    stage.until("review", *titles, "Give each cart its own lines")
    stage.hold.touch()
    for title in titles[:2]:
        stage.ask("POST", f"/api/merges/{stage.merge(title)}/approve", {})
    stage.until("merging", *titles[:2])


def work_and_ask(stage: Stage) -> None:
    """Have sessions at work, and some that ask, were put off, or are paused."""
    edit, shell = "Edit bookshop/receipt.py", "shell make test"
    receipt = '"""What is printed at the till."""\n\nWIDTH = 42\n'
    stage.play("hana", "Print receipts that add up", works(stage, "bookshop/receipt.py", receipt, edit, cost=1.84))
    stage.play(
        "ivo", "Print the voucher on the receipt", works(stage, "bookshop/receipt.py", receipt, shell), overlap=True
    )
    stage.play(
        "jo", "Write down how to order by post", works(stage, "docs/post.md", "# By post\n", "Write docs/post.md")
    )
    question = "ask May I run the migration on the test database?\n"
    stage.play("kim", "Move the orders to the new tables", f"call Read schema.sql\n{question}wait for {stage.go}\n")
    stage.play("lea", "Move the customers to the new tables", f"call Read schema.sql\n{question}wait for {stage.go}\n")
    colour = 'run covey ask "Which colour shall the till have?" --choice green --choice blue --wait 3000\n'
    stage.play("max", "Paint the till", colour)
    limit = f"until=$(($(date +%s) + 5400)); printf '{LIMITED}' $until; while [ ! -e {stage.go} ]; do sleep 0.2; done\n"
    stage.play("nia", "Translate the letters to customers", limit, agent="letters")
    stage.play("olu", "Sort the shelf by author", works(stage, "bookshop/author.py", "", "Edit bookshop/author.py"))
    for name in ("kim", "lea", "max"):
        stage.until_session(name, "needs-you")
    stage.until_session("nia", "limited")
    stage.ask("POST", "/api/sessions/olu/pause", {})
    stage.until_session("olu", "paused")


def open_terminals(stage: Stage, count: int = 4) -> None:
    """Have agents in terminals of their own."""
    stage.settings(runner="tmux", review=True)
    parts = {"pia": "shelf", "quin": "search", "rosa": "money", "sam": "isbn"}
    for name, part in list(parts.items())[:count]:
        title = f"Try the {part} with a thousand books"
        stage.play(name, title, terminal(stage, title, part), agent="terminal")
    for name in list(parts)[:count]:
        stage.until_session(name, "working")
    stage.settings(review=True)


def plan(stage: Stage) -> None:
    """Fill what is still to do, with needs between."""
    first = stage.add("Design the page of an order", role="design", priority=3, status="todo")
    second = stage.add("Show an order to its customer", role="web", needs=[first], priority=2)
    stage.add("Let a customer cancel an order", role="web", needs=[second], scope=["bookshop/orders/**"])
    stage.add("Send a letter when an order is on its way", role="web", needs=[second], priority=1)
    stage.add("Say in the handbook how returns work", role="docs", done_when=["The handbook has a page on returns."])
    stage.add("Measure how long a search takes", role="ops", priority=5)
    for title in (
        "Sell gift cards",
        "Count the stock at night",
        "Offer books that others bought",
        "Print in two columns",
    ):
        stage.add(title, role="later", status="backlog")


def talk(stage: Stage) -> None:
    """Have sessions hold leases and write to one another."""
    hana, ivo = (stage.tasks[title] for title in ("Print receipts that add up", "Print the voucher on the receipt"))
    take = {"session": "hana", "resources": ["bookshop/receipt.py"], "task": hana, "reason": "New layout"}
    stage.ask("POST", "/api/leases", take)
    stage.ask("POST", "/api/leases", {"session": "jo", "resources": ["docs/**"], "shared": True})
    stage.ask("POST", "/api/leases", {"session": "kim", "resources": ["db:main", "port:5432"], "reason": "Migration"})
    text = "I change the width of the receipt; please leave the footer to me."
    stage.ask("POST", "/api/mail", {"to": "ivo", "session": "hana", "text": text, "task": ivo, "wants_ack": True})
    stage.ask("POST", "/api/mail", {"to": "hana", "session": "ivo", "text": "I wait until you have landed."})
    stage.ask("POST", "/api/mail", {"to": "owner", "session": "jo", "text": "Do we still take orders by fax?"})


def play_all(stage: Stage) -> None:
    """Bring the project to the middle of its work."""
    land_some(stage)
    fill_queue(stage)
    plan(stage)
    open_terminals(stage)
    work_and_ask(stage)
    talk(stage)
