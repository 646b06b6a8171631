"""Real sessions that change the same line: each is told once, and tasks on a file that is hot wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.worlds.projects import GOOD, SCRIPTED, Line, alive, kill
from tests.worlds.serving import wait_until

FILE = "".join(f"line {number}\n" for number in range(1, 10))


def _body(line: Line, name: str, text: str) -> str:
    """Return a script: change the third line of the menu, say so, and wait."""
    lines = [f"    {each}" for each in FILE.replace("line 3\n", f"{text}\n").splitlines()]
    write = "\n".join(["write menu.txt", *lines, f"commit {name}"])
    return f"{write}\nrun echo {name} >> {line.mark('committed')}\nwait for {line.mark(f'go-{name}')}\n"


def _begin(line: Line, name: str) -> str:
    """Let a session begin a task that changes the menu, and return the task."""
    asked = ("task", "add", f"Change the menu for {name}", "--assignee", name, "--body", _body(line, name, name))
    task = str(line.json(*asked)["id"])
    line.ok("session", "new", name, "--agent", "scripted")
    line.ok("session", "start", name)
    wait_until(lambda: name in line.marks("committed"), f"the commit of {name}")
    return task


def _told(line: Line) -> list[tuple[str, str]]:
    """Return whom covey told of overlaps, and what."""
    sent = [event for event in line.events("mail.sent") if event["actor"] == "covey"]
    return [(event["data"]["to"], event["data"]["text"]) for event in sent if "conflicts with" in event["data"]["text"]]


def _overlaps(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = line.json("overlap")
    return found


def test_two_sessions_that_change_the_same_line_are_told_once_also_after_the_daemon_was_killed(
    made: Callable[..., Line],
) -> None:
    line = made(SCRIPTED, GOOD, files={"menu.txt": FILE})
    pid = line.up()
    one, other = _begin(line, "ada"), _begin(line, "bob")
    wait_until(lambda: len(_told(line)) == 2, "word to both")
    told = dict(_told(line))
    assert f'{one} conflicts with {other} ("Change the menu for bob"), at which bob is at work' in told["ada"]
    assert f'{other} conflicts with {one} ("Change the menu for ada"), at which ada is at work' in told["bob"]
    assert all("menu.txt" in text for text in told.values())
    (found,) = _overlaps(line)["overlaps"]
    assert (found["one"], found["other"], found["level"], found["files"]) == (one, other, "conflict", ["menu.txt"])
    assert (found["one_session"], found["other_session"]) == ("ada", "bob")
    kill([pid])
    wait_until(lambda: not alive(pid), "the end of the daemon")
    line.up()
    third = _begin(line, "carol")
    wait_until(lambda: {to for to, text in _told(line) if third in text} == {"ada", "bob", "carol"}, "word of a third")
    told_of_two = [to for to, text in _told(line) if third not in text]
    assert sorted(told_of_two) == ["ada", "bob"], "nobody heard of the first two again"
    assert len(_told(line)) == 5
    shown = line.ok("overlap", one)
    assert f"conflict with {other} (bob): Change the menu for bob" in shown
    assert "menu.txt" in shown
    assert "conflict" in line.ok("overlap")


def test_tasks_on_a_hot_file_are_done_one_after_another(made: Callable[..., Line]) -> None:
    line = made(SCRIPTED, GOOD, "[overlap]\nhot = 1\n", files={"menu.txt": FILE})
    line.up()
    _begin(line, "ada")
    second = _begin(line, "bob")
    wait_until(lambda: [file["path"] for file in _overlaps(line)["hot"]] == ["menu.txt"], "a hot file")
    assert [alert for alert in line.alerts() if alert.startswith("menu.txt is hot: 1 collision within")]
    assert "menu.txt" in line.ok("overlap").partition("Hot:")[2]
    line.ok("task", "drop", second, "--reason", "one is enough")
    body = (
        f"run echo x >> {line.mark('third')}\nwait for {line.mark('go-third')}\nwrite third.txt\n    x\ncommit third\n"
    )
    third = str(line.json("task", "add", "Look at menu.txt once more", "--assignee", "carol", "--body", body)["id"])
    line.ok("session", "new", "carol", "--agent", "scripted")
    line.ok("session", "start", "carol")
    elsewhere = body.replace("third", "fourth")
    line.ok("task", "add", "Something else", "--assignee", "carol", "--body", elsewhere)
    wait_until(lambda: line.marks("fourth") == ["x"], "carol at what does not have to wait")
    assert line.task(third)["status"] == "todo"
    later = str(line.json("task", "add", "And menu.txt yet again", "--status", "backlog")["id"])
    said = line.ends(5, "task", "claim", later, "--as", "dora")
    assert "menu.txt, where tasks collide again and again" in said
    assert "--overlap" in said
    line.mark("go-fourth").touch()
    line.mark("go-ada").touch()
    wait_until(lambda: line.marks("third") == ["x"], "carol at the menu when ada is through with it")
    line.mark("go-third").touch()
    line.wait_for(third, "done")
