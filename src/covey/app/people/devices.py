"""The verbs of devices: the owner invites a browser, it joins with a code that works once, and can be sent away."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from covey.app.context import Call
from covey.app.fleet.heartbeats import of_device
from covey.app.fleet.sessions import as_text
from covey.app.shapes.forms import Answered, Asked, Nothing, completed, fields_of
from covey.app.verbs import verb
from covey.core.people import devices
from covey.core.people.devices import Device, DeviceKind
from covey.core.people.rights import OWNER_ONLY
from covey.core.texts import line
from covey.errors import Refused
from covey.store.tx import Tx

Label = Annotated[str, Meta(max_length=80)]


class InviteDevice(Asked, frozen=True, kw_only=True):
    """Which browser shall join: one on this machine, or one beyond it; it may be given a name."""

    kind: DeviceKind = DeviceKind.PAGE
    label: Label = ""


class JoinDevice(Asked, frozen=True, kw_only=True):
    """A code, and what to call the browser that shows it."""

    code: Annotated[str, Meta(min_length=1, max_length=200)]
    label: Label = ""


class ListDevices(Asked, frozen=True, kw_only=True):
    """Which devices; without `all`, those that may ask now."""

    all: bool = False


class Invitation(Struct, frozen=True, kw_only=True):
    """A code that works once, the address that carries it, and for a phone the same as rows of a QR code."""

    id: str
    kind: DeviceKind
    code: str
    url: str
    until: float
    qr: list[str] = []
    fingerprint: str | None = None


@completed(fields_of(Device, "ordinal", "invited", "until", "code", "token", "key"))
class DeviceRow(Answered, frozen=True, kw_only=True):
    """A browser that joined, and when it was last heard of."""

    id: str
    seen: float | None
    known: bool
    this: bool = False


class JoinedDevice(DeviceRow, frozen=True, kw_only=True):
    """A browser that was let in, and the secret that only it gets; none if it was known already."""

    secret: str | None


@verb("device.list", "GET /api/devices", ListDevices, list[DeviceRow], may=OWNER_ONLY)
def list_devices(call: Call, asked: ListDevices) -> list[DeviceRow]:
    """List the browsers that may act as the owner."""
    made = [device_row(call, device) for device in call.tx.devices() if device.joined is not None]
    return [row for row in made if row.known or asked.all]


@verb("device.invite", "POST /api/devices/invite", InviteDevice, Invitation, may=OWNER_ONLY, status=201, secret=True)
def invite(call: Call, asked: InviteDevice) -> Invitation:
    """Make a code with which one browser may join within a minute, or a phone within five."""
    address = _address(call, asked.kind)
    code = _code(call)
    device = by_code(call.tx, code)
    if device is None:
        event = devices.invite(asked.kind, _label(asked.label), digest(code), call.tx.now)
        device = call.tx.begin(Device, event, call.actor(None))
    url = f"{address}/#code={code}"
    is_phone = asked.kind is DeviceKind.PHONE
    return Invitation(
        id=device.id,
        kind=device.kind,
        code=code,
        url=url,
        until=device.until,
        qr=_qr(url) if is_phone else [],
        fingerprint=call.context.addresses.fingerprint if is_phone and call.context.addresses else None,
    )


@verb("device.revoke", "POST /api/devices/{id}/revoke", Nothing, DeviceRow, may=OWNER_ONLY)
def revoke(call: Call, asked: Nothing, id: str) -> DeviceRow:
    """Send a browser away: whatever it has open ends at once."""
    device = call.find(Device, id)
    return device_row(call, call.tx.advance(device, devices.revoke(device), call.actor(None)))


def join(call: Call, asked: JoinDevice, known: str | None, secret_of: Callable[[str], str]) -> JoinedDevice:
    """Let the browser in that shows a code; the code is spent then, also by a browser that is known already."""
    device = by_code(call.tx, asked.code)
    secret = "" if device is None else secret_of(device.id)
    event = devices.join(device, _label(asked.label), digest(secret), call.tx.now)
    assert device is not None
    same = call.tx.get(devices.Device, known) if known is not None else None
    if same is not None and devices.is_fresh(same, call.tx.now):
        call.tx.advance(device, devices.Revoked(), call.actor(None))
        return JoinedDevice.of(device_row(call, same), secret=None)
    joined = call.tx.advance(device, event, call.actor(None))
    call.context.pulses.hear(of_device(joined.id))
    return JoinedDevice.of(device_row(call, joined), secret=secret)


def revoke_all(call: Call) -> int:
    """Send every browser away, with what was invited, and return how many there were."""
    found = [device for device in call.tx.devices() if device.revoked is None]
    for device in found:
        call.tx.advance(device, devices.revoke(device), call.actor(None))
    return sum(devices.is_known(device, call.tx.now) for device in found)


def digest(secret: str) -> str:
    """Return the hash under which a code or a secret is known."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def device_row(call: Call, device: Device) -> DeviceRow:
    """Return a device as it is answered."""
    pulse = call.context.pulses.seen(of_device(device.id))
    return DeviceRow.of(
        device,
        seen=pulse.seen if pulse else device.joined,
        known=devices.is_known(device, call.tx.now),
        this=device.id == call.who.device,
    )


def _label(text: str) -> str:
    return line(text, "The label", 80) if text.strip() else ""


def by_code(tx: Tx, code: str) -> Device | None:
    """Return the device that was invited with a code, whether it still works or not."""
    return tx.device_of_code(digest(code))


def _address(call: Call, kind: DeviceKind) -> str:
    """Return where a browser finds the page."""
    addresses = call.context.addresses
    if addresses is None:
        raise Refused("There is no page without the daemon.", hint="covey up starts it.")
    if kind is DeviceKind.PAGE:
        return addresses.page
    if addresses.beyond is None:
        raise Refused(
            "The daemon answers on this machine only, so no phone can reach it.",
            hint="covey down, then covey up --bind HOST:PORT, or --name HOST for a tunnel of yours.",
        )
    return addresses.beyond


def _code(call: Call) -> str:
    """Return 128 bits that nobody can guess; under an idempotency key always the same, so they are kept nowhere."""
    if call.tx.key is None or not call.context.secret:
        return as_text(os.urandom(16))
    return as_text(hmac.digest(call.context.secret, b"a device's code " + call.tx.key.encode(), "sha256")[:16])


def _qr(url: str) -> list[str]:
    """Return the rows of the QR code of an address, 1 for dark, with the quiet zone that readers need."""
    import segno

    made = segno.make(url, error="m", micro=False)
    return ["".join("1" if cell else "0" for cell in row) for row in made.matrix_iter(border=4)]
