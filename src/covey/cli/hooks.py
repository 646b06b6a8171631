"""covey hooks: let agents that people start themselves be told of leases and mail, like those that covey runs."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from pathlib import Path

from covey.agents import hooked
from covey.cli.client import Client
from covey.cli.command import Command, Parser
from covey.errors import Invalid, ToolFailed
from covey.git.entries import write_whole
from covey.git.run import git, try_git

ABOUT = "Hooks for agents that you start yourself: they hear of leases and mail like those that covey runs."
AGENTS = ("claude", "codex")
RELAY = Path(__file__).parents[1] / "hooks" / "relay.py"
LOCAL = Path(".claude") / "settings.local.json"
TRUST = " Codex asks once whether you trust them (/hooks)."


def _arguments(parser: Parser) -> None:
    parser.add_argument("--agent", choices=AGENTS, default="claude", help="whose settings (claude)")
    parser.add_argument(
        "--user", action="store_true", help="in your own settings, for all your checkouts of this project"
    )


def install(args: Namespace, client: Client) -> None:
    """Put our hooks into an agent's settings, beside all that is there."""
    project = client.project().must_be_begun()
    path, before = _settings(args, client)
    relay = (sys.executable, "-I", "-S", str(RELAY))
    after = hooked.installed(before, relay, str(project.state))
    if after != before:
        _write(path, after)
    if _is_local(args):
        _exclude(client, path)
    again = "" if after != before else " already"
    _say(args, path, True, f"Hooks are{again} in {path}.{TRUST if args.agent == 'codex' else ''}")


def remove(args: Namespace, client: Client) -> None:
    """Take our hooks out of an agent's settings, and nothing else."""
    path, before = _settings(args, client)
    after = hooked.uninstalled(before)
    if after == before:
        _say(args, path, False, f"There are no hooks of covey in {path}.")
        return
    if after:
        _write(path, after)
    else:
        path.unlink()
    _say(args, path, False, f"Removed the hooks from {path}.")


def show(args: Namespace, client: Client) -> None:
    """Say where hooks of covey are installed."""
    path, before = _settings(args, client)
    there = hooked.uninstalled(before) != before
    _say(args, path, there, f"{path} {'has' if there else 'has no'} hooks of covey.")


def _say(args: Namespace, path: Path, installed: bool, text: str) -> None:
    print(json.dumps({"agent": args.agent, "file": str(path), "installed": installed}) if args.json else text)


def _is_local(args: Namespace) -> bool:
    return args.agent == "claude" and not args.user


def _settings(args: Namespace, client: Client) -> tuple[Path, dict[str, object]]:
    """Return the file with an agent's settings, and what stands in it."""
    path = _path(args, client)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return path, {}
    except (OSError, UnicodeDecodeError) as error:
        raise ToolFailed(f"{path} cannot be read: {error}.") from error
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise Invalid(f"{path} is no valid JSON: {error}.", hint="Mend it first; nothing was changed.") from None
    if not isinstance(found, dict):
        raise Invalid(f"{path} is no table of settings.", hint="Mend it first; nothing was changed.")
    return path, found


def _path(args: Namespace, client: Client) -> Path:
    home = Path.home()
    if args.agent == "codex":
        return Path(os.environ.get("CODEX_HOME") or home / ".codex") / "hooks.json"
    if args.user:
        return Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "settings.json"
    return _checkout(client) / LOCAL


def _checkout(client: Client) -> Path:
    return Path(os.fsdecode(git("rev-parse", "--show-toplevel", at=Path(client.folder))).removesuffix("\n"))


def _write(path: Path, settings: dict[str, object]) -> None:
    """Write settings whole, through a link if the file is one, with the rights that it has."""
    real = Path(os.path.realpath(path))
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
        write_whole(real, json.dumps(settings, indent=2, ensure_ascii=False) + "\n", mode)
    except OSError as error:
        raise ToolFailed(f"{path} cannot be written: {error.strerror}.") from error


def _exclude(client: Client, path: Path) -> None:
    """Keep git from showing the file as new: it is this machine's own."""
    top = _checkout(client)
    if try_git("check-ignore", "--quiet", str(path), at=top).returncode == 0:
        return
    if try_git("ls-files", "--error-unmatch", str(path), at=top).returncode == 0:
        return  # somebody has committed it, and will see the change
    exclude = client.project().common / "info" / "exclude"
    exclude.parent.mkdir(parents=True, exist_ok=True)
    text = exclude.read_text(encoding="utf-8", errors="surrogateescape") if exclude.exists() else ""
    gap = "" if not text or text.endswith("\n") else "\n"
    write_whole(exclude, f"{text}{gap}/{LOCAL.as_posix()}\n")


PRINTS = "the agent, the file and whether hooks are there"
COMMANDS = {
    "install": Command("let an agent that you start yourself in this checkout ask covey at every step", _arguments,
                       install, owner=True, prints=PRINTS, example="covey hooks install && claude"),
    "remove": Command("take the hooks out again, and nothing else", _arguments, remove, owner=True, prints=PRINTS,
                      example="covey hooks remove"),
    "show": Command("say whether the hooks are there", _arguments, show, prints=PRINTS, example="covey hooks show"),
}  # fmt: skip
