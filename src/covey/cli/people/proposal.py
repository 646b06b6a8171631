"""covey proposal: what agents ask a person to do for them."""

from __future__ import annotations

from argparse import Namespace

from covey.cli.frame.client import Json
from covey.cli.frame.command import Command, asking, flag, option
from covey.cli.frame.output import age, first_line, plain, table

NOTHING = "(nothing)"
ABOUT = "Proposals: what a session asked for beyond its rights; nothing of it happens until you accept it."


def _listed(proposals: list[Json], args: Namespace) -> str:
    rows = [
        (row["id"], row["session"], _state(row), age(row["made"]), first_line(row["what"], 100)) for row in proposals
    ]
    return table(rows) or "Nothing is proposed."


def _state(row: Json) -> str:
    return "changed since" if row["stale"] else str(row["state"])


def _whole(row: Json, args: Namespace) -> str:
    """Return one, with what it would change."""
    lines = [f"{row['id']}  {row['session']}, {age(row['made'])}: {_state(row)}", f"  {plain(row['what'])}"]
    lines += [f"  {plain(row['why'])}"]
    lines += [f"    {plain(change['field'])}: {_from(change)}{_all_of(change['to'])}" for change in row["changes"]]
    if row["state"] == "open":
        lines.append(f"  covey proposal accept {row['id']} | decline {row['id']}")
    else:
        lines.append(f"  {row['state']} by {row['by']}" + (f": {plain(row['reason'])}" if row["reason"] else ""))
    return "\n".join(lines)


def _from(change: dict[str, str]) -> str:
    was, now = (first_line(change[name], 200) for name in ("was", "now"))
    if not was and not now:
        return ""
    since = "" if was == now else f" (it was {was or NOTHING} when that was proposed)"
    return f"{now or NOTHING}{since} -> "


def _all_of(text: str) -> str:
    """Return all of what is proposed, with no line that could pose as another field."""
    return "\n        ".join(map(plain, text.splitlines())) or NOTHING


PROPOSAL = option("id", metavar="PROPOSAL", help="for example proposal-12")
COMMANDS = {
    "list": Command("list what sessions have asked you to do", flag("--all", "include proposals that were decided"),
                    asking("proposal.list", "all", show=_listed), example="covey proposal list"),
    "show": Command("show what a proposal would change", PROPOSAL, asking("proposal.show", show=_whole),
                    example="covey proposal show proposal-12"),
    "accept": Command("accept a proposal: it is done in your name",
                      (PROPOSAL, flag("--anyway", "even if what it is about has changed since")),
                      asking("proposal.accept", "anyway", show=lambda row, _:
                             f"Done, and {row['session']} is told: {plain(row['what'])}"), owner=True,
                      example="covey proposal accept proposal-12"),
    "decline": Command("decline a proposal, and say why",
                       (PROPOSAL, option("reason", nargs="*", metavar="WHY", help="what the session is told")),
                       asking("proposal.decline", "reason",
                              show=lambda row, args: f"Declined {args.id}; {row['session']} is told"), owner=True,
                       example='covey proposal decline proposal-12 "Not this week"'),
    "withdraw": Command("withdraw your own proposal (for agents)", PROPOSAL,
                        asking("proposal.withdraw", show=lambda _, args: f"Withdrew {args.id}"),
                        example="covey proposal withdraw proposal-12"),
}  # fmt: skip
