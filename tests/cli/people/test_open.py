"""covey open: the page in a browser, here and on a phone."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import urllib.parse
from pathlib import Path
from typing import Any

from covey.cli.people.open import drawn
from tests.worlds.serving import free_port
from tests.worlds.shell import Shell

CODE = re.compile(r"#code=[\w-]{22}")


def no_display(shell: Shell) -> Shell:
    """Return the shell of somebody who has no screen before them."""
    gone = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return Shell(shell.folder, {name: value for name, value in shell.env.items() if name not in gone})


def join(url: str, page: str, *, to: tuple[str, int], tls: bool = False) -> tuple[int, str]:
    """Show the code of an address as the page does; return the status and the secret."""
    connection = (
        http.client.HTTPSConnection(*to, timeout=60, context=ssl._create_unverified_context())
        if tls
        else http.client.HTTPConnection(*to, timeout=60)
    )
    parts = urllib.parse.urlsplit(url)
    headers = {"Host": parts.netloc, "Origin": page, "Sec-Fetch-Site": "same-origin"}
    body = json.dumps({"code": parts.fragment.removeprefix("code="), "label": "a test"})
    connection.request("POST", "/api/devices/join", body, headers)
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    return answer.status, said.get("secret") or ""


def test_open_starts_the_daemon_and_prints_the_address_where_there_is_no_screen(shell: Shell) -> None:
    printed = no_display(shell).ok("open")
    try:
        assert "works once" in printed and CODE.search(printed)
        assert json.loads((shell.state / "daemon.json").read_text())["page"] in printed
    finally:
        shell.ok("down")


def test_open_opens_a_browser_where_there_is_one(served: Shell, tmp_path: Path) -> None:
    told, browser = tmp_path / "told", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{told}.part" && mv "{told}.part" "{told}"\n')
    browser.chmod(0o755)
    printed = served.ok("open", env={"BROWSER": f"{browser} %s"})
    assert printed.startswith("Opened http://shop-") and not CODE.search(printed)
    assert CODE.search(told.read_text())


def test_a_browser_joins_is_listed_and_is_sent_away(served: Shell) -> None:
    url = served.ok("open", "--print").strip()
    page, port = url.partition("/#")[0], int(url.partition("/#")[0].rpartition(":")[2])
    assert served.ok("open", "--list") == "No browser may ask; covey open lets one in.\n"
    status, secret = join(url, page, to=("127.0.0.1", port))
    assert status == 201 and secret
    assert join(url, page, to=("127.0.0.1", port))[0] == 401
    (device,) = served.verb("device.list", "open", "--list")
    assert "a test" in served.ok("open", "--list")
    assert device["id"] in served.ok("open", "--revoke", device["id"])
    assert served.verb("device.list", "open", "--list") == []
    assert "sent away" in served.ok("open", "--list", "--all")
    assert "There is no device" in served.fails(4, "open", "--revoke", "device-999")


def test_browsers_can_be_listed_and_sent_away_without_a_daemon(shell: Shell) -> None:
    assert shell.json("open", "--list") == []
    assert "There is no device" in shell.fails(4, "open", "--revoke", "device-1")


def test_a_session_opens_nothing(served: Shell) -> None:
    served.ok("session", "new", "ada")
    token = served.json("session", "token", "ada")["token"]
    for words in (["open"], ["open", "--phone"], ["open", "--list"], ["open", "--revoke", "device-1"]):
        assert "for the owner" in served.fails(6, *words, env={"COVEY_TOKEN": token})


def test_options_that_do_not_go_together_are_refused(served: Shell) -> None:
    for words in (["--phone", "--print"], ["--list", "--phone"], ["--all"], ["--list", "--revoke", "device-1"]):
        assert "do not go together" in served.fails(2, "open", *words)


def test_a_phone_needs_a_daemon_that_it_can_reach(served: Shell) -> None:
    assert "covey up --bind" in served.fails(5, "open", "--phone")


def test_a_phone_joins_over_the_bind_under_a_name_that_is_kept(shell: Shell) -> None:
    port = free_port()
    up = shell.json("up", "--bind", f"127.0.0.1:{port}", "--name", f"phone.example:{port}")
    assert {"url", "token", "pid"} <= set(up)
    try:
        printed = shell.ok("open", "--phone")
        assert up["fingerprint"] in printed and f"https://phone.example:{port}/#code=" in printed
        invitation: Any = shell.verb("device.invite", "open", "--phone")
        assert drawn(invitation["qr"], coloured=False).splitlines()[0].strip("█") == ""
        page = f"https://phone.example:{port}"
        shared = invitation["url"].replace("phone.example", "127.0.0.1")
        assert join(shared, shared.partition("/#")[0], to=("127.0.0.1", port), tls=True)[0] == 403
        status, secret = join(invitation["url"], page, to=("127.0.0.1", port), tls=True)
        assert status == 201 and secret
        certificate = (shell.state / "tls" / "names").read_text()
        assert "DNS:phone.example" in certificate
    finally:
        shell.ok("down")
    shell.ok("up")  # as a tunnel in front of loopback would find it
    try:
        assert shell.verb("device.invite", "open", "--phone")["url"].startswith(page)
        refused = shell.fails(5, "up", "--name", "none")
        assert "running already" in refused
    finally:
        shell.ok("down")
    shell.ok("up", "--name", "none")
    try:
        shell.fails(5, "open", "--phone")
    finally:
        shell.ok("down")


def test_a_name_that_can_be_none_is_refused(shell: Shell) -> None:
    for name in ("https://box.example", "box.example:x", "a b", "", "box.example:0"):
        shell.fails(2, "up", "--name", name)


def test_a_code_is_drawn_two_rows_a_line() -> None:
    assert drawn(["10", "11", "01"], coloured=False) == " ▀\n█▄"
    assert drawn(["10", "11"], coloured=True) == "\x1b[30;107m█▄\x1b[0m"
