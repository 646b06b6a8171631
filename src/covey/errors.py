"""Every error a user can meet.

    CoveyError
    ├── Proposed       202  exit 9   a person decides; nothing was changed yet
    ├── Invalid        400  exit 2   what was asked makes no sense
    │   ├── TooLarge   413  exit 2   it is more than we take
    │   └── TooSlow    408  exit 2   it did not arrive in time
    ├── NotFound       404  exit 4   there is no such thing
    ├── Refused        409  exit 5   the rules say no, now
    │   ├── TooMany    429  exit 5   a session has made as much of it as it may
    │   ├── Reused     422  exit 5   this idempotency key belongs to another request
    │   └── Outdated   426  exit 5   the two sides speak different versions
    ├── Denied         403  exit 6   not with this token, or not from there
    │   ├── Unknown    401  exit 6   no token, or a wrong one
    │   └── Misdirected 421 exit 6   a request for a host that we are not
    ├── Unavailable    503  exit 7   it cannot be done at the moment; nothing was changed
    └── ToolFailed     502  exit 8   a program that we called failed
        └── DidNotRun  502  exit 8   it is not there, or did not end in time

The message says what is wrong in one sentence, in the words of the product; the hint says what to do next.
"""

from __future__ import annotations


class CoveyError(Exception):
    """Something a user can meet and understand."""

    status = 500
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Proposed(CoveyError):
    """What was asked is more than a session may do, and waits for a person; `body` is the proposal."""

    status = 202
    exit_code = 9

    def __init__(self, proposal: str, why: str, body: bytes) -> None:
        hint = f"covey proposal show {proposal} tells what came of it."
        super().__init__(f"Proposed as {proposal}: a person decides. {why}", hint=hint)
        self.body = body


class Invalid(CoveyError):
    """What was asked makes no sense."""

    status = 400
    exit_code = 2


class TooLarge(Invalid):
    """What was sent is more than we take."""

    status = 413


class TooSlow(Invalid):
    """What was sent did not arrive in time."""

    status = 408


class NotFound(CoveyError):
    """There is no such thing."""

    status = 404
    exit_code = 4


class Refused(CoveyError):
    """The rules say no, at this moment."""

    status = 409
    exit_code = 5


class TooMany(Refused):
    """A session has made as much of something as it may, for now."""

    status = 429


class Reused(Refused):
    """The idempotency key belongs to another request."""

    status = 422


class Outdated(Refused):
    """The two sides speak different versions."""

    status = 426


class Denied(CoveyError):
    """Not with this token, or not from there."""

    status = 403
    exit_code = 6


class Unknown(Denied):
    """No token, or a wrong one."""

    status = 401


class Misdirected(Denied):
    """The request names a host that we are not."""

    status = 421


class Unavailable(CoveyError):
    """It cannot be done at the moment, and nothing was changed."""

    status = 503
    exit_code = 7


class ToolFailed(CoveyError):
    """A program that we called failed."""

    status = 502
    exit_code = 8


class DidNotRun(ToolFailed):
    """A program is not there or did not end in time, which says nothing of what it was asked."""
