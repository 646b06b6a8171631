"""Refs that a session has no business with: put in order when a run begins and when it has ended, and told."""

from __future__ import annotations

from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.core.runs import Run
from covey.errors import CoveyError
from covey.git import put_back, refs, settings_watch
from covey.git.refs import Twisted
from covey.loops.desk import Desk

NAMED = 10
"""Refs that one alert names."""


def keep(desk: Desk) -> tuple[tuple[str, str], ...]:
    """Put covey's own refs and the branch on which work lands in order, and return each alert that this is worth."""
    target = desk.app.house.config.target
    found: list[tuple[str, str]] = []
    twisted = refs.untwist_all(desk.project)
    if twisted:
        found.append(("refs_put_back", _told(twisted)))
    try:
        back = put_back.look_after(desk.project, target, desk.seen.get(target))
    except CoveyError:
        back = None  # the queue says so when it looks
    if back is not None:
        found.append(("main_put_back", back.told()))
    unnoted = look_for_unnoted(desk, target)
    if unnoted:
        found.append(("main_unnoted", unnoted))
    return (*found, *_settings(desk))


def look_for_unnoted(desk: Desk, branch: str) -> str:
    """Return what to tell if a branch is where its reflog does not say that anybody moved it; that is said once."""
    at = put_back.moved_unnoted(desk.project, branch, desk.unnoted.get(branch))
    if at is None:
        return ""
    desk.unnoted[branch] = at
    where = f"{branch} is at {at[:12]}, and its reflog does not say who moved it there, as git does"
    return f"{where}: somebody wrote its file. It is tested as it is; look whether you want it there."


def _settings(desk: Desk) -> list[tuple[str, str]]:
    before, desk.programs = desk.programs, settings_watch.read(desk.project)
    names = settings_watch.changed(desk.programs if before is None else before, desk.programs)
    if not names:
        return []
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    said = f"Settings by which git runs programs, or reads elsewhere, were changed: {', '.join(names[:NAMED])}{more}."
    where = f"If that was not you, look into {desk.project.common} before you run git there."
    return [("settings_changed", f"{said} {where}")]


def tell(call: Call, found: tuple[tuple[str, str], ...], run: Run, when: str) -> None:
    """Tell the person what was put in order, and at which run that was seen."""
    for kind, message in found:
        alert(call, kind, f"{message} That was seen when {run.id} on {run.task} {when}.", run.session, run.task)


def _told(twisted: list[Twisted]) -> str:
    each = [f"{one.name} was {one.what}{_again(one)}" for one in twisted[:NAMED]]
    more = f"; and {len(twisted) - NAMED} more" if len(twisted) > NAMED else ""
    return f"Refs that are covey's were no plain refs, and were put in order: {'; '.join(each)}{more}."


def _again(one: Twisted) -> str:
    return f" and is at {one.value[:12]} again" if one.value else " and is removed"
