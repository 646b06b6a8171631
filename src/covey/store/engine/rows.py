"""How values become rows and rows become values, the same for every store."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, Generic, TypeVar

import msgspec

from covey.core import (
    alerts,
    comments,
    devices,
    fleet,
    fold,
    gates,
    landings,
    leases,
    mail,
    merges,
    overlaps,
    permits,
    proposals,
    questions,
    runs,
    scheduling,
    sessions,
    spending,
    tasks,
)
from covey.core.events import KINDS, Payload
from covey.core.queue import standing
from covey.values import dataclass

R = TypeVar("R")
Value = str | int | float | bytes | None
Encode = Callable[[Any], Value]
Decode = Callable[[Any], Any]

_json = msgspec.json.Encoder()


def _codec(hint: Any) -> tuple[Encode | None, Decode | None]:
    """Return how a field of this type is written to a column and read back; None means as it is."""
    arms = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    plain = set(arms) - {types.NoneType}
    if plain <= {str} or plain <= {int} or plain <= {float}:
        return None, None
    if plain == {bool}:
        return int, bool
    (arm,) = plain if len(plain) == 1 else (None,)
    if isinstance(arm, type) and issubclass(arm, enum.StrEnum):
        return _encode_enum if len(arms) > 1 else str.__str__, arm._value2member_map_.__getitem__
    seen: dict[str, Any] = {'""': "", "[]": (), "null": None}
    made: list[msgspec.json.Decoder[Any]] = []

    def decode(text: str) -> Any:
        if text in seen:
            return seen[text]
        if not made:
            made.append(msgspec.json.Decoder(hint))
        return made[0].decode(text)

    return _encode_json, decode


def _encode_enum(value: enum.StrEnum | None) -> str | None:
    return None if value is None else str(value)


def _encode_json(value: Any) -> str:
    if value == ():
        return "[]"
    return _json.encode(value).decode()


class Table(Generic[R]):
    """One table: its columns in order, its key, and how a row becomes a value.

    All but its name, class and key is made when it is first needed: a command needs few of the tables.
    """

    fields: tuple[str, ...]
    columns: tuple[str, ...]
    names: str
    where: str
    insert_sql: str
    select_sql: str
    all_sql: str
    get_sql: str
    delete_sql: str
    _encoders: list[tuple[str, Encode | None]]
    _decoders: list[tuple[int, Decode]]

    def __init__(
        self,
        name: str,
        cls: type[R],
        key: tuple[str, ...],
        extra: dict[str, Callable[[R], Value]] | None = None,
    ) -> None:
        self.name = name
        self.cls = cls
        self.key = key
        self.extra = extra or {}
        self._update_sql: dict[tuple[str, ...], str] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in Table.__annotations__:
            raise AttributeError(f"A table has no {name}.")
        self._make()
        return self.__dict__[name]

    def _make(self) -> None:
        name, hints = self.name, typing.get_type_hints(self.cls)
        self.fields = tuple(f.name for f in fields(self.cls))  # type: ignore[arg-type]
        codecs = [_codec(hints[field]) for field in self.fields]
        self._encoders = [(field, codec[0]) for field, codec in zip(self.fields, codecs, strict=True)]
        self._decoders = [(i, codec[1]) for i, codec in enumerate(codecs) if codec[1] is not None]
        self.columns = (*self.fields, *self.extra)
        quoted = ", ".join(f'"{column}"' for column in self.columns)
        self.names = ", ".join(f'"{field}"' for field in self.fields)
        marks = ", ".join("?" * len(self.columns))
        self.where = " AND ".join(f'"{column}" = ?' for column in self.key)
        self.insert_sql = f"INSERT INTO {name} ({quoted}) VALUES ({marks})"
        self.select_sql = f"SELECT {self.names} FROM {name}"
        self.all_sql = f"SELECT {quoted} FROM {name}"
        self.get_sql = f"{self.select_sql} WHERE {self.where}"
        self.delete_sql = f"DELETE FROM {name} WHERE {self.where}"

    def encode(self, row: R) -> tuple[Value, ...]:
        """Return the values of all columns."""
        own = [
            getattr(row, field) if encode is None else encode(getattr(row, field)) for field, encode in self._encoders
        ]
        return (*own, *(make(row) for make in self.extra.values()))

    def decode(self, values: tuple[Any, ...]) -> R:
        """Return the value that stands in a row of `select_sql`."""
        read = list(values)
        for i, decode in self._decoders:
            if read[i] is not None:
                read[i] = decode(read[i])
        row = object.__new__(self.cls)
        row.__dict__.update(zip(self.fields, read, strict=True))
        return row

    def key_of(self, row: R) -> tuple[Value, ...]:
        """Return the values of the key."""
        return tuple(getattr(row, column) for column in self.key)

    def update(self, old: R, new: R) -> tuple[str, list[Value]] | None:
        """Return the statement that makes `old` into `new`, or None if they are the same."""
        before, after = old.__dict__, new.__dict__
        changed: list[str] = []
        values: list[Value] = []
        for field, encode in self._encoders:
            value = after[field]
            if value is not before[field] and value != before[field]:
                changed.append(field)
                values.append(value if encode is None else encode(value))
        for field, make in self.extra.items():
            derived = make(new)
            if derived != make(old):
                changed.append(field)
                values.append(derived)
        if not changed:
            return None
        names = tuple(changed)
        sql = self._update_sql.get(names)
        if sql is None:
            sets = ", ".join(f'"{name}" = ?' for name in names)
            sql = self._update_sql[names] = f"UPDATE {self.name} SET {sets} WHERE {self.where}"
        return sql, [*values, *self.key_of(new)]


TASKS = Table("tasks", tasks.Task, ("id",), {"lane": scheduling.lane, "line": scheduling.line})
NEEDS = Table("needs", fold.NeedRow, ("task", "need"))
SESSIONS = Table("sessions", sessions.Session, ("name",))
LEASES = Table("leases", leases.Lease, ("id",))
LEASE_RESOURCES = Table("lease_resources", fold.ResourceRow, ("lease", "resource"))
CROSSINGS = Table("crossings", leases.Crossing, ("lease", "task", "path"))
MESSAGES = Table("messages", mail.Message, ("id",))
READINGS = Table("readings", mail.Reading, ("message", "reader"))
COMMENTS = Table("comments", comments.Comment, ("id",))
MERGES = Table("merges", merges.Merge, ("id",))
QUEUE = Table("queue", standing.Standing, ("id",))
GATES = Table("gates", gates.Gate, ("id",))
FLAKES = Table("flakes", gates.Flake, ("test",))
LANDINGS = Table("landings", landings.Landing, ("id",))
RUNS = Table("runs", runs.Run, ("id",))
FLEET = Table("fleet", fleet.Fleet, ("id",))
QUESTIONS = Table("questions", questions.Question, ("id",))
PERMITS = Table("permits", permits.Permit, ("id",))
PROPOSALS = Table("proposals", proposals.Proposal, ("id",))
DEVICES = Table("devices", devices.Device, ("id",))
SPENDS = Table("spends", spending.Spend, ("run", "model", "day"))
OVERLAPS = Table("overlaps", overlaps.Overlap, ("id",))
HOT_FILES = Table("hot_files", overlaps.HotFile, ("path",))
ALERTS = Table("alerts", alerts.Alert, ("id",))
COUNTS = Table("counts", fold.CountRow, ("status",))
IDS = Table("ids", fold.IdRow, ("prefix",))

FOLDED: dict[str, Table[Any]] = {
    table.name: table
    for table in (
        TASKS,
        NEEDS,
        SESSIONS,
        LEASES,
        LEASE_RESOURCES,
        CROSSINGS,
        MESSAGES,
        READINGS,
        COMMENTS,
        MERGES,
        QUEUE,
        GATES,
        FLAKES,
        LANDINGS,
        RUNS,
        FLEET,
        QUESTIONS,
        PERMITS,
        PROPOSALS,
        DEVICES,
        SPENDS,
        OVERLAPS,
        HOT_FILES,
        ALERTS,
        COUNTS,
        IDS,
    )
}
SCRATCH = ("pulses", "requests", "tokens", "blobs", "origins", "origin_events")

_DECODERS: dict[str, msgspec.json.Decoder[Payload]] = {}


_DEFAULTS: dict[type, list[tuple[str, Any]]] = {}


def _defaults(cls: type[Payload]) -> list[tuple[str, Any]]:
    if cls not in _DEFAULTS:
        _DEFAULTS[cls] = [(f.name, f.default) for f in fields(cls)]
    return _DEFAULTS[cls]


def encode_payload(payload: Payload) -> str:
    """Return the payload of an event as JSON, without what has its default value."""
    values = payload.__dict__
    short = {
        name: values[name]
        for name, default in _defaults(type(payload))
        if default is MISSING or values[name] != default
    }
    return _json.encode(short).decode()


def decode_payload(kind: str, data: str | bytes) -> Payload:
    """Return the payload of an event; a field that it lacks has its default value."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(KINDS[kind])
    return decoder.decode(data)


@dataclass(frozen=True)
class Change:
    """One event and the row as it is after it, for those who follow the log."""

    seq: int
    kind: str
    subject: str
    row: fold.Row | None
    payload: Payload | None = None
