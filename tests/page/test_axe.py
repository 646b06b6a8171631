"""Nobody is kept out: no view has a grave fault, thumbs hit what they aim at, and only what needs a person moves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import AXE, DESK, PHONE, Complaints, Site, Theme, installed, wait_for_page, wait_for_view
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


def misfits(page: Page) -> list[str]:
    """Return what does not fit a phone: what is wider than it, is cut off below, names keys, or is too small to tap."""
    return list(page.evaluate(_MISFITS, TAP))


TAP = 40
"""Pixels that a thumb needs in either direction; lines of code are denser, and can be tapped anywhere."""
_MISFITS = """(least) => {
  const found = [];
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) found.push(`wider by ${wide}`);
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const box = text.parentElement.closest(".tile, .card, [data-row]");
    if (!box || !text.data.trim() || !box.checkVisibility() || getComputedStyle(box).overflowY !== "hidden") continue;
    const range = document.createRange();
    range.selectNode(text);
    const below = range.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom;
    const clamped = getComputedStyle(text.parentElement).webkitLineClamp !== "none";
    if (below > 0 && !clamped) found.push(`${box.className} cuts "${text.data.slice(0, 40)}" off by ${below}`);
  }
  const keys = [...document.querySelectorAll("kbd")].filter((key) => key.checkVisibility());
  found.push(...keys.map((key) => `names the key ${key.textContent}`));
  for (const each of document.querySelectorAll("button, a[href], input, select, textarea, summary, [role=option]")) {
    if (each.closest(".xterm, .skip, .unseen") || each.matches(".line-number")) continue;
    if (!each.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (each.matches("a") && getComputedStyle(each).display === "inline") continue; // a word of a sentence
    const target = each.matches("[type=checkbox]") ? each.closest("label") ?? each : each;
    const { left, right, top, bottom, width, height } = target.getBoundingClientRect();
    const shown = right > 0 && left < innerWidth && bottom > 0 && top < innerHeight;
    if (!shown || (width >= least && height >= least)) continue;
    const name = each.getAttribute("aria-label") ?? each.textContent;
    found.push(`${each.tagName} .${each.className} ${width}x${height}: ${name.trim().slice(0, 40)}`);
  }
  return found;
}"""


def restless(page: Page) -> list[str]:
    """Return what moves though it does not need a person, or in a rhythm of its own."""
    return list(page.evaluate(_RESTLESS))


_RESTLESS = """async () => {
  const found = [];
  const moving = document.getAnimations();
  const isOff = (each) => each.animationName && each.playState === "running" && each.startTime !== 0;
  const off = () => moving.filter(isOff);
  for (let frames = 0; frames < 20 && off().length; frames++) await new Promise(requestAnimationFrame); // new ones join
  for (const each of moving) {
    const { duration } = each.effect.getTiming();
    const target = each.effect.target;
    if (each.animationName !== "pulse" || !target.closest(".state-needs")) found.push(`moves: .${target.className}`);
    else if (duration !== 2400) found.push(`in a rhythm of its own: ${duration}`);
  }
  found.push(...off().map((each) => `out of step: ${each.startTime}`));
  for (const each of document.querySelectorAll("body *")) {
    const { transitionDuration, scrollBehavior } = getComputedStyle(each);
    const still = transitionDuration === "0s" && scrollBehavior === "auto";
    if (!still) found.push(`${each.tagName} .${each.className}: ${transitionDuration}, ${scrollBehavior}`);
  }
  return found;
}"""


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


def _lists(page: Page) -> None:
    page.get_by_role("button", name="List", exact=True).click()
    page.get_by_role("tree").locator(".card").first.wait_for()


NAMES = ("board", "inbox", "sessions", "review", "queue", "timeline", "mail", "leases", "costs", "settings")
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
    "the list": ("board", _lists),  # the last one: a browser remembers it
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
def test_a_view_keeps_nobody_out_and_nobody_restless(
    played: Stage, windows: Callable[..., Page], name: str, theme: Theme, look: dict[str, Any]
) -> None:
    place, opens = VIEWS[name]
    path = re.sub(r"\{(.*?)\}", lambda title: played.tasks[title[1]], place)
    page = windows(theme, look)
    page.goto(f"/#/{path}")
    wait_for_view(page, path.partition("/")[0])
    opens(page)
    settle(page)
    found = [*faults(page), *restless(page), *(misfits(page) if look == PHONE and name != "the keys" else ())]
    for _ in range(page.get_by_role("dialog").count()):
        page.keyboard.press("Escape")
    assert not found, "\n".join(found)


def test_what_is_grave_too_small_or_moves_would_be_found(visit: Visit) -> None:
    page = visit(**PHONE)
    page.evaluate("() => document.body.prepend(document.createElement('button'))")
    page.evaluate("() => document.querySelector('.brand').animate({opacity: [0, 1]}, {duration: 600_000})")
    assert any("button-name" in fault for fault in faults(page))
    assert any("BUTTON" in fault for fault in misfits(page))
    assert any("brand" in fault for fault in restless(page))


def test_tiles_on_a_low_phone_are_scrolled_and_not_squeezed(visit: Visit) -> None:
    page = visit("/#/sessions", **PHONE | {"size": (390, 500)})
    expect(page.locator(".tile")).not_to_have_count(0)
    settle(page)
    assert misfits(page) == []


def test_nothing_moves_for_who_wants_no_motion(windows: Callable[..., Page]) -> None:
    page = windows("dark", DESK | {"reduced_motion": "reduce"})
    for name in NAMES:
        page.goto(f"/#/{name}")
        wait_for_view(page, name)
        expect(page.locator(".state-needs")).not_to_have_count(0)  # which would move otherwise
        settle(page)
        moving = "() => document.getAnimations().filter((each) => each.playState === 'running').length"
        assert (name, page.evaluate(moving), restless(page)) == (name, 0, [])
