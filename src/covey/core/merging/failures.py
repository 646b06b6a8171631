"""What a gate's output says about its failure: the tests that failed, why, what was lacking, and a fingerprint."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field
from functools import partial

from covey.values import dataclass

MAX_TAIL_CHARS = 4000
"""Characters of the end of the output."""
MAX_FAILURES, MAX_ERRORS, MAX_LINE_CHARS = 200, 40, 400
"""Failures and error lines that a summary names, and characters of each."""
_ERRORS, _TAIL = "The errors:", "The end of its output:"
"""What stands before these parts of a summary."""
_CHUNK = 1 << 20
_LINE = 16 * 1024
"""Bytes of a line that are looked at."""
_WHOLE_TAIL_BYTES = 64 * 1024
"""Bytes at the end in which every line is looked at."""
_MAX_LINES_READ = 100_000
"""Lines of all output that are looked at: one that is full of errors says nothing more after so many."""
_MAX_KNOWN = 5000

_MARKS = tuple(
    mark.encode()
    for mark in ("FAIL", "RROR", "rror", "not ok", "*** [", "E  ", "fatal", "FATAL", "panic", "✕", "✗", "×",
                 "✘", "●")
)  # fmt: skip
"""What a line that says something about a failure contains; looking for these is fast."""
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


@dataclass(frozen=True)
class Summary:
    """What the output of a failed gate comes to; the fingerprint of the same failure is always the same."""

    failures: tuple[str, ...]
    """The tests that failed; files or targets if no test is named."""
    errors: tuple[str, ...]
    """The lines that say why."""
    tail: str
    fingerprint: str


@dataclass
class _Found:
    """What was found so far, each once, in the order in which it came."""

    tests: dict[str, None] = field(default_factory=dict)
    places: dict[str, None] = field(default_factory=dict)
    targets: dict[str, None] = field(default_factory=dict)
    errors: dict[str, None] = field(default_factory=dict)


def summary(output: bytes | Iterable[bytes]) -> Summary:
    """Return what the output of a gate says, whole or in parts; it takes little memory however long that is."""
    found, last, looks, rest = _Found(), b"", 0, b""
    for part in _parts(output):
        last = (last + part)[-_WHOLE_TAIL_BYTES:]
        whole, cut, rest = (rest + part).rpartition(b"\n")
        rest = rest[-_LINE:]
        _hear_cases(found, whole)
        if looks < _MAX_LINES_READ:
            for line in _marked(whole + cut):
                _hear(found, line)
                looks += 1
                if looks >= _MAX_LINES_READ:
                    break
    _hear_cases(found, last)
    for raw in last.split(b"\n"):
        _hear(found, raw[-_LINE:])
    tail = "\n".join(clean(raw) for raw in last[-4 * MAX_TAIL_CHARS :].split(b"\n")).strip()[-MAX_TAIL_CHARS:]
    failures = tuple(found.tests or found.places or found.targets)
    return Summary(failures[:MAX_FAILURES], tuple(found.errors)[:MAX_ERRORS], tail, _fingerprint(found, tail))


# What is kept of it


@dataclass(frozen=True)
class Told:
    """A summary as it was written: what went wrong and what may explain it, the lines that say why, and the end."""

    first: tuple[str, ...]
    errors: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()


def tell(why: str, hints: Iterable[str], found: Summary) -> str:
    """Return what is kept of a failure: all that its author needs to mend it."""
    lines = [why, *hints, *([_ERRORS, *found.errors] if found.errors else [])]
    return "\n".join([*lines, *([_TAIL, found.tail] if found.tail else [])])


def told(text: str) -> Told:
    """Return what `tell` wrote, in its parts."""
    head, _, tail = f"\n{text}".partition(f"\n{_TAIL}\n")
    first, _, errors = head.partition(f"\n{_ERRORS}\n")
    return Told(tuple(first.strip().splitlines()), tuple(errors.splitlines()), tuple(tail.splitlines()))


def error_line(text: str) -> str:
    """Return the one line of a summary that says most: what is missing if something is, else the last error.

    That no test ran only comes of something else, if there is any error.
    """
    parts = told(text)
    said = [line.strip() for line in (*parts.errors, *parts.tail)]
    telling = [line for line in said if line and not _NOISE(line)]
    worded = [line for line in telling if _SUMMARY(line) is None]
    errors = [line for line in worded if line in {each.strip() for each in parts.errors}]
    missing = [line for line in said if is_missing(line) and not (errors and _RAN_NONE(line))]
    install = [line for line in said if _NPM(line) is not None]
    return (missing[:1] or errors or worded or telling or install or [*parts.first[:1], ""])[-1][:MAX_LINE_CHARS]


def is_missing(line: str) -> bool:
    """Say whether a line says that a check found nothing to run: no program, no module, no target or no test."""
    return _MISSING(line) is not None or _RAN_NONE(line) is not None


def lacks_program(line: str) -> bool:
    """Say whether a line says that a program is not there which a check wanted to run."""
    return re.search(_NO_PROGRAM, line) is not None


def clean(raw: bytes) -> str:
    """Return a line as a person would see it in the end: without control sequences and what was drawn over."""
    text = raw.decode(errors="replace").rstrip("\r\n")
    return _CONTROL.sub("", text.rpartition("\r")[2]).replace("\t", "    ").rstrip()


def _parts(output: bytes | Iterable[bytes]) -> Iterator[bytes]:
    """Yield the output in parts that are quickly searched."""
    for part in (output,) if isinstance(output, bytes) else output:
        for start in range(0, len(part), _CHUNK):
            yield part[start : start + _CHUNK]


def _marked(text: bytes) -> Iterator[bytes]:
    """Yield the lines that contain a mark, in their order."""
    starts: set[int] = set()
    for mark in _MARKS:
        at = text.find(mark)
        while at >= 0:
            starts.add(text.rfind(b"\n", 0, at) + 1)
            end = text.find(b"\n", at)
            at = text.find(mark, end) if end >= 0 else -1
    for start in sorted(starts):
        end = text.find(b"\n", start)
        yield text[start : end if 0 <= end <= start + _LINE else start + _LINE]


# What a line says


def _rule(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """Return a rule for lines that end in no space; it takes no time that grows with the square of their length.

    `re` compiles it when it is first used, and remembers it: no command and no start of the daemon waits for that.
    """
    return partial(re.search, pattern)


_PYTEST = _rule(r"^(?:\[gw\d+\] (?:\[ *\d+%\] )?)?(?:FAILED|ERROR) (\S+(?:::.+?|\.py))(?: - .*)?$")
_PYTEST_VERBOSE = _rule(r"^(?=.* (?:FAILED|ERROR)(?: +\[ *\d+%\])?$)(\S+\.py::.+?) (?:FAILED|ERROR)(?: +\[ *\d+%\])?$")
_UNITTEST = _rule(r"^(?:FAIL|ERROR): (\S+) \(([\w.<>]+)\)")
_GO = _rule(r"^\s*--- FAIL: (\S+)")
_CARGO = _rule(r"^test (.+?) \.\.\. FAILED")
_JEST_FILE = _rule(r"^\s*FAIL\s+(?=[^\s./]*[./])(\S+(?: > .+?)?)(?:\s{1,9}\(?[\d.]+ ?m?s\)?| \[.*\])?$")
_JEST = _rule(r"^\s*[✕✗×✘] (.+?)(?:\s{1,9}\(?[\d.]+ ?m?s\)?)?$")
_JEST_STORY = _rule(r"^\s*● (.+ › .+)$")
_TAP = _rule(r"^\s*not ok \d+(?: -)? *(?!.*# *(?i:todo|skip))(.+)$")
_JUNIT = re.compile(
    rb"<testcase(?=[^>]{0,2000}? name=\"([^\"]{1,400})\")(?:(?=[^>]{0,2000}? classname=\"([^\"]{1,400})\"))?"
    rb"[^>]{0,4000}>\s{0,100}<(?:failure|error)[\s>]"
)
_MAKE = _rule(r"\*\*\* \[(?:[^\][:]+:\d+: )?([^\][]+)\] Error \d+")
_PLACE = _rule(
    r"^([^\s:(]+\.\w+)(?::\d+(?::\d+)?|\(\d+,\d+\))(?::| -) "
    r"(?:(?:fatal )?[Ee]rror\b|[A-Z]{1,4}\d{3,4} |[A-Z]+\d{3,4}: )"
)
_ERROR = _rule(
    r"^E  +\S|^\s*(?:ERROR|FATAL|Error|error|fatal|panic)(?:\[\w+\])?:|\b(?:[Ee]rror|fatal)(?: \w+)?: "
    r"|^\s*(?:[\w.]+\.)?\w*(?:Error|Exception)(?::|$)|panicked at|^\s+\d+:\d+\s+error\s|: (?:fatal )?error\b"
)


_NOISE = _rule(
    r"^make(?:\[\d+\])?: (?:\*\*\*|Entering|Leaving)|^npm (?:ERR!|error|notice|warn)|ELIFECYCLE|^error Command failed"
    r"|^error: [Rr]ecipe |^info Visit |^Traceback \(most|^\[\.\.\.\]$|^[-=_ *]+$|^OSError: .*Broken pipe"
)
"""What only tells that a command failed which told why itself."""
_SUMMARY = _rule(r"^=+ .+ =+$|^\d+ (?:failed|errors?|passed)\b.* in [\d.]+s|^(?!.*[A-Za-z]{3})")
"""What sums up, heads, or has no word in it: it says most where nothing else is said."""
_RAN_NONE = _rule(
    r"no tests? ran|collected 0 items$|No tests? (?:were )?(?:found|executed)|Ran 0 tests|NO TESTS RAN"
    r"|No test files found|error: no test"
)
"""What only tells that no test ran."""
_NPM = _rule(r"^npm (?:ERR!|error) (?!code |errno |syscall |path |A complete log|Lifecycle|Exit |cwd )\S+ \S")
"""Why npm itself failed, where it was no command of the repository that did."""
_NO_PROGRAM = (
    r"(?::|^)\s?[\w./+@-]+: (?:command )?not found$|^make(?:\[\d+\])?: [\w./+-]+: No such file or directory"
    r"|env: .{1,80}: No such file or directory|: executable file not found in|^sh: .*: Permission denied$"
)
_MISSING = _rule(
    rf"{_NO_PROGRAM}"
    r"|No module named \S|Cannot find (?:module|package) |ERR_MODULE_NOT_FOUND|LoadError|cannot load such file"
    r"|no required module provides package|could not find `?Cargo\.toml|Could not find gem|[Mm]issing script:"
    r"|No rule to make target|does not contain recipe|no such (?:sub)?command|Unknown command:"
    r"|no test specified|Task 'test' not found|^ERROR: (?:file or directory )?not found: \S"
)


def _hear(found: _Found, raw: bytes) -> None:
    """Add what a line says to what was found."""
    line = clean(raw)[:2000]
    if not line:
        return
    test = _test(line)
    if test is not None:
        _note(found.tests, test)
    elif (target := _MAKE(line)) is not None:
        _note(found.targets, target[1])
        _note(found.errors, line)
    elif (place := _PLACE(line)) is not None:
        _note(found.places, place[1])
        _note(found.errors, line)
    elif _ERROR(line) is not None:
        _note(found.errors, line)


def _hear_cases(found: _Found, text: bytes) -> None:
    """Add the tests that failed by a report in XML."""
    for case in _JUNIT.finditer(text) if b"<testcase" in text else ():
        _note(found.tests, b".".join(filter(None, (case[2], case[1]))).decode(errors="replace"))


def _test(line: str) -> str | None:
    """Return the test that failed according to a line."""
    if (named := _UNITTEST(line)) is not None:
        return named[2] if named[2].endswith(f".{named[1]}") else f"{named[2]}.{named[1]}"
    for rule in (_PYTEST, _PYTEST_VERBOSE, _GO, _CARGO, _JEST_FILE, _JEST, _JEST_STORY, _TAP):
        if (named := rule(line)) is not None:
            return named[1]
    return None


def _note(known: dict[str, None], text: str) -> None:
    if len(known) < _MAX_KNOWN:
        known.setdefault(text.strip()[:MAX_LINE_CHARS])


# The fingerprint

_VARYING = (
    (r"(?:/[^\s/'\":,;()\[\]<>]+)*/\.gate-\d+(?=[/\s'\":,;)]|$)/?", ""),
    (r"(?:/private)?(?:/var)?/(?:tmp|folders)/[^\s'\",;:()<>]*", "TMP"),
    (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "ID"),
    (r"\b0x[0-9a-fA-F]+\b", "ADDRESS"),
    (r"\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?", "TIME"),
    (r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b", "TIME"),
    (r"\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|sec|secs|seconds?|min|mins|minutes?|h|hours?)\b", "DURATION"),
    (r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", "HASH"),
    (r"(?<=\.\w)(?:(?<=\w)\w{0,5})?:\d+(?::\d+)?\b", ":LINE"),
    (r"\(\d+,\d+\)", ":LINE"),
    (r"(?i)\b(port|pid|line|seed|thread|process)([ =:#]+)\d+", r"\1\2N"),
    (r"\b((?:localhost|\d+\.\d+\.\d+\.\d+|::1\])):\d+", r"\1:N"),
    (r"\b\d{5,}\b", "N"),
    (r"\b\d+\.\d{3,}\b", "N"),
)
"""What differs between two outputs of the same failure, and what stands for it."""


def same(text: str) -> str:
    """Return a line without what differs from one run of the same program to the next."""
    for pattern, other in _VARYING:
        text = re.sub(pattern, other, text)
    return " ".join(text.split())


def mark(step: str, ended: bool, found: Summary) -> str:
    """Return the fingerprint of a failed step; of one that had to be ended, what it said meanwhile does not count."""
    said = "ended" if ended else found.fingerprint
    return hashlib.sha256(f"{step}\n{said}".encode(errors="replace")).hexdigest()[:16]


def _fingerprint(found: _Found, tail: str) -> str:
    """Return a short text that is the same for the same failure, in whatever order its parts were told."""
    tests = sorted({same(each) for each in found.tests or found.places or found.targets})
    errors = sorted({same(each) for each in found.errors})
    words = [*tests, "", *errors]
    if not found.tests and not errors:
        words += [same(line) for line in tail.split("\n")[-20:]]
    return hashlib.sha256("\n".join(words).encode(errors="replace")).hexdigest()[:16]


# What a failed check may have lacked, by what it said: the network, or something that a gate does not see

_NETWORK = _rule(
    r"(?i)Temporary failure in name resolution|Name or service not known|nodename nor servname"
    r"|Could ?n[o']t resolve (?:host|proxy)"
    r"|getaddrinfo (?:EAI_AGAIN|ENOTFOUND|failed)|EAI_AGAIN|ENETUNREACH|ENETDOWN|Network is (?:unreachable|down)"
    r"|ECONNREFUSED|Connection refused|connect: connection refused|UnknownHostException|NameResolutionError"
    r"|dial tcp: lookup|failed to lookup address information|error sending request for url|No route to host"
    r"|nss_getaddrinfo|UnresolvedAddressException|SocketError: Failed to open TCP|could not connect to server"
)
_NOT_THERE = _rule(
    r"(?i)No such file or directory|not found|ENOENT|can't open|cannot open|can't cd|cannot find|does not exist|missing"
)
_PATH = r"(?<![\w./~-])(?:~|/[\w.@+-]+)(?:/[\w.@+-]*[\w@+-])+"
NO_NETWORK = (
    "A gate has no network, and this one seems to want it. network = true in [merge] of covey.toml lets it reach "
    "everything; a service of its own on 127.0.0.1 works without."
)
WROTE_OUTSIDE = (
    "It tried to write outside of its worktree, which a gate can only read. It may write in its worktree, in HOME, in "
    'the temporary folder and in the caches of tools, and all of that is gone with it; isolate = "off" in [merge] of '
    "covey.toml lets it write anywhere."
)
_NOT_FOUND, _NOT_GIVEN, _OWN = "It did not find ", "It may want ", "This repository's own package is not found: "
_MAX_PATHS = 20
"""Paths of a text that are looked at."""
_MAX_NAME_CHARS = 200
"""Characters of a module's name, which is that of a file too."""


def wants_network(text: str) -> bool:
    """Say whether a program complains that it reaches nobody."""
    return _NETWORK(text) is not None


def missed_paths(text: str) -> tuple[str, ...]:
    """Return the whole paths in lines that say that something is not there."""
    lines = (line for line in text.splitlines() if _NOT_THERE(line))
    found = dict.fromkeys(match for line in lines for match in re.findall(_PATH, line))
    return tuple(found)[:_MAX_PATHS]


def missed_variables(text: str, dropped: Collection[str]) -> tuple[str, ...]:
    """Return which of the variables that were held back a text names."""
    words = set(re.findall(r"\b[A-Z][A-Z0-9_]{3,}\b", text))
    return tuple(sorted(words & set(dropped)))[:_MAX_PATHS]


def not_shown(paths: Collection[str]) -> str:
    """Return the hint that something is there and no gate sees it."""
    named = ", ".join(paths)
    return f"{_NOT_FOUND}{named}: that is there, but no gate sees it unless show in [merge] of covey.toml names it."


def not_given(names: Collection[str]) -> str:
    """Return the hint that a gate does not get these variables."""
    return f"{_NOT_GIVEN}{', '.join(names)}: a gate gets such a variable if env in [merge] of covey.toml names it."


def missed_modules(text: str) -> tuple[str, ...]:
    """Return which whole packages or modules of Python were not found."""
    return tuple(dict.fromkeys(re.findall(rf"No module named '?(\w{{1,{_MAX_NAME_CHARS}}})'?(?![\w.])", text)))[
        :_MAX_PATHS
    ]


def own_package(name: str, folder: str) -> str:
    """Return the hint that a package of the tree under test was looked for elsewhere; it lies in that folder."""
    path = f"$PWD/{folder}" if folder else "$PWD"
    return (
        f"{_OWN}{name}. One that is installed from your checkout (pip install -e) lies where no gate looks, and would "
        f'not be what lands; PYTHONPATH="{path}" before the command, as a whole path, lets Python find the one that is '
        "tested, also from a program that a test starts in another folder."
    )


def hints_in(summary: str) -> list[str]:
    """Return the hints in the summary of a gate that failed; they come before what it printed."""
    return [
        line
        for line in told(summary).first
        if line.startswith((NO_NETWORK, WROTE_OUTSIDE, _NOT_FOUND, _NOT_GIVEN, _OWN))
    ]
