"""What a gate is given to work in: its room, and what of the repository, of the person's tools and of HOME is in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

from covey.config import Config
from covey.core import guarded
from covey.core.launches import Layer
from covey.git.carry import MARK
from covey.git.guard import Settings
from covey.git.project import Project
from covey.git.run import try_git
from covey.loops.outfit import gate_env
from covey.loops.warmth import Lent
from covey.runners import tools
from covey.runners.sandbox import Room

UPPER = "upper"
TREE = "tree"
"""The layer over the worktree."""
GIT = ("HEAD", "config", "description", "index", "packed-refs", "shallow", "objects", "refs", "reftable", "info",
       "hooks", "branches", "lfs", "rebase-merge", "rebase-apply", "sequencer")  # fmt: skip
"""What of a repository's git folder a gate sees: not the settings of submodules, sockets, or what others keep there."""
_PASSING = re.compile(
    rf".*(?:_HEAD|_MSG|_EDITMSG|_MERGE|\.lock)|(?:gc\.|tmp|sharedindex\.|BISECT_|{MARK}).*", re.DOTALL
)
"""Files that git, and a landing, make and take away at any moment: what is gone by then cannot be hidden."""
SETTINGS = frozenset((
    "core", "extensions", "remote", "branch", "submodule", "user", "init", "index", "pack", "feature", "fetch", "push",
    "pull", "merge", "rebase", "diff", "status", "i18n", "log", "advice", "gc", "tag", "commit", "checkout", "apply",
    "lfs", "filter", "rerere", "color", "versionsort",
))  # fmt: skip
"""The sections of its settings that a gate sees: any other may hold a password."""
_PRIVATE = frozenset(("sshcommand", "askpass", "gitproxy", "proxy", "password", "token"))
_USERINFO = re.compile(r"(?<=://)[^/\s\"]*@")


def make(
    project: Project, config: Config, path: Path, entry: Path, folder: Path, temporary: str, *, layered: bool,
    lent: Lent | None, said: Settings,
) -> Room:  # fmt: skip
    """Return the room of a gate, and write into `folder` what stands in it for something else."""
    env = environment(config)
    common, state, place = (os.path.realpath(each) for each in (project.common, project.state, folder))
    own = Path(place)
    shutil.copytree(entry, own / "entry", symlinks=True)
    _borrow(Path(common) / "objects", own)
    _write_settings(said, Path(common), own)
    home, caches = env.get("HOME", ""), tools.caches(env)
    layers: tuple[Layer, ...] = ()
    if layered:
        secrets = tools.secrets(env)
        under = (str(path) if lent is None else str(lent.folder), *(() if lent is None else (str(path),)))
        layers = (
            _layer(own, TREE, os.path.realpath(path), under),
            *(_layer(own, f"cache-{n}", each, (each,), secrets) for n, each in enumerate(caches)),
        )
    return Room(
        folder=os.path.realpath(path),
        temporary=temporary,
        layers=layers,
        readable=tuple(dict.fromkeys((*_seen(project, config, env), *(() if layered else caches), common,
                                      f"{state}/hooks", *shown(config)))),
        shown=((f"{common}/objects", f"{place}/store"), (f"{place}/config", f"{common}/config")),
        instead=(
            (f"{place}/objects", f"{common}/objects"),
            (f"{place}/entry", os.path.realpath(entry)),
            *(((f"{place}/home", home),) if home else ()),
        ),
        hidden=tuple(dict.fromkeys((state, *_besides(common), *(() if layered else tools.secrets(env))))),
        network=config.merge.network,
    )  # fmt: skip


def environment(config: Config) -> dict[str, str]:
    """Return the environment of a gate, with the real path of HOME: a link to it is not in the room."""
    env = gate_env(config.merge.env, network=config.merge.network)
    home = env.get("HOME", "")
    usable = os.path.isabs(home) and os.path.realpath(home) != "/"
    return env | {"HOME": os.path.realpath(home)} if usable else {k: v for k, v in env.items() if k != "HOME"}


def upper(folder: Path) -> Path:
    """Return where lies what a gate wrote into its worktree."""
    return folder / "layers" / TREE / UPPER


def shown(config: Config) -> tuple[str, ...]:
    """Return what the settings show besides."""
    return tuple(os.path.normpath(os.path.expanduser(each)) for each in config.merge.show)


def held_back(config: Config) -> frozenset[str]:
    """Return the variables of ours that a gate does not get."""
    return frozenset(os.environ) - frozenset(environment(config))


def is_hidden(room: Room, path: str) -> bool:
    """Say whether something is there, and not in the room."""
    path = os.path.expanduser(path)
    seen = (room.folder, *room.readable, *(each.place for each in room.layers), "/proc", "/dev")
    return os.path.exists(path) and not tools.is_system(path) and not any(tools.is_in(path, each) for each in seen)


def _seen(project: Project, config: Config, env: dict[str, str]) -> tuple[str, ...]:
    """Return what is shown for tools: where they lie, and what the checks name by its whole path."""
    named = [word for command in guarded.commands_of(config.merge) for word in _words(command)]
    whole = (os.path.expanduser(re.sub(r"^\$(?:HOME|\{HOME\})(?=/)", "~", word)) for word in named)
    private = (str(project.root), str(project.common), str(project.state))
    return tools.installed(env, (each for each in whole if os.path.isabs(each) and os.path.exists(each)), private)


def _words(command: str) -> Iterable[str]:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return (part.strip("();<>|&\"'") for word in words for part in re.split(r"[\s;|&<>()=]", word))


def _layer(own: Path, name: str, place: str, lower: tuple[str, ...], secrets: tuple[str, ...] = ()) -> Layer:
    folder = own / "layers" / name
    for part in (UPPER, "work"):
        (folder / part).mkdir(mode=0o755, parents=True)
    with contextlib.suppress(OSError):
        shutil.copymode(place, folder / UPPER)
    absent = tuple(os.path.relpath(each, place) for each in secrets if tools.is_in(each, place))
    return Layer(place, lower, str(folder / UPPER), str(folder / "work"), absent)


def _write_settings(said: Settings, common: Path, own: Path) -> None:
    """Write git's settings as a gate may see them: the repository's without credentials, and who the person is."""
    (own / "home" / ".cache").mkdir(mode=0o700, parents=True)  # Most tools keep something there.
    lines = [f"[{key.split('.')[0]}]\n\t{key.split('.')[1]} = {json.dumps(value)}\n" for key, value in said.person]
    (own / "home" / ".gitconfig").write_text("".join(lines), encoding="utf-8", errors="replace")
    asked = try_git("config", "--file", str(common / "config"), "--null", "--list", at=common)
    shared = asked.stdout.decode(errors="surrogateescape").split("\0")
    plain = "".join(_setting(*line.partition("\n")) for line in shared if line)
    (own / "config").write_text(plain, encoding="utf-8", errors="surrogateescape")


def _setting(key: str, given: str, value: str) -> str:
    """Return a setting of git as a gate may see it, empty if it may not."""
    section, _, rest = key.partition(".")
    part, _, name = rest.rpartition(".")
    if section not in SETTINGS or name in _PRIVATE:
        return ""
    quoted = [_USERINFO.sub("", each).replace("\\", "\\\\").replace('"', '\\"') for each in (part, value)]
    head = f'[{section} "{quoted[0]}"]' if part else f"[{section}]"
    said = quoted[1].replace("\n", "\\n").replace("\t", "\\t")
    return f"{head}\n\t{name}" + (f' = "{said}"\n' if given else "\n")


def _besides(common: str) -> tuple[str, ...]:
    """Return what is in a repository's git folder and not git's own."""
    try:
        names = os.listdir(common)
    except OSError:
        return ()
    found = (f"{common}/{each}" for each in names if each not in GIT and not _PASSING.fullmatch(each))
    # A link holds nothing itself, and nothing can be laid over one: what it leads to is in the room, or is not.
    return tuple(place for place in found if not os.path.islink(place))


def _borrow(objects: Path, folder: Path) -> None:
    """Make an object store of a gate's own, which borrows all objects that there are from where they will be shown."""
    (folder / "store").mkdir()
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "objects" / "pack").mkdir()
    lenders = [str(folder / "store")]
    with contextlib.suppress(OSError):
        said = (objects / "info" / "alternates").read_text(errors="surrogateescape").splitlines()
        lenders += [os.path.normpath(objects / line) for line in said if line and not line.startswith("#")]
    text = "".join(f"{line}\n" for line in lenders)
    (folder / "objects" / "info" / "alternates").write_text(text, errors="surrogateescape")
