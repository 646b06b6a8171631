"""What decides whether work is good: the files that a check names, which no work may change unless a person lets it.

Only the words of the command are looked at, never what a file says: what a script calls is named in `protected`.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import pairwise

from covey.core.merging.checks import Settings
from covey.values import dataclass

_NODE = ("package.json", ".npmrc")
RECIPES = {
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    "just": ("justfile", "Justfile", ".justfile"),
    **dict.fromkeys(("npm", "npx", "pnpm"), _NODE),
    "yarn": (*_NODE, ".yarnrc", ".yarnrc.yml"),
    "bun": (*_NODE, "bunfig.toml"),
    "cargo": (".cargo/config.toml", ".cargo/config"),
    "pre-commit": (".pre-commit-config.yaml",),
    "tox": ("tox.ini", "tox.toml"),
    "nox": ("noxfile.py",),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb"),
    "task": ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"),
    **dict.fromkeys(("inv", "invoke"), ("tasks.py",)),
    "composer": ("composer.json",),
    "mage": ("magefile.go",),
}
"""Programs that read what to do, or how, from a file that their command does not name, and the names it may have."""
_MAKES = ("make", "gmake")
READERS = (
    "test", "[", "[[", "grep", "egrep", "fgrep", "rg", "cat", "head", "tail", "wc", "ls", "echo", "printf", "find",
    "diff", "cmp", "sort", "uniq", "cp", "mv", "rm", "mkdir", "rmdir", "touch", "ln", "chmod", "stat", "sleep",
    "export", "for", "case", "git",
)  # fmt: skip
"""Programs that do not do what their files say: what they are given is what is tested, and not the test."""
_LEADING = (
    "!", "{", "}", "if", "then", "elif", "else", "do", "while", "until", "time", "exec", "env", "nice", "command",
)  # fmt: skip
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
_HERE = re.compile(r"^(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)(?=/|$)")
_BETWEEN = re.compile(r"^[();<>|&\n]+$")
_FOLDER_OPTIONS = ("-C", "--directory", "--prefix", "--cwd", "--dir", "-d", "--working-directory")
_DEEPEST = 3
"""How deep commands within words are looked at: sh -c "sh -c '...'"."""


@dataclass(frozen=True)
class Named:
    """What the checks name: files, and the targets of make, which a new folder of that name would satisfy too."""

    files: frozenset[str]
    targets: frozenset[str] = frozenset()


@lru_cache(maxsize=8)
def named(commands: tuple[str, ...]) -> Named:
    """Return the paths in a tree that commands name, whether there is something or not."""
    files: set[str] = set()
    targets: set[str] = set()
    for command in commands:
        for path, is_target in _paths(command, ".", 0):
            if path is not None and path not in (".", ""):
                (targets if is_target else files).add(path)
    return Named(frozenset(files), frozenset(targets))


def commands_of(settings: Settings) -> tuple[str, ...]:
    """Return every command that the settings let a gate run."""
    return tuple(each for each in (settings.quick, settings.check, *(part.run for part in settings.checks)) if each)


def touched(changed: Collection[str], found: Named, is_folder: Collection[str] = ()) -> tuple[str, ...]:
    """Return which changed paths are named; `is_folder` says which targets are folders before the change."""
    new = tuple(f"{each}/" for each in found.targets if each not in is_folder)
    names = found.files | found.targets
    return tuple(path for path in changed if path in names or path.startswith(new))


def _paths(command: str, folder: str, depth: int) -> Iterator[tuple[str | None, bool]]:
    """Yield the paths that a command names as seen from a folder, and whether each is a target of make."""
    for words in _commands(command):
        while words and (words[0] in _LEADING or re.match(r"[A-Za-z_][A-Za-z0-9_]*=", words[0])):
            yield _inside(folder, words[0].partition("=")[2]), False  # what a variable names may be run later
            words = words[1:]
        if words and words[0] in READERS:
            continue
        if words[:1] in (["cd"], ["pushd"]) and len(words) > 1:
            folder = posixpath.join(folder, _HERE.sub(".", words[1]))
            continue
        yield from _of_words(words, folder, depth)


def _of_words(words: list[str], folder: str, depth: int) -> Iterator[tuple[str | None, bool]]:
    at = _folder(words, folder)
    programs = [posixpath.basename(word) for word in words]
    for name in programs:
        yield from ((_inside(at, each), False) for each in RECIPES.get(name, ()))
    makes = any(name in _MAKES for name in programs)
    for word in words:
        if " " in word and depth < _DEEPEST:
            yield from _paths(word, folder, depth + 1)
        for part in {word, word.partition("=")[2]} if "=" in word else {word}:
            yield from ((_inside(each, part), makes and "/" not in part) for each in {folder, at})
    for name, option, module in zip(programs, words[1:], words[2:], strict=False):
        if _PYTHON.fullmatch(name) and option == "-m":
            path = module.replace(".", "/")
            yield from ((_inside(folder, path + end), False) for end in (".py", "/__main__.py", "/__init__.py"))


def _folder(words: list[str], folder: str) -> str:
    """Return the folder in which a program works by its options."""
    for option, value in pairwise(words):
        if option in _FOLDER_OPTIONS:
            return posixpath.join(folder, value)
    joined = next((word.partition("=")[2] for word in words if word.partition("=")[0] in _FOLDER_OPTIONS), "")
    return posixpath.join(folder, joined) if joined else folder


def _inside(folder: str, word: str) -> str | None:
    """Return the path in the tree that a word names, None if it leads out of the tree or is not a path."""
    word = _HERE.sub(".", word)
    if not word or word.startswith(("-", "/", "~", "$")) or any(letter in word for letter in "*?[\0\n"):
        return None
    path = posixpath.normpath(posixpath.join(folder, word))
    return None if path == ".." or path.startswith(("../", "/")) else path


def _commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command in a line of the shell."""
    lexer = shlex.shlex(line.replace("\\\n", " ").replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            if _BETWEEN.match(word):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # An open quote: what was read so far counts, and the rest as plain words.
        words += line.split()
    yield words
