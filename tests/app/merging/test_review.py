"""Reviews through the App, over a real repository: what work changes, wherever it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from covey.errors import Invalid, NotFound, Refused, Unavailable
from covey.git import project as projects
from tests.worlds.boards import Principal, World
from tests.worlds.repositories import commit_files, git_out, make_repository

LINES = "".join(f"line {number}\n" for number in range(1, 41))


class Reviewed:
    """A world over a repository, in which sessions commit and hand in."""

    def __init__(self, folder: Path) -> None:
        self.root = make_repository(folder / "shop", {"a.txt": LINES})
        self.world = World(folder)
        self.world.app.context.repository = projects.find(self.root)

    def commit(self, task: str, files: dict[str, str]) -> str:
        """Commit files on the branch of a task."""
        known = git_out(self.root, "branch", "--list", f"covey/{task}")
        git_out(self.root, "checkout", "-q", *([] if known else ["-b"]), f"covey/{task}")
        commit_files(self.root, files, f"Work for {task}")
        tip = git_out(self.root, "rev-parse", "HEAD")
        git_out(self.root, "checkout", "-q", "main")
        return tip

    def done(self, title: str, files: dict[str, str], session: str = "ada") -> str:
        """Let a session do a task and hand it in."""
        task = self.world.add(title)
        self.world.claim(task, session)
        self.world.hand_in(task, session, commit=self.commit(task, files))
        return task

    def diff(self, task: str, **asked: Any) -> Any:
        """Return what a task changes."""
        return self.world.ask("task.diff", id=task, **asked)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Reviewed]:
    shop = Reviewed(tmp_path)
    yield shop
    assert shop.world.folded() == shop.world.tables()
    shop.world.store.close()


def test_what_is_handed_in_is_what_is_shown(shop: Reviewed) -> None:
    task = shop.done("Mend it", {"a.txt": LINES.replace("line 7\n", "seven\n"), "new.py": "x = 1\n"})
    handed_in = shop.diff(task)
    shop.commit(task, {"later": "1\n"})
    shown = shop.diff(task)
    assert shown == handed_in and not shown["landed"]
    assert (shown["branch"], shown["plus"], shown["minus"], shown["more"]) == (f"covey/{task}", 2, 1, 0)
    assert [(file["path"], file["status"]) for file in shown["files"]] == [("a.txt", "changed"), ("new.py", "added")]
    alone = shop.diff(task, path="new.py")
    assert [file["patch"] for file in alone["files"]] == ["@@ -0,0 +1 @@\n+x = 1\n"]


def test_work_that_is_not_handed_in_yet_is_shown_from_its_branch(shop: Reviewed) -> None:
    task = shop.world.add()
    nothing = shop.diff(task)
    assert (nothing["tip"], nothing["merge"], nothing["files"]) == (None, None, [])
    shop.world.claim(task, "ada")
    shop.commit(task, {"new.py": "x = 1\n"})
    assert [file["path"] for file in shop.diff(task)["files"]] == ["new.py"]


def test_what_is_not_committed_is_shown_when_asked_for(shop: Reviewed, tmp_path: Path) -> None:
    task = shop.world.add()
    shop.world.claim(task, "ada")
    place = tmp_path / "worktree"
    git_out(shop.root, "worktree", "add", "-q", "-b", f"covey/{task}", str(place))
    (place / "new.py").write_text("x = 1\n")
    shown = shop.diff(task)
    assert (shown["dirty"], shown["working"], shown["files"]) == (True, False, [])
    working = shop.diff(task, working=True)
    assert working["working"] and [file["path"] for file in working["files"]] == ["new.py"]


def test_a_done_task_shows_what_it_brought_to_main(shop: Reviewed) -> None:
    task = shop.done("Mend it", {"new.py": "x = 1\n"})
    git_out(shop.root, "merge", "-q", "--squash", f"covey/{task}")
    git_out(shop.root, "commit", "-qm", "Landed")
    commit = git_out(shop.root, "rev-parse", "HEAD")
    commit_files(shop.root, {"other": "1\n"}, "Meanwhile")
    git_out(shop.root, "branch", "-qD", f"covey/{task}")
    shop.world.ask("merge.land", id=task, commit=commit)
    shown = shop.diff(task)
    assert (shown["landed"], shown["tip"]) == (True, commit)
    assert [file["path"] for file in shown["files"]] == ["new.py"]


def test_a_report_and_a_world_without_commits_say_so(shop: Reviewed) -> None:
    task = shop.world.add(kind="report")
    assert shop.diff(task)["tip"] is None
    with pytest.raises(NotFound, match="is a report"):
        shop.world.ask("task.conflicts", id=task)
    with pytest.raises(NotFound, match="There is no task"):
        shop.diff("T-99")
    shop.world.app.context.repository = None
    with pytest.raises(Unavailable, match="Nobody can look at commits here"):
        shop.diff(shop.world.add())


def test_several_tasks_are_shown_together_with_who_touched_what(shop: Reviewed) -> None:
    one = shop.done("One", {"a.txt": LINES.replace("line 2\n", "two\n"), "one": "1\n"})
    two = shop.done("Two", {"a.txt": LINES.replace("line 2\n", "zwei\n")}, "bob")
    three = shop.done("Three", {"a.txt": LINES.replace("line 39\n", "thirty-nine\n")}, "cy")
    empty = shop.world.add("Nothing yet")
    found = shop.world.ask("diff.show", tasks=f"{one},{two},{three},{empty}")
    assert {file["path"]: file["tasks"] for file in found["files"]} == {"a.txt": [one, three], "one": [one]}
    parts = {part["task"]: part for part in found["tasks"]}
    assert [parts[task]["conflicts"] for task in (one, two, three)] == [[], ["a.txt"], []]
    assert parts[two]["message"] and parts[empty]["tip"] is None
    with pytest.raises(NotFound, match="There is no task"):
        shop.world.ask("diff.show", tasks=f"{one},T-99")
    with pytest.raises(Invalid, match="At most 30 tasks"):
        shop.world.ask("diff.show", tasks=",".join(f"T-{number}" for number in range(1, 40)))


def test_a_preview_tells_of_main_of_the_queue_and_of_those_at_work(shop: Reviewed) -> None:
    mine = shop.done("Mine", {"a.txt": LINES.replace("line 2\n", "two\n")})
    queued = shop.done("Queued", {"a.txt": LINES.replace("line 2\n", "zwei\n")}, "bob")
    far = shop.done("Far", {"a.txt": LINES.replace("line 39\n", "thirty-nine\n")}, "cy")
    at_work = shop.world.add("At work")
    shop.world.claim(at_work, "dan")
    shop.commit(at_work, {"a.txt": LINES.replace("line 3\n", "three\n")})
    shop.done("Elsewhere", {"else": "1\n"}, "eve")
    found = shop.world.ask("task.conflicts", id=mine)
    assert found["conflicts"] == []
    assert [(each["task"], bool(each["conflicts"])) for each in found["others"]] == [
        (queued, True),
        (at_work, True),
        (far, False),
    ]
    assert found["others"][0]["merge"] and found["others"][1]["merge"] is None
    assert found["others"][2]["shared"] == ["a.txt"]
    commit_files(shop.root, {"a.txt": LINES.replace("line 2\n", "deux\n")}, "Meanwhile")
    assert shop.world.ask("task.conflicts", id=mine)["conflicts"] == ["a.txt"]
    with pytest.raises(NotFound, match="no work on"):
        shop.world.ask("task.conflicts", id=shop.world.add("Nothing yet"))
    shop.world.ask("merge.land", id=mine, commit="c" * 40)
    with pytest.raises(Refused, match="has landed already"):
        shop.world.ask("task.conflicts", id=mine)


def test_a_session_may_look_at_what_others_change(shop: Reviewed) -> None:
    task = shop.done("Mend it", {"new.py": "x = 1\n"})
    assert shop.world.ask("task.diff", Principal("bob"), id=task)["files"]


def test_the_list_of_work_has_its_size_and_what_it_conflicts_with(shop: Reviewed) -> None:
    waits = shop.done("Mend it", {"a.txt": LINES.replace("line 7\n", "seven\n"), "new.py": "x = 1\n"})
    begun = shop.world.add("Begin")
    shop.world.claim(begun, "bob")
    shop.commit(begun, {"b.txt": "1\n2\n"})
    idle = shop.world.add("Wait")
    listed = {row["task"]: row for row in shop.world.ask("review.list")}
    sizes = {task: (row["plus"], row["minus"], row["files"]) for task, row in listed.items()}
    assert sizes == {waits: (2, 1, 2), begun: (2, 0, 1)}
    assert listed[waits]["merge"] == shop.diff(waits)["merge"] and idle not in listed
    assert listed[waits]["conflicts"] == []
