"""What a commit changes over main, and the last moment at which that can have been written."""

from __future__ import annotations

import os
import time
from pathlib import Path

from covey.git import written
from covey.git.project import find
from tests.git.repositories import commit_files, git_out, make_repository


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
    writes = {write.path: write for write in written.lands(find(root), [main], head, time.time() + 3600, root)}
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
    assert [write.path for write in written.lands(find(root), [main], head, 0.0, root)] == ["mine"]
