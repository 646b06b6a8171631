"""covey init: let covey look after a repository."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from covey import config
from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.cli.daemon import running
from covey.core import proposed_gates
from covey.core.proposed_gates import Tree
from covey.errors import CoveyError, Refused, Unavailable
from covey.files import write_whole
from covey.git.fitness import unfit
from covey.git.project import Project, find
from covey.git.run import try_git
from covey.installation import step_back
from covey.store.lock import WriterLock
from covey.store.sqlite import SqliteStore
from covey.values import dataclass

AGENTS = ("claude", "codex", "gemini", "opencode", "aider")
"""The programs of the agents that covey knows; only those that are on this machine are proposed."""


LARGEST_FILE = 1 << 20
"""Bytes of a file that are looked at to see how a repository is tested."""


def _arguments(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--check", action="store_true", help="only try the gate, on main as it is now and with the settings as they are"
    )
    which.add_argument("--no-try", action="store_true", help="propose a gate without trying it on main")


def init(args: Namespace, client: Client) -> int:
    """Make what is missing, touch nothing that is there, and try the gate that a person would propose."""
    if args.check:
        from covey.cli.gate_try import check_again

        return check_again(args, client)
    project = find(Path(client.folder))
    main = main_branch(project)
    why = unfit(project, main)
    if why is not None:
        raise Refused(why)
    checks = proposed_checks(project, main)
    agents = [name for name in AGENTS if shutil.which(name)]
    made = _begin(project, toml(main, checks[0] if checks else None, agents))
    proposal = Proposal(checks[0] if checks else None)
    if config.FILE in made and checks and not args.no_try:
        if not args.json:
            print(f"Trying {checks[0]!r} on {main}, as the merge queue would ...", flush=True)
        try:
            proposal = _try(client, project, main, checks, agents, quiet=args.json)
        except KeyboardInterrupt:
            print(
                "The gate was not tried to its end, and is not set; covey init --check tries it again.", file=sys.stderr
            )
            raise
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
        "untried": proposal.untried,
    }
    if args.json:
        print(json.dumps(answer))
    elif not made:
        print(f"covey looks after {project.root} already; nothing was changed.")
    else:
        print(f"covey looks after {project.root} now (made: {', '.join(made)}).")
        _say_next(proposal, agents)
    return 0


@dataclass(frozen=True)
class Proposal:
    """The check that seems to test this repository, how a try of it ended, and whether it is set from now on."""

    check: str | None
    gate: dict[str, Any] | None = None
    holds: bool = False
    untried: str = ""
    """Why it could not be tried."""


def _try(
    client: Client, project: Project, main: str, checks: Sequence[str], agents: Sequence[str], *, quiet: bool
) -> Proposal:
    """Try what is proposed until one works or really tests main; one that works is set."""
    from covey.cli.gate_try import try_gate

    first: Proposal | None = None
    for check in checks:
        try:
            gate = try_gate(client, check, quiet=quiet)
        except CoveyError as error:
            return first or Proposal(check, untried=f"{error.message} {error.hint}".strip())
        tried = Proposal(check, gate)
        if gate["verdict"] == "works":
            written, wanted = toml(main, checks[0], agents), toml(main, check, agents, holds=True)
            return replace(tried, holds=_set(project, written, wanted))
        first = first or tried
        if gate["verdict"] in ("fails", "lost"):
            return tried
    return first or Proposal(checks[0])


def _set(project: Project, before: str, after: str) -> bool:
    """Write the settings again with the gate in them, unless somebody has changed them meanwhile; say so."""
    path = project.root / config.FILE
    if path.read_text(encoding="utf-8") != before:
        return False
    write_whole(path, after, 0o644)
    return True


def _say_next(proposal: Proposal, agents: Sequence[str]) -> None:
    """Print what came of the gate, and what to do next."""
    if proposal.gate is not None:
        from covey.cli.gate_try import told

        print("\n".join(f"  {line}" for line in told(proposal.gate)))
    agent = f"your agent ({_either(agents)} found here)" if agents else "your agent (none that covey knows is here)"
    if proposal.holds:
        print(f"  covey.toml                has the gate: {proposal.check!r} tests what lands; name {agent}")
    else:
        not_yet = f"; {proposal.check!r} is proposed there and does not hold yet" if proposal.check else ""
        print(f"  covey.toml                name {agent}, and under [merge] a check that tests what lands{not_yet}")
    if proposal.untried:
        print(f"  It was not tried: {proposal.untried} covey init --check does that once it is set.")
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


def toml(main: str, check: str | None = None, agents: Sequence[str] = (), *, holds: bool = False) -> str:
    """Return a covey.toml that says what can be set and what holds if it is not; only main is set, and a gate that
    works."""
    examples = {"agents": [*_AGENTS, *(line.format(agents[0]) for line in _KNOWN if agents)], "prices": _PRICES}
    lines = ["# Settings of covey. What is not set here has the value shown in its comment.", ""]
    defaults = config.Config()
    for table in fields(config.Config):
        settings = getattr(defaults, table.name)
        if table.name in examples:
            lines += [*examples[table.name], ""]
            continue
        set_here = table.name == "project" or (table.name == "merge" and holds)
        inner: list[tuple[str, Any]] = []
        lines += [f"# {_said(settings)}", f"[{table.name}]" if set_here else f"# [{table.name}]"]
        for setting in fields(settings):
            if is_dataclass(getattr(settings, setting.name)):
                inner.append((f"{table.name}.{setting.name}", getattr(settings, setting.name)))
            elif (table.name, setting.name) == ("project", "main"):
                lines.append(f"main = {json.dumps(main, ensure_ascii=False)}")
            elif (table.name, setting.name) == ("sessions", "agent"):
                lines.append(f'# agent = ""      # "" is the only one declared below, else {config.USUAL}')
            elif (table.name, setting.name) == ("merge", "check") and check is not None and holds:
                lines.append(f"check = {json.dumps(check)}")
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


def proposed_checks(project: Project, main: str) -> tuple[str, ...]:
    """Return the commands that seem to test what is on main, or what lies in the folder, the best first.

    Those come first whose programs are there.
    """
    found = proposed_gates.proposals(_tree_of(project, main)) or proposed_gates.proposals(_folder(project.root))
    step_back(project.root)  # the gate finds the user's tools, and not covey's own
    return tuple(sorted(found, key=lambda check: not _is_there(check, project.root)))


def _is_there(check: str, root: Path) -> bool:
    """Say whether the program is there with which a check begins."""
    words = [word for word in check.split() if "=" not in word]
    return (root / words[0]).exists() if "/" in words[0] else shutil.which(words[0]) is not None


def _tree_of(project: Project, main: str) -> Tree:
    """Return the files of main."""
    listed = try_git("ls-tree", "-r", "-z", "--name-only", f"refs/heads/{main}", at=project.common)
    names = listed.stdout.decode(errors="surrogateescape").split("\0") if listed.returncode == 0 else []

    def read(name: str) -> str:
        shown = try_git("cat-file", "blob", f"refs/heads/{main}:{name}", at=project.common)
        return shown.stdout[:LARGEST_FILE].decode(errors="replace")

    return Tree(frozenset(filter(None, names)), read)


def _folder(root: Path) -> Tree:
    """Return the files that lie in a folder and those right below it, for a repository whose main has no gate yet."""
    found = (path for pattern in ("*", "*/*") for path in root.glob(pattern) if ".git" not in path.parts)
    names = frozenset(str(path.relative_to(root)) for path in found if path.is_file())
    return Tree(names, lambda name: (root / name).read_bytes()[:LARGEST_FILE].decode(errors="replace"))


def _literal(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)


COMMAND = Command(
    "let covey look after this repository, and try its gate on main; a second time changes nothing",
    _arguments,
    init,
    example="cd myrepo && covey init\ncovey init --check   tries the gate on main again",
    owner=True,
)
