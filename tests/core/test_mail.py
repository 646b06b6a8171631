"""The life of a message."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core import mail
from covey.core.events import NAMES
from covey.core.fold import State
from covey.core.mail import Message, Reading
from covey.core.sessions import Session
from covey.errors import Denied, Invalid, Refused
from covey.store.rows import decode_payload, encode_payload


@pytest.mark.parametrize("to", ["ada", "role:quality", "everyone", "owner"])
def test_mail_goes_to(to: str) -> None:
    assert mail.address(to) == to


@pytest.mark.parametrize("to", ["", "role:", "role:a b", "group:x", "a/b", "-x", "ada\n", "x" * 65, "role:" + "x" * 65])
def test_mail_does_not_go_to(to: str) -> None:
    with pytest.raises(Invalid):
        mail.address(to)


def test_covey_reads_no_mail() -> None:
    with pytest.raises(Refused, match="covey reads no mail"):
        mail.address("covey")


def message(to: str) -> Message:
    return Message(id="mail-1", ordinal=1, sender="bob", to=to)


@pytest.mark.parametrize(
    ("to", "reader", "role"),
    [
        ("ada", "ada", None),
        ("everyone", "ada", None),
        ("role:quality", "ada", "quality"),
        ("owner", "owner", None),
        ("ada", "bob", None),
    ],
    ids=["to itself", "to all", "to its role", "the owner", "what it sent itself"],
)
def test_a_session_may_read(to: str, reader: str, role: str | None) -> None:
    mail.may_read(message(to), reader, Session(name=reader, role=role))


@pytest.mark.parametrize(
    ("to", "role"), [("ada", None), ("owner", None), ("role:quality", None), ("role:quality", "docs")]
)
def test_a_session_may_not_read_the_mail_of_others(to: str, role: str | None) -> None:
    with pytest.raises(Denied, match="mail-1 was not sent to carl"):
        mail.may_read(message(to), "carl", Session(name="carl", role=role))


def test_who_acknowledges_has_read() -> None:
    assert mail.read("mail-1", None, mail.Acked("ada"), 5.0) == Reading("mail-1", "ada", 5.0, 5.0)


def test_the_time_of_the_first_reading_stays() -> None:
    first = mail.read("mail-1", None, mail.Read("ada"), 5.0)
    assert mail.read("mail-1", first, mail.Read("ada"), 6.0) == Reading("mail-1", "ada", 5.0)
    assert mail.read("mail-1", first, mail.Acked("ada"), 7.0) == Reading("mail-1", "ada", 5.0, 7.0)


readers = st.sampled_from(["ada", "bob", "owner"])


class AnyOrder(RuleBasedStateMachine):
    """Whatever is sent, read and acknowledged, in whatever order, the log tells the whole story."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[str, str, str, str]] = []
        self.messages: dict[str, Message] = {}
        self.readings: dict[tuple[str, str], Reading] = {}

    def write(self, actor: str, subject: str, event: mail.Event) -> float:
        self.log.append((actor, subject, NAMES[type(event)], encode_payload(event)))
        return float(len(self.log))

    @rule(
        sender=readers, to=st.sampled_from(["ada", "everyone", "role:x"]), text=st.text(max_size=5), ack=st.booleans()
    )
    def send(self, sender: str, to: str, text: str, ack: bool) -> None:
        event = mail.Sent(to=to, text=text, wants_ack=ack)
        seq = len(self.log) + 1
        at = self.write(sender, f"mail-{seq}", event)
        self.messages[f"mail-{seq}"] = mail.first(f"mail-{seq}", seq, sender, event, at)

    @rule(reader=readers, which=st.integers(0, 5), ack=st.booleans())
    def read(self, reader: str, which: int, ack: bool) -> None:
        if which >= len(self.messages):
            return
        message = list(self.messages)[which]
        event = mail.Acked(reader) if ack else mail.Read(reader)
        before = self.readings.get((message, reader))
        at = self.write(reader, message, event)
        self.readings[message, reader] = mail.read(message, before, event, at)

    @invariant()
    def the_log_tells_the_whole_story(self) -> None:
        state = State()
        for seq, (actor, subject, kind, data) in enumerate(self.log, 1):
            payload = decode_payload(kind, data)
            state.fold(seq=seq, at=float(seq), actor=actor, kind=kind, subject=subject, payload=payload)
        assert state.messages == self.messages
        assert state.readings == self.readings


TestAnyOrder = AnyOrder.TestCase
