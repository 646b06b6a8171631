"""The log: its catalogue is complete, and a hash holds every field of an event."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import fields, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core import events
from covey.core.events import Event, digest
from covey.core.fold import State
from covey.core.merging.queue.train import Rate
from covey.core.nouns import KINDS, NAMES, Payload
from covey.store.engine.audit import DAMAGE
from covey.store.engine.rows import decode_payload, encode_payload

texts = st.text(st.characters(codec="utf-8"), max_size=20)
some_events = st.builds(
    Event,
    seq=st.integers(1, 2**53),
    time=st.floats(0, 1e11),
    actor=texts,
    kind=texts,
    subject=texts,
    data=texts,
    key=st.none() | texts,
    prev=st.binary(min_size=32, max_size=32),
)


@given(some_events, some_events)
def test_a_changed_field_changes_the_hash(event: Event, other: Event) -> None:
    for field in fields(Event):
        changed = replace(event, **{field.name: getattr(other, field.name)})
        assert (digest(changed) == digest(event)) is (changed == event)


@given(some_events, st.data())
def test_one_altered_character_changes_the_hash(event: Event, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["actor", "kind", "subject", "data"]))
    text = getattr(event, name)
    place = data.draw(st.integers(0, len(text)))
    altered = text[:place] + data.draw(texts) + text[place + 1 :]
    if altered != text:
        assert digest(replace(event, **{name: altered})) != digest(event)


def test_no_key_and_a_key_that_looks_like_none_are_two_things() -> None:
    event = Event(1, 1.0, "a", "task.added", "T-1", "{}", None, events.FIRST)
    assert len({digest(replace(event, key=key)) for key in (None, "", "-", "+", "None")}) == 5


def test_an_event_is_chained_to_the_one_before() -> None:
    first = Event(1, 1.0, "a", "task.added", "T-1", "{}", None, events.FIRST)
    assert digest(first) != digest(replace(first, prev=digest(first)))


# The catalogue


def test_every_event_has_exactly_one_kind() -> None:
    assert len(NAMES) == len(KINDS)


WRITTEN = {
    "task": "added edited moved claimed handed_in approved held released rejected blocked dropped ready waiting done",
    "session": "registered started stopped paused resumed leaving rescued changed attached given_back removed"
    " token_minted",
    "run": "begun prepared talking ending ended spent missed heard left wrote",
    "fleet": "paused resumed stopped",
    "question": "asked answered expired withdrawn told",
    "permit": "granted revoked",
    "proposal": "made accepted declined withdrawn",
    "device": "invited joined revoked",
    "lease": "taken waiting granted given expired crossed",
    "mail": "sent read acked delivered",
    "comment": "written edited removed sent",
    "overlap": "found changed gone heated cooled",
    "merge": "queued entered clashed approved tested passed waits held requeued landed rejected withdrawn reverted",
    "queue": "began joined paused resumed frozen thawed halted",
    "gate": "started ended lost flaked",
    "landing": "made pushed",
    "alert": "raised",
    "log": "begun pruned rebuilt imported forgotten",
    "daemon": "started stopped",
}
"""The kinds that stand in logs out there, by their nouns: one may join them, none may go or change."""


def test_a_kind_that_was_once_written_is_a_kind_for_ever() -> None:
    assert list(KINDS) == [f"{noun}.{word}" for noun, words in WRITTEN.items() for word in words.split()]


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_says_in_its_docstring_what_happened(kind: str) -> None:
    doc = KINDS[kind].__doc__
    assert doc is not None and doc.endswith(".") and not doc.startswith(KINDS[kind].__name__ + "(")


def is_finite(payload: Payload) -> bool:
    """Say whether no number of a payload is one that JSON cannot carry, and that no request can bring."""
    values = list(payload.__dict__.values())
    values += [inner for value in values if isinstance(value, Rate) for inner in value.__dict__.values()]
    return all(math.isfinite(value) for value in values if isinstance(value, float))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_every_event_is_the_same_after_writing_and_reading(kind: str, data: st.DataObject) -> None:
    payload = data.draw(st.from_type(KINDS[kind]).filter(is_finite))
    assert decode_payload(kind, encode_payload(payload)) == payload


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_an_event_whose_beginning_was_lost_is_told_as_damage(kind: str, data: st.DataObject) -> None:
    payload = data.draw(st.from_type(KINDS[kind]).filter(is_finite))
    with suppress(*DAMAGE):
        State().fold(seq=2, at=1.0, actor="ada", kind=kind, subject="T-1", payload=payload)


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_of_a_later_covey_with_a_field_more_can_still_be_read(kind: str) -> None:
    required = {f.name: _example(f.name) for f in fields(KINDS[kind]) if f.default is f.default_factory}
    decode_payload(kind, msgspec.json.encode({**required, "of_tomorrow": 1}))


def _example(name: str) -> object:
    values = {
        "fence": 1,
        "rank": 1.5,
        "resources": ["a"],
        "state": "idle",
        "to": "review",
        "blobs": 0,
        "size": 0,
        "outcome": "lost",
    }
    values |= {"decision": "deny", "paths": ["a"], "calls": 1, "collisions": 3, "level": "file"}
    values |= {"against": ["a"], "tests": ["a"], "slots": 1, "test": 1, "passed": True}
    values |= {"kind": "page", "until": 1.0, "facts": [["title", "x"]], "files": ["a"]}
    return values.get(name, 0 if name in ("events", "differences") else "x")


def test_what_has_no_row_is_folded_into_nothing() -> None:
    state = State()
    for kind, payload in (("log.begun", events.Begun("x", "p")), ("daemon.stopped", events.Stopped())):
        state.fold(seq=1, at=1.0, actor="covey", kind=kind, subject="log", payload=payload)
    state.fold(seq=2, at=1.0, actor="owner", kind="session.token_minted", subject="ada", payload=events.Minted())
    assert state == State()
