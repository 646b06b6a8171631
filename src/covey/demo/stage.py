"""The demo from its first command to its last: everything that it starts, it stops."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from covey import trash
from covey.cli.frame.output import table
from covey.cli.project.daemon import end
from covey.core.figures import one
from covey.demo import shop
from covey.demo.shop import BAD, FIXES, GOOD, MENDED, Wrong, git
from covey.errors import CoveyError

AGENTS = 4
INTERRUPTED = 130
DEMO_TIMEOUT_S = 300.0
"""Seconds after which a demo that does not end is called off."""
TO_END = 90.0
"""Seconds that what is interrupted gets to end; `covey run` itself gives its sessions a minute."""
TRY = """\
Try it in a repository of your own:

  covey init                              let covey look after it; merge.check in covey.toml is the gate
  covey run --agent scripted "Say hello"  one task, from an agent to main
  covey run -n 4 TODO.md                  a whole list, four at a time, with the agent of your settings
  covey merge queue my/branch             a branch of your own, tested and landed with the others
  covey status                            see who does what
  covey open                              the same in your browser, live, with all that answers it"""


def main(argv: list[str] | None = None) -> int:
    """Play the demo: 0 when all went well, 1 when something is wrong, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="covey demo", description="Let scripted agents mend a sample shop.")
    parser.add_argument("--keep", action="store_true", help="leave the sample repository where it is")
    words = parser.parse_args(argv)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with _folder(keep=words.keep) as folder:
            _play(folder)
    except KeyboardInterrupt:
        print("\nInterrupted; everything that the demo started has been stopped.", file=sys.stderr)
        return INTERRUPTED
    except (Wrong, CoveyError) as error:
        print(f"The demo went wrong: {error}", file=sys.stderr)
        return 1
    print(f"\n{TRY}")
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Begin the end, which a second interrupt must not cut short."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _play(folder: Path) -> None:
    root, tasks = folder / "bookshop", folder / "tasks.jsonl"
    shop.make(root)
    shop.write_tasks(tasks)
    before = shop.answers(root)
    print(f"A bookshop in {root}: its tests pass, and {len(FIXES)} things are wrong all the same.\n")
    print(table([(fix.title, fix.asked, before[fix.key]) for fix in FIXES]))
    print(f"\n$ covey run -n {AGENTS} {tasks.name}\n", flush=True)
    _covey(root, "init")
    try:
        _covey(root, "up")
        _run(root, tasks)
        _queue(root)
        _show_main(root)
        _show_gate(root, folder / "clone")
        _show_answers(before, shop.answers(folder / "clone"))
        _show_why(root)
        print(_mended(root))
        print(_kept_apart(root))
        print(_verify(root))
    finally:
        _covey(root, "down")
    left = _processes_in(folder)
    if left:
        raise Wrong(f"{', '.join(left)} still runs")
    print("Nothing is left running.")


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="covey-demo-")).resolve()
    try:
        yield folder
    finally:
        if keep:
            print(f"\nThe sample repository is in {folder / 'bookshop'}.")
        else:
            trash.remove(folder)


# Commands


def _command(root: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "covey", "-C", str(root), *words]


def _covey(root: Path, *words: str) -> str:
    """Run covey as a person would, and return what it printed; an interrupt waits until it has ended."""
    pipe = subprocess.PIPE
    command, env = _command(root, *words), shop.own_environment()
    child = subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        printed, complaint = child.communicate()
    except KeyboardInterrupt:
        child.communicate()
        raise
    if child.returncode != 0:
        raise Wrong(f"covey {' '.join(words)} ended with {child.returncode}: {(complaint or printed).strip()}")
    return printed


def _told(root: Path, *words: str) -> Any:
    return json.loads(_covey(root, *words, "--json"))


def _run(root: Path, tasks: Path) -> None:
    """Let covey do the tasks while it shows its progress; an interrupt is passed on to it, once."""
    command = _command(root, "run", "-n", str(AGENTS), str(tasks))
    child = subprocess.Popen(command, env=shop.own_environment(), stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        code = child.wait(DEMO_TIMEOUT_S)
    except KeyboardInterrupt:
        end(child, signal.SIGINT, TO_END)
        raise
    except subprocess.TimeoutExpired:
        end(child, signal.SIGINT, TO_END)
        raise Wrong(f"covey run did not end within {DEMO_TIMEOUT_S:g} s") from None
    if code != 0:
        raise Wrong(f"covey run ended with {code}")


# The queue


def _queue(root: Path) -> None:
    """Let branches of people join the queue all at once: they are tested together, and the bad one is found."""
    branches = (*GOOD, BAD)
    for branch in branches:
        shop.make_branch(root, branch)
    print(f"\n{len(branches)} people have branches of their own; they join the queue, and are tested together.\n")
    _covey(root, "merge", "pause", "Until all are here")
    for branch in branches:
        _covey(root, "merge", "queue", branch)
    _show(root, "merge", "queue")
    _covey(root, "merge", "resume")
    merges = _ended(root, branches)
    landings = {merge["landing"] for merge in merges if merge["landing"]}
    _show(root, "merge", "journal", "--limit", str(len(landings)))
    for merge in merges:
        if (merge["state"] == "rejected") is not (merge["branch"] == BAD):
            raise Wrong(f"{merge['branch']} is {merge['state']}")
        if merge["state"] == "rejected":
            _show(root, "merge", "why", merge["id"])


def _ended(root: Path, branches: tuple[str, ...]) -> list[dict[str, Any]]:
    """Wait until every branch has landed or was rejected, and return their merges."""
    deadline = time.monotonic() + DEMO_TIMEOUT_S
    while time.monotonic() < deadline:
        ours = [merge for merge in _told(root, "merge", "list", "--all") if merge["branch"] in branches]
        if all(merge["state"] in ("landed", "rejected") for merge in ours):
            return ours
        time.sleep(0.2)
    raise Wrong(f"the queue did not end within {DEMO_TIMEOUT_S:g} s")


def _show(root: Path, *words: str) -> None:
    print(f"$ covey {' '.join(words)}\n\n{_covey(root, *words).rstrip()}\n", flush=True)


def _show_why(root: Path) -> None:
    """Lead from a line of main to the agent that wrote it."""
    module = "bookshop/cart.py"
    lines = (root / module).read_text(encoding="utf-8").splitlines()
    number = next(number for number, line in enumerate(lines, 1) if "self.lines =" in line)
    _show(root, "why", f"{module}:{number}")


# Afterwards


def _show_main(root: Path) -> None:
    """Show what landed, and make sure that every task did, once."""
    lines = git(root, "log", "--format=%h  %s (%an)", "main").splitlines()
    print("$ git log main\n\n" + "\n".join(lines) + "\n")
    if git(root, "status", "--porcelain"):
        raise Wrong("the checkout of main is not clean")
    missing = [fix.key for fix in FIXES if not git(root, "ls-tree", "main", f"tests/test_{fix.key}.py")]
    if missing:
        raise Wrong(f"main lacks the tests of {', '.join(missing)}")


def _show_gate(root: Path, clone: Path) -> None:
    """Run the gate on main as somebody would who clones it now."""
    git(root, "clone", "--quiet", "--branch", "main", str(root), str(clone))
    if not shop.passes_the_gate(clone):
        raise Wrong("main does not pass the gate")
    print(f"{' '.join(shop.GATE)} passes in a fresh clone of main.\n")


def _show_answers(before: dict[str, str], after: dict[str, str]) -> None:
    print(
        table([("asked", "before", "after"), *((fix.asked, before[fix.key], after[fix.key]) for fix in FIXES)]) + "\n"
    )
    wrong = [fix.key for fix in FIXES if (before[fix.key], after[fix.key]) != (fix.wrong, fix.right)]
    if wrong:
        raise Wrong(f"{', '.join(wrong)} is not mended")


def _mended(root: Path) -> str:
    """Say what the gate kept out."""
    tried = {task["title"]: task["failed_tries"] for task in _told(root, "task", "list")}
    again = next(fix.title for fix in FIXES if fix.key == MENDED)
    if tried.get(again) != 1:
        raise Wrong(f"{again!r} should have failed the gate once")
    return f"The gate kept one change out: {again!r} was rejected, went back, and landed mended."


def _kept_apart(root: Path) -> str:
    """Say which agents came close to each other, and that they knew."""
    tasks = {task["id"]: task for task in _told(root, "task", "list")}
    met = [event["data"] for event in _told(root, "log", "--kind", "overlap.found") if event["data"]["level"] != "file"]
    told = [event["data"]["task"] for event in _told(root, "log", "--kind", "mail.sent") if event["actor"] == "covey"]
    lines = []
    for pair in met:
        one, other = (tasks.get(pair[side]) for side in ("one", "other"))
        if one is not None and other is not None and {one["id"], other["id"]} <= set(told):
            lines.append(
                f"{one['session']} and {other['session']} changed {', '.join(pair['files'])} next to each other:"
                " covey saw it before either landed, and told both."
            )
    return "\n".join(lines) or "The radar had nothing to tell this time."


def _verify(root: Path) -> str:
    """Let covey fold the log again and compare it with every row."""
    said = _told(root, "log", "verify")
    if not said["sound"]:
        raise Wrong(f"covey log verify found {one(said['count'], 'problem')}: {said['problems'][0]}")
    return f"covey log verify: {one(said['events'], 'event')} and {one(said['rows'], 'row')}, all sound."


def _processes_in(folder: Path) -> list[str]:
    """Return the processes that work in a folder or were started with it, where the system can tell."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            here = Path(os.readlink(entry / "cwd")).is_relative_to(folder)
        except OSError:
            continue  # ended meanwhile, or another user's
        if int(entry.name) != os.getpid() and (here or any(os.fsencode(folder) in word for word in words)):
            found.append(f"{entry.name} ({os.fsdecode(b' '.join(words)).strip()})")
    return found
