"""Which command lines an agent may run without a question: what only reads in its worktree, and what its level allows.

A line is read as a shell reads it (`shell`), and allowed only if all of it is understood: every command in it is
known to only read (`read_only_commands`), or is one that the level allows by itself (local verbs of git, covey, the
gate, what a person allowed). Names of files are compared as they stand; the caller checks that no link leads out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum

from covey.core.people.commands import egress, shell
from covey.core.people.commands.read_only_commands import GIT_DANGEROUS, Seen, git_words, has, name_all, reads, within
from covey.core.people.commands.shell import Command, Redirection, Word
from covey.values import dataclass

MAX_PATHS = 200
"""Names of files that one line may have."""


class CommandVerdict(IntEnum):
    """What a line comes to; of several commands the highest counts."""

    READS = 0
    """It reads inside of the worktree, and does nothing else."""
    LEVEL = 1
    """It does what the level `edits` allows: it runs the gate, or works on the session's own branch."""
    ASKS = 2
    """It does more, or cannot be understood."""


@dataclass(frozen=True)
class Judged:
    """What a line comes to, and the files and folders that it may look at, if links are to be followed."""

    verdict: CommandVerdict
    paths: tuple[str, ...] = ()
    asked_git: tuple[str, ...] = ()
    """Folders in which git looks for its repository, and so for programs to run, other than the worktree itself."""


NO = Judged(CommandVerdict.ASKS)


@dataclass(frozen=True)
class Ground:
    """Where a line is run, and what is allowed there besides reading."""

    worktree: str
    cwd: str = ""
    gate: tuple[str, ...] = ()
    """The commands that the gate runs."""
    allowed: tuple[str, ...] = ()
    """The first words of commands that a person allowed."""


def judge(line: str, ground: Ground) -> Judged:
    """Say what a line comes to."""
    script = shell.read(line)
    worktree = posixpath.normpath(ground.worktree)
    cwd = posixpath.normpath(ground.cwd or worktree)
    if not script.whole or not script.commands or not worktree.startswith("/") or not within(worktree, cwd):
        return NO
    if egress.found(line, worktree):
        return NO
    folders, verdict = _Folders(cwd), CommandVerdict.READS
    found: dict[str, None] = {}
    asked_git: dict[str, None] = {}
    for command in script.commands:
        seen = Seen(worktree, folders.at(command), frozenset(word.text for word in command.words if word.globs))
        said = _of(command, seen, ground)
        if said is CommandVerdict.ASKS or seen.left or len(found) > MAX_PATHS:
            return NO
        verdict = max(verdict, said)
        found.update(dict.fromkeys(seen.paths))
        asked_git.update(dict.fromkeys(seen.asked_git))
        folders.after(command, seen.entered)
    return Judged(verdict, tuple(found), tuple(asked_git))


class _Folders:
    """The folders in which a command may run: a `cd` may fail, and only what follows it by `&&` is then not run."""

    def __init__(self, cwd: str) -> None:
        self._all = [cwd]
        self._sure: list[str] | None = None

    def at(self, command: Command) -> tuple[str, ...]:
        """Return where a command may run."""
        if command.join != "&&":
            self._sure = None
        return tuple(self._all if self._sure is None else self._sure)

    def after(self, command: Command, entered: list[str]) -> None:
        """Take in where a command has gone; in a pipe it has gone nowhere."""
        if entered:
            self._sure = None if command.join in ("|", "|&") else entered
            self._all += [each for each in entered if each not in self._all]


_HARMLESS_VARIABLES = re.compile(
    r"(?:LC_[A-Z]+|LANG|LANGUAGE|NO_COLOR|FORCE_COLOR|COLUMNS|LINES|CI|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED)=[^/]*"
    r"|TZ=(?!:?/|.*\.\.)[^\n]*"
)
"""Settings that change how something looks; with a slash, a language is a folder of texts that are formats."""


def _of(command: Command, seen: Seen, ground: Ground) -> CommandVerdict:
    if not all(_is_harmless(each, seen) for each in command.redirections):
        return CommandVerdict.ASKS
    if not all(word.plain and _HARMLESS_VARIABLES.fullmatch(word.text) for word in command.assignments):
        return CommandVerdict.ASKS
    if not command.words or not command.words[0].plain or not all(map(_is_known, command.words)):
        return CommandVerdict.ASKS
    name, words = command.words[0].text, command.texts[1:]
    for pattern in seen.patterns:  # the shell makes names of files of it, whatever the program takes them for
        seen.name(pattern)
    if reads(name, words, seen):
        return CommandVerdict.READS
    is_level = _local_git(name, words, seen) or _as_allowed(command, ground) or _as_gate(command, ground, seen)
    return CommandVerdict.LEVEL if is_level else CommandVerdict.ASKS


def _is_known(word: Word) -> bool:
    """Say whether it is known what becomes of a word when the shell runs it: nothing, or names that match a pattern."""
    if word.globs:
        return (word.plain or not word.inner) and _is_safe_pattern(word)
    return word.plain


def _is_harmless(redirection: Redirection, seen: Seen) -> bool:
    """Say whether a redirection writes nothing; what is read by one is named."""
    if redirection.operator == "<" and redirection.target.plain:
        seen.name(redirection.target.text)
        return True
    if redirection.operator in ("<<", "<<-", "<<<"):
        return redirection.target.plain
    nowhere = redirection.target.plain and redirection.target.text == "/dev/null"
    return nowhere or (redirection.operator == ">&" and not redirection.writes)


def _is_safe_pattern(word: Word) -> bool:
    """Say whether a pattern of names can only become names below where it stands, and never an option."""
    first = word.text[:1]
    hidden = any(part.startswith(".") and re.search(r"[*?\[]", part) for part in word.text.split("/"))
    return first not in ("*", "?", "[", "-") and not hidden


# What the level allows


_GIT_LOCAL = frozenset((
    "add", "commit", "checkout", "switch", "restore", "reset", "rm", "mv", "merge", "rebase", "cherry-pick", "revert",
    "branch",
))  # fmt: skip


def _local_git(name: str, words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether a command works on the session's own branch, as the level lets it by itself."""
    rest = git_words(words, seen) if name == "git" else ()
    if not rest or rest[0] not in _GIT_LOCAL or has(rest[1:], "", GIT_DANGEROUS):
        return False
    match rest[0]:
        case "commit" | "merge":
            return not has(rest[1:], "Ft")  # what a message is read from
        case "rebase":
            return not has(rest[1:], "x")
        case "add" | "rm" | "mv" | "checkout" | "restore" | "reset" | "switch":
            name_all(rest[1:], seen)
    return True


def _as_allowed(command: Command, ground: Ground) -> bool:
    """Say whether a command begins with the words of one that a person allowed."""
    if not command.is_plain or command.assignments:
        return False
    for rule in (*ground.allowed, "covey"):
        words = shell.read(rule)
        first = words.commands[0].texts if words.whole and len(words.commands) == 1 else ()
        if first and not words.commands[0].assignments and command.texts[: len(first)] == first:
            return True
    return False


def _as_gate(command: Command, ground: Ground, seen: Seen) -> bool:
    """Say whether a command is one of the gate's, maybe for other files or with a filter: it runs what that runs."""
    wanted = _same(command.texts)
    for kind, more in (kind for each in _commands_of(ground.gate) for kind in _kinds(_same(each.texts))):
        rest = wanted[len(kind) :]
        if wanted[: len(kind)] == kind and all(map(more, rest)) and not has(rest, "", _SENDING):
            name_all((word.partition("::")[0] for word in rest), seen)
            return True
    return False


def _commands_of(gate: Iterable[str]) -> Iterator[Command]:
    """Yield the commands of a gate whose words are all known."""
    for text in gate:
        yield from (each for each in shell.read(text).commands if each.is_plain and each.words)


_SENDING = ("--pastebin", "--publish", "--registry", "--server", "--remote", "--upload")
"""Options of programs that test by which they send what came of it."""


def _alike(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command as others are compared with it: two names of one program are not told apart."""
    if words and re.fullmatch(r"python3?", words[0]):
        return ("python", *words[1:])
    if words[:1] == ("make",) and len(words) > 1 and words[1] in ("-n", "--dry-run", "--just-print", "--recon"):
        return ("make", "-n", *words[2:])
    return ("pytest", *words[1:]) if words[:1] == ("py.test",) else words


def _same(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command as `_alike` does, and pytest as what python runs by that name: either runs all that it finds."""
    alike = _alike(words)
    return ("python", "-m", *alike) if alike[:1] == ("pytest",) else alike


_RUNNERS: tuple[tuple[str, ...], ...] = (
    ("python", "-m", "pytest"), ("python", "-m", "unittest"), ("python", "-m", "mypy"), ("python", "-m", "ruff"),
    ("python", "-m", "doctest"), ("python", "-m", "compileall"), ("python", "-m", "flake8"), ("python", "-m", "pylint"),
    ("pytest",), ("ruff", "check"), ("ruff", "format"), ("mypy",), ("flake8",), ("pylint",), ("pyright",), ("black",),
    ("uv", "run", "pytest"), ("poetry", "run", "pytest"), ("hatch", "test"),
    ("npm", "test"), ("npm", "run", "test"), ("npm", "run", "lint"), ("yarn", "test"), ("pnpm", "test"), ("jest",),
    ("vitest",), ("mocha",), ("npx", "jest"), ("npx", "vitest"), ("npx", "tsc"), ("npx", "eslint"), ("tsc",),
    ("eslint",), ("node", "--test"), ("deno", "test"), ("bun", "test"), ("cargo", "test"), ("cargo", "check"),
    ("cargo", "clippy"), ("cargo", "build"), ("cargo", "fmt"), ("go", "test"), ("go", "vet"), ("go", "build"),
    ("rspec",), ("bundle", "exec", "rspec"), ("phpunit",), ("ctest",), ("dotnet", "test"), ("swift", "test"),
    ("mix", "test"), ("shellcheck",), ("sh", "-n"), ("bash", "-n"),
)  # fmt: skip
"""Programs that test or check, whatever files and filters they are given: by their first words."""


More = Callable[[str], bool]
"""Says whether a word may follow."""


def _kinds(tested: tuple[str, ...]) -> list[tuple[tuple[str, ...], More]]:
    """Return the first words by which a command is like one of the gate's, and which words may follow each."""
    if tested[0] in ("cd", "test", "[", "true", "export", "set", "echo", "git", "rm", "cp", "mv", "mkdir"):
        return []
    if runner := _runner(tested):
        return [(runner, _is_name if runner[-1] == "-n" else lambda word: True)]
    if tested[0] == "make":  # another target may do anything, but -n only shows it
        return [(tested, lambda word: bool(re.fullmatch(r"-j\d*|-s|-k", word))), (("make", "-n"), _is_target)]
    return [(tested, lambda word: bool(re.fullmatch(r"[\w./-]*[./][\w./:-]*", word)) and not word.startswith("-"))]


def runner_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first words of a command that tests or checks, as they were typed; () if it is another."""
    return words[: len(_runner(_alike(words)))]


def beginnings(gate: Iterable[str]) -> tuple[str, ...]:
    """Return the first words of what is like a gate's own commands, for programs that only compare words."""
    found = (runner_of(each.texts) for each in _commands_of(gate))
    return tuple(dict.fromkeys(" ".join(words) for words in found if words))


def _runner(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first words of a command that tests or checks, () if it is another."""
    return next((runner for runner in _RUNNERS if texts[: len(runner)] == runner), ())


def _is_name(word: str) -> bool:
    """Say whether a word is no option: `+n` takes the `-n` of a shell back, and it runs what it reads."""
    return not word.startswith(("-", "+"))


def _is_target(word: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_][\w.-]*", word) is not None
