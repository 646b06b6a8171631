"""Building: the trees that the train wants tested, each link built once for all trees that share it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from covey.app.context import Call
from covey.app.merging.queue_records import step_if
from covey.config import Config
from covey.core.merging import merges, rejection
from covey.core.merging.merges import Merge
from covey.errors import ToolFailed
from covey.git.candidates import candidate_chain, chain_inputs, signing
from covey.git.candidates.candidate_chain import Link, Placed, Policy, Stopped
from covey.git.candidates.candidates import Conflict, is_ancestor, resolve
from covey.git.candidates.commit_messages import Trailer
from covey.git.identity import session_author
from covey.git.overlap import overlap
from covey.git.project import Project
from covey.loops.runtime import Runtime
from covey.values import dataclass

MAX_LANDED, MAX_MAINS = 200, 50
"""Merges that landed last, on whose branches a branch may go on although main has their work under other names."""
MAX_LINKS_KEPT = 20_000
"""Links that are remembered; one that was forgotten is built again."""
_NONE: Mapping[str, str] = MappingProxyType({})
POLICIES: dict[str, Policy] = {"merge": "merge", "squash": "squash", "rebase": "rebase", "ff": "ff"}


@dataclass(frozen=True)
class CandidateTree:
    """A chain of commits on a value of main, and the merges that its links are."""

    base: str
    links: tuple[Placed, ...]
    since: str = ""
    """Where main is, if what it is built on has not landed either: all since then has to pass."""

    @property
    def commit(self) -> str:
        """Return the commit that is tested, and lands if it passes."""
        return self.links[-1].commit if self.links else self.base


@dataclass(frozen=True)
class Clash:
    """A merge that does not go together with others before it in the same tree, or, if none is named, with main."""

    merge: str
    against: tuple[str, ...]
    conflict: Conflict


def look(call: Call, merge_ids: Sequence[str]) -> tuple[list[Link], dict[str, str]]:
    """Return what a chain needs to know of merges that have entered, and of what landed last."""
    found = [merge for each in merge_ids if (merge := call.tx.get(merges.Merge, each)) is not None]
    tasks = call.tx.tasks_named(merge.task for merge in found)
    costs = call.tx.used_by("task", list(tasks))
    links = [
        _link(merge, tasks[merge.task].title, costs[merge.task].cost if merge.task in costs else 0.0) for merge in found
    ]
    return links, call.tx.landed_tips(MAX_LANDED) | {each: each for each in last_mains(call)}


def last_mains(call: Call) -> list[str]:
    """Return the last values of main that the queue made; one that main lacks was taken off it by a person."""
    target = call.context.config.target
    return [landing.commit for landing in call.tx.last_landings(MAX_MAINS) if landing.branch == target]


def _link(merge: Merge, title: str, cost: float) -> Link:
    """Return a merge as a link of a chain."""
    trailers: tuple[Trailer, ...] = (
        ("Covey-Task", merge.task),
        ("Covey-Session", merge.session),
        ("Covey-Merge", merge.id),
        *((("Covey-Reverts", merge.reverts),) if merge.reverts else ()),
        *((("Covey-Cost", f"{cost:.4f}".rstrip("0").rstrip(".")),) if cost > 0 else ()),
    )
    author = session_author(merge.session)
    return Link(id=merge.id, tip=merge.commit or "", message=title, author=author, trailers=trailers)


async def note_clash(runtime: Runtime, conflicts: dict[str, rejection.Clash], clash: Clash) -> None:
    """Write what does not go together, so that the train knows, and remember what git said of it."""
    conflicts[clash.merge] = rejection.Clash(clash.conflict.files, clash.conflict.message)
    await runtime.write(lambda call: step_if(call, clash.merge, merges.Clashed(clash.against)))


@dataclass
class Builder:
    """Builds trees, in whatever thread; nested ones share their first commits, so that one can land after the other."""

    project: Project
    wall: Callable[[], float]
    """Returns the time that commits bear."""
    _known: dict[tuple[str, str, str, str], Placed] = field(default_factory=dict)
    """Each link by the commit before it, its merge and tip, and the policy."""

    def build(
        self, base: str, wanted: Sequence[Link], config: Config, group: str, landed: Mapping[str, str] = _NONE
    ) -> CandidateTree | Clash:
        """Return the tree with these links on a base, or why there is none.

        `landed` are commits that were handed in, with what main got for them, and values of main, with themselves: a
        branch that went on from one of them brings only what is new, and not what a person took off main again.
        """
        policy = POLICIES[config.merge.policy]
        placed = self._built(base, wanted, policy)
        head = placed[-1].commit if placed else base
        rest = wanted[len(placed) :]
        if rest:
            key = signing.key(self.project)
            held = self._held(base, rest, policy, landed)
            chain = self._extend(head, rest, policy, key, group if len(wanted) > 1 else "", held)
            if len(self._known) > MAX_LINKS_KEPT:
                self._known.clear()
            self._known |= {(each.before, each.id, each.tip, policy): each for each in chain.links}
            if chain.stopped is not None:
                return self._clash(base, wanted, chain.stopped, policy, key, held)
            placed += chain.links
        return CandidateTree(base, tuple(placed))

    def _built(self, base: str, wanted: Sequence[Link], policy: Policy) -> list[Placed]:
        """Return the first links as they were built before, if git has them still: no ref keeps them from a gc."""
        placed: list[Placed] = []
        head = base
        for each in wanted:
            known = self._known.get((head, each.id, each.tip, policy))
            if known is None:
                break
            placed.append(known)
            head = known.commit
        if placed and resolve(self.project, head) is None:
            self._known.clear()
            return []
        return placed

    def _held(self, base: str, wanted: Sequence[Link], policy: Policy, landed: Mapping[str, str]) -> list[str]:
        """Return the landed commits that a link stands on, and of which the base has the work under another name.

        Those that landed under their own name and are not in the base were taken off it: their work is not wanted.
        """
        if policy == "merge" or not landed:
            return []  # merged commits keep their names
        tips = dict.fromkeys(each.tip for each in wanted)
        try:
            works, _ = chain_inputs.works(self.project, base, list(tips))
        except ToolFailed:
            return []  # extend says what is odd
        added = dict.fromkeys(commit.name for work in works.values() for commit in work.own)
        return [
            name
            for name in added
            if name in landed
            and ((landed[name] == name and name not in tips) or is_ancestor(self.project, landed[name], base))
        ]

    def _extend(
        self, head: str, wanted: Sequence[Link], policy: Policy, key: str | None, group: str, held: Sequence[str]
    ) -> candidate_chain.Chain:
        return candidate_chain.extend(
            self.project, head, wanted, policy=policy, sign=key, group=group, held=held, at=self.wall()
        )

    def _clash(
        self,
        base: str,
        wanted: Sequence[Link],
        stopped: Stopped,
        policy: Policy,
        key: str | None,
        held: Sequence[str],
    ) -> Clash:
        """Find those that a link cannot be merged with; if no single one can be named, all before it are."""
        number = next(n for n, each in enumerate(wanted) if each.id == stopped.id)
        before, last = wanted[:number], wanted[number]
        alone = self._extend(base, [last], policy, key, "", held).stopped if before else stopped
        if alone is not None:
            return Clash(last.id, (), alone.conflict)
        clashing = overlap.between(self.project, base, [(last.tip, each.tip) for each in before])
        named = tuple(each.id for each in before if (last.tip, each.tip) in clashing)
        against = named or tuple(each.id for each in before)
        return Clash(last.id, against, stopped.conflict)
