"""One scripted worker: claims, takes leases, writes mail and hands in, with the client that the commands use.

It is a process of its own that knows only its session's token, as an agent would.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from covey.cli.client import Client
from covey.demo.board import LEASES, RESULTS
from covey.errors import CoveyError, Refused

Task = dict[str, Any]


class Worker:
    """Works until nothing waits any more."""

    def __init__(self, name: str, root: Path, others: list[str]) -> None:
        self.name = name
        self.root = root
        self.others = others
        self.client = Client()
        self.chance = random.Random(name)
        self.gave_back = False
        self.handed_in: list[str] = []

    def work(self) -> None:
        """Claim one task after another until the board is dry."""
        while True:
            answer = self.client.ask("task.next")
            if answer.status != 204:
                self._do(answer.value)
                continue
            counts = self.client.ask("status").value["counts"]
            if not counts["todo"] and not counts["doing"]:
                return
            self._read_mail()
            time.sleep(0.1)

    def _do(self, task: Task) -> None:
        if self.name == "ben" and not self.gave_back and self.handed_in:
            self.gave_back = True
            self._wait(0.3)
            self._ask_task("task.release", task, reason="Not enough is known to begin")
            self._wait(0.6)
            return
        lease = self._lease(task)
        self._wait(0.9)
        self._ask_task("task.renew", task)
        if self.chance.random() < 0.4:
            self._write(self.chance.choice(self.others), f"I am at {task['id']}; tell me if you know more.", task)
        self._wait(0.9)
        self._hand_in(task)
        if lease is not None:
            self.client.ask("lease.give", {"id": lease["id"]}, {"fence": lease["fence"]})

    def _lease(self, task: Task) -> Task | None:
        """Take what the task must have for itself, asking its holder and waiting while another has it."""
        resources = [*task["scope"], *LEASES.get(task["key"], ())]
        wrote = False
        while resources:
            fields = {"resources": resources, "task": task["id"], "ttl": 60}
            try:
                lease: Task = self.client.ask("lease.take", fields=fields).value
                return lease
            except Refused:
                if not wrote:
                    self._ask_holder(resources, task)
                wrote = True
                self._wait(0.2)
        return None

    def _ask_holder(self, resources: list[str], task: Task) -> None:
        for lease in self.client.ask("lease.list").value:
            if set(lease["resources"]) & set(resources):
                self._write(lease["holder"], f"I wait for {', '.join(resources)}; say when you are done.", task)

    def _write(self, to: str, text: str, task: Task) -> None:
        self.client.ask("mail.send", fields={"to": to, "text": text, "task": task["id"]})

    def _read_mail(self) -> None:
        for message in self.client.ask("mail.inbox").value:
            self.client.ask("mail.read", {"id": message["id"]})

    def _hand_in(self, task: Task) -> None:
        result = RESULTS.get(task["key"], "Looked into it; the findings are in the notes.")
        if task["kind"] == "change":
            branch = f"covey/{task['id']}"
            self._ask_task("task.handin", task, commit=self._commit(task, branch), branch=branch)
        else:
            self._ask_task("task.handin", task, result=result)
        self.handed_in.append(task["id"])

    def _commit(self, task: Task, branch: str) -> str:
        """Commit a change on a branch of its own; an index of its own keeps the user's checkout out of it."""
        path = task["scope"][0]
        own = {
            "GIT_INDEX_FILE": str(self.root / ".git" / f"demo-{self.name}.index"),
            "GIT_AUTHOR_NAME": self.name,
            "GIT_AUTHOR_EMAIL": f"{self.name}@agents.local",
            "GIT_COMMITTER_NAME": self.name,
            "GIT_COMMITTER_EMAIL": f"{self.name}@agents.local",
        }

        def git(*words: str, text: str = "") -> str:
            done = subprocess.run(
                ["git", *words],
                cwd=self.root,
                env=os.environ | own,
                input=text,
                text=True,
                capture_output=True,
                check=True,
            )
            return done.stdout.strip()

        blob = git("hash-object", "-w", "--stdin", text=f"{(self.root / path).read_text()}\n# {task['title']}\n")
        git("read-tree", "main")
        git("update-index", "--cacheinfo", f"100644,{blob},{path}")
        commit = git("commit-tree", git("write-tree"), "-p", "main", "-m", task["title"])
        git("update-ref", f"refs/heads/{branch}", commit)
        return commit

    def _ask_task(self, verb: str, task: Task, **fields: Any) -> None:
        self.client.ask(verb, {"id": task["id"]}, {"fence": task["fence"]} | fields)

    def _wait(self, about: float) -> None:
        time.sleep(about * self.chance.uniform(0.5, 1.2))


def _end_with_the_demo() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> int:
    """Work as the session in COVEY_SESSION; end when stdin does."""
    threading.Thread(target=_end_with_the_demo, daemon=True).start()
    name = os.environ["COVEY_SESSION"]
    worker = Worker(name, Path(sys.argv[1]), [other for other in sys.argv[2:] if other != name])
    try:
        with worker.client:
            worker.work()
    except CoveyError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(worker.handed_in))
    return 0


if __name__ == "__main__":
    sys.exit(main())
