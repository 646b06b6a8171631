"""Landing beside what a session writes where covey and git keep their notes: no note of a session is obeyed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from covey.git.landing.landing import Landed, recover
from tests.git.landing.test_landing import Scene
from tests.worlds.repositories import git_out, make_repository

EVE = {"GIT_COMMITTER_NAME": "eve", "GIT_COMMITTER_EMAIL": "eve@agents.local"}


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def as_mark(scene: Scene, commit: str, **more: object) -> str:
    return json.dumps({"main": "main", "expected": scene.old, "commit": commit, "late": False, "began": 0} | more)


@pytest.mark.parametrize(
    "text",
    ["1", "null", "{}", '{"locks": []}', '{"intent": 1, "seal": 2}', "[" * 60_000, "\0"],
    ids=lambda text: text[:9],
)
def test_a_mark_of_garbage_stops_no_landing(tmp_path: Path, text: str) -> None:
    scene = Scene(tmp_path / "repo")
    (scene.project.common / "covey-landing").write_text(text)
    assert scene.land() == Landed(scene.new)


def _link(scene: Scene, mark: Path, mine: Path) -> None:
    mark.symlink_to(mine)


def _second_name(scene: Scene, mark: Path, mine: Path) -> None:
    mark.hardlink_to(mine)


def _pipe(scene: Scene, mark: Path, mine: Path) -> None:
    os.mkfifo(mark)


def _folder(scene: Scene, mark: Path, mine: Path) -> None:
    (mark / "x").mkdir(parents=True)


def _no_rights(scene: Scene, mark: Path, mine: Path) -> None:
    mark.touch(0)


def _folder_for_the_index(scene: Scene, mark: Path, mine: Path) -> None:
    (mark.with_name("covey-index") / "x").mkdir(parents=True)


@pytest.mark.parametrize("twist", [_link, _second_name, _pipe, _folder, _no_rights, _folder_for_the_index])
def test_what_is_no_mark_goes_and_what_it_leads_to_stays(
    tmp_path: Path, twist: Callable[[Scene, Path, Path], None]
) -> None:
    scene, mine = Scene(tmp_path / "repo"), tmp_path / "mine.txt"
    mine.write_text("Mine.\n")
    twist(scene, scene.project.common / "covey-landing", mine)
    assert scene.land() == Landed(scene.new)
    assert mine.read_text() == "Mine.\n"


def test_a_forged_mark_lands_nothing_moves_no_branch_and_deletes_no_file(tmp_path: Path) -> None:
    scene, mine = Scene(tmp_path / "repo"), tmp_path / "mine.lock"
    mine.touch()
    (scene.path / "note.txt").write_text("Not in git.\n")
    evil = scene.commit(scene.old, {"evil.txt": "evil\n", "note.txt": "Not in git.\n"})
    git_out(scene.path, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (scene.project.common / "covey-landing").write_text(as_mark(scene, evil, locks=[str(mine)]))
    (scene.project.common / "worktrees/side/covey-landing").write_text(as_mark(scene, evil, main="side", locks=[]))

    assert recover(scene.project) == []

    assert scene.main == scene.old == git_out(scene.path, "rev-parse", "side")
    assert mine.exists() and (scene.path / "note.txt").read_text() == "Not in git.\n"
    assert scene.land() == Landed(scene.new)


def draw_up(scene: Scene, place: Path, head: str = "ref: refs/heads/main") -> Path:
    entry = scene.project.common / "worktrees" / "evil"
    entry.mkdir(parents=True)
    for name, text in (("HEAD", head), ("commondir", "../.."), ("gitdir", f"{place}/.git")):
        (entry / name).write_text(text + "\n")
    git_out(scene.path, "read-tree", "main", env={"GIT_INDEX_FILE": str(entry / "index")})
    return entry


def _pipe_for(name: str) -> Callable[[Scene, Path], None]:
    def twist(scene: Scene, entry: Path) -> None:
        (entry / name).unlink(missing_ok=True)
        os.mkfifo(entry / name)

    return twist


def _folder_for(name: str) -> Callable[[Scene, Path], None]:
    def twist(scene: Scene, entry: Path) -> None:
        (entry / name).unlink(missing_ok=True)
        (entry / name).mkdir(parents=True)

    return twist


def _text_for(name: str, text: str) -> Callable[[Scene, Path], None]:
    def twist(scene: Scene, entry: Path) -> None:
        (entry / name).write_text(text)

    return twist


ENTRIES = {
    "gitdir is a pipe": _pipe_for("gitdir"),
    "HEAD is a pipe": _pipe_for("HEAD"),
    "HEAD is a folder": _folder_for("HEAD"),
    "HEAD is gone": lambda scene, entry: (entry / "HEAD").unlink(),
    "BISECT_START is a pipe": _pipe_for("BISECT_START"),
    "a rebase of a folder": _folder_for("rebase-merge/head-name"),
    "gitdir with a null": _text_for("gitdir", "/tmp/\0/.git\n"),
    "gitdir too long": _text_for("gitdir", f"/{'x' * 5000}/.git\n"),
    "locked and gone": _text_for("locked", ""),
}


@pytest.mark.parametrize("is_detached", [False, True])
@pytest.mark.parametrize("twist", ENTRIES)
def test_a_twisted_entry_of_a_worktree_stops_no_landing(tmp_path: Path, twist: str, is_detached: bool) -> None:
    scene = Scene(tmp_path / "repo")
    if is_detached:
        git_out(scene.path, "switch", "-q", "--detach")
    entry = draw_up(
        scene, tmp_path / "eve", scene.old if "BISECT" in twist or "rebase" in twist else "ref: refs/heads/main"
    )
    if "gone" not in twist:
        (tmp_path / "eve").mkdir()
        (tmp_path / "eve" / ".git").write_text(f"gitdir: {entry}\n")
    ENTRIES[twist](scene, entry)
    assert scene.land() == Landed(scene.new)


@pytest.mark.parametrize("is_detached", [False, True])
def test_an_entry_that_names_another_repository_brings_nothing_there(tmp_path: Path, is_detached: bool) -> None:
    scene, other = Scene(tmp_path / "repo"), make_repository(tmp_path / "other", {"a.txt": "a\n", "gone.txt": "gone\n"})
    if is_detached:
        git_out(scene.path, "switch", "-q", "--detach")
    draw_up(scene, other)
    assert scene.land() == Landed(scene.new)
    assert git_out(other, "status", "--porcelain") == "" and not (other / "new.txt").exists()


def test_main_does_not_wait_for_a_checkout_that_a_session_made_and_does_for_that_of_a_person(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "repo")
    git_out(scene.path, "worktree", "add", "-q", "-f", str(tmp_path / "eve"), "main", env=EVE)
    assert scene.land() == Landed(scene.new)
    git_out(scene.path, "worktree", "add", "-q", "-f", str(tmp_path / "ada"), "main")
    scene.old, scene.new = scene.new, scene.commit(scene.new, {"more.txt": "more\n"})
    assert scene.land() != Landed(scene.new)
    assert scene.main == scene.old
