"""The room of a gate: what is in it, what stands in for something, and what cannot be left."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from covey.core.fleet.launches import Layer
from covey.runners import sandbox
from covey.runners.sandbox import Powers, Room, inside, under


def run(room: Room, script: str) -> subprocess.CompletedProcess[str]:
    words = (*under(room.layers), *inside(("sh", "-c", script), room, room.folder))
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    for name in ("folder", "temporary", "real", "own", "secret"):
        (tmp_path / name).mkdir()
    (tmp_path / "real" / "old").write_text("old\n")
    return Room(
        folder=str(tmp_path / "folder"), temporary=str(tmp_path / "temporary"), readable=(str(tmp_path / "real"),)
    )


def test_what_stands_in_for_something_is_written_instead_of_it(room: Room, tmp_path: Path) -> None:
    made = Room(
        folder=room.folder,
        temporary=room.temporary,
        shown=((str(tmp_path / "real"), str(tmp_path / "shown")),),
        instead=((str(tmp_path / "own"), str(tmp_path / "real")),),
    )
    done = run(made, f"pwd; cat {tmp_path}/shown/old; echo new > {tmp_path}/real/new; ! touch {tmp_path}/shown/x")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/folder\nold\n"), done.stderr
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["old"]
    assert (tmp_path / "own" / "new").read_text() == "new\n"


def test_what_is_not_named_is_not_there_and_what_is_hidden_is_empty(room: Room, tmp_path: Path) -> None:
    (tmp_path / "real" / "token").write_text("secret\n")
    (tmp_path / "real" / "state").mkdir()
    (tmp_path / "real" / "state" / "key").write_text("secret\n")
    real = str(tmp_path / "real")
    hiding = Room(
        folder=room.folder, temporary=room.temporary, readable=(real,), hidden=(f"{real}/token", f"{real}/state")
    )
    script = f"cat {real}/old {real}/token; ls {real}/state; test ! -e {tmp_path}/secret && ls / /home /root /srv 2>&1"
    assert "secret" not in run(hiding, script).stdout
    assert run(room, f"cat {real}/token").stdout == "secret\n"  # the control


def test_what_is_written_into_a_layer_is_seen_there_and_nowhere_else(room: Room, tmp_path: Path) -> None:
    odd = tmp_path / "an odd, name: with\\all"
    shutil.copytree(tmp_path / "real", odd)
    (odd / "secret").touch()
    (tmp_path / "upper").mkdir()
    (tmp_path / "work").mkdir()
    layer = Layer(str(odd), (str(odd),), str(tmp_path / "upper"), str(tmp_path / "work"), absent=("secret", "none"))
    made = Room(folder=room.folder, temporary=room.temporary, layers=(layer,))
    done = run(made, f"cd '{odd}' && cat old && test ! -e secret && rm old && echo new > new && ls")
    assert (done.returncode, done.stdout) == (0, "old\nnew\n"), done.stderr
    assert sorted(path.name for path in odd.iterdir()) == ["old", "secret"]
    assert run(made, f"ls '{odd}'").stdout == "new\n"


def test_a_layer_that_cannot_be_laid_is_said(room: Room, tmp_path: Path) -> None:
    layer = Layer(room.folder, (str(tmp_path / "gone"),), room.folder, room.folder)
    made = Room(folder=room.folder, temporary=room.temporary, layers=(layer,))
    assert "gone" in (sandbox.refusal(made, "/") or "")
    assert sandbox.layers_trouble(str(tmp_path)) is None
    assert os.listdir(tmp_path).count("folder") == 1 and not list(tmp_path.glob(".layers-*"))


def test_not_even_root_leaves_a_room_by_mounting_or_through_another_process(room: Room, tmp_path: Path) -> None:
    real = tmp_path / "real"
    outside = f"/proc/{os.getpid()}/root{real}"
    script = (
        f"mount -o remount,rw,bind {real}; touch {real}/mounted; touch {outside}/crept; mknod {room.folder}/d b 8 0"
    )
    run(room, script)
    assert [path.name for path in real.iterdir()] == ["old"]
    assert list(Path(room.folder).iterdir()) == []
    assert int(run(room, "grep CapEff /proc/self/status").stdout.split()[1], 16) & (1 << 21 | 1 << 2 | 1 << 27) == 0


def test_where_the_program_is_missing_that_is_said_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_powers", None)
    monkeypatch.setattr(sandbox, "PROGRAM", "no-such-bwrap")
    assert sandbox.trouble() == sandbox.trouble() == "no-such-bwrap is not installed"
    assert sandbox.powers() is None
    monkeypatch.setattr(sandbox, "PROGRAM", "false")
    assert sandbox.trouble() == "false does not work here: it ended with code 1"


def test_why_a_room_cannot_be_made_is_said(room: Room, tmp_path: Path) -> None:
    assert sandbox.refusal(room, "/") is None
    gone = str(tmp_path / "gone")
    assert gone in (sandbox.refusal(Room(folder=gone, temporary=str(tmp_path)), "/") or "")


@pytest.mark.parametrize(
    ("refused", "powers"),
    [("--unshare-pid", Powers(False, True)), ("--unshare-net", Powers(True, False))],
)
def test_where_a_wall_cannot_be_had_a_room_is_made_without_and_that_is_known(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str, powers: Powers
) -> None:
    strict = tmp_path / "bin" / "bwrap"
    strict.parent.mkdir()
    strict.write_text(
        f'#!/bin/sh\ncase "$*" in *{refused}*) echo "bwrap: Not permitted" >&2; exit 1;; esac\n'
        f'exec {shutil.which(sandbox.PROGRAM)} "$@"\n'
    )
    strict.chmod(0o755)
    monkeypatch.setattr(sandbox, "_powers", None)
    monkeypatch.setenv("PATH", str(strict.parent), prepend=":")
    assert sandbox.trouble() is None
    assert sandbox.powers() == powers
    assert sandbox.refusal(room, "/") is None
