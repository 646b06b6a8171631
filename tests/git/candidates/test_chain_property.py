"""Chains of any branches: what is written together is what git merges one by one."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from covey.git import project as projects
from covey.git.candidates import candidate_chain
from covey.git.candidates.candidate_chain import Chain, Link, Policy
from tests.worlds.repositories import git_out, make_repository, user_env

PATHS = ("a", "b", "c.u", "d", "d/x", "d/y", "d/e/z", "f/x", "f/g/y", "new", 'odd "name"\\\n', "sub")
MODES = ("100644", "100755", "120000", "160000")
Tree = dict[str, tuple[str, str]]


def text(number: int) -> str:
    """Return one of several files that are alike, so that git takes one for another under a new name."""
    lines = [f"line {line} of a file that is long enough to be known again" for line in range(14)]
    lines[number * 3 % 14] = f"changed {number}"
    return "\n".join(lines) + "\n"


FEW, MANY = 25, 200
"""Worlds in `make test`, and in the soak: each costs some dozen git processes."""


@dataclass(frozen=True)
class Write:
    path: str
    mode: str
    number: int


@dataclass(frozen=True)
class Delete:
    path: str


@dataclass(frozen=True)
class Rename:
    old: str
    new: str


Edit = Write | Delete | Rename
paths = st.sampled_from(PATHS)
numbers = st.integers(0, 3)
writes = st.builds(Write, paths, st.sampled_from(("100644",) * 5 + MODES), numbers)
edits: st.SearchStrategy[Edit] = st.one_of(writes, writes, st.builds(Delete, paths), st.builds(Rename, paths, paths))


def put(tree: Tree, path: str, what: tuple[str, str]) -> None:
    for other in list(tree):
        if other.startswith(f"{path}/") or path.startswith(f"{other}/"):
            del tree[other]
    tree[path] = what


def changed(tree: Tree, edit: Edit) -> Tree:
    after = dict(tree)
    match edit:
        case Write(path, mode, number):
            put(after, path, (mode, f"{number + 1:040x}" if mode == "160000" else text(number)))
        case Delete(path):
            for other in [each for each in after if each == path or each.startswith(f"{path}/")]:
                del after[other]
        case Rename(old, new):
            found = {each: after.pop(each) for each in list(after) if each == old or each.startswith(f"{old}/")}
            for each, what in found.items():
                put(after, new + each.removeprefix(old), what)
    return after


@dataclass(frozen=True)
class Branch:
    commits: list[list[Edit]]
    start: int
    """0: from the first commit; 1: from main; 2 and more: from an earlier branch."""


@dataclass(frozen=True)
class World:
    first: list[Edit]
    main: list[list[Edit]]
    branches: list[Branch]


commits = st.lists(st.lists(edits, min_size=1, max_size=3), min_size=1, max_size=2)
worlds = st.builds(
    World,
    st.lists(writes, min_size=3, max_size=8),
    st.lists(st.lists(edits, min_size=1, max_size=2), max_size=2),
    st.lists(st.builds(Branch, commits, st.integers(0, 2)), min_size=1, max_size=4),
)


@dataclass
class Made:
    """A repository that holds a world."""

    path: Path
    commits: dict[str, Tree] = field(default_factory=dict)

    def commit(self, parent: str, edits: list[Edit]) -> str:
        tree = self.commits[parent]
        for edit in edits:
            tree = changed(tree, edit)
        lines = ["commit refs/scratch", "mark :1", "committer Ada <ada@example.org> 1700000000 +0000"]
        lines += [f"data {len('Work')}", "Work", f"from {parent}", "deleteall"]
        lines += ["M 100644 inline .gitattributes", "data 15", "*.u merge=union"]
        for name, (mode, content) in tree.items():
            quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
            if mode == "160000":
                lines += [f"M {mode} {content} {quoted}"]
            else:
                lines += [f"M {mode} inline {quoted}", f"data {len(content)}", content]
        made = git_out(self.path, "fast-import", "--quiet", "--force", stdin="\n".join([*lines, "get-mark :1", ""]))
        self.commits[made] = tree
        return made


def make(world: World, folder: Path) -> tuple[Made, str, list[str]]:
    path = make_repository(folder / "repo", {".gitattributes": "*.u merge=union"})
    made = Made(path)
    root = git_out(path, "rev-parse", "HEAD")
    made.commits[root] = {}
    first = main = made.commit(root, list(world.first))
    for each in world.main:
        main = made.commit(main, each)
    starts, tips = [first, main], []
    for branch in world.branches:
        tip = starts[min(branch.start, len(starts) - 1)]
        for each in branch.commits:
            tip = made.commit(tip, each)
        starts.append(tip)
        tips.append(tip)
    return made, main, tips


def links(tips: list[str]) -> list[Link]:
    return [Link(id=str(n), tip=tip, message=f"Land {n}", author=("ada", "a@x")) for n, tip in enumerate(tips)]


def merged_by_git(path: Path, main: str, tips: list[str]) -> list[str]:
    """Merge tips in a checkout, one after another, and return the trees up to the first conflict."""
    git_out(path, "checkout", "--quiet", "--force", "--detach", main)
    trees = []
    for tip in tips:
        words = ["git", "merge", "--quiet", "--no-ff", "-m", "Merge", tip]
        done = subprocess.run(words, cwd=path, env=user_env(), capture_output=True, check=False)
        if done.returncode != 0:
            break
        trees.append(git_out(path, "rev-parse", "HEAD^{tree}"))
    return trees


@settings(max_examples=FEW)
@given(worlds)
def test_a_chain_of_merges_holds_what_git_merge_gives(world: World) -> None:
    _holds_what_git_gives(world)


@pytest.mark.soak
@settings(max_examples=MANY)
@given(worlds)
def test_a_chain_of_merges_holds_what_git_merge_gives_in_many_worlds(world: World) -> None:
    _holds_what_git_gives(world)


def _holds_what_git_gives(world: World) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made, main, tips = make(world, Path(folder))
        chain = candidate_chain.extend(projects.find(made.path), main, links(tips), policy="merge", at=1_700_000_000)
        trees = [git_out(made.path, "rev-parse", f"{placed.commit}^{{tree}}") for placed in chain.links]
        expected = merged_by_git(made.path, main, tips)
        assert trees == expected
        assert (chain.stopped is None) == (len(expected) == len(tips))
        event(f"{len(chain.links)} of {len(tips)} links")
        git_out(made.path, "fsck", "--strict", "--connectivity-only")


@pytest.mark.parametrize("policy", ["merge", "squash", "rebase", "ff"])
@settings(max_examples=FEW)
@given(world=worlds)
def test_what_is_written_together_is_what_git_merges_one_by_one(policy: Policy, world: World) -> None:
    _is_the_same_one_by_one(policy, world)


@pytest.mark.soak
@pytest.mark.parametrize("policy", ["merge", "squash", "rebase", "ff"])
@settings(max_examples=MANY)
@given(world=worlds)
def test_what_is_written_together_is_what_git_merges_one_by_one_in_many_worlds(policy: Policy, world: World) -> None:
    _is_the_same_one_by_one(policy, world)


def _is_the_same_one_by_one(policy: Policy, world: World) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made, main, tips = make(world, Path(folder))
        project = projects.find(made.path)
        quick, slow = (
            candidate_chain.extend(
                project, main, links(tips), policy=policy, at=1_700_000_000, group="7", together=together
            )
            for together in (True, False)
        )
        assert without_words(quick) == without_words(slow)
        planned = [placed for placed in quick.links if placed.commits]
        event(f"{len(planned)} of {len(tips)} links")


def without_words(chain: Chain) -> tuple[object, ...]:
    return chain.base, chain.links, chain.stopped and chain.stopped.id, chain.stopped and chain.stopped.conflict.files
