"""Browsers: a code becomes a secret once, which no browser ever sends, and counts only where our page itself asks."""

from __future__ import annotations

import asyncio
import hmac
import os
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from covey import proof
from covey.app import devices
from covey.app.app import App
from covey.app.devices import Entry, JoinDevice
from covey.app.pulses import of_device
from covey.app.verbs import Call, Principal, decode
from covey.core.devices import Device, is_known
from covey.errors import Unavailable, Unknown
from covey.store.rows import Change
from covey.store.tx import Tx

WRONG = 1.0
"""Seconds that the answer to a wrong code takes; its 128 bits make guessing vain, this keeps it quiet."""
TRIES = 8
"""Codes that may be tried at once from one address; more are sent away, unless they are right."""

_decoder = msgspec.json.Decoder(JoinDevice)


class Devices:
    """The browsers that may act as the owner, as far as requests need to know them."""

    def __init__(
        self, app: App, owner_token: str, read: Callable[[Callable[[Tx], Device | None]], Awaitable[Device | None]]
    ) -> None:
        self._app = app
        self._owner_token = owner_token
        self._read = read
        self._known: dict[tuple[str, str], Device] = {}
        self._revoked: set[str] = set()
        self._trying: Counter[str] = Counter()
        self.life = os.urandom(16).hex()
        """What this daemon is known by until it ends: what a browser sends it is worth nothing to the next."""

    def committed(self, changes: list[Change]) -> set[str]:
        """Return which devices were revoked just now; they are unknown from then on."""
        gone = {change.subject for change in changes if change.kind == "device.revoked"}
        if gone:
            self._known = {}
            self._revoked |= gone
        return gone

    def secret(self, device: str) -> str:
        """Return the secret of a browser, which is kept nowhere here: it is made anew from the owner's token."""
        return proof.key_of(self._owner_token, f"device:{device}")

    async def who(self, key: str, host: str) -> Principal:
        """Return the owner as a device, if a key is what one that may ask has made for our life and this host."""
        device = await self._find(key, host)
        clock = self._app.house.pulses.clock
        if device is None or not is_known(device, clock.now().wall):
            raise Unknown("This browser is not known here.", hint="Run covey open.")
        self._app.house.pulses.hear(of_device(device.id))
        return Principal(device=device.id)

    async def _find(self, key: str, host: str) -> Device | None:
        known = self._known  # replaced when a device is revoked, so that what we find now is not kept then
        device = known.get((key, host))
        if device is None:
            name, _, shown = key.partition(".")
            secret = self.secret(name)
            if not hmac.compare_digest(proof.page_key(secret, host, self.life).encode(), shown.encode()):
                return None
            device = await self._read(lambda tx: devices.by_id(tx, name))
            if device is None or device.id in self._revoked or device.token != devices.digest(secret):
                return None
            known[key, host] = device
        return device

    async def join(
        self,
        client: str,
        body: bytes,
        known: Principal | None,
        write: Callable[[Callable[[Tx], Entry]], Awaitable[Entry]],
    ) -> Entry:
        """Let a browser in that shows a code; who shows a wrong one waits, and cannot try many at once.

        A right one counts also while others try wrong ones: all users of this machine have one address.
        """
        asked = decode(_decoder, body)
        if self._trying[client] >= TRIES and await self._read(lambda tx: devices.by_code(tx, asked.code)) is None:
            raise Unavailable("Too many codes are tried from there.", hint="Try again in a moment.")
        device = None if known is None else known.device
        self._trying[client] += 1
        try:
            return await write(
                lambda tx: devices.join(Call(tx, Principal(), self._app.house), asked, device, self.secret)
            )
        except Unknown:
            await asyncio.sleep(WRONG)
            raise
        finally:
            self._trying[client] -= 1
            self._trying += Counter()  # forgets who tries nothing any more
