"""covey hooks: let agents that people start themselves be told of leases and mail, like those that covey runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from covey.agents import hook_protocol
from covey.cli.frame.client import Client
from covey.cli.frame.command import Command, flag, option
from covey.errors import Invalid, ToolFailed
from covey.git import here

ABOUT = "Hooks for agents that you start yourself: they hear of leases and mail like those that covey runs."
AGENTS = ("claude", "codex")
RELAY = Path(__file__).parents[2] / "hooks" / "relay.py"
LOCAL = Path(".claude") / "settings.local.json"
EXCLUDED = f"# covey hooks install\n/{LOCAL.as_posix()}\n"
TRUST = " Codex asks once whether you trust them (/hooks)."
MAX_WRITE_TRIES = 20
"""How often settings are read again that somebody else changes at the same time."""

Settings = dict[str, object]


OPTIONS = (
    option("--agent", choices=AGENTS, default="claude", help="whose settings to change (default: claude)"),
    flag("--user", "in your own settings, for all your checkouts of this project"),
)


def install(args: Namespace, client: Client) -> None:
    """Put our hooks into an agent's settings, beside all that is there."""
    state = str(client.project().must_be_begun().state)
    relay, path = (sys.executable, "-I", "-S", str(RELAY)), _path(args, client)
    changed = _change(path, lambda before: hook_protocol.installed(before, relay, state, shared=not _is_local(args)))
    if _is_local(args):
        here.exclude(client.project(), _checkout(client), path, EXCLUDED)
    again = "" if changed else " already"
    _say(args, path, True, f"Hooks are{again} in {path}.{TRUST if args.agent == 'codex' else ''}")


def remove(args: Namespace, client: Client) -> None:
    """Take our hooks out of an agent's settings, and nothing else."""
    path, state = _path(args, client), _state(args, client)
    changed = _change(path, lambda before: None if before is None else hook_protocol.uninstalled(before, state))
    if changed and _is_local(args) and not path.exists():
        here.include(client.project(), LOCAL, EXCLUDED)
    text = f"Removed the hooks from {path}." if changed else f"There are no hooks of covey in {path}."
    _say(args, path, False, text)


def show(args: Namespace, client: Client) -> None:
    """Say where hooks of covey are installed."""
    path = _path(args, client)
    before = _read(path, _bytes(path))
    there = before is not None and hook_protocol.uninstalled(before, _state(args, client)) != before
    _say(args, path, there, f"{path} {'has' if there else 'has no'} hooks of covey.")


def _say(args: Namespace, path: Path, installed: bool, text: str) -> None:
    print(json.dumps({"agent": args.agent, "file": str(path), "installed": installed}) if args.json else text)


def _is_local(args: Namespace) -> bool:
    return args.agent == "claude" and not args.user


def _state(args: Namespace, client: Client) -> str | None:
    """Return whose hooks are meant: in settings for more than one checkout other projects have theirs too."""
    return None if _is_local(args) else str(client.project().state)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolFailed(f"{path} cannot be read: {error.strerror}.") from error


def _read(path: Path, data: bytes | None) -> Settings | None:
    """Return an agent's settings, None if there is no file."""
    if data is None:
        return None
    try:
        found = json.loads(data.decode() or "{}")
    except ValueError as error:
        raise Invalid(f"{path} is not valid JSON: {error}.", hint="Mend it first; nothing was changed.") from None
    if not isinstance(found, dict):
        raise Invalid(f"{path} is not a table of settings.", hint="Mend it first; nothing was changed.")
    return found


def _change(path: Path, change: Callable[[Settings | None], Settings | None]) -> bool:
    """Change an agent's settings, None being no file, through a link if the file is one; say whether they differ."""
    real = Path(os.path.realpath(path))
    for _ in range(MAX_WRITE_TRIES):
        data = _bytes(real)
        before = _read(path, data)
        after = change(before)
        if after == before:
            return False
        try:
            if replaced(real, data, after):
                return True
        except OSError as error:
            raise ToolFailed(f"{path} cannot be written: {error.strerror}.") from error
    raise ToolFailed(f"{path} is changed by somebody else all the time.", hint="Try again.")


def replaced(path: Path, before: bytes | None, settings: Settings | None) -> bool:
    """Write settings whole, with the rights that the file has; not if it holds anything else than before by now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if before is not None else 0o600
    new = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        if settings is not None:
            new.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            new.chmod(mode)
        with _alone(path.parent):  # the agent knows nothing of that: nothing slow stands between look and rename
            if _bytes(path) != before:
                return False
            path.unlink() if settings is None else new.replace(path)
        return True
    finally:
        new.unlink(missing_ok=True)
        if settings is None:
            with contextlib.suppress(OSError):  # most have other files of the agent's in them
                path.parent.rmdir()


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other commands of covey from changing what is in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _path(args: Namespace, client: Client) -> Path:
    home = Path.home()
    if args.agent == "codex":
        return Path(os.environ.get("CODEX_HOME") or home / ".codex") / "hooks.json"
    if args.user:
        return Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "settings.json"
    return _checkout(client) / LOCAL


def _checkout(client: Client) -> Path:
    top = here.top(Path(client.folder))
    if top is None:
        raise ToolFailed(f"{client.folder} is not in a checkout of a repository.", hint="Go into one.")
    return top


PRINTS = "the agent, the file and whether hooks are there"
COMMANDS = {
    "install": Command("add covey's hooks to an agent that you start yourself in this checkout", OPTIONS,
                       install, owner=True, prints=PRINTS, example="covey hooks install && claude"),
    "remove": Command("remove covey's hooks, and nothing else", OPTIONS, remove, owner=True, prints=PRINTS,
                      example="covey hooks remove"),
    "show": Command("show whether covey's hooks are installed", OPTIONS, show, prints=PRINTS,
                    example="covey hooks show"),
}  # fmt: skip
