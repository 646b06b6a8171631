"""What only a terminal has: a screen, keys, a person who attaches, and a server that can be killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.core.fleet.launches import Launch, Observation, Screen
from covey.errors import Invalid, Refused, TooLarge, Unavailable
from covey.runners import control
from covey.runners.tmux import TmuxRunner, socket_of, version_of
from tests.worlds.runners import PATH, Place, alive, children, command, shell, state
from tests.worlds.serving import wait_until

ROOT = Path(__file__).parents[2]
FOREVER = "echo here; exec sleep 1000"


class Desk:
    """A tmux runner, with what a test asks of it."""

    def __init__(self, folder: Path) -> None:
        self.place = Place("tmux", folder)
        self.folder = folder
        self.socket = socket_of(folder)

    @property
    def runner(self) -> TmuxRunner:
        """Return the runner."""
        assert isinstance(self.place.runner, TmuxRunner)
        return self.place.runner

    def start(self, run_id: str, launch: Launch) -> None:
        """Start a run in a terminal, as it is."""
        self.runner.start(run_id, launch)

    def shows(self, run_id: str, text: str) -> Screen:
        """Wait until the screen of a run shows a text."""
        found: list[Screen] = []

        def seen() -> bool:
            screen = self.runner.screen(run_id)
            if screen is not None:
                found[:] = [screen]
            return screen is not None and text in "\n".join(screen.lines)

        wait_until(seen, f"{text!r} on the screen of {run_id}")
        return found[0]

    def has_rows(self, run_id: str, rows: int) -> None:
        """Wait until the terminal of a run has so many rows."""

        def seen() -> bool:
            screen = self.runner.screen(run_id)
            return screen is not None and len(screen.lines) == rows

        wait_until(seen, f"{rows} rows")

    def tmux(self, *words: str) -> str:
        """Ask the server of the runner."""
        asked = ["tmux", "-u", "-S", str(self.socket), *words]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout

    def server(self) -> int:
        """Return the pid of the server."""
        return int(self.tmux("display-message", "-p", "#{pid}"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Yield a tmux runner on an empty folder, and leave no server behind."""
    found = Desk(tmp_path / "runs")
    try:
        yield found
    finally:
        found.place.end_all()


def drawn(*argv: str, **more: object) -> Launch:
    """Return the launch of a program in a terminal."""
    return Launch(argv=argv, **{"cwd": "/", "env": {"PATH": PATH, "LC_ALL": "C.UTF-8"}, "terminal": True} | more)  # type: ignore[arg-type]


def script(text: str, **more: object) -> Launch:
    """Return the launch of a shell script in a terminal."""
    return drawn("/bin/sh", "-c", text, **more)


def code(text: str, *argv: str, **more: object) -> Launch:
    """Return the launch of a Python script in a terminal."""
    return drawn(sys.executable, "-I", "-S", "-c", text, *argv, **more)


# The terminal


def test_the_program_has_a_terminal_of_its_own_and_knows_nothing_of_tmux(desk: Desk) -> None:
    env = {"PATH": PATH, "TMUX": "/somewhere,1,0", "TMUX_PANE": "%7", "TMUX_TMPDIR": "/somewhere", "TERM": "dumb"}
    own = "os.tcgetpgrp(0) == os.getpid() == os.getsid(0)"
    desk.start("run-1", code(f"import os; print(*map(os.isatty, (0, 1, 2)), {own}, dict(os.environ))", env=env))
    assert desk.place.ended("run-1").code == 0
    said = desk.place.text("run-1")
    assert said.startswith("True True True True ")
    assert "'TMUX'" not in said
    assert "TMUX_PANE" not in said
    assert "'TMUX_TMPDIR': '/somewhere'" in said  # where tmux of its own would live is the launch's choice
    assert "'TERM': 'screen-256color'" in said


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50)])
def test_a_full_screen_program_is_seen_as_it_draws(tmp_path: Path, columns: int, rows: int) -> None:
    desk = Desk(tmp_path / "runs")
    desk.place.runner = TmuxRunner(desk.folder, columns=columns, rows=rows)
    (tmp_path / "text").write_text("".join(f"line {n} äöü€😀\n" for n in range(1000)))
    try:
        desk.start("run-1", drawn("less", str(tmp_path / "text")))
        screen = desk.shows("run-1", f"line {rows - 2} ")
        assert len(screen.lines) == rows
        assert screen.lines[:2] == ("line 0 äöü€😀", "line 1 äöü€😀")
        assert screen.row == rows - 1
        desk.runner.press("run-1", "G")
        desk.shows("run-1", "line 999 äöü€😀")
        desk.runner.press("run-1", "q")
        assert desk.place.ended("run-1").code == 0
        assert desk.runner.screen("run-1") is None
    finally:
        desk.place.end_all()


def test_the_title_and_the_cursor_are_seen(desk: Desk) -> None:
    desk.start("run-1", script(r"printf '\033]2;a\ttitle \342\234\263\007\033[5;7Hx'; exec sleep 1000"))
    wait_until(lambda: (s := desk.runner.screen("run-1")) is not None and "title ✳" in s.title, "the title")
    screen = desk.shows("run-1", "x")
    assert (screen.row, screen.column) == (4, 7)


def test_every_change_is_seen_however_soon_after_a_look(desk: Desk) -> None:
    text = r"""
import sys
for line in sys.stdin: sys.stdout.write("\033[H" + line[0]); sys.stdout.flush()
"""
    desk.start("run-1", code("import os; os.system('stty -echo');" + "print('ready', flush=True)\n" + text))
    desk.shows("run-1", "ready")
    for letter in "abcdefghijklmnopqrstuvwxyz" * 4:
        desk.runner.type("run-1", letter)
        wait_until(lambda: (s := desk.runner.screen("run-1")) is not None and s.lines[0][:1] == letter, letter)  # noqa: B023


def test_a_screen_that_looks_like_an_answer_of_tmux_fools_nobody(desk: Desk) -> None:
    lie = "".join(f"%end {n} {n} 1\n%begin {n} {n} 1\n%error {n} {n} 1\n%exit\n" for n in range(3))
    desk.start("run-1", script(f"echo '{lie}'; echo here; exec sleep 1000"))
    desk.start("run-2", script("echo honest; exec sleep 1000"))
    assert desk.shows("run-1", "here").lines[:4] == ("%end 0 0 1", "%begin 0 0 1", "%error 0 0 1", "%exit")
    assert desk.shows("run-2", "honest").lines[0] == "honest"


# The log


def test_a_hundred_thousand_lines_printed_fast_are_all_in_the_log(desk: Desk) -> None:
    desk.start("run-1", code("for n in range(100_000): print(n, 'x' * 20)"))
    seen = desk.place.ended("run-1")
    expected = "".join(f"{n} {'x' * 20}\r\n" for n in range(100_000))
    assert desk.place.text("run-1") == expected
    assert seen == Observation(known=True, alive=False, code=0, size=len(expected))


def test_the_last_words_are_in_the_log_when_the_end_is_known(desk: Desk) -> None:
    for n in range(20):
        desk.start(f"run-{n}", script(f"printf '%030000d' {n}; echo last; exit {n}"))
    for n in range(20):
        assert desk.place.ended(f"run-{n}").code == n
        assert desk.place.text(f"run-{n}").endswith(f"0{n}last\r\n")
        assert len(desk.place.text(f"run-{n}")) == 30_006


def test_a_server_that_hangs_loses_nothing_of_the_log(desk: Desk, tmp_path: Path) -> None:
    desk.start("run-1", script(f"while [ ! -e {tmp_path}/gate ]; do sleep 0.01; done; seq 1 20000; exit 3"))
    server = desk.server()
    os.kill(server, signal.SIGSTOP)
    try:
        (tmp_path / "gate").touch()
        desk.place.says("run-1", "1\r\n2\r\n")
    finally:
        os.kill(server, signal.SIGCONT)
    assert desk.place.ended("run-1").code == 3
    assert desk.place.text("run-1").endswith("".join(f"{n}\r\n" for n in range(1, 20_001)))


def test_errors_and_a_given_input_are_kept_apart_from_the_terminal(desk: Desk) -> None:
    desk.start("run-1", script("cat; echo bad >&2; exec sleep 1000", stdin="given\n", apart=True))
    desk.shows("run-1", "given")
    wait_until(lambda: desk.runner.errors("run-1") == b"bad\n", "what it said apart")
    assert desk.place.text("run-1") == "given\r\n"
    with pytest.raises(Refused, match="takes no input"):
        desk.runner.paste("run-1", "more")


# Typing

READER = """
import os, sys, tty
tty.setraw(0)
os.write(1, sys.argv[2].encode().decode("unicode_escape").encode() + b"ready")
seen = b""
while len(seen) < int(sys.argv[1]): seen += os.read(0, 65536)
open(sys.argv[3], "wb").write(seen)
"""
LETTER = "".join(f"{n}: ein Wort\t'\"$(x) `y` \\ # ; %end {n} €😀\n" for n in range(500))


@pytest.mark.parametrize("bracketed", [False, True])
def test_a_long_text_of_many_lines_arrives_byte_by_byte(desk: Desk, tmp_path: Path, bracketed: bool) -> None:
    expected = LETTER.encode()
    assert len(expected) > 20_000
    if bracketed:
        expected = b"\x1b[200~" + expected + b"\x1b[201~"
    asks = r"\x1b[?2004h" if bracketed else ""
    desk.start("run-1", code(READER, str(len(expected)), asks, str(tmp_path / "seen")))
    desk.shows("run-1", "ready")
    desk.runner.paste("run-1", LETTER)
    assert desk.place.ended("run-1").code == 0
    assert (tmp_path / "seen").read_bytes() == expected


def test_lines_pasted_into_a_plain_program_arrive_whole(desk: Desk, tmp_path: Path) -> None:
    desk.start("run-1", script(f"stty -echo; echo ready; cat > {tmp_path}/seen"))
    desk.shows("run-1", "ready")
    desk.runner.paste("run-1", LETTER)
    desk.runner.finish("run-1")
    assert desk.place.ended("run-1").code == 0
    assert (tmp_path / "seen").read_text() == LETTER
    desk.runner.finish("run-1")


def test_a_text_cannot_end_the_paste_and_go_on_as_keys(desk: Desk, tmp_path: Path) -> None:
    desk.start("run-1", code(READER, "18", r"\x1b[?2004h", str(tmp_path / "seen")))
    desk.shows("run-1", "ready")
    desk.runner.paste("run-1", "a\x1b[201~\x03\x9b\rb")
    desk.place.ended("run-1")
    assert (tmp_path / "seen").read_bytes() == b"\x1b[200~a[201~b\x1b[201~"


def test_what_was_given_to_be_typed_is_typed_first(desk: Desk) -> None:
    desk.start("run-1", script("read one; read two; echo got $one $two; exit 3", typed=True, stdin="first\n"))
    desk.runner.type("run-1", "zwölf")
    assert desk.place.ended("run-1").code == 3
    assert desk.place.text("run-1").endswith("got first zwölf\r\n")


def test_no_buffer_is_left_behind(desk: Desk) -> None:
    desk.start("run-1", script("exec cat"))
    desk.runner.paste("run-1", "hello\n")
    desk.shows("run-1", "hello")
    assert desk.tmux("list-buffers") == ""


@pytest.mark.parametrize("key", ["", "Foo", "'", "a;b", "C-", "kill-server", "\n", "x y"])
def test_what_is_no_key_is_refused(desk: Desk, key: str) -> None:
    desk.start("run-1", script(FOREVER))
    with pytest.raises(Invalid, match="is not a key"):
        desk.runner.press("run-1", key)


def test_too_much_is_refused(desk: Desk) -> None:
    desk.start("run-1", script(FOREVER))
    with pytest.raises(TooLarge):
        desk.runner.paste("run-1", "x" * 1_000_000)


def test_a_key_reaches_the_program_while_a_person_scrolls_back(desk: Desk) -> None:
    desk.start("run-1", script("seq 1 200; read line; echo got $line; exec sleep 1000"))
    desk.shows("run-1", "200")
    desk.tmux("copy-mode", "-t", "=run-1:")
    desk.runner.type("run-1", "hello")
    desk.shows("run-1", "got hello")


def test_a_run_without_a_terminal_has_no_screen_and_no_keys(desk: Desk) -> None:
    desk.start("run-1", shell("while read line; do echo got $line; done; exit 4", typed=True))
    desk.runner.type("run-1", "hello")
    desk.place.says("run-1", "got hello\n")
    for ask in (lambda: desk.runner.press("run-1", "Enter"), lambda: desk.runner.attach_command("run-1")):
        with pytest.raises(Refused, match="no terminal"):
            ask()
    assert desk.runner.screens() == {}
    desk.runner.finish("run-1")
    assert desk.place.ended("run-1").code == 4


# Signals


def test_the_interrupt_key_reaches_the_program_and_not_the_wrapper(desk: Desk) -> None:
    desk.start("run-1", script("trap 'echo interrupted; exit 7' INT; echo here; while :; do sleep 0.05; done"))
    desk.shows("run-1", "here")
    desk.runner.press("run-1", "C-c")
    assert desk.place.ended("run-1").code == 7
    assert "interrupted" in desk.place.text("run-1")


def test_keys_act_on_the_job_in_front_as_in_any_terminal(desk: Desk) -> None:
    desk.start("run-1", drawn("bash", "--norc", "-i", env={"PATH": PATH, "PS1": "ready> ", "HOME": "/nonexistent"}))
    desk.shows("run-1", "ready>")
    desk.runner.type("run-1", "sleep 1000")
    wait_until(lambda: "sleep 1000" in [command(pid).strip() for pid in desk.place.processes("run-1")], "the job")
    desk.runner.press("run-1", "C-z")
    desk.shows("run-1", "Stopped")
    desk.runner.type("run-1", "fg")
    wait_until(lambda: all(state(pid) != "T" for pid in desk.place.processes("run-1")), "that it goes on")
    desk.runner.press("run-1", "C-c")
    desk.runner.type("run-1", "exit 9")
    assert desk.place.ended("run-1").code == 9


def test_a_held_terminal_takes_keys_and_the_program_reads_them_later(desk: Desk) -> None:
    desk.start("run-1", script("read line; echo got $line; exit 3"))
    desk.runner.hold("run-1", on=True)
    desk.runner.type("run-1", "hello")
    assert desk.runner.look("run-1").held
    desk.runner.hold("run-1", on=False)
    assert desk.place.ended("run-1").code == 3


# Losing the terminal


def test_a_killed_server_loses_its_runs_and_nothing_else_and_the_next_start_makes_a_new_one(desk: Desk) -> None:
    desk.start("run-1", script("setsid sleep 1000 & echo here; exec sleep 1000"))
    desk.start("run-2", shell(FOREVER))
    desk.shows("run-1", "here")
    pids = desk.place.processes("run-1")
    desk.tmux("kill-server")
    seen = desk.place.ended("run-1")
    assert (seen.known, seen.code, seen.failure) == (True, None, None)
    assert not any(map(alive, pids))
    assert desk.runner.look("run-2").alive
    assert desk.runner.screens() == {}
    with pytest.raises(Refused):
        desk.runner.paste("run-1", "hello")
    desk.start("run-3", script(FOREVER))
    desk.shows("run-3", "here")
    assert set(desk.runner.screens()) == {"run-3"}


def test_a_server_that_dies_without_a_word_loses_its_runs(desk: Desk) -> None:
    desk.start("run-1", script(FOREVER))
    desk.shows("run-1", "here")
    os.kill(desk.server(), signal.SIGKILL)
    assert desk.place.ended("run-1").code is None
    assert desk.runner.screen("run-1") is None
    desk.start("run-2", script(FOREVER))
    desk.shows("run-2", "here")


def test_an_agent_that_kills_its_own_session_ends_alone(desk: Desk) -> None:
    desk.start("run-2", script(FOREVER))
    desk.start("run-1", script(f"echo here; tmux -S {desk.socket} kill-session -t run-1; sleep 1000"))
    assert desk.place.ended("run-1").code is None
    assert not desk.place.processes("run-1")
    desk.shows("run-2", "here")
    assert desk.runner.look("run-2").alive


def test_a_program_that_ignores_the_loss_of_its_terminal_ends_all_the_same(desk: Desk) -> None:
    desk.start("run-1", script("trap '' HUP TERM; echo here; while :; do sleep 0.05; done"))
    desk.shows("run-1", "here")
    desk.tmux("kill-session", "-t", "=run-1")
    assert desk.place.ended("run-1").code is None
    assert not desk.place.processes("run-1")


def test_tmux_called_by_an_agent_is_not_ours(desk: Desk, tmp_path: Path) -> None:
    folder = Path("/tmp") / f"covey-test-{os.getpid()}"
    folder.mkdir()
    try:
        # A place of its own, so that the test does not touch the server of whoever runs it.
        inner = f"TMUX_TMPDIR={folder} tmux kill-server; echo $?; exec sleep 1000"
        desk.start("run-1", script(inner))
        desk.place.says("run-1", "1\r\n")
        assert desk.runner.look("run-1").alive
        assert desk.server() > 0
    finally:
        shutil.rmtree(folder)


def test_a_killed_wrapper_takes_its_program_and_its_pane_with_it(desk: Desk) -> None:
    desk.start("run-1", script(FOREVER))
    desk.start("run-2", script(FOREVER))
    desk.shows("run-1", "here")
    os.kill(int((desk.folder / "run-1" / "started").readlink().name), signal.SIGKILL)
    assert desk.place.ended("run-1").code is None
    wait_until(lambda: set(desk.runner.screens()) == {"run-2"}, "that the pane is gone")


# Restarts


def test_runs_and_their_screens_survive_us(desk: Desk) -> None:
    words = [sys.executable, "-m", "tests.runners.starter", "tmux", str(desk.folder), "echo here; exec sleep 1000"]
    with subprocess.Popen([*words, "run-1"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        other.stdin.write(b"\n")
        other.stdin.flush()
        assert other.stdout.readline() == b"started\n"
        other.kill()
    desk.shows("run-1", "here")
    desk.start("run-1", script("echo again"))
    assert desk.runner.look("run-1").alive


def test_no_server_is_left_when_the_last_run_has_ended_and_we_let_go(desk: Desk) -> None:
    desk.start("run-1", script("echo here; read line"))
    desk.shows("run-1", "here")
    server = desk.server()
    desk.runner.type("run-1", "go")
    desk.place.ended("run-1")
    desk.runner.close()
    wait_until(lambda: not alive(server), "the end of the server")
    desk.runner.close()
    assert desk.runner.screens() == {}


def test_a_connection_that_was_killed_is_made_again(desk: Desk) -> None:
    desk.start("run-1", script(FOREVER))
    desk.shows("run-1", "here")
    (connection,) = [pid for pid in children(os.getpid()) if "tmux" in command(pid)]
    os.kill(connection, signal.SIGKILL)
    wait_until(lambda: not alive(connection), "its end")  # or it may answer once more
    desk.shows("run-1", "here")
    assert connection not in children(os.getpid())


def test_a_server_that_hangs_is_waited_for_but_not_for_long(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.start("run-1", script(FOREVER))
    desk.shows("run-1", "here")
    monkeypatch.setattr(control, "ASK_TIMEOUT_S", 0.2)
    server = desk.server()
    os.kill(server, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match="does not answer"):
            desk.runner.screens()
        assert desk.runner.look("run-1").alive
    finally:
        os.kill(server, signal.SIGCONT)
    monkeypatch.setattr(control, "ASK_TIMEOUT_S", 10.0)
    desk.shows("run-1", "here")


@pytest.mark.parametrize("anew", [False, True])
def test_a_socket_that_somebody_removed_is_made_again(desk: Desk, anew: bool) -> None:
    desk.start("run-1", script("read line; echo got $line; exec sleep 1000"))
    server = desk.server()
    assert set(desk.runner.screens()) == {"run-1"}
    if anew:
        desk.runner.close()
        desk.place.runner = desk.place.another()
    desk.socket.unlink()
    if not anew:
        assert set(desk.runner.screens()) == {"run-1"}
    desk.runner.type("run-1", "hello")
    desk.shows("run-1", "got hello")
    assert desk.server() == server


def test_two_folders_have_two_servers(desk: Desk, tmp_path: Path) -> None:
    other = Desk(tmp_path / ("long" * 40) / "runs")
    try:
        desk.start("run-1", script("echo one; exec sleep 1000"))
        other.start("run-1", script("echo two; exec sleep 1000"))
        assert desk.shows("run-1", "one").lines[0] == "one"
        assert other.shows("run-1", "two").lines[0] == "two"
        assert desk.server() != other.server()
        desk.tmux("kill-server")
        desk.place.ended("run-1")
        assert other.runner.look("run-1").alive
    finally:
        other.place.end_all()


def test_names_with_dots_are_not_mixed_up(desk: Desk) -> None:
    for run in ("a.b", "a_b", "a"):
        desk.start(run, script(f"echo this is {run}.; exec sleep 1000"))
    for run in ("a.b", "a_b", "a"):
        assert desk.shows(run, "this is").lines[0] == f"this is {run}."
        desk.runner.paste(run, f"to {run}")
        desk.shows(run, f"to {run}")


def test_a_folder_with_odd_letters_is_a_folder_like_any_other(desk: Desk, tmp_path: Path) -> None:
    odd = tmp_path / "#(touch ran) #{x} ä ';"
    odd.mkdir()
    other = Desk(odd / "runs;")
    try:
        other.start("run-1", script("pwd; exec sleep 1000", cwd=str(odd)))
        other.place.says("run-1", f"{odd}\r\n")
        assert os.listdir(odd) == ["runs;"]
    finally:
        other.place.end_all()


# A person


@contextlib.contextmanager
def person(words: list[str], columns: int, rows: int) -> Iterator[int]:
    """Yield the terminal of a person who runs a command in it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.environ["TMUX"] = "/somewhere/else,1,0"  # As from inside of another one.
        os.execvp(words[0], words)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    try:
        yield terminal
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)


def reads(terminal: int, text: str) -> None:
    """Wait until a person reads a text."""
    seen = b""

    def read() -> bool:
        nonlocal seen
        with contextlib.suppress(OSError):
            if select.select([terminal], [], [], 0)[0]:
                seen += os.read(terminal, 65536)
        return text.encode() in seen

    wait_until(read, f"{text!r} in {seen!r}")


def leaves(terminal: int) -> None:
    """Let a person detach: keys that come within a millisecond are pasted to tmux, and then mean nothing to it."""
    seen = b""

    def left() -> bool:
        nonlocal seen
        with contextlib.suppress(OSError):
            os.write(terminal, b"\x02d")
        with contextlib.suppress(OSError):
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 65536)
        return b"detached" in seen

    wait_until(left, "the person's leaving")


def test_a_person_attaches_in_the_size_of_their_terminal_and_leaves_the_run_at_its_own(desk: Desk) -> None:
    desk.start("run-1", script("trap 'stty size' WINCH; echo here; while :; do read line && echo got $line; done"))
    desk.shows("run-1", "here")
    with person(desk.runner.attach_command("run-1"), 80, 24) as terminal:
        reads(terminal, "here")
        desk.has_rows("run-1", 23)  # below it stands how to leave
        os.write(terminal, b"hello\r")
        reads(terminal, "got hello")
        leaves(terminal)
    desk.has_rows("run-1", 50)
    desk.shows("run-1", "50 200")  # tmux tells it a moment later, and a signal amid a line loses a shell that line
    desk.runner.press("run-1", "C-u")  # the keys of leaving, if tmux took them for a paste, stand in the line
    desk.runner.type("run-1", "again")
    desk.shows("run-1", "got again")


def test_the_size_of_a_run_is_kept_by_a_person_who_only_looks_and_comes_back_after_one_who_was_killed(
    desk: Desk,
) -> None:
    desk.start("run-1", script("echo here; while read line; do echo got $line; done"))
    desk.shows("run-1", "here")
    with person([*desk.runner._command(), "attach-session", "-r", "-t", "=run-1"], 80, 24) as terminal:
        reads(terminal, "here")
        desk.has_rows("run-1", 50)
    with person(desk.runner.attach_command("run-1"), 80, 24):
        desk.has_rows("run-1", 23)
    desk.has_rows("run-1", 50)


def test_a_person_who_only_looks_types_nothing(desk: Desk) -> None:
    desk.start("run-1", script("echo here; while read line; do echo got $line; done"))
    desk.shows("run-1", "here")
    with person([*desk.runner._command(), "attach-session", "-r", "-t", "=run-1"], 80, 24) as terminal:
        reads(terminal, "here")
        os.write(terminal, b"hello\r")
        desk.runner.type("run-1", "mine")
        reads(terminal, "got mine")
    assert "hello" not in desk.place.text("run-1")


def test_a_server_that_hangs_does_not_keep_a_run_from_being_stopped(desk: Desk, tmp_path: Path) -> None:
    desk.start("run-1", script("trap '' TERM; while :; do seq 1 1000; done"))
    desk.start("run-2", script(FOREVER))
    desk.shows("run-2", "here")
    server = desk.server()
    os.kill(server, signal.SIGSTOP)
    try:
        desk.runner.stop("run-1")
        assert not desk.runner.look("run-1").alive
        assert not desk.place.processes("run-1")
    finally:
        os.kill(server, signal.SIGCONT)
    desk.shows("run-2", "here")


def test_the_panes_that_a_person_opens_are_not_taken_for_the_run(desk: Desk) -> None:
    desk.start("run-1", script("echo here; while read line; do echo got $line; done"))
    desk.shows("run-1", "here")
    desk.tmux("split-window", "-t", "=run-1:", "cat")
    desk.tmux("new-window", "-t", "=run-1:", "cat")
    desk.runner.type("run-1", "hello")
    desk.shows("run-1", "got hello")
    desk.start("run-2", script(FOREVER))
    desk.runner.stop("run-1")
    assert desk.runner.screen("run-1") is None
    assert "run-1" in desk.tmux("list-sessions", "-F", "#{session_name}")
    desk.runner.forget("run-1")
    assert "run-1" not in desk.tmux("list-sessions", "-F", "#{session_name}")
    assert desk.runner.look("run-2").alive


# tmux itself


def test_a_machine_without_tmux_says_what_to_install(tmp_path: Path) -> None:
    runner = TmuxRunner(tmp_path / "runs", program="no-such-tmux")
    with pytest.raises(Unavailable, match="not installed") as refused:
        runner.start("run-1", script("true"))
    assert "package tmux" in refused.value.hint
    assert not runner.look("run-1").known
    runner.start("run-2", shell("exit 3"))
    wait_until(lambda: runner.look("run-2").code == 3, "a run that needs no terminal")
    assert runner.screens() == {}


@pytest.mark.parametrize(
    ("told", "good"), [("2.9a", False), ("3.0", False), ("3.1", True), ("next-3.5", True), ("master", True)]
)
def test_an_old_tmux_is_said_to_be_too_old(tmp_path: Path, told: str, good: bool) -> None:
    program = tmp_path / "tmux"
    program.write_text(f"#!/bin/sh\necho tmux {told}\n")
    program.chmod(0o700)
    if good:
        assert version_of(str(program)) >= (3, 0)
        return
    with pytest.raises(Unavailable, match="too old"):
        version_of(str(program))


def test_what_a_killed_start_left_is_removed_in_time(tmp_path: Path, desk: Desk) -> None:
    place = desk.socket.parent
    place.mkdir(mode=0o700, exist_ok=True)
    name = f"{tmp_path.name}-{os.getpid()}"  # other test runs on this machine have the same place
    old, new = place / f"{name}-old.door", place / f"{name}-new.door"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    desk.start("run-1", script(FOREVER))
    assert (old.exists(), new.exists()) == (False, True)
    new.unlink()


def test_a_place_for_sockets_that_is_not_ours_is_not_used(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.symlink_to(tmp_path)
    runner = TmuxRunner(tmp_path / "runs", place / "s")
    with pytest.raises(Unavailable, match="somebody else"):
        runner.start("run-1", script("true"))
    assert not runner.look("run-1").known
