"""Catching up: an integration branch takes the commits of main that a branch brings along as they are, and first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from covey.app.changes import step
from covey.app.verbs import Call
from covey.config import Config
from covey.core import merges
from covey.core.merges import State
from covey.core.sessions import COVEY
from covey.git import candidates
from covey.git.project import Project
from covey.git.run import try_git
from covey.loops.entering import Wish, Wishes
from covey.store import rows
from covey.values import dataclass


@dataclass(frozen=True)
class Behind:
    """Merges that hold commits of main which the integration branch lacks, and the last of these commits."""

    commit: str
    wishes: tuple[Wish, ...]

    def others(self, wishes: Wishes) -> Wishes:
        """Return the wishes without these."""
        kept = {wish.merge.id for wish in self.wishes}
        return replace(wishes, fresh=tuple(wish for wish in wishes.fresh if wish.merge.id not in kept))


def behind(project: Project, config: Config, base: str, wishes: Iterable[Wish], vain: Iterable[str]) -> Behind | None:
    """Return what an integration branch has to take from main before merges can join; None if there is nothing."""
    main = None
    if config.target != config.project.main:
        main = candidates.resolve(project, f"refs/heads/{config.project.main}")
    if main is None or candidates.is_ancestor(project, main, base):
        return None
    found: dict[str, list[Wish]] = {}
    for wish in wishes:
        tip = candidates.resolve(project, wish.merge.commit or f"refs/heads/{wish.merge.branch}")
        asked = None if tip is None else try_git("merge-base", "--end-of-options", main, tip, at=project.common)
        shared = "" if asked is None or asked.returncode else asked.stdout.decode().strip()
        if shared and shared not in vain and not candidates.is_ancestor(project, shared, base):
            found.setdefault(shared, []).append(wish)
    return next((Behind(commit, tuple(those)) for commit, those in found.items()), None)


def build(project: Project, config: Config, base: str, commit: str, at: float) -> str | None:
    """Return the integration branch with a commit of main, None if these conflict or nothing would change."""
    if candidates.is_ancestor(project, base, commit):
        return commit
    message = f"Merge {config.project.main} into {config.target}\n"
    author = ("covey", "covey@localhost")
    built = candidates.build(project, base, commit, policy="merge", message=message, author=author, at=at)
    return None if isinstance(built, candidates.Conflict) or built.empty else built.commit


def note(call: Call, config: Config, waiting: Iterable[Wish]) -> None:
    """Write what merges wait for, once."""
    why = f"It holds commits of {config.project.main} that {config.target} lacks; {config.target} takes these first."
    for wish in waiting:
        now = call.tx.get(rows.MERGES, wish.merge.id)
        if now is not None and now.state is State.QUEUED and now.reason != why:
            step(call, now, merges.Waits(why), COVEY)
