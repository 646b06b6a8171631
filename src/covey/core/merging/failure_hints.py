"""What a failed check may have lacked, by what it said: the network, or something that a gate does not see."""

from __future__ import annotations

import re
from collections.abc import Collection

from covey.core.merging.failures import told

_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|nodename nor servname"
    r"|Could ?n[o']t resolve (?:host|proxy)"
    r"|getaddrinfo (?:EAI_AGAIN|ENOTFOUND|failed)|EAI_AGAIN|ENETUNREACH|ENETDOWN|Network is (?:unreachable|down)"
    r"|ECONNREFUSED|Connection refused|connect: connection refused|UnknownHostException|NameResolutionError"
    r"|dial tcp: lookup|failed to lookup address information|error sending request for url|No route to host"
    r"|nss_getaddrinfo|UnresolvedAddressException|SocketError: Failed to open TCP|could not connect to server",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"No such file or directory|not found|ENOENT|can't open|cannot open|can't cd|cannot find|does not exist|missing",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?<![\w./~-])(?:~|/[\w.@+-]+)(?:/[\w.@+-]*[\w@+-])+")
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
    return _NETWORK.search(text) is not None


def missed_paths(text: str) -> tuple[str, ...]:
    """Return the whole paths in lines that say that something is not there."""
    lines = (line for line in text.splitlines() if _MISSING.search(line))
    found = dict.fromkeys(match for line in lines for match in _PATH.findall(line))
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


def given(summary: str) -> list[str]:
    """Return the hints in the summary of a gate that failed; they come before what it printed."""
    return [
        line
        for line in told(summary).first
        if line.startswith((NO_NETWORK, WROTE_OUTSIDE, _NOT_FOUND, _NOT_GIVEN, _OWN))
    ]
