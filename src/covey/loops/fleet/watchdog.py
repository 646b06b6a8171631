"""The watchdog: what the signs of a run say of it, and what is done about one that does not get on."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from covey.agents.agent import Agent, traits_of
from covey.app.context import Call
from covey.app.fleet import runs as life
from covey.app.fleet.sessions import alert
from covey.core.fleet import watchdog
from covey.core.fleet.launches import Observation
from covey.core.fleet.runs import Ending, Run
from covey.core.fleet.sessions import Session, SessionState
from covey.core.fleet.signals import Trouble
from covey.core.fleet.start_limits import believed
from covey.core.fleet.watchdog import Patience, Remedy, Verdict
from covey.core.people.alerts import AlertKind
from covey.core.people.questions import Question
from covey.loops.fleet.fleet_memory import Watched
from covey.loops.fleet.pacing import Starts
from covey.loops.runtime import Runtime

SAMPLE_EVERY_S = 2.0
"""Seconds between two looks at what the processes of a run do."""
BUSY = 0.02
"""The part of a processor that is more than a program uses which only waits."""
WEIGH_EVERY_S = 10.0
DIALOG_AFTER_S = 3.0
"""Seconds after which a dialog on the screen of a program with hooks is one that no hook asks about."""
ARRIVES_WITHIN_S = 60.0
LEFT_AFTER_S = 3.0
"""Seconds that a person has to come to a terminal, and after which one who left it does not come back."""
NUDGE = (
    "covey notices that you have done the same thing {times} times in a row{result}."
    " Step back: say what you expected, look at what really happened, and try another way."
    ' If you cannot go on without a person, run: covey ask "your question"'
)

log = logging.getLogger("covey.watch")

Say = Callable[[Run, Agent, str], Awaitable[bool]]
"""Tells a run something while it works, and answers whether it listens."""


@dataclass
class Watchdog:
    """Judges runs that are alive, and acts on it."""

    runtime: Runtime
    starts: Starts
    say: Say

    async def sample(self, run: Run, watched: Watched, at: float) -> None:
        """Look at what the processes of a run do, now and then."""
        if at - watched.sampled < SAMPLE_EVERY_S:
            return
        elapsed, watched.sampled = at - watched.sampled, at
        weigh = at - watched.weighed >= WEIGH_EVERY_S
        activity = await self.runtime.in_run_thread(lambda: self.runtime.runner.activity(run.id, memory=weigh))
        if activity is None:
            return
        before = watched.activity
        if before is None or activity.cpu - before.cpu > BUSY * max(elapsed, SAMPLE_EVERY_S):
            watched.worked = at
        watched.activity = activity
        if weigh:
            watched.weighed, watched.memory = at, activity.memory
            self.starts.weighed(run.agent, activity.memory)

    async def judge(self, run: Run, session: Session, watched: Watched, agent: Agent | None, seen: Observation) -> None:
        """Judge how a run is, do what that asks for, and let its session be seen so."""
        config = self.runtime.app.context.config
        asked = await self.runtime.read(lambda call: call.tx.open_questions(run.id))
        if watched.heard.compacted > watched.compacted:
            watched.compacted, watched.squeezed = watched.heard.compacted, False
        if watched.heard.repeats < watched.nudged:
            watched.nudged, watched.told = 0, False  # it went on to something else
        self._see(watched, agent, seen, asked)
        theirs = watchdog.in_hands(watched, session.attached or "a person") if run.person else None
        stalled, request = config.watch.stalled_minutes * 60, config.watch.request_minutes * 60
        patience = Patience(stalled=stalled, request=request, repeats=config.watch.repeats)
        verdict = watched.verdict = theirs or watchdog.judge(watched, patience)
        if verdict.state in (SessionState.PAUSED, SessionState.NEEDS_YOU):
            watched.kept = watched.at
        if verdict.excused:
            watched.excused = watched.at
        if run.person:
            await self._see_person(run, watched)
            return
        await self._act(run, watched, agent, verdict)
        if verdict.state is not session.state or (verdict.until is not None and verdict.until != session.until):
            await self._show(run, verdict, by_screen=verdict.state is SessionState.NEEDS_YOU and not asked)

    async def _see_person(self, run: Run, watched: Watched) -> None:
        """Give a conversation back when the person has left who took it over, in whatever way, or never came."""
        typist, at = self.runtime.typist, self.runtime.awake()
        if typist is None:
            return
        if await self.runtime.in_run_thread(lambda: typist.screens.is_used(run.id)):
            watched.used_at = at
        elif at - (watched.started + ARRIVES_WITHIN_S if watched.used_at is None else watched.used_at) > LEFT_AFTER_S:
            await self.runtime.write(lambda call: life.give_back(call, run.session))

    def _see(self, watched: Watched, agent: Agent | None, seen: Observation, asked: list[Question]) -> None:
        """Bring the signs of a run up to this moment."""
        watched.at, watched.wall = self.runtime.awake(), self.runtime.wall()
        watched.speaks, watched.held = traits_of(agent).speaks, seen.held
        # Of a dialog that only a screen shows: what a hook asks too is a question in a moment, or is over.
        is_new = watched.hooked and watched.at - watched.dialog_at < DIALOG_AFTER_S
        watched.asks, watched.asked = None if is_new else watched.dialog, watched.dialog_at
        if asked:
            watched.asks, watched.asked = asked[0].text, watched.at - max(watched.wall - asked[0].asked, 0.0)

    async def _show(self, run: Run, verdict: Verdict, *, by_screen: bool) -> None:
        def write(call: Call) -> None:
            session = call.tx.session(run.session)
            now = call.tx.run(run.id)
            if session is None or now is None or now.outcome is not None or session.state is SessionState.PAUSED:
                return
            life.show(call, run.session, verdict.state, verdict.evidence, verdict.until)
            if by_screen:
                message = f"{verdict.evidence} (covey session attach {run.session} lets you answer)"
                alert(
                    call, AlertKind.NEEDS_YOU, f"{run.session}: {message}"[: life.EVIDENCE_CHARS], run.session, run.task
                )

        await self.runtime.write(write)

    async def _act(self, run: Run, watched: Watched, agent: Agent | None, verdict: Verdict) -> None:
        """Do what a verdict asks for."""
        match verdict.action:
            case Remedy.NUDGE:
                await self._nudge(run, watched, agent, verdict)
            case Remedy.COMPACT:
                watched.squeezed = True
                if agent is not None and agent.traits.compact:
                    await self.say(run, agent, agent.traits.compact)
            case Remedy.RESTART:
                self.slow_down(run, Trouble.CONNECTION, verdict.grounds, None)
                await self._end(run, verdict, Ending(f"Stalled: {verdict.grounds}", again=True, stalled=True))
            case Remedy.END:
                await self._end(run, verdict, Ending(f"Stalled: {verdict.rule}. {verdict.grounds}", fault=True))
            case Remedy.FINISH:
                ending = Ending("It had said its last word, and did not end.", over=True)
                await self.runtime.write(lambda call: life.ending(call, run, ending))

    async def _nudge(self, run: Run, watched: Watched, agent: Agent | None, verdict: Verdict) -> None:
        heard = watched.heard
        watched.nudged = heard.repeats
        known = heard.last_result is not None and heard.last_result[1] is not None
        text = NUDGE.format(times=heard.repeats, result=", with the same result" if known else "")
        watched.told = agent is not None and await self.say(run, agent, text)
        log.info("%s: %s", run.session, verdict.evidence)

    async def _end(self, run: Run, verdict: Verdict, ending: Ending) -> None:
        """Let a run end, unless that was decided before, for another reason."""
        # A model that does not answer stalls everybody: of that a person is told once.
        tells = not ending.again or self.starts.is_news(run.agent, "stalled")

        def write(call: Call) -> None:
            now = call.tx.run(run.id)
            if now is None or now.outcome is not None or now.ending is not None:
                return
            life.ending(call, run, ending)
            message = f"{run.session} is stalled on {run.task}: {verdict.evidence}"
            if tells:
                alert(call, AlertKind.STALLED, message[: life.EVIDENCE_CHARS], run.session, run.task)

        await self.runtime.write(write)

    def slow_down(self, run: Run, trouble: Trouble, what: str, until: float | None) -> float | None:
        """Let fewer of an agent start after a refusal or trouble of its model; return until when, if that counts."""
        at, wall = self.runtime.awake(), self.runtime.wall()
        named = believed(until, wall)
        awake = None if named is None else at + named - wall
        self.starts.refused(run.agent, self.runtime.running.get(run.agent, 1), trouble, what, at, awake)
        return named
