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
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from covey.cli.frame.client import Client, Json, parts
from covey.cli.frame.output import ProgressLine
from covey.core.events import FIRST, IMPORT_AGAIN_HINT, Event, Line
from covey.core.figures import one
from covey.core.figures import size as bytes_of
from covey.core.nouns import MAIL, PROMPTS
from covey.errors import CoveyError, Refused, Unavailable
from covey.git import log_refs
from covey.git.project import Project
from covey.plain import escaped
from covey.store.engine import audit, backup
from covey.store.engine.connection import Connection
from covey.store.engine.lock import WriterLock
from covey.store.engine.sqlite import SqliteStore
from covey.store.engine.transaction import Head, read_head
from covey.store.tx import Tx

LOG_LOCK_TIMEOUT_S = 3.0
"""Seconds to wait for another command; a daemon does not go away by waiting."""
MAX_CHUNK_EVENTS = 2000
MAX_CHUNK_BYTES = 400 * 1024
"""Events and bytes of one request of an import: the daemon takes bodies of up to 1 MiB."""


def show(args: argparse.Namespace, answer: Json, *lines: str) -> None:
    """Print an answer: as JSON, or as sentences."""
    print(escaped(json.dumps(answer, ensure_ascii=False)) if args.json else "\n".join(lines))


@contextmanager
def alone(project: Project) -> Iterator[SqliteStore]:
    """Open the store behind the writer's lock, or say who stands in the way."""
    lock = WriterLock(project.lock)
    try:
        lock.take(0.3 if project.daemon_file.exists() else LOG_LOCK_TIMEOUT_S)
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


def verify(args: argparse.Namespace, client: Client) -> int:
    """Check the hash chain, and every row against it."""
    path = Path(client.folder) / args.file if args.file else client.project().database
    with ProgressLine() as progress:
        report = audit.verify(path, progress)
    shown = [*report.problems]
    if report.count > len(shown):
        shown.append(f"... and {report.count - len(shown)} more.")
    sums = f"{one(report.events, 'event')} and {one(report.rows, 'row')}"
    last = f"{sums}: the log and every row agree." if report.sound else f"{sums}: {one(report.count, 'problem')}."
    answer = {"sound": report.sound, "events": report.events, "rows": report.rows}
    show(args, answer | {"count": report.count, "problems": report.problems}, *shown, last)
    return 0 if report.sound else 1


def rebuild(args: argparse.Namespace, client: Client) -> None:
    """Make every row anew from the log."""
    with ProgressLine() as progress, alone(client.project()) as store:
        rebuilt = store.write(lambda tx: audit.rebuild(tx, progress))
    mended = one(rebuilt.differences, "difference") + " mended" if rebuilt.differences else "nothing was different"
    show(args, rebuilt.__dict__, f"Every row was made anew from {one(rebuilt.events, 'event')}; {mended}.")


def make_backup(args: argparse.Namespace, client: Client) -> None:
    """Copy the whole store to a file."""
    target = (Path(client.folder) / args.file).resolve()
    seq = backup.backup(client.project().database, target)
    show(args, {"file": str(target), "seq": seq}, f"{target} holds the log up to event {seq} with all its rows.")


def prune(args: argparse.Namespace, client: Client) -> None:
    """Remove the long texts that have had their time."""
    blobs = size = 0
    while (answer := client.ask("log.prune").value)["blobs"]:
        blobs, size = blobs + answer["blobs"], size + answer["size"]
    said = f"{one(blobs, 'long text')} with {bytes_of(size)} removed." if blobs else "No long text has had its time."
    show(args, {"blobs": blobs, "size": size}, said)


# Export, import, adopt


def export(args: argparse.Namespace, client: Client) -> None:
    """Write the log to a ref of the repository."""
    project = client.project()
    with ProgressLine() as progress, backup.snapshot(project.database) as db:
        made = log_refs.export(project, _source(db, project, progress), args.included or [])
    answer = {"ref": made.ref, "commit": made.commit, "seq": made.seq, "events": made.events}
    news = f"{one(made.events, 'new event')} in" if made.events else "Nothing is new since"
    left = " and ".join(what for what in (MAIL, PROMPTS) if what not in made.included)
    show(
        args,
        answer | {"included": list(made.included)},
        f"{news} {made.ref} ({made.commit[:12]}), which ends at event {made.seq}.",
        *([f"Left out: {left}."] if left else []),
    )


def _source(db: Connection, project: Project, progress: ProgressLine) -> log_refs.Source:
    head = read_head(db)
    tx = Tx(db, head, now=0.0)

    def events(after: int) -> Iterator[Event]:
        for event in tx.all_events(after):
            yield event
            if event.seq % 10_000 == 0:
                progress("events", event.seq, head.seq)

    return log_refs.Source(head.log, project.name, head.seq, head.hash, events, tx.long_text)


def import_exports(args: argparse.Namespace, client: Client) -> None:
    """Take in the logs that other clones have exported."""
    project = client.project()
    own, known = _known(project)
    refused: list[CoveyError] = []
    if args.source:
        refused += log_refs.fetch(project, _place(args.source, Path(client.folder)), own, again=args.again)
    taken: list[Json] = []
    with ProgressLine() as progress:
        for log, commit in sorted(log_refs.exported(project).items()):
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
    with backup.snapshot(project.database) as db:
        head = read_head(db)
        found = Tx(db, head, now=0.0).ends_of_origins()
        return head.log, {log: Head(log, seq, hash) for log, seq, hash in found}


def _place(source: str, folder: Path) -> str:
    """Return the name of a remote or an address as it is, and a path as git finds it from anywhere."""
    return str((folder / source).resolve()) if os.path.exists(folder / source) else source


def _forget(client: Client, project: Project, log: str, commit: str) -> Head:
    """Forget an imported log, but only for an export that is whole; return where it begins."""
    log_refs.check(project, log, commit, 0, FIRST)
    client.ask("log.forget", fields={"log": log})
    return Head(log, 0, FIRST)


def _take_in(client: Client, project: Project, log: str, commit: str, head: Head, progress: ProgressLine) -> Json:
    """Follow an export to its end before any of it is taken in, then take it in part by part."""
    meta = log_refs.read_meta(project, log, commit)
    if meta.seq <= head.seq:
        _check_known(project, log, meta)
        return {"log": log, "seq": head.seq, "hash": head.hash.hex(), "events": 0}
    new = log_refs.check(project, log, commit, head.seq, head.hash)
    lines_of = log_refs.read_lines(project, log, commit, head.seq)
    sent, answer = 0, {}
    for lines in parts(lines_of, _weight, MAX_CHUNK_EVENTS, MAX_CHUNK_BYTES):
        sent += len(lines)
        progress("events", sent, new)
        fields = {"log": log, "events": [_fields(line) for line in lines], "more": sent < new}
        answer = client.ask("log.import", fields=fields).value
    return {**answer, "events": new}


def _check_known(project: Project, log: str, meta: log_refs.Meta) -> None:
    """Refuse an export that is no longer than what we have of its log, but tells another story."""
    with backup.snapshot(project.database) as db:
        known = Tx(db, read_head(db), now=0.0).origin_hash(log, meta.seq)
    if known is None or known.hex() != meta.head:
        raise Refused(
            f"The log {log} is a fork: its event {meta.seq} is not the one that is known.", hint=IMPORT_AGAIN_HINT
        )


def _weight(line: Line) -> int:
    return len(line.event.data) + 400


def _fields(line: Line) -> Json:
    fields = {**line.event.__dict__, "prev": line.event.prev.hex(), "hash": line.hash.hex()}
    return fields | {"withheld": True} if line.withheld else fields


def adopt(args: argparse.Namespace, client: Client) -> None:
    """Make an imported log this project's own."""
    project = client.project()
    commit = log_refs.exported(project).get(args.log)
    texts = log_refs.read_texts(project, args.log, commit) if commit else iter(())
    with ProgressLine() as progress, alone(project) as store:
        rebuilt = store.write(lambda tx: audit.adopt(tx, args.log, texts, progress))
    show(
        args,
        {"log": args.log, "events": rebuilt.events},
        f"The log {args.log} with {one(rebuilt.events, 'event')} is this project's own now.",
    )
