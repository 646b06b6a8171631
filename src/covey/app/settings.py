"""The settings in force, readable by whoever is in charge; they are changed in covey.toml alone."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from msgspec import Struct

from covey.app.context import Call
from covey.app.shapes.forms import Nothing
from covey.app.verbs import verb
from covey.config import FILE, Config, line_of, load, read_text
from covey.core.people.rights import OWNER_ONLY
from covey.core.settings import GROUPS, meaning
from covey.core.texts import redact, toml
from covey.errors import CoveyError, Unavailable
from covey.values import dataclass

_NAMES = r"(?:key|token|secret|password|passwd|auth)"
_NAME = re.compile(rf"(?i)[\w.-]*{_NAMES}")
"""A name which says that what it stands for is a secret."""
_FLAG = re.compile(rf"(?i)--[\w-]*{_NAMES}")
_STANDS_IN = r"(?:\$\w+|\$?\{[^}\s]*\}|\$\([^)]*\))"
"""What a shell or covey puts a secret into later; it is none itself."""
_WORD = (
    r"(?:\"(?:[^\"\\]|\\.)*(?:\"|\Z)|'[^']*(?:'|\Z)|\\.|[^\s\"'\\])"
    r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\\.|[^\s\"'\\])*"
)
"""A word as a shell takes it: after an opening quote all up to the closing one."""
_SECRET = re.compile(
    rf"(?is)((?:--[\w-]*{_NAMES}(?:=|\s++(?!--))|[\w.-]*{_NAMES}=))(?!\"?{_STANDS_IN}\"?(?:[\s\"']|\Z)){_WORD}"
)
"""A value that stands behind a name which says that it is a secret, in whatever a person wrote into a command."""
_HEADER = re.compile(
    rf"(?i)(\b(?:[\w-]+-{_NAMES}|(?:proxy-)?authorization)\s*:\s*+(?:(?:bearer|basic|token)\s++)?+)"
    rf"(?!{_STANDS_IN}(?:[\s\"']|\Z))[^\"'\n]+"
)
"""The same in a header: up to the quote in which the header stands."""
_REMOVED = "[removed]"


class SettingRow(Struct, frozen=True, kw_only=True):
    """One setting: its value and its default as covey.toml would spell them, and in which line of it it is set.

    `line` is null for one that is not set there, or whose line cannot be told. What looks like a secret is left out.
    """

    name: str
    value: str
    default: str
    is_set: bool
    line: int | None
    meaning: str


class SettingTable(Struct, frozen=True, kw_only=True):
    """One table of covey.toml by its name, such as `merge` or `agents.sh`, and what it is about."""

    name: str
    title: str
    settings: tuple[SettingRow, ...]


class SettingsShown(Struct, frozen=True, kw_only=True):
    """All settings in force, and the file in which they are changed.

    `problem` says why the file makes no sense at the moment; the settings from before hold until it is mended. `agent`
    is what runs in a session that names none.
    """

    file: str
    problem: str
    agent: str
    tables: tuple[SettingTable, ...]


@dataclass(frozen=True)
class _File:
    """What stands in covey.toml, and why it makes no sense if so."""

    text: str
    problem: str = ""


def _look_at_file(call: Call, asked: Nothing) -> Callable[[], _File] | None:
    project = call.context.repository
    if project is None:
        return None

    def look() -> _File:
        try:
            load(project.root)
        except CoveyError as error:
            return _File("", f"{error.message} {error.hint}".strip())
        return _File(read_text(project.root) or "")

    return look


@verb("settings.show", "GET /api/settings", Nothing, SettingsShown, may=OWNER_ONLY, ahead=_look_at_file)
def show(call: Call, asked: Nothing) -> SettingsShown:
    """Show every setting in force: its value, its default, what it means, and where it is set."""
    project, file = call.context.repository, call.seen
    if project is None or file is None:
        raise Unavailable("No settings can be read here.")
    config = call.context.config
    return SettingsShown(
        file=str(project.root / FILE),
        problem=file.problem,
        agent=config.default_agent(),
        tables=tables(config, file.text),
    )


def tables(config: Config, text: str) -> tuple[SettingTable, ...]:
    """Return all settings with their values, and where each stands in the text from which they were read."""
    written = tomllib.loads(text)
    return tuple(
        _table(name, value, written, text) for group in GROUPS for name, value in _all_of(group, getattr(config, group))
    )


def _all_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a table and those within it, each by its name; of some there are any number, under names of a person's."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{name}.{key}", inner
        return
    yield name, value
    for each in fields(value):
        if is_dataclass(inner := getattr(value, each.name)):
            yield from _all_of(f"{name}.{each.name}", inner)


def _table(name: str, value: Any, written: dict[str, Any], text: str) -> SettingTable:
    defaults, group = type(value)(), name.partition(".")[0]
    path = (group, name[len(group) + 1 :]) if "." in name else (group,)
    stands = _within(written, path)
    rows = tuple(
        SettingRow(
            name=each.name,
            value=spelled(getattr(value, each.name)),
            default=spelled(getattr(defaults, each.name)),
            is_set=each.name in stands if text else getattr(value, each.name) != getattr(defaults, each.name),
            line=line_of(text, path, each.name) if each.name in stands else None,
            meaning=meaning(name, each.name),
        )
        for each in fields(value)
        if not is_dataclass(getattr(value, each.name))
    )
    return SettingTable(name=name, title=GROUPS[group], settings=rows)


def _within(written: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for name in path:
        written = written.get(name, {})
    return written


def spelled(value: Any, *, hides: bool = False) -> str:
    """Return a value as covey.toml would spell it, without what looks like a secret."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, dict):
        pairs = (f"{_key(key)} = {spelled(each, hides=bool(_NAME.fullmatch(key)))}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, tuple):
        hidden = (isinstance(each, str) and bool(_FLAG.fullmatch(each)) for each in ("", *value))
        return f"[{', '.join(spelled(each, hides=hides) for each, hides in zip(value, hidden, strict=False))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str):
        return toml(_without_secrets(value, hides=hides))
    return json.dumps(value, ensure_ascii=False)


def _without_secrets(text: str, *, hides: bool) -> str:
    """Return a text without what looks like a secret, each taken out once; `hides`: its name says that it is one."""
    if hides and text and not text.startswith("--") and not re.fullmatch(_STANDS_IN, text):
        return _REMOVED
    for found in (_SECRET, _HEADER):
        text = found.sub(rf"\1{_REMOVED}", text)
    return redact(text)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else toml(name)
