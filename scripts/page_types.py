"""Write what the daemon answers as types for the page, or with --check say whether they are out of date.

The page is checked by tsc against types/rest.d.ts, which is made from the same description of the REST interface that
the daemon serves: a field that is renamed in Python is an error in the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from covey.web import openapi

TARGET = Path(__file__).resolve().parent.parent / "types/rest.d.ts"
HEAD = "// What the daemon takes and answers. Made by scripts/page_types.py from the code; `make docs` writes it again."
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
METHODS = ("get", "post", "patch")


def name_of(schema: str) -> str:
    """Return the name of a schema as TypeScript has it: `tasks.Kind` is TasksKind."""
    return "".join(part[0].upper() + part[1:] for part in schema.split(".")[-2:])


def type_of(schema: dict[str, Any]) -> str:
    """Return a schema as a type."""
    if "$ref" in schema:
        return name_of(schema["$ref"].rsplit("/", 1)[1])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(type_of(each) for each in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return _object(schema)
    return PLAIN[kind] if isinstance(kind, str) else "unknown"


def _array(schema: dict[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(type_of(each) for each in schema['prefixItems'])}]"
    inside = type_of(schema.get("items") or {})
    return f"({inside})[]" if "|" in inside else f"{inside}[]"


def _object(schema: dict[str, Any]) -> str:
    if "properties" in schema:
        return f"{{ {' '.join(_fields(schema))} }}"
    more = schema.get("additionalProperties")
    return f"Record<string, {type_of(more) if isinstance(more, dict) else 'unknown'}>"


def _fields(schema: dict[str, Any], *, is_answer: bool = True) -> list[str]:
    """Return the fields of an object; an answer has all of them, a request may leave out what has a default."""
    needed = schema["properties"] if is_answer else schema["required"]
    return [f"{name}{'' if name in needed else '?'}: {type_of(each)};" for name, each in schema["properties"].items()]


def named_in(found: Any, schemas: dict[str, Any], names: set[str]) -> set[str]:
    """Add to some names those of the schemas that a part of the document leads to, and return them."""
    if isinstance(found, list):
        for each in found:
            named_in(each, schemas, names)
    elif isinstance(found, dict):
        name = found["$ref"].rsplit("/", 1)[1] if "$ref" in found else None
        if name is not None and name not in names:
            names.add(name)
            named_in(schemas[name], schemas, names)
        named_in(list(found.values()), schemas, names)
    return names


def declared(name: str, schema: dict[str, Any], *, is_answer: bool) -> str:
    """Return the declaration of one schema, with what it says of itself."""
    about = " ".join(schema.get("description", "").split("\n\n")[0].split())
    lines = [f"/** {about} */"] if about else []
    if schema.get("type") == "object" and schema.get("properties"):
        inside = "\n".join(f"  {field}" for field in _fields(schema, is_answer=is_answer))
        return "\n".join([*lines, f"export interface {name_of(name)} {{\n{inside}\n}}"])
    return "\n".join([*lines, f"export type {name_of(name)} = {type_of(schema)};"])


def answers(paths: dict[str, Any], method: str) -> list[str]:
    """Return what each path answers to a method, the parts that vary written as {}."""
    found = []
    for path, operations in sorted(paths.items()):
        if method in operations:
            plain = "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
            found.append(f"  {json.dumps(plain)}: {_answer(operations[method])};")
    return found


def _answer(operation: dict[str, Any]) -> str:
    """Return what an operation answers to a person: what a session may only propose, a person does at once."""
    good = [answer for status, answer in operation["responses"].items() if status in ("200", "201")]
    content = [each["schema"] for answer in good for each in answer.get("content", {}).values()]
    return type_of(content[0]) if content else "null"


def bodies(paths: dict[str, Any], method: str) -> list[str]:
    """Return what each path takes with a method, the parts that vary written as {}."""
    found = []
    for path, operations in sorted(paths.items()):
        content = operations.get(method, {}).get("requestBody", {}).get("content", {})
        for each in list(content.values())[:1]:
            plain = "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
            found.append(f"  {json.dumps(plain)}: {type_of(each['schema'])};")
    return found


def text() -> str:
    """Return the whole file."""
    document = openapi.document()
    schemas, paths = document["components"]["schemas"], document["paths"]
    told = named_in([each["responses"] for path in paths.values() for each in path.values()], schemas, set())
    parts = [declared(name, schemas[name], is_answer=name in told) for name in sorted(schemas, key=name_of)]
    for method in METHODS:
        rows = "\n".join(answers(paths, method))
        parts.append(f"/** What {method.upper()} answers. */\nexport interface {method.title()}Answers {{\n{rows}\n}}")
        rows = "\n".join(bodies(paths, method))
        if rows:
            parts.append(f"/** What {method.upper()} takes. */\nexport interface {method.title()}Bodies {{\n{rows}\n}}")
    return "\n\n".join([HEAD, *parts]) + "\n"


def main() -> int:
    """Write the file, or check it."""
    wanted = text()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(wanted)
        return 0
    if TARGET.exists() and TARGET.read_text() == wanted:
        return 0
    print("The types of the page are out of date; please run: make docs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
