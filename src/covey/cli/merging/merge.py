"""covey merge: what wants to land, as far as a person is the queue."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Iterator

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, asking, either, flag, later, option, whole_number
from covey.cli.frame.output import escaped, paint, plain, prose, reply
from covey.cli.merging import train_view
from covey.errors import CoveyError, Invalid, Refused

ABOUT = "The merge queue: what was handed in and wants to land on main, how it is tested, and what landed."
rows = train_view.rows
NEEDS_PERSON_EXIT = 3
"""The exit code of what was waited for in vain: only a person can bring it on."""
MAIN_TIMEOUT_S = 2.0
"""Seconds for which what is in the way of main may go by itself: another git command, for example."""
QUEUE_TIMEOUT_S = 15.0
"""Seconds in which a queue that could not go on, as was told before, can show that it does so now."""
TAIL_BYTES = 4000
"""Bytes of the end of a gate's output that are shown unless all of it is asked for."""


def queue(args: Namespace, client: Client) -> int | None:
    """Show the train, or queue a branch from outside."""
    if args.branch is None:
        if args.title is not None or args.priority is not None or args.wait:
            raise Invalid(
                "--title, --priority and --wait are for a branch.", hint="covey merge queue BRANCH queues one."
            )
        answer = client.ask("queue.show")
        shown = "" if args.json else train_view.glance(answer.value, at_work=client.url is not None)
        reply(args, answer, "\n".join([shown, *wrong_settings(client)]))
        return None
    return _queue_branch(args, client)


def wrong_settings(client: Client) -> Iterator[str]:
    """Yield what is wrong with the settings as they are written; a daemon goes on with those that it has read."""
    if client.token is not None or client.url is None:
        return
    from covey import config
    from covey.git.project import has_remote

    project = client.project()
    try:
        remote = config.load(project.root).merge.push
    except Invalid as error:
        said = f"{error.message} {error.hint}".strip()
        yield f"covey.toml is not valid; the previous settings stay in force until it is: {plain(said)}"
        return
    if remote and not has_remote(project, remote):
        yield f"merge.push names the remote {remote!r}, which git does not know (git remote -v)."


def _queue_branch(args: Namespace, client: Client) -> int:
    from covey.cli.main import only_owner
    from covey.cli.merging.branches import request_for

    only_owner("merge queue BRANCH")
    asked = request_for(client.project(), args.branch, args.title, args.priority)
    if not args.wait:
        answer = client.ask("merge.queue", fields=asked)
        reply(args, answer, _queued(answer.value, asked, client))
        return 0
    from covey.cli.project.daemon import errand

    with errand(client):
        answer = client.ask("merge.queue", fields=asked)
        if not args.json:
            print(_queued(answer.value, asked, client), flush=True)
        now = _until_ended(client, answer.value["id"])
    if args.json:
        print(escaped(json.dumps(now, ensure_ascii=False)))
    else:
        print(_came_to(now, f"{now['id']}: {now['task']}"))
    return {"landed": 0, "reverted": 0, "rejected": 1, "withdrawn": 1}.get(now["state"], NEEDS_PERSON_EXIT)


def _queued(merge: Json, asked: Json, client: Client) -> str:
    said = f"Queued {merge['id']}: {merge['task']} {plain(asked['title'])} ({merge['commit'][:12]})"
    now = client.ask("merge.show", {"id": merge["id"]}).value
    if now["person"]:
        return f"{said}\n  It {_waits(now) or 'waits for you'}\n  covey merge approve {merge['id']} lets it land"
    still = _stands_still(client.ask("queue.show").value)
    return said + (f"; it waits: {still}" if still else "") + _nobody(client.url is not None)


def _nobody(at_work: bool) -> str:
    """Return what to say where no daemon is that would do what was asked for."""
    return "" if at_work else "; no daemon runs (covey up)"


def log(args: Namespace, client: Client) -> None:
    """Print what a gate said of a merge."""
    gate = args.gate or (args.id if args.id.startswith("gate-") else _gate_of(client, args.id))
    answer = client.ask("gate.show", {"id": gate})
    if args.full:
        _print_all(args, client, gate)
        return
    shown = train_view.gate_card(answer.value)
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


def _no_gate(merge: Json) -> Refused:
    if merge["untested"]:
        return Refused(f"No gate tested {merge['id']}: it was let pass untested.", hint="merge.check names a gate.")
    tells = f"covey merge why {merge['id']} tells"
    if merge["state"] in train_view.ENDED:
        return Refused(f"{merge['id']} was in no gate, and is {merge['state']}.", hint=f"{tells} why.")
    return Refused(f"{merge['id']} was in no gate yet.", hint=f"{tells} what it waits for.")


def _tail(client: Client, gate: str) -> str:
    """Return the end of what a gate printed, if that is there."""
    try:
        text = client.ask("gate.log", {"id": gate}, {"since": -TAIL_BYTES}).value["text"]
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
        reply(args, answer, _approved(answer.value))
        return 0
    from covey.cli.project.daemon import errand

    before = client.ask("merge.show", {"id": args.id}).value
    if before["state"] not in ("review", "queued"):
        client.ask("merge.approve", {"id": args.id}, {})  # is refused, and no daemon need be started for that
    with errand(client) as own:
        answer = client.ask("merge.approve", {"id": before["id"]}, {})
        now = _until_ended(client, before["id"]) if own else answer.value
    reply(args, answer, _approved(now))
    return 1 if now["state"] == "rejected" else 0


def _until_ended(client: Client, merge: str) -> Json:
    """Wait until a merge has ended, or waits for what only a person can bring about."""
    begun, told, went_on = time.monotonic(), False, time.monotonic()
    while True:
        if not told and time.monotonic() - begun > 1:
            print(f"{merge} is tested as it would land ...", file=sys.stderr, flush=True)
            told = True
        now: Json = client.ask("merge.show", {"id": merge}).value
        patience = _patience(now)
        if patience is None:
            went_on = time.monotonic()
        elif time.monotonic() - went_on >= patience:
            return now
        if now["state"] not in ("queued", "testing", "passed") or _is_kept(now, client.ask("queue.show").value):
            return now
        time.sleep(0.05)


def _patience(merge: Json) -> float | None:
    """Return for how many seconds a merge may wait for what the queue may never bring about; None if it does not."""
    if merge["stuck"]:
        return QUEUE_TIMEOUT_S
    if merge["person"] or (merge["state"] in ("queued", "passed") and merge["reason"]):
        return MAIN_TIMEOUT_S if merge["state"] == "passed" else 0.0
    return None


def _is_kept(merge: Json, queue: Json) -> bool:
    """Say whether a person keeps the queue from going on with a merge."""
    if merge["state"] == "passed" and queue["frozen"]:
        return True
    return _stands_still(queue) is not None and not merge["gate"]


def _stands_still(queue: Json) -> str | None:
    """Return what keeps the whole queue from testing anything, if something does."""
    if queue["halted"]:
        return "the queue has halted (covey merge queue tells why)"
    if queue["paused"]:
        return "the queue is paused (covey merge resume)"
    return "the fleet is paused (covey resume)" if queue["fleet_paused"] else None


def _approved(merge: Json) -> str:
    """Return what came of a merge that was approved; one that did not land after all is not called so."""
    has_failed = merge["state"] in ("rejected", "withdrawn")
    return _came_to(merge, f"{'' if has_failed else 'Approved '}{merge['id']}: {merge['task']}")


def _came_to(merge: Json, said: str) -> str:
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


def _waits(merge: Json) -> str:
    """Return for what a merge waits, "" if that is not known."""
    what = plain(merge.get("waits") or merge["reason"] or "")
    return f"waits {what}" if merge.get("waits_for") else f"waits: {what}" if what else ""


def land(args: Namespace, client: Client) -> None:
    """Say that work is on main, after looking whether it is."""
    from covey import config
    from covey.git.candidates.candidates import committed_on

    project = client.project()
    commit = whole_hash(client.folder, args.commit)
    main = config.load(project.root).target
    if committed_on(project, commit, main) is None:
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


def _dropped(merge: Json, args: Namespace) -> str:
    if merge["reverts"] is not None:
        return f"Dropped {merge['id']}: {merge['reverts']} stays on main"
    task = merge["task"]
    return (
        f"Dropped {merge['id']}: {task} is blocked, its work stays on {plain(merge['branch'])}\n"
        f"  covey merge retry {merge['id']} brings it back as it is, covey task edit {task} --status todo lets it be\n"
        f'  worked on again, covey task drop {task} "REASON" ends it'
    )


def retry(args: Namespace, client: Client) -> None:
    """Try work again as it is."""
    answer = client.ask("merge.retry", {"id": args.id}, {})
    merge = answer.value
    new = "" if args.id == merge["id"] else f" as {merge['id']}"
    commit = f" at {merge['commit'][:12]}" if merge["commit"] else ""
    where = "waits for a review" if merge["state"] == "review" else "is in the queue again"
    said = f"{args.id} {where}{new}: {merge['task']}{commit}{_nobody(client.url is not None)}"
    reply(args, answer, said + _newer(merge, client))


def _newer(merge: Json, client: Client) -> str:
    """Say that a branch has commits that are not in a merge of it."""
    from covey.git.candidates.candidates import resolve

    tip = resolve(client.project(), f"refs/heads/{merge['branch']}")
    if tip is None or merge["commit"] in (None, tip):
        return ""
    how = f"covey merge drop {merge['id']}, then covey merge queue {plain(merge['branch'])}"
    return f"\n  {plain(merge['branch'])} is at {tip[:12]} by now, which is not in that; to land it: {how}"


def _reverted(made: Json, args: Namespace) -> str:
    goes_on = f"; covey merge approve {made['id']} lets it land" if made["state"] == "review" else _nobody(args.at_work)
    return f"Queued {made['id']}: {made['task']} takes {made['reverts']} out again{goes_on}"


def whole_hash(folder: str, name: str) -> str:
    """Return the whole hash of a commit, in whatever way git names it."""
    if len(name) in (40, 64) and all(letter in "0123456789abcdef" for letter in name):
        return name
    from pathlib import Path

    from covey.git.here import commit_named

    return commit_named(Path(folder), name)


MERGE = option("id", metavar="MERGE", help="a merge such as merge-12, or a task such as T-4 for its newest merge")
WHY = option("reason", nargs="*", metavar="REASON", help="why, for the record")
LIMIT = option("--limit", type=whole_number(1, 1000), metavar="N", help="how many")
COMMANDS = {
    "list": Command("list the merges: their state, place in the queue, and what each waits for", (
        flag("--all", "include merges that have ended"),
        option("--limit", type=whole_number(1, 1000), metavar="N", help="how many (default 200)"),
    ), asking("merge.list", "limit", "all", show=lambda merges, args:
              rows(merges, at_work=args.at_work) or ("No merges." if args.all else "Nothing wants to land.")),
                    example="covey merge list --all"),
    "queue": Command("show the merge queue, or add a branch of your own to it", (
        option("branch", nargs="?", metavar="BRANCH", help="a branch of your own to test and land"),
        option("--title", metavar="TEXT", help="the title of its task (default: the subject of its newest commit)"),
        option("--priority", type=whole_number(-1_000_000, 1_000_000), metavar="N", help="a larger number goes first"),
        flag("--wait", "wait until it has landed; exit code 3 if a person has to decide first"),
    ), queue, example="covey merge queue\ncovey merge queue feature/login --title \"Let people log in\" --wait"),
    "show": Command("show everything about a merge: author, gates, conflicts, landing, cost", MERGE,
                    asking("merge.show", show=lambda merge, _: train_view.card(merge)),
                    example="covey merge show merge-12"),
    "why": Command("explain why a merge is where it is, and what you can do", MERGE,
                   asking("merge.why", show=lambda why, args: train_view.reasons(why, at_work=args.at_work)),
                   example="covey merge why merge-12"),
    "log": Command("print the output of a gate: failing tests, error lines and the end, or all of it", (
        option("id", metavar="MERGE", help="for example merge-12, its task, or a gate such as gate-31"),
        option("--gate", metavar="GATE", help="which gate (default: that of its landing, else the last that failed)"),
        flag("--full", "print everything, not only what says why it failed"),
    ), log, example="covey merge log merge-12\ncovey merge log merge-12 --gate gate-31 --full",
                   prints="the gate as REST answers it, with --full what it printed"),
    "approve": Command("approve work, so that it can land", MERGE, approve, example="covey merge approve merge-12"),
    "reject": Command("send work back to its author",
                      (MERGE, either("reason", "REASON", "what its author has to fix")), reject,
                      example='covey merge reject merge-12 "The test for the empty case is missing"'),
    "hold": Command("hold a merge back until a person approves it", (MERGE, WHY),
                    asking("merge.hold", "reason", show=lambda merge, _:
                           f"Held {merge['id']}: it waits until you approve it (covey merge approve {merge['id']})"),
                    owner=True,
                    example='covey merge hold merge-12 "I want to see the migration first"'),
    "retry": Command("queue rejected or dropped work again, unchanged", MERGE, retry,
                     owner=True, example="covey merge retry merge-12"),
    "drop": Command("take a merge out of the queue; its task stays blocked until you decide", (MERGE, WHY),
                    asking("merge.drop", "reason", show=_dropped), owner=True,
                    example='covey merge drop merge-12 "Not this week"'),
    "revert": Command("undo landed work: the revert is tested and landed like any other merge",
                      (MERGE, WHY, flag("--reopen", "reopen its task once the revert has landed")),
                      asking("merge.revert", "reason", "reopen", show=_reverted), owner=True,
                      example='covey merge revert merge-12 --reopen "It breaks the import of old files"'),
    "land": Command("record that work is already on main, in a commit that main has",
                    (MERGE, either("commit", "COMMIT", "the commit on main that has the work, as git names it",
                                   value="COMMIT", many=False)),
                    land, owner=True, example="covey merge land merge-12 HEAD"),
    "pause": Command("pause the queue: nothing more is tested or landed", WHY,
                     asking("queue.pause", "reason", show=lambda _, args:
                            f"The queue is {paint('paused')}: what is tested ends, nothing more lands"
                            " (covey merge resume)"),
                     owner=True, example='covey merge pause "The release is being cut"'),
    "resume": Command("resume the queue, also after main failed its own gate", (),
                      asking("queue.resume", show=lambda _, args: f"The queue goes on{_nobody(args.at_work)}"),
                      owner=True, example="covey merge resume"),
    "freeze": Command("freeze main: tests go on, but nothing lands", WHY,
                      asking("queue.freeze", "reason", show=lambda queue, _:
                             f"{queue['branch']} is {paint('frozen')}: tests go on, what passes waits for it"
                             " (covey merge thaw)"), owner=True,
                      example='covey merge freeze "Demo until noon"'),
    "thaw": Command("unfreeze main, and land what passed in the meantime", (),
                    asking("queue.thaw", show=lambda queue, args:
                           f"{queue['branch']} moves again{_nobody(args.at_work)}"),
                    owner=True, example="covey merge thaw"),
    "journal": Command("list the landings: how main moved, after which gate, and where it was pushed", LIMIT,
                       asking("landing.list", "limit",
                              show=lambda found, _: train_view.journal(found) or "Nothing has landed yet."),
                       example="covey merge journal --limit 20"),
    "flakes": Command("list the tests that failed and then passed on the same tree", LIMIT,
                      asking("flake.list", "limit",
                             show=lambda found, _: train_view.flakes(found) or "No test has flaked."),
                      example="covey merge flakes"),
    "simulate": Command("simulate a strategy of the merge queue on a workload from a file", (
        option("file", metavar="FILE", help="the workload as JSON; - is standard input"),
        option("--strategy", choices=("serial", "prefix", "group"),
               help="how the queue chooses what to test (default: as in covey.toml, else group)"),
    ), later("merging.simulate", "run"), example="covey merge simulate world.json --strategy prefix",
                        prints="JSON, as without it"),
}  # fmt: skip
