"""Foreign commits: what did not come through the queue is merged with main, tested as it is, and landed.

They come from the remote, or from the main branch where work lands on another one.
"""

from __future__ import annotations

from enum import Enum

from covey.errors import CoveyError, Refused, Unavailable
from covey.git import identity
from covey.git.candidates import candidates, incoming
from covey.git.candidates.candidates import Conflict
from covey.git.project import Project
from covey.loops.merge_queue.gate_runs import Probes
from covey.loops.merge_queue.main_branch import MainBranch, MainPosition
from covey.loops.runtime import Runtime
from covey.values import dataclass

MAX_FILES_NAMED = 5


@dataclass(frozen=True)
class ForeignCommit:
    """A commit that is to come in as it is, and where it comes from."""

    source: str
    commit: str
    message: str
    """The message of the merge that brings it in."""
    is_local: bool
    """It is on a branch of this repository: it is not inspected, and the target may be fast-forwarded to it."""

    @property
    def name(self) -> str:
        """Return what its test is known by."""
        return f"{self.source} {self.commit}"


class ForeignOutcome(Enum):
    """How far a foreign commit has come."""

    TESTING = "testing"
    LANDED = "landed"
    FAILED = "failed"
    """The gate fails with it."""
    UNTESTED = "untested"
    """The gate could not be run, which says nothing of it."""
    UNMERGEABLE = "unmergeable"
    """It cannot be merged with main, or may not be."""
    BLOCKED = "blocked"
    """It passed, and files of the user's are in its way."""


@dataclass(frozen=True)
class Taken:
    """What came of trying to bring in a foreign commit, and why in a sentence where there is one."""

    outcome: ForeignOutcome
    why: str = ""


@dataclass
class ForeignCommits:
    """Brings foreign commits in; it is asked again until it says how that ended."""

    runtime: Runtime
    main: MainBranch
    probes: Probes

    async def take(self, at: MainPosition, foreign: ForeignCommit) -> Taken:
        """Merge a commit with main, test that, and land it; after it has landed a new epoch has to begin."""
        probe = self.probes.take(foreign.name, at.head)
        if probe is None:
            return await self._begin(at, foreign)
        if not probe.is_over():
            return Taken(ForeignOutcome.TESTING)
        gate = probe.passed_by()
        if gate is None:
            return Taken(ForeignOutcome.UNTESTED if self.probes.is_broken() else ForeignOutcome.FAILED)
        try:
            await self.main.bring(at, probe.commit, gate)
        except Unavailable as blocked:
            if foreign.is_local:
                raise  # the epoch ends; with the test kept, it would be tried again every second
            self.probes.probe = probe  # it need not be tested again
            return Taken(ForeignOutcome.BLOCKED, blocked.message)
        return Taken(ForeignOutcome.LANDED)

    async def _begin(self, at: MainPosition, foreign: ForeignCommit) -> Taken:
        """Build what would land, and begin to test it."""
        when = self.runtime.wall()
        try:
            built = await self.runtime.in_git_thread(lambda: _build(self.runtime.project, at.head, foreign, when))
        except CoveyError as error:
            if foreign.is_local and not isinstance(error, Refused):
                raise  # what is wrong is neither the commit nor a stranger's
            why = f"What {foreign.source} has at {foreign.commit[:12]} cannot come in: {error.message}"
            return Taken(ForeignOutcome.UNMERGEABLE, why)
        if isinstance(built, Conflict):
            files = ", ".join(built.files[:MAX_FILES_NAMED])
            why = f"{foreign.source} has commits that conflict with ours in {files}."
            return Taken(ForeignOutcome.UNMERGEABLE, why)
        self.probes.begin(foreign.name, at.head, built)
        return Taken(ForeignOutcome.TESTING)


def _build(project: Project, head: str, foreign: ForeignCommit, when: float) -> str | Conflict:
    """Return main with a foreign commit in it, on no branch."""
    if foreign.is_local and candidates.is_ancestor(project, head, foreign.commit):
        return foreign.commit
    if not foreign.is_local:
        broken = incoming.broken(incoming.look(project, head, [foreign.commit])[foreign.commit])
        if broken:
            raise Refused(f"{incoming.told(broken)}.")
    built = candidates.build(
        project, head, foreign.commit, policy="merge", message=foreign.message, author=identity.COVEY, at=when
    )
    if isinstance(built, Conflict):
        return built
    if not built.empty:
        return built.commit
    if foreign.is_local:
        raise Refused("It changes nothing.")
    # Main has to contain the remote's commits before it can be pushed, even if they change nothing here.
    author = candidates.Author(*identity.COVEY)
    return candidates.commit_tree(project, built.tree, (head, foreign.commit), foreign.message, author, at=when)
