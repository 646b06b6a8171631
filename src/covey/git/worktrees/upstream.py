"""The newest main: where new branches begin, also when others have pushed to the remote meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from subprocess import CompletedProcess

from covey.errors import CoveyError, Refused
from covey.git import refs
from covey.git.candidates import incoming
from covey.git.candidates.candidates import resolve
from covey.git.identity import FETCH_ONLY, LANDED, NO_PROMPT, UPSTREAM_MAIN
from covey.git.project import Project
from covey.git.run import complaint, try_git

UPSTREAM_TIMEOUT_S = 15.0
FRESH_S = 60.0
"""Seconds for which a fetch is good enough for everybody."""
RETRY_AFTER_S = 300.0
"""Seconds after which a remote that failed is asked again."""


def silent_env(project: Project) -> dict[str, str]:
    """Return the environment of a git that asks nobody anything."""
    env = {**NO_PROMPT, "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
    if "GIT_SSH" in os.environ and "GIT_SSH_COMMAND" not in os.environ:
        return env
    configured = try_git("config", "core.sshCommand", at=project.common).stdout.decode(errors="replace").strip()
    command = os.environ.get("GIT_SSH_COMMAND") or configured or "ssh"
    return {**env, "GIT_SSH_COMMAND": f"{command} -o BatchMode=yes -o ConnectTimeout=10"}


class Upstream:
    """What we know of the remote's main; fetched once for all who ask at the same time."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.note = ""
        """Why the last fetch failed, in one sentence; empty when it did not."""
        self._inspector = incoming.Inspector()
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, str], tuple[float, str | None]] = {}

    def newest(self, main: str, remote: str, has_passed: Callable[[str], bool] | None = None) -> str:
        """Return the newest commit of main that we may build on: never one that would leave out our own.

        Refs are what anybody with a shell can move: what landed counts if it has passed, and of the remote what we
        fetched ourselves.
        """
        fetched = self._fetch_once(main, remote) if remote else None
        newest, landed = resolve(self.project, f"refs/heads/{main}"), resolve(self.project, LANDED)
        if newest is None:
            raise Refused(f"There is no commit on {main} yet.", hint="Commit something there first.")
        if landed is not None and has_passed is not None and not has_passed(landed):
            landed = None
        for other in (landed, fetched):
            if other is None or other == newest:
                continue
            if self._try("merge-base", "--is-ancestor", newest, other).returncode != 0:
                continue
            seen = self._inspector.look(self.project, newest, [other])[other] if other == fetched else ()
            broken = incoming.broken(seen)  # so that nobody builds on it
            if broken:
                self.note = f"{remote} has what cannot come in, at {other[:12]}: {incoming.told(broken)}."
            else:
                newest = other
        return newest

    def _fetch_once(self, main: str, remote: str) -> str | None:
        """Return the remote's main, fetched now or a moment ago; whoever asks meanwhile waits for it."""
        with self._lock:
            when, fetched = self._asked.get((main, remote), (-RETRY_AFTER_S, None))
            if time.monotonic() - when < (RETRY_AFTER_S if fetched is None else FRESH_S):
                return fetched
            succeeded = self._try("config", f"remote.{remote}.url").returncode == 0 and self._fetch(main, remote)
            fetched = resolve(self.project, UPSTREAM_MAIN) if succeeded else None
            self._asked[main, remote] = (time.monotonic(), fetched)
            return fetched

    def _fetch(self, main: str, remote: str) -> bool:
        # `--update-head-ok`: no branch is fetched into, so git need not look at all worktrees, half made ones too.
        words = (*FETCH_ONLY, "--update-head-ok", "--", remote, f"+refs/heads/{main}:{UPSTREAM_MAIN}")
        refs.untwist(self.project, UPSTREAM_MAIN)  # or what it stands for would be overwritten
        try:
            deadline, env = time.monotonic() + UPSTREAM_TIMEOUT_S, silent_env(self.project)
            done = self._try(*words, env=env, patience=UPSTREAM_TIMEOUT_S)
            if done.returncode != 0 and b"/worktrees/" in done.stderr:
                done = self._try(*words, env=env, patience=max(1.0, deadline - time.monotonic()))
        except CoveyError as error:
            self.note = f"{remote} could not be fetched: {error.message}"
            return False
        self.note = "" if done.returncode == 0 else f"{remote} could not be fetched: {complaint(done)}."
        return done.returncode == 0

    def _try(self, *words: str, env: dict[str, str] | None = None, patience: float = 60.0) -> CompletedProcess[bytes]:
        return try_git(*words, at=self.project.common, env=env, patience=patience, apart=env is not None)
