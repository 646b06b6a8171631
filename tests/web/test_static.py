"""The files of the page: what is there, how it is sent, and that nothing else can be had."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.web.static import FOLDER, HEADERS, TYPES, Pages
from tests.worlds.serving import PATIENCE, Daemon, Reply, serving

FILES = sorted(path for path in FOLDER.rglob("*") if path.suffix in TYPES and path.is_file())


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Serve a project for tests that change nothing."""
    with serving(tmp_path_factory.mktemp("pages") / "shop") as served:
        yield served


def fetch(daemon: Daemon, path: str, *, host: str | None = None, method: str = "GET", **headers: str) -> Reply:
    """Ask without any token."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE)
    try:
        named = {"Host": host or f"{page_host(daemon)}"} | {k.replace("_", "-"): v for k, v in headers.items()}
        connection.request(method, path, headers=named)
        response = connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


def page_host(daemon: Daemon) -> str:
    """Return the name and port at which the page lives."""
    said = json.loads(daemon.project.daemon_file.read_text())
    return str(said["page"]).removeprefix("http://")


def test_every_file_of_the_page_is_served_to_anyone_with_all_headers(daemon: Daemon) -> None:
    for path in FILES:
        reply = fetch(daemon, f"/{path.relative_to(FOLDER).as_posix()}")
        assert reply.status == 200, path
        assert reply.body == path.read_bytes()
        assert reply.headers["content-type"] == TYPES[path.suffix]
        for name, value in HEADERS:
            assert reply.headers[name.decode()] == value.decode()


def test_the_policy_lets_no_inline_script_or_style_and_nothing_from_elsewhere_in() -> None:
    policy = dict(HEADERS)[b"content-security-policy"].decode()
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy


def test_no_markup_of_the_page_has_script_or_style_inline() -> None:
    for path in FILES:
        if path.suffix == ".html":
            text = path.read_text().lower()
            assert "<style" not in text and " style=" not in text and "javascript:" not in text
            assert all(part.lstrip().startswith(("src=", "type=")) for part in text.split("<script")[1:])


def test_the_page_is_at_the_root_and_is_the_same_for_all(daemon: Daemon) -> None:
    reply = fetch(daemon, "/")
    assert reply.status == 200 and reply.body == (FOLDER / "index.html").read_bytes()
    assert daemon.token.encode() not in reply.body


def test_a_head_is_answered_without_a_body(daemon: Daemon) -> None:
    whole, head = fetch(daemon, "/"), fetch(daemon, "/", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["etag"] == whole.headers["etag"]


def test_a_browser_that_has_a_file_is_not_sent_it_again(daemon: Daemon) -> None:
    first = fetch(daemon, "/")
    again = fetch(daemon, "/", If_None_Match=f'"other", W/{first.headers["etag"]}')
    assert (again.status, again.body) == (304, b"")
    assert again.headers["content-security-policy"] == first.headers["content-security-policy"]
    assert fetch(daemon, "/", If_None_Match='"other"').status == 200


def test_a_large_file_is_packed_for_who_takes_it(daemon: Daemon) -> None:
    large = max((path for path in FILES if path.suffix == ".js"), key=lambda path: path.stat().st_size)
    name = f"/{large.relative_to(FOLDER).as_posix()}"
    packed = fetch(daemon, name, Accept_Encoding="br, gzip;q=0.9")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == large.read_bytes()
    for refused in ("identity", "gzip;q=0", ""):
        assert "content-encoding" not in fetch(daemon, name, Accept_Encoding=refused).headers


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/js/../../server.py",
        "/%2e%2e/server.py",
        "/js/%2e%2e/%2e%2e/server.py",
        "/..%2fserver.py",
        "//etc/passwd",
        "/js",
        "/js/",
        "/.git/covey/owner.token",
        "/index.html%00.js",
        "/INDEX.HTML",
    ],
)
def test_nothing_but_the_table_can_be_had(daemon: Daemon, path: str) -> None:
    reply = fetch(daemon, path)
    assert reply.status == 401, reply
    assert set(reply.json) == {"error", "hint"}


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_who_asks_at_an_address_that_others_share_is_sent_to_the_name_of_the_page(daemon: Daemon, name: str) -> None:
    for path in ("/", "/index.html"):
        reply = fetch(daemon, path, host=f"{name}:{daemon.port}")
        assert reply.status == 307
        assert reply.headers["location"] == f"http://{page_host(daemon)}/"


def test_a_foreign_host_gets_no_page(daemon: Daemon) -> None:
    assert fetch(daemon, "/", host=f"evil.example:{daemon.port}").status == 421


def test_a_page_cannot_be_posted_to(daemon: Daemon) -> None:
    assert fetch(daemon, "/", method="POST").status == 401


def test_a_file_that_was_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text("one")
    (tmp_path / "secret.token").write_text("never")
    pages = Pages(tmp_path)
    assert "/secret.token" not in pages.paths
    assert asyncio.run(pages.answer("/", {})).body == b"one"
    path.write_text("three")
    os.utime(path, ns=(1, 1))
    assert asyncio.run(pages.answer("/", {})).body == b"three"


def test_the_wheel_has_every_file_of_the_page(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"covey/web/page/{path.relative_to(FOLDER).as_posix()}" for path in FILES} <= names
