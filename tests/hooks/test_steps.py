"""What agents ask at their steps, sent to a real daemon as their programs send it, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import proof
from covey.app.context import Principal
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Compacts, Works
from covey.core.leases.hooks import Hook, Moment
from covey.core.people.permits import PermissionLevel
from covey.errors import ToolFailed
from covey.git.project import find
from covey.git.worktrees import worktree_paths
from covey.hooks import relay
from covey.hooks.outside import Outside
from covey.hooks.permission import Asker, Held
from covey.hooks.server import Hooks
from covey.loops.fleet.fleet_memory import signals_of
from tests.loops.fleet.test_fleet_loop import House
from tests.worlds.serving import PATIENCE, Client, Daemon, serving, wait_until

AGENT = '[agents.sh]\ncommand = ["bash", "{body_file}"]\n[watch]\nbackoff = 0.1\n'
EDIT: dict[str, Any] = {"tool_name": "Edit", "tool_use_id": "edit-1"}
BASH: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "make"}}


@dataclass
class Place:
    """A project with its daemon, and a folder for checkouts that people make."""

    daemon: Daemon
    folder: Path
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = self.daemon.client()

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.daemon.project.root, check=True, capture_output=True)

    def checkout(self, path: str) -> Path:
        """Return a worktree that a person has made."""
        made = self.folder / path
        self.git("worktree", "add", "-q", "-b", path.replace("/", "-"), str(made))
        return made

    def hook(self, moment: str, at: Path, client: Client | None = None, **body: Any) -> Any:
        """Ask as an agent in a checkout does, and return the answer."""
        asked = {"session_id": "talk-1", "cwd": str(at), **body}
        return (client or self.client).ask("POST", f"/hooks/{moment}", asked).good()

    def told(self, moment: str, at: Path, **body: Any) -> str:
        """Ask, and return what the agent is told."""
        said = self.hook(moment, at, **body).get("hookSpecificOutput", {})
        return str(said.get("additionalContext", ""))

    def state(self, name: str) -> str:
        return {each["name"]: str(each["state"]) for each in self.client.get("/api/sessions")}[name]

    def leases(self, holder: str) -> list[list[str]]:
        return [each["resources"] for each in self.client.get("/api/leases") if each["holder"] == holder]

    def questions(self) -> dict[str, str]:
        return {each["about"]: each["state"] for each in self.client.get("/api/questions?limit=100")}


@pytest.fixture(autouse=True)
def _author(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Test")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "test@example.org")


@contextmanager
def opened(folder: Path, **more: Any) -> Iterator[Place]:
    with serving(folder / "shop", settings=AGENT, **more) as daemon:
        place = Place(daemon, folder)
        (daemon.project.root / "f.txt").write_text("x")
        place.git("add", "f.txt")
        place.git("commit", "-qm", "begin")
        try:
            yield place
        finally:
            place.client.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with opened(tmp_path) as found:
        yield found


# Whose name is whose


def named(place: Place, at: Path) -> str:
    """Return the name that an agent is told to be its own."""
    said = place.told("SessionStart", at, source="startup")
    assert said.startswith("To covey and your colleagues you are ")
    name = said.removeprefix("To covey and your colleagues you are ").partition(".")[0]
    assert f"--as {name}" in said
    return name


def test_checkouts_of_one_name_are_two_sessions_also_after_a_restart(place: Place) -> None:
    one, two = place.checkout("a/mine"), place.checkout("b/mine")
    assert [named(place, one), named(place, two)] == ["mine", "mine-2"]
    (one / "f.txt").write_text("y")
    place.hook("PostToolUse", one, **EDIT, tool_input={"file_path": str(one / "f.txt")})
    assert "mine" in place.told("PreToolUse", two, **EDIT, tool_input={"file_path": str(two / "f.txt")})
    place.client.close()
    place.daemon.stop()
    place.daemon.start()
    place.client = place.daemon.client()
    assert [named(place, two), named(place, one), named(place, place.checkout("c/mine"))] == [
        "mine-2",
        "mine",
        "mine-3",
    ]


def test_a_folder_within_a_checkout_is_the_same_session(place: Place) -> None:
    one = place.checkout("mine")
    (one / "deep").mkdir()
    assert named(place, one) == named(place, one / "deep") == "mine"


def test_a_name_that_a_session_of_covey_has_taken_is_nobody_elses_any_more(place: Place) -> None:
    at = place.checkout("mine")
    assert named(place, at) == "mine"
    place.client.post("/api/sessions/mine/remove")
    place.client.post("/api/sessions", {"name": "mine", "agent": "sh"})
    place.client.post("/api/mail", {"to": "mine", "text": "for the run alone", "session": "bob"})
    assert "for the run alone" not in place.told("UserPromptSubmit", at, prompt="go")
    assert named(place, at) == "mine-guest"


# How long it is there


def test_an_agent_ends_with_its_last_conversation(place: Place) -> None:
    at = place.checkout("mine")
    for talk in ("talk-1", "talk-2"):
        place.hook("SessionStart", at, source="startup", session_id=talk)
    place.client.post("/api/leases", {"session": "mine", "resources": ["lib/**"]})
    place.hook("SessionEnd", at, reason="other", session_id="talk-2")
    assert place.leases("mine") == [["lib/**"]]
    place.hook("SessionEnd", at, reason="other", session_id="talk-1")
    assert place.leases("mine") == []


@pytest.mark.parametrize("reason", ["clear", "resume"])
def test_an_agent_that_begins_another_conversation_has_not_ended(place: Place, reason: str) -> None:
    at = place.checkout("mine")
    place.hook("SessionStart", at, source="startup")
    place.client.post("/api/leases", {"session": "mine", "resources": ["lib/**"]})
    place.hook("SessionEnd", at, reason=reason)
    place.hook("SessionStart", at, source=reason, session_id="talk-2")
    assert place.leases("mine") == [["lib/**"]] and place.state("mine") == "idle"
    place.hook("SessionEnd", at, reason="prompt_input_exit", session_id="talk-2")
    assert place.leases("mine") == []


def test_an_agent_that_was_at_work_is_at_work_after_a_compaction(place: Place) -> None:
    at = place.checkout("mine")
    place.hook("UserPromptSubmit", at, prompt="go")
    for trigger, state in (("auto", "working"), ("manual", "idle"), ("auto", "working")):
        place.hook("PreCompact", at, trigger=trigger)
        assert place.state("mine") == "compacting"
        place.hook("SessionStart", at, source="compact")
        assert place.state("mine") == state


def test_only_who_asks_for_a_person_needs_one(place: Place) -> None:
    at = place.checkout("mine")
    states = []
    for kind in ("auth_success", "permission_prompt", "idle_prompt", "elicitation_dialog", ""):
        place.hook("UserPromptSubmit", at, prompt="go")
        place.hook("Notification", at, notification_type=kind, message="Hello")
        states.append(place.state("mine"))
    assert states == ["working", "needs-you", "idle", "needs-you", "working"]


# Slow disks


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file: as long as it is there, git looks at worktrees and does not come to an end."""
    programs, gate = tmp_path / "bin", tmp_path / "gate"
    programs.mkdir()
    slow = f'case " $* " in *" status "*) while [ -e {gate} ]; do sleep 0.05; done;; esac'
    (programs / "git").write_text(f'#!/bin/sh\n{slow}\nexec {shutil.which("git")} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return gate


def test_worktrees_that_take_long_to_look_at_keep_nobody_waiting(tmp_path: Path, gate: Path) -> None:
    with opened(tmp_path, constants={"covey.git.worktrees.worktree_paths.STATUS_TIMEOUT_S": PATIENCE}) as place:
        many = [place.checkout(f"c/o{number}") for number in range(14)]
        (many[0] / "new").mkdir()
        gate.touch()
        clients = [place.daemon.client() for _ in many]
        threads = [
            threading.Thread(target=place.hook, args=("PostToolUse", at, client), kwargs=BASH)
            for at, client in zip(many, clients, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        place.hook("UserPromptSubmit", many[0] / "new", prompt="go")  # a folder that git has to be asked about
        log = place.daemon.project.state / "daemon.log"
        assert "could not be looked at" not in log.read_text()
        gate.unlink()
        for client in clients:
            client.close()


def test_a_look_at_a_worktree_is_given_up_when_it_takes_too_long(
    tmp_path: Path, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "tree")], check=True)
    (tmp_path / "tree" / "new").touch()
    project = find(tmp_path / "tree")
    assert [write.path for write in worktree_paths.unsaved(project, project.root, 1.0)] == ["new"]
    gate.touch()
    monkeypatch.setattr(worktree_paths, "STATUS_TIMEOUT_S", 0.1)
    with pytest.raises(ToolFailed, match="did not end within"):
        worktree_paths.unsaved(project, project.root, 1.0)


# Who is kept waiting


RUN = Run(id="run-1", ordinal=1, task="T-1", session="ada", fence=1, agent="sh")
ASKED = Hook(moment=Moment.PERMISSION, tool="Bash", about="rm x", call="call-1")
SUB = replace(ASKED, sub="sub-1")
USED = replace(ASKED, moment=Moment.AFTER_TOOL)


@pytest.mark.parametrize(
    ("asked", "hook", "over"),
    [
        (ASKED, USED, True),
        (ASKED, replace(USED, call="call-2"), False),
        (ASKED, replace(USED, call="", about="rm y"), False),
        (replace(ASKED, call=""), USED, True),
        (ASKED, replace(USED, sub="sub-1"), False),
        (ASKED, Hook(moment=Moment.STOP), True),
        (ASKED, Hook(moment=Moment.USER_PROMPT), True),
        (ASKED, Hook(moment=Moment.BEFORE_TOOL), False),
        (ASKED, Hook(moment=Moment.SUBAGENT_STOP, sub="sub-1"), False),
        (SUB, Hook(moment=Moment.STOP), False),
        (SUB, Hook(moment=Moment.USER_PROMPT), False),
        (SUB, USED, False),
        (SUB, replace(USED, sub="sub-1"), True),
        (SUB, Hook(moment=Moment.SUBAGENT_STOP, sub="sub-2"), False),
        (SUB, Hook(moment=Moment.SUBAGENT_STOP, sub="sub-1"), True),
        (SUB, Hook(moment=Moment.SESSION_END), True),
    ],
)
def test_a_question_is_over_when_its_own_asker_goes_on(asked: Hook, hook: Hook, over: bool) -> None:
    held = Held(RUN, asked)
    held.hear(replace(RUN, id="run-2"), hook)
    assert not held.went_on
    held.hear(RUN, hook)
    assert held.went_on is over


def test_a_hook_says_that_an_agent_works_unless_it_ends_or_calls_for_a_person() -> None:
    silent = {moment for moment in Moment if signals_of(Hook(moment=moment)) == []}
    assert silent == {Moment.NOTIFICATION, Moment.SESSION_END}
    assert signals_of(Hook(moment=Moment.BEFORE_COMPACT)) == [Compacts()]
    assert signals_of(Hook(moment=Moment.AFTER_TOOL)) == [Works()]


def test_nobody_remembers_a_run_again_that_is_over_and_only_a_hook_that_brings_mail_counts(tmp_path: Path) -> None:
    house = House(tmp_path, AGENT)
    house.fleet.hook_reports.overhear(RUN, Hook(moment=Moment.STOP))
    assert house.fleet.memory.of_session("ada") == []
    watched = house.fleet.memory.of(RUN)
    brought = []
    for hook in (Hook(moment=Moment.BEFORE_TOOL), Hook(moment=Moment.STOP, sub="sub-1"), Hook(moment=Moment.STOP)):
        house.fleet.hook_reports.overhear(RUN, hook)
        brought.append(watched.hooked)
    assert brought == [False, False, True]
    house.close()


# Runs


def begun(place: Place, number: int) -> str:
    """Wait for a run, and return its token."""
    path = place.folder / f"token-{number}"
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"run {number}")
    return path.read_text().strip()


def runs(place: Place, count: int) -> Path:
    """Let ada work on tasks one after another, each until a gate is opened; return her worktree."""
    place.client.post("/api/sessions", {"name": "ada", "agent": "sh"})
    for number in range(1, count + 1):
        body = (
            f"echo $COVEY_TOKEN > {place.folder}/token-{number}\n"
            f"for _ in $(seq 600); do [ -e {place.folder}/gate-{number} ] && break; sleep 0.1; done\necho done\n"
        )
        place.client.post("/api/board", {"title": f"Look {number}", "kind": "report", "assignee": "ada", "body": body})
    place.client.post("/api/sessions/ada/start")
    return Path(f"{place.daemon.project.root}.worktrees") / "ada"


def test_what_was_noticed_of_a_run_is_not_told_to_the_next_one(place: Place) -> None:
    at = runs(place, 2)
    first = begun(place, 1)
    place.client.post("/api/leases", {"session": "bob", "resources": ["f.txt"]})
    (at / "f.txt").write_text("by a command")
    with place.daemon.client(first) as client:
        shell = {
            "tool_name": "Bash",
            "tool_use_id": "1",
            "agent_id": "sub-1",
            "tool_input": {"command": "echo > f.txt"},
        }
        place.hook("PostToolUse", at, client, **shell)
    wait_until(lambda: bool(place.client.get("/api/log?kind=lease.crossed&limit=5")), "a crossing that was noticed")
    (place.folder / "gate-1").touch()
    second = begun(place, 2)
    with place.daemon.client(second) as client:
        assert "covey noticed" not in json.dumps(place.hook("UserPromptSubmit", at, client, prompt="go"))
    (place.folder / "gate-2").touch()


class Caller:
    """An agent that waits for an answer until it hangs up."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    def is_there(self) -> bool:
        return not self.gone.is_set()

    async def left(self) -> None:
        await self.gone.wait()


def test_an_answer_to_an_agent_that_has_hung_up_is_not_noted_as_told(tmp_path: Path) -> None:
    house = House(tmp_path, AGENT)
    hooks = Hooks(house.runtime, house.fleet.hook_reports, house.fleet.attendant.mailing, Outside(house.runtime))
    house.add("sleep 60", kind="report")
    house.staff("ada", agent="sh")
    house.until(lambda: bool(house.runs()), "a run")
    body = json.dumps({**BASH, "cwd": "/"}).encode()

    async def asked() -> bytes:
        caller = Caller()
        waiting = asyncio.create_task(hooks("PermissionRequest", Principal("ada"), body, caller))
        while not (found := house.ask("question.list")):  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
        house.ask("question.answer", id=found[0]["id"], decision="allow")
        caller.gone.set()
        return await waiting

    assert house.loop.run_until_complete(asked()) == b"{}"
    assert house.events("question.told") == []
    house.close()


def test_a_relay_waits_for_a_person_whom_a_daemon_has_asked(place: Place) -> None:
    at = runs(place, 1)
    env = {"COVEY_URL": f"http://127.0.0.1:{place.daemon.port}", "COVEY_TOKEN": begun(place, 1)}
    env["COVEY_PROOF"] = proof.credential(place.daemon.token, "run:run-1")
    words = [sys.executable, "-I", "-S", relay.__file__, "PermissionRequest"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env=env, **pipes) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"cwd": str(at), **BASH}).encode())
        process.stdin.close()
        wait_until(lambda: bool(place.client.get("/api/questions")), "a question")
        (question,) = place.client.get("/api/questions")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2 * relay.QUICK)
        place.client.post(f"/api/questions/{question['id']}/answer", {"decision": "allow"})
        assert process.wait(PATIENCE) == 0
        assert process.stdout is not None
        assert json.load(process.stdout)["hookSpecificOutput"]["decision"] == {"behavior": "allow"}
    (place.folder / "gate-1").touch()


def test_a_link_that_leads_out_of_the_worktree_is_seen(tmp_path: Path) -> None:
    worktree, outside = tmp_path / "ada", tmp_path / "outside"
    (worktree / "src").mkdir(parents=True)
    outside.mkdir()
    (worktree / "link").symlink_to(outside)
    (worktree / "inner").symlink_to("src")
    inside = (".", str(worktree), str(worktree / "src" / "none"), str(worktree / "inner" / "x"))
    assert not worktree_paths.leads_out(inside, worktree)
    for path in (str(worktree / "link"), str(worktree / "link" / "x"), "/etc/passwd", str(outside)):
        assert worktree_paths.leads_out((*inside, path), worktree)


@pytest.mark.parametrize(
    "pattern", ["src/*", "src/*.txt", "s*/k?y.txt", "src/[k]*", "src/[^a]*", "**/*.txt", "**/key.txt"]
)
def test_a_link_that_a_pattern_stands_for_and_that_leads_out_is_seen(tmp_path: Path, pattern: str) -> None:
    worktree, secret = tmp_path / "ada", tmp_path / "secret.txt"
    for folder in ("src", "docs/deep"):
        (worktree / folder).mkdir(parents=True)
        (worktree / folder / "app.txt").touch()
    (worktree / "src" / "around").symlink_to("..")
    assert not worktree_paths.leads_out((pattern, "docs/*", "*/none/*"), worktree)
    (worktree / "src" / "key.txt").symlink_to(secret)
    secret.touch()
    assert worktree_paths.leads_out((pattern,), worktree)
    assert not worktree_paths.leads_out(("docs/*",), worktree)


def test_dots_behind_a_link_lead_where_its_target_is(tmp_path: Path) -> None:
    worktree = tmp_path / "ada"
    (worktree / "src" / "deep").mkdir(parents=True)
    (worktree / "src" / "around").symlink_to("..")
    (worktree / "src" / "key.txt").touch()
    paths = ("src/deep/../key.txt", "src/around/src/key.txt", "src/around/src/../src/deep")
    assert not worktree_paths.leads_out(paths, worktree)
    for path in ("src/around/../key.txt", "src/a*/../key.txt", "src/**/../../key.txt"):
        assert worktree_paths.leads_out((str(worktree / path),), worktree), path


@pytest.mark.parametrize("entry", [".git", "HEAD"])
def test_a_repository_below_a_worktree_is_another(tmp_path: Path, entry: str) -> None:
    worktree = tmp_path / "ada"
    (worktree / "src" / "deep").mkdir(parents=True)
    (worktree / ".git").touch()
    (worktree / "link").symlink_to("src/deep")
    folders = [str(worktree / name) for name in ("src", "src/deep", "link", "none")]
    assert not worktree_paths.is_another_repository(folders, worktree)
    (worktree / "src" / entry).touch()
    for folder in folders[:3]:
        assert worktree_paths.is_another_repository((folder,), worktree)
    assert not worktree_paths.is_another_repository(folders[3:], worktree)
    assert worktree_paths.is_another_repository((str(tmp_path),), worktree)


def test_git_in_a_folder_with_a_repository_of_its_own_is_asked_for(tmp_path: Path) -> None:
    worktree = tmp_path / "ada"
    (worktree / "src").mkdir(parents=True)
    house = House(tmp_path, AGENT)
    hooks = Hooks(house.runtime, house.fleet.hook_reports, house.fleet.attendant.mailing, Outside(house.runtime))

    def passes(command: str, cwd: Path = worktree) -> bool:
        hook = Hook(moment=Moment.BEFORE_TOOL, tool="Bash", command=command, cwd=str(cwd))
        asked = hooks._needs_nobody(Asker("ada", worktree), hook, PermissionLevel.ASK)
        return house.loop.run_until_complete(asked)

    assert passes("cd src && git status") and passes("git status", worktree / "src")
    (worktree / "src" / ".git").mkdir()
    assert passes("git status && cd src && ls")
    assert not passes("cd src && git status") and not passes("git status", worktree / "src")
    house.close()


def test_a_name_that_could_be_a_pattern_is_a_name_where_it_was_found(tmp_path: Path) -> None:
    worktree = tmp_path / "[work]" / "ada"
    (worktree / "app" / "[slug]").mkdir(parents=True)
    (worktree / "app" / "[slug]" / "page.tsx").touch()
    names = ("app/[slug]/page.tsx", "app/*", "**/page.tsx", "app/**", str(worktree / "app" / "[slug]"))
    assert not worktree_paths.leads_out(names, worktree)
    (tmp_path / "w").mkdir()
    assert not worktree_paths.leads_out(names, worktree)
    (worktree / "app" / "[slug]" / "*").symlink_to("/etc")
    assert worktree_paths.leads_out(("app/[slug]/*",), worktree)


def test_a_pattern_of_other_names_does_not_ask_for_a_link_beside_them(tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to("/")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").touch()
    assert not worktree_paths.leads_out(("*.py", "src/*.py", "s*/*", "s[r]*"), tmp_path)
    for pattern in ("*", "*s", "[nm]*", "NODE*", "node_module?", "**"):
        assert worktree_paths.leads_out((pattern,), tmp_path), pattern


@given(st.data())
def test_every_name_that_bash_finds_is_looked_at(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("names")
    letters = st.text(st.sampled_from("ab[]*?^!-"), min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
    for name in data.draw(st.lists(letters, min_size=1, max_size=5)):
        place = folder / "d" / name
        place.parent.mkdir(exist_ok=True)
        if not os.path.lexists(place):
            place.symlink_to("/none")
    pattern = "d/" + data.draw(letters)
    line = f'for each in {pattern.replace("!", "^")}; do [ -L "$each" ] && exit 3; done; exit 0'
    found = subprocess.run(["bash", "-c", line], cwd=folder, check=False).returncode
    assert worktree_paths.leads_out((pattern.replace("!", "^"),), folder) or found == 0


def test_a_pattern_with_more_names_than_are_looked_at_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worktree_paths, "MAX_NAMED", 11)
    for number in range(9):
        (tmp_path / f"{number}.txt").touch()
    assert not worktree_paths.leads_out(("*.txt",), tmp_path)
    (tmp_path / "one-more.txt").touch()
    assert worktree_paths.leads_out(("*.txt",), tmp_path)
