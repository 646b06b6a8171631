"""What a person's tools are made of: where they lie, what they keep, and which of their files hold a secret."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from covey.runners.sandbox import SYSTEM

TOOLS = (
    ".pyenv", ".rbenv", ".nodenv", ".goenv", ".jenv", ".nvm", ".fnm", ".volta", ".asdf", ".sdkman", ".rustup", ".ghcup",
    ".opam", ".elan", ".foundry", ".swiftly", ".dotnet", ".juliaup", ".julia", ".nix-profile", ".linuxbrew", ".bun",
    ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/mise", ".local/share/fnm",
    ".local/share/uv", ".local/share/pnpm", ".local/share/virtualenv", ".local/share/gem", ".virtualenvs", "bin",
    "go", "flutter", "Android/Sdk", "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".conda/envs",
)  # fmt: skip
"""Where programs are installed below HOME: they can be read and run."""
CACHES = (
    ".cache", ".npm", ".yarn", ".pnpm-store", ".bun/install", ".deno", ".node-gyp", ".cargo", ".gradle", ".m2", ".ivy2",
    ".sbt", ".coursier", "go/pkg", ".nuget", ".gem", ".bundle", ".hex", ".mix", ".stack", ".cabal", ".composer",
    ".pub-cache", "Library/Caches",
)  # fmt: skip
"""Where tools keep what they have fetched or built, below HOME."""
CACHE_VARIABLES = (
    "XDG_CACHE_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "npm_config_cache", "NPM_CONFIG_CACHE", "YARN_CACHE_FOLDER",
    "CARGO_HOME", "CARGO_TARGET_DIR", "GOCACHE", "GOMODCACHE", "GRADLE_USER_HOME", "CCACHE_DIR", "SCCACHE_DIR",
    "PRE_COMMIT_HOME", "HF_HOME", "NUGET_PACKAGES", "PLAYWRIGHT_BROWSERS_PATH",
)  # fmt: skip
"""Variables that name such a place."""
OWN_CACHES = (
    "XDG_CACHE_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "npm_config_cache", "YARN_CACHE_FOLDER", "GOCACHE", "CCACHE_DIR",
    "SCCACHE_DIR",
)  # fmt: skip
"""Those whose place may be an empty one: where the caches can only be read, they name one that can be written."""
TOOL_VARIABLES = (
    "JAVA_HOME", "GOROOT", "GOPATH", "RUSTUP_HOME", "PYENV_ROOT", "RBENV_ROOT", "NVM_DIR", "NVM_BIN", "VOLTA_HOME",
    "ASDF_DIR", "ASDF_DATA_DIR", "SDKMAN_DIR", "ANDROID_HOME", "ANDROID_SDK_ROOT", "DOTNET_ROOT", "GEM_HOME",
    "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "M2_HOME", "MAVEN_HOME", "GRADLE_HOME", "VIRTUAL_ENV", "CONDA_PREFIX",
    "UV_PYTHON_INSTALL_DIR", "FLUTTER_ROOT", "JULIA_DEPOT_PATH",
)  # fmt: skip
"""Variables that name where a tool is installed."""
SECRETS = (
    ".cargo/credentials", ".cargo/credentials.toml", ".gradle/gradle.properties", ".gradle/init.gradle",
    ".m2/settings.xml", ".m2/settings-security.xml", ".ivy2/.credentials", ".sbt/.credentials",
    ".sbt/1.0/credentials.sbt", ".gem/credentials", ".bundle/config", ".hex/hex.config", ".composer/auth.json",
    ".nuget/NuGet/NuGet.Config", ".pub-cache/credentials.json", ".cabal/config", ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens", ".yarn/.npmrc", ".coursier/credentials.properties",
)  # fmt: skip
"""Files among the caches that hold, or may hold, what opens something else."""
PROGRAMS = ("bin", "sbin", "shims", "Scripts", "condabin")
"""Names of folders of programs that belong to the folder above them."""
PARTS = (*PROGRAMS, "lib", "lib64", "libexec", "share", "include", "versions", "node_modules", "local", "pyvenv.cfg")
"""What is shown, besides programs, of a folder below HOME whose name begins with a dot: many keep a login there too."""
MAX_LINKS = 4096
"""Programs of one folder that are looked at."""
_IN_SYSTEM = tuple(f"{top}/" for top in SYSTEM)


def installed(env: Mapping[str, str], besides: Iterable[str], private: Iterable[str]) -> tuple[str, ...]:
    """Return what must be seen for a person's tools to work, and what is named besides; never what holds `private`."""
    found = _kept_in(env, TOOLS, TOOL_VARIABLES)
    apart = tuple(os.path.realpath(each) for each in (env.get("HOME", ""), *private) if os.path.isabs(each))
    for folder in filter(os.path.isabs, env.get("PATH", "").split(os.pathsep)):
        found += _programs(folder, apart)
    for path in filter(os.path.isabs, besides):
        found += [path] if os.path.isdir(path) else [path, *_programs(os.path.dirname(path), apart, path)]
    there = (each for each in dict.fromkeys(map(os.path.normpath, found)) if os.path.exists(each))
    return tuple(each for each in there if not is_system(each) and not _holds(each, apart))


def _kept_in(env: Mapping[str, str], below_home: Iterable[str], variables: Iterable[str]) -> list[str]:
    """Return folders below HOME, and those that variables name, by whole paths only."""
    home = env.get("HOME", "")
    found = [os.path.join(home, each) for each in below_home] if os.path.isabs(home) else []
    return found + [env[name] for name in variables if os.path.isabs(env.get(name, ""))]


def caches(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the places where the tools of a person keep what they fetch, as far as they are there."""
    home = os.path.realpath(env.get("HOME", ""))
    found = filter(os.path.isdir, _kept_in(env, CACHES, CACHE_VARIABLES))
    kept = [each for each in dict.fromkeys(map(os.path.realpath, found)) if each != "/" and not is_in(home, each)]
    # One that lies in another is seen with that.
    return tuple(each for each in kept if not any(each != other and is_in(each, other) for other in kept))


def secrets(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files among the caches that no gate may see, where they really are."""
    home = os.path.realpath(env.get("HOME", "/"))
    found = [os.path.join(home, each) for each in SECRETS]
    if os.path.isabs(env.get("CARGO_HOME", "")):
        found += [os.path.join(env["CARGO_HOME"], name) for name in ("credentials", "credentials.toml")]
    return tuple(dict.fromkeys(os.path.realpath(each) for each in found if os.path.isfile(each)))


def is_system(path: str) -> bool:
    """Say whether every room shows this anyway."""
    return path in SYSTEM or path.startswith(_IN_SYSTEM)


def is_in(path: str, folder: str) -> bool:
    """Say whether a path is that of a folder, or of something in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _programs(folder: str, apart: tuple[str, ...], only: str = "") -> Iterator[str]:
    """Yield what the programs of a folder need: what they were installed with, and what they are links to."""
    if is_system(folder) or not os.path.isdir(folder):
        return
    yield from _around(folder, apart)
    with os.scandir(folder) as entries:
        links = (each.path for each in islice(entries, MAX_LINKS) if each.is_symlink())
        ways = (_behind(link) for link in (links if not only else filter(os.path.islink, (only,))))
        places = dict.fromkeys(place for way in ways for place in way)
    for place in places:
        yield from _around(place, apart)


def _around(folder: str, apart: tuple[str, ...]) -> Iterator[str]:
    """Yield a folder of programs, and what it is a part of, such as a virtual environment."""
    yield from _open_parts(folder, apart)
    above = os.path.dirname(os.path.realpath(folder))
    if os.path.basename(folder) in PROGRAMS and os.path.basename(above) != ".local" and not _holds(above, apart):
        yield from _open_parts(above, apart)
        yield from _base(above)


def _open_parts(folder: str, apart: tuple[str, ...]) -> Iterator[str]:
    """Yield a folder, or what makes up the tool in it if it is one in which tools keep what is the person's."""
    above, name = os.path.split(os.path.realpath(folder))
    if above not in apart[:1] or not name.startswith("."):
        yield folder
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, MAX_LINKS):
            if entry.name in PARTS or (entry.is_file() and os.access(entry.path, os.X_OK)):
                yield entry.path


def _base(place: str) -> Iterator[str]:
    """Yield what a virtual environment of Python was made from."""
    try:
        with open(os.path.join(place, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            said = dict(line.partition("=")[::2] for line in file.read(4096).splitlines())
    except OSError:
        return
    home = next((value.strip() for name, value in said.items() if name.strip() == "home"), "")
    if os.path.isabs(home) and not is_system(home):
        yield home
        yield os.path.dirname(os.path.realpath(home))


def _behind(link: str) -> Iterator[str]:
    """Yield the folder of each step of the way that leads to a program which is a link."""
    for _ in range(10):
        if is_system(link) or not os.path.islink(link):
            return
        link = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
        if not is_system(link) and os.path.exists(link):
            yield os.path.dirname(link)


def _holds(folder: str, apart: tuple[str, ...]) -> bool:
    real = os.path.realpath(folder)
    return any(is_in(each, real) for each in apart)
