"""Never lose work: whatever lies in a worktree comes back byte for byte after the worktree is gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from covey.core.history.retention import rescue_is_past
from covey.errors import NotFound, Refused, ToolFailed
from covey.git.identity import RESCUE_REFS
from covey.git.project import Project, find
from covey.git.rescue import rescue as rescues
from covey.git.rescue.rescue import Rescued, drop, find_rescue, find_rescues, rescue, show
from covey.git.rescue.restore import restore
from tests.worlds.repositories import commit_files, git_out, make_repository, user_env

AT = 1_700_000_000.0
MOMENT = "20231114T221320Z"
FILES = {
    "README.md": "Hello\n",
    "src/app.py": "print('app')\n",
    "src/deep/down/leaf": "leaf\n",
    "-dash": "dash\n",
    "with space": "space\n",
    "new\nline": "line\n",
    ".gitignore": "*.log\nbuild/\n",
}


@pytest.fixture(autouse=True, scope="module")
def _no_settings_of_this_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patch.delenv(name)
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield


@dataclass
class World:
    """A repository, and a worktree of a session in it."""

    folder: Path
    project: Project
    work: Path

    def git(self, *words: str, stdin: str | None = None) -> str:
        return git_out(self.work, *words, stdin=stdin)

    def write(self, name: str, text: str = "text\n") -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def rescue(self, **more: Any) -> Rescued | None:
        return rescue(self.project, self.work, session="ada", why="a test", task="AF-1", at=AT, **more)

    def must_rescue(self, **more: Any) -> Rescued:
        made = self.rescue(**more)
        assert made is not None
        return made

    def destroy(self) -> None:
        """Remove the worktree, and every object that nothing keeps."""
        subprocess.run(["chmod", "-R", "u+rwX", str(self.work)], check=False)
        shutil.rmtree(self.work)
        git_out(self.project.common, "worktree", "prune", "--expire=now")
        git_out(self.project.common, "prune", "--expire=now")

    def back(self, made: Rescued) -> Path:
        self.destroy()
        target = self.folder / "back" / "again"
        restore(self.project, made.name, target)
        return target

    def comes_back(self) -> Path:
        """Rescue, destroy and restore, and hold what is there then against what was."""
        before = everything(self.work)
        made = self.must_rescue()
        assert everything(self.work) == before, "a rescue changes nothing"
        target = self.back(made)
        after = everything(target)
        assert after == before
        assert "missing" not in git_out(self.project.common, "fsck", "--connectivity-only")
        return target


def make_world(folder: Path, files: dict[str, str] | None = None, *settings: tuple[str, str]) -> World:
    root = folder / "shop"
    root.mkdir(parents=True)
    git_out(root, "init", "-q", "-b", "main")
    for name, value in settings:
        git_out(root, "config", name, value)
    commit_files(root, FILES if files is None else files, "Begin")
    git_out(root, "worktree", "add", "-q", "-b", "covey/ada", str(folder / "ada"))
    return World(folder, find(root), folder / "ada")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a repository with a worktree."""
    return make_world(tmp_path)


def raw_git(folder: Path, *words: str) -> bytes:
    env = user_env() | {"GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, check=True).stdout


def files_in(folder: Path) -> dict[bytes, tuple[Any, ...]]:
    """Return every file, link and folder with mode and content; of the worktree's own .git, nothing."""
    found: dict[bytes, tuple[Any, ...]] = {}
    root = os.fsencode(folder)
    for place, folders, names in os.walk(root):
        if place == root:
            folders[:] = [name for name in folders if name != b".git"]
            names[:] = [name for name in names if name != b".git"]
        for name in [*folders, *names]:
            path = os.path.join(place, name)
            status = os.lstat(path)
            key = os.path.relpath(path, root)
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("folder", stat.S_IMODE(status.st_mode))
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    found[key] = ("file", stat.S_IMODE(status.st_mode), file.read())
    return found


def everything(folder: Path) -> dict[str, Any]:
    """Return all that is to come back: the files, and what git says of them."""
    return {
        "files": files_in(folder),
        "status": raw_git(folder, "status", "--porcelain=v2", "-z", "--ignored"),
        "staged": raw_git(folder, "ls-files", "-s", "-z"),
        "unmerged": raw_git(folder, "ls-files", "-u", "-z"),
        "flags": raw_git(folder, "ls-files", "-v", "-z"),
    }


# What is kept


def test_a_clean_worktree_on_a_branch_needs_no_rescue(world: World) -> None:
    assert world.rescue() is None
    commit_files(world.work, {"new": "new"}, "On the branch")
    (world.work / "README.md").touch()
    assert world.rescue() is None
    assert find_rescues(world.project) == []


def test_a_worktree_that_was_never_filled_or_is_gone_needs_no_rescue(world: World) -> None:
    bare = world.folder / "bare"
    git_out(world.project.root, "worktree", "add", "-q", "--no-checkout", "-b", "covey/bob", str(bare))
    assert rescue(world.project, bare, session="bob", why="a test", at=AT) is None
    assert rescue(world.project, world.folder / "nowhere", session="bob", why="a test", at=AT) is None


def test_every_kind_of_change_comes_back(world: World) -> None:
    world.write("README.md", "changed\r\n")
    world.write("src/app.py", "staged\n")
    world.git("add", "src/app.py")
    world.write("src/app.py", "changed again\n")
    (world.work / "src/deep/down/leaf").unlink()
    (world.work / "with space").chmod(0o755)
    (world.work / "-dash").unlink()
    (world.work / "-dash").symlink_to("no\nwhere")
    world.write("untracked/new\nname", "new").chmod(0o600)
    world.write("build/out", "ignored")
    world.write("intent", "to add")
    world.git("add", "-N", "intent")
    world.write("staged only", "to be removed")
    world.git("add", "staged only")
    (world.work / "staged only").unlink()
    with open(os.path.join(os.fsencode(world.work), b"\xff\xfe-raw"), "wb") as file:
        file.write(bytes(range(256)))
    (world.work / "empty/inner").mkdir(parents=True)
    (world.work / "empty/inner").chmod(0o700)
    world.comes_back()
    counts = find_rescues(world.project)[0].counts
    # Changed: README, src/app.py, with space, -dash.
    assert (counts.changed, counts.deleted, counts.added, counts.ignored, counts.left_out) == (4, 1, 1, 1, 0)
    assert (counts.untracked, counts.staged) == (2, 3)


def test_a_file_becomes_a_folder_and_a_folder_a_file(world: World) -> None:
    (world.work / "README.md").unlink()
    world.write("README.md/inside", "deep")
    shutil.rmtree(world.work / "src")
    world.write("src", "flat")
    world.comes_back()


def test_files_that_git_was_told_to_overlook_are_looked_at(world: World) -> None:
    world.git("update-index", "--assume-unchanged", "README.md")
    world.git("update-index", "--skip-worktree", "src/app.py", "with space")
    assert world.rescue() is None
    (world.work / "with space").unlink()
    assert world.rescue() is None
    world.write("README.md", "changed")
    world.write("src/app.py", "changed")
    assert world.git("status", "--porcelain") == ""
    world.comes_back()
    assert find_rescues(world.project)[0].counts.changed == 2


def test_unmerged_entries_and_the_merge_come_back_and_can_be_ended(world: World) -> None:
    commit_files(world.project.root, {"README.md": "theirs\n"}, "Theirs")
    commit_files(world.work, {"README.md": "ours\n"}, "Ours")
    env = user_env()
    stopped = subprocess.run(["git", "merge", "main"], cwd=world.work, env=env, capture_output=True, check=False)
    assert stopped.returncode == 1
    back = world.comes_back()
    commit_files(back, {"README.md": "both\n"}, "Merged")
    assert len(git_out(back, "log", "-1", "--format=%P").split()) == 2


def test_an_unfinished_rebase_comes_back_and_can_be_ended(world: World) -> None:
    commit_files(world.work, {"README.md": "ours\n"}, "One")
    commit_files(world.work, {"other": "two\n"}, "Two")
    commit_files(world.project.root, {"README.md": "theirs\n"}, "Theirs")
    env = user_env() | {"GIT_EDITOR": "true"}
    stopped = subprocess.run(["git", "rebase", "main"], cwd=world.work, env=env, capture_output=True, check=False)
    assert stopped.returncode == 1
    back = world.comes_back()
    (back / "README.md").write_text("both\n")
    git_out(back, "add", "README.md")
    git_out(back, "rebase", "--continue", env=env)
    assert git_out(back, "log", "--format=%s", "-3").split() == ["Two", "One", "Theirs"]


def test_commits_that_only_the_worktree_reaches_are_kept_once(world: World) -> None:
    world.git("checkout", "-q", "--detach")
    commit_files(world.work, {"lost": "1"}, "Amended later")
    first = world.git("rev-parse", "HEAD")
    world.git("commit", "-q", "--amend", "-m", "Amended")
    second = world.git("rev-parse", "HEAD")
    commit_files(world.work, {"lost": "3"}, "Left behind")
    third = world.git("rev-parse", "HEAD")
    world.git("reset", "-q", "--hard", second)
    made = world.must_rescue()
    assert made.head == second and made.branch is None and made.counts.commits == 2
    assert world.rescue() is None
    back = world.back(made)
    assert git_out(back, "rev-parse", "HEAD") == second
    for commit in (first, second, third):
        assert git_out(back, "cat-file", "-t", commit) == "commit"


def test_a_branch_without_commits_comes_back(world: World) -> None:
    world.git("checkout", "-q", "--orphan", "fresh")
    world.git("rm", "-q", "-r", "--cached", ".")
    world.write("README.md", "anew")
    world.git("add", "src")
    back = world.comes_back()
    assert git_out(back, "symbolic-ref", "HEAD") == "refs/heads/fresh"


def test_nested_repositories_come_back_byte_for_byte(world: World) -> None:
    for place in ("lib", "lib/inner", "build/vendored", "src/begun"):
        (world.work / place).mkdir(parents=True, exist_ok=True)
        git_out(world.work / place, "init", "-q", "-b", "main")
        if place != "src/begun":
            commit_files(world.work / place, {"kept": place}, f"In {place}")
        (world.work / place / "loose").write_text(f"loose in {place}")
    hook = world.work / "lib/.git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {world.folder}/ran\n")
    hook.chmod(0o755)
    back = world.comes_back()
    assert sorted(find_rescues(world.project)[0].nested) == sorted(
        f"{place}/.git" for place in ("lib", "lib/inner", "build/vendored", "src/begun")
    )
    assert git_out(back / "lib/inner", "log", "--format=%s") == "In lib/inner"
    assert not (world.folder / "ran").exists()


def test_a_nested_repository_that_was_staged_comes_back(world: World) -> None:
    (world.work / "lib").mkdir()
    git_out(world.work / "lib", "init", "-q", "-b", "main")
    commit_files(world.work / "lib", {"kept": "1"}, "In lib")
    world.git("add", "lib")
    (world.work / "lib/loose").write_text("loose")
    world.comes_back()


def test_a_submodule_comes_back_with_what_was_committed_in_it(world: World) -> None:
    make_repository(world.folder / "library", {"part": "1\n"})
    allowed = ("-c", "protocol.file.allow=always")
    world.git(*allowed, "submodule", "--quiet", "add", str(world.folder / "library"), "lib")
    world.git("commit", "-q", "-m", "With a submodule")
    commit_files(world.work / "lib", {"part": "2\n"}, "Only here")
    (world.work / "lib/loose").write_text("loose")
    before, status = files_in(world.work), world.git("status", "--porcelain")
    back = world.back(world.must_rescue())
    after = files_in(back)
    assert after.keys() == before.keys()
    assert {path for path in before if after[path] != before[path]} == {b"lib/.git"}
    assert git_out(back, "status", "--porcelain") == status
    assert git_out(back / "lib", "log", "--format=%s") == "Only here\nBegin"
    assert git_out(back / "lib", "status", "--porcelain") == "?? loose"


def test_a_submodule_that_was_never_wanted_is_no_reason(world: World) -> None:
    make_repository(world.folder / "library")
    allowed = ("-c", "protocol.file.allow=always")
    world.git(*allowed, "submodule", "--quiet", "add", str(world.folder / "library"), "lib")
    world.git("commit", "-q", "-m", "With a submodule")
    other = world.folder / "bob"
    git_out(world.project.root, "worktree", "add", "-q", "-b", "covey/bob", str(other), "covey/ada")
    assert rescue(world.project, other, session="bob", why="a test", at=AT) is None


def test_ignored_files_are_kept_smallest_first_up_to_a_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covey.git.rescue.keep.MAX_IGNORED_BYTES", 65)
    for size in (10, 20, 30, 40):
        world.write(f"build/{size}", "x" * size)
    with open(world.work / "sparse.log", "wb") as file:
        file.truncate(200 * 1024 * 1024)
    before = everything(world.work)["files"]
    made = world.must_rescue()
    assert [entry["path"] for entry in made.left_out] == ["build/40", "sparse.log"]
    assert (made.counts.left_out, made.counts.left_out_bytes) == (2, 200 * 1024 * 1024 + 40)
    after = files_in(world.back(made))
    assert before.keys() - after.keys() == {b"build/40", b"sparse.log"}


def test_the_default_limit_is_100_mebibytes(world: World) -> None:
    with open(world.work / "a.log", "wb") as file:
        file.truncate(100 * 1024 * 1024)
    with open(world.work / "b.log", "wb") as file:
        file.truncate(1)
    made = world.must_rescue()
    assert [entry["path"] for entry in made.left_out] == ["a.log"]


def test_caches_alone_are_no_reason_for_a_rescue(world: World) -> None:
    world.write(".gitignore", "*.log\nbuild/\n__pycache__/\n")
    world.git("commit", "-q", "-a", "-m", "Ignore")
    world.write("src/__pycache__/app.pyc", "compiled")
    world.write("build/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
    world.write("build/deep/out", "made")
    assert world.rescue() is None
    world.write("notes.log", "mine")
    world.comes_back()


def test_what_cannot_be_read_is_listed_and_nothing_waits_for_a_fifo(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(world.work / "pipe")
    os.mkfifo(world.work / "build.log")
    (world.work / "README.md").unlink()
    os.mkfifo(world.work / "README.md")
    monkeypatch.chdir(world.work)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("door")
    world.write("secret", "secret").chmod(0)
    world.write("closed/inside", "inside")
    (world.work / "closed").chmod(0)
    made = world.must_rescue()
    left = {entry["path"]: entry["why"] for entry in made.left_out}
    expected = {"pipe", "build.log", "README.md", "door"}
    assert expected <= left.keys()
    if os.geteuid() != 0:
        assert {"secret", "closed/"} <= left.keys()
        assert left["secret"] == "permission denied"


def test_what_cannot_be_read_does_not_go_without_a_word(world: World) -> None:
    above = os.open(world.work, os.O_RDONLY)
    for _ in range(20):  # deeper than a path may be long
        os.mkdir("d" * 250, dir_fd=above)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)
    made = world.must_rescue()
    assert [entry["why"] for entry in made.left_out] == ["file name too long"]


def test_files_that_vanish_or_change_meanwhile_do_no_harm(world: World) -> None:
    churn = (
        "import itertools, os, sys\n"
        "print('going', flush=True)\n"
        "for n in itertools.count():\n"
        "    with open(f'churn-{n % 40}', 'w') as file: file.write('x' * (n % 5000))\n"
        "    os.makedirs(f'folder-{n % 7}/deep', exist_ok=True)\n"
        "    if n % 3 == 0: os.unlink(f'churn-{n % 40}')\n"
        "    if n % 5 == 0: os.removedirs(f'folder-{n % 7}/deep')\n"
    )
    with subprocess.Popen([sys.executable, "-c", churn], cwd=world.work, stdout=subprocess.PIPE) as busy:
        assert busy.stdout is not None
        busy.stdout.readline()
        try:
            made = [world.rescue() for _ in range(8)]
        finally:
            busy.kill()
    names = [one.name for one in made if one]
    assert len(names) == len(set(names)) > 0


# Whatever is configured


def test_nothing_that_the_checkout_configures_is_run(world: World) -> None:
    ran = world.folder / "ran"
    trap = f"touch {ran}; cat"
    for name, value in (
        ("filter.trap.clean", trap),
        ("filter.trap.smudge", trap),
        ("filter.trap.process", trap),
        ("filter.trap.required", "true"),
        ("core.fsmonitor", f"touch {ran}"),
        ("diff.external", f"touch {ran}"),
        ("core.hooksPath", str(world.folder / "hooks")),
        ("core.excludesFile", str(world.folder / "excludes")),
    ):
        world.git("config", name, value)
    (world.folder / "excludes").write_text("*.mine\n")
    (world.folder / "hooks").mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "post-commit"):
        (world.folder / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (world.folder / "hooks" / hook).chmod(0o755)
    world.write(".gitattributes", "* filter=trap diff=trap\n")
    world.write("README.md", "changed\r\n")
    world.write("new", "new")
    world.write("an ignored.mine", "ignored")
    before = files_in(world.work)
    made = world.must_rescue()
    assert made.counts.ignored == 1
    target = world.folder / "again"
    restore(world.project, made.name, target)
    assert files_in(target) == before
    assert not ran.exists()


def test_line_endings_that_git_converts_come_back_as_they_were(tmp_path: Path) -> None:
    world = make_world(tmp_path, {"text": "a\nb\n", "other": "c\nd\n"}, ("core.autocrlf", "true"))
    assert (world.work / "text").read_bytes() == b"a\r\nb\r\n"
    commit_files(world.work, {"unix": "x\ny\n"}, "With other line ends")
    world.write("new", "1\r\n2\n")
    world.write("other", "c\nchanged\r\n")
    world.comes_back()


@pytest.mark.parametrize("size", [20, 3_000_000])
def test_files_with_a_filter_of_their_own_come_back_as_they_were(tmp_path: Path, size: int) -> None:
    rotated = ("filter.rot.clean", "tr a-y b-z"), ("filter.rot.smudge", "tr b-z a-y")
    files = {".gitattributes": "*.rot filter=rot\n", "big.rot": "abc" * size, "plain": "abc\n"}
    world = make_world(tmp_path, files, *rotated)
    assert git_out(world.work, "cat-file", "blob", ":big.rot").startswith("bcd")
    world.write("new.rot", "hello")
    world.write("plain", "changed")
    world.comes_back()


def test_an_untouched_large_file_is_left_to_its_filter(tmp_path: Path) -> None:
    settings = ("filter.rot.clean", "tr a-y b-z"), ("filter.rot.smudge", "tr b-z a-y")
    files = {".gitattributes": "*.rot filter=rot\n", "big.rot": "abc" * 1_000_000}
    world = make_world(tmp_path, files, *settings)
    _age(world)
    world.write("new", "new")
    made = world.must_rescue()
    listed = json.loads(git_out(world.project.root, "show", f"{made.ref}:files.json"))
    assert listed["checkout"] == ["big.rot"]
    before = files_in(world.work)
    assert files_in(world.back(made)) == before


def _age(world: World) -> None:
    """Let the index be younger than the files, as it is in any worktree a moment after it was made."""
    own = Path(world.git("rev-parse", "--absolute-git-dir"))
    later = time.time() + 10
    os.utime(own / "index", (later, later))


def test_other_forms_of_the_index_come_back(world: World) -> None:
    world.git("config", "core.splitIndex", "true")
    world.git("update-index", "--split-index")
    world.git("update-index", "--index-version", "4")
    world.write("new", "new")
    world.git("add", "new")
    world.write("README.md", "changed")
    assert list(Path(world.git("rev-parse", "--absolute-git-dir")).glob("sharedindex.*"))
    world.comes_back()


def test_a_sparse_checkout_comes_back_as_sparse_as_it_was(world: World) -> None:
    world.git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
    world.write("src/app.py", "changed")
    before = everything(world.work)
    made = world.must_rescue()
    assert (made.counts.changed, made.counts.deleted) == (1, 0)
    assert everything(world.back(made))["files"] == before["files"]


def test_repositories_with_longer_object_names_work(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git_out(root, "init", "-q", "-b", "main", "--object-format=sha256")
    commit_files(root, FILES, "Begin")
    git_out(root, "worktree", "add", "-q", "-b", "covey/ada", str(tmp_path / "ada"))
    world = World(tmp_path, find(root), tmp_path / "ada")
    world.write("README.md", "changed")
    world.write("new", "new")
    world.comes_back()


# Damage


def _own(world: World) -> Path:
    return Path(world.git("rev-parse", "--absolute-git-dir"))


@pytest.mark.parametrize("damage", ["index", "no index", "HEAD", "HEAD and reflog", "pointer", "all", "replaced"])
def test_a_damaged_worktree_is_rescued_as_far_as_it_can_be(world: World, damage: str) -> None:
    world.write("README.md", "changed")
    world.write("new", "new")
    own = _own(world)
    if damage == "index":
        (own / "index").write_bytes(b"DIRC rubbish")
    if damage == "no index":
        (own / "index").unlink()
    if damage in ("HEAD", "HEAD and reflog", "all"):
        (own / "HEAD").write_bytes(b"\0rubbish")
    if damage in ("HEAD and reflog", "all"):
        (own / "logs" / "HEAD").unlink()
    if damage in ("pointer", "all"):
        (world.work / ".git").unlink()
    if damage == "all":
        shutil.rmtree(own)
    if damage == "replaced":
        (world.work / ".git").unlink()
        git_out(world.work, "init", "-q")
        commit_files(world.work, {"mine": "mine"}, "Hidden away")
    before = files_in(world.work)
    made = world.must_rescue()
    target = world.folder / "again"
    if damage == "replaced":
        assert made.nested == (".git",)
        return
    restore(world.project, made.name, target)
    assert files_in(target) == before
    if damage in ("index", "no index", "HEAD", "pointer"):
        assert made.counts.changed == 1 and made.counts.untracked == 1 and made.head is not None


# Nothing else is touched


def _own_files(folder: Path) -> dict[bytes, tuple[Any, ...]]:
    return {path: what for path, what in files_in(folder).items() if not path.startswith(b"objects")}


def test_the_users_checkout_and_settings_are_left_alone(world: World) -> None:
    root = world.project.root
    (root / "README.md").write_text("The user's own change\n")
    (root / "mine").write_text("mine")
    git_out(root, "add", "mine")
    world.write("README.md", "changed")
    before = files_in(root), _own_files(root / ".git")
    made = world.must_rescue()
    assert files_in(root) == before[0]
    kept = _own_files(root / ".git")
    new = {path for path in kept if path not in before[1]}
    assert {path for path in new if kept[path][0] == "file"} == {os.fsencode(made.ref)}
    assert {path: what for path, what in kept.items() if path not in new} == before[1]


def test_a_rescue_never_takes_the_name_of_another(world: World) -> None:
    world.write("new", "1")
    names = []
    for number in range(3):
        world.write("new", str(number))
        names.append(world.must_rescue().name)
    assert names == [f"ada/{MOMENT}", f"ada/{MOMENT}-1", f"ada/{MOMENT}-2"]
    contents = [git_out(world.project.root, "show", f"{RESCUE_REFS}{name}:work/new") for name in names]
    assert contents == ["0", "1", "2"]
    assert [one.name for one in find_rescues(world.project)] == names[::-1]


def test_what_an_earlier_rescue_keeps_is_not_kept_again(world: World) -> None:
    world.write("notes.log", "mine")
    world.write("new", "1")
    first = world.must_rescue()
    world.git("status")
    second = world.must_rescue()
    assert second.again and not first.again and second.ref == first.ref
    commit_files(world.work, {"src/app.py": "more\n"}, "Elsewhere")
    assert world.must_rescue().ref == first.ref
    world.write("README.md", "changed")
    third = world.must_rescue()
    assert not third.again
    assert world.must_rescue().ref == third.ref
    commit_files(world.work, {"src/app.py": "still more\n"}, "Another HEAD to be changed from")
    assert not world.must_rescue().again
    world.git("add", "README.md")
    assert not world.must_rescue().again
    (world.work / "new").chmod(0o755)
    assert not world.must_rescue().again
    assert len(find_rescues(world.project)) == 5


def test_when_the_objects_cannot_be_written_the_rescue_fails_and_says_so(world: World) -> None:
    world.write("new", "1")
    objects = world.project.common / "objects"
    objects.rename(objects.with_name("elsewhere"))
    objects.write_text("no folder")
    with pytest.raises(ToolFailed):
        world.rescue()


def test_a_kill_at_any_moment_leaves_the_worktree_as_it_was_and_no_half_rescue(world: World) -> None:
    for number in range(300):
        world.write(f"many/{number}", f"{number}" * 50)
    world.write("README.md", "changed")
    world.git("add", "README.md")
    world.git("status")
    before, index = everything(world.work), (_own(world) / "index").read_bytes()
    script = (
        "import sys, pathlib\nfrom covey.git.project import find\nfrom covey.git.rescue.rescue import rescue\n"
        "project = find(pathlib.Path(sys.argv[1]))\nprint('begun', flush=True)\n"
        "rescue(project, pathlib.Path(sys.argv[2]), session='ada', why='killed', at=float(sys.argv[3]))\n"
    )
    for number in range(24):
        words = [sys.executable, "-c", script, str(world.project.root), str(world.work), str(AT + number)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            _wait_a_little(process, number * 0.012)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert everything(world.work) == before
        assert (_own(world) / "index").read_bytes() == index
        assert all(one.counts.untracked == 300 for one in find_rescues(world.project))
    made = world.must_rescue()
    assert files_in(world.back(made)) == before["files"]


def _wait_a_little(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for the process to end, or to have come a little further."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


# Finding, showing, restoring, expiring


def test_a_rescue_is_found_by_every_name_that_means_it(world: World) -> None:
    world.write("new", "1")
    first = world.must_rescue()
    world.write("new", "2")
    second = rescue(world.project, world.work, session="ada", why="later", at=AT + 86_400)
    assert second is not None
    for name in (first.name, first.ref, first.name[:-3]):
        assert find_rescue(world.project, name) == first
    assert find_rescue(world.project, "ada") == second
    assert find_rescue(world.project, "ada/20231115") == second
    with pytest.raises(Refused, match="2 rescues begin with ada/2023"):
        find_rescue(world.project, "ada/2023")
    with pytest.raises(NotFound) as unknown:
        find_rescue(world.project, "adda/20231114T221320Z")
    assert unknown.value.hint == f"Did you mean {first.name}?"
    with pytest.raises(NotFound):
        find_rescue(world.project, "")
    assert find_rescues(world.project, "bob") == []
    assert first.why == "a test" and first.task == "AF-1" and first.branch == "refs/heads/covey/ada"


def test_show_tells_every_path_with_its_status(world: World) -> None:
    world.write("README.md", "changed")
    (world.work / "with space").unlink()
    world.write("new", "new")
    world.write("x.log", "ignored")
    world.must_rescue()
    shown = show(world.project, "ada")
    assert [(entry["path"], entry["status"], entry["size"]) for entry in shown.files] == [
        ("README.md", "changed", 7),
        ("new", "untracked", 3),
        ("with space", "deleted", 0),
        ("x.log", "ignored", 7),
    ]
    assert shown.left_out == []


def test_a_folder_that_is_not_empty_is_left_alone(world: World) -> None:
    world.write("new", "1")
    made = world.must_rescue()
    taken = world.folder / "taken"
    taken.mkdir()
    (taken / "mine").write_text("mine")
    with pytest.raises(Refused):
        restore(world.project, made.name, taken)
    (taken / "link").symlink_to(taken)
    with pytest.raises(Refused):
        restore(world.project, made.name, taken / "mine")
    (world.folder / "empty").mkdir()
    restore(world.project, made.name, world.folder / "empty")
    assert (world.folder / "empty/new").read_text() == "1"
    assert (taken / "mine").read_text() == "mine"


def test_a_restore_that_fails_leaves_nothing_behind(world: World) -> None:
    world.write("new", "1")
    made = world.must_rescue()
    blob = git_out(world.project.root, "rev-parse", f"{made.ref}:work/new")
    loose = world.project.common / "objects" / blob[:2] / blob[2:]
    loose.unlink()
    with pytest.raises(ToolFailed):
        restore(world.project, made.name, world.folder / "again")
    assert not (world.folder / "again").exists()
    assert "again" not in git_out(world.project.root, "worktree", "list")


def test_a_bare_repository_is_served_too(tmp_path: Path) -> None:
    make_repository(tmp_path / "shop.git", {"README.md": "Hello\n"}, bare=True)
    git_out(tmp_path / "shop.git", "worktree", "add", "-q", "-b", "covey/ada", str(tmp_path / "ada"), "main")
    world = World(tmp_path, find(tmp_path / "shop.git"), tmp_path / "ada")
    assert world.project.bare
    assert world.rescue() is None
    world.write("README.md", "changed")
    world.write("new", "new")
    world.comes_back()


def test_rescues_expire_some_days_after_their_session_ended(world: World) -> None:
    world.write("new", "1")
    for session in ("ended", "lives", "lately"):
        assert rescue(world.project, world.work, session=session, why="a test", at=AT) is not None
    ends = {"ended": AT + 100, "lately": AT + 5 * 86_400}

    def past(now: float) -> list[Rescued]:
        found = find_rescues(world.project)
        return [one for one in found if rescue_is_past(made=one.time, session_ended=ends.get(one.session), now=now)]

    assert past(AT + 14 * 86_400) == []
    [gone] = past(AT + 15 * 86_400)
    assert gone.name == f"ended/{MOMENT}"
    assert drop(world.project, gone) and not drop(world.project, gone)
    assert {one.session for one in find_rescues(world.project)} == {"lives", "lately"}


# Anything at all

NAMES = [b"README.md", b"src/app.py", b"src/deep/down/leaf", b"-dash", b"new\nline", b"\xffraw", b"src", b"src/deep"]
NAMES += [b"new/a", b"new", b"build/x", b"note.log", b"lib/in/a", b"\xc3\xbc", b'quo"te\\', b".GIT", b".gitmodules"]
CONTENTS = st.one_of(
    st.binary(max_size=40), st.sampled_from([b"", b"Hello\n", b"a\r\nb\n", b"\0\1\2", b"../elsewhere"])
)
WAYS = [
    "write", "write", "delete", "link", "mode", "folder", "add", "intend", "forget", "conflict", "assume", "skip",
    "commit", "detach", "amend", "nest", "nest with commit", "fifo",
]  # fmt: skip
STEPS = st.lists(
    st.tuples(st.sampled_from(WAYS), st.sampled_from(NAMES), CONTENTS, st.sampled_from([0o644, 0o755, 0o600, 0o444])),
    max_size=14,
)


def _try(world: World, *words: str | bytes, stdin: bytes | None = None) -> bytes:
    done = subprocess.run(
        [b"git", *words], cwd=world.work, env=user_env(), input=stdin or b"", capture_output=True, check=False
    )
    return done.stdout.strip()


def _step(world: World, way: str, name: bytes, content: bytes, mode: int) -> None:
    """Do one thing to the worktree, if it can be done."""
    path = os.path.join(os.fsencode(world.work), name)
    literal = b":(literal)" + name
    match way:
        case "write" | "link" | "fifo":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.lexists(path):
                os.unlink(path)
            if way == "fifo":
                os.mkfifo(path)
            elif way == "link":
                os.symlink(content.replace(b"\0", b"0") or b"empty", path)
            else:
                Path(os.fsdecode(path)).write_bytes(content)
                os.chmod(path, mode)
        case "delete":
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        case "mode":
            os.chmod(path, mode | (0o700 if os.path.isdir(path) else 0))
        case "folder":
            os.makedirs(path, exist_ok=True)
        case "add":
            _try(world, "add", "-f", "--", literal)
        case "intend":
            _try(world, "add", "-f", "-N", "--", literal)
        case "forget":
            _try(world, "rm", "-q", "-r", "--cached", "--", literal)
        case "assume" | "skip":
            flag = "--assume-unchanged" if way == "assume" else "--skip-worktree"
            _try(world, "update-index", flag, "-z", "--stdin", stdin=name + b"\0")
        case "conflict":
            blobs = [_try(world, "hash-object", "-w", "--stdin", stdin=content + b"%d" % side) for side in (1, 2, 3)]
            lines = [b"0 %b\t%b\0" % (b"0" * 40, name)]
            lines += [b"100644 %b %d\t%b\0" % (blob, side, name) for side, blob in enumerate(blobs, 1)]
            _try(world, "update-index", "-z", "--index-info", stdin=b"".join(lines))
        case "commit":
            _try(world, "commit", "-q", "-m", "More")
        case "amend":
            _try(world, "commit", "-q", "--amend", "-m", "Amended")
        case "detach":
            _try(world, "checkout", "-q", "--detach")
        case _:
            os.makedirs(path, exist_ok=True)
            _try(world, "init", "-q", path)
            if way == "nest with commit":
                Path(os.fsdecode(path), "kept").write_bytes(content)
                _try(world, "-C", path, "add", "kept")
                _try(world, "-C", path, "commit", "-q", "-m", "Nested")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository to be copied."""
    folder = tmp_path_factory.mktemp("template")
    root = folder / "shop"
    make_repository(root, FILES)
    return root


@settings(
    max_examples=25, phases=[phase for phase in Phase if phase is not Phase.shrink]
)  # an example takes long; it is short anyway
@given(steps=STEPS, settled=st.booleans(), crlf=st.booleans())
def test_whatever_was_done_to_a_worktree_comes_back_byte_for_byte(
    template: Path, steps: list[tuple[str, bytes, bytes, int]], settled: bool, crlf: bool
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(template, folder / "shop", symlinks=True)
        if crlf:
            git_out(folder / "shop", "config", "core.autocrlf", "true")
        git_out(folder / "shop", "worktree", "add", "-q", "-b", "covey/ada", str(folder / "ada"))
        world = World(folder, find(folder / "shop"), folder / "ada")
        if settled:
            _age(world)
        for way, path, content, mode in steps:
            try:
                _step(world, way, path, content, mode)
            except OSError:
                continue
        _compare(world, converts=crlf)


def _compare(world: World, *, converts: bool) -> None:
    before = everything(world.work)
    head = world.git("rev-parse", "HEAD")
    made = world.rescue()
    assert everything(world.work) == before
    if made is None:
        # To git, a file with the bytes of HEAD's own object is changed if a checkout would convert it.
        assert converts or before["status"] == b""
        assert world.git("branch", "--contains", "HEAD", "--format=%(refname)")
        return
    target = world.back(made)
    after = everything(target)
    special = {os.fsencode(entry["path"]) for entry in made.left_out}
    assert after["files"] == {path: what for path, what in before["files"].items() if path not in special}
    assert after["staged"] == before["staged"]
    assert after["unmerged"] == before["unmerged"]
    assert after["flags"] == before["flags"] or special
    if not special:
        assert after["status"] == before["status"]
    assert git_out(target, "rev-parse", "HEAD") == head


# Size


def _many(folder: Path, count: int) -> World:
    """Make a repository of many files quickly."""
    root = make_repository(folder / "shop", {})
    parts = [b"commit refs/heads/main\ncommitter A <a@b> 0 +0000\ndata 4\nmany\nfrom refs/heads/main^0\n"]
    for number in range(count):
        content = b"line %d\n" % number * 40
        parts.append(
            b"M 644 inline d%d/e%d/f%d\ndata %d\n%b\n" % (number % 50, number % 7, number, len(content), content)
        )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=b"".join(parts), env=user_env(), check=True)
    git_out(root, "worktree", "add", "-q", "-b", "covey/ada", str(folder / "ada"), "main")
    return World(folder, find(root), folder / "ada")


@pytest.mark.parametrize("count", [4_000, pytest.param(20_000, marks=pytest.mark.soak)])
def test_many_thousand_files_take_a_handful_of_git_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    world = _many(tmp_path, count)
    _age(world)
    trace = tmp_path / "trace"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text(f'#!/bin/sh\necho "$1" >>{trace}\nexec {shutil.which("git")} "$@"\n')
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    times: dict[str, float] = {}
    begun = time.perf_counter()
    assert world.rescue() is None
    times["clean"] = time.perf_counter() - begun
    for number in range(0, count, 20):
        world.write(f"d{number % 50}/e{number % 7}/f{number}", "changed")
        world.write(f"new/{number}", f"new {number}")
    trace.write_text("")
    begun = time.perf_counter()
    made = world.must_rescue()
    times[f"{count // 10:,} changes"] = time.perf_counter() - begun
    processes = len(trace.read_text().splitlines())
    assert (made.counts.changed, made.counts.untracked) == (count // 20, count // 20)
    assert 0 < processes < 30
    before = files_in(world.work)
    begun = time.perf_counter()
    restore(world.project, made.name, tmp_path / "again")
    times["restore"] = time.perf_counter() - begun
    assert files_in(tmp_path / "again") == before
    with capsys.disabled():
        print(
            f"\n{count:,} files:", {what: round(took, 2) for what, took in times.items()}, f"{processes} git processes"
        )


def test_large_worktrees_are_looked_at_one_after_another(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each keeps kilobytes for every file in memory while it is looked at; ten at once took 200 MB."""
    world.write("README.md", "changed")
    monkeypatch.setattr(rescues, "LARGE_INDEX_BYTES", 0)
    meeting, met, look = threading.Barrier(2), [], rescues._look

    def watched(*words: Any) -> Any:
        try:
            meeting.wait(0.3)
            met.append("two at once")
        except threading.BrokenBarrierError:
            meeting.reset()
        return look(*words)

    monkeypatch.setattr(rescues, "_look", watched)
    own = _own(world)
    threads = [threading.Thread(target=lambda: world.rescue(own=own)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []
