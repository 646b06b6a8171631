"""Texts that people and agents write: how long they may be, where long ones live, what is never kept."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from covey.errors import Invalid

INLINE = 16 * 1024
"""Bytes up to which a text stands in its row and event; a longer one is kept as a blob by its hash."""

TITLE = 500
BODY = 256 * 1024
NAME = 64

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_BAD_IN_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_BAD_IN_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SECRET = re.compile(
    r"(?<![A-Za-z0-9])sk-(?:ant-[\w-]{16,}|(?:proj-)?[A-Za-z0-9_-]{24,})|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,}"
    r"|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{35}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Blob:
    """A long text, kept once under the hash of its bytes."""

    sha256: str
    size: int


Text = str | Blob


def needs_blob(text: str) -> bool:
    """Say whether a text is too long to stand in a row."""
    return len(text) > INLINE or (len(text) * 4 > INLINE and len(text.encode()) > INLINE)


def blob_of(text: str) -> Blob:
    """Return the name under which a text is kept."""
    data = text.encode()
    return Blob(hashlib.sha256(data).hexdigest(), len(data))


def name(value: str, what: str) -> str:
    """Return the name of a session or role, or refuse it."""
    if not _NAME.match(value):
        raise Invalid(
            f"{what} must be 1 to {NAME} letters, digits, - or _, and begin with a letter or digit.",
            hint="For example auth-fix.",
        )
    return value


def line(value: str, what: str, limit: int = TITLE) -> str:
    """Return a text of one line with secrets taken out, or refuse it."""
    value = value.strip()
    if not value:
        raise Invalid(f"{what} is empty.")
    if len(value) > limit:
        raise Invalid(f"{what} has {len(value)} characters; at most {limit} are taken.")
    if _BAD_IN_LINE.search(value):
        raise Invalid(f"{what} has a line break or a control character in it.")
    return redact(value)


def prose(value: str, what: str, limit: int = BODY) -> str:
    """Return a text of many lines with secrets taken out, or refuse it."""
    if len(value) > limit or len(value.encode("utf-8", "surrogatepass")) > limit:
        raise Invalid(f"{what} is longer than {limit // 1024} KiB.", hint="Put it into a file of the repository.")
    if _BAD_IN_TEXT.search(value):
        raise Invalid(f"{what} has a NUL or another control character in it.")
    return redact(value)


def redact(text: str) -> str:
    """Return the text with what looks like a key or token replaced."""
    return _SECRET.sub("[secret removed]", text)
