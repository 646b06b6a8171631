"""Building: the commits that the train wants to see tested, each link built once for all trees that share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from covey.app.costs import spent_by
from covey.app.verbs import Call
from covey.config import Config
from covey.core.merges import Merge
from covey.git import chains, clashes, signing
from covey.git.candidates import Conflict
from covey.git.chains import Link, Placed, Policy, Stopped
from covey.git.messages import Trailer
from covey.git.project import Project
from covey.store import rows

MOST = 20_000
"""Links that are remembered; one that was forgotten is built again."""
POLICIES: dict[str, Policy] = {"merge": "merge", "squash": "squash", "rebase": "rebase", "ff": "ff"}


@dataclass(frozen=True)
class Tree:
    """A chain of commits on a value of main, and the merges that its links are."""

    base: str
    links: tuple[Placed, ...]

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


def links(call: Call, merge_ids: Sequence[str]) -> dict[str, Link]:
    """Return what a chain needs to know of merges that have entered."""
    found = [merge for each in merge_ids if (merge := call.tx.get(rows.MERGES, each)) is not None]
    tasks = call.tx.tasks_named(merge.task for merge in found)
    costs = spent_by(call, "task", list(tasks))
    return {
        merge.id: link(merge, tasks[merge.task].title, costs[merge.task].cost if merge.task in costs else 0.0)
        for merge in found
    }


def link(merge: Merge, title: str, cost: float = 0.0) -> Link:
    """Return a merge as a link of a chain."""
    trailers: tuple[Trailer, ...] = (
        ("Covey-Task", merge.task),
        ("Covey-Session", merge.session),
        ("Covey-Merge", merge.id),
        *((("Covey-Cost", f"{cost:.4f}".rstrip("0").rstrip(".")),) if cost > 0 else ()),
    )
    author = (merge.session, f"{merge.session}@agents.local")
    return Link(id=merge.id, tip=merge.commit or "", message=title, author=author, trailers=trailers)


@dataclass
class Builder:
    """Builds trees, in whatever thread; nested ones share their first commits, so that one can land after the other."""

    project: Project
    wall: Callable[[], float]
    """Returns the time that commits bear."""
    _known: dict[tuple[str, str, str, str], Placed] = field(default_factory=dict)
    """Each link by the commit before it, its merge and tip, and the policy."""

    def build(self, base: str, wanted: Sequence[Link], config: Config, group: str) -> Tree | Clash:
        """Return the tree with these links on a base, or why there is none."""
        policy = POLICIES[config.merge.policy]
        placed: list[Placed] = []
        head = base
        for each in wanted:
            known = self._known.get((head, each.id, each.tip, policy))
            if known is None:
                break
            placed.append(known)
            head = known.commit
        rest = wanted[len(placed) :]
        if rest:
            chain = self._extend(head, rest, policy, group if len(wanted) > 1 else "")
            self._remember(chain.links, policy)
            if chain.stopped is not None:
                return self._clash(base, wanted, chain.stopped, policy)
            placed += chain.links
        return Tree(base, tuple(placed))

    def _extend(self, head: str, wanted: Sequence[Link], policy: Policy, group: str) -> chains.Chain:
        key = signing.key(self.project)
        return chains.extend(self.project, head, wanted, policy=policy, sign=key, group=group, at=self.wall())

    def _remember(self, links: Sequence[Placed], policy: str) -> None:
        if len(self._known) > MOST:
            self._known.clear()
        for each in links:
            self._known[each.before, each.id, each.tip, policy] = each

    def _clash(self, base: str, wanted: Sequence[Link], stopped: Stopped, policy: Policy) -> Clash:
        """Find those that a link cannot be merged with; if no single one can be named, all before it are."""
        number = next(n for n, each in enumerate(wanted) if each.id == stopped.id)
        before, last = wanted[:number], wanted[number]
        alone = self._extend(base, [last], policy, "").stopped if before else stopped
        if alone is not None:
            return Clash(last.id, (), alone.conflict)
        named = clashes.among(self.project, base, last.tip, [each.tip for each in before])
        against = tuple(each.id for each in before if each.tip in named) or tuple(each.id for each in before)
        return Clash(last.id, against, stopped.conflict)
