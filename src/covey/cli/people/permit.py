"""covey permit: what every agent may do here without asking."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.frame.client import Json
from covey.cli.frame.command import Command, asking, flag, option
from covey.cli.frame.output import age, first_line, table

ABOUT = "Permits: what you allowed every agent on this repository, once and for all."


def _listed(permits: list[Json], args: Namespace) -> str:
    rows = [(permit["id"], permit["tool"], _about(permit), _since(permit)) for permit in permits]
    return table(rows) or "Nothing is allowed beyond what [sessions] in covey.toml says."


def _about(permit: Json) -> str:
    return first_line(permit["about"], 100) or "(anything)"


def _since(permit: Json) -> str:
    if permit["revoked"] is not None:
        return f"revoked {age(permit['revoked'])}"
    return f"by {permit['by']}, {age(permit['granted'])}"


COMMANDS = {
    "list": Command("list what is allowed", flag("--all", "include revoked permits"),
                    asking("permit.list", "all", show=_listed), example="covey permit list"),
    "grant": Command("allow a command and all that begins with its words; one that chains commands only word for word",
                     (option("about", nargs="*", metavar="WORDS",
                             help="a command or its first words: every command that begins with them is allowed"),
                      option("--tool", metavar="TOOL",
                             help="allow a tool of the agent other than its shell, by the agent's own name for it")),
                     asking("permit.grant", "about", "tool", show=lambda permit, _:
                            f"{permit['id']} allows {permit['tool']} {_about(permit)}".rstrip()), owner=True,
                     example='covey permit grant "npm test"\ncovey permit grant --tool WebSearch'),
    "revoke": Command("revoke a permit", option("id", metavar="PERMIT", help="for example permit-12"),
                      asking("permit.revoke", show=lambda permit, args:
                             f"Revoked {args.id}: {permit['tool']} {_about(permit)} is asked for again"), owner=True,
                      example="covey permit revoke permit-12"),
}  # fmt: skip
