"""A scripted model on loopback that real agent programs talk to, and a ledger of all that it was asked and charged."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import re
import secrets
import select
import socket
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, TracebackType
from typing import Any, cast

from tests.model import anthropic, chat, gemini, responses
from tests.model.script import (
    NOTHING,
    SCRIPTED_PRICE,
    SIDE,
    Cut,
    Fail,
    Hang,
    Place,
    Price,
    Script,
    Step,
    Trouble,
    Usage,
    call_id,
    find_place,
    marker,
    trouble_of,
)
from tests.model.wire import Answer, Body, Call, Question, Wire, translate

PRICES: Mapping[str, Price] = {
    "claude-opus-5-5": Price(4.0, 20.0, 0.2, 5.0),
    "claude-sonnet-5-5": Price(2.0, 10.0, 0.1, 2.5),
    "claude-haiku-5-5": Price(0.1, 0.5, 0.01, 0.125),
    "claude-opus-4-5": Price(5.0, 25.0, 0.5, 6.25),
    "claude-sonnet-4-5": Price(3.0, 15.0, 0.3, 3.75),
    "claude-haiku-4-5": Price(1.0, 5.0, 0.1, 1.25),
    "scripted": SCRIPTED_PRICE,
}
"""Dollars by how a model's name begins; the longest match counts, and a model without a price is free.

Claude Code bills by a list of its own, by model; these are its prices, and a test holds them against it. Its first
model is claude-opus-5-5, and an unknown one costs the same. Over 200,000 tokens a request it may charge more.
"""

_COMPACTIONS = ("CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.", "CONTEXT CHECKPOINT COMPACTION")
"""How Claude Code and Codex ask for a summary; such a request offers tools like any other."""

_ASKS_FOR_COMMIT_MESSAGE = "commit message"
_WIRES: Mapping[str, ModuleType] = {
    "anthropic": anthropic,
    "responses": responses,
    "chat": chat,
    "gemini": gemini,
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request and what became of it; `kind` is turn, side, compaction, count or other."""

    number: int
    at: float
    kind: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: Body = field(repr=False)
    protocol: str = ""
    script: str = ""
    step: int = 0
    attempt: int = 0
    model: str = ""
    conversation: str = ""
    outcome: str = "answered"
    """answered, failed, hung, cut, or left when the agent hung up first."""
    status: int = 200
    usage: Usage = NOTHING
    cost: float = 0.0


@dataclass(frozen=True)
class Charge:
    """What a provider would bill for some requests; an answer that failed or broke off costs nothing."""

    requests: int = 0
    usage: Usage = NOTHING
    cost: float = 0.0

    def __add__(self, request: Request) -> Charge:
        return Charge(self.requests + 1, self.usage + request.usage, self.cost + request.cost)


class ModelServer:
    """Answers on a free port of loopback until it is closed; one server stands any number of agents."""

    def __init__(self, prices: Mapping[str, Price] = PRICES, *, default: str = "") -> None:
        self.prices = prices
        self.default = default
        self.problems: list[str] = []
        self._scripts: dict[str, Script] = {}
        self._requests: dict[int, Request] = {}
        self._numbers = itertools.count(1)
        self._tries: dict[object, int] = defaultdict(int)
        self._gates: dict[str, threading.Event] = defaultdict(threading.Event)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._serve(0)

    def _serve(self, port: int) -> None:
        self._server = _Server(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="model", daemon=True)
        self._thread.start()

    # What it says

    def add(self, name: str, script: Script | Iterable[Step]) -> str:
        """Teach it a script, and return the marker that a prompt names it by."""
        self._scripts[name] = script if isinstance(script, Script) else Script(tuple(script))
        return marker(name)

    def open(self, gate: str) -> None:
        """Let the steps that are held at a gate go on, now and from now on."""
        self._gates[gate].set()

    # Where it is

    @property
    def port(self) -> int:
        """Return its port on 127.0.0.1."""
        return int(self._server.server_address[1])

    def url(self, script: str = "") -> str:
        """Return the base address, of one script or of whatever the prompts name."""
        return f"http://127.0.0.1:{self.port}" + (f"/x/{script}" if script else "")

    # What it was asked

    @property
    def requests(self) -> list[Request]:
        """Return every request that it is done with, oldest first."""
        with self._lock:
            return [self._requests[number] for number in sorted(self._requests)]

    def turns(self, script: str) -> list[Request]:
        """Return the turns of one script that were answered."""
        return [r for r in self.requests if (r.kind, r.script, r.outcome) == ("turn", script, "answered")]

    def asked(self, script: str, step: int = 0) -> int:
        """Return how often a step was asked for so far, also by requests that still wait for their answer."""
        with self._lock:
            return self._tries[script, step]

    def charged(self, *, model: str | None = None, script: str | None = None) -> Charge:
        """Return what all requests cost, or those of a model or a script; a model is named by how its name begins."""
        found = Charge()
        for request in self.requests:
            if (script is None or request.script == script) and request.model.startswith(model or ""):
                found += request
        return found

    def charged_by_model(self) -> dict[str, Charge]:
        """Return what was charged, by the full name of the model."""
        return {name: self.charged(model=name) for name in {r.model for r in self.requests if r.usage != NOTHING}}

    def charged_by_script(self) -> dict[str, Charge]:
        """Return what was charged, by script."""
        return {name: self.charged(script=name) for name in {r.script for r in self.requests if r.usage != NOTHING}}

    def price(self, model: str) -> Price:
        """Return what a model costs."""
        known = [name for name in self.prices if model.startswith(name)]
        return self.prices[max(known, key=len)] if known else Price(0, 0)

    # Its life

    def go_down(self) -> None:
        """Hang up on everyone, and refuse connections until it comes back."""
        self._server.shutdown()
        self._thread.join()
        self._server.socket.close()
        self._server.hang_up()

    def come_back(self) -> None:
        """Answer again on the same port."""
        self._serve(self.port)

    def close(self) -> None:
        """Hang up on everyone; fail if it was asked for what it has no answer to."""
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()
        assert not self.problems, self.problems

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except AssertionError:
            if error is None:
                raise

    # What the handler needs

    def number(self) -> int:
        """Return the number of the next request."""
        return next(self._numbers)

    def record(self, request: Request) -> None:
        """Put a request into the ledger; what is said of it first stands."""
        with self._lock:
            self._requests.setdefault(request.number, request)

    def decide(self, protocol: str, question: Question, url_script: str, told: str = "") -> Decision:
        """Return what is answered to a question, and count that it was asked; `told`: all that others have said."""
        place = find_place(question.messages, url_script or self.default)
        script = self._scripts.get(place.script)
        if any(sign in question.prompt for sign in _COMPACTIONS):
            goes_on = f"<summary>What was done so far is done. {marker(place.script, place.step)}</summary>"
            summary = replace(script.summary if script else Step(usage=SIDE), text=goes_on)
            return self._with_trouble("compaction", place, summary, question)
        if question.wants_title:
            return Decision("side", place, Step(text='{"title": "Do as told"}', usage=SIDE))
        if not question.tools and not _talks_without_tools(question):
            text = script.commit_message if script and _ASKS_FOR_COMMIT_MESSAGE in question.system.lower() else "ok"
            return Decision("side", place, Step(text=text, usage=SIDE))
        if script is None:
            self.problems.append(f"no script is called {place.script!r}: {question.prompt[-300:]!r}")
            lost = Fail(status=400, type="invalid_request_error", message=f"no script is called {place.script!r}")
            return Decision("turn", place, Step(), trouble=lost)
        return self._with_trouble("turn", place, script.step(place.step).given(told), question)

    def _with_trouble(self, kind: str, place: Place, step: Step, question: Question) -> Decision:
        conversation = question.conversation or _digest(question)
        mine, everybody = ((conversation, place), (place.script, place.step))
        keys: tuple[object, object] = (mine, everybody) if kind == "turn" else ((kind, conversation), (kind, everybody))
        with self._lock:
            before, of_all = self._tries[keys[0]], self._tries[keys[1]]
            for key in keys:
                self._tries[key] += 1
        return Decision(kind, place, step, trouble_of(step.troubles, before, of_all), before)

    def wait(self, event: threading.Event | None, seconds: float | None, connection: socket.socket) -> bool:
        """Wait for an event or a time, and return whether somebody still listens then."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._closing.is_set() and not _hung_up(connection):
            if event is not None and event.is_set():
                return True
            left = 0.05 if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return True
            self._closing.wait(min(left, 0.05)) if event is None else event.wait(min(left, 0.05))
        return False

    def gate(self, name: str) -> threading.Event:
        """Return a gate that a step waits at."""
        return self._gates[name]


@dataclass(frozen=True)
class Decision:
    """What is answered to one question."""

    kind: str
    place: Place
    step: Step
    trouble: Trouble | None = None
    attempt: int = 0


def _talks_without_tools(question: Question) -> bool:
    return "SEARCH/REPLACE" in question.system  # aider, whose tools are words


def _digest(question: Question) -> str:
    first = next((message.text for message in question.messages if not message.mine and message.text), "")
    return hashlib.sha256(first.encode()).hexdigest()[:16]


def _hung_up(connection: socket.socket) -> bool:
    try:
        readable, _, _ = select.select([connection], [], [], 0)
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, model: ModelServer, port: int) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        self._open.discard(request)
        super().close_request(request)

    def hang_up(self) -> None:
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, OSError):  # an agent may leave at any time
            self.model.problems.append(f"{type(error).__name__}: {error}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the ledger says it."""

    # Reading

    def _split(self) -> tuple[str, str]:
        found = re.match(r"/x/([\w-]+)(/.*)?$", self.path)
        return (found[1], found[2] or "/") if found else ("", self.path)

    def _body(self) -> Body:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        return cast(Body, json.loads(data)) if data else {}

    def _seen(self, kind: str, body: Body, **more: Any) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        about: dict[str, Any] = {"method": self.command, "path": self.path, "headers": headers}
        return Request(number=self.server.model.number(), at=time.time(), body=body, kind=kind, **about, **more)

    # Routes

    def do_HEAD(self) -> None:
        """Say that we are here."""
        self.server.model.record(self._seen("other", {}))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """List no models, and know nothing else."""
        known = self._split()[1].split("?")[0].endswith("/models")
        self.server.model.record(self._seen("other", {}, status=200 if known else 404))
        if known:
            self._send({"object": "list", "data": [], "models": [], "has_more": False})
        else:
            self._send({"error": {"type": "not_found_error", "message": "not here"}}, 404)

    def do_POST(self) -> None:
        """Answer a question, whatever the protocol."""
        url_script, path = self._split()
        path = path.split("?")[0]
        body = self._body()
        if path.endswith(("/count_tokens", ":countTokens")):
            count = len(json.dumps(body)) // 4
            self.server.model.record(self._seen("count", body))
            self._send({"input_tokens": count, "totalTokens": count})
        elif protocol := _protocol(path):
            self._answer(protocol, url_script, path, body)
        else:
            self.server.model.record(self._seen("other", body, status=404))
            self._send({"error": {"type": "not_found_error", "message": "not here"}}, 404)

    # Answering

    def _answer(self, protocol: str, url_script: str, path: str, body: Body) -> None:
        model, wire = self.server.model, cast(Wire, _WIRES[protocol])
        headers = {name.lower(): value for name, value in self.headers.items()}
        question = wire.read(body, headers, path)
        decided = model.decide(protocol, question, url_script, told(body))
        answer = _answer(wire, question, decided)
        cost = model.price(question.model).of(answer.usage)
        seen = self._seen(
            decided.kind,
            body,
            protocol=protocol,
            script=decided.place.script,
            step=decided.place.step,
            attempt=decided.attempt,
            model=question.model,
            conversation=question.conversation or _digest(question),
        )
        # Recorded before the last byte goes out: who has its answer finds it in the ledger.
        charged = replace(seen, usage=answer.usage, cost=cost)
        try:
            self._say(wire, answer, decided, question.stream, seen, charged)
        except OSError:  # the agent left
            self.close_connection = True
            model.record(replace(seen, outcome="left"))

    def _say(
        self, wire: Wire, answer: Answer, decided: Decision, stream: bool, seen: Request, charged: Request
    ) -> None:
        model, step, trouble = self.server.model, decided.step, decided.trouble
        listens = model.wait(None, step.delay, self.connection)
        if listens and step.hold:
            listens = model.wait(model.gate(step.hold), None, self.connection)
        if not listens:
            raise ConnectionResetError
        match trouble:
            case Fail() if not (stream and trouble.in_stream):
                model.record(replace(seen, outcome="failed", status=trouble.status))
                self._send(wire.failure(trouble), trouble.status, trouble.headers)
            case None if not stream:
                model.record(charged)
                self._send(wire.whole(answer), 200, step.headers)
            case _ if not stream:
                self._break_off([], trouble, seen)
            case _:
                self._stream(wire, answer, decided, seen, charged)

    def _stream(self, wire: Wire, answer: Answer, decided: Decision, seen: Request, charged: Request) -> None:
        frames, trouble = wire.frames(answer), decided.trouble
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self._send_headers(decided.step.headers)
        match trouble:
            case Fail():
                self._chunk(frames[0])
                self.server.model.record(replace(seen, outcome="failed", status=trouble.status))
                self._chunk(wire.failure_frame(trouble))
                self._chunk(b"")
            case Hang() | Cut():
                self._break_off(frames[: trouble.after], trouble, seen)
            case None:
                for frame in frames[:-1]:
                    if b'"message_delta"' in frame:  # says what it cost; who has read that may leave before the last
                        self.server.model.record(charged)
                    self._chunk(frame)
                    if not self.server.model.wait(None, decided.step.chunk_delay, self.connection):
                        raise ConnectionResetError
                self.server.model.record(charged)
                self._chunk(frames[-1])
                self._chunk(b"")

    def _break_off(self, frames: list[bytes], trouble: Trouble | None, seen: Request) -> None:
        for frame in frames:
            self._chunk(frame)
        hangs = isinstance(trouble, Hang)
        self.server.model.record(replace(seen, outcome="hung" if hangs else "cut"))
        if hangs:
            self.server.model.wait(None, None, self.connection)
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _send(self, body: Body, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self._send_headers(headers or {})
        self.wfile.write(data)

    def _send_headers(self, headers: Mapping[str, str]) -> None:
        self.send_header("request-id", f"req_{secrets.token_hex(10)}")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def told(body: Body) -> str:
    """Return all that users, tools and programs have said in a conversation, and nothing that the model has."""
    messages = body.get("messages") or body.get("input") or body.get("contents") or []
    theirs = [each for each in messages if not isinstance(each, dict) or not _is_the_models(each)]
    return "\n".join(_strings(theirs))


def _is_the_models(message: Body) -> bool:
    return message.get("role") in ("assistant", "model") or str(message.get("type")).endswith("_call")


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for each in value for text in _strings(each)] if isinstance(value, list) else []


def _protocol(path: str) -> str:
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/chat/completions"):
        return "chat"
    return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else ""


def _answer(wire: Wire, question: Question, decided: Decision) -> Answer:
    step = decided.step
    meant = [translate(action, question.tools) for action in step.do]
    said = [action for action in meant if isinstance(action, str)]
    tools = [action for action in meant if not isinstance(action, str)]
    nonces = [call_id(wire.CALL_PREFIX, decided.place, secrets.token_hex(4)) for _ in tools]
    return Answer(
        id=secrets.token_hex(10),
        model=question.model,
        text="\n\n".join([step.text, *said] if step.text else said),
        thinking=step.thinking,
        calls=tuple(Call(nonce, tool.name, tool.arguments) for nonce, tool in zip(nonces, tools, strict=True)),
        usage=step.usage,
        stop=step.stop,
    )
