"""Which commits may land: who wrote them and when has to stand there so that every tool can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from covey.core.merging.tree_rules import Finding, shown
from covey.values import dataclass

LATEST_SECONDS = 253_402_300_799
"""The end of the year 9999: many programs know none after that."""
LONGEST_MESSAGE_BYTES = 1024**2
MAX_PARENTS = 64
_PERSON = re.compile(rb"([^<>\n]*)<([^<>\n]*)> ([^ \n]+) ([^ \n]+)")
_SECONDS = re.compile(rb"0|[1-9][0-9]{0,17}")
_ZONE = re.compile(rb"[+-](?:0[0-9]|1[0-4])[0-5][0-9]")
_HASH = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Read:
    """What was read of a commit: its tree, its parents, and what is wrong or odd with it."""

    tree: str
    parents: tuple[str, ...]
    findings: tuple[Finding, ...]


def read(name: str, content: bytes) -> Read:
    """Read a commit as git keeps it."""
    head, _, message = content.partition(b"\n\n")
    lines = [line for line in head.split(b"\n") if not line.startswith(b" ")]
    values = [(key, value) for key, _, value in (line.partition(b" ") for line in lines)]
    trees = [value for key, value in values if key == b"tree"]
    parents = [value for key, value in values if key == b"parent"]
    found = (*_check_lines(head, values), *_check_message(message))
    named = tuple(Finding(f"commit {name[:12]} {each.what}", each.is_odd) for each in found)
    whole = [each.decode() for each in (*trees[:1], *parents) if _HASH.fullmatch(each)]
    return Read(whole[0] if whole else "", tuple(whole[1:]), named)


def _check_lines(head: bytes, values: list[tuple[bytes, bytes]]) -> Iterator[Finding]:
    keys = [key for key, _ in values]
    parents = keys.count(b"parent")
    expected = [b"tree", *([b"parent"] * parents), b"author", b"committer"]
    if keys[: len(expected)] != expected or any(key in expected for key in keys[len(expected) :]):
        yield Finding("does not name its tree, its parents, one author and one committer, in this order")
        return
    if b"\0" in head:
        yield Finding("has a NUL byte before its message")
    if parents > MAX_PARENTS:
        yield Finding(f"has {parents} parents", is_odd=True)
    if len({value for key, value in values if key == b"parent"}) < parents:
        yield Finding("names a parent twice", is_odd=True)
    if not all(_HASH.fullmatch(value) for key, value in values if key in (b"tree", b"parent")):
        yield Finding("names a tree or parent by something that is not a hash")
    for key, value in values:
        if key in (b"author", b"committer"):
            yield from _check_person(key.decode(), value)


def _check_person(role: str, value: bytes) -> Iterator[Finding]:
    person = _PERSON.fullmatch(value)
    if person is None:
        yield Finding(f"has an {role} line that git cannot read: {shown(value)}".replace("an committer", "a committer"))
        return
    _, _, seconds, zone = person.groups()
    if not _SECONDS.fullmatch(seconds) or int(seconds) > LATEST_SECONDS:
        yield Finding(f"has an invalid date for its {role}: {shown(seconds)}")
    elif not _ZONE.fullmatch(zone):
        yield Finding(f"has an invalid time zone for its {role}: {shown(zone)}", is_odd=True)


def _check_message(message: bytes) -> Iterator[Finding]:
    if len(message) > LONGEST_MESSAGE_BYTES:
        yield Finding(f"has a message of {len(message)} bytes", is_odd=True)
    if b"\0" in message:
        yield Finding("has a NUL byte in its message, after which git shows nothing", is_odd=True)
