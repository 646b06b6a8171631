"""What a program of a session is given: its environment, its files, its launch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from covey.agents import registry
from covey.agents.agent import Assignment
from covey.app.runs import Work
from covey.config import Config
from covey.core.launches import Launch
from covey.core.prompts import prompt
from covey.errors import Invalid

ALLOWED = (
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "TMPDIR", "NO_COLOR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy",
    "no_proxy", "all_proxy",
)  # fmt: skip
"""Variables of ours that every agent gets."""
ALLOWED_STARTS = ("LC_", "XDG_")
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Python trusts bytecode whose source has the same size and second: in a worktree that changes many times a second, a
test would run what is no longer there."""


def agent_env(extra: Iterable[str]) -> dict[str, str]:
    """Return what agents get of our own environment: what is on the list, and what the settings name besides."""
    named = {*ALLOWED, *extra}
    env = {name: value for name, value in os.environ.items() if name in named or name.startswith(ALLOWED_STARTS)}
    env.setdefault("LANG", "C.UTF-8")
    env |= NO_BYTECODE
    env["PATH"] = with_covey(env.get("PATH", os.defpath))
    return env


def with_covey(path: str) -> str:
    """Return a PATH on which `covey` is found, after everything else."""
    own = str(Path(sys.executable).parent)
    return path if own in path.split(os.pathsep) else f"{path}{os.pathsep}{own}"


def gate_env() -> dict[str, str]:
    """Return the environment of the gate: the owner's own, without what would point git or covey elsewhere."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "COVEY_"))}
    return own | NO_BYTECODE


def launch(
    work: Work, config: Config, folder: Path, worktree: Path, git: dict[str, str], url: str, *, kept: bool
) -> Launch:
    """Write what the program reads into the run's folder, and return how it is started."""
    settings = config.agents.get(work.run.agent)
    agent = registry.find(work.run.agent, config.declared())
    text = prompt(replace(work.brief, kept=kept))
    prompt_file, body_file = folder / "prompt.md", folder / "body"
    _write(prompt_file, text)
    _write(body_file, work.body)
    env = {
        **agent_env(settings.env if settings else ()),
        **git,
        "COVEY_URL": url,
        "COVEY_TOKEN": work.token,
        "COVEY_SESSION": work.run.session,
        "COVEY_TASK": work.run.task,
        "COVEY_FENCE": str(work.run.fence),
        "COVEY_TRY": str(work.tries + 1),
        "COVEY_WORKTREE": str(worktree),
        "PWD": str(worktree),
    }
    made = agent.launch(
        Assignment(
            run=work.run.id,
            session=work.run.session,
            task=work.run.task,
            title=work.brief.title,
            worktree=str(worktree),
            prompt=text,
            prompt_file=str(prompt_file),
            body_file=str(body_file),
            env=env,
            conversation=work.conversation,
        )
    )
    problem = registry.executable(made)
    if problem is not None:
        raise Invalid(f"The agent {work.run.agent} cannot be started: {problem}.")
    return made


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
