"""Worktrees: many at once, used again, killed and mended, and nothing of anybody else's touched."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from covey.errors import Invalid, Refused
from covey.git.project import Project, find
from covey.git.worktrees import foreign_git, upstream, worktree_admin
from covey.git.worktrees.worktree_files import NoPlace, must_have_place
from covey.git.worktrees.worktrees import Worktrees, default_folder
from covey.trash import remove, remove_later
from tests.worlds.repositories import commit_files, git_out, make_repository, user_env
from tests.worlds.serving import wait_until

TEMPLATE = "../{repo}.worktrees"


@pytest.fixture(autouse=True)
def plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def make_worktrees(folder: Path, files: dict[str, str] | None = None) -> Worktrees:
    return open_worktrees(make_repository(folder / "repo", files))


def open_worktrees(repository: Path) -> Worktrees:
    project = find(repository)
    return Worktrees(project, default_folder(project, TEMPLATE))


def main_of(worktrees: Worktrees) -> str:
    return git_out(worktrees.project.common, "rev-parse", "main")


def branches(project: Project) -> list[str]:
    return git_out(project.common, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").splitlines()


def lock_files(project: Project) -> list[Path]:
    return [path for path in project.common.rglob("*.lock") if project.state not in path.parents]


def settings_of(project: Project) -> bytes:
    return (project.common / "config").read_bytes()


def assert_stands(worktrees: Worktrees, name: str, branch: str, tip: str) -> None:
    path = worktrees.path(name)
    assert git_out(path, "symbolic-ref", "HEAD") == f"refs/heads/{branch}"
    assert git_out(path, "rev-parse", "HEAD") == tip
    assert git_out(path, "status", "--porcelain") == ""


# Making and using again


def test_a_worktree_is_made_beside_the_repository_on_its_branch_at_the_base(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    assert tip == main_of(worktrees)
    assert worktrees.path("ada") == tmp_path / "repo.worktrees" / "ada"
    assert (worktrees.path("ada") / "README.md").read_text() == "A scratch repository.\n"
    assert_stands(worktrees, "ada", "covey/T-1", tip)
    [listed] = worktrees.list()
    assert (listed.name, listed.path) == ("ada", worktrees.path("ada"))
    assert worktrees.git_dir("ada") == worktrees.project.common / "worktrees" / "ada"


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755])
def test_who_may_not_look_into_the_repository_may_not_look_into_its_worktrees(tmp_path: Path, mode: int) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.project.root.chmod(mode)
    before = os.umask(0o022)
    try:
        worktrees.prepare("ada", "covey/T-1", main_of(worktrees))
    finally:
        os.umask(before)
    assert worktrees.folder.stat().st_mode & 0o777 == mode


def test_the_next_task_finds_a_clean_tree_at_the_new_main_with_the_ignored_files_of_before(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path, {".gitignore": "cache/\n", "a": "1\n", "b": "1\n"})
    worktrees.prepare("ada", "covey/T-1", "main")
    path = worktrees.path("ada")
    commit_files(path, {"a": "done by ada\n"}, "Work")
    for name, text in {"b": "dirty\n", "new": "untracked\n", "cache/x": "kept\n"}.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text)
    make_repository(path / "nested")
    git_out(path, "add", "b")
    done = git_out(path, "rev-parse", "HEAD")
    commit_files(worktrees.project.root, {"c": "2\n"}, "Meanwhile")
    tip = worktrees.prepare("ada", "covey/T-2", "main")
    assert tip == main_of(worktrees)
    assert sorted(child.name for child in path.iterdir()) == [".git", ".gitignore", "a", "b", "c", "cache"]
    assert (path / "cache" / "x").read_text() == "kept\n"
    assert (path / "a").read_text() == "1\n"
    assert_stands(worktrees, "ada", "covey/T-2", tip)
    assert git_out(worktrees.project.common, "rev-parse", "covey/T-1") == done


def test_the_work_of_an_earlier_try_is_carried_on_and_an_empty_branch_begins_again(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    worktrees.prepare("ada", "covey/T-2", "main")
    commit_files(worktrees.path("ada"), {"half": "of it\n"}, "Half")
    half = git_out(worktrees.path("ada"), "rev-parse", "HEAD")
    commit_files(worktrees.project.root, {"c": "2\n"}, "Meanwhile")
    assert worktrees.prepare("bob", "covey/T-2", "main") == half
    assert (worktrees.path("bob") / "half").read_text() == "of it\n"
    assert worktrees.prepare("bob", "covey/T-1", "main") == main_of(worktrees)


def test_files_that_git_was_told_not_to_look_at_are_reset_as_well(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path, {"a": "1\n", "b": "1\n"})
    worktrees.prepare("ada", "covey/T-1", "main")
    path = worktrees.path("ada")
    git_out(path, "update-index", "--skip-worktree", "a")
    git_out(path, "update-index", "--assume-unchanged", "b")
    (path / "a").write_text("hidden\n")
    (path / "b").write_text("hidden\n")
    worktrees.prepare("ada", "covey/T-2", "main")
    assert (path / "a").read_text() == (path / "b").read_text() == "1\n"


def test_untracked_things_in_the_way_of_tracked_ones_give_way(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path, {".gitignore": "build\n", "a": "1\n"})
    worktrees.prepare("ada", "covey/T-1", "main")
    commit_files(worktrees.project.root, {"build": "a file\n", "deep/er": "1\n"}, "In the way")
    path = worktrees.path("ada")
    (path / "build").mkdir()
    (path / "build" / "x").write_text("ignored")
    (path / "deep").write_text("a file, not a folder")
    worktrees.prepare("ada", "covey/T-2", "main")
    assert (path / "build").read_text() == "a file\n"
    assert (path / "deep" / "er").read_text() == "1\n"


def test_folders_without_write_permission_are_cleaned_and_removed(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    for act in (lambda: worktrees.prepare("ada", "covey/T-2", "main"), lambda: worktrees.remove("ada")):
        worktrees.prepare("ada", "covey/T-1", "main")
        stubborn = worktrees.path("ada") / "stubborn"
        stubborn.mkdir()
        (stubborn / "x").write_text("x")
        stubborn.chmod(0o500)
        act()
        assert not stubborn.exists()


@pytest.mark.parametrize("action", ["merge", "rebase", "cherry-pick", "revert", "bisect", "am"])
def test_what_was_under_way_when_a_run_ended_is_forgotten(tmp_path: Path, action: str) -> None:
    worktrees = make_worktrees(tmp_path, {"a": "1\n"})
    worktrees.prepare("ada", "covey/T-1", "main")
    path = worktrees.path("ada")
    commit_files(path, {"a": "ada\n"}, "Ada's")
    commit_files(path, {"a": "ada 2\n"}, "Ada's second")
    tip = git_out(path, "rev-parse", "HEAD")
    commit_files(worktrees.project.root, {"a": "other\n"}, "Other")
    begin_and_stop_midway(path, action)
    assert worktrees.prepare("ada", "covey/T-1", "main") == tip
    assert_stands(worktrees, "ada", "covey/T-1", tip)
    said = git_out(path, "status")
    assert not any(word in said.lower() for word in ("merging", "rebas", "cherry", "revert", "bisect", "am session"))


def begin_and_stop_midway(path: Path, action: str) -> None:
    steps = {
        "merge": ["merge main"],
        "rebase": ["rebase main"],
        "cherry-pick": ["cherry-pick main"],
        "revert": ["revert --no-edit HEAD~1"],
        "bisect": ["bisect start", "bisect bad", "bisect good HEAD~2"],
        "am": ["format-patch -1 main -o ../patches", "am ../patches/0001-Other.patch"],
    }
    for step in steps[action]:
        subprocess.run(["git", *step.split()], cwd=path, env=user_env(), capture_output=True, check=False)
    assert git_out(path, "status") != ""


def test_an_index_that_a_crash_cut_off_is_made_anew(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    git_dir = worktrees.git_dir("ada")
    assert git_dir is not None
    (git_dir / "index").write_bytes(b"DIRC\0\0")
    worktrees.prepare("ada", "covey/T-1", "main")
    assert_stands(worktrees, "ada", "covey/T-1", tip)


# Many at once


def test_many_threads_make_their_worktrees_at_once(tmp_path: Path) -> None:
    make_thirty_by_threads(tmp_path)


@pytest.mark.soak
def test_thirty_threads_make_their_worktrees_at_once_ten_times(tmp_path: Path) -> None:
    for number in range(10):
        make_thirty_by_threads(tmp_path / str(number))


def make_thirty_by_threads(folder: Path) -> None:
    worktrees = make_worktrees(folder, {f"d{n % 10}/f{n}": "text\n" * 20 for n in range(200)})
    before = settings_of(worktrees.project)
    with ThreadPoolExecutor(30) as pool:
        began = time.monotonic()
        tips = list(pool.map(lambda n: worktrees.prepare(f"s{n}", f"covey/T-{n}", "main"), range(30)))
        print(f"30 worktrees by threads: {time.monotonic() - began:.2f} s")
    assert_thirty(worktrees, before)
    assert set(tips) == {main_of(worktrees)}
    with ThreadPoolExecutor(30) as pool:
        list(pool.map(lambda n: worktrees.prepare(f"s{n}", f"covey/U-{n}", "main"), range(30)))
        list(pool.map(lambda n: worktrees.remove(f"s{n}"), range(30)))
    assert worktrees.list() == []
    assert not worktrees.folder.exists()
    assert not (worktrees.project.common / "worktrees").exists()
    # On a busy machine some of them go from the disk only after that.
    wait_until(lambda: not (worktrees.project.state / "old-worktrees").exists(), "the end of what was removed")
    left = sorted(path.name for path in worktrees.project.state.rglob("*"))
    assert left == ["branches.lock", "worktrees", "worktrees.lock"]


def assert_thirty(worktrees: Worktrees, settings: bytes) -> None:
    project = worktrees.project
    assert branches(project) == sorted(["main", *(f"covey/T-{n}" for n in range(30))])
    assert len(git_out(project.root, "worktree", "list").splitlines()) == 31
    assert len(worktrees.list()) == 30
    assert all(git_out(worktrees.path(f"s{n}"), "status", "--porcelain") == "" for n in range(30))
    assert lock_files(project) == []
    assert settings_of(project) == settings


def test_what_others_ask_of_git_does_not_fail_while_worktrees_come_and_go(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    end, failures, raced = threading.Event(), list[str](), list[str]()

    def ask() -> None:
        while not end.is_set():
            for words in ("log --all --max-count=1", "checkout --quiet -B covey/T-1", "worktree list"):
                done = subprocess.run(
                    ["git", *words.split()], cwd=worktrees.path("ada"), env=user_env(), capture_output=True, check=False
                )
                # git itself lists the folders of worktrees and then looks into each: one that is gone by then ends
                # a plain `git worktree list` beside a plain `git worktree remove` too: 2 of 5,670 on a busy machine, so
                # that more than three in a test's few hundred would be ours.
                if done.returncode != 0:
                    said = done.stderr
                    gone = said.startswith(b"fatal: Invalid path") or b"/commondir: No such file" in said
                    (raced if gone else failures).append(done.stderr.decode())

    asking = threading.Thread(target=ask)
    asking.start()
    for number in range(40):
        worktrees.prepare(f"s{number % 4}", f"covey/U-{number}", "main")
        worktrees.remove(f"s{number % 4}")
    end.set()
    asking.join()
    assert failures == []
    assert len(raced) <= 3, raced


def test_locks_of_a_killed_git_are_removed_but_not_those_of_one_that_may_be_at_work(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    common = worktrees.project.common
    packed, gone, used = (
        common / name for name in ("packed-refs.lock", "refs/heads/covey/T-3.lock", "refs/heads/covey/T-1.lock")
    )
    for lock in (packed, gone, used):
        lock.touch()
        os.utime(lock, (1.0, 1.0))
    with subprocess.Popen(["sh", "-c", "git cat-file --batch; :"], cwd=worktrees.path("ada"), stdin=subprocess.PIPE):
        wait_until(lambda: foreign_git.are_in([worktrees.folder]), "a git of somebody else's")
        worktrees.unlock_refs()
        assert (packed.exists(), gone.exists(), used.exists()) == (True, False, True)
    worktrees.unlock_refs()
    assert (packed.exists(), used.exists()) == (False, True)


def test_a_removal_takes_no_entry_for_trash_that_is_being_drawn_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktrees = make_worktrees(tmp_path)
    sweeping = threading.Thread(target=lambda: worktrees._sweep(worktrees.folder))  # as the last step of a removal
    link = worktree_admin.link

    def meet(checkout: Path, entry: Path) -> None:
        link(checkout, entry)
        sweeping.start()
        sweeping.join(0.5)  # it waits for us, unless it need not; then it has done its worst by now

    monkeypatch.setattr(worktree_admin, "link", meet)
    worktrees.prepare("bob", "covey/T-2", "main")
    sweeping.join()
    assert [each.name for each in worktrees.list()] == ["bob"]


PREPARE = """
import sys
from pathlib import Path
from covey.git.project import find
from covey.git.worktrees.worktrees import Worktrees
repository, folder = sys.argv[1:]
worktrees = Worktrees(find(Path(repository)), Path(folder))
print("ready", flush=True)
for line in sys.stdin:
    print(worktrees.prepare(*line.split()), flush=True)
"""


def preparing(worktrees: Worktrees) -> subprocess.Popen[str]:
    """Start a process that prepares what it is told, a line each."""
    words = [sys.executable, "-c", PREPARE, str(worktrees.project.root), str(worktrees.folder)]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, env=user_env()
    )


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def make_thirty_by_processes(folder: Path) -> None:
    worktrees = make_worktrees(folder, {f"d{n % 10}/f{n}": "text\n" * 20 for n in range(200)})
    before = settings_of(worktrees.project)
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(preparing(worktrees)) for _ in range(30)]
        assert {hear(process) for process in processes} == {"ready"}
        began = time.monotonic()
        for number, process in enumerate(processes):
            tell(process, f"s{number} covey/T-{number} main")
        assert {hear(process) for process in processes} == {main_of(worktrees)}
        print(f"30 worktrees by processes: {time.monotonic() - began:.2f} s")
        for process in processes:
            process.communicate()
    assert_thirty(worktrees, before)


@pytest.mark.soak
def test_thirty_processes_make_their_worktrees_at_once_ten_times(tmp_path: Path) -> None:
    for number in range(10):
        make_thirty_by_processes(tmp_path / str(number))


@pytest.mark.soak
def test_ten_large_worktrees_are_made_at_once(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    fill_fast(repository, 20_000)
    worktrees = open_worktrees(repository)
    with ThreadPoolExecutor(10) as pool:
        began = time.monotonic()
        list(pool.map(lambda n: worktrees.prepare(f"s{n}", f"covey/T-{n}", "main"), range(10)))
        print(f"10 worktrees of 20,000 files: {time.monotonic() - began:.2f} s")
        began = time.monotonic()
        list(pool.map(lambda n: worktrees.prepare(f"s{n}", f"covey/U-{n}", "main"), range(10)))
        print(f"the same used again: {time.monotonic() - began:.2f} s")
    for number in range(10):
        assert git_out(worktrees.path(f"s{number}"), "status", "--porcelain") == ""
        assert sum(len(files) for _, _, files in os.walk(worktrees.path(f"s{number}"))) == 20_001
    began = time.monotonic()
    for number in range(10):
        worktrees.remove(f"s{number}")
    print(f"removed: {time.monotonic() - began:.2f} s")


def fill_fast(repository: Path, count: int) -> None:
    lines = ["commit refs/heads/main", "committer Ada <ada@example.org> 1700000000 +0000", "data 5", "Large"]
    for number in range(count):
        text = f"file {number}\n" * 40
        lines += [f"M 100644 inline d{number % 200}/f{number}", f"data {len(text)}", text]
    git_out(repository, "fast-import", "--quiet", "--force", stdin="\n".join(lines) + "\n")
    git_out(repository, "reset", "--quiet", "--hard")


# Crashes


def test_a_killed_prepare_is_mended_by_the_next(tmp_path: Path) -> None:
    kill_many_times(tmp_path, rounds=8, seed=1)


@pytest.mark.soak
def test_a_prepare_killed_at_any_moment_is_mended_by_the_next(tmp_path: Path) -> None:
    kill_many_times(tmp_path, rounds=120, seed=random.randrange(1000))


def kill_many_times(folder: Path, rounds: int, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    worktrees = make_worktrees(folder, {f"f{n}": "text\n" * 200 for n in range(300)})
    for number in range(rounds):
        name = chance.choice(["ada", f"s{number}"])
        with preparing(worktrees) as process:
            assert hear(process) == "ready"
            tell(process, f"{name} covey/T-{number} main")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.random() * 0.08)
            if chance.random() < 0.5:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        # Another's is not hindered by what the crash left, and the same one is mended.
        worktrees.prepare("bob", f"covey/B-{number}", "main")
        assert_stands(worktrees, name, f"covey/T-{number}", worktrees.prepare(name, f"covey/T-{number}", "main"))
        assert lock_files(worktrees.project) == []
        if chance.random() < 0.5:
            worktrees.remove(name)
    known = git_out(worktrees.project.root, "worktree", "list", "--porcelain")
    assert known.count("worktree ") == 1 + len(worktrees.list())
    assert len(worktree_admin.entries(worktrees.project.common)) == len(worktrees.list())
    assert git_out(worktrees.project.root, "status", "--porcelain") == ""


HALVES: dict[str, Callable[[Path, Path], object]] = {
    "the folder is missing": lambda entry, path: shutil.rmtree(path),
    "the link is missing": lambda entry, path: (path / ".git").unlink(),
    "the entry does not say where": lambda entry, path: (entry / "gitdir").unlink(),
    "the entry does not say of what": lambda entry, path: (entry / "commondir").unlink(),
    "the entry was about to say of what": lambda entry, path: (entry / "commondir").write_text(""),
    "the entry has no HEAD": lambda entry, path: (entry / "HEAD").unlink(),
    "HEAD is nothing yet": lambda entry, path: (entry / "HEAD").write_text("0" * 40 + "\n"),
    "the entry is still marked": lambda entry, path: (entry / "locked").write_text("initializing"),
    "the entry is empty": lambda entry, path: [remove(child) for child in entry.iterdir()],
}


@pytest.mark.parametrize("half", HALVES)
def test_a_worktree_that_is_half_made_is_mended_or_removed(tmp_path: Path, half: str) -> None:
    worktrees = make_worktrees(tmp_path)
    for act in ("prepare", "remove"):
        worktrees.prepare("ada", "covey/T-1", "main")
        git_dir = worktrees.git_dir("ada")
        assert git_dir is not None
        HALVES[half](git_dir, worktrees.path("ada"))
        assert [listed.name for listed in worktrees.list()] == ["ada"]
        worktrees.prepare("bob", "covey/T-2", "main")
        if act == "prepare":
            assert_stands(worktrees, "ada", "covey/T-1", worktrees.prepare("ada", "covey/T-1", "main"))
            assert len(worktree_admin.entries(worktrees.project.common)) == 2
        worktrees.remove("ada")
        assert [listed.name for listed in worktrees.list()] == ["bob"]
        assert len(git_out(worktrees.project.root, "worktree", "list").splitlines()) == 2
        worktrees.remove("bob")


def test_the_files_of_a_worktree_that_git_has_forgotten_are_kept_beside_it(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    path = worktrees.path("ada")
    (path / "precious").write_text("work\n")
    path.rename(tmp_path / "away")
    git_out(worktrees.project.root, "worktree", "prune")
    (tmp_path / "away").rename(path)
    worktrees.prepare("ada", "covey/T-1", "main")
    [kept] = worktrees.folder.glob(".covey-aside-ada-*")
    assert (kept / "precious").read_text() == "work\n"


@pytest.mark.parametrize("name", ["ada", ".gate-1", "a.lock"])
def test_a_record_that_a_crash_of_the_machine_cut_off_does_no_harm(tmp_path: Path, name: str) -> None:
    worktrees = make_worktrees(tmp_path)
    tip = worktrees.prepare(name, "covey/T-1", "main")
    (worktrees.project.state / "worktrees" / f"{name}.made").write_bytes(b"")
    worktrees.prepare("bob", "covey/T-2", "main")
    assert len(worktrees.list()) == 2
    worktrees.prepare(name, "covey/T-1", "main")
    assert_stands(worktrees, name, "covey/T-1", tip)
    worktrees.remove(name)
    assert [listed.name for listed in worktrees.list()] == ["bob"]


def test_a_repository_that_a_session_made_in_its_worktree_is_kept(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    path = worktrees.path("ada")
    (path / ".git").unlink()
    make_repository(path, {"x": "1\n"})
    worktrees.prepare("ada", "covey/T-1", "main")
    assert_stands(worktrees, "ada", "covey/T-1", tip)
    [kept] = (worktrees.project.state / "aside").iterdir()
    assert git_out(kept, "log", "--format=%s") == "Begin"


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "branch"])
def test_lock_files_of_a_killed_git_are_removed(tmp_path: Path, lock: str) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    git_dir = worktrees.git_dir("ada")
    assert git_dir is not None
    path = git_dir / lock if lock != "branch" else worktrees.project.common / "refs/heads/covey/T-1.lock"
    path.write_text("")
    os.utime(path, (1, 1))
    commit_files(worktrees.project.root, {"x": "2\n"}, "Meanwhile")
    worktrees.prepare("ada", "covey/T-1", "main")
    assert lock_files(worktrees.project) == []


def test_a_lock_file_that_is_in_use_is_waited_for(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    git_dir = worktrees.git_dir("ada")
    assert git_dir is not None
    lock = git_dir / "index.lock"
    lock.write_text("")
    end = threading.Event()

    def keep_busy() -> None:
        while not end.wait(0.02):
            lock.touch()
        lock.unlink()

    busy, done = threading.Thread(target=keep_busy), threading.Event()
    busy.start()

    def ask() -> None:
        worktrees.prepare("ada", "covey/T-1", "main")
        done.set()

    asking = threading.Thread(target=ask)
    asking.start()
    assert not done.wait(1.5)
    end.set()
    wait_until(done.is_set, "the worktree is prepared")
    busy.join()
    asking.join()


def test_a_repository_that_has_moved_with_its_worktrees_goes_on(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path / "old")
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    (tmp_path / "old").rename(tmp_path / "new")
    moved = open_worktrees(tmp_path / "new" / "repo")
    assert moved.path("ada") == tmp_path / "new" / "repo.worktrees" / "ada"
    moved.prepare("ada", "covey/T-1", "main")
    assert_stands(moved, "ada", "covey/T-1", tip)


def test_a_worktree_stays_where_it_is_when_another_folder_is_chosen(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    other = Worktrees(worktrees.project, tmp_path / "other")
    other.prepare("ada", "covey/T-2", "main")
    other.prepare("bob", "covey/T-3", "main")
    assert other.path("ada") == tmp_path / "repo.worktrees" / "ada"
    assert other.path("bob") == tmp_path / "other" / "bob"
    assert len(other.list()) == 2
    other.remove("ada")
    assert not (tmp_path / "repo.worktrees").exists()


# What is not ours


def test_what_belongs_to_the_user_is_not_touched(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path, {"a": "1\n", "b": "1\n"})
    root, project = worktrees.project.root, worktrees.project
    git_out(root, "tag", "v1")
    (root / "a").write_text("stashed\n")
    git_out(root, "stash")
    git_out(root, "worktree", "add", "--quiet", "-b", "mine", str(tmp_path / "repo.worktrees" / "mine"))
    (root / "a").write_text("staged\n")
    git_out(root, "add", "a")
    (root / "b").write_text("dirty\n")
    (root / "new").write_text("untracked\n")
    before = user_state(root)
    worktrees.prepare("ada", "covey/T-1", "main")
    worktrees.prepare("ada", "covey/T-2", "main")
    worktrees.gate(".gate-1", "main")
    worktrees.release("ada")
    worktrees.remove("mine")
    assert worktrees.drop_empty_branch("covey/T-1", "main")
    assert worktrees.drop_empty_branch("covey/T-2", "main")
    worktrees.remove("ada")
    worktrees.remove(".gate-1")
    assert user_state(root) == before
    assert (tmp_path / "repo.worktrees" / "mine" / "a").exists()
    assert [entry.name for entry in worktree_admin.entries(project.common)] == ["mine"]


def user_state(root: Path) -> list[object]:
    files = {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}
    asked = ("status --porcelain", "for-each-ref", "stash list", "worktree list --porcelain", "log --all --oneline")
    settings = (root / ".git" / "config").read_bytes(), (root / ".git" / "HEAD").read_bytes()
    return [files, settings, [git_out(root, *words.split()) for words in asked], (root / ".git/index").read_bytes()]


def test_a_folder_that_is_not_ours_is_kept_and_ours_is_made_beside_it(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    theirs = worktrees.folder / "ada"
    theirs.mkdir(parents=True)
    (theirs / "x").write_text("theirs\n")
    git_out(worktrees.project.root, "worktree", "add", "--quiet", "--detach", str(worktrees.folder / "bob"))
    git_out(worktrees.project.root, "worktree", "add", "--quiet", "--detach", str(worktrees.folder / "cy"))
    (worktrees.folder / "cy").rename(tmp_path / "unplugged")
    for name in ("ada", "bob", "cy"):
        tip = worktrees.prepare(name, f"covey/T-{name}", "main")
        assert worktrees.path(name).name.startswith(f"{name}-")
        assert_stands(worktrees, name, f"covey/T-{name}", tip)
        worktrees.remove(name)
        worktrees.drop_branch(f"covey/T-{name}", tip)
    assert (theirs / "x").read_text() == "theirs\n"
    assert len(worktree_admin.entries(worktrees.project.common)) == 2
    assert branches(worktrees.project) == ["main"]


def test_another_worktree_of_the_same_name_elsewhere_is_no_hindrance(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    theirs = tmp_path / "elsewhere" / "ada"
    git_out(worktrees.project.root, "worktree", "add", "--quiet", "--detach", str(theirs))
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    assert_stands(worktrees, "ada", "covey/T-1", tip)
    worktrees.remove("ada")
    assert git_out(theirs, "rev-parse", "HEAD") == tip


def test_a_checkout_that_has_taken_the_place_of_ours_is_refused_and_kept(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    git_out(worktrees.project.root, "worktree", "remove", "--force", str(worktrees.path("ada")))
    make_repository(worktrees.path("ada"), {"theirs": "1\n"})
    for act in (lambda: worktrees.prepare("ada", "covey/T-1", "main"), lambda: worktrees.remove("ada")):
        with pytest.raises(Refused, match=r"no longer a worktree|another folder"):
            act()
    assert (worktrees.path("ada") / "theirs").read_text() == "1\n"


def test_what_was_only_meant_to_be_a_worktree_is_made_elsewhere(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.folder.write_text("a file\n")
    for name in ("ada", "bob"):
        with pytest.raises(NoPlace, match="cannot be made: File exists") as refused:
            worktrees.prepare(name, f"covey/{name}", "main")
        assert "worktrees under [sessions]" in refused.value.hint
    with pytest.raises(NoPlace, match="is not a folder"):
        must_have_place(worktrees.folder)
    worktrees.folder.unlink()
    must_have_place(worktrees.folder)
    for name in ("ada", "bob"):
        make_repository(worktrees.folder / name, {"theirs": "1\n"})
    tip = worktrees.prepare("ada", "covey/ada", "main")
    assert_stands(worktrees, "ada", "covey/ada", tip)
    worktrees.remove("ada")
    worktrees.remove("bob")
    assert not worktrees.is_known("bob")
    assert [(worktrees.folder / name / "theirs").read_text() for name in ("ada", "bob")] == ["1\n"] * 2


def test_a_branch_that_another_session_holds_is_taken_from_it_and_its_files_stay(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    commit_files(worktrees.path("ada"), {"half": "1\n"}, "Half")
    (worktrees.path("ada") / "README.md").write_text("dirty\n")
    tip = worktrees.prepare("bob", "covey/T-1", "main")
    assert_stands(worktrees, "bob", "covey/T-1", tip)
    assert git_out(worktrees.path("ada"), "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert git_out(worktrees.path("ada"), "rev-parse", "HEAD") == tip
    assert (worktrees.path("ada") / "README.md").read_text() == "dirty\n"


def test_a_branch_that_the_user_has_checked_out_is_refused(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    worktrees.release("ada")
    git_out(worktrees.project.root, "checkout", "--quiet", "covey/T-1")
    with pytest.raises(Refused, match="which is not covey's") as caught:
        worktrees.prepare("ada", "covey/T-1", "main")
    assert str(worktrees.project.root) in caught.value.message
    with pytest.raises(Refused, match="checked out"):
        worktrees.drop_branch("covey/T-1", main_of(worktrees))
    assert "covey/T-1" in branches(worktrees.project)


def test_what_a_hook_hands_down_to_us_does_not_lead_astray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worktrees = make_worktrees(tmp_path)
    other = make_repository(tmp_path / "other")
    before = user_state(other)
    for name, value in {"DIR": ".git", "INDEX_FILE": ".git/index", "WORK_TREE": ".", "PREFIX": "x/"}.items():
        monkeypatch.setenv(f"GIT_{name}", str(other / value) if name != "PREFIX" else value)
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare=true'")
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    assert_stands(worktrees, "ada", "covey/T-1", tip)
    assert user_state(other) == before


def test_hooks_of_the_user_do_not_run_when_covey_itself_works(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = worktrees.project.common / "hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\n")
        hook.chmod(0o755)
    worktrees.prepare("ada", "covey/T-1", "main")
    worktrees.gate(".gate-1", "main")
    worktrees.prepare("ada", "covey/T-2", "main")
    assert worktrees.drop_empty_branch("covey/T-1", "main")
    assert not (tmp_path / "ran").exists()


# Gates, release, removal, branches


def test_a_gate_has_exactly_the_files_of_one_commit(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path, {".gitignore": "cache\n", "a": "1\n"})
    first = main_of(worktrees)
    commit_files(worktrees.project.root, {"a": "2\n"}, "Second")
    path = worktrees.gate(".gate-1", "main")
    assert (path / "a").read_text() == "2\n"
    for name in ("cache", "left", "a"):
        (path / name).write_text("by a check\n")
    assert worktrees.gate(".gate-1", first) == path
    assert (path / "a").read_text() == "1\n"
    assert git_out(path, "rev-parse", "HEAD") == first
    assert git_out(path, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert sorted(child.name for child in path.iterdir()) == [".git", ".gitignore", "a"]
    assert sorted(worktrees.tracked(".gate-1")) == [b".gitignore", b"a"]
    assert branches(worktrees.project) == ["main"]


def test_a_released_branch_is_free_and_its_files_stay(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    (worktrees.path("ada") / "new").write_text("kept\n")
    for _ in range(2):
        worktrees.release("ada")
        git_dir = worktrees.git_dir("ada")
        assert git_dir is not None and worktree_admin.branch(git_dir) is None
        assert worktree_admin.commit(git_dir) == tip
    assert (worktrees.path("ada") / "new").read_text() == "kept\n"
    worktrees.release("nobody")
    assert worktrees.drop_branch("covey/T-1", tip)


def test_removing_is_for_good_and_twice_is_once(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    worktrees.prepare("ada", "covey/T-1", "main")
    worktrees.prepare("bob", "covey/T-2", "main")
    for _ in range(2):
        worktrees.remove("ada")
        assert [listed.name for listed in worktrees.list()] == ["bob"]
    assert [path.name for path in worktrees.folder.iterdir()] == ["bob"]
    worktrees.remove("bob")
    assert not worktrees.folder.exists()
    assert git_out(worktrees.project.root, "worktree", "list").count("\n") == 0
    assert "covey/T-1" in branches(worktrees.project)


def test_a_large_worktree_is_removed_at_once_and_goes_from_the_disk_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktrees = make_worktrees(tmp_path, {f"{folder}/{number}": "x\n" for folder in "abc" for number in range(20)})
    old = worktrees.project.state / "old-worktrees"
    later: list[Path] = []
    monkeypatch.setattr("covey.git.worktrees.worktree_files.QUICK_S", 0.0)
    monkeypatch.setattr("covey.trash.remove_later", later.append)
    worktrees.prepare("ada", "covey/T-1", "main")
    worktrees.remove("ada")
    assert worktrees.list() == []
    assert not worktrees.folder.exists()
    assert git_out(worktrees.project.root, "worktree", "list").count("\n") == 0
    assert later == [old]
    (left,) = old.iterdir()
    assert left.name.startswith("ada-")
    monkeypatch.undo()
    worktrees.clear_old()  # as the next daemon does, if nobody got to it
    wait_until(lambda: not old.exists(), "the end of what was removed")
    worktrees.prepare("ada", "covey/T-1", "main")


def _is_put(folder: Path) -> bool:
    """Make a folder, unless the one above it is taken away just then."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError:
        return False
    return True


def test_two_who_empty_the_same_folder_do_not_meet(tmp_path: Path) -> None:
    old = tmp_path / "old"
    for number in range(40):
        (old / f"{number % 4}" / f"{number}").mkdir(parents=True)
    for _ in range(3):
        remove_later(old)
    wait_until(lambda: _is_put(old / "late"), "a late one in the folder")
    remove_later(old)
    wait_until(lambda: not old.exists(), "the end of the folder")


def test_a_branch_is_dropped_only_where_it_was_seen(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    base = worktrees.prepare("ada", "covey/T-1", "main")
    assert worktrees.merged("main") == {"covey/T-1"}
    commit_files(worktrees.path("ada"), {"x": "1\n"}, "Work")
    tip = git_out(worktrees.path("ada"), "rev-parse", "HEAD")
    assert worktrees.merged("main") == set()
    assert not worktrees.drop_empty_branch("covey/T-9", "main")
    with pytest.raises(Refused, match="checked out in"):
        worktrees.drop_branch("covey/T-1", tip)
    worktrees.release("ada")
    assert not worktrees.drop_empty_branch("covey/T-1", "main")
    assert not worktrees.drop_branch("covey/T-1", base)
    git_out(worktrees.project.root, "pack-refs", "--all")
    assert worktrees.drop_branch("covey/T-1", tip)
    assert not worktrees.drop_branch("covey/T-1", tip)
    for branch in ("main", "covey/", "covey"):
        with pytest.raises(Invalid, match="is not a branch of a session"):
            worktrees.drop_branch(branch, tip)


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a b", ".trash-/x"])
def test_a_name_that_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    worktrees = make_worktrees(tmp_path)
    with pytest.raises(Invalid):
        worktrees.prepare(name, "covey/T-1", "main")
    with pytest.raises(Invalid):
        worktrees.remove(name)


@pytest.mark.parametrize("name", ["a.lock", "a..b", "a.", "A-1_b.c", "made.made"])
def test_odd_names_work_too(tmp_path: Path, name: str) -> None:
    worktrees = make_worktrees(tmp_path)
    assert_stands(worktrees, name, "covey/T-1", worktrees.prepare(name, "covey/T-1", "main"))
    assert [listed.name for listed in worktrees.list()] == [name]
    worktrees.remove(name)
    assert worktrees.list() == []


def test_a_base_that_is_no_commit_makes_nothing(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path)
    with pytest.raises(Invalid, match="no commit nowhere"):
        worktrees.prepare("ada", "covey/T-1", "nowhere")
    assert not worktrees.folder.exists()


# Where they live


def test_the_folder_is_beside_the_repository_also_when_that_is_bare(tmp_path: Path) -> None:
    bare = make_repository(tmp_path / "tool.git", bare=True)
    worktrees = open_worktrees(bare)
    assert worktrees.folder == tmp_path / "tool.worktrees"
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    assert_stands(worktrees, "ada", "covey/T-1", tip)
    assert (worktrees.path("ada") / "README.md").exists()
    worktrees.remove("ada")
    hidden = find(make_repository(tmp_path / "site" / ".bare", bare=True))
    assert default_folder(hidden, TEMPLATE) == tmp_path / "site" / "site.worktrees"


def test_a_folder_that_git_would_show_is_refused_and_one_that_it_ignores_is_not(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path, {".gitignore": "/ignored/\n", "src/x": "1\n"})
    project = worktrees.project
    for template in ("trees", ".", "src/../trees/{repo}", ".git/worktrees", ".git", ".git/covey"):
        with pytest.raises(Invalid) as caught:
            default_folder(project, template)
        assert "../{repo}.worktrees" in caught.value.hint
    assert default_folder(project, "ignored/{repo}") == project.root / "ignored" / "repo"
    assert default_folder(project, ".git/covey/trees") == project.state / "trees"
    assert default_folder(project, str(tmp_path / "abs")) == tmp_path / "abs"
    with pytest.raises(Invalid, match="makes no sense"):
        default_folder(project, "../{repository}")
    inside = Worktrees(project, default_folder(project, "ignored"))
    inside.prepare("ada", "covey/T-1", "main")
    assert git_out(project.root, "status", "--porcelain") == ""


def test_the_project_is_the_same_seen_from_a_subfolder_and_from_a_worktree(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path, {"apps/web/x": "1\n"})
    worktrees.prepare("ada", "covey/T-1", "main")
    for place in (worktrees.project.root / "apps" / "web", worktrees.path("ada") / "apps" / "web"):
        assert open_worktrees(place).folder == worktrees.folder


# The newest main


def with_remote(tmp_path: Path) -> tuple[Worktrees, Path]:
    worktrees = make_worktrees(tmp_path)
    git_out(tmp_path, "clone", "--quiet", str(worktrees.project.root), "other")
    git_out(worktrees.project.root, "remote", "add", "origin", str(tmp_path / "other"))
    return worktrees, tmp_path / "other"


def test_new_branches_begin_at_what_has_landed_or_at_the_remote_if_that_is_ahead(tmp_path: Path) -> None:
    worktrees, other = with_remote(tmp_path)
    root = worktrees.project.root
    first = main_of(worktrees)
    assert worktrees.upstream.newest("main", "") == worktrees.upstream.newest("main", "origin") == first
    landed = git_out(root, "commit-tree", f"{first}^{{tree}}", "-p", first, "-m", "Landed")
    git_out(root, "update-ref", "refs/covey/landed", landed)
    assert worktrees.upstream.newest("main", "") == landed
    commit_files(other, {"pushed": "1\n"}, "Pushed")
    assert open_worktrees(root).upstream.newest("main", "origin") == landed, "diverged: ours"
    git_out(other, "fetch", "--quiet", str(root), "refs/covey/landed")
    git_out(other, "rebase", "--quiet", "FETCH_HEAD")
    git_out(other, "tag", "v1")
    assert worktrees.upstream.newest("main", "origin") == landed, "fetched a moment ago"
    assert open_worktrees(root).upstream.newest("main", "origin") == git_out(other, "rev-parse", "main")
    assert open_worktrees(root).upstream.newest("main", "nowhere") == landed
    commit_files(root, {"mine": "1\n"}, "Mine")
    assert worktrees.upstream.newest("main", "") == main_of(worktrees)
    assert git_out(root, "tag") == git_out(root, "branch", "--remotes") == ""
    assert not (root / ".git" / "FETCH_HEAD").exists()


def test_a_remote_that_is_gone_is_tolerated_and_noted(tmp_path: Path) -> None:
    worktrees, other = with_remote(tmp_path)
    other.rename(tmp_path / "gone")
    assert worktrees.upstream.newest("main", "origin") == main_of(worktrees)
    assert worktrees.upstream.note.startswith("origin could not be fetched: ")
    (tmp_path / "gone").rename(other)
    commit_files(other, {"pushed": "1\n"}, "Pushed")
    assert worktrees.upstream.newest("main", "origin") == main_of(worktrees), "not asked again at once"


def test_a_remote_that_hangs_is_given_up_once_for_all_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "UPSTREAM_TIMEOUT_S", 4.0)
    worktrees = make_worktrees(tmp_path)
    hang = tmp_path / "hang"
    hang.write_text(f'#!/bin/sh\necho "$$ $*" >> {tmp_path}/asked\nexec sleep 1000\n')
    hang.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(hang))
    git_out(worktrees.project.root, "remote", "add", "origin", "ssh://git@example.invalid/x")
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda _: worktrees.upstream.newest("main", "origin"), range(10)))
    assert set(found) == {main_of(worktrees)}
    [asked] = (tmp_path / "asked").read_text().splitlines()
    assert "BatchMode=yes" in asked
    wait_until(lambda: not Path(f"/proc/{asked.split()[0]}").exists(), "the hanging ssh is gone")
    assert "did not end" in worktrees.upstream.note


def test_a_main_without_a_commit_is_refused(tmp_path: Path) -> None:
    git_out(tmp_path, "init", "--quiet", "--initial-branch=main", "repo")
    with pytest.raises(Refused, match=r"There is no commit on main yet\."):
        open_worktrees(tmp_path / "repo").upstream.newest("main", "")


def test_a_branch_that_is_just_being_checked_out_is_not_dropped_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had the task before has given it back, and is being removed."""
    worktrees = make_worktrees(tmp_path)
    dropped: list[Future[bool]] = []
    check_out = Worktrees._in

    def slowly(self: Worktrees, entry: Path, path: Path, *words: str, lock: int | None = None) -> bytes:
        if words[0] == "symbolic-ref":
            dropped.append(pool.submit(worktrees.drop_empty_branch, "covey/T-1", "main"))
            wait(dropped, timeout=0.5)
        return check_out(self, entry, path, *words, lock=lock)

    monkeypatch.setattr(Worktrees, "_in", slowly)
    with ThreadPoolExecutor(1) as pool:
        tip = worktrees.prepare("ada", "covey/T-1", "main")
        with pytest.raises(Refused, match="is checked out in"):
            dropped[0].result()
    assert git_out(worktrees.path("ada"), "rev-parse", "HEAD") == tip
