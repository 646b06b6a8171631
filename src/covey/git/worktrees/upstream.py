"""The newest main: where new branches begin, also when others have pushed to the remote meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from subprocess import CompletedProcess

from covey.errors import CoveyError, Refused
from covey.git import incoming, objects, refs
from covey.git.project import Project
from covey.git.run import complaint, try_git

LANDED = "refs/covey/landed"
FETCHED = "refs/covey/upstream"
FETCH_PATIENCE = 15.0
FRESH = 60.0
"""Seconds for which a fetch is good enough for everybody."""
SULK = 300.0
"""Seconds after which a remote that failed is asked again."""


def silent_env(project: Project) -> dict[str, str]:
    """Return the environment of a git that asks nobody anything."""
    env = {"GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
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
        refs = self._refs(f"refs/heads/{main}", LANDED)
        newest, landed = refs.get(f"refs/heads/{main}"), refs.get(LANDED)
        if newest is None:
            raise Refused(f"There is no commit on {main} yet.", hint="Commit something there first.")
        if landed is not None and has_passed is not None and not has_passed(landed):
            landed = None
        for other in (landed, fetched):
            if other is None or other == newest or not self._descends(other, newest):
                continue
            broken = self._broken(newest, other) if other == fetched else []
            if broken:
                self.note = f"{remote} has what cannot come in, at {other[:12]}: {incoming.told(broken)}."
            else:
                newest = other
        return newest

    def _broken(self, base: str, theirs: str) -> list[str]:
        """Return what is wrong with what others have pushed, so that nobody shall build on it."""
        return incoming.broken(self._inspector.look(self.project, base, [theirs])[theirs])

    def _fetch_once(self, main: str, remote: str) -> str | None:
        """Return the remote's main, fetched now or a moment ago; whoever asks meanwhile waits for it."""
        with self._lock:
            when, fetched = self._asked.get((main, remote), (-SULK, None))
            if time.monotonic() - when < (SULK if fetched is None else FRESH):
                return fetched
            succeeded = self._try("config", f"remote.{remote}.url").returncode == 0 and self._fetch(main, remote)
            fetched = self._refs(FETCHED).get(FETCHED) if succeeded else None
            self._asked[main, remote] = (time.monotonic(), fetched)
            return fetched

    def _fetch(self, main: str, remote: str) -> bool:
        # `--update-head-ok`: no branch is fetched into, so git need not look at all worktrees, half made ones too.
        words = (
            "-c", "core.hooksPath=/dev/null", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
            "--update-head-ok", "--no-recurse-submodules", "--no-auto-maintenance", "--refmap=", "--", remote,
            f"+refs/heads/{main}:{FETCHED}",
        )  # fmt: skip
        refs.untwist(self.project, FETCHED)  # or what it stands for would be overwritten
        try:
            deadline, env = time.monotonic() + FETCH_PATIENCE, silent_env(self.project)
            done = self._try(*words, env=env, patience=FETCH_PATIENCE)
            if done.returncode != 0 and b"/worktrees/" in done.stderr:
                done = self._try(*words, env=env, patience=max(1.0, deadline - time.monotonic()))
        except CoveyError as error:
            self.note = f"{remote} could not be fetched: {error.message}"
            return False
        self.note = "" if done.returncode == 0 else f"{remote} could not be fetched: {complaint(done)}."
        return done.returncode == 0

    def _refs(self, *names: str) -> dict[str, str]:
        found = zip(names, objects.infos(self.project, names), strict=True)
        return {name: each.name for name, each in found if each is not None}

    def _descends(self, commit: str, ancestor: str) -> bool:
        return self._try("merge-base", "--is-ancestor", ancestor, commit).returncode == 0

    def _try(self, *words: str, env: dict[str, str] | None = None, patience: float = 60.0) -> CompletedProcess[bytes]:
        whole = {"GIT_DIR": str(self.project.common), **(env or {})}
        return try_git(*words, at=self.project.common, env=whole, patience=patience, apart=env is not None)
