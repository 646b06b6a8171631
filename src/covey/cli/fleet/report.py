"""What came of some tasks: the report with which covey run ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from covey.cli import cost
from covey.cli.client import Client
from covey.cli.needs import unmet
from covey.cli.show import escaped, paint, plain, spent, table, title
from covey.config import Config
from covey.core.figures import one, span
from covey.core.inbox import alike
from covey.core.sessions import OWNER
from covey.values import dataclass

LINES = 12
"""Lines of the story of a try."""
TODO = "## What to do"
"""Where the story of rejected work begins to tell its author what to do."""
HEAD = 3
"""The first of them that are always told."""


@dataclass(frozen=True)
class Report:
    """Tasks as they stand, each whole and with its last merge, and what those wait for that wait."""

    tasks: list[dict[str, Any]]
    needs: dict[str, list[str]]
    without_price: tuple[str, ...] = ()
    """The models of which nobody knows what they cost."""

    @staticmethod
    def of(client: Client, ids: list[str]) -> Report:
        """Return the report of some tasks."""
        if not ids:
            return Report([], {})
        merges = client.ask("merge.list", fields={"all": True, "limit": 1000}).value
        last = {merge["task"]: merge for merge in merges}
        tasks = [client.ask("task.show", {"id": task}).value | {"merge": last.get(task)} for task in ids]
        unpriced = any(task["unpriced"] for task in tasks)
        models = client.ask("cost.list", fields={"by": "model"}).value["without_price"] if unpriced else []
        return Report(tasks, unmet(client, tasks), tuple(models))

    @property
    def all_done(self) -> bool:
        """Say whether every task is done."""
        return all(task["status"] == "done" for task in self.tasks)

    @property
    def goes_on(self) -> bool:
        """Say whether another run would find something to do."""
        return any(task["status"] in ("todo", "merging") for task in self.tasks)

    @property
    def spent(self) -> dict[str, Any]:
        """Return what all tasks cost together."""
        whole = {name: sum(task[name] for task in self.tasks) for name in ("tokens", "unpriced")}
        return {"cost": round(sum(task["cost"] for task in self.tasks), 9), **whole}

    def as_json(self, batch: str, code: int, seconds: float) -> str:
        """Return the report for a machine."""
        counts: dict[str, int] = {}
        for task in self.tasks:
            counts[task["status"]] = counts.get(task["status"], 0) + 1
        said = {"batch": batch, "exit": code, "seconds": round(seconds, 3), "counts": counts, **self.spent}
        said["tasks"] = self.tasks
        return escaped(json.dumps(said, ensure_ascii=False, separators=(",", ":")))

    def as_text(self, settings: Config, seconds: float) -> str:
        """Return the report for people: a line for each task, what needs them, and the sum."""
        if not self.tasks:
            return "No task was added."
        rows = ((task["id"], task["status"], _commit(task), *self._cost(task)) for task in self.tasks)
        lines = ["", table(rows, words=1)]
        for task in self.tasks:
            lines += self._remarks(task, settings)
        for together in _by_cause(self.tasks):
            lines += _blocked(together)
        counts: dict[str, int] = {}
        for task in self.tasks:
            counts[_word(task)] = counts.get(_word(task), 0) + 1
        told = ", ".join(f"{number} {word}" for word, number in counts.items())
        whole = spent(self.spent)
        lines += ["", f"{one(len(self.tasks), 'task')}: {told}, in {span(seconds)}{whole and f', {whole}'}."]
        if self.spent["unpriced"]:
            lines.append(cost.hint(self.spent["unpriced"], self.without_price))
        return "\n".join(lines)

    def _cost(self, task: dict[str, Any]) -> tuple[str, ...]:
        """Return what a task cost, if any did, and its title."""
        if not self.spent["tokens"] and not self.spent["cost"]:
            return (title(task["title"], 40),)
        return spent(task), title(task["title"], 80)

    def _remarks(self, task: dict[str, Any], settings: Config) -> Iterator[str]:
        """Yield what a person has to know or do for a task."""
        merge = task["merge"]
        match task["status"]:
            case "review" if merge is not None:
                yield from _review(task, merge, settings)
            case "merging" if merge is not None and merge["reason"]:
                yield f"\n{task['id']} waits: {plain(merge['reason'])}"
                yield "  It lands by itself while covey is up (covey up), as soon as nothing is in the way."
            case "merging" if merge is not None and merge["state"] == "queued" and not settings.merge.check:
                yield f"\n{task['id']} was handed in from outside, and covey.toml names no merge.check:"
                yield f"  covey merge approve {merge['id']}           lets it land untested"
            case "todo" if task["id"] in self.needs:
                yield f"\n{task['id']} waits for {', '.join(self.needs[task['id']])}."


def _review(task: dict[str, Any], merge: dict[str, Any], settings: Config) -> Iterator[str]:
    untested = "" if settings.merge.check else "; nobody has tested it, since covey.toml names no merge.check"
    why = f" ({plain(merge['reason'])})" if merge["reason"] else ""
    yield f"\n{task['id']} waits for your review{untested}{why}:"
    yield f"  git diff {settings.target}...{merge['branch']}"
    yield f"  covey merge approve {merge['id']}           lets it land"
    yield f'  covey merge reject {merge["id"]} "REASON"   sends it back'


def _by_cause(tasks: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the blocked tasks, those together of which the same is told."""
    found: dict[str, list[dict[str, Any]]] = {}
    for task in tasks:
        if task["status"] == "blocked":
            found.setdefault(alike(task["reason"] or "", task["id"]), []).append(task)
    return list(found.values())


def _blocked(together: list[dict[str, Any]]) -> Iterator[str]:
    task, ids = together[0], [task["id"] for task in together]
    yield f"\n{', '.join(ids)} {'is' if len(ids) == 1 else 'are'} {paint('blocked')}: {plain(task['reason'] or '')}"
    stories: dict[str, list[str]] = {}
    number = 0
    for tried in task["tries"]:
        is_wish = tried["by"] == OWNER
        number += not is_wish
        head = f"sent back to {tried['session']}" if is_wish else f"try {number}, {tried['session']}"
        stories.setdefault(tried["what"], []).append(head)
    for what, tries in stories.items():
        yield f"  {'; '.join(tries)}{f' (of {ids[0]})' if len(ids) > 1 else ''}:"
        yield from (f"    {plain(line)}" for line in _short(what.splitlines()))
    yield f"  covey task show {ids[0]}                    tells it whole"
    yield f"  covey task reopen {' '.join(ids)}                  lets {'it' if len(ids) == 1 else 'them'} be tried anew"


def _short(story: list[str]) -> list[str]:
    """Return the beginning of a story, which says what went wrong, and its end, where output says why.

    Of what the queue tells an author, that is the part about the failure, and not what the author shall do.
    """
    if TODO in story:
        story = [line for line in story[: story.index(TODO)] if line.strip()]
        return story if len(story) <= LINES else [*story[:LINES], "[...]"]
    if len(story) <= LINES:
        return story
    return [*story[:HEAD], "[...]", *story[HEAD - LINES + 1 :]]


def _word(task: dict[str, Any]) -> str:
    if task["status"] == "done":
        return "landed" if task["commit"] else "done"
    return "for your review" if task["status"] == "review" else str(task["status"])


def _commit(task: dict[str, Any]) -> str:
    return str(task["commit"] or "")[:12] if task["status"] == "done" else ""
