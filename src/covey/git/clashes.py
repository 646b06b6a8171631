"""Clashes: which branches git cannot merge with main or with each other, and what each changes; from objects alone."""

from __future__ import annotations

from collections.abc import Sequence

from covey.errors import ToolFailed
from covey.git import overlap_read as reading
from covey.git.candidates import Conflict, readable
from covey.git.overlap import Branches
from covey.git.project import Project

FEW = 10


def with_main(project: Project, base: str, tips: Sequence[str]) -> dict[str, Conflict | None]:
    """Return why each tip cannot be merged into `base`, None where it can; one that git cannot read counts as such."""
    branches = Branches(project)
    looked = branches.look(base, tips)
    found: dict[str, Conflict | None] = {}
    met = branches.compare(base, [(tip, base) for tip in tips if tip in looked])
    for tip in tips:
        look, contact = looked.get(tip), met.get((tip, base))
        if look is None or contact is None:
            found[tip] = Conflict((), "git cannot read it.")
        elif look.own and look.trees is None:
            found[tip] = Conflict((), "The two have no common ancestor: their histories are unrelated.")
        else:
            found[tip] = Conflict(contact.conflicts, _said(contact.conflicts)) if contact.conflicts else None
    return found


def among(project: Project, base: str, tip: str, others: Sequence[str]) -> tuple[str, ...]:
    """Return those of the others that git cannot merge `tip` with, beyond what one of them has against `base`.

    A branch that stands on another does not clash with it.
    """
    branches = Branches(project)
    looked = branches.look(base, [tip, *others])
    if tip not in looked:
        return ()
    known = [other for other in dict.fromkeys(others) if other in looked and other != tip]
    branches.compare(base, [(each, base) for each in (tip, *known)])
    met = branches.compare(base, [(tip, other) for other in known])
    return tuple(other for other in known if met.get((tip, other)) and met[tip, other].conflicts)


def between(project: Project, base: str, pairs: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those pairs of tips that git cannot merge, as `among` does; a few processes do it for all of them."""
    branches = Branches(project)
    looked = branches.look(base, list(dict.fromkeys(tip for pair in pairs for tip in pair))) if pairs else {}
    known = [(one, other) for one, other in dict.fromkeys(pairs) if one in looked and other in looked and one != other]
    branches.compare(base, [(tip, base) for tip in dict.fromkeys(tip for pair in known for tip in pair)])
    return {pair for pair, contact in branches.compare(base, known).items() if contact.conflicts}


def changed(project: Project, base: str, tips: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the paths that each tip changes since it left `base`; a file that got another name counts under both."""
    looked = reading.looks(project, base, list(dict.fromkeys(tips))) if tips else {}
    unrelated = [tip for tip, look in looked.items() if look.own and look.trees is None]
    if unrelated:
        raise ToolFailed(f"{unrelated[0][:12]} has no common ancestor with {base[:12]}.")
    return {tip: tuple(sorted(readable(name) for name in looked[tip].files)) for tip in tips}


def _said(files: Sequence[str]) -> str:
    few = ", ".join(files[:FEW]) + (f" and {len(files) - FEW} more" if len(files) > FEW else "")
    return f"Both change {few} in ways that git cannot put together."
