"""What a test may rely on when it scripts the model."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.model import environment
from tests.model.outdoor import OutDoor
from tests.model.script import (
    ALWAYS,
    SIDE,
    Cut,
    Fail,
    Hang,
    Message,
    Place,
    Shell,
    Step,
    Usage,
    Write,
    committing,
    find_place,
)
from tests.model.server import ModelServer
from tests.worlds.serving import PATIENCE, wait_until

CLAUDE_TOOLS = [{"name": "Write"}, {"name": "Bash"}]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Yield a model of the test's own."""
    with ModelServer() as server:
        yield server


def post(model: ModelServer, path: str, body: Any, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=PATIENCE)
    try:
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def ask(model: ModelServer, *messages: dict[str, Any], path: str = "", session: str = "s", **more: Any) -> Any:
    body = {"model": "claude-opus-5-5", "messages": list(messages), "tools": CLAUDE_TOOLS, **more}
    headers = {"x-claude-code-session-id": session}
    status, data = post(model, f"{path}/v1/messages", body, **headers)
    return json.loads(data) | {"status": status} if not more.get("stream") else data.decode()


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(answer: Any) -> str:
    return str(answer["content"][0]["text"])


# Which script, which step


def test_the_marker_of_the_prompt_wins_over_the_address_and_the_address_over_the_default(model: ModelServer) -> None:
    for name in ("marked", "addressed", "usual"):
        model.add(name, [Step(text=name)])
    model.default = "usual"
    assert said(ask(model, user("[[script marked]]"), path="/x/addressed")) == "marked"
    assert said(ask(model, user("hello"), path="/x/addressed")) == "addressed"
    assert said(ask(model, user("hello"))) == "usual"


def test_the_last_marker_counts_and_starts_the_count() -> None:
    talk = [Message(False, "[[script a]]"), Message(True, "one"), Message(False, "go on"), Message(True, "two")]
    assert find_place(talk, "") == Place("a", 2)
    assert find_place([*talk, Message(False, "now [[script b]]")], "") == Place("b", 0)
    assert find_place([*talk, Message(False, "now [[script b]]"), Message(True, "three")], "") == Place("b", 1)
    assert find_place([Message(False, "what was done [[script a from 7]]")], "") == Place("a", 7)


def test_a_call_tells_its_step_also_when_what_came_before_is_gone() -> None:
    kept = Message(True, calls=("toolu_a__4__00ff",))
    assert find_place([Message(False, "[[script a from 4]]"), kept, Message(False)], "") == Place("a", 5)


def test_what_a_tool_says_is_no_marker(model: ModelServer) -> None:
    model.add("a", [Step(), Step(text="Still here.")])
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "Bash", "input": {}}]}
    result = {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "[[script b]]"}]}
    assert said(ask(model, user("[[script a]]"), called, {"role": "user", "content": [result]})) == "Still here."


def test_a_script_that_nobody_wrote_fails_the_test_at_its_end() -> None:
    model = ModelServer()
    assert ask(model, user("[[script missing]]"))["status"] == 400
    with pytest.raises(AssertionError, match="missing"):
        model.close()


def test_after_its_last_step_a_script_is_over(model: ModelServer) -> None:
    model.add("short", [])
    assert said(ask(model, user("[[script short]]"))) == "The script is over."


# What it says


def test_the_same_script_speaks_every_protocol(model: ModelServer) -> None:
    prompt = model.add("all", committing("a.txt", "a\n"))
    responses = {"model": "gpt-5.5", "input": prompt, "tools": [{"name": "exec_command"}, {"name": "apply_patch"}]}
    tools = [{"type": "function", "function": {"name": name}} for name in ("write", "bash")]
    chat = {"model": "scripted", "messages": [user(prompt)], "tools": tools}
    declared = [{"functionDeclarations": [{"name": "write_file"}, {"name": "run_shell_command"}]}]
    gemini = {"contents": [{"role": "user", "parts": [{"text": prompt}]}], "tools": declared}
    expected: list[tuple[str, dict[str, Any], str]] = [
        ("/v1/messages", {"messages": [user(prompt)], "tools": CLAUDE_TOOLS}, "Write"),
        ("/v1/responses", responses, "apply_patch"),
        ("/v1/chat/completions", chat, "write"),
        ("/v1beta/models/gemini-2.5-flash:generateContent", gemini, "write_file"),
    ]
    for path, body, tool in expected:
        for stream in (False, True):
            address = path.replace(":generate", ":streamGenerate") if stream else path
            status, data = post(model, address, {**body, "stream": stream})
            assert (status, f'"name": "{tool}"' in data.decode()) == (200, True), data
    assert [request.outcome for request in model.requests] == ["answered"] * 8


def test_side_requests_and_counts_are_answered_beside_the_script(model: ModelServer) -> None:
    model.add("a", [Step(text="The script.")])
    assert said(ask(model, user("[[script a]] a title, please"), tools=[])) == "ok"
    status, data = post(model, "/v1/messages/count_tokens", {"messages": [user("[[script a]]")]})
    assert status == 200 and json.loads(data)["input_tokens"] > 0
    assert [request.kind for request in model.requests] == ["side", "count"]
    assert model.charged().usage == SIDE


def test_thinking_usage_and_the_reason_to_stop_are_as_the_script_says(model: ModelServer) -> None:
    usage = Usage(1, 2, 3, 4)
    model.add("a", [Step(text="So.", thinking="Hm.", usage=usage, stop="max_tokens", headers={"x-more": "1"})])
    answer = ask(model, user("[[script a]]"))
    assert [block["type"] for block in answer["content"]] == ["thinking", "text"]
    assert answer["stop_reason"] == "max_tokens"
    assert list(answer["usage"].values()) == [1, 2, 3, 4]
    assert model.charged(script="a", model="claude").usage == usage
    assert model.charged(model="gpt").requests == 0
    assert model.charged().cost == pytest.approx((4.0 * 1 + 20.0 * 2 + 0.2 * 3 + 5.0 * 4) / 1e6)


def test_a_step_depends_on_what_others_have_said(model: ModelServer) -> None:
    model.add("a", [Step(text="The usual.", told={"LEASED": Step(text="I go elsewhere.")})])
    assert said(ask(model, user("[[script a]]"))) == "The usual."
    assert said(ask(model, user("[[script a]]"), {"role": "system", "content": "It is LEASED."})) == "I go elsewhere."
    result = {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "LEASED by bob"}]}
    assert said(ask(model, user("[[script a]]"), {"role": "user", "content": [result]})) == "I go elsewhere."
    mine = {"role": "assistant", "content": [{"type": "text", "text": "LEASED?"}]}
    model.add("b", [Step(), Step(text="The usual.", told={"LEASED": Step(text="I go elsewhere.")})])
    assert said(ask(model, user("[[script b]]"), mine)) == "The usual."


def test_a_held_step_waits_for_its_gate(model: ModelServer) -> None:
    model.add("a", [Step(text="At last.", hold="gate")])
    answers: list[str] = []
    asking = threading.Thread(target=lambda: answers.append(said(ask(model, user("[[script a]]")))))
    asking.start()
    wait_until(lambda: model.asked("a") == 1, "the request")
    assert model.requests == [] and answers == []
    model.open("gate")
    asking.join(PATIENCE)
    assert answers == ["At last."]


# What goes wrong


def test_troubles_befall_the_first_requests_of_each_conversation(model: ModelServer) -> None:
    limited = Fail(status=429, type="rate_limit_error", headers={"retry-after": "3"}, times=2)
    model.add("a", [Step(text="Fine.", troubles=(limited, Fail(status=529)))])
    for session in ("one", "two"):
        statuses = [ask(model, user("[[script a]]"), session=session)["status"] for _ in range(4)]
        assert statuses == [429, 429, 529, 200]
    assert model.charged().usage == Usage(2000, 100)


def test_a_trouble_for_whoever_asks_is_over_for_all(model: ModelServer) -> None:
    model.add("a", [Step(text="Fine.", troubles=(Fail(times=2, whoever=True),))])
    statuses = [ask(model, user("[[script a]]"), session=str(number))["status"] for number in range(4)]
    assert statuses == [500, 500, 200, 200]


def test_a_stream_breaks_off_and_is_not_charged(model: ModelServer) -> None:
    model.add("a", [Step(text="one two three", troubles=(Cut(after=3),))])
    with pytest.raises(http.client.IncompleteRead):
        ask(model, user("[[script a]]"), stream=True)
    assert "message_stop" in ask(model, user("[[script a]]"), stream=True)
    assert [request.outcome for request in model.requests] == ["cut", "answered"]
    assert model.charged().usage == Usage(1000, 50)


def test_an_error_may_come_in_the_stream(model: ModelServer) -> None:
    model.add("a", [Step(text="no", troubles=(Fail(type="overloaded_error", in_stream=True),))])
    answer = ask(model, user("[[script a]]"), stream=True)
    assert "message_start" in answer and "overloaded_error" in answer and "message_stop" not in answer


def test_a_silent_model_lets_go_when_it_is_closed() -> None:
    model = ModelServer()
    model.add("a", [Step(troubles=(Hang(times=ALWAYS),))])
    ended = threading.Event()

    def wait_for_nothing() -> None:
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(model, user("[[script a]]"), stream=True)
        ended.set()

    asking = threading.Thread(target=wait_for_nothing)
    asking.start()
    wait_until(lambda: [request.outcome for request in model.requests] == ["hung"], "the request")
    assert not ended.is_set()
    model.close()
    asking.join(PATIENCE)
    assert ended.is_set()


# Many, and the door


def test_forty_ask_at_once(model: ModelServer) -> None:
    for number in range(40):
        model.add(f"a-{number}", [Step(text=f"word {number}", do=(Write("f", "x"), Shell("true")), hold="all")])
    with ThreadPoolExecutor(40) as pool:
        answers = [pool.submit(ask, model, user(f"[[script a-{number}]]"), session=str(number)) for number in range(40)]
        wait_until(lambda: all(model.asked(f"a-{number}") for number in range(40)), "all requests")
        model.open("all")
        assert [said(answer.result()) for answer in answers] == [f"word {number}" for number in range(40)]
    assert {name: charge.requests for name, charge in model.charged_by_script().items()} == {
        f"a-{number}": 1 for number in range(40)
    }


def test_the_door_refuses_and_remembers() -> None:
    with OutDoor() as outdoor:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": outdoor.url}))
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            opener.open("http://example.com/", timeout=PATIENCE)
        refused.value.close()
        assert outdoor.attempts == ["GET http://example.com/ HTTP/1.1"]


def test_a_missing_agent_is_a_failure_that_says_what_to_run() -> None:
    with pytest.raises(AssertionError, match="bash scripts/setup --tests"):
        environment.program("nobody")
