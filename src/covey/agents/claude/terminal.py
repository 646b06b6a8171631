"""Claude Code in a terminal: what its screen shows, and what it writes into its journal."""

from __future__ import annotations

import glob
import re
import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from covey.agents import streams
from covey.agents.agent import Assignment, Sight
from covey.agents.claude import messages
from covey.agents.claude.launch import added, home, permissions, program, settings
from covey.agents.claude.messages import SYNTHETIC, blocks, totals, trouble_of
from covey.agents.streams import inner, record, text
from covey.core.fleet.launches import Launch, Screen
from covey.core.fleet.signals import Compacts, Conversation, Failed, Limited, Result, Signal, Trouble, Waits, Works
from covey.values import dataclass

_NAMES = uuid.UUID("6f1d3f6e-0d0c-5a0e-9b0a-5f4f1f0c6a11")
_RULE = re.compile(r"─{20,}(?: .{1,80} ─+)?\s*$")
"""The line above a dialog, and those above and below the prompt; the name of the session may stand in it."""
_DOTS = re.compile(r"[╌─\s]*$")
_FOOT = re.compile(r"\b(?:Esc|Enter) to (?:cancel|confirm|select|exit|continue|reject|submit|go back)\b")
_OPTION = re.compile(r"\s{0,3}❯ (?:\d+\. )?\S")
_SPINNER = re.compile(r"[·✢✳✶✻✽✺*] \S.*(?:…|Retrying in )")
_AGAIN = re.compile(r"[·✢✳✶✻✽✺*] (.*?) · Retrying in .*attempt (\d+)/(\d+)")
_COMPACTS = re.compile(r"[·✢✳✶✻✽✺*] Compacting conversation")
_NEAR_LINES = 6
"""Lines above its prompt in which it says what it does."""
_BUSY_TITLE = re.compile(r"[◐◑◒◓\u2801-\u28ff]")
_IDLE_TITLE = "✳"
_PROMPT = re.compile(r"[❯>!]")
_NARROW_COLUMNS = 40
"""Columns that a screen has left of a panel, at least."""
_MARGIN_COLUMNS = 2
"""Columns before what is written at the prompt."""
_RESETS = re.compile(r"resets (?:([A-Z][a-z]{2}) (\d{1,2}), )?(\d{1,2})(?::(\d\d))?(am|pm) \(([\w/+-]+)\)")
_ENDED = ("end_turn", "stop_sequence", "max_tokens", "refusal")


@dataclass(frozen=True)
class ClaudeTerminal:
    """Claude Code as a person uses it; what it asks, it asks on its screen."""

    begins: bool = True

    def launch(self, work: Assignment) -> Launch:
        """Return its command line; a conversation that begins gets the name under which its journal is found."""
        argv, env = program(work)
        taken_up = streams.name(work.conversation)
        argv += ["--resume", taken_up] if taken_up else ["--session-id", _conversation(work)]
        argv += permissions(work)
        argv += ["--name", " ".join(streams.shown(f"{work.session} {work.run}").split())[:60] or "covey"]
        argv += added(work, settings(work, terminal=True))
        return Launch(argv=tuple(argv), cwd=work.worktree, env=env, terminal=True, ledger=home(work))

    def see(self, screen: Screen) -> Sight:
        """Return what its screen says of it: a prompt between two lines, or a dialog in its place."""
        shown = [line for line in _without_panel(screen.lines) if line.strip()]
        prompt = _prompt(screen)
        if prompt is not None:
            if _is_busy(screen, *prompt):
                return Sight.BUSY
            return Sight.TYPED if self.typed(screen) else Sight.READY
        if any(_FOOT.search(line) for line in shown[-8:]):
            return Sight.ASKS
        return Sight.STARTING if len(shown) < 3 else Sight.UNKNOWN

    def typed(self, screen: Screen) -> str:
        """Return what is written at its prompt; what stands there with the cursor before it is only a suggestion."""
        prompt = _prompt(screen)
        if prompt is None:
            return ""
        above, below = prompt
        if (screen.row, screen.column) == (above + 1, _MARGIN_COLUMNS):
            return ""
        written = [line[_MARGIN_COLUMNS:].replace("\xa0", " ").rstrip() for line in screen.lines[above + 1 : below]]
        return "\n".join(written).strip()

    def asked(self, screen: Screen) -> str:
        """Return the dialog that is open, with what can be chosen in it; nothing if there is none."""
        if self.see(screen) is not Sight.ASKS:
            return ""
        lines = _without_panel(screen.lines)
        end = max(number for number, line in enumerate(lines) if _FOOT.search(line))
        rules = [number for number, line in enumerate(lines[:end]) if line.startswith("─" * 20)]
        options = [number for number, line in enumerate(lines[:end]) if _OPTION.match(line)]
        before = [number for number in rules if not options or number < options[-1]]
        dialog = lines[(before[-1] + 1 if before else 0) : end]
        return streams.brief("\n".join(line.strip() for line in dialog if not _DOTS.match(line)))

    def says(self, screen: Screen) -> Limited | Compacts | None:
        """Return that it was put off, or makes its conversation shorter: the line above its prompt says so."""
        prompt = _prompt(screen)
        if prompt is None or not _is_busy(screen, *prompt):
            return None
        near = [line.replace("\xa0", " ") for line in screen.lines[max(prompt[0] - _NEAR_LINES, 0) : prompt[0]]]
        if any(_COMPACTS.match(line) for line in near):
            return Compacts()
        found = next((found for line in near[::-1] if (found := _AGAIN.match(line))), None)
        if found is None:
            return None
        trouble = trouble_of({}, found[1])
        what = f"{found[1]}, try {found[2]} of {found[3]}"
        return Limited(Trouble.OVERLOAD if trouble is Trouble.OTHER else trouble, streams.complaint(what))

    def journal(self, work: Assignment) -> str | None:
        """Return where it writes its conversation; the folder is named after the worktree, in a way of its own."""
        name = streams.name(work.conversation) or _conversation(work)
        return f"{glob.escape(home(work))}/projects/*/{name}.jsonl"

    def read(self, line: str) -> list[Signal]:
        """Return what a line of its journal lets us know; it holds only what is over: no delays, and no questions."""
        told = record(line)
        if told is None or told.get("isSidechain") is True:
            return []
        match told.get("type"):
            case "assistant" if told.get("isApiErrorMessage") is True:
                return [_failed(told)]
            case "assistant" if text(inner(told, "message"), "model") == SYNTHETIC:
                return []  # its own words in a conversation that it takes up again, which nobody asked for
            case "assistant":
                return [*messages.message(told), *_ended(told)]
            case "user" if told.get("isMeta") is not True:
                return _asked(told)
            case "system" if told.get("subtype") == "compact_boundary":
                return [Compacts(on=False)]
            case "cost-state":
                return totals(inner(told, "modelUsage"), streams.amount(told, "totalCostUSD"))
        return []

    def leave(self) -> str:
        """Return its own command to end."""
        return "/exit"


def _conversation(work: Assignment) -> str:
    """Return the name of a conversation that begins with a run: the same for the same run, and of no other."""
    told = f"{work.worktree}\n{work.run}".encode("utf-8", "surrogatepass")
    return str(uuid.uuid5(_NAMES, told.decode("utf-8", "replace")))


# Its screen


def _prompt(screen: Screen) -> tuple[int, int] | None:
    """Return the numbers of the lines above and below its prompt, None if there is none."""
    rules = [number for number, line in enumerate(screen.lines) if _RULE.match(line)]
    if len(rules) < 2:
        return None
    above, below = rules[-2:]
    return (above, below) if below - above > 1 and _PROMPT.match(screen.lines[above + 1]) else None


def _is_busy(screen: Screen, above: int, below: int) -> bool:
    """Say whether it works; its title is the first to tell, but it may have none."""
    if _BUSY_TITLE.match(screen.title) or any("esc to interrupt" in line for line in screen.lines[below + 1 :]):
        return True
    near = [line for line in screen.lines[max(above - _NEAR_LINES, 0) : above] if line.strip()]
    return not screen.title.startswith(_IDLE_TITLE) and any(_SPINNER.match(line) for line in near)


def _without_panel(lines: tuple[str, ...]) -> list[str]:
    """Return lines without the panel that a wide screen may have at its right: most lines have its edge."""
    edges = Counter(line.find("│", _NARROW_COLUMNS) for line in lines)
    edge, count = max(edges.items(), key=lambda each: (each[0] > 0, each[1]), default=(-1, 0))
    return [line[:edge] for line in lines] if edge > 0 and count * 2 > len(lines) else list(lines)


# Its journal


def _asked(told: Mapping[str, Any]) -> list[Signal]:
    """Return that a message went to the model; commands of the program and a person's Esc stand there too."""
    written = text(inner(told, "message"), "content") or " ".join(text(block, "text") for block in blocks(told)).strip()
    if written.startswith("[Request interrupted"):
        return [Works()]
    if written.startswith(("<command-", "<local-command-", "<bash-")):
        return []
    named = streams.name(text(told, "sessionId"))
    begun: list[Signal] = [Conversation(named)] if named and "promptSource" in told else []
    return [*begun, *messages.results(told), Waits()]


def _ended(told: Mapping[str, Any]) -> list[Signal]:
    """Return the result that a message is which no call of a tool follows."""
    if text(inner(told, "message"), "stop_reason") not in _ENDED:
        return []
    said = "\n\n".join(words for block in blocks(told) if (words := text(block, "text")))
    return [Result(streams.brief(said))] if said else []


def _failed(told: Mapping[str, Any]) -> Failed:
    what = streams.brief(" ".join(text(block, "text") for block in blocks(told)))
    trouble = trouble_of(told, what)
    until = _reset(what, text(told, "timestamp")) if trouble is Trouble.LIMIT else None
    return Failed(streams.complaint(what) or "It ended with an error.", trouble, until)


def _reset(what: str, at: str) -> float | None:
    """Return when a limit ends that is named by the hour: the first such hour after the line was written."""
    found = _RESETS.search(what)
    if found is None:
        return None
    month, day, hour, minute, half, zone = found.groups()
    try:
        written = datetime.fromisoformat(at).astimezone(ZoneInfo(zone))
        hours = int(hour) % 12 + (12 if half == "pm" else 0)
        reset = written.replace(hour=hours, minute=int(minute or 0), second=0, microsecond=0)
        if month is not None:
            number = datetime.strptime(month, "%b").month  # noqa: DTZ007 - a month, no time
            reset = reset.replace(month=number, day=int(day))
            reset = reset if reset >= written - timedelta(days=1) else reset.replace(year=reset.year + 1)
        elif reset < written:
            reset += timedelta(days=1)
    except (KeyError, ValueError, OverflowError, OSError):  # no such zone, hour or day
        return None
    return reset.timestamp()
