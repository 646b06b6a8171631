"""Debian's Chromium with the page in it: it joins as a person's browser does, and every complaint of it is noted."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, WebError, expect, sync_playwright

from tests.model.environment import CHECKOUT
from tests.worlds.projects import Line
from tests.worlds.serving import wait_until

AXE = CHECKOUT / ".cache" / "agents" / "node_modules" / "axe-core" / "axe.min.js"
NODE = CHECKOUT / ".cache" / "agents" / "node"
REBOUND = "rebound.example"
"""A name in the world's DNS that somebody has turned to this machine."""
_RULES = f"MAP {REBOUND} 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE localhost,EXCLUDE *.localhost,EXCLUDE 127.0.0.1"
_WITHOUT = (
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup",
    "AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay", "MediaRouter",
    "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch", "TcpPortRandomizationWin",
    "ThirdPartyStoragePartitioning",
)  # fmt: skip
"""What the browser does without: what drops down from its address bar, which is two pages that nobody sees and which
take longer than ours, and what playwright switches off, since of several lists Chromium obeys the last alone."""
_WATCH = """
addEventListener("securitypolicyviolation", (told) =>
  console.error(`CSP: ${told.violatedDirective} forbids ${told.blockedURI} in ${told.sourceFile}:${told.lineNumber}`));
addEventListener("unhandledrejection", (told) => console.error("unhandled:", `${told.reason?.stack ?? told.reason}`));
"""
Theme = Literal["dark", "light"]
DESK: dict[str, Any] = {"size": (1440, 900)}
PHONE: dict[str, Any] = {"size": (390, 844), "touch": True}
LANDED_MEANWHILE = r"status of 409 .*/api/board/[^/]+/conflicts\]"
"""What a browser says when work landed between the page's question what it conflicts with and the answer."""
PATIENCE = 20_000
"""Milliseconds after which what the page never shows is a failure."""


def press_chord(page: Page, first: str, second: str, apart_s: float = 0.2) -> None:
    """Press two letters one after the other, with times of their own: a machine that is busy does not part them."""
    devtools = page.context.new_cdp_session(page)
    now = time.time()
    for letter, moment in ((first, now), (second, now + apart_s)):
        key = {"key": letter, "code": f"Key{letter.upper()}", "timestamp": moment}
        devtools.send("Input.dispatchKeyEvent", {"type": "keyDown", "text": letter, **key})
        devtools.send("Input.dispatchKeyEvent", {"type": "keyUp", **key})
    devtools.detach()


def installed(path: Path) -> Path:
    """Return a file that the set-up installed; without it the test fails, it is never skipped."""
    assert path.exists(), f"{path.name} is not installed; please run: bash scripts/setup --tests"
    return path


@contextmanager
def chromium(home: Path) -> Iterator[Browser]:
    """Yield a browser with a home of its own and no way out of this machine; playwright never fetches one."""
    path = shutil.which("chromium")
    assert path is not None, "chromium is not installed; please run: bash scripts/setup --tests"
    arguments = ["--no-sandbox", f"--host-resolver-rules={_RULES}", "--enable-precise-memory-info"]
    arguments += [f"--disable-features={','.join(_WITHOUT)}"]
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC"}
    for name in ("FONTCONFIG_FILE",):
        if name in os.environ:
            env[name] = os.environ[name]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments, env=dict(env))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Complaints:
    """What a browser complained of: errors of scripts, on the console, and against the page's own policy."""

    told: list[str] = field(default_factory=list)
    _forgiven: list[str] = field(default_factory=lambda: [LANDED_MEANWHILE])

    def forgive(self, pattern: str) -> None:
        """Expect complaints of this kind: they are what the test is about."""
        self._forgiven.append(pattern)

    @property
    def open(self) -> list[str]:
        """Return those that nobody expected."""
        return [told for told in self.told if not any(re.search(pattern, told) for pattern in self._forgiven)]

    def follow(self, context: BrowserContext) -> None:
        """Note all that is complained of from now on."""
        context.add_init_script(_WATCH)
        context.on("console", self._hear)
        context.on("weberror", self._fall)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.told.append(f"{message.text} [{message.location.get('url', '')}]")

    def _fall(self, error: WebError) -> None:
        self.told.append(str(error.error.stack or error.error))


@dataclass
class Site:
    """One project with its daemon, and browsers that know it."""

    line: Line
    browser: Browser
    _known: dict[str, Any] = field(default_factory=dict)

    @property
    def port(self) -> int:
        """Return where the daemon listens."""
        with self.line.client() as client:
            return client.port

    def invite(self) -> str:
        """Return an address with a new code in it, as `covey open` prints it."""
        with self.line.client() as client:
            return str(client.post("/api/devices/invite", {"kind": "page"})["url"])

    @property
    def origin(self) -> str:
        """Return the page's own origin, which no other program on this machine has."""
        if "origin" not in self._known:
            self._known["origin"] = self.invite().partition("/#")[0]
        return str(self._known["origin"])

    def forget(self) -> None:
        """Forget where the page is: the next one who asks is told anew."""
        self._known.clear()

    def context(
        self,
        complaints: Complaints,
        *,
        size: tuple[int, int] = (1440, 900),
        theme: Theme = "dark",
        touch: bool = False,
        joined: bool = True,
        **more: Any,
    ) -> BrowserContext:
        """Return a browser of its own: one that knows this project, unless it is not to."""
        width, height = size
        if joined:
            more["storage_state"] = self._joined()
        context = self.browser.new_context(
            base_url=self.origin,
            viewport={"width": width, "height": height},
            has_touch=touch,
            is_mobile=touch,
            color_scheme=theme,
            locale="en-GB",
            timezone_id="UTC",
            **more,
        )
        context.set_default_timeout(PATIENCE)
        complaints.follow(context)
        return context

    def _joined(self) -> Any:
        """Return what a browser keeps of joining, which it does once for all that come after."""
        if "state" not in self._known:
            context = self.browser.new_context()
            page = context.new_page()
            page.goto(self.invite())
            wait_for_page(page)
            self._known["state"] = context.storage_state()
            context.close()
        return self._known["state"]


def connection(page: Page) -> str:
    """Return what the page thinks of its connection: connecting, live, lost or unknown."""
    return str(page.evaluate("async () => (await import('/js/data/store.js')).state.connection.state"))


def wait_for_page(page: Page, state: str = "live") -> None:
    """Wait until the page is up and follows the daemon, or has found out that it may not."""
    wait_until(lambda: connection(page) == state, f"a page that is {state}")


def wait_for_view(page: Page, place: str) -> None:
    """Wait until a view is drawn with what it shows: the page follows its address a moment later."""
    expect(page.locator(f".frame.at-{place}")).to_be_visible()
    expect(page.locator("main .loading, main [aria-busy=true]")).to_have_count(0)


def wait_until_told(page: Page, condition: Callable[[], bool], what: str) -> None:
    """Wait for what a handler of the test notes: handlers are called only while the page is asked something."""
    wait_until(lambda: page.evaluate("() => true") and condition(), what)
