"""How `covey run` hears that something has happened."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from covey.cli.fleet.run import News
from covey.cli.frame.client import Client
from tests.worlds.serving import wait_until
from tests.worlds.shell import Shell


@pytest.fixture
def clients(served: Shell) -> Iterator[tuple[Client, Client]]:
    """Return who listens, and somebody else."""
    both = Client(str(served.folder)), Client(str(served.folder))
    yield both
    for client in both:
        if client._wire is not None:
            client._wire.close()


def _waits(news: News, after: int) -> threading.Thread:
    thread = threading.Thread(target=news.wait, args=(after,), daemon=True)
    thread.start()
    return thread


def _last(client: Client) -> int:
    return int(client.ask("status").value["seq"])


def _stays_for(client: Client) -> list[str]:
    return list(client.ask("status").value["stays_for"])


def test_what_happens_is_heard_from_the_stream_and_whoever_listens_is_no_page(
    clients: tuple[Client, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = clients
    before = _last(client)
    other.ask("task.add", fields={"title": "Mend it"})
    monkeypatch.setattr(client, "ask", lambda *_: pytest.fail("it looked, although there is a stream"))
    news = News(client)
    news.wait(before)  # what was missed before it was opened
    assert news._lines is not None
    thread = _waits(news, _last(other))
    assert _stays_for(other) == ["covey up, covey open or the like"]
    other.ask("task.add", fields={"title": "Mend more"})
    wait_until(lambda: not thread.is_alive(), "the news")
    assert news._lines is not None


def test_whoever_listens_looks_while_there_is_no_daemon_and_listens_to_the_next(
    served: Shell, clients: tuple[Client, Client]
) -> None:
    client, other = clients
    news = News(client)
    thread = _waits(news, _last(other))
    wait_until(lambda: news._lines is not None, "the stream")
    served.ok("down")
    wait_until(lambda: not thread.is_alive(), "the end of the stream")
    news.wait(_last(other))
    assert news._lines is None
    served.ok("up")
    thread = _waits(news, _last(client))
    wait_until(lambda: news._lines is not None, "the stream of the next daemon")
    other.ask("task.add", fields={"title": "Mend it"})
    wait_until(lambda: not thread.is_alive(), "the news")
