"""What a provider's complaint means, whichever program passes it on."""

from __future__ import annotations

import re

from covey.core.signals import Trouble

_STATUS = re.compile(
    r"\bstatus(?: code)?\W{1,4}(\d{3})\b|\bHTTP(?:/[\d.]+)? (\d{3})\b|\"(?:code|status)\"\s*:\s*(\d{3})\b"
    r"|\bError code: (\d{3})\b",
    re.IGNORECASE,
)
_OF_STATUS = {
    401: Trouble.KEY, 402: Trouble.CREDIT, 403: Trouble.KEY, 408: Trouble.CONNECTION, 413: Trouble.CONTEXT,
    429: Trouble.LIMIT,
}  # fmt: skip
_OF_WORDS = (
    (Trouble.CONTEXT, r"context[ _]length|context window|maximum context|prompt is too long|ran out of room"
                      r"|token count.{0,40}exceeds|too many tokens in"),
    (Trouble.CORRUPT, r"invalid_encrypted_content|encrypted content .{0,60}could not be (?:verified|decrypted)"
                      r"|no tool output found|`?(?:redacted_)?thinking`? blocks?|no rollout found"),
    (Trouble.CREDIT, r"insufficient_quota|check your plan and billing|credit balance|payment required|out of credits"
                     r"|insufficient (?:credits|funds|balance)|billing (?:hard )?limit"),
)  # fmt: skip
"""What a provider says in words is surer than its status: providers use 400 and 429 for many things."""
_OF_OTHER_WORDS = (
    (Trouble.KEY, r"api[ _-]?key|unauthorized|unauthenticated|authenticat|not logged in|log ?in again|permission_denied"
                  r"|access token|forbidden"),
    (Trouble.LIMIT, r"rate[ _-]?limit|usage limit|too many requests|resource[_ ]exhausted|quota"),
    (Trouble.OVERLOAD, r"overloaded|at capacity|high demand|internal server error|bad gateway|service unavailable"
                       r"|\bunavailable\b|server_error|api_error"),
    (Trouble.CONNECTION, r"connection|disconnected|network|timed? ?out|timeout|ECONN|ENOTFOUND|EAI_AGAIN|socket hang up"
                         r"|fetch failed|error sending request|unable to connect|cannot connect|name resolution"
                         r"|premature close|terminated"),
)  # fmt: skip


def trouble(complaint: str) -> Trouble:
    """Return what a complaint means, by its words and by the status in it."""
    complaint = complaint[:20_000]
    return _by(_OF_WORDS, complaint) or _by_status(complaint) or _by(_OF_OTHER_WORDS, complaint) or Trouble.OTHER


def of_status(status: int) -> Trouble | None:
    """Return what a status of HTTP means, None if it says nothing of the kind."""
    return Trouble.OVERLOAD if 500 <= status < 600 else _OF_STATUS.get(status)


def _by_status(complaint: str) -> Trouble | None:
    found = _STATUS.search(complaint)
    return None if found is None else of_status(int(next(group for group in found.groups() if group)))


def _by(rules: tuple[tuple[Trouble, str], ...], complaint: str) -> Trouble | None:
    return next((kind for kind, words in rules if re.search(words, complaint, re.IGNORECASE)), None)
