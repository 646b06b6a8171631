"""Inspection: which merges want to join the train, and whether they fit, go back at once, or wait for a person."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
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


@dataclass(frozen=True)
class Fit:
    """A merge that may join: its commit, what it changes, and the open merges that git cannot merge it with."""

    request: JoinRequest
    commit: str
    paths: tuple[str, ...] = ()
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unfit:
    """A merge that goes back to its author at once, and why: in words, or because of a conflict."""

    request: JoinRequest
    why: RejectionCause


@dataclass(frozen=True)
class Protected:
    """A merge that only a person lets land, for this reason."""

    request: JoinRequest
    why: str


Finding = Fit | Unfit | Protected


def inspect(
    project: Project, config: Config, base: str, requests: JoinRequests, at: float, inspector: Inspector
) -> list[Finding]:
    """Look at merges in git, all at once where that can be; none keeps another from being looked at."""
    findings: list[Finding] = []
    for request in requests.fresh:
        found = _tip(project, config, base, request, at)
        findings.append(Fit(request, found) if isinstance(found, str) else found)
    seen = inspector.look(project, base, [fit.commit for fit in _fits(findings)])
    findings = _each_fit(findings, lambda fit: _inspected(fit, seen[fit.commit]))
    try:
        works = _read(project, base, _fits(findings))
    except CoveyError:  # what one of them lacks must not keep the others out
        findings = _each_fit(findings, lambda fit: _whole(project, base, fit))
        works = _read(project, base, _fits(findings))
    changed = {tip: _changed(project, base, work) for tip, work in works.items()}
    named, unwanted = _named(project, config, base, changed.values()), requests.unwanted
    findings = _each_fit(
        findings, lambda fit: _judge(config, base, fit, works[fit.commit], changed[fit.commit], unwanted, named)
    )
    against = _meet(project, base, _fits(findings), requests.inside)
    return _each_fit(findings, lambda fit: replace(fit, against=against[fit.request.merge.id]))


def _unfit(request: JoinRequest, words: str, *advice: str) -> Unfit:
    return Unfit(request, RejectionCause(words=words, advice=advice))


def _fits(findings: Iterable[Finding]) -> list[Fit]:
    return [finding for finding in findings if isinstance(finding, Fit)]


def _each_fit(findings: Iterable[Finding], judge: Callable[[Fit], Finding]) -> list[Finding]:
    """Judge those that may fit so far; the others stay as they are."""
    return [judge(finding) if isinstance(finding, Fit) else finding for finding in findings]


def _inspected(finding: Fit, seen: Sequence[TreeFinding]) -> Finding:
    """Send back what no tool can read, and let what is only odd wait for a person; nothing of it was merged yet."""
    broken = incoming.broken(seen)
    if broken:
        return _unfit(finding.request, f"It cannot land as it is: {incoming.told(broken)}.", *HOW_TO_MEND)
    odd = [each.what for each in seen if each.is_odd]
    if odd and not finding.request.merge.approved:
        return Protected(finding.request, f"Only a person lets this land: {incoming.told(odd)}.")
    return finding


def _read(project: Project, base: str, fits: Iterable[Fit]) -> dict[str, BranchChanges]:
    """Return what those that may fit add to main, and what they change."""
    tips = list(dict.fromkeys(fit.commit for fit in fits))
    return branch_reader.looks(project, base, tips) if tips else {}


def _whole(project: Project, base: str, fit: Fit) -> Finding:
    """Send back what cannot be read to its end, such as a commit whose parent is not in this repository."""
    if chain_inputs.is_whole(project, fit.commit, base):
        return fit
    return _unfit(fit.request, f"Git cannot read all of {fit.commit[:12]} here, so nothing could be merged.")


def _changed(project: Project, base: str, work: BranchChanges) -> tuple[str, ...]:
    """Return the paths that a tip changes since it left main, or from main itself if it has a history of its own."""
    is_apart = work.own and work.trees is None
    return tuple(candidates.changed_paths(project, base, work.tip)) if is_apart else work.paths


def _named(
    project: Project, config: Config, base: str, changes: Iterable[tuple[str, ...]]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return for each set of changed paths those that the checks name."""
    changes = set(changes)
    if not config.merge.protect_check:
        return dict.fromkeys(changes, ())
    found = guarded_files.named(guarded_files.commands_of(config.merge))
    before = candidates.folders(project, base, sorted(found.targets)) if found.targets and changes else ()
    return {paths: guarded_files.touched(paths, found, before) for paths in changes}


def _judge(
    config: Config,
    base: str,
    fit: Fit,
    work: BranchChanges,
    paths: tuple[str, ...],
    unwanted: Collection[str],
    all_named: dict[tuple[str, ...], tuple[str, ...]],
) -> Finding:
    own, named = work.own, all_named[paths]
    taken_back = next((commit for commit in unwanted if commit in own - {fit.commit, *fit.request.earlier}), None)
    if taken_back is not None:
        words = f"It is built on {taken_back[:12]}, which was rejected, dropped or taken off {config.target}"
        advice = f"git rebase --onto {base[:12]} {taken_back[:12]}    (that leaves it out)"
        return _unfit(fit.request, f"{words} after its author had begun.", advice)
    if own and not paths:
        return _unfit(fit.request, "Its commits change nothing, so there is nothing to land.")
    touched = tuple(path for path in paths if path in named or globs.covered(path, config.merge.protected, ()))
    if touched and not fit.request.merge.approved:
        why = f"It changes {', '.join(touched[:MAX_PATHS_NAMED])}, which only a person lets land"
        also = f": the check names {', '.join(named[:MAX_PATHS_NAMED])}" if named else ""
        return Protected(fit.request, f"{why}{also}.")
    return Fit(fit.request, fit.commit, paths[:MAX_PATHS])


def _meet(project: Project, base: str, fits: Sequence[Fit], inside: Iterable[Merge]) -> dict[str, tuple[str, ...]]:
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


def _tip(project: Project, config: Config, base: str, request: JoinRequest, at: float) -> str | Unfit:
    """Return the commit to land."""
    merge = request.merge
    if merge.reverts is not None and merge.commit is None:
        return _revert(project, config, base, request, at)
    tip = candidates.resolve(project, merge.commit or f"refs/heads/{merge.branch}")
    if tip is None:
        what = f"commit {merge.commit}" if merge.commit else f"branch {merge.branch}"
        return _unfit(request, f"There is no {what} in this repository, so nothing could be merged.")
    return tip


def _revert(project: Project, config: Config, base: str, request: JoinRequest, at: float) -> str | Unfit:
    """Make the commit that takes a merge out of main again, on the branch of its task."""
    merge, gone = request.merge, request.reverted
    if gone is None or gone.landed is None or gone.onto is None:
        return _unfit(request, f"It is not known what {merge.reverts} brought to {config.target}.")
    trailers = (("Covey-Task", merge.task), ("Covey-Reverts", gone.id))
    try:
        author, key = session_author(merge.session), signing.key(project)
        made = candidates.revert(
            project, base, gone.onto, gone.landed, author=author, trailers=trailers, sign=key, at=at
        )
    except CoveyError as error:
        return _unfit(request, error.message)
    if isinstance(made, Conflict):
        since, advice = commits_since.since(project, gone.landed, base), _by_hand(config, gone.landed, gone.onto)
        clash = Clash(made.files, made.message)
        return Unfit(request, RejectionCause(RejectCause.TEXT.value, since=since, clash=clash, advice=advice))
    if made.empty:
        return made.base
    task_branches.put(project, f"refs/heads/{merge.branch}", made.commit)
    task_branches.keep(project, merge.task, made.commit)
    return made.commit


def _by_hand(config: Config, landed: str, onto: str) -> tuple[str, ...]:
    """Return how somebody takes out by hand what git alone could not."""
    return (
        f"git diff --binary {landed[:12]} {onto[:12]} | git apply --3way    (takes it out; marks where that conflicts)",
        "Resolve the conflicts: take that work out, and keep what came later working.",
        *([f"{config.merge.check}    (the test that it must pass)"] if config.merge.check else []),
        "git add -A && git commit",
    )
