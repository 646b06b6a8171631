"""The verbs by which a person looks into a session and takes it in hand: why, send, attach, give back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from covey.app.board import waiting
from covey.app.context import Call
from covey.app.fleet.fleet_verbs import aim, run_row
from covey.app.fleet.sessions import find, full
from covey.app.shapes.fleet import ClueRow, Moment, RunRow, SendText, SessionFull, TerminalRow, Why
from covey.app.shapes.forms import Nothing
from covey.app.verbs import verb
from covey.core.fleet import runs, sessions
from covey.core.fleet.signals import Wants
from covey.core.people import questions as rules
from covey.core.people.mail import Message, Sent
from covey.core.people.questions import Decision
from covey.core.people.rights import OWN, OWNER_ONLY
from covey.core.texts import redact
from covey.errors import Refused

if TYPE_CHECKING:
    from covey.agents.agent import Agent

HISTORY = 10
"""The last states of a session that are told with why it is in this one."""


@verb("session.why", "GET /api/sessions/{name}/why", Nothing, Why, may=OWN)
def why(call: Call, asked: Nothing, name: str) -> Why:
    """Say what the watchdog thinks of a session, with its evidence and how old that is."""
    session = find(call, name)
    verdict, wait = call.context.fleet.why(name)
    run = next(iter(call.tx.open_runs(name)), None)
    clues = [] if verdict is None else [ClueRow(each.source, redact(each.text), each.age) for each in verdict.clues]
    if wait is not None and wait.why and run is None:
        clues.append(ClueRow("scheduler", redact(wait.why), 0.0))
    past = [(at, json.loads(data)) for at, data in call.tx.last_changes(name, HISTORY)]
    return Why(
        session=name,
        state=session.state,
        evidence=session.evidence,
        since=session.updated,
        until=session.until,
        rule=None if verdict is None else verdict.rule,
        action=None if verdict is None else verdict.action.value,
        clues=clues,
        run=None if run is None else run.id,
        task=None if run is None else run.task,
        history=[Moment(at, told.get("state", ""), told.get("evidence", "")) for at, told in past],
        waits=waiting.of_session(call, name),
    )


@verb("session.send", "POST /api/sessions/{name}/send", SendText, RunRow, may=OWNER_ONLY)
def send(call: Call, asked: SendText, name: str) -> RunRow:
    """Tell a session's program something: typed if it listens, the answer if it asks, else mail that wakes it."""
    session = find(call, name)
    run = next(iter(call.tx.open_runs(name)), None)
    if run is None or call.context.runner is None:
        raise Refused(
            f"{session.name} has no run to type to.", hint=f"covey mail send {session.name} TEXT --wake begins one."
        )
    _say(call, run, asked.text)
    call.tx.wrote = True  # with the same key it is typed no second time
    return run_row(call, run)


def _say(call: Call, run: runs.Run, text: str) -> None:
    """Say a text in the way in which the agent of a run takes it."""
    assert call.context.runner is not None
    from covey.agents.agent import terminal_of  # as few need it as need an agent

    agent = call.context.agent(run.agent)
    waiting = [each for each in call.tx.open_questions(run.id) if each.wants is Wants.ANSWER]
    if len(waiting) == 1:
        call.tx.advance(waiting[0], rules.answer(waiting[0], Decision.REPLY, text), call.actor(None))
        return  # it is told by whoever looks after the run, once
    typed = None if terminal_of(run, agent) is not None else agent.say(text)
    if typed is None:  # it is told at its next step, or at an empty prompt
        call.tx.begin(Message, Sent(to=run.session, text=call.prose(text, "The text"), wake=True), call.actor(None))
    else:
        call.context.runner.type(run.id, typed)


@verb("session.attach", "POST /api/sessions/{name}/attach", Nothing, SessionFull, may=OWNER_ONLY)
def attach(call: Call, asked: Nothing, name: str) -> SessionFull:
    """Let a person take a session's conversation over in a terminal; one that has a terminal is left as it is."""
    session = find(call, name)
    run = next(iter(call.tx.open_runs(name)), None)
    if run is None and not call.tx.held_by(name):
        raise Refused(f"{name} is not at work, so there is nothing to take over.", hint="covey session list")
    if run is not None and run.runner == runs.TMUX:
        return full(call, session)
    agent = call.context.agent(session.agent or "" if run is None else run.agent)
    if not _opens_in_terminal(agent):
        raise Refused(
            f"The conversation of {agent.name} cannot be taken over in a terminal.",
            hint=f"covey session logs {name} --follow shows what it does; covey session send {name} TEXT speaks to it.",
        )
    if run is not None and not run.conversation:
        raise Refused(f"{name} has no conversation yet.", hint="Try again in a moment.")
    return aim(call, name, sessions.attach)


def _opens_in_terminal(agent: Agent) -> bool:
    """Say whether a person can go on with an agent's conversation in a terminal."""
    return agent.terminal is not None and agent.traits.resumes


@verb("session.giveback", "POST /api/sessions/{name}/giveback", Nothing, SessionFull, may=OWNER_ONLY)
def give_back(call: Call, asked: Nothing, name: str) -> SessionFull:
    """Give a conversation back that a person took over: its session goes on with it by itself."""
    return aim(call, name, sessions.give_back)


@verb("session.terminal", "GET /api/sessions/{name}/terminal", Nothing, TerminalRow, may=OWNER_ONLY)
def terminal(call: Call, asked: Nothing, name: str) -> TerminalRow:
    """Say whether a session has a terminal now, and how a person's own shows it."""
    find(call, name)
    run = next(iter(call.tx.open_runs(name)), None)
    runner = call.context.runner
    if run is None or run.runner != runs.TMUX or runner is None or not runner.look(run.id).alive:
        agent = None if run is None else call.context.known_agent(run.agent)
        return TerminalRow(None, False, [], can_attach=agent is not None and _opens_in_terminal(agent))
    return TerminalRow(run.id, run.person, runner.attach_command(run.id), runner.is_used(run.id), True)
