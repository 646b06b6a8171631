"""What every protocol is read into and written from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.model.script import Action, Fail, Message, Read, Shell, Tool, Usage, Write

Body = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What an agent asks, whatever the protocol."""

    model: str
    messages: tuple[Message, ...]
    tools: frozenset[str]
    system: str = ""
    stream: bool = False
    conversation: str = ""
    wants_title: bool = False
    """Whether it asks for the title of a conversation, although it offers tools."""

    @property
    def prompt(self) -> str:
        """Return what the user said last."""
        return next((message.text for message in reversed(self.messages) if not message.mine and message.text), "")


@dataclass(frozen=True)
class Call:
    """One call of a tool, as the agent that asked names it; a string is the input of a free-form tool."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str

    @property
    def json(self) -> str:
        """Return the arguments as they go over the wire."""
        return json.dumps(dict(self.arguments)) if not isinstance(self.arguments, str) else self.arguments


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the model says, whatever the protocol."""

    id: str
    model: str
    text: str
    thinking: str
    calls: tuple[Call, ...]
    usage: Usage
    stop: str


class Wire(Protocol):
    """One protocol; each of its modules is one."""

    CALL_PREFIX: str

    def read(self, body: Body, headers: Mapping[str, str], path: str) -> Question:
        """Return what is asked."""

    def whole(self, answer: Answer) -> Body:
        """Return the answer in one piece."""

    def frames(self, answer: Answer) -> list[bytes]:
        """Return the answer as a stream of server-sent events."""

    def failure(self, fail: Fail) -> Body:
        """Return the body of an error."""

    def failure_frame(self, fail: Fail) -> bytes:
        """Return an error that comes in the middle of a stream."""


def frame(data: Body, event: str = "") -> bytes:
    """Return one server-sent event."""
    return (f"event: {event}\n" if event else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


def words(text: str) -> list[str]:
    """Cut a text into pieces to stream."""
    return re.findall(r"\S+\s*|\s+", text)


def text_of(content: Any) -> str:
    """Return the text of a message, without what tools said."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, Sequence) else []
    return "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and block.get("text"))


# Each agent's own tools


def translate(action: Action, tools: frozenset[str]) -> Tool | str:
    """Return an action as a call of a tool that the agent offers, or as text for one that offers none."""
    match action:
        case Tool():
            return action
        case _ if {"Write", "Bash"} <= tools:
            return _for_claude(action)
        case _ if "exec_command" in tools:
            return _for_codex(action, "apply_patch" in tools)
        case _ if "run_shell_command" in tools:
            return _for_gemini(action)
        case _ if {"write", "bash"} <= tools:
            return _for_opencode(action)
        case _:
            return _for_aider(action)


def _for_claude(action: Write | Read | Shell) -> Tool:
    match action:
        case Write(path, content):
            return Tool("Write", {"file_path": path, "content": content})
        case Read(path):
            return Tool("Read", {"file_path": path})
        case Shell(command):
            return Tool("Bash", {"command": command, "description": "Run a command"})


def _for_codex(action: Write | Read | Shell, can_patch: bool) -> Tool:
    match action:
        case Write(path, content):
            added = "".join(f"+{line}\n" for line in content.splitlines())
            patch = f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"
            if can_patch:
                return Tool("apply_patch", patch)
            return Tool("exec_command", {"cmd": f"apply_patch <<'END-OF-PATCH'\n{patch}END-OF-PATCH\n"})
        case Read(path):
            return Tool("exec_command", {"cmd": f"cat -- '{path}'"})
        case Shell(command):
            return Tool("exec_command", {"cmd": command})


def _for_gemini(action: Write | Read | Shell) -> Tool:
    match action:
        case Write(path, content):
            return Tool("write_file", {"file_path": path, "content": content})
        case Read(path):
            return Tool("read_file", {"file_path": path})
        case Shell(command):
            return Tool("run_shell_command", {"command": command, "description": "Run a command"})


def _for_opencode(action: Write | Read | Shell) -> Tool:
    match action:
        case Write(path, content):
            return Tool("write", {"filePath": path, "content": content})
        case Read(path):
            return Tool("read", {"filePath": path})
        case Shell(command):
            return Tool("bash", {"command": command, "description": "Run a command"})


def _for_aider(action: Write | Read | Shell) -> str:
    match action:
        case Write(path, content):
            return f"{path}\n```\n<<<<<<< SEARCH\n=======\n{content}>>>>>>> REPLACE\n```\n"
        case Read(path):
            return f"Please add {path} to the chat.\n"
        case Shell(command):
            return f"```bash\n{command}\n```\n"
