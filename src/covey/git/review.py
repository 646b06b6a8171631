"""What somebody's work changes, as a person reviews it: bounded, whatever names and bytes it has."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from covey.core.fleet.outcomes import is_cache
from covey.core.people.comments import Shift
from covey.errors import CoveyError, NotFound, ToolFailed
from covey.files import status
from covey.git import objects
from covey.git.candidates import candidate_chain
from covey.git.candidates.candidate_chain import Link
from covey.git.candidates.candidates import merge_base, readable, resolve
from covey.git.identity import BIG_FILE, COVEY, PLAIN_DIFF
from covey.git.overlap.overlap import Branches, Contact, changed
from covey.git.project import Project
from covey.git.rescue.rescue_repository import private_git, quiet
from covey.git.run import first_of, git, quoted, try_git
from covey.git.worktrees import checkout_status, checkouts, worktree_admin
from covey.values import dataclass

DIFF_TIMEOUT_S = 120.0
MAX_PATCH_BYTES = 128 * 1024
"""Bytes of one file's patch in one answer."""
MAX_PATCHES_BYTES = 1024 * 1024
"""Bytes of all patches in one answer."""
MAX_SHOWN_LINE_BYTES = 4096
"""Bytes of one line that are shown."""
MAX_FILES = 3000
"""Files that are listed."""
MAX_DIFF_BYTES = 24 * 1024 * 1024
"""Bytes that are read of what git prints; what lies beyond is asked for by its path."""
MAX_LISTING_BYTES = 8 * 1024 * 1024
CONTEXT_LINES = 3
MAX_LOOSE_FILES, MAX_LOOSE_BYTES = 2000, 2 * 1024 * 1024
"""How many files that git does not know yet are looked at in a worktree, and how large they may be."""
MAX_TEXT_BYTES = 2 * 1024 * 1024
"""Bytes of a file in which the lines of comments are looked for."""
TRACKING_TIMEOUT_S = 60.0

STATUS = {
    "A": "added", "D": "deleted", "M": "changed", "R": "renamed", "C": "copied", "T": "type", "U": "unmerged",
}  # fmt: skip
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)
_HUNK_START = re.compile(rb"^@@ ", re.MULTILINE)
_HUNK_RANGES = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_BLAMED = re.compile(rb"^([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?$", re.MULTILINE)
_PLAIN = (*PLAIN_DIFF, "--histogram", "--no-relative", "--submodule=short")
Lines = tuple[int, int]
"""The first and the last of some lines that follow one another."""


@dataclass(frozen=True, kw_only=True)
class FilePatch:
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
    """How many lines in `patch` are cut short."""


@dataclass(frozen=True, kw_only=True)
class Diff:
    """What differs between two commits or trees."""

    files: tuple[FilePatch, ...]
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
    context: int = CONTEXT_LINES,
    env: Mapping[str, str] | None = None,
) -> Diff:
    """Return what differs; of one `path` from a line of its patch on, else of all files as much as there is room for.

    The path is spelled as an answer spells it: bytes that are not UTF-8 are written as escapes.
    """
    listed = _list(project, base, tip, dict(env or {}))
    wanted = listed[:MAX_FILES] if path is None else [each for each in listed if each[1].path == path][:1]
    if path is not None and not wanted:
        raise NotFound(f"{path[:200]!r} is not among the files that differ.", hint="Ask without a path to see them.")
    return Diff(
        files=tuple(_patched(project, base, tip, wanted, since, context, dict(env or {}))),
        plus=sum(file.plus for _, file in listed),
        minus=sum(file.minus for _, file in listed),
        more=max(len(listed) - MAX_FILES, 0),
    )


def _list(project: Project, base: str, tip: str, env: dict[str, str]) -> list[tuple[tuple[bytes, ...], FilePatch]]:
    """Return the names and the summary of each file that differs."""
    words = (*BIG_FILE, "diff-tree", "-r", "-M", "-z", "--raw", "--numstat", "--no-abbrev")
    named = ("--end-of-options", base, tip)
    printed, is_all = first_of(
        *words, *_PLAIN, *named, at=project.common, most=MAX_LISTING_BYTES, env=env, patience=DIFF_TIMEOUT_S
    )
    if not is_all:
        raise ToolFailed("It changes too many files to be shown.", hint="git diff --stat shows them.")
    fields = iter(printed.split(b"\0"))
    files: dict[tuple[bytes, ...], FilePatch] = {}
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


def _file(names: tuple[bytes, ...], status: str, old_mode: str, mode: str) -> FilePatch:
    gone, new = mode == "000000", old_mode == "000000"
    return FilePatch(
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
    files: Sequence[tuple[tuple[bytes, ...], FilePatch]],
    since: int,
    context: int,
    env: dict[str, str],
) -> list[FilePatch]:
    words = (*BIG_FILE, "diff-tree", "-r", "-M", "-p", f"-U{context}", "--full-index")
    alone = [os.fsdecode(name) for name in files[0][0]] if len(files) == 1 else []
    env = env | {"GIT_LITERAL_PATHSPECS": "1"}
    named = ("--end-of-options", base, tip, *(("--", *alone) if alone else ()))
    printed, is_all = first_of(
        *words, *_PLAIN, *named, at=project.common, most=MAX_DIFF_BYTES, env=env, patience=DIFF_TIMEOUT_S
    )
    sections = _sections(printed, is_all)
    room, shown = MAX_PATCHES_BYTES, []
    for _, file in files:
        parts = [next(sections, None)]
        if file.status == "type":
            parts.append(next(sections, None))  # git tells it as two: one goes, one comes
        if file.binary or room <= 0 or None in parts:
            later = None if file.binary or alone else 0
            shown.append(replace(file, cut=not file.binary, next=later))
            continue
        hunks = b"".join(each for each in parts if each is not None)
        text, following, shortened = _part(hunks, since, min(room, MAX_PATCH_BYTES))
        room -= len(text.encode())
        is_cut = following is not None
        patch = text if text or not is_cut else None
        shown.append(replace(file, patch=patch, cut=is_cut, next=following, shortened=shortened))
    return shown


def _sections(printed: bytes, is_all: bool) -> Iterator[bytes]:
    """Yield the hunks of one file after another; the last one that was read in part only is left out."""
    starts = [found.start() for found in _SECTION.finditer(printed)]
    for start, end in zip(starts, [*starts[1:], len(printed) if is_all else None], strict=True):
        if end is None:
            return
        hunk = _HUNK_START.search(printed, start, end)
        yield b"" if hunk is None else printed[hunk.start() : end]


def _part(hunks: bytes, since: int, room: int) -> tuple[str, int | None, int]:
    """Return as many lines of a patch as there is room for, the number of the next, and how many are cut short."""
    lines = hunks.split(b"\n")[:-1] if hunks else []
    text, shortened = "", 0
    for number in range(since, len(lines)):
        line = lines[number]
        room -= min(len(line), MAX_SHOWN_LINE_BYTES) + 1
        if room < 0:
            return text, number, shortened
        shortened += len(line) > MAX_SHOWN_LINE_BYTES
        text += f"{_readable(line)}\n"
    return text, None, shortened


def _readable(line: bytes) -> str:
    if len(line) <= MAX_SHOWN_LINE_BYTES:
        return line.decode(errors="replace")
    return (
        line[:MAX_SHOWN_LINE_BYTES].decode(errors="ignore")
        + f" \N{MIDLINE HORIZONTAL ELLIPSIS} {len(line) - MAX_SHOWN_LINE_BYTES:,} bytes more"
    )


# The work for a task


@dataclass(frozen=True)
class TaskWork:
    """Where the work for a task is: what it is measured against, its last commit, and its checkout if it has one."""

    base: str
    tip: str
    checkout: Path | None = None
    dirty: bool = False


def find(project: Project, main: str | None, names: Sequence[str], branch: str) -> TaskWork | None:
    """Return the work at the first of some commits or refs that is there; None if none of them is."""
    tip = next((found for name in names if (found := resolve(project, name)) is not None), None)
    if tip is None:
        return None
    base = tip if main is None else merge_base(project, main, tip)
    if not base:  # they have nothing in common: all of it differs from the empty tree
        base = git("hash-object", "-t", "tree", "--stdin", at=project.common, stdin=b"").decode().strip()
    checkout = _checkout(project, branch)
    return TaskWork(base, tip, checkout, checkout is not None and is_dirty(project, checkout))


def landed(project: Project, onto: str | None, commit: str) -> TaskWork | None:
    """Return the work that landed in a commit: all that came after `onto`, else what the commit itself brought."""
    tip = resolve(project, commit)
    before = resolve(project, onto or f"{commit}^1")
    return None if tip is None or before is None else TaskWork(before, tip)


def _checkout(project: Project, branch: str) -> Path | None:
    for folder in checkouts.git_folders(project):
        if not (project.bare and folder == project.common) and worktree_admin.branch(folder) == branch:
            path = checkouts.path_of(project, folder)
            return path if path is not None and path.is_dir() else None
    return None


def is_dirty(project: Project, checkout: Path) -> bool:
    """Say whether there is something in a checkout that is not committed; nothing in it is touched."""
    try:
        found = checkout_status.uncommitted(project, checkout, DIFF_TIMEOUT_S)
    except CoveyError:
        return False
    return any(not (code == "??" and is_cache(path)) for code, path in found)


@contextmanager
def working(project: Project, checkout: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Give the tree of what lies in a checkout by now, and the environment in which git can read it.

    Nothing is written into the checkout or the repository, and nothing that a session configured is run.
    """
    with private_git(project, checkout) as private:
        (private.folder / "objects").mkdir()
        shared = {
            "GIT_OBJECT_DIRECTORY": str(private.folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(str(project.common / "objects")),
        }
        env = quiet({"core.fsync": "none"}) | shared | private.named(private.index)
        own = checkout_status.entry_of(project, checkout)
        if own is not None and (own / "index").is_file():
            shutil.copyfile(own / "index", private.index)
        # Whoever works there goes on meanwhile: what vanishes, or cannot be read, takes nothing else away.
        try_git("add", "-u", "--ignore-errors", "--", ".", at=checkout, env=env, patience=DIFF_TIMEOUT_S)
        loose = git("ls-files", "--others", "--exclude-standard", "-z", at=checkout, env=env, patience=DIFF_TIMEOUT_S)
        wanted = [name for name in loose.split(b"\0") if name and _is_wanted(checkout, name)][:MAX_LOOSE_FILES]
        if wanted:
            named = b"".join(name + b"\0" for name in wanted)
            words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
            git(*words, at=checkout, env=env, stdin=named, patience=DIFF_TIMEOUT_S)
        yield git("write-tree", at=checkout, env=env, patience=DIFF_TIMEOUT_S).decode().strip(), shared


def _is_wanted(checkout: Path, name: bytes) -> bool:
    found = status(os.path.join(os.fsencode(checkout), name))
    is_small = found is not None and found.st_size <= MAX_LOOSE_BYTES
    return is_small and not name.endswith(b"/") and not is_cache(readable(name))


# The lines of comments


def lines(project: Project, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[str] | None]:
    """Return the lines of files, each by its commit and path; None where there is no such text."""
    asked = [place for place in dict.fromkeys(places) if _is_askable(place[1])]
    found: dict[tuple[str, str], list[str] | None] = dict.fromkeys(places)
    if not asked:
        return found
    names = [f"{commit}:{path}".encode(errors="replace").decode() for commit, path in asked]
    for place, data in zip(asked, objects.texts(project, names, MAX_TEXT_BYTES), strict=True):
        if data is not None:
            found[place] = None if b"\0" in data[:8000] else data.decode(errors="replace").split("\n")
    return found


def _is_askable(path: str) -> bool:
    """Say whether git can be asked for a path among others: of one that begins with dots it dies."""
    return not any(char in path for char in "\n\0") and not path.startswith(("./", "../"))


def shifts(project: Project, path: str, one: str, other: str) -> list[Shift] | None:
    """Return how the lines of a file in one commit became those in another; None if it is not in both of them."""
    words = (*BIG_FILE, "diff", "-U0", *PLAIN_DIFF)
    asked = try_git(*words, f"{one}:{path}", f"{other}:{path}", "--", at=project.common, patience=TRACKING_TIMEOUT_S)
    if asked.returncode != 0 or b"\nBinary files " in asked.stdout:
        return None
    found = []
    for start, count, _, new_count in _HUNK_RANGES.findall(asked.stdout):
        gone = int(count or 1)
        found.append(Shift(int(start) + (gone == 0), gone, int(new_count or 1)))  # the line before what is only added
    return found


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
        links = [Link(id=task, tip=tip, message=f"{task}\n", author=COVEY) for task, tip in left]
        chain = candidate_chain.extend(
            project, head, links, policy="squash", at=0.0
        )  # the same commits whenever it is asked
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
    if tip not in branches.look(main, list(dict.fromkeys((tip, *others)))):
        raise ToolFailed(f"git cannot read {tip[:12]}.")
    met = branches.meet(main, [*((tip, other) for other in others), (tip, main)])
    return {other: contact for (_, other), contact in met.items()}


def written(
    project: Project, base: str, tip: str, paths: Sequence[str], tasks: Mapping[str, str]
) -> dict[str, dict[str, list[Lines]]]:
    """Return for each file which lines of it each task wrote after `base`; `tasks` are named by their commits."""
    found: dict[str, dict[str, list[Lines]]] = {}
    for path in paths:
        words = ("blame", "--no-textconv", "--porcelain", f"{base}..{tip}", "--", path)
        asked = try_git(*words, at=project.common, env={"GIT_LITERAL_PATHSPECS": "1"}, patience=TRACKING_TIMEOUT_S)
        owners: dict[str, list[Lines]] = {}
        for commit, line in _BLAMED.findall(asked.stdout if asked.returncode == 0 else b""):
            if (task := tasks.get(commit.decode())) is not None:
                _add(owners.setdefault(task, []), int(line))
        found[path] = owners
    return found


def _add(lines: list[Lines], line: int) -> None:
    if lines and lines[-1][1] == line - 1:
        lines[-1] = (lines[-1][0], line)
    else:
        lines.append((line, line))
