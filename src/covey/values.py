"""`dataclass` as the standard library has it, but frozen ones are made faster.

A command without a daemon makes some 260 classes before it does anything. The standard library compiles six functions
for each frozen one, here it is one: comparing, hashing and showing are the same for all, and nobody pays at run time
for what mypy forbids anyway, assigning to a field.
"""

from __future__ import annotations

from dataclasses import dataclass as _dataclass
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(made: type | None = None, /, *, frozen: bool = False, **options: Any) -> Any:
        """Make a class of values: equal, and hashed, by what they hold; a frozen one is never assigned to."""
        if made is None:
            return lambda made: dataclass(made, frozen=frozen, **options)
        return _value(made, **options) if frozen else _dataclass(made, **options)


def _value(made: type, **options: Any) -> type:
    own = vars(made).keys() & {"__eq__", "__hash__", "__repr__"}
    made = _dataclass(made, eq=False, repr=False, **options)
    names = [field.name for field in fields(made) if field.compare]
    held: Any = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)

    def equals(one: object, other: object) -> Any:
        return held(one) == held(other) if one.__class__ is other.__class__ else NotImplemented

    def hashed(value: object) -> int:
        return hash(held(value))

    for name, method in (("__eq__", equals), ("__hash__", hashed), ("__repr__", _shown)):
        if name not in own:
            setattr(made, name, method)
    return made


def _shown(value: Any) -> str:
    parts = (f"{field.name}={getattr(value, field.name)!r}" for field in fields(value) if field.repr)
    return f"{type(value).__qualname__}({', '.join(parts)})"
