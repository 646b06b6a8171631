"""How it is said why a task waits or a session idles, and by which command a person changes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from covey.core.board.waiting import Cause, Reason, Whose

MAX_NAMED = 3
"""Sessions or tasks that a sentence names; of more it tells how many there are."""


def sentence(reason: Reason, count: int | None = None) -> str:
    """Return why a task waits in one sentence; with a count, why so many tasks do."""
    if reason.names and count is not None:
        return _gathered(reason, count)
    if reason.cause in _OF_THE_TASK:
        return _OF_THE_TASK[reason.cause](reason)
    begins = _begins(reason, count)
    match reason.cause:
        case Cause.BEHIND:
            return f"{begins}others come before it." if count is None else f"{begins}others come first."
        case Cause.NO_SESSION:
            them = "it" if count in (None, 1) else "them"
            return _sentence(begins, f"there is no session that could take {them}{_of_runs(reason)}")
        case Cause.NO_ROLE:
            return f"{begins}no session has it."
        case Cause.NO_ASSIGNEE:
            return f"{begins}there is no session {reason.name}."
        case Cause.NO_BATCH:
            return f"{begins}no session of it is left."
        case Cause.FOR_OWNER:
            return "It is for you." if count is None else f"{_many(count)} for you."
        case Cause.NO_DAEMON | Cause.FLEET_PAUSED:
            return _sentence(begins, _predicate(reason))
        case _:
            are_named = len(reason.sessions) <= MAX_NAMED
            return _sentence(begins, f"{_who(reason.sessions)} {_predicate(reason)}", is_name=are_named)


_OF_THE_TASK: dict[Cause, Callable[[Reason], str]] = {
    Cause.BACKLOG: lambda reason: "It is in the backlog, so nobody takes it.",
    Cause.NEEDS: lambda reason: f"It needs {_some(reason.tasks, 'other tasks')}{_for_you(reason)}.",
    Cause.PARTS: lambda reason: f"It waits for its parts: {_some(reason.tasks, 'other tasks')}{_for_you(reason)}.",
    Cause.REVIEW: lambda reason: "It waits for a review.",
    Cause.MERGING: lambda reason: "It is in the merge queue.",
    Cause.BLOCKED: lambda reason: reason.text or "It is blocked.",
    Cause.SCOPE: lambda reason: f"It may write the same files as {_at_work(reason)}.",
    Cause.HOT_FILE: lambda reason: (
        f"It is on {reason.name}, where tasks collide again and again,"
        f" and {_some(reason.tasks, 'another task')} is not through with it."
    ),
    Cause.UNVOUCHED: lambda reason: (
        f"{_who(reason.sessions)} would run its text as a script, and a session wrote that."
    ),
    Cause.PROSE: lambda reason: (
        f"It is written for somebody who reads; {_who(reason.sessions)} would run it as a script."
    ),
    Cause.NO_BODY: lambda reason: (
        f"It has no body, and {_who(reason.sessions)} {'runs' if len(reason.sessions) == 1 else 'run'} bodies."
    ),
    Cause.NEXT: lambda reason: (
        f"{_who(reason.sessions, 'or')} {'gets it next, when it asks' if reason.asks else 'takes it next'}."
    ),
}
"""What is said of a single task, whoever it is for."""


def gathered(reasons: Sequence[Reason]) -> Reason | None:
    """Return one reason for tasks of several lanes that wait for the same thing, None if each has to be told alone.

    Where no daemon runs that is all there is to say; of roles, sessions and batches a few are told one by one.
    """
    first = reasons[0]
    if first.cause is Cause.NO_DAEMON:
        return replace(first, whose=Whose.ANYONE, name="")
    if len(reasons) <= MAX_NAMED or len({each.whose for each in reasons}) > 1:
        return None
    sessions = tuple(dict.fromkeys(name for each in reasons for name in each.sessions))
    return replace(first, sessions=sessions, names=tuple(each.name for each in reasons))


def _gathered(reason: Reason, count: int) -> str:
    """Return a sentence on tasks that are for many roles, sessions or batches."""
    nouns = {Whose.ROLE: "roles", Whose.BATCH: "runs"}.get(reason.whose, "sessions")
    lacks = {
        Cause.NO_ROLE: "no session has them",
        Cause.NO_ASSIGNEE: "there are no such sessions",
        Cause.NO_BATCH: "no session of them is left",
    }
    which = lacks.get(reason.cause) or f"their sessions {_predicate(reason)}"
    return f"{_many(count)} for {len(reason.names):,} {nouns} ({_some(reason.names, '')}), and {which}."


def _for_you(reason: Reason) -> str:
    """Return what is said of the tasks that somebody else's task needs, and that wait for a person."""
    told = [(reason.blocked, "blocked"), (reason.in_review, "in review")]
    if len(reason.tasks) == 1:
        return "".join(f", which is {how} and waits for you" for names, how in told if names)
    return "".join(
        f"; {_some(names, '')} {'is' if len(names) == 1 else 'are'} {how} and"
        f" {'waits' if len(names) == 1 else 'wait'} for you"
        for names, how in told
        if names
    )


def _of_runs(reason: Reason) -> str:
    """Return what is said of sessions that are there, and yet take no such task."""
    if not reason.sessions:
        return ""
    work, whose = ("work", "their") if len(reason.sessions) > 1 else ("works", "its")
    return f" ({_who(reason.sessions)} {work} only on the tasks of {whose} run)"


def _at_work(reason: Reason) -> str:
    return f"{_some(reason.tasks, 'another task')}, at which {_who(reason.sessions)} is at work"


def _sentence(begins: str, words: str, *, is_name: bool = False) -> str:
    """Return a sentence; our own words begin large, a name stays as its owner wrote it (`is_name`: it begins so)."""
    return f"{begins}{words}." if begins or is_name else f"{words[0].upper()}{words[1:]}."


def _begins(reason: Reason, count: int | None) -> str:
    """Return how a sentence begins that says for whom a task, or so many, waits."""
    if reason.whose is Whose.ANYONE:
        return "" if count is None else f"{'A task waits' if count == 1 else f'{count:,} tasks wait'}: "
    be = "It is" if count is None else _many(count)
    if reason.whose is Whose.AUTHOR:
        return f"{be} with {reason.name}, and "
    what = {
        Whose.ASSIGNEE: reason.name,
        Whose.BATCH: f"the run of {reason.name}",
    }.get(reason.whose, f"the {reason.whose} {reason.name}")
    return f"{be} for {what}, and "


def _many(count: int) -> str:
    return "A task is" if count == 1 else f"{count:,} tasks are"


def idle(reason: Reason) -> str:
    """Return why a session is not at work in one sentence about it."""
    match reason.cause:
        case Cause.NOTHING:
            return "No task waits."
        case Cause.FOR_OTHERS if reason.name:
            waits = "a task waits" if reason.count == 1 else f"{reason.count:,} tasks wait"
            only = f"It works only on the tasks of its run, {reason.name}"
            return f"{only}, and none of them is for it; {waits} for others."
        case Cause.FOR_OTHERS:
            are = "A task waits, and it is" if reason.count == 1 else f"{reason.count:,} tasks wait, and all are"
            return f"{are} for others."
        case Cause.NEXT:
            return f"It takes {_some(reason.tasks, 'a task')} next."
        case Cause.OUTSIDE:
            return f"It gets {_some(reason.tasks, 'a task')} when it asks: covey does not run it."
        case Cause.SCOPE | Cause.HOT_FILE | Cause.UNVOUCHED | Cause.PROSE | Cause.NO_BODY:
            return f"What waits for it has to wait: {sentence(reason)}"
        case Cause.NO_DAEMON | Cause.FLEET_PAUSED:
            return _sentence("", _predicate(reason))
        case _:
            return f"It {_predicate(replace(reason, sessions=reason.sessions[:1]))}."


def _predicate(reason: Reason) -> str:
    """Return what is said of the sessions that take nothing."""
    one, several = _PREDICATES.get(reason.cause, ("waits{said}", "wait{said}"))
    on = f" on {_some(reason.tasks, '')}" if 0 < len(reason.tasks) <= MAX_NAMED else ""
    person = _who((reason.name,)) if reason.name else "a person"
    return (several if len(reason.sessions) > 1 else one).format(on=on, person=person, said=_said(reason))


_PREDICATES = {
    Cause.BUSY: ("is at work{on}", "are at work{on}"),
    Cause.STOPPED: ("is stopped", "are stopped"),
    Cause.LEAVING: ("is being removed", "are being removed"),
    Cause.NO_DAEMON: ("no daemon runs, so no session starts", "no daemon runs, so no session starts"),
    Cause.FLEET_PAUSED: ("the whole fleet is paused", "the whole fleet is paused"),
    Cause.PAUSED: ("is paused", "are paused"),
    Cause.ATTACHED: ("is in the hands of {person}", "are in the hands of {person}"),
    Cause.OUTSIDE: ("has not asked for it: covey does not run it", "have not asked for it: covey does not run them"),
    Cause.BACKOFF: ("waits before another try{said}", "wait before another try{said}"),
    Cause.STAGGER: ("starts in a moment: starts are staggered", "start in a moment: starts are staggered"),
}
"""What is said of one session, and of several; any other cause is told in the words of whoever named it."""


def _said(reason: Reason) -> str:
    said = " ".join(reason.text.split()).rstrip(".")
    return f": {said}" if said else ""


def remedy(reason: Reason, task: str = "ID") -> str:
    """Return the command by which a person changes it, empty if there is nothing to do but wait."""
    first = reason.sessions[0] if reason.sessions else "NAME"
    match reason.cause:
        case Cause.STOPPED if len(reason.sessions) <= MAX_NAMED:
            return f"covey session start {' '.join(reason.sessions)}"
        case Cause.OUTSIDE if reason.whose not in (Whose.ASSIGNEE, Whose.AUTHOR):
            return f"covey run works on it; or covey task next --as {first}"
        case Cause.NEXT if not reason.asks:
            return ""
        case Cause.NEEDS | Cause.PARTS if reason.blocked or reason.in_review:
            return f"covey task show {(*reason.blocked, *reason.in_review)[0]}"
        case cause:
            return _REMEDIES.get(cause, "").format(task=task, first=first, name=reason.name)


_REMEDIES = {
    Cause.BACKLOG: "covey task edit {task} --status todo",
    Cause.NO_SESSION: "covey run works the board once; covey session new --start adds a session that stays",
    Cause.NO_ROLE: "covey session new --role {name} --start",
    Cause.NO_ASSIGNEE: "covey session new {name} --start; or covey task edit {task} --clear assignee",
    Cause.NO_BATCH: "covey task edit {task} --clear batch",
    Cause.STOPPED: "covey session start --all",
    Cause.NO_DAEMON: "covey up",
    Cause.FLEET_PAUSED: "covey resume",
    Cause.PAUSED: "covey session resume {first}",
    Cause.OUTSIDE: "covey task next --as {first}",
    Cause.NEXT: "covey task next --as {first}",
    Cause.FOR_OWNER: "covey task claim {task}",
    Cause.BLOCKED: "covey task reopen {task}",
    Cause.REVIEW: "covey merge why {task}",
    Cause.MERGING: "covey merge why {task}",
    Cause.UNVOUCHED: "covey task edit {task} --assignee {first}",
    Cause.NO_BODY: "covey task edit {task} --body TEXT",
    Cause.PROSE: "covey task claim {task}; or covey session new --agent NAME --start, with an agent that reads",
}


def _who(names: Sequence[str], joined: str = "and") -> str:
    if len(names) > MAX_NAMED:
        return f"{'all' if joined == 'and' else 'one of'} {len(names):,} sessions"
    *most, last = names or ("nobody",)
    return f"{', '.join(most)} {joined} {last}" if most else last


def _some(ids: Sequence[str], otherwise: str) -> str:
    if len(ids) > MAX_NAMED:
        return f"{', '.join(ids[:MAX_NAMED])} and {len(ids) - MAX_NAMED:,} more"
    *most, last = ids or (otherwise,)
    return f"{', '.join(most)} and {last}" if most else last
