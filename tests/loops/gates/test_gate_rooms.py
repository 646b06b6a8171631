"""What a gate finds and cannot find in its room, and what is left of what it did there; beside each a control."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from covey.config import Merge
from covey.loops.gates.gates import Gates
from covey.runners import sandbox
from tests.loops.gates.test_gates import Yard
from tests.worlds.repositories import commit_files, git_out

ASK = "import socket,sys; s=socket.socket({family}); s.settimeout(5); s.connect({place}); print(s.recv(9).decode())"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def made(tmp_path: Path, home: Path) -> Iterator[Callable[[str], Yard]]:
    yards: list[Yard] = []

    def make(mode: str) -> Yard:
        yards.append(Yard(tmp_path / f"yard-{len(yards)}", "off" if mode == "off" else "on"))
        yards[-1].gates._layered = None if mode != "unlayered" else False
        return yards[-1]

    yield make
    for yard in yards:
        yard.leave()


@pytest.fixture(params=["layered", "unlayered"])
def yard(request: pytest.FixtureRequest, made: Callable[[str], Yard]) -> Yard:
    """A project whose gates are held: with layers over all that they write, and without."""
    return made(request.param)


@pytest.fixture(params=["layered", "unlayered", "off"])
def any_yard(request: pytest.FixtureRequest, made: Callable[[str], Yard]) -> Yard:
    """A project whose gates run in every way that there is."""
    return made(request.param)


def said(yard: Yard) -> list[str]:
    """Return what the last gate printed."""
    return yard.printed(f"gate-{yard.number}").splitlines()[1:]


def test_rooms_with_all_of_their_walls_can_be_made_where_these_tests_run(tmp_path: Path) -> None:
    assert sandbox.trouble() is None
    assert sandbox.powers() == sandbox.Powers(processes=True, network=True)
    assert sandbox.layers_trouble(str(tmp_path)) is None


# What it does not see


def test_a_gate_finds_no_key_of_the_owner_nor_any_file_of_covey(yard: Yard) -> None:
    token = yard.project.state / "owner.token"
    token.parent.mkdir(exist_ok=True)
    token.write_text("secret-of-the-owner")
    other = yard.root.parent / "other" / ".git" / "covey" / "owner.token"
    other.parent.mkdir(parents=True)
    other.write_text("secret-of-another")
    tries = f"cat {token} {other}; grep -rs secret-of {yard.root.parent}; ls {yard.root}; cat /proc/*/root{token}; true"
    assert yard.try_on(tries).passed is True
    assert not [line for line in said(yard) if "secret-of" in line or "toml" in line]
    yard.set(isolate="off")
    assert yard.try_on(f"cat {token}").passed is True  # the control: it is there
    assert said(yard) == ["secret-of-the-owner"]


def test_a_gate_finds_no_logins_in_home_and_all_tools(yard: Yard, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = (".ssh/id_rsa", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".git-credentials", ".npmrc",
               ".claude/.credentials.json", ".codex/auth.json", ".profile", ".cargo/credentials.toml",
               ".m2/settings.xml")  # fmt: skip
    tools = (
        ".local/bin/mytool",
        ".pyenv/versions/x/bin/python",
        ".cargo/registry/index",
        ".nvm/nvm.sh",
        "venv/bin/run",
    )
    for name in (*secrets, *tools):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("#!/bin/sh\necho secret-or-tool\n")
        (home / name).chmod(0o755)
    (home / "venv/lib").mkdir()
    (home / "venv/lib/x").touch()
    monkeypatch.setenv("PATH", f"{home}/venv/bin", prepend=":")
    assert yard.try_on(f"cd ~ && cat {' '.join(secrets)}; true").passed is True
    assert not [line for line in said(yard) if "secret" in line]
    assert yard.try_on(f"cd ~ && ls {' '.join(tools)} venv/lib/x && ~/.local/bin/mytool && run").passed is True


def test_a_gate_gets_no_variables_but_those_of_tools_and_those_that_are_named(
    any_yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ("AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "DATABASE_URL")
    for name in (*secrets, "JAVA_HOME", "LC_TIME"):
        monkeypatch.setenv(name, f"value-of-{name}")
    assert any_yard.try_on("env; cat /proc/$$/environ").passed is True
    text = "\n".join(said(any_yard))
    assert [name for name in secrets if f"value-of-{name}" in text] == []
    assert "value-of-JAVA_HOME" in text and "value-of-LC_TIME" in text
    failed = any_yard.try_on('echo "${DATABASE_URL?not set}"')
    assert "a gate gets such a variable if env in [merge]" in failed.summary
    any_yard.set(env=("DATABASE_URL",))
    assert any_yard.try_on('test "$DATABASE_URL" = value-of-DATABASE_URL && test -z "$GITHUB_TOKEN"').passed is True


def test_a_gate_finds_no_credentials_in_the_settings_of_git_which_works(yard: Yard, home: Path) -> None:
    person = "[user]\n\tname = Ada\n\temail = ada@example.org\n[credential]\n\thelper = store --file hunter2\n"
    (home / ".gitconfig").write_text(person)
    git_out(yard.root, "remote", "add", "origin", "https://ada:hunter2@example.org/shop.git")
    git_out(yard.root, "config", "http.https://example.org/.extraheader", "AUTHORIZATION: basic aHVudGVyMg==")
    assert yard.try_on("cat $(git rev-parse --git-common-dir)/config ~/.gitconfig; git remote -v").passed is True
    text = "\n".join(said(yard))
    assert "hunter2" not in text and "aHVudGVyMg" not in text and "https://example.org/shop.git" in text
    work = "git log -1 && echo x > new && git add new && git commit -qm new && git init -q sub && cd sub && git status"
    outcome = yard.try_on(work)
    assert outcome.passed is True, outcome.summary


def test_links_in_the_folder_of_git_keep_no_gate_from_its_room(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("hunter2\n")
    for name, target in (("mine", tmp_path / "mine.txt"), ("nowhere", Path("nowhere/x")), ("store", Path("objects"))):
        (yard.project.common / name).symlink_to(target)
    outcome = yard.try_on("git log -1 && ! cat $(git rev-parse --git-common-dir)/mine")
    assert outcome.passed is True, outcome.summary


# Whom it does not reach


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Listeners that greet whoever comes: on loopback, in a file, and by an abstract name."""
    places: dict[str, tuple[int, Any]] = {
        "loopback": (socket.AF_INET, ("127.0.0.1", 0)),
        "file": (socket.AF_UNIX, f"{tmp_path}/listener"),
        "abstract": (socket.AF_UNIX, f"\0covey-test-{os.getpid()}-{tmp_path.name}"),
    }
    open_ones: list[socket.socket] = []
    asks: dict[str, str] = {}

    def greet(server: socket.socket) -> None:
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            with closing(peer):
                peer.sendall(b"welcome")

    for name, (family, place) in places.items():
        server = socket.socket(family)
        server.bind(place)
        server.listen()
        open_ones.append(server)
        threading.Thread(target=greet, args=(server,), daemon=True).start()
        asks[name] = ASK.format(
            family=int(family), place=repr(server.getsockname() if family == socket.AF_INET else place)
        )
    yield asks
    for server in open_ones:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.mark.parametrize("kind", ["loopback", "file", "abstract"])
def test_a_gate_reaches_no_listener_outside(yard: Yard, listeners: dict[str, str], kind: str, tmp_path: Path) -> None:
    asking = tmp_path / "ask"
    asking.mkdir()
    (asking / "ask.py").write_text(listeners[kind])
    yard.set(show=(str(asking),))
    failed = yard.try_on(f"python3 {asking}/ask.py")
    assert failed.passed is False and "welcome" not in said(yard)
    if kind == "loopback":
        assert "network = true in [merge] of covey.toml" in failed.summary
    yard.set(network=True)  # says so: then what listens on the network, or by an abstract name, can be reached
    assert (yard.try_on(f"python3 {asking}/ask.py").passed is True) is (kind != "file")


def test_a_gate_may_listen_and_ask_on_its_own_loopback(yard: Yard, tmp_path: Path) -> None:
    own = "import socket; s=socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())"
    outcome = yard.try_on(f'python3 -c "{own}"')
    assert outcome.passed is True, outcome.summary


def test_the_sockets_and_memory_that_all_share_are_not_in_the_room(yard: Yard) -> None:
    outcome = yard.try_on('test -z "$(ls /run /var/run/ 2>/dev/null | grep -v \':\')" && test -z "$(ls /dev/shm)"')
    assert outcome.passed is True, "\n".join(said(yard))


# What is left of it


def test_what_a_gate_writes_into_home_caches_and_programs_is_gone(yard: Yard, home: Path) -> None:
    for name in (".cargo/bin", ".pyenv/shims", ".cache/pip", "go/pkg", ".local/bin"):
        (home / name).mkdir(parents=True)
    (home / ".cargo/bin/tool").write_text("good")
    (home / ".cache/pip/wheel").write_text("good")
    (home / ".profile").write_text("good")
    places = ".cargo/bin/tool .cache/pip/wheel .profile .bashrc .pyenv/shims/python go/pkg/x .local/bin/x .config/y"
    yard.try_on(f"mkdir -p ~/.config; for place in {places}; do echo bad > ~/$place; done; rm -rf ~/.cache/pip; true")
    found = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}
    assert found == {".cargo/bin/tool": "good", ".cache/pip/wheel": "good", ".profile": "good"}
    check = "test $(cat ~/.cache/pip/wheel) = good && test ! -e ~/.bashrc && echo x > ${XDG_CACHE_HOME:-~/.cache}/x"
    assert yard.try_on(check).passed is True


LITTER = """
mkdir -p built deep/er empty && touch built/x deep/er/x new && git init -q nested && touch nested/x
touch -d 2001-01-01 a.txt && chmod 600 a.txt && ln -s / built/root; setfattr -n user.x -v y a.txt 2>/dev/null
git update-index --assume-unchanged a.txt; git update-index --skip-worktree .gitignore; echo two > a.txt
git config --worktree core.filemode false; git sparse-checkout set nothing; echo x > .gitignore
echo three > left; git add -N left; exit $END
"""


@pytest.mark.parametrize("end", ["0", "1"])
def test_every_gate_starts_from_exactly_the_commit(any_yard: Yard, end: str) -> None:
    any_yard.set(cache=())
    before = any_yard.try_on("ls -laR --time-style=+ . | grep -v '^total' | sort; git ls-files -v; git status --short")
    listed = said(any_yard)
    any_yard.try_on(LITTER.replace("$END", end).replace("\n", "; ").strip("; "))
    after = any_yard.try_on("ls -laR --time-style=+ . | grep -v '^total' | sort; git ls-files -v; git status --short")
    assert before.passed is True and after.passed is True, after.summary
    assert said(any_yard) == listed
    assert any_yard.try_on("grep -qx one a.txt && grep -qx built .gitignore").passed is True


WEDGES = {
    "read-only": "mkdir -p a/b && touch a/b/c && chmod -R 0500 . && chmod 0 a; true",
    "nested": "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n",
}


@pytest.mark.parametrize("kind", list(WEDGES))
def test_a_worktree_that_is_hard_to_clean_keeps_nobody_waiting(any_yard: Yard, tmp_path: Path, kind: str) -> None:
    script = WEDGES[kind]
    if kind == "nested":
        (tmp_path / "nest.py").write_text(script)
        any_yard.set(show=(str(tmp_path / "nest.py"),))
        script = f"python3 {tmp_path}/nest.py"
    assert any_yard.try_on(script).passed is True
    after = any_yard.try_on("test $(cat a.txt) = one && test ! -e a && test ! -e d && echo x > new")
    assert after.passed is True, after.summary
    any_yard.assert_nothing_left()


@pytest.mark.parametrize(
    "script",
    [
        "rm -rf ./* .gitignore",
        "cd / && rm -rf $OLDPWD; true",
        "mkdir ../x; git rm -rqf .; true",
        "find . -type f -delete",
    ],
)
def test_a_gate_that_deletes_what_it_tests_did_not_pass(any_yard: Yard, script: str) -> None:
    outcome = any_yard.try_on(script)
    assert outcome.passed is False, script
    assert "deleted what it tested" in outcome.why and outcome.fingerprint
    assert any_yard.try_on("rm a.txt; echo x > a.txt; echo y >> .gitignore").passed is True  # it may rewrite files


def test_a_gate_that_prints_a_gigabyte_fails_by_itself(made: Callable[[str], Yard]) -> None:
    outcome = made("layered").try_on("head -c 1073741824 /dev/zero")
    assert (outcome.passed, outcome.flooded) == (False, True)


def test_what_is_there_and_not_shown_is_told_and_can_be_shown(yard: Yard, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "big").write_text("of mine\n")
    failed = yard.try_on(f"cat {data}/big")
    assert f"It did not find {data}/big" in failed.summary and "show in [merge]" in failed.summary
    yard.set(show=(str(data),))
    assert yard.try_on(f"cat {data}/big").passed is True
    assert yard.try_on(f"echo x > {data}/big").passed is False
    assert (data / "big").read_text() == "of mine\n"


def test_what_the_check_names_by_its_whole_path_is_shown(yard: Yard, home: Path) -> None:
    (home / "shop" / ".venv" / "bin").mkdir(parents=True)
    program = home / "shop" / ".venv" / "bin" / "run"
    program.write_text('#!/bin/sh\ncat "$(dirname "$0")/../lib"\n')
    program.chmod(0o755)
    (home / "shop" / ".venv" / "lib").write_text("lib\n")
    yard.set(check=f"{program} --all")
    assert yard.try_on(f"{program}").passed is True
    yard.set(check="true")
    assert yard.try_on(f"{program}").passed is False


# Warm gates

MAKE = """
OBJECTS := $(patsubst %.c,build/%.o,$(wildcard *.c))
build/program: $(OBJECTS)
\tcat build/*.o > $@
\t@! grep -q WANTS_HELPER $@ || grep -q HELPER_IS_HERE $@
build/%.o: %.c
\t@mkdir -p build
\t@echo building $<
\tcp $< $@
"""


@pytest.fixture(params=["layered", "unlayered", "off"])
def builder(request: pytest.FixtureRequest, made: Callable[[str], Yard]) -> Yard:
    """A project with a Makefile whose products lie in a folder that git ignores and the settings name as a cache."""
    yard = made(request.param)
    files = {"Makefile": MAKE, ".gitignore": "build\n", "main.c": "main\n", "other.c": "other\n"}
    yard.head = git_out(commit_files(yard.root, files, "Build"), "rev-parse", "HEAD")
    yard.set(cache=("build",), check="make")
    return yard


def branch(yard: Yard, files: dict[str, str | None], *, land: bool) -> str:
    """Commit on main, or beside it."""
    git_out(yard.root, "checkout", "-q", "--detach", "main")
    for name, text in files.items():
        if text is None:
            git_out(yard.root, "rm", "-q", name)
        else:
            (yard.root / name).write_text(text)
    git_out(yard.root, "add", "-A")
    git_out(yard.root, "commit", "-q", "-m", "Change")
    commit = git_out(yard.root, "rev-parse", "HEAD")
    git_out(yard.root, "checkout", "-q", "main")
    if land:
        git_out(yard.root, "merge", "-q", "--ff-only", commit)
    return commit


def built(yard: Yard) -> list[str]:
    return [line.split()[1] for line in said(yard) if line.startswith("building")]


def test_a_gate_finds_what_a_green_main_built_and_builds_what_changed(builder: Yard) -> None:
    yard = builder
    assert yard.try_on("make").passed is True
    assert sorted(built(yard)) == ["main.c", "other.c"]
    for slot in (1, 2):
        assert yard.try_on("make", slot=slot).passed is True
        assert built(yard) == []
    changed = branch(yard, {"other.c": "changed\n"}, land=False)
    assert yard.try_on("make && grep -q changed build/program", commit=changed).passed is True
    assert built(yard) == ["other.c"]
    assert yard.try_on("make && ! grep -q changed build/program", slot=2).passed is True
    assert built(yard) == []
    git_out(yard.root, "merge", "-q", "--ff-only", changed)
    for slot in (1, 2):
        assert yard.try_on("make && grep -q changed build/program", commit=changed, slot=slot).passed is True
        assert built(yard) == []


def test_an_old_product_of_a_file_that_is_gone_makes_no_red_main(builder: Yard) -> None:
    yard = builder
    with_helper = branch(yard, {"helper.c": "HELPER_IS_HERE\n", "user.c": "WANTS_HELPER\n"}, land=True)
    assert yard.try_on("make", commit=with_helper).passed is True
    without = branch(yard, {"helper.c": None}, land=False)
    assert yard.try_on("make", commit=without).passed is False
    renamed = branch(yard, {"helper.c": None, "helper2.c": "HELPER_IS_HERE\n"}, land=False)
    assert yard.try_on("make", commit=renamed).passed is True  # the control
    assert "main.c" in built(yard)


def test_what_a_rejected_change_leaves_in_a_cache_helps_no_red_one(builder: Yard) -> None:
    yard = builder
    red = branch(yard, {"user.c": "WANTS_HELPER\n"}, land=False)
    poison = "make; mkdir -p build; echo HELPER_IS_HERE > build/zz.o; touch -d 2100-01-01 build/*"
    for ends in ("false", "true"):  # it fails, or it passes and never lands
        bad = branch(yard, {"evil.c": f"evil {ends}\n"}, land=False)
        yard.try_on(f"{poison}; {ends}", commit=bad)
        assert yard.try_on("make", commit=red).passed is False
    assert yard.try_on("make").passed is True  # main, and what it leaves
    yard.try_on(f"{poison}; false", commit=red)
    assert yard.try_on("make", commit=red).passed is False
    good = branch(yard, {"user.c": "WANTS_HELPER\n", "helper.c": "HELPER_IS_HERE\n"}, land=False)
    assert yard.try_on("make", commit=good).passed is True  # the control


def test_a_folder_that_the_commit_has_itself_or_as_a_link_is_not_lent(builder: Yard, tmp_path: Path) -> None:
    yard = builder
    assert yard.try_on("make").passed is True
    git_out(yard.root, "checkout", "-q", "--detach", "main")
    (yard.root / "build").symlink_to(tmp_path)
    git_out(yard.root, "add", "-f", "build")
    git_out(yard.root, "commit", "-q", "-m", "Link")
    linked = git_out(yard.root, "rev-parse", "HEAD")
    git_out(yard.root, "checkout", "-q", "main")
    assert yard.try_on("test -L build", commit=linked).passed is True
    assert list(tmp_path.glob("*.o")) == []
    assert yard.try_on("test -e build/main.o").passed is True  # the control


def test_what_is_kept_is_bounded_and_goes_with_the_setting(builder: Yard) -> None:
    yard, folder = builder, builder.project.state / "caches"
    for number in range(12):
        assert yard.try_on("make", commit=branch(yard, {"other.c": f"{number}\n"}, land=False)).passed is True
    (settings,) = folder.iterdir()
    assert len(list(settings.iterdir())) <= 9
    assert yard.try_on("make").passed is True
    yard.set(cache=())
    assert yard.try_on("make").passed is True
    assert list(folder.iterdir()) == []


def test_settings_of_the_room_have_the_defaults_that_the_docs_promise() -> None:
    merge = Merge()
    assert (merge.network, merge.env, merge.show, merge.cache, merge.protect_check) == (False, (), (), (), True)


def test_a_new_daemon_lends_what_the_one_before_kept(builder: Yard) -> None:
    assert builder.try_on("make").passed is True
    layered = builder.gates._layered
    builder.loop.run_until_complete(builder.gates.stop_all())
    builder.gates = Gates(builder.open())
    builder.gates._layered = layered
    builder.loop.run_until_complete(builder.gates.recover())
    assert builder.try_on("make").passed is True
    assert built(builder) == []


def test_checks_of_one_gate_see_what_the_ones_before_left(builder: Yard) -> None:
    assert builder.try_on("make && echo x > ~/x", "test -e build/program && test -e ~/x", "true").passed is True


def test_a_folder_that_became_a_link_leads_nobody_out_of_the_worktree(any_yard: Yard, tmp_path: Path) -> None:
    commit = git_out(commit_files(any_yard.root, {"docs/a": "of the commit\n"}, "Docs"), "rev-parse", "HEAD")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("of mine\n")
    assert any_yard.try_on(f"rm -rf docs && ln -s {outside} docs", commit=commit).passed is True
    after = any_yard.try_on("test ! -L docs && grep -q commit docs/a", commit=commit)
    assert after.passed is True, after.summary
    assert (outside / "a").read_text() == "of mine\n"
