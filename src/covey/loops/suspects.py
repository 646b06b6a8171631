"""Suspects: the commits among which the one must be that made main red."""

from __future__ import annotations

from collections.abc import Sequence

from covey.app.verbs import Call
from covey.core import gates
from covey.git import candidates
from covey.git.project import Project
from covey.git.run import git

LAST = 50
"""Gates and landings among which a value of main is looked for that was green."""
MOST = 5
"""Commits that are named."""


def greens(call: Call, checks: str) -> list[str]:
    """Return commits that passed the gate, the newest first."""
    passed = [
        gate.commit for gate in call.tx.last_gates(LAST) if gate.state is gates.State.PASSED and gate.checks == checks
    ]
    landed = [landing.commit for landing in call.tx.last_landings(LAST) if not landing.untested]
    return list(dict.fromkeys((*landed, *passed)))


def name(project: Project, known: Sequence[str], base: str) -> str:
    """Return a sentence that names the commits since main was last known to be green, and their authors."""
    green = next((commit for commit in known if _is_below(project, commit, base)), None)
    if green is None:
        since, which = "It was never seen to pass; its last commit is", ["-1", base]
    elif green == base:
        return "The same commit has passed before: look at what else has changed."
    else:
        since, which = f"Since {green[:12]}, which passed, came", [f"-{MOST + 1}", base, f"^{green}"]
    printed = git("log", "--format=%h by %an (%s)", *which, at=project.common).decode(errors="replace").splitlines()
    more = " and others" if len(printed) > MOST else ""
    return f"{since} {', '.join(printed[:MOST])}{more}."


def _is_below(project: Project, commit: str, base: str) -> bool:
    return candidates.resolve(project, commit) is not None and candidates.is_ancestor(project, commit, base)
