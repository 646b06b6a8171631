"""The watchdog: what the signs of a run say of it, and what is done about one that does not get on."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from covey.agents.agent import Agent
from covey.app import questions
from covey.app import runs as life
from covey.app.sessions import alert
from covey.app.verbs import Call
from covey.config import Config
from covey.core import watch
from covey.core.launches import Observation
from covey.core.pace import believed
from covey.core.questions import Question
from covey.core.runs import Ending, Run
from covey.core.sessions import Session, State
from covey.core.signals import Trouble
from covey.core.watch import Action, Patience, Signs, Verdict
from covey.loops.desk import Desk
from covey.loops.starts import Starts
from covey.loops.watches import Watched

SAMPLE_EVERY = 2.0
"""Seconds between two looks at what the processes of a run do."""
BUSY = 0.02
"""The part of a processor that is more than a program uses which only waits."""
WEIGH_EVERY = 10.0
DIALOG = 3.0
"""Seconds after which a dialog on the screen of a program with hooks is one that no hook asks about."""
ARRIVES = 60.0
LEFT = 3.0
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

    desk: Desk
    starts: Starts
    say: Say

    async def sample(self, run: Run, watched: Watched, at: float) -> None:
        """Look at what the processes of a run do, now and then."""
        if at - watched.sampled < SAMPLE_EVERY:
            return
        elapsed, watched.sampled = at - watched.sampled, at
        weigh = at - watched.weighed >= WEIGH_EVERY
        activity = await self.desk.near(lambda: self.desk.runner.activity(run.id, memory=weigh))
        if activity is None:
            return
        before = watched.activity
        if before is None or activity.cpu - before.cpu > BUSY * max(elapsed, SAMPLE_EVERY):
            watched.worked = at
        watched.activity = activity
        if weigh:
            watched.weighed, watched.memory = at, activity.memory
            self.starts.weighed(run.agent, activity.memory)

    async def judge(self, run: Run, session: Session, watched: Watched, agent: Agent | None, seen: Observation) -> None:
        """Judge how a run is, do what that asks for, and let its session be seen so."""
        config = self.desk.app.house.config
        asked = await self.desk.read(lambda call: questions.open_of(call, run.id))
        if watched.heard.compacted > watched.compacted:
            watched.compacted, watched.squeezed = watched.heard.compacted, False
        if watched.heard.repeats < watched.nudged:
            watched.nudged, watched.told = 0, False  # it went on to something else
        signs = self._signs(watched, agent, seen, asked)
        theirs = watch.in_hands(signs, session.attached or "a person") if run.person else None
        verdict = watched.verdict = theirs or watch.judge(signs, patience_of(config))
        if verdict.state in (State.PAUSED, State.NEEDS_YOU):
            watched.kept = signs.at
        if verdict.excused:
            watched.excused = signs.at
        if run.person:
            await self._see_person(run, watched)
            return
        acts = {
            Action.NUDGE: self._nudge,
            Action.COMPACT: self._compact,
            Action.RESTART: self._restart,
            Action.END: self._give_up,
            Action.FINISH: self._finish,
        }
        if verdict.action in acts:
            await acts[verdict.action](run, watched, agent, verdict)
        if verdict.state is not session.state or (verdict.until is not None and verdict.until != session.until):
            await self._show(run, verdict, by_screen=verdict.state is State.NEEDS_YOU and not asked)

    async def _see_person(self, run: Run, watched: Watched) -> None:
        """Give a conversation back when the person has left who took it over, in whatever way, or never came."""
        typist, at = self.desk.typist, self.desk.awake()
        if typist is None:
            return
        if await self.desk.near(lambda: typist.screens.is_used(run.id)):
            watched.used_at = at
        elif at - (watched.started + ARRIVES if watched.used_at is None else watched.used_at) > LEFT:
            await self.desk.write(lambda call: life.give_back(call, run.session))

    def _signs(self, watched: Watched, agent: Agent | None, seen: Observation, asked: list[Question]) -> Signs:
        heard, activity = watched.heard, watched.activity
        return Signs(
            at=self.desk.awake(),
            wall=self.desk.wall(),
            started=watched.started,
            speaks=agent is not None and agent.traits.speaks,
            said=heard.at,
            printed=watched.printed,
            worked=watched.worked,
            processes=activity.processes if activity else 1,
            connections=activity.connections if activity else 0,
            waits=heard.waits,
            calls=tuple(heard.calls.values()),
            repeats=heard.repeats,
            repeated=" ".join(heard.last_call) if heard.last_call else "",
            asks=asked[0].text if asked else self._dialog(watched),
            asked=self.desk.awake() - max(self.desk.wall() - asked[0].asked, 0.0) if asked else watched.dialog_at,
            limited=heard.limited,
            limited_at=watched.limited_at,
            put_off=heard.put_off,
            compacts=heard.compacts,
            context=heard.context,
            over=heard.is_over,
            held=seen.held,
            kept=watched.kept,
            excused=watched.excused,
            nudged=watched.nudged,
            told=watched.told,
            squeezed=watched.squeezed,
        )

    def _dialog(self, watched: Watched) -> str | None:
        """Return the dialog that only a screen shows: what a hook asks too is a question in a moment, or is over."""
        is_new = watched.hooked and self.desk.awake() - watched.dialog_at < DIALOG
        return None if is_new else watched.dialog

    async def _show(self, run: Run, verdict: Verdict, *, by_screen: bool) -> None:
        def write(call: Call) -> None:
            session = call.tx.session(run.session)
            now = call.tx.run(run.id)
            if session is None or now is None or now.outcome is not None or session.state is State.PAUSED:
                return
            life.show(call, run.session, verdict.state, verdict.evidence, verdict.until)
            if by_screen:
                message = f"{verdict.evidence} (covey session attach {run.session} lets you answer)"
                alert(call, "needs_you", f"{run.session}: {message}"[: life.EVIDENCE], run.session, run.task)

        await self.desk.write(write)

    async def _nudge(self, run: Run, watched: Watched, agent: Agent | None, verdict: Verdict) -> None:
        heard = watched.heard
        watched.nudged = heard.repeats
        known = heard.last_result is not None and heard.last_result[1] is not None
        text = NUDGE.format(times=heard.repeats, result=", with the same result" if known else "")
        watched.told = agent is not None and await self.say(run, agent, text)
        log.info("%s: %s", run.session, verdict.evidence)

    async def _compact(self, run: Run, watched: Watched, agent: Agent | None, verdict: Verdict) -> None:
        watched.squeezed = True
        if agent is not None and agent.traits.compact:
            await self.say(run, agent, agent.traits.compact)

    async def _restart(self, run: Run, watched: Watched, agent: Agent | None, verdict: Verdict) -> None:
        self.slow_down(run, Trouble.CONNECTION, verdict.grounds, None)
        await self._end(run, verdict, Ending(f"Stalled: {verdict.grounds}", again=True))

    async def _give_up(self, run: Run, watched: Watched, agent: Agent | None, verdict: Verdict) -> None:
        await self._end(run, verdict, Ending(f"Stalled: {verdict.rule}. {verdict.grounds}", fault=True))

    async def _finish(self, run: Run, watched: Watched, agent: Agent | None, verdict: Verdict) -> None:
        ending = Ending("It had said its last word, and did not end.", over=True)
        await self.desk.write(lambda call: life.ending(call, run, ending))

    async def _end(self, run: Run, verdict: Verdict, ending: Ending) -> None:
        # A model that does not answer stalls everybody: of that a person is told once.
        tells = not ending.again or self.starts.is_news(run.agent, "stalled")

        def write(call: Call) -> None:
            now = call.tx.run(run.id)
            if now is None or now.outcome is not None or now.ending is not None:
                return
            life.ending(call, run, ending)
            message = f"{run.session} is stalled on {run.task}: {verdict.evidence}"
            if tells:
                alert(call, "stalled", message[: life.EVIDENCE], run.session, run.task)

        await self.desk.write(write)

    def slow_down(self, run: Run, trouble: Trouble, what: str, until: float | None) -> None:
        """Let fewer of an agent start after a refusal or trouble of its model."""
        at, wall = self.desk.awake(), self.desk.wall()
        named = believed(until, wall)
        awake = None if named is None else at + named - wall
        self.starts.refused(run.agent, self.desk.running.get(run.agent, 1), trouble, what, at, awake)


def patience_of(config: Config) -> Patience:
    """Return how long the watchdog waits."""
    settings = config.watch
    return Patience(
        stalled=settings.stalled_minutes * 60, request=settings.request_minutes * 60, repeats=settings.repeats
    )
