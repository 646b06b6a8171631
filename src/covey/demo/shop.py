"""The sample of the demo: a small bookshop with seven bugs, a task for each, and branches that people made of it.

All of it is played by the scripted agent, from the scripts in `sample`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from covey.agents.scripted import PLAYER
from covey.values import dataclass

SAMPLE = Path(__file__).with_name("sample")
GATE = ("python3", "-B", "-m", "unittest")
"""What `merge.check` of the sample runs; it keeps no bytecode, which could outlive a source of the same second."""

SHOP_RUN_S = 60.0
"""Seconds that a program of the shop may take."""
NOTES = "CHANGES.md"
"""The file that two tasks write at the same time, at lines next to each other."""


class Wrong(Exception):
    """Something in the demo is not as it must be."""


@dataclass(frozen=True)
class Fix:
    """A task of the sample: the bug of one module, how it shows, and what is right."""

    key: str
    title: str
    asked: str
    wrong: str
    right: str
    needs: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """Files that other tasks write at the same time."""

    @property
    def script(self) -> str:
        """Return how the scripted agent does it."""
        return (SAMPLE / f"{self.key}.txt").read_text(encoding="utf-8")


FIXES = (
    Fix("money", "Keep every cent of a price", 'cents("19.99")', "1998", "1999"),
    Fix("search", "Find titles whatever their capitals", 'search(["Dune"], "dune")', "[]", "['Dune']"),
    Fix("isbn", "Take numbers that end with X", 'valid("0-8044-2957-X")', "ValueError", "True"),
    Fix(
        "cart",
        "Give each cart its own lines",
        'Cart().add("Emma", "8") or Cart().total()',
        "800",
        "0",
        ("money",),
        (NOTES,),
    ),
    Fix("voucher", "Take the right sum off", "percent(1999, 10)", "1809", "1800", ("money",), (NOTES,)),
    Fix(
        "shelf",
        "Show the last page too",
        'pages(["a", "b", "c"], 2)',
        "[['a', 'b']]",
        "[['a', 'b'], ['c']]",
        ("search",),
    ),
    Fix(
        "receipt",
        "Print receipts that add up",
        '"Voucher" in receipt(Cart([("Emma", 800)]), 500)',
        "False",
        "True",
        ("cart", "voucher"),
    ),
)
"""What is wrong with the shop: a diamond from money to receipt, a chain from search to shelf, and one by itself."""

MENDED = "search"
"""The task whose first try does not pass the gate."""
GOOD = ("rita/hours", "ines/wishes", "noor/stock", "lena/stars")
"""Branches of people: each brings a module that does what its test says."""
BAD = "omar/gifts"
"""The branch of somebody whose module does not do what its test promises."""


def own_environment() -> dict[str, str]:
    """Return an environment in which neither the user's git settings nor a session's tokens count."""
    free = {name: value for name, value in os.environ.items() if not name.startswith(("COVEY_", "GIT_"))}
    who = {"NAME": "covey demo", "EMAIL": "demo@covey.invalid"}
    own = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in who.items()}
    fresh = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return free | own | fresh


def git(root: Path, *words: str) -> str:
    """Run git in a repository of the demo, and return what it printed."""
    done = subprocess.run(["git", *words], cwd=root, env=own_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"git {words[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


def _play(root: Path, script: str, title: str) -> None:
    words = [sys.executable, "-I", "-S", str(PLAYER), str(SAMPLE / f"{script}.txt"), "shop", title]
    subprocess.run(words, cwd=root, env=own_environment(), check=True)


def make(root: Path) -> None:
    """Make the repository of the shop, with one commit."""
    root.mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch", "main")
    _play(root, "project", "Open the bookshop")


def make_branch(root: Path, branch: str) -> None:
    """Commit what somebody made on a branch of their own, from main, and go back to main."""
    git(root, "switch", "--quiet", "--create", branch, "main")
    _play(root, branch.rpartition("/")[2], branch)
    git(root, "switch", "--quiet", "main")


def write_tasks(path: Path) -> None:
    """Write the tasks as `covey run` and `covey task import` take them."""
    rows = (
        {
            "key": fix.key,
            "title": fix.title,
            "body": fix.script,
            "needs": list(fix.needs),
            "scope": [f"bookshop/{fix.key}.py", f"tests/test_{fix.key}.py", *fix.beside],
            "overlap": bool(fix.beside),
        }
        for fix in FIXES
    )
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def answers(root: Path) -> dict[str, str]:
    """Return what the shop in a folder answers to the question of each fix, or which error it meets."""
    asked = {fix.key: (f"from bookshop.{fix.key} import *", fix.asked) for fix in FIXES}
    code = f"""
import json
told = {{}}
for key, (names, asked) in {asked!r}.items():
    known = {{}}
    exec(names, known)
    try:
        told[key] = repr(eval(asked, known))
    except Exception as error:
        told[key] = type(error).__name__
print(json.dumps(told))
"""
    done = subprocess.run(
        ["python3", "-B", "-c", code],
        cwd=root,
        env=own_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=SHOP_RUN_S,
    )
    told: dict[str, str] = json.loads(done.stdout)
    return told


def passes_the_gate(root: Path) -> bool:
    """Say whether the tests of the shop in a folder pass."""
    done = subprocess.run(GATE, cwd=root, env=own_environment(), capture_output=True, check=False, timeout=SHOP_RUN_S)
    return done.returncode == 0
