"""What happens to some tasks, told in plain lines while it happens."""

from __future__ import annotations

import time
from collections.abc import Callable

from covey.cli.frame.client import Client, Json
from covey.cli.frame.output import first_line, paint, plain, some
from covey.core.people.alerts import AlertKind
from covey.moments import calendar

EVENTS_PER_PAGE = 1000
MAX_TASKS_NAMED = 5
"""Tasks that a line names."""


PASSING = (AlertKind.AGENT_LIMIT, AlertKind.AGENT_OVERLOAD, AlertKind.AGENT_CONNECTION, AlertKind.WAITS)
"""Alerts of troubles that pass by themselves."""
OF_ONE_TASK = (
    AlertKind.BUDGET_SPENT, AlertKind.CLAIM_EXPIRED, AlertKind.CRASH_LOOP, AlertKind.CRASHES, AlertKind.DOES_NOT_END,
    AlertKind.NEEDS_REVIEW, AlertKind.NEEDS_YOU, AlertKind.QUESTION_EXPIRED, AlertKind.STALLED,
    AlertKind.WORKTREE_ASIDE,
)  # fmt: skip
"""Alerts that concern nobody but who waits for that task."""
ENDED_BADLY = {"failed": "rejected", "lost": "stalled", "crashed": "stalled", "put-off": "limited"}
"""Ends of a run that are told, and the word of status for each."""


class Story:
    """Reads the log from where it began, and prints a line for what matters to its tasks."""

    def __init__(self, *, quiet: bool) -> None:
        self.ids: set[str] = set()
        self._quiet = quiet
        self.after = 0
        """The last event that was read; only what comes after it is told."""
        self._merges: dict[str, str] = {}
        self._gates: dict[str, list[str]] = {}
        """The gates that run, and which merges are in each."""
        self._runs: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        self._limited: dict[str, str] = {}
        """The sessions of our tasks, and what was last told of their waiting."""

    def tell(self, client: Client) -> None:
        """Print what has happened since the last time."""
        while True:
            page = client.ask("log.list", fields={"after": self.after, "limit": EVENTS_PER_PAGE}).value
            for event in page:
                self.after = event["seq"]
                line = self._line(event, client)
                if line is not None:
                    self._print(event["time"], line)
            if len(page) < EVENTS_PER_PAGE:
                return

    def say(self, text: str) -> None:
        """Print a line of our own."""
        self._print(time.time(), text)

    def _print(self, moment: float, text: str) -> None:
        if self._quiet:
            return
        try:
            print(f"{calendar('%H:%M:%S', moment)}  {text}", flush=True)
        except OSError:  # whoever read it is gone; the work is not done for its sake
            self._quiet = True

    def _line(self, event: Json, client: Client) -> str | None:
        """Return what to print of an event, if it is about one of our tasks or about all."""
        kind, subject, data = event["kind"], event["subject"], event["data"]
        self._remember(kind, subject, data)
        if kind in TELLERS:
            return TELLERS[kind](self, subject, data)
        task = self._merges.get(subject) or self._runs.get(subject) or subject
        if task not in self.ids:
            return None
        if task not in self._titles:
            self._titles[task] = str(client.ask("task.show", {"id": task}).value["title"])
        said = SAID[kind](data, self._titles[task]) if kind in SAID else None
        return None if said is None else f"{paint(said[0], 9)} {task:<6} {said[1]}"

    def _remember(self, kind: str, subject: str, data: Json) -> None:
        """Remember to which task later events belong."""
        match kind:
            case "task.added":
                self._titles[subject] = data["title"]
            case "merge.queued":
                self._merges[subject] = data["task"]
            case "gate.started":
                self._gates[subject] = data.get("merges") or []
            case "run.begun":
                self._runs[subject] = data["task"]
                if data["task"] in self.ids:
                    self._limited.setdefault(data["session"], "")

    def _warns(self, alert: str, data: Json) -> str | None:
        """Return the line for an alert about one of ours, or about all; that a task is blocked its own event tells."""
        is_others = data["type"] in OF_ONE_TASK and data.get("task") not in (None, *self.ids)
        if is_others or data["type"] == AlertKind.TASK_BLOCKED:
            return None
        return f"{paint('limited' if data['type'] in PASSING else 'needs-you', 9)} {plain(data['message'])}"

    def _fails(self, gate: str, data: Json) -> str | None:
        """Return the line for a gate that failed with one of ours in it."""
        tested = (self._merges.get(name) for name in self._gates.pop(gate, ()))
        tasks = [task for task in dict.fromkeys(tested) if task]
        if data["passed"] or self.ids.isdisjoint(tasks):
            return None
        return f"{paint('failed', 9)} {some(tasks, MAX_TASKS_NAMED):<6} in {gate}: {_failures(data)}"

    def _crosses(self, lease: str, data: Json) -> str | None:
        """Return the line for one of ours that wrote what another holds."""
        if data["task"] not in self.ids:
            return None
        return f"{paint('crossed', 9)} {data['task']:<6} wrote {_few(data['paths'])}, which is another's ({lease})"

    def _meets(self, pair: str, data: Json) -> str | None:
        """Return the line for two branches that come close, if one of them is ours."""
        one, _, other = pair.partition(" ")
        if data["level"] == "file" or not {one, other} & self.ids:
            return None
        how = "conflicts with" if data["level"] == "conflict" else "comes close to"
        return f"{paint('overlap', 9)} {one:<6} {how} {other}: {_few(data['files'])}"

    def _waits(self, session: str, data: Json) -> str | None:
        """Return the line for a session that its provider puts off, once for each time that it is."""
        if session not in self._limited:
            return None
        if data["state"] != "limited" or self._limited[session]:
            self._limited[session] = "" if data["state"] in ("working", "idle") else self._limited[session]
            return None
        self._limited[session] = data["evidence"]
        return f"{paint('limited', 9)} {plain(session)}: {first_line(data['evidence'], 160)}"


def _queue_is(word: str) -> Callable[[Story, str, Json], str]:
    def told(story: Story, queue: str, data: Json) -> str:
        why = f": {first_line(data['why'], 160)}" if data.get("why") else ""
        return f"{paint(word, 9)} the merge queue{why}"

    return told


TELLERS: dict[str, Callable[[Story, str, Json], str | None]] = {
    "session.changed": Story._waits,
    "alert.raised": Story._warns,
    "gate.ended": Story._fails,
    "gate.flaked": lambda story, gate, data: f"{paint('flaky', 9)} {gate}: {_few(data['tests'])}",
    "overlap.found": Story._meets,
    "overlap.changed": Story._meets,
    "lease.crossed": Story._crosses,
    **{f"queue.{word}": _queue_is(word) for word in ("paused", "resumed", "frozen", "thawed")},
}
"""What is not told by its task: who tells of it, given its subject and what it says."""
HANDED_IN = {"review": "waits for your review", "done": "is done"}
SAID: dict[str, Callable[[Json, str], tuple[str, str] | None]] = {
    "task.claimed": lambda data, title: ("doing", f"{data['session']}: {first_line(title, 70)}"),
    "task.handed_in": lambda data, _: (data["to"], f"{HANDED_IN.get(data['to'], 'is handed in')}{_at(data)}"),
    "task.done": lambda data, _: ("done", f"landed{_at(data)}" if data["how"] == "landed" else "with its children"),
    "task.blocked": lambda data, _: ("blocked", first_line(data["reason"], 160)),
    "task.dropped": lambda data, _: ("dropped", first_line(data.get("reason", ""), 160)),
    "merge.tested": lambda data, _: ("testing", f"as it would land{_in(data.get('run'))}{_at(data)}"),
    "merge.clashed": lambda data, _: ("waiting", _clash(data["against"])) if data.get("against") else None,
    "merge.held": lambda data, _: ("review", f"waits for you: {first_line(data['why'], 160)}"),
    "merge.waits": lambda data, _: ("waiting", first_line(data["why"], 160)),
    "merge.requeued": lambda data, _: ("testing", f"again: {first_line(data['why'])}"),
    "merge.rejected": lambda data, _: ("rejected", first_line(data["reason"], 160)),
    "run.ended": lambda data, _: (
        (ENDED_BADLY[data["outcome"]], first_line(data.get("what") or "")) if data["outcome"] in ENDED_BADLY else None
    ),
    "run.ending": lambda data, _: (
        ("limited", f"begins again: {first_line(data['why'], 160)}") if data.get("again") else None
    ),
}
"""A word of status and what happened to a task of this title, where people want to see it."""


def _few(names: list[str]) -> str:
    return ", ".join(plain(name) for name in names[:3])


def _in(name: str | None) -> str:
    return f" in {name}" if name else ""


def _at(data: Json) -> str:
    return _in((data.get("commit") or "")[:12])


def _clash(against: list[str]) -> str:
    return f"git cannot merge it with {', '.join(against[:3])}, which goes first"


def _failures(data: Json) -> str:
    """Return what failed in a gate, in a few words."""
    failed = some([first_line(test, 80) for test in data.get("failures") or ()], 3)
    return failed or first_line(data.get("step") or "failed", 160)
