"""Programs that only read: which words each may have to do nothing else, and which of these name files.

The rules forbid what is known to write, to run another program or to follow links. A program that is not in the table
does not only read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence


class Seen:
    """What one command names, seen from every folder in which it may run."""

    def __init__(self, worktree: str, folders: tuple[str, ...], patterns: frozenset[str] = frozenset()) -> None:
        self.worktree = worktree
        self.folders = folders
        self.patterns = patterns
        """Words for which the shell puts any number of names, which whoever makes files chooses."""
        self.paths: list[str] = []
        """Names as they stand: behind a link, `..` is not where it seems."""
        self.entered: list[str] = []
        self.asked_git: list[str] = []
        """Folders other than the worktree itself in which git looks for its repository."""
        self.left = False
        """Something that it names lies outside of the worktree."""

    def name(self, text: str) -> None:
        """Take a word for the name of a file, whatever it is."""
        if text == "/dev/null":
            return
        self.left = self.left or text.startswith("~")
        for folder in self.folders:
            path = posixpath.join(folder, text)
            self.left = self.left or not within(self.worktree, posixpath.normpath(path))
            self.paths.append(path)

    def enter(self, text: str) -> None:
        """Take a word for the folder that is gone to."""
        self.name(text)
        self.entered = [posixpath.normpath(posixpath.join(folder, text)) for folder in self.folders]
        self.paths += self.entered  # a shell takes `..` for what stands before it, as programs do not


def within(worktree: str, path: str) -> bool:
    return path == worktree or path.startswith(f"{worktree}/")


def reads(name: str, words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether a program only reads, given these words."""
    if (words in (("--version",), ("--help",)) and name in _TOOLS) or (name, *words) in _VERSIONS:
        return True
    if name == "cd":
        return not seen.patterns and _goes(words, seen)
    rule = _READERS.get(name)
    if rule is None or (seen.patterns and name not in _OF_MANY):
        return False
    return rule(words, seen)


def is_reader(name: str) -> bool:
    """Say whether a program is one that may only read, or that every level has."""
    return name in _READERS or name in ("cd", "covey")


def _goes(words: tuple[str, ...], seen: Seen) -> bool:
    if len(words) != 1 or words[0].startswith("-"):
        return False
    seen.enter(words[0])
    return True


def has(words: Iterable[str], short: str, long: Sequence[str] = ()) -> bool:
    """Say whether some word is, or may stand for, one of some options."""
    for word in words:
        if word.startswith("--"):
            option = word.partition("=")[0]
            if len(option) > 2 and any(each.startswith(option) for each in long):
                return True
        elif word.startswith("-") and set(word[1:]) & set(short):
            return True
    return False


def name_all(words: Iterable[str], seen: Seen) -> None:
    """Take every word, and what stands behind an option, for the name of a file."""
    for word in words:
        if not word.startswith("-"):
            seen.name(word)
        elif "=" in word:
            seen.name(word.partition("=")[2])
        elif "/" in word:
            seen.name(word[word.index("/") :])  # -f/etc/passwd


Rule = Callable[[tuple[str, ...], Seen], bool]


def _plain(short: str = "", long: Sequence[str] = ()) -> Rule:
    """Return the rule of a program that only reads the files that it names, but for some options."""

    def rule(words: tuple[str, ...], seen: Seen) -> bool:
        name_all(words, seen)
        return not has(words, short, long)

    return rule


def _says(words: tuple[str, ...], seen: Seen) -> bool:
    """Let a program have any words: they are not files."""
    return True


def _searches(short: str, long: Sequence[str]) -> Rule:
    """Return the rule of a program whose first word that is not an option is a pattern, unless an option gives one."""

    def rule(words: tuple[str, ...], seen: Seen) -> bool:
        given = not _NO_PATTERN.isdisjoint(words) or has(words, "ef", ("--regexp", "--file"))
        first = next((number for number, word in enumerate(words) if not word.startswith("-")), None)
        before = words[first - 1] if first else ""
        if given or first is None or before in _WITH_VALUE or (before.startswith("--") and "=" not in before):
            name_all(words, seen)
        else:
            name_all((*words[:first], *words[first + 1 :]), seen)
        return not has(words, short, long)

    return rule


def _filters(words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether jq is given a known filter that fetches nothing: `import` reads any file that ends in .json."""
    first = next((word for word in words if not word.startswith("-")), "")
    if first in seen.patterns or any(map(_FETCHES.match, words)):
        return False
    return _searches("fL", ("--from-file", "--library-path"))(words, seen)


_FETCHES = re.compile(r"\s*(?:#|(?:module|import|include)\b)")
_NO_PATTERN = frozenset(("--", "--files", "--type-list"))
_WITH_VALUE = ("-A", "-B", "-C", "-m", "-g", "-t", "-T", "-d", "-j", "-M")


def _finds(words: tuple[str, ...], seen: Seen) -> bool:
    forbidden = ("-exec", "-ok", "-delete", "-fprint", "-fls", "-files0", "-follow", "-L", "-H")
    for word in words:
        if not word.startswith("-"):
            seen.name(word)
    return not any(word.startswith(forbidden) for word in words)


def _edits_a_stream(words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether sed only prints: some lines, or what it replaced."""
    options = [word for word in words if word.startswith("-")]
    rest = [word for word in words if not word.startswith("-")]
    for name in rest[1:]:
        seen.name(name)
    return (
        all(re.fullmatch(r"-[nErs]+", option) for option in options)
        and bool(rest)
        and rest[0] not in seen.patterns
        and bool(re.fullmatch(_SED, rest[0]))
    )


_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\[^\n])*/)"
_SED = (
    rf"\s*(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|\+\d+))?\s*)?"
    r"(?:[pdq=]|s/(?:[^/\\\n]|\\[^\n])*/(?:[^/\\\n]|\\[^\n])*/[gpiI0-9]*)\s*"
)


def _prints_fields(words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether awk only prints fields of some lines."""
    rest = list(words)
    while rest and rest[0].startswith("-F"):
        rest = rest[2:] if rest[0] == "-F" else rest[1:]
    before = words[: len(words) - len(rest) + 1]
    if not rest or not re.fullmatch(_AWK, rest[0]) or not seen.patterns.isdisjoint(before):
        return False
    name_all(rest[1:], seen)
    return not any(word.startswith("-") or "=" in word for word in rest[1:])


_TERM = r"(?:\$?(?:NF|NR|FNR|\d+)|\$\(NF-\d+\)|\"[^\"\\\n]*\")"
_TEST = rf"(?:{_TERM}\s*(?:==|!=|>=|<=|<|>)\s*{_TERM}|!?/(?:[^/\\\n]|\\[^\n])*/)"
_AWK = (
    rf"\s*(?:{_TEST}(?:\s*(?:&&|\|\|)\s*{_TEST})*)?\s*(?:\{{\s*print(?:\s+{_TERM}(?:\s*,?\s*{_TERM})*)?\s*;?\s*\}})?\s*"
)


def _tests(words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether `test` looks at files and texts; -v would run what stands in an index."""
    name_all((word for word in words if word not in ("]", "!")), seen)
    return not any(word == "-v" or "[" in word or "$" in word or "`" in word for word in words)


def _one_file(words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether uniq is given no second file, which it would write; `-` is a first one."""
    name_all(words, seen)
    return sum(word == "-" or not word.startswith("-") for word in words) <= 1


def _compares(words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether diff reads only files that are named, or that are in folders that are."""
    name_all(words, seen)
    if has(words, "l", ("--paginate",)):
        return False
    if has(words, "", ("--no-dereference",)):
        return True
    for word in words:  # it follows the links in a folder, and in those below it
        name = word.partition("=")[2] if word.startswith("-") else word
        if name not in ("", "/dev/null"):
            seen.name(f"{name}/*")
    return not has(words, "r", ("--recursive",))


def _names_files(words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether strings is given names of files: what stands behind an @ is a file with more words for it."""
    name_all(words, seen)
    return not any(word.startswith("@") for word in words)


def _formats(words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether printf only prints: with -v and %n it sets a variable, and zsh works out what should be a number."""
    text, *values = (words[1:] if words[:1] == ("--",) else words) or ("-",)
    if text.startswith("-") or text in seen.patterns:
        return False
    is_numbers = all(re.fullmatch(r"[-+]?\d+(\.\d+)?", value, re.ASCII) for value in values)
    return re.fullmatch(_FORMAT.format("diouxXeEfFgGaA" if is_numbers else ""), text) is not None


_FORMAT = r"(?:[^%]|%%|%[-+ #0-9.]*[sbqc{}])*"


def _dates(words: tuple[str, ...], seen: Seen) -> bool:
    return all(word.startswith("+") or word in ("-u", "--utc", "-I", "-Is", "-R") for word in words)


def _known(words: tuple[str, ...], seen: Seen) -> bool:
    return len(words) >= 2 and words[0] in ("-v", "-V") and not any(word.startswith("-") for word in words[1:])


def _git_reads(words: tuple[str, ...], seen: Seen) -> bool:
    """Say whether git only looks at the repository that the worktree is of."""
    rest = git_words(words, seen)
    if not rest or has(rest[1:], "O", GIT_DANGEROUS) or not _looks(rest):
        return False
    name_all((re.sub(r"^-L[^/]*:", "", word) for word in rest[1:]), seen)  # -L1,10:src/a.py names that file
    return not seen.patterns or rest[0] in _GIT_LOOKS


def git_words(words: tuple[str, ...], seen: Seen) -> tuple[str, ...]:
    """Return a git command without options that change nothing, () if it has others before its verb."""
    rest, elsewhere = list(words), [folder for folder in seen.folders if folder != seen.worktree]
    while rest and rest[0].startswith("-"):
        if rest[0] in ("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"):
            rest = rest[1:]
        elif rest[0] == "-C" and len(rest) > 1:
            # Only to the worktree itself: a folder in it might have become a repository of its own.
            if posixpath.normpath(rest[1]) != seen.worktree or seen.folders[:1] == ():
                return ()
            rest, elsewhere = rest[2:], []
        else:
            return ()
    seen.asked_git += elsewhere
    return tuple(rest)


GIT_DANGEROUS = (
    "--ext-diff", "--textconv", "--output", "--open-files-in-pager", "--exec", "--upload-pack", "--no-index",
    "--git-dir", "--work-tree", "--edit", "--remote", "--receive-pack", "--template", "--separate-git-dir",
    "--filters", "--exec-path", "--show-signature", "--batch-command", "--upload-archive", "--file",
    "--pathspec-from-file",
)  # fmt: skip
_GIT_LOOKS = frozenset((
    "status", "log", "diff", "show", "blame", "annotate", "rev-parse", "rev-list", "ls-files", "ls-tree", "describe",
    "shortlog", "grep", "merge-base", "name-rev", "for-each-ref", "show-ref", "check-ignore", "check-attr", "cherry",
    "count-objects", "diff-tree", "diff-index", "diff-files", "range-diff", "show-branch", "whatchanged", "var",
    "cat-file", "version",
))  # fmt: skip


_CONFIG_LOOKS = tuple((word,) for word in ("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"))
_BRANCH_CHANGES = ("--delete", "--move", "--copy", "--set-upstream-to", "--unset-upstream", "--force", "--edit-desc")


def _looks(rest: tuple[str, ...]) -> bool:
    verb, words = rest[0], rest[1:]
    rule = _GIT_LOOKS_WITH.get(verb)
    return verb in _GIT_LOOKS if rule is None else rule(words, [word for word in words if not word.startswith("-")])


def _lists_tags(words: tuple[str, ...], plain: list[str]) -> bool:
    return not words or (words[0] in ("-l", "--list") and len(plain) <= 1)


def _lists_remotes(words: tuple[str, ...], plain: list[str]) -> bool:
    return words in ((), ("-v",), ("--verbose",)) or (words[:1] == ("get-url",) and len(words) == 2)


_GIT_LOOKS_WITH: dict[str, Callable[[tuple[str, ...], list[str]], bool]] = {
    "branch": lambda words, plain: not plain and not has(words, "dDmMcCfut", _BRANCH_CHANGES),
    "tag": _lists_tags,
    "remote": _lists_remotes,
    "stash": lambda words, plain: words in (("list",), ("list", "--porcelain")),
    "worktree": lambda words, plain: words in (("list",), ("list", "--porcelain"), ("status",)),
    "submodule": lambda words, plain: words in (("list",), ("list", "--porcelain"), ("status",)),
    "reflog": lambda words, plain: not plain or plain[0] == "show",
    "config": lambda words, plain: words[:1] in _CONFIG_LOOKS,
    "symbolic-ref": lambda words, plain: len(plain) == 1 and not has(words, "dm", ("--delete",)),
}
"""Verbs of git that look with some words and change something with others, given all words and those that are plain."""


_READERS: dict[str, Rule] = {
    **dict.fromkeys(("cat", "stat", "cmp", "comm", "cut", "nl", "tac", "rev", "fold", "od"), _plain()),
    "ls": _plain("L", ("--dereference",)),  # it shows what is in folders, and not what is behind the links in them
    "strings": _names_files,
    **dict.fromkeys(("realpath", "readlink", "basename", "dirname", "expand", "column", "df"), _plain()),
    **dict.fromkeys(("pwd", "true", "false", "echo", "tr", "seq", "whoami", "id", "uname", "nproc", "arch"), _says),
    **dict.fromkeys(("which", "type", "sleep"), _says),
    "head": _plain(),
    "tail": _plain("fF", ("--follow", "--retry", "--pid")),
    "wc": _plain(long=("--files0-from",)),
    "du": _plain("L", ("--files0-from", "--dereference")),
    "file": _plain("CmfzZ", ("--compile", "--magic-file", "--files-from", "--uncompress", "--uncompress-noreport")),
    "diff": _compares,
    "sort": _plain("oT", ("--output", "--compress-program", "--files0-from", "--temporary-directory")),
    "uniq": _one_file,
    **dict.fromkeys(("md5sum", "sha1sum", "sha256sum", "cksum", "b2sum"), _plain("c", ("--check",))),
    "tree": _plain("olR", ("--fromfile", "--fromtabfile")),
    "jq": _filters,
    **dict.fromkeys(("grep", "egrep", "fgrep"), _searches("RS", ("--dereference-recursive",))),
    "rg": _searches("zL", ("--pre", "--search-zip", "--follow", "--hostname-bin", "--ignore-file")),
    "find": _finds,
    "sed": _edits_a_stream,
    **dict.fromkeys(("awk", "gawk", "mawk"), _prints_fields),
    "test": _tests,
    "[": _tests,
    "date": _dates,
    "command": _known,
    "printf": _formats,
    "git": _git_reads,
}
"""Programs that only read, and the rule of each: which words it may have, and which of them name files."""
_OF_MANY = frozenset(_READERS) - {"uniq", "test", "[", "date", "command", "tr", "seq", "sleep"}
"""Those that do no more if there are more names than words, as there are where one word is a pattern."""
_TOOLS = frozenset((
    "python", "python3", "pip", "pip3", "uv", "node", "npm", "deno", "bun", "gcc", "g++", "cc", "clang", "clang++",
    "make", "gmake", "cmake", "ninja", "meson", "java", "javac", "ruby", "perl", "php", "bash", "git", "gh", "docker",
    "podman", "jq", "rg", "fd", "ruff", "mypy", "black", "isort", "flake8", "pyright", "sqlite3", "psql", "curl",
    "wget", "sed", "awk", "gawk", "grep", "find", "tar", "zip", "unzip", "covey", "ls", "cat", "sort", "diff",
    "shellcheck", "shfmt", "tsc", "prettier", "dotnet",
))  # fmt: skip
"""Programs that tell their version and their options, and do nothing else then.

Not among them: those that fetch the version that a file of the worktree names (go, cargo, yarn).
"""
_VERSIONS = (
    ("python", "-V"), ("python3", "-V"), ("node", "-v"), ("npm", "-v"), ("java", "-version"), ("perl", "-v"),
    ("git", "version"), ("tmux", "-V"), ("curl", "-V"), ("ruby", "-v"), ("php", "-v"),
)  # fmt: skip
