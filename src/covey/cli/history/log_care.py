"""covey log verify, rebuild, export, import, adopt, backup and prune: the care of the log.

How a lost disk is recovered. While all is well, export now and then, with everything, and push it:

    covey log export --with mail --with prompts
    git push origin 'refs/covey/log/*'

On the new disk, clone the repository and take the old log as this project's own:

    covey init
    covey log import --from origin
    covey log adopt LOGID          the id that the import printed
    covey log verify

Every task, lease, message and merge is there again as of the last export. Tokens of sessions are in no log: mint new
ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.core.events import FIRST, Event
from covey.core.figures import one
from covey.core.figures import size as bytes_of
from covey.core.origins import AGAIN, MAIL, PROMPTS, Line
from covey.errors import CoveyError, Refused, Unavailable
from covey.git import exports
from covey.git.project import Project
from covey.plain import escaped
from covey.store import audit, sqlite
from covey.store.lock import WriterLock
from covey.store.sqlite import SqliteStore
from covey.store.transaction import Db, Head, read_head
from covey.store.tx import Tx

SLOW = 2.0
"""Seconds after which we say how far we are."""
LOCK_PATIENCE = 3.0
"""Seconds to wait for another command; a daemon does not go away by waiting."""
CHUNK = 2000
CHUNK_BYTES = 400 * 1024
"""Events and bytes of one request of an import: the daemon takes bodies of up to 1 MiB."""


class Teller:
    """Says on a terminal how far a long work is."""

    def __init__(self) -> None:
        self._begun = self._said = time.monotonic()
        self._shown = False

    def __call__(self, what: str, done: int, of: int) -> None:
        """Take note of how far we are, and say so now and then."""
        now = time.monotonic()
        if now - self._begun > SLOW and now - self._said > 0.2 and sys.stderr.isatty():
            self._said, self._shown = now, True
            far = f" {done:,} of {of:,}" if of else ""
            print(f"\r\x1b[K{what}{far}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line away."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def telling() -> Iterator[Teller]:
    """Tell how far a long work is while it lasts."""
    teller = Teller()
    try:
        yield teller
    finally:
        teller.end()


def show(args: argparse.Namespace, answer: dict[str, Any], *lines: str) -> None:
    """Print an answer: as JSON, or as sentences."""
    print(escaped(json.dumps(answer, ensure_ascii=False)) if args.json else "\n".join(lines))


@contextmanager
def alone(project: Project) -> Iterator[SqliteStore]:
    """Open the store behind the writer's lock, or say who stands in the way."""
    lock = WriterLock(project.lock)
    try:
        lock.take(0.3 if project.daemon_file.exists() else LOCK_PATIENCE)
    except Unavailable:
        raise Refused("The daemon, or another command, is writing.", hint="covey down stops the daemon.") from None
    try:
        store = SqliteStore(project.database, project=project.name)
        try:
            yield store
        finally:
            store.close()
    finally:
        lock.give()


# Verify, rebuild, backup, prune


def _verify(args: argparse.Namespace, client: Client) -> int:
    path = Path(client.folder) / args.file if args.file else client.project().database
    with telling() as progress:
        report = audit.verify(path, progress)
    shown = [*report.problems]
    if report.count > len(shown):
        shown.append(f"... and {report.count - len(shown)} more.")
    sums = f"{one(report.events, 'event')} and {one(report.rows, 'row')}"
    last = f"{sums}: the log and every row agree." if report.sound else f"{sums}: {one(report.count, 'problem')}."
    answer = {"sound": report.sound, "events": report.events, "rows": report.rows}
    show(args, answer | {"count": report.count, "problems": report.problems}, *shown, last)
    return 0 if report.sound else 1


def _rebuild(args: argparse.Namespace, client: Client) -> None:
    with telling() as progress, alone(client.project()) as store:
        rebuilt = store.write(lambda tx: audit.rebuild(tx, progress))
    mended = one(rebuilt.differences, "difference") + " mended" if rebuilt.differences else "nothing was different"
    show(args, rebuilt.__dict__, f"Every row was made anew from {one(rebuilt.events, 'event')}; {mended}.")


def _backup(args: argparse.Namespace, client: Client) -> None:
    target = (Path(client.folder) / args.file).resolve()
    seq = sqlite.backup(client.project().database, target)
    show(args, {"file": str(target), "seq": seq}, f"{target} holds the log up to event {seq} with all its rows.")


def _prune(args: argparse.Namespace, client: Client) -> None:
    blobs = size = 0
    while (answer := client.ask("log.prune").value)["blobs"]:
        blobs, size = blobs + answer["blobs"], size + answer["size"]
    said = f"{one(blobs, 'long text')} with {bytes_of(size)} removed." if blobs else "No long text has had its time."
    show(args, {"blobs": blobs, "size": size}, said)


# Export, import, adopt


def _export(args: argparse.Namespace, client: Client) -> None:
    project = client.project()
    with telling() as progress, sqlite.snapshot(project.database) as db:
        source = _source(db, project, progress)
        made = exports.export(project, source, args.included or [])
    answer = {"ref": made.ref, "commit": made.commit, "seq": made.seq, "events": made.events}
    news = f"{one(made.events, 'new event')} in" if made.events else "Nothing is new since"
    left = " and ".join(what for what in (MAIL, PROMPTS) if what not in made.included)
    show(
        args,
        answer | {"included": list(made.included)},
        f"{news} {made.ref} ({made.commit[:12]}), which ends at event {made.seq}.",
        *([f"Left out: {left}."] if left else []),
    )


def _source(db: Db, project: Project, progress: Teller) -> exports.Source:
    head = read_head(db)
    tx = Tx(db, head, now=0.0)

    def events(after: int) -> Iterator[Event]:
        for event in tx.all_events(after):
            yield event
            if event.seq % 10_000 == 0:
                progress("events", event.seq, head.seq)

    def text(sha256: str) -> str | None:
        found = db.rows("SELECT text FROM blobs WHERE sha256 = ?", (sha256,))
        return str(found[0][0]) if found else None

    return exports.Source(head.log, project.name, head.seq, head.hash, events, text)


def _import(args: argparse.Namespace, client: Client) -> None:
    project = client.project()
    own, known = _known(project)
    refused: list[CoveyError] = []
    if args.source:
        refused += exports.fetch(project, _place(args.source, Path(client.folder)), own, again=args.again)
    taken: list[dict[str, Any]] = []
    with telling() as progress:
        for log, commit in sorted(exports.exported(project).items()):
            if log != own:
                head = known.get(log, Head(log, 0, FIRST))
                try:
                    if args.again and head.seq:
                        head = _forget(client, project, log, commit)
                    taken.append(_take_in(client, project, log, commit, head, progress))
                except CoveyError as error:
                    refused.append(error)
    lines = [f"{origin['log']}: {one(origin['events'], 'new event')}, up to {origin['seq']}." for origin in taken]
    if lines or not refused:
        show(args, {"origins": taken}, *(lines or ["There is no export of another log here."]))
    if refused:
        raise Refused(" ".join(error.message for error in refused), hint=refused[0].hint)


def _known(project: Project) -> tuple[str, dict[str, Head]]:
    """Return the id of our own log, and where each imported one ends."""
    with sqlite.snapshot(project.database) as db:
        found = [Head(*row) for row in db.rows("SELECT log, seq, hash FROM origins")]
        return read_head(db).log, {head.log: head for head in found}


def _place(source: str, folder: Path) -> str:
    """Return the name of a remote or an address as it is, and a path as git finds it from anywhere."""
    return str((folder / source).resolve()) if (folder / source).exists() else source


def _forget(client: Client, project: Project, log: str, commit: str) -> Head:
    """Forget an imported log, but only for an export that is whole; return where it begins."""
    exports.check(project, log, commit, 0, FIRST)
    client.ask("log.forget", fields={"log": log})
    return Head(log, 0, FIRST)


def _take_in(client: Client, project: Project, log: str, commit: str, head: Head, progress: Teller) -> dict[str, Any]:
    """Follow an export to its end before any of it is taken in, then take it in part by part."""
    meta = exports.read_meta(project, log, commit)
    if meta.seq <= head.seq:
        _check_known(project, log, meta)
        return {"log": log, "seq": head.seq, "hash": head.hash.hex(), "events": 0}
    new = exports.check(project, log, commit, head.seq, head.hash)
    sent, answer = 0, {}
    for lines in _chunks(exports.read_lines(project, log, commit, head.seq)):
        sent += len(lines)
        progress("events", sent, new)
        fields = {"log": log, "events": [_fields(line) for line in lines], "more": sent < new}
        answer = client.ask("log.import", fields=fields).value
    return {**answer, "events": new}


def _check_known(project: Project, log: str, meta: exports.Meta) -> None:
    """Refuse an export that is no longer than what we have of its log, but tells another story."""
    with sqlite.snapshot(project.database) as db:
        found = db.rows("SELECT hash FROM origin_events WHERE log = ? AND seq = ?", (log, meta.seq))
    if not found or found[0][0].hex() != meta.head:
        raise Refused(f"The log {log} is a fork: its event {meta.seq} is not the one that is known.", hint=AGAIN)


def _chunks(lines: Iterator[Line]) -> Iterator[list[Line]]:
    chunk: list[Line] = []
    size = 0
    for line in lines:
        weight = len(line.event.data) + 400
        if chunk and (len(chunk) == CHUNK or size + weight > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(line)
        size += weight
    if chunk:
        yield chunk


def _fields(line: Line) -> dict[str, Any]:
    fields = {**line.event.__dict__, "prev": line.event.prev.hex(), "hash": line.hash.hex()}
    return fields | {"withheld": True} if line.withheld else fields


def _adopt(args: argparse.Namespace, client: Client) -> None:
    project = client.project()
    commit = exports.exported(project).get(args.log)
    texts = exports.read_texts(project, args.log, commit) if commit else iter(())
    with telling() as progress, alone(project) as store:
        rebuilt = store.write(lambda tx: audit.adopt(tx, args.log, texts, progress))
    show(
        args,
        {"log": args.log, "events": rebuilt.events},
        f"The log {args.log} with {one(rebuilt.events, 'event')} is this project's own now.",
    )


# The commands


def _no_arguments(parser: Parser) -> None:
    """Take nothing but what every command takes."""


def _export_arguments(parser: Parser) -> None:
    what = "include what is left out otherwise (mail, prompts); give it once for each"
    parser.add_argument("--with", dest="included", action="append", choices=(MAIL, PROMPTS), help=what)


def _import_arguments(parser: Parser) -> None:
    where = "fetch them first: a remote, an address or a path"
    parser.add_argument("--from", dest="source", metavar="REMOTE", help=where)
    again = "forget what was imported, and take every export in from its beginning, as when one was made anew"
    parser.add_argument("--again", action="store_true", help=again)


COMMANDS = {
    "verify": Command(
        "check the hash chain, and every column of every row against it; exit code 1 if something is wrong",
        lambda parser: parser.add_argument(
            "file", nargs="?", metavar="FILE", help="a backup (default: this project's)"
        ),
        _verify,
        example="covey log verify\ncovey log verify covey-backup.db",
        owner=True,
    ),
    "rebuild": Command(
        "make every row anew from the log alone; the daemon must be down",
        _no_arguments,
        _rebuild,
        example="covey down && covey log rebuild",
        owner=True,
    ),
    "export": Command(
        "write the log to refs/covey/log/<log id> of the repository, without mail and prompts unless asked",
        _export_arguments,
        _export,
        example="covey log export --with mail --with prompts\ngit push origin 'refs/covey/log/*'",
        owner=True,
    ),
    "import": Command(
        "take the exported logs of other origins in, beside this project's own",
        _import_arguments,
        _import,
        example="covey log import --from origin\ncovey log --origin LOGID\ncovey log import --again --from origin",
        owner=True,
    ),
    "adopt": Command(
        "make an imported log this project's own, after a lost disk; the daemon must be down",
        lambda parser: parser.add_argument("log", metavar="LOGID", help="the id of an imported log"),
        _adopt,
        example="covey init && covey log import --from origin && covey log adopt LOGID",
        owner=True,
    ),
    "backup": Command(
        "copy the whole store to a file, while others write to it",
        lambda parser: parser.add_argument("file", metavar="FILE", help="a file that does not exist yet"),
        _backup,
        example="covey log backup ../covey-backup.db",
        owner=True,
    ),
    "prune": Command(
        "remove long texts of ended tasks and old mail beyond [log] keep_days and keep_megabytes; the log stays whole",
        _no_arguments,
        _prune,
        example="covey log prune",
        owner=True,
    ),
}


def run(word: str, argv: list[str], folder: Path) -> int:
    """Run one command of the log's care in a folder."""
    command = COMMANDS[word]
    args = command.parser(f"log {word}").parse_args(argv)
    client = Client(str(folder / args.folder) if args.folder else str(folder))
    return command.run(args, client) or 0
