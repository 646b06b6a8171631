"""The log in git: exported to refs/covey/log/<log id>, one ref per origin, and read back from there.

A commit per export. Its tree:

    meta.json                     which log, what is included, the last event and its hash
    events/0000000001.jsonl       ten thousand events each, one a line, named for the first
    blobs/<sha256>                long texts, if what they belong to is included

A line has seq, time, actor, kind, subject, data, key, prev and hash. What is not included is absent from `data` and
named in `withheld`; `hash` is that of the event as it is at home, so that the chain still links.

Only plumbing: index, checkout, HEAD and configuration of the user are never touched. `git push REMOTE
'refs/covey/log/*'` takes the exports elsewhere, and `fetch` here brings them back.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from covey.core.events import FIRST, Event, digest
from covey.core.origins import AGAIN, MAIL, PRIVATE, PROMPTS, Line, follow
from covey.errors import CoveyError, Refused, ToolFailed
from covey.git import refs
from covey.git.project import Project
from covey.git.refs import Order
from covey.git.run import complaint, git, try_git
from covey.values import dataclass

REFS = "refs/covey/log/"
INCOMING = "refs/covey/incoming/"
KEPT = "refs/covey/kept/"
"""Where we advise to keep an export that is made anew."""
SEGMENT = 10_000
FORMAT = 1
FETCH_PATIENCE = 300.0
WRITE_PATIENCE = 300.0
LARGEST = 512 * 1024 * 1024
"""Bytes of one file of an export that we are willing to read."""

_LOG = re.compile(r"[0-9a-f]{32}\Z")
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "covey"), ("EMAIL", "covey@localhost"))
}


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """What an export says of itself."""

    format: int
    log: str
    project: str
    included: list[str]
    seq: int
    head: str


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a segment; `data` stays as it was written, byte for byte, since its hash depends on it."""

    seq: int
    time: float
    actor: str
    kind: str
    subject: str
    data: msgspec.Raw
    key: str | None
    prev: str
    hash: str
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """The log that is exported: its id and project, its end, its events after a number, and its long texts by hash."""

    log: str
    project: str
    seq: int
    hash: bytes
    events: Callable[[int], Iterator[Event]]
    text: Callable[[str], str | None]


@dataclass(frozen=True)
class Export:
    """One export as it was written, or as it stood already."""

    ref: str
    commit: str
    seq: int
    events: int
    included: tuple[str, ...]


@dataclass(frozen=True)
class _Entry:
    mode: str
    kind: str
    oid: str
    name: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode
_decode_meta = msgspec.json.Decoder(Meta).decode
_decode_data = msgspec.json.Decoder(dict[str, Any]).decode


# Export


def export(project: Project, source: Source, included: Iterable[str]) -> Export:
    """Bring the project's own log to its ref, from where the last export ended; nothing new makes no commit."""
    wanted = tuple(sorted(set(included)))
    ref = REFS + source.log
    old = _resolve(project, ref)
    meta = None if old is None else read_meta(project, source.log, old)
    if old is not None and meta is not None:
        _check_continues(source, meta, wanted, ref)
        if meta.seq == source.seq:
            return Export(ref, old, meta.seq, 0, wanted)
    after = 0 if meta is None else meta.seq // SEGMENT * SEGMENT
    segments, blobs = _finished(project, old, after)
    names: set[str] = set()
    for lines in _segments(source, meta, after, wanted, names):
        segments.append(_Entry("100644", "blob", _write(project, b"\n".join(lines) + b"\n"), _name(after)))
        after += len(lines)
    blobs += _write_texts(project, source, names - {entry.name for entry in blobs})
    tree = _write_tree(project, source, wanted, segments, blobs)
    first = 1 if meta is None else meta.seq + 1
    commit = _commit(project, tree, old, _message(source, wanted, first))
    _move(project, ref, commit, old)
    return Export(ref, commit, source.seq, source.seq - first + 1, wanted)


def _check_continues(source: Source, meta: Meta, wanted: tuple[str, ...], ref: str) -> None:
    if tuple(meta.included) != wanted:
        have = " and ".join(meta.included) or "neither mail nor prompts"
        raise Refused(f"The export in {ref} includes {have}, and that cannot change within it.", hint=_anew(ref))
    ahead = meta.seq > source.seq
    if ahead or (meta.seq == source.seq and meta.head != source.hash.hex()):
        why = f"it has {meta.seq} events, and the log has {source.seq}" if ahead else "its last event is another one"
        raise Refused(f"The export in {ref} is not of this log: {why}.", hint=_if_right(ref))


def _anew(ref: str) -> str:
    """Say how an export is begun again; git keeps no trace of a ref of ours that is deleted."""
    kept = ref.replace(REFS, KEPT)
    return (
        f"To export anew: git update-ref {kept} {ref} keeps the old one, git update-ref -d {ref} makes room; then "
        "export again, and push with --force."
    )


def _if_right(ref: str) -> str:
    return f"After a backup was restored, this is to be expected. {_anew(ref)}"


def _finished(project: Project, old: str | None, after: int) -> tuple[list[_Entry], list[_Entry]]:
    """Return the segments of the last export that can grow no more, and its long texts."""
    if old is None:
        return [], []
    segments = [entry for entry in _entries(project, f"{old}:events") if entry.name <= _name(after - SEGMENT)]
    return segments, _entries(project, f"{old}:blobs")


def _segments(
    source: Source, meta: Meta | None, after: int, wanted: tuple[str, ...], names: set[str]
) -> Iterator[list[bytes]]:
    """Yield the lines of one segment after another, following the chain up to the head; note the long texts."""
    lines: list[bytes] = []
    link = None if after else FIRST
    seq = after
    for event in source.events(after):
        if event.seq != seq + 1 or (link is not None and event.prev != link):
            raise _damaged(source, seq + 1)
        seq, link = event.seq, digest(event)
        if meta is not None and seq == meta.seq and link.hex() != meta.head:
            ref = REFS + source.log
            raise Refused(f"The export in {ref} is a fork of this log at event {seq}.", hint=_if_right(ref))
        lines.append(_line(event, link, wanted, names))
        if len(lines) == SEGMENT:
            yield lines
            lines = []
    if seq != source.seq or link != source.hash:
        raise _damaged(source, seq)
    if lines:
        yield lines


def _line(event: Event, own: bytes, wanted: tuple[str, ...], names: set[str]) -> bytes:
    what, private = PRIVATE.get(event.kind, ("", ()))
    data, withheld = event.data, tuple[str, ...]()
    if "sha256" in data or (private and what not in wanted):
        said = _decode_data(data)
        if private and what not in wanted:
            withheld = tuple(name for name in private if name in said)
            data = _encode({name: value for name, value in said.items() if name not in withheld}).decode()
        names.update(value["sha256"] for name, value in said.items() if name not in withheld and _is_blob(value))
    return _encode(
        _Line(
            event.seq,
            event.time,
            event.actor,
            event.kind,
            event.subject,
            msgspec.Raw(data.encode()),
            event.key,
            event.prev.hex(),
            own.hex(),
            withheld,
        )
    )


def _is_blob(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"sha256", "size"}


def _damaged(source: Source, seq: int) -> Refused:
    return Refused(
        f"The log {source.log} is damaged at event {seq}, so it is not exported.", hint="Run covey log verify."
    )


def _name(after: int) -> str:
    return f"{after + 1:010}.jsonl"


def _message(source: Source, wanted: tuple[str, ...], first: int) -> str:
    left = [what for what in (MAIL, PROMPTS) if what not in wanted]
    rest = f"Left out: {', '.join(left)}." if left else "Nothing is left out."
    return f"Log of {source.project}: events {first} to {source.seq}\n\nLog {source.log}.\n{rest}\n"


# Writing objects and refs


def _env(project: Project) -> dict[str, str]:
    return {"GIT_DIR": str(project.common), "GIT_TERMINAL_PROMPT": "0", **_IDENTITY}


def _git(project: Project, *words: str, stdin: bytes | None = None, patience: float = WRITE_PATIENCE) -> bytes:
    return git(*words, at=project.common, stdin=stdin, env=_env(project), patience=patience)


def _write(project: Project, content: bytes) -> str:
    return _git(project, "hash-object", "-w", "--stdin", stdin=content).decode().strip()


def _write_texts(project: Project, source: Source, names: set[str]) -> list[_Entry]:
    """Write those long texts that are still kept, many in one call of git."""
    entries: list[_Entry] = []
    ordered = sorted(names)
    for start in range(0, len(ordered), 200):
        with TemporaryDirectory() as folder:
            kept: list[str] = []
            for name in ordered[start : start + 200]:
                text = source.text(name)
                if text is not None:
                    (Path(folder) / name).write_bytes(text.encode())
                    kept.append(name)
            paths = "".join(f"{folder}/{name}\n" for name in kept)
            oids = _git(project, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=paths.encode())
            entries += [
                _Entry("100644", "blob", oid, name) for oid, name in zip(oids.decode().split(), kept, strict=True)
            ]
    return entries


def _write_tree(
    project: Project, source: Source, wanted: tuple[str, ...], segments: list[_Entry], blobs: list[_Entry]
) -> str:
    meta = Meta(
        format=FORMAT,
        log=source.log,
        project=source.project,
        included=list(wanted),
        seq=source.seq,
        head=source.hash.hex(),
    )
    entries = [_Entry("040000", "tree", _tree(project, segments), "events")]
    entries += [_Entry("040000", "tree", _tree(project, blobs), "blobs")] if blobs else []
    text = msgspec.json.format(_encode(meta), indent=2) + b"\n"
    return _tree(project, [*entries, _Entry("100644", "blob", _write(project, text), "meta.json")])


def _tree(project: Project, entries: list[_Entry]) -> str:
    listing = "".join(f"{entry.mode} {entry.kind} {entry.oid}\t{entry.name}\n" for entry in entries)
    return _git(project, "mktree", stdin=listing.encode()).decode().strip()


def _commit(project: Project, tree: str, parent: str | None, message: str) -> str:
    parents = [] if parent is None else ["-p", parent]
    return _git(project, "commit-tree", tree, *parents, stdin=message.encode()).decode().strip()


def _move(project: Project, ref: str, new: str, old: str | None) -> None:
    """Move a ref from where we saw it, and from nowhere else."""
    done = refs.change(project, Order(ref, new, old or ""))
    if done.returncode != 0:
        raise ToolFailed(f"{ref} could not be moved: {complaint(done)}.", hint="Try again.")


# Reading


def _resolve(project: Project, ref: str) -> str | None:
    asked = try_git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", at=project.common, env=_env(project))
    return asked.stdout.decode().strip() if asked.returncode == 0 else None


def _entries(project: Project, tree: str) -> list[_Entry]:
    """Return what a tree has in it; nothing if there is no such tree."""
    asked = try_git("ls-tree", "-z", "--full-tree", tree, at=project.common, env=_env(project))
    if asked.returncode != 0:
        return []
    found = (entry.partition("\t") for entry in asked.stdout.decode(errors="replace").split("\0") if entry)
    heads = ((*head.split(" "), name) for head, _, name in found)
    return [_Entry(mode, kind, oid, name) for mode, kind, oid, name in heads]


def _content(project: Project, log: str, name: str) -> bytes:
    """Return a file of an export, unless it is larger than any that we would write."""
    size = try_git("cat-file", "-s", name, at=project.common, env=_env(project))
    if size.returncode != 0:
        raise Refused(f"The export of the log {log} lacks {name.partition(':')[2] or name}.")
    if int(size.stdout) > LARGEST:
        raise Refused(f"The export of the log {log} has a file of {int(size.stdout)} bytes, which is too large.")
    return _git(project, "cat-file", "blob", name)


def exported(project: Project) -> dict[str, str]:
    """Return the commit of every export in the repository, by the id of its log."""
    printed = _git(project, "for-each-ref", "--format=%(refname) %(objectname)", REFS).decode()
    pairs = (line.removeprefix(REFS).split(" ") for line in printed.splitlines())
    return {pair[0]: pair[1] for pair in pairs if _LOG.match(pair[0])}


def read_meta(project: Project, log: str, commit: str) -> Meta:
    """Return what an export says of itself, or refuse one that is none."""
    try:
        meta = _decode_meta(_content(project, log, f"{commit}:meta.json"))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"{REFS}{log} holds no export of a log: {error}.") from None
    if meta.format != FORMAT:
        raise Refused(f"{REFS}{log} is of the format {meta.format}, and this covey reads {FORMAT}.")
    if meta.log != log:
        raise Refused(f"{REFS}{log} holds the log {meta.log[:80]!r}, not the one that it is named for.")
    return meta


def read_lines(project: Project, log: str, commit: str, after: int) -> Iterator[Line]:
    """Yield the events of an export after a number, in the order in which they stand there."""
    first = _name(after // SEGMENT * SEGMENT)
    for entry in _entries(project, f"{commit}:events"):
        if entry.name < first:
            continue
        for number, text in enumerate(_content(project, log, entry.oid).splitlines(), 1):
            try:
                line = _read_line(text)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise Refused(f"Line {number} of {entry.name} in {REFS}{log} is no event: {error}.") from None
            if line.event.seq > after:
                yield line


def _read_line(text: bytes) -> Line:
    line = _decode(text)
    data = bytes(line.data)
    _decode_data(data)
    event = Event(
        line.seq, line.time, line.actor, line.kind, line.subject, data.decode(), line.key, bytes.fromhex(line.prev)
    )
    return Line(event, bytes.fromhex(line.hash), line.withheld)


def check(project: Project, log: str, commit: str, seq: int, link: bytes) -> int:
    """Follow an export from the event at which we know its log to its end, and return how many events are new."""
    meta = read_meta(project, log, commit)
    new = 0
    for line in read_lines(project, log, commit, seq):
        follow(log, line, seq, link)
        seq, link, new = line.event.seq, line.hash, new + 1
    if (seq, link.hex()) != (meta.seq, meta.head):
        raise Refused(f"The export of the log {log} is not whole: it says {meta.seq} events, and ends at {seq}.")
    return new


def read_texts(project: Project, log: str, commit: str) -> Iterator[str]:
    """Yield the long texts of an export, each checked against its hash by whoever looks for it."""
    for entry in _entries(project, f"{commit}:blobs"):
        yield _content(project, log, entry.oid).decode(errors="replace")


# Fetch


def fetch(project: Project, source: str, own: str, *, again: bool = False) -> list[CoveyError]:
    """Bring the exports of another repository here, but for our own log's; return those that could not be taken.

    A ref that we have is only ever moved forward, unless it is to be taken again. They arrive aside first, so that
    nothing of ours is overwritten.
    """
    aside = f"{INCOMING}{secrets.token_hex(8)}/"
    try:
        _git(
            project, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
            "--no-auto-maintenance", "--refmap=", "--", source, f"+{REFS}*:{aside}*", patience=FETCH_PATIENCE,
        )  # fmt: skip
        printed = _git(project, "for-each-ref", "--format=%(refname) %(objectname)", aside).decode()
        pairs = [line.removeprefix(aside).split(" ") for line in printed.splitlines()]
        refused = [_take(project, log, new, again=again) for log, new in pairs if log != own and _LOG.match(log)]
    finally:
        _forget(project, aside)
    return [error for error in refused if error is not None]


def _take(project: Project, log: str, new: str, *, again: bool) -> CoveyError | None:
    ref = REFS + log
    old = _resolve(project, ref)
    if old == new or (old is not None and _is_behind(project, new, old)):
        return None
    if old is not None and not again and not _is_behind(project, old, new):
        return Refused(f"The log {log} that was fetched is not a continuation of the one in {ref}.", hint=AGAIN)
    try:
        _move(project, ref, new, old)
    except CoveyError as error:
        return error
    return None


def _is_behind(project: Project, one: str, other: str) -> bool:
    return try_git("merge-base", "--is-ancestor", one, other, at=project.common, env=_env(project)).returncode == 0


def _forget(project: Project, aside: str) -> None:
    refs.change(project, *(Order(name, None) for name in refs.values(project, aside)))
