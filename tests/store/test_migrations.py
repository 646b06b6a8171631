"""The schema: what the migrations make of it, and what they do to a database that is not theirs."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from covey.config import Config, Merge
from covey.errors import NotFound, Refused, Unavailable
from covey.store.engine import audit, rows
from covey.store.engine.backup import snapshot
from covey.store.engine.connection import Connection, unavailable
from covey.store.engine.migrations import migrate, migrations
from covey.store.engine.sqlite import SqliteStore
from tests.worlds.stories import Project, Teller, a_rich_story


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
    for name, table in rows.tables().items():
        found = db.execute(f"SELECT name, pk FROM pragma_table_info('{name}')").fetchall()
        assert sorted(str(column) for column, _ in found) == sorted(
            table.columns
        )  # a later column stands last in its table
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


OLD_VERBS = ("task.add", "task.claim", "task.handin", "session.new", "session.token", "merge.approve", "merge.land")
NEW_WISHES = ("agent", "batch", "scope")
"""What a covey of old did not know, or did not follow with leases."""
TASKS = "SELECT id, status, title FROM tasks ORDER BY id"


def of_schema(number: int, path: Path, project: Project) -> Path:
    """Return a database as a covey of an older schema would have it after the same story."""
    project.close()
    db = apsw.Connection(str(path))
    migrate(db, path, migrations()[:number])
    db.execute("ATTACH ? AS now", (str(project.path),))
    for (table,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'migrations'"
    ).fetchall():
        names = ", ".join(f'"{name}"' for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}')"))
        db.execute(f"DELETE FROM {table}")
        db.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM now.{table}")
    db.close()
    return path


def test_a_database_of_the_first_schema_is_brought_up_to_date_with_all_that_it_holds(tmp_path: Path) -> None:
    project = Project(tmp_path / "now.db", Config(merge=Merge(review=True)))
    Teller(project).tell([step for step in a_rich_story(5, 900) if step[0] in OLD_VERBS], without=NEW_WISHES)
    waiting = project.ask("task.add", title="Looked at by a person")["id"]
    project.ask("task.claim", {"id": waiting}, session="ada")
    project.ask("task.handin", {"id": waiting}, session="ada")
    project.ask("merge.approve", {"id": project.ask("merge.list")[-1]["id"]})
    before = project.store.read(lambda tx: tx.db.rows(TASKS))
    old = of_schema(1, tmp_path / "old.db", project)
    store = SqliteStore(old)
    assert store.read(lambda tx: tx.db.rows(TASKS)) == before
    assert len(before) > 20
    store.close()
    assert audit.verify(old).problems == []


def test_leases_of_an_older_schema_are_found_in_letters_that_only_python_folds(tmp_path: Path) -> None:
    project = Project(tmp_path / "now.db")
    project.ask("lease.take", session="ada", resources=["src/École/**", "src/Straße/**", "port:1"])
    old = of_schema(3, tmp_path / "old.db", project)
    db = apsw.Connection(str(old))
    db.execute("UPDATE lease_resources SET found = '/' || replace(resource, '**', '') WHERE resource LIKE 'src/%'")
    db.close()
    SqliteStore(old).close()
    assert audit.verify(old).problems == []
    project = Project(old)
    for path in ("src/École/Modèle.py", "src/Straße/a"):
        with pytest.raises(Refused, match="ada holds"):
            project.ask("lease.take", session="bob", resources=[path])
    project.close()


def test_who_wrote_a_task_and_who_sent_its_work_back_is_found_in_the_log_of_an_older_schema(tmp_path: Path) -> None:
    project = Project(tmp_path / "now.db", Config(merge=Merge(review=True)))
    Teller(project).tell([step for step in a_rich_story(7, 400) if not step[0].startswith("proposal")])
    task = project.ask("task.add", title="Mend it", assignee="ada")["id"]
    project.ask("task.claim", {"id": task}, session="ada")
    project.ask("task.handin", {"id": task}, session="ada")
    project.ask("merge.reject", {"id": project.ask("merge.list")[-1]["id"]}, reason="Not so.")
    before = project.store.read(lambda tx: tx.db.rows("SELECT id, author, tries FROM tasks ORDER BY id"))
    assert '"by":"owner"' in str(before)
    old = of_schema(9, tmp_path / "old.db", project)
    db = apsw.Connection(str(old))
    db.execute("""UPDATE tasks SET tries = replace(replace(tries, ',"by":"owner"', ''), ',"by":"covey"', '')""")
    db.close()
    store = SqliteStore(old)
    assert store.read(lambda tx: tx.db.rows("SELECT id, author, tries FROM tasks ORDER BY id")) == before
    store.close()
    assert audit.verify(old).problems == []


def test_a_migrated_database_has_the_schema_of_a_new_one(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    db = apsw.Connection(str(path))
    for number in range(1, len(migrations()) + 1):
        migrate(db, path, migrations()[:number])
    db.close()
    assert tables(path) == tables(store)


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


def test_a_database_of_an_older_covey_is_read_as_it_would_be_brought_up_to_date_and_stays_as_it_is(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path / "now.db", Config(merge=Merge(review=True)))
    Teller(project).tell([step for step in a_rich_story(5, 300) if step[0] in OLD_VERBS], without=NEW_WISHES)
    tasks = project.store.read(lambda tx: tx.db.rows(TASKS))
    old = of_schema(1, tmp_path / "old.db", project)
    before = old.read_bytes()
    with snapshot(old) as db:
        assert db.rows(TASKS) == tasks
        with pytest.raises(Unavailable, match="cannot be written"), unavailable():
            db.run("DELETE FROM tasks")
    assert audit.verify(old).problems == []
    assert old.read_bytes() == before
    db = Connection(old, reader=False)
    with snapshot(old) as copy:  # whoever writes meanwhile waits for nobody who reads it
        db.run("BEGIN IMMEDIATE; DELETE FROM tasks; COMMIT")
        assert copy.rows(TASKS) == tasks
    db.close()


def test_a_file_that_is_no_store_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "covey.db"
    apsw.Connection(str(path)).execute("CREATE TABLE something (a TEXT)")
    with pytest.raises(Refused, match="has the schema 0"), snapshot(path):
        pass


def test_a_snapshot_cannot_write(store: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be written"), snapshot(store) as db:
        db.run("DELETE FROM tasks")
    with pytest.raises(NotFound), snapshot(store.with_name("nowhere")):
        pass
