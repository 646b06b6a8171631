"""What a run came to, judged by its evidence: an exit code alone proves nothing."""

from __future__ import annotations

from covey.core.board.tasks import Kind
from covey.core.fleet.signals import Trouble
from covey.core.history.transcripts import words_of
from covey.core.leases.write_policy import Write
from covey.values import dataclass

NEVER_BEGAN_S = 10.0
"""Seconds within which a program that ends badly, and has done nothing, could not begin at all."""
STORY_TAIL_CHARS = 4000
"""Characters of output that a story carries."""
OUTPUT = "The end of its output:"
LAST_LINE_CHARS = 300
"""Characters of the last line that was printed, where a story is told in one line."""
_ENDS = (".", "!", "?", ":", "…")
"""How a sentence ends."""
CACHES = frozenset(
    {
        "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".cache", ".tox", ".nox",
        "node_modules", ".venv", ".DS_Store", ".gradle", ".coverage",
    }
)  # fmt: skip
"""What tools leave behind under names that nobody commits; a tree with only these in it is not dirty."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known of a run that has ended."""

    kind: Kind
    code: int | None = None
    stopped: str | None = None
    """Why covey ended it, if covey did."""
    failed: str | None = None
    """What the agent itself said went wrong."""
    trouble: Trouble | None = None
    until: float | None = None
    """When its provider will take requests again."""
    share: bool = False
    """What it was allowed to spend was a share that covey set aside, and no limit of a person's on runs."""
    speaks: bool = False
    """Its agent always says how it ended."""
    script: bool = False
    """What it ran was its task itself."""
    at_once: bool = False
    """It ended before it can have done much."""
    result: str | None = None
    ahead: bool = False
    """Its branch has commits that main lacks."""
    head: str | None = None
    branch: str = ""
    """Where those commits are."""
    writes: tuple[Write, ...] | None = None
    """What those commits change, as far as anybody knows."""
    rejected: str | None = None
    """The commit that was handed in and rejected before."""
    refused: str | None = None
    """Why its last commit was refused, if that was what it left behind."""
    dirty: tuple[str, ...] = ()
    """Paths that were changed and not committed."""
    unreadable: str | None = None
    """Why nobody can tell what it brought: git cannot read its commits, or its worktree is kept aside."""
    rescued: str | None = None
    tail: str = ""
    """The end of what it printed."""


@dataclass(frozen=True)
class HandIn:
    """The work is complete as far as anybody can see: pass it on."""

    commit: str | None = None
    result: str | None = None
    writes: tuple[Write, ...] | None = None


@dataclass(frozen=True)
class Again:
    """The run brought nothing that can be handed in; this went wrong."""

    what: str
    gave_up: bool = False
    """Its agent said so, or its exit code did: that may be its own fault, and the next task would meet it too."""
    fresh: bool = False
    """The conversation cannot be taken up again."""


@dataclass(frozen=True)
class PutOff:
    """No fault of the task: its session goes on with it later, when the trouble is over."""

    what: str
    trouble: Trouble
    until: float | None = None
    fresh: bool = False
    """The conversation cannot be taken up again."""


@dataclass(frozen=True)
class Crashed:
    """The program ended without a word: it is started again, but not for ever."""

    what: str


Verdict = HandIn | Again | PutOff | Crashed

OUTSIDE_TROUBLES = frozenset(
    {Trouble.LIMIT, Trouble.OVERLOAD, Trouble.CONNECTION, Trouble.KEY, Trouble.CREDIT, Trouble.CORRUPT}
)
"""Troubles that the task has not caused."""
BREAK_CONVERSATION = frozenset({Trouble.CORRUPT, Trouble.CONTEXT})
"""Troubles after which a conversation cannot be taken up again."""
ONE_TASK_TROUBLES = frozenset({Trouble.CONTEXT, Trouble.BUDGET})
"""Troubles of one task alone: its agent may well do the next."""

_GAVE_UP: dict[Trouble | None, str] = {Trouble.BUDGET: "The run spent all that it was allowed"}
"""What is said of a run that ended itself, where that is no weakness of its agent."""


def judge(evidence: Evidence) -> Verdict:
    """Say what a run that ended by itself came to."""
    put_off = _put_off(evidence)
    if put_off is not None:
        return put_off
    crash = _crash(evidence)
    if crash is not None:
        return Crashed(_story(crash, evidence))
    wrong = _wrong(evidence)
    if wrong is not None:
        said_so = evidence.failed is not None and evidence.stopped is None
        fresh = said_so and evidence.trouble in BREAK_CONVERSATION
        return Again(_story(wrong, evidence), gave_up=_gave_up(evidence), fresh=fresh)
    if evidence.kind is Kind.REPORT:
        return HandIn(None, evidence.result)  # its commits land nowhere, and nobody should think so
    return HandIn(evidence.head, evidence.result, evidence.writes)


def _put_off(evidence: Evidence) -> PutOff | None:
    """Return until when a run is put off that failed through no fault of its task."""
    if evidence.stopped is not None or evidence.trouble is None:
        return None
    if evidence.trouble in OUTSIDE_TROUBLES and evidence.failed is not None:
        return PutOff(evidence.failed, evidence.trouble, evidence.until, evidence.trouble in BREAK_CONVERSATION)
    if evidence.trouble is Trouble.BUDGET and evidence.share:
        return PutOff(evidence.failed or "It has spent its share.", Trouble.BUDGET)
    return None


def _gave_up(evidence: Evidence) -> bool:
    """Say whether the agent ended the run itself, for a reason that the next task would meet too."""
    if evidence.stopped is not None:
        return False
    if evidence.speaks:
        return evidence.failed is not None and evidence.trouble not in ONE_TASK_TROUBLES
    return bool(evidence.code) and evidence.failed is None


def _crash(evidence: Evidence) -> str | None:
    """Say how a program ended that did not end by itself."""
    if evidence.stopped is not None or evidence.failed is not None:
        return None
    if evidence.speaks and evidence.result is not None:
        return None  # it had said its last word; how it went after that proves nothing
    if evidence.code is None:
        return "The run was lost: nobody saw it end."
    if evidence.code < 0:
        return f"The agent was ended by signal {-evidence.code}."
    if evidence.speaks:
        return f"The agent ended without a word of its own, with exit code {evidence.code}."
    # Of a program that could not even begin, its task is the last to blame.
    left_nothing = not (evidence.ahead or evidence.dirty or evidence.script)
    if evidence.code and evidence.at_once and left_nothing:
        return f"The agent ended at once, with exit code {evidence.code}."
    return None


def _wrong(evidence: Evidence) -> str | None:
    if evidence.stopped is not None:
        return evidence.stopped
    if evidence.failed is not None:
        return f"{_GAVE_UP.get(evidence.trouble, 'The agent gave up')}: {evidence.failed}"
    if evidence.unreadable is not None and evidence.kind is not Kind.REPORT:
        return evidence.unreadable
    refused = f" Its commit was refused: {evidence.refused}" if evidence.refused else ""
    if evidence.code and not evidence.speaks:
        return f"The agent ended with exit code {evidence.code}.{refused}"
    if evidence.kind is Kind.REPORT:
        return None if (evidence.result or "").strip() else "The run ended without a result."
    if evidence.dirty:
        names = ", ".join(evidence.dirty[:5]) + (" and more" if len(evidence.dirty) > 5 else "")
        return f"The run left changes that it did not commit: {names}.{refused}"
    if not evidence.ahead:
        return f"The run ended without a commit.{refused}"
    if evidence.head is not None and evidence.head == evidence.rejected:
        return "The run changed nothing since its work was rejected."
    return None


def _story(wrong: str, evidence: Evidence) -> str:
    parts = [wrong]
    if evidence.ahead and evidence.branch:
        parts.append(f"What it committed is on {evidence.branch}.")
    if evidence.rescued is not None:
        name = evidence.rescued.removeprefix("refs/covey/rescue/")
        parts.append(f"What it had not committed is kept: covey rescue show {name}.")
    tail = evidence.tail.strip()
    if tail:
        parts.append(f"{OUTPUT}\n{tail[-STORY_TAIL_CHARS:]}")
    return "\n".join(parts)


def in_short(story: str) -> str:
    """Return a story in one line: what went wrong, and the last line that was printed, where an error mostly stands."""
    wrong = story.partition(f"\n{OUTPUT}\n")[0]
    first, last = wrong.splitlines()[0] if wrong else "", last_error(story)
    reason = first.rpartition(": ")[2]
    if not last or (reason and last.endswith(f": {reason}")):  # the output ends with the same words
        return first
    return f"{first}{'' if first.endswith(_ENDS) else '.'} Its last line was: {last}"


def last_error(story: str) -> str:
    """Return the last line that was printed, where an error mostly stands; empty if the story has no output."""
    printed = story.partition(f"\n{OUTPUT}\n")[2]
    lines = [line for line in printed.splitlines() if line.strip()]
    return words_of(lines[-1]).strip()[:LAST_LINE_CHARS] if lines else ""


def is_cache(path: str) -> bool:
    """Say whether an untracked path is what a tool left behind rather than work."""
    parts = path.rstrip("/").split("/")
    return any(part in CACHES or part.startswith(".aider") or part.endswith((".pyc", ".egg-info")) for part in parts)
