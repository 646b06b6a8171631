"""Texts that people and agents write: how long they may be, where long ones live, what is never kept."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from functools import cache

from covey.errors import Invalid
from covey.plain import defused
from covey.values import dataclass

INLINE_BYTES = 16 * 1024
"""Bytes up to which a text stands in its row and event; a longer one is kept as a blob by its hash."""

MAX_TITLE_CHARS = 500
MAX_BODY_CHARS = 256 * 1024
MAX_NAME_CHARS = 64

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_BAD_IN_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_BAD_IN_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_REMOVED = "[secret removed]"
_SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sk-",), r"sk-(?<![A-Za-z0-9]sk-)(?:ant-[\w-]{16,}|(?:proj-)?[A-Za-z0-9_-]{24,})"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{30,}"),
    (("github_pat_",), r"github_pat_\w{40,}"),
    (("glpat-",), r"glpat-[\w-]{20,}"),
    (("xox",), r"xox[abeoprs]-[\w-]{10,}"),
    (("xapp-",), r"xapp-[\w-]{20,}"),
    (("hooks.slack.com/",), r"hooks\.slack\.com/services/[\w/]{20,}"),
    (("AKIA",), r"AKIA(?<!\wAKIA)[0-9A-Z]{16}\b"),
    (("ASIA",), r"ASIA(?<!\wASIA)[0-9A-Z]{16}\b"),
    (("AIza",), r"AIza(?<!\wAIza)[\w-]{35}"),
    (("ya29.",), r"ya29\.(?<!\wya29\.)[\w-]{20,}"),
    (("GOCSPX-",), r"GOCSPX-[\w-]{20,}"),
    (("sk_live_", "sk_test_"), r"sk_(?<!\wsk_)(?:live|test)_[A-Za-z0-9]{16,}"),
    (("rk_live_", "rk_test_"), r"rk_(?<!\wrk_)(?:live|test)_[A-Za-z0-9]{16,}"),
    (("whsec_",), r"whsec_(?<!\wwhsec_)[A-Za-z0-9+/]{20,}=*"),
    (("npm_",), r"npm_(?<!\wnpm_)[A-Za-z0-9]{36}\b"),
    (("pypi-Ag",), r"pypi-Ag[\w-]{40,}"),
    (("hf_",), r"hf_(?<!\whf_)[A-Za-z0-9]{30,}"),
    (("eyJ",), r"eyJ(?<![\w-]eyJ)[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    (
        ("PRIVATE KEY-----",),
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    ),
)
"""Texts that have to stand in what is looked through, and what a secret looks like; the first save most of the time."""
_SECRET_WORD = r"(?=[^\s\"'\\]*[0-9])[A-Za-z0-9_+/=.~:%@!#*-]{8,}+(?![(\[\]{])"
"""What is a secret if its name says so: a word with a digit in it that does not begin a piece of code."""
_QUOTED_SECRET = r"(?=[^\s\"'\\]*[0-9])[^\s\"'\\<>(){}\[\]$]{8,}+(?=\\*[\"'])"
_IS = r"\\*[\"']?(?:: ?str)? ?[:=] ?\\*[\"']"
"""What stands between a name and its value in quotes: in code, in JSON, and in JSON inside of JSON."""
_NAMED_SECRETS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("earer ",), "earer +", r"(?=[\w.~+/-]*[0-9])[\w.~+/-]{16,}+=*"),
    (("asic ",), r"uthorization\\*[\"']? ?[:=] ?\\*[\"']?[Bb]asic +", r"[A-Za-z0-9+/]{8,}+=*"),
    (
        ("_KEY=", "_TOKEN=", "_SECRET=", "_PASSWORD="),
        r"_(?:KEY|TOKEN|SECRET|PASSWORD)=\\*[\"']?",
        rf"{_SECRET_WORD}|[A-Za-z0-9_+/=-]{{20,}}+(?![(\[\]{{.])",
    ),
    (
        ("pi-key", "pi-Key", "PI-KEY", "PI-Key"),
        r"-(?:key|Key|KEY)(?<=[Pp][Ii]-...)\\*[\"']? ?: ?\\*[\"']?",
        _SECRET_WORD,
    ),
    (("vate-token", "VATE-TOKEN", "vate-Token"), r"-(?:token|TOKEN|Token)(?<=[Tt][Ee]-.....) ?: ?", _SECRET_WORD),
    (("ccess_key", "AccessKey"), r"ccess_?[Kk]ey\\*[\"']? ?[:=] ?\\*[\"']?", r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])"),
    (("api_", "apiK", "apik"), rf"api_?[Kk]ey{_IS}", _QUOTED_SECRET),
    (("ccess_", "ccessT", "ccessK"), rf"ccess_?(?:[Kk]ey|[Tt]oken){_IS}", _QUOTED_SECRET),
    (("efresh_", "efreshT"), rf"efresh_?[Tt]oken{_IS}", _QUOTED_SECRET),
    (("uth_t", "uthT"), rf"uth_?[Tt]oken{_IS}", _QUOTED_SECRET),
    (("ecret",), rf"ecret(?:_?[Kk]ey)?{_IS}", _QUOTED_SECRET),
    (("assword",), rf"assword{_IS}", _QUOTED_SECRET),
    (("://",), r"://[^\s/:@\"'\\{}$<>\[\]]+:", r"(?!//)[^\s/:@\"'\\{}$<>\[\]]{3,}(?=@)"),
)
"""The same for what is a secret because of the name before it, which stays."""
_LIKE_A_MARKER = r"\[(mail-[0-9]+)\]?"
_BLANK = "[\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0e\U000e0100-\U000e01ef]"
"""Letters and marks that nobody sees."""


@cache
def _pattern(shape: str) -> re.Pattern[str]:
    """Return a pattern, made when a text first needs it: most commands look at none."""
    return re.compile(shape)


@dataclass(frozen=True)
class Blob:
    """A long text, kept once under the hash of its bytes."""

    sha256: str
    size: int


Text = str | Blob


def needs_blob(text: str) -> bool:
    """Say whether a text is too long to stand in a row."""
    return len(text) > INLINE_BYTES or (len(text) * 4 > INLINE_BYTES and len(text.encode()) > INLINE_BYTES)


def blob_of(text: str) -> Blob:
    """Return the name under which a text is kept."""
    import hashlib  # few texts are long enough, and OpenSSL takes as long to load as three claims

    data = text.encode()
    return Blob(hashlib.sha256(data).hexdigest(), len(data))


def name(value: str, what: str) -> str:
    """Return the name of a session or role, or refuse it."""
    if not _NAME.match(value):
        raise Invalid(
            f"{what} must be 1 to {MAX_NAME_CHARS} letters, digits, - or _, and begin with a letter or digit.",
            hint="For example auth-fix.",
        )
    return value


def line(value: str, what: str, limit: int = MAX_TITLE_CHARS) -> str:
    """Return a text of one line with secrets taken out, or refuse it."""
    value = value.strip()
    if not value:
        raise Invalid(f"{what} is empty.")
    if len(value) > limit:
        raise Invalid(f"{what} has {len(value)} characters; at most {limit} are taken.")
    if _BAD_IN_LINE.search(value):
        raise Invalid(f"{what} has a line break or a control character in it.")
    return redact(value)


def prose(value: str, what: str, limit: int = MAX_BODY_CHARS) -> str:
    """Return a text of many lines with secrets taken out, or refuse it."""
    if len(value) > limit or len(value.encode("utf-8", "surrogatepass")) > limit:
        raise Invalid(f"{what} is longer than {limit // 1024} KiB.", hint="Put it into a file of the repository.")
    if _BAD_IN_TEXT.search(value):
        raise Invalid(f"{what} has a NUL or another control character in it.")
    return redact(value)


def redact(text: str) -> str:
    """Return the text with what looks like a key or token replaced."""
    for anchors, shape in _SHAPES:
        if any(anchor in text for anchor in anchors):
            text = _pattern(shape).sub(_REMOVED, text)
    for anchors, name, value in _NAMED_SECRETS:
        if any(anchor in text for anchor in anchors):
            text = _pattern(f"{name}(?:{value})").sub(_without_value(name), text)
    return text


@cache
def _without_value(name: str) -> Callable[[re.Match[str]], str]:
    """Return what keeps a name and takes its value out."""
    head = re.compile(name)

    def keep(found: re.Match[str]) -> str:
        kept = head.match(found.string, found.start())
        return f"{kept[0] if kept else ''}{_REMOVED}"

    return keep


# Words of others in what covey says itself


def harmless(text: str) -> str:
    """Return a text of another as one line in which nothing is unseen, begins a message, or begins another's turn."""
    if not text.isprintable() or (not text.isascii() and _pattern(_BLANK).search(text)):
        text = "".join(char if _is_seen(char) else f"\\u{ord(char):04x}" for char in text)
    if "[mail-" in text:
        text = _pattern(_LIKE_A_MARKER).sub(r"(\1)", text)
    return defused(text)


def cited(text: str) -> str:
    """Return the words of another in quotation marks, which nothing in them ends."""
    return '"' + harmless(text).replace('"', "'") + '"'


def in_marks(text: str) -> str:
    """Return a command in marks that do not stand in it, so that nothing in it ends them and it can be copied."""
    text = harmless(text)
    mark = next((mark for mark in ('"', "'", "`") if mark not in text), None)
    if mark is None:
        mark = "`" * (1 + max(map(len, re.findall("`+", text))))
    return f"{mark}{text}{mark}"


def toml(text: str) -> str:
    """Return a text as TOML has it, with quotes in it as they are typed in a shell where that can be."""
    if '"' in text and "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped)


def _is_seen(char: str) -> bool:
    return (
        char == "\t" or unicodedata.category(char) == "Zs" or (char.isprintable() and not _pattern(_BLANK).match(char))
    )
