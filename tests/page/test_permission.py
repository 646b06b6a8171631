"""A real agent wants to do what it may not do unasked; a person lets it from the page, and it goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.model.environment import World, scripted_world
from tests.model.script import Shell, Step
from tests.page.browser import PHONE, Site
from tests.page.conftest import Visit
from tests.worlds.real_projects import add, at_once, begin, lands, real_line

pytestmark = pytest.mark.xdist_group("page-permission")
FIRST, SECOND = (f"python3 -c \"print('forty' + '-{number}')\"" for number in ("two", "three"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with scripted_world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture(scope="module")
def site(world: World, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    line = real_line(tmp_path_factory.mktemp("project"), world, "[watch]\nbackoff = 0.2\n")
    try:
        line.up()
        yield Site(line, browser)
    finally:
        line.end()


def test_permissions_are_given_with_a_key_and_with_a_thumb_and_the_agent_goes_on(
    site: Site, world: World, visit: Visit
) -> None:
    steps = [Step(do=(Shell(FIRST),)), Step(do=(Shell(SECOND),)), at_once("one.txt"), Step(text="Done.")]
    task = add(site.line, "One", world.model.add("one", steps))
    begin(site.line)
    desk = visit("/#/board")
    expect(asked(desk, FIRST)).to_contain_text("wants to run")
    desk.keyboard.press("1")
    expect(asked(desk, FIRST)).to_have_count(0)
    phone = visit("/#/inbox", **PHONE)
    item = asked(phone, SECOND)
    expect(item.get_by_role("button")).to_have_count(5)
    expect(item).to_contain_text("“python3 -c” for good would allow any program")
    item.get_by_role("button", name="Allow all such").tap()
    expect(item).to_have_count(0)
    lands(site.line, task)
    with site.line.client() as client:
        decided = [(each["about"], each["decision"]) for each in client.get("/api/questions?limit=100")]
        (permit,) = client.get("/api/permits")
    assert decided == [(FIRST, "allow"), (SECOND, "always")]
    assert permit["about"] == "python3 -c"


def asked(page: Page, command: str) -> Locator:
    """Return the item of the inbox that shows a command."""
    return page.locator(".ask", has=page.locator("pre", has_text=command))
