"""Claims end: a silent outside session loses its task after its time, one that is heard of keeps it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.worlds.serving import Daemon, Follower, serving, wait_until


@contextmanager
def renewing(daemon: Daemon, task: str, session: str, fence: int) -> Iterator[None]:
    """Renew a claim several times a second."""
    over = threading.Event()

    def renew() -> None:
        with daemon.client() as client:
            while not over.wait(0.2):
                client.post(f"/api/board/{task}/renew", {"session": session, "fence": fence})

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def told(follower: Follower, task: str) -> list[tuple[str, str | None]]:
    """Return what was told of a task: its status and who has it, as it was at first and at each change."""
    rows = [row for frame in follower.of("board") for row in frame.data if row["id"] == task]
    return [(row["status"], row["session"]) for row in rows]


def test_a_silent_session_loses_its_claim_with_an_alert_and_a_renewing_one_keeps_it(tmp_path: Path) -> None:
    with serving(tmp_path / "repo", settings="[board]\nclaim_ttl = 5\n") as daemon, daemon.client() as client:
        for title in ("One", "Two"):
            client.post("/api/board", {"title": title})
        with Follower(daemon) as follower:
            kept = client.post("/api/board/T-1/claim", {"session": "awake"})["fence"]
            with renewing(daemon, "T-1", "awake", kept):
                lost = client.post("/api/board/T-2/claim", {"session": "asleep"})["fence"]
                follower.wait_for(
                    lambda _: bool(follower.of("alerts")) and told(follower, "T-2")[-1] == ("todo", None), "an alert"
                )
                held = client.get("/api/board/T-1")
            (alert,) = [frame.data for frame in follower.of("alerts")]
            assert (alert["type"], alert["session"]) == ("claim_expired", "asleep")
            assert "T-2" in alert["message"]
            assert told(follower, "T-2")[1:] == [("doing", "asleep"), ("todo", None)]
        assert (held["status"], held["session"], held["fence"]) == ("doing", "awake", kept)
        assert client.get("/api/alerts")[0]["message"] == alert["message"]
        late = client.ask("POST", "/api/board/T-2/handin", {"session": "asleep", "fence": lost})
        assert late.status == 409
        assert client.get("/api/board/T-2")["status"] == "todo"


def test_a_claim_of_the_owner_does_not_expire(tmp_path: Path) -> None:
    with serving(tmp_path / "repo", settings="[board]\nclaim_ttl = 1\n") as daemon, daemon.client() as client:
        for title in ("Mine", "Theirs"):
            client.post("/api/board", {"title": title})
        client.post("/api/board/T-1/claim", {})
        client.post("/api/board/T-2/claim", {"session": "asleep"})
        wait_until(lambda: client.get("/api/board/T-2")["status"] == "todo", "the end of the other claim")
        assert client.get("/api/board/T-1")["session"] == "owner"


def test_a_lease_of_a_silent_session_ends(tmp_path: Path) -> None:
    with serving(tmp_path / "repo") as daemon, daemon.client() as client:
        lease = client.post("/api/leases", {"session": "asleep", "resources": ["src/**"], "ttl": 1})
        assert client.ask("POST", "/api/leases", {"session": "bob", "resources": ["src/a"]}).status == 409
        wait_until(lambda: client.get("/api/leases") == [], "the end of the lease")
        assert client.post("/api/leases", {"session": "bob", "resources": ["src/a"]})["fence"] > lease["fence"]
