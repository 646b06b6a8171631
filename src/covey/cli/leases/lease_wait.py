"""One's turn at what others hold: standing in line for it, and holding it while a command runs."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from covey.cli.frame.client import Answer, Client, Json
from covey.errors import CoveyError, Refused

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from subprocess import Popen
    from threading import Event
    from typing import Any

NO_TURN_EXIT = 3
"""Exit code if it is not our turn yet."""
FIRST_TURN_LOOK_S, LAST_TURN_LOOK_S = 0.1, 1.0
"""Seconds between two looks, at first and at last."""
RENEW = 5.0
"""Seconds between two signs of life of who waits."""
BEAT = 10.0
"""Seconds between two signs of life of who runs a command."""
HOLDS = "COVEY_HOLDS"
"""The variable that tells a command what it was given to hold, so that it never waits for itself."""
LEASE = "COVEY_LEASE"
"""The variable that tells a command under which lease it runs, so that a circle of such commands is found."""
NOT_FOUND, NOT_STARTED = 127, 126
PR_SET_PDEATHSIG = 1


class Stopped(BaseException):
    """A signal told us to end while we stood in line."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def await_turn(client: Client, answer: Answer, who: Json, patience: float | None) -> Answer:
    """Stand in line until it is our turn, or the time is over; say on standard error who is before us."""
    began = renewed = time.monotonic()
    pause, said = FIRST_TURN_LOOK_S, ""
    while answer.value["state"] == "waiting":
        said = _say_who(client, answer.value, said)
        now = time.monotonic()
        if patience is not None and now - began >= patience:
            return answer
        time.sleep(pause if patience is None else min(pause, began + patience - now))
        pause = min(pause * 1.3, LAST_TURN_LOOK_S)
        if time.monotonic() - renewed >= RENEW:
            answer, renewed = _renew(client, answer.value, who), time.monotonic()
        else:
            answer = client.ask("lease.show", {"id": answer.value["id"]})
    if answer.value["state"] != "live":
        _renew(client, answer.value, who)  # it says why
        raise Refused(f"{answer.value['id']} has ended.", hint="Take the lease again.")
    return answer


def _renew(client: Client, lease: Json, who: Json) -> Answer:
    return client.ask("lease.renew", {"id": lease["id"]}, {**who, "fence": lease["fence"]})


def _say_who(client: Client, lease: Json, said: str) -> str:
    """Say who is before us, if that is news."""
    behind = " ".join(lease["behind"])
    if behind and behind != said:
        first = client.ask("lease.show", {"id": lease["behind"][0]}).value
        task = f" for {first['task']}" if first["task"] else ""
        more = f", and {len(lease['behind']) - 1} more" if len(lease["behind"]) > 1 else ""
        print(f"covey: {lease['id']} waits for {first['holder']} ({first['id']}{task}){more}", file=sys.stderr)
    return behind or said


def give_back(folder: str, lease: Json, who: Json) -> None:
    """Give a lease or a place in line back; if nobody can be reached, its time ends it."""
    try:
        Client(folder).ask("lease.give", {"id": lease["id"]}, {**who, "fence": lease["fence"]})
    except CoveyError as error:
        if not isinstance(error, Refused):  # it has ended already
            print(f"covey: {lease['id']} could not be given back: {error.message}", file=sys.stderr)


class Signals:
    """Passes signals on to a command; before there is one, they end the waiting."""

    def __init__(self) -> None:
        self.child: Popen[bytes] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.child is None:
            raise Stopped(number)
        # What is typed at a terminal reaches the command from there, and once is enough.
        if number not in (signal.SIGINT, signal.SIGQUIT) or not _is_at_terminal():
            self.child.send_signal(number)


def _is_at_terminal() -> bool:
    for descriptor in (0, 1, 2):
        try:
            return os.tcgetpgrp(descriptor) == os.getpgrp()
        except OSError:
            continue
    return False


def run(command: list[str], holds: list[str], under: list[str], signals: Signals) -> int:
    """Run a command with our own input and output and return its exit code, as shells tell it."""
    import subprocess

    env = {**os.environ, HOLDS: "\n".join(holds), LEASE: " ".join(under)}
    try:
        signals.child = subprocess.Popen(command, env=env, preexec_fn=_die_with_us())  # noqa: PLW1509 - it takes no lock
    except OSError as error:
        print(f"covey: {command[0]} cannot be run: {error.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
    code = signals.child.wait()
    return 128 - code if code < 0 else code


def _die_with_us() -> Callable[[], None] | None:
    """Return what lets a command end with us, also if we are killed: its turn would be given to another."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl, own = ctypes.CDLL(None).prctl, os.getpid()

    def end() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != own:  # we were killed in between
            os._exit(128 + signal.SIGKILL)

    return end


class Beating:
    """Renews a lease from time to time for as long as it is entered."""

    def __init__(self, folder: str, lease: Json, who: Json) -> None:
        self._folder, self._lease, self._who = folder, lease, who

    def __enter__(self) -> None:
        from threading import Event, Thread

        self._over = Event()
        self._thread = Thread(target=self._beat, args=(self._over,), daemon=True)
        self._thread.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._over.set()
        self._thread.join(timeout=BEAT)

    def _beat(self, over: Event) -> None:
        while not over.wait(BEAT):
            try:
                _renew(Client(self._folder), self._lease, self._who)
            except Refused as error:
                print(f"covey: the command goes on without its lease: {error.message}", file=sys.stderr)
                return
            except CoveyError:
                continue  # nobody answers at the moment; it outlasts two beats that were missed


def stands_behind(task: str, found: list[Json]) -> str:
    """Return in one line who holds what a task waits for, nothing if it waits for nothing."""
    by_id = {lease["id"]: lease for lease in found}
    parts = []
    for lease in found:
        if lease["task"] == task and lease["state"] == "waiting" and lease["origin"] == "scope":
            first = next((by_id[name] for name in lease["behind"] if name in by_id), None)
            if first is not None:
                whose = f" for {first['task']}" if first["task"] else ""
                does = "waited for" if first["state"] == "waiting" else "held"
                parts.append(f"{', '.join(lease['resources'])} is {does} by {first['holder']}{whose} ({first['id']})")
    return f"You stand in line for a part of its scope: {'; '.join(parts)}." if parts else ""
