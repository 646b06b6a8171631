"""The search for a gate: what seems to test this repository is tried on main, one after the other, until one works."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from covey.cli.frame.client import Client, Json
from covey.cli.frame.output import plain
from covey.core import texts
from covey.core.merging import gate_trials, proposed_gates
from covey.core.merging.gate_trials import TrialVerdict
from covey.core.merging.proposed_gates import Tree
from covey.core.merging.test_counts import only_looks
from covey.errors import CoveyError
from covey.git.project import Project, blob, tracked
from covey.installation import step_back
from covey.values import dataclass

MAX_BYTES_READ = 1 << 20
"""Bytes of a file that are looked at to see how a repository is tested."""
_WORDS = {
    "works": "works",
    "empty": "passed, and ran no test",
    "fails": "fails on main",
    "broken": "does not work here",
    "lost": "was ended before it had a result",
}


@dataclass(frozen=True)
class Tried:
    """A command that was tried on main, and the gate that it was, as `gate.show` answers it."""

    check: str
    gate: Json

    @property
    def holds(self) -> bool:
        """It can be relied on; a linter is only proposed where there are no tests, and may be the gate there."""
        return self.gate["verdict"] == "works" or (self.gate["verdict"] == "empty" and only_looks(self.check))

    @property
    def distance(self) -> int:
        """How far it is from one that holds."""
        return 0 if self.holds else gate_trials.distance(TrialVerdict(self.gate["verdict"]), self.gate["error"])

    def told(self) -> str:
        """Return the command and what came of it, in one line."""
        error = f": {plain(self.gate['error'])}" if self.gate["error"] else ""
        log = "" if self.holds else f" (covey merge log {self.gate['id']})"
        return f"{texts.in_marks(self.check)} {_WORDS[self.gate['verdict']]}{error}{log}"


@dataclass(frozen=True)
class Search:
    """What was tried, in its order, and what kept the rest from being tried."""

    tried: tuple[Tried, ...] = ()
    trouble: CoveyError | None = None

    @property
    def best(self) -> Tried | None:
        """The one that holds, or is the nearest to that."""
        return min(self.tried, key=lambda tried: tried.distance, default=None)

    def told(self) -> list[str]:
        """Return what came of each, a line for each; nothing if there is only one, which is told at length anyway."""
        return [each.told() for each in self.tried] if len(self.tried) > 1 else []


def search(client: Client, checks: Sequence[str], main: str, *, quiet: bool) -> Search:
    """Try commands on main until one holds, or really tests main; what was tried is told as it begins."""
    from covey.cli.merging.gate_try import try_gate

    tried: list[Tried] = []
    for check in checks:
        if not quiet:
            print(f"Trying {texts.in_marks(check)} on {main}, as the merge queue would ...", flush=True)
        try:
            last = Tried(check, try_gate(client, check, quiet=quiet))
        except CoveyError as error:
            if tried:  # else whoever searches tells it, since there is nothing else to tell
                why = plain(f"{error.message} {error.hint}".strip())
                print(f"{texts.in_marks(check)} could not be tried: {why}", file=sys.stderr)
            return Search(tuple(tried), error)
        tried.append(last)
        if last.holds or last.gate["verdict"] in ("fails", "lost"):
            break
    return Search(tuple(tried))


def proposed_checks(project: Project, main: str) -> tuple[str, ...]:
    """Return the commands that seem to test what is on main, or what lies in the folder, the best first.

    Those come first whose programs are there.
    """
    found = proposed_gates.proposals(_tree_of(project, main)) or proposed_gates.proposals(_folder(project.root))
    step_back(project.root)  # the gate finds the user's tools, and not covey's own
    return tuple(sorted(found, key=lambda check: not _is_there(check, project.root)))


def _is_there(check: str, root: Path) -> bool:
    """Say whether the program is there with which a check begins."""
    words = [word for word in check.split() if "=" not in word]
    return (root / words[0]).exists() if "/" in words[0] else shutil.which(words[0]) is not None


def _tree_of(project: Project, main: str) -> Tree:
    """Return the files of main."""

    def read(name: str) -> str:
        return blob(project, f"refs/heads/{main}:{name}")[:MAX_BYTES_READ].decode(errors="replace")

    return Tree(frozenset(tracked(project, main)), read)


def _folder(root: Path) -> Tree:
    """Return the files that lie in a folder and those right below it, for a repository whose main has no gate yet."""
    found = (path for pattern in ("*", "*/*") for path in root.glob(pattern) if ".git" not in path.parts)
    names = frozenset(str(path.relative_to(root)) for path in found if path.is_file())
    return Tree(names, lambda name: (root / name).read_bytes()[:MAX_BYTES_READ].decode(errors="replace"))
