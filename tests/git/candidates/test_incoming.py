"""What is new is read and held against the rules before any merge, all branches at once and none at another's cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.core.merging.tree_rules import Finding
from covey.errors import ToolFailed
from covey.git.candidates import incoming
from covey.git.project import find as find_project
from tests.worlds.crafted import BROKEN, FILE, HONEST, MODULE, ODD, Forge
from tests.worlds.repositories import git_out, make_repository


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Forge:
    return Forge(make_repository(tmp_path_factory.mktemp("forge") / "project"))


def _look(forge: Forge, *tips: str, base: str = "") -> dict[str, tuple[Finding, ...]]:
    return incoming.look(find_project(forge.path), base or forge.main(), tips)


@pytest.mark.parametrize("name", BROKEN)
def test_what_no_tool_can_read_is_found(forge: Forge, name: str) -> None:
    tip = BROKEN[name](forge)
    found = _look(forge, tip)[tip]
    assert found and any(not each.is_odd for each in found), found
    assert all(each.what.isprintable() for each in found)


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_waits_for_a_person(forge: Forge, name: str) -> None:
    tip = ODD[name](forge)
    found = _look(forge, tip)[tip]
    assert found and all(each.is_odd for each in found), found
    assert all(each.what.isprintable() for each in found)


@pytest.mark.parametrize("name", HONEST)
def test_what_git_itself_writes_is_fine(forge: Forge, name: str) -> None:
    tip = HONEST[name](forge)
    assert _look(forge, tip) == {tip: ()}


def test_bad_ones_among_many_are_named_and_the_others_are_fine(forge: Forge) -> None:
    bad = {BROKEN[name](forge) for name in ("a short tree", "a missing parent", "dot dot", "no author")}
    good = {HONEST[name](forge) for name in HONEST}
    found = _look(forge, *sorted(bad | good))
    assert {tip for tip, findings in found.items() if findings} == bad


def test_what_an_older_commit_of_a_branch_had_and_the_tip_has_no_more_is_only_looked_at_for_what_is_broken(
    forge: Forge,
) -> None:
    tree = forge.git("rev-parse", "main^{tree}")
    odd, broken = ODD["a submodule"](forge), BROKEN["dot dot"](forge)
    mended = [forge.commit(tree, parents=[each]) for each in (odd, broken)]
    found = _look(forge, *mended)
    assert found[mended[0]] == () and found[mended[1]]


def test_what_main_has_already_is_nothing_new(tmp_path: Path) -> None:
    forge = Forge(make_repository(tmp_path / "project"))
    odd = [
        (MODULE, b"sub", forge.main()),
        (FILE, b".gitmodules", forge.blob(b'[submodule "sub"]\n\tpath = sub\n\turl = ./x\n')),
        (FILE, b"line\nend", forge.blob()),
        (FILE, b".gitattributes", forge.blob(b"*.psd filter=lfs diff=lfs\n")),
        (FILE, b"Readme", forge.blob()),
        (FILE, b"readme", forge.blob()),
    ]
    before = forge.main()
    git_out(forge.path, "update-ref", "refs/heads/main", forge.adding(*odd))
    old = forge.main()
    assert _look(forge, forge.main(), base=before)[forge.main()], "it was new once"
    beside = forge.adding((FILE, b"beside", forge.blob()))
    further = forge.adding((FILE, b".gitattributes", forge.blob(b"*.c text\n*.psd filter=lfs diff=lfs\n")))
    filtered = forge.adding((FILE, b".gitattributes", forge.blob(b"* filter=lfs\n")))
    changed = forge.adding((FILE, b"line\nend", forge.blob(b"two\n")))
    moved = forge.adding((MODULE, b"sub", beside))
    others = forge.adding((FILE, b".gitmodules", forge.blob(b'[submodule "sub"]\n\tpath = sub\n\turl = ./y\n')))
    found = _look(forge, beside, further, filtered, changed, moved, others)
    assert found[beside] == () and found[changed] == () and found[further] == () and len(found[filtered]) == 1
    assert [each.path for each in found[moved]] == [b"sub"] and [each.path for each in found[others]] == [
        b".gitmodules"
    ]
    git_out(forge.path, "update-ref", "refs/heads/main", moved)
    later = forge.commit(forge.git("rev-parse", f"{beside}^{{tree}}"), parents=[old])
    assert _look(forge, later) == {later: ()}, "it has what main had where it began"


def test_a_file_is_no_commit(forge: Forge) -> None:
    blob = forge.blob(b"not on main\n")
    assert [each.is_odd for each in _look(forge, blob)[blob]] == [False]


def test_a_repository_without_its_main_is_nobodys_fault(tmp_path: Path) -> None:
    forge = Forge(make_repository(tmp_path / "project"))
    with pytest.raises(ToolFailed):
        _look(forge, HONEST["a plain file"](forge), base="34" * 20)
