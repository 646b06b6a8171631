"""Runs in terminals that a person can see and use: panes of a tmux server of our own."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from covey.core.fleet.launches import Launch, Screen
from covey.errors import Invalid, Refused, ToolFailed, Unavailable
from covey.files import write_whole
from covey.runners.activity import process
from covey.runners.control import Answer, Connection, Control
from covey.runners.process import (
    RUN_ID,
    START_TIMEOUT_S,
    ProcessRunner,
    check_typed,
    wrapper_command,
    wrapper_environment,
)
from covey.runners.watching import FEATURES, Size, Watch
from covey.values import dataclass

COLUMNS, ROWS = 200, 50
RUN_TERM = "screen-256color"
"""What a program finds in TERM; nearly every system knows it."""
OLDEST_TMUX = (3, 1)
WITH_FEATURES = (3, 2)
"""The first one that can be told what a terminal understands."""
TMUX_TIMEOUT_S = 10.0
REACH_TIMEOUT_S = 2.0
PASSING_SUFFIXES = (".door", ".life")
PASSING_S = 3600
"""How files are called that are needed for a moment, and when nobody needs them any more."""
RETRY_PAUSE_S = 0.02
HISTORY_LINES = 5_000

SETTINGS = (
    ("-gq", "history-limit", str(HISTORY_LINES)),
    ("-gq", "default-terminal", RUN_TERM),
    ("-gq", "default-shell", "/bin/sh"),
    ("-gq", "update-environment", ""),
    ("-gq", "remain-on-exit", "off"),
    ("-gq", "detach-on-destroy", "on"),
    ("-gq", "status-left-length", "60"),
    ("-gq", "status-left", " #{session_name} "),
    ("-gq", "status-right", " C-b d leaves, and it goes on "),
    ("-gq", "window-status-format", ""),
    ("-gq", "window-status-current-format", ""),
    ("-sq", "escape-time", "10"),
    ("-sq", "exit-empty", "on"),
)
"""How our server is set, whatever the user's own configuration says."""

HUB = "+covey"
"""How the sessions of our own connections are called; no run is called so."""
KEEPER = 'exec <"$0"; rm -f "$0"; read client; read end; grep -qF "$1" "/proc/$client/cmdline" && kill -9 "$client"'
"""What runs in such a session: it lives as long as we do, and ends the client that we leave behind.

tmux waits for ever for a client in control mode whose words nobody takes any more, and would not end itself.
"""
SIZE = "@covey-size"
SHORT_TEMPORARY = "/tmp"
"""A folder with a short name that is on every machine: the name of a socket has 107 bytes at most."""
HOME = "sockets"
"""The file that names the folder of a project's sockets, where it is not the usual one."""
"""An option of a run's session: the size that it has while no person uses it."""
LOOK = "\t".join(
    f"#{{{name}}}"
    for name in (
        "session_name",
        "pane_id",
        "window_activity",
        "window_width",
        "window_height",
        SIZE,
        "history_size",
        "pane_width",
        "pane_height",
        "cursor_x",
        "cursor_y",
        "pane_title",
    )
)
KEY = re.compile(
    r"(?:[CMS]-){0,3}(?:[A-Za-z0-9/?.,:+=_@-]|Enter|Escape|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End"
    r"|PageUp|PageDown|PPage|NPage|IC|DC|F[1-9]|F1[0-2])"
)
CLIENTS = "list-clients -F '#{client_readonly} #{client_session}'"
KEYS_PER_COMMAND_BYTES = 2048
"""Bytes of keys that fit into one command."""
UNTYPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What must not be typed: a text could end the paste with it, and go on as keys."""


@dataclass(frozen=True)
class Pane:
    """A run's pane, as the server describes it."""

    id: str
    activity: int
    """The second in which something last came out of it."""
    place: tuple[str, ...]
    """What else can tell that its screen changed."""
    height: int
    column: int
    row: int
    title: str


class TmuxRunner(ProcessRunner):
    """Runs with and without a terminal in a folder; whoever opens the same folder later finds them all again."""

    def __init__(
        self,
        folder: Path,
        socket: Path | None = None,
        *,
        columns: int = COLUMNS,
        rows: int = ROWS,
        program: str = "tmux",
    ) -> None:
        super().__init__(folder)
        self._socket = str(socket or socket_of(folder))
        self._program = program
        self._size = columns, rows
        self._control = Control(self._connect)
        self._screens: dict[str, tuple[Pane, int, Screen]] = {}
        self._looking = threading.Lock()
        self._writers: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._version: tuple[int, int] | None = None

    # What other runners do too

    def start(self, run_id: str, launch: Launch) -> None:
        """Start a run, in a pane of its own if it wants a terminal; one that was started already is left alone."""
        if not launch.terminal:
            super().start(run_id, launch)
            return
        env = {name: value for name, value in launch.env.items() if name not in ("TMUX", "TMUX_PANE")}
        adapted = replace(launch, env=env | {"TERM": RUN_TERM})
        self.begin(run_id, adapted, lambda run, letter: self._call_wrapper(run, letter, launch.cwd))

    def type(self, run_id: str, text: str) -> None:
        """Let a line arrive at the run's input: pasted and entered where it has a terminal, whatever that shows."""
        if not self._has_terminal(run_id):
            super().type(run_id, text)
            return
        self.paste(run_id, text)
        self.press(run_id, "Enter")

    def finish(self, run_id: str) -> None:
        """Let the run's input end; in a terminal by the key for it, which a program may take for something else."""
        if not self._has_terminal(run_id):
            super().finish(run_id)
            return
        with contextlib.suppress(Refused):
            self.press(run_id, "C-d")

    def forget(self, run_id: str) -> None:
        """Remove what is only needed while a run lives, and keep its output; one that lives is not forgotten."""
        had_terminal = self._has_terminal(run_id)
        super().forget(run_id)
        if had_terminal and self._server_lives():
            self._tmux("kill-session", "-t", f"={_session(run_id)}")  # A person may have opened windows beside it.

    def unwatched(self) -> dict[str, float]:
        """Return the runs that still have a session of our server while none lives and nobody looks, and since when."""
        if not self._server_lives():
            return {}
        told = self._tmux("list-sessions", "-F", "#{session_attached} #{session_activity} #{session_name}")
        lines = (line.split(" ", 2) for line in told.stdout.decode(errors="replace").splitlines())
        found = {_run_of(name): (used, float(at or 0)) for used, at, name in lines}
        free = {run: at for run, (used, at) in found.items() if used == "0" and RUN_ID.fullmatch(run)}
        return {run: at for run, at in free.items() if not self.look(run).alive}

    def end_unwatched(self, run_id: str) -> bool:
        """End the session that is left of a run, unless somebody uses it by now; say whether it is gone."""
        if run_id not in self.unwatched():
            return False
        self._tmux("kill-session", "-t", f"={_session(run_id)}")
        return run_id not in self.unwatched()

    # What only a terminal has

    def screen(self, run_id: str) -> Screen | None:
        """Return what the terminal of a run shows now, None if it has none or is gone."""
        if not self.look(run_id).alive or not self._has_terminal(run_id) or not self._reach([run_id]):
            return None
        return self.screens().get(run_id)

    def screens(self) -> dict[str, Screen]:
        """Return what all terminals show now; only those that changed since the last look are read."""
        with self._looking:
            if not self._reach(list(self._screens)):
                self._screens.clear()
                return {}
            panes = self._panes()
            now = int(time.time())  # Taken before: what comes out from here on is seen by the next look.
            changed = [run for run, pane in panes.items() if self._may_differ(run, pane)]
            for run, screen in self._capture({run: panes[run] for run in changed}).items():
                self._screens[run] = panes[run], now, screen
            for run in self._screens.keys() - panes.keys():
                del self._screens[run]
            return {run: screen for run, (_, _, screen) in self._screens.items()}

    def paste(self, run_id: str, text: str) -> None:
        """Let a text arrive at a run's terminal as one paste, without what could act as a key; Enter is not pressed."""
        pane = self._listening(run_id)
        data = UNTYPED.sub("", text.replace("\r\n", "\n")).encode(errors="replace")
        check_typed(data)
        if not data:
            return
        name = f"covey-{secrets.token_hex(8)}"
        words = ["load-buffer", "-b", name, "-", ";", "paste-buffer", "-p", "-r", "-d", "-b", name, "-t", pane]
        ended = self._tmux(*words, given=data)
        if ended.returncode:
            self._tmux("delete-buffer", "-b", name)
            raise self._refusal(run_id, ended)

    def press(self, run_id: str, key: str) -> None:
        """Press one key in a run's terminal, by its name: Enter, Escape, C-c, Up, y."""
        if not KEY.fullmatch(key):
            raise Invalid(f"{key!r} is not a key.", hint="Enter, Escape, Tab, Up, C-c, F1, or one letter.")
        pane = self._listening(run_id)
        (mode,) = self._control.ask(f"display-message -p -t {pane} '#{{pane_in_mode}}'")
        if mode.good and mode.lines[:1] == ["1"]:  # A person scrolls back: the key would go there.
            self._control.ask(f"send-keys -t {pane} -X cancel")
        (pressed,) = self._control.ask(f"send-keys -t {pane} '{key}'", again=False)
        if not pressed.good:
            raise _no_terminal(run_id)

    def attach_command(self, run_id: str) -> list[str]:
        """Return the command that shows a run in a person's terminal, from inside of another tmux too.

        It takes the size of that terminal as long as the person uses it.
        """
        self._terminal(run_id)
        session, words = f"={_session(run_id)}", ["env", "-u", "TMUX", *self._command()]
        sized = ["set-option", "-w", "-t", f"{session}:", "window-size", "latest", ";"]
        return [*words, *sized, "attach-session", "-t", session]

    def is_used(self, run_id: str) -> bool:
        """Say whether a person can type at the terminal of a run now; who only looks does not use it."""
        try:
            self._terminal(run_id)
        except Refused:
            return False
        if self._writers[run_id]:
            return True
        (told,) = self._control.ask(CLIENTS)
        return run_id in _used(told)

    # What viewers of a terminal have

    def watch(self, run_id: str) -> Watch:
        """Begin to look at the terminal of a run, in its own size; it never notices."""
        self._terminal(run_id)
        size = self.sizes().get(run_id)
        if size is None:
            raise _no_terminal(run_id)
        self._check()
        features = ["-T", FEATURES] if self._version and self._version >= WITH_FEATURES else []
        command = [*self._command(), *features, "attach-session", "-r", "-t", f"={_session(run_id)}"]
        return Watch(command, _environment(), size)

    def sizes(self) -> dict[str, Size]:
        """Return how large the terminals of all runs are now."""
        if not self._server_lives():
            return {}
        (told,) = self._control.ask("list-windows -a -F '#{session_name} #{window_width} #{window_height}'")
        found: dict[str, Size] = {}
        for line in told.lines if told.good else ():
            session, columns, rows = line.rsplit(" ", 2)
            found.setdefault(_run_of(session), Size(int(columns), int(rows)))
        return found

    def begin_typing(self, run_id: str) -> None:
        """Count one more person who types at the terminal of a run: nothing else types there meanwhile."""
        self._listening(run_id)
        with self._counting:
            self._writers[run_id] += 1

    def end_typing(self, run_id: str) -> None:
        """Count one person less."""
        with self._counting:
            self._writers -= Counter({run_id: 1})  # what is left are those with somebody

    def keys(self, run_id: str, data: bytes) -> None:
        """Let what a person typed arrive at a run's terminal, byte for byte; no key has a meaning on the way."""
        check_typed(data)
        pane = self._listening(run_id)
        words = [data[i : i + KEYS_PER_COMMAND_BYTES].hex(" ") for i in range(0, len(data), KEYS_PER_COMMAND_BYTES)]
        scrolled = f"send-keys -t {pane} -X cancel"  # An error where nobody scrolls back, and then of no matter.
        answers = self._control.ask(scrolled, *(f"send-keys -t {pane} -H {each}" for each in words), again=False)
        if not all(answer.good for answer in answers[1:]):
            raise _no_terminal(run_id)

    def close(self) -> None:
        """Let go of the server; it lives on as long as a run is in it."""
        self._control.close()

    # Starting

    def _call_wrapper(self, run: str, letter: bytes, cwd: str) -> str:
        """Start a wrapper in a new pane, hand it a letter at a door that only we know, and return its answer."""
        self._check()
        _make_private(os.path.dirname(self._socket))
        self._reach(list(self._screens))  # A second server beside one that lost its socket would hide it.
        door = f"{os.path.dirname(self._socket)}/{secrets.token_hex(8)}.door"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(door)
            try:
                listening.listen(1)
                problem = self._open_pane(run, wrapper_command(run, door), cwd)
                return problem or self._hand_over(run, listening, letter)
            finally:
                os.unlink(door)

    def _open_pane(self, run: str, command: list[str], cwd: str) -> str:
        """Make a session that runs a command, and return why that failed; nothing, if it did not."""
        name, (columns, rows) = _session(os.path.basename(run)), map(str, self._size)
        words = [word for setting in SETTINGS for word in ("set-option", *setting, ";")]
        words += ["new-session", "-d", "-s", name, "-x", columns, "-y", rows]
        words += ["-c", _literal(cwd.replace("#", "##")), "--", *map(_literal, command), ";"]
        words += ["resize-window", "-t", f"={name}:", "-x", columns, "-y", rows, ";"]  # Only we resize it, and people.
        words += ["set-option", "-t", f"={name}:", SIZE, f"{columns}x{rows}"]
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            ended = self._tmux(*words)
            if ended.returncode == 0 or os.path.lexists(f"{run}/started"):
                return ""
            if time.monotonic() > deadline:
                return f"failed {ended.stderr.decode(errors='replace').strip() or 'tmux failed'}"
            time.sleep(RETRY_PAUSE_S)  # Somebody else is starting it, or the server was just about to end.

    def _hand_over(self, run: str, listening: socket.socket, letter: bytes) -> str:
        talk = self._visitor(run, listening)
        if talk is None:
            return ""
        with talk:
            talk.settimeout(START_TIMEOUT_S)
            talk.sendall(letter)
            talk.shutdown(socket.SHUT_WR)
            said = b""
            while part := talk.recv(4096):
                said += part
            return said.decode(errors="replace")

    def _visitor(self, run: str, listening: socket.socket) -> socket.socket | None:
        """Wait for the wrapper at the door, as long as it can still come."""
        deadline = time.monotonic() + START_TIMEOUT_S
        listening.settimeout(0.5)
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                return listening.accept()[0]
            if os.path.lexists(f"{run}/started"):
                break  # it went to the door of another who started it too
            if self._tmux("has-session", "-t", f"={_session(os.path.basename(run))}").returncode:
                break
        return None

    def _check(self) -> None:
        """Refuse if there is no tmux, or one that is too old."""
        if self._version is None:
            self._version = version_of(self._program)

    # Asking

    def _command(self) -> list[str]:
        return [self._program, "-u", "-S", self._socket, "-f", "/dev/null"]

    def _connect(self) -> Connection:
        """Return a connection with a session of its own, which ends with this process, so that it keeps no server."""
        # Not by destroy-unattached: tmux 3.3 can crash when the client of such a session was killed before.
        name = f"{HUB}-{os.getpid()}-{secrets.token_hex(4)}"
        path = f"{os.path.dirname(self._socket)}/{secrets.token_hex(8)}.life"
        os.mkfifo(path, 0o600)
        lifeline = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        try:
            waits = ["/bin/sh", "-c", KEEPER, path, name]
            made = self._tmux("new-session", "-d", "-s", name, "-x", "80", "-y", "24", "--", *waits)
            if made.returncode:
                raise ConnectionError(made.stderr.decode(errors="replace").strip())
            return Connection([*self._command(), "-C", "attach-session", "-t", f"={name}"], _environment(), lifeline)
        except (OSError, Unavailable):
            os.close(lifeline)
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise

    def _tmux(self, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run tmux once, and return how that ended."""
        try:
            return subprocess.run(
                [*self._command(), *words],
                input=given,
                capture_output=True,
                check=False,
                timeout=TMUX_TIMEOUT_S,
                cwd="/",
                env=_environment(),
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable("tmux does not answer.", hint="Its server may hang; try it again.") from None
        except OSError as error:
            raise _missing(self._program, error) from None

    def _server_lives(self) -> bool:
        """Say whether there is a server, without starting one."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(TMUX_TIMEOUT_S)
            try:
                asked.connect(self._socket)
            except OSError:
                return False
        return True

    def _reach(self, runs: Iterable[str]) -> bool:
        """Say whether there is a server; one whose socket somebody removed is told to make it again."""
        if self._server_lives():
            return True
        servers = {server for run in runs if (server := self._server_of(run)) is not None}
        if servers:
            _make_private(os.path.dirname(self._socket))
        for server in servers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(server, signal.SIGUSR1)
        deadline = time.monotonic() + REACH_TIMEOUT_S
        while servers and not self._server_lives() and time.monotonic() < deadline:
            time.sleep(RETRY_PAUSE_S)
        return bool(servers) and self._server_lives()

    def _server_of(self, run_id: str) -> int | None:
        """Return the server in which a run lives: the parent of its wrapper, as long as there is one."""
        wrapper = self.holder(run_id)
        about = process(wrapper) if wrapper else None
        try:
            name = Path(f"/proc/{about.parent}/comm").read_text() if about else ""
        except OSError:
            return None
        return about.parent if about and name.startswith("tmux") else None

    def _has_terminal(self, run_id: str) -> bool:
        return os.access(f"{self.folder_of(run_id)}/terminal", os.F_OK)

    def _listening(self, run_id: str) -> str:
        """Return the pane of a run whose program reads what is typed there."""
        pane, listens = self._terminal(run_id)
        if listens != "1":
            raise Refused(f"Run {run_id} takes no input.", hint="Its input was given when it was started.")
        return pane

    def _terminal(self, run_id: str) -> tuple[str, str]:
        """Return the pane of a run that lives in one, and "1" if its program reads what is typed there."""
        run = self.folder_of(run_id)
        try:
            pane, listens = Path(run, "terminal").read_text().split()
        except (FileNotFoundError, ValueError):
            raise _no_terminal(run_id) from None
        if not self.look(run_id).alive or not self._reach([run_id]):
            raise _no_terminal(run_id)
        return pane, listens

    def _refusal(self, run_id: str, ended: subprocess.CompletedProcess[bytes]) -> Exception:
        if not self.look(run_id).alive:
            return _no_terminal(run_id)
        return ToolFailed(
            f"tmux failed: {ended.stderr.decode(errors='replace').strip()}.", hint="Look at the run, and try again."
        )

    # Looking

    def _panes(self) -> dict[str, Pane]:
        """Return the panes of all runs: of each session the first, since others are a person's."""
        told, clients = self._control.ask(f"list-panes -a -F '{LOOK}'", CLIENTS)
        used = _used(clients)
        found: dict[str, Pane] = {}
        for line in told.lines:
            session, pane, activity, wide, high, size, *place, column, row, title = line.split("\t", 11)
            run = _run_of(session)
            folder = f"{self._folder}/{run}"  # of a run of ours, and no session of another kind
            is_drawing = os.access(f"{folder}/terminal", os.F_OK) and not os.access(f"{folder}/rc", os.F_OK)
            if not is_drawing or (run in found and int(found[run].id[1:]) < int(pane[1:])):
                continue
            if run not in used and size and size != f"{wide}x{high}":  # a person used it who has left
                self._control.ask("resize-window -t {} -x {} -y {}".format(pane, *size.split("x")))
            found[run] = Pane(
                pane, int(activity), (*place, column, row, title), int(place[2]), int(column), int(row), title
            )
        return found

    def _may_differ(self, run: str, pane: Pane) -> bool:
        """Say whether a pane may show something else than when it was read: in the same second, nobody knows."""
        if run not in self._screens:
            return True
        before, read_at, _ = self._screens[run]
        return pane != before or pane.activity >= read_at

    def _capture(self, panes: dict[str, Pane]) -> dict[str, Screen]:
        """Read some screens, all at once."""
        if not panes:
            return {}
        answers = self._control.ask(*(f"capture-pane -p -t {pane.id}" for pane in panes.values()))
        found = {}
        for (run, pane), answer in zip(panes.items(), answers, strict=True):
            lines = self._lines(pane, answer)
            if lines is not None:
                found[run] = Screen(tuple(lines), pane.column, pane.row, pane.title)
        return found

    def _lines(self, pane: Pane, answer: Answer) -> list[str] | None:
        """Return what a pane shows; an answer of another length is asked for again in a way that no text can spoil."""
        if answer.good and len(answer.lines) == pane.height:
            return answer.lines
        ended = self._tmux("capture-pane", "-p", "-t", pane.id)
        return None if ended.returncode else ended.stdout.decode(errors="replace").split("\n")[:-1]


# The socket


def socket_of(folder: Path) -> Path:
    """Return where the server for a folder listens: always the same place, and short, as a socket's name must be."""
    return _short_name(folder, folder).with_suffix(".sock")


def place_of(run: Path) -> Path:
    """Return where tmux lives that the agent of a run calls itself, so that it meets neither the user's nor ours."""
    return _short_name(run, run.parent)


def make_place(run: Path) -> Path:
    """Make the place in which tmux lives that the agent of a run calls itself."""
    place = place_of(run)
    try:
        _make_private(str(place.parent))
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"{place} cannot be made: {error.strerror}.", hint="Look at the folder, and its owner."
        ) from None
    return place


def _short_name(folder: Path, runs: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]
    return Path(_home(runs)) / name


def _home(runs: Path) -> str:
    """Return the folder of our sockets: the user's own under a name that stays, or one that this project keeps.

    Anybody can make the first before us; then the project has one with a random name, written down beside its runs.
    """
    kept = runs.parent / HOME
    with contextlib.suppress(OSError):
        home = kept.read_text()
        if _is_private(home):
            return home
    usual = f"{SHORT_TEMPORARY}/covey-{os.getuid()}"
    with contextlib.suppress(OSError):
        os.mkdir(usual, 0o700)
    if not os.path.lexists(usual) or _is_private(usual):
        return usual
    home = tempfile.mkdtemp(prefix=f"covey-{os.getuid()}-", dir=SHORT_TEMPORARY)
    write_whole(kept, home)
    return home


def _is_private(folder: str) -> bool:
    try:
        about = os.lstat(folder)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()


def _make_private(folder: str) -> None:
    """Make a folder that is ours alone; refuse one that another user may have made."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not _is_private(folder):
        raise Unavailable(f"{folder} belongs to somebody else.", hint="Remove it, or ask who made it.")
    os.chmod(folder, 0o700)
    for entry in os.scandir(folder):  # What a process left that was killed while it started a run.
        with contextlib.suppress(FileNotFoundError):
            if entry.name.endswith(PASSING_SUFFIXES) and entry.stat().st_mtime < time.time() - PASSING_S:
                os.unlink(entry.path)


def _environment() -> dict[str, str]:
    """Return the environment of the server: what a person needs who opens a window in it, and no secrets."""
    names = ("PATH", "HOME", "USER", "LOGNAME", "LANG")
    return {name: os.environ[name] for name in names if name in os.environ} | wrapper_environment()


# Names


def _used(clients: Answer) -> set[str]:
    """Return the runs at whose terminals somebody can type, by the clients that there are."""
    told = [line.partition(" ") for line in clients.lines if clients.good]
    return {_run_of(session) for reads, _, session in told if reads == "0"}


def _session(run_id: str) -> str:
    return run_id.replace(".", "~")  # tmux has another use for dots.


def _literal(word: str) -> str:
    """Return a word as tmux takes it for one: at its end, a semicolon would begin the next command."""
    return f"{word[:-1]}\\;" if word.endswith(";") else word


def _run_of(session: str) -> str:
    return session.replace("~", ".")


# The program


def version_of(program: str) -> tuple[int, int]:
    """Return the version of tmux; refuse if there is none, or one that is too old."""
    try:
        told = subprocess.run([program, "-V"], capture_output=True, check=False, timeout=TMUX_TIMEOUT_S, text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _missing(program, error) from None
    found = re.search(r"(\d+)\.(\d+)", told.stdout)
    version = (int(found[1]), int(found[2])) if found else (999, 0)  # Built from its sources: "tmux master".
    if version < OLDEST_TMUX:
        raise Unavailable(
            f"{told.stdout.strip()} is too old.", hint=f"Install tmux {OLDEST_TMUX[0]}.{OLDEST_TMUX[1]} or a later one."
        )
    return version


def _missing(program: str, error: Exception) -> Unavailable:
    if shutil.which(program) is None:
        return Unavailable(
            "tmux is not installed.", hint="Install the package tmux, or let sessions run as plain processes."
        )
    return Unavailable(f"tmux could not be called: {error}.", hint="Look at the limits of the machine, and try again.")


def _no_terminal(run_id: str) -> Refused:
    return Refused(
        f"Run {run_id} has no terminal now.", hint="Only a run that lives in tmux has one; look whether it does."
    )
