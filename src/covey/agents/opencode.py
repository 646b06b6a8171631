"""opencode: `opencode run --format json`, one prompt for one task.

What the levels come to, with opencode 1.18:
- ask: it reads. It cannot ask while nobody is there: what writes, and every command, is refused, and it is told so.
- edits: it edits files in the worktree, and runs commands that begin as allowed ones do; of a chain each one must, and
  none may redirect its output out of the worktree; but of `a && b > file` it shows its rules no redirection at all. All
  else is refused, and it is told so. It has no sandbox: what an allowed command does is not looked at.
- full: nothing is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from covey.agents import environment, streams
from covey.agents.agent import Assignment, HearsNothing, Terminal, Traits
from covey.agents.allowed_commands import allowed
from covey.agents.provider_errors import trouble
from covey.core.fleet import signals
from covey.core.fleet.launches import Launch
from covey.core.fleet.signals import Signal, Trouble
from covey.core.people.permits import SHELL, PermissionLevel
from covey.values import dataclass

TRAITS = Traits(
    speaks=True,
    resumes=True,
    priced=True,
    env=("OPENCODE_*", *environment.KEYS, *environment.AUTHORITIES),
    gap=1.0,
    memory=500 * 1024 * 1024,
)
CONTENT = "OPENCODE_CONFIG_CONTENT"
"""Settings that are added to those of the user, and come after them."""

_LOGGED = re.compile(r'\btimestamp=\S+ .*?\bmessage="stream error" .*?\berror\.error="(.*)"', re.DOTALL)
_GONE = re.compile(r"\AError:\s*Session not found")
_TOOLS = {"bash": SHELL, "write": "edit", "edit": "edit", "patch": "edit", "multiedit": "edit", "apply_patch": "edit"}
_RULES = re.compile(r" Here are some of the relevant rules \[.*\]\Z", re.DOTALL)
"""What it tells its model of a refusal beyond the refusal."""
_ABOUT = ("command", "filePath", "path", "pattern", "query", "url", "prompt", "description")
_OUTSIDE = tuple(
    f"*{way}*"
    for redirection in (">", "> ", ">  ", ">\t", ">|", ">| ", ">&", ">& ")
    for quote in ("", '"', "'")
    for way in (*(f"{redirection}{quote}{place}" for place in ("/", "~", "$", "..")), ">*/../")
)
"""Redirections that leave the worktree, as patterns: it knows only `*` and `?`."""
_NOWHERE = (
    tuple(f"{which}{gap}/dev/null" for which in (">", "&>", "2>") for gap in ("", " ")),
    (">/dev/null 2>&1", "> /dev/null 2>&1", ">/dev/null 2>/dev/null"),
)
"""Ends of commands that write to nowhere, first with one redirection and then with two."""
_UNASKED = ("git*push*--no-veri*", "git*core.hooksPath*", "git*core.hookspath*", "git*send-pack*")
"""Pushes that pass by the hook in which covey is asked."""
_QUOTES = ("'", '"')
_GOES_ON = ("tool-calls", "unknown")
"""Why a step ends after which another follows."""


@dataclass(frozen=True)
class Opencode(HearsNothing):
    """opencode, headless."""

    name: str = "opencode"
    traits: Traits = TRAITS
    terminal: Terminal | None = None

    def launch(self, work: Assignment) -> Launch:
        """Return `opencode run`, which reads the prompt from its standard input.

        What it says on standard error is not kept apart: only its log says that it tries again, which goes on without
        end.
        """
        conversation = streams.name(work.conversation)
        argv = work.command("opencode", "run", "--format", "json", "--print-logs", "--log-level", "ERROR")
        argv += ["--session", conversation] if conversation else []
        argv += [streams.word(word) for word in work.arguments]
        env = {**work.env, CONTENT: _content(work)}
        env.setdefault("OPENCODE_DISABLE_AUTOUPDATE", "1")  # or the program changes under others that run
        return Launch(argv=tuple(argv), cwd=work.worktree, env=env, stdin=work.prompt)

    def read(self, line: str) -> list[Signal]:
        """Return what one event lets us know, or a line of the log between them."""
        event = streams.record(line)
        if event is None:
            return _plain(line)
        part = streams.inner(event, "part")
        match event.get("type"):
            case "step_start":
                session = streams.name(streams.text(event, "sessionID"))
                return [*([signals.Conversation(session)] if session else []), signals.Waits()]
            case "text":
                return [] if part.get("synthetic") else [*streams.said(streams.text(part, "text"))]
            case "tool_use":
                return _called(part)
            case "step_finish":
                return [_spent(part), _after(streams.text(part, "reason"))]
            case "error":
                return [_failed(streams.inner(event, "error"))]
        return []


def _content(work: Assignment) -> str:
    """Return the settings of the user that stand in the same variable, with what the level allows."""
    own = streams.record(work.env.get(CONTENT, "")) or {}
    # Nobody reads the title that it would pay for, and of that call alone it does not say what it cost.
    agents = {"title": {"disable": True}, **streams.inner(own, "agent")}
    permission = {**streams.inner(own, "permission"), **_permissions(work)}
    return json.dumps({**own, "agent": agents, "permission": permission})


def _permissions(work: Assignment) -> dict[str, Any]:
    """Return the rights of a level; of the patterns for commands the last that fits counts."""
    if work.permissions is PermissionLevel.FULL:
        return dict.fromkeys(("*", "edit", "bash", "webfetch", "external_directory", "doom_loop"), "allow")
    # `question` would wait for a person.
    closed = {"external_directory": "deny", "doom_loop": "deny", "question": "deny"}
    if work.permissions is PermissionLevel.ASK:
        return {"edit": "deny", "bash": {"*": "deny"}, "webfetch": "deny", **closed}
    bash = {"*": "deny"}
    begins = allowed(work.commands, work.gate)
    bash |= {pattern: "allow" for begin in begins for pattern in (begin, f"{begin} *")}
    bash |= _redirections(begins)
    bash |= dict.fromkeys(_UNASKED, "deny")
    return {"edit": "allow", "bash": bash, "webfetch": "allow", **closed}


def _redirections(begins: Iterable[str]) -> dict[str, str]:
    """Return that no allowed command writes out of the worktree; an arrow in the message of a commit does not."""
    rights = dict.fromkeys(_OUTSIDE, "deny")
    for number, ends in enumerate(_NOWHERE, 1):
        rights |= {f"{begin} *{end}": "allow" for begin, end in product(begins, ends)}
        rights |= dict.fromkeys((f"{outside}{'>*' * number}" for outside in _OUTSIDE), "deny")  # to elsewhere as well
    # A message ends with a quote, and what is redirected after it does not, or has one before it.
    rights |= {f"git commit *{quote}{end}": "allow" for quote, end in product(_QUOTES, ("", " 2>&1"))}
    marks = product(("", "-", " "), ("EOF", "'EOF'", '"EOF"'))
    rights |= {f"cat <<{gap}{word}\n*": "allow" for gap, word in marks}
    arrows = product(_QUOTES, _QUOTES, ("", " "))
    return rights | {f"git commit *{first}{gap}>*{last}": "deny" for first, last, gap in arrows}


def _plain(line: str) -> list[Signal]:
    words = streams.shown(line[: 4 * streams.MAX_SHOWN_CHARS])
    logged = _LOGGED.search(words)
    if logged is not None:
        return [signals.Limited(trouble(logged[1]), streams.complaint(logged[1]) or "The stream failed.")]
    return [signals.Failed(words, Trouble.CORRUPT)] if _GONE.match(words) else []


def _called(part: Mapping[str, Any]) -> list[Signal]:
    """Return a use of a tool, which it reports only when it has ended."""
    call, tool, state = streams.text(part, "callID"), streams.text(part, "tool"), streams.inner(part, "state")
    given = streams.inner(state, "input")
    named = next((given[key] for key in _ABOUT if isinstance(given.get(key), str)), given)
    kind = _TOOLS.get(tool, tool)
    code = streams.inner(state, "metadata").get("exit")
    failed = state.get("status") != "completed" or code not in (0, None)
    result = streams.mark([state.get("output"), state.get("error")])
    told = _RULES.sub("", streams.output(state.get("output")) or streams.text(state, "error"))
    called = signals.Called(call, failed, result, told)
    if kind != "edit":
        return [signals.Calls(call, kind, streams.about(named)), called, signals.Waits()]
    # Two edits of one file are not the same call, so what is written counts.
    paths = streams.patched(streams.words(given, "patchText")) or named
    return [signals.Calls(call, kind, streams.exact(paths, given), _edit(state)), called, signals.Waits()]


def _edit(state: Mapping[str, Any]) -> str:
    """Return what an edit took out and put in."""
    patch, given = streams.inner(state, "metadata").get("diff"), streams.inner(state, "input")
    if isinstance(patch, str) and patch:
        return streams.diff(patch)
    new = streams.words(given, "newString") or streams.words(given, "content")
    return streams.edit(streams.words(given, "oldString"), new) or streams.diff(streams.words(given, "patchText"))


def _spent(part: Mapping[str, Any]) -> signals.Spent:
    """Return what one step cost; where it does not know a price it says nothing, which is not a price."""
    tokens = streams.inner(part, "tokens")
    cache = streams.inner(tokens, "cache")
    output = streams.count(tokens, "output") + streams.count(tokens, "reasoning")
    usage = signals.Usage(
        streams.count(tokens, "input"), output, streams.count(cache, "read"), streams.count(cache, "write")
    )
    return signals.Spent(streams.text(part, "id"), usage, cost=streams.amount(part, "cost") or None)


def _after(reason: str) -> Signal:
    """Return what follows a step; its last has no words of its own: what it said last stands."""
    if reason == "stop":
        return signals.Result("")
    return (
        signals.Waits()
        if reason in _GOES_ON
        else signals.Failed(f"opencode ended a step early: {streams.brief(reason) or 'error'}.")
    )


def _failed(error: Mapping[str, Any]) -> Signal:
    name, data = streams.text(error, "name"), streams.inner(error, "data")
    if name == "ContextOverflowError":
        return signals.Compacts()  # and goes on
    message = streams.text(data, "message") or name or "opencode says that it failed, and not why."
    kind = trouble(f"{name} {message}", streams.count(data, "statusCode"))
    return signals.Failed(streams.complaint(message), Trouble.KEY if name == "ProviderAuthError" else kind)


agent = Opencode()
"""Joins by entry point, like anyone's."""
