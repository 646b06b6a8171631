"""Messages of commits: what a landed commit says of its task, its authors and where it came from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Trailer = tuple[str, str]
"""A key and its value: the last lines of a message, which programs read."""
Person = tuple[str, str]
"""A name and an e-mail address."""

_TRAILER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)[ \t]*:[ \t]*(\S.*)")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
OWN_TRAILERS = "covey-"
"""How the keys of our own trailers begin: nobody else's are taken over."""
COAUTHOR = "Co-authored-by"
MAX_LISTED_COMMITS, MAX_TRAILERS = 100, 100
"""Commits whose messages a squashed one keeps, and trailers that it takes over."""
MAX_TOLD_CHARS = 16_000
"""Characters that a squashed commit keeps of what its commits said."""
_NOISE = re.compile(r"(?:(?:fixup|squash|amend)! .*|wip\b.{0,3}|work in progress|tmp|temp|\W*)", re.IGNORECASE)
"""Subjects that say nothing unless a body follows."""
_READ_BY_PROGRAMS = re.compile(r"covey-|---|diff -|Index: |#", re.IGNORECASE)
"""How lines begin that end a message for git, or that git would leave out, or that are ours to write."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def trailers_of(message: str) -> list[Trailer]:
    """Return the trailers at the end of a message, each on one line."""
    return _split(message)[1]


def with_trailers(message: str, trailers: Iterable[Trailer]) -> str:
    """Return a message that ends with its own trailers and these, none of them twice, and with a line end."""
    text, kept = _split(message)
    return _joined(text, (*kept, *trailers))


def _joined(text: str, trailers: Iterable[Trailer]) -> str:
    said = [(key, " ".join(value.split())) for key, value in trailers]
    wanted = {(key.casefold(), value): key for key, value in reversed(said)}  # each once, and where it was said last
    lines = [f"{key}: {value}" for (_, value), key in reversed(wanted.items()) if value]
    return "\n\n".join(part for part in (text, "\n".join(lines)) if part) + "\n"


def is_own(trailer: Trailer) -> bool:
    """Say whether only covey writes a trailer of this key."""
    return trailer[0].casefold().startswith(OWN_TRAILERS)


def with_ours(message: str, trailers: Iterable[Trailer]) -> str:
    """Return a message that ends with its own trailers and these; of those that only covey writes it keeps none."""
    text, kept = _split(message)
    return _joined(text, (*(trailer for trailer in kept if not is_own(trailer)), *trailers))


def squashed(
    message: str, messages: Sequence[str], others: Iterable[Person], author: Person, trailers: Iterable[Trailer] = ()
) -> str:
    """Return the message of one commit in place of several: what they said, their trailers, and the other authors.

    Only `message` and `trailers` can name a task or another fact of ours; the words of the commits cannot.
    """
    text, own = _split(message)
    kept = [trailer for each in messages for trailer in trailers_of(each) if not is_own(trailer)]
    people = [(COAUTHOR, f"{name} <{email}>") for name, email in others]
    by = f"<{author[1]}>".casefold()
    theirs = [
        (key, value)
        for key, value in (*kept[:MAX_TRAILERS], *people)
        if key.casefold() != COAUTHOR.casefold() or by not in value.casefold()
    ]
    whole = "\n\n".join(part for part in (text, _told(text, messages)) if part)
    return _joined(whole, (*own, *_one_per_person(theirs), *trailers))


def _told(title: str, messages: Sequence[str]) -> str:
    """Return what commits said, each once, without what says nothing; one alone as it is, several as a list."""
    said = list(dict.fromkeys((_clean(subject(each)), _clean(_body(each))) for each in messages))
    telling = [each for each in said if each[1] or not _NOISE.fullmatch(each[0])]
    if len(telling) == 1:
        (head, body), *_ = telling
        is_title = head.strip(" .").casefold() == subject(title).strip(" .").casefold()
        parts = ("" if is_title else head, body)
        lines = "\n\n".join(part for part in parts if part).split("\n")
        return _shortened("\n".join(f"    {line}" if _READ_BY_PROGRAMS.match(line) else line for line in lines))
    listed = "\n".join(_listed(head, body) for head, body in telling[:MAX_LISTED_COMMITS])
    more = len(telling) - MAX_LISTED_COMMITS
    return _shortened(re.sub(r"\n{3,}", "\n\n", listed).strip("\n")) + (f"\n* and {more} more" if more > 0 else "")


def _listed(head: str, body: str) -> str:
    """Return one commit of a list; what stands indented is neither a trailer nor the end of a message to anybody."""
    inset = "\n".join(f"  {line}".rstrip() for line in body.split("\n"))
    return f"* {head}\n\n{inset}\n" if body else f"* {head}"


def _shortened(text: str) -> str:
    if len(text) <= MAX_TOLD_CHARS:
        return text
    cut = text[:MAX_TOLD_CHARS]
    lines = cut.rpartition("\n")[0].rstrip()
    # A line that is most of it is cut itself: without it, little would be told.
    return (lines if len(lines) > MAX_TOLD_CHARS // 2 else cut.rstrip()) + "\n\n[...]"


def _body(message: str) -> str:
    """Return a message without its first paragraph and its trailers."""
    parts = _PARAGRAPHS.split(_split(message)[0].lstrip(), maxsplit=1)
    return parts[1].strip("\n") if len(parts) > 1 else ""


def _clean(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r", ""))


def subject(message: str) -> str:
    """Return the first paragraph of a message as one line."""
    return " ".join(_PARAGRAPHS.split(message.strip(), maxsplit=1)[0].split())


def _split(message: str) -> tuple[str, list[Trailer]]:
    """Part a message from its last paragraph, if that is all trailers and not the subject."""
    text = message.replace("\r\n", "\n").replace("\0", "").strip("\n").rstrip()
    breaks = list(_PARAGRAPHS.finditer(text))
    if not breaks:
        return text, []
    found: list[Trailer] = []
    for line in text[breaks[-1].end() :].split("\n"):
        match = _TRAILER.fullmatch(line)
        if match is not None:
            found.append((match[1], match[2].strip()))
        elif found and line[:1] in (" ", "\t"):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        else:
            return text, []
    return text[: breaks[-1].start()].rstrip(), found


def _one_per_person(trailers: Iterable[Trailer]) -> list[Trailer]:
    """Name each co-author once, whatever the spelling of the name."""
    seen: set[str] = set()
    found = []
    for key, value in trailers:
        email = value.rpartition("<")[2].casefold()
        if key.casefold() == COAUTHOR.casefold():
            if email in seen:
                continue
            seen.add(email)
        found.append((key, value))
    return found
