"""Refs that a session has no business with: put in order when a run begins and when it has ended, and told."""

from __future__ import annotations

from covey.app.context import Call
from covey.app.fleet.sessions import alert
from covey.core.fleet.runs import Run
from covey.core.people.alerts import AlertKind
from covey.errors import CoveyError
from covey.git import config_watch, refs
from covey.git.landing import main_restore
from covey.git.refs import Twisted
from covey.loops.runtime import Runtime

NAMED = 10
"""Refs that one alert names."""


async def keep(runtime: Runtime, run: Run, when: str) -> None:
    """Put refs in order, and tell the person what was, and at which run that was seen."""
    found = await runtime.in_git_thread(lambda: _put_in_order(runtime))

    def tell(call: Call) -> None:
        for kind, message in found:
            alert(call, kind, f"{message} That was seen when {run.id} on {run.task} {when}.", run.session, run.task)

    if found:
        await runtime.write(tell)


def _put_in_order(runtime: Runtime) -> list[tuple[AlertKind, str]]:
    """Put covey's own refs and the branch on which work lands in order, and return each alert that this is worth."""
    target = runtime.app.context.config.target
    found: list[tuple[AlertKind, str]] = []
    twisted = refs.untwist_all(runtime.project)
    if twisted:
        found.append((AlertKind.REFS_PUT_BACK, _told(twisted)))
    try:
        back = main_restore.look_after(runtime.project, target, runtime.seen.get(target))
    except CoveyError:
        back = None  # the queue says so when it looks
    if back is not None:
        found.append((AlertKind.MAIN_PUT_BACK, back.told()))
    unnoted = look_for_unnoted(runtime, target)
    if unnoted:
        found.append((AlertKind.MAIN_UNNOTED, unnoted))
    return found + _settings(runtime)


def look_for_unnoted(runtime: Runtime, branch: str) -> str:
    """Return what to tell if a branch is where its reflog does not say that anybody moved it; that is said once."""
    at = main_restore.moved_unnoted(runtime.project, branch, runtime.unnoted.get(branch))
    if at is None:
        return ""
    runtime.unnoted[branch] = at
    where = f"{branch} is at {at[:12]}, and its reflog does not say who moved it there, as git does"
    return f"{where}: somebody wrote its file. It is tested as it is; look whether you want it there."


def _settings(runtime: Runtime) -> list[tuple[AlertKind, str]]:
    before, runtime.programs = runtime.programs, config_watch.read(runtime.project)
    names = config_watch.changed(runtime.programs if before is None else before, runtime.programs)
    if not names:
        return []
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    said = f"Settings by which git runs programs, or reads elsewhere, were changed: {', '.join(names[:NAMED])}{more}."
    where = f"If that was not you, look into {runtime.project.common} before you run git there."
    return [(AlertKind.SETTINGS_CHANGED, f"{said} {where}")]


def _told(twisted: list[Twisted]) -> str:
    now = [f"is at {one.value[:12]} again" if one.value else "is removed" for one in twisted[:NAMED]]
    each = [f"{one.name} was {one.what} and {how}" for one, how in zip(twisted, now, strict=False)]
    more = f"; and {len(twisted) - NAMED} more" if len(twisted) > NAMED else ""
    return f"Refs that are covey's were no plain refs, and were put in order: {'; '.join(each)}{more}."
