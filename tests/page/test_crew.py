"""Sessions are added, started, stopped, brought back and removed from the page alone, on a desk and on a phone."""

from __future__ import annotations

import re
import shlex

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.browser import PHONE, Complaints, Site
from tests.page.conftest import Visit
from tests.worlds.projects import Line
from tests.worlds.serving import wait_until

GONE = r"status of 404.*/api/sessions/[\w-]+/(why|terminal)\]"
"""What was asked of a session in the moment in which it went."""
pytestmark = pytest.mark.xdist_group("page-crew")


def dialog(page: Page, name: str) -> Locator:
    return page.get_by_role("dialog", name=name)


def goals(line: Line) -> dict[str, str]:
    return {name: session["goal"] for name, session in line.sessions().items()}


def body(line: Line, name: str, *, waits: bool = False) -> str:
    wait = f"run touch {line.mark(f'{name}-at-work')}\nwait for {line.mark(f'{name}-go')}\n" if waits else ""
    return f"write {name}.txt\n    {name}\n{wait}commit Write {name}\n"


def add(line: Line, title: str, script: str) -> str:
    with line.client() as client:
        return str(client.post("/api/board", {"title": title, "body": script})["id"])


def test_from_an_empty_project_sessions_are_added_work_stop_come_back_and_go(
    site: Site, visit: Visit, complaints: Complaints
) -> None:
    complaints.forgive(r"status of 409.*/api/sessions/add\]")
    complaints.forgive(GONE)
    line, page = site.line, visit("/#/board")
    page.locator(".board-nothing").get_by_role("button", name="Add sessions").click()
    form = dialog(page, "Add sessions")
    expect(form.get_by_label("Agent")).to_have_value("scripted")
    form.get_by_label("Agent").select_option("claude")
    expect(form.get_by_role("alert")).to_contain_text("claude cannot be started: there is no program claude")
    form.get_by_label("Agent").select_option("scripted")
    form.get_by_label("How many").fill("51")
    form.get_by_role("button", name="Start 51 sessions").click()
    expect(form.get_by_role("alert")).to_contain_text("That would be 51 sessions, and at most 50 are allowed.")
    form.get_by_label("How many").fill("2")
    expect(form.get_by_label("Name")).to_have_value("worker-1 and worker-2")
    expect(form.locator(".session-command code")).to_have_text("covey session new -n 2 --agent scripted --start")
    form.get_by_role("button", name="Start 2 sessions").click()
    expect(form).to_have_count(0)
    assert goals(line) == {"worker-1": "working", "worker-2": "working"}
    for task in [add(line, f"Write {name}", body(line, name)) for name in ("one", "two")]:
        line.wait_for(task, "done")

    held = add(line, "Write three", body(line, "three", waits=True))
    wait_until(line.mark("three-at-work").exists, "the agent")
    worker = line.task(held)["session"]
    page.goto(f"/#/sessions/{worker}")
    page.get_by_role("button", name="Remove").click()
    sure = dialog(page, f"Remove {worker}?")
    expect(sure).to_contain_text(f"It works on {held} Write three. Its program is ended, and {held} goes back")
    expect(sure).to_contain_text("What it has not committed")
    expect(sure.get_by_role("button", name="End it and remove")).to_be_disabled()
    sure.get_by_label("Remove it although it is at work").check()
    sure.get_by_role("button", name="End it and remove").click()
    expect(page.locator(".notes")).to_contain_text(f"{worker} is removed.")
    expect(page.locator(".notes")).to_contain_text("Its unsaved work is kept in refs/covey/rescue/")
    line.mark("three-go").touch()
    line.wait_for(held, "done")

    page.goto("/#/sessions")
    (other,) = goals(line)
    tile = page.locator(f'[data-session="{other}"]')
    expect(tile).to_contain_text("idle")
    page.keyboard.press("Control+k")
    page.keyboard.type("stop all")
    page.get_by_role("option", name="Stop all sessions").click()
    dialog(page, "Stop 1 session?").get_by_role("button", name="Stop all").click()
    expect(tile).to_contain_text("stopped")
    waits = add(line, "Write four", body(line, "four"))
    page.goto("/#/board")
    expect(page.locator(".crewless")).to_contain_text("1 task to do, and every session is stopped.")
    page.locator(".crewless").get_by_role("button", name="Bring back 1").click()
    line.wait_for(waits, "done")
    page.goto("/#/sessions")
    expect(tile).to_contain_text("idle")
    assert goals(line) == {other: "working"}
    tile.focus()
    page.keyboard.press("Delete")
    dialog(page, f"Remove {other}?").get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("There is no session yet.")).to_be_visible()
    assert goals(line) == {}


def test_the_palette_adds_sessions_by_number_agent_and_role(site: Site, desk: Page) -> None:
    desk.keyboard.press("Control+k")
    desk.keyboard.type("start 3 scripted as docs")
    desk.get_by_role("option", name=re.compile("^Add 3 scripted sessions as docs")).click()
    form = dialog(desk, "Add sessions")
    expect(form.get_by_label("Role")).to_have_value("docs")
    form.get_by_label("Start at once").uncheck()
    form.get_by_role("button", name="Add 3 sessions").click()
    expect(form).to_have_count(0)
    made = site.line.sessions()
    assert {(each["agent"], each["role"], each["goal"]) for each in made.values()} == {("scripted", "docs", "stopped")}
    site.line.ok("session", "remove", *made)


def test_on_a_phone_the_printed_command_works_and_a_session_is_added_stopped_and_removed(
    site: Site, visit: Visit, complaints: Complaints
) -> None:
    complaints.forgive(GONE)
    line, page = site.line, visit("/#/sessions", **PHONE)
    command = "covey session new -n 4 --agent scripted --start"
    expect(page.locator(".empty code")).to_have_text(command)
    line.ok(*shlex.split(command)[1:])
    expect(page.locator(".tile")).to_have_count(4)
    line.ok("session", "remove", *line.sessions())
    expect(page.locator(".tile")).to_have_count(0)
    page.get_by_role("button", name="Add sessions").tap()
    form = dialog(page, "Add sessions")
    form.get_by_label("Name").fill("ada")
    form.get_by_label("May do without asking").select_option("full")
    form.get_by_role("button", name="Start session").tap()
    page.locator('[data-session="ada"]').tap()
    page.get_by_role("button", name="Stop the run").tap()
    dialog(page, "Stop ada?").get_by_role("button", name="Stop").tap()
    page.get_by_role("button", name="Start", exact=True).tap()
    wait_until(lambda: goals(line) == {"ada": "working"}, "ada at work again")
    assert line.sessions()["ada"]["permissions"] == "full"
    page.get_by_role("button", name="Remove").tap()
    dialog(page, "Remove ada?").get_by_role("button", name="Remove", exact=True).tap()
    expect(page.get_by_text("There is no session yet.")).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
