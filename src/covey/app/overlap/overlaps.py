"""The overlaps of open branches: who is told of them, which files are hot, and the verb that lists them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from covey.app.context import Call, find
from covey.app.fleet.sessions import alert
from covey.app.leases import write_check
from covey.app.people.mail import tell
from covey.app.shapes.forms import Answered, Asked, TaskId, completed, fields_of
from covey.app.verbs import verb
from covey.core import overlaps
from covey.core.board.tasks import Status, Task
from covey.core.figures import span
from covey.core.fleet.sessions import COVEY
from covey.core.leases.write_policy import Write
from covey.core.overlaps import MAIN, Collision, HotFile, Meeting, News, Overlap
from covey.core.people.alerts import AlertKind
from covey.core.people.rights import SHARED
from covey.core.quotes import names as named_paths
from covey.store.engine.rows import decode_payload
from covey.values import dataclass

_TOLD = (Status.DOING, Status.REVIEW, Status.MERGING)


class ListOverlaps(Asked, frozen=True, kw_only=True):
    """Which overlaps: those of one task, or all."""

    task: TaskId | None = None


@completed(fields_of(Overlap, "gone"))
class OverlapRow(Answered, frozen=True, kw_only=True):
    """Two open tasks whose branches overlap, with their titles and who is at work on them; `other` may be main."""

    id: str
    one_title: str | None
    one_session: str | None
    other_title: str | None
    other_session: str | None


@completed(fields_of(HotFile, "cooled"))
class HotFileRow(Answered, frozen=True, kw_only=True):
    """A file at which tasks collide again and again: how often lately, since when it is hot, and the last time."""

    path: str


class Overlaps(Struct, frozen=True, kw_only=True):
    """The open branches that overlap, and the files that are hot."""

    overlaps: list[OverlapRow]
    hot: list[HotFileRow]


@verb("overlap.list", "GET /api/overlaps", ListOverlaps, Overlaps, may=SHARED)
def list_overlaps(call: Call, asked: ListOverlaps) -> Overlaps:
    """List the open branches that overlap, the closest first, and the files that are hot."""
    if asked.task is not None:
        find(call.tx, asked.task)
    found = [each for each in call.tx.open_overlaps() if asked.task in (None, each.one, each.other)]
    tasks = _tasks(call, {name for each in found for name in (each.one, each.other)})
    found.sort(key=lambda each: (each.level is not overlaps.OverlapLevel.CONFLICT, not each.level.is_close, each.id))
    hot = [HotFileRow.of(file) for file in hot_files(call) if file.cooled is None]
    return Overlaps(overlaps=[_row(each, tasks) for each in found], hot=hot)


def _row(overlap: Overlap, known: Mapping[str, Task]) -> OverlapRow:
    one, other = known.get(overlap.one), known.get(overlap.other)
    return OverlapRow.of(
        overlap,
        one_title=one.title if one else None,
        one_session=one.session if one else None,
        other_title=other.title if other else None,
        other_session=other.session if other else None,
    )


def hot_files(call: Call) -> list[HotFile]:
    """Return the files that are hot; one that nobody declared cool may be so by now."""
    quiet = call.context.config.overlap.cool_minutes * 60
    return [file for file in call.tx.hot_files() if overlaps.is_hot(file, call.tx.now, quiet)]


def _tasks(call: Call, names: Iterable[str]) -> dict[str, Task]:
    return call.tx.tasks_named(sorted({*names} - {MAIN}))


# What the radar needs


@dataclass(frozen=True)
class Seen:
    """The tasks that have a branch or overlap another, and the overlaps that there are, by their names."""

    tasks: dict[str, Task]
    overlaps: dict[str, Overlap]


@dataclass(frozen=True)
class Judged:
    """How two tasks, or a task and main, meet by now; if not at all, for some reason."""

    one: str
    other: str
    meeting: Meeting | None
    why: str | None = None


def seen(call: Call, branches: Collection[str]) -> Seen:
    """Return what the rows tell of branches, by the names of their tasks."""
    found = {each.id: each for each in call.tx.open_overlaps()}
    names = {*branches, *(name for each in found.values() for name in (each.one, each.other))}
    return Seen(_tasks(call, names), found)


def judged(call: Call, found: Sequence[Judged]) -> list[Collision]:
    """Write down how branches meet by now, tell their sessions what is news, and return where they collided."""
    told: dict[str, list[News]] = {}
    collisions: list[Collision] = []
    tasks = _tasks(call, {name for each in found for name in (each.one, each.other)})
    for each in found:
        before = call.tx.get(overlaps.Overlap, name := overlaps.name(each.one, each.other))
        event = overlaps.judge(before, each.meeting, each.one, each.other)
        if event is None:
            continue
        if isinstance(event, overlaps.Gone) and each.why is not None:
            event = overlaps.Gone(each.why)
        _put(call, name, before, event)
        collisions += [Collision(path, each.one, each.other, call.tx.now) for path in overlaps.collided(before, event)]
        files = overlaps.news(before, event)
        if files and not isinstance(event, overlaps.Gone):
            for mine, other in ((each.one, each.other), (each.other, each.one)):
                told.setdefault(mine, []).append(News(tasks.get(other), event.level, files))
    for name, news in told.items():
        _tell(call, tasks.get(name), news)
    return collisions


def _put(call: Call, name: str, before: Overlap | None, event: overlaps.PairEvent) -> None:
    if before is None:
        assert isinstance(event, overlaps.Found)
        after = overlaps.first(name, event, call.tx.now)
    else:
        after = overlaps.apply(before, event, call.tx.now)
    call.tx.record(COVEY, name, event, before, after)


def _tell(call: Call, task: Task | None, news: list[News]) -> None:
    """Tell the session of a task; of a conflict with main the queue tells who has handed in."""
    if task is None or task.session is None or task.status not in _TOLD:
        return
    if task.status is not Status.DOING:
        news = [each for each in news if each.other is not None]
    if news:
        tell(call, task.session, overlaps.text(task, news, call.context.config.target), task.id)


def is_news(call: Call, written: Mapping[str, Sequence[Write]]) -> bool:
    """Say whether there is something to note of what the branches of some tasks have written."""
    return any(
        write_check.is_news(call, task.session, task, written[task.id])
        for task in _tasks(call, written).values()
        if task.session is not None
    )


def wrote(call: Call, written: Mapping[str, Sequence[Write]]) -> None:
    """Note what new commits have written, and tell a session that wrote into what another holds."""
    for task in _tasks(call, written).values():
        if task.session is None:
            continue
        advice = write_check.noticed(call, task.session, task, written[task.id], "commit")
        if advice.deny is not None:
            tell(call, task.session, f"A commit of {task.id} holds what is another's.\n{advice.deny}", task.id)


# Hot files


def remembered(call: Call, since: float) -> tuple[list[Collision], dict[str, HotFile]]:
    """Return the collisions since a moment, as the log tells them, and the files that are or were hot."""
    found: list[Collision] = []
    for row in call.tx.overlaps_since(since):
        before: Overlap | None = None
        for event in call.tx.events(subject=row.id, kind="overlap."):
            payload = decode_payload(event.kind, event.data)
            if not isinstance(payload, overlaps.PairEvent):
                continue
            found += [Collision(path, row.one, row.other, event.time) for path in overlaps.collided(before, payload)]
            if isinstance(payload, overlaps.Found):
                before = overlaps.first(row.id, payload, event.time)
            elif before is not None:
                before = overlaps.apply(before, payload, event.time)
    found.sort(key=lambda each: each.at)
    settings = call.context.config.overlap
    counted = overlaps.count([], [each for each in found if each.at >= since], settings.hot_minutes * 60)
    return counted, {file.path: file for file in call.tx.hot_files(cooled=True)}


def heat(
    call: Call, known: Sequence[Collision], new: Sequence[Collision], files: Mapping[str, HotFile]
) -> tuple[list[Collision], dict[str, HotFile]]:
    """Write down which files have become hot by new collisions; return what counts from now on."""
    settings, now = call.context.config.overlap, call.tx.now
    within = settings.hot_minutes * 60
    counted = overlaps.count(known, new, within)
    recent = [each for each in (*known, *counted) if each.at > now - within]
    after = dict(files)
    hot = overlaps.hot(recent, now, within, settings.hot, files)
    heated: list[str] = []
    for path in sorted({each.path for each in counted} & hot.keys()):
        before = files.get(path)
        after[path] = _put_file(call, path, before, overlaps.Heated(hot[path]))
        if before is None or before.cooled is not None:
            heated.append(path)
    if heated:
        _alert(call, heated, [each for each in recent if each.path in {*heated}])
    return recent, after


def _alert(call: Call, paths: Sequence[str], collisions: Sequence[Collision]) -> None:
    """Raise one alert for all files that one look found to be hot: most often it is one quarrel."""
    settings = call.context.config.overlap
    names = named_paths(paths[: overlaps.MAX_NAMED_OVERLAPS])
    if len(paths) > overlaps.MAX_NAMED_OVERLAPS:
        names += f" and {len(paths) - overlaps.MAX_NAMED_OVERLAPS} more"
    are, them, they = ("is", "it", "it was") if len(paths) == 1 else ("are", "them", "they were")
    pairs = list(dict.fromkeys(f"{each.one} and {each.other}" for each in collisions))[-5:]
    within, quiet = span(settings.hot_minutes * 60), span(settings.cool_minutes * 60)
    times = "1 collision" if len(collisions) == 1 else f"{len(collisions)} collisions"
    message = (
        f"{names} {are} hot: {times} within {within} ({', '.join(pairs)})."
        f" Tasks on {them} start one after another until {they} quiet for {quiet}."
    )
    alert(call, AlertKind.HOT_FILE, message, None, None)


def cool(call: Call, files: Sequence[HotFile]) -> dict[str, HotFile]:
    """Write down that files have cooled, and return them."""
    return {file.path: _put_file(call, file.path, file, overlaps.Cooled()) for file in files}


def _put_file(call: Call, path: str, before: HotFile | None, event: overlaps.FileEvent) -> HotFile:
    return call.tx.record(COVEY, path, event, before, overlaps.heat(path, before, event, call.tx.now))
