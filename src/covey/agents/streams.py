"""What the lines of agent programs have in common: JSON to be trusted in nothing, and texts to be shown."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from covey.core.fleet.signals import Said

MAX_SHOWN_CHARS = 4000
"""Characters of a text that people get to see."""
MAX_ANSWER_DEPTH = 3
"""How deep a provider's answer may stand within another."""
MAX_LINE_CHARS = 16 * 1024 * 1024
"""Characters up to which a line is looked into."""

MAX_EDIT_CHARS = 16 * 1024
"""Characters of an edit that people get to see."""
OUTPUT_HEAD_CHARS, OUTPUT_TAIL_CHARS = 2000, 6000
"""Characters of what a tool printed that people get to see: of its beginning, and of its end, where errors stand."""
TOO_DEEP = "[nested too deeply to be shown]"
ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x1b\\|\x07|\Z)|[ -/]*[0-~])", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
_NAME = re.compile(r"[0-9A-Za-z][\w.-]{0,199}", re.ASCII)


def record(line: str) -> Mapping[str, Any] | None:
    """Return the JSON object that a line is, None if it is none."""
    if not line.lstrip().startswith("{") or len(line) > MAX_LINE_CHARS:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def inner(found: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the object under a path of keys, an empty one if there is none."""
    for key in keys:
        deeper = found.get(key)
        if not isinstance(deeper, dict):
            return {}
        found = deeper
    return found


def objects(found: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the objects in the list under a key."""
    value = found.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(found: Mapping[str, Any], key: str) -> str:
    """Return the text under a key as it can be shown and stored, "" if there is none."""
    value = found.get(key)
    return shown(value) if isinstance(value, str) else ""


def words(found: Mapping[str, Any], key: str) -> str:
    """Return the text under a key as it is, "" if there is none."""
    value = found.get(key)
    return value if isinstance(value, str) else ""


def count(found: Mapping[str, Any], key: str) -> int:
    """Return the number of things under a key, 0 if there is none."""
    value = found.get(key)
    return min(value, 2**53) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def amount(found: Mapping[str, Any], key: str, below: float = 1e9) -> float | None:
    """Return the number under a key, usually a sum of money, None if there is none that makes sense."""
    value = found.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value < below else None


def shown(words: str) -> str:
    """Return a text without what would move a terminal's cursor or cannot be stored."""
    is_plain = words.replace("\n", "").isprintable()  # as almost all are, which is soon seen
    return (words if is_plain else cleaned(words)).strip()


def cleaned(words: str) -> str:
    """Return a text without what would move a terminal's cursor or cannot be stored."""
    return _CONTROL.sub("", ESCAPE_SEQUENCE.sub("", words))


def brief(words: str) -> str:
    """Return as much of a text as people get to see."""
    clean = shown(words[: 4 * MAX_SHOWN_CHARS])
    return clean if len(clean) <= MAX_SHOWN_CHARS else clean[: MAX_SHOWN_CHARS - 1] + "…"


def complaint(words: str) -> str:
    """Return as much of a complaint as people get to see: in words, where a provider's answer stands in it."""
    for _ in range(MAX_ANSWER_DEPTH):
        start = words.find("{")
        try:
            answer, end = json.JSONDecoder().raw_decode(words, start) if 0 <= start < MAX_SHOWN_CHARS else (None, 0)
        except (ValueError, RecursionError):
            break
        message = _message(answer)
        if not message:
            break
        before, after = words[:start].rstrip(), words[end:].strip()
        if before.startswith("[") and after.startswith("]"):
            before, after = before[1:], after[1:]
        words = " ".join(part for part in (before, message, after) if part)
    return brief(words)


def _message(answer: object) -> str:
    """Return the words of a provider's answer, "" if it has none."""
    if not isinstance(answer, dict):
        return ""
    error = answer.get("error")
    return text(error, "message") if isinstance(error, dict) else text(answer, "message") or text(answer, "error")


def said(words: str) -> list[Said]:
    """Return a text as something said, nothing if it is empty."""
    clean = brief(words)
    return [Said(clean)] if clean else []


def piece(found: Mapping[str, Any], key: str) -> list[Said]:
    """Return the text under a key as a piece of something said, with the white at its ends, nothing if it is empty."""
    value = found.get(key)
    clean = cleaned(value[:MAX_SHOWN_CHARS]) if isinstance(value, str) else ""
    return [Said(clean, piece=True)] if clean else []


def spelled(value: object, *, ascii_only: bool = True) -> str:
    """Return foreign data as JSON; of what is nested deeper than it can be written, only that it is."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=ascii_only, default=str)
    except RecursionError:  # it was read with less of Python's stack in use than there is now
        return TOO_DEEP


def about(value: object) -> str:
    """Return what a tool is used for as one text; of two that are too long, equal only if they are."""
    whole = value if isinstance(value, str) else spelled(value, ascii_only=False)
    clean = shown(whole)
    if len(clean) <= MAX_SHOWN_CHARS:
        return clean
    mark = hashlib.sha256(clean.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{clean[:MAX_SHOWN_CHARS]}… ({len(clean)} characters, {mark})"


def mark(value: object) -> str:
    """Return a short mark of what came of something: the same only for the same."""
    whole = value if isinstance(value, str) else spelled(value)
    return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:12]


def edit(old: str, new: str) -> str:
    """Return what an edit takes out and puts in, as lines with - and + before them, without what stays the same."""
    out, into = old.splitlines(), new.splitlines()
    same = 0
    while same < min(len(out), len(into)) and out[same] == into[same]:
        same += 1
    out, into = out[same:], into[same:]
    while out and into and out[-1] == into[-1]:
        del out[-1], into[-1]
    lines = [*(f"-{line}" for line in out), *(f"+{line}" for line in into)]
    return shown("\n".join(lines))[:MAX_EDIT_CHARS]


def patched(patch: str) -> str:
    """Return the paths that a patch of Codex's own form names."""
    return ", ".join(_PATCHED.findall(patch))


def diff(patch: str) -> str:
    """Return the lines of a patch that are taken out and put in, with - and + before them."""
    heads = ("---", "+++") if re.search(r"^--- .*\n\+\+\+ ", patch, re.MULTILINE) else ()
    lines = (line for line in patch.splitlines() if line[:1] in ("-", "+") and not line.startswith(heads or "\0"))
    return cleaned("\n".join(lines)).rstrip()[:MAX_EDIT_CHARS]


def output(words: object) -> str:
    """Return what a tool printed as people get to see it: its beginning and its end, "" if it is not a text."""
    if not isinstance(words, str):
        return ""
    if len(words) > 2 * (OUTPUT_HEAD_CHARS + OUTPUT_TAIL_CHARS):
        words = f"{words[:OUTPUT_HEAD_CHARS]}\n…\n{words[-OUTPUT_TAIL_CHARS:]}"
    return cleaned(words.replace("\r\n", "\n").replace("\r", "\n")).strip("\n").rstrip()


def exact(named: object, given: Mapping[str, Any]) -> str:
    """Return what a tool is used for, so that two uses read the same only if they are."""
    digest = hashlib.sha256(spelled(given).encode()).hexdigest()[:10]
    return f"{about(named)} #{digest}"


def name(value: str | None) -> str:
    """Return a conversation's name if it can be one, "" if not: it stands on command lines."""
    return value if value is not None and _NAME.fullmatch(value) else ""


def word(value: str) -> str:
    """Return a word as a program can be given it."""
    return value.replace("\0", "")
