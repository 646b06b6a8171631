"""What came of some tasks: the report with which covey run ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from covey.cli.board.unmet_needs import unmet
from covey.cli.frame.client import Client, Json
from covey.cli.frame.output import compact, grouped, paint, plain, spent, table, title
from covey.cli.project import cost
from covey.config import Config
from covey.core.figures import one, took
from covey.core.fleet.sessions import OWNER
from covey.core.merging.failures import error_line
from covey.core.merging.merges import WholeQueue
from covey.core.merging.rejection import failure_of
from covey.core.people.inbox import alike
from covey.values import dataclass

MAX_STORY_LINES = 12
"""Lines of the story of a try."""
STORY_HEAD_LINES = 3
"""The first of them that are always told."""


@dataclass(frozen=True)
class Report:
    """Tasks as they stand, each whole and with its last merge, and what those wait for that wait."""

    tasks: list[Json]
    needs: dict[str, list[str]]
    without_price: tuple[str, ...] = ()
    """The models whose price is not known."""
    halted: bool = False
    """The merge queue has halted."""
    runs_bodies: str = ""
    """The agent of the run, if it is given the body of a task alone, and so passes over one without."""

    @staticmethod
    def of(client: Client, ids: list[str], runs_bodies: str = "") -> Report:
        """Return the report of some tasks."""
        if not ids:
            return Report([], {})
        merges = client.ask("merge.list", fields={"all": True, "limit": 1000}).value
        last = {merge["task"]: merge for merge in merges}
        tasks = [client.ask("task.show", {"id": task}).value | {"merge": last.get(task)} for task in ids]
        unpriced = any(task["unpriced"] for task in tasks)
        models = client.ask("cost.list", fields={"by": "model"}).value["without_price"] if unpriced else []
        halts = any(task["merge"] and task["merge"]["cause"] == WholeQueue.HALTED for task in tasks)
        halted = halts and client.ask("queue.show").value["halted"]
        return Report(tasks, unmet(client, tasks), tuple(models), bool(halted), runs_bodies)

    @property
    def all_done(self) -> bool:
        """Say whether every task is done."""
        return all(task["status"] == "done" for task in self.tasks)

    @property
    def goes_on(self) -> bool:
        """Say whether another run would find something to do."""
        return any(task["status"] in ("todo", "merging") for task in self.tasks)

    @property
    def spent(self) -> Json:
        """Return what all tasks cost together."""
        whole = {name: sum(task[name] for task in self.tasks) for name in ("tokens", "unpriced")}
        return {"cost": round(sum(task["cost"] for task in self.tasks), 9), **whole}

    def as_json(self, batch: str, code: int, seconds: float) -> str:
        """Return the report for a machine."""
        counts = Counter(task["status"] for task in self.tasks)
        said = {"batch": batch, "exit": code, "seconds": round(seconds, 3), "counts": counts, **self.spent}
        said["tasks"] = self.tasks
        return compact(said)

    def as_text(self, settings: Config, seconds: float) -> str:
        """Return the report for people: a line for each task, what needs them, and the sum."""
        if not self.tasks:
            return "No task was added."
        all_spent = self.spent
        whole = spent(all_spent)
        beside = 80 if whole else 40
        rows = (
            (task["id"], task["status"], _commit(task), *([spent(task)] if whole else []), title(task["title"], beside))
            for task in self.tasks
        )
        lines = ["", table(rows, words=1)]
        for task in self.tasks:
            lines += self._remarks(task, settings)
        lines += self._without_body()
        lines += self._stuck()
        counts = Counter(_word(task) for task in self.tasks)
        told = ", ".join(f"{number} {word}" for word, number in counts.items())
        lines += ["", f"{one(len(self.tasks), 'task')}: {told}, in {took(seconds)}{whole and f', {whole}'}."]
        if all_spent["unpriced"]:
            lines.append(cost.hint(all_spent["unpriced"], self.without_price))
        return "\n".join(lines)

    def _stuck(self) -> Iterator[str]:
        """Yield what is in the way of tasks, once for all in whose way it is."""
        merging = [each for each in self.tasks if each["status"] == "merging" and each["merge"]]
        waiting = [each for each in merging if each["merge"]["reason"]]
        for together in grouped(waiting, lambda task: str(task["merge"]["reason"])):
            yield from _in_the_way(together, halted=self.halted)
        blocked = [each for each in self.tasks if each["status"] == "blocked"]
        for together in grouped(blocked, lambda task: alike(task["reason"] or "", task["id"])):
            yield from _blocked(together)

    def _remarks(self, task: Json, settings: Config) -> Iterator[str]:
        """Yield what a person has to know or do for a task."""
        merge = task["merge"]
        match task["status"]:
            case "review" if merge is not None:
                yield from _review(task, merge, settings)
            case "merging" if (
                merge is not None and not merge["reason"] and merge["state"] == "queued" and not settings.merge.check
            ):
                yield f"\n{task['id']} was handed in from outside, and covey.toml names no merge.check:"
                yield f"  covey merge approve {merge['id']}           lets it land untested"
            case "todo" if task["id"] in self.needs:
                yield f"\n{task['id']} waits for {', '.join(self.needs[task['id']])}."

    def _without_body(self) -> Iterator[str]:
        """Yield which tasks were passed over, because there is nothing in them that the agent of the run could run."""
        passed = [task for task in self.tasks if task["status"] == "todo" and not task["body"].strip()]
        if self.runs_bodies and passed:
            ids = [task["id"] for task in passed]
            have = "has" if len(ids) == 1 else "have"
            yield f"\n{', '.join(ids)} {have} no body, and {self.runs_bodies} runs bodies:"
            yield f"  covey task edit {ids[0]} --body TEXT     gives it one; covey run goes on with it"


def _review(task: Json, merge: Json, settings: Config) -> Iterator[str]:
    untested = "" if settings.merge.check else "; nobody has tested it, since covey.toml names no merge.check"
    why = f" ({plain(merge['reason'])})" if merge["reason"] else ""
    yield f"\n{task['id']} waits for your review{untested}{why}:"
    yield f"  git diff {settings.target}...{merge['branch']}"
    yield f"  covey merge approve {merge['id']}           lets it land"
    yield f'  covey merge reject {merge["id"]} "REASON"   sends it back'


def _in_the_way(together: list[Json], *, halted: bool) -> Iterator[str]:
    """Yield what tasks wait for whose merges have the same in their way, and what lets them go on."""
    is_one = len(together) == 1
    ids = ", ".join(task["id"] for task in together)
    yield f"\n{ids} {'waits' if is_one else 'wait'}: {plain(together[0]['merge']['reason'])}"
    if halted and together[0]["merge"]["cause"] == WholeQueue.HALTED:
        yield "  covey init --check           tries the gate on main; once it passes, the merge queue goes on"
        yield "  covey merge resume           lets the queue try main again"
        return
    lands = "It lands by itself" if is_one else "They land by themselves"
    yield f"  {lands} while covey is up (covey up), as soon as nothing is in the way."


def _blocked(together: list[Json]) -> Iterator[str]:
    task, ids = together[0], [task["id"] for task in together]
    yield f"\n{', '.join(ids)} {'is' if len(ids) == 1 else 'are'} {paint('blocked')}: {plain(task['reason'] or '')}"
    stories: dict[str, list[str]] = {}
    number = 0
    for tried in task["tries"]:
        by_owner = tried["by"] == OWNER
        number += not by_owner
        head = f"sent back to {tried['session']}" if by_owner else f"try {number}, {tried['session']}"
        stories.setdefault(tried["what"], []).append(head)
    for what, tries in stories.items():
        yield f"  {'; '.join(tries)}{f' (of {ids[0]})' if len(ids) > 1 else ''}:"
        yield from (f"    {plain(line)}" for line in _short(what.splitlines()))
    yield f"  covey task show {ids[0]}                    tells it whole"
    yield f"  covey task reopen {' '.join(ids)}                  lets {'it' if len(ids) == 1 else 'them'} be tried anew"


def _short(story: list[str]) -> list[str]:
    """Return the beginning of a story, which says what went wrong, and its end, where output says why.

    Of what the queue tells an author, that is the part about the failure, and not what the author should do.
    """
    failure = failure_of(story)
    if failure is not None:
        return failure if len(failure) <= MAX_STORY_LINES else [*failure[:MAX_STORY_LINES], *_rest(failure)]
    if len(story) <= MAX_STORY_LINES:
        return story
    return [*story[:STORY_HEAD_LINES], "[...]", *story[STORY_HEAD_LINES - MAX_STORY_LINES + 1 :]]


def _rest(failure: list[str]) -> list[str]:
    """Return what stands for the end of a failure that is left out: of that, the line that says most is told."""
    telling = error_line("\n".join(line.removeprefix("> ") for line in failure))
    shown = any(telling in line for line in failure[:MAX_STORY_LINES])
    return ["[...]", *([] if shown else [f"> {telling}"])]


def _word(task: Json) -> str:
    if task["status"] == "done":
        return "landed" if task["commit"] else "done"
    return "for your review" if task["status"] == "review" else str(task["status"])


def _commit(task: Json) -> str:
    return str(task["commit"] or "")[:12] if task["status"] == "done" else ""
