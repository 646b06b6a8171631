"""What is asked and answered about branches that overlap and files that are hot."""

from __future__ import annotations

from msgspec import Struct

from covey.app.shapes.forms import Asked, TaskId
from covey.core import overlaps, tasks


class ListOverlaps(Asked, frozen=True, kw_only=True):
    """Which overlaps: those of one task, or all."""

    task: TaskId | None = None


class OverlapRow(Struct, frozen=True, kw_only=True):
    """Two open tasks whose branches overlap, with their titles and who is at work on them; `other` may be main."""

    id: str
    one: str
    other: str
    level: overlaps.Level
    files: tuple[str, ...]
    found: float
    changed: float
    one_title: str | None
    one_session: str | None
    other_title: str | None
    other_session: str | None

    @staticmethod
    def of(overlap: overlaps.Overlap, known: dict[str, tasks.Task]) -> OverlapRow:
        """Return an overlap as it is answered."""
        one, other = known.get(overlap.one), known.get(overlap.other)
        values = {name: value for name, value in overlap.__dict__.items() if name != "gone"}
        return OverlapRow(
            **values,
            one_title=one.title if one else None,
            one_session=one.session if one else None,
            other_title=other.title if other else None,
            other_session=other.session if other else None,
        )


class HotFileRow(Struct, frozen=True, kw_only=True):
    """A file at which tasks collide again and again: how often lately, since when it is hot, and the last time."""

    path: str
    collisions: int
    since: float
    last: float

    @staticmethod
    def of(file: overlaps.HotFile) -> HotFileRow:
        """Return a hot file as it is answered."""
        return HotFileRow(path=file.path, collisions=file.collisions, since=file.since, last=file.last)


class Overlaps(Struct, frozen=True, kw_only=True):
    """The open branches that overlap, and the files that are hot."""

    overlaps: list[OverlapRow]
    hot: list[HotFileRow]
