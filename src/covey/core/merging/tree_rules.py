"""Which folders a commit may hold: the names, kinds and order of their entries, as git, disks and people can take them.

Every tool that checks a tree out believes these; a tree made by hand can break them, and then one of git's own
programs fails on it. What is only odd may land once a person has looked at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from covey.core.texts import harmless
from covey.values import dataclass

LONGEST_NAME_BYTES = 255
"""What disks take."""
LONGEST_PATH_BYTES = 3072
"""What Linux takes of a path is 4096; the rest is for the folder of the worktree."""
DEEPEST_FOLDERS = 200
MAX_NEW_FILES = 200_000
"""Files that a change may bring at once before a person has looked at it."""
MAX_COPIES = 100
"""How often a change may hold the same folder."""
LARGEST_FILE_BYTES = 256 * 1024**2
FOLDER, LINK, MODULE = b"40000", b"120000", b"160000"
FILE_MODES = (b"100644", b"100755")
_SHOWN = 120
"""Characters of a path that is told."""
_IGNORED_ON_MAC = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_DOT_GIT_ON_WINDOWS = re.compile(r"(?:\.git|git~1)[ .]*(?:\Z|[:\\])", re.IGNORECASE)
_MODULES = re.compile(r"(?:\.gitmodules|gitmod~[1-4]|gi7eba~[1-9]|gi7eb~[0-9]{2})[ .]*(?:\Z|:)", re.IGNORECASE)
_PLAIN = re.compile(rb"[A-Za-z0-9_-][A-Za-z0-9_.+@,=-]{0,200}")
_PLAIN_FOLDERS = {
    size: re.compile(
        rb"(?:(?:100644|100755|40000) [A-Za-z0-9_-][A-Za-z0-9_.+@,=-]{0,200}\0(?!\0{%d}).{%d})*+" % (size, size),
        re.DOTALL,
    )
    for size in (20, 32)
}
"""Folders, by the bytes of a hash, in which nothing can be wrong with any entry by itself."""
_ROWS = {size: re.compile(rb"([0-7]++) ([^\0/]++)\0(.{%d})" % size, re.DOTALL) for size in (20, 32)}
_ALL_ROWS = {size: re.compile(rb"(?:[0-7]++ [^\0/]++\0.{%d})*+" % size, re.DOTALL) for size in (20, 32)}
"""Whole trees, matched first: in other bytes the search for entries would start again at every byte."""
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_SETTINGS = (".gitattributes", ".gitignore", ".mailmap")


Row = tuple[bytes, bytes, bytes]
"""Mode, name and hash of an entry, where there are too many to make values of them."""


@dataclass(frozen=True)
class Finding:
    """Something in new work that cannot land, or only if a person lets it."""

    what: str
    is_odd: bool = False
    """A person may let it land."""
    path: bytes = b""
    """The entry that it is about, if it is about one."""
    entry: tuple[bytes, bytes] | None = None
    """Mode and hash of that: where main has just this there already, it is nothing new."""
    is_heavy: bool = False
    """It would unfold to more than can be held: do not even list it."""


@dataclass(frozen=True)
class Entry:
    """One name in a folder."""

    mode: bytes
    name: bytes
    hash: bytes

    @property
    def is_folder(self) -> bool:
        """Say whether it is a folder."""
        return self.mode.lstrip(b"0") == FOLDER


def shown(path: bytes) -> str:
    """Return a path as one line that nobody can take for anything else."""
    text = path.decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}...{text[-_SHOWN // 2 :]}"
    return f"'{harmless(text)}'"


def entries(content: bytes, hash_bytes: int) -> list[Entry] | None:
    """Read a tree as git keeps it; None if it is not a tree."""
    found: list[Entry] = []
    at = 0
    while at < len(content):
        space = content.find(b" ", at)
        end = content.find(b"\0", space + 1)
        following = end + 1 + hash_bytes
        if space < 0 or end < 0 or following > len(content):
            return None
        found.append(Entry(content[at:space], content[space + 1 : end], content[end + 1 : following]))
        at = following
    return found


def rows(content: bytes, hash_bytes: int) -> list[Row] | None:
    """Read a tree as git keeps it, and fast; None if it is not a tree, or odd in a way that its entries do not show."""
    if not _ALL_ROWS[hash_bytes].fullmatch(content):
        return None
    found: list[Row] = _ROWS[hash_bytes].findall(content)
    return found if len({name for _, name, _ in found}) == len(found) else None


def plain_rows(content: bytes, hash_bytes: int) -> list[Row] | None:
    """Return the entries of a folder in which `check` finds nothing, as in nearly all; None if it has to look."""
    found = rows(content, hash_bytes) if _PLAIN_FOLDERS[hash_bytes].fullmatch(content) else None
    if found is None or len({name.lower() for _, name, _ in found}) < len(found):
        return None
    return found if is_in_order(found) else None


def is_in_order(found: Sequence[Row]) -> bool:
    """Say whether entries stand in git's order: by their names, those of folders as if they ended with a slash."""
    keys = [name + b"/" if mode == FOLDER else name for mode, name, _ in found]
    return keys == sorted(keys)


def check(tree: Sequence[Entry], folder: bytes) -> Iterator[Finding]:
    """Yield what is wrong or odd with the entries of one folder."""
    last = None
    seen: set[bytes] = set()
    folded: dict[str, bytes] = {}
    for each in tree:
        path = folder + each.name
        found = None if _is_plain(each) else _name(each.name) or _mode(each)
        if found is not None:
            yield Finding(f"{shown(path)} {found[0]}", found[1], path, (each.mode, each.hash))
        if each.name in seen:
            yield Finding(f"the folder {shown(folder or b'.')} holds {shown(each.name)} twice")
        seen.add(each.name)
        key = each.name + b"/" if each.is_folder else each.name
        if last is not None and key < last:
            yield Finding(f"the entries of the folder {shown(folder or b'.')} are not in git's order")
        last = key
        plain = _text(each.name).casefold()
        other = folded.setdefault(plain, each.name)
        if other != each.name:
            what = f"{shown(path)} and {shown(other)} differ only in capital letters, so many disks cannot hold both"
            yield Finding(what, True, path, (each.mode, each.hash))


def _is_plain(entry: Entry) -> bool:
    """Say whether nothing can be wrong with an entry by itself, as with nearly all: folders may hold thousands."""
    is_named = _PLAIN.fullmatch(entry.name) is not None
    return is_named and (entry.mode in FILE_MODES or entry.mode == FOLDER) and entry.hash[0] != 0


def _name(name: bytes) -> tuple[str, bool] | None:
    """Return what is wrong with a name, and whether that is only odd."""
    text = _text(name)
    if not name:
        return "is an entry without a name", False
    if name in (b".", b".."):
        return "has the name of a folder that every folder has", False
    if b"/" in name:
        return "has a slash in a single name", False
    if is_dot_git(text):
        return "has the name of git's own folder, or one that a disk takes for it", False
    if len(name) > LONGEST_NAME_BYTES:
        return f"has a name of {len(name)} bytes, and no disk takes more than {LONGEST_NAME_BYTES}", False
    if _CONTROL.search(text):
        return "has a line end or another control character in its name", True
    return None


def is_dot_git(name: str) -> bool:
    """Say whether some disk takes a name for git's own folder, as Windows and macOS do with names like it."""
    if _IGNORED_ON_MAC.sub("", name).casefold() == ".git":
        return True
    return any(_DOT_GIT_ON_WINDOWS.match(part) for part in name.split("\\"))


def _mode(entry: Entry) -> tuple[str, bool] | None:
    """Return what is wrong with what an entry is, and whether that is only odd."""
    name = _IGNORED_ON_MAC.sub("", _text(entry.name))
    if not entry.hash.strip(b"\0"):
        return "has no content", False
    if entry.mode.startswith(b"0") or not re.fullmatch(rb"[0-7]{5,6}", entry.mode):
        return "has a mode that git does not write", False
    if entry.mode == MODULE:
        return "is a submodule, or another one than before: covey does not look after those", True
    if entry.mode == LINK and _MODULES.match(name):
        return "is a symbolic link, from which git takes no submodules", False
    if entry.mode == LINK and name.casefold() in _SETTINGS:
        return "is a symbolic link, which git does not follow here", True
    if entry.mode == FOLDER or entry.mode == LINK or entry.mode in FILE_MODES:
        return ("names submodules: covey does not look after those", True) if is_modules(entry) else None
    return f"has the mode {entry.mode.decode()}, which is neither a file's nor a folder's", True


def is_modules(entry: Entry) -> bool:
    """Say whether git, on some disk, reads submodules from an entry."""
    return not entry.is_folder and _MODULES.match(_IGNORED_ON_MAC.sub("", _text(entry.name))) is not None


def counts_by_content(path: bytes, mode: bytes) -> bool:
    """Say whether an odd entry that has other content than before is as new as one that was not there."""
    return mode == MODULE or is_modules(Entry(mode, path.rpartition(b"/")[2], b""))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


_HINDERS = re.compile(r"(?:^|\s)(?:working-tree-encoding|filter)(?:=|\s|$)")


def hindering(text: str) -> set[str]:
    """Return the lines of a .gitattributes that put a program or an encoding between git and the files."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return {line for line in lines if not line.startswith("#") and _HINDERS.search(line)}


def is_attributes(entry: Entry) -> bool:
    """Say whether git reads from an entry how files are checked out."""
    return entry.mode in FILE_MODES and entry.name.lower() == b".gitattributes"


_SECTION = re.compile(r'\[\s*submodule\s+"((?:[^"\\]|\\.)*)"\s*\]', re.IGNORECASE)
_VALUE = re.compile(r"^\s*(url|path|update)\s*=\s*\"?([^\"\n]*)", re.IGNORECASE | re.MULTILINE)


def check_modules(text: str) -> Iterator[Finding]:
    """Yield what of a .gitmodules would turn git against whoever clones with it."""
    for name in _SECTION.findall(text):
        if any(part == ".." for part in re.split(r"[/\\]", name)) or name.startswith("-") or not name:
            yield Finding(f"its .gitmodules names a submodule {shown(name.encode(errors='replace'))}")
    for key, value in _VALUE.findall(text):
        bad = value.startswith(("-", "ext::", "fd::")) or (key.casefold() == "update" and value.startswith("!"))
        if bad or re.search(r"%0[ad]|[\r\x00]", value, re.IGNORECASE):
            said = shown(value.encode(errors="replace"))
            yield Finding(f"its .gitmodules has {key} = {said}, which git may take for an order")


@dataclass(frozen=True)
class Folder:
    """What counts of a new folder when it is put into others: the folders in it, and how many entries else."""

    folders: tuple[tuple[bytes, bytes], ...]
    others: int = 0
    longest: int = 0
    """Bytes of the longest name of a file."""


def check_shape(roots: Sequence[bytes], new: Mapping[bytes, Folder]) -> Iterator[Finding]:
    """Yield what is wrong with trees as a whole, the last being the one that lands: their depth, paths and number."""
    order = _children_first([root for root in roots if root in new], new)
    if order is None:
        yield Finding(f"its folders lie more than {DEEPEST_FOLDERS} deep in each other")
        return
    longest: dict[bytes, int] = {}
    files: dict[bytes, int] = {}
    for tree in order:
        folder = new[tree]
        below = (len(name) + 1 + longest.get(child, 0) for name, child in folder.folders)
        longest[tree] = max((folder.longest, *below))
        files[tree] = folder.others + sum(files.get(child, 1) for _, child in folder.folders)
    path, most = max(longest.values(), default=0), max(files.values(), default=0)
    if path > LONGEST_PATH_BYTES:
        yield Finding(f"it has a path of {path} bytes, and {LONGEST_PATH_BYTES} are the most that can be used")
    if most > MAX_NEW_FILES:
        yield Finding(f"it brings folders with {most} entries, more than {MAX_NEW_FILES}", is_odd=True, is_heavy=True)
    elif (copies := max((_most_copies(root, order, new) for root in roots[-1:]), default=0)) > MAX_COPIES:
        yield Finding(f"it holds the same folder {copies} times", is_odd=True, is_heavy=True)


def _children_first(roots: Sequence[bytes], new: Mapping[bytes, Folder]) -> list[bytes] | None:
    """Return the new folders below some roots, each after those in it; None if they lie too deep."""
    height: dict[bytes, int] = {}
    stack = list(roots)
    while stack:
        tree = stack[-1]
        inside = () if tree in height else {child for _, child in new[tree].folders if child in new}
        unseen = [child for child in inside if child not in height]
        if unseen:
            stack += unseen
            continue
        stack.pop()
        if tree not in height:
            height[tree] = 1 + max((height[child] for child in inside), default=0)
            if height[tree] > DEEPEST_FOLDERS:
                return None
    return list(height)


def _most_copies(root: bytes, order: Sequence[bytes], new: Mapping[bytes, Folder]) -> int:
    """Return how often the same old folder stands in a tree."""
    times: dict[bytes, int] = {root: 1}
    for tree in reversed(order):
        if tree in times:
            for _, child in new[tree].folders:
                times[child] = times.get(child, 0) + times[tree]
    return max((count for tree, count in times.items() if tree not in new), default=0)
