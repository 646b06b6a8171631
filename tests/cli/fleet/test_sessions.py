"""Several sessions by one command: made, started, stopped, removed; and all of them brought back after covey down."""

from __future__ import annotations

import json
from argparse import Namespace
from types import SimpleNamespace
from typing import cast

import pytest

from covey.cli.fleet import session
from covey.cli.frame.client import Client
from tests.worlds.shell import Shell


def goals(shell: Shell) -> dict[str, str]:
    """Return what each session shall do."""
    return {each["name"]: each["goal"] for each in shell.json("session", "list")}


def test_sessions_are_made_and_started_by_one_command_that_needs_no_name(shell: Shell) -> None:
    said = shell.fails(2, "session", "new", "--start", env={"PATH": "/nowhere"})
    assert "The agent claude cannot be started: there is no program claude on the PATH" in said
    assert "covey was not up" in shell.ok("down"), "what cannot work starts no daemon"
    assert "covey session new -n 4 --start" in shell.fails(2, "session", "new")
    assert "--wip is for a session of your own" in shell.fails(2, "session", "new", "-n", "2", "--wip", "3")
    known = shell.ok("session", "new", "ada", "bob", "--agent", "scripted")
    assert known == "ada and bob with scripted are known; covey session start ada bob lets them work\n"
    assert [each["name"] for each in shell.json("session", "new", "rita", "tom", "--role", "qa")] == ["rita", "tom"]
    assert shell.verb("session.new", "session", "new", "eve", "--agent", "scripted")["goal"] == "stopped"
    assert shell.fails(5, "session", "new", "ada", "--agent", "scripted")
    assert goals(shell) == dict.fromkeys(["ada", "bob", "eve", "rita", "tom"], "stopped")


def test_several_sessions_are_told_by_one_command_and_each_refusal_is_told(served: Shell) -> None:
    said = served.ok("session", "new", "-n", "3", "--agent", "scripted", "--start")
    assert said == "worker-1, worker-2 and worker-3 work the board with scripted until covey session stop --all\n"
    done = served.run("session", "stop", "worker-1", "nobody", "worker-2")
    assert (done.returncode, done.stdout) == (4, "Stopped worker-1\nStopped worker-2\n")
    assert done.stderr.startswith("covey: There is no session 'nobody'.\n")
    assert goals(served) == {"worker-1": "stopped", "worker-2": "stopped", "worker-3": "working"}
    one = served.verb("session.start", "session", "start", "worker-1")
    assert one["goal"] == "working", "one that is named is a row, as ever"
    done = served.run("session", "pause", "worker-1", "worker-2", "--json")
    assert [each["name"] for each in json.loads(done.stdout)] == ["worker-1"]
    assert (done.returncode, json.loads(done.stderr)["error"]) == (5, "worker-2 does not work.")
    assert "Name the sessions, or say --all" in served.fails(2, "session", "start")
    assert "exclude each other" in served.fails(2, "session", "stop", "worker-1", "--all")


def test_after_down_with_its_agents_one_command_brings_back_who_worked(served: Shell) -> None:
    served.ok("session", "new", "ada", "bob", "kim", "--agent", "scripted", "--start")
    served.ok("session", "stop", "kim")
    told = served.json("down", "--agents")
    assert (told["stopped"], told["back"]) == (True, ["ada", "bob"])
    assert "covey up --agents brings back ada, bob." in served.ok("down", "--agents"), "also said again"
    assert "Back: ada, bob." in served.ok("up", "--agents")
    assert goals(served) == {"ada": "working", "bob": "working", "kim": "stopped"}
    assert served.json("up", "--agents")["sessions"] == []
    back = served.ok("session", "stop", "--all")
    assert back.startswith("Stopped ada and bob; ")
    assert back.endswith("covey up --agents brings them back\n")
    assert served.ok("session", "start", "--all") == "ada, bob and kim work the board until covey session stop --all\n"
    assert served.ok("session", "start", "--all").startswith("No session is stopped")
    removed = served.ok("session", "remove", "ada", "bob", "kim")
    assert removed == "Removed ada\nRemoved bob\nRemoved kim\n"
    assert goals(served) == {}


def test_a_stopped_session_is_called_so_in_the_list_and_when_asked_why(shell: Shell) -> None:
    assert shell.ok("session", "list") == "There are no sessions; covey session new --start adds one.\n"
    shell.ok("session", "new", "ada", "--agent", "scripted")
    assert shell.ok("session", "list").split()[:2] == ["ada", "stopped"]
    assert shell.ok("session", "why", "ada").startswith("ada is stopped\n")


def test_all_that_are_stopped_are_removed_by_one_command_and_by_force_all(served: Shell) -> None:
    served.ok("session", "new", "own")
    served.ok("session", "new", "ada", "bob", "--agent", "scripted")
    served.ok("session", "new", "eve", "--agent", "scripted", "--start")
    assert "exclude each other" in served.fails(2, "session", "remove", "ada", "--all")
    assert served.ok("session", "remove", "--all") == "Removed ada\nRemoved bob\n"
    assert goals(served).keys() == {"own", "eve"}
    assert served.json("session", "remove", "--all") == []
    assert [each["name"] for each in served.json("session", "remove", "--all", "--force")] == ["eve"]
    assert goals(served).keys() == {"own"}


def test_who_removes_a_worker_of_their_own_at_work_is_told_how(shell: Shell) -> None:
    shell.ok("task", "add", "Mend it")
    shell.ok("task", "next", "--as", "rita")
    said = shell.fails(5, "session", "remove", "rita")
    assert "rita is at work" in said and "covey session stop" not in said
    assert "covey session remove rita --force" in said and "covey task release ID --as rita" in said
    shell.ok("task", "release", "T-1", "--as", "rita")
    shell.ok("session", "remove", "rita")


def test_a_removed_session_is_told_as_such(shell: Shell) -> None:
    shell.ok("session", "new", "ada", "--agent", "scripted")
    shell.ok("session", "remove", "ada")
    said = shell.fails(4, "session", "why", "ada")
    assert "ada was removed, 20" in said and "covey session logs" not in said
    assert "There is no session" in shell.fails(4, "session", "why", "eve")


@pytest.mark.parametrize(
    ("printed", "alive", "said"),
    [
        (0, False, "run-30 printed nothing."),
        (0, True, "run-30 has printed nothing yet."),
        (21, False, "run-30 has told nothing to read; --raw shows what it printed."),
        (21, True, "run-30 has told nothing to read yet; --raw shows what it printed."),
    ],
)
def test_logs_of_a_run_without_a_word_say_whether_it_printed_anything(
    capsys: pytest.CaptureFixture[str], printed: int, alive: bool, said: str
) -> None:
    def ask(verb: str, params: object = None, fields: object = None) -> SimpleNamespace:
        part = {"run": "run-30", "text": "", "next": printed, "alive": alive, "transcript": False}
        return SimpleNamespace(value=part, body=json.dumps(part))

    given = {"runs": False, "tail": None, "run": None, "raw": False, "follow": False, "json": False, "name": "ada"}
    session.logs(Namespace(**given), cast("Client", SimpleNamespace(ask=ask)))
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"{said}\n")
