"""A phone joins over TLS with what its camera reads, once, and shows what needs its owner first."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import PHONE, Complaints, Site, wait_for_page, wait_for_view
from tests.page.conftest import Visit
from tests.worlds.projects import GOOD, SCRIPTED, make_line

pytestmark = pytest.mark.xdist_group("page-phone")
UNKNOWN = "This browser does not know this project yet"


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = make_line(tmp_path_factory.mktemp("site") / "line", SCRIPTED, GOOD)
    try:
        line.ok("up", "--bind", f"127.0.0.1:{port}", "--name", f"pocket.localhost:{port}")
        yield Site(line, browser)
    finally:
        line.end()


def stranger(visit: Visit) -> Page:
    return visit("", joined=False, ignore_https_errors=True, **PHONE)


def test_the_code_that_a_camera_reads_works_once(site: Site, visit: Visit, complaints: Complaints) -> None:
    told = site.line.json("open", "--phone")
    assert told["url"].startswith("https://pocket.localhost:")
    assert told["fingerprint"]
    phone = stranger(visit)
    phone.goto(told["url"])
    wait_for_page(phone)
    expect(phone.get_by_role("main", name="Inbox")).to_be_visible()
    assert "code" not in phone.evaluate("() => location.href")
    assert phone.context.cookies() == []
    complaints.forgive(r"Failed to load resource.*40[13]")
    other = stranger(visit)
    other.goto(told["url"])
    expect(other.get_by_text(UNKNOWN)).to_be_visible()


def test_a_desk_shows_the_code_for_a_phone(site: Site, visit: Visit) -> None:
    desk = visit()
    desk.get_by_role("button", name="Menu").click()
    desk.get_by_role("button", name="phone").first.click()
    dialog = desk.get_by_role("dialog")
    expect(dialog.locator("svg").first).to_be_visible()
    expect(dialog.get_by_role("textbox")).to_have_value(re.compile("^https:.*#code="))


def test_a_phone_shows_cards_before_terminals(site: Site, visit: Visit) -> None:
    phone = visit("/#/sessions", **PHONE)
    wait_for_view(phone, "sessions")
    assert phone.locator(".xterm").count() == 0
    wide = phone.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


def test_a_phone_begins_with_the_first_column_that_gets_a_task(site: Site, visit: Visit) -> None:
    phone = visit("/#/board", **PHONE)
    chosen = phone.get_by_role("group", name="Column").locator("[aria-pressed=true]")
    expect(chosen).to_have_text("Doing 0")
    site.line.ok("task", "add", "Wait", "--assignee", "nobody")
    expect(chosen).to_have_text("To do 1")
    site.line.ok("task", "add", "Plan", "--status", "backlog")
    expect(phone.get_by_role("group", name="Column").get_by_text("Backlog 1")).to_be_visible()
    expect(chosen).to_have_text("To do 1")
