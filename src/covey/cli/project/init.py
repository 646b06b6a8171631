"""covey init: let covey look after a repository."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from covey import config
from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, Parser
from covey.cli.merging.gate_search import Search, proposed_checks, search
from covey.cli.project.daemon import running
from covey.core import texts
from covey.errors import CoveyError, Refused, Unavailable
from covey.files import write_whole
from covey.git.candidates.candidates import resolve
from covey.git.preflight import unfit
from covey.git.project import Project, find, first_branch
from covey.store.engine.lock import WriterLock
from covey.store.engine.sqlite import SqliteStore
from covey.values import dataclass

AGENTS = ("claude", "codex", "gemini", "opencode", "aider")
"""The programs of the agents that covey knows; only those that are on this machine are proposed."""


def _arguments(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--check", action="store_true", help="only try the gate on main, with the current settings")
    which.add_argument("--no-try", action="store_true", help="propose a gate without trying it on main")


def init(args: Namespace, client: Client) -> int:
    """Make what is missing, touch nothing that a person wrote, and try the gate that a person would propose."""
    if args.check:
        from covey.cli.merging.gate_try import check_again

        return check_again(args, client)
    project = find(Path(client.folder))
    main = _main(project)
    refusal = unfit(project, main)
    if refusal is not None:
        raise refusal
    checks = proposed_checks(project, main)
    agents = [name for name in AGENTS if shutil.which(name)]
    made = _begin(project, toml(main, checks[0] if checks else None, agents))
    written = _written(project, main)
    proposal = Proposal(checks[0] if checks else None, is_ours=written is not None)
    if written is not None and checks and not args.no_try:
        proposal = _search(client, project, main, checks, agents, written, quiet=args.json)
    answer = {
        "project": project.name,
        "root": str(project.root),
        "state": str(project.state),
        "config": str(project.root / config.FILE),
        "made": made,
        "check": proposal.check,
        "agents": agents,
        "holds": proposal.holds,
        "gate": proposal.gate,
        "tried": [{"check": each.check, "gate": each.gate} for each in proposal.found.tried],
        "untried": proposal.untried,
    }
    if args.json:
        print(json.dumps(answer))
    else:
        _say(project, main, made, proposal, agents)
    return 0


@dataclass(frozen=True)
class Proposal:
    """The check that seems to test this repository, what was found about it, and whether it is set from now on."""

    check: str | None
    found: Search = Search()
    holds: bool = False
    is_ours: bool = False
    """The settings are as covey wrote them, so that the next init looks for a gate again."""

    @property
    def gate(self) -> Json | None:
        """The gate in which it was tried."""
        return None if self.found.best is None else self.found.best.gate

    @property
    def untried(self) -> str:
        """Why something could not be tried."""
        error = self.found.trouble
        return "" if error is None else f"{error.message} {error.hint}".strip()


def _search(
    client: Client,
    project: Project,
    main: str,
    checks: Sequence[str],
    agents: Sequence[str],
    written: str,
    *,
    quiet: bool,
) -> Proposal:
    """Try what is proposed; write what holds into the settings, or else propose there what is the nearest to it."""
    try:
        found = search(client, checks, main, quiet=quiet)
    except KeyboardInterrupt:
        print("The gate was not tried to its end, and is not set; covey init --check tries it again.", file=sys.stderr)
        raise
    if found.best is None:
        return Proposal(checks[0], found, is_ours=True)
    check, holds = found.best.check, found.best.holds
    is_written = _replace(project, written, toml(main, check, agents, holds=holds))
    return Proposal(check, found, holds=holds and is_written, is_ours=is_written)


def _main(project: Project) -> str:
    """Return the branch on which work lands: the one that the settings name, else the one that is main here."""
    try:
        text = config.read_text(project.root)
        return first_branch(project) if text is None else config.parse(text).target
    except CoveyError:
        return first_branch(project)


def _written(project: Project, main: str) -> str | None:
    """Return the settings if they are still as covey wrote them, whatever it found then, and have no gate."""
    try:
        text = (project.root / config.FILE).read_bytes().decode()
        check = _proposed(text)
    except (OSError, ValueError, CoveyError):
        return None
    found = (
        wrote(main, check, agents) for agents in ((), *((name,) for name in AGENTS)) for wrote in (toml, _older_toml)
    )
    return text if text in found else None


def _proposed(text: str) -> str | None:
    """Return the gate that is only proposed in the text of a covey.toml."""
    line = re.search(r"(?m)^# (check = .+)$", text)
    return None if line is None else config.parse(f"[merge]\n{line[1]}").merge.check or None


def _replace(project: Project, before: str, after: str) -> bool:
    """Write the settings again, unless somebody has changed them meanwhile; say so."""
    path = project.root / config.FILE
    if path.read_bytes() != before.encode():
        return False
    if before != after:
        write_whole(path, after, 0o644)
    return True


def _say(project: Project, main: str, made: Sequence[str], proposal: Proposal, agents: Sequence[str]) -> None:
    """Print what was made and found; that nobody tests what lands is said last, so that nobody overlooks it."""
    settings = _settings(project)
    if made:
        print(f"covey looks after {project.root} now (made: {', '.join(made)}).")
    elif proposal.found.tried:
        print(f"covey looks after {project.root} already, and looked for a gate again.")
    else:
        print(f"covey looks after {project.root} already; nothing was changed.")
    if made or proposal.found.tried:
        _say_next(project, main, settings or config.Config(), proposal, agents)
    if not proposal.holds and settings is not None and not settings.merge.check:
        again = "; covey init looks for one again" if proposal.is_ours else ""
        again = again or ("; covey init --check tries what seems to be one" if proposal.check else "")
        print(
            "  No gate is set: what agents hand in waits for your review until merge.check in covey.toml names a check"
            f"{again}."
        )


def _settings(project: Project) -> config.Config | None:
    """Return what is set, None where that cannot be read."""
    try:
        return config.load(project.root)
    except CoveyError:
        return None


def _set_and_missing(settings: config.Config, proposal: Proposal, agents: Sequence[str]) -> str:
    """Return what the settings have of a gate and an agent, and what a person has still to name in them."""
    own = [name for name, agent in settings.agents.items() if agent.command]
    own = own or list(filter(None, [settings.sessions.agent]))
    agent = f"the agent{'' if len(own) == 1 else 's'} {', '.join(own)}"
    found = f"{', '.join(agents)} {'is' if len(agents) == 1 else 'are'} found here"
    yours = f"name your agent ({found if agents else 'none that covey knows is here'})"
    if proposal.holds or settings.merge.check:
        return f"has the gate{_gate(proposal, settings.merge.check)}{f' and {agent}' if own else f'; {yours}'}"
    proposed = ""
    if proposal.check is not None and proposal.is_ours:
        how = "does not hold yet" if proposal.found.tried else "was not tried"
        proposed = f"; {texts.in_marks(proposal.check)} is proposed there and {how}"
    begins = f"has {agent}; name" if own else f"{yours}, and"
    return f"{begins} under [merge] a check that tests what lands{proposed}"


def _gate(proposal: Proposal, check: str) -> str:
    """Return the gate that is set, and what came of it if it was tried."""
    if not proposal.holds:
        return f" {texts.in_marks(check)}"
    is_empty = proposal.gate is not None and proposal.gate["verdict"] == "empty"
    return f": {texts.in_marks(check)} {'looks at what lands, and tests nothing' if is_empty else 'tests what lands'}"


def _say_next(project: Project, main: str, settings: config.Config, proposal: Proposal, agents: Sequence[str]) -> None:
    """Print what came of the gate, and what to do next."""
    print("".join(f"  {line}\n" for line in proposal.found.told()), end="")
    if proposal.gate is not None:
        from covey.cli.merging.gate_try import told

        print("\n".join(f"  {line}" for line in told(proposal.gate)))
    print(f"  covey.toml                {_set_and_missing(settings, proposal, agents)}")
    if proposal.untried and not proposal.found.tried:
        print(f"  It was not tried: {proposal.untried} covey init --check does that once it is set.")
    if resolve(project, f"refs/heads/{main}") is None:
        print(
            f'  git commit --allow-empty -m "Begin"   comes first: {main} has no commit yet, and agents begin from one'
        )
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


def toml(main: str, check: str | None = None, agents: Sequence[str] = (), *, holds: bool = False) -> str:
    """Return a covey.toml that says what can be set and what holds if it is not; only main is set, and a gate that
    works. Every table has its header, so that a line counts once the mark before it is removed; a gate that is only
    proposed stands right below its table."""
    agent_lines = ["[agents]", *_AGENTS, *(line.format(agents[0]) for line in _KNOWN if agents)]
    return _whole(
        main, check, holds, {"agents": agent_lines, "prices": ["[prices]", *_PRICES]}, lambda name: f"[{name}]"
    )


def _older_toml(main: str, check: str | None, agents: Sequence[str]) -> str:
    """Return what earlier versions wrote: only tables in which something was set or proposed had their header."""
    has_header = ("project",) if check is None else ("project", "merge")
    known = [*_OLDER_AGENTS, *(line.format(agents[0]) for line in _OLDER_KNOWN if agents)]
    examples = {"agents": known, "prices": _OLDER_PRICES}
    text = _whole(main, check, False, examples, lambda name: f"[{name}]" if name in has_header else f"# [{name}]")
    return text.replace(_said(config.Budget()), _OLDER_BUDGET)


def _whole(
    main: str, check: str | None, holds: bool, examples: dict[str, list[str]], header: Callable[[str], str]
) -> str:
    special = {
        ("project", "main"): f"main = {texts.toml(main)}",
        ("sessions", "agent"): f'# agent = ""      # "" is the only one declared below, else {config.DEFAULT_AGENT}',
    }
    if check is not None:
        set_check = f"check = {texts.toml(check)}"
        proposed = f"# {set_check}      # found here; remove the # before it to let it test what lands"
        special["merge", "check"] = set_check if holds else proposed
    lines = ["# Settings of covey. What is not set here has the value shown in its comment."]
    for table in fields(config.Config):
        name, settings = table.name, getattr(config.Config(), table.name)
        lines += ["", *(examples.get(name) or _table(name, settings, special, header))]
    return "\n".join([*lines, ""])


def _table(name: str, settings: Any, special: dict[tuple[str, str], str], header: Callable[[str], str]) -> list[str]:
    """Return the lines of a table of settings and of those below it; those that have a line of their own come first."""
    lines = [f"# {_said(settings)}", header(name)]
    below: list[str] = []
    for setting in sorted(fields(settings), key=lambda each: (name, each.name) not in special):
        value = getattr(settings, setting.name)
        if is_dataclass(value):
            below += ["", *_table(f"{name}.{setting.name}", value, special, header)]
        else:
            lines.append(special.get((name, setting.name)) or f"# {setting.name} = {_literal(value)}")
    return [*lines, *below]


def _said(settings: object) -> str:
    """Return what settings say of themselves, as a comment whose first mark stands before it already."""
    return "\n# ".join(line.strip() for line in (settings.__doc__ or "").splitlines() if line.strip())


_AGENTS = [
    "# An agent of your own: any program. Filled in: {prompt} {prompt_file} {body_file} {worktree} {task} {session}.",
    "# Beside its command, sh.env names variables of your environment that it gets besides the usual ones.",
    '# sh.command = ["bash", "{body_file}"]',
]
_KNOWN = [
    "# {0}, which covey knows, started differently: where it is, what it is given besides, and its model.",
    '# {0}.program = "{0}"',
    '# {0}.arguments = ["--OPTION"]      # nothing unless set here',
    '# {0}.model = "MODEL"      # what it chooses unless set here',
]
_PRICES = [
    "# Dollars for a million tokens of a model whose agent does not say what it cost; none is known unless set here.",
    '# "MODEL".input = 0',
    '# "MODEL".output = 0',
    '# "MODEL".cache_read = 0',
    '# "MODEL".cache_write = 0',
]
_OLDER_BUDGET = (
    "The most dollars that a run, a task, a session and all together may spend, a session and all in a day; 0: any."
)
_OLDER_AGENTS = [
    "# An agent of your own: any program. Filled in: {prompt} {prompt_file} {body_file} {worktree} {task} {session}.",
    "# [agents.sh]",
    '# command = ["bash", "{body_file}"]',
    "# env = []      # variables of your environment that it gets besides the usual ones",
]
_OLDER_KNOWN = [
    "",
    "# {0}, which covey knows, started differently.",
    "# [agents.{0}]",
    '# program = "{0}"      # where it is',
    "# arguments = []      # what it is given besides",
    '# model = ""      # "" lets it choose',
]
_OLDER_PRICES = [
    "# Dollars for a million tokens of a model whose agent does not say what it cost; none is known unless set here.",
    '# [prices."MODEL"]',
    "# input = 0",
    "# output = 0",
    "# cache_read = 0",
    "# cache_write = 0",
]


def _literal(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)


COMMAND = Command(
    "set up covey in this repository, and try its gate on main; running it again changes no setting of yours",
    _arguments,
    init,
    example="cd myrepo && covey init\ncovey init --check   tries the gate on main again",
    owner=True,
)
