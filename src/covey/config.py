"""covey.toml -> one frozen value; everything has a default, and a typo is an error that names its line."""

from __future__ import annotations

import re
import tomllib
import types
import typing
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from covey.core import globs
from covey.errors import Invalid

FILE = "covey.toml"
POLICIES = ("squash", "merge")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Project:
    """The repository under covey's care: its branch on which work lands, and the remote that may be ahead of it."""

    main: str = "main"
    remote: str = "origin"


@dataclass(frozen=True)
class Board:
    """How long an outside session's claim survives its silence, in seconds; after how many tries a task is blocked."""

    claim_ttl: float = 3600.0
    tries: int = 3


@dataclass(frozen=True)
class Sessions:
    """The sessions that covey runs: agent, how many, how long, where; seconds until a dead one loses its claim."""

    agent: str = ""
    count: int = 4
    max: int = 50
    run_minutes: float = 60.0
    worktrees: str = "../{repo}.worktrees"
    dead_after: float = 60.0


@dataclass(frozen=True)
class AgentSettings:
    """An agent of your own: any program, and the variables of your environment that it gets besides the usual ones."""

    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


@dataclass(frozen=True)
class Merge:
    """How work lands: the gate that it must pass as it would land, how it is merged, when a person looks first."""

    check: str = ""
    check_minutes: float = 30.0
    pristine: bool = False
    policy: str = "squash"
    review: bool = False
    protected: tuple[str, ...] = (FILE,)


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
    agents: dict[str, AgentSettings] = field(default_factory=dict)
    merge: Merge = field(default_factory=Merge)
    leases: Leases = field(default_factory=Leases)
    log: Log = field(default_factory=Log)

    def default_agent(self) -> str:
        """Return the agent that a session gets if nobody names one: the one that is set, or the only one declared."""
        if self.sessions.agent:
            return self.sessions.agent
        if len(self.agents) == 1:
            return next(iter(self.agents))
        raise Invalid(
            "Which agent shall work is not said.",
            hint=f"Declare one as [agents.NAME] in {FILE}, or name one with --agent; scripted ships with covey.",
        )


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


class Watcher:
    """Knows when a folder's covey.toml has changed since it was last read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp = self._look()

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = (self._folder / FILE).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def changed(self) -> Config | None:
        """Return the settings if they have changed; ones that make no sense are refused until they are mended."""
        stamp = self._look()
        if stamp == self._stamp:
            return None
        settings = load(self._folder)
        self._stamp = stamp
        return settings


def parse(text: str) -> Config:
    """Return the settings that a text spells out."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{FILE} is not valid TOML: {error}.") from error
    config: Config = _read(Config, values, (), text)
    for table, name, least in (
        ("board", "claim_ttl", 1),
        ("board", "tries", 1),
        ("sessions", "count", 1),
        ("sessions", "max", 1),
        ("sessions", "run_minutes", 0.01),
        ("sessions", "dead_after", 1),
        ("merge", "check_minutes", 0.01),
        ("leases", "ttl", 1),
        ("log", "keep_days", 1),
        ("log", "keep_megabytes", 0),
    ):
        if not least <= getattr(getattr(config, table), name) <= 10_000_000:
            raise Invalid(f"{_place(text, (table,), name)}: {name} must be between {least} and 10,000,000.")
    if config.merge.policy not in POLICIES:
        place = _place(text, ("merge",), "policy")
        raise Invalid(f"{place}: policy must be {' or '.join(POLICIES)}, not {config.merge.policy!r}.")
    for pattern in config.merge.protected:
        try:
            globs.compile(pattern)
        except Invalid as error:
            raise Invalid(f"{_place(text, ('merge',), 'protected')}: {error.message}", hint=error.hint) from None
    for name, agent in config.agents.items():
        if not _NAME.fullmatch(name):
            raise Invalid(f"{_place(text, ('agents',), name)}: {name!r} is no name for an agent.")
        if not agent.command or not all(agent.command):
            raise Invalid(
                f"{_place(text, ('agents',), name)}: the agent {name} has no command.",
                hint=f'[agents.{name}] command = ["program", "{{prompt_file}}"] names one.',
            )
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
    if typing.get_origin(hint) is dict:
        if not isinstance(value, dict):
            raise Invalid(f"{_place(text, path[:-1], path[-1])}: [{path[-1]}] is a table.")
        return {name: _value(typing.get_args(hint)[1], each, (*path, name), text) for name, each in value.items()}
    if hint == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise Invalid(f"{_place(text, path[:-1], path[-1])}: {path[-1]} must be a list of texts, not {value!r}.")
        return tuple(value)
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
