"""Beginning: a train begins on main as it is, after what was left half done has been taken up."""

from __future__ import annotations

from dataclasses import replace

from covey.app import train
from covey.app.changes import step
from covey.app.verbs import Call
from covey.core import merges
from covey.core.merges import State
from covey.core.queue import standing
from covey.core.queue.standing import Standing
from covey.core.sessions import COVEY
from covey.errors import Refused
from covey.git import candidates, landing
from covey.loops import acting, bringing
from covey.loops.crew import Crew, Journey, lose_all, settings_of, standing_now
from covey.loops.main_line import Line
from covey.store import rows


async def recover(crew: Crew) -> bool:
    """Take up what was left half done, and say whether anything wants to land; if not, no train is needed."""
    crew.journey = None
    await crew.testing.stop_all()
    if (await crew.desk.read(standing_now))[2]:
        crew.is_tidy = False
        return True
    if not crew.is_tidy:
        await clear_up(crew)
        crew.is_tidy = True
    await bringing.push(crew)
    await crew.line.tidy()
    await acting.put_away(crew)
    return False


async def clear_up(crew: Crew) -> None:
    """End what a daemon before us, or a train that failed, has left half done."""
    await crew.desk.beside(lambda: landing.recover(crew.desk.project))
    await crew.gates.recover()
    if await crew.desk.read(lambda call: bool(call.tx.running_gates())):
        await crew.desk.write(lambda call: lose_all(call, "it was cut short", crew.testing.tries))
    crew.testing.unwritten = False


async def begin(crew: Crew) -> Journey:
    """Begin a train on main as it is; what was under way is tested again."""
    await clear_up(crew)
    await crew.line.settle()
    line = await crew.line.look() or await crew.line.look()
    if line is None:
        raise Refused("What waits for main changes all the time.")
    config = crew.config
    settings = settings_of(config)
    base = await newest(crew, line)
    if not crew.heard.begun:
        fleet = await crew.desk.read(lambda call: call.tx.fleet())
        crew.heard = replace(crew.heard, fleet_paused=fleet.paused)
    known = crew.heard.train.rate if crew.heard.begun else None
    slots = crew.gates.slots()
    is_single = bool(crew.suspects)
    forgives = crew.halted_under not in (None, config.merge)
    crew.halted_under = None if forgives else crew.halted_under

    # Where main moves all the time, trains begin all the time: what is written of that must not grow with the queue.
    goes_on = crew.heard.begun and crew.begun_under == settings
    crew.begun_under = settings

    def write(call: Call) -> tuple[int, Standing]:
        proven = not settings.checks or call.tx.has_passed(base, settings.checks)
        rate = train.learned(call) if known is None else known
        number = call.tx.next_seq
        began = standing.Began(
            strategy="serial" if is_single else settings.strategy,
            slots=slots,
            base=base,
            proven=proven,
            rate=rate,
            forgives=forgives or _are_other_checks(call, settings.checks),
        )
        stands = train.put(call, began)
        lose_all(call, "the train began anew", crew.testing.tries)
        for merge in () if goes_on else call.tx.open_merges():
            if merge.state is State.TESTING:
                step(call, merge, merges.Requeued("its test was cut short"), COVEY)
        return number, stands

    number, stands = await crew.desk.write(write)
    if stands.halted is None and crew.testing.broken is None:
        crew.desk.app.house.broken_gate = False
    return Journey(number, settings, line.head, {0: base}, is_single=is_single)


async def newest(crew: Crew, line: Line) -> str:
    """Return where the train begins: what the remote has beyond us lands, tested, with the first that lands."""
    config = crew.config

    def look() -> str:
        is_ours = line.head.__eq__  # the ref of what landed may be another's since it was looked at
        newest = crew.desk.worktrees.newest_main(config.target, config.project.remote, is_ours)
        return newest if candidates.is_ancestor(crew.desk.project, line.head, newest) else line.head

    return await crew.desk.beside(look)


def _are_other_checks(call: Call, checks: str) -> bool:
    """Say whether the gates that main failed ran other checks than those of now."""
    failed = (call.tx.get(rows.GATES, gate) for gate in call.tx.standing().gates)
    return any(gate is not None and gate.checks != checks for gate in failed)
