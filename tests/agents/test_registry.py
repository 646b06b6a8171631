"""Which agents there are, and whether their programs can be run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from covey.agents import registry
from covey.agents.custom import Declared
from covey.core.fleet.launches import Launch
from covey.errors import Invalid, NotFound


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "aider"])
def test_each_program_is_told_whom_its_user_trusts_but_not_how_to_push(name: str) -> None:
    env = registry.find(name, {}).traits.env
    assert {"NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} <= set(env)
    assert "SSH_AUTH_SOCK" not in env


def test_ours_joins_by_the_same_door_as_anyones() -> None:
    names = registry.names({"sh": ("bash", "{body_file}")})
    assert names == sorted(names) and {"codex", "scripted", "sh"} <= set(names)
    assert registry.find("scripted", {}).name == "scripted"


def test_what_is_declared_comes_first() -> None:
    assert registry.find("scripted", {"scripted": ("mine",)}) == Declared("scripted", ("mine",))


def test_an_unknown_agent_is_not_found_and_those_that_are_there_are_named() -> None:
    with pytest.raises(NotFound, match="no agent 'clod'") as missing:
        registry.find("clod", {"sh": ("bash",)})
    assert "scripted, sh;" in missing.value.hint


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("package_that_is_missing:agent", "cannot be loaded"),
        ("covey:missing", "cannot be loaded"),
        ("covey", "is none"),
        ("no_agent_of_ours:agent", "is none"),
        ("no_agent_of_ours:raises", "cannot be loaded: AttributeError"),
        ("raises_at_import:agent", "cannot be loaded: RuntimeError: no licence"),
        ("ends_at_import:agent", "cannot be loaded: SystemExit: 2"),
    ],
)
def test_an_agent_that_a_package_brings_broken_is_named(
    value: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "broken-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[covey.agents]\nbroken = {value}\n")
    (tmp_path / "no_agent_of_ours.py").write_text("class agent:\n    name, launch = 'broken', print\n")
    (tmp_path / "raises_at_import.py").write_text("raise RuntimeError('no licence')\n")
    (tmp_path / "ends_at_import.py").write_text("raise SystemExit(2)\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert "broken" in registry.names({})
    with pytest.raises(Invalid, match=complaint):
        registry.find("broken", {})


def test_a_program_is_looked_for_where_the_run_would(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "agent").write_text("#!/bin/sh\n")
    (tools / "notes").write_text("")
    (tools / "agent").chmod(0o755)
    (tools / "notes").chmod(0o644)

    def why(program: str, path: str = str(tools)) -> str | None:
        return registry.executable(Launch(argv=(program,), cwd=str(tmp_path), env={"PATH": path}))

    assert why("agent") is None
    assert why("tools/agent") is None
    assert why(str(tools / "agent")) is None
    assert why("agent", path=f"/nowhere:{tools}") is None
    assert why("agent", path="/nowhere") == "there is no program agent on the PATH"
    assert why("notes") == f"{tools / 'notes'} may not be executed"
    assert why("tools/notes") == "tools/notes may not be executed"
    assert why("tools") == "there is no program tools on the PATH"
    assert why("./agent") == "there is no program ./agent"
    assert registry.executable(Launch(argv=("sh",), cwd=str(tmp_path))) is None
