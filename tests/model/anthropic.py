"""Anthropic Messages, as Claude Code asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.model.script import Fail, Message
from tests.model.wire import Answer, Body, Question, frame, text_of, words

CALL_PREFIX = "toolu"


def read(body: Body, headers: Mapping[str, str], path: str) -> Question:
    """Return what is asked."""
    session, agent = headers.get("x-claude-code-session-id", ""), headers.get("x-claude-code-agent-id", "")
    return Question(
        model=str(body.get("model", "")),
        messages=tuple(_message(item) for item in body.get("messages", [])),
        tools=frozenset(str(tool.get("name")) for tool in body.get("tools") or []),
        system=text_of(body.get("system")),
        stream=bool(body.get("stream")),
        conversation=f"{session}/{agent}" if agent else session,  # a sub-agent talks apart from its session
    )


def _message(item: Body) -> Message:
    content = item["content"] if isinstance(item["content"], list) else []
    calls = tuple(str(block["id"]) for block in content if block.get("type") == "tool_use")
    # What a hook or the program adds comes as a system message in between; no user wrote it.
    text = "" if item["role"] == "system" else text_of(item["content"])
    return Message(item["role"] == "assistant", text, calls)


def _usage(answer: Answer) -> Body:
    usage = answer.usage
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }


def _content(answer: Answer) -> list[Body]:
    content: list[Body] = []
    if answer.thinking:
        content.append({"type": "thinking", "thinking": answer.thinking, "signature": "c2lnbmVk"})
    if answer.text or not answer.calls:
        content.append({"type": "text", "text": answer.text})
    return content + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in answer.calls
    ]


def whole(answer: Answer) -> Body:
    """Return the answer in one piece."""
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": _content(answer),
        "stop_reason": answer.stop or ("tool_use" if answer.calls else "end_turn"),
        "stop_sequence": None,
        "usage": _usage(answer),
    }


def _event(kind: str, **more: Any) -> bytes:
    return frame({"type": kind, **more}, kind)


def _block(index: int, block: Body, answer: Answer) -> list[bytes]:
    match block["type"]:
        case "text":
            start: Body = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in words(block["text"])]
        case "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": word} for word in words(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case _:
            start = {**block, "input": {}}
            sent = next(call.json for call in answer.calls if call.id == block["id"])
            cuts = range(0, len(sent), 40)
            deltas = [{"type": "input_json_delta", "partial_json": sent[cut : cut + 40]} for cut in cuts]
    return [
        _event("content_block_start", index=index, content_block=start),
        *(_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        _event("content_block_stop", index=index),
    ]


def frames(answer: Answer) -> list[bytes]:
    """Return the answer as a stream of server-sent events."""
    message = whole(answer)
    begun = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    found = [_event("message_start", message=begun)]
    for index, block in enumerate(message["content"]):
        found += _block(index, block, answer)
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [*found, _event("message_delta", delta=ended, usage=message["usage"]), _event("message_stop")]


def failure(fail: Fail) -> Body:
    """Return the body of an error."""
    return {"type": "error", "error": {"type": fail.type, "message": fail.message}, "request_id": "req_scripted"}


def failure_frame(fail: Fail) -> bytes:
    """Return an error that comes in the middle of a stream."""
    return frame(failure(fail), "error")
