"""Gemini's generateContent and streamGenerateContent, as Gemini CLI asks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.model.script import Fail, Message
from tests.model.wire import Answer, Body, Question, frame, text_of, words

CALL_PREFIX = "call"


def read(body: Body, headers: Mapping[str, str], path: str) -> Question:
    """Return what is asked; the model and whether it streams stand in the path."""
    named = re.search(r"models/([^/:]+):(\w+)", path)
    declared = [tool for group in body.get("tools") or [] for tool in group.get("functionDeclarations", [])]
    return Question(
        model=named[1] if named else "",
        messages=tuple(_message(item) for item in body.get("contents", [])),
        tools=frozenset(str(tool["name"]) for tool in declared),
        system=text_of((body.get("systemInstruction") or {}).get("parts")),
        stream=named is not None and named[2].startswith("stream"),
    )


def _message(item: Body) -> Message:
    parts = item.get("parts") or []
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    ids = tuple(str(call["id"]) for call in calls if call.get("id"))
    return Message(item.get("role") == "model", text_of(parts), ids)


def _parts(answer: Answer) -> list[Body]:
    parts: list[Body] = [{"text": answer.thinking, "thought": True}] if answer.thinking else []
    if answer.text or not answer.calls:
        parts.append({"text": answer.text})
    calls = [{"id": call.id, "name": call.name, "args": call.arguments} for call in answer.calls]
    return parts + [{"functionCall": call} for call in calls]


def _body(answer: Answer, parts: list[Body], finish: str | None) -> Body:
    candidate: Body = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": answer.model}


def _usage(answer: Answer) -> Body:
    usage = answer.usage
    read_in = usage.input + usage.cache_read + usage.cache_write
    counts = {
        "promptTokenCount": read_in,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": read_in + usage.output,
    }
    return {"usageMetadata": counts}


def whole(answer: Answer) -> Body:
    """Return the answer in one piece."""
    return _body(answer, _parts(answer), answer.stop or "STOP") | _usage(answer)


def frames(answer: Answer) -> list[bytes]:
    """Return the answer as a stream of server-sent events."""
    found: list[bytes] = []
    for part in _parts(answer):
        pieces = [{**part, "text": word} for word in words(part["text"])] if "text" in part else [part]
        found += [frame(_body(answer, [piece], None)) for piece in pieces]
    return [*found, frame(_body(answer, [{"text": ""}], answer.stop or "STOP") | _usage(answer))]


def failure(fail: Fail) -> Body:
    """Return the body of an error."""
    return {"error": {"code": fail.status, "message": fail.message, "status": fail.type}}


def failure_frame(fail: Fail) -> bytes:
    """Return an error that comes in the middle of a stream."""
    return frame(failure(fail))
