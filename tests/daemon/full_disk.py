"""The story of a full disk, told in a mount namespace of its own: python -m tests.daemon.full_disk FOLDER."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.worlds.serving import Client, Daemon, Follower, Reply, check_database, make_repository, wait_until

MEGABYTE = 1024 * 1024
ROOM = 12 * MEGABYTE
PAGE = 4096


def fill(ballast: Path, leave: int) -> None:
    """Take all the room that is left, except for some bytes."""
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
        file.truncate(max(0, file.tell() - leave))


def check_refusal(reply: Reply) -> None:
    """A write without room is told so in one sentence."""
    assert reply.status == 503, (reply.status, reply.body[:300])
    assert set(reply.json) == {"error", "hint"} and "\n" not in reply.json["error"]
    assert reply.json["error"] and reply.json["hint"]


def write_until_full(client: Client, number: int, size: int) -> dict[str, str]:
    """Add tasks until that is refused for good; return those that were acknowledged."""
    added: dict[str, str] = {}
    refused = 0
    while refused < 10:
        title = f"task {number} {len(added)}"
        reply = client.ask("POST", "/api/board", {"title": title, "body": "b" * size})
        if reply.status == 201:
            added[reply.json["id"]] = title
            refused = 0
        else:
            check_refusal(reply)
            refused += 1
    return added


def check_there(client: Client, added: dict[str, str]) -> None:
    """All that was acknowledged can be read, and so can the rest."""
    for task, title in added.items():
        assert client.get(f"/api/board/{task}")["title"] == title
    assert client.get("/api/status")["counts"]["todo"] == len(added)
    assert len(client.get("/api/log?limit=1000&newest=true")) > 0


def claim_until_full(client: Client) -> dict[str, int]:
    """Claim, which needs less room than adding, until that is refused too; return what was given, with its fences."""
    given: dict[str, int] = {}
    while (reply := client.ask("POST", "/api/claim", {"session": "ada"})).status == 200:
        given[reply.json["id"]] = reply.json["fence"]
    check_refusal(reply)
    return given


def fill_up(daemon: Daemon, client: Client, ballast: Path, number: int, size: int) -> dict[str, str]:
    """Write until nothing fits any more, and see that all else goes on; return what was added."""
    fill(ballast, MEGABYTE)
    added = write_until_full(client, number, size)
    fill(ballast, 0)
    added |= write_until_full(client, number, 0)
    check_refusal(client.ask("POST", "/api/board", {"title": "late"}, key=f"late {number}"))
    check_database(daemon.project)
    with Follower(daemon) as follower:
        follower.wait_for(lambda frames: len(frames) >= 3, "the first page of a full disk")
    return added


def go_on(client: Client, number: int, given: dict[str, int]) -> str:
    """Write again: what was claimed is still held, and what was refused happens once; return what was added."""
    wait_until(lambda: client.ask("POST", "/api/mail", {"to": "owner", "text": "room"}).status == 201, "room to write")
    held = {task["id"]: task["fence"] for task in client.get("/api/board?status=doing&limit=1000")}
    assert held == given
    for task, fence in held.items():
        client.post(f"/api/board/{task}/release", {"session": "ada", "fence": fence})
    late = {str(client.post("/api/board", {"title": "late"}, key=f"late {number}")["id"]) for _ in range(2)}
    assert len(late) == 1
    return late.pop()


def live_through_it(daemon: Daemon, ballast: Path) -> dict[str, str]:
    """Fill the disk three times, and go on when there is room again."""
    added: dict[str, str] = {}
    pid = daemon.pid
    with daemon.client() as client:
        for number, size in enumerate((200_000, 9_000, 0)):
            added |= fill_up(daemon, client, ballast, number, size)
            check_there(client, added)
            given = claim_until_full(client)
            ballast.unlink()
            added[go_on(client, number, given)] = "late"
            check_there(client, added)
    assert daemon.pid == pid and daemon.process is not None and daemon.process.poll() is None
    return added


def begin(daemon: Daemon) -> bool:
    """Start a daemon on hardly any room; say whether it refused, which it does in one sentence, else end it again."""
    try:
        daemon.start()
    except AssertionError as ended:
        said = str(ended)
    else:
        daemon.kill()
        return False
    assert daemon.process is not None and daemon.process.returncode == 7, said
    assert said.count("\n") == 1 and "disk is full" in said, said
    return True


def start_without_room(daemon: Daemon, ballast: Path) -> None:
    """A daemon that has no room to begin says so, loses nothing, and begins where it was when there is room."""
    port = daemon.port
    fill(ballast, MEGABYTE)
    with daemon.client() as client:
        write_until_full(client, 9, 0)
    daemon.kill()
    for pages in range(4):  # the more there are, the further it gets before there is no room
        fill(ballast, pages * PAGE)
        refused = begin(daemon)
        assert refused or pages > 0
    fill(ballast, 0)
    command = [sys.executable, "-m", "covey", "up", "--json"]
    up = subprocess.run(command, cwd=daemon.project.root, capture_output=True, text=True, timeout=60, check=False)
    assert up.returncode == 7 and "disk is full" in up.stderr, up
    ballast.unlink()
    daemon.start()
    assert daemon.port == port


def main(folder: Path) -> None:
    """Mount a small disk and live on it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)], check=True)
    daemon = Daemon(make_repository(folder / "repo"), plain=True)
    try:
        daemon.start()
        added = live_through_it(daemon, folder / "ballast")
        start_without_room(daemon, folder / "ballast")
        with daemon.client() as client:
            for task, title in added.items():
                assert client.get(f"/api/board/{task}")["title"] == title
            client.post("/api/board", {"title": "after all"})
        assert daemon.stop() == 0
        check_database(daemon.project)
    finally:
        daemon.stop()
    print(f"{len(added)} tasks were acknowledged, and all of them are there")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
