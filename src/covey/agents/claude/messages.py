"""What the messages of Claude Code mean; its output and its journal are made of the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from covey.agents import streams
from covey.agents.provider_errors import LASTING, of_status
from covey.agents.streams import amount, count, inner, objects, text, words
from covey.core.fleet.signals import Called, Calls, Context, Signal, Spent, Total, Trouble, Usage
from covey.core.people.permits import SHELL

SYNTHETIC = "<synthetic>"
"""The model of messages that the program writes itself."""

_ABOUT = ("command", "file_path", "notebook_path", "path", "url", "query", "pattern", "skill", "prompt")
"""Of what a tool is given, the first of these says what it is used for."""
_TOOL_ERROR = re.compile(r"\A\s*<tool_use_error>(.*)</tool_use_error>\s*\Z", re.DOTALL)
_MAX_TOLD_CHARS = 300
"""Characters of a use of a tool that people get to see."""
_CORRUPT = re.compile(
    r"signature.{0,40}thinking|thinking.{0,60}cannot be modified|tool use concurrency|tool_use.{0,20}ids"
    r"|unexpected `?tool_use_id|must have a corresponding `?tool_"
    r"|No conversation found|--resume requires|session (?:ID|file).{0,60}(?:not found|invalid|corrupt)",
    re.IGNORECASE | re.DOTALL,
)
_AT = r"(?:\A|\bAPI Error:? |\bstatus(?: code)?\W{1,3}|\bHTTP(?:/[\d.]+)? |\()"
"""What stands before a number that is a status."""
_TEXTS = (
    (Trouble.CREDIT, r"credit balance|billing|payment required|purchase credits"),
    (Trouble.CONTEXT, r"prompt is too long|context (?:limit|window)|request too large"),
    (Trouble.LIMIT, r"(?:hit|reached) your .{0,40}limit|usage limit|rate.limit|\(429\)"),
    (Trouble.KEY, r"not logged in|/login|api.key|disabled organization|authenticat|oauth|" + _AT + r"40[13]\b"),
    (Trouble.OVERLOAD, r"overloaded|server-side issue|" + _AT + r"5\d\d\b"),
    (
        Trouble.CONNECTION,
        r"\bE(?:CONN\w+|NOTFOUND|AI_AGAIN|TIMEDOUT|PIPE|HOSTUNREACH|NETUNREACH)\b|connection|socket|timed? ?out|network"
        r"|can't reach",
    ),
)
_SURE_TEXTS = 4
"""How many of these are believed of a request that is refused as it is."""
_ENDS = {
    "budget_exhausted": Trouble.BUDGET,
    "prompt_too_long": Trouble.CONTEXT,
    "blocking_limit": Trouble.CONTEXT,
    "rapid_refill_breaker": Trouble.CONTEXT,
}
TROUBLE_BY_ERROR = {
    **dict.fromkeys(("rate_limit", "rate_limit_error", "usage_limit_reached"), Trouble.LIMIT),
    **dict.fromkeys(("overloaded", "overloaded_error", "server_error"), Trouble.OVERLOAD),
    **dict.fromkeys(("authentication_failed", "authentication_error", "permission_error"), Trouble.KEY),
    "billing_error": Trouble.CREDIT,
    "connection_failed": Trouble.CONNECTION,
    "tool_history_mismatch": Trouble.CORRUPT,
}
_COUNTED_BY_API = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_COUNTED_BY_PROGRAM = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_EPOCH = re.compile(r"limit reached\|(\d{9,11})\b")
_FULL_NAME = re.compile(r"claude-[a-z0-9.@-]*[a-z0-9]", re.IGNORECASE)
_GENERATION = re.compile(r"claude-(?:[a-z]+-)?(\d+)\b")


def message(told: Mapping[str, Any]) -> list[Signal]:
    """Return what a message of the model says, does, and costs."""
    said = [signal for block in blocks(told) for signal in _block(block)]
    return [*said, *spent(told)]


def results(told: Mapping[str, Any]) -> list[Signal]:
    """Return which uses of tools have ended by a message to the model."""
    return [
        Called(
            text(block, "tool_use_id"),
            block.get("is_error") is True,
            streams.mark(block.get("content")),
            _output(block),
        )
        for block in blocks(told)
        if block.get("type") == "tool_result" and text(block, "tool_use_id")
    ]


def _output(block: Mapping[str, Any]) -> str:
    """Return what came of a tool, in words."""
    content = block.get("content")
    parts = [content] if isinstance(content, str) else [text(part, "text") for part in objects(block, "content")]
    return streams.output(_TOOL_ERROR.sub(r"\1", "\n".join(part for part in parts if part)))


def blocks(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parts of a message."""
    return objects(inner(told, "message"), "content")


def tool_of(name: str) -> str:
    """Return the name of a tool as covey says it."""
    return SHELL if name == "Bash" else name or "tool"


def about(given: Mapping[str, Any]) -> str:
    """Return what a tool is used for: the whole command, path or address."""
    named = next((given[key] for key in _ABOUT if text(given, key)), given)
    return streams.about(named) if named else ""


def wish(tool: str, use: str, reasons: list[str]) -> str:
    """Return the question for a permission as a person reads it, with what the program says of it."""
    wanted = (f"It wants to run: {use}" if tool == SHELL else f"It wants to use {tool}: {use}").removesuffix(": ")
    return "\n".join([wanted, *(reason for reason in reasons if reason and reason not in wanted)])


def _usage(told: Mapping[str, Any], names: tuple[str, ...]) -> Usage:
    """Return the tokens that stand under these names, in the order of a usage."""
    return Usage(*(count(told, name) for name in names))


def totals(by_model: Mapping[str, Any], cost: float | None) -> list[Signal]:
    """Return what each model cost since the conversation began; together they are the program's own sum."""
    usages: dict[str | None, Usage] = {}
    costs: dict[str | None, float] = {}
    for name, used in by_model.items():
        if isinstance(used, dict):
            model = model_of(name)
            usages[model] = usages.get(model, Usage()) + _usage(used, _COUNTED_BY_PROGRAM)
            costs[model] = costs.get(model, 0.0) + (amount(used, "costUSD") or 0.0)
    if not usages:
        return []
    rest = (cost or 0.0) - sum(costs.values())
    if rest > 0:  # what it counts of no model
        costs[max(costs, key=lambda model: costs[model])] += rest
    return [Total(usages[model], model, round(costs[model], 9), whole=True) for model in usages]


def model_of(name: str) -> str | None:
    """Return a model by the name that its messages have: without the size of its window and a cloud's own additions."""
    found = _FULL_NAME.search(name.partition("[")[0])
    plain = re.sub(r"-v\d+$", "", found[0].replace("@", "-")) if found else streams.shown(name)
    return plain or None


def trouble_of(told: Mapping[str, Any], what: str) -> Trouble:
    """Return why it cannot go on, from what a message says of an error and the text that goes with it."""
    if _CORRUPT.search(what):
        return Trouble.CORRUPT
    by_end = _ENDS.get(text(told, "terminal_reason"))
    if by_end is not None:
        return by_end
    if "max_budget" in text(told, "subtype"):
        return Trouble.BUDGET
    for trouble, pattern in _TEXTS[:2]:  # a status of 400 or 413 says less than these
        if re.search(pattern, what, re.IGNORECASE):
            return trouble
    by_kind = _by_kind(told)
    if by_kind is not None:
        return by_kind
    # Whose request itself is refused may find any word in what it had asked.
    believed = _TEXTS[:_SURE_TEXTS] if _status(told) in LASTING else _TEXTS
    return next((trouble for trouble, pattern in believed if re.search(pattern, what, re.IGNORECASE)), Trouble.OTHER)


def until_of(told: Mapping[str, Any], what: str = "") -> float | None:
    """Return when a limit ends, if that is named as a time that means the same everywhere."""
    found = _EPOCH.search(what)
    return float(count(told, "resetsAt") or (found[1] if found else 0)) or None


def _status(told: Mapping[str, Any]) -> int:
    return count(told, "api_error_status") or count(told, "error_status") or count(told, "apiErrorStatus")


def _by_kind(told: Mapping[str, Any]) -> Trouble | None:
    kinds = (text(told, key) for key in ("api_error", "apiError", "error", "api_error_type"))
    told_by_kind = (TROUBLE_BY_ERROR[kind] for kind in kinds if kind in TROUBLE_BY_ERROR)
    return of_status(_status(told)) or next(told_by_kind, None)


def _block(block: Mapping[str, Any]) -> list[Signal]:
    match block.get("type"):
        case "text":
            return [*streams.said(text(block, "text"))]
        case "tool_use" | "server_tool_use" | "mcp_tool_use" if text(block, "id"):
            name, given = tool_of(text(block, "name")), inner(block, "input")
            shown = f"{name}: {about(given)}".partition("\n")[0]
            return [
                *streams.said(shown[:_MAX_TOLD_CHARS]),
                Calls(text(block, "id"), name, _exact(name, given), _edit(given)),
            ]
    return []


def _edit(given: Mapping[str, Any]) -> str:
    """Return what a tool takes out of a file and puts in, nothing if it edits none."""
    if not text(given, "file_path"):
        return ""
    edits = [given, *objects(given, "edits")]
    parts = [
        streams.edit(words(each, "old_string"), words(each, "new_string") or words(each, "content")) for each in edits
    ]
    return "\n".join(part for part in parts if part)[: streams.MAX_EDIT_CHARS]


def _exact(tool: str, given: Mapping[str, Any]) -> str:
    """Return what a tool is used for, so that two uses read the same only if they are."""
    if tool == SHELL or len(given) < 2:
        return about(given)
    return streams.exact(about(given), given)


def spent(told: Mapping[str, Any]) -> list[Signal]:
    """Return what the call of the model cost that a message came from, and how full that made its context."""
    sent = inner(told, "message")
    name, model, usage = text(sent, "id"), text(sent, "model"), _usage(inner(sent, "usage"), _COUNTED_BY_API)
    if not name or model == SYNTHETIC or not usage.tokens:
        return []
    signals: list[Signal] = [Spent(name, usage, model_of(model))]
    is_main = not told.get("parent_tool_use_id") and not told.get("isSidechain")
    window = _window(model, usage.tokens)
    return [*signals, Context(usage.tokens, window)] if is_main and window else signals


def _window(model: str, used: int) -> int | None:
    """Return how many tokens fit, None for a model that we do not know: the program says it only at the end."""
    found = _GENERATION.search(model)
    if not found:
        return None
    return 200_000 if int(found[1]) < 5 and used <= 200_000 and "[1m]" not in model else 1_000_000
