"""Browsers: a code becomes a cookie once, and the cookie counts only where our page itself asks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from covey.app import devices
from covey.app.app import App
from covey.app.devices import Entry, JoinDevice
from covey.app.pulses import of_device
from covey.app.verbs import Call, Principal, explain
from covey.core.devices import LIFE, Device, is_known
from covey.errors import Invalid, Unavailable, Unknown
from covey.store.rows import Change
from covey.store.tx import Tx

WRONG = 1.0
"""Seconds that the answer to a wrong code takes; its 128 bits make guessing vain, this keeps it quiet."""
TRIES = 8
"""Codes that may be tried at once from one address; more are sent away unread."""

_decoder = msgspec.json.Decoder(JoinDevice)


class Devices:
    """The browsers that may act as the owner, as far as requests need to know them."""

    def __init__(self, app: App, read: Callable[[Callable[[Tx], Device | None]], Awaitable[Device | None]]) -> None:
        self._app = app
        self._read = read
        self._known: dict[str, Device] = {}
        self._revoked: set[str] = set()
        self._trying: Counter[str] = Counter()
        self.cookie = "covey-" + app.store.read(lambda tx: tx.head.log)[:6]
        """The name of the cookie, so that two projects under one name do not take each other's away."""

    def committed(self, changes: list[Change]) -> set[str]:
        """Return which devices were revoked just now; they are unknown from then on."""
        gone = {change.subject for change in changes if change.kind == "device.revoked"}
        if gone:
            self._known = {}
            self._revoked |= gone
        return gone

    def token(self, headers: dict[bytes, bytes]) -> str | None:
        """Return the token in our cookie."""
        for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.cookie and value:
                return value
        return None

    async def who(self, token: str, key: str | None) -> Principal:
        """Return the owner as a device, if the token is one's that may ask."""
        device = await self._find(token)
        clock = self._app.house.pulses.clock
        if device is None or not is_known(device, clock.now().wall) or not devices.has_key(device, key):
            raise Unknown("This browser is not known here.", hint="Run covey open.")
        self._app.house.pulses.hear(of_device(device.id))
        return Principal(device=device.id)

    async def _find(self, token: str) -> Device | None:
        known = self._known  # replaced when a device is revoked, so that what we find now is not kept then
        device = known.get(token)
        if device is None:
            device = await self._read(lambda tx: devices.by_token(tx, token))
            if device is None or device.id in self._revoked:
                return None
            known[token] = device
        return device

    async def join(
        self,
        client: str,
        body: bytes,
        known: Principal | None,
        write: Callable[[Callable[[Tx], Entry]], Awaitable[Entry]],
    ) -> Entry:
        """Let a browser in that shows a code; who shows a wrong one waits, and cannot try many at once."""
        if self._trying[client] >= TRIES:
            raise Unavailable("Too many codes are tried from there.", hint="Try again in a moment.")
        asked = _read(body)
        device = None if known is None else known.device
        self._trying[client] += 1
        try:
            return await write(lambda tx: devices.join(Call(tx, Principal(), self._app.house), asked, device))
        except Unknown:
            await asyncio.sleep(WRONG)
            raise
        finally:
            self._trying[client] -= 1
            self._trying += Counter()  # forgets who tries nothing any more


def _read(body: bytes) -> JoinDevice:
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Invalid(explain(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"The body is not valid JSON: {error}.") from None


def set_cookie(name: str, token: str, *, secure: bool) -> tuple[bytes, bytes]:
    """Return the header that gives a browser its token, out of reach of scripts and of other sites."""
    text = f"{name}={token}; Path=/; Max-Age={LIFE:.0f}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
    return b"set-cookie", text.encode()
