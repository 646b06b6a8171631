"""Which folders and commits may land, for any names, orders, depths and dates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.merging import commit_rules, tree_rules
from covey.core.merging.tree_rules import DEEPEST_FOLDERS, FILE_MODES, FOLDER, LINK, Entry, Folder

HASH = b"\x01" * 20
PLAIN = st.text("abcdefgh-_.äß0123456789", min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..") and not tree_rules.is_dot_git(name)
)
BAD = st.sampled_from([b"", b".", b"..", b".git", b".GIT", b"git~1", b".git. ", b"a/b", b"/", b"n" * 256])


def _key(entry: Entry) -> bytes:
    return entry.name + b"/" if entry.is_folder else entry.name


@st.composite
def trees(draw: st.DrawFn) -> list[Entry]:
    """Return a tree as git would write it."""
    names = draw(st.lists(PLAIN, max_size=8, unique_by=str.casefold))
    modes = st.sampled_from([*FILE_MODES, LINK, FOLDER])
    return sorted((Entry(draw(modes), name.encode(), HASH) for name in names), key=_key)


def _written(tree: list[Entry]) -> bytes:
    return b"".join(each.mode + b" " + each.name + b"\0" + each.hash for each in tree)


@given(trees())
def test_a_tree_that_git_would_write_is_read_as_it_is_and_nothing_is_wrong_with_it(tree: list[Entry]) -> None:
    assert tree_rules.entries(_written(tree), len(HASH)) == tree
    assert [finding.what for finding in tree_rules.check(tree, b"") if not finding.is_odd] == []


@given(trees(), BAD)
def test_one_bad_name_is_found_in_any_tree(tree: list[Entry], name: bytes) -> None:
    spoiled = sorted([*tree, Entry(FILE_MODES[0], name, HASH)], key=_key)
    assert [finding for finding in tree_rules.check(spoiled, b"a/") if not finding.is_odd]


@given(trees().filter(bool), st.data())
def test_an_entry_twice_or_out_of_order_is_found_in_any_tree(tree: list[Entry], data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(tree))
    other = Entry(FOLDER if again.mode != FOLDER else FILE_MODES[0], again.name, HASH)
    assert [each for each in tree_rules.check(sorted([*tree, other], key=_key), b"") if not each.is_odd]
    turned = tree[::-1]
    if len(tree) > 1:
        assert [each for each in tree_rules.check(turned, b"") if not each.is_odd]


ANY_NAME = st.one_of(PLAIN.map(str.encode), BAD, st.sampled_from([b"a", b"A", b"a.b", b"a-", b".gitmodules", b"b\n"]))
ANY_ENTRY = st.builds(
    Entry,
    st.sampled_from([*FILE_MODES, FOLDER, LINK, b"040000", b"100664"]),
    ANY_NAME,
    st.sampled_from([HASH, bytes(20)]),
)


@given(st.lists(ANY_ENTRY, max_size=6), st.booleans())
def test_in_a_folder_that_is_taken_for_plain_nothing_is_found(tree: list[Entry], in_order: bool) -> None:
    tree = sorted(tree, key=_key) if in_order else tree
    plain = tree_rules.plain_rows(_written(tree), len(HASH))
    if plain is not None:
        assert [Entry(*row) for row in plain] == tree
        assert list(tree_rules.check(tree, b"")) == []
        assert not any(tree_rules.is_modules(each) or tree_rules.is_attributes(each) for each in tree)


@pytest.mark.parametrize("content", [b"0 " * 500_000, b"0" * 1_000_000, b"0 a" * 300_000])
def test_what_is_no_tree_is_known_as_such_at_once(content: bytes) -> None:
    assert tree_rules.rows(content, len(HASH)) is None


def test_a_common_folder_is_plain() -> None:
    tree = [Entry(FILE_MODES[0], b"a-b", HASH), Entry(FILE_MODES[1], b"a.txt", HASH), Entry(FOLDER, b"a", HASH)]
    assert tree_rules.plain_rows(_written(tree), len(HASH)) is not None
    few = [Entry(FILE_MODES[0], b"a", bytes(19) + b"1")]
    assert tree_rules.plain_rows(_written(few), len(HASH)) is not None
    assert tree_rules.plain_rows(_written([Entry(FILE_MODES[0], b"a", bytes(20))]), len(HASH)) is None
    assert tree_rules.plain_rows(_written(tree[::-1]), len(HASH)) is None
    assert tree_rules.plain_rows(_written([*tree, Entry(FILE_MODES[0], b"A.txt", HASH)]), len(HASH)) is None


@given(st.binary(max_size=60))
def test_whatever_stands_in_a_tree_or_commit_is_read_or_refused(content: bytes) -> None:
    found = tree_rules.entries(content, 20)
    assert found is None or _written(found) == content
    for finding in tree_rules.check(found or [], b""):
        assert finding.what.isprintable()
    for finding in commit_rules.read("1" * 40, content).findings:
        assert finding.what.isprintable()


@given(st.binary(min_size=1, max_size=80))
def test_a_path_is_shown_in_one_line_whatever_it_holds(path: bytes) -> None:
    assert tree_rules.shown(path).isprintable()


@given(st.integers(1, 300), st.integers(1, 60))
def test_depth_and_length_are_counted_for_any_chain_of_folders(depth: int, name: int) -> None:
    new = {b"%d" % n: Folder(((b"n" * name, b"%d" % (n + 1)),)) for n in range(depth - 1)}
    new[b"%d" % (depth - 1)] = Folder((), 1, name)
    wrong = [each.what for each in tree_rules.check_shape([b"0"], new)]
    longest = depth * (name + 1) - 1
    assert bool(wrong) is (depth > DEEPEST_FOLDERS or longest > tree_rules.LONGEST_PATH_BYTES)


def test_what_unfolds_to_too_much_is_counted_without_unfolding_it() -> None:
    new = {b"%d" % n: Folder(tuple((b"%d" % each, b"%d" % (n + 1)) for each in range(10))) for n in range(100)}
    new[b"100"] = Folder((), 1, 1)
    assert [each.is_odd for each in tree_rules.check_shape([b"0"], new)] == [True]
    copies = {b"0": Folder(tuple((b"%d" % each, b"old") for each in range(tree_rules.MAX_COPIES + 1)))}
    assert [each.is_odd for each in tree_rules.check_shape([b"0"], copies)] == [True]
    assert list(tree_rules.check_shape([b"not new"], copies)) == []


@pytest.mark.parametrize("seconds", [0, 1, 2**31, 2**32, commit_rules.LATEST_SECONDS])
@pytest.mark.parametrize("zone", ["+0000", "-0330", "+1400", "-1200"])
def test_a_date_that_a_clock_can_show_is_fine(seconds: int, zone: str) -> None:
    who = f"Ada <a@b> {seconds} {zone}"
    text = f"tree {'1' * 40}\nparent {'2' * 40}\nauthor {who}\ncommitter {who}\n\nSay\n"
    read = commit_rules.read("3" * 40, text.encode())
    assert (read.tree, read.parents, read.findings) == ("1" * 40, ("2" * 40,), ())
