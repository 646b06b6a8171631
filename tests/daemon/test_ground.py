"""The files under a daemon are taken away: it notices before its next answer, and loses nothing acknowledged."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from covey.git.project import Project
from tests.daemon.test_life import covey
from tests.worlds.serving import Daemon, check_database, make_repository, serving, wait_until


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Serve an empty board."""
    with serving(tmp_path / "repo") as served:
        yield served


def _remove(project: Project) -> None:
    project.database.unlink()


def _remove_all(project: Project) -> None:
    for name in ("covey.db", "covey.db-wal", "covey.db-shm"):
        (project.state / name).unlink()


def _remove_wal(project: Project) -> None:
    Path(f"{project.database}-wal").unlink()


def _replace(project: Project) -> None:
    other = make_repository(project.root.parent / "other")
    os.replace(other.database, project.database)


def _move(project: Project) -> None:
    project.database.rename(project.state / "elsewhere.db")


TAKE_AWAY = {
    "removed": _remove,
    "all removed": _remove_all,
    "log removed": _remove_wal,
    "replaced": _replace,
    "moved": _move,
}


def _is_over(daemon: Daemon) -> bool:
    return daemon.process is not None and daemon.process.poll() is not None


def _add(daemon: Daemon, title: str) -> int:
    return daemon.ask("POST", "/api/board", {"title": title}).status


@pytest.mark.parametrize("take_away", TAKE_AWAY.values(), ids=TAKE_AWAY)
def test_a_board_whose_file_is_taken_away_answers_no_more_and_all_of_it_is_kept(
    daemon: Daemon, take_away: Callable[[Project], None]
) -> None:
    project = daemon.project
    assert [_add(daemon, f"Task {number}") for number in range(25)] == [201] * 25
    take_away(project)
    refused = daemon.ask("POST", "/api/board", {"title": "Lost"})
    assert refused.status == 503 and "while the daemon ran" in refused.json["error"], refused.body
    assert [_add(daemon, "Lost too") for _ in range(3)] == [503] * 3
    assert daemon.ask("GET", "/api/board").status == 503
    kept = project.rescued()
    assert kept is not None and str(kept) in refused.json["error"] and str(kept) in refused.json["hint"]
    assert "All that was acknowledged" in (project.state / "daemon.log").read_text()
    told = covey(project.root, "up")
    assert told.returncode != 0 and str(kept) in told.stderr and "bug" not in told.stderr
    assert covey(project.root, "down").returncode == 0
    wait_until(lambda: _is_over(daemon), "the end of the daemon")
    told = covey(project.root, "up")
    assert told.returncode != 0 and f"mv {kept} {project.database}" in told.stderr
    kept.rename(project.database)
    assert covey(project.root, "up").returncode == 0
    shown = covey(project.root, "task", "list", "--all")
    assert shown.stdout.count("Task ") == 25 and "Lost" not in shown.stdout
    assert covey(project.root, "down").returncode == 0
    check_database(project)


def test_a_board_whose_file_is_taken_away_is_kept_also_if_nobody_asks(daemon: Daemon) -> None:
    assert _add(daemon, "One") == 201
    follower = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    try:
        follower.request("GET", "/api/events", headers={"Authorization": f"Bearer {daemon.token}"})
        told = follower.getresponse()
        assert told.readline(), "it follows"
        _remove_all(daemon.project)
        wait_until(lambda: daemon.project.rescued() is not None, "the copy of the board")
        assert any(b"board_lost" in line for line in iter(told.readline, b"")), "who looks at the page is told"
    finally:
        follower.close()


@pytest.mark.parametrize("name", ["covey.db", "covey.db-wal"])
def test_a_file_that_is_cut_short_is_noticed_before_the_next_answer(daemon: Daemon, name: str) -> None:
    assert _add(daemon, "One") == 201
    subprocess.run(["truncate", "-s", "100", str(daemon.project.state / name)], check=True)
    refused = daemon.ask("POST", "/api/board", {"title": "Lost"})
    assert refused.status == 503 and f"{name} was cut short" in refused.json["error"]


def test_a_file_that_is_overwritten_in_place_is_noticed_before_the_next_answer(daemon: Daemon) -> None:
    assert [_add(daemon, f"Task {number}") for number in range(25)] == [201] * 25
    daemon.stop()  # brings all into the one file
    daemon.start()
    other = make_repository(daemon.project.root.parent / "other")
    shutil.copyfile(other.database, daemon.project.database)
    with daemon.project.database.open("ab") as grown:  # it is not even shorter
        grown.write(bytes(1 << 20))
    assert daemon.ask("POST", "/api/board", {"title": "Lost"}).status == 503


def test_a_program_that_only_looks_or_brings_the_log_into_the_file_stops_nothing(daemon: Daemon) -> None:
    assert _add(daemon, "One") == 201
    done = covey(daemon.project.root, "log", "backup", str(daemon.project.root.parent / "copy.db"))
    assert done.returncode == 0, done.stderr
    script = "import apsw, sys; apsw.Connection(sys.argv[1]).execute('PRAGMA wal_checkpoint(PASSIVE)').fetchall()"
    subprocess.run([sys.executable, "-c", script, str(daemon.project.database)], check=True)
    assert _add(daemon, "Two") == 201
    assert covey(daemon.project.root, "log", "verify").returncode == 0


@pytest.mark.parametrize("whole", [False, True], ids=["lock", "folder"])
def test_a_daemon_whose_lock_is_gone_ends_since_another_may_hold_one_of_that_name(daemon: Daemon, whole: bool) -> None:
    project = daemon.project
    assert [_add(daemon, f"Task {number}") for number in range(5)] == [201] * 5
    if whole:
        project.state.rename(project.state.with_name("moved"))
    else:
        project.lock.unlink()
    wait_until(lambda: _is_over(daemon), "the end of the daemon")
    if whole:
        kept = project.rescued()
        assert kept is not None
        kept.rename(project.database)
    else:
        assert project.rescued() is None or project.rescued().rename(project.database)  # type: ignore[union-attr]
    check_database(project)


def _remove_token(token: Path) -> None:
    token.unlink()


def _change_token(token: Path) -> None:
    token.write_text("x" * 43)


def _empty_token(token: Path) -> None:
    token.write_bytes(b"")


def _link_token(token: Path) -> None:
    (token.parent / "other").write_text("x" * 43)
    token.unlink()
    token.symlink_to(token.parent / "other")


@pytest.mark.parametrize("spoil", [_remove_token, _change_token, _empty_token, _link_token])
def test_an_owners_token_that_was_changed_is_put_back_and_told(daemon: Daemon, spoil: Callable[[Path], None]) -> None:
    token = daemon.project.owner_token
    before = token.read_text().strip()
    spoil(token)
    wait_until(lambda: token.exists() and token.read_text().strip() == before, "the token")
    assert token.stat().st_mode & 0o777 == 0o600 and not token.is_symlink()
    assert covey(daemon.project.root, "task", "add", "As before").returncode == 0
    wait_until(lambda: daemon.ask("GET", "/api/alerts").good(), "an alert")
    (told,) = daemon.ask("GET", "/api/alerts").good()
    assert told["type"] == "token_put_back" and str(token) in told["message"]
