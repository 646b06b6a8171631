"""Refs that a session twisted: covey moves and deletes the ref itself, never what it leads to."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import covey
from covey.errors import Refused
from covey.git import identity, log_refs, refs
from covey.git.landing import landing, main_restore
from covey.git.project import Project, find
from covey.git.refs import Order
from covey.git.run import try_git
from covey.git.worktrees.worktrees import Worktrees, default_folder
from tests.worlds.repositories import commit_files, git_out, make_repository

BRANCH = "covey/T-1"
NAME = f"refs/heads/{BRANCH}"
Twist = Callable[[Project], None]


@pytest.fixture(autouse=True)
def plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def worktrees(tmp_path: Path) -> Worktrees:
    project = find(make_repository(tmp_path / "repo"))
    return Worktrees(project, default_folder(project, "../{repo}.worktrees"))


def main_of(project: Project) -> str:
    return git_out(project.common, "rev-parse", "refs/heads/main")


def symbolic(target: str, name: str = NAME) -> Twist:
    return lambda project: (git_out(project.common, "symbolic-ref", name, target), None)[1]


def replaced(make: Callable[[Path, Project], object]) -> Twist:
    def twist(project: Project) -> None:
        path = project.common / NAME
        path.unlink()
        make(path, project)

    return twist


def linked_folder(project: Project) -> None:
    """Let the folder of all sessions' branches be that of the user's branches in another repository."""
    other = make_repository(project.root.parent / "other")
    git_out(other, "branch", "T-1")
    folder = project.common / "refs" / "heads" / "covey"
    folder.rename(project.root.parent / "taken")
    folder.symlink_to(other / ".git" / "refs" / "heads")


TWISTS: dict[str, Twist] = {
    "main": symbolic("refs/heads/main"),
    "the user's HEAD": symbolic("HEAD"),
    "a ref of a remote": symbolic("refs/remotes/origin/main"),
    "a ref of covey's": symbolic("refs/covey/landed"),
    "itself": symbolic(NAME),
    "nothing": symbolic("refs/heads/covey/none"),
    "a link to main": replaced(lambda path, project: path.symlink_to(project.common / "refs/heads/main")),
    "a link that git reads as a name": replaced(lambda path, project: path.symlink_to("refs/heads/main")),
    "a file of the user": replaced(lambda path, project: path.symlink_to(project.root / "README.md")),
    "garbage": replaced(lambda path, project: path.write_text("garbage\n")),
    "an empty file": replaced(lambda path, project: path.write_text("")),
    "a pipe": replaced(lambda path, project: os.mkfifo(path)),
    "a linked folder": linked_folder,
}


@pytest.mark.parametrize("how", TWISTS)
def test_a_twisted_branch_is_dropped_prepared_and_told_without_a_change_of_what_it_leads_to(
    worktrees: Worktrees, how: str
) -> None:
    project, main = worktrees.project, main_of(worktrees.project)
    git_out(project.common, "update-ref", "refs/remotes/origin/main", main)
    git_out(project.common, "update-ref", "refs/covey/landed", main)
    worktrees.prepare("ann", BRANCH, "main")
    commit_files(worktrees.path("ann"), {"new": "work\n"}, "Work")
    tip = git_out(project.common, "rev-parse", NAME)
    worktrees.release("ann")
    TWISTS[how](project)
    others = {name: path.read_bytes() for name, path in _files(project).items() if "covey/T-1" not in name}

    (told,) = refs.untwist_all(project)
    assert (told.name.startswith("refs/heads/covey/"), told.value is None or told.value == tip) == (True, True)
    if how != "a linked folder":
        assert worktrees.prepare("ann", BRANCH, "main") == tip, "what it held is there again"
    worktrees.release("ann")
    worktrees.drop_branch(BRANCH, tip)
    assert main_of(project) == main
    assert git_out(project.root, "status", "--porcelain") == ""
    assert {name: path.read_bytes() for name, path in _files(project).items() if name in others} == others


def _files(project: Project) -> dict[str, Path]:
    """Return the user's files, refs and reflogs here and next door."""
    tops = [project.common / "refs", project.common / "logs" / "refs", project.root / "README.md"]
    tops += [project.root.parent / "other"]
    files = [path for top in tops for path in ((top,) if top.is_file() else top.rglob("*"))]
    plain = (path for path in files if path.is_file() and not path.is_symlink())
    return {str(path): path for path in plain if "/kept/" not in str(path)}


@pytest.mark.parametrize("how", ["main", "a link that git reads as a name", "a link to main"])
def test_dropping_an_empty_branch_that_became_a_name_of_main_leaves_main_and_its_reflog(
    worktrees: Worktrees, how: str
) -> None:
    project = worktrees.project
    main, log = main_of(project), (project.common / "logs/refs/heads/main").read_bytes()
    worktrees.prepare("ann", BRANCH, "main")
    worktrees.release("ann")
    TWISTS[how](project)
    assert worktrees.drop_empty_branch(BRANCH, "main"), "the control: the branch itself is dropped"
    assert (main_of(project), (project.common / "logs/refs/heads/main").read_bytes()) == (main, log)
    assert not os.path.lexists(project.common / NAME)


def test_a_branch_that_two_put_back_at_once_is_at_its_own_commit(
    worktrees: Worktrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = worktrees.project
    worktrees.prepare("ada", BRANCH, main_of(project))
    commit = git_out(commit_files(worktrees.path("ada"), {"work.txt": "work\n"}, "Work"), "rev-parse", "HEAD")
    symbolic("refs/heads/main")(project)
    another = threading.Thread(target=refs.untwist, args=(project, NAME))

    def ask_after_another(*words: str, **options: Any) -> Any:
        if words[0] == "rev-parse" and another.ident is None:
            another.start()
            another.join(0.5)  # It would be done by now, but for the lock.
        return try_git(*words, **options)

    monkeypatch.setattr(refs, "try_git", ask_after_another)
    refs.untwist(project, NAME)
    another.join()
    assert refs.value(project, NAME) == commit


def test_a_ref_for_which_another_has_just_made_room_is_moved(
    worktrees: Worktrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = worktrees.project
    main = main_of(project)
    git_out(project.common, "update-ref", "refs/covey/tasks", main)
    make_room = refs.make_room
    monkeypatch.setattr(refs, "make_room", lambda *words: (make_room(*words), [])[1])
    assert refs.change(project, Order("refs/covey/tasks/T-1", main)).returncode == 0
    assert refs.value(project, "refs/covey/tasks/T-1") == main


def test_a_plain_branch_is_left_as_it_is(worktrees: Worktrees) -> None:
    worktrees.prepare("ann", BRANCH, "main")
    commit_files(worktrees.path("ann"), {"new": "work\n"}, "Work")
    git_out(worktrees.project.common, "pack-refs", "--all")
    before = git_out(worktrees.project.common, "for-each-ref")
    assert refs.untwist_all(worktrees.project) == []
    assert git_out(worktrees.project.common, "for-each-ref") == before


def test_a_move_that_meets_a_symbolic_ref_changes_that_ref_alone(worktrees: Worktrees) -> None:
    project, main = worktrees.project, main_of(worktrees.project)
    new = git_out(project.root, "commit-tree", "-p", main, "-m", "Next", f"{main}^{{tree}}")
    symbolic("refs/heads/main")(project)
    assert refs.change(project, Order(NAME, new, main)).returncode == 0
    assert (main_of(project), git_out(project.root, "rev-parse", NAME)) == (main, new)
    assert refs.change(project, Order(NAME, None, main)).returncode != 0, "another value is there"
    symbolic("refs/heads/main")(project)
    assert refs.change(project, Order(NAME, None, main)).returncode == 0
    assert main_of(project) == main


@pytest.mark.parametrize("ref", [identity.LANDED, identity.LANDED_SINCE])
def test_what_has_landed_is_put_down_beside_main_when_its_ref_became_a_name_of_main(
    worktrees: Worktrees, ref: str
) -> None:
    project, main = worktrees.project, main_of(worktrees.project)
    new = git_out(project.root, "commit-tree", "-p", main, "-m", "Next", f"{main}^{{tree}}")
    symbolic("refs/heads/main", ref)(project)
    expected = main if ref == identity.LANDED else None
    landing.put_landed(project, new, expected, main)
    landing.drop_landed(project, new)
    assert main_of(project) == main


def test_a_fetch_does_not_write_through_the_ref_that_takes_it(worktrees: Worktrees, tmp_path: Path) -> None:
    project, main = worktrees.project, main_of(worktrees.project)
    remote = make_repository(tmp_path / "remote")
    commit_files(remote, {"theirs": "x\n"}, "Theirs")
    git_out(project.root, "remote", "add", "origin", str(remote))
    symbolic("refs/heads/main", identity.UPSTREAM_MAIN)(project)
    worktrees.upstream.newest("main", "origin")
    assert main_of(project) == main
    assert git_out(project.root, "rev-parse", identity.UPSTREAM_MAIN) == main_of(find(remote))


def test_nobody_builds_on_what_a_session_says_has_landed_or_was_fetched(worktrees: Worktrees, tmp_path: Path) -> None:
    project, main = worktrees.project, main_of(worktrees.project)
    git_out(tmp_path, "clone", "-q", str(project.root), "remote")
    commit_files(tmp_path / "remote", {"theirs": "x\n"}, "Theirs")
    git_out(project.root, "remote", "add", "origin", str(tmp_path / "remote"))
    theirs = worktrees.upstream.newest("main", "origin")
    assert theirs == main_of(find(tmp_path / "remote")) != main
    evil = git_out(project.root, "commit-tree", "-p", theirs, "-m", "Evil", f"{main}^{{tree}}")
    for ref in (identity.LANDED, identity.UPSTREAM_MAIN):
        git_out(project.root, "update-ref", ref, evil)
    assert worktrees.upstream.newest("main", "origin", lambda commit: commit != evil) == theirs
    assert worktrees.upstream.newest("main", "", lambda commit: commit != evil) == main
    assert worktrees.upstream.newest("main", "", lambda commit: commit == evil) == evil


def test_an_export_is_not_written_through_its_ref(worktrees: Worktrees) -> None:
    project, main = worktrees.project, main_of(worktrees.project)
    new = git_out(project.root, "commit-tree", "-m", "Log", f"{main}^{{tree}}")
    symbolic("refs/heads/main", f"{identity.LOG_REFS}log")(project)
    log_refs._move(project, f"{identity.LOG_REFS}log", new, main)
    assert main_of(project) == main


def test_a_reflog_that_became_a_link_to_a_file_of_the_user_is_not_written(worktrees: Worktrees) -> None:
    project = worktrees.project
    worktrees.prepare("ann", BRANCH, "main")
    log = project.common / "logs" / NAME
    log.unlink()
    log.symlink_to(project.root / "README.md")
    before = (project.root / "README.md").read_bytes()
    commit = git_out(project.root, "commit-tree", "-m", "Other", "main^{tree}")
    assert refs.change(project, Order(NAME, commit), message="moved").returncode == 0
    assert (project.root / "README.md").read_bytes() == before
    assert not log.is_symlink()


# Main


def test_main_that_became_a_name_of_a_tasks_branch_is_put_back_and_the_rest_is_kept(worktrees: Worktrees) -> None:
    project, main = worktrees.project, main_of(worktrees.project)
    worktrees.prepare("ann", BRANCH, "main")
    symbolic(NAME, "refs/heads/main")(project)
    commit_files(worktrees.path("ann"), {"red": "x\n"}, "Red")
    red = main_of(project)
    assert red != main
    back = main_restore.look_after(project, "main", main)
    assert back is not None and back.commit == main
    assert (main_of(project), refs.twist(project, "refs/heads/main")) == (main, "")
    assert git_out(project.root, "rev-parse", back.kept) == red
    assert git_out(project.root, "status", "--porcelain") == ""
    assert main_restore.look_after(project, "main", main) is None, "once"


@pytest.mark.parametrize("how", ["moved on", "moved back", "twice"])
def test_main_that_a_session_moved_is_put_back(worktrees: Worktrees, how: str) -> None:
    project = worktrees.project
    commit_files(project.root, {"second": "x\n"}, "Second")
    main = main_of(project)
    other = git_out(project.root, "commit-tree", "-p", main, "-m", "Red", "main^{tree}")
    session = {"GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "ann@agents.local"}
    for commit in {"moved on": [other], "moved back": [f"{main}^"], "twice": [f"{main}^", other]}[how]:
        git_out(project.common, "update-ref", "refs/heads/main", commit, env=session)
    thrown = main_of(project)
    back = main_restore.look_after(project, "main", None)
    assert back is not None and (back.by, back.commit) == ("ann", main)
    assert (main_of(project), git_out(project.root, "rev-parse", back.kept)) == (main, thrown)
    assert git_out(project.root, "status", "--porcelain") == ""


def test_what_a_person_does_to_main_stays(worktrees: Worktrees) -> None:
    project = worktrees.project
    worktrees.prepare("ann", BRANCH, "main")
    env = {f"GIT_{who}_EMAIL": "ann@agents.local" for who in ("AUTHOR", "COMMITTER")}
    (worktrees.path("ann") / "new").write_text("work\n")
    git_out(worktrees.path("ann"), "add", "new")
    git_out(worktrees.path("ann"), "commit", "--quiet", "-m", "Work", env=env)
    known = main_of(project)
    for words in (
        ("commit", "--quiet", "--allow-empty", "-m", "Mine"),
        ("reset", "--quiet", "--hard", "HEAD~1"),
        ("merge", "--quiet", "--ff-only", BRANCH),
    ):
        git_out(project.root, *words)
        at = main_of(project)
        assert main_restore.look_after(project, "main", known) is None
        assert main_of(project) == at


def test_a_person_who_went_on_from_what_a_session_did_to_main_wins(worktrees: Worktrees) -> None:
    project = worktrees.project
    main = main_of(project)
    other = git_out(project.root, "commit-tree", "-p", main, "-m", "Red", "main^{tree}")
    git_out(project.common, "update-ref", "refs/heads/main", other, env={"GIT_COMMITTER_EMAIL": "ann@agents.local"})
    commit_files(project.root, {"mine": "x\n"}, "Mine")
    at = main_of(project)
    assert main_restore.look_after(project, "main", main) is None
    assert main_of(project) == at


def test_a_main_that_always_was_another_name_is_refused_and_left(worktrees: Worktrees) -> None:
    project = worktrees.project
    git_out(project.root, "branch", "-m", "main", "trunk")
    symbolic("refs/heads/trunk", "refs/heads/main")(project)
    with pytest.raises(Refused, match="main is a symbolic ref to refs/heads/trunk"):
        main_restore.look_after(project, "main", None)
    assert git_out(project.root, "symbolic-ref", "refs/heads/main") == "refs/heads/trunk"


@pytest.mark.parametrize("how", ["deleted", "a folder"])
def test_main_that_vanished_from_under_the_users_checkout_comes_back(worktrees: Worktrees, how: str) -> None:
    project, main = worktrees.project, main_of(worktrees.project)
    git_out(project.common, "update-ref", "-d", "refs/heads/main")
    if how == "a folder":
        git_out(project.common, "update-ref", "refs/heads/main/x", main)
    assert main_restore.bring_back(project, "main", main) is not None
    assert (main_of(project), git_out(project.root, "status", "--porcelain")) == (main, "")


def test_main_that_a_person_renamed_does_not_come_back(worktrees: Worktrees) -> None:
    project, main = worktrees.project, main_of(worktrees.project)
    git_out(project.root, "branch", "-m", "main", "trunk")
    assert main_restore.bring_back(project, "main", main) is None
    assert git_out(project.root, "for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/trunk"


# In the way


IN_THE_WAY = {
    "refs/covey": ("refs/covey",),
    "refs/covey/tasks and kept": ("refs/covey/tasks", "refs/covey/kept"),
    "two below it": ("refs/covey/tasks/T-1/x", "refs/covey/tasks/T-1/y/z"),
}


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("names", IN_THE_WAY.values(), ids=IN_THE_WAY.keys())
def test_a_ref_in_the_way_of_one_of_coveys_is_kept_under_another_name(
    tmp_path: Path, names: tuple[str, ...], is_packed: bool
) -> None:
    project = find(make_repository(tmp_path / "repo"))
    main = git_out(project.root, "rev-parse", "main")
    theirs = git_out(project.root, "commit-tree", "-m", "Theirs", "main^{tree}")
    for name in names:
        git_out(project.root, "update-ref", name, theirs)
    if is_packed:
        git_out(project.root, "pack-refs", "--all")
    assert refs.change(project, Order("refs/covey/tasks/T-1", main, "")).returncode == 0
    there = refs.values(project, "refs/covey")
    assert there.pop("refs/covey/tasks/T-1") == main
    assert [*there.values()] == [theirs] * len(names) and all(name.startswith(identity.KEPT_REFS) for name in there)


def test_what_is_in_the_way_goes_and_is_told_when_a_run_has_ended(tmp_path: Path) -> None:
    project = find(make_repository(tmp_path / "repo"))
    for name in ("refs/covey/tasks", "refs/covey/landed/x"):
        git_out(project.root, "update-ref", name, "main")
    assert [each.name for each in refs.untwist_all(project)] == ["refs/covey/tasks", "refs/covey/landed/x"]
    assert refs.untwist_all(project) == []


@pytest.mark.parametrize("what", ["refs/covey/tasks/T-1.lock", "refs/covey/tasks/T-1/q/junk"])
def test_locks_and_folders_that_are_nobodys_stop_no_ref_of_coveys(tmp_path: Path, what: str) -> None:
    project = find(make_repository(tmp_path / "repo"))
    there = project.common / what
    there.parent.mkdir(parents=True)
    there.touch()
    order = Order("refs/covey/tasks/T-1", git_out(project.root, "rev-parse", "main"))
    assert refs.change(project, order).returncode == 0


def test_a_branch_of_the_user_is_never_moved_aside_and_one_of_a_session_is(tmp_path: Path) -> None:
    project = find(make_repository(tmp_path / "repo"))
    main = git_out(project.root, "rev-parse", "main")
    git_out(project.root, "branch", "covey")
    assert refs.change(project, Order("refs/heads/covey/T-1", main)).returncode != 0
    assert git_out(project.root, "rev-parse", "covey") == main
    git_out(project.root, "branch", "-D", "covey")
    git_out(project.root, "branch", "covey", env={"GIT_COMMITTER_EMAIL": "eve@agents.local"})
    assert refs.change(project, Order("refs/heads/covey/T-1", main)).returncode == 0
    git_out(project.root, "branch", "feature/x")
    assert refs.change(project, Order("refs/heads/feature", main)).returncode != 0


def test_a_ref_is_put_back_in_one_step_so_that_nothing_is_between_two_values(
    worktrees: Worktrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = worktrees.project
    git_out(project.root, "pack-refs", "--all")
    commit_files(project.root, {"second": "x\n"}, "Second")
    main = main_of(project)

    def killed(path: Path, missing_ok: bool = False) -> None:
        raise AssertionError(f"main would be an older one now: {path} {missing_ok}")

    for twisted in (symbolic(NAME, "refs/heads/main"), symbolic("refs/heads/none", "refs/heads/main")):
        twisted(project)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", killed)
            made = refs.untwist(project, "refs/heads/main", main)
        assert made is not None and made.value == main
        assert (main_of(project), refs.twist(project, "refs/heads/main")) == (main, "")


def test_main_whose_file_was_written_by_hand_is_noticed_and_nothing_that_git_does_is(worktrees: Worktrees) -> None:
    project = worktrees.project
    first = main_of(project)
    (project.common / "refs/heads/main").write_text(
        git_out(project.root, "commit-tree", "-p", first, "-m", "Red", "main^{tree}") + "\n"
    )
    assert main_restore.look_after(project, "main", first) is None, "nobody knows whose it is"
    assert main_restore.moved_unnoted(project, "main") == main_of(project)
    git_out(project.root, "config", "core.logAllRefUpdates", "false")
    assert main_restore.moved_unnoted(project, "main") is None, "with reflogs off an old one says nothing"
    git_out(project.root, "config", "--unset", "core.logAllRefUpdates")
    for words in (
        ("commit", "--quiet", "--allow-empty", "-m", "Mine"),
        ("reset", "--quiet", "--hard", "HEAD~1"),
        ("pack-refs", "--all"),
        ("-c", "core.logAllRefUpdates=false", "commit", "--quiet", "--allow-empty", "-m", "Mine"),
        ("reflog", "expire", "--expire=now", "--all"),
        ("commit", "--quiet", "--amend", "--allow-empty", "-m", "Again"),
        ("branch", "-m", "main", "trunk"),
        ("branch", "-m", "trunk", "main"),
    ):
        git_out(project.root, *words)
        assert main_restore.moved_unnoted(project, "main") is None, words


# The door


def test_refs_change_through_their_door_alone() -> None:
    top = Path(covey.__file__).parent
    raw = re.compile(r'"(update-ref|branch|switch|tag)",|"(reset|checkout|merge|rebase)", "-|"symbolic-ref", "(?!-)')
    allowed = {"git/refs.py": 2, "git/landing/fast_forward.py": 1, "git/worktrees/worktrees.py": 4}
    allowed |= {"git/worktrees/worktree_files.py": 1}
    allowed |= {"git/guard/gate_view.py": 2}  # names of groups of settings, and no commands
    found = {
        str(path.relative_to(top)): len(raw.findall(path.read_text(encoding="utf-8")))
        for path in top.rglob("*.py")
        if path.relative_to(top).parts[0] in ("git", "loops", "hooks", "daemon.py", "app", "runners")
    }
    assert {name: number for name, number in found.items() if number} == allowed, (
        "the door is covey.git.refs; beside it only the landing's own transaction, and HEAD and files of a worktree"
    )
