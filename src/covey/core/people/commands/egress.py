"""Ways by which a command leaves the machine: pushes that no hook of git sees, and programs that publish or send.

Looked for in what there is to read of a command line; a script that a command runs is not read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from enum import StrEnum

from covey.core.people.commands import shell
from covey.core.people.commands.shell import Command, Script, Word
from covey.values import dataclass

MAX_SHOWN_CHARS = 200
"""Characters of a command that are shown."""


class EgressKind(StrEnum):
    """What leads out."""

    PUSH = "push"
    """A push that passes by the hook in which covey is asked; every other push is asked about there."""
    SENDS = "sends"
    """A program that publishes, sends, or changes something on another machine."""


@dataclass(frozen=True)
class WayOut:
    """One command that leads out, and why it is one."""

    kind: EgressKind
    command: str
    why: str


_PUBLISHING: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(("pnpm", "bun", "uv", "poetry", "flit", "hatch", "pdm"), (("publish",),)),
    "npm": (("publish",), ("unpublish",), ("deprecate",), ("dist-tag",), ("access",), ("owner",)),
    "yarn": (("publish",), ("npm", "publish")),
    "twine": (("upload",), ("register",)),
    "cargo": (("publish",), ("yank",), ("owner",)),
    "gem": (("push",), ("yank",), ("owner",)),
    **dict.fromkeys(("docker", "podman"), (("push",), ("image", "push"), ("manifest", "push"))),
    "mvn": (("deploy",), ("release:perform",)),
    "dotnet": (("nuget", "push"),),
    "svn": (("commit",), ("ci",), ("import",)),
    **dict.fromkeys(("helm", "hg", "bzr"), (("push",),)),
    "jj": (("git", "push"),),
    "terraform": (("apply",), ("destroy",), ("push",)),
    "wrangler": (("deploy",), ("publish",)),
    "firebase": (("deploy",),),
    **dict.fromkeys(("gcloud", "aws", "az", "kubectl", "vercel", "netlify", "fly", "flyctl", "heroku"), ((),)),
    **dict.fromkeys(("ssh", "sftp", "ftp", "lftp", "telnet", "nc", "ncat", "socat", "mail", "sendmail"), ((),)),
}
"""Programs that send, by the words with which they do; no words: whatever they are told."""
_LOOKING = frozenset(("list", "view", "status", "diff", "checks", "watch", "search", "download", "clone", "browse"))
_FORGES = ("gh", "glab", "hub", "tea")
_COPIERS = ("scp", "rsync")
_SENDING_OPTIONS = re.compile(
    r"-[a-zA-Z]*[dFT].*|--(data.*|form.*|upload-file.*|json.*|post-(data|file).*|body-(data|file).*|method.*)"
)
_METHODS = re.compile(r"(?i)(post|put|patch|delete)")
_WRAPPERS = frozenset((
    "command", "exec", "nohup", "setsid", "sudo", "doas", "time", "builtin", "xargs", "parallel", "stdbuf", "nice",
    "ionice", "timeout", "env", "watch", "chronic", "unbuffer", "strace", "caffeinate",
))  # fmt: skip
_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish", "ash"))
_GIT_WITH_VALUE = (
    "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix",
)  # fmt: skip
_HARMLESS = ("user.", "color.", "advice.", "push.default", "core.pager", "http.", "credential.")
_UNASKED = ("send-pack", "http-push", "send-email", "imap-send", "cvsexportcommit")
_UNASKED_PAIRS = (("svn", "dcommit"), ("p4", "submit"), ("lfs", "push"))
_EMPTYING = ("-i", "-", "--ignore-environment", "-u", "--unset")
_OTHER_SETTINGS = re.compile(r"GIT_(CONFIG|DIR|COMMON_DIR|WORK_TREE|EXEC_PATH)")


def found(command: str, worktree: str = "") -> tuple[WayOut, ...]:
    """Return the ways out that a command line takes when it is begun in a worktree, in order and each once."""
    return tuple(dict.fromkeys(_of_script(shell.read(command), _Place(worktree))))


@dataclass(frozen=True)
class _Place:
    """What came before a command and changes what git is asked in."""

    worktree: str
    moved: bool = False
    """It may stand in another folder than the worktree."""
    unset: bool = False
    """The settings by which git asks covey may be gone."""

    def into(self, folder: str, *, plain: bool = True) -> _Place:
        """Return it after a move into a folder."""
        there = posixpath.normpath(folder)
        if plain and self.worktree and f"{there}/".startswith(f"{self.worktree}/"):
            return _Place(self.worktree, moved=False, unset=self.unset)
        leaves = not plain or there.startswith(("/", "..", "~", "-", "$"))
        return _Place(self.worktree, self.moved or leaves, self.unset)

    def without_settings(self) -> _Place:
        """Return it where git may not find the settings of the session."""
        return _Place(self.worktree, self.moved, unset=True)


def _of_script(script: Script, place: _Place) -> Iterator[WayOut]:
    for command in script.commands:
        for word in (*command.words, *command.assignments, *(each.target for each in command.redirections)):
            for inner in word.inner:
                yield from _of_script(inner, place)
        here = place.without_settings() if _changes_git(word.text for word in command.assignments) else place
        yield from _of_words(command.words, here, 0)
        place = _after(command, place)


def _after(command: Command, place: _Place) -> _Place:
    texts = command.texts
    if texts[:1] in (("cd",), ("pushd",)):
        target = next((text for text in texts[1:] if not text.startswith("-")), "~")
        return place.into(target, plain=command.is_plain)
    if not texts and _changes_git(word.text for word in command.assignments):
        return place.without_settings()
    is_setting = texts[:1] in (("unset",), ("export",), ("declare",))
    return place.without_settings() if is_setting and _changes_git(texts) else place


def _changes_git(texts: Iterable[str]) -> bool:
    return any(_OTHER_SETTINGS.match(text) for text in texts)


def _of_words(words: tuple[Word, ...], place: _Place, depth: int) -> Iterator[WayOut]:
    if not words or depth > shell.MAX_SUBSTITUTION_DEPTH:
        return
    name, rest = posixpath.basename(words[0].text), words[1:]
    texts = tuple(word.text for word in rest)
    if name in _SHELLS or name == "eval":
        yield from _of_text(name, texts, place, depth)
    elif name in _WRAPPERS:
        yield from _of_wrapped(name, rest, place, depth)
    elif name == "find":
        for number, text in enumerate(texts):
            if text in ("-exec", "-execdir", "-ok", "-okdir"):
                yield from _of_words(rest[number + 1 :], place, depth + 1)
    elif name == "git":
        yield from _of_git(texts, place, depth)
    else:
        why = _sends(name, texts)
        if why:
            yield WayOut(EgressKind.SENDS, _shown((name, *texts)), why)


def _of_wrapped(name: str, rest: tuple[Word, ...], place: _Place, depth: int) -> Iterator[WayOut]:
    """Yield the ways out of the program that another, like env or sudo, runs."""
    texts = tuple(word.text for word in rest)
    emptied = name == "env" and any(each in _EMPTYING for each in texts)
    inside = place.without_settings() if emptied or _changes_git(texts) else place
    for number in _programs(texts):
        yield from _of_words(rest[number:], inside, depth + 1)


def _programs(texts: tuple[str, ...]) -> Iterator[int]:
    """Yield where the program may stand that another runs: only that one knows which words are its own options."""
    for number, text in enumerate(texts):
        yield number
        is_option = text.startswith("-") or "=" in text or text[:1].isdigit()
        if not is_option and not (number and texts[number - 1].startswith("-")):
            return


def _of_text(name: str, texts: tuple[str, ...], place: _Place, depth: int) -> Iterator[WayOut]:
    """Yield the ways out of a text that a shell is given as a word."""
    if name == "eval":
        yield from _of_script(shell.read(" ".join(texts), depth + 1), place)
        return
    for number, text in enumerate(texts):
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", text) and number + 1 < len(texts):
            yield from _of_script(shell.read(texts[number + 1], depth + 1), place)
            return


@dataclass
class _Git:
    """What stands before the verb of a git command."""

    place: _Place
    aliases: dict[str, str] = field(default_factory=dict)
    why: str = ""
    """Why a push of it may pass by the hook."""

    def take(self, option: str, value: str) -> None:
        """Take one option in."""
        key, _, setting = value.partition("=")
        if option == "-C":
            self.place = self.place.into(value)
        elif option in ("--git-dir", "--exec-path", "--work-tree"):
            self.why = f"it has {option}"
        elif option in ("-c", "--config-env") and key.lower().startswith("alias."):
            self.aliases[key[len("alias.") :]] = setting
        elif option in ("-c", "--config-env") and not key.lower().startswith(_HARMLESS):
            self.why = f"it is given the setting {key}"


def _of_git(texts: tuple[str, ...], place: _Place, depth: int) -> Iterator[WayOut]:
    shown, git = _shown(("git", *texts)), _Git(place)
    while texts and texts[0].startswith("-"):
        option, _, value = texts[0].partition("=")
        texts = texts[1:]
        if option in _GIT_WITH_VALUE and not value and texts:
            value, texts = texts[0], texts[1:]
        git.take(option, value)
    verb, rest = (texts[0], texts[1:]) if texts else ("", ())
    alias = git.aliases.get(verb, "")
    if alias.startswith("!"):
        yield from _of_script(shell.read(alias[1:], depth + 1), git.place)
    elif alias and depth < shell.MAX_SUBSTITUTION_DEPTH:
        inner = shell.read(alias, depth + 1).commands
        yield from _of_git((*(inner[0].texts if inner else ()), *rest), git.place, depth + 1)
    elif verb in _UNASKED or (verb, *rest[:1]) in _UNASKED_PAIRS:
        yield WayOut(EgressKind.PUSH, shown, f"git {verb} asks no hook")
    elif verb == "push":
        why = _unseen(rest, git)
        if why:
            yield WayOut(EgressKind.PUSH, shown, why)


def _unseen(rest: tuple[str, ...], git: _Git) -> str:
    """Return why a push may pass by the hook in which covey is asked, "" if it does not."""
    if any(len(each) > len("--no-ver") and "--no-verify".startswith(each) for each in rest):
        return "--no-verify passes by the hook"
    if git.place.unset:
        return "its environment is another than the session's"
    return git.why or ("it may be in another repository" if git.place.moved else "")


def _sends(name: str, texts: tuple[str, ...]) -> str:
    """Return why a program sends something, "" if it does not as far as its words tell."""
    plain = tuple(text for text in texts if not text.startswith("-"))
    if any(text in ("--help", "-h", "--version", "--dry-run") for text in texts):
        return ""
    if name in _FORGES:
        return _forge(name, texts, plain)
    if name in _COPIERS:
        far = any(re.match(r"[^/\s]+:|rsync://", text) for text in plain)
        return f"{name} copies to or from another machine" if far else ""
    if name in ("curl", "wget", "http", "https", "xh"):
        return f"{name} sends data" if _posts(name, texts) and not any(map(_is_near, plain)) else ""
    if re.fullmatch(r"python[0-9.]*|pipx|uvx|npx", name):
        inner = _run_by(name, texts)
        return _sends(inner[0], inner[1:]) if inner else ""
    ways = _PUBLISHING.get(name, ())
    way = next((way for way in ways if plain[: len(way)] == way), None)
    return "" if way is None else f"{' '.join((name, *way))} reaches another machine"


def _posts(name: str, texts: tuple[str, ...]) -> bool:
    """Say whether an HTTP client is told a method that changes something, or is given data to send."""
    if any(_METHODS.fullmatch(text.removeprefix("-X").lstrip("=")) for text in texts):
        return True
    return name in ("curl", "wget") and any(_SENDING_OPTIONS.fullmatch(text) for text in texts)


def _is_near(address: str) -> bool:
    return re.search(r"//(localhost|127\.|\[::1\])|^(localhost|127\.)", address) is not None


def _run_by(name: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program, and its words, that another one runs: a module of Python, or a package that is fetched."""
    if texts[:1] == ("-m",):
        inner = texts[1:]
    else:
        inner = texts if name in ("pipx", "uvx", "npx") else ()
    return inner[1:] if inner[:1] == ("run",) else inner


def _forge(name: str, texts: tuple[str, ...], plain: tuple[str, ...]) -> str:
    if plain[:1] == ("api",):
        method = any(_METHODS.search(text) for text in texts) or any(
            re.match(r"-[fF]|--(raw-)?field|--input", text) for text in texts
        )
        return f"{name} api changes something" if method else ""
    if not plain or plain[0] in ("auth", "config", "alias", "completion", "help", "version", *_LOOKING):
        return ""
    return "" if len(plain) > 1 and plain[1] in _LOOKING else f"{' '.join((name, *plain[:2]))} changes something"


def _shown(texts: tuple[str, ...]) -> str:
    return " ".join(texts)[:MAX_SHOWN_CHARS]
