"""Landing against a user who works in the same repository, between the landings and during them."""

from __future__ import annotations

import random
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.git import project as projects
from covey.git.candidates.candidates import Candidate, build, is_ancestor
from covey.git.landing.landing import Landed, MainMoved, Waits, follow, land, landed_line, put_landed
from tests.worlds.repositories import git_out, make_repository, user_env

SHARED = ("one.txt", "two.txt", "three.txt")
MIDDLE = "\n" * 12


def shared(first: str, last: str) -> str:
    """Return a file whose first line is the queue's and whose last line is the user's: the two always merge."""
    return f"{first}\n{MIDDLE}{last}\n"


class Stage:
    """One repository, the queue that lands in it, and the checkouts in which its user works."""

    def __init__(self, folder: Path) -> None:
        files = {name: shared("begin", "begin") for name in SHARED}
        self.path = make_repository(folder / "repo", {**files, "own.txt": "own\n", ".gitignore": "*.log\n"})
        self.project = projects.find(self.path)
        self.second = folder / "second"
        self.landed: list[str] = []
        self.count = 0
        git_out(self.path, "branch", "other")

    def try_git(self, at: Path, *words: str) -> bool:
        return subprocess.run(["git", *words], cwd=at, env=user_env(), capture_output=True, check=False).returncode == 0

    def show(self, what: str) -> str:
        return git_out(self.path, "show", what)

    def work(self, base: str) -> str:
        """Commit the next piece of work on `base`: a new file, an ignored one, and the first line of a shared one."""
        self.count += 1
        name = SHARED[self.count % len(SHARED)]
        last = self.show(f"{base}:{name}").split("\n")[-1]
        files = {f"landed/{self.count}.txt": f"{self.count}\n", f"landed/{self.count}.log": "log\n"}
        files[name] = shared(f"landed {self.count}", last)
        said = ["commit refs/scratch", "mark :1", "committer Ada <ada@example.org> 1700000000 +0000", "data 4", "Work"]
        said += [f"from {base}"]
        for path, text in files.items():
            said += [f"M 100644 inline {path}", f"data {len(text)}", text]
        made = git_out(self.path, "fast-import", "--quiet", "--force", stdin="\n".join([*said, "get-mark :1", ""]))
        git_out(self.path, "update-ref", "-d", "refs/scratch")
        return made

    def land_one(self) -> Landed | Waits | MainMoved | None:
        """Do what the queue does with one tested piece of work."""
        line = landed_line(self.project, "main")
        assert line.main is not None and line.head is not None
        pending = line.head if line.head != line.main else None
        if line.diverged:
            both = build(self.project, line.main, line.head, message="Both", author=("q", "q@x"), at=None)
            assert isinstance(both, Candidate), both
            put_landed(self.project, both.commit, pending)
            return follow(self.project, "main")
        commit = self.work(line.head)
        outcome = land(self.project, "main", line.main, commit) if pending is None else None
        if outcome is None or isinstance(outcome, Waits):
            put_landed(self.project, commit, pending)
            outcome = follow(self.project, "main")
        if not isinstance(outcome, MainMoved) or landed_line(self.project, "main").head == commit:
            self.landed.append(commit)
        return outcome

    def checkouts(self) -> list[Path]:
        return [path for path in (self.path, self.second) if path.is_dir()]

    def dirt(self) -> dict[Path, object]:
        """Return what is the user's in each checkout: HEAD's branch, status, and the content of all that is dirty."""
        return {path: self._dirt_at(path) for path in self.checkouts()}

    def _dirt_at(self, path: Path) -> object:
        status = git_out(
            path, "--no-optional-locks", "status", "--porcelain", "-z", "-uall", "--ignored", "--no-renames"
        )
        names = sorted(line[3:] for line in status.split("\0") if line)
        contents = {name: (path / name).read_text().split("\n")[-2:] for name in names if (path / name).is_file()}
        branch = git_out(path, "rev-parse", "--symbolic-full-name", "HEAD")
        return branch, sorted(status.split("\0")), contents

    def must_be_sane(self) -> None:
        """No landed commit is lost, none is reverted, and no checkout shows a change of ours as the user's."""
        line = landed_line(self.project, "main")
        assert line.main is not None and line.head is not None
        for commit in self.landed:
            assert is_ancestor(self.project, commit, line.main) or is_ancestor(self.project, commit, line.head)
        landed_files = {name for commit in self.landed for name in self._landed_names(commit)}
        for head in (line.main, line.head):
            held = [commit for commit in self.landed if is_ancestor(self.project, commit, head)]
            there = set(git_out(self.path, "ls-tree", "-r", "--name-only", head, "landed/").split("\n"))
            assert {name for commit in held for name in self._landed_names(commit)} <= there
        for path in self.checkouts():
            self._must_hold_only_the_users_changes(path, landed_files)
        common = self.project.common
        assert not [path for path in common.rglob("*") if path.suffix == ".lock" or path.name.startswith("covey-")]

    def _landed_names(self, commit: str) -> list[str]:
        names = git_out(self.path, "diff-tree", "-r", "--name-only", "--no-commit-id", commit, "--", "landed/")
        return [name for name in names.split("\n") if name]

    def _must_hold_only_the_users_changes(self, path: Path, landed_files: set[str]) -> None:
        changed = set(git_out(path, "diff", "--no-renames", "--name-only", "HEAD").split("\n"))
        staged = set(git_out(path, "diff", "--no-renames", "--name-only", "--cached", "HEAD").split("\n"))
        assert not (changed | staged) & landed_files, (path, changed, staged)
        for name in SHARED:
            head = git_out(path, "show", f"HEAD:{name}").split("\n")[0]
            assert git_out(path, "show", f":{name}").split("\n")[0] == head
            assert (path / name).read_text().split("\n")[0] == head


class User:
    """Somebody who works in a checkout with no idea that a queue lands on main meanwhile."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.at = stage.path
        self.count = 0

    def edit(self, name: str) -> None:
        """Change the last line of a file, which is the user's own."""
        self.count += 1
        try:
            lines = (self.at / name).read_text().split("\n")
        except FileNotFoundError:
            return  # git replaces it at this very moment
        (self.at / name).write_text("\n".join([*lines[:-2], f"user {self.count}", ""]))

    def write(self, name: str) -> None:
        self.count += 1
        (self.at / name).parent.mkdir(exist_ok=True)
        if not (self.at / name).exists():
            (self.at / name).write_text(f"user {self.count}\n")

    def clean(self) -> None:
        self.stage.try_git(self.at, "clean", "-qfdx")

    def git(self, *words: str) -> bool:
        return self.stage.try_git(self.at, *words)


class AnyOrder(RuleBasedStateMachine):
    """Whatever the user does between landings, nothing landed is lost and nothing of the user's is touched."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.stage = Stage(Path(self.folder.name))
        self.user = User(self.stage)

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule()
    def land(self) -> None:
        before = self.stage.dirt()
        self.stage.land_one()
        assert self.stage.dirt() == before

    @rule()
    def follow(self) -> None:
        before = self.stage.dirt()
        follow(self.stage.project, "main")
        assert self.stage.dirt() == before

    @rule(name=st.sampled_from([*SHARED, "own.txt"]))
    def edit(self, name: str) -> None:
        self.user.edit(name)

    @rule(suffix=st.sampled_from(["txt", "log"]))
    def write_in_the_way(self, suffix: str) -> None:
        self.user.write(f"landed/{self.stage.count + 1}.{suffix}")

    @rule(name=st.sampled_from(["note.txt", "note.log"]))
    def write_elsewhere(self, name: str) -> None:
        self.user.write(name)

    @rule()
    def clean(self) -> None:
        self.user.clean()

    @rule()
    def stage_all(self) -> None:
        self.user.git("add", "--update")

    @rule(words=st.sampled_from([["-a"], [], ["-a", "--amend"]]))
    def commit(self, words: list[str]) -> None:
        if "--amend" not in words or git_out(self.user.at, "log", "-1", "--format=%s") == "User":
            self.user.git("commit", "-q", "-m", "User", *words)

    @rule(words=st.sampled_from([["main"], ["other"], ["--detach"]]))
    def switch(self, words: list[str]) -> None:
        self.user.git("switch", "-q", *words)

    @rule()
    def stash_and_pop(self) -> None:
        if self.user.git("stash", "push", "-q"):
            self.stage.land_one()
            if not self.user.git("stash", "pop", "-q"):
                self.user.git("reset", "-q", "--hard")
                self.user.git("stash", "drop", "-q")

    @rule(force=st.booleans())
    def use_a_second_checkout(self, force: bool) -> None:
        words = ["worktree", "add", "-q", *(["-f"] if force else []), str(self.stage.second), "main"]
        if self.user.at == self.stage.path and self.user.git(*words):
            self.user.at = self.stage.second
        else:
            self.user.at = self.stage.path
            self.user.git("worktree", "remove", "--force", str(self.stage.second))

    @invariant()
    def all_is_sane(self) -> None:
        self.stage.must_be_sane()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=6, stateful_step_count=15, deadline=None)


@pytest.mark.parametrize("steps", [40, pytest.param(600, marks=pytest.mark.soak)])
def test_a_user_at_work_during_landings_reverts_nothing_and_loses_nothing(tmp_path: Path, steps: int) -> None:
    """A rewinding command (reset, stash) is left out: git itself lets one that has read HEAD undo any other's move."""
    stage = Stage(tmp_path)
    user = User(stage)
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    actions: list[Callable[[], object]] = [
        lambda: user.edit(dice.choice(SHARED)),
        lambda: user.edit("own.txt"),
        lambda: user.git("add", "--update"),
        lambda: user.git("commit", "-q", "-a", "-m", "User"),
        lambda: user.git("commit", "-q", "-m", "User"),
        lambda: user.git("switch", "-q", "other"),
        lambda: user.git("switch", "-q", "main"),
        lambda: user.git("switch", "-q", "main"),
        lambda: user.git("status"),
        lambda: user.write("note.txt"),
    ]
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            dice.choice(actions)()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        outcomes = [type(stage.land_one()).__name__ for _ in range(steps)]
    finally:
        ended.set()
        worker.join()
    assert "Landed" in outcomes, (seed, outcomes)
    user.git("commit", "-q", "-a", "-m", "The last of it")
    stage.must_be_sane()
