"""The remover: whatever lies in a folder goes, and nothing else does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from covey.trash import remove

NOBODY = 65534


def nest(folder: Path, depth: int) -> None:
    """Make folders in folders, deeper than any path can name."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


@contextmanager
def bound(source: Path, target: Path) -> Iterator[None]:
    """Mount a folder at another place, if this machine lets us."""
    done = subprocess.run(["mount", "--bind", str(source), str(target)], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        # What it lay in may have moved.
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        below = (line.split()[4] for line in lines if line.split()[4].startswith(str(target.parents[1])))
        subprocess.run(["umount", "--lazy", next(below)], check=True)


def test_three_thousand_nested_folders_go(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    nest(folder, 3000)
    (folder / "beside").write_text("also\n")
    assert remove(folder)
    assert list(tmp_path.iterdir()) == []


def test_links_go_and_what_they_point_at_stays(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "sub").mkdir(parents=True)
    (theirs / "sub" / "file").write_text("mine\n")
    folder = tmp_path / "folder"
    (folder / "in").mkdir(parents=True)
    (folder / "link").symlink_to(theirs)
    (folder / "in" / "link").symlink_to(theirs / "sub")
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    os.link(theirs / "sub" / "file", folder / "in" / "hard")
    assert remove(folder)
    assert (theirs / "sub" / "file").read_text() == "mine\n"
    (tmp_path / "itself").symlink_to(theirs)
    assert remove(tmp_path / "itself")
    assert (theirs / "sub" / "file").read_text() == "mine\n"


def test_odd_names_and_odd_files_go(tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    at = os.fsencode(folder)
    for name in (b"new\nline", b"\xff\xfe", b"-rf", b" ", b"*", b"x" * 255):
        os.mkdir(at + b"/" + name)
        with open(at + b"/" + name + b"/" + name, "w"):
            pass
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "socket"))
    assert remove(folder)
    assert not folder.exists()


def test_what_is_not_there_is_gone_and_a_file_is_one_too(tmp_path: Path) -> None:
    assert remove(tmp_path / "none")
    assert remove(tmp_path / "none" / "below")
    (tmp_path / "file").write_text("x")
    assert remove(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_folders_without_rights_go_for_one_who_is_not_root_and_what_is_another_users_stays() -> None:
    with TemporaryDirectory() as above:  # which others can enter, unlike pytest's own
        Path(above).chmod(0o777)
        _remove_as_nobody(Path(above) / "closed")


def _remove_as_nobody(folder: Path) -> None:
    (folder / "a" / "b" / "c").mkdir(parents=True)
    (folder / "a" / "b" / "c" / "file").write_text("x")
    (folder / "roots").mkdir()
    (folder / "roots" / "file").write_text("x")
    for path in (*folder.rglob("*"), folder):
        if "roots" not in path.parts:
            os.chown(path, NOBODY, NOBODY)
    (folder / "a" / "b" / "c" / "file").chmod(0)
    for name in ("a/b/c", "a/b", "a", ""):
        (folder / name).chmod(0)
    code = "import os, sys; from covey.trash import remove; from pathlib import Path;"
    code += "os.setgroups([]); os.setgid(65534); os.setuid(65534); print(remove(Path(sys.argv[1])))"
    said = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"
    assert len(list(folder.rglob("*"))) == 2
    assert [path.read_text() for path in folder.rglob("file")] == ["x"]
    assert remove(folder)


def test_a_mount_is_neither_entered_nor_emptied(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "file").write_text("mine\n")
    folder = tmp_path / "folder"
    (folder / "deep" / "mounted").mkdir(parents=True)
    (folder / "mounted").mkdir()
    (folder / "deep" / "file").write_text("x")
    with bound(theirs, folder / "mounted"), bound(theirs, folder / "deep" / "mounted"):
        assert not remove(folder)
        assert (theirs / "file").read_text() == "mine\n"
        assert [path for path in folder.rglob("file") if not os.path.samefile(path, theirs / "file")] == []
    assert remove(folder)
    assert (theirs / "file").read_text() == "mine\n"


def test_a_removal_that_takes_too_long_is_gone_on_with_by_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "much"
    for number in range(50):
        (folder / str(number) / "x").mkdir(parents=True)
    assert not remove(folder, patience_s=-1.0)
    assert remove(folder)
