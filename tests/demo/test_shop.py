"""The sample of the demo, without covey: its bugs are real, and its tasks mend them."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest

from covey.agents.scripted import agent
from covey.demo import shop
from covey.demo.shop import BAD, FIXES, GOOD, MENDED, Fix
from tests.agents.works import Place

BY_KEY = {fix.key: fix for fix in FIXES}


class Shop:
    """A copy of the shop, in which tasks are played."""

    def __init__(self, root: Path) -> None:
        self.place = Place(root, shop.own_environment())

    @property
    def root(self) -> Path:
        """Return where it is."""
        return self.place.worktree

    def play(self, fix: Fix, number: int) -> None:
        """Let the scripted agent do a task, without waiting for anybody to watch."""
        script = "\n".join(line for line in fix.script.splitlines() if not line.startswith("wait "))
        done = self.place.played(agent, script, COVEY_TRY=str(number))
        assert done.returncode == 0, done.stderr
        assert self.place.git("status", "--porcelain") == ""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("first") / "bookshop"
    shop.make(root)
    return root


@pytest.fixture
def sample(first: Path, tmp_path: Path) -> Shop:
    return Shop(Path(shutil.copytree(first, tmp_path / "bookshop")))


def _orders() -> list[tuple[Fix, ...]]:
    """Return all orders in which the tasks may land."""
    every = itertools.permutations(FIXES)
    return [
        order
        for order in every
        if all(order.index(BY_KEY[need]) < order.index(fix) for fix in order for need in fix.needs)
    ]


def test_the_shop_begins_green_with_every_bug_in_it(sample: Shop) -> None:
    assert shop.passes_the_gate(sample.root)
    assert shop.answers(sample.root) == {fix.key: fix.wrong for fix in FIXES}
    assert sample.place.git("log", "--format=%s by %an") == "Open the bookshop by covey demo"
    assert sample.place.git("status", "--porcelain") == ""


@pytest.mark.parametrize("which", [0.5, *(pytest.param(end, marks=pytest.mark.soak) for end in (0, 1))])
def test_in_any_order_that_needs_allow_each_task_leaves_the_shop_better(sample: Shop, which: float) -> None:
    orders = _orders()
    order = orders[round(which * (len(orders) - 1))]
    for number, fix in enumerate(order, 1):
        sample.play(fix, 2)
        assert shop.passes_the_gate(sample.root), fix.key
        right = {done.key for done in order[:number]}
        told = shop.answers(sample.root)
        assert all(told[key] == BY_KEY[key].right for key in right)
    assert sample.place.git("rev-list", "--count", "HEAD") == str(1 + len(FIXES))
    for fix in FIXES:
        sample.play(fix, 3)
    assert sample.place.git("rev-list", "--count", "HEAD") == str(1 + len(FIXES))


def test_the_tests_that_a_task_brings_fail_without_its_fix(sample: Shop) -> None:
    begin = sample.place.git("rev-parse", "HEAD")
    for fix in FIXES:
        sample.play(fix, 2)
    for fix in FIXES:
        sample.place.git("checkout", "--quiet", begin, "--", f"bookshop/{fix.key}.py")
        assert not shop.passes_the_gate(sample.root), fix.key
        sample.place.git("checkout", "--quiet", "HEAD", "--", f"bookshop/{fix.key}.py")
    assert shop.passes_the_gate(sample.root)


@pytest.mark.parametrize("afresh", [True, False])
def test_one_task_fails_the_gate_at_its_first_try_and_mends_it_at_its_second(sample: Shop, afresh: bool) -> None:
    fix = BY_KEY[MENDED]
    sample.play(fix, 1)
    assert not shop.passes_the_gate(sample.root)
    if afresh:
        sample.place.git("reset", "--quiet", "--hard", "HEAD~1")
    sample.play(fix, 2)
    assert shop.passes_the_gate(sample.root)
    assert shop.answers(sample.root)[MENDED] == fix.right


@pytest.mark.parametrize("branch", [*GOOD, BAD])
def test_a_branch_of_a_person_is_as_good_as_it_says(sample: Shop, branch: str) -> None:
    shop.make_branch(sample.root, branch)
    assert sample.place.git("branch", "--show-current") == "main"
    sample.place.git("checkout", "--quiet", branch)
    assert shop.passes_the_gate(sample.root) is (branch != BAD)


def test_the_tasks_are_written_as_they_are_imported(tmp_path: Path) -> None:
    shop.write_tasks(tmp_path / "tasks.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert [row["key"] for row in rows] == [fix.key for fix in FIXES]
    for number, row in enumerate(rows):
        assert set(row["needs"]) <= {before["key"] for before in rows[:number]}
    assert [row["key"] for row in rows if row["overlap"] and shop.NOTES in row["scope"]] == ["cart", "voucher"]
    assert {path.stem for path in shop.SAMPLE.iterdir()} == {
        "project",
        *BY_KEY,
        *(branch.rpartition("/")[2] for branch in (*GOOD, BAD)),
    }


def test_the_gate_of_the_settings_is_the_one_that_is_tested(sample: Shop) -> None:
    assert f'check = "{" ".join(shop.GATE)}"' in (sample.root / "covey.toml").read_text()
