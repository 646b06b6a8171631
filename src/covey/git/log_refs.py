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
from typing import Any

import msgspec

from covey.core.events import FIRST, IMPORT_AGAIN_HINT, Event, Line, digest, follow
from covey.core.nouns import MAIL, PRIVATE, PROMPTS
from covey.errors import CoveyError, Refused, ToolFailed
from covey.git import objects, refs
from covey.git.candidates.candidates import Author, commit_tree, resolve
from covey.git.identity import AUTHOR_AND_COMMITTER, COVEY, FETCH_ONLY, INCOMING_REFS, KEPT_REFS, LOG_REFS, NO_PROMPT
from covey.git.objects import Writer
from covey.git.project import Project
from covey.git.refs import Order
from covey.git.run import complaint, git, try_git
from covey.values import dataclass

SEGMENT_EVENTS = 10_000
FORMAT_VERSION = 1
LOG_FETCH_TIMEOUT_S = 300.0
LOG_WRITE_TIMEOUT_S = 300.0
MAX_EXPORT_BYTES = 512 * 1024 * 1024
"""Bytes of one file of an export that we are willing to read."""

_LOG = re.compile(r"[0-9a-f]{32}\Z")
_ENV = {**NO_PROMPT, **AUTHOR_AND_COMMITTER}


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


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode
_decode_meta = msgspec.json.Decoder(Meta).decode
_decode_data = msgspec.json.Decoder(dict[str, Any]).decode


# Export


def export(project: Project, source: Source, included: Iterable[str]) -> Export:
    """Bring the project's own log to its ref, from where the last export ended; nothing new makes no commit."""
    wanted = tuple(sorted(set(included)))
    ref = LOG_REFS + source.log
    old = resolve(project, ref)
    meta = None if old is None else read_meta(project, source.log, old)
    if old is not None and meta is not None:
        _check_continues(source, meta, wanted, ref)
        if meta.seq == source.seq:
            return Export(ref, old, meta.seq, 0, wanted)
    after = 0 if meta is None else meta.seq // SEGMENT_EVENTS * SEGMENT_EVENTS
    segments: dict[str, str] = {}  # those of the last export that can grow no more
    blobs: dict[str, str] = {}
    if old is not None:
        last = _name(after - SEGMENT_EVENTS)
        segments = {name: blob for name, blob in _entries(project, f"{old}:events").items() if name <= last}
        blobs = _entries(project, f"{old}:blobs")
    names: set[str] = set()
    for lines in _segments(source, meta, after, wanted, names):
        segments[_name(after)] = _write(project, b"\n".join(lines) + b"\n")
        after += len(lines)
    if missing := sorted(names - blobs.keys()):
        writer = Writer(project, len(next(iter(segments.values()))))
        texts = ((name, source.text(name)) for name in missing)  # of those that are still kept
        blobs |= {name: writer.write("blob", text.encode()) for name, text in texts if text is not None}
    tree = _write_tree(project, source, wanted, segments, blobs)
    first = 1 if meta is None else meta.seq + 1
    commit = commit_tree(project, tree, () if old is None else (old,), _message(source, wanted, first), Author(*COVEY))
    _move(project, ref, commit, old)
    return Export(ref, commit, source.seq, source.seq - first + 1, wanted)


def _check_continues(source: Source, meta: Meta, wanted: tuple[str, ...], ref: str) -> None:
    if tuple(meta.included) != wanted:
        have = " and ".join(meta.included) or "neither mail nor prompts"
        raise Refused(
            f"The export in {ref} includes {have}, and that cannot change within it.", hint=_export_again(ref)
        )
    ahead = meta.seq > source.seq
    if ahead or (meta.seq == source.seq and meta.head != source.hash.hex()):
        why = f"it has {meta.seq} events, and the log has {source.seq}" if ahead else "its last event is another one"
        raise Refused(f"The export in {ref} is not of this log: {why}.", hint=_if_right(ref))


def _export_again(ref: str) -> str:
    """Say how an export is begun again; git keeps no trace of a ref of ours that is deleted."""
    kept = ref.replace(LOG_REFS, KEPT_REFS)
    return (
        f"To export again: git update-ref {kept} {ref} keeps the old one, git update-ref -d {ref} makes room; then "
        "export again, and push with --force."
    )


def _if_right(ref: str) -> str:
    return f"After a backup was restored, this is to be expected. {_export_again(ref)}"


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
            ref = LOG_REFS + source.log
            raise Refused(f"The export in {ref} is a fork of this log at event {seq}.", hint=_if_right(ref))
        lines.append(_line(event, link, wanted, names))
        if len(lines) == SEGMENT_EVENTS:
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
    kept = {**vars(event), "data": msgspec.Raw(data.encode()), "prev": event.prev.hex()}
    return _encode(_Line(**kept, hash=own.hex(), withheld=withheld))


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


def _git(project: Project, *words: str, stdin: bytes | None = None, patience: float = LOG_WRITE_TIMEOUT_S) -> bytes:
    return git(*words, at=project.common, stdin=stdin, env=_ENV, patience=patience)


def _write(project: Project, content: bytes) -> str:
    return _git(project, "hash-object", "-w", "--stdin", stdin=content).decode().strip()


def _write_tree(
    project: Project, source: Source, wanted: tuple[str, ...], segments: dict[str, str], blobs: dict[str, str]
) -> str:
    meta = Meta(
        format=FORMAT_VERSION,
        log=source.log,
        project=source.project,
        included=list(wanted),
        seq=source.seq,
        head=source.hash.hex(),
    )
    folders = {"events": _tree(project, segments)} | ({"blobs": _tree(project, blobs)} if blobs else {})
    text = msgspec.json.format(_encode(meta), indent=2) + b"\n"
    return _tree(project, {"meta.json": _write(project, text)}, folders)


def _tree(project: Project, files: dict[str, str], folders: dict[str, str] | None = None) -> str:
    lines = [f"100644 blob {blob}\t{name}\n" for name, blob in files.items()]
    lines += [f"040000 tree {tree}\t{name}\n" for name, tree in (folders or {}).items()]
    return _git(project, "mktree", stdin="".join(lines).encode()).decode().strip()


def _move(project: Project, ref: str, new: str, old: str | None) -> None:
    """Move a ref from where we saw it, and from nowhere else."""
    done = refs.change(project, Order(ref, new, old or ""))
    if done.returncode != 0:
        raise ToolFailed(f"{ref} could not be moved: {complaint(done)}.", hint="Try again.")


# Reading


def _entries(project: Project, tree: str) -> dict[str, str]:
    """Return the names and contents of the files of a folder, in its order; nothing if there is no such folder."""
    asked = try_git("ls-tree", "-z", "--full-tree", tree, at=project.common, env=_ENV)
    if asked.returncode != 0:
        return {}
    found = (entry.partition("\t") for entry in asked.stdout.decode(errors="replace").split("\0") if entry)
    return {name: head.split(" ")[2] for head, _, name in found}


def _content(project: Project, log: str, name: str) -> bytes:
    """Return a file of an export, unless it is larger than any that we would write."""
    (info,) = objects.infos(project, [name])
    if info is None or info.kind != "blob":
        raise Refused(f"The export of the log {log} lacks {name.partition(':')[2] or name}.")
    if info.size > MAX_EXPORT_BYTES:
        raise Refused(f"The export of the log {log} has a file of {info.size} bytes, which is too large.")
    ((_, content),) = objects.contents(project, [info.name], LOG_WRITE_TIMEOUT_S)
    return content


def exported(project: Project) -> dict[str, str]:
    """Return the commit of every export in the repository, by the id of its log."""
    return _by_log(project, LOG_REFS)


def _by_log(project: Project, below: str) -> dict[str, str]:
    named = {name.removeprefix(below): commit for name, commit in refs.listed(project, below).items()}
    return {log: commit for log, commit in named.items() if _LOG.match(log)}


def read_meta(project: Project, log: str, commit: str) -> Meta:
    """Return what an export says of itself; refuse what is not an export."""
    try:
        meta = _decode_meta(_content(project, log, f"{commit}:meta.json"))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"{LOG_REFS}{log} holds no export of a log: {error}.") from None
    if meta.format != FORMAT_VERSION:
        raise Refused(f"{LOG_REFS}{log} is of the format {meta.format}, and this covey reads {FORMAT_VERSION}.")
    if meta.log != log:
        raise Refused(f"{LOG_REFS}{log} holds the log {meta.log[:80]!r}, not the one that it is named for.")
    return meta


def read_lines(project: Project, log: str, commit: str, after: int) -> Iterator[Line]:
    """Yield the events of an export after a number, in the order in which they stand there."""
    first = _name(after // SEGMENT_EVENTS * SEGMENT_EVENTS)
    for name, blob in _entries(project, f"{commit}:events").items():
        if name < first:
            continue
        for number, text in enumerate(_content(project, log, blob).splitlines(), 1):
            try:
                line = _read_line(text)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise Refused(f"Line {number} of {name} in {LOG_REFS}{log} is not an event: {error}.") from None
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
    for blob in _entries(project, f"{commit}:blobs").values():
        yield _content(project, log, blob).decode(errors="replace")


# Fetch


def fetch(project: Project, source: str, own: str, *, again: bool = False) -> list[CoveyError]:
    """Bring the exports of another repository here, but for our own log's; return those that could not be taken.

    A ref that we have is only ever moved forward, unless it is to be taken again. They arrive aside first, so that
    nothing of ours is overwritten.
    """
    aside = f"{INCOMING_REFS}{secrets.token_hex(8)}/"
    try:
        _git(project, *FETCH_ONLY, "--", source, f"+{LOG_REFS}*:{aside}*", patience=LOG_FETCH_TIMEOUT_S)
        found = _by_log(project, aside).items()
        refused = [_take(project, log, new, again=again) for log, new in found if log != own]
    finally:
        refs.change(project, *(Order(name, None) for name in refs.values(project, aside)))
    return [error for error in refused if error is not None]


def _take(project: Project, log: str, new: str, *, again: bool) -> CoveyError | None:
    ref = LOG_REFS + log
    old = resolve(project, ref)
    if old == new or (old is not None and _is_behind(project, new, old)):
        return None
    if old is not None and not again and not _is_behind(project, old, new):
        return Refused(
            f"The log {log} that was fetched is not a continuation of the one in {ref}.", hint=IMPORT_AGAIN_HINT
        )
    try:
        _move(project, ref, new, old)
    except CoveyError as error:
        return error
    return None


def _is_behind(project: Project, one: str, other: str) -> bool:
    return try_git("merge-base", "--is-ancestor", one, other, at=project.common, env=_ENV).returncode == 0
