"""What is asked and answered when tasks are imported."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from covey.app.shapes.board.tasks import EditTask
from covey.app.shapes.forms import Asked, Key, Title

Keys = Annotated[list[Key], Meta(max_length=500)]


class ImportedTask(EditTask, frozen=True, kw_only=True):
    """A task of an import; `key` makes it the same task next time, needs may name keys, what is left out stays."""

    key: Key
    title: Title
    needs: Keys | UnsetType = UNSET
    needs_any: Keys | UnsetType = UNSET
    parent: Key | UnsetType | None = UNSET


class ImportTasks(Asked, frozen=True, kw_only=True):
    """A part of an import."""

    tasks: Annotated[list[ImportedTask], Meta(min_length=1, max_length=1000)]


class ImportAnswer(Struct, frozen=True):
    """What an import did: the ids by key."""

    added: dict[str, str]
    updated: dict[str, str]
    unchanged: dict[str, str]
