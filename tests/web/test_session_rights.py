"""A session's token at a real daemon: what it is refused, what becomes a proposal, and what it is not shown."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from covey.app.verbs import VERBS
from tests.worlds.forked import run_covey
from tests.worlds.serving import Client, Daemon, Follower, Reply, serving

SECRET = "meet me at the old harbour"
MANY = 60
END = "the end of the story"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Serve a repository with sixty files in some folders, two of which halve them, and two files in another."""
    folder = tmp_path_factory.mktemp("rights") / "repo"
    with serving(folder) as served:
        for number in range(MANY):
            _write(folder / "many" / f"{number}.py")
            _write(folder / "many.d" / f"{number}.py")
            _write(folder / "parts" / "ab"[number % 2] / f"{number}.py")
        _write(folder / "few" / "a.py")
        _write(folder / "few" / "b.py")
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
        subprocess.run(["git", *author, "commit", "-qm", "files"], cwd=folder, check=True)
        yield served


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n")


class Session:
    """A session that speaks with its own token."""

    def __init__(self, daemon: Daemon, name: str) -> None:
        self.name = name
        with Client(daemon.port, daemon.token) as owner:
            owner.post("/api/sessions", {"name": name})
            self.token = owner.post(f"/api/sessions/{name}/token")["token"]
        self._port = daemon.port

    def ask(self, method: str, path: str, body: Any = None) -> Reply:
        """Ask, whatever comes of it."""
        with Client(self._port, self.token) as client:
            return client.ask(method, path, body)


def test_without_a_token_nothing_is_answered_at_all(daemon: Daemon) -> None:
    with Client(daemon.port, "nobody's") as client:
        for verb in VERBS.values():
            path = verb.path.format(**dict.fromkeys(verb.params, "x"))
            reply = client.ask(verb.method, path, None if verb.method == "GET" else {})
            assert reply.status == 401, verb.name


def test_a_wide_lease_is_proposed_and_a_small_one_taken(daemon: Daemon) -> None:
    eve = Session(daemon, "eve-leases")
    for glob in ("**", "many/**", "many", "*/*.py", "repo:"):
        assert eve.ask("POST", "/api/leases", {"resources": [glob]}).status == 202, glob
    assert eve.ask("POST", "/api/leases", {"resources": ["few/**"]}).status == 201
    with Client(daemon.port, daemon.token) as owner:
        held = [lease["resources"] for lease in owner.get("/api/leases?session=eve-leases")]
        assert held == [["few/**"]]
        assert owner.post("/api/leases", {"resources": ["many/**"]})["holder"] == "owner", "nobody failed by that"


def test_many_small_leases_are_no_wide_one_and_a_folder_is_one_whatever_its_name(daemon: Daemon) -> None:
    eve, zoe = Session(daemon, "eve"), Session(daemon, "zoe")
    assert eve.ask("POST", "/api/leases", {"resources": ["parts/a/**"]}).status == 201
    assert eve.ask("POST", "/api/leases", {"resources": ["parts/b/**"]}).status == 202, "30 and 30 are more than 50"
    assert zoe.ask("POST", "/api/leases", {"resources": ["parts/b/**"]}).status == 201, "for another it is the first"
    assert eve.ask("POST", "/api/leases", {"resources": ["parts/a/**"]}).status == 201, "what it has it may ask again"
    assert zoe.ask("POST", "/api/leases", {"resources": ["many.d"]}).status == 202


def test_patterns_that_cover_everything_together_are_proposed_like_one_that_does(tmp_path: Path) -> None:
    with serving(tmp_path / "small") as daemon:
        ada = Session(daemon, "ada")
        assert ada.ask("POST", "/api/leases", {"resources": ["*"]}).status == 201
        assert ada.ask("POST", "/api/leases", {"resources": ["docs/**"]}).status == 201
        assert ada.ask("POST", "/api/leases", {"resources": ["*/**"]}).status == 202, "with * it is every file"


def test_a_flood_of_hooks_ends_and_others_go_on(tmp_path: Path) -> None:
    with serving(tmp_path / "repo", settings="[limits]\nchanges = 20\n") as daemon:
        eve, zoe = Session(daemon, "eve"), Session(daemon, "zoe")

        def writes(who: Session, path: str) -> Reply:
            body = {"tool_name": "Write", "cwd": str(tmp_path / "repo"), "tool_input": {"file_path": path}}
            return who.ask("POST", "/hooks/PostToolUse", body)

        said = [writes(eve, f"made/up/{number}.py").status for number in range(40)]
        assert said[0] == 200 and said[-1] == 429
        assert len(daemon.ask("GET", "/api/leases?session=eve").good()) < len(said)
        assert writes(zoe, "src/mine.py").status == 200
        (lease,) = daemon.ask("GET", "/api/leases?session=zoe").good()
        assert lease["resources"] == ["src/mine.py"]


def test_the_stream_tells_a_session_no_words_of_others_also_after_a_loss(daemon: Daemon) -> None:
    eve, bob = Session(daemon, "eve-stream"), Session(daemon, "bob-stream")
    with ExitStack() as stack:
        owner = stack.enter_context(Client(daemon.port, daemon.token))
        before = owner.get("/api/status")["seq"]
        tokens = (eve.token, bob.token, daemon.token)
        hers, live, all_of_it = (stack.enter_context(Follower(daemon, token=token)) for token in tokens)
        bob.ask("POST", "/api/questions", {"text": SECRET}).good(201)
        eve.ask("POST", "/api/questions", {"text": "Which port?"}).good(201)
        owner.post("/api/board", {"title": END})
        missed = stack.enter_context(Follower(daemon, after=before, token=eve.token))
        for follower in (hers, live, all_of_it, missed):
            follower.wait_for(lambda frames: any(END in str(frame.data) for frame in frames), "the end of the story")
    assert SECRET not in str(hers.frames) and SECRET not in str(missed.frames)
    assert "Which port?" in str(hers.of("alerts")) and "Which port?" in str(missed.of("alerts"))
    assert SECRET in str(live.of("alerts")) and SECRET in str(all_of_it.of("alerts"))


def test_status_and_sessions_do_not_show_what_another_did_last(daemon: Daemon) -> None:
    eve, bob = Session(daemon, "eve-status"), Session(daemon, "bob-status")
    bob.ask("POST", "/api/mail", {"to": "owner", "text": SECRET}).good(201)
    for path in (
        "/api/sessions",
        "/api/status",
        "/api/log?limit=1000&newest=true",
        "/api/trail?limit=1000&newest=true",
    ):
        assert SECRET.encode() not in eve.ask("GET", path).body, path
        assert SECRET.encode() in bob.ask("GET", path).body, path


def test_the_command_line_says_that_a_person_decides(daemon: Daemon) -> None:
    eve = Session(daemon, "eve-shell")
    with Client(daemon.port, daemon.token) as owner:
        task = owner.post("/api/board", {"title": "Mine"})["id"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVEY_")}
    env |= {"COVEY_TOKEN": eve.token, "COVEY_URL": f"http://127.0.0.1:{daemon.port}"}
    words = ("task", "edit", task, "--title", "Hers")
    folder = daemon.project.root
    said = run_covey(words, cwd=folder, env=env, stdin=None, timeout=60)
    assert said.returncode == 9 and said.stdout.startswith("Proposed as proposal-"), said
    printed = run_covey((*words, "--json"), cwd=folder, env=env, stdin=None, timeout=60)
    proposal = json.loads(printed.stdout)
    assert (printed.returncode, proposal["state"], proposal["target"]) == (9, "open", task)
    for name in ("COVEY_TOKEN", "COVEY_URL"):
        del env[name]
    listed = run_covey(("inbox",), cwd=folder, env=env, stdin=None, timeout=60).stdout
    assert proposal["id"] in listed and "change title" in listed
    accepted = run_covey(("proposal", "accept", proposal["id"]), cwd=folder, env=env, stdin=None, timeout=60)
    assert accepted.returncode == 0 and "eve-shell is told" in accepted.stdout, accepted
    with Client(daemon.port, daemon.token) as owner:
        assert owner.get(f"/api/board/{task}")["title"] == "Hers"
