"""Every view of the page, at every width, with every size of board, dark and light, and sheets to look at them all."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from tests.page.boards import BOARDS
from tests.page.browser import Complaints, Site, Theme, wait_for_page
from tests.page.stage import Stage, stage

WIDTHS: dict[int, dict[str, Any]] = {
    1440: {"size": (1440, 900)},
    1920: {"size": (1920, 1080)},
    390: {"size": (390, 844), "touch": True, "device_scale_factor": 2},
}
PLACES = ("board", "inbox", "sessions", "review", "queue", "timeline", "mail", "leases", "costs", "settings")
THEMES: tuple[Theme, ...] = ("dark", "light")
STILL_MS = 700
"""Milliseconds for what moves to stand still."""
TERMINALS_MS = 3000
"""Milliseconds for many terminals and transcripts to come."""
SHEET_HEIGHT = 560
"""Pixels that a picture is high on a sheet."""
SHEET = """\
<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>
  body {{ margin: 0; padding: 16px; background: #888; font: 20px sans-serif; width: max-content }}
  div {{ display: flex; gap: 16px; margin-top: 16px }}
  img {{ height: {height}px; display: block }}
</style>
<h1>{title}</h1>
{rows}
"""


@dataclass(frozen=True)
class View:
    """One address of the page, and what must be there before its picture is taken."""

    name: str
    address: str
    wanted: str = "main"
    still_ms: int = STILL_MS


def take_matrix(browser: Browser, folder: Path, boards: list[int], names: list[str]) -> list[str]:
    """Take all pictures into a folder, a part of it for each board, and return what the page complained of."""
    complaints = Complaints()
    for tasks in boards:
        with tempfile.TemporaryDirectory(prefix="covey-screenshots-") as home, stage(Path(home)) as playing:
            BOARDS[tasks](playing)
            _take_board(Site(playing.line, browser), playing, complaints, folder / f"{tasks}-tasks", names)
        _sheets(browser, folder, tasks)
    return complaints.open


def _take_board(site: Site, playing: Stage, complaints: Complaints, folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    views = [view for view in _views(playing) if not names or view.name in names]
    for width, look in WIDTHS.items():
        for theme in THEMES:
            context = site.context(complaints, theme=theme, **look)
            page = context.new_page()
            page.goto("/")
            wait_for_page(page)
            for view in views:
                _show(page, view)
                page.screenshot(path=folder / f"{view.name}-{width}-{theme}.png")
            context.close()
        print(f"{os.path.relpath(folder)}: {len(views) * len(THEMES)} pictures at {width}")


def _show(page: Page, view: View) -> None:
    page.goto(f"/#/{view.address}")
    page.locator("main .loading").first.wait_for(state="detached")
    page.locator(view.wanted).first.wait_for()
    page.wait_for_timeout(view.still_ms)


def _views(playing: Stage) -> Iterator[View]:
    """Return what there is to see: every place, and what one opens there, if the board has it."""
    sessions = {name for name, session in playing.line.sessions().items() if session["kind"] == "run"}
    work = [task for task in playing.line.board().values() if task["status"] == "review"]
    for place in PLACES:
        yield View(place, place, still_ms=TERMINALS_MS if place == "sessions" and sessions else STILL_MS)
    for name in [name for name in ("hana", "cleo") if name in sessions][:1]:
        yield View("sessions-one", f"sessions/{name}", "[role=log] li")
    if "pia" in sessions:
        yield View("sessions-terminal", "sessions/pia", ".xterm-rows", TERMINALS_MS)
    for task in work[:1]:
        yield View("review-one", f"review/{task['id']}", ".line, .pair")
    for part in ("landings", "overlap"):
        yield View(f"queue-{part}", f"queue/{part}")


def _sheets(browser: Browser, folder: Path, tasks: int) -> None:
    """Put the pictures of one view and one board side by side, for a person to look at."""
    pictures = (folder / f"{tasks}-tasks").resolve()
    sheets = folder / "sheets"
    sheets.mkdir(exist_ok=True)
    names = sorted({path.stem.rsplit("-", 2)[0] for path in pictures.glob("*.png")})
    page = browser.new_page()
    for name in names:
        written = sheets.resolve() / f"{name}-{tasks}-tasks.html"
        written.write_text(_sheet(pictures, name, f"{name}, {tasks} tasks"))
        page.goto(written.as_uri())
        page.screenshot(path=written.with_suffix(".png"), full_page=True)
        written.unlink()
    page.close()


def _sheet(pictures: Path, name: str, title: str) -> str:
    paths = [[pictures / f"{name}-{width}-{theme}.png" for width in WIDTHS] for theme in THEMES]
    rows = ["".join(f'<img src="{html.escape(path.as_uri())}">' for path in row if path.exists()) for row in paths]
    return SHEET.format(
        title=html.escape(title), height=SHEET_HEIGHT, rows="".join(f"<div>{row}</div>" for row in rows)
    )
