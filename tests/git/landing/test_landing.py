"""Landing: main moves with the user's checkout or not at all, and nothing of the user's is ever touched."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from covey.errors import Invalid, Refused
from covey.git import project as projects
from covey.git.candidates.candidates import Candidate, build, is_ancestor, resolve
from covey.git.identity import LANDED
from covey.git.landing import fast_forward, landing
from covey.git.landing.landing import (
    Landed,
    Line,
    MainMoved,
    Waits,
    drop_landed,
    follow,
    land,
    landed_line,
    put_landed,
    recover,
)
from covey.git.project import Project
from covey.git.worktrees.checkouts import Checkout
from tests.worlds.repositories import commit_files, git_out, make_repository, user_env

FILES = {"a.txt": "a\n", "b.txt": "b\n", "d/e.txt": "e\n", "gone.txt": "gone\n", ".gitignore": "*.log\nbuild/\n"}
WORK = {"a.txt": "landed\n", "new.txt": "new\n", "d/x/y.txt": "y\n", "out.log": "a log\n"}


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


class Scene:
    """A repository whose main is at `old`, and a tested commit `new` to land on it."""

    def __init__(self, path: Path) -> None:
        self.path = make_repository(path, FILES)
        self.project = projects.find(self.path)
        self.old = self.main
        self.new = self.commit(self.old, WORK, remove=["gone.txt"])

    @property
    def main(self) -> str:
        return git_out(self.project.common, "rev-parse", "refs/heads/main")

    def commit(self, base: str, files: dict[str, str], *, remove: list[str] | None = None) -> str:
        """Commit on `base` in no checkout and on no branch."""
        said = ["commit refs/scratch", "mark :1", "committer Ada <ada@example.org> 1700000000 +0000", "data 4", "Work"]
        said += [f"from {base}", *(f"D {name}" for name in remove or [])]
        for name, text in files.items():
            said += [f"M 100644 inline {name}", f"data {len(text)}", text]
        stream = "\n".join([*said, "get-mark :1", ""])
        made = git_out(self.project.common, "fast-import", "--quiet", "--force", stdin=stream)
        git_out(self.project.common, "update-ref", "-d", "refs/scratch")
        return made

    def land(self) -> Landed | Waits | MainMoved:
        return land(self.project, "main", self.old, self.new)

    def status(self, at: Path | None = None) -> list[str]:
        printed = git_out(
            at or self.path, "--no-optional-locks", "status", "--porcelain=v1", "-z", "-uall", "--ignored"
        )
        return sorted(line for line in printed.split("\0") if line)

    def everything(self) -> dict[str, object]:
        """All that a refused landing must leave as it is: files, index, branches, config, stash, locks."""
        files = {
            str(path.relative_to(self.path)): (path.read_bytes(), path.lstat().st_mode)
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and "objects" not in path.parts and self.project.state not in path.parents
        }
        return {"files": files, "refs": git_out(self.path, "for-each-ref"), "status": self.status()}

    def must_have_landed(self) -> None:
        assert self.main == self.new
        assert self.no_traces()

    def no_traces(self) -> bool:
        found = [
            path.name for path in self.project.common.rglob("*") if "covey-" in path.name or path.suffix == ".lock"
        ]
        assert not found, found
        return True


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "repo")


def test_a_clean_checkout_of_main_follows(scene: Scene) -> None:
    assert scene.land() == Landed(scene.new)
    scene.must_have_landed()
    assert scene.status() == []
    assert (scene.path / "d/x/y.txt").read_text() == "y\n"
    assert not (scene.path / "gone.txt").exists()
    assert git_out(scene.path, "reflog", "-1", "--format=%gs %gn") == f"covey: land {scene.new[:12]} covey"
    assert git_out(scene.path, "reflog", "main", "-1", "--format=%gs") == f"covey: land {scene.new[:12]}"


def test_landing_twice_is_landing_once_and_a_commit_of_the_user_on_top_does_not_matter(scene: Scene) -> None:
    assert scene.land() == scene.land() == Landed(scene.new)
    commit_files(scene.path, {"b.txt": "user\n"}, "On top")
    assert scene.land() == Landed(scene.new)


def test_what_does_not_descend_from_main_is_invalid(scene: Scene) -> None:
    with pytest.raises(Invalid, match="does not descend"):
        land(scene.project, "main", scene.new, scene.old)


def test_a_main_that_has_moved_is_reported_and_left(scene: Scene) -> None:
    commit_files(scene.path, {"b.txt": "user\n"}, "Meanwhile")
    before = scene.everything()
    assert scene.land() == MainMoved(scene.main)
    assert scene.everything() == before
    git_out(scene.path, "switch", "-q", "--detach")
    assert scene.land() == MainMoved(scene.main)
    git_out(scene.path, "branch", "-q", "-D", "main")
    assert scene.land() == MainMoved(None)


def test_changes_elsewhere_stay_as_they_are(scene: Scene) -> None:
    (scene.path / "b.txt").write_text("unstaged\n")
    (scene.path / "d/e.txt").write_text("staged\n")
    git_out(scene.path, "add", "d/e.txt")
    (scene.path / "d/e.txt").write_text("staged, and then changed\n")
    for name in ("untracked.txt", "some.log", "d/x.txt"):
        (scene.path / name).write_text("mine\n")
    (scene.path / "build").mkdir()
    (scene.path / "build/out").write_text("mine\n")
    before, staged = scene.status(), git_out(scene.path, "rev-parse", ":d/e.txt")
    config = (scene.project.common / "config").read_bytes()
    git_out(scene.path, "branch", "other")
    assert scene.land() == Landed(scene.new)
    scene.must_have_landed()
    assert (scene.status(), git_out(scene.path, "rev-parse", ":d/e.txt")) == (before, staged)
    assert (scene.path / "d/e.txt").read_text() == "staged, and then changed\n"
    assert (scene.project.common / "config").read_bytes() == config
    assert git_out(scene.path, "rev-parse", "other") == scene.old


def modified(path: Path) -> str:
    (path / "a.txt").write_text("mine\n")
    return "a.txt"


def staged(path: Path) -> str:
    (path / "a.txt").write_text("mine\n")
    git_out(path, "add", "a.txt")
    return "a.txt"


def staged_and_put_back(path: Path) -> str:
    (path / "a.txt").write_text("mine\n")
    git_out(path, "add", "a.txt")
    (path / "a.txt").write_text("landed\n")
    return "a.txt"


def deleted(path: Path) -> str:
    (path / "a.txt").unlink()
    return "a.txt"


def removed(path: Path) -> str:
    git_out(path, "rm", "-q", "a.txt")
    return "a.txt"


def changed_where_it_is_deleted(path: Path) -> str:
    (path / "gone.txt").write_text("mine\n")
    return "gone.txt"


def untracked(path: Path) -> str:
    (path / "new.txt").write_text("mine\n")
    return "new.txt"


def untracked_link(path: Path) -> str:
    (path / "new.txt").symlink_to("b.txt")
    return "new.txt"


def ignored(path: Path) -> str:
    (path / "out.log").write_text("mine\n")
    return "out.log"


def ignored_inside_a_folder_in_its_place(path: Path) -> str:
    (path / "out.log").mkdir()
    (path / "out.log/mine.log").write_text("mine\n")
    return "out.log/mine.log"


def a_file_where_a_folder_shall_be(path: Path) -> str:
    (path / "d/x").write_text("mine\n")
    return "d/x"


def an_ignored_file_where_a_folder_shall_be(path: Path) -> str:
    (path / ".git/info").mkdir(exist_ok=True)
    (path / ".git/info/exclude").write_text("d/x\n")
    (path / "d/x").write_text("mine\n")
    return "d/x"


def executable(path: Path) -> str:
    (path / "a.txt").chmod(0o755)
    return "a.txt"


IN_THE_WAY = [
    modified,
    staged,
    staged_and_put_back,
    deleted,
    removed,
    changed_where_it_is_deleted,
    untracked,
    untracked_link,
    ignored,
    ignored_inside_a_folder_in_its_place,
    a_file_where_a_folder_shall_be,
    an_ignored_file_where_a_folder_shall_be,
    executable,
]


@pytest.mark.parametrize("dirty", IN_THE_WAY, ids=lambda dirty: str(dirty.__name__))
def test_a_change_in_the_way_makes_main_wait(scene: Scene, dirty: Callable[[Path], str]) -> None:
    name = dirty(scene.path)
    (scene.path / "b.txt").write_text("elsewhere\n")
    before = scene.everything()
    outcome = scene.land()
    assert isinstance(outcome, Waits)
    assert outcome.files == (name,)
    assert name in outcome.sentence and str(scene.path) in outcome.sentence
    assert scene.everything() == before
    assert scene.no_traces()


def test_files_that_already_have_the_new_content_are_no_obstacle(scene: Scene) -> None:
    (scene.path / "a.txt").write_text("landed\n")
    (scene.path / "new.txt").write_text("new\n")
    git_out(scene.path, "add", "new.txt")
    (scene.path / "out.log").write_text("a log\n")
    (scene.path / "gone.txt").unlink()
    assert scene.land() == Landed(scene.new)
    scene.must_have_landed()
    assert scene.status() == []


def test_a_file_that_was_only_touched_is_no_obstacle(scene: Scene) -> None:
    for name in ("a.txt", "gone.txt", "b.txt"):
        os.utime(scene.path / name, (1, 1))
    assert scene.land() == Landed(scene.new)
    assert scene.status() == []


def test_a_broken_filter_lets_main_wait_and_puts_everything_back(scene: Scene) -> None:
    """git finds out about a broken filter only in the middle of writing files."""
    git_out(scene.path, "config", "filter.broken.smudge", "false")
    git_out(scene.path, "config", "filter.broken.required", "true")
    (scene.path / ".git/info").mkdir(exist_ok=True)
    (scene.path / ".git/info/attributes").write_text("new.txt filter=broken\n")
    before = scene.everything()
    outcome = scene.land()
    assert isinstance(outcome, Waits) and "filter" in outcome.sentence
    assert scene.everything() == before
    git_out(scene.path, "config", "filter.broken.smudge", "tr a-z A-Z")
    git_out(scene.path, "config", "filter.broken.clean", "tr A-Z a-z")
    assert scene.land() == Landed(scene.new)
    assert (scene.path / "new.txt").read_text() == "NEW\n"
    assert scene.status() == []


def test_main_moves_alone_when_the_user_is_on_another_branch_or_on_none(scene: Scene) -> None:
    git_out(scene.path, "switch", "-q", "-c", "other")
    (scene.path / "a.txt").write_text("mine\n")
    before = scene.status()
    assert scene.land() == Landed(scene.new)
    scene.must_have_landed()
    assert scene.status() == before == [" M a.txt"]
    git_out(scene.path, "switch", "-q", "--detach")
    newer = scene.commit(scene.new, {"b.txt": "newer\n"})
    assert land(scene.project, "main", scene.new, newer) == Landed(newer)
    assert scene.status() == before
    assert git_out(scene.path, "reflog", "main", "-1", "--format=%gs %gn") == f"covey: land {newer[:12]} covey"


def test_a_lock_on_another_branch_holds_main_only_while_it_can_be_a_switch_to_main(scene: Scene) -> None:
    git_out(scene.path, "switch", "-q", "-c", "other")
    lock = scene.project.common / "index.lock"
    lock.touch()
    outcome = scene.land()
    assert isinstance(outcome, Waits) and "on its way to main" in outcome.sentence
    assert scene.main == scene.old
    lock.write_bytes((scene.project.common / "index").read_bytes())  # as `git commit -a` with its editor open
    assert scene.land() == Landed(scene.new)
    assert scene.status() == [] and lock.exists()


def test_the_worktree_of_a_session_at_work_is_never_locked(scene: Scene, tmp_path: Path) -> None:
    git_out(scene.path, "switch", "-q", "--detach")
    git_out(scene.path, "worktree", "add", "-q", "-b", "covey/AF-1", str(tmp_path / "ada"))
    lock = scene.project.common / "worktrees/ada/index.lock"
    lock.touch()
    os.utime(lock, (1, 1))
    assert scene.land() == Landed(scene.new)
    assert lock.exists()


def test_main_moves_in_a_bare_repository(tmp_path: Path) -> None:
    path = make_repository(tmp_path / "bare.git", FILES, bare=True)
    project = projects.find(path)
    old = git_out(path, "rev-parse", "main")
    new = git_out(path, "commit-tree", f"{old}^{{tree}}", "-p", old, "-m", "Work")
    assert land(project, "main", old, new) == Landed(new)
    assert git_out(path, "rev-parse", "main") == new
    linked = tmp_path / "linked"
    git_out(path, "worktree", "add", "-q", str(linked), "main")
    newer = git_out(path, "commit-tree", git_out(path, "mktree", stdin=""), "-p", new, "-m", "Empty")
    for seen in (project, projects.find(linked)):
        assert land(seen, "main", new, newer) == Landed(newer)
    assert git_out(linked, "status", "--porcelain") == "" and not (linked / "a.txt").exists()


def test_a_linked_worktree_that_holds_main_follows_and_the_first_checkout_stays(scene: Scene, tmp_path: Path) -> None:
    git_out(scene.path, "switch", "-q", "-c", "other")
    linked = tmp_path / "a place\nwith ü"
    git_out(scene.path, "worktree", "add", "-q", str(linked), "main")
    (linked / "b.txt").write_text("mine\n")
    index = (scene.project.common / "index").read_bytes()
    assert scene.land() == Landed(scene.new)
    scene.must_have_landed()
    assert scene.status(linked) == [" M b.txt"] and scene.status() == []
    assert (linked / "new.txt").exists() and not (scene.path / "new.txt").exists()
    assert (scene.project.common / "index").read_bytes() == index


def test_main_in_two_checkouts_waits_and_names_them(scene: Scene, tmp_path: Path) -> None:
    git_out(scene.path, "worktree", "add", "-q", "-f", str(tmp_path / "second"), "main")
    before = scene.everything()
    outcome = scene.land()
    assert isinstance(outcome, Waits)
    assert str(scene.path) in outcome.sentence and str(tmp_path / "second") in outcome.sentence
    assert scene.everything() == before


def test_a_worktree_whose_folder_is_gone_counts_only_when_it_is_locked(scene: Scene, tmp_path: Path) -> None:
    second = tmp_path / "second"
    git_out(scene.path, "worktree", "add", "-q", "-f", str(second), "main")
    second.rename(tmp_path / "elsewhere")
    git_out(scene.path, "worktree", "lock", str(second))
    assert isinstance(scene.land(), Waits)
    git_out(scene.path, "worktree", "unlock", str(second))
    assert scene.land() == Landed(scene.new)
    assert scene.status() == []


def run_badly(path: Path, *words: str) -> None:
    done = subprocess.run(["git", *words], cwd=path, env=user_env(), capture_output=True, check=False)
    assert done.returncode != 0, words


@pytest.mark.parametrize("backend", ["--merge", "--apply"])
def test_a_rebase_of_main_makes_it_wait(scene: Scene, backend: str) -> None:
    git_out(scene.path, "branch", "other")
    commit_files(scene.path, {"b.txt": "main\n"}, "On main")
    scene.old = scene.main
    scene.new = scene.commit(scene.old, {"new.txt": "new\n"})
    git_out(scene.path, "switch", "-q", "other")
    commit_files(scene.path, {"b.txt": "other\n"}, "On other")
    git_out(scene.path, "switch", "-q", "main")
    run_badly(scene.path, "rebase", "-q", backend, "other")
    before = scene.everything()
    outcome = scene.land()
    assert isinstance(outcome, Waits) and "a rebase of main" in outcome.sentence
    assert scene.everything() == before
    git_out(scene.path, "rebase", "--abort")
    assert scene.land() == Landed(scene.new)


def test_a_rebase_that_will_move_main_along_makes_it_wait(scene: Scene) -> None:
    commit_files(scene.path, {"b.txt": "main\n"}, "On main")
    scene.old = scene.main
    scene.new = scene.commit(scene.old, {"new.txt": "new\n"})
    git_out(scene.path, "switch", "-q", "-c", "top")
    commit_files(scene.path, {"c.txt": "top\n"}, "On top")
    git_out(scene.path, "switch", "-q", "-c", "other", "main~1")
    commit_files(scene.path, {"b.txt": "other\n"}, "On other")
    git_out(scene.path, "switch", "-q", "top")
    run_badly(scene.path, "rebase", "-q", "--update-refs", "other")
    assert isinstance(scene.land(), Waits)
    git_out(scene.path, "rebase", "--abort")
    assert scene.land() == Landed(scene.new)


def test_a_bisect_of_main_makes_it_wait(scene: Scene) -> None:
    for number in range(4):
        commit_files(scene.path, {"b.txt": f"{number}\n"}, "More")
    scene.old = scene.main
    scene.new = scene.commit(scene.old, {"new.txt": "new\n"})
    git_out(scene.path, "bisect", "start", "main", "main~4")
    outcome = scene.land()
    assert isinstance(outcome, Waits) and "a bisect of main" in outcome.sentence
    git_out(scene.path, "bisect", "reset")
    assert scene.land() == Landed(scene.new)


def test_a_merge_cherry_pick_or_revert_under_way_makes_main_wait(scene: Scene) -> None:
    git_out(scene.path, "switch", "-q", "-c", "other")
    commit_files(scene.path, {"b.txt": "other\n"}, "On other")
    git_out(scene.path, "switch", "-q", "main")
    commit_files(scene.path, {"b.txt": "main\n"}, "On main")
    commit_files(scene.path, {"b.txt": "again\n"}, "On main")
    scene.old = scene.main
    scene.new = scene.commit(scene.old, {"new.txt": "new\n"})
    for words in (["merge", "other"], ["cherry-pick", "other"], ["revert", "--no-edit", "HEAD~1"]):
        run_badly(scene.path, *words)
        before = scene.everything()
        outcome = scene.land()
        assert isinstance(outcome, Waits) and words[0] in outcome.sentence
        assert scene.everything() == before
        git_out(scene.path, words[0], "--abort")
    git_out(scene.path, "merge", "-q", "--no-commit", "--strategy=ours", "other")
    assert isinstance(scene.land(), Waits)
    git_out(scene.path, "merge", "--abort")
    assert scene.land() == Landed(scene.new)


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_of_the_users_git_makes_main_wait(scene: Scene, lock: str) -> None:
    (scene.project.common / lock).touch()
    before = scene.everything()
    outcome = scene.land()
    assert isinstance(outcome, Waits) and outcome.sentence.endswith(".")
    assert scene.everything() == before
    (scene.project.common / lock).unlink()
    assert scene.land() == Landed(scene.new)


def test_no_hook_setting_or_identity_of_the_user_has_a_part_in_it(scene: Scene) -> None:
    hooks = scene.project.common / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-checkout", "post-merge", "post-index-change", "pre-merge-commit"):
        (hooks / name).write_text("#!/bin/sh\ntouch ran-a-hook\nexit 1\n")
        (hooks / name).chmod(0o755)
    settings = {
        "merge.ff": "false",
        "merge.autoStash": "true",
        "user.useConfigOnly": "true",
        "submodule.recurse": "true",
    }
    for key, value in settings.items():
        git_out(scene.path, "config", key, value)
    (scene.path / "b.txt").write_text("mine\n")
    assert scene.land() == Landed(scene.new)
    assert scene.status() == [" M b.txt"]
    assert not list(scene.path.rglob("ran-a-hook"))


def test_a_sparse_checkout_follows_and_stays_sparse(scene: Scene) -> None:
    git_out(scene.path, "sparse-checkout", "set", "--no-cone", "/b.txt", "/new.txt")
    assert not (scene.path / "a.txt").exists()
    assert scene.land() == Landed(scene.new)
    assert scene.status() == []
    assert sorted(path.name for path in scene.path.iterdir()) == [".git", "b.txt", "new.txt"]


def test_a_file_that_becomes_a_folder_and_one_that_becomes_a_link_follow(scene: Scene) -> None:
    blob = git_out(scene.path, "hash-object", "-w", "--stdin", stdin="b.txt")
    first = scene.commit(scene.old, {"a.txt/inner": "i\n", "d": "now a file\n"}, remove=["d/e.txt"])
    assert land(scene.project, "main", scene.old, first) == Landed(first)
    assert (scene.path / "a.txt/inner").read_text() == "i\n" and (scene.path / "d").is_file()
    git_out(scene.path, "update-index", "--add", "--replace", "--cacheinfo", f"120000,{blob},d")
    tree = git_out(scene.path, "write-tree")
    git_out(scene.path, "reset", "-q", "--hard")
    second = git_out(scene.path, "commit-tree", tree, "-p", first, "-m", "A link")
    assert land(scene.project, "main", first, second) == Landed(second)
    assert (scene.path / "d").is_symlink() and scene.status() == []


def test_names_that_are_odd_or_no_utf8_follow_and_are_named(scene: Scene) -> None:
    odd, wild = 'q"uo\tte\nü', os.fsdecode(b"caf\xe9")
    git_out(scene.path, "switch", "-q", "-c", "aside")
    commit_files(scene.path, {odd: "1\n", wild: "1\n"}, "Odd")
    git_out(scene.path, "switch", "-q", "main")
    new = git_out(scene.path, "rev-parse", "aside")
    (scene.path / odd).write_text("mine\n")
    (scene.path / wild).write_text("mine\n")
    outcome = land(scene.project, "main", scene.old, new)
    assert isinstance(outcome, Waits) and set(outcome.files) == {odd, "caf\\xe9"}
    (scene.path / odd).unlink()
    (scene.path / wild).unlink()
    assert land(scene.project, "main", scene.old, new) == Landed(new)
    assert scene.status() == []


def test_a_branch_with_a_slash_and_a_repository_seen_from_a_subfolder(scene: Scene) -> None:
    git_out(scene.path, "branch", "-m", "main", "release/1.0")
    project = projects.find(scene.path / "d")
    assert land(project, "release/1.0", scene.old, scene.new) == Landed(scene.new)
    assert scene.status() == []


def test_the_queue_builds_on_what_has_landed_until_main_holds_it(scene: Scene) -> None:
    project = scene.project
    assert landed_line(project, "main") == Line(scene.old, scene.old, diverged=False)
    assert follow(project, "main") is None
    put_landed(project, scene.new, None)
    with pytest.raises(Refused):
        put_landed(project, scene.old, None)
    with pytest.raises(Refused):
        drop_landed(project, scene.old)
    assert landed_line(project, "main") == Line(scene.old, scene.new, diverged=False)
    (scene.path / "a.txt").write_text("mine\n")
    assert isinstance(follow(project, "main"), Waits)
    assert resolve(project, LANDED) == scene.new
    git_out(scene.path, "checkout", "-q", "a.txt")
    assert follow(project, "main") == Landed(scene.new)
    assert resolve(project, LANDED) is None
    scene.must_have_landed()


def test_a_commit_of_the_user_beside_what_has_landed_is_seen(scene: Scene) -> None:
    put_landed(scene.project, scene.new, None)
    commit_files(scene.path, {"b.txt": "user\n"}, "Beside")
    user = scene.main
    assert landed_line(scene.project, "main") == Line(user, scene.new, diverged=True)
    assert follow(scene.project, "main") == MainMoved(user)
    made = build(scene.project, user, scene.new, message="Both", author=("c", "c@x"), at=None)
    assert isinstance(made, Candidate)
    put_landed(scene.project, made.commit, scene.new)
    assert follow(scene.project, "main") == Landed(made.commit)
    put_landed(scene.project, scene.new, None)
    assert landed_line(scene.project, "main") == Line(made.commit, made.commit, diverged=False)
    assert resolve(scene.project, LANDED) is None


LAND = """
import sys
from pathlib import Path
from covey.git import project
from covey.git.landing.landing import land
print("ready", flush=True)
sys.stdin.readline()
print(land(project.find(Path(sys.argv[1])), "main", sys.argv[2], sys.argv[3]), flush=True)
"""


def start_landing(scene: Scene) -> subprocess.Popen[str]:
    """Start a process of its own, in a group of its own, that lands when it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-c", LAND, str(scene.path), scene.old, scene.new],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def kill_after(process: subprocess.Popen[str], seconds: float, *, group: bool) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    time.sleep(seconds)
    if group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize("rounds", [4, pytest.param(60, marks=pytest.mark.soak)])
@pytest.mark.parametrize("group", [False, True], ids=["ours alone", "git too"])
def test_a_landing_killed_at_any_moment_is_finished_by_the_next(tmp_path: Path, group: bool, rounds: int) -> None:
    scene = Scene(tmp_path / "repo")
    many = {f"many/{number}.txt": f"{number}\n" * 500 for number in range(150)}
    scene.old = scene.main
    commits = [scene.commit(scene.old, {**WORK, **many}, remove=["gone.txt"])]
    commits.append(scene.commit(commits[0], {name: text.replace("0", "zero") for name, text in many.items()}))
    commits.append(scene.commit(commits[1], {"gone.txt": "back\n"}, remove=list(many)))
    for step in range(rounds):
        git_out(scene.path, "reset", "-q", "--hard", scene.old)
        git_out(scene.path, "clean", "-qfdx")
        base = scene.old
        (scene.path / "b.txt").write_text(f"mine {step}\n")
        (scene.path / "mine.txt").write_text("mine\n")
        for commit in commits:
            view = Scene.__new__(Scene)
            view.path, view.project, view.old, view.new = scene.path, scene.project, base, commit
            kill_after(start_landing(view), random.uniform(0.002, 0.05), group=group)
            # A git of ours that lives on for a moment counts as a lock, which the next landing waits for.
            assert view.land() == Landed(commit), step
            view.must_have_landed()
            assert view.status() == [" M b.txt", "?? mine.txt"], step
            base = commit


def test_a_crash_is_recovered_without_another_landing(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "repo")
    leave_half(scene)
    assert recover(scene.project) == [Landed(scene.new)]
    scene.must_have_landed()
    assert scene.status() == []
    assert recover(scene.project) == []


def leave_half(scene: Scene) -> None:
    """Leave what a machine that stops in the middle of a move leaves: locks, some files new, one of them cut off."""
    locks = [scene.project.common / name for name in ("HEAD.lock", "refs/heads/main.lock")]
    intent = fast_forward.Intent("main", scene.old, scene.new, locks=tuple(map(str, locks)))
    hold = fast_forward.take(Checkout(scene.path, scene.project.common), intent, 5.0)
    assert hold is not None
    for lock in locks:
        lock.touch()
    (scene.path / "a.txt").write_text("lan")
    (scene.path / "new.txt").write_text("new\n")
    (scene.path / "gone.txt").unlink()
    (scene.project.common / "covey-index.lock").touch()
    os.close(hold.file)


def test_a_half_move_that_cannot_be_finished_is_undone(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "repo")
    leave_half(scene)
    (scene.path / "out.log").write_text("mine\n")
    outcome = scene.land()
    assert isinstance(outcome, Waits) and outcome.files == ("out.log",)
    assert scene.main == scene.old and scene.no_traces()
    assert scene.status() == ["!! out.log"]


def test_a_half_move_is_undone_when_main_has_moved_meanwhile(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "repo")
    leave_half(scene)
    for name in ("HEAD.lock", "refs/heads/main.lock", "index.lock"):
        (scene.project.common / name).unlink()
    git_out(scene.path, "update-ref", "refs/heads/main", scene.commit(scene.old, {}))
    assert scene.land() == MainMoved(scene.main)
    assert scene.status() == [] and scene.no_traces()


def test_a_checkout_that_came_to_main_while_it_moved_is_taken_along_after_a_crash(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "repo")
    intent = fast_forward.Intent("main", scene.old, scene.new, late=True)
    hold = fast_forward.take(Checkout(scene.path, scene.project.common), intent, 5.0)
    assert hold is not None
    git_out(scene.path, "update-ref", "refs/heads/main", scene.new)
    (scene.path / "new.txt").write_text("ne")
    os.close(hold.file)
    assert recover(scene.project) == [Landed(scene.new)]
    scene.must_have_landed()
    assert scene.status() == []


def test_ten_landings_leave_the_history_of_ten_candidates(scene: Scene) -> None:
    base = scene.old
    for number in range(10):
        tip = scene.commit(scene.old, {f"work/{number}.txt": "w\n"})
        made = build(scene.project, base, tip, message=f"Merge {number}", author=("s", "s@x"), at=None)
        assert isinstance(made, Candidate)
        assert land(scene.project, "main", base, made.commit) == Landed(made.commit)
        base = made.commit
        assert is_ancestor(scene.project, tip, "main")
    assert scene.status() == [] and len(list((scene.path / "work").iterdir())) == 10


def test_what_main_will_name_is_on_the_disk_before_main_names_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str | None]] = []
    own = landing.make_durable

    def look(project: Project) -> None:
        seen.append((scene.main, resolve(project, LANDED)))
        own(project)

    monkeypatch.setattr(landing, "make_durable", look)
    put_landed(scene.project, scene.new, None)
    drop_landed(scene.project, scene.new)
    assert scene.land() == Landed(scene.new)
    assert seen == [(scene.old, None), (scene.old, None)]
