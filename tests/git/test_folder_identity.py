"""covey works only in the folder that it made: whatever takes its place is left alone, byte for byte."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from covey.git.project import find
from covey.git.rescue.rescue import drop, find_rescues, note_aside, rescue
from covey.git.rescue.rescue_repository import NotWhole
from covey.git.rescue.restore import restore
from covey.git.rescue.scan import Place
from covey.git.worktrees import checkout_status
from covey.git.worktrees.worktree_records import Replaced, mounted_in
from covey.git.worktrees.worktrees import Worktrees
from covey.trash import remove
from tests.git.worktrees.test_worktrees import assert_stands, make_worktrees
from tests.test_trash import bound, nest
from tests.worlds.repositories import commit_files, git_out, make_repository

AT = 1_700_000_000.0


@pytest.fixture(autouse=True)
def plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def worktrees(tmp_path: Path) -> Iterator[Worktrees]:
    made = make_worktrees(tmp_path, {"README.md": "Hello\n", ".gitignore": "*.log\n"})
    made.prepare("ada", "covey/T-1", "main")
    yield made
    remove(made.folder)  # what is nested too deep for pytest


def picture(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return all that is in a folder, and which files these are."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def _theirs(worktrees: Worktrees) -> Path:
    other = make_repository(worktrees.project.root.parent / "other", {"tracked": "1\n"})
    (other / "tracked").write_text("not committed\n")
    (other / "untracked").write_text("precious\n")
    return other


def _link_checkout(worktrees: Worktrees, other: Path) -> None:
    worktrees.path("ada").rename(other.parent / "moved")
    worktrees.path("ada").symlink_to(other)


def _copy(worktrees: Worktrees, other: Path) -> None:
    worktrees.path("ada").rename(other.parent / "moved")
    shutil.copytree(other.parent / "moved", worktrees.path("ada"))


def _link_parent(worktrees: Worktrees, other: Path) -> None:
    worktrees.folder.rename(other.parent / "moved")
    worktrees.folder.symlink_to(other.parent / "moved")


def _link_entry(worktrees: Worktrees, other: Path) -> None:
    entry = worktrees.project.common / "worktrees" / "ada"
    entry.rename(other.parent / "moved")
    entry.symlink_to(other / ".git")


def _link_index(worktrees: Worktrees, other: Path) -> None:
    entry = worktrees.project.common / "worktrees" / "ada"
    (entry / "index").unlink()
    (entry / "index").symlink_to(other / "tracked")


def _pipe_head(worktrees: Worktrees, other: Path) -> None:
    entry = worktrees.project.common / "worktrees" / "ada"
    (entry / "logs" / "HEAD").unlink()
    os.mkfifo(entry / "logs" / "HEAD")


def _give_away(worktrees: Worktrees, other: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(worktrees.path("ada"), 65534, 65534)


REPLACED: dict[str, Callable[[Worktrees, Path], None]] = {
    "a link": _link_checkout,
    "a copy": _copy,
    "the parent a link": _link_parent,
    "the entry a link": _link_entry,
    "the index a link": _link_index,
    "the reflog a pipe": _pipe_head,
    "another user's": _give_away,
}


@pytest.mark.parametrize("way", REPLACED)
def test_what_took_the_place_of_a_worktree_is_left_alone(worktrees: Worktrees, way: str) -> None:
    other = _theirs(worktrees)
    before = picture(other)
    REPLACED[way](worktrees, other)
    there = picture(worktrees.path("ada"))
    assert worktrees.why_not_ours("ada")
    acts: list[Callable[[], object]] = [
        lambda: worktrees.prepare("ada", "covey/T-1", "main"),
        lambda: worktrees.take_up("ada", "covey/T-1"),
        lambda: worktrees.release("ada"),
        lambda: worktrees.remove("ada"),
        lambda: worktrees.gate("ada", "main"),
    ]
    for act in acts:
        with pytest.raises(Replaced):
            act()
    assert picture(other) == before
    assert picture(worktrees.path("ada")) == there


@pytest.mark.parametrize("way", [way for way in REPLACED if way != "the parent a link"])
def test_after_it_is_set_aside_the_next_worktree_is_a_new_one(worktrees: Worktrees, way: str) -> None:
    other = _theirs(worktrees)
    before = picture(other)
    REPLACED[way](worktrees, other)
    aside = worktrees.set_aside("ada")
    assert aside is not None
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    assert_stands(worktrees, "ada", "covey/T-1", tip)
    assert worktrees.path("ada") != aside.path
    assert picture(other) == before
    worktrees.drop_aside(aside.path)
    assert picture(other) == before
    assert os.path.lexists(aside.path) is not aside.has_moved


def test_a_look_refuses_what_is_not_the_worktree(worktrees: Worktrees) -> None:
    with checkout_status.look(worktrees.project, worktrees.path("ada")) as seen:
        assert seen.run("status", "--porcelain", patience=60) == b""
    _link_checkout(worktrees, _theirs(worktrees))
    with pytest.raises(Replaced), checkout_status.look(worktrees.project, worktrees.path("ada")):
        pass


def test_a_worktree_of_before_is_known_from_its_next_use_on(worktrees: Worktrees) -> None:
    record = worktrees.project.state / "worktrees" / "ada.made"
    said = json.loads(record.read_text())
    record.write_text(json.dumps({"id": said["id"], "path": said["path"]}))
    assert worktrees.why_not_ours("ada") is None
    worktrees.prepare("ada", "covey/T-1", "main")
    assert json.loads(record.read_text()) == said


def test_a_worktree_stays_ours_when_file_systems_have_other_numbers(tmp_path: Path) -> None:
    worktrees = make_worktrees(tmp_path / "here")
    worktrees.prepare("ada", "covey/T-1", "main")
    record = worktrees.project.state / "worktrees" / "ada.made"
    said = json.loads(record.read_text())
    for part in ("made", "entry_made"):
        said[part] |= {"device": 7, "repository": 7}
    record.write_text(json.dumps(said))
    assert worktrees.why_not_ours("ada") is None
    for part in ("made", "entry_made"):
        said[part] |= {"device": 7, "repository": 8}
    record.write_text(json.dumps(said))
    assert worktrees.why_not_ours("ada") is not None


def _copied(folder: Path, to: Path) -> None:
    subprocess.run(["cp", "-a", str(folder), str(to)], check=True)


def test_a_repository_that_was_restored_with_its_worktrees_goes_on_in_them(worktrees: Worktrees) -> None:
    (worktrees.path("ada") / "new").write_text("not committed\n")
    for folder in (worktrees.project.root, worktrees.folder):
        folder.rename(lost := folder.with_name(f"{folder.name}.lost"))
        _copied(lost, folder)
    assert worktrees.why_not_ours("ada") is None
    with checkout_status.look(worktrees.project, worktrees.path("ada")) as seen:
        assert seen.run("status", "--porcelain", patience=60) == b"?? new\n"
    before = worktrees.path("ada")
    tip = worktrees.take_up("ada", "covey/T-1")
    assert tip is not None and (before / "new").exists()
    worktrees.prepare("ada", "covey/T-1", "main")
    assert worktrees.path("ada") == before
    before.rename(before.with_name("moved"))
    _copied(before.with_name("moved"), before)
    assert worktrees.why_not_ours("ada") is not None, "from its next use on it is known by its number again"


def test_a_copy_of_a_repository_leaves_the_worktrees_of_the_first_alone(worktrees: Worktrees) -> None:
    theirs = picture(worktrees.path("ada"))
    copy = worktrees.project.root.with_name("copy")
    _copied(worktrees.project.root, copy)
    second = Worktrees(find(copy), copy.with_name("copy.worktrees"))
    assert second.path("ada") == worktrees.path("ada"), "as its record says"
    with pytest.raises(Replaced):
        second.prepare("ada", "covey/T-1", "main")
    assert second.set_aside("ada") is not None
    tip = second.prepare("ada", "covey/T-1", "main")
    assert_stands(second, "ada", "covey/T-1", tip)
    assert picture(worktrees.path("ada")) == theirs
    assert worktrees.why_not_ours("ada") is None


def test_worktrees_that_a_person_moved_behind_a_link_are_kept_and_new_ones_made(
    worktrees: Worktrees, tmp_path: Path
) -> None:
    worktrees.folder.rename(tmp_path / "large-disk")
    worktrees.folder.symlink_to(tmp_path / "large-disk")
    after = Worktrees(worktrees.project, worktrees.folder.resolve())
    assert after.set_aside("ada") is not None
    tip = after.prepare("ada", "covey/T-1", "main")
    assert_stands(after, "ada", "covey/T-1", tip)


def test_the_file_monitor_of_git_may_have_a_socket_in_an_entry(
    worktrees: Worktrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = worktrees.git_dir("ada")
    assert entry is not None
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(entry)  # the name of a socket may have a hundred letters
        listening.bind("fsmonitor--daemon.ipc")
        assert worktrees.why_not_ours("ada") is None


def test_an_entry_that_is_odd_is_out_of_the_way_though_the_files_are_gone(worktrees: Worktrees) -> None:
    _link_index(worktrees, _theirs(worktrees))
    remove(worktrees.path("ada"))
    with pytest.raises(Replaced):
        worktrees.prepare("ada", "covey/T-1", "main")
    aside = worktrees.set_aside("ada")
    assert aside is not None and aside.entry is not None and not aside.has_moved
    tip = worktrees.prepare("ada", "covey/T-1", "main")
    assert_stands(worktrees, "ada", "covey/T-1", tip)


def test_a_mount_in_a_worktree_is_neither_cleaned_nor_copied(worktrees: Worktrees, tmp_path: Path) -> None:
    other = _theirs(worktrees)
    before = picture(other)
    (worktrees.path("ada") / "in").mkdir()
    with bound(other, worktrees.path("ada") / "in"):
        assert mounted_in(worktrees.path("ada")) == str(worktrees.path("ada") / "in")
        with pytest.raises(Replaced, match="is a mount"):
            worktrees.prepare("ada", "covey/T-1", "main")
    assert picture(other) == before
    worktrees.prepare("ada", "covey/T-1", "main")


# Rescues within limits


def _rescue(worktrees: Worktrees) -> object:
    path, own = worktrees.path("ada"), worktrees.git_dir("ada")
    return rescue(worktrees.project, path, session="ada", why="a test", at=AT, own=own)


def _nest(path: Path) -> None:
    nest(path, 600)


def _sparse(path: Path) -> None:
    with (path / "big").open("wb") as file:
        file.truncate(3 * 1024**3)


def _waits(path: Path) -> None:
    os.mkfifo(path / "sub.gitignore")
    (path / "sub").mkdir()
    os.mkfifo(path / "sub" / ".gitattributes")


def _closed_history(path: Path) -> None:
    blob = git_out(path, "hash-object", "-w", "--stdin", stdin="x")
    raw = b"100644 .git\0" + bytes.fromhex(blob)
    words = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    tree = subprocess.run(words, cwd=path, input=raw, capture_output=True, check=True).stdout.decode().strip()
    git_out(path, "update-ref", "HEAD", git_out(path, "commit-tree", "-p", "HEAD", "-m", "crafted", tree))


HARD = {"nested": _nest, "sparse": _sparse, "waits": _waits}


@pytest.mark.parametrize("way", HARD)
def test_what_cannot_be_rescued_whole_is_refused_soon_and_kept_aside(worktrees: Worktrees, way: str) -> None:
    path = worktrees.path("ada")
    (path / "small").write_text("work\n")
    commit_files(path, {"README.md": "More\n"}, "On no branch")
    alone = git_out(path, "rev-parse", "HEAD")
    git_out(path, "checkout", "--quiet", "--detach")
    git_out(path, "update-ref", "refs/heads/covey/T-1", "main")
    HARD[way](path)
    with pytest.raises(NotWhole):
        _rescue(worktrees)
    aside = worktrees.set_aside("ada")
    assert aside is not None and aside.has_moved
    place = Place(aside.path, aside.entry)
    noted = note_aside(worktrees.project, place, session="ada", why="a test", task="T-1", at=AT)
    assert (aside.path / "small").read_text() == "work\n"
    assert git_out(worktrees.project.root, "rev-list", noted.ref).splitlines().count(alone) == 1
    [listed] = find_rescues(worktrees.project)
    assert listed.aside == str(aside.path)
    with pytest.raises(Exception, match="kept as it was"):
        restore(worktrees.project, listed.name, path.parent / "back")
    worktrees.prepare("ada", "covey/T-2", "main")
    assert worktrees.drop_aside(Path(listed.aside or ""))
    assert drop(worktrees.project, listed)
    assert not aside.path.exists()
    assert worktrees.path("ada").exists()


def test_a_crafted_commit_fails_the_rescue_and_no_more(worktrees: Worktrees) -> None:
    _closed_history(worktrees.path("ada"))
    with pytest.raises(Exception, match="invalid path"):
        _rescue(worktrees)
    assert worktrees.set_aside("ada") is not None


@pytest.mark.parametrize(
    ("limit", "most", "why"),
    [
        ("rescue_repository.MAX_RESCUE_S", -1, "longer than"),
        ("keep.MAX_RESCUE_BYTES", 10, "MiB"),
        ("scan.MAX_RESCUE_FILES", 1, "files that git does not know"),
    ],
)
def test_each_limit_of_a_rescue_is_told(
    worktrees: Worktrees, limit: str, most: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (worktrees.path("ada") / f"{number}.txt").write_text("work\n" * 10)
    with monkeypatch.context() as patched:
        patched.setattr(f"covey.git.rescue.{limit}", most)
        with pytest.raises(NotWhole, match=why):
            _rescue(worktrees)
    assert _rescue(worktrees) is not None


def test_an_honest_large_worktree_is_rescued_and_comes_back(worktrees: Worktrees, tmp_path: Path) -> None:
    path = worktrees.path("ada")
    (path / "large.bin").write_bytes(os.urandom(1024) * 1024 * 40)
    for number in range(300):
        (path / "many" / str(number % 7)).mkdir(parents=True, exist_ok=True)
        (path / "many" / str(number % 7) / f"{number}.txt").write_text(f"{number}\n")
    (path / "out").symlink_to(tmp_path)
    make_repository(path / "nested", {"x": "1\n"})
    assert _rescue(worktrees) is not None
    back = tmp_path / "back"
    restore(worktrees.project, "ada", back)
    for name in ("large.bin", "many/3/3.txt", "nested/x"):
        assert (back / name).read_bytes() == (path / name).read_bytes()
    assert os.readlink(back / "out") == str(tmp_path)
    assert git_out(back / "nested", "log", "--format=%s") == "Begin"
