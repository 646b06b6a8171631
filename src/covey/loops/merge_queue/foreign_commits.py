"""Foreign commits: what did not come through the queue is merged with main, tested as it is, and landed.

They come from the remote, or from the main branch where work lands on another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum

from covey.app.merging.queue_records import digest
from covey.core.merging.gates import GateState
from covey.core.merging.queue.train import FAILURES
from covey.errors import CoveyError, Refused, Unavailable
from covey.git import identity
from covey.git.candidates import candidates, incoming
from covey.git.candidates.candidates import Conflict
from covey.git.project import Project
from covey.loops.merge_queue.gate_runs import MAX_LOST, GateRuns
from covey.loops.merge_queue.main_branch import MainBranch, MainPosition
from covey.loops.runtime import Runtime, cancel
from covey.values import dataclass

MAX_FILES_NAMED = 5
LOOK_EVERY_S = 0.1
"""Seconds between two looks whether a gate that nobody wants has ended."""


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
class Probe:
    """The test of what would land with a foreign commit."""

    name: str
    head: str
    """Where main was: on another one the result says nothing."""
    commit: str
    checks: str
    task: asyncio.Task[str | None] | None = None
    """Returns the gate that it passed, None if it failed."""
    is_wanted: bool = True

    def is_over(self) -> bool:
        """Say whether it is known how it ended."""
        return self.task is not None and self.task.done()

    def passed_by(self) -> str | None:
        """Return the gate that it passed, if it did; it is over."""
        return None if self.task is None or self.task.cancelled() else self.task.result()


@dataclass
class ForeignCommits:
    """Brings foreign commits in, one at a time; it is asked again until it says how that ended."""

    runtime: Runtime
    main: MainBranch
    gate_runs: GateRuns
    tell: Callable[[], None]
    """Says that a probe is over."""
    probe: Probe | None = None
    """What is being tested, or was last."""

    async def take(self, at: MainPosition, foreign: ForeignCommit) -> Taken:
        """Merge a commit with main, test that, and land it; after it has landed a new epoch has to begin."""
        probe = self.find(foreign, at.head)
        if probe is None:
            return await self._begin(at, foreign)
        if not probe.is_over():
            return Taken(ForeignOutcome.TESTING)
        self.probe = None
        gate = probe.passed_by()
        if gate is None:
            is_untested = self.gate_runs.broken.is_broken()
            return Taken(ForeignOutcome.UNTESTED if is_untested else ForeignOutcome.FAILED)
        try:
            await self.main.bring(at, probe.commit, gate)
        except Unavailable as blocked:
            if foreign.is_local:
                raise  # the epoch ends; with the test kept, it would be tried again every second
            self.probe = probe  # it need not be tested again
            return Taken(ForeignOutcome.BLOCKED, blocked.message)
        return Taken(ForeignOutcome.LANDED)

    def find(self, foreign: ForeignCommit, head: str) -> Probe | None:
        """Return the test of a commit on this head by the checks of now, if there is one."""
        probe, checks = self.probe, digest(self.runtime.app.context.config)
        wanted = (foreign.name, head, checks)
        return probe if probe is not None and (probe.name, probe.head, probe.checks) == wanted else None

    def is_testing(self) -> bool:
        """Say whether something is being tested."""
        return self.probe is not None and not self.probe.is_over()

    async def stop(self) -> None:
        """End the test of what nobody wants any more."""
        probe, self.probe = self.probe, None
        if probe is None or probe.task is None:
            return
        probe.is_wanted = False
        while not probe.task.done():
            running = self.gate_runs.running.items()
            await self.gate_runs.stop([gate for gate, each in running if each.tree.commit == probe.commit])
            await asyncio.wait([probe.task], timeout=LOOK_EVERY_S)

    async def close(self) -> None:
        """End at once, since the daemon ends."""
        if self.probe is not None:
            await cancel([self.probe.task])

    async def _begin(self, at: MainPosition, foreign: ForeignCommit) -> Taken:
        """Build what would land, and begin to test it; while another one is tested nothing begins."""
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
        if not self.is_testing():
            probe = self.probe = Probe(foreign.name, at.head, built, digest(self.runtime.app.context.config))
            probe.task = asyncio.ensure_future(self._test(probe))
            probe.task.add_done_callback(lambda _: self.tell())
        return Taken(ForeignOutcome.TESTING)

    async def _test(self, probe: Probe) -> str | None:
        """Test a commit, twice if need be; the train may go on meanwhile."""
        failed = 0
        for _ in range(FAILURES + MAX_LOST):
            gate = await self.gate_runs.run_alone(probe.commit, probe.head) if probe.is_wanted else None
            if gate is not None and gate.state is GateState.PASSED:
                return gate.id
            failed += gate is not None and gate.state is GateState.FAILED  # one that was lost says nothing
            if gate is None or failed == FAILURES or self.gate_runs.broken.is_broken():
                break
        return None


def _build(project: Project, head: str, foreign: ForeignCommit, when: float) -> str | Conflict:
    """Return main with a foreign commit in it, on no branch."""
    if foreign.is_local and candidates.is_ancestor(project, head, foreign.commit):
        return foreign.commit
    if not foreign.is_local:
        broken = incoming.broken(incoming.look(project, head, [foreign.commit])[foreign.commit])
        if broken:
            raise Refused(f"{incoming.told(broken)}.")
    built = candidates.build(project, head, foreign.commit, message=foreign.message, author=identity.COVEY, at=when)
    if isinstance(built, Conflict):
        return built
    if not built.empty:
        return built.commit
    if foreign.is_local:
        raise Refused("It changes nothing.")
    # Main has to contain the remote's commits before it can be pushed, even if they change nothing here.
    author = candidates.Author(*identity.COVEY)
    return candidates.commit_tree(project, built.tree, (head, foreign.commit), foreign.message, author, at=when)
