"""A branch from outside covey on its way into the queue: what it brings, and whether it can land."""

from __future__ import annotations

from pathlib import Path

from covey import config
from covey.cli.frame.client import Json
from covey.errors import Invalid, NotFound, Refused
from covey.git.candidates import incoming
from covey.git.candidates.candidates import is_ancestor, resolve
from covey.git.project import Project, messages

TITLE, BODY = 500, 60_000
MAX_COMMITS = 200


def request_for(project: Project, branch: str, title: str | None, priority: int | None) -> Json:
    """Return what is asked to queue a branch: its last commit, and a task made of its commits."""
    name = branch.removeprefix("refs/heads/").removeprefix("refs/remotes/")
    commit = resolve(project, f"refs/heads/{name}") or resolve(project, f"refs/remotes/{name}")
    if commit is None:
        raise NotFound(f"There is no branch {name[:80]!r}.", hint="git branch --all lists the branches.")
    target = _target(project)
    if name == target:
        raise Refused(f"{name} is where work lands.", hint="Name the branch that should land on it.")
    base = resolve(project, f"refs/heads/{target}") or target
    broken = incoming.broken(incoming.look(project, base, [commit])[commit])
    if broken:
        raise Refused(f"{name} cannot land as it is: {incoming.told(broken)}.", hint="Take that out of its commits.")
    if is_ancestor(project, commit, f"refs/heads/{target}"):
        raise Refused(f"{target} has all commits of {name} already.", hint="There is nothing to land.")
    subjects = _log(project, f"refs/heads/{target}..{commit}")
    asked: Json = {"branch": name, "commit": commit, "title": _line(title) or subjects[0][0] or name}
    asked["body"] = _body(subjects)
    return asked if priority is None else asked | {"priority": priority}


def _target(project: Project) -> str:
    """Return the branch that work lands on; an integration branch may be there only after the first landing."""
    settings = config.load(Path(project.root))
    names = [name for name in (settings.target, settings.project.main) if resolve(project, f"refs/heads/{name}")]
    if not names:
        raise Refused(f"There is no branch {settings.target} to land on.", hint="covey.toml names the branch.")
    return names[0]


def _line(title: str | None) -> str | None:
    if title is not None and not title.strip():
        raise Invalid("The title is empty.")
    return None if title is None else " ".join(title.split())[:TITLE]


def _log(project: Project, span: str) -> list[tuple[str, str]]:
    """Return subject and body of the commits that a branch brings, the newest first."""
    found = [
        ("".join(c if c.isprintable() else " " for c in subject).strip()[:TITLE], body.strip())
        for subject, body in messages(project, span, MAX_COMMITS)
    ]
    return [(subject, body) for subject, body in found if subject or body] or [("", "")]


def _body(commits: list[tuple[str, str]]) -> str:
    """Return what the commits say: of one its text, of several a list of their subjects."""
    if len(commits) == 1:
        return commits[0][1][:BODY]
    return "\n".join(f"* {subject}" for subject, _ in commits)[:BODY]
