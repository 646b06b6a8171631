"""The process of the daemon: found, started for as long as it is needed, and stopped."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from covey import proof
from covey.cli.frame.client import Client, Json, check_own, is_daemon, own_file
from covey.cli.frame.http_client import Lost, Wire
from covey.core.figures import DAY_S, one
from covey.errors import CoveyError, Denied, Unavailable
from covey.files import write_whole
from covey.git import project as projects
from covey.git.project import Project
from covey.installation import path_mark, users_environment
from covey.moments import calendar
from covey.store.engine.lock import NeedLock, WriterLock

DAEMON_TIMEOUT_S = 60.0
"""Seconds for a daemon to answer after its start, and to go after it was told to."""
OTHERS_TIMEOUT_S = 2.0
"""Seconds after which a daemon that has not gone is taken to be needed by another command."""
ASK_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def comes_true(is_so: Callable[[], object], within: float, every: float = 0.02) -> bool:
    """Look again and again until something is so, and say whether it was within some seconds."""
    deadline = time.monotonic() + within
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def answering(project: Project) -> Json | None:
    """Return where the daemon says that it answers, if it does answer there."""
    said = _said(project)
    try:
        if said is None or not is_daemon(said["pid"]) or not _holds_lock(project, said["pid"]):
            return None
        token = project.token()
        wire = Wire(f"http://127.0.0.1:{int(said['port'])}", token, proof.credential(token, proof.OWNER))
        try:
            status, _, _ = wire.ask("GET", "/api/status", b"", None)
        finally:
            wire.close()
        # Read again: what a killed daemon had said is gone before another one answers at its port.
        return _said(project) if status == 200 else None
    except (OSError, ValueError, KeyError, TypeError, Lost):
        return None


def _said(project: Project) -> Json | None:
    """Return what the daemon says of itself, if it says that and nobody else can have written it."""
    try:
        with own_file(str(project.daemon_file)) as file:
            said: Json = json.load(file)
        return said | {"pid": int(said["pid"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def ensure_up(client: Client) -> bool:
    """Have a daemon that stays until `covey down`, and say whether it was started."""
    project = projects.find(Path(client.folder)).must_be_begun()
    with keeping(project):
        return have(project, plain_command(project))[1]


def ensure_while_needed(project: Project) -> bool:
    """Have a daemon for whoever holds the lock of those who need one, and say whether it was started.

    It goes by itself once nobody needs it.
    """
    return have(project, [*plain_command(project), "--while-needed"])[1]


def tell_other_path(project: Project) -> None:
    """Say so on standard error if a daemon runs that was started with another PATH than this shell's."""
    said = _said(project)
    # One of an older covey does not say with which it was.
    if said is None or said.get("errand") or "path" not in said or not is_daemon(said["pid"]):
        return
    if said["path"] != path_mark(users_environment(os.environ, project.root)):
        since = float(said["started"])
        day = "" if time.time() - since < DAY_S else "%Y-%m-%d "
        print(
            f"covey has been up since {calendar(f'{day}%H:%M', since)} from a shell with another PATH, which gates and "
            "agents use: covey down and covey up here change that.",
            file=sys.stderr,
            flush=True,
        )


def leave(project: Project, client: Client, need: NeedLock, *, own: bool) -> str:
    """Stop needing the daemon, and say of our own who else keeps it up; if nobody does, wait until it has gone."""
    pid = _announced(project)
    stays_for: list[str] = []
    if pid is not None:
        with contextlib.suppress(CoveyError):
            stays_for = client.ask("status").value["stays_for"]
    others = not need.try_alone()
    need.give()
    if pid is None:
        return ""
    patience = OTHERS_TIMEOUT_S if others else DAEMON_TIMEOUT_S
    if not stays_for and comes_true(lambda: not is_daemon(pid) or _announced(project) not in (pid, None), patience):
        return ""
    return f"covey stays up for {' and '.join(stays_for or ['another covey run'])}; covey down stops it." if own else ""


@contextlib.contextmanager
def keeping(project: Project) -> Iterator[None]:
    """Let whatever daemon there is, or will be, stay until `covey down`."""
    project.token()  # what could not be started is not kept
    with NeedLock(project.needed):
        project.kept.touch(mode=0o600)
        yield


def died(client: Client) -> bool:
    """Say whether the last daemon ended without being told to, by what the log says; none runs now."""
    first = {"newest": True, "limit": 1}
    asked = (client.ask("log.list", fields=first | {"kind": f"daemon.{what}"}).value for what in ("started", "stopped"))
    started, stopped = (found[0]["seq"] if found else 0 for found in asked)
    return bool(started > stopped and client.url is None)


def obituary(client: Client) -> str:
    """Say that the last daemon has died, and how many agents went on without it."""
    agents = 0
    with contextlib.suppress(CoveyError):
        agents = sum(bool(session["run"]) for session in client.ask("session.list").value)
    went_on = f" {one(agents, 'agent')} went on without it." if agents else ""
    return f"The daemon had died: it was not told to end.{went_on}"


def have(project: Project, command: list[str]) -> tuple[Json, bool]:
    """Return where a daemon answers that stays, or is ours, and whether we started it."""
    project.token()  # neither we nor a new daemon could go on without it
    while True:
        said = lasting(project)
        if said is not None:
            return said, False
        said, own = _start(project, command)
        if own or not said.get("errand"):
            return said, own


def lasting(project: Project) -> Json | None:
    """Return where a daemon answers that stays; one that only runs another command's errand is gone in a moment."""

    def runs_errand() -> bool:  # also if it answers no more
        said = _said(project)
        return said is not None and bool(said.get("errand")) and is_daemon(said["pid"])

    if not comes_true(lambda: not runs_errand(), DAEMON_TIMEOUT_S, 0.05):
        raise Unavailable("Another covey command has not come to its end.", hint="Try again when it has.")
    return answering(project)


@contextlib.contextmanager
def errand(client: Client) -> Iterator[bool]:
    """Have a daemon for as long as a command needs one; one of our own starts no agent, and is gone afterwards."""
    project = projects.find(Path(client.folder)).must_be_begun()
    with NeedLock(project.needed):
        said, own = have(project, [*plain_command(project), "--hold"])
        try:
            yield own
        finally:
            if own:
                stop_daemon(project, only=said["pid"])


def stop_daemon(project: Project, *, only: int | None = None) -> int | None:
    """Stop the daemon if it runs, and return which process it was; with `only`, no other than that one."""
    pid = _holder(project)
    if pid is not None and only in (None, pid):
        try:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pid, signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)  # one that stands still would not hear it
        except PermissionError:
            raise Denied(f"Process {pid} is not yours to stop.", hint="Whoever started the daemon stops it.") from None
        if not comes_true(lambda: not (is_daemon(pid) or _holds_lock(project, pid)), DAEMON_TIMEOUT_S):
            said = f"Process {pid} has not stopped after {DAEMON_TIMEOUT_S:g} s."
            raise Unavailable(said, hint=f"kill -9 {pid} loses nothing.")
    return pid


def keep_name(project: Project, name: str | None) -> None:
    """Keep the name under which the page is asked from now on, or forget it."""
    kept = project.state / "name"
    if name == "none":
        kept.unlink(missing_ok=True)
    elif name is not None:
        write_whole(kept, name)


def kept_name(project: Project) -> str:
    kept = project.state / "name"
    return kept.read_text().strip() if kept.exists() else ""


def plain_command(project: Project) -> list[str]:
    """Return how a daemon is started; it begins in the project's folder and imports nothing from there (-P)."""
    name = kept_name(project)
    named = ["--name", name] if name else []
    return [sys.executable, "-P", "-m", "covey.daemon", str(project.root), *named]


def _start(project: Project, command: list[str]) -> tuple[Json, bool]:
    """Start the daemon in a session of its own, and wait until it answers, or one that was faster: then ours ends."""
    printed = project.state / "daemon.out"
    # A signal has to wait until we know whom we have started; the daemon itself lets them through again.
    signal.pthread_sigmask(signal.SIG_BLOCK, ASK_TO_END)
    child: subprocess.Popen[bytes] | None = None
    try:
        with printed.open("wb") as out:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=project.root
            )
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ASK_TO_END)
        said = _await_answer(project, child, printed)
        if said["pid"] == child.pid:
            return said, True
        end(child, signal.SIGTERM, DAEMON_TIMEOUT_S)
        return said, False
    except BaseException:
        if child is not None:
            end(child, signal.SIGTERM, DAEMON_TIMEOUT_S)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ASK_TO_END)


def end(child: subprocess.Popen[bytes], number: int, within: float) -> None:
    """End a process that we started; one that does not hear, or for which a clock has jumped, is killed."""
    child.send_signal(number)
    try:
        child.wait(within)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _await_answer(project: Project, child: subprocess.Popen[bytes], printed: Path) -> Json:
    deadline = time.monotonic() + DAEMON_TIMEOUT_S
    while time.monotonic() < deadline:
        said = answering(project)
        if said is not None:
            return said
        if child.poll() is not None and not _is_locked(project):
            raise _why(printed)
        time.sleep(0.02)
    raise Unavailable(
        f"The daemon does not answer after {DAEMON_TIMEOUT_S:g} s.", hint=f"Look into {project.state}/daemon.log."
    )


def _why(printed: Path) -> CoveyError:
    """Return why the daemon ended at once, in its own words."""
    lines = printed.read_text(errors="replace").strip().splitlines()
    if not lines and shutil.disk_usage(printed).free == 0:  # not even that could be written
        return Unavailable("The disk is full, so the daemon cannot run.", hint="Make room and try again.")
    try:
        said = json.loads(lines[-1])
        error = CoveyError(said["error"], hint=said["hint"])
        error.exit_code = int(said["exit"])
        return error
    except (IndexError, ValueError, KeyError, TypeError):
        last = lines[-1] if lines else "it printed nothing"
        return Unavailable(f"The daemon ended at once: {last}.", hint=f"{printed} has what it printed.")


def _holder(project: Project) -> int | None:
    """Return the process that holds the project's lock as its daemon."""
    deadline = time.monotonic() + DAEMON_TIMEOUT_S
    while _is_locked(project):
        pid = _announced(project)
        if pid is not None and is_daemon(pid) and _holds_lock(project, pid):
            return pid
        if unannounced := next(filter(is_daemon, _holders(project)), None):
            return unannounced
        if time.monotonic() > deadline:
            raise Unavailable("Something holds this project's lock and does not say what it is.", hint="Try again.")
        time.sleep(0.02)
    return None


def running(project: Project) -> int | None:
    """Return the daemon's process, if it has said where it answers and lives."""
    pid = _announced(project)
    return pid if pid is not None and is_daemon(pid) and _is_locked(project) else None


def _announced(project: Project) -> int | None:
    said = _said(project)
    return None if said is None else said["pid"]


def _is_locked(project: Project) -> bool:
    """Say whether somebody writes, or is about to."""
    lock = WriterLock(project.lock)
    if lock.try_take():
        lock.give()
        return False
    return True


def _holds_lock(project: Project, pid: int) -> bool:
    """Say whether a process holds the lock, as far as the kernel tells who does; in a container it may not."""
    if not _is_locked(project):
        return False
    holders = _holders(project)
    return not holders or 0 in holders or pid in holders


def _holders(project: Project) -> set[int]:
    """Return the processes that the kernel names as holders of the lock."""
    lock = project.lock.stat()
    check_own(str(project.lock), lock)
    inode = str(lock.st_ino)  # the device that the kernel names is another on some file systems
    try:
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return set()
    return {int(part[-4]) for part in lines if part[1] == "FLOCK" and part[-3].split(":")[-1] == inode}
