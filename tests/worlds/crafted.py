"""Objects that no git command would write: trees and commits made by hand, as whoever wants to do harm makes them."""

from __future__ import annotations

import hashlib
import subprocess
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.worlds.repositories import user_env

Entry = tuple[bytes, bytes, str]
"""Mode, name and hash."""
WHO = b"Ada <ada@example.org> 1700000000 +0000"
FILE, LINK, MODULE, FOLDER = b"100644", b"120000", b"160000", b"40000"


@dataclass(frozen=True)
class Forge:
    """Makes objects in one repository, beside its branch main."""

    path: Path

    def git(self, *words: str, stdin: bytes = b"") -> str:
        """Run git and return what it prints."""
        done = subprocess.run(
            ["git", *words], cwd=self.path, input=stdin, capture_output=True, check=True, env=user_env()
        )
        return done.stdout.decode().strip()

    def put(self, kind: str, content: bytes) -> str:
        """Write an object whatever is in it, and return its hash."""
        whole = b"%s %d\0" % (kind.encode(), len(content)) + content
        name = hashlib.sha1(whole).hexdigest()
        place = self.path / ".git" / "objects" / name[:2] / name[2:]
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(whole, 1))
        return name

    def blob(self, content: bytes = b"one\n") -> str:
        """Write a file."""
        return self.put("blob", content)

    def tree(self, entries: Sequence[Entry]) -> str:
        """Write a tree with these entries as they are."""
        return self.put("tree", b"".join(mode + b" " + name + b"\0" + bytes.fromhex(to) for mode, name, to in entries))

    def listed(self, commit: str = "main") -> list[Entry]:
        """Return the entries of a commit's tree."""
        lines = self.git("ls-tree", "-z", commit).encode().split(b"\0")
        parts = [(line.partition(b"\t")[0].split(), line.partition(b"\t")[2]) for line in lines if line]
        return [(meta[0].lstrip(b"0"), name, meta[2].decode()) for meta, name in parts]

    def main(self) -> str:
        """Return the commit of main."""
        return self.git("rev-parse", "main")

    def commit(
        self,
        tree: str,
        *,
        parents: Sequence[str] | None = None,
        author: bytes = WHO,
        committer: bytes = WHO,
        extra: bytes = b"",
        message: bytes = b"By hand\n",
    ) -> str:
        """Write a commit with these lines as they are."""
        above = b"".join(b"parent %s\n" % name.encode() for name in ([self.main()] if parents is None else parents))
        head = b"tree %s\n%sauthor %s\ncommitter %s\n%s" % (tree.encode(), above, author, committer, extra)
        return self.put("commit", head + b"\n" + message)

    def holding(self, *entries: Entry, name: bytes = b"more") -> str:
        """Return a commit on main that brings a folder with these entries, one readable file and all of main."""
        folder = self.tree(entries)
        return self.commit(self.tree(sorted([*self.listed(), (FOLDER, name, folder)], key=_order)))

    def adding(self, *entries: Entry) -> str:
        """Return a commit on main that brings these entries to its top folder."""
        names = {entry[1] for entry in entries}
        kept = [entry for entry in self.listed() if entry[1] not in names]
        return self.commit(self.tree(sorted([*kept, *entries], key=_order)))

    def nested(self, depth: int, name: bytes = b"d") -> str:
        """Return a commit on main with a file so many folders deep."""
        tree = self.tree([(FILE, b"leaf", self.blob())])
        for _ in range(depth - 1):
            tree = self.tree([(FOLDER, name, tree)])
        return self.adding((FOLDER, name, tree))

    def bomb(self, levels: int, width: int) -> str:
        """Return a commit on main whose few folders unfold to width ** levels files."""
        entry: Entry = (FILE, b"f", self.blob())
        for _ in range(levels):
            tree = self.tree([(entry[0], b"n%02d" % number, entry[2]) for number in range(width)])
            entry = (FOLDER, b"bomb", tree)
        return self.adding(entry)


def _order(entry: Entry) -> bytes:
    return entry[1] + b"/" if entry[0] == FOLDER else entry[1]


ABSENT = "12" * 20
Craft = Callable[[Forge], str]

BROKEN: dict[str, Craft] = {
    "dot git": lambda f: f.holding((FILE, b".git", f.blob())),
    "dot git as a folder": lambda f: f.adding((FOLDER, b".git", f.tree([(FILE, b"config", f.blob())]))),
    "dot git in capitals": lambda f: f.holding((FILE, b".GiT", f.blob())),
    "dot git and a space": lambda f: f.holding((FILE, b".git ", f.blob())),
    "dot git and dots": lambda f: f.holding((FILE, b".git..", f.blob())),
    "dot git as a stream": lambda f: f.holding((FILE, b".git::$INDEX_ALLOCATION", f.blob())),
    "git tilde": lambda f: f.holding((FILE, b"GIT~1", f.blob())),
    "after a backslash": lambda f: f.holding((FILE, b"a\\.git\\config", f.blob())),
    "a letter nobody sees": lambda f: f.holding((FILE, ".g\u200cit".encode(), f.blob())),
    "dot": lambda f: f.holding((FILE, b".", f.blob())),
    "dot dot": lambda f: f.holding((FOLDER, b"..", f.tree([(FILE, b"x", f.blob())]))),
    "no name": lambda f: f.holding((FILE, b"", f.blob())),
    "a slash": lambda f: f.holding((FILE, b"a/b", f.blob())),
    "a slash to git": lambda f: f.holding((FILE, b".git/x", f.blob())),
    "a slash and dots": lambda f: f.adding((FILE, b"../../x", f.blob())),
    "twice": lambda f: f.holding((FILE, b"a", f.blob()), (FILE, b"a", f.blob(b"two\n"))),
    "a file and a folder": lambda f: f.holding(
        (FILE, b"a", f.blob()), (FOLDER, b"a", f.tree([(FILE, b"x", f.blob())]))
    ),
    "not in order": lambda f: f.holding((FILE, b"b", f.blob()), (FILE, b"a", f.blob())),
    "a mode with a zero": lambda f: f.holding((b"0100644", b"a", f.blob())),
    "a folder's mode with a zero": lambda f: f.holding((b"040000", b"a", f.tree([(FILE, b"x", f.blob())]))),
    "no mode": lambda f: f.holding((b"xyz", b"a", f.blob())),
    "nothing": lambda f: f.holding((FILE, b"a", "0" * 40)),
    "a long name": lambda f: f.holding((FILE, b"n" * 256, f.blob())),
    "a long path": lambda f: f.nested(30, b"n" * 200),
    "deep": lambda f: f.nested(400),
    "a linked gitmodules": lambda f: f.adding((LINK, b".gitmodules", f.blob(b"elsewhere"))),
    "modules with an option": lambda f: f.adding(
        (FILE, b".gitmodules", f.blob(b'[submodule "a"]\n\tpath = a\n\turl = -u./x\n'))
    ),
    "modules above": lambda f: f.adding(
        (FILE, b".gitmodules", f.blob(b'[submodule "../../hooks"]\n\tpath = a\n\turl = ./x\n'))
    ),
    "modules with an order": lambda f: f.adding(
        (FILE, b".gitmodules", f.blob(b'[submodule "a"]\n\tpath = a\n\turl = ./x\n\tupdate = !touch x\n'))
    ),
    "a missing file": lambda f: f.holding((FILE, b"a", ABSENT)),
    "a missing folder": lambda f: f.holding((FOLDER, b"a", ABSENT)),
    "a file that is a folder": lambda f: f.holding((FILE, b"a", f.tree([(FILE, b"x", f.blob())]))),
    "a folder that is a file": lambda f: f.holding((FOLDER, b"a", f.blob())),
    "a short tree": lambda f: f.commit(f.put("tree", b"100644 a\0short")),
    "no tree": lambda f: f.commit(ABSENT),
    "a tree that is a file": lambda f: f.commit(f.blob()),
    "a missing parent": lambda f: f.commit(f.git("rev-parse", "main^{tree}"), parents=[f.main(), ABSENT]),
    "a parent that is a file": lambda f: f.commit(f.git("rev-parse", "main^{tree}"), parents=[f.main(), f.blob()]),
    "no author": lambda f: f.put(
        "commit", b"tree %s\nparent %s\n\nx\n" % (f.git("rev-parse", "main^{tree}").encode(), f.main().encode())
    ),
    "two authors": lambda f: _said(f, extra=b"author " + WHO + b"\n"),
    "an author without an address": lambda f: _said(f, author=b"Ada 1700000000 +0000"),
    "an author in brackets": lambda f: _said(f, author=b"Ada <a<b>c> 1700000000 +0000"),
    "a date before all": lambda f: _said(f, author=b"Ada <a@b> -5 +0000"),
    "a date beyond numbers": lambda f: _said(f, committer=b"Ada <a@b> 99999999999999999999999 +0000"),
    "the year 9999999": lambda f: _said(f, author=b"Ada <a@b> 315569433600000 +0000"),
    "no date": lambda f: _said(f, committer=b"Ada <a@b>"),
    "a NUL in a name": lambda f: _said(f, author=b"A\0da <a@b> 1700000000 +0000"),
}
"""What can never land, with the sentence that it is part of."""


def _said(forge: Forge, **lines: bytes) -> str:
    """Return a commit that changes one file, with odd lines."""
    name = b"said-" + hashlib.sha1(repr(lines).encode()).hexdigest().encode()
    tree = forge.tree(sorted([*forge.listed(), (FILE, name, forge.blob())], key=_order))
    return forge.commit(tree, **lines)  # type: ignore[arg-type]


ODD: dict[str, Craft] = {
    "a submodule": lambda f: f.adding((MODULE, b"sub", f.main())),
    "a submodule of nothing": lambda f: f.holding((MODULE, b"sub", ABSENT)),
    "a gitmodules": lambda f: f.adding((FILE, b".gitmodules", f.blob(b'[submodule "a"]\n\tpath = a\n\turl = ./x\n'))),
    "a line end": lambda f: f.holding((FILE, b"a\nb", f.blob())),
    "an escape": lambda f: f.holding((FILE, b"a\x1b[2Jb", f.blob())),
    "capital letters": lambda f: f.holding((FILE, b"Readme", f.blob()), (FILE, b"readme", f.blob())),
    "a linked gitattributes": lambda f: f.adding((LINK, b".gitattributes", f.blob(b"elsewhere"))),
    "an old mode": lambda f: f.holding((b"100664", b"a", f.blob())),
    "a time zone": lambda f: _said(f, author=b"Ada <a@b> 1700000000 +9999"),
    "a NUL in the message": lambda f: _said(f, message=b"one\0two\n"),
    "a long message": lambda f: _said(f, message=b"x" * (1024**2 + 1)),
    "an encoding": lambda f: f.adding(
        (FILE, b".gitattributes", f.blob(b"*.txt working-tree-encoding=UTF-16\n")),
        (FILE, b"a.txt", f.blob(b"\xff\xfe")),
    ),
    "a filter": lambda f: f.holding((FILE, b".gitattributes", f.blob(b"* filter=gone\n"))),
    "a bomb": lambda f: f.bomb(9, 10),
}
"""What lands if a person lets it."""

HONEST: dict[str, Craft] = {
    "a plain file": lambda f: f.holding((FILE, b"a", f.blob())),
    "a Latin-1 name": lambda f: f.holding((FILE, "größe".encode("latin-1"), f.blob())),
    "a name in another script": lambda f: f.holding((FILE, "ファイル.txt".encode(), f.blob())),
    "files of git": lambda f: f.adding((FILE, b".gitattributes", f.blob(b"* text\n")), (FILE, b".gitignore", f.blob())),
    "names near git": lambda f: f.holding(
        (FILE, b".gitkeep", f.blob()), (FILE, b"git~1x", f.blob()), (FILE, b"x.git", f.blob())
    ),
    "a long legal name": lambda f: f.holding((FILE, b"n" * 255, f.blob())),
    "deep Java": lambda f: f.nested(60, b"com.example.organisation"),
    "a link": lambda f: f.holding((LINK, b"link", f.blob(b"../README.md"))),
    "a program": lambda f: f.holding((b"100755", b"run", f.blob())),
    "git's own order": lambda f: f.holding(
        (FILE, b"o-b", f.blob()), (FILE, b"o.b", f.blob()), (FOLDER, b"o", f.tree([(FILE, b"x", f.blob())]))
    ),
    "a date after 2038": lambda f: _said(f, author=b"Ada <a@b> 2147483649 +0000"),
    "a date in 1970": lambda f: _said(f, author=b"Ada <a@b> 0 +0000"),
    "no name of the author": lambda f: _said(f, author=b" <a@b> 1700000000 -0330"),
    "no address": lambda f: _said(f, author=b"Ada <> 1700000000 +1400"),
    "no message": lambda f: _said(f, message=b""),
    "Latin-1 in the message": lambda f: _said(f, extra=b"encoding ISO-8859-1\n", message=b"gr\xf6\xdfe\n"),
    "an unknown encoding": lambda f: _said(f, extra=b"encoding martian\n"),
    "a signature that is none": lambda f: _said(f, extra=b"gpgsig -----BEGIN\n garbage\n -----END\n"),
}
"""What git itself may write, and lands."""
