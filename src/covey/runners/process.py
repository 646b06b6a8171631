"""Runs as plain processes, each held by a wrapper that lives longer than we do.

What is started here is known again after a restart of ours. Every method may be called twice, or too late.
"""

from __future__ import annotations

import contextlib
import fcntl
import marshal
import os
import re
import select
import signal
import stat
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path

from covey.core.fleet.launches import Activity, Launch, Observation
from covey.errors import Invalid, Refused, TooLarge, Unavailable
from covey.runners.activity import PAGE_BYTES, Meter, process

WRAPPER = str(Path(__file__).with_name("wrapper.py"))

OUTPUT_CHUNK_BYTES = 256 * 1024
"""Bytes of output that are read at once."""
ERRORS_TAIL_BYTES = 64 * 1024
"""Bytes of the end of what was said on standard error."""
MAX_TYPED_BYTES = 256 * 1024
"""Bytes that may be typed at once."""

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
OBEY_TIMEOUT_S = 10.0
SWEEP_TIMEOUT_S = 2.0
MIN_SWEEP_LOOKS = 10
"""Looks at all processes before a sweep gives up: on a machine that stands still a single one may take seconds."""
TYPE_TIMEOUT_S = 2.0

KEPT_FILES = frozenset(
    {"output", "errors", "rc", "failure", "started", "lock", "lost", "transcript.gz", "journal", "ledger"}
)
"""What is left of a run that has ended; the rest was only needed while it lived."""
STOPPED = "stopped"
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_NOTED = re.compile(rb"(-?\d{1,9})(?:\s+(\d+(?:\.\d*)?(?:e-?\d+)?))?")
LOCK_STRUCT = struct.Struct("hhqqi4x")
"""What fcntl calls `struct flock`: type, whence, start, length, pid."""
WHO_HOLDS = LOCK_STRUCT.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


class ProcessRunner:
    """Runs in a folder; whoever opens the same folder later finds them all again."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.path.realpath(folder)
        self._meter = Meter()

    def start(self, run_id: str, launch: Launch) -> None:
        """Start a run, and return when its program runs or could not be; one that was started already is left alone."""
        if launch.terminal:
            raise Invalid("A plain process has no terminal to draw on.", hint="Let the session run in tmux.")
        self.begin(run_id, launch, _call_wrapper)

    def begin(self, run_id: str, launch: Launch, call: Callable[[str, bytes], str]) -> None:
        """Start a run by a wrapper that is called somehow: it gets the run's folder and a letter, and answers."""
        import subprocess  # no command without a daemon comes here, and all of them start with this module

        run = self.folder_of(run_id)
        letter = _letter(launch)
        if _started(run) is not None:
            return
        try:
            os.makedirs(run, mode=0o700, exist_ok=True)
            answer = call(run, letter)
        except (OSError, subprocess.TimeoutExpired) as error:
            answer = str(error)
        if answer == "done" or _started(run) is not None:
            return
        raise Unavailable(
            f"Run {run_id} could not be started: {answer.removeprefix('failed ') or 'its wrapper was killed'}.",
            hint="Look at the disk and at the limits of the machine, and start it again.",
        )

    def look(self, run_id: str) -> Observation:
        """Return what can be seen of a run now; one whose wrapper was killed is swept up first."""
        run = self.folder_of(run_id)
        code = _read(f"{run}/rc", 0, 32)
        says_ended = bool(code) or _exists(f"{run}/lost")
        if says_ended and str(_holder(run)) != _started(run):  # or the program itself says so, and lives
            return _ended(run, code)
        # In this order: who is past this mark and does not hold the lock has ended. Before it, nothing has begun.
        started = _started(run)
        if started is None:
            return Observation(known=False, alive=False)
        if started == STOPPED:
            return Observation(known=True, alive=False, failure="It was stopped before it had started.")
        if _holder(run) is None:
            return _let_go(run)
        return Observation(known=True, alive=True, size=_length(f"{run}/output"), held=_exists(f"{run}/held"))

    def end_of(self, run_id: str) -> int | None:
        """Return a descriptor of the caller's own that can be read once the run has ended; None if it has."""
        try:
            with _wrapper_of(self.folder_of(run_id)) as process:
                return None if process is None else os.dup(process)
        except (OSError, Unavailable):
            return None

    def output(self, run_id: str, since: int) -> tuple[bytes, int]:
        """Return a part of its output from an offset on, and where the next part begins."""
        if since < 0:
            raise Invalid("Output begins at 0.", hint="Go on from the offset that came with the last part.")
        data = _read(f"{self.folder_of(run_id)}/output", since, OUTPUT_CHUNK_BYTES)
        return data, since + len(data)

    def errors(self, run_id: str) -> bytes:
        """Return the end of what it said on standard error, if that is kept apart."""
        path = f"{self.folder_of(run_id)}/errors"
        return _read(path, max(0, _length(path) - ERRORS_TAIL_BYTES), ERRORS_TAIL_BYTES)

    def type(self, run_id: str, text: str) -> None:
        """Let a line arrive at the run's input, whole or not at all; refuse if the run takes none, now or ever."""
        run = self.folder_of(run_id)
        data = _encoded(text) + b"\n"
        check_typed(data)
        deaf = Refused(f"Run {run_id} takes no input.", hint="Start a run whose input is typed, or wait for its end.")
        if _holder(run) is None:
            raise deaf
        try:
            file = os.open(f"{run}/input", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            raise deaf from None
        try:
            _type(file, data, run_id)
        except OSError:
            raise deaf from None
        finally:
            os.close(file)

    def finish(self, run_id: str) -> None:
        """Let what was typed be the last: nothing can be typed any more, and the program reads the end of file."""
        run = self.folder_of(run_id)
        with _wrapper_of(run) as wrapper:
            if wrapper is None or not _exists(f"{run}/input"):
                return
            _send(wrapper, signal.SIGURG)
            if not _became(wrapper, f"{run}/input", there=False):
                raise Unavailable(f"The input of run {run_id} does not end.", hint="Try it again, or stop it.")

    def activity(self, run_id: str, *, memory: bool = False) -> Activity | None:
        """Return what the processes of a run do, None if it is not alive; their memory is only taken if asked for."""
        run = self.folder_of(run_id)
        wrapper = _holder(run)
        if wrapper is None or wrapper <= 0 or _exists(f"{run}/rc"):  # What is noted as ended, has.
            self._meter.forget(run)
            return None
        return self._meter.read(run, wrapper, memory=memory)

    def stop(self, run_id: str) -> None:
        """End a run with all that it started; one that never started never will."""
        run = self.folder_of(run_id)
        if _prevent(run, run_id) and not _sweep(run):  # it may have begun, and its folder was taken away
            raise _does_not_end(run_id)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with _wrapper_of(run) as wrapper:
                if wrapper is None:
                    break
                _send(wrapper, number)
                _gone(wrapper, STOP_TIMEOUT_S)
        if self.look(run_id).alive:
            raise _does_not_end(run_id)

    def hold(self, run_id: str, *, on: bool) -> None:
        """Let a run and all that it started stand still, or go on; already so, or gone, is fine."""
        run = self.folder_of(run_id)
        with _wrapper_of(run) as wrapper:
            if wrapper is None or _exists(f"{run}/held") == on:
                return
            _send(wrapper, signal.SIGUSR1 if on else signal.SIGUSR2)
            if not _became(wrapper, f"{run}/held", there=on):
                what = "stand still" if on else "go on"
                raise Unavailable(f"Run {run_id} does not {what}.", hint="Try it again, or stop it.")

    def attach_command(self, run_id: str) -> list[str]:
        """Return no command: it has no terminal."""
        return []

    def is_used(self, run_id: str) -> bool:
        """Say no: it has no terminal."""
        return False

    def forget(self, run_id: str) -> None:
        """Remove what is only needed while a run lives, and keep its output; one that lives is not forgotten."""
        run = self.folder_of(run_id)
        if self.look(run_id).alive:
            raise Refused(f"Run {run_id} still lives.", hint="Stop it first.")
        try:
            folder = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return  # It is not there, or a link to what is somebody else's.
        try:
            for name in set(os.listdir(folder)) - KEPT_FILES:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)

    def holder(self, run_id: str) -> int | None:
        """Return the process that holds a run, None if nobody does."""
        return _holder(self.folder_of(run_id))

    def folder_of(self, run_id: str) -> str:
        """Return the folder of a run, whether it is there or not; a link in its place leads elsewhere, and goes."""
        if not RUN_ID.fullmatch(run_id):
            raise Invalid(f"{run_id!r} is not the id of a run.", hint="Letters, digits, dots, dashes and underscores.")
        run = f"{self._folder}/{run_id}"
        if os.path.islink(run):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(run)
        return run


# Starting


def _letter(launch: Launch) -> bytes:
    """Return a launch as the wrapper reads it."""
    if not launch.argv or not os.path.isabs(launch.cwd):
        raise Invalid("A run needs a program and a whole path to work in.", hint="Look at the agent that launches it.")
    try:
        argv, cwd = [_encoded(word) for word in launch.argv], _encoded(launch.cwd)
        env = {_encoded(name): _encoded(value) for name, value in launch.env.items()}
        stdin = None if launch.stdin is None else _encoded(launch.stdin)
    except UnicodeEncodeError:
        raise Invalid(
            "A launch holds a text that cannot be encoded.", hint="Look at the agent that launches it."
        ) from None
    if any(b"\0" in word for word in (*argv, cwd, *env, *env.values())) or any(not k or b"=" in k for k in env):
        raise Invalid("A launch holds what no program can be given.", hint="Leave out zero bytes and odd names.")
    if launch.typed and stdin is not None:
        check_typed(stdin)
    layers = [astuple(each) for each in launch.layers]
    return marshal.dumps((argv, cwd, env, stdin, launch.typed, launch.apart, launch.most, layers))


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def wrapper_command(run: str, *more: str) -> list[str]:
    """Return the command that holds a run."""
    return [sys.executable, "-I", "-S", "-X", "utf8", WRAPPER, run, *more]


def wrapper_environment() -> dict[str, str]:
    """Return the environment of a wrapper: Python may need the first, and a run inside of a run has the outer mark."""
    names = ("LD_LIBRARY_PATH", "COVEY_RUN", "COVEY_RUN_FOLDER")
    return {name: os.environ[name] for name in names if name in os.environ}


def _call_wrapper(run: str, letter: bytes) -> str:
    """Start a wrapper and return its answer; it comes when the program runs. Nothing of it stays our child."""
    import subprocess  # as above

    with subprocess.Popen(
        wrapper_command(run),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=wrapper_environment(),
        start_new_session=True,
    ) as process:
        try:
            return process.communicate(letter, START_TIMEOUT_S)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            raise


# Seeing


def _holder(run: str) -> int | None:
    """Return the pid of the process that holds the lock of a run: the kernel's word, and the lock stays undisturbed."""
    try:
        file = os.open(f"{run}/lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        kind, _, _, _, pid = LOCK_STRUCT.unpack(fcntl.fcntl(file, fcntl.F_GETLK, WHO_HOLDS))
    finally:
        os.close(file)
    return None if kind == fcntl.F_UNLCK else int(pid)


def _let_go(run: str) -> Observation:
    """Return what is left of a run whose wrapper is gone: it said how the run ended, or was killed before."""
    code = _read(f"{run}/rc", 0, 32)
    if not code:
        if not _sweep(run):
            return Observation(known=True, alive=True, size=_length(f"{run}/output"))
        with contextlib.suppress(OSError), _opened(run) as folder:  # A full disk: the next look sweeps again.
            os.close(os.open("lost", os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600, dir_fd=folder))
    return _ended(run, code)


def _ended(run: str, code: bytes) -> Observation:
    # Only a wrapper that saw the end knows that there was no beginning.
    failure = (_read(f"{run}/failure", 0, 8192).decode(errors="replace") or None) if code else None
    # The exit code and, unless an older wrapper wrote it, the processor time; or whatever else is there by now.
    said = _NOTED.fullmatch(code.strip())
    return Observation(
        known=True,
        alive=False,
        code=int(said[1]) if said else None,
        size=_length(f"{run}/output"),
        failure=failure,
        cpu=float(said[2]) if said and said[2] else None,
    )


def _started(run: str) -> str | None:
    """Return the mark of a run that began or never will: the pid of its wrapper, or that it was stopped before."""
    try:
        return os.readlink(f"{run}/started")
    except FileNotFoundError:
        return None
    except OSError:
        return ""  # It is not a link any more, so it was one.


def _exists(path: str) -> bool:
    return os.access(path, os.F_OK)


def _length(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _read(path: str, since: int, most: int) -> bytes:
    """Return a part of a file; of one that is not there, or is something else by now, nothing."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return b""
    try:
        # The program of a run can put a pipe there: to read that is to wait for ever.
        return os.pread(file, most, since) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    finally:
        os.close(file)


# Typing


def check_typed(data: bytes) -> None:
    """Refuse more than can be typed at once."""
    if len(data) > MAX_TYPED_BYTES:
        raise TooLarge(f"At most {MAX_TYPED_BYTES} bytes can be typed at once.", hint="Put it in a file and name that.")


def _type(file: int, data: bytes, run_id: str) -> None:
    """Write a line into a pipe if all of it fits now: nobody else writes meanwhile, and a reader only makes room."""
    _take_turn(file)
    room = fcntl.fcntl(file, fcntl.F_GETPIPE_SZ)
    (waiting,) = struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, b"\0" * 4))
    # A pipe fills by pages, and two neighbours together hold more than one page: at worst it is half used.
    fits = len(data) <= room if waiting == 0 else len(data) + waiting <= room // 2 - 2 * PAGE_BYTES
    if not fits:
        raise Refused(
            f"Run {run_id} has not read yet what was typed before.", hint="Type it again when the run listens."
        )
    os.write(file, data)


def _take_turn(file: int) -> None:
    """Wait until nobody else types to the same run, but not for long."""
    deadline = time.monotonic() + TYPE_TIMEOUT_S
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable("Somebody else is typing to the run.", hint="Type it again.") from None
        time.sleep(0.001)


# Ending


def _does_not_end(run_id: str) -> Unavailable:
    return Unavailable(f"Run {run_id} does not end.", hint="Something of it hangs in the system; stop it again later.")


@contextlib.contextmanager
def _opened(run: str) -> Iterator[int]:
    """Yield a handle on the folder of a run itself, made if it is missing; never on what a link there leads to."""
    with contextlib.suppress(FileExistsError):
        os.makedirs(run, mode=0o700)
    if os.path.islink(run):
        os.unlink(run)
        os.mkdir(run, mode=0o700)
    folder = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)


def _prevent(run: str, run_id: str) -> bool:
    """Make sure that a run which has not begun never does: of this mark and the wrapper's, only one can be made.

    Return whether it is this one.
    """
    if _started(run) is not None:
        return False
    try:
        with _opened(run) as folder:
            os.symlink(STOPPED, "started", dir_fd=folder)
        return True
    except FileExistsError:
        return False
    except OSError as error:
        raise Unavailable(f"Run {run_id} could not be stopped: {error.strerror}.", hint="Look at the disk.") from None


@contextlib.contextmanager
def _wrapper_of(run: str) -> Iterator[int | None]:
    """Yield a handle on the process that holds a run, which no other process can get hold of by its number."""
    file = None
    while file is None and (pid := _holder(run)) is not None:
        if pid <= 0:
            raise Unavailable("The run lives in another container.", hint="Speak to the covey that started it.")
        try:
            file = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if _holder(run) != pid:
            os.close(file)
            file = None
    try:
        yield file
    finally:
        if file is not None:
            os.close(file)


def _send(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, number)


def _gone(process: int, patience: float) -> bool:
    """Wait for the end of a process, but not for long; return whether it came."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(patience * 1000))


def _became(wrapper: int, path: str, *, there: bool) -> bool:
    """Wait until a wrapper has made a file, or removed it, or has ended; say whether that came in time."""
    deadline = time.monotonic() + OBEY_TIMEOUT_S
    while not _gone(wrapper, 0.002) and _exists(path) != there:
        if time.monotonic() > deadline:
            return False
    return True


# Sweeping: the wrapper was killed, so its program is dead, and what that had started may not be.


def _sweep(run: str) -> bool:
    """Kill what carries the mark of a run or still writes its output; return whether nothing of it is left."""
    spared = _ourselves()
    deadline = time.monotonic() + SWEEP_TIMEOUT_S
    looks = clean = 0
    while clean < 2:  # One look can miss a process that is about to execute another program.
        found = [pid for pid in _processes() if pid not in spared and _kill_if_of(run, pid)]
        looks, clean = looks + 1, 0 if found else clean + 1
        if found and looks >= MIN_SWEEP_LOOKS and time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def _kill_if_of(run: str, pid: int) -> bool:
    """Kill a process if it belongs to a run, and return whether it did."""
    if not _belongs(run, pid):
        return False
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if _belongs(run, pid):  # Still, and so not another one that got its number.
            signal.pidfd_send_signal(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(process)
    return True


def _belongs(run: str, pid: int) -> bool:
    """Say whether a process carries the mark of a run, or has its output open to write."""
    mark = _encoded(f"COVEY_RUN_FOLDER={run}")
    outputs = (f"{run}/output", f"{run}/errors")
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            if mark in environ.read().split(b"\0"):
                return True
        return any(
            os.readlink(f"/proc/{pid}/fd/{file}") in outputs and _writes(pid, file)
            for file in os.listdir(f"/proc/{pid}/fd")
        )
    except OSError:
        return False  # Gone, or not ours to look at.


def _writes(pid: int, file: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{file}") as about:
        flags = next(int(line.split()[1], 8) for line in about if line.startswith("flags:"))
    return flags & os.O_ACCMODE != os.O_RDONLY


def _processes() -> list[int]:
    """Return the processes of our user."""
    user = os.getuid()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == user:
                found.append(int(name))
    return found


def _ourselves() -> set[int]:
    """Return this process and those above it."""
    found: set[int] = set()
    pid = os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        about = process(pid)
        pid = about.parent if about else 0
    return found
