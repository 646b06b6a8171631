"""The gate, tried on main: by the daemon if there is one, else by the same gates here, behind the same lock."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from argparse import Namespace

from covey import config
from covey.app.merging.queue_records import lose_gates
from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import width
from covey.cli.frame.output import first_line, paint, plain
from covey.cli.merging.gate_search import proposed_checks, search
from covey.cli.project.daemon import ASK_TO_END, tell_other_path
from covey.core import texts
from covey.core.figures import span
from covey.core.merging.gates import Gate
from covey.errors import CoveyError
from covey.installation import step_back
from covey.loops.gates.gates import Gates
from covey.loops.gates.tried_gates import TriedGates
from covey.loops.runtime import Runtime
from covey.store.engine.lock import NeedLock

GATE_LOOK_EVERY_S = 0.2
"""Seconds between two looks."""
LAST_LINE_BYTES = 2000
"""Bytes of its output in which its last line is looked for."""
_WORDS = {"works": "passed", "empty": "waiting", "fails": "failed", "broken": "failed", "lost": "lost"}


def check_again(args: Namespace, client: Client) -> int:
    """Try the gate on main as it is now, or what seems to be one if none is set, and tell what came of it."""
    project = client.project()
    settings = config.load(project.root)
    tell_other_path(project)
    checks = () if settings.merge.check else proposed_checks(project, settings.target)
    if checks and not args.json:
        print("merge.check is not set; what seems to test this repository is tried.", flush=True)
    found = search(client, checks, settings.target, quiet=args.json)
    if found.best is None and found.trouble is not None:
        raise found.trouble
    gate = try_gate(client, "", quiet=args.json) if found.best is None else found.best.gate
    if args.json:
        import json

        print(json.dumps(gate))
    else:
        print("\n".join([*found.told(), *told(gate)]))
        if found.best is not None:
            print(
                f"  It does not hold yet: check = {texts.toml(found.best.check)} under [merge] in covey.toml sets it."
            )
    return int(gate["verdict"] != "works")


def told(gate: Json) -> list[str]:
    """Return what came of a try, and what to do, in lines for people."""
    lines = [f"{paint(_WORDS[gate['verdict']])}: {plain(gate['told'])}"]
    if gate["failures"]:
        lines.append(f"  failed: {', '.join(plain(test) for test in gate['failures'][:5])}")
    if gate["advice"]:
        lines.append(f"  {gate['advice']}")
    if gate["verdict"] != "works":
        lines.append(f"  covey merge log {gate['id']} shows what it printed.")
    return lines


def try_gate(client: Client, check: str, *, quiet: bool) -> Json:
    """Try the gate on main, or another check in its place, and return how it ended, as `gate.show` answers it."""
    project = client.project()
    step_back(project.root)  # as the daemon does: the tools of the user count, and not covey's own
    logging.getLogger("covey").addHandler(logging.NullHandler())  # what gates lack is told by covey merge queue
    fields = {"check": check} if check else {}
    progress = _Progress(client, quiet=quiet)
    with NeedLock(project.needed), client:  # a daemon that is only there while it is needed stays
        try:
            client.ask("status")  # which tells who answers
            if client.alone is None:
                gate = client.ask("gate.try", fields=fields).value["id"]
                _follow(client, gate, progress)
            else:
                client.alone.tell("covey init tries the gate")
                gate = asyncio.run(_run(client, client.alone.runtime(), fields, progress))
            shown: Json = client.ask("gate.show", {"id": gate}).value
        finally:
            progress.end()
    return shown


def _follow(client: Client, gate: str, progress: _Progress) -> None:
    """Look until the daemon has tried it; whoever interrupts us calls it off."""
    try:
        while client.ask("gate.show", {"id": gate}).value["state"] == "running":
            progress.show(gate)
            time.sleep(GATE_LOOK_EVERY_S)
    except BaseException:
        with contextlib.suppress(CoveyError):
            client.ask("gate.stop", {"id": gate}, {})
        raise


async def _run(client: Client, runtime: Runtime, fields: dict[str, str], progress: _Progress) -> str:
    """Try it here, as the daemon would, leave nothing of it, and return the gate."""
    pool = Gates(runtime)
    tried = TriedGates(runtime, pool)
    stop = asyncio.Event()
    for number in ASK_TO_END:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await pool.recover()  # what a daemon or a command left that was killed
        await runtime.write(lambda call: lose_gates(call, "it was cut short"))
        begun = client.ask("gate.try", fields=fields).value["id"]
        gate = await runtime.read(lambda call: call.tx.get(Gate, begun))
        assert gate is not None
        trying = tried.begin(gate, fields.get("check", ""))
        while not trying.done():
            await asyncio.wait([trying], timeout=GATE_LOOK_EVERY_S)
            if stop.is_set():
                await tried.call_off(gate.id)
            else:
                progress.show(gate.id)
    finally:
        await pool.stop_all()
        await pool.put_away()
        runtime.close()
    if stop.is_set():
        raise KeyboardInterrupt
    return gate.id


class _Progress:
    """One line on a terminal: how long it takes so far, and what it printed last."""

    def __init__(self, client: Client, *, quiet: bool) -> None:
        self._client = client
        self._shows = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._begun = time.monotonic()

    def show(self, gate: str) -> None:
        """Show how far it is."""
        if not self._shows:
            return
        said = ""
        with contextlib.suppress(CoveyError):  # there is nothing before it has begun to print
            said = self._client.ask("gate.log", {"id": gate}, {"since": -LAST_LINE_BYTES}).value["text"]
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
        line = f"  {span(time.monotonic() - self._begun)}  {first_line(last, 200)}"
        print(f"\r\x1b[K{line[: width() - 1]}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Take the line away."""
        if self._shows:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
