"""What hooks ask and are told, what transcripts show, and how people's settings get our hooks and lose them again."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.agents import hook_protocol
from covey.agents.agent import HookDoor
from covey.core.leases.hooks import NOTHING, Hook, HookReply, Moment
from covey.core.people.permits import SHELL
from covey.errors import Invalid

DOOR = HookDoor(url="http://127.0.0.1:4711", relay=("/usr/bin/python3", "-I", "-S", "/opt/my app/covey/hooks/relay.py"))

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
)
known_keys = st.sampled_from(
    [
        *("session_id", "transcript_path", "cwd", "tool_name", "tool_input", "tool_use_id", "prompt", "message"),
        *("reason", "source", "trigger", "error", "agent_id", "hook_event_name", "stop_hook_active"),
        *("notification_type", "last_assistant_message", "custom_instructions"),
    ]
)
given_keys = st.sampled_from(["file_path", "notebook_path", "command", "cmd", "input", "patch", "description"])
inputs = values | st.dictionaries(given_keys, values, max_size=5)
tools = st.sampled_from(["Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch", "Bash", "Agent", ""])
bodies = st.dictionaries(known_keys | st.text(max_size=8), values, max_size=10) | st.fixed_dictionaries(
    {"tool_name": tools | values, "tool_input": inputs}, optional={"hook_event_name": values, "session_id": values}
)
words = st.none() | st.text(max_size=30)
replies = st.builds(HookReply, deny=words, tell=words, go_on=words, allow=st.none() | st.booleans(), why=words)


def body(**more: Any) -> dict[str, Any]:
    return {"session_id": "c-1", "transcript_path": "/t/c-1.jsonl", "cwd": "/srv", **more}


def tool(name: str, given: Any, moment: Moment = Moment.BEFORE_TOOL, **more: Any) -> Hook:
    return hook_protocol.read(moment, body(tool_name=name, tool_input=given, tool_use_id="toolu_1", **more))


# What is asked


def test_a_hook_says_who_asks_where_and_for_what() -> None:
    hook = tool("Write", {"file_path": "/srv/a b.txt", "content": "x"}, agent_id="a1")
    assert (hook.conversation, hook.transcript, hook.cwd) == ("c-1", "/t/c-1.jsonl", "/srv")
    assert (hook.tool, hook.call, hook.writes, hook.sub) == ("Write", "toolu_1", ("/srv/a b.txt",), "a1")
    assert hook.command == "" and not hook.again


@pytest.mark.parametrize(
    ("name", "given", "writes"),
    [
        ("Write", {"file_path": " odd \n"}, (" odd \n",)),
        ("Edit", {"file_path": "a"}, ("a",)),
        ("MultiEdit", {"file_path": "a", "edits": []}, ("a",)),
        ("NotebookEdit", {"notebook_path": "a.ipynb"}, ("a.ipynb",)),
        ("Write", {"file_path": "a\0b"}, ()),
        ("Write", {"file_path": 7}, ()),
        ("Write", "a", ()),
        ("Read", {"file_path": "a"}, ()),
        ("apply_patch", {"command": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"}, ("a",)),
        ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"}, ("a",)),
        ("apply_patch", "*** Begin Patch\n*** Update File: a\n*** Move to: b\n", ("a", "b")),
        ("Bash", {"command": "apply_patch <<'E'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nE\n"}, ("a",)),
        ("Bash", {"command": "cd 'x y' && apply_patch <<E\n*** Begin Patch\n*** Add File: a\n"}, ("x y/a",)),
        ("Bash", {"command": "cd x && apply_patch <<E\n*** Begin Patch\n*** Add File: /a\n"}, ("/a",)),
        ("Bash", {"command": " cd\tx  &&apply_patch <<E\n*** Begin Patch\n*** Add File: a\n"}, ("x/a",)),
        ("Bash", {"command": "cd x y && apply_patch <<E\n*** Begin Patch\n*** Add File: a\n"}, ("a",)),
        ("Bash", {"command": "cd 'x && apply_patch <<E\n*** Begin Patch\n*** Add File: a\n"}, ("a",)),
        ("Bash", {"command": "cd x; cd y && apply_patch <<E\n*** Begin Patch\n*** Add File: a\n"}, ("a",)),
        ("Bash", {"command": "cdx && apply_patch <<E\n*** Begin Patch\n*** Add File: a\n"}, ("a",)),
        # What would take a reader for ever that goes back and forth over it.
        ("Bash", {"command": "cd" + " " * 99_999 + "\napply_patch <<E\n*** Begin Patch\n*** Add File: a\n"}, ("a",)),
        ("Bash", {"command": "cd " + "x " * 99_999 + "&& apply_patch <<E\n*** Begin Patch\n*** Add File: a\n"}, ("a",)),
        ("apply_patch", "\n" * 99_999 + "*** Add File: a\n+*** Add File: b *** c\n   *** Add File: d", ("a", "d")),
        ("Bash", {"command": ["bash", "-lc", "applypatch <<E\n*** Begin Patch\n*** Add File: a\n"]}, ("a",)),
        ("Bash", {"command": "cat <<E\n*** Begin Patch\n*** Add File: a\n"}, ()),
        ("Bash", {"command": "echo x > a"}, ()),
    ],
)
def test_the_paths_of_an_edit_are_those_that_the_tool_is_given(name: str, given: Any, writes: tuple[str, ...]) -> None:
    assert tool(name, given).writes == writes


def test_a_patch_names_every_file_once_and_nothing_that_is_only_its_text() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: src/b.py\n@@ def f\n context\n"
        " *** Add File: context\n-*** Add File: removed\n+*** Add File: added\n*** Add File: new\n"
        "+*** Delete File: text\n  *** Delete File: old  \n*** Add File: new\n+x\n*** End of File\n*** End Patch\n"
    )
    assert hook_protocol.patched(patch) == ("src/a.py", "src/b.py", "new", "old")


def test_a_command_is_known_and_its_tool_has_our_name() -> None:
    assert (tool("Bash", {"command": "make test"}).tool, tool("Bash", {"command": "make test"}).command) == (
        SHELL,
        "make test",
    )
    assert tool("exec_command", {"cmd": "ls"}).command == "ls"
    assert tool("shell", {"command": ["git", "commit", "-m", "a b"]}).command == "git commit -m 'a b'"
    assert tool("Write", {"file_path": "a", "command": "x"}).command == ""


def test_a_question_for_permission_is_a_sentence_for_a_person() -> None:
    asked = tool("Bash", {"command": "npm i", "description": "Install"}, Moment.PERMISSION)
    assert (asked.asks, asked.about, asked.tool) == ("It wants to run: npm i\nInstall", "npm i", SHELL)
    assert tool("Write", {"file_path": "a"}, Moment.PERMISSION).asks == "It wants to use Write: a"
    assert tool("Bash", {"command": "npm i"}).asks == ""


@pytest.mark.parametrize("name", hook_protocol.NOT_TO_ALLOW)
def test_what_wants_more_than_a_yes_is_left_to_its_dialog(name: str) -> None:
    assert tool(name, {"questions": []}, Moment.PERMISSION).asks == ""


def test_a_tool_that_failed_is_answered_by_the_name_of_that_moment() -> None:
    failed = tool("Bash", {"command": "false"}, Moment.AFTER_TOOL, hook_event_name="PostToolUseFailure", error="Exit 1")
    assert (failed.note, failed.message) == (hook_protocol.FAILURE, "Exit 1")
    said = hook_protocol.written(failed, HookReply(tell="hi"))
    assert said == {"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": "hi"}}


@pytest.mark.parametrize(
    ("moment", "more", "note", "message"),
    [
        (Moment.SESSION_START, {"source": "resume"}, "resume", ""),
        (Moment.BEFORE_COMPACT, {"trigger": "auto", "custom_instructions": None}, "auto", ""),
        (Moment.SESSION_END, {"reason": "other"}, "other", ""),
        (Moment.NOTIFICATION, {"notification_type": "idle_prompt", "message": "waits"}, "idle_prompt", "waits"),
        (Moment.STOP, {"stop_hook_active": True, "last_assistant_message": "Done."}, "", "Done."),
    ],
)
def test_what_else_a_hook_says_is_kept(moment: Moment, more: dict[str, Any], note: str, message: str) -> None:
    hook = hook_protocol.read(moment, body(**more))
    assert (hook.note, hook.message, hook.again) == (note, message, "stop_hook_active" in more)


@given(moment=st.sampled_from(Moment), found=bodies, reply=replies)
def test_whatever_an_agent_sends_is_read_and_answered(moment: Moment, found: dict[str, Any], reply: HookReply) -> None:
    hook = hook_protocol.read(moment, found)
    json.dumps(hook_protocol.written(hook, reply)).encode()
    assert hook_protocol.written(hook, NOTHING) == {}
    for path in (*hook.writes, hook.command, hook.cwd, hook.transcript):
        assert "\0" not in path and path.encode()[:0] == b""


@given(found=values.filter(lambda value: not isinstance(value, dict)))
def test_what_is_no_object_is_refused(found: Any) -> None:
    with pytest.raises(Invalid):
        hook_protocol.read(Moment.STOP, found)


@given(st.text())
def test_any_text_is_a_patch_of_some_paths(patch: str) -> None:
    assert all(path.strip() and path in patch for path in hook_protocol.patched(patch))


# What is told


def told(moment: Moment, **said: Any) -> dict[str, Any]:
    return hook_protocol.written(Hook(moment=moment), HookReply(**said))


def test_each_moment_is_answered_in_its_own_words() -> None:
    denied = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no\n\nhi"}
    assert told(Moment.BEFORE_TOOL, deny="no", tell="hi") == {"hookSpecificOutput": denied}
    for moment in (Moment.SESSION_START, Moment.USER_PROMPT, Moment.BEFORE_TOOL, Moment.AFTER_TOOL):
        assert told(moment, tell="hi") == {
            "hookSpecificOutput": {"hookEventName": str(moment), "additionalContext": "hi"}
        }
    assert told(Moment.STOP, go_on="do this") == {"decision": "block", "reason": "do this"}
    assert told(Moment.STOP, tell="mail") == {"decision": "block", "reason": "mail"}
    allowed = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    assert told(Moment.PERMISSION, allow=True) == {"hookSpecificOutput": allowed}
    refused = told(Moment.PERMISSION, allow=False, why="not now")["hookSpecificOutput"]["decision"]
    assert refused == {"behavior": "deny", "message": "not now"}
    assert told(Moment.PERMISSION, allow=False)["hookSpecificOutput"]["decision"]["message"]


def test_what_a_moment_has_no_words_for_is_not_said() -> None:
    for moment in (Moment.NOTIFICATION, Moment.BEFORE_COMPACT, Moment.SESSION_END):
        assert told(moment, deny="a", tell="b", go_on="c", allow=True) == {}
    assert told(Moment.AFTER_TOOL, deny="too late") == {} and told(Moment.STOP, deny="what?") == {}


# What a transcript shows; the lines are as Claude Code 2.1.325 and Codex 0.166.0 write them, without what is not read

MARK = "[mail-12]"


def line(**told: Any) -> str:
    return json.dumps(told)


def attachment(**attached: Any) -> str:
    return line(type="attachment", isSidechain=False, attachment=attached)


def item(**payload: Any) -> str:
    return line(type="response_item", payload=payload)


SHOWN = {
    "a hook of Claude Code": attachment(type="hook_additional_context", content=[MARK], hookEvent="PostToolUse"),
    "said while it works": attachment(type="queued_command", prompt=MARK, commandMode="prompt"),
    "a prompt": line(type="user", message={"role": "user", "content": MARK}),
    "a prompt in blocks": line(type="user", message={"role": "user", "content": [{"type": "text", "text": MARK}]}),
    "going on": line(type="user", isMeta=True, message={"role": "user", "content": f"Stop hook feedback:\n{MARK}"}),
    "a hook of Codex": item(type="message", role="developer", content=[{"type": "input_text", "text": MARK}]),
    "a prompt of Codex": item(type="message", role="user", content=[{"type": "input_text", "text": MARK}]),
    "going on in Codex": item(
        type="message", role="user", content=[{"type": "input_text", "text": f"<hook_prompt>{MARK}</hook_prompt>"}]
    ),
}
NOT_SHOWN = {
    "the model's words": line(type="assistant", message={"content": [{"type": "text", "text": MARK}]}),
    "a command that the model runs": line(
        type="assistant", message={"content": [{"type": "tool_use", "input": {"command": f"echo {MARK}"}}]}
    ),
    "what a tool printed": line(type="user", message={"content": [{"type": "tool_result", "content": MARK}]}),
    "what a tool printed in blocks": line(
        type="user", message={"content": [{"type": "tool_result", "content": [{"type": "text", "text": MARK}]}]}
    ),
    "an answer of a hook that was not heard": attachment(type="hook_success", stdout=MARK, content=""),
    "what waits to be said": line(type="queue-operation", operation="enqueue", content=MARK),
    "its last prompt": line(type="last-prompt", lastPrompt=MARK),
    "a sub-agent's": line(type="user", isSidechain=True, message={"content": MARK}),
    "what a sub-agent reports": line(type="user", message={"content": f"<task-notification>{MARK}"}),
    "a command of a person": line(type="user", message={"content": f"<bash-stdout>{MARK}"}),
    "its own summary": line(type="user", isCompactSummary=True, message={"content": MARK}),
    "Codex' words": item(type="message", role="assistant", content=[{"type": "output_text", "text": MARK}]),
    "what a tool of Codex printed": item(type="function_call_output", output=MARK),
    "a call of Codex": item(type="custom_tool_call", input=MARK),
    "an event of Codex": line(type="event_msg", payload={"type": "item_completed", "item": {"text": MARK}}),
    "no JSON": MARK,
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_transcript_shows_what_hooks_and_people_told_the_model(name: str) -> None:
    assert MARK in hook_protocol.shows(SHOWN[name])


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_a_transcript_shows_nothing_that_only_the_model_or_its_tools_said(name: str) -> None:
    assert MARK not in hook_protocol.shows(NOT_SHOWN[name])


def test_the_models_own_lines_are_known() -> None:
    own = {"the model's words", "a command that the model runs", "Codex' words", "a call of Codex"}
    assert {name for name, said in {**SHOWN, **NOT_SHOWN}.items() if hook_protocol.answers(said)} == own
    synthetic = {"model": "<synthetic>", "content": [{"type": "text", "text": "x"}]}
    assert not hook_protocol.answers(line(type="assistant", message=synthetic))
    assert not hook_protocol.answers(
        line(type="assistant", isApiErrorMessage=True, message={"content": [{"type": "text"}]})
    )


@given(values | bodies, st.sampled_from(["attachment", "user", "response_item", "assistant"]))
def test_any_line_of_a_transcript_can_be_looked_at(found: Any, kind: str) -> None:
    inner = {"type": kind, "attachment": found, "message": found, "payload": found}
    for said in (json.dumps(found), json.dumps(inner), str(found)):
        assert isinstance(hook_protocol.shows(said), str) and isinstance(hook_protocol.answers(said), bool)


# Settings at launch


def test_every_moment_is_asked_for_and_the_token_is_not_in_sight() -> None:
    hooks = hook_protocol.settings(DOOR, held=True)["hooks"]
    assert set(hooks) == {*map(str, Moment), "PostToolUseFailure"}
    handlers = {event: groups[0]["hooks"][0] for event, groups in hooks.items()}
    assert handlers["SessionStart"]["command"] == shlex.join([*DOOR.relay, "SessionStart"])
    assert handlers["PostToolUseFailure"]["url"] == handlers["PostToolUse"]["url"]
    assert handlers["PreToolUse"] == {
        "type": "http",
        "url": "http://127.0.0.1:4711/hooks/PreToolUse",
        "headers": {"Authorization": "Bearer $COVEY_TOKEN"},
        "allowedEnvVars": ["COVEY_TOKEN"],
        "timeout": 1,
    }
    assert handlers["PermissionRequest"]["timeout"] == 3600


# People's own settings

commands = st.sampled_from(["prettier --write", "covey hooks", "/x/covey/hooks/relay.py", "python relay.py --state x"])
handlers = st.fixed_dictionaries({"type": st.just("command"), "command": commands | st.text(max_size=10)}) | values
groups = st.fixed_dictionaries({"hooks": st.lists(handlers, max_size=3)}, optional={"matcher": st.text(max_size=5)})
events = st.sampled_from([*map(str, Moment), "PostToolUseFailure", "ConfigChange"]) | st.text(max_size=6)
tables = st.dictionaries(events, st.lists(groups | values, max_size=3), max_size=5)
people = st.dictionaries(st.text(max_size=8).filter(lambda key: key != "hooks"), values, max_size=3).flatmap(
    lambda rest: st.just(rest) | tables.map(lambda hooks: {**rest, "hooks": hooks})
)


def same(value: Any) -> str:
    """Return data as a text that is equal only for equal data, in the same order."""
    return json.dumps(value)


@given(people)
def test_our_hooks_come_and_go_and_leave_what_was_there(settings: dict[str, Any]) -> None:
    before = same(settings)
    with_ours = hook_protocol.installed(settings, DOOR.relay, "/state of it")
    assert same(settings) == before
    assert same(hook_protocol.uninstalled(with_ours)) == before == same(hook_protocol.uninstalled(settings))
    assert same(hook_protocol.installed(with_ours, DOOR.relay, "/state of it")) == same(with_ours)
    moved = hook_protocol.installed(with_ours, ("/other/python", "/other/covey/hooks/relay.py"), "/else")
    assert same(hook_protocol.uninstalled(moved)) == before and "/state of it" not in same(moved)


@given(people)
def test_everybodys_own_hooks_stay_beside_ours(settings: dict[str, Any]) -> None:
    with_ours = hook_protocol.installed(settings, DOOR.relay, "/state")
    for event, known in settings.get("hooks", {}).items():
        assert same(with_ours["hooks"][event][: len(known)]) == same(known)
    assert not any(DOOR.relay[-1] in same(group) for group in with_ours["hooks"].get("PermissionRequest", []))
    for event, moment in hook_protocol.events(held=False).items():
        added = with_ours["hooks"][event][-1]["hooks"]
        assert shlex.split(added[0]["command"])[:7] == [*DOOR.relay, str(moment), "--state", "/state"]


@given(people, st.permutations(["/one", "/two", "/three"]))
def test_hooks_of_several_projects_stand_side_by_side_and_the_last_to_go_leaves_what_was_there(
    settings: dict[str, Any], order: list[str]
) -> None:
    here = settings
    for state in ("/one", "/two", "/three"):
        here = hook_protocol.installed(here, DOOR.relay, state, shared=True)
    for number, state in enumerate(order, 1):
        assert all(f"--state {each}" in same(here) for each in order[number - 1 :])
        here = hook_protocol.uninstalled(here, state) or {}
        assert f"--state {state}" not in same(here)
    assert same(here) == same(settings)


def test_a_file_that_was_made_for_our_hooks_goes_with_the_last_of_them_and_no_other_does() -> None:
    one = hook_protocol.installed(None, DOOR.relay, "/one", shared=True)
    both = hook_protocol.installed(one, DOOR.relay, "/two", shared=True)
    left = hook_protocol.uninstalled(both, "/one")
    assert left is not None and hook_protocol.uninstalled(left, "/two") is None
    assert hook_protocol.uninstalled(hook_protocol.installed(one, DOOR.relay, "/one")) is None
    assert hook_protocol.uninstalled(hook_protocol.installed({}, DOOR.relay, "/one")) == {}
    assert hook_protocol.uninstalled({**one, "model": "x"}) == {"model": "x"}


def test_what_a_person_added_to_our_group_stays() -> None:
    with_ours = hook_protocol.installed({}, DOOR.relay, "/state")
    own = {"type": "command", "command": "mine"}
    with_ours["hooks"]["Stop"][0]["hooks"].append(own)
    assert hook_protocol.uninstalled(with_ours) == {"hooks": {"Stop": [{"hooks": [own]}]}}


@pytest.mark.parametrize("hooks", [[], None, "x", {"Stop": {}}, {"Stop": "x"}])
def test_settings_in_a_form_that_nobody_knows_are_left_alone(hooks: Any) -> None:
    with pytest.raises(Invalid):
        hook_protocol.installed({"hooks": hooks}, DOOR.relay, "/state")
    with pytest.raises(Invalid):
        hook_protocol.uninstalled({"hooks": hooks})
