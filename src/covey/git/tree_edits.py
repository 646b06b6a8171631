"""Trees with some paths changed: only the folders on the way to those are read and written anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from covey.errors import ToolFailed
from covey.git import objects
from covey.git.carry import Change
from covey.git.objects import Writer
from covey.git.project import Project
from covey.values import dataclass

FOLDER = b"40000"
MODES = (b"100644", b"100755", b"120000", b"160000")
"""What a path can become; an older git has written others."""
_Entry = tuple[bytes, bytes]
"""Mode and raw hash of an entry."""


@dataclass
class _Folder:
    """A folder: its entries, and those of its folders that were looked into."""

    entries: dict[bytes, _Entry] = field(default_factory=dict)
    opened: dict[bytes, _Folder] = field(default_factory=dict)
    is_changed: bool = False


class Edits:
    """A tree that is changed step by step; what it is after each step is written as git would write it."""

    def __init__(self, project: Project, tree: str, writer: Writer) -> None:
        self._project = project
        self._writer = writer
        self._size = len(tree) // 2
        self._tree = tree
        self._root = self._read(tree)

    def apply(self, changes: Iterable[Change]) -> str:
        """Change paths, and return the tree that comes of it; a folder without entries is none."""
        listed = list(changes)
        for change in listed:
            if change.new is None:
                self._remove(change.path)
        for change in listed:
            if change.new is not None:
                self._set(change.path, *change.new)
        if self._root.is_changed:
            self._tree = self._written(self._root)
        return self._tree

    def _read(self, tree: str) -> _Folder:
        ((info, content),) = objects.contents(self._project, [tree])
        if info.kind != "tree":
            raise ToolFailed(f"{tree[:12]} is not a tree.")
        found: dict[bytes, _Entry] = {}
        at = 0
        while at < len(content):
            space = content.index(b" ", at)
            end = content.index(b"\0", space)
            found[content[space + 1 : end]] = (content[at:space], content[end + 1 : end + 1 + self._size])
            at = end + 1 + self._size
        if _packed(found) != content:
            raise ToolFailed(f"The tree {tree[:12]} is not as git writes trees.")  # git itself says what it makes of it
        return _Folder(found)

    def _opened(self, folder: _Folder, name: bytes) -> _Folder | None:
        """Return a folder of a folder, None if there is none of that name."""
        mode, own = folder.entries.get(name, (b"", b""))
        if mode != FOLDER:
            return None
        if name not in folder.opened:
            folder.opened[name] = self._read(own.hex())
        return folder.opened[name]

    def _remove(self, path: bytes) -> None:
        way = [self._root]
        *above, name = path.split(b"/")
        for part in above:
            inner = self._opened(way[-1], part)
            if inner is None:
                return
            way.append(inner)
        if way[-1].entries.pop(name, None) is not None:
            way[-1].opened.pop(name, None)
            for folder in way:
                folder.is_changed = True

    def _set(self, path: bytes, mode: bytes, name: bytes) -> None:
        if mode not in MODES:
            raise ToolFailed(f"A file with the mode {mode.decode(errors='replace')} is left to git.")
        folder = self._root
        *above, last = path.split(b"/")
        for part in above:
            folder.is_changed = True
            inner = self._opened(folder, part)
            if inner is None:
                inner = folder.opened[part] = _Folder()
                folder.entries[part] = (FOLDER, b"")  # it has a name once it is written
            folder = inner
        folder.is_changed = True
        folder.entries[last] = (mode, bytes.fromhex(name.decode()))
        folder.opened.pop(last, None)

    def _written(self, folder: _Folder) -> str:
        """Write a folder and what has changed in it, and return its name."""
        for name, inner in [*folder.opened.items()]:
            if not inner.is_changed:
                continue
            written = self._written(inner)
            if inner.entries:
                folder.entries[name] = (FOLDER, bytes.fromhex(written))
            else:
                del folder.entries[name], folder.opened[name]
        folder.is_changed = False
        return self._writer.write("tree", _packed(folder.entries)) if folder.entries or folder is self._root else ""


def _packed(entries: dict[bytes, _Entry]) -> bytes:
    """Return a folder as git writes it: in the order of names, those of folders as if they ended with a slash."""
    ordered = sorted(entries.items(), key=lambda item: item[0] + (b"/" if item[1][0] == FOLDER else b""))
    return b"".join(b"%s %s\0%s" % (mode, name, own) for name, (mode, own) in ordered)
