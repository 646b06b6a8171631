"""OpenAI Responses, as Codex asks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from tests.model.script import Fail, Message
from tests.model.wire import Answer, Body, Question, frame, text_of, words

CALL_PREFIX = "call"

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")


def read(body: Body, headers: Mapping[str, str], path: str) -> Question:
    """Return what is asked."""
    asked = body.get("input") or []
    items = asked if isinstance(asked, list) else [{"type": "message", "role": "user", "content": asked}]
    offered = [*(body.get("tools") or []), *(tool for item in items for tool in item.get("tools") or [])]
    return Question(
        model=str(body.get("model", "")),
        messages=tuple(_message(item) for item in items),
        tools=frozenset(str(tool.get("name") or tool.get("type")) for tool in offered),
        system=str(body.get("instructions") or ""),
        stream=bool(body.get("stream")),
        conversation=str(body.get("prompt_cache_key") or ""),
        wants_title='"thread_source":"thread_title"' in headers.get("x-codex-turn-metadata", ""),
    )


def _message(item: Body) -> Message:
    kind = item.get("type")
    if kind in _CALLS:
        return Message(True, calls=(str(item.get("call_id")),))
    mine = item.get("role") == "assistant" or kind == "reasoning"
    return Message(mine, text_of(item.get("content")) if mine or item.get("role") == "user" else "")


def _items(answer: Answer) -> list[Body]:
    items: list[Body] = []
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        items.append({"type": "reasoning", "id": f"rs_{answer.id}", "summary": summary, "encrypted_content": None})
    if answer.text or not answer.calls:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        message = {"type": "message", "id": f"msg_{answer.id}", "role": "assistant", "status": "completed"}
        items.append({**message, "content": content})
    for number, call in enumerate(answer.calls):
        item = {"call_id": call.id, "name": call.name, "status": "completed"}
        if isinstance(call.arguments, str):
            items.append({"type": "custom_tool_call", "id": f"ctc_{answer.id}_{number}", **item, "input": call.json})
        else:
            items.append({"type": "function_call", "id": f"fc_{answer.id}_{number}", **item, "arguments": call.json})
    return items


def _usage(answer: Answer) -> Body:
    usage = answer.usage
    read_in = usage.input + usage.cache_read + usage.cache_write  # here the input counts what the cache held
    return {
        "input_tokens": read_in,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read_in + usage.output,
    }


def whole(answer: Answer) -> Body:
    """Return the answer in one piece."""
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": answer.stop or "completed",
        "model": answer.model,
        "output": _items(answer),
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if answer.stop == "incomplete" else None,
        "usage": _usage(answer),
    }


def frames(answer: Answer) -> list[bytes]:
    """Return the answer as a stream of server-sent events."""
    numbers = itertools.count()

    def event(kind: str, **more: Any) -> bytes:
        return frame({"type": kind, "sequence_number": next(numbers), **more}, kind)

    response = whole(answer)
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    found = [event("response.created", response=begun)]
    for index, item in enumerate(response["output"]):
        found.append(event("response.output_item.added", output_index=index, item={**item, "status": "in_progress"}))
        if item["type"] == "message":
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            found += [event("response.output_text.delta", **place, delta=word) for word in words(answer.text)]
        found.append(event("response.output_item.done", output_index=index, item=item))
    return [*found, event(f"response.{response['status']}", response=response)]


def failure(fail: Fail) -> Body:
    """Return the body of an error."""
    return {"error": {"type": fail.type, "code": fail.type, "message": fail.message, "param": None}}


def failure_frame(fail: Fail) -> bytes:
    """Return an error that comes in the middle of a stream."""
    error = {"code": fail.type, "message": fail.message}
    return frame({"type": "response.failed", "response": {"status": "failed", "error": error}}, "response.failed")
