"""What a session may push or send: allowed by settings, permits and answers; asked for once, or told, otherwise."""

from __future__ import annotations

import pytest

from covey.app.people import egress_rules
from covey.core.fleet.runs import Run
from covey.core.people.commands.pushes import Push
from covey.errors import Invalid
from tests.app.people.test_questions import alerts, begin
from tests.worlds.boards import Principal, World

ADA = Principal("ada")


@pytest.fixture
def run(world: World) -> Run:
    """Return a run of ada on a task."""
    return begin(world, "ada")


def _push(world: World, *refs: str) -> dict[str, str]:
    answered: dict[str, str] = world.ask("push.ask", ADA, remote="origin", refs=list(refs))
    return answered


def test_a_push_is_one_question_however_often_it_is_tried_and_an_answer_is_for_its_task(world: World, run: Run) -> None:
    first = _push(world, "main")
    assert first["answer"] == "ask"
    assert _push(world, "main")["question"] == first["question"]
    assert _push(world, "other")["question"] != first["question"]
    world.ask("question.answer", id=first["question"], decision="allow")
    assert [_push(world, "main")["answer"] for _ in range(2)] == ["allow", "allow"]
    assert _push(world, "+main")["answer"] == "ask", "force is another thing"


def test_what_was_denied_stays_denied_for_the_run_and_says_why(world: World, run: Run) -> None:
    asked = _push(world, "main")
    world.ask("question.answer", id=asked["question"], decision="deny", text="Not today.")
    assert (_push(world, "main")["answer"], _push(world, "main")["why"]) == ("deny", "Not today.")
    assert len(alerts(world)) == 1


def test_a_permit_to_push_names_a_remote_and_refs(world: World, run: Run) -> None:
    for about in ("", "origin", "origin a[", "origin ++x"):
        with pytest.raises(Invalid):
            world.ask("permit.grant", tool="push", about=about)
    asked = _push(world, "feature/x")
    world.ask("permit.grant", tool="push", about="origin feature/*")
    assert world.ask("question.show", id=asked["question"])["state"] == "answered"
    assert _push(world, "feature/y")["answer"] == "allow"
    assert _push(world, "feature/y", "main")["answer"] == "ask"


def test_only_what_nobody_allowed_is_told_and_it_waits_in_the_inbox(world: World, run: Run) -> None:
    world.ask("permit.grant", tool="push", about="origin feature/*")
    world.ask("permit.grant", about="npm publish")
    seen = [Push("origin", ("feature/x",)), Push("origin", ("main",))]
    world.do(lambda call: egress_rules.tell_pushed(call, "ada", run.task, seen, "How."))
    world.do(lambda call: egress_rules.tell_sent(call, "ada", run.task, ["npm publish --tag x", "gh pr merge 4"]))
    (pushed,), (sent,) = alerts(world, "pushed_unasked"), alerts(world, "sent_unasked")
    assert "origin main" in pushed and "feature" not in pushed
    assert "gh pr merge 4" in sent and "npm" not in sent
    waiting = [item for item in world.ask("inbox.list") if item["kind"] == "mail"]
    assert len(waiting) == 2
    for item in waiting:
        world.ask("mail.ack", id=item["ids"][0])
    assert not [item for item in world.ask("inbox.list") if item["kind"] == "mail"]
