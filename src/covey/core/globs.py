"""Exact reasoning about path globs: which paths they match, share and leave out.

A path is relative to the repository: segments of one or more characters, joined by `/`.

    `src/auth`    a pattern without wildcards: that path and everything below it
    `src/`        everything below `src`, the same as `src/**`
    `**`          as a whole segment, zero or more segments: `**/x` matches `x`, and `a/**/b` matches `a/b`;
                  at the end one or more: `src/**` does not match `src`; inside a name the same as `*`
    `*`           zero or more characters of a segment, which is never empty: `a/*` does not match `a/`
    `?`           one character
    `[a-z]`       one character of a class; `[!a-z]` and `[^a-z]` one character outside it
    `\\*`          a backslash takes the next character as it is, so this is not a wildcard

No wildcard but `**` matches a `/`. Segments `.` are dropped, so `.` is the whole tree and `./src` is `src`.

A pattern becomes a row of tokens, and a set of places in that row is an integer with one bit per place. Every
token leads to itself or to a later one, which makes `intersect` a single pass. A question with a difference
in it determinises the patterns that are taken away, on the fly and within `MAX_SEARCH_STATES`; beyond that the
answer is the cautious one: scopes may overlap, and do not contain each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from enum import Enum
from functools import cache, lru_cache, partial
from itertools import islice
from typing import NoReturn

from covey.errors import Invalid
from covey.values import dataclass

MAX_PATTERN_CHARS = 1_000
MAX_PATTERN_SEGMENTS = 64
MAX_SEARCH_STATES = 20_000

Chars = tuple[tuple[int, int], ...]
"""Characters but `/`, as sorted and disjoint ranges of code points."""

ANY_BUT_SLASH: Chars = ((0, ord("/") - 1), (ord("/") + 1, 0x10FFFF))


class Mark(Enum):
    """A token that is not one character."""

    STAR = "any run of characters within the segment"
    DIRS = "whole segments may follow, or the next segment at once"
    DEEP = "within those whole segments, up to a slash"
    FOLDER = "the path may end here, or go on below"
    TAIL = "everything from here on"
    END = "the path ends here"


Token = str | Chars | Mark


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern that was understood, with what every match of it starts and ends with."""

    pattern: str
    prefix: str
    suffix: str
    tokens: tuple[Token, ...] = field(repr=False)


@lru_cache(maxsize=16_384)
def compile(pattern: str) -> Glob:
    """Return the parsed pattern, or raise `Invalid`."""
    tokens = _tokens(pattern)
    return Glob(pattern, _prefix(tokens), _suffix(tokens), tokens)


def matches(pattern: str, path: str) -> bool:
    """Say whether `pattern` matches `path`; nothing matches what is not a path."""
    glob = compile(pattern)
    if not (path.startswith(glob.prefix) and path.endswith(glob.suffix)):
        return False
    if not path or path[0] == "/" or path[-1] == "/" or "//" in path:
        return False
    if Mark.FOLDER in glob.tokens:  # a pattern without wildcards: that path, or what is below it
        return path[len(glob.prefix) : len(glob.prefix) + 1] in ("", "/")
    machine = _machine((pattern,))
    return _run(machine, 1 << len(glob.prefix), path[len(glob.prefix) :]) & machine.accept != 0


def covered(path: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Say whether some pattern of `include` and none of `exclude` matches `path`."""
    return any(matches(pattern, path) for pattern in include) and not any(matches(pattern, path) for pattern in exclude)


def intersect(a: str, b: str) -> bool:
    """Say whether some path matches both patterns."""
    left, right = compile(a), compile(b)
    if not (left.prefix.startswith(right.prefix) or right.prefix.startswith(left.prefix)):
        return False
    if not (left.suffix.endswith(right.suffix) or right.suffix.endswith(left.suffix)):
        return False
    return _meet(a, b) if a <= b else _meet(b, a)


def plain(pattern: str) -> str | None:
    """Return the path that a pattern without wildcards names, None for any other."""
    glob = compile(pattern)
    return glob.prefix if Mark.FOLDER in glob.tokens else None


def witness(a: str, b: str) -> str | None:
    """Return a shortest path that matches both patterns, if possible one without segments `.` and `..`."""
    if not intersect(a, b):
        return None
    try:
        proper = _search([(a, b)], _automaton(_DOTS), MAX_SEARCH_STATES)
    except _Exhausted:
        proper = None
    return proper or _search([(a, b)], _machine(()), None)


def overlap(
    include_a: Sequence[str], exclude_a: Sequence[str], include_b: Sequence[str], exclude_b: Sequence[str]
) -> bool:
    """Say whether some path is in both scopes; True too when finding out takes over `MAX_SEARCH_STATES` states."""
    if not exclude_a and not exclude_b:
        return any(intersect(a, b) for a in include_a for b in include_b)
    return _remains(tuple(include_a), tuple(include_b), (*exclude_a, *exclude_b))


def contains(outer: Sequence[str], inner: Sequence[str]) -> bool:
    """Say whether `outer` matches all of `inner`; False too when finding out takes over `MAX_SEARCH_STATES` states."""
    return not _remains(tuple(inner), ("**",), tuple(outer))


# Reading a pattern

# Possessive, so that a `]` right after `[` or `[!` is always a member and never the end.
_CLASS = r"\[(?P<sign>[!^]?+)(?P<body>\]?+(?:\\.|[^\]\\])*+)\]"
_PIECE = re.compile(rf"(?P<plain>[^\\\[*?/]+)|(?P<wild>[*?/])|\\(?P<escaped>.)|{_CLASS}")
_MEMBER = re.compile(r"\\?+(?P<low>.)(?:-\\?+(?P<high>.))?")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DOUBLE: list[Token] = [Mark.STAR, Mark.STAR]


def _tokens(pattern: str) -> tuple[Token, ...]:
    """Return the row of tokens, which always ends in `END` or `TAIL`."""
    segments, wild = _segments(pattern)
    tokens: list[Token] = []
    for segment in segments[:-1]:
        tokens += [Mark.DIRS, Mark.DEEP] if segment == _DOUBLE else [*_segment(segment), "/"]
    if segments[-1] == _DOUBLE:
        return (*tokens, Mark.TAIL)
    tokens += _segment(segments[-1])
    return (*tokens, Mark.END) if wild else (*tokens, Mark.FOLDER, Mark.TAIL)


def _segment(segment: list[Token]) -> list[Token]:
    """Return the tokens of one segment, with one star for several."""
    return [
        token for place, token in enumerate(segment) if token is not Mark.STAR or segment[place - 1 : place] != [token]
    ]


def _segments(pattern: str) -> tuple[list[list[Token]], bool]:
    """Return the segments that count, at least one, and whether there is a wildcard."""
    _check(pattern)
    pieces, wild = _pieces(pattern)
    if pieces[-1]:
        raw = pieces
    else:
        raw, wild = [*pieces[:-1], _DOUBLE], True
    if [] in raw:
        _refuse(pattern, "has an empty segment", "Write one / between two names.")
    if [".", "."] in raw:
        _refuse(pattern, "leads out of the repository with ..", "Write the path from the root of the repository.")
    if len(raw) > MAX_PATTERN_SEGMENTS:
        _refuse(pattern, f"has more than {MAX_PATTERN_SEGMENTS} segments", "Use ** for the levels in between.")
    segments: list[list[Token]] = []
    for segment in raw:
        if segment != ["."] and not (segment == _DOUBLE and segments[-1:] == [_DOUBLE]):
            segments.append(segment)
    return (segments, wild) if segments else ([_DOUBLE], True)


def _check(pattern: str) -> None:
    """Raise `Invalid` for what can be seen without reading the pattern piece by piece."""
    if not pattern:
        raise Invalid("A pattern is empty.", hint="Write ** for the whole tree.")
    if len(pattern) > MAX_PATTERN_CHARS:
        _refuse(pattern, f"is longer than {MAX_PATTERN_CHARS:,} characters", "Split it into shorter patterns.")
    if _CONTROL_CHARACTERS.search(pattern):
        _refuse(pattern, "has a control character", "Use ? where a name has one.")
    if pattern.startswith("/"):
        _refuse(pattern, "is absolute", "Leave out the leading /: patterns start at the root of the repository.")


def _pieces(pattern: str) -> tuple[list[list[Token]], bool]:
    """Return the tokens between slashes as they are written, and whether there is a wildcard."""
    segments: list[list[Token]] = [[]]
    wild, position = False, 0
    while position < len(pattern):
        piece = _PIECE.match(pattern, position)
        if piece is None:
            _refuse_piece(pattern, position)
        position = piece.end()
        text = piece["plain"] or piece["escaped"] or piece["wild"]
        if text == "/":
            segments.append([])
        elif piece["plain"] or piece["escaped"]:
            segments[-1].extend(text)
        else:
            wild = True
            segments[-1].append(_wildcard(pattern, piece))
    return segments, wild


def _wildcard(pattern: str, piece: re.Match[str]) -> Token:
    """Return the token of a star, a question mark or a class."""
    match piece["wild"]:
        case "*":
            return Mark.STAR
        case "?":
            return ANY_BUT_SLASH
    ranges = [(ord(member["low"]), ord(member["high"] or member["low"])) for member in _MEMBER.finditer(piece["body"])]
    if any(low > high for low, high in ranges):
        _refuse(
            pattern,
            f"has a range in {piece[0]} that runs backwards",
            "Write the lower end of the range first.",
        )
    if piece["sign"]:
        ranges = _outside([*ranges, (ord("/"), ord("/"))])
    else:
        # The complement of the complement: sorted, merged, and without the slash.
        ranges = _outside([*_outside(ranges), (ord("/"), ord("/"))])
    return chr(ranges[0][0]) if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else tuple(ranges)


def _outside(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the code points in none of `ranges`, as sorted and disjoint ranges."""
    free, outside = 0, []
    for low, high in sorted(ranges):
        if low > free:
            outside.append((free, low - 1))
        free = max(free, high + 1)
    return [*outside, (free, 0x10FFFF)] if free <= 0x10FFFF else outside


def _refuse_piece(pattern: str, position: int) -> NoReturn:
    if pattern[position] == "[":
        _refuse(
            pattern,
            "has a class that is not closed",
            "Close it with ], or write \\[ for the character itself.",
        )
    _refuse(pattern, "ends in a backslash", "Write \\\\ for the character itself; segments are separated by /.")


def _refuse(pattern: str, problem: str, hint: str) -> NoReturn:
    shown = pattern if len(pattern) <= 80 else f"{pattern[:79]}…"
    raise Invalid(f"The pattern {shown!r} {problem}.", hint=hint)


def _prefix(tokens: Sequence[Token]) -> str:
    length = next(place for place, token in enumerate(tokens) if not isinstance(token, str))
    return "".join(map(str, tokens[:length]))


def _suffix(tokens: Sequence[Token]) -> str:
    if tokens[-1] is not Mark.END:
        return ""
    start = len(tokens) - 1
    while start and isinstance(tokens[start - 1], str):
        start -= 1
    # With a slash before it, `**/` has one after it as well, whether it matches segments or none.
    slash = "/" if start > 2 and tokens[start - 1] is Mark.DEEP else ""
    return slash + "".join(map(str, tokens[start:-1]))


# Running a pattern


@dataclass(frozen=True, slots=True)
class _Machine:
    """Patterns side by side as one automaton; an `int` is a set of places."""

    tokens: tuple[Token, ...]
    start: int
    accept: int
    star: int
    dirs: int
    tail: int
    loop: int  # stays whatever is read
    inner: int  # one character but a slash leads on
    literal: dict[str, int]  # this character leads on
    classes: tuple[tuple[Chars, int], ...]  # one of these characters leads on
    rules: tuple[tuple[int, int], ...]  # this place matches all that these others do


@lru_cache(maxsize=4_096)
def _machine(patterns: tuple[str, ...]) -> _Machine:
    """Return the automaton of the union of `patterns`."""
    return _automaton(tuple(token for pattern in patterns for token in compile(pattern).tokens))


def _automaton(tokens: tuple[Token, ...]) -> _Machine:
    """Return the automaton of rows of tokens, one after the other."""
    sets: dict[Token, int] = dict.fromkeys(Mark, 0)
    starts, begin = 0, True
    for place, token in enumerate(tokens):
        sets[token] = sets.get(token, 0) | 1 << place
        starts |= begin << place
        begin = token is Mark.END or token is Mark.TAIL
    star, tail, deep, folder = sets[Mark.STAR], sets[Mark.TAIL], sets[Mark.DEEP], sets[Mark.FOLDER]
    literal = {token: places for token, places in sets.items() if isinstance(token, str)}
    classes = tuple((token, places) for token, places in sets.items() if isinstance(token, tuple))
    slash = literal.get("/", 0)
    return _Machine(
        tokens=tokens,
        start=starts,
        accept=sets[Mark.END] | tail | folder | star & sets[Mark.END] >> 1,
        star=star,
        dirs=sets[Mark.DIRS],
        tail=tail,
        loop=deep | tail,
        inner=sum(literal.values()) - slash + sum(places for token, places in classes if token),
        literal=literal | {"/": slash | deep | folder},
        classes=classes,
        rules=_rules(tokens),
    )


def _rules(tokens: Sequence[Token]) -> tuple[tuple[int, int], ...]:
    """Return, last first, each place of a wildcard with the places before it that match no more."""
    rules: list[tuple[int, int]] = []
    pattern = segment = 0
    for place, token in enumerate(tokens):
        match token:
            case Mark.STAR:
                rules.append((1 << place, (1 << place) - (1 << segment)))
            case Mark.DEEP | Mark.TAIL:
                rules.append((1 << place, (1 << place) - (1 << pattern)))
        if token in ("/", Mark.DEEP):
            segment = place + 1
        if token in (Mark.TAIL, Mark.END):
            pattern = segment = place + 1
    return tuple(reversed(rules))


def _close(machine: _Machine, states: int) -> int:
    """Add the places that are reached without reading; a star never follows a star, nor `**` a `**`."""
    entered = states & machine.dirs
    states |= entered << 1 | entered << 2
    return states | (states & machine.star) << 1


def _leading(machine: _Machine, character: str) -> int:
    """Return the places that `character` leads on from."""
    places = machine.literal.get(character, 0)
    if machine.classes and character != "/":
        point = ord(character)
        for ranges, members in machine.classes:
            if any(low <= point <= high for low, high in ranges):
                places |= members
    return places


def _advance(machine: _Machine, states: int, character: str) -> int:
    """Return the places after reading `character`."""
    loop = machine.loop if character == "/" else machine.loop | machine.star
    return _close(machine, (states & _leading(machine, character)) << 1 | states & loop)


def _run(machine: _Machine, states: int, text: str) -> int:
    """Return the places after reading `text`, or as soon as all that follows is matched."""
    states = _close(machine, states)
    for character in text:
        if not states or states & machine.tail:
            break
        states = _advance(machine, states, character)
    return states


def _saturate(machine: _Machine, states: int) -> int:
    """Add the places that match no more than another place in the set, which gives equal sets one form."""
    for place, others in machine.rules:
        if states & place:
            states |= others
    return states


# Two patterns

# Here `*` and `**` may match an empty segment, as both patterns then match any name in its place.


@lru_cache(maxsize=65_536)
def _meet(a: str, b: str) -> bool:
    """Say whether two patterns with agreeing prefixes share a path, by one pass over the places of `a`."""
    left, right, machine = compile(a), compile(b), _machine((b,))
    tokens = left.tokens
    agreed = min(len(left.prefix), len(right.prefix))
    reached = [0] * (len(tokens) + 1)
    reached[agreed] = _close(machine, 1 << agreed)
    through = machine.inner | machine.literal["/"] | machine.star | machine.dirs
    for place in range(agreed, len(tokens)):
        states, token = reached[place], tokens[place]
        if not states:
            continue
        match token:
            case Mark.END:
                return states & machine.accept != 0
            case Mark.TAIL:
                return _flood(states, through) & machine.accept != 0
            case Mark.STAR:
                reached[place + 1] |= _flood(states, machine.inner | machine.star)
            case Mark.DIRS:
                reached[place + 1] |= states
                reached[place + 2] |= states
            case Mark.DEEP:
                reached[place + 1] |= _advance(machine, _flood(states, through), "/")
            case Mark.FOLDER:
                if states & machine.accept:
                    return True
                reached[place + 1] |= _advance(machine, states, "/")
            case str():
                reached[place + 1] |= _advance(machine, states, token)
            case _:
                reached[place + 1] |= _advance_class(machine, states, token)
    return False


def _flood(states: int, through: int) -> int:
    """Add every place that steps from places in `through` reach; the carry of the sum does the walking."""
    return (((states & through) + through) ^ through) | states


def _advance_class(machine: _Machine, states: int, ranges: Chars) -> int:
    """Return the places after reading some character of `ranges`."""
    if not ranges:
        return 0
    leading = machine.inner
    if ranges is not ANY_BUT_SLASH:
        leading = 0
        for character, places in machine.literal.items():
            if any(low <= ord(character) <= high for low, high in ranges):
                leading |= places
        for others, places in machine.classes:
            if any(low <= top and bottom <= high for low, high in ranges for bottom, top in others):
                leading |= places
    return _close(machine, (states & leading) << 1 | states & (machine.loop | machine.star))


# Two unions and a difference

_ANYWHERE = (Mark.DIRS, Mark.DEEP)
_BELOW = (Mark.FOLDER, Mark.TAIL)
_DOTS: tuple[Token, ...] = (*_ANYWHERE, ".", *_BELOW, *_ANYWHERE, ".", ".", *_BELOW)


class _Exhausted(Exception):
    """A search went over its bound."""


@lru_cache(maxsize=4_096)
def _remains(include_a: tuple[str, ...], include_b: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Say whether both unions match a path that `exclude` does not, or may do so for all we can find out."""
    try:
        return _remainder(include_a, include_b, exclude) is not None
    except _Exhausted:
        return True


def _remainder(include_a: tuple[str, ...], include_b: tuple[str, ...], exclude: tuple[str, ...]) -> str | None:
    """Return a path that both unions match and `exclude` does not, or raise `_Exhausted`."""
    pairs = [(a, b) for a in dict.fromkeys(include_a) for b in dict.fromkeys(include_b) if intersect(a, b)]
    relevant = {x for x in exclude if any(intersect(x, a) and intersect(x, b) for a, b in pairs)}
    return _search(pairs, _machine(tuple(sorted(relevant))), MAX_SEARCH_STATES)


_State = tuple[int, int, int, bool]
"""A place in each of two patterns, the places in what is left out, and whether within a segment."""


def _search(pairs: Sequence[tuple[str, str]], without: _Machine, bound: int | None) -> str | None:
    """Return a path that both patterns of a pair match and `without` does not; with one pair a shortest."""
    patterns = tuple(sorted({pattern for pair in pairs for pattern in pair}))
    machine = _machine(patterns)
    letters = _letters((machine, without))
    moves = cache(partial(_moves, machine, _homes(machine.tokens), letters))
    turns = cache(partial(_turns, without, letters))
    noted: dict[tuple[int, int, bool], dict[int, None]] = {}
    found = [(state, -1, read) for state, read in _starts(pairs, patterns, without) if _is_new(state, noted)]
    for number, (state, _, _) in enumerate(found):
        i, j, states, inside = state
        if inside and machine.accept >> i & machine.accept >> j & 1 and not states & without.accept:
            return _spell(found, number)
        if bound is not None and number >= bound:
            raise _Exhausted
        for following, letter in _next(state, moves, turns):
            if _is_new(following, noted):
                found.append((following, number, letters[letter]))
    return None


def _starts(
    pairs: Sequence[tuple[str, str]], patterns: Sequence[str], without: _Machine
) -> Iterator[tuple[_State, str]]:
    """Yield the states after what every path of a pair starts with, and that start."""
    bases, base = {}, 0
    for pattern in patterns:
        bases[pattern] = base
        base += len(compile(pattern).tokens)
    left_out = cache(lambda text: _saturate(without, _run(without, without.start, text)))
    for a, b in pairs:
        text = max(compile(a).prefix, compile(b).prefix, key=len)
        if left_out(text) & without.tail:
            continue
        inside = text != "" and text[-1] != "/"
        for i in _bits(_after(a, text)):
            for j in _bits(_after(b, text)):
                yield (bases[a] + i, bases[b] + j, left_out(text), inside), text


def _after(pattern: str, text: str) -> int:
    """Return the places of a pattern after reading `text`, which starts with its prefix."""
    length = len(compile(pattern).prefix)
    return _run(_machine((pattern,)), 1 << length, text[length:]) if len(text) > length else 1 << length


def _is_new(state: _State, noted: dict[tuple[int, int, bool], dict[int, None]]) -> bool:
    """Note a state, unless one at the same places was noted that leaves no more out."""
    i, j, states, inside = state
    others = noted.setdefault((i, j, inside), {})
    # Short paths are met first and leave the least out, so a few comparisons find nearly all there is.
    if states in others or any(not other & ~states for other in islice(others, 16)):
        return False
    others[states] = None
    return True


_Steps = Callable[[int], list[tuple[int, int]]]
"""From a place, or a set of places, to pairs: the letters that lead on, as bits, and where to."""


def _next(state: _State, moves: _Steps, turns: _Steps) -> Iterator[tuple[_State, int]]:
    """Yield the states after `state` that keep to the form of a path, each with a letter that leads there."""
    i, j, states, inside = state
    for letters_a, to_a in moves(i):
        for letters_b, to_b in moves(j):
            both = letters_a & letters_b
            if not both:
                continue
            for letters_c, to_states in turns(states):
                common = both & letters_c
                if common & 1 and inside:
                    yield (to_a, to_b, to_states, False), 0
                if common > 1:
                    common &= ~1
                    yield (to_a, to_b, to_states, True), (common & -common).bit_length() - 1


def _moves(machine: _Machine, homes: Sequence[int], letters: Sequence[str], place: int) -> list[tuple[int, int]]:
    """Return where one place leads."""
    every = (1 << len(letters)) - 1
    moves: list[tuple[int, int]] = []
    for here in _bits(_close(machine, 1 << place)):
        match machine.tokens[here]:
            case Mark.STAR:
                moves.append((every - 1, here))
            case Mark.TAIL:
                moves.append((every, here))
            case Mark.DEEP:
                moves += [(every, here), (1, here + 1)]
            case Mark.FOLDER:
                moves.append((1, here + 1))
            case Mark():
                pass
            case str(character):
                moves.append((1 << letters.index(character), here + 1))
            case ranges:
                moves.append((_members(letters, ranges), here + 1))
    return [(members, homes[target]) for members, target in moves]


def _homes(tokens: Sequence[Token]) -> list[int]:
    """Return for each place one that has the same tokens from there on, so that alike patterns share work."""
    homes = [0] * len(tokens)
    known: dict[tuple[Token, int], int] = {}
    for place in reversed(range(len(tokens))):
        token = tokens[place]
        rest = -1 if token is Mark.END or token is Mark.TAIL else homes[place + 1]
        homes[place] = known.setdefault((token, rest), place)
    return homes


def _members(letters: Sequence[str], ranges: Chars) -> int:
    return sum(
        1 << index for index, letter in enumerate(letters) if any(low <= ord(letter) <= high for low, high in ranges)
    )


def _turns(machine: _Machine, letters: Sequence[str], states: int) -> list[tuple[int, int]]:
    """Return where a set of places leads, but not to where everything is matched from then on."""
    turns: dict[int, int] = {}
    for index, letter in enumerate(letters):
        following = _saturate(machine, _advance(machine, states, letter))
        turns[following] = turns.get(following, 0) | 1 << index
    return [(members, following) for following, members in turns.items() if not following & machine.tail]


def _letters(machines: Sequence[_Machine]) -> list[str]:
    """Return `/` and one character, readable if possible, of each kind that the machines tell apart."""
    mentioned = {letter for machine in machines for letter in machine.literal}
    edges = {ord(letter) + step for letter in mentioned for step in (0, 1)}
    for machine in machines:
        edges |= {edge for ranges, _ in machine.classes for low, high in ranges for edge in (low, high + 1)}
    readable = "/xyzabcdefghijklmnopqrstuvwXYZABCDEFGHIJKLMNOPQRSTUVW0123456789_-"
    others = "".join(map(chr, sorted(edge for edge in edges | {1} if 0 < edge <= 0x10FFFF)))
    kinds: dict[tuple[int, ...], str] = {}
    for letter in dict.fromkeys(readable + others):
        kind = tuple(_leading(machine, letter) for machine in machines)
        kinds.setdefault((*kind, letter == "/"), letter)
    return list(kinds.values())


def _bits(states: int) -> Iterator[int]:
    while states:
        lowest = states & -states
        yield lowest.bit_length() - 1
        states ^= lowest


def _spell(found: Sequence[tuple[_State, int, str]], number: int) -> str:
    """Return what was read on the way to a state."""
    read: list[str] = []
    while number >= 0:
        _, number, text = found[number]
        read.append(text)
    return "".join(reversed(read))
