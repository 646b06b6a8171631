"""What a write comes to: whether a path is another's by a lease, or outside of what the writer's own task may write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from covey.core import globs, leases
from covey.core.leases import Lease, Origin, State
from covey.core.tasks import Task
from covey.errors import Invalid

NAMED = 5
"""Paths that a text names one by one."""


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
class Finding:
    """One path that is not the writer's to write; without a lease it is its own task that says so."""

    path: str
    force: Force
    lease: Lease | None = None
    why: str = ""


def covers(lease: Lease, path: str) -> str | None:
    """Return the resource of a lease that covers a path, also where only the case of letters differs."""
    folded = path.casefold()
    for resource in lease.resources:
        if resource == leases.REPO:
            return resource
        if leases.is_path(resource) and (globs.matches(resource, path) or _folded(resource, folded)):
            return resource
    return None


def _folded(resource: str, path: str) -> bool:
    """Say whether a pattern matches a path that is written in small letters, as a disk may that does not tell them."""
    try:
        return globs.matches(resource.casefold(), path)
    except Invalid:
        return False  # a range such as [Z-a] that has no small form


def strength(lease: Lease, policy: Force, *, handed_in: bool) -> Force:
    """Return what a lease does to another's write.

    One by a first edit only ever warns. So does one that came with a task whose work is handed in: that is written
    already, and whoever comes next shall not wait for it to land.
    """
    automatic = lease.origin is not Origin.HAND
    if policy is Force.DENY and (lease.origin is Origin.EDIT or (automatic and handed_in)):
        return Force.WARN
    return policy


def judge(
    writes: Iterable[Write],
    session: str,
    task: Task | None,
    others: Sequence[Lease],
    own: Sequence[Lease],
    policy: Force,
    handed_in: Callable[[Lease], bool],
) -> list[Finding]:
    """Return the paths that are not a session's to write, each once, the gravest reason first.

    `others`: leases of others that may cover a path; `own`: those of the session and its task, ended ones also.
    """
    if policy is Force.OFF:
        return []
    found: list[Finding] = []
    for write in writes:
        reasons = [
            Finding(write.path, strength(lease, policy, handed_in=handed_in(lease)), lease)
            for lease in others
            if _is_crossed(write, lease, session, own)
        ]
        outside = None if task is None else why_outside(task, write)
        if outside is not None:
            reasons.append(Finding(write.path, policy, None, outside))
        if reasons:
            found.append(max(reasons, key=lambda finding: finding.force is Force.DENY))
    return found


def _is_crossed(write: Write, lease: Lease, session: str, own: Sequence[Lease]) -> bool:
    """Say whether a path was written while another held it; who had it before keeps what it wrote."""
    if lease.holder == session or lease.state is not State.LIVE or lease.shared or write.written < lease.taken:
        return False
    if covers(lease, write.path) is None:
        return False
    return not any(mine.taken <= lease.taken and is_in_force(mine) and covers(mine, write.path) for mine in own)


def is_in_force(lease: Lease) -> bool:
    """Say whether a lease is, or once was, in force: one that only ever waited gives no right."""
    return lease.state is not State.WAITING


def why_outside(task: Task, write: Write) -> str | None:
    """Say why a path is not for a task to write, None if it is; a task without a scope may write anything."""
    if any(globs.matches(pattern, write.path) for pattern in task.do_not_touch):
        return f"{task.id} is not to touch {', '.join(task.do_not_touch)}"
    if not task.scope:
        return None
    for pattern in task.scope:
        only_new = pattern.startswith("new:")
        if globs.matches(pattern.removeprefix("new:"), write.path) and (write.new or not only_new):
            return None
    return f"{task.id} may write only {', '.join(task.scope)}"


def literal(path: str) -> str:
    """Return a path as a resource that covers just it."""
    return "".join(f"\\{character}" if character in "*?[]\\" else character for character in path)


def text(findings: Sequence[Finding], left: Callable[[Lease], float], force: Force) -> str | None:
    """Return what a writer is told of findings that warn, or of those that deny; None if there are none."""
    chosen = [finding for finding in findings if finding.force is force]
    if not chosen:
        return None
    lines = [_line(finding, left) for finding in chosen[:NAMED]]
    if len(chosen) > NAMED:
        lines.append(f"and {len(chosen) - NAMED} more paths.")
    return "\n".join([*lines, _advice(chosen, force)])


def _line(finding: Finding, left: Callable[[Lease], float]) -> str:
    lease = finding.lease
    if lease is None:
        return f"{finding.path} is not yours to write: {finding.why}."
    task = f" for {lease.task}" if lease.task else ""
    reason = f" ({lease.reason})" if lease.reason else ""
    ends = (
        "until that task has landed" if lease.origin is not Origin.HAND else f"for {leases.in_words(left(lease))} yet"
    )
    return f"{finding.path} is held by {lease.holder}{task}{reason}: {lease.id}, {ends}."


def _advice(chosen: Collection[Finding], force: Force) -> str:
    held = [finding for finding in chosen if finding.lease is not None]
    if not held:
        return 'Leave it as it is, or ask the person in charge: covey ask "...".'
    first = held[0]
    assert first.lease is not None
    who = first.lease.holder
    if force is Force.WARN:
        return (
            f'Go on only if you must: keep your change there small, or ask first (covey mail send {who} "..."),'
            f" or wait your turn (covey lease take '{first.path}' --wait)."
        )
    return (
        f"Wait your turn (covey lease take '{first.path}' --wait), ask (covey mail send {who} \"...\"), or go on"
        f" elsewhere and leave that path as it was."
    )
