"""covey session: the workers on this project."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable

from covey.cli.frame.client import Answer, Client, Json
from covey.cli.frame.command import Arguments, Command, Run, asking, body_of, either, flag, option, whole_number
from covey.cli.frame.output import age, as_json, clock, escaped, first_line, plain, prose, reply, spent, table, waiting
from covey.cli.history import log
from covey.core.figures import span, took
from covey.errors import CoveyError, Invalid, Refused, Unavailable

SESSION_TIMEOUT_S = 60.0
"""Seconds to wait until a session is in the state that was asked for."""

WORK_IS_KEPT = "; what it had not committed is kept (covey rescue list)"
NOBODY_STOPPED = "No session is stopped; covey session new --start adds one"
LEVELS = ("ask", "edits", "full")
ABOUT = "Sessions: named workers. One that claims a task under a new name becomes known by that."


# Several at once: each is told by itself, and the first that is refused decides how the command ends


def _names_or_all(help: str) -> tuple[Arguments, ...]:
    """Return what takes the names of sessions, or --all."""
    return option("names", nargs="*", metavar="NAME"), flag("--all", help)


def _must_name(args: Namespace) -> None:
    """Refuse a command that names no session, or some of all."""
    hint = "covey session list shows them; --all means every one."
    if args.names and args.all:
        raise Invalid("Names and --all exclude each other.", hint=hint)
    if not args.names and not args.all:
        raise Invalid("Name the sessions, or say --all.", hint=hint)


def _listed(names: list[str]) -> str:
    """Return names as a sentence has them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _them(names: list[str]) -> str:
    """Return the word for one or several."""
    return "it" if len(names) == 1 else "them"


def _ask_each(args: Namespace, ask: Callable[[str], Answer]) -> tuple[dict[str, Answer], int]:
    """Ask for each session that was named, and return what was answered, and with what the command ends.

    With one alone an error is the command's own.
    """
    told: dict[str, Answer] = {}
    code = 0
    for name in dict.fromkeys(args.names):
        try:
            told[name] = ask(name)
        except CoveyError as error:
            if len(args.names) == 1:
                raise
            from covey.cli.main import complain

            complain(error, as_json=args.json)
            code = code or error.exit_code
    return told, code


def _tell_each(args: Namespace, told: dict[str, Answer], lines: Iterable[str]) -> None:
    """Print the answers, or lines to a person."""
    if not args.json:
        for line in lines:
            print(line)
    elif len(args.names) == 1 and not getattr(args, "all", False):
        for answer in told.values():
            as_json(answer)
    else:
        print(escaped(json.dumps([answer.value for answer in told.values()])))


def _doing(verb: str, said: Callable[[str, Json], str]) -> Run:
    """Return what a command does that asks a verb for each session, and says of each what came of it."""

    def run(args: Namespace, client: Client) -> int:
        told, code = _ask_each(args, lambda name: client.ask(verb, {"name": name}, {}))
        _tell_each(args, told, (said(name, answer.value) for name, answer in told.items()))
        return code

    return run


def _bring_about(
    args: Namespace,
    client: Client,
    verb: str,
    good: Callable[[Json], bool],
    said: Callable[[str, Json], str],
    fields: Json | None = None,
) -> int:
    """Ask for what the daemon's loops do, and wait until it is done; a daemon is had for it if none is up."""
    from covey.cli.project.daemon import errand

    with errand(client):
        told, code = _ask_each(args, lambda name: client.ask(verb, {"name": name}, fields))
        _await(client, list(told), good)
    _tell_each(args, told, (said(name, answer.value) for name, answer in told.items()))
    return code


def _await(client: Client, names: list[str], good: Callable[[Json], bool]) -> None:
    """Wait until sessions are in the state that was asked for, or gone."""
    deadline = time.monotonic() + SESSION_TIMEOUT_S
    while True:
        late = [each for each in client.ask("session.list").value if each["name"] in names and not good(each)]
        if not late:
            return
        if time.monotonic() > deadline:
            states = ", ".join(f"{each['name']} is {each['state']}" for each in late)
            raise Unavailable(
                f"That has not happened after {SESSION_TIMEOUT_S:g} s: {states}.",
                hint="It goes on; covey session list shows it.",
            )
        time.sleep(0.05)


# Commands


def new(args: Namespace, client: Client) -> int:
    """Make sessions known; those that covey runs can begin at once."""
    if not args.names and not args.count and not args.start:
        raise Invalid("Which session?", hint="Name one, or say how many: covey session new -n 4 --start.")
    if args.count or args.start or (args.agent and len(args.names) != 1):
        _add(args, client)
        return 0
    fields = body_of(args, "role", "wip", "agent", "permissions")
    told, code = _ask_each(args, lambda name: client.ask("session.new", fields={"name": name} | fields))
    how = "session start {0} lets it work" if args.agent else "task next --as {0} gives it work"
    _tell_each(args, told, (f"Session {name} is known; covey {how.format(name)}" for name in told))
    return code


def _add(args: Namespace, client: Client) -> None:
    """Add sessions that covey runs, all or none."""
    if args.wip:
        raise Invalid("--wip is for a session of your own.", hint="One that covey runs holds one task at a time.")
    fields = body_of(args, "count", "agent", "role", "permissions") | {"start": args.start}
    answer = client.ask("session.add", fields=fields | ({"names": args.names} if args.names else {}))
    began = args.start and _have_daemon(client)
    names = [each["name"] for each in answer.value]
    agent = answer.value[0]["agent"]
    if args.json and len(args.names) == 1:
        print(escaped(json.dumps(answer.value[0])))
    elif args.start:
        reply(args, answer, _at_work(names, began, agent=agent))
    else:
        known = f"{_listed(names)} with {agent} {'is' if len(names) == 1 else 'are'} known"
        reply(args, answer, f"{known}; covey session start {' '.join(names)} lets {_them(names)} work")


def _have_daemon(client: Client) -> bool:
    """Have a daemon that stays, and say whether it was started; one with another PATH than this shell's is told."""
    from covey.cli.project.daemon import ensure_up, tell_other_path

    began = ensure_up(client)
    if not began:
        tell_other_path(client.project())
    return began


def start(args: Namespace, client: Client) -> int:
    """Let sessions work, with a daemon that looks after them."""
    _must_name(args)
    began = _have_daemon(client)
    if args.all:
        answer = client.ask("fleet.start", fields={"all": True})
        reply(args, answer, _at_work([each["name"] for each in answer.value], began))
        return 0
    told, code = _ask_each(args, lambda name: client.ask("session.start", {"name": name}, {}))
    _tell_each(args, told, [_at_work(list(told), began)] if told else [])
    return code


def _at_work(names: list[str], began: bool, *, agent: str = "") -> str:
    """Say who works from now on, and what ends that."""
    up = "covey is up, and " if began else ""
    if not names:
        return f"{up}no session is stopped; covey session new --start adds one" if up else NOBODY_STOPPED
    works = f"{'works' if len(names) == 1 else 'work'} the board{f' with {agent}' if agent else ''}"
    until = names[0] if len(names) == 1 else "--all"
    return f"{up}{_listed(names)} {works} until covey session stop {until}"


def stop(args: Namespace, client: Client) -> int:
    """Stop sessions, and wait until nothing of them is alive."""
    _must_name(args)

    def stopped(session: Json) -> bool:
        return not session["run"] and not session["tasks"]

    if not args.all:
        return _bring_about(args, client, "session.stop", stopped, lambda name, session:
                            f"Stopped {name}{WORK_IS_KEPT if session['run'] else ''}")  # fmt: skip
    from covey.cli.project.daemon import errand

    with errand(client):
        answer = client.ask("fleet.stop", fields={})
        names = [each["name"] for each in answer.value]
        _await(client, names, stopped)
    kept = "what was not committed is kept (covey rescue list)"
    back = f"covey up --agents brings {_them(names)} back"
    reply(args, answer, f"Stopped {_listed(names)}; {kept}; {back}" if names else "No session was at work.")
    return 0


def pause(args: Namespace, client: Client) -> int:
    """Let sessions stand still."""
    return _bring_about(
        args,
        client,
        "session.pause",
        lambda session: session["state"] == "paused",
        lambda name, _: f"{name} stands still; covey session resume {name} lets it go on",
    )


def _restarted(name: str, session: Json) -> str:
    return (
        f"{name} begins its task again{WORK_IS_KEPT}"
        if session["run"]
        else f"{name} had no run to end; it works the board"
    )


def remove(args: Namespace, client: Client) -> int:
    """Remove sessions, and wait until nothing of them is left."""
    _must_name(args)
    if args.all:
        found = [each for each in client.ask("session.list").value if each["kind"] == "run"]
        args.names = [each["name"] for each in found if args.force or (_is_stopped(each) and not each["tasks"])]
        if not args.names:
            print("[]" if args.json else NOBODY_STOPPED)
            return 0

    def removed(name: str, session: Json) -> str:
        kept = client.ask("log.list", fields={"kind": "session.rescued", "subject": name, "newest": True, "limit": 1})
        where = f"; its last unsaved work is in {kept.value[0]['data']['ref']}" if kept.value else ""
        return f"Removed {name}{where}"

    return _bring_about(args, client, "session.remove", lambda session: False, removed, {"force": args.force})


def _is_stopped(session: Json) -> bool:
    return session["goal"] == "stopped" and session["kind"] == "run" and not session["run"]


def logs(args: Namespace, client: Client) -> None:
    """Print what a run printed, or which runs there are."""
    if args.runs:
        _list_runs(args, client)
        return
    since, silent = -args.tail if args.tail else 0, True
    while True:
        fields = body_of(args, "run") | {"since": since, "raw": args.raw}
        answer = client.ask("session.logs", {"name": args.name}, fields)
        part = answer.value
        if args.json:
            as_json(answer)
        else:
            sys.stdout.write(prose(part["text"]))
            sys.stdout.flush()
            silent = silent and not part["text"]
        if args.json and not args.follow:
            return
        args.run = part["run"]
        stands, since = part["next"] == since, part["next"]
        if stands and not (args.follow and part["alive"]):
            if silent and not args.json:
                print(_silence(part), file=sys.stderr)
            return
        if stands:
            time.sleep(0.2)


def _silence(part: Json) -> str:
    """Say that there is nothing to read of a run, and whether it printed anything at all."""
    if part["next"]:
        return f"{part['run']} has told nothing to read{' yet' if part['alive'] else ''}; --raw shows what it printed."
    return f"{part['run']} {'has printed nothing yet' if part['alive'] else 'printed nothing'}."


def _list_runs(args: Namespace, client: Client) -> None:
    """List the runs of a session, the newest first."""
    answer = client.ask("run.list", fields={"session": args.name})
    found = (
        (
            run["id"],
            run["outcome"] or "at work",
            run["task"],
            clock(run["begun"]),
            took((run["ended"] or time.time()) - run["begun"]),
            spent(run),
            first_line(run["what"] or "", 60),
        )
        for run in answer.value
    )
    reply(args, answer, table(found, words=1) or f"{args.name} has not run yet.")


def _verdict(told: Json, args: Namespace) -> str:
    """Return what the watchdog thinks of a session."""
    is_stopped = not told["run"] and told["waits"] is not None and told["waits"]["cause"] == "stopped"
    state = "stopped" if is_stopped else told["state"]
    lines = [f"{told['session']} is {state}" + (f" on {told['task']} ({told['run']})" if told["run"] else "")]
    if told["rule"]:
        lines[0] += f": {told['rule']}"
    lines += [f"  {clue['source']:<9} {clue['text']}, {span(clue['age'])} ago" for clue in told["clues"]]
    if told["waits"]:
        lines.append(f"  {waiting(told['waits'])}")
    elif told["until"]:
        lines.append(f"  it goes on by itself at {clock(told['until'])}")
    if told["action"] not in (None, "none"):
        lines.append(f"  the watchdog's next step: {told['action']}")
    if told["history"]:
        past = (f"  {clock(each['at'])}  {each['state']:<10} {each['evidence']}" for each in told["history"])
        lines += ["before:", *past]
    return "\n".join(lines)


def attach(args: Namespace, client: Client) -> None:
    """Show a session's terminal; of one without, take the conversation over in one, and give it back afterwards."""
    import subprocess

    if not args.json and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("There is no terminal here to attach.", hint=f"covey session logs {args.name} --follow shows it.")
    shown = client.ask("session.terminal", {"name": args.name})
    if shown.value["run"] is None:
        client.ask("session.attach", {"name": args.name}, {})
        if not args.json:
            print(f"{args.name} is interrupted; its conversation opens here ...", flush=True)
        shown = _terminal(client, args.name)
    if args.json:
        as_json(shown)
        return
    code = subprocess.call(shown.value["command"])
    if shown.value["person"]:
        _give_back(client, args.name)
    elif code:
        raise Unavailable(f"The terminal of {args.name} could not be shown.", hint=f"covey session why {args.name}")


def _give_back(client: Client, name: str) -> None:
    """Give a conversation back, unless somebody else is at it."""
    if client.ask("session.terminal", {"name": name}).value["used"]:
        print(f"Somebody else is at the terminal of {name}; it goes on when they leave it.")
        return
    client.ask("session.giveback", {"name": name}, {})
    print(f"{name} has its conversation back and goes on.")


def _terminal(client: Client, name: str) -> Answer:
    """Wait until a session has a terminal; what was taken over is given back if none comes."""
    deadline = time.monotonic() + SESSION_TIMEOUT_S
    try:
        while True:
            shown = client.ask("session.terminal", {"name": name})
            if shown.value["run"] is not None:
                return shown
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"{name} has no terminal after {SESSION_TIMEOUT_S:g} s.", hint=f"covey session why {name}"
                )
            time.sleep(0.1)
    except BaseException:
        client.ask("session.giveback", {"name": name}, {})
        raise


def list_sessions(args: Namespace, client: Client) -> None:
    """List the sessions."""
    with client:
        answer = client.ask("session.list")
        is_told = not args.json and not os.environ.get("COVEY_TOKEN")
        idle = client.ask("wait.list", fields={"limit": 1}).value["sessions"] if is_told else []
    reply(args, answer, rows(answer.value, idle) or "There are no sessions; covey session new --start adds one.")


def rows(sessions: list[Json], idle: list[Json]) -> str:
    """Return sessions in aligned columns: state, what each holds, cost today, and why it idles or what it did last."""
    why = {each["session"]: each for each in idle}
    return table(
        (
            (
                session["name"],
                "stopped" if _is_stopped(session) else session["state"],
                ", ".join(session["tasks"][:5]) + (" ..." if len(session["tasks"]) > 5 else ""),
                spent(session),
                f"seen {age(session['seen'])}" if session["seen"] else "",
                _last(session, why.get(session["name"])),
            )
            for session in sessions
        ),
        words=1,
    )


def _last(session: Json, idle: Json | None) -> str:
    """Return what a session asks, else why it is not at work, else what it did last."""
    if session["state"] == "needs-you":
        return f"asks: {session['evidence']}"
    if idle is not None:
        return plain(idle["text"]) + (f" Until {clock(idle['until'])}." if idle["until"] else "")
    last = session["last_action"]
    return f"{log.sentence(last)}, {age(last['time'])}" if last else ""


PRINTS = "exactly what REST answers for one session that is named, for several a list of it"
NAME = option("name", metavar="NAME")
NAMES = option("names", nargs="+", metavar="NAME")
COMMANDS = {
    "new": Command("add sessions: with --agent, -n or --start covey runs them, else you do", (
        option("names", nargs="*", metavar="NAME", help="default: covey chooses a name such as worker-1"),
        option("--agent", metavar="AGENT", help="the agent that covey runs in it; without one you run it yourself"),
        option("-n", dest="count", type=whole_number(1, 1000), metavar="N",
               help="add N sessions, with names that covey chooses"),
        flag("--start", "start working at once, with the agent of the settings unless --agent names one"),
        option("--role", metavar="ROLE", help="the session gets the tasks and mail for this role"),
        option("--permissions", choices=LEVELS,
               help="what its agent may do without asking (default: as in the settings)"),
        option("--wip", type=whole_number(1, 1000), metavar="N", help="how many tasks it may hold at once"),
    ), new, owner=True, prints=PRINTS,
                   example="covey session new ada --agent sh\ncovey session new rita --role quality\n"
                           "covey session new -n 4 --agent claude --start   four at once, at work"),
    "list": Command("list the sessions: what each works on, and what it did last", (), list_sessions,
                    example="covey session list"),
    "start": Command("start sessions: they work on the board until stopped",
                     _names_or_all("every stopped session"), start, owner=True,
                     prints=PRINTS, example="covey session start ada bob\ncovey session start --all"),
    "stop": Command("stop sessions: their work is kept, and their tasks go back to the board",
                    _names_or_all("every session; covey up --agents brings them back"), stop, owner=True,
                    prints=PRINTS, example="covey session stop ada bob\ncovey session stop --all"),
    "pause": Command("pause sessions; they keep their tasks", NAMES, pause, owner=True,
                     prints=PRINTS, example="covey session pause ada"),
    "resume": Command("resume paused sessions", NAMES,
                      _doing("session.resume", lambda name, _: f"{name} goes on"), owner=True,
                      prints=PRINTS, example="covey session resume ada"),
    "restart": Command("end the runs of sessions and start their tasks again", NAMES,
                       _doing("session.restart", _restarted), owner=True, prints=PRINTS,
                       example="covey session restart ada"),
    "remove": Command("remove sessions and their worktrees; unsaved work is kept as a rescue first", (
        *_names_or_all("every stopped session; with --force every session that covey runs"),
        flag("--force", "even if it is working"),
    ), remove, owner=True, prints=PRINTS,
                      example="covey session remove ada bob\ncovey session remove ada --force   also at work\n"
                              "covey session remove --all   every one that is stopped"),
    "logs": Command("print what a session's agent said and did", (
        NAME,
        option("--run", metavar="RUN", help="which run, for example run-12 (default: the last)"),
        option("--follow", "-f", action="store_true", help="keep printing until the run ends"),
        option("--tail", type=whole_number(1, 2**31), metavar="BYTES", help="only the end of it"),
        flag("--raw", "print the raw output, not the transcript"),
        flag("--runs", "list the runs, with their outcome and cost"),
    ), logs, example="covey session logs ada --follow\ncovey session logs ada --runs\n"
                            "covey session logs ada --run run-12 --raw"),
    "send": Command("type a text into a session's program, for example to answer its question",
                    (NAME, either("text", "TEXT", "what to type")),
                    asking("session.send", "text", show=lambda _, args: f"Typed to {args.name}"), owner=True,
                    example='covey session send ada "Use port 8080"'),
    "why": Command("explain a session's state, and the evidence for it", NAME,
                   asking("session.why", show=_verdict),
                   example="covey session why ada"),
    "attach": Command("open a session's terminal, or take over its conversation until you leave",
                      NAME, attach, owner=True, example="covey session attach ada"),
    "token": Command("make a token with which a session can call covey itself; its older tokens stop working", NAME,
                     asking("session.token", show=lambda made, _: str(made["token"])), owner=True,
                     example="export COVEY_URL=$(covey up --json | jq -r .url)\n"
                             "export COVEY_TOKEN=$(covey session token ada)"),
}  # fmt: skip
