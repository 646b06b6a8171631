"""Claude Code without a terminal: it is told, asked and answered in lines of JSON."""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping
from typing import Any

from covey.agents import environment, streams
from covey.agents.agent import Assignment, Terminal, Traits, WithoutLedger
from covey.agents.claude import messages, questions
from covey.agents.claude.launch import added, home, permissions, program, settings
from covey.agents.claude.messages import TROUBLE_BY_ERROR, blocks, totals, trouble_of, until_of
from covey.agents.claude.terminal import ClaudeTerminal
from covey.agents.streams import amount, count, inner, record, text
from covey.core.fleet import signals
from covey.core.fleet.launches import Launch
from covey.core.fleet.signals import Signal, Trouble
from covey.core.people.questions import Reply
from covey.values import dataclass

TERMINAL = ClaudeTerminal()
BILL = {"subtype": "get_usage", "skip_behaviors": True}
"""What asks for the dollars and tokens of each model."""
USED_UP = "usage_limit_reached"
"""What it calls an error that lasts until a time that it names."""

VARIABLES = (
    *("ANTHROPIC_*", "AWS_*", "AZURE_*", "GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*", "CLOUD_ML_REGION", "VERTEX_*"),
    *("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_*", "CLAUDE_CODE_USE_*", "CLAUDE_CODE_SKIP_*", "CLAUDE_CODE_CLIENT_*"),
    *("CLAUDE_CODE_API_*", "CLAUDE_CODE_MAX_*", "CLAUDE_CODE_DISABLE_*", "CLAUDE_CODE_EFFORT_LEVEL"),
    *("CLAUDE_CODE_SUBAGENT_MODEL", "CLAUDE_CODE_ENABLE_*", "API_TIMEOUT_MS", "MAX_THINKING_TOKENS"),
    *("BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_*", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "MAX_MCP_OUTPUT_TOKENS"),
    *("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_PROMPT_CACHING*", *environment.AUTHORITIES),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""By name, since whoever starts covey from inside of Claude Code has more of them, which tell of that session."""

TRAITS = Traits(
    speaks=True,
    resumes=True,
    priced=True,
    hooks=True,
    asks=True,
    env=VARIABLES,
    gap=0.3,
    memory=220 * 1024 * 1024,
)


@dataclass(frozen=True)
class Claude(WithoutLedger):
    """Claude Code by `claude -p`, its input open as long as it may be told something."""

    name: str = "claude"
    traits: Traits = TRAITS
    terminal: Terminal | None = TERMINAL

    def launch(self, work: Assignment) -> Launch:
        """Return its command line; the prompt is the first line that it reads."""
        argv, env = program(work)
        conversation = streams.name(work.conversation)
        spoken = "--input-format stream-json --output-format stream-json --verbose --permission-prompt-tool stdio"
        allowance = [] if work.allowance is None else ["--max-budget-usd", f"{max(work.allowance, 0.000001):.6f}"]
        resume = ["--resume", conversation] if conversation else []
        own = added(work, settings(work, terminal=False))
        return Launch(
            argv=(*argv, "-p", *spoken.split(), *permissions(work), *allowance, *resume, *own),
            cwd=work.worktree,
            env=env,
            stdin=_told(work.prompt) + "\n",
            ledger=home(work),
            typed=True,
            apart=True,
        )

    def read(self, line: str) -> list[Signal]:
        """Return what a line lets us know; one that is not JSON is something said."""
        told = record(line)
        if told is None:
            return [*streams.said(line.rpartition("\r")[2])]
        match told.get("type"):
            case "system":
                return _system(told)
            case "assistant":
                return _assistant(told)
            case "user":  # what goes to the model besides is none of its words
                called = messages.results(told)
                return [*called, signals.Waits()] if called else []
            case "result":
                return _result(told)
            case "rate_limit_event":
                return _limit(inner(told, "rate_limit_info"))
            case "control_request":
                return questions.asked(told)
            case "control_response":
                session = inner(told, "response", "response", "session")
                return totals(inner(session, "model_usage"), amount(session, "total_cost_usd"))
            case "control_cancel_request":
                return questions.taken_back(told)
        return []

    def ledger(self, folder: str, conversation: str) -> tuple[str, ...]:
        """Return its journal and those of its sub-agents: its output names a call when that has only begun."""
        name = streams.name(conversation)
        at = f"{glob.escape(folder)}/projects/*/{name}"
        return (f"{at}.jsonl", f"{at}/subagents/*.jsonl") if name else ()

    def count(self, line: str) -> list[Signal]:
        """Return what a call cost, or all of them when it was told to end."""
        found = record(line) if '"usage"' in line or '"cost-state"' in line else None
        match {} if found is None else found:
            case {"type": "assistant"} as said:
                return [signal for signal in messages.spent(said) if isinstance(signal, signals.Spent)]
            case {"type": "cost-state"} as state:
                return totals(inner(state, "modelUsage"), amount(state, "totalCostUSD"))
        return []

    def bill(self) -> str | None:
        """Return a request that it answers between two lines; by itself it names dollars only at the end of a turn."""
        return json.dumps({"type": "control_request", "request_id": "covey-bill", "request": BILL})

    def say(self, text: str) -> str | None:
        """Return a message of the user, which it takes up between two steps, or as its next turn."""
        return _told(text)

    def answer(self, asks: signals.Asks, reply: Reply) -> str | None:
        """Return the answer to a request of its own, with what the tool was given."""
        return questions.answer(asks, reply)


agent = Claude()


def _told(text: str) -> str:
    """Return a message of the user as a line; one that begins with a slash would be taken for a command."""
    safe = "\n" + text if text.startswith("/") else text
    return json.dumps({"type": "user", "message": {"role": "user", "content": safe or "\n"}})


def _system(told: Mapping[str, Any]) -> list[Signal]:
    match told.get("subtype"):
        case "init":
            name = text(told, "session_id")
            return [*([signals.Conversation(name)] if name else []), signals.Waits()]
        case "status":
            if told.get("status") == "compacting":
                return [signals.Compacts()]
            finished: dict[str, list[Signal]] = {"success": [signals.Compacts(on=False)], "failed": [signals.Works()]}
            return finished.get(text(told, "compact_result"), [])
        case "api_retry":
            return _retry(told)
    return []


def _retry(told: Mapping[str, Any]) -> list[Signal]:
    """Return that it was put off; what has no status never reached the provider, or was cut off on the way back."""
    status, kind = count(told, "error_status"), text(told, "error")
    trouble = trouble_of(told, "") if status or kind in TROUBLE_BY_ERROR else Trouble.CONNECTION
    what = f"{status} {kind}" if status else str(trouble)
    attempts = f"try {count(told, 'attempt')} of {count(told, 'max_retries')}"
    delay = amount(told, "retry_delay_ms")
    return [signals.Limited(trouble, f"{what}, {attempts}", again_in=None if delay is None else delay / 1000)]


def _assistant(told: Mapping[str, Any]) -> list[Signal]:
    """Return what a message says; of a limit that ends at a time, only the message names the time."""
    if not told.get("is_api_error_message"):
        return messages.message(told)
    if told.get("parent_tool_use_id"):
        return []
    if text(told, "api_error") != USED_UP:
        return []  # the line that ends the turn says the same
    what = " ".join(text(block, "text") for block in blocks(told))
    until = until_of(inner(told, "api_error_params", "rate_limit_info"), what)
    return [signals.Failed(streams.complaint(what) or USED_UP, Trouble.LIMIT, until)]


def _limit(info: Mapping[str, Any]) -> list[Signal]:
    """Return that it was refused for a limit; coming near one does not count."""
    if info.get("status") != "rejected" or info.get("isUsingOverage") is True:
        return []
    kind = text(info, "rateLimitType").replace("_", " ")
    return [signals.Limited(Trouble.LIMIT, f"{kind} limit" if kind else "limit", until_of(info))]


def _result(told: Mapping[str, Any]) -> list[Signal]:
    """Return how a turn ended: well only if nothing at all speaks against it."""
    if told.get("parent_tool_use_id"):
        return []
    what = streams.brief(text(told, "result") or _errors(told))
    spent = totals(inner(told, "modelUsage"), amount(told, "total_cost_usd"))
    is_well = told.get("is_error") is False and told.get("subtype") == "success"
    if is_well and told.get("terminal_reason") in (None, "completed"):
        return [*spent, signals.Result(what or "It said nothing.")]
    if text(told, "api_error") == USED_UP:
        return spent  # its message said so, with the time
    reason = text(told, "terminal_reason") or text(told, "subtype") or "an error"
    if reason.startswith("aborted"):
        return spent  # somebody interrupted it: no word of its own on how it went
    trouble = trouble_of(told, what)
    if trouble is Trouble.BUDGET and told.get("stop_reason") == "end_turn":
        return [*spent, signals.Result(what)]  # it was the last call, and had said all that it had to say
    return [*spent, signals.Failed(streams.complaint(what) or f"It ended with {reason}.", trouble, until_of({}, what))]


def _errors(told: Mapping[str, Any]) -> str:
    errors = told.get("errors")
    return " ".join(error for error in errors if isinstance(error, str)) if isinstance(errors, list) else ""
