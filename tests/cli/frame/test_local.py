"""A client without a daemon: the store is opened ahead and stays open, the lock is held for the transaction alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from covey import config
from covey.cli.frame import local
from covey.cli.frame.client import Client, is_locked
from covey.errors import Invalid, Unavailable
from covey.store.engine import sqlite
from covey.store.engine.lock import WriterLock
from covey.store.engine.sqlite import SqliteStore
from tests.worlds.shell import Shell

PATIENCE_S = 60.0


@pytest.fixture
def client(shell: Shell) -> Client:
    """Return a client in a process that stays."""
    return Client(str(shell.folder))


def _add(client: Client, title: str) -> str:
    return str(client.ask("task.add", fields={"title": title}).value["id"])


def _titles(client: Client) -> list[str]:
    return [task["title"] for task in client.ask("task.list").value]


def test_nothing_slow_is_done_behind_the_lock(shell: Shell, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = str(shell.state / "lock")
    held: dict[str, bool] = {}
    load, opened = config.load, SqliteStore.__init__

    def loading(folder: Path) -> config.Config:
        held["settings"] = is_locked(lock)
        return load(folder)

    def opening(store: SqliteStore, path: Path, **options: Any) -> None:
        held["store"] = is_locked(lock)
        opened(store, path, **options)

    monkeypatch.setattr(config, "load", loading)
    monkeypatch.setattr(SqliteStore, "__init__", opening)
    _add(client, "First")
    assert held == {"settings": False, "store": False}
    held.clear()
    _add(client, "Second")
    assert held == {}  # both are still there
    assert not is_locked(lock)


def test_a_client_that_stays_and_commands_beside_it_see_what_each_other_wrote(shell: Shell, client: Client) -> None:
    one = _add(client, "One")
    shell.ok("task", "add", "Two")
    assert _titles(client) == ["One", "Two"]
    assert shell.json("task", "next", "--as", "rita")["id"] == one
    assert client.ask("task.next", fields={"session": "ada"}).value["title"] == "Two"
    assert client.ask("task.next", fields={"session": "ada"}).status == 204
    assert shell.json("log", "verify")["sound"]


def test_settings_that_changed_meanwhile_hold_at_the_next_question(shell: Shell, client: Client) -> None:
    _add(client, "One")
    settings = shell.folder / config.FILE
    before = settings.read_text()
    settings.write_text("[board]\nclaim_tt = 1\n")
    with pytest.raises(Invalid, match="claim_tt"):
        _add(client, "Two")
    assert not is_locked(str(shell.state / "lock"))
    settings.write_text(before)
    _add(client, "Three")
    assert _titles(client) == ["One", "Three"]


def test_a_board_that_was_put_in_place_meanwhile_is_the_one_that_is_asked_and_written(
    shell: Shell, client: Client
) -> None:
    _add(client, "Kept")
    shell.ok("log", "backup", "copy.db")
    _add(client, "Lost")
    for beside in ("-wal", "-shm"):
        (shell.state / f"covey.db{beside}").unlink(missing_ok=True)
    os.replace(shell.folder / "copy.db", shell.state / "covey.db")
    assert _titles(client) == ["Kept"]
    _add(client, "New")
    assert [task["title"] for task in shell.json("task", "list")] == ["Kept", "New"]
    assert shell.json("log", "verify")["sound"]


def test_a_client_that_stays_asks_a_daemon_that_was_started_and_goes_on_without_it(
    shell: Shell, client: Client
) -> None:
    _add(client, "Before")
    shell.ok("up")
    try:
        _add(client, "Through the daemon")
        through = client.url
    finally:
        shell.ok("down")
    _add(client, "After")
    assert (through is None, client.url) == (False, None)
    assert _titles(client) == ["Before", "Through the daemon", "After"]


def test_the_write_ahead_log_of_commands_stays_short(
    shell: Shell, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(shell.state / "covey.db").close(tidy=True)
    monkeypatch.setattr(sqlite, "PAGES_ALONE", 20)
    longest = 0
    for number in range(20):
        _add(client, f"Task {number}")
        longest = max(longest, (shell.state / "covey.db-wal").stat().st_size)
    assert 0 < longest <= 60 * 4120  # one transaction after the twentieth page
    assert len(_titles(client)) == 20


# The line before the lock


def test_who_waits_is_served_in_the_order_of_coming(tmp_path: Path) -> None:
    lock, served = tmp_path / "lock", list[int]()
    first = WriterLock(lock)
    assert first.take()

    def wait(number: int) -> None:
        mine = WriterLock(lock)
        mine.take(PATIENCE_S)
        served.append(number)
        mine.give()

    waiting = [threading.Thread(target=wait, args=(number,)) for number in range(5)]
    for count, thread in enumerate(waiting, 1):
        thread.start()
        _until_in_line(lock, count)
    first.give()
    for thread in waiting:
        thread.join(PATIENCE_S)
    assert served == [0, 1, 2, 3, 4]


def _until_in_line(lock: Path, count: int) -> None:
    """Wait until the kernel says that so many wait for a lock."""
    inode = f":{lock.stat().st_ino} "
    turns = threading.Event()
    for _ in range(6000):
        lines = Path("/proc/locks").read_text().splitlines()
        if sum("->" in line and inode in line for line in lines) >= count:
            return
        turns.wait(0.01)
    raise AssertionError(f"never did {count} wait for {lock}")


def test_who_was_answered_otherwise_leaves_the_line_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    holder, answered = WriterLock(lock), WriterLock(lock)
    assert holder.take()
    assert not answered.take(is_answered=lambda: True)
    holder.give()
    with WriterLock(lock) as next_one:
        assert next_one.is_ours
    answered.give()
    assert WriterLock(lock).take(patience=PATIENCE_S)


def test_who_waits_too_long_is_told_who_writes(tmp_path: Path) -> None:
    with WriterLock(tmp_path / "lock"), pytest.raises(Unavailable, match="Another covey command is writing"):
        WriterLock(tmp_path / "lock").take(patience=0.0)


def test_a_store_that_cannot_be_opened_leaves_the_lock_free(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> SqliteStore:
        raise Unavailable("The disk is gone.")

    monkeypatch.setattr(local, "SqliteStore", broken)
    with pytest.raises(Unavailable, match="The disk is gone"):
        Client(str(shell.folder)).ask("task.list")
    assert not is_locked(str(shell.state / "lock"))


# The start of a command


def test_a_claim_without_a_daemon_imports_only_what_it_asks(shell: Shell) -> None:
    shell.ok("task", "add", "One")
    look = "import sys; from covey.cli.main import main; main(['task', 'next', '--as', 'ada']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=shell.folder, env=shell.env, capture_output=True, text=True, check=True
    )
    imported = set(done.stdout.splitlines()[-1].split())
    assert "covey.app.board.task_verbs" in imported
    for foreign in (
        "covey.app.merging.merges",
        "covey.app.status",
        "covey.core.merging.failures",
        "covey.core.merging.strategies.group",
    ):
        assert foreign not in imported
    for foreign in (
        "covey.core.fleet.live",
        "covey.core.fleet.watchdog",
        "covey.core.people.commands.shell",
        "covey.core.people.commands.read_only_commands",
    ):
        assert foreign not in imported
    for slow in ("asyncio", "socket", "tempfile", "typing_extensions"):
        assert slow not in imported
    for slow in ("inspect", "hashlib", "logging", "platform", "subprocess", "urllib.parse"):
        assert slow not in imported


def test_what_was_imported_lean_does_all_that_it_does_otherwise(shell: Shell) -> None:
    look = """
import sys
from covey.cli.frame.lean_imports import import_lean
import_lean()
import dataclasses, pathlib, uuid, msgspec
left_out = ("inspect", "urllib.parse", "platform", "typing_extensions")
assert not [name for name in left_out if name in sys.modules], sys.modules
made = dataclasses.make_dataclass("Made", ["field"])
assert made.__doc__ == "Made(field: 'typing.Any')", made.__doc__
assert pathlib.Path("/a b").as_uri() == "file:///a%20b"
assert msgspec.json.decode(msgspec.json.encode(made(1))) == {"field": 1}
assert len(str(uuid.uuid4())) == 36
import inspect, platform, urllib.parse
assert inspect.signature(made) and platform.machine() and urllib.parse.urlparse("http://a/").hostname == "a"
import_lean()
"""
    subprocess.run([sys.executable, "-c", look], env=shell.env, check=True)
