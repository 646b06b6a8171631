"""Candidates: what main would be with a branch in it, built from objects alone; no checkout is ever touched."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from covey.errors import NotFound, Refused, ToolFailed
from covey.git import objects
from covey.git.candidates import commit_messages, signing
from covey.git.candidates.commit_messages import Trailer
from covey.git.identity import COMMITTER, COVEY, NO_PROMPT
from covey.git.project import Project
from covey.git.run import complaint, git, settings, try_git
from covey.values import dataclass

MERGE_TIMEOUT_S = 120.0
MAX_MESSAGE_CHARS = 4000
SIGN_TIMEOUT_S = 30.0
NEAR_COMMITS = 16
"""Steps back from a commit, by first parents, within which most questions for its ancestors end."""
CRUD = "".join(map(chr, range(33))) + ".,:;<>\"\\'"
"""What git takes away from both ends of a name."""
_LATIN = {0: None, **{0xDC00 + byte: byte for byte in range(0x80, 0x100)}}

Entry = tuple[bytes, bytes]
"""Mode and hash of a file as git has it."""
Trees = tuple[str, str]


@dataclass(frozen=True)
class Change:
    """One path that differs between two commits."""

    path: bytes
    old: Entry | None
    new: Entry | None


@dataclass(frozen=True)
class Candidate:
    """A commit that holds `base` and what `tip` adds to it; when that is nothing, `commit` is `base`."""

    commit: str
    tree: str
    base: str
    tip: str
    empty: bool


@dataclass(frozen=True)
class Author:
    """Who wrote a commit, and when, as git notes it (`1700000000 +0100`); without that, now."""

    name: str
    email: str
    date: str = ""

    @property
    def named(self) -> str:
        """Return the name as a commit can hold it; it is never empty."""
        return _plain(self.name) or self.address or "nobody"

    @property
    def address(self) -> str:
        """Return the e-mail address as a commit can hold it."""
        return _plain(self.email)


@dataclass(frozen=True)
class Conflict:
    """Why two commits do not go together, and the files in question."""

    files: tuple[str, ...]
    message: str


def build(
    project: Project, base: str, tip: str, *, message: str, author: tuple[str, str], at: float | None = None
) -> Candidate | Conflict:
    """Merge `tip` into `base` and commit the result on no branch; with `at`, twice gives the same commit twice."""
    sides = find_sides(project, base, tip)
    merged = merge(project, sides)
    if isinstance(merged, Conflict):
        return merged
    if merged == sides.tree:
        return Candidate(sides.base, sides.tree, sides.base, sides.tip, empty=True)
    commit = commit_tree(project, merged, (sides.base, sides.tip), message, Author(*author), at=at)
    return Candidate(commit, merged, sides.base, sides.tip, empty=False)


def resolve(project: Project, name: str) -> str | None:
    """Return the hash of the commit that a name stands for, if there is one."""
    wanted = f"{name}^{{commit}}"
    try:
        (found,) = objects.infos(project, [wanted])
    except ToolFailed:  # a broken object ends the one that answers questions; it is not a commit to anybody
        asked = try_git("rev-parse", "--verify", "--quiet", "--end-of-options", wanted, at=project.common)
        return asked.stdout.decode().strip() if asked.returncode == 0 else None
    return None if found is None else found.name


def is_ancestor(project: Project, old: str, new: str) -> bool:
    """Say whether `new` contains `old`; a commit contains itself."""
    if old == new and objects.FULL.fullmatch(old):
        return True  # the most frequent question of a queue that nobody disturbs
    if objects.FULL.fullmatch(old) and objects.FULL.fullmatch(new):
        near = [f"{new}~{steps}" for steps in range(1, NEAR_COMMITS + 1)]
        with contextlib.suppress(ToolFailed):  # git says what is the matter
            if any(found is not None and found.name == old for found in objects.infos(project, near)):
                return True
    asked = try_git("merge-base", "--is-ancestor", "--end-of-options", old, new, at=project.common)
    if asked.returncode > 1:
        raise ToolFailed(f"git merge-base failed: {complaint(asked)}.")
    return asked.returncode == 0


def is_held(project: Project, old: str, new: str) -> bool:
    """Say whether `new` contains `old`; a commit that git does not know, or not any more, is in none."""
    return resolve(project, old) is not None and is_ancestor(project, old, new)


def committed_on(project: Project, name: str, branch: str) -> tuple[str, float] | None:
    """Return a commit by its whole hash and when it was committed, None if a branch does not hold it."""
    commit, tip = resolve(project, name), resolve(project, f"refs/heads/{branch}")
    if commit is None or tip is None or not is_ancestor(project, commit, tip):
        return None
    return commit, float(git("show", "-s", "--format=%ct", commit, "--", at=project.common))


def merge_base(project: Project, one: str, *others: str) -> str:
    """Return the newest commit that one commit shares with others, "" if there is none."""
    words = ("merge-base", "--end-of-options", one, *others)
    return try_git(*words, at=project.common, patience=MERGE_TIMEOUT_S).stdout.decode().strip()


def changed_paths(project: Project, base: str, tip: str) -> list[str]:
    """Return the paths that `tip` changed since it left `base`; a renamed file counts under both names."""
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
    asked = try_git(*words, "--merge-base", "--end-of-options", base, tip, at=project.common, patience=MERGE_TIMEOUT_S)
    if asked.returncode != 0:  # No common ancestor: then all that differs was changed.
        return _names(git(*words, "--end-of-options", base, tip, at=project.common, patience=MERGE_TIMEOUT_S))
    return _names(asked.stdout)


def changed_between(project: Project, before: str, after: str, main: str) -> list[str]:
    """Return the paths that a branch changed from one of its tips to a later one, without what it took in of main."""
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--end-of-options", before, after)
    changed = _names(git(*words, at=project.common, patience=MERGE_TIMEOUT_S))
    taken = {*changed_paths(project, before, main)}.difference(changed_paths(project, main, after))
    return [path for path in changed if path not in taken]


def folders(project: Project, commit: str, paths: Sequence[str]) -> frozenset[str]:
    """Return which of these paths are folders in a commit."""
    words = ("ls-tree", "-d", "-z", "--name-only", "--full-tree", commit, "--", *paths)
    return frozenset(_names(git(*words, at=project.common, patience=MERGE_TIMEOUT_S)))


def added_or_modified(project: Project, then: str, now: str) -> frozenset[bytes] | None:
    """Return the paths that differ between two commits; None if one is gone or of another kind, or git cannot tell."""
    words = ("diff-tree", "-r", "-z", "--no-renames", "--name-status", then, now)
    asked = try_git(*words, at=project.common, patience=MERGE_TIMEOUT_S)
    parts = asked.stdout.split(b"\0")[:-1]
    if asked.returncode != 0 or any(kind not in (b"A", b"M") for kind in parts[::2]):
        return None
    return frozenset(parts[1::2])


def entries_at(project: Project, commit: str, paths: Sequence[str]) -> dict[str, bool] | None:
    """Return which of these paths a commit has, and whether each is a folder; None if git cannot tell."""
    asked = try_git("ls-tree", "-t", "-z", "--full-tree", commit, "--", *paths, at=project.common)
    if asked.returncode != 0:
        return None
    entries = (line.partition(b"\t") for line in asked.stdout.split(b"\0") if line)
    return {os.fsdecode(name): b" tree " in head for head, _, name in entries}


def readable(name: bytes) -> str:
    """Return a path as text that any surface can show; bytes that are not UTF-8 are written as escapes."""
    return name.decode("utf-8", "backslashreplace")


def folders_above(path: bytes) -> Iterator[bytes]:
    """Yield the folders that a path lies in, the uppermost first."""
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)


def _plain(name: str) -> str:
    """Leave out what git leaves out of names."""
    return as_bytes(re.sub(r"[<>\n]", "", name)).decode().strip(CRUD)


def _names(printed: bytes) -> list[str]:
    return [readable(name) for name in printed.split(b"\0") if name]


@dataclass(frozen=True)
class Sides:
    """Both sides of a merge as hashes; `attributes` is the file that says how base wants its files merged."""

    base: str
    tree: str
    tip: str
    attributes: str | None


def find_sides(project: Project, base: str, tip: str) -> Sides:
    """Find both sides."""
    names = (f"{base}^{{commit}}", f"{base}^{{tree}}", f"{tip}^{{commit}}", f"{base}:.gitattributes")
    base_commit, tree, tip_commit, attributes = full_names(project, names)
    return Sides(there(base, base_commit), there(base, tree), there(tip, tip_commit), attributes)


def full_names(project: Project, names: Sequence[str]) -> list[str | None]:
    """Return the full names of what names stand for, None where there is no such thing."""
    if any(not name.isprintable() for name in names):
        raise NotFound("The name of a commit holds no line ends and the like.")
    return [None if each is None else each.name for each in objects.infos(project, names)]


def there(name: str, found: str | None) -> str:
    """Return what was found for the name of a commit, which has to be something."""
    if found is None:
        raise NotFound(f"There is no commit {name}.")
    return found


def merge(project: Project, sides: Sides) -> str | Conflict:
    """Return the tree of a merge; how files are merged is said by base, never by what lies in somebody's checkout."""
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--messages", sides.base, sides.tip)
    with _place(project, sides.attributes) as folder:
        asked = try_git(*words, at=folder, env=_at(project, folder), patience=MERGE_TIMEOUT_S)
    if asked.returncode <= 1 and _is_unread(asked.stderr):
        raise ToolFailed(f"git merge-tree failed: {complaint(asked)}.")
    if asked.returncode == 0:
        return asked.stdout.split(b"\0", 1)[0].decode()
    if asked.returncode == 1:
        _, files, message = read_merge(iter(asked.stdout.split(b"\0")))
        named = dict.fromkeys(_RENAMED_ASIDE.sub("", name) for name in files)
        short = message if len(message) <= MAX_MESSAGE_CHARS else message[:MAX_MESSAGE_CHARS] + " ..."
        return Conflict(tuple(named), short or "The two change the same lines.")
    if b"unrelated histories" in asked.stderr:
        return Conflict((), "The two have no common ancestor: their histories are unrelated.")
    raise ToolFailed(f"git merge-tree failed: {complaint(asked)}.")


def merge_each(project: Project, base: str, tips: Sequence[str]) -> dict[str, str]:
    """Return the tree of `base` with each tip alone in it, in one process; those that do not merge are left out."""
    sides = find_sides(project, base, base)
    words = ("merge-tree", "--write-tree", "--stdin", "-z", "--name-only", "--messages")
    asked = "".join(f"{base} {tip}\n" for tip in tips).encode()
    with _place(project, sides.attributes) as folder:
        done = try_git(*words, at=folder, stdin=asked, env=_at(project, folder), patience=MERGE_TIMEOUT_S)
    if done.returncode != 0 or _is_unread(done.stderr):
        return {}
    fields = iter(done.stdout.split(b"\0"))
    merged = {tip: (next(fields), read_merge(fields)) for tip in tips}
    return {tip: tree for tip, (is_clean, (tree, *_)) in merged.items() if is_clean == b"1"}


@contextlib.contextmanager
def _place(project: Project, attributes: str | None) -> Iterator[Path]:
    """Give git a folder to merge in: outside a checkout it reads no .gitattributes (merge=union), so it gets them."""
    if attributes is None:
        yield project.common / "objects"
        return
    with tempfile.TemporaryDirectory(prefix="covey-merge-") as folder:
        text = git("cat-file", "blob", attributes, at=project.common)
        (Path(folder) / ".gitattributes").write_bytes(text)
        yield Path(folder)


def _at(project: Project, folder: Path) -> dict[str, str]:
    return {"GIT_DIR": str(project.common), "GIT_WORK_TREE": str(folder), **NO_PROMPT}


_RENAMED_ASIDE = re.compile(r"~[0-9a-f]{40,64}(_[0-9]+)?$")
"""What git adds to the name of a file that a folder is in the way of."""


def _is_unread(said: bytes) -> bool:
    """Say whether git could not read one of the trees: it takes that for an empty one, and all in it for deleted."""
    return any(line.startswith(b"error: ") for line in said.splitlines())


def read_merge(fields: Iterator[bytes]) -> tuple[str, tuple[str, ...], str]:
    """Read one result of `merge-tree -z --name-only --messages`: its tree, the files in conflict, and why they are."""
    tree = next(fields).decode()
    files = list(map(readable, iter(lambda: next(fields), b"")))
    is_listed, messages = bool(files), []
    while (count := next(fields, b"")).isdigit():  # of submodules it adds advice in plain words
        paths = [readable(next(fields)) for _ in range(int(count))]
        kind, text = next(fields), next(fields)
        if kind != b"Auto-merging":
            messages.append(readable(text).strip())
            # A few kinds (a split rename of a folder) leave no file in the list.
            files += [] if is_listed else paths
    return tree, tuple(dict.fromkeys(files)), "\n".join(messages)


def commit_tree(
    project: Project,
    tree: str,
    parents: tuple[str, ...],
    message: str,
    author: Author,
    *,
    at: float | None = None,
    key: str | None = None,
) -> str:
    """Write one commit on no branch, signed when a key is given; the user's hooks and encoding have no part in it."""
    when = time.time() if at is None else at
    if key is None:
        writer = objects.Writer(project, len(tree))
        return writer.write("commit", commit_bytes(tree, parents, message, author, when))
    now = f"{int(when)} +0000"
    env = {
        **COMMITTER,
        **settings({"i18n.commitEncoding": "UTF-8", **signing.programs(project.common)}),
        "GIT_AUTHOR_NAME": author.named,
        "GIT_AUTHOR_EMAIL": author.address,
        "GIT_AUTHOR_DATE": f"@{author.date or now}",
        "GIT_COMMITTER_DATE": f"@{now}",
    }
    words = ["commit-tree", f"-S{key}", tree, *(word for parent in parents for word in ("-p", parent)), "-F", "-"]
    stdin = as_bytes(message)
    # A signer that asks for a passphrase on a terminal would wait for nobody.
    done = try_git(*words, at=project.common, stdin=stdin, env=env, patience=SIGN_TIMEOUT_S, apart=True)
    if done.returncode == 0:
        return done.stdout.decode().strip()
    said = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    raise ToolFailed(
        f"The commit could not be signed, and commit.gpgSign is on: {' '.join(said)[:400]}".rstrip(".") + ".",
        hint="Sign a commit by hand in this repository; covey signs as git commit -S does, without a terminal.",
    )


def commit_bytes(tree: str, parents: Sequence[str], message: str, author: Author, at: float) -> bytes:
    """Return a commit of ours as git keeps it."""
    now = f"{int(at)} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in dict.fromkeys(parents))]
    lines.append(f"author {author.named} <{author.address}> {author.date or now}")
    lines.append(f"committer {COVEY[0]} <{COVEY[1]}> {now}")
    return b"\n".join(map(as_bytes, (*lines, "", message)))


def as_bytes(text: str) -> bytes:
    """Return a text as git keeps it: as UTF-8; bytes that were none, as old commits hold, are taken for Latin-1."""
    return text.translate(_LATIN).encode("utf-8", "replace")


# In which paths trees differ


def read_change(facts: bytes, path: bytes) -> Change:
    """Return a change as a line of `git diff-tree --raw` tells it."""
    old_mode, new_mode, old, new, _ = facts.lstrip(b":").split(b" ")
    before, after = (None if mode == b"000000" else (mode, name) for mode, name in ((old_mode, old), (new_mode, new)))
    return Change(path, before, after)


def compare(project: Project, pairs: Sequence[Trees]) -> dict[Trees, list[Change]]:
    """Return how trees differ, in one process; a file that got another name counts under both.

    git only complains of a tree that is not there: that pair is left out.
    """
    found: dict[Trees, list[Change]] = {}
    if not pairs:
        return found
    asked = "".join(f"{one} {other}\n" for one, other in pairs).encode()
    words = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
    fields = iter(git(*words, at=project.common, stdin=asked, patience=MERGE_TIMEOUT_S).split(b"\0"))
    these: list[Change] = []
    for meta in fields:
        heads, _, entry = meta.rpartition(b"\n")
        for head in heads.decode().splitlines():  # more than one where trees differ only in how they are written
            one, other = head.split(" ")
            these = found.setdefault((one, other), [])
        if entry:
            these.append(read_change(entry, next(fields)))
    return found


# Main without what one merge brought


def revert(
    project: Project,
    base: str,
    before: str,
    after: str,
    *,
    author: tuple[str, str],
    trailers: tuple[Trailer, ...] = (),
    sign: str | None = None,
    at: float | None = None,
) -> Candidate | Conflict:
    """Return a commit on `base` that takes out what one merge brought, or the files that have changed too much since.

    It brought everything between main before it and after it. When nothing of that is left, the candidate is empty. The
    same for every policy: a merge commit against its first parent, a squashed one against its parent, a rebased branch
    as a whole.
    """
    if not is_ancestor(project, after, base):
        raise Refused(f"{after[:12]} is not in {base[:12]}, so there is nothing to revert.")
    without = find_sides(project, before, after)
    # On the commit that landed, what was before is a change that takes the merge out: then git finds the right base.
    scratch = commit_tree(project, without.tree, (without.tip,), "Scratch\n", Author(*COVEY), at=0)
    sides = find_sides(project, base, scratch)
    merged = merge(project, sides)
    if isinstance(merged, Conflict):
        return merged
    if merged == sides.tree:
        return Candidate(sides.base, sides.tree, sides.base, without.tip, empty=True)
    words = ("show", "-s", "--no-show-signature", "--encoding=UTF-8", "--format=%s", "--end-of-options", after)
    title = git(*words, at=project.common).decode(errors="replace").strip()
    message = f'Revert "{title}"\n\nThis takes out what came after {before} up to {after}.\n'
    said = commit_messages.with_trailers(message, trailers)
    commit = commit_tree(project, merged, (sides.base,), said, Author(*author), at=at, key=sign)
    return Candidate(commit, merged, sides.base, without.tip, empty=False)
