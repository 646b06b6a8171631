"""The life of a run: one start of an agent program in a session, for one claim of one task.

begun > ended        The event that begins it is the intent: it is written before anything is started.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from covey.core.costs.spending import Counted
from covey.core.fleet import task_updates
from covey.core.fleet.task_updates import Facts
from covey.errors import Refused
from covey.values import dataclass

PROCESS, TMUX = "process", "tmux"
"""Where a run's process can live."""


class Outcome(StrEnum):
    """What a run came to."""

    HANDED_IN = "handed-in"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"
    PUT_OFF = "put-off"
    """No fault of its task: its session goes on with it later."""
    CRASHED = "crashed"
    """Its program ended without a word; its session starts it again."""


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A run is about to be started; it may never have come to that."""

    session: str
    task: str
    fence: int
    agent: str
    runner: str = PROCESS
    person: bool = False
    """A person has taken the conversation over, in a terminal."""
    model: str = ""
    money: float | None = None
    """Dollars that it may spend, reserved for it as long as it runs."""
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Run(Begun):
    """One start of an agent program."""

    id: str
    ordinal: int
    base: str | None = None
    head: str | None = None
    """The last commit of earlier work on its branch, when it began."""
    conversation: str | None = None
    ending: str | None = None
    again: bool = False
    fault: bool = False
    over: bool = False
    stalled: bool = False
    outcome: Outcome | None = None
    code: int | None = None
    what: str | None = None
    commit: str | None = None
    begun: float = 0.0
    ended: float | None = None
    heard: Facts = ()
    """What its conversation has heard of the task in it."""
    left: str | None = None
    """The ref that keeps what it did not commit."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The worktree of a run is ready, on a branch that begins at this commit; `head`: where the run itself begins."""

    base: str
    head: str | None = None


@dataclass(frozen=True)
class Talking:
    """The agent named the conversation, so that a later run can take it up again."""

    conversation: str


@dataclass(frozen=True)
class Ending:
    """A run is to be stopped, for this reason; `again`: its session goes on with the task in another run; `fault`: it
    counts as a try; `over`: it had said its last word, and what it brought is judged; `stalled`: its model did not
    answer, so that the next one waits."""

    why: str
    again: bool = False
    fault: bool = False
    over: bool = False
    stalled: bool = False


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Nothing of the run is alive any more, and this came of it."""

    outcome: Outcome
    code: int | None = None
    what: str | None = None
    commit: str | None = None


@dataclass(frozen=True, kw_only=True)
class Missed:
    """So many uses of tools went by without a hook being answered: covey was away, or too slow."""

    calls: int
    why: str


@dataclass(frozen=True)
class Heard:
    """The conversation has heard these parts of its task: from its prompt, or from mail while it worked."""

    facts: Facts


@dataclass(frozen=True)
class Left:
    """When the run ended, work lay in its worktree that was not committed; this ref keeps it."""

    ref: str


@dataclass(frozen=True, kw_only=True)
class Wrote:
    """The files that the run changed, in commits and beside them, and how many `more` there are."""

    files: tuple[str, ...]
    more: int = 0


MAX_LOGGED_FILES = 200
"""Files that the log names of what a run wrote."""

Event = Begun | Prepared | Talking | Ending | Ended | Counted | Missed | Heard | Left | Wrote


def wrote(paths: Iterable[str]) -> Wrote | None:
    """Return what the log says of the files that a run changed, None if it changed none."""
    files = tuple(sorted(set(paths)))
    return Wrote(files=files[:MAX_LOGGED_FILES], more=max(len(files) - MAX_LOGGED_FILES, 0)) if files else None


def end(run: Run, event: Ended) -> Ended:
    """End a run that has not ended."""
    if run.outcome is not None:
        raise Refused(f"{run.id} has ended already.")
    return event


def apply(run: Run, event: Event, at: float) -> Run:
    """Return the run as it is after `event`. Never refuses."""
    match event:
        case Begun():
            return run
        case Prepared():
            return replace(run, base=event.base, head=event.head)
        case Talking(conversation):
            return replace(run, conversation=conversation)
        case Ending(why, again, fault, over, stalled):
            return replace(run, ending=why, again=again, fault=fault, over=over, stalled=stalled)
        case Ended():
            return replace(run, outcome=event.outcome, code=event.code, what=event.what, commit=event.commit, ended=at)
        case Heard(heard):
            return replace(run, heard=task_updates.after(run.heard, heard))
        case Left(ref):
            return replace(run, left=ref)
        case Counted() | Missed() | Wrote():
            return run  # the first is kept in rows of its own, the others are facts of the log alone
