"""What leads out of a session: what settings, permits or a person allow, and what is asked for or told otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from covey.app.context import Call
from covey.app.fleet.sessions import alert
from covey.app.people.questions import ask_from_shell, covering
from covey.app.shapes.forms import As, form
from covey.app.verbs import verb
from covey.core.fleet.runs import Run
from covey.core.fleet.sessions import COVEY, OWNER
from covey.core.fleet.signals import Asks, Wants
from covey.core.people import mail, permits, questions
from covey.core.people.alerts import AlertKind
from covey.core.people.commands import pushes
from covey.core.people.commands.pushes import Push
from covey.core.people.permits import PUSH, SHELL
from covey.core.people.questions import Permission, Permitted
from covey.core.people.rights import SHARED
from covey.errors import Invalid

ONE_WORD = "must be one word"
PushedRef = Annotated[str, form(r"[+:]?[^\s\x00-\x20\x7f]+", "must be a ref", min_length=1, max_length=1000)]


class AskPush(As, frozen=True, kw_only=True):
    """What a session's git is about to push: the remote by name or address, and its refs as git's refspecs name them.

    A branch stands by its bare name; `+` before a ref moves it by force, `:` deletes it.
    """

    remote: Annotated[str, form(r"[^\s\x00-\x1f\x7f]+", ONE_WORD, min_length=1, max_length=4000)]
    refs: Annotated[list[PushedRef], Meta(min_length=1, max_length=1000)]


@verb("push.ask", "POST /api/pushes", AskPush, Permitted, may=SHARED, status=201)
def ask_push(call: Call, asked: AskPush) -> Permitted:
    """Ask whether a session may push: settings, permits and answers decide at once, else a person is asked."""
    name = call.actor(asked.session)
    if name == OWNER:
        raise Invalid("You are the owner, and push what you like.", hint="--as NAME asks for a session.")
    call.worker(name)
    push = Push(asked.remote, tuple(asked.refs))
    if pushes.is_allowed(call.context.config.sessions.push, push):
        return Permitted(Permission.ALLOW, "[sessions.push] in covey.toml allows it.")
    run = next(iter(call.tx.open_runs(name)), None)
    text = f"May I push to {push.remote}: {', '.join(map(_in_words, push.refs))}?"
    return permitted(call, name, run, PUSH, push.spoken(), text)


def permitted(call: Call, session: str, run: Run | None, tool: str, about: str, text: str) -> Permitted:
    """Say whether a session may do what leads out; what nobody has decided is asked for in the inbox, once."""
    permit = covering(call, tool, about)
    if permit is not None:
        return Permitted(Permission.ALLOW, f"{permit.id} allows it.")
    task = run.task if run is not None else next((held.id for held in call.tx.held_by(session)), None)
    run_id = None if run is None else run.id
    known = call.tx.last_question(session, task, tool, about)
    said = None if known is None else questions.standing(known, run_id)
    if said is not None:
        return said
    asks = Asks(text, wants=Wants.PERMISSION, tool=tool, about=about)
    made = ask_from_shell(call, session, asks, task=task, run=run_id)
    return Permitted(Permission.ASK, f"A person is asked: {made.id}.", made.id)


def is_allowed(call: Call, session: str, task: str | None, tool: str, about: str) -> bool:
    """Say whether settings, a permit or a person allowed a session what it did."""
    settings = call.context.config.sessions
    if tool == PUSH:
        remote, *refs = about.split()
        if pushes.is_allowed(settings.push, Push(remote, tuple(refs))):
            return True
    elif any(permits.covers(SHELL, each, SHELL, about) for each in settings.allow):
        return True
    known = call.tx.last_question(session, task, tool, about)
    reply = None if known is None else questions.reply_of(known)
    return covering(call, tool, about) is not None or (reply is not None and reply.allows)


def tell_pushed(call: Call, session: str, task: str | None, seen: Iterable[Push], how: str) -> None:
    """Tell the person, once and until they have read it, what a session pushed that nobody had allowed."""
    unasked = [push.spoken() for push in seen if not is_allowed(call, session, task, PUSH, push.spoken())]
    if not unasked:
        return
    what = "; ".join(unasked)
    message = f"{session} pushed without asking, past gate and review: {what}. {how}"
    _tell(call, AlertKind.PUSHED_UNASKED, f"{session} pushed without asking: {what}"[:500], message, session, task)


def tell_sent(call: Call, session: str, task: str | None, commands: Iterable[str]) -> None:
    """Tell the person what a session sent or published by a program, if nobody had allowed it."""
    unasked = [each for each in commands if not is_allowed(call, session, task, SHELL, each)]
    if unasked:
        message = f"{session} ran commands that may send data out, without asking: {'; '.join(unasked)}."
        _tell(call, AlertKind.SENT_UNASKED, f"{session} may have sent something out", message, session, task)


def _tell(call: Call, kind: AlertKind, subject: str, message: str, session: str, task: str | None) -> None:
    """Raise an alert, and leave a message in the inbox that stays there until the person has taken it in."""
    alert(call, kind, message, session, task)
    text = call.prose(message, "The message")
    call.tx.begin(mail.Message, mail.Sent(to=OWNER, subject=subject, text=text, task=task, wants_ack=True), COVEY)


def _in_words(ref: str) -> str:
    if ref.startswith(pushes.DELETED):
        return f"delete {ref[1:]}"
    return f"{ref[1:]} by force" if ref.startswith(pushes.FORCED) else ref
