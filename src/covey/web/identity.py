"""Who asks: by the owner's token, a session's, or the key of a browser; and how we prove who we are."""

from __future__ import annotations

import asyncio
import hmac
import os
import re
from collections import Counter

import msgspec

from covey import PROTOCOL, __version__, proof
from covey.app.app import Answer, App
from covey.app.context import Call, Principal
from covey.app.fleet.heartbeats import of_device
from covey.app.people import devices
from covey.app.people.devices import JoinDevice, JoinedDevice
from covey.app.verbs import decode
from covey.core.fleet.runs import Run
from covey.core.people.devices import Device, is_known
from covey.errors import Denied, Invalid, Outdated, Unavailable, Unknown
from covey.store.bus import Bus
from covey.store.engine.rows import Change
from covey.web.addresses import Doors, host_of
from covey.web.asgi import Headers, Scope, encode, headers_of, query_of
from covey.web.stream import Hub

WRONG = 1.0
"""Seconds that the answer to a wrong code takes; its 128 bits make guessing vain, this keeps it quiet."""
TRIES = 8
"""Codes that may be tried at once from one address; more are sent away, unless they are right."""
_NAME, _NONCE = re.compile(proof.NAME_FORM), re.compile(proof.NONCE_FORM)
_OWNER = Principal()
_DOOR = re.compile(r"127\.0\.0\.1:[0-9]{1,5}")
_join_request = msgspec.json.Decoder(JoinDevice)


class Devices:
    """The browsers that may act as the owner: a code becomes a secret once, which no browser ever sends."""

    def __init__(self, app: App, bus: Bus, owner_token: str) -> None:
        self._app = app
        self._bus = bus
        self._owner_token = owner_token
        self._known: dict[tuple[str, str], Device] = {}
        self._revoked: set[str] = set()
        self._trying: Counter[str] = Counter()
        self.life = os.urandom(16).hex()
        """What this daemon is known by until it ends: what a browser sends it is worth nothing to the next."""

    def forget(self, revoked: set[str]) -> None:
        """Know these no more."""
        self._known = {}
        self._revoked |= revoked

    def secret(self, device: str) -> str:
        """Return the secret of a browser; it is not stored but derived from the owner's token."""
        return proof.key_of(self._owner_token, f"device:{device}")

    async def who(self, key: str, host: str) -> Principal:
        """Return the owner as a device, if a key is what one that may ask has made for our life and this host."""
        device = await self._find(key, host)
        clock = self._app.context.pulses.clock
        if device is None or not is_known(device, clock.now().wall):
            raise Unknown("This browser is not known here.", hint="Run covey open.")
        self._app.context.pulses.hear(of_device(device.id))
        return Principal(device=device.id)

    async def _find(self, key: str, host: str) -> Device | None:
        known = self._known  # replaced when a device is revoked, so that what we find now is not kept then
        device = known.get((key, host))
        if device is None:
            name, _, shown = key.partition(".")
            secret = self.secret(name)
            if not hmac.compare_digest(proof.page_key(secret, host, self.life).encode(), shown.encode()):
                return None
            device = await self._bus.read(lambda tx: tx.get(Device, name))
            if device is None or device.id in self._revoked or device.token != devices.digest(secret):
                return None
            known[key, host] = device
        return device

    async def join(self, client: str, body: bytes, known: Principal | None) -> JoinedDevice:
        """Let a browser in that shows a code; who shows a wrong one waits, and cannot try many at once.

        A right one counts also while others try wrong ones: all users of this machine have one address.
        """
        asked = decode(_join_request, body)
        if self._trying[client] >= TRIES and await self._bus.read(lambda tx: devices.by_code(tx, asked.code)) is None:
            raise Unavailable("Too many codes are tried from there.", hint="Try again in a moment.")
        device = None if known is None else known.device
        self._trying[client] += 1
        try:
            return await self._bus.write(
                lambda tx: devices.join(Call(tx, Principal(), self._app.context), asked, device, self.secret)
            )
        except Unknown:
            await asyncio.sleep(WRONG)
            raise
        finally:
            self._trying[client] -= 1
            self._trying += Counter()  # forgets who tries nothing any more


class Identity:
    """Knows whoever asks by what they show."""

    def __init__(self, app: App, bus: Bus, hub: Hub, owner_token: str, doors: Doors) -> None:
        self._app = app
        self._bus = bus
        self._hub = hub
        self._owner = owner_token.encode()
        self._owner_token = owner_token.strip()
        self._doors = doors
        self._sessions: dict[str, Principal] = {}
        self.devices = Devices(app, bus, self._owner_token)

    def forget_sessions(self, changes: list[Change]) -> None:
        """Let go of the sessions whose tokens became invalid with these changes: a new one, removal, a run's end."""
        dead = {change.subject for change in changes if change.kind.startswith("session.")}
        dead |= {run.session for change in changes if isinstance(run := change.row, Run) and run.outcome is not None}
        if dead:
            self._sessions = {}
            self._hub.end_of(dead)

    async def who(self, scope: Scope, headers: Headers) -> Principal:
        """Return who asks, or refuse whoever shows nothing that we know."""
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        key = None if token else page_key(scope, headers)
        if key is not None:
            self._doors.check_page(headers, scope.get("server"), scope["scheme"], scope.get("method"))
            who = await self.devices.who(key, host_of(headers))
            self._hub.see_page()
            return who
        if kind.lower() != b"bearer" or not token:
            raise Unknown("A token is missing.", hint="Send Authorization: Bearer TOKEN; covey up --json prints it.")
        if hmac.compare_digest(token, self._owner):
            who = _OWNER
        else:
            known = self._sessions  # replaced when a token dies, so that what we find now is not kept then
            text = token.decode("latin-1")
            if text not in known:
                known[text] = await self._bus.read(lambda tx: self._app.who(tx, text))
            who = known[text]
        protocol = headers.get(b"covey-protocol")
        if protocol is not None and protocol != PROTOCOL.encode():
            raise Outdated(
                f"The daemon is covey {__version__}, and your covey is of another version.",
                hint="Run covey down and covey up with the version that you want.",
            )
        return who

    async def page_owner(self, scope: Scope) -> Principal:
        """Return the owner, asking through our own page or with their token; refuse anyone else, from anywhere else."""
        headers = headers_of(scope)
        self._doors.check(headers, scope.get("server"), scope["scheme"])
        who = await self.who(scope, headers)
        if not who.is_owner:
            raise Denied("Only the owner may ask for this.", hint="Ask the owner: covey mail send owner ...")
        return who

    def prove(self, scope: Scope, headers: Headers) -> Answer:
        """Prove to whoever asks that we know the secret from which its key was made, and were asked ourselves."""
        self._doors.check(headers, scope.get("server"), scope["scheme"], passed_on=False)
        query = query_of(scope)
        name, nonce = query.get("for", ""), query.get("nonce", "")
        if not _NAME.fullmatch(name) or not _NONCE.fullmatch(nonce):
            raise Invalid("A proof is asked for with a name and a nonce.", hint="?for=owner&nonce=32 random digits")
        key, life = proof.key_of(self._owner_token, name), self.devices.life
        if door := query.get("door", ""):
            if not _DOOR.fullmatch(door) or not hmac.compare_digest(
                query.get("sign", "").encode(), proof.signed_door(key, nonce, door).encode()
            ):
                raise Unknown("This is not the door of a run.", hint="Only the wrapper of a run has one.")
            self._doors.know(door)
        return Answer(200, encode({"proof": proof.proof(key, nonce, host_of(headers), life), "life": life}))


def page_key(scope: Scope, headers: Headers) -> str | None:
    """Return the key of the page; what cannot send a header of its own, a stream or a socket, has it in its query."""
    key = headers.get(b"covey-key")
    if key is not None:
        return key.decode("latin-1")
    return query_of(scope).get("key")
