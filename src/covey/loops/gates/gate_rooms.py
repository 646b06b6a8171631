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

from covey import trash
from covey.agents.environment import NO_BYTECODE, PROXIES
from covey.config import Config
from covey.core.fleet.launches import Layer
from covey.core.merging import guarded_files
from covey.git.guard import gate_view
from covey.git.guard.guard import Settings
from covey.git.project import Project
from covey.loops.gates.warm_folders import Lent
from covey.runners import sandbox, tools
from covey.runners.sandbox import Room

UPPER = "upper"
TREE = "tree"
"""The layer over the worktree."""
GATE_ALLOWED = (
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "CI",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "CC", "CXX", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "PYENV_VERSION",
    "RUSTUP_TOOLCHAIN", "CONDA_DEFAULT_ENV", "GEM_PATH",
)  # fmt: skip
"""Variables of ours that every gate gets, with those that say where tools and their caches are."""


def make(
    project: Project, config: Config, path: Path, entry: Path, folder: Path, temporary: str, *, layered: bool,
    lent: Lent | None, said: Settings,
) -> Room:  # fmt: skip
    """Return the room of a gate, and write into `folder` what stands in it for something else."""
    env = environment(config)
    common, state, place = (os.path.realpath(each) for each in (project.common, project.state, folder))
    own = Path(place)
    shutil.copytree(entry, own / "entry", symlinks=True)
    gate_view.borrow_objects(Path(common) / "objects", own)
    # git's settings as a gate may see them: the repository's without credentials, and who the person is.
    (own / "home" / ".cache").mkdir(mode=0o700, parents=True)  # Most tools keep something there.
    lines = [f"[{key.split('.')[0]}]\n\t{key.split('.')[1]} = {json.dumps(value)}\n" for key, value in said.person]
    (own / "home" / ".gitconfig").write_text("".join(lines), encoding="utf-8", errors="replace")
    (own / "config").write_text(gate_view.settings(Path(common)), encoding="utf-8", errors="surrogateescape")
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
        hidden=tuple(dict.fromkeys((state, *gate_view.hidden(common), *(() if layered else tools.secrets(env))))),
        network=config.merge.network,
    )  # fmt: skip


def environment(config: Config) -> dict[str, str]:
    """Return what a gate gets of our environment: what names tools and places, and what the settings name besides.

    HOME is given by its real path: a link to it is not in the room.
    """
    given = (*tools.TOOL_VARIABLES, *tools.CACHE_VARIABLES, *(PROXIES if config.merge.network else ()))
    named = {*GATE_ALLOWED, *given, *config.merge.env}
    own = {name: value for name, value in os.environ.items() if name in named or name.startswith("LC_")}
    env = {"LANG": "C.UTF-8", "PATH": os.defpath, **own, **NO_BYTECODE}
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
    named = [word for command in guarded_files.commands_of(config.merge) for word in _words(command)]
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


def limits(trouble: str | None) -> tuple[str, ...]:
    """Return from what a gate is not kept on this machine, in sentences."""
    if trouble is not None:
        return (
            f"Gates run in no room of their own ({trouble}): what agents wrote runs there with your rights, and can "
            "read your files and logins, write anywhere and use the network.",
        )
    powers = sandbox.powers()
    said = []
    if powers is not None and not powers.processes:
        said.append("Gates see the processes of others, and through them what is hidden from gates: no room here can "
                    "have its own.")  # fmt: skip
    if powers is not None and not powers.network:
        said.append("Gates reach the network, and whatever listens on this machine: no room here can have its own.")
    return tuple(said)


def remove(folder: Path) -> None:
    """Remove the room of a gate, and its temporary folder first, which only the room knows."""
    with contextlib.suppress(OSError):
        trash.remove(Path(os.readlink(folder / "temporary")))
    trash.remove(folder)
