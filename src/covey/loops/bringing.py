"""Bringing: what landed goes to the remote, and what the remote has beyond that lands here, tested as it is."""

from __future__ import annotations

from covey.errors import CoveyError, Refused, Unavailable
from covey.git import candidates, incoming
from covey.loops.crew import Anew, Crew, standing_now
from covey.loops.main_line import Line


async def push(crew: Crew) -> None:
    """Push what landed; what the remote has beyond that lands here first, tested together with ours."""
    config = crew.config
    line = await crew.line.look() if config.merge.push else None
    if line is None:
        return
    if crew.pusher.behind is None:
        crew.pusher.begin(config.target, config.merge.push, line.main)
    elif line.main == line.head and not any((await crew.desk.read(standing_now))[:2]):
        await bring_in(crew, line, crew.pusher.behind)


async def bring_in(crew: Crew, line: Line, theirs: str) -> None:
    """Merge what the remote has, test it as it is, and land it; then the train begins anew on it."""
    config, project = crew.config, crew.desk.project
    fails = f"The gate fails with what {config.merge.push} has at {theirs[:12]}."
    what = f"{config.merge.push} {theirs}"
    probe = crew.testing.take_alone(what, line.head)
    if probe is None:
        # Nobody else waits for one more test of what fails, and the same tree is not tested without end.
        if crew.refused == (theirs, line.head) or (crew.refused[0] == theirs and not crew.is_idle()):
            await crew.pusher.cannot_take(fails)
            return
        message = f"Merge {config.target} of {config.merge.push}\n"
        author = ("covey", "covey@localhost")
        at = crew.desk.wall()

        def build() -> candidates.Candidate | candidates.Conflict:
            broken = incoming.broken(incoming.look(project, line.head, [theirs])[theirs])
            if broken:
                raise Refused(f"{incoming.told(broken)}.")
            return candidates.build(project, line.head, theirs, policy="merge", message=message, author=author, at=at)

        try:
            built = await crew.desk.beside(build)
        except CoveyError as error:
            await crew.pusher.cannot_take(
                f"What {config.merge.push} has at {theirs[:12]} cannot come in: {error.message}"
            )
            return
        if isinstance(built, candidates.Conflict):
            files = ", ".join(built.files[:5])
            await crew.pusher.cannot_take(f"{config.merge.push} has commits that conflict with ours in {files}.")
        else:
            crew.testing.begin_alone(what, line.head, built.commit)
        return
    if not probe.is_over():
        return
    passed_by = probe.passed_by()
    if passed_by is None:
        if not crew.testing.is_broken():
            crew.refused = (theirs, line.head)
        await crew.pusher.cannot_take(fails)
        return
    try:
        await crew.line.bring(line, probe.commit, passed_by)
    except Unavailable as waits:  # for files of the user's, which need not be in the way of what the queue has
        crew.testing.probe = probe
        await crew.pusher.cannot_take(waits.message)
        return
    crew.pusher.caught_up()
    raise Anew("the remote's commits have landed")
