"""`dataclass` as the standard library has it, but frozen ones are made faster.

A command without a daemon makes some 200 classes before it does anything. The standard library compiles six functions
for each frozen one, here none is before it is needed: comparing, hashing and showing are the same for all, __init__ is
compiled for the first value, and nobody pays at run time for what mypy forbids anyway, assigning to a field.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from dataclasses import dataclass as _dataclass
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
    own = vars(made).keys() & {"__init__", "__eq__", "__hash__", "__repr__"}
    slots = options.get("slots", False)  # makes another class, which has to be whole at once
    made = _dataclass(made, init=slots, eq=False, repr=False, **options)
    names = [field.name for field in fields(made) if field.compare]
    held: Any = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)

    def equals(one: object, other: object) -> Any:
        return held(one) == held(other) if one.__class__ is other.__class__ else NotImplemented

    def hashed(value: object) -> int:
        return hash(held(value))

    for name, method in (("__eq__", equals), ("__hash__", hashed), ("__repr__", _shown)):
        if name not in own:
            setattr(made, name, method)
    if not slots and "__init__" not in own:
        made.__init__ = _InitAtFirstUse(made)  # type: ignore[misc]
    return made


class _InitAtFirstUse:
    """Stands for an __init__ until somebody asks for it, and only then compiles it: most classes never have a value."""

    def __init__(self, made: type) -> None:
        self._made = made

    def __get__(self, value: object, owner: type) -> Any:
        init = _init_of(self._made)
        self._made.__init__ = init  # type: ignore[misc]
        return init if value is None else init.__get__(value)


def _init_of(made: type) -> Any:
    names: dict[str, Any] = {"_made_of": MISSING}
    positional: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for each in fields(made):
        if not each.init:
            raise TypeError(f"{made.__qualname__}.{each.name} is a field without a place in __init__")
        value, argument = each.name, each.name
        if each.default is not MISSING:
            names[f"_default_{each.name}"] = each.default
            argument = f"{each.name}=_default_{each.name}"
        elif each.default_factory is not MISSING:
            names[f"_make_{each.name}"] = each.default_factory
            argument = f"{each.name}=_made_of"
            value = f"_make_{each.name}() if {each.name} is _made_of else {each.name}"
        (by_name if each.kw_only else positional).append(argument)
        body.append(f" self.{each.name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append(" self.__post_init__()")
    arguments = ", ".join(["self", *positional, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({arguments}):\n" + ("\n".join(body) or " pass"), names)  # noqa: S102 - as dataclasses does
    init = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _shown(value: Any) -> str:
    parts = (f"{field.name}={getattr(value, field.name)!r}" for field in fields(value) if field.repr)
    return f"{type(value).__qualname__}({', '.join(parts)})"
