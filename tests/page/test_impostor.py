"""A tab that is open while somebody else takes the port of the daemon: they learn nothing, and are not believed."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.daemon.test_impostors import impostor
from tests.page.browser import Complaints, Site, connection, wait_for_page
from tests.page.conftest import Visit
from tests.worlds.projects import alive, kill
from tests.worlds.serving import wait_until

QUESTIONS = 3
"""How often the page has to have asked before we believe that it goes on so."""


def questions(heard: list[bytes]) -> int:
    """Return how often somebody was asked to prove who they are."""
    return b"".join(heard).count(b"GET /api/proof?")


@pytest.mark.parametrize("place", ["/#/board", "/#/sessions"])
def test_an_open_tab_sends_no_key_to_who_takes_the_port_and_goes_on_with_the_true_daemon(
    site: Site, visit: Visit, complaints: Complaints, place: str
) -> None:
    complaints.forgive(r".*")  # whoever took the port says what it likes
    page = visit(place)
    wait_until(lambda: connection(page) == "live", "the stream")
    key = str(page.evaluate("async () => (await import('/js/data/api.js')).key()"))
    secret = str(page.evaluate("() => JSON.parse(localStorage['covey.device']).secret"))
    port = site.port
    pid = json.loads((site.line.state / "daemon.json").read_text())["pid"]
    kill([pid])
    wait_until(lambda: not alive(pid), "its end")
    with impostor(port) as stranger:
        wait_until(lambda: questions(stranger.heard) >= QUESTIONS, "the page asks who it is")
        assert connection(page) == "lost"
        # What was sent in the very moment of the kill is worth nothing to anybody since then.
        before = len(stranger.heard)
        wait_until(lambda: questions(stranger.heard[before:]) >= QUESTIONS, "the page goes on asking")
        assert not [each for each in stranger.heard[before:] if key.encode() in each]
        assert secret.encode() not in stranger.all and b"cookie" not in stranger.all.lower()
    site.line.up()
    expect(page.get_by_text("does not answer")).to_have_count(0)
    wait_until(lambda: connection(page) == "live", "the page goes on by itself")
    assert page.evaluate("async () => (await import('/js/data/api.js')).key()") != key
    told = "key => fetch('/api/status', {headers: {'covey-key': key}}).then(answer => answer.status)"
    assert page.evaluate(told, key) == 401
    page.reload()
    wait_for_page(page)
    assert json.loads(str(page.evaluate("() => localStorage['covey.device']")))["secret"] == secret
