"""The train as people see it: what is tested, what waits and why, what landed, and what a gate printed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from covey.cli.frame.client import Json
from covey.cli.frame.command import width
from covey.cli.frame.output import age, clock, first_line, paint, plain, prose, some, spent, table
from covey.core.figures import one, span, took
from covey.core.merging.queue_view import stands
from covey.git.identity import task_branch

MAX_NAMES_SHOWN = 6
"""Merges of a gate that are named in a line."""
MAX_LINES_SHOWN = 30
"""Merges that are shown of a long queue."""
NOBODY = "No daemon runs, so nothing is tested and nothing lands (covey up)."
BY_APPROVING = "No daemon runs; covey merge approve has one for as long as it takes to test and land this."
ENDED = ("landed", "rejected", "withdrawn", "reverted")


def rows(merges: list[Json], *, at_work: bool = True) -> str:
    """Return merges in aligned columns: state, place in the train, whose, since when, and what it waits for.

    `at_work`: a daemon is there that tests them.
    """
    return table(
        (
            (
                merge["id"],
                merge["state"],
                f"#{merge['place']}" if merge["place"] else "",
                merge["task"],
                merge["session"],
                age(merge["ended"] or merge["queued"]),
                _note(merge, at_work=at_work),
            )
            for merge in merges
        ),
        words=1,
    )


def _note(merge: Json, *, at_work: bool) -> str:
    """Return where the work is, and what becomes of it."""
    if merge["state"] == "landed":
        return f"in {merge['landed'][:12]}" + (", untested" if merge["untested"] else "")
    branch = "" if merge["branch"] == task_branch(merge["task"]) else f"{merge['branch']} "
    where = branch + (merge["commit"] or "")[:12]
    return ": ".join(filter(None, (where, _becomes(merge, at_work=at_work))))


def _becomes(merge: Json, *, at_work: bool) -> str:
    if merge["state"] == "testing" and not at_work:
        return "nobody tests it, as no daemon runs (covey up)"
    return f"in {merge['gate']}" if merge["gate"] else merge["waits"] or merge["reason"] or ""


# The whole queue


def glance(queue: Json, *, at_work: bool = True) -> str:
    """Return the train at a glance; `at_work`: a daemon is there that lets it go on."""
    asking = [merge for merge in queue["merges"] if merge["person"] and merge["state"] in ("review", "queued")]
    waiting = [merge for merge in queue["merges"] if not merge["gate"] and merge not in asking]
    lines = [_head(queue), *(f"  {line}" for line in stops(queue))]
    if not at_work and queue["merges"]:
        lines.append(f"  {NOBODY}")
    title = "Testing" if at_work else "Under test when the daemon ended; tested again by the next"
    lines += _part(title, [_gate_line(gate) for gate in queue["running"]])
    lines += _part("Waiting", [_waiting_line(merge) for merge in waiting])
    lines += _part("Waiting for you (covey merge approve ID, covey merge reject ID)", [_asking_line(m) for m in asking])
    if not queue["merges"]:
        lines.append("Nothing wants to land.")
    return "\n".join([*lines, landed_lately(queue)])


def _head(queue: Json) -> str:
    slots = f", {one(queue['slots'], 'gate')} at a time" if queue["slots"] else ""
    gate = "" if queue["checked"] else "; merge.check is not set, so nothing is tested"
    return f"The queue lands on {queue['branch']}: strategy {queue['strategy']}{slots}{gate}"


def stops(queue: Json) -> Iterator[str]:
    """Yield what keeps the queue from testing, from moving main or from reaching the remote."""
    if queue["halted"]:
        yield f"{paint('halted')}: {plain(queue['halted'])} (covey merge resume tries main again)"
    if queue["paused"]:
        yield f"{paint('paused')}{_by_whom(queue, 'paused')} (covey merge resume)"
    if queue["frozen"]:
        yield f"{paint('frozen')}{_by_whom(queue, 'frozen')} (covey merge thaw)"
    if queue["fleet_paused"]:
        yield f"the whole fleet is {paint('paused')} (covey resume)"
    yield from (plain(each) for each in (*queue["troubles"], *queue["limits"]))


def _by_whom(queue: Json, state: str) -> str:
    by = f" by {queue[f'{state}_by']}" if queue[f"{state}_by"] else ""
    since = f" since {clock(queue[f'{state}_since'])}" if queue[f"{state}_since"] else ""
    return by + since + (f": {plain(queue[f'{state}_why'])}" if queue[f"{state}_why"] else "")


def _gate_line(gate: Json) -> str:
    names = some(gate["merges"] or ["main alone"], MAX_NAMES_SHOWN)
    lasted = took(time.time() - gate["started"])
    return f"{gate['id']:<9} {gate['slot']:>2}  {gate['purpose']:<6} {lasted:>11}  {names}"


def _waiting_line(merge: Json) -> str:
    place = f"#{merge['place']}" if merge["place"] else ""
    why = plain(merge["waits"] or merge["title"])
    return f"{place:<4} {merge['id']:<10} {paint(merge['state'], 7)} {merge['task']:<6} {why}"


def _asking_line(merge: Json) -> str:
    why = plain(merge["waits"] or merge["reason"] or "")
    return f"{merge['id']:<10} {paint(merge['state'], 7)} {merge['task']:<6} {plain(merge['title'])}: {why}"


def _part(title: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    shown = [f"  {_cut(line)}" for line in lines[:MAX_LINES_SHOWN]]
    more = [f"  ... and {len(lines) - MAX_LINES_SHOWN:,} more"] if len(lines) > MAX_LINES_SHOWN else []
    return [f"{title}:", *shown, *more]


def _cut(line: str) -> str:
    """Return a line that a terminal need not wrap; one with colours in it is left whole."""
    room = width() - 2
    return line if not os.isatty(1) or "\x1b" in line or len(line) <= room else line[: room - 1] + "…"


def landed_lately(queue: Json) -> str:
    """Return what landed lately, how much of the last was rejected, and how long a gate takes."""
    last = queue["last"]
    when = f", the last {age(last['made'])} ({last['id']})" if last else ""
    were = "was" if queue["rejected"] == 1 else "were"
    failed = f"; {queue['rejected']} of the last {queue['ended']} {were} rejected" if queue["ended"] else ""
    usual = f"; a gate takes about {span(queue['gate_seconds'])}" if queue["gate_seconds"] else ""
    return f"Landed in the last hour: {queue['landed_hour']}{when}{failed}{usual}"


# One merge


def card(merge: Json) -> str:
    """Return a merge whole."""
    author = f"{merge['session']} ({merge['agent']})" if merge["agent"] else merge["session"]
    landing = merge["landed_by"]
    facts = [
        ("state", paint(merge["state"]) + (f", number {merge['place']} in line" if merge["place"] else "")),
        ("task", f"{merge['task']} ({merge['task_status']})"),
        ("author", author),
        ("branch", merge["branch"]),
        ("commit", merge["commit"]),
        ("candidate", merge["candidate"] if merge["state"] not in ENDED else None),
        ("priority", str(merge["priority"]) if merge["priority"] else None),
        ("needs", ", ".join(merge["needs"])),
        ("clashes with", ", ".join(merge["against"])),
        ("paths", some([plain(path) for path in merge["paths"]], MAX_NAMES_SHOWN)),
        ("takes out", merge["reverts"]),
        ("approved by", merge["approved_by"]),
        ("now in", merge["gate"]),
        ("waits", merge["waits"] and plain(merge["waits"])),
        ("landed", f"{merge['landed']}{', untested' if merge['untested'] else ''}" if merge["landed"] else None),
        ("landing", landing and _landing_line(landing)),
        ("together with", ", ".join(merge["group"])),
        ("reverted by", merge["reverted_by"]),
        ("reason", merge["reason"] and first_line(merge["reason"], 500)),
        ("cost", spent(merge)),
        ("queued", clock(merge["queued"])),
        ("ended", merge["ended"] and clock(merge["ended"])),
    ]
    lines = [f"{merge['id']}  {plain(merge['title'])}", *(f"  {name:<14}{value}" for name, value in facts if value)]
    lines += _part("Gates, the newest first", [_ended_gate(gate, merge["id"]) for gate in merge["gates"]])
    return "\n".join(lines)


def _ended_gate(gate: Json, merge: str) -> str:
    others = [name for name in gate["merges"] if name != merge]
    company = f"with {some(others, MAX_NAMES_SHOWN)}" if others else "alone"
    lasted = took(gate["seconds"] if gate["seconds"] is not None else time.time() - gate["started"])
    failed = some([plain(test) for test in gate["failures"]], MAX_NAMES_SHOWN)
    what = f": {failed}" if gate["failures"] else ""
    return f"{gate['id']:<9} {paint(gate['state'], 7)} {gate['purpose']:<6} {lasted:>11}  {company}{what}"


def _landing_line(landing: Json) -> str:
    pushed = f", pushed to {landing['remote']} {age(landing['pushed'])}" if landing["remote"] else ""
    tested = f"after {landing['gate']}" if landing["gate"] else "untested"
    return f"{landing['id']}, {clock(landing['made'])}, {tested}{pushed}"


def reasons(why: Json, *, at_work: bool = True) -> str:
    """Return why a merge is where it is; `at_work`: a daemon is there that lets it go on."""
    away = not at_work and why["state"] not in ENDED
    because = list(why["because"])
    if away and why["state"] == "testing":
        because[:1] = ["It was under test when the daemon ended, and is tested again by the next."]
    nobody = BY_APPROVING if why["state"] == "review" else NOBODY
    because = [*([nobody] if away else []), *because]
    how = stands(why["state"], whose="a" if os.environ.get("COVEY_TOKEN") else "your")
    how = how.replace(why["state"], paint(why["state"]))
    lines = [f"{why['merge']} ({why['task']}) {how}.", *(f"  {plain(each)}" for each in because)]
    steps = [*(["covey up"] if away and nobody is NOBODY else []), *why["next"]]
    if steps:
        lines += ["What you can do:", *(f"  {plain(each)}" for each in steps)]
    return "\n".join(lines)


# Gates and landings


def gate_card(gate: Json) -> str:
    """Return what a gate came to: the tests that failed, and the lines that say why."""
    after = f" after {took(gate['seconds'])}" if gate["seconds"] is not None else ""
    tested = some(gate["merges"], MAX_NAMES_SHOWN) or "main alone"
    lines = [f"{gate['id']} {paint(gate['state'])}{after}: {gate['commit'][:12]} with {tested}"]
    if gate["why"]:
        lines.append(f"  {plain(gate['why'])}")
    if gate["step"]:
        lines.append(f"  the check that failed: {plain(gate['step'])}" + _code(gate["code"]))
    lines += [f"  failed: {plain(test)}" for test in gate["failures"][:MAX_LINES_SHOWN]]
    if len(gate["failures"]) > MAX_LINES_SHOWN:
        lines.append(f"  ... and {len(gate['failures']) - MAX_LINES_SHOWN:,} more")
    return "\n".join([*lines, *(["", prose(gate["summary"].rstrip())] if gate["summary"] else [])])


def _code(code: int | None) -> str:
    if code is None:
        return ""
    return f" (exit code {code})" if code >= 0 else f" (signal {-code})"


def journal(landings: list[Json]) -> str:
    """Return the landing journal in aligned columns."""
    return table(
        (
            landing["id"],
            clock(landing["made"]),
            plain(landing["branch"]),
            f"{landing['before'][:10]}..{landing['commit'][:10]}",
            landing["gate"] or "untested",
            f"pushed to {landing['remote']}" if landing["remote"] else "",
            some(landing["merges"], MAX_NAMES_SHOWN),
        )
        for landing in landings
    )


def flakes(found: list[Json]) -> str:
    """Return tests that flaked in aligned columns."""
    return table((flake["test"], f"{flake['times']}x", f"last {age(flake['last'])}", flake["gate"]) for flake in found)
