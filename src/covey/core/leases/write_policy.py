"""What a write comes to: whether a path is another's by a lease, or outside of what the writer's own task may write."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from covey.core import globs
from covey.core.board.tasks import Task
from covey.core.figures import span
from covey.core.leases import leases
from covey.core.leases.leases import Lease, LeaseState, Origin
from covey.core.quotes import named, names, title
from covey.core.texts import harmless
from covey.errors import Invalid
from covey.values import dataclass

MAX_NAMED_PATHS = 5
"""Paths that a text names one by one."""
WAIT_ADVICE_S = 60
"""Seconds for which a writer is told to wait: whoever runs commands for an agent loses patience too."""


class Force(StrEnum):
    """What follows when a write meets a lease or leaves a scope."""

    OFF = "off"
    WARN = "warn"
    DENY = "deny"


@dataclass(frozen=True)
class Write:
    """One path, relative to the repository, and when it was last written as far as anybody knows."""

    path: str
    written: float
    new: bool = False
    """The path was not there before."""


@dataclass(frozen=True)
class WriteFinding:
    """One path that is not the writer's to write; without a lease it is its own task that says so."""

    path: str
    force: Force
    lease: Lease | None = None
    why: str = ""
    new: bool = False
    """The path was not there before."""


class WriteStage(StrEnum):
    """How far a write has come when its writer is told of it."""

    TOOL = "tool"
    COMMIT = "commit"
    COMMITTED = "committed"
    HAND_IN = "hand-in"


@dataclass(frozen=True)
class Reader:
    """Who is told of a write, and when."""

    step: WriteStage = WriteStage.TOOL
    speaker: str = ""
    """The option of a command that says who speaks, if it is not the token that does."""
    main: str = "main"


@dataclass(frozen=True)
class Warned:
    """What a writer is told: why, in some lines, and what to do then."""

    reasons: tuple[str, ...]
    hint: str

    @property
    def text(self) -> str:
        """Return all of it, a line each."""
        return "\n".join([*self.reasons, self.hint])


def covers(lease: Lease, path: str) -> str | None:
    """Return the resource of a lease that covers a path, also where only the case of letters differs."""
    folded = path.casefold()
    return next((resource for resource in lease.resources if _covers(resource, path, folded)), None)


def _covers(resource: str, path: str, folded: str) -> bool:
    if resource == leases.REPO:
        return True
    if not leases.is_path(resource):
        return False
    return globs.matches(resource, path) or _folded(resource, path, folded)


def _folded(resource: str, path: str, folded: str) -> bool:
    """Say whether a pattern matches a path in lower case, as a disk may find it that does not tell them apart."""
    small = resource.casefold()
    if small == resource and folded == path:
        return False
    try:
        return globs.matches(small, folded)
    except Invalid:
        return False  # a range such as [Z-a] that has no small form


def _plainly(lease: Lease, path: str) -> bool:
    """Say whether a lease covers a path to the letter, and not as what lies below the name of a file."""
    for resource in lease.resources:
        if resource == leases.REPO:
            return True
        if leases.is_path(resource) and globs.matches(resource, path):
            literal = globs.plain(resource)
            if literal is None or literal == path or not leases.names_file(literal):
                return True
    return False


def strength(lease: Lease, policy: Force, *, gives_way: bool) -> Force:
    """Return what a lease does to another's write.

    One by a first edit only ever warns. So does one that came with a task which gives way: its work is handed in, and
    whoever comes next need not wait for it to land, or a person said that it may overlap.
    """
    automatic = lease.origin is not Origin.HAND
    if policy is Force.DENY and (lease.origin is Origin.EDIT or (automatic and gives_way)):
        return Force.WARN
    return policy


def judge(
    writes: Iterable[Write],
    session: str,
    task: Task | None,
    others: Sequence[Lease],
    own: Sequence[Lease],
    policy: Force,
    gives_way: Callable[[Lease], bool],
) -> list[WriteFinding]:
    """Return the paths that are not a session's to write, each once, the gravest reason first.

    `others`: leases of others that may cover a path; `own`: those of the session and its task, ended ones also;
    `gives_way`: whether a lease that came with a task is of one whose work is handed in, or that may overlap.
    What one holds to the letter oneself is never another's who holds it only in other letters, or as a folder.
    """
    if policy is Force.OFF:
        return []
    rivals = Index(
        lease for lease in others if lease.holder != session and lease.state is LeaseState.LIVE and not lease.shared
    )
    mine = Index(lease for lease in own if is_in_force(lease))
    soft: dict[str, bool] = {}  # of a lease that many paths meet, its task is looked up once
    found: list[WriteFinding] = []
    for write in writes:
        met = [lease for lease in rivals.covering(write.path) if write.written >= lease.taken]
        held = mine.covering(write.path) if met else []
        reasons: list[WriteFinding] = []
        for lease, was_given in _in_the_way(write.path, session, met, held):
            if lease.id not in soft:
                soft[lease.id] = gives_way(lease) or (task is not None and task.overlap)
            force = Force.WARN if was_given else strength(lease, policy, gives_way=soft[lease.id])
            reasons.append(WriteFinding(write.path, force, lease, new=write.new))
        outside = None if task is None else why_outside(task, write)
        if outside is not None:
            reasons.append(WriteFinding(write.path, policy, None, outside, write.new))
        if reasons:
            found.append(max(reasons, key=lambda finding: finding.force is Force.DENY))
    return found


def _in_the_way(path: str, session: str, met: Sequence[Lease], held: Sequence[Lease]) -> Iterator[tuple[Lease, bool]]:
    """Yield the leases of others that come before the writer's own, and whether the writer has given its own back."""
    firm = any(each.state is LeaseState.LIVE and each.holder == session and _plainly(each, path) for each in held)
    for lease in met:
        older = before(lease, held)
        was_given = bool(older) and all(each.state is LeaseState.GIVEN for each in older)
        is_mine = bool(older) and not was_given
        if not is_mine and not (firm and not _plainly(lease, path)):
            yield lease, was_given


class Index:
    """Leases by the beginnings of what they cover, so that a path meets only those that can cover it."""

    def __init__(self, chosen: Iterable[Lease]) -> None:
        self._found: dict[str, list[tuple[str, Lease]]] = {}
        for lease in chosen:
            for resource in lease.resources:
                if resource == leases.REPO or leases.is_path(resource):
                    self._found.setdefault(leases.index(resource), []).append((resource, lease))
        self._ends = sorted({len(text) for text in self._found})

    def covering(self, path: str) -> list[Lease]:
        """Return the leases that cover a path, each once."""
        text = "/" + path.casefold()
        found: dict[str, Lease] = {}
        for end in self._ends:
            if end > len(text):
                break
            for resource, lease in self._found.get(text[:end], ()):
                if lease.id not in found and _covers(resource, path, text[1:]):
                    found[lease.id] = lease
        return list(found.values())


def before(lease: Lease, own: Iterable[Lease]) -> list[Lease]:
    """Return those of one's own leases on a path, ended ones too, that are older than another's.

    Who had a path before keeps what it wrote.
    """
    return [mine for mine in own if mine.taken <= lease.taken]


def is_in_force(lease: Lease) -> bool:
    """Say whether a lease is, or once was, in force: one that only ever waited gives no right."""
    return lease.state is not LeaseState.WAITING


def why_outside(task: Task, write: Write) -> str | None:
    """Say why a path is not for a task to write, None if it is; a task without a scope may write anything."""
    if any(globs.matches(pattern, write.path) for pattern in task.do_not_touch):
        return f"{task.id} is not to touch {names(task.do_not_touch)}"
    if not task.scope:
        return None
    for pattern in task.scope:
        only_new = pattern.startswith("new:")
        if globs.matches(pattern.removeprefix("new:"), write.path) and (write.new or not only_new):
            return None
    return f"{task.id} may write only {names(task.scope)}"


def literal(path: str) -> str:
    """Return a path as a resource that covers just it."""
    plain = "".join(f"\\{character}" if character in "*?[]\\" else character for character in path)
    return plain if leases.is_path(plain) else f"./{plain}"  # a:b would be the name of a resource


def told(
    findings: Sequence[WriteFinding], left: Callable[[Lease], float], force: Force, reader: Reader
) -> Warned | None:
    """Return what a writer is told of findings that warn, or of those that deny; None if there are none."""
    chosen = [finding for finding in findings if finding.force is force]
    if not chosen:
        return None
    lines = [_line(finding, left) for finding in chosen[:MAX_NAMED_PATHS]]
    if len(chosen) > MAX_NAMED_PATHS:
        lines.append(f"and {len(chosen) - MAX_NAMED_PATHS} more paths.")
    return Warned(tuple(lines), _advice(chosen, force, reader))


def _line(finding: WriteFinding, left: Callable[[Lease], float]) -> str:
    lease = finding.lease
    path = named(finding.path)
    if lease is None:
        return f"{path} is not yours to write: {harmless(finding.why)}."
    task = f" for {lease.task}" if lease.task else ""
    reason = f" ({title(lease.reason)})" if lease.reason else ""
    ends = "until that task has landed" if leases.is_tied(lease) else f"for {span(left(lease))} yet"
    return f"{path} is held by {lease.holder}{task}{reason}: {lease.id}, {ends}."


def _advice(chosen: Sequence[WriteFinding], force: Force, reader: Reader) -> str:
    held = [finding for finding in chosen if finding.lease is not None]
    if not held:
        return f'{_leave(chosen, reader)}, or ask the person in charge: covey ask "..."{reader.speaker}.'
    first = held[0]
    assert first.lease is not None
    wait = f"covey lease take {_quoted(literal(first.path))} --wait --timeout {WAIT_ADVICE_S}{reader.speaker}"
    ask = f'covey mail send {first.lease.holder} "..."{reader.speaker}'
    if force is Force.WARN:
        small = "Go on only if you must: keep your change there small"
        return f"{small}, or ask first ({ask}), or wait your turn ({wait})."
    leave = _leave(chosen, reader)
    advice = f"Wait your turn ({wait}), ask ({ask}), or go on elsewhere and {leave[0].lower()}{leave[1:]}."
    if reader.step is not WriteStage.HAND_IN:
        return advice
    ends = dict.fromkeys(
        f"covey lease give {each.lease.id}" for each in held[:MAX_NAMED_PATHS] if each.lease is not None
    )
    return f"{advice} A person lets it pass by ending the lease: {', '.join(ends)}."


def _leave(chosen: Sequence[WriteFinding], reader: Reader) -> str:
    """Say how a writer leaves some paths as they were: nothing is written yet, or staged, or committed."""
    if reader.step is WriteStage.TOOL:
        return "Leave that path as it was" if len(chosen) == 1 else "Leave those paths as they were"
    new = _words(finding.path for finding in chosen[:MAX_NAMED_PATHS] if finding.new)
    old = _words(finding.path for finding in chosen[:MAX_NAMED_PATHS] if not finding.new)
    # What is new stays on the disk: nobody has another copy of it.
    if reader.step is WriteStage.COMMIT:
        commands = [f"git restore --staged --worktree --source=HEAD -- {old}"] if old else []
        commands += [f"git restore --staged -- {new}"] if new else []
        return f"Leave it out ({'; '.join(commands)})"
    commands = [f"git checkout {shlex.quote(reader.main)} -- {old}"] if old else []
    commands += [f"git rm --cached -- {new}"] if new else []
    return f"Take it back ({'; '.join(commands)}; git commit)"


def _words(paths: Iterable[str]) -> str:
    return " ".join(map(_quoted, paths))


def _quoted(path: str) -> str:
    """Return a path as a shell takes it, on one line."""
    if path.isprintable():
        return shlex.quote(path)
    seen = (char if char.isprintable() and char not in "\\'" else _in_bytes(char) for char in path)
    return f"$'{''.join(seen)}'"


def _in_bytes(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode(errors="surrogatepass"))
