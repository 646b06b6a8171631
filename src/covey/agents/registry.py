"""Which agents there are: those that covey.toml declares, and those that packages bring by entry point."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from covey.agents.agent import Agent, Assignment, Traits
from covey.agents.custom import Declared
from covey.agents.environment import agent_env
from covey.core.fleet.launches import Launch
from covey.errors import Invalid, NotFound

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "covey.agents"
"""The group of entry points; each names a value that is an Agent."""


def find(name: str, declared: Mapping[str, tuple[str, ...]]) -> Agent:
    """Return the agent of a name; what covey.toml declares comes first."""
    if name in declared:
        return Declared(name, tuple(declared[name]))
    entry = _entries().get(name)
    if entry is None:
        there = names(declared)
        near = difflib.get_close_matches(name, there, 1, 0.6)
        meant = f"Did you mean {near[0]}? " if near else ""
        own = f"[agents.{name}] in covey.toml declares one of your own."
        raise NotFound(f"There is no agent {name!r}.", hint=f"{meant}There are {', '.join(there)}; {own}")
    return _load(entry)


def names(declared: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the names of all agents, sorted."""
    return sorted({*declared, *_entries()})


def executable(launch: Launch) -> str | None:
    """Say why the program of a launch cannot be run, or nothing if it can."""
    program = launch.argv[0]
    if "/" in program:
        path = os.path.join(launch.cwd, program)
        if not os.path.isfile(path):
            return f"there is no program {program}"
        return None if os.access(path, os.X_OK) else f"{program} may not be executed"
    folders = [os.path.join(launch.cwd, folder) for folder in os.get_exec_path(launch.env)]
    found = [path for path in (os.path.join(folder, program) for folder in folders) if os.path.isfile(path)]
    if any(os.access(path, os.X_OK) for path in found):
        return None
    return f"{found[0]} may not be executed" if found else f"there is no program {program} on the PATH"


def absent(agent: Agent, *, folder: str, env: Iterable[str] = (), program: str = "") -> str | None:
    """Say why the program of an agent cannot be run in a folder, or nothing if it can.

    `env` names the variables that the settings give it besides the usual ones, `program` the one that they name.
    """
    work = Assignment(
        run="run-0", session="worker-1", task="T-1", title="", worktree=folder, prompt="", prompt_file="", body_file="",
        env=agent_env((*agent.traits.env, *env)), program=program, folder=folder,
    )  # fmt: skip
    return executable(agent.launch(work))


def _entries() -> dict[str, EntryPoint]:
    return _entries_on(tuple(sys.path))


@cache
def _entries_on(path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Return the entry points of all packages, looked for once: agents are asked for at every look at their output."""
    from importlib.metadata import entry_points  # takes milliseconds, and most commands start no agent

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _load(entry: EntryPoint) -> Agent:
    """Return what a package brings; whatever happens in there is told as its fault, and ends nothing of ours."""
    try:
        agent = entry.load()
        named, traits = getattr(agent, "name", None), getattr(agent, "traits", None)
    except (Exception, SystemExit) as error:  # a package of others may do anything as it is imported
        raise Invalid(
            f"The agent {entry.name} cannot be loaded: {type(error).__name__}: {error}.",
            hint=f"It comes from {entry.value}; install it again.",
        ) from error
    if not (isinstance(named, str) and isinstance(traits, Traits) and callable(getattr(agent, "launch", None))):
        raise Invalid(f"{entry.value}, which should be the agent {entry.name}, is none.")
    found: Agent = agent
    return found
