"""aider: `aider --message-file`, one message for one task; it edits and commits by itself, and speaks in plain lines.

What the levels come to, with aider 0.86:
- ask: it answers and changes nothing.
- edits and full: it edits files in the worktree and commits them, under the session's name and with git's hooks. It
  runs no commands at any level, so neither the gate nor `covey`: what it hands in is what it believes.

It has no word for a success, and ends with 0 even when it has given up: only its complaints and its commits count. A
complaint stands at the beginning of a line, where an answer of the model may quote one too; and who cannot get words
for a commit commits without. So a complaint counts only as long as no line follows that comes of an answer.
"""

from __future__ import annotations

import glob
import os.path
import re

from covey.agents import environment, streams
from covey.agents.agent import Assignment, HearsNothing, Terminal, Traits
from covey.agents.provider_errors import trouble
from covey.core.fleet.launches import Launch
from covey.core.fleet.signals import Failed, Limited, Signal, Spent, Trouble, Usage, Waits, Works
from covey.core.people.permits import PermissionLevel
from covey.values import dataclass

TRAITS = Traits(
    priced=True, env=("AIDER_*", *environment.KEYS, *environment.AUTHORITIES), gap=1.0, memory=300 * 1024 * 1024
)
QUIET = (
    "--yes-always", "--no-pretty", "--no-stream", "--no-fancy-input", "--no-check-update", "--no-analytics",
    "--no-show-release-notes", "--no-show-model-warnings", "--no-gitignore", "--no-detect-urls", "--disable-playwright",
    "--no-suggest-shell-commands",
)  # fmt: skip
"""It asks nobody, phones nowhere that it need not, and writes to no file that is not part of the work."""
PLAIN_COMMITS = (
    "--no-attribute-author", "--no-attribute-committer", "--no-attribute-co-authored-by", "--git-commit-verify",
)  # fmt: skip
"""Commits are the session's, and git's hooks hold for them."""
AT_WORK = ("--auto-commits", "--no-dry-run", "--no-auto-test", "--no-auto-lint")
"""It commits and runs no commands, whatever the user's own settings say."""
LOOKING = ("--chat-mode", "ask", "--dry-run", "--no-auto-commits", "--no-dirty-commits", "--no-auto-test")

LEDGER = "aider.spent"
"""Its log of what it would tell its makers, with which it phones nobody; in it each message is counted to the token."""

_ERROR = re.compile(r"\Alitellm\.(\w+)")
_AGAIN = re.compile(r"\ARetrying in [0-9.]{1,10} seconds")
_COMMENT = "The API provider"
"""How a comment on a failure begins, between it and the word that it tries again."""
_TOKENS = re.compile(r"\ATokens: .* received\b|\ACost: \$[0-9.]+ message, \$[0-9.]+ session\.\Z")
"""What a message cost, rounded; where a cache was read and written too, its price stands in a line of its own."""
_COMMITTED = re.compile(r"\ACommit [0-9a-f]{7,40} ")
_TROUBLE_BY_ERROR = {
    **dict.fromkeys(("AuthenticationError", "PermissionDeniedError"), Trouble.KEY),
    "RateLimitError": Trouble.LIMIT,
    "ContextWindowExceededError": Trouble.CONTEXT,
    **dict.fromkeys(("InternalServerError", "ServiceUnavailableError", "BadGatewayError"), Trouble.OVERLOAD),
    **dict.fromkeys(("APIConnectionError", "Timeout"), Trouble.CONNECTION),
    "BudgetExceededError": Trouble.CREDIT,
}
_STATUS_BY_ERROR = {
    "BadRequestError": 400,
    "NotFoundError": 404,
    "UnprocessableEntityError": 422,
    "UnsupportedParamsError": 400,
}
_REPEATED = (Trouble.LIMIT, Trouble.OVERLOAD, Trouble.CONNECTION)


@dataclass(frozen=True)
class Aider(HearsNothing):
    """aider, with one message."""

    name: str = "aider"
    traits: Traits = TRAITS
    terminal: Terminal | None = None

    def launch(self, work: Assignment) -> Launch:
        """Return `aider`, which reads the prompt from its file and keeps its histories in the run's folder."""
        does = LOOKING if work.permissions is PermissionLevel.ASK else AT_WORK
        read = ("--message-file", streams.word(work.prompt_file))
        argv = work.command("aider", *read, *QUIET, *PLAIN_COMMITS, *does)
        if os.path.isabs(work.folder):
            for history in ("chat", "input"):
                argv += [f"--{history}-history-file", os.path.join(streams.word(work.folder), f"aider.{history}")]
            argv += ["--analytics-log", os.path.join(streams.word(work.folder), LEDGER)]
        argv += [streams.word(word) for word in work.arguments]
        # It wraps its lines to the width of a terminal, though it has none.
        env = {"COLUMNS": "1000", **work.env}
        return Launch(argv=tuple(argv), cwd=work.worktree, env=env, ledger=streams.word(work.folder))

    def read(self, line: str) -> list[Signal]:
        """Return what one line lets us know; most are what it says."""
        words = streams.brief(line)
        error = _ERROR.match(words)
        if error is not None:
            return _failed(error[1], words)
        if _AGAIN.match(words):
            return [Waits()]
        if words.startswith(_COMMENT):
            return []
        if _TOKENS.match(words):
            return [Waits(), Works()]  # it has its answer, and goes on to edit and commit
        if _COMMITTED.match(words):
            return [Waits(), *streams.said(words)]
        return [*streams.said(words)]

    def ledger(self, folder: str, conversation: str) -> tuple[str, ...]:
        """Return its log: its output rounds what a message cost."""
        return (f"{glob.escape(folder)}/{LEDGER}",)

    def count(self, line: str) -> list[Signal]:
        """Return what one message cost; it has no name, so each counts. Of the cache its log says nothing.

        What it asks for the words of a commit, or to summarize a long conversation, it tells nobody.
        """
        told = streams.record(line)
        if told is None or told.get("event") != "message_send":
            return []
        sent = streams.inner(told, "properties")
        usage = Usage(streams.count(sent, "prompt_tokens"), streams.count(sent, "completion_tokens"))
        return [Spent("", usage, cost=streams.amount(sent, "cost") or None)]


def _failed(kind: str, words: str) -> list[Signal]:
    """Return a failure; if it tries again the next line says so, and takes it back."""
    told = trouble(words, _STATUS_BY_ERROR.get(kind, 0))
    found = told if told in (Trouble.CREDIT, Trouble.CONTEXT, Trouble.CORRUPT) else _TROUBLE_BY_ERROR.get(kind, told)
    failed = Failed(streams.complaint(words), found)
    return [failed, Limited(found, failed.what)] if found in _REPEATED else [failed]


agent = Aider()
"""Joins by entry point, like anyone's."""
