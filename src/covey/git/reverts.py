"""Reverts: main without what one merge brought, built from objects alone."""

from __future__ import annotations

from covey.errors import Refused
from covey.git import messages
from covey.git.candidates import Author, Candidate, Conflict, commit_tree, find_sides, is_ancestor, merge
from covey.git.messages import Trailer
from covey.git.project import Project
from covey.git.run import git
from covey.values import dataclass


@dataclass(frozen=True)
class Brought:
    """What one merge brought to main: everything between main before it and after it."""

    before: str
    after: str


def revert(
    project: Project,
    base: str,
    brought: Brought,
    *,
    author: tuple[str, str],
    message: str = "",
    trailers: tuple[Trailer, ...] = (),
    sign: str | None = None,
    at: float | None = None,
) -> Candidate | Conflict:
    """Return a commit on `base` that takes out what one merge brought, or the files that have changed too much since.

    When nothing of it is left, the candidate is empty. The same for every policy: a merge commit against its first
    parent, a squashed one against its parent, a rebased branch as a whole.
    """
    if not is_ancestor(project, brought.after, base):
        raise Refused(f"{brought.after[:12]} is not in {base[:12]}, so there is nothing to revert.")
    without = find_sides(project, brought.before, brought.after)
    # On the commit that landed, what was before is a change that takes the merge out: then git finds the right base.
    scratch = commit_tree(project, without.tree, (without.tip,), "Scratch\n", Author("covey", "covey@localhost"), at=0)
    sides = find_sides(project, base, scratch)
    merged = merge(project, sides)
    if isinstance(merged, Conflict):
        return merged
    if merged == sides.tree:
        return Candidate(sides.base, sides.tree, sides.base, without.tip, empty=True)
    said = messages.with_trailers(message or _message(project, brought), trailers)
    commit = commit_tree(project, merged, (sides.base,), said, Author(*author), at=at, key=sign)
    return Candidate(commit, merged, sides.base, without.tip, empty=False)


def _message(project: Project, brought: Brought) -> str:
    words = ("show", "-s", "--no-show-signature", "--encoding=UTF-8", "--format=%s", "--end-of-options")
    title = git(*words, brought.after, at=project.common).decode(errors="replace").strip()
    return f'Revert "{title}"\n\nThis takes out what came after {brought.before} up to {brought.after}.\n'
