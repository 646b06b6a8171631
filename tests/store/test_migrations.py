"""The schema: what the migrations make of it, and what they do to a database that is not theirs."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from covey.errors import NotFound, Refused, Unavailable
from covey.store import audit, rows
from covey.store.sqlite import SqliteStore, migrate, migrations, snapshot
from tests.store.stories import Project, Teller, a_rich_story


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return the file of a store in which something happened."""
    project = Project(tmp_path / "covey.db")
    Teller(project).tell(a_rich_story(1, 60))
    project.close()
    db = apsw.Connection(str(project.path))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return project.path


def tables(path: Path) -> dict[str, str]:
    db = apsw.Connection(str(path))
    found = {str(row[0]): str(row[1]) for row in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")}
    db.close()
    return found


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_every_folded_table_has_the_columns_that_its_rows_have(store: Path) -> None:
    db = apsw.Connection(str(store))
    for name, table in rows.FOLDED.items():
        found = db.execute(f"SELECT name, pk FROM pragma_table_info('{name}')").fetchall()
        assert tuple(column for column, _ in found) == table.columns
        assert {column for column, place in found if place} == set(table.key)
    db.close()


def test_every_table_is_strict(store: Path) -> None:
    db = apsw.Connection(str(store))
    loose = db.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict"
    ).fetchall()
    db.close()
    assert [name for (name,) in loose if not str(name).startswith("sqlite_")] == []


def test_migrating_twice_changes_nothing(store: Path) -> None:
    before = tables(store)
    SqliteStore(store).close()
    assert tables(store) == before


def test_a_database_of_a_newer_covey_is_refused_and_stays_as_it_is(store: Path) -> None:
    db = apsw.Connection(str(store))
    db.execute("INSERT INTO migrations VALUES (999, 'of_the_future')")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    before = store.read_bytes()
    with pytest.raises(Refused, match=r"written by a newer covey: its schema is 999, this one knows \d+") as refused:
        SqliteStore(store)
    assert "nothing was changed" in refused.value.hint
    with pytest.raises(Refused, match="has the schema 999"):
        audit.verify(store)
    assert store.read_bytes() == before


def test_a_failing_migration_leaves_the_old_database_intact(store: Path, tmp_path: Path) -> None:
    before = tables(store)
    next_number = len(migrations()) + 1
    steps = [
        *migrations(),
        (next_number, "good", "CREATE TABLE good (a TEXT) STRICT"),
        (next_number + 1, "bad", "CREATE TABLE half (a TEXT) STRICT; ALTER TABLE tasks DROP COLUMN title; BROKEN"),
    ]
    copy = Path(shutil.copy(store, tmp_path / "copy.db"))
    db = apsw.Connection(str(copy))
    with pytest.raises(Unavailable, match=rf"could not be brought to schema {next_number + 1} \(bad\)"):
        migrate(db, copy, steps)
    assert not db.in_transaction
    db.close()
    assert set(tables(copy)) == {*before, "good"}
    assert tables(copy)["tasks"] == before["tasks"]
    db = apsw.Connection(str(store))
    with pytest.raises(Unavailable, match="syntax error"):
        migrate(db, store, [*migrations(), (next_number, "bad", "DROP TABLE tasks; BROKEN")])
    db.close()
    assert tables(store) == before
    assert audit.verify(store).problems == []


def test_a_database_of_an_older_covey_is_not_read_without_being_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "covey.db"
    apsw.Connection(str(path)).execute("CREATE TABLE something (a TEXT)")
    with pytest.raises(Refused, match="has the schema 0"), snapshot(path):
        pass


def test_a_snapshot_cannot_write(store: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be written"), snapshot(store) as db:
        db.run("DELETE FROM tasks")
    with pytest.raises(NotFound), snapshot(store.with_name("nowhere")):
        pass
