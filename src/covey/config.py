"""covey.toml -> one frozen value; everything has a default, and a typo is an error that names its line."""

from __future__ import annotations

import re
import time
import tomllib
import types
import typing
from collections.abc import Iterator
from dataclasses import field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from covey.core import globs
from covey.core.costs.spending import Price
from covey.core.fleet.runs import PROCESS, TMUX
from covey.core.leases.write_policy import Force
from covey.core.merging.checks import PathCheck
from covey.core.people.commands import pushes
from covey.core.people.permits import PermissionLevel
from covey.errors import Invalid
from covey.values import dataclass

FILE = "covey.toml"
POLICIES = ("squash", "merge", "rebase", "ff")
STRATEGIES = ("group", "serial", "prefix")
ISOLATIONS = ("auto", "on", "off")
MAX_SLOTS = 64
RUNNERS = (PROCESS, TMUX)
DEFAULT_AGENT = "claude"
"""The agent of a project whose settings name none."""
_SIZE = re.compile(r"([0-9]{1,4})x([0-9]{1,4})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_BRANCH = re.compile(r"(?![-/.])(?!.*(\.\.|//|/\.|@\{|\.lock(/|$)))[^~^:?*\[\\\x00-\x20\x7f]{1,200}(?<![/.])")
_VARIABLE = re.compile(r"(?!GIT_|COVEY_)[A-Za-z_][A-Za-z0-9_]{0,199}")
_CACHE = re.compile(r"[^*?\[\]\\\x00-\x1f:]{1,200}")
_REMOTE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Project:
    """The repository under covey's care: its branch on which work lands, and the remote that may be ahead of it."""

    main: str = "main"
    remote: str = "origin"


@dataclass(frozen=True)
class Board:
    """How long an outside session's claim survives its silence, in seconds; after how many tries a task is blocked.

    `max_in_review`: while so many tasks wait for review, sessions that covey runs begin no new one; 0: they always do.
    """

    claim_ttl: float = 3600.0
    tries: int = 3
    max_in_review: int = 0


@dataclass(frozen=True)
class Sessions:
    """The sessions that covey runs: agent, how many, how long, where; seconds until a dead one loses its claim.

    `push` names what a session may push without asking: by remote, patterns of its branches and other refs.
    """

    agent: str = ""
    runner: str = PROCESS
    terminal: str = "200x50"
    count: int = 4
    max: int = 50
    run_minutes: float = 60.0
    worktrees: str = "../{repo}.worktrees"
    dead_after: float = 60.0
    permissions: str = PermissionLevel.EDITS.value
    allow: tuple[str, ...] = ()
    stagger: float = -1.0
    free_memory: float = 512.0
    push: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def terminal_size(self) -> tuple[int, int]:
        """Return the columns and rows of a terminal that a run lives in."""
        columns, _, rows = self.terminal.partition("x")
        return int(columns), int(rows)


@dataclass(frozen=True)
class AgentSettings:
    """An agent: any program of your own by its command, or what one that covey knows is started with.

    `env` names the variables of your environment that it gets besides the usual ones.
    """

    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    program: str = ""
    arguments: tuple[str, ...] = ()
    model: str = ""


@dataclass(frozen=True)
class Tokens:
    """The most tokens that a run, a task, a session and all together may use, a session and all in a day; 0: no end."""

    run: int = 0
    task: int = 0
    session: int = 0
    day: int = 0


@dataclass(frozen=True)
class Budget:
    """The most dollars that may be spent: by a run, a task, a session or all in a day; 0: no limit."""

    run: float = 0.0
    task: float = 0.0
    session: float = 0.0
    day: float = 0.0
    tokens: Tokens = field(default_factory=Tokens)


@dataclass(frozen=True)
class Watch:
    """When the watchdog acts: minutes without any sign, seconds before it tries again, how often is too often."""

    stalled_minutes: float = 5.0
    request_minutes: float = 15.0
    answer_minutes: float = 60.0
    backoff: float = 5.0
    backoff_most: float = 300.0
    crashes: int = 5
    crash_minutes: float = 15.0
    repeats: int = 5


@dataclass(frozen=True)
class Merge:
    """How work lands: the gate that it must pass as it would land, how it is merged, when a person looks first.

    `quick` runs before `check`, and each of `checks` after it if one of its paths changes. `slots` is how many gates
    run at once, 0: as many as the processors allow. `isolate` holds a gate in a room of its own, by bubblewrap: "auto"
    where that works, "on" always, "off" never; there it has no network unless `network`, sees of your folders what
    tools need and what `show` names, and everywhere gets of your variables those of tools and those that `env` names.
    `cache` names folders of the worktree, such as build products, that a gate finds as a green main left them.
    `protected` names what waits for a person when it changes; what the checks name is protected too, unless
    `protect_check` is false. `branch` is where work lands if not on `project.main`, `push` the remote that gets what
    landed, `review_role` who may approve besides a person. `pristine` has no effect any more: every gate is.
    """

    check: str = ""
    check_minutes: float = 30.0
    quick: str = ""
    checks: tuple[PathCheck, ...] = ()
    isolate: str = "auto"
    pristine: bool = True
    network: bool = False
    env: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    cache: tuple[str, ...] = ()
    slots: int = 0
    strategy: str = "group"
    policy: str = "squash"
    branch: str = ""
    push: str = ""
    review: bool = False
    review_role: str = ""
    protected: tuple[str, ...] = (FILE,)
    protect_check: bool = True


@dataclass(frozen=True)
class Leases:
    """How long a lease survives silence, in seconds; what a write into another's comes to; how many fit in a lane.

    `max_files` is how many files a session may lease by itself outside of its task's scope, `max_held` how many leases
    it may have at once; for more it asks a person.
    """

    ttl: float = 3600.0
    max_files: int = 50
    max_held: int = 20
    tool: str = Force.WARN.value
    commit: str = Force.DENY.value
    capacity: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """How much one session may make; the owner has no limits.

    In a minute: `changes` (requests that change something), `kilobytes` of them, and `messages`. At once: `open_tasks`
    that it added, `unread` messages that it sent within a day, `notes` on one task, open `proposals` and
    `questions`.
    """

    changes: int = 600
    kilobytes: int = 8192
    messages: int = 60
    open_tasks: int = 100
    unread: int = 200
    notes: int = 100
    proposals: int = 20
    questions: int = 20


@dataclass(frozen=True)
class Radar:
    """The overlap radar: collisions of a file within minutes that make it hot, and minutes of quiet that cool it."""

    hot: int = 3
    hot_minutes: float = 120.0
    cool_minutes: float = 60.0


@dataclass(frozen=True)
class Log:
    """How long, and how much of, the long texts of ended tasks, old mail and output is kept; the log is kept whole.

    `transcript_megabytes`: how much of the transcripts of ended runs is kept, packed.
    """

    keep_days: float = 90.0
    keep_megabytes: float = 512.0
    transcript_megabytes: float = 1024.0


@dataclass(frozen=True)
class Config:
    """All settings of one project."""

    project: Project = field(default_factory=Project)
    board: Board = field(default_factory=Board)
    sessions: Sessions = field(default_factory=Sessions)
    agents: dict[str, AgentSettings] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    prices: dict[str, Price] = field(default_factory=dict)
    watch: Watch = field(default_factory=Watch)
    merge: Merge = field(default_factory=Merge)
    leases: Leases = field(default_factory=Leases)
    limits: Limits = field(default_factory=Limits)
    overlap: Radar = field(default_factory=Radar)
    log: Log = field(default_factory=Log)

    @cached_property
    def target(self) -> str:
        """Return the branch on which work lands."""
        return self.merge.branch or self.project.main

    def default_agent(self) -> str:
        """Return the agent of sessions that name none: the one that is set, the only one declared, or claude."""
        if self.sessions.agent:
            return self.sessions.agent
        return next(iter(self.agents)) if len(self.agents) == 1 else DEFAULT_AGENT

    def declared(self) -> dict[str, tuple[str, ...]]:
        """Return the agents of the user's own, by name, with their commands."""
        return {name: agent.command for name, agent in self.agents.items() if agent.command}


def load(folder: Path) -> Config:
    """Return the settings in a folder's covey.toml, or the defaults if it has none."""
    text = read_text(folder)
    return Config() if text is None else parse(text)


def read_text(folder: Path) -> str | None:
    """Return what stands in a folder's covey.toml; None if it has none."""
    try:
        return (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{FILE} cannot be read: {error}.") from error


EMPTY_FOR_S = 0.5
"""Seconds for which covey.toml has to be empty or gone until that is believed: whoever saves it may empty it first."""


class Watcher:
    """Knows when a folder's covey.toml has changed since it was last read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp = self._look()
        self._empty_since: float | None = None

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
            self._empty_since = None
            return None
        text = read_text(self._folder) or ""
        if text:
            self._empty_since = None
        elif not self._stays_empty():
            return None
        settings = parse(text)
        self._stamp = stamp
        return settings

    def _stays_empty(self) -> bool:
        """Say whether nothing has stood there for a while."""
        now = time.monotonic()
        if self._empty_since is None:
            self._empty_since = now
        return now - self._empty_since >= EMPTY_FOR_S


_NUMBERS: dict[str, dict[str, float]] = {
    "board": {"claim_ttl": 1, "tries": 1, "max_in_review": 0},
    "sessions": {"count": 1, "max": 1, "run_minutes": 0.01, "dead_after": 1, "stagger": -1, "free_memory": 0},
    "budget": {"run": 0, "task": 0, "session": 0, "day": 0},
    "watch": {
        "stalled_minutes": 0.001, "request_minutes": 0.001, "answer_minutes": 0.001, "backoff": 0, "backoff_most": 0,
        "crashes": 1, "crash_minutes": 0.001, "repeats": 2,
    },
    "merge": {"check_minutes": 0.01},
    "leases": {"ttl": 1, "max_files": 1, "max_held": 1},
    "limits": {
        "changes": 1, "kilobytes": 1, "messages": 1, "open_tasks": 1, "unread": 1, "notes": 1, "proposals": 1,
        "questions": 1,
    },
    "overlap": {"hot": 1, "hot_minutes": 0.001, "cool_minutes": 0.001},
    "log": {"keep_days": 1, "keep_megabytes": 0, "transcript_megabytes": 0},
}  # fmt: skip
"""Settings that are numbers, by their tables, and the least that each may be."""
_WORDS = (
    ("merge", "policy", POLICIES),
    ("merge", "strategy", STRATEGIES),
    ("merge", "isolate", ISOLATIONS),
    ("sessions", "runner", RUNNERS),
    ("sessions", "permissions", tuple(PermissionLevel)),
    ("leases", "tool", tuple(Force)),
    ("leases", "commit", tuple(Force)),
)
"""Settings that are one of some words."""


class _Wrong(Exception):
    """What is wrong with a setting, or with a table; whoever has the text tells its line."""

    def __init__(self, path: tuple[str, ...], said: str, hint: str = "") -> None:
        super().__init__(said)
        self.path = path
        self.said = said
        self.hint = hint


def parse(text: str) -> Config:
    """Return the settings that a text spells out."""
    try:
        config: Config = _read(Config, tomllib.loads(text), ())
        for check in (_check_numbers, _check_words, _check_merge, _check_room, _check_tables, _check_agents):
            check(config)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{FILE} is not valid TOML: {error}.", hint=_twice(text)) from error
    except _Wrong as wrong:
        raise Invalid(f"{_place(text, wrong.path)}: {wrong.said}", hint=wrong.hint) from None
    return config


def _twice(text: str) -> str:
    """Return what to do about a table that has two headers."""
    headers = re.findall(r"(?m)^[ \t]*(\[[^\[\]\n]+\])", text)
    name = next((each for each in headers if headers.count(each) > 1), None)
    return f"{name} is there twice: write what you set below one of them." if name else ""


def _check_numbers(config: Config) -> None:
    for table, numbers in _NUMBERS.items():
        for name, least in numbers.items():
            if not least <= getattr(getattr(config, table), name) <= 10_000_000:
                raise _Wrong((table, name), f"{name} must be between {least} and 10,000,000.")
    if not 0 <= config.merge.slots <= MAX_SLOTS:
        raise _Wrong(("merge", "slots"), f"slots must be between 0 and {MAX_SLOTS}.")
    for name in ("run", "task", "session", "day"):
        if not 0 <= getattr(config.budget.tokens, name) <= 10**15:
            raise _Wrong(("budget", "tokens", name), f"{name} must be between 0 and 10^15.")
    for model, price in config.prices.items():
        if not all(0 <= each <= 1_000_000 for each in vars(price).values()):
            raise _Wrong(("prices", model), "a price is between 0 and 1,000,000 dollars.")


def _check_words(config: Config) -> None:
    for table, name, known in _WORDS:
        chosen = getattr(getattr(config, table), name)
        if chosen not in known:
            raise _Wrong((table, name), f"{name} must be {' or '.join(known)}, not {chosen!r}.")
    terminal = config.sessions.terminal
    size = _SIZE.fullmatch(terminal)
    if size is None or not (20 <= int(size[1]) <= 1000 and 5 <= int(size[2]) <= 1000):
        said = f"terminal must be columns x rows of 20x5 to 1000x1000, not {terminal!r}."
        raise _Wrong(("sessions", "terminal"), said, 'terminal = "80x24", for example.')


def _check_merge(config: Config) -> None:
    merge = config.merge
    for name in ("check", "quick"):
        if getattr(merge, name) and not getattr(merge, name).strip():
            hint = f'{name} = "make test", for example; leave it out to test nothing.'
            raise _Wrong(("merge", name), f"{name} is blank, and would let everything pass.", hint)
    for name, allowed, what in (
        ("branch", _BRANCH, "a branch"),
        ("push", _REMOTE, "a remote"),
        ("review_role", _NAME, "a role"),
    ):
        value = getattr(merge, name)
        if value and not allowed.fullmatch(value):
            raise _Wrong(("merge", name), f"{value!r} is not a name for {what}.")
    if merge.protected != Merge.protected:
        _check_globs(merge.protected, ("merge", "protected"))
    for number, each in enumerate(merge.checks, 1):
        path = ("merge", "checks", str(number), "paths")
        if not each.paths or not each.run.strip():
            hint = '[[merge.checks]] paths = ["web/**"] run = "npm test", for example.'
            raise _Wrong(path, "a check of its own needs paths and run.", hint)
        _check_globs(each.paths, path)
    besides = next((name for name in ("quick", "checks") if getattr(merge, name)), None)
    if besides is not None and not merge.check:
        hint = 'check = "make test", for example; without it nothing that lands is tested.'
        raise _Wrong(("merge", besides), f"{besides} is run besides check, and there is no check.", hint)


def _check_room(config: Config) -> None:
    for name in config.merge.env:
        if not _VARIABLE.fullmatch(name):
            raise _Wrong(("merge", "env"), f"no gate can be given the variable {name!r}.")
    for path in config.merge.show:
        if not path.startswith(("/", "~/")) or ".." in path.split("/"):
            raise _Wrong(("merge", "show"), f"{path!r} must begin with / or ~/, without ..")
    for path in config.merge.cache:
        parts = path.rstrip("/").split("/")
        if not _CACHE.fullmatch(path) or any(part in ("", ".", "..", ".git") for part in parts):
            hint = 'cache = ["build", "node_modules"], for example; a folder that git ignores.'
            raise _Wrong(("merge", "cache"), f"{path!r} is not a folder in a worktree.", hint)


def _check_globs(patterns: tuple[str, ...], path: tuple[str, ...]) -> None:
    for pattern in patterns:
        try:
            globs.compile(pattern)
        except Invalid as error:
            raise _Wrong(path, error.message, error.hint) from None


def _check_tables(config: Config) -> None:
    """Refuse what a table has below the names that its user chose."""
    for remote, patterns in config.sessions.push.items():
        path = ("sessions", "push", remote)
        if not remote or any(letter.isspace() for letter in remote):
            raise _Wrong(path, f"{remote!r} is not a remote.", '[sessions.push] origin = ["feature/*"], for example.')
        try:
            pushes.check(patterns)
        except Invalid as error:
            raise _Wrong(path, error.message, error.hint) from None
    for name, room in config.leases.capacity.items():
        if ":" not in name or name.startswith(("repo:", "path:")) or not 1 <= room <= 1000:
            hint = '[leases.capacity] "lane:build" = 2, for example.'
            said = "a capacity of 1 to 1,000 belongs to a named resource."
            raise _Wrong(("leases", "capacity", name), said, hint)


def _check_agents(config: Config) -> None:
    for name, agent in config.agents.items():
        path = ("agents", name)
        if not _NAME.fullmatch(name):
            raise _Wrong(path, f"{name!r} is not a name for an agent.")
        if agent.command and (agent.program or agent.arguments):
            hint = "command declares an agent of your own; program and arguments change one that covey knows."
            raise _Wrong(path, f"{name} has a command, and program or arguments besides.", hint)
        is_empty = not (agent.command or agent.program or agent.arguments or agent.model or agent.env)
        if is_empty or not all(agent.command):
            hint = f'[agents.{name}] command = ["program", "{{prompt_file}}"] names one.'
            raise _Wrong(path, f"the agent {name} has no command.", hint)


def _read(cls: type[Any], values: dict[str, Any], path: tuple[str, ...]) -> Any:
    known = {f.name for f in fields(cls)}
    hints = typing.get_type_hints(cls)
    unknown = next((name for name in values if name not in known), None)
    if unknown is not None:
        raise _unknown(unknown, values[unknown], known, path)
    return cls(**{name: _value(hints[name], value, (*path, name)) for name, value in values.items()})


def _value(hint: Any, value: Any, path: tuple[str, ...]) -> Any:
    if is_dataclass(hint) or typing.get_origin(hint) is dict:
        if not isinstance(value, dict):
            raise _Wrong(path, f"[{path[-1]}] is a table.")
        if is_dataclass(hint):
            return _read(typing.cast(type[Any], hint), value, path)
        return {name: _value(typing.get_args(hint)[1], each, (*path, name)) for name, each in value.items()}
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        kind, what = (str, "texts") if inner is str else (dict, "tables")
        if not isinstance(value, list) or not all(isinstance(each, kind) for each in value):
            raise _Wrong(path, f"{path[-1]} must be a list of {what}, not {value!r}.")
        if inner is str:
            return tuple(value)
        return tuple(_read(inner, each, (*path, str(number))) for number, each in enumerate(value, 1))
    return _plain_value(hint, value, path)


def _plain_value(hint: Any, value: Any, path: tuple[str, ...]) -> Any:
    if hint is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise _Wrong(path, f"{path[-1]} is too large a number.") from None
    if type(value) is not hint and not isinstance(hint, types.UnionType):
        wanted = {float: "a number", bool: "true or false", str: "a text in quotes", int: "a whole number"}[hint]
        raise _Wrong(path, f"{path[-1]} must be {wanted}, not {value!r}.")
    return value


_LEAST_LIKENESS = 0.6
"""How alike a name and the one that may be meant are at least; of equal ones that is 1."""


def _unknown(name: str, value: Any, known: set[str], path: tuple[str, ...]) -> _Wrong:
    import difflib  # only a typo needs it, and every command reads the settings

    settings = dict(_tables(Config))
    tables = {each.rpartition(".")[2]: each for each in settings} if isinstance(value, dict) else {}
    alike = {each: difflib.SequenceMatcher(None, each, name).ratio() for each in (*sorted(known), *tables)}
    nearest = max(alike, key=alike.__getitem__)  # of equal ones the first, which is known here
    is_near, here = alike[nearest] >= _LEAST_LIKENESS, ".".join((*path, nearest))
    what = f"[{name}]" if not path else f"{name} in [{'.'.join(part for part in path if not part.isdigit())}]"
    owner = next((table for table, names in settings.items() if name in names), None)
    header = here if here in settings else "" if nearest in known else tables[nearest]
    if is_near and header and isinstance(value, dict):
        hint = f"Did you mean [{header}]?"
    elif owner is not None:
        hint = f"{name} belongs to [{owner}]: write that line above it."
    elif is_near:
        hint = f"Did you mean {f'[{header}]' if header else nearest}?"
    else:
        hint = f"Known here: {', '.join(sorted(known))}."
    return _Wrong((*path, name), f"there is no setting {what}.", hint)


def _tables(cls: type[Any], path: str = "") -> Iterator[tuple[str, set[str]]]:
    """Yield the tables that a covey.toml may have, as they are headed, and the names of the settings in each."""
    hints = typing.get_type_hints(cls)
    if path:
        yield path, {name for name, hint in hints.items() if not is_dataclass(hint)}
    for name, hint in hints.items():
        header = f"{path}.{name}" if path else name
        if is_dataclass(hint):
            yield from _tables(typing.cast(type[Any], hint), header)
        elif typing.get_origin(hint) is dict:
            yield header, set()  # the names in it are the user's


def _place(text: str, path: tuple[str, ...]) -> str:
    """Return file and line of a key, or of the table that it belongs to."""
    for end in range(len(path), 0, -1):
        line = line_of(text, path[: end - 1], path[end - 1])
        if line is not None:
            return f"{FILE} line {line}"
    return FILE


def line_of(text: str, path: tuple[str, ...], name: str) -> int | None:
    """Return the line of a key in the text of a covey.toml, found by reading it as far as needed.

    The tables of a list are told apart by their number, the last part of their path.
    """
    table: tuple[str, ...] = ()
    seen: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line)
        if header:
            table = tuple(part.strip(" \"'") for part in header[1].split("."))
            if line.lstrip().startswith("[["):
                seen[table] = seen.get(table, 0) + 1
                table = (*table, str(seen[table]))
            if table[: len(path) + 1] == (*path, name):
                return number
        key = re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line)
        if key and (*table, *key[1].split("."))[: len(path) + 1] == (*path, name):
            return number
    return None
