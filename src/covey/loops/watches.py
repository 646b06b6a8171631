"""The runs that are watched: what is remembered of each, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from covey.core.launches import Observation
from covey.core.runs import Run
from covey.core.sessions import State
from covey.loops.attending import Watched
from covey.loops.desk import Desk


@dataclass
class Watches:
    """What is remembered of runs until they are closed; lost with us, and made again."""

    desk: Desk
    _watched: dict[str, Watched] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)

    def of(self, run: Run) -> Watched:
        """Return what is remembered of a run, from now on if nothing was."""
        if run.id not in self._watched:
            self._watched[run.id] = Watched(self.desk.awake())
            self._owners[run.id] = run.session
        return self._watched[run.id]

    def find(self, run: Run) -> Watched | None:
        """Return what is remembered of a run, None if nothing is: it is closed, or was not looked at yet."""
        return self._watched.get(run.id)

    def of_session(self, name: str) -> list[Watched]:
        """Return what is remembered of the runs of a session, the last one last."""
        return [each for run, each in list(self._watched.items()) if self._owners.get(run) == name]

    def all(self) -> list[tuple[str, str, Watched]]:
        """Return every run that is watched, its session, and what is remembered of it."""
        return [(run, self._owners.get(run, ""), watched) for run, watched in list(self._watched.items())]

    def forget(self, run: Run) -> None:
        """Remember nothing of a run any more."""
        self._watched.pop(run.id, None)
        self._owners.pop(run.id, None)

    def at_work(self, run: Run, seen: Observation) -> float:
        """Return for how many seconds a run has not stood still, been put off, or waited for a person."""
        watched, now = self.of(run), self.desk.awake()
        if watched.looked is None:
            watched.at_work = 0.0  # of a run that we take up, nobody knows for how long it stood still
        elif not seen.held and not is_kept(watched):
            watched.at_work += now - watched.looked
        watched.looked = now
        return watched.at_work


def is_kept(watched: Watched) -> bool:
    """Say whether a run waits for its provider or a person, and so is not at work."""
    asks = watched.verdict is not None and watched.verdict.state is State.NEEDS_YOU
    return asks or watched.heard.limited is not None
