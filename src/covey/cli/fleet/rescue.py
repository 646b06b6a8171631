"""covey rescue: work that was kept when a worktree was reset, reused or removed. git alone answers, with no daemon."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, either, option
from covey.cli.frame.output import age, clock, plain, table
from covey.core.figures import one, size
from covey.core.history.retention import RESCUES_KEPT_DAYS
from covey.git.project import Project
from covey.git.rescue.rescue import Rescued, find_rescue, find_rescues
from covey.git.rescue.rescue import show as look_into
from covey.git.rescue.restore import Restored
from covey.git.rescue.restore import restore as bring_back

ABOUT = (
    "Rescues: what git would have lost of a worktree that was reset, reused or removed. Each is kept in\n"
    f"refs/covey/rescue/<session>/<time>, never pushed, until {RESCUES_KEPT_DAYS:g} days after its session was removed."
)
PRINTS = "the same as JSON"
_KINDS = ("changed", "added", "deleted", "untracked", "ignored", "staged")


RESCUE = option("id", metavar="ID", help="session/time, a beginning of it, or a session for its newest")


def list_rescues(args: Namespace, client: Client) -> None:
    """List the rescues there are."""
    found = find_rescues(client.project(), args.session)
    rows = ((each.name, age(each.time), each.task or "", _held(each), each.why) for each in found)
    _print(args, [_row(each) for each in found], table(rows) or "Nothing had to be rescued.")


def show(args: Namespace, client: Client) -> None:
    """Show what one rescue holds."""
    details = look_into(client.project(), args.id)
    answer = _row(details.rescued) | {
        "commits": details.commits,
        "files": details.files,
        "left_out": details.left_out,
    }
    found = details.rescued
    facts = [
        ("why", found.why),
        ("kept in", found.aside),
        ("task", found.task),
        ("when", f"{clock(found.time)} ({age(found.time)})"),
        ("branch", found.branch and found.branch.removeprefix("refs/heads/")),
        ("HEAD", found.head),
        ("commits", f"{', '.join(details.commits)}, on no branch" if details.commits else None),
        ("staged", one(found.counts.staged, "path") if found.counts.staged else None),
        ("nested", ", ".join(found.nested) or None),
    ]
    lines = [found.name, *(f"  {name:<9}{plain(value)}" for name, value in facts if value)]
    if details.files:
        lines += ["", table((each["status"], size(each["size"]), each["path"]) for each in details.files)]
    if details.left_out:
        lines += ["", "Left out:", table((each["why"], size(each["size"]), each["path"]) for each in details.left_out)]
    if details.commits:
        lines += ["", f"git branch NAME {details.commits[0]} puts a commit on a branch again."]
    if found.aside is None:
        lines += ["", f"covey rescue restore {found.name} brings it back into a new folder."]
    _print(args, answer, "\n".join(lines))


def restore(args: Namespace, client: Client) -> None:
    """Bring a rescue back into a new folder."""
    project = client.project()
    found = find_rescue(project, args.id)
    target = Path(client.folder) / args.to if args.to else _beside(project, found)
    done = bring_back(project, found.ref, target)
    answer = {"id": found.name, "path": str(done.path), "head": done.head, "missing": list(done.missing)}
    _print(args, answer, _what_next(done))


def _beside(project: Project, found: Rescued) -> Path:
    name = project.root.name.removesuffix(".git") or project.name
    return project.root.parent / f"{name}.rescued" / found.name.replace("/", "-")


def _what_next(done: Restored) -> str:
    path, quoted = plain(str(done.path)), plain(shlex.quote(str(done.path)))
    branch = f"rescued/{done.rescued.name}"
    lines = [f"{done.rescued.name} is back in {path}, as it was."]
    if done.rescued.counts.left_out:
        lines.append(f"What had been left out is not: covey rescue show {done.rescued.name} lists it.")
    if done.missing:
        lines.append(f"The filter did not give {', '.join(map(plain, done.missing[:5]))}.")
    return "\n".join(
        [
            *lines,
            "",
            f"  cd {quoted}",
            "  git status",
            f"  git switch -c {branch}      # to go on from there on a branch",
            f"  git worktree remove --force {quoted}      # when you are done",
        ]
    )


def _row(found: Rescued) -> Json:
    row = asdict(found)
    return {"id": row.pop("name"), **row}


def _held(found: Rescued) -> str:
    if found.aside is not None:
        return f"as it was in {found.aside}"
    counts = found.counts
    kinds = [f"{number:,} {kind}" for kind in _KINDS if (number := getattr(counts, kind))]
    kinds += [one(counts.commits, "commit")] if counts.commits else []
    kinds += [one(counts.nested, "repository", "repositories")] if counts.nested else []
    kinds += [f"{counts.left_out:,} left out"] if counts.left_out else []
    return ", ".join(kinds)


def _print(args: Namespace, answer: Any, text: str) -> None:
    print(json.dumps(answer) if args.json else text)


COMMANDS = {
    "list": Command("list what was rescued, the newest first",
                    option("--session", metavar="NAME", help="only what this session left"), list_rescues,
                    example="covey rescue list --session ada", owner=True, prints=PRINTS),
    "show": Command("show what is in a rescue, and what was left out", RESCUE, show,
                    example="covey rescue show ada\ncovey rescue show ada/20260314T0926", owner=True, prints=PRINTS),
    "restore": Command("restore a rescue into a new folder, byte for byte", (
        RESCUE,
        either("to", "DIR", "a folder that does not exist (default: ../<repo>.rescued/<session>-<time>)", value="DIR",
               many=False, required=False),
    ), restore,
                       example="covey rescue restore ada/20260314T092653Z ../again", owner=True, prints=PRINTS),
}  # fmt: skip
