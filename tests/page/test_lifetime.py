"""A page keeps the daemon of a run, and says in words how one ended and how to go on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.page.browser import DESK, PHONE, Complaints, Site
from tests.page.conftest import Visit
from tests.worlds.projects import GOOD, SCRIPTED, Line, alive, make_line
from tests.worlds.serving import wait_until


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """Yield a project without a daemon."""
    made = make_line(tmp_path_factory.mktemp("site") / "line", SCRIPTED, GOOD)
    yield made
    made.end()


@pytest.fixture(scope="module")
def site(line: Line, browser: Browser) -> Site:
    return Site(line, browser)


def _body(line: Line, name: str) -> str:
    steps = (f"run touch {line.mark(f'{name}-at-work')}", f"wait for {line.mark(f'{name}-go')}")
    return "\n".join((*steps, f"write {name}", "    x", f"commit {name}", ""))


def test_a_page_keeps_the_daemon_of_a_run_and_says_how_one_ended(
    line: Line, visit: Visit, complaints: Complaints
) -> None:
    complaints.forgive(r"ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED|CONNECTION_RESET|EMPTY_RESPONSE|SOCKET_NOT_CONN)")
    running = line.begin("run", line.tasks({"title": "One", "body": _body(line, "one")}))
    wait_until(line.mark("one-at-work").exists, "the agent")
    daemon = int(json.loads((line.state / "daemon.json").read_text())["pid"])
    page = visit("/#/board", **DESK)
    line.mark("one-go").touch()
    said, _ = running.communicate(timeout=120)
    assert "covey stays up for an open page; covey down stops it." in said, said
    assert alive(daemon)
    expect(page.locator(".link-live")).to_be_visible()
    phone = visit("/#/board", **PHONE)
    line.ok("task", "add", "Two", "--body", _body(line, "two"))
    line.start_session("ada")
    wait_until(line.mark("two-at-work").exists, "the agent")
    line.ok("down")
    for each in (page, phone):
        banner = each.locator(".banner.calm")
        expect(banner).to_contain_text("covey was stopped")
        expect(each.locator(".link-stopped")).to_be_attached()
        expect(banner).to_contain_text("1 agent works on without it. Type covey up in the repository to go on")
    line.up()
    line.mark("two-go").touch()
    for each in (page, phone):
        expect(each.locator(".link-live")).to_be_attached()
        expect(each.locator(".banner")).to_have_count(0)
    line.wait_for("T-2", "done")
    line.ok("session", "remove", "ada")
    line.ok("down")
