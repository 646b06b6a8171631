"""OpenAI Chat Completions, as opencode and aider ask."""

from __future__ import annotations

from collections.abc import Mapping

from tests.model.script import Fail, Message
from tests.model.wire import Answer, Body, Question, frame, text_of, words

CALL_PREFIX = "call"


def read(body: Body, headers: Mapping[str, str], path: str) -> Question:
    """Return what is asked."""
    messages = body.get("messages", [])
    return Question(
        model=str(body.get("model", "")),
        messages=tuple(_message(item) for item in messages if item["role"] not in ("system", "developer")),
        tools=frozenset(str(tool["function"]["name"]) for tool in body.get("tools") or []),
        system="\n".join(text_of(item["content"]) for item in messages if item["role"] in ("system", "developer")),
        stream=bool(body.get("stream")),
        conversation=headers.get("x-session-affinity", ""),
    )


def _message(item: Body) -> Message:
    calls = tuple(str(call["id"]) for call in item.get("tool_calls") or [])
    text = "" if item["role"] == "tool" else text_of(item.get("content"))
    return Message(item["role"] == "assistant", text, calls)


def _usage(answer: Answer) -> Body:
    usage = answer.usage
    read_in = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": read_in,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens": usage.output,
        "total_tokens": read_in + usage.output,
    }


def _calls(answer: Answer) -> list[Body]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.json}}
        for call in answer.calls
    ]


def _head(answer: Answer) -> Body:
    return {"id": f"chatcmpl-{answer.id}", "created": 1_700_000_000, "model": answer.model}


def _finish(answer: Answer) -> str:
    return answer.stop or ("tool_calls" if answer.calls else "stop")


def whole(answer: Answer) -> Body:
    """Return the answer in one piece."""
    message: Body = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = _calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    return {**_head(answer), "object": "chat.completion", "choices": [choice], "usage": _usage(answer)}


def frames(answer: Answer) -> list[bytes]:
    """Return the answer as a stream of server-sent events."""
    head = {**_head(answer), "object": "chat.completion.chunk"}

    def chunk(delta: Body, finish: str | None = None) -> bytes:
        return frame({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    return [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": word}) for word in words(answer.text)),
        *(chunk({"tool_calls": [{"index": index, **call}]}) for index, call in enumerate(_calls(answer))),
        chunk({}, _finish(answer)),
        frame({**head, "choices": [], "usage": _usage(answer)}),
        b"data: [DONE]\n\n",
    ]


def failure(fail: Fail) -> Body:
    """Return the body of an error."""
    return {"error": {"type": fail.type, "code": None, "message": fail.message, "param": None}}


def failure_frame(fail: Fail) -> bytes:
    """Return an error that comes in the middle of a stream."""
    return frame(failure(fail))
