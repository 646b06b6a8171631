"""Make a commit that no honest git makes, and move a branch to it: run by a hostile agent in its worktree.

`craft.py BRANCH WHAT`: WHAT names one entry of its tree, or what is wrong with the commit itself.
"""

from __future__ import annotations

import subprocess
import sys

NOWHERE = bytes.fromhex("17" * 20)
EVE = b"Eve <eve@example.org> 1700000000 +0000"
ENTRIES = {
    "dot-git": (b"100644", b".git", None),
    "dot-dot": (b"100644", b"..", None),
    "slash": (b"100644", b"values/../../x", None),
    "nameless": (b"100644", b"", None),
    "twice": (b"100644", b"README.md", None),
    "gitlink": (b"160000", b"zz-module", NOWHERE),
    "linked-modules": (b"120000", b".gitmodules", None),
    "missing-blob": (b"100644", b"zz-missing", NOWHERE),
    "no-mode": (b"777777", b"zz-mode", None),
    "long-name": (b"100644", b"z" * 5000, None),
}
PEOPLE = {
    "absurd-date": b"Eve <eve@example.org> 99999999999999999999 +9999",
    "open-author": b"Eve <eve 1 +0000",
}
WHATS = (*ENTRIES, *PEOPLE, "missing-parent")


def git(*words: str, data: bytes = b"") -> bytes:
    """Run git and return what it prints."""
    return subprocess.run(["git", *words], input=data, capture_output=True, check=True).stdout.strip()


def make(kind: str, data: bytes) -> bytes:
    """Write an object as it is, and return its name."""
    return git("hash-object", "-t", kind, "-w", "--literally", "--stdin", data=data)


def tree(what: str) -> bytes:
    """Return the branch's tree with one entry more."""
    parts = []
    for each in git("ls-tree", "-z", "HEAD").split(b"\0"):
        if each:
            head, _, name = each.partition(b"\t")
            mode, _, sha = head.split(b" ")
            parts.append((mode.lstrip(b"0"), name, bytes.fromhex(sha.decode())))
    if what in ENTRIES:
        mode, name, target = ENTRIES[what]
        parts.append((mode, name, target or bytes.fromhex(make("blob", b"ok\n").decode())))
    return make("tree", b"".join(mode + b" " + name + b"\0" + sha for mode, name, sha in parts))


def main(branch: str, what: str) -> None:
    """Make the commit, and move the branch there behind the guard's back."""
    parent = NOWHERE.hex().encode() if what == "missing-parent" else git("rev-parse", "HEAD")
    person = PEOPLE.get(what, EVE)
    lines = (
        b"tree " + tree(what),
        b"parent " + parent,
        b"author " + person,
        b"committer " + person,
        b"",
        b"Crafted",
        b"",
    )
    tip = make("commit", b"\n".join(lines)).decode()
    git("-c", "core.hooksPath=/dev/null", "update-ref", branch, tip)


if __name__ == "__main__":
    main(*sys.argv[1:])
