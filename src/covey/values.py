"""`dataclass` as the standard library has it, but nothing of a class is made before it is needed.

A command without a daemon defines some 270 of these classes and uses thirty. The standard library looks at every field
and compiles up to six functions for each class; here all of that waits for the first use. And nobody pays at run time
for what mypy forbids anyway, assigning to a field of a frozen value.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from dataclasses import dataclass as _dataclass
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(made: type | None = None, /, **options: Any) -> Any:
        """Make a class of values, equal by what they hold; a frozen one is hashed by that, and never assigned to."""
        return _made(made, **options) if made is not None else lambda made: _made(made, **options)


_FIELDS = "__dataclass_fields__"
"""Where the standard library, and msgspec, look for the fields of a class."""


def _made(made: type, *, frozen: bool = False, eq: bool = True, slots: bool = False, kw_only: bool = False) -> type:
    own = vars(made).keys() & {"__init__", "__repr__", "__eq__", "__hash__"}
    if slots:  # makes another class, which has to be whole at once
        made = _dataclass(made, eq=False, repr=False, slots=True, kw_only=kw_only)
    later: dict[str, Any] = {"__repr__": _shown}
    if not slots:
        later[_FIELDS] = _AtFirstUse(made, _FIELDS, lambda made: _fields_of(made, kw_only))
        later["__match_args__"] = _AtFirstUse(made, "__match_args__", _places_of)
        later["__init__"] = _AtFirstUse(made, "__init__", _init_of)
    if eq:
        later["__eq__"] = _AtFirstUse(made, "__eq__", _equals_of)
        later["__hash__"] = _AtFirstUse(made, "__hash__", _hashed_of) if frozen else None
    for name, value in later.items():
        if name not in own:
            setattr(made, name, value)
    if not slots and any(isinstance(value, Field) for value in vars(made).values()):
        # Each is taken out of the class, so this is done while nobody else can do it too.
        _fields_of(made, kw_only)
    return made


class _AtFirstUse:
    """Stands for an attribute of a class until somebody asks for it, and only then makes it."""

    __slots__ = ("_made", "_make", "_name")

    def __init__(self, made: type, name: str, make: Callable[[type], Any]) -> None:
        self._made = made
        self._name = name
        self._make = make

    def __get__(self, value: object, owner: type) -> Any:
        found = self._make(self._made)
        setattr(self._made, self._name, found)
        return found.__get__(value, owner) if isinstance(found, FunctionType) else found


def _fields_of(made: type, kw_only: bool) -> Any:
    _dataclass(made, init=False, repr=False, eq=False, match_args=False, kw_only=kw_only)
    return vars(made)[_FIELDS]


def _places_of(made: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(made) if field.init and not field.kw_only)


def _held_by(made: type) -> Callable[[Any], Any]:
    """Return what tells by what a value is compared."""
    names = [field.name for field in fields(made) if field.compare]
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)


def _equals_of(made: type) -> Any:
    held = _held_by(made)

    def equals(one: object, other: object) -> Any:
        return held(one) == held(other) if one.__class__ is other.__class__ else NotImplemented

    return equals


def _hashed_of(made: type) -> Any:
    held = _held_by(made)

    def hashed(value: object) -> int:
        return hash(held(value))

    return hashed


def _init_of(made: type) -> Any:
    names: dict[str, Any] = {"_made_of": MISSING}
    positional: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for each in fields(made):
        if not each.init:
            if each.default_factory is not MISSING:
                names[f"_make_{each.name}"] = each.default_factory
                body.append(f" self.{each.name} = _make_{each.name}()")
            continue
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
