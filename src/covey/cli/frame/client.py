"""Ask a verb: of the daemon if there is one, else of the store itself, behind the same lock.

A run's token (COVEY_TOKEN) speaks only over HTTP. Everyone else is the owner, who can read the state folder.
"""

from __future__ import annotations

import gc
import json
import os
import time

from covey import proof
from covey.cli.frame.find_repo import here, quick_common, quick_place
from covey.cli.frame.http_client import Lost, Wire
from covey.cli.frame.routes import ROUTES
from covey.errors import CoveyError, Denied, Invalid, Proposed, Unavailable, Unknown

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TextIO, TypeVar

    from covey.cli.frame.local import Alone
    from covey.git.project import Project

    T = TypeVar("T")
    Json = dict[str, Any]
else:
    Json = dict
"""A JSON object: an answer, a row of it, or the fields of a request. Whoever writes Json need not import typing."""

REPEAT_LOST_S = 10.0
"""Seconds for which a request is repeated, with the same idempotency key, when its answer did not arrive."""
RESTART_TIMEOUT_S = 2.0
"""Seconds for which a run waits for a daemon that does not listen: it may be starting again."""
LOCK_TIMEOUT_S = 30.0
"""Seconds to wait while somebody else writes."""
LONG_LOCK_TIMEOUT_S = 2.0
"""Seconds to wait for somebody who says that it takes long."""


class Answer:
    """What a verb answered: its HTTP status, its JSON, and how long the whole list is."""

    __slots__ = ("body", "status", "total", "value")

    def __init__(self, status: int, body: bytes, total: int | None = None) -> None:
        self.status = status
        self.body = body
        self.total = total
        self.value: Any = json.loads(body) if body else None


class Client:
    """Who asks, and the way to whoever answers; nothing is opened before the first question."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = os.path.abspath(folder) if folder else here()
        if folder and not os.path.isdir(folder):  # or the repository around it would be taken
            raise Invalid(f"There is no folder {self.folder}.")
        self.token = os.environ.get("COVEY_TOKEN")
        if self.token == "":  # whoever set it meant to be a session
            raise Unknown(
                "COVEY_TOKEN is set, but empty.",
                hint="covey session token NAME prints a session's; unset COVEY_TOKEN to be the owner.",
            )
        self.url: str | None = None
        """Where the last answer came from; None if we gave it ourselves."""
        self.said: Json = {}
        """What the daemon says of itself."""
        self._key = os.urandom(16).hex()
        self._asked = 0
        self._wire: Wire | None = None
        self._project: Project | None = None
        self._alone: Alone | None = None
        self._held = 0

    # Asking

    def ask(self, verb: str, params: dict[str, str] | None = None, fields: Json | None = None) -> Answer:
        """Ask one verb and return its answer; an error comes as the error that it is."""
        params, fields = params or {}, fields or {}
        if self.token is not None:
            _refuse_in_run(verb, fields)
        for value in params.values():
            if not value or "/" in value:
                # No address can hold such a name, so neither way of asking is given it.
                from covey.core.nouns import missing  # the whole vocabulary, which only this mistake needs

                raise missing(verb.partition(".")[0], value)
        self._asked += 1
        try:
            question = Question(verb, params, fields, f"{self._key}-{self._asked}")
        except UnicodeEncodeError:
            raise Invalid(f"{_not_text([params, fields])!r} is not UTF-8 text.", hint="Give it in UTF-8.") from None
        try:
            answer = self._ask(question)
        finally:
            if not self._held:
                self.let_go()
        if answer.status == Proposed.status:
            raise Proposed(answer.value["id"], answer.value["why"], answer.body)
        return answer

    def follow(self, after: int, silence: float) -> Iterator[bytes]:
        """Yield what the daemon tells of all that happens after an event; without a daemon that is Lost at once."""
        wire = self._owner_wire()
        if wire is None:
            raise Lost("no daemon runs", sent=False)
        return wire.follow(f"/api/events?after={after}&live=false", silence)

    def _ask(self, question: Question) -> Answer:
        if self.token is not None:
            return self._ask_until_answered(question, self._run_wire())
        if self.alone is not None:
            return self.alone.ask(question)
        wire = self._owner_wire()
        if wire is not None:
            try:
                return self._by_http(wire, question)
            except Lost as lost:
                self._wire = None
                if lost.hangs:
                    raise self._hanging(question, lost) from None
                return self._ask_owner_again(question, sent=lost.sent)
        return self._ask_owner_again(question)

    def _by_http(self, wire: Wire, question: Question) -> Answer:
        self.url = None  # it may be said to be up only once it has answered
        status, headers, body = wire.ask(question.method, question.target, question.body, question.key)
        self.url = wire.url
        if status >= 400 or status < 200:
            raise problem(status, body)
        total = headers.get("x-total-count")
        return Answer(status, body, int(total) if total is not None else None)

    def _ask_until_answered(self, question: Question, wire: Wire) -> Answer:
        """Ask a daemon that may be away for a moment; the key makes the repetition harmless."""
        lost_at: float | None = None
        patience = RESTART_TIMEOUT_S
        while True:
            try:
                return self._by_http(wire, question)
            except Lost as lost:
                lost_at = lost_at or time.monotonic()
                patience = REPEAT_LOST_S if lost.sent else patience
                if time.monotonic() - lost_at > patience:
                    if patience == REPEAT_LOST_S and question.key is not None:
                        raise _outcome_unknown() from None
                    raise Unavailable(
                        f"No daemon answers at {wire.url}: {lost}.", hint="The owner starts it with covey up."
                    ) from None
                time.sleep(0.1)

    def _ask_owner_again(self, question: Question, *, sent: bool = False) -> Answer:
        """Take the writer's lock and answer ourselves, or find the daemon that holds it."""
        found: list[Answer] = []

        def is_answered() -> bool:
            nonlocal sent
            wire = self._daemon(str(project.state))
            if wire is not None:
                try:
                    found.append(self._by_http(wire, question))
                except Lost as lost:
                    self._wire = None
                    if lost.hangs:
                        raise self._hanging(question, lost) from None
                    sent = sent or lost.sent
            waited = time.monotonic() - began
            if not found and (waited > LOCK_TIMEOUT_S or (waited > LONG_LOCK_TIMEOUT_S and held_for(project.lock))):
                raise _outcome_unknown() if sent and question.key is not None else taken(project.lock)
            return bool(found)

        project = self.project()
        if self._alone is None:
            gc.disable()  # Importing the rules makes much and throws nothing away, ...
            from covey.cli.frame.local import Alone

            gc.freeze()  # ... nor need it be looked through when we end, which would take as long as fifteen claims.
            gc.enable()
            self._alone = Alone(project)
        from covey.store.engine.lock import held_for, taken

        began = time.monotonic()
        if not self._alone.take(LOCK_TIMEOUT_S, is_answered):
            return found[0]
        self.url = None
        return self._alone.ask(question)

    def _hanging(self, question: Question, lost: Lost) -> Unavailable:
        """Return what to say of a daemon that is there and does not answer."""
        if lost.sent and question.key is not None:
            return _outcome_unknown()
        return Unavailable(
            f"The daemon is there, as process {self.said['pid']}, and does not answer: {lost}.",
            hint="Try again; covey down and covey up start it anew, and agents work on meanwhile.",
        )

    # Ways

    def project(self) -> Project:
        """Return the project that we stand in; covey looks after it."""
        if self._project is None:
            from covey.cli.frame.lean_imports import import_lean

            import_lean()
            from pathlib import Path

            from covey.git.project import Project, find

            if (common := quick_place(self.folder)) is None:
                self._project = find(Path(self.folder))
            else:
                self._project = Project(root=Path(common).parent, common=Path(common), bare=False)
        return self._project.must_be_begun()

    def _run_wire(self) -> Wire:
        if self._wire is None:
            url = os.environ.get("COVEY_URL")
            if not url:
                raise Invalid(
                    "COVEY_TOKEN is set, and COVEY_URL is not.",
                    hint="covey sets both; unset COVEY_TOKEN to be the owner.",
                )
            self._wire = Wire(url, self.token or "", self._credential())
        return self._wire

    def _credential(self) -> str:
        """Return what the daemon proves itself with to a session: what it was given, or what stands in the folder."""
        given = os.environ.get(proof.VARIABLE)
        if given:
            return given
        common = quick_common(self.folder)
        try:
            state = str(self.project().state) if common is None else os.path.join(common, "covey")
            return proof.credential(_owner_token(state), proof.OWNER)
        except (CoveyError, OSError):
            return ""

    def _owner_wire(self) -> Wire | None:
        """Return the way to the daemon if one holds the lock and says where it answers."""
        if self._wire is not None:
            return self._wire
        common = quick_common(self.folder)
        state = os.path.join(common or "", "covey")
        if common is None or not os.path.exists(os.path.join(state, "daemon.json")):
            state = str(self.project().state)
        return self._daemon(state) if is_locked(os.path.join(state, "lock")) else None

    def _daemon(self, state: str) -> Wire | None:
        try:
            with own_file(os.path.join(state, "daemon.json")) as file:
                said = json.load(file)
                url = str(said["url"])
            if not is_daemon(int(said["pid"])):
                return None  # a killed daemon said it, and whoever listens there now would have nothing to prove
            token = _owner_token(state)
            self.said, self._wire = said, Wire(url, token, proof.credential(token, proof.OWNER))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unavailable(f"What the daemon says of itself cannot be read: {error}.") from None
        return self._wire

    # Several questions at once

    def __enter__(self) -> Client:
        """Keep the way open for several questions; nothing may be printed meanwhile, since others wait."""
        self._held += 1
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._held -= 1
        if not self._held:
            self.let_go()

    @property
    def alone(self) -> Alone | None:
        """Return the store, if it is ours at this moment; None if a daemon answers."""
        return self._alone if self._alone is not None and self._alone.is_ours else None

    def let_go(self) -> None:
        """Give the lock back, if we hold it; the store stays open for a next question."""
        if self._alone is not None:
            self._alone.give()


class Question:
    """One request, as it goes to whoever answers; only one that changes something has a body, and the key for it."""

    __slots__ = ("body", "key", "method", "params", "query", "target", "verb")

    def __init__(self, verb: str, params: dict[str, str], fields: Json, key: str) -> None:
        self.verb = verb
        self.params = params
        self.method, self.target, *_ = ROUTES[verb].split(" ")
        for name, value in params.items():
            self.target = self.target.replace("{" + name + "}", quote(value))
        is_change = self.method != "GET"
        self.key = key if is_change else None
        self.body = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() if is_change else b""
        self.query = "" if is_change else _query(fields)
        self.target += f"?{self.query}" if self.query else ""


def parts(things: Iterable[T], size_of: Callable[[T], int], most: int, size: int) -> Iterator[list[T]]:
    """Yield things in parts that a request may carry: of so many things, and so many bytes."""
    part: list[T] = []
    whole = 0
    for thing in things:
        length = size_of(thing)
        if part and (len(part) == most or whole + length > size):
            yield part
            part, whole = [], 0
        part.append(thing)
        whole += length
    if part:
        yield part


def problem(status: int, body: bytes) -> CoveyError:
    """Return the error that a daemon answered."""
    try:
        said = json.loads(body)
        message, hint = str(said["error"]), str(said.get("hint", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        message, hint = f"The daemon answered {status}, which says nothing.", "covey down and covey up start it again."
    kinds = {kind.status: kind for kind in reversed(_below(CoveyError))}
    error = kinds.get(status, CoveyError)(message, hint=hint)
    error.status = status
    return error


def _below(kind: type[CoveyError]) -> list[type[CoveyError]]:
    return [kind, *(deeper for sub in kind.__subclasses__() for deeper in _below(sub))]


def _refuse_in_run(verb: str, fields: Json) -> None:
    """Refuse what a run's token cannot ask, before anything is sent."""
    limits = ROUTES[verb].split(" ")[2:]
    if "owner" in limits:
        raise Denied(f"Only the owner may ask for {verb}.", hint="Ask the owner: covey mail send owner ...")
    if "as" in limits and "session" in fields:
        raise Denied("With COVEY_TOKEN set you speak for your own session only.", hint="Leave --as out.")


def own_file(path: str) -> TextIO:
    """Open a file of the state folder that nobody but its owner, who is us, may have written; refuse any other."""
    file = open(path, encoding="utf-8")  # noqa: SIM115 - whoever asked closes it
    try:
        check_own(path, os.fstat(file.fileno()))
        check_own(os.path.dirname(path), os.stat(os.path.dirname(path)))
    except BaseException:
        file.close()
        raise
    return file


def check_own(path: str, found: os.stat_result) -> None:
    """Refuse what is not ours, or may be written by others: what it says could be anybody's."""
    if found.st_uid != os.geteuid():
        raise Denied(f"{path} belongs to another user.", hint="Only who owns covey's folder can use it.")
    if found.st_mode & 0o022:
        raise Denied(f"{path} may be written by other users.", hint=f"chmod go-w {path}, once you know who wrote it.")


def is_daemon(pid: int) -> bool:
    """Say whether a process is a covey daemon of ours; where there is no /proc to ask, whoever lives is believed."""
    if pid <= 0:
        return False
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return False  # the number of a daemon that ended may be anybody's by now
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"covey.daemon" in file.read().split(b"\0")
    except OSError:
        if os.path.exists("/proc/self/cmdline"):
            return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return False
    return True


def _owner_token(state: str) -> str:
    """Return the owner's token; the project would say what is wrong with it, and takes long to import."""
    try:
        with own_file(os.path.join(state, "owner.token")) as file:
            token = file.read().strip()
    except FileNotFoundError:
        token = ""
    if not token:
        from pathlib import Path

        from covey.git.project import read_token

        return read_token(Path(state, "owner.token"))
    return token


def _outcome_unknown() -> Unavailable:
    return Unavailable(
        "The daemon got the request and did not answer: whether it was done is not known.",
        hint="covey log tells; look there before you ask again.",
    )


def is_locked(path: str) -> bool:
    """Say whether somebody holds the writer's lock at this moment."""
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


def quote(text: str) -> str:
    """Return a text as a part of an address."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode())


def _query(fields: Json) -> str:
    """Return fields as the query of an address."""
    given = ((name, value) for name, value in fields.items() if value is not None)
    texts = ((name, str(value).lower() if isinstance(value, bool) else str(value)) for name, value in given)
    return "&".join(f"{name}={quote(text)}" for name, text in texts)


def _not_text(value: object) -> str | None:
    """Return the first text in a value that UTF-8 cannot hold, with what is wrong in it replaced."""
    if isinstance(value, str):
        whole = value.encode("utf-8", "replace").decode()
        return whole[:80] if whole != value else None
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((found for part in parts if (found := _not_text(part)) is not None), None)
