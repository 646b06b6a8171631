"""The overlaps of open branches: who is told of them, which files are hot, and the verb that lists them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from covey.app import writes
from covey.app.mail import tell
from covey.app.sessions import alert
from covey.app.shapes.overlaps import HotFileRow, ListOverlaps, OverlapRow, Overlaps
from covey.app.tasks import find
from covey.app.verbs import Call, verb
from covey.core import overlaps
from covey.core.figures import span
from covey.core.force import Write
from covey.core.overlaps import MAIN, Collision, HotFile, Meeting, News, Overlap
from covey.core.quotes import names as named_paths
from covey.core.rights import SHARED
from covey.core.sessions import COVEY
from covey.core.tasks import Status, Task
from covey.store import rows
from covey.store.rows import decode_payload
from covey.values import dataclass

_TOLD = (Status.DOING, Status.REVIEW, Status.MERGING)


@verb("overlap.list", "GET /api/overlaps", ListOverlaps, Overlaps, may=SHARED)
def list_overlaps(call: Call, asked: ListOverlaps) -> Overlaps:
    """List the open branches that overlap, the closest first, and the files that are hot."""
    if asked.task is not None:
        find(call.tx, asked.task)
    found = [each for each in _open(call) if asked.task in (None, each.one, each.other)]
    tasks = _tasks(call, {name for each in found for name in (each.one, each.other)})
    found.sort(key=lambda each: (each.level is not overlaps.Level.CONFLICT, not each.level.is_close, each.id))
    hot = [HotFileRow.of(file) for file in hot_files(call) if file.cooled is None]
    return Overlaps(overlaps=[OverlapRow.of(each, tasks) for each in found], hot=hot)


def hot_files(call: Call) -> list[HotFile]:
    """Return the files that are hot; one that nobody declared cool may be so by now."""
    quiet = call.house.config.overlap.cool_minutes * 60
    found = call.tx.find(rows.HOT_FILES, "WHERE cooled IS NULL ORDER BY last DESC, path")
    return [file for file in found if overlaps.is_hot(file, call.tx.now, quiet)]


def _open(call: Call) -> list[Overlap]:
    return call.tx.find(rows.OVERLAPS, "WHERE gone IS NULL ORDER BY id")


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
    found = {each.id: each for each in _open(call)}
    names = {*branches, *(name for each in found.values() for name in (each.one, each.other))}
    return Seen(_tasks(call, names), found)


def judged(call: Call, found: Sequence[Judged]) -> list[Collision]:
    """Write down how branches meet by now, tell their sessions what is news, and return where they collided."""
    told: dict[str, list[News]] = {}
    collisions: list[Collision] = []
    tasks = _tasks(call, {name for each in found for name in (each.one, each.other)})
    for each in found:
        before = call.tx.get(rows.OVERLAPS, name := overlaps.name(each.one, each.other))
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
        call.tx.insert(rows.OVERLAPS, after)
    else:
        after = overlaps.apply(before, event, call.tx.now)
        call.tx.update(rows.OVERLAPS, before, after)
    call.tx.append(COVEY, name, event, after)


def _tell(call: Call, task: Task | None, news: list[News]) -> None:
    """Tell the session of a task; of a conflict with main the queue tells who has handed in."""
    if task is None or task.session is None or task.status not in _TOLD:
        return
    if task.status is not Status.DOING:
        news = [each for each in news if each.other is not None]
    if news:
        tell(call, task.session, overlaps.text(task, news, call.house.config.target), task.id)


def is_news(call: Call, written: Mapping[str, Sequence[Write]]) -> bool:
    """Say whether there is something to note of what the branches of some tasks have written."""
    return any(
        writes.is_news(call, task.session, task, written[task.id])
        for task in _tasks(call, written).values()
        if task.session is not None
    )


def wrote(call: Call, written: Mapping[str, Sequence[Write]]) -> None:
    """Note what new commits have written, and tell a session that wrote into what another holds."""
    for task in _tasks(call, written).values():
        if task.session is None:
            continue
        advice = writes.noticed(call, task.session, task, written[task.id], "commit")
        if advice.deny is not None:
            tell(call, task.session, f"A commit of {task.id} holds what is another's.\n{advice.deny}", task.id)


# Hot files


def remembered(call: Call, since: float) -> tuple[list[Collision], dict[str, HotFile]]:
    """Return the collisions since a moment, as the log tells them, and the files that are or were hot."""
    found: list[Collision] = []
    for row in call.tx.find(rows.OVERLAPS, "WHERE changed >= ?", (since,)):
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
    settings = call.house.config.overlap
    counted = overlaps.count([], [each for each in found if each.at >= since], settings.hot_minutes * 60)
    return counted, {file.path: file for file in call.tx.find(rows.HOT_FILES, "")}


def heat(
    call: Call, known: Sequence[Collision], new: Sequence[Collision], files: Mapping[str, HotFile]
) -> tuple[list[Collision], dict[str, HotFile]]:
    """Write down which files have become hot by new collisions; return what counts from now on."""
    settings, now = call.house.config.overlap, call.tx.now
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
    settings = call.house.config.overlap
    names = named_paths(paths[: overlaps.NAMED])
    if len(paths) > overlaps.NAMED:
        names += f" and {len(paths) - overlaps.NAMED} more"
    are, them, they = ("is", "it", "it was") if len(paths) == 1 else ("are", "them", "they were")
    pairs = list(dict.fromkeys(f"{each.one} and {each.other}" for each in collisions))[-5:]
    within, quiet = span(settings.hot_minutes * 60), span(settings.cool_minutes * 60)
    times = "1 collision" if len(collisions) == 1 else f"{len(collisions)} collisions"
    message = (
        f"{names} {are} hot: {times} within {within} ({', '.join(pairs)})."
        f" Tasks on {them} start one after another until {they} quiet for {quiet}."
    )
    alert(call, "hot_file", message, None, None)


def cool(call: Call, files: Sequence[HotFile]) -> dict[str, HotFile]:
    """Write down that files have cooled, and return them."""
    return {file.path: _put_file(call, file.path, file, overlaps.Cooled()) for file in files}


def _put_file(call: Call, path: str, before: HotFile | None, event: overlaps.FileEvent) -> HotFile:
    after = overlaps.heat(path, before, event, call.tx.now)
    if before is None:
        call.tx.insert(rows.HOT_FILES, after)
    else:
        call.tx.update(rows.HOT_FILES, before, after)
    call.tx.append(COVEY, path, event, after)
    return after
