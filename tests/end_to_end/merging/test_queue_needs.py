"""Work that needs other work which waits in the queue too: it lands after that or with it, however often that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.end_to_end.merging.test_queue import CHECK, _bad, _good, _landings, _settings
from tests.worlds.projects import Line
from tests.worlds.queues import Change, _commit, merges
from tests.worlds.serving import Client, wait_until


def _hand_in(line: Line, client: Client, task: str, number: int, change: Change) -> None:
    commit = _commit(line, number, change)
    client.ask("POST", f"/api/board/{task}/claim", {"session": "ann", "overlap": True}).good()
    wish = {"session": "ann", "branch": f"work/{number}", "commit": commit}
    client.ask("POST", f"/api/board/{task}/handin", wish).good()


def _last(line: Line, task: str) -> dict[str, Any]:
    return [merge for merge in merges(line) if merge["task"] == task][-1]


def test_what_needs_a_merge_that_is_rejected_waits_until_that_one_is_mended(made: Callable[..., Line]) -> None:
    line = made(_settings())
    line.up()
    with line.client() as client:
        client.ask("POST", "/api/queue/pause", {}).good()
        needed, needing = (client.post("/api/board", {"title": title})["id"] for title in ("Needed", "Needing"))
        _hand_in(line, client, needed, 0, _bad("needed"))
        _hand_in(line, client, needing, 1, _good("needing"))
        # That it needs the other is found out when it is there already.
        client.ask("POST", f"/api/merges/{needing}/drop", {}).good()
        client.ask("PATCH", f"/api/board/{needing}", {"needs": [needed]}).good()
        client.ask("POST", f"/api/merges/{needing}/retry", {}).good()
        client.ask("POST", "/api/queue/resume", {}).good()
        wait_until(lambda: _last(line, needed)["state"] == "rejected", "the rejection")
        waits = f"It needs {needed} on main first."
        wait_until(lambda: waits in " ".join(client.get(f"/api/merges/{needing}/why")["because"]), "why it waits")
        assert _last(line, needing)["state"] == "queued"
        assert line.landed() == []
        client.ask("PATCH", f"/api/board/{needed}", {"status": "todo"}).good()
        _hand_in(line, client, needed, 2, _good("needed"))
        wait_until(lambda: _last(line, needing)["state"] == "landed", "both")
    order = [merge for landing in _landings(line) for merge in landing["merges"]]
    assert order == [_last(line, needed)["id"], _last(line, needing)["id"]]
    line.assert_green(CHECK)


def test_a_mistake_in_the_settings_is_shown_with_the_status_and_the_queue(made: Callable[..., Line]) -> None:
    line = made(_settings())
    line.up()
    line.settings("[merge]\nslotz = 3\n")
    for words in (("status",), ("merge", "queue")):
        said = line.ok(*words)
        assert "covey.toml is not valid; the previous settings stay in force until it is" in said
        assert "there is no setting slotz in [merge]. Did you mean slots?" in said
