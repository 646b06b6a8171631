"""The room of a gate: what is lent to it of the person's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from covey.runners import sandbox
from covey.runners.sandbox import Room, caches, inside


def test_only_caches_that_are_there_are_lent(tmp_path: Path) -> None:
    (tmp_path / ".npm").mkdir()
    (tmp_path / ".cargo").mkdir()
    (tmp_path / "elsewhere").mkdir()
    env = {"HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "elsewhere"), "GOCACHE": "off", "PIP_CACHE_DIR": "/no"}
    assert set(caches(env)) == {str(tmp_path / name) for name in (".npm", ".cargo", "elsewhere")}


def test_a_home_is_never_lent_as_a_cache(tmp_path: Path) -> None:
    assert caches({"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "CARGO_HOME": "/"}) == ()
    assert caches({}) == ()


def test_the_temporary_folder_is_shared_only_where_the_project_lies_in_it() -> None:
    assert Room(folder="/srv/shop", temporary="/tmp/x", guarded=("/home/ada",)).has_own_temporary()
    assert not Room(folder="/tmp/shop", temporary="/tmp/x").has_own_temporary()
    assert not Room(folder="/srv/shop", temporary="/tmp/x", guarded=("/tmp/tools",)).has_own_temporary()
    assert Room(folder="/tmpfiles", temporary="/tmp/x").has_own_temporary()


@pytest.mark.skipif(sandbox.trouble() is not None, reason="bubblewrap does not work here")
def test_what_stands_in_for_something_is_written_instead_of_it(tmp_path: Path) -> None:
    for name in ("folder", "temporary", "real", "own", "shown"):
        (tmp_path / name).mkdir()
    (tmp_path / "real" / "old").write_text("old\n")
    room = Room(
        folder=str(tmp_path / "folder"),
        temporary=str(tmp_path / "temporary"),
        guarded=(str(tmp_path),),
        shown=((str(tmp_path / "real"), str(tmp_path / "shown")),),
        instead=((str(tmp_path / "own"), str(tmp_path / "real")),),
    )
    script = f"pwd; cat {tmp_path}/shown/old; echo new > {tmp_path}/real/new; ! touch {tmp_path}/x {tmp_path}/shown/x"
    words = inside(("sh", "-c", script), room, room.folder)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/folder\nold\n"), done.stderr
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["old"]
    assert (tmp_path / "own" / "new").read_text() == "new\n"


def test_where_the_program_is_missing_that_is_said_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_apart", None)
    monkeypatch.setattr(sandbox, "PROGRAM", "no-such-bwrap")
    assert sandbox.trouble() == sandbox.trouble() == "no-such-bwrap is not installed"
    monkeypatch.setattr(sandbox, "PROGRAM", "false")
    assert sandbox.trouble() == "false does not work here: it ended with code 1"


@pytest.mark.skipif(sandbox.trouble() is not None, reason="bubblewrap does not work here")
def test_not_even_root_leaves_a_room_by_mounting_or_through_another_process(tmp_path: Path) -> None:
    for name in ("folder", "temporary", "real"):
        (tmp_path / name).mkdir()
    room = Room(folder=str(tmp_path / "folder"), temporary=str(tmp_path / "temporary"), guarded=(str(tmp_path),))
    outside = f"/proc/{os.getpid()}/root{tmp_path}/real"
    script = f"mount -o remount,rw,bind {tmp_path}; touch {tmp_path}/real/mounted; touch {outside}/crept; true"
    subprocess.run(inside(("sh", "-c", script), room, room.folder), capture_output=True, check=True)
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.skipif(sandbox.trouble() is not None, reason="bubblewrap does not work here")
def test_why_a_room_cannot_be_made_is_said(tmp_path: Path) -> None:
    room = Room(folder=str(tmp_path), temporary=str(tmp_path), guarded=(str(tmp_path),))
    assert sandbox.refusal(room, "/") is None
    gone = str(tmp_path / "gone")
    assert gone in (sandbox.refusal(Room(folder=gone, temporary=str(tmp_path), guarded=(str(tmp_path),)), "/") or "")


@pytest.mark.skipif(sandbox.trouble() is not None, reason="bubblewrap does not work here")
def test_where_no_room_can_have_processes_of_its_own_one_is_made_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = tmp_path / "bwrap"
    strict.write_text(
        '#!/bin/sh\ncase "$*" in *--unshare-pid*) echo "bwrap: Can\'t mount proc" >&2; exit 1;; esac\n'
        f'exec {shutil.which(sandbox.PROGRAM)} "$@"\n'
    )
    strict.chmod(0o755)
    monkeypatch.setattr(sandbox, "_apart", None)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert sandbox.trouble() is None
    assert not sandbox.hides_processes()
    room = Room(folder=str(tmp_path), temporary=str(tmp_path), guarded=(str(tmp_path),))
    assert sandbox.refusal(room, "/") is None
    assert "mount proc" in (sandbox.refusal(replace(room, alone=True), "/") or "")
