"""What a program of a session is given: its environment, its files, its launch."""

from __future__ import annotations

import json
import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path

from covey import proof
from covey.agents import registry
from covey.agents.agent import Agent, Assignment, HookDoor, terminal_of
from covey.agents.environment import agent_env
from covey.app.fleet.runs import Work
from covey.app.history import run_streams
from covey.app.history.transcript_entries import PROMPT
from covey.config import AgentSettings
from covey.core.fleet.launches import Launch
from covey.core.fleet.prompts import prompt, resumed, told
from covey.core.fleet.runs import TMUX, Run
from covey.core.merging.guarded_files import commands_of
from covey.core.people.permits import PermissionLevel
from covey.errors import Invalid
from covey.files import write_whole
from covey.installation import put_launcher
from covey.loops.runtime import Runtime
from covey.runners.tmux import make_place, place_of

TOLD = "told.json"
"""The file of a run with the parts of its task that its conversation has heard once it has its prompt."""
ANSWERED = "answered.json"
"""The file of a run with the questions whose answers its prompt carries."""
SEEN, MISSED = "hooks", "missed"
"""The files of a run with the tools of which covey was asked before their use, and with what reached nobody."""
RELAY = Path(__file__).parents[2] / "hooks" / "relay.py"
"""A program of its own, which imports nothing of ours: agents start it at every step."""
LAUNCHER = "bin"
"""The folder that is first on the PATH of a run: the covey that is called there is the one that runs it."""


def launch(runtime: Runtime, work: Work, git: dict[str, str]) -> Launch:
    """Write what the program reads into the run's folder, and return how it is started; `git`: its environment."""
    run, config = work.run, runtime.app.context.config
    settings = config.agents.get(run.agent) or AgentSettings()
    folder, worktree = runtime.project.run_folder(run.id), runtime.worktrees.path(run.session)
    entry = runtime.worktrees.git_dir(run.session)
    agent = registry.find(run.agent, config.declared())
    conversation = work.conversation if agent.traits.resumes else None
    brief = work.brief
    # Of what was said in a conversation that has heard none of its prompts, nothing is sure.
    text = resumed(brief) if conversation is not None and brief.heard else prompt(brief)
    prompt_file, body_file = folder / PROMPT, folder / "body"
    _write(prompt_file, text)
    _write(folder / TOLD, json.dumps(told(brief)))
    _write(folder / ANSWERED, json.dumps(brief.answered))
    _write(body_file, brief.body)
    credential = runtime.credential(run.id)
    own = {proof.VARIABLE: credential} if credential else {}
    env = _environment(work, agent, settings, folder, worktree, git, runtime.url) | own
    assignment = Assignment(
        run=run.id,
        session=run.session,
        task=run.task,
        title=brief.task.title,
        worktree=str(worktree),
        prompt=text,
        prompt_file=str(prompt_file),
        body_file=str(body_file),
        env=env,
        conversation=conversation,
        folder=str(folder),
        private=(str(place_of(folder).parent),),
        git=str(runtime.project.common),
        entry="" if entry is None else str(entry),
        program=settings.program,
        arguments=settings.arguments,
        model=run.model or settings.model,
        permissions=PermissionLevel(brief.session.permissions or config.sessions.permissions),
        commands=work.commands,
        gate=commands_of(config.merge),
        allowance=run.money,
        hooks=HookDoor(url=runtime.url, relay=relay_words()) if agent.traits.hooks else None,
    )
    made = _made(agent, assignment, folder, run)
    problem = registry.executable(made)
    if problem is not None:
        raise Invalid(
            f"The agent {run.agent} cannot be started: {problem}.",
            hint="The PATH is that of the shell that started covey; covey down && covey up take that of another.",
        )
    for path, content in made.files.items():
        _write(Path(path), content)
    if made.ledger and not (folder / run_streams.LEDGER).exists():
        old = agent.ledger(made.ledger, conversation) if conversation else ()
        _write(folder / run_streams.LEDGER, run_streams.expect_ledger(made.ledger, old))
    return made


def _environment(
    work: Work, agent: Agent, settings: AgentSettings, folder: Path, worktree: Path, git: dict[str, str], url: str
) -> dict[str, str]:
    """Return the environment of a program: what it may have of ours, whose git it uses, and how it reaches covey."""
    run = work.run
    env = agent_env((*agent.traits.env, *settings.env))
    launcher = put_launcher(folder.parents[1] / LAUNCHER)
    return {
        **env,
        **git,
        "PATH": f"{launcher.parent}{os.pathsep}{env['PATH']}",
        "COVEY_URL": url,
        "COVEY_TOKEN": work.token,
        "COVEY_SESSION": run.session,
        "COVEY_TASK": run.task,
        "COVEY_FENCE": str(run.fence),
        "COVEY_TRY": str(work.tries + 1),
        "COVEY_WORKTREE": str(worktree),
        "PWD": str(worktree),
        "TMUX_TMPDIR": str(make_place(folder)),
        "COVEY_MISSED": str(folder / MISSED),
    }


def make_way(folder: Path) -> None:
    """Move aside what lies where a new run is to have its folder: somebody who knew its name put it there."""
    if os.path.lexists(folder):
        folder.rename(folder.with_name(f"{folder.name}.before-{secrets.token_hex(4)}"))


def relay_words() -> tuple[str, ...]:
    """Return the words that start the relay; -I and -S keep Python from looking for anything else."""
    return (sys.executable, "-I", "-S", str(RELAY))


def _made(agent: Agent, work: Assignment, folder: Path, run: Run) -> Launch:
    """Return how an agent is started, in a terminal if its run lives in one: drawing there if it can."""
    terminal = terminal_of(run, agent)
    if terminal is None:
        return replace(agent.launch(work), terminal=run.runner == TMUX)
    journal = terminal.journal(work)
    if journal is not None and not (folder / run_streams.NOTE).exists():
        _write(folder / run_streams.NOTE, run_streams.expect_journal(journal, taken_up=work.conversation is not None))
    return terminal.launch(work)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path, text, 0o600)  # never through a link that lies there
