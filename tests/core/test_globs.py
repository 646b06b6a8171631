"""Globs, rule by rule, and against a slow matcher that shares no code with the fast one."""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from covey.core import globs
from covey.errors import Invalid

# The slow matcher


def by_hand(pattern: str, path: str) -> bool:
    """Match by recursion over the text of the pattern; knows no escapes and no dots."""
    if pattern.endswith("/"):
        pattern += "**"
    if not re.search(r"[*?\[]", pattern):
        return path == pattern or path.startswith(pattern + "/")
    return by_segments(tuple(pattern.split("/")), tuple(path.split("/")))


def by_segments(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if not pattern or not path:
        return not pattern and not path
    if pattern[0] != "**":
        return by_characters(pattern[0], path[0]) and by_segments(pattern[1:], path[1:])
    if len(pattern) == 1:
        return True
    return by_segments(pattern[1:], path) or by_segments(pattern, path[1:])


@cache
def by_characters(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return by_characters(pattern[1:], name) or (name != "" and by_characters(pattern, name[1:]))
    if not name:
        return False
    if pattern[0] == "[":
        end = pattern.index("]", 2)
        return in_class(pattern[1:end], name[0]) and by_characters(pattern[end + 1 :], name[1:])
    return pattern[0] in ("?", name[0]) and by_characters(pattern[1:], name[1:])


def in_class(body: str, character: str) -> bool:
    if body[0] in "!^":
        return not in_class(body[1:], character)
    if body[1:2] == "-" and len(body) == 3:
        return body[0] <= character <= body[2]
    return character in body


PATHS = [
    path for length in range(1, 7) for path in map("".join, product("abc/", repeat=length)) if all(path.split("/"))
]


@cache
def language(pattern: str) -> frozenset[str]:
    return frozenset(path for path in PATHS if by_hand(pattern, path))


def union(patterns: list[str]) -> frozenset[str]:
    return frozenset().union(*map(language, patterns))


def any_by_hand(patterns: list[str], path: str) -> bool:
    return any(by_hand(pattern, path) for pattern in patterns)


pieces = st.sampled_from(["a", "b", "a", "b", "*", "?", "**", "[ab]", "[!a]", "[a-b]", "[^bc]"])
segments = st.one_of(st.just("**"), st.just("*"), st.lists(pieces, min_size=1, max_size=3).map("".join))
patterns = st.builds(
    lambda parts, end: "/".join(parts) + end,
    st.lists(segments, min_size=1, max_size=4),
    st.sampled_from(["", "", "", "/"]),
)
few = st.lists(patterns, max_size=3)

# Membership


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/auth", "src/auth"),
        ("src/auth", "src/auth/token.py"),
        ("src/auth", "src/auth/deep/token.py"),
        ("src/", "src/a"),
        ("src/**", "src/a"),
        ("src/**", "src/a/b"),
        ("**/x", "x"),
        ("**/x", "a/x"),
        ("**/x", "a/b/x"),
        ("a/**/b", "a/b"),
        ("a/**/b", "a/x/y/b"),
        ("a/**/**/b", "a/b"),
        ("**", "a"),
        ("**", "a/b/c"),
        ("**/**", "a"),
        ("**/", "a"),
        (".", "a/b"),
        ("./", "a/b"),
        ("./src", "src/a"),
        ("src/./a", "src/a"),
        ("*.py", "setup.py"),
        ("*.py", ".py"),
        ("a**b", "ab"),
        ("a**b", "axxb"),
        ("***", "abc"),
        ("a/*", "a/b"),
        ("?", "é"),
        ("[abc]x", "bx"),
        ("[a-cx-z]", "y"),
        ("[!abc]", "d"),
        ("[^abc]", "d"),
        ("[]a]", "]"),
        ("[!]a]", "b"),
        ("[a-]", "-"),
        (r"[\]]", "]"),
        (r"[a\-c]", "-"),
        ("[[]", "["),
        (r"\*", "*"),
        (r"\*", "*/below"),
        (r"a\?b", "a?b"),
        (r"\\", "\\"),
        ("*a*a*b", "aaaaaab"),
        ("[+-9]", "0"),
    ],
)
def test_a_pattern_matches(pattern: str, path: str) -> None:
    assert globs.matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/auth", "src/authority"),
        ("src/auth", "src"),
        ("src/", "src"),
        ("src/**", "src"),
        ("src/**", "src/"),
        ("src/**", "srcs/a"),
        ("**/x", "ax"),
        ("**/x", "x/y"),
        ("a/**/b", "ab"),
        ("a/**/b", "a/xb"),
        ("a/*", "a"),
        ("a/*", "a/b/c"),
        ("a/*", "a/"),
        ("*", "a/b"),
        ("a**b", "a/b"),
        ("*.py", "a/setup.py"),
        ("?", "ab"),
        ("a?b", "a/b"),
        ("[!a]", "/"),
        ("a[!x]b", "a/b"),
        ("a[+-9]b", "a/b"),
        ("a[/]b", "a/b"),
        ("[abc]", "d"),
        ("[abc]", "a/below"),
        ("[!abc]", "a"),
        ("[a-]", "b"),
        (r"[a\-c]", "b"),
        (r"\*", "x"),
        ("*a*a*b", "aaaaaa"),
        ("**", ""),
        ("**", "/a"),
        ("**", "a/"),
        ("**", "a//b"),
    ],
)
def test_a_pattern_does_not_match(pattern: str, path: str) -> None:
    assert not globs.matches(pattern, path)


@settings(max_examples=150, deadline=None)
@given(patterns)
@example("**/*/**")
@example("**/a/**/b*?")
def test_membership_agrees_with_the_slow_matcher_on_every_short_path(pattern: str) -> None:
    assert {path for path in PATHS if globs.matches(pattern, path)} == language(pattern)


def test_many_stars_take_no_exponential_time() -> None:
    assert not globs.matches("*a" * 400, "a" * 390)
    assert not globs.matches("**/a/" * 30 + "b", "/".join("a" * 400))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "is empty"),
        ("/etc", "is absolute"),
        ("../x", "leads out"),
        ("a/../b", "leads out"),
        ("a/..", "leads out"),
        (r"a/\../b", "leads out"),
        ("a\\", "ends in a backslash"),
        ("a/[bc", "not closed"),
        ("[]", "not closed"),
        ("[!]", "not closed"),
        ("[a\\]", "not closed"),
        ("a//b", "empty segment"),
        ("a//", "empty segment"),
        ("[b-a]", "runs backwards"),
        ("a\0", "control character"),
        ("a\n", "control character"),
        ("a\x7f", "control character"),
        ("a" * 1_001, "longer than 1,000 characters"),
        ("/".join("a" * 65), "more than 64 segments"),
    ],
)
def test_a_pattern_that_makes_no_sense_is_refused_with_a_hint(pattern: str, message: str) -> None:
    with pytest.raises(Invalid, match=message) as refusal:
        globs.compile(pattern)
    assert refusal.value.hint.endswith(".") and str(refusal.value).endswith(".")


def test_a_pattern_at_the_limits_is_taken() -> None:
    assert globs.matches("a" * 1_000, "a" * 1_000)
    assert globs.matches("/".join("a" * 64), "/".join("a" * 64))


# What every match starts and ends with


@pytest.mark.parametrize(
    ("pattern", "prefix", "suffix"),
    [
        ("src/auth", "src/auth", ""),
        ("./src", "src", ""),
        ("src/", "src/", ""),
        ("src/**", "src/", ""),
        ("src/**/*.py", "src/", ".py"),
        ("src/**/x.py", "src/", "/x.py"),
        ("**/x.py", "", "x.py"),
        ("**", "", ""),
        (".", "", ""),
        ("src/a*", "src/a", ""),
        ("src/*/b", "src/", "/b"),
        ("a[b]*[c]", "ab", "c"),
        ("a[bc]d", "a", "d"),
        (r"a\*b", "a*b", ""),
        ("?", "", ""),
    ],
)
def test_prefix_and_suffix_are_what_every_match_has(pattern: str, prefix: str, suffix: str) -> None:
    glob = globs.compile(pattern)
    assert (glob.pattern, glob.prefix, glob.suffix) == (pattern, prefix, suffix)


@settings(max_examples=100, deadline=None)
@given(patterns)
def test_every_match_has_the_prefix_and_the_suffix(pattern: str) -> None:
    glob = globs.compile(pattern)
    assert all(path.startswith(glob.prefix) and path.endswith(glob.suffix) for path in language(pattern))


# Two patterns


@pytest.mark.parametrize(
    ("a", "b", "path"),
    [
        ("src/auth", "src", "src/auth"),
        ("src/auth", "src/**", "src/auth"),
        ("src/**", "**/*.py", "src/.py"),
        ("src/*", "*/b?", "src/bx"),
        ("*a", "b*", "ba"),
        ("**", "**", "x"),
        ("a/**", "**/b", "a/b"),
        ("a/**/b", "a/**/c/**", "a/c/b"),
        ("**/.*", ".github/**", ".github/.x"),
        (".*", "?", "."),
        ("[a-m]?", "?[n-z]", "ax"),
        ("[!a-z]", "[!A-Z]", "0"),
        ("A", "[AB]", "A"),
        ("*/**", "**/*/*", "x/x"),
    ],
)
def test_patterns_that_share_a_path_have_a_witness(a: str, b: str, path: str) -> None:
    assert globs.intersect(a, b) and globs.intersect(b, a)
    assert globs.witness(a, b) == path
    assert globs.matches(a, path) and globs.matches(b, path)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("src/auth", "src/authority"),
        ("src/auth", "docs"),
        ("src/**", "sr?"),
        ("src/", "*"),
        ("**/*.py", "**/*.md"),
        ("*", "*/*"),
        ("a/*", "a?"),
        ("a*", "b*"),
        ("*a", "*b"),
        ("[a-m]", "[n-z]"),
        ("[!a]", "[a]"),
        ("a[/]b", "**"),
        ("?", "??"),
        ("**/a/*", "*/b/?/d/c"),
    ],
)
def test_patterns_that_share_no_path_have_no_witness(a: str, b: str) -> None:
    assert not globs.intersect(a, b) and not globs.intersect(b, a)
    assert globs.witness(a, b) is None


@settings(max_examples=300, deadline=None)
@given(patterns, patterns)
@example("**/a/**/b", "**/b/**/a*")
@example("a/*/**", "a/**/*")
def test_intersection_agrees_with_the_slow_matcher(a: str, b: str) -> None:
    found = globs.intersect(a, b)
    assert found == globs.intersect(b, a)
    shared = language(a) & language(b)
    assert found or not shared
    path = globs.witness(a, b)
    assert found == (path is not None)
    if path is not None:
        assert all(path.split("/")) and by_hand(a, path) and by_hand(b, path)
    if path is not None and shared:
        assert len(path) == min(map(len, shared))


# Scopes


def test_a_path_is_covered_by_an_include_unless_an_exclude_matches() -> None:
    assert globs.covered("src/a.py", ["docs", "src"], ["src/b.py"])
    assert not globs.covered("src/b.py", ["docs", "src"], ["src/b.py"])
    assert not globs.covered("tests/a.py", ["docs", "src"], [])
    assert not globs.covered("src/a.py", [], [])


@pytest.mark.parametrize(
    ("include_a", "exclude_a", "include_b", "exclude_b", "expected"),
    [
        (["src"], [], ["src/auth"], [], True),
        (["src"], [], ["docs"], [], False),
        (["src"], ["src/auth"], ["src/auth"], [], False),
        (["src"], ["src/auth/**"], ["src/auth"], [], True),
        (["src"], ["src/auth/*"], ["src/auth/**"], [], True),
        (["src"], ["**/a*"], ["src/*/**"], ["**/[!a]*"], False),
        (["a/*"], ["a/[a-m]*"], ["a/*"], ["a/[n-z]*"], True),
        (["a/[a-z]"], ["a/[a-m]*"], ["a/*"], ["a/[n-z]*"], False),
        (["src/**"], ["src/*/**"], ["src/*/*"], [], False),
        (["**"], ["a/*/b"], ["a/**/b"], ["a/b", "a/*/*/**"], False),
        (["[α-γ]"], ["α", "γ"], ["?"], [], True),
        (["[α-γ]"], ["α", "[β-γ]"], ["?"], [], False),
        (["[α-δ]"], ["[α-β]"], ["?"], [], True),
        ([], ["a"], ["**"], [], False),
    ],
)
def test_an_exclude_is_taken_away_exactly(
    include_a: list[str], exclude_a: list[str], include_b: list[str], exclude_b: list[str], expected: bool
) -> None:
    assert globs.overlap(include_a, exclude_a, include_b, exclude_b) is expected
    assert globs.overlap(include_b, exclude_b, include_a, exclude_a) is expected


@settings(max_examples=300, deadline=None)
@given(few, few, few, few)
def test_overlap_agrees_with_the_slow_matcher(
    include_a: list[str], exclude_a: list[str], include_b: list[str], exclude_b: list[str]
) -> None:
    found = globs.overlap(include_a, exclude_a, include_b, exclude_b)
    shared = (union(include_a) - union(exclude_a)) & (union(include_b) - union(exclude_b))
    assert found or not shared
    path = globs._remainder(tuple(include_a), tuple(include_b), (*exclude_a, *exclude_b))
    assert found == (path is not None)
    if path is not None:
        assert all(path.split("/"))
        assert any_by_hand(include_a, path) and any_by_hand(include_b, path)
        assert not any_by_hand(exclude_a + exclude_b, path)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        (["src"], ["src/auth"], True),
        (["src"], ["src/**"], True),
        (["src/**"], ["src"], False),
        (["src/*"], ["src/**"], False),
        (["**"], ["a", "**/b"], True),
        (["**/*.py"], ["src/**/*.py", "x.[p]y"], True),
        (["**/*.py"], ["x.py"], False),
        (["[a-m]*", "[!a-m]*"], ["*"], True),
        (["?", "??", "???*"], ["*"], True),
        (["?", "???*"], ["*"], False),
        (["*", "*/**/*"], ["**"], True),
        (["a/*", "a/*/**/b"], ["a/**/b"], True),
        (["src", "docs"], ["src", "tests"], False),
        (["src"], [], True),
        ([], ["src"], False),
        ([], ["a[/]b"], True),
    ],
)
def test_containment_is_exact(outer: list[str], inner: list[str], expected: bool) -> None:
    assert globs.contains(outer, inner) is expected


@settings(max_examples=300, deadline=None)
@given(few, few)
@example(["**/a", "**/*[!a]", "**/?*a"], ["**"])
def test_containment_agrees_with_the_slow_matcher(outer: list[str], inner: list[str]) -> None:
    found = globs.contains(outer, inner)
    assert not found or union(inner) <= union(outer)
    path = globs._remainder(tuple(inner), ("**",), tuple(outer))
    assert found == (path is None)
    if path is not None:
        assert all(path.split("/")) and any_by_hand(inner, path) and not any_by_hand(outer, path)


@given(few)
def test_every_scope_contains_itself(scope: list[str]) -> None:
    assert globs.contains(scope, scope)


# Size

AREAS = ["auth", "billing", "search", "mail", "queue", "web", "store", "agents", "loops", "config"]
DEEP = "packages/server/src/main/internal/domain"


def test_scopes_of_a_realistic_size_are_decided_within_the_bound() -> None:
    include = tuple(f"{DEEP}/{area}/**/*.{kind}" for area in AREAS for kind in ("py", "sql"))
    other = tuple(f"**/{area}/**/test_*.py" for area in AREAS) + tuple(f"{DEEP}/{area}" for area in AREAS)
    exclude = (*(f"**/{area}/**/[a-m]*_generated*" for area in AREAS[:8]), "**/migrations/**", "**/.*")
    assert globs._remainder(include, other, exclude) is not None
    everything = tuple(f"**/{area}/**" for area in AREAS)
    assert globs._remainder(include, other, everything) is None
    assert globs._remainder(include, ("**",), (*exclude, *everything)) is None
    by_kind = ("**/*.py", "**/test_*", "**/migrations/**", "packages/*/src/**/*.sql", *exclude[:6])
    assert globs._remainder(include, other, by_kind) is None


# Whether the character seventeen from the end is an `a` takes a set of places for each of 2**16 endings.
EVERY_NAME = ["*a" + "?" * 16, "*[!a]" + "?" * 16, *("?" * length for length in range(1, 17))]


def test_beyond_the_bound_scopes_may_overlap_and_do_not_contain_each_other() -> None:
    with pytest.raises(globs._Exhausted):
        globs._remainder(("*",), ("**",), tuple(EVERY_NAME))
    assert globs.overlap(["*"], EVERY_NAME, ["**"], [])
    assert not globs.contains(EVERY_NAME, ["*"])


def test_two_patterns_are_decided_at_any_length() -> None:
    rng = random.Random(7)
    a = "".join(rng.choice("ab?*") for _ in range(300))
    b = "".join(rng.choice("ab?*") for _ in range(300))
    assert globs.intersect(f"*{a}*", f"*{b}*")
    assert not globs.intersect(f"*{a}x?", f"*{b}y?")
    path = globs.witness(f"*{a[:60]}*", f"*{b[:60]}*")
    assert path is not None and by_hand(f"*{a[:60]}*", path) and by_hand(f"*{b[:60]}*", path)
