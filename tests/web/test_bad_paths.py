"""Paths that no disk can have, from whoever asks: refused or passed over, and never a bug."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.serving import Daemon, serving

PATHS = {
    "a long name": "/" + "a" * 5000,
    "many folders": "/a" * 5000,
    "a NUL": "/a\0b",
    "half a letter": "/\ud800",
    "a line end": "/a\nb",
    "a name of 300 letters": "x" * 300 + "/y.py",
    "nowhere": "../" * 2000,
    "a link of links": "/proc/self/fd/999999/x",
    "an option": "--upload-pack=x",
}
MOMENTS = ("SessionStart", "PreToolUse", "PostToolUse", "Stop", "UserPromptSubmit", "SessionEnd", "PermissionRequest")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Serve one board with a task and a session to all tests here."""
    with serving(tmp_path_factory.mktemp("paths") / "repo") as served:
        served.ask("POST", "/api/board", {"title": "One"}).good()
        yield served


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_hook_with_an_impossible_path_is_answered(daemon: Daemon, path: str, tmp_path: Path) -> None:
    session = "s" + format(abs(hash(path)), "x")[:12]
    token = daemon.ask("POST", f"/api/sessions/{session}/token", {}).json.get("token", daemon.token)
    for moment in MOMENTS:
        for cwd, file in ((path, "a.py"), (str(daemon.project.root), path), (path, path)):
            asked = {
                "session_id": "c", "hook_event_name": moment, "cwd": cwd, "transcript_path": path,
                "tool_name": "Write", "tool_input": {"file_path": file}, "source": "startup",
            }  # fmt: skip
            for who in (daemon.token, token):
                with daemon.client(who) as client:
                    reply = client.ask("POST", f"/hooks/{moment}", asked)
                assert reply.status < 500, (moment, cwd[:50], file[:50], reply.body)
    assert '"trace"' not in (daemon.project.state / "daemon.log").read_text()


def _asked(path: str) -> list[tuple[str, str, Any]]:
    return [
        ("POST", "/api/leases", {"session": "ada", "resources": [path]}),
        ("POST", "/api/board", {"title": "x", "scope": [path], "do_not_touch": [path]}),
        ("POST", "/api/merges", {"branch": path, "commit": "0" * 40, "title": "x"}),
        ("POST", "/api/comments", {"task": "T-1", "text": "x", "path": path, "line": 1}),
        ("POST", "/api/board/T-1/handin", {"session": "ada", "branch": path}),
        ("POST", "/api/sessions", {"name": path[:60]}),
        ("POST", "/api/messages", {"to": path, "text": path}),
    ]


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_an_impossible_path_in_a_request_is_answered(daemon: Daemon, path: str) -> None:
    from urllib.parse import quote

    for method, address, body in _asked(path):
        reply = daemon.ask(method, address, body)
        assert reply.status < 500, (address, reply.body)
    named = quote(path.encode(errors="replace"), safe="")[:8000]
    for address in (f"/api/board/T-1/diff?path={named}", f"/api/why?path={named}&text=x&commit={named[:60]}&line=1"):
        reply = daemon.ask("GET", address)
        assert reply.status < 500, (address[:60], reply.body)
    assert '"trace"' not in (daemon.project.state / "daemon.log").read_text()
