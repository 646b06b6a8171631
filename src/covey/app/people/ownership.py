"""Who asks, seen from the thing that is asked about: the one place that says whether it is a session's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covey.app.board.requests import as_globs, is_within
from covey.app.context import Call, find
from covey.app.shapes.board import AddTask, EditTask, Held
from covey.app.shapes.leases import TakeLease
from covey.app.verbs import Verb
from covey.core import globs
from covey.core.board import scheduling
from covey.core.board.tasks import Task
from covey.core.fleet.sessions import Session
from covey.core.leases import leases
from covey.core.merging.gates import Gate
from covey.core.merging.merges import Merge
from covey.core.people import rights
from covey.core.people.proposals import Proposal
from covey.core.people.questions import Question
from covey.core.people.rights import Asker, May
from covey.errors import Denied

if TYPE_CHECKING:
    from covey.app.people.comments import ListComments

EVERYTHING = ("**",)
_NAMED = 5
"""Globs that a sentence names."""
Beyond = Callable[[Call, Any, dict[str, str]], str | None]
"""Returns in one sentence why something is not a session's own, None if it is."""


def check(call: Call, verb: Verb, asked: Any, params: dict[str, str]) -> str | None:
    """Refuse what the table of rights does not allow; return why it has to be proposed, None if it may be done."""
    if call.who.session is None or verb.may.is_open:
        return None
    standing, why = _standing(call, verb, asked, params, call.who.session)
    match verb.may.of(standing):
        case May.PROPOSE:
            return why or "Only a person may do this."
        case May.NO:
            if verb.may.reviewer is None or why is not None:
                raise denied(verb, why)
            role = call.context.config.merge.review_role
            who = f"the owner and sessions of role {role}" if role else "the owner"
            noun, _, deed = verb.name.partition(".")
            raise Denied(f"Only {who} may {deed} a {noun}.", hint="merge.review_role in covey.toml names the role.")
    return None


def denied(verb: Verb, why: str | None = None) -> Denied:
    """Return the error for what a session may not do at all."""
    if why is not None:
        return Denied(why, hint="A session may do this with what is its own. Ask: covey mail send owner ...")
    return Denied(f"Only the owner may ask for {verb.name}.", hint="Ask the owner: covey mail send owner ...")


def _standing(call: Call, verb: Verb, asked: Any, params: dict[str, str], session: str) -> tuple[Asker, str | None]:
    role = call.context.config.merge.review_role
    if verb.may.reviewer is not None and role and call.known(session).role == role:
        return Asker.REVIEWER, None
    if verb.may.own is verb.may.other:
        return Asker.OTHER, None
    if isinstance(asked, Held):
        return Asker.OWN, None  # the fence decides, and says who holds it now
    beyond = _BEYOND.get(verb.name) or _BEYOND[verb.name.partition(".")[0]]
    why = beyond(call, asked, params)
    return (Asker.OWN, None) if why is None else (Asker.OTHER, why)


def _session(call: Call, asked: Any, params: dict[str, str]) -> str | None:
    name = params["name"]
    call.find(Session, name)
    return None if name == call.who.session else f"{name} is another session."


def _made_by(row: type[Question] | type[Proposal], deed: str) -> Beyond:
    def beyond(call: Call, asked: Any, params: dict[str, str]) -> str | None:
        found = call.find(row, params["id"])
        return None if found.session == call.who.session else f"{found.id} {deed} {found.session}."

    return beyond


def _gate(call: Call, asked: Any, params: dict[str, str]) -> str | None:
    gate = call.find(Gate, params["id"])
    tested = [merge for name in gate.merges if (merge := call.tx.get(Merge, name)) is not None]
    return None if any(merge.session == call.who.session for merge in tested) else f"{gate.id} tested others' work."


def _comments(call: Call, asked: ListComments, params: dict[str, str]) -> str | None:
    if asked.task is None:
        return "Drafts are the owner's."
    task, session = find(call.tx, asked.task), call.who.session
    merge = call.tx.last_merge(task.id)
    mine = rights.is_concerned_with(task, session or "") or (merge is not None and merge.session == session)
    return None if mine else f"{task.id} is not the task of {session}."


# What a session adds, edits and leases


def _add(call: Call, asked: AddTask, params: dict[str, str]) -> str | None:
    session = call.who.session or ""
    held = call.tx.held_by(session)
    if asked.assignee not in (None, session):
        return f"It would give {asked.assignee} a task."
    if asked.done_when or asked.overlap:
        return "Only a person may set done-when checks, or let tasks overlap."
    if asked.priority > rights.most_priority(held):
        return f"Its priority would be higher than {rights.most_priority(held)}."
    if asked.parent is not None and not _is_own_parent(call, asked.parent):
        return f"{asked.parent}, a task of others, would have to wait for it."
    if asked.batch is not None and asked.batch not in [task.batch for task in held]:
        return f"It would join {asked.batch}."
    scope = as_globs(asked.scope)
    if held and not any(is_within(task, scope, asked.budget) for task in held):
        names = ", ".join(task.id for task in held)
        return f"Its scope or budget would be larger than that of {names}."
    return too_wide(call, held, scheduling.scope_paths(scope))


def _is_own_parent(call: Call, parent: str) -> bool:
    task, session = call.tx.task(parent), call.who.session or ""
    return task is None or rights.is_at_work_on(task, session) or rights.is_its_own(task, session)


def _edit(call: Call, asked: EditTask, params: dict[str, str]) -> str | None:
    session, wished = call.who.session or "", asked.named()
    parent = wished.get("parent")
    return rights.beyond_edit(
        find(call.tx, params["id"]),
        session,
        wished,
        most_priority=rights.most_priority(call.tx.held_by(session)),
        has_parent=parent is not None and _is_own_parent(call, parent),
    )


def _drop(call: Call, asked: Any, params: dict[str, str]) -> str | None:
    task, session = find(call.tx, params["id"]), call.who.session or ""
    own = rights.is_its_own(task, session) and task.session is None
    return None if own else f"{session} drops only tasks that it added and that nobody has taken; {task.id} is none."


def _lease(call: Call, asked: TakeLease, params: dict[str, str]) -> str | None:
    if leases.REPO in map(leases.resource, asked.resources):
        return "It would lease the whole repository."
    held = call.tx.held_by(call.who.session or "")
    return too_wide(call, held, _paths_of(asked.resources), _taken_paths(call))


# How many files


def too_wide(call: Call, held: Sequence[Task], wanted: Sequence[str], taken: Sequence[str] = ()) -> str | None:
    """Return why globs are more than a session may take for itself; what its own task may write it may always take.

    `taken`: what it has taken before, which counts too; but not what is so wide by itself that a person let it.
    """
    own = [glob for task in held for glob in scheduling.scope_paths(task.scope)]
    most, counted = call.context.config.leases.max_files, call.seen or {}
    outside = [glob for glob in wanted if not (own and globs.contains(own, [glob]))]
    everything = next((glob for glob in outside if globs.contains([glob], EVERYTHING)), None)
    if everything is not None:
        return f"{everything} covers every file."
    small = [glob for glob in taken if counted.get(glob, 1) <= most and not globs.contains([glob], EVERYTHING)]
    before = [glob for glob in small if not (own and globs.contains(own, [glob]))]
    together = list(dict.fromkeys([*outside, *before])) if outside else []
    if globs.contains(together, EVERYTHING):
        return f"{', '.join(together[:_NAMED])} cover every file together."
    covered = sum(counted.get(glob, 1) for glob in together)
    return f"It covers more than the {most:,} files that a session may take." if covered > most else None


def _paths_of(resources: Sequence[str]) -> list[str]:
    """Return the globs among what is to be leased."""
    return [name for name in map(leases.resource, resources) if leases.is_path(name)]


def _taken_paths(call: Call) -> list[str]:
    """Return the globs that a session has leased by hand, or waits for."""
    found = [lease for lease in call.tx.open_leases(call.who.session) if lease.origin is leases.Origin.HAND]
    return [name for lease in found for name in lease.resources if leases.is_path(name)]


def look_at_leases(call: Call, asked: TakeLease) -> Callable[[], dict[str, int]] | None:
    """Return the look at how many files a session would have leased with these."""
    if call.who.session is None:
        return None
    return look_at_files(call, [*_paths_of(asked.resources), *_taken_paths(call)])


def look_at_files(call: Call, wanted: Sequence[str]) -> Callable[[], dict[str, int]] | None:
    """Return the look at how many files globs cover, if a session wants more than single ones: git takes its time."""
    project, config = call.context.repository, call.context.config
    if call.who.session is None or project is None or not any(_covers_many(glob, project.root) for glob in wanted):
        return None

    def look() -> dict[str, int]:
        from covey.git.project import tracked  # few commands lease anything, and all of them start with this module

        paths = tracked(project, config.target)
        return {glob: _count(glob, paths, config.leases.max_files + 1) for glob in wanted}

    return look


def _count(glob: str, paths: Sequence[str], most: int) -> int:
    return sum(1 for _ in islice((path for path in paths if globs.matches(glob, path)), most))


def _covers_many(glob: str, root: Path) -> bool:
    """Say whether a glob may cover more than one file; a folder may have a dot in its name as well."""
    path = globs.plain(glob)
    return path is None or not leases.names_file(path) or os.path.isdir(root / path)


_BEYOND: dict[str, Beyond] = {
    "session": _session,
    "question": _made_by(Question, "was asked by"),
    "proposal": _made_by(Proposal, "is of"),
    "gate": _gate,
    "comment": _comments,
    "mail": lambda call, asked, params: None,  # to whom a message was sent is a rule of mail itself
    "task.add": _add,
    "task.edit": _edit,
    "task.drop": _drop,
    "lease.take": _lease,
}
