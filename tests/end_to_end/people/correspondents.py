"""The program of an agent that asks at every step, as Claude Code does, keeps a transcript, and writes to colleagues.

Run as `python -I correspondents.py PROMPT_FILE SESSION COLLEAGUES LETTERS`. What its model got to read is written down
before the model's answer stands in the transcript, so that a test can hold what covey noted against what was true.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

OUTSIDE = Path(os.environ["OUTSIDE"])
STEP = 0.05
"""Seconds of what a tool does."""
LOST = 0.05
"""The part of the answers that the agent does not get: it did not wait for them."""
DIES = 0.01
"""The part of its steps in which it dies where that is worst."""


class Agent:
    """One conversation, and what its model has read of it."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.transcript = OUTSIDE / f"{session}-{os.environ['COVEY_RUN']}.jsonl"
        self.truth = OUTSIDE / f"read-{session}"
        self.unread: list[str] = []
        self.calls = 0

    def tell(self, line: dict[str, Any], text: str) -> None:
        """Put a text into the conversation: the model reads it when it is asked next."""
        self._append(self.transcript, line)
        self.unread.append(text)

    def ask_model(self) -> None:
        """Let the model read what is new, and answer."""
        for text in self.unread:
            self._append(self.truth, {"run": os.environ["COVEY_RUN"], "text": text})
        self.unread.clear()
        self._die_perhaps()
        block = {"type": "text", "text": "I go on."}
        self._append(self.transcript, {"type": "assistant", "message": {"model": "m", "content": [block]}})

    def use_tool(self) -> None:
        """Use a tool, and take in what a hook says after it."""
        self.calls += 1
        hook = {
            "session_id": f"{self.session}-{os.environ['COVEY_RUN']}", "transcript_path": str(self.transcript),
            "cwd": os.getcwd(), "hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {},
            "tool_use_id": f"call-{self.calls}",
        }  # fmt: skip
        answer = post("/hooks/PostToolUse", hook) or {}
        told = answer.get("hookSpecificOutput", {}).get("additionalContext")
        if told and random.random() < LOST:
            self._append(OUTSIDE / "mishaps", {"lost": told})
        elif told:
            attached = {"type": "hook_additional_context", "content": [told], "hookEvent": "PostToolUse"}
            self.tell({"type": "attachment", "attachment": attached}, told)
            self._die_perhaps()

    def _die_perhaps(self) -> None:
        if random.random() < DIES:
            self._append(OUTSIDE / "mishaps", {"died": os.environ["COVEY_RUN"]})
            os.kill(os.getpid(), signal.SIGKILL)

    @staticmethod
    def _append(path: Path, line: dict[str, Any]) -> None:
        with path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")


def post(path: str, body: dict[str, Any], key: str = "") -> Any:
    """Ask the daemon, and return its answer; None if it is away."""
    headers = {"Authorization": f"Bearer {os.environ['COVEY_TOKEN']}"} | ({"Idempotency-Key": key} if key else {})
    request = urllib.request.Request(os.environ["COVEY_URL"] + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=2) as answer:
            return json.loads(answer.read() or b"null")
    except (OSError, urllib.error.URLError, ValueError):
        return None


def send(session: str, colleagues: list[str], number: int) -> bool:
    """Send the letter with a number, the same whoever sends it again; false if nobody took it."""
    luck = random.Random(f"{session} {number}")
    to = luck.choice([name for name in colleagues if name != session])
    text = f"{session} to {to}, number {number}.\n" + "x" * luck.choice([0, 100, 3000])
    sent = post("/api/mail", {"to": to, "text": text}, key=f"{session}-{number}")
    if sent is None:
        return False
    with (OUTSIDE / f"sent-{session}").open("ab") as file:
        file.write(json.dumps({"id": sent["id"], "to": to, "number": number}).encode() + b"\n")
    return True


def main() -> None:
    prompt_file, session, names, letters = sys.argv[1:]
    colleagues = names.split(",")
    agent = Agent(session)
    prompt = Path(prompt_file).read_text()
    agent.tell({"type": "user", "message": {"content": prompt}}, prompt)
    sent = OUTSIDE / f"sent-{session}"
    while not (OUTSIDE / "over").exists():
        agent.ask_model()
        time.sleep(STEP)
        numbers = [json.loads(line)["number"] for line in sent.read_bytes().splitlines()] if sent.exists() else []
        following = max(numbers, default=0) + 1
        if following <= int(letters):
            send(session, colleagues, following)
        agent.use_tool()
    agent.ask_model()
    sys.stdout.write(f"{session} has read its mail\n")


if __name__ == "__main__":
    main()
