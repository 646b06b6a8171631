"""Devices: a browser is invited with a code that works once, joins with it, and is the owner's until it is revoked."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from covey.errors import Refused, Unknown
from covey.values import dataclass

LIFE = 90 * 86400.0
"""Seconds for which a browser that joined is known."""


class Kind(StrEnum):
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


PATIENCE = {Kind.PAGE: 60.0, Kind.PHONE: 300.0}
"""Seconds within which a code has to be used."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """A browser that was invited, or has joined; its code and its secret, the token, are here by their hashes alone.

    One that has a key joined when browsers were known by a cookie, and has to be invited again.
    """

    id: str
    ordinal: int
    kind: Kind
    label: str
    code: str
    invited: float
    until: float
    token: str | None = None
    key: str | None = None
    joined: float | None = None
    revoked: float | None = None


@dataclass(frozen=True, kw_only=True)
class Invited:
    """The owner made a code with which one browser may join."""

    kind: Kind
    label: str
    code: str
    until: float


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


def invite(kind: Kind, label: str, code: str, at: float) -> Invited:
    """Invite a browser; it has a minute on this machine, and five where a phone has to read a picture first."""
    return Invited(kind=kind, label=label, code=code, until=round(at + PATIENCE[kind], 3))


def join(device: Device | None, label: str, token: str, at: float) -> Joined:
    """Let a browser in that shows a code; one that is wrong, used, revoked or too old tells nothing of which it is."""
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
    return at < device.joined + LIFE


def is_fresh(device: Device, at: float) -> bool:
    """Say whether a browser is known for so long still that it need not join again."""
    return device.joined is not None and is_known(device, at + LIFE / 2)


def first(device_id: str, seq: int, event: Invited, at: float) -> Device:
    """Return the device that an Invited event begins."""
    return Device(
        id=device_id, ordinal=seq, kind=event.kind, label=event.label, code=event.code, invited=at, until=event.until
    )


def apply(device: Device, event: Event, at: float) -> Device:
    """Return the device as it is after `event`. Never refuses."""
    match event:
        case Invited():
            return first(device.id, device.ordinal, event, at)
        case Joined(label=label, token=token, key=key):
            return replace(device, label=label, token=token, key=key, joined=at)
        case Revoked():
            return replace(device, revoked=at)
