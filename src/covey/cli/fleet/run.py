"""covey run: some tasks from the first word to main, and nothing else to do."""

from __future__ import annotations

import json
import secrets
import signal
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from covey import config
from covey.agents import registry
from covey.agents.declared import check
from covey.cli import exporting, importing
from covey.cli.client import Client
from covey.cli.command import Command, Parser, whole_number
from covey.cli.daemon import died, ensure_up, ensure_while_needed, errand, leave, obituary
from covey.cli.progress import Story
from covey.cli.report import Report
from covey.config import AgentSettings, Config
from covey.core import batches
from covey.core.figures import one
from covey.errors import CoveyError, Invalid, Refused, Unavailable
from covey.git.fitness import unfit
from covey.git.project import Project
from covey.git.run import try_git
from covey.git.worktrees import Worktrees, default_folder
from covey.installation import step_back
from covey.store.lock import NeedLock

LOOK_EVERY = 0.15
CLEAN_UP = 60.0
"""Seconds that sessions have to put their work in safety and go."""
LANDED, NOT_ALL, INTERRUPTED = 0, 1, 130


class Interrupted(Exception):
    """The person wants us to end."""


def _arguments(parser: Parser) -> None:
    parser.add_argument(
        "tasks",
        nargs="*",
        metavar="TITLE",
        help="a title for each task, or one file: TODO.md, tasks.jsonl (default: all that waits on the board)",
    )
    parser.add_argument("-n", dest="sessions", type=whole_number(1, 1000), metavar="N", help="how many agents at once")
    parser.add_argument("--agent", metavar="AGENT", help="the agent that works (default: sessions.agent in covey.toml)")
    parser.add_argument("--tick", action="store_true", help="tick what has landed in the checklist, when all has ended")
    parser.add_argument(
        "--detach", action="store_true", help="return at once; a daemon goes on with it until covey down"
    )


def run(args: Namespace, client: Client) -> int:
    """Add the tasks, start the agents, show what happens, land the work, and tell what came of it."""
    project = client.project()
    settings = config.load(project.root)
    _check(project, settings, args.agent)
    if args.tick:
        _check_ticking(args, client)
    if client.ask("status").value["paused"]:
        raise Refused("The fleet stands still, so nothing would be done.", hint="covey resume lets it go on.")
    room = _room(client, settings, args.sessions or 1)
    begun = time.monotonic()
    batch = batches.name_of_run(secrets.token_hex(3))
    own = False
    ids: list[str] = []
    story = Story(quiet=args.json)
    code: int | None = None
    need = NeedLock(project.needed)
    with _interruptible():
        try:
            need.take()
            own = ensure_up(project) if args.detach else ensure_while_needed(project)
            story.begin(client)
            with _undisturbed():
                _add(args, client, batch, ids)
            story.ids.update(ids)
            if _waits(client, ids):
                waiting = len(ids) or client.ask("status").value["counts"].get("todo", 0)
                count = max(1, min(args.sessions or settings.sessions.count, waiting, room))
                with _undisturbed():
                    _start(args, client, batch, count, all_waiting=not args.tasks)
                ids += [] if ids else _ids_of(client, batch)
                if args.detach:
                    return _say_detached(client, batch, ids, count, as_json=args.json)
                story.ids.update(ids)
                own = _follow(client, project, batch, story) or own
            _ignore_signals()  # here, where an interrupt still has its answer
        except Interrupted:
            code = INTERRUPTED
            story.say("Interrupted: stopping the agents; what they have not committed is kept (covey rescue list) ...")
            try:
                _stop(client, batch)
            except CoveyError as error:
                story.say(f"{error.message} {error.hint}")
        except BaseException:
            _ignore_signals()
            with suppress(CoveyError):  # nobody is left who would look after it
                _stop(client, batch)
            raise
        finally:
            _ignore_signals()
            report = Report.of(client, ids)
            stays_for = leave(project, client, need)
        code = (LANDED if report.all_done else NOT_ALL) if code is None else code
        seconds = time.monotonic() - begun
        print(report.as_json(batch, code, seconds) if args.json else report.as_text(settings, seconds))
        ticked = exporting.tick(client, args.tasks[0]) if args.tick else []
        if ticked and not args.json:
            print(f"Ticked {one(len(ticked), 'box', 'boxes')} in {args.tasks[0]}.")
        if code == INTERRUPTED and not args.json and report.goes_on:
            print("What is not done stays on the board: covey run goes on with it.")
        if own and stays_for and not args.json:
            print(f"covey stays up for {' and '.join(stays_for)}; covey down stops it.")
    return code


def _say_detached(client: Client, batch: str, ids: list[str], count: int, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"batch": batch, "detached": True, "tasks": ids, "sessions": count, "url": client.url}))
        return LANDED
    print(f"{one(count, 'agent')} on {one(len(ids), 'task')} ({', '.join(ids[:10])}{', ...' if ids[10:] else ''}).")
    print("covey status, covey inbox and covey open show how it goes; covey down --agents ends it.")
    return LANDED


# Before


def _check(project: Project, settings: Config, asked: str | None) -> None:
    """Refuse what could never work, before anything is added to the board."""
    why = unfit(project, settings.project.main)
    if why is not None:
        raise Refused(why)
    main = settings.project.main
    if try_git("rev-parse", "--verify", "--quiet", f"refs/heads/{main}", at=project.common).returncode:
        hint = "Commit something there, or name your branch as main under [project] in covey.toml."
        raise Refused(f"There is no branch {main} with a commit yet.", hint=hint)
    Worktrees(project, default_folder(project, settings.sessions.worktrees)).must_have_place()
    name = asked or settings.default_agent()
    agent = registry.find(name, settings.declared())
    step_back(project.root)  # the agent is looked for where the daemon will look for it
    own = settings.agents.get(name) or AgentSettings()
    if own.command:
        check(name, own.command)
    problem = registry.absent(agent, folder=str(project.root), env=own.env, program=own.program)
    if problem is not None:
        hint = "covey.toml names its command." if own.command else f"Install {name}, or choose another with --agent."
        raise Invalid(f"The agent {name} cannot be started: {problem}.", hint=hint)


def _check_ticking(args: Namespace, client: Client) -> None:
    """Refuse to tick where there is no box, or where nobody waits for the end."""
    if args.detach:
        raise Invalid("--detach returns before there is anything to tick.", hint="covey task export FILE ticks later.")
    if not _is_file(args.tasks, client) or importing.FORMATS[Path(args.tasks[0]).suffix.lower()] != "md":
        raise Invalid("--tick is for a checklist.", hint="covey run TODO.md --tick ticks what has landed.")


def _room(client: Client, settings: Config, wanted: int) -> int:
    """Return how many more sessions there may be, if that is enough."""
    most = settings.sessions.max
    have = len([session for session in client.ask("session.list").value if session["kind"] == "run"])
    if have + wanted > most:
        raise Refused(
            f"That would be {have + wanted} sessions, and at most {most} are allowed.",
            hint="Take fewer with -n, remove some (covey session list), or set sessions.max in covey.toml.",
        )
    return most - have


def _add(args: Namespace, client: Client, batch: str, ids: list[str]) -> None:
    """Put the tasks onto the board, and note their ids as they come."""
    if _is_file(args.tasks, client):
        answer, _ = importing.bring(client, args.tasks[0], None, {"batch": batch})
        ids += [task for what in ("added", "updated", "unchanged") for task in answer[what].values()]
        if not ids:
            raise Invalid(f"There is no open task in {args.tasks[0]}.", hint="A line such as - [ ] Mend it is one.")
        return
    for words in args.tasks:
        ids += [client.ask("task.add", fields={"title": words, "batch": batch}).value["id"]]


def _is_file(words: list[str], client: Client) -> bool:
    """Say whether the words name a file with tasks; a file among titles, or of another kind, is a mistake."""
    if len(words) == 1 and Path(words[0]).suffix.lower() in importing.FORMATS:
        return " " not in words[0] or (Path(client.folder) / words[0]).is_file()
    file = next((word for word in words if word and (Path(client.folder) / word).is_file()), None)
    if file is not None:
        hint = "One file at a time, with a name such as TODO.md or tasks.jsonl; a title is no file's name."
        raise Invalid(f"{file} is a file, and cannot be taken here.", hint=hint)
    return False


def _waits(client: Client, ids: list[str]) -> bool:
    """Say whether there is anything to work on; without ids, the whole board is meant."""
    if ids:
        shown = (client.ask("task.show", {"id": task}).value for task in ids)
        return any(task["status"] not in ("done", "dropped", "blocked") for task in shown)
    counts = client.ask("status").value["counts"]
    if counts.get("todo") or counts.get("merging"):
        return True
    raise Refused("No task waits on the board.", hint='Name some: covey run "Fix the flaky test".')


def _start(args: Namespace, client: Client, batch: str, count: int, *, all_waiting: bool) -> None:
    fields: dict[str, Any] = {"name": batch, "sessions": count, "all": all_waiting}
    if args.agent:
        fields["agent"] = args.agent
    client.ask("batch.start", fields=fields)


def _ids_of(client: Client, batch: str) -> list[str]:
    return list(client.ask("batch.show", {"name": batch}).value["tasks"])


# Meanwhile


def _follow(client: Client, project: Project, batch: str, story: Story) -> bool:
    """Show what happens until nothing more can come of the batch and its sessions are gone.

    Whoever had the daemon may stop it meanwhile; then we start it again, and return that it is ours.
    """
    over_since: float | None = None
    own = False
    while True:
        story.tell(client)
        state = client.ask("batch.show", {"name": batch}).value
        if client.url is None:
            story.say(f"{obituary(client) if died(client) else 'The daemon had ended.'} It is started again.")
            own = _up_again(project) or own
        if not state["sessions"]:
            story.tell(client)
            return own
        if state["over"]:
            over_since = over_since or time.monotonic()
            if time.monotonic() - over_since > CLEAN_UP:
                raise Unavailable("Some sessions have not gone.", hint="covey session list shows them.")
        else:
            over_since = None
        time.sleep(LOOK_EVERY)


def _up_again(project: Project) -> bool:
    """Start the daemon again; whatever ended it may do so once more while it starts."""
    for _ in range(2):
        with suppress(Unavailable):
            return ensure_while_needed(project)
    return ensure_while_needed(project)


def _stop(client: Client, batch: str) -> None:
    """End the sessions of a batch, and wait until their work is safe and they are gone; only a daemon can do that."""
    with errand(client):
        deadline = time.monotonic() + CLEAN_UP
        state = client.ask("batch.stop", {"name": batch}, {}).value
        while state["sessions"]:
            if time.monotonic() > deadline:
                raise Unavailable("Some sessions have not stopped.", hint="covey session list shows them.")
            time.sleep(0.05)
            state = client.ask("batch.show", {"name": batch}).value


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let a signal that asks us to end raise Interrupted, and restore what was before."""
    before = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let a signal wait until we know what came of a question: what begins after it was called off would never end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _ignore_signals()  # the end must not be cut short
    raise Interrupted


def _ignore_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


COMMAND = Command(
    "work on some tasks until they have landed: adds them, starts agents, tests and lands their work",
    _arguments,
    run,
    example='covey run "Fix the flaky test" "Add rate limiting"\ncovey run -n 4 --agent sh tasks.jsonl\n'
    "covey run --detach TODO.md   returns at once, and goes on in the background",
    owner=True,
    prints="the report: {batch, exit, seconds, counts, cost, tokens, unpriced, tasks}; "
    "with --detach {batch, detached, tasks, sessions, url}",
)
