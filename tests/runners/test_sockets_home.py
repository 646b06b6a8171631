"""Where the sockets of terminals live, also if another user was there first."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from covey.core.fleet.launches import Launch
from covey.runners import tmux
from covey.runners.tmux import TmuxRunner, make_place, place_of, socket_of
from tests.worlds.serving import wait_until


def _file(usual: Path) -> None:
    usual.write_text("not yours")


def _link(usual: Path) -> None:
    usual.symlink_to(usual.parent)


def _of_another(usual: Path) -> None:
    usual.mkdir(mode=0o755)
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(usual, 12345, 12345)


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder that stands for the one that all users share."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setattr(tmux, "SHORT_TEMPORARY", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("squat", [_file, _link, _of_another])
def test_a_folder_of_another_user_under_our_name_stops_no_terminal(
    temporary: Path, tmp_path: Path, squat: Callable[[Path], None]
) -> None:
    squat(temporary / f"covey-{os.getuid()}")
    runs = tmp_path / "state" / "runs"
    runs.mkdir(parents=True)
    home = socket_of(runs).parent
    assert home.parent == temporary and home.name.startswith(f"covey-{os.getuid()}-")
    assert home.stat().st_mode & 0o077 == 0
    assert socket_of(runs).parent == home == place_of(runs / "run-1").parent, "it is the same from then on"
    runner = TmuxRunner(runs)
    runner.start("run-1", Launch(argv=("/bin/sh", "-c", "echo here"), cwd="/", env={"PATH": "/bin:/usr/bin"}))
    wait_until(lambda: runner.look("run-1").code == 0, "the end of the program")
    runner.stop("run-1")
    assert make_place(runs / "run-1").is_dir()
    shutil.rmtree(home)  # as a tidy system does with old files
    assert socket_of(runs).parent != home


def test_a_project_uses_the_usual_folder_if_it_is_the_users_own(temporary: Path, tmp_path: Path) -> None:
    runs = tmp_path / "state" / "runs"
    runs.mkdir(parents=True)
    usual = temporary / f"covey-{os.getuid()}"
    assert socket_of(runs).parent == usual and usual.stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "state" / tmux.HOME).exists()
