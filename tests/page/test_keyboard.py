"""Everything by keyboard: every view has its key, every command its name, and the focus is never lost or caught."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import Site, press_chord, wait_for_view
from tests.page.stage import Stage, play_all, stage
from tests.worlds.serving import wait_until

pytestmark = pytest.mark.xdist_group("page-keyboard")
KEYS = {
    "b": "Board", "i": "Inbox", "s": "Sessions", "r": "Review", "q": "Merge queue", "t": "Timeline",
    "m": "Mail", "l": "Leases", "c": "Costs",
}  # fmt: skip
FOCUS = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const name = one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.[0]?.textContent || one.title;
  one.dataset.reached ??= String((window.reached = (window.reached ?? 0) + 1));
  return {number: one.dataset.reached, html: one.outerHTML.slice(0, 120), name: name.slice(0, 60),
          marked: ring || style.boxShadow !== "none" || one.matches(".card, .ask, [role=listbox]")};
}"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("stage")) as made:
        play_all(made)
        yield made


@pytest.fixture(scope="module")
def site(played: Stage, browser: Browser) -> Site:
    return Site(played.line, browser)


def go(page: Page, keys: str) -> None:
    for key in keys.split():
        page.keyboard.press(key)


def test_every_view_has_its_key(desk: Page) -> None:
    for key, title in KEYS.items():
        press_chord(desk, "g", key)
        expect(desk.get_by_role("main", name=title)).to_be_visible()
        expect(desk).to_have_title(re.compile(f"^(\\(\\d+\\) )?{title}"))


def test_a_busy_page_hears_two_keys_as_they_were_pressed(desk: Page) -> None:
    expect(desk.get_by_role("main", name="Board")).to_be_visible()
    busy = """() => document.addEventListener("keydown", (event) => {
      for (const end = performance.now() + 3000; event.key === "t" && performance.now() < end;) continue;
    }, { capture: true })"""
    desk.evaluate(busy)
    press_chord(desk, "g", "t")
    expect(desk.get_by_role("main", name="Timeline")).to_be_visible()


def test_two_keys_that_are_far_apart_are_two_keys(desk: Page) -> None:
    expect(desk.get_by_role("main", name="Board")).to_be_visible()
    press_chord(desk, "g", "t", apart_s=1.6)
    press_chord(desk, "g", "m", apart_s=1.4)
    expect(desk.get_by_role("main", name="Mail")).to_be_visible()
    desk.go_back()
    expect(desk.get_by_role("main", name="Board")).to_be_visible()


def test_every_command_has_its_name_in_the_palette(desk: Page) -> None:
    expect(desk.locator(".card", has_text="Print receipts").first).to_be_visible()  # what is known is found
    go(desk, "Control+k")
    palette = desk.get_by_role("dialog")
    palette.get_by_role("combobox").fill("timeline")
    expect(palette.get_by_role("option").first).to_contain_text("Timeline")
    go(desk, "Enter")
    expect(desk.get_by_role("main", name="Timeline")).to_be_visible()
    go(desk, "Control+k")
    palette.get_by_role("combobox").fill("Print receipts")
    expect(palette.get_by_role("option").first).to_contain_text("HANA-1")
    go(desk, "Enter")
    expect(desk).to_have_url(re.compile("HANA-1"))


def test_the_keys_are_listed(desk: Page) -> None:
    go(desk, "?")
    dialog = desk.get_by_role("dialog")
    for name in ("New task", "Pause all", "Undo", "Board"):
        expect(dialog).to_contain_text(name)
    go(desk, "Escape")
    expect(dialog).to_have_count(0)


PLACES = {
    "board": ".card", "inbox": ".ask", "sessions": ".tile", "review": ".waiting-link", "queue": ".merges",
    "timeline": ".story", "mail": ".thread-link", "leases": ".lease", "costs": ".chart", "settings": ".setting-table",
}  # fmt: skip
"""What each view has to show of the project."""


@pytest.mark.parametrize("place", PLACES)
def test_tab_goes_on_with_a_focus_that_is_seen_and_named(desk: Page, place: str) -> None:
    desk.goto(f"/#/{place}")
    wait_for_view(desk, place)
    expect(desk.get_by_role("main").locator(PLACES[place]).first).to_be_visible()
    found = []
    for _ in range(120):
        go(desk, "Tab")
        found.append(desk.evaluate(FOCUS))
        if found[-1] is None:  # past the last one the browser's own parts have the focus
            break
    reached = [each for each in found if each is not None]
    told = [(each["number"], each["html"]) for each in reached]
    assert len(set(told)) > 5
    caught = [one for one, *others in zip(told, told[1:], told[2:], strict=False) if others == [one, one]]
    assert caught == [], "Tab does not leave"
    assert [each for each in reached if not (each["name"] and each["marked"])] == []


def test_cards_are_walked_through_with_the_arrows(desk: Page, played: Stage) -> None:
    desk.goto("/#/board")
    expect(desk.locator(".card").first).to_be_visible()
    go(desk, "j")
    wait_until(lambda: desk.evaluate("() => document.activeElement.matches('.card')"), "a card with the focus")
    before = desk.evaluate("() => document.activeElement.dataset.id")
    go(desk, "ArrowDown")
    wait_until(lambda: desk.evaluate("() => document.activeElement.dataset.id") != before, "the next card")
    column = "() => document.activeElement.closest('.column')?.dataset.column"
    here = desk.evaluate(column)
    go(desk, "ArrowRight")
    wait_until(lambda: desk.evaluate(column) not in (here, None), "the next column")
    card = desk.evaluate("() => document.activeElement.dataset.id")
    go(desk, "Space")
    expect(desk.get_by_role("complementary").filter(has_text=card)).to_be_visible()
    go(desk, "Escape")
    wait_until(lambda: desk.evaluate("() => document.activeElement.dataset.id") == card, "the focus on the card again")


def test_a_dialog_gives_the_focus_back(desk: Page) -> None:
    desk.goto("/#/board")
    expect(desk.locator(".card").first).to_be_visible()
    go(desk, "j")
    wait_until(lambda: desk.evaluate("() => document.activeElement.matches('.card')"), "a card with the focus")
    before = desk.evaluate("() => document.activeElement.dataset.id")
    for keys in ("?", "Control+k", "e"):
        go(desk, keys)
        expect(desk.get_by_role("dialog")).to_be_visible()
        go(desk, "Escape")
        expect(desk.get_by_role("dialog")).to_have_count(0)
        expect(desk.locator(f'.card[data-id="{before}"]')).to_be_focused()


def test_a_diff_is_walked_through_commented_and_left_by_keyboard(desk: Page, played: Stage) -> None:
    desk.goto("/#/review")
    expect(desk.locator(".waiting-link").first).to_be_visible()
    go(desk, "j Enter")
    expect(desk.locator(".line").first).to_be_visible()
    go(desk, "]")
    expect(desk.locator(".cursor").first).to_be_visible()
    go(desk, "j j c")
    expect(desk.get_by_role("textbox", name=re.compile("Comment on"))).to_be_focused()
    desk.keyboard.type("Why?")
    go(desk, "Control+Enter")
    expect(desk.locator(".remark.is-draft", has_text="Why?").first).to_be_visible()
    expect(desk.locator("textarea")).to_have_count(0)  # the draft can be told before the field has gone
    go(desk, "s")
    expect(desk.locator(".pair").first).to_be_visible()
    go(desk, "s u")
    expect(desk.locator(".waiting-link").first).to_be_visible()


def test_a_key_works_as_soon_as_what_it_is_for_is_drawn(desk: Page) -> None:
    desk.goto("/#/review")
    expect(desk.locator(".waiting-link").first).to_be_visible()
    go(desk, "j Enter")
    expect(desk.locator(".line").first).to_be_visible()
    desk.evaluate("""() => new MutationObserver((_, watcher) => {
      if (!document.querySelector(".cursor")) return;
      watcher.disconnect();
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "c", bubbles: true, cancelable: true }));
    }).observe(document.body, { subtree: true, childList: true, attributes: true })""")
    go(desk, "]")
    expect(desk.get_by_role("textbox", name=re.compile("Comment on"))).to_be_focused()
    go(desk, "Escape")


def test_a_terminal_lets_one_out(desk: Page) -> None:
    desk.goto("/#/sessions/pia")
    expect(desk.locator(".xterm-rows")).to_contain_text("Editing")
    go(desk, "i")
    expect(desk.get_by_text("You are typing into")).to_be_visible()
    press_chord(desk, "g", "b")
    expect(desk.get_by_role("main", name="Sessions")).to_be_visible()
    go(desk, "Control+]")
    expect(desk.get_by_text("You are typing into")).to_have_count(0)
    press_chord(desk, "g", "b")
    expect(desk.get_by_role("main", name="Board")).to_be_visible()
