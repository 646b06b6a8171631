"""covey init: let covey look after a repository."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from covey import config
from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.cli.daemon import running
from covey.errors import Refused, Unavailable
from covey.git.fitness import unfit
from covey.git.project import Project, find
from covey.git.run import try_git
from covey.store.lock import WriterLock
from covey.store.sqlite import SqliteStore

AGENTS = ("claude", "codex", "gemini", "opencode", "aider")
"""The programs of the agents that covey knows; only those that are on this machine are proposed."""


def _nothing(parser: Parser) -> None:
    pass


def init(args: Namespace, client: Client) -> None:
    """Make what is missing, and touch nothing that is there."""
    project = find(Path(client.folder))
    main = main_branch(project)
    why = unfit(project, main)
    if why is not None:
        raise Refused(why)
    check = proposed_check(project.root)
    agents = [name for name in AGENTS if shutil.which(name)]
    made = _begin(project, toml(main, check, agents))
    answer = {
        "project": project.name,
        "root": str(project.root),
        "state": str(project.state),
        "config": str(project.root / config.FILE),
        "made": made,
        "check": check,
        "agents": agents,
    }
    if args.json:
        print(json.dumps(answer))
    elif not made:
        print(f"covey looks after {project.root} already; nothing was changed.")
    else:
        print(f"covey looks after {project.root} now (made: {', '.join(made)}).")
        found = f", for example {check!r}" if check else ""
        agent = f"your agent ({_either(agents)} found here)" if agents else "your agent (none that covey knows is here)"
        print(f"  covey.toml                name {agent}, and under [merge] a check that tests what lands{found}")
        print('  covey run "A first task"  works on it until it has landed; a file TODO.md or tasks.jsonl does too')
        print("  covey task add, list      the board; covey open shows it live in your browser")


def _begin(project: Project, text: str) -> list[str]:
    """Make covey.toml, the state folder, the board and the owner's token, where missing; return what was made."""
    made: list[str] = []
    try:
        settings = project.root / config.FILE
        if _write_new(settings, text, 0o644):
            made.append(config.FILE)
        if not project.state.exists():
            project.state.mkdir(mode=0o700, exist_ok=True)
        if project.is_begun and _has_token(project):
            return made
        if project.is_begun and running(project) is not None:
            raise Refused("The daemon is running and knows the old token only.", hint="covey down, then covey init.")
        with WriterLock(project.lock):
            if not _has_token(project):
                project.owner_token.unlink(missing_ok=True)
            if _write_new(project.owner_token, secrets.token_urlsafe(32) + "\n", 0o600):
                made.append("the owner's token")
            if not project.is_begun:
                SqliteStore(project.database, project=project.name).close()
                made.append("the board")
    except OSError as error:
        raise Unavailable(f"{error.filename} cannot be written: {error.strerror}.") from error
    return made


def _has_token(project: Project) -> bool:
    """Say whether there is a token of the owner; an empty file is none."""
    return project.owner_token.exists() and bool(project.owner_token.read_bytes().strip())


def _write_new(path: Path, text: str, mode: int) -> bool:
    """Write a file that does not exist yet, whole or not at all; say whether it was written."""
    if path.exists():
        return False
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.link(part, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(part)
    return True


def main_branch(project: Project) -> str:
    """Return the branch that is main here: the one checked out, else what git calls a first branch."""
    checked_out = try_git("symbolic-ref", "--short", "--quiet", "HEAD", at=project.common)
    if checked_out.returncode == 0:
        return checked_out.stdout.decode().strip()
    named = try_git("config", "init.defaultBranch", at=project.common)
    return named.stdout.decode().strip() if named.returncode == 0 else "main"


def toml(main: str, check: str | None = None, agents: Sequence[str] = ()) -> str:
    """Return a covey.toml that says what can be set and what holds if it is not; only main is set."""
    examples = {"agents": [*_AGENTS, *(line.format(agents[0]) for line in _KNOWN if agents)], "prices": _PRICES}
    lines = ["# Settings of covey. What is not set here has the value shown in its comment.", ""]
    defaults = config.Config()
    for table in fields(config.Config):
        settings = getattr(defaults, table.name)
        if table.name in examples:
            lines += [*examples[table.name], ""]
            continue
        set_here = table.name == "project"
        inner: list[tuple[str, Any]] = []
        lines += [f"# {_said(settings)}", "[project]" if set_here else f"# [{table.name}]"]
        for setting in fields(settings):
            if is_dataclass(getattr(settings, setting.name)):
                inner.append((f"{table.name}.{setting.name}", getattr(settings, setting.name)))
            elif (table.name, setting.name) == ("project", "main"):
                lines.append(f"main = {json.dumps(main, ensure_ascii=False)}")
            elif (table.name, setting.name) == ("sessions", "agent"):
                lines.append(f'# agent = ""      # "" is the only one declared below, else {config.USUAL}')
            elif (table.name, setting.name) == ("merge", "check") and check is not None:
                lines.append(
                    f"# check = {json.dumps(check)}      # found here; remove the # marks to let it test what lands"
                )
            else:
                lines.append(f"# {setting.name} = {_literal(getattr(settings, setting.name))}")
        for name, deeper in inner:
            lines += ["", f"# {_said(deeper)}", f"# [{name}]"]
            lines += [f"# {setting.name} = {_literal(getattr(deeper, setting.name))}" for setting in fields(deeper)]
        lines.append("")
    return "\n".join(lines)


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _said(settings: object) -> str:
    """Return what settings say of themselves, as a comment whose first mark stands before it already."""
    return "\n# ".join(line.strip() for line in (settings.__doc__ or "").splitlines() if line.strip())


_AGENTS = [
    "# An agent of your own: any program. Filled in: {prompt} {prompt_file} {body_file} {worktree} {task} {session}.",
    "# [agents.sh]",
    '# command = ["bash", "{body_file}"]',
    "# env = []      # variables of your environment that it gets besides the usual ones",
]
_KNOWN = [
    "",
    "# {0}, which covey knows, started differently.",
    "# [agents.{0}]",
    '# program = "{0}"      # where it is',
    "# arguments = []      # what it is given besides",
    '# model = ""      # "" lets it choose',
]
_PRICES = [
    "# Dollars for a million tokens of a model whose agent does not say what it cost; none is known unless set here.",
    '# [prices."MODEL"]',
    "# input = 0",
    "# output = 0",
    "# cache_read = 0",
    "# cache_write = 0",
]


def proposed_check(root: Path) -> str | None:
    """Return the command that seems to test this repository, if one can be seen."""
    makefile = next((root / name for name in ("Makefile", "makefile", "GNUmakefile") if (root / name).is_file()), None)
    if makefile is not None:
        text = makefile.read_text(errors="replace")
        for target in ("check", "test"):
            if re.search(rf"(?m)^{target}\s*:", text):
                return f"make {target}"
    for name, command in _CHECKS:
        if (root / name).exists():
            return command
    return None


_CHECKS = (
    ("tox.ini", "tox"),
    ("noxfile.py", "nox"),
    ("pytest.ini", "python3 -m pytest -q"),
    ("conftest.py", "python3 -m pytest -q"),
    ("tests/conftest.py", "python3 -m pytest -q"),
    ("tests", "python3 -m unittest"),
    ("package.json", "npm test"),
    ("Cargo.toml", "cargo test"),
    ("go.mod", "go test ./..."),
)


def _literal(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)


COMMAND = Command(
    "let covey look after this repository; a second time changes nothing",
    _nothing,
    init,
    example="cd myrepo && covey init",
    owner=True,
)
