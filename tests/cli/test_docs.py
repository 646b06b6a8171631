"""What the docs tell people to type is there to be typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.cli.main import COMMANDS, SECTIONS, commands_of, every_command

HOUSE = Path(__file__).parents[2]
PAGES = [HOUSE / "README.md", *sorted((HOUSE / "docs" / "howto").glob("*.md"))]
_BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINE = {
    kind: re.compile(rf"^{mark}covey (\S[^|;&#\n]*)", re.MULTILINE) for kind, mark in (("sh", ""), ("console", r"\$ "))
}
_SPAN = re.compile(r"`covey ([a-z][^`|;&]*)`")


@pytest.fixture(scope="module")
def commands() -> dict[str, set[str]]:
    """Return the options of every command by its name."""
    return {
        name: {option for action in parser._actions for option in action.option_strings}
        for name, parser in every_command()
    }


def _typed(page: Path) -> Iterator[list[str]]:
    """Yield the words behind each `covey` that a page has somebody type, up to where another program's begin."""
    text = page.read_text(encoding="utf-8")
    lines = [line for kind, block in _BLOCK.findall(text) for line in _LINE[kind].findall(block)]
    for line in (*lines, *_SPAN.findall(text)):
        words = line.partition(" -- ")[0].partition(")")[0].split()
        if words and re.fullmatch("[a-z]+", words[0]):
            yield words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_and_option_on_a_page_exists(page: Path, commands: dict[str, set[str]]) -> None:
    for words in _typed(page):
        name = " ".join(words[:2])
        if name not in commands:
            name = words[0]
        if words == [name] and name in COMMANDS and "" not in commands_of(name):
            continue  # the group as such is spoken of
        assert name in commands, words
        options = {word.partition("=")[0] for word in words if re.match("--[a-z]", word)}
        assert options <= commands[name], words


def test_the_pages_have_commands_on_them() -> None:
    assert sum(1 for page in PAGES for _ in _typed(page)) > 200


def test_the_help_lists_every_command_once() -> None:
    listed = [word for section in SECTIONS.values() for word in section]
    assert len(listed) == len(set(listed)) == len(COMMANDS) > 20
    assert {name.split()[0] for name, _ in every_command()} == set(COMMANDS)
