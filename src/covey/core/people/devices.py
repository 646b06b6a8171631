"""Devices: a browser is invited with a code that works once, joins with it, and is the owner's until it is revoked."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from covey.errors import Refused, Unknown
from covey.values import dataclass

DEVICE_LIFE_S = 90 * 86400.0
"""Seconds for which a browser that joined is known."""


class DeviceKind(StrEnum):
    """From where a browser asks."""

    PAGE = "page"
    """From this machine."""
    PHONE = "phone"
    """From beyond it."""


@dataclass(frozen=True)
class Addresses:
    """Where the page lives: on this machine, and beyond it, with the fingerprint of a certificate that we signed."""

    page: str
    beyond: str | None = None
    fingerprint: str | None = None


CODE_LIFE_S = {DeviceKind.PAGE: 60.0, DeviceKind.PHONE: 300.0}
"""Seconds within which a code has to be used."""


@dataclass(frozen=True, kw_only=True)
class Invited:
    """The owner made a code with which one browser may join."""

    kind: DeviceKind
    label: str
    code: str
    until: float


@dataclass(frozen=True, kw_only=True)
class Device(Invited):
    """A browser that was invited, or has joined; its code and its secret, the token, are here by their hashes alone.

    One that has a key joined when browsers were known by a cookie, and has to be invited again.
    """

    id: str
    ordinal: int
    invited: float
    token: str | None = None
    key: str | None = None
    joined: float | None = None
    revoked: float | None = None


@dataclass(frozen=True, kw_only=True)
class Joined:
    """A browser used its code, and acts as the owner from then on."""

    label: str
    token: str
    key: str | None = None


@dataclass(frozen=True)
class Revoked:
    """A browser, or an invitation, is worthless from then on."""


Event = Invited | Joined | Revoked


def invite(kind: DeviceKind, label: str, code: str, at: float) -> Invited:
    """Invite a browser; it has a minute on this machine, and five where a phone has to read a picture first."""
    return Invited(kind=kind, label=label, code=code, until=round(at + CODE_LIFE_S[kind], 3))


def join(device: Device | None, label: str, token: str, at: float) -> Joined:
    """Let a browser in that shows a code; a wrong, used, revoked or expired one is refused alike."""
    if device is None or device.joined is not None or device.revoked is not None or at >= device.until:
        raise Unknown("This code is not known here, was used, or is too old.", hint="covey open makes a new one.")
    return Joined(label=label or device.label, token=token)


def revoke(device: Device) -> Revoked:
    """Make a device worthless."""
    if device.revoked is not None:
        raise Refused(f"{device.id} was revoked already.")
    return Revoked()


def is_known(device: Device, at: float) -> bool:
    """Say whether a browser that shows this device's token may act as the owner."""
    if device.joined is None or device.revoked is not None or device.key is not None:
        return False
    return at < device.joined + DEVICE_LIFE_S


def is_fresh(device: Device, at: float) -> bool:
    """Say whether a browser is known for so long still that it need not join again."""
    return device.joined is not None and is_known(device, at + DEVICE_LIFE_S / 2)


def apply(device: Device, event: Joined | Revoked, at: float) -> Device:
    """Return the device as it is after `event`. Never refuses."""
    match event:
        case Joined(label=label, token=token, key=key):
            return replace(device, label=label, token=token, key=key, joined=at)
        case Revoked():
            return replace(device, revoked=at)
