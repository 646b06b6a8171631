"""Joining: what wants to land joins the train, on a line that has what its authors have built on."""

from __future__ import annotations

from dataclasses import replace

from covey.loops import acting, beginning, building, catching_up
from covey.loops.building import Clash
from covey.loops.crew import Anew, Crew, Journey, standing_now
from covey.loops.entering import Wishes
from covey.loops.main_line import Line


async def enter(crew: Crew, journey: Journey) -> None:
    """Let what wants to land join the train; what stood in doubt joins again, or goes back."""
    for merge in sorted(crew.heard.train.doubtful):
        await _look_at_doubtful(crew, journey, merge)
    wishes = await crew.entering.wishes(crew.heard.train.changes, crew.decided())
    if wishes.stuck:
        await crew.entering.note(wishes.stuck)
    if not wishes.fresh:
        return
    newest = await beginning.newest(crew, Line(journey.head, journey.head))
    if not await crew.line.is_in(newest, journey.base):
        raise Anew("the remote has moved on")
    alone = [wishes.only(wish.merge.id) for wish in wishes.fresh] if crew.suspects else [wishes]
    for each in alone:
        await _join(crew, journey, each)


async def _join(crew: Crew, journey: Journey, wishes: Wishes) -> None:
    """Let merges join that are looked at together."""
    crew.busy_with = tuple(wish.merge.id for wish in wishes.fresh)
    may_join = await _catch_up(crew, journey, wishes)
    if len(may_join.fresh) < len(wishes.fresh):
        crew.entering.look_again()
    if may_join.fresh:
        await crew.entering.enter(journey.base, may_join, crew.heard.known)
    crew.busy_with = ()


async def _catch_up(crew: Crew, journey: Journey, wishes: Wishes) -> Wishes:
    """Let an integration branch take what merges hold of main, as it is; return those that may join before that.

    What conflicts there or fails is left to the merges themselves: they join, and land or go back.
    """
    config, project, base = crew.config, crew.desk.project, journey.base
    if config.target == config.project.main:
        return wishes
    found = await crew.desk.beside(lambda: catching_up.behind(project, config, base, wishes.fresh, crew.vain))
    if found is None:
        return wishes
    line = await crew.line.look()
    if line is None or base != line.head:
        return wishes
    if line.main != line.head or (await crew.desk.read(standing_now))[1]:
        await crew.desk.write(lambda call: catching_up.note(call, config, found.wishes))
        return found.others(wishes)
    if crew.testing.running or crew.wanted or crew.todo:
        return replace(wishes, fresh=())  # what is under way ends first, and nothing more begins
    what = f"{config.project.main} {found.commit}"
    probe = crew.testing.take_alone(what, line.head)
    if probe is None:
        at = crew.desk.wall()
        built = await crew.desk.beside(lambda: catching_up.build(project, config, base, found.commit, at))
        if built is None:
            crew.vain.add(found.commit)
            return await _catch_up(crew, journey, wishes)
        crew.testing.begin_alone(what, line.head, built)
    if probe is None or not probe.is_over() or crew.testing.is_broken():
        return replace(wishes, fresh=())
    passed_by = probe.passed_by()
    if passed_by is None:
        crew.vain.add(found.commit)
        return await _catch_up(crew, journey, wishes)
    await crew.line.bring(line, probe.commit, passed_by)
    raise Anew(f"commits of {config.project.main} have landed")


async def _look_at_doubtful(crew: Crew, journey: Journey, merge: str) -> None:
    """See whether a merge that clashed with what has landed since merges with main after all."""
    if merge not in crew.heard.train.doubtful:
        return
    config = crew.config
    crew.busy_with = (merge,)
    links, landed = await crew.desk.read(lambda call: building.look(call, [merge]))
    built = await crew.desk.beside(lambda: crew.builder.build(journey.base, [links[merge]], config, "", landed))
    if isinstance(built, Clash):
        await acting.clashed(crew, journey, built)
    else:
        decided = crew.decided()
        wishes = await crew.entering.wishes({*crew.heard.train.changes, *decided}, decided, (merge,))
        await crew.entering.enter(journey.base, wishes.only(merge), crew.heard.known)
    crew.busy_with = ()
