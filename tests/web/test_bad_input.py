"""Bad input: each a 4xx with one sentence and a hint, and an unchanged board."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.worlds.serving import PATIENCE, Client, Daemon, Gone, Reply, check_database, serving

pytestmark = pytest.mark.xdist_group("bad-input")

LEAKS = re.compile(r"traceback|File \"|line \d+, in|sqlite|apsw|msgspec|exception|errno|0x[0-9a-f]{6}", re.IGNORECASE)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Serve a board with a few tasks, one of them held by ada."""
    with serving(tmp_path_factory.mktemp("bad") / "repo") as served:
        with served.client() as client:
            client.post("/api/board", {"title": "First"})
            client.post("/api/board", {"title": "Second", "needs": ["T-1"]})
            client.post("/api/board", {"title": "Third", "needs": ["T-2"]})
            client.post("/api/board", {"title": "Held", "kind": "report"})
            client.post("/api/sessions", {"name": "ada"})
            client.post("/api/board/T-4/claim", {"session": "ada"})
            client.post("/api/leases", {"session": "ada", "resources": ["src/**"]})
            client.post("/api/mail", {"to": "ada", "text": "Hello"})
        yield served


def check_problem(reply: Reply, status: int | tuple[int, ...]) -> None:
    """Check that a refusal is one sentence with a hint, and tells nothing of our insides."""
    statuses = (status,) if isinstance(status, int) else status
    assert reply.status in statuses, f"{reply.status}: {reply.body[:300]!r}"
    assert reply.headers["content-type"].startswith("application/json")
    said = reply.json
    assert set(said) == {"error", "hint"}
    for text in said.values():
        assert "\n" not in text and "\r" not in text and "\0" not in text
        assert not LEAKS.search(text), text
    assert said["error"].strip() and len(said["error"]) < 600
    assert said["error"].endswith((".", "?", "!"))


@dataclass(frozen=True)
class Bad:
    """A request that has to be refused."""

    what: str
    status: int | tuple[int, ...]
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def bad_title(what: str, title: Any) -> Bad:
    """Return a task with a title that cannot be."""
    return Bad(what, 400, "POST", "/api/board", {"title": title})


def bad_name(what: str, name: Any) -> Bad:
    """Return a claim in a name that cannot be."""
    return Bad(what, 400, "POST", "/api/claim", {"session": name})


SQL = "T-1'; DROP TABLE tasks; --"
BODIES = [
    Bad("malformed JSON", 400, "POST", "/api/board", b'{"title": "x"'),
    Bad("no JSON at all", 400, "POST", "/api/board", b"title=x"),
    Bad("two values", 400, "POST", "/api/board", b'{"title": "x"} {"title": "y"}'),
    Bad("a field twice", 400, "POST", "/api/board", b'{"title": "x", "title": "y"}'),
    Bad("a field twice, spelt otherwise", 400, "POST", "/api/board", b'{"title": "x", "t\\u0069tle": "y"}'),
    Bad("a field twice within", 400, "POST", "/api/board/import", b'{"tasks": [{"title": "x", "title": "y"}]}'),
    Bad("a list for an object", 400, "POST", "/api/board", []),
    Bad("null for an object", 400, "POST", "/api/board", b"null"),
    Bad("not UTF-8", 400, "POST", "/api/board", b'{"title": "\xff\xfe"}'),
    Bad("a lone surrogate", 400, "POST", "/api/board", b'{"title": "a\\ud800b"}'),
    Bad("a lone surrogate in a body", 400, "POST", "/api/board", b'{"title": "a", "body": "\\udfff"}'),
    Bad("deeply nested", 400, "POST", "/api/board", b"[" * 100_000 + b"]" * 100_000),
    Bad("a deeply nested field", 400, "POST", "/api/board", b'{"needs": ' + b"[" * 90_000 + b"]" * 90_000 + b"}"),
    Bad("a deeply nested unknown", 400, "POST", "/api/board", b'{"x": ' + b'{"a":' * 90_000 + b"1" + b"}" * 90_001),
    Bad("NaN", 400, "POST", "/api/board", b'{"title": "x", "priority": NaN}'),
    Bad("an empty body", 400, "POST", "/api/board", b""),
    Bad("an unknown field", 400, "POST", "/api/board", {"title": "x", "colour": "red"}),
    Bad("an unknown status", 400, "POST", "/api/board", {"title": "x", "status": "flying"}),
    Bad("a status that is not chosen", 400, "POST", "/api/board", {"title": "x", "status": "done"}),
    Bad("an unknown kind", 400, "POST", "/api/board", {"title": "x", "kind": "dream"}),
    Bad("a text for a number", 400, "POST", "/api/board", {"title": "x", "priority": "high"}),
    Bad("a fraction for a number", 400, "POST", "/api/board", {"title": "x", "priority": 1.5}),
    Bad("a number beyond all", 400, "POST", "/api/board", b'{"title": "x", "priority": 1' + b"0" * 5000 + b"}"),
    Bad("a text for a list", 400, "POST", "/api/board", {"title": "x", "needs": "T-1"}),
    Bad("a number for an id", 400, "POST", "/api/board", {"title": "x", "needs": [1]}),
    Bad("a text for a truth", 400, "POST", "/api/board", {"title": "x", "overlap": "yes"}),
    Bad("a negative budget", 400, "POST", "/api/board", {"title": "x", "budget": -1}),
    Bad("501 needs", 400, "POST", "/api/board", {"title": "x", "needs": ["T-1"] * 501}),
    Bad("a body of 300 KiB", 400, "POST", "/api/board", {"title": "x", "body": "b" * 300_000}),
    Bad("a body with NUL", 400, "POST", "/api/board", {"title": "x", "body": "a\0b"}),
    Bad("a body with an escape", 400, "POST", "/api/board", {"title": "x", "body": "a\x1b[2Jb"}),
    Bad("a glob that is none", 400, "POST", "/api/board", {"title": "x", "scope": ["src/[a"]}),
    Bad("a glob with NUL", 400, "POST", "/api/board", {"title": "x", "scope": ["src/\0"]}),
    Bad("a glob out of the repository", 400, "POST", "/api/board", {"title": "x", "scope": ["../etc/**"]}),
    bad_title("no title", ""),
    bad_title("a blank title", "   "),
    bad_title("a title of null", None),
    bad_title("a title of a number", 7),
    bad_title("a title with NUL", "a\0b"),
    bad_title("a title with a tab", "a\tb"),
    bad_title("a title of two lines", "a\nb"),
    bad_title("a title that ends in a line break", "a\n"),
    bad_title("a title with DEL", "a\x7fb"),
    bad_title("a title with a line separator", "a\u2028b"),
    bad_title("a title of 501 characters", "a" * 501),
    bad_title("a title of 100,000 characters", "a" * 100_000),
    bad_name("a name of 300 characters", "a" * 300),
    bad_name("an empty name", ""),
    bad_name("a name with a blank", "a b"),
    bad_name("a name that is a path", "../../etc/passwd"),
    bad_name("a name that is SQL", SQL),
    bad_name("a name that ends in a line break", "ada\n"),
    bad_name("a name with NUL", "a\0"),
    bad_name("a name with a dash first", "-rf"),
    bad_name("a name of a number", 5),
    Bad("a session called covey", (400, 403), "POST", "/api/claim", {"session": "covey"}),
    Bad("a session called everyone", (400, 403), "POST", "/api/claim", {"session": "everyone"}),
    Bad("a new session called owner", 400, "POST", "/api/sessions", {"name": "owner"}),
    Bad("a name of 300 characters", 400, "POST", "/api/sessions", {"name": "n" * 300}),
    Bad("a role of 300 characters", 400, "POST", "/api/sessions", {"name": "n", "role": "n" * 300}),
    Bad("a negative limit of work", 400, "POST", "/api/sessions", {"name": "n", "wip": -1}),
    Bad("a need that is unknown", 400, "POST", "/api/board", {"title": "x", "needs": ["T-999"]}),
    Bad("a need that is SQL", 400, "POST", "/api/board", {"title": "x", "needs": [SQL]}),
    Bad("a need with a line break", 400, "POST", "/api/board", {"title": "x", "needs": ["T-1\n"]}),
    Bad("a parent that is unknown", 400, "POST", "/api/board", {"title": "x", "parent": "T-999"}),
    Bad("a self-need", 400, "PATCH", "/api/board/T-1", {"needs": ["T-1"]}),
    Bad("a self-need of a new task", 400, "POST", "/api/board", {"title": "x", "needs": ["T-5"]}),
    Bad("a cycle of two", 400, "PATCH", "/api/board/T-1", {"needs": ["T-2"]}),
    Bad("a cycle of three", 400, "PATCH", "/api/board/T-1", {"needs_any": ["T-3"]}),
    Bad("an ancestor of itself", 400, "PATCH", "/api/board/T-1", {"parent": "T-1"}),
    Bad("an unknown status in an edit", 400, "PATCH", "/api/board/T-1", {"status": "nowhere"}),
    Bad("a title of null in an edit", 400, "PATCH", "/api/board/T-1", {"title": None}),
    Bad("a need that is unknown in an import", 400, "POST", "/api/board/import",
        {"tasks": [{"key": "a", "title": "A"}, {"key": "b", "title": "B", "needs": ["zzz"]}]}),
    Bad("an import of nothing", 400, "POST", "/api/board/import", {"tasks": []}),
    Bad("a key of 600 characters", 400, "POST", "/api/board/import", {"tasks": [{"key": "k" * 600, "title": "A"}]}),
    Bad("a stale fence", 409, "POST", "/api/board/T-4/handin", {"session": "ada", "fence": 7}),
    Bad("the fence from before the first claim", 409, "POST", "/api/board/T-4/handin", {"session": "ada", "fence": 0}),
    Bad("a fence beyond all", 400, "POST", "/api/board/T-4/handin", {"session": "ada", "fence": 2**64}),
    Bad("a claim of what is held", 409, "POST", "/api/board/T-4/claim", {"session": "bob"}),
    Bad("a claim of what waits", 409, "POST", "/api/board/T-2/claim", {"session": "bob"}),
    Bad("another's hand-in", 409, "POST", "/api/board/T-4/handin", {"session": "bob", "fence": 1}),
    Bad("a commit that is none", 400, "POST", "/api/board/T-4/handin", {"session": "ada", "commit": "main; rm -rf"}),
    Bad("a branch that is none", 400, "POST", "/api/board/T-4/handin", {"session": "ada", "branch": "a b~^"}),
    Bad("a lease on nothing", 400, "POST", "/api/leases", {"resources": []}),
    Bad("a lease on a path outside", 400, "POST", "/api/leases", {"resources": ["../../etc"]}),
    Bad("a lease on NUL", 400, "POST", "/api/leases", {"resources": ["a\0b"]}),
    Bad("a lease of no time", 400, "POST", "/api/leases", {"resources": ["a"], "ttl": 0}),
    Bad("a lease for ever", 400, "POST", "/api/leases", {"resources": ["a"], "ttl": 1e300}),
    Bad("a lease for an unknown task", 404, "POST", "/api/leases", {"resources": ["a"], "task": "T-999"}),
    Bad("a lease that is held", 409, "POST", "/api/leases", {"resources": ["src/a.py"], "session": "bob"}),
    Bad("mail to nobody", 404, "POST", "/api/mail", {"to": "nobody", "text": "x"}),
    Bad("mail to a path", 400, "POST", "/api/mail", {"to": "../ada", "text": "x"}),
    Bad("mail of nothing", 400, "POST", "/api/mail", {"to": "ada", "text": ""}),
    Bad("mail with NUL", 400, "POST", "/api/mail", {"to": "ada", "text": "a\0"}),
    Bad("mail as covey", (400, 403), "POST", "/api/mail", {"to": "ada", "text": "x", "session": "covey"}),
    Bad("mail of 100,000 characters", 400, "POST", "/api/mail", {"to": "ada", "text": "x" * 100_000}),
]  # fmt: skip

IDS = [
    "T-999", "T-0", "T-01", "t-1", "T-1%20", "T-1%0A", "T-1%00", "%00", "T-%F0%9F%90%A6", "T-1%ED%A0%80", "%FF",
    "..", ".", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2Fetc%2Fpasswd", "T-1'%20OR%20'1'='1", "T-1%27%3BDROP%20TABLE",
    "T-1;--", "%25", "x" * 300, "T-" + "9" * 300, "T-99999999999999999999", "*", "%2A", "null", "-1", "1",
]  # fmt: skip

PATHS = [
    *[Bad(f"a task {name[:40]}", (400, 404), "GET", f"/api/board/{name}") for name in IDS],
    *[Bad(f"a claim of {name[:40]}", (400, 404), "POST", f"/api/board/{name}/claim", {}) for name in IDS],
    *[Bad(f"a lease {name[:40]}", (400, 404), "POST", f"/api/leases/{name}/give", {}) for name in IDS],
    *[Bad(f"a message {name[:40]}", (400, 404), "POST", f"/api/mail/{name}/ack", {}) for name in IDS],
    *[Bad(f"a merge {name[:40]}", (400, 404), "POST", f"/api/merges/{name}/approve", {}) for name in IDS],
    *[Bad(f"a session {name[:40]}", (400, 404), "POST", f"/api/sessions/{name}/token", {}) for name in IDS],
    Bad("a file that the page has not", 404, "GET", "/js/nothing.js"),
    Bad("an unknown path", 404, "GET", "/api/nothing"),
    Bad("an unknown verb", 404, "POST", "/api/board/T-1/steal", {}),
    Bad("a path too deep", 404, "POST", "/api/board/T-1/claim/again", {}),
    Bad("a path without its id", 404, "POST", "/api/board//claim", {}),
    Bad("a slash in a name", 404, "POST", "/api/board/T-1%2fclaim", {}),
    Bad("a slash for another", 404, "GET", "/api%2Fboard/T-1"),
    Bad("a slash too many", 404, "GET", "/api/board/"),
    Bad("a path of 8,000 characters", 404, "GET", "/api/" + "x" * 8000),
]

QUERIES = [
    *[Bad(f"the board with {query[:40]}", 400, "GET", f"/api/board?{query}") for query in (
        "limit=0", "limit=-1", "limit=1001", "limit=9999", "limit=ten", "limit=1.5", "limit=", "limit=1&limit=2",
        "limit=%00", "colour=red", "status=flying", "status=", "session=a%20b", "session=" + "a" * 300,
        "after=..%2F", "after=T-1%0A", "after=1", "limit=" + "9" * 5000,
    )],
    *[Bad(f"the log with {query[:40]}", 400, "GET", f"/api/log?{query}") for query in (
        "limit=0", "after=-1", "after=x", "before=99999999999999999999", "kind=nothing", "kind=task.claimed'--",
        "kind=%25.", "since=yesterday", "since=nan", "until=inf", "since=-1", "newest=perhaps", "origin=zz",
        "subject=%00", "subject=", "actor=a%20b", "colour=red", "after=1&after=2",
    )],
    *[Bad(f"mail with {query[:40]}", 400, "GET", f"/api/mail?{query}") for query in (
        "limit=0", "limit=9999", "session=..%2F", "all=perhaps", "after=-1", "x=1",
    )],
    Bad("a board after what is not there", 404, "GET", "/api/board?after=T-999"),
    Bad("leases with a limit", 400, "GET", "/api/leases?limit=1"),
    Bad("alerts with limit 0", 400, "GET", "/api/alerts?limit=0"),
    Bad("merges with limit 9999", 400, "GET", "/api/merges?limit=9999"),
    Bad("status with anything", 400, "GET", "/api/status?a=1"),
    Bad("sessions with anything", 400, "GET", "/api/sessions?a"),
    Bad("a task with anything", 400, "GET", "/api/board/T-1?a=1"),
    Bad("a change with a query", 400, "POST", "/api/board?title=x", {"title": "x"}),
]  # fmt: skip

HEADERS = [
    Bad("a Last-Event-ID of a text", 400, "GET", "/api/events", None, {"Last-Event-ID": "yesterday"}),
    Bad("a negative Last-Event-ID", 400, "GET", "/api/events", None, {"Last-Event-ID": "-1"}),
    Bad("a follower who looks perhaps", 400, "GET", "/api/events?live=perhaps"),
    Bad("a Last-Event-ID beyond all", 400, "GET", "/api/events", None, {"Last-Event-ID": "9" * 30}),
    Bad("another protocol", 426, "GET", "/api/status", None, {"Covey-Protocol": "0"}),
    Bad("a protocol of a text", 426, "POST", "/api/board", {"title": "x"}, {"Covey-Protocol": "new"}),
    Bad("an empty key", 400, "POST", "/api/board", {"title": "x"}, {"Idempotency-Key": ""}),
    Bad("a key of 201 characters", 400, "POST", "/api/board", {"title": "x"}, {"Idempotency-Key": "k" * 201}),
    Bad("a key with a letter beyond ASCII", 400, "POST", "/api/board", {"title": "x"}, {"Idempotency-Key": "cl\xe9"}),
    Bad("a key with a tab", 400, "POST", "/api/board", {"title": "x"}, {"Idempotency-Key": "a\tb"}),
    Bad("no token", 401, "GET", "/api/board", None, {"Authorization": ""}),
    Bad("a wrong token", 401, "GET", "/api/board", None, {"Authorization": "Bearer wrong"}),
    Bad("a token of another kind", 401, "POST", "/api/board", {"title": "x"}, {"Authorization": "Basic b3duZXI6eA=="}),
    Bad("an empty token", 401, "POST", "/api/board", {"title": "x"}, {"Authorization": "Bearer "}),
    Bad("a token of odd bytes", 401, "GET", "/api/board", None, {"Authorization": "Bearer \xff\xfe"}),
    Bad("a long token", 401, "GET", "/api/board", None, {"Authorization": "Bearer " + "x" * 20_000}),
    Bad("no token for the stream", 401, "GET", "/api/events", None, {"Authorization": ""}),
    Bad("no token for the description", 401, "GET", "/api/openapi.json", None, {"Authorization": ""}),
    Bad("a foreign host", 421, "GET", "/api/board", None, {"Host": "evil.example"}),
    Bad("a host that was rebound", 421, "POST", "/api/board", {"title": "x"}, {"Host": "evil.example:80"}),
    Bad("our host, another port", 421, "GET", "/api/board", None, {"Host": "127.0.0.1:1"}),
    Bad("our host with a tail", 421, "GET", "/api/board", None, {"Host": "localhost.evil.example"}),
    Bad("an empty host", 421, "GET", "/api/board", None, {"Host": ""}),
    Bad("a foreign origin", 403, "POST", "/api/board", {"title": "x"}, {"Origin": "https://evil.example"}),
    Bad("no origin", 403, "POST", "/api/board", {"title": "x"}, {"Origin": "null"}),
    Bad("an origin on another port", 403, "POST", "/api/board", {"title": "x"}, {"Origin": "http://127.0.0.1:3000"}),
    Bad("an origin on no port", 403, "GET", "/api/board", None, {"Origin": "http://localhost"}),
]

METHODS = [
    Bad("DELETE of the board", 405, "DELETE", "/api/board"),
    Bad("PUT of a task", 405, "PUT", "/api/board/T-1", {"title": "x"}),
    Bad("GET of a claim", 405, "GET", "/api/board/T-1/claim"),
    Bad("POST of the log", 405, "POST", "/api/log", {}),
    Bad("POST of the stream", 405, "POST", "/api/events", {}),
    Bad("PUT of the description", 405, "PUT", "/api/openapi.json", {}),
    Bad("OPTIONS of the board", 405, "OPTIONS", "/api/board"),
]


def ask(daemon: Daemon, bad: Bad) -> Reply:
    """Send a bad request."""
    with daemon.client() as client:
        return client.ask(bad.method, bad.path, bad.body, headers=bad.headers)


@pytest.mark.parametrize("bad", [*BODIES, *PATHS, *QUERIES, *HEADERS, *METHODS], ids=lambda bad: bad.what)
def test_bad_input_is_refused_in_one_sentence_and_changes_nothing(daemon: Daemon, bad: Bad) -> None:
    before = daemon.seq()
    check_problem(ask(daemon, bad), bad.status)
    assert daemon.seq() == before


def test_a_refusal_does_not_speak_of_null_to_who_sent_something_else(daemon: Daemon) -> None:
    reply = daemon.ask("POST", "/api/board/T-4/handin", {"session": "ada", "fence": "1"})
    assert reply.json["error"] == "fence must be a whole number, not text."


@pytest.mark.parametrize("bad", METHODS, ids=lambda bad: bad.what)
def test_a_wrong_method_names_those_that_are_allowed(daemon: Daemon, bad: Bad) -> None:
    allowed = ask(daemon, bad).headers["allow"].split(", ")
    assert allowed and set(allowed) <= {"GET", "POST", "PATCH"} and bad.method not in allowed


def test_an_unknown_token_is_told_which_kind_is_wanted(daemon: Daemon) -> None:
    reply = daemon.ask("GET", "/api/board", headers={"Authorization": "Bearer wrong"})
    assert reply.headers["www-authenticate"] == "Bearer"


def test_our_own_names_and_pages_may_ask(daemon: Daemon) -> None:
    own = f"repo-{daemon.ask('GET', '/api/status').json['log'][:6]}.localhost"
    for name in ("127.0.0.1", "localhost", own, own.upper()):
        host = f"{name}:{daemon.port}"
        for headers in ({"Host": host}, {"Origin": f"http://{host}"}, {"Host": host, "Origin": f"http://{host}"}):
            assert daemon.ask("GET", "/api/board", headers=headers).status == 200, headers


# A session that reaches beyond itself


FOREIGN = [
    Bad("a claim for another", 403, "POST", "/api/claim", {"session": "ada"}),
    Bad("a claim by id for another", 403, "POST", "/api/board/T-1/claim", {"session": "ada"}),
    Bad("another's hand-in", 403, "POST", "/api/board/T-4/handin", {"session": "ada", "fence": 1}),
    Bad("another's task", 409, "POST", "/api/board/T-4/handin", {"fence": 1}),
    Bad("a release of another's task", 409, "POST", "/api/board/T-4/release", {"fence": 1}),
    Bad("a hand-in without a fence", 400, "POST", "/api/board/T-4/handin", {}),
    Bad("mail as another", 403, "POST", "/api/mail", {"session": "ada", "to": "owner", "text": "x"}),
    Bad("mail as the owner", 403, "POST", "/api/mail", {"session": "owner", "to": "ada", "text": "x"}),
    Bad("another's inbox", 403, "GET", "/api/mail?session=ada"),
    Bad("a lease for another", 403, "POST", "/api/leases", {"session": "ada", "resources": ["x"]}),
    Bad("a new session", 403, "POST", "/api/sessions", {"name": "eve"}),
    Bad("another's token", 403, "POST", "/api/sessions/ada/token", {}),
    Bad("its own token", 403, "POST", "/api/sessions/mallory/token", {}),
]


@pytest.fixture(scope="module")
def mallory(daemon: Daemon) -> Iterator[Client]:
    """Yield a client that speaks for the session mallory."""
    with daemon.client() as client:
        client.post("/api/sessions", {"name": "mallory"})
        token = client.post("/api/sessions/mallory/token")["token"]
    with daemon.client(token) as client:
        yield client


@pytest.mark.parametrize("bad", FOREIGN, ids=lambda bad: bad.what)
def test_a_session_cannot_act_for_another(daemon: Daemon, mallory: Client, bad: Bad) -> None:
    before = daemon.seq()
    check_problem(mallory.ask(bad.method, bad.path, bad.body), bad.status)
    assert daemon.seq() == before


# What only a raw socket can say


def talk(daemon: Daemon, *parts: bytes) -> Reply:
    """Send bytes as they are and return the answer."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE) as raw:
        for part in parts:
            raw.sendall(part)
        return read_reply(raw)


def read_reply(raw: socket.socket) -> Reply:
    """Read until the other side has said all, or hung up."""
    data = b""
    while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < length_of(data):
        part = raw.recv(65536)
        if not part:
            break
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    whole = length_of(head) if b"content-length" in head.lower() else len(body)
    return Reply(int(first.split()[1]), headers, body[:whole])  # bytes without a length may be refused a second time


def length_of(data: bytes) -> int:
    """Return the length that the head of an answer promises."""
    found = re.search(rb"content-length: (\d+)", data.lower())
    return int(found[1]) if found else 0


def head(daemon: Daemon, *lines: str, first: str = "POST /api/board HTTP/1.1") -> bytes:
    """Return the head of a request with the owner's token and these lines."""
    all_lines = [first, f"Host: 127.0.0.1:{daemon.port}", f"Authorization: Bearer {daemon.token}", *lines]
    return "\r\n".join(all_lines).encode("latin-1") + b"\r\n\r\n"


RAW: list[tuple[str, int | tuple[int, ...], list[str], bytes]] = [
    ("a negative length", 400, ["Content-Length: -1"], b""),
    ("a length of a text", 400, ["Content-Length: many"], b""),
    ("a length with a sign", 400, ["Content-Length: +5"], b"{}"),
    ("a length beyond all", (400, 413), ["Content-Length: " + "9" * 40], b""),
    ("a length of a terabyte", 413, ["Content-Length: 1099511627776"], b""),
    ("two lengths", 400, ["Content-Length: 2", "Content-Length: 3"], b"{}"),
    ("a length and chunks", 400, ["Content-Length: 2", "Transfer-Encoding: chunked"], b"{}"),
    ("no length", 400, [], b'{"title": "x"}'),
    ("no length of a body that is announced", 400, ["Content-Type: application/json"], b'{"title": "x"}'),
    ("two hosts", 400, ["Host: evil.example", "Content-Length: 14"], b'{"title": "x"}'),
    ("two origins", 400, ["Origin: null", "Origin: http://localhost", "Content-Length: 14"], b'{"title": "x"}'),
    ("two tokens", 400, ["Authorization: Bearer x", "Content-Length: 14"], b'{"title": "x"}'),
    ("two keys", 400, ["Idempotency-Key: a", "Idempotency-Key: b", "Content-Length: 14"], b'{"title": "x"}'),
    ("a chunk that is none", 400, ["Transfer-Encoding: chunked"], b"zz\r\n{}\r\n0\r\n\r\n"),
    ("a negative chunk", 400, ["Transfer-Encoding: chunked"], b"-1\r\n{}\r\n0\r\n\r\n"),
    ("a chunk beyond all", 400, ["Transfer-Encoding: chunked"], b"f" * 40 + b"\r\n{}"),
    ("an unknown coding", 400, ["Transfer-Encoding: gzip"], b"{}"),
    ("a header with NUL", 400, ["X: a\0b"], b""),
    ("a header without a name", 400, [": x"], b""),
]  # fmt: skip


@pytest.mark.parametrize(("what", "status", "lines", "body"), RAW, ids=[what for what, *_ in RAW])
def test_a_request_whose_length_cannot_be_believed_is_refused(
    daemon: Daemon, what: str, status: int | tuple[int, ...], lines: list[str], body: bytes
) -> None:
    before = daemon.seq()
    check_problem(talk(daemon, head(daemon, *lines), body), status)
    assert daemon.seq() == before


def test_a_request_without_a_body_may_say_what_its_body_would_be(daemon: Daemon) -> None:
    first = "POST /api/board/T-1/reopen HTTP/1.1"
    reply = talk(daemon, head(daemon, "Content-Type: application/json", first=first))
    assert (reply.status, json.loads(reply.body)["id"]) == (200, "T-1")


FIRST_LINES = [
    "POST /api/board HTTP/9.9",
    "POST",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "GET /api/board/T-\xe9\xff HTTP/1.1",
    "GET http://[ HTTP/1.1",
    "BREW /api/board HTTP/1.1",
    "GET * HTTP/1.1",
    "CONNECT 127.0.0.1:22 HTTP/1.1",
]


@pytest.mark.parametrize("first", FIRST_LINES)
def test_what_is_no_request_is_refused(daemon: Daemon, first: str) -> None:
    before = daemon.seq()
    reply = talk(daemon, head(daemon, first=first))
    check_problem(reply, (400, 404, 405, 421))
    assert daemon.seq() == before


@pytest.mark.parametrize("endless", [b"x" * 0x10000, b"X-More: yes\r\n" * 5000], ids=["one header", "many headers"])
def test_a_head_without_end_is_refused(daemon: Daemon, endless: bytes) -> None:
    begun = head(daemon).removesuffix(b"\r\n") + b"X-First: "
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE) as raw:
        raw.sendall(begun)
        pump = threading.Thread(target=send_for_ever, args=(raw, endless))
        pump.start()
        reply = read_reply(raw)
        with contextlib.suppress(OSError):
            raw.shutdown(socket.SHUT_RDWR)
        pump.join()
    check_problem(reply, 431)


def test_a_body_of_two_mebibytes_is_too_large(daemon: Daemon) -> None:
    before = daemon.seq()
    body = json.dumps({"title": "x", "body": "b" * 2 * 1024 * 1024}).encode()
    reply = talk(daemon, head(daemon, f"Content-Length: {len(body)}"))
    check_problem(reply, 413)
    assert reply.headers["connection"] == "close"
    assert daemon.seq() == before


def test_chunks_without_end_are_too_large(daemon: Daemon) -> None:
    before = daemon.seq()
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE) as raw:
        raw.sendall(head(daemon, "Transfer-Encoding: chunked"))
        pump = threading.Thread(target=send_for_ever, args=(raw, chunk))
        pump.start()
        reply = read_reply(raw)
        with contextlib.suppress(OSError):
            raw.shutdown(socket.SHUT_RDWR)
        pump.join()
    check_problem(reply, 413)
    assert daemon.seq() == before


def send_for_ever(raw: socket.socket, chunk: bytes) -> None:
    """Send until the other side has had enough."""
    try:
        while True:
            raw.sendall(chunk)
    except Gone:
        return


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Serve a board to those who are quick."""
    soon = {
        "covey.web.asgi.BODY_TIMEOUT_S": 1.0,
        "covey.web.http.HEAD_TIMEOUT_S": 0.5,
        "covey.web.http.KEEP_ALIVE_S": 1,
    }
    with serving(tmp_path_factory.mktemp("hurried") / "repo", constants=soon) as served:
        yield served


@pytest.mark.parametrize(
    ("begun", "drop"),
    [(["Transfer-Encoding: chunked"], b"1\r\n \r\n"), (None, b"X-More: yes\r\n")],
    ids=["body", "head"],
)
def test_what_drips_is_too_slow(hurried: Daemon, begun: list[str] | None, drop: bytes) -> None:
    ended = threading.Event()
    before = hurried.seq()
    with socket.create_connection(("127.0.0.1", hurried.port), timeout=PATIENCE) as raw:
        raw.sendall(head(hurried).removesuffix(b"\r\n") if begun is None else head(hurried, *begun))
        drip = threading.Thread(target=drip_until, args=(raw, ended, drop))
        drip.start()
        reply = read_reply(raw)
        ended.set()
        drip.join()
    check_problem(reply, 408)
    assert hurried.seq() == before


def test_a_connection_on_which_nothing_is_asked_is_closed_in_its_time(hurried: Daemon) -> None:
    with socket.create_connection(("127.0.0.1", hurried.port), timeout=PATIENCE) as raw:
        assert raw.recv(1) == b""


def test_a_body_that_came_without_its_length_is_not_taken_for_none(daemon: Daemon) -> None:
    before = daemon.seq()
    claim = head(daemon, first="POST /api/claim HTTP/1.1") + b'{"session": "bob"}'
    check_problem(talk(daemon, claim), 400)
    assert daemon.seq() == before


def test_a_client_that_offers_another_protocol_is_answered_in_ours_with_its_body_read(daemon: Daemon) -> None:
    offer = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"]
    bad = b'{"title": "", "body": ""}'
    first = head(daemon, *offer, f"Content-Length: {len(bad)}") + bad
    second = head(daemon, *offer, "Connection: close", first="GET /api/board/T-1 HTTP/1.1")
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE) as raw:
        raw.sendall(first)
        reply = read_reply(raw)
        check_problem(reply, 400)
        assert reply.json["error"] == "title must not be empty."
        raw.sendall(second[:150])
        raw.sendall(second[150:])
        assert read_reply(raw).good()["id"] == "T-1"


def drip_until(raw: socket.socket, ended: threading.Event, drop: bytes) -> None:
    """Send one byte now and then."""
    while not ended.wait(0.2):
        try:
            raw.sendall(drop)
        except Gone:
            return


def test_a_daemon_that_met_all_this_still_has_a_sound_board(daemon: Daemon) -> None:
    assert check_database(daemon.project) == daemon.seq()
    said = (daemon.project.state / "daemon.log").read_text()
    assert "Traceback" not in said, said[-3000:]
