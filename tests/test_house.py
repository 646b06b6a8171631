"""The house stays as it was laid out: small folders, short files, one word for one thing, SQL and git in their places.

The one list of exceptions is that of long files; an entry that is no longer needed fails as well.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from covey.core.nouns import NOUNS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "covey"
MAX_MODULES_A_FOLDER = 17
MAX_LINES_A_FILE = 500
MAX_BRANCHES_A_FUNCTION = 15

LONG_FILES: dict[str, str] = {
    "agents/player.py": "a program of its own, started by its path, which imports nothing of covey",
    "config.py": "one value: every setting with its default",
    "core/board/tasks.py": "one noun: the events of a task and what each does",
    "core/globs.py": "one algebra of globs",
    "git/landing/fast_forward.py": "one procedure, whose steps undo each other",
    "runners/process.py": "one runner",
    "runners/tmux.py": "one runner",
    "runners/wrapper.py": "a program of its own, started by its path, which imports nothing of covey",
}
"""Files over the limit, and why each is one thing all the same."""

VAGUE_CONSTANTS = re.compile(r"_?(MOST|PATIENCE|KEPT|MANY|FEW|BIG|LARGE|LONGEST|LEAST|NEAR)")
"""Names of constants that say neither what is counted nor in which unit."""

SQL = re.compile(r"\b(SELECT\s|INSERT INTO|UPDATE \w+ SET|DELETE FROM|WHERE\s|ORDER BY|GROUP BY)")

SENTENCES = {
    *("because", "command", "error", "evidence", "hint", "message", "reason", "sentence"),
    *("story", "summary", "waits", "what", "why"),
}
"""Names of what is written for people: code may show it, and decides by a field beside it."""
READ_IN_PYTHON = {"startswith", "endswith", "partition", "rpartition"}
READ_ON_THE_PAGE = re.compile(
    rf"""\b(?:{"|".join(sorted(SENTENCES))})(?:\.(?:startsWith|endsWith|includes)\(|\s[!=]==\s)["'`]\w+ """
)

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_BRANCHES = (*_LOOPS, ast.If, ast.IfExp, ast.BoolOp, ast.ExceptHandler, ast.match_case)


@cache
def _modules() -> dict[str, ast.Module]:
    """Return every module of the source by its path below src/covey."""
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


def _floor(path: str) -> str:
    return path.split("/")[0]


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _branches(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return sum(isinstance(node, _BRANCHES) for node in ast.walk(function))


def _is_branchy(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    return _branches(function) > MAX_BRANCHES_A_FUNCTION or _branches(function) > lines


def _events(tree: ast.Module) -> set[str]:
    """Return the classes that make up the events of a noun: elsewhere they are always named with their module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(name, ast.Name) and name.id == "Event" for name in node.targets
        ):
            return {name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)}
    return set()


def test_a_folder_shows_a_structure_and_is_no_list() -> None:
    counted: dict[str, int] = defaultdict(int)
    for pattern in ("*.py", "*.js"):
        for file in SOURCE.rglob(pattern):
            if file.name != "__init__.py" and "vendor" not in file.parts:
                counted[file.parent.relative_to(SOURCE).as_posix()] += 1
    assert {folder: count for folder, count in counted.items() if count > MAX_MODULES_A_FOLDER} == {}


def test_a_file_has_one_reason() -> None:
    long = {path for path in _modules() if (SOURCE / path).read_text().count("\n") > MAX_LINES_A_FILE}
    assert long == set(LONG_FILES)


def test_a_function_is_simple_and_not_only_short() -> None:
    branchy = {
        f"{path}:{function.name}"
        for path, tree in _modules().items()
        for function in _functions(tree)
        if _is_branchy(function)
    }
    assert branchy == set()


def test_a_class_name_stands_for_one_thing_on_a_floor() -> None:
    named: dict[str, set[str]] = defaultdict(set)
    for path, tree in _modules().items():
        events = _events(tree)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name not in events:
                named[f"{_floor(path)}:{node.name}"].add(path)
    assert {name for name, paths in named.items() if len(paths) > 1} == set()


def test_a_constant_says_what_it_counts() -> None:
    vague = {
        f"{path}:{name.id}"
        for path, tree in _modules().items()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for name in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(name, ast.Name) and VAGUE_CONSTANTS.fullmatch(name.id)
    }
    assert vague == set()


def test_sql_stands_in_the_store_alone() -> None:
    elsewhere = {
        path
        for path, tree in _modules().items()
        if _floor(path) != "store"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value)
    }
    assert elsewhere == set()


def test_git_is_run_by_its_own_floor_alone() -> None:
    """`covey.git.run` is the one door to the program; whoever else wants something of git asks a function of git/."""
    elsewhere = {
        path
        for path, tree in _modules().items()
        if _floor(path) != "git"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        if node.module == "covey.git.run"
        or (node.module == "covey.git" and any(each.name == "run" for each in node.names))
    }
    assert elsewhere == set()


def _last_name(node: ast.expr) -> str:
    """Return the name by which a value is known: of a variable, an attribute, or a field of an answer."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return ""


def _has_words(node: ast.expr) -> bool:
    """Say whether some text has a space between words, so that it is no mere name."""
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return any(re.search(r"\w ", text) for text in texts)


def _reads_sentence(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=[words, *_]):
            return method in READ_IN_PYTHON and _last_name(value) in SENTENCES and _has_words(words)
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            return any(_last_name(each) in SENTENCES for each in sides) and any(map(_has_words, sides))
    return False


def test_code_decides_by_fields_and_not_by_the_wording_of_sentences() -> None:
    """What agents, git and the machine print has to be read as words; what we say ourselves has fields."""
    read = {
        f"{path}:{node.lineno}"
        for path, tree in _modules().items()
        if _floor(path) in ("core", "app", "loops", "hooks", "web", "cli", "daemon")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call | ast.Compare) and _reads_sentence(node)
    }
    page = (SOURCE / "web" / "page" / "js").rglob("*.js")
    assert read | {str(each) for each in page if READ_ON_THE_PAGE.search(each.read_text())} == set()


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_what_the_docs_name_is_there(page: str) -> None:
    named = re.findall(
        r"`((?:core|app|loops|git|cli|store|web|agents|runners|hooks)/[a-z_/]+)(?:\.py)?`", (ROOT / page).read_text()
    )
    assert [name for name in named if not (SOURCE / name).is_dir() and not (SOURCE / f"{name}.py").is_file()] == []


def _listed(path: str, opening: str) -> list[str]:
    """Return the words of a list in the page's code, which begins behind an opening."""
    return re.findall(
        r'"([\w-]+)"', (SOURCE / "web" / "page" / "js" / path).read_text().split(opening)[1].split("];")[0]
    )


def test_what_the_page_lists_of_views_and_topics_is_complete() -> None:
    places = (SOURCE / "web" / "page" / "js" / "app.js").read_text()
    assert _listed("data/routes.js", "const NAMES = [") == re.findall(r'\bid: "(\w+)"', places)
    told = {noun.topic for noun in NOUNS} - {"board"} | {"tasks"}  # of the board, the rows themselves are sent
    assert set(_listed("widgets/view_hooks.js", "export const ALL = [")) == told


def test_commits_that_are_named_as_examples_exist() -> None:
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout

    named = re.findall(r"`([0-9a-f]{7,40})`", (ROOT / "CONTRIBUTING.md").read_text())
    is_shallow = git("rev-parse", "--is-shallow-repository").strip() == "true"
    assert named and (is_shallow or git("rev-list", "--no-walk", *named).count("\n") == len(set(named)))
