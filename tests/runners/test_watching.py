"""Looking at terminals: what reaches a viewer, who may type, and that no viewer changes anything for a program."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from covey.errors import Refused, TooLarge
from covey.runners.process import MAX_TYPED_BYTES
from covey.runners.watching import READ_AT_ONCE_BYTES, Size, Watch
from tests.runners.test_tmux import FOREVER, Desk, code, person, reads, script
from tests.worlds.runners import alive, children, command
from tests.worlds.serving import wait_until

ECHO = "stty -echo; echo here; while read line; do echo got $line; done"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Yield a tmux runner on an empty folder, and leave no server behind."""
    found = Desk(tmp_path / "runs")
    try:
        yield found
    finally:
        found.place.end_all()


class Viewer:
    """Somebody who looks, and keeps all that they saw."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.seen = b""
        self.ended = False

    def take(self) -> bool:
        """Take what there is to see, and say whether there was something."""
        if self.ended or not select.select([self.watch], [], [], 0)[0]:
            return False
        part = self.watch.read()
        self.ended = part == b""
        self.seen += part or b""
        return bool(part)

    def until(self, good: Callable[[bytes], bool], what: str) -> None:
        """Look until what was seen is good."""

        def look() -> bool:
            self.take()
            return good(self.seen)

        wait_until(look, what)

    def sees(self, text: str) -> None:
        """Look until a text shows."""
        self.until(lambda seen: text.encode() in seen, f"{text!r} before a viewer")


@contextlib.contextmanager
def viewer(desk: Desk, run_id: str = "run-1") -> Iterator[Viewer]:
    """Yield somebody who looks at a run."""
    watch = desk.runner.watch(run_id)
    try:
        yield Viewer(watch)
    finally:
        watch.close()


def begin(desk: Desk, text: str = ECHO, run_id: str = "run-1") -> None:
    """Start a run that says that it is there."""
    desk.start(run_id, script(text))
    desk.shows(run_id, "here")


def test_a_viewer_sees_what_was_drawn_and_what_is_drawn_next(desk: Desk) -> None:
    begin(desk)
    with viewer(desk) as one:
        assert one.watch.size == Size(200, 50)
        one.sees("here")
        desk.runner.type("run-1", "hello")
        one.sees("got hello")


def test_keys_arrive_byte_for_byte_and_none_of_them_means_anything_to_tmux(desk: Desk) -> None:
    reader = "import os,sys,tty\ntty.setraw(0)\nprint('here',flush=True)\n"
    reader += "while True:\n d=os.read(0,4096)\n print(repr(d).replace(' ',''),end='\\r\\n',flush=True)\n"
    desk.start("run-1", code(reader))
    desk.shows("run-1", "here")
    for typed in (b"\x02d", b"\x1b[A", b"\x00\x7f\x03", "ü😀".encode(), b"\x1b[200~a;b #{x}\x1b[201~", b"\xff\xfe"):
        desk.runner.keys("run-1", typed)
        desk.shows("run-1", repr(typed).replace(" ", "")[2:-1])


def test_keys_reach_a_program_although_somebody_scrolled_back(desk: Desk) -> None:
    begin(desk)
    desk.tmux("copy-mode", "-t", "=run-1:")
    desk.runner.keys("run-1", b"hello\r")
    desk.shows("run-1", "got hello")


def test_a_long_paste_arrives_whole_and_one_that_is_too_long_not_at_all(desk: Desk, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    begin(desk, f"stty raw -echo; echo here; head -c 40000 > {kept}; echo taken; sleep 1000")
    desk.runner.keys("run-1", b"0123456789" * 4000)
    desk.shows("run-1", "taken")
    assert kept.read_bytes() == b"0123456789" * 4000
    with pytest.raises(TooLarge):
        desk.runner.keys("run-1", b"x" * (MAX_TYPED_BYTES + 1))


def test_no_number_of_viewers_changes_the_size_or_counts_as_use_and_a_writer_does(desk: Desk) -> None:
    begin(desk, "trap 'echo resized' WINCH; echo here; while :; do read line && echo got $line; done")
    with contextlib.ExitStack() as stack:
        viewers = [stack.enter_context(viewer(desk)) for _ in range(5)]
        for each in viewers:
            each.sees("here")
        assert not desk.runner.is_used("run-1")
        desk.runner.begin_typing("run-1")
        desk.runner.begin_typing("run-1")
        desk.runner.end_typing("run-1")
        assert desk.runner.is_used("run-1")
        desk.runner.end_typing("run-1")
        assert not desk.runner.is_used("run-1")
        assert len(desk.shows("run-1", "here").lines) == 50
    assert "resized" not in desk.place.text("run-1")


def test_a_person_who_attaches_uses_it_and_viewers_follow_its_size_there_and_back(desk: Desk) -> None:
    begin(desk, "trap 'stty size' WINCH; echo here; while :; do read line && echo got $line; done")
    with viewer(desk) as one:
        one.sees("here")
        with person([*desk.runner._command(), "attach-session", "-r", "-t", "=run-1"], 70, 20) as terminal:
            reads(terminal, "here")
            assert not desk.runner.is_used("run-1")
        with person(desk.runner.attach_command("run-1"), 80, 24) as terminal:
            reads(terminal, "here")
            wait_until(lambda: desk.runner.sizes()["run-1"] == Size(80, 23), "the person's size")
            assert desk.runner.is_used("run-1")
            one.watch.resize(desk.runner.sizes()["run-1"])
            one.seen = b""
            one.sees("here")
        desk.has_rows("run-1", 50)  # although somebody still looks
        assert desk.runner.sizes()["run-1"] == Size(200, 50)
        assert not desk.runner.is_used("run-1")


def test_a_viewer_of_a_run_that_ends_sees_its_end(desk: Desk) -> None:
    begin(desk, "echo here; read line; echo bye")
    with viewer(desk) as one:
        one.sees("here")
        desk.runner.keys("run-1", b"\r")
        one.until(lambda _: one.ended, "the end")
    assert desk.place.ended("run-1").code == 0
    for ask in (lambda: desk.runner.watch("run-1"), lambda: desk.runner.keys("run-1", b"x")):
        with pytest.raises(Refused):
            ask()


def test_a_viewer_that_takes_nothing_costs_nothing_and_sees_the_newest_screen_when_it_looks_again(desk: Desk) -> None:
    begin(desk, "echo here; read line; seq 1 300000; echo now; sleep 1000")
    with viewer(desk) as one:
        desk.runner.keys("run-1", b"\r")
        desk.shows("run-1", "now")
        server = desk.server()
        wait_until(lambda: not one.take() and b"now" in one.seen, "the newest screen")
        assert len(one.seen) < 4 * 1024 * 1024, "most of it was never shown"
        assert resident(server) < 64 * 1024 * 1024


def resident(pid: int) -> int:
    """Return the bytes of memory that a process uses."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_viewer_that_looked_away_leaves_no_process_behind(desk: Desk) -> None:
    begin(desk)
    with viewer(desk) as one:
        one.sees("here")
        (client,) = [pid for pid in children(os.getpid()) if " -r " in command(pid)]
        os.kill(client, signal.SIGSTOP)
    assert not alive(client)
    assert desk.runner.look("run-1").alive


def test_a_killed_server_is_the_end_for_a_viewer(desk: Desk) -> None:
    begin(desk, FOREVER)
    with viewer(desk) as one:
        one.sees("here")
        os.kill(desk.server(), signal.SIGKILL)
        one.until(lambda _: one.ended, "the end")


def test_who_looks_and_is_killed_leaves_neither_a_client_nor_a_server_behind(desk: Desk) -> None:
    looks = "import sys,time\nfrom pathlib import Path\nfrom covey.runners.tmux import TmuxRunner\n"
    looks += "runner=TmuxRunner(Path(sys.argv[1]))\nwatches=[runner.watch('run-1') for _ in range(4)]\n"
    looks += "print('looks',flush=True)\ntime.sleep(1000)"
    begin(desk)
    words = [sys.executable, "-c", looks, str(desk.folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"looks\n"
        clients = children(other.pid)
        assert len(clients) == 5, "those that look and the one that asks"
        other.kill()
    wait_until(lambda: not any(alive(pid) for pid in clients), "the end of its clients")
    server = desk.server()
    desk.runner.stop("run-1")
    desk.runner.close()
    wait_until(lambda: not alive(server), "the end of the server")


HOSTILE = {
    "the clipboard": b"\x1b]52;c;aGFja2Vk\x07",
    "a link": b"\x1b]8;;javascript:alert(1)\x1b\\here-it-is\x1b]8;;\x1b\\",
    "a title": b"\x1b]2;hacked\x07\x1b]0;hacked\x07\x1bkhacked\x1b\\",
    "a passage": b"\x1bPtmux;\x1b\x1b]52;c;aGFja2Vk\x07\x1b\\",
    "a device": b"\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1b[c\x1b[>c\x1b[6n\x1b[?996n",
    "an image": b"\x1bPq#0;2;0;0;0#0~~@@vv@@~~@@~~$\x1b\\\x1b]1337;File=inline=1:aGFja2Vk\x07",
    "a resize": b"\x1b[8;10;10t\x1b[?3h\x1b[21t",
    "half of a sequence": b"\x1b]52;c;aGFja2Vk",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_only_a_terminal_could_be_hurt_by_does_not_reach_a_viewer(desk: Desk, what: str) -> None:
    text = (
        f"import sys,time\nprint('here',flush=True)\nsys.stdin.readline()\nsys.stdout.buffer.write({HOSTILE[what]!r})\n"
    )
    text += "sys.stdout.buffer.write(b'\\x1b\\\\\\r\\nafter\\r\\n')\nsys.stdout.flush()\ntime.sleep(1000)\n"
    desk.start("run-1", code(text))
    desk.shows("run-1", "here")
    with viewer(desk) as one:
        one.sees("here")
        one.seen = b""
        desk.runner.keys("run-1", b"\r")
        one.sees("after")
        for bad in (b"\x1b]52", b"\x1b]8", b"javascript", b"\x1bP", b"aGFja2Vk", b"\x1b[8;", b"\x1b[?3h", b"\x1b[c"):
            assert bad not in one.seen
    assert desk.runner.sizes()["run-1"] == Size(200, 50)


def test_a_line_of_a_megabyte_and_another_screen_are_only_drawn(desk: Desk) -> None:
    text = "import sys,time\nprint('here',flush=True)\nsys.stdin.readline()\nw=sys.stdout.write\n"
    text += "w('x'*1000000+'end-of-line\\r\\n');w('\\x1b[?1049h\\x1b[2J\\x1b[Hother-screen');sys.stdout.flush()\n"
    text += "sys.stdin.readline()\nw('\\x1b[?1049l\\r\\nback');sys.stdout.flush()\ntime.sleep(1000)\n"
    desk.start("run-1", code(text))
    desk.shows("run-1", "here")
    with viewer(desk) as one:
        desk.runner.keys("run-1", b"\r")
        one.sees("other-screen")
        assert len(one.seen) < 8 * READ_AT_ONCE_BYTES * 16
        desk.runner.keys("run-1", b"\r")
        one.sees("back")
    with viewer(desk) as late:
        late.sees("end-of-line")
