"""Looking at terminals: each viewer has a client of tmux that can only look, in a pty as large as what it shows."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence

from covey.errors import Unavailable
from covey.values import dataclass

VIEWER_TERM = "xterm-256color"
"""What a viewer's terminal understands; tmux translates whatever a program draws, so nothing else reaches a viewer."""
FEATURES = "256,RGB,ccolour,cstyle,overline,strikethrough,usstyle"
HINT_LINES = 1
"""Lines below what a program draws: there tmux tells people who attach how to leave."""
READ_AT_ONCE_BYTES = 64 * 1024
"""Bytes that are read at once; what a viewer does not take in time stays with tmux, which redraws it instead."""
VIEWER_END_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class Size:
    """How large a terminal is, without the lines below it."""

    columns: int
    rows: int


class Watch:
    """One viewer's look at a terminal: bytes for a terminal of the same size, as they come. It cannot type."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], size: Size) -> None:
        self._master, slave = os.openpty()
        self.size = size
        try:
            os.set_blocking(self._master, False)
            self._set(size)
            self._process = subprocess.Popen(
                command,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd="/",
                env={**environment, "TERM": VIEWER_TERM},
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._master)
            raise Unavailable(
                f"The terminal cannot be shown: {error.strerror}.", hint="Look at the limits of the machine."
            ) from None
        finally:
            os.close(slave)

    def fileno(self) -> int:
        """Return what becomes readable when there is something to show."""
        return self._master

    def read(self) -> bytes | None:
        """Return what is to be shown next: nothing at its end, None if there is nothing yet."""
        parts: list[bytes] = []
        size = 0
        while size < READ_AT_ONCE_BYTES:
            try:
                part = os.read(self._master, READ_AT_ONCE_BYTES - size)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EIO:  # how a pty says that the other side is closed
                    raise
                part = b""
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
        return b"".join(parts) or None

    def resize(self, size: Size) -> None:
        """Show a terminal that has another size now."""
        self.size = size
        self._set(size)
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGWINCH)  # it has no controlling terminal by which the kernel would

    def _set(self, size: Size) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("4H", size.rows + HINT_LINES, size.columns, 0, 0))

    def close(self) -> None:
        """Look away; what was shown goes on."""
        os.close(self._master)
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(VIEWER_END_TIMEOUT_S)
