"""Branches of people that come to the shop: four are good, and one does not do what it promises."""

from __future__ import annotations

from covey.values import dataclass


@dataclass(frozen=True)
class Branch:
    """What somebody made on a branch of their own: one new module, and its test."""

    name: str
    title: str
    module: str
    code: str
    asked: str
    right: str
    good: bool = True

    @property
    def files(self) -> dict[str, str]:
        """Return what the branch adds."""
        name = self.module.title()
        test = (
            f'"""{self.title}."""\n\nimport unittest\n\nfrom bookshop.{self.module} import *\n\n\n'
            f"class {name}(unittest.TestCase):\n"
            f"    def test_it_answers_as_promised(self) -> None:\n"
            f"        self.assertEqual({self.asked}, {self.right})\n"
        )
        code = f'"""{self.title}."""\n\n\n{self.code}'
        return {f"bookshop/{self.module}.py": code, f"tests/test_{self.module}.py": test}


BRANCHES = (
    Branch(
        "rita/hours",
        "Say when the shop is open",
        "hours",
        "def is_open(hour: int) -> bool:\n    return 9 <= hour < 18\n",
        "[is_open(hour) for hour in (8, 9, 18)]",
        "[False, True, False]",
    ),
    Branch(
        "ines/wishes",
        "Keep wishes in order, each once",
        "wishes",
        "def wishes(titles: list[str]) -> list[str]:\n    return list(dict.fromkeys(titles))\n",
        'wishes(["Emma", "Dune", "Emma"])',
        '["Emma", "Dune"]',
    ),
    Branch(
        "noor/stock",
        "Count what is left of a title",
        "stock",
        "def left(bought: int, sold: int) -> int:\n    return max(0, bought - sold)\n",
        "[left(3, 1), left(1, 3)]",
        "[2, 0]",
    ),
    Branch(
        "lena/stars",
        "Show what readers think of a title",
        "stars",
        "def stars(marks: list[int]) -> str:\n    return '*' * round(sum(marks) / len(marks)) if marks else ''\n",
        "[stars([5, 4]), stars([])]",
        "['****', '']",
    ),
    Branch(
        "omar/gifts",
        "Wrap gifts for two euros",
        "gifts",
        "def wrapped(price: int) -> int:\n    return price + 2\n",
        "wrapped(1000)",
        "1200",
        good=False,
    ),
)
