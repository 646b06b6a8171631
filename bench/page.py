"""The page in a real browser: from a change to the screen, while it is scrolled, at first sight, and after an hour."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import BrowserContext, Page

from bench.fanout import FILES, asking, fill
from bench.figures import Report, median
from bench.project import Daemon, daemon, sample
from covey.git.project import Project
from tests.page.browser import Complaints, Site, chromium, wait_for_page
from tests.worlds.projects import Line
from tests.worlds.shell import clean_environment

TASKS = 10_000
SESSIONS = 30
PATIENCE = 120.0
CHANGES = 200
PACE = 0.05
HOUR = 20_000
"""Changes of an hour in which 30 sessions do something every five seconds, which is more than they do."""
EDITORS = 4
LOOKS = 7
FRAME = 50.0
"""Milliseconds that nothing may keep the page busy for, and within which a change is on it."""
MOST_NODES = 4_000
_MEASURE = """
window.measured = {long: [], card: null, most: 0, seen: {}};
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) measured.long.push([entry.startTime, entry.duration]);
}).observe({type: "longtask", buffered: true});
const noteCard = new MutationObserver(() => {
  if (!document.querySelector(".card")) return;
  noteCard.disconnect();
  setTimeout(() => (measured.card = performance.now()));
});
noteCard.observe(document, {childList: true, subtree: true});
"""
_FOLLOW = """(id) => {
  new MutationObserver(() => {
    const title = document.querySelector(`[data-id="${id}"] .card-title`)?.textContent;
    if (!title || measured.seen[title]) return;
    measured.seen[title] = -1;
    setTimeout(() => (measured.seen[title] = performance.timeOrigin + performance.now())); // after it was painted
  }).observe(document.querySelector(".columns"), {childList: true, subtree: true, characterData: true});
}"""

Ask = Callable[..., Any]


@dataclass(frozen=True)
class Opened:
    """The page of a project at work, in a browser that knows it."""

    site: Site
    running: Daemon
    ask: Ask

    @contextmanager
    def look(self, place: str = "board") -> Iterator[Page]:
        """Yield the page, newly loaded."""
        context = self.site.context(Complaints())
        context.add_init_script(_MEASURE)
        page = context.new_page()
        page.goto(f"/#/{place}")
        wait_for_page(page)
        page.wait_for_selector(".card")
        yield page
        context.close()


@contextmanager
def opened(tasks: int, sessions: int) -> Iterator[Opened]:
    """Yield the page of a project with this many tasks, and sessions that print something each second."""
    with sample(tasks) as project:
        fill(project, FILES)
        home = project.root.parent / "home"
        home.mkdir()
        line = Line(project.root.parent, project.root, clean_environment(home))
        with daemon(project) as running, asking(running) as ask, chromium(home) as browser:
            try:
                _put_to_work(ask, project, sessions)
                yield Opened(Site(line, browser), running, ask)
            finally:
                (project.root.parent / "go").touch()
                for number in range(sessions):
                    ask("POST", f"/api/sessions/s{number}/remove", {"force": True})


def _put_to_work(ask: Ask, project: Project, sessions: int) -> None:
    go = project.root.parent / "go"
    script = f"run while [ ! -e {go} ]; do echo working; sleep 1; done\n"
    for number in range(sessions):
        name = f"s{number}"
        task = {"title": f"Work {number}", "body": script, "assignee": name, "priority": 1000, "kind": "report"}
        ask("POST", "/api/board", task)
        ask("POST", "/api/sessions", {"name": name, "agent": "scripted"})
        ask("POST", f"/api/sessions/{name}/start", {})
    _wait(lambda: sum(row["state"] == "working" for row in ask("GET", "/api/sessions")) == sessions, "the sessions")


def latency(*, quick: bool) -> Report:
    """Change the title of a card that is in view, again and again, and note when it is painted."""
    report = Report("page", f"From a change to the page, {SESSIONS} sessions at work, {TASKS:,} tasks")
    with opened(TASKS, SESSIONS) as page_of, page_of.look() as page:
        wait_for_whole(page)
        card = str(page.locator('[data-column="todo"] .card').first.get_attribute("data-id"))
        page.evaluate(_FOLLOW, card)
        changes = CHANGES // 4 if quick else CHANGES
        for number in range(changes):
            page_of.ask("PATCH", f"/api/board/{card}", {"title": f"Changed {number}"})
            page.wait_for_timeout(1000 * PACE)
        seen = _seen(page, changes)
        edits = page_of.ask("GET", f"/api/log?subject={card}&kind=task.edited&limit=1000&newest=true")
        committed = {event["data"]["title"]: event["time"] for event in edits if "title" in event["data"]}
        report.add_times("on the page", [seen[title] - committed[title] for title in seen], p50=FRAME)
        report.must_be_zero("changes that never came", changes - len(seen))
    return report


def _seen(page: Page, changes: int) -> dict[str, float]:
    last = f"Changed {changes - 1}"
    _wait(lambda: page.evaluate("(last) => measured.seen[last] > 0", last), "the last change")
    found: dict[str, float] = page.evaluate("() => measured.seen")
    return {title: at / 1000 for title, at in found.items() if title.startswith("Changed ")}


def scrolling(*, quick: bool) -> Report:
    """Scroll through the whole board and note every task of the main thread that takes long."""
    report = Report("scroll", f"Scrolling the board, {SESSIONS} sessions at work, {TASKS:,} tasks")
    with opened(TASKS, SESSIONS) as page_of, page_of.look() as page:
        wait_for_whole(page)
        for name in ("cards", "compact"):
            if name == "compact":
                page.keyboard.press("c")
            long, most = scroll(page, 60 if quick else 300)
            report.add(f"{name}: tasks over 50 ms", len(long), "", at_most=0)
            report.add(f"{name}: longest task", max(long, default=0.0), "ms", at_most=FRAME, note="0: none over 50 ms")
            report.add(f"{name}: most nodes at once", most, "", at_most=MOST_NODES)
    return report


def scroll(page: Page, steps: int) -> tuple[list[float], int]:
    """Turn the wheel over what is to do; return how long its long tasks took, and the most nodes that there were."""
    box = page.locator('[data-column="todo"]').bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    begun = page.evaluate("() => performance.now()")
    most = 0
    for step in range(steps):
        page.mouse.wheel(0, 900 if step % 10 else 20_000)
        page.wait_for_timeout(16)
        if step % 5 == 0:
            most = max(most, page.evaluate("() => document.getElementsByTagName('*').length"))
    found = page.evaluate("(begun) => measured.long.filter(([at]) => at >= begun).map(([, took]) => took)", begun)
    return found, most


def wait_for_whole(page: Page) -> None:
    """Wait until every task is on the page."""
    whole = "async () => (await import('/js/data/store.js')).state.loaded.whole"
    _wait(lambda: bool(page.evaluate(whole)), "the whole board")


def first_paint(*, quick: bool) -> Report:
    """Open the page in a browser that has never loaded it, and in one that has."""
    report = Report("paint", f"The first look at the page, {SESSIONS} sessions at work, {TASKS:,} tasks")
    with opened(TASKS, SESSIONS) as page_of:
        paints, cards, again = [], [], []
        for _ in range(2 if quick else LOOKS):
            with page_of.look() as page:
                paints.append(_first_contentful(page))
                cards.append(page.evaluate("() => measured.card"))
                page.reload()
                page.wait_for_selector(".card")
                _wait(lambda page=page: page.evaluate("() => measured.card") is not None, "the first card")  # type: ignore[misc]
                again.append(page.evaluate("() => measured.card"))
    report.add("first paint", median(paints), "ms", at_most=500)
    report.add("first card", median(cards), "ms", at_most=500)
    report.add("first card, loaded again", median(again), "ms", at_most=500)
    return report


def _first_contentful(page: Page) -> float:
    found = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
    return float(page.evaluate(found))


def hour(*, quick: bool) -> Report:
    """Let an hour's changes come in as fast as they can, and look at what the page keeps of them."""
    changes = HOUR // 10 if quick else HOUR
    report = Report("heap", f"The page's memory over {changes:,} changes, {TASKS:,} tasks")
    with opened(TASKS, 0) as page_of, page_of.look() as page:
        wait_for_whole(page)
        ids = [row["id"] for row in page_of.ask("GET", "/api/board?limit=200")]
        edit_much(page_of.running, page, ids, changes // 10)
        before = heap(page.context, page)
        edit_much(page_of.running, page, ids, changes)
        after = heap(page.context, page)
    report.add("heap before", before["heap"], "MiB")
    report.add("heap after", after["heap"], "MiB")
    report.add("growth", after["heap"] - before["heap"], "MiB", at_most=3)
    report.add("nodes more", after["nodes"] - before["nodes"], "", at_most=500)
    report.add("listeners more", after["listeners"] - before["listeners"], "", at_most=100)
    return report


def edit_much(running: Daemon, page: Page, ids: list[str], changes: int) -> None:
    """Change titles, several at once, as fast as the daemon takes them, and wait until the page knows them all."""
    ids = ids[: len(ids) - len(ids) % EDITORS]  # so that each is changed by one editor alone, in the order of numbers

    def work(part: int) -> None:
        with asking(running) as ask:
            for number in range(part, changes, EDITORS):
                ask("PATCH", f"/api/board/{ids[number % len(ids)]}", {"title": f"Part {number} of the sample works"})

    editors = [threading.Thread(target=work, args=(part,)) for part in range(EDITORS)]
    for editor in editors:
        editor.start()
    for editor in editors:
        editor.join()
    last = {ids[number % len(ids)]: f"Part {number} of the sample works" for number in range(changes)}
    told = """async (ids) => {
      const {tasks} = (await import("/js/data/store.js")).state;
      return ids.map((id) => tasks.get(id).title);
    }"""
    _wait(lambda: page.evaluate(told, list(last)) == list(last.values()), "the last of the changes")


def heap(context: BrowserContext, page: Page) -> dict[str, float]:
    """Return what the page keeps once its rubbish is collected: MiB, nodes and listeners."""
    page.wait_for_timeout(1000)
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
        page.wait_for_timeout(100)
    told = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return {"heap": told["JSHeapUsedSize"] / 1024**2, "nodes": told["Nodes"], "listeners": told["JSEventListeners"]}


def _wait(good: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not good():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come.")
        time.sleep(0.05)
