"""covey session: the workers on this project."""

from __future__ import annotations

import sys
import time
from argparse import Namespace

from covey.cli import trail
from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, whole_number
from covey.cli.show import age, as_json, clock, first_line, prose, reply, span, spent, table
from covey.errors import Refused, Unavailable

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from covey.cli.client import Answer

PATIENCE = 60.0
"""Seconds for which we wait until a session is where it shall be."""

LEVELS = ("ask", "edits", "full")
ABOUT = "Sessions: named workers. One that claims a task under a new name becomes known by that."


def _new_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--agent", metavar="AGENT", help="the program that covey runs in it; without one it is yours to run"
    )
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
    _name_argument(parser)
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


def new(args: Namespace, client: Client) -> None:
    """Make a session known."""
    answer = client.ask("session.new", fields=body_of(args, "name", "role", "wip", "agent", "permissions"))
    then = (
        f"covey session start {args.name} lets it work"
        if args.agent
        else f"covey task next --as {args.name} gives it work"
    )
    reply(args, answer, f"Session {args.name} is known; {then}")


def start(args: Namespace, client: Client) -> None:
    """Let a session work, with a daemon that looks after it."""
    from pathlib import Path

    from covey.cli.daemon import ensure_up
    from covey.git.project import find

    began = ensure_up(find(Path(client.folder)).must_be_begun())
    answer = client.ask("session.start", {"name": args.name}, {})
    up = "covey is up, and " if began else ""
    reply(args, answer, f"{up}{args.name} works the board until covey session stop {args.name}")


def stop(args: Namespace, client: Client) -> None:
    """Stop a session, and wait until nothing of it is alive."""
    answer = _bring_about(client, "stop", args.name, {}, lambda session: not session["run"] and not session["tasks"])
    kept = "; what it had not committed is kept (covey rescue list)" if answer.value["run"] else ""
    reply(args, answer, f"Stopped {args.name}{kept}")


def pause(args: Namespace, client: Client) -> None:
    """Let a session stand still."""
    answer = _bring_about(client, "pause", args.name, {}, lambda session: session["state"] == "paused")
    reply(args, answer, f"{args.name} stands still; covey session resume {args.name} lets it go on")


def resume(args: Namespace, client: Client) -> None:
    """Let a session go on."""
    answer = client.ask("session.resume", {"name": args.name}, {})
    reply(args, answer, f"{args.name} goes on")


def restart(args: Namespace, client: Client) -> None:
    """Begin a session's task anew."""
    answer = client.ask("session.restart", {"name": args.name}, {})
    again = f"{args.name} begins its task again; what it had not committed is kept (covey rescue list)"
    reply(args, answer, again if answer.value["run"] else f"{args.name} had no run to end; it works the board")


def remove(args: Namespace, client: Client) -> None:
    """Remove a session, and wait until nothing of it is left."""
    answer = _bring_about(client, "remove", args.name, {"force": args.force}, lambda session: False)
    kept = client.ask("log.list", fields={"kind": "session.rescued", "subject": args.name, "newest": True, "limit": 1})
    where = f"; its last unsaved work is in {kept.value[0]['data']['ref']}" if kept.value else ""
    reply(args, answer, f"Removed {args.name}{where}")


def _bring_about(
    client: Client, verb: str, name: str, fields: dict[str, Any], good: Callable[[dict[str, Any]], bool]
) -> Answer:
    """Ask for what the daemon's loops do, and wait until it is done; a daemon is had for it if none is up."""
    from covey.cli.daemon import errand

    with errand(client):
        answer = client.ask(f"session.{verb}", {"name": name}, fields)
        deadline = time.monotonic() + PATIENCE
        while True:
            found = next((each for each in client.ask("session.list").value if each["name"] == name), None)
            if found is None or good(found):
                return answer
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"{name} is not there yet after {PATIENCE:g} s: it is {found['state']}.",
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
    lines = [f"{told['session']} is {told['state']}" + (f" on {told['task']} ({told['run']})" if told["run"] else "")]
    if told["rule"]:
        lines[0] += f": {told['rule']}"
    lines += [f"  {clue['source']:<9} {clue['text']}, {span(clue['age'])} ago" for clue in told["clues"]]
    if told["until"]:
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
    answer = client.ask("session.list")
    reply(args, answer, rows(answer.value) or "No sessions yet.")


def rows(sessions: list[dict[str, Any]]) -> str:
    """Return sessions in aligned columns: state, what each holds, cost today, and what it did last."""
    return table(
        (
            (
                session["name"],
                "stopped"
                if session["goal"] == "stopped" and session["kind"] == "run" and not session["run"]
                else session["state"],
                ", ".join(session["tasks"][:5]) + (" ..." if len(session["tasks"]) > 5 else ""),
                spent(session),
                f"seen {age(session['seen'])}" if session["seen"] else "",
                _last(session),
            )
            for session in sessions
        ),
        words=1,
    )


def _last(session: dict[str, Any]) -> str:
    """Return what a session asks, or else what it did last."""
    if session["state"] == "needs-you":
        return f"asks: {session['evidence']}"
    last = session["last_action"]
    return f"{trail.sentence(last)}, {age(last['time'])}" if last else ""


def token(args: Namespace, client: Client) -> None:
    """Make a token for a session."""
    answer = client.ask("session.token", {"name": args.name}, {})
    reply(args, answer, answer.value["token"])


COMMANDS = {
    "new": Command("make a session known: with an agent one that covey runs, else one of your own", _new_arguments,
                   new, owner=True, example="covey session new ada --agent sh\ncovey session new rita --role quality"),
    "list": Command("list the sessions, what each holds and did last", _nothing, list_sessions,
                    example="covey session list"),
    "start": Command("let a session work the board until it is stopped", _name_argument, start, owner=True,
                     example="covey session start ada"),
    "stop": Command("stop a session: its work is kept, its task goes back to the board", _name_argument, stop,
                    owner=True, example="covey session stop ada"),
    "pause": Command("let a session stand still with its task", _name_argument, pause, owner=True,
                     example="covey session pause ada"),
    "resume": Command("let a session that stands still go on", _name_argument, resume, owner=True,
                      example="covey session resume ada"),
    "restart": Command("end a session's run and begin its task again", _name_argument, restart, owner=True,
                       example="covey session restart ada"),
    "remove": Command("remove a session and its worktree; its work is kept first", _remove_arguments, remove,
                      owner=True, example="covey session remove ada\ncovey session remove ada --force   also at work"),
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
