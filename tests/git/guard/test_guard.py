"""The guard: a session changes its own branches, the user's hooks go on working, other repositories are free."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from covey.git.guard.guard import session_env, write_guard
from covey.git.project import Project, find
from covey.git.worktrees.worktrees import Worktrees, default_folder
from tests.worlds.repositories import commit_files, git_out, make_repository, user_env


@pytest.fixture(autouse=True)
def plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


OURS = ["config", "pre-commit", "pre-push", "reference-transaction"]


class Session:
    """A session at work in its worktree, guarded as a run is."""

    def __init__(self, repository: Path, name: str = "ada", branch: str = "covey/T-1") -> None:
        self.project: Project = find(repository)
        self.worktrees = Worktrees(self.project, default_folder(self.project, "../{repo}.worktrees"))
        self.worktrees.prepare(name, branch, "main")
        self.path = self.worktrees.path(name)
        self.guard = write_guard(self.project, self.project.state / "guard")
        own = {key: value for key, value in user_env().items() if not key.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))}
        self.env = {**own, **session_env(self.project, name, self.guard, self.path)}

    def git(self, *words: str, at: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words], cwd=at or self.path, env=self.env, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def may(self, *words: str) -> str:
        done = self.git(*words)
        assert done.returncode == 0, done.stderr
        assert "covey:" not in done.stderr
        return done.stdout.strip()

    def may_not(self, *words: str, because: str) -> None:
        before = git_out(self.project.root, "for-each-ref")
        done = self.git(*words)
        assert done.returncode != 0
        [said] = [line for line in done.stderr.splitlines() if line.startswith("covey: ")]
        assert because in said
        assert git_out(self.project.root, "for-each-ref") == before

    def commit(self, name: str, text: str) -> str:
        (self.path / name).write_text(text)
        self.may("add", name)
        self.may("commit", "--message", f"Change {name}")
        return self.may("rev-parse", "HEAD")


def write_hook(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_session_commits_under_its_own_name(tmp_path: Path) -> None:
    session = Session(make_repository(tmp_path / "repo"))
    session.commit("x", "1\n")
    said = session.may("log", "-1", "--format=%an %ae %cn %ce")
    assert said == "ada ada@agents.local ada ada@agents.local"


def test_what_all_worktrees_share_is_refused_in_one_sentence(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    git_out(repository, "tag", "v1")
    git_out(repository, "branch", "feature")
    settings = (repository / ".git" / "config").read_bytes()
    session = Session(repository)
    (session.path / "README.md").write_text("dirty\n")
    session.may_not("stash", because="commit on your own branch")
    assert (session.path / "README.md").read_text() == "dirty\n"
    for words in (["tag", "v2"], ["tag", "-d", "v1"], ["tag", "-f", "v1", "HEAD"], ["tag", "-a", "v3", "-m", "x"]):
        session.may_not(*words, because="cannot change the tag")
    for words in (["branch", "x"], ["branch", "-D", "feature"], ["branch", "-m", "feature", "other"]):
        session.may_not(*words, because="cannot change the branch")
    session.may_not("checkout", "-b", "mine", because="begin the name of a new one with covey/")
    session.may_not("update-ref", "refs/heads/main", "HEAD", because="cannot change the branch main")
    session.may_not("update-ref", "refs/covey/landed", "HEAD", because="refs/covey/landed")
    session.may_not("update-ref", "refs/covey/rescue/x/1", "HEAD", because="refs/covey/rescue/x/1")
    session.may_not("replace", "HEAD", "HEAD^{tree}", "-f", because="refs/replace/")
    assert (repository / ".git" / "config").read_bytes() == settings
    assert git_out(repository, "status", "--porcelain") == ""


def test_main_is_refused_also_where_nobody_has_it_checked_out(tmp_path: Path) -> None:
    session = Session(make_repository(tmp_path / "repo.git", bare=True))
    session.may("checkout", "main")
    (session.path / "x").write_text("1\n")
    session.may("add", "x")
    session.may_not("commit", "--message", "On main", because="cannot change the branch main")


def test_what_a_session_needs_of_git_works(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", {"a": "1\n"})
    session = Session(repository)
    first = session.commit("x", "1\n")
    session.commit("x", "2\n")
    session.may("commit", "--amend", "--message", "Better")
    session.may("reset", "--hard", first)
    session.may("branch", "covey/T-1-try")
    session.may("checkout", "-b", "covey/T-1-other", "main")
    session.commit("y", "1\n")
    session.may("checkout", "covey/T-1")
    session.may("merge", "--no-ff", "covey/T-1-other")
    session.may("cherry-pick", "--keep-redundant-commits", "covey/T-1-other")
    session.may("revert", "HEAD~1", "-m", "1")
    session.may("branch", "-D", "covey/T-1-try")
    commit_files(repository, {"b": "1\n"}, "Meanwhile")
    session.may("rebase", "main")
    session.may("rebase", "--interactive", "HEAD~1")
    (session.path / "a").write_text("dirty\n")
    session.may("rebase", "--autostash", "HEAD~1")
    session.may("bisect", "start", "HEAD", "main")
    session.may("bisect", "reset")
    session.may("update-ref", "refs/worktree/mine", "HEAD")
    session.may("gc", "--quiet")
    session.may("checkout", "--detach")


def test_a_fetch_brings_the_remote_and_no_tags(tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    git_out(tmp_path, "clone", "--quiet", str(other), "repo")
    commit_files(other, {"new": "1\n"}, "New")
    git_out(other, "tag", "v9")
    session = Session(tmp_path / "repo")
    settings = (tmp_path / "repo" / ".git" / "config").read_bytes()
    session.may("fetch")
    assert session.may("rev-parse", "origin/main") == git_out(other, "rev-parse", "main")
    assert session.may("tag") == ""
    session.may("checkout", "-b", "covey/T-1-more", "origin/main")
    session.may("pull", "origin", "main")
    assert session.git("fetch", "--tags").returncode != 0
    assert session.may("tag") == ""
    assert (tmp_path / "repo" / ".git" / "config").read_bytes() == settings


def test_a_push_goes_where_the_settings_let_it_and_never_into_its_own_repository(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    other = make_repository(tmp_path / "other.git", bare=True)
    allowed = [str(other), f"file://{other}", str(tmp_path / "other")]
    rules = "".join(f'"{place}" = ["x"]\n' for place in allowed)
    (repository / "covey.toml").write_text(f"[sessions.push]\n{rules}")
    write_hook(repository / ".git" / "hooks" / "pre-push", f"cat >> {tmp_path}/pushed")
    git_out(repository, "remote", "add", "self", str(repository))
    session = Session(repository)
    session.commit("x", "1\n")
    for place in (".", str(repository), f"file://{repository}/.git", "../../repo", "self"):
        for ref in ("refs/heads/more", "refs/tags/v1", "refs/heads/covey/T-2"):
            session.may_not("push", place, f"HEAD:{ref}", because="cannot push into its own repository")
    session.may_not("push", str(other), "HEAD:refs/heads/y", because="COVEY_TOKEN is missing")
    assert not (tmp_path / "pushed").exists()
    for place in allowed:
        done = session.git("push", place, "HEAD:refs/heads/x")
        assert done.returncode == 0, done.stderr
    pushed = (tmp_path / "pushed").read_text().splitlines()
    assert [line.split(" ")[2] for line in pushed] == ["refs/heads/x"]  # the other two found nothing to push
    assert git_out(other, "rev-parse", "x") == session.may("rev-parse", "HEAD")


def test_a_repository_that_a_session_makes_elsewhere_is_free(tmp_path: Path) -> None:
    session = Session(make_repository(tmp_path / "repo"))
    other = make_repository(session.path / "scratch")
    write_hook(other / ".git" / "hooks" / "pre-commit", "echo ran > ran")
    for words in (["tag", "v1"], ["branch", "x"], ["commit", "--allow-empty", "-m", "x"], ["config", "gc.auto", "5"]):
        assert session.git(*words, at=other).returncode == 0
    (other / "README.md").write_text("dirty\n")
    assert session.git("stash", at=other).returncode == 0
    assert (other / "ran").exists()
    assert session.git("config", "core.hooksPath", at=other).stdout == ""


def test_a_worktree_without_its_link_is_no_part_of_a_repository_around_it(tmp_path: Path) -> None:
    make_repository(tmp_path)
    session = Session(make_repository(tmp_path / "repo"))
    (session.path / ".git").unlink()
    assert session.git("status").returncode != 0


def test_nothing_waits_for_a_person(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    git_out(repository, "config", "commit.gpgSign", "true")
    git_out(repository, "config", "gpg.program", "false")
    git_out(repository, "config", "core.editor", "false")
    git_out(repository, "config", "core.pager", "false")
    session = Session(repository)
    session.commit("x", "1\n")
    session.may("commit", "--amend")
    session.may("log")


def test_paths_with_odd_characters_are_guarded_as_well(tmp_path: Path) -> None:
    session = Session(make_repository(tmp_path / "a [b]*? 'c\" \\d" / "repo"))
    session.may_not("tag", "v1", because="cannot change the tag")
    session.commit("x", "1\n")


# The user's own hooks


def test_the_users_hooks_run_for_sessions_with_their_arguments_and_input(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    hooks = repository / ".git" / "hooks"
    write_hook(hooks / "pre-commit", 'test ! -e forbidden || { echo "not this" >&2; exit 1; }')
    write_hook(hooks / "commit-msg", 'echo "Checked-by: hook" >> "$1"')
    write_hook(hooks / "post-rewrite", f'echo "$1" > {tmp_path}/rewritten; cat >> {tmp_path}/rewritten')
    (hooks / "post-commit").write_text("#!/bin/sh\nexit 1\n")
    session = Session(repository)
    first = session.commit("x", "1\n")
    assert "Checked-by: hook" in session.may("log", "-1", "--format=%B")
    session.may("commit", "--amend", "--message", "Again")
    assert (tmp_path / "rewritten").read_text().split() == ["amend", first, session.may("rev-parse", "HEAD")]
    (session.path / "forbidden").write_text("x\n")
    session.may("add", "forbidden")
    refused = session.git("commit", "--message", "No")
    assert refused.returncode != 0
    assert "not this" in refused.stderr


@pytest.mark.parametrize("named", ["relative", "absolute", "home"])
def test_a_hooks_path_of_the_user_goes_on_working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    repository = make_repository(tmp_path / "repo", {"hooks/commit-msg": "#!/bin/sh\necho Seen: yes >> $1\n"})
    (repository / "hooks" / "commit-msg").chmod(0o755)
    git_out(repository, "add", "hooks")
    git_out(repository, "commit", "--quiet", "--message", "Make it run")
    path = {"relative": "hooks", "absolute": str(repository / "hooks"), "home": "~/repo/hooks"}[named]
    git_out(repository, "config", "core.hooksPath", path)
    session = Session(repository)
    session.commit("x", "1\n")
    assert "Seen: yes" in session.may("log", "-1", "--format=%B")
    session.may_not("tag", "v1", because="cannot change the tag")


def test_hooks_that_each_checkout_makes_for_itself_run_once_they_are_there(tmp_path: Path) -> None:
    """As husky does: a folder that git ignores, whose stubs find the committed script by their own path."""
    script = "test ! -e broken"
    repository = make_repository(tmp_path / "repo", {".husky/pre-commit": script, ".gitignore": ".husky/_\n"})
    git_out(repository, "config", "core.hooksPath", ".husky/_")
    session = Session(repository)
    session.commit("x", "1\n")
    write_hook(session.path / ".husky/_/pre-commit", '. "$(dirname "$0")/h"')
    (session.path / ".husky/_/h").write_text('sh -e "$(dirname "$(dirname "$0")")/$(basename "$0")" "$@"\n')
    session.commit("x", "2\n")
    (session.path / "broken").write_text("")
    session.may("add", "broken")
    assert session.git("commit", "--message", "No").returncode != 0


def test_a_reference_transaction_hook_of_the_user_is_asked_after_ours(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    seen = tmp_path / "seen"
    write_hook(
        repository / ".git" / "hooks" / "reference-transaction",
        f'while read -r old new ref; do echo "$1 $ref" >> {seen}; [ "$ref" != refs/heads/covey/no ] || exit 1; done',
    )
    session = Session(repository)
    seen.unlink(missing_ok=True)
    session.commit("x", "1\n")
    said = seen.read_text().splitlines()
    assert "prepared refs/heads/covey/T-1" in said
    assert "committed refs/heads/covey/T-1" in said
    assert session.git("branch", "covey/no").returncode != 0
    seen.unlink()
    session.may_not("tag", "v1", because="cannot change the tag")
    assert not seen.exists() or "prepared" not in seen.read_text()


def test_the_guard_follows_the_users_hooks_and_writes_nothing_when_it_is_current(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo")
    project = find(repository)
    folder = project.state / "guard"
    write_guard(project, folder)
    assert sorted(path.name for path in folder.iterdir()) == OURS
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert write_guard(project, folder) == folder
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    write_hook(repository / ".git" / "hooks" / "post-commit", "exit 0")
    write_guard(project, folder)
    assert (folder / "post-commit").exists()
    (repository / ".git" / "hooks" / "post-commit").unlink()
    (folder / "reference-transaction").write_text("#!/bin/sh\nexit 0\n")
    write_guard(project, folder)
    assert sorted(path.name for path in folder.iterdir()) == OURS
    assert "refs/stash" in (folder / "reference-transaction").read_text()
