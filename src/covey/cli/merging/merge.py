"""covey merge: what wants to land, as far as a person is the queue."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace

from covey.cli import train
from covey.cli.client import Client
from covey.cli.command import Command, Parser, body_of, whole_number
from covey.cli.show import escaped, paint, plain, prose, reply
from covey.errors import CoveyError, Invalid, Refused

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ABOUT = "The merge queue: what was handed in and wants to land on main, how it is tested, and what landed."
rows = train.rows
WAITS = 3
"""The exit code of what was waited for in vain: only a person can bring it on."""
FOR_MAIN = 2.0
"""Seconds for which what is in the way of main may go by itself: another git command, for example."""
FOR_QUEUE = 15.0
"""Seconds in which a queue that could not go on, as was told before, can show that it does so now."""
TAIL = 4000
"""Bytes of the end of a gate's output that are shown unless all of it is asked for."""


def _nothing(parser: Parser) -> None:
    pass


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="also what has ended")
    parser.add_argument("--limit", type=whole_number(1, 1000), metavar="N", help="how many (default 200)")


def _one_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="MERGE", help="for example merge-12, or its task: T-4 means the newest of that")


def _land_arguments(parser: Parser) -> None:
    _one_arguments(parser)
    help = "the commit on main that holds the work, as git names it"
    parser.either("commit", "COMMIT", help, value="COMMIT", many=False)


def _reject_arguments(parser: Parser) -> None:
    _one_arguments(parser)
    parser.either("reason", "REASON", "what its author has to mend")


def _perhaps_arguments(parser: Parser) -> None:
    _one_arguments(parser)
    _why_arguments(parser)


def _why_arguments(parser: Parser) -> None:
    parser.add_argument("reason", nargs="*", metavar="REASON", help="why, for those who look later")


def _revert_arguments(parser: Parser) -> None:
    parser.mixed = True
    _perhaps_arguments(parser)
    parser.add_argument("--reopen", action="store_true", help="open its task again once the work is out of main")


def _queue_arguments(parser: Parser) -> None:
    parser.add_argument("branch", nargs="?", metavar="BRANCH", help="a branch from outside covey that shall land")
    parser.add_argument("--title", metavar="TEXT", help="of its task (default: the subject of its newest commit)")
    parser.add_argument("--priority", type=whole_number(-1_000_000, 1_000_000), metavar="N", help="larger goes first")
    parser.add_argument("--wait", action="store_true", help="until it has landed; exit code 3 if that needs a person")


def _log_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="MERGE", help="for example merge-12, its task, or a gate such as gate-31")
    parser.add_argument(
        "--gate", metavar="GATE", help="which gate (default: that of its landing, else the last that failed)"
    )
    parser.add_argument("--full", action="store_true", help="all that it printed, not only what says why it failed")


def _limit_arguments(parser: Parser) -> None:
    parser.add_argument("--limit", type=whole_number(1, 1000), metavar="N", help="how many")


def _simulate_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a world as JSON, - for standard input")
    help = "how to choose what is tested (default: what covey.toml says, else group)"
    parser.add_argument("--strategy", choices=("serial", "prefix", "group"), help=help)


def list_merges(args: Namespace, client: Client) -> None:
    """List the queue."""
    answer = client.ask("merge.list", fields=body_of(args, "limit") | ({"all": True} if args.all else {}))
    shown = rows(answer.value, at_work=client.url is not None)
    reply(args, answer, shown or ("No merges." if args.all else "Nothing wants to land."))


def queue(args: Namespace, client: Client) -> int | None:
    """Show the train, or queue a branch from outside."""
    if args.branch is None:
        if args.title is not None or args.priority is not None or args.wait:
            raise Invalid(
                "--title, --priority and --wait are for a branch.", hint="covey merge queue BRANCH queues one."
            )
        answer = client.ask("queue.show")
        shown = "" if args.json else train.glance(answer.value, at_work=client.url is not None)
        reply(args, answer, "\n".join([shown, *wrong_settings(client)]))
        return None
    return _queue_branch(args, client)


def wrong_settings(client: Client) -> Iterator[str]:
    """Yield what is wrong with the settings as they are written; a daemon goes on with those that it has read."""
    if client.token is not None or client.url is None:
        return
    from covey import config
    from covey.git.run import try_git

    project = client.project()
    try:
        remote = config.load(project.root).merge.push
    except Invalid as error:
        said = f"{error.message} {error.hint}".strip()
        yield f"covey.toml makes no sense; the settings from before hold until it does: {plain(said)}"
        return
    if remote and try_git("remote", "get-url", "--", remote, at=project.common).returncode != 0:
        yield f"merge.push names the remote {remote!r}, which git does not know (git remote -v)."


def _queue_branch(args: Namespace, client: Client) -> int:
    from covey.cli.branches import wish
    from covey.cli.main import only_owner

    only_owner("merge queue BRANCH")
    asked = wish(client.project(), args.branch, args.title, args.priority)
    if not args.wait:
        answer = client.ask("merge.queue", fields=asked)
        reply(args, answer, _queued(answer.value, asked, client))
        return 0
    from covey.cli.daemon import errand

    with errand(client):
        answer = client.ask("merge.queue", fields=asked)
        if not args.json:
            print(_queued(answer.value, asked, client), flush=True)
        now = _until_ended(client, answer.value["id"])
    if args.json:
        print(escaped(json.dumps(now, ensure_ascii=False)))
    else:
        print(_came_to(now, f"{now['id']}: {now['task']}"))
    return {"landed": 0, "reverted": 0, "rejected": 1, "withdrawn": 1}.get(now["state"], WAITS)


def _queued(merge: dict[str, Any], asked: dict[str, Any], client: Client) -> str:
    said = f"Queued {merge['id']}: {merge['task']} {plain(asked['title'])} ({merge['commit'][:12]})"
    now = client.ask("merge.show", {"id": merge["id"]}).value
    if now["person"]:
        return f"{said}\n  It {_waits(now) or 'waits for you'}\n  covey merge approve {merge['id']} lets it land"
    still = _stands_still(client.ask("queue.show").value)
    return said + (f"; it waits: {still}" if still else "") + _nobody(client)


def _nobody(client: Client) -> str:
    """Return what to say where no daemon is that would do what was asked for."""
    return "" if client.url is not None else "; no daemon runs (covey up)"


def show(args: Namespace, client: Client) -> None:
    """Show one merge whole."""
    answer = client.ask("merge.show", {"id": args.id})
    reply(args, answer, train.card(answer.value))


def why(args: Namespace, client: Client) -> None:
    """Say why a merge is where it is."""
    answer = client.ask("merge.why", {"id": args.id})
    reply(args, answer, train.reasons(answer.value, at_work=client.url is not None))


def log(args: Namespace, client: Client) -> None:
    """Print what a gate said of a merge."""
    gate = args.gate or (args.id if args.id.startswith("gate-") else _gate_of(client, args.id))
    answer = client.ask("gate.show", {"id": gate})
    if args.full:
        _print_all(args, client, gate)
        return
    shown = train.gate_card(answer.value)
    if answer.value["state"] != "failed" and not args.json:
        shown += _tail(client, gate)
    reply(args, answer, f"{shown}\n\ncovey merge log {gate} --full prints all of it")


def _gate_of(client: Client, merge: str) -> str:
    """Return the gate of a merge that says most: that of its landing, else the last that failed, else the last."""
    found = client.ask("merge.show", {"id": merge}).value
    gates = found["gates"]
    if found["landed_by"] and found["landed_by"]["gate"]:
        return str(found["landed_by"]["gate"])
    if not gates:
        raise _no_gate(found)
    telling = [gate for state in ("failed", "running", "passed") for gate in gates if gate["state"] == state]
    return str((telling or gates)[0]["id"])


def _no_gate(merge: dict[str, Any]) -> Refused:
    if merge["untested"]:
        return Refused(f"No gate tested {merge['id']}: it was let pass untested.", hint="merge.check names a gate.")
    tells = f"covey merge why {merge['id']} tells"
    if merge["state"] in train.ENDED:
        return Refused(f"{merge['id']} was in no gate, and is {merge['state']}.", hint=f"{tells} why.")
    return Refused(f"{merge['id']} was in no gate yet.", hint=f"{tells} what it waits for.")


def _tail(client: Client, gate: str) -> str:
    """Return the end of what a gate printed, if that is there."""
    try:
        text = client.ask("gate.log", {"id": gate}, {"since": -TAIL}).value["text"]
    except CoveyError as error:
        return f"\n\n({error.message})"
    return f"\n\n{prose(text.rstrip())}" if text.strip() else "\n\n(it printed nothing)"


def _print_all(args: Namespace, client: Client, gate: str) -> None:
    parts, at = [], 0
    while True:
        part = client.ask("gate.log", {"id": gate}, {"since": at}).value
        if args.json:
            parts.append(part["text"])
        else:
            print(prose(part["text"]), end="")
        if part["next"] == at:
            break
        at = part["next"]
    if args.json:
        print(escaped(json.dumps(part | {"text": "".join(parts)}, ensure_ascii=False)))


def approve(args: Namespace, client: Client) -> int:
    """Let work land; without a daemon, have one for as long as that takes."""
    if client.token is not None:
        answer = client.ask("merge.approve", {"id": args.id}, {})
        reply(args, answer, _came_to(answer.value, f"Approved {answer.value['id']}: {answer.value['task']}"))
        return 0
    from covey.cli.daemon import errand

    before = client.ask("merge.show", {"id": args.id}).value
    if before["state"] not in ("review", "queued"):
        client.ask("merge.approve", {"id": args.id}, {})  # is refused, and no daemon need be started for that
    with errand(client) as own:
        answer = client.ask("merge.approve", {"id": before["id"]}, {})
        now = _until_ended(client, before["id"]) if own else answer.value
    reply(args, answer, _came_to(now, f"Approved {now['id']}: {now['task']}"))
    return 1 if now["state"] == "rejected" else 0


def _until_ended(client: Client, merge: str) -> dict[str, Any]:
    """Wait until a merge has ended, or waits for what only a person can bring about."""
    begun, told, stuck_since = time.monotonic(), False, 0.0
    while True:
        if not told and time.monotonic() - begun > 1:
            print(f"{merge} is tested as it would land ...", file=sys.stderr, flush=True)
            told = True
        now: dict[str, Any] = client.ask("merge.show", {"id": merge}).value
        whole = (now["waits"] or "").startswith("for the queue, ")  # which cannot go on
        stuck = now["person"] or whole or (now["state"] in ("queued", "passed") and now["reason"])
        stuck_since = (stuck_since or time.monotonic()) if stuck else 0.0
        patience = FOR_QUEUE if whole else FOR_MAIN if now["state"] == "passed" else 0.0
        is_over = stuck and time.monotonic() - stuck_since >= patience
        if now["state"] not in ("queued", "testing", "passed") or is_over:
            return now
        queue = client.ask("queue.show").value
        if (_stands_still(queue) and not now["gate"]) or (queue["frozen"] and now["state"] == "passed"):
            return now
        time.sleep(0.05)


def _stands_still(queue: dict[str, Any]) -> str | None:
    """Return what keeps the whole queue from testing anything, if something does."""
    if queue["halted"]:
        return "the queue has halted (covey merge queue tells why)"
    if queue["paused"]:
        return "the queue is paused (covey merge resume)"
    return "the fleet is paused (covey resume)" if queue["fleet_paused"] else None


def _came_to(merge: dict[str, Any], said: str) -> str:
    match merge["state"]:
        case "landed":
            return f"{said} landed in {merge['landed'][:12]}"
        case "rejected":
            return f"{said} was rejected: {plain(merge['reason'])}"
        case "withdrawn":
            return f"{said} has left the queue: {plain(merge['reason'] or '')}"
        case "passed" if _waits(merge):
            return f"{said} passed, and {_waits(merge)}"
        case _:
            return f"{said} {_waits(merge) or 'may land'}"


def _waits(merge: dict[str, Any]) -> str:
    """Return for what a merge waits, "" if that is not known."""
    what = plain(merge.get("waits") or merge["reason"] or "")
    return f"waits {what}" if what.startswith("for ") else f"waits: {what}" if what else ""


def land(args: Namespace, client: Client) -> None:
    """Say that work is on main, after looking whether it is."""
    from covey import config
    from covey.git.project import has_commit_on

    project = client.project()
    commit = whole_hash(client.folder, args.commit)
    main = config.load(project.root).target
    if not has_commit_on(project, commit, main):
        raise Refused(
            f"{args.commit} is not on {main}.", hint=f"Merge it into {main} first; covey.toml names the branch."
        )
    answer = client.ask("merge.land", {"id": args.id}, {"commit": commit})
    reply(args, answer, f"Landed {answer.value['id']}: {answer.value['task']} is done")


def reject(args: Namespace, client: Client) -> None:
    """Send work back to its author."""
    answer = client.ask("merge.reject", {"id": args.id}, {"reason": args.reason})
    task = client.ask("task.show", {"id": answer.value["task"]}).value
    if task["status"] == "blocked":
        what = f"{task['id']} is blocked: {plain(task['reason'] or '')}"
    elif task["front"]:
        what = f"{task['id']} is first in line for {task['front']}"
    else:
        what = f"{task['id']} is open for everyone"
    reply(args, answer, f"Rejected {answer.value['id']}: {what}")


def hold(args: Namespace, client: Client) -> None:
    """Let a merge wait for a person."""
    answer = client.ask("merge.hold", {"id": args.id}, _reason(args))
    merge = answer.value["id"]
    reply(args, answer, f"Held {merge}: it waits until you approve it (covey merge approve {merge})")


def drop(args: Namespace, client: Client) -> None:
    """Take a merge out of the queue."""
    answer = client.ask("merge.drop", {"id": args.id}, _reason(args))
    merge, task = answer.value["id"], answer.value["task"]
    reply(
        args,
        answer,
        f"Dropped {merge}: {task} is blocked, its work stays on {plain(answer.value['branch'])}\n"
        f"  covey merge retry {merge} brings it back as it is, covey task edit {task} --status todo lets it be\n"
        f'  worked on again, covey task drop {task} "REASON" ends it'
        if answer.value["reverts"] is None
        else f"Dropped {merge}: {answer.value['reverts']} stays on main",
    )


def retry(args: Namespace, client: Client) -> None:
    """Try work again as it is."""
    answer = client.ask("merge.retry", {"id": args.id}, {})
    merge = answer.value
    new = "" if args.id == merge["id"] else f" as {merge['id']}"
    commit = f" at {merge['commit'][:12]}" if merge["commit"] else ""
    where = "waits for a review" if merge["state"] == "review" else "is in the queue again"
    said = f"{args.id} {where}{new}: {merge['task']}{commit}{_nobody(client)}"
    reply(args, answer, said + _newer(merge, client))


def _newer(merge: dict[str, Any], client: Client) -> str:
    """Say that a branch has commits that are not in a merge of it."""
    from covey.git.candidates import resolve

    tip = resolve(client.project(), f"refs/heads/{merge['branch']}")
    if tip is None or merge["commit"] in (None, tip):
        return ""
    how = f"covey merge drop {merge['id']}, then covey merge queue {plain(merge['branch'])}"
    return f"\n  {plain(merge['branch'])} is at {tip[:12]} by now, which is not in that; to land it: {how}"


def revert(args: Namespace, client: Client) -> None:
    """Take landed work out of main again."""
    answer = client.ask("merge.revert", {"id": args.id}, _reason(args) | ({"reopen": True} if args.reopen else {}))
    made = answer.value
    goes_on = f"; covey merge approve {made['id']} lets it land" if made["state"] == "review" else _nobody(client)
    reply(args, answer, f"Queued {made['id']}: {made['task']} takes {made['reverts']} out again{goes_on}")


def pause(args: Namespace, client: Client) -> None:
    """Let the queue stand still."""
    answer = client.ask("queue.pause", fields=_reason(args))
    reply(args, answer, f"The queue is {paint('paused')}: what is tested ends, nothing more lands (covey merge resume)")


def resume(args: Namespace, client: Client) -> None:
    """Let the queue go on."""
    answer = client.ask("queue.resume", fields={})
    reply(args, answer, "The queue goes on" + _nobody(client))


def freeze(args: Namespace, client: Client) -> None:
    """Keep main where it is."""
    answer = client.ask("queue.freeze", fields=_reason(args))
    said = f"{answer.value['branch']} is {paint('frozen')}: tests go on, what passes waits for it (covey merge thaw)"
    reply(args, answer, said)


def thaw(args: Namespace, client: Client) -> None:
    """Let main move again."""
    answer = client.ask("queue.thaw", fields={})
    reply(args, answer, f"{answer.value['branch']} moves again" + _nobody(client))


def _reason(args: Namespace) -> dict[str, str]:
    return {"reason": " ".join(args.reason)} if args.reason else {}


def journal(args: Namespace, client: Client) -> None:
    """List what main was and is."""
    answer = client.ask("landing.list", fields=body_of(args, "limit"))
    reply(args, answer, train.journal(answer.value) or "Nothing has landed yet.")


def flakes(args: Namespace, client: Client) -> None:
    """List the tests that cannot be relied on."""
    answer = client.ask("flake.list", fields=body_of(args, "limit"))
    reply(args, answer, train.flakes(answer.value) or "No test has flaked.")


def simulate(args: Namespace, client: Client) -> None:
    """Print what a strategy makes of a world."""
    from covey.cli import simulate

    simulate.run(args, client)


def whole_hash(folder: str, name: str) -> str:
    """Return the whole hash of a commit, in whatever way git names it."""
    if len(name) in (40, 64) and all(letter in "0123456789abcdef" for letter in name):
        return name
    from pathlib import Path

    from covey.git.run import try_git

    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    asked = try_git(*words, at=Path(folder), discover=True)
    if asked.returncode != 0:
        raise Invalid(f"git knows no commit {name[:80]!r} here.", hint="git log shows the commits.")
    return asked.stdout.decode().strip()


COMMANDS = {
    "list": Command("list what wants to land: state, place in the train, and what it waits for", _list_arguments,
                    list_merges, example="covey merge list --all"),
    "queue": Command("show the train at a glance, or queue a branch from outside covey", _queue_arguments, queue,
                     example="covey merge queue\ncovey merge queue feature/login --title \"Let people log in\" --wait"),
    "show": Command("show one merge whole: author, gates, clashes, landing, cost", _one_arguments, show,
                    example="covey merge show merge-12"),
    "why": Command("say in plain words why a merge is where it is, and what you can do", _one_arguments, why,
                   example="covey merge why merge-12"),
    "log": Command("print what the gate said: failing tests, error lines, the end; or all of it", _log_arguments, log,
                   example="covey merge log merge-12\ncovey merge log merge-12 --gate gate-31 --full",
                   prints="the gate as REST answers it, with --full what it printed"),
    "approve": Command("let reviewed work into the queue", _one_arguments, approve,
                       example="covey merge approve merge-12"),
    "reject": Command("send work back to its author", _reject_arguments, reject,
                      example='covey merge reject merge-12 "The test for the empty case is missing"'),
    "hold": Command("let a merge wait until a person approves it", _perhaps_arguments, hold, owner=True,
                    example='covey merge hold merge-12 "I want to see the migration first"'),
    "retry": Command("bring rejected or dropped work into the queue again, as it is", _one_arguments, retry,
                     owner=True, example="covey merge retry merge-12"),
    "drop": Command("take a merge out of the queue; its task is blocked until you decide", _perhaps_arguments, drop,
                    owner=True, example='covey merge drop merge-12 "Not this week"'),
    "revert": Command("take landed work out of main again: built, tested and landed like any other merge",
                      _revert_arguments, revert, owner=True,
                      example='covey merge revert merge-12 --reopen "It breaks the import of old files"'),
    "land": Command("say that work is on main, in a commit that main has", _land_arguments, land, owner=True,
                    example="covey merge land merge-12 HEAD"),
    "pause": Command("let the queue test and land nothing more", _why_arguments, pause, owner=True,
                     example='covey merge pause "The release is being cut"'),
    "resume": Command("let the queue go on, also after main was found red", _nothing, resume, owner=True,
                      example="covey merge resume"),
    "freeze": Command("keep main where it is while testing goes on", _why_arguments, freeze, owner=True,
                      example='covey merge freeze "Demo until noon"'),
    "thaw": Command("let main move again, to all that passed meanwhile", _nothing, thaw, owner=True,
                    example="covey merge thaw"),
    "journal": Command("list the landings: what main was and is, after which gate, and where it was pushed",
                       _limit_arguments, journal, example="covey merge journal --limit 20"),
    "flakes": Command("list the tests that failed and then passed on the same tree", _limit_arguments, flakes,
                      example="covey merge flakes"),
    "simulate": Command("try a strategy of the queue in a world that is written down", _simulate_arguments, simulate,
                        example="covey merge simulate world.json --strategy prefix", prints="JSON, as without it"),
}  # fmt: skip
