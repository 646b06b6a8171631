"""What a session may push: remotes and refs that the settings, a permit or an answer name, and nothing else.

A ref is written as in git's own refspecs: `main` is a branch, `refs/tags/v1` any other ref, `+main` one that is moved
by force, `:main` one that is deleted. A rule is a remote and patterns of refs; one that begins with `+` lets also force
and delete.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from covey.core import globs
from covey.errors import Invalid
from covey.values import dataclass

BRANCHES = "refs/heads/"
FORCED, DELETED = "+", ":"
_LOGIN = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/@]*@")


@dataclass(frozen=True)
class Push:
    """What is pushed where: a remote by its name, or by its address if it has none that the repository knows."""

    remote: str
    refs: tuple[str, ...]

    def spoken(self) -> str:
        """Return it as a permit and a person know it."""
        return " ".join((self.remote, *self.refs))


def ref(name: str, *, forced: bool = False, deleted: bool = False) -> str:
    """Return a ref of a remote as rules and people know it."""
    mark = DELETED if deleted else FORCED if forced else ""
    return mark + name.removeprefix(BRANCHES)


def address(url: str) -> str:
    """Return the address of a remote without a name or a secret in it, as one word."""
    return "%20".join(_LOGIN.sub(r"\1", url).split())


def is_allowed(rules: Mapping[str, Iterable[str]], push: Push) -> bool:
    """Say whether rules by remote allow all of a push."""
    return bool(push.refs) and all(_is_named(rules.get(push.remote, ()), each) for each in push.refs)


def covers(rule: str, asked: str) -> bool:
    """Say whether a rule as a permit has it allows a push as it is asked for."""
    allowed, wanted = rule.split(), asked.split()
    if not allowed or len(wanted) < 2:
        return False
    return is_allowed({allowed[0]: allowed[1:]}, Push(wanted[0], tuple(wanted[1:]))) or allowed == wanted


def check(patterns: Iterable[str]) -> None:
    """Refuse patterns of refs that make no sense."""
    for pattern in patterns:
        bare = pattern.removeprefix(FORCED)
        if not bare or bare.startswith((FORCED, DELETED)) or any(letter.isspace() for letter in bare):
            raise Invalid(
                f"{pattern!r} is not a pattern of refs.",
                hint='"feature/*" lets branches be pushed, "refs/tags/v*" tags, "+feature/*" also by force.',
            )
        globs.compile(bare)


def _is_named(patterns: Iterable[str], asked: str) -> bool:
    strong = asked.startswith((FORCED, DELETED))
    name = asked[1:] if strong else asked
    return any(
        globs.matches(pattern.removeprefix(FORCED), name)
        for pattern in patterns
        if not strong or pattern.startswith(FORCED)
    )
