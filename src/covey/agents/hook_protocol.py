"""The hooks of Claude Code and Codex, which speak one language: what they ask, what they understand, what they show.

Codex has the same names and the same JSON as Claude Code. Both keep their conversation in a file of JSON lines, in
which stands what a hook told the model.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from covey.agents.agent import HookDoor
from covey.agents.claude.messages import SYNTHETIC, about, blocks, tool_of, wish
from covey.agents.claude.questions import QUESTION
from covey.agents.streams import brief, inner, record, shown, text
from covey.core.leases.hooks import Hook, HookReply, Moment
from covey.core.people.questions import NOBODY_ANSWERED
from covey.errors import Invalid

QUICK_TIMEOUT_S = 1
"""Seconds after which an agent goes on without an answer."""
HELD_TIMEOUT_S = 3600
"""Seconds for which a person may think about a question."""
ANSWER_GRACE_S = 1
"""Seconds that the relay has over what it waits itself, to say that it waited in vain."""

END_TIMEOUT_S = 3
"""Seconds that Codex waits at most for the hooks at its end; one that names more it does not know again."""

FAILED = "PostToolUseFailure"
"""What Claude Code calls the moment after a tool that failed; Codex has one moment for both."""
FAILURE = "failed"
"""The note of a hook after a tool that failed."""
EDITS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
PATCH = "apply_patch"
NOT_TO_ALLOW = (QUESTION, "ExitPlanMode")
"""Tools that are a question themselves: their dialog wants more of a person than a yes."""

MAX_PATH_BYTES, MAX_NAME_BYTES = 4096, 255
"""Bytes of a path, and of a name in it, beyond which no disk of ours has a file."""
_NOTES = ("source", "trigger", "reason", "notification_type")
_MESSAGES = ("message", "last_assistant_message", "error", "custom_instructions")
_CHANGED = re.compile(r"\*\*\* (Add File|Update File|Delete File|Move to): (.+)", re.DOTALL)
_PATCHES = re.compile(r"\bapply_?patch\b")
_MAX_FOLDER_CHARS = 4096
"""Characters that the folder of a `cd` may have."""
_OWN = "covey/hooks/relay.py"
_STATE = "--state"
_MADE = "--made"
_FILE = "file"


# What an agent asks


def read(moment: Moment, body: object) -> Hook:
    """Return what an agent asks at a moment, from JSON that is trusted in nothing."""
    if not isinstance(body, dict):
        raise Invalid("A hook is a JSON object.", hint="Send what the agent program gives to its hooks, as it is.")
    tool, given = text(body, "tool_name"), body.get("tool_input")
    named = tool_of(tool) if tool else ""
    command = _command(tool, given)
    use = about(given) if isinstance(given, dict) else ""
    asks = moment is Moment.PERMISSION and tool not in NOT_TO_ALLOW
    reasons = [brief(text(given, "description"))] if asks and isinstance(given, dict) else []
    return Hook(
        moment=moment,
        conversation=text(body, "session_id"),
        transcript=_file(body.get("transcript_path")),
        cwd=_file(body.get("cwd")),
        tool=named,
        call=text(body, "tool_use_id"),
        writes=_writes(tool, given, command),
        command=command,
        prompt=text(body, "prompt"),
        asks=wish(named or "a tool", use, reasons) if asks else "",
        about=use,
        note=FAILURE if body.get("hook_event_name") == FAILED else _first(body, _NOTES),
        message=brief(_first(body, _MESSAGES)),
        again=body.get("stop_hook_active") is True,
        sub=text(body, "agent_id"),
    )


def _first(body: Mapping[str, Any], keys: Iterable[str]) -> str:
    return next((found for key in keys if (found := text(body, key))), "")


def _path(value: object) -> str:
    """Return a path exactly as it was given, "" if no file can be called so."""
    if not isinstance(value, str) or "\0" in value:
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:
        return ""
    return value


def _file(value: object) -> str:
    """Return a path as it was given, "" if no disk can have it: one that is too long would fail at every look."""
    path = _path(value)
    too_long = len(path.encode()) > MAX_PATH_BYTES or any(
        len(part.encode()) > MAX_NAME_BYTES for part in path.split("/")
    )
    return "" if too_long else path


def _command(tool: str, given: object) -> str:
    """Return the command that a tool runs, "" if it runs none; it may be given as words."""
    if tool in EDITS or tool == PATCH or not isinstance(given, dict):
        return ""
    value = given.get("command", given.get("cmd"))
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = value[-1] if len(value) == 3 and value[1] in ("-c", "-lc") else shlex.join(value)
    return _path(value)


def _writes(tool: str, given: object, command: str) -> tuple[str, ...]:
    if tool == PATCH:
        patch = given if isinstance(given, str) else _text_of_patch(given)
        return patched(patch)
    if tool in EDITS and isinstance(given, dict):
        path = _file(given.get(EDITS[tool]))
        return (path,) if path else ()
    if "*** Begin Patch" not in command or not _PATCHES.search(command):
        return ()
    folder = _into(command)  # its paths are seen from there
    return tuple(posixpath.join(folder, path) for path in patched(command))


def _text_of_patch(given: object) -> str:
    if not isinstance(given, dict):
        return ""
    found = [value for key in ("command", "input", "patch") if isinstance(value := given.get(key), str)]
    return "\n".join(found)


def patched(patch: str) -> tuple[str, ...]:
    """Return the paths that a patch adds, changes, deletes or moves to, as they are given, each once."""
    found: dict[str, None] = {}
    within = False
    for line in _starred(patch):
        # Only what follows a change of a file may have lines that begin with a blank and are not covey's to read.
        header = _CHANGED.fullmatch(line.rstrip() if within else line.strip())
        if header is None:
            continue
        within = header[1] in ("Update File", "Move to")
        if path := _file(header[2].strip()):
            found[path] = None
    return tuple(found)


def _starred(patch: str) -> Iterator[str]:
    """Yield the lines of a patch that can be headers, at the cost of one look at the rest however long it is."""
    begin = 0
    while (star := patch.find("*** ", begin)) >= 0:
        begin = patch.rfind("\n", begin, star) + 1 or begin
        end = patch.find("\n", star)
        end = len(patch) if end < 0 else end
        yield patch[begin:end]
        begin = end


def _into(command: str) -> str:
    """Return the folder that a command begins to go to, "" if it goes nowhere."""
    first, goes_on, _ = command.partition("&&")
    first = first.strip()
    given = first[2:].strip()
    if (
        not goes_on
        or first[:2] != "cd"
        or not first[2:3].isspace()
        or len(given) > _MAX_FOLDER_CHARS
        or set(given) & set("\n;|")
    ):
        return ""
    try:
        words = shlex.split(given)
    except ValueError:
        return ""
    return words[0] if len(words) == 1 else ""


# What it is told


def written(hook: Hook, reply: HookReply) -> dict[str, Any]:
    """Return a reply as both programs understand it at that moment; empty if there is nothing to say."""
    tell, deny, go_on = (shown(words or "") for words in (reply.tell, reply.deny, reply.go_on))
    match hook.moment:
        case Moment.BEFORE_TOOL if deny:
            reason = "\n\n".join(words for words in (deny, tell) if words)
            return _special(hook, permissionDecision="deny", permissionDecisionReason=reason)
        case Moment.BEFORE_TOOL if reply.allow is True:
            return _special(hook, permissionDecision="allow", permissionDecisionReason=shown(reply.why or ""))
        case Moment.SESSION_START | Moment.USER_PROMPT | Moment.BEFORE_TOOL | Moment.AFTER_TOOL if tell:
            return _special(hook, additionalContext=tell)
        case Moment.STOP | Moment.SUBAGENT_STOP if go_on or tell:
            return {"decision": "block", "reason": "\n\n".join(words for words in (go_on, tell) if words)}
        case Moment.PERMISSION if reply.allow is True:
            return _special(hook, decision={"behavior": "allow"})
        case Moment.PERMISSION if reply.allow is False:
            return _special(hook, decision={"behavior": "deny", "message": shown(reply.why or "") or NOBODY_ANSWERED})
        case _:
            return {}


def _special(hook: Hook, **said: object) -> dict[str, Any]:
    """Return what is said with the name of the moment: another than the one that was asked for is not heard."""
    failed = hook.moment is Moment.AFTER_TOOL and hook.note == FAILURE
    return {"hookSpecificOutput": {"hookEventName": FAILED if failed else str(hook.moment), **said}}


# What its transcript shows


def shows(line: str) -> str:
    """Return what a line of a transcript gave to the model from a hook or a person, "" if it is anything else.

    What the model said itself, what its tools printed, what waits to be said and what its sub-agents know is not it.
    """
    told = record(line)
    if told is None or told.get("isSidechain") is True or told.get("isCompactSummary") is True:
        return ""
    match told.get("type"):
        case "attachment":
            return _attached(inner(told, "attachment"))
        case "user":
            return _plain(_words(inner(told, "message").get("content"), "text"))
        case "response_item":
            message = inner(told, "payload")
            is_ours = message.get("type") == "message" and message.get("role") in ("user", "developer")
            return _plain(_words(message.get("content"), "input_text")) if is_ours else ""
    return ""


def answers(line: str) -> bool:
    """Say whether a line of a transcript is the model's: what stands before it has reached the model."""
    told = record(line)
    if told is None or told.get("isSidechain") is True:
        return False
    match told.get("type"):
        case "assistant":
            model = inner(told, "message").get("model")
            return told.get("isApiErrorMessage") is not True and model != SYNTHETIC and bool(blocks(told))
        case "response_item":
            item = inner(told, "payload")
            return item.get("role") == "assistant" or item.get("type") in _OF_MODEL
    return False


_OF_MODEL = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")
_MACHINE = (
    *("<task-notification", "<bash-", "<local-command-", "<command-"),
    *("<user_shell_command", "<subagent_notification"),
)
"""How texts begin that stand in a user's place, but were printed by programs."""


def _attached(attachment: Mapping[str, Any]) -> str:
    match attachment.get("type"):
        case "hook_additional_context":
            return _words(attachment.get("content"), "text")
        case "queued_command":
            return _plain(_words(attachment.get("prompt"), "text"))
    return ""


def _words(content: object, kind: str) -> str:
    """Return the texts of a message, which are plain or in blocks of a kind."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    found = [part.get("text") if isinstance(part, dict) and part.get("type") == kind else part for part in parts]
    return "\n".join(part for part in found if isinstance(part, str))


def _plain(words: str) -> str:
    return "" if words.lstrip().startswith(_MACHINE) else words


# How it is told to ask


def events(*, held: bool) -> dict[str, Moment]:
    """Return the names of all moments at which Claude Code asks, and what each is to us."""
    found = {str(moment): moment for moment in Moment if held or moment is not Moment.PERMISSION}
    return found | {FAILED: Moment.AFTER_TOOL}


def seconds(moment: Moment) -> int:
    """Return how long the relay may take at a moment, as the program that starts it is told."""
    patience = (HELD_TIMEOUT_S if moment is Moment.PERMISSION else QUICK_TIMEOUT_S) + ANSWER_GRACE_S
    return min(patience, END_TIMEOUT_S) if moment is Moment.SESSION_END else patience


def settings(door: HookDoor, *, held: bool) -> dict[str, Any]:
    """Return settings by which Claude Code asks at every moment; at the first one it knows no addresses."""
    asked = {event: _by_http(door, moment) for event, moment in events(held=held and door.holds).items()}
    started = Moment.SESSION_START
    asked[started] = _by_relay(shlex.join([*door.relay, started]), started)
    return {"hooks": {event: [{"hooks": [handler]}] for event, handler in asked.items()}}


def _by_http(door: HookDoor, moment: Moment) -> dict[str, Any]:
    """Return a handler that posts; the token stays in the environment, out of sight of who lists processes."""
    return {
        "type": "http",
        "url": f"{door.url.rstrip('/')}/hooks/{moment}",
        "headers": {"Authorization": "Bearer $COVEY_TOKEN"},
        "allowedEnvVars": ["COVEY_TOKEN"],
        "timeout": HELD_TIMEOUT_S if moment is Moment.PERMISSION else QUICK_TIMEOUT_S,
    }


def _by_relay(command: str, moment: Moment) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": seconds(moment)}


# How people's own settings ask


def installed(
    existing: Mapping[str, Any] | None, relay: Sequence[str], state: str, *, shared: bool = False
) -> dict[str, Any]:
    """Return settings with our hooks beside all that was there; ours that were there before are replaced.

    `existing`: None if there is no file. `shared`: hooks of covey for other projects may stand there, and stay. What
    had to be made for any of them stands in their words, so that the removal of the last leaves what was there.
    """
    kept = {} if existing is None else _without(existing, state if shared else None)[0]
    bare, made_before = ({}, {_FILE}) if existing is None else _without(existing, None)
    hooks = dict(_hooks(kept))
    made = ([_FILE] if _FILE in made_before else []) + ([] if "hooks" in bare else ["hooks"])
    for event, moment in events(held=False).items():  # a person's own agent asks that person, in its own window
        words = [*relay, str(moment), _STATE, state]
        for what in [*made, *([] if event in _hooks(bare) else ["list"])]:
            words += [_MADE, what]
        hooks[event] = [*_groups(hooks, event), {"hooks": [_by_relay(shlex.join(words), moment)]}]
    return {**kept, "hooks": hooks}


def uninstalled(existing: Mapping[str, Any], state: str | None = None) -> dict[str, Any] | None:
    """Return settings without our hooks, as they were before; None if then there was no file.

    `state`: only the hooks for the project that keeps its files there.
    """
    kept, made = _without(existing, state)
    return None if not kept and _FILE in made else kept


def _without(existing: Mapping[str, Any], state: str | None) -> tuple[dict[str, Any], set[str]]:
    """Return settings without our hooks, and what was made for these."""
    if "hooks" not in existing:
        return dict(existing), set()
    hooks: dict[str, Any] = {}
    made: set[str] = set()
    for event in _hooks(existing):
        groups, ours = _without_ours(_groups(_hooks(existing), event), state)
        if groups or "list" not in ours:
            hooks[event] = groups
        made |= ours
    if not hooks and "hooks" in made:
        return {key: value for key, value in existing.items() if key != "hooks"}, made
    return {**existing, "hooks": hooks}, made


def _hooks(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise Invalid("The hooks in these settings are not a table.", hint="Mend the file, or take its hooks out.")
    return hooks


def _groups(hooks: Mapping[str, Any], event: str) -> list[Any]:
    groups = hooks.get(event, [])
    if not isinstance(groups, list):
        raise Invalid(
            f"The hooks for {event[:80]} in these settings are not a list.",
            hint="Mend the file, or take its hooks out.",
        )
    return groups


def _without_ours(groups: list[Any], state: str | None) -> tuple[list[Any], set[str]]:
    """Return groups without our handlers, and what was made for these."""
    kept: list[Any] = []
    made: set[str] = set()
    for group in groups:
        handlers = group.get("hooks") if isinstance(group, dict) else None
        ours = [words for handler in handlers if (words := _ours(handler, state))] if isinstance(handlers, list) else []
        if not ours or handlers is None:
            kept.append(group)
            continue
        made |= {after for words in ours for word, after in pairwise(words) if word == _MADE}
        others = [handler for handler in handlers if not _ours(handler, state)]
        if others:
            kept.append({**group, "hooks": others})
    return kept, made


def _ours(handler: object, state: str | None) -> list[str]:
    """Return the words of a handler that covey has put there, for one project or any; none if it has not."""
    command = handler.get("command") if isinstance(handler, dict) else None
    if not isinstance(command, str) or _OWN not in command or _STATE not in command:
        return []
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    whose = [after for word, after in pairwise(words) if word == _STATE]
    is_ours = bool(whose) and any(word.endswith(_OWN) for word in words)
    return words if is_ours and (state is None or whose[0] == state) else []
