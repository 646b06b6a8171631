"""How what is asked has to look: the types of its fields, and the base of every request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Self, TypeVar, cast, get_type_hints

from msgspec import Meta, Raw, Struct, defstruct

S = TypeVar("S", bound=Struct)

FORMS: dict[str, str] = {}
"""What each pattern asks for, in words."""


def form(pattern: str, words: str, *, min_length: int | None = None, max_length: int | None = None) -> Meta:
    """Return what a text has to look like from end to end; `$` would let a line break stand at its end."""
    whole = rf"^{pattern}\Z"
    FORMS[whole] = words
    return Meta(pattern=whole, min_length=min_length, max_length=max_length)


_NAME = "must be letters, digits, - and _, beginning with a letter or digit"
ONE_LINE = "must not have a line break or a control character in it"

Name = Annotated[str, form(r"[A-Za-z0-9][A-Za-z0-9_-]*", _NAME, min_length=1, max_length=64)]
Title = Annotated[str, form(r"[^\x00-\x1f\x7f]+", ONE_LINE, min_length=1, max_length=500)]
Line = Annotated[str, form(r"[^\x00-\x1f\x7f]+", ONE_LINE, min_length=1, max_length=2000)]
Body = Annotated[str, Meta(max_length=262_144)]
Glob = Annotated[str, Meta(min_length=1, max_length=1000)]
Globs = Annotated[list[Glob], Meta(max_length=200)]
TaskId = Annotated[
    str, form(r"[A-Z0-9]{1,5}-[1-9][0-9]*", "must be the id of a task, such as AF-1", min_length=1, max_length=64)
]
TaskIds = Annotated[list[TaskId], Meta(max_length=500)]
Checks = Annotated[list[Line], Meta(max_length=50)]
Priority = Annotated[int, Meta(ge=-1_000_000, le=1_000_000)]
Money = Annotated[float, Meta(ge=0, le=1_000_000)]
Fence = Annotated[int, Meta(ge=0, le=2**53)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Seq = Annotated[int, Meta(ge=0, le=2**53)]
Commit = Annotated[str, form(r"[0-9a-f]{7,64}", "must be the hash of a commit")]
Branch = Annotated[
    str, form(r"[^\x00-\x20\x7f~^:?*\[\\]+", "must be the name of a branch", min_length=1, max_length=250)
]
Key = Annotated[str, form(r"[^\x00-\x1f\x7f]+", ONE_LINE, min_length=1, max_length=500)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]

Json = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]


class Asked(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a request carries; a field that we do not know is an error."""


class Nothing(Asked, frozen=True, kw_only=True):
    """A request that carries nothing."""


class Because(Asked, frozen=True, kw_only=True):
    """Why."""

    reason: Line


class Perhaps(Asked, frozen=True, kw_only=True):
    """Why, if there is something to say."""

    reason: Line | None = None


class As(Asked, frozen=True, kw_only=True):
    """For whom it is asked: a session asks for itself alone. A filter of rows by session is no such field."""

    session: Name | None = None


class Problem(Struct, frozen=True):
    """What is wrong in one sentence, and what to do about it."""

    error: str
    hint: str


class Answered(Struct, frozen=True, kw_only=True):
    """What is answered of a value: the fields that both have, and what is computed besides."""

    @classmethod
    def of(cls, value: object, **computed: Any) -> Self:
        """Return a value as it is answered: what is not computed is its field of the same name."""
        own = {name: getattr(value, name) for name in cls.__struct_fields__ if name not in computed}
        return cls(**own, **computed)


def fields_of(value: type, *without: str) -> Iterator[tuple[str, Any]]:
    """Yield name and type of the fields of a value of the core, but for some."""
    return ((name, kind) for name, kind in get_type_hints(value).items() if name not in without)


def completed(fields: Iterable[tuple[str, Any] | tuple[str, Any, Any]]) -> Callable[[type[S]], type[S]]:
    """Give a shape these fields besides its own: the name, the type and perhaps the default of each.

    One that the shape writes out stays as it is there; code that asks for a field by its name has it written out.
    """

    def complete(shape: type[S]) -> type[S]:
        more = [each for each in fields if each[0] not in shape.__struct_fields__]
        told = {"__doc__": shape.__doc__, "__module__": shape.__module__}
        return cast(
            "type[S]", defstruct(shape.__name__, more, bases=(shape,), namespace=told, frozen=True, kw_only=True)
        )

    return complete
