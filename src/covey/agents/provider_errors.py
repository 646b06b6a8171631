"""What a provider's complaint means, whichever program passes it on."""

from __future__ import annotations

import re

from covey.core.fleet.signals import Trouble

_STATUS = re.compile(
    r"\bstatus(?: ?code)?\W{1,4}(\d{3})\b|\bHTTP(?:/[\d.]+)? (\d{3})\b|\"(?:code|status)\"\s*:\s*(\d{3})\b"
    r"|\b(?:API Error|Error code):? (\d{3})\b",
    re.IGNORECASE,
)
"""A status where it stands as one: any number of three digits may stand in a text."""
_OF_STATUS = {
    401: Trouble.KEY, 402: Trouble.CREDIT, 403: Trouble.KEY, 408: Trouble.CONNECTION, 429: Trouble.LIMIT,
}  # fmt: skip
LASTING = (400, 404, 405, 413, 422)
"""Something is wrong with the request itself: it is refused for ever, whatever else the complaint speaks of."""
_OF_WORDS = (
    (Trouble.CONTEXT, r"context[ _]length|context window|maximum context|prompt is too long|ran out of room"
                      r"|token count.{0,40}exceeds|too many tokens in"),
    (Trouble.CORRUPT, r"invalid_encrypted_content|encrypted content .{0,60}could not be (?:verified|decrypted)"
                      r"|no tool output found|`?(?:redacted_)?thinking`? blocks?|no rollout found"),
    (Trouble.CREDIT, r"insufficient_quota|check your plan and billing|credit balance|payment required|out of credits"
                     r"|insufficient (?:credits|funds|balance)|billing (?:hard )?limit"),
)  # fmt: skip
"""What a provider says in words is surer than its status: providers use 400 and 429 for many things."""
_OF_SURE_WORDS = (
    (Trouble.KEY, r"\b(?:invalid|incorrect|missing|expired|no|wrong)\b.{0,30}\bapi[ _-]?key"
                  r"|api[ _-]?key\b.{0,30}(?:not valid|invalid|expired|missing|required)|unauthorized|unauthenticated"
                  r"|authentication[ _]error|not logged in|(?:log|sign) ?in again|permission_denied"),
    (Trouble.LIMIT, r"rate[ _-]?limit|usage limit|too many requests|resource[_ ]exhausted|quota exceeded"),
)  # fmt: skip
"""What is believed even where the status says that the request itself is wrong."""
_OF_OTHER_WORDS = (
    (Trouble.KEY, r"api[ _-]?key|authenticat|access token|refresh token|forbidden|missing environment variable"),
    (Trouble.LIMIT, r"quota"),
    (Trouble.OVERLOAD, r"overloaded|at capacity|high demand|internal server error|bad gateway|service unavailable"
                       r"|\bunavailable\b|server_error|api_error"),
    (Trouble.CONNECTION, r"connection|disconnected|network|timed? ?out|timeout|ECONN|ENOTFOUND|EAI_AGAIN|socket hang up"
                         r"|fetch failed|error sending request|unable to connect|cannot connect|name resolution"
                         r"|premature close|terminated"),
)  # fmt: skip


def trouble(complaint: str, status: int = 0) -> Trouble:
    """Return what a complaint means, by its words and by its status, or else by the one that is written in it."""
    complaint = complaint[:20_000]
    status = status or _status(complaint)
    told = _by(_OF_WORDS, complaint) or of_status(status) or _by(_OF_SURE_WORDS, complaint)
    if told is None and status not in LASTING:
        told = _by(_OF_OTHER_WORDS, complaint)
    return told or Trouble.OTHER


def of_status(status: int) -> Trouble | None:
    """Return what a status of HTTP means, None if it says nothing of the kind."""
    return Trouble.OVERLOAD if 500 <= status < 600 else _OF_STATUS.get(status)


def _status(complaint: str) -> int:
    found = _STATUS.search(complaint)
    return 0 if found is None else int(next(group for group in found.groups() if group))


def _by(rules: tuple[tuple[Trouble, str], ...], complaint: str) -> Trouble | None:
    return next((kind for kind, words in rules if re.search(words, complaint, re.IGNORECASE)), None)
