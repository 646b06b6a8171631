"""covey.toml -> one frozen value; everything has a default, and a typo is an error that names its line."""

from __future__ import annotations

import re
import tomllib
import types
import typing
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from covey.errors import Invalid

FILE = "covey.toml"


@dataclass(frozen=True)
class Project:
    """The repository under covey's care."""

    main: str = "main"


@dataclass(frozen=True)
class Board:
    """How long an outside session's claim survives its silence, in seconds."""

    claim_ttl: float = 3600.0


@dataclass(frozen=True)
class Sessions:
    """How long a dead run keeps its claim, in seconds."""

    dead_after: float = 60.0


@dataclass(frozen=True)
class Merge:
    """Whether what is handed in waits for a person before it may land."""

    review: bool = False


@dataclass(frozen=True)
class Leases:
    """How long a lease survives its holder's silence, in seconds."""

    ttl: float = 3600.0


@dataclass(frozen=True)
class Log:
    """How long, and how much of, the long texts of ended tasks and old mail are kept; the log itself is kept whole."""

    keep_days: float = 90.0
    keep_megabytes: float = 512.0


@dataclass(frozen=True)
class Config:
    """All settings of one project."""

    project: Project = field(default_factory=Project)
    board: Board = field(default_factory=Board)
    sessions: Sessions = field(default_factory=Sessions)
    merge: Merge = field(default_factory=Merge)
    leases: Leases = field(default_factory=Leases)
    log: Log = field(default_factory=Log)


def load(folder: Path) -> Config:
    """Return the settings in a folder's covey.toml, or the defaults if it has none."""
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{FILE} cannot be read: {error}.") from error
    return parse(text)


def parse(text: str) -> Config:
    """Return the settings that a text spells out."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{FILE} is not valid TOML: {error}.") from error
    config: Config = _read(Config, values, (), text)
    for table, name, least in (
        ("board", "claim_ttl", 1),
        ("sessions", "dead_after", 1),
        ("leases", "ttl", 1),
        ("log", "keep_days", 1),
        ("log", "keep_megabytes", 0),
    ):
        if not least <= getattr(getattr(config, table), name) <= 10_000_000:
            raise Invalid(f"{_place(text, (table,), name)}: {name} must be between {least} and 10,000,000.")
    return config


def _read(cls: type[Any], values: dict[str, Any], path: tuple[str, ...], text: str) -> Any:
    known = {f.name for f in fields(cls)}
    hints = typing.get_type_hints(cls)
    taken: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise _unknown(name, known, path, text)
        taken[name] = _value(hints[name], value, (*path, name), text)
    return cls(**taken)


def _value(hint: Any, value: Any, path: tuple[str, ...], text: str) -> Any:
    if is_dataclass(hint):
        if not isinstance(value, dict):
            raise Invalid(f"{_place(text, path[:-1], path[-1])}: [{path[-1]}] is a table.")
        return _read(typing.cast(type[Any], hint), value, path, text)
    if hint is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise Invalid(f"{_place(text, path[:-1], path[-1])}: {path[-1]} is too large a number.") from None
    if type(value) is not hint and not isinstance(hint, types.UnionType):
        wanted = {float: "a number", bool: "true or false", str: "a text in quotes", int: "a whole number"}[hint]
        raise Invalid(f"{_place(text, path[:-1], path[-1])}: {path[-1]} must be {wanted}, not {value!r}.")
    return value


def _unknown(name: str, known: set[str], path: tuple[str, ...], text: str) -> Invalid:
    import difflib  # only a typo needs it, and every command reads the settings

    near = difflib.get_close_matches(name, known, 1, 0.5)
    what = f"[{name}]" if not path else f"{name} in [{'.'.join(path)}]"
    hint = f"Did you mean {near[0]}?" if near else f"Known here: {', '.join(sorted(known))}."
    return Invalid(f"{_place(text, path, name)}: there is no setting {what}.", hint=hint)


def _place(text: str, path: tuple[str, ...], name: str) -> str:
    """Return file and line of a key, found by reading the text as far as needed."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line)
        if header:
            table = tuple(part.strip(" \"'") for part in header[1].split("."))
            if table == (*path, name):
                return f"{FILE} line {number}"
        key = re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line)
        if key and (*table, *key[1].split("."))[: len(path) + 1] == (*path, name):
            return f"{FILE} line {number}"
    return FILE
