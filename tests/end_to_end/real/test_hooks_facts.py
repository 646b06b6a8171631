"""What real Claude Code and real Codex do with hooks that are given at launch: the facts on which covey relies."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from covey import proof
from covey.agents import hook_protocol
from covey.agents.agent import Agent, Assignment, HookDoor
from covey.agents.claude import claude
from covey.agents.codex import codex
from covey.agents.codex.launch import trust
from covey.core.fleet.launches import Launch
from covey.core.leases.hooks import NOTHING, Hook, HookReply, Moment
from covey.core.people.permits import PermissionLevel
from covey.hooks import relay
from tests.model.environment import World, scripted_world
from tests.model.headless import make_repository
from tests.model.script import SIDE, Script, Shell, Step, Tool, Usage, Write
from tests.model.server import Request
from tests.worlds.proving import credential, proved
from tests.worlds.serving import wait_until

AGENTS: dict[str, Agent] = {"claude": claude.agent, "codex": codex.agent}
RELAY = (sys.executable, "-I", "-S", relay.__file__)
TOKEN = "the run's own"
PATIENCE = 120.0
Answer = Callable[[Hook], HookReply]


@dataclass
class Ear:
    """Stands where the daemon would, and answers hooks as the test says."""

    answer: Answer
    heard: list[Hook] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    port: int = 0

    @property
    def door(self) -> HookDoor:
        return HookDoor(url=f"http://127.0.0.1:{self.port}", relay=RELAY)

    def of(self, moment: Moment) -> list[Hook]:
        return [hook for hook in self.heard if hook.moment is moment]

    @property
    def moments(self) -> list[str]:
        return [str(hook.moment) for hook in self.heard]

    def transcript(self) -> list[str]:
        """Return the lines of the conversation's file, which the first hook that has one names."""
        path = next(hook.transcript for hook in self.heard if hook.transcript)
        return Path(path).read_text().splitlines()


@contextmanager
def ear(answer: Answer = lambda hook: NOTHING) -> Iterator[Ear]:
    """Yield one that answers hooks until the end."""
    made = Ear(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self.wfile.write(proved(self.requestline.encode(), f"127.0.0.1:{made.port}"))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            hook = hook_protocol.read(Moment(self.path.removeprefix("/hooks/")), body)
            made.heard.append(hook)
            made.tokens.add(self.headers["authorization"])
            said = json.dumps(hook_protocol.written(hook, made.answer(hook))).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of agents that hang up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield made
        finally:
            server.shutdown()


@dataclass(frozen=True)
class Shed:
    """A repository in a scripted world, and a piece of work in it."""

    world: World
    root: Path
    relay: tuple[str, ...]
    """A relay that waits longer than ours: no fact is to depend on how busy the machine is."""

    def work(self, door: HookDoor, script: str, **more: Any) -> Assignment:
        """Return a piece of work whose prompt names a script."""
        told = {"COVEY_URL": door.url, "COVEY_TOKEN": TOKEN, "COVEY_MISSED": str(self.missed)}
        told["COVEY_PROOF"] = credential()
        given: dict[str, Any] = {
            "run": "R-1",
            "session": "ada",
            "task": "T-1",
            "title": "Paint",
            "worktree": str(self.root),
            "git": str(self.root / ".git"),
            "prompt": f"[[script {script}]]",
            "prompt_file": "",
            "body_file": "",
            "env": {**self.world.environment, **told},
            "permissions": PermissionLevel.FULL,
            "hooks": replace(door, relay=self.relay),
        }
        return Assignment(**{**given, **more})

    @property
    def missed(self) -> Path:
        return self.root.parent / "missed"

    def run(self, launch: Launch) -> str:
        """Let an agent work to its end, which must be good, and return what it printed."""
        with subprocess.Popen(
            launch.argv,
            cwd=launch.cwd,
            env=dict(launch.env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                said, complaint = process.communicate(launch.stdin, timeout=PATIENCE)
            finally:
                process.kill()
        assert process.returncode == 0, said[-2000:] + complaint[-2000:]
        return said

    def told(self, script: str, step: int) -> str:
        """Return all that the model was told when it was asked for a step."""
        return _told(next(turn for turn in self.world.model.turns(script) if turn.step == step))


def _told(request: Request) -> str:
    return json.dumps(request.body.get("messages") or request.body.get("input"), ensure_ascii=False)


@pytest.fixture
def shed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shed]:
    """Yield a repository that screens trust, in a world of its own, where hooks have time."""
    root, patient = tmp_path / "shed", tmp_path / "patient" / "hooks" / "relay.py"
    monkeypatch.setattr(hook_protocol, "QUICK_TIMEOUT_S", 60)
    patient.parent.mkdir(parents=True)
    shutil.copy(proof.__file__, patient.parents[1])  # it is looked for above its folder
    patient.write_text(Path(relay.__file__).read_text().replace("QUICK = 1.0", "QUICK = 60.0"))
    with scripted_world(tmp_path, trusted=[root]) as world:
        yield Shed(world, make_repository(root, world.environment), (*RELAY[:-1], str(patient)))


both = pytest.mark.parametrize("name", AGENTS)


def counsel(hook: Hook) -> HookReply:
    """Answer as covey does: refuse what is leased, warn of what is near, tell mail, and go on once."""
    match hook.moment:
        case Moment.BEFORE_TOOL if any(path.endswith("leased.txt") for path in hook.writes):
            return HookReply(deny="LEASED by bob for T-2")
        case Moment.BEFORE_TOOL:
            return HookReply(tell=f"WARNED of {hook.tool} [mail-2]")
        case Moment.AFTER_TOOL:
            return HookReply(tell=f"TOLD after {hook.tool} [mail-3]")
        case Moment.SESSION_START:
            return HookReply(tell="GREETED [mail-5]")
        case Moment.USER_PROMPT:
            return HookReply(tell="PROMPTED [mail-1]")
        case Moment.STOP if not hook.again:
            return HookReply(go_on="GO ON [mail-4]")
        case _:
            return NOTHING


# Without a terminal


@both
@pytest.mark.parametrize("level", [pytest.param(PermissionLevel.FULL, marks=pytest.mark.soak), PermissionLevel.EDITS])
def test_an_edit_is_refused_and_told_of_at_every_level(name: str, level: PermissionLevel, shed: Shed) -> None:
    steps = [
        Step(do=(Write("ok.txt", "x\n"),)),
        Step(do=(Write("leased.txt", "x\n"),)),
        Step(text="end"),
        Step(text="x"),
    ]
    shed.world.model.add("a", steps)
    with ear(counsel) as listening:
        shed.run(AGENTS[name].launch(shed.work(listening.door, "a", permissions=level)))
    assert (shed.root / "ok.txt").exists() and not (shed.root / "leased.txt").exists()
    assert "GREETED" in shed.told("a", 0) and "PROMPTED" in shed.told("a", 0)
    assert "WARNED of" in shed.told("a", 1) and "TOLD after" in shed.told("a", 1) and "LEASED" not in shed.told("a", 1)
    assert "LEASED by bob for T-2" in shed.told("a", 2)
    assert "GO ON" in shed.told("a", 3) and "GO ON" not in shed.told("a", 2)
    assert listening.tokens == {f"Bearer {TOKEN}"}
    assert listening.moments == [
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreToolUse", "Stop", "Stop", "SessionEnd")
    ]
    assert {hook.conversation for hook in listening.heard} == {listening.heard[0].conversation}
    assert all(Path(hook.cwd).resolve() == shed.root.resolve() for hook in listening.heard)
    assert not shed.missed.exists()


@both
def test_the_transcript_shows_what_the_model_was_told_and_not_what_it_said_itself(name: str, shed: Shed) -> None:
    steps = [Step(do=(Shell("echo printed [mail-70]"),)), Step(text="I said [mail-71]"), Step(text="end")]
    shed.world.model.add("a", steps)
    with ear(counsel) as listening:
        launch = AGENTS[name].launch(shed.work(listening.door, "a", prompt="[[script a]] [mail-0]"))
        shed.run(launch)
        lines = listening.transcript()
    shown = [(number, hook_protocol.shows(line)) for number, line in enumerate(lines)]
    last = max(number for number, line in enumerate(lines) if hook_protocol.answers(line))
    for mail in range(6):
        assert any(f"[mail-{mail}]" in words and number < last for number, words in shown), mail
    assert not any("[mail-7" in words for _, words in shown)


@both
def test_what_a_hook_told_stands_in_the_transcript_when_the_model_is_asked(name: str, shed: Shed) -> None:
    shed.world.model.add("a", [Step(do=(Shell("true"),)), Step(text="end", hold="gate"), Step(text="end")])
    with ear(counsel) as listening:
        work = threading.Thread(target=shed.run, args=(AGENTS[name].launch(shed.work(listening.door, "a")),))
        work.start()
        try:
            wait_until(lambda: shed.world.model.asked("a", 1) > 0, "the model asked", patience=PATIENCE)
            wait_until(
                lambda: any("[mail-3]" in hook_protocol.shows(line) for line in listening.transcript()),
                "it in the transcript",
            )
        finally:
            shed.world.model.open("gate")
            work.join()


@both
def test_a_shell_goes_round_a_refusal_and_is_noticed_after(name: str, shed: Shed) -> None:
    steps = [Step(do=(Shell("echo x > leased.txt"),)), Step(do=(Shell("exit 3"),)), Step(text="end"), Step(text="end")]
    shed.world.model.add("a", steps)
    with ear(counsel) as listening:
        shed.run(AGENTS[name].launch(shed.work(listening.door, "a")))
    assert (shed.root / "leased.txt").exists()
    after = listening.of(Moment.AFTER_TOOL)
    assert [hook.command for hook in after] == ["echo x > leased.txt", "exit 3"]
    assert [hook.note for hook in after] == ["", hook_protocol.FAILURE if name == "claude" else ""]
    assert shed.told("a", 2).count("TOLD after shell") == 2  # after one that failed as well
    assert [hook.call for hook in listening.of(Moment.BEFORE_TOOL)] == [hook.call for hook in after]


def test_a_patch_that_codex_is_given_by_a_shell_is_refused_but_not_told_of_after(shed: Shed) -> None:
    def patch(path: str) -> Step:
        lines = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"
        return Step(do=(Shell(f"apply_patch <<'EOF'\n{lines}\nEOF\n"),))

    shed.world.model.add("a", [patch("leased.txt"), patch("ok.txt"), Step(text="end"), Step(text="end")])
    with ear(counsel) as listening:
        shed.run(codex.agent.launch(shed.work(listening.door, "a")))
    assert (shed.root / "ok.txt").exists() and not (shed.root / "leased.txt").exists()
    assert [hook.writes for hook in listening.of(Moment.BEFORE_TOOL)] == [("leased.txt",), ("ok.txt",)]
    assert listening.of(Moment.AFTER_TOOL) == []


@both
def test_a_daemon_that_is_away_holds_nobody_up(name: str, shed: Shed) -> None:
    shed.world.model.add("a", [Step(do=(Write("ok.txt", "x\n"),)), Step(text="end")])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    door = HookDoor(url=f"http://127.0.0.1:{port}", relay=RELAY)
    shed.run(AGENTS[name].launch(shed.work(door, "a")))
    assert (shed.root / "ok.txt").exists()
    missed = [line.split(" ")[1] for line in shed.missed.read_text().splitlines()]
    every = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]
    assert missed == (every if name == "codex" else ["SessionStart"])


@both
def test_a_daemon_that_hangs_is_given_up_at_each_step(name: str, shed: Shed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_protocol, "QUICK_TIMEOUT_S", 1)
    shed.world.model.add("a", [Step(do=(Write("leased.txt", "x\n"),)), Step(text="end"), Step(text="end")])
    over = threading.Event()

    def never(hook: Hook) -> HookReply:
        over.wait(PATIENCE)
        return counsel(hook)

    with ear(never) as listening:
        shed.run(AGENTS[name].launch(shed.work(listening.door, "a", hooks=listening.door)))
        over.set()
    assert (shed.root / "leased.txt").exists() and "LEASED" not in shed.told("a", 1)


def test_hooks_of_claudes_user_run_beside_ours(shed: Shed) -> None:
    mark = shed.root.parent / "own"
    own = {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": f"echo own >> {mark}"}]}]}
    file = Path(shed.world.environment["CLAUDE_CONFIG_DIR"]) / "settings.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "hooks": own}))
    shed.world.model.add("a", [Step(do=(Write("leased.txt", "x\n"),)), Step(text="end"), Step(text="end")])
    with ear(counsel) as listening:
        shed.run(claude.agent.launch(shed.work(listening.door, "a")))
    assert mark.read_text() == "own\n" and not (shed.root / "leased.txt").exists()


def test_hooks_of_codex_user_run_beside_ours_if_trusted_and_those_of_the_repository_do_not(shed: Shed) -> None:
    mark, bad = shed.root.parent / "own", shed.root.parent / "bad"
    home = Path(shed.world.environment["CODEX_HOME"])
    table = f'[{{hooks=[{{type="command",command="echo own >> {mark}",timeout=5}}]}}]'
    config = home / "config.toml"
    digest = trust("pre_tool_use", f"echo own >> {mark}", 5)
    state = f'[hooks.state."{config}:pre_tool_use:0:0"]\ntrusted_hash = "{digest}"\n'
    config.write_text(config.read_text() + f"\n[hooks]\nPreToolUse = {table}\n{state}")
    theirs = {"PreToolUse": [{"hooks": [{"type": "command", "command": f"echo bad >> {bad}"}]}]}
    (shed.root / ".codex").mkdir()
    (shed.root / ".codex" / "hooks.json").write_text(json.dumps({"hooks": theirs}))
    shed.world.model.add("a", [Step(do=(Write("leased.txt", "x\n"),)), Step(text="end"), Step(text="end")])
    with ear(counsel) as listening:
        shed.run(codex.agent.launch(shed.work(listening.door, "a")))
    assert mark.read_text() == "own\n" and not bad.exists() and not (shed.root / "leased.txt").exists()


def test_claude_reaches_us_where_a_proxy_stands_in_the_way(shed: Shed) -> None:
    shed.world.model.add("a", [Step(do=(Write("leased.txt", "x\n"),)), Step(text="end"), Step(text="end")])
    with ear(counsel) as listening:
        work = shed.work(listening.door, "a")
        env = {key: value for key, value in work.env.items() if key.lower() != "no_proxy"}
        shed.run(claude.agent.launch(replace(work, env=env)))
    assert not (shed.root / "leased.txt").exists()


def test_what_a_sub_agent_asks_bears_its_name_and_is_told_to_it_alone(shed: Shed) -> None:
    called = Tool("Agent", {"description": "s", "prompt": "[[script sub]]", "subagent_type": "general-purpose"})
    shed.world.model.add("a", [Step(do=(called,)), Step(text="end"), Step(text="end"), Step(text="end")])
    shed.world.model.add("sub", [Step(do=(Shell("echo sub"),)), Step(text="done")])
    with ear(lambda hook: HookReply(tell=f"TOLD {hook.tool} {hook.sub}") if hook.tool else NOTHING) as listening:
        shed.run(claude.agent.launch(shed.work(listening.door, "a")))
        shown = [hook_protocol.shows(line) for line in listening.transcript()]
    subs = {hook.sub for hook in listening.heard if hook.command or hook.moment is Moment.SUBAGENT_STOP}
    assert len(subs) == 1 and "" not in subs
    assert f"TOLD shell {subs.pop()}" in shed.told("sub", 1)
    assert not any("TOLD shell" in words for words in shown) and any("TOLD Agent" in words for words in shown)


@both
def test_a_conversation_that_is_made_shorter_says_so_before(name: str, shed: Shed) -> None:
    full = Usage(input=990_000, output=50)
    script = Script(
        (Step(do=(Shell("true"),), usage=full), Step(text="end"), Step(text="end")), summary=Step(usage=SIDE)
    )
    shed.world.model.add("a", script)
    with ear() as listening:
        shed.run(AGENTS[name].launch(shed.work(listening.door, "a")))
    assert [hook.note for hook in listening.of(Moment.BEFORE_COMPACT)] == ["auto"]


# In a terminal


class Pane:
    """A terminal with one program in it, on a tmux server of the test's own."""

    def __init__(self, folder: Path, launch: Launch) -> None:
        self._socket = folder / "s"
        env = ["env", "-i", *(f"{name}={value}" for name, value in launch.env.items())]
        self.tmux("new-session", "-d", "-x", "120", "-y", "40", "-c", launch.cwd, "--", *env, *launch.argv)

    def tmux(self, *words: str) -> str:
        argv = ["tmux", "-u", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p").replace("\xa0", " ")

    def waits_for(self, text: str) -> None:
        try:
            wait_until(lambda: text in self.screen(), text, patience=PATIENCE)
        except AssertionError:
            raise AssertionError(f"never saw {text!r}:\n{self.screen()}") from None

    def accepts(self, then: str) -> None:
        """Answer the dialog with what it offers first, until a text is seen; it takes no key in its first moment."""
        pressed = 0.0

        def is_seen() -> bool:
            nonlocal pressed
            if time.monotonic() > pressed + 1:
                self.tmux("send-keys", "Enter")
                pressed = time.monotonic()
            return then in self.screen()

        wait_until(is_seen, then, patience=PATIENCE)

    def enters(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.waits_for(text)
        self.tmux("send-keys", "Enter")


@contextmanager
def pane(launch: Launch) -> Iterator[Pane]:
    """Start a program in a terminal, which is closed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="covey-"))  # a socket's path must be short
    try:
        made = Pane(folder, launch)
        yield made
        made.tmux("kill-server")
    finally:
        subprocess.run(["tmux", "-S", str(folder / "s"), "kill-server"], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Person:
    """Decides when the test says so; until then every question is held."""

    decided: threading.Event = field(default_factory=threading.Event)
    reply: HookReply = NOTHING

    def __call__(self, hook: Hook) -> HookReply:
        if hook.moment is Moment.PERMISSION:
            self.decided.wait(PATIENCE)
            return self.reply
        return NOTHING if hook.moment is Moment.STOP else counsel(hook)

    def decides(self, reply: HookReply) -> None:
        self.reply = reply
        self.decided.set()


DIALOG = {"claude": "Do you want to create asked.txt?", "codex": "Would you like to run the following command?"}


@contextmanager
def asking(name: str, shed: Shed, listening: Ear) -> Iterator[Pane]:
    """Yield a terminal in which an agent has asked for permission and waits."""
    more = {"sandbox_permissions": "require_escalated", "justification": "because"}
    wish = (
        Write("asked.txt", "x\n") if name == "claude" else Tool("exec_command", {"cmd": "echo x > asked.txt", **more})
    )
    shed.world.model.add("first", [Step(text="hello")])
    shed.world.model.add("a", [Step(do=(wish,)), Step(text="the end of it")])
    agent, work = AGENTS[name], shed.work(listening.door, "first", permissions=PermissionLevel.ASK)
    if name == "codex":  # its terminal only takes a conversation up
        said = shed.run(agent.launch(work))
        work = replace(work, conversation=json.loads(said.splitlines()[0])["thread_id"])
    assert agent.terminal is not None
    with pane(agent.terminal.launch(work)) as terminal:
        terminal.waits_for("Ask Codex to do anything" if name == "codex" else "? for shortcuts")
        terminal.enters("[[script a]]")
        wait_until(lambda: bool(listening.of(Moment.PERMISSION)), "a question", patience=PATIENCE)
        yield terminal


@both
def test_a_permission_is_held_until_somebody_allows_it(name: str, shed: Shed) -> None:
    person = Person()
    with ear(person) as listening, asking(name, shed, listening) as terminal:
        (asked,) = listening.of(Moment.PERMISSION)
        expected = f"It wants to use Write: {shed.root}/asked.txt" if name == "claude" else "It wants to run: echo x > "
        assert asked.asks.startswith(expected) and not (shed.root / "asked.txt").exists()
        person.decides(HookReply(allow=True))
        terminal.waits_for("the end of it")
        assert (shed.root / "asked.txt").exists()
        assert "PROMPTED" in shed.told("a", 1) and "TOLD after" in shed.told("a", 1)


@both
def test_a_permission_that_somebody_denies_is_told_with_the_reason(name: str, shed: Shed) -> None:
    person = Person()
    with ear(person) as listening, asking(name, shed, listening) as terminal:
        person.decides(HookReply(allow=False, why="NOT NOW, says ann"))
        terminal.waits_for("the end of it")
        assert not (shed.root / "asked.txt").exists() and "NOT NOW, says ann" in shed.told("a", 1)


@both
def test_a_permission_that_is_let_go_is_asked_on_the_screen(name: str, shed: Shed) -> None:
    person = Person()
    with ear(person) as listening, asking(name, shed, listening) as terminal:
        if name == "codex":
            terminal.waits_for("Running hook")
            assert DIALOG[name] not in terminal.screen()  # it shows its dialog only when the hook has ended
        else:
            terminal.waits_for(DIALOG[name])  # it shows its dialog at once, and whoever is first decides
        person.decides(NOTHING)
        terminal.waits_for(DIALOG[name])
        terminal.accepts("the end of it")
        assert (shed.root / "asked.txt").exists()


def test_claudes_dialog_can_be_answered_while_the_hook_is_held(shed: Shed) -> None:
    person = Person()
    with ear(person) as listening, asking("claude", shed, listening) as terminal:
        terminal.waits_for(DIALOG["claude"])
        terminal.accepts("the end of it")
        assert (shed.root / "asked.txt").exists()
        wait_until(lambda: bool(listening.of(Moment.AFTER_TOOL)), "the tool used")  # by which we know that it is over
        person.decides(NOTHING)


def test_claude_says_when_it_waits_and_when_it_leaves(shed: Shed) -> None:
    person = Person()
    with ear(person) as listening, asking("claude", shed, listening) as terminal:
        wait_until(lambda: bool(listening.of(Moment.NOTIFICATION)), "a notification", patience=PATIENCE)
        assert listening.of(Moment.NOTIFICATION)[0].note == "permission_prompt"
        person.decides(HookReply(allow=True))
        terminal.waits_for("the end of it")
        terminal.enters("/compact")
        wait_until(lambda: bool(listening.of(Moment.BEFORE_COMPACT)), "a compaction", patience=PATIENCE)
        assert listening.of(Moment.BEFORE_COMPACT)[0].note == "manual"
