"""The daemon: puts the store, the web and the loops together, and is the only writer while it lives."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from uvicorn.config import Config
from uvicorn.server import Server

from covey import __version__, config, proof
from covey.app.app import App
from covey.app.clock import SystemClock
from covey.app.context import Call, Context
from covey.app.fleet.heartbeats import Pulses
from covey.app.fleet.sessions import alert
from covey.app.people import devices
from covey.cli.frame.client import check_own, is_daemon
from covey.core.events import Started, Stopped
from covey.core.fleet.sessions import COVEY
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError, Refused
from covey.files import write_whole
from covey.git.project import Project
from covey.git.worktrees.worktrees import Worktrees, default_folder
from covey.hooks.outside import Outside
from covey.hooks.server import Hooks
from covey.installation import path_mark
from covey.loops.cleanup import Cleanup
from covey.loops.expiry import LOOK_EVERY, Expiry
from covey.loops.fleet.commit_reader import lands
from covey.loops.fleet.fleet_loop import Fleet
from covey.loops.fleet.fleet_memory import FleetMemory
from covey.loops.fleet.terminals import Typist
from covey.loops.lifetime import Lifetime
from covey.loops.live import HEARS as LIVE_HEARS
from covey.loops.live import Live, Moment
from covey.loops.merge_queue.queue_loop import HEARS as QUEUE_HEARS
from covey.loops.merge_queue.queue_loop import Queue
from covey.loops.radar import Radar
from covey.loops.runtime import Runtime, cancel, going_on
from covey.runners.tmux import TmuxRunner
from covey.store.bus import Bus
from covey.store.engine.lock import WriterLock
from covey.store.engine.sqlite import SqliteStore
from covey.store.tx import Tx
from covey.web.addresses import Bind, addresses_of, doors_of, host_name
from covey.web.http import KEEP_ALIVE_S, Http, WebSocket
from covey.web.listening import listen, loopback
from covey.web.server import Web
from covey.web.sockets import Terminals
from covey.web.stream import Hub

COUNTS_EVERY = 0.25
LOCK_TIMEOUT_S = 5.0
"""Seconds for which a command without a daemon may hold the lock while we start."""
SOCKET_MESSAGE = 64 * 1024
"""Bytes that one message over a WebSocket may have: what a person pastes into a terminal."""
GRACE = 3
"""Seconds that requests under way have to end when the daemon stops."""

TELL_EVERY_S = 600.0
"""Seconds between two alerts of the same kind."""
RETRY_COUNTS_S = 10.0
"""Seconds until the counters are told again after that failed: a lasting failure must not fill the log."""
log = logging.getLogger("covey.daemon")


class _Server(Server):
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
        if not self._lock.take(LOCK_TIMEOUT_S, lambda: _has_spoken(project)):  # a command that writes is done soon
            raise Refused("This project has a daemon already.", hint="covey status tells where it answers.")
        project.daemon_file.unlink(missing_ok=True)  # what a killed daemon said names a process that is gone
        clock = SystemClock()
        self._store = SqliteStore(
            project.database, clock=lambda: clock.now().wall, project=project.name, lock=project.lock
        )
        self._token = project.token()
        self._complaint = ""
        self._stop = asyncio.Event()
        self._unneeded = False
        watcher, settings = config.Watcher(project.root), config.load(project.root)
        columns, rows = settings.sessions.terminal_size
        runner = TmuxRunner(project.runs, columns=columns, rows=rows)
        worktrees = Worktrees(project, default_folder(project, settings.sessions.worktrees))
        self._listen(port, bind)
        self._hub = Hub(clock)
        self._lifetime = Lifetime(project, clock, while_needed=while_needed, page_at=self._hub.page_at)
        memory = FleetMemory(clock)
        moment = Moment(memory, worktrees, clock)
        context = Context(
            settings,
            Pulses(clock, self._store.place),
            project.name,
            has_daemon=True,
            secret=self._token.encode(),
            runner=runner,
            runs=project.runs,
            repository=project,
            addresses=addresses_of(self._page, bind, name),
            fleet=memory,
            changed_settings=watcher.changed,
            moment=moment.whole,
            stays_for=self._lifetime.reasons,
            commits=partial(lands, project, worktrees, self._store, clock),
        )
        self._app = App(self._store, context)
        self._bus = Bus(self._store)
        typist = Typist(runner, time.sleep)
        self._runtime = Runtime(self._app, project, runner, worktrees, proof.DOOR, self._bus, typist=typist)
        self._fleet = Fleet(self._runtime, memory, hold=hold)
        self._queue = Queue(self._runtime)
        self._radar = Radar(self._runtime)
        self._live = Live(self._runtime, memory, moment, lambda: self._hub.people, self._hub.tell_people)
        self._hub.greet = self._live.greet
        self._hooks = Hooks(
            self._runtime, self._fleet.hook_reports, self._fleet.attendant.mailing, Outside(self._runtime)
        )
        self._web = Web(
            self._app,
            self._bus,
            self._hub,
            self._token,
            doors_of(self._page, self._port, bind, name),
            hooks=self._hooks,
            sockets=Terminals(runner, self._bus),
        )
        self._servers = [self._server(i) for i in range(len(self._sockets))]
        self._bus.listen(self._fleet.hear)
        self._bus.listen(self._queue.hear, *QUEUE_HEARS)
        self._bus.listen(self._radar.hear, "task.", "merge.rejected")
        self._bus.listen(self._hooks.forget, "run.ended", "session.removed")
        self._bus.listen(self._hooks.permissions.hear, "question.", "session.attached", "run.ending", "run.ended")
        self._bus.listen(self._live.hear, *LIVE_HEARS)

    def _listen(self, port: int | None, bind: Bind | None) -> None:
        """Listen on loopback, and beyond it if told; who asks there waits until we serve."""
        self._sockets, self._taken = loopback(self.project, port)
        self._bind = bind
        self._plain = len(self._sockets)
        if bind is not None:
            self._sockets.append(listen(bind.host, bind.port, "--bind HOST:PORT"))
        self._port = self._sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._page = f"http://{host_name(self.project, self._store.head.log)}:{self._port}"

    def _server(self, number: int) -> _Server:
        tls = self._bind if number >= self._plain else None
        settings = Config(
            self._web,
            loop="none",
            http=Http,
            ws=WebSocket,
            ws_max_size=SOCKET_MESSAGE,
            ws_per_message_deflate=False,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
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
        await self._bus.write(lambda tx: tx.append(COVEY, "daemon", Started(__version__)))
        await self._hooks.permissions.begin()
        if self._taken is not None:
            await self._runtime.write(partial(_warn_of_taken_port, self._taken, self._port))
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
                self._clean(),
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
        self._hooks.permissions.close()
        for server in self._servers:
            server.should_exit = True
        for ended in await asyncio.gather(*serving, return_exceptions=True):
            if ended is not None:
                log.error("a server of this daemon failed", exc_info=ended)
        await cancel(loops)
        await self._live.stop()
        await self._queue.stop()
        await self._fleet.stop()
        await self._last_words()

    async def _go_when_unneeded(self) -> None:
        await self._lifetime.until_unneeded(self._runtime)
        self._unneeded = True
        self._stop.set()

    async def _goodbye(self) -> dict[str, object]:
        """Return what whoever follows is told before the connection ends: that it is on purpose, and who works on."""
        agents = 0
        with contextlib.suppress(CoveyError):
            agents = len(await self._runtime.read(lambda call: call.tx.open_runs()))
        return {"why": "unneeded" if self._unneeded else "stopped", "agents": agents}

    async def _last_words(self) -> None:
        def last(tx: Tx) -> None:
            self._app.note_pulses(tx)
            tx.append(COVEY, "daemon", Stopped())

        try:
            await self._bus.write(last)
        except CoveyError as error:
            log.warning("the last words were not written: %s", error)
        await self._bus.stop()

    def close(self) -> None:
        """Finish what was begun, and let the lock go last."""
        self._runtime.close()
        self._web.close()
        self._bus.close()
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
            "port": self._port,
            "version": __version__,
            "errand": self._fleet.hold,
            "path": path_mark(os.environ),
        }
        if self._bind is not None:
            said |= {"bind": self._bind.url, "fingerprint": self._bind.fingerprint}
        write_whole(self.project.daemon_file, json.dumps(said | {"started": round(time.time(), 3)}), 0o600)
        log.info("serving at %s", self.url)

    async def _look(self) -> None:
        expiry = Expiry(self._app, self._bus.read, self._bus.write)
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await self._refresh()
            with going_on(log, "what silence ends could not be ended"):
                await expiry.tick()

    async def _clean(self) -> None:
        cleanup = Cleanup(self._app, self._bus.write, partial(self._bus.write, long=True))
        while True:
            await asyncio.sleep(LOOK_EVERY)
            with going_on(log, "the cleaning could not be finished"):
                await cleanup.tick()

    async def _refresh(self) -> None:
        """Take up settings that were changed; tell once of ones that make no sense, and keep those from before."""
        try:
            self._app.context.refresh()
            self._complaint = ""
        except CoveyError as error:
            if error.message != self._complaint:
                self._complaint = error.message
                message = f"{error.message} The settings from before hold until it is mended. {error.hint}".strip()
                await self._runtime.write(lambda call: alert(call, AlertKind.BAD_SETTINGS, message, None, None))

    async def _stand(self) -> None:
        """Notice at once when the files under the board are taken away, also if nobody writes.

        Without the lock under its name another daemon may be the only writer: then this one ends.
        """
        told = False
        while self._lock.is_ours:
            await asyncio.sleep(COUNTS_EVERY)
            if not self._store.is_standing() and self._store.lost is None:
                with contextlib.suppress(CoveyError):
                    await self._bus.write(lambda tx: None)
            told = told or self._tell_of_loss()
        log.critical("%s is not the one that this daemon holds any more, so it ends", self.project.lock)
        with contextlib.suppress(CoveyError):  # what was acknowledged is kept first, if its file is gone too
            await self._bus.write(lambda tx: None)
        if not told and self._tell_of_loss():
            await asyncio.sleep(COUNTS_EVERY)  # for whoever looks to be told before the connection ends
        self._stop.set()

    def _tell_of_loss(self) -> bool:
        """Tell whoever looks at the page that the board's file is gone, if it is."""
        lost = self._store.lost
        if lost is not None:
            message = f"{lost.message} {lost.hint}"
            self._hub.tell_people("alerts", {"type": AlertKind.BOARD_LOST, "session": None, "message": message})
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
                    await self._runtime.write(partial(_warn_of_token, self.project.owner_token))

    async def _count(self) -> None:
        pause = COUNTS_EVERY
        while True:
            await asyncio.sleep(pause)
            pause = RETRY_COUNTS_S
            with going_on(log, "the counters were not told"):
                await self._web.followers.tell_counts()
                pause = COUNTS_EVERY


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


def _warn_of_taken_port(taken: int, own: int, call: Call) -> None:
    """Send every browser away, since its key may be in other hands, and tell the owner why."""
    sent_away = devices.revoke_all(call)
    message = (
        f"Another user of this machine listens at port {taken}, where covey answered before. covey is at {own} now. "
        "A page that was loaded there meanwhile was not covey's and could read what the browser kept, so every "
        f"browser has to be invited again ({sent_away} were known): covey open. Close all tabs of port {taken}."
    )
    alert(call, AlertKind.PORT_TAKEN, message, None, None)


def _warn_of_token(path: Path, call: Call) -> None:
    """Tell the owner that something changed their token, and how to have a new one."""
    message = (
        "owner.token was changed or removed while the daemon ran, and was put back. If it was not you, a program of "
        f"yours may know it. For a new one: covey down; rm {path}; covey init; covey up."
    )
    alert(call, AlertKind.TOKEN_PUT_BACK, message, None, None)
