"""OpenAPI, made from the types that validate."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from covey import __version__, proof
from covey.app.app import PROPOSED
from covey.app.people.devices import JoinDevice, JoinedDevice
from covey.app.shapes.forms import Problem
from covey.app.verbs import VERBS, Verb
from covey.core.people.rights import OWNER_ONLY

_REF = "#/components/schemas/{name}"
_PROBLEMS = {
    400: "What was asked makes no sense",
    401: "No token, or a wrong one",
    403: "Not with this token, or not from there",
    404: "There is no such thing",
    409: "The rules say no, now",
    421: "Not under this name",
    426: "The client's Covey-Protocol is of another version",
    503: "It cannot be done at the moment; nothing was changed",
}
_PROBLEMS_OF_BODIES = {
    408: "The body was not here in time",
    413: "More than one mebibyte",
    422: "The idempotency key belongs to another request",
    429: "A session has made as much of it as it may, for now",
}


def _parameter(name: str, place: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": schema}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def document() -> dict[str, Any]:
    """Return the description of every verb."""
    verbs = list(VERBS.values())
    types = [verb.asked for verb in verbs] + [verb.answers for verb in verbs] + [Problem]
    types += [JoinDevice, JoinedDevice]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for i, verb in enumerate(verbs):
        paths.setdefault(verb.path, {})[verb.method.lower()] = _operation(
            verb, schemas[i], schemas[len(verbs) + i], components
        )
    paths["/api/events"] = {"get": _events()}
    paths[proof.PATH] = {"get": _prove()}
    paths["/api/devices/join"] = {"post": _join(schemas[-2], schemas[-1])}
    described = {
        "openapi": "3.1.0",
        "info": {"title": "covey", "version": __version__, "description": "Many agents, nothing ever lost."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
    return _in_common_speech(described)


def _in_common_speech(described: dict[str, Any]) -> dict[str, Any]:
    """Return the description without Python's own way to say the end of a text, or the place of a type."""
    text = msgspec.json.encode(described).decode()
    named = re.sub(r"covey\.(?:core|app)\.(?:[a-z_]+\.)*(?=[a-z_]+\.[A-Z])", "", text.replace(r'\\Z"', '$"'))
    document: dict[str, Any] = msgspec.json.decode(named)
    return document


def _operation(verb: Verb, asked: dict[str, Any], answer: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    parameters = [_parameter(name, "path", {"type": "string"}, required=True) for name in verb.params]
    operation: dict[str, Any] = {
        "operationId": verb.name,
        "summary": verb.summary,
        "parameters": parameters,
        "responses": _responses(verb, answer),
    }
    if verb.may == OWNER_ONLY:
        operation["description"] = "Only with the owner's token."
    if verb.changes:
        form = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"}
        parameters.append(_parameter("Idempotency-Key", "header", form))
        operation["requestBody"] = {"required": True, "content": _json(asked)}
    else:
        shape = components[asked["$ref"].rsplit("/", 1)[1]] if "$ref" in asked else asked
        parameters += [
            _parameter(name, "query", _query_schema(schema), required=name in shape.get("required", ()))
            for name, schema in shape.get("properties", {}).items()
        ]
    return operation


def _query_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a query parameter, which is left out rather than null."""
    arms = [arm for arm in schema.get("anyOf", ()) if arm != {"type": "null"}]
    return arms[0] if len(arms) == 1 else {name: value for name, value in schema.items() if name != "default"}


def _responses(verb: Verb, answer: dict[str, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done", "content": _json(answer)}
    if verb.name == "task.list":
        good["headers"] = {"X-Total-Count": {"schema": {"type": "integer"}}}
    responses: dict[str, Any] = {str(verb.status): good}
    if verb.may.can_be_proposed:
        shape = _json({"$ref": _REF.format(name="ProposalRow")})
        responses[str(PROPOSED)] = {"description": "Proposed: a person decides", "content": shape}
    if verb.name == "task.next":
        responses["204"] = {"description": "Nothing waits for this session"}
    return responses | _refusals(_PROBLEMS | (_PROBLEMS_OF_BODIES if verb.changes else {}))


def _refusals(problems: dict[int, str]) -> dict[str, Any]:
    content = _json({"$ref": _REF.format(name="Problem")})
    return {str(status): {"description": why, "content": content} for status, why in sorted(problems.items())}


def _events() -> dict[str, Any]:
    return {
        "operationId": "events",
        "summary": "Follow what changes, as server-sent events.",
        "description": (
            "`counts`, `sessions` and the first page of `board` at connect, then only what changed: `board` and "
            "`sessions` (arrays of whole rows), `counts`, `alerts`, `invalidate` ({type}), `live` (to the owner only, "
            "and in no log: GET /api/live whole at first, then what changed of it), `heartbeat`, and at last "
            "`goodbye` ({why, agents}: the daemon ends on purpose, and so many agents work on). `id` is the number "
            "in the log; a client that comes back with Last-Event-ID, or `after`, gets what it missed, each change "
            "once. `key` is a browser's. With `live=false` nothing is measured for this client's sake, and it does not "
            "count as a page that is looked at."
        ),
        "parameters": [
            _parameter("Last-Event-ID", "header", {"type": "string", "pattern": "^[0-9]+$"}),
            _parameter("after", "query", {"type": "integer", "minimum": 0}),
            _parameter("key", "query", {"type": "string"}),
            _parameter("live", "query", {"type": "boolean", "default": True}),
        ],
        "responses": {
            "200": {"description": "A stream", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
            **_refusals({status: _PROBLEMS[status] for status in (400, 401, 403, 421, 426)}),
        },
    }


def _prove() -> dict[str, Any]:
    said = {name: {"type": "string", "pattern": "^[0-9a-f]+$"} for name in ("proof", "life")}
    shape = {"type": "object", "properties": said, "required": list(said)}
    patterns = {"for": proof.NAME_FORM, "nonce": proof.NONCE_FORM}
    return {
        "operationId": "proof",
        "summary": "Prove to be the daemon, before it is sent a secret.",
        "description": (
            "Needs no token. `proof` is the HMAC-SHA-256, in hexadecimal digits, of the lines `covey daemon`, `nonce`, "
            "the Host of the request and `life` (which daemon this is, until it ends). The key is what COVEY_PROOF, or "
            "`covey session token NAME --json`, has behind its last colon; `for` is what stands before. Ask on the "
            "connection that the token will be sent on."
        ),
        "security": [],
        "parameters": [
            _parameter(name, "query", {"type": "string", "pattern": f"^{pattern}$"}, required=True)
            for name, pattern in patterns.items()
        ],
        "responses": {
            "200": {"description": "The proof", "content": _json(shape)},
            **_refusals({status: _PROBLEMS[status] for status in (400, 403, 421)}),
        },
    }


def _join(asked: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    good = {"description": "Known from now on, by the secret, which is said once", "content": _json(answer)}
    return {
        "operationId": "device.join",
        "summary": "Let the browser in that shows a code.",
        "description": "Only for our own page: it needs no token, but the page's Origin, and a code that works once.",
        "security": [],
        "parameters": [],
        "requestBody": {"required": True, "content": _json(asked)},
        "responses": {
            "200": good | {"description": "Known already; the code is spent"},
            "201": good,
            **_refusals(_PROBLEMS | _PROBLEMS_OF_BODIES),
        },
    }
