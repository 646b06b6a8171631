"""Chains on a main whose trees no git of today would write: nothing in them is lost, whatever links change there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st

from covey.errors import ToolFailed
from covey.git import project as projects
from covey.git.candidates import candidate_chain
from covey.git.candidates.candidate_chain import Link, Policy
from covey.git.candidates.candidates import Change
from covey.git.objects import Writer
from covey.git.tree_edits import Edits
from tests.worlds.crafted import FILE, FOLDER, MODULE, Entry, Forge
from tests.worlds.repositories import git_out, make_repository

POLICIES: tuple[Policy, ...] = ("merge", "squash", "rebase")
PADDED = b"040000"
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
Files = dict[str, str]
"""The text of each path."""
CHANGES: dict[str, Callable[[Files], Files]] = {
    "nothing": lambda files: files,
    "change": lambda files: {**files, "dir/f1": "changed\n"},
    "add": lambda files: {**files, "dir/new": "new\n"},
    "delete": lambda files: {path: text for path, text in files.items() if path != "dir/f1"},
    "delete all": lambda files: {path: text for path, text in files.items() if not path.startswith("dir/")},
    "deeper": lambda files: {**files, "dir/sub/g0": "changed\n", "top": "changed\n"},
    "elsewhere": lambda files: {**files, "other/x": "new\n"},
}


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Forge:
    return Forge(make_repository(tmp_path_factory.mktemp("odd") / "repo", {"a": "a\n", "d/x": "x\n", "d/y": "y\n"}))


def _tree(forge: Forge, files: Files, modes: Callable[[str, bytes], bytes], above: str = "") -> str:
    """Write a folder of files, each with the mode that `modes` makes of git's own."""
    entries: list[Entry] = []
    for name in sorted({path.partition("/")[0] for path in files}):
        inner = {path.partition("/")[2]: text for path, text in files.items() if path.startswith(f"{name}/")}
        path = f"{above}{name}"
        if inner:
            entries.append((modes(path, FOLDER), name.encode(), _tree(forge, inner, modes, f"{path}/")))
        else:
            entries.append((modes(path, FILE), name.encode(), forge.blob(files[name].encode())))
    return forge.tree(sorted(entries, key=lambda entry: entry[1] + (b"/" if entry[0].endswith(b"40000") else b"")))


def _held(path: Path, commit: str) -> str:
    return git_out(path, "ls-tree", "-r", "--full-tree", commit)


def _assert_as_git_merges(forge: Forge, main: str, tips: Sequence[str], policy: Policy) -> list[str]:
    """Chain tips both ways, and return what is in main after each."""
    links = [Link(id=str(n), tip=tip, message="Land", author=("ada", "a@x")) for n, tip in enumerate(tips)]
    project = projects.find(forge.path)
    quick = candidate_chain.extend(project, main, links, policy=policy, at=1_700_000_000)
    slow = candidate_chain.extend(project, main, links, policy=policy, at=1_700_000_000, together=False)
    held = [_held(forge.path, placed.commit) for placed in quick.links]
    assert held == [_held(forge.path, placed.commit) for placed in slow.links]
    assert (quick.stopped is None) == (slow.stopped is None)
    return held


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("what", CHANGES)
def test_a_main_with_padded_modes_keeps_all_that_a_link_does_not_touch(forge: Forge, policy: Policy, what: str) -> None:
    files = {"dir/f0": "0\n", "dir/f1": "1\n", "dir/f2": "2\n", "dir/sub/g0": "g\n", "dir/sub/g1": "h\n", "top": "t\n"}
    main = forge.commit(_tree(forge, files, lambda _, mode: b"0" + mode), parents=[])
    after = CHANGES[what](files)
    tree, beside = (_tree(forge, each, lambda _, mode: mode) for each in (after, {**files, "z": "beside\n"}))
    tips = [forge.commit(tree, parents=[main]), forge.commit(beside, parents=[main])]
    held, _ = _assert_as_git_merges(forge, main, tips, policy)
    assert held == _held(forge.path, forge.commit(tree))
    assert len(held.splitlines()) == len(after)


PATHS = ("a", "d/e/x", "d/e/y", "d/x", "d/y", "d.z", "f/x", "f/g/y")
folder_modes = st.sampled_from((FOLDER, FOLDER, PADDED, b"0040000"))
file_modes = st.sampled_from((FILE, FILE, FILE, b"0100644", b"100664", b"100755"))
mains = st.dictionaries(st.sampled_from(PATHS), st.just("begun\n"), min_size=3)
edits = st.dictionaries(st.sampled_from(PATHS), st.sampled_from((None, "one\n", "two\n")), min_size=1, max_size=2)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=8, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(files=mains, links=st.lists(edits, min_size=1, max_size=2), data=st.data())
def test_any_modes_in_main_give_what_git_merges_one_by_one(
    policy: Policy, files: Files, links: list[dict[str, str | None]], data: st.DataObject
) -> None:
    chosen = {path: (data.draw(folder_modes), data.draw(file_modes)) for path in ("d", "d/e", "f", "f/g", *PATHS)}
    with tempfile.TemporaryDirectory() as folder:
        forge = Forge(make_repository(Path(folder) / "repo"))
        main = forge.commit(_tree(forge, files, lambda path, mode: chosen[path][mode == FILE]), parents=[])
        afters = [{path: text for path, text in {**files, **link}.items() if text is not None} for link in links]
        tips = [forge.commit(_tree(forge, after, lambda _, mode: mode), parents=[main]) for after in afters]
        held = _assert_as_git_merges(forge, main, tips, policy)
        event(f"{len(held)} of {len(tips)} links")


ODD: dict[str, Callable[[Forge], str]] = {
    "a padded folder": lambda f: f.tree([(PADDED, b"d", f.tree([(FILE, b"x", f.blob())]))]),
    "a padded file": lambda f: f.tree([(b"0100644", b"a", f.blob())]),
    "an old mode": lambda f: f.tree([(b"100664", b"a", f.blob())]),
    "a mode that is none": lambda f: f.tree([(b"xyz", b"a", f.blob())]),
    "not in order": lambda f: f.tree([(FILE, b"b", f.blob()), (FILE, b"a", f.blob())]),
    "twice": lambda f: f.tree([(FILE, b"a", f.blob()), (FILE, b"a", f.blob())]),
    "a file and a folder": lambda f: f.tree([(FILE, b"a", f.blob()), (FOLDER, b"a", f.tree([(FILE, b"x", f.blob())]))]),
    "a dot": lambda f: f.tree([(FILE, b".", f.blob())]),
    "two dots": lambda f: f.tree([(MODULE, b"..", f.main())]),
    "no name": lambda f: f.tree([(FILE, b"", f.blob())]),
    "a slash": lambda f: f.tree([(FILE, b"a/b", f.blob())]),
    "dot git": lambda f: f.tree([(FILE, b".GIT", f.blob())]),
    "nothing": lambda f: f.tree([(FILE, b"a", "0" * 40)]),
    "an empty folder": lambda f: f.tree([(FOLDER, b"a", EMPTY)]),
    "a short hash": lambda f: f.put("tree", b"100644 a\0short"),
    "no space": lambda f: f.put("tree", b"100644"),
    "no end": lambda f: f.put("tree", b"100644 a"),
    "a file": lambda f: f.blob(),
}


@pytest.mark.parametrize("what", ODD)
def test_a_tree_that_git_would_write_otherwise_is_left_to_git(forge: Forge, what: str) -> None:
    project = projects.find(forge.path)
    with pytest.raises(ToolFailed):
        Edits(project, ODD[what](forge), Writer(project, 40))


def test_a_change_of_what_is_not_there_is_left_to_git(forge: Forge) -> None:
    project = projects.find(forge.path)
    tree = git_out(forge.path, "rev-parse", "main^{tree}")
    old, other = (FILE, forge.blob(b"x\n").encode()), (FILE, forge.blob(b"other\n").encode())
    cases = [
        [Change(b"d/x", other, old)],
        [Change(b"d/x", None, other)],
        [Change(b"d/x", other, None)],
        [Change(b"d/gone", old, None)],
        [Change(b"gone/x", old, None)],
        [Change(b"d", None, other)],
        [Change(b"d/x", old, None), Change(b"d", None, other)],
        [Change(b"a/b", None, other)],
        [Change(b"./b", None, other)],
        [Change(b"b", None, (FOLDER, other[1]))],
        [Change(b"b", None, (b"100664", other[1]))],
    ]
    for changes in cases:
        with pytest.raises(ToolFailed):
            Edits(project, tree, Writer(project, 40)).apply(changes)
