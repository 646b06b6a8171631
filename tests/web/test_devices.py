"""Who may ask: browsers that joined, through our own page alone; nobody else, from nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import select
import socket
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from covey import proof
from covey.app.app import App, Request
from covey.app.context import Context, Principal
from covey.app.fleet.heartbeats import Pulses
from covey.app.verbs import VERBS
from covey.config import Config
from covey.core.leases.expiry import Instant
from covey.core.people.devices import DEVICE_LIFE_S, Addresses, DeviceKind
from covey.store.bus import Bus
from covey.store.engine.sqlite import SqliteStore
from covey.web.addresses import Doors
from covey.web.server import REVOKED, SocketServer, Web
from covey.web.stream import Hub
from tests.worlds.serving import PATIENCE, Daemon, Reply, check_database, make_repository, serving

QUICK = {"covey.web.identity.WRONG": 0.05}
"""Who shows a wrong code waits no longer than a test can."""
NONCE = "0123456789abcdef"
NOWHERE = "/api/sessions/nobody/terminal/socket"
LET_IN = (101, 404)
"""How a socket is answered whose owner may ask, for a session that there is not."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Serve one project for all tests that do not end it."""
    with serving(tmp_path_factory.mktemp("devices") / "shop", constants=QUICK) as served:
        yield served


@dataclass
class Browser:
    """A browser at our page: sends what a browser sends, and keeps its secret."""

    daemon: Daemon
    page: str
    device: str = ""
    secret: str = ""

    @property
    def host(self) -> str:
        return self.page.partition("://")[2]

    def ask(self, method: str, path: str, body: Any = None, **others: str | None) -> Reply:
        """Ask as a script of the page does; `others` are headers that differ, or are missing if None."""
        headers: dict[str, str | None] = {"Host": self.host, "Sec-Fetch-Site": "same-origin"}
        headers["Covey-Key"] = self.key or None
        if method != "GET":
            headers["Origin"] = self.page
        headers |= {name.replace("_", "-"): value for name, value in others.items()}
        sent = {name: value for name, value in headers.items() if value is not None}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=PATIENCE)
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    @property
    def key(self) -> str:
        """Return what it sends to the daemon of this moment."""
        return page_key(self.daemon, self.host, self.device, self.secret) if self.secret else ""

    def join(self, code: str, **others: str | None) -> Reply:
        """Show a code, and keep the secret that comes back."""
        reply = self.ask("POST", "/api/devices/join", {"code": code, "label": "a test"}, **others)
        if reply.status == 201:
            self.device, self.secret = reply.json["id"], reply.json["secret"]
        return reply


def invite(daemon: Daemon, **fields: str) -> dict[str, Any]:
    made: dict[str, Any] = daemon.ask("POST", "/api/devices/invite", fields).good()
    return made


def stranger(daemon: Daemon) -> Browser:
    said = json.loads(daemon.project.daemon_file.read_text())
    return Browser(daemon, said["page"])


def prove(daemon: Daemon, host: str, name: str = "owner", nonce: str = NONCE) -> Reply:
    """Ask for a proof, as whoever is about to send a secret does."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE)
    try:
        connection.request("GET", f"/api/proof?for={name}&nonce={nonce}", headers={"Host": host})
        response = connection.getresponse()
        return Reply(response.status, {}, response.read())
    finally:
        connection.close()


def page_key(daemon: Daemon, host: str, device: str, secret: str) -> str:
    """Return what a browser makes of its secret for the daemon of this moment."""
    return f"{device}.{proof.page_key(secret, host, prove(daemon, host).json['life'])}"


def member(daemon: Daemon) -> Browser:
    """Return a browser that joined."""
    browser = stranger(daemon)
    assert browser.join(invite(daemon)["code"]).status == 201
    return browser


def tasks(daemon: Daemon) -> int:
    return len(daemon.ask("GET", "/api/board?limit=1000").good())


# Joining


def test_a_code_makes_one_browser_the_owners(daemon: Daemon) -> None:
    invitation = invite(daemon)
    browser = stranger(daemon)
    assert browser.ask("GET", "/api/status").status == 401
    assert invitation["url"] == f"{browser.page}/#code={invitation['code']}"
    assert len(invitation["code"]) >= 22, "128 bits"
    joined = browser.join(invitation["code"])
    assert joined.status == 201
    assert browser.ask("GET", "/api/status").status == 200
    assert browser.ask("POST", "/api/board", {"title": "From the page"}).status == 201
    (own,) = [device for device in browser.ask("GET", "/api/devices").json if device["this"]]
    assert own["id"] == joined.json["id"] == invitation["id"]


def test_no_cookie_is_ever_set_nor_believed(daemon: Daemon) -> None:
    browser = stranger(daemon)
    joined = browser.join(invite(daemon)["code"])
    assert "set-cookie" not in joined.headers
    assert re.fullmatch(r"[0-9a-f]{64}", browser.secret)
    for cookie in (browser.secret, browser.key, f"covey-000000={browser.secret}"):
        assert browser.ask("GET", "/api/status", Cookie=cookie, Covey_Key=None).status == 401


def test_a_code_works_once_however_many_show_it_at_once(daemon: Daemon) -> None:
    code = invite(daemon)["code"]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: stranger(daemon).join(code).status, range(8)))
    assert sorted(replies) == [201] + [401] * 7


def test_a_wrong_code_tells_nothing_and_waits(daemon: Daemon) -> None:
    used = invite(daemon)["code"]
    stranger(daemon).join(used)
    began = time.monotonic()
    wrong = stranger(daemon).join("A" * 22)
    assert time.monotonic() - began >= QUICK["covey.web.identity.WRONG"]
    assert wrong.status == 401 and "secret" not in wrong.json
    assert stranger(daemon).join(used).body == wrong.body


def test_many_wrong_codes_at_once_are_sent_away_and_a_right_one_works_beside_them(tmp_path: Path) -> None:
    slow = {"covey.web.identity.WRONG": 600.0, "covey.web.identity.TRIES": 2}
    with serving(tmp_path / "shop", constants=slow) as daemon, contextlib.ExitStack() as stack:
        host = stranger(daemon).host
        head = f"Host: {host}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin\r\n"
        body = showing("x").decode()
        head += f"Content-Length: {len(body)}\r\n\r\n"
        tries = [stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port))) for _ in range(3)]
        for each in tries:
            each.sendall(f"POST /api/devices/join HTTP/1.1\r\n{head}{body}".encode())
        answered, _, _ = select.select(tries, [], [], PATIENCE)
        assert [each.recv(12) for each in answered] == [b"HTTP/1.1 503"]
        assert not select.select([each for each in tries if each not in answered], [], [], 0)[0]
        assert stranger(daemon).join("A" * 22).status == 503
        assert stranger(daemon).join(invite(daemon)["code"]).status == 201


def test_a_browser_that_is_known_stays_the_same_device_and_spends_the_code(daemon: Daemon) -> None:
    browser = member(daemon)
    devices = len(browser.ask("GET", "/api/devices").json)
    code = invite(daemon)["code"]
    again = browser.join(code)
    assert again.status == 200 and again.json["secret"] is None
    assert len(browser.ask("GET", "/api/devices").json) == devices
    assert stranger(daemon).join(code).status == 401


def test_a_key_is_of_one_browser_one_host_and_one_life_of_the_daemon(tmp_path: Path) -> None:
    with serving(tmp_path / "shop", constants=QUICK) as daemon:
        browser, other = member(daemon), member(daemon)
        key = browser.key
        assert browser.ask("GET", "/api/status", Covey_Key=key).status == 200
        follow(browser, f"/api/events?key={key}").close()
        for wrong in (None, "", key[:-1], key + "0", f"{other.device}.{key.partition('.')[2]}", browser.secret):
            assert browser.ask("GET", "/api/status", Covey_Key=wrong).status == 401, wrong
        elsewhere = page_key(daemon, f"127.0.0.1:{daemon.port}", browser.device, browser.secret)
        assert browser.ask("GET", "/api/status", Covey_Key=elsewhere).status == 401
        daemon.kill()
        daemon.start()
        assert browser.ask("GET", "/api/status", Covey_Key=key).status == 401, "what an impostor was sent is of use"
        assert browser.ask("GET", "/api/status").status == 200


def test_the_daemon_proves_itself_to_each_with_a_key_of_its_own(daemon: Daemon) -> None:
    host = f"127.0.0.1:{daemon.port}"
    for name in ("owner", "run:run-1", "device:device-1"):
        said = prove(daemon, host, name).json
        assert said["proof"] == proof.proof(proof.key_of(daemon.token, name), NONCE, host, said["life"])
    proofs = [prove(daemon, host, name).json["proof"] for name in ("owner", "run:run-1", "run:run-2")]
    assert len(set(proofs)) == 3
    assert prove(daemon, host, nonce="short").status == 400
    assert prove(daemon, host, name="a%0Ab").status == 400


def test_nobody_at_another_address_can_pass_a_proof_on(daemon: Daemon) -> None:
    for host in (f"127.0.0.1:{daemon.port + 1}", f"shop.localhost:{daemon.port}", "evil.example"):
        assert prove(daemon, host).status == 421, host


def test_nobody_but_the_owner_invites(daemon: Daemon) -> None:
    with daemon.client() as owner:
        owner.post("/api/sessions", {"name": "ada"})
        token = owner.post("/api/sessions/ada/token")["token"]
    with daemon.client(token) as ada:
        for method, path in (
            ("POST", "/api/devices/invite"),
            ("GET", "/api/devices"),
            ("POST", "/api/devices/x/revoke"),
        ):
            assert ada.ask(method, path, None if method == "GET" else {}).status == 403


def test_a_phone_is_not_invited_where_it_cannot_come(daemon: Daemon) -> None:
    refused = daemon.ask("POST", "/api/devices/invite", {"kind": "phone"})
    assert refused.status == 409 and "--bind" in refused.json["hint"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[1]", b'{"code": 7}', b"\xff", b'{"code": ""}', b'{"code": "x", "key": "of old"}', b"{" * 4000],
)
def test_a_body_that_makes_no_sense_is_said_to_be_so(daemon: Daemon, body: bytes) -> None:
    assert stranger(daemon).ask("POST", "/api/devices/join", body).status == 400


def test_a_body_that_is_too_large_is_not_read(daemon: Daemon) -> None:
    assert stranger(daemon).ask("POST", "/api/devices/join", b" " * 5000).status == 413


# No token, no answer


def test_nothing_is_answered_without_a_token(daemon: Daemon) -> None:
    paths = daemon.ask("GET", "/api/openapi.json").good()["paths"]
    del paths["/api/proof"]  # by which the daemon shows who it is, before anybody sends it a token
    browser = stranger(daemon)
    before = daemon.seq()
    asked = 0
    for path, methods in [*paths.items(), ("/api/openapi.json", {"get": {}}), ("/api/none", {"get": {}})]:
        for method in methods:
            filled = re.sub(r"\{\w+\}", "x", path)
            body = {"code": "x"} if path.endswith("/join") else {}
            for others in (
                {},
                {"Cookie": "covey-000000=x"},
                {"Authorization": "Bearer x"},
                {"Authorization": "Basic eDp4"},
            ):
                reply = browser.ask(method.upper(), filled, None if method == "get" else body, **others)
                assert reply.status == 401, (method, path, reply)
                assert set(reply.json) == {"error", "hint"}
                asked += 1
    assert asked > 200
    assert daemon.seq() == before


def test_a_secret_that_nobody_got_is_not_known(daemon: Daemon) -> None:
    browser = member(daemon)
    browser.secret = browser.secret[:-4] + "0000"
    assert browser.ask("GET", "/api/status").status == 401


# From where


def test_a_key_counts_only_where_the_browser_says_that_our_page_asks(daemon: Daemon) -> None:
    browser = member(daemon)
    before = tasks(daemon)
    for site in (None, "cross-site", "same-site", "none", "Same-Origin"):
        assert browser.ask("GET", "/api/board", Sec_Fetch_Site=site).status == 403, site
        assert browser.ask("POST", "/api/board", {"title": "No"}, Sec_Fetch_Site=site).status == 403, site
        assert browser.ask("GET", "/api/events", Sec_Fetch_Site=site).status == 403, site
    assert tasks(daemon) == before


def origins(browser: Browser) -> list[str | None]:
    name, _, port = browser.host.rpartition(":")
    others = ["http://evil.example", f"http://{name}:3000", f"https://{browser.host}", f"http://127.0.0.1:{port}"]
    return [None, "null", *others, f"http://localhost:{port}", f"http://x.{browser.host}", f"http://{name}"]


def test_nothing_is_changed_for_another_origin_or_for_none(daemon: Daemon) -> None:
    browser = member(daemon)
    before = tasks(daemon)
    for origin in origins(browser):
        assert browser.ask("POST", "/api/board", {"title": "No"}, Origin=origin).status == 403, origin
        code = invite(daemon)["code"]
        assert stranger(daemon).join(code, Origin=origin).status == 403, origin
        if origin is not None:
            assert browser.ask("GET", "/api/board", Origin=origin).status == 403, origin
    assert tasks(daemon) == before


def test_a_form_of_another_site_does_nothing(daemon: Daemon) -> None:
    browser = member(daemon)
    before = daemon.seq()
    body = b'{"title": "Forged", "body": "="}'
    sent = {"Content_Type": "text/plain", "Origin": "http://evil.example", "Sec_Fetch_Site": "cross-site"}
    assert browser.ask("POST", "/api/board", body, **sent).status == 403
    assert browser.ask("POST", "/api/pause", b"", **sent).status == 403
    assert browser.ask("OPTIONS", "/api/board", **sent, Access_Control_Request_Method="POST").status == 403
    assert daemon.seq() == before


def test_a_name_that_points_here_is_not_ours_for_that(daemon: Daemon) -> None:
    browser = member(daemon)
    for host in (f"rebound.example:{daemon.port}", f"{browser.host}.evil.example", "evil.example", browser.host[:-1]):
        reply = browser.ask("GET", "/api/board", Host=host, Origin=None)
        assert reply.status == 421, host
        assert browser.ask("POST", "/api/devices/join", {"code": "x"}, Host=host).status == 421


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_key_is_refused_at_an_address_that_others_share(daemon: Daemon, name: str) -> None:
    browser = member(daemon)
    host = f"{name}:{daemon.port}"
    assert browser.ask("GET", "/api/board", Host=host).status == 403
    assert browser.ask("POST", "/api/board", {"title": "No"}, Host=host, Origin=f"http://{host}").status == 403
    assert stranger(daemon).join(invite(daemon)["code"], Host=host, Origin=f"http://{host}").status == 403


def test_no_answer_lets_another_origin_read_it(daemon: Daemon) -> None:
    browser = member(daemon)
    for reply in (browser.ask("GET", "/api/board"), browser.ask("GET", "/"), browser.ask("GET", "/api/none")):
        assert not any(name.startswith("access-control") for name in reply.headers)
        assert reply.headers["x-content-type-options"] == "nosniff"


# Sockets


def knock(daemon: Daemon, path: str = NOWHERE, **headers: str | None) -> int:
    """Ask for a WebSocket and return the status of the answer."""
    host = stranger(daemon).host
    sent = {"Host": host} | {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE) as raw:
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
        raw.sendall("\r\n".join([*lines, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""]).encode())
        return int(raw.makefile("rb").readline().split()[1])


def test_a_socket_needs_the_key_and_our_own_origin(daemon: Daemon) -> None:
    browser = member(daemon)
    path = f"{NOWHERE}?key={browser.key}"
    assert knock(daemon, path, Origin=browser.page) in LET_IN
    assert knock(daemon, f"{path}0", Origin=browser.page) == 401
    assert knock(daemon, Origin=browser.page) == 401
    assert knock(daemon) == 401
    for origin in origins(browser):
        assert knock(daemon, path, Origin=origin) == 403, origin
    assert knock(daemon, path, Host=f"evil.example:{daemon.port}", Origin=browser.page) == 421
    shared = f"127.0.0.1:{daemon.port}"
    assert knock(daemon, path, Host=shared, Origin=f"http://{shared}") == 403


def test_a_socket_may_be_asked_for_with_the_owners_token_and_not_with_a_sessions(daemon: Daemon) -> None:
    with daemon.client() as owner:
        owner.post("/api/sessions", {"name": "eve"})
        token = owner.post("/api/sessions/eve/token")["token"]
    assert knock(daemon, Authorization=f"Bearer {daemon.token}") in LET_IN
    assert knock(daemon, Authorization=f"Bearer {token}") == 403
    assert knock(daemon, Authorization=f"Bearer {daemon.token}", Origin="http://evil.example") == 403


def test_what_is_no_socket_is_refused_in_our_words(daemon: Daemon) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{daemon.port}{NOWHERE}", proxy=None)
    assert set(json.loads(refused.value.response.body or b"")) == {"error", "hint"}


# Sent away


class Following:
    """A stream of events that is open until it ends or is closed."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response = connection, response

    def read_to_its_end(self) -> bytes:
        return self._response.read()

    def close(self) -> None:
        self._connection.close()


def follow(browser: Browser, path: str = "") -> Following:
    connection = http.client.HTTPConnection("127.0.0.1", browser.daemon.port, timeout=PATIENCE)
    sent = {"Host": browser.host, "Sec-Fetch-Site": "same-origin"}
    connection.request("GET", path or f"/api/events?key={browser.key}", headers=sent)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    assert response.readline() == b"retry: 1000\n"
    return Following(connection, response)


def test_a_browser_that_is_sent_away_is_unknown_and_its_streams_end(daemon: Daemon) -> None:
    away, other = member(daemon), member(daemon)
    (own,) = [device for device in away.ask("GET", "/api/devices").json if device["this"]]
    stream, others = follow(away), follow(other)
    assert other.ask("POST", f"/api/devices/{own['id']}/revoke", {}).status == 200
    assert b"event: board" in stream.read_to_its_end()
    assert away.ask("GET", "/api/status").status == 401
    assert other.ask("GET", "/api/status").status == 200
    assert own["id"] not in [device["id"] for device in other.ask("GET", "/api/devices").json]
    assert own["id"] in [device["id"] for device in other.ask("GET", "/api/devices?all=true").json]
    assert other.ask("POST", f"/api/devices/{own['id']}/revoke", {}).status == 409
    stream.close()
    others.close()


def test_a_stream_goes_on_after_the_event_that_its_address_names(daemon: Daemon) -> None:
    browser = member(daemon)
    before = daemon.seq()
    made = daemon.ask("POST", "/api/board", {"title": "Missed"}).good()["id"]
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE)
    sent = {"Host": browser.host, "Sec-Fetch-Site": "same-origin"}
    connection.request("GET", f"/api/events?after={before}&key={browser.key}", headers=sent)
    response = connection.getresponse()
    assert response.readline() == f"id: {before + 1}\n".encode()
    assert response.readline() == b"event: board\n"
    assert made.encode() in response.readline()
    connection.close()
    for wrong in ("after=x", "after=-1", "after=1" + "0" * 30, "before=1"):
        assert browser.ask("GET", f"/api/events?{wrong}").status == 400, wrong


# What is kept


def test_browsers_are_known_after_a_restart_and_their_secrets_are_nowhere(tmp_path: Path) -> None:
    with serving(tmp_path / "shop", constants=QUICK) as daemon:
        codes = [invite(daemon)["code"] for _ in range(2)]
        browser, gone = stranger(daemon), member(daemon)
        browser.join(codes[0])
        (device,) = [each for each in gone.ask("GET", "/api/devices").json if each["this"]]
        gone.ask("POST", f"/api/devices/{device['id']}/revoke", {})
        stranger(daemon).join("wrong-" + codes[1])
        secrets = [*codes, browser.secret, gone.secret, browser.key]
        daemon.kill()
        daemon.start()
        assert browser.ask("GET", "/api/status").status == 200
        assert gone.ask("GET", "/api/status").status == 401
        answers = [browser.ask("GET", path).body for path in ("/", "/api/devices?all=true", "/api/log", "/api/status")]
        assert not any(daemon.token.encode() in answer for answer in answers)
        daemon.stop()
        check_database(daemon.project)
        kept = [path for path in daemon.project.state.rglob("*") if path.is_file()]
        assert any(path.name == "daemon.log" for path in kept)
        for path in kept:
            data = path.read_bytes()
            assert not any(secret.encode() in data for secret in secrets), path


# Under a clock of our own


class HandClock:
    """A clock that a test turns."""

    boot_id = "this boot"

    def __init__(self) -> None:
        self.wall = 1_700_000_000.0

    def now(self) -> Instant:
        """Return the three clocks."""
        return Instant(self.wall, self.wall, self.wall)


PAGE = "http://shop.localhost:1"


@contextlib.asynccontextmanager
async def at_home(folder: Path, sockets: SocketServer | None = None) -> AsyncIterator[tuple[HandClock, App, Web, Bus]]:
    """Yield the insides of a daemon that lives at PAGE."""
    project, clock = make_repository(folder), HandClock()
    store = SqliteStore(project.database, clock=lambda: clock.wall)
    addresses = Addresses(PAGE, "https://phone.example", "AB:CD")
    pulses = Pulses(clock, store.place)
    app = App(store, Context(Config(), pulses, project.name, has_daemon=True, addresses=addresses))
    bus = Bus(store)
    doors = Doors({"localhost"}, {1: "http"}, [PAGE, "https://phone.example"])
    web = Web(app, bus, Hub(clock), project.owner_token.read_text(), doors, sockets=sockets)
    try:
        yield clock, app, web, bus
    finally:
        await bus.stop()
        web.close()
        bus.close()
        store.close()


async def asked_of(bus: Bus, app: App, name: str, params: dict[str, str] | None = None, **fields: Any) -> Any:
    """Ask as the owner."""
    verb = VERBS[name]
    job = app.job(Request(verb, Principal(), verb.asked(**fields), params or {}))
    return (await (bus.write if verb.changes else bus.read)(job)).value()


async def request(
    web: Web, method: str, path: str, body: bytes = b"", page: str = PAGE, joined: Any = None, query: str = ""
) -> Reply:
    """Ask as our page does."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", page.partition("://")[2].encode()), (b"origin", page.encode())]
    headers += [(b"sec-fetch-site", b"same-origin"), (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "scheme": "http", "query_string": b""}
    if joined is not None:
        headers += [(b"covey-key", (await key_of(web, joined, page)).encode())]
    scope["query_string"] = query.encode()
    await web(scope, receive, send)
    made = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Reply(int(sent[0]["status"]), made, sent[1]["body"])


async def key_of(web: Web, joined: Any, page: str = PAGE) -> str:
    """Return what a browser that joined makes of its secret."""
    said = (await request(web, "GET", "/api/proof", page=page, query=f"for=owner&nonce={NONCE}")).json
    return f"{joined['id']}.{proof.page_key(joined['secret'], page.partition('://')[2], said['life'])}"


def showing(code: str) -> bytes:
    return json.dumps({"code": code}).encode()


def test_a_code_and_a_browser_end_in_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covey.web.identity.WRONG", 0.0)

    async def tell() -> None:
        async with at_home(tmp_path / "shop") as (clock, app, web, bus):
            known: Any = None
            for kind, seconds in ((DeviceKind.PAGE, 60.0), (DeviceKind.PHONE, 300.0)):
                codes = [(await asked_of(bus, app, "device.invite", kind=kind))["code"] for _ in range(2)]
                clock.wall += seconds - 1
                joined = await request(web, "POST", "/api/devices/join", showing(codes[0]))
                assert joined.status == 201
                known = joined.json
                clock.wall += 1
                assert (await request(web, "POST", "/api/devices/join", showing(codes[1]))).status == 401
            clock.wall += DEVICE_LIFE_S - 10
            assert (await request(web, "GET", "/api/status", joined=known)).status == 200
            clock.wall += 10
            assert (await request(web, "GET", "/api/status", joined=known)).status == 401

    asyncio.run(tell())


def test_a_phone_joins_where_it_was_invited_to(tmp_path: Path) -> None:
    async def tell() -> None:
        async with at_home(tmp_path / "shop") as (_, app, web, bus):
            invited = await asked_of(bus, app, "device.invite", kind=DeviceKind.PHONE)
            assert invited["url"].startswith("https://phone.example/#code=")
            assert invited["fingerprint"] == "AB:CD"
            assert {len(row) for row in invited["qr"]} == {len(invited["qr"])}
            assert set("".join(invited["qr"])) == {"0", "1"}
            joined = await request(
                web, "POST", "/api/devices/join", showing(invited["code"]), page="https://phone.example"
            )
            phone = "https://phone.example"
            assert (await request(web, "GET", "/api/status", page=phone, joined=joined.json)).status == 200

    asyncio.run(tell())


def test_the_sockets_of_a_browser_that_is_sent_away_are_closed(tmp_path: Path) -> None:
    async def tell() -> list[Any]:
        open_now = asyncio.Event()
        served: list[Principal] = []

        async def serve(scope: Any, receive: Any, send: Any, who: Principal) -> None:
            served.append(who)
            await send({"type": "websocket.accept"})
            open_now.set()
            await asyncio.Event().wait()

        async with at_home(tmp_path / "shop", serve) as (_, app, web, bus):
            code = (await asked_of(bus, app, "device.invite"))["code"]
            joined = await request(web, "POST", "/api/devices/join", showing(code))
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            headers = [(b"host", b"shop.localhost:1"), (b"origin", PAGE.encode())]
            scope: dict[str, Any] = {"type": "websocket", "path": NOWHERE, "headers": headers, "scheme": "ws"}
            scope["query_string"] = f"key={await key_of(web, joined.json)}".encode()
            socket_open = asyncio.create_task(web(scope, asyncio.Event().wait, send))  # type: ignore[arg-type]
            await asyncio.wait_for(open_now.wait(), PATIENCE)
            assert served == [Principal(device=joined.json["id"])]
            await asked_of(bus, app, "device.revoke", {"id": joined.json["id"]})
            await asyncio.wait_for(socket_open, PATIENCE)
            return sent

    sent = asyncio.run(tell())
    assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]
    assert sent[1]["code"] == REVOKED
