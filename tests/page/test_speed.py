"""Ten thousand tasks: only what can be seen is drawn, and nothing piles up however much happens."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from bench.page import edit_much, heap, scroll, wait_for_whole
from bench.project import Daemon
from covey.git import project as projects
from tests.page.browser import PHONE, Site, wait_for_page, wait_until_told
from tests.page.conftest import Visit

pytestmark = pytest.mark.xdist_group("page-speed")
TASKS = 10_000
PAGE = 1000
MOST = 2500
"""Elements that a page of any size may have at once."""
COUNT = "() => document.getElementsByTagName('*').length"


@pytest.fixture(scope="module")
def settings() -> tuple[str, ...]:
    return ()


@pytest.fixture(scope="module", autouse=True)
def filled(site: Site) -> None:
    with site.line.client() as client:
        for begin in range(0, TASKS, PAGE):
            numbers = range(begin, begin + PAGE)
            rows = [{"key": f"k{n}", "title": f"Part {n} of the work", "priority": n % 5} for n in numbers]
            client.post("/api/board/import", {"tasks": rows})


@pytest.fixture
def measured(visit: Visit) -> Page:
    """Return the page with what the bench measures by."""
    page = visit("")
    page.add_init_script("window.measured = {long: []}")
    page.goto("/#/board")
    wait_for_page(page)
    wait_for_whole(page)
    return page


def test_only_what_can_be_seen_is_drawn_however_far_one_scrolls(measured: Page) -> None:
    expect(measured.get_by_text("10,000 tasks", exact=True)).to_be_visible()
    for keys in (None, "c"):
        if keys:
            measured.keyboard.press(keys)
        _, most = scroll(measured, 40)
        assert most < MOST
    measured.locator('.column[data-column="todo"] .card').first.focus()
    measured.keyboard.press("End")
    expect(measured.locator(".card", has_text="Part 9995 of the work")).to_be_visible()
    assert measured.evaluate(COUNT) < MOST


def test_the_list_draws_only_what_can_be_seen_too(measured: Page) -> None:
    measured.keyboard.press("Shift+L")
    measured.get_by_role("tree").locator(".card").first.focus()
    measured.keyboard.press("End")
    expect(measured.locator(".card", has_text="Part 9995 of the work")).to_be_visible()
    assert measured.evaluate(COUNT) < MOST
    measured.keyboard.press("Shift+L")


def test_a_search_finds_one_of_ten_thousand(measured: Page) -> None:
    measured.keyboard.press("/")
    expect(measured.locator("input:focus")).to_have_count(1)
    measured.keyboard.type("Part 7777 of")
    expect(measured.locator(".card")).to_have_count(2)  # the other one is T-7777
    expect(measured.locator(".card", has_text="Part 7777 of the work")).to_be_visible()
    measured.keyboard.press("Escape")
    expect(measured.get_by_text("10,000 tasks", exact=True)).to_be_visible()


def test_a_phone_draws_no_more_than_it_shows(visit: Visit) -> None:
    page = visit("/#/board", **PHONE)
    wait_for_whole(page)
    page.get_by_role("group", name="Column", exact=True).locator('[data-column="todo"]').click()
    expect(page.locator(".card").first).to_be_visible()
    assert page.evaluate(COUNT) < MOST


def test_one_change_draws_one_card(measured: Page, site: Site) -> None:
    first = measured.locator('.column[data-column="todo"] .card').first
    task = first.get_attribute("data-id")
    measured.evaluate(
        """() => {
          window.touched = new Set();
          new MutationObserver((all) => all.forEach(({target}) => {
            const card = (target.nodeType === 1 ? target : target.parentElement)?.closest(".card");
            if (card && !(target.parentElement ?? target).closest("time")) touched.add(card.dataset.id);
          })).observe(document.querySelector(".columns"), {subtree: true, childList: true, characterData: true});
        }"""
    )
    with site.line.client() as client:
        client.ask("PATCH", f"/api/board/{task}", {"title": "Something else"}).good()
    expect(first).to_contain_text("Something else")
    assert measured.evaluate("() => [...touched]") == [task]


def test_many_changes_leave_nothing_behind(measured: Page, site: Site) -> None:
    _keeps_nothing(measured, site, 1500)


@pytest.mark.soak
def test_an_hour_of_changes_leaves_nothing_behind(measured: Page, site: Site) -> None:
    _keeps_nothing(measured, site, 20_000)


def _keeps_nothing(page: Page, site: Site, changes: int) -> None:
    project = projects.find(site.line.root)
    running = Daemon(project, 0, site.port, project.owner_token.read_text().strip())
    ids = page.locator(".card").evaluate_all("(all) => all.map((one) => one.dataset.id)")
    edit_much(running, page, ids, changes // 5)
    before = heap(page.context, page)
    edit_much(running, page, ids, changes)
    after = heap(page.context, page)
    assert after["nodes"] - before["nodes"] < 1000
    assert after["listeners"] - before["listeners"] < 200
    assert after["heap"] - before["heap"] < 5, "MiB more than before"


def test_the_stream_is_opened_while_the_rest_of_the_page_is_on_its_way(visit: Visit) -> None:
    page = visit("")
    late: list[Route] = []

    def keep(route: Route) -> None:
        late.append(route)

    page.route("**/js/views/board.js", keep)
    with page.expect_request("**/api/events?*"):
        page.goto("/#/board", wait_until="commit")
    wait_until_told(page, lambda: bool(late), "the page, which is on its way still")
    late[0].continue_()
    wait_for_page(page)
    expect(page.locator(".card").first).to_be_visible()
