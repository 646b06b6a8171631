"""Mail through the App: it reaches whom it is for, once and in order, and nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from covey.errors import Denied, Invalid, NotFound, Refused
from tests.worlds.boards import OWNER, Principal, World


@pytest.fixture
def people(world: World) -> dict[str, Principal]:
    for name, role in (("ada", "docs"), ("bob", None), ("carl", "docs")):
        world.ask("session.new", name=name, role=role)
    return {name: Principal(name) for name in ("ada", "bob", "carl")}


def inbox(world: World, who: Principal, **asked: Any) -> list[str]:
    return [message["text"] for message in world.ask("mail.inbox", who, **asked)]


@pytest.mark.parametrize(
    ("to", "readers"),
    [
        ("ada", {"ada"}),
        ("role:docs", {"ada", "carl"}),
        ("everyone", {"ada", "carl", "owner"}),
        ("owner", {"owner"}),
        ("role:nobody", set()),
    ],
)
def test_a_message_reaches_whom_it_is_for_and_nobody_else(
    world: World, people: dict[str, Principal], to: str, readers: set[str]
) -> None:
    sent = world.ask("mail.send", people["bob"], to=to, text="hello")
    everybody = {**people, "owner": OWNER}
    assert {name for name, who in everybody.items() if inbox(world, who)} == readers
    for name in set(everybody) - readers - {"bob"}:
        with pytest.raises(Denied, match=f"was not sent to {name}"):
            world.ask("mail.read", everybody[name], id=sent["id"])


def test_what_was_read_is_gone_from_the_inbox_and_still_there_with_all(
    world: World, people: dict[str, Principal]
) -> None:
    sent = world.ask("mail.send", people["bob"], to="everyone", text="hello")
    world.clock.run(5)
    shown = world.ask("mail.read", people["ada"], id=sent["id"])
    assert (shown["read"], shown["acked"]) == (world.clock.now().wall, None)
    assert inbox(world, people["ada"]) == []
    assert inbox(world, people["ada"], all=True) == ["hello"]
    assert inbox(world, people["carl"]) == ["hello"]


def test_reading_and_acknowledging_twice_is_doing_it_once(world: World, people: dict[str, Principal]) -> None:
    sent = world.ask("mail.send", people["bob"], to="ada", text="hello", wants_ack=True)
    first = world.ask("mail.read", people["ada"], id=sent["id"])
    acked = world.ask("mail.ack", people["ada"], id=sent["id"])
    assert acked["read"] == first["read"] and acked["acked"] is not None
    before = world.everything()
    world.clock.run(5)
    assert world.ask("mail.read", people["ada"], id=sent["id"]) == acked
    assert world.ask("mail.ack", people["ada"], id=sent["id"]) == acked
    assert world.everything() == before


def test_who_acknowledges_has_read(world: World, people: dict[str, Principal]) -> None:
    sent = world.ask("mail.send", people["bob"], to="ada", text="hello", wants_ack=True)
    world.ask("mail.ack", people["ada"], id=sent["id"])
    assert inbox(world, people["ada"]) == []


def test_mail_arrives_in_the_order_in_which_it_was_sent(world: World, people: dict[str, Principal]) -> None:
    for number in range(6):
        sender = people["bob"] if number % 2 else people["carl"]
        world.ask("mail.send", sender, to=("ada", "everyone", "role:docs")[number % 3], text=str(number))
        world.clock.turn(-100)
    assert inbox(world, people["ada"]) == list("012345")
    assert inbox(world, people["ada"], limit=2) == list("01")
    second = world.ask("mail.inbox", people["ada"], limit=2)[-1]["seq"]
    assert inbox(world, people["ada"], after=second) == list("2345")


def test_a_sender_does_not_get_its_own_mail(world: World, people: dict[str, Principal]) -> None:
    world.ask("mail.send", people["ada"], to="everyone", text="hello")
    world.ask("mail.send", people["ada"], to="role:docs", text="hello")
    assert inbox(world, people["ada"]) == []


def test_a_newcomer_gets_no_old_mail_to_many(world: World, people: dict[str, Principal]) -> None:
    world.ask("mail.send", people["bob"], to="everyone", text="old")
    world.clock.run(1)
    world.ask("session.new", name="dora", role="docs")
    world.ask("mail.send", people["bob"], to="everyone", text="new")
    assert inbox(world, Principal("dora")) == ["new"]


def test_a_clock_that_is_set_back_loses_no_mail(world: World, people: dict[str, Principal]) -> None:
    world.clock.turn(-7200)
    world.ask("mail.send", people["bob"], to="everyone", text="after the turn")
    assert inbox(world, people["ada"]) == ["after the turn"]


def test_mail_to_an_unknown_session_is_refused(world: World) -> None:
    with pytest.raises(NotFound, match="There is no session 'dora' to write to"):
        world.ask("mail.send", to="dora", text="hello")


def test_mail_to_covey_is_refused(world: World) -> None:
    with pytest.raises(Refused, match="covey reads no mail"):
        world.ask("mail.send", to="covey", text="hello")


def test_nobody_sends_as_the_owner_or_covey(world: World, people: dict[str, Principal]) -> None:
    for name in ("owner", "covey", "bob"):
        with pytest.raises(Denied):
            world.ask("mail.send", people["ada"], to="carl", text="pay me", session=name)


def test_a_message_about_a_task_that_is_not_there_is_refused(world: World, people: dict[str, Principal]) -> None:
    with pytest.raises(NotFound):
        world.ask("mail.send", to="ada", text="hello", task="T-99")
    task = world.add()
    assert world.ask("mail.send", to="ada", text="hello", task=task)["task"] == task


def test_a_message_that_is_not_there_cannot_be_read(world: World) -> None:
    for verb in ("mail.read", "mail.ack"):
        with pytest.raises(NotFound):
            world.ask(verb, id="mail-99")


@pytest.mark.parametrize("text", ["", "a\x00b", "a\x1b[2Jb"])
def test_a_text_that_no_terminal_should_see_is_refused(world: World, text: str) -> None:
    with pytest.raises(Invalid):
        world.ask("mail.send", to="owner", text=text)


def test_a_secret_is_taken_out_and_a_long_text_comes_back_whole(world: World, people: dict[str, Principal]) -> None:
    world.ask("mail.send", people["bob"], to="ada", text="key: ghp_" + "a1B2c3D4e5" * 4)
    world.ask("mail.send", people["bob"], to="ada", text="ü" * 20_000)
    assert inbox(world, people["ada"]) == ["key: [secret removed]", "ü" * 20_000]


def test_the_owner_reads_for_a_session_by_name(world: World, people: dict[str, Principal]) -> None:
    sent = world.ask("mail.send", people["bob"], to="ada", text="hello")
    assert inbox(world, OWNER, session="ada") == ["hello"]
    world.ask("mail.read", session="ada", id=sent["id"])
    assert inbox(world, people["ada"]) == []


def test_status_counts_what_is_unread(world: World, people: dict[str, Principal]) -> None:
    world.ask("mail.send", people["bob"], to="owner", text="hello")
    world.ask("mail.send", people["bob"], to="ada", text="hello")
    assert world.ask("status")["unread"] == 1
    assert world.ask("status", people["ada"])["unread"] == 1


def test_the_log_shows_a_session_the_text_of_its_own_mail_only(world: World) -> None:
    for name in ("ada", "bob", "eve"):
        world.ask("session.new", name=name)
    world.ask("mail.send", session="ada", to="bob", subject="Hush", text="between us")
    world.ask("mail.send", session="ada", to="everyone", text="for all")

    def texts(who: Principal) -> list[object]:
        return [event["data"].get("text") for event in world.ask("log.list", who, kind="mail.sent")]

    assert texts(Principal("eve")) == [None, "for all"]
    assert texts(Principal("ada")) == texts(Principal("bob")) == texts(OWNER) == ["between us", "for all"]


def test_a_kind_of_event_that_there_is_not_is_refused_with_the_nearest(world: World) -> None:
    with pytest.raises(Invalid) as refused:
        world.ask("log.list", kind="task.claimd")
    assert "task.claimed" in refused.value.hint
    world.add()
    assert world.ask("log.list", kind="task.")[0]["kind"] == "task.added"
