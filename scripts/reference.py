"""Write docs/reference and the routes of the command line from the code, or with --check say what is out of date.

A page is a function that returns its text, entered in PAGES under its path. Add yours there.
"""

from __future__ import annotations

import contextlib
import enum
import io
import json
import os
import sys
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec

from covey import config, errors
from covey.app.shapes.forms import As
from covey.app.verbs import VERBS, Verb
from covey.cli import main as main_module
from covey.cli.board.task import NOTHING_WAITS_EXIT
from covey.core.events import noun
from covey.core.nouns import AUDIENCES, KINDS, PRIVATE
from covey.core.people.alerts import AlertKind
from covey.core.people.rights import OWNER_ONLY, Asker
from covey.core.settings import meaning
from covey.core.texts import INLINE_BYTES, Blob
from covey.web import openapi

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Made by scripts/reference.py from the code; `make docs` writes it again. -->"
PLAIN = {str: "text", int: "integer", float: "number", bool: "true or false", types.NoneType: "null"}


# Any page


def page(title: str, about: str, parts: list[str]) -> str:
    """Return a page with its title, what it is about, and its parts."""
    return "\n\n".join([f"# {title}", NOTE, about, *parts]) + "\n"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table."""
    lines = [[cell.replace("|", r"\|") for cell in line] for line in (heads, ["---"] * len(heads), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def sentence(cls: type[Any]) -> str:
    """Return what a class says of itself, in one paragraph."""
    return " ".join((cls.__doc__ or "").split())


def arms(hint: Any) -> list[Any]:
    """Return the types that a hint allows."""
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    return list(typing.get_args(hint)) if is_union else [hint]


def type_name(hint: Any) -> str:
    """Return a type in words; one of ours links to where it is described."""
    return " or ".join(_arm_name(arm) for arm in arms(hint))


def _arm_name(arm: Any) -> str:
    if typing.get_origin(arm) is tuple:
        return f"list of {type_name(typing.get_args(arm)[0])}"
    if arm in PLAIN:
        return PLAIN[arm]
    return f"[{arm.__name__}](#{anchor(arm)})"


def anchor(cls: type[Any]) -> str:
    """Return the place at which a type is described."""
    return f"{cls.__module__.rpartition('.')[2]}-{cls.__name__}".lower()


def default(one: Field[Any]) -> str:
    """Return the default of a field as it would be written."""
    if one.default is MISSING:
        return "" if one.default_factory is MISSING else "{}"
    return f"`{msgspec.json.encode(one.default).decode()}`"


# docs/reference/events.md


def events() -> str:
    """Return the catalogue of the kinds of events."""
    about = (
        "Every change of a project is one event of its log. An event has `seq`, `time` (seconds since 1970), `actor`, "
        "`kind`, `subject` (what it is about), `data`, `key` (the idempotency key of the request) and `prev` (the hash "
        "of the event before). This page lists the kinds with the fields of their `data`; a field that has its default "
        "value is left out, and one that an old event lacks has its default value. A text of more than "
        f"{INLINE_BYTES:,} bytes stands as its hash and size, and is kept aside. Events are never migrated."
    )
    by_noun: dict[str, list[str]] = {}
    for kind in KINDS:
        by_noun.setdefault(noun(kind), []).append(kind)
    parts = [
        part
        for name, kinds in by_noun.items()
        for part in (f"## {name}", *map(_event, kinds), *([_alerts()] if name == "alert" else []))
    ]
    return page("Events", about, [*parts, "## Shapes", *map(_shape, _shapes())])


def _event(kind: str) -> str:
    cls = KINDS[kind]
    parts = [f"### {kind}", sentence(cls)]
    if kind in PRIVATE:
        what, names = PRIVATE[kind]
        private = " and ".join(f"`{name}`" for name in names)
        parts.append(f"An export leaves {private} out unless it is made `--with {what}`.")
    hints = typing.get_type_hints(cls)
    rows = [[f"`{f.name}`", type_name(hints[f.name]), default(f) or "must be there"] for f in fields(cls)]
    return "\n\n".join([*parts, table(["field", "type", "default"], rows)] if rows else parts)


def _alerts() -> str:
    """Return the table of the kinds of alerts."""
    about = "What the `type` of an alert may be; an old log may hold others."
    rows = [[f"`{kind}`", kind.meaning] for kind in AlertKind]
    return f"### Kinds of alerts\n\n{about}\n\n{table(['type', 'means'], rows)}"


def _shapes() -> list[type[Any]]:
    """Return every type of ours that the events mention, in the order in which it is met."""
    found: dict[type[Any], None] = {}

    def meet(hint: Any) -> None:
        for arm in arms(hint):
            if typing.get_origin(arm) is tuple:
                meet(typing.get_args(arm)[0])
            elif arm not in PLAIN and arm not in found:
                found[arm] = None
                if is_dataclass(arm):
                    for inner in typing.get_type_hints(arm).values():
                        meet(inner)

    for cls in KINDS.values():
        for hint in typing.get_type_hints(cls).values():
            meet(hint)
    return list(found)


def _shape(cls: type[Any]) -> str:
    head = f'### <a id="{anchor(cls)}"></a>{cls.__name__}'
    if issubclass(cls, enum.Enum):
        return f"{head}\n\n{sentence(cls)} One of {', '.join(f'`{member.value}`' for member in cls)}."
    hints = typing.get_type_hints(cls)
    rows = [[f"`{f.name}`", type_name(hints[f.name]), default(f) or "must be there"] for f in fields(cls)]
    note = " `covey task show` prints the text itself." if cls is Blob else ""
    return f"{head}\n\n{sentence(cls)}{note}\n\n{table(['field', 'type', 'default'], rows)}"


# docs/reference/config.md


def settings() -> str:
    """Return the settings of covey.toml."""
    about = (
        f"`{config.FILE}` stands at the root of the repository. Everything has a default, so an empty file is fine; a "
        "name that is not listed here is an error that names the line and the nearest one."
    )
    hints = typing.get_type_hints(config.Config)
    tables = dict(_named(one.name, hints[one.name]) for one in fields(config.Config))
    parts = [_table_of_settings(name, cls) for name, cls in tables.items()]
    whole = "\n\n".join(_toml(name, cls) for name, cls in tables.items() if not name.endswith(NAME))
    return page("Settings", about, [*parts, "## All of them with their defaults", f"```toml\n{whole}\n```"])


NAME = ".NAME"


def _named(name: str, hint: Any) -> tuple[str, type[Any]]:
    """Return a table as it is headed and what it holds; of some there are any number, each under a name of yours."""
    if typing.get_origin(hint) is dict:
        return f"{name}{NAME}", typing.get_args(hint)[1]
    return name, hint


def _table_of_settings(name: str, cls: type[Any]) -> str:
    hints = typing.get_type_hints(cls)
    rows = [[f"`{f.name}`", type_name(hints[f.name]), default(f), meaning(name, f.name)] for f in fields(cls)]
    whole = f"## [{name}]\n\n{sentence(cls)}\n\n{table(['setting', 'type', 'default', 'what it means'], rows)}"
    return "\n\n".join(
        [whole, *(_inner(f"{name}.{f.name}", hints[f.name]) for f in fields(cls) if _tables(hints[f.name]))]
    )


def _tables(hint: Any) -> type[Any] | None:
    """Return what a setting holds that is a table of its own, or a list of such."""
    inner = typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else hint
    return inner if is_dataclass(inner) and isinstance(inner, type) else None


def _inner(name: str, hint: Any) -> str:
    cls = _tables(hint)
    assert cls is not None
    head = f"[[{name}]]" if typing.get_origin(hint) is tuple else f"[{name}]"
    return _table_of_settings(name, cls).replace(f"## [{name}]", f'### <a id="{anchor(cls)}"></a>{head}', 1)


def _toml(name: str, cls: type[Any]) -> str:
    lines = [f"{f.name} = {default(f).strip('`')}" for f in fields(cls)]
    return "\n".join([f"[{name}]", *lines])


# docs/reference/rest.md


def rest() -> str:
    """Return every verb as it is asked over HTTP."""
    about = (
        "Send `Authorization: Bearer TOKEN` always, `Idempotency-Key` with whatever changes something, and a JSON body "
        "where one is asked for. `GET /api/openapi.json` serves the same as OpenAPI. An error is `{error, hint}` with "
        "its status: 400 what was asked makes no sense, 401 no token or a wrong one, 403 not with this token or from "
        "there, 404 there is no such thing, 405 wrong method, 408 the body did not arrive, 409 the rules say no, "
        "413 more than 1 MiB, 421 a foreign host, 422 the key belongs to another "
        "request, 426 another version, 429 a session has made as much of it as it may, 503 it cannot be done at the "
        "moment and nothing was changed."
    )
    document = openapi.document()
    parts = [
        _operation(method, path, operation, document["components"]["schemas"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    schemas = document["components"]["schemas"]
    shapes = [_schema(name, schemas[name]) for name in sorted(schemas)]
    return page("REST", about, ["## Verbs", *parts, "## Shapes", *shapes])


def _operation(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    parts = [f"### {method.upper()} {path}", f"**{operation['operationId']}**: {operation['summary']}"]
    if "description" in operation:
        parts.append(operation["description"])
    query = [one for one in operation.get("parameters", ()) if one["in"] == "query"]
    if query:
        parts.append(table(["query", "type"], [[f"`{one['name']}`", schema_words(one["schema"])] for one in query]))
    if "requestBody" in operation:
        asked = operation["requestBody"]["content"]["application/json"]["schema"]
        parts.append(f"Takes {schema_words(asked)}.")
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            content: dict[str, Any] = answer.get("content", {})
            shape = next((one["schema"] for one in content.values()), None)
            parts.append(f"Answers {status}: {schema_words(shape) if shape else answer['description']}.")
    return "\n\n".join(parts)


def _schema(name: str, schema: dict[str, Any]) -> str:
    head = f'### <a id="{name.lower()}"></a>{name}\n\n{schema.get("description", "")}'
    if "enum" in schema:
        return f"{head} One of {', '.join(f'`{value}`' for value in schema['enum'])}."
    needed = schema.get("required", ())
    rows = [
        [f"`{field}`", schema_words(one), "must be there" if field in needed else _default_words(one)]
        for field, one in schema.get("properties", {}).items()
    ]
    return f"{head}\n\n{table(['field', 'type', 'default'], rows)}" if rows else head


def _default_words(schema: dict[str, Any]) -> str:
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def schema_words(schema: dict[str, Any]) -> str:
    """Return what a JSON schema allows, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(schema_words(arm) for arm in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {schema_words(schema.get('items', {}))}"
    limits = [f"{word} {schema[key]}" for key, word in LIMITS.items() if key in schema]
    kind = {"string": "text", "boolean": "true or false", "object": "object"}.get(
        schema.get("type", ""), schema.get("type")
    )
    return f"{kind or 'anything'}{', ' + ', '.join(limits) if limits else ''}"


LIMITS = {"minLength": "at least", "maxLength": "at most", "minimum": "from", "maximum": "to", "pattern": "like"}


# docs/reference/cli.md


def commands() -> str:
    """Return the help of every command."""
    about = "What `--help` prints, of every command. Each takes `--json`, which prints exactly what REST answers."
    os.environ["COLUMNS"] = "100"
    words = [[], *([name] for name in main_module.COMMANDS)]
    words += [name.split() for name, _ in main_module.every_command() if " " in name]
    parts = [f"## covey {' '.join(word)}".rstrip() + f"\n\n```text\n{help_text(word)}\n```" for word in sorted(words)]
    rows = [[str(code), EXIT_CODES[code]] for code in sorted(EXIT_CODES)]
    return page("Commands", about, [*parts, "## Exit codes", table(["code", "means"], rows)])


EXIT_CODES = {
    0: "done; also if whoever reads the output goes away",
    1: "`log verify` found something wrong, or not everything that `run` worked on has landed",
    errors.Invalid.exit_code: "what was asked makes no sense: a wrong word, option, value or setting",
    NOTHING_WAITS_EXIT: "`task next`: nothing waits; `merge queue BRANCH --wait`: it waits for a person",
    errors.NotFound.exit_code: "there is no such task, lease, message, merge or session",
    errors.Refused.exit_code: "the rules say no at this moment: another holds it, the fence is old, it exists already",
    errors.Denied.exit_code: "not with this token: it is for the owner or for another session",
    errors.Proposed.exit_code: "it is more than a session may do, and was proposed: a person decides",
    errors.Unavailable.exit_code: "it cannot be done at the moment: no daemon answers, another writes, no output",
    errors.ToolFailed.exit_code: "a program that covey called failed: git, openssl",
    main_module.BUG: "a bug in covey",
    main_module.INTERRUPTED: "interrupted",
}


def help_text(words: list[str]) -> str:
    """Return what a command prints when it is asked for help."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main_module.main([*words, "--help"])
    return printed.getvalue().rstrip()


# docs/reference/rights.md


def table_of_rights() -> str:
    """Return who may ask which verb, and who sees what of the log."""
    about = (
        "What comes of a request, by who asks: the owner may do everything, and without a token nobody anything. A "
        "session is asked for by its token. *its own*: itself, the task that it holds, what it put on the board and "
        "nobody else has taken, its leases, mail, questions, runs and proposals, and leases on what its task may write "
        "or on at most `leases.max_files` files. *in part*: it is answered with what it may see. *propose*: it is "
        "written down, answered with 202, and done only when a person accepts it. *reviewer*: a session of the role "
        "`merge.review_role`, about the work of others. A role of operators, who accept proposals, may come later."
    )
    heads = ["verb", "owner", "session: its own", "session: another's", "reviewer", "no token"]
    lines = [
        [f"`{verb.name}`", "yes", verb.may.own, verb.may.other, verb.may.of(Asker.REVIEWER), "no"]
        for verb in sorted(VERBS.values(), key=lambda verb: verb.name)
    ]
    seen = [[f"`{kind}`", audience] for kind, audience in AUDIENCES.items()]
    more = (
        "Of each event a session sees that it happened, when, who did it and to what. What it says (`data`) is shown "
        "to the owner and to whoever did it, and besides to those named here."
    )
    return page(
        "Rights", about, [table(heads, lines), "## Who sees what an event says", more, table(["kind", "who"], seen)]
    )


# The map in docs/architecture.md

SOURCE = ROOT / "src" / "covey"
MAP_BEGINS = "<!-- The map: made by scripts/reference.py; `make docs` writes it again. -->"
MAP_ENDS = "<!-- The map ends. -->"
FLOORS = ("core", "store", "git", "app", "loops", "cli")
"""The floors that have rooms."""
ROOMS = ("board", "fleet", "leases", "merging", "people", "costs", "history", "overlap")
OTHER_FOLDERS = {
    "git/worktrees": "fleet",
    "git/rescue": "fleet",
    "git/candidates": "merging",
    "git/landing": "merging",
    "git/guard": "leases",
    "loops/merge_queue": "merging",
    "loops/gates": "merging",
}
"""Folders whose name is not that of the room that they belong to."""
SINGLE_MODULES = {
    "core/overlaps": "overlap",
    "store/queries/log": "history",
    "store/queries/merges": "merging",
    "store/queries/overlaps": "overlap",
    "store/queries/runs": "fleet",
    "app/shapes/costs": "costs",
    "app/shapes/fleet": "fleet",
    "app/shapes/leases": "leases",
    "loops/cleanup": "history",
    "loops/expiry": "leases",
    "loops/live": "fleet",
    "loops/mail_loop": "people",
    "loops/radar": "overlap",
    "cli/project/cost": "costs",
    "cli/project/overlap": "overlap",
}
"""Modules that are the only ones of their room on a floor, and so need no folder."""


def architecture() -> str:
    """Return docs/architecture.md with the map as the source is now."""
    before, _, rest = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition(MAP_BEGINS)
    _, _, after = rest.partition(MAP_ENDS)
    return f"{before}{MAP_BEGINS}\n{source_map()}\n{MAP_ENDS}{after}"


def source_map() -> str:
    """Return the table of floors by rooms, which names every module, and the floors that have no rooms."""
    folders: dict[tuple[str, str], list[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE)
        if path.name != "__init__.py":
            folders.setdefault(_place(path), []).append(_called(path))
    rooms = [["**the floor itself**", *(_cell(folders, floor, "") for floor in FLOORS)]]
    rooms += [[f"**{room}**", *(_cell(folders, floor, room) for floor in FLOORS)] for room in ROOMS]
    others = sorted({floor for floor, _ in folders} - set(FLOORS))
    rest = [[f"`{floor}/`" if floor else "beside the floors", _cell(folders, floor, "")] for floor in others]
    heads = ["room", *(f"`{floor}/`" for floor in FLOORS)]
    return f"{table(heads, rooms)}\n\n{table(['floors without rooms', 'modules'], rest)}"


def _place(path: Path) -> tuple[str, str]:
    """Return the floor of a module and its room, which is empty for what belongs to the whole floor."""
    floor = path.parts[0] if len(path.parts) > 1 else ""
    if floor not in FLOORS:
        return floor, ""
    single = SINGLE_MODULES.get(path.with_suffix("").as_posix())
    if single:
        return floor, single
    named = [OTHER_FOLDERS.get(f"{floor}/{part}", part) for part in path.with_suffix("").parts[1:]]
    folders = named if path.parts[1] == "queries" else named[:-1]  # all of `queries` is by room, one module each
    return floor, next((part for part in folders if part in ROOMS), "")


def _called(path: Path) -> str:
    """Return how the map names a module: with its folders, but for the one that is its room."""
    below = path.with_suffix("").parts[1 if len(path.parts) > 1 else 0 :]
    return "/".join([part for part in below[:-1] if part not in ROOMS] + [below[-1]])


def _cell(folders: dict[tuple[str, str], list[str]], floor: str, room: str) -> str:
    return ", ".join(f"`{name}`" for name in folders.get((floor, room), []))


# src/covey/cli/frame/routes.py


def routes() -> str:
    """Return the table of verbs by which the command line asks a daemon without importing any of them."""
    lines = [f'    "{name}": "{" ".join(_route(verb))}",' for name, verb in sorted(VERBS.items())]
    return "\n".join([ROUTES_HEAD, *lines, "}\n"])


def _route(verb: Verb) -> Iterator[str]:
    """Yield how a verb is asked: method, path, and in a word what a session may not do there."""
    yield verb.method
    yield verb.path
    if verb.may == OWNER_ONLY:
        yield "owner"
    elif issubclass(verb.asked, As):
        yield "as"


ROUTES_HEAD = '''\
"""Where each verb is asked over REST, so that a command with a daemon need not import the verbs.

Made by scripts/reference.py from the verbs; `make docs` writes it again. "owner": no session may ask it.
"as": it says for whom it is asked, and a session asks for itself alone.
"""

from __future__ import annotations

ROUTES = {'''


PAGES: dict[str, Callable[[], str]] = {
    "docs/architecture.md": architecture,
    "src/covey/cli/frame/routes.py": routes,
    "docs/reference/events.md": events,
    "docs/reference/config.md": settings,
    "docs/reference/rest.md": rest,
    "docs/reference/rights.md": table_of_rights,
    "docs/reference/cli.md": commands,
}


def main(words: list[str]) -> int:
    """Write every page, or with --check only say which is out of date."""
    stale: list[str] = []
    for path, make in PAGES.items():
        file, text = ROOT / path, make()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(path)
            if "--check" not in words:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path} is out of date; make docs writes it again." if "--check" in words else f"{path} was written.")
    return 1 if stale and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
