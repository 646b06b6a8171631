"""A project on which covey does its whole job: real git, a real daemon, real agents, and nothing left of them."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import Any

from tests.worlds.forked import run_covey
from tests.worlds.repositories import git_out, make_repository
from tests.worlds.serving import Client, Gone, wait_until
from tests.worlds.shell import clean_environment

PATIENCE = 120
"""Seconds after which a command that never ends is a failure."""
SCRIPTED = '[sessions]\nagent = "scripted"\n'
SHELL = '[agents.sh]\ncommand = ["bash", "{body_file}"]\n'
NOTE = '[agents.sh]\ncommand = ["sh", "-c", "date > $0.txt && git add . && git commit -qm $0", "{task}"]\n'
"""An agent that needs no body: it commits a file named for its task."""
QUICK = "[watch]\nbackoff = 0.2\n"
"""Whoever fails tries again soon."""
MARKING = 'isolate = "off"\nenv = ["OUTSIDE"]\n'
GOOD = '[merge]\ncheck = "test ! -e bad"\n'
"""A gate that every tree passes which has no file `bad`."""


@dataclass
class Line:
    """One project in a folder of its own, with an empty HOME, and a folder outside where agents leave marks."""

    folder: Path
    root: Path
    env: dict[str, str]

    # Typing

    def run(self, *words: str, at: Path | None = None) -> CompletedProcess[str]:
        """Run covey and return how it ended."""
        return run_covey(words, cwd=at or self.root, env=self.env, timeout=PATIENCE)

    def ok(self, *words: str) -> str:
        """Run covey, which must succeed, and return what it prints."""
        done = self.run(*words)
        assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def ends(self, code: int, *words: str) -> str:
        """Run covey, which must end with this code, and return all that it prints."""
        done = self.run(*words)
        said = done.stdout + done.stderr
        assert done.returncode == code, (words, done.returncode, said)
        assert "Traceback" not in said
        return said

    def json(self, *words: str) -> Any:
        """Run covey with --json, which must succeed, and return what it prints."""
        return json.loads(self.ok(*words, "--json"))

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start covey and return at once."""
        return subprocess.Popen(
            [sys.executable, "-m", "covey", *words], cwd=self.root, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def git(self, *words: str, at: Path | None = None) -> str:
        """Run git as the user, and return what it prints."""
        return git_out(at or self.root, *words, env={"HOME": self.env["HOME"]})

    def git_at_last(self, *words: str) -> None:
        """Run git as a user who tries again when a lock is taken: a command that comes while main moves meets one."""
        command = ["git", *words]
        ran = subprocess.run
        wait_until(
            lambda: ran(command, cwd=self.root, env=self.env, capture_output=True, check=False).returncode == 0,
            f"the success of git {words[0]}",
        )

    def commit(self, path: str, text: str, message: str = "By the user") -> str:
        """Commit a file as the user does, and return the commit."""
        (self.root / path).write_text(text)
        self.git("add", "--", path)
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def settings(self, *parts: str) -> None:
        """Write covey.toml, which git does not see."""
        text = "".join(parts)
        if "$OUTSIDE" in text:  # A gate that leaves marks outside is in no room, and has to be told where that is.
            text = text.replace("[merge]\n", f"[merge]\n{MARKING}", 1)
        text += "" if "[watch]" in text else QUICK
        (self.root / "covey.toml").write_text('[project]\nmain = "main"\n' + text)

    # Places

    @property
    def outside(self) -> Path:
        """Return the folder where agents leave marks that no git sees."""
        return self.folder / "outside"

    @cached_property
    def common(self) -> Path:
        """Return the folder of the repository."""
        return Path(self.git("rev-parse", "--path-format=absolute", "--git-common-dir"))

    @property
    def state(self) -> Path:
        """Return the folder of covey's own files."""
        return self.common / "covey"

    @property
    def worktrees(self) -> Path:
        """Return the folder of the sessions' worktrees."""
        return self.root.with_name(f"{self.root.name}.worktrees")

    def mark(self, name: str) -> Path:
        """Return a file outside, by its name."""
        return self.outside / name

    def marks(self, name: str) -> list[str]:
        """Return the lines of a file outside."""
        path = self.mark(name)
        return path.read_text().splitlines() if path.exists() else []

    # Tasks

    def tasks(self, *wanted: dict[str, Any]) -> str:
        """Write tasks to a file outside, one a line, and return its path; a title alone will do."""
        path = self.folder / "tasks.jsonl"
        path.write_text("".join(json.dumps(task) + "\n" for task in wanted))
        return str(path)

    def board(self) -> dict[str, dict[str, Any]]:
        """Return every task by its title."""
        tasks = self._ask("/api/board?limit=1000")
        return {task["title"]: task for task in (self.json("task", "list", "--all") if tasks is None else tasks)}

    def statuses(self) -> dict[str, str]:
        """Return the status of every task by its title."""
        return {title: task["status"] for title, task in self.board().items()}

    # The daemon

    def up(self) -> int:
        """Start the daemon, and return its process."""
        return int(self.json("up")["pid"])

    def client(self) -> Client:
        """Return a connection to the daemon, which is up."""
        said = json.loads((self.state / "daemon.json").read_text())
        return Client(said["port"], (self.state / "owner.token").read_text().strip())

    def start_session(self, name: str, agent: str = "scripted") -> None:
        """Make a session, and let it begin to work; the daemon is up."""
        with self.client() as client:
            client.post("/api/sessions", {"name": name, "agent": agent})
            client.post(f"/api/sessions/{name}/start")

    def sessions(self) -> dict[str, dict[str, Any]]:
        """Return every session by its name; the daemon is up."""
        with self.client() as client:
            return {session["name"]: session for session in client.get("/api/sessions")}

    def task(self, task: str) -> dict[str, Any]:
        """Return one task; the daemon is up."""
        with self.client() as client:
            found: dict[str, Any] = client.get(f"/api/board/{task}")
            return found

    def wait_for(self, task: str, *statuses: str) -> dict[str, Any]:
        """Wait until a task has one of these statuses; the daemon is up."""
        wait_until(lambda: self.task(task)["status"] in statuses, f"{task} {' or '.join(statuses)}")
        return self.task(task)

    def alerts(self) -> list[str]:
        """Return what the person was told, the oldest first."""
        return [event["data"]["message"] for event in self.events("alert.raised")]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of one kind, the oldest first."""
        answered = self._ask(f"/api/log?kind={kind}&limit=1000&newest=true")
        found: list[dict[str, Any]] = self.json("log", "--kind", kind, "-n", "1000") if answered is None else answered
        return found

    def _ask(self, path: str) -> Any:
        """Return what the daemon answers, which costs no process; nothing if it is not up."""
        with suppress(*Gone, ValueError), self.client() as client:
            reply = client.ask("GET", path)
            return reply.json if reply.status == 200 else None

    def agents(self) -> dict[str, int]:
        """Return the agent programs that live, by their runs."""
        found: dict[str, int] = {}
        for pid in processes_of(self.folder):
            with suppress(OSError, ValueError):
                env = dict(part.partition(b"=")[::2] for part in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                run, leads = env.get(b"COVEY_RUN", b"").decode(), int(stat[3]) == pid
                if run and leads and stat[0] not in "ZX":
                    found[run] = pid
        return found

    def wrappers(self) -> dict[str, int]:
        """Return the wrappers that live, by their runs."""
        found = {}
        for pid in processes_of(self.folder):
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if any(word.endswith(b"/wrapper.py") for word in words):
                    found[os.path.basename(words[-2].decode())] = pid
        return found

    # What there is

    def main_values(self) -> list[str]:
        """Return every commit that main has been, the newest first."""
        return self.git("reflog", "show", "--format=%H", "refs/heads/main").splitlines()

    def assert_green(self, check: str) -> None:
        """Assert that every value that main took passes a check in a fresh checkout."""
        for number, commit in enumerate(dict.fromkeys(self.main_values())):
            self.assert_passes(check, commit, self.folder / "fresh" / f"{number}-{os.urandom(3).hex()}")

    def assert_passes(self, check: str, commit: str, place: Path) -> None:
        """Assert that a commit passes a check in a new folder, which disturbs no worktree that comes or goes."""
        place.mkdir(parents=True)
        packed = subprocess.run(["git", "archive", commit], cwd=self.root, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(packed)) as tar:
            tar.extraction_filter = lambda member, _: member  # the argument came with a patch release of 3.11
            tar.extractall(place)
        done = subprocess.run(["sh", "-c", check], cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (commit, done.stdout, done.stderr)

    def landed(self) -> list[str]:
        """Return the titles of the commits on main, the newest first, without the first commit."""
        return self.git("log", "--format=%s", "main").splitlines()[:-1]

    def refs(self, under: str = "refs") -> dict[str, str]:
        """Return every ref with what it is."""
        printed = self.git("for-each-ref", "--format=%(refname) %(objectname)", under)
        return dict(line.split(" ", 1) for line in printed.splitlines())

    def assert_nothing_left(self, *, branches: bool = False) -> None:
        """Assert that covey left no process, lock, worktree, or half-made ref; some branches may be kept work."""
        try:
            wait_until(lambda: not processes_of(self.folder), "the end of all processes")
        except AssertionError as error:
            error.add_note(f"left: {[_words(pid) for pid in processes_of(self.folder)]}")
            raise
        locks = locks_in(self.common)
        assert locks == [], locks
        listed = self.git("worktree", "list", "--porcelain")
        assert str(self.worktrees) not in listed, listed
        assert not self.worktrees.exists(), sorted(self.worktrees.rglob("*"))[:20]
        assert list((self.state / "worktrees").glob("*")) == []
        assert [path.name for path in self.state.glob(".covey-*")] == []
        if not branches:
            assert self.refs("refs/heads/covey") == {}
        assert "refs/covey/landed" not in self.refs("refs/covey")

    def end(self) -> None:
        """End everything that still runs of this project, by its number."""

        def gone() -> bool:
            left = processes_of(self.folder)
            kill(left)
            return not left

        wait_until(gone, "the end of everything")


def make_line(folder: Path, *settings: str, init: bool = True, files: dict[str, str] | None = None) -> Line:
    """Make a repository that covey looks after, whose covey.toml and nothing else is not in git."""
    line = _line_in(folder)
    if init and not files:
        shutil.copytree(_template(), line.root)
        line.git("update-index", "-q", "--refresh")
    else:
        _fill(line, files or {}, init=init)
    if init:
        line.settings(*settings)
    return line


def _line_in(folder: Path) -> Line:
    home = folder / "home"
    home.mkdir(parents=True)
    (folder / "outside").mkdir()
    return Line(folder, folder / "shop", clean_environment(home) | {"OUTSIDE": str(folder / "outside")})


def _fill(line: Line, files: dict[str, str], *, init: bool) -> None:
    make_repository(line.root, {"README.md": "A shop.\n", ".gitignore": "covey.toml\n"} | files)
    if init:
        line.ok("init")


@cache
def _template() -> Path:
    """Return a repository that covey has just begun to look after, to be copied."""
    folder = TemporaryDirectory(prefix="covey-")
    atexit.register(folder.cleanup)
    line = _line_in(Path(folder.name, "line"))
    _fill(line, {}, init=True)
    return line.root


def processes_of(folder: Path) -> list[int]:
    """Return the processes that work in a folder, or carry its path in their words or their environment.

    Without the git that answers a daemon's questions: it is a part of it, and goes two seconds after the last at most.
    """
    name, found = os.fsencode(folder), []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with suppress(OSError):
            there = Path("/proc", entry)
            if there.joinpath("stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                continue
            within = os.fsencode(os.readlink(there / "cwd")).startswith(name)
            words = (there / "cmdline").read_bytes()
            if words.startswith(b"git\0cat-file\0--batch-command"):
                continue
            told = (there / "environ").read_bytes() + words
            if within or re.search(re.escape(name) + rb"(?![\w-])", told):
                found.append(int(entry))
    return found


def sleepers_of(folder: Path) -> list[int]:
    """Return the processes of a folder that sleep; by their own account they may have other numbers, in a room."""
    return [pid for pid in processes_of(folder) if _words(pid)[:1] == ["sleep"]]


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def locks_in(common: Path) -> list[str]:
    """Return the lock files that git, or covey on git's behalf, left in a repository."""
    ours = common / "covey"
    return sorted(str(path.relative_to(common)) for path in common.rglob("*.lock") if not path.is_relative_to(ours))


def kill(pids: Iterable[int], number: int = signal.SIGKILL) -> None:
    """Send a signal to processes, of which some may be gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def alive(pid: int) -> bool:
    """Say whether a process lives."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def answers(line: Line) -> Callable[[], bool]:
    """Return a question whether the daemon answers."""

    def ask() -> bool:
        try:
            with line.client() as client:
                return client.ask("GET", "/api/status").status == 200
        except (*Gone, ValueError):
            return False

    return ask
