"""Looking after a run that is alive: what it says, asks, spends and needs; the watchdog judges it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial

from covey import files
from covey.agents.agent import Agent, Sight, Terminal, terminal_of
from covey.app.context import Call
from covey.app.costs import costs
from covey.app.fleet import runs as life
from covey.app.history import run_streams
from covey.app.history.run_streams import Output, Reader
from covey.app.history.transcript_entries import PROMPT
from covey.app.people import questions
from covey.core.costs.budgets import is_over, is_own
from covey.core.costs.spending import whole
from covey.core.figures import count, money
from covey.core.fleet.launches import Observation, Screen
from covey.core.fleet.prompts import answer_of
from covey.core.fleet.run_state import RunState
from covey.core.fleet.runs import Ending, Run
from covey.core.fleet.sessions import COVEY, Session
from covey.core.people.questions import Question, Withdrawn, reply_of
from covey.core.people.questions import QuestionState as Asked
from covey.errors import CoveyError, Refused
from covey.loops.fleet.fleet_memory import FleetMemory, Tail, Watched
from covey.loops.fleet.terminals import Typist
from covey.loops.fleet.watchdog import Watchdog
from covey.loops.mail_loop import Mailing
from covey.loops.runtime import Runtime

COUNT_EVERY_S = 30.0
"""Seconds between two times that spending is written down while a run works."""
JUDGE_EVERY_S = 0.5
SEEK_EVERY_S = 2.0
"""Seconds between two looks for more files in which a program writes what it spends."""
LEDGER_TIMEOUT_S = 20.0
"""Seconds after which such a file should have said something of a call that is over."""
BILL_EVERY_S = 1.0
"""Seconds between two times that a program is asked what it has cost."""
BILL_TIMEOUT_S = 5.0
"""Seconds in which it may answer before it is ended for what covey guesses."""
TYPE_EVERY_S = 0.3
LATE = "The person in charge answers what you asked.\n{answer}"
NEXT = " Its next call could pass that."

log = logging.getLogger("covey.watch")


@dataclass
class Attendant:
    """Looks after runs that are alive."""

    runtime: Runtime
    memory: FleetMemory

    def __post_init__(self) -> None:
        self.mailing = Mailing(self.runtime)
        self.watchdog = Watchdog(self.runtime, self.memory.starts, self.say)

    # Reading

    def source(self, run: Run, watched: Watched, agent: Agent | None) -> tuple[Output, Reader | None]:
        """Return where a run says what it does, and what understands it."""
        terminal = terminal_of(run, agent)
        if terminal is not None:
            journal = watched.journal
            return (lambda since: (b"", since) if journal is None else journal.read(since)), terminal.read
        return (lambda since: self.runtime.runner.output(run.id, since)), None if agent is None else agent.read

    def listen(self, run: Run, watched: Watched, agent: Agent | None, size: int) -> None:
        """Take in all that a run has said since; called beside the loop."""
        at = self.runtime.awake()
        if terminal_of(run, agent) is not None:
            watched.journal = watched.journal or run_streams.find_journal(self.runtime.project.run_folder(run.id))
            size = 0 if watched.journal is None else watched.journal.size()
        source, reader = self.source(run, watched, agent)
        self._read_ledger(run, watched, agent, at)  # first: what a call said is written before what it cost
        while watched.overheard:
            watched.heard.take(watched.overheard.pop(0), at)
        if size > watched.tail.read:
            watched.printed = at
        watched.hear(reader, watched.tail.follow(source, size), at)

    def hear_out(self, run: Run, watched: Watched, agent: Agent | None, size: int) -> None:
        """Take in all that a run has said which is no longer alive; called beside the loop."""
        at = self.runtime.awake()
        self.listen(run, watched, agent, size)
        watched.hear(self.source(run, watched, agent)[1], watched.tail.last(), at)
        watched.ledger_sought = -1e9  # by now the name of its conversation is known
        self._read_ledger(run, watched, agent, at)
        for _, tail in watched.ledger_parts.values():
            watched.hear(None if agent is None else agent.count, tail.last(), at)

    def _read_ledger(self, run: Run, watched: Watched, agent: Agent | None, at: float) -> None:
        """Take in what a program has written of its spending beside its output."""
        watched.ledger = watched.ledger or run_streams.find_ledger(self.runtime.project.run_folder(run.id))
        if watched.ledger is None or agent is None:
            return
        if not watched.ledger_parts or at - watched.ledger_sought >= SEEK_EVERY_S:
            watched.ledger_sought = at
            patterns = agent.ledger(watched.ledger.folder, watched.heard.conversation or run.conversation or "")
            for part in watched.ledger.parts(patterns):
                watched.ledger_parts.setdefault(part.path, (part, Tail()))
        for part, tail in watched.ledger_parts.values():
            watched.hear(agent.count, tail.follow(part.read, part.size()), at)

    # Attending

    def is_due(self, run: Run, seen: Observation, decided: list[Question]) -> bool:
        """Say whether a run has to be looked after now."""
        watched = self.memory.of(run)
        return bool(decided) or seen.size > watched.tail.read or self.runtime.awake() - watched.judged >= JUDGE_EVERY_S

    async def attend(self, run: Run, session: Session, seen: Observation, decided: list[Question]) -> None:
        """Do what a run that is alive needs now; `decided`: its questions of which it has not been told."""
        watched, agent = self.memory.of(run), self.runtime.agent(run.agent)
        heard, at = watched.heard, self.runtime.awake()
        drawn = terminal_of(run, agent) is not None
        is_due = at - watched.judged >= JUDGE_EVERY_S
        if drawn or is_due or seen.size > watched.tail.read:
            await self.runtime.in_run_thread(lambda: self.listen(run, watched, agent, seen.size))
            await self._pass_on(run, watched)
        if agent is not None and drawn and not run.person:
            await self._use_terminal(run, watched, agent)
        if heard.limits > watched.limits and heard.limited is not None:
            watched.limits, watched.limited_at = heard.limits, at
            self.watchdog.slow_down(run, heard.limited.trouble, heard.limited.what, heard.limited.until)
        if decided and agent is not None:
            await self.tell(run, watched, agent, decided)
        if agent is not None and not drawn:
            await self._ask_bill(run, watched, agent, at)
        if is_due:
            watched.judged = at
            await self.watchdog.sample(run, watched, at)
            await self.watchdog.judge(run, session, watched, agent, seen)
            await self._bring_mail(run, watched, agent, seen)
        said_all = heard.is_over and agent is not None and agent.traits.speaks and not run.person
        if said_all and not drawn and not watched.finished:  # one in a terminal is left at its prompt
            await self.runtime.in_run_thread(lambda: self.runtime.runner.finish(run.id))
            watched.finished = True

    async def _use_terminal(self, run: Run, watched: Watched, agent: Agent) -> None:
        """Type its prompt to a terminal program when it is ready for it, and let it end when it has said all."""
        terminal, typist, at = agent.terminal, self.runtime.typist, self.runtime.awake()
        if terminal is None or typist is None or at - watched.typed < TYPE_EVERY_S:
            return
        watched.typed = at
        watched.sight, screen = await self.runtime.in_run_thread(lambda: typist.see(run, terminal))
        _read_screen(watched, terminal, screen, at)
        prompts = not watched.prompted and not watched.heard.asked
        if watched.sight is not Sight.READY and not (prompts and watched.sight is Sight.TYPED):
            return
        if prompts:
            prompt = self.runtime.project.run_folder(run.id) / PROMPT
            text = await self.runtime.in_run_thread(lambda: files.read(prompt))
            watched.prompted = await self.runtime.in_run_thread(lambda: typist.enter(run, terminal, text.strip()))
            self.mailing.began(run, watched.heard)
            return
        note = self.runtime.project.run_folder(run.id) / run_streams.NOTE
        keeps_journal = watched.journal is not None or note.exists()
        if watched.heard.is_over or (watched.prompted and not keeps_journal):
            if self.mailing.is_awaited(run, watched.heard) or await self._type_mail(run, watched, terminal, typist):
                return
            if watched.heard.is_over:
                await self.runtime.in_run_thread(lambda: typist.enter(run, terminal, terminal.leave()))

    # Mail

    async def _bring_mail(self, run: Run, watched: Watched, agent: Agent | None, seen: Observation) -> None:
        """Note the mail that has reached a run, and tell it what is to wake it."""

        async def say(text: str) -> int | None:
            before = await self.runtime.in_run_thread(lambda: self.runtime.runner.look(run.id))
            if agent is None or not await self.say(run, agent, text):
                return None
            await self.runtime.in_run_thread(lambda: self.listen(run, watched, agent, before.size))
            await self._pass_on(run, watched)
            return before.size

        await self.mailing.attend(run, agent, watched.heard, seen, watched.journal_path, say)

    async def _type_mail(self, run: Run, watched: Watched, terminal: Terminal, typist: Typist) -> bool:
        """Type mail at an empty prompt, if no hook tells it there, and say whether that was done."""
        offer = await self.mailing.to_type(run, waking=watched.hooked)
        text = offer.text
        if text is None or await self.runtime.in_run_thread(lambda: typist.screens.is_used(run.id)):
            return False  # who is at the terminal may be about to type
        if not await self.runtime.in_run_thread(lambda: typist.enter(run, terminal, text)):
            return False
        await self.mailing.typed(run, watched.heard, offer.messages, watched.journal_path)
        return True

    async def _pass_on(self, run: Run, watched: Watched) -> None:
        """Write down what a run has let us know."""
        heard = watched.heard
        conversation = heard.conversation
        if conversation is not None and conversation != run.conversation:
            await self.runtime.write(lambda call: life.note_conversation(call, run, conversation))
        if heard.asks or heard.answered:
            await self._keep_questions(run, heard)
        await self.spend(run, watched)

    async def _keep_questions(self, run: Run, heard: RunState) -> None:
        asked = await self.runtime.read(lambda call: call.tx.find_questions(run=run.id))
        known = {one.asks: one for one in asked}
        new = {key: asks for key, asks in heard.asks.items() if key not in known}
        gone = [one for key, one in known.items() if key in heard.answered and one.state is Asked.OPEN]
        if not new and not gone:
            return
        minutes = self.runtime.app.context.config.watch.answer_minutes

        def write(call: Call) -> None:
            for key, asks in new.items():
                questions.ask(call, run.session, replace(asks, id=key), task=run.task, run=run.id, minutes=minutes)
            for one in gone:
                call.tx.advance(one, Withdrawn("It went on without an answer."), COVEY)

        await self.runtime.write(write)

    # Spending

    async def spend(self, run: Run, watched: Watched) -> None:
        """Work out what a run has spent, and write it down now and then."""
        bill, config = watched.heard.bill, self.runtime.app.context.config
        if watched.usual is None:
            watched.rates = await self.runtime.read(lambda call: call.tx.priced_by_model(run.agent, costs.LAST))
            watched.usual = await self.runtime.read(lambda call: costs.usual_call(call, run.agent))
        if not bill.calls and not bill.totals:
            return
        conversation = watched.heard.conversation or run.conversation
        if watched.before is None and any(total.whole for total in bill.totals.values()):
            watched.before = await self.runtime.read(lambda call: costs.before(call, run, conversation))
        said = bill.by_model(config.prices, watched.before or {}, run.model)
        watched.used = bill.by_model(config.prices, watched.before or {}, run.model, watched.rates)
        watched.guessed = said != watched.used
        watched.whole = bill.whole(watched.before or {}, run.model)
        watched.next_call = bill.largest_call(config.prices, run.model, watched.used or watched.rates)
        at = self.runtime.awake()
        if at - watched.counted >= COUNT_EVERY_S:
            watched.counted = at
            used, day, all_of_it = watched.used, self.runtime.today().name, watched.whole
            await self.runtime.write(lambda call: costs.count(call, run, used, day, whole=all_of_it))

    async def _ask_bill(self, run: Run, watched: Watched, agent: Agent, at: float) -> None:
        """Ask a program what it has cost, after a call that it has not said it of."""
        heard, typed = watched.heard, agent.bill()
        if typed is None or heard.is_over or heard.turns <= watched.billed or at - watched.bill_asked < BILL_EVERY_S:
            return
        watched.billed, watched.bill_asked = heard.turns, at
        await self._type(run, typed)

    def why_over(self, run: Run, watched: Watched) -> Ending | None:
        """Say why a run has to end for what it has spent, None if it may go on; a person's run is the person's.

        One that has had its answer, and lets us know of that, may have said its last word: it is ended when it goes on.
        """
        heard = watched.heard
        ending = None if run.person or heard.is_over else self._over(run, watched)
        if ending is None:
            watched.over_at = None
            return None
        calls, at = len(heard.bill.calls), self.runtime.awake()
        if watched.over_at is None:
            watched.over_at, watched.over_since = calls, at
        if watched.guessed and at - watched.over_since < BILL_TIMEOUT_S:
            return None  # it is about to say what it really cost
        return None if heard.turns and heard.is_between and calls == watched.over_at else ending

    def _over(self, run: Run, watched: Watched) -> Ending | None:
        spent, one, about = whole(watched.used.values()), watched.next_call, ""
        late = watched.ledger is not None and self.runtime.awake() - watched.started > LEDGER_TIMEOUT_S
        if late and not watched.used and watched.usual is not None:
            # It is to be found nowhere, until the turn is over: its calls are counted, and taken for usual ones.
            spent, one, about = whole([watched.usual] * max(watched.heard.turns - 1, 0)), watched.usual, "about "
        set_by_person = self.runtime.app.context.config.budget
        if is_over(run.money, spent.cost, one.cost):
            what = f"The run spent {about}{money(spent.cost)} of the {money(run.money or 0)} that it was allowed.{NEXT}"
            own = is_own(run.money, set_by_person.run)
        elif is_over(run.tokens, spent.tokens, one.tokens):
            most = count(run.tokens or 0)
            what = f"The run used {about}{count(spent.tokens)} of the {most} tokens that it was allowed.{NEXT}"
            own = is_own(run.tokens, set_by_person.tokens.run)
        else:
            return None
        # A share of what all may spend says nothing of the run: it goes on if there is more.
        return Ending(what, fault=own, again=not own)

    # Answers

    async def tell(self, run: Run, watched: Watched, agent: Agent, decided: list[Question]) -> None:
        """Tell a run what was decided of its questions."""
        for question in decided:
            reply = reply_of(question)
            asks = watched.heard.asks.get(question.asks)
            if reply is None:
                continue
            if questions.is_from_shell(question):
                if await self.say(run, agent, LATE.format(answer=answer_of(*questions.quoted(question)))):
                    await self.runtime.write(partial(questions.told, question=question))
            elif asks is not None and (typed := agent.answer(asks, reply)) is not None:
                await self._type_answer(run, watched, question, typed)

    async def _type_answer(self, run: Run, watched: Watched, question: Question, typed: str) -> None:
        # Typed first and noted then: after a crash in between it is told again, which is better than never.
        try:
            await self.runtime.in_run_thread(lambda: self.runtime.runner.type(run.id, typed))
        except CoveyError as error:
            log.warning("%s could not be told the answer to %s: %s", run.session, question.id, error)
            return
        watched.heard.close(question.asks)
        await self.runtime.write(lambda call: questions.told(call, question))

    async def say(self, run: Run, agent: Agent, text: str) -> bool:
        """Tell a run something while it works; false if it does not listen."""
        typed = agent.say(text)
        return typed is not None and terminal_of(run, agent) is None and await self._type(run, typed)

    async def _type(self, run: Run, typed: str) -> bool:
        """Type to a run, and say whether it takes that."""
        try:
            await self.runtime.in_run_thread(lambda: self.runtime.runner.type(run.id, typed))
        except Refused:
            return False
        return True


def _read_screen(watched: Watched, terminal: Terminal, screen: Screen | None, at: float) -> None:
    """Take in what only the screen says: what holds the program up, and the dialog that is open."""
    shown = None if screen is None else terminal.says(screen)
    if shown is None and watched.shown is not None:
        watched.heard.limited = watched.heard.put_off = watched.heard.compacts = None
    elif shown is not None and shown != watched.shown:
        watched.heard.take(shown, at)
    watched.shown = shown
    dialog = terminal.asked(screen) if watched.sight is Sight.ASKS and screen is not None else None
    if dialog is None or watched.dialog is None:
        watched.dialog_at = at
    watched.dialog = dialog
