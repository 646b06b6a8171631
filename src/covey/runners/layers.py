"""Lays layers that can be thrown away over folders, which only this process and its children see.

It imports nothing of covey's: the wrapper of a run uses it, and it is a program too, which becomes another:

    layers.py LAYERS WORDS...

LAYERS is JSON: a list of layers, each as the list of its parts; see `covey.core.launches.Layer`.
"""

import ctypes
import errno
import os
import sys

FAILED_EXIT_CODE = 97
"""The exit code of a program that was never started, since a layer could not be laid."""
NEW_USERS, NEW_MOUNTS = 0x10000000, 0x00020000
RECURSIVE, PRIVATE = 0x4000, 0x40000
OPEN_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    import json  # not for the wrapper: it costs as much as a start of Python

    lay_all(json.loads(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])


def lay_all(layers: list) -> None:  # type: ignore[type-arg]
    """Lay all layers, or end here with a word about why not."""
    try:
        own_users = enter()
        for layer in layers:
            lay(own_users, *layer)
    except OSError as error:
        os.write(2, f"layers: {error}\n".encode(errors="replace"))
        os._exit(FAILED_EXIT_CODE)


def enter() -> bool:
    """Get a view of the files of our own, and say whether that needed users of our own."""
    user, group = os.geteuid(), os.getegid()
    own_users = user != 0 or libc.unshare(NEW_MOUNTS) != 0
    if own_users:
        must(libc.unshare(NEW_USERS | NEW_MOUNTS), "no view of the files of its own")
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} {user} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
    must(libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None), "/")
    return own_users


def lay(own_users: bool, place: str, lower: list, upper: str, work: str, absent: list) -> None:  # type: ignore[type-arg]
    """Lay one layer, its paths named by descriptors, which need no quoting; hide what must not be seen."""
    under = [os.open(each, os.O_PATH | os.O_DIRECTORY) for each in lower]
    over, beside = (os.open(each, os.O_PATH | os.O_DIRECTORY) for each in (upper, work))
    named = ":".join(f"/proc/self/fd/{each}" for each in under)
    options = f"lowerdir={named},upperdir=/proc/self/fd/{over},workdir=/proc/self/fd/{beside}"
    options += ",userxattr" if own_users else ""
    must(libc.mount(b"overlay", os.fsencode(place), b"overlay", 0, options.encode()), place)
    for each in (*under, over, beside):
        os.close(each)
    for name in absent:
        hide(place, name)


def hide(place: str, name: str) -> None:
    """Delete a file in a layer, and nothing behind a link: that would lie outside of it."""
    *folders, last = name.split("/")
    here = os.open(place, OPEN_FOLDER)
    try:
        for each in folders:
            here, above = os.open(each, OPEN_FOLDER, dir_fd=here), here
            os.close(above)
        os.unlink(last, dir_fd=here)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    finally:
        os.close(here)


def must(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: {what}")


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
