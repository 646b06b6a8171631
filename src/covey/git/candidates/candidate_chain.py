"""Chains: what main would be with one branch after another in it, built from objects alone.

Links whose paths nobody else has touched are written without git, since it would merge them by taking each path from
the side that changed it; every other link is merged by git itself. Both give the same commits.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Literal

from covey.errors import ToolFailed
from covey.git import objects
from covey.git.candidates import chain_inputs as reading
from covey.git.candidates import commit_messages
from covey.git.candidates.candidates import (
    Author,
    Change,
    Conflict,
    Sides,
    Trees,
    commit_bytes,
    commit_tree,
    find_sides,
    folders_above,
    merge,
    merge_each,
)
from covey.git.candidates.chain_inputs import BranchCommits, Commit
from covey.git.candidates.commit_messages import Person, Trailer
from covey.git.identity import COVEY
from covey.git.objects import Writer
from covey.git.project import Project
from covey.git.tree_edits import Edits
from covey.values import dataclass

COST_TRAILER = "Covey-Cost"
Policy = Literal["merge", "squash", "rebase", "ff"]

ATTRIBUTES = b".gitattributes"


@dataclass(frozen=True, kw_only=True)
class Link:
    """One branch that wants to land: its last commit, what its commit on main will say, and who wrote it.

    Where the branch has commits of its own, a squashed commit is theirs who wrote most of them.
    """

    id: str
    tip: str
    message: str
    author: Person
    coauthors: tuple[Person, ...] = ()
    trailers: tuple[Trailer, ...] = ()


@dataclass(frozen=True)
class Placed:
    """Where a link is in a chain: the head before and after it, and the commits between, the oldest first."""

    id: str
    tip: str
    before: str
    commit: str
    commits: tuple[str, ...]
    note: str = ""

    @property
    def is_empty(self) -> bool:
        """Say whether the link adds nothing to what is before it."""
        return self.commit == self.before


@dataclass(frozen=True)
class Stopped:
    """The link that does not go together with those before it, and why."""

    id: str
    conflict: Conflict


@dataclass(frozen=True)
class Chain:
    """Commits on each other, one link after the other, up to the first that does not merge."""

    base: str
    links: tuple[Placed, ...]
    stopped: Stopped | None = None

    @property
    def head(self) -> str:
        """Return the last commit."""
        return self.links[-1].commit if self.links else self.base


def extend(
    project: Project,
    base: str,
    links: Sequence[Link],
    *,
    policy: Policy,
    sign: str | None = None,
    group: str = "",
    held: Sequence[str] = (),
    at: float | None = None,
    together: bool = True,
) -> Chain:
    """Put links one after another on `base`, up to the first that does not merge; no branch or checkout is touched.

    `sign` is the key from `signing.key`. `held` are tips whose work is in `base` under other names, as squashed ones
    are: a branch that stands on one of them brings only what it adds to it. With `at`, twice gives the same commits.
    Not `together`, git merges every link: slower, and the measure of what is written without it.
    """
    began, tips, known = reading.resolve_all(project, base, [link.tip for link in links], held)
    marks: tuple[Trailer, ...] = (("Covey-Group", group),) if group else ()
    marked = [replace(link, tip=tip, trailers=link.trailers + marks) for link, tip in zip(links, tips, strict=True)]
    builder = _Builder(project, began, marked, known, policy, sign, time.time() if at is None else at, together)
    try:
        return builder.build()
    except ToolFailed:
        # One odd commit must not keep the others out: git may take it, or says which it is.
        return replace(builder, together=False).build_what_is_whole()


@dataclass(frozen=True)
class _Step:
    """One commit that is to be written: what it changes, and what it says."""

    changes: list[Change]
    author: Author
    message: str
    second: str | None = None


@dataclass
class Touched:
    """The paths that one side of a merge has changed, in a form that tells quickly whether another comes near them."""

    paths: set[bytes] = field(default_factory=set)
    changed: set[bytes] = field(default_factory=set)
    """Those that were there before and are there still."""
    above: set[bytes] = field(default_factory=set)
    """The folders that the paths lie in."""
    gone_from: set[bytes] = field(default_factory=set)
    new_in: set[bytes] = field(default_factory=set)
    """The folders that files were taken from or put into, and those above them."""

    def add(self, changes: Iterable[Change]) -> Touched:
        """Take in more changes."""
        for change in changes:
            folders = list(folders_above(change.path))
            self.paths.add(change.path)
            self.above.update(folders)
            if change.old is not None and change.new is not None:
                self.changed.add(change.path)
            if change.new is None:
                self.gone_from.update(folders)
                if not folders:
                    self.gone_from.add(b"")
            if change.old is None:
                self.new_in.update(folders, (b"",))
        return self

    def is_apart_from(self, other: Touched) -> bool:
        """Say whether git merges the two by taking each path from the side that changed it, whatever its settings.

        It compares contents only where both changed a path, or one took it away that the other changed. What it does
        with folders that got another name needs files that went from a folder into which the other side put some.
        """
        return self.paths.isdisjoint(other.paths) and self.meets_only_in_files(other)

    def meets_only_in_files(self, other: Touched) -> bool:
        """Say whether git merges the two path by path: then what a third one does elsewhere changes nothing of it."""
        return (
            (self.paths & other.paths) <= (self.changed & other.changed)
            and self.paths.isdisjoint(other.above)
            and self.above.isdisjoint(other.paths)
            and self.gone_from.isdisjoint(other.new_in)
            and self.new_in.isdisjoint(other.gone_from)
        )


@dataclass
class _Builder:
    """A chain that is being built."""

    project: Project
    base: reading.Base
    links: Sequence[Link]
    held: Sequence[str]
    policy: Policy
    key: str | None
    at: float
    together: bool
    head: str = field(default="", init=False)
    placed: list[Placed] = field(default_factory=list, init=False)
    waiting: list[tuple[Link, list[_Step], str]] = field(default_factory=list, init=False)
    """Links that follow the head and are not written yet, each with its commits and a note."""
    touched: Touched = field(default_factory=Touched, init=False)
    """What the links so far have changed."""
    renamed: set[str] = field(default_factory=set, init=False)
    """The commits of what is held, and of links that add nothing: what these took back stays so."""
    taken: set[str] = field(default_factory=set, init=False)
    """The commits of the links so far, and of what is held, whatever became of them in the chain."""

    def build(self) -> Chain:
        self.head = self.base.commit
        tips = list(dict.fromkeys((*(link.tip for link in self.links), *self.held)))
        self.works, self.graph = reading.works(self.project, self.base.commit, tips) if self.links else ({}, {})
        self.renamed = {name for tip in self.held if self.links for name in self.works[tip].names}
        self.taken |= self.renamed
        self.diffs = reading.changes(self.project, self._pairs())
        self.mains = {
            fork.name: Touched().add(self.diffs[fork.tree, self.base.tree])
            for fork in (self.works[link.tip].fork for link in self.links)
            if fork is not None
        }
        self.alone = self._merge_alone()
        for number, link in enumerate(self.links):
            work = self.works[link.tip]
            conflict = self._place(link, work, is_last=number == len(self.links) - 1)
            if conflict is not None:
                self._flush()
                return Chain(self.base.commit, tuple(self.placed), Stopped(link.id, conflict))
            self.taken |= work.names
        self._flush()
        return Chain(self.base.commit, tuple(self.placed))

    def build_what_is_whole(self) -> Chain:
        """Build the chain up to the first link that git lacks an object of; that one is sent back as a conflict."""
        try:
            return self.build()
        except ToolFailed:
            whole = itertools.takewhile(
                lambda link: reading.is_whole(self.project, link.tip, self.base.commit), self.links
            )
            links = list(whole)
            if len(links) == len(self.links):
                raise
            first = replace(self, links=links).build()
            if first.stopped is not None:
                return first
            gone = Conflict((), "git cannot read it: objects of its commits are missing or broken.")
            return replace(first, stopped=Stopped(self.links[len(links)].id, gone))

    def _pairs(self) -> Iterable[Trees]:
        """Return the pairs of trees that the chain needs the difference of, as far as they are known now."""
        for work in (self.works[link.tip] for link in self.links):
            if work.fork is not None:
                yield work.fork.tree, self.base.tree
                yield work.fork.tree, self.graph[work.tip].tree
                if self._is_replayed(work.own):
                    yield from ((self._parent(commit).tree, commit.tree) for commit in work.own)

    def _is_replayed(self, commits: Sequence[Commit]) -> bool:
        """Say whether commits can follow the chain one by one: none of them is a merge, or the beginning of all."""
        single = all(len(commit.parents) == 1 and commit.parents[0] in self.graph for commit in commits)
        return self.policy in ("rebase", "ff") and single

    def _parent(self, commit: Commit) -> Commit:
        return self.graph[commit.parents[0]]

    def _place(self, link: Link, work: BranchCommits, *, is_last: bool) -> Conflict | None:
        if not work.own:
            self.waiting.append((link, [], ""))
            return None
        if self.policy == "ff" and not any(steps for _, steps, _ in self.waiting):
            self._flush()
            if self.head in work.names or any(fork.name == self.head for fork in work.forks):
                self._take_as_it_is(link, work)  # it stands on the head of the chain already
                return None
        planned = self._plan(link, work)
        if planned is not None:
            self.waiting.append((link, *planned))
            if not planned[0]:
                self.renamed |= work.names
            return None
        self._flush()
        return self._merge(link, work, is_last=is_last)

    def _take_as_it_is(self, link: Link, work: BranchCommits) -> None:
        before, self.head = self.head, link.tip
        pair = (self.graph[before].tree, self.graph[link.tip].tree)
        self.touched.add(self.diffs[pair] if pair in self.diffs else reading.changes(self.project, [pair])[pair])
        added = tuple(commit.name for commit in work.own if commit.name not in self.taken)
        self.placed.append(Placed(link.id, link.tip, before, self.head, added if self.head != before else ()))

    # Together

    def _plan(self, link: Link, work: BranchCommits) -> tuple[list[_Step], str] | None:
        """Return the commits of a link that nothing else comes near; None when git has to merge it."""
        if not self.together or self.key is not None or work.fork is None or not self.taken.isdisjoint(work.names):
            return None
        steps, note = self._steps(link, work)
        own = Touched()
        for step in steps:
            own.add(step.changes)
        if not own.is_apart_from(self.mains[work.fork.name]):
            if link.tip not in self.alone or ATTRIBUTES in self.touched.paths:
                return None
            changes = self.diffs[self.base.tree, self.alone[link.tip]]
            own.add(changes)
            steps = [replace(step, changes=changes) for step in steps if changes]
        if not own.is_apart_from(self.touched):
            return None
        for step in steps:
            self.touched.add(step.changes)
        return steps, note

    def _merge_alone(self) -> dict[str, str]:
        """Return the tree of main with each link alone in it that changed the same files as main did, and no more."""
        if not self.together or self.key is not None or self.policy not in ("merge", "squash"):
            return {}
        near = []
        for tip in dict.fromkeys(link.tip for link in self.links):
            fork = self.works[tip].fork
            if fork is not None:
                own, main = Touched().add(self.diffs[fork.tree, self.graph[tip].tree]), self.mains[fork.name]
                if own.meets_only_in_files(main) and not own.is_apart_from(main):
                    near.append(tip)
        alone = merge_each(self.project, self.base.commit, near) if len(near) > 1 else {}
        self.diffs |= reading.changes(self.project, [(self.base.tree, tree) for tree in alone.values()])
        return alone

    def _steps(self, link: Link, work: BranchCommits) -> tuple[list[_Step], str]:
        assert work.fork is not None
        if self._is_replayed(work.own):
            picked = [(commit, self.diffs[self._parent(commit).tree, commit.tree]) for commit in work.own]
            kept = [(commit, changes) for commit, changes in picked if changes]
            words = _replayed(link, [commit for commit, _ in kept])
            return [_Step(changes, *said) for (_, changes), said in zip(kept, words, strict=True)], ""
        changes = self.diffs[work.fork.tree, self.graph[work.tip].tree]
        author, message, note = self._said(link, work.own)
        second = link.tip if self.policy == "merge" else None
        return [_Step(changes, author, message, second)] if changes else [], note

    def _said(self, link: Link, commits: Sequence[Commit]) -> tuple[Author, str, str]:
        """Return who wrote the one commit of a link, its message, and what has to be said about it."""
        if self.policy == "merge":
            people = [(commit_messages.COAUTHOR, f"{name} <{email}>") for name, email in link.coauthors]
            message = commit_messages.with_trailers(link.message, (*people, *link.trailers))
            return Author(*link.author), message, ""
        note = "" if self.policy == "squash" else "It holds merges, so it became one commit."
        # One squashed commit names who wrote most of them, the first of equals, and everybody else beside.
        single = [commit for commit in commits if len(commit.parents) < 2]
        written = Counter((commit.author.name, commit.author.email) for commit in single)
        first = written.most_common(1)[0][0] if written else link.author
        others = [person for person in (*written, *link.coauthors) if person[1].casefold() != first[1].casefold()]
        told = [commit.message for commit in single]
        return Author(*first), commit_messages.squashed(link.message, told, others, first, link.trailers), note

    def _flush(self) -> None:
        """Write the commits of the links that wait."""
        waiting, self.waiting = self.waiting, []
        steps = [step for _, planned, _ in waiting for step in planned]
        made = iter(self._write(steps) if steps else ())
        for link, planned, note in waiting:
            before = self.head
            commits = tuple(itertools.islice(made, len(planned)))
            self.head = commits[-1] if commits else before
            self.placed.append(Placed(link.id, link.tip, before, self.head, commits, note))

    def _write(self, steps: Sequence[_Step]) -> list[str]:
        writer = Writer(self.project, len(self.head))
        (begun,) = objects.infos(self.project, [f"{self.head}^{{tree}}"])
        if begun is None:
            raise ToolFailed(f"git cannot read {self.head[:12]}.")
        edits = Edits(self.project, begun.name, writer)
        made: list[str] = []
        for step in steps:
            parents = [made[-1] if made else self.head, *([step.second] if step.second else [])]
            tree = edits.apply(step.changes)
            made.append(writer.write("commit", commit_bytes(tree, parents, step.message, step.author, self.at)))
        return made

    # One by one

    def _merge(self, link: Link, work: BranchCommits, *, is_last: bool) -> Conflict | None:
        """Let git merge a link into the head of the chain."""
        commits = [commit for commit in work.own if commit.name not in self.taken]
        sides = find_sides(self.project, self.head, link.tip)
        before, note = self.head, ""
        if commits and self._is_replayed(commits):
            made = self._replay(link, commits, sides.tree)
            if isinstance(made, Conflict):
                return made
            names, tree = made
        else:
            merged = merge(self.project, self._sharing(sides, work))
            if isinstance(merged, Conflict):
                return merged
            author, message, note = self._said(link, commits)
            parents = (self.head, link.tip) if self.policy == "merge" else (self.head,)
            names, tree = [], merged
            if merged != sides.tree:
                names = [self._commit(merged, parents, message, author)]
        if not names:
            self.renamed |= work.names
        self.head = names[-1] if names else before
        self.placed.append(Placed(link.id, link.tip, before, self.head, tuple(names), note if names else ""))
        if not is_last:
            self.touched.add(reading.changes(self.project, [(sides.tree, tree)])[sides.tree, tree])
        return None

    def _sharing(self, sides: Sides, work: BranchCommits) -> Sides:
        """Let git know of the commits that are in the chain already under other names."""
        shared = work.names & (self.renamed if self.policy == "merge" else self.taken)
        if not shared:
            return sides
        below = {parent for name in shared for parent in self.graph[name].parents}
        return replace(sides, base=self._scratch(sides.tree, (sides.base, *sorted(shared - below))))

    def _replay(self, link: Link, commits: Sequence[Commit], tree: str) -> tuple[list[str], str] | Conflict:
        """Put commits on the head one by one, each as what it changes of its parent; leave out what has no effect."""
        kept: list[tuple[Commit, str]] = []
        for commit in commits:
            # A commit with our tree on the parent of the one that is picked makes that parent the merge base.
            ours = self._scratch(tree, commit.parents)
            merged = merge(self.project, find_sides(self.project, ours, commit.name))
            if isinstance(merged, Conflict):
                return merged
            if merged != tree:
                kept.append((commit, merged))
            tree = merged
        names: list[str] = []
        words = _replayed(link, [commit for commit, _ in kept])
        for (_, each), (author, message) in zip(kept, words, strict=True):
            names.append(self._commit(each, (names[-1] if names else self.head,), message, author))
        return names, tree

    def _scratch(self, tree: str, parents: tuple[str, ...]) -> str:
        return commit_tree(self.project, tree, parents, "Scratch\n", Author(*COVEY), at=self.at)

    def _commit(self, tree: str, parents: tuple[str, ...], message: str, author: Author) -> str:
        return commit_tree(self.project, tree, parents, message, author, at=self.at, key=self.key)


def _replayed(link: Link, commits: Sequence[Commit]) -> list[tuple[Author, str]]:
    """Keep what commits say, but of where they came from only what we say; what they cost together, the last says."""
    each = [trailer for trailer in link.trailers if trailer[0] != COST_TRAILER]
    told = [each] * (len(commits) - 1) + [list(link.trailers)]
    return [
        (commit.author, commit_messages.with_ours(commit.message, own))
        for commit, own in zip(commits, told, strict=False)
    ]
