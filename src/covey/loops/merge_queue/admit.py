"""Admission: what wants to land is inspected and joins the train, waits for a person, or goes back at once.

It joins on a main that has whatever its authors have built on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace
from functools import partial

from covey.app.board.task_changes import change, step
from covey.app.context import Call
from covey.app.fleet.sessions import alert
from covey.app.merging import queue_records, sendback
from covey.config import Config
from covey.core.board import tasks
from covey.core.board.tasks import Status, Task
from covey.core.fleet.sessions import COVEY
from covey.core.merging import merges
from covey.core.merging.merges import Merge, MergeState
from covey.core.merging.queue import queue_status
from covey.core.people.alerts import AlertKind
from covey.git.candidates import commits_since
from covey.git.candidates.incoming import Inspector
from covey.loops.merge_queue import build, inspect
from covey.loops.merge_queue.blame import Blame
from covey.loops.merge_queue.build import Builder, Clash
from covey.loops.merge_queue.foreign_commits import ForeignCommit, ForeignCommits, ForeignOutcome
from covey.loops.merge_queue.gate_runs import GateRuns
from covey.loops.merge_queue.inspect import Finding, JoinRequest, JoinRequests
from covey.loops.merge_queue.main_branch import MainBranch, MainPosition
from covey.loops.merge_queue.queue_state import Epoch, FollowedTrain, RestartQueue, holds_now
from covey.loops.runtime import Runtime
from covey.values import dataclass


@dataclass
class Admission:
    """Lets merges join the train."""

    runtime: Runtime
    train: FollowedTrain
    main: MainBranch
    gate_runs: GateRuns
    builder: Builder
    foreign: ForeignCommits
    blame: Blame
    is_reordered: bool = False
    """A merge that is in the train may have another priority now."""
    _in_vain: set[str] = field(default_factory=set)
    """Commits of main that the integration branch could not take by themselves."""
    _inspector: Inspector = field(default_factory=Inspector)

    async def admit(self, epoch: Epoch) -> None:
        """Let what wants to land join the train; what was doubtful joins again, or goes back."""
        for merge in sorted(self.train.state.doubtful):
            await self._look_at_doubtful(epoch, merge)
        is_reordered, self.is_reordered = self.is_reordered, False
        requests = await self._requests(self.train.state.changes, is_reordered=is_reordered)
        if requests.stuck:
            await self.runtime.write(lambda call: _wait_for_needs(call, requests.stuck))
        if not requests.fresh:
            return
        newest = await self.main.newest(MainPosition(epoch.head, epoch.head))
        if newest != epoch.base and not await self.main.is_in(newest, epoch.base):
            raise RestartQueue("the remote has moved on")
        alone = [requests.only(each.merge.id) for each in requests.fresh] if self.blame.suspects else [requests]
        for each in alone:
            with self.blame.handling(tuple(one.merge.id for one in each.fresh)):
                config = self.runtime.app.context.config
                is_apart = config.target != config.project.main
                may_join = await self._take_main_first(config, epoch, each) if is_apart else each
                if len(may_join.fresh) < len(each.fresh):
                    self.is_reordered = True
                if may_join.fresh:
                    await self._inspect_and_join(epoch, may_join)

    async def _requests(
        self, inside: Collection[str], again: Collection[str] = (), *, is_reordered: bool = False
    ) -> JoinRequests:
        config, decided = self.runtime.app.context.config, self.train.decided()
        return await self.runtime.read(
            lambda call: inspect.find(call, config, inside, decided, again, is_reordered=is_reordered)
        )

    async def _inspect_and_join(self, epoch: Epoch, requests: JoinRequests) -> None:
        """Let all join together that may; of those that the train knows only what is new is written."""
        config, at, known = self.runtime.app.context.config, self.runtime.wall(), self.train.heard.known
        found = await self.runtime.in_git_thread(
            lambda: inspect.inspect(self.runtime.project, config, epoch.base, requests, at, self._inspector)
        )
        await self.runtime.write(lambda call: _join(call, found, known))

    async def _look_at_doubtful(self, epoch: Epoch, merge: str) -> None:
        """See whether a merge that clashed with what has landed since merges with main after all."""
        if merge not in self.train.state.doubtful:
            return
        config = self.runtime.app.context.config
        with self.blame.handling((merge,)):
            links, landed = await self.runtime.read(lambda call: build.look(call, [merge]))
            built = await self.runtime.in_git_thread(lambda: self.builder.build(epoch.base, links, config, "", landed))
            if isinstance(built, Clash):
                await build.note_clash(self.runtime, epoch.conflicts, built)
            else:
                inside = {*self.train.state.changes, *self.train.decided()}
                requests = await self._requests(inside, (merge,))
                await self._inspect_and_join(epoch, requests.only(merge))

    # Commits of main that an integration branch lacks

    async def _take_main_first(self, config: Config, epoch: Epoch, requests: JoinRequests) -> JoinRequests:
        """Let an integration branch take what merges hold of main, as it is; return those that may join before that.

        What conflicts there or fails is left to the merges themselves: they join, and land or go back.
        """
        while (found := await self._find_main_commit(config, epoch, requests)) is not None:
            commit, holders = found
            at = await self.main.look()
            if at is None or epoch.base != at.head:
                return requests
            if at.main != at.head or (await self.runtime.read(holds_now)).is_frozen:
                await self.runtime.write(partial(_wait_for_main, config=config, waiting=holders))
                return requests.without(holders)
            if self.gate_runs.running or self.train.wanted or self.train.todo:
                return replace(requests, fresh=())  # what is under way ends first, and nothing more begins
            message = f"Merge {config.project.main} into {config.target}\n"
            foreign = ForeignCommit(config.project.main, commit, message, is_local=True)
            taken = await self.foreign.take(at, foreign)
            match taken.outcome:
                case ForeignOutcome.LANDED:
                    raise RestartQueue(f"commits of {config.project.main} have landed")
                case ForeignOutcome.TESTING | ForeignOutcome.UNTESTED | ForeignOutcome.BLOCKED:
                    return replace(requests, fresh=())
                case ForeignOutcome.FAILED | ForeignOutcome.UNMERGEABLE:
                    self._in_vain.add(commit)
        return requests

    async def _find_main_commit(
        self, config: Config, epoch: Epoch, requests: JoinRequests
    ) -> tuple[str, tuple[str, ...]] | None:
        """Return the last commit of main that some merges hold and the integration branch lacks, and these merges."""
        tips = {each.merge.id: each.merge.commit or f"refs/heads/{each.merge.branch}" for each in requests.fresh}
        found = await self.runtime.in_git_thread(
            lambda: commits_since.missing(self.runtime.project, config.project.main, epoch.base, tips)
        )
        return next(((commit, holders) for commit, holders in found.items() if commit not in self._in_vain), None)


def _wait_for_main(call: Call, config: Config, waiting: Collection[str]) -> None:
    """Write what merges wait for, once."""
    why = f"It holds commits of {config.project.main} that {config.target} lacks; {config.target} takes these first."
    for merge in waiting:
        now = call.tx.get(merges.Merge, merge)
        if now is not None and now.state is MergeState.QUEUED and now.reason != why:
            step(call, now, merges.Waits(why), COVEY)


def _wait_for_needs(call: Call, stuck: Sequence[JoinRequest]) -> None:
    """Write that merges wait for tasks that have not landed."""
    for each in stuck:
        needed = ", ".join(need.task for need in each.task.needs)
        why = f"It waits until what its task needs has landed: {needed}."
        queue_records.step_if(call, each.merge.id, merges.Waits(why))


# What is written of merges that were inspected


def _join(call: Call, found: Sequence[Finding], known: Collection[str]) -> None:
    """Write what becomes of merges, and that those that fit join the train together."""
    joined: list[str] = []
    again: list[str] = []
    for each in found:
        merge = each.request.merge
        now, task = call.tx.get(merges.Merge, merge.id), call.tx.task(merge.task)
        if now is None or task is None or now.state not in queue_records.IN_TRAIN:
            continue
        if each.unfit is not None:
            sendback.rejected(call, now, each.unfit)
        elif each.held:
            _hold(call, now, task, each.held)
        else:
            made = None if each.commit == now.commit else each.commit
            entered = merges.Entered(
                priority=task.priority, needs=each.request.needs, paths=each.paths, against=each.against, commit=made
            )
            if merge.id in known and merges.apply(now, entered, call.tx.now) == now:
                again.append(merge.id)  # it joins just as it did when it last entered
            else:
                step(call, now, entered, COVEY)
            joined.append(merge.id)
    if joined:
        queue_records.put(call, queue_status.Joined(tuple(joined), tuple(again)))


def _hold(call: Call, merge: Merge, task: Task, why: str) -> None:
    """Let a merge wait for a person after all."""
    step(call, merge, merges.Held(why), COVEY)
    if task.status is Status.MERGING:
        change(call, task, tasks.Held(why), COVEY)
    alert(call, AlertKind.NEEDS_REVIEW, f"{merge.task} waits for your review ({merge.id}): {why}", None, merge.task)
