"""What a person reviews: all of it, bounded, whatever names and bytes it has, and nothing on disk is touched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from covey.errors import NotFound
from covey.git import project as projects
from covey.git import review
from covey.git.project import Project
from tests.worlds.repositories import commit_files, git_out, make_repository, user_env

LINES = "".join(f"line {number}\n" for number in range(1, 41))


def repository(path: Path, files: dict[str, str] | None = None) -> Project:
    return projects.find(make_repository(path, {"a.txt": LINES, "old name.py": LINES} if files is None else files))


def branch(project: Project, name: str, files: dict[str, str], start: str = "main") -> str:
    """Commit files on a new branch, and return its tip."""
    git_out(project.root, "checkout", "-q", "-B", name, start)
    commit_files(project.root, files, f"Change {name}")
    tip = git_out(project.root, "rev-parse", "HEAD")
    git_out(project.root, "checkout", "-q", "main")
    return tip


def test_each_file_tells_what_became_of_it(tmp_path: Path) -> None:
    project = repository(tmp_path)
    git_out(project.root, "checkout", "-q", "-b", "work")
    (project.root / "a.txt").write_text(LINES.replace("line 7\n", "seven\n"))
    git_out(project.root, "mv", "old name.py", "new name.py")
    (project.root / "added").write_text("one\ntwo\n")
    (project.root / "blob").write_bytes(b"\0\1\2")
    (project.root / "tool").write_text("#!/bin/sh\n")
    (project.root / "tool").chmod(0o755)
    git_out(project.root, "add", "-A")
    git_out(project.root, "commit", "-qm", "Work")
    found = review.diff(project, "main", "work")
    by_path = {file.path: file for file in found.files}
    assert (found.plus, found.minus, found.more) == (4, 1, 0)
    assert by_path["a.txt"].patch is not None
    assert by_path["a.txt"].patch.startswith("@@ -4,7 +4,7 @@") and "\n-line 7\n+seven\n" in by_path["a.txt"].patch
    renamed = by_path["new name.py"]
    assert (renamed.status, renamed.old_path, renamed.patch) == ("renamed", "old name.py", "")
    assert (by_path["added"].status, by_path["added"].plus) == ("added", 2)
    assert (by_path["blob"].binary, by_path["blob"].patch, by_path["blob"].cut) == (True, None, False)
    assert (by_path["tool"].mode, by_path["tool"].old_mode) == ("100755", None)


def test_a_file_that_becomes_a_link_and_a_mode_that_changes_do_not_shift_the_patches_of_others(tmp_path: Path) -> None:
    project = repository(tmp_path, {"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n"})
    git_out(project.root, "checkout", "-q", "-b", "work")
    (project.root / "a").unlink()
    (project.root / "a").symlink_to("elsewhere")
    (project.root / "b").chmod(0o755)
    (project.root / "c").unlink()
    (project.root / "d").write_text("changed\n")
    git_out(project.root, "add", "-A")
    git_out(project.root, "commit", "-qm", "Work")
    by_path = {file.path: file for file in review.diff(project, "main", "work").files}
    assert (by_path["a"].status, by_path["a"].old_mode, by_path["a"].mode) == ("type", "100644", "120000")
    assert "+elsewhere" in (by_path["a"].patch or "")
    assert (by_path["b"].patch, by_path["b"].old_mode, by_path["b"].mode) == ("", "100644", "100755")
    assert (by_path["c"].status, by_path["c"].mode) == ("deleted", "100644")
    assert by_path["d"].patch == "@@ -1 +1 @@\n-d\n+changed\n"


@pytest.mark.parametrize(
    "name",
    [
        b"<script>alert(1)</script>.js",
        b"two\nlines diff --git a/x b/x",
        b'tab\tand "quotes" and \\',
        b"latin-\xe9\xff",
        "bidi-\u202etxt.exe".encode(),
        b":(glob)**",
        b"--output=x",
        b"\x1b]8;;http://x\x07name",
    ],
)
def test_a_hostile_name_is_shown_and_found_again(tmp_path: Path, name: bytes) -> None:
    project = repository(tmp_path, {"z": "z\n"})
    git_out(project.root, "checkout", "-q", "-b", "work")
    place = os.path.join(os.fsencode(project.root), name)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(b"one\n\xff\xfe\r\n")
    (project.root / "z").write_text("changed\n")
    git_out(project.root, "add", "-A")
    git_out(project.root, "commit", "-qm", "Work")
    found = review.diff(project, "main", "work")
    hostile = next(file for file in found.files if file.path != "z")
    assert hostile.patch is not None and hostile.patch.endswith("+one\n+\ufffd\ufffd\r\n")
    alone = review.diff(project, "main", "work", path=hostile.path)
    assert [file.patch for file in alone.files] == [hostile.patch]
    assert next(file.patch for file in found.files if file.path == "z") == "@@ -1 +1 @@\n-z\n+changed\n"


def test_a_line_of_a_megabyte_is_shown_in_part(tmp_path: Path) -> None:
    project = repository(tmp_path)
    branch(project, "work", {"long.js": "x" * 1_000_000 + "\nshort\n"})
    (file,) = review.diff(project, "main", "work").files
    assert file.patch is not None and len(file.patch) < 6000
    assert (file.shortened, file.cut) == (1, False)
    assert "bytes more\n+short\n" in file.patch


def test_a_large_file_is_told_in_parts_that_give_the_whole(tmp_path: Path) -> None:
    project = repository(tmp_path)
    text = "".join(f"a line with the number {number}\n" for number in range(20_000))
    branch(project, "work", {"large": text})
    (file,) = review.diff(project, "main", "work").files
    assert file.cut and file.next and file.patch is not None and len(file.patch) <= review.MAX_PATCH_BYTES
    whole: str = file.patch
    at: int | None = file.next
    while at is not None:
        (part,) = review.diff(project, "main", "work", path="large", since=at).files
        assert part.patch
        whole, at = whole + part.patch, part.next
    assert [line[1:] for line in whole.splitlines()[1:]] == text.splitlines()


def test_what_has_no_room_in_the_answer_is_asked_for_by_its_path(tmp_path: Path) -> None:
    project = repository(tmp_path)
    text = "".join(f"a line with the number {number}\n" for number in range(4000))
    branch(project, "work", {f"file-{number:02}": text for number in range(14)})
    found = review.diff(project, "main", "work")
    assert sum(len(file.patch or "") for file in found.files) <= review.MAX_PATCHES_BYTES
    left = found.files[-1]
    assert (left.patch, left.cut, left.next) == (None, True, 0)
    (alone,) = review.diff(project, "main", "work", path=left.path, since=0).files
    assert alone.patch
    with pytest.raises(NotFound, match="is not among the files"):
        review.diff(project, "main", "work", path="nothing")


def test_more_context_shows_the_whole_file(tmp_path: Path) -> None:
    project = repository(tmp_path)
    branch(project, "work", {"a.txt": LINES.replace("line 20\n", "twenty\n")})
    (file,) = review.diff(project, "main", "work", path="a.txt", context=1000).files
    assert file.patch is not None and file.patch.count("\n") == 42


def test_work_is_measured_from_where_it_left_main(tmp_path: Path) -> None:
    project = repository(tmp_path)
    branch(project, "covey/T-1", {"mine": "1\n"})
    commit_files(project.root, {"theirs": "2\n"}, "Meanwhile")
    work = review.find(project, "main", ["refs/heads/nothing", "refs/heads/covey/T-1"], "covey/T-1")
    assert work is not None and not work.dirty and work.checkout is None
    assert [file.path for file in review.diff(project, work.base, work.tip).files] == ["mine"]
    assert review.find(project, "main", ["refs/heads/nothing"], "x") is None


def test_unrelated_work_is_new_as_a_whole(tmp_path: Path) -> None:
    project = repository(tmp_path)
    git_out(project.root, "checkout", "-q", "--orphan", "alone")
    git_out(project.root, "commit", "-qm", "Alone")
    git_out(project.root, "checkout", "-q", "main")
    work = review.find(project, "main", ["alone"], "alone")
    assert work is not None
    assert {file.status for file in review.diff(project, work.base, work.tip).files} == {"added"}


def test_what_landed_is_all_that_came_after_the_commit_before_it(tmp_path: Path) -> None:
    project = repository(tmp_path)
    before = git_out(project.root, "rev-parse", "HEAD")
    for number in range(2):
        commit_files(project.root, {f"part-{number}": "x\n"}, "Part")
    work = review.landed(project, before, "main")
    assert work is not None and len(review.diff(project, work.base, work.tip).files) == 2
    alone = review.landed(project, None, "main")
    assert alone is not None and len(review.diff(project, alone.base, alone.tip).files) == 1
    assert review.landed(project, None, "c" * 40) is None


def test_work_that_is_not_committed_is_seen_and_nothing_is_touched(tmp_path: Path) -> None:
    project = repository(tmp_path / "main", {"a.txt": LINES, ".gitignore": "ignored\n"})
    place = tmp_path / "worktree"
    git_out(project.root, "worktree", "add", "-q", "-b", "covey/T-1", str(place))
    for name, text in {"a.txt": "changed\n", "new": "n\n", "ignored": "secret\n", "x.pyc": "cache\n"}.items():
        (place / name).write_text(text)
    git_out(place, "config", "filter.evil.clean", f"touch {tmp_path / 'ran'}; cat")
    (place / ".gitattributes").write_text("* filter=evil\n")
    index = (project.common / "worktrees" / "worktree" / "index").read_bytes()
    objects = sorted(path for path in (project.common / "objects").rglob("*") if path.is_file())
    work = review.find(project, "main", ["refs/heads/covey/T-1"], "covey/T-1")
    assert work is not None and work.dirty and work.checkout == place
    (tmp_path / "ran").unlink(missing_ok=True)
    with review.working(project, place) as (tree, env):
        found = review.diff(project, work.base, tree, env=env)
    assert {file.path: file.status for file in found.files} == {
        "a.txt": "changed",
        "new": "added",
        ".gitattributes": "added",
    }
    assert not (tmp_path / "ran").exists()
    assert (project.common / "worktrees" / "worktree" / "index").read_bytes() == index
    assert sorted(path for path in (project.common / "objects").rglob("*") if path.is_file()) == objects


def test_what_vanishes_while_it_is_looked_at_or_cannot_be_kept_takes_nothing_else_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = repository(tmp_path, {"a": "a\n", "b": "b\n", "folder/c": "c\n"})
    (project.root / "a").unlink()
    os.mkfifo(project.root / "a")
    (project.root / "b").write_text("bb\n")
    (project.root / "folder" / "c").unlink()
    (project.root / "folder").rmdir()
    for name in ("folder", "passing", "staying"):
        (project.root / name).write_text("new\n")

    def wanted(checkout: Path, name: bytes) -> bool:
        (project.root / "passing").unlink(missing_ok=True)
        return True

    monkeypatch.setattr(review, "_is_wanted", wanted)
    with review.working(project, project.root) as (tree, env):
        found = {file.path: file.status for file in review.diff(project, "main", tree, env=env).files}
    assert found == {"b": "changed", "folder": "added", "folder/c": "deleted", "staying": "added"}


def test_the_lines_of_files_are_found_at_commits(tmp_path: Path) -> None:
    project = repository(tmp_path, {"a": "one\ntwo\n", "folder/b": "x\n"})
    head = git_out(project.root, "rev-parse", "HEAD")
    found = review.lines(project, [(head, "a"), (head, "nothing"), (head, "folder"), (head, "two\nlines")])
    assert found == {
        (head, "a"): ["one", "two", ""],
        (head, "nothing"): None,
        (head, "folder"): None,
        (head, "two\nlines"): None,
    }


def test_several_tasks_are_shown_as_they_would_land_without_what_does_not_go_together(tmp_path: Path) -> None:
    project = repository(tmp_path)
    one = branch(project, "covey/T-1", {"a.txt": LINES.replace("line 2\n", "two\n"), "one": "1\n"})
    two = branch(project, "covey/T-2", {"a.txt": LINES.replace("line 2\n", "zwei\n"), "two": "2\n"})
    three = branch(project, "covey/T-3", {"a.txt": LINES.replace("line 39\n", "thirty-nine\n")})
    main = git_out(project.root, "rev-parse", "main")
    found = review.combined(project, main, [("T-1", one), ("T-2", two), ("T-3", three)])
    again = review.combined(project, main, [("T-1", one), ("T-2", two), ("T-3", three)])
    assert again == found
    assert [(part.task, part.conflicts) for part in found.parts] == [("T-1", ()), ("T-2", ("a.txt",)), ("T-3", ())]
    assert found.parts[1].message and found.parts[0].files == ("a.txt", "one")
    whole = review.diff(project, found.base, found.tip)
    assert [file.path for file in whole.files] == ["a.txt", "one"]
    assert "+two\n" in (whole.files[0].patch or "") and "+thirty-nine\n" in (whole.files[0].patch or "")


def test_a_preview_names_the_files_that_meet_and_those_in_conflict(tmp_path: Path) -> None:
    project = repository(tmp_path)
    one = branch(project, "covey/T-1", {"a.txt": LINES.replace("line 2\n", "two\n")})
    two = branch(project, "covey/T-2", {"a.txt": LINES.replace("line 2\n", "zwei\n")})
    far = branch(project, "covey/T-3", {"a.txt": LINES.replace("line 39\n", "thirty-nine\n")})
    other = branch(project, "covey/T-4", {"else": "1\n"})
    commit_files(project.root, {"a.txt": LINES.replace("line 3\n", "three\n")}, "Meanwhile")
    main = git_out(project.root, "rev-parse", "main")
    found = review.meetings(project, main, one, [two, far, other])
    assert found[main].conflicts == ("a.txt",)
    assert found[two].conflicts == ("a.txt",)
    assert (found[far].shared, found[far].close, found[far].conflicts) == (("a.txt",), (), ())
    assert not found[other].shared


def test_git_is_ended_when_it_prints_more_than_is_read(tmp_path: Path) -> None:
    from covey.git.run import first_of

    project = repository(tmp_path, {"large": "x" * 3_000_000})
    blob = git_out(project.root, "rev-parse", "HEAD:large")
    assert first_of("cat-file", "blob", blob, at=project.common, most=1000) == (b"x" * 1000, False)
    assert first_of("cat-file", "-t", blob, at=project.common, most=1000) == (b"blob\n", True)


def test_a_bare_repository_can_be_reviewed_too(tmp_path: Path) -> None:
    project = repository(tmp_path / "first")
    branch(project, "covey/T-1", {"mine": "1\n"})
    words = ["git", "clone", "-q", "--mirror", str(project.root), str(tmp_path / "bare.git")]
    subprocess.run(words, check=True, env=user_env())
    bare = projects.find(tmp_path / "bare.git")
    work = review.find(bare, "main", ["refs/heads/covey/T-1"], "covey/T-1")
    assert work is not None and work.checkout is None
    assert [file.path for file in review.diff(bare, work.base, work.tip).files] == ["mine"]
