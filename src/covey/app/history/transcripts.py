"""Where the words of a run are, and how people read them: redacted, as a transcript if the stream has a structure."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from covey.app.context import Call
from covey.app.history import run_streams
from covey.app.history.run_streams import LINE, Journal, Output, Reader, WithEdits
from covey.core.fleet import runs
from covey.core.fleet.next_step import MAX_OUTPUT_BYTES
from covey.core.fleet.signals import Said
from covey.core.history.transcripts import Transcript
from covey.core.texts import redact
from covey.errors import Unavailable
from covey.values import dataclass

if TYPE_CHECKING:  # agents take their time to import
    from covey.agents.agent import Agent

TRANSCRIPT_FILE = "transcript.gz"
"""The redacted transcript of a run that has ended, beside what is left of its output."""
PART = 256 * 1024
"""Bytes of a transcript that are answered at once."""
BACK = 64 * 1024
SECRET_LOOKBACK_BYTES = 16 * 1024
"""Bytes before a place that are looked at, so that no secret is shown from its middle on."""
KEY_LINES = 200
"""Lines that a private key may have."""


@dataclass(frozen=True)
class Source:
    """Where the words of a run are: in what it printed or wrote, or, without an output, in what was kept of it."""

    output: Output | None
    reader: Reader | None
    """What understands them; without one they are plain lines."""
    size: int
    alive: bool

    def place(self, since: int) -> int:
        """Return a byte counted from the beginning; a negative one counts from the end."""
        return since if since >= 0 else max(self.size + since, 0)


def source_of(call: Call, run: runs.Run, *, raw: bool = False) -> Source:
    """Return where the words of a run are; `raw`: as it printed them, and not as its agent means them."""
    runner = call.context.runner
    if runner is None:
        raise Unavailable("Nothing can be read of runs here.")
    seen = runner.look(run.id)
    folder = None if call.context.runs is None else call.context.runs / run.id
    reader, journal = (
        (None, None) if raw else reader_by(call.context.known_agent(run.agent), folder, run, alive=seen.alive)
    )
    is_gone = not seen.size or (run.runner == runs.TMUX and journal is None and not raw)
    if is_gone and not seen.alive and folder is not None and (folder / TRANSCRIPT_FILE).exists():
        return Source(None, reader, 0, alive=False)
    if journal is not None:
        return Source(journal.read, reader, journal.size(), seen.alive)
    return Source(partial(runner.output, run.id), reader, seen.size, seen.alive)


def kept_of(call: Call, run: runs.Run, since: int) -> tuple[str, int, int]:
    """Return a part of the transcript that was kept, where it begins, and where the next part does."""
    assert call.context.runs is not None
    text, following = kept(call.context.runs / run.id, since) or ("", max(since, 0))
    return text, following - len(text.encode()), following


def reader_by(
    agent: Agent | None, folder: Path | None, run: runs.Run, *, alive: bool
) -> tuple[Reader | None, Journal | None]:
    """Return what understands the output of a run, or, if it draws on a terminal, its journal; `folder`: the run's own.

    Nothing does if its agent is not known any more or prints plain lines.
    """
    if agent is None:
        return None, None
    from covey.agents.agent import terminal_of

    if run.runner == runs.PROCESS:
        reader = agent.read if folder is None else run_streams.reader(agent, folder, run)
        return (reader if agent.traits.speaks else None), None
    journal = None if folder is None else run_streams.find_journal(folder)
    terminal = terminal_of(run, agent)
    if terminal is None or (journal is None and not alive):
        return None, None  # of one that ended without a word, what it drew says more
    return terminal.read, journal or Journal("")


def words_of(call: Call, run: runs.Run) -> Reader | None:
    """Return what understands the words of a program that prints plain lines besides, None if it has none."""
    agent = call.context.known_agent(run.agent) if run.runner == runs.PROCESS else None
    return None if agent is None else agent.read


# As it is read


def raw(output: Output, since: int, size: int, *, alive: bool) -> tuple[str, int]:
    """Return what was printed from a byte on, and where the next part begins; a secret is not shown in halves."""
    data, following = output(since)
    if following < size and b"\n" in data:
        following -= len(data) - data.rfind(b"\n") - 1
        data = data[: data.rfind(b"\n") + 1]
    elif alive or following < size:
        data, following = _whole(data, following)
    head = _between(output, max(0, since - SECRET_LOOKBACK_BYTES), since) if data else b""
    # The ends of lines are a terminal's own if it was printed there.
    texts = (part.replace(b"\r\n", b"\n").decode(errors="replace") for part in (head, head + data))
    shown, full = map(redact, texts)
    return full[_same(shown, full) :], following


def plain(output: Output, reader: Reader, since: int, size: int, *, alive: bool) -> tuple[str, int]:
    """Return what a program printed that says some things in covey's own words, with these as a transcript has them.

    A line that may become such a word waits for its end as long as the run lives.
    """

    def ended(at: int) -> tuple[bytes, int]:
        data, following = output(at)
        begun = data[data.rfind(b"\n") + 1 :]
        if alive and following >= size and begun.startswith(b"{"):
            return data[: len(data) - len(begun)], following - len(begun)
        return data, following

    text, following = raw(ended, since, size, alive=alive)
    return worded(text, reader), following


def worded(text: str, reader: Reader) -> str:
    """Return printed lines; those in covey's own words become what a transcript says."""
    transcript, lines = Transcript(), list[str]()
    for line in text.splitlines(keepends=True):
        signals = reader(line) if line.startswith("{") else []
        is_plain = not signals or any(isinstance(signal, Said) for signal in signals)
        lines += [line] if is_plain else [f"{each}\n" for each in transcript.take(signals)]
    return "".join(lines)


def _same(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    if other.startswith(one):
        return len(one)
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))


def _between(output: Output, start: int, end: int) -> bytes:
    """Return what was printed between two places."""
    found = b""
    while start < end:
        data, start = output(start)
        if not data:
            break
        found += data
    return found[: len(found) - max(start - end, 0)]


def _whole(data: bytes, following: int) -> tuple[bytes, int]:
    """Return output without the beginning of a character, or of the end of a line, at its end."""
    if data.endswith(b"\r") and len(data) > 1:
        return data[:-1], following - 1
    for cut in range(1, min(4, len(data) + 1)):
        if data[-cut] & 0xC0 == 0xC0:
            length = 4 if data[-cut] >= 0xF0 else 3 if data[-cut] >= 0xE0 else 2
            return (data[:-cut], following - cut) if cut < length else (data, following)
        if data[-cut] < 0x80:
            break
    return data, following


def readable(output: Output, reader: Reader, since: int, size: int, *, alive: bool) -> tuple[str, int]:
    """Return the transcript of the lines from that on in which a byte is, and where the next line begins.

    A line that has not ended waits for its end as long as the run lives.
    """
    part = lines_from(output, since, size, alive=alive)
    if part.too_long:
        return f"! a line of more than {LINE // 1024 // 1024} MiB\n", part.following
    if isinstance(reader, WithEdits):
        reader = reader.beginning_at(output, part.start)
    lines = told(_so_far(output, reader, part.start), reader, part.data)
    return redact("".join(f"{line}\n" for line in lines)), part.following


def _so_far(output: Output, reader: Reader, start: int) -> Transcript:
    """Return a transcript that knows what was said and used shortly before a line."""
    transcript = Transcript()
    near = max(0, start - BACK)
    before = _between(output, near, start) if start else b""
    whole_lines = before if near == 0 else before[before.find(b"\n") + 1 :]
    told(transcript, reader.read if isinstance(reader, WithEdits) else reader, whole_lines)
    return transcript


@dataclass(frozen=True)
class Lines:
    """Some whole lines of what was printed, where they begin, and where the next line does."""

    data: bytes
    start: int
    following: int
    too_long: bool = False
    """It is a line that is too long for anybody."""


def lines_from(output: Output, since: int, size: int, *, alive: bool) -> Lines:
    """Return the lines from that on in which a byte is; one that has not ended waits for its end."""
    if since >= size:
        return Lines(b"", since, since)
    start = _line_at(output, since)
    data, following = _lines(output, since if start is None else start)
    if start is None:  # amid a line that is too long
        skipped = data.find(b"\n") + 1
        return Lines(b"", since, following - len(data) + (skipped or len(data)))
    if alive or following < size:
        end = data.rfind(b"\n") + 1
        if not end and len(data) > LINE:
            return Lines(b"", start, following, too_long=True)
        following -= len(data) - end
        data = data[:end]
    return Lines(data, start, following)


def told(transcript: Transcript, reader: Reader, data: bytes) -> list[str]:
    """Return the lines of a transcript that whole lines of output are worth."""
    read = (reader(line.decode(errors="replace")) for line in data.split(b"\n") if line)
    return [line for signals in read for line in transcript.take(signals)]


def _line_at(output: Output, since: int) -> int | None:
    """Return where the line begins in which a byte is, None if that is too far away."""
    end = since
    while end and since - end < LINE:
        start = max(0, end - BACK)
        found = _between(output, start, end).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return None if end else 0


def _lines(output: Output, start: int) -> tuple[bytes, int]:
    """Return output from a place on with the end of a line in it, unless there is none or it is too far away."""
    parts: list[bytes] = []
    following = start
    while following - start <= LINE:
        data, following = output(following)
        parts.append(data)
        if not data or b"\n" in data:
            break
    return b"".join(parts), following


def whole(output: Output, reader: Reader | None, words: Reader | None = None) -> Iterator[str]:
    """Yield all lines of the transcript of a run that has ended, redacted; without a reader, what it printed.

    `words` understands what a program says between plain lines in covey's own words.

    A file that is longer than a run may print was made so by somebody: the rest of it is left out, and that is said.
    """
    transcript, rest, at = Transcript(), b"", 0
    while True:
        data, at = output(at) if at <= MAX_OUTPUT_BYTES else (b"", at)
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > LINE:
            rest = b"! a line that was too long"
        if reader is None and data:
            rest = b"\n".join([*_open_key(lines), rest])
        part = b"\n".join(lines if data else [*lines, rest])
        text = "\n".join(told(transcript, reader, part)) if reader else part.decode(errors="replace")
        if words is not None and text:
            text = worded(f"{text}\n", words).removesuffix("\n")
        if text:
            yield from redact(text).split("\n")
        if not data:
            break
    if at > MAX_OUTPUT_BYTES:
        yield f"! the rest, beyond {MAX_OUTPUT_BYTES // 1024**2} MiB, is left out"


def _open_key(lines: list[bytes]) -> list[bytes]:
    """Take the lines of a private key that has not ended out, and return them: it is redacted whole or not at all."""
    for i in range(len(lines) - 1, max(len(lines) - KEY_LINES, 0) - 1, -1):
        if b"-----END " in lines[i]:
            break
        if b"PRIVATE KEY-----" in lines[i]:
            key = lines[i:]
            del lines[i:]
            return key
    return []


def kept(folder: Path, since: int) -> tuple[str, int] | None:
    """Return a part of the transcript that was kept of a run, from a byte on, None if none was kept."""
    path = folder / TRANSCRIPT_FILE
    try:
        with open(path, "rb") as packed:
            packed.seek(-4, os.SEEK_END)
            size = int.from_bytes(packed.read(4), "little")
        start = since if since >= 0 else max(size + since, 0)
        with gzip.open(path) as file:
            file.seek(start)
            data = file.read(PART)
    except FileNotFoundError:
        return None
    except (OSError, EOFError, zlib.error) as error:
        raise Unavailable(f"The transcript in {path.parent.name} cannot be read: {error}.") from None
    end = data.rfind(b"\n") + 1 or len(data)
    first = data.find(b"\n", 0, end) + 1 if since < 0 and start > 0 else 0
    return data[first if first < end else 0 : end].decode(errors="replace"), start + end
