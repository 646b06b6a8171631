"""`python scripts/screenshots.py [--out FOLDER] [VIEW...]`: show the page at work, dark, light and on a phone.

Every picture is of a real run: a project, its daemon, and scripted agents that it started (tests/page/stage.py).
`--matrix FOLDER` takes every view at three widths with 0, 3 and 300 tasks, and sheets of them, to judge the page by.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # a script, not a part of the package: what it shares with the tests is beside it

from playwright.sync_api import Browser, Page  # noqa: E402

from scripts.screenshot_matrix import take_matrix  # noqa: E402
from tests.page.boards import BOARDS  # noqa: E402
from tests.page.browser import Complaints, Site, Theme, chromium, wait_for_page  # noqa: E402
from tests.page.stage import Stage, play_all, stage  # noqa: E402

IMAGES = ROOT / "docs" / "images"
DESK: dict[str, Any] = {"size": (1440, 900), "device_scale_factor": 1}
PHONE: dict[str, Any] = {"size": (390, 844), "touch": True, "device_scale_factor": 2}
LETTERS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  {aliases}
</fontconfig>
"""
ALIAS = (
    '<match><test name="family"><string>{of}</string></test><edit name="family" mode="prepend" binding="strong">'
    "<string>{to}</string></edit></match>"
)
FONTS = {"sans-serif": "Inter", "system-ui": "Inter", "monospace": "JetBrains Mono", "ui-monospace": "JetBrains Mono"}
"""The letters of the pictures, whatever the machine has by itself."""

Shown = Callable[[Page, Stage], None]


def main(argv: list[str] | None = None) -> int:
    """Play the stage and take the pictures."""
    parser = argparse.ArgumentParser(description="Take pictures of the page at work.")
    parser.add_argument("views", nargs="*", metavar="VIEW", help=f"some of: {', '.join(VIEWS)}")
    parser.add_argument("--out", type=Path, default=IMAGES, help="where they go")
    parser.add_argument("--matrix", type=Path, metavar="FOLDER", help="every view, width, size of board and theme")
    parser.add_argument("--tasks", type=int, choices=BOARDS, action="append", help="of the matrix, this board alone")
    words = parser.parse_args(argv)
    unknown = set(words.views) - set(VIEWS)
    if unknown and not words.matrix:
        parser.error(f"there is no view {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="covey-screenshots-") as folder, _browser(Path(folder)) as browser:
        if words.matrix:
            complaints = take_matrix(browser, words.matrix, words.tasks or list(BOARDS), words.views)
        else:
            complaints = _take_all(browser, Path(folder), words.out, words.views or list(VIEWS))
    for told in complaints:
        print(f"The page complained: {told}", file=sys.stderr)
    return 1 if complaints else 0


@contextmanager
def _browser(folder: Path) -> Iterator[Browser]:
    home = folder / "browser"
    home.mkdir()
    os.environ["FONTCONFIG_FILE"] = str(_letters(home))
    with chromium(home) as browser:
        yield browser


def _take_all(browser: Browser, folder: Path, out: Path, names: list[str]) -> list[str]:
    out.mkdir(parents=True, exist_ok=True)
    complaints = Complaints()
    with stage(folder) as playing:
        play_all(playing)
        site = Site(playing.line, browser)
        for name in names:
            _take(site, playing, complaints, name, out)
    return complaints.open


def _letters(home: Path) -> Path:
    path = home / "fonts.conf"
    aliases = "\n  ".join(ALIAS.format(of=of, to=to) for of, to in FONTS.items())
    path.write_text(LETTERS.format(aliases=aliases))
    return path


def _take(site: Site, playing: Stage, complaints: Complaints, name: str, out: Path) -> None:
    looks: list[tuple[str, Theme, dict[str, Any]]] = [("dark", "dark", DESK)]
    if name not in ONCE:
        looks += [("light", "light", DESK), ("phone", "dark", PHONE)]
    for look, theme, size in looks:
        context = site.context(complaints, theme=theme, **size)
        page = context.new_page()
        page.goto(f"/#/{name.partition('-')[0]}")
        wait_for_page(page)
        VIEWS[name](page, playing)
        page.wait_for_timeout(700)  # for what moves to stand still, and for terminals to draw
        path = out / f"{name}-{look}.png"
        page.screenshot(path=path)
        print(os.path.relpath(path))
        context.close()


# What is done in a view before its picture is taken


def _shows(selector: str) -> Shown:
    return lambda page, playing: page.locator(selector).first.wait_for()


def _terminals(page: Page, playing: Stage) -> None:
    if page.viewport_size and page.viewport_size["width"] > 760:  # a phone shows cards before terminals
        page.locator(".xterm-rows").first.wait_for()


def _review(page: Page, playing: Stage) -> None:
    """Show work with a comment that waits to be sent."""
    task = playing.tasks["Take the right sum off"]
    page.goto(f"/#/review/{task}")
    page.locator(".line, .pair").first.wait_for()
    if not playing.ask("GET", f"/api/comments?task={task}"):
        line = page.locator(".line.plus", has_text="max(0").first
        line.get_by_role("button").last.click()
        page.keyboard.type("Good. Please say in the docstring who pays the cent that is left.")
        page.keyboard.press("Control+Enter")
    page.locator(".remark").first.wait_for()


def _open(what: str, selector: str) -> Shown:
    def shown(page: Page, playing: Stage) -> None:
        page.goto(f"/#/{what}")
        page.locator(selector).first.wait_for()

    return shown


def _compact(page: Page, playing: Stage) -> None:
    page.locator(".card").first.wait_for()
    page.keyboard.press("c")


def _palette(page: Page, playing: Stage) -> None:
    page.locator(".card").first.wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("re")


VIEWS: dict[str, Shown] = {
    "board": _shows(".card"),
    "board-compact": _compact,
    "board-palette": _palette,
    "inbox": _shows(".ask"),
    "sessions": _terminals,
    "sessions-transcript": _open("sessions/hana", "[role=log] li"),
    "sessions-terminal": _open("sessions/pia", ".xterm-rows"),
    "review": _review,
    "queue": _shows(".merges"),
    "timeline": _shows("main button"),
    "mail": _shows("main li, main article"),
    "leases": _shows("main li, main tr"),
    "costs": _shows("main svg"),
}
"""What there is to see, by the names of the pictures; the first word is the view."""
ONCE = ("board-compact", "board-palette", "sessions-transcript")
"""What looks alike elsewhere: one picture will do."""


if __name__ == "__main__":
    sys.exit(main())
