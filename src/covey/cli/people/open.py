"""covey open: the page in a browser, here or on a phone, and which browsers may ask."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path

from covey.cli.client import Answer, Client
from covey.cli.command import Command, Parser
from covey.cli.show import age, colourful, reply, table
from covey.errors import Invalid

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from typing import Any


def _arguments(parser: Parser) -> None:
    parser.add_argument("--phone", action="store_true", help="show a QR code with which a phone joins")
    parser.add_argument("--print", action="store_true", help="print the address instead of opening a browser")
    parser.add_argument("--label", default="", metavar="NAME", help="what to call this browser in the list")
    parser.add_argument("--list", action="store_true", help="list the browsers that may ask")
    parser.add_argument("--all", action="store_true", help="with --list: also those that were sent away")
    parser.add_argument("--revoke", metavar="DEVICE", help="send a browser away, for example device-12")


def run(args: Namespace, client: Client) -> None:
    """Open the page, or say who may."""
    asked = [args.phone or args.print, args.list, args.revoke is not None]
    if sum(asked) > 1 or (args.all and not args.list) or (args.phone and args.print):
        raise Invalid("These options do not go together.", hint="covey open --help shows how it is used.")
    if args.list:
        _list(args, client)
    elif args.revoke is not None:
        answer = client.ask("device.revoke", {"id": args.revoke}, {})
        reply(args, answer, f"Sent {args.revoke} away: {_name(answer.value)} has to be invited again.")
    else:
        _invite(args, client)


def _invite(args: Namespace, client: Client) -> None:
    from covey.cli.daemon import ensure_up
    from covey.git import project as projects

    ensure_up(projects.find(Path(client.folder)).must_be_begun())
    fields = {"kind": "phone" if args.phone else "page"} | ({"label": args.label} if args.label else {})
    answer = client.ask("device.invite", fields=fields)
    if args.json:
        reply(args, answer, "")
    elif args.phone:
        print(_for_phone(answer.value))
    elif args.print:
        print(answer.value["url"])
    else:
        print(_shown(answer))


def _shown(answer: Answer) -> str:
    """Show the page in a browser where there is one, and return what to say."""
    url = answer.value["url"]
    address = url.partition("#")[0]
    if _has_display():
        import webbrowser

        if webbrowser.open(url):
            return f"Opened {address} in your browser."
    port = address.rstrip("/").rpartition(":")[2]
    return (
        f"Open this within a minute; it works once:\n  {url}\n"
        f"Over ssh, forward the port first: ssh -L {port}:127.0.0.1:{port} HOST"
    )


def _has_display() -> bool:
    return bool(
        sys.platform == "darwin"
        or os.environ.get("DISPLAY")
        or os.environ.get("WAYLAND_DISPLAY")
        or os.environ.get("BROWSER")
    )


def _for_phone(invitation: dict[str, Any]) -> str:
    """Return a QR code with what a person has to know about it."""
    lines = [
        drawn(invitation["qr"], coloured=colourful()),
        "",
        "Point the phone's camera at it within five minutes; it works once. Or open this there:",
        f"  {invitation['url']}",
    ]
    if invitation["fingerprint"]:
        lines += [
            "Unless the certificate is from an authority that the phone knows, it will warn you; compare the SHA-256:",
            f"  {invitation['fingerprint']}",
        ]
    return "\n".join(lines)


def drawn(rows: list[str], *, coloured: bool) -> str:
    """Return a QR code in half blocks, two rows a line; without colours it is made for a dark terminal."""
    if len(rows) % 2:
        rows = [*rows, "0" * len(rows[0])]
    marks = {"00": " ", "01": "▄", "10": "▀", "11": "█"} if coloured else {"00": "█", "01": "▀", "10": "▄", "11": " "}
    lines = (
        "".join(marks[a + b] for a, b in zip(*pair, strict=True)) for pair in zip(rows[::2], rows[1::2], strict=True)
    )
    return "\n".join(f"\x1b[30;107m{line}\x1b[0m" if coloured else line for line in lines)


def _list(args: Namespace, client: Client) -> None:
    answer = client.ask("device.list", fields={"all": True} if args.all else {})
    rows = [(device["id"], device["kind"], _name(device), _times(device)) for device in answer.value]
    reply(args, answer, table(rows) or "No browser may ask; covey open lets one in.")


def _name(device: dict[str, Any]) -> str:
    return device["label"] or "(no name)"


def _times(device: dict[str, Any]) -> str:
    if device["revoked"] is not None:
        return f"sent away {age(device['revoked'])}"
    seen = "" if device["seen"] is None else f", seen {age(device['seen'])}"
    return f"joined {age(device['joined'])}{seen}" + ("" if device["known"] else ", too long ago")


COMMAND = Command(
    "open the page in a browser; the address carries a code that works once",
    _arguments,
    run,
    owner=True,
    example=(
        "covey open\ncovey open --phone   a QR code, if the daemon answers beyond loopback\n"
        "covey open --list\ncovey open --revoke device-12"
    ),
    prints="{id, kind, code, url, until, qr, fingerprint}; with --list the devices; with --revoke the device",
)
