"""The guard asks about what a session commits: all of it, once, and nothing that somebody else wrote."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from covey.core.leases.write_policy import Write
from covey.errors import Invalid
from covey.git.guard import commit_paths
from covey.git.guard.guard import write_guard
from tests.git.guard.test_guard import Session, write_hook
from tests.worlds.proving import credential, proved
from tests.worlds.repositories import commit_files, git_out, make_repository

TOKEN = "a-token"


@dataclass
class Door:
    """Stands where the daemon would: hears what is asked, and refuses or warns of some paths."""

    port: int = 0
    asked: list[list[Write]] = field(default_factory=list)
    denied: set[str] = field(default_factory=set)
    warned: set[str] = field(default_factory=set)

    def answer(self, body: bytes) -> bytes:
        writes = commit_paths.read(body, time.time())
        self.asked.append(writes)
        paths = {write.path for write in writes}
        deny, tell = sorted(paths & self.denied), sorted(paths & self.warned)
        said = {"deny": f"{deny[0]} is bob's." if deny else None, "tell": f"{tell[0]} is bob's too." if tell else None}
        return json.dumps(said, separators=(",", ":")).encode()

    def paths(self) -> list[list[str]]:
        """Return the paths of every question since this was last called."""
        asked, self.asked = self.asked, []
        return [sorted(write.path for write in writes) for writes in asked]

    def env(self) -> dict[str, str]:
        return {"COVEY_URL": f"http://127.0.0.1:{self.port}", "COVEY_TOKEN": TOKEN, "COVEY_TASK": "T-1"} | {
            "COVEY_PROOF": credential()
        }


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.wfile.write(proved(self.requestline.encode(), f"127.0.0.1:{made.port}"))

        def do_POST(self) -> None:
            assert self.path == "/hooks/guard"
            assert self.headers["Authorization"] == f"Bearer {TOKEN}"
            body = made.answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def begin(tmp_path: Path, door: Door, files: dict[str, str] | None = None) -> Session:
    """Return a session in a new repository, whose guard asks at the door."""
    session = Session(make_repository(tmp_path / "repo", files or {"a": "1\n", "b": "1\n", "deep/c": "1\n"}))
    session.env |= door.env()
    return session


def stage(session: Session, *paths: str, text: str = "mine\n") -> None:
    for path in paths:
        (session.path / path).parent.mkdir(parents=True, exist_ok=True)
        (session.path / path).write_text(text)
    session.may("add", "--", *paths)


def refused(session: Session, *words: str) -> str:
    """Run git, which must be refused without a trace, and return what it says."""
    before = git_out(session.project.root, "for-each-ref")
    done = session.git(*words)
    assert done.returncode != 0, done.stdout
    assert git_out(session.project.root, "for-each-ref") == before
    return done.stderr


# What is asked


def test_a_commit_is_asked_about_once_with_what_is_staged(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    stage(session, "a", "new/file")
    (session.path / "b").write_text("not staged\n")
    session.may("rm", "-q", "deep/c")
    before = time.time()
    session.may("commit", "-qm", "x")
    [asked] = door.asked
    assert {write.path: write.new for write in asked} == {"a": False, "new/file": True, "deep/c": False}
    assert all(before - 60 < write.written <= before + 0.01 for write in asked)
    assert (session.worktrees.git_dir("ada") or Path()).joinpath("covey-guard").read_text() == ""


def test_a_file_is_told_with_the_time_at_which_it_was_written(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    stage(session, "a")
    written_at = (session.path / "a").lstat().st_ctime
    session.may("commit", "-qm", "x")
    assert [write.written for write in door.asked[0]] == [written_at]
    stage(session, "b")
    (session.path / "b").write_text("and more that is not staged\n")
    before = time.time()
    session.may("commit", "-qm", "y")
    assert door.asked[1][0].written >= before


def test_a_file_that_is_deleted_is_told_by_what_is_left_of_its_place(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door, {"a": "1\n", "one/x": "1\n", "one/y": "1\n", "two/x": "1\n", "three/x": "1\n"})
    session.may("rm", "-q", "one/x", "two/x")
    (session.path / "three" / "x").unlink()
    (session.path / "three").rmdir()
    (session.path / "three").symlink_to("one")
    session.may("add", ".")
    session.may("rm", "-q", "--cached", "a")
    before = time.time()
    session.may("commit", "-qm", "x")
    told = {write.path: write.written for write in door.asked[0]}
    assert told.pop("a") >= before  # its file lies there untouched: that says nothing
    link = (session.path / "three").lstat().st_ctime
    root = session.path.lstat().st_mtime
    one = (session.path / "one").lstat().st_mtime
    assert told == {"one/x": one, "two/x": root, "three": link, "three/x": link}


@pytest.mark.parametrize("words", [["commit", "-qam", "x"], ["commit", "-qm", "x", "a"], ["commit", "-qnam", "x"]])
def test_every_way_to_commit_tells_the_same(tmp_path: Path, door: Door, words: list[str]) -> None:
    session = begin(tmp_path, door)
    (session.path / "a").write_text("mine\n")
    written_at = (session.path / "a").lstat().st_ctime
    session.may(*words)
    [[asked]] = door.asked
    assert (asked.path, asked.written) == ("a", written_at)


def test_odd_paths_are_asked_about_as_they_are(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    odd = ["with space", "with\nline", "quote'\"", "ümlaut", "-dash", "*star"]
    stage(session, *odd)
    session.may("commit", "-qm", "x")
    assert door.paths() == [sorted(odd)]
    (session.path / os.fsdecode(b"latin-\xfc")).write_text("x\n")
    session.may("add", ".")
    session.may("commit", "-qm", "x")
    assert door.paths() == [["latin-\ufffd"]]


def test_a_branch_without_a_commit_is_asked_about_whole(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    session.may("checkout", "-q", "--orphan", "covey/T-1-fresh")
    session.may("commit", "-qm", "All anew")
    assert door.paths() == [["a", "b", "deep/c"]]


@pytest.mark.parametrize("new", ["A", "M"])
def test_a_path_is_new_if_main_does_not_have_it(tmp_path: Path, door: Door, new: str) -> None:
    session = begin(tmp_path, door)
    line = f":100644 100644 {'1' * 40} {'2' * 40} {new}"
    fields = [str(session.path), "/written", line, "docs/x", line.replace(" A", " M"), "a", "/elsewhere", "/end", ""]
    known = commit_paths.known_on(session.project, "main", ["new:docs/*"])
    assert known is not None
    told = {write.path: write.new for write in commit_paths.read("\0".join(fields).encode(), 1.0, known)}
    assert told == {"docs/x": True, "a": False}
    assert commit_paths.known_on(session.project, "main", ["docs/*"]) is None


@pytest.mark.parametrize("cut", ["", "/x", "/x\0/written\0", "/x\0/written\0:1 2 3\0/elsewhere\0/end\0"])
def test_what_is_cut_off_is_no_answer(cut: str) -> None:
    with pytest.raises(Invalid, match="cut off"):
        commit_paths.read(cut.encode(), 1.0)


# What follows


def test_a_refusal_keeps_the_commit_away_and_a_warning_does_not(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    door.denied, door.warned = {"a"}, {"b"}
    stage(session, "a", "b")
    assert "covey: a is bob's." in refused(session, "commit", "-qm", "x")
    session.may("restore", "--staged", "a")
    done = session.git("commit", "-qm", "x")
    assert done.returncode == 0
    assert "covey: b is bob's too." in done.stderr
    assert session.may("show", "--format=", "--name-only", "HEAD") == "b"


def test_who_is_no_session_is_not_asked(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    del session.env["COVEY_TOKEN"]
    door.denied = {"a"}
    stage(session, "a")
    session.may("commit", "-qm", "x")
    session.may("commit", "-qnm", "y", "--allow-empty")
    assert door.asked == []


def test_nothing_is_committed_while_nobody_can_say(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    session.env["COVEY_URL"] = "http://127.0.0.1:9"
    stage(session, "a")
    for words in (["commit", "-qm", "x"], ["commit", "-qnm", "x"]):
        said = refused(session, *words)
        assert "covey up" in said
        assert "a person commits them outside of this session" in said
        assert "Traceback" not in said
    assert (session.path / "a").read_text() == "mine\n"
    assert session.may("diff", "--cached", "--name-only") == "a"


# The branch itself


def test_a_commit_without_hooks_is_asked_about_when_the_branch_moves(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    door.denied = {"a"}
    stage(session, "a")
    assert "a is bob's" in refused(session, "commit", "--no-verify", "-qm", "x")
    tree = session.may("write-tree")
    commit = session.may("commit-tree", tree, "-p", "HEAD", "-m", "x")
    for words in (["update-ref", "refs/heads/covey/T-1", commit], ["branch", "covey/T-1-other", commit]):
        assert "a is bob's" in refused(session, *words)
    assert "a is bob's" in refused(session, "reset", "-q", "--soft", commit)
    door.denied = set()
    session.may("update-ref", "refs/heads/covey/T-1", commit)
    assert session.may("rev-parse", "HEAD") == commit


def test_a_forged_index_is_told_as_written_now(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    blob = git_out(session.path, "hash-object", "-w", "--stdin", stdin="forged\n")
    for words in (["commit", "-qm", "x"], ["commit", "-qnm", "x"]):
        before = time.time()
        session.may("update-index", "--cacheinfo", f"100644,{blob},a")
        session.may(*words)
        [[asked]] = door.asked
        assert asked.path == "a"
        assert asked.written >= before
        door.asked.clear()
        session.may("reset", "-q", "--hard", "main")
        door.asked.clear()


def test_an_amended_commit_is_asked_about_by_what_it_changes(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    stage(session, "b")
    session.may("commit", "-qm", "x")
    stage(session, "a")
    door.paths()
    session.may("commit", "--amend", "-qm", "y")
    assert door.paths() == [["a"]]
    session.may("commit", "--amend", "--no-verify", "-qm", "z")
    assert door.paths() == [[]]
    stage(session, "deep/c")
    session.may("commit", "--amend", "--no-verify", "-qm", "z")
    assert door.paths() == [["deep/c"]]


def test_what_main_brings_is_not_the_sessions(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    stage(session, "b")
    session.may("commit", "-qm", "x")
    commit_files(session.project.root, {"a": "by bob\n", "more": "by bob\n"}, "Meanwhile")
    door.paths()
    session.may("merge", "-q", "main")
    assert door.paths() == [[]]
    session.may("reset", "-q", "--hard", "HEAD~1")
    door.paths()
    session.may("rebase", "-q", "main")
    assert door.paths() == [[]]
    session.may("branch", "covey/T-1-aside")
    session.may("branch", "covey/T-1-fresh", "main")
    assert {path for asked in door.paths() for path in asked} == set()


def test_what_a_merge_settles_or_undoes_is_the_sessions(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    stage(session, "b", text="mine\n")
    session.may("commit", "-qm", "x")
    commit_files(session.project.root, {"a": "by bob\n", "b": "by bob\n"}, "Meanwhile")
    door.paths()
    assert session.git("merge", "-q", "main").returncode != 0
    stage(session, "b", text="both\n")
    session.may("commit", "-qm", "Settled")
    assert door.paths() == [["b"]]
    session.may("reset", "-q", "--hard", "HEAD~1")
    door.paths()
    door.denied = {"a"}
    assert "a is bob's" in refused(session, "merge", "-q", "-s", "ours", "main")


def test_every_path_of_a_rebased_or_picked_commit_is_asked_about(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    stage(session, "a")
    session.may("commit", "-qm", "x")
    picked = session.may("rev-parse", "HEAD")
    session.may("reset", "-q", "--hard", "main")
    door.paths()
    session.may("cherry-pick", picked)
    assert door.paths() == [["a"]]
    session.may("revert", "--no-edit", "HEAD")
    assert door.paths() == [[]]  # nothing of it would land
    session.may("reset", "-q", "--hard", picked)
    assert door.paths() == [["a"]]


def test_where_no_files_are_all_is_told_as_written_now(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    stage(session, "a")
    commit = session.may("commit-tree", session.may("write-tree"), "-p", "HEAD", "-m", "x")
    before = time.time()
    done = session.git("update-ref", "refs/heads/covey/T-1", commit, at=session.project.common)
    assert done.returncode == 0, done.stderr
    [[asked]] = door.asked
    assert asked.written >= before


# The user's own hooks

HUSKY = 'sh -e "$(dirname "$(dirname "$0")")/$(basename "$0")" "$@"\n'
FRAMEWORK = """# File generated by pre-commit: https://pre-commit.com
INSTALL_PYTHON={folder}/python
ARGS=(hook-impl --config=.pre-commit-config.yaml --hook-type=pre-commit)
HERE="$(cd "$(dirname "$0")" && pwd)"
ARGS+=(--hook-dir "$HERE" -- "$@")
if [ -x "$INSTALL_PYTHON" ]; then
    exec "$INSTALL_PYTHON" -mpre_commit "${{ARGS[@]}}"
else
    echo '`pre-commit` not found.' 1>&2
    exit 1
fi"""
CHECK = """test ! -e forbidden || { echo "not this" >&2; exit 3; }
git diff --cached --name-only | while read -r path; do case $path in *.txt) echo made >"$path.log"
  git add "$path.log" ;; esac; done"""


def _settle(kind: str, tmp_path: Path, repository: Path) -> None:
    """Give a repository hooks of its user's that check and add files, as this kind does."""
    hooks = repository / ".git" / "hooks"
    match kind:
        case "plain":
            write_hook(hooks / "pre-commit", CHECK)
        case "husky":
            git_out(repository, "config", "core.hooksPath", ".husky/_")
            commit_files(repository, {".husky/pre-commit": CHECK, ".husky/_/.gitignore": "*"}, "Husky")
        case "absolute":
            write_hook(tmp_path / "shared hooks" / "pre-commit", CHECK)
            git_out(repository, "config", "core.hooksPath", str(tmp_path / "shared hooks"))
        case "pre-commit":
            hooks.mkdir(exist_ok=True)
            (hooks / "pre-commit").write_text(f"#!/usr/bin/env bash\n{FRAMEWORK.format(folder=tmp_path)}\n")
            (hooks / "pre-commit").chmod(0o755)
            write_hook(tmp_path / "python", f'test "$2" = hook-impl || exit 9\n{CHECK}')


@pytest.mark.parametrize("kind", ["plain", "husky", "absolute", "pre-commit"])
def test_hooks_of_the_user_come_first_and_what_they_add_is_asked_about(tmp_path: Path, door: Door, kind: str) -> None:
    repository = make_repository(tmp_path / "repo", {"a": "1\n"})
    _settle(kind, tmp_path, repository)
    for name, branch in (("ada", "covey/T-1"), ("eve", "covey/T-1-more")):
        session = Session(repository, name, branch)
        write_guard(session.project, session.guard)
        session.env |= door.env()
        if kind == "husky":
            write_hook(session.path / ".husky/_/pre-commit", '. "$(dirname "$0")/h"')
            (session.path / ".husky/_/h").write_text(HUSKY)
        stage(session, "x.txt")
        session.may("commit", "-qm", "x")
        assert door.paths() == [["x.txt", "x.txt.log"]]
        door.denied = {"y.txt.log"}
        stage(session, "y.txt")
        assert "y.txt.log is bob's" in refused(session, "commit", "-qm", "y")
        door.denied = set()
        door.paths()
        (session.path / "forbidden").write_text("x\n")
        assert "not this" in refused(session, "commit", "-qm", "y")
        assert door.paths() == []


def test_the_exit_code_of_a_hook_of_the_user_is_kept(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    write_hook(session.project.common / "hooks" / "pre-commit", "exit 42")
    write_guard(session.project, session.guard)
    assert session.git("hook", "run", "pre-commit").returncode == 42


def test_main_may_have_another_name(tmp_path: Path, door: Door) -> None:
    session = begin(tmp_path, door)
    git_out(session.project.root, "branch", "-m", "main", "trunk/of'all")
    write_guard(session.project, session.guard, "trunk/of'all")
    stage(session, "b")
    session.may("commit", "-qm", "x")
    commit_files(session.project.root, {"a": "by bob\n"}, "Meanwhile")
    door.paths()
    session.may("merge", "-q", "trunk/of'all")
    session.may("branch", "covey/T-1-fresh", "trunk/of'all")
    assert door.paths() == [[], []]
