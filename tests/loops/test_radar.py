"""The radar, tick by tick: real git and a real store under a clock that is turned by hand."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from covey.app.context import Call
from covey.app.overlap import overlaps as life
from covey.app.overlap.overlaps import Judged, Seen
from covey.config import Config
from covey.config import Radar as Settings
from covey.core.overlaps import Heated, Meeting, OverlapLevel
from covey.git.overlap import branch_reader as reading
from covey.git.project import Project
from covey.git.worktrees.worktrees import Worktrees
from covey.loops.radar import Radar
from covey.loops.runtime import Runtime
from covey.store.tx import Tx
from tests.worlds.boards import OWNER, World
from tests.worlds.repositories import commit_files, git_out, make_repository

T = TypeVar("T")
LINES = "".join(f"line {number}\n" for number in range(1, 41))


def changed(number: int, by: str) -> str:
    return LINES.replace(f"line {number}\n", f"line {number} {by}\n")


class Watched(World):
    """A board whose branches the radar looks at."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.root = make_repository(folder / "shop", {"a.txt": LINES, "b.txt": LINES})
        self.project = Project(self.root, self.root / ".git", bare=False)
        super().__init__(folder, config)
        self.writes = 0
        self.loop = asyncio.new_event_loop()
        self.radar = self.watch_anew()

    def watch_anew(self) -> Radar:
        """Begin to watch as a daemon does that has just started."""
        worktrees = Worktrees(self.project, self.root.parent / "worktrees")
        self.runtime = Runtime(self.app, self.project, self.runner, worktrees, "http://127.0.0.1:1", self)
        self.radar = Radar(self.runtime)
        return self.radar

    async def read(self, job: Callable[[Tx], T]) -> T:
        return self.store.read(job)

    async def write(self, job: Callable[[Tx], T], *, long: bool = False) -> T:
        self.writes += 1
        outcome = self.store.run([job])[0]
        self.radar.hear(outcome.changes)
        value: T = outcome.result()
        return value

    def tick(self) -> None:
        """Let the radar look, as often as it has something to hear."""
        self.loop.run_until_complete(self.radar.tick())
        while self.radar.news.is_set():
            self.loop.run_until_complete(self.radar.tick())

    def told(self) -> None:
        """Let the radar hear what was changed by others."""
        self.radar.news.set()

    def commit(self, task: str, files: dict[str, str], start: str = "main") -> str:
        """Commit files on the branch of a task."""
        branch = f"covey/{task}"
        known = git_out(self.root, "branch", "--list", branch)
        git_out(self.root, "checkout", "-q", *([branch] if known else ["-b", branch, start]))
        commit_files(self.root, files, f"for {task}")
        git_out(self.root, "checkout", "-q", "main")
        return git_out(self.root, "rev-parse", branch)

    def begin_two(self) -> tuple[str, str]:
        """Let ada and bob begin a task each."""
        one, other = self.add("First thing"), self.add("Second thing")
        self.claim(one, "ada")
        self.claim(other, "bob")
        return one, other

    def mail(self, session: str) -> list[str]:
        """Return what covey told a session."""
        return [message["text"] for message in self.ask("mail.inbox", session=session, all=True)]

    def overlaps(self, **asked: Any) -> list[tuple[str, str, list[str]]]:
        """Return the overlaps that are listed."""
        listed = self.ask("overlap.list", **asked)["overlaps"]
        return [(each["id"], each["level"], each["files"]) for each in listed]

    def hot(self) -> list[str]:
        """Return the files that are hot."""
        return [file["path"] for file in self.ask("overlap.list")["hot"]]

    def alerts(self) -> list[str]:
        """Return the alerts, the newest first."""
        return [alert["message"] for alert in self.ask("alert.list") if alert["type"] == "hot_file"]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    made: list[Watched] = []

    def build(**settings: Any) -> Watched:
        made.append(Watched(tmp_path / f"world-{len(made)}", Config(overlap=Settings(**settings))))
        return made[-1]

    yield build
    for world in made:
        world.runtime.close()
        world.loop.close()
        world.store.close()


@pytest.fixture
def world(make: Callable[..., Watched]) -> Watched:
    return make()


def test_both_sessions_are_told_once_of_a_conflict_with_the_file_and_the_others_task(world: Watched) -> None:
    one, other = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    world.tick()
    assert (world.overlaps(), world.mail("ada")) == ([], [])
    world.commit(other, {"a.txt": changed(3, "bob")})
    world.tick()
    assert world.overlaps() == [(f"{one} {other}", "conflict", ["a.txt"])]
    (to_ada,), (to_bob,) = world.mail("ada"), world.mail("bob")
    for text, mine, theirs, title, who in (
        (to_ada, one, other, "Second thing", "bob"),
        (to_bob, other, one, "First thing", "ada"),
    ):
        assert f'{mine} conflicts with {theirs} ("{title}"), at which {who} is at work' in text
        assert "a.txt" in text
        assert f"covey overlap {mine}" in text
        assert f"covey mail send {who}" in text
    world.commit(other, {"b.txt": changed(9, "bob")})
    world.tick()
    world.start(daemon=True)
    world.watch_anew()
    world.tick()
    assert (world.mail("ada"), world.mail("bob")) == ([to_ada], [to_bob])
    assert world.tables() == world.folded()


def test_a_file_alone_is_listed_and_told_to_nobody_until_it_gets_close(world: Watched) -> None:
    one, other = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    world.commit(other, {"a.txt": changed(30, "bob")})
    world.tick()
    assert world.overlaps() == [(f"{one} {other}", "file", ["a.txt"])]
    assert world.mail("ada") == world.mail("bob") == []
    world.commit(other, {"a.txt": changed(30, "bob").replace("line 7\n", "line seven\n")})
    world.tick()
    assert world.overlaps() == [(f"{one} {other}", "hunk", ["a.txt"])]
    assert len(world.mail("ada")) == len(world.mail("bob")) == 1
    assert "changes the same lines" in world.mail("ada")[0]
    world.commit(other, {"a.txt": changed(3, "bob")})
    world.tick()
    assert [level for _, level, _ in world.overlaps()] == ["conflict"]
    assert len(world.mail("ada")) == len(world.mail("bob")) == 2


def test_who_gets_out_of_the_way_overlaps_no_more(world: Watched) -> None:
    one, other = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    world.commit(other, {"a.txt": changed(3, "bob")})
    world.tick()
    world.commit(other, {"a.txt": LINES, "b.txt": changed(3, "bob")})
    world.tick()
    assert world.overlaps() == []
    assert world.kinds()[-1] == "overlap.gone"


@pytest.mark.parametrize("how", ["landed", "dropped", "removed"])
def test_an_overlap_ends_with_its_task_or_its_branch(world: Watched, how: str) -> None:
    one, other = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    tip = world.commit(other, {"a.txt": changed(20, "bob")})
    world.tick()
    assert len(world.overlaps()) == 1
    if how == "landed":
        git_out(world.root, "merge", "-q", "--ff-only", tip)
        world.ask("merge.land", id=world.hand_in(other, "bob", commit=tip), commit=tip)
    elif how == "dropped":
        world.ask("task.drop", id=other, reason="not wanted")
    else:
        git_out(world.root, "branch", "-q", "-D", f"covey/{other}")
    world.told()
    world.tick()
    assert world.overlaps() == []
    (gone,) = (event["data"]["why"] for event in world.ask("log.list", kind="overlap.gone"))
    said = {"landed": "is done", "dropped": "was dropped", "removed": f"the branch of {other} is gone"}
    assert said[how] in gone


def test_what_lands_on_main_in_conflict_is_told_to_who_is_at_work(world: Watched) -> None:
    one, _ = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    world.tick()
    commit_files(world.root, {"a.txt": changed(3, "the user")}, "by the user")
    world.tick()
    assert world.overlaps() == [(f"{one} main", "conflict", ["a.txt"])]
    (text,) = world.mail("ada")
    assert "conflicts with what is on main by now, in: a.txt" in text
    commit_files(world.root, {"b.txt": changed(3, "the user")}, "by the user")
    world.tick()
    assert len(world.mail("ada")) == 1


def test_one_that_waits_keeps_its_quarrels_and_nobody_hears_of_them_again(world: Watched) -> None:
    one, other = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    tip = world.commit(other, {"a.txt": changed(3, "bob")})
    world.tick()
    merge = world.hand_in(other, "bob", commit=tip)
    world.ask("merge.reject", id=merge, reason="not good enough")
    world.told()
    world.tick()
    assert len(world.overlaps()) == 1
    assert world.next("bob") == other
    world.told()
    world.tick()
    assert len(world.overlaps()) == 1
    assert len(world.mail("ada")) == len(world.mail("bob")) == 1


def test_at_rest_nothing_is_written_and_git_is_not_even_asked(world: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    world.commit(other, {"a.txt": changed(3, "bob")})
    world.tick()
    monkeypatch.setattr("covey.loops.radar.FRESH_S", -1e12)  # the clock of this world is far behind that of its files
    before, writes = world.everything(), world.writes
    monkeypatch.setenv("PATH", "/nonexistent")
    for _ in range(3):
        world.tick()
    assert world.writes == writes
    assert world.everything() == before


def test_a_new_commit_makes_its_session_the_first_to_hold_what_it_wrote(world: Watched) -> None:
    one, _ = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    world.tick()
    held = {tuple(lease["resources"]): lease for lease in world.ask("lease.list")}
    assert held["a.txt",]["holder"] == "ada"
    assert held["a.txt",]["origin"] == "edit"


def test_a_failed_look_is_made_up_for(world: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    world.commit(other, {"a.txt": changed(3, "bob")})
    with monkeypatch.context() as away:
        away.setenv("PATH", "/nonexistent")
        with pytest.raises(Exception, match="not installed"):
            world.tick()
        world.radar._forget()
    world.tick()
    assert len(world.mail("ada")) == 1


def test_while_looks_fail_they_are_made_ever_less_often(world: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    world.commit(other, {"a.txt": changed(3, "bob")})
    pauses: list[float] = []
    path, turn = os.environ["PATH"], asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2000:
            monkeypatch.setenv("PATH", path)
        world.told()
        await turn(0)

    async def watch() -> None:
        looking = asyncio.ensure_future(world.radar.run())
        while not world.mail("ada") and len(pauses) < 2100:
            await turn(0.001)
        looking.cancel()

    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("covey.loops.radar.asyncio.sleep", sleep)
    world.loop.run_until_complete(watch())
    assert pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert len(pauses) == 2000, "it went on as soon as a look did not fail"


def test_a_commit_that_cannot_be_read_takes_no_other_with_it(world: Watched) -> None:
    one, _ = world.begin_two()
    tip = world.commit(one, {"a.txt": changed(3, "ada")})
    main = git_out(world.root, "rev-parse", "main")
    lost = f"tree {'1' * 40}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nIts tree is gone\n"
    (world.root / "lost").write_text(lost)
    broken = git_out(world.root, "hash-object", "-t", "commit", "-w", "--literally", "lost")
    found = reading.commits(world.project, {tip, main, broken})
    assert {name: paths for name, (_, paths) in found.items()} == {tip: [b"a.txt"], main: [b"a.txt", b"b.txt"]}


def test_the_tasks_of_all_branches_are_found_by_one_question(world: Watched) -> None:
    tasks = [world.add() for _ in range(60)]
    asked: list[str] = []

    def look(tx: Tx) -> Seen:
        def rows(sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            asked.append(sql)
            return tx.db.rows(sql, values)

        counted: Any = SimpleNamespace(rows=rows)
        return life.seen(Call(replace(tx, db=counted), OWNER, world.app.context), [*tasks, "gone"])

    assert list(world.store.read(look).tasks) == sorted(tasks)
    assert len(asked) == 2


# Hot files


def test_however_many_files_are_hot_tasks_are_claimed_and_wait_for_the_hottest(world: Watched) -> None:
    first = world.add("Mend f0.py and f519.py")
    world.claim(first, "ada")

    def heat(call: Call) -> None:
        for number in range(520):
            life._put_file(call, f"f{number}.py", None, Heated(3 if number else 9))

    world.do(heat)
    hottest, other = world.add("Mend f0.py"), world.add("Mend f519.py")
    assert world.next("bob") == other
    with pytest.raises(Exception, match=f"{hottest} is on f0.py"):
        world.claim(hottest, "carl")


def test_one_quarrel_over_many_files_is_one_alert(make: Callable[..., Watched]) -> None:
    world = make(hot=3)
    tasks = [world.add() for _ in range(3)]
    files = tuple(f"p/{number:02}\n.py" for number in range(12))
    found = [Judged(one, other, Meeting(OverlapLevel.CONFLICT, files)) for one, other in combinations(tasks, 2)]
    world.do(lambda call: life.heat(call, [], life.judged(call, found), {}))
    assert len(world.hot()) == 12
    (alert,) = world.alerts()
    assert alert.startswith(r'"p/00\u000a.py", ') and "p/09" in alert and "p/10" not in alert
    assert "and 2 more are hot: 36 collisions within 2 h" in alert


def collide(world: Watched, number: int) -> tuple[str, str]:
    """Let two tasks collide in a.txt, and end them."""
    pair = []
    for name in (f"ada{number}", f"bob{number}"):
        task = world.add(f"Something {name}")
        world.claim(task, name)
        world.commit(task, {"a.txt": changed(3, name)})
        pair.append(task)
    world.tick()
    for task in pair:
        world.ask("task.drop", id=task, reason="over")
    world.told()
    world.tick()
    return pair[0], pair[1]


def test_a_file_that_collides_again_and_again_is_hot_until_it_was_quiet(make: Callable[..., Watched]) -> None:
    world = make(hot=3, hot_minutes=120, cool_minutes=60)
    for number in range(2):
        collide(world, number)
    assert (world.hot(), world.alerts()) == ([], [])
    world.start(daemon=True)
    world.watch_anew()
    collide(world, 2)
    assert world.hot() == ["a.txt"]
    (alert,) = world.alerts()
    assert alert.startswith("a.txt is hot: 3 collisions within 2 h")
    world.clock.run(30 * 60)
    collide(world, 3)
    assert len(world.alerts()) == 1, "it was hot before"
    world.clock.run(50 * 60)
    world.tick()
    assert world.hot() == ["a.txt"]
    world.clock.run(10 * 60)
    world.tick()
    assert world.hot() == []
    assert world.kinds()[-1] == "overlap.cooled"
    assert world.tables() == world.folded()


def test_collisions_long_ago_make_nothing_hot(make: Callable[..., Watched]) -> None:
    world = make(hot=2, hot_minutes=60)
    collide(world, 0)
    world.clock.run(61 * 60)
    collide(world, 1)
    assert world.hot() == []
    collide(world, 2)
    assert world.hot() == ["a.txt"]


def test_work_rejected_for_a_conflict_with_main_counts_too(make: Callable[..., Watched]) -> None:
    world = make(hot=1)
    one, _ = world.begin_two()
    tip = world.commit(one, {"a.txt": changed(3, "ada")})
    world.tick()
    merge = world.hand_in(one, "ada", commit=tip)
    commit_files(world.root, {"a.txt": changed(3, "main")}, "main moves on")
    world.ask("merge.reject", id=merge, reason="It conflicts with main in a.txt.")
    world.radar._rejected.add(one)
    world.told()
    world.tick()
    assert world.overlaps() == [(f"{one} main", "conflict", ["a.txt"])]
    assert world.hot() == ["a.txt"]


@pytest.mark.parametrize("known", ["scope", "title", "body", "branch", "lease"])
def test_tasks_on_a_hot_file_run_one_after_another_until_it_cools(make: Callable[..., Watched], known: str) -> None:
    world = make(hot=1, cool_minutes=10)
    collide(world, 0)
    assert world.hot() == ["a.txt"]
    first = world.add("Mend a.txt")
    assert world.next("ada") == first
    wishes: dict[str, dict[str, Any]] = {
        "scope": {"title": "Second", "scope": ["*.txt"], "do_not_touch": ["b.txt"]},
        "title": {"title": "Mend ./a.txt."},
        "body": {"title": "Second", "body": "Look at `a.txt`, please. " + "x" * 20_000},
        "branch": {"title": "Second"},
        "lease": {"title": "Second"},
    }
    second = world.add(**wishes[known])
    if known == "branch":
        world.commit(first, {"a.txt": changed(20, "ada")})
        world.claim(second, "bob")
        world.commit(second, {"a.txt": changed(20, "bob")})
        world.tick()
        world.ask("task.release", id=second, session="bob")
        world.told()
        world.tick()
    elif known == "lease":
        world.ask("lease.take", resources=["a.txt"], session="bob", task=second)
    elsewhere = world.add("Third", body="not a.txt.old, nor data.txt")
    assert world.next("bob") == elsewhere, "who is not on it goes on"
    assert world.next("carol") is None
    with pytest.raises(Exception, match=f"{second} is on a.txt, where tasks collide again and again, and {first}"):
        world.claim(second, "carol")
    tip = git_out(world.root, "rev-parse", "main")
    merge = world.hand_in(first, "ada", commit=tip)
    assert world.next("carol") is None, "it has not landed yet"
    world.ask("merge.land", id=merge, commit=tip)
    assert world.next("carol") == second
    third = world.add("Fourth on a.txt")
    assert world.next("dora") is None
    world.clock.run(11 * 60)
    world.tick()
    assert world.next("dora") == third


def test_the_owner_may_let_a_task_on_a_hot_file_go_on(make: Callable[..., Watched]) -> None:
    world = make(hot=1)
    collide(world, 0)
    first = world.add("Mend a.txt")
    assert world.next("ada") == first
    second, third = world.add("Mend a.txt more"), world.add("Mend a.txt yet more", overlap=True)
    assert world.next("bob") == third
    assert world.claim(second, "carol", overlap=True)


def test_a_file_cools_also_while_nobody_is_there_to_say_so(make: Callable[..., Watched]) -> None:
    world = make(hot=1, cool_minutes=10)
    collide(world, 0)
    first, second = world.add("Mend a.txt"), world.add("Mend a.txt more")
    assert world.next("ada") == first
    assert world.next("bob") is None
    world.clock.run(11 * 60)
    assert world.next("bob") == second
    assert world.hot() == []


def test_a_task_that_has_only_begun_has_no_part_in_the_quarrels_of_others_with_main(world: Watched) -> None:
    one, other = world.begin_two()
    world.commit(one, {"a.txt": changed(3, "ada")})
    commit_files(world.root, {"a.txt": changed(3, "main")}, "on main")
    world.tick()
    assert world.overlaps() == [(f"{one} main", "conflict", ["a.txt"])]
    git_out(world.root, "branch", f"covey/{other}", "main")
    world.tick()
    assert world.overlaps() == [(f"{one} main", "conflict", ["a.txt"])]
    assert world.mail("bob") == []
    world.commit(other, {"a.txt": changed(3, "bob")})
    world.tick()
    assert (f"{one} {other}", "conflict", ["a.txt"]) in world.overlaps()
    git_out(world.root, "branch", "--force", f"covey/{other}", "main")
    world.tick()
    assert world.overlaps() == [(f"{one} main", "conflict", ["a.txt"])], "it has taken its commit back"
