"""Comments through the App: drafts last, what is sent reaches the author, and it is seen that it did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from covey.app.people import mail_delivery
from covey.config import Board, Config, Merge
from covey.core.fleet.outcomes import HandIn
from covey.core.fleet.prompts import prompt, resumed
from covey.core.people.comments import Shift
from covey.errors import Denied, NotFound, Refused
from covey.git import review
from covey.git.project import Project
from tests.app.merging.test_review import LINES, Reviewed
from tests.worlds.boards import Principal, World


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Reviewed]:
    shop = Reviewed(tmp_path)
    yield shop
    assert shop.world.folded() == shop.world.tables()
    shop.world.store.close()


@pytest.fixture
def team(tmp_path: Path) -> Iterator[World]:
    """Return a world whose work waits for a review, with a session that covey runs."""
    folder = tmp_path / "team"
    folder.mkdir()
    world = World(folder, Config(merge=Merge(check="make test", review=True), board=Board(tries=1)))
    world.at_work(agent="claude")
    yield world
    assert world.folded() == world.tables()
    world.store.close()


def in_review(world: World, title: str = "Mend it") -> str:
    """Let ada hand in a task, which waits for a person then."""
    task = world.add(title)
    run = world.begin()
    world.end(run, HandIn("1" * 40))
    assert world.status(task) == "review"
    return task


def write(world: World, task: str, text: str = "Why?", **asked: Any) -> Any:
    return world.ask("comment.write", task=task, text=text, **asked)


# Drafts


def test_a_comment_quotes_the_line_that_it_stands_at(shop: Reviewed) -> None:
    task = shop.done("Mend it", {"a.txt": LINES.replace("line 7\n", "seven\n")})
    new = write(shop.world, task, path="a.txt", line=7)
    old = write(shop.world, task, path="a.txt", line=7, side="old")
    assert (new["quote"], new["state"], new["place"], new["commit"]) == (
        "seven",
        "draft",
        "here",
        shop.diff(task)["tip"],
    )
    assert (old["quote"], old["commit"]) == ("line 7", shop.diff(task)["base"])
    with pytest.raises(Refused, match=r"no line 99 in a\.txt"):
        write(shop.world, task, path="a.txt", line=99)
    with pytest.raises(Refused, match="no line 1 in nothing"):
        write(shop.world, task, path="nothing", line=1)
    with pytest.raises(Refused, match="A line is one of a file"):
        write(shop.world, task, line=1)
    assert write(shop.world, task, path="new.py", line=1, quote="x = 1")["quote"] == "x = 1"
    assert write(shop.world, task)["path"] is None


def test_a_comment_follows_its_line_and_says_when_that_is_gone(shop: Reviewed) -> None:
    task = shop.world.add()
    shop.world.claim(task, "ada")
    shop.commit(task, {"a.txt": LINES.replace("line 7\n", "seven\n")})
    write(shop.world, task, path="a.txt", line=7)

    def place() -> tuple[Any, Any]:
        (row,) = shop.world.ask("comment.list", task=task)
        return row["place"], row["now"]

    assert place() == ("here", 7)
    shop.commit(task, {"a.txt": "first\nsecond\n" + LINES.replace("line 7\n", "seven\n")})
    assert place() == ("moved", 9)
    shop.commit(task, {"a.txt": LINES})
    assert place() == ("outdated", None)


def test_a_draft_is_edited_and_removed_and_only_the_owner_sees_it(shop: Reviewed) -> None:
    task = shop.done("Mend it", {"new.py": "x = 1\n"})
    first, second = write(shop.world, task), write(shop.world, task, "And this?")
    assert shop.world.ask("comment.edit", id=first["id"], text="How?")["text"] == "How?"
    shop.world.ask("comment.remove", id=second["id"])
    assert [each["text"] for each in shop.world.ask("comment.list", task=task)] == ["How?"]
    assert [each["text"] for each in shop.world.ask("comment.list")] == ["How?"]
    assert shop.world.ask("comment.list", Principal("ada"), task=task) == []
    for verb in ("log.list", "trail.list"):
        assert "How?" in str(shop.world.ask(verb, kind="comment."))
        assert not any(
            each in str(shop.world.ask(verb, Principal("ada"), kind="comment.")) for each in ("How?", "Why?")
        )
    with pytest.raises(NotFound, match="There is no comment"):
        shop.world.ask("comment.remove", id=second["id"])
    for verb, asked in {
        "comment.write": {"task": task, "text": "x"},
        "comment.edit": {"id": first["id"], "text": "x"},
        "comment.remove": {"id": first["id"]},
        "comment.send": {"task": task},
    }.items():
        with pytest.raises(Denied):
            shop.world.ask(verb, Principal("ada"), **asked)


def test_a_comment_on_a_path_that_git_would_not_take_hides_no_others(shop: Reviewed) -> None:
    task = shop.world.add("Mend it")
    strange = [write(shop.world, task, path=path, line=1, quote="x")["path"] for path in ("./a", "../a", "a\u2028b")]
    shop.commit(task, {"new.py": "x = 1\n"})
    write(shop.world, task, path="new.py", line=1)
    found = {each["path"]: each["place"] for each in shop.world.ask("comment.list", task=task)}
    assert found == dict.fromkeys(strange, "outdated") | {"new.py": "here"}


# Sending


def test_what_is_sent_is_one_message_that_wakes_its_author_and_brings_a_receipt(team: World) -> None:
    task = in_review(team)
    for text in ("Why?", "And this?"):
        write(team, task, text, path="a.py")
    sent = team.ask("comment.send", task=task, text="Two things.")
    assert (sent["to"], sent["status"], sent["waits"], len(sent["messages"])) == ("ada", "review", None, 1)
    assert {each["state"] for each in sent["comments"]} == {"sent"}
    (message,) = team.ask("mail.inbox", session="ada")
    assert (message["task"], message["wake"], message["sender"]) == (task, True, "owner")
    assert message["text"].startswith(f"Two things.\n\n2 comments on your work for {task}:\n\n- a.py\n  Why?")
    team.do(lambda call: mail_delivery.delivered(call, "ada", "run-1", sent["messages"], "hook"))
    assert {each["state"] for each in team.ask("comment.list", task=task)} == {"delivered"}
    team.ask("mail.ack", id=message["id"], session="ada")
    (first, _) = team.ask("comment.list", Principal("ada"), task=task)
    assert (first["state"], first["message"]) == ("acked", message["id"])
    with pytest.raises(Refused, match="There is no comment on"):
        team.ask("comment.send", task=task)
    with pytest.raises(Refused, match="was sent to ada already"):
        team.ask("comment.send", task=task, ids=[first["id"]])


def test_some_of_the_drafts_are_sent_at_once_and_the_rest_stay(team: World) -> None:
    task, other = in_review(team), in_review(team, "Another")
    first, second = write(team, task), write(team, task, "And this?")
    foreign = write(team, other)
    with pytest.raises(Refused, match=f"is about {other}, not about {task}"):
        team.ask("comment.send", task=task, ids=[first["id"], foreign["id"]])
    team.ask("comment.send", task=task, ids=[second["id"]])
    assert [each["state"] for each in team.ask("comment.list", task=task)] == ["draft", "sent"]


@pytest.mark.parametrize("blocked", [False, True])
def test_work_that_is_sent_back_resumes_its_author_with_the_comments(team: World, blocked: bool) -> None:
    task = in_review(team)
    if blocked:
        team.ask("task.block", id=task, reason="Which one?")
    write(team, task, "What if there is none?", path="a.py", line=3, quote="x = users[0]")
    sent = team.ask("comment.send", task=task, text="Almost.", back=True)
    assert (sent["to"], sent["status"], sent["waits"]) == ("ada", "todo", None)
    shown = team.task(task)
    assert (shown["front"], shown["reason"]) == ("ada", None)
    assert (shown["failed_tries"], shown["sent_back"]) == (0, 1)
    if not blocked:
        merge = team.ask("merge.show", id=task)
        assert (merge["state"], merge["reason"]) == ("rejected", "Sent back with 1 comment: Almost.")
    team.add("Urgent", priority=9)
    run = team.begin()
    assert run.task == task
    brief = team.work(run).brief
    for text in (prompt(brief), resumed(brief)):
        assert "a.py:3\n    x = users[0]\n  What if there is none?" in text and "Almost." in text
        assert f"[{sent['messages'][0]}] From owner" in text
    team.do(lambda call: mail_delivery.delivered(call, "ada", run.id, sent["messages"], "prompt"))
    assert [each["state"] for each in team.ask("comment.list", task=task)] == ["delivered"]


def test_a_person_may_send_work_back_as_often_as_it_takes(team: World) -> None:
    task = in_review(team)
    for number in range(3):
        team.ask("comment.send", task=task, text=f"Again {number}", back=True)
        assert team.status(task) == "todo"
        team.end(team.begin(), HandIn(str(number) * 40))


def test_comments_on_work_whose_author_is_gone_are_not_lost(team: World) -> None:
    task = in_review(team)
    team.ask("session.remove", name="ada", force=True)
    team.do(_part)
    write(team, task)
    with pytest.raises(Refused, match="ada, who wrote the work for T-1, is gone") as refused:
        team.ask("comment.send", task=task)
    assert "Send it back" in refused.value.hint
    assert [each["state"] for each in team.ask("comment.list", task=task)] == ["draft"]
    sent = team.ask("comment.send", task=task, back=True)
    assert sent["to"] is None and "who takes T-1 next is told" in sent["waits"]
    team.at_work("bob")
    assert "Why?" in prompt(team.work(team.begin("bob")).brief)


def _part(call: Any) -> None:
    from covey.app.fleet import fleet_verbs

    session = call.tx.session("ada")
    if not session.removed:
        fleet_verbs.part(call, session)


def test_nobody_is_written_to_of_work_that_nobody_has_begun_or_that_is_ones_own(world: World) -> None:
    task = world.add()
    write(world, task)
    with pytest.raises(Refused, match="Nobody has worked on T-1 yet"):
        world.ask("comment.send", task=task)
    with pytest.raises(Refused, match="T-1 is todo, so there is nothing to send back"):
        world.ask("comment.send", task=task, back=True)
    world.ask("task.claim", id=task)
    with pytest.raises(Refused, match="T-1 is your own work"):
        world.ask("comment.send", task=task)
    assert len(world.ask("comment.list")) == 1


def test_comments_reach_who_is_at_work_at_once(team: World) -> None:
    task = team.add()
    team.begin()
    write(team, task)
    assert team.ask("comment.send", task=task)["to"] == "ada"
    team.ask("session.pause", name="ada")
    write(team, task)
    assert "ada is paused" in team.ask("comment.send", task=task)["waits"]


# Several tasks together


def together(shop: Reviewed, *tasks: str) -> Any:
    return shop.world.ask("diff.show", tasks=",".join(tasks))


def test_a_comment_on_several_lines_of_combined_work_stands_at_the_lines_of_its_own_task(shop: Reviewed) -> None:
    first = shop.done("Begin", {"a.txt": "zero\nnought\n" + LINES})
    second = shop.done("End", {"a.txt": LINES.replace("line 30\n", "thirty\n30\n")}, session="bob")
    both = together(shop, first, second)
    [file] = both["files"]
    assert file["written"] == {first: [[1, 2]], second: [[32, 33]]}
    written = write(shop.world, second, path="a.txt", line=32, lines=2, commit=both["tip"])
    assert (written["line"], written["lines"], written["quote"]) == (30, 2, "thirty")
    assert written["commit"] == shop.diff(second)["tip"]
    [alone] = shop.world.ask("comment.list", task=second)
    [among] = shop.world.ask("comment.list", task=second, tip=both["tip"], base=both["base"])
    assert (alone["now"], among["now"], among["place"]) == (30, 32, "here")
    with pytest.raises(Refused, match=rf"no line 1 in a\.txt as {second} has it"):
        write(shop.world, second, path="a.txt", line=1, commit=both["tip"])


def test_git_is_asked_once_where_the_lines_of_a_file_are_however_many_comments_it_has(
    shop: Reviewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shop.done("Begin", {"a.txt": "zero\n" + LINES})
    second = shop.done("End", {"a.txt": LINES.replace("line 30\n", "thirty\n")}, session="bob")
    both = together(shop, first, second)
    for line in (3, 4, 31):
        write(shop.world, second, path="a.txt", line=line, commit=both["tip"])
    asked: list[str] = []

    def count(project: Project, path: str, *commits: str) -> list[Shift] | None:
        asked.append(path)
        return shifts(project, path, *commits)

    shifts = review.shifts
    monkeypatch.setattr(review, "shifts", count)
    found = shop.world.ask("comment.list", task=second, tip=both["tip"], base=both["base"])
    assert ([each["now"] for each in found], asked) == ([3, 4, 31], ["a.txt"])


def test_lines_that_end_after_the_file_are_refused(shop: Reviewed) -> None:
    task = shop.done("Mend it", {"b.txt": "one\ntwo\n"})
    with pytest.raises(Refused, match=r"no lines 2-9 in b\.txt"):
        write(shop.world, task, path="b.txt", line=2, lines=8)
    assert write(shop.world, task, path="b.txt", line=1, lines=2)["lines"] == 2
