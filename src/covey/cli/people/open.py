"""covey open: the page in a browser, here or on a phone, and which browsers may ask."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from covey.cli.frame.client import Answer, Client, Json
from covey.cli.frame.command import Command, flag, option
from covey.cli.frame.output import age, colourful, reply, table
from covey.errors import Invalid


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
    from covey.cli.project.daemon import ensure_up

    ensure_up(client)
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
    if sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        import webbrowser

        if webbrowser.open(url):
            return f"Opened {address} in your browser."
    port = address.rstrip("/").rpartition(":")[2]
    return (
        f"Open this within a minute; it works once:\n  {url}\n"
        f"Over ssh, forward the port first: ssh -L {port}:127.0.0.1:{port} HOST"
    )


def _for_phone(invitation: Json) -> str:
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


def _name(device: Json) -> str:
    return device["label"] or "(no name)"


def _times(device: Json) -> str:
    if device["revoked"] is not None:
        return f"sent away {age(device['revoked'])}"
    seen = "" if device["seen"] is None else f", seen {age(device['seen'])}"
    return f"joined {age(device['joined'])}{seen}" + ("" if device["known"] else ", too long ago")


COMMAND = Command(
    "open the page in a browser; the address carries a code that works once",
    (
        flag("--phone", "show a QR code to open the page on a phone"),
        flag("--print", "print the address instead of opening a browser"),
        option("--label", default="", metavar="NAME", help="what to call this browser in the list"),
        flag("--list", "list the browsers that have access"),
        flag("--all", "with --list: include browsers whose access was revoked"),
        option("--revoke", metavar="DEVICE", help="revoke a browser's access, for example device-12"),
    ),
    run,
    owner=True,
    example=(
        "covey open\ncovey open --phone   a QR code, if the daemon answers beyond loopback\n"
        "covey open --list\ncovey open --revoke device-12"
    ),
    prints="{id, kind, code, url, until, qr, fingerprint}; with --list the devices; with --revoke the device",
)
