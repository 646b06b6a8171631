"""Reading a command line as a shell would: which commands it runs, with which words, and where their output goes.

Nothing is guessed. What a shell only knows when it runs (a variable, a pattern, the output of another command) makes a
word that is not plain, and grammar that is not read here makes a line that is not whole. To be sure that a line does no
harm, take only whole lines and plain words; to look for a command, take what there is.
"""

from __future__ import annotations

import re
from dataclasses import field

from covey.values import dataclass

MAX_SUBSTITUTION_DEPTH = 8
"""How many substitutions may stand in each other."""
MAX_LINE_CHARS = 64 * 1024
"""Characters of a line that are read."""
_SPACE = " \t"
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_GOES_ON = "\\\n"
"""Ends a line that goes on with the next, but not in single quotes nor in a comment."""
_ENDS = "|&;()<>\n" + _SPACE
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=")
_OPERATORS = ("&&", "||", ";;", "|&", ";", "&", "|", "(", ")", "\n")
_REDIRECTIONS = ("<<<", "<<-", "&>>", "<<", ">>", ">|", ">&", "<&", "<>", "&>", ">", "<")
_KEYWORDS = frozenset((
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select",
    "function", "{", "}", "[[", "]]", "coproc", "time", "!",
))  # fmt: skip
_HEREDOCS = ("<<", "<<-")
_QUOTES = "'\"\\"


@dataclass(frozen=True)
class Word:
    """One word as a program gets it; one that is not plain becomes known only when it runs."""

    text: str
    plain: bool = True
    bare: bool = True
    """No part of it was quoted."""
    globs: bool = False
    """It is not plain, but only because it is a pattern of names."""
    inner: tuple[Script, ...] = ()
    """What is run to make it."""


@dataclass(frozen=True)
class Redirection:
    """Where something is read from or written to; the text of a here-document is its target."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Say whether it writes to what its target names; one descriptor sent to another does not."""
        if self.operator == ">&":
            return not (self.target.plain and (self.target.text.isdigit() or self.target.text == "-"))
        return ">" in self.operator


@dataclass(frozen=True)
class Command:
    """One program with its words; variables that are set for it stand apart."""

    words: tuple[Word, ...] = ()
    assignments: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    join: str = ""
    """What stands between the command before and this one."""

    @property
    def is_plain(self) -> bool:
        """Say whether every word is known."""
        return all(word.plain for word in self.words)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the words as texts, known or not."""
        return tuple(word.text for word in self.words)


@dataclass(frozen=True)
class Script:
    """The commands of a line, in order; not whole if there is grammar in it that is not read here."""

    commands: tuple[Command, ...] = ()
    whole: bool = True


def read(line: str, depth: int = 0) -> Script:
    """Return the commands that a line runs."""
    if depth > MAX_SUBSTITUTION_DEPTH or len(line) > MAX_LINE_CHARS:
        return Script(whole=False)
    reader = _Reader(line, depth)
    reader.read()
    return Script(tuple(reader.commands), reader.whole)


@dataclass
class _Pending:
    """A command that is being read."""

    words: list[Word] = field(default_factory=list)
    assignments: list[Word] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)


class _Reader:
    """Goes through a line from left to right."""

    def __init__(self, line: str, depth: int) -> None:
        self.line = line
        self.depth = depth
        self.at = 0
        self.whole = _UNREADABLE.search(line) is None
        self.commands: list[Command] = []
        self._now = _Pending()
        self._join = ""
        self._heredocs: list[tuple[str, bool]] = []

    def read(self) -> None:
        """Read the whole line."""
        while self.at < len(self.line):
            letter = self.line[self.at]
            if letter in _SPACE:
                self.at += 1
            elif self.line.startswith(_GOES_ON, self.at):
                self.at += 2
            elif letter == "#":  # a word that begins so is a comment
                end = self.line.find("\n", self.at)
                self.at = len(self.line) if end < 0 else end
            elif not self._redirected() and not self._ended():
                self._take(self._word())
        self._end_command()
        self.whole = self.whole and not self._heredocs

    def _ended(self) -> bool:
        """Take an operator that ends a command, if there is one."""
        operator = next((each for each in _OPERATORS if self.line.startswith(each, self.at)), None)
        if operator is None:
            return False
        self.at += len(operator)
        if operator == "(" and self._now.words:  # a function, or something that is not a command
            self.whole = False
        if operator in (";;", "(", ")"):  # a subshell changes nothing outside; what it holds is read like the rest
            self.whole = False
        self._end_command()
        # Of several (a line break after `&&`) the one that ties closest counts.
        self._join = operator if operator != "\n" or self._join not in ("&&", "||", "|", "|&") else self._join
        if operator == "\n":
            self._skip_heredocs()
        return True

    def _end_command(self) -> None:
        now, self._now = self._now, _Pending()
        if now.words or now.assignments or now.redirections:
            parts = tuple(now.words), tuple(now.assignments), tuple(now.redirections)
            self.commands.append(Command(*parts, join=self._join))
            self._join = ""

    def _take(self, word: Word) -> None:
        now = self._now
        if word.bare and word.text in _KEYWORDS and not now.words:
            self.whole = False
            self._end_command()
            return
        if not now.words and _ASSIGNMENT.match(word.text):
            now.assignments.append(word)
        else:
            now.words.append(word)

    # Redirections

    def _redirected(self) -> bool:
        """Take a redirection, if there is one."""
        digits = re.compile(r"\d+(?=[<>])").match(self.line, self.at)
        start = digits.end() if digits else self.at
        operator = next((each for each in _REDIRECTIONS if self.line.startswith(each, start)), None)
        if operator is None or (digits and operator.startswith("&")):
            return False
        self.at = start + len(operator)
        if self.line.startswith("(", self.at) and operator in ("<", ">"):
            self._substituted_process()
            return True
        while self.at < len(self.line) and self.line[self.at] in _SPACE:
            self.at += 1
        if self.at >= len(self.line) or self.line[self.at] in _ENDS:
            self.whole = False
            return True
        target = self._word()
        if operator in _HEREDOCS:
            self._heredocs.append((target.text, operator == "<<-"))
            self.whole = self.whole and target.plain and not target.bare  # a bare one is expanded as it is read
        self._now.redirections.append(Redirection(operator, target))
        return True

    def _substituted_process(self) -> None:
        self.at += 1
        self._now.words.append(Word("", plain=False, inner=(self._inner(),)))
        self.whole = False

    def _skip_heredocs(self) -> None:
        """Pass over the texts that follow a line which asked for them."""
        for end, tabs in self._heredocs:
            while True:
                if self.at >= len(self.line):
                    self.whole = False
                    break
                stop = self.line.find("\n", self.at)
                stop = len(self.line) if stop < 0 else stop
                text = self.line[self.at : stop]
                self.at = min(stop + 1, len(self.line))
                if (text.lstrip("\t") if tabs else text) == end:
                    break
        self._heredocs = []

    # Words

    def _word(self) -> Word:
        parts: list[str] = []
        inner: list[Script] = []
        plain = bare = True
        wild = False
        while self.at < len(self.line) and self.line[self.at] not in _ENDS:
            letter = self.line[self.at]
            if self.line.startswith(_GOES_ON, self.at):
                self.at += 2
            elif letter in _QUOTES:
                bare = False
                known = self._in_quotes(letter, parts, inner)
                if known is None:
                    return self._broken(parts, inner)
                plain = plain and known
            elif letter in "$`":
                plain = not self._expanded(parts, inner) and plain
            else:
                wild = wild or letter in "*?["
                plain = plain and not self._is_replaced(parts)
                parts.append(letter)
                self.at += 1
        wild = wild and parts != ["["]  # a name of `test`
        return Word("".join(parts), plain and not wild, bare, globs=plain and wild, inner=tuple(inner))

    def _is_replaced(self, before: list[str]) -> bool:
        """Say whether a shell puts something else here: words, the home folder, or in zsh the path of a program."""
        letter, following = self.line[self.at], self.line[self.at + 1 : self.at + 2]
        is_program = letter == "=" and following not in ("", "=", *_ENDS)
        return letter == "{" or ((letter == "~" or is_program) and not any(before))

    def _in_quotes(self, quote: str, parts: list[str], inner: list[Script]) -> bool | None:
        """Take what a quotation mark or a backslash quotes; say whether all of it is known, None if it has no end."""
        self.at += 1
        if quote == "\\":
            parts.append(self.line[self.at : self.at + 1])
            self.at += 1
            return True
        if quote == '"':
            return self._quoted(parts, inner)
        end = self.line.find("'", self.at)
        if end < 0:
            return None
        parts.append(self.line[self.at : end])
        self.at = end + 1
        return True

    def _broken(self, parts: list[str], inner: list[Script]) -> Word:
        self.whole = False
        self.at = len(self.line)
        return Word("".join(parts), plain=False, bare=False, inner=tuple(inner))

    def _quoted(self, parts: list[str], inner: list[Script]) -> bool | None:
        """Take what stands in double quotes; say whether all of it is known, None if they have no end."""
        is_known = True
        parts.append("")
        while self.at < len(self.line):
            letter = self.line[self.at]
            if letter == '"':
                self.at += 1
                return is_known
            if self.line.startswith(_GOES_ON, self.at):
                self.at += 2
            elif letter == "\\" and self.line[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`"):
                parts.append(self.line[self.at + 1])
                self.at += 2
            elif letter in "$`":
                is_known = not self._expanded(parts, inner) and is_known
            else:
                parts.append(letter)
                self.at += 1
        return None

    def _expanded(self, parts: list[str], inner: list[Script]) -> bool:
        """Take an expansion; false if a dollar is only a dollar."""
        if self.line[self.at] == "`":
            end = re.compile(r"(?:[^`\\]|\\.)*", re.DOTALL).match(self.line, self.at + 1)
            assert end is not None
            text = re.sub(r"\\([`$\\])", r"\1", end[0])
            inner.append(read(text, self.depth + 1))
            self.at = end.end() + 1
            self.whole = self.whole and self.at <= len(self.line)
            return True
        if self.line.startswith("$(", self.at):
            self.whole = self.whole and not self.line.startswith("$((", self.at)  # a sum, or else a subshell
            self.at += 2
            inner.append(self._inner())
            return True
        named = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])").match(self.line, self.at)
        if named is not None:
            self.at = named.end()
            return True
        if self.line[self.at + 1 : self.at + 2] in ("{", "(", "'", '"', "["):
            self.whole = False  # what it does with a value is a language of its own
            self.at += 1
            parts.append("$")
            return True
        parts.append("$")
        self.at += 1
        return False

    def _inner(self) -> Script:
        """Return the commands up to the parenthesis that closes where we stand behind its opening."""
        depth, start = 1, self.at
        reader = _Reader(self.line[start:], self.depth + 1)
        while reader.at < len(reader.line) and depth:
            letter = reader.line[reader.at]
            if letter == "(":
                depth += 1
                reader.at += 1
            elif letter == ")":
                depth -= 1
                reader.at += 1
            elif letter in _ENDS:
                reader.at += 1
            elif self.depth < MAX_SUBSTITUTION_DEPTH:
                reader._word()
            else:
                break
        if depth:
            self.whole = False
        self.at = start + reader.at
        return read(self.line[start : self.at - (0 if depth else 1)], self.depth + 1)
