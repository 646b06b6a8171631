"""The contract of a store: one suite for every store, and passing it is joining it."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covey.app.app import Request
from covey.app.verbs import VERBS
from covey.core.board.tasks import Added, Note, Status, Task, Try, add
from covey.core.events import FIRST, Begun, digest
from covey.core.history.retention import ANSWERS_KEPT_S
from covey.core.leases import leases
from covey.core.leases.leases import Lease, Taken
from covey.core.nouns import resource_rows
from covey.core.texts import INLINE_BYTES, blob_of
from covey.errors import CoveyError, Invalid, Refused, Reused
from covey.store.engine import rows
from covey.store.tx import Tx
from tests.worlds.boards import OWNER, Principal, World
from tests.worlds.stores import SCRATCH, STORES, AnyStore, Open

one_store = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
"""Every example works in the same store, in a transaction that is undone at its end."""


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest) -> Open:
    return STORES[request.param]


@pytest.fixture
def store(open_store: Open, tmp_path: Path) -> Iterator[AnyStore]:
    clock = itertools.count(1_750_000_000)
    opened = open_store(tmp_path, lambda: float(next(clock)))
    yield opened
    opened.close()


@pytest.fixture
def world(open_store: Open, tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, open_store=open_store)
    yield world
    assert world.folded() == world.tables()
    world.store.close()


def put(title: str = "t", prefix: str = "T", status: Status = Status.TODO) -> Callable[[Tx], str]:
    """Return a job that adds a task."""

    def job(tx: Tx) -> str:
        task_id = f"{prefix}-{tx.next_id(prefix)}"
        event = Added(title=title, status=status)
        task = add(task_id, tx.next_seq, event, tx.now, "owner")
        tx.put_task(None, task)
        tx.append("owner", task_id, event, task)
        return task_id

    return job


def spoiled(error: BaseException) -> Callable[[Tx], None]:
    """Return a job that writes all it can and then fails."""

    def job(tx: Tx) -> None:
        put("spoiled")(tx)
        tx.keep("x" * (INLINE_BYTES + 1))
        tx.put_token(b"t", "ada")
        tx.keep_answer("owner", "key", b"r", 200, b"{}")
        raise error

    return job


def whole(store: AnyStore) -> dict[str, Any]:
    """Return all that is in a store."""
    names = [*rows.tables(), *SCRATCH, "events", "log"]
    return store.read(lambda tx: {name: sorted(tx.db.rows(f"SELECT * FROM {name}"), key=repr) for name in names})


class Undone(Exception):
    """Undoes what an example wrote."""


# Atomicity

FAILURES = [Refused("no"), Invalid("no"), ValueError("a bug"), KeyError("a bug"), UnicodeError("a bug")]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_job_that_fails_leaves_nothing(store: AnyStore, error: Exception) -> None:
    store.write(put())
    before, head = whole(store), store.head
    with pytest.raises(type(error)) as caught:
        store.write(spoiled(error))
    assert caught.value is error
    assert (whole(store), store.head) == (before, head)


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_job_that_fails_spoils_no_other_of_its_batch(store: AnyStore, error: Exception) -> None:
    outcomes = store.run([put(), spoiled(error), put(), spoiled(error), put()])
    assert [outcome.value for outcome in outcomes] == ["T-1", None, "T-2", None, "T-3"]
    assert [outcome.error for outcome in outcomes] == [None, error, None, error, None]
    assert [len(outcome.changes) for outcome in outcomes] == [1, 0, 1, 0, 1]
    assert store.read(lambda tx: [task.title for task in tx.find(Task, "")]) == ["t"] * 3
    assert store.read(lambda tx: tx.counts()["todo"]) == 3


def test_a_row_that_is_there_already_is_an_error_of_its_job_alone(store: AnyStore) -> None:
    def twice(tx: Tx) -> None:
        task = tx.task("T-1")
        assert task is not None
        tx.insert(task)

    first, second, third = store.run([put(), twice, put()])
    assert (first.value, third.value) == ("T-1", "T-2")
    assert second.error is not None
    with pytest.raises(type(second.error)):
        second.result()


def test_an_interrupt_undoes_the_whole_batch_and_the_store_goes_on(store: AnyStore) -> None:
    before, head = whole(store), store.head
    with pytest.raises(KeyboardInterrupt):
        store.run([put(), spoiled(KeyboardInterrupt())])
    assert (whole(store), store.head) == (before, head)
    assert store.write(put()) == "T-1"


def test_a_reader_cannot_write(store: AnyStore) -> None:
    before = whole(store)
    with pytest.raises(CoveyError):
        store.read(put())
    assert whole(store) == before


# The log


def test_a_log_begins_with_its_beginning(store: AnyStore) -> None:
    (event,) = store.read(lambda tx: tx.events())
    assert (event.seq, event.kind, event.actor, event.prev) == (1, "log.begun", "covey", FIRST)
    payload = rows.decode_payload(event.kind, event.data)
    assert isinstance(payload, Begun) and payload.log == store.head.log


@settings(one_store, max_examples=20)
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=6))
def test_events_are_numbered_without_a_gap_and_chained(store: AnyStore, batches: list[list[bool]]) -> None:
    for batch in batches:
        store.run([put() if good else spoiled(Refused("no")) for good in batch])
    log = store.read(lambda tx: list(tx.all_events()))
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    prev = FIRST
    for event in log:
        assert event.prev == prev
        prev = digest(event)
    assert (store.head.seq, store.head.hash) == (len(log), prev)
    assert store.read(lambda tx: tx.head) == store.head


def test_a_store_that_is_opened_again_goes_on_where_it_ended(open_store: Open, tmp_path: Path) -> None:
    first = open_store(tmp_path, lambda: 1.0)
    first.run([put(), put()])
    before, head = whole(first), first.head
    first.close()
    second = open_store(tmp_path, lambda: 2.0)
    assert (whole(second), second.head) == (before, head)
    assert second.write(put()) == "T-3"
    assert second.head.seq == head.seq + 1
    second.close()


def test_a_tail_beside_writers_sees_every_event_once_and_in_order(store: AnyStore) -> None:
    batches, ended = 60, threading.Event()
    seen: list[int] = []

    def follow() -> None:
        last = 0
        while True:
            over = ended.is_set()
            found = store.read(partial(Tx.events, after=last, limit=7))
            seen.extend(event.seq for event in found)
            if found:
                last = found[-1].seq
            elif over:
                return

    tail = threading.Thread(target=follow)
    tail.start()
    try:
        for number in range(batches):
            jobs: list[Callable[[Tx], Any]] = [put() for _ in range(1 + number % 5)]
            store.run([*jobs, spoiled(Refused("no"))])
    finally:
        ended.set()
        tail.join()
    assert seen == list(range(1, store.head.seq + 1))


def test_events_are_found_by_what_they_are_about(store: AnyStore) -> None:
    store.run([put(), put(), put(prefix="AF")])

    def found(**wanted: Any) -> list[int]:
        return store.read(lambda tx: [event.seq for event in tx.events(**wanted)])

    assert found(subject="AF-1") == [4]
    assert found(actor="covey") == [1]
    assert found(kind="task.added") == found(kind="task.") == [2, 3, 4]
    assert found(kind="task.added", limit=2) == [2, 3]
    assert found(limit=2, newest=True) == [3, 4]
    assert found(after=1, before=4) == [2, 3]
    assert store.read(lambda tx: tx.last_event(actor="owner")).seq == 4  # type: ignore[union-attr]


# Snapshots


def test_a_reader_sees_one_moment_whatever_is_written_meanwhile(store: AnyStore) -> None:
    store.write(put())

    def job(tx: Tx) -> None:
        before = (tx.head, tx.counts(), tx.events(), tx.task("T-2"))
        store.write(put())
        assert (tx.head, tx.counts(), tx.events(), tx.task("T-2")) == before

    store.read(job)
    assert store.read(lambda tx: tx.task("T-2")) is not None


def test_readers_never_see_half_a_batch(store: AnyStore) -> None:
    size, ended = 8, threading.Event()
    wrong: list[object] = []

    def look() -> None:
        while not ended.is_set():
            counts, tasks, head, last = store.read(
                lambda tx: (
                    tx.counts()["todo"],
                    len(tx.find(Task, "")),
                    tx.head.seq,
                    tx.events(newest=True)[-1].seq,
                )
            )
            if counts % size or counts != tasks or head != last or head != 1 + tasks:
                wrong.append((counts, tasks, head, last))

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(40):
            store.run([put() for _ in range(size)])
    finally:
        ended.set()
        for reader in readers:
            reader.join()
    assert wrong == []


def test_a_job_sees_what_the_jobs_before_it_in_its_batch_did(store: AnyStore) -> None:
    def look(tx: Tx) -> tuple[int, int, int]:
        return tx.counts()["todo"], len(tx.find(Task, "")), tx.head.seq

    outcomes = store.run([put(), look, spoiled(Refused("no")), look, put(), look])
    assert [outcomes[place].value for place in (1, 3, 5)] == [(1, 1, 2), (1, 1, 2), (2, 2, 3)]


def test_closing_twice_is_fine(open_store: Open, tmp_path: Path) -> None:
    store = open_store(tmp_path, lambda: 1.0)
    store.read(lambda tx: tx.head)
    store.close()
    store.close()


# Rows

texts = st.text(st.characters(codec="utf-8"), max_size=30)
numbers = st.integers(-(2**53), 2**53)
times = st.floats(allow_nan=False, allow_infinity=False)
task_rows = st.builds(
    Task,
    id=st.just("X-1"),
    ordinal=numbers,
    title=texts,
    body=texts | texts.map(blob_of),
    tries=st.lists(st.builds(Try, texts, times, texts), max_size=2).map(tuple),
    notes=st.lists(st.builds(Note, texts, times, texts), max_size=2).map(tuple),
    scope=st.lists(texts, max_size=3).map(tuple),
    key=st.none() | texts,
    budget=st.none() | times,
    overlap=st.booleans(),
    result=st.none() | texts,
    priority=numbers,
    created=times,
)


@settings(one_store)
@given(task_rows, st.data())
def test_what_is_read_is_what_was_written(store: AnyStore, task: Task, data: st.DataObject) -> None:
    def job(tx: Tx) -> None:
        tx.insert(task)
        assert tx.get(Task, "X-1") == task
        changed = data.draw(task_rows)
        tx.put(task, changed)
        assert tx.get(Task, "X-1") == changed
        tx.delete(Task, "X-1")
        assert tx.get(Task, "X-1") is None
        raise Undone

    with suppress(Undone):
        store.write(job)


def test_every_folded_table_has_the_columns_of_its_value(store: AnyStore) -> None:
    for table in rows.tables().values():
        store.read(lambda tx, table=table: tx.db.rows(table.all_sql))  # type: ignore[misc]


def test_a_long_text_is_kept_once_and_aside(store: AnyStore) -> None:
    long = "ü" * INLINE_BYTES

    def job(tx: Tx) -> None:
        kept = tx.keep(long)
        assert kept == blob_of(long) == tx.keep(long)
        assert tx.text(kept) == long
        assert tx.keep("short") == tx.text("short") == "short"
        assert tx.db.rows("SELECT count(*) FROM blobs") == [(1,)]
        assert "no longer kept" in tx.text(blob_of("gone" * INLINE_BYTES))

    store.write(job)


def test_ids_are_never_given_twice(open_store: Open, tmp_path: Path) -> None:
    given_out: list[str] = []
    for _ in range(3):
        store = open_store(tmp_path, lambda: 1.0)
        outcomes = store.run([put(), put(prefix="AF"), spoiled(Refused("no")), put()])
        given_out += [outcome.result() for outcome in outcomes if outcome.error is None]
        store.close()
    assert len(set(given_out)) == len(given_out) == 9
    assert "T-6" in given_out and "AF-3" in given_out


def test_counters_equal_a_recount(store: AnyStore) -> None:
    def move(task_id: str, status: Status) -> Callable[[Tx], None]:
        def job(tx: Tx) -> None:
            task = tx.task(task_id)
            assert task is not None
            tx.put_task(task, replace(task, status=status))

        return job

    store.run([*(put() for _ in range(5)), move("T-1", Status.DOING), move("T-2", Status.DONE)])
    store.run([move("T-1", Status.DONE), put(status=Status.BACKLOG), move("T-3", Status.TODO), spoiled(ValueError())])
    counted = store.read(lambda tx: Counter(task.status for task in tx.find(Task, "")))
    assert store.read(lambda tx: tx.counts()) == {status: counted[status] for status in Status}


# Leases: whatever could be in the way is found

letters = st.sampled_from(["a", "b", "ü", "\U0010ffff", "\ud7ff", "/", "*", "**", "?", "[ab]", "[!a]", "src", "."])
globs = st.lists(letters, min_size=1, max_size=6).map("".join)
named = st.sampled_from(["repo:", "port:1", "port:2", "db:main", "a:b", "z:"])


def spelled(text: str) -> str | None:
    try:
        return leases.resource(text)
    except Invalid:
        return None


resources = (globs | named).map(spelled).filter(lambda text: text is not None)
some_resources = st.lists(resources, min_size=1, max_size=3, unique=True)


@settings(one_store, max_examples=100)
@given(st.lists(some_resources, max_size=12), some_resources)
def test_every_lease_in_the_way_is_found(store: AnyStore, taken: list[list[str]], wanted: list[str]) -> None:
    live = [
        Lease(id=f"lease-{number}", holder=f"h{number}", resources=tuple(held), fence=number)
        for number, held in enumerate(taken)
    ]
    wish = Taken(holder="wisher", resources=tuple(wanted))

    def job(tx: Tx) -> None:
        for lease in live:
            tx.insert(lease)
            for resource in resource_rows(lease):
                tx.insert(resource)
        near = tx.leases_near(wanted)
        in_the_way = [lease for lease in live if leases.meets(wish, [lease])]
        assert [lease for lease in near if leases.meets(wish, [lease])] == in_the_way
        raise Undone

    with suppress(Undone):
        store.write(job)


# Group commit


def jobs_of(world: World, asked: list[tuple[str, dict[str, Any]]], **more: Any) -> list[Callable[[Tx], Any]]:
    made = []
    for verb, values in asked:
        found = VERBS[verb]
        values = dict(values)
        params = {name: values.pop(name) for name in found.params}
        who = values.pop("who", OWNER)
        made.append(world.app.job(Request(found, who, found.asked(**values), params, more.get("key"), b"r")))
    return made


def test_in_one_commit_of_many_claims_every_task_goes_to_one_session(world: World) -> None:
    world.ask("task.import", tasks=[{"key": str(number), "title": "t"} for number in range(200)])
    outcomes = world.store.run(jobs_of(world, [("task.next", {"session": f"s{n}"}) for n in range(250)]))
    answers = [outcome.result() for outcome in outcomes]
    tasks = [answer.value()["id"] for answer in answers if answer.status == 200]
    assert tasks == [f"T-{number}" for number in range(1, 201)]
    assert [answer.status for answer in answers[200:]] == [204] * 50
    holders = Counter(task["session"] for task in world.ask("task.list", status="doing", limit=1000))
    assert set(holders.values()) == {1} and len(holders) == 200


def test_the_changes_of_a_commit_are_its_events_in_order_with_their_rows(world: World) -> None:
    seq = world.seq
    outcomes = world.store.run(
        jobs_of(
            world,
            [
                ("task.add", {"title": "one"}),
                ("task.claim", {"id": "T-99"}),
                ("task.claim", {"id": "T-1", "session": "ada"}),
            ],
        )
    )
    changes = [change for outcome in outcomes for change in outcome.changes]
    log = world.store.read(lambda tx: tx.events(after=seq))
    assert [(change.seq, change.kind, change.subject) for change in changes] == [
        (event.seq, event.kind, event.subject) for event in log
    ]
    last = next(change for change in changes if change.kind == "task.claimed")
    assert last.row == world.store.read(lambda tx: tx.task("T-1"))


def test_a_late_hand_in_in_the_same_commit_is_refused_and_changes_nothing(world: World) -> None:
    task = world.add()
    fence = world.claim(task, "ada")
    held = {"id": task, "session": "ada", "fence": fence}
    again = {"id": task, "session": "ada"}
    outcomes = world.store.run(
        jobs_of(world, [("task.release", held), ("task.claim", again), ("task.handin", held), ("task.renew", held)])
    )
    assert [type(outcome.error) for outcome in outcomes] == [type(None), type(None), Refused, Refused]
    shown = world.task(task)
    assert (shown["status"], shown["fence"]) == ("doing", fence + 1)
    assert world.ask("merge.list") == []


# Idempotency keys


def test_the_same_key_gets_the_same_answer_and_nothing_happens_twice(world: World) -> None:
    first = world.answer("task.add", key="k1", title="once")
    before = world.everything()
    assert world.answer("task.add", key="k1", title="once") == first
    assert world.everything() == before


def test_a_claim_repeated_with_its_key_never_takes_a_second_task(world: World) -> None:
    world.add()
    world.add()
    first = world.answer("task.next", key="k1", session="ada")
    world.ask("task.handin", id=first.value()["id"], session="ada")
    assert world.answer("task.next", key="k1", session="ada") == first
    assert len(world.ask("task.list", status="todo")) == 1


def test_the_same_key_twice_in_one_commit_is_answered_twice_and_done_once(world: World) -> None:
    asked = [("task.add", {"title": "once"})] * 2
    first, second = world.store.run(jobs_of(world, asked, key="k1"))
    assert first.result() == second.result()
    assert len(world.ask("task.list")) == 1
    assert second.changes == ()


def test_a_key_belongs_to_one_request(world: World) -> None:
    world.ask("task.add", key="k1", title="once")
    before = world.everything()
    with pytest.raises(Reused, match="was used for another request"):
        world.ask("task.add", key="k1", title="other")
    with pytest.raises(Reused):
        world.ask("task.next", key="k1", session="ada")
    assert world.everything() == before


def test_a_key_belongs_to_the_principal_and_not_to_its_token(world: World) -> None:
    for name in ("ada", "bob"):
        world.ask("session.new", name=name)
    ada = world.answer("task.add", Principal("ada"), key="k1", title="t")
    bob = world.answer("task.add", Principal("bob"), key="k1", title="t")
    owner = world.answer("task.add", key="k1", title="t")
    assert len({answer.value()["id"] for answer in (ada, bob, owner)}) == 3
    token = world.ask("session.token", name="ada")["token"]
    who = world.store.read(lambda tx: world.app.who(tx, token))
    assert world.answer("task.add", who, key="k1", title="t") == ada


def test_a_key_is_kept_across_a_restart(world: World) -> None:
    first = world.answer("task.add", key="k1", title="t")
    world.start(daemon=True)
    assert world.answer("task.add", key="k1", title="t") == first


def test_a_refusal_is_not_kept_so_that_the_same_request_may_succeed_later(world: World) -> None:
    world.ask("session.new", name="ada", wip=1)
    tasks = [world.add(), world.add()]
    world.claim(tasks[0], "ada")
    with pytest.raises(Refused):
        world.ask("task.next", key="k1", session="ada")
    world.ask("task.release", id=tasks[0], session="ada")
    assert world.ask("task.next", key="k1", session="ada")["id"] == tasks[0]


def test_an_answer_that_changed_nothing_is_not_kept(world: World) -> None:
    assert world.answer("task.next", key="k1", session="ada").status == 204
    task = world.add()
    assert world.ask("task.next", key="k1", session="ada")["id"] == task
    assert world.ask("task.edit", key="k2", id=task, priority=0)["priority"] == 0
    world.ask("task.edit", id=task, priority=5)
    assert world.ask("task.edit", key="k2", id=task, priority=0)["priority"] == 0
    assert world.task(task)["priority"] == 0


def test_a_key_is_kept_for_a_day_and_not_longer(world: World) -> None:
    first = world.ask("task.add", key="k1", title="t")["id"]
    world.clock.run(ANSWERS_KEPT_S)
    world.store.write(world.app.forget)
    assert world.ask("task.add", key="k1", title="t")["id"] == first
    world.clock.run(1)
    world.store.write(world.app.forget)
    assert world.ask("task.add", key="k1", title="t")["id"] != first


def test_every_event_of_a_request_carries_its_key(world: World) -> None:
    world.add()
    seq = world.seq
    world.ask("task.next", key="k1", session="ada")
    world.ask("task.renew", id="T-1", session="ada")
    carried = [(event["kind"], event["key"]) for event in world.ask("log.list", after=seq)]
    assert len(carried) >= 2 and {key for _, key in carried} == {"k1"}
    world.add()
    assert world.ask("log.list", newest=True, limit=1)[0]["key"] is None


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "ü", "\x00"])
def test_this_is_no_key(world: World, key: str) -> None:
    with pytest.raises(Invalid, match="Idempotency-Key"):
        world.ask("task.add", key=key, title="t")
