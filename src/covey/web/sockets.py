"""Terminals over WebSocket: what a run draws goes out as it comes, and what its owner types goes in when they ask."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from covey.app.context import Principal
from covey.core.fleet.runs import TMUX, Run
from covey.errors import CoveyError, Denied, NotFound, Refused, TooLarge
from covey.runners.tmux import TmuxRunner
from covey.runners.watching import HINT_LINES, Size, Watch
from covey.store.bus import Access
from covey.store.tx import Tx
from covey.web.asgi import Receive, Scope, Send, query_of

T = TypeVar("T")

START, END = "/api/sessions/", "/terminal/socket"
BATCH = 0.016
"""Seconds between two messages of terminal output: about one frame of a screen."""
RATE = 512 * 1024
"""Most bytes a second that a viewer is sent; of a flood of output it sees only the end."""
KEYS = 64 * 1024
"""Bytes that may be typed at once."""
IDLE = 600.0
"""Seconds without a key after which typing ends: a forgotten page must not keep covey off the terminal forever."""
MAX_TERMINALS = 100
"""Most terminals shown at once; each is a process."""
SIZES_EVERY = 1.0
LAST_WORDS = 30
"""How many times, a tenth of a second apart, we look whether a run has ended after its terminal closed."""

NORMAL, NO_TERMINAL, NO_SESSION, TOO_MANY = 1000, 4409, 4404, 4429

log = logging.getLogger("covey.sockets")


@dataclass
class Viewer:
    """One socket: whose terminal it shows, and whether its owner types."""

    run: str
    send: Send
    watch: Watch | None = None
    writes: bool = False
    turning: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it begins or ends to type, so that it is counted once."""

    async def tell(self, **said: Any) -> None:
        """Send a message about the terminal, separate from its output."""
        await self.send({"type": "websocket.send", "text": json.dumps(said)})

    async def tell_size(self, size: Size) -> None:
        """Say how large the terminal is from now on; the viewer redraws it."""
        await self.tell(run=self.run, columns=size.columns, rows=size.rows, below=HINT_LINES, write=self.writes)


@dataclass
class Terminals:
    """Serves every socket that shows a terminal, each for the owner alone."""

    panes: TmuxRunner
    bus: Access
    _viewers: list[Viewer] = field(default_factory=list)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "covey-terminal"))
    _sizing: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send, who: Principal) -> None:
        name = scope["path"].removeprefix(START).removesuffix(END)
        if not (scope["path"].startswith(START) and scope["path"].endswith(END)) or not name or "/" in name:
            raise NotFound("There is no socket here.", hint="A terminal is at /api/sessions/NAME/terminal/socket.")
        if not who.is_owner:
            raise Denied("Only the owner may look at a terminal.")
        if (await receive())["type"] != "websocket.connect":
            return
        await send({"type": "websocket.accept"})
        try:
            run = await self._run_of(name)
            await self._serve(Viewer(run.id, send), receive, asks=query_of(scope).get("write") == "1")
        except CoveyError as error:
            await _part(send, error)
        except OSError as error:  # the viewer has gone
            log.debug("a viewer of %s has gone: %s", name, error)

    async def _run_of(self, name: str) -> Run:
        """Return the run of a session whose terminal can be shown."""

        def find(tx: Tx) -> tuple[bool, Run | None]:
            return tx.session(name) is not None, next(iter(tx.open_runs(name)), None)

        known, run = await self.bus.read(find)
        if not known:
            raise NotFound(f"There is no session {name[:100]!r}.", hint="covey session list")
        if run is None:
            raise Refused(f"{name} has no run now.", hint="Its transcript tells what the last one did.")
        if run.runner != TMUX:
            raise _Headless(f"{name} has no terminal: its agent runs without one.", hint="Its transcript tells all.")
        if len(self._viewers) >= MAX_TERMINALS:
            raise _TooMany(f"{MAX_TERMINALS} terminals are open already.", hint="Close some pages.")
        return run

    async def _serve(self, viewer: Viewer, receive: Receive, *, asks: bool) -> None:
        """Show a terminal until its run ends or nobody looks any more."""
        self._viewers.append(viewer)
        if self._sizing is None or self._sizing.done():
            self._sizing = asyncio.create_task(self._follow_sizes())
        tasks = [asyncio.create_task(self._show(viewer, asks=asks)), asyncio.create_task(self._hear(viewer, receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            self._viewers.remove(viewer)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._write(viewer, on=False)

    # What goes out

    async def _show(self, viewer: Viewer, *, asks: bool) -> None:
        """Pass on what is drawn until the run has ended; a client that tmux lost is replaced by another."""
        while True:
            try:
                watch = await self._near_or_not(self.panes.watch, viewer.run, undo=Watch.close)
            except Refused:
                if not (await self._near(self.panes.look, viewer.run)).known:
                    raise
                break
            try:
                if asks:
                    await self._write(viewer, on=True)
                viewer.watch, asks = watch, False
                await viewer.tell_size(watch.size)
                await _pass_on(watch, viewer.send)
            finally:
                viewer.watch = None
                await asyncio.shield(self._near(watch.close))
            if await self._has_ended(viewer.run):
                break
        await viewer.tell(ended=True)
        await viewer.send({"type": "websocket.close", "code": NORMAL, "reason": "The run has ended."})

    async def _has_ended(self, run: str) -> bool:
        """Say whether a run has ended after its terminal closed; that may take a moment to show."""
        for _ in range(LAST_WORDS):
            if not (await self._near(self.panes.look, run)).alive:
                return True
            await asyncio.sleep(0.1)
        return False

    async def _follow_sizes(self) -> None:
        """Tell every viewer when somebody who attached has changed the size of the terminal."""
        while self._viewers:
            try:
                sizes = await self._near(self.panes.sizes)
                for viewer in list(self._viewers):
                    await _follow_size(viewer, sizes.get(viewer.run))
            except (CoveyError, OSError) as error:
                log.warning("the sizes of the terminals are not known: %s", error)
            await asyncio.sleep(SIZES_EVERY)

    # What comes in

    async def _hear(self, viewer: Viewer, receive: Receive) -> None:
        """Take keys and wishes until nobody looks any more."""
        while True:
            try:
                async with asyncio.timeout(IDLE if viewer.writes else None):
                    message = await receive()
            except TimeoutError:
                await self._turn(viewer, on=False)
                continue
            if message["type"] == "websocket.disconnect":
                return
            try:
                await self._take(viewer, message.get("bytes"), message.get("text"))
            except CoveyError as error:
                await viewer.tell(error=error.message, hint=error.hint)

    async def _take(self, viewer: Viewer, typed: bytes | None, text: str | None) -> None:
        if typed is not None:
            if len(typed) > KEYS:
                raise TooLarge(f"At most {KEYS} bytes can be typed at once.", hint="Put it in a file and name that.")
            if viewer.writes and typed:  # what comes without having been asked for is an answer of the page's terminal
                await self._near(self.panes.keys, viewer.run, typed)
            return
        wish = _wish(text or "")
        if wish is not None:
            await self._turn(viewer, on=wish)

    async def _turn(self, viewer: Viewer, *, on: bool) -> None:
        """Let a viewer type, or only look, and tell them which."""
        await self._write(viewer, on=on)
        await viewer.tell(write=viewer.writes)

    async def _write(self, viewer: Viewer, *, on: bool) -> None:
        async with viewer.turning:
            if on and not viewer.writes:
                run = viewer.run
                await self._near_or_not(self.panes.begin_typing, run, undo=lambda _: self.panes.end_typing(run))
                viewer.writes = True
            elif viewer.writes and not on:
                viewer.writes = False
                self.panes.end_typing(viewer.run)

    async def _near(self, job: Callable[..., T], *given: Any) -> T:
        """Do something that may wait for tmux, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(job, *given))

    async def _near_or_not(self, job: Callable[[str], T], run: str, *, undo: Callable[[T], None]) -> T:
        """Do something to a run's terminal in a thread; it is undone if the caller was cancelled meanwhile."""
        doing = asyncio.ensure_future(self._near(job, run))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            doing.add_done_callback(lambda done: self._undo(done, undo))
            raise

    def _undo(self, done: asyncio.Future[T], undo: Callable[[T], None]) -> None:
        if not done.cancelled() and done.exception() is None:
            with contextlib.suppress(RuntimeError):  # the threads are gone, and we are next; nothing outlives us
                self._threads.submit(undo, done.result())


class _TooMany(Refused):
    pass


class _Headless(Refused):
    pass


async def _pass_on(watch: Watch, send: Send) -> None:
    """Send what is drawn until its end.

    Of a viewer who takes it slowly nothing is kept here: what was not read stays with tmux, which throws it away when
    it is too much, and draws the newest screen instead.
    """
    while True:
        await _readable(watch)
        data = watch.read()
        if data == b"":
            return
        if data:
            await send({"type": "websocket.send", "bytes": data})
            await asyncio.sleep(max(BATCH, len(data) / RATE))  # what is drawn meanwhile goes out as one


async def _readable(watch: Watch) -> None:
    loop = asyncio.get_running_loop()
    there = asyncio.Event()
    loop.add_reader(watch.fileno(), there.set)
    try:
        await there.wait()
    finally:
        loop.remove_reader(watch.fileno())


async def _follow_size(viewer: Viewer, size: Size | None) -> None:
    watch = viewer.watch
    if watch is not None and size is not None and size != watch.size:
        with contextlib.suppress(OSError):
            await viewer.tell_size(size)
            watch.resize(size)  # after that, so that nothing of the new size is drawn into the old


async def _part(send: Send, error: CoveyError) -> None:
    """Say why there is nothing to show, and hang up."""
    said = json.dumps({"error": error.message, "hint": error.hint, "headless": isinstance(error, _Headless)})
    code = TOO_MANY if isinstance(error, _TooMany) else NO_SESSION if isinstance(error, NotFound) else NO_TERMINAL
    reason = error.message.encode()[:120].decode(errors="ignore")  # a close frame has no room for more
    with contextlib.suppress(OSError):
        await send({"type": "websocket.send", "text": said})
        await send({"type": "websocket.close", "code": code, "reason": reason})


def _wish(text: str) -> bool | None:
    """Return whether somebody asks to type or to read, None if it is neither."""
    try:
        said = json.loads(text[:200])
    except ValueError:
        return None
    asked = said.get("ask") if isinstance(said, dict) else None
    return {"write": True, "read": False}.get(asked) if isinstance(asked, str) else None
