"""covey settings: with and without a daemon, whole or one table."""

from __future__ import annotations

from covey.errors import NotFound
from tests.worlds.shell import Shell


def test_settings_are_shown_with_their_lines_and_meanings(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text('[merge]\ncheck = "make test"\n')
    said = shell.ok("settings", "merge")
    assert '  check = "make test"' in said and "line 2" in said and "The gate: the command" in said
    assert "[budget]" not in said and "[budget]" in shell.ok("settings")
    shown = shell.json("settings")
    assert (shown["problem"], shown["agent"], shown["tables"][0]["name"]) == ("", "claude", "merge")
    assert "There is no table merges" in shell.fails(NotFound.exit_code, "settings", "merges")
