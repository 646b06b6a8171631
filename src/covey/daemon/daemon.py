"""The daemon: puts the store, the web and the loops together, and is the only writer while it lives."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import hashlib
import json
import logging
import logging.handlers
import os
import random
import resource
import signal
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import uvicorn
import uvloop

from covey import __version__, config, memory, proof
from covey.app import devices
from covey.app.app import App
from covey.app.clock import SystemClock
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.cli.client import check_own, is_daemon
from covey.cli.main import complain
from covey.core.devices import Addresses
from covey.core.events import Started, Stopped
from covey.core.sessions import COVEY
from covey.errors import CoveyError, Invalid, Refused
from covey.files import write_whole
from covey.git import project as projects
from covey.git.project import Project
from covey.git.worktrees import Worktrees, default_folder
from covey.hooks.outside import Outside
from covey.hooks.server import Hooks
from covey.installation import step_back
from covey.loops.desk import Desk
from covey.loops.fleet import Fleet
from covey.loops.janitor import LOOK_EVERY, Janitor
from covey.loops.lifetime import Lifetime
from covey.loops.live import Live
from covey.loops.queue import Queue
from covey.loops.radar import Radar
from covey.loops.terminals import Typist
from covey.runners.tmux import TmuxRunner
from covey.store.lock import WriterLock
from covey.store.sqlite import SqliteStore
from covey.store.tx import Tx
from covey.values import dataclass
from covey.web.doors import Doors
from covey.web.http import CROWD, KEEP_ALIVE, Http
from covey.web.server import Web
from covey.web.sockets import Terminals

COUNTS_EVERY = 0.25
PATIENCE = 5.0
"""Seconds for which a command without a daemon may hold the lock while we start."""
SOCKET_MESSAGE = 64 * 1024
"""Bytes that one message over a WebSocket may have: what a person pastes into a terminal."""
GRACE = 3
"""Seconds that requests under way have to end when the daemon stops."""

PORTS = range(20_000, 32_768)
SHARED = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]")
"""Names under which other servers of this machine live too: no page of ours, since they would share its storage."""
LISTENING = "0A"
"""How the kernel writes the state of a socket that listens."""
OPEN_FILES = 16_384
"""Files that the daemon may open: most systems begin with 1,024, and every connection is one."""
UNKNOWN_SHARE = 4
"""The part of these that clients may have open who have not shown who they are."""
TELL_EVERY_S = 600.0
"""Seconds between two alerts of the same kind."""
STUCK = 60
"""Seconds for which a client may take nothing of what it was sent."""

log = logging.getLogger("covey.daemon")


@dataclass(frozen=True)
class Bind:
    """An address beyond loopback, with its certificate."""

    host: str
    port: int
    certificate: Path
    key: Path

    @property
    def url(self) -> str:
        """Return where it answers."""
        return f"https://[{self.host}]:{self.port}" if ":" in self.host else f"https://{self.host}:{self.port}"

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the certificate, in the way that browsers and openssl show it."""
        text = self.certificate.read_text()
        end = text.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)
        first = text[text.index(ssl.PEM_HEADER) : end]
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest()
        return digest.hex(":").upper()


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers: the daemon stops all of its servers together."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        try:
            return await super().on_tick(counter)
        except (ValueError, OverflowError, OSError):  # the clock says a time that cannot be written as a date
            self.server_state.default_headers = self.config.encoded_headers
            return self.should_exit


class Daemon:
    """One project's daemon, from its lock to its last answer."""

    def __init__(
        self,
        project: Project,
        port: int | None,
        bind: Bind | None,
        name: str | None = None,
        *,
        hold: bool = False,
        while_needed: bool = False,
    ) -> None:
        self.project = project
        for path in (project.state, project.owner_token):
            if path.exists():
                check_own(str(path), path.stat())
        self._lock = WriterLock(project.lock)
        self._lock_up()
        self._clock = SystemClock()
        self._store = SqliteStore(
            project.database, clock=lambda: self._clock.now().wall, project=project.name, lock=project.lock
        )
        self._token = token = project.token()
        self._watcher = config.Watcher(project.root)
        self._complaint = ""
        settings = config.load(project.root)
        columns, rows = settings.sessions.terminal_size
        runner = TmuxRunner(project.state / "runs", columns=columns, rows=rows)
        self._app = App(
            self._store, settings, self._clock, project.name, daemon=True, secret=token.encode(), runner=runner
        )
        self._app.house.settings = self._watcher.changed
        self._app.house.runs = project.state / "runs"
        self._app.house.repository = project
        self._app.house.attach_command = runner.attach_command
        self._app.house.is_used = runner.is_used
        self._sockets, self._taken = _loopback(project, port)
        self._bind = bind
        self._plain = len(self._sockets)
        if bind is not None:
            self._sockets.append(_listen(bind.host, bind.port, "--bind HOST:PORT"))
        own = self._sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{own}"
        self._page = f"http://{host_name(project, self._store.head.log)}:{own}"
        self._app.house.addresses = _addresses(self._page, bind, name)
        self._web = Web(self._app, token, _doors(self._page, own, bind, name))
        self._servers = [self._server(i) for i in range(len(self._sockets))]
        self._stop = asyncio.Event()
        self._unneeded = False
        folder = default_folder(project, settings.sessions.worktrees)
        worktrees = Worktrees(project, folder)
        self._desk = Desk(
            self._app,
            project,
            runner,
            worktrees,
            proof.DOOR,
            self._web.read,
            self._web.write,
            typist=Typist(runner, time.sleep),
        )
        self._fleet = Fleet(self._desk, hold=hold)
        self._queue = Queue(self._desk)
        self._radar = Radar(self._desk)
        self._lifetime = Lifetime(self._desk, while_needed=while_needed, page_at=self._web.page_at)
        self._app.house.stays_for = self._lifetime.reasons
        self._live = Live(self._desk, self._fleet, lambda: self._web.hub.people, self._web.hub.tell_people)
        self._web.hub.greet = self._live.greet
        self._hooks = Hooks(self._desk, self._fleet, Outside(self._desk))
        self._web.hooks = self._hooks
        self._web.sockets = Terminals(runner, self._web.read)
        self._web.listeners += [
            self._fleet.hear,
            self._queue.hear,
            self._radar.hear,
            self._hooks.hear,
            self._live.hear,
        ]

    def _lock_up(self) -> None:
        """Become the only writer; a command that writes at this moment is done in a moment."""
        if not self._lock.take(PATIENCE, lambda: _has_spoken(self.project)):
            raise Refused("This project has a daemon already.", hint="covey status tells where it answers.")
        self.project.daemon_file.unlink(missing_ok=True)  # what a killed daemon said names a process that is gone

    def _server(self, number: int) -> _Server:
        tls = self._bind if number >= self._plain else None
        settings = uvicorn.Config(
            self._web,
            loop="none",
            http=Http,
            ws="websockets-sansio",
            ws_max_size=SOCKET_MESSAGE,
            ws_per_message_deflate=False,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        return _Server(settings)

    async def run(self) -> None:
        """Serve until told to stop; what was acknowledged is on disk then."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # Who starts us may ignore the first two itself, and we inherit that; a hang-up only if nohup says so.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._stop.set)
        self._web.begin(self._store)
        await self._web.write(lambda tx: tx.append(COVEY, "daemon", Started(__version__)))
        await self._hooks.begin()
        if self._taken is not None:
            await self._desk.write(partial(_warn_of_taken_port, self._taken, self._sockets[0].getsockname()[1]))
        serving = [
            asyncio.create_task(server.serve(sockets=[sock]))
            for server, sock in zip(self._servers, self._sockets, strict=True)
        ]
        for task in serving:
            task.add_done_callback(lambda _: self._stop.set())  # without one of them this daemon is of no use
        loops = [
            asyncio.create_task(loop)
            for loop in (
                self._look(),
                self._count(),
                self._stand(),
                self._keep_token(),
                self._go_when_unneeded(),
                self._fleet.run(),
                self._queue.run(),
                self._radar.run(),
                self._live.run(),
            )
        ]
        while not all(server.started for server in self._servers):  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        self._announce()
        await self._stop.wait()
        log.info("stopping")
        self._web.end_all(await self._goodbye())
        self._hooks.close()
        for server in self._servers:
            server.should_exit = True
        for ended in await asyncio.gather(*serving, return_exceptions=True):
            if ended is not None:
                log.error("a server of this daemon failed", exc_info=ended)
        for task in loops:
            task.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await self._live.stop()
        await self._radar.stop()
        await self._queue.stop()
        await self._fleet.stop()
        await self._last_words()

    async def _go_when_unneeded(self) -> None:
        await self._lifetime.until_unneeded()
        self._unneeded = True
        self._stop.set()

    async def _goodbye(self) -> dict[str, object]:
        """Return what whoever follows is told before the connection ends: that it is on purpose, and who works on."""
        agents = 0
        with contextlib.suppress(CoveyError):
            agents = len(await self._desk.read(lambda call: call.tx.open_runs()))
        return {"why": "unneeded" if self._unneeded else "stopped", "agents": agents}

    async def _last_words(self) -> None:
        def last(tx: Tx) -> None:
            self._app.note_pulses(tx)
            tx.append(COVEY, "daemon", Stopped())

        try:
            await self._web.write(last)
        except CoveyError as error:
            log.warning("the last words were not written: %s", error)
        if self._web.writer is not None:
            await self._web.writer.stop()

    def close(self) -> None:
        """Finish what was begun, and let the lock go last."""
        self._desk.close()
        self._web.close()
        self._store.close(tidy=True)
        if self._lock.is_ours:
            with contextlib.suppress(OSError):
                self.project.daemon_file.unlink()
        self._lock.give()

    def _announce(self) -> None:
        """Say where we answer, in a file that is whole or not there."""
        said = {
            "pid": os.getpid(),
            "url": self.url,
            "page": self._page,
            "port": self._sockets[0].getsockname()[1],
            "version": __version__,
            "errand": self._fleet.hold,
        }
        if self._bind is not None:
            said |= {"bind": self._bind.url, "fingerprint": self._bind.fingerprint}
        part = self.project.daemon_file.with_suffix(".part")
        part.write_text(json.dumps(said | {"started": round(time.time(), 3)}))
        part.chmod(0o600)
        part.rename(self.project.daemon_file)
        log.info("serving at %s", self.url)

    async def _look(self) -> None:
        web = self._web
        janitor = Janitor(self._app, web.read, web.write, partial(web.write, long=True))
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await self._refresh()
            try:
                await janitor.tick()
            except CoveyError as error:
                log.warning("the janitor could not finish: %s", error)
            except Exception:
                log.exception("the janitor failed")

    async def _refresh(self) -> None:
        """Take up settings that were changed; tell once of ones that make no sense, and keep those from before."""
        try:
            self._app.house.refresh()
            self._complaint = ""
        except CoveyError as error:
            if error.message != self._complaint:
                self._complaint = error.message
                message = f"{error.message} The settings from before hold until it is mended. {error.hint}".strip()
                await self._desk.write(lambda call: alert(call, "bad_settings", message, None, None))

    async def _stand(self) -> None:
        """Notice at once when the files under the board are taken away, also if nobody writes.

        Without the lock under its name another daemon may be the only writer: then this one ends.
        """
        told = False
        while self._lock.is_ours:
            await asyncio.sleep(COUNTS_EVERY)
            if not self._store.is_standing() and self._store.lost is None:
                with contextlib.suppress(CoveyError):
                    await self._web.write(lambda tx: None)
            told = told or self._tell_of_loss()
        log.critical("%s is not the one that this daemon holds any more, so it ends", self.project.lock)
        with contextlib.suppress(CoveyError):  # what was acknowledged is kept first, if its file is gone too
            await self._web.write(lambda tx: None)
        if not told and self._tell_of_loss():
            await asyncio.sleep(COUNTS_EVERY)  # for whoever looks to be told before the connection ends
        self._stop.set()

    def _tell_of_loss(self) -> bool:
        """Tell whoever looks at the page that the board's file is gone, if it is."""
        lost = self._store.lost
        if lost is not None:
            message = f"{lost.message} {lost.hint}"
            self._web.hub.tell_people("alerts", {"type": "board_lost", "session": None, "message": message})
        return lost is not None

    async def _keep_token(self) -> None:
        """Put the owner's token back when something changed it: every command and every hook goes by that file."""
        told = time.monotonic() - TELL_EVERY_S
        while True:
            await asyncio.sleep(COUNTS_EVERY)
            if _holds_token(self.project.owner_token, self._token):
                continue
            try:
                write_whole(self.project.owner_token, f"{self._token}\n", 0o600)
            except OSError as error:
                log.error("owner.token was changed, and could not be put back: %s", error)
                await asyncio.sleep(TELL_EVERY_S)
                continue
            if time.monotonic() - told >= TELL_EVERY_S:
                told = time.monotonic()
                log.warning("owner.token was changed or removed, and was put back")
                with contextlib.suppress(CoveyError):
                    await self._desk.write(partial(_warn_of_token, self.project.owner_token))

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(COUNTS_EVERY)
            try:
                await self._web.tell_counts()
            except CoveyError as error:
                log.warning("the counters were not told: %s", error)


def _holds_token(path: Path, token: str) -> bool:
    """Say whether a file holds a token; what is not a file, or cannot be read, holds none."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.read(opened, len(token) + 64).strip() == token.encode()
    except OSError:
        return False
    finally:
        os.close(opened)


def _has_spoken(project: Project) -> bool:
    """Say whether a daemon that lives has said where it answers; nobody waits for such a one to end."""
    try:
        return is_daemon(int(json.loads(project.daemon_file.read_text())["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def host_name(project: Project, log_id: str) -> str:
    """Return the name under which this project's page lives; no other server on loopback shares its storage."""
    return f"{project.name}-{log_id[:6]}.localhost"


def _doors(page: str, port: int, bind: Bind | None, name: str | None) -> Doors:
    """Return the names under which we may be asked, and where the page lives: its own name, and beyond loopback."""
    ports = {port: "http"} | ({bind.port: "https"} if bind else {})
    machine = socket.gethostname().lower()
    names = {"127.0.0.1", "localhost", "[::1]", page.removeprefix("http://").rpartition(":")[0], machine}
    pages = [page]
    if bind is not None:
        host = f"[{bind.host}]" if ":" in bind.host else bind.host.lower()
        names.add(host)
        pages += [f"https://{each}:{bind.port}" for each in (host, machine) if each not in SHARED]
    if name is not None:
        pages.append(_named(name, bind))
    return Doors(names, ports, pages)


def _addresses(page: str, bind: Bind | None, name: str | None) -> Addresses:
    """Return where a browser finds the page, on this machine and beyond it."""
    fingerprint = bind.fingerprint if bind else None
    if name is not None:
        return Addresses(page, _named(name, bind), fingerprint)
    if bind is None:
        return Addresses(page)
    host = _outward() if bind.host in ("0.0.0.0", "::") else bind.host
    return Addresses(page, replace(bind, host=host).url, fingerprint)


def _named(name: str, bind: Bind | None) -> str:
    """Return the origin of a name of the owner's: behind a tunnel, or at the port to which we bind."""
    host, colon, port = name.rpartition(":")
    if colon and port.isdigit():
        return f"https://{host}:{port}".lower()
    return f"https://{name}:{bind.port}".lower() if bind else f"https://{name}".lower()


def _outward() -> str:
    """Return the address of this machine from which it would speak to others; nothing is sent to find it."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect(("192.0.2.1", 9))
        return str(asked.getsockname()[0])
    return socket.gethostname()


def _warn_of_taken_port(taken: int, own: int, call: Call) -> None:
    """Send every browser away, since its key may be in other hands, and tell the owner why."""
    sent_away = devices.revoke_all(call)
    message = (
        f"Another user of this machine listens at port {taken}, where covey answered before. covey is at {own} now. "
        "A page that was loaded there meanwhile was not covey's and could read what the browser kept, so every "
        f"browser has to be invited again ({sent_away} were known): covey open. Close all tabs of port {taken}."
    )
    alert(call, "port_taken", message, None, None)


def _warn_of_token(path: Path, call: Call) -> None:
    """Tell the owner that something changed their token, and how to have a new one."""
    message = (
        "owner.token was changed or removed while the daemon ran, and was put back. If it was not you, a program of "
        f"yours may know it. For a new one: covey down; rm {path}; covey init; covey up."
    )
    alert(call, "token_put_back", message, None, None)


def _loopback(project: Project, port: int | None) -> tuple[list[socket.socket], int | None]:
    """Listen on the port that the project had before, or on one that is free and stays the project's.

    Where another user has taken it, another is chosen, and the one that was taken is told.
    """
    kept = project.state / "port"
    text = kept.read_text().strip() if kept.exists() else ""
    known = int(text) if text.isdigit() else 0
    taken: int | None = None
    try:
        listening = _listen_both(port or known) if port or known else _listen_anywhere()
    except Refused:
        if port or not _is_anothers(known):
            raise
        listening, taken = _listen_anywhere(), known
    own = listening[0].getsockname()[1]
    if own != known:
        part = kept.with_suffix(".part")
        part.write_text(str(own))
        part.rename(kept)
    return listening, taken


def _listen_anywhere() -> list[socket.socket]:
    """Listen on a free port that the kernel gives to no outgoing connection, so that it is free after a restart too."""
    for port in random.sample(PORTS, 50):
        with contextlib.suppress(Refused):
            return _listen_both(port)
    return _listen_both(0)


def _listen_both(port: int) -> list[socket.socket]:
    """Listen at both addresses of loopback: a browser that asks for a name under localhost takes either.

    Where there is no second one, nobody else can have it.
    """
    first = _listen("127.0.0.1", port)
    if not _has_second_loopback():
        return [first]
    try:
        return [first, _listen("::1", first.getsockname()[1])]
    except Refused:
        first.close()
        raise


def _has_second_loopback() -> bool:
    if not socket.has_ipv6:
        return False
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as asked:
            asked.bind(("::1", 0))
    except OSError as error:
        if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT):
            return False
        raise
    return True


def _is_anothers(port: int) -> bool:
    """Say whether a process of another user listens at a port of this machine."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for fields in map(str.split, Path(table).read_text().splitlines()[1:]):
                listens = fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port
                if listens and int(fields[7]) != os.geteuid():
                    return True
    return False


def _listen(host: str, port: int, option: str = "--port N") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # the kernel hangs up on a client that takes nothing, whatever is buffered
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STUCK * 1000)
    try:
        listening.bind((host, port))
        listening.listen(1024)  # fails too if another bound the same in this very moment and was faster
    except (OSError, UnicodeError) as error:  # the latter of a name that cannot be one of a host
        listening.close()
        raise Refused(
            f"Port {port} of {host} cannot be had: {getattr(error, 'strerror', None) or error}.",
            hint=f"End what uses it, or give the daemon another: covey up {option}.",
        ) from error
    listening.setblocking(False)
    return listening


def _raise_open_files() -> int:
    """Let this process open as many files as it may, within reason, and return how many those are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return OPEN_FILES if soft == resource.RLIM_INFINITY else soft
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class _JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _keep_log(project: Project, *, foreground: bool) -> None:
    path = project.state / "daemon.log"
    handler: logging.Handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=5_000_000, backupCount=4, encoding="utf-8"
    )
    handler.setFormatter(_JsonLines())
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    logging.raiseExceptions = False
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    if foreground:
        shown = logging.StreamHandler()
        shown.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        root.addHandler(shown)


def main(argv: list[str] | None = None) -> int:
    """Run the daemon of one project in this process."""
    parser = argparse.ArgumentParser(prog="covey.daemon")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--bind")
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("--key", type=Path)
    parser.add_argument("--name")
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--while-needed", action="store_true")
    parser.add_argument("--foreground", action="store_true")
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args(argv)
    memory.keep_little()  # before there are threads
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    CROWD.most = _raise_open_files() // UNKNOWN_SHARE
    try:
        project = projects.find(words.folder.resolve()).must_be_begun()
        step_back(project.root)
        _keep_log(project, foreground=words.foreground)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(project, words, _bind_of(words)))
    except CoveyError as error:
        if words.foreground:
            complain(error, as_json=words.json)
        else:  # `covey up` reads it
            said = {"error": error.message, "hint": error.hint, "exit": error.exit_code}
            sys.stderr.write(json.dumps(said) + "\n")
        return error.exit_code
    return 0


async def _serve(project: Project, words: argparse.Namespace, bind: Bind | None) -> None:
    daemon = Daemon(project, words.port, bind, words.name, hold=words.hold, while_needed=words.while_needed)
    try:
        await daemon.run()
    finally:
        daemon.close()


def _bind_of(words: argparse.Namespace) -> Bind | None:
    if words.bind is None:
        return None
    host, _, port = words.bind.rpartition(":")
    if not host or not port.isdigit() or words.certificate is None or words.key is None:
        raise Invalid("--bind takes HOST:PORT and needs a certificate with its key.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(words.certificate, words.key)
    except (OSError, ssl.SSLError) as error:
        raise Invalid(f"The certificate {words.certificate} cannot be used: {error}.") from error
    return Bind(host.strip("[]"), int(port), words.certificate, words.key)


if __name__ == "__main__":
    sys.exit(main())
