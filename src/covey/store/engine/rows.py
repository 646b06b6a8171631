"""How values become rows and rows become values, the same for every store."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache, cached_property
from typing import Any, Generic, TypeVar

import msgspec

from covey.core.nouns import KINDS, TABLES, Folded, Payload, Row
from covey.values import dataclass

R = TypeVar("R", bound=Row)
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
    return _encode_json, _FromJson(hint).__getitem__


class _FromJson(dict[str, Any]):
    """What stands in a column, by its JSON: the commonest is known, and the decoder for the rest made when needed."""

    def __init__(self, hint: Any) -> None:
        super().__init__({'""': "", "[]": (), "null": None})
        self._hint = hint

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self._hint)

    def __missing__(self, text: str) -> Any:
        return self._decoder.decode(text)


def _encode_enum(value: enum.StrEnum | None) -> str | None:
    return None if value is None else str(value)


def _encode_json(value: Any) -> str:
    return _json.encode(value).decode()


class Table(Generic[R]):
    """One table: its columns in order, its key, and how a row becomes a value."""

    def __init__(self, folded: Folded[R]) -> None:
        self.name = name = folded.name
        self.cls = folded.row
        self.key = folded.key
        self.extra = folded.computed
        self._update_sql: dict[tuple[str, ...], str] = {}
        hints = typing.get_type_hints(self.cls)
        self.fields = tuple(dict.fromkeys((*self.key, *(f.name for f in fields(self.cls)))))  # the key comes first
        codecs = [_codec(hints[field]) for field in self.fields]
        self._encoders = [(field, codec[0]) for field, codec in zip(self.fields, codecs, strict=True)]
        self._decoders = [(i, codec[1]) for i, codec in enumerate(codecs) if codec[1] is not None]
        self.columns = (*self.fields, *self.extra)
        quoted = ", ".join(f'"{column}"' for column in self.columns)
        names = ", ".join(f'"{field}"' for field in self.fields)
        marks = ", ".join("?" * len(self.columns))
        self.where = " AND ".join(f'"{column}" = ?' for column in self.key)
        self.insert_sql = f"INSERT INTO {name} ({quoted}) VALUES ({marks})"
        self.select_sql = f"SELECT {names} FROM {name}"
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
        return sql, [*values, *(after[column] for column in self.key)]


_FOLDED: dict[type[Any], Folded[Any]] = {folded.row: folded for folded in TABLES}


class _Tables(dict[type[Any], Table[Any]]):
    """The tables by the type of their rows, each made when it is first needed: a command needs few of them."""

    def __missing__(self, row: type[Any]) -> Table[Any]:
        return self.setdefault(row, Table(_FOLDED[row]))


TABLE_OF = _Tables()


def tables() -> dict[str, Table[Any]]:
    """Return every table by its name."""
    return {folded.name: TABLE_OF[folded.row] for folded in TABLES}


@cache
def _defaults(cls: type[Payload]) -> list[tuple[str, Any]]:
    return [(f.name, f.default) for f in fields(cls)]


@cache
def _decoder(kind: str) -> msgspec.json.Decoder[Payload]:
    return msgspec.json.Decoder(KINDS[kind])


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
    return _decoder(kind).decode(data)


@dataclass(frozen=True)
class Change:
    """One event and the row as it is after it, for those who follow the log."""

    seq: int
    kind: str
    subject: str
    row: Row | None
    payload: Payload | None = None
