"""Where branches come close: what each changes, at which lines, and which ones git cannot merge."""

from __future__ import annotations

import os
import random
import subprocess
from itertools import combinations
from pathlib import Path

import pytest

from covey.git.overlap import overlap
from covey.git.overlap.overlap import Branches, Contact
from covey.git.project import Project
from tests.worlds.repositories import commit_files, git_out, make_repository, user_env

LINES = "".join(f"line {number}\n" for number in range(1, 41))


class Repository:
    """A repository on whose branches files are written."""

    def __init__(self, root: Path, files: dict[str, str]) -> None:
        self.root = make_repository(root, files)
        self.project = Project(root, root / ".git", bare=False)
        self.branches = Branches(self.project)

    @property
    def main(self) -> str:
        """Return main's commit."""
        return git_out(self.root, "rev-parse", "main")

    def branch(self, name: str, files: dict[str, str | None], start: str = "main") -> str:
        """Commit files on a branch, None takes one away, and return its tip."""
        known = git_out(self.root, "branch", "--list", f"covey/{name}")
        git_out(self.root, "checkout", "-q", *([] if known else ["-b"]), f"covey/{name}", *([] if known else [start]))
        for path in [path for path, text in files.items() if text is None]:
            git_out(self.root, "rm", "-q", "-r", path)
        commit_files(self.root, {path: text for path, text in files.items() if text is not None}, name)
        git_out(self.root, "checkout", "-q", "main")
        return git_out(self.root, "rev-parse", f"covey/{name}")

    def meet(self, one: str, other: str) -> Contact:
        """Return how two commits meet."""
        tips = [tip for tip in (one, other) if tip != self.main]
        self.branches.look(self.main, tips)
        mains = [(tip, self.main) for tip in tips]
        return self.branches.compare(self.main, [*mains, (one, other)])[one, other]

    def conflicts(self, one: str, other: str) -> tuple[str, ...]:
        """Return the files that git itself cannot merge, asked for this pair alone."""
        done = subprocess.run(
            ["git", "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", one, other],
            cwd=self.root, env=user_env(), capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        return tuple(sorted({name.decode() for name in done.stdout.split(b"\0")[1:] if name}))


@pytest.fixture
def there(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop", {"a.txt": LINES, "b.txt": LINES, "src/c.txt": LINES, "src/d.txt": "d\n"})


def changed(*numbers: int, by: str = "changed") -> str:
    return "".join(f"line {n}{f' {by}' if n in numbers else ''}\n" for n in range(1, 41))


def test_branches_that_write_other_files_do_not_meet(there: Repository) -> None:
    one, other = there.branch("T-1", {"a.txt": changed(3)}), there.branch("T-2", {"b.txt": changed(3)})
    assert there.meet(one, other) == Contact()


@pytest.mark.parametrize(
    ("line", "close", "conflict"), [(3, True, True), (4, True, True), (7, True, False), (8, False, False)]
)
def test_how_far_apart_two_changes_are_decides_how_close_branches_come(
    there: Repository, line: int, close: bool, conflict: bool
) -> None:
    one = there.branch("T-1", {"a.txt": changed(3, by="one")})
    other = there.branch("T-2", {"a.txt": changed(line, by="two")})
    found = there.meet(one, other)
    assert found == Contact(("a.txt",), ("a.txt",) if close else (), ("a.txt",) if conflict else ())


def test_what_both_change_alike_is_no_overlap(there: Repository) -> None:
    one = there.branch("T-1", {"a.txt": changed(3), "b.txt": changed(3, 20, by="x")})
    other = there.branch("T-2", {"a.txt": changed(3), "b.txt": changed(3, by="x")})
    assert there.meet(one, other) == Contact(("b.txt",))


def test_a_branch_that_was_begun_on_another_does_not_meet_it(there: Repository) -> None:
    one = there.branch("T-1", {"a.txt": changed(3, by="one")})
    other = there.branch("T-2", {"a.txt": changed(3, by="two")}, start=one)
    assert there.meet(one, other) == Contact()
    assert there.meet(other, one) == Contact()


def test_lines_are_compared_where_they_are_by_now(there: Repository) -> None:
    one = there.branch("T-1", {"a.txt": changed(30, by="one")})
    commit_files(there.root, {"a.txt": "new\n" * 20 + LINES}, "main moves on")
    near = there.branch("T-2", {"a.txt": "new\n" * 20 + changed(32, by="two")})
    far = there.branch("T-3", {"a.txt": "new\n" * 20 + changed(10, by="three")})
    assert there.meet(one, near).close == ("a.txt",)
    assert there.meet(near, one).close == ("a.txt",)
    assert there.meet(one, far) == Contact(("a.txt",))
    assert there.meet(far, one) == Contact(("a.txt",))


def test_a_conflict_with_main_is_no_conflict_with_whoever_began_later(there: Repository) -> None:
    one = there.branch("T-1", {"a.txt": changed(3, by="one")})
    commit_files(there.root, {"a.txt": changed(3, by="main")}, "main moves on")
    other = there.branch("T-2", {"b.txt": changed(3)})
    assert there.meet(one, there.main).conflicts == ("a.txt",)
    assert there.meet(one, other) == Contact()


def test_a_branch_that_merged_main_changes_only_what_is_its_own(there: Repository) -> None:
    one = there.branch("T-1", {"a.txt": changed(3)})
    commit_files(there.root, {"b.txt": changed(7, by="main")}, "main moves on")
    git_out(there.root, "checkout", "-q", "covey/T-1")
    git_out(there.root, "merge", "-q", "--no-edit", "main")
    git_out(there.root, "checkout", "-q", "main")
    one = git_out(there.root, "rev-parse", "covey/T-1")
    assert set(there.branches.look(there.main, [one])[one].files) == {b"a.txt"}


def test_main_may_take_in_a_part_of_a_branch(there: Repository) -> None:
    first = there.branch("T-1", {"a.txt": changed(3)})
    tip = there.branch("T-1", {"b.txt": changed(3)})
    assert set(there.branches.look(there.main, [tip])[tip].files) == {b"a.txt", b"b.txt"}
    git_out(there.root, "merge", "-q", "--ff-only", first)
    assert set(there.branches.look(there.main, [tip])[tip].files) == {b"b.txt"}


def test_pictures_renames_modes_and_strange_names_are_compared(there: Repository) -> None:
    strange = 'we"ird\n\tname [*].txt'
    (there.root / "pic").write_bytes(b"\0\1\2" * 100)
    git_out(there.root, "add", "pic")
    commit_files(there.root, {strange: LINES}, "more")
    git_out(there.root, "commit", "-q", "--amend", "--no-edit")
    git_out(there.root, "checkout", "-q", "-b", "covey/T-1")
    (there.root / "pic").write_bytes(b"\0\1\3" * 100)
    git_out(there.root, "add", "pic")
    one = there.branch("T-1", {strange: changed(3, by="one").replace("line 1\n", "line 1\n"), "a.txt": None})
    git_out(there.root, "checkout", "-q", "-b", "covey/T-2", "main")
    (there.root / "pic").write_bytes(b"\0\1\4" * 100)
    (there.root / "b.txt").chmod(0o755)
    git_out(there.root, "add", "pic", "b.txt")
    other = there.branch("T-2", {strange: changed(5, by="two"), "a.txt": changed(9)})
    found = there.meet(one, other)
    assert set(found.shared) == {"pic", strange, "a.txt"}
    assert set(found.close) == {"pic", strange, "a.txt"}
    assert tuple(sorted(found.conflicts)) == there.conflicts(one, other)
    assert {"pic", "a.txt"} <= set(found.conflicts)


def test_a_file_that_got_another_name_is_merged_and_still_told_of(there: Repository) -> None:
    one = there.branch("T-1", {"a.txt": None, "moved.txt": LINES})
    other = there.branch("T-2", {"a.txt": changed(9)})
    assert there.meet(one, other) == Contact(("a.txt",), ("a.txt",), ())


def test_a_folder_and_a_file_of_one_name_are_a_conflict(there: Repository) -> None:
    one, other = there.branch("T-1", {"new": "file\n"}), there.branch("T-2", {"new/file": "folder\n"})
    assert there.meet(one, other).conflicts
    assert there.conflicts(one, other)


def test_a_new_file_in_a_folder_that_got_another_name_is_a_conflict(there: Repository) -> None:
    moved: dict[str, str | None] = {"src/c.txt": None, "src/d.txt": None, "lib/c.txt": LINES, "lib/d.txt": "d\n"}
    one, other = there.branch("T-1", moved), there.branch("T-2", {"src/new.txt": "new\n"})
    assert there.conflicts(one, other)
    assert there.meet(one, other).conflicts == there.conflicts(one, other)
    assert there.meet(other, one).conflicts == there.conflicts(other, one)


def test_main_says_how_files_are_merged(there: Repository) -> None:
    commit_files(there.root, {".gitattributes": "*.txt merge=union\n"}, "Merge all lines")
    one, other = there.branch("T-1", {"a.txt": changed(3, by="one")}), there.branch("T-2", {"a.txt": changed(3)})
    assert there.meet(one, other) == Contact(("a.txt",), ("a.txt",))


def test_what_a_user_has_set_changes_nothing(
    there: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text(
        "[diff]\nexternal = false\ncontext = 9\ninterHunkContext = 9\nnoprefix = true\nrelative = true\n"
        "renames = copies\n"
        "[color]\nui = always\n[core]\nquotePath = false\nabbrev = 5\n[log]\nshowSignature = true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    one = there.branch("T-1", {"a.txt": changed(3, 20, by="one")})
    other = there.branch("T-2", {"a.txt": changed(10, by="two"), "b.txt": changed(4)})
    assert there.meet(one, other) == Contact(("a.txt",))


def test_a_look_leaves_nothing_behind(there: Repository) -> None:
    one, other = there.branch("T-1", {"a.txt": changed(3, by="one")}), there.branch("T-2", {"a.txt": changed(3)})
    before = git_out(there.root, "count-objects", "-v")
    assert there.meet(one, other).conflicts == ("a.txt",)
    assert git_out(there.root, "count-objects", "-v") == before


def test_what_cannot_be_read_is_left_out_and_keeps_nobody_else_from_being_seen(there: Repository) -> None:
    one, other = there.branch("T-1", {"a.txt": changed(3, by="one")}), there.branch("T-2", {"a.txt": changed(3)})
    broken = "1" * 40
    looks = there.branches.look(there.main, [one, broken, other])
    assert set(looks) == {one, other}
    git_out(there.root, "checkout", "-q", "--orphan", "elsewhere")
    git_out(there.root, "commit", "-q", "-m", "unrelated")
    unrelated = git_out(there.root, "rev-parse", "HEAD")
    there.branches.look(there.main, [one, other, unrelated])
    found = there.branches.compare(there.main, [(one, other), (one, unrelated)])
    assert found[one, other].conflicts == ("a.txt",)


def test_thirty_branches_meet_as_git_says_when_it_is_asked_for_each_pair(tmp_path: Path) -> None:
    dice = random.Random(5)
    files = {f"{folder}/f{number}.txt": LINES for folder in ("x", "y", "z") for number in range(4)}
    there = Repository(tmp_path / "many", files)
    for number in range(30):
        wanted: dict[str, str | None] = {}
        for path in dice.sample(sorted(files), dice.choice((1, 1, 2))):
            wanted[path] = dice.choice(
                (changed(dice.randrange(1, 41), by=f"by {number}"), changed(5, by="alike"), None)
            )
        if dice.random() < 0.3:
            wanted[dice.choice(("x/new", "x/new/er", "fresh.txt"))] = f"{dice.randrange(3)}\n"
        if dice.random() < 0.1:
            wanted |= {path: None for path in files if path.startswith("z/")}
            wanted |= {path.replace("z/", "moved/"): LINES for path in files if path.startswith("z/")}
        there.branch(f"T-{number}", wanted)
        if number in (10, 20):
            commit_files(there.root, {dice.choice(sorted(files)): changed(30 + number // 10, by="main")}, "on main")
    main, tips = there.main, [*overlap.tips(there.project, "main").branches.values()]
    assert len(tips) == 30
    looks = there.branches.look(main, tips)
    pairs = list(combinations(tips, 2))
    found = there.branches.compare(main, [*((tip, main) for tip in tips), *pairs])
    assert len(found) == 30 + 30 * 29 // 2
    for tip in tips:
        assert tuple(sorted(found[tip, main].conflicts)) == there.conflicts(tip, main)
    apart = 0
    for one, other in pairs:
        mains = {*found[one, main].conflicts, *found[other, main].conflicts}
        shared = {name.decode() for name in looks[one].files.keys() & looks[other].files.keys()}
        said = {name for name in there.conflicts(one, other) if name in shared or name not in mains}
        assert set(found[one, other].conflicts) == said, (one, other)
        apart += not said
    assert 0 < apart < len(pairs)


def test_tips_are_those_of_the_tasks_and_of_where_the_queue_builds(there: Repository) -> None:
    one = there.branch("T-1", {"a.txt": changed(3)})
    git_out(there.root, "branch", "other", one)
    assert overlap.tips(there.project, "main") == overlap.Tips(there.main, {"T-1": one})
    git_out(there.root, "update-ref", "refs/covey/landed", one)
    assert overlap.tips(there.project, "main").main == one
    assert overlap.tips(there.project, "nowhere").main == one


def test_a_branch_that_moves_is_noticed_and_one_that_rests_is_not(there: Repository) -> None:
    seen = overlap.stamp(there.project, "main")
    assert overlap.stamp(there.project, "main") == seen
    there.branch("T-1", {"a.txt": changed(3)})
    moved = overlap.stamp(there.project, "main")
    assert moved != seen
    git_out(there.root, "pack-refs", "--all")
    packed = overlap.stamp(there.project, "main")
    assert packed != moved
    commit_files(there.root, {"b.txt": "x\n"}, "main moves")
    assert overlap.stamp(there.project, "main") != packed


# What was written


def test_new_commits_tell_what_they_wrote_and_when(there: Repository) -> None:
    old = there.branch("T-1", {"a.txt": changed(3), "gone.txt": "x\n"})
    before = there.branches.look(there.main, [old])[old]
    (first,) = there.branches.written({old: None}, since=0.0).values()
    assert [(write.path, write.new) for write in first] == [("a.txt", False), ("gone.txt", True)]
    there.branch("T-1", {"b.txt": changed(3), "back.txt": "x\n"})
    tip = there.branch("T-1", {"gone.txt": None, "back.txt": None, "src/c.txt": changed(1)})
    there.branches.look(there.main, [tip])
    (writes,) = there.branches.written({tip: before}, since=0.0).values()
    assert [write.path for write in writes] == ["b.txt", "gone.txt", "src/c.txt"]
    made = os.stat(there.project.common / "objects" / tip[:2] / tip[2:]).st_ctime
    assert writes[-1].written == made


def test_no_commit_is_older_than_the_last_look_without_it(there: Repository) -> None:
    old = there.branch("T-1", {"a.txt": changed(3)})
    before = there.branches.look(there.main, [old])[old]
    tip = there.branch("T-1", {"b.txt": changed(3)})
    there.branches.look(there.main, [tip])
    later = 4e9
    (writes,) = there.branches.written({tip: before}, since=later).values()
    assert [(write.path, write.written) for write in writes] == [("b.txt", later)]


def test_a_merge_of_main_wrote_only_what_it_resolved(there: Repository) -> None:
    old = there.branch("T-1", {"a.txt": changed(3, by="one")})
    commit_files(there.root, {"a.txt": changed(3, by="main"), "b.txt": changed(1)}, "main moves on")
    before = there.branches.look(there.main, [old])[old]
    git_out(there.root, "checkout", "-q", "covey/T-1")
    subprocess.run(["git", "merge", "main"], cwd=there.root, env=user_env(), capture_output=True, check=False)
    commit_files(there.root, {"a.txt": changed(3, by="both")}, "resolved")
    tip = git_out(there.root, "rev-parse", "HEAD")
    git_out(there.root, "checkout", "-q", "main")
    there.branches.look(there.main, [tip])
    (writes,) = there.branches.written({tip: before}, since=0.0).values()
    assert [write.path for write in writes] == ["a.txt"]
