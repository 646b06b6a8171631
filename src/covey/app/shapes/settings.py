"""What is answered about the settings in force."""

from __future__ import annotations

from msgspec import Struct


class SettingRow(Struct, frozen=True, kw_only=True):
    """One setting: its value and its default as covey.toml would spell them, and in which line of it it is set.

    `line` is null for one that is not set there, or whose line cannot be told. What looks like a secret is left out.
    """

    name: str
    value: str
    default: str
    is_set: bool
    line: int | None
    meaning: str


class SettingTable(Struct, frozen=True, kw_only=True):
    """One table of covey.toml by its name, such as `merge` or `agents.sh`, and what it is about."""

    name: str
    title: str
    settings: tuple[SettingRow, ...]


class SettingsShown(Struct, frozen=True, kw_only=True):
    """All settings in force, and the file in which they are changed.

    `problem` says why the file makes no sense at the moment; the settings from before hold until it is mended. `agent`
    is what runs in a session that names none.
    """

    file: str
    problem: str
    agent: str
    tables: tuple[SettingTable, ...]
