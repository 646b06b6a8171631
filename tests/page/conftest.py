"""A browser and a project for each module, and in each test pages of its own that may complain of nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import PATIENCE, PHONE, Complaints, Site, chromium, wait_for_page
from tests.worlds.projects import GOOD, SCRIPTED, make_line

Visit = Callable[..., Page]
_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether a test failed, for what is kept of it."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield a browser; no longer than a module, since asyncio of other tests cannot live beside it."""
    expect.set_options(timeout=PATIENCE)
    with chromium(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def settings() -> tuple[str, ...]:
    """Return the settings of the module's project; a module may have its own."""
    return SCRIPTED, GOOD


@pytest.fixture(scope="module")
def site(browser: Browser, settings: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a project of the module's own, with its daemon."""
    line = make_line(tmp_path_factory.mktemp("site") / "line", *settings)
    try:
        line.up()
        yield Site(line, browser)
    finally:
        line.end()


@pytest.fixture
def complaints() -> Complaints:
    """Return the list of what the test's browsers complain of, of which it may forgive some."""
    return Complaints()


@pytest.fixture
def visit(site: Site, complaints: Complaints, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Visit]:
    """Return a function that opens the page in a browser of its own; at the end none may have complained."""
    pages: list[Page] = []
    with ExitStack() as stack:

        def go(path: str = "/", **more: Any) -> Page:
            context = site.context(complaints, **more)
            stack.callback(context.close)
            pages.append(context.new_page())
            if path:
                pages[-1].goto(path)
                wait_for_page(pages[-1])
            return pages[-1]

        yield go
        if request.node.stash.get(_FAILED, False):
            for number, page in enumerate(pages):
                page.screenshot(path=tmp_path / f"page-{number}.png")
                (tmp_path / f"page-{number}.html").write_text(page.content())
    assert complaints.open == []


@pytest.fixture
def desk(visit: Visit) -> Page:
    """Return the page on a desk."""
    return visit()


@pytest.fixture
def phone(visit: Visit) -> Page:
    """Return the page on a phone."""
    return visit(**PHONE)
