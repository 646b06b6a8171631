"""Put the launcher of this checkout's covey into a folder of the user's programs, and say if a shell finds it there."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from covey.installation import NAME, is_launcher, put_launcher, users_environment


def main(named: str) -> int:
    """Install into the named folder, or into the user's own; what is not ours is left alone."""
    folder = Path(named).expanduser().absolute() if named else _users_bin()
    target = folder / NAME
    if os.path.lexists(target) and not is_launcher(target):
        print(f"covey: {target} is there already, and was not made by make install.", file=sys.stderr)
        print("       Remove it, or choose another folder: make install BIN=FOLDER", file=sys.stderr)
        return 1
    try:
        put_launcher(folder)
    except OSError as error:
        print(f"covey: {target} cannot be written: {error.strerror}.", file=sys.stderr)
        print("       Choose another folder: make install BIN=FOLDER", file=sys.stderr)
        return 1
    print(f"covey: {target} calls the covey of this checkout.")
    for line in _advice(folder, target):
        print(line)
    return 0


def _users_bin() -> Path:
    """Return the first folder for programs of the user's own that is on the PATH, else the usual one."""
    usual = Path.home() / ".local" / "bin"
    choice = [usual, Path.home() / "bin", *([Path("/usr/local/bin")] if os.geteuid() == 0 else [])]
    return next((each for each in choice if _is_on_path(each)), usual)


def _is_on_path(folder: Path) -> bool:
    return os.path.realpath(folder) in map(os.path.realpath, os.environ.get("PATH", "").split(os.pathsep))


def _advice(folder: Path, target: Path) -> list[str]:
    """Return what is left to do before `covey` is this one in a new terminal."""
    said = []
    users = users_environment(os.environ, Path(os.devnull))
    if users != dict(os.environ):
        said += [
            f"covey: {sys.prefix}/bin is on your PATH, with covey's own python, pip and pytest before yours.",
            "       Nothing of it is needed there any more: take it out of your shell's profile.",
        ]
    if not _is_on_path(folder):
        said += [
            f"covey: {folder} is not on your PATH. Put this into your shell's profile, and type it now:",
            f'       export PATH="{folder}:$PATH"',
        ]
    elif (first := shutil.which(NAME, path=users["PATH"])) is not None and not os.path.samefile(first, target):
        said += [f"covey: {first} comes before it on your PATH."]
    return said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
