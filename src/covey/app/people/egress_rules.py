"""What leads out of a session: what settings, permits or a person allow, and what is asked for or told otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from covey.app import questions as asking
from covey.app.mail import post
from covey.app.questions import check_open, covering
from covey.app.sessions import alert
from covey.app.shapes.questions import AskPush, PushAnswer
from covey.app.verbs import Call, verb
from covey.core import mail, permits, pushes, questions
from covey.core.permits import PUSH, SHELL
from covey.core.pushes import Push
from covey.core.questions import FROM_SHELL, Permission, Permitted
from covey.core.rights import SHARED
from covey.core.runs import Run
from covey.core.sessions import COVEY, OWNER
from covey.core.signals import Asks, Wants
from covey.errors import Invalid

UNASKED = "pushed_unasked"
"""The alert for what a session pushed and nobody had allowed."""
SENT = "sent_unasked"
"""The alert for what a session sent or published by a program, and nobody had allowed."""


@verb("push.ask", "POST /api/pushes", AskPush, PushAnswer, may=SHARED, status=201)
def ask_push(call: Call, asked: AskPush) -> PushAnswer:
    """Ask whether a session may push: settings, permits and answers decide at once, else a person is asked."""
    name = call.actor(asked.session)
    if name == OWNER:
        raise Invalid("You are the owner, and push what you like.", hint="--as NAME asks for a session.")
    call.worker(name)
    push = Push(asked.remote, tuple(asked.refs))
    if pushes.is_allowed(call.house.config.sessions.push, push):
        return PushAnswer.of(Permitted(Permission.ALLOW, "[sessions.push] in covey.toml allows it."))
    run = next(iter(call.tx.open_runs(name)), None)
    text = f"May I push to {push.remote}: {', '.join(map(_in_words, push.refs))}?"
    return PushAnswer.of(permitted(call, name, run, PUSH, push.spoken(), text))


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
    check_open(call, session)
    mark = sha256(f"{call.tx.next_seq} {about}".encode()).hexdigest()[:16]
    asks = Asks(text, f"{FROM_SHELL}{mark}", Wants.PERMISSION, tool, about)
    minutes = call.house.config.watch.answer_minutes
    made = asking.ask(call, session, asks, task=task, run=run_id, minutes=minutes)
    return Permitted(Permission.ASK, f"A person is asked: {made.id}.", made.id)


def is_allowed(call: Call, session: str, task: str | None, tool: str, about: str) -> bool:
    """Say whether settings, a permit or a person allowed a session what it did."""
    settings = call.house.config.sessions
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
    _tell(call, UNASKED, f"{session} pushed without asking: {what}"[:500], message, session, task)


def tell_sent(call: Call, session: str, task: str | None, commands: Iterable[str]) -> None:
    """Tell the person what a session sent or published by a program, if nobody had allowed it."""
    unasked = [each for each in commands if not is_allowed(call, session, task, SHELL, each)]
    if unasked:
        message = f"{session} ran what leads out of this machine, and nobody was asked: {'; '.join(unasked)}."
        _tell(call, SENT, f"{session} may have sent something out", message, session, task)


def _tell(call: Call, type: str, subject: str, message: str, session: str, task: str | None) -> None:
    """Raise an alert, and leave a message in the inbox that stays there until the person has taken it in."""
    alert(call, type, message, session, task)
    text = call.prose(message, "The message")
    post(call, COVEY, mail.Sent(to=OWNER, subject=subject, text=text, task=task, wants_ack=True))


def _in_words(ref: str) -> str:
    if ref.startswith(pushes.DELETED):
        return f"delete {ref[1:]}"
    return f"{ref[1:]} by force" if ref.startswith(pushes.FORCED) else ref
