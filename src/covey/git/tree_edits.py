"""Trees with some paths changed: only the folders on the way to those are read and rewritten.

What is not as today's git writes trees, and a path that does not hold what the change says it held, is left to git.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import field

from covey.core.merging import tree_rules
from covey.core.merging.tree_rules import Row
from covey.errors import ToolFailed
from covey.git import objects
from covey.git.candidates.candidates import Change, Entry
from covey.git.objects import Writer
from covey.git.project import Project
from covey.values import dataclass

FOLDER_MODE = b"40000"
WRITTEN_MODES = (b"100644", b"100755", b"120000", b"160000")
"""What a path can become; an older git has written others."""
_NOT_NAMES = (b"", b".", b"..", b".git")
_EMPTY = (hashlib.sha1(b"tree 0\0", usedforsecurity=False).digest(), hashlib.sha256(b"tree 0\0").digest())
"""A folder without entries, which git itself leaves out."""
_NO_CONTENT = (*_EMPTY, bytes(20), bytes(32))
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
        """Change paths, and return the resulting tree; a folder that has become empty is left out."""
        listed = [(each.path, each.old and _raw(each.old), each.new and _raw(each.new)) for each in changes]
        for path, old, new in listed:
            if new is None:
                self._remove(path, old)
        for path, old, new in listed:
            if new is not None:
                self._set(path, old, new)
        if self._root.is_changed:
            self._tree = self._written(self._root)
        return self._tree

    def _read(self, tree: str) -> _Folder:
        ((info, content),) = objects.contents(self._project, [tree])
        if info.kind != "tree":
            raise ToolFailed(f"{tree[:12]} is not a tree.")
        found = tree_rules.rows(content, self._size)
        # git knows a folder by the value of its mode, however that is written; we by its letters.
        if found is None or not _are_common(found) or not tree_rules.is_in_order(found):
            raise ToolFailed(f"The tree {tree[:12]} is not as git writes trees.")  # git itself says what it makes of it
        return _Folder({name: (mode, own) for mode, name, own in found})

    def _opened(self, folder: _Folder, name: bytes) -> _Folder | None:
        """Return a folder of a folder, None if there is none of that name."""
        mode, own = folder.entries.get(name, (b"", b""))
        if mode != FOLDER_MODE:
            return None
        if name not in folder.opened:
            folder.opened[name] = self._read(own.hex())
        return folder.opened[name]

    def _remove(self, path: bytes, old: _Entry | None) -> None:
        way = [self._root]
        *above, name = path.split(b"/")
        for part in above:
            inner = self._opened(way[-1], part)
            if inner is None:
                raise _unexpected(path)
            way.append(inner)
        if way[-1].entries.pop(name, None) != old:
            raise _unexpected(path)
        for folder in way:
            folder.is_changed = True
        for outer, part, inner in reversed([*zip(way, above, way[1:], strict=False)]):
            if not inner.entries:
                del outer.entries[part], outer.opened[part]

    def _set(self, path: bytes, old: _Entry | None, new: _Entry) -> None:
        folder = self._root
        *above, last = path.split(b"/")
        for part in above:
            folder.is_changed = True
            inner = self._opened(folder, part)
            if inner is None:
                if part in folder.entries or not _is_name(part):
                    raise _unexpected(path)
                inner = folder.opened[part] = _Folder()
                folder.entries[part] = (FOLDER_MODE, b"")  # it has a name once it is written
            folder = inner
        if folder.entries.get(last) != old or new[0] not in WRITTEN_MODES or not _is_name(last):
            raise _unexpected(path)
        folder.is_changed = True
        folder.entries[last] = new

    def _written(self, folder: _Folder) -> str:
        """Write a folder and what has changed in it, and return its name."""
        for name, inner in folder.opened.items():
            if inner.is_changed:
                folder.entries[name] = (FOLDER_MODE, bytes.fromhex(self._written(inner)))
        folder.is_changed = False
        # In the order of names, those of folders as if they ended with a slash.
        entries = [(name, mode, own) for name, (mode, own) in folder.entries.items()]
        entries.sort(key=lambda row: row[0] + (b"/" if row[1] == FOLDER_MODE else b""))
        return self._writer.write("tree", b"".join(b"%s %s\0%s" % (mode, name, own) for name, mode, own in entries))


def _are_common(found: Sequence[Row]) -> bool:
    """Say whether all entries are such that today's git writes; asked of all at once, since there may be thousands."""
    modes, names, hashes = ({*part} for part in zip(*found, strict=True)) if found else (set(), set(), set())
    is_named = {name.lower() for name in names}.isdisjoint(_NOT_NAMES)
    return is_named and modes <= {FOLDER_MODE, *WRITTEN_MODES} and hashes.isdisjoint(_NO_CONTENT)


def _is_name(name: bytes) -> bool:
    return b"/" not in name and name.lower() not in _NOT_NAMES


def _raw(entry: Entry) -> _Entry:
    return entry[0], bytes.fromhex(entry[1].decode())


def _unexpected(path: bytes) -> ToolFailed:
    return ToolFailed(f"{path.decode(errors='backslashreplace')} is not what the change found there.")
