"""Objects: one git answers many questions, with what is on the disk then; what is written is as git has it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
import zlib
from pathlib import Path

import pytest

from covey.core.fleet.live import Size
from covey.errors import ToolFailed
from covey.git import objects
from covey.git import project as projects
from covey.git.candidates.candidates import Change, is_ancestor, resolve
from covey.git.diffstat import sizes_of
from covey.git.objects import Writer
from covey.git.project import Project
from covey.git.tree_edits import Edits
from tests.worlds.repositories import commit_files, git_out, make_repository
from tests.worlds.serving import wait_until


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    objects.close()
    monkeypatch.setattr(objects, "IDLE_S", 600.0)  # on a busy machine, moments are long
    monkeypatch.setattr(objects, "MAX_AGE_S", 600.0)
    return projects.find(make_repository(tmp_path / "repo", {"a": "a\n", "deep/er/b": "b\n"}))


def _readers() -> set[int]:
    """Return the processes by which we read objects."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"--batch-command" in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


def test_a_ref_that_moved_is_seen_at_once_by_a_reader_that_stays(project: Project) -> None:
    first = resolve(project, "refs/heads/main")
    reader = _readers()
    assert len(reader) == 1
    commit_files(project.root, {"a": "2\n"}, "Second")
    second = git_out(project.root, "rev-parse", "main")
    assert resolve(project, "refs/heads/main") == second != first
    git_out(project.root, "pack-refs", "--all")
    git_out(project.root, "repack", "-qad")
    commit_files(project.root, {"a": "3\n"}, "Third")
    git_out(project.root, "pack-refs", "--all")
    assert resolve(project, "refs/heads/main") == git_out(project.root, "rev-parse", "main")
    git_out(project.root, "branch", "other")
    assert resolve(project, "other") == resolve(project, "main")
    git_out(project.root, "branch", "-D", "other")
    assert resolve(project, "other") is None
    assert _readers() == reader


def test_a_reader_that_was_killed_is_replaced(project: Project) -> None:
    main = resolve(project, "refs/heads/main")
    (reader,) = _readers()
    os.kill(reader, signal.SIGKILL)
    assert resolve(project, "refs/heads/main") == main
    assert _readers().isdisjoint({reader})


def test_a_reader_that_nobody_asks_goes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "IDLE_S", 0.05)
    resolve(project, "refs/heads/main")
    wait_until(lambda: not _readers(), "the end of the reader")


def test_what_is_not_there_or_cannot_be_asked_for_is_none(project: Project) -> None:
    names = ["main", "nothing", "main\nmain", "", "main:nothing", "main:deep/er/b", "x commit 5"]
    found = [None if each is None else each.kind for each in objects.infos(project, names)]
    assert found == ["commit", None, None, None, None, "blob", None]
    with pytest.raises(ToolFailed, match="nothing"):
        list(objects.contents(project, ["main", "nothing"]))


def test_a_broken_object_is_an_error_and_spoils_nothing_else(project: Project) -> None:
    blob = git_out(project.root, "rev-parse", "main:a")
    file = project.common / "objects" / blob[:2] / blob[2:]
    file.chmod(0o644)
    file.write_bytes(b"garbage")
    with pytest.raises(ToolFailed):
        list(objects.contents(project, [blob]))
    assert resolve(project, "main") == git_out(project.root, "rev-parse", "main")


def test_threads_get_their_own_answers(project: Project) -> None:
    names = [Writer(project, 40).write("blob", f"{number}\n".encode() * 5000) for number in range(40)]
    wrong: list[str] = []

    def ask(step: int) -> None:
        for name in [*names[step:], *names[:step]]:
            for info, content in objects.contents(project, [name] * 3):
                if info.name != name or content != f"{names.index(name)}\n".encode() * 5000:
                    wrong.append(name)

    threads = [threading.Thread(target=ask, args=(step,)) for step in range(0, 40, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(_readers()) <= objects.MAX_IDLE_READERS


def test_many_questions_at_once_do_not_stop_each_other(project: Project) -> None:
    name = Writer(project, 40).write("blob", b"x" * 100_000)
    assert sum(len(content) for _, content in objects.contents(project, [name] * 200)) == 200 * 100_000
    assert len(objects.infos(project, ["main"] * 50_000)) == 50_000


def test_a_commit_far_away_is_an_ancestor_too(project: Project) -> None:
    first = git_out(project.root, "rev-parse", "main")
    for number in range(20):
        commit_files(project.root, {"a": f"{number}\n"}, f"{number}")
    last = git_out(project.root, "rev-parse", "main")
    assert is_ancestor(project, first, last)
    assert not is_ancestor(project, last, first)


def test_a_line_that_git_does_not_take_for_a_parent_makes_no_ancestor(project: Project) -> None:
    first = git_out(project.root, "rev-parse", "main")
    commit_files(project.root, {"a": "2\n"}, "Second")
    second = git_out(project.root, "rev-parse", "main")
    head, _, said = git_out(project.root, "cat-file", "commit", first).partition("\n\n")
    text = f"{head}\nparent {second}\n\n{said}\n"
    false = git_out(project.root, "hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=text)
    assert not is_ancestor(project, second, false)


def test_a_name_of_a_broken_object_is_the_name_of_no_commit(project: Project) -> None:
    commit_files(project.root, {"a": "2\n"}, "Second")
    tip = git_out(project.root, "rev-parse", "main")
    git_out(project.root, "branch", "good", "main~1")
    file = project.common / "objects" / tip[:2] / tip[2:]
    file.chmod(0o644)
    whole = file.read_bytes()
    for content in (b"", b"garbage", whole[:30], zlib.compress(b"bogus 3\0abc"), zlib.compress(b"commit 5\0tree ")):
        file.write_bytes(content)
        assert resolve(project, "refs/heads/main") is None
        assert resolve(project, "refs/heads/good") is not None


def _edited(project: Project, *changes: Change) -> str:
    tree = git_out(project.root, "rev-parse", "main^{tree}")
    return Edits(project, tree, Writer(project, 40)).apply(changes)


def _by_git(project: Project, *changes: Change) -> str:
    """Return the tree that an index comes to by the same changes."""
    env = {"GIT_INDEX_FILE": str(project.common / "other-index")}
    lines = [
        b"0 %s\t%s\n" % (b"0" * 40, each.path) if each.new is None else b"%s %s\t%s\n" % (*each.new, each.path)
        for each in sorted(changes, key=lambda each: each.new is not None)
    ]
    git_out(project.root, "read-tree", "main", env=env)
    git_out(project.root, "update-index", "--index-info", env=env, stdin=b"".join(lines).decode())
    return git_out(project.root, "write-tree", env=env)


def test_edited_trees_are_those_of_git(project: Project) -> None:
    blob = git_out(project.root, "rev-parse", "main:a").encode()
    deep = git_out(project.root, "rev-parse", "main:deep/er/b").encode()
    other = Writer(project, 40).write("blob", b"other\n").encode()
    file, tool, link = (b"100644", other), (b"100755", blob), (b"120000", blob)
    cases = [
        [Change(b"a", (b"100644", blob), file)],
        [Change(b"new/folder/x", None, file), Change(b"new/folder/y", None, tool), Change(b"new.z", None, link)],
        [Change(b"deep/er/b", (b"100644", deep), None)],
        [Change(b"deep/er/b", (b"100644", deep), None), Change(b"deep", None, file)],
        [Change(b"a", (b"100644", blob), None), Change(b"a/b", None, file), Change(b"a-b", None, file)],
        [Change(b"deep/er.x", None, file), Change(b"deep/er0", None, file)],
    ]
    for changes in cases:
        assert _edited(project, *changes) == _by_git(project, *changes), changes
    assert git_out(project.root, "fsck", "--strict", "--no-dangling") == ""


def _file(project: Project, name: str) -> Path:
    return project.common / "objects" / name[:2] / name[2:]


def test_what_is_written_again_counts_as_new_to_gc(project: Project) -> None:
    month_ago = time.time() - 30 * 86400
    name = Writer(project, 40).write("blob", b"old\n")
    os.utime(_file(project, name), (month_ago, month_ago))
    assert Writer(project, 40).write("blob", b"old\n") == name
    git_out(project.root, "prune", "--expire=2.weeks.ago")
    assert _file(project, name).exists()


def test_what_cannot_be_made_to_count_as_new_is_written_again(project: Project) -> None:
    name = Writer(project, 40).write("blob", b"linked\n")
    _file(project, name).unlink()
    _file(project, name).symlink_to("nowhere")
    assert Writer(project, 40).write("blob", b"linked\n") == name
    assert git_out(project.root, "cat-file", "blob", name) == "linked"


def test_where_we_cannot_write_git_tries(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(project, 40)
    rename = os.rename

    def gone(old: Path, new: Path) -> None:
        """Rename after a gc has taken the folder away."""
        old.unlink()
        old.parent.rmdir()
        rename(old, new)

    monkeypatch.setattr(os, "rename", gone)
    name = writer.write("blob", b"while gc runs\n")
    assert git_out(project.root, "cat-file", "blob", name) == "while gc runs"


def test_where_not_even_git_can_write_it_says_why(project: Project) -> None:
    for folder in (f"{first:02x}" for first in range(256)):
        shutil.rmtree(project.common / "objects" / folder, ignore_errors=True)
        (project.common / "objects" / folder).write_text("in the way")
    with pytest.raises(ToolFailed, match="hash-object failed"):
        Writer(project, 40).write("blob", b"nowhere to go\n")


@pytest.mark.parametrize("where", ["one line", "included", "global"])
def test_however_it_is_said_that_a_group_shares_the_repository_it_is_heeded(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    config, other = project.common / "config", tmp_path / "other"
    other.write_text("[core] sharedRepository = group\n")
    if where == "one line":
        config.write_text(f"{config.read_text()}{other.read_text()}")
    elif where == "included":
        config.write_text(f"{config.read_text()}[include]\n\tpath = {other}\n")
    else:
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(other))
    _assert_shared(project)


def test_where_a_group_shares_the_repository_git_writes_the_objects(project: Project) -> None:
    git_out(project.root, "config", "core.sharedRepository", "group")
    _assert_shared(project)


def _assert_shared(project: Project) -> None:
    before = os.umask(0o077)
    try:
        name = Writer(project, 40).write("blob", b"for all of us\n")
    finally:
        os.umask(before)
    assert (project.common / "objects" / name[:2]).stat().st_mode & 0o070
    assert git_out(project.root, "cat-file", "blob", name) == "for all of us"


def test_that_a_group_shares_the_repository_is_seen_when_it_is_set_later(project: Project) -> None:
    Writer(project, 40).write("blob", b"alone\n")
    git_out(project.root, "config", "core.sharedRepository", "group")
    _assert_shared(project)


def test_a_branch_that_git_cannot_read_takes_no_other_size_away(project: Project) -> None:
    main = git_out(project.root, "rev-parse", "main")
    tips = []
    for number in range(5):
        git_out(project.root, "switch", "-q", "-c", f"work-{number}", main)
        commit_files(project.root, {f"new/{number}": f"{number}\n"}, "Work")
        tips.append(git_out(project.root, "rev-parse", "HEAD"))
    for gone in (f"{tips[1]}:new", f"{tips[3]}^{{tree}}", f"{tips[4]}^{{commit}}"):
        _file(project, git_out(project.root, "rev-parse", gone)).unlink()
    assert sizes_of(project, main, tips) == {tips[0]: Size(1, 0, 1), tips[2]: Size(1, 0, 1)}
