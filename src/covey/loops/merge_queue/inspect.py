"""Inspection: which merges want to join the train, and whether they fit, go back at once, or wait for a person."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from covey.app.context import Call
from covey.app.merging import merge_lookup
from covey.app.merging.sendback import RejectionCause
from covey.config import Config
from covey.core import globs
from covey.core.board.needs import is_met
from covey.core.board.tasks import Task
from covey.core.merging import guarded_files
from covey.core.merging.merges import Merge, MergeState
from covey.core.merging.queue.train import RejectCause
from covey.core.merging.rejection import Clash
from covey.core.merging.tree_rules import Finding as TreeFinding
from covey.errors import CoveyError
from covey.git.candidates import (
    candidates,
    chain_inputs,
    commits_since,
    incoming,
    signing,
)
from covey.git.candidates.candidates import Conflict
from covey.git.candidates.incoming import Inspector
from covey.git.identity import session_author
from covey.git.overlap import branch_reader, overlap
from covey.git.overlap.branch_reader import BranchChanges
from covey.git.project import Project
from covey.git.worktrees import task_branches
from covey.loops.merge_queue import build
from covey.values import dataclass

MAX_PATHS = 200
"""Paths of a merge that the train is told of."""
MAX_PAIRS = 1000
"""Pairs that are compared when merges join; a clash of others is seen when a tree cannot be built."""
MAX_PATHS_NAMED = 5
"""Paths that a sentence names."""
HOW_TO_MEND = (
    "Find what is named above: git log --stat and git ls-tree -r HEAD show commits and entries.",
    "Take it out of every commit of yours: begin anew on main with git checkout -B BRANCH, and commit the good files.",
)
"""What the author of work does in which something is broken."""


# What wants to join, as the store has it


@dataclass(frozen=True)
class JoinRequest:
    """A merge that wants to join the train, with its task, and what git has to know of it."""

    merge: Merge
    task: Task
    needs: tuple[str, ...] = ()
    reverted: Merge | None = None
    earlier: tuple[str, ...] = ()
    """What was built of its task's work before; as it is, where branches land fast-forward: it may stand on that."""


@dataclass(frozen=True)
class JoinRequests:
    """What wants to join now, and what is in the train already."""

    fresh: tuple[JoinRequest, ...]
    inside: tuple[Merge, ...]
    unwanted: tuple[str, ...]
    stuck: tuple[JoinRequest, ...] = ()
    """What waits for a task that is not even handed in, and does not say so."""

    def only(self, merge: str) -> JoinRequests:
        """Return the request of one merge alone."""
        return replace(self, fresh=tuple(each for each in self.fresh if each.merge.id == merge))

    def without(self, merges: Collection[str]) -> JoinRequests:
        """Return the requests of all other merges."""
        return replace(self, fresh=tuple(each for each in self.fresh if each.merge.id not in merges))


def find(
    call: Call,
    config: Config,
    inside: Collection[str],
    ended: Collection[str],
    again: Collection[str] = (),
    *,
    is_reordered: bool,
) -> JoinRequests:
    """Return what wants to join.

    `inside` is what the train has, `ended` what it is about to be done with, `again` what joins once more; if
    `is_reordered`, so does what has another priority than when it joined.
    """
    found: list[JoinRequest] = []
    known: list[Merge] = []
    stuck: list[JoinRequest] = []
    open_merges = call.tx.open_merges()
    for merge in open_merges:
        may_join = merge.state in (MergeState.QUEUED, MergeState.TESTING) and (config.merge.check or merge.approved)
        task = call.tx.task(merge.task) if may_join else None
        if task is None:
            continue
        is_new = merge.id not in inside and merge.id not in ended
        is_moved = is_reordered and merge.id in inside and merge.priority != task.priority
        if not (is_new or is_moved or merge.id in again):
            known += [merge] if merge.id in inside else []
            continue
        needs = _needs(call, task, open_merges)
        if needs is None:
            stuck += [JoinRequest(merge, task)] if merge.reason is None else []
            continue
        reverted = None if merge.reverts is None else call.tx.get(Merge, merge.reverts)
        found.append(JoinRequest(merge, task, needs, reverted, merge_lookup.built_of(call, merge.task)))
    unwanted = call.tx.unwanted(merge_lookup.MAX_UNWANTED)
    # Merged commits keep their names, and all below them: what a person took off main would come back with them.
    taken_off = build.last_mains(call) if config.merge.policy == "merge" and found else ()
    return JoinRequests(tuple(found), tuple(known), (*unwanted, *taken_off), tuple(stuck))


def _needs(call: Call, task: Task, open_merges: Iterable[Merge]) -> tuple[str, ...] | None:
    """Return the open merges that a task's work needs on main first; None if something is not even handed in."""
    found: list[str] = []
    for need in task.needs:
        needed = call.tx.task(need.task)
        if needed is None or is_met(needed.status, need.policy):
            continue
        merge = next((each for each in open_merges if each.task == need.task), None)
        if merge is None or merge.state is MergeState.REVIEW:
            return None
        if merge.state is not MergeState.PASSED:
            found.append(merge.id)
    return tuple(found)


# What git says of it


@dataclass
class Finding:
    """What git says of a merge: it fits and may join, unless it goes back or waits for a person."""

    request: JoinRequest
    commit: str = ""
    paths: tuple[str, ...] = ()
    """What it changes."""
    against: tuple[str, ...] = ()
    """The open merges that git cannot merge it with."""
    unfit: RejectionCause | None = None
    """Why it goes back to its author at once: in words, or because of a conflict."""
    held: str = ""
    """Why only a person lets it land."""

    @property
    def fits(self) -> bool:
        """Say whether it may join, as far as is known."""
        return self.unfit is None and not self.held

    def send_back(self, words: str, *advice: str) -> None:
        """Note why it goes back to its author, and what to do then."""
        self.unfit = RejectionCause(words=words, advice=advice)


def inspect(
    project: Project, config: Config, base: str, requests: JoinRequests, at: float, inspector: Inspector
) -> list[Finding]:
    """Look at merges in git, all at once where that can be; none keeps another from being looked at."""
    findings = [Finding(request) for request in requests.fresh]
    for each in findings:
        _find_tip(project, config, base, each, at)
    fits = [each for each in findings if each.fits]
    seen = inspector.look(project, base, [each.commit for each in fits])
    for each in fits:
        if seen[each.commit]:
            _judge_content(each, seen[each.commit])
    fits = [each for each in fits if each.fits]
    try:
        works = _read(project, base, fits)
    except CoveyError:  # what one of them lacks must not keep the others out
        fits = [each for each in fits if _is_whole(project, base, each)]
        works = _read(project, base, fits)
    commands = guarded_files.commands_of(config.merge) if config.merge.protect_check else ()
    guarded = guarded_files.named(commands)
    before = candidates.folders(project, base, sorted(guarded.targets)) if guarded.targets and works else ()
    for each in fits:
        work = works[each.commit]
        paths = _changed(project, base, work)
        named = guarded_files.touched(paths, guarded, before)
        _judge_changes(config, base, each, work.own, paths, requests.unwanted, named)
    fits = [each for each in fits if each.fits]
    against = _meet(project, base, fits, requests.inside)
    for each in fits:
        each.against = against[each.request.merge.id]
    return findings


def _judge_content(finding: Finding, seen: Sequence[TreeFinding]) -> None:
    """Send back what no tool can read, and let what is only odd wait for a person; nothing of it was merged yet."""
    broken, odd = incoming.broken(seen), [each.what for each in seen if each.is_odd]
    if broken:
        finding.send_back(f"It cannot land as it is: {incoming.told(broken)}.", *HOW_TO_MEND)
    elif odd and not finding.request.merge.approved:
        finding.held = f"Only a person lets this land: {incoming.told(odd)}."


def _read(project: Project, base: str, fits: Iterable[Finding]) -> dict[str, BranchChanges]:
    """Return what those that may fit add to main, and what they change."""
    tips = list(dict.fromkeys(fit.commit for fit in fits))
    return branch_reader.looks(project, base, tips) if tips else {}


def _is_whole(project: Project, base: str, finding: Finding) -> bool:
    """Send back what cannot be read to its end, such as a commit whose parent is not in this repository."""
    is_whole = chain_inputs.is_whole(project, finding.commit, base)
    if not is_whole:
        finding.send_back(f"Git cannot read all of {finding.commit[:12]} here, so nothing could be merged.")
    return is_whole


def _changed(project: Project, base: str, work: BranchChanges) -> tuple[str, ...]:
    """Return the paths that a tip changes since it left main, or from main itself if it has a history of its own."""
    is_apart = work.own and work.trees is None
    return tuple(candidates.changed_paths(project, base, work.tip)) if is_apart else work.paths


def _judge_changes(
    config: Config,
    base: str,
    finding: Finding,
    own: Collection[str],
    paths: tuple[str, ...],
    unwanted: Collection[str],
    named: tuple[str, ...],
) -> None:
    """Send back what stands on unwanted work or brings nothing, and let what is protected wait for a person."""
    finding.paths = paths[:MAX_PATHS]
    known = {finding.commit, *finding.request.earlier}
    taken_back = next((commit for commit in unwanted if commit in own and commit not in known), None)
    touched = tuple(path for path in paths if path in named or globs.covered(path, config.merge.protected, ()))
    if taken_back is not None:
        words = f"It is built on {taken_back[:12]}, which was rejected, dropped or taken off {config.target}"
        advice = f"git rebase --onto {base[:12]} {taken_back[:12]}    (that leaves it out)"
        finding.send_back(f"{words} after its author had begun.", advice)
    elif own and not paths:
        finding.send_back("Its commits change nothing, so there is nothing to land.")
    elif touched and not finding.request.merge.approved:
        why = f"It changes {', '.join(touched[:MAX_PATHS_NAMED])}, which only a person lets land"
        also = f": the check names {', '.join(named[:MAX_PATHS_NAMED])}" if named else ""
        finding.held = f"{why}{also}."


def _meet(project: Project, base: str, fits: Sequence[Finding], inside: Iterable[Merge]) -> dict[str, tuple[str, ...]]:
    """Return for each merge the open ones before it with which git cannot merge it, the nearest looked at first."""
    before = [(each.id, each.commit, frozenset(each.paths)) for each in inside if each.commit is not None]
    most = max(MAX_PAIRS // max(len(fits), 1), 1)
    met: dict[str, list[tuple[str, tuple[str, str]]]] = {}
    for fit in fits:
        own, paths = fit.request.merge.id, frozenset(fit.paths)
        shared = (
            (merge, (fit.commit, commit))
            for merge, commit, theirs in reversed(before)
            if merge != own and not paths.isdisjoint(theirs)
        )
        met[own] = list(islice(shared, most))
        before.append((own, fit.commit, paths))
    clashing = overlap.between(project, base, [pair for pairs in met.values() for _, pair in pairs])
    return {own: tuple(merge for merge, pair in pairs if pair in clashing) for own, pairs in met.items()}


def _find_tip(project: Project, config: Config, base: str, finding: Finding, at: float) -> None:
    """Find the commit to land."""
    merge = finding.request.merge
    if merge.reverts is not None and merge.commit is None:
        _revert(project, config, base, finding, at)
        return
    finding.commit = candidates.resolve(project, merge.commit or f"refs/heads/{merge.branch}") or ""
    if not finding.commit:
        what = f"commit {merge.commit}" if merge.commit else f"branch {merge.branch}"
        finding.send_back(f"There is no {what} in this repository, so nothing could be merged.")


def _revert(project: Project, config: Config, base: str, finding: Finding, at: float) -> None:
    """Make the commit that takes a merge out of main again, on the branch of its task."""
    merge, gone = finding.request.merge, finding.request.reverted
    if gone is None or gone.landed is None or gone.onto is None:
        finding.send_back(f"It is not known what {merge.reverts} brought to {config.target}.")
        return
    trailers = (("Covey-Task", merge.task), ("Covey-Reverts", gone.id))
    try:
        author, key = session_author(merge.session), signing.key(project)
        made = candidates.revert(
            project, base, gone.onto, gone.landed, author=author, trailers=trailers, sign=key, at=at
        )
    except CoveyError as error:
        finding.send_back(error.message)
        return
    if isinstance(made, Conflict):
        since, advice = commits_since.since(project, gone.landed, base), _by_hand(config, gone.landed, gone.onto)
        clash = Clash(made.files, made.message)
        finding.unfit = RejectionCause(RejectCause.TEXT.value, since=since, clash=clash, advice=advice)
    elif made.empty:
        finding.commit = made.base
    else:
        task_branches.put(project, f"refs/heads/{merge.branch}", made.commit)
        task_branches.keep(project, merge.task, made.commit)
        finding.commit = made.commit


def _by_hand(config: Config, landed: str, onto: str) -> tuple[str, ...]:
    """Return how somebody takes out by hand what git alone could not."""
    return (
        f"git diff --binary {landed[:12]} {onto[:12]} | git apply --3way    (takes it out; marks where that conflicts)",
        "Resolve the conflicts: take that work out, and keep what came later working.",
        *([f"{config.merge.check}    (the test that it must pass)"] if config.merge.check else []),
        "git add -A && git commit",
    )
