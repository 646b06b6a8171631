"""The names under which the daemon may be asked."""

from __future__ import annotations

import pytest

from covey.errors import Denied, Misdirected
from covey.web.addresses import Doors

DOORS = Doors({"127.0.0.1", "box.example"}, {20001: "http", 443: "https"})


def check(host: str, server: tuple[str, int], scheme: str, origin: str | None = None) -> None:
    headers = {b"host": host.encode()} | ({} if origin is None else {b"origin": origin.encode()})
    DOORS.check(headers, server, scheme)


@pytest.mark.parametrize(
    ("host", "server", "scheme", "origin"),
    [
        ("127.0.0.1:20001", ("127.0.0.1", 20001), "http", "http://127.0.0.1:20001"),
        ("BOX.example", ("10.0.0.9", 443), "https", "https://box.example"),
        ("box.example:443", ("10.0.0.9", 443), "https", "https://box.example:443"),
        ("10.0.0.9", ("10.0.0.9", 443), "https", "https://10.0.0.9"),
        ("[2001:db8::1]:8443", ("2001:db8::1", 8443), "https", "https://[2001:db8::1]:8443"),
    ],
)
def test_our_own_names_are_known_however_they_are_written(
    host: str, server: tuple[str, int], scheme: str, origin: str
) -> None:
    check(host, server, scheme)
    check(host, server, scheme, origin)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "", "box.example.evil.example"])
def test_a_foreign_host_is_refused(host: str) -> None:
    with pytest.raises(Misdirected):
        check(host, ("127.0.0.1", 20001), "http")


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:3000", "https://127.0.0.1:20001", "null"])
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    with pytest.raises(Denied):
        check("127.0.0.1:20001", ("127.0.0.1", 20001), "http", origin)
