"""Tokens of sessions: the same under one key, and kept nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.app.app import App
from covey.app.context import Context
from covey.app.fleet.heartbeats import Pulses
from covey.errors import Reused, Unknown
from tests.worlds.boards import World


@pytest.fixture
def minting(world: World) -> World:
    pulses = Pulses(world.clock, world.store.place)
    world.app = App(world.store, Context(world.config, pulses, "demo", has_daemon=True, secret=b"owner's"))
    world.ask("session.new", name="ada")
    world.ask("session.new", name="bob")
    return world


def _session(world: World, token: str) -> str | None:
    return world.store.read(lambda tx: world.app.who(tx, token)).session


def test_a_token_asked_for_again_with_its_key_is_the_same_and_made_once(minting: World) -> None:
    first = minting.ask("session.token", name="ada", key="k")
    seq = minting.seq
    assert minting.ask("session.token", name="ada", key="k") == first
    assert minting.seq == seq
    assert _session(minting, first["token"]) == "ada"


def test_a_repeated_request_brings_no_dead_token_back(minting: World) -> None:
    old = minting.ask("session.token", name="ada", key="old")["token"]
    new = minting.ask("session.token", name="ada", key="new")["token"]
    assert minting.ask("session.token", name="ada", key="old")["token"] == old
    assert _session(minting, new) == "ada"
    with pytest.raises(Unknown):
        _session(minting, old)


def test_the_key_of_one_token_is_refused_for_another(minting: World) -> None:
    minting.ask("session.token", name="ada", key="k")
    with pytest.raises(Reused):
        minting.ask("session.token", name="bob", key="k")


def test_no_token_is_kept_even_under_a_key(minting: World, tmp_path: Path) -> None:
    token = minting.ask("session.token", name="ada", key="k")["token"]
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert kept == []
    assert any(path.is_file() for path in tmp_path.rglob("*"))


def test_two_tokens_without_a_key_differ(minting: World) -> None:
    first = minting.ask("session.token", name="ada")["token"]
    assert minting.ask("session.token", name="ada")["token"] != first
