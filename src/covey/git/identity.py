"""Who covey is to git, and what its branches and refs are called: each fact stands here once."""

from __future__ import annotations

COVEY = ("covey", "covey@localhost")
"""The name and address under which covey commits and moves refs, whatever the user's own are."""
COMMITTER = {"GIT_COMMITTER_NAME": COVEY[0], "GIT_COMMITTER_EMAIL": COVEY[1]}
AUTHOR_AND_COMMITTER = {**COMMITTER, "GIT_AUTHOR_NAME": COVEY[0], "GIT_AUTHOR_EMAIL": COVEY[1]}
NO_PROMPT = {"GIT_TERMINAL_PROMPT": "0"}
"""Git fails where it would ask a person for a password."""

SESSION_DOMAIN = "@agents.local"
"""How the address of each session ends."""
OUR_ADDRESSES = (COVEY[1], f"covey{SESSION_DOMAIN}")
"""The second one stands in reflogs of earlier versions."""

BIG_FILE = ("-c", "core.bigFileThreshold=8m")
"""Files from this size on are taken as a whole, not compared line by line."""
PLAIN_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color")
"""What git prints itself, and no program that a session's settings name."""

FETCH_ONLY = (
    "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance",
    "--refmap=",
)  # fmt: skip
"""Fetches what is named, and leaves everything else as it is."""

HEADS = "refs/heads/"
TASK_BRANCHES = "covey/"
"""What the branches of sessions begin with."""
TASK_REFS = "refs/covey/tasks/"
"""Keep the work of a task reachable, whatever becomes of its branch."""
KEPT_REFS = "refs/covey/kept/"
"""Where refs go that nobody wants to lose and that were in the way."""
RESCUE_REFS = "refs/covey/rescue/"
LOG_REFS = "refs/covey/log/"
INCOMING_REFS = "refs/covey/incoming/"
LANDED = "refs/covey/landed"
"""The newest commit that passed the gate while main could not follow."""
LANDED_SINCE = "refs/covey/landed-since"
"""Where main was when that was put down: a main that no longer holds this was moved back, and must not be led there."""
UPSTREAM_MAIN = "refs/covey/upstream"
FETCHED_MAIN = "refs/covey/fetched"


def session_author(session: str) -> tuple[str, str]:
    """Return the name and address under which a session commits."""
    return session, f"{session}{SESSION_DOMAIN}"


def task_branch(task: str) -> str:
    """Return the branch on which a task is worked on."""
    return f"{TASK_BRANCHES}{task}"


def kept_ref(name: str, commit: str) -> str:
    """Return the ref that keeps a commit whose branch is given up."""
    return f"{KEPT_REFS}{name.replace('/', '-')}-{commit[:12]}"
