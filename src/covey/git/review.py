"""What somebody's work changes, as a person reviews it: bounded, whatever names and bytes it has."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from covey.core.judge import is_cache
from covey.errors import CoveyError, NotFound, ToolFailed
from covey.git import chains, checkouts, entries, looks
from covey.git.candidates import readable, resolve
from covey.git.chains import Link
from covey.git.clashes import changed
from covey.git.overlap import Branches, Contact
from covey.git.project import Project
from covey.git.rescue_git import private_git, quiet
from covey.git.run import first_of, git, try_git
from covey.values import dataclass

PATIENCE = 120.0
PATCH = 128 * 1024
"""Bytes of one file's patch in one answer."""
ALL = 1024 * 1024
"""Bytes of all patches in one answer."""
LINE = 4096
"""Bytes of one line that are shown."""
FILES = 3000
"""Files that are listed."""
READ = 24 * 1024 * 1024
"""Bytes that are read of what git prints; what lies beyond is asked for by its path."""
LISTED = 8 * 1024 * 1024
CONTEXT = 3
BIG = "8m"
"""Files from this size on are not compared line by line."""
LOOSE, LOOSE_SIZE = 2000, 2 * 1024 * 1024
"""How many files that git does not know yet are looked at in a worktree, and how large they may be."""
TEXT = 2 * 1024 * 1024
"""Bytes of a file in which the lines of comments are looked for."""

STATUS = {
    "A": "added", "D": "deleted", "M": "changed", "R": "renamed", "C": "copied", "T": "type", "U": "unmerged",
}  # fmt: skip
_NOBODY = ("covey", "covey@localhost")
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)
_HUNK = re.compile(rb"^@@ ", re.MULTILINE)
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--histogram", "--no-relative", "--submodule=short")


@dataclass(frozen=True, kw_only=True)
class File:
    """One file that differs: its hunks as text, or a part of them, or none if it is binary or there is no room."""

    path: str
    old_path: str | None = None
    status: str = "changed"
    plus: int = 0
    minus: int = 0
    binary: bool = False
    mode: str = ""
    old_mode: str | None = None
    """What the mode was, where it was another one."""
    patch: str | None = None
    cut: bool = False
    """There is more to show than `patch`."""
    next: int | None = None
    """The line of the patch from which the rest can be asked for."""
    shortened: int = 0
    """Lines in `patch` of which only the begin is shown."""


@dataclass(frozen=True, kw_only=True)
class Diff:
    """What differs between two commits or trees."""

    files: tuple[File, ...]
    plus: int
    minus: int
    more: int = 0
    """Files beyond those that are listed."""


# Two commits


def diff(
    project: Project,
    base: str,
    tip: str,
    *,
    path: str | None = None,
    since: int = 0,
    context: int = CONTEXT,
    env: Mapping[str, str] | None = None,
) -> Diff:
    """Return what differs; of one `path` from a line of its patch on, else of all files as much as there is room for.

    The path is spelled as an answer spells it: bytes that are no UTF-8 are written as escapes.
    """
    listed = _list(project, base, tip, dict(env or {}))
    names, files = [name for name, _ in listed], [file for _, file in listed]
    whole = Diff(
        files=tuple(files[:FILES]),
        plus=sum(file.plus for file in files),
        minus=sum(file.minus for file in files),
        more=max(len(files) - FILES, 0),
    )
    wanted = range(len(whole.files))
    if path is not None:
        found = next((n for n, file in enumerate(files) if file.path == path), None)
        if found is None:
            raise NotFound(
                f"{path[:200]!r} is not among the files that differ.", hint="Ask without a path to see them."
            )
        wanted = range(found, found + 1)
    shown = _patched(project, base, tip, [(names[n], files[n]) for n in wanted], since, context, dict(env or {}))
    return replace(whole, files=tuple(shown))


def _list(project: Project, base: str, tip: str, env: dict[str, str]) -> list[tuple[tuple[bytes, ...], File]]:
    """Return the names and the summary of each file that differs."""
    words = ("-c", f"core.bigFileThreshold={BIG}", "diff-tree", "-r", "-M", "-z", "--raw", "--numstat", "--no-abbrev")
    printed, is_all = first_of(
        *words, *_PLAIN, "--end-of-options", base, tip, at=project.common, most=LISTED, env=env, patience=PATIENCE
    )
    if not is_all:
        raise ToolFailed("It changes too many files to be shown.", hint="git diff --stat shows them.")
    fields = iter(printed.split(b"\0"))
    files: dict[tuple[bytes, ...], File] = {}
    for field in fields:
        if field.startswith(b":"):
            old_mode, mode, _, _, status = field[1:].decode().split(" ")
            moved = status[0] in "RC"
            names = (next(fields), next(fields)) if moved else (next(fields),)
            files[names] = _file(names, status[0], old_mode, mode)
        elif field:
            plus, minus, name = field.split(b"\t", 2)
            names = (name,) if name else (next(fields), next(fields))
            if names in files:
                binary = plus == b"-"
                counts = (0, 0) if binary else (int(plus), int(minus))
                files[names] = replace(files[names], plus=counts[0], minus=counts[1], binary=binary)
    return list(files.items())


def _file(names: tuple[bytes, ...], status: str, old_mode: str, mode: str) -> File:
    gone, new = mode == "000000", old_mode == "000000"
    return File(
        path=readable(names[-1]),
        old_path=readable(names[0]) if len(names) > 1 else None,
        status=STATUS.get(status, "changed"),
        mode=old_mode if gone else mode,
        old_mode=old_mode if old_mode != mode and not gone and not new else None,
    )


def _patched(
    project: Project,
    base: str,
    tip: str,
    files: Sequence[tuple[tuple[bytes, ...], File]],
    since: int,
    context: int,
    env: dict[str, str],
) -> list[File]:
    words = ("-c", f"core.bigFileThreshold={BIG}", "diff-tree", "-r", "-M", "-p", f"-U{context}", "--full-index")
    alone = [os.fsdecode(name) for name in files[0][0]] if len(files) == 1 else []
    env = env | {"GIT_LITERAL_PATHSPECS": "1"}
    named = ("--end-of-options", base, tip, *(("--", *alone) if alone else ()))
    printed, is_all = first_of(*words, *_PLAIN, *named, at=project.common, most=READ, env=env, patience=PATIENCE)
    sections = _sections(printed, is_all)
    room, shown = ALL, []
    for _, file in files:
        parts = [next(sections, None)]
        if file.status == "type":
            parts.append(next(sections, None))  # git tells it as two: one goes, one comes
        if file.binary or room <= 0 or None in parts:
            later = None if file.binary or alone else 0
            shown.append(replace(file, cut=not file.binary, next=later))
            continue
        part = _part(b"".join(each for each in parts if each is not None), since, min(room, PATCH))
        room -= len(part.text.encode())
        is_cut = part.next is not None
        shown.append(
            replace(
                file,
                patch=part.text if part.text or not is_cut else None,
                cut=is_cut,
                next=part.next,
                shortened=part.shortened,
            )
        )
    return shown


def _sections(printed: bytes, is_all: bool) -> Iterator[bytes]:
    """Yield the hunks of one file after another; the last one that was read in part only is left out."""
    starts = [found.start() for found in _SECTION.finditer(printed)]
    for start, end in zip(starts, [*starts[1:], len(printed) if is_all else None], strict=True):
        if end is None:
            return
        hunk = _HUNK.search(printed, start, end)
        yield b"" if hunk is None else printed[hunk.start() : end]


@dataclass(frozen=True)
class _Part:
    text: str
    next: int | None
    shortened: int


def _part(hunks: bytes, since: int, room: int) -> _Part:
    """Return the lines of a patch from one on, as many as there is room for."""
    lines = hunks.split(b"\n")[:-1] if hunks else []
    kept: list[str] = []
    shortened = 0
    for number in range(since, len(lines)):
        line = lines[number]
        text = _readable(line)
        room -= min(len(line), LINE) + 1
        if room < 0:
            return _Part("\n".join([*kept, ""]) if kept else "", number, shortened)
        shortened += len(line) > LINE
        kept.append(text)
    return _Part("\n".join([*kept, ""]) if kept else "", None, shortened)


def _readable(line: bytes) -> str:
    if len(line) <= LINE:
        return line.decode(errors="replace")
    return line[:LINE].decode(errors="ignore") + f" \N{MIDLINE HORIZONTAL ELLIPSIS} {len(line) - LINE:,} bytes more"


# The work for a task


@dataclass(frozen=True)
class Work:
    """Where the work for a task is: what it is measured against, its last commit, and its checkout if it has one."""

    base: str
    tip: str
    checkout: Path | None = None
    dirty: bool = False


def find(project: Project, main: str | None, names: Sequence[str], branch: str) -> Work | None:
    """Return the work at the first of some commits or refs that is there; None if none of them is."""
    tip = next((found for name in names if (found := resolve(project, name)) is not None), None)
    if tip is None:
        return None
    base = tip if main is None else base_of(project, main, tip)
    checkout = _checkout(project, branch)
    return Work(base, tip, checkout, checkout is not None and is_dirty(project, checkout))


def landed(project: Project, onto: str | None, commit: str) -> Work | None:
    """Return the work that landed in a commit: all that came after `onto`, else what the commit itself brought."""
    tip = resolve(project, commit)
    before = resolve(project, onto or f"{commit}^1")
    return None if tip is None or before is None else Work(before, tip)


def base_of(project: Project, main: str, tip: str) -> str:
    """Return the commit where a tip left main; the empty tree if they have nothing in common."""
    asked = try_git("merge-base", "--end-of-options", main, tip, at=project.common, patience=PATIENCE)
    if asked.returncode == 0:
        return asked.stdout.decode().strip()
    return git("hash-object", "-t", "tree", "--stdin", at=project.common, stdin=b"").decode().strip()


def _checkout(project: Project, branch: str) -> Path | None:
    for folder in checkouts.git_folders(project):
        if not (project.bare and folder == project.common) and entries.branch(folder) == branch:
            path = checkouts.path_of(project, folder)
            return path if path is not None and path.is_dir() else None
    return None


def is_dirty(project: Project, checkout: Path) -> bool:
    """Say whether there is something in a checkout that is not committed; nothing in it is touched."""
    try:
        with looks.look(project, checkout) as seen:
            words = ("status", "--porcelain", "-z", "--no-renames", looks.NO_SUBMODULES)
            asked = seen.ask(*words, patience=PATIENCE)
    except CoveyError:
        return False
    found = (entry for entry in asked.stdout.decode(errors="replace").split("\0") if entry)
    return asked.returncode == 0 and any(not (entry[:2] == "??" and is_cache(entry[3:])) for entry in found)


@contextmanager
def working(project: Project, checkout: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Give the tree of what lies in a checkout by now, and the environment in which git can read it.

    Nothing is written into the checkout or the repository, and nothing that a session configured is run.
    """
    with private_git(project, checkout) as private:
        (private.folder / "objects").mkdir()
        shared = str(project.common / "objects").replace("\\", "\\\\").replace('"', '\\"')
        objects = {
            "GIT_OBJECT_DIRECTORY": str(private.folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{shared}"',
        }
        env = quiet({"core.fsync": "none"}) | objects
        env |= {
            "GIT_DIR": str(private.folder),
            "GIT_COMMON_DIR": str(private.folder),
            "GIT_WORK_TREE": str(checkout),
            "GIT_INDEX_FILE": str(private.index),
        }
        own = _git_folder(project, checkout)
        if own is not None and (own / "index").is_file():
            shutil.copyfile(own / "index", private.index)
        # Whoever works there goes on meanwhile: what vanishes, or cannot be read, takes nothing else away.
        try_git("add", "-u", "--ignore-errors", "--", ".", at=checkout, env=env, patience=PATIENCE)
        loose = git("ls-files", "--others", "--exclude-standard", "-z", at=checkout, env=env, patience=PATIENCE)
        wanted = [name for name in loose.split(b"\0") if name and _is_wanted(checkout, name)][:LOOSE]
        if wanted:
            named = b"".join(name + b"\0" for name in wanted)
            words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
            git(*words, at=checkout, env=env, stdin=named, patience=PATIENCE)
        yield git("write-tree", at=checkout, env=env, patience=PATIENCE).decode().strip(), objects


def _git_folder(project: Project, checkout: Path) -> Path | None:
    return looks.entry_of(project, checkout)


def _is_wanted(checkout: Path, name: bytes) -> bool:
    try:
        size = os.lstat(os.path.join(os.fsencode(checkout), name)).st_size
    except OSError:
        return False
    return not name.endswith(b"/") and size <= LOOSE_SIZE and not is_cache(readable(name))


# The lines of comments


def lines(project: Project, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[str] | None]:
    """Return the lines of files, each by its commit and path; None where there is no such text."""
    asked = [place for place in dict.fromkeys(places) if _is_askable(place[1])]
    found: dict[tuple[str, str], list[str] | None] = dict.fromkeys(places)
    if not asked:
        return found
    names = "".join(f"{commit}:{path}\n" for commit, path in asked).encode(errors="replace")
    checked = git("cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)", at=project.common, stdin=names)
    for place, line in zip(asked, checked.decode(errors="replace").split("\n"), strict=False):
        kind, _, rest = line.partition(" ")
        size, _, name = rest.partition(" ")
        if kind == "blob" and size.isdigit() and int(size) <= TEXT:
            data = git("cat-file", "blob", name, at=project.common)
            found[place] = None if b"\0" in data[:8000] else data.decode(errors="replace").split("\n")
    return found


def _is_askable(path: str) -> bool:
    """Say whether git can be asked for a path among others: of one that begins with dots it dies."""
    return not any(char in path for char in "\n\0") and not path.startswith(("./", "../"))


# Several tasks


@dataclass(frozen=True, kw_only=True)
class Part:
    """A task's work among others: the files that it changes, and those in which it cannot be joined to the rest."""

    task: str
    tip: str
    files: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    message: str = ""
    """What git says of the conflict; empty where there is none."""
    commit: str | None = None
    """That in which its work is put on what came before it."""


@dataclass(frozen=True, kw_only=True)
class Combined:
    """What main would be with the work of several tasks one after another in it."""

    base: str
    tip: str
    parts: tuple[Part, ...]


def combined(project: Project, main: str, tips: Sequence[tuple[str, str]]) -> Combined:
    """Put the tips of tasks one after another on main; one that does not go together with those before is left out."""
    touched = changed(project, main, [tip for _, tip in tips])
    parts = {task: Part(task=task, tip=tip, files=touched[tip]) for task, tip in tips}
    head, left = main, list(tips)
    while left:
        links = [Link(id=task, tip=tip, message=f"{task}\n", author=_NOBODY) for task, tip in left]
        chain = chains.extend(project, head, links, policy="squash", at=0.0)  # the same commits whenever it is asked
        head = chain.head
        parts |= {
            placed.id: replace(parts[placed.id], commit=placed.commit) for placed in chain.links if not placed.is_empty
        }
        if chain.stopped is None:
            break
        stopped = chain.stopped
        said = stopped.conflict
        parts[stopped.id] = replace(parts[stopped.id], conflicts=said.files, message=said.message or "It conflicts.")
        left = left[[task for task, _ in left].index(stopped.id) + 1 :]
    return Combined(base=main, tip=head, parts=tuple(parts.values()))


def meetings(project: Project, main: str, tip: str, others: Sequence[str]) -> dict[str, Contact]:
    """Return how a tip meets main and each of some others, by their commits; what git cannot tell is left out."""
    branches = Branches(project)
    looked = branches.look(main, list(dict.fromkeys((tip, *others))))
    if tip not in looked:
        raise ToolFailed(f"git cannot read {tip[:12]}.")
    known = [other for other in dict.fromkeys(others) if other in looked and other != tip]
    with_main = branches.compare(main, [(each, main) for each in (tip, *known)])
    found = branches.compare(main, [(tip, other) for other in known])
    answer = {other: found[tip, other] for other in known if (tip, other) in found}
    return answer | ({main: with_main[tip, main]} if (tip, main) in with_main else {})
