"""The program that holds one run: it outlives whoever asked for the run, and ends after everything of the run has.

It is started by its path, with `python -I -S`, and imports little and nothing of covey, so that it starts in a few
milliseconds. It takes the launch from standard input and answers on standard output; see `process.py`, which calls it.

For a run in a terminal it is what lives in the pane (see `tmux.py`): it takes the launch from a socket instead, and
gives the program a terminal of its own. All that the program draws goes through here, so the log is whole when the run
ends, and a key that a person types can signal only the program.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import fcntl
import marshal
import os
import select
import signal
import sys
import termios
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # What only the types need is not worth its milliseconds.
    from collections.abc import Callable, Iterable
    from typing import NoReturn

    from covey.runners.door import Door

STOPPED_GRACE_S = 5.0
"""Seconds that a run has to end after it was told to."""
LEFT_GRACE_S = 2.0
"""Seconds that what a program left behind has to end after the program did."""
DRAWN_GRACE_S = 2.0
"""Seconds that a terminal has to show the last that was drawn."""
OTHER_WRAPPER_TIMEOUT_S = 10.0
"""Seconds that another wrapper of the same run has to say that it began."""

FINISH = signal.SIGURG
"""Close the input. A wrapper that does not know this one yet is not killed by it."""
HEARD = (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, FINISH)
HEARD_IN_A_TERMINAL = (*HEARD, signal.SIGHUP, signal.SIGWINCH)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
INPUT_BYTES = 1 << 20
RELAY_BYTES = 1 << 16
NOT_STARTED_EXIT_CODE = 127

FLOOD_LOOK_S = 0.1
"""Seconds between two looks at the size of an output that has a limit."""

Launch = tuple[list[bytes], bytes, dict[bytes, bytes], bytes | None, bool, bool, int, list[tuple[object, ...]]]
"""argv, cwd, environment, standard input, typed, apart, most bytes of output, layers."""
OLD_ENDS: tuple[object, ...] = (0, [])
"""How a launch ends of a daemon older than this file, which does not know these."""

libc = ctypes.CDLL(None)


def main(folder: str, door: str = "") -> None:
    """Hold the run of a folder: begin it if nobody ever did, and stay until nothing of it is left."""
    screen = go_to(door) if door else None
    letter = marshal.loads(read_all(0))
    launch: Launch = (*letter, *OLD_ENDS[len(letter) - 6 :])
    if screen is None and os.fork():
        os._exit(0)  # Our parent waits for this process, and init for the one that stays.
    # Before the lock: whoever finds its holder may signal at once.
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD if screen is None else HEARD_IN_A_TERMINAL)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.chdir(folder)
    try:
        run = None if not take_lock() else begin(folder, launch, screen)
    except OSError as error:
        answer(f"failed {error.strerror}")
        return
    answer("done")
    if run is not None:
        run.hold()
        run.finish()


def go_to(door: str) -> int:
    """Talk to whoever waits at a socket from now on, and return the terminal that we were started in."""
    from _socket import AF_UNIX, SOCK_STREAM, socket  # Not `socket`, for the sake of milliseconds.

    screen = os.dup(0)
    talk = socket(AF_UNIX, SOCK_STREAM)
    talk.connect(door)
    for file in (0, 1):
        os.dup2(talk.fileno(), file)
    talk.close()
    return screen


def take_lock() -> bool:
    """Take the lock of the run for the life of this process; false if the run began, or must not begin any more."""
    # A record lock belongs to this process alone: no child inherits it, and asking who holds it does not disturb it.
    lock = os.open("lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + OTHER_WRAPPER_TIMEOUT_S
    while True:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            if time.monotonic() > deadline:
                raise
        else:
            return not os.path.lexists("started")
        if os.path.lexists("started"):
            return False
        time.sleep(0.002)


def begin(folder: str, launch: Launch, screen: int | None) -> Run | None:
    """Start the program, unless the run was stopped meanwhile; the run then counts as started, even if that fails."""
    argv, cwd, env, stdin, typed, apart, most, layers = launch
    env[b"COVEY_RUN"] = os.path.basename(folder).encode(errors="surrogateescape")
    env[b"COVEY_RUN_FOLDER"] = folder.encode(errors="surrogateescape")
    door = open_door(folder, argv, env)
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    errors = os.open("errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if apart else output
    terminal = None if screen is None else Terminal(screen, output)
    pipe = Pipe(output) if most and terminal is None and not apart else None
    drawn = terminal.theirs if terminal is not None else pipe.theirs if pipe is not None else output
    source, kept = open_input(stdin, terminal, typed=typed)
    if terminal is not None:
        terminal.note()
    if not note_start():
        return None
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    lay_all = beside("layers").lay_all if layers else None  # type: ignore[attr-defined]
    before = None if lay_all is None else lambda: lay_all(layers)
    files = (source, drawn, errors if apart else drawn)
    pid, problem = spawn(lambda wrapper, told: become(argv, cwd, env, files, wrapper, told, terminal, before))
    os.close(source)
    if door is not None:
        door.begin()
    if problem:
        write_if_possible("failure", problem)
    if pipe is not None:
        pipe.begin()
    if terminal is not None:
        terminal.begin()
    return Run(pid, (output, errors), kept, terminal, most, pipe, is_started=not problem)


def open_input(stdin: bytes | None, terminal: Terminal | None, *, typed: bool) -> tuple[int, int | None]:
    """Return what the program reads from, and the end at which more can be typed, if that is ours to keep."""
    if terminal is not None and (typed or stdin is None):
        terminal.typed = stdin or b""
        terminal.listens = True
        return os.dup(terminal.theirs), None
    if typed:
        return open_typed(stdin or b"")
    return open_given(stdin), None


def open_door(folder: str, argv: list[bytes], env: dict[bytes, bytes]) -> Door | None:
    """Open an address at which the run asks covey while it lives, and put it wherever the launch leaves room for it."""
    nowhere, credential = b"http://127.0.0.1:0", env.get(b"COVEY_PROOF", b"").decode()
    if env.get(b"COVEY_URL") != nowhere or not credential:
        return None
    door: Door = beside("door").Door(folder, credential)  # type: ignore[attr-defined]
    argv[:] = [word.replace(nowhere + b"/", door.url + b"/") for word in argv]
    env[b"COVEY_URL"] = door.url
    return door


def beside(name: str) -> object:
    """Return a module that lies beside this file, which only some runs need."""
    sys.path.append(os.path.dirname(__file__))
    try:
        return __import__(name)
    finally:
        sys.path.pop()


def note_start() -> bool:
    """Note on the disk that the run begins, before anything is done, so that it never begins twice."""
    try:
        os.symlink(str(os.getpid()), "started")  # A link is made whole, and once: by us, or by whoever stops the run.
    except FileExistsError:
        return False
    sync_folder(".")
    sync_folder("..")
    return True


def open_given(text: bytes | None) -> int:
    """Return an input that holds a text and then ends."""
    if not text:
        return os.open("/dev/null", os.O_RDONLY)
    given = os.memfd_create("input")
    write_all(given, text)
    os.lseek(given, 0, os.SEEK_SET)
    return given


def open_typed(text: bytes) -> tuple[int, int]:
    """Return an input that holds a text, and its other end: until that is closed it stays open for what is typed."""
    remove("input")
    os.mkfifo("input", 0o600)
    source = os.open("input", os.O_RDONLY | os.O_NONBLOCK)
    kept = os.open("input", os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(source, True)
    with contextlib.suppress(OSError):  # The user's pipes are over their limit: it stays at its usual size.
        fcntl.fcntl(kept, fcntl.F_SETPIPE_SZ, INPUT_BYTES)
    write_all(kept, text)
    return source, kept


def spawn(become: Callable[[int, int], NoReturn]) -> tuple[int, bytes]:
    """Start the program, and return its pid and why it could not be executed, if so."""
    heard, told = os.pipe()
    wrapper = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        return 0, f"No process could be started: {error.strerror}.".encode()
    if pid == 0:
        become(wrapper, told)
    os.close(told)
    problem = read_all(heard)
    os.close(heard)
    return pid, problem


def become(
    argv: list[bytes],
    cwd: bytes,
    env: dict[bytes, bytes],
    files: tuple[int, ...],
    wrapper: int,
    told: int,
    terminal: Terminal | None,
    before: Callable[[], None] | None,
) -> NoReturn:
    """Become the program, in a session of its own, and die with the wrapper."""
    problem = cwd
    try:
        os.setsid()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != wrapper:
            os._exit(NOT_STARTED_EXIT_CODE)  # It died before we asked to be told.
        for number in signal.valid_signals():
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if terminal is not None:
            fcntl.ioctl(terminal.theirs, termios.TIOCSCTTY, 0)
        for target, file in enumerate(files):
            os.dup2(file, target)
        if before is not None:
            before()
        os.chdir(cwd)
        problem = argv[0]
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        name = problem.decode(errors="replace")
        os.write(told, f"{name} could not be started: {error.strerror}.".encode(errors="replace")[:4000])
    finally:
        os._exit(NOT_STARTED_EXIT_CODE)


class Run:
    """The program and everything that it started, all of it below this process."""

    def __init__(
        self,
        pid: int,
        outputs: tuple[int, int],
        kept: int | None,
        terminal: Terminal | None,
        most: int,
        pipe: Pipe | None = None,
        *,
        is_started: bool = True,
    ) -> None:
        self.pid = pid
        self._is_started = is_started
        self.code: int | None = None if pid else NOT_STARTED_EXIT_CODE
        self._outputs = outputs
        self._kept = kept
        self._terminal = terminal
        self._most = most
        self._pipe = pipe
        self._lost = False
        self._heard = HEARD if terminal is None else HEARD_IN_A_TERMINAL
        self._deadline: float | None = None
        self._told: set[int] = set()
        self._kills = 0

    def hold(self) -> None:
        """Stay until nothing of the run is left, and do what signals ask for."""
        while self._reap():
            if self.code is not None and self._deadline is None:
                self._end(LEFT_GRACE_S)
            heard = self._listen()
            if heard == signal.SIGTERM and self._deadline is None:
                self._end(STOPPED_GRACE_S)
            elif heard == signal.SIGUSR1 and self._deadline is None:
                stand_still()
            elif heard == signal.SIGUSR2 and self._deadline is None:
                go_on()
            elif heard == FINISH:
                self._close_input()
            elif heard and self._terminal is not None:
                self._terminal.fit()
                if self._terminal.closed and self._deadline is None:
                    self._lost = True
                    self._end(STOPPED_GRACE_S)

    def finish(self) -> None:
        """Say how the run ended, after its last output is on the disk."""
        remove("held")
        if self._is_started:
            remove("failure")  # which only the program itself can have made
        self._close_input()
        if self._terminal is not None:
            self._terminal.end()
        if self._pipe is not None:
            self._pipe.end()
        for file in self._outputs:
            with contextlib.suppress(OSError):
                os.fsync(file)
        if self._lost:
            return  # Its terminal was taken away, so the program did not end as it would have.
        times = os.times()
        spent = times.children_user + times.children_system
        # Without it, the run is seen to have ended by the lock.
        write_if_possible("rc", b"%d %.2f\n" % (self.code or 0, spent))

    def _reap(self) -> bool:
        """Bury the dead; false when nobody is left. Who loses its parent becomes our child, so nobody is overlooked."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.code = os.waitstatus_to_exitcode(status)

    def _close_input(self) -> None:
        """Let nobody type any more, and the program read the end of file after what was typed."""
        remove("input")
        if self._kept is not None:
            os.close(self._kept)
            self._kept = None

    def _end(self, grace: float) -> None:
        self._deadline = time.monotonic() + grace
        self._told = set(tell_all(signal.SIGTERM))
        go_on()  # What stands still could not hear it.

    def _listen(self) -> int:
        """Wait for a signal; once the grace is over, kill, again and again, and wait a moment."""
        if self._deadline is None:
            return self._listen_for_long() if self._most else signal.sigwaitinfo(self._heard).si_signo
        patience = self._deadline - time.monotonic()
        if patience > 0:
            self._tell_orphans()
        else:
            tell_all(signal.SIGKILL)
            kill_children()
            self._kills += 1
            patience = min(0.005 * self._kills, 1.0)
        heard = signal.sigtimedwait(self._heard, patience)
        return 0 if heard is None else heard.si_signo

    def _tell_orphans(self) -> None:
        """Tell those to end too that were about to begin when all were told, and whose parents have ended since."""
        family = descendants()
        for pid in [pid for pid, parent in family.items() if parent == os.getpid() and pid not in self._told]:
            tell(pid, signal.SIGTERM, family)
            self._told.add(pid)

    def _listen_for_long(self) -> int:
        """Wait for a signal, and end the run at once if it prints more than it may."""
        while (heard := signal.sigtimedwait(self._heard, FLOOD_LOOK_S)) is None:
            if os.fstat(self._outputs[0]).st_size > self._most:
                self._end(0.0)
                return 0
        return heard.si_signo


class Pipe:
    """Between a program and the log of all that it prints: whoever writes to /dev/stderr would empty a file."""

    def __init__(self, log: int) -> None:
        self._log = log
        self._ours, self.theirs = os.pipe()
        self._over = _thread.allocate_lock()
        self._over.acquire()

    def begin(self) -> None:
        """Carry what is printed, beside what else this process does."""
        os.close(self.theirs)
        _thread.start_new_thread(self._carry, ())

    def end(self) -> None:
        """Return when all that was printed is in the log; nobody is left who could print."""
        self._over.acquire(timeout=2 * DRAWN_GRACE_S)

    def _carry(self) -> None:
        try:
            while printed := os.read(self._ours, RELAY_BYTES):
                with contextlib.suppress(OSError):  # A full disk: the program goes on.
                    os.write(self._log, printed)
        finally:
            self._over.release()


class Terminal:
    """The terminal of the program: between it and the one that we were started in, so that nothing passes unlogged."""

    def __init__(self, screen: int, log: int) -> None:
        self.closed = False
        """The outer terminal is gone: nobody can see the program any more."""
        self.listens = False
        """What is typed here reaches the program."""
        self.typed = b""
        self._screen = screen
        self._log = log
        self._drawn = b""
        self._ours, self.theirs = os.openpty()
        self._over = _thread.allocate_lock()
        self._over.acquire()
        termios.tcsetattr(self.theirs, termios.TCSANOW, termios.tcgetattr(screen))
        make_raw(screen)
        self.fit()
        for file in (self._screen, self._ours):
            os.set_blocking(file, False)

    def note(self) -> None:
        """Note on the disk in which pane the run lives, for whoever wants to type or to look."""
        write_whole("terminal", b"%s %d\n" % (os.environb.get(b"TMUX_PANE", b"%"), self.listens))

    def begin(self) -> None:
        """Carry what is drawn and what is typed, beside what else this process does."""
        _thread.start_new_thread(self._carry, ())

    def fit(self) -> None:
        """Make it as large as the outer one."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._ours, termios.TIOCSWINSZ, fcntl.ioctl(self._screen, termios.TIOCGWINSZ, bytes(8)))

    def end(self) -> None:
        """Return when all that was drawn is in the log; nobody is left who could draw."""
        os.close(self.theirs)  # Open until now: a program may let go of its terminal and open it again.
        self._over.acquire(timeout=2 * DRAWN_GRACE_S)

    def _carry(self) -> None:
        try:
            while not self._carry_some():
                pass
            deadline = time.monotonic() + DRAWN_GRACE_S
            while self._drawn and not self.closed and (patience := deadline - time.monotonic()) > 0:
                self._wait(patience)
                self._show()
        finally:
            self._over.release()

    def _carry_some(self) -> bool:
        """Carry what there is, or wait for more; return whether the last is in the log."""
        ready = self._wait(None)
        if ready.get(self._screen, 0) & (select.POLLHUP | select.POLLERR):
            self._close()
        self._show()
        if ready.get(self._screen, 0) & select.POLLIN:
            self.typed += read_some(self._screen) or b""
        self.typed = written_now(self._ours, self.typed) or b""
        # Who stops drawing for good leaves a rest, which is logged even if the screen cannot keep up.
        if not ready.get(self._ours, 0) & (select.POLLIN | select.POLLHUP):
            return False
        drawn = read_some(self._ours)
        if drawn is None:
            return True
        with contextlib.suppress(OSError):  # A full disk: the program goes on, and can be seen.
            write_all(self._log, drawn)
        self._drawn += b"" if self.closed else drawn
        return False

    def _wait(self, patience: float | None) -> dict[int, int]:
        """Wait until something can be done: who has not taken what came before gets no more."""
        poll = select.poll()
        poll.register(
            self._ours,
            (select.POLLIN if len(self._drawn) < RELAY_BYTES else 0) | (select.POLLOUT if self.typed else 0),
        )
        if not self.closed:
            poll.register(
                self._screen,
                (select.POLLIN if len(self.typed) < RELAY_BYTES else 0) | (select.POLLOUT if self._drawn else 0),
            )
        return dict(poll.poll(None if patience is None else patience * 1000))

    def _show(self) -> None:
        rest = written_now(self._screen, self._drawn)
        if rest is None:
            self._close()
        else:
            self._drawn = rest

    def _close(self) -> None:
        """Note that the outer terminal is gone, and let the run end."""
        self.closed, self._drawn = True, b""
        os.kill(os.getpid(), signal.SIGHUP)


def make_raw(terminal: int) -> None:
    """Let a terminal hand on every byte as it is."""
    attributes = termios.tcgetattr(terminal)
    attributes[:4] = 0, 0, attributes[2] & ~termios.PARENB | termios.CS8, 0
    attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 1, 0
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)


def read_some(terminal: int) -> bytes | None:
    """Return what can be read now, None if nothing ever will be."""
    try:
        return os.read(terminal, RELAY_BYTES) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None


def written_now(terminal: int, data: bytes) -> bytes | None:
    """Write what can be written now, and return the rest; None if nothing ever will be."""
    try:
        return data[os.write(terminal, data) :] if data else b""
    except BlockingIOError:
        return data
    except OSError:
        return None


def stand_still() -> None:
    """Stop all processes of the run: again until a look finds nobody new and all of them at rest."""
    told: set[int] = set()
    for _ in range(500):
        family = descendants()
        new = set(family) - told
        for pid in new:
            tell(pid, signal.SIGSTOP, family)
        told |= new
        if not new and are_at_rest(family):
            break
        time.sleep(0.002)
    if not write_if_possible("held", b""):
        go_on()  # Nobody could know that it stands still.


def are_at_rest(family: dict[int, int]) -> bool:
    """Say whether all of a family stand still, also one that waits for its new child, which stands before its exec."""
    states = {pid: state_and_parent(pid)[0] for pid in family}
    stopped = {family[pid] for pid, state in states.items() if state in "Tt"}
    return all(state in "TtZX" or (state == "D" and pid in stopped) for pid, state in states.items())


def go_on() -> None:
    """Let all processes of the run go on."""
    tell_all(signal.SIGCONT)
    remove("held")


def tell_all(number: int) -> dict[int, int]:
    """Send a signal to every process of the run, and return them."""
    family = descendants()
    for pid in family:
        tell(pid, number, family)
    return family


def kill_children() -> None:
    """Kill our own children again and again for a moment, faster than one that forks away can become another."""
    for _ in range(100):
        try:
            file = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY)
        except OSError:
            return  # A kernel without this list; the slower way has to do.
        try:
            for pid in os.read(file, 65536).rpartition(b" ")[0].split():
                os.kill(int(pid), signal.SIGKILL)  # Not buried yet, so the number is still its own.
        except OSError:
            return  # One that is not ours to kill.
        finally:
            os.close(file)


def tell(pid: int, number: int, family: Iterable[int]) -> None:
    """Send a signal to a process if it is still the one that we mean."""
    try:
        file = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # A process that got the number meanwhile would have a parent outside of the family.
        parent = state_and_parent(pid)[1]
        if parent == os.getpid() or parent in family:
            signal.pidfd_send_signal(file, number)
    except OSError:
        pass
    finally:
        os.close(file)


def descendants() -> dict[int, int]:
    """Return the processes below this one, each with its parent."""
    parents = {pid: state_and_parent(pid)[1] for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, int] = {}
    waiting = [os.getpid()]
    while waiting:
        parent = waiting.pop()
        below = [pid for pid in children.get(parent, ()) if pid not in found]
        found.update(dict.fromkeys(below, parent))
        waiting += below
    return found


def state_and_parent(pid: int) -> tuple[str, int]:
    """Return the letter of a process's state and its parent; one that is gone is dead and has none."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return "X", -1
    try:
        fields = os.read(file, 4096).rpartition(b")")[2].split()
    except OSError:
        return "X", -1
    finally:
        os.close(file)
    return fields[0].decode(), int(fields[1])


def answer(text: str) -> None:
    """Tell whoever started us, and then let go of them."""
    with contextlib.suppress(OSError):  # Killed meanwhile; the run goes on.
        os.write(1, text.encode())
    nothing = os.open("/dev/null", os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(nothing, file)
    os.close(nothing)


def read_all(file: int) -> bytes:
    """Return all that comes until the end of file."""
    parts = []
    while part := os.read(file, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def write_all(file: int, data: bytes) -> None:
    """Write all of it."""
    while data:
        data = data[os.write(file, data) :]


def write_whole(name: str, data: bytes) -> None:
    """Make a file of the run that is on the disk whole, or not at all."""
    with contextlib.suppress(FileNotFoundError):  # the program may have put a link there
        os.unlink(f"{name}.new")
    file = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        write_all(file, data)
        os.fsync(file)
    finally:
        os.close(file)
    os.rename(f"{name}.new", name)
    sync_folder(".")


def sync_folder(path: str) -> None:
    """Bring the names in a folder to the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_if_possible(name: str, data: bytes) -> bool:
    """Make a file of the run, unless the disk is full: the run is more important than what is said about it."""
    try:
        write_whole(name, data)
    except OSError:
        return False
    return True


def remove(name: str) -> None:
    """Remove a file of the run, if it is there."""
    with contextlib.suppress(OSError):
        os.unlink(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
