"""Nobody is kept out: axe finds no serious fault in any view, dark or light, on a desk or on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.page.browser import AXE, DESK, PHONE, Complaints, Site, Theme, installed, wait_for_page
from tests.page.conftest import Visit
from tests.page.stage import Stage, play_all, stage

pytestmark = pytest.mark.xdist_group("page-stage")
GRAVE = ("serious", "critical")
Opens = Callable[[Page], None]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("stage")) as made:
        play_all(made)
        yield made


@pytest.fixture(scope="module")
def site(played: Stage, browser: Browser) -> Site:
    return Site(played.line, browser)


@pytest.fixture(scope="module")
def windows(site: Site) -> Iterator[Callable[..., Page]]:
    """Return a function that gives the window of a look, the same for all views: a person does not reload either."""
    complaints, opened = Complaints(), dict[str, Page]()
    with ExitStack() as stack:

        def window(theme: Theme, look: dict[str, Any]) -> Page:
            name = f"{theme} {look}"
            if name not in opened:
                context = site.context(complaints, theme=theme, **look)
                stack.callback(context.close)
                opened[name] = context.new_page()
                opened[name].goto("/")
                wait_for_page(opened[name])
            return opened[name]

        yield window
    assert complaints.open == []


def faults(page: Page) -> list[str]:
    """Return what axe finds grave on the page as it is now, each with where it is."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(installed(AXE).read_text())  # not by a script tag, which the page's policy forbids
    found: list[dict[str, Any]] = page.evaluate(
        "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
    )
    return [
        f"{fault['impact']} {fault['id']}: {node['target']} {node['html'][:200]} {node['failureSummary'][:300]}"
        for fault in found
        if fault["impact"] in GRAVE
        for node in fault["nodes"][:3]
    ]


def settle(page: Page) -> None:
    """Wait until the view is there and nothing fades in any more, since axe judges colours as they are."""
    page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    page.wait_for_function("() => !document.querySelector('main .loading, main [aria-busy=true]')")
    page.evaluate(
        """() => Promise.allSettled(document.getAnimations()
             .filter((each) => each.effect.getComputedTiming().iterations !== Infinity).map((each) => each.finished))"""
    )


def _shows(selector: str) -> Opens:
    return lambda page: page.locator(selector).first.wait_for()


def _press(keys: str) -> Opens:
    def opens(page: Page) -> None:
        settle(page)
        page.keyboard.press(keys)
        page.get_by_role("dialog").wait_for()

    return opens


NAMES = ("board", "inbox", "sessions", "review", "queue", "timeline", "mail", "leases", "costs")
VIEWS: dict[str, tuple[str, Opens]] = {name: (name, settle) for name in NAMES} | {
    "a card": ("board/{Print receipts that add up}", _shows(".card")),
    "a review": ("review/{Take the right sum off}", _shows(".line, .pair")),
    "two reviews": ("review/{Take the right sum off},{Give each cart its own lines}", _shows(".line, .pair")),
    "a session": ("sessions/hana", _shows("[role=log]")),
    "a terminal": ("sessions/pia", _shows(".xterm-rows")),
    "landings": ("queue/landings", settle),
    "overlap": ("queue/overlap", settle),
    "the palette": ("board", _press("Control+k")),
    "the keys": ("board", _press("?")),
    "a new task": ("board", _press("Shift+N")),
    "new sessions": ("sessions", _press("Shift+A")),
    "a session to remove": ("sessions/hana", _press("Delete")),
}
"""Where each is, with tasks by their titles, and what is done there before one looks."""
LOOKS: list[Any] = [
    pytest.param("dark", DESK, id="dark desk"),
    pytest.param("light", PHONE, id="light phone"),
    pytest.param("light", DESK, id="light desk", marks=pytest.mark.soak),
    pytest.param("dark", PHONE, id="dark phone", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("theme", "look"), LOOKS)
@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing_grave(
    played: Stage, windows: Callable[..., Page], name: str, theme: Theme, look: dict[str, Any]
) -> None:
    place, opens = VIEWS[name]
    path = re.sub(r"\{(.*?)\}", lambda title: played.tasks[title[1]], place)
    page = windows(theme, look)
    page.goto(f"/#/{path}")
    opens(page)
    settle(page)
    found = faults(page)
    for _ in range(page.get_by_role("dialog").count()):
        page.keyboard.press("Escape")
    assert not found, "\n".join(found)


def test_axe_would_find_what_is_grave(visit: Visit) -> None:
    page = visit()
    page.evaluate("() => document.body.append(document.createElement('button'))")
    assert any("button-name" in fault for fault in faults(page))
