"""covey run: some tasks from the first word to main, and nothing else to do."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from covey import config
from covey.agents import registry
from covey.agents.agent import Agent
from covey.agents.custom import check
from covey.cli.board import exporting, importing
from covey.cli.fleet.progress import Story
from covey.cli.fleet.report import Report
from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, flag, option, whole_number
from covey.cli.frame.http_client import Lost
from covey.cli.frame.output import plain
from covey.cli.project.daemon import (
    comes_true,
    died,
    ensure_up,
    ensure_while_needed,
    errand,
    leave,
    obituary,
    tell_other_path,
)
from covey.config import AgentSettings, Config
from covey.core import ids, texts
from covey.core.figures import one, some
from covey.core.fleet import batches
from covey.errors import CoveyError, Invalid, NotFound, Refused, Unavailable
from covey.git import refs
from covey.git.preflight import unfit
from covey.git.project import Project
from covey.git.worktrees.worktree_files import must_have_place
from covey.git.worktrees.worktrees import default_folder
from covey.installation import step_back
from covey.store.engine.lock import NeedLock
from covey.values import dataclass

SILENCE_S = 45.0
"""A stream that is silent for so long is dead: a heartbeat comes every 15 s."""
GATHER_S = 0.1
"""How long we wait for more, once something has happened: it is asked for all at once."""
LOOK_EVERY_S = 0.15
"""Where there is no stream."""
CLEAN_UP_S = 60.0
"""Seconds that sessions have to put their work in safety and go."""
MAX_STARTS = 8
"""How often a daemon that ended under a run is started again before the run gives up."""
MAX_HELD_LOOKED_AT = 1000
"""Tasks at work among which ours are looked for."""
MAX_NAMED = 10
"""Tasks or sessions that a sentence names."""
LANDED, NOT_ALL, INTERRUPTED = 0, 1, 130


class News:
    """Who waits for what comes after an event; the stream is opened again whenever it ends."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lines: Iterator[bytes] | None = None
        """What a daemon tells us, if it does."""

    def wait(self, after: int) -> None:
        """Return once something may have happened after an event: now and then also if nothing has."""
        try:
            if self._lines is None:
                self._lines = _lines(self._client.follow(after, SILENCE_S))
            for line in self._lines:
                if line == b"event: heartbeat" or (line.startswith(b"id: ") and int(line[4:]) > after):
                    time.sleep(GATHER_S)
                    return
        except (Lost, CoveyError):
            pass
        self._lines = None  # the daemon has ended, or let us go: whoever waits looks, and then we come back
        time.sleep(LOOK_EVERY_S)


def _lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream whole, wherever it was cut into parts."""
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from whole


class Interrupted(Exception):
    """The person wants us to end."""


def run(args: Namespace, client: Client) -> int:
    """Add the tasks, start the agents, show what happens, land the work, and tell what came of it."""
    project = client.project()
    settings = config.load(project.root)
    name = args.agent or settings.default_agent()
    agent = _check(project, settings, name)
    order = _order(args, client, settings)
    begun = time.monotonic()
    batch = Batch(args, client, project)
    code: int | None = None
    need = NeedLock(project.needed)
    _on_signals(_interrupt)
    try:
        need.take()
        count = batch.begin(settings, order)
        if count and args.detach:
            ensure_up(client)
            return batch.say_detached(count)
        if count:
            batch.follow()
        _on_signals(signal.SIG_IGN)  # here, where an interrupt still has its answer
    except Interrupted:
        code = INTERRUPTED
        batch.interrupt()
    except BaseException:
        _on_signals(signal.SIG_IGN)
        with suppress(CoveyError):  # nobody is left who would look after it
            batch.stop()
        raise
    finally:
        _on_signals(signal.SIG_IGN)
        report = Report.of(client, batch.ids, name if agent.traits.bodies else "")
        stays = leave(project, client, need, own=batch.own)
        if isinstance(error := sys.exception(), CoveyError):
            error.hint = f"{error.hint} {stays}".strip()
    code = (LANDED if report.all_done else NOT_ALL) if code is None else code
    seconds = time.monotonic() - begun
    print(report.as_json(batch.name, code, seconds) if args.json else report.as_text(settings, seconds))
    ticked = exporting.tick(client, args.tasks[0]) if args.tick else []
    if not args.json:
        _say_end(args, ticked, stays, goes_on=code == INTERRUPTED and report.goes_on)
    return code


def _say_end(args: Namespace, ticked: list[str], stays: str, *, goes_on: bool) -> None:
    if ticked:
        print(f"Ticked {one(len(ticked), 'box', 'boxes')} in {args.tasks[0]}.")
    if goes_on:
        print("What is not done stays on the board: covey run goes on with it.")
    if stays:
        print(stays)


class Batch:
    """The tasks of one run, the sessions that work on them, and what is told of both."""

    def __init__(self, args: Namespace, client: Client, project: Project) -> None:
        self.name = batches.name_of_run(secrets.token_hex(3))
        self.ids: list[str] = []
        self.own = False
        """The daemon was started by us."""
        self._args = args
        self._client = client
        self._project = project
        self._story = Story(quiet=args.json)
        self._busy: list[Json] = []
        """Those of the tasks that somebody was at work on before our sessions began."""

    def begin(self, settings: Config, order: Order) -> int:
        """Put the tasks onto the board and start sessions for them; return how many, 0 if there is nothing to do."""
        args, client = self._args, self._client
        # Since we need it by now, a daemon that answers, and is not there for another's errand, stays.
        status = client.ask("status").value
        if client.url is None or client.said.get("errand"):
            self.own = ensure_while_needed(self._project)
            status = client.ask("status").value
        if not self.own:
            tell_other_path(self._project)
        self._story.after = status["seq"]
        with _undisturbed():
            _add(order, client, self.name, self.ids)
        self._story.ids.update(self.ids)
        shown = (client.ask("task.show", {"id": task}).value["status"] for task in self.ids)
        if self.ids and all(status in ("done", "dropped", "blocked") for status in shown):
            return 0
        if self.ids:
            held = client.ask("task.list", fields={"status": "doing", "limit": MAX_HELD_LOOKED_AT}).value
            self._busy = [task for task in held if task["id"] in self._story.ids]
        count = max(1, min(args.sessions or settings.sessions.count, len(self.ids) or order.waiting, order.room))
        with _undisturbed():
            fields: Json = {"name": self.name, "sessions": count, "all": not args.tasks}
            client.ask("batch.start", fields=fields | ({"agent": args.agent} if args.agent else {}))
        self.ids += [] if self.ids else self._state()["tasks"]
        self._story.ids.update(self.ids)
        return count

    def say_detached(self, count: int) -> int:
        """Say what goes on in the background."""
        ids = self.ids
        if self._args.json:
            said = {"batch": self.name, "detached": True, "tasks": ids, "sessions": count, "url": self._client.url}
            print(json.dumps(said))
            return LANDED
        if self._busy:
            print(_waits_for(self._busy))
            ids = [task for task in ids if task not in {busy["id"] for busy in self._busy}]
        if ids:
            named = f"{', '.join(ids[:MAX_NAMED])}{', ...' if ids[MAX_NAMED:] else ''}"
            print(f"{one(min(count, len(ids)), 'agent')} on {one(len(ids), 'task')} ({named}).")
        print("covey status, covey inbox and covey open show how it goes; covey down --agents ends it.")
        return LANDED

    def follow(self) -> None:
        """Show what happens until nothing more can come of the tasks and the sessions are gone.

        Whoever had the daemon may stop it meanwhile; then we start it again, and it is ours.
        """
        news = News(self._client)
        over_since: float | None = None
        if self._busy:
            self._story.say(_waits_for(self._busy))
        while True:
            self._story.tell(self._client)
            state = self._state()
            if self._client.url is None:
                self._have_daemon_again()
            if not state["sessions"]:
                self._story.tell(self._client)
                return
            over_since = (over_since or time.monotonic()) if state["over"] else None
            if over_since is not None and time.monotonic() - over_since > CLEAN_UP_S:
                raise Unavailable("Some sessions have not gone.", hint="covey session list shows them.")
            news.wait(self._story.after)

    def interrupt(self) -> None:
        """Stop because the person wants us to, and say so."""
        story = self._story
        story.say("Interrupted: stopping the agents; what they have not committed is kept (covey rescue list) ...")
        try:
            self.stop()
        except CoveyError as error:
            story.say(f"{error.message} {error.hint}")

    def stop(self) -> None:
        """End the sessions, and wait until their work is safe and they are gone; only a daemon can do that."""
        with errand(self._client):
            self._client.ask("batch.stop", {"name": self.name}, {})
            if not comes_true(lambda: not self._state()["sessions"], CLEAN_UP_S, 0.05):
                raise Unavailable("Some sessions have not stopped.", hint="covey session list shows them.")

    def _state(self) -> Json:
        state: Json = self._client.ask("batch.show", {"name": self.name}).value
        return state

    def _have_daemon_again(self) -> None:
        """Start the daemon again; whatever ended it may do so more than once while it starts."""
        gone = obituary(self._client) if died(self._client) else "The daemon had ended."
        self._story.say(f"{gone} It is started again.")
        for left in reversed(range(MAX_STARTS)):
            try:
                self.own = ensure_while_needed(self._project) or self.own
                return
            except Unavailable:
                if not left:
                    raise


# Before


def _check(project: Project, settings: Config, name: str) -> Agent:
    """Return the agent of the run; refuse what could never work, before anything is added to the board."""
    refusal = unfit(project, settings.project.main)
    if refusal is not None:
        raise refusal
    main = settings.project.main
    if f"refs/heads/{main}" not in refs.listed(project, f"refs/heads/{main}"):
        hint = "Commit something there, or name your branch as main under [project] in covey.toml."
        raise Refused(f"There is no branch {main} with a commit yet.", hint=hint)
    must_have_place(default_folder(project, settings.sessions.worktrees))
    agent = registry.find(name, settings.declared())
    step_back(project.root)  # the agent is looked for where the daemon will look for it
    own = settings.agents.get(name) or AgentSettings()
    if own.command:
        check(name, own.command)
    problem = registry.absent(agent, folder=str(project.root), env=own.env, program=own.program)
    if problem is not None:
        hint = "covey.toml names its command." if own.command else f"Install {name}, or choose another with --agent."
        raise Invalid(f"The agent {name} cannot be started: {problem}.", hint=hint)
    return agent


@dataclass(frozen=True)
class Order:
    """What is to be done; all that can be refused without a daemon has been, so that none is started for nothing."""

    titles: list[str]
    plan: importing.Plan | None
    """The tasks of a file, if one is named."""
    waiting: int
    """Tasks on the board that wait for somebody."""
    room: int
    """How many more sessions there may be."""


def _order(args: Namespace, client: Client, settings: Config) -> Order:
    """Read what is to be done, and refuse what cannot be; no daemon is needed for that."""
    is_file = _is_file(args.tasks, client)
    if args.tick:
        _check_ticking(args, is_file=is_file)
    plan = importing.plan_of(client, args.tasks[0], None) if is_file else None
    if plan is not None and not (plan.first or plan.second):
        raise Invalid(f"There is no open task in {args.tasks[0]}.", hint="A line such as - [ ] Mend it is one.")
    status = client.ask("status").value
    if status["paused"]:
        raise Refused("The fleet stands still, so nothing would be done.", hint="covey resume lets it go on.")
    wanted, most = args.sessions or 1, settings.sessions.max
    have = sum(session["kind"] == "run" for session in status["sessions"])
    if have + wanted > most:
        raise Refused(
            f"That would be {have + wanted} sessions, and at most {most} are allowed.",
            hint="Take fewer with -n, remove some (covey session list), or set sessions.max in covey.toml.",
        )
    counts = status["counts"]
    if not args.tasks and not counts.get("todo") and not counts.get("merging"):
        raise Refused("No task waits on the board.", hint='Name some: covey run "Fix the flaky test".')
    return Order([] if is_file else args.tasks, plan, counts.get("todo", 0), most - have)


def _check_ticking(args: Namespace, *, is_file: bool) -> None:
    """Refuse to tick where there is no box, or where nobody waits for the end."""
    if args.detach:
        raise Invalid("--detach returns before there is anything to tick.", hint="covey task export FILE ticks later.")
    if not is_file or importing.FORMATS[Path(args.tasks[0]).suffix.lower()] != "md":
        raise Invalid("--tick is for a checklist.", hint="covey run TODO.md --tick ticks what has landed.")


def _add(order: Order, client: Client, batch: str, ids: list[str]) -> None:
    """Put the tasks onto the board, and note their ids as they come."""
    if order.plan is not None:
        answer = importing.bring(client, order.plan, {"batch": batch})
        ids += [task for what in ("added", "updated", "unchanged") for task in answer[what].values()]
    for words in order.titles:
        ids += [client.ask("task.add", fields={"title": words, "batch": batch}).value["id"]]


def _is_file(words: list[str], client: Client) -> bool:
    """Say whether the words name a file with tasks; a file among titles, or of another kind, is a mistake."""
    folder = Path(client.folder)
    file = next((word for word in words if word and os.path.isfile(folder / word)), None)
    if len(words) == 1 and (file or _is_path(words[0])) and Path(words[0]).suffix.lower() in importing.FORMATS:
        return True
    if file is not None:
        hint = "One file at a time, with a name such as TODO.md or tasks.jsonl; a title must not be the name of a file."
        raise Invalid(f"{file} is a file, and cannot be taken here.", hint=hint)
    for word in words:
        _check_title(word, folder)
        _check_no_id(word, client)
    return False


def _check_no_id(word: str, client: Client) -> None:
    """Refuse the id of a task of the board: a second one of that name would have no text, and be worked on."""
    if not ids.is_task_id(word):
        return
    with suppress(NotFound):
        task = client.ask("task.show", {"id": word}).value
        hint = f"covey run works on all that waits; covey task edit {word} --status todo lets one wait again."
        raise Invalid(f"{word} is a task on the board ({plain(task['title'])}), and no title.", hint=hint)


def _check_title(word: str, folder: Path) -> None:
    """Refuse a word that can only have been meant as a path, and what no task can be called."""
    if word and os.path.isdir(folder / word):
        raise Invalid(
            f"{word} is a folder, and no task.",
            hint='A title is a sentence: covey run "Fix the flaky test". covey -C DIR run works in another repository.',
        )
    if _is_path(word) and Path(word).suffix.lower() in (*importing.FORMATS, ".txt"):
        raise Invalid(
            f"There is no file {word}, and it is no title.",
            hint='A title is a sentence: covey run "Fix the flaky test".',
        )
    texts.line(word, "The title", texts.MAX_TITLE_CHARS)


def _is_path(word: str) -> bool:
    """Say whether a word is plainly no sentence; scripts that need no blanks have letters neither large nor small."""
    if word.startswith(("/", "./", "../")):
        return True
    return " " not in word and not any(each.isalpha() and not each.isupper() and not each.islower() for each in word)


def _waits_for(busy: list[Json]) -> str:
    """Say which tasks others work on already, and who."""
    ids, names = ([task[what] for task in busy] for what in ("id", "session"))
    are, them = ("is", "it") if len(busy) == 1 else ("are", "them")
    who = plain(some([*dict.fromkeys(names)], MAX_NAMED))
    return f"{some(ids, MAX_NAMED)} {are} at work already ({who}); waiting for {them}."


# Meanwhile


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
    _on_signals(signal.SIG_IGN)  # the end must not be cut short
    raise Interrupted


def _on_signals(do: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Do that when a signal asks us to end."""
    for number in _SIGNALS:
        signal.signal(number, do)


COMMAND = Command(
    "work on some tasks until they have landed: adds them, starts agents, tests and lands their work",
    (
        option(
            "tasks",
            nargs="*",
            metavar="TITLE",
            help="a title for each task, or one file: TODO.md, tasks.jsonl (default: all that waits on the board)",
        ),
        option("-n", dest="sessions", type=whole_number(1, 1000), metavar="N", help="how many agents at once"),
        option("--agent", metavar="AGENT", help="the agent that works (default: sessions.agent in covey.toml)"),
        flag("--tick", "when all is over, tick the tasks that landed in the checklist"),
        flag("--detach", "return at once; the daemon goes on in the background until covey down"),
    ),
    run,
    example='covey run "Fix the flaky test" "Add rate limiting"\ncovey run -n 4 --agent sh tasks.jsonl\n'
    "covey run --detach TODO.md   returns at once, and goes on in the background",
    owner=True,
    prints="the report: {batch, exit, seconds, counts, cost, tokens, unpriced, tasks}; "
    "with --detach {batch, detached, tasks, sessions, url}",
)
