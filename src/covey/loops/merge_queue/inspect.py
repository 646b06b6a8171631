"""Entering: what wants to land is looked at in git and joins the train, waits for a person, or goes back at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field, replace
from itertools import islice

from covey.app import sendback, train
from covey.app.changes import change, step
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.config import Config
from covey.core import globs, guarded, merges, tasks
from covey.core.merges import Merge, State
from covey.core.needs import is_met
from covey.core.queue import standing
from covey.core.queue.train import Reason
from covey.core.sent_back import Clash, Since
from covey.core.sessions import COVEY
from covey.core.tasks import Status, Task
from covey.core.tree_rules import Finding
from covey.errors import CoveyError
from covey.git import candidates, chains_read, clashes, incoming, meanwhile, reverts, signing, straight
from covey.git.candidates import Conflict
from covey.git.incoming import Inspector
from covey.git.project import Project
from covey.loops import building, tree
from covey.loops.desk import Desk
from covey.store import rows
from covey.values import dataclass

PATHS = 200
"""Paths of a merge that the train is told of."""
PAIRS = 1000
"""Pairs that are compared when merges join; a clash of others is seen when a tree cannot be built."""


@dataclass(frozen=True)
class Wish:
    """A merge that wants to join the train, with its task, and what git has to know of it."""

    merge: Merge
    task: Task
    needs: tuple[str, ...] = ()
    reverted: Merge | None = None
    earlier: tuple[str, ...] = ()
    """What was built of its task's work before; as it is, where branches land fast-forward: it may stand on that."""


@dataclass(frozen=True)
class Fit:
    """A merge that may join: its commit, what it changes, and the open merges that git cannot merge it with."""

    wish: Wish
    commit: str
    paths: tuple[str, ...] = ()
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unfit:
    """A merge that goes back to its author at once: in words, or because of a conflict."""

    wish: Wish
    cause: str = ""
    words: str = ""
    advice: tuple[str, ...] = ()
    clash: Clash | None = None
    since: Since | None = None


@dataclass(frozen=True)
class Protected:
    """A merge that only a person lets land, for this reason."""

    wish: Wish
    why: str


Look = Fit | Unfit | Protected
MEND = (
    "Find what is named above: git log --stat and git ls-tree -r HEAD show commits and entries.",
    "Take it out of every commit of yours: begin anew on main with git checkout -B BRANCH, and commit the good files.",
)
"""What the author of work does in which something is broken."""


@dataclass(frozen=True)
class Wishes:
    """What wants to join now, and what is in the train already."""

    fresh: tuple[Wish, ...]
    inside: tuple[Merge, ...]
    unwanted: tuple[str, ...]
    stuck: tuple[Wish, ...] = ()
    """What waits for a task that is not even handed in, and does not say so."""

    def only(self, merge: str) -> Wishes:
        """Return the wish of one merge alone."""
        return replace(self, fresh=tuple(wish for wish in self.fresh if wish.merge.id == merge))


@dataclass
class Entering:
    """Brings merges into the train."""

    desk: Desk
    _again: bool = False
    """A priority may have changed."""
    _inspector: Inspector = field(default_factory=Inspector)

    def look_again(self) -> None:
        """Look whether a merge that is in the train has another priority now."""
        self._again = True

    async def wishes(self, inside: Collection[str], ended: Collection[str], again: Collection[str] = ()) -> Wishes:
        """Return what wants to join.

        `inside` is what the train has, `ended` what it is about to be done with, `again` what shall join once more.
        """
        config = self.desk.app.house.config
        moved = self._again and not again
        self._again = self._again and not moved  # who asks for some looks at these alone
        return await self.desk.read(lambda call: _wishes(call, config, inside, ended, again, moved=moved))

    async def enter(self, base: str, wishes: Wishes, known: Collection[str]) -> None:
        """Let all join together that may, on a value of main; of those that are `known` only what is new is written."""
        config = self.desk.app.house.config
        at = self.desk.wall()
        looks = await self.desk.beside(lambda: _look(self.desk.project, config, base, wishes, at, self._inspector))
        await self.desk.write(lambda call: _write(call, looks, known))

    async def note(self, stuck: Sequence[Wish]) -> None:
        """Write that merges wait for tasks that have not landed."""

        def write(call: Call) -> None:
            for wish in stuck:
                _wait(call, wish)

        await self.desk.write(write)


def _wishes(
    call: Call,
    config: Config,
    inside: Collection[str],
    ended: Collection[str],
    again: Collection[str],
    *,
    moved: bool,
) -> Wishes:
    found: list[Wish] = []
    present: list[Merge] = []
    stuck: list[Wish] = []
    open_merges = call.tx.open_merges()
    for merge in open_merges:
        if merge.state not in (State.QUEUED, State.TESTING) or not (config.merge.check or merge.approved):
            continue
        task = call.tx.task(merge.task)
        if task is None:
            continue
        is_new = merge.id not in inside and merge.id not in ended
        is_moved = moved and merge.id in inside and merge.priority != task.priority
        if not (is_new or is_moved or merge.id in again):
            present.append(merge)
            continue
        needs = _needs(call, task, open_merges)
        if needs is None:
            stuck += [Wish(merge, task)] if merge.reason is None else []
            continue
        reverted = None if merge.reverts is None else call.tx.get(rows.MERGES, merge.reverts)
        found.append(Wish(merge, task, needs, reverted, tree.built_of(call, merge.task)))
    known = [merge for merge in present if merge.id in inside]
    unwanted = call.tx.unwanted(tree.UNWANTED)
    # Merged commits keep their names, and all below them: what a person took off main would come back with them.
    taken_off = building.values(call) if config.merge.policy == "merge" and found else ()
    return Wishes(tuple(found), tuple(known), (*unwanted, *taken_off), tuple(stuck))


def _write(call: Call, looks: Sequence[Look], known: Collection[str]) -> None:
    again = [look.wish.merge.id for look in looks if look.wish.merge.id in known and _is_as_before(call, look)]
    joined = [look.wish.merge.id for look in looks if look.wish.merge.id in again or _enter(call, look)]
    if joined:
        train.put(call, standing.Joined(tuple(joined), tuple(again)))


def _is_as_before(call: Call, look: Look) -> bool:
    """Say whether a merge joins just as it did when it last entered."""
    now = call.tx.get(rows.MERGES, look.wish.merge.id)
    event = _entered(call, look, now) if isinstance(look, Fit) and now is not None else None
    if now is None or event is None or now.state not in (State.QUEUED, State.TESTING):
        return False
    return merges.apply(now, event, call.tx.now) == now


def _entered(call: Call, look: Fit, now: Merge) -> merges.Entered | None:
    """Return what is written of a merge that joins."""
    task = call.tx.task(now.task)
    if task is None:
        return None
    made = None if look.commit == now.commit else look.commit
    return merges.Entered(
        priority=task.priority, needs=look.wish.needs, paths=look.paths, against=look.against, commit=made
    )


def _enter(call: Call, look: Look) -> bool:
    """Write what becomes of a merge, and say whether it joins the train."""
    wish = look.wish
    now, task = call.tx.get(rows.MERGES, wish.merge.id), call.tx.task(wish.merge.task)
    if now is None or task is None or now.state not in (State.QUEUED, State.TESTING):
        return False
    match look:
        case Fit() as fit:
            event = _entered(call, fit, now)
            if event is not None:
                step(call, now, event, COVEY)
            return event is not None
        case Unfit(_, cause, words, advice, clash, since):
            sendback.rejected(call, now, cause, words=words, advice=advice, clash=clash, since=since)
        case Protected(_, why):
            _hold(call, now, task, why)
    return False


def _protected(paths: tuple[str, ...], named: tuple[str, ...]) -> str:
    """Return why only a person lets a merge land."""
    why = f"It changes {', '.join(paths[:5])}, which only a person lets land"
    return f"{why}: the check names {', '.join(named[:5])}." if named else f"{why}."


def _wait(call: Call, wish: Wish) -> None:
    now = call.tx.get(rows.MERGES, wish.merge.id)
    if now is not None and now.state in (State.QUEUED, State.TESTING):
        needed = ", ".join(need.task for need in wish.task.needs)
        step(call, now, merges.Waits(f"It waits until what its task needs has landed: {needed}."), COVEY)


def _hold(call: Call, merge: Merge, task: Task, why: str) -> None:
    """Let a merge wait for a person after all."""
    step(call, merge, merges.Held(why), COVEY)
    if task.status is Status.MERGING:
        change(call, task, tasks.Held(why), COVEY)
    alert(call, "needs_review", f"{merge.task} waits for your review ({merge.id}): {why}", None, merge.task)


def _needs(call: Call, task: Task, open_merges: Iterable[Merge]) -> tuple[str, ...] | None:
    """Return the open merges that a task's work needs on main first; None if something is not even handed in."""
    found: list[str] = []
    for need in task.needs:
        needed = call.tx.task(need.task)
        if needed is None or is_met(needed.status, need.policy):
            continue
        merge = next((each for each in open_merges if each.task == need.task), None)
        if merge is None or merge.state is State.REVIEW:
            return None
        if merge.state is not State.PASSED:
            found.append(merge.id)
    return tuple(found)


# What git says


def _look(project: Project, config: Config, base: str, wishes: Wishes, at: float, inspector: Inspector) -> list[Look]:
    """Look at merges in git, all at once where that can be; none keeps another from being looked at."""
    resolved = _resolve(project, base, wishes.fresh)
    looks: list[Look] = []
    for wish in wishes.fresh:
        found = resolved.get(wish.merge.id) or _tip(project, config, base, wish, at)
        looks.append(Fit(wish, found) if isinstance(found, str) else found)
    looks = _inspect(project, base, looks, inspector)
    try:
        works, changed = _read(project, base, looks)
    except CoveyError:  # what one of them lacks must not keep the others out
        looks = [_whole(project, base, look) for look in looks]
        works, changed = _read(project, base, looks)
    named = _named(project, config, base, changed.values())
    looks = [
        _judge(config, base, look, works, changed[look.commit], wishes.unwanted, named[changed[look.commit]])
        if isinstance(look, Fit)
        else look
        for look in looks
    ]
    against = _meet(project, base, [look for look in looks if isinstance(look, Fit)], wishes.inside)
    return [replace(look, against=against[look.wish.merge.id]) if isinstance(look, Fit) else look for look in looks]


def _inspect(project: Project, base: str, looks: Sequence[Look], inspector: Inspector) -> list[Look]:
    """Send back what no tool can read, and let what is only odd wait for a person; nothing of it was merged yet."""
    tips = [look.commit for look in looks if isinstance(look, Fit)]
    findings = inspector.look(project, base, tips)
    return [_inspected(look, findings[look.commit]) if isinstance(look, Fit) else look for look in looks]


def _inspected(look: Fit, findings: Sequence[Finding]) -> Look:
    broken = incoming.broken(findings)
    if broken:
        return Unfit(look.wish, words=f"It cannot land as it is: {incoming.told(broken)}.", advice=MEND)
    odd = [each.what for each in findings if each.is_odd]
    if odd and not look.wish.merge.approved:
        return Protected(look.wish, f"Only a person lets this land: {incoming.told(odd)}.")
    return look


def _resolve(project: Project, base: str, wishes: Iterable[Wish]) -> dict[str, str]:
    """Return the commits that merges name, if git has all of them."""
    named = {wish.merge.id: wish.merge.commit for wish in wishes if wish.merge.commit is not None}
    try:
        return dict(zip(named, chains_read.resolve_all(project, base, list(named.values()))[1], strict=True))
    except CoveyError:
        return {}


def _read(
    project: Project, base: str, looks: Iterable[Look]
) -> tuple[dict[str, chains_read.Work], dict[str, tuple[str, ...]]]:
    """Return what those that may fit add to main, and what they change."""
    tips = list(dict.fromkeys(look.commit for look in looks if isinstance(look, Fit)))
    if not tips:
        return {}, {}
    works, graph = chains_read.works(project, base, tips)
    return works, _changed(project, base, works, graph)


def _whole(project: Project, base: str, look: Look) -> Look:
    """Send back what cannot be read to its end, such as a commit whose parent is not in this repository."""
    if not isinstance(look, Fit) or chains_read.is_whole(project, look.commit, base):
        return look
    return Unfit(look.wish, words=f"Git cannot read all of {look.commit[:12]} here, so nothing could be merged.")


def _changed(
    project: Project, base: str, works: dict[str, chains_read.Work], graph: dict[str, straight.Commit]
) -> dict[str, tuple[str, ...]]:
    """Return the paths that each tip changes since it left main."""
    forks = {tip: work.fork for tip, work in works.items()}
    pairs = {tip: (fork.tree, graph[tip].tree) for tip, fork in forks.items() if fork is not None}
    differ = chains_read.changes(project, pairs.values())
    found = {tip: tuple(sorted(candidates.readable(each.path) for each in differ[pair])) for tip, pair in pairs.items()}
    return found | _changed_since_several(project, base, [tip for tip, fork in forks.items() if fork is None])


def _changed_since_several(project: Project, base: str, tips: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return what tips change that left main more than once, or never."""
    try:
        return clashes.changed(project, base, tips)
    except CoveyError:  # one of them has a history of its own
        return {tip: tuple(candidates.changed_paths(project, base, tip)) for tip in tips}


def _named(
    project: Project, config: Config, base: str, changes: Iterable[tuple[str, ...]]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return for each set of changed paths those that the checks name."""
    changes = set(changes)
    if not config.merge.protect_check:
        return dict.fromkeys(changes, ())
    found = guarded.named(guarded.commands_of(config.merge))
    before = candidates.folders(project, base, sorted(found.targets)) if found.targets and changes else ()
    return {paths: guarded.touched(paths, found, before) for paths in changes}


def _judge(
    config: Config,
    base: str,
    fit: Fit,
    works: dict[str, chains_read.Work],
    paths: tuple[str, ...],
    unwanted: Collection[str],
    named: tuple[str, ...],
) -> Look:
    own = works[fit.commit].names
    taken_back = next((commit for commit in unwanted if commit in own - {fit.commit, *fit.wish.earlier}), None)
    if taken_back is not None:
        return Unfit(
            fit.wish,
            words=f"It is built on {taken_back[:12]}, which was rejected, dropped or taken off {config.target} after "
            "its author had begun.",
            advice=(f"git rebase --onto {base[:12]} {taken_back[:12]}    (that leaves it out)",),
        )
    if own and not paths:
        return Unfit(fit.wish, words="Its commits change nothing, so there is nothing to land.")
    touched = tuple(path for path in paths if path in named or globs.covered(path, config.merge.protected, ()))
    if touched and not fit.wish.merge.approved:
        return Protected(fit.wish, _protected(touched, named))
    return Fit(fit.wish, fit.commit, paths[:PATHS])


def _meet(project: Project, base: str, fits: Sequence[Fit], inside: Iterable[Merge]) -> dict[str, tuple[str, ...]]:
    """Return for each merge the open ones before it with which git cannot merge it, the nearest looked at first."""
    before = [(each.id, each.commit, frozenset(each.paths)) for each in inside if each.commit is not None]
    most = max(PAIRS // max(len(fits), 1), 1)
    met: dict[str, list[tuple[str, tuple[str, str]]]] = {}
    for fit in fits:
        own, paths = fit.wish.merge.id, frozenset(fit.paths)
        shared = (
            (merge, (fit.commit, commit))
            for merge, commit, theirs in reversed(before)
            if merge != own and not paths.isdisjoint(theirs)
        )
        met[own] = list(islice(shared, most))
        before.append((own, fit.commit, paths))
    clashing = clashes.between(project, base, [pair for pairs in met.values() for _, pair in pairs])
    return {own: tuple(merge for merge, pair in pairs if pair in clashing) for own, pairs in met.items()}


def _tip(project: Project, config: Config, base: str, wish: Wish, at: float) -> str | Unfit:
    """Return the commit that shall land."""
    merge = wish.merge
    if merge.reverts is not None and merge.commit is None:
        return _revert(project, config, base, wish, at)
    tip = candidates.resolve(project, merge.commit or f"refs/heads/{merge.branch}")
    if tip is None:
        what = f"commit {merge.commit}" if merge.commit else f"branch {merge.branch}"
        return Unfit(wish, words=f"There is no {what} in this repository, so nothing could be merged.")
    return tip


def _revert(project: Project, config: Config, base: str, wish: Wish, at: float) -> str | Unfit:
    """Make the commit that takes a merge out of main again, on the branch of its task."""
    merge, gone = wish.merge, wish.reverted
    if gone is None or gone.landed is None or gone.onto is None:
        return Unfit(wish, words=f"It is not known what {merge.reverts} brought to {config.target}.")
    trailers = (("Covey-Task", merge.task), ("Covey-Reverts", gone.id))
    try:
        made = reverts.revert(
            project,
            base,
            reverts.Brought(gone.onto, gone.landed),
            author=(merge.session, f"{merge.session}@agents.local"),
            trailers=trailers,
            sign=signing.key(project),
            at=at,
        )
    except CoveyError as error:
        return Unfit(wish, words=error.message)
    if isinstance(made, Conflict):
        return Unfit(
            wish,
            Reason.TEXT.value,
            advice=_by_hand(config, gone.landed, gone.onto),
            clash=Clash(made.files, made.message),
            since=meanwhile.since(project, gone.landed, base),
        )
    if made.empty:
        return made.base
    tree.put(project, f"refs/heads/{merge.branch}", made.commit)
    tree.keep(project, merge.task, made.commit)
    return made.commit


def _by_hand(config: Config, landed: str, onto: str) -> tuple[str, ...]:
    """Return how somebody takes out by hand what git alone could not."""
    return (
        f"git diff --binary {landed[:12]} {onto[:12]} | git apply --3way    (takes it out; marks where that conflicts)",
        "Resolve the conflicts: that work shall be out, and what came later keeps working.",
        *([f"{config.merge.check}    (the test that it must pass)"] if config.merge.check else []),
        "git add -A && git commit",
    )
