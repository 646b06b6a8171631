"""A room for a program in which it can read all and write little: bubblewrap, where it is there and works."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from covey.values import dataclass

PROGRAM = "bwrap"
PATIENCE = 20.0
TEMPORARY = ("/tmp", "/var/tmp")
CACHES = (
    ".cache", ".npm", ".yarn", ".pnpm-store", ".local/share/pnpm", ".bun/install", ".deno", ".node-gyp", ".cargo",
    ".rustup", ".gradle", ".m2", ".ivy2", ".sbt", ".coursier", "go/pkg", ".nuget", ".gem", ".bundle", ".hex", ".mix",
    ".stack", ".cabal", ".composer", ".pub-cache", ".local/share/uv", ".local/share/virtualenv", ".pyenv/shims",
    "Library/Caches",
)  # fmt: skip
"""Where tools keep what they have fetched or built, below HOME."""
NOT_CACHES = (".cargo/bin", ".cargo/env", ".cargo/config.toml", ".cargo/config", ".cargo/credentials.toml")
"""What lies among the caches and is a person's own."""
CACHE_VARIABLES = (
    "XDG_CACHE_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "npm_config_cache", "NPM_CONFIG_CACHE", "YARN_CACHE_FOLDER",
    "CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "GOCACHE", "GOMODCACHE", "GRADLE_USER_HOME", "CCACHE_DIR",
    "SCCACHE_DIR", "PRE_COMMIT_HOME", "HF_HOME", "NUGET_PACKAGES", "PLAYWRIGHT_BROWSERS_PATH",
)  # fmt: skip
"""Variables that name such a place."""
DROPPED = ("CAP_SYS_ADMIN", "CAP_SYS_PTRACE")
"""What root could leave a room with: by mounting anew, or through another process's view of the files."""
APART = (("--unshare-pid", "--proc", "/proc"), ("--bind", "/proc", "/proc"))
"""With processes of its own or with everybody's: in a container a room may be allowed, but no /proc of its own."""
_apart: int | None = None
"""Which of these a room was made with here before."""


@dataclass(frozen=True)
class Room:
    """What a program may write: its folder, a temporary folder of its own, caches, and what stands in for the rest."""

    folder: str
    temporary: str
    caches: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    """Places that can only be read, also where they lie in one that can be written; the folder may be in them."""
    shown: tuple[tuple[str, str], ...] = ()
    """What can be read at another place besides, and that place."""
    instead: tuple[tuple[str, str], ...] = ()
    """What the program finds and may write instead of something, and that."""
    alone: bool = False
    """It sees and can end only its own processes."""

    def has_own_temporary(self) -> bool:
        """Say whether /tmp is the program's own; not where it would hide what the program needs."""
        needed = (self.folder, *self.guarded)
        return not any(_is_in(place, top) for place in needed for top in map(os.path.realpath, TEMPORARY))


def inside(argv: Iterable[str], room: Room, cwd: str) -> tuple[str, ...]:
    """Return the words that start a program in a room."""
    words = _shell(APART[0] if room.alone else APART[1])
    for top in {os.path.realpath(each) for each in TEMPORARY if os.path.isdir(each)}:
        words += ["--bind", room.temporary if room.has_own_temporary() else top, top]
    for place in sorted(room.guarded, key=len):
        words += ["--ro-bind", place, place]
    words += ["--bind", room.temporary, room.temporary] if not room.has_own_temporary() else []
    for place in room.caches:
        words += ["--bind-try", place, place]
        words += [word for own in _own(place) for word in ("--ro-bind-try", own, own)]
    for place in (each for each in room.guarded if any(_is_in(each, cache) for cache in room.caches)):
        words += ["--ro-bind", place, place]
    words += ["--bind", room.folder, room.folder]
    for what, place in room.shown:
        words += ["--ro-bind", what, place]
    for what, place in room.instead:
        words += ["--bind", what, place]
    return (*words, "--chdir", cwd, "--", *argv)


def caches(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the places where the tools of a person keep what they fetch, as far as they are there."""
    home = env.get("HOME", "")
    found = [os.path.join(home, each) for each in CACHES] if os.path.isabs(home) else []
    found += [env[name] for name in CACHE_VARIABLES if os.path.isabs(env.get(name, ""))]
    outside = (os.path.realpath(each) for each in found if os.path.isdir(each))
    return tuple(dict.fromkeys(each for each in outside if each != "/" and not _is_in(os.path.realpath(home), each)))


def refusal(room: Room, cwd: str) -> str | None:
    """Return why this room cannot be made, None if a program can be started in it."""
    try:
        done = _run(inside(("/bin/sh", "-c", ":"), room, cwd))
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip() or f"{PROGRAM} ended with code {done.returncode}"


def trouble() -> str | None:
    """Return why no room can be made on this machine, None if one can; that is found out once."""
    global _apart
    if _apart is not None:
        return None
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM} is not installed"
    found: str | None = None
    for number, apart in enumerate(APART):
        found = _try(apart)
        if found is None:
            _apart = number
            break
    return found


def hides_processes() -> bool:
    """Say whether a room here can keep its program from the processes of others."""
    return trouble() is None and _apart == 0


def _try(apart: Iterable[str]) -> str | None:
    words = (
        *_shell(apart),
        "--bind",
        "/tmp",
        "/tmp",
        "--",
        "/bin/sh",
        "-c",
        f"! touch /{PROGRAM}-can-write 2>/dev/null",
    )
    try:
        done = _run(words)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{PROGRAM} does not work here: {error}"
    if done.returncode == 0:
        return None
    return f"{PROGRAM} does not work here: {done.stderr.strip()[:200] or f'it ended with code {done.returncode}'}"


def _shell(apart: Iterable[str]) -> list[str]:
    """Return the words for what all rooms are: everything can be read, nothing written."""
    words = [PROGRAM, "--die-with-parent", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", *apart]
    return [*words, *(word for each in DROPPED for word in ("--cap-drop", each))]


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False
    )


def _own(cache: str) -> list[str]:
    """Return what lies in a cache and is no cache."""
    parts = (each.partition("/") for each in NOT_CACHES)
    return [os.path.join(cache, name) for folder, _, name in parts if os.path.basename(cache) == folder]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
