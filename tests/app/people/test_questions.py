"""Agents ask, a person answers, and whoever waits goes on with the answer or without it."""

from __future__ import annotations

from typing import Any

import pytest

from covey.app.context import Call
from covey.app.people import questions
from covey.core import nouns
from covey.core.fleet import runs
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Asks, Wants
from covey.core.people.questions import NOBODY_ANSWERED, Decision, Question, QuestionState, reply_of
from covey.errors import CoveyError, Denied, Invalid, NotFound, Refused
from tests.worlds.boards import Principal, World

NPM = Asks("Run npm test?", "toolu_1", Wants.PERMISSION, "shell", "npm test -- --watch=false")
SECRET = "ghp_" + "a1B2" * 10


@pytest.fixture
def run(world: World) -> Run:
    """Return a run of ada on a task."""
    return begin(world, "ada")


def begin(world: World, name: str) -> Run:
    """Let a new session that covey runs be at work on a new task, and return its run."""
    world.run_session(name)
    task = world.add()
    event = runs.Begun(session=name, task=task, fence=world.claim(task, name), agent="scripted")

    def write(call: Call) -> Run:
        run = nouns.first(runs.Run, f"run-{call.tx.next_seq}", call.tx.next_seq, event, call.tx.now)
        call.tx.insert(run)
        call.tx.append(name, run.id, event, run)
        return run

    return world.do(write)


def ask(world: World, run: Run, asks: Asks = NPM, minutes: float = 60.0) -> Question:
    """Let a run ask."""
    return world.do(lambda call: questions.ask(call, run.session, asks, task=run.task, run=run.id, minutes=minutes))


def answer(world: World, question: Question, decision: str, **more: Any) -> Any:
    """Let the owner answer."""
    return world.ask("question.answer", id=question.id, decision=decision, **more)


def alerts(world: World, type: str = "needs_you") -> list[str]:
    """Return the messages of the alerts of a type, the oldest first."""
    return [alert["message"] for alert in world.ask("alert.list")[::-1] if alert["type"] == type]


def now(world: World, question: Question) -> Question:
    """Return a question as it is."""
    found = world.store.read(lambda tx: tx.get(Question, question.id))
    assert found is not None
    return found


# Asking


def test_a_question_is_a_row_and_the_person_is_told_once(world: World, run: Run) -> None:
    question = ask(world, run)
    for _ in range(3):
        assert ask(world, run) == question
    assert [row["id"] for row in world.ask("question.list", state="open")] == [question.id]
    assert question.until == question.asked + 3600
    (said,) = alerts(world)
    assert "npm test -- --watch=false" in said and f"covey answer {question.id} --allow" in said


def test_the_same_question_is_no_second_row_after_the_daemon_began_anew(world: World, run: Run) -> None:
    question = ask(world, run)
    answer(world, question, "deny")
    world.start(daemon=True)
    assert ask(world, run) == now(world, question), "it is read again from the output, and was decided"
    assert len(world.ask("question.list")) == len(alerts(world)) == 1


def test_a_question_without_a_name_is_one_while_it_is_open(world: World, run: Run) -> None:
    free = Asks("Which port?")
    first = ask(world, run, free)
    assert ask(world, run, Asks("Which port then?")) == first
    answer(world, first, "reply", text="8080")
    second = ask(world, run, free)
    assert second.id != first.id and second.state is QuestionState.OPEN


def test_two_runs_may_name_their_questions_alike(world: World, run: Run) -> None:
    other = begin(world, "bob")
    assert ask(world, run).id != ask(world, other).id


def test_what_is_kept_has_no_secret_and_an_end(world: World, run: Run) -> None:
    long = Asks(f"{SECRET} " * 500, "a", Wants.PERMISSION, "shell", "echo " + "x" * 20_000, ("yes", SECRET))
    question = ask(world, run, long)
    assert len(question.text) == questions.TEXT and len(question.about) == questions.ABOUT
    assert SECRET not in repr(question) and question.choices == ("yes", "[secret removed]")
    assert SECRET not in repr(world.everything())


def test_what_no_file_can_hold_is_asked_all_the_same(world: World, run: Run) -> None:
    broken = Asks("caf\ud800", "id\udfff", Wants.PERMISSION, "sh\ud800", "x\ud800", ("\ud800",))
    assert ask(world, run, broken) == ask(world, run, broken)


# Permits


def test_what_a_permit_covers_is_allowed_at_once_and_nobody_is_woken(world: World, run: Run) -> None:
    permit = world.ask("permit.grant", about="npm test")
    question = ask(world, run)
    assert (question.state, question.decision, question.by) == (QuestionState.ANSWERED, Decision.ALLOW, "covey")
    assert permit["id"] in (question.answer or "")
    assert alerts(world) == []
    assert [each.id for each in world.do(questions.untold)] == [question.id]


def test_a_command_that_is_cut_for_the_page_is_compared_whole(world: World, run: Run) -> None:
    head = "npm test " + "x" * questions.ABOUT
    world.ask("permit.grant", about="npm test")
    assert ask(world, run, Asks("?", "a", Wants.PERMISSION, "shell", f"{head} && rm -rf /")).state is QuestionState.OPEN
    assert ask(world, run, Asks("?", "b", Wants.PERMISSION, "shell", head)).state is QuestionState.ANSWERED


@pytest.mark.parametrize("asks", [Asks("npm test"), Asks("?", "a", Wants.PERMISSION, "", "npm test")])
def test_a_permit_covers_no_free_question_and_nothing_without_a_tool(world: World, run: Run, asks: Asks) -> None:
    world.ask("permit.grant", about="npm test")
    assert ask(world, run, asks).state is QuestionState.OPEN


def test_always_grants_a_permit_for_all_that_was_asked_for(world: World, run: Run) -> None:
    answer(world, ask(world, run), "always")
    (permit,) = world.ask("permit.list")
    assert (permit["tool"], permit["about"], permit["by"]) == ("shell", NPM.about, "owner")
    again = Asks("?", "toolu_2", Wants.PERMISSION, "shell", NPM.about + " more")
    assert ask(world, run, again).state is QuestionState.ANSWERED
    assert len(alerts(world)) == 1


def test_always_may_be_for_the_first_words(world: World, run: Run) -> None:
    answer(world, ask(world, run), "always", about="npm test")
    assert [permit["about"] for permit in world.ask("permit.list")] == ["npm test"]


def test_always_lets_through_all_that_waits_for_the_same(world: World, run: Run) -> None:
    other = ask(world, begin(world, "bob"), Asks("?", "b", Wants.PERMISSION, "shell", "npm test lib"))
    free = ask(world, run, Asks("npm test?", "c"))
    answer(world, ask(world, run), "always", about="npm test")
    assert now(world, other).state is QuestionState.ANSWERED and now(world, other).by == "covey"
    assert now(world, free).state is QuestionState.OPEN
    assert len(world.ask("permit.list")) == 1


@pytest.mark.parametrize("about", ["", "npm", "npm tes", "rm", "npm test -- --watch=false x"])
def test_always_is_for_what_was_asked_for_or_its_beginning(world: World, run: Run, about: str) -> None:
    question = ask(world, run)
    if about == "npm":
        assert answer(world, question, "always", about=about)["decision"] == "always"
        return
    with pytest.raises(Invalid, match="would not allow what"):
        answer(world, question, "always", about=about)
    assert now(world, question).state is QuestionState.OPEN and world.ask("permit.list") == []


def test_a_chain_is_allowed_always_only_as_a_whole(world: World, run: Run) -> None:
    chain = Asks("?", "a", Wants.PERMISSION, "shell", "npm test && npm publish")
    question = ask(world, run, chain)
    with pytest.raises(Invalid, match="would not allow what"):
        answer(world, question, "always", about="npm test")
    answer(world, question, "always")
    assert ask(world, run, Asks("?", "b", Wants.PERMISSION, "shell", chain.about)).state is QuestionState.ANSWERED
    assert ask(world, run, Asks("?", "c", Wants.PERMISSION, "shell", chain.about + " -f")).state is QuestionState.OPEN


@pytest.mark.parametrize("about", [f"curl -H {SECRET} host", "echo " + "x" * 20_000])
def test_what_is_not_kept_whole_is_allowed_always_only_by_its_beginning(world: World, run: Run, about: str) -> None:
    question = ask(world, run, Asks("?", "a", Wants.PERMISSION, "shell", about))
    with pytest.raises(Invalid, match="Not all of what"):
        answer(world, question, "always")
    answer(world, question, "allow")


def test_always_needs_a_tool(world: World, run: Run) -> None:
    question = ask(world, run, Asks("?", "a", Wants.PERMISSION, "", "npm test"))
    with pytest.raises(Invalid, match="which tool"):
        answer(world, question, "always")


def test_a_permit_that_is_there_is_not_made_twice(world: World) -> None:
    first = world.ask("permit.grant", about="make")
    assert world.ask("permit.grant", about=" make ") == first
    assert world.kinds().count("permit.granted") == 1


def test_a_revoked_permit_covers_nothing(world: World, run: Run) -> None:
    permit = world.ask("permit.grant", about="npm test")
    assert world.ask("permit.revoke", id=permit["id"])["revoked"] is not None
    assert ask(world, run).state is QuestionState.OPEN
    assert world.ask("permit.list") == [] and len(world.do(lambda call: call.tx.permits())) == 0
    with pytest.raises(Refused, match="revoked already"):
        world.ask("permit.revoke", id=permit["id"])
    with pytest.raises(NotFound):
        world.ask("permit.revoke", id="permit-999")


def test_a_permit_is_for_a_command_or_a_whole_tool_but_never_for_every_command(world: World, run: Run) -> None:
    with pytest.raises(Invalid, match="for every command"):
        world.ask("permit.grant", about=" ")
    with pytest.raises(Invalid, match="secret"):
        world.ask("permit.grant", about=f"curl {SECRET}")
    world.ask("permit.grant", tool="WebSearch")
    assert ask(world, run, Asks("?", "a", Wants.PERMISSION, "WebSearch", "cats")).state is QuestionState.ANSWERED


# Answering


def test_whoever_asked_is_told_once(world: World, run: Run) -> None:
    question = ask(world, run)
    assert world.do(questions.untold) == []
    answer(world, question, "deny", text="Use make test")
    (found,) = world.do(questions.untold)
    assert reply_of(found) is not None and found.answer == "Use make test"
    for _ in range(2):
        assert world.do(lambda call: questions.told(call, found)).told
    assert world.do(questions.untold) == [] and world.kinds().count("question.told") == 1


def test_nobody_is_told_what_nobody_decided(world: World, run: Run) -> None:
    question = ask(world, run)
    assert not world.do(lambda call: questions.told(call, question)).told


def test_a_question_is_answered_once(world: World, run: Run) -> None:
    question = ask(world, run)
    answer(world, question, "allow")
    with pytest.raises(Refused, match="answered already"):
        answer(world, question, "deny")


def test_only_the_owner_answers_grants_and_revokes(world: World, run: Run) -> None:
    question = ask(world, run)
    asked: dict[str, Any]
    for verb, asked in (
        ("question.answer", {"id": question.id, "decision": "allow"}),
        ("permit.grant", {"about": "make"}),
        ("permit.revoke", {"id": "permit-1"}),
    ):
        with pytest.raises(Denied):
            world.ask(verb, Principal("ada"), **asked)
    assert world.ask("question.list", Principal("ada"))[0]["id"] == question.id
    assert world.ask("permit.list", Principal("ada")) == []


def test_about_is_only_for_always(world: World, run: Run) -> None:
    with pytest.raises(Invalid, match="allowed always"):
        answer(world, ask(world, run), "allow", about="npm test")


def test_a_question_that_is_not_there_cannot_be_answered(world: World) -> None:
    wishes: list[tuple[str, dict[str, Any]]] = [("question.answer", {"decision": "deny"})]
    for verb, asked in (*wishes, ("question.show", {}), ("question.take", {})):
        with pytest.raises(NotFound, match="no question 'question-999'"):
            world.ask(verb, id="question-999", **asked)


# Time and ends


def test_what_nobody_answers_is_denied_and_said(world: World, run: Run) -> None:
    question = ask(world, run, minutes=10)
    world.clock.run(599)
    assert world.do(questions.expire) == 0
    world.clock.run(1)
    assert world.do(questions.expire) == 1 and world.do(questions.expire) == 0
    (found,) = world.do(questions.untold)
    reply = reply_of(found)
    assert reply is not None and not reply.allows and reply.text == NOBODY_ANSWERED
    (said,) = alerts(world, "question_expired")
    assert question.id in said and "denied" in said and NPM.about in said


def test_what_a_run_that_has_ended_asks_needs_no_answer(world: World, run: Run) -> None:
    question, decided = ask(world, run), ask(world, run, Asks("?", "b"))
    answer(world, decided, "deny")
    assert world.do(lambda call: questions.withdraw(call, run.id, "run-1 ended")) == 1
    assert now(world, question).state is QuestionState.WITHDRAWN and now(world, decided).state is QuestionState.ANSWERED
    assert world.do(lambda call: call.tx.open_questions(run.id)) == []


def test_nobody_is_told_whose_run_has_ended(world: World, run: Run) -> None:
    answer(world, ask(world, run), "deny")
    world.do(lambda call: call.tx.advance(run, runs.Ended(outcome=runs.Outcome.STOPPED), "covey"))
    assert world.do(questions.untold) == []


# Asking from the shell


def test_an_agent_asks_by_its_own_token_for_its_run_and_task(world: World, run: Run) -> None:
    row = world.ask("question.ask", Principal("ada"), text="Which port?", choices=["80", "8080"])
    assert (row["session"], row["task"], row["run"]) == ("ada", run.task, run.id)
    assert (row["wants"], row["choices"], row["state"]) == ("answer", ["80", "8080"], "open")
    (said,) = alerts(world)
    assert "ada asks: Which port?" in said and f"covey answer {row['id']} TEXT" in said


def test_the_same_text_is_the_same_question_until_its_answer_was_taken(world: World, run: Run) -> None:
    ada = Principal("ada")
    first = world.ask("question.ask", ada, text="Which port?")
    assert world.ask("question.ask", ada, text=" Which port?\n")["id"] == first["id"]
    assert world.ask("question.ask", ada, text="Which host?")["id"] != first["id"]
    world.ask("question.answer", id=first["id"], decision="reply", text="8080")
    again = world.ask("question.ask", ada, text="Which port?")
    assert (again["id"], again["answer"]) == (first["id"], "8080"), "its shell may have been cut off before"
    for _ in range(2):
        assert world.ask("question.take", ada, id=first["id"])["told"]
    assert world.ask("question.ask", ada, text="Which port?")["id"] != first["id"]


def test_an_answer_is_taken_by_whoever_asked(world: World, run: Run) -> None:
    row = world.ask("question.ask", Principal("ada"), text="Which port?")
    with pytest.raises(Refused, match="no answer yet"):
        world.ask("question.take", Principal("ada"), id=row["id"])
    with pytest.raises(Denied, match="asked by ada"):
        world.ask("question.take", Principal("bob"), id=row["id"])


def test_a_session_from_outside_asks_too_and_the_owner_asks_nobody(world: World) -> None:
    row = world.ask("question.ask", session="eve", text="Shall I?")
    assert (row["session"], row["task"], row["run"]) == ("eve", None, None)
    with pytest.raises(Invalid, match="You are the owner"):
        world.ask("question.ask", text="Shall I?")
    with pytest.raises(Denied):
        world.ask("question.ask", Principal("ada"), session="eve", text="Shall I?")


def test_a_session_cannot_ask_without_end(world: World) -> None:
    for number in range(world.config.limits.questions):
        world.ask("question.ask", session="eve", text=f"Question {number}")
    with pytest.raises(Refused, match="questions open already"):
        world.ask("question.ask", session="eve", text="One more")


@pytest.mark.parametrize("text", ["", "   ", "x" * 4001, "a\x00b"])
def test_a_text_that_is_no_question_is_refused(world: World, text: str) -> None:
    with pytest.raises(CoveyError):
        world.ask("question.ask", session="eve", text=text)


def test_the_shell_fetches_its_own_answer_and_only_later_it_is_passed_on(world: World, run: Run) -> None:
    row = world.ask("question.ask", Principal("ada"), text="Which port?")
    world.ask("question.answer", id=row["id"], decision="reply", text="8080")
    assert world.do(questions.untold) == []
    world.clock.run(questions.GRACE + 1)
    assert [each.id for each in world.do(questions.untold)] == [row["id"]]


def test_what_was_asked_from_the_shell_can_outlive_its_run_and_reaches_the_next(world: World, run: Run) -> None:
    row = world.ask("question.ask", Principal("ada"), text="Which port?")
    dialog = ask(world, run)

    def both(call: Call) -> tuple[list[str], list[tuple[str, str]]]:
        waiting = [each.id for each in questions.awaited(call, run.task)]
        return waiting, [questions.quoted(each) for each in questions.answers(call, run.task)]

    world.do(lambda call: questions.withdraw(call, run.id, "it ended its turn"))
    assert now(world, dialog).state is QuestionState.WITHDRAWN
    assert world.do(both) == ([row["id"]], [])
    world.ask("question.answer", id=row["id"], decision="reply", text="8080")
    assert world.do(both) == ([], [("Which port?", "8080")])
    found = world.do(lambda call: questions.answers(call, run.task))
    world.do(lambda call: questions.told(call, found[0]))
    assert world.do(both) == ([], [])


def test_nobody_is_asked_any_more_for_a_task_that_went_on_without_the_answer(world: World, run: Run) -> None:
    row = world.ask("question.ask", Principal("ada"), text="Which port?")
    assert world.do(questions.expire) == 0 and world.ask("question.show", id=row["id"])["state"] == "open"
    world.hand_in(run.task, "ada", commit="c" * 40)
    world.do(questions.expire)
    assert world.ask("question.show", id=row["id"])["state"] == "withdrawn"
    assert alerts(world, "question_expired") == []


def test_all_questions_of_a_run_can_be_withdrawn(world: World, run: Run) -> None:
    world.ask("question.ask", Principal("ada"), text="Which port?")
    assert world.do(lambda call: questions.withdraw(call, run.id, "it was removed", keep=False)) == 1


def test_a_denied_question_is_quoted_as_a_no(world: World, run: Run) -> None:
    row = world.ask("question.ask", Principal("ada"), text="May I?")
    world.ask("question.answer", id=row["id"], decision="deny")
    found = world.do(lambda call: questions.answers(call, run.task))
    assert [questions.quoted(each) for each in found] == [("May I?", "No.")]


# The list and the glance


def test_questions_are_listed_by_state_and_session_the_oldest_first(world: World, run: Run) -> None:
    ids = [ask(world, run, Asks("?", name)).id for name in "abc"]
    other = world.ask("question.ask", session="eve", text="Shall I?")["id"]
    world.ask("question.answer", id=ids[0], decision="deny")
    assert [row["id"] for row in world.ask("question.list")] == [*ids, other]
    assert [row["id"] for row in world.ask("question.list", state="open")] == [*ids[1:], other]
    assert [row["id"] for row in world.ask("question.list", session="ada", limit=1)] == [ids[2]]
    assert world.ask("status")["questions"] == 3


def test_a_key_makes_an_answer_happen_once(world: World, run: Run) -> None:
    question = ask(world, run)
    first = answer(world, question, "always", key="k")
    assert answer(world, question, "always", key="k") == first
    assert world.kinds().count("permit.granted") == 1


def test_the_rule_that_is_offered_ends_such_questions_also_of_a_chain(world: World, run: Run) -> None:
    chained = Asks("?", "toolu_9", Wants.PERMISSION, "shell", "cd src && python3 -c 'print(1)' | head")
    question = ask(world, run, chained)
    (item,) = world.ask("inbox.list")
    assert item["rule"] == "python3 -c" and "any program" in item["allows"]
    answer(world, question, "always", about=item["rule"])
    assert [permit["about"] for permit in world.ask("permit.list")] == ["python3 -c"]
    later = Asks("?", "toolu_10", Wants.PERMISSION, "shell", "python3 -c 'import os; print(os.name)'")
    assert ask(world, run, later).state is QuestionState.ANSWERED
