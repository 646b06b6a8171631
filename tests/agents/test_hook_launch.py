"""How hooks stand on the command lines of Claude Code and Codex, and that nothing else changes by them."""

from __future__ import annotations

import json
import shlex
import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.agents.agent import Agent, Assignment, HookDoor
from covey.agents.claude import claude
from covey.agents.codex import codex
from covey.core.leases.hooks import Moment
from covey.core.people.permits import PermissionLevel

DOOR = HookDoor(url="http://127.0.0.1:4711", relay=("/usr/bin/python3", "-I", "-S", "/opt/covey/hooks/relay.py"))
WORK = Assignment(
    run="R-1",
    session="ada",
    task="T-1",
    title="Paint",
    worktree="/srv/shed",
    prompt="Do this.",
    prompt_file="/p",
    body_file="/b",
    env={"HOME": "/home/ada"},
)
HOOKED = replace(WORK, hooks=DOOR)
CONVERSATION = "01a1e03e-54b4-7c52-93f8-4654dd61f87d"
WAYS = ["headless", "terminal"]


def argv(agent: Agent, way: str, work: Assignment) -> tuple[str, ...]:
    """Return the command line of an agent in one of its two ways."""
    if way == "headless":
        return agent.launch(work).argv
    assert agent.terminal is not None
    return agent.terminal.launch(replace(work, conversation=CONVERSATION)).argv


def settings(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that Claude Code is given; of more than one it would hear only the last."""
    assert words.count("--settings") <= 1
    found: dict[str, Any] = json.loads(words[words.index("--settings") + 1]) if "--settings" in words else {}
    return found


def overrides(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the hooks that Codex is given on its command line, as it reads them."""
    given = [words[number + 1] for number, word in enumerate(words) if word == "-c"]
    return {key: tomllib.loads(f"x = {value}")["x"] for key, _, value in (each.partition("=") for each in given)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("agent", [claude.agent, codex.agent], ids=["claude", "codex"])
def test_without_a_door_there_are_no_hooks(agent: Agent, way: str) -> None:
    assert agent.traits.hooks
    assert not any("hooks" in word for word in argv(agent, way, WORK))


# Claude Code


@pytest.mark.parametrize("level", PermissionLevel)
@pytest.mark.parametrize("way", WAYS)
def test_claude_gets_all_its_settings_at_once(way: str, level: PermissionLevel) -> None:
    found = settings(argv(claude.agent, way, replace(HOOKED, permissions=level)))
    assert "PreToolUse" in found["hooks"] and "SessionStart" in found["hooks"]
    assert ("permissions" in found) == (level is PermissionLevel.ASK)
    skips = found.get("skipDangerousModePermissionPrompt", False)
    assert skips == (level is PermissionLevel.FULL and way == "terminal")
    assert ("PermissionRequest" in found["hooks"]) == (way == "terminal")


def test_claude_is_not_held_where_the_door_does_not_hold() -> None:
    work = replace(HOOKED, hooks=replace(DOOR, holds=False))
    assert "PermissionRequest" not in settings(argv(claude.agent, "terminal", work))["hooks"]
    assert "hooks.PermissionRequest" not in overrides(argv(codex.agent, "terminal", work))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("joined", [True, False])
def test_settings_of_the_user_go_together_with_ours(way: str, joined: bool) -> None:
    theirs = {"hooks": {"Stop": [{"hooks": []}]}, "env": {"A": "1"}, "permissions": {"ask": ["Bash"]}}
    words = (f"--settings={json.dumps(theirs)}",) if joined else ("--settings", json.dumps(theirs))
    work = replace(HOOKED, permissions=PermissionLevel.ASK, arguments=("--effort", "low", *words, "--verbose"))
    line = argv(claude.agent, way, work)
    found = settings(line)
    assert found["env"] == {"A": "1"} and found["permissions"]["ask"][-1] == "Bash"
    assert "Edit" in found["permissions"]["ask"] and found["hooks"]["Stop"][-1] == {"hooks": []}
    assert len(found["hooks"]["Stop"]) == 2 and line[-3:] == ("--effort", "low", "--verbose")


def test_settings_of_the_user_in_a_file_come_last() -> None:
    line = argv(claude.agent, "headless", replace(HOOKED, arguments=("--settings", "/home/ada/more.json")))
    assert line[-2:] == ("--settings", "/home/ada/more.json") and line.count("--settings") == 2


@pytest.mark.parametrize(
    ("env", "direct"),
    [
        ({}, None),
        ({"NO_PROXY": "a"}, "a"),
        ({"HTTPS_PROXY": "http://p"}, "127.0.0.1"),
        ({"http_proxy": "http://p", "no_proxy": "a,b"}, "a,b,127.0.0.1"),
        ({"HTTP_PROXY": "http://p", "NO_PROXY": "127.0.0.1,x"}, "127.0.0.1,x"),
    ],
)
def test_hooks_of_claude_go_past_a_proxy(env: dict[str, str], direct: str | None) -> None:
    launched = claude.agent.launch(replace(HOOKED, env={**WORK.env, **env})).env
    assert launched.get("NO_PROXY") == direct
    assert dict(claude.agent.launch(replace(WORK, env=env)).env).get("NO_PROXY") == env.get("NO_PROXY")


# Codex


@pytest.mark.parametrize("way", WAYS)
def test_codex_starts_the_relay_at_each_moment_that_it_knows(way: str) -> None:
    found = overrides(argv(codex.agent, way, HOOKED))
    asked = {key.removeprefix("hooks."): value for key, value in found.items() if key.startswith("hooks.")}
    state = asked.pop("state")
    left_out = {Moment.NOTIFICATION} | ({Moment.PERMISSION} if way == "headless" else set())
    assert set(asked) == {str(moment) for moment in Moment if moment not in left_out}
    for moment, value in asked.items():
        seconds = 3601 if moment == "PermissionRequest" else 2
        command = shlex.join([*DOOR.relay, moment])
        assert value == [{"hooks": [{"type": "command", "command": command, "timeout": seconds}]}]
    assert len(state) == len(asked)
    assert state["/<session-flags>/config.toml:pre_tool_use:0:0"]["trusted_hash"].startswith("sha256:")


@pytest.mark.parametrize("way", WAYS)
def test_codex_trusts_no_hooks_but_ours(way: str) -> None:
    assert not any("bypass" in word for word in argv(codex.agent, way, HOOKED))


def test_what_the_user_adds_to_the_command_line_of_codex_comes_after_ours() -> None:
    line = argv(codex.agent, "headless", replace(HOOKED, arguments=("-c", "a=1")))
    assert line[-3:] == ("-c", "a=1", "-")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), min_size=1, max_size=4))
def test_any_words_of_a_relay_stay_what_they_are(words: list[str]) -> None:
    work = replace(HOOKED, hooks=replace(DOOR, relay=tuple(words)))
    for way in WAYS:
        found = overrides(argv(codex.agent, way, work))["hooks.Stop"][0]["hooks"][0]["command"]
        assert shlex.split(found) == [*words, "Stop"]
    asked = settings(argv(claude.agent, "headless", work))["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    assert shlex.split(asked) == [*words, "SessionStart"]
