"""Settings by which git runs programs or goes elsewhere: none of git's own list is missed, and each change is seen."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from covey.git import config_watch
from covey.git.project import Project, find
from tests.worlds.repositories import git_out, make_repository

NAMES_A_PROGRAM = re.compile(
    r"(cmd|command|program|helper|driver|external|textconv|clean|smudge|process|editor|pager|difffilter|tunnel|askpass"
    r"|httpd|hook|hookspath|pack|vcs|update|path|proxy|url|uri|insteadof|templatedir|fsmonitor|worktree|server)$",
    re.IGNORECASE,
)
"""How the names of settings end that name a program, a file of settings or a place."""
HARMLESS = {
    "color.branch.worktree", "color.pager", "column.clean", "core.quotePath", "credential.useHttpPath",
    "diff.guitool", "fsck.gitmodulesPath", "fsck.gitmodulesUpdate", "fsck.gitmodulesUrl", "gitcvs.dbDriver",
    "gitweb.url", "help.htmlPath", "notes.rewrite.<command>", "receive.fsck.gitmodulesPath", "submodule.<name>.url",
    "receive.fsck.gitmodulesUpdate", "receive.fsck.gitmodulesUrl", "rerere.autoUpdate", "sendemail.smtpsslcertpath",
    "advice.pushRefNeedsUpdate", "advice.ignoredHook", "advice.updateSparsePath", "advice.waitingForEditor",
    "transfer.credentialsInUrl", "http.sslCAPath", "fetch.fsck.gitmodulesPath", "fetch.fsck.gitmodulesUpdate",
    "fetch.fsck.gitmodulesUrl", "color.status.updated", "receive.fsck.fullPathname", "remote.<name>.skipDefaultUpdate",
    "fetch.fsck.fullPathname", "fsck.fullPathname", "diff.<driver>.cachetextconv", "receive.shallowUpdate",
}  # fmt: skip
"""Those of them that colour, count or check, and name neither."""
NOT_LISTED = ("filter.x.process", "imap.tunnel", "trailer.x.cmd", "sendemail.x.sendmailcmd", "hook.x.command",
              "https.proxy", "lfs.customtransfer.x.path", "fetch.bundleuri", "diff.x.command")  # fmt: skip
PLAIN = ("user.name", "core.autocrlf", "branch.main.remote", "merge.x.name", "diff.x.wordregex", "lfs.locksverify")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return find(make_repository(tmp_path / "repo"))


def _listed() -> list[str]:
    asked = subprocess.run(["git", "help", "-c"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in asked if re.fullmatch(r"[A-Za-z]+(\.\S+)+", line)]


def test_every_setting_that_git_lists_and_that_names_a_program_or_a_place_is_watched(project: Project) -> None:
    listed = [key for key in _listed() if NAMES_A_PROGRAM.search(key) and key not in HARMLESS]
    assert len(listed) > 40, "git lists its settings"
    wanted = {re.sub(r"<[^>]*>|\*", "x", key).lower() for key in listed} | {*NOT_LISTED}
    before = config_watch.read(project)
    for key in sorted({*wanted, *PLAIN} - {"core.worktree", "include.path", "includeif.x.path"}):
        git_out(project.root, "config", "--file", str(project.common / "config"), key, "/nowhere")
    seen = {*config_watch.changed(before, config_watch.read(project))}
    matched = {key for key in wanted if re.search(config_watch.PROGRAMS, key)}
    assert wanted - matched == set() and wanted - seen <= {"core.worktree", "include.path", "includeif.x.path"}
    assert seen.isdisjoint(PLAIN)


def test_each_of_several_values_counts_and_so_does_a_file(project: Project) -> None:
    add = ("config", "--add", "credential.helper")
    git_out(project.root, *add, "first")
    git_out(project.root, *add, "last")
    before = config_watch.read(project)
    git_out(project.root, "config", "--replace-all", "credential.helper", "another", "first")
    after = config_watch.read(project)
    assert config_watch.changed(before, after) == ["credential.helper"]
    (project.common / "hooks" / "post-checkout").write_text("#!/bin/sh\n")
    (project.common / "info" / "attributes").write_text("* filter=x\n")
    found = config_watch.changed(after, config_watch.read(project))
    assert found == ["the file info/attributes", "the hook post-checkout"]
    git_out(project.root, "config", "user.name", "Ann")
    assert config_watch.changed(config_watch.read(project), config_watch.read(project)) == []


def test_an_empty_folder_in_the_place_of_such_a_file_is_nothing_and_all_else_there_is_told(project: Project) -> None:
    """Codex's sandbox leaves one called .git."""
    before, place = config_watch.read(project), project.common / ".git"
    place.mkdir()
    assert config_watch.changed(before, config_watch.read(project)) == []
    (place / "config").write_text("[core]\n")
    filled = config_watch.read(project)
    assert config_watch.changed(before, filled) == ["the file .git"]
    (place / "config").unlink()
    assert config_watch.changed(filled, config_watch.read(project)) == ["the file .git"]
    place.rmdir()
    assert config_watch.changed(before, config_watch.read(project)) == []
    place.symlink_to(project.common / "hooks")
    assert config_watch.changed(before, config_watch.read(project)) == ["the file .git"]
    place.unlink()
    place.write_text(f"gitdir: {project.common}\n")
    assert config_watch.changed(before, config_watch.read(project)) == ["the file .git"]
