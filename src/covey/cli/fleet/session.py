"""covey session: the workers on this project."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace

from covey.cli import several, trail
from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, whole_number
from covey.cli.show import age, as_json, clock, escaped, first_line, plain, prose, reply, spent, table, waiting
from covey.core.figures import span
from covey.errors import Invalid, Refused, Unavailable

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from covey.cli.client import Answer

PATIENCE = 60.0
"""Seconds for which we wait until a session is where it shall be."""

KEPT = "; what it had not committed is kept (covey rescue list)"
NOBODY_STOPPED = "No session is stopped; covey session new --start adds one"
LEVELS = ("ask", "edits", "full")
ABOUT = "Sessions: named workers. One that claims a task under a new name becomes known by that."


def _new_arguments(parser: Parser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="left out, covey chooses a name: worker-1")
    parser.mixed = True
    parser.add_argument(
        "--agent", metavar="AGENT", help="the program that covey runs in it; without one it is yours to run"
    )
    parser.add_argument(
        "-n", dest="count", type=whole_number(1, 1000), metavar="N", help="so many, with names that covey chooses"
    )
    parser.add_argument("--start", action="store_true", help="let it work at once; its agent is that of the settings")
    parser.add_argument("--role", metavar="ROLE", help="what it is good at: it gets tasks and mail of this role")
    parser.add_argument(
        "--permissions", choices=LEVELS, help="what its agent may do without asking (default: as the settings say)"
    )
    parser.add_argument("--wip", type=whole_number(1, 1000), metavar="N", help="how many tasks it may hold at once")


def _nothing(parser: Parser) -> None:
    pass


def _name_argument(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")


def _remove_arguments(parser: Parser) -> None:
    several.names_or_all("every one that is stopped; with --force every one that covey runs")(parser)
    parser.add_argument("--force", action="store_true", help="also if it is at work")


def _logs_arguments(parser: Parser) -> None:
    _name_argument(parser)
    parser.add_argument("--run", metavar="RUN", help="of this run, for example run-12 (default: the last)")
    parser.add_argument("--follow", "-f", action="store_true", help="go on until the run has ended")
    parser.add_argument("--tail", type=whole_number(1, 2**31), metavar="BYTES", help="only the end of it")
    parser.add_argument("--raw", action="store_true", help="as it was printed, not as a transcript")
    parser.add_argument("--runs", action="store_true", help="list the runs, with what came of them and what they cost")


def _send_arguments(parser: Parser) -> None:
    _name_argument(parser)
    parser.either("text", "TEXT", "what its program reads")


def new(args: Namespace, client: Client) -> int:
    """Make sessions known; those that covey runs can begin at once."""
    if not args.names and not args.count and not args.start:
        raise Invalid("Which session?", hint="Name one, or say how many: covey session new -n 4 --start.")
    if args.count or args.start or (args.agent and len(args.names) != 1):
        return _add(args, client)
    fields = body_of(args, "role", "wip", "agent", "permissions")
    told = several.each(args, lambda name: client.ask("session.new", fields={"name": name} | fields))
    for name in told.names:
        told.say(
            f"Session {name} is known; covey session start {name} lets it work"
            if args.agent
            else f"Session {name} is known; covey task next --as {name} gives it work"
        )
    return told.end()


def _add(args: Namespace, client: Client) -> int:
    """Add sessions that covey runs, all or none."""
    if args.wip:
        raise Invalid("--wip is for a session of your own.", hint="One that covey runs holds one task at a time.")
    fields = body_of(args, "count", "agent", "role", "permissions") | {"start": args.start}
    answer = client.ask("session.add", fields=fields | ({"names": args.names} if args.names else {}))
    began = _have_daemon(client) if args.start else False
    names = [each["name"] for each in answer.value]
    if args.json and len(args.names) == 1:
        print(escaped(json.dumps(answer.value[0])))
        return 0
    agent = answer.value[0]["agent"]
    if args.start:
        reply(args, answer, _at_work(names, began, agent=agent))
    else:
        known = f"{several.listed(names)} with {agent} {'is' if len(names) == 1 else 'are'} known"
        reply(args, answer, f"{known}; covey session start {' '.join(names)} lets {several.them(names)} work")
    return 0


def start(args: Namespace, client: Client) -> int:
    """Let sessions work, with a daemon that looks after them."""
    several.must_name(args)
    began = _have_daemon(client)
    if args.all:
        answer = client.ask("fleet.start", fields={"all": True})
        reply(args, answer, _at_work([each["name"] for each in answer.value], began))
        return 0
    told = several.each(args, lambda name: client.ask("session.start", {"name": name}, {}))
    if told.names:
        told.say(_at_work(told.names, began))
    return told.end()


def _have_daemon(client: Client) -> bool:
    """Have a daemon that stays, and say whether it was started."""
    from pathlib import Path

    from covey.cli.daemon import ensure_up
    from covey.git.project import find

    return ensure_up(find(Path(client.folder)).must_be_begun())


def _at_work(names: list[str], began: bool, *, agent: str = "") -> str:
    """Say who works from now on, and what ends that."""
    up = "covey is up, and " if began else ""
    if not names:
        return f"{up}no session is stopped; covey session new --start adds one" if up else NOBODY_STOPPED
    works = f"{'works' if len(names) == 1 else 'work'} the board{f' with {agent}' if agent else ''}"
    until = names[0] if len(names) == 1 else "--all"
    return f"{up}{several.listed(names)} {works} until covey session stop {until}"


def stop(args: Namespace, client: Client) -> int:
    """Stop sessions, and wait until nothing of them is alive."""
    several.must_name(args)

    def stopped(session: dict[str, Any]) -> bool:
        return not session["run"] and not session["tasks"]

    if args.all:
        answer = _stop_all(client, stopped)
        names = [each["name"] for each in answer.value]
        kept = "what was not committed is kept (covey rescue list)"
        back = f"covey up --agents brings {several.them(names)} back"
        reply(args, answer, f"Stopped {several.listed(names)}; {kept}; {back}" if names else "No session was at work.")
        return 0
    told = _bring_about(args, client, "stop", {}, stopped)
    for name in told.names:
        told.say(f"Stopped {name}{KEPT if told.answers[name].value['run'] else ''}")
    return told.end()


def _stop_all(client: Client, good: Callable[[dict[str, Any]], bool]) -> Answer:
    from covey.cli.daemon import errand

    with errand(client):
        answer = client.ask("fleet.stop", fields={})
        _await(client, [each["name"] for each in answer.value], good)
    return answer


def pause(args: Namespace, client: Client) -> int:
    """Let sessions stand still."""
    told = _bring_about(args, client, "pause", {}, lambda session: session["state"] == "paused")
    for name in told.names:
        told.say(f"{name} stands still; covey session resume {name} lets it go on")
    return told.end()


def resume(args: Namespace, client: Client) -> int:
    """Let sessions go on."""
    told = several.each(args, lambda name: client.ask("session.resume", {"name": name}, {}))
    for name in told.names:
        told.say(f"{name} goes on")
    return told.end()


def restart(args: Namespace, client: Client) -> int:
    """Begin the tasks of sessions anew."""
    told = several.each(args, lambda name: client.ask("session.restart", {"name": name}, {}))
    for name in told.names:
        again = f"{name} begins its task again{KEPT}"
        told.say(again if told.answers[name].value["run"] else f"{name} had no run to end; it works the board")
    return told.end()


def remove(args: Namespace, client: Client) -> int:
    """Remove sessions, and wait until nothing of them is left."""
    several.must_name(args)
    if args.all:
        args.names = _removable(client, force=args.force)
        if not args.names:
            print("[]" if args.json else NOBODY_STOPPED)
            return 0
    told = _bring_about(args, client, "remove", {"force": args.force}, lambda session: False)
    for name in told.names:
        kept = client.ask("log.list", fields={"kind": "session.rescued", "subject": name, "newest": True, "limit": 1})
        where = f"; its last unsaved work is in {kept.value[0]['data']['ref']}" if kept.value else ""
        told.say(f"Removed {name}{where}")
    return told.end()


def _removable(client: Client, *, force: bool) -> list[str]:
    """Return the sessions that covey runs: those that are stopped, by force all."""
    found = [each for each in client.ask("session.list").value if each["kind"] == "run"]
    return [each["name"] for each in found if force or (_is_stopped(each) and not each["tasks"])]


def _is_stopped(session: dict[str, Any]) -> bool:
    return session["goal"] == "stopped" and session["kind"] == "run" and not session["run"]


def _bring_about(
    args: Namespace, client: Client, verb: str, fields: dict[str, Any], good: Callable[[dict[str, Any]], bool]
) -> several.Told:
    """Ask for what the daemon's loops do, and wait until it is done; a daemon is had for it if none is up."""
    from covey.cli.daemon import errand

    with errand(client):
        told = several.each(args, lambda name: client.ask(f"session.{verb}", {"name": name}, fields))
        _await(client, told.names, good)
    return told


def _await(client: Client, names: list[str], good: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until sessions are as they shall be, or gone."""
    deadline = time.monotonic() + PATIENCE
    while True:
        late = [each for each in client.ask("session.list").value if each["name"] in names and not good(each)]
        if not late:
            return
        if time.monotonic() > deadline:
            states = ", ".join(f"{each['name']} is {each['state']}" for each in late)
            raise Unavailable(
                f"That has not come about after {PATIENCE:g} s: {states}.",
                hint="It goes on; covey session list shows it.",
            )
        time.sleep(0.05)


def logs(args: Namespace, client: Client) -> None:
    """Print what a run printed, or which runs there are."""
    if args.runs:
        _list_runs(args, client)
        return
    since = -args.tail if args.tail else 0
    while True:
        fields = body_of(args, "run") | {"since": since, "raw": args.raw}
        answer = client.ask("session.logs", {"name": args.name}, fields)
        part = answer.value
        if args.json:
            as_json(answer)
        else:
            sys.stdout.write(prose(part["text"]))
            sys.stdout.flush()
        if args.json and not args.follow:
            return
        args.run = part["run"]
        stands, since = part["next"] == since, part["next"]
        if stands and not (args.follow and part["alive"]):
            return
        if stands:
            time.sleep(0.2)


def _list_runs(args: Namespace, client: Client) -> None:
    """List the runs of a session, the newest first."""
    answer = client.ask("run.list", fields={"session": args.name})
    found = (
        (
            run["id"],
            run["outcome"] or "at work",
            run["task"],
            clock(run["begun"]),
            span((run["ended"] or time.time()) - run["begun"]),
            spent(run),
            first_line(run["what"] or "", 60),
        )
        for run in answer.value
    )
    reply(args, answer, table(found, words=1) or f"{args.name} has not run yet.")


def send(args: Namespace, client: Client) -> None:
    """Type to the program of a session."""
    answer = client.ask("session.send", {"name": args.name}, {"text": args.text})
    reply(args, answer, f"Typed to {args.name}")


def why(args: Namespace, client: Client) -> None:
    """Say what the watchdog thinks of a session."""
    answer = client.ask("session.why", {"name": args.name})
    told = answer.value
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
    reply(args, answer, "\n".join(lines))


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
    deadline = time.monotonic() + PATIENCE
    try:
        while True:
            shown = client.ask("session.terminal", {"name": name})
            if shown.value["run"] is not None:
                return shown
            if time.monotonic() > deadline:
                raise Unavailable(f"{name} has no terminal after {PATIENCE:g} s.", hint=f"covey session why {name}")
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


def rows(sessions: list[dict[str, Any]], idle: list[dict[str, Any]]) -> str:
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


def _last(session: dict[str, Any], idle: dict[str, Any] | None) -> str:
    """Return what a session asks, else why it is not at work, else what it did last."""
    if session["state"] == "needs-you":
        return f"asks: {session['evidence']}"
    if idle is not None:
        return plain(idle["text"]) + (f" Until {clock(idle['until'])}." if idle["until"] else "")
    last = session["last_action"]
    return f"{trail.sentence(last)}, {age(last['time'])}" if last else ""


def token(args: Namespace, client: Client) -> None:
    """Make a token for a session."""
    answer = client.ask("session.token", {"name": args.name}, {})
    reply(args, answer, answer.value["token"])


COMMANDS = {
    "new": Command("make sessions known: with an agent those that covey runs, else of your own", _new_arguments,
                   new, owner=True, prints=several.PRINTS,
                   example="covey session new ada --agent sh\ncovey session new rita --role quality\n"
                           "covey session new -n 4 --agent claude --start   four at once, at work"),
    "list": Command("list the sessions, what each holds and did last", _nothing, list_sessions,
                    example="covey session list"),
    "start": Command("let sessions work the board until they are stopped",
                     several.names_or_all("every one that is stopped"), start, owner=True, prints=several.PRINTS,
                     example="covey session start ada bob\ncovey session start --all"),
    "stop": Command("stop sessions: their work is kept, their tasks go back to the board",
                    several.names_or_all("every one; covey up --agents brings them back"), stop, owner=True,
                    prints=several.PRINTS, example="covey session stop ada bob\ncovey session stop --all"),
    "pause": Command("let sessions stand still with their tasks", several.names_argument, pause, owner=True,
                     prints=several.PRINTS, example="covey session pause ada"),
    "resume": Command("let sessions that stand still go on", several.names_argument, resume, owner=True,
                      prints=several.PRINTS, example="covey session resume ada"),
    "restart": Command("end the runs of sessions and begin their tasks again", several.names_argument, restart,
                       owner=True, prints=several.PRINTS, example="covey session restart ada"),
    "remove": Command("remove sessions and their worktrees; their work is kept first", _remove_arguments, remove,
                      owner=True, prints=several.PRINTS,
                      example="covey session remove ada bob\ncovey session remove ada --force   also at work\n"
                              "covey session remove --all   every one that is stopped"),
    "logs": Command("print what a session's agent said and did, or its program printed", _logs_arguments, logs,
                    example="covey session logs ada --follow\ncovey session logs ada --runs\n"
                            "covey session logs ada --run run-12 --raw"),
    "send": Command("type a text to a session's program, as an answer to its question", _send_arguments, send,
                    owner=True, example='covey session send ada "Use port 8080"'),
    "why": Command("say what the watchdog thinks of a session, and on what evidence", _name_argument, why,
                   example="covey session why ada"),
    "attach": Command("open a session's terminal; of one without, take its conversation over and give it back",
                      _name_argument, attach, owner=True, example="covey session attach ada"),
    "token": Command("make a token with which a session speaks for itself; older ones end", _name_argument, token,
                     owner=True, example="export COVEY_URL=$(covey up --json | jq -r .url)\n"
                                         "export COVEY_TOKEN=$(covey session token ada)"),
}  # fmt: skip
