"""What has had its time among many runs, by the rows and the files that there are."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from covey.app.app import Request
from covey.app.context import Principal
from covey.app.fleet import fleet_verbs
from covey.app.history import cleanup, leftovers
from covey.app.history.cleanup import IN_USE, Clearing
from covey.app.shapes.forms import Nothing
from covey.app.verbs import VERBS
from covey.config import Config, Log
from covey.core import nouns
from covey.core.fleet import runs
from covey.core.history.retention import RetainedKind
from covey.core.merging.merges import Merge, MergeState
from covey.errors import Invalid
from covey.git.project import Project
from covey.git.rescue.rescue import find_rescues, rescue
from covey.git.worktrees.worktree_records import Record
from covey.git.worktrees.worktrees import Worktrees, default_folder
from tests.worlds.boards import World
from tests.worlds.repositories import git_out
from tests.worlds.serving import make_repository

MANY = 1_000
SECONDS_FOR_MANY = 10.0
PACKED = b"x" * 1024


@pytest.fixture
def project(world: World, tmp_path: Path) -> Project:
    """Return a repository whose rows are the world's."""
    project = make_repository(tmp_path / "repo")
    world.app.context.repository = project
    return project


def _runs(world: World, project: Project, task: str, first: int, count: int, *, at: float) -> list[str]:
    """Let runs of a task have ended, each with a transcript of a kilobyte, one second after the other."""

    def fill(call: Any) -> None:
        for number in range(first, first + count):
            begun = runs.Begun(session="ada", task=task, fence=1, agent="scripted")
            run = nouns.first(runs.Run, f"run-{number}", call.tx.next_seq, begun, call.tx.now)
            call.tx.insert(run)
            call.tx.append("ada", run.id, begun, run)
            ended = runs.Ended(outcome=runs.Outcome.HANDED_IN)
            after = runs.apply(run, ended, call.tx.now)
            call.tx.put(run, after)
            call.tx.append("ada", run.id, ended, after)

    world.do(fill)
    names = [f"run-{number}" for number in range(first, first + count)]
    for number, name in enumerate(names):
        path = project.state / "runs" / name / "transcript.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(PACKED)
        os.utime(path, (at + number, at + number))
    return names


def _settings(world: World, **log: float) -> None:
    world.app.context.config = Config(log=Log(**log))


def _past(world: World, project: Project, kind: RetainedKind) -> list[str]:
    return [each.name for each in cleanup.look(world.app.context, project) if each.kind is kind]


def test_transcripts_stay_however_old_until_they_are_too_much_and_open_tasks_keep_theirs_longest(
    world: World, project: Project
) -> None:
    ended, open_task = world.add("Ended"), world.add("Open")
    older = _runs(world, project, open_task, 100, 4, at=1_000.0)
    younger = _runs(world, project, ended, 200, 4, at=2_000.0)
    unknown = _runs(world, project, "T-99", 300, 2, at=3_000.0)
    world.ask("task.drop", id=ended, reason="no")
    assert _past(world, project, RetainedKind.TRANSCRIPT) == unknown, "nobody knows their task any more"
    _settings(world, transcript_megabytes=6 / 1024)
    assert _past(world, project, RetainedKind.TRANSCRIPT) == [*unknown, *younger[:2]]
    _settings(world, transcript_megabytes=2 / 1024)
    assert _past(world, project, RetainedKind.TRANSCRIPT) == [*unknown, *younger, *older[:2]]
    gone = cleanup.clear(world.app.context, project, [RetainedKind.TRANSCRIPT])
    assert len(gone) == 8 and not any(each.left for each in gone)
    assert sorted(os.listdir(project.state / "runs")) == older[2:]


def test_a_folder_that_no_row_tells_of_is_left_alone(world: World, project: Project) -> None:
    stranger = project.state / "runs" / "run-7"
    stranger.mkdir(parents=True)
    (stranger / "rc").write_text("0")
    os.utime(stranger, (1_000.0, 1_000.0))
    assert cleanup.look(world.app.context, project) == []
    [run] = _runs(world, project, world.add(), 8, 1, at=1_000.0)
    (project.state / "runs" / run / "transcript.gz").unlink()
    os.utime(project.state / "runs" / run, (1_000.0, 1_000.0))
    assert _past(world, project, RetainedKind.RUN) == [run]
    cleanup.clear(world.app.context, project)
    assert os.listdir(project.state / "runs") == ["run-7"]


def test_a_worktree_whose_session_comes_back_between_the_look_and_the_removal_stays(
    world: World, project: Project
) -> None:
    git_out(project.root, "commit", "-q", "--allow-empty", "-m", "begin")
    worktrees = Worktrees(project, default_folder(project, Config().sessions.worktrees))
    worktrees.prepare("ada", "covey/T-1", "main")
    records = leftovers.gather(world.app.context, project, [RetainedKind.WORKTREE])
    found = list(leftovers.find(records, [RetainedKind.WORKTREE]))
    assert [each.name for each in found] == ["ada"]
    world.ask("session.new", name="ada", agent="scripted")
    [kept] = Clearing(records, world.app.context).clear(found)
    assert kept.left == IN_USE and worktrees.path("ada").exists() and worktrees.is_known("ada")
    assert _past(world, project, RetainedKind.WORKTREE) == []


def test_a_worktree_that_git_has_lost_track_of_stays_as_it_is(world: World, project: Project) -> None:
    git_out(project.root, "commit", "-q", "--allow-empty", "-m", "begin")
    worktrees = Worktrees(project, default_folder(project, Config().sessions.worktrees))
    worktrees.prepare("ada", "covey/T-1", "main")
    records = leftovers.gather(world.app.context, project, [RetainedKind.WORKTREE])
    found = list(leftovers.find(records, [RetainedKind.WORKTREE]))
    (worktrees.path("ada") / "precious.txt").write_text("work\n")
    entry = worktrees.git_dir("ada")
    assert entry is not None
    shutil.rmtree(entry)
    assert _past(world, project, RetainedKind.WORKTREE) == []
    [kept] = Clearing(records, world.app.context).clear(found)  # it was lost after it was found
    assert "lost track" in kept.left
    assert (worktrees.path("ada") / "precious.txt").read_text() == "work\n"


def test_a_worktree_in_which_somebody_works_stays(world: World, project: Project) -> None:
    git_out(project.root, "commit", "-q", "--allow-empty", "-m", "begin")
    worktrees = Worktrees(project, default_folder(project, Config().sessions.worktrees))
    worktrees.prepare("ada", "covey/T-1", "main")
    worker = subprocess.Popen(["sleep", "60"], cwd=worktrees.path("ada"))
    try:
        [kept] = cleanup.clear(world.app.context, project, [RetainedKind.WORKTREE])
    finally:
        worker.kill()
        worker.wait()
    assert kept.left == IN_USE and worktrees.path("ada").exists()


def test_an_old_rescue_that_goes_soon_does_not_stand_in_for_a_worktree(world: World, project: Project) -> None:
    git_out(project.root, "commit", "-q", "--allow-empty", "-m", "begin")
    worktrees = Worktrees(project, default_folder(project, Config().sessions.worktrees))
    worktrees.prepare("ada", "covey/T-1", "main")
    (worktrees.path("ada") / "unsaved.txt").write_text("work\n")
    long_ago = world.clock.now().wall - 13 * 86400
    own = worktrees.git_dir("ada")
    assert rescue(project, worktrees.path("ada"), session="ada", why="before", at=long_ago, own=own) is not None
    [kept] = cleanup.clear(world.app.context, project, [RetainedKind.WORKTREE])
    assert "goes soon" in kept.left and (worktrees.path("ada") / "unsaved.txt").exists()


def test_a_branch_whose_landing_was_taken_off_main_stays(world: World, project: Project) -> None:
    git = partial(git_out, project.root)
    git("commit", "-q", "--allow-empty", "-m", "begin")
    git("branch", "covey/T-1")
    git("commit", "-q", "--allow-empty", "-m", "landed")
    landed = git("rev-parse", "HEAD")
    records = leftovers.gather(world.app.context, project, [RetainedKind.BRANCH])
    tip = records.tips["covey/T-1"]
    merge = Merge(
        id="merge-1",
        ordinal=1,
        task="T-1",
        session="ada",
        branch="b",
        commit=tip,
        landed=landed,
        state=MergeState.LANDED,
    )
    assert leftovers._has_landed(records, merge, tip)
    git("reset", "-q", "--hard", "HEAD~1")
    assert not leftovers._has_landed(records, merge, tip)


def test_what_is_rescued_of_a_removed_session_is_written_down_as_its_own(world: World, project: Project) -> None:
    git_out(project.root, "commit", "-q", "--allow-empty", "-m", "begin")
    worktrees = Worktrees(project, default_folder(project, Config().sessions.worktrees))
    world.ask("session.new", name="ada", agent="scripted")
    worktrees.prepare("ada", "covey/T-1", "main")
    (worktrees.path("ada") / "unsaved.txt").write_text("work\n")
    world.do(lambda call: fleet_verbs.part(call, call.known("ada")))
    [kind] = [each for each in world.ask("clean.run")["kinds"] if each["kind"] == RetainedKind.WORKTREE]
    assert kind["count"] == 1 and kind["some"][0]["rescue"].startswith("ada/")
    assert "session.rescued" in world.kinds()
    assert not worktrees.is_known("ada")
    [kept] = find_rescues(project)
    assert kept.counts.untracked == 1


def test_a_thousand_runs_are_looked_through_in_a_moment(world: World, project: Project) -> None:
    _runs(world, project, world.add(), 1, MANY, at=1_000.0)
    _settings(world, transcript_megabytes=MANY / 2 / 1024)
    begun = time.monotonic()
    assert len(_past(world, project, RetainedKind.TRANSCRIPT)) == MANY // 2
    assert time.monotonic() - begun < SECONDS_FOR_MANY


def test_a_folder_that_was_moved_aside_for_a_run_goes_with_the_others(world: World, project: Project) -> None:
    world.add(title="A")
    [run] = _runs(world, project, "T-1", 1, 1, at=0.0)
    aside = project.runs / f"{run}.before-0123abcd"
    aside.mkdir()
    os.utime(aside, (0.0, 0.0))
    assert _past(world, project, RetainedKind.RUN) == [aside.name]


def test_a_worktree_that_a_person_made_where_covey_never_came_to_make_one_stays(world: World, project: Project) -> None:
    git_out(project.root, "commit", "-q", "--allow-empty", "-m", "begin")
    folder = default_folder(project, Config().sessions.worktrees)
    project.records.mkdir(parents=True, exist_ok=True)
    Worktrees(project, folder)._write_record(Record("ada", folder / "ada", "ada"))  # a crash came before it was made
    git_out(project.root, "worktree", "add", "-q", "-b", "mine", str(folder / "ada"))
    cleanup.clear(world.app.context, project, [RetainedKind.WORKTREE])
    assert (folder / "ada").exists()


def test_commits_that_only_an_old_rescue_keeps_are_rescued_anew(world: World, project: Project) -> None:
    git_out(project.root, "commit", "-q", "--allow-empty", "-m", "begin")
    worktrees = Worktrees(project, default_folder(project, Config().sessions.worktrees))
    worktrees.prepare("ada", "covey/T-1", "main")
    worktrees.release("ada")
    path = worktrees.path("ada")
    (path / "work.txt").write_text("work\n")
    git_out(path, "add", "work.txt")
    git_out(path, "commit", "-q", "-m", "work")
    work = git_out(path, "rev-parse", "HEAD")
    long_ago = world.clock.now().wall - 13 * 86_400
    assert rescue(project, path, session="ada", why="before", at=long_ago, own=worktrees.git_dir("ada")) is not None
    cleanup.clear(world.app.context, project, [RetainedKind.WORKTREE])
    assert not path.exists()
    [fresh] = [one for one in find_rescues(project, "ada") if one.time > long_ago]
    assert work in git_out(project.root, "rev-list", fresh.ref)


def test_a_branch_on_which_covey_never_worked_stays(world: World, project: Project) -> None:
    git = partial(git_out, project.root)
    git("commit", "-q", "--allow-empty", "-m", "begin")
    task = world.add("Never run by anybody")
    git("branch", f"covey/{task}")
    git("commit", "-q", "--allow-empty", "-m", "more")
    world.ask("task.drop", id=task, reason="no")
    cleanup.clear(world.app.context, project, [RetainedKind.BRANCH])
    assert git("branch", "--list", f"covey/{task}")


def test_a_clean_that_is_refused_removes_nothing(world: World, project: Project) -> None:
    [run] = _runs(world, project, "T-99", 8, 1, at=1_000.0)
    with pytest.raises(Invalid):
        world.app.ask(Request(VERBS["clean.run"], Principal(), Nothing(), {}, "k" * 201, b"r"))
    assert (project.state / "runs" / run).exists()


def test_a_clean_that_is_repeated_is_done_once(world: World, project: Project) -> None:
    request = Request(VERBS["clean.run"], Principal(), Nothing(), {}, "k", b"r")
    first = world.app.ask(request)
    [run] = _runs(world, project, "T-99", 8, 1, at=1_000.0)
    assert world.app.ask(request) == first
    assert (project.state / "runs" / run).exists()
