"""What a person does with the page, from the first visit on: on a desk and on a phone, with agents that really work."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.page.browser import DESK, PHONE, Complaints, Site, wait_for_page, wait_for_view, wait_until_told
from tests.page.conftest import Visit
from tests.page.stage import SEARCH, SHELF, Stage, indented, stage, terminal, writes
from tests.worlds.serving import wait_until

pytestmark = pytest.mark.xdist_group("page-flows")
LOOKS = pytest.mark.parametrize("look", [pytest.param(DESK, id="desk"), pytest.param(PHONE, id="phone")])
Look = dict[str, Any]

FIELD = "input:focus, textarea:focus"
"""Whoever types waits until something listens."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.fixture(scope="module")
def site(played: Stage, browser: Browser) -> Site:
    return Site(played.line, browser)


def card(page: Page, column: str, task: str) -> Locator:
    """Return a card in a column; on a phone that column is chosen first, since one is shown at a time."""
    wait_for_view(page, "board")
    picked = page.get_by_role("group", name="Column", exact=True).locator(f'[data-column="{column}"]')
    if picked.count():
        picked.click()
    return page.locator(f'.column[data-column="{column}"] .card[data-id="{task}"]')


def unique(request: pytest.FixtureRequest, word: str) -> str:
    """Return a name that no other test of this module takes."""
    return f"{word}-{'phone' if 'phone' in request.node.name else 'desk'}"


def ask(played: Stage, name: str, title: str, question: str, **more: Any) -> str:
    task = played.play(name, title, f"ask {question}\nwrite {name}.txt\n    {{answer}}\ncommit Write it down\n", **more)
    played.until_session(name, "needs-you")
    return task


# The first visit


@LOOKS
def test_a_new_browser_joins_and_sees_a_card_move_without_reloading(
    played: Stage, site: Site, visit: Visit, look: Look, request: pytest.FixtureRequest
) -> None:
    name = unique(request, "ada")
    task = played.add(f"Find titles ({name})", writes(f"found/{name}.py", SEARCH, "Find titles"), name)
    page = visit("", joined=False, **look)
    page.goto(played.line.ok("open", "--print").strip())
    wait_for_page(page)
    page.goto("/#/board")
    page.evaluate("() => (window.sameOne = true)")
    expect(card(page, "todo", task)).to_contain_text("Find titles")
    played.start(name)
    expect(card(page, "done", task)).to_be_visible()
    assert page.evaluate("() => window.sameOne")


CHANGED_WHILE_DRAWN = """async () => {
  const { html, render } = await import("/js/lib.js");
  const { touch, useTopics } = await import("/js/data/store.js");
  const place = document.createElement("div");
  let value = "old";
  const One = () => { useTopics("probe"); return html`<i>${value}</i>`; };
  render(html`<${One} />`, place);
  value = "new";
  touch("probe");  // told with the next frame
  for (let frame = 0; frame < 5; frame++) await new Promise(requestAnimationFrame);
  return place.textContent;
}"""


def test_what_changes_while_it_is_drawn_for_the_first_time_is_drawn_again(desk: Page) -> None:
    assert desk.evaluate(CHANGED_WHILE_DRAWN) == "new"


STOPPED_WHEN_DRAWN = """async (name) => {
  const { putSessions, state } = await import("/js/data/store.js");
  new MutationObserver((_, watcher) => {
    if (!document.querySelector(".fleet-buttons")) return;
    watcher.disconnect();
    putSessions([{ ...state.sessions.get(name), goal: "stopped" }]);
  }).observe(document.body, { subtree: true, childList: true });
}"""


def test_what_is_told_of_sessions_the_moment_they_are_drawn_counts(played: Stage, desk: Page) -> None:
    played.start("otto")
    desk.goto("/#/sessions")
    expect(desk.locator('[data-session="otto"]')).to_contain_text("idle")
    start = desk.get_by_role("button", name="Start all")
    expect(start).to_have_count(0)
    desk.goto("/#/settings")
    wait_for_view(desk, "settings")
    desk.evaluate(STOPPED_WHEN_DRAWN, "otto")
    desk.goto("/#/sessions")
    expect(start).to_be_visible()


# Questions


@LOOKS
def test_a_question_is_answered_in_place_and_the_agent_goes_on(
    played: Stage, visit: Visit, look: Look, request: pytest.FixtureRequest
) -> None:
    name = unique(request, "bob")
    task = ask(played, name, f"Paint the till ({name})", f"Which colour does {name} take?")
    page = visit("/#/inbox", **look)
    item = page.locator(".ask", has_text=f"Which colour does {name} take?")
    item.get_by_role("button", name="Reply").click()
    item.get_by_role("textbox").fill("green")
    item.get_by_role("button", name=re.compile("^Send")).click()
    expect(item).to_have_count(0)
    played.line.wait_for(task, "done")
    assert played.line.git("show", f"main:{name}.txt") == "green"


def test_one_answer_serves_all_who_ask_the_same(played: Stage, visit: Visit) -> None:
    names = ["carl", "cora", "curt"]
    tasks = [ask(played, name, f"Count ({name})", "May I count the stock?") for name in names]
    page = visit("/#/inbox")
    item = page.locator(".ask", has_text="May I count the stock?")
    expect(item).to_have_count(1)
    expect(item).to_contain_text("3 agents ask")
    item.get_by_role("button", name="Reply").click()
    expect(page.locator(FIELD)).to_have_count(1)
    page.keyboard.type("yes")
    page.keyboard.press("Control+Enter")
    expect(item).to_have_count(0)
    for task in tasks:
        played.line.wait_for(task, "done")


def test_a_number_key_chooses_an_answer(played: Stage, visit: Visit) -> None:
    choose = 'run covey ask "Which side?" --choice left --choice right --wait 100 > side.txt\ncommit Choose a side\n'
    task = played.play("dora", "Choose a side", choose)
    played.until_session("dora", "needs-you")
    page = visit("/#/inbox")
    expect(page.locator(".ask")).to_have_count(1)
    page.keyboard.press("2")
    played.line.wait_for(task, "done")
    assert played.line.git("show", "main:side.txt").strip() == "right"


def test_tasks_that_the_same_blocks_are_tried_again_one_by_one_or_all_at_once(
    played: Stage, desk: Page, complaints: Complaints
) -> None:
    ids = [played.add(f"Bind book {number}", role="binding") for number in range(4)]
    for task in ids:
        played.ask("POST", f"/api/board/{task}/block", {"reason": f"{task}: No module named glue"})
    desk.goto("/#/inbox")
    group = desk.locator(".ask-group", has_text="No module named glue")
    expect(group).to_contain_text("4 tasks are blocked by the same")
    group.get_by_role("button", name="Show each").click()
    desk.locator(".ask.within", has_text=f"{ids[0]} is blocked").get_by_role("button", name="Try again").click()
    played.until("todo", "Bind book 0")
    expect(group).to_contain_text("3 tasks are blocked by the same")
    complaints.forgive("409")
    refused = {"status": 409, "json": {"error": "It is glued.", "hint": ""}}
    desk.route(f"**/api/board/{ids[1]}/reopen", lambda route: route.fulfill(**refused))
    group.focus()
    desk.keyboard.press("1")
    expect(desk.get_by_text("2 of 3 tasks are to do again, 1 could not be.")).to_be_visible()
    expect(desk.get_by_text(f"{ids[1]}: It is glued.")).to_be_visible()
    played.until("todo", "Bind book 2", "Bind book 3")
    expect(desk.locator(".ask", has_text=f"{ids[1]} is blocked")).to_be_visible()
    played.ask("POST", f"/api/board/{ids[1]}/reopen", {})


# The board


def test_tasks_are_added_edited_ordered_and_taken_back_with_the_keyboard_alone(played: Stage, desk: Page) -> None:
    desk.goto("/#/board")
    expect(desk.locator(".column").first).to_be_visible()
    desk.keyboard.press("n")
    for title in ("Sell cards p3 role:gifts", "Sell stamps p3 role:gifts", "Sell pens p3 role:gifts"):
        expect(desk.locator(FIELD)).to_have_count(1)
        desk.keyboard.type(title)
        desk.keyboard.press("Enter")
    expect(desk.locator(".card", has_text="Sell pens")).to_be_visible()
    desk.keyboard.press("Escape")
    board = played.line.board()
    cards, stamps, pens = (board[f"Sell {what}"] for what in ("cards", "stamps", "pens"))
    assert (cards["priority"], cards["role"], cards["status"]) == (3, "gifts", "todo")

    def order() -> list[str]:
        ids = desk.locator('.column[data-column="todo"] .card').evaluate_all(
            "(all) => all.map((one) => one.dataset.id)"
        )
        return [id for id in ids if id in (cards["id"], stamps["id"], pens["id"])]

    wait_until(lambda: order() == [cards["id"], stamps["id"], pens["id"]], "the order of adding")
    desk.locator(f'.card[data-id="{pens["id"]}"]').focus()
    desk.keyboard.press("Shift+ArrowUp")
    wait_until(lambda: order() == [cards["id"], pens["id"], stamps["id"]], "pens before stamps")
    desk.keyboard.press("z")
    wait_until(lambda: order() == [cards["id"], stamps["id"], pens["id"]], "the old order")
    desk.keyboard.press("e")
    dialog = desk.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Sell pencils")
    desk.keyboard.press("Control+Enter")
    wait_until(lambda: "Sell pencils" in played.line.board(), "the new title")
    desk.keyboard.press("+")
    wait_until(lambda: played.line.task(pens["id"])["priority"] == 4, "a higher priority")
    desk.keyboard.press("Delete")
    expect(dialog).to_contain_text("Drop")
    desk.keyboard.press("Control+Enter")
    wait_until(lambda: played.line.task(pens["id"])["status"] == "dropped", "a dropped task")
    desk.keyboard.press("z")
    wait_until(lambda: played.line.task(pens["id"])["status"] == "todo", "the task again")


def _keep(waiting: list[Route], route: Route) -> None:
    waiting.append(route)


def test_what_is_saved_before_the_whole_task_has_come_is_saved(played: Stage, desk: Page) -> None:
    task = played.add("Sell chalk", priority=900, role="gifts", body="White and red.")
    desk.goto("/#/board")
    waiting: list[Route] = []
    desk.route(f"**/api/board/{task}", partial(_keep, waiting), times=1)
    desk.locator(f'.card[data-id="{task}"]').focus()
    desk.keyboard.press("e")
    dialog = desk.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Sell crayons")
    desk.keyboard.press("Control+Enter")
    expect(dialog).to_have_count(0)
    wait_until_told(desk, lambda: bool(waiting), "the question for the whole task")
    with desk.expect_response(lambda response: response.request.method == "PATCH"):
        waiting[0].continue_()
    now = played.line.task(task)
    assert (now["title"], now["body"]) == ("Sell crayons", "White and red.")


def test_who_is_at_a_card_stays_there_when_what_was_added_comes(played: Stage, desk: Page) -> None:
    task = played.add("Sweep the stairs", priority=800, role="cleaning")
    here = card(desk, "todo", task)
    expect(here).to_be_visible()
    waiting: list[Route] = []
    desk.route("**/api/board", partial(_keep, waiting), times=1)
    desk.keyboard.press("n")
    expect(desk.locator(FIELD)).to_have_count(1)
    desk.keyboard.type("Sweep the hall role:cleaning")
    desk.keyboard.press("Enter")
    desk.keyboard.press("Escape")
    here.focus()
    wait_until_told(desk, lambda: bool(waiting), "the new task, on its way")
    waiting[0].continue_()
    expect(desk.locator(".card", has_text="Sweep the hall")).to_be_visible()
    desk.evaluate("() => new Promise((done) => setTimeout(done, 200))")  # after the moment in which it would be shown
    desk.keyboard.press("+")
    wait_until(lambda: played.line.task(task)["priority"] == 801, "a higher priority of the card one is at")


def test_many_tasks_are_changed_at_once_and_taken_back_at_once(played: Stage, desk: Page) -> None:
    ids = [played.add(f"Dust shelf {number}", status="backlog", role="cleaning") for number in range(3)]
    desk.goto("/#/board")
    expect(desk.locator(".column").first).to_be_visible()
    desk.keyboard.press("/")
    expect(desk.locator(FIELD)).to_have_count(1)
    desk.keyboard.type("Dust shelf")
    desk.keyboard.press("Enter")
    expect(desk.locator(".card")).to_have_count(len(ids))
    desk.locator(f'.card[data-id="{ids[0]}"]').focus()
    desk.keyboard.press("Control+a")
    expect(desk.get_by_role("toolbar", name="Selected tasks")).to_contain_text("3 tasks")
    desk.keyboard.press("b")
    wait_until(lambda: {played.line.task(task)["status"] for task in ids} == {"todo"}, "three tasks to do")
    desk.keyboard.press("z")
    wait_until(lambda: {played.line.task(task)["status"] for task in ids} == {"backlog"}, "three tasks in the backlog")


def test_a_click_opens_a_card_and_another_click_the_next(played: Stage, desk: Page) -> None:
    first, second = (played.add(f"Fold the {what}", role="paper") for what in ("letters", "maps"))
    desk.goto("/#/board")
    for task in (first, second):
        card(desk, "todo", task).click()
        expect(desk.get_by_role("complementary", name=f"Task {task}")).to_be_visible()
        expect(desk).to_have_url(re.compile(f"#/board/{task}$"))
        expect(card(desk, "todo", task)).to_be_in_viewport()
    desk.keyboard.press("Escape")
    expect(desk.get_by_role("complementary", name=f"Task {second}")).to_have_count(0)
    card(desk, "todo", first).click(modifiers=["Control"])
    expect(desk.get_by_role("toolbar", name="Selected tasks")).to_contain_text("1 task")
    expect(desk).to_have_url(re.compile("#/board$"))  # to select is not to open


def test_the_list_sorts_groups_and_selects_and_is_remembered(played: Stage, desk: Page) -> None:
    ids = [
        played.add(f"{title} the stock", role=role, priority=priority, batch="stock")
        for title, role, priority in (("Count", "night", 1), ("Burn", "day", 5), ("Air", "night", 3))
    ]
    count, burn, air = ids
    desk.goto("/#/board")
    expect(desk.locator(".card").first).to_be_visible()
    desk.keyboard.press("Shift+L")
    tree = desk.get_by_role("tree", name="Tasks")
    expect(tree).to_be_visible()
    desk.get_by_role("searchbox", name="Filter the board").fill("#stock")

    def order() -> list[str]:
        found: list[str] = tree.locator(".card").evaluate_all("(all) => all.map((one) => one.dataset.id)")
        return found

    wait_until(lambda: order() == [burn, air, count], "the highest priority first")
    desk.get_by_role("group", name="Sort by").get_by_role("button", name="Title").click()
    wait_until(lambda: order() == [air, burn, count], "by title")
    desk.get_by_role("combobox", name="Group").select_option(label="Role")
    wait_until(lambda: order() == [burn, air, count], "day before night")
    desk.reload()
    wait_for_page(desk)
    desk.get_by_role("searchbox", name="Filter the board").fill("#stock")
    wait_until(lambda: order() == [burn, air, count], "what was chosen, after a reload")
    tree.get_by_role("treeitem", name="night 2", exact=True).click()
    wait_until(lambda: order() == [burn], "the night folded")
    tree.locator(".card").focus()
    desk.keyboard.press("ArrowRight")
    wait_until(lambda: order() == [burn, air, count], "all unfolded")
    desk.keyboard.press("Shift+J")
    desk.keyboard.press("Shift+J")
    expect(desk.get_by_role("toolbar", name="Selected tasks")).to_contain_text("3 tasks")
    desk.keyboard.press("b")
    wait_until(lambda: {played.line.task(id)["status"] for id in ids} == {"backlog"}, "all of them in the backlog")
    desk.keyboard.press("Escape")
    tree.locator(f'.card[data-id="{air}"]').click()
    expect(desk.get_by_role("complementary", name=f"Task {air}")).to_be_visible()


def test_a_card_is_dragged_to_another_place(played: Stage, desk: Page) -> None:
    first, second = (played.add(f"Wash window {n}", role="cleaning", priority=900) for n in range(2))
    desk.goto("/#/board")
    target = card(desk, "todo", first)
    moved = card(desk, "todo", second)
    expect(moved).to_be_visible()
    moved.hover()
    desk.mouse.down()
    box = target.bounding_box()
    assert box is not None
    desk.mouse.move(box["x"] + 40, box["y"] + 30, steps=6)
    desk.mouse.move(box["x"] + 40, box["y"] + 4, steps=4)
    desk.mouse.up()

    def order() -> list[str]:
        return [task["id"] for task in played.ask("GET", "/api/board?limit=1000") if task["id"] in (first, second)]

    wait_until(lambda: order() == [second, first], "the other order")


def test_a_task_is_added_on_a_phone(played: Stage, phone: Page) -> None:
    phone.goto("/#/board")
    phone.get_by_role("button", name="New task").first.tap()
    expect(phone.locator(FIELD)).to_have_count(1)
    phone.keyboard.type("Order ink")
    phone.keyboard.press("Enter")
    wait_until(lambda: "Order ink" in played.line.board(), "the task")


# Terminals


def test_a_person_types_into_a_terminal_and_reads_it_back(played: Stage, visit: Visit) -> None:
    played.settings(runner="tmux")
    played.play("eve", "Answer the phone", terminal(played, "Answer the phone", "isbn"), agent="terminal")
    played.until_session("eve", "working")
    played.settings()
    desk = visit("/#/sessions/eve")
    screen = desk.locator(".xterm-rows")
    expect(screen).to_contain_text("Editing")
    desk.keyboard.type("nobody hears this, p")
    expect(desk.get_by_text("You are typing into")).to_have_count(0)
    desk.keyboard.press("Escape")
    desk.keyboard.press("i")
    expect(desk.get_by_text("You are typing into")).to_be_visible()
    desk.keyboard.type("hello from the page")
    desk.keyboard.press("Enter")
    expect(screen).to_contain_text("heard: hello from the page")
    desk.keyboard.press("Control+]")
    expect(desk.get_by_text("You are typing into")).to_have_count(0)
    desk.keyboard.type("nor this")
    assert "nor this" not in screen.inner_text()
    small = visit("/#/sessions/eve", **PHONE)
    expect(small.locator(".xterm-rows")).to_contain_text("heard: hello from the page")
    assert "nobody" not in screen.inner_text()


def test_a_headless_run_is_read_as_a_transcript_and_steered(played: Stage, desk: Page, complaints: Complaints) -> None:
    script = (
        "say I look around.\ncall Read bookshop/cart.py\nlisten\nwrite heard.txt\n    {answer}\ncommit Write down\n"
    )
    task = played.play("finn", "Listen", script)
    played.until_session("finn", "working")
    desk.goto("/#/sessions/finn")
    log = desk.get_by_role("log", name="Transcript of finn")
    expect(log).to_contain_text("I look around.")
    expect(log).to_contain_text("bookshop/cart.py")
    expect(desk.get_by_role("region", name="Why this state?")).to_be_visible()
    expect(desk.get_by_role("button", name="Take over")).to_have_count(0)
    complaints.forgive("409")
    refused = {"status": 409, "json": {"error": "It is deaf.", "hint": ""}}
    desk.route("**/api/sessions/finn/send", lambda route: route.fulfill(**refused), times=1)
    tell, problem = desk.get_by_label("Tell finn"), desk.locator(".note", has_text="It is deaf.")
    tell.fill("mind the step")
    desk.keyboard.press("Control+Enter")
    expect(problem).to_be_visible()
    field, over = tell.bounding_box(), problem.bounding_box()
    assert field is not None and over is not None and over["y"] + over["height"] <= field["y"], (field, over)
    desk.keyboard.press("Control+Enter")
    played.line.wait_for(task, "done")
    assert played.line.git("show", "main:heard.txt") == "mind the step"


# Review and the queue


def test_a_comment_on_a_line_reaches_the_agent_that_wrote_it(played: Stage, desk: Page) -> None:
    go, inbox = played.line.mark("reviewed"), played.line.mark("inbox")
    script = writes("bookshop/shelf.py", SHELF, "Show the last page").partition("result")[0]
    reads = f"covey mail read $(covey mail inbox | grep -o 'mail-[0-9]*' | head -n 1) > {inbox}"
    mends = f"wait for {go}\nrun {reads}\nappend bookshop/shelf.py\n    # mended\ncommit Mend it\n"
    task = played.play("gwen", "Show the last page", script + mends)
    wait_until(lambda: "Show the last page" in played.line.git("log", "--all", "--format=%s"), "its first commit")
    desk.goto(f"/#/review/{task}")
    line = desk.locator(".line.plus", has_text="for at in range").first
    expect(line).to_be_visible()
    line.get_by_role("button", name=re.compile("Comment on line")).last.click()
    expect(desk.locator(FIELD)).to_have_count(1)
    desk.keyboard.type("Please name the step.")
    desk.keyboard.press("Control+Enter")
    remark = desk.locator(".review-main .remark", has_text="Please name the step.")
    expect(remark).to_contain_text("draft")
    expect(desk.locator(FIELD)).to_have_count(0)  # the draft can be told before the field has gone
    desk.keyboard.press("Shift+S")
    expect(remark).to_contain_text("sent")
    go.touch()
    expect(remark).to_contain_text(re.compile("read|delivered|acknowledged"))
    played.line.wait_for(task, "done")  # it has read, and all of it is in the file
    told = inbox.read_text()
    assert "Please name the step." in told
    assert "bookshop/shelf.py" in told


@LOOKS
def test_work_is_approved_lands_and_is_reverted(
    played: Stage, visit: Visit, look: Look, request: pytest.FixtureRequest
) -> None:
    name = unique(request, "hugo")
    played.settings(review=True)
    title = f"Write a letter ({name})"
    task = played.play(name, title, f"write {name}.txt\n    Dear reader\ncommit Write a letter\n")
    played.until("review", title)
    played.settings()
    page = visit(f"/#/review/{task}", **look)
    expect(page.locator(".line.plus", has_text="Dear reader")).to_be_visible()
    page.get_by_role("main").get_by_role("button", name=re.compile("^Approve")).click()
    expect(page).not_to_have_url(re.compile(f"#/review/{task}$"))  # it goes on by itself when it is answered
    played.line.wait_for(task, "done")
    assert f"{name}.txt" in played.line.git("ls-tree", "--name-only", "main")
    page.goto("/#/queue/landings")
    page.locator(".landed", has_text=title).get_by_role("button", name="Revert").click()
    page.get_by_role("dialog").get_by_role("checkbox").uncheck()
    page.get_by_role("dialog").get_by_role("button", name="Revert").click()
    wait_until(lambda: f"{name}.txt" not in played.line.git("ls-tree", "--name-only", "main"), "a main without it")


def hand_in(played: Stage, name: str, title: str, files: dict[str, str], **more: Any) -> str:
    """Let a session hand in some files, which then wait for a review."""
    writes = "".join(f"write {path}\n{indented(text)}" for path, text in files.items())
    played.settings(review=True)
    task = played.play(name, title, f"{writes}commit {title}\nresult I wrote it as {name} does.\n", **more)
    played.until("review", title)
    played.settings()
    return task


def test_what_is_chosen_is_read_commented_on_and_approved_together(played: Stage, visit: Visit) -> None:
    one = hand_in(played, "jane", "Write a rhyme", {"rhyme.txt": "roses\nviolets\nsugar\n"})
    other = hand_in(played, "jack", "Write a tale", {"tale.txt": "Once\nupon\na time\n"})
    page = visit("/#/review")
    rows = [page.locator(f'.waiting-row[data-task="{task}"]') for task in (one, other)]
    for row in rows:
        expect(row).to_contain_text("1 file")
        expect(row).to_contain_text("+3 −0")
    rows[0].locator("a").focus()
    page.keyboard.press("Shift+ArrowDown")
    expect(page.get_by_role("toolbar", name="Chosen tasks")).to_contain_text("2 chosen")
    page.keyboard.press("t")
    line = page.locator(".line.plus")
    line.filter(has_text="violets").locator("button").last.click()
    line.filter(has_text="sugar").locator("button").last.click(modifiers=["Shift"])
    expect(page.locator(".editor-head")).to_contain_text("lines 2–3")
    expect(page.locator(FIELD)).to_have_count(1)
    page.keyboard.type("Are blue.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".review-main .remark")).to_contain_text("lines 2–3")
    [said] = played.ask("GET", f"/api/comments?task={one}")
    assert (said["path"], said["line"], said["lines"], said["commit"]) == (
        "rhyme.txt", 2, 2, played.ask("GET", f"/api/board/{one}/diff")["tip"],
    )  # fmt: skip
    expect(page.locator(FIELD)).to_have_count(0)  # the draft can be told before the field has gone
    expect(page.get_by_role("button", name="Approve all")).to_be_visible()
    page.keyboard.press("a")
    expect(page).to_have_url(re.compile("#/review$"))  # it goes on by itself when it is answered
    for task in (one, other):
        played.line.wait_for(task, "done")
    page.goto(f"/#/timeline/task={one}")
    story = page.locator(".story")
    expect(story).to_have_count(1)
    expect(story).to_contain_text(re.compile(r"Write a rhyme.*Landed .+ after jane took it"))
    expect(story).to_contain_text("you approved it")


@LOOKS
def test_what_was_asked_what_is_said_and_what_conflicts_is_seen_before_it_is_approved(
    played: Stage, visit: Visit, look: Look, request: pytest.FixtureRequest
) -> None:
    names = [unique(request, name) for name in ("kate", "karl")]
    path = f"{names[0]}.txt"
    one, other = (hand_in(played, name, f"Name the shop ({name})", {path: f"The shop of {name}\n"}) for name in names)
    page = visit(f"/#/review/{one}", **look)
    brief = page.get_by_role("region", name=f"About {one}")
    expect(brief).to_contain_text("commit Name the shop")
    expect(brief).to_contain_text(f"I wrote it as {names[0]} does.")
    expect(brief).to_contain_text("merges cleanly with main")
    expect(brief).to_contain_text(f"conflicts with {other}")
    approve = page.get_by_role("main").get_by_role("button", name=re.compile("^Approve"))
    expect(page.locator(".verdict")).to_contain_text(f"conflicts with {other}")
    approve.click()
    expect(page.get_by_role("dialog")).to_contain_text(f"It conflicts with {other}")
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    played.line.wait_for(one, "done")


# The fleet


@LOOKS
def test_the_fleet_is_paused_and_goes_on(
    played: Stage, visit: Visit, look: Look, request: pytest.FixtureRequest
) -> None:
    name = unique(request, "ida")
    go = played.line.mark(f"go-{name}")
    task = played.play(name, f"Count ({name})", f"wait for {go}\nwrite {name}.txt\n    1\ncommit Count\n")
    played.until_session(name, "working")
    page = visit("/#/board", **look)
    page.get_by_role("button", name=re.compile("^Pause")).click()
    played.until_session(name, "paused")
    go.touch()
    page.get_by_role("button", name="Go on").click()
    played.line.wait_for(task, "done")


# The connection


@LOOKS
def test_a_page_that_loses_its_daemon_says_so_and_catches_up(
    played: Stage, visit: Visit, complaints: Complaints, look: Look, request: pytest.FixtureRequest
) -> None:
    complaints.forgive(
        r"ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED|CONNECTION_RESET|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)"
    )
    page = visit("/#/board", **look)
    page.evaluate("() => (window.sameOne = true)")
    os.kill(json.loads((played.line.state / "daemon.json").read_text())["pid"], signal.SIGKILL)
    expect(page.get_by_text("covey has ended without a word: its daemon has died")).to_be_visible()
    expect(page.get_by_text("covey up --service keeps it alive")).to_be_visible()
    title = f"Meanwhile ({unique(request, 'task')})"
    played.line.ok("task", "add", title, "--role", "nobody", "--priority", "950")
    played.line.up()
    task = played.line.board()[title]["id"]
    expect(card(page, "todo", task)).to_be_visible()
    expect(page.get_by_text("covey has ended")).to_have_count(0)
    assert page.evaluate("() => window.sameOne")


def test_the_queue_shows_from_what_a_gate_is_not_kept(site: Site, visit: Visit) -> None:
    limit = "Gates run in no room of their own."
    with site.line.client() as owner:
        queue = owner.get("/api/queue") | {"limits": [limit]}
    page = visit("")
    page.route("**/api/queue", lambda route: route.fulfill(json=queue))
    page.goto("/#/queue")
    expect(page.locator(".trouble").filter(has_text=limit)).to_be_visible()
