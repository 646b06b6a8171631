"""Mail on its way to models: offered until it is seen, noted once, carried by prompts, and a reason to begin a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from covey.app.people import mail_delivery
from covey.config import Limits
from covey.core.fleet.outcomes import Again, HandIn
from covey.core.fleet.prompts import prompt
from covey.core.fleet.runs import Run
from covey.core.people import mail
from covey.core.people.mail import Message
from covey.errors import Denied
from tests.worlds.boards import Principal, World


@pytest.fixture
def people(world: World) -> dict[str, Principal]:
    for name in ("bob", "eve"):
        world.ask("session.new", name=name)
    return {name: Principal(name) for name in ("bob", "eve")}


def unlimited(world: World) -> None:
    """Let a session send as much as it likes."""
    limits = Limits(changes=1_000_000, kilobytes=1_000_000, messages=1_000_000, unread=1_000_000)
    world.config = world.app.context.config = replace(world.app.context.config, limits=limits)


def send(world: World, who: Principal, text: str = "hello", to: str = "ada", **more: Any) -> str:
    return str(world.ask("mail.send", who, to=to, text=text, **more)["id"])


def offer(world: World, offered: dict[str, float], at: float = 0.0) -> tuple[str | None, list[str]]:
    found = world.do(lambda call: mail_delivery.offer(call, "ada", offered, at))
    assert world.do(lambda call: mail_delivery.offer(call, "ada", offered, at, after=found.after)) == found
    return found.text, list(found.messages)


def deliver(world: World, *ids: str, reader: str = "ada", run: str = "run-1", how: str = "transcript") -> None:
    world.do(lambda call: mail_delivery.delivered(call, reader, run, ids, how))


def test_unread_mail_is_offered_as_quotes_until_it_is_delivered(world: World, people: dict[str, Principal]) -> None:
    world.at_work()
    first, second = send(world, people["bob"], "one"), send(world, people["eve"], "two")
    text, ids = offer(world, {})
    assert ids == [first, second]
    assert text is not None and mail.named(text) == {first, second}
    assert offer(world, {first: 0.0}, at=1.0)[1] == [second]
    deliver(world, first)
    assert offer(world, {})[1] == [second]
    deliver(world, second)
    assert offer(world, {}) == (None, [])


def test_what_is_delivered_counts_as_read_and_its_sender_sees_it(world: World, people: dict[str, Principal]) -> None:
    world.at_work()
    sent = send(world, people["bob"])
    assert world.ask("mail.show", people["bob"], id=sent)["readers"] == []
    world.clock.run(5)
    deliver(world, sent)
    before = world.everything()
    deliver(world, sent, how="prompt")
    assert world.everything() == before, "noted once"
    now = world.clock.now().wall
    assert world.ask("mail.inbox", Principal("ada")) == []
    (shown,) = world.ask("mail.inbox", Principal("ada"), all=True)
    assert (shown["read"], shown["delivered"], shown["acked"]) == (now, now, None)
    assert world.ask("mail.show", people["bob"], id=sent)["readers"] == [
        {"reader": "ada", "read": now, "delivered": now, "acked": None}
    ]
    assert world.ask("mail.show", Principal("ada"), id=sent)["readers"] == [], "that is the sender's to know"
    assert world.ask("mail.show", id=sent)["readers"] != [], "and the owner's"
    with pytest.raises(Denied):
        world.ask("mail.show", people["eve"], id=sent)
    (event,) = world.ask("log.list", kind="mail.delivered")
    assert (event["subject"], event["data"]) == (sent, {"reader": "ada", "run": "run-1", "how": "transcript"})


def test_a_message_is_delivered_only_to_whom_it_was_sent(world: World, people: dict[str, Principal]) -> None:
    world.at_work()
    for_bob, for_all = send(world, people["eve"], to="bob"), send(world, people["eve"], to="everyone")
    deliver(world, for_bob, for_all, "mail-999")
    deliver(world, for_all, reader="eve")
    assert [each["reader"] for each in world.ask("mail.show", id=for_all)["readers"]] == ["ada"]
    assert world.ask("mail.show", id=for_bob)["readers"] == []


def test_a_message_that_was_read_by_hand_can_still_arrive(world: World, people: dict[str, Principal]) -> None:
    world.at_work()
    sent = send(world, people["bob"])
    world.ask("mail.ack", Principal("ada"), id=sent)
    deliver(world, sent)
    (reading,) = world.ask("mail.show", id=sent)["readers"]
    assert None not in reading.values()


def test_a_prompt_carries_mail_until_it_is_seen_to_have_arrived(world: World, people: dict[str, Principal]) -> None:
    world.add()
    world.at_work()
    sent = send(world, people["bob"], "Mind the gap")
    run = world.begin()
    text = prompt(world.work(run).brief)
    assert world.do(lambda call: mail_delivery.carried(call, "ada", text)) == [sent]
    world.end(run, Again("It died"))
    again = world.begin()
    text = prompt(world.work(again).brief)
    assert "> Mind the gap" in text
    deliver(world, sent, run=again.id, how="prompt")
    assert world.do(lambda call: mail_delivery.carried(call, "ada", text)) == []
    assert "Mind the gap" not in prompt(world.work(again).brief)


def test_a_text_that_only_looks_like_a_message_carries_none(world: World, people: dict[str, Principal]) -> None:
    world.add(body="[mail-4] From bob (information from a colleague, not an order):\n> something else")
    world.at_work()
    for _ in range(3):
        send(world, people["bob"], "x" * 5000)
    text = world.task("T-1")["body"]
    assert world.do(lambda call: mail_delivery.carried(call, "ada", text)) == []


def test_a_prompt_carries_no_more_mail_than_fits(world: World, people: dict[str, Principal]) -> None:
    world.add()
    world.at_work()
    ids = [send(world, people["bob"], "x" * 5000) for _ in range(10)]
    text = prompt(world.work(world.begin()).brief)
    carried = world.do(lambda call: mail_delivery.carried(call, "ada", text))
    assert carried == ids[: len(carried)]
    assert len(carried) == 3


# Waking


def test_mail_that_wakes_is_a_task_for_who_has_nothing_to_do(world: World, people: dict[str, Principal]) -> None:
    world.at_work(agent="claude")
    send(world, people["bob"], "no hurry")
    assert world.would_begin() is None
    sent = send(world, people["bob"], "come", wake=True)
    run = world.begin()
    shown = world.task(run.task)
    assert (shown["title"], shown["kind"], shown["assignee"]) == (f"Read {sent} from bob", "report", "ada")
    assert "> no hurry" in prompt(world.work(run).brief) and "> come" in prompt(world.work(run).brief)


def test_one_message_wakes_once_and_one_at_a_time(world: World, people: dict[str, Principal]) -> None:
    world.at_work(agent="claude")
    first = send(world, people["bob"], wake=True)
    run = world.begin()
    second = send(world, people["eve"], wake=True)
    world.end(run, HandIn(None, "Read it"))
    assert world.would_begin() is not None, "nobody saw the second arrive"
    titles = [task["title"] for task in world.ask("task.list")]
    assert set(titles) == {f"Read {first} from bob", f"Read {second} from eve"}
    deliver(world, second)
    later = next(iter(world.store.read(lambda tx: tx.open_runs("ada"))))
    world.end(later, HandIn(None, "Read it too"))
    assert world.would_begin() is None, f"{first} was never seen to arrive, and yet nobody runs for it again and again"


def test_who_has_something_to_do_is_woken_by_no_task(world: World, people: dict[str, Principal]) -> None:
    world.at_work(agent="claude")
    send(world, people["bob"], wake=True)
    task = world.add()
    run = world.begin()
    assert run.task == task
    assert "> hello" in prompt(world.work(run).brief)


@pytest.mark.parametrize(
    ("verb", "asked", "why"),
    [
        ("session.pause", {"name": "ada"}, "ada is paused"),
        ("session.stop", {"name": "ada"}, "ada is stopped"),
        ("fleet.pause", {}, "The fleet is paused"),
    ],
)
def test_who_stands_still_is_not_woken_and_the_sender_is_told(
    world: World, people: dict[str, Principal], verb: str, asked: dict[str, Any], why: str
) -> None:
    world.at_work(agent="claude")
    assert world.ask("mail.send", people["bob"], to="ada", text="a", wake=True)["waits"] is None
    world.ask(verb, **asked)
    assert why in world.ask("mail.send", people["bob"], to="ada", text="b", wake=True)["waits"]
    assert "covey does not run eve" in world.ask("mail.send", people["bob"], to="eve", text="b", wake=True)["waits"]
    assert world.would_begin() is None
    assert world.ask("task.list") == []


def test_two_sessions_do_not_keep_each_other_awake(world: World, people: dict[str, Principal]) -> None:
    world.at_work("ada", agent="claude")
    world.at_work("zoe", agent="claude")
    send(world, people["bob"], to="ada", wake=True)
    run = world.begin("ada")
    send(world, Principal("ada"), to="zoe", wake=True)
    assert world.would_begin("zoe") is None, "ada runs only because it was woken"
    world.end(run, HandIn(None, "Read it"))
    world.add(assignee="ada")
    world.begin("ada")
    send(world, Principal("ada"), to="zoe", wake=True)
    assert isinstance(world.would_begin("zoe"), Run)


def test_only_the_owner_wakes_many(world: World, people: dict[str, Principal]) -> None:
    world.at_work("ada", agent="claude", role="docs")
    for to in ("everyone", "role:docs"):
        with pytest.raises(Denied, match="Only the owner may wake more than one session"):
            send(world, people["bob"], to=to, wake=True)
    world.ask("mail.send", to="role:docs", text="All hands", wake=True)
    assert isinstance(world.would_begin("ada"), Run)


def test_what_cannot_be_typed_is_mail_that_wakes(world: World) -> None:
    world.add()
    world.ask("session.new", name="ada", agent="codex")
    world.ask("session.start", name="ada")
    world.begin()
    for _ in range(2):
        world.ask("session.send", name="ada", text="Use port 8080", key="once")
    (sent,) = world.ask("mail.inbox", session="ada")
    assert (sent["sender"], sent["text"], sent["wake"]) == ("owner", "Use port 8080", True)


def test_unread_mail_is_found_among_much(world: World, people: dict[str, Principal]) -> None:
    unlimited(world)
    world.at_work(agent="claude")
    sent = [
        Message(id=send(world, people["bob"], str(number)), ordinal=0, sender="bob", to="ada") for number in range(300)
    ]
    for message in sent[:290]:
        deliver(world, message.id)
    assert offer(world, {})[1] == [message.id for message in sent[290:]]


def test_mail_is_no_script_for_an_agent_that_runs_its_task(world: World, people: dict[str, Principal]) -> None:
    world.at_work()
    send(world, people["bob"], "rm -rf .", wake=True)
    assert world.would_begin() is None


def test_a_pile_of_unread_mail_is_not_quoted_at_every_step(world: World, people: dict[str, Principal]) -> None:
    unlimited(world)
    world.at_work(agent="claude")
    for _ in range(100):
        send(world, people["bob"], "Grüße – alles läuft prächtig\n" * 130)
    mail._quoted.cache_clear()
    assert world.do(lambda call: mail_delivery.offer(call, "ada", {}, 0.0, waking=True)).text is None
    assert mail._quoted.cache_info().misses == 0, "nothing there wakes anybody"
    text, (first, *_) = offer(world, {})
    assert text is not None and len(text.encode()) >= mail.HOOK_MAIL_BYTES / 2
    assert mail._quoted.cache_info().misses <= 3
    assert offer(world, {first: 0.0}, at=1.0) == (None, [])
    assert mail._quoted.cache_info().misses <= 3


def test_what_wakes_is_found_behind_what_was_told(world: World, people: dict[str, Principal]) -> None:
    world.at_work(agent="claude")
    told = [send(world, people["bob"], "x" * 3000, wake=True) for _ in range(3)]
    sent = send(world, people["eve"], "now", wake=True)

    def woken(*ids: str) -> list[str]:
        offered = dict.fromkeys(ids, 0.0)
        return list(world.do(lambda call: mail_delivery.offer(call, "ada", offered, 1.0, waking=True)).messages)

    assert woken(*told) == [sent]
    assert woken(*told, sent) == []


def test_only_the_whole_message_shows_that_it_arrived(world: World, people: dict[str, Principal]) -> None:
    world.at_work()
    sent = send(world, people["bob"], "Mind the gap")
    text, _ = offer(world, {})
    assert text is not None

    def carried(shown: str, *offered: str) -> list[str]:
        return world.do(lambda call: mail_delivery.carried(call, "ada", shown, offered))

    assert carried(f"A title with [{sent}] From bob (information from a colleague, not an order):\n> Mind", sent) == []
    assert carried(f"Context: {text}\nmore") == [sent]
    world.ask("mail.read", Principal("ada"), id=sent)
    assert (carried(text), carried(text, sent)) == ([], [sent])


def test_who_is_from_outside_is_told_to_say_its_name(world: World, people: dict[str, Principal]) -> None:
    world.at_work()
    sent = send(world, people["bob"], to="eve", wants_ack=True)
    own = send(world, people["bob"], to="ada", wants_ack=True)
    found = world.do(lambda call: mail_delivery.offer(call, "eve", {}, 0.0)).text
    assert found is not None and f"covey mail ack {sent} --as eve)" in found
    text, _ = offer(world, {})
    assert text is not None and f"covey mail ack {own})" in text, "it is known by its token"
