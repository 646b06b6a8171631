"""A real Claude Code looks around at the default level: what only reads in its worktree, and the gate, asks nobody."""

from __future__ import annotations

from collections.abc import Callable

from tests.end_to_end.real.test_questions import questions
from tests.model.environment import World
from tests.model.script import Shell, Step, Write
from tests.worlds.projects import Line
from tests.worlds.real_projects import add, begin, commits, outcomes
from tests.worlds.serving import wait_until

CHECKS = """[merge]
check = "test ! -e bad"
[[merge.checks]]
paths = ["tests/**"]
run = "python3 -m unittest -q tests.test_a"
[[merge.checks]]
paths = ["Makefile"]
run = "make check"
"""
TEST = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_one(self) -> None:\n        pass\n"
FREE = (
    "ls -la",
    "ls tests/*.py",
    "cat README.md",
    "head -5 tests/test_a.py",
    "sed -n '1,3p' tests/test_a.py",
    "wc -l tests/test_a.py",
    "grep -rn 'def test' tests",
    "grep -n 'x' README.md || true",
    "find . -name '*.py' -not -path './.git/*'",
    "git status --short && git diff --stat",
    "git log --oneline | head -3",
    "cd {worktree} && git status",
    "cd {worktree} && git log --oneline -3 | cat",
    "cd tests && ls",
    "cd {worktree} && git add -A && git diff --cached --stat",
    "git show HEAD:README.md | sed -n '1,2p'",
    "python3 --version",
    "python3 -V 2>&1",
    "make --version | head -1",
    "git --version && python3 --version",
    "which python3",
    "command -v git",
    "python3 -m unittest tests.test_a.A.test_one",
    "python3 -m unittest -v tests.test_a 2>&1 | tail -5",
    "cd {worktree} && python3 -m unittest tests.test_a",
    "make -n check",
    "make -n",
    "make check 2>&1 | tail -3",
    "echo hello && pwd",
    "test -f Makefile && cat Makefile",
    "[ -d tests ] && ls tests",
    "ls missing 2>/dev/null || true",
    "awk '{print $1}' README.md",
    "sort README.md | uniq -c | sort -rn | head -3",
    "diff README.md tests/test_a.py || true",
    "du -sh tests",
    "stat README.md",
    "git blame -L 1,1 README.md",
    "git branch -a",
    "date +%F",
    "tail -n 2 README.md | tr a-z A-Z",
    "cut -d' ' -f1 README.md",
)
ASKED = (
    "python3 -c 'print(1)'",
    "cat {worktree}/../../outside.txt; ls",
    "ls | tee list.txt",
    "find tests -name '*.pyc' -delete",
    "curl -s http://127.0.0.1:9/",
)


def test_looking_around_asks_nobody(real: Callable[..., Line], world: World) -> None:
    line = real("[watch]\nbackoff = 0.2\nanswer_minutes = 0.003\n", CHECKS)
    worktree = str(line.worktrees / "ada")
    commands = [each.replace("{worktree}", worktree) for each in (*FREE, *ASKED)]
    made = Write("tests/test_a.py", TEST), Write("Makefile", "check:\n\ttrue\n"), *commits("Add tests").do
    steps = [Step(do=made), *(Step(do=(Shell(each),)) for each in commands), Step(text="Done.")]
    task = add(line, "One", world.model.add("one", steps))
    begin(line)
    wait_until(lambda: outcomes(line, task) == ["handed-in"], "the end of the run")
    asked = {each["about"] for each in questions(line)}
    assert sorted(asked) == sorted(commands[len(FREE) :])
