"""The questions of Claude Code: requests in its output, each answered by a line that it reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from covey.agents.claude.messages import about, tool_of, wish
from covey.agents.streams import TOO_DEEP, brief, inner, objects, record, shown, spelled, text
from covey.core.fleet.signals import Asks, Settled, Signal, Wants, Works
from covey.core.people.questions import NOBODY_ANSWERED, Decision, Reply

MAX_CARRIED_CHARS = 48 * 1024
"""Characters up to which the name of a question carries what the tool was given; without it, it is used as it was."""
QUESTION = "AskUserQuestion"
"""The tool by which the model asks a person."""


def asked(told: Mapping[str, Any]) -> list[Signal]:
    """Return the question that a request of the program is."""
    request, name = inner(told, "request"), text(told, "request_id")
    if not name:
        return []
    if request.get("subtype") != "can_use_tool":
        return [_odd(name, request)]
    tool, given = text(request, "tool_name"), inner(request, "input")
    carried = spelled({"input": given, "request": name})
    if len(carried) > MAX_CARRIED_CHARS or carried == TOO_DEEP:
        carried = json.dumps({"request": name})
    if tool == QUESTION:
        return [replace(_question(carried, objects(given, "questions")), handle=name)]
    tool, use = tool_of(tool), about(given)
    reasons = [brief(text(request, key)) for key in ("description", "decision_reason")]
    return [Asks(wish(tool, use, reasons), carried, Wants.PERMISSION, tool, use, handle=name)]


def taken_back(told: Mapping[str, Any]) -> list[Signal]:
    """Return that a request wants no answer any more."""
    name = text(told, "request_id")
    return [Settled(name)] if name else [Works()]


def answer(asks: Asks, reply: Reply) -> str | None:
    """Return the line that answers a question, None if it is none of this program's."""
    question = record(asks.id)
    if question is None or not text(question, "request"):
        return None
    if text(question, "odd"):
        words = shown(reply.text) or NOBODY_ANSWERED
        failure = {"subtype": "error", "request_id": text(question, "request"), "error": words}
        return json.dumps({"type": "control_response", "response": failure})
    if reply.decision is Decision.DENY:
        decided: dict[str, object] = {"behavior": "deny", "message": shown(reply.text) or NOBODY_ANSWERED}
    elif asks.wants is Wants.ANSWER:
        decided = _answered(inner(question, "input"), reply.text)
    else:
        # An empty input stands for the one that it asked with.
        decided = {"behavior": "allow", "updatedInput": inner(question, "input")}
    response = {"subtype": "success", "request_id": text(question, "request"), "response": decided}
    return json.dumps({"type": "control_response", "response": response})


def _odd(name: str, request: Mapping[str, Any]) -> Asks:
    """Return a request of a kind that we do not know as a question: it waits, and whatever is said, it is told no.

    The form of an answer that grants it is the program's own affair; every request takes an error for an answer.
    """
    kind = text(request, "subtype") or "unknown"
    words = brief(text(request, "message") or text(request, "description"))
    spoken = f"It asks for something that covey can only refuse ({brief(kind)})" + (f": {words}" if words else ".")
    return Asks(spoken, json.dumps({"odd": kind, "request": name}), Wants.ANSWER, handle=name)


def _answered(given: Mapping[str, Any], words: str) -> dict[str, object]:
    """Return what a person said, as the answer to each of the questions: line by line if there are as many."""
    questions = [each["question"] for each in objects(given, "questions") if isinstance(each.get("question"), str)]
    if not questions:  # they were too long to be carried; what is said with a refusal is read as well
        return {"behavior": "deny", "message": f"The answer is: {words}"}
    spoken = [line.strip() for line in words.splitlines() if line.strip()]
    answers = spoken if len(spoken) == len(questions) else [words] * len(questions)
    return {"behavior": "allow", "updatedInput": {**given, "answers": dict(zip(questions, answers, strict=True))}}


def _question(name: str, questions: list[Mapping[str, Any]]) -> Asks:
    """Return the questions that it has for a person as one, with what it offers for an answer."""
    spoken: list[str] = []
    for question in questions:
        several = " (more than one may be named)" if question.get("multiSelect") is True else ""
        spoken.append((text(question, "question") or "It asks something.") + several)
        options = objects(question, "options")
        spoken += [f"- {text(each, 'label')}: {text(each, 'description')}".removesuffix(": ") for each in options]
    if len(questions) > 1:
        spoken.append("Please answer each question with a line.")
    offered = [text(option, "label") for question in questions for option in objects(question, "options")]
    choices = tuple(label for label in offered if label) if len(questions) == 1 else ()
    return Asks("\n".join(spoken) or "It asks something.", name, Wants.ANSWER, choices=choices)
