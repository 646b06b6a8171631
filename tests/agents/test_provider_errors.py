"""What complaints of providers mean, whichever program passes them on."""

from __future__ import annotations

import json

import pytest

from covey.agents import aider, gemini, opencode
from covey.agents.agent import Agent
from covey.agents.claude import claude
from covey.agents.codex import codex
from covey.agents.provider_errors import trouble
from covey.core.fleet.signals import Failed, Signal, Trouble


@pytest.mark.parametrize(
    ("complaint", "meant"),
    [
        ("unexpected status 400 Bad Request: The tool network_probe timed out is no function", Trouble.OTHER),
        ("unexpected status 404 Not Found: no route to /v1/connection", Trouble.OTHER),
        ("Error code: 422 - unknown field connection", Trouble.OTHER),
        ("HTTP 413 payload too large, connection terminated", Trouble.OTHER),
        ("unexpected status 405 Method Not Allowed: api_error", Trouble.OTHER),
        ("unexpected status 400 Bad Request: prompt is too long", Trouble.CONTEXT),
        ('{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}', Trouble.KEY),
        ("unexpected status 400 Bad Request: rate limit reached", Trouble.LIMIT),
        ("unexpected status 400 Bad Request: Your credit balance is too low", Trouble.CREDIT),
        ("unexpected status 400 Bad Request: Invalid `signature` in `thinking` block", Trouble.CORRUPT),
        ("unexpected status 503 Service Unavailable", Trouble.OVERLOAD),
        ("unexpected status 401 Unauthorized", Trouble.KEY),
        ("API Error: 529 Overloaded", Trouble.OVERLOAD),
        ("The answer has more than 500 words", Trouble.OTHER),
        ("network error: timed out", Trouble.CONNECTION),
        ("stream disconnected before completion: error sending request", Trouble.CONNECTION),
        ("Missing environment variable: `SOME_KEY`.", Trouble.KEY),
        ("Your access token could not be refreshed. Please log out and sign in again.", Trouble.KEY),
    ],
)
def test_a_complaint_is_a_trouble_that_passes_only_if_nothing_says_that_it_lasts(
    complaint: str, meant: Trouble
) -> None:
    assert trouble(complaint) is meant


def test_a_status_that_a_program_knows_counts_as_if_it_were_written() -> None:
    assert trouble("connection terminated") is Trouble.CONNECTION
    assert trouble("connection terminated", 400) is Trouble.OTHER
    assert trouble("that went wrong", 529) is Trouble.OVERLOAD


def claude_line(what: str, status: int | None) -> str:
    told = {"type": "result", "subtype": "success", "is_error": True, "terminal_reason": "api_error", "result": what}
    return json.dumps({**told, "api_error_status": status})


def opencode_line(what: str, status: int) -> str:
    error = {"name": "APIError", "data": {"message": what, "statusCode": status}}
    return json.dumps({"type": "error", "error": error})


UNMATCHED = "API Error: 400 messages.2: `tool_use` ids were found without `tool_result` blocks right after: toolu_1"
UNKNOWN = "API Error: 400 messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1."
LARGE = "API Error: 400 messages.6.content.0.tool_result.content.0.image.source.base64: image exceeds 5 MB maximum"
SCHEMA = "API Error: 400 tools.3.custom.input_schema: the network timeout of the connection is no number"
LOGIN = (
    "Error authenticating: FatalAuthenticationError: Manual authorization is required but the current session is "
    "non-interactive. Please run the Gemini CLI in an interactive terminal to log in, provide a GEMINI_API_KEY, or "
    "ensure Application Default Credentials are configured."
)
CODEX_KEY = json.dumps({"type": "turn.failed", "error": {"message": "Missing environment variable: `SOME_KEY`."}})


@pytest.mark.parametrize(
    ("agent", "line", "meant"),
    [
        (claude.agent, claude_line(UNMATCHED, 400), Trouble.CORRUPT),
        (claude.agent, claude_line(UNKNOWN, 400), Trouble.CORRUPT),
        (claude.agent, claude_line(LARGE, 400), Trouble.OTHER),
        (claude.agent, claude_line(SCHEMA, 400), Trouble.OTHER),
        (claude.agent, claude_line("It may have no more than 500 words.", None), Trouble.OTHER),
        (claude.agent, claude_line("It has 403 tests.", None), Trouble.OTHER),
        (claude.agent, claude_line("API Error: 500 Internal error", None), Trouble.OVERLOAD),
        (claude.agent, claude_line("529 Overloaded", None), Trouble.OVERLOAD),
        (codex.agent, CODEX_KEY, Trouble.KEY),
        (gemini.agent, LOGIN, Trouble.KEY),
        (gemini.agent, "Invalid auth method selected.", Trouble.KEY),
        (gemini.agent, "When using Vertex AI, you must specify either:", Trouble.KEY),
        (gemini.agent, "Error authenticating: FetchError: reason: connect ECONNREFUSED 127.0.0.1", Trouble.CONNECTION),
        (opencode.agent, opencode_line("the connection has no field network", 400), Trouble.OTHER),
        (opencode.agent, opencode_line("Incorrect API key provided", 400), Trouble.KEY),
        (opencode.agent, opencode_line("no", 503), Trouble.OVERLOAD),
        (aider.agent, "litellm.BadRequestError: OpenAIException - no such field: timeout", Trouble.OTHER),
        (aider.agent, "litellm.NotFoundError: OpenAIException - no such model: network", Trouble.OTHER),
        (aider.agent, "litellm.Timeout: it timed out", Trouble.CONNECTION),
    ],
)
def test_what_lasts_is_not_taken_for_what_passes(agent: Agent, line: str, meant: Trouble) -> None:
    told: list[Signal] = agent.read(line)
    assert [signal.trouble for signal in told if isinstance(signal, Failed)] == [meant]
