"""The table of rights: each verb, asked by the owner, by a session about its own and about another's, and by a role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from covey.app.context import Call
from covey.app.shapes.board import Held
from covey.app.verbs import VERBS, Verb, decode
from covey.core.merging import gates
from covey.core.people.rights import Asker, May, Rights
from covey.errors import CoveyError, Denied, Refused
from tests.worlds.boards import OWNER, Principal, World

ADA, BOB, RITA = Principal("ada"), Principal("bob"), Principal("rita")
HIDDEN = "between-bob-and-the-owner"
"""Stands in everything of bob's that is no business of ada's."""


@pytest.fixture
def town(world: World) -> World:
    """Two sessions with one of everything each, and a third that reviews."""
    return furnish(world)


def furnish(world: World) -> World:
    """Put one of everything on the board for two sessions, and let a third review."""
    config = replace(world.config, merge=replace(world.config.merge, review=True, review_role="review"))
    world.config = world.app.context.config = config
    world.ask("session.new", name="rita", role="review")
    for name in ("ada", "bob"):
        world.ask("session.new", name=name)
    return world


class Things:
    """What one session has: a name for each thing that a verb can be asked about."""

    def __init__(self, world: World, owner: str) -> None:
        self.world = world
        self.name = owner
        self.who = Principal(owner)
        self.held = world.add(f"held by {owner}", scope=[f"{owner}/**"])
        self.fence = world.ask("task.claim", id=self.held, session=owner)["fence"]
        self.handed = world.add(f"handed in by {owner}")
        world.ask("task.claim", id=self.handed, session=owner)
        world.ask("task.handin", id=self.handed, session=owner, commit="c" * 40)
        self.merge = world.ask("merge.list")[-1]["id"]
        self.added = world.ask("task.add", self.who, title=f"added by {owner}", body=HIDDEN)["id"]
        lease = world.ask("lease.take", self.who, resources=[f"{owner}.lock"])
        self.lease, self.lease_fence = lease["id"], lease["fence"]
        self.mail = world.ask("mail.send", self.who, to="owner", text=HIDDEN)["id"]
        self.question = world.ask("question.ask", self.who, text=f"May I? {HIDDEN}")["id"]
        self.proposal = world.proposed("task.edit", self.who, id=world.add("the owner's"), title=HIDDEN)["id"]
        self.gate = self._start_gate()
        self.device = "device-1"

    def _start_gate(self) -> str:
        event = gates.Started(base="a" * 40, commit="b" * 40, merges=(self.merge,), test=1)

        def start(call: Call) -> str:
            seq = call.tx.next_seq
            gate = gates.first(f"gate-{seq}", seq, event, call.tx.now)
            call.tx.insert(gate)
            call.tx.append("covey", gate.id, event, gate)
            return gate.id

        return self.world.do(start)


ASKED: dict[str, Callable[[Things], dict[str, Any]]] = {
    "task.list": lambda it: {},
    "task.add": lambda it: {"title": "x", "assignee": it.name},
    "task.show": lambda it: {"id": it.held},
    "task.deps": lambda it: {"id": it.held},
    "task.edit": lambda it: {"id": it.added, "title": "better"},
    "task.claim": lambda it: {"id": it.added},
    "task.next": lambda it: {},
    "task.renew": lambda it: {"id": it.held, "fence": it.fence},
    "task.handin": lambda it: {"id": it.held, "fence": it.fence, "commit": "c" * 40},
    "task.release": lambda it: {"id": it.held, "fence": it.fence},
    "task.block": lambda it: {"id": it.held, "fence": it.fence, "reason": "why"},
    "task.drop": lambda it: {"id": it.added},
    "task.move": lambda it: {"id": it.added, "to": "first"},
    "task.reopen": lambda it: {"id": it.added},
    "task.bulk": lambda it: {"ids": [it.added], "drop": "no"},
    "task.import": lambda it: {"tasks": [{"key": it.name, "title": "x"}]},
    "task.diff": lambda it: {"id": it.held},
    "task.conflicts": lambda it: {"id": it.held},
    "diff.show": lambda it: {"tasks": f"{it.held},{it.handed}"},
    "comment.list": lambda it: {"task": it.held},
    "comment.write": lambda it: {"task": it.held, "text": "x"},
    "comment.edit": lambda it: {"id": "comment-1", "text": "x"},
    "comment.remove": lambda it: {"id": "comment-1"},
    "comment.send": lambda it: {"task": it.held},
    "lease.show": lambda it: {"id": it.lease},
    "lease.take": lambda it: {"resources": ["ada/**" if it.name == "ada" else "**"]},
    "lease.renew": lambda it: {"id": it.lease, "fence": it.lease_fence},
    "lease.give": lambda it: {"id": it.lease, "fence": it.lease_fence},
    "mail.send": lambda it: {"to": it.name, "text": "x"},
    "mail.inbox": lambda it: {"session": it.name},
    "mail.show": lambda it: {"id": it.mail},
    "mail.read": lambda it: {"id": it.mail},
    "mail.ack": lambda it: {"id": it.mail},
    "merge.queue": lambda it: {"branch": "x", "commit": "c" * 40, "title": "x"},
    "merge.land": lambda it: {"id": it.merge, "commit": "c" * 40},
    "merge.reject": lambda it: {"id": it.merge, "reason": "x"},
    "push.ask": lambda it: {"remote": "origin", "refs": ["main"]},
    "question.ask": lambda it: {"text": "What?"},
    "question.show": lambda it: {"id": it.question},
    "question.take": lambda it: {"id": it.question},
    "question.answer": lambda it: {"id": it.question, "decision": "allow"},
    "permit.grant": lambda it: {"about": "npm test"},
    "permit.revoke": lambda it: {"id": "permit-1"},
    "proposal.show": lambda it: {"id": it.proposal},
    "proposal.withdraw": lambda it: {"id": it.proposal},
    "proposal.accept": lambda it: {"id": it.proposal},
    "proposal.decline": lambda it: {"id": it.proposal},
    "session.new": lambda it: {"name": "eve"},
    "session.send": lambda it: {"name": it.name, "text": "x"},
    "gate.show": lambda it: {"id": it.gate},
    "gate.log": lambda it: {"id": it.gate},
    "batch.start": lambda it: {"name": "b", "sessions": 1},
    "batch.show": lambda it: {"name": "b"},
    "batch.stop": lambda it: {"name": "b"},
    "device.revoke": lambda it: {"id": it.device},
    "log.import": lambda it: {"log": "0" * 32, "events": []},
    "log.forget": lambda it: {"log": "0" * 32},
    "line.why": lambda it: {"task": it.held, "commit": "c" * 40, "path": "a", "text": "x"},
}
"""How each verb is asked about the things of one session; those that are left out take its name or its merge alone."""


def asked_of(verb: Verb, it: Things) -> dict[str, Any]:
    """Return what a verb is asked about the things of a session."""
    if verb.name in ASKED:
        return ASKED[verb.name](it)
    return {name: {"name": it.name, "id": it.merge}[name] for name in verb.params}


def outcome(world: World, verb: Verb, who: Principal, asked: dict[str, Any]) -> May:
    """Ask, and return what came of it; what is refused for another reason than a right was let through by the table."""
    body = {name: value for name, value in asked.items() if name not in verb.params}
    decode(verb.decoder, msgspec.json.encode(body))  # or what is wrong with the test would pass for a right
    try:
        answer = world.answer(verb.name, who, **asked)
    except Denied:
        return May.NO
    except Refused as error:
        held_by_another = "held by" in error.message
        return May.NO if held_by_another else May.YES
    except CoveyError:
        return May.YES
    return May.PROPOSE if answer.status == 202 else May.YES


def expected(rights: Rights, standing: Asker) -> May:
    """Return what the table says, as far as it can be told from whether there is an answer."""
    may = rights.of(standing)
    return May.YES if may is May.PART else may


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_verb_does_what_its_row_says(town: World, name: str) -> None:
    verb = VERBS[name]
    ada, bob = Things(town, "ada"), Things(town, "bob")
    own, other = asked_of(verb, ada), asked_of(verb, bob)
    found = {
        Asker.OTHER: outcome(town, verb, ADA, other),
        Asker.OWN: outcome(town, verb, ADA, own),
        Asker.REVIEWER: outcome(town, verb, RITA, other),
        Asker.OWNER: outcome(town, verb, OWNER, other | ({"session": "bob"} if issubclass(verb.asked, Held) else {})),
    }
    assert found == {standing: expected(verb.may, standing) for standing in found}


def test_a_verb_without_a_row_cannot_be_made() -> None:
    from covey.app.shapes.forms import Nothing
    from covey.app.verbs import verb

    with pytest.raises(TypeError, match="may"):
        verb("x.y", "GET /api/x", Nothing, Nothing)  # type: ignore[call-arg]
