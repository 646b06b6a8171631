"""Events as sentences, the same for every surface.

Commands import this without a daemon's rules, so it imports next to nothing.
"""

from __future__ import annotations

from covey.core.figures import money, one, some
from covey.plain import first_line as first_line
from covey.plain import plain as plain

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any


def sentence(kind: str, actor: str, subject: str, data: dict[str, Any]) -> str:
    """Return what happened: who did what to what, in one line that is fit for a terminal."""
    tell = TELL.get(kind)
    if tell is None:
        return plain(f"{actor}: {kind} {subject}")
    try:
        said = tell(data) if callable(tell) else tell
    except KeyError:  # what it says is withheld from this reader
        said = f"{{who}}: {kind} {{it}}"
    return plain(said.format(who=actor, it=subject))


def _safe(text: object) -> str:
    """Return foreign text fit to stand in a pattern of ours."""
    return first_line(str(text), 160).replace("{", "{{").replace("}", "}}")


def _because(data: dict[str, Any], name: str) -> str:
    return f": {_safe(data[name])}" if data.get(name) else ""


_CLEARED = {
    "assignee": "for no session in particular",
    "batch": "no longer of a run",
    "budget": "without a budget of its own",
    "front": "no longer kept for its author",
    "parent": "no longer part of another task",
    "role": "for no role in particular",
}
"""What it means that a field of a task was emptied."""


def _edited(data: dict[str, Any]) -> str:
    changed = {name: value for name, value in data.items() if name not in ("note", "cleared") and value is not None}
    parts = [f"{name} {_value(value)}" for name, value in changed.items()]
    parts += [_CLEARED.get(name) or f"without {name}" for name in data.get("cleared") or ()]
    note = _because(data, "note")
    if not parts:
        return f"{{who}} noted on {{it}}{note}"
    return f"{{who}} changed {{it}}: {', '.join(parts)}" + (f" and noted{note}" if note else "")


def _moved(data: dict[str, Any]) -> str:
    priority = data.get("priority")
    return "{who} moved {it} on the board" + ("" if priority is None else f", to priority {priority}")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "(a long text)"
    if isinstance(value, list):
        names = [entry["task"] if isinstance(entry, dict) else entry for entry in value]
        return _safe(", ".join(map(str, names)) or "none")
    return _safe(value)


def _handed_in(data: dict[str, Any]) -> str:
    commit = f" at {_safe(data['commit'])[:12]}" if data.get("commit") else ""
    where = {"done": "which is done", "review": "for review"}.get(data.get("to", ""), "for the merge queue")
    return f"{{who}} handed in {{it}}{commit}, {where}"


def _released(data: dict[str, Any]) -> str:
    holder = _safe(data["session"])
    return f"{{who}} gave {{it}} back{_because(data, 'what')} (held by {holder})"


def _done(data: dict[str, Any]) -> str:
    if data.get("how") == "children":
        return "{it} is done, because its children are"
    commit = f" in {_safe(data['commit'])[:12]}" if data.get("commit") else ""
    return f"{{it}} is done: it landed{commit}"


def _list(names: Any) -> str:
    """Return some names, and how many there are more."""
    return some([_safe(name) for name in names], 5)


def _taken(data: dict[str, Any]) -> str:
    how = "shared" if data.get("shared") else "alone"
    task = f" for {_safe(data['task'])}" if data.get("task") else ""
    return f"{{who}} took {{it}} on {_safe(', '.join(data['resources']))}, {how}{task}"


def _sent(data: dict[str, Any]) -> str:
    about = data.get("subject") or (data["text"] if isinstance(data.get("text"), str) else "")
    return f"{{who}} wrote to {_safe(data['to'])}: {_safe(about)} ({{it}})"


def _asked(data: dict[str, Any]) -> str:
    return f"{_safe(data['session'])} asks {{it}}: {_safe(data.get('about') or data.get('text') or '')}"


def _answered(data: dict[str, Any]) -> str:
    words = {"allow": "allowed {it}", "always": "allowed {it} for this repository", "deny": "denied {it}"}
    return f"{{who}} {words.get(data['decision'], 'answered {it}')}{_because(data, 'text')}"


def _spent(data: dict[str, Any]) -> str:
    tokens = sum(data.get(name, 0) for name in ("input", "output", "cache_read", "cache_write"))
    model = f" of {_safe(data['model'])}" if data.get("model") else ""
    return f"{{it}} used {one(tokens, 'token')}{model} for {money(data.get('cost', 0.0))}"


def _wrote(data: dict[str, Any]) -> str:
    more = f" and {data['more']:,} more" if data.get("more") else ""
    return f"{{it}} wrote {_list(data['files'])}{more}"


TELL: dict[str, Any] = {
    "task.added": lambda data: f"{{who}} added {{it}}: {_safe(data['title'])}",
    "task.edited": _edited,
    "task.moved": _moved,
    "task.claimed": lambda data: f"{{who}} claimed {{it}} with fence {data['fence']}",
    "task.handed_in": _handed_in,
    "task.approved": "{who} approved {it}",
    "task.released": _released,
    "task.rejected": lambda data: f"{{who}} sent back {{it}} by {_safe(data['session'])}{_because(data, 'what')}",
    "task.blocked": lambda data: f"{{who}} blocked {{it}}{_because(data, 'reason')}",
    "task.dropped": lambda data: f"{{who}} dropped {{it}}{_because(data, 'reason')}",
    "task.ready": lambda data: f"{{it}} is ready, now that {_safe(data['after'])} has ended",
    "task.waiting": lambda data: f"{{it}} waits again, for {_safe(data['on'])}",
    "task.done": _done,
    "session.registered": "session {it} is known",
    "session.started": "{who} started session {it}",
    "session.stopped": lambda data: f"{{who}} stopped session {{it}}{_because(data, 'why')}",
    "session.paused": "{who} paused session {it}",
    "session.resumed": "{who} resumed session {it}",
    "session.leaving": lambda data: f"session {{it}} is about to go{_because(data, 'why')}",
    "session.rescued": lambda data: f"unsaved work of {{it}} was kept in {_safe(data['ref'])}{_because(data, 'why')}",
    "run.begun": lambda data: f"{{it}} of {_safe(data['session'])} begins on {_safe(data['task'])}",
    "run.prepared": lambda data: f"{{it}} is at work, from {_safe(data['base'])[:12]}",
    "run.talking": "{it} has a conversation",
    "run.ending": lambda data: f"{{it}} is to end{_because(data, 'why')}",
    "run.ended": lambda data: f"{{it}} ended, {_safe(data['outcome'])}{_because(data, 'what')}",
    "run.spent": _spent,
    "run.missed": lambda data: f"{data['calls']} steps of {{it}} went by without covey{_because(data, 'why')}",
    "run.heard": lambda data: f"{{it}} has heard {_list([name for name, _ in data['facts']])} of its task",
    "run.left": lambda data: f"what {{it}} did not commit is kept in {_safe(data['ref'])}",
    "run.wrote": _wrote,
    "question.asked": _asked,
    "question.answered": _answered,
    "question.expired": "nobody answered {it} in time, so it was denied",
    "question.withdrawn": lambda data: f"{{it}} needs no answer any more{_because(data, 'why')}",
    "question.told": "the answer to {it} has arrived",
    "permit.granted": lambda data: (
        f"{{who}} allowed {_safe(data['tool'])}{_because(data, 'about')} for this repository ({{it}})"
    ),
    "permit.revoked": "{who} revoked {it}",
    "proposal.made": lambda data: (
        f"{{who}} proposed {_safe(' '.join(filter(None, (data['verb'], data.get('target')))))} ({{it}})"
    ),
    "proposal.accepted": "{who} accepted {it}",
    "proposal.declined": lambda data: f"{{who}} declined {{it}}{_because(data, 'reason')}",
    "proposal.withdrawn": "{who} withdrew {it}",
    "device.invited": lambda data: f"{{who}} invited a {_safe(data['kind'])} as {{it}}",
    "device.joined": lambda data: f"{{it}} joined{_because(data, 'label')}",
    "device.revoked": "{who} revoked {it}",
    "session.attached": "{who} took the conversation of {it} over",
    "session.given_back": "{who} gave the conversation of {it} back",
    "fleet.paused": "{who} paused the fleet",
    "fleet.resumed": "{who} resumed the fleet",
    "fleet.stopped": lambda data: (
        f"{{who}} stopped the fleet: {_list([*data.get('working', ()), *data.get('paused', ())])}"
    ),
    "session.changed": lambda data: f"session {{it}} is {_safe(data['state'])}{_because(data, 'evidence')}",
    "session.removed": "{who} removed session {it}",
    "session.token_minted": "{who} made a token for {it}",
    "lease.taken": _taken,
    "lease.waiting": lambda data: f"{{who}} waits for {_list(data['resources'])} ({{it}})",
    "lease.granted": "{it} is in force: those before it are gone",
    "lease.given": "{who} gave {it} back",
    "lease.expired": lambda data: f"{{it}} ended{_because(data, 'why')}",
    "lease.crossed": lambda data: (
        f"{_safe(data['session'])} wrote {_list(data['paths'])}, which is held by {{it}} ({_safe(data['how'])})"
    ),
    "mail.sent": _sent,
    "mail.read": "{who} read {it}",
    "mail.acked": "{who} acknowledged {it}",
    "mail.delivered": lambda data: (
        f"{{it}} reached {_safe(data['reader'])} in {_safe(data['run'])} ({_safe(data['how'])})"
    ),
    "comment.written": lambda data: (
        f"{{who}} commented on {_safe(data['task'])}{_because(data, 'path')}{_because(data, 'text')} ({{it}})"
    ),
    "comment.edited": lambda data: f"{{who}} changed {{it}}{_because(data, 'text')}",
    "comment.removed": "{who} removed {it}",
    "comment.sent": lambda data: (
        f"{{it}} went to {_safe(data.get('to') or 'whoever mends it')}{' with the work' if data.get('back') else ''}"
    ),
    "overlap.found": lambda data: f"{{it}} overlap ({_safe(data['level'])}): {_list(data.get('files', ()))}",
    "overlap.changed": lambda data: f"{{it}} overlap ({_safe(data['level'])}): {_list(data.get('files', ()))}",
    "overlap.gone": lambda data: f"{{it}} overlap no more{_because(data, 'why')}",
    "overlap.heated": lambda data: f"{{it}} is hot: {data['collisions']} collisions",
    "overlap.cooled": "{it} has cooled down",
    "merge.queued": lambda data: f"{{who}} brought {_safe(data['task'])} as {{it}}, on {_safe(data['branch'])}",
    "merge.entered": lambda data: (
        "{it} has its place in the train" + (f", and changes {_list(data['paths'])}" if data.get("paths") else "")
    ),
    "merge.clashed": lambda data: (
        f"{{it}} cannot be merged with {_list(data['against']) if data['against'] else 'main'}"
    ),
    "merge.approved": "{who} approved {it}",
    "merge.tested": "the gate began on {it}",
    "merge.passed": lambda data: (
        f"{{it}} {'was let pass without a test' if data.get('untested') else 'passed the gate'}"
        f" as {_safe(data['commit'])[:12]}"
    ),
    "merge.waits": lambda data: f"{{it}} waits for main{_because(data, 'why')}",
    "merge.held": lambda data: f"{{it}} waits for a person{_because(data, 'why')}",
    "task.held": lambda data: f"{{it}} waits for a person{_because(data, 'why')}",
    "merge.requeued": lambda data: f"{{it}} is tested again{_because(data, 'why')}",
    "merge.landed": lambda data: f"{{it}} landed in {_safe(data['commit'])[:12]}",
    "merge.rejected": lambda data: f"{{who}} rejected {{it}}{_because(data, 'reason')}",
    "merge.withdrawn": lambda data: f"{{it}} left the queue{_because(data, 'reason')}",
    "merge.reverted": lambda data: f"{{it}} was taken out of main in {_safe(data['commit'])[:12]}",
    "queue.began": lambda data: (
        f"the train began on {_safe(data['base'])[:12]}, {data['slots']} at a time ({_safe(data['strategy'])})"
    ),
    "queue.joined": lambda data: f"{_list(data['merges'])} joined the train",
    "queue.paused": lambda data: f"{{who}} paused the merge queue{_because(data, 'why')}",
    "queue.resumed": "{who} resumed the merge queue",
    "queue.frozen": lambda data: f"{{who}} froze main{_because(data, 'why')}",
    "queue.thawed": "{who} let main move again",
    "queue.halted": lambda data: f"the merge queue halted{_because(data, 'why')}",
    "gate.started": lambda data: (
        f"{{it}} tests {_safe(data['commit'])[:12]}: {_list(data.get('merges') or ('main alone',))}"
    ),
    "gate.ended": lambda data: f"{{it}} {'passed' if data['passed'] else 'failed'}{_because(data, 'step')}",
    "gate.lost": lambda data: f"{{it}} ended without a result{_because(data, 'why')}",
    "gate.flaked": lambda data: f"{{it}} failed and then passed on the same tree: {_list(data['tests'])}",
    "landing.made": lambda data: f"{_safe(data['branch'])} took {_safe(data['commit'])[:12]} ({{it}})",
    "landing.pushed": lambda data: f"{{it}} was pushed to {_safe(data['remote'])}",
    "alert.raised": lambda data: f"alert: {_safe(data['message'])}",
    "log.begun": lambda data: f"the log of {_safe(data.get('project') or 'this project')} began",
    "log.pruned": lambda data: f"{data['blobs']} old long texts were removed ({data['size']} bytes)",
    "log.rebuilt": lambda data: f"the rows were rebuilt from {data['events']} events ({data['differences']} differed)",
    "log.imported": lambda data: f"{data['events']} events of log {_safe(data['log'])[:8]} were taken in",
    "log.forgotten": lambda data: f"{data['events']} events of log {_safe(data['log'])[:8]} were removed again",
    "daemon.started": lambda data: f"the daemon started (covey {_safe(data['version'])})",
    "daemon.stopped": "the daemon stopped",
}
"""The sentence of each kind of event; a test holds this against the catalogue."""
