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
OWN = "covey-"
"""How the keys of our own trailers begin: nobody else's are taken over."""
COAUTHOR = "Co-authored-by"


def trailers_of(message: str) -> list[Trailer]:
    """Return the trailers at the end of a message, each on one line."""
    return _split(message)[1]


def with_trailers(message: str, trailers: Iterable[Trailer]) -> str:
    """Return a message that ends with its own trailers and these, none of them twice, and with a line end."""
    text, kept = _split(message)
    wanted = _once((*kept, *((key, " ".join(value.split())) for key, value in trailers)))
    lines = [f"{key}: {value}" for key, value in wanted if value]
    return "\n\n".join(part for part in (text, "\n".join(lines)) if part) + "\n"


def without_trailers(message: str, keys: Iterable[str]) -> str:
    """Return a message without its trailers of these keys, as it is if it has none."""
    text, found = _split(message)
    gone = {key.casefold() for key in keys}
    kept = [trailer for trailer in found if trailer[0].casefold() not in gone]
    return message if len(kept) == len(found) else with_trailers(text, kept)


def squashed(message: str, messages: Sequence[str], others: Iterable[Person], author: Person) -> str:
    """Return the message of one commit in place of several, with their subjects and trailers, and the other authors."""
    subjects = [subject(each) for each in messages]
    listed = "\n".join(f"* {line}" for line in subjects if line) if len(subjects) > 1 else ""
    text, own = _split(message)
    kept = [trailer for each in messages for trailer in trailers_of(each) if not trailer[0].lower().startswith(OWN)]
    people = [(COAUTHOR, f"{name} <{email}>") for name, email in others]
    by = f"<{author[1]}>".casefold()
    wanted = [
        (key, value)
        for key, value in (*kept, *people)
        if key.casefold() != COAUTHOR.casefold() or by not in value.casefold()
    ]
    whole = "\n\n".join(part for part in (text, listed) if part)
    return with_trailers(whole + "\n\n" + "\n".join(f"{key}: {value}" for key, value in own), _one_per_person(wanted))


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


def _once(trailers: Iterable[Trailer]) -> list[Trailer]:
    return list({(key.casefold(), value): (key, value) for key, value in reversed(list(trailers))}.values())[::-1]


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
