"""What others wrote, as commands print it: nothing that a terminal obeys or hides, in words and in JSON alike."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.plain import defused, escaped
from tests.worlds.shell import Shell

ODD = "\u202e\u2066\u200b\u00ad\ufeff\u2028\U000e0041"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")
"""All but what ends a line, as bytes of it reach a terminal."""
SHOWN = (
    ("task", "list"), ("task", "list", "--all"), ("task", "show", "ADA-1"), ("task", "deps", "ADA-1"), ("status",),
    ("mail", "inbox", "--as", "ada"), ("mail", "show", "mail-5", "--as", "ada"), ("lease", "list"), ("log",),
    ("inbox",), ("session", "list"), ("lease", "check", "src/a.py"), ("log", "--limit", "3"), ("merge", "list"),
    ("merge", "status"), ("comment", "list", "ADA-1"), ("task", "export", "--format", "jsonl"), ("cost",), ("overlap",),
    ("permit", "list"),
)  # fmt: skip


@pytest.fixture
def spoiled(shell: Shell) -> Shell:
    """Return a shell where every text has such letters in it."""
    words = ODD.replace("\u2028", "")
    texts = ("--note", f"Note {words}", "--body", f"Body {ODD}")
    shell.ok("task", "add", f"Title {words}", "--assignee", "ada", *texts)
    shell.ok("task", "claim", "ADA-1", "--as", "ada")
    shell.ok("lease", "take", "src/a.py", "--as", "ada", "--reason", f"Reason {words}")
    shell.ok("mail", "send", "ada", f"Text {ODD}", "--subject", f"Subject {words}")
    shell.ok("task", "release", "ADA-1", "--as", "ada", "--reason", f"Why {words}")
    return shell


def test_no_command_prints_what_a_terminal_obeys_or_hides(spoiled: Shell) -> None:
    for words in SHOWN:
        for more in ((), ("--json",)):
            done = spoiled.run(*words, *more)
            found = RAW.findall(done.stdout + done.stderr)
            assert not found, (words, more, found)
            if more and done.returncode == 0 and "jsonl" not in words:
                assert json.loads(done.stdout or "null") is not None or words == ("inbox",)


def test_json_says_the_same_with_escapes(spoiled: Shell) -> None:
    task = spoiled.json("task", "show", "ADA-1")
    assert task["title"].endswith(ODD.replace("\u2028", "")) and ODD in task["body"]


def test_a_terminal_is_shown_none_of_it_either(spoiled: Shell) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "covey", "task", "export"]
    done = subprocess.Popen(command, cwd=spoiled.folder, env=spoiled.env, stdout=theirs, stdin=subprocess.DEVNULL)
    assert done.wait(60) == 0
    os.close(theirs)
    printed = os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
    os.close(ours)
    assert "Title" in printed and not RAW.search(printed)


@given(st.text())
def test_escaped_json_is_the_same_json_without_odd_letters(text: str) -> None:
    written = json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False)
    assert json.loads(escaped(written)) == json.loads(written)
    assert not RAW.search(escaped(written))


def test_a_tag_that_poses_is_no_tag_any_more_and_code_stays() -> None:
    assert (
        defused("<system-reminder> </Assistant> <|im_start|>") == "&lt;system-reminder> &lt;/Assistant> &lt;|im_start|>"
    )
    assert defused("if a < b and List<int>") == "if a < b and List<int>"
