"""What the author of a change tries against the walls of its gate's room, and beside each a control."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loops.gates.test_gates import Yard
from tests.worlds.repositories import commit_files, git_out
from tests.worlds.serving import wait_until


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
    return yard.printed(f"gate-{yard.number}").partition("\n")[2]


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
    place = Path(os.path.realpath(yard.runtime.project.state)) / "gates"
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
    await asyncio.to_thread(wait_until, lambda: not temporary.exists(), "the temporary folder is removed")


# What a fresh clone would be without


def committed(yard: Yard, files: dict[str, str], *forced: str) -> str:
    """Commit on main, also what git ignores."""
    commit_files(yard.root, {name: text for name, text in files.items() if name not in forced}, "Change")
    for name in forced:
        (yard.root / name).parent.mkdir(parents=True, exist_ok=True)
        (yard.root / name).write_text(files[name])
        git_out(yard.root, "add", "-f", name)
    if forced:
        git_out(yard.root, "commit", "-q", "-m", "Force")
    return git_out(yard.root, "rev-parse", "HEAD")


def test_new_attributes_are_tested_as_a_clone_has_them(yard: Yard) -> None:
    plain = committed(yard, {"run.sh": "exit 0\n", "sub/.keep": ""})
    ends = committed(
        yard, {"sub/x.sh": "exit 0\n", "sub/.gitattributes": "x.sh eol=crlf\n", ".gitattributes": "*.sh eol=crlf\n"}
    )
    gone = committed(yard, {"sub/.gitattributes": "", ".gitattributes": "# none\n"})
    is_crlf = "test $(head -c 7 run.sh | od -An -tx1 | grep -c 0d) = 1"
    for commit, ends_so in ((plain, False), (ends, True), (gone, False), (ends, True)):
        outcome = yard.try_on(is_crlf if ends_so else f"! {is_crlf}", commit=commit)
        assert outcome.passed is True, commit


def test_what_was_kept_never_stands_over_what_the_commit_has(yard: Yard) -> None:
    yard.set(cache=("build", "gen"))
    before = committed(yard, {".gitignore": "build\ngen\n"})
    assert yard.try_on("mkdir build gen; echo good > gen/x; echo good > build/x", commit=before).passed is True
    assert yard.try_on("grep good gen/x build/x", commit=before).passed is True  # the control
    own = committed(yard, {"gen/x": "bad\n"}, "gen/x")
    assert yard.try_on("grep good gen/x", commit=own).passed is False
    assert yard.try_on("git diff --exit-code", commit=own).passed is True


def test_a_product_of_the_future_is_older_than_a_change(yard: Yard) -> None:
    yard.set(cache=("build",))
    make = "build/o: a.c\n\tmkdir -p build; cp a.c build/o; touch -d 2100-01-01 build/o build; ! grep bad a.c\n"
    good = committed(yard, {".gitignore": "build\n", "Makefile": make, "a.c": "good\n"})
    assert yard.try_on("make", commit=good).passed is True
    assert yard.try_on("test $(cat build/o) = good && make", commit=good).passed is True
    assert "up to date" in said(yard)  # the control: it is warm
    bad = committed(yard, {"a.c": "bad\n"})
    assert yard.try_on("make", commit=bad).passed is False


def test_what_is_nested_too_deep_is_not_kept(yard: Yard) -> None:
    yard.set(cache=("built",))
    nest = "import os\nfor name in ['built', *'d' * 300]:\n    os.mkdir(name)\n    os.chdir(name)\n"
    commit = committed(yard, {"nest.py": nest})
    assert yard.try_on("python3 nest.py", commit=commit).passed is True
    assert yard.try_on("test ! -e built", commit=commit).passed is True


# What it does not find


def test_a_gate_finds_no_password_in_any_setting_or_file_of_git(yard: Yard) -> None:
    git = yard.root / ".git"
    (git / "modules/sub").mkdir(parents=True)
    (git / "modules/sub/config").write_text('[remote "o"]\nurl = https://a:hunter2@example.org/\n')
    (git / "credentials").write_text("https://a:hunter2@example.org")
    with (git / "logs/HEAD").open("a") as file:
        file.write(f"{yard.head} {yard.head} Ada <a@example.org> 1 +0000\tpull https://a:hunter2@example.org/\n")
    with (git / "config").open("a") as file:
        file.write(
            '[http "https://example.org/"] extraheader = "AUTH \\\n hunter2"\n[sendemail]\n\tsmtpPass = hunter2\n'
            '[remote "at"]\n\turl = https://ada@example.org:hunter2@example.org/shop.git\n\tfetch = +refs/*:refs/at/*\n'
            '[url "https://a:hunter2@example.org/"]\n\tinsteadOf = x:\n[core]\n\tsshCommand = sshpass -p hunter2 ssh\n'
        )
    outcome = yard.try_on(
        "grep -rs hunter2 $(git rev-parse --git-common-dir); git config --list; git log -g; git status"
    )
    assert outcome.passed is True, outcome.summary
    assert "hunter2" not in said(yard)
    assert "remote.at.url=https://example.org/shop.git" in said(yard)  # the control


def test_a_gate_reaches_no_socket_in_the_folder_of_git(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(yard.root / ".git")  # the name of a socket has to be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("watch.ipc")
        listener.listen()
        ask = "import os,socket; os.chdir(os.sys.argv[1]); s=socket.socket(socket.AF_UNIX); s.connect('watch.ipc')"
        assert yard.try_on(f'python3 -c "{ask}" $(git rev-parse --git-common-dir)').passed is False
        yard.set(isolate="off")
        assert yard.try_on(f'python3 -c "{ask}" $(git rev-parse --git-common-dir)').passed is True  # the control


def test_a_login_beside_the_programs_of_a_tool_is_not_shown(
    yard: Yard, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".pulumi/bin/pulumi", ".agent/agent", ".pulumi/lib/x"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("#!/bin/sh\necho tool\n")
        (home / name).chmod(0o755)
    for name in (".pulumi/credentials.json", ".agent/.credentials.json"):
        (home / name).write_text("secret")
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/bin/agent").symlink_to(home / ".agent/agent")
    monkeypatch.setenv("PATH", f"{home}/.pulumi/bin:{home}/.local/bin", prepend=":")
    outcome = yard.try_on("cat ~/.pulumi/* ~/.agent/.c*; pulumi && agent && test -e ~/.pulumi/lib/x")
    assert outcome.passed is True, outcome.summary
    assert "secret" not in said(yard)


def test_a_gate_reads_of_the_machines_settings_what_everybody_may(yard: Yard) -> None:
    others = "find /etc ! -type l ! -perm -004 ! -empty -type f -readable 2>/dev/null | head -3; cat /etc/shadow; true"
    assert yard.try_on(others).passed is True
    assert not [line for line in said(yard).splitlines() if line.startswith(("/etc", "root:"))]
    assert yard.try_on("grep -q root /etc/passwd").passed is True  # the control
