"""Texts of others that mean harm: shown as text wherever they come up; nothing of them runs, and the layout holds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import DESK, PHONE, Site, wait_for_page, wait_for_view
from tests.page.conftest import Visit
from tests.page.stage import Stage, stage
from tests.worlds.serving import wait_until

pytestmark = pytest.mark.xdist_group("page-hostile")
SCRIPT = "<script>window.pwned = 1</script>"
IMAGE = "<img src=x onerror='window.pwned = 2'>"
LINK = "javascript:window.pwned=3"
BIDI = "\u202e\u2066evil\u2069\u202d"
LONG = "x" * 480
TITLES = [
    f"{SCRIPT} {IMAGE}",
    f"{BIDI} right to left {LINK}",
    f"${{7*7}} {{{{7*7}}}} {LONG}",
    "&lt;b&gt; \"quotes' `ticks` \\n %s",
]
ESCAPES = (
    r"\033]0;pwned\007\033]8;;javascript:window.pwned=4\033\\link\033]8;;\033\\ \033]52;c;cHduZWQ=\007 \033[2J\033[999B"
)
FILE = '<img src=x onerror="window.pwned = 5">\u202e.py'
NARROW = """() => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const parts = [...document.querySelectorAll("header.strip, nav.tabs, main")];
  const shown = parts.map((each) => each.getBoundingClientRect());
  return {wide, outside: shown.filter((box) => box.right > innerWidth + 1 || box.left < -1).length};
}"""
HARM = """async () => ({
  pwned: window.pwned ?? null,
  elements: document.querySelectorAll("[onerror], [onclick], [onload], iframe, object, embed, body script, img").length,
  links: [...document.links].filter((each) => !["http:", "https:"].includes(new URL(each.href).protocol)).length,
  title: document.title.includes("pwned"),
})"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("stage")) as made:
        harm(made)
        yield made


@pytest.fixture(scope="module")
def site(played: Stage, browser: Browser) -> Site:
    return Site(played.line, browser)


def harm(played: Stage) -> None:
    """Let agents and tasks say, ask, write and name what could do harm."""
    for title in TITLES:
        played.add(title, role="nobody", done_when=[title], status="backlog")
    script = (
        f"say {SCRIPT}{IMAGE}{BIDI}\nrun printf '{ESCAPES}'\nrun head -c 1000000 /dev/zero | tr '\\\\0' y; echo\n"
        f"call {'Edit'} {FILE}\ncall shell {SCRIPT}\nask {IMAGE} {SCRIPT} {BIDI} may I?\n"
    )
    played.play("mallory", f"Ask {SCRIPT}", script)
    writes = (
        f"write {FILE}\n    {SCRIPT}\n    {IMAGE}\n    {BIDI}\n    {'z' * 100_000}\nrun printf '{ESCAPES}' > esc.txt\n"
    )
    played.settings(review=True)
    played.play("oscar", f"Write {IMAGE}", f"{writes}commit {SCRIPT} {IMAGE}\nresult {SCRIPT}\n")
    played.until("review", f"Write {IMAGE}")
    played.settings(runner="tmux", review=True)
    shows = f"printf '{ESCAPES}'\nhead -c 1000000 /dev/zero | tr '\\0' w\nprintf '\\n{SCRIPT}{IMAGE}\\nthe end\\n'\n"
    wait = f"while [ ! -e {played.go} ]; do sleep 0.2; done\n"
    played.play("trudy", "Draw what does harm", shows.replace("'window.pwned = 2'", "2") + wait, agent="terminal")
    played.until_session("trudy", "working")
    played.until_session("mallory", "needs-you")
    _queue_branch(played)
    text = f"{SCRIPT}{IMAGE}{BIDI}{'m' * 20_000}"
    played.ask("POST", "/api/mail", {"to": "owner", "session": "mallory", "text": text, "subject": SCRIPT})
    played.ask("POST", "/api/leases", {"session": "mallory", "resources": [f"src/{IMAGE}/**"], "reason": SCRIPT})
    comment = {"task": played.tasks[f"Write {IMAGE}"], "text": f"{SCRIPT}{IMAGE}{BIDI}"}
    played.ask("POST", "/api/comments", comment)


def _queue_branch(played: Stage) -> None:
    """Hand in a branch of a person whose name is as bad as git allows."""
    name, line = "work/<img>&\"'\u202ex", played.line
    line.git("branch", name, "main")
    commit = subprocess.run(
        ["git", "commit-tree", "-p", "main", "-m", SCRIPT, f"{line.git('rev-parse', 'main')}^{{tree}}"],
        cwd=line.root, env=line.env, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    line.git("update-ref", f"refs/heads/{name}", commit)
    task = played.add("A branch with a name", session="ann")
    played.ask("POST", f"/api/board/{task}/claim", {"session": "ann"})
    played.ask("POST", f"/api/board/{task}/handin", {"session": "ann", "branch": name, "commit": commit})


PLACES = ("board", "inbox", "sessions", "sessions/mallory", "review", "queue", "timeline", "mail", "leases", "costs")


def assert_unharmed(page: Page) -> None:
    """Assert that nothing of what was shown ran, and that the frame of the page is where it belongs."""
    assert page.evaluate(HARM) == {"pwned": None, "elements": 0, "links": 0, "title": False}
    assert page.evaluate(NARROW) == {"wide": 0, "outside": 0}


@pytest.mark.parametrize("look", [pytest.param(DESK, id="desk"), pytest.param(PHONE, id="phone")])
def test_nothing_of_what_others_say_runs_in_any_view(visit: Visit, look: dict[str, object]) -> None:
    page = visit(**look)
    for place in PLACES:
        page.goto(f"/#/{place}")
        wait_for_view(page, place.partition("/")[0])
        page.wait_for_timeout(300)  # for harm that would come late
        assert_unharmed(page)


def test_titles_are_shown_letter_by_letter(played: Stage, visit: Visit) -> None:
    desk = visit(size=(1920, 1080))  # where every column has room
    for title in TITLES:
        card = desk.locator(f'.card[data-id="{played.tasks[title]}"]')
        expect(card).to_be_visible()
    expect(desk.locator(f'.card[data-id="{played.tasks[TITLES[0]]}"] .card-title')).to_have_text(TITLES[0])
    assert "⟨202E⟩" in desk.locator(f'.card[data-id="{played.tasks[TITLES[1]]}"] .card-title').inner_text()
    desk.goto(f"/#/board/{played.tasks[TITLES[2]]}")
    expect(desk.get_by_role("complementary", name=f"Task {played.tasks[TITLES[2]]}")).to_be_visible()
    assert_unharmed(desk)


def test_a_question_is_shown_letter_by_letter(desk: Page) -> None:
    desk.goto("/#/inbox")
    item = desk.locator(".ask", has_text="may I?")
    expect(item).to_contain_text(f"{IMAGE} {SCRIPT}")
    assert_unharmed(desk)


@pytest.mark.parametrize("look", [pytest.param(DESK, id="desk"), pytest.param(PHONE, id="phone")])
def test_a_diff_is_shown_letter_by_letter(played: Stage, visit: Visit, look: dict[str, object]) -> None:
    page = visit(f"/#/review/{played.tasks[f'Write {IMAGE}']}", **look)
    expect(page.locator(".line", has_text=SCRIPT).first).to_be_visible()
    expect(page.locator(".line", has_text=IMAGE).first).to_be_visible()
    assert page.locator(".line").evaluate_all("(all) => Math.max(...all.map((one) => one.textContent.length))") < 20_000
    assert_unharmed(page)


def test_a_terminal_obeys_nothing_that_reaches_beyond_it(desk: Page) -> None:
    desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    desk.goto("/#/sessions/trudy")
    expect(desk.locator(".xterm-rows")).to_contain_text("the end")
    assert_unharmed(desk)
    assert "pwned" not in desk.evaluate("() => navigator.clipboard.readText().catch(() => '')")


def test_a_line_of_a_megabyte_leaves_the_page_quick(desk: Page) -> None:
    desk.goto("/#/sessions/mallory")
    log = desk.get_by_role("log")
    expect(log).to_contain_text("window.pwned = 2")
    assert len(log.inner_text()) < 200_000
    wait_for_page(desk)
    wait_until(lambda: desk.evaluate("() => document.getElementsByTagName('*').length") < 5000, "few nodes")
