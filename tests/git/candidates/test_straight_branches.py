"""What is read here of straight branches is what git says of them, or is left to git."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from covey.git import objects
from covey.git import project as projects
from covey.git.candidates import chain_inputs, incoming
from covey.git.project import Project
from tests.worlds.crafted import FILE, FOLDER, Forge
from tests.worlds.repositories import commit_files, git_out, make_repository

COMMITS = 60
WORLDS = range(6)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return projects.find(make_repository(tmp_path / "repo", {"a": "a\n", "part/b": "b\n"}))


def _history(path: Path, seed: int) -> dict[str, set[str]]:
    """Make commits with one parent or two, at dates of no order, and return what each of them holds."""
    chance = random.Random(seed)
    lines = []
    held: list[set[int]] = [set()]
    for mark in range(1, COMMITS + 1):
        parents = chance.sample(range(max(1, mark - 8), mark), min(mark - 1, chance.choice((1, 1, 1, 2))))
        held.append({mark}.union(*(held[parent] for parent in parents)))
        lines += ["commit refs/heads/any", f"mark :{mark}"]
        lines += [f"author Ada Löv {mark} <ada@x> {mark} +0130", f"committer C <c@x> {chance.randrange(99)} +0000"]
        lines += [f"data {len(f'Änder {mark}'.encode())}", f"Änder {mark}"]
        lines += [f"{word} :{parent}" for word, parent in zip(("from", "merge"), parents, strict=False)]
        lines += ["deleteall"] if chance.random() < 0.1 else []
        for _ in range(3):
            name = chance.choice(("a", "a/b", "a/c/d", "a.b", "e", "f/g"))
            lines += [f"M {chance.choice(('644', '755', '120000'))} inline {name}", "data 1", chance.choice("xyz")]
    git_out(path, "fast-import", "--quiet", "--export-marks=marks", "--force", stdin="\n".join([*lines, ""]))
    marks = (line.split() for line in (path / "marks").read_text().splitlines())
    names = {int(mark.lstrip(":")): name for mark, name in marks}
    return {name: {names[each] for each in held[mark]} for mark, name in names.items()}


@pytest.mark.parametrize("seed", WORLDS)
def test_what_any_commit_adds_to_another_is_known_whatever_the_dates_are(project: Project, seed: int) -> None:
    held = _history(project.root, seed)
    chance, read = random.Random(seed), 0
    for base, tip in (chance.sample(sorted(held), 2) for _ in range(200)):
        found = chain_inputs.branches(project, base, [tip])
        if found is not None:
            (branch,) = found
            assert {each.name for each in branch.own} == held[tip] - held[base]
            assert branch.forks[0].name in held[tip] & held[base]
            assert [each.parents for each in branch.own] == [(each.name,) for each in (*branch.forks, *branch.own)][:-1]
            read += 1
    assert read > 20


@pytest.mark.parametrize("seed", WORLDS)
def test_commits_and_folders_are_read_as_git_reads_them(
    project: Project, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    pairs = [chance.sample(sorted(_history(project.root, seed)), 2) for _ in range(20)]
    trees = [_trees(project, *pair) for pair in pairs]
    straight = [chain_inputs.branches(project, *(base, [tip])) for base, tip in pairs]
    commits = [[each for branch in found or () for each in (*branch.forks, *branch.own)] for found in straight]
    differ = [chain_inputs.differences(project, [each]) for each in trees]
    monkeypatch.setattr(chain_inputs, "MAX_READ_HERE", -1)
    for (base, tip), own, pair, here in zip(pairs, commits, trees, differ, strict=True):
        graph = chain_inputs.works(project, base, [tip])[1]
        for each in own:
            assert each.name not in graph or replace(graph[each.name], is_own=each.is_own) == each
        assert here is not None
        by_git = chain_inputs.changes(project, [pair])[pair]
        assert sorted(here[pair].changes, key=repr) == sorted(by_git, key=repr)


def _trees(project: Project, *commits: str) -> tuple[str, str]:
    one, other = (git_out(project.root, "rev-parse", f"{commit}^{{tree}}") for commit in commits)
    return one, other


def test_a_branch_that_main_has_left_behind_needs_no_process(project: Project, asked: Callable[[], list[str]]) -> None:
    path = project.root
    tips = []
    for number in range(6):
        git_out(path, "switch", "-q", "-c", f"work-{number}", "main~1" if number > 1 else "main")
        commit_files(path, {f"part/{number}": "new\n"}, f"Change {number}")
        commit_files(path, {f"more/{number}": "new\n"}, f"Change {number} again")
        tips.append(git_out(path, "rev-parse", "HEAD"))
        git_out(path, "switch", "-q", "main")
        if number < 5:
            git_out(path, "merge", "-q", "--no-ff", "-m", "Land it", tips[-1])
    base = git_out(path, "rev-parse", "main")
    objects.close()
    asked()
    assert incoming.look(project, base, [tips[5]]) == {tips[5]: ()}
    works, graph = chain_inputs.works(project, base, [tips[5]])
    work = works[tips[5]]
    assert work.fork is not None
    changed = chain_inputs.changes(project, [(work.fork.tree, graph[tips[5]].tree)])
    assert asked() == ["cat-file"]
    assert [commit.message for commit in work.own] == ["Change 5\n", "Change 5 again\n"]
    assert [each.path for each in next(iter(changed.values()))] == [b"more/5", b"part/5"]


def test_what_is_not_plainly_written_is_left_to_git(project: Project) -> None:
    path, base = project.root, git_out(project.root, "rev-parse", "main")
    git_out(path, "-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-m", "Gr\xfc\xdfe")
    tip = git_out(path, "rev-parse", "HEAD")
    assert chain_inputs.branches(project, base, [tip]) is None
    (commit,) = chain_inputs.works(project, base, [tip])[0][tip].own
    assert commit.name == tip
    assert chain_inputs.branches(project, base, ["HEAD"]) is None
    assert chain_inputs.branches(project, base, [tip] * (chain_inputs.MAX_READ_HERE + 1)) is None


def test_parents_that_somebody_else_names_are_left_to_git(project: Project) -> None:
    base = git_out(project.root, "rev-parse", "main")
    tip = git_out(commit_files(project.root, {"new": "new\n"}, "Change"), "rev-parse", "HEAD")
    assert chain_inputs.branches(project, base, [tip]) is not None
    (project.common / "info").mkdir(exist_ok=True)
    (project.common / "info" / "grafts").write_text(f"{tip}\n")
    assert chain_inputs.branches(project, base, [tip]) is None


def test_a_clone_whose_objects_are_elsewhere_is_left_to_git(project: Project) -> None:
    base = git_out(project.root, "rev-parse", "main")
    tip = git_out(commit_files(project.root, {"new": "new\n"}, "Change"), "rev-parse", "HEAD")
    (project.common / "objects" / "pack" / "pack-1.promisor").touch()
    assert chain_inputs.branches(project, base, [tip]) is None


def test_a_folder_under_many_names_is_not_unfolded(tmp_path: Path) -> None:
    forge = Forge(make_repository(tmp_path / "project", {"a": "a\n"}))
    one = forge.tree([(FILE, b"file%04d" % number, forge.blob()) for number in range(2000)])
    many = forge.tree([(FOLDER, b"copy%03d" % number, one) for number in range(120)])
    project, old = projects.find(forge.path), forge.git("rev-parse", "main^{tree}")
    assert chain_inputs.differences(project, [(old, many)]) is None
    (finding,) = incoming.look(project, forge.main(), [tip := forge.commit(many, parents=[forge.main()])])[tip]
    assert finding.is_heavy


@pytest.mark.parametrize(
    "odd", [{"extra": b"author Bob <bob@x> 1700000000 +0000\n"}, {"author": b"A\0da <ada@x> 1700000000 +0000"}]
)
def test_a_commit_that_programs_read_differently_is_left_to_git(tmp_path: Path, odd: dict[str, bytes]) -> None:
    forge = Forge(make_repository(tmp_path / "project", {"a": "a\n"}))
    tree = forge.git("rev-parse", "main^{tree}")
    plain, other = (forge.commit(tree, parents=[forge.main()], **more) for more in ({}, odd))
    project = projects.find(forge.path)
    assert chain_inputs.branches(project, forge.main(), [plain]) is not None
    assert chain_inputs.branches(project, forge.main(), [other]) is None


def test_a_folder_out_of_order_is_left_to_git(tmp_path: Path) -> None:
    forge = Forge(make_repository(tmp_path / "project", {"a": "a\n"}))
    entries = [(FILE, b"a", forge.blob()), (FILE, b"b", forge.blob())]
    project = projects.find(forge.path)
    assert chain_inputs.differences(project, [("", forge.tree(entries))]) is not None
    assert chain_inputs.differences(project, [("", forge.tree(entries[::-1]))]) is None


def test_threads_read_at_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_inputs, "MAX_REMEMBERED_ENTRIES", 40)
    trees = {_trees(project, *pair) for pair in pairwise(sorted(_history(project.root, 0)))}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda pair: chain_inputs.differences(project, [pair]), [*trees] * 20))
    assert None not in found


def test_an_object_that_is_not_what_its_name_says_is_left_to_git(project: Project) -> None:
    path, base = project.root, git_out(project.root, "rev-parse", "main")
    tip = git_out(commit_files(path, {"new": "new\n"}, "Change"), "rev-parse", "HEAD")
    place = project.common / "objects" / tip[:2] / tip[2:]
    whole = zlib.decompress(place.read_bytes())
    place.chmod(0o644)
    place.write_bytes(zlib.compress(whole.replace(b"Change", b"Chance")))
    assert chain_inputs.branches(project, base, [tip]) is None


def test_many_copies_of_a_folder_that_main_has_elsewhere_are_found(tmp_path: Path) -> None:
    forge = Forge(make_repository(tmp_path / "project", {"old/file": "a\n"}))
    old = forge.git("rev-parse", "main:old")
    many = forge.tree([(FOLDER, b"old%03d" % number, old) for number in range(101)])
    tip = forge.commit(forge.tree([(FOLDER, b"many", many), (FOLDER, b"old", old)]), parents=[forge.main()])
    (finding,) = incoming.look(projects.find(forge.path), forge.main(), [tip])[tip]
    assert finding.is_heavy and "102 times" in finding.what
