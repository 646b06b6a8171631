"""The verbs of proposals: what a session asks beyond its rights waits for a person, who does it or declines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import NODEFAULT, Raw, Struct, structs

from covey.app.context import Call, Principal
from covey.app.people.mail import tell
from covey.app.shapes.board import AddTask, BulkTasks, EditTask, ImportTasks
from covey.app.shapes.forms import Answered, Asked, Json, Limit, Nothing, Perhaps, completed, fields_of
from covey.app.shapes.leases import TakeLease
from covey.app.verbs import VERBS, Verb, decode, verb
from covey.core.board.needs import Policy
from covey.core.board.tasks import Task
from covey.core.people import proposals
from covey.core.people.proposals import Proposal, ProposalState
from covey.core.people.rights import OWN, OWNER_ONLY, PARTLY
from covey.core.texts import prose
from covey.errors import CoveyError, Invalid, Refused, TooMany

MOST_BYTES = 32 * 1024
"""Bytes of a request that can be proposed."""
SHOWN = 500
"""Characters of a value of before that a person is shown; what is proposed is shown whole."""
_NAMED = 5
"""Tasks that are named in the sentence of a proposal."""


class ListProposals(Asked, frozen=True, kw_only=True):
    """Which proposals; without `all`, those that are open."""

    all: bool = False
    limit: Limit = 200


class AcceptProposal(Asked, frozen=True, kw_only=True):
    """With `anyway`, also if what it is about has changed since."""

    anyway: bool = False


class ProposedChange(Struct, frozen=True):
    """One field of what is proposed: how it was then and is now, if there is something to change, and how it would be.

    `to` is whole; of `was` and `now` a person is shown the beginning.
    """

    field: str
    was: str
    now: str
    to: str


@completed(fields_of(Proposal, "ordinal", "basis", "was", "asked"))
class ProposalRow(Answered, frozen=True, kw_only=True):
    """What a session asks a person to do; `stale`: what it is about has changed since.

    `asked` is the body of the request, `changes` the same field by field.
    """

    id: str
    what: str
    asked: Json
    changes: list[ProposedChange]
    stale: bool


# What a session does


def propose(call: Call, what: Verb, asked: Any, params: dict[str, str], why: str) -> ProposalRow:
    """Write down what a session asks beyond its rights; the same asked again while it is open is the same proposal."""
    session = call.actor(getattr(asked, "session", None))
    if "session" in what.asked.__struct_fields__:
        asked = structs.replace(asked, session=session)  # whoever accepts it does it for the one who asked
    body = prose(msgspec.json.encode(asked).decode(), "The proposal", MOST_BYTES)
    decode(what.decoder, body.encode())
    target = next(iter(params.values()), None)
    opened = call.tx.open_proposals(session)
    for before in opened:
        if (before.verb, before.target, before.asked) == (what.name, target, body):
            return row(call, before)
    most = call.context.config.limits.proposals
    if len(opened) >= most:
        raise TooMany(f"{session} has {most} proposals open already.", hint="Wait until a person has decided.")
    call.worker(session)
    subjects = _subjects(target, asked)
    event = proposals.Made(
        session=session,
        verb=what.name,
        target=target,
        asked=body,
        why=why,
        basis=call.tx.newest_of(subjects),
        was=msgspec.json.encode(_values(call, target, asked)).decode(),
    )
    return row(call, call.tx.begin(Proposal, event, session))


@verb("proposal.list", "GET /api/proposals", ListProposals, list[ProposalRow], may=PARTLY)
def list_proposals(call: Call, asked: ListProposals) -> list[ProposalRow]:
    """List what sessions ask a person to do, the oldest first; of very many, the newest; a session sees its own."""
    found = call.tx.last_proposals(is_open=not asked.all, session=call.who.session, limit=asked.limit)
    return [row(call, each) for each in found]


@verb("proposal.show", "GET /api/proposals/{id}", Nothing, ProposalRow, may=OWN)
def show(call: Call, asked: Nothing, id: str) -> ProposalRow:
    """Show a proposal, and what it would change."""
    return row(call, call.find(Proposal, id))


@verb("proposal.withdraw", "POST /api/proposals/{id}/withdraw", Nothing, ProposalRow, may=OWN)
def withdraw(call: Call, asked: Nothing, id: str) -> ProposalRow:
    """Take one's own proposal back."""
    return row(call, _end(call, call.find(Proposal, id), proposals.Withdrawn()))


# What a person does


def _look(call: Call, asked: AcceptProposal, id: str) -> Callable[[], Any] | None:
    """Return the look at what the proposed verb has looked at ahead."""
    found = call.tx.get(Proposal, id)
    if found is None or found.state is not ProposalState.OPEN:
        return None
    what, body, params = _request(found)
    return None if what.ahead is None else what.ahead(call, body, **params)


@verb("proposal.accept", "POST /api/proposals/{id}/accept", AcceptProposal, ProposalRow, may=OWNER_ONLY, ahead=_look)
def accept(call: Call, asked: AcceptProposal, id: str) -> ProposalRow:
    """Do what a session proposed, as the owner; refused if what it is about has changed since, unless `anyway`."""
    found = call.find(Proposal, id)
    event = proposals.end(found, proposals.Accepted())
    what, body, params = _request(found)
    doer = call.tx.session(getattr(body, "session", None) or "")
    if doer is not None and doer.removed:
        raise Refused(f"{doer.name} was removed since.", hint=f"Decline it: covey proposal decline {id}.")
    if _is_stale(call, found, body) and not asked.anyway:
        raise Refused(
            f"{found.target or 'What it is about'} has changed since {found.session} proposed this.",
            hint=f"covey proposal show {id} shows both; covey proposal accept {id} --anyway does it all the same.",
        )
    what.run(Call(call.tx, Principal(device=call.who.device), call.context, seen=call.seen), body, **params)
    return row(call, _end(call, found, event))


@verb("proposal.decline", "POST /api/proposals/{id}/decline", Perhaps, ProposalRow, may=OWNER_ONLY)
def decline(call: Call, asked: Perhaps, id: str) -> ProposalRow:
    """Leave undone what a session proposed, and tell it why."""
    return row(call, _end(call, call.find(Proposal, id), proposals.Declined(call.line(asked.reason, "The reason"))))


def _end(call: Call, found: Proposal, event: proposals.Accepted | proposals.Declined | proposals.Withdrawn) -> Proposal:
    proposals.end(found, event)
    after = call.tx.advance(found, event, call.actor(None))
    session = call.tx.session(found.session)
    if session is not None and not session.removed and not isinstance(event, proposals.Withdrawn):
        because = f": {after.reason}" if after.reason else "."
        tell(call, found.session, f"{found.id}, by which you asked for {found.verb}, was {after.state}{because}", None)
    return after


def _request(found: Proposal) -> tuple[Verb, Any, dict[str, str]]:
    what = VERBS.get(found.verb)
    if what is None or not what.may.can_be_proposed:
        raise Invalid(
            f"{found.verb} cannot be proposed any more.", hint=f"Decline it: covey proposal decline {found.id}."
        )
    return what, decode(what.decoder, found.asked.encode()), dict.fromkeys(what.params, found.target or "")


# What it would change


def _subjects(target: str | None, asked: Any) -> list[str]:
    """Return the tasks that a request is about."""
    return [target] if target is not None else list(getattr(asked, "ids", ()))


def _is_stale(call: Call, found: Proposal, asked: Any) -> bool:
    return call.tx.newest_of(_subjects(found.target, asked)) > found.basis


def _values(call: Call, target: str | None, asked: Any) -> dict[str, str]:
    """Return the fields of a task that a request names, as they are now, as far as a person is shown them."""
    task = None if target is None else call.tx.task(target)
    if task is None:
        return {}
    names = [name for name in _named(asked) if name == "needs_any" or hasattr(task, name)]
    values = {name: _value(call, task, name) for name in names}
    return {name: text if len(text) <= SHOWN else f"{text[:SHOWN]} [...]" for name, text in values.items()}


def _named(asked: Any) -> dict[str, Any]:
    """Return the fields that a request names: those that are not as they would be without being named."""
    named: dict[str, Any] = msgspec.to_builtins(asked)
    defaults = {
        field.name: field.default if field.default_factory is NODEFAULT else field.default_factory()
        for field in structs.fields(type(asked))
    }
    return {name: value for name, value in named.items() if name not in defaults or value != defaults[name]}


def _wanted(asked: Any) -> dict[str, str]:
    """Return every field that a request names, whole: nothing of what a person accepts is hidden from them."""
    named = _named(asked)
    if isinstance(asked, BulkTasks) and asked.changes is not None:
        del named["changes"]
        named |= _named(asked.changes)
    if isinstance(asked, ImportTasks):
        named = {task.key: msgspec.json.encode(_named(task)).decode() for task in asked.tasks}
    named.pop("session", None)  # its own, whom the proposal names anyway
    return {name: _shown(named[name]) for name in sorted(named, key="body".__eq__)}


def _value(call: Call, task: Task, name: str) -> str:
    match name:
        case "body":
            return call.tx.text(task.body)
        case "needs" | "needs_any":
            policy = Policy.ANY if name == "needs_any" else Policy.BLOCK
            return ", ".join(need.task for need in task.needs if need.policy is policy)
    return _shown(getattr(task, name))


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def sentence(found: Proposal, asked: Any) -> str:
    """Return what is proposed, in a few words."""
    match found.verb, asked:
        case _, AddTask():
            return f"add a task{f' for {asked.assignee}' if asked.assignee else ''}: {asked.title}"
        case _, EditTask():
            return f"change {', '.join(_named(asked)) or 'nothing'} of {found.target}"
        case _, TakeLease():
            return f"lease {', '.join(asked.resources)}"
        case _, BulkTasks():
            return f"change {len(asked.ids)} tasks: {', '.join(asked.ids[:_NAMED])}"
        case _, ImportTasks():
            return f"import {len(asked.tasks)} tasks"
        case verb_name, _:
            return f"{verb_name.rpartition('.')[2]} {found.target or ''}".rstrip()


def row(call: Call, found: Proposal) -> ProposalRow:
    """Return a proposal as it is answered."""
    try:
        asked = _request(found)[1]
    except CoveyError:  # it was made by another version
        asked = Nothing()
    was: dict[str, str] = msgspec.json.decode(found.was)
    now = _values(call, found.target, asked)
    changes = [ProposedChange(name, was.get(name, ""), now.get(name, ""), to) for name, to in _wanted(asked).items()]
    return ProposalRow.of(
        found,
        what=sentence(found, asked),
        asked=Raw(found.asked.encode()),
        changes=changes,
        stale=found.state is ProposalState.OPEN and _is_stale(call, found, asked),
    )
