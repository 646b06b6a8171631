"""An upgrade in place, with everything under way: what the version before began, this one takes up and ends."""

from __future__ import annotations

import configparser
import json
import shlex
import shutil
import subprocess
import sysconfig
import tarfile
import tomllib
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.worlds.projects import PATIENCE, SCRIPTED, Line, alive, kill, make_line
from tests.worlds.serving import wait_until

CHECKOUT = Path(__file__).parents[3]
BEFORE = "c7aabff"
"""The last version before modules moved into rooms: agents, gates and hooks hold paths of the old layout."""
GATE = """[merge]
slots = 1
check = "echo x >> $OUTSIDE/gates; while [ ! -e $OUTSIDE/pass ]; do sleep 0.1; done; test ! -e bad"
"""


@dataclass
class Installed(Line):
    """A project whose covey is installed in an environment of its own, as a user's is."""

    install: Path

    @property
    def python(self) -> Path:
        """Return the Python in which covey is installed."""
        return self.install / "bin" / "python"

    def run(self, *words: str, at: Path | None = None) -> CompletedProcess[str]:
        """Run the installed covey and return how it ended."""
        return subprocess.run(
            [self.python, "-E", "-P", "-m", "covey", *words], cwd=at or self.root, env=self.env,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip

    def put_version(self, source: Path, project: Path) -> None:
        """Replace the installed version, file by file where files are called alike, by another."""
        shutil.rmtree(self.install / "src", ignore_errors=True)
        shutil.copytree(source, self.install / "src")
        named = tomllib.loads(project.read_text())["project"]
        points = configparser.ConfigParser(delimiters="=")
        points.read_dict(named["entry-points"])
        folder = self.site / "covey-0.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: covey\nVersion: 0\n")
        with (folder / "entry_points.txt").open("w") as file:
            points.write(file)

    @property
    def site(self) -> Path:
        """Return where the environment keeps what is installed."""
        base = str(self.install)
        return Path(sysconfig.get_path("purelib", scheme="venv", vars={"base": base, "platbase": base}))


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Installed]:
    """Return a project with the version before, in an environment that shares our libraries and nothing else."""
    packed = subprocess.run(["git", "archive", BEFORE], cwd=CHECKOUT, capture_output=True, check=False)
    assert packed.returncode == 0, f"git has no {BEFORE} here; git fetch --unshallow brings it"
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as tar:
        tar.extractall(tmp_path / "before")
    plain = make_line(tmp_path / "line", init=False)
    made = Installed(plain.folder, plain.root, plain.env, tmp_path / "line" / "install")
    venv.EnvBuilder(symlinks=True).create(made.install)
    (made.site / "installed.pth").write_text(f"{made.install / 'src'}\n{sysconfig.get_path('purelib')}\n")
    made.put_version(tmp_path / "before" / "src", tmp_path / "before" / "pyproject.toml")
    yield made
    made.end()


def _at_work(line: Line, number: int) -> str:
    """Return a script that commits while no daemon answers and again when it may go on, as its guard lets it."""
    return (
        f"run echo $COVEY_SESSION >> {line.mark('starts')}\n"
        f"run while [ ! -e {line.mark('between')} ]; do sleep 0.1; done\n"
        f"write early/{number}\n    {number}\ncommit Early {number}\n"
        f"run echo $COVEY_SESSION >> {line.mark('committed')}\n"
        f"run while [ ! -e {line.mark('go')} ]; do sleep 0.1; done\n"
        f"run covey task show\nwrite files/{number}\n    {number}\ncommit File {number}\n"
    )


def _agents(line: Line) -> dict[str, int]:
    """Return the agents at work, by their runs; a gate is begun again by a new daemon."""
    return {run: pid for run, pid in line.agents().items() if run.startswith("run-")}


def _hook_answers(line: Line) -> list[tuple[str, int, str]]:
    """Return what each hook that was installed by hand says to an agent that is about to write what rita holds."""
    hooks = json.loads((line.root / ".claude" / "settings.local.json").read_text())["hooks"]
    told = {"session_id": "11111111-1111-4111-8111-111111111111", "cwd": str(line.root), "tool_name": "Write"}
    written = {"tool_input": {"file_path": str(line.root / "held" / "a.txt"), "content": "x"}, "tool_use_id": "t1"}
    said = []
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"):
        (group,) = hooks[event]
        words = group["hooks"][0]["command"]
        asked = told | written | {"hook_event_name": event, "prompt": "go", "source": "startup"}
        done = subprocess.run(
            shlex.split(words), cwd=line.root, env=line.env, input=json.dumps(asked), capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.stderr == "", (event, done.stderr)
        said.append((event, done.returncode, done.stdout))
    return said


def _stop(line: Installed, daemon: int) -> None:
    line.ok("down")


def _kill(line: Installed, daemon: int) -> None:
    kill([daemon])
    wait_until(lambda: not alive(daemon), "the daemon's end")


@pytest.mark.timeout(900)  # many commands, each a program that starts, and not a hang, on a busy machine
@pytest.mark.parametrize("end", [_stop, _kill], ids=["stopped", "killed"])
def test_what_the_version_before_began_this_one_takes_up_and_ends(
    line: Installed, end: Callable[[Installed, int], None]
) -> None:
    line.ok("init")
    line.settings(SCRIPTED, GATE)
    daemon = line.up()
    # A merge under test and one behind it, two agents at work (one in a terminal), a person with a lease, a question.
    first, second = (_landing(line, name) for name in ("one", "two"))
    wait_until(lambda: line.marks("gates") == ["x"], "the gate")
    working = [_add(line, f"Work {number}", _at_work(line, number)) for number in range(2)]
    line.settings('[sessions]\nagent = "scripted"\nrunner = "tmux"\n', GATE)
    line.start_session("ada")
    wait_until(lambda: len(line.marks("starts")) == 1, "an agent in a terminal")
    line.settings(SCRIPTED, GATE)
    line.start_session("bob")
    wait_until(lambda: len(line.marks("starts")) == 2, "both agents at work")
    asked = _add(line, "Ask", "ask Which colour?\nwrite colour.txt\n    {answer}\ncommit The colour\n")
    line.start_session("eve")
    wait_until(lambda: line.json("inbox"), "the question")
    mine = _add(line, "By hand", kind="report")
    claimed = line.json("task", "next", "--as", "rita")
    assert claimed["id"] == mine
    line.ok("lease", "take", "held/**", "--as", "rita", "--task", mine)
    line.ok("mail", "send", "rita", "Mind the gap.")
    line.ok("hooks", "install")
    said = _hook_answers(line)
    assert any("rita" in words for event, _, words in said if event == "PreToolUse"), said
    agents, events = _agents(line), line.json("log", "-n", "1000")

    end(line, daemon)
    line.put_version(CHECKOUT / "src", CHECKOUT / "pyproject.toml")
    away = _hook_answers(line)
    assert {code for _, code, _ in away} == {0}, away
    line.mark("between").touch()
    wait_until(lambda: len(line.marks("committed")) == 2, "what agents commit before the new daemon is up")
    line.ok("log", "verify")
    line.up()

    assert _agents(line) == agents
    assert line.json("log", "-n", "1000")[: len(events)] == events
    assert [code for _, code, _ in _hook_answers(line)] == [code for _, code, _ in said]
    assert any("rita" in words for event, _, words in _hook_answers(line) if event == "PreToolUse")
    assert [message["text"] for message in line.json("mail", "inbox", "--as", "rita")] == ["Mind the gap."]
    line.ok("task", "handin", mine, "--as", "rita", "--fence", str(claimed["fence"]), "--result", "Done.")
    line.ok("answer", "green")
    line.mark("go").touch()
    line.mark("pass").touch()
    for task in (first, second, *working, asked, mine):
        line.wait_for(task, "done")
    assert line.marks("starts") == ["ada", "bob"]
    assert sorted(line.landed()) == ["Ask", "Work 0", "Work 1", "one", "two"]
    assert line.git("show", "main:colour.txt") == "green"
    line.assert_green("test ! -e bad")
    line.ok("hooks", "remove")
    line.ok("down", "--agents")
    line.ok("log", "verify")


def _add(line: Line, title: str, body: str = "", **more: str) -> str:
    with line.client() as client:
        task: dict[str, Any] = client.post("/api/board", {"title": title, "body": body} | more)
        return str(task["id"])


def _landing(line: Installed, name: str) -> str:
    """Hand in a piece of work of somebody outside, and return its task."""
    task = _add(line, name)
    fence = line.json("task", "claim", task, "--as", "rita")["fence"]
    line.git("checkout", "-q", "-b", name)
    commit = line.commit(f"{name}.txt", name, name)
    line.git("checkout", "-q", "main")
    line.ok("task", "handin", task, "--as", "rita", "--fence", str(fence), "--commit", commit)
    return task
