"""What the author of a change tries against the walls of its gate's room, and beside each a control."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.app import gate_logs
from tests.line.test_gates import Yard


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture(params=["layered", "unlayered"])
def yard(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> Iterator[Yard]:
    """A project whose gates are held: with layers over all that they write, and without."""
    yard = Yard(tmp_path / "yard", "on")
    yard.gates._layered = None if request.param == "layered" else False
    yield yard
    yard.leave()


def said(yard: Yard) -> str:
    """Return what the last gate printed."""
    return gate_logs.read(yard.project, f"gate-{yard.number}").decode().partition("\n")[2]


def test_root_in_a_room_does_not_rule_the_kernel(yard: Yard) -> None:
    knobs = "/proc/sys/kernel/core_pattern /proc/sys/vm/swappiness"
    opens = f"for k in {knobs}; do test -r $k && (exec 3>> $k) && echo opened; done"
    tries = f'{opens}; unshare -Urpmf sh -c "mount -t proc proc /proc && {opens.replace("$", chr(92) + "$")}"; true'
    assert yard.try_on(tries).passed is True
    assert "opened" not in said(yard)
    assert yard.try_on('test -n "$(cat /proc/sys/kernel/hostname)"').passed is True  # the control: it may be read


def test_a_login_behind_a_link_in_a_cache_stays_and_is_not_seen(yard: Yard, home: Path) -> None:
    outside = home / "data"
    for folder in (home / ".cache", outside / "hf", outside / "cargo"):
        folder.mkdir(parents=True)
    for login in (outside / "hf" / "token", outside / "cargo" / "credentials"):
        login.write_text("secret")
    (home / ".cache" / "huggingface").symlink_to(outside / "hf")
    (home / ".cargo").symlink_to(outside / "cargo")
    outcome = yard.try_on("cat ~/.cache/huggingface/token ~/.cargo/credentials ~/data/*/*; ls -d ~/data/cargo")
    assert outcome.passed is True and "secret" not in said(yard)
    assert [each.read_text() for each in outside.glob("*/*")] == ["secret", "secret"]


def test_no_link_that_one_step_leaves_leads_the_next_outside(yard: Yard, home: Path, tmp_path: Path) -> None:
    for name in (".cache/huggingface/token", ".local/bin/tool"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text("#!/bin/sh\necho tool\n")
        (home / name).chmod(0o755)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "token").write_text("of mine")
    links = f"mv ~/.local ~/x; ln -s /oldroot{outside} ~/.local; rm -rf ~/.cache/huggingface; " \
            f"ln -s {outside} ~/.cache/huggingface; ls -l ~ | grep oldroot"  # fmt: skip
    outcome = yard.try_on(f"{links}; touch ~/kept", "~/.local/bin/tool && test -e ~/kept")
    assert outcome.passed is True, outcome.summary
    yard.try_on(f"{links}; echo 'bwrap: I cannot'; exit 1")  # which makes covey look whether the room can be made
    assert {each.name: each.read_text() for each in outside.iterdir()} == {"token": "of mine"}


def test_a_step_that_locks_its_home_does_not_keep_the_next_from_starting(yard: Yard, home: Path) -> None:
    (home / ".local/bin").mkdir(parents=True)
    outcome = yard.try_on("chmod 0 ~/.local ~; chmod 0 /tmp; true", "touch ~/x /tmp/x")
    assert outcome.passed is True, outcome.summary


def test_no_other_user_reaches_what_a_gate_leaves_open_in_its_temporary_folder(yard: Yard) -> None:
    place = Path(os.path.realpath(yard.desk.project.state)) / "gates"
    yard.loop.run_until_complete(_while_it_runs(yard, place))


async def _while_it_runs(yard: Yard, place: Path) -> None:
    running = asyncio.ensure_future(yard.gates.run(yard.order("chmod 4777 /tmp; touch /tmp/open; sleep 60")))
    while not (opened := list(place.glob("*.room/temporary/**/open"))):
        assert not running.done(), running.result()
        await asyncio.sleep(0.01)
    temporary = opened[0].resolve().parents[1]
    assert opened[0].parent.stat().st_mode & 0o777 == 0o777 and temporary.stat().st_mode & 0o77 == 0
    await yard.gates.stop(f"gate-{yard.number}")
    assert (await running).passed is None
    assert not temporary.exists()
