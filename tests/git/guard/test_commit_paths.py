"""What a commit changes over main, and the last moment at which that can have been written."""

from __future__ import annotations

import os
import time
from pathlib import Path

from covey.git.guard import commit_paths
from covey.git.project import find
from tests.worlds.repositories import commit_files, git_out, make_repository
from tests.worlds.serving import wait_until


def test_a_commit_is_known_by_its_paths_and_never_by_the_date_that_it_claims(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"old": "1", "gone": "1", "kept": "1"})
    main = git_out(root, "rev-parse", "HEAD")
    git_out(root, "checkout", "-q", "-b", "covey/T-1")
    began = time.time() - 1
    (root / "old").write_text("2")
    (root / "gone").unlink()
    (root / "new").write_text("1")
    git_out(root, "add", "-A")
    future = {"GIT_AUTHOR_DATE": "2099-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2099-01-01T00:00:00Z"}
    git_out(root, "commit", "-q", "-m", "work", env=future)
    head, made = git_out(root, "rev-parse", "HEAD"), time.time() + 1
    os.utime(root / "old")  # touched after it was committed
    writes = {write.path: write for write in commit_paths.lands(find(root), [main], head, time.time() + 3600, root)}
    assert {path: write.new for path, write in writes.items()} == {"old": False, "gone": False, "new": True}
    assert all(began <= write.written <= made for write in writes.values())


def test_what_main_brought_in_meanwhile_is_not_the_work_of_a_branch(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a": "1"})
    base = git_out(root, "rev-parse", "--abbrev-ref", "HEAD")
    git_out(root, "checkout", "-q", "-b", "covey/T-1")
    commit_files(root, {"mine": "1"}, "work")
    git_out(root, "checkout", "-q", base)
    commit_files(root, {"theirs": "1"}, "landed")
    git_out(root, "checkout", "-q", "covey/T-1")
    git_out(root, "merge", "-q", "--no-edit", base)
    head, main = git_out(root, "rev-parse", "HEAD"), git_out(root, "rev-parse", base)
    assert [write.path for write in commit_paths.lands(find(root), [main], head, 0.0, root)] == ["mine"]


def witnessed(root: Path, path: str, text: str | None) -> bool:
    """Say whether the disk tells when a path came to have some content."""
    blob = None
    if text is not None:
        (root.parent / "text").write_text(text)
        blob = git_out(root, "hash-object", "--no-filters", str(root.parent / "text"))
    return commit_paths.witnessed(root, path, blob and f"100644 {blob}", 0.0) is not None


def test_the_disk_tells_nothing_of_content_that_it_does_not_hold(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a": "1", "d/b": "1", "e/b": "2"})
    assert witnessed(root, "a", "1") and not witnessed(root, "a", "2") and not witnessed(root, "a", None)
    assert witnessed(root, "c", None) and witnessed(root, "a/c", None) and not witnessed(root, "c", "1")
    (root / "a").write_bytes(b"1\r\n")
    assert witnessed(root, "a", "1\n") and witnessed(root, "a", "1\r\n")
    (root / "a").chmod(0o755)
    assert not witnessed(root, "a", "1\n")
    git_out(root, "config", "filter.mine.clean", "echo mine")
    (root / ".git" / "info" / "attributes").write_text("d/b filter=mine\n")
    assert witnessed(root, "d/b", "1") and not witnessed(root, "d/b", "mine\n")
    (root / "d" / "b").unlink()
    (root / "d").rmdir()
    (root / "d").symlink_to("e")
    assert not witnessed(root, "d/b", "2")


def test_a_folder_that_was_moved_brings_its_files_when_it_comes(tmp_path: Path) -> None:
    (tmp_path / "made" / "deep").mkdir(parents=True)
    (tmp_path / "made" / "deep" / "file").write_text("1")
    (tmp_path / "other").mkdir()
    before = commit_paths.changed(tmp_path, "made/deep/file", 0.0)
    wait_until(lambda: _is_later(tmp_path / "tick", before), "a later time on this disk")
    (tmp_path / "made" / "more").write_text("an entry more")
    assert commit_paths.changed(tmp_path, "made/deep/file", 0.0) == before
    (tmp_path / "made").rename(tmp_path / "held")
    assert commit_paths.changed(tmp_path, "held/deep/file", 0.0) > before
    (tmp_path / "held" / "deep").rename(tmp_path / "other" / "deep")
    assert commit_paths.changed(tmp_path, "other/deep/file", 0.0) > before


def test_a_file_is_gone_since_its_folder_changed_whatever_date_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    began = (tmp_path / "folder").stat().st_ctime
    os.utime(tmp_path / "folder", (1.0, 1.0))
    assert commit_paths.changed(tmp_path, "folder/file", 0.0, gone=True) >= began


def test_what_main_has_by_now_is_no_write_and_nothing_is_older_for_being_packed(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a": "1", "b": "1"})
    base = git_out(root, "rev-parse", "--abbrev-ref", "HEAD")
    git_out(root, "checkout", "-q", "-b", "covey/T-1")
    dates = {"GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z"}
    (root / "a").write_text("2")
    (root / "b").write_text("2")
    git_out(root, "commit", "-q", "-a", "-m", "work", env=dates)
    head = git_out(root, "rev-parse", "HEAD")
    git_out(root, "checkout", "-q", base)
    commit_files(root, {"a": "2"}, "landed")
    git_out(root, "repack", "-a", "-d", "-q")
    now = time.time() + 3600
    mains = commit_paths.mains(find(root), base)
    assert [(each.path, each.written) for each in commit_paths.lands(find(root), mains, head, now, root)] == [
        ("b", now)
    ]
    said = commit_paths.lands(find(root), mains, head, now, None, dated=True)
    assert [(each.path, each.written < now - 3600) for each in said] == [("b", True)]


def _is_later(place: Path, time: float) -> bool:
    place.write_text("")
    later = place.stat().st_ctime > time
    place.unlink()
    return later
