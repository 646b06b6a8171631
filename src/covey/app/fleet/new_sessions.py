"""The verbs by which new sessions come: what they can be, and some of them at once."""

from __future__ import annotations

from covey.app.context import Call
from covey.app.fleet.fleet_verbs import let_work, stopped, stopped_together
from covey.app.fleet.sessions import check_agent, fresh_names, full, must_fit, register
from covey.app.shapes.fleet import AddSessions, AgentRow, Offer, SessionFull
from covey.app.shapes.forms import Nothing
from covey.app.verbs import verb
from covey.config import AgentSettings
from covey.core.fleet.sessions import Registered
from covey.core.people.permits import PermissionLevel
from covey.core.people.rights import OWNER_ONLY
from covey.errors import CoveyError, Invalid

NAMES_SHOWN = 50
"""How many free names are offered at most."""


@verb("session.offer", "GET /api/sessions/offer", Nothing, Offer, may=OWNER_ONLY)
def offer(call: Call, asked: Nothing) -> Offer:
    """Say what new sessions can be: the agents that are there, names, and how many more may be."""
    settings = call.context.config
    agents = _agents(call)
    room = max(0, settings.sessions.max - len(call.tx.run_sessions()))
    return Offer(
        agent=_usual(call, agents),
        agents=agents,
        permissions=PermissionLevel(settings.sessions.permissions),
        names=fresh_names(call, min(room, NAMES_SHOWN)),
        room=room,
        most=settings.sessions.max,
        stopped=stopped(call),
        stopped_together=sorted(stopped_together(call)),
    )


@verb("session.add", "POST /api/sessions/add", AddSessions, list[SessionFull], may=OWNER_ONLY, status=201)
def add(call: Call, asked: AddSessions) -> list[SessionFull]:
    """Add sessions that covey runs, all or none; an agent whose program is not there is refused if they shall start."""
    call.context.refresh()
    agent = asked.agent or call.context.config.default_agent()
    check_agent(call, agent)
    if asked.names and asked.count not in (None, len(asked.names)):
        raise Invalid(f"There are {len(asked.names)} names for {asked.count} sessions.", hint="Leave one of them out.")
    if asked.start:
        _must_be_there(call, agent)
    names = asked.names or fresh_names(call, asked.count or 1)
    must_fit(call, len(names))
    wish = Registered(role=asked.role, agent=agent, permissions=asked.permissions)
    added = [register(call, name, wish) for name in names]
    return let_work(call, names) if asked.start else [full(call, session) for session in added]


def _agents(call: Call) -> list[AgentRow]:
    """Return all agents: those that can be run first, of these last what only plays scripts."""
    from covey.agents import registry  # few commands name an agent, and all of them start with this module

    rows = [AgentRow(name, _absent(call, name)) for name in registry.names(call.context.config.declared())]
    return sorted(rows, key=lambda row: (row.absent is not None, row.absent is None and _plays(call, row.name)))


def _usual(call: Call, agents: list[AgentRow]) -> str:
    """Return the agent for new sessions: the settings' own, or the first that can be run where that one cannot."""
    usual = call.context.config.default_agent()
    there = [each.name for each in agents if each.absent is None]
    return usual if usual in there else next((name for name in there if not _plays(call, name)), usual)


def _plays(call: Call, name: str) -> bool:
    """Say whether an agent only plays scripts: whoever writes a task in words does not mean such a one."""
    return call.context.agent(name).traits.script


def _must_be_there(call: Call, name: str) -> None:
    problem = _absent(call, name)
    if problem is not None:
        own = name in call.context.config.declared()
        hint = "covey.toml names its command." if own else f"Install {name}, or choose another agent."
        if call.context.has_daemon:
            hint += " If it is on the PATH of your shell, covey down && covey up take that."
        raise Invalid(f"The agent {name} cannot be started: {problem}.", hint=hint)


def _absent(call: Call, name: str) -> str | None:
    """Say why the program of an agent cannot be run here, or nothing if it can."""
    from covey.agents import registry

    config = call.context.config
    own = config.agents.get(name) or AgentSettings()
    folder = "." if call.context.repository is None else str(call.context.repository.root)
    try:
        agent = call.context.agent(name)
    except CoveyError as error:  # another's package that cannot be loaded
        return error.message.rstrip(".")
    return registry.absent(agent, folder=folder, env=own.env, program=own.program)
