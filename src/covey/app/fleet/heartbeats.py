"""When each session and lease was last heard of: in memory, noted on disk now and then, never in the log."""

from __future__ import annotations

from covey.app.clock import Clock
from covey.core.leases.expiry import Watch
from covey.store.queries.scratch import Pulse
from covey.store.tx import Tx

DAEMON = "daemon"
NOTED_EVERY = 15.0
"""Seconds between two notes of the signs of life on disk."""


_UNKNOWN = -1.0
"""The awake time of a pulse that was noted on another clock, or in another file."""


class Pulses:
    """The last signs of life, and since when somebody has watched for them."""

    def __init__(self, clock: Clock, place: str = "") -> None:
        self.clock = clock
        self.watch = Watch.begin(clock.now())
        self._boot = f"{clock.boot_id} {place}"
        self._alone = False
        self._seen: dict[str, Pulse] = {}
        self._fresh: set[str] = set()

    def load(self, tx: Tx) -> None:
        """Take up what is noted on disk; of what was noted before a boot or a restored backup, only when it was."""
        for subject, pulse in tx.pulses().items():
            awake = pulse.awake if pulse.boot == self._boot else _UNKNOWN
            self._seen[subject] = Pulse(pulse.seen, awake, self._boot)

    def without_daemon(self) -> None:
        """Watch since the daemon was last at work: from then on everybody could have renewed without it."""
        last = self._seen.get(DAEMON)
        self._alone = True
        self.watch = Watch(last.awake + NOTED_EVERY if last else 0.0, self.watch.last)

    def begin_anew(self) -> None:
        """Watch from now on: we stood still, so nobody could reach us."""
        self.watch = Watch.begin(self.clock.now())

    def look(self) -> Watch:
        """Look at the clocks again."""
        self.watch = self.watch.look(self.clock.now())
        return self.watch

    def hear(self, subject: str) -> float:
        """Note a sign of life and return the time of it."""
        now = self.clock.now()
        self._seen[subject] = Pulse(round(now.wall, 3), now.awake, self._boot)
        self._fresh.add(subject)
        return now.wall

    def seen(self, *subjects: str) -> Pulse | None:
        """Return the latest sign of life among some subjects."""
        found = [self._seen[subject] for subject in subjects if subject in self._seen]
        return max(found, key=lambda pulse: pulse.awake, default=None)

    def expired(self, ttl: float, *subjects: str) -> bool:
        """Say whether none of these was heard of for a whole `ttl` that was watched."""
        pulse = self.seen(*subjects)
        if pulse is not None and pulse.awake != _UNKNOWN:
            return self.watch.expired(pulse.awake, ttl)
        if self._alone:
            self.hear(subjects[0])  # nobody has watched it here before: its time begins now, and is noted
            return False
        return self.watch.expired(None, ttl)

    def is_fresh(self, ttl: float, subject: str) -> bool:
        """Say whether a subject was certainly heard of within a `ttl`; it then has expired by no longer one either."""
        pulse = self._seen.get(subject)
        return pulse is not None and pulse.awake != _UNKNOWN and not self.watch.expired(pulse.awake, ttl)

    def forget(self, subject: str) -> None:
        """Forget a subject that has ended."""
        self._seen.pop(subject, None)
        self._fresh.discard(subject)

    @property
    def fresh(self) -> bool:
        """Say whether there is something to note."""
        return bool(self._fresh)

    def note(self, tx: Tx) -> None:
        """Write what is new to disk; if that fails, it is merely older there."""
        fresh, self._fresh = self._fresh, set()
        for subject in tuple(fresh):
            pulse = self._seen.get(subject)
            if pulse is not None:
                tx.put_pulse(subject, pulse)


def of_session(name: str) -> str:
    """Return the subject under which a session is heard of."""
    return f"session:{name}"


def of_device(device: str) -> str:
    """Return the subject under which a browser is heard of."""
    return f"device:{device}"


def of_lease(lease: str) -> str:
    """Return the subject under which a lease is heard of."""
    return f"lease:{lease}"
