"""covey task diff and covey comment, with and without a daemon."""

from __future__ import annotations

import json

from tests.worlds.shell import Shell


def worked(shell: Shell) -> None:
    """Let ada do T-1 and hand it in."""
    shell.ok("task", "add", "Mend it")
    shell.ok("task", "claim", "T-1", "--as", "ada")
    shell.git("checkout", "-q", "-b", "covey/T-1")
    (shell.folder / "login.py").write_text("import os\nuser = users[0]\n\x1b]8;;http://x\x07link\n")
    (shell.folder / "two").write_text("".join(f"line {number} of very many\n" for number in range(9000)))
    shell.git("add", "login.py", "two")
    shell.git("commit", "-q", "-m", "Work")
    head = shell.git("rev-parse", "HEAD").strip()
    shell.git("checkout", "-q", "trunk")
    shell.ok("task", "handin", "T-1", "--as", "ada", "--commit", head)


def test_a_person_reviews_without_a_daemon(shell: Shell) -> None:
    worked(shell)
    shown = shell.ok("task", "diff", "T-1")
    assert "login.py  (added, +3 -0)" in shown and "+user = users[0]" in shown and "\x1b" not in shown
    assert shown.count("\n+line ") == 9000, "what does not fit in one answer is asked for"
    assert "login.py" not in shell.ok("task", "diff", "T-1", "two")
    stat = shell.ok("task", "diff", "T-1", "--stat")
    assert "2 files, +9003 -0" in stat and "login.py      3 +" in stat
    assert json.loads(shell.ok("task", "diff", "T-1", "--json"))["branch"] == "covey/T-1"

    assert "comment-" in shell.ok("comment", "add", "T-1", "login.py:2", "What", "if", "there is none?")
    shell.ok("comment", "add", "T-1", "-", "Well done otherwise.")
    listed = shell.ok("comment", "list", "T-1")
    assert "login.py:2" in listed and "> user = users[0]" in listed and "the work as a whole" in listed
    second = json.loads(shell.ok("comment", "list", "--json"))[1]["id"]
    shell.ok("comment", "remove", second)
    sent = shell.ok("comment", "send", "T-1")
    assert sent == "Sent 1 comment to ada.\ncovey does not run ada: it finds the message when it looks.\n"
    assert "What if there is none?" in shell.ok("mail", "inbox", "--as", "ada", "--json")
    assert "sent to ada" in shell.ok("comment", "list", "T-1")
    assert shell.run("comment", "send", "T-1").returncode != 0
    back = shell.ok("comment", "send", "T-1", "Mend that.", "--back")
    assert back.startswith("Sent T-1 back to ada.")
    assert "todo" in shell.ok("task", "show", "T-1")


def test_what_is_not_there_is_said_in_a_sentence(shell: Shell) -> None:
    shell.ok("task", "add", "Mend it")
    for words in (("task", "diff", "T-1"), ("task", "diff", "T-9"), ("comment", "add", "T-1", "a.py:3", "Why?")):
        done = shell.run(*words)
        assert done.returncode != 0 and "Traceback" not in done.stderr and done.stderr
    assert shell.ok("comment", "list") == "No comments.\n"
