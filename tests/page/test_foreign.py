"""Other pages in the same browser, on other ports and other names: they get nothing, and nothing changes."""

from __future__ import annotations

import http.client
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Response, expect

from tests.page.browser import REBOUND, Complaints, Site, wait_for_page
from tests.page.conftest import Visit

pytestmark = pytest.mark.xdist_group("page-foreign")
UNKNOWN = "This browser does not know this project yet"
REFUSED = r"Failed to load resource|has been blocked by CORS|WebSocket connection|EventSource|frame|Framing"
"""What a browser says of what it was refused."""


@dataclass
class DevServer:
    """A program on this machine that serves a page of its own under any name, and keeps what it is sent."""

    port: int = 0
    cookies: list[str] = field(default_factory=list)


@contextmanager
def dev_server() -> Iterator[DevServer]:
    """Yield a server that listens on loopback, as one that an agent has started."""
    made = DevServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.cookies += self.headers.get_all("Cookie", [])
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>dev</title><body>A shop in the making</body>")

        def log_message(self, format: str, *words: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def dev() -> Iterator[DevServer]:
    with dev_server() as made:
        yield made


def change(site: Site) -> tuple[int, list[str]]:
    """Return what must not change: the end of the log, and the devices that are known."""
    with site.line.client() as client:
        return client.get("/api/status")["seq"], [each["id"] for each in client.get("/api/devices")]


ATTACKS = """
async (origin) => {
  const socket = origin.replace("http", "ws") + "/api/sessions/ada/terminal/socket?write=1";
  const late = () => new Promise((go) => setTimeout(() => go("nothing"), 3000));
  const outcome = (work) => Promise.race([work.then((got) => "got " + got, (error) => "nothing"), late()]);
  const loads = (tag, source) => new Promise((good, bad) => {
    const made = document.createElement(tag);
    made.onload = () => good(tag);
    made.onerror = bad;
    made.src = source;
    document.body.append(made);
  });
  const post = (mode, type) => fetch(origin + "/api/board", {method: "POST", mode, credentials: "include",
    headers: {"content-type": type}, body: JSON.stringify({title: "by a stranger"})});
  const read = (path) => fetch(origin + path, {credentials: "include"}).then((answer) => answer.text());
  const opens = (made, name) => new Promise((good, bad) => {
    made.addEventListener(name, () => good(name));
    made.onerror = bad;
  });
  const frame = document.createElement("iframe");
  frame.name = "sink";
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, {method: "POST", action: origin + "/api/board", target: "sink", enctype: "text/plain"});
  const field = document.createElement("input");
  Object.assign(field, {name: '{"title": "by a form", "body": "', value: '"}'});
  form.append(field);
  document.body.append(form);
  form.submit();
  return {
    page: await outcome(read("/")),
    board: await outcome(read("/api/board")),
    events: await outcome(opens(new EventSource(origin + "/api/events", {withCredentials: true}), "counts")),
    socket: await outcome(opens(new WebSocket(socket), "message")),
    cors: await outcome(post("cors", "application/json").then((answer) => answer.text())),
    blind: await outcome(post("no-cors", "text/plain").then((answer) => answer.type)),
    image: await outcome(loads("img", origin + "/api/board")),
    script: await outcome(loads("script", origin + "/api/board")),
  };
}
"""


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "the page's own"])
def test_a_dev_server_on_another_port_gets_nothing_and_changes_nothing(
    site: Site, visit: Visit, dev: DevServer, complaints: Complaints, name: str
) -> None:
    complaints.forgive(REFUSED)
    page = visit()
    host = urlsplit(site.origin).hostname if name == "the page's own" else name
    before = change(site)
    page.goto(f"http://{host}:{dev.port}/")
    found = page.evaluate(ATTACKS, site.origin)
    assert found.pop("blind") in ("nothing", "got opaque")  # the browser hides the refusal, too
    assert set(found.values()) == {"nothing"}, found
    assert change(site) == before


def test_a_program_on_another_port_of_the_pages_name_is_sent_nothing(site: Site, visit: Visit, dev: DevServer) -> None:
    page = visit()
    host = urlsplit(site.origin).hostname
    dev.cookies.clear()
    page.goto(f"http://{host}:{dev.port}/")
    page.evaluate("() => fetch('/steal').then((answer) => answer.text())")
    assert dev.cookies == []  # a browser does not tell ports apart, so there is no cookie
    assert page.evaluate("() => JSON.stringify({...localStorage})") == "{}"


def test_the_page_cannot_be_shown_in_a_frame(site: Site, visit: Visit, dev: DevServer, complaints: Complaints) -> None:
    complaints.forgive(REFUSED)
    page = visit()
    page.goto(f"http://{urlsplit(site.origin).hostname}:{dev.port}/")
    page.evaluate(
        """(source) => new Promise((onload) =>
             document.body.append(Object.assign(document.createElement("iframe"), {src: source, onload})))""",
        site.origin,
    )
    assert not any(frame.url.startswith(site.origin) for frame in page.frames)


def test_a_name_that_was_turned_to_this_machine_gets_nothing(site: Site, visit: Visit, complaints: Complaints) -> None:
    complaints.forgive(REFUSED)
    page = visit("")
    for path in ("/", "/api/board", "/api/events", "/js/app.js"):
        answer = page.goto(f"http://{REBOUND}:{site.port}{path}")
        assert answer is not None
        assert answer.status == 421, path


def test_loopback_by_number_leads_to_the_pages_own_name(site: Site, visit: Visit, complaints: Complaints) -> None:
    page = visit("")
    for name in ("127.0.0.1", "localhost"):
        page.goto(f"http://{name}:{site.port}/")
        assert page.url.startswith(site.origin + "/")
        wait_for_page(page)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "the page's own"])
def test_a_key_counts_on_the_pages_own_name_only(site: Site, visit: Visit, name: str) -> None:
    own = name == "the page's own"
    key = visit().evaluate("async () => (await import('/js/data/api.js')).key()")
    connection = http.client.HTTPConnection("127.0.0.1", site.port)
    host = urlsplit(site.origin).netloc if own else f"{name}:{site.port}"
    told = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    connection.request("GET", "/api/board", headers={"Covey-Key": key, **told})
    assert connection.getresponse().status in ((200,) if own else (401, 403))
    connection.close()


# The code


def stranger(visit: Visit) -> Page:
    return visit("", joined=False)


def test_a_code_works_once_and_leaves_no_trace(site: Site, visit: Visit, complaints: Complaints) -> None:
    address = site.invite()
    code = address.partition("#code=")[2]
    page = stranger(visit)
    page.goto(address)
    wait_for_page(page)
    assert "code" not in page.url
    assert page.evaluate("() => history.length") <= 2
    assert page.context.cookies() == []
    held = page.evaluate("() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert code not in held
    secret = page.evaluate("() => JSON.parse(localStorage['covey.device']).secret")
    for each in (code, secret):
        assert each not in page.content()
    page.reload()
    wait_for_page(page)

    complaints.forgive(r"Failed to load resource.*40[13]")
    late = stranger(visit)
    late.goto(address)
    expect(late.get_by_text(UNKNOWN)).to_be_visible()
    assert late.evaluate("() => localStorage['covey.device']") is None


def test_nobody_joins_from_another_page(site: Site, visit: Visit, dev: DevServer, complaints: Complaints) -> None:
    complaints.forgive(REFUSED)
    code = site.invite().partition("#code=")[2]
    page = stranger(visit)
    page.goto(f"http://{urlsplit(site.origin).hostname}:{dev.port}/")
    page.evaluate(
        """([origin, code]) => fetch(origin + "/api/devices/join", {method: "POST", mode: "no-cors",
             credentials: "include", body: JSON.stringify({code, label: "a thief"})}).catch(() => null)""",
        [site.origin, code],
    )
    assert page.context.cookies() == []
    page.goto(f"{site.origin}/#code={code}")
    wait_for_page(page)


def test_a_browser_without_a_code_is_told_how_to_get_one(site: Site, visit: Visit, complaints: Complaints) -> None:
    complaints.forgive(r"Failed to load resource.*401")
    page = stranger(visit)
    page.goto("/")
    expect(page.get_by_text(UNKNOWN)).to_be_visible()
    expect(page.get_by_text("covey open", exact=True)).to_be_visible()


def test_a_revoked_browser_is_a_stranger_at_once(site: Site, visit: Visit, complaints: Complaints) -> None:
    complaints.forgive(r"Failed to load resource.*401")
    page = stranger(visit)
    page.goto(site.invite())
    wait_for_page(page)
    with site.line.client() as client:
        newest = client.get("/api/devices")[-1]["id"]
        client.post(f"/api/devices/{newest}/revoke")
    expect(page.get_by_text(UNKNOWN)).to_be_visible()


def test_no_path_answers_a_stranger_but_the_files_of_the_page(site: Site) -> None:
    with site.line.client() as client:
        paths = client.get("/api/openapi.json")["paths"]
    connection = http.client.HTTPConnection("127.0.0.1", site.port)
    own = {"Host": urlsplit(site.origin).netloc, "Origin": site.origin, "Sec-Fetch-Site": "same-origin"}
    for path, verbs in paths.items():
        for verb in verbs:
            connection.request(verb.upper(), path.replace("{", "x").replace("}", ""), b"{}", own)
            answer = connection.getresponse()
            body = answer.read()
            strangers = ("/api/devices/join", "/api/proof")  # whoever comes first has no token yet
            refused = (400, 401, 403, 422, 429) if path in strangers else (401, 403)
            assert answer.status in refused, (verb, path, answer.status, body[:200])
            assert "error" in json.loads(body)
    connection.close()


def test_every_file_of_the_page_comes_with_its_policy(site: Site, visit: Visit) -> None:
    page = visit("")
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - append alone fits no event for mypy
    page.goto("/")
    wait_for_page(page)
    files = [answer for answer in answers if "/api/" not in answer.url]
    assert len(files) > 10
    for answer in files:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
