"""verify finds whatever was altered, rebuild mends it, prune removes only what nobody needs."""

from __future__ import annotations

import math
import random
import resource
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from covey.core.board.tasks import Task
from covey.core.events import FIRST, Event, Rebuilt, digest
from covey.core.fold import State
from covey.errors import CoveyError, NotFound, Refused
from covey.store.engine import audit, pruning, rows
from tests.worlds.stores import SCRATCH
from tests.worlds.stories import LONG, USUAL, Project, Teller, a_rich_story, lives

OTHERS = {"log", "events", "migrations"}
TWICE = (
    "INSERT INTO events SELECT seq + 1, time, actor, kind, subject, data, key, prev"
    " FROM events ORDER BY seq DESC LIMIT 1"
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a store to which most things have happened, closed and whole."""
    path = tmp_path_factory.mktemp("told") / "covey.db"
    project = Project(path)
    teller = Teller(project)
    teller.tell(a_rich_story(15, 800))
    task = project.ask("task.add", title="Claimed by one who falls silent")
    project.ask("task.claim", {"id": task["id"]}, session="zed")
    teller.tell([("silence", 0), ("silence", 0)])
    teller.tell(a_rich_story(15, 250))  # what ended in the silence, such as leases, is there again
    project.ask("lease.take", resources=["port:1", "zoe/**"], session="zoe")
    project.close()
    with apsw.Connection(str(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for name in rows.tables():
            assert db.execute(f"SELECT count(*) FROM {name}").get, f"the story left {name} empty"
    return path


@pytest.fixture
def store(told: Path, tmp_path: Path) -> Path:
    """Return a copy of that store for one test to spoil."""
    return Path(shutil.copy(told, tmp_path / "covey.db"))


def alter(path: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    """Change the file behind covey's back."""
    db = apsw.Connection(str(path))
    try:
        for statement in statements:
            db.execute(statement, values if "?" in statement else ())
    finally:
        db.close()


def loosen(path: Path, table: str) -> None:
    """Take types and constraints from a table, so that any value can stand anywhere."""
    db = apsw.Connection(str(path))
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    names = ", ".join(f'"{name}"' for name in columns)
    db.execute(f"CREATE TABLE loose ({names})")
    db.execute(f"INSERT INTO loose SELECT {names} FROM {table}")
    db.execute(f"DROP TABLE {table}")
    db.execute(f"ALTER TABLE loose RENAME TO {table}")
    db.close()


def every_row(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all folded tables, in the order of their keys."""
    db = apsw.Connection(str(path))
    try:
        return {
            name: db.execute(f"{table.all_sql} ORDER BY {', '.join(table.key)}").fetchall()
            for name, table in rows.tables().items()
        }
    finally:
        db.close()


# A store in order


def test_every_table_is_folded_or_scratch_or_the_log_itself(told: Path) -> None:
    with apsw.Connection(str(told)) as db:
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {*rows.tables(), *SCRATCH, *OTHERS}
    assert [name for name, _ in State().rows()] == list(rows.tables())


def test_a_store_in_order_has_no_problems(told: Path) -> None:
    report = audit.verify(told)
    assert report.problems == []
    assert report.events > 200
    assert report.rows == sum(len(found) for found in every_row(told).values())


def test_a_store_is_verified_while_others_write(tmp_path: Path) -> None:
    project = Project(tmp_path / "covey.db")
    Teller(project).tell(a_rich_story(14, 1200))
    reports: list[audit.Report] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            reports.append(audit.verify(project.path))

    reader = threading.Thread(target=look)
    reader.start()
    for seed in range(40):
        Teller(project).tell(a_rich_story(seed, 20))
    done.set()
    reader.join()
    project.close()
    assert len({report.events for report in reports}) > 1
    assert all(report.sound for report in reports), reports


# Altered rows


def test_an_altered_value_in_any_column_of_any_table_is_found(told: Path, tmp_path: Path) -> None:
    for name, table in rows.tables().items():
        keys = [column for column in table.columns if column in table.key]
        others = [column for column in table.columns if column not in keys]
        for altered in ([key] for key in keys):
            assert any(each.startswith(f"{name} ") for each in _altered(told, tmp_path, name, altered)), (name, altered)
        problems = _altered(told, tmp_path, name, others)
        for column in others:
            assert any(each.startswith(f"{name} ") and f": {column} is " in each for each in problems), (name, column)


def _altered(told: Path, folder: Path, name: str, columns: list[str]) -> list[str]:
    """Return what is wrong with a store in which the first row of a table has other values in some columns."""
    path = Path(shutil.copy(told, folder / "covey.db"))
    loosen(path, name)
    for column in columns:
        alter(path, f"UPDATE {name} SET \"{column}\" = 'altered' WHERE rowid = 1")
    return audit.verify(path).problems


@pytest.mark.parametrize(
    ("have", "put"),
    [("0", "0.0"), ("0", "NULL"), ("0", "'0'"), ("0", "x'30'"), ("''", "NULL"), ("NULL", "''"), ("NULL", "0")],
)
def test_values_are_compared_with_their_types(store: Path, have: str, put: str) -> None:
    loosen(store, "tasks")
    sought = {"NULL": "None"}.get(have, have)
    columns = rows.TABLE_OF[Task].columns
    cells = ((row[0], *cell) for row in every_row(store)["tasks"] for cell in zip(columns, row, strict=True))
    key, column, _ = next(cell for cell in cells if repr(cell[2]) == sought)
    alter(store, f"UPDATE tasks SET \"{column}\" = {put} WHERE id = '{key}'")
    problems = audit.verify(store).problems
    assert len(problems) == 1
    assert f": {column} is " in problems[0]


def test_a_problem_names_table_key_column_and_both_values(store: Path) -> None:
    alter(store, "UPDATE counts SET tasks = 4711 WHERE status = 'done'")
    (problem,) = audit.verify(store).problems
    assert problem.startswith("counts done: tasks is 4711, but the log says ")


def test_a_missing_row_is_found(store: Path) -> None:
    alter(store, "DELETE FROM needs WHERE task = (SELECT max(task) FROM needs)")
    assert "the row is missing" in audit.verify(store).problems[0]


def test_an_extra_row_is_found(store: Path) -> None:
    alter(store, "INSERT INTO ids (prefix, last) VALUES ('NEW', 1)")
    assert audit.verify(store).problems == ["ids NEW: the log knows no such row."]


def test_of_very_many_problems_the_first_fifty_are_spelled_out(store: Path) -> None:
    alter(store, "UPDATE tasks SET title = title || '!'")
    report = audit.verify(store)
    assert len(report.problems) == audit.SHOWN
    assert report.count == len(every_row(store)["tasks"])


def test_a_row_that_is_no_text_any_more_is_a_problem_and_no_traceback(store: Path) -> None:
    alter(store, "UPDATE tasks SET title = CAST(x'ff00fe' AS TEXT) WHERE rowid = 1")
    alter(store, "UPDATE sessions SET name = CAST(x'fffe' AS TEXT) WHERE name = 'ada'")
    problems = audit.verify(store).problems
    assert any("title is b'\\xff" in problem for problem in problems)
    assert any(problem.startswith("sessions ada: the row is missing") for problem in problems)
    assert any("the log knows no such row" in problem for problem in problems)


# Altered events


@pytest.mark.parametrize("column", ["time", "actor", "kind", "subject", "data", "key", "prev"])
@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_an_altered_event_is_found(store: Path, column: str, which: str) -> None:
    last = audit.verify(store).events
    seq = {"first": 1, "middle": last // 2, "last": last}[which]
    altered = {
        "time": "time + 0.001",
        "key": "coalesce(key, '') || 'x'",
        "prev": "randomblob(32)",
        "data": "replace(data, '{', '{ ')",
    }
    value = altered.get(column, f"{column} || 'x'")
    alter(store, f"UPDATE events SET {column} = {value} WHERE seq = {seq}")
    assert not audit.verify(store).sound


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["DELETE FROM events WHERE seq = 5"], "Event 5: it is missing"),
        (["DELETE FROM events WHERE seq = 1"], "Event 1: it is missing"),
        (["DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)"], "is the last one"),
        (["DELETE FROM events"], "is the last one"),
        (["UPDATE events SET seq = -5 WHERE seq = 5", "UPDATE events SET seq = 5 WHERE seq = 6"], "Event"),
        ([TWICE], "is the last one"),
        (["UPDATE log SET hash = zeroblob(32)"], "its hash is not that"),
        (["UPDATE log SET seq = seq - 1"], "is the last one"),
        (["UPDATE log SET id = 'another'"], "not the beginning"),
        (["DELETE FROM log"], "The head of the log"),
        (["INSERT INTO log VALUES ('second', 1, x'00')"], "there are 2 of them"),
        (["UPDATE events SET kind = 'task.sung' WHERE seq = 9"], "'task.sung' is not known"),
        (["UPDATE events SET data = '{\"nonsense' WHERE seq = 9"], "makes no sense"),
        (["UPDATE events SET data = CAST(x'7bff7d' AS TEXT) WHERE seq = 9"], "Event 9: it cannot be read"),
        (["UPDATE events SET subject = 'T-0' WHERE kind = 'task.claimed'"], "makes no sense"),
    ],
)  # fmt: skip
def test_a_log_that_was_tampered_with_is_found_out(store: Path, statements: list[str], said: str) -> None:
    alter(store, *statements)
    problems = audit.verify(store).problems
    assert any(said in problem for problem in problems), problems


def test_a_log_without_events_between_two_swapped_ones_is_found_out(store: Path) -> None:
    alter(
        store,
        "UPDATE events SET seq = -1 WHERE seq = 20",
        "UPDATE events SET seq = 20 WHERE seq = 30",
        "UPDATE events SET seq = 30 WHERE seq = -1",
    )
    assert not audit.verify(store).sound


def test_a_file_that_is_no_database_is_a_problem_and_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "covey.db"
    path.write_bytes(b"This is no database at all." * 400)
    assert "not a database" in audit.verify(path).problems[0]
    with pytest.raises(NotFound, match="no file"):
        audit.verify(tmp_path / "nowhere.db")


def lead_back(path: Path) -> int:
    """Let an event in the middle of a page have the number 5, and the next one's data be no text; return its number."""
    alter(path, "UPDATE events SET data = CAST(x'7bff7d' AS TEXT) WHERE seq BETWEEN 40 AND 126 AND seq % 2 = 1")
    data = bytearray(path.read_bytes())
    for seq in range(40, 126, 2):  # above, a number takes two bytes
        # A cell: its size, its number, the size of its header, then the types: of seq (none), of time (a float).
        for at in [at for size in (9, 10, 11) for at in _all(data, bytes([seq, size, 0, 7]))]:
            data[at] = 5
            path.write_bytes(data)
            if _comes_after(path, seq - 1) == 5:  # it does where the search within the page meets the altered cell
                return seq
            data[at] = seq  # or it was a cell that is in use no more
    raise AssertionError("No event stands in the file as it was expected.")


def _comes_after(path: Path, seq: int) -> int:
    db = apsw.Connection(str(path))
    found = db.execute("SELECT seq FROM events WHERE seq > ? ORDER BY seq LIMIT 1", (seq,)).fetchall()
    db.close()
    return int(str(found[0][0]))


def _all(data: bytearray, sought: bytes) -> Iterator[int]:
    at = data.find(sought)
    while at != -1:
        yield at
        at = data.find(sought, at + 1)


def test_a_table_that_leads_back_to_where_it_began_is_left_at_once(store: Path) -> None:
    seq = lead_back(store)
    problems = audit.verify(store).problems
    assert f"The log: after event {seq - 1} comes 5, so the rest cannot be read." in problems


def test_a_page_that_stands_twice_in_a_table_ends_the_walk(store: Path) -> None:
    """Make each child of every root a child of itself, as a pointer that was altered does."""
    db = apsw.Connection(str(store))
    roots = db.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 1").fetchall()
    size = int(str(db.execute("PRAGMA page_size").get))
    db.close()
    data = bytearray(store.read_bytes())
    for (root,) in roots:
        at = (int(str(root)) - 1) * size
        if data[at] in (2, 5):  # an inner page: the cells begin with the number of a page
            first, last = (int.from_bytes(data[at + 12 + 2 * i : at + 14 + 2 * i], "big") for i in (0, 1))
            data[at + last : at + last + 4] = data[at + first : at + first + 4]
    store.write_bytes(data)
    problems = audit.verify(store).problems
    assert any("so the rest cannot be read" in problem for problem in problems)


def flip_bytes(told: Path, seed: int) -> None:
    luck = random.Random(seed)
    with TemporaryDirectory() as folder:
        path = Path(shutil.copy(told, Path(folder) / "covey.db"))
        data = bytearray(path.read_bytes())
        for _ in range(luck.randint(1, 4)):
            data[luck.randrange(len(data))] ^= luck.randint(1, 255)
        path.write_bytes(data)
        with suppress(CoveyError):  # one sentence is fine as well: a schema that reads as another number
            audit.verify(path)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_a_flipped_byte_anywhere_in_the_file_never_makes_a_traceback(told: Path, seed: int) -> None:
    flip_bytes(told, seed)


@pytest.mark.soak
@settings(max_examples=5000)
@given(seed=st.integers(0, 2**32))
def test_very_many_flipped_bytes_never_make_a_traceback(told: Path, seed: int) -> None:
    flip_bytes(told, seed)


# Long texts


@pytest.mark.parametrize("change", ["text = text || '!'", "size = size + 1", "sha256 = sha256 || '0'"])
def test_a_long_text_that_was_altered_is_found(store: Path, change: str) -> None:
    alter(store, f"UPDATE blobs SET {change} WHERE rowid = 1")
    problems = audit.verify(store).problems
    assert [problem for problem in problems if "does not have this hash and size" in problem]


def test_a_long_text_of_an_open_task_that_is_gone_is_found(tmp_path: Path) -> None:
    project = Project(tmp_path / "covey.db")
    project.ask("task.add", title="Long", body=LONG)
    project.close()
    alter(project.path, "DELETE FROM blobs")
    (problem,) = audit.verify(project.path).problems
    assert problem.endswith("a long text of T-1 is missing.")


# Any story


steps = st.lists(st.tuples(st.sampled_from(USUAL), st.integers(0, 2**20)), min_size=8, max_size=60)
values = st.one_of(
    st.none(), st.integers(-3, 2**40), st.floats(allow_nan=False), st.text(max_size=8), st.binary(max_size=8)
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store at its beginning, to be copied: that is quicker than migrating for every example."""
    path = tmp_path_factory.mktemp("empty") / "covey.db"
    Project(path).close()
    alter(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def tell(empty: Path, folder: str, story: list[tuple[str, int]]) -> Path:
    path = Path(shutil.copy(empty, Path(folder) / "covey.db"))
    project = Project(path)
    Teller(project).tell(story)
    project.close()
    return path


@given(story=steps, data=st.data())
def test_whatever_happened_an_altered_row_is_found_and_mended(empty: Path, story: Any, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = tell(empty, folder, story)
        report = audit.verify(path)
        assert report.problems == []
        live = every_row(path)
        name = data.draw(st.sampled_from([name for name, found in live.items() if found]))
        assume(_spoil_a_row(path, name, data))
        report = audit.verify(path)
        assert any(name in problem for problem in report.problems), name
        project = Project(path)
        assert project.store.write(audit.rebuild) == Rebuilt(report.events, report.count)
        project.close()
        assert every_row(path) == live
        assert audit.verify(path).problems == []


def _spoil_a_row(path: Path, name: str, data: st.DataObject) -> bool:
    """Alter, remove or add a row, and say whether the table is another one now."""
    table = rows.tables()[name]
    db = apsw.Connection(str(path))
    try:
        before = db.execute(table.all_sql).fetchall()
        row = data.draw(st.sampled_from(before))
        key = row[: len(table.key)] if table.columns[: len(table.key)] == table.key else ()
        assert key
        how = data.draw(st.sampled_from(["alter", "alter", "alter", "delete", "add"]))
        if how == "delete":
            db.execute(table.delete_sql, key)
        elif how == "add":
            db.execute(table.insert_sql, (f"{row[0]}9", *row[1:]))
        else:
            column = data.draw(st.sampled_from(table.columns))
            value = data.draw(st.one_of(values, st.sampled_from([_near(old) for old in row])))
            db.execute(f'UPDATE {name} SET "{column}" = ? WHERE {table.where}', (value, *key))
        return repr(sorted(map(repr, db.execute(table.all_sql).fetchall()))) != repr(sorted(map(repr, before)))
    except apsw.ConstraintError:
        return False
    finally:
        db.close()


def _near(value: Any) -> Any:
    """Return a value that is hard to tell from another one."""
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    if isinstance(value, int):
        return value + 1
    return value + " " if isinstance(value, str) else ""


@given(story=steps, data=st.data())
def test_whatever_happened_one_altered_byte_of_an_event_is_found(empty: Path, story: Any, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = tell(empty, folder, story)
        db = apsw.Connection(str(path))
        last = db.execute("SELECT seq FROM log").get
        seq = data.draw(st.integers(1, last))
        column = data.draw(st.sampled_from(["time", "actor", "kind", "subject", "data", "key", "prev"]))
        old = db.execute(f"SELECT CAST({column} AS BLOB) FROM events WHERE seq = ?", (seq,)).get
        new = bytearray(old or b"\0")
        new[data.draw(st.integers(0, len(new) - 1))] ^= data.draw(st.integers(1, 255))
        kind = {"prev": "BLOB", "time": "REAL"}.get(column, "TEXT")
        was = db.execute("SELECT time FROM events WHERE seq = ?", (seq,)).get
        db.execute(f"UPDATE events SET {column} = CAST(? AS {kind}) WHERE seq = ?", (bytes(new), seq))
        assume(column != "time" or db.execute("SELECT time FROM events WHERE seq = ?", (seq,)).get != was)
        db.close()
        assert not audit.verify(path).sound, (seq, column)


# Rebuild


def test_a_rebuild_of_a_store_in_order_changes_nothing_but_adds_its_event(store: Path) -> None:
    before, live = audit.verify(store).events, every_row(store)
    project = Project(store)
    assert project.store.write(audit.rebuild) == Rebuilt(before, 0)
    project.close()
    assert every_row(store) == live
    assert audit.verify(store).events == before + 1


def test_a_rebuild_makes_all_rows_anew(store: Path) -> None:
    live = every_row(store)
    for name in rows.tables():
        alter(store, f"DELETE FROM {name}")
    project = Project(store)
    assert project.store.write(audit.rebuild).differences == sum(len(found) for found in live.values())
    project.close()
    assert every_row(store) == live
    assert audit.verify(store).sound


def test_a_damaged_log_is_refused_a_rebuild_and_nothing_changes(store: Path) -> None:
    alter(store, "UPDATE events SET actor = 'mallory' WHERE seq = 12", "DELETE FROM needs")
    spoiled = every_row(store)
    project = Project(store)
    with pytest.raises(Refused, match="Event 13: it does not carry the hash"):
        project.store.write(audit.rebuild)
    project.close()
    assert every_row(store) == spoiled


def test_events_of_older_shapes_are_folded(tmp_path: Path) -> None:
    """An event that lacks what newer ones have, written by hand with a sound chain, makes whole rows."""
    project = Project(tmp_path / "covey.db")
    log = project.store.head.log
    project.close()
    shapes = [
        ("log.begun", "log", f'{{"log":"{log}","project":"old"}}'),
        ("task.added", "T-1", '{"title":"Old"}'),
        ("session.registered", "ada", "{}"),
        ("task.claimed", "T-1", '{"session":"ada","fence":1}'),
        ("task.released", "T-1", '{"session":"ada"}'),
        ("lease.taken", "lease-6", '{"holder":"ada","resources":["src/**"]}'),
        ("mail.sent", "mail-7", '{"to":"ada"}'),
        ("merge.queued", "merge-8", '{"task":"T-1","session":"ada","branch":"b","of_the_future":1}'),
        ("alert.raised", "alert-9", '{"type":"x","message":"y"}'),
        ("task.done", "T-1", '{"how":"landed"}'),
    ]
    db = apsw.Connection(str(project.path))
    db.execute("DELETE FROM events")
    prev = FIRST
    for seq, (kind, subject, data) in enumerate(shapes, 1):
        event = Event(seq, 1.5, "covey", kind, subject, data, None, prev)
        db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", tuple(event.__dict__.values()))
        prev = digest(event)
    db.execute("UPDATE log SET seq = ?, hash = ?", (len(shapes), prev))
    db.close()
    project = Project(project.path)
    project.store.write(audit.rebuild)
    assert project.ask("task.show", {"id": "T-1"})["status"] == "done"
    project.close()
    assert audit.verify(project.path).problems == []


# Prune

DAY = 86_400.0


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Project]:
    """Yield a project with long texts: of an open task, of a dropped one, and of mail."""
    project = Project(tmp_path / "covey.db")
    project.ask("task.add", title="Open", body=LONG + "open")
    project.ask("task.add", title="Dropped", body=LONG + "dropped")
    project.ask("task.drop", {"id": "T-2"}, reason="Not now")
    project.ask("mail.send", to="owner", text=LONG + "mail")
    yield project
    project.close()


def texts(project: Project) -> set[str]:
    return {row[0][len(LONG) :] for row in project.store.read(lambda tx: tx.db.rows("SELECT text FROM blobs"))}


def prune(project: Project, days: float, megabytes: float) -> Any:
    return project.store.write(lambda tx: pruning.prune(tx, keep_days=days, keep_megabytes=megabytes))


def test_young_long_texts_are_kept(kept: Project) -> None:
    seq = kept.store.head.seq
    assert prune(kept, 1, 512) is None
    assert texts(kept) == {"open", "dropped", "mail"}
    assert kept.store.head.seq == seq


def test_old_long_texts_go_unless_an_open_task_needs_them(kept: Project) -> None:
    kept.clock.elapsed += 2 * DAY
    pruned = prune(kept, 1, 512)
    assert (pruned.blobs, pruned.size) == (2, 2 * len(LONG) + len("dropped") + len("mail"))
    assert texts(kept) == {"open"}
    assert prune(kept, 1, 512) is None
    assert "no longer kept" in kept.ask("task.show", {"id": "T-2"})["body"]
    assert audit.verify(kept.path).problems == []


def test_a_long_comment_is_kept_as_long_as_its_task_is_open(kept: Project) -> None:
    long = "ü" * 16_000  # more than 16 KiB
    for task in ("T-1", "T-2"):
        kept.ask("comment.write", task=task, text=f"{long} {task}")
    kept.clock.elapsed += 2 * DAY
    prune(kept, 1, 512)
    found = kept.store.read(lambda tx: tx.db.rows("SELECT text FROM blobs"))
    left = {text[16_001:] for (text,) in found if text.startswith("ü")}
    assert left == {"T-1"}
    assert audit.verify(kept.path).problems == []


def test_of_more_than_may_be_kept_the_oldest_go_first(kept: Project) -> None:
    for number in range(5):
        kept.clock.elapsed += 60
        task = kept.ask("task.add", title="Dropped too", body=f"{LONG}{number}")
        kept.ask("task.drop", {"id": task["id"]}, reason="Not now")
    assert prune(kept, 90, 3.5 * len(LONG) / 1024 / 1024).blobs == 3
    assert texts(kept) == {"open", "mail", "2", "3", "4"}


def test_young_mail_keeps_a_text_that_an_old_task_shares(kept: Project) -> None:
    kept.clock.elapsed += 20 * DAY
    kept.ask("mail.send", to="owner", text=LONG + "dropped")
    alter(kept.path, "UPDATE blobs SET used = 0")
    assert prune(kept, 10, 512).blobs == 1
    assert texts(kept) == {"open", "dropped"}


# At size


def test_ten_thousand_events_are_verified_and_rebuilt(tmp_path: Path) -> None:
    _at_size(tmp_path, 1000, 10_000)


@pytest.mark.soak
def test_a_million_events_are_verified_and_rebuilt(tmp_path: Path) -> None:
    _at_size(tmp_path, 100_000, 1_000_000)


def _at_size(folder: Path, tasks: int, events: int) -> None:
    """Verify and rebuild so much, and print what it took in seconds of the processor."""
    project = Project(folder / "covey.db")
    lives(project, tasks)
    live = every_row(project.path)
    assert project.store.head.seq >= events
    start = time.process_time()
    report = audit.verify(project.path)
    verified = time.process_time() - start
    assert report.problems == []
    assert report.events == project.store.head.seq
    start = time.process_time()
    project.store.write(audit.rebuild)
    rebuilt = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{report.events} events, {report.rows} rows: verify {verified:.1f} s, rebuild {rebuilt:.1f} s, {memory} MiB")
    project.close()
    assert every_row(project.path) == live
    assert audit.verify(project.path).sound
