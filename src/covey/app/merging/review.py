"""The verbs of a review: what the work for a task changes, several together, and what would conflict with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from covey.app.context import Call, find
from covey.app.shapes.forms import Nothing
from covey.app.shapes.merging.review import (
    Conflicts,
    DiffFile,
    DiffPart,
    MeetingRow,
    ReadDiff,
    ReadTogether,
    ReviewRow,
    TaskDiff,
    Together,
)
from covey.app.verbs import verb
from covey.core.board.tasks import Kind, Status, Task
from covey.core.merging.merges import OPEN, Merge, MergeState
from covey.core.overlaps import OverlapLevel
from covey.core.people.rights import SHARED
from covey.errors import Invalid, NotFound, Refused, Unavailable
from covey.git.identity import TASK_REFS, task_branch
from covey.values import dataclass

if TYPE_CHECKING:
    from covey.core.fleet.live import Size
    from covey.git.overlap.overlap import Contact
    from covey.git.project import Project
    from covey.git.review import Combined, Diff, FilePatch, Lines, Part, TaskWork

MAX_TASKS_TOGETHER = 30
"""Tasks that are put together at once."""
MAX_TASKS_LISTED = 1000
"""Tasks of each status that are listed."""
MAX_FILES_TOLD_APART = 50
"""How many of the files that several of them change are shown with who wrote which lines."""
MAX_TASKS_COMPARED = 200
"""Tasks at work with which one is compared."""


@dataclass(frozen=True)
class Sought:
    """Where the work for a task may be: in commits that landed, else at the first of some names that is there."""

    task: str
    branch: str
    names: tuple[str, ...] = ()
    landed: str | None = None
    onto: str | None = None


def where_work_is(call: Call, task: Task) -> Sought:
    """Return where to look for the work for a task."""
    merge = call.tx.last_merge(task.id)
    branch = task_branch(task.id) if merge is None else merge.branch
    if task.status is Status.DONE and task.commit is not None:
        onto = merge.onto if merge is not None and merge.landed == task.commit else None
        return Sought(task.id, branch, landed=task.commit, onto=onto)
    handed_in = [] if merge is None or merge.commit is None else [merge.commit]
    first = handed_in if merge is not None and merge.state in OPEN else []
    names = (*first, f"refs/heads/{branch}", *handed_in, f"{TASK_REFS}{task.id}")
    return Sought(task.id, branch, tuple(dict.fromkeys(names)))


def locate(project: Project, main: str | None, wanted: Sought) -> TaskWork | None:
    """Look for the work for a task; git takes its time."""
    from covey.git import review

    if wanted.landed is not None:
        return review.landed(project, wanted.onto, wanted.landed)
    return review.find(project, main, wanted.names, wanted.branch)


def main_of(project: Project, target: str) -> str | None:
    """Return the commit on which the next work lands."""
    from covey.git.overlap import overlap

    return overlap.tips(project, target).main


def repository(call: Call) -> Project:
    """Return where the commits are."""
    if call.context.repository is None:
        raise Unavailable("Nobody can look at commits here.")
    return call.context.repository


def _nothing_of(task: Task) -> NotFound:
    if task.kind is Kind.REPORT:
        return NotFound(
            f"{task.id} is a report: it changes no files.", hint=f"covey task show {task.id} has its result."
        )
    return NotFound(f"There is no work on {task.id} to look at yet.", hint="There is once something was committed.")


def _file(file: FilePatch, tasks: Sequence[str] = (), written: dict[str, list[Lines]] | None = None) -> DiffFile:
    return DiffFile.of(file, tasks=list(tasks), written=written or {})


# One task


@dataclass(frozen=True)
class _Seen:
    work: TaskWork | None
    diff: Diff | None = None
    working: bool = False


def _look(call: Call, asked: ReadDiff, id: str) -> Callable[[], _Seen] | None:
    task, project, target = call.tx.task(id), call.context.repository, call.context.config.target
    if task is None or project is None:
        return None
    wanted = where_work_is(call, task)

    def look() -> _Seen:
        from covey.git import review

        work = locate(project, main_of(project, target), wanted)
        if work is None:
            return _Seen(None)
        if asked.working and work.dirty and work.checkout is not None:
            with review.working(project, work.checkout) as (tree, env):
                return _Seen(work, _diff(project, work.base, tree, asked, env), working=True)
        return _Seen(work, _diff(project, work.base, work.tip, asked))

    return look


def _diff(
    project: Project, base: str, tip: str, asked: ReadDiff | ReadTogether, env: Mapping[str, str] | None = None
) -> Diff:
    from covey.git import review

    return review.diff(project, base, tip, path=asked.path, since=asked.since, context=asked.context, env=env)


@verb("task.diff", "GET /api/board/{id}/diff", ReadDiff, TaskDiff, may=SHARED, ahead=_look)
def show(call: Call, asked: ReadDiff, id: str) -> TaskDiff:
    """Show what the work for a task changes: what is handed in, else what is committed; of a done one what landed."""
    task = find(call.tx, id)
    repository(call)
    seen: _Seen = call.seen or _Seen(None)
    wanted, merge, work = where_work_is(call, task), call.tx.last_merge(task.id), seen.work
    return TaskDiff(
        task=task.id,
        branch=wanted.branch,
        merge=None if merge is None else merge.id,
        base=None if work is None else work.base,
        tip=None if work is None else work.tip,
        landed=wanted.landed is not None,
        dirty=work is not None and work.dirty,
        working=seen.working,
        files=[] if seen.diff is None else [_file(file) for file in seen.diff.files],
        plus=0 if seen.diff is None else seen.diff.plus,
        minus=0 if seen.diff is None else seen.diff.minus,
        more=0 if seen.diff is None else seen.diff.more,
    )


# All that can be looked at

_STATUSES = (Status.REVIEW, Status.MERGING, Status.DOING, Status.BLOCKED)


@dataclass(frozen=True)
class _SeenSizes:
    tips: dict[str, str]
    sizes: dict[str, Size]


def _under_way(call: Call) -> list[Task]:
    """Return the tasks whose work is written, waits or is on its way."""
    found = [call.tx.board(status=status, session=None, limit=MAX_TASKS_LISTED, after=None) for status in _STATUSES]
    return [task for tasks in found for task in tasks if task.kind is Kind.CHANGE]


def _look_at_sizes(call: Call, asked: Nothing) -> Callable[[], _SeenSizes] | None:
    project, target = call.context.repository, call.context.config.target
    if project is None:
        return None
    names, merges = [task.id for task in _under_way(call)], {merge.task: merge for merge in call.tx.open_merges()}

    def look() -> _SeenSizes:
        from covey.git import diffstat
        from covey.git.overlap import overlap

        tips = overlap.tips(project, target)
        handed_in = {name: merges[name].commit for name in names if name in merges}
        known = {name: tip for name in names if (tip := handed_in.get(name) or tips.branches.get(name)) is not None}
        return _SeenSizes(
            known, {} if tips.main is None else diffstat.sizes_of(project, tips.main, list(known.values()))
        )

    return look


@verb("review.list", "GET /api/review", Nothing, list[ReviewRow], may=SHARED, ahead=_look_at_sizes)
def list_work(call: Call, asked: Nothing) -> list[ReviewRow]:
    """List the work that waits for a review, is on its way to main or being written, with how much each changes."""
    repository(call)
    seen: _SeenSizes = call.seen or _SeenSizes({}, {})
    merges = {merge.task: merge for merge in call.tx.open_merges()}
    meets = _conflicts_by_task(call)
    return [_review_row(task, merges.get(task.id), seen, meets.get(task.id, [])) for task in _under_way(call)]


def _conflicts_by_task(call: Call) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in call.tx.open_overlaps(OverlapLevel.CONFLICT):
        for task, other in ((each.one, each.other), (each.other, each.one)):
            found.setdefault(task, []).append(other)
    return found


def _review_row(task: Task, merge: Merge | None, seen: _SeenSizes, conflicts: list[str]) -> ReviewRow:
    tip = seen.tips.get(task.id)
    size = seen.sizes.get(tip or "")
    return ReviewRow(
        task=task.id,
        merge=None if merge is None else merge.id,
        session=task.session if merge is None else merge.session,
        waits=merge is not None and merge.state is MergeState.REVIEW,
        tip=tip,
        plus=0 if size is None else size.plus,
        minus=0 if size is None else size.minus,
        files=0 if size is None else size.files,
        conflicts=conflicts,
    )


# Several tasks


@dataclass(frozen=True)
class _SeenTogether:
    combined: Combined
    diff: Diff
    written: dict[str, dict[str, list[Lines]]]
    """Which lines each task wrote, of the files that several of them change."""


def _look_together(call: Call, asked: ReadTogether) -> Callable[[], _SeenTogether] | None:
    project, target = call.context.repository, call.context.config.target
    found = [call.tx.task(name) for name in _names(asked)[: MAX_TASKS_TOGETHER + 1]]
    if project is None or None in found or len(found) > MAX_TASKS_TOGETHER:
        return None
    places = [where_work_is(call, task) for task in found if task is not None and task.status is not Status.DONE]

    def look() -> _SeenTogether:
        from covey.git import review

        main = main_of(project, target)
        if main is None:
            raise Refused(f"There is no branch {target} yet.", hint="Commit something there.")
        works = {each.task: locate(project, main, each) for each in places}
        tips = [(task, work.tip) for task, work in works.items() if work is not None]
        combined = review.combined(project, main, tips)
        shown = _diff(project, combined.base, combined.tip, asked)
        owners = {part.commit: part.task for part in combined.parts if part.commit is not None}
        touched = _touched(combined)
        several = [file.path for file in shown.files if len(_touching(file, touched)) > 1 and not file.binary]
        written = review.written(project, combined.base, combined.tip, several[:MAX_FILES_TOLD_APART], owners)
        return _SeenTogether(combined, shown, written)

    return look


def _touched(combined: Combined) -> dict[str, list[str]]:
    """Return the tasks that change each file."""
    touched: dict[str, list[str]] = {}
    for part in combined.parts:
        for path in part.files if not part.message else ():
            touched.setdefault(path, []).append(part.task)
    return touched


def _names(asked: ReadTogether) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in asked.tasks.split(",")))


@verb("diff.show", "GET /api/diff", ReadTogether, Together, may=SHARED, ahead=_look_together)
def together(call: Call, asked: ReadTogether) -> Together:
    """Show what main would be with the work of several tasks one after another in it, and which of them conflict."""
    if len(_names(asked)) > MAX_TASKS_TOGETHER:
        raise Invalid(f"At most {MAX_TASKS_TOGETHER} tasks are put together.")
    found = [find(call.tx, name) for name in _names(asked)]
    repository(call)
    seen: _SeenTogether | None = call.seen
    if seen is None:
        raise Unavailable("The work of these tasks could not be looked at.", hint="Try again.")
    parts = {part.task: part for part in seen.combined.parts}
    touched = _touched(seen.combined)
    return Together(
        tasks=[_part(task, parts) for task in found],
        base=seen.combined.base,
        tip=seen.combined.tip,
        files=[_file(file, _touching(file, touched), seen.written.get(file.path)) for file in seen.diff.files],
        plus=seen.diff.plus,
        minus=seen.diff.minus,
        more=seen.diff.more,
    )


def _part(task: Task, parts: Mapping[str, Part]) -> DiffPart:
    part = parts.get(task.id)
    return DiffPart(
        task=task.id,
        title=task.title,
        status=task.status,
        tip=None if part is None else part.tip,
        files=[] if part is None else list(part.files),
        conflicts=[] if part is None else list(part.conflicts),
        message="" if part is None else part.message,
    )


def _touching(file: FilePatch, touched: Mapping[str, list[str]]) -> list[str]:
    names = [*touched.get(file.path, ()), *touched.get(file.old_path or "", ())]
    return list(dict.fromkeys(names))


# Conflicts


@dataclass(frozen=True)
class _SeenMeetings:
    tip: str
    main: str
    with_main: Contact | None
    others: dict[str, Contact]


def _look_for_conflicts(call: Call, asked: Nothing, id: str) -> Callable[[], _SeenMeetings | None] | None:
    task, project, target = call.tx.task(id), call.context.repository, call.context.config.target
    if task is None or project is None or task.status is Status.DONE:
        return None
    wanted, commits = where_work_is(call, task), _open_work(call, task)

    def look() -> _SeenMeetings | None:
        from covey.git import review
        from covey.git.overlap import overlap

        tips = overlap.tips(project, target)
        work = None if tips.main is None else locate(project, tips.main, wanted)
        if work is None or tips.main is None:
            return None
        others = {name: commit or tips.branches.get(name) for name, commit in commits.items()}
        known = {name: tip for name, tip in others.items() if tip is not None}
        met = review.meetings(project, tips.main, work.tip, list(known.values()))
        contacts = {name: met[tip] for name, tip in known.items() if tip in met and tip != tips.main}
        return _SeenMeetings(work.tip, tips.main, met.get(tips.main), contacts)

    return look


def _open_work(call: Call, task: Task) -> dict[str, str | None]:
    """Return the other tasks whose work is under way, with the commit that each has handed in."""
    at_work = call.tx.board(status=Status.DOING, session=None, limit=MAX_TASKS_COMPARED, after=None)
    found: dict[str, str | None] = {each.id: None for each in at_work}
    found |= {merge.task: merge.commit for merge in call.tx.open_merges()}
    found.pop(task.id, None)
    return found


@verb("task.conflicts", "GET /api/board/{id}/conflicts", Nothing, Conflicts, may=SHARED, ahead=_look_for_conflicts)
def conflicts(call: Call, asked: Nothing, id: str) -> Conflicts:
    """Show what the work for a task would conflict with: main, what is in the queue, and what others work on."""
    task = find(call.tx, id)
    repository(call)
    if task.status is Status.DONE:
        raise Refused(f"{task.id} has landed already.", hint=f"covey task diff {task.id} shows what it brought.")
    seen: _SeenMeetings | None = call.seen
    if seen is None:
        raise _nothing_of(task)
    met = {name: contact for name, contact in seen.others.items() if contact.shared or contact.conflicts}
    found = call.tx.tasks_named(list(met))
    queued = {merge.task: merge for merge in call.tx.open_merges() if merge.task in met}
    others = [_meeting(found[name], queued.get(name), contact) for name, contact in met.items() if name in found]
    others.sort(key=lambda row: (not row.conflicts, not row.close, row.merge is None, row.task))
    return Conflicts(
        task=task.id,
        tip=seen.tip,
        main=seen.main,
        conflicts=[] if seen.with_main is None else list(seen.with_main.conflicts),
        others=others,
    )


def _meeting(task: Task, merge: Merge | None, contact: Contact) -> MeetingRow:
    return MeetingRow(
        task=task.id,
        title=task.title,
        status=task.status,
        session=task.session if merge is None else merge.session,
        merge=None if merge is None else merge.id,
        state=None if merge is None else merge.state,
        shared=list(contact.shared),
        close=list(contact.close),
        conflicts=list(contact.conflicts),
    )
