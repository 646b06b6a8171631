"""The command line of the daemon, its log and what it asks of the system; `covey up` starts it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import gc
import json
import logging
import logging.handlers
import resource
import signal
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import uvloop

from covey import memory
from covey.cli.main import complain
from covey.daemon.daemon import Daemon
from covey.errors import CoveyError, Invalid, Unavailable
from covey.git import project as projects
from covey.git.project import Project
from covey.installation import step_back
from covey.web.addresses import Bind
from covey.web.http import CROWD

OPEN_FILES = 16_384
"""Files that the daemon may open: most systems begin with 1,024, and every connection is one."""
UNKNOWN_SHARE = 4
"""The part of these that clients may have open who have not shown who they are."""


def run(argv: list[str] | None = None) -> int:
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
        with _full_disk_is_told():
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


@contextlib.contextmanager
def _full_disk_is_told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise Unavailable("The disk is full, so the daemon cannot run.", hint="Make room and try again.") from error


async def _serve(project: Project, words: argparse.Namespace, bind: Bind | None) -> None:
    daemon = Daemon(project, words.port, bind, words.name, hold=words.hold, while_needed=words.while_needed)
    gc.freeze()  # what is there now stays to the end, so it need not be looked through again and again
    gc.enable()
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


def _raise_open_files() -> int:
    """Raise the limit of open files as far as is allowed and sensible, and return it."""
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
