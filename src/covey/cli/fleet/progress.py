"""What happens to some tasks, told in plain lines while it happens."""

from __future__ import annotations

import time
from typing import Any

from covey.cli.client import Client
from covey.cli.show import first_line, paint, plain
from covey.moments import calendar

PAGE = 1000


PASSING = ("agent_limit", "agent_overload", "agent_connection", "waits")
"""Alerts of troubles that pass by themselves."""


class Story:
    """Reads the log from where it began, and prints a line for what matters to its tasks."""

    def __init__(self, *, quiet: bool) -> None:
        self.ids: set[str] = set()
        self._quiet = quiet
        self._after = 0
        self._merges: dict[str, str] = {}
        self._gates: dict[str, list[str]] = {}
        """The gates that run, and which merges are in each."""
        self._runs: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        self._limited: dict[str, str] = {}
        """The sessions of our tasks, and what was last told of their waiting."""

    def begin(self, client: Client) -> None:
        """Tell only what happens from now on."""
        self._after = int(client.ask("status").value["seq"])

    def tell(self, client: Client) -> None:
        """Print what has happened since the last time."""
        while True:
            page = client.ask("log.list", fields={"after": self._after, "limit": PAGE}).value
            for event in page:
                self._after = event["seq"]
                line = self._line(event, client)
                if line is not None:
                    self._print(event["time"], line)
            if len(page) < PAGE:
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

    def _line(self, event: dict[str, Any], client: Client) -> str | None:
        kind, subject, data = event["kind"], event["subject"], event["data"]
        if kind == "task.added":
            self._titles[subject] = data["title"]
        if kind == "merge.queued":
            self._merges[subject] = data["task"]
        if kind == "gate.started":
            self._gates[subject] = data.get("merges") or []
        if kind == "run.begun":
            self._runs[subject] = data["task"]
            if data["task"] in self.ids:
                self._limited.setdefault(data["session"], "")
        if kind == "session.changed" and subject in self._limited:
            return self._waits(subject, data)
        if kind == "alert.raised" and data["type"] != "task_blocked":
            return f"{paint('limited' if data['type'] in PASSING else 'needs-you', 9)} {plain(data['message'])}"
        if kind in ("queue.paused", "queue.resumed", "queue.frozen", "queue.thawed"):
            return f"{paint(kind.removeprefix('queue.'), 9)} the merge queue{_why(data)}"
        if kind == "gate.ended":
            ours = {self._merges.get(name) for name in self._gates.pop(subject, ())} & self.ids
            return f"{paint('failed', 9)} {subject}: {_failures(data)}" if ours and not data["passed"] else None
        if kind == "gate.flaked":
            return f"{paint('flaky', 9)} {subject}: {', '.join(plain(test) for test in data['tests'][:3])}"
        if kind in ("overlap.found", "overlap.changed") and data["level"] != "file":
            return self._meets(subject, data)
        if kind == "lease.crossed" and data["task"] in self.ids:
            files = ", ".join(plain(path) for path in data["paths"][:3])
            return f"{paint('crossed', 9)} {data['task']:<6} wrote {files}, which is another's ({subject})"
        task = self._merges.get(subject) or self._runs.get(subject) or subject
        if task not in self.ids:
            return None
        if task not in self._titles:
            self._titles[task] = str(client.ask("task.show", {"id": task}).value["title"])
        said = self._said(kind, data, task)
        return None if said is None else f"{paint(said[0], 9)} {task:<6} {said[1]}"

    def _meets(self, pair: str, data: dict[str, Any]) -> str | None:
        """Return the line for two branches that come close, if one of them is ours."""
        one, _, other = pair.partition(" ")
        if not {one, other} & self.ids:
            return None
        how = "conflicts with" if data["level"] == "conflict" else "comes close to"
        return f"{paint('overlap', 9)} {one:<6} {how} {other}: {', '.join(plain(path) for path in data['files'][:3])}"

    def _waits(self, session: str, data: dict[str, Any]) -> str | None:
        """Return the line for a session that its provider puts off, once for each time that it is."""
        if data["state"] != "limited" or self._limited[session]:
            self._limited[session] = "" if data["state"] in ("working", "idle") else self._limited[session]
            return None
        self._limited[session] = data["evidence"]
        return f"{paint('limited', 9)} {plain(session)}: {first_line(data['evidence'], 160)}"

    def _said(self, kind: str, data: dict[str, Any], task: str) -> tuple[str, str] | None:
        """Return a word of status and what happened, if people want to see it."""
        match kind:
            case "task.claimed":
                return "doing", f"{data['session']}: {first_line(self._titles.get(task, ''), 70)}"
            case "run.ended" if data["outcome"] in ("failed", "lost", "crashed"):
                return "rejected" if data["outcome"] == "failed" else "stalled", first_line(data.get("what") or "")
            case "run.ended" if data["outcome"] == "put-off":
                return "limited", first_line(data.get("what") or "")
            case "run.ending" if data.get("again"):
                return "limited", f"begins again: {first_line(data['why'], 160)}"
            case "task.handed_in":
                where = {"review": "waits for your review", "done": "is done"}.get(data["to"], "is handed in")
                return {"merging": "merging"}.get(data["to"], data["to"]), f"{where}{_at(data)}"
            case "merge.tested":
                gate = f" in {data['run']}" if data.get("run") else ""
                return "testing", f"as it would land{gate}{_at(data)}"
            case "merge.clashed" if data.get("against"):
                return "waiting", f"git cannot merge it with {', '.join(data['against'][:3])}, which goes first"
            case "merge.held":
                return "review", f"waits for you: {first_line(data['why'], 160)}"
            case "merge.waits":
                return "waiting", first_line(data["why"], 160)
            case "merge.requeued":
                return "testing", f"again: {first_line(data['why'])}"
            case "merge.rejected":
                return "rejected", first_line(data["reason"], 160)
            case "task.done":
                return "done", f"landed{_at(data)}" if data["how"] == "landed" else "with its children"
            case "task.blocked":
                return "blocked", first_line(data["reason"], 160)
            case "task.dropped":
                return "dropped", first_line(data.get("reason", ""), 160)
            case _:
                return None


def _at(data: dict[str, Any]) -> str:
    return f" in {data['commit'][:12]}" if data.get("commit") else ""


def _why(data: dict[str, Any]) -> str:
    return f": {first_line(data['why'], 160)}" if data.get("why") else ""


def _failures(data: dict[str, Any]) -> str:
    """Return what failed in a gate, in a few words."""
    failed = data.get("failures") or []
    more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
    return ", ".join(first_line(test, 80) for test in failed[:3]) + more or first_line(
        data.get("step") or "failed", 160
    )
