"""A permit lets through what a person allowed, and never anything that rides along."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from covey.core import nouns
from covey.core.people import permits
from covey.core.people.permits import SHELL, Granted, Revoked, covers

CHAINS = list(";&|`$()<>\n\\")
words = st.text(
    st.characters(codec="utf-8", exclude_characters="".join(CHAINS) + "'\""), min_size=1, max_size=8
).filter(lambda word: len(word.split()) == 1 and word == word.strip())
commands = st.lists(words, min_size=1, max_size=5).map(" ".join)
anything = st.text(st.sampled_from([*CHAINS, *"abn -/\t"]), max_size=12) | commands
tools = st.sampled_from([SHELL, "Edit", "WebFetch"])


@given(tools, anything)
def test_a_permit_for_something_covers_just_that(tool: str, about: str) -> None:
    assume(about.strip())
    assert covers(tool, about, tool, about)
    assert covers(tool, about, tool, f"  {about}\n"), "blanks around it say nothing"


@given(tools, tools, anything)
def test_a_permit_for_one_tool_covers_no_other(tool: str, other: str, about: str) -> None:
    assume(tool != other)
    assert not covers(tool, about, other, about)


@given(commands, st.lists(words, max_size=4))
def test_a_command_covers_all_that_begins_with_its_words(allowed: str, more: list[str]) -> None:
    assert covers(SHELL, allowed, SHELL, " ".join([allowed, *more]))


@pytest.mark.parametrize(
    ("rule", "push"),
    [
        ("git", "git push --no-verify origin HEAD:main"),
        ("git push", "git push --no-verify origin HEAD:main"),
        ("git", "git -c core.hooksPath= push origin main"),
        ("git", "git send-pack ../origin.git HEAD:refs/heads/main"),
        ("sh -c", "sh -c 'git push --no-verify origin HEAD:main'"),
        ("env", "env -i /usr/bin/git push origin HEAD:main"),
    ],
)
def test_a_push_that_git_would_not_ask_about_is_covered_and_offered_by_no_rule(rule: str, push: str) -> None:
    assert not covers(SHELL, rule, SHELL, push)
    assert covers(SHELL, push, SHELL, push)
    assert permits.offered(SHELL, push) is None
    assert covers(SHELL, "git", SHELL, "git push origin main"), "there git itself asks"


@given(commands, anything, st.sampled_from(CHAINS), anything)
def test_a_chained_command_is_covered_only_word_for_word(allowed: str, head: str, chain: str, tail: str) -> None:
    asked = f"{allowed} {head}{chain}{tail}"
    assume(any(mark in asked.strip() for mark in CHAINS))
    assert covers(SHELL, allowed, SHELL, asked) is (allowed.strip() == asked.strip())


@given(anything, anything)
def test_a_permit_for_a_chain_covers_nothing_else(allowed: str, asked: str) -> None:
    assume(any(mark in allowed.strip() for mark in CHAINS))
    assert covers(SHELL, allowed, SHELL, asked) is (allowed.strip() == asked.strip())


@given(st.sampled_from(["", " ", "\n"]), anything)
def test_no_permit_is_for_the_whole_shell_but_one_may_be_for_another_tool(nothing: str, asked: str) -> None:
    assert not covers(SHELL, nothing, SHELL, asked)
    assert covers("Edit", nothing, "Edit", asked)


@given(commands, commands, commands)
def test_what_is_covered_by_less_is_covered_by_all_that_cover_that(one: str, two: str, three: str) -> None:
    two, three = f"{one} {two}", f"{one} {two} {three}"
    assert covers(SHELL, two, SHELL, three) and covers(SHELL, one, SHELL, two) and covers(SHELL, one, SHELL, three)


@pytest.mark.parametrize(
    ("allowed", "asked"),
    [
        ("npm test", "npm tests"),
        ("npm test", "npm"),
        ("npm test", "npm run test"),
        ("npm test", "npm test && rm -rf /"),
        ("npm test", "npm test $(rm -rf /)"),
        ("npm test", "npm test\nrm -rf /"),
        ("npm test", "npm test > /etc/passwd"),
        ("git", "git log | sh"),
    ],
)
def test_what_is_like_a_command_is_not_that_command(allowed: str, asked: str) -> None:
    assert not covers(SHELL, allowed, SHELL, asked)


def test_of_another_tool_only_exactly_what_was_allowed_is_covered() -> None:
    assert covers("WebFetch", "https://a.example", "WebFetch", "https://a.example")
    assert not covers("WebFetch", "https://a.example", "WebFetch", "https://a.example /more")


def test_a_permit_lives_until_it_is_revoked() -> None:
    permit = nouns.first(permits.Permit, "permit-3", 3, Granted(tool=SHELL, about="make"), 5.0, "owner")
    assert (permit.by, permit.granted, permit.revoked) == ("owner", 5.0, None)
    revoked = permits.apply(permit, Revoked(), 8.0, "owner")
    assert (revoked.revoked, revoked.granted, revoked.about) == (8.0, 5.0, "make")
