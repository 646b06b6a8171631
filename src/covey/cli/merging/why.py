"""covey why: from a line to its commit, merge, task, run, and the place in the transcript where it was written."""

from __future__ import annotations

import json
import os
import re
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, option
from covey.cli.frame.output import clock, escaped, plain, spent
from covey.core.figures import took
from covey.errors import Invalid, NotFound
from covey.git import blame, here
from covey.git.blame import Origin
from covey.git.candidates.candidates import is_ancestor
from covey.git.project import Project, blob

MAX_BODY_LINES = 6
"""Lines of a task's body that are shown."""
MAX_LINE_CHARS = 4000
"""Characters of a line that are looked for in a transcript."""
_PLACE = re.compile(r"(?P<file>.+):(?P<line>[0-9]{1,9})(?::[0-9]+)?", re.DOTALL)


def why(args: Namespace, client: Client) -> None:
    """Say where a line comes from."""
    found = _PLACE.fullmatch(args.place)
    if found is None:
        raise Invalid(
            f"{args.place[:80]!r} names no line of a file.", hint="Write it as FILE:LINE: covey why src/a.py:42"
        )
    project = _here(client)
    file = _from_the_top(project, client.folder, found["file"])
    number = int(found["line"])
    origin = blame.who(project, file, number, args.at)
    text = _line(project, file, number, args.at)
    task, merge = _named(project, client, origin)
    fields = {"path": origin.path, "commit": origin.commit, "text": text[:MAX_LINE_CHARS], "task": task, "merge": merge}
    answer = client.ask("line.why", fields=fields).value
    told = {
        "file": file,
        "line": number,
        "text": text,
        "author": origin.author,
        "committed": origin.time,
        "subject": origin.summary,
        "names_task": task,
        **answer,
    }
    begun = int(_beginning(client))  # git knows whole seconds
    told["before_covey"] = answer["task"] is None and origin.time < begun
    print(escaped(json.dumps(told, ensure_ascii=False)) if args.json else "\n".join(_lines(told)))


def _here(client: Client) -> Project:
    """Return the project with the checkout that we stand in, which may be another than its first."""
    project = client.project()
    top = here.top(Path(client.folder))
    return project if top is None else replace(project, root=top)


def _from_the_top(project: Project, folder: str, file: str) -> str:
    """Return a file as it is named from the top of the checkout."""
    if project.bare:
        return file
    path = os.path.relpath(os.path.join(os.path.realpath(folder), file), os.path.realpath(project.root))
    if path.startswith(".."):
        raise NotFound(f"{file} is not in this repository.", hint="Name a file of the checkout that you stand in.")
    return path


def _line(project: Project, file: str, number: int, rev: str | None) -> str:
    """Return the text of a line, "" if it cannot be read."""
    if rev is not None or project.bare:
        data = blob(project, f"{rev or 'HEAD'}:{file}")
    else:
        try:
            data = (project.root / file).read_bytes()
        except OSError:
            return ""
    lines = data.split(b"\n")
    return lines[number - 1].decode(errors="replace").rstrip("\r") if number <= len(lines) else ""


def _named(project: Project, client: Client, origin: Origin) -> tuple[str | None, str | None]:
    """Return the task and the merge of a commit: as the landings tell, since an author can write what he likes.

    What came from elsewhere, or longer ago, is known only as it says itself.
    """
    merges = client.ask("merge.list", fields={"all": True, "limit": 1000}).value
    landed = {
        each["landed"]: each
        for each in merges
        if each["state"] in ("landed", "reverted") and each["landed"] and each["landed"] != each["onto"]
    }
    found = landed.get(origin.commit) or _brought(project, origin.commit, landed)
    if found is None:
        return origin.trailer("Covey-Task"), origin.trailer("Covey-Merge")
    return found["task"], found["id"]


def _brought(project: Project, commit: str, landed: dict[str, Json]) -> Json | None:
    """Return the merge that brought a commit to main with others: the first landed commit after it."""
    merge = next((landed[each] for each in blame.later(project, commit) if each in landed), None)
    if merge is None or (merge["onto"] and is_ancestor(project, commit, merge["onto"])):
        return None
    return merge


def _beginning(client: Client) -> float:
    """Return when covey began to look after the repository."""
    first = client.ask("log.list", fields={"limit": 1}).value
    return float(first[0]["time"]) if first else float("inf")


# For people


def _lines(told: Json) -> Iterator[str]:
    yield f"{told['file']}:{told['line']}  {plain(told['text'].strip())}"
    yield _fact("commit", f"{told['commit'][:12]}  {clock(told['committed'])}  {told['author']}: {told['subject']}")
    task = told["task"]
    if task is None:
        yield f"  {_unknown(told)}"
        return
    yield from _merge(told)
    yield _fact("task", f"{task['id']}  {task['title']} ({task['status']})")
    body = [line for line in task["body"].splitlines() if line.strip()]
    yield from (_fact("", line) for line in body[:MAX_BODY_LINES])
    if len(body) > MAX_BODY_LINES:
        yield _fact("", f"... covey task show {task['id']} shows all of it")
    yield from (_fact("done when", check) for check in task["done_when"])
    yield from _run(told)


def _unknown(told: Json) -> str:
    if told["names_task"]:
        return f"The commit names {plain(told['names_task'])}, which this board does not know."
    if told["before_covey"]:
        return "It is from before covey looked after this repository."
    return "It came past covey: no task or landing of this board brought it."


def _merge(told: Json) -> Iterator[str]:
    merge, landing, gate = told["merge"], told["landing"], told["gate"]
    if merge is None:
        return
    when = f", {clock(landing['made'])}, {landing['id']}" if landing else ""
    yield _fact("merge", f"{merge['id']} {merge['state']}{when}")
    if gate is not None:
        within = f" in {took(gate['seconds'])}" if gate["seconds"] is not None else ""
        yield _fact(
            "gate", f"{gate['id']} {gate['state']}{within}, with {', '.join(gate['merges'][:6]) or 'nothing else'}"
        )
    elif merge["untested"] or (landing and landing["untested"]):
        yield _fact("gate", "none: it landed untested")
    if told["approved_by"]:
        yield _fact("approved by", told["approved_by"])


def _run(told: Json) -> Iterator[str]:
    run, passage = told["run"], told["passage"]
    if run is None:
        yield _fact(
            "run", f"none of covey's: {told['merge']['session'] if told['merge'] else 'somebody'} worked by hand"
        )
        return
    model = f", {told['model']}" if told["model"] else ""
    cost = f", {spent(run)}" if spent(run) else ""
    yield _fact("run", f"{run['id']} of {run['session']}: {run['agent']}{model}{cost}, {clock(run['begun'])}")
    if passage is None:
        yield _fact(
            "written", f"its transcript does not tell where (covey session logs {run['session']} --run {run['id']})"
        )
        return
    at = f", {clock(passage['at'])}" if passage["at"] else ""
    how = "" if passage["exact"] else ", the last time that it used the file"
    yield _fact("written", f"{passage['run']}, line {passage['line']} of its transcript{at}{how}:")
    yield from (_fact("", f"  {line}") for line in passage["lines"])
    yield _fact("", f"covey session logs {passage['session']} --run {passage['run']} prints all of it")


def _fact(name: str, value: str) -> str:
    return f"  {name:<12}{plain(value)}".rstrip()


COMMAND = Command(
    "trace a line to its commit, merge, task, run and the place in the transcript where it was written",
    (
        option("place", metavar="FILE:LINE", help="for example src/cart.py:42"),
        option(
            "--at", metavar="COMMIT", help="use the file as it is in this commit or branch (default: your working copy)"
        ),
    ),
    why,
    example="covey why src/cart.py:42\ncovey why src/cart.py:42 --at main",
    prints="one object: the line and its commit, and what REST answers of it",
)
