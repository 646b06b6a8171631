"""Carrying: one checkout goes from one commit to a later one as a fast-forward does, or stays as it is.

git's own fast-forward writes files and index first and moves the branch last, holding no lock in between. Here both
locks are held for the whole move, so that nothing the user starts meanwhile can meet a checkout that is half moved.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import json
import os
import secrets
import shutil
import stat
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, field, replace
from pathlib import Path

from covey import files, trash
from covey.errors import ToolFailed, Unavailable
from covey.git.candidates.candidates import Change, Entry, folders_above, read_change, readable
from covey.git.identity import COMMITTER, NO_PROMPT
from covey.git.refs import Order
from covey.git.run import checked, complaint, environment, named_env, settings, try_git
from covey.git.worktrees import foreign_git
from covey.git.worktrees.checkouts import Checkout
from covey.values import dataclass

MARK_FILE = "covey-landing"
"""The file that says which move is under way; while it lasts, index.lock is another name of it."""

KEY_FILE = "landing.key"
"""The file of covey's own with the secret that marks are sealed with: one that a session wrote is not believed."""
KEY_BYTES = 32
MAX_OPENINGS = 100

PRIVATE_INDEX = "covey-index"
SCRATCH_INDEX = "covey-scratch"
FORWARD_TIMEOUT_S = 600.0
INDEX_SETTLED_NS = 250_000_000
"""A git command moves HEAD right after it wrote the index; an index older than this has no such step to come."""

LINGER_TIMES = 2.0
MIN_LINGER_S = 0.004
"""For how many times the life of a git process, and how many seconds at least, the lock outlasts a move: a command of
the user that read the old main just before it then meets the lock, and ends without having done anything."""

FOREIGN_GIT_WAIT_S = 0.5
"""Seconds for which a git command of the user's is waited for that is in the middle of its work."""

UNCHANGED_S = 1.0
OWN_LOCK_NS = 5_000_000_000
"""A lock on a branch lives for milliseconds: one that lies there for this long, made that near to ours, is ours."""

LOCK_SETTINGS = {"core.filesRefLockTimeout": "1000"}

LINK_MODE, GITLINK_MODE = b"120000", b"160000"


@dataclass(frozen=True)
class Intent:
    """The move that a lock was taken for, so that whoever finds it after a crash can finish it."""

    main: str
    expected: str
    commit: str
    late: bool = False
    began: int = 0
    locks: tuple[str, ...] = ()


NO_INTENT = Intent("", "", "")


@dataclass
class Survey:
    """What a survey found on the paths that change: what is the user's, and what a broken move of ours left."""

    blocking: list[bytes] = field(default_factory=list)
    moved: list[Change] = field(default_factory=list)
    torn: list[Change] = field(default_factory=list)
    gone: list[Change] = field(default_factory=list)


@dataclass(frozen=True)
class Blocked:
    """What stands in the way of carrying a checkout: files of the user, or what git said."""

    files: tuple[str, ...]
    said: str = ""


class Hold(contextlib.AbstractContextManager["Hold"]):
    """The lock on a checkout's index: while it is held, git starts no other change of that checkout."""

    def __init__(self, checkout: Checkout, file: int, intent: Intent, interrupted: bool) -> None:
        self.checkout = checkout
        self.intent = intent
        self.interrupted = interrupted
        self.broken = False
        self.file = file
        own = named_env(checkout.folder, checkout.path)
        self.env = {**COMMITTER, **settings(LOCK_SETTINGS), **NO_PROMPT, **own}

    def __exit__(self, *_: object) -> None:
        """Give the lock back; a move that broke in the middle leaves its mark, so that the next one finishes it."""
        if not self.broken:
            os.ftruncate(self.file, 0)
        _give_back(self.checkout.folder, self.file, forget=not self.broken)

    def mean(self, intent: Intent) -> None:
        """Say what the lock is used for from now on."""
        self.intent = _begin(self.checkout.folder, self.file, intent)

    def git(self, *words: str, index: str = "", stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run git in the checkout; the lock counts as held until it has ended, even when we die before it."""
        env = self.env | ({"GIT_INDEX_FILE": str(self.checkout.folder / index)} if index else {})
        keep = (self.file,)
        return try_git(*words, at=self.checkout.path, stdin=stdin, env=env, patience=FORWARD_TIMEOUT_S, keep=keep)


class Move(contextlib.AbstractContextManager["Move"]):
    """A branch that is about to move: prepared, nobody else can move it or the HEAD that stands for it."""

    def __init__(self, hold: Hold) -> None:
        intent = hold.intent
        message = f"covey: land {intent.commit[:12]}"
        began = time.monotonic()
        self._process = subprocess.Popen(
            ["git", "update-ref", "--stdin", "-m", message],
            cwd=hold.checkout.path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(hold.checkout.path, hold.env),
            pass_fds=(hold.file,),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        order = Order(f"refs/heads/{intent.main}", intent.commit, intent.expected)
        self.prepared = self._ask(f"start\n{order.words()}prepare\n", b"prepare: ok\n")
        self.took = time.monotonic() - began

    def __exit__(self, *_: object) -> None:
        """Let go of the branch: what was not committed has not happened."""
        with contextlib.suppress(BrokenPipeError):
            self._to.close()
        self._process.wait()
        self._from.close()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def commit(self) -> None:
        """Move the branch."""
        if not self._ask("commit\n", b"commit: ok\n"):
            raise ToolFailed(f"git update-ref failed: {self.said()}.")

    def said(self) -> str:
        """Return why git did not prepare or make the move."""
        _, said = self._process.communicate()
        return complaint(subprocess.CompletedProcess((), self._process.returncode, b"", said))

    def _ask(self, words: str, answer: bytes) -> bool:
        with contextlib.suppress(BrokenPipeError):
            self._to.write(os.fsencode(words))
            self._to.flush()
        # git ends at its first complaint, so that each line either comes or the pipe closes.
        return any(line == answer for line in iter(self._from.readline, b"") if line != b"start: ok\n")


def take(checkout: Checkout, intent: Intent | None, patience: float) -> Hold | None:
    """Take the lock of a checkout's index once nobody has it and what was done there last has ended.

    Without an intent the lock only keeps others out, and a crash leaves nothing to finish.
    """
    begun = time.monotonic()
    deadline = begun + patience
    while True:
        hold = _try_take(checkout, intent)
        if hold is not None and (hold.interrupted or _is_at_rest(checkout, time.monotonic() - begun)):
            return hold
        if hold is not None:
            with hold:
                pass
        if time.monotonic() > deadline:
            return None
        time.sleep(0.01)


def carry(hold: Hold) -> Blocked | None:
    """Bring files and index from the one commit to the other; when something blocks that, leave both as they were."""
    try:
        changes = _changes(hold)
        _copy_index(hold, PRIVATE_INDEX)
        is_doubtful = hold.interrupted or any(_is_suspicious(hold, change) for change in changes)
        blocked = None
        for is_surveyed in (is_doubtful, True):
            blocked = _make_way(hold, changes) if is_surveyed else None
            if blocked is not None:
                break
            # What a fast-forward does to files and index: git refuses before it writes.
            words = ("read-tree", "-m", "-u", hold.intent.expected, hold.intent.commit)
            done = hold.git(*words, index=PRIVATE_INDEX)
            if done.returncode == 0:
                os.replace(hold.checkout.folder / PRIVATE_INDEX, hold.checkout.folder / "index")
                return None
            blocked = Blocked((), complaint(done))
        undo(hold)
        return blocked
    except BaseException:
        hold.broken = True
        raise


def undo(hold: Hold) -> None:
    """Put back what this move wrote before it broke: files that have the new content since it began, and no others."""
    found = _survey(hold, _changes(hold))
    ours = [change for change in (*found.moved, *found.torn) if _is_newer(hold, _full(hold, change.path))]
    ours += [change for change in found.gone if _is_newer(hold, os.path.dirname(_full(hold, change.path)))]
    for change in ours:
        if change.old is None:
            os.unlink(_full(hold, change.path))
            with contextlib.suppress(OSError):
                os.removedirs(os.path.dirname(_full(hold, change.path)))
    back = b"".join(change.path + b"\0" for change in ours if change.old is not None)
    if back:
        checked("checkout-index", hold.git("checkout-index", "--force", "-z", "--stdin", index="index", stdin=back))


def linger(took: float, places: Iterable[Path]) -> None:
    """Wait, with locks held, as long as a git command may take that has begun in these places before the move."""
    time.sleep(max(LINGER_TIMES * took, MIN_LINGER_S))
    foreign_git.await_rest(places, FOREIGN_GIT_WAIT_S)


def left_behind(folder: Path) -> Intent | None:
    """Return the move that a crash left in a git folder, and clear away the mark of one that had done nothing."""
    file = _open_mark(folder, create=False)
    if file is None:
        return None
    try:
        intent = _read(folder, file)
    except BaseException:
        os.close(file)
        raise
    if intent is None:
        _give_back(folder, file, forget=True)
    else:
        os.close(file)
    return intent


def _try_take(checkout: Checkout, intent: Intent | None) -> Hold | None:
    folder = checkout.folder
    file = _open_mark(folder, create=True)
    if file is None:
        return None
    left = _read(folder, file)
    if left is not None and intent is None:
        os.close(file)
        return None
    if not _is_ours(folder / "index.lock", file):
        try:
            os.link(folder / MARK_FILE, folder / "index.lock")
        except FileExistsError:
            if left is None:
                (folder / MARK_FILE).unlink(missing_ok=True)
            os.close(file)
            return None
        except OSError as error:
            os.close(file)
            raise Unavailable(f"The index of {checkout.path} cannot be locked: {error.strerror}.") from error
    if left is not None:
        _break_locks(left, os.fstat(file).st_mtime_ns)
    _clear(folder)
    if intent is None:
        return Hold(checkout, file, NO_INTENT, interrupted=False)
    wanted = (intent.main, intent.expected, intent.commit)
    if left is None or (left.main, left.expected, left.commit) != wanted:
        return Hold(checkout, file, _begin(folder, file, intent), interrupted=False)
    _write(folder, file, left)
    return Hold(checkout, file, left, interrupted=True)


def _begin(folder: Path, file: int, intent: Intent) -> Intent:
    # The time by the clock of the file system, which is the one that the files' own times come from.
    _write(folder, file, intent)
    begun = replace(intent, began=os.fstat(file).st_mtime_ns)
    _write(folder, file, begun)
    return begun


def _give_back(folder: Path, file: int, *, forget: bool) -> None:
    _clear(folder)
    if _is_ours(folder / "index.lock", file):
        (folder / "index.lock").unlink()
    if forget:
        (folder / MARK_FILE).unlink(missing_ok=True)
    os.close(file)


def _open_mark(folder: Path, *, create: bool) -> int | None:
    """Open and lock the mark of a git folder, unless a living process has it; what is not our mark goes."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_CREAT if create else 0)
    for _ in range(MAX_OPENINGS):
        try:
            file = os.open(folder / MARK_FILE, flags, 0o644)
        except FileNotFoundError:
            return None
        except OSError as error:
            if not os.path.lexists(folder / MARK_FILE) or not trash.remove(folder / MARK_FILE):
                raise Unavailable(f"{folder} cannot be written: {error.strerror}.") from error
            continue
        found = os.fstat(file)
        # With another name than the mark's and the lock's, to write it would write somebody's file.
        is_alone = found.st_nlink <= 1 or _is_ours(folder / "index.lock", file)
        if not stat.S_ISREG(found.st_mode) or not is_alone:
            os.close(file)
            (folder / MARK_FILE).unlink(missing_ok=True)
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        if _is_ours(folder / MARK_FILE, file):
            return file
        os.close(file)  # Its last holder removed it between our opening and locking it.
    return None


def _is_ours(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _break_locks(left: Intent, asked: int) -> None:
    """Remove the locks that a git of ours took for a move and died with: nobody else would.

    They were made when the mark was written, they hold nothing or the commit that we land, and they do not go away.
    """
    ours = {path: seen for path in left.locks if (seen := _seen(path)) and _is_left(seen, left, asked)}
    deadline = time.monotonic() + UNCHANGED_S
    while ours and time.monotonic() < deadline:
        time.sleep(0.02)
        ours = {path: seen for path, seen in ours.items() if _seen(path) == seen}
    for path in ours:
        Path(path).unlink(missing_ok=True)


def _is_left(seen: tuple[int, int, bytes], left: Intent, asked: int) -> bool:
    _, made, content = seen
    return abs(made - asked) < OWN_LOCK_NS and content.strip() in (b"", left.commit.encode())


def _seen(path: str) -> tuple[int, int, bytes] | None:
    try:
        facts = os.lstat(path)
        return facts.st_ino, facts.st_mtime_ns, Path(path).read_bytes()
    except OSError:
        return None


def _read(folder: Path, file: int) -> Intent | None:
    """Return the move that a mark tells of; nothing if it is cut off, or not covey's own."""
    try:
        said = json.loads(os.pread(file, 65536, 0))
        if not hmac.compare_digest(said["seal"], _seal(folder, said["intent"])):
            return None
        facts = json.loads(said["intent"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Intent(**{**facts, "locks": tuple(facts["locks"])})


def _write(folder: Path, file: int, intent: Intent) -> None:
    # One write, padded: a crash can leave the old text or the new one, never a mixture.
    said = json.dumps(asdict(intent))
    text = json.dumps({"intent": said, "seal": _seal(folder, said)}).encode()
    os.pwrite(file, text.ljust(os.fstat(file).st_size), 0)


def _seal(folder: Path, said: str) -> str:
    """Return what only covey can write below a mark of this git folder."""
    is_linked = folder.parent.name == "worktrees"
    key = _key((folder.parent.parent if is_linked else folder) / "covey")
    return hmac.digest(key, f"{folder.name if is_linked else ''}\n{said}".encode(), "sha256").hex()


def _key(state: Path) -> bytes:
    """Return the secret of this repository, and make one if there is none."""
    path = state / KEY_FILE
    try:
        if not path.is_file() or path.is_symlink() or path.stat().st_size != KEY_BYTES:
            state.mkdir(exist_ok=True)
            trash.remove(path)
            new = state / f".{KEY_FILE}.{secrets.token_hex(6)}"
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
            with contextlib.suppress(FileExistsError):
                os.link(new, path)
            new.unlink()
        return path.read_bytes()
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}.") from error


def _clear(folder: Path) -> None:
    for name in (PRIVATE_INDEX, SCRATCH_INDEX):
        for path in (folder / name, folder / f"{name}.lock"):
            if os.path.lexists(path) and not trash.remove(path):
                raise Unavailable(f"{path} is in the way, and cannot be removed.")


def _is_at_rest(checkout: Checkout, waited: float) -> bool:
    """Say whether nothing is under way in a checkout: on a busy machine HEAD may follow the index late.

    The command that wrote the index last has also moved HEAD, as far as the clock can tell. Who works there without end
    is not waited for.
    """
    index, moves = (files.status(checkout.folder / name, follow=True) for name in ("index", "logs/HEAD"))
    written = 0 if index is None else index.st_mtime_ns
    is_fresh = 0 <= time.time_ns() - written < INDEX_SETTLED_NS
    if is_fresh and (moves is None or moves.st_mtime_ns < written):
        return False
    return waited > FOREIGN_GIT_WAIT_S or not foreign_git.at_work([checkout.path])


def _copy_index(hold: Hold, name: str) -> None:
    # With its time: git compares it with those of the files to know which of them it must read again.
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(hold.checkout.folder / "index", hold.checkout.folder / name)


def _changes(hold: Hold) -> list[Change]:
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", hold.intent.expected, hold.intent.commit)
    fields = checked("diff-tree", hold.git(*words)).split(b"\0")
    return [read_change(facts, path) for facts, path in zip(fields[0::2], fields[1::2], strict=False)]


def _is_suspicious(hold: Hold, change: Change) -> bool:
    """Say whether a path needs a survey: git would write over ignored files, and bring back a deleted one."""
    here = _look(hold, change.path)
    if change.new is None:
        return False
    if change.old is not None:
        return here is None or stat.S_ISDIR(here.st_mode) != (change.old[0] == GITLINK_MODE)
    return here is not None or _parent_in_the_way(hold, change.path) is not None


def _look(hold: Hold, path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(_full(hold, path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _full(hold: Hold, path: bytes) -> bytes:
    return os.path.join(os.fsencode(hold.checkout.path), path)


def _parent_in_the_way(hold: Hold, path: bytes) -> bytes | None:
    for parent in folders_above(path):
        here = _look(hold, parent)
        if here is None:
            return None
        if not stat.S_ISDIR(here.st_mode):
            return parent
    return None


def _make_way(hold: Hold, changes: list[Change]) -> Blocked | None:
    """Name the user's files that block a move; when none does, count what already is as it should be as done."""
    found = _survey(hold, changes)
    blocking = list(found.blocking)
    if not hold.interrupted:
        blocking += [change.path for change in (*found.torn, *found.gone) if change.new is not None]
    if blocking:
        return Blocked(tuple(readable(path) for path in sorted(set(blocking))))
    for change in found.torn:
        os.unlink(_full(hold, change.path))
    if found.moved:
        paths = b"".join(change.path + b"\0" for change in found.moved)
        done = hold.git("update-index", "-z", "--add", "--replace", "--stdin", index=PRIVATE_INDEX, stdin=paths)
        if done.returncode != 0:
            return Blocked((), complaint(done))
    # A file that was only touched looks changed to read-tree, which never compares contents.
    hold.git("update-index", "-q", "--refresh", index=PRIVATE_INDEX)
    return None


def _survey(hold: Hold, changes: list[Change]) -> Survey:
    """Compare, for each path that changes, both commits with the index and with the file that is there."""
    index, sparse = _entries(hold, "index")
    files = _files(hold, [change.path for change in changes])
    found = Survey()
    for change in changes:
        staged = index.get(change.path)
        if staged == change.new:
            continue  # git keeps such an entry, and the file with it.
        if staged != change.old:
            found.blocking.append(change.path)
            continue
        found.blocking += _things_in_the_way(hold, change, index)
        here = _look(hold, change.path)
        is_submodule = any(entry is not None and entry[0] == GITLINK_MODE for entry in (change.old, change.new))
        if is_submodule or (here is not None and stat.S_ISDIR(here.st_mode)):
            continue  # git judges submodules; a folder was judged by what is in it.
        _judge(hold, change, files.get(change.path), change.path in sparse, found)
    return found


def _judge(hold: Hold, change: Change, here: Entry | None, sparse: bool, found: Survey) -> None:
    """Sort one path whose index entry is the old one by the file that is there."""
    if here == change.old or (here is None and sparse):
        return
    if here is None:
        found.gone.append(change)
    elif here == change.new:
        found.moved.append(change)
    elif change.new is not None and _is_beginning(hold, change):
        found.torn.append(change)
    else:
        found.blocking.append(change.path)


def _things_in_the_way(hold: Hold, change: Change, index: dict[bytes, Entry]) -> list[bytes]:
    """Return untracked files that lie where a file should be: one above it, or those of a folder in its place."""
    if change.new is None:
        return []
    parent = _parent_in_the_way(hold, change.path)
    if parent is not None:
        return [] if parent in index else [parent]
    here = _look(hold, change.path)
    if change.new[0] == GITLINK_MODE or here is None or not stat.S_ISDIR(here.st_mode):
        return []
    root = os.fsencode(hold.checkout.path)
    under = (os.path.join(folder, name) for folder, _, names in os.walk(_full(hold, change.path)) for name in names)
    return [path for path in (os.path.relpath(each, root) for each in under) if path not in index]


def _entries(hold: Hold, index: str) -> tuple[dict[bytes, Entry], set[bytes]]:
    """Return what an index holds by path, and the paths that it keeps out of the checkout."""
    listed = checked("ls-files", hold.git("ls-files", "--stage", "-t", "-z", index=index))
    entries: dict[bytes, Entry] = {}
    sparse = set()
    for line in listed.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        tag, mode, name, stage = facts.split(b" ")
        entries[path] = (mode, name) if stage == b"0" else (b"conflict", name)
        if tag == b"S":
            sparse.add(path)
    return entries, sparse


def _files(hold: Hold, paths: list[bytes]) -> dict[bytes, Entry]:
    """Return the files that are there as git would store them, through the user's own filters."""
    looked = ((path, _look(hold, path)) for path in paths if _parent_in_the_way(hold, path) is None)
    there = {path for path, here in looked if here is not None and not stat.S_ISDIR(here.st_mode)}
    (hold.checkout.folder / SCRATCH_INDEX).unlink(missing_ok=True)
    _copy_index(hold, SCRATCH_INDEX)
    named = b"".join(path + b"\0" for path in sorted(there))
    words = ("update-index", "-z", "--add", "--replace", "--stdin")
    checked("update-index", hold.git(*words, index=SCRATCH_INDEX, stdin=named))
    entries, _ = _entries(hold, SCRATCH_INDEX)
    return {path: entries[path] for path in there if path in entries}


def _is_beginning(hold: Hold, change: Change) -> bool:
    """Say whether a file is the first part of what should be there: a write cut off by a crash, nothing to lose."""
    if change.new is None or change.new[0] == LINK_MODE:
        return False
    wanted = hold.git("cat-file", "--filters", f"{hold.intent.commit}:{os.fsdecode(change.path)}")
    try:
        with open(_full(hold, change.path), "rb") as file:
            return wanted.returncode == 0 and wanted.stdout.startswith(file.read(len(wanted.stdout) + 1))
    except OSError:
        return False


def _is_newer(hold: Hold, path: bytes) -> bool:
    while True:
        try:
            return os.lstat(path).st_ctime_ns >= hold.intent.began
        except (FileNotFoundError, NotADirectoryError):
            path = os.path.dirname(path)
